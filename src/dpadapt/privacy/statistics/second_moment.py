"""The second moment of private rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpadapt._types import FloatArray

from ..core.cleaning import Cleaning
from ..core.statistic import RowMean

_PIECE = 1024  # rows


@dataclass(frozen=True)
class SecondMoment(RowMean):
    """Mean of z z^T over the private rows, z the cleaned row with its intercept.

    Frobenius sensitivity under replace-one. Let |x| <= r be the cleaned row, c its intercept,
    R^2 = r^2 + c^2. For z = (x, c) and z' = (x', c), with u = |x|, v = |x'| and t the cosine
    between x and x',

        |z z^T - z' z'^T|_F^2 = |z|^4 + |z'|^4 - 2 (z.z')^2.                                  (1)

    The right-hand side is at most 2 R^4, with equality when z and z' are orthogonal vectors of
    length R, which needs c <= r: sensitivity sqrt(2) R^2 / n, attained.

    If c > r, orthogonality is out of reach. (1) equals (u^2 - v^2)^2 + 2 u^2 v^2 (1 - t^2)
    + 2 c^2 (u^2 + v^2 - 2 u v t), whose derivative in t is -4 u v (u v t + c^2) < 0, so t = -1 is
    worst: (u + v)^2 ((u - v)^2 + 2 c^2). With p = |u - v|, u + v <= 2r - p, and
    (2r - p)^2 (p^2 + 2 c^2) falls in p on [0, r] because -p^2 + r p - c^2 < 0. Hence p = 0 and
    (1) <= 8 c^2 r^2: sensitivity sqrt(8) c r / n, attained at x' = -x, |x| = r.

    Parameters
    ----------
    cleaning : Cleaning
        Holds r (``radius``) and c (``intercept``).

    Examples
    --------
    >>> query = SecondMoment(Cleaning(radius=2.0))
    >>> query.block(np.array([[1.0, 0.0], [0.0, 2.0]]), None)
    array([[1., 0.],
           [0., 4.]])
    >>> query.sensitivity(100) == math.sqrt(2) * 4 / 100
    True
    """

    cleaning: Cleaning
    label: str = "second moment"

    def __post_init__(self) -> None:
        if type(self.cleaning) is not Cleaning:  # whose rows are as long as it says
            raise TypeError(f"cleaning must be a Cleaning; got {type(self.cleaning).__name__}.")

    @property
    def magnitude(self) -> float:
        """R^2 = radius^2 + intercept^2."""
        return self.cleaning.radius**2 + self.cleaning.intercept**2

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Square, one row and column for each feature and one for an intercept."""
        size = n_columns + (self.cleaning.intercept != 0)
        return (size, size)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of z z^T."""
        return _gram(X)

    def sensitivity(self, n_rows: int) -> float:
        """Frobenius sensitivity of the mean; see the proof above."""
        r, c = self.cleaning.radius, abs(self.cleaning.intercept)
        largest = math.sqrt(2) * (r**2 + c**2) if c <= r else math.sqrt(8) * c * r
        return largest / n_rows


def _gram(X: FloatArray) -> FloatArray:
    """X^T X. For few columns in short pieces: BLAS is made for large matrices, and twice as slow.

    Two halves of the columns, because numpy gives a matrix times its own transpose to a routine
    that is slower still; short pieces stay on one thread, and leave the others to who reads rows.
    """
    rows, columns = X.shape
    if not 2 <= columns <= 32 or rows < _PIECE:
        return np.asarray(X.T @ X)
    whole = rows - rows % _PIECE
    pieces = X[:whole].T.reshape(columns, -1, _PIECE).transpose(1, 0, 2)
    halves = (pieces[:, : columns // 2], pieces[:, columns // 2 :])
    sums = [np.matmul(half, pieces.transpose(0, 2, 1)).sum(axis=0) for half in halves]
    upper = np.triu(np.concatenate(sums) + X[whole:].T @ X[whole:])
    return upper + np.triu(upper, 1).T  # symmetric to the last bit
