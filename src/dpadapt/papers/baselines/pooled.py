"""Non-private yardsticks: what the target rows would give if anybody might read them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_X_y

from dpadapt._types import FloatArray
from dpadapt.learning.linear import LinearClassifier, LinearRegressor

from ._base import PlainFit
from ._nonprivate import not_private
from ._tasks import fit_logistic, fit_ridge


class NonPrivateRegressor(PlainFit, LinearRegressor):
    """Ridge regression on target rows in the clear. No private method: it keeps no secret.

    Parameters
    ----------
    pooled : bool, default=False
        Whether the public rows count as well, each of the two samples with half of the weight.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
    intercept_ : float

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = NonPrivateRegressor().fit(X, X[:, 0], target=(X, X[:, 0] + 3))
    >>> model.predict([[1.0, 0.0]]).round(2)
    array([4.])
    """

    def __init__(self, *, pooled: bool = False) -> None:
        self.pooled = pooled

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, target: tuple[ArrayLike, ArrayLike] | None = None
    ) -> Self:
        """Fit to the target rows (plain arrays ``(X, y)``); without them, to the public ones."""
        task = self._task(X, y)
        rows, labels, weights = task.rows, task.targets, None
        if target is not None:
            more, their = check_X_y(*not_private(target), dtype=np.float64, y_numeric=True)
            middle, unit = task.label_scaling
            given = task.in_units(more), (their - middle) / unit
            rows, labels, weights = _join((rows, labels), given, self.pooled)
        self._store(task, fit_ridge(rows, labels[:, None], weights))
        return self


class NonPrivateClassifier(PlainFit, LinearClassifier):
    """Logistic regression on target rows in the clear. No private method: it keeps no secret.

    Parameters
    ----------
    pooled : bool, default=False
        Whether the public rows count as well, each of the two samples with half of the weight.
    classes : sequence, optional
        All class labels; by default those of the public labels. Target rows of no class are left
        out.

    Attributes
    ----------
    classes_ : ndarray
    coef_, intercept_ : ndarray

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = NonPrivateClassifier().fit(X, X[:, 0] > 0, target=(X, X[:, 0] < 0))
    >>> model.predict([[1.0, 0.0]])
    array([False])
    """

    def __init__(self, *, pooled: bool = False, classes: Any = None) -> None:
        self.pooled = pooled
        self.classes = classes

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, target: tuple[ArrayLike, ArrayLike] | None = None
    ) -> Self:
        """Fit to the target rows (plain arrays ``(X, y)``); without them, to the public ones."""
        task = self._task(X, y)
        rows, labels, weights = task.rows, task.labels, None
        if target is not None:
            more, their = check_X_y(*not_private(target), dtype=np.float64)
            known = np.isin(their, task.names)
            given = task.in_units(more[known]), np.searchsorted(task.names, their[known])
            rows, labels, weights = _join((rows, labels), given, self.pooled)
        self._store(task, fit_logistic(rows, labels, task.classes, weights))
        return self


def _join(
    public: tuple[FloatArray, Any], target: tuple[FloatArray, Any], pooled: bool
) -> tuple[FloatArray, Any, FloatArray | None]:
    """Return the target rows alone, or both samples with half of the weight each."""
    if not pooled:
        return *target, None
    sizes = len(public[1]), len(target[1])
    weights = np.repeat([sum(sizes) / 2 / max(size, 1) for size in sizes], sizes)
    return np.vstack([public[0], target[0]]), np.concatenate([public[1], target[1]]), weights
