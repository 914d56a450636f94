r"""Algorithm 1 (NoisyGD) of paper 004: gradient descent on noisy sums of clipped gradients.

::

    Data: private rows D, (epsilon, delta), noise sigma, clip tau, rate eta, penalty lambda
    T <- Calibrate(epsilon, delta, sigma)                             (steps.steps_for_noise)
    w_1 = 0
    for t = 1, ..., T do
        G_t <- sum_i g_i(w_t) min(1, tau / |g_i(w_t)|) + N(0, (sigma tau)^2 I)
        w_{t+1} <- P_W(w_t - eta (G_t / N + lambda w_t))
    Result: w_{T+1}, or the mean of w_1, ..., w_T

N is public or noisy. Reconstructed from the paper's supplement; its main text was not at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Flag, Instance, NonNegative, Null, ParameterTable, Positive
from dpadapt.learning.descent import descend
from dpadapt.mixing.solver import Run

from .constraint import ConstraintSet
from .steps import PaperSolver


@dataclass(frozen=True)
class NoisyGD(PaperSolver):
    """Noisy gradient descent (Algorithm 1).

    Parameters
    ----------
    learning_rate : float, default=2.0
        eta, on the mean gradient. 2 is one over the curvature of the loss of unit rows.
    clip : float, default=1.0
        tau, bound on a row's gradient norm, which is at most 1.42 anyway.
    penalty : float, default=0.0
        lambda, of the squared norm of the weights.
    average : bool, default=False
        Return the mean of the iterates instead of the last.
    within : Ball or Box, optional
        W, the set that weights are projected on after every step; by default all of space.

    Examples
    --------
    >>> NoisyGD(clip=0.5).learning_rate
    2.0
    """

    learning_rate: float = 2.0
    clip: float = 1.0
    penalty: float = 0.0
    average: bool = False
    within: ConstraintSet | None = None

    _constraints: ClassVar[ParameterTable] = {
        "learning_rate": [Positive()],
        "clip": [Positive()],
        "penalty": [NonNegative()],
        "average": [Flag()],
        "within": [Instance(ConstraintSet), Null()],
    }
    words: ClassVar[str] = "noisy gradient descent (Golatkar et al. 2022, Algorithm 1)"

    def train(self, run: Run) -> tuple[FloatArray, dict[str, Any]]:
        """Run the loop."""
        iterates, allowed = run.iterates, self.within

        def noisy(W: FloatArray) -> FloatArray:
            G = run.gradients(W, self.clip)
            iterates.add(W, self.clip)
            return G / run.sample_size + self.penalty * W

        def project(W: FloatArray) -> FloatArray:
            return W if allowed is None else allowed.project(W, run.start)

        facts = (run.start, self.learning_rate, iterates.number)
        W = descend(noisy, *facts, last=1, project=project)
        return (iterates.mean if self.average else W), {}
