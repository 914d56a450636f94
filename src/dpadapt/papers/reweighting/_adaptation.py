"""What the paper's two algorithms have in common: one noisy step, how it is planned, checks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning, Rows, Session
from dpadapt.privacy.mechanisms import Gaussian

from .objective import ConvexPenalty, RowLoss, SmoothPenalty, loss_gradients
from .queries.adaptation import StepClaims

PrivateGradients = Callable[
    [FloatArray, FloatArray], tuple[FloatArray, FloatArray]
]  # of w and of the private u
DISCREPANCY_SHARE = 0.1  # of mu^2


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

    coefficients: FloatArray
    weights: FloatArray
    discrepancy: float


@dataclass(frozen=True)
class PrivateSteps:
    r"""The private part of the T steps: planned, then released.

    Parameters
    ----------
    claims : StepClaims
    steps : int
        T.
    printed : float, optional
        The paper's epsilon for the gradients: two releases a step, of the printed noise (lines 2
        and 3), :math:`\sigma_i = 2 s_i \sqrt{T \log(2/\delta)} / \epsilon`. Else one, calibrated.
    """

    claims: StepClaims
    steps: int
    printed: float | None

    def mechanisms(self, session: Session, width: int) -> dict[str, Gaussian]:
        """Course T gradients, for ``width`` coefficients."""
        n, T, claims = session.n_given, self.steps, self.claims
        session.sensitivity(Rows(Cleaning(radius=1.0)))  # refuses too many before the charge
        if self.printed is None:
            share = math.sqrt((1 - DISCREPANCY_SHARE) / T)
            together = Gaussian("gradients", claims.together_sensitivity, width + n, T, share)
            return {"gradients": together}
        delta = validate.delta(session.delta)
        units = 2 * math.sqrt(T * math.log(2 / delta)) / self.printed
        by_w, by_u = claims.by_w_sensitivity, claims.by_u_sensitivity
        sigma = units * claims.s_1, units * claims.s_2
        return {
            "gradient_by_w": Gaussian("gradient by w", by_w, width, T, printed=sigma[0]),
            "gradient_by_u": Gaussian("gradient by u", by_u, n, T, printed=sigma[1]),
        }

    def noise(self, grants: Any) -> tuple[float, float]:
        r"""The :math:`\sigma_1` and :math:`\sigma_2` that were granted."""
        if self.printed is None:
            scale = grants.gradients.scale
            return self.claims.s_1 * scale, self.claims.s_2 * scale
        return grants.gradient_by_w.scale, grants.gradient_by_u.scale

    def noisy(
        self, session: Session, grants: Any, cleaning: Cleaning, columns: int
    ) -> PrivateGradients:
        """The private part of a step, released; trades the grants of :meth:`mechanisms`."""
        rows, claims = session.hide(Rows(cleaning)), self.claims
        if rows.shape[1] != columns + 1:  # a public fact: the width of the tables
            raise ValueError(f"private rows must have labels, and {columns} columns once cleaned.")

        def together(w: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
            hidden = claims.together(session, rows, w, u)
            return claims.apart(session.release(grants.gradients, hidden), w)

        def apart(w: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
            by_w = session.release(grants.gradient_by_w, claims.by_w(session, rows, w, u))
            return by_w, session.release(grants.gradient_by_u, claims.by_u(session, rows, w, u))

        return together if self.printed is None else apart


def objective_gradients(
    loss: RowLoss,
    penalty: ConvexPenalty | SmoothPenalty,
    public: tuple[FloatArray, FloatArray],
    private: PrivateGradients | None,
    offset: float,
    w: FloatArray,
    u: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    r"""Gradients of F (or J) by w and by u, the private part with whatever noise it brings.

    Parameters
    ----------
    public : (ndarray, ndarray)
        The m rows and labels that come first in u; none if they have no weight.
    private : callable, optional
        Of w and the private u: their gradient by w, and losses over u^2. None if private rows have
        no weight.
    offset : float
        Of the public losses.

    Examples
    --------
    >>> from dpadapt.papers.reweighting.objective import SquaredLoss
    >>> objective_gradients(
    ...     SquaredLoss(), ConvexPenalty(np.array([0.5, 0.5]), (1.0, 0.0, 0.0)),
    ...     (np.eye(2), np.ones(2)), None, 0.0, np.zeros(2), np.full(2, 2.0),
    ... )
    (array([-1., -1.]), array([0., 0.]))
    """
    X, y = public
    m = len(X)
    by_w, by_u = loss_gradients(loss, X, y, w, u[:m])
    gradient_u = penalty.gradient(u)
    gradient_u[:m] -= by_u + offset / u[:m] ** 2
    if private is not None and len(u) > m:
        private_w, private_u = private(w, u[m:])
        by_w = by_w + private_w
        gradient_u[m:] -= private_u
    return by_w, gradient_u


def project(w: FloatArray, norm_bound: float) -> FloatArray:
    """The nearest point of the ball."""
    projected: FloatArray = w / max(1.0, float(np.linalg.norm(w)) / norm_bound)
    return projected


def active_public(X: FloatArray, y: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """The public rows that have any weight."""
    return (X, y) if alpha > 0 else (X[:0], y[:0])


def public_weights(u: FloatArray, m: int, alpha: float) -> FloatArray:
    """Weights q of the public rows."""
    return 1 / u[:m] if alpha > 0 else np.zeros(m)


def whole_labelled_sample(session: Session) -> tuple[int, float]:
    """Number of private rows, and how many for each that has a label; refuses a split session."""
    if session.size("holdout"):
        raise ValueError("session must not be split: the sensitivity is that of all its rows.")
    return session.n_given, session.n_given / session.n_rows


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
