"""Where private rows come from, in blocks, and the public map that cleans them.

A source yields blocks of rows, so that an array, a data frame and a Parquet file larger than
memory give the same statistics. Nothing here raises on a value (:mod:`._cells`): a cell that is no
finite number becomes a fixed public one, a long row is shrunk, a label is clamped. Exceptions,
warnings and messages depend on shapes, types and column names only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _parquet, _validate
from ._cells import (
    ArrowBlock,
    Table,
    arrow_numbers,
    as_frame,
    column_of_list,
    fill,
    muted,
    numbers,
    quiet,
    rows_of_lists,
)
from .errors import PrivacyError
from .events import FloatArray

__all__ = ["Cleaning", "MappedRows", "MemoryRows", "ParquetRows", "RowSource", "SelectedRows"]

BLOCK_ROWS = 16_384  # at most; small enough for the processor's cache at 20 columns
BLOCK_CELLS = 1 << 20  # at most, so that wide tables stay within memory
Block = tuple[Table, FloatArray | None]


class RowSource(ABC):
    """Blocks of private rows with public sizes and column names.

    Attributes
    ----------
    n_rows : int
    columns : tuple of str or None
        None where the rows have no names (a plain array).
    n_columns : int
    labelled : bool
    """

    n_rows: int
    columns: tuple[str, ...] | None
    n_columns: int
    labelled: bool

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Rows in order, as (table, labels or None)."""

    @property
    def block_rows(self) -> int:
        """Rows of one block."""
        return max(1, min(BLOCK_ROWS, BLOCK_CELLS // max(1, self.n_columns)))


class MemoryRows(RowSource):
    """Rows of an array or a data frame.

    Examples
    --------
    >>> MemoryRows(np.ones((3, 2)), None).n_rows
    3
    """

    def __init__(self, X: Any, y: Any) -> None:
        with quiet():
            self._X = _as_table(X)
            self.n_rows, self.n_columns = (int(size) for size in self._X.shape)
            self.columns = _unique(X.columns) if hasattr(X, "iloc") else None
            self._y = None if y is None else _as_labels(y, self.n_rows)
        self.labelled = y is not None

    def blocks(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, self.block_rows):
            cut = slice(start, start + self.block_rows)
            rows = self._X[cut] if self.columns is None else self._X.iloc[cut]
            yield rows, None if self._y is None else self._y[cut]


class ParquetRows(RowSource):
    """Rows of one or more Parquet files, read in blocks; never more than a few in memory.

    Files may differ in the order of their columns: columns are found by name.
    """

    def __init__(self, paths: Sequence[Path], label: str | None) -> None:
        self._paths, self._label = tuple(paths), label
        names, self._counts = _parquet.sizes(self._paths)
        if label is not None and label not in names:
            raise ValueError(f"label: the Parquet files have no column {label!r}.")
        self.columns = tuple(name for name in _unique(names) if name != label)
        self.n_columns, self.n_rows = len(self.columns), sum(self._counts)
        self.labelled = label is not None

    def blocks(self, columns: tuple[str, ...] | None = None) -> Iterator[Block]:
        wanted = (self.columns or ()) if columns is None else columns
        read = wanted if self._label is None else (*wanted, self._label)
        for batch in _parquet.batches_ahead(self._paths, self._counts, read, self.block_rows):
            y = None if self._label is None else arrow_numbers(batch.column(self._label))
            yield ArrowBlock(batch, wanted), y


class SelectedRows(RowSource):
    """The named columns of another source, in the given order."""

    def __init__(self, source: RowSource, columns: tuple[str, ...]) -> None:
        known = set(source.columns or ())
        missing = [name for name in columns if name not in known]
        if missing:
            listed = ", ".join(repr(name) for name in missing[:5])
            raise ValueError(
                f"private: the private rows lack the column(s) {listed} that the public rows "
                "have; give both the same columns."
            )
        self._source: RowSource = source._source if isinstance(source, SelectedRows) else source
        self.columns, self.n_columns = _unique(columns), len(columns)
        self.n_rows, self.labelled = source.n_rows, source.labelled

    def blocks(self) -> Iterator[Block]:
        if isinstance(self._source, ParquetRows):
            yield from self._source.blocks(self.columns)
        else:
            place = {name: i for i, name in enumerate(self._source.columns or ())}
            positions = [place[name] for name in self.columns or ()]
            for table, y in self._source.blocks():
                yield table.iloc[:, positions], y


class MappedRows(RowSource):
    """Another source's rows under a public, row-wise map (fitted transformers, say).

    The map is made total: where it fails on a block, it is tried on smaller and smaller pieces
    down to single rows; a row on which it fails becomes NaN, which cleaning turns into the public
    mean. What the map warns, logs or prints is swallowed, because it may speak of private values.
    It works on a copy, so it may change what it is given.
    """

    def __init__(self, source: RowSource, transform: Callable[[Any], Any], width: int) -> None:
        self._source, self._transform = source, transform
        self.columns, self.n_columns = None, width
        self.n_rows, self.labelled = source.n_rows, source.labelled

    def blocks(self) -> Iterator[Block]:
        for table, y in self._source.blocks():
            out = np.full((len(table), self.n_columns), np.nan)
            with muted():
                self._write(out, table, (2048, 256, 32, 1))
            yield out, y

    def _write(self, out: FloatArray, table: Table, smaller: tuple[int, ...]) -> None:
        if not self._attempt(out, table) and smaller:
            for start in range(0, len(out), smaller[0]):
                cut = slice(start, start + smaller[0])
                self._write(out[cut], table[cut], smaller[1:])

    def _attempt(self, out: FloatArray, table: Table) -> bool:
        try:
            result = self._transform(as_frame(table))
            result = numbers(result.toarray() if hasattr(result, "toarray") else result)
        except Exception:
            return False
        if result.shape != out.shape:
            return False
        out[...] = result
        return True


@dataclass(frozen=True)
class Cleaning:
    """The public map under which private rows enter a statistic. Total: it never fails.

    In order: (x - center) / scale column by column; a cell that is not finite becomes 0, which
    after centering is the public mean; a row longer than ``radius`` is shrunk to it (to a hair
    below, so that no rounding leaves it longer; a second cleaning changes nothing); the constant
    ``intercept`` is appended if it is not 0; the label is clamped to ``label_range``, a label that
    is not finite becomes the middle of the range.

    Parameters
    ----------
    radius : float
        Bound on the Euclidean norm of a row, before the intercept is appended.
    center, scale : array of shape (d,) or None
        Public location and scale of the columns.
    intercept : float
    label_range : (float, float) or None
        Public range of the label; None for statistics that do not read it.

    Examples
    --------
    >>> cleaning = Cleaning(radius=5.0)
    >>> X, y = cleaning(np.array([[np.nan, 1.0], [1e300, 0.0], [3.0, 4.0]]), None)
    >>> X
    array([[0., 1.],
           [5., 0.],
           [3., 4.]])
    """

    radius: float
    center: FloatArray | None = None
    scale: FloatArray | None = None
    intercept: float = 0.0
    label_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not 1e-300 <= _validate.positive("radius", self.radius) <= 1e300:
            raise ValueError(f"radius must lie between 1e-300 and 1e300; got {self.radius!r}.")
        if self.label_range is not None and not self.label_range[0] <= self.label_range[1]:
            raise ValueError(f"label_range must be (low, high); got {self.label_range!r}.")

    def __call__(self, X: Table, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """Clean one block; returns new arrays, in column-major order."""
        rows, columns = X.shape
        out = np.empty((rows, columns + (self.intercept != 0)), order="F")
        inner = out[:, :columns]
        fill(inner, X)
        with np.errstate(all="ignore"):
            if self.center is not None:
                inner -= self.center
            if self.scale is not None:
                inner /= self.scale
            self._shrink(inner)
            if self.intercept != 0:
                out[:, columns:] = self.intercept
            return out, self._labels(y)

    def _shrink(self, rows: FloatArray) -> None:
        # the square of an extreme radius is no float: measure in a power of two near the radius
        unit = 1.0 if 1e-100 < self.radius < 1e100 else math.ldexp(1.0, math.frexp(self.radius)[1])
        measured = rows if unit == 1.0 else rows / unit
        squares = np.einsum("ij,ij->i", measured, measured)
        slack = 4 * float(np.finfo(np.float64).eps) * (rows.shape[1] + 4)  # what rounding can do
        inside = squares <= (self.radius / unit * (1 - slack)) ** 2
        odd = np.flatnonzero(~inside)  # too long, overflowing or not finite
        if odd.size:
            some = np.nan_to_num(rows[odd], copy=False, nan=0.0, posinf=0.0, neginf=0.0)
            largest = np.abs(some).max(axis=1, initial=0.0, keepdims=True)
            direction = some / np.where(largest > 0, largest, 1.0)  # no square of it overflows
            length = np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1.0)
            long = largest > self.radius * (1 - slack) / length
            rows[odd] = np.where(long, direction * (self.radius * (1 - 2 * slack) / length), some)

    def _labels(self, y: FloatArray | None) -> FloatArray | None:
        if y is None or self.label_range is None:
            return None
        low, high = self.label_range
        return np.clip(np.where(np.isfinite(y), y, low / 2 + high / 2), low, high)


def _as_table(X: Any) -> Any:
    if hasattr(X, "iloc"):
        if X.ndim != 2:
            raise ValueError("X must be a DataFrame, not one column of it; use X.to_frame().")
        return X
    if hasattr(X, "toarray"):
        raise TypeError("X is a sparse matrix; pass X.toarray(), or a map to fewer columns.")
    if isinstance(X, (list, tuple)):
        return rows_of_lists(X)
    array = numbers(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, rows and columns; got {array.ndim}. "
            "One column of n values is X.reshape(-1, 1)."
        )
    if np.iscomplexobj(array):
        raise TypeError("X must hold real numbers; got a complex array.")
    return array


def _as_labels(y: Any, n_rows: int) -> FloatArray:
    array = column_of_list(y) if isinstance(y, (list, tuple)) else numbers(y)
    if array.shape != (n_rows,):
        shape = " x ".join(map(str, array.shape))
        raise ValueError(f"y must hold one label for each of the {n_rows} rows; got shape {shape}.")
    return array


def _unique(names: Any) -> tuple[str, ...]:
    counts = Counter(names)
    twice = sorted(str(name) for name, count in counts.items() if count > 1)
    if twice:
        raise ValueError(f"X has two columns of the same name: {', '.join(twice)}; rename one.")
    return tuple(counts)


def unreadable(error: Exception) -> PrivacyError:
    """Say that a block could not be processed, without a word of what was in it."""
    return PrivacyError(
        f"the private rows could not be read or reduced ({type(error).__name__}); the reason is "
        "withheld, because it may depend on private values. Nothing was released."
    )
