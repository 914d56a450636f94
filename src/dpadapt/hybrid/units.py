"""Public units of features: given, or those of normal columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import ParameterTable, Vector
from dpadapt.learning.strategy import Strategy


@dataclass(frozen=True, eq=False)
class FeatureUnits(Strategy):
    """Public location and scale of the features: the agents' own moments, say.

    Parameters
    ----------
    centre, scale : array of shape (k,)
        One number for each feature.

    Examples
    --------
    >>> FeatureUnits(centre=[0.0, 1.0], scale=[1.0, 2.0]).of(2)
    (array([0., 1.]), array([1., 2.]))
    """

    centre: ArrayLike
    scale: ArrayLike
    _constraints: ClassVar[ParameterTable] = {"centre": [Vector()], "scale": [Vector()]}

    def _check(self) -> None:
        if not (np.asarray(self.scale) > 0).all():
            raise ValueError("scale must be positive.")

    def of(self, width: int) -> tuple[FloatArray, FloatArray]:
        """Centre and scale of so many features."""
        found = np.asarray(self.centre, dtype=float), np.asarray(self.scale, dtype=float)
        for name, value in zip(("centre", "scale"), found, strict=True):
            if len(value) != width:
                raise ValueError(f"{name} must hold {width} finite numbers, one for each feature.")
        return found


def unit_scaling(features: str, n_columns: int, unit: float) -> tuple[FloatArray, FloatArray]:
    """Mean and spread of the features of rows with independent N(0, unit^2) columns.

    Examples
    --------
    >>> unit_scaling("squares", 1, unit=2.0)
    (array([4.]), array([5.65685425]))
    """
    one = np.ones(n_columns)
    if features == "linear":
        return 0 * one, unit * one
    square = unit**2
    if features == "squares":
        return square * one, math.sqrt(2) * square * one
    i, j = np.triu_indices(n_columns)
    centre = np.concatenate([0 * one, np.where(i == j, square, 0.0)])
    spread = np.where(i == j, math.sqrt(2) * square, square)
    return centre, np.concatenate([unit * one, spread])
