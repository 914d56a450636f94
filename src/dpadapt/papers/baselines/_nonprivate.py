"""Baselines that read the target rows in the clear: yardsticks, no private methods."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from dpadapt._types import FloatArray
from dpadapt.learning.linear import LinearClassifier, LinearRegressor
from dpadapt.privacy import Private

from ._base import PlainFit
from ._tasks import BaselineTask, fit_logistic, fit_ridge


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
