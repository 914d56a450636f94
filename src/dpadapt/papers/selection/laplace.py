"""Laplace noise: on a value, and on scores of which only the place of the least comes out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.events import Event, PureEvent
from dpadapt.privacy.core.hidden import Hidden
from dpadapt.privacy.core.mechanism import Noise
from dpadapt.privacy.core.noise import NoiseSource

__all__ = ["Laplace", "LaplaceMin", "laplace", "laplace_argmin"]


@dataclass(frozen=True)
class Laplace(Noise):
    """Independent Laplace noise on every number; the sensitivity is in the l1 norm.

    Examples
    --------
    >>> Laplace("counts", sensitivity=2.0, dimension=5).norm
    'l1'
    """

    norm: ClassVar[str] = "l1"
    adds: ClassVar[bool] = True

    def event(self, scale: float, source: NoiseSource) -> Event:
        """All releases together."""
        facts = (self.label, self.sensitivity, scale, self.dimension, self.count)
        return source.laplace_event(*facts)

    def stretch(self, hidden: Hidden, **_: Any) -> float:
        """The root of how many numbers there are, if their changes are all the same."""
        return math.sqrt(max(1, math.prod(hidden.shape)))

    def release(self, hidden: Hidden, scale: float, source: NoiseSource, **_: Any) -> FloatArray:
        """Value and noise."""
        return laplace(source, hidden._value, scale)


@dataclass(frozen=True)
class LaplaceMin(Noise):
    """Report-noisy-min: the place of the least score; sensitivity is the range of differences.

    Examples
    --------
    >>> LaplaceMin("vertex", sensitivity=0.1).norm
    'range'
    """

    norm: ClassVar[str] = "range"

    def event(self, scale: float, source: NoiseSource) -> Event:
        """Pure, on the same grid as the exponential mechanism where there is one."""
        epsilon = source.argmin_event(self.label, self.sensitivity, scale, 1).pure_epsilon
        return PureEvent(self.label, epsilon, self.count)

    def numbers(self, hidden: Hidden) -> int:
        """One place comes out, whatever the number of scores."""
        return 0

    def stretch(self, hidden: Hidden, **_: Any) -> float:
        """One score up, another down."""
        return math.sqrt(2)

    def release(self, hidden: Hidden, scale: float, source: NoiseSource, **_: Any) -> int:
        """Place of the least score with noise."""
        return laplace_argmin(source, hidden._value, scale)


def laplace(source: NoiseSource, value: FloatArray, scale: float) -> FloatArray:
    """Add independent Laplace(scale) to every entry: (l1-sensitivity / scale)-DP.

    Examples
    --------
    >>> from dpadapt.privacy.core.noise import SeededNoise
    >>> laplace(SeededNoise(0), np.zeros(2), scale=1.0).shape
    (2,)
    """
    return source.add_laplace(np.asarray(value, dtype=np.float64), scale)


def laplace_argmin(source: NoiseSource, scores: FloatArray, scale: float) -> int:
    """Report-noisy-min: the least of scores with independent Laplace(scale) noise.

    With *range* sensitivity R it is R/scale-DP (twice the l-infinity sensitivity is always enough;
    once is enough for monotone scores only). The exponential mechanism costs less: this is
    the form that papers print. The noisy scores are not rounded: on a grid of g the proof would
    give (R + g)/scale, because equal scores are decided by their order.

    Examples
    --------
    >>> from dpadapt.privacy.core.noise import SeededNoise
    >>> laplace_argmin(SeededNoise(0), np.array([5.0, 0.0, 5.0]), scale=0.1)
    1
    """
    return source.laplace_argmin(np.asarray(scores, dtype=np.float64), scale)
