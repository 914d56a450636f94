r"""Statistics of a model's answers to private rows, each with the proof of its sensitivity.

Rows come here as answers: a public model was asked for every private row by itself, which is a
public row-wise map. What a row then adds is bounded whatever the row is: a row that the model
cannot answer counts as the worst answer, and a row without a label adds nothing at all.

How many rows have a label is a secret. So every statistic also says, as its last number, which part
of the rows they are, times a public weight w, and sums are over the number of all rows: what they
are divided by comes out with them. It costs nothing. Two rows with a label add the same w, so that
their distance is what it was; a row with a label in place of one without moves the statistic by
what that row adds, with w, which is chosen so that this is no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy import PrivacyError, RowMap, RowMean, Statistic

Losses = Callable[[FloatArray, FloatArray], FloatArray]
CENTRE = 0.25
"""What losses are measured from: they are small as a rule, and w can be larger than from 0."""

_COUNT = 0.5  # weight of the count of a bin beside its gap
_ROUNDING = 1e-12  # more than rounding can do to what follows from exact counts


@dataclass(frozen=True)
class AsAnswered:
    """The map under which answers enter a statistic: as they are. The statistics bound them.

    Parameters
    ----------
    radius : float
        The largest error that counts, for the guarantee.

    Examples
    --------
    >>> AsAnswered(1.0)(np.array([[2]]), np.array([1]))
    (array([[2.]]), array([1.]))
    """

    radius: float

    def __call__(self, X: Any, y: Any) -> tuple[FloatArray, FloatArray | None]:
        """Answers and labels of one block as float64."""
        labels = None if y is None else np.asarray(y, dtype=np.float64)
        return np.asarray(X, dtype=np.float64), labels


@dataclass(frozen=True, eq=False)
class MeanLosses(RowMean):
    r"""Mean losses of one model, or of two on the same rows, and what their spread needs.

    A loss l lies in [0, 1]; one that is no number is 1. A row of one model adds

    .. math:: (l - c,\; l (1 - l),\; w),

    with c = 1/4. Of two models, with :math:`d = l_1 - l_2`, it adds

    .. math:: \Bigl(\frac{l_1 + l_2 - 2 c}{\sqrt2},\; \frac{d}{\sqrt2},\; d^2,\;
              l_1 (1 - l_1),\; l_2 (1 - l_2),\; w\Bigr).

    A row without a label adds 0. From these means follow the variances of the losses and of their
    difference. Losses that are 0 or 1 have l (1 - l) = 0, and those numbers are left out
    (``whole``). Nothing is cut by how far two models are apart on public rows: private rows may be
    others, and a mean of what was cut would be wrong by more than its noise.

    *Proof of the sensitivity.* Replacing a row moves the mean of n by the distance of two such
    points over n. Let both have a label, so that c and w cancel. Numbers l (1 - l) lie in
    [0, 1/4]: each adds at most 1/16 to a squared distance. One model: the rest is at most 1. Two
    models: let p and q be abs(d) of the two points, numbers of [0, 1], and m = p + q. The sum of
    two losses lies between p and 2 - p, so that the two sums differ by at most 2 - m, and the two d
    by at most m. The first two numbers add at most

    .. math:: \tfrac12 (2 - m)^2 + \tfrac12 m^2 = 2 - m (2 - m),

    the third :math:`(p^2 - q^2)^2 = m^2 (p - q)^2`, where abs(p - q) <= min(m, 2 - m). That is at
    most m (2 - m): if m <= 1 because m^4 <= m, and if m > 1 because m (2 - m) <= 1 is not smaller
    than its square. So the square of the difference is free, and the sum at most 2. It is attained
    by d = 1 in place of d = -1, and by two models that are both right before and both wrong after.

    Let one of both have no label. The squared length of the other, less w^2 and less 1/16 for each
    number l (1 - l), is for one model at most 9/16; w^2 = 7/16. For two it is at most
    (3/2 - p)^2 / 2 + p^2 / 2 + p^4, a convex function of p, which is 9/8 at p = 0 and 13/8 at
    p = 1; w^2 = 2 - 13/8 = 3/8.

    Parameters
    ----------
    cleaning : RowMap
    losses : callable
        From answers and labels to one column of losses for each model.
    models : {1, 2}
    whole : bool
        Whether losses are 0 or 1.

    Examples
    --------
    >>> query = MeanLosses(AsAnswered(1.0), lambda X, y: X != y[:, None], models=1, whole=True)
    >>> query.block(np.array([[0.0], [1.0]]), np.array([1.0, 1.0])).round(3), query.sensitivity(10)
    (array([0.5  , 1.323]), 0.1)
    """

    cleaning: RowMap
    losses: Losses
    models: int
    whole: bool
    label: str = "loss"

    reads_labels = True

    @property
    def magnitude(self) -> float:
        """The diameter: a row without a label adds 0."""
        square = 1.0 if self.models == 1 else 2.0
        return math.sqrt(square + (0.0 if self.whole else self.models / 16))

    @property
    def label_weight(self) -> float:
        """The weight w of the part of rows with a label."""
        return math.sqrt(7 / 16 if self.models == 1 else 3 / 8)

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Losses, the square of their difference, what makes them less spread, the part."""
        return (self.models * (2 - self.whole) + (self.models == 2) + 1,)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum over rows."""
        losses = np.clip(np.nan_to_num(self.losses(X, labels_of(X, y)), nan=1.0), 0.0, 1.0)
        if self.models == 1:
            parts = [losses - CENTRE]
        else:
            first, second = losses[:, :1], losses[:, 1:]
            sums = (first + second - 2 * CENTRE) / math.sqrt(2)
            parts = [sums, (first - second) / math.sqrt(2)]
            parts.append((first - second) ** 2)
        if not self.whole:
            parts.append(losses * (1 - losses))
        parts.append(np.full((len(X), 1), self.label_weight))
        return np.asarray(np.hstack(parts).sum(axis=0))

    def sensitivity(self, n_rows: int) -> float:
        """The diameter over n."""
        return self.magnitude / n_rows


@dataclass(frozen=True, eq=False)
class Ranking(Statistic):
    r"""How well scores rank rows of the second class above those of the first.

    With :math:`n_1` and :math:`n_0` rows of the two classes, U the number of pairs in which the row
    of the second class has the higher score (a tie counts one half): :math:`AUC = U / (n_1 n_0)`.
    Released are, with n the number of all rows, for each of m models

    .. math:: V = (U - n_1 n_0 / 2) / n^2, \quad\text{and once}\quad c\, (n_1 - n_0) / (2 n),
              \quad w\, (n_1 + n_0) / n, \quad c = \sqrt{3 m / 4}, \quad w = \sqrt{9 m / 16}.

    *Proof of the sensitivity.* Every pair adds -1/2, 0 or 1/2 to :math:`n^2 V`. Replace a row by
    another *of its class*: it is in at most n - 1 pairs before and after, each moves by at most 1,
    and the rest stays: each V moves by less than 1/n. Replace it by one *of the other class*: it
    leaves at most :math:`n_0` pairs and enters at most :math:`n_1 - 1` (or the same with the
    classes exchanged), each worth at most 1/2: V moves by at most (n - 1) / (2 n^2), and
    :math:`(n_1 - n_0) / (2 n)` by 1/n. Replace it by one *without a label*: it leaves fewer than n
    pairs, V moves by less than 1 / (2 n), :math:`(n_1 - n_0) / (2 n)` by 1 / (2 n), and
    :math:`(n_1 + n_0) / n` by 1/n. The squared distance times n^2 is at most m, or at most
    m/4 + c^2 = m, or at most m/4 + c^2 / 4 + w^2 = m. So the sensitivity is sqrt(m) / n, and the
    shares are free.

    Scores are places on a public grid, which are counted by class: counts are exact, and so is V up
    to one rounding. A row without a score of every model counts for all models as one of the first
    class that stands above all others, the worst answer: a row has one class.

    Parameters
    ----------
    cleaning : RowMap
    places : callable
        From answers to one column of places, 0 to ``size`` - 1, for each model; NaN for none.
    models : {1, 2}
    size : int

    Examples
    --------
    >>> query = Ranking(AsAnswered(1.0), lambda X: X, models=1, size=4)
    >>> counts = query.counts(np.array([[0.0], [3.0], [1.0]]), np.array([0.0, 1.0, 0.0]))
    >>> query.ranked(counts, n_rows=3)  # both pairs are right: (2 - 1) / 9
    array([ 0.11111111, -0.14433757,  0.75      ])
    """

    cleaning: RowMap
    places: Callable[[FloatArray], FloatArray]
    models: int
    size: int
    label: str = "ranking"

    @property
    def class_weight(self) -> float:
        """The weight c of the classes."""
        return math.sqrt(0.75 * self.models)

    @property
    def label_weight(self) -> float:
        """The weight w of the part of rows with a label."""
        return 0.75 * math.sqrt(self.models)

    @property
    def magnitude(self) -> float:
        """What one row can move, times the number of rows."""
        return math.sqrt(self.models)

    def entry_radius(self) -> float:
        """That of the cleaning."""
        return self.cleaning.radius

    def sensitivity_on(self, sample: Any) -> float:
        """Sqrt(m) / n."""
        sample.needs_replace_one("a ranking")
        if not sample.labelled:
            raise PrivacyError("the private sample must have labels: Private(X, y).")
        return self.magnitude / max(1, sample.n_rows) + _ROUNDING

    def reduce(self, sample: Any) -> FloatArray:
        """Rank all rows."""
        shape = (self.models, 2, self.size)
        return self.ranked(sample.total(self.cleaning, self.counts, shape), sample.n_rows)

    def counts(self, X: FloatArray, y: FloatArray | None, known: Any = None) -> FloatArray:
        """Count rows by class and place, those with a label; of shape (m, 2, size)."""
        labels, places = labels_of(X, y), self.places(X)
        lost = ~(np.isfinite(places).all(axis=1) & ((labels == 0) | (labels == 1)))
        classes = np.where(lost, 0, labels).astype(np.intp)
        counted = np.empty((self.models, 2 * self.size))
        for model, column in enumerate(places.T):
            at = np.clip(np.where(lost, self.size - 1, column), 0, self.size - 1).astype(np.intp)
            counted[model] = np.bincount(classes * self.size + at, known, 2 * self.size)
        return counted.reshape(self.models, 2, self.size)

    def ranked(self, counts: FloatArray, n_rows: int) -> FloatArray:
        """Return V of each model, and the weighted shares of classes and of labels."""
        first, second = counts[:, 0], counts[:, 1]
        n = max(1, n_rows)
        below = np.cumsum(first, axis=1) - first / 2
        pairs = (second * below).sum(axis=1) - second.sum(axis=1) * first.sum(axis=1) / 2
        ones, others = second[0].sum() / n, first[0].sum() / n
        shares = [self.class_weight * (ones - others) / 2, self.label_weight * (ones + others)]
        return np.append(pairs / n**2, shares)


@dataclass(frozen=True, eq=False)
class Reliability(RowMean):
    r"""How far probabilities are from what happened, in bins of the probability.

    A row with probability p of an outcome, that happened (o = 1) or not (o = 0), adds 1/2 to the
    count of its bin and the gap p - o to the gap of its bin, both over n, and the weight w to the
    last number. Its squared length, less w^2, is at most 1/4 + 1 for each of m models.

    *Proof of the sensitivity.* Rows of two bins: the squared distance is the sum of their squared
    lengths, at most 2.5 for each of m models. Rows of one bin, of a width of 1/2 at most: the
    counts agree, and two gaps are at most 1.5 apart, whose square is less. A row without a label:
    the squared length of the other, at most 2.5 m with w^2 = 1.25 m. So sqrt(2.5 m) / n, attained
    by a row with p = 1 and o = 0 in place of one with p = 0 and o = 1.

    A row without a probability counts as p = 1 and o = 0.

    Parameters
    ----------
    cleaning : RowMap
    outcomes : callable
        From answers and labels to p and o, an array of shape (n, 2) for each model.
    models : {1, 2}
    bins : int
        At least 2, of equal width.

    Examples
    --------
    >>> def outcomes(X, y):
    ...     return [np.column_stack([X[:, 0], y])]
    >>> query = Reliability(AsAnswered(1.0), outcomes, models=1, bins=2)
    >>> query.block(np.array([[0.75], [0.25]]), np.array([1.0, 1.0])).round(3)
    array([ 0.5  ,  0.5  , -0.75 , -0.25 ,  2.236])
    """

    cleaning: RowMap
    outcomes: Callable[[FloatArray, FloatArray], list[FloatArray]]
    models: int
    bins: int
    label: str = "reliability"

    reads_labels = True

    @property
    def count_weight(self) -> float:
        """The weight of a count."""
        return _COUNT

    @property
    def magnitude(self) -> float:
        """The longest that a row can be."""
        return math.sqrt(2 * self.models * (1 + _COUNT**2))

    @property
    def label_weight(self) -> float:
        """The weight w of the part of rows with a label."""
        return math.sqrt(self.models * (1 + _COUNT**2))

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Counts and gaps of each model, and the part of rows with a label."""
        return (self.models * 2 * self.bins + 1,)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum over rows."""
        total = np.zeros((self.models, 2, self.bins))
        for model, pairs in enumerate(self.outcomes(X, labels_of(X, y))):
            whole = np.isfinite(pairs).all(axis=1)
            p = np.clip(np.where(whole, pairs[:, 0], 1.0), 0.0, 1.0)
            gaps = p - np.clip(np.where(whole, pairs[:, 1], 0.0), 0.0, 1.0)
            at = np.minimum((p * self.bins).astype(np.intp), self.bins - 1)
            for row, values in enumerate((np.full(len(p), _COUNT), gaps)):
                total[model, row] = np.bincount(at, values, minlength=self.bins)
        return np.append(total, self.label_weight * len(X))

    def sensitivity(self, n_rows: int) -> float:
        """Sqrt(2.5 m) / n."""
        return self.magnitude / n_rows


def labels_of(X: FloatArray, y: FloatArray | None) -> FloatArray:
    """Labels of rows; no numbers where there are none.

    Examples
    --------
    >>> labels_of(np.zeros((2, 1)), None)
    array([nan, nan])
    """
    return np.full(len(X), np.nan) if y is None else y
