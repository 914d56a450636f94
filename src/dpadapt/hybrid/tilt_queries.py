"""What the curator's rows are asked by the tilt: marginals, pairs, gradients of weighted rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpadapt.privacy import Cleaning, Prepared, RowMap

from .rules import LinearRule

__all__ = ["Agreements", "Histograms", "Proportions", "TiltedRows", "TiltedSlope", "pairs_of"]

Array = NDArray[np.float64]
Weight = Callable[[Array, Array], Array]

_LONGEST = 1e100  # of a row: squares stay finite


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
class Histograms:
    r"""Histogram of every column over its own public edges, with two open tails.

    A row adds 1 to one cell of each of the d histograms. Another row in its place takes those away
    and adds d others: the sum moves by at most :math:`\sqrt{2d}` in l2 norm, attained by two rows
    that share no cell.

    Parameters
    ----------
    cleaning : RowMap
    edges : ndarray of shape (d, k)
        Ascending; a cell is open to the left and closed to the right.

    Examples
    --------
    >>> query = Histograms(Cleaning(9.0), np.array([[0.0, 1.0]]))
    >>> query.block(np.array([[-3.0], [1.0], [2.0], [2.5]]), None)
    array([[1., 1., 2.]])
    """

    cleaning: RowMap
    edges: Array
    label: str = "histograms of the columns"

    @property
    def magnitude(self) -> float:
        """Norm of one row's part."""
        return math.sqrt(len(self.edges))

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One histogram a column."""
        return (n_columns, self.edges.shape[1] + 1)

    def block(self, X: Array, y: Array | None) -> Array:
        """Counts of one block."""
        out = np.zeros(self.shape(X.shape[1]))
        for counts, edges, column in zip(out, self.edges, X.T, strict=True):
            counts += np.bincount(np.searchsorted(edges, column), minlength=len(counts))
        return out

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean; see the proof above."""
        return math.sqrt(2 * len(self.edges)) / n_rows


@dataclass(frozen=True, eq=False)
class Proportions:
    r"""Share of rows with x_j <= t for some public thresholds t of every column j.

    A row changes k d indicators by 1 at most: :math:`\sqrt{k d}` in l2 norm, attained by two rows
    below and above all thresholds.

    Parameters
    ----------
    cleaning : RowMap
    thresholds : ndarray of shape (k, d)

    Examples
    --------
    >>> Proportions(Cleaning(9.0), np.array([[0.0], [1.0]])).block(np.array([[-1.0], [0.5]]), None)
    array([[1.],
           [2.]])
    """

    cleaning: RowMap
    thresholds: Array
    label: str = "shares of rows below thresholds"

    @property
    def magnitude(self) -> float:
        """Norm of one row's part, at most."""
        return math.sqrt(self.thresholds.size)

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number a threshold."""
        return self.thresholds.shape

    def block(self, X: Array, y: Array | None) -> Array:
        """Counts of one block."""
        return np.array(
            [np.less_equal(X, line).sum(axis=0) for line in self.thresholds], dtype=np.float64
        )

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean; see the proof above."""
        return math.sqrt(self.thresholds.size) / n_rows


@dataclass(frozen=True, eq=False)
class Agreements:
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
    >>> query = Agreements(Cleaning(9.0), np.zeros(3))
    >>> query.block(np.array([[1.0, 2.0, -1.0], [1.0, 1.0, 1.0]]), None)
    array([2., 1., 1.])
    """

    cleaning: RowMap
    centres: Array
    label: str = "signs of pairs of columns"

    @property
    def magnitude(self) -> float:
        """Norm of one row's part, at most."""
        return math.sqrt(max(1, math.comb(len(self.centres), 2)))

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number a pair."""
        return (math.comb(n_columns, 2),)

    def block(self, X: Array, y: Array | None) -> Array:
        """Counts of one block."""
        signs = np.where(self.centres < X, 1.0, -1.0)
        first, second = pairs_of(X.shape[1])
        return (len(X) + (signs.T @ signs)[first, second]) / 2

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean; see the proof above."""
        return math.sqrt(max(1, len(self.centres) ** 2 // 4)) / n_rows


@dataclass(frozen=True, eq=False)
class TiltedRows:
    """Rows z(x) of a linear rule, of norm at most 1, and last a weight between 0 and 1.

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
    >>> rows = TiltedRows(rule, lambda X, y: 0.5 * np.abs(X[:, 0]))
    >>> rows(np.array([[0.0], [9.0]]), np.array([0.0, 1.0]))[0][:, -1]
    array([0., 1.])
    """

    rule: LinearRule
    weight: Weight

    @property
    def radius(self) -> float:
        """Bound on the norm of z."""
        return 1.0

    @cached_property
    def _map(self) -> Prepared:
        def prepare(X: Array, y: Array | None) -> tuple[Array, Array | None]:
            signs = np.zeros(len(X)) if y is None else np.where(y < 0, 0.0, 2 * y - 1)
            weights = np.clip(np.nan_to_num(self.weight(X, signs), nan=0.0), 0.0, 1.0)
            return np.column_stack([self.rule.embed(X), weights]), signs

        return Prepared(Cleaning(_LONGEST, classes=2), prepare, self.rule.width + 1)

    def __call__(self, X: Array, y: Array | None) -> tuple[Array, Array | None]:
        """Map one block; total and row by row."""
        return self._map(X, y)


@dataclass(frozen=True, eq=False)
class TiltedSlope:
    r"""Gradient in v of the logistic loss of tilted rows, each times its weight.

    One row contributes :math:`-w y z / (1 + e^{y \langle v, z \rangle})` with 0 <= w <= 1,
    :math:`\|z\| \le 1` and y in -1, 0, 1: a vector shorter than 1. Given v and the public weight
    function the other rows contribute the same to both samples, so the sum moves by less than 2 if
    a row is replaced, whatever the weights are divided by later on. Attained in the limit by
    two rows with label -1 far out on both sides of one column, whose constants are small but
    positive, and a large v that looks at the constant alone: both are wrong and pull with all
    their weight, to opposite sides.

    Parameters
    ----------
    cleaning : RowMap
        To rows (z, w): :class:`TiltedRows`.
    coefficients : ndarray of shape (p,)
        v.

    Examples
    --------
    >>> rule = LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1), clip=1.0)
    >>> query = TiltedSlope(TiltedRows(rule, lambda X, y: np.ones(len(X))), np.zeros(2))
    >>> query.block(np.array([[0.6, 0.8, 0.1]]), np.array([1.0]))
    array([-0.03, -0.04])
    """

    cleaning: RowMap
    coefficients: Array
    label: str = "gradient of tilted rows"
    magnitude: float = 1.0

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number a coefficient."""
        return self.coefficients.shape

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum over one block."""
        if y is None:
            return np.zeros(self.coefficients.shape)
        rows = X[:, :-1]
        pull = expit(-y * (rows @ self.coefficients)) * y * X[:, -1]
        return np.asarray(-(pull @ rows))

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean; see the proof above."""
        return 2.0 / n_rows
