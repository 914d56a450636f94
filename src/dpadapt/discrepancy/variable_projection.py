r"""The single-stage objective on a released moment, by variable projection ("VP").

.. math:: G(q) = \min_{\|w\| \le \Lambda} \Bigl\{ \sum_i q_i (w \cdot x_i - y_i)^2
          + \lambda \|w\|^2 \Bigr\} + 4 \Lambda^2 \tilde F(\hat M - S(q)),
          \qquad q \text{ in the simplex}.

The coefficients are projected out: for given weights they are a d x d solve on public data. By the
envelope theorem the gradient in q is that of the braces at the best w, held fixed,

.. math:: \partial G / \partial q_i = (w \cdot x_i - y_i)^2 - 4 \Lambda^2 x_i^T H x_i,

(w is unique if :math:`\lambda > 0`, so the gradient exists), with H the gradient of
:math:`\tilde F`. The weights follow it by entropic mirror descent. :math:`\hat M` was released
before: everything here is post-processing, and nothing is charged.

The braces are a minimum of functions that are linear in q, hence concave: G is not convex, and what
is found depends on the start, the uniform weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.least_squares import ball_least_squares
from dpadapt.learning.softmax import softmax

from .matrices import public_rows, row_scores, symmetric_part, weighted_moment

_HIDDEN_SHARE = 1 / 6
_LEAST_HIDDEN = 1e-6  # of the moments, where uniform weights are all but perfect
_FIRST_STEP = 2.0  # divided by the size of the gradient; 0.5 / r_hat^2 where labels fit well
_SHORTER, _LONGER = 0.5, 1.2  # step, after one that was refused and one that was taken


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

    def value(self, M: FloatArray) -> float:
        """Value at M."""
        t = self.mu * np.linalg.eigvalsh(M)
        shift = float(np.abs(t).max())
        total = (np.exp(t - shift) + np.exp(-t - shift)).sum()
        return (shift + math.log(total)) / self.mu

    def gradient(self, M: FloatArray) -> FloatArray:
        """Gradient H; its trace norm is at most 1."""
        values, vectors = np.linalg.eigh(M)
        t = self.mu * values
        shift = np.abs(t).max()
        up, down = np.exp(t - shift), np.exp(-t - shift)
        return from_spectrum((up - down) / (up + down).sum(), vectors)


def from_spectrum(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Symmetric matrix of these eigenvalues and eigenvectors.

    Examples
    --------
    >>> from_spectrum(np.array([1.0, 2.0]), np.eye(2))
    array([[1., 0.],
           [0., 2.]])
    """
    matrix: FloatArray = (vectors * values) @ vectors.T
    return matrix


# How sharp: the smoothing may hide this share of the uniform weights' discrepancy, log(2d) / mu.


class ProjectedObjective(NamedTuple):
    """The objective at some weights, with the best coefficients for them.

    Attributes
    ----------
    value : float
        G(q).
    coefficients : ndarray of shape (d,)
    losses : ndarray of shape (m,)
        Squared error of every row.
    residual : ndarray of shape (d, d)
        M^ - S(q).

    Examples
    --------
    >>> ProjectedObjective(0.5, np.zeros(1), np.zeros(2), np.diag([0.3, -0.4])).discrepancy
    0.4
    """

    value: float
    coefficients: FloatArray
    losses: FloatArray
    residual: FloatArray

    @property
    def discrepancy(self) -> float:
        """Spectral norm of M^ - S(q)."""
        return float(np.abs(np.linalg.eigvalsh(self.residual)).max())


@dataclass(frozen=True, eq=False)
class SingleStageProblem:
    r"""Everything G depends on but q.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column if there is one.
    y : ndarray of shape (m,)
        Public labels.
    target_moment : ndarray of shape (d, d)
        :math:`\hat M`, released or public; only its symmetric part counts.
    smoothing : SmoothNorm
        Of the discrepancy.
    radius : float
        :math:`\Lambda`.
    ridge : float, default=0
        :math:`\lambda`.

    Examples
    --------
    >>> problem = SingleStageProblem(
    ...     np.eye(2), np.array([0.5, 0.0]), np.diag([0.75, 0.25]), SmoothNorm(mu=90.0), radius=1.0
    ... )
    >>> point = problem.at(np.array([0.5, 0.5]))
    >>> point.coefficients, round(point.discrepancy, 6)
    (array([0.5, 0. ]), 0.25)
    >>> problem.gradient(point).round(3)  # more weight on the first row
    array([-2.,  2.])
    """

    X: FloatArray
    y: FloatArray
    target_moment: FloatArray
    smoothing: SmoothNorm
    radius: float
    ridge: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", public_rows(self.X))
        object.__setattr__(self, "y", np.asarray(self.y, dtype=np.float64))
        object.__setattr__(self, "target_moment", symmetric_part(self.target_moment))
        if self.y.shape != (len(self.X),) or not np.isfinite(self.y).all():
            raise ValueError("y must hold one finite label for each row of X.")
        if len(self.target_moment) != self.X.shape[1]:
            raise ValueError("target_moment must have one row and column for each column of X.")
        validate.positive("radius", self.radius)
        validate.non_negative("ridge", self.ridge)

    @property
    def strength(self) -> float:
        """Factor of the discrepancy, 4 Lambda^2."""
        return 4 * self.radius**2

    def at(self, weights: FloatArray) -> ProjectedObjective:
        """Objective and best coefficients at these weights."""
        moment = weighted_moment(self.X, weights)
        w = ball_least_squares(
            moment + self.ridge * np.eye(len(moment)),
            (weights * self.y) @ self.X,
            radius=self.radius,
        )
        losses, residual = (self.X @ w - self.y) ** 2, self.target_moment - moment
        fit = float(weights @ losses + self.ridge * (w @ w))
        value = fit + self.strength * self.smoothing.value(residual)
        return ProjectedObjective(value, w, losses, residual)

    def gradient(self, point: ProjectedObjective) -> FloatArray:
        """Gradient of G in q, by the envelope theorem."""
        H = self.smoothing.gradient(point.residual)
        return np.asarray(point.losses + self.strength * row_scores(self.X, H))


def variable_projection(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    target_moment: npt.ArrayLike,
    *,
    radius: float,
    smoothing: SmoothNorm | None = None,
    steps: int = 1000,
    ridge: float = 1e-4,
    tolerance: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    r"""Weights and coefficients that minimise the single-stage objective on a released moment.

    Parameters
    ----------
    X : array-like of shape (m, d)
        Public rows, scaled and with an intercept column if there is to be an intercept.
    y : array-like of shape (m,)
        Public labels (centred, if the intercept is not to be penalised).
    target_moment : array-like of shape (d, d)
        :math:`\hat M`, the (noisy) second moment of the private rows.
    radius : float
        :math:`\Lambda`, bound on the norm of the coefficients; :math:`4 \Lambda^2` is what the
        discrepancy counts against the loss.
    smoothing : SmoothNorm, optional
        By default a softmax that hides a sixth of the uniform weights' discrepancy (but no less
        than ``tolerance``).
    steps : int, default=1000
        K, at most.
    ridge : float, default=1e-4
        :math:`\lambda \ge 0`.
    tolerance : float, default=0
        Stop at the first weights of this discrepancy or less, and return them.

    Returns
    -------
    weights : ndarray of shape (m,)
        In the simplex: the mean of the second half of the iterates.
    coefficients : ndarray of shape (d,)
        Best for those weights.

    Notes
    -----
    A step is at most 2 over :math:`4 \Lambda^2 \hat r^2` plus the largest loss at the start, a
    bound on the first gradient; where labels fit well that is the specification's
    :math:`0.5 / \hat r^2` at :math:`\Lambda = 1`. A step that would raise G is not taken but
    halved, so that the iterates never get worse, whatever the sharpness. One step is two passes
    over the rows and three d x d eigen-decompositions.

    Examples
    --------
    Rows 0 and 1 are the coordinate axes; the target has three quarters of its mass on the first.

    >>> weights, coefficients = variable_projection(
    ...     np.eye(2), [0.5, -0.5], np.diag([0.75, 0.25]), radius=1.0, ridge=0.0
    ... )
    >>> weights.round(3), coefficients.round(3)
    (array([0.75, 0.25]), array([ 0.5, -0.5]))
    """
    validate.count("steps", steps)
    validate.non_negative("tolerance", tolerance)
    problem = SingleStageProblem(
        np.asarray(X, dtype=np.float64),
        np.asarray(y, dtype=np.float64),
        np.asarray(target_moment, dtype=np.float64),
        SmoothNorm(mu=1.0) if smoothing is None else smoothing,
        radius,
        ridge,
    )
    if smoothing is None:
        problem = replace(problem, smoothing=_default_smoothing(problem, tolerance))

    rows = problem.X
    logs = np.zeros(len(rows))
    weights = softmax(logs)
    point = problem.at(weights)
    steepest = problem.strength * float(np.vecdot(rows, rows).max()) + float(point.losses.max())
    longest = step = _FIRST_STEP / steepest if steepest > 0 else 1.0
    total = np.zeros_like(weights)
    for k in range(steps):
        if point.discrepancy <= tolerance:
            return weights, point.coefficients
        moved = logs - step * problem.gradient(point)
        moved -= moved.max()
        candidate = softmax(moved)
        ahead = problem.at(candidate)
        if ahead.value <= point.value:
            logs, weights, point = moved, candidate, ahead
            step = min(_LONGER * step, longest)
        else:
            step *= _SHORTER
        if k >= steps // 2:
            total += weights
    mean = total / total.sum()
    return mean, problem.at(mean).coefficients


def _default_smoothing(problem: SingleStageProblem, tolerance: float) -> SmoothNorm:
    """SmoothNorm as sharp as the discrepancy that is there to be removed, and no sharper."""
    X, target = problem.X, problem.target_moment
    start = problem.at(np.full(len(X), 1 / len(X))).discrepancy
    size = float(np.vecdot(X, X).max()) + float(np.abs(target).max())
    hidden = max(_HIDDEN_SHARE * start, tolerance, _LEAST_HIDDEN * size)
    return SmoothNorm(math.log(2 * len(target)) / hidden if hidden > 0 else 1.0)
