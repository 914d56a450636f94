r"""What the curator's rows are asked: where they are, and which way a tilted rule should go.

Histograms, shares and gradients are functions of single rows, whose answers the core bounds and
sums (:mod:`dpadapt.privacy.statistics.forms`). The signs of pairs of columns move by less than
their form would say: they have a claim and a proof of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning, RowMap, RowMean
from dpadapt.privacy.statistics import Histogram, MeanProduct, MeanVector, Prepared

from .rules import LinearRule

Weight = Callable[[FloatArray, FloatArray], FloatArray]
_LONGEST = 1e100  # of a row: squares stay finite


def histograms(rows: RowMap, edges: FloatArray) -> Histogram:
    """Histogram of every column over its own public edges, with two open tails.

    Parameters
    ----------
    rows : RowMap
    edges : ndarray of shape (d, k)
        Ascending; a cell is open to the left and closed to the right.

    Examples
    --------
    >>> query = histograms(Cleaning(9.0), np.array([[0.0, 1.0], [0.0, 1.0]]))
    >>> query.block(np.array([[-3.0, 0.5], [1.0, 0.5], [2.5, 2.0]]), None)
    array([[1., 1., 1.],
           [0., 2., 1.]])
    """
    columns, cells = edges.shape
    label = "histograms of the columns"
    return Histogram(rows, partial(_places, edges), cells + 1, columns, label)


def _places(edges: FloatArray, X: FloatArray, y: FloatArray) -> NDArray[np.intp]:
    each = zip(edges, X.T, strict=True)
    return np.column_stack([np.searchsorted(line, column) for line, column in each])


def proportions(rows: RowMap, thresholds: FloatArray) -> MeanVector:
    r"""Share of rows with x_j <= t for some public thresholds t of every column j; flat.

    The k d indicators of a row are a corner of a cube: they lie :math:`\sqrt{k d} / 2` from its
    middle, and two opposite corners twice as far apart.

    Parameters
    ----------
    rows : RowMap
    thresholds : ndarray of shape (k, d)

    Examples
    --------
    >>> query = proportions(Cleaning(9.0), np.array([[0.0], [1.0]]))
    >>> query.block(np.array([[-1.0], [0.5]]), None).round(6)
    array([1., 2.])
    """
    size = thresholds.size
    facts = (size, math.sqrt(size) / 2, "shares of rows below thresholds", 0.5)
    return MeanVector(rows, partial(_below, thresholds), *facts)


def _below(thresholds: FloatArray, X: FloatArray, y: FloatArray) -> NDArray[np.bool_]:
    return np.hstack([np.less_equal(X, line) for line in thresholds])


def pairs_of(n_columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both members of every pair of columns, in the order of :class:`Agreements`.

    Examples
    --------
    >>> [each.tolist() for each in pairs_of(3)]
    [[0, 0, 1], [1, 2, 2]]
    """
    first, second = np.triu_indices(n_columns, 1)
    return first.astype(np.int64), second.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Agreements(RowMean):
    r"""For every pair of columns, the share of rows on the same side of both public centres.

    A row is its vector a of signs; its part is 1[a_i = a_j] over pairs. For rows a and b the parts
    differ where a_i a_j and b_i b_j do, that is where c = a b (cell by cell) has c_i and c_j apart.
    With k cells of c negative these are k (d - k) pairs, at most floor(d^2 / 4): the sum moves by
    at most :math:`\sqrt{\lfloor d^2/4 \rfloor}`, attained by two rows that differ in half of their
    signs. (The square root of the number of pairs is a bound too, but larger.)

    Parameters
    ----------
    cleaning : RowMap
    centres : ndarray of shape (d,)

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = Agreements(Cleaning(9.0), np.zeros(3))
    >>> query.block(np.array([[1.0, 2.0, -1.0], [1.0, 1.0, 1.0]]), None)
    array([2., 1., 1.])
    """

    cleaning: RowMap
    centres: FloatArray
    label: str = "signs of pairs of columns"

    @property
    def magnitude(self) -> float:
        """Norm of one row's part, at most."""
        return math.sqrt(max(1, math.comb(len(self.centres), 2)))

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number a pair."""
        return (math.comb(n_columns, 2),)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Counts of one block."""
        signs = np.where(self.centres < X, 1.0, -1.0)
        first, second = pairs_of(X.shape[1])
        return (len(X) + (signs.T @ signs)[first, second]) / 2

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean; see the proof above."""
        return math.sqrt(max(1, len(self.centres) ** 2 // 4)) / n_rows


def tilted_rows(rule: LinearRule, weight: Weight) -> Prepared:
    """Rows z(x) of a linear rule, of norm at most 1, a weight between 0 and 1, and the length of z.

    The weight is a fixed public function of one row and its label. It is not divided by a sum
    over rows: no row changes another one's.

    Parameters
    ----------
    rule : LinearRule
        Its features, not its coefficients.
    weight : callable
        From rows and labels (-1, 1, or 0 for no class) to numbers; cut to [0, 1], NaN becomes 0.

    Examples
    --------
    >>> rule = LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1), clip=1.0)
    >>> rows = tilted_rows(rule, lambda X, y: 0.5 * np.abs(X[:, 0]))
    >>> rows(np.array([[0.0], [9.0]]), np.array([0.0, 1.0]))[0][:, -2]
    array([0., 1.])
    """

    def prepare(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        signs = np.zeros(len(X)) if y is None else np.where(y < 0, 0.0, 2 * y - 1)
        weights = np.clip(np.nan_to_num(weight(X, signs), nan=0.0), 0.0, 1.0)
        return np.column_stack([rule.embed(X), weights, np.zeros(len(X))]), signs

    width = rule.width
    return Prepared(Cleaning(_LONGEST, classes=2), prepare, width + 2, measured=width)


def tilted_slope(rows: Prepared, coefficients: FloatArray) -> MeanProduct:
    r"""Gradient in v of the logistic loss of tilted rows, each times its weight; a column.

    One row gives :math:`-w y z / (1 + e^{y \langle v, z \rangle})` with 0 <= w <= 1 and y in -1,
    0, 1: a product of z, which the core keeps at a length of 1. Two rows with label -1 far out on
    both sides of one column, whose constants are small, and a large v that looks at the constant
    alone pull with all their weight to opposite sides, and attain the sensitivity in the limit.

    Parameters
    ----------
    rows : Prepared
        By :func:`tilted_rows`.
    coefficients : ndarray of shape (p,)
        v.

    Examples
    --------
    >>> rule = LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1), clip=1.0)
    >>> query = tilted_slope(tilted_rows(rule, lambda X, y: np.ones(len(X))), np.zeros(2))
    >>> query.block(np.array([[0.6, 0.8, 0.1, 1.0]]), np.array([1.0]))
    array([[-0.03],
           [-0.04]])
    """
    facts = (len(coefficients), 1, 1.0, "gradient of tilted rows")
    return MeanProduct(rows, partial(_pull, coefficients), *facts)


def _pull(coefficients: FloatArray, X: FloatArray, y: FloatArray) -> FloatArray:
    scores = X[:, : len(coefficients)] @ coefficients
    return np.asarray(-expit(-y * scores) * y * X[:, -2])
