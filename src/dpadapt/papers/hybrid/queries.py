"""What the curator's weighted rows are asked, with the proof of how far one row can move it.

Every claim of sensitivity of Subsample-Test-Reweigh stands here: gradients of the logistic loss,
scores of hypotheses by their mistakes, and weights that mistakes keep up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.hybrid.questions import Mistake
from dpadapt.hybrid.rules import Rule
from dpadapt.learning.softmax import softmax
from dpadapt.privacy import Hidden, RowMap, Session

from .doors.weights import RowWeights, Weighted, WeightedMean, reweigh, weighted_sensitivity

_SHORTER = 1e-12  # by which residuals of many classes are shortened: above what rounding adds


@dataclass(frozen=True, eq=False)
class WeightedSlope(WeightedMean):
    r"""Gradient of the weighted logistic loss of a linear rule in its coefficients v.

    One row contributes :math:`g(z, y) = -y \, z / (1 + e^{y \langle v, z \rangle})`, and 0 if it is
    of no class. :math:`\|z\| \le 1` gives :math:`\|g\| < 1`, so with weights
    :math:`\mu_i \le q` the sum moves by at most 2 q if a row is replaced (overlap lemma,
    ``doors.weights``). Attained in the limit of a large v: two rows on its wrong side,
    almost orthogonal to it and opposite to each other, pull with all their weight to either side.

    Parameters
    ----------
    cleaning : RowMap
        To rows z of norm at most 1 and labels -1, 0, 1.
    coefficients : ndarray of shape (p,)
        v.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = WeightedSlope(Cleaning(1.0), np.zeros(2))
    >>> query.weighted_block(np.array([[0.6, 0.8]]), np.array([1.0]), np.array([0.1]))
    array([-0.03, -0.04])
    >>> query.sensitivity(100)
    0.02
    """

    cleaning: RowMap
    coefficients: FloatArray
    label: str = "weighted gradient"
    magnitude: float = 1.0

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number for each coefficient."""
        return (len(self.coefficients),)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of the gradients, unweighted."""
        return self.weighted_block(X, y, np.ones(len(X)))

    def weighted_block(
        self, X: FloatArray, y: FloatArray | None, weights: FloatArray
    ) -> FloatArray:
        """Sum of the gradients, each times its weight."""
        if y is None:
            return np.zeros(len(self.coefficients))
        pull = X @ self.coefficients
        pull *= y
        with np.errstate(over="ignore"):  # of a row that v is right about: it does not pull
            np.exp(pull, out=pull)
        pull += 1.0
        np.divide(y, pull, out=pull)
        pull *= weights
        return np.asarray(-(pull @ X))

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean over equally weighted rows."""
        return 2 / n_rows


@dataclass(frozen=True, eq=False)
class WeightedJointSlope(WeightedMean):
    r"""Gradient of the weighted joint logistic loss of c > 2 classes in the coefficients V.

    One row contributes :math:`G(z, y) = z\, r^T` with :math:`r = p - e_y` and
    :math:`p = \mathrm{softmax}(V^T z)`, and 0 if it is of no class. Only the entry of y in r is
    negative, and the others sum to its size, so that
    :math:`\|r\|^2 = (1 - p_y)^2 + \sum_{j \ne y} p_j^2 \le 2 (1 - p_y)^2 \le 2`.
    :math:`\|z\| \le 1` gives :math:`\|G\| \le \sqrt 2` in the Frobenius norm, so with weights
    :math:`\mu_i \le q` the sum moves by at most :math:`2 \sqrt 2\, q` if a row is replaced, label
    and all (overlap lemma, ``doors.weights``); however many classes there are. Attained in
    the limit of a large V that looks at the constant alone: two rows far out on both sides of one
    column, both taken for another class than they are of. Computed residuals are shortened by one
    part in 1e12, more than their rounding can lengthen them.

    Parameters
    ----------
    cleaning : RowMap
        To rows z of norm at most 1 and labels 0 (none), 1, 2, ..., c.
    coefficients : ndarray of shape (p, c)
        V.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = WeightedJointSlope(Cleaning(1.0), np.zeros((2, 4)))
    >>> query.weighted_block(np.array([[0.6, 0.8]]), np.array([1.0]), np.array([0.1])).round(3)
    array([[-0.045,  0.015,  0.015,  0.015],
           [-0.06 ,  0.02 ,  0.02 ,  0.02 ]])
    >>> round(query.sensitivity(100), 4)
    0.0283
    """

    cleaning: RowMap
    coefficients: FloatArray
    label: str = "weighted joint gradient"
    magnitude: float = math.sqrt(2.0)

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number for each coefficient."""
        return self.coefficients.shape

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of the gradients, unweighted."""
        return self.weighted_block(X, y, np.ones(len(X)))

    def weighted_block(
        self, X: FloatArray, y: FloatArray | None, weights: FloatArray
    ) -> FloatArray:
        """Sum of the gradients, each times its weight."""
        if y is None:
            return np.zeros(self.coefficients.shape)
        pull = softmax(X @ self.coefficients)
        places = y.astype(np.intp)
        pull[np.arange(len(X)), places - 1] -= 1.0  # a place -1 is the last column, weighed 0
        pull *= np.where(places > 0, (1 - _SHORTER) * weights, 0.0)[:, None]
        return np.asarray(X.T @ pull)

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean over equally weighted rows."""
        return 2 * math.sqrt(2.0) / n_rows


class Hypotheses(Protocol):
    """A finite class of hypotheses, as far as its mistakes go."""

    def __len__(self) -> int: ...
    def mistakes(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
        """Sum of the weights of the rows on which each hypothesis errs. A label 0 is an error."""


@dataclass(frozen=True, eq=False)
class ClassLosses(WeightedMean):
    r"""Weighted mistakes of every hypothesis of a class.

    A row's losses are a vector of zeros and ones, one for each of the H hypotheses: two of them
    are at most :math:`\sqrt H` apart in l2 norm, attained by a row on which all hypotheses err,
    and one on which none does. As scores they move far less: :func:`hide_scores`.

    Parameters
    ----------
    hypotheses : Hypotheses
    cleaning : RowMap
        To labels -1, 0, 1.

    Examples
    --------
    >>> from dpadapt.papers.hybrid.finite_class import sparse_separators
    >>> from dpadapt.privacy import Cleaning
    >>> query = ClassLosses(sparse_separators(1, 1), Cleaning(9.0))
    >>> query.range_sensitivity(density=0.5, n_rows=1000) > 2 / 500
    True
    """

    hypotheses: Hypotheses
    cleaning: RowMap
    label: str = "weighted mistakes"

    @property
    def magnitude(self) -> float:
        """Euclidean norm of one row's losses, at most."""
        return math.sqrt(len(self.hypotheses))

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number for each hypothesis."""
        return (len(self.hypotheses),)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Number of mistakes, unweighted."""
        return self.weighted_block(X, y, np.ones(len(X)))

    def weighted_block(
        self, X: FloatArray, y: FloatArray | None, weights: FloatArray
    ) -> FloatArray:
        """Weights of the rows on which each hypothesis errs."""
        labels = np.zeros(len(X)) if y is None else y
        return self.hypotheses.mistakes(X, labels, weights)

    def sensitivity(self, n_rows: int) -> float:
        """Euclidean sensitivity of the mean: losses in [0, 1], so their diameter is the norm."""
        return self.magnitude / n_rows

    def range_sensitivity(self, density: float, n_rows: int) -> float:
        """2 / (density n), and what rounding can do to the four scores of two differences."""
        return weighted_sensitivity(_Differences(self.hypotheses, self.cleaning), density, n_rows)


class _Differences(ClassLosses):
    """Differences of two scores: one row's are in [-1, 1]. The magnitude scales the rounding."""

    @property
    def magnitude(self) -> float:
        """Four scores, twice what a plain sum of weights allows for: histograms are summed up."""
        return 8.0

    @property
    def alone(self) -> float:
        """One row's differences are at most 1."""
        return 1.0

    def sensitivity(self, n_rows: int) -> float:
        """The range of one row's differences, over n."""
        return 2 / n_rows


def hide_scores(
    session: Session, query: ClassLosses, weights: RowWeights, density: float
) -> Hidden:
    """Hide weighted mistakes as scores, whose differences move by 2 q at most.

    No weight is above q = 1 / (density n). By the overlap lemma (``statistics.weights``) two
    neighbours have the scores (1-q) a + q b and (1-q) a + q b', b and b' averages of one-row
    losses. A difference of two scores is the same with one-row differences, which lie in [-1, 1]:
    it moves by at most 2 q, the *range sensitivity*. Attained: the changed row holds the weight q,
    one hypothesis errs on it before and not after, and another the other way round.

    Examples
    --------
    >>> from dpadapt.papers.hybrid.finite_class import sparse_separators
    >>> from dpadapt.privacy import Cleaning, Private
    >>> rows = Cleaning(9.0, intercept=1.0, label_range=(-1.0, 1.0))
    >>> query = ClassLosses(sparse_separators(1, 1), rows)
    >>> with Private([[0.0]] * 5, [0.0] * 5).open(epsilon=1.0, delta=1e-6) as session:
    ...     scores = hide_scores(session, query, RowWeights(session), density=1.0)
    >>> round(scores.sensitivity, 6)
    0.4
    """
    losses = session.hide(Weighted(query, weights, density))
    claim = query.range_sensitivity(density, session.n_rows)
    return session.derive(losses, lambda values: values, label="hypothesis", sensitivity=claim)


def lower_weights(
    weights: RowWeights,
    rule: Rule,
    cleaning: RowMap,
    rate: float,
    question: Callable[[Rule], Any] = Mistake,
) -> None:
    r"""Lower the weight of rows that a released rule gets right: :math:`w_i e^{-\eta (1-l_i)}`.

    The loss l is 1 for a mistake, else 0, or any number from 0 to 1 that a question makes of a
    rule: a function of the row, its label and the rule alone. So
    given the same rules, neighbours have stored weights that differ in the changed row only, to
    the last bit; and its own lies in [e^-s, 1], s the sum of the rates, as every other one does.
    That is what the overlap lemma and the densities of a schedule rest on
    (``statistics.weights``).

    Parameters
    ----------
    weights : RowWeights
    rule : Rule
    cleaning : RowMap
        To labels -1, 0, 1.
    rate : float
        eta.
    question : callable, default=Mistake
        From the rule to the question whose answers are the losses.

    Examples
    --------
    >>> from dpadapt.hybrid.signed_rows import SignedRows
    >>> from dpadapt.hybrid.rules import LinearRule
    >>> from dpadapt.privacy import Private
    >>> rule = LinearRule("linear", [0.0], [1.0], [1.0, 0.0], (0, 1))
    >>> with Private([[0.0]] * 5, [0.0] * 5).open(epsilon=1.0, delta=1e-6) as session:
    ...     weights = RowWeights(session)
    ...     lower_weights(weights, rule, SignedRows(1), rate=0.1)
    >>> weights
    RowWeights(5 rows, 1 updates)
    """
    reweigh(weights, question(rule).values, cleaning, rate)
