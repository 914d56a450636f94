"""Shares of private rows in public cells: what is looked at before a scale is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpadapt.privacy import RowMap, RowMean

Array = npt.NDArray[np.float64]
Function = Callable[[Array, Array], Array]


@dataclass(frozen=True, eq=False)
class CellShares(RowMean):
    """Histogram: share of the rows whose number lies in each cell; one that is not finite is 0.

    A row counts 1 in one cell and 0 in all others. If it is replaced, one count falls by 1 and
    another rises by 1, or none changes: the shares move by sqrt(2) / n in Euclidean norm,
    however many cells there are; attained by rows of two cells.

    Parameters
    ----------
    cleaning : RowMap
    function : callable
        From cleaned rows and labels to one number for each row.
    edges : ndarray
        In ascending order; the first cell and the last one are open.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = CellShares(Cleaning(9.0), lambda X, y: X[:, 0], np.array([0.0, 1.0]))
    >>> query.block(np.array([[-5.0], [0.5], [0.7]]), None), round(query.sensitivity(10), 6)
    (array([1., 2., 0.]), 0.141421)
    """

    cleaning: RowMap
    function: Function
    edges: Array
    label: str = "shares of cells"

    @property
    def magnitude(self) -> float:
        """1."""
        return 1.0

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number for each cell."""
        return (len(self.edges) + 1,)

    def block(self, X: Array, y: Array | None) -> Array:
        """Number of rows in each cell."""
        numbers = self.function(X, np.zeros(len(X)) if y is None else y)
        places = np.searchsorted(self.edges, np.nan_to_num(numbers, posinf=0.0, neginf=0.0))
        return np.bincount(places, minlength=len(self.edges) + 1).astype(np.float64)

    def sensitivity(self, n_rows: int) -> float:
        """sqrt(2) / n."""
        return math.sqrt(2) / n_rows
