r"""Where minimisers live: explicit features, or the span of the rows by their kernel matrix.

**Rounding of the certificate of a kernel matrix** (:mod:`.gram`). r^T K r is off by at most
c u R^2 \|r\|_1^2, with c the number of roundings of a sum and of a kernel value (1024 are allowed
for each of these); this is added before the root. Where it would hide the norm, sqrt(n) R \|r\| is
the smaller bound. In the descents \|r\|_1 falls to twice beta R/lambda times the norm of the
gradient, so the added term is at most sqrt(4 c u) kappa times that norm: the certificate is reached
for every kappa up to 10^6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpadapt._types import FloatArray

from .constants import BLOCK, UNIT, Constants, summing

_WIDEST_FACTOR = 4000  # columns for which a Hessian is factorised


class Space(Protocol):
    """Where minimisers live: coefficients, their scores on the rows, and inner products."""

    rows: int
    size: int

    def scores(self, c: FloatArray) -> FloatArray:
        """Of the rows, for coefficients c."""

    def lift(self, r: FloatArray) -> FloatArray:
        """Coefficients of sum_i r_i phi_i."""

    def pairing(self, c: FloatArray, d: FloatArray, scores: FloatArray) -> FloatArray:
        """Terms whose sum is the inner product of c with d, whose scores are given."""

    def proved(self, c: FloatArray, g: FloatArray, joint: bool, facts: Constants) -> FloatArray:
        """Bound of the norm of the gradient g at c, less the rounding; inf if c is too far."""

    def preconditioner(
        self, weights: FloatArray, penalty: float
    ) -> Callable[[FloatArray], FloatArray] | None:
        """Approximate inverse of the Hessian with these weights of rows."""


def total(terms: FloatArray, joint: bool) -> FloatArray:
    """Sum of each column, or of all: one number for each problem, ready to broadcast.

    Examples
    --------
    >>> total(np.ones((3, 2)), joint=False)
    array([[3., 3.]])
    """
    return np.asarray(terms.sum(axis=None if joint else 0, keepdims=True))


class Explicit:
    """Features F of shape (n, D), dense or sparse by rows, in double precision.

    Examples
    --------
    >>> Explicit(np.array([[1.0], [2.0]])).lift(np.array([[1.0], [1.0]]))
    array([[3.]])
    """

    def __init__(self, features: Any) -> None:
        self.features = features.astype(np.float64, copy=False)
        self.rows, self.size = features.shape
        self._products: tuple[FloatArray, list[FloatArray]] | None = None  # of the last weights

    def scores(self, c: FloatArray) -> FloatArray:
        return np.asarray(self.features @ c)

    def lift(self, r: FloatArray) -> FloatArray:
        out = np.zeros((self.size, r.shape[1]))
        for start in range(0, self.rows, BLOCK):
            out += self.features[start : start + BLOCK].T @ r[start : start + BLOCK]
        return out

    def pairing(self, c: FloatArray, d: FloatArray, scores: FloatArray) -> FloatArray:
        return np.asarray(c * d)

    def proved(self, c: FloatArray, g: FloatArray, joint: bool, facts: Constants) -> FloatArray:
        near = np.sqrt(total(c * c, joint)) <= 2 * facts.norm_bound
        return np.where(near, np.sqrt(total(g * g, joint)), np.inf)

    def preconditioner(
        self, weights: FloatArray, penalty: float
    ) -> Callable[[FloatArray], FloatArray] | None:
        if self.size > min(_WIDEST_FACTOR, self.rows) or not isinstance(self.features, np.ndarray):
            return None
        if self._products is None or not np.array_equal(self._products[0], weights):
            self._products = weights, [self._weighted(column) for column in weights.T]
        penalised = penalty * np.eye(self.size)
        try:
            factors = [
                cho_factor(penalised + product, check_finite=False) for product in self._products[1]
            ]
        except np.linalg.LinAlgError:
            return None

        def apply(c: FloatArray) -> FloatArray:
            columns = [cho_solve(f, c[:, j], check_finite=False) for j, f in enumerate(factors)]
            return np.column_stack(columns)

        return apply

    def _weighted(self, weights: FloatArray) -> FloatArray:
        """F^T diag(weights) F / n."""
        out = np.zeros((self.size, self.size))
        active = np.flatnonzero(weights)
        for start in range(0, len(active), 4 * BLOCK):
            part = active[start : start + 4 * BLOCK]
            scaled = self.features[part] * np.sqrt(weights[part, None] / self.rows)
            out += scaled.T @ scaled
        return out


class KernelMatrix:
    """The span of n rows, by their kernel matrix: coefficients, scores and inner products.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric, in double precision; a view of a larger array will do.

    Examples
    --------
    >>> KernelMatrix(np.array([[2.0, 1.0], [1.0, 2.0]])).scores(np.array([[1.0], [0.0]])).ravel()
    array([2., 1.])
    """

    def __init__(self, matrix: FloatArray) -> None:
        self.matrix = matrix
        self.rows = self.size = len(matrix)

    def scores(self, c: FloatArray) -> FloatArray:
        """K c, summed in blocks."""
        out = np.zeros(c.shape)
        for start in range(0, self.rows, BLOCK):
            out += self.matrix[start : start + BLOCK].T @ c[start : start + BLOCK]
        return out

    def lift(self, r: FloatArray) -> FloatArray:
        """Coefficients are multiples of the rows already."""
        return r

    def pairing(self, c: FloatArray, d: FloatArray, scores: FloatArray) -> FloatArray:
        """c^T K d, from K d."""
        return np.asarray(c * scores)

    def proved(self, c: FloatArray, g: FloatArray, joint: bool, facts: Constants) -> FloatArray:
        """Bound of the norm of sum_i g_i phi(x_i), if the coefficients c are in their bounds."""
        lengths = np.abs(c) if not joint else np.sqrt((c * c).sum(axis=1, keepdims=True))
        near = lengths.sum(axis=0, keepdims=True) <= 2 * facts.lipschitz / facts.penalty
        loose = np.sqrt(self.rows * total(g * g, joint)) * facts.radius
        if (loose <= facts.target).all():  # spares a product
            return np.where(near, loose, np.inf)
        square = np.maximum(total(g * self.scores(g), joint), 0.0)
        hidden = (2 * summing(self.rows) + BLOCK) * UNIT * facts.radius**2
        off = hidden * total(np.abs(g).sum(axis=0, keepdims=True) ** 2, joint)
        return np.where(near, np.minimum(loose, np.sqrt(square + off)), np.inf)

    def preconditioner(
        self, weights: FloatArray, penalty: float
    ) -> Callable[[FloatArray], FloatArray] | None:
        """None: the inner product of the kernel is preconditioning enough."""
        return None
