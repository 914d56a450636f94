r"""The labelled discrepancy: how far public and private losses can be apart, over a ball of models.

.. math:: \hat d = \sup_{\|w\| \le \Lambda} \Big| \frac1n \sum_{priv} (w \cdot x - y)^2
   - \frac1m \sum_{pub} (w \cdot x - y)^2 \Big|

is the larger of two maxima of a quadratic on a ball, :math:`w^T A w - 2 b \cdot w + c` and its
negative, with A, b, c the differences of the two samples' second moments. The quadratic is
indefinite, and yet its maximum is found globally (the trust-region subproblem): the dual

.. math:: \min_{s \ge \lambda_{max}(A)_+}\; s \Lambda^2 + b^T (s I - A)^{-1} b + c

has no gap, is convex in one variable, and every s gives an upper bound.

**Sensitivity.** For every w of the ball the loss of a row lies in [0, B], B = (Lambda r + 1)^2, so
replacing one private row moves the private mean by B/n at most; a supremum of functions moves no
more than they do. Only the *global* supremum does: a local search (:func:`difference_of_convex`)
may end in another basin because one row changed, and its value then moves by a constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpadapt.privacy import Cleaning, Grant, Hidden, PrivacyError, Request, Session
from dpadapt.privacy import _validate as validate

__all__ = [
    "BallMaximum",
    "LabelledDiscrepancy",
    "LabelledMoment",
    "ball_maximum",
    "difference_of_convex",
    "labelled_discrepancy",
    "labelled_moment",
]

Array = npt.NDArray[np.float64]
TOLERANCE = 1e-10  # of the solver, relative to B: a thousand times what rounding does at d = 1000


@dataclass(frozen=True)
class LabelledMoment:
    r"""Mean of z z^T over the private rows, z = (x, intercept, ``label_weight`` y).

    Frobenius sensitivity under replace-one. Let :math:`|x| \le r`, :math:`|y| \le Y`, c the label
    weight, i the intercept. (x, c y) is a row of length :math:`\rho = \sqrt{r^2 + c^2 Y^2}` at
    most, and z is that row with an intercept, so that the proof of
    :class:`~dpadapt.privacy.SecondMoment` holds with :math:`\rho` for r:

    .. math:: \|z z^T - z' z'^T\|_F^2 = |z|^4 + |z'|^4 - 2 (z \cdot z')^2 \le 2 (\rho^2 + i^2)^2

    with equality for orthogonal z and z' of full length, which there are if :math:`i \le \rho`: the
    sensitivity is :math:`\sqrt2 (r^2 + i^2 + c^2 Y^2) / n`. If :math:`i > \rho`, it is
    :math:`\sqrt8\, i \rho / n`, attained at x' = -x, y' = -y.

    Parameters
    ----------
    cleaning : Cleaning
        Holds r, i and the range of the labels (Y is 1 with ``unit_labels``).
    label_weight : float, default=1
        c, public: how much of the noise the label's row of the matrix is to have. Dividing the
        last row and column of the released matrix by c undoes it.

    Examples
    --------
    >>> query = LabelledMoment(Cleaning(radius=2.0, label_range=(0.0, 9.0), unit_labels=True))
    >>> query.block(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0]))
    array([[ 1.,  0.,  1.],
           [ 0.,  4., -2.],
           [ 1., -2.,  2.]])
    >>> math.isclose(query.sensitivity(100), math.sqrt(2) * 5 / 100)
    True
    """

    cleaning: Cleaning
    label_weight: float = 1.0
    label: str = "labelled second moment"

    def __post_init__(self) -> None:
        validate.positive("label_weight", self.label_weight)
        if self.cleaning.label_range is None:
            raise ValueError("cleaning must have a label_range.")

    @property
    def row_bound(self) -> float:
        """Bound on the length of (x, c y), without the intercept."""
        assert self.cleaning.label_range is not None
        low, high = self.cleaning.label_range
        largest = 1.0 if self.cleaning.unit_labels else max(abs(low), abs(high))
        return math.hypot(self.cleaning.radius, self.label_weight * largest)

    @property
    def magnitude(self) -> float:
        """Bound on |z|^2, the Frobenius norm of one row's contribution."""
        return self.row_bound**2 + self.cleaning.intercept**2

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Square: the features, the intercept if there is one, the label."""
        size = n_columns + (self.cleaning.intercept != 0) + 1
        return (size, size)

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum of z z^T."""
        if y is None:
            raise PrivacyError("the private sample must have labels: Private(X, y).")
        Z = np.column_stack([X, self.label_weight * y])
        moment: Array = Z.T @ Z
        return moment

    def sensitivity(self, n_rows: int) -> float:
        """Frobenius sensitivity of the mean; see the proof above."""
        rho, i = self.row_bound, abs(self.cleaning.intercept)
        largest = math.sqrt(2) * (rho**2 + i**2) if i <= rho else math.sqrt(8) * i * rho
        return largest / n_rows


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
    point: Array
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


def labelled_moment(X: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """Mean of (x, y)(x, y)^T: all that the squared losses of a sample depend on.

    Examples
    --------
    >>> labelled_moment([[1.0], [3.0]], [1.0, -1.0])
    array([[ 5., -1.],
           [-1.,  1.]])
    """
    rows = np.column_stack([np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)])
    moment: Array = rows.T @ rows / len(rows)
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


@dataclass(frozen=True, eq=False)
class LabelledDiscrepancy:
    r"""The labelled discrepancy between a public sample and a private one, and its release.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    y : ndarray of shape (m,)
        Their labels, in [-1, 1].
    norm_bound : float
        :math:`\Lambda`.
    cleaning : Cleaning
        How private rows get the same form; with ``unit_labels``.

    Notes
    -----
    The stated sensitivity is B/n (see this module) and what arithmetic can add: twice the
    tolerance of the solver, and :math:`\Lambda^2 + 1` times what rounding does to the moment, since
    a loss is :math:`(w, -1)^T M (w, -1)`.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> cleaning = Cleaning(radius=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    >>> target = LabelledDiscrepancy(np.ones((1, 1)), np.ones(1), 1.0, cleaning)
    >>> with Private([[1.0]] * 9000, [-1.0] * 9000).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(target.query)
    ...     (grant,) = session.plan(target.request(session, moment))
    ...     value = target.release(session, grant, moment)
    >>> bool(abs(value - 4.0) < 0.02)
    True
    """

    X: Array
    y: Array
    norm_bound: float
    cleaning: Cleaning

    def __post_init__(self) -> None:
        validate.positive("norm_bound", self.norm_bound)
        if not self.cleaning.unit_labels:
            raise ValueError("cleaning must have unit_labels.")
        length = row_length(self.cleaning) * (1 + 1e-9)
        if np.linalg.norm(self.X, axis=1).max() > length or np.abs(self.y).max() > 1 + 1e-9:
            raise ValueError("X and y must be within the bounds that cleaning sets private rows.")

    @property
    def query(self) -> LabelledMoment:
        """The private statistic that :meth:`request` and :meth:`release` take hidden."""
        return LabelledMoment(self.cleaning)

    @property
    def loss_bound(self) -> float:
        r"""B, :math:`(\Lambda r + 1)^2`: no row, public or private, has a larger loss."""
        return (self.norm_bound * row_length(self.cleaning) + 1) ** 2

    def value(self, private: npt.ArrayLike) -> float:
        """The discrepancy to a moment that is public (or released), without noise."""
        return labelled_discrepancy(labelled_moment(self.X, self.y), private, self.norm_bound)

    def request(
        self,
        session: Session,
        moment: Hidden,
        *,
        calibration: str = "gaussian",
        weight: float = 1.0,
    ) -> Request:
        """Ask for the discrepancy.

        Parameters
        ----------
        session : Session
        moment : Hidden
            Of :attr:`query`.
        calibration : {"gaussian", "laplace", "paper"}, default="gaussian"
            "paper" is Laplace noise of the printed scale B/n. (Erratum: its privacy loss is 1,
            whatever epsilon was asked for. For epsilon/2 it takes 2B/(n epsilon), which is what
            "laplace" gives alone in a session of epsilon/2.)
        weight : float, default=1
            Share of the budget, relative to the other requests of the plan.
        """
        validate.choice("calibration", calibration, ("gaussian", "laplace", "paper"))
        bound, n = self.loss_bound, session.size(moment.part)
        rounding = moment.sensitivity - self.query.sensitivity(n)
        reach = bound / n + 2 * TOLERANCE * bound + (self.norm_bound**2 + 1) * rounding
        label = "labelled discrepancy"
        if calibration == "gaussian":
            return Request("gaussian", label, reach, weight=weight)
        printed = bound / n if calibration == "paper" else None
        return Request("laplace", label, reach, weight=weight, printed=printed)

    def release(self, session: Session, grant: Grant, moment: Hidden) -> float:
        """Release the discrepancy to a hidden moment; trades the grant of :meth:`request`."""
        width = self.X.shape[1] + 1
        if moment.shape != (width, width):
            raise ValueError(f"X must have the {moment.shape[0] - 1} columns of the private rows.")
        gaussian = grant.request.mechanism == "gaussian"
        mechanism = session.gaussian if gaussian else session.laplace
        return float(np.clip(mechanism(grant, moment, self.value), 0.0, self.loss_bound))


def row_length(cleaning: Cleaning) -> float:
    """r, bound on a cleaned row with its intercept."""
    return math.hypot(cleaning.radius, cleaning.intercept)


def _difference(public: npt.ArrayLike, private: npt.ArrayLike) -> tuple[Array, Array, float]:
    """A, b and c of the private minus the public loss."""
    D = np.asarray(private, dtype=np.float64) - np.asarray(public, dtype=np.float64)
    return D[:-1, :-1], D[:-1, -1], float(D[-1, -1])
