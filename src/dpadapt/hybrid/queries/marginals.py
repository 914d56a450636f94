"""Where the curator's rows are: histograms and shares of every column, signs of pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpadapt._types import FloatArray
from dpadapt.privacy import RowMap, RowMean


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
class Histograms(RowMean):
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
    >>> from dpadapt.privacy import Cleaning
    >>> query = Histograms(Cleaning(9.0), np.array([[0.0, 1.0]]))
    >>> query.block(np.array([[-3.0], [1.0], [2.0], [2.5]]), None)
    array([[1., 1., 2.]])
    """

    cleaning: RowMap
    edges: FloatArray
    label: str = "histograms of the columns"

    @property
    def magnitude(self) -> float:
        """Norm of one row's part."""
        return math.sqrt(len(self.edges))

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One histogram a column."""
        return (n_columns, self.edges.shape[1] + 1)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Counts of one block."""
        out = np.zeros(self.shape(X.shape[1]))
        for counts, edges, column in zip(out, self.edges, X.T, strict=True):
            counts += np.bincount(np.searchsorted(edges, column), minlength=len(counts))
        return out

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean; see the proof above."""
        return math.sqrt(2 * len(self.edges)) / n_rows


@dataclass(frozen=True, eq=False)
class Proportions(RowMean):
    r"""Share of rows with x_j <= t for some public thresholds t of every column j.

    A row changes k d indicators by 1 at most: :math:`\sqrt{k d}` in l2 norm, attained by two rows
    below and above all thresholds.

    Parameters
    ----------
    cleaning : RowMap
    thresholds : ndarray of shape (k, d)

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> Proportions(Cleaning(9.0), np.array([[0.0], [1.0]])).block(np.array([[-1.0], [0.5]]), None)
    array([[1.],
           [2.]])
    """

    cleaning: RowMap
    thresholds: FloatArray
    label: str = "shares of rows below thresholds"

    @property
    def magnitude(self) -> float:
        """Norm of one row's part, at most."""
        return math.sqrt(self.thresholds.size)

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number a threshold."""
        return self.thresholds.shape

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Counts of one block."""
        return np.array(
            [np.less_equal(X, line).sum(axis=0) for line in self.thresholds], dtype=np.float64
        )

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean; see the proof above."""
        return math.sqrt(self.thresholds.size) / n_rows


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
