"""Cleaned rows under a further public map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpadapt._types import FloatArray

from ..core.cleaning import Cleaning
from ..rows.foreign import apply
from ..rows.row_wise import row_wise
from ..rows.tables import Table


@dataclass(frozen=True, eq=False)
class Prepared:
    """Cleaned rows under a further public map: features, predictions of a public model, weights.

    It gets finite rows: all rows of a block if everything it is made of is known to treat every row
    on its own, else one row a call (:mod:`.foreign`). What it makes of them that is not finite
    becomes 0, and so does a row on which it fails.

    Parameters
    ----------
    cleaning : Cleaning
    function : callable
        From cleaned (X, y) to the prepared rows, an array with ``width`` columns, and labels.
    width : int

    Examples
    --------
    >>> prepared = Prepared(Cleaning(radius=5.0), lambda X, y: (X[:, :1] ** 2, y), width=1)
    >>> prepared(np.array([[3.0, 1.0], [np.nan, 0.0]]), None)[0]
    array([[9.],
           [0.]])
    """

    cleaning: Cleaning
    function: Callable[[FloatArray, FloatArray | None], tuple[FloatArray, FloatArray | None]]
    width: int

    @property
    def radius(self) -> float:
        """Of the cleaning."""
        return self.cleaning.radius

    def __call__(self, X: Table, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """Clean one block, and map it."""
        rows, labels = self.cleaning(X, y)
        foreign = not row_wise(self.function)
        finish = partial(self._finish, foreign, labels is not None)
        results, failed = apply(self.function, (rows, labels), len(rows), finish)
        if results is None:
            none = None if labels is None else np.zeros(len(rows))
            return np.zeros((len(rows), self.width)), none
        for each in results if failed.any() else ():
            if each is not None:
                each[failed] = 0.0
        return results[0], results[1]

    def _finish(
        self, foreign: bool, labelled: bool, found: Any, count: int
    ) -> tuple[FloatArray, FloatArray | None]:
        rows, labels = found
        if foreign and not labelled:  # for every row alike
            labels = None
        out = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
        if out.shape != (count, self.width):
            raise ValueError("the map must return one row for each row, of the stated width.")
        if foreign and labelled and np.shape(labels) != (count,):
            raise ValueError("the map must return one label for each row that has one.")
        if labels is None:
            return out, None
        return out, np.nan_to_num(labels, nan=0.0, posinf=0.0, neginf=0.0)
