r"""Release of a kernel model on a public pool of points, with noise in the kernel's own space.

A model w of a kernel ERM moves by at most Delta, in the kernel's norm, when one private row is
replaced. Its predictions p = Phi_Z w at the T points of a public pool are whitened with the
Cholesky root of the pool's kernel matrix, K + jI = L L^T, and noised there:

    c^ = L^{-1} p + s_0 N(0, I),    alpha = L^{-T} c^,    w^ = sum_t alpha_t phi(z_t).

In terms of predictions the noise is N(0, s_0^2 (K + jI)).

What a release of c^ costs, and what rounding adds to it, is proved in
:func:`dpadapt.kernels.queries.whitened_sensitivity`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.least_squares import ball_multiplier
from dpadapt.privacy import shrink_factors
from dpadapt.privacy.mechanisms.gaussian import NUGGET


@dataclass(frozen=True, eq=False)
class Pool:
    """A public pool of points, through its kernel matrix; made by :meth:`of`.

    Attributes
    ----------
    gram : ndarray of shape (T, T)
        K, positive semidefinite.
    nugget : float
        j.
    root : ndarray of shape (T, T)
        L, lower triangular.

    Examples
    --------
    >>> Z = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]])
    >>> pool, w = Pool.of(Z @ Z.T), np.array([0.8, -0.6])
    >>> alpha = pool.coefficients(pool.whiten(Z @ w))
    >>> np.round(Z.T @ pool.within_ball(alpha, norm=1.0), 2)
    array([ 0.8, -0.6])
    """

    gram: FloatArray
    nugget: float
    root: FloatArray

    @classmethod
    def of(cls, gram: FloatArray, *, nugget: float = NUGGET) -> Pool:
        """Pool of the points whose kernel matrix this is.

        Parameters
        ----------
        gram : ndarray of float64, of shape (T, T)
            Of public points: what it lacks is told in an error.
        nugget : float, default=1e-6
            j over the mean of the diagonal; no less.
        """
        gram = _kernel_matrix(gram)
        if not NUGGET <= nugget < math.inf:
            raise ValueError(
                f"nugget must be at least {NUGGET:g}, or rounding leaks; got {nugget}."
            )
        mean = float(np.trace(gram)) / len(gram)
        identity = np.eye(len(gram))
        try:
            cholesky(gram + NUGGET / 2 * mean * identity, lower=True)  # of half of it: slack
        except LinAlgError:
            raise ValueError(
                "the kernel matrix of the pool is not positive semidefinite: no feature map has "
                "such inner products; choose another kernel."
            ) from None
        root = cholesky(gram + nugget * mean * identity, lower=True)
        return cls(gram, nugget * mean, np.asarray(root, dtype=np.float64))

    @property
    def size(self) -> int:
        """T, the number of points."""
        return len(self.gram)

    @property
    def bound(self) -> float:
        """Largest norm of a point's features, R on the pool."""
        return math.sqrt(float(self.gram.diagonal().max()))

    @cached_property
    def spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues of K, rising, negative ones of rounding set to 0; and its eigenvectors."""
        values, vectors = eigh(self.gram)
        return np.maximum(values, 0.0), np.asarray(vectors, dtype=np.float64)

    def check_within(self, bound: float) -> None:
        """Refuse a point of a larger norm than was stated: sensitivities would be wrong.

        Parameters
        ----------
        bound : float
        """
        if self.bound > bound:
            raise ValueError(
                f"a point of the pool has a norm of {self.bound:.6g}, above the bound {bound:g}; "
                "rescale the pool, or state a larger bound."
            )

    def whiten(self, predictions: FloatArray) -> FloatArray:
        """Whitened predictions, c = L^{-1} p; refuses anything but float64."""
        return np.asarray(solve_triangular(self.root, double(predictions), lower=True))

    def coefficients(self, whitened: FloatArray) -> FloatArray:
        """Coefficients alpha = L^{-T} c of the model that predicts K(z, Z) alpha."""
        return np.asarray(solve_triangular(self.root, whitened, lower=True, trans="T"))

    def norm(self, coefficients: FloatArray) -> float:
        """Norm, in the kernel's space, of the model with these coefficients (of all outputs)."""
        return math.sqrt(max(0.0, float(np.sum(coefficients * (self.gram @ coefficients)))))

    def within_ball(self, coefficients: FloatArray, norm: float) -> FloatArray:
        """Coefficients of the nearest model of norm C at most: where w* is known to be."""
        return np.asarray(coefficients * shrink_factors(self.norm(coefficients), norm))


def double(predictions: FloatArray) -> FloatArray:
    """Refuse predictions in anything but double precision.

    Examples
    --------
    >>> double(np.ones(2))
    array([1., 1.])
    """
    predictions = np.asarray(predictions)
    if predictions.dtype != np.float64:
        raise TypeError("predictions must be float64: rounding in float32 leaks.")
    return predictions


def _kernel_matrix(gram: FloatArray) -> FloatArray:
    gram = np.asarray(gram)
    if gram.dtype != np.float64:
        raise TypeError("the kernel matrix of the pool must be float64: rounding in float32 leaks.")
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not len(gram):
        raise ValueError(f"the kernel matrix of the pool must be square; got shape {gram.shape}.")
    if not np.isfinite(gram).all() or not np.trace(gram) > 0:
        raise ValueError("the kernel matrix of the pool must be finite, with a positive diagonal.")
    if np.abs(gram - gram.T).max() > 1e-9 * np.abs(gram).max():
        raise ValueError("the kernel matrix of the pool must be symmetric.")
    return (gram + gram.T) / 2


def nearest_in_ball(pool: Pool, targets: FloatArray, norm: float) -> FloatArray:
    r"""Coefficients of the model of norm C at most that fits the targets best.

    In the eigenvectors of K the minimiser is alpha = (K + l I)^{-1} t, with l = 0 if that lies in
    the ball and else the root of the secular equation |w(l)| = C; directions in which K vanishes
    cannot be fitted and get 0. With targets of shape (T, k) the ball is that of all outputs.

    Parameters
    ----------
    pool : Pool
    targets : ndarray of shape (T,) or (T, k)
    norm : float
        C.

    Examples
    --------
    >>> nearest_in_ball(Pool.of(np.eye(2)), np.array([3.0, 4.0]), norm=1.0).round(6)
    array([0.6, 0.8])
    """
    validate.positive("norm", norm)
    values, vectors = pool.spectrum
    kept = values > len(values) * float(np.finfo(np.float64).eps) * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    inner = vectors.T @ targets
    columns = (-1, *[1] * (inner.ndim - 1))
    penalty = ball_multiplier(values, np.sqrt(values).reshape(columns) * inner, norm)
    return np.asarray(vectors @ (inner / (values + penalty).reshape(columns)))
