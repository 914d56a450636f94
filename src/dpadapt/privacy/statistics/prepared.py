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
from ..rows.row_wise import ours, row_wise
from ..rows.tables import Table

LEAST_LENGTH = 1e-150


@dataclass(frozen=True, eq=False)
class Prepared:
    """Cleaned rows under a further public map: features, predictions of a public model, weights.

    It gets finite rows: all rows of a block if everything it is made of is known to treat every row
    on its own, else one row a call (:mod:`.foreign`). What it makes of them that is not finite
    becomes 0, and so does a row on which it fails.

    Parameters
    ----------
    cleaning : Cleaning or Prepared
        Of prepared rows: what these were made with (experts, say) is not computed again where a
        session has kept them.
    function : callable
        From cleaned (X, y) to the prepared rows, an array with ``width`` columns, and labels.
    width : int
    measured : int, default=0
        If positive, the last column is the length of so many first ones, taken here, whatever the
        function puts there.

    Examples
    --------
    >>> prepared = Prepared(Cleaning(radius=5.0), lambda X, y: (X[:, :1] ** 2, y), width=1)
    >>> prepared(np.array([[3.0, 1.0], [np.nan, 0.0]]), None)[0]
    array([[9.],
           [0.]])
    """

    cleaning: Cleaning | Prepared
    function: Callable[[FloatArray, FloatArray | None], tuple[FloatArray, FloatArray | None]]
    width: int
    measured: int = 0

    def __post_init__(self) -> None:
        check_map(self.cleaning)
        if not 0 <= self.measured < max(1, self.width):
            raise ValueError(
                f"measured must be at least 0 and below width, the last column being the length; "
                f"got {self.measured!r}."
            )

    @property
    def radius(self) -> float:
        """Of the cleaning."""
        return self.cleaning.radius

    @property
    def made_of(self) -> Prepared | None:
        """The prepared rows that it is made of; None for cleaned ones."""
        return self.cleaning if type(self.cleaning) is Prepared else None

    @property
    def cleaned(self) -> Cleaning:
        """How rows are cleaned before all else."""
        below = self.cleaning
        return below.cleaned if isinstance(below, Prepared) else below

    def __call__(self, X: Table, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """Clean one block, and map it."""
        return self.further(*self.cleaning(X, y))

    def further(
        self, rows: FloatArray, labels: FloatArray | None
    ) -> tuple[FloatArray, FloatArray | None]:
        """Map one block that is cleaned, or prepared, already."""
        foreign = not row_wise(self.function)
        finish = partial(self._finish, foreign, labels is not None)
        results, failed = apply(self.function, (rows, labels), len(rows), finish)
        if results is None:
            none = None if labels is None else np.zeros(len(rows))
            return np.zeros((len(rows), self.width)), none
        for each in results if failed.any() else ():
            if each is not None:
                each[failed] = 0.0
        if self.measured:
            results[0][:, -1] = lengths_of(results[0][:, : self.measured])
        return results[0], results[1]

    def _finish(
        self, foreign: bool, labelled: bool, found: Any, count: int
    ) -> tuple[FloatArray, FloatArray | None]:
        rows, labels = found
        if foreign and not labelled:  # for every row alike
            labels = None
        plain = np.asarray(rows, dtype=np.float64)
        out = np.nan_to_num(plain, nan=0.0, posinf=0.0, neginf=0.0)
        if out.shape != (count, self.width):
            raise ValueError("the map must return one row for each row, of the stated width.")
        if foreign and labelled and np.shape(labels) != (count,):
            raise ValueError("the map must return one label for each row that has one.")
        if labels is None:
            return out, None
        return out, np.nan_to_num(labels, nan=0.0, posinf=0.0, neginf=0.0)


def lengths_of(rows: FloatArray) -> FloatArray:
    """Length of every finite row, and 1e-150 for one that is shorter: its squares underflow.

    Examples
    --------
    >>> lengths_of(np.array([[3.0, 4.0], [0.0, 1e-200], [1e200, 0.0]]))
    array([5.e+000, 1.e-150,     inf])
    """
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.asarray(np.maximum(lengths, LEAST_LENGTH, out=lengths))


def check_map(cleaning: Any) -> None:
    """Refuse a map of rows that is not of this library, or that begins with one.

    Examples
    --------
    >>> check_map(Cleaning(1.0))
    >>> check_map(abs)
    Traceback (most recent call last):
    ...
    TypeError: cleaning must be a map of this library, so that every row is cleaned by itself; \
got builtin_function_or_method. Put a map of yours into Prepared.
    """
    kind: Any = type(cleaning)
    if not ours(kind):
        raise TypeError(
            f"cleaning must be a map of this library, so that every row is cleaned by itself; "
            f"got {kind.__name__}. Put a map of yours into Prepared."
        )
    if hasattr(cleaning, "cleaning"):
        check_map(cleaning.cleaning)
