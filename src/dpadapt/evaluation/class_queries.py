r"""Right and wrong answers, class by class, as one statistic, with the proof of its sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy import RowMap, RowMean

from .queries import labels_of

_CLASS = 0.5  # weight of the count of a class
_PREDICTED = math.sqrt(0.5)  # weight of the count of a predicted class


@dataclass(frozen=True, eq=False)
class ByClass(RowMean):
    r"""How often one model or two are wrong, in all and in each class; and how large classes are.

    Let a row be of class c, and :math:`s = \pm 1/2` for a model that is wrong or right on it. One
    model adds the vector (s), two add :math:`v = (s_1, s_2, u)`, with u = 1/2 where one of them is
    right and the other wrong, and u = -1/2 elsewhere. A row adds v to the total, v once more to the
    numbers of class c, 1/2 to the count of class c, and w to the last number; with ``predicted``
    also :math:`b = \sqrt{1/2}`, for each model, to the count of the class that it predicts. A row
    that a model cannot answer is wrong, and predicted as nothing; a row without a label adds 0.
    Errors in all are known more precisely than as a sum over classes.

    *Proof of the sensitivity.* Replacing a row moves the mean of n by the distance of two such
    points over n, and two points v are at most sqrt(m) apart for m models: with two, u changes if
    exactly one of both s does. Let both rows have a label. *Of one class*: total and class move by
    at most m each, in squares: 2 m. *Of two classes*: the total by at most m; the numbers of two
    classes by :math:`2 |v|^2`, 1/2 for one model and 3/2 for two; counts by 2 / 4. That is at most
    2 m, too. Predicted classes add at most :math:`2 b^2 = 1` for each model. So the squared
    diameter is 2 m, or 3 m with ``predicted``; it is attained by a row of the same class that all
    models have right before, and wrong after. Let one of both have *no label*: the squared length
    of the other is :math:`2 |v|^2 + 1/4 + m b^2 + w^2` at most, and w is such that this is the
    squared diameter.

    Parameters
    ----------
    cleaning : RowMap
    answers : callable
        From answers of models to the places of the classes that they predict, a column each.
    classes : int
    models : {1, 2}
    predicted : bool, default=False
        Whether predicted classes are counted. Those of two classes follow from the rest.

    Examples
    --------
    >>> from dpadapt.evaluation.queries import AsAnswered
    >>> query = ByClass(AsAnswered(1.0), lambda X: X, classes=2, models=1)
    >>> query.block(np.array([[0.0], [1.0]]), np.array([0.0, 0.0])).round(3)
    array([0.   , 0.   , 0.   , 1.   , 0.   , 2.236])
    >>> round(query.sensitivity(10), 3)
    0.141
    """

    cleaning: RowMap
    answers: Callable[[FloatArray], FloatArray]
    classes: int
    models: int
    predicted: bool = False
    label: str = "right and wrong by class"

    reads_labels = True

    @property
    def kinds(self) -> int:
        """Numbers of a row in the total."""
        return 1 if self.models == 1 else 3

    @property
    def class_weight(self) -> float:
        """The weight of the count of a class."""
        return _CLASS

    @property
    def predicted_weight(self) -> float:
        """The weight of the count of a predicted class."""
        return _PREDICTED

    @property
    def magnitude(self) -> float:
        """The diameter: a row without a label adds 0."""
        return math.sqrt(self.models * (3.0 if self.predicted else 2.0))

    @property
    def label_weight(self) -> float:
        """The weight w of the part of rows with a label."""
        own = self.kinds / 2 + _CLASS**2 + self.predicted * self.models * _PREDICTED**2
        return math.sqrt(self.magnitude**2 - own)

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Total, numbers of classes, counts of classes and of predicted ones, the part."""
        each = self.kinds + 1 + self.predicted * self.models
        return (self.kinds + each * self.classes + 1,)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum over rows."""
        labels, answers = labels_of(X, y), self.answers(X)
        known = (labels >= 0) & (labels < self.classes)
        at = np.where(known, labels, 0).astype(np.intp)
        wrong = (answers != at[:, None]).astype(np.float64)
        columns = [*(wrong.T - 0.5)]
        if self.models == 2:
            columns.append((wrong[:, 0] != wrong[:, 1]) - 0.5)
        parts = [np.array([each.sum() for each in columns])]
        parts += [np.bincount(at, each, self.classes) for each in columns]
        parts.append(_CLASS * np.bincount(at, minlength=self.classes))
        for place in answers.T if self.predicted else ():
            named = place[(place >= 0) & (place < self.classes)].astype(np.intp)
            parts.append(_PREDICTED * np.bincount(named, minlength=self.classes))
        return np.append(np.concatenate(parts), self.label_weight * len(X))

    def sensitivity(self, n_rows: int) -> float:
        """The diameter over n."""
        return self.magnitude / n_rows
