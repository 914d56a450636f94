"""Public data alone: what every private method must beat. The private sample is not touched."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike

from dpadapt.learning.linear import LinearClassifier, LinearRegressor
from dpadapt.privacy import Guarantee, Private

from ._base import PlainFit


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
