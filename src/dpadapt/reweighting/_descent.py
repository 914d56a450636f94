r"""Noisy projected gradient descent in w and u: what the paper's two algorithms have in common.

Of the private rows come out, in every step, their part of the gradient by w, of sensitivity
:math:`s_1 = 2 (1 - \alpha) G / n` (a row has a weight of :math:`(1 - \alpha) / n` at most), and the
n losses over :math:`u^2`, of sensitivity :math:`s_2 = (1 - \alpha)^2 B / n^2` (one entry moves).
Arithmetic adds to the first: a sum of n terms, each of norm :math:`(1 - \alpha) G / n` at most, is
off by (n + d + 8) roundings of the sum of their norms, on either neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpadapt.privacy import Cleaning, Grant, Request, Session
from dpadapt.privacy import _validate as validate

from .objective import ConvexPenalty, Loss, SmoothPenalty

__all__ = ["Adapted", "Scales", "descend", "private_gradients"]

Array = npt.NDArray[np.float64]
PrivateGradients = Callable[[Array, Array], tuple[Array, Array]]  # of w and of the private u
DISCREPANCY_SHARE = 0.1  # of mu^2
_EPS = float(np.finfo(np.float64).eps)


class Adapted(NamedTuple):
    """What an adaptation found.

    Attributes
    ----------
    coefficients : ndarray
        w.
    weights : ndarray of shape (m,)
        q = 1/u of the public rows (0 at alpha = 0).
    discrepancy : float
        The offset of the public losses, as released.

    Examples
    --------
    >>> Adapted(np.zeros(2), np.ones(3), discrepancy=0.1).discrepancy
    0.1
    """

    coefficients: Array
    weights: Array
    discrepancy: float


class Scales(NamedTuple):
    """s_1 and s_2, and by how much rounding can exceed the first, in units of it.

    Examples
    --------
    >>> Scales.of(G=2.0, B=1.0, alpha=0.5, n=10, width=3)[:2]
    (0.2, 0.0025)
    """

    gradient: float
    losses: float
    rounding: float

    @classmethod
    def of(cls, *, G: float, B: float, alpha: float, n: int, width: int) -> Scales:
        """From the bounds on a row's gradient and loss."""
        slack = n * (n + width + 8) * _EPS + 1e-9
        return cls(2 * (1 - alpha) * G / n, (1 - alpha) ** 2 * B / n**2, slack)

    def requests(
        self, session: Session, *, joint: float, width: int, steps: int, printed: float | None
    ) -> list[Request]:
        r"""Ask for T gradients.

        Parameters
        ----------
        joint : float
            Sensitivity of the two together, in units of :math:`s_1` and :math:`s_2`.
        printed : float, optional
            The paper's epsilon for this part: two releases a step, of the printed noise. Else one.
        """
        n = session.n_rows
        if printed is None:
            share = math.sqrt((1 - DISCREPANCY_SHARE) / steps)
            reach, size = joint * (1 + 1e-9) + self.rounding, width + n
            return [Request("gaussian", "gradients", reach, size, steps, share)]
        delta = validate.delta(session.delta)
        units = 2 * math.sqrt(steps * math.log(2 / delta)) / printed
        first, second = self.gradient * (1 + self.rounding), self.losses * (1 + 1e-9)
        noise = units * self.gradient, units * self.losses
        return [
            Request("gaussian", "gradient by w", first, width, steps, printed=noise[0]),
            Request("gaussian", "gradient by u", second, n, steps, printed=noise[1]),
        ]

    def noise(self, grants: Sequence[Grant]) -> tuple[float, float]:
        r"""The :math:`\sigma_1` and :math:`\sigma_2` of the grants of :meth:`requests`."""
        if not grants:
            return 0.0, 0.0
        if len(grants) == 1:
            return self.gradient * grants[0].scale, self.losses * grants[0].scale
        return grants[0].scale, grants[1].scale

    def noisy(
        self,
        session: Session,
        grants: Sequence[Grant],
        loss: Loss,
        cleaning: Cleaning,
        columns: int,
    ) -> PrivateGradients:
        """The private part of a step, released; trades the grants of :meth:`requests`."""
        if not grants:
            return lambda w, u: (np.zeros_like(w), np.zeros(0))
        rows = session.hide_rows(cleaning)
        if rows.shape[1] != columns + 1:  # a public fact: the width of the tables
            raise ValueError(f"private rows must have labels, and {columns} columns once cleaned.")

        def exact(table: Array, w: Array, u: Array) -> tuple[Array, Array]:
            return private_gradients(loss, table[:, :-1], table[:, -1], w, u)

        def together(w: Array, u: Array) -> tuple[Array, Array]:
            def both(table: Array) -> Array:
                by_w, by_u = exact(table, w, u)
                return np.concatenate([by_w.ravel() / self.gradient, by_u / self.losses])

            found = session.gaussian(grants[0], rows, both)
            by_w, by_u = found[: w.size], found[w.size :]
            return by_w.reshape(w.shape) * self.gradient, by_u * self.losses

        def apart(w: Array, u: Array) -> tuple[Array, Array]:
            by_w = session.gaussian(grants[0], rows, lambda table: exact(table, w, u)[0])
            return by_w, session.gaussian(grants[1], rows, lambda table: exact(table, w, u)[1])

        return together if len(grants) == 1 else apart


def private_gradients(loss: Loss, X: Array, y: Array, w: Array, u: Array) -> tuple[Array, Array]:
    """What a step takes from private rows: their gradient by w, and losses over u^2.

    Examples
    --------
    >>> from dpadapt.reweighting.objective import SquaredLoss
    >>> private_gradients(SquaredLoss(), np.eye(2), np.ones(2), np.zeros(2), np.array([2.0, 4.0]))
    (array([-1. , -0.5]), array([0.25  , 0.0625]))
    """
    scores = X @ w
    weighted = (loss.residual(scores, y).T / u).T
    return X.T @ weighted, loss.value(scores, y) / u**2


def descend(
    loss: Loss,
    penalty: ConvexPenalty | SmoothPenalty,
    public: tuple[Array, Array],
    private: PrivateGradients,
    first: Array,
    *,
    offset: float,
    norm_bound: float,
    step_w: float,
    steps_u: Array,
) -> Iterator[tuple[Array, Array]]:
    """The iterates (w_t, u_t), from t = 0 on, without end.

    Parameters
    ----------
    public : (ndarray, ndarray)
        Rows and labels; none if they have no weight.
    offset : float
        Of the public losses.
    steps_u : ndarray of shape (m + n,)
        Step size for each u.

    Examples
    --------
    >>> from dpadapt.reweighting.objective import SquaredLoss
    >>> path = descend(
    ...     SquaredLoss(), ConvexPenalty(np.array([0.5, 0.5]), (1.0, 0.0, 0.0)),
    ...     (np.eye(2), np.ones(2)), lambda w, u: (np.zeros(2), u), np.zeros(2),
    ...     offset=0.0, norm_bound=1.0, step_w=0.1, steps_u=np.ones(2),
    ... )
    >>> next(path), next(path)[0]
    ((array([0., 0.]), array([2., 2.])), array([0.1, 0.1]))
    """
    X, y = public
    m, floor = len(X), 1 / penalty.reference
    w, u = first, floor
    while True:
        yield w, u
        by_w, by_u = private_gradients(loss, X, y, w, u[:m])
        gradient_u = penalty.gradient(u)
        gradient_u[:m] -= by_u + offset / u[:m] ** 2
        if len(u) > m:
            private_w, private_u = private(w, u[m:])
            by_w = by_w + private_w
            gradient_u[m:] -= private_u
        w = project(w - step_w * by_w, norm_bound)
        u = np.maximum(u - steps_u * gradient_u, floor)


def project(w: Array, norm_bound: float) -> Array:
    """The nearest point of the ball."""
    projected: Array = w / max(1.0, float(np.linalg.norm(w)) / norm_bound)
    return projected


def active_public(X: Array, y: Array, alpha: float) -> tuple[Array, Array]:
    """The public rows that have any weight."""
    return (X, y) if alpha > 0 else (X[:0], y[:0])


def public_weights(u: Array, m: int, alpha: float) -> Array:
    """Weights q of the public rows."""
    return 1 / u[:m] if alpha > 0 else np.zeros(m)


def whole_sample(session: Session) -> int:
    """Number of private rows; refuses a session that is split, whose parts have fewer."""
    if session.size("holdout"):
        raise ValueError("session must not be split: the sensitivity is that of all its rows.")
    return session.n_rows


def check_public(algorithm: Any) -> None:
    """Check what both algorithms take: sample, alpha, norm bound, start, calibration."""
    X, y = (np.asarray(a, dtype=np.float64) for a in (algorithm.X, algorithm.y))
    finite = np.isfinite(X).all() and np.isfinite(y).all()
    if X.ndim != 2 or not X.size or y.shape != X.shape[:1] or not finite:
        raise ValueError("X and y must be a matrix of finite numbers and a label for every row.")
    object.__setattr__(algorithm, "X", X)
    object.__setattr__(algorithm, "y", y)
    if not 0 <= validate.non_negative("alpha", algorithm.alpha) <= 1:
        raise ValueError(f"alpha must lie between 0 and 1; got {algorithm.alpha!r}.")
    validate.positive("norm_bound", algorithm.norm_bound)
    validate.choice("start", algorithm.start, ("zero", "public"))
    validate.choice("calibration", algorithm.calibration, ("tight", "paper"))


def check_three(name: str, values: tuple[float, float, float]) -> None:
    """Check the strengths of the three penalties."""
    if len(values) != 3:
        raise ValueError(f"{name} must be three numbers; got {values!r}.")
    for value in values:
        validate.non_negative(name, value)
