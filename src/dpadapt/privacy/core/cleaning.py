"""The public maps under which private rows enter a statistic.

Total and row-wise: a cell that is no finite number becomes a fixed public one, a long row is
shrunk, a label is clamped; nothing raises on a value, and no row changes what another becomes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpadapt._types import FloatArray

from ... import _validate
from ..rows.tables import Table, fill

_HAIR = 1e-12  # relative
_LEAST = float(np.finfo(np.float64).tiny)  # below it a float has fewer digits


def shrink_factors(lengths: Any, radius: float) -> FloatArray:
    """Factors that bring vectors of these lengths to a norm of at most ``radius``.

    They are min(1, (1 - h) radius / length), with the hair h = 1e-12, so that rounding cannot
    leave a vector longer than the radius. Total: a vector of length 0 stays as it is, and one whose
    length overflows, or is no number, gets the factor 0.

    Proof. Let u = 2^-53. The length of d numbers is computed with a relative error of at most
    (d/2 + 2) u, in whatever order they are added; quotient, hair and product add 4 u. All together
    is less than h for d <= 16,000. If the factor is 1, the computed length is at most
    (1 - h) radius (1 + 3 u), so the true one is at most the radius; if it is less, the product has
    a length of at most (1 - h)(1 + (d/2 + 6) u) radius, which is less than the radius. A factor
    that is no normal float, whose relative error may be larger, becomes 0.

    Parameters
    ----------
    lengths : array or float
        At least 0; as computed from the vectors.
    radius : float
        From 1e-150 to 1e150, where no square of a number that matters underflows.

    Examples
    --------
    >>> shrink_factors([0.0, 1.0, 10.0, np.inf, np.nan], 5.0).round(9)
    array([1. , 1. , 0.5, 0. , 0. ])
    """
    with np.errstate(all="ignore"):
        factors = np.minimum(1.0, (radius * (1 - _HAIR)) / np.asarray(lengths, dtype=np.float64))
    return np.where(factors >= _LEAST, factors, 0.0)


class RowMap(Protocol):
    """A public, total, row-wise map of private rows: :class:`Cleaning`, say."""

    @property
    def radius(self) -> float: ...
    def __call__(self, X: Table, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """Map one block to float64 rows and labels."""


@dataclass(frozen=True)
class Cleaning:
    """The public map under which private rows enter a statistic. Total: it never fails.

    In order: (x - center) / scale column by column; a cell that is not finite becomes 0, which
    after centering is the public mean; a row longer than ``radius`` is shrunk to it (to a hair
    below, so that no rounding leaves it longer; a second cleaning changes nothing); the constant
    ``intercept`` is appended if it is not 0; the label is clamped to ``label_range``, a label that
    is not finite becomes the middle of the range. A class label (``classes``) that is not a whole
    number from 0 to ``classes`` - 1 becomes -1: a row of no class.

    Parameters
    ----------
    radius : float
        Bound on the Euclidean norm of a row, before the intercept is appended.
    center, scale : array of shape (d,) or None
        Public location and scale of the columns.
    intercept : float
    label_range : (float, float) or None
        Public range of the label; None for statistics that do not read it.
    unit_labels : bool, default=False
        Whether the range is mapped to [-1, 1].
    classes : int, optional
        For classification: number of classes. The labels are places among them
        (:meth:`dpadapt.Private.encode`).

    Examples
    --------
    >>> cleaning = Cleaning(radius=5.0)
    >>> X, y = cleaning(np.array([[np.nan, 1.0], [1e300, 0.0], [3.0, 4.0]]), None)
    >>> X
    array([[0., 1.],
           [5., 0.],
           [3., 4.]])
    """

    radius: float
    center: FloatArray | None = None
    scale: FloatArray | None = None
    intercept: float = 0.0
    label_range: tuple[float, float] | None = None
    unit_labels: bool = False
    classes: int | None = None

    def __post_init__(self) -> None:
        if not 1e-300 <= _validate.positive("radius", self.radius) <= 1e300:
            raise ValueError(f"radius must lie between 1e-300 and 1e300; got {self.radius!r}.")
        if self.label_range is not None and not self.label_range[0] <= self.label_range[1]:
            raise ValueError(f"label_range must be (low, high); got {self.label_range!r}.")
        for name in ("center", "scale"):  # an array of another kind could act on all rows
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, np.asarray(given, dtype=np.float64))

    def __call__(self, X: Table, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """Clean one block; returns new arrays, in column-major order."""
        rows, columns = X.shape
        out = np.empty((rows, columns + (self.intercept != 0)), order="F")
        inner = out[:, :columns]
        fill(inner, X)
        with np.errstate(all="ignore"):
            if self.center is not None:
                inner -= self.center
            if self.scale is not None:
                inner /= self.scale
            self._shrink(inner)
            if self.intercept != 0:
                out[:, columns:] = self.intercept
            return out, self.labels(y)

    def _shrink(self, rows: FloatArray) -> None:
        # the square of an extreme radius is no float: measure in a power of two near the radius
        unit = 1.0 if 1e-100 < self.radius < 1e100 else math.ldexp(1.0, math.frexp(self.radius)[1])
        measured = rows if unit == 1.0 else rows / unit
        squares = np.einsum("ij,ij->i", measured, measured)
        slack = 4 * float(np.finfo(np.float64).eps) * (rows.shape[1] + 4)  # what rounding can do
        inside = squares <= (self.radius / unit * (1 - slack)) ** 2
        odd = np.flatnonzero(~inside)  # too long, overflowing or not finite
        if odd.size:
            some = np.nan_to_num(rows[odd], copy=False, nan=0.0, posinf=0.0, neginf=0.0)
            largest = np.abs(some).max(axis=1, initial=0.0, keepdims=True)
            direction = some / np.where(largest > 0, largest, 1.0)  # no square of it overflows
            length = np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1.0)
            long = largest > self.radius * (1 - slack) / length
            rows[odd] = np.where(long, direction * (self.radius * (1 - 2 * slack) / length), some)

    def labels(self, y: FloatArray | None) -> FloatArray | None:
        """Labels of one block: clamped, or -1 for none of the classes."""
        if y is None:
            return None
        if self.classes is not None:
            known = (y >= 0) & (y < self.classes) & (y == np.floor(y))
            return np.where(known, y, -1.0)
        if self.label_range is None:
            return None
        low, high = self.label_range
        middle = low / 2 + high / 2
        clamped = np.clip(np.where(np.isfinite(y), y, middle), low, high)
        if not self.unit_labels:
            return clamped
        half = high / 2 - low / 2
        return np.clip((clamped - middle) / (half if half > 0 else 1.0), -1.0, 1.0)
