"""The released weights of a descent, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpadapt.learning.softmax import Array


@dataclass
class Iterates:
    """Counts the steps of a descent, and keeps of its weights what is asked for later.

    Parameters
    ----------
    number : int
        T, public.
    keep : bool, default=False
        Whether to keep all weights, not their mean alone.
    progress : callable, optional
        Is told (t, T) at each step.

    Examples
    --------
    >>> iterates, W = Iterates(2), np.array([[4.0]])
    >>> for t in range(iterates.number):
    ...     iterates.add(W, clip=1.0)
    ...     W = W - 0.5 * W
    >>> W, iterates.mean
    (array([[1.]]), array([[3.]]))
    """

    number: int
    keep: bool = False
    progress: Callable[[int, int], None] | None = None
    weights: list[Array] = field(default_factory=list)
    clips: list[float] = field(default_factory=list)
    _total: Any = 0.0
    _mass: float = 0.0

    def add(self, W: Array, clip: float, mass: float = 1.0) -> None:
        """Record weights at which a gradient was asked for."""
        if self.keep:
            self.weights.append(W)
        self.clips.append(clip)
        self._total = self._total + mass * W
        self._mass += mass
        if self.progress is not None:
            self.progress(len(self.clips), self.number)

    @property
    def mean(self) -> Array:
        """Mean of the recorded weights, by mass."""
        return np.asarray(self._total / self._mass)
