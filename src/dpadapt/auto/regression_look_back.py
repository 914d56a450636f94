r"""A look at a move: which part of it pays on private rows.

With f what the move adds to an answer and e the error that it is to mend, the part a of the move
that leaves the least square error is (mean e f) / (mean f^2). Public rows cannot tell: the move may
be longer or shorter on private rows, and noise in it does not follow their errors. So both means
are released together, as one vector of each row,

    (e f / b, f^2 / q), shrunk to length 1 at most,

by :class:`~dpadapt.privacy.statistics.MeanVector`, which bounds what one row adds whatever e and f
are: two vectors of the unit ball are 2 apart at most, so the mean of n moves by 2 / n. A row that
is shrunk is shrunk in both numbers, which is a weight of the row, so that their ratio stays right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpadapt._types import FloatArray

_CROSS, _SQUARES = 2.8, 5.0  # cuts of e f and f^2, in usual sizes
_WIDER, _WIDEST = 60.0, 4.0  # cuts are wider where the budget allows
_PRIOR_SD = 0.5  # of the part, around what the descent alone would keep
_SQUARE_SD = 0.6  # of mean f^2, relative to that on public rows
_LEAST_SQUARE = 0.2  # of it
_MOST = 2.0  # times as far as the descent went


@dataclass(frozen=True)
class LookBack:
    """How the look is cut, and what it says.

    Parameters
    ----------
    error : float
        R, the size of a private error.
    square : float
        Mean f^2 on public rows.
    precision : float
        N mu, for this look alone.

    Examples
    --------
    >>> look = LookBack(error=1.0, square=0.25, precision=100.0)
    >>> [round(cut, 3) for cut in look.cuts]
    [2.333, 2.083]
    >>> said = np.array([0.25 / 2.333, 0.25 / 2.083])  # mean e f and mean f^2 are 0.25
    >>> [round(look.part(said, sd, before=0.3, by_chance=0.0), 2) for sd in (1e-4, 10.0)]
    [1.0, 0.3]
    """

    error: float
    square: float
    precision: float

    @property
    def cuts(self) -> tuple[float, float]:
        """Lengths b and q."""
        wider = min(max(self.precision / _WIDER, 1.0), _WIDEST)
        return wider * _CROSS * self.error * math.sqrt(self.square), wider * _SQUARES * self.square

    def products(self, errors: FloatArray, move: FloatArray) -> FloatArray:
        """What is averaged, of shape (n, 2), before each row is shrunk."""
        return np.column_stack([errors * move, move**2]) / np.array(self.cuts)

    def part(self, found: FloatArray, sd: float, before: float, by_chance: float) -> float:
        """Part of the move to keep: posterior mean, around what would be kept without the look.

        Parameters
        ----------
        found : ndarray of shape (2,)
        sd : float
            Of the noise in each number.
        before : float
            Part that would be kept without the look.
        by_chance : float
            Mean e f that a move has on the rows that it was made for, and not on others.
        """
        cross, square = (  # in units of mean f^2 on public rows
            float(number) * cut / self.square for number, cut in zip(found, self.cuts, strict=True)
        )
        off = sd * self.cuts[1] / self.square
        trust = _SQUARE_SD**2 / (_SQUARE_SD**2 + off**2)
        square = max(1 + trust * (square - 1), _LEAST_SQUARE)
        trust = _trust(sd * self.cuts[0] / self.square / square)
        part = before + trust * ((cross - by_chance / self.square) / square - before)
        return min(max(part, 0.0), _MOST)

    def noise(self, sd: float) -> float:
        """Mean square of what the noise of the look adds to answers, if f is as on public rows."""
        off = sd * self.cuts[0] / self.square
        return (_trust(off) * off) ** 2 * self.square


def _trust(sd: float) -> float:
    """Weight of a noisy part against what is known before it."""
    return _PRIOR_SD**2 / (_PRIOR_SD**2 + sd**2)
