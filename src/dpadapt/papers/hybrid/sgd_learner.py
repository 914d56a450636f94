r"""Algorithm 3 of paper 003, Online SGD, as a learner: private descent on one drawn row a step.

With it the rounds of :mod:`.rounds` are Algorithm 4. One round, with the paper's names::

    h^1 <- 0
    for r = 1, ..., R:
        draw (x_r, l(x_r)) from mu^t, and v from N(0, sigma^2 I_d)
        h^{r+1} <- Proj_D(h^r - eta^r (grad L(h^r(x_r), l(x_r)) + v))
    h^t <- the mean of h^1, ..., h^R

It reads single private rows, so the loop runs in the trusted core:
:mod:`dpadapt.papers.hybrid.doors.descent` plans, draws and charges,
``dpadapt/papers/hybrid/doors/_descent.py`` takes the steps. These are the corrected ones,
:math:`\eta^r = D / (G \sqrt r)` with :math:`G^2 = L^2 + \sigma^2 d` (printed:
:math:`D / (\sigma \sqrt r)`), the loss has a margin, and the privacy of R T draws is certified
instead of bounded by truncated concentrated DP, which asks for about seven times more rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dpadapt.hybrid.rules import LinearRule
from dpadapt.learning.constraints import Count, NonNegative, Null, OneOf, ParameterTable, Positive

from .doors.descent import Descent, DrawnDescent
from .learners import Learner, LearningTask, WeightedRows


@dataclass(frozen=True)
class SGDLearner(Learner):
    """A linear rule by R noisy steps, each on one row drawn from the weights.

    Rows have norm at most 1 after their division by C (:class:`LinearRule`), so gradients of both
    losses have norm at most 1: L = 1, and nothing is clipped.

    Parameters
    ----------
    steps : int, default=300_000
        R, of one round.
    radius : float, default=4.0
        Of the ball that the coefficients stay in, in units of C: the paper's D, a diameter, is
        twice that times C.
    loss : {"logistic", "hinge"}, default="logistic"
    margin : float, default=1.0
        Of the hinge. Erratum: the printed loss has none, and is 0 for the rule that says nothing.
    penalty : float, default=0.0
        lambda, of half the squared norm of the coefficients. Above 0 the loss is strongly convex,
        and steps are 1 / (lambda r).
    lasso : float, default=0.0
        Of the sum of absolute coefficients: a sparse rule.
    sigma : float, optional
        Noise of a step, taken as it is; by default as much as the budget needs. The paper's is
        the square root of 20. The guarantee says what it gives.

    Examples
    --------
    >>> import numpy as np
    >>> blank = LinearRule("linear", np.zeros(2), np.ones(2), np.zeros(3), (0, 1))
    >>> planned = SGDLearner(steps=1000).mechanism(LearningTask(10_000, 2, blank), density=0.5)
    >>> planned.count, round(planned.rate, 6)
    (1000, 0.0002)
    """

    steps: int = 300_000
    radius: float = 4.0
    loss: Literal["logistic", "hinge"] = "logistic"
    margin: float = 1.0
    sigma: float | None = None
    penalty: float = 0.0
    lasso: float = 0.0

    _constraints: ClassVar[ParameterTable] = {
        "steps": [Count()],
        "radius": [Positive()],
        "loss": [OneOf("logistic", "hinge")],
        "margin": [NonNegative()],
        "sigma": [Positive(), Null()],
        "penalty": [NonNegative()],
        "lasso": [NonNegative()],
    }

    def _check(self) -> None:
        if self.loss == "logistic" and self.margin != 1:
            raise ValueError(
                "margin: the logistic loss has none; leave it 1, or take loss='hinge'."
            )

    def descent(self, task: LearningTask) -> Descent:
        """Descent of one round."""
        radius = self.radius * task.blank.clip
        kind = (self.loss, self.margin, None, self.penalty, self.lasso)
        return Descent(task.embedded, 1.0, radius, self.steps, *kind)

    def mechanism(self, task: LearningTask, density: float) -> DrawnDescent:
        """R steps, at a rate of 1 / (density n)."""
        facts = (self.descent(task), "descent on drawn rows", density, task.n_rows)
        return DrawnDescent.planned(*facts, printed=self.sigma)

    def learn(self, rows: WeightedRows) -> LinearRule:
        """Mean of the R iterates from 0."""
        average = rows.release(rows.draws(), descent=self.descent(rows.task))
        return rows.task.blank.with_coefficients(average)
