"""The public map under which rows enter: directions from the middle of the public classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpadapt.learning.checks import public_scaling
from dpadapt.learning.softmax import Array, Rows
from dpadapt.privacy.statistics import Directions

_DROWNING = 1000.0  # largest over median deviation of columns: they have units of their own
_BIAS = 0.3  # costs b^2 / (1 + b^2) = 8% of the squared norm; 0.1 to 0.5 are alike


@dataclass(frozen=True, eq=False)
class UnitRows:
    r"""Directions of rows from a public center, with a constant: rows of norm 1 at most.

    A row becomes :math:`(u, b) / \sqrt{1 + b^2}` with :math:`u = (x - m) / \|x - m\|`; u is 0 if
    the row is the center or has nothing finite. No trust in the features' norms is needed.

    Parameters
    ----------
    center, scale : ndarray of shape (d,)
        m, and the units of the columns; public.
    bias : float
        b.
    classes : int
        Number of classes; labels are their codes.
    basis : ndarray of shape (d + 1, k), optional
        Orthonormal columns: rows are projected on them.
    dtype : dtype
        Of the rows that come out.

    Examples
    --------
    >>> rows = UnitRows(np.zeros(2), np.ones(2), bias=0.75, classes=2)
    >>> rows.rows(np.array([[3.0, 4.0], [0.0, 0.0], [np.inf, 2.0]]))
    array([[0.48, 0.64, 0.6 ],
           [0.  , 0.  , 0.6 ],
           [0.  , 0.8 , 0.6 ]])
    """

    center: Array
    scale: Array
    bias: float = _BIAS
    classes: int = 2
    basis: Array | None = None
    dtype: Any = np.float64

    @classmethod
    def of(cls, X: Array, codes: NDArray[np.int64], classes: int) -> Self:
        """Map from public rows: the center is the mean of the means of their classes.

        Columns stay as they are, unless one would drown the others: then they are standardised.
        """
        center, scale = public_scaling(X)
        varying = scale[np.ptp(X, axis=0) > 1e-12 * np.abs(center)]
        if not varying.size or varying.max() < _DROWNING * np.median(varying):
            scale = np.ones_like(scale)
        means = [X[codes == code].mean(axis=0) for code in np.unique(codes)]
        return cls(np.mean(means, axis=0), scale, _BIAS, classes)

    @property
    def radius(self) -> float:
        """1: no row is longer."""
        return 1.0

    @property
    def width(self) -> int:
        """Columns that come out."""
        return len(self.center) + 1 if self.basis is None else self.basis.shape[1]

    def cast(self, dtype: Any) -> Self:
        """The same map with rows of another type."""
        return replace(self, dtype=dtype)

    def project(self, basis: Array) -> Self:
        """The same map, then a projection."""
        return replace(self, basis=basis)

    def rows(self, X: Array) -> Array:
        """Map public rows, or rows to predict for."""
        return np.asarray(self(X, None)[0], dtype=np.float64)

    def __call__(self, X: Any, y: Array | None) -> tuple[Rows, Array | None]:
        """Map one block; total and row by row."""
        kind = self.dtype if self.basis is None else np.float64
        facts = (self.center, self.scale, self.bias, self.classes, kind)
        out, labels = Directions(*facts)(X, y)
        return (out if self.basis is None else (out @ self.basis).astype(self.dtype)), labels

    def directions(self, X: Array) -> Array:
        """Only u of rows to predict for: what ``linear`` is for."""
        whole = replace(self, basis=None).rows(X)
        return np.asarray(whole[:, :-1] * np.sqrt(1 + self.bias**2))

    def linear(self, W: Array) -> tuple[Array, Array]:
        """Slopes (d, c) for directions u, and constants (c,), from weights of rows."""
        full = W if self.basis is None else self.basis @ W
        length = np.sqrt(1 + self.bias**2)
        return full[:-1] / length, full[-1] * (self.bias / length)

    def weights(self, slopes: Array, constants: Array) -> Array:
        """Weights of rows from slopes for directions and constants; inverse of ``linear``."""
        length = np.sqrt(1 + self.bias**2)
        full = np.vstack([slopes * length, constants[None] * (length / self.bias)])
        return full if self.basis is None else np.asarray(self.basis.T @ full)


@dataclass(frozen=True, eq=False)
class PublicSample:
    """Public rows in unit features, the codes of their classes, and the number of classes.

    Examples
    --------
    >>> PublicSample(np.zeros((0, 3)), np.zeros(0, dtype=int), 4).width
    3
    """

    rows: Array
    codes: NDArray[np.int64]
    classes: int

    @property
    def width(self) -> int:
        """Columns."""
        return int(self.rows.shape[1])

    def __len__(self) -> int:
        return len(self.codes)

    def part(self, places: Any) -> PublicSample:
        """Some of the rows."""
        return PublicSample(self.rows[places], self.codes[places], self.classes)
