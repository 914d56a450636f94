r"""Release of a kernel model on a public pool of points, with noise in the kernel's own space.

A model w of a kernel ERM moves by at most Delta, in the kernel's norm, when one private row is
replaced. Its predictions p = Phi_Z w at the T points of a public pool are whitened with the
Cholesky root of the pool's kernel matrix, K + jI = L L^T, and noised there:

    c^ = L^{-1} p + s_0 N(0, I),    alpha = L^{-T} c^,    w^ = sum_t alpha_t phi(z_t).

In terms of predictions the noise is N(0, s_0^2 (K + jI)).

**Sensitivity** (a Mahalanobis distance). c - c' = L^{-1} Phi_Z (w - w'), and Phi_Z Phi_Z^T = K is
at most L L^T, so that the operator L^{-1} Phi_Z has norm at most 1 and |c - c'| <= |w - w'| <=
Delta: whatever the number of points, and attained where phi(z) spans w - w' and j is small. With k
outputs w is a matrix, |w - w'| its Frobenius norm, and the same proof holds.

**Rounding.** If each computed prediction is within e of the exact one, c is within sqrt(T) e /
sqrt(lambda_min(L L^T)) of its exact value: the near-singular K amplifies rounding, up to
1/sqrt(j). That is why j is at least 1e-6 tr(K)/T, why float32 is refused (rounding of p at 6e-8
multiplied by a thousand exceeds Delta for many rows), and why
:meth:`Pool.sensitivity` adds, twice, once for each neighbour,

- sqrt(2 T / j) e for the predictions (lambda_min is j, and j/2 if K itself is rounded), and
- u T cond(L) |w| for the triangular solve (backward stable; u the unit of float64).

The root is not exact either, but L L^T >= K is all that the proof needs, and the errors of K and
of its root, of order u T tr(K), are below j/2 for pools of up to 40,000 points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

from dpadapt.privacy import Grant, Hidden, Request, Session
from dpadapt.privacy import _validate as validate
from dpadapt.privacy.mechanisms import NUGGET

__all__ = ["Pool", "sum_error"]

Array = NDArray[np.float64]
Predict = Callable[[Array], Array]
_UNIT = float(np.finfo(np.float64).eps)


def sum_error(terms: int, magnitude: float) -> float:
    r"""Rounding error, at most, of a sum of products in float64.

    Whatever the order of summation, :math:`\sum_i a_i K(z, x_i)` over n rows is within
    (n + 8) u :math:`\sum_i |a_i K(z, x_i)|` of its exact value, entries of relative error 8u
    included. In a kernel ERM :math:`|a_i| \le L / (\lambda n)`, so that the magnitude is at most
    :math:`L R^2 / \lambda`; for explicit features it is at most C R.

    Parameters
    ----------
    terms : int
        How many products are added: rows, or features.
    magnitude : float
        Public bound on the sum of their absolute values.

    Examples
    --------
    >>> sum_error(10_000, 50.0) < 2e-10
    True
    """
    return (validate.count("terms", terms) + 8) * _UNIT * validate.positive("magnitude", magnitude)


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
    Predictions of a mean of private rows (linear kernel, rows in the unit ball: replacing one of
    n moves the mean by at most 2/n), released at four points and turned into a model:

    >>> from dpadapt.privacy import Cleaning, Private
    >>> Z = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]])
    >>> pool = Pool.of(Z @ Z.T)
    >>> private = Private(np.tile([0.8, -0.6], (5000, 1)))
    >>> with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
    ...     rows = session.hide_rows(Cleaning(radius=1.0))
    ...     request = pool.request(2 / 5000, norm=1.0, error=sum_error(2, 1.0))
    ...     (grant,) = session.plan(request)
    ...     alpha = pool.release(session, grant, rows, lambda X: Z @ X.mean(axis=0))
    >>> np.round(Z.T @ pool.within_ball(alpha, norm=1.0), 2)
    array([ 0.8, -0.6])
    """

    gram: Array
    nugget: float
    root: Array

    @classmethod
    def of(cls, gram: Array, *, nugget: float = NUGGET) -> Pool:
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
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues of K, rising, negative ones of rounding set to 0; and its eigenvectors."""
        values, vectors = eigh(self.gram)
        return np.maximum(values, 0.0), np.asarray(vectors, dtype=np.float64)

    # the release

    def sensitivity(self, model: float, *, norm: float, error: float, outputs: int = 1) -> float:
        """Sensitivity of the whitened predictions, with what rounding can do.

        Parameters
        ----------
        model : float
            Delta: by how much the model moves, in the kernel's norm, jointly over all outputs.
        norm : float
            C, bound on the norm of the model; public.
        error : float
            e, bound on the rounding error of one prediction (:func:`sum_error`); public.
        outputs : int, default=1
            k.
        """
        validate.positive("model", model)
        validate.positive("norm", norm)
        validate.non_negative("error", error)
        numbers = self.size * validate.count("outputs", outputs)
        least = self.nugget / 2
        condition = math.sqrt((float(np.trace(self.gram)) + self.nugget) / least)
        solve = (self.size + 8) * _UNIT * condition * norm
        return model + 2 * (math.sqrt(numbers / least) * error + solve)

    def request(
        self,
        model: float,
        *,
        norm: float,
        error: float,
        outputs: int = 1,
        weight: float = 1.0,
        label: str = "predictions at the pool",
    ) -> Request:
        """What to plan for :meth:`release`; for the arguments see :meth:`sensitivity`."""
        total = self.sensitivity(model, norm=norm, error=error, outputs=outputs)
        return Request("gaussian", label, total, self.size * outputs, weight=weight)

    def whiten(self, predictions: Array) -> Array:
        """Whitened predictions, c = L^{-1} p; refuses anything but float64."""
        predictions = np.asarray(predictions)
        if predictions.dtype != np.float64:
            raise TypeError("predictions must be float64: rounding in float32 leaks.")
        return np.asarray(solve_triangular(self.root, predictions, lower=True))

    def release(self, session: Session, grant: Grant, hidden: Hidden, predict: Predict) -> Array:
        """Release the model on the pool: its coefficients alpha.

        Parameters
        ----------
        session : Session
        grant : Grant
            Of :meth:`request`.
        hidden : Hidden
        predict : callable
            From the hidden value to the predictions p at the pool, float64, of shape (T,) or
            (T, k). Run by the session, once; must not fail on any value.

        Returns
        -------
        ndarray of shape (T,) or (T, k)
            alpha; the model predicts K(z, Z) alpha.
        """
        noisy = session.gaussian(grant, hidden, lambda value: self.whiten(predict(value)))
        return np.asarray(solve_triangular(self.root, noisy, lower=True, trans="T"))

    # what may be done with it afterwards, at no cost

    def norm(self, coefficients: Array) -> float:
        """Norm, in the kernel's space, of the model with these coefficients (of all outputs)."""
        return math.sqrt(max(0.0, float(np.sum(coefficients * (self.gram @ coefficients)))))

    def within_ball(self, coefficients: Array, norm: float) -> Array:
        """Coefficients of the nearest model of norm C at most: where w* is known to be."""
        return coefficients * min(1.0, norm / max(self.norm(coefficients), 1e-300))


def _kernel_matrix(gram: Array) -> Array:
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
