"""The public maps under which private rows enter a statistic.

Total and row-wise: a cell that is no finite number becomes a fixed public one, a long row is
shrunk, a label is clamped; nothing raises on a value, and no row changes what another becomes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from . import _validate
from ._tables import Table, fill
from ._total import by_rows, taken
from .events import FloatArray

__all__ = ["Cleaning", "Directions", "Prepared", "RowMap"]


class RowMap(Protocol):
    """A public, total, row-wise map of private rows: :class:`Cleaning`, :class:`Prepared`."""

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
            return out, self._labels(y)

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

    def _labels(self, y: FloatArray | None) -> FloatArray | None:
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


@dataclass(frozen=True, eq=False)
class Directions:
    r"""Directions of rows from a public center, with a constant: rows of norm 1 at most.

    A row becomes :math:`(u, b) / \sqrt{1 + b^2}` with :math:`u = (x - m) / \|x - m\|`; u is 0 if
    the row is the center. A cell that is not finite counts as the center's.

    Parameters
    ----------
    center, scale : array of shape (d,)
        m, and the units of the columns; public.
    bias : float
        b.
    classes : int
        Number of classes, as in :class:`Cleaning`.
    dtype : dtype, default=float64
        Of the rows that come out, in row-major order.

    Examples
    --------
    >>> rows = Directions(np.zeros(2), np.ones(2), bias=0.75, classes=2)
    >>> rows(np.array([[3.0, 4.0], [0.0, 0.0], [np.inf, 2.0]]), None)[0]
    array([[0.48, 0.64, 0.6 ],
           [0.  , 0.  , 0.6 ],
           [0.  , 0.8 , 0.6 ]])
    """

    center: FloatArray
    scale: FloatArray
    bias: float
    classes: int
    dtype: Any = np.float64

    @property
    def radius(self) -> float:
        """1: no row is longer."""
        return 1.0

    def __call__(self, X: Table, y: FloatArray | None) -> tuple[Any, FloatArray | None]:
        """Map one block; total and row by row."""
        out = np.empty((X.shape[0], X.shape[1] + 1), dtype=self.dtype)
        with np.errstate(all="ignore"):
            rows = np.empty(X.shape)
            fill(rows, X)
            rows -= self.center
            if (self.scale != 1).any():
                rows /= self.scale
            squares = np.einsum("ij,ij->i", rows, rows)
            odd = np.flatnonzero(~((squares > 1e-200) & (squares < 1e200)))
            if odd.size:
                rows[odd] = _measured(rows[odd])
                squares[odd] = np.maximum(np.einsum("ij,ij->i", rows[odd], rows[odd]), 0.25)
            length = math.hypot(1.0, self.bias)
            factors = 1 / (np.sqrt(squares) * length)
            np.multiply(rows, factors[:, None], out=out[:, :-1], casting="same_kind")
            out[:, -1] = self.bias / length
            return out, Cleaning(1.0, classes=self.classes)._labels(y)


def _measured(rows: FloatArray) -> FloatArray:
    """Rows whose squares are no floats, in units of their largest cell; what is not finite is 0."""
    finite = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    largest = np.abs(finite).max(axis=1, initial=0.0, keepdims=True)
    return np.asarray(finite / np.maximum(largest, 1e-300))


@dataclass(frozen=True, eq=False)
class Prepared:
    """Cleaned rows under a further public map: features, predictions of a public model, weights.

    The map must treat every row on its own. It gets finite rows; what it makes of them that is
    not finite becomes 0, and so does a row on which it fails; the others keep their last bits
    (:mod:`._total`). It must not change what it is given.

    Parameters
    ----------
    cleaning : Cleaning
    function : callable
        From cleaned (X, y) to the prepared rows, an array with ``width`` columns, and labels.
    width : int

    Examples
    --------
    >>> prepared = Prepared(Cleaning(radius=5.0), lambda X, y: (X[:, :1] ** 2, y), width=1)
    >>> prepared(np.array([[3.0, 1.0], [np.nan, 0.0]]), None)[0]
    array([[9.],
           [0.]])
    """

    cleaning: Cleaning
    function: Callable[[FloatArray, FloatArray | None], tuple[FloatArray, FloatArray | None]]
    width: int

    @property
    def radius(self) -> float:
        """Of the cleaning."""
        return self.cleaning.radius

    def __call__(self, X: Table, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """Clean one block, and map it."""
        rows, labels = self.cleaning(X, y)
        results, failed = by_rows(lambda places: self._at(rows, labels, places), len(rows))
        if results is None:
            none = None if labels is None else np.zeros(len(rows))
            return np.zeros((len(rows), self.width)), none
        for each in results if failed.any() else ():
            if each is not None:
                each[failed] = 0.0
        return results[0], results[1]

    def _at(self, rows: FloatArray, labels: FloatArray | None, places: Any) -> tuple[Any, Any]:
        return self._map(taken(rows, places), taken(labels, places))

    def _map(self, X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        with np.errstate(all="ignore"):
            rows, labels = self.function(X, y)
            out = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
            if out.shape != (len(X), self.width):
                raise ValueError("the map must return one row for each row, of the stated width.")
            if labels is None:
                return out, None
            return out, np.nan_to_num(labels, nan=0.0, posinf=0.0, neginf=0.0)
