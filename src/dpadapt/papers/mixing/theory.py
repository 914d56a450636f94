r"""Algorithm 3 of paper 004: the version of AdaMix that the theorems are about.

::

    Data: public rows D_pub, private rows D, (epsilon, delta), sigma, Lipschitz constant L,
          curvature c, penalty lambda
    Public phase, one pass in a shuffled order:                       (public_phase.one_pass)
        w <- 0; for t = 1, ..., N_pub: w <- w - 2 / (c (t + 1)) g~_t(w);  w_ref <- w
    T <- Calibrate(epsilon, delta, sigma)                             (steps.steps_for_noise)
    Mix-training phase, on the sum of all losses plus lambda / 2 |w - w_ref|^2:
    w_1 = w_ref
    for t = 1, ..., T do
        G_t <- sum_i clip(g_i(w_t), L) + N(0, (sigma L)^2 I) + m sum_j g~_j(w_t)
        w_{t+1} <- P_W(w_t - 2 / (lambda (t + 1)) (G_t + lambda (w_t - w_ref)))
    Result: sum_t 2 t / (T (T + 1)) w_t

Erratum: the printed update lacks lambda (w_t - w_ref), the gradient of its own objective. Gradients
are clipped at L, which makes it a Lipschitz constant; W is all of space unless ``within`` is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Instance, Null, ParameterTable, Positive
from dpadapt.learning.softmax import gradient
from dpadapt.mixing.features import PublicSample
from dpadapt.mixing.solver import Run

from .constraint import ConstraintSet
from .public_phase import one_pass
from .steps import PaperSolver

_CURVATURE = 0.1  # c of the expected loss, guessed
_LIPSCHITZ = 1.0  # of the public pass


@dataclass(frozen=True)
class Theory(PaperSolver):
    """AdaMix as its theorems have it (Algorithm 3).

    Parameters
    ----------
    clip : float, default=1.0
        L, at which gradients are clipped.
    penalty : float, optional
        lambda, of the squared distance from the public model. By default from Theorem 3.
    mixing : float, default=1.0
        m, weight of public gradients in each step; 1 in the paper.
    projection : {"features"} or FeatureProjection, optional
        Project rows on the span of the public ones.
    within : Ball or Box, optional
        W, the set that weights are projected on after every step; by default all of space.

    Examples
    --------
    >>> Theory(clip=0.5).mixing
    1.0
    """

    clip: float = 1.0
    penalty: float | None = None
    mixing: float = 1.0
    projection: Any = None
    within: ConstraintSet | None = None

    _constraints: ClassVar[ParameterTable] = {
        "clip": [Positive()],
        "penalty": [Positive(), Null()],
        "within": [Instance(ConstraintSet), Null()],
    }
    counts_rows: ClassVar[bool] = False
    words: ClassVar[str] = (
        "AdaMix as its theorems have it (Golatkar et al. 2022, Algorithm 3): noisy gradient "
        "descent that is held near the public model"
    )

    def public_model(self, public: PublicSample, seed: int) -> FloatArray:
        """Run the public phase."""
        return one_pass(public, curvature=_CURVATURE, clip=_LIPSCHITZ, seed=seed)

    def train(self, run: Run) -> tuple[FloatArray, dict[str, Any]]:
        """Run the mix-training phase."""
        W, public, iterates = run.start, run.public, run.iterates
        penalty = self._lambda(run) if self.penalty is None else self.penalty
        for t in range(1, iterates.number + 1):
            G = run.gradients(W, self.clip)
            G = G + self.mixing * gradient(public.rows, public.codes, W)
            iterates.add(W, self.clip, mass=float(t))
            W = W - 2 / (penalty * (t + 1)) * (G + penalty * (W - run.start))
            W = W if self.within is None else self.within.project(W, run.start)
        return iterates.mean, {}

    def _lambda(self, run: Run) -> float:
        mu = math.sqrt(run.iterates.number) / run.gradients.sigma
        distance = max(1.0, float(np.linalg.norm(run.start)))
        return theorem_penalty(run.start.size, self.clip, mu, distance)


def theorem_penalty(dimension: int, clip: float, mu: float, distance: float) -> float:
    r"""Lambda that minimises the bound of Theorem 3.

    The terms :math:`d L^2 / (\lambda \rho) + \lambda D^2 / 2` are least at
    :math:`\lambda = \sqrt{2 d L^2 / (\rho D^2)}` with :math:`\rho = \mu^2 / 2` (erratum: the paper
    prints the inverse). D, the distance of the optimum from the public model, is a guess made
    beforehand.

    Examples
    --------
    >>> theorem_penalty(dimension=100, clip=1.0, mu=1.0, distance=2.0)
    10.0
    """
    return math.sqrt(2 * dimension * clip**2 / (mu**2 / 2 * distance**2))
