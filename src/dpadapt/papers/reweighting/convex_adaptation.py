r"""Algorithm 1 of the paper, PCnvxAdap: noisy projected gradient descent on F, in w and u at once.

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
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning, Mechanism, Session

from ._adaptation import (
    DISCREPANCY_SHARE,
    Adapted,
    PrivateGradients,
    PrivateSteps,
    active_public,
    check_public,
    check_three,
    objective_gradients,
    project,
    public_weights,
    whole_labelled_sample,
)
from .labelled_discrepancy import ball_maximum, labelled_discrepancy, labelled_moment, row_length
from .objective import (
    ConvexPenalty,
    SquaredLoss,
    gradient_bounds,
    loss_gradients,
    reference_weights,
)
from .queries.adaptation import StepClaims
from .released_discrepancy import LabelledDiscrepancy


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
