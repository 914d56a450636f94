"""Rows as directions from a public centre: a public map that needs no bound on their length."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray

from ..core.cleaning import Cleaning
from ..rows.tables import Table, fill


@dataclass(frozen=True, eq=False)
class Directions:
    r"""Directions of rows from a public center, with a constant: rows of norm 1 at most.

    A row becomes :math:`(u, b) / \sqrt{1 + b^2}` with :math:`u = (x - m) / \|x - m\|`; u is 0 if
    the row is the center. A cell that is not finite counts as the center's.

    Parameters
    ----------
    center, scale : array of shape (d,)
        m, and the units of the columns; public.
    bias : float
        b.
    classes : int
        Number of classes, as in :class:`Cleaning`.
    dtype : dtype, default=float64
        Of the rows that come out, in row-major order.

    Examples
    --------
    >>> rows = Directions(np.zeros(2), np.ones(2), bias=0.75, classes=2)
    >>> rows(np.array([[3.0, 4.0], [0.0, 0.0], [np.inf, 2.0]]), None)[0]
    array([[0.48, 0.64, 0.6 ],
           [0.  , 0.  , 0.6 ],
           [0.  , 0.8 , 0.6 ]])
    """

    center: FloatArray
    scale: FloatArray
    bias: float
    classes: int
    dtype: Any = np.float64

    def __post_init__(self) -> None:
        for name in ("center", "scale"):  # an array of another kind could act on all rows
            given = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, given)

    @property
    def radius(self) -> float:
        """1: no row is longer."""
        return 1.0

    def __call__(self, X: Table, y: FloatArray | None) -> tuple[Any, FloatArray | None]:
        """Map one block; total and row by row."""
        out = np.empty((X.shape[0], X.shape[1] + 1), dtype=self.dtype)
        with np.errstate(all="ignore"):
            rows = np.empty(X.shape)
            fill(rows, X)
            rows -= self.center
            if (self.scale != 1).any():
                rows /= self.scale
            squares = np.einsum("ij,ij->i", rows, rows)
            odd = np.flatnonzero(~((squares > 1e-200) & (squares < 1e200)))
            if odd.size:
                rows[odd] = _measured(rows[odd])
                squares[odd] = np.maximum(np.einsum("ij,ij->i", rows[odd], rows[odd]), 0.25)
            length = math.hypot(1.0, self.bias)
            factors = 1 / (np.sqrt(squares) * length)
            np.multiply(rows, factors[:, None], out=out[:, :-1], casting="same_kind")
            out[:, -1] = self.bias / length
            return out, Cleaning(1.0, classes=self.classes).labels(y)


def _measured(rows: FloatArray) -> FloatArray:
    """Rows whose squares are no floats, in units of their largest cell; what is not finite is 0."""
    finite = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    largest = np.abs(finite).max(axis=1, initial=0.0, keepdims=True)
    return np.asarray(finite / np.maximum(largest, 1e-300))
