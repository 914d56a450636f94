"""How often a model of classes is wrong on private rows: one number, with its proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy import RowMap, RowMean


@dataclass(frozen=True, eq=False)
class ErrorRate(RowMean):
    """Share of rows whose highest score is not that of their class.

    A row counts 0 or 1, whatever it and its label are: a score that is no number is never the
    highest, and a row of no class counts 0. Two such counts are 1 apart at most, so the mean of n
    moves by 1/n if one row is replaced; attained by a row that is right and one that is wrong.

    Parameters
    ----------
    cleaning : RowMap
        Gives rows that hold the scores of all classes.
    first : int
        Column of the first class's score.
    classes : int

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = ErrorRate(Cleaning(9.0, classes=2), first=0, classes=2)
    >>> query.block(np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 1.0]]), np.array([0.0, 0.0, -1.0]))
    array([1.])
    >>> query.sensitivity(10)
    0.1
    """

    reads_labels: ClassVar[bool] = True
    cleaning: RowMap
    first: int
    classes: int
    label: str = "error rate"

    @property
    def magnitude(self) -> float:
        """1."""
        return 1.0

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number."""
        return (1,)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Number of wrong rows."""
        if y is None:
            return np.zeros(1)
        scores = X[:, self.first : self.first + self.classes]
        highest = np.where(np.isnan(scores), -np.inf, scores).argmax(axis=1)
        return np.array([float(np.sum((highest != y) & (y >= 0)))])

    def sensitivity(self, n_rows: int) -> float:
        """1/n."""
        return 1 / n_rows
