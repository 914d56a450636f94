"""The rounds of Algorithm 3, TDIL: how many there are, and what each of them costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpadapt import _validate as validate
from dpadapt.kernels.constants import Bounds
from dpadapt.privacy import Mechanism
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.mechanisms import Exponential, ExponentialOnBall, Gaussian

from .machines import POTENTIAL


@dataclass(frozen=True)
class Rounds:
    """How many rounds, and what each costs; public.

    Parameters
    ----------
    count : int
        B.
    prediction : float
        S, by how much one prediction of one output moves, with its rounding error (twice).
    bound : float
        R.
    failure : float, default=0.05
        beta: probability that some noise is above sigma/4. Of no matter for privacy.
    share : float, default=0.5
        Part of the budget (of rho) that chooses points; the rest measures.
    outputs : int, default=1
        k: each gets B rounds of its own.

    Examples
    --------
    >>> planned = Rounds(10, prediction=0.01, bound=1.0).mechanisms()
    >>> planned["points"].sensitivity, planned["differences"].sensitivity, planned["points"].count
    (0.02, 0.01, 10)
    """

    count: int
    prediction: float
    bound: float
    failure: float = 0.05
    share: float = 0.5
    outputs: int = 1

    def __post_init__(self) -> None:
        validate.count("count", self.count)
        validate.positive("prediction", self.prediction)
        validate.positive("bound", self.bound)
        validate.fraction("failure", self.failure)
        validate.fraction("share", self.share)
        validate.count("outputs", self.outputs)

    @classmethod
    def of(
        cls,
        bounds: Bounds,
        *,
        epsilon: float,
        delta: float,
        failure: float = 0.05,
        share: float = 0.5,
        outputs: int = 1,
    ) -> Rounds:
        """As many rounds as steps are needed, at the noise of so many rounds.

        sigma grows like sqrt(B) and the number of steps like 1 / sigma^2, so both meet.
        """
        mu = gaussian_mu(epsilon, delta) * math.sqrt((1 - share) / outputs)
        reach = bounds.radius * bounds.norm / (bounds.prediction / mu)
        count = 1.0
        for _ in range(50):
            spread = 4 * math.sqrt(2 * math.log(2 * count / failure))
            count = max(1.0, math.sqrt(POTENTIAL) * reach / spread)
        return cls(math.ceil(count), bounds.prediction, bounds.radius, failure, share, outputs)

    def mechanisms(self, *, ball: bool = False) -> dict[str, Mechanism]:
        """The choices of points and the measurements, to be planned together.

        Parameters
        ----------
        ball : bool, default=False
            Whether points are chosen from the ball, not from a pool.
        """
        count = self.count * self.outputs
        # a choice costs e^2/8 and a measurement (S/s)^2/2: twice the weight is the same cost
        choose, measure = 2 * math.sqrt(self.share), math.sqrt(1 - self.share)
        points: Exponential = Exponential("points", 2 * self.prediction, 1, count, choose)
        if ball:
            points = ExponentialOnBall(
                "points", 2 * self.prediction, 1, count, choose, radius=self.bound
            )
        return {
            "points": points,
            "differences": Gaussian("differences", self.prediction, 1, count, measure),
        }

    def threshold(self, scale: float) -> float:
        """sigma: above four times every noise of the measurements, save with probability beta."""
        rounds = self.count * self.outputs
        return 4 * scale * math.sqrt(2 * math.log(2 * rounds / self.failure))

    def step(self, scale: float) -> float:
        """Length of a step, eta."""
        return self.threshold(scale) / (4 * self.bound**2)
