"""Least squares with coefficients in a ball."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from dpadapt._types import FloatArray


def ball_multiplier(values: FloatArray, along: FloatArray, radius: float) -> float:
    r"""The ridge that brings coefficients into the ball: the root of the secular equation.

    :math:`\nu \ge 0` at which :math:`b_i / (\lambda_i + \nu)` together have the norm ``radius``; 0
    if they have no more without it.

    Parameters
    ----------
    values : ndarray of shape (T,)
        Positive eigenvalues :math:`\lambda` of the second moment.
    along : ndarray of shape (T,) or (T, k)
        b: what is to be fitted, along the eigenvectors; of all columns together.
    radius : float

    Examples
    --------
    >>> ball_multiplier(np.ones(2), np.array([3.0, 4.0]), radius=1.0)
    4.0
    """
    if not values.size:
        return 0.0
    energy = np.sum(along.reshape(len(along), -1) ** 2, axis=1)

    def excess(multiplier: float) -> float:
        return math.sqrt(float(np.sum(energy / (values + multiplier) ** 2))) - radius

    if excess(0.0) <= 0:
        return 0.0
    # |w| <= |b| / multiplier, so the root is below |b| / radius
    most = 2 * math.sqrt(float(energy.sum())) / radius
    return float(brentq(excess, 0.0, most, rtol=1e-14, xtol=1e-300))


def ball_least_squares(moment: FloatArray, cross: FloatArray, *, radius: float) -> FloatArray:
    r"""Minimise :math:`w^T A w - 2 b \cdot w` over :math:`\|w\| \le \Lambda`, A semidefinite.

    Of several minimisers the one of least norm. On the sphere :math:`w = (A + \nu I)^{-1} b` with
    the multiplier :math:`\nu \ge 0` that brings its norm to the radius.

    Examples
    --------
    >>> ball_least_squares(np.eye(2), np.array([3.0, 4.0]), radius=1.0).round(6)
    array([0.6, 0.8])
    >>> ball_least_squares(np.eye(2), np.array([3.0, 4.0]), radius=9.0)
    array([3., 4.])
    """
    values, vectors = np.linalg.eigh(moment)
    kept = values > 1e-12 * max(float(values[-1]), 0.0)
    values, along = values[kept], vectors[:, kept].T @ cross

    multiplier = ball_multiplier(values, along, radius)
    return np.asarray(vectors[:, kept] @ (along / (values + multiplier)))
