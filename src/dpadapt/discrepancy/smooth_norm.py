r"""A smooth stand-in for the spectral norm of a symmetric matrix, and its gradient.

The solver "moments" minimises it on what was released. What one private row does to its gradient,
the paper's algorithms must know: they have it as ``Softmax``, with the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpadapt import _validate as validate

from .matrices import Array

__all__ = ["SmoothNorm", "assembled"]


@dataclass(frozen=True)
class SmoothNorm:
    r"""The two-sided softmax of the eigenvalues.

    .. math:: \tilde F = \frac 1 \mu \log \sum_k (e^{\mu l_k} + e^{-\mu l_k}), \qquad
              \|M\|_2 \le \tilde F \le \|M\|_2 + \log(2d) / \mu.

    Parameters
    ----------
    mu : float
        Sharpness, the paper's :math:`\mu`; nearer to the norm, and more sensitive, as it grows.

    Examples
    --------
    >>> M = np.diag([0.3, -0.5])
    >>> round(SmoothNorm(mu=100.0).value(M), 6)
    0.5
    >>> SmoothNorm(mu=100.0).gradient(M).round(6)
    array([[ 0.,  0.],
           [ 0., -1.]])
    """

    mu: float

    def __post_init__(self) -> None:
        validate.positive("mu", self.mu)

    def value(self, M: Array) -> float:
        """Value at M."""
        t = self.mu * np.linalg.eigvalsh(M)
        shift = float(np.abs(t).max())
        total = (np.exp(t - shift) + np.exp(-t - shift)).sum()
        return (shift + math.log(total)) / self.mu

    def gradient(self, M: Array) -> Array:
        """Gradient H; its trace norm is at most 1."""
        values, vectors = np.linalg.eigh(M)
        t = self.mu * values
        shift = np.abs(t).max()
        up, down = np.exp(t - shift), np.exp(-t - shift)
        return assembled((up - down) / (up + down).sum(), vectors)


def assembled(values: Array, vectors: Array) -> Array:
    """Symmetric matrix of these eigenvalues and eigenvectors.

    Examples
    --------
    >>> assembled(np.array([1.0, 2.0]), np.eye(2))
    array([[1., 0.],
           [0., 2.]])
    """
    matrix: Array = (vectors * values) @ vectors.T
    return matrix
