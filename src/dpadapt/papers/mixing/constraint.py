"""A set that weights are kept in: W of Algorithms 1 and 3, projected on after every step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import ParameterTable, Positive
from dpadapt.learning.strategy import Strategy


@dataclass(frozen=True)
class ConstraintSet(Strategy, ABC):
    """A closed convex set of weights; public, so projecting costs no privacy.

    Examples
    --------
    >>> isinstance(Ball(radius=1.0), ConstraintSet)
    True
    """

    @abstractmethod
    def project(self, weights: FloatArray, start: FloatArray) -> FloatArray:
        """Nearest weights of the set.

        Parameters
        ----------
        weights : ndarray of shape (d, c)
        start : ndarray of shape (d, c)
            Where training started: the set may lie around it.
        """


@dataclass(frozen=True)
class Ball(ConstraintSet):
    """Weights within a distance of where training started.

    Parameters
    ----------
    radius : float

    Examples
    --------
    >>> Ball(radius=1.0).project(np.array([[3.0], [4.0]]), np.zeros((2, 1))).ravel()
    array([0.6, 0.8])
    """

    radius: float

    _constraints: ClassVar[ParameterTable] = {"radius": [Positive()]}

    def project(self, weights: FloatArray, start: FloatArray) -> FloatArray:
        """Shorten the way from the start."""
        away = weights - start
        length = float(np.linalg.norm(away))
        return weights if length <= self.radius else start + away * (self.radius / length)


@dataclass(frozen=True)
class Box(ConstraintSet):
    """Every weight between two bounds of the same size.

    Parameters
    ----------
    bound : float

    Examples
    --------
    >>> Box(bound=1.0).project(np.array([[3.0], [-0.5]]), np.zeros((2, 1))).ravel()
    array([ 1. , -0.5])
    """

    bound: float

    _constraints: ClassVar[ParameterTable] = {"bound": [Positive()]}

    def project(self, weights: FloatArray, start: FloatArray) -> FloatArray:
        """Cut every number."""
        return np.clip(weights, -self.bound, self.bound)
