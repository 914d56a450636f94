"""How many noisy steps a budget buys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpadapt._constraints import Between, Count, Null, Table
from dpadapt._strategy import Strategy
from dpadapt.privacy import Session
from dpadapt.privacy.accounting.calibration import gaussian_mu

__all__ = ["FILTER", "StableSteps", "Steps", "row_mu"]

FILTER = [Between(1, math.inf, right=False), Null()]


@dataclass(frozen=True)
class Steps(Strategy):
    """So many steps; the noise follows from the budget.

    Parameters
    ----------
    steps : int
        T.
    individual_filter : float, optional
        f >= 1: noise as for T / f steps only; a row takes part until it has paid for so many.

    Examples
    --------
    >>> Steps(60, individual_filter=6.0)
    Steps(steps=60, individual_filter=6.0)
    """

    steps: int
    individual_filter: float | None = None

    _constraints: ClassVar[Table] = {"steps": [Count()], "individual_filter": FILTER}

    def number(self, session: Session) -> int:
        """T."""
        return int(self.steps)


@dataclass(frozen=True)
class StableSteps(Strategy):
    """So many that none is too long for the horizon that a budget and the rows may allow.

    The horizon is at most n mu / clip (:func:`~.horizon.plan_horizon`). Where the number of rows is
    a secret (add-remove) it is a quarter of ``most``, and the horizon is cut to what these reach.

    Parameters
    ----------
    least, most : int
    step : float
        The longest one, in units of the mean gradient.
    clip : float

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> with Private([[1.0]] * 9000).open(epsilon=1.0, delta=1e-6) as session:
    ...     StableSteps(100, 1600, step=4.0, clip=0.5).number(session)
    533
    """

    least: int
    most: int
    step: float
    clip: float

    individual_filter: ClassVar[float | None] = None

    def number(self, session: Session) -> int:
        """T."""
        if session.relation != "replace-one":
            return max(self.least, self.most // 4)
        longest = session.n_rows * row_mu(session.epsilon, session.delta, session.relation)
        return int(min(max(math.ceil(longest / (self.clip * self.step)), self.least), self.most))


def row_mu(epsilon: float, delta: float, relation: str) -> float:
    r"""Mu of one row's presence that (epsilon, delta) allows.

    Under add/remove a row moves a sum of clipped gradients by one clip at most, under replace-one
    by two: half as much is left for each.

    Examples
    --------
    >>> round(row_mu(3.0, 1e-5, "add-remove") / row_mu(3.0, 1e-5, "replace-one"), 6)
    2.0
    """
    mu = gaussian_mu(epsilon, delta)
    return mu if relation == "add-remove" else mu / 2
