"""The default: descend from the public model as far as the known noise allows; nothing to tune.

::

    w_1 <- penalised logistic regression of the public rows
    kappa <- noise of a logit that public facts allow, rate from it   (horizon.plan_horizon)
    for t = 1, ..., T do
        G_t <- sum_i clip(g_i(w_t), tau) + N(0, (sigma tau)^2 I)
        w_{t+1} <- w_t - rate G_t
    Result: w_{T+1}
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dpadapt.learning.constraints import Flag, Positive, Table
from dpadapt.learning.descent import descend
from dpadapt.learning.softmax import Array, gradient

from . import horizon
from ._solver import Run, Solver
from .public_phase import class_energy
from .steps import StableSteps


@dataclass(frozen=True)
class KnownNoise(Solver):
    """Descent on the private loss, as far as the known noise allows.

    Parameters
    ----------
    clip : float, default=0.5
        tau, bound on a row's gradient norm.
    mixing : float, default=0.0
        Weight of public gradients in each step. They are worth nothing where public and private
        rows are alike, and cost accuracy where they are not.
    average : bool, default=False
        Return the mean of the iterates instead of the last.
    projection : {"features"} or FeatureProjection, optional
        Project rows on the span of the public ones.

    Examples
    --------
    >>> KnownNoise().usual_steps.least
    100
    """

    clip: float = horizon.CLIP
    mixing: float = 0.0
    average: bool = False
    projection: Any = None

    _constraints: ClassVar[Table] = {"clip": [Positive()], "average": [Flag()]}
    words: ClassVar[str] = "descent on the private loss, as far as the known noise allows"

    @property
    def usual_steps(self) -> StableSteps:
        """So many that no step is too long."""
        return StableSteps(horizon.STEPS, horizon.MOST_STEPS, horizon.STEP, self.clip)

    def train(self, run: Run) -> tuple[Array, dict[str, Any]]:
        """Plan the horizon, and run the loop."""
        public, iterates = run.public, run.iterates
        plan = horizon.plan_horizon(
            run.sample_size,
            math.sqrt(iterates.number) / run.gradients.sigma,
            class_energy(public),
            public.classes,
            steps=iterates.number,
            clip=self.clip,
            most=_affordable(run),
        )

        def noisy(W: Array) -> Array:
            G = run.gradients(W, self.clip)
            if self.mixing and len(public):
                G = G + self.mixing * gradient(public.rows, public.codes, W)
            iterates.add(W, self.clip)
            return G

        W = descend(noisy, run.start, plan.rate, iterates.number, last=1)
        return (iterates.mean if self.average else W), {"plan_": plan}


def _affordable(run: Run) -> float:
    """Noise of a logit that the start can afford, by public rows that it has not seen."""
    if not len(run.public) or run.origin == "zero":
        return 1.0
    if run.origin == "given":
        return horizon.affordable_noise(horizon.margins_of(run.public, run.start))
    margins = horizon.unseen_margins(run.public)
    return 1.0 if margins is None else horizon.affordable_noise(margins)
