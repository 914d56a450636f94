r"""Whether classes have shifted: what the errors, the length of a move and its slope say together.

Four times in five, it is thought, nothing has shifted. Then the error rate is the expected one; the
energy of the move is what chance and noise make, times a chi-square over its degrees of freedom;
and the log-loss falls along the move as it does by chance on the rows that it was made for. Else
each of the three is larger, by any of a few sizes: a shift may leave the error rate and the length
as they are, but not the slope. The posterior chance of a shift is the part of the move that is
kept. A lower error rate than expected says nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpadapt._types import FloatArray

_SPIKE = 0.8  # prior chance that nothing has shifted
_WORSE = (0.0, 0.5, 1.0, 2.0)  # what a shift adds to the error rate, in expected error rates
_LONGER = (0.0, 1.0, 3.0, 10.0, 30.0)  # what it adds to the energy, in energies by chance
_STEEPER = (0.03, 0.1, 0.3)  # what it adds to the slope, in roots of the energy
_FREEDOM = 10.0  # of the energy by chance; moves on real tables vary about as much
_LONGEST = 4.0  # a longer move says no more: rows elsewhere make it longer, too
_ROUGH, _VARIED = 0.1, 0.02  # error of the expected error rate, in units of it; of the slope
_MOST = 0.9  # error rate


@dataclass(frozen=True)
class Found:
    """A number that was released, its noise, and what it is without a shift.

    Examples
    --------
    >>> Found(0.25, 0.0625, usual=0.125).above(np.array([0.0, 0.25]), rough=0.0)
    array([-2., -2.])
    """

    value: float
    noise: float
    usual: float

    def above(self, sizes: FloatArray, rough: float) -> FloatArray:
        """Logarithms of the likelihoods of sizes of what a shift adds."""
        deviation = max(math.hypot(self.noise, rough), 1e-300)
        return np.asarray(-(((self.value - self.usual - sizes) / deviation) ** 2) / 2)


def chance_of_shift(wrong: Found, length: float, slope: Found | None = None) -> float:
    """Posterior chance that there is a shift.

    Parameters
    ----------
    wrong : Found
        Error rate of the public model on private rows.
    length : float
        Energy of the move, in units of what it is without a shift.
    slope : Found, optional
        How fast the log-loss falls along the move, in units of the root of its energy.

    Examples
    --------
    >>> usual, worse = Found(0.2, 0.02, usual=0.2), Found(0.4, 0.02, usual=0.2)
    >>> round(chance_of_shift(usual, 1.0), 3), round(chance_of_shift(worse, 1.0), 3)
    (0.018, 1.0)

    A long move is a shift, unless no row's loss falls along it:

    >>> slope = Found(-0.05, 0.01, usual=0.05)
    >>> round(chance_of_shift(usual, 9.0), 3), round(chance_of_shift(usual, 9.0, slope), 3)
    (0.982, 0.018)
    """
    worse = np.minimum(np.multiply(_WORSE, wrong.usual), max(_MOST - wrong.usual, 0.0))
    seen = Found(max(wrong.value, wrong.usual), wrong.noise, wrong.usual)
    of_errors = seen.above(np.append(0.0, worse), _ROUGH * wrong.usual)
    longer = 1 + np.append(0.0, _LONGER)
    of_length = -_FREEDOM / 2 * (np.log(longer) + min(length, _LONGEST) / longer)
    of_slope = np.zeros(2) if slope is None else slope.above(np.array([0.0, *_STEEPER]), _VARIED)
    pieces = (of_errors, of_length, of_slope)
    none = math.log(_SPIKE) + sum(float(each[0]) for each in pieces)
    some = math.log1p(-_SPIKE) + sum(_log_mean(each[1:]) for each in pieces)
    return float(1 / (1 + math.exp(min(none - some, 700.0))))


def _log_mean(logs: FloatArray) -> float:
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))
