"""What fitted linear models answer: predictions, scores, probabilities, classes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .softmax import softmax


class LinearRegressor(RegressorMixin, BaseEstimator):
    """Linear predictions from ``coef_`` and ``intercept_``.

    Examples
    --------
    >>> class Line(LinearRegressor):
    ...     def fit(self, X, y):
    ...         self.coef_, self.intercept_, self.n_features_in_ = np.array([2.0]), 1.0, 1
    ...         return self
    >>> Line().fit([[0.0]], [1.0]).predict([[3.0]])
    array([7.])
    """

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict labels.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        check_is_fitted(self, "coef_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(rows @ self.coef_ + self.intercept_)


class ScoreClassifier(ClassifierMixin, BaseEstimator):
    """Classes and probabilities from the scores that a subclass gives."""

    @abstractmethod
    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores: of the second class for two classes, else one for each class."""

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes by the logistic model of the scores.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        return probabilities_of(self.decision_function(X))

    def predict(self, X: ArrayLike) -> Any:
        """Predict classes.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        places = class_indices(self.decision_function(X))  # first: it says if there is no fit yet
        return self.classes_[places]


class LinearClassifier(ScoreClassifier):
    """Classes by linear scores, from ``coef_``, ``intercept_`` and ``classes_``.

    Examples
    --------
    >>> class Side(LinearClassifier):
    ...     def fit(self, X, y):
    ...         self.coef_, self.intercept_ = np.array([[2.0]]), np.array([-1.0])
    ...         self.classes_, self.n_features_in_ = np.unique(y), 1
    ...         return self
    >>> Side().fit([[0.0], [1.0]], ["no", "yes"]).predict([[0.0], [3.0]]).tolist()
    ['no', 'yes']
    """

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores: of the second class for two classes, else one for each class.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        check_is_fitted(self, "classes_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        scores = self._scores(rows)
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

    def _scores(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(rows @ self.coef_.T + self.intercept_)


def probabilities_of(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities by the logistic model of scores: one of two classes, or one for each class.

    Examples
    --------
    >>> probabilities_of(np.array([0.0])), probabilities_of(np.zeros((1, 4)))
    (array([[0.5, 0.5]]), array([[0.25, 0.25, 0.25, 0.25]]))
    """
    if scores.ndim == 2:
        return softmax(scores)
    return np.column_stack([expit(-scores), expit(scores)])


def class_indices(scores: NDArray[np.float64]) -> NDArray[np.intp]:
    """Place of the class with the highest score; of two classes the second if its score is above 0.

    Examples
    --------
    >>> class_indices(np.array([-1.0, 2.0])), class_indices(np.array([[0.0, 3.0, 1.0]]))
    (array([0, 1]), array([1]))
    """
    return scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)


def class_labels(labels: Any, given: Any) -> Any:
    """Sorted classes: the caller's, or those of the public labels.

    Examples
    --------
    >>> class_labels(["no", "no"], ["yes", "no"]).tolist()
    ['no', 'yes']
    """
    check_classification_targets(labels)
    seen = np.unique(labels)
    classes = seen if given is None else np.unique(np.asarray(given))
    unknown = ~np.isin(seen, classes)
    if unknown.any():
        raise ValueError(f"classes: the public label {seen[unknown][0]!r} is not among them.")
    if len(classes) < 2:
        raise ValueError(
            "y has only one class, and a classifier needs two; pass classes= with all of them."
        )
    return classes
