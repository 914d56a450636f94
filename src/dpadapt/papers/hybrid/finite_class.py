r"""A finite class of hypotheses: the exponential mechanism over weighted losses.

The score of h is :math:`\sum_i \mu_i \, 1[h(x_i) \ne y_i]`, with weights of which none is above
q = 1 / (density n). Differences of scores move by at most 2 q (:func:`.queries.hide_scores`):
the number of hypotheses plays no part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.hybrid.rules import LinearRule, Rule
from dpadapt.privacy import RowMap
from dpadapt.privacy.mechanisms import Exponential

from .learners import Learner, LearningTask, WeightedRows
from .queries import ClassLosses, Hypotheses, hide_scores

_MOST = 20_000_000  # hypotheses: their losses are held at once


class FiniteClass(Hypotheses, Protocol):
    """What the learner needs of a class."""

    def check(self, task: LearningTask) -> None:
        """Raise if the class does not fit the task (public facts)."""

    def cleaning(self, task: LearningTask) -> RowMap:
        """The map under which rows come to ``mistakes``; labels become -1, 0, 1."""

    def rule(self, index: int, task: LearningTask) -> Rule:
        """The hypothesis as a rule."""


@dataclass(frozen=True, eq=False)
class RuleList:
    """A finite class that is written out: any rules.

    Parameters
    ----------
    rules : sequence of Rule

    Examples
    --------
    >>> first = LinearRule("linear", [0.0], [1.0], [1.0, 0.0], (0, 1))
    >>> rules = RuleList((first, first.with_coefficients(np.array([-1.0, 0.0]))))
    >>> rules.mistakes(np.array([[2.0], [3.0]]), np.array([1.0, -1.0]), np.array([0.9, 0.1]))
    array([0.1, 0.9])
    """

    rules: Sequence[Rule]

    def __len__(self) -> int:
        return len(self.rules)

    def check(self, task: LearningTask) -> None:
        """Raise if some rule is for other rows."""
        for rule in self.rules:
            rule.check(task.n_columns)

    def cleaning(self, task: LearningTask) -> RowMap:
        """Rows as they are."""
        return task.rows

    def mistakes(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
        """Weighted mistakes of each rule."""
        return np.array([weights @ (rule.predict_sign(X) != y) for rule in self.rules])

    def rule(self, index: int, task: LearningTask) -> Rule:
        """The rule itself."""
        return self.rules[index]


@dataclass(frozen=True, eq=False)
class SparseSeparators:
    """1[<w, u> > t] for sparse w on a grid; of :func:`sparse_separators`.

    u are the features of the task's rule, in units of their public scale from their public centre.

    Parameters
    ----------
    n_features : int
    supports : ndarray of shape (D, s)
        Columns of each direction.
    weights : ndarray of shape (D, s)
        Entries of w there.
    thresholds : ndarray of shape (K,)
        Every t, increasing. Hypothesis number j * K + k has direction j and threshold k.

    Examples
    --------
    >>> separators = sparse_separators(3, 1, thresholds=(-1.0, 0.0, 1.0))
    >>> len(separators)  # 3 columns, 2 signs, 3 thresholds
    18
    >>> separators.coefficients(1)
    array([-1.,  0.,  0., -0.])
    """

    n_features: int
    supports: NDArray[np.int64]
    weights: FloatArray
    thresholds: FloatArray

    def __len__(self) -> int:
        return len(self.supports) * len(self.thresholds)

    def check(self, task: LearningTask) -> None:
        """Raise if the task has another number of features."""
        if self.n_features != task.blank.width - 1:
            raise ValueError(
                f"the separators are over {self.n_features} features, the rows have "
                f"{task.blank.width - 1}."
            )

    def cleaning(self, task: LearningTask) -> RowMap:
        """Rows z of the task's rule: u and a constant, shrunk together."""
        return task.embedded

    def mistakes(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
        """Weighted mistakes, all thresholds of a direction from one histogram.

        A row is above the thresholds below its <w, u>: with label -1 it is a mistake there, with
        label 1 for all others. A label of no class is one everywhere.
        """
        count = len(self.thresholds)
        out = np.empty((len(self.supports), count))
        with np.errstate(all="ignore"):
            standard = X[:, :-1] / X[:, -1:]
        negative, positive = weights * (y <= 0), weights * (y >= 0)
        for j, (columns, w) in enumerate(zip(self.supports, self.weights, strict=True)):
            place = np.searchsorted(self.thresholds, standard[:, columns] @ w)  # thresholds below
            below = np.bincount(place, positive, count + 1)[:count]
            above = np.bincount(place, negative, count + 1)[1:]
            out[j] = np.cumsum(below) + np.cumsum(above[::-1])[::-1]
            # a label 0 stands in both sums and is counted once, at every threshold
        return np.asarray(out.ravel())

    def coefficients(self, index: int) -> FloatArray:
        """W and -t as the coefficients of a :class:`LinearRule`."""
        direction, threshold = divmod(index, len(self.thresholds))
        out = np.zeros(self.n_features + 1)
        out[self.supports[direction]] = self.weights[direction]
        out[-1] = -self.thresholds[threshold]
        return out

    def rule(self, index: int, task: LearningTask) -> LinearRule:
        """The separator as a linear rule in the task's features."""
        return task.blank.with_coefficients(self.coefficients(index))


def sparse_separators(
    d: int,
    s: int,
    *,
    levels: Sequence[float] = (-1.0, 1.0),
    thresholds: Sequence[float] = tuple(np.linspace(-2, 2, 17).tolist()),
) -> SparseSeparators:
    """Every separator with s of d features, weights from ``levels`` and a threshold of the grid.

    Parameters
    ----------
    d, s : int
    levels : sequence of float, default=(-1, 1)
        Values that a weight can have; public, not 0.
    thresholds : sequence of float, default=-2, -1.75, ..., 2
        Public.

    Examples
    --------
    >>> len(sparse_separators(20, 2, thresholds=(0.0,)))  # 190 pairs, 4 signs
    760
    """
    validate.count("d", d)
    if validate.count("s", s) > d:
        raise ValueError(f"s must be at most d; got {s} of {d}.")
    values = sorted({float(level) for level in levels})
    cuts = np.array(sorted({float(t) for t in thresholds}))
    if not values or 0.0 in values or not np.isfinite(values).all():
        raise ValueError("levels must be finite numbers other than 0.")
    if not len(cuts) or not np.isfinite(cuts).all():
        raise ValueError("thresholds must be finite numbers, one at least.")
    size = math.comb(d, s) * len(values) ** s * len(cuts)
    if size > _MOST:
        raise ValueError(f"the class has {size} hypotheses; at most {_MOST} can be scored.")
    signs = np.array(list(itertools.product(values, repeat=s)))
    supports = np.array(list(itertools.combinations(range(d), s)), dtype=np.int64)
    repeated = np.repeat(supports, len(signs), axis=0)
    return SparseSeparators(d, repeated, np.tile(signs, (len(supports), 1)), cuts)


@dataclass(frozen=True, eq=False)
class FiniteClassLearner(Learner):
    """The best of a finite class, by the exponential mechanism on weighted mistakes.

    With H hypotheses it is within 2 q ln(H / b) / epsilon of the best, except with probability b;
    no gradient, no convexity, and the dimension enters by ln(H) only: s-sparse separators over d
    features (:func:`sparse_separators`) need rows in proportion to s ln(d).

    Parameters
    ----------
    hypotheses : FiniteClass, or a sequence of rules

    Examples
    --------
    >>> blank = LinearRule("linear", np.zeros(20), np.ones(20), np.zeros(21), (0, 1))
    >>> learner = FiniteClassLearner(sparse_separators(20, 2))
    >>> planned = learner.mechanism(LearningTask(1000, 20, blank), density=0.5)
    >>> planned.label, round(planned.sensitivity, 6)
    ('hypothesis', 0.004)
    """

    hypotheses: FiniteClass | Sequence[Rule]

    def _check(self) -> None:
        if not len(self.hypotheses):
            raise ValueError("hypotheses: one at least.")

    @cached_property
    def _class(self) -> FiniteClass:
        known = self.hypotheses
        return RuleList(tuple(known)) if isinstance(known, (list, tuple)) else known  # type: ignore[return-value]

    def mechanism(self, task: LearningTask, density: float) -> Exponential:
        """One choice, of range sensitivity 2 / (density n)."""
        self._class.check(task)
        query = ClassLosses(self._class, self._class.cleaning(task))
        return Exponential("hypothesis", query.range_sensitivity(density, task.n_rows))

    def learn(self, rows: WeightedRows) -> Rule:
        """Choose one hypothesis."""
        query = ClassLosses(self._class, self._class.cleaning(rows.task))
        scores = hide_scores(rows.session, query, rows.weights, rows.density)
        return self._class.rule(rows.release(scores), rows.task)
