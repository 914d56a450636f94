"""The exponential mechanism: a choice among scores, or of a point of a ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadapt import _validate
from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.events import Event, Relation
from dpadapt.privacy.core.errors import PrivacyError
from dpadapt.privacy.core.hidden import Hidden
from dpadapt.privacy.core.mechanism import Noise
from dpadapt.privacy.core.noise import NoiseSource

from . import ball_sampler

__all__ = ["Exponential", "ExponentialOnBall", "noisy_argmin"]


@dataclass(frozen=True)
class Exponential(Noise):
    """Place of a small score; the sensitivity is the largest change of a difference of two scores.

    Examples
    --------
    >>> Exponential("vertex", sensitivity=0.1, count=20).norm
    'range'
    """

    norm: ClassVar[str] = "range"

    def event(self, scale: float, source: NoiseSource) -> Event:
        """All choices together."""
        return source.argmin_event(self.label, self.sensitivity, scale, self.count)

    def numbers(self, hidden: Hidden) -> int:
        """One place comes out, whatever the number of scores."""
        return 0

    def stretch(self, hidden: Hidden, **_: Any) -> float:
        """One score up, another down."""
        return math.sqrt(2)

    def release(self, hidden: Hidden, scale: float, source: NoiseSource, **_: Any) -> Any:
        """Place of a small score."""
        return noisy_argmin(source, hidden._value, scale)


@dataclass(frozen=True)
class ExponentialOnBall(Exponential):
    """A point z of a ball with density proportional to exp(|<z, v>| / scale), v the hidden value.

    The scores are |<z, v>|: a difference of two changes by at most 2 * radius * |v - v'|, which is
    the sensitivity.

    Parameters
    ----------
    radius : float
        Of the ball.

    Examples
    --------
    >>> ExponentialOnBall("points", sensitivity=0.1, radius=2.0).norm
    'l2'
    """

    radius: float = 1.0
    norm: ClassVar[str] = "l2"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive("radius", self.radius)

    def check(self, relation: Relation, source: NoiseSource) -> None:
        """Refuse discrete noise."""
        if source.name == "exact":
            raise PrivacyError(
                "the exact sampler of a ball works in float64; use noise='secure', or a pool."
            )

    def stretch(self, hidden: Hidden, **_: Any) -> float:
        """Twice the radius, as stated above."""
        return 2 * float(self.radius)

    def release(self, hidden: Hidden, scale: float, source: NoiseSource, **_: Any) -> FloatArray:
        """Point of the ball."""
        return ball_sampler.draw(source.uniform, hidden._value, scale, self.radius)

    def coordinates(self, value: FloatArray, **_: Any) -> FloatArray:
        """Twice the radius times the value, whose distances the sensitivity bounds."""
        return 2 * float(self.radius) * np.asarray(value)


def noisy_argmin(source: NoiseSource, scores: FloatArray, scale: float) -> int:
    """Exponential mechanism: index i with probability proportional to exp(-scores[i] / scale).

    Sampled as argmin(scores - scale * Gumbel); argmin(scores + scale * Gumbel) would be no
    exponential mechanism at all. With range sensitivity R (largest change of a difference of two
    scores) it is R/scale-bounded-range.

    Examples
    --------
    >>> from dpadapt.privacy.core.noise import SeededNoise
    >>> noisy_argmin(SeededNoise(0), np.array([5.0, 0.0, 5.0]), scale=0.1)
    1
    """
    return source.noisy_argmin(np.asarray(scores, dtype=np.float64), scale)
