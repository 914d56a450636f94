"""Means of bounded public functions of private rows: what the private step looks at, with proofs.

Each statistic cuts what one row contributes, whatever the row is, so that replacing it moves the
mean by a known amount. The function is public (it may depend on what was released before) and
treats every row on its own; what it gives that is not finite counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy import RowMap, RowMean, shrink_factors

Function = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class MeanNumber(RowMean):
    """Mean of a number of each row, cut to an interval.

    Two numbers of [low, high] are high - low apart at most, so the mean of n moves by
    (high - low) / n if one row is replaced; attained by rows at the two ends.

    Parameters
    ----------
    cleaning : RowMap
    function : callable
        From cleaned rows and labels to one number for each row.
    low, high : float

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = MeanNumber(Cleaning(9.0), lambda X, y: X[:, 0] - y, -1.0, 1.0)
    >>> query.block(np.array([[5.0], [0.5]]), np.zeros(2)), query.sensitivity(10)
    (array([1.5]), 0.2)
    """

    cleaning: RowMap
    function: Function
    low: float
    high: float
    label: str = "mean number"

    @property
    def magnitude(self) -> float:
        """The end that is farther from 0."""
        return max(abs(self.low), abs(self.high))

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number."""
        return (1,)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of the cut numbers."""
        numbers = _finite(self.function(X, _labels(X, y)))
        return np.array([np.clip(numbers, self.low, self.high).sum()])

    def sensitivity(self, n_rows: int) -> float:
        """(high - low) / n."""
        return (self.high - self.low) / n_rows


@dataclass(frozen=True, eq=False)
class MeanVector(RowMean):
    """Mean of a vector of each row, shrunk to a length of L at most.

    Two vectors of a ball of radius L are 2L apart at most, so the mean of n moves by 2L / n;
    attained by opposite ones.

    Parameters
    ----------
    cleaning : RowMap
    function : callable
        From cleaned rows and labels to ``size`` numbers for each row.
    size : int
    length : float
        L.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = MeanVector(Cleaning(99.0), lambda X, y: X, size=2, length=1.0)
    >>> query.block(np.array([[3.0, 4.0]]), None).round(6), query.sensitivity(10)
    (array([0.6, 0.8]), 0.2)
    """

    cleaning: RowMap
    function: Function
    size: int
    length: float
    label: str = "mean vector"

    @property
    def magnitude(self) -> float:
        """L."""
        return self.length

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One vector."""
        return (self.size,)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of the shrunk vectors."""
        return np.asarray(shrunk(self.function(X, _labels(X, y)), self.length).sum(axis=0))

    def sensitivity(self, n_rows: int) -> float:
        """2L / n."""
        return 2 * self.length / n_rows


def shrunk(vectors: FloatArray, length: float) -> FloatArray:
    """Rows shrunk to a length at most; one that is not finite becomes 0."""
    finite = _finite(vectors)
    largest = np.maximum(np.abs(finite).max(axis=1, keepdims=True, initial=0.0), 1e-300)
    direction = finite / largest  # no square of it overflows
    norms = np.maximum(np.sqrt(np.einsum("ij,ij->i", direction, direction)), 1.0)[:, None]
    return direction * np.minimum(largest, length * shrink_factors(norms, 1.0))


def _finite(values: FloatArray) -> FloatArray:
    return np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def _labels(X: FloatArray, y: FloatArray | None) -> FloatArray:
    return np.zeros(len(X)) if y is None else y
