r"""The labelled discrepancy: how far public and private losses can be apart, over a ball of models.

.. math:: \hat d = \sup_{\|w\| \le \Lambda} \Big| \frac1n \sum_{priv} (w \cdot x - y)^2
   - \frac1m \sum_{pub} (w \cdot x - y)^2 \Big|

is the larger of two maxima of a quadratic on a ball, :math:`w^T A w - 2 b \cdot w + c` and its
negative, with A, b, c the differences of the two samples' second moments. The quadratic is
indefinite, and yet its maximum is found globally (the trust-region subproblem): the dual

.. math:: \min_{s \ge \lambda_{max}(A)_+}\; s \Lambda^2 + b^T (s I - A)^{-1} b + c

has no gap, is convex in one variable, and every s gives an upper bound.

How far a private row can move it:
:func:`~dpadapt.papers.reweighting.queries.hidden_labelled_discrepancy`.

**Other forms of the discrepancy that the paper names: one-sided, local, without labels.**

* *one-sided*: how much larger the private loss can be, not how different; the learning bound needs
  no more than that.
* *local*: over a ball around a model that is public or released (the paper: around a minimiser)
  instead of all models; smaller, and valid for models in that ball.
* *without labels*: over pairs of models, one of which gives the labels of the other, for private
  rows that have none: :math:`4 \Lambda^2 \|M_{priv} - M_{pub}\|_2`, of second moments. It
  takes the place of :math:`\hat d` in the paper's objective where both domains label alike.

All are functions of second moments, which may be released ones: then they cost nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning


class BallMaximum(NamedTuple):
    """Where a quadratic is largest on a ball.

    Attributes
    ----------
    value : float
        The dual value: an upper bound on the maximum, and equal to it up to rounding.
    point : ndarray of shape (d,)
    reached : float
        The quadratic at the point: a lower bound.

    Examples
    --------
    >>> BallMaximum(1.0, np.ones(1), reached=1.0).value
    1.0
    """

    value: float
    point: FloatArray
    reached: float


def ball_maximum(A: npt.ArrayLike, b: npt.ArrayLike, c: float, radius: float) -> BallMaximum:
    r"""Maximise :math:`w^T A w - 2 b \cdot w + c` over the ball, globally.

    The dual is minimised in :math:`t = s - \lambda_{max}(A)_+ \ge 0`, not in s: where b is almost
    orthogonal to the top eigenvectors (nearly the hard case), t is far below the resolution of s.
    At t = 0 the maximum lies inside, or (the hard case proper) the rest of the radius is spent
    along a top eigenvector. The number of steps is fixed.

    Parameters
    ----------
    A : array-like of shape (d, d)
        Symmetric.
    b : array-like of shape (d,)
    c : float
    radius : float

    Examples
    --------
    >>> found = ball_maximum(np.diag([1.0, -1.0]), [0.05, 0.0], 0.0, radius=1.0)
    >>> round(found.value, 12), found.point
    (1.1, array([-1.,  0.]))

    The hard case: b has no part along the top eigenvector.

    >>> found = ball_maximum(np.diag([1.0, -1.0]), [0.0, 0.5], 0.0, radius=1.0)
    >>> round(found.value, 12), np.round(np.abs(found.point), 6)
    (1.125, array([0.968246, 0.25    ]))
    """
    matrix = np.asarray(A, dtype=np.float64)
    curvature, V = np.linalg.eigh((matrix + matrix.T) / 2)
    g = V.T @ np.asarray(b, dtype=np.float64)
    top = max(float(curvature[-1]), 0.0)
    gap = top - curvature

    some = np.flatnonzero(g)  # where g is 0 the maximiser has no part, also at a gap of 0
    pull, room = np.abs(g[some]), gap[some]

    def outside(t: float) -> bool:  # whether the maximiser for this multiplier is
        ratio = pull / (room + t)
        return float(ratio @ ratio) > radius**2

    with np.errstate(all="ignore"):
        t = 0.0
        if outside(0.0):
            low = max(0.0, float((pull / radius - room).max()))
            high = float(np.linalg.norm(pull)) / radius
            for _ in range(100):  # to neighbouring numbers; the dual is flat there
                t = (low + high) / 2
                low, high = (t, high) if outside(t) else (low, t)
            t = high
        w = np.zeros_like(g)
        w[some] = -g[some] / (room + t)
        value = float(-w @ g + (top + t) * radius**2 + c)
    length = float(np.linalg.norm(w))
    if length > radius:
        w *= radius / length
    elif t == 0 and top > 0:
        w[-1] += math.sqrt(max(0.0, radius**2 - length**2))
    reached = float(np.sum(w * (curvature * w - 2 * g)) + c)
    return BallMaximum(value, V @ w, reached)


def labelled_moment(X: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
    """Mean of (x, y)(x, y)^T: all that the squared losses of a sample depend on.

    Examples
    --------
    >>> labelled_moment([[1.0], [3.0]], [1.0, -1.0])
    array([[ 5., -1.],
           [-1.,  1.]])
    """
    rows = np.column_stack([np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)])
    moment: FloatArray = rows.T @ rows / len(rows)
    return moment


def labelled_discrepancy(public: npt.ArrayLike, private: npt.ArrayLike, radius: float) -> float:
    r"""The labelled discrepancy :math:`\hat d` of two moments, over the ball of this radius.

    Parameters
    ----------
    public, private : array-like of shape (d + 1, d + 1)
        As of :func:`labelled_moment`; a released (noisy) matrix will do.
    radius : float
        :math:`\Lambda`.

    Examples
    --------
    >>> public, private = labelled_moment([[1.0]], [1.0]), labelled_moment([[1.0]], [-1.0])
    >>> round(labelled_discrepancy(public, private, radius=1.0), 9)
    4.0
    """
    A, b, c = _difference(public, private)
    return max(0.0, ball_maximum(A, b, c, radius).value, ball_maximum(-A, -b, -c, radius).value)


def difference_of_convex(
    public: npt.ArrayLike,
    private: npt.ArrayLike,
    radius: float,
    start: npt.ArrayLike,
    *,
    steps: int = 1000,
) -> float:
    r"""A lower bound on the labelled discrepancy by local search, for data that may be looked at.

    The paper's difference-of-convex algorithm: with :math:`\rho` at least the curvature,
    :math:`w \leftarrow Proj(w + (A w - b) / \rho)` climbs to a stationary point, for each sign.
    (Erratum: that need not be the global maximum. A = diag(1, -1), b = (0.05, 0) and a start of
    (0.5, 0) give 0.9; the maximum is 1.1.)

    Its value must never be released. Which stationary point is reached depends on the basin in
    which the start lies, and one private row can move the border of a basin across the start: with
    x = 1 in every private row, x = 0 and y = 0.4 in the public one and a start of 0.4, replacing
    one label of n moves the value by 1.6 where B/n = 4/n. Its sensitivity is of the order of B, so
    nothing here takes it as a solver of what is released.

    Parameters
    ----------
    public, private : array-like of shape (d + 1, d + 1)
    radius : float
    start : array-like of shape (d,)
    steps : int, default=1000

    Examples
    --------
    >>> public, private = labelled_moment([[0.0]], [0.4]), labelled_moment([[1.0]], [0.5])
    >>> low = difference_of_convex(public, private, 1.0, [1.0])
    >>> round(low, 6), round(labelled_discrepancy(public, private, 1.0), 6)
    (0.16, 2.09)
    """
    A, b, c = _difference(public, private)
    rho = float(np.linalg.norm(A, 2) + np.linalg.norm(b) / radius) or 1.0
    found = 0.0
    for sign in (1.0, -1.0):
        w = np.asarray(start, dtype=np.float64)
        for _ in range(validate.count("steps", steps)):
            w = w + sign * (A @ w - b) / rho
            w = w / max(1.0, float(np.linalg.norm(w)) / radius)
        found = max(found, sign * float(w @ A @ w - 2 * b @ w + c))
    return found


def row_length(cleaning: Cleaning) -> float:
    """r, bound on a cleaned row with its intercept."""
    return math.hypot(cleaning.radius, cleaning.intercept)


def _difference(
    public: npt.ArrayLike, private: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, float]:
    """A, b and c of the private minus the public loss."""
    D = np.asarray(private, dtype=np.float64) - np.asarray(public, dtype=np.float64)
    return D[:-1, :-1], D[:-1, -1], float(D[-1, -1])


def one_sided_discrepancy(public: npt.ArrayLike, private: npt.ArrayLike, radius: float) -> float:
    r""":math:`\sup_w L_{priv}(w) - L_{pub}(w)` over the ball, at least 0 where some w attains it.

    Parameters
    ----------
    public, private : array-like of shape (d + 1, d + 1)
        As of :func:`~.labelled_discrepancy.labelled_moment`.
    radius : float
        :math:`\Lambda`.

    Examples
    --------
    Private labels of twice the size are harder, not easier:

    >>> public, private = np.diag([1.0, 1.0]), np.diag([1.0, 4.0])
    >>> one_sided_discrepancy(public, private, 1.0), one_sided_discrepancy(private, public, 1.0)
    (3.0, -3.0)
    """
    return local_discrepancy(public, private, None, radius, one_sided=True)


def local_discrepancy(
    public: npt.ArrayLike,
    private: npt.ArrayLike,
    center: npt.ArrayLike | None,
    radius: float,
    *,
    one_sided: bool = False,
) -> float:
    r"""The labelled discrepancy over the ball of this radius around a model.

    Parameters
    ----------
    public, private : array-like of shape (d + 1, d + 1)
        As of :func:`~.labelled_discrepancy.labelled_moment`.
    center : array-like of shape (d,), optional
        A model that is public or released; by default 0, which makes it the global one.
    radius : float
    one_sided : bool, default=False

    Examples
    --------
    >>> from dpadapt.papers.reweighting.labelled_discrepancy import labelled_discrepancy
    >>> public, private = np.diag([1.0, 1.0]), np.diag([2.0, 1.0])
    >>> round(local_discrepancy(public, private, [0.0], 2.0), 9)
    4.0
    >>> round(labelled_discrepancy(public, private, 2.0), 9)
    4.0
    >>> round(local_discrepancy(public, private, [0.5], 0.5), 9)  # w in [0, 1]
    1.0
    """
    change = np.asarray(private, dtype=np.float64) - np.asarray(public, dtype=np.float64)
    if change.ndim != 2 or change.shape[0] != change.shape[1] or len(change) < 2:
        raise ValueError("public and private must be square moments of rows with their labels.")
    A, b, c = change[:-1, :-1], change[:-1, -1], float(change[-1, -1])
    at = np.zeros(len(b)) if center is None else np.asarray(center, dtype=np.float64)
    if at.shape != b.shape:
        raise ValueError(f"center must have {len(b)} coefficients; got shape {at.shape}.")
    validate.positive("radius", radius)
    moved, constant = b - A @ at, float(at @ A @ at - 2 * b @ at) + c
    up = ball_maximum(A, moved, constant, radius).value
    return up if one_sided else max(up, ball_maximum(-A, -moved, -constant, radius).value)


def unlabelled_discrepancy(public: npt.ArrayLike, private: npt.ArrayLike, radius: float) -> float:
    r""":math:`4 \Lambda^2 \|M_{priv} - M_{pub}\|_2`, of two moments of rows alone.

    Examples
    --------
    >>> unlabelled_discrepancy(np.eye(2), np.diag([1.5, 1.0]), 1.0)
    2.0
    """
    change = np.asarray(private, dtype=np.float64) - np.asarray(public, dtype=np.float64)
    return float(4 * validate.positive("radius", radius) ** 2 * np.linalg.norm(change, 2))
