"""How much of a noisy move to keep: it may be that there was no shift, else one of any size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpadapt._types import FloatArray

SPIKE = 0.5
"""Prior chance that the level did not shift."""

STRAIGHT = 0.7
"""Prior chance that the slopes did not."""

SHIFTS = (0.02, 0.06, 0.2, 0.6, 2.0)
"""Sizes of a shift of the slopes, in squared errors."""

LEVELS = (0.06, 0.2, 0.6, 2.0, 10.0, 100.0)
"""Sizes of a shift of the level, in squared errors."""


def kept(moved: float, noise: FloatArray, sizes: Sequence[float], spike: float = SPIKE) -> float:
    """Part of a move that is kept: its posterior mean, given the known noise.

    The square of the move is compared with what noise makes alone (a sum of squares with known
    variances, taken for a chi-square of the same mean and variance), and with what a shift of
    each size and noise make together.

    Parameters
    ----------
    moved : float
        Square of the move.
    noise : ndarray
        Variances of the noise, direction by direction.
    sizes : sequence of float
        Squares of the moves that a shift may make, all as likely.
    spike : float
        Prior chance of none.

    Examples
    --------
    >>> noise = np.full(10, 0.1)
    >>> round(kept(1.0, noise, SHIFTS), 2), round(kept(30.0, noise, SHIFTS), 2)
    (0.06, 0.67)
    """
    mean = max(float(noise.sum()), 1e-300)
    freedom = 1 / max(float(((noise / mean) ** 2).sum()), 1 / len(noise))
    shifts = np.array([0.0, *sizes])
    chances = np.array([spike] + [(1 - spike) / len(sizes)] * len(sizes))
    both = mean + shifts
    logs = np.log(chances) - freedom / 2 * (np.log(both) + moved / both)
    weights = np.exp(logs - logs.max())
    return float(weights @ (shifts / both)) / math.fsum(weights)


def pooled(*estimates: tuple[float, float]) -> tuple[float, float]:
    """Mean and variance of independent estimates together, each with its variance.

    Examples
    --------
    >>> pooled((1.0, 1.0), (4.0, 0.5))
    (3.0, 0.3333333333333333)
    """
    weights = [1 / max(variance, 1e-300) for _, variance in estimates]
    total = math.fsum(weights)
    means = math.fsum(w * mean for w, (mean, _) in zip(weights, estimates, strict=True))
    return means / total, 1 / total
