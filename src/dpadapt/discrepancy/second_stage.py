r"""The second stage of discrepancy minimisation: least squares with the weights that were found.

Weights that match the private moments may rest on few public rows, and the fit then has a large
sampling error. :func:`shrunken_fit` moves from the public-only fit to the weighted one only as far
as the move is larger than its own sampling error (James and Stein's rule). Labels and rows are
public here: nothing is charged.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpadapt._types import FloatArray
from dpadapt.learning.shrinkage import james_stein

_ROUNDING = 1e-12  # directions with a smaller share of the moment carry no information
_LEAST_FREEDOM = 1e-3  # of a row's residual, for rows that the fit passes through


class ShrunkenFit(NamedTuple):
    """Coefficients between those of the public-only fit and those of the weighted fit.

    Attributes
    ----------
    coefficients : ndarray of shape (d,)
    share : float
        How far they went: 0 is public-only, 1 the weighted fit.
    """

    coefficients: FloatArray
    share: float


def shrunken_fit(
    X: npt.ArrayLike, y: npt.ArrayLike, weights: npt.ArrayLike, *, ridge: float
) -> ShrunkenFit:
    r"""Weighted ridge regression, shrunken towards the unweighted one by James and Stein's rule.

    With w the weighted and u the uniform coefficients and S the weighted moment of the rows, the
    result is :math:`u + s (w - u)`, :math:`s = (1 - V / \|w - u\|_S^2)_+`. V is the sampling
    variance of the move in the same norm: the sum over rows of :math:`\|a_i\|_S^2`, where
    :math:`a_i` is how far w - u would move without row i (leave-one-out residuals, HC3).

    Parameters
    ----------
    X : array-like of shape (m, d)
        Rows; the last column is the intercept's constant.
    y : array-like of shape (m,)
        Labels.
    weights : array-like of shape (m,)
        The weights q, in the simplex.
    ridge : float
        The penalty of both fits; the constant is not penalised.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=500), np.ones(500)])
    >>> y = X[:, 0] ** 2 + 0.1 * rng.normal(size=500)
    >>> weights = np.exp(X[:, 0]) / np.exp(X[:, 0]).sum()
    >>> fit = shrunken_fit(X, y, weights, ridge=0.0)
    >>> bool(0.9 < fit.share < 1 and fit.coefficients[0] > 1)
    True
    >>> shrunken_fit(X, y, np.full(500, 1 / 500), ridge=0.0).share
    0.0
    """
    rows, labels, q = (np.asarray(values, dtype=float) for values in (X, y, weights))
    # measured in a power of two near the largest label: exact, and no square of it overflows
    unit = float(np.ldexp(1.0, np.frexp(np.abs(labels).max())[1] - 1))
    labels = labels / unit
    uniform = np.full(len(rows), 1 / len(rows))
    base, base_moves = _fit_and_moves(rows, labels, uniform, ridge)
    if np.array_equal(q, uniform):
        return ShrunkenFit(unit * base, 0.0)
    fit, moves = _fit_and_moves(rows, labels, q, ridge)
    moment = (rows * q[:, None]).T @ rows
    moves -= base_moves
    size = float((fit - base) @ moment @ (fit - base))
    variance = float(np.einsum("ij,ij->", moves @ moment, moves))
    share = james_stein(size, variance)
    return ShrunkenFit(unit * (base + share * (fit - base)), share)


def within_ball(start: FloatArray, end: FloatArray, radius: float) -> float:
    """How far the way from ``start`` to ``end`` stays in the ball: a part from 0 to 1.

    Examples
    --------
    >>> within_ball(np.array([1.0]), np.array([3.0]), 2.0)
    0.5
    >>> within_ball(np.array([1.0]), np.array([-1.5]), 2.0)
    1.0
    """
    largest = max(float(np.abs(end).max()), float(np.abs(start).max()), radius)
    begin, move, radius = start / largest, (end - start) / largest, radius / largest
    a, b, c = float(move @ move), float(begin @ move), radius**2 - float(begin @ begin)
    if a == 0 or 2 * b + a <= c:  # the end lies within
        return 1.0
    return min(1.0, max(0.0, (math.sqrt(b * b + a * max(c, 0.0)) - b) / a))


def weighted_fit(
    rows: FloatArray, labels: FloatArray, weights: FloatArray, *, ridge: float
) -> FloatArray:
    """Weighted ridge regression whose constant, the last column, is not penalised.

    Examples
    --------
    >>> rows = np.array([[0.0, 1.0], [2.0, 1.0]])
    >>> weighted_fit(rows, np.array([5.0, 9.0]), np.array([0.5, 0.5]), ridge=1e9).round(6)
    array([0., 7.])
    """
    return _fit_and_moves(rows, labels, weights, ridge)[0]


def _fit_and_moves(
    rows: FloatArray, labels: FloatArray, weights: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Coefficients, and how each row moves them."""
    offset, center = float(weights @ labels), weights @ rows[:, :-1]
    centered = rows[:, :-1] - center
    slopes = weighted_ridge(centered, labels - offset, weights, ridge=ridge)
    solved = centered @ _inverse((centered * weights[:, None]).T @ centered, ridge)
    leverage = weights * (1 + np.einsum("ij,ij->i", solved, centered))
    freedom = np.maximum(1 - leverage, _LEAST_FREEDOM)
    pulls = weights * (labels - offset - centered @ slopes) / freedom
    moves = solved * pulls[:, None]
    unit = rows[0, -1]
    fit = np.append(slopes, (offset - center @ slopes) / unit)
    return fit, np.column_stack([moves, (pulls - moves @ center) / unit])


def weighted_ridge(
    X: npt.ArrayLike, y: npt.ArrayLike, weights: npt.ArrayLike, *, ridge: float
) -> FloatArray:
    r"""Minimise :math:`\sum_i q_i (w \cdot x_i - y_i)^2 + \lambda \|w\|^2` over w.

    Parameters
    ----------
    X : array-like of shape (m, d)
        Rows, with an intercept column if there is to be an intercept (which is then penalised
        like the rest: centre y first).
    y : array-like of shape (m,)
        Labels.
    weights : array-like of shape (m,)
        The weights q, non-negative.
    ridge : float
        The penalty :math:`\lambda \ge 0`. At zero, the solution of least norm.

    Returns
    -------
    ndarray of shape (d,)
        The coefficients w.

    Notes
    -----
    One pass over the rows and one d x d eigen-decomposition. Directions in which the weighted
    rows do not extend get no coefficient, so a singular moment is no error.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 9.0]])
    >>> weighted_ridge(X, [1.0, 3.0, 0.0], [0.5, 0.5, 0.0], ridge=0.0).round(6)
    array([1., 2.])
    """
    if not ridge >= 0:
        raise ValueError(f"ridge must not be negative, got {ridge!r}")
    rows, q = np.asarray(X, dtype=float), np.asarray(weights, dtype=float)
    weighted = rows * q[:, None]
    coefficients: FloatArray = _inverse(weighted.T @ rows, ridge) @ (
        weighted.T @ np.asarray(y, dtype=float)
    )
    return coefficients


def _inverse(moment: FloatArray, ridge: float) -> FloatArray:
    """Inverse of moment + ridge I where the rows extend, 0 where they do not."""
    values, vectors = np.linalg.eigh(moment)
    kept = values > _ROUNDING * max(values[-1], 0.0)
    basis = vectors[:, kept]
    inverse: FloatArray = (basis / (values[kept] + ridge)) @ basis.T
    return inverse
