r"""Second moments of rows with a label, of bounded length: how far one row moves them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpadapt.privacy import PrivacyError, RowMap, RowMean

__all__ = ["BoundedMoment"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BoundedMoment(RowMean):
    r"""Mean of z z^T over private rows, z = (x, y), of length ``bound`` at most.

    Frobenius sensitivity under replace-one: with |z| <= b for both rows,

    .. math:: \|z z^T - z' z'^T\|_F^2 = |z|^4 + |z'|^4 - 2 (z \cdot z')^2 \le 2 b^4,

    so the mean moves by :math:`\sqrt2\,b^2 / n` at most, attained by orthogonal rows of full
    length.

    Parameters
    ----------
    cleaning : RowMap
        Gives the rows and labels; the label is already weighted.
    width : int
        Entries of z.
    bound : float

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = BoundedMoment(Cleaning(radius=1.0), width=2, bound=2.0)
    >>> query.block(np.array([[1.0], [0.5]]), np.array([1.0, -1.0]))
    array([[1.25, 0.5 ],
           [0.5 , 2.  ]])
    >>> round(query.sensitivity(100) / math.sqrt(2), 9)
    0.04
    """

    reads_labels: ClassVar[bool] = True
    cleaning: RowMap
    width: int
    bound: float
    label: str = "labelled second moment"

    @property
    def magnitude(self) -> float:
        """Frobenius norm of one row's contribution, at most."""
        return self.bound**2

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Square."""
        return (self.width, self.width)

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum of z z^T."""
        if y is None:
            raise PrivacyError("the private sample must have labels: Private(X, y).")
        Z = np.column_stack([X, y])
        moment: Array = Z.T @ Z
        return moment

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean, in the Frobenius norm."""
        return math.sqrt(2) * self.bound**2 / n_rows
