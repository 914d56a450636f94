"""Gradients of the logistic loss over the curator's rows, weighted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.softmax import softmax
from dpadapt.privacy import RowMap

from ..doors.weighted import WeightedMean

_SHORTER = 1e-12  # by which residuals of many classes are shortened: above what rounding adds


@dataclass(frozen=True, eq=False)
class WeightedSlope(WeightedMean):
    r"""Gradient of the weighted logistic loss of a linear rule in its coefficients v.

    One row contributes :math:`g(z, y) = -y \, z / (1 + e^{y \langle v, z \rangle})`, and 0 if it is
    of no class. :math:`\|z\| \le 1` gives :math:`\|g\| < 1`, so with weights
    :math:`\mu_i \le q` the sum moves by at most 2 q if a row is replaced (overlap lemma,
    ``doors.weights``). Attained in the limit of a large v: two rows on its wrong side,
    almost orthogonal to it and opposite to each other, pull with all their weight to either side.

    Parameters
    ----------
    cleaning : RowMap
        To rows z of norm at most 1 and labels -1, 0, 1.
    coefficients : ndarray of shape (p,)
        v.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = WeightedSlope(Cleaning(1.0), np.zeros(2))
    >>> query.weighted_block(np.array([[0.6, 0.8]]), np.array([1.0]), np.array([0.1]))
    array([-0.03, -0.04])
    >>> query.sensitivity(100)
    0.02
    """

    cleaning: RowMap
    coefficients: FloatArray
    label: str = "weighted gradient"
    magnitude: float = 1.0

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number for each coefficient."""
        return (len(self.coefficients),)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of the gradients, unweighted."""
        return self.weighted_block(X, y, np.ones(len(X)))

    def weighted_block(
        self, X: FloatArray, y: FloatArray | None, weights: FloatArray
    ) -> FloatArray:
        """Sum of the gradients, each times its weight."""
        if y is None:
            return np.zeros(len(self.coefficients))
        pull = X @ self.coefficients
        pull *= y
        with np.errstate(over="ignore"):  # of a row that v is right about: it does not pull
            np.exp(pull, out=pull)
        pull += 1.0
        np.divide(y, pull, out=pull)
        pull *= weights
        return np.asarray(-(pull @ X))

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean over equally weighted rows."""
        return 2 / n_rows


@dataclass(frozen=True, eq=False)
class WeightedJointSlope(WeightedMean):
    r"""Gradient of the weighted joint logistic loss of c > 2 classes in the coefficients V.

    One row contributes :math:`G(z, y) = z\, r^T` with :math:`r = p - e_y` and
    :math:`p = \mathrm{softmax}(V^T z)`, and 0 if it is of no class. Only the entry of y in r is
    negative, and the others sum to its size, so that
    :math:`\|r\|^2 = (1 - p_y)^2 + \sum_{j \ne y} p_j^2 \le 2 (1 - p_y)^2 \le 2`.
    :math:`\|z\| \le 1` gives :math:`\|G\| \le \sqrt 2` in the Frobenius norm, so with weights
    :math:`\mu_i \le q` the sum moves by at most :math:`2 \sqrt 2\, q` if a row is replaced, label
    and all (overlap lemma, ``doors.weights``); however many classes there are. Attained in
    the limit of a large V that looks at the constant alone: two rows far out on both sides of one
    column, both taken for another class than they are of. Computed residuals are shortened by one
    part in 1e12, more than their rounding can lengthen them.

    Parameters
    ----------
    cleaning : RowMap
        To rows z of norm at most 1 and labels 0 (none), 1, 2, ..., c.
    coefficients : ndarray of shape (p, c)
        V.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = WeightedJointSlope(Cleaning(1.0), np.zeros((2, 4)))
    >>> query.weighted_block(np.array([[0.6, 0.8]]), np.array([1.0]), np.array([0.1])).round(3)
    array([[-0.045,  0.015,  0.015,  0.015],
           [-0.06 ,  0.02 ,  0.02 ,  0.02 ]])
    >>> round(query.sensitivity(100), 4)
    0.0283
    """

    cleaning: RowMap
    coefficients: FloatArray
    label: str = "weighted joint gradient"
    magnitude: float = math.sqrt(2.0)

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number for each coefficient."""
        return self.coefficients.shape

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of the gradients, unweighted."""
        return self.weighted_block(X, y, np.ones(len(X)))

    def weighted_block(
        self, X: FloatArray, y: FloatArray | None, weights: FloatArray
    ) -> FloatArray:
        """Sum of the gradients, each times its weight."""
        if y is None:
            return np.zeros(self.coefficients.shape)
        pull = softmax(X @ self.coefficients)
        places = y.astype(np.intp)
        pull[np.arange(len(X)), places - 1] -= 1.0  # a place -1 is the last column, weighed 0
        pull *= np.where(places > 0, (1 - _SHORTER) * weights, 0.0)[:, None]
        return np.asarray(X.T @ pull)

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean over equally weighted rows."""
        return 2 * math.sqrt(2.0) / n_rows
