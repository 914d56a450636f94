"""Yardsticks without noise: public data alone, and target rows in the clear.

What every private method must beat, for which the private sample is not touched; what the target
rows would give if anybody might read them; discrepancy minimisation (Cortes, Mohri 2014) of them.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_X_y

from dpadapt._types import FloatArray
from dpadapt.discrepancy import minimise_discrepancy
from dpadapt.learning.linear import LinearClassifier, LinearRegressor
from dpadapt.privacy import Guarantee, Private

from ._tasks import BaselineTask, PlainFit, fit_logistic, fit_ridge


class PublicOnlyRegressor(PlainFit, LinearRegressor):
    """Ridge regression on public rows, its strength by leave-one-out: epsilon 0.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
    intercept_ : float
    guarantee_ : Guarantee
        Of epsilon 0.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = PublicOnlyRegressor().fit(X, X[:, 0] + 3)
    >>> model.predict([[1.0, 0.0]]).round(2), model.guarantee_.epsilon
    (array([4.]), 0.0)
    """

    def fit(self, X: ArrayLike, y: ArrayLike, *, private: Private | None = None) -> Self:
        """Fit to the public rows; ``private`` is ignored."""
        task = self._task(X, y)
        self._store(task, task.public_fit())
        self.guarantee_ = Guarantee()
        return self


class PublicOnlyClassifier(PlainFit, LinearClassifier):
    """Logistic regression on public rows, C by a public hold-out: epsilon 0.

    Parameters
    ----------
    classes : sequence, optional
        All class labels, where the public labels do not have them all.

    Attributes
    ----------
    classes_ : ndarray
    coef_, intercept_ : ndarray
    guarantee_ : Guarantee
        Of epsilon 0.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = PublicOnlyClassifier().fit(X, X[:, 0] > 0)
    >>> model.predict([[1.0, 0.0]]), model.guarantee_.epsilon
    (array([ True]), 0.0)
    """

    def __init__(self, *, classes: Any = None) -> None:
        self.classes = classes

    def fit(self, X: ArrayLike, y: ArrayLike, *, private: Private | None = None) -> Self:
        """Fit to the public rows; ``private`` is ignored."""
        task = self._task(X, y)
        self._store(task, task.public_fit())
        self.guarantee_ = Guarantee()
        return self


def not_private(value: Any) -> Any:
    """Return the value unless it is a private sample, which no such baseline may read."""
    if isinstance(value, Private):
        raise TypeError("target must be plain rows: this baseline is not private.")
    return value


class _Weighted(PlainFit):
    """Fit to source rows with weights that make them look like the target rows."""

    def _weights(self, rows: FloatArray, target: FloatArray) -> FloatArray:
        raise NotImplementedError

    def fit(self, X: ArrayLike, y: ArrayLike, *, target: ArrayLike | None = None) -> Self:
        """Fit to labelled source rows, weighted towards the target rows.

        Parameters
        ----------
        X : array-like of shape (m, d)
        y : array-like of shape (m,)
        target : array-like of shape (n, d), optional
            Unlabelled target rows, in the clear. Without them all weights are 1.
        """
        task: BaselineTask = self._task(X, y)
        weights = np.ones(len(task.X))
        if target is not None:
            rows = check_array(not_private(target), dtype=np.float64, input_name="target")
            if rows.shape[1] != task.X.shape[1]:
                raise ValueError(
                    f"target has {rows.shape[1]} columns, X has {task.X.shape[1]}; give both the "
                    "same."
                )
            weights = self._weights(task.rows[:, :-1], task.in_units(rows)[:, :-1])
        if task.classes:
            coefficients = fit_logistic(task.rows, task.labels, task.classes, weights)
        else:
            coefficients = fit_ridge(task.rows, task.targets[:, None], weights)
        self.weights_ = weights
        self._store(task, coefficients)
        return self


class WeightedRegressor(_Weighted, LinearRegressor):
    """Weighted ridge regression."""


class WeightedClassifier(_Weighted, LinearClassifier):
    """Weighted logistic regression."""


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


class DiscrepancyMinimisationRegressor(WeightedRegressor):
    """Ridge regression with weights of least discrepancy. No private method: it keeps no secret.

    The private form is :class:`dpadapt.DiscrepancyRegressor`.

    Parameters
    ----------
    gap : float, default=0.01
        How near to the least discrepancy to come, in parts of that of equal weights.

    Attributes
    ----------
    weights_ : ndarray of shape (m,)
        Of mean 1.
    coef_ : ndarray of shape (d,)
    intercept_ : float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> target = rng.normal(1.0, 0.5, size=(300, 1))
    >>> model = DiscrepancyMinimisationRegressor().fit(X, X[:, 0] ** 2, target=target)
    >>> bool(model.coef_[0] > 1)
    True
    """

    def __init__(self, *, gap: float = 0.01) -> None:
        self.gap = gap

    def _weights(self, rows: FloatArray, target: FloatArray) -> FloatArray:
        source, wanted = (np.column_stack([part, np.ones(len(part))]) for part in (rows, target))
        moment = wanted.T @ wanted / len(wanted)
        return len(rows) * minimise_discrepancy(source, moment, gap=self.gap).weights
