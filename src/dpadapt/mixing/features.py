"""Public rows as directions from the middle of their classes, and the models they start from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from dpadapt._types import FloatArray
from dpadapt.learning.checks import public_scaling
from dpadapt.learning.softmax import RealArray, gradient, loss
from dpadapt.privacy.statistics import Directions

_DROWNING = 1000.0  # largest over median deviation of columns: they have units of their own
_BIAS = 0.3  # costs b^2 / (1 + b^2) = 8% of the squared norm; 0.1 to 0.5 are alike
_ITERATIONS = 150
_LONE_ENERGY = 0.05  # between-class energy where every class has one public row
_LEAST_ENERGY = 0.01


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

    center: FloatArray
    scale: FloatArray
    bias: float = _BIAS
    classes: int = 2
    basis: FloatArray | None = None
    dtype: Any = np.float64

    @classmethod
    def of(cls, X: FloatArray, codes: NDArray[np.int64], classes: int) -> Self:
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

    def project(self, basis: FloatArray) -> Self:
        """The same map, then a projection."""
        return replace(self, basis=basis)

    def rows(self, X: FloatArray) -> FloatArray:
        """Map public rows, or rows to predict for."""
        return np.asarray(self(X, None)[0], dtype=np.float64)

    def __call__(self, X: Any, y: FloatArray | None) -> tuple[RealArray, FloatArray | None]:
        """Map one block; total and row by row."""
        kind = self.dtype if self.basis is None else np.float64
        facts = (self.center, self.scale, self.bias, self.classes, kind)
        out, labels = Directions(*facts)(X, y)
        return (out if self.basis is None else (out @ self.basis).astype(self.dtype)), labels

    def directions(self, X: FloatArray) -> FloatArray:
        """Only u of rows to predict for: what ``linear`` is for."""
        whole = replace(self, basis=None).rows(X)
        return np.asarray(whole[:, :-1] * np.sqrt(1 + self.bias**2))

    def linear(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes (d, c) for directions u, and constants (c,), from weights of rows."""
        full = W if self.basis is None else self.basis @ W
        length = np.sqrt(1 + self.bias**2)
        return full[:-1] / length, full[-1] * (self.bias / length)

    def weights(self, slopes: FloatArray, constants: FloatArray) -> FloatArray:
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

    rows: FloatArray
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


def penalised(public: PublicSample, penalty: float = 1e-3) -> FloatArray:
    """Minimum of the mean public loss plus penalty / 2 times the squared norm.

    Examples
    --------
    >>> public = PublicSample(np.array([[1.0, 0.3], [-1.0, 0.3]]), np.array([0, 1]), 2)
    >>> W = penalised(public)
    >>> gap = gradient(public.rows, public.codes, W) / 2 + 1e-3 * W
    >>> bool(np.abs(gap).max() < 1e-4)
    True
    """
    shape = (public.width, public.classes)
    if not len(public):
        return np.zeros(shape)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        W = flat.reshape(shape)
        value = loss(public.rows, public.codes, W) / len(public) + penalty / 2 * float(flat @ flat)
        slope = gradient(public.rows, public.codes, W) / len(public) + penalty * W
        return value, slope.ravel()

    options: Any = {"maxiter": _ITERATIONS}
    start = np.zeros(shape).ravel()
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return with_unseen(public, np.asarray(found.x, dtype=np.float64).reshape(shape))


def class_energy(public: PublicSample) -> float:
    """Squared distance of class means, without the noise of few rows: a U-statistic.

    Mean inner product of two rows of one class less that of two rows of different classes; what
    private rows of a class have in common, and so the signal in their sum. From sums of rows class
    by class, so that it is linear in public rows.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> class_energy(PublicSample(rows, np.array([0, 0, 1, 1]), 2))
    1.0
    """
    counts = np.bincount(public.codes, minlength=public.classes).astype(np.float64)
    same, pairs = float(counts @ counts), float(counts @ (counts - 1))
    apart = len(public) ** 2 - same
    if not pairs or not apart:
        return _LONE_ENERGY
    sums = np.zeros((public.classes, public.width))
    np.add.at(sums, public.codes, public.rows)
    within, whole = float(np.sum(sums**2)), sums.sum(axis=0)
    own = float(np.sum(public.rows**2))  # of rows with themselves: no pair
    energy = (within - own) / pairs - (float(whole @ whole) - within) / apart
    return min(max(energy, _LEAST_ENERGY), 1.0)


def with_unseen(public: PublicSample, W: FloatArray) -> FloatArray:
    """Give each class without public rows the odds of half a row, instead of none at all.

    Examples
    --------
    >>> public = PublicSample(np.array([[1.0], [1.0]]), np.array([0, 0]), 2)
    >>> with_unseen(public, np.zeros((1, 2))).round(4)
    array([[ 0.    , -1.3863]])
    """
    seen = np.unique(public.codes)
    if len(seen) == public.classes or not len(seen):
        return W
    scores = public.rows @ W[:, seen]
    constant = float(np.logaddexp.reduce(scores, axis=1).mean() - np.log(2 * len(public)))
    W = W.copy()
    # the smallest weights with this score on the mean public row
    middle = public.rows.mean(axis=0)
    others = np.setdiff1d(np.arange(public.classes), seen)
    W[:, others] = (constant * middle / max(float(middle @ middle), 1e-12))[:, None]
    return W
