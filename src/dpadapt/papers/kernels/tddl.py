r"""Algorithm 2 of Jain and Thakurta (2013), the test data dependent learner (TDDL).

The predictions of the private model w* at T points of a public pool are released, each with
independent noise, and a model is fitted to them by least squares in a ball:

    w^ = argmin_{|w| <= C} (1/T) sum_t (<w, phi(z_t)> - <w*, phi(z_t)> - b_t)^2.

Private rows are read through the predictions alone; the fit is post-processing. S is by how much
one prediction moves, R Delta (:class:`dpadapt.kernels.constants.Bounds`). Three kinds of noise:

"paper"
    Laplace noise nu = S / e_0, with e_0 from the composition theorem that the paper cites,
    sqrt(2 T ln(1/delta)) e_0 + T e_0 (exp(e_0) - 1) = epsilon. The paper gives nu up to a constant;
    this is the constant of its proof. What it gives in truth (less than epsilon) is computed by
    the session.
"laplace"
    The smallest Laplace noise whose T-fold composition fits.
"gaussian"
    Gaussian noise on all predictions at once, never more than sqrt(T) S apart.

In every one of them the noise grows with sqrt(T); that of
:class:`~dpadapt.kernels.release.GaussianProcess` does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.kernels.constants import Bounds, Constants, KernelFacts
from dpadapt.kernels.pool import Pool, nearest_in_ball
from dpadapt.kernels.release import Release
from dpadapt.learning.constraints import Between, OneOf, ParameterTable
from dpadapt.privacy import Hidden, Session
from dpadapt.privacy.accounting.calibration import calibrate, gaussian_mu
from dpadapt.privacy.accounting.events import LaplaceEvent
from dpadapt.privacy.mechanisms import Gaussian, Laplace

from . import queries
from .error_bounds import composed_epsilon, excess_of_tddl

CALIBRATIONS = ("gaussian", "laplace", "paper")


@dataclass(frozen=True, eq=False)
class TDDL(Release):
    """The paper's Algorithm 2: noise on every prediction at a pool, and a fit to them.

    Parameters
    ----------
    points, pool
        As in :class:`~dpadapt.kernels.release.Release`.
    calibration : {"gaussian", "laplace", "paper"}, default="gaussian"
        The noise; see :mod:`dpadapt.papers.kernels.tddl`.
    norm_share : float, default=0.0
        Share of the budget for a private estimate of C, the norm of the model: the ball of the fit
        is then as large as a noisy norm and two standard deviations of its noise say, and no larger
        than what lambda says. With Gaussian noise only.

    Examples
    --------
    >>> TDDL(calibration="laplace").points
    300
    """

    calibration: str = "gaussian"
    norm_share: float = 0.0

    _constraints: ClassVar[ParameterTable] = {
        "calibration": [OneOf(*CALIBRATIONS)],
        "norm_share": [Between(0, 1, right=False)],
    }
    told: ClassVar[str] = (
        "released by its values at public points (Jain and Thakurta 2013, Algorithm 2)"
    )

    def error_bound(self, facts: KernelFacts, questions: int, size: int, explicit: bool) -> float:
        """Mean error over the population that the pool was drawn from (Theorem 13).

        The theorem needs the model without noise within the ball, and all of the budget.
        """
        if self.norm_share:
            raise ValueError(
                "release: with norm_share the ball is as large as a noisy estimate says, and may "
                "leave out the model without noise; a bound is that of norm_share=0."
            )
        return excess_of_tddl(replace(facts, lipschitz=1.0), size, calibration=self.calibration)

    def coefficients(
        self, session: Session, predictions: Hidden, pool: Pool, facts: Constants
    ) -> FloatArray:
        """Release noisy predictions at the pool, and fit a model to them."""
        bounds = Bounds.joint(facts)
        if self.norm_share:
            return self._within_estimate(session, predictions, pool, bounds)
        noisy = noisy_predictions(session, predictions, pool, bounds, self.calibration)
        return nearest_in_ball(pool, noisy, bounds.norm)

    def _check(self) -> None:
        if self.norm_share and self.calibration != "gaussian":
            raise ValueError("norm_share: an estimate of the norm goes with Gaussian noise only.")

    def _within_estimate(
        self, session: Session, predictions: Hidden, pool: Pool, bounds: Bounds
    ) -> FloatArray:
        """The fit in a ball whose radius is estimated; both are paid for together."""
        whole = queries.all_predictions(session, predictions, pool, bounds)
        length = queries.norm_at_pool(session, predictions, pool, bounds)
        grants = session.plan(
            predictions=replace(Gaussian.of(whole), weight=math.sqrt(1 - self.norm_share)),
            norm=replace(Gaussian.of(length), weight=math.sqrt(self.norm_share)),
        )
        noisy = np.asarray(session.release(grants.predictions, whole))
        found = float(session.release(grants.norm, length)[0]) + 2 * grants.norm.scale
        return nearest_in_ball(pool, noisy, min(bounds.norm, max(found, 1e-12)))


def noisy_predictions(
    session: Session, predictions: Hidden, pool: Pool, bounds: Bounds, calibration: str
) -> FloatArray:
    """Plan and release predictions at the pool: all at once, or point by point.

    Parameters
    ----------
    session : Session
        With nothing planned.
    predictions : Hidden
        Of shape (T,) or (T, k).
    pool : Pool
        Points with K(z, z) above R^2 are refused: S would be wrong.
    bounds : Bounds
        Of all outputs. The norm of w* itself, which the paper takes to be public, is not.
    calibration : {"paper", "laplace", "gaussian"}

    Examples
    --------
    >>> from dpadapt.kernels.queries import predictions
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> Z = np.eye(2)
    >>> pool, private = Pool.of(Z @ Z.T), Private(np.tile([0.8, -0.6], (5000, 1)))
    >>> with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
    ...     rows = session.hide(Rows(Cleaning(radius=1.0)))
    ...     predicted = predictions(session, rows, lambda X: Z @ X.mean(axis=0))
    ...     bounds = Bounds(2 / 5000, norm=1.0)
    ...     noisy = noisy_predictions(session, predicted, pool, bounds, "laplace")
    >>> np.round(Z.T @ nearest_in_ball(pool, noisy, norm=1.0), 1)
    array([ 0.8, -0.6])
    """
    if calibration == "gaussian":
        whole = queries.all_predictions(session, predictions, pool, bounds)
        grant = session.plan(predictions=Gaussian.of(whole)).predictions
        return np.asarray(session.release(grant, whole))
    each = [
        queries.prediction_at(session, predictions, point, pool, bounds)
        for point in range(pool.size)
    ]
    planned = Laplace.of(each[0], count=pool.size)
    if calibration == "paper":
        cost = composed_epsilon(pool.size, session.epsilon, session.delta)
        planned = replace(planned, printed=planned.sensitivity / cost)
    grant = session.plan(predictions=planned).predictions
    return np.stack([session.release(grant, one) for one in each])


def pool_size(
    calibration: str,
    model: float,
    *,
    norm: float,
    epsilon: float,
    delta: float,
    available: int,
) -> int:
    """T that balances noise against generalisation, ceil(C R / A); from public facts alone.

    The error of the fit grows like A sqrt(T), with A the standard deviation of the noise of one
    prediction at T = 1, and what is not seen of other points falls like C R / sqrt(T). A is
    proportional to R, which cancels.

    Parameters
    ----------
    calibration : {"paper", "laplace", "gaussian"}
    model, norm : float
        Delta and C.
    epsilon, delta : float
    available : int
        Points at hand: the answer is not above it.

    Examples
    --------
    >>> facts = {"norm": 10.0, "epsilon": 0.5, "delta": 1e-6, "available": 1000}
    >>> pool_size("paper", 0.01, **facts), pool_size("gaussian", 0.01, **facts)
    (67, 125)
    """
    validate.choice("calibration", calibration, CALIBRATIONS)
    if calibration == "gaussian":
        unit = 1 / gaussian_mu(epsilon, delta)
    elif calibration == "paper":
        unit = math.sqrt(2) / composed_epsilon(1, epsilon, delta)
    else:
        unit = math.sqrt(2) * calibrate(
            lambda noise: [LaplaceEvent("predictions at the pool", 1.0, noise)], epsilon, delta
        )
    wanted = math.ceil(validate.positive("norm", norm) / (unit * validate.positive("model", model)))
    return max(1, min(validate.count("available", available), wanted))
