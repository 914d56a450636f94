r"""Certified minimisers from a kernel matrix, without features.

The minimiser of J (see :mod:`dpadapt.kernels.erm`) is w = sum_i a_i phi(x_i). Scores of the rows
are K a, and the gradient of J is sum_i r_i phi(x_i) with r = l'(K a)/n + lambda a, so

    \|grad J\|^2 = r^T K r <= n R^2 \|r\|^2.

Newton's step solves (D K/n + lambda) s = -r, D the second derivatives, by conjugate gradients in
the inner product of the kernel: one product with K each. The descents that must succeed if it
does not are those of :mod:`dpadapt.kernels.erm`, on coefficients; in them a_i never exceeds
L/(lambda n), so \|a\|_1 <= 2L/lambda bounds every rounding of K a.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpadapt._types import FloatArray

from .constants import Constants
from .erm import minimise, problem
from .losses import ConvexLoss
from .spaces import KernelMatrix


def solve_gram(
    matrix: FloatArray, y: Any, loss: ConvexLoss, penalty: float, radius: float
) -> FloatArray:
    r"""Coefficients a of w = sum_i a_i phi(x_i) with \|grad J(w)\| <= r certified.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        K(x_i, x_j), with K(x, x) at most ``radius`` squared; in double precision.
    y : ndarray of shape (n,) or (n, k)
    loss : Loss
    penalty : float
        lambda.
    radius : float
        R.

    Returns
    -------
    ndarray of shape (n,), or (n, k) for k columns of labels or k classes of softmax
        Predictions at z are K(z, X) a.

    Examples
    --------
    >>> from dpadapt.kernels.losses import Squared
    >>> solve_gram(np.eye(2), [1.0, -1.0], Squared(1.0), penalty=1.0, radius=1.0).round(3)
    array([ 0.5, -0.5])
    """
    labels, facts = _problem(matrix, y, loss, penalty, radius)
    a = minimise(KernelMatrix(matrix), labels, loss, facts)
    return a if np.ndim(y) == 2 or loss.joint else a[:, 0]


def _problem(
    matrix: FloatArray, y: Any, loss: ConvexLoss, penalty: float, radius: float
) -> tuple[FloatArray, Constants]:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype != np.float64:
        raise ValueError(
            "the kernel matrix must be square and of float64: single precision amplifies rounding "
            f"beyond the sensitivity; got {matrix.shape} of {matrix.dtype}."
        )
    return problem(len(matrix), y, loss, radius, penalty, None)


def certified_gram_gradient(
    matrix: FloatArray, y: Any, loss: ConvexLoss, penalty: float, radius: float, a: FloatArray
) -> float:
    r"""Bound of \|grad J(w)\|, w = sum_i a_i phi(x_i), rounding included; not to be released.

    Parameters
    ----------
    matrix, y, loss, penalty, radius
        As in :func:`solve_gram`.
    a : ndarray
        Coefficients.

    Examples
    --------
    >>> from dpadapt.kernels.losses import Squared
    >>> round(certified_gram_gradient(np.eye(1), [1.0], Squared(1.0), 1.0, 1.0, np.zeros(1)), 6)
    2.0
    """
    labels, facts = _problem(matrix, y, loss, penalty, radius)
    space = KernelMatrix(matrix)
    c = np.asarray(a, dtype=np.float64).reshape(space.size, -1)
    with np.errstate(all="ignore"):
        g = loss.derivative(space.scores(c), labels) / space.rows + penalty * c
        return float(space.proved(c, g, loss.joint, facts).max() + facts.rounding)
