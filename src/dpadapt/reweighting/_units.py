"""The units in which the solvers see public and private rows: public facts only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt import _validate as validate
from dpadapt._checks import public_scaling
from dpadapt.privacy import Cleaning, shrink_factors

Array = NDArray[np.float64]

_SPREAD = 1000.0  # columns whose standard deviations differ by more are in units of their own
_PLAIN = 100.0  # a common unit within this factor of 1 stays: penalties are made for such units
_FAR = 1e6  # in largest public norms, or spreads of labels: only so that nothing overflows
_QUANTILE = 0.99  # of public norms: the radius of networks, and of the paper's solvers


@dataclass(frozen=True, eq=False)
class Units:
    """A public affine map of the columns, and the map of coefficients back.

    Attributes
    ----------
    center, scale : ndarray of shape (d,)
    label_range : (float, float) or None
        Where labels are mapped to [-1, 1] (the paper's solvers), else None.
    """

    center: Array
    scale: Array
    label_range: tuple[float, float] | None = None

    def rows(self, X: Array) -> Array:
        """Rows in these units."""
        return np.asarray((X - self.center) / self.scale)

    def labels(self, y: Array) -> Array:
        """Labels in [-1, 1]."""
        middle, half = self._label_units()
        return np.clip((y - middle) / half, -1.0, 1.0)

    def linear(self, coefficients: Array) -> tuple[Array, Array]:
        """Slopes (d, k) and constants (k,) for plain rows, from (d + 1, k) in these units."""
        slopes = coefficients[:-1] / self.scale[:, None]
        constants = coefficients[-1] - self.center @ slopes
        middle, half = self._label_units()
        return half * slopes, half * constants + middle

    def inverse(self, slopes: Array, constants: Array) -> Array:
        """Coefficients (d + 1, k) in these units, from those for plain rows."""
        middle, half = self._label_units()
        inner = slopes * self.scale[:, None] / half
        return np.vstack([inner, (constants + self.center @ slopes - middle) / half])

    def _label_units(self) -> tuple[float, float]:
        if self.label_range is None:
            return 0.0, 1.0
        low, high = self.label_range
        return low / 2 + high / 2, (high / 2 - low / 2) or 1.0


def descent_units(X: Array, label_range: tuple[float, float] | None = None) -> Units:
    """Columns as they are if they are comparable (but for one common unit), else standardised.

    Standardised columns would make a rare category as large as a common one, and the last of
    many principal components as large as the first; but columns in units of their own (an age, an
    income) are not comparable as they are.
    """
    center, scale = public_scaling(X)
    varying = scale[np.ptp(X, axis=0) > 1e-12 * np.abs(center)]
    if not varying.size or varying.max() > _SPREAD * varying.min():
        return Units(center, scale, label_range)
    common = float(np.median(varying))
    unit = 1.0 if 1 / _PLAIN < common < _PLAIN else common
    return Units(center, np.full_like(scale, unit), label_range)


def standard_units(X: Array, label_range: tuple[float, float] | None = None) -> Units:
    """Standardised columns, and labels of [-1, 1]."""
    return Units(*public_scaling(X), label_range)


def descent_cleaning(units: Units, X: Array, **labels: Any) -> Cleaning:
    """Private rows for a descent, which bounds them itself: only what overflows is cut."""
    largest = float(np.linalg.norm(units.rows(X), axis=1).max())
    return Cleaning(_FAR * max(largest, 1.0), units.center, units.scale, 1.0, **labels)


def bounded_sample(
    units: Units, X: Array, radius: float | None, **labels: Any
) -> tuple[Array, Cleaning]:
    """Public rows shrunk to the radius, with a constant of 1, and the same for private rows."""
    rows = units.rows(X)
    norms = np.linalg.norm(rows, axis=1)
    if radius is None:
        radius = float(np.quantile(norms, _QUANTILE)) or 1.0
    bound = validate.positive("radius", radius)
    shrunk = rows * shrink_factors(norms, bound)[:, None]
    cleaning = Cleaning(bound, units.center, units.scale, 1.0, **labels)
    return np.column_stack([shrunk, np.ones(len(rows))]), cleaning


def wide_labels(y: Array) -> tuple[float, float]:
    """A range of labels that excludes nothing but overflow, around the public mean."""
    center, scale = public_scaling(y[:, None])
    middle, spread = float(center[0]), float(scale[0])
    if np.ptp(y) <= 1e-12 * abs(middle):
        spread = max(1.0, abs(middle))
    reach = min(_FAR * spread, 1e300)
    return max(middle - reach, -1e300), min(middle + reach, 1e300)
