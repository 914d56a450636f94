r"""Learning a parity with pure privacy (Kasiviswanathan et al. 2008; paper 003, Appendix B).

The rows are split by index into batches. In each, by a fair coin, nothing comes out; else every row
is kept with probability p = tanh(epsilon / 2), the equations <mask, x> = y (modulo 2) of the kept
rows are solved, and a uniformly random solution comes out, or nothing if there is none.

Privacy, replace-one, pure. A changed row i is in one batch. Let P_out(o) be the probability of an
outcome given that i is not kept, which is the same for both samples, and P_in(o) given that it is.
For the same other kept rows, with solutions A, keeping i leaves A, a half of A, or nothing. So

- for a mask o: P_in(o) is between 0 and 2 P_out(o), and p P_in + (1 - p) P_out is between
  (1 - p) P_out and (1 + p) P_out. Two samples differ by (1 + p) / (1 - p) = e^epsilon at most,
  attained where the row halves the solutions in one and rules o out in the other;
- for no mask: P_out(o) >= 1/2 because of the coin, P_in(o) >= P_out(o), so
  P_out <= P_in <= 1 <= 2 P_out, and the ratio is at most 1 + p.

All batches together cost epsilon, once. (The paper keeps rows with probability epsilon / 4, which
costs 0.2513 at epsilon 0.5: half of what it is allowed, for half of the rows.)

How long the elimination takes depends on the rows, as does the time of every solver.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt import _validate
from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.events import Event, PureEvent
from dpadapt.privacy.core.hidden import Hidden
from dpadapt.privacy.core.mechanism import OwnEpsilon
from dpadapt.privacy.core.noise import NoiseSource
from dpadapt.privacy.core.statistic import Rows
from dpadapt.privacy.rows.errors import PrivacyError

_CHUNK = 1 << 16  # rows packed at once


@dataclass(frozen=True)
class Parity(OwnEpsilon):
    """One parity, or None, for each of ``batches=`` disjoint batches of rows.

    A changed row is in one batch, so all of them together are paid for once. Takes the hidden
    :class:`Rows`: cells of 0 and 1, the label in the last column.

    Examples
    --------
    >>> Parity("parity").unbounded
    True
    """

    def event(self, scale: float, source: NoiseSource) -> Event:
        """Pure."""
        return PureEvent(self.label, 1 / scale, self.count)

    def admit(self, hidden: Hidden, *, batches: int, **_: Any) -> float:  # type: ignore[override]
        """All batches at once, of labelled rows as they are."""
        _validate.count("batches", batches)
        if type(hidden.statistic) is not Rows or hidden.shape[1] < 2:
            raise PrivacyError("parity needs labelled rows that this session has hidden.")
        return 1

    def release(
        self, hidden: Hidden, scale: float, source: NoiseSource, *, batches: int = 1, **_: Any
    ) -> list[NDArray[np.uint8] | None]:
        """Masks of the batches."""
        rows, labels = hidden._value[:, :-1], hidden._value[:, -1]
        return parity_masks(rows, labels, 1 / scale, batches, source.uniform)


def thinning(epsilon: float) -> float:
    """Return tanh(epsilon / 2), the probability with which a row is kept.

    A hair less, which covers rounding and the grid of 2^-53 on which uniform numbers lie.

    Examples
    --------
    >>> p = thinning(0.5)
    >>> round(math.log((1 + p) / (1 - p)), 12)
    0.5
    """
    return max(0.0, math.tanh(_validate.epsilon(epsilon) / 2) - 2.0**-50)


def pack_bits(rows: Any) -> NDArray[np.uint64]:
    """Rows of 0 and 1 as words of 64 bits. Total: a cell counts as 1 if it is above 1/2.

    Parameters
    ----------
    rows : array of shape (n, d)
        Numbers; one that is not a number counts as 0.

    Examples
    --------
    >>> pack_bits([[1.0, 0.0, 1.0], [0.0, float("nan"), -3.0]])
    array([[5],
           [0]], dtype=uint64)
    """
    rows = np.asarray(rows)
    words = max(1, -(-rows.shape[1] // 64))
    out = np.zeros((len(rows), 8 * words), dtype=np.uint8)
    for start in range(0, len(rows), _CHUNK):
        bits = rows[start : start + _CHUNK] > 0.5
        packed = np.packbits(bits, axis=1, bitorder="little")
        out[start : start + _CHUNK, : packed.shape[1]] = packed
    return out.view("<u8").astype(np.uint64, copy=False)


def parity_masks(
    rows: Any,
    labels: Any,
    epsilon: float,
    batches: int,
    uniform: Callable[[int], FloatArray],
    *,
    columns: int | None = None,
) -> list[NDArray[np.uint8] | None]:
    """One mask, or None, for each batch; epsilon-DP in all, as proved above.

    Parameters
    ----------
    rows : array of shape (n, d), or what :func:`pack_bits` makes of it
        A cell counts as 1 if it is above 1/2, else as 0; nothing is refused for its value.
    labels : array of shape (n,)
        Read by the same rule, so that -1 and 1 do as well as 0 and 1.
    epsilon : float
    batches : int
        Number of batches, of consecutive rows, equal in size up to one row.
    uniform : callable
        From a number to that many independent uniform numbers in [0, 1). For each batch it is
        called for 1 (the coin), for each row of the batch, and for each column, in this order,
        whatever the rows are.
    columns : int, optional
        d; packed rows need it.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> X = rng.integers(0, 2, (600, 20))
    >>> masks = parity_masks(X, (X[:, 3] + X[:, 8]) % 2, 1.0, 6, rng.random)
    >>> [None if mask is None else np.flatnonzero(mask).tolist() for mask in masks]
    [None, None, [3, 8], None, None, [3, 8]]
    """
    from ._compiled import solve_parity

    keep = thinning(epsilon)
    words, width = _packed(rows, columns)
    sides = (np.asarray(labels) > 0.5).astype(np.uint8)
    if sides.shape != (len(words),):
        raise ValueError("labels: one for each row.")
    edges = np.linspace(0, len(words), _validate.count("batches", batches) + 1).astype(np.int64)
    masks: list[NDArray[np.uint8] | None] = []
    for start, end in itertools.pairwise(edges):
        silent = bool(uniform(1)[0] < 0.5)
        kept = (np.asarray(uniform(int(end - start))) < keep).astype(np.uint8)
        guess = (np.asarray(uniform(width)) < 0.5).astype(np.uint8)
        solvable, mask = solve_parity(words[start:end], sides[start:end], kept, guess)
        masks.append(None if silent or not solvable else mask)
    return masks


def _packed(rows: Any, columns: int | None) -> tuple[NDArray[np.uint64], int]:
    rows = np.asarray(rows)
    if columns is None:
        return np.ascontiguousarray(pack_bits(rows)), int(rows.shape[1])
    if rows.dtype != np.uint64 or rows.shape[1] != max(1, -(-columns // 64)):
        raise ValueError("columns is for packed rows; see pack_bits.")
    return np.ascontiguousarray(rows), columns
