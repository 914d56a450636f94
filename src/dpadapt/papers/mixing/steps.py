"""How many steps of stated noise a budget buys, as in the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpadapt import _validate as validate
from dpadapt.learning.constraints import ParameterTable, Positive
from dpadapt.learning.strategy import Strategy
from dpadapt.mixing.solver import FILTER, Solver, row_mu
from dpadapt.privacy import Session


@dataclass(frozen=True)
class StepsAtNoise(Strategy):
    """So much noise in each step; their number follows from the budget, as in the paper.

    Parameters
    ----------
    sigma : float, default=20.0
        Noise over clip; the default is the paper's.
    individual_filter : float, optional
        As in :class:`~dpadapt.mixing.solver.Steps`.

    Examples
    --------
    >>> StepsAtNoise().sigma
    20.0
    """

    sigma: float = 20.0
    individual_filter: float | None = None

    _constraints: ClassVar[ParameterTable] = {"sigma": [Positive()], "individual_filter": FILTER}

    def number(self, session: Session) -> int:
        """T = Calibrate(epsilon, delta, sigma)."""
        return steps_for_noise(self.sigma, session.epsilon, session.delta, session.relation)


class PaperSolver(Solver):
    """An algorithm of the paper: so many steps as the paper's noise allows.

    Examples
    --------
    >>> from dpadapt.mixing import Theory
    >>> isinstance(Theory(), PaperSolver), Theory().usual_steps
    (True, StepsAtNoise(sigma=20.0, individual_filter=None))
    """

    @property
    def usual_steps(self) -> StepsAtNoise:
        """How much noise in each step, if nobody says."""
        return StepsAtNoise()


def steps_for_noise(sigma: float, epsilon: float, delta: float, relation: str) -> int:
    r"""Steps that noise of ``sigma`` clips allows: T = Calibrate(epsilon, delta, sigma).

    A step is :math:`1/\sigma`-GDP, T steps are :math:`\sqrt{T}/\sigma`-GDP (Lemma 8), so T is the
    whole part of :math:`(\mu \sigma)^2`. Erratum: Proposition 9 prints T^2 for T in its rho.

    Examples
    --------
    >>> [steps_for_noise(20.0, epsilon, 1e-5, "add-remove") for epsilon in (1.0, 3.0, 8.0)]
    [28, 206, 1110]
    >>> [steps_for_noise(20.0, epsilon, 1e-5, "replace-one") for epsilon in (1.0, 3.0, 8.0)]
    [7, 51, 277]
    """
    noise = validate.positive("sigma", sigma)
    mu = row_mu(epsilon, delta, relation)
    steps = math.floor((mu * noise) ** 2)
    if steps < 1:
        raise ValueError(
            f"sigma={sigma:g} is too small: not one step fits into epsilon {epsilon:g} at delta "
            f"{delta:g} under {relation}. Take at least {1 / mu:.4g}, or give steps instead."
        )
    return steps
