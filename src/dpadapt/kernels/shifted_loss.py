r"""A loss of scores that are counted from those of a public model.

    l'(f, (y, b)) = l(b + f, y),    b = the public model's scores of the row.

b is a function of the row alone, so it belongs to the record: l' is convex in f, with the Lipschitz
constant and the smoothness of l. What l costs at f = 0 has no bound (b has none), so the norm of a
minimiser is bounded by LR/lambda alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpadapt._types import FloatArray

from .losses import ConvexLoss


@dataclass(frozen=True)
class Shifted:
    """A loss whose labels have the public model's scores beside them.

    Parameters
    ----------
    loss : Loss
    outputs : int
        k, scores of a row: the last k columns of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.kernels.losses import Logistic
    >>> shifted = Shifted(Logistic(), outputs=1)
    >>> shifted.derivative(np.zeros((2, 1)), np.array([[1.0, 0.0], [1.0, 50.0]])).ravel().round(6)
    array([-0.5, -0. ])
    """

    loss: ConvexLoss
    outputs: int

    at_zero: ClassVar[float] = math.inf

    @property
    def joint(self) -> bool:
        """As the loss."""
        return self.loss.joint

    @property
    def smoothness(self) -> float:
        """As the loss."""
        return self.loss.smoothness

    @property
    def softer(self) -> tuple[ConvexLoss, ...]:
        """As the loss, shifted."""
        return tuple(Shifted(each, self.outputs) for each in self.loss.softer)

    def lipschitz(self, radius: float, penalty: float) -> float:
        """As the loss."""
        return self.loss.lipschitz(radius, penalty)

    def columns(self, y: FloatArray) -> int:
        """Outputs."""
        return self.outputs

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """Losses of the sum of both scores."""
        return self.loss.value(*self._apart(f, y))

    def derivative(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """In the scores."""
        return self.loss.derivative(*self._apart(f, y))

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """As the loss."""
        return self.loss.curvature(*self._apart(f, y))

    def curve(self, curvature: FloatArray, direction: FloatArray) -> FloatArray:
        """As the loss."""
        return self.loss.curve(curvature, direction)

    def diagonal(self, curvature: FloatArray) -> FloatArray:
        """As the loss."""
        return self.loss.diagonal(curvature)

    def _apart(self, f: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores of both models together, and the labels alone."""
        return f + y[:, -self.outputs :], y[:, : -self.outputs]
