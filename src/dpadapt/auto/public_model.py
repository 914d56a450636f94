"""The public model: a stack of experts, the start of the private step and a model by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls
from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags
from sklearn.utils.metaestimators import available_if

from dpadapt._types import FloatArray
from dpadapt.learning.softmax import log_sum_exp, softmax

_SUM = 1e3  # weight of "the weights add up to 1" in units of the labels' spread
_MOST_WEIGHT = 20.0


@dataclass(frozen=True, eq=False)
class PublicModel:
    """Weighted scores of public experts, each cut to the public range.

    Parameters
    ----------
    experts : tuple
    weights : ndarray of shape (K,)
    low, high : ndarray of shape (d,)
        Columns are cut to these; a column that is constant in public rows stays what it was there.
    score_range : (float, float) or None
        Of numbers; None for classes.
    reader : Reader
    classes : ndarray or None
        The class labels.
    class_weights : ndarray or None
        What a mistake costs, class by class; the same for all where it is None.

    Examples
    --------
    >>> from dpadapt.auto.experts import Linear
    >>> from dpadapt.auto.reading import Reader
    >>> line, far = Linear(np.array([[1.0]]), np.zeros(1)), np.full(1, np.inf)
    >>> model = PublicModel((line,), np.ones(1), -far, far, (0.0, 5.0), Reader())
    >>> model.predict([[3.0], [9.0]])
    array([3., 5.])
    """

    experts: tuple[Any, ...]
    weights: FloatArray
    low: FloatArray
    high: FloatArray
    score_range: tuple[float, float] | None
    reader: Any
    classes: Any = None
    class_weights: Any = None

    @property
    def classes_(self) -> Any:
        """The class labels, as scikit-learn calls them; numbers have none."""
        if self.classes is None:
            raise AttributeError("a model of numbers has no classes_")
        return self.classes

    def __sklearn_tags__(self) -> Tags:
        kind = "regressor" if self.classes is None else "classifier"
        return Tags(
            estimator_type=kind,
            target_tags=TargetTags(required=True),
            classifier_tags=None if self.classes is None else ClassifierTags(),
            regressor_tags=RegressorTags() if self.classes is None else None,
        )

    def rows(self, X: FloatArray) -> FloatArray:
        """Rows of numbers with their columns cut."""
        return np.clip(X, self.low, self.high)

    def scores(self, rows: FloatArray) -> FloatArray:
        """Scores of all experts for cut rows, of shape (n, K, k)."""
        found = np.stack([expert(rows) for expert in self.experts], axis=1)
        return found if self.score_range is None else np.clip(found, *self.score_range)

    def stacked(self, scores: FloatArray) -> FloatArray:
        """Scores of the stack, of shape (n, k)."""
        return np.einsum("nij,i->nj", scores, self.weights)

    def predict(self, X: Any) -> Any:
        """Predict numbers, or classes.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
        """
        scores = self._answers(X)
        if self.classes is None:
            return scores[:, 0]
        if self.class_weights is not None:
            scores = scores + np.log(self.class_weights)
        return self.classes[scores.argmax(axis=1)]

    @available_if(lambda model: model.classes is not None)
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes by the logistic model of the scores.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
        """
        return softmax(self._answers(X))

    def _answers(self, X: Any) -> FloatArray:
        return self.stacked(self.scores(self.rows(self.reader.rows(X))))


def convex_weights(scores: FloatArray, y: FloatArray) -> FloatArray:
    """Weights that add up to 1, none below 0, of least square error.

    Examples
    --------
    >>> y = np.arange(4.0)
    >>> convex_weights(np.column_stack([y, -y]), y).round(6)
    array([1., 0.])
    """
    scale = float(np.abs(y).max()) or 1.0
    rows = np.vstack([scores / scale, np.full((1, scores.shape[1]), _SUM)])
    found = nnls(rows, np.append(y / scale, _SUM))[0]
    return np.asarray(found / (found.sum() or 1.0))


def class_weights(scores: FloatArray, codes: Any) -> FloatArray:
    """Weights, none below 0, of least log-loss; they need not add up to 1.

    Examples
    --------
    >>> scores = np.array([[[-1.0, 1.0]], [[1.0, -1.0]], [[-1.0, 1.0]]])
    >>> class_weights(scores, np.array([1, 0, 0])).round(2)
    array([0.35])
    """
    rows = np.arange(len(codes))

    def value(weights: FloatArray) -> tuple[float, FloatArray]:
        stacked = np.einsum("nij,i->nj", scores, weights)
        errors = softmax(stacked)
        errors[rows, codes] -= 1
        return log_loss(stacked, codes), np.einsum("nj,nij->i", errors, scores) / len(rows)

    start, bounds = np.full(scores.shape[1], 0.5), [(0, _MOST_WEIGHT)] * scores.shape[1]
    return np.asarray(minimize(value, start, jac=True, bounds=bounds, method="L-BFGS-B").x)


def log_loss(scores: FloatArray, codes: Any) -> float:
    """Mean log-loss of scores.

    Examples
    --------
    >>> round(log_loss(np.zeros((1, 2)), np.array([1])), 4)
    0.6931
    """
    return float(np.mean(log_sum_exp(scores) - scores[np.arange(len(codes)), codes]))
