r"""Algorithm 1 of the paper (PCnvxAdap): noisy projected gradient descent on F, in w and u at once.

    u_0 = 1/p,  w_0 = 0 (or the public solution)
    for t = 0 ... T - 1:
        w <- Proj(w - eta_w (grad_w F + N(0, sigma_1^2)))
        u <- max(u - eta_u (grad_u F + N(0, sigma_2^2) on private rows), 1/p)
    return the averages of w_t and u_t

Of the private rows come out, in every step, their part of the gradient by w (sensitivity
:math:`s_1 = 2 (1 - \alpha) G / n`: each row has a weight of :math:`(1 - \alpha) / n` at most) and
the n losses over :math:`u^2` (:math:`s_2 = (1 - \alpha)^2 B / n^2`: one entry moves); and once the
labelled discrepancy :math:`\hat d`, which adds to the public losses. u is a function of what was
released, so that whoever has the output may have it.

**Calibrations.** "paper" takes the printed noise: Lap(B/n) on :math:`\hat d`,
:math:`\sigma_i = 2 s_i \sqrt{T \log(2/\delta)} / \epsilon'` with :math:`\epsilon' = \epsilon / 2`
on the rest. (Errata: Lap(B/n) has a privacy loss of 1 whatever epsilon is, so at small epsilon the
total exceeds the claim; and so does the Gaussian part for :math:`\epsilon'` above 7.9 at delta
0.01, 9.4 at 1e-5. The guarantee says what is really given.) "tight" is the same algorithm with
Gaussian noise throughout, calibrated exactly, with a tenth of :math:`\mu^2` for the discrepancy;
the two gradients are released together, which moves less than the two apart:

**Joint sensitivity.** Let :math:`a, a' \in [0, 1]` be the absolute residuals of the replaced row
and of its replacement, over :math:`\sqrt B`. In units of :math:`s_1` and :math:`s_2` the gradients
move by :math:`(a + a') / 2` and :math:`|a^2 - a'^2|` at most, together by the root of
:math:`(a + a')^2 [(a - a')^2 + 1/4]`. Scaling both up increases it, so one of them is 1; then
:math:`a' = (1 - 1/\sqrt2) / 2` is worst: 1.2862 under the root, not 2.

**What it does not do.** With the printed step sizes u hardly moves (a relative change of about
:math:`\sqrt T n^{-3/2}` in all), and a private row's own u has a signal far below its noise: half
of the Gaussian budget buys nothing. At :math:`\alpha` = 1 private rows enter only through one
number, :math:`\hat d`, and more of them cannot help.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpadapt.privacy import Cleaning, Grant, Request, Session
from dpadapt.privacy import _validate as validate

from ._descent import (
    DISCREPANCY_SHARE,
    Adapted,
    Array,
    PrivateGradients,
    Scales,
    active_public,
    check_public,
    check_three,
    descend,
    private_gradients,
    public_weights,
    whole_sample,
)
from .labelled_discrepancy import (
    LabelledDiscrepancy,
    ball_maximum,
    labelled_discrepancy,
    labelled_moment,
    row_length,
)
from .objective import ConvexPenalty, SquaredLoss, gradient_bounds, reference_weights

__all__ = ["Adapted", "ConvexAdaptation"]

_WORST = (1 - math.sqrt(0.5)) / 2
JOINT_SENSITIVITY = (1 + _WORST) * math.sqrt((1 - _WORST) ** 2 + 0.25)  # root of 1.2862


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

    X: Array
    y: Array
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

    def fit(self, session: Session, cleaning: Cleaning) -> Array:
        """Spend a whole session; return the coefficients."""
        grants = session.plan(*self.requests(session, cleaning))
        return self.release(session, grants, cleaning).coefficients

    def requests(self, session: Session, cleaning: Cleaning) -> list[Request]:
        """Ask for the discrepancy if public rows have weight, for gradients if private ones do."""
        target, asked = LabelledDiscrepancy(self.X, self.y, self.norm_bound, cleaning), []
        printed = self.calibration == "paper"
        if self.alpha > 0:
            moment, form = session.hide(target.query), "paper" if printed else "gaussian"
            share = math.sqrt(DISCREPANCY_SHARE)
            asked.append(target.request(session, moment, calibration=form, weight=share))
        if self.alpha < 1:
            asked += self._scales(session, cleaning).requests(
                session,
                joint=JOINT_SENSITIVITY,
                width=self.X.shape[1],
                steps=self.steps,
                printed=session.epsilon / (2 if asked else 1) if printed else None,
            )
        return asked

    def release(self, session: Session, grants: Sequence[Grant], cleaning: Cleaning) -> Adapted:
        """Run the algorithm; trades the grants of :meth:`requests`."""
        discrepancy, left = 0.0, list(grants)
        if self.alpha > 0:
            target = LabelledDiscrepancy(self.X, self.y, self.norm_bound, cleaning)
            discrepancy = target.release(session, left.pop(0), session.hide(target.query))
        scales = self._scales(session, cleaning)
        private = scales.noisy(session, left, SquaredLoss(), cleaning, self.X.shape[1])
        noise, length = scales.noise(left), row_length(cleaning)
        return self._run(private, discrepancy, length=length, n=session.n_rows, noise=noise)

    def minimise(self, X_private: npt.ArrayLike, y_private: npt.ArrayLike) -> Adapted:
        """CnvxAdap: the same without noise, for rows that may be looked at."""
        X, y = np.asarray(X_private, dtype=np.float64), np.asarray(y_private, dtype=np.float64)
        moments = labelled_moment(self.X, self.y), labelled_moment(X, y)
        discrepancy = labelled_discrepancy(*moments, self.norm_bound) if self.alpha > 0 else 0.0
        length = float(np.linalg.norm(np.concatenate([self.X, X]), axis=1).max())
        return self._run(
            lambda w, u: private_gradients(SquaredLoss(), X, y, w, u),
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

    def _scales(self, session: Session, cleaning: Cleaning) -> Scales:
        loss, length = SquaredLoss(), row_length(cleaning)
        return Scales.of(
            G=loss.lipschitz(length, self.norm_bound),
            B=loss.bound(length, self.norm_bound),
            alpha=self.alpha,
            n=whole_sample(session),
            width=self.X.shape[1],
        )

    def _run(
        self,
        private: PrivateGradients,
        discrepancy: float,
        *,
        length: float,
        n: int,
        noise: tuple[float, float],
    ) -> Adapted:
        public = active_public(self.X, self.y, self.alpha)
        penalty = ConvexPenalty(reference_weights(len(self.X), n, self.alpha), self.kappa)
        step_w, public_step, private_step = self.step_sizes(length, n, noise)
        steps_u = np.full(len(penalty.reference), private_step)
        steps_u[: len(public[0])] = public_step
        path = descend(
            SquaredLoss(),
            penalty,
            public,
            private,
            self._first(),
            offset=discrepancy,
            norm_bound=self.norm_bound,
            step_w=step_w,
            steps_u=steps_u,
        )
        mean_w, mean_u = np.zeros(self.X.shape[1]), np.zeros(len(steps_u))
        for _, (w, u) in zip(range(self.steps), path, strict=False):
            mean_w += w / self.steps
            mean_u += u / self.steps
        return Adapted(mean_w, public_weights(mean_u, len(self.X), self.alpha), discrepancy)

    def _first(self) -> Array:
        if self.start == "zero":
            return np.zeros(self.X.shape[1])
        moment = labelled_moment(self.X, self.y)
        return ball_maximum(-moment[:-1, :-1], -moment[:-1, -1], 0.0, self.norm_bound).point
