"""What a noisy histogram of private errors says: how far they moved, and how large they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpadapt._types import FloatArray

from .regression_prior import SPIKE

_EDGES = (0.1, 0.33, 1.0, 3.0, 9.0, 27.0, 81.0)
CELLS = np.array([-each for each in _EDGES[::-1]] + [0.0, *_EDGES])
"""Edges of the cells, in public mean errors. Wide cells hold many rows: noise is small in them."""

_MOVES = np.concatenate([np.arange(0, 2, 0.1), np.arange(2, 6, 0.25), np.arange(6, 40, 1.0)])
_TIMES = 2.0 ** np.arange(-3, 6.01, 0.5)
_MOVE_SDS = (0.25, 0.5, 1.0, 3.0, 10.0)  # of the level if it moved, in public mean errors
_OCTAVE_SD = 0.8  # of the size of private errors
_MISFIT = 0.04  # share of a cell that is off because private errors have another shape


@dataclass(frozen=True)
class ErrorsSeen:
    """What a histogram said.

    Attributes
    ----------
    move : float
        Of the middle of the errors, in public mean errors.
    times : float
        Size of private errors in public ones.
    stayed : float
        Chance that the middle did not move.

    Examples
    --------
    >>> ErrorsSeen(move=0.5, times=1.2, stayed=0.1).times
    1.2
    """

    move: float
    times: float
    stayed: float


@dataclass(frozen=True, eq=False)
class ErrorShapes:
    """Shares of the cells if private errors are public ones, moved and stretched.

    Parameters
    ----------
    shares : ndarray of shape (moves, times, cells)
    moves : ndarray
    optimism : float
        Octaves by which the errors of folds are too large.

    Examples
    --------
    >>> errors = np.random.default_rng(0).normal(size=2000)
    >>> shapes = ErrorShapes.of(errors / np.abs(errors).mean(), optimism=0.0)
    >>> cells = np.searchsorted(CELLS, 2 * errors + 3)
    >>> seen = shapes.seen(np.bincount(cells, minlength=len(CELLS) + 1) / 2000, sd=0.001)
    >>> bool(abs(seen.move - 3) < 0.3), bool(1.5 < seen.times < 3), seen.stayed < 0.01
    (True, True, True)
    """

    shares: FloatArray
    moves: FloatArray
    optimism: float

    @classmethod
    def of(cls, errors: FloatArray, *, optimism: float) -> ErrorShapes:
        """Shapes of public errors, in units of their mean size."""
        moves = np.concatenate([-_MOVES[:0:-1], _MOVES])
        places = (CELLS[None, None, :] - moves[:, None, None]) / _TIMES[None, :, None]
        below = np.searchsorted(np.sort(errors), places, side="right") / len(errors)
        ends = np.zeros((*below.shape[:2], 1)), np.ones((*below.shape[:2], 1))
        return cls(np.diff(np.concatenate([ends[0], below, ends[1]], axis=2)), moves, optimism)

    def seen(self, shares: FloatArray, sd: float) -> ErrorsSeen:
        """Posterior means, with half of the prior on "the level did not move"."""
        octaves = np.log2(_TIMES)
        off = ((self.shares - shares) ** 2).sum(axis=2)
        fit = -off / (2 * (sd**2 + _MISFIT**2))
        fit -= 0.5 * ((octaves - self.optimism) / _OCTAVE_SD) ** 2
        weights = self._prior()[:, None] * np.exp(fit - fit.max())
        weights /= weights.sum()
        by_move, by_times = weights.sum(axis=1), weights.sum(axis=0)
        stayed = float(by_move[self.moves == 0.0].sum())
        return ErrorsSeen(float(by_move @ self.moves), 2.0 ** float(by_times @ octaves), stayed)

    def _prior(self) -> FloatArray:
        steps = np.gradient(self.moves)
        slabs = [np.exp(-0.5 * (self.moves / sd) ** 2) * steps for sd in _MOVE_SDS]
        slab = np.mean([each / each.sum() for each in slabs], axis=0)
        return np.asarray(SPIKE * (self.moves == 0.0) + (1 - SPIKE) * slab)
