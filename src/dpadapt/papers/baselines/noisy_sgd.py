r"""Noisy stochastic gradient descent on the private target alone (Bassily et al. 2019).

As printed: T steps on minibatches of :math:`\max(n \sqrt{\epsilon / (4T)}, 1)` rows drawn in
secret, within a ball, with noise :math:`\sigma^2 = 8 T G^2 \log(1/\delta) / (n \epsilon)^2` on the
mean gradient, G a bound on a gradient's norm; the answer is the mean of all iterates.

Secret sampling is not something a session does, so every step here takes *all* rows: the same
noise, no sampling error, and an event that is exactly Gaussian. With ``calibration="paper"`` the
noise is the printed one and the guarantee says what it gives over full batches (mu is
:math:`\epsilon / \sqrt{2 \log(1/\delta)}`, whatever T); with "tight" it is calibrated exactly.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Count, Null, OneOf, ParameterTable, Positive
from dpadapt.privacy import Guarantee, Private
from dpadapt.privacy.mechanisms import Gaussian

from ._base import PrivateRegressor
from ._descent import noisy_descent
from ._tasks import BaselineTask
from .queries import ClippedGradient

_MOST_STEPS = 200  # by default: every one reads all rows


class NoisySGDRegressor(PrivateRegressor):
    """Linear regression by the noisy SGD of Bassily et al. (2019) on the private rows.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    calibration : {"tight", "paper"}, default="tight"
        Noise calibrated to what was asked, or the printed one.
    steps : int, optional
        T; by default the number of private rows, at most 200.
    norm_bound : float, optional
        Radius of the ball of coefficients, in public units (columns and labels standardised). By
        default twice the norm of the public coefficients.
    noise : {"secure", "seeded", "exact"}, default="secure"
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
    verbose : int, default=0

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
    intercept_ : float
    guarantee_ : Guarantee

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = NoisySGDRegressor(epsilon=1.0, delta=1e-6)
    >>> model = model.fit(X, X[:, 0], private=Private(X, X[:, 0] + 1))
    >>> model.guarantee_.epsilon <= 1.0
    True
    """

    _constraints: ClassVar[ParameterTable] = {
        "calibration": [OneOf("tight", "paper")],
        "steps": [Count(), Null()],
        "norm_bound": [Positive(), Null()],
    }

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        calibration: str = "tight",
        steps: int | None = None,
        norm_bound: float | None = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.calibration = calibration
        self.steps = steps
        self.norm_bound = norm_bound
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _coefficients(
        self, task: BaselineTask, private: Private, options: dict[str, Any]
    ) -> tuple[FloatArray, Guarantee]:
        n = private.n_rows
        steps = min(n, _MOST_STEPS) if self.steps is None else self.steps
        ball = self.norm_bound or max(2 * float(np.linalg.norm(task.public_fit())), 1e-6)
        # |gradient| = |z| |z.w - t| within the ball, for rows of norm R and labels within the bound
        largest = task.radius * (ball * task.radius + task.label_bound)
        rows, start = task.prepared(), task.zero()
        with private.open(**options) as session:
            self._count(session)
            first = session.hide(ClippedGradient(rows, start, largest, 0), keep=True)
            noisy = Gaussian.of(first, count=steps)
            if self.calibration == "paper":
                printed = largest * math.sqrt(8 * steps * math.log(1 / options["delta"]))
                noisy = dataclasses.replace(noisy, printed=printed / (n * options["epsilon"]))
            grants = session.plan(gradient=noisy)

            def gradient(w: FloatArray) -> FloatArray:
                query = ClippedGradient(rows, w, largest, 0)
                return np.asarray(session.release(grants.gradient, session.hide(query, keep=True)))

            # the step of the paper: balances the ball against gradient and noise
            noise = len(start) * grants.gradient.scale**2
            step = ball / math.sqrt(steps * (largest**2 + noise))
            found = noisy_descent(gradient, start, steps, step, keep=1.0, radius=ball)
        return found, session.guarantee
