"""Cleaned rows under a further public map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray

from ..core.cleaning import Cleaning
from ..core.quiet import muted
from ..rows.tables import Table
from ..rows.total import by_rows, taken

__all__ = ["Prepared"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Cleaned rows under a further public map: features, predictions of a public model, weights.

    The map must treat every row on its own. It gets finite rows; what it makes of them that is
    not finite becomes 0, and so does a row on which it fails; the others keep their last bits
    (:mod:`.total`). It must not change what it is given.

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
        results, failed = by_rows(lambda places: self._at(rows, labels, places), len(rows))
        if results is None:
            none = None if labels is None else np.zeros(len(rows))
            return np.zeros((len(rows), self.width)), none
        for each in results if failed.any() else ():
            if each is not None:
                each[failed] = 0.0
        return results[0], results[1]

    def _at(self, rows: FloatArray, labels: FloatArray | None, places: Any) -> tuple[Any, Any]:
        return self._map(taken(rows, places), taken(labels, places))

    def _map(self, X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        with muted():  # somebody's own model may print or log what it is given
            rows, labels = self.function(X, y)
            out = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
            if out.shape != (len(X), self.width):
                raise ValueError("the map must return one row for each row, of the stated width.")
            if labels is None:
                return out, None
            return out, np.nan_to_num(labels, nan=0.0, posinf=0.0, neginf=0.0)
