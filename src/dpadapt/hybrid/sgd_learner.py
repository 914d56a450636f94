r"""Algorithm 3 of paper 003: private gradient descent on one drawn row a step.

With it the loop is Algorithm 4. The steps are the corrected ones, :math:`D / (G \sqrt r)` with
:math:`G^2 = L^2 + \sigma^2 d` (printed: :math:`D / (\sigma \sqrt r)`), the loss has a margin, and
the privacy of R T draws is certified instead of bounded by truncated concentrated DP, which asks
for about seven times more rows (:class:`~dpadapt.privacy.events.OneDrawGaussianEvent`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dpadapt.privacy import Grant, Request, Session
from dpadapt.privacy import _validate as validate
from dpadapt.privacy.descent import Descent
from dpadapt.privacy.weights import RowWeights

from .learners import Task
from .rules import LinearRule

__all__ = ["SGDLearner"]


@dataclass(frozen=True)
class SGDLearner:
    """A linear rule by R noisy steps, each on one row drawn from the weights.

    Rows have norm at most 1 after their division by C (:class:`LinearRule`), so gradients of both
    losses have norm at most 1: L = 1, and nothing is clipped.

    Parameters
    ----------
    steps : int, default=300_000
        R, of one round.
    radius : float, default=4.0
        D of the paper, of the ball that the coefficients stay in; in units of C.
    loss : {"logistic", "hinge"}, default="logistic"
    margin : float, default=1.0
        Of the hinge. Erratum: the printed loss has none, and is 0 for the rule that says nothing.
    sigma : float, optional
        Noise of a step, taken as it is; by default as much as the budget needs. The paper's is
        the square root of 20. The guarantee says what it gives.

    Examples
    --------
    >>> import numpy as np
    >>> blank = LinearRule("linear", np.zeros(2), np.ones(2), np.zeros(3), (0, 1))
    >>> (request,) = SGDLearner(steps=1000).requests(Task(10_000, 2, blank), [0.5])
    >>> request.count, round(request.rate, 6)
    (1000, 0.0002)
    """

    steps: int = 300_000
    radius: float = 4.0
    loss: Literal["logistic", "hinge"] = "logistic"
    margin: float = 1.0
    sigma: float | None = None

    def __post_init__(self) -> None:
        validate.count("steps", self.steps)
        validate.positive("radius", self.radius)
        validate.choice("loss", self.loss, ("logistic", "hinge"))
        validate.non_negative("margin", self.margin)
        if self.sigma is not None:
            validate.positive("sigma", self.sigma)

    def descent(self, task: Task) -> Descent:
        """Descent of one round."""
        radius = self.radius * task.blank.clip
        return Descent(task.embedded, 1.0, radius, self.steps, self.loss, self.margin)

    def requests(self, task: Task, densities: Sequence[float]) -> tuple[Request, ...]:
        """R steps a round, at a rate of 1 / (density n)."""
        descent = self.descent(task)
        return tuple(
            descent.request("descent on drawn rows", density, task.n_rows, printed=self.sigma)
            for density in densities
        )

    def learn(
        self,
        task: Task,
        session: Session,
        grants: tuple[Grant, ...],
        weights: RowWeights,
        density: float,
    ) -> LinearRule:
        """Mean of the R iterates from 0."""
        (grant,) = grants
        average = session.noisy_descent(grant, weights, density, self.descent(task))
        return task.blank.with_coefficients(average)
