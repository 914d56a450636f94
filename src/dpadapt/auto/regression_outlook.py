"""What is known after a fit: how far answers may be off, and that the step does no harm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.story import plain

_HARDLY = 0.01  # of the error: a smaller gain is none that anybody sees
_PLACES = np.linspace(0.0, 1.0, 401)
_LEAST_LEVEL, _MOST_LEVEL = 0.01, 0.99


@dataclass(frozen=True)
class NoHarm:
    """What the private step is expected to change in the mean square error of the start.

    Both numbers are for the model as it is, before any test row is seen. Moves are posterior means:
    under the prior (half on "no shift") a move takes off its own square on average, and noise is
    a part of what was weighed against it.

    Attributes
    ----------
    error : float
        Mean square error of the public model on private rows, as far as it was looked at.
    gain : float
        What the kept moves are expected to take off: their mean square.
    noise : float
        Part of the kept moves that is noise, by its known variance. If there was no shift at all,
        this is what the step costs on average.

    Examples
    --------
    >>> print(NoHarm(error=2.0, gain=0.5, noise=0.02))
    The move from the public model is expected to take 0.5 off a mean square error of about 2 \
(25%). The noise in what was kept has a mean square of 0.02 (1.0%): had there been no shift, that \
is what the step would cost on average.
    """

    error: float
    gain: float
    noise: float

    @property
    def result(self) -> str:
        """What became of the public model, in a sentence."""
        part = self.gain / self.error
        if part < _HARDLY:
            return (
                f"Kept the public model, or nearly so: the moves that are left are expected to "
                f"take less than {_HARDLY:.0%} off its mean square error."
            )
        return (
            f"Moved away from the public model: expected to take {part:.0%} off its mean square "
            "error on private rows."
        )

    def __str__(self) -> str:
        part = self.gain / self.error
        told = f"less than {_HARDLY:.0%}" if 0 < part < _HARDLY else f"{part:.0%}"
        gain, error, noise = (plain(each, 2) for each in (self.gain, self.error, self.noise))
        return (
            f"The move from the public model is expected to take {gain} off a mean square error of "
            f"about {error} ({told}). The noise in what was kept has a mean square of {noise} "
            f"({self.noise / self.error:.1%}): had there been no shift, that is what the step "
            "would cost on average."
        )


@dataclass(frozen=True, eq=False)
class Outlook:
    """Errors to be expected of private rows.

    Parameters
    ----------
    quantiles : ndarray
        Of the errors of the public model on public rows that it had not seen, around their mean.
    times : float
        Size of private errors in public ones, as it was looked at; 1 without private rows.
    noise : float
        Mean square of the noise in the answers.

    Examples
    --------
    >>> outlook = Outlook.of(np.array([-1.0, 0.0, 1.0]))
    >>> np.round(outlook.ends(0.9), 6)
    array([-0.9,  0.9])
    """

    quantiles: FloatArray
    times: float = 1.0
    noise: float = 0.0

    @classmethod
    def of(cls, residuals: FloatArray, times: float = 1.0, noise: float = 0.0) -> Outlook:
        """Outlook from public residuals."""
        return cls(np.quantile(residuals - residuals.mean(), _PLACES), times, noise)

    def ends(self, level: float) -> tuple[float, float]:
        """Ends of an interval around 0 that holds a share ``level`` of errors.

        The noise is known and independent of the errors: it adds its variance to theirs, which
        widens the interval by the square root of one plus its share.
        """
        usual = float(np.mean(self.quantiles**2)) * self.times**2
        wider = math.sqrt(1 + self.noise / max(usual, 1e-300)) if self.noise else 1.0
        low, high = np.interp([(1 - level) / 2, (1 + level) / 2], _PLACES, self.quantiles)
        return float(low) * self.times * wider, float(high) * self.times * wider


def check_level(level: Any) -> float:
    """A level of an interval.

    Examples
    --------
    >>> check_level(1.5)
    Traceback (most recent call last):
    ...
    ValueError: level must be a number from 0.01 to 0.99, as in 0.9; got 1.5.
    """
    fine = isinstance(level, (int, float, np.floating)) and not isinstance(level, bool)
    if not fine or not _LEAST_LEVEL <= level <= _MOST_LEVEL:
        raise ValueError(
            f"level must be a number from {_LEAST_LEVEL:g} to {_MOST_LEVEL:g}, as in 0.9; "
            f"got {level!r}."
        )
    return float(level)
