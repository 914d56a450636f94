"""The public model: a table becomes numbers, experts are tried on rows they have not seen, stacked.

Shuffled folds make a stack trust the experts as if private rows were more of the same. Folds that
differ from each other rehearse what a private table will do. The rules, as they were measured:

- *groups* that the user gives (sites, batches, years), put together to five folds at most;
- regression without groups: five blocks in row order; the weights of the stack are the mean of
  those under blocks and those under shuffled folds;
- classification without groups: five clusters of the columns, unless one cluster holds nearly all
  of a class (the others would not know the class); then four folds by lot, class by class.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls
from sklearn.cluster import KMeans
from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags
from sklearn.utils.metaestimators import available_if

from dpadapt._types import FloatArray, IntArray
from dpadapt.features import table_features
from dpadapt.learning.checks import check_private, check_width
from dpadapt.learning.softmax import log_sum_exp, softmax
from dpadapt.privacy import Private, Schema

from .experts import fit_expert


@dataclass(frozen=True, eq=False)
class Reader:
    """How rows become numbers: a data frame by the types of its public columns, others as they are.

    Numbers that are missing become the public median, texts and categories 0/1 columns of their
    public levels; levels in less than one public row of a hundred are pooled.

    Parameters
    ----------
    transformer : ColumnTransformer or None
    names : tuple
        Of the columns of the frame.

    Examples
    --------
    >>> import pandas as pd
    >>> public = pd.DataFrame({"age": [30.0, None, 50.0], "town": ["A", "B", "A"]})
    >>> Reader.of(public).rows(public)
    array([[30.,  1.,  0.],
           [40.,  0.,  1.],
           [50.,  1.,  0.]])
    """

    transformer: Any = None
    names: tuple[Any, ...] = ()

    @classmethod
    def of(cls, X: Any) -> Reader:
        """Reader of a public table."""
        if not hasattr(X, "iloc"):
            return cls()
        return cls(table_features(X, degree=1).fit(X), tuple(X.columns))

    def rows(self, X: Any) -> FloatArray:
        """Rows of numbers."""
        if self.transformer is None:
            return np.asarray(X, dtype=np.float64)
        if not hasattr(X, "iloc"):
            import pandas as pd

            X = pd.DataFrame(np.asarray(X), columns=list(self.names))
        return np.ascontiguousarray(self.transformer.transform(X), dtype=np.float64)

    def private(self, X: Any, private: Any) -> Private:
        """Private rows in the same form, read as the types of the public table say."""
        check_private(private)
        if private.columns is None:
            check_width(private, len(self.names))
        own = deepcopy(self.transformer)
        width = own.transform(X.iloc[:1]).shape[1]
        return private.read(Schema.of(X)).map(own.transform, width)


# experts are tried on public rows that they have not seen

_FOLDS, _CLASS_FOLDS = 5, 4
_MOST_OF_A_CLASS, _A_CLASS = 0.99, 50
_MOST_TRIED = 10_000  # rows that experts of numbers are tried on
_LEAST_ROWS = 20  # rows: with fewer there is one fold, and nothing is held out


def trial_rows(rows: int) -> IntArray:
    """Places of the rows that experts are tried on: all, or 10,000 by lot in their order.

    Weights of a stack and sizes of errors need no more; the experts themselves see all rows.

    Examples
    --------
    >>> trial_rows(3)
    array([0, 1, 2])
    >>> len(trial_rows(50_000))
    10000
    """
    return np.sort(np.random.default_rng(0).permutation(rows)[:_MOST_TRIED])


def block_folds(rows: int) -> IntArray:
    """Five blocks in row order.

    Examples
    --------
    >>> np.bincount(block_folds(50))
    array([10, 10, 10, 10, 10])
    """
    return np.arange(rows) * (_FOLDS if rows >= _LEAST_ROWS else 1) // max(rows, 1)


def shuffled_folds(rows: int) -> IntArray:
    """Five folds by lot, always the same.

    Examples
    --------
    >>> np.bincount(shuffled_folds(50))
    array([10, 10, 10, 10, 10])
    """
    return block_folds(rows)[np.random.default_rng(0).permutation(rows)]


def class_folds(codes: IntArray) -> IntArray:
    """Four folds by lot, class by class, always the same: rows that nothing tells apart.

    Not in row order: blocks of a sorted table (by year, say) differ, and what is usual without a
    shift would look like one.

    Examples
    --------
    >>> np.bincount(class_folds(np.repeat([0, 1], 20)))
    array([10, 10, 10, 10])
    """
    fold = np.zeros(len(codes), dtype=np.int64)
    for each in np.unique(codes) if len(codes) >= _LEAST_ROWS else ():
        places = np.random.default_rng(0).permutation(np.flatnonzero(codes == each))
        fold[places] = np.arange(len(places)) * _CLASS_FOLDS // len(places)
    return fold


def cluster_folds(X: FloatArray, codes: IntArray) -> IntArray | None:
    """Five clusters of the columns, never of columns and classes; None where a class would go.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> len(np.unique(cluster_folds(X, np.arange(300) % 2)))
    5
    """
    scale = X.std(axis=0)
    rows = np.clip((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0), -5, 5)
    if len(X) < 2 * _A_CLASS or len(np.unique(rows, axis=0)) < _FOLDS:
        return None
    fold = KMeans(_FOLDS, n_init=2, random_state=0).fit_predict(rows).astype(np.int64)
    common = [each for each in np.unique(codes) if np.sum(codes == each) >= _A_CLASS]
    shares = [np.bincount(fold[codes == each]).max() / np.sum(codes == each) for each in common]
    return None if not shares or max(shares) > _MOST_OF_A_CLASS else fold


def group_folds(groups: Any, rows: int) -> IntArray:
    """A user's groups, in the order in which they appear, put together to five folds at most.

    Examples
    --------
    >>> group_folds(["b", "b", "a", "c"], 4)
    array([0, 0, 1, 2])
    """
    given = np.asarray(groups)
    if given.shape != (rows,):
        raise ValueError(
            f"groups must have one entry for each public row, {rows} in all; got shape "
            f"{given.shape}."
        )
    names, first, places = np.unique(given, return_index=True, return_inverse=True)
    if len(names) < 2:
        raise ValueError("groups must name at least two groups; leave it None for the usual folds.")
    order = np.argsort(np.argsort(first))[places]
    if len(names) <= _FOLDS:
        return order.astype(np.int64)
    sizes = np.bincount(order)
    middle = np.cumsum(sizes) - sizes / 2
    return (middle * _FOLDS / rows).astype(np.int64)[order]


def cross_fit(
    kinds: Sequence[Any], X: FloatArray, y: Any, classes: int, folds: IntArray
) -> FloatArray:
    """Scores of experts for public rows that they were not fitted to, of shape (m, K, k).

    Parameters
    ----------
    kinds : sequence of str or estimator
    X : ndarray of shape (m, d)
    y : ndarray of shape (m,)
    classes : int
    folds : ndarray of int
        A row gets the scores of experts fitted to all other folds; with one fold only, to it.

    Examples
    --------
    >>> X = np.arange(8.0)[:, None]
    >>> cross_fit(["linear"], X, X[:, 0], 0, np.arange(8) % 2).shape
    (8, 1, 1)
    """
    out = np.zeros((len(X), len(kinds), max(1, classes)))
    for fold in np.unique(folds):
        mine = folds == fold
        others = ~mine if not mine.all() else mine
        for i, kind in enumerate(kinds):
            out[mine, i] = fit_expert(kind, X[others], y[others], classes, light=True)(X[mine])
    return out


# the stack

_SUM_WEIGHT = 1e3  # weight of "the weights add up to 1" in units of the labels' spread
_MOST_WEIGHT = 20.0


def convex_weights(scores: FloatArray, y: FloatArray) -> FloatArray:
    """Weights that add up to 1, none below 0, of least square error.

    Examples
    --------
    >>> y = np.arange(4.0)
    >>> convex_weights(np.column_stack([y, -y]), y).round(6)
    array([1., 0.])
    """
    scale = float(np.abs(y).max()) or 1.0
    rows = np.vstack([scores / scale, np.full((1, scores.shape[1]), _SUM_WEIGHT)])
    found = nnls(rows, np.append(y / scale, _SUM_WEIGHT))[0]
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


@dataclass(frozen=True, eq=False)
class PublicStack:
    """Weighted scores of public experts, each clipped to the public range.

    Parameters
    ----------
    experts : tuple
    weights : ndarray of shape (K,)
    low, high : ndarray of shape (d,)
        Columns are clipped to these; one that is constant in public rows stays what it was there.
    score_range : (float, float) or None
        Of numbers; None for classes.
    reader : Reader
    classes : ndarray or None
        The class labels.
    class_weights : ndarray or None
        What a mistake costs, class by class; the same for all where it is None.

    Examples
    --------
    >>> from dpadapt.auto.experts import LinearExpert
    >>> line, far = LinearExpert(np.array([[1.0]]), np.zeros(1)), np.full(1, np.inf)
    >>> model = PublicStack((line,), np.ones(1), -far, far, (0.0, 5.0), Reader())
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
        """Rows of numbers with their columns clipped."""
        return np.clip(X, self.low, self.high)

    def scores(self, rows: FloatArray) -> FloatArray:
        """Scores of all experts for clipped rows, of shape (n, K, k)."""
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
