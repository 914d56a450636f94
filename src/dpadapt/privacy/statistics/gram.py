"""Kernel values of private rows among each other: a table that only a session may fill."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray

from ... import _validate
from ..core.cleaning import Cleaning, shrink_factors
from ..core.hidden import Opaque
from ..core.sample import Sample
from ..core.statistic import Statistic, check_sum
from ..rows.foreign import apply, apply_to_pairs
from ..rows.memory import check_memory
from ..rows.tables import Table

_PIECE = 1024  # rows that a kernel is asked about at once: what it returns stays small


@dataclass(frozen=True, eq=False)
class Gram(Statistic):
    """Kernel values of every private row with every other, and with a pool of public points.

    A kernel of somebody else's is asked about one pair of rows at a time (:mod:`.foreign`): what it
    says of two rows depends on no other. A row on which it fails with itself has the feature vector
    0; a value that is not finite, or on which it fails, is 0. A row with K(x, x) above the bound is
    scaled: K(x, y) s(x) s(y) with s(x) = min(1, R / sqrt(K(x, x))), a map of single rows, so that
    every feature vector has a norm of R at most. Only who gives a positive definite kernel gets one
    back.

    Parameters
    ----------
    kernel : callable
        From two tables of rows (arrays, frames, sparse matrices; see :class:`Schema`) to the
        matrix of their kernel values; it must have no memory. A method ``diagonal`` saves time.
    squared_bound : float
        R^2, public.
    pool : table, optional
        Public points; their kernel values stand beside those of the rows.
    labels : Cleaning, optional
        How labels are cleaned; without it they are left out.

    Examples
    --------
    >>> gram = Gram(lambda A, B: A @ B.T, 1.0, labels=Cleaning(1.0, label_range=(-1.0, 1.0)))
    >>> gram.table([np.array([[2.0, 0.0], [0.0, 0.5]])], [np.array([1.0, -1.0])])
    array([[ 1.  ,  0.  ,  1.  ],
           [ 0.  ,  0.25, -1.  ]])
    """

    kernel: Any
    squared_bound: float
    pool: Any = None
    labels: Cleaning | None = None
    label: str = "kernel values"

    def __post_init__(self) -> None:
        _validate.positive("squared_bound", self.squared_bound)

    @property
    def radius(self) -> float:
        """R."""
        return float(np.sqrt(self.squared_bound))

    def entry_radius(self) -> float:
        """R."""
        return self.radius

    def sensitivity_on(self, sample: Sample) -> float:
        """No bound: only what is derived from the table, with a claim, can be released."""
        sample.needs_replace_one("a kernel matrix")
        width = 1 + (0 if self.pool is None else int(self.pool.shape[0]))
        check_memory(self.label, 8.0 * sample.n_rows * (sample.n_rows + width))
        check_sum(self.label, lambda: self.squared_bound, sample.most_rows)
        return math.inf

    def reduce(self, sample: Sample) -> Any:
        """Kernel values of all rows, held in memory once: n x n numbers."""
        blocks = list(sample.rows.long_blocks())
        table = self.table([X for X, _ in blocks], [y for _, y in blocks], sample.progress)
        if (
            blocks and sample.labelled and self.labels is not None
        ):  # who has no label has the feature vector 0
            lost = ~np.concatenate([np.isfinite(y) for _, y in blocks if y is not None])
            table[lost] = 0.0
            table[:, : len(lost)][:, lost] = 0.0
        return _Held(table)

    def table(
        self,
        blocks: Sequence[Table],
        labels: Sequence[FloatArray | None],
        progress: Callable[[int, int], None] | None = None,
    ) -> FloatArray:
        """Rows [K(x_i, x_j) | K(x_i, z_t) | y_i], without y_i if labels are left out."""
        pieces = [piece for block in blocks for piece in _cut(block)]
        ends = np.cumsum([0, *(piece.shape[0] for piece in pieces)])
        n_rows, width = int(ends[-1]), 0 if self.pool is None else self.pool.shape[0]
        labelled = self.labels is not None
        out = np.zeros((n_rows, n_rows + width + labelled))
        for i, piece in enumerate(pieces):
            rows = slice(ends[i], ends[i + 1])
            for j in range(i):
                values = self._values(piece, pieces[j])
                out[rows, ends[j] : ends[j + 1]] = values
                out[ends[j] : ends[j + 1], rows] = values.T
            values = self._values(piece, piece)
            out[rows, rows] = (values + values.T) / 2
            if width:
                out[rows, n_rows : n_rows + width] = self._values(piece, self.pool)
            if progress is not None:
                progress(int(ends[i + 1]), n_rows)
        self._scale(out, n_rows, width)
        if self.labels is not None:
            cleaned = [self._labels(*each) for each in zip(blocks, labels, strict=True)]
            out[:, -1] = np.concatenate(cleaned) if cleaned else 0.0
        return out

    def _labels(self, block: Table, given: FloatArray | None) -> FloatArray:
        assert self.labels is not None
        _, clean = self.labels(np.zeros((block.shape[0], 0)), given)
        return np.zeros(block.shape[0]) if clean is None else clean

    def _scale(self, out: FloatArray, n_rows: int, width: int) -> None:
        """K(x, y) times s(x) s(y): a product of two that is rounded once, so that it commutes."""
        own = _factors(np.diagonal(out[:, :n_rows]), self.squared_bound)
        both = np.append(own, self.factors(self.pool)) if width else own
        for row, factor in zip(out, own, strict=True):
            row[: n_rows + width] *= factor * both

    def factors(self, A: Table) -> FloatArray:
        """s(x) of rows or points, by the public rule."""
        rows = int(A.shape[0])
        if not hasattr(self.kernel, "diagonal"):  # a plain function: row by row, whoever fails
            each = (A[i : i + 1] for i in range(rows))
            squares = np.array([self._values(one, one)[0, 0] for one in each])
            return _factors(squares, self.squared_bound)

        def finish(found: Any, count: int) -> tuple[FloatArray]:
            return (_checked(np.asarray(found)[:, None], (count, 1))[:, 0],)

        results, failed = apply(self.kernel.diagonal, (A,), rows, finish)
        squares = np.zeros(rows) if results is None else np.where(failed, 0.0, results[0])
        return _factors(squares, self.squared_bound)

    def between(self, A: Table, B: Table, left: FloatArray, right: FloatArray) -> FloatArray:
        """Kernel values of two tables with the factors of their rows."""
        return self._values(A, B) * left[:, None] * right

    def _values(self, A: Table, B: Table) -> FloatArray:
        return np.asarray(apply_to_pairs(self.kernel, A, B, _checked))


class _Held(Opaque):
    """Finite values that are too many to copy: nobody else has them, nobody can change them."""

    def __init__(self, values: FloatArray) -> None:
        values.flags.writeable = False
        self._values, self.shape = values, values.shape

    def copy(self) -> FloatArray:
        """As :meth:`Session.derive` hands it to a function: a view, for a second table is much."""
        return self._values.view()


def _checked(values: Any, shape: tuple[int, int]) -> FloatArray:
    array = np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError("the kernel must return one value for each pair of rows.")
    known = np.isfinite(array)
    return array if known.all() else np.where(known, array, 0.0)


def _cut(block: Table) -> list[Table]:
    """Pieces of one block, cut at places that depend on its size alone."""
    return [block[at : at + _PIECE] for at in range(0, block.shape[0], _PIECE)]


def _factors(squares: FloatArray, bound: float) -> FloatArray:
    """s(x); 0 for a row with no length of its own, whatever the kernel says of it and others."""
    with np.errstate(all="ignore"):
        factors = shrink_factors(np.sqrt(squares), math.sqrt(bound))
    return np.where(squares > 0, factors, 0.0)
