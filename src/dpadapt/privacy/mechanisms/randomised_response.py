"""Randomised response: one question about the sample, answered truthfully with some probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt import _validate
from dpadapt._types import FloatArray

from ..accounting.events import Event, PureEvent
from ..core.hidden import Hidden
from ..core.mechanism import OwnEpsilon
from ..core.noise import NoiseSource

_MOST = 1 << 20  # categories: a uniform of 53 bits tells more of them apart evenly


@dataclass(frozen=True)
class RandomisedResponse(OwnEpsilon):
    """One of ``categories=`` answers, each time the epsilon that is one over its scale.

    Nothing bounds how far an answer can move: the epsilon holds whatever it is.

    Examples
    --------
    >>> RandomisedResponse("coin", count=3).scale_at(0.5)
    0.5
    """

    def event(self, scale: float, source: NoiseSource) -> Event:
        """All answers together."""
        return PureEvent(self.label, 1 / scale, self.count)

    def admit(self, hidden: Hidden, *, categories: int, **_: Any) -> float:  # type: ignore[override]
        """One answer a release: each pays in full."""
        if _validate.count("categories", categories, least=2) > _MOST:
            raise ValueError(f"categories must be at most {_MOST}; got {categories}.")
        if math.prod(hidden.shape) > 1:
            self._refuse_numbers()
        return 1

    def release(
        self, hidden: Hidden, scale: float, source: NoiseSource, *, categories: int = 2, **_: Any
    ) -> NDArray[np.int64]:
        """Answer, or a lie."""
        answer = np.clip(np.rint(hidden._value), 0, categories - 1).astype(np.int64)
        return randomised_response(source, answer, categories, 1 / scale)

    def coordinates(self, value: FloatArray, **_: Any) -> FloatArray:
        """At least one number."""
        return np.atleast_1d(value)


def randomised_response(
    source: NoiseSource, answers: NDArray[np.int64], categories: int, epsilon: float
) -> NDArray[np.int64]:
    """Keep each answer with probability e^eps / (e^eps + k - 1), else a uniform other one.

    Each answer is epsilon-DP on its own.

    Examples
    --------
    >>> from dpadapt.privacy.core.noise import SeededNoise
    >>> randomised_response(SeededNoise(0), np.array([0, 1, 2]), categories=3, epsilon=50.0)
    array([0, 1, 2])
    """
    answers = np.asarray(answers, dtype=np.int64)
    lie = (categories - 1) / (math.expm1(min(epsilon, 700.0)) + categories)
    lie = math.ceil(lie * 2**53) / 2**53  # the grain of a uniform float64; never too few lies
    lies = source.uniform(answers.size).reshape(answers.shape) < lie
    other = source.uniform(answers.size).reshape(answers.shape) * (categories - 1)
    shift = 1 + np.minimum(other.astype(np.int64), categories - 2)
    return np.where(lies, (answers + shift) % categories, answers)
