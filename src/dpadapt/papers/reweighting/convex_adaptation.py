r"""Algorithm 1 of the paper, PCnvxAdap: noisy projected gradient descent on F, in w and u at once.

First stands what Algorithm 2 needs too: one noisy step, how it is planned, checks.

With the line numbers of the paper, :math:`\Lambda` the norm bound and p the reference weights::

     1   w_0 = 0 (or the public solution),  u_0 = 1/p
     2   sigma_1 = 2 s_1 sqrt(T log(2/delta)) / epsilon,   s_1 = 2 (1 - alpha) G / n
     3   sigma_2 = 2 s_2 sqrt(T log(2/delta)) / epsilon,   s_2 = (1 - alpha)^2 B / n^2
     4   eta_w, eta_u,pub, eta_u,priv: :meth:`ConvexAdaptation.step_sizes`
     5   for t = 0 ... T - 1:
     6       w <- w - eta_w (grad_w F(w, u) + z),   z ~ N(0, sigma_1^2)
     7       if |w| > Lambda: w <- Lambda w / |w|
    8-11     u <- max(u - eta_u (grad_u F(w, u) + z'), 1/p),   z' ~ N(0, sigma_2^2) on private rows
    13   return the averages of w_t and u_t over t = 0 ... T - 1

The loop is :meth:`ConvexAdaptation._run`. F is in :mod:`.objective` (:class:`.ConvexPenalty`), what
a step takes from private rows and how far that can move in :class:`.queries.StepClaims`. Before the
loop the labelled discrepancy :math:`\hat d`, which adds to the public losses, is released once. u
is a function of what was released, so that whoever has the output may have it.

**Calibrations.** "paper" takes the printed noise: Lap(B/n) on :math:`\hat d`, lines 2 and 3 with
:math:`\epsilon / 2` on the rest. (Errata: Lap(B/n) has a privacy loss of 1 whatever epsilon is, so
at small epsilon the total exceeds the claim; and so does the Gaussian part for an
:math:`\epsilon / 2` above 7.9 at delta 0.01, 9.4 at 1e-5. The guarantee says what is really given.)
"tight" is the same algorithm with Gaussian noise throughout, calibrated exactly, with a tenth of
:math:`\mu^2` for the discrepancy; the two gradients are released together, which moves less than
the two apart.

**What it does not do.** With the printed step sizes u hardly moves (a relative change of about
:math:`\sqrt T n^{-3/2}` in all), and a private row's own u has a signal far below its noise: half
of the Gaussian budget buys nothing. At :math:`\alpha` = 1 private rows enter only through one
number, :math:`\hat d`, and more of them cannot help.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning, Mechanism, Rows, Session
from dpadapt.privacy.mechanisms import Gaussian

from .labelled_discrepancy import ball_maximum, labelled_discrepancy, labelled_moment, row_length
from .objective import (
    ConvexPenalty,
    RowLoss,
    SmoothPenalty,
    SquaredLoss,
    gradient_bounds,
    loss_gradients,
    reference_weights,
)
from .queries import StepClaims
from .released_discrepancy import LabelledDiscrepancy

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


@dataclass(frozen=True, eq=False)
class ConvexAdaptation:
    r"""Linear regression on reweighted public and private rows by Algorithm 1.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    y : ndarray of shape (m,)
        Their labels, in [-1, 1].
    alpha : float, default=0.5
        Reference weight of the public sample, in [0, 1].
    kappa : (float, float, float), default=(0.1, 0, 0)
        :math:`\kappa_1, \kappa_2, \kappa_\infty`.
    norm_bound : float, default=1
        :math:`\Lambda`.
    steps : int, default=100
        T.
    start : {"zero", "public"}, default="zero"
        "public": least squares on the public rows within the ball. The solution may then be
        :math:`2 \Lambda` away, and the step size allows for it.
    calibration : {"tight", "paper"}, default="tight"

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> X, y = np.array([[1.0], [-1.0]] * 50), np.array([0.5, -0.5] * 50)
    >>> algorithm = ConvexAdaptation(X, y, alpha=0.2, steps=200)
    >>> bool(abs(algorithm.minimise(X, y).coefficients[0] - 0.5) < 0.1)
    True

    >>> cleaning = Cleaning(radius=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    >>> with Private(X, y).open(epsilon=1.0, delta=1e-6) as session:
    ...     coefficients = algorithm.fit(session, cleaning)
    >>> coefficients.shape, session.guarantee.epsilon <= 1.0
    ((1,), True)
    """

    X: FloatArray
    y: FloatArray
    alpha: float = 0.5
    kappa: tuple[float, float, float] = (0.1, 0.0, 0.0)
    norm_bound: float = 1.0
    steps: int = 100
    start: str = "zero"
    calibration: str = "tight"

    def __post_init__(self) -> None:
        check_public(self)
        check_three("kappa", self.kappa)
        validate.count("steps", self.steps)

    def fit(self, session: Session, cleaning: Cleaning) -> FloatArray:
        """Spend a whole session; return the coefficients."""
        grants = session.plan(**self.mechanisms(session, cleaning))
        return self.release(session, grants, cleaning).coefficients

    def mechanisms(self, session: Session, cleaning: Cleaning) -> dict[str, Mechanism]:
        """Course the discrepancy if public rows have weight, gradients if private ones do."""
        planned: dict[str, Mechanism] = {}
        if self.alpha > 0:
            target = LabelledDiscrepancy(self.X, self.y, self.norm_bound, cleaning)
            planned["discrepancy"] = target.mechanism(
                session,
                target.hide(session),
                calibration="paper" if self.calibration == "paper" else "gaussian",
                weight=math.sqrt(DISCREPANCY_SHARE),
            )
        if self.alpha < 1:
            planned |= self._steps(session, cleaning).mechanisms(session, self.X.shape[1])
        return planned

    def release(self, session: Session, grants: Any, cleaning: Cleaning) -> Adapted:
        """Run the algorithm; trades the grants of :meth:`mechanisms`."""
        discrepancy, length = 0.0, row_length(cleaning)
        if self.alpha > 0:
            target = LabelledDiscrepancy(self.X, self.y, self.norm_bound, cleaning)
            discrepancy = target.release(session, grants.discrepancy, target.hide(session))
        private, noise = None, (0.0, 0.0)
        if self.alpha < 1:
            steps = self._steps(session, cleaning)
            private = steps.noisy(session, grants, cleaning, self.X.shape[1])
            noise = steps.noise(grants)
        return self._run(private, discrepancy, length=length, n=session.n_given, noise=noise)

    def minimise(self, X_private: npt.ArrayLike, y_private: npt.ArrayLike) -> Adapted:
        """CnvxAdap: the same without noise, for rows that may be looked at."""
        X, y = np.asarray(X_private, dtype=np.float64), np.asarray(y_private, dtype=np.float64)
        moments = labelled_moment(self.X, self.y), labelled_moment(X, y)
        discrepancy = labelled_discrepancy(*moments, self.norm_bound) if self.alpha > 0 else 0.0
        length = float(np.linalg.norm(np.concatenate([self.X, X]), axis=1).max())
        return self._run(
            lambda w, u: loss_gradients(SquaredLoss(), X, y, w, u),
            discrepancy,
            length=length,
            n=len(X),
            noise=(0.0, 0.0),
        )

    def step_sizes(self, length: float, n: int, noise: tuple[float, float]) -> tuple[float, ...]:
        r"""Line 4 of Algorithm 1: for w, for a public and for a private u (0 if there is none).

        Each is one over :math:`\sqrt T` times the root mean square of a noisy gradient; for w,
        times the distance that the start may have from the solution.
        """
        (m, d), G = self.X.shape, SquaredLoss().lipschitz(length, self.norm_bound)
        B = SquaredLoss().bound(length, self.norm_bound)
        public, private = gradient_bounds(m, n, self.alpha, B, self.kappa)
        reach = self.norm_bound * (1 if self.start == "zero" else 2)
        sizes = (
            math.hypot(G, math.sqrt(d) * noise[0]) / reach,
            public,
            math.hypot(private, math.sqrt(n) * noise[1]),
        )
        return tuple(1 / (math.sqrt(self.steps) * size) if size > 0 else 0.0 for size in sizes)

    def _steps(self, session: Session, cleaning: Cleaning) -> PrivateSteps:
        """The private part of the loop; half of the printed epsilon pays for the discrepancy."""
        n, times = whole_labelled_sample(session)
        claims = StepClaims.of(
            SquaredLoss(),
            row_length(cleaning),
            self.norm_bound,
            alpha=self.alpha,
            n=n,
            width=self.X.shape[1],
            times=times,
        )
        left = session.epsilon / (2 if self.alpha > 0 else 1)
        return PrivateSteps(claims, self.steps, left if self.calibration == "paper" else None)

    def _run(
        self,
        private: PrivateGradients | None,
        discrepancy: float,
        *,
        length: float,
        n: int,
        noise: tuple[float, float],
    ) -> Adapted:
        """Lines 4 to 13; ``private`` is the private part of a gradient, with its noise."""
        loss, T, p = SquaredLoss(), self.steps, reference_weights(len(self.X), n, self.alpha)
        penalty, public = ConvexPenalty(p, self.kappa), active_public(self.X, self.y, self.alpha)
        eta_w, eta_public, eta_private = self.step_sizes(length, n, noise)
        eta_u = np.full(len(p), eta_private)
        eta_u[: len(public[0])] = eta_public
        w, u = self._first(), 1 / p
        mean_w, mean_u = w / T, u / T
        for _ in range(T - 1):  # w_T is no part of the mean, so that nothing is asked for it
            grad_w, grad_u = objective_gradients(loss, penalty, public, private, discrepancy, w, u)
            w = project(w - eta_w * grad_w, self.norm_bound)
            u = np.maximum(u - eta_u * grad_u, 1 / p)
            mean_w += w / T
            mean_u += u / T
        return Adapted(mean_w, public_weights(mean_u, len(self.X), self.alpha), discrepancy)

    def _first(self) -> FloatArray:
        if self.start == "zero":
            return np.zeros(self.X.shape[1])
        moment = labelled_moment(self.X, self.y)
        return ball_maximum(-moment[:-1, :-1], -moment[:-1, -1], 0.0, self.norm_bound).point
