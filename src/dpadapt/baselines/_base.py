"""The common face of the baselines: what scikit-learn asks for, around one private solve.

A baseline says how it solves (``_solve``: from a :class:`~._tasks.Task` and a private sample to
coefficients in public units and their guarantee); everything else is here. Without a private
sample every baseline is the public-only model.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from dpadapt._checks import aligned_private, session_options
from dpadapt._linear import LinearClassifier as Classes
from dpadapt._linear import LinearRegressor as Predictions
from dpadapt._linear import class_labels
from dpadapt._progress import row_progress
from dpadapt.privacy import Guarantee, Private

from ._tasks import Array, Task


class LinearRegressor(Predictions):
    """Public rows as a task; coefficients in the units of the caller."""

    def _read_public(self, X: ArrayLike, y: ArrayLike) -> Task:
        rows, labels = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        return Task(rows, np.asarray(labels, dtype=np.float64))

    def _store(self, task: Task, coefficients: Array) -> None:
        center, scale = task.scaling
        middle, unit = task.label_scaling
        self.coef_ = unit * coefficients[:-1, 0] / scale
        self.intercept_ = float(middle + unit * coefficients[-1, 0] - center @ self.coef_)


class LinearClassifier(Classes):
    """The same for classes."""

    def _read_public(self, X: ArrayLike, y: ArrayLike) -> Task:
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        classes = class_labels(labels, self.classes)
        return Task(rows, np.searchsorted(classes, labels).astype(np.int64), classes)

    def _store(self, task: Task, coefficients: Array) -> None:
        center, scale = task.scaling
        self.classes_ = task.names
        self.coef_ = np.ascontiguousarray((coefficients[:-1] / scale[:, None]).T)
        self.intercept_ = coefficients[-1] - self.coef_ @ center


class _PrivateFit(BaseEstimator):
    """``fit`` with a private sample; beside one of the two classes above."""

    def _check(self) -> None:
        """Check the parameters that no other function checks."""

    def _solve(
        self, task: Task, private: Private, options: dict[str, Any]
    ) -> tuple[Array, Guarantee]:
        raise NotImplementedError

    def fit(self, X: ArrayLike, y: ArrayLike, *, private: Private | None = None) -> Self:
        """Fit to public labelled rows and private labelled ones.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Public rows.
        y : array-like of shape (m,)
            Public labels.
        private : Private, optional
            Private rows with the same columns, and their labels. Without them the model is the
            public-only one.

        Returns
        -------
        object
            Itself, fitted.
        """
        self._check()
        options = session_options(self)
        task = self._read_public(X, y)
        sample = aligned_private(self, private, labelled=True)
        if sample is None:
            coefficients, guarantee = task.public_fit(), Guarantee()
        else:
            coded = sample if task.names is None else sample.encode(task.names)
            with row_progress("reading private rows", self.verbose) as progress:
                options |= {"label": type(self).__name__, "progress": progress}
                coefficients, guarantee = self._solve(task, coded, options)
        # only now: a fit that was refused must not put its guarantee beside an earlier model
        self._store(task, coefficients)
        self.guarantee_ = guarantee
        return self


class PrivateRegressor(_PrivateFit, LinearRegressor):
    """A private baseline for regression."""


class PrivateClassifier(_PrivateFit, LinearClassifier):
    """A private baseline for classification."""
