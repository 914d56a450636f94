"""Schedules of Subsample-Test-Reweigh: how many rounds, how dense and how fast the weights are."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from dpadapt.learning.constraints import Between, Count, OneOf, ParameterTable, Positive
from dpadapt.learning.strategy import Strategy

from .doors.weights import density_schedule

_MOST_DOUBLINGS = 6


@dataclass(frozen=True)
class DensityRun:
    """The public plan of one run.

    Parameters
    ----------
    densities : tuple of float
        kappa_t of every round.
    rate : float
        eta.

    Examples
    --------
    >>> DensityRun.once().densities
    (1.0,)
    """

    densities: tuple[float, ...]
    rate: float

    @classmethod
    def once(cls) -> DensityRun:
        """One round on the rows as they are."""
        return cls((1.0,), 1.0)


@dataclass(frozen=True)
class Schedule(Strategy, ABC):
    """What both schedules have in common."""

    kappa: float | str = 0.05
    rate: float = 1.0
    rounds: int = 5

    _constraints: ClassVar[ParameterTable] = {
        "kappa": [Between(0, 1, left=False), OneOf("doubling")],
        "rate": [Positive()],
        "rounds": [Count()],
    }

    @abstractmethod
    def run(self, kappa: float) -> DensityRun:
        """The run with this least density."""

    @property
    def useful(self) -> int:
        """Doublings after which a smaller kappa changes nothing."""
        return _MOST_DOUBLINGS

    def runs(self, n_rows: int) -> list[DensityRun]:
        """One run, or one for each density that doubling tries."""
        densities = [self.kappa]
        if isinstance(self.kappa, str):
            most = min(_MOST_DOUBLINGS, max(1, self.useful), max(1, int(math.log2(n_rows))))
            densities = [2.0**-j for j in range(1, most + 1)]
        least = min(map(float, densities))
        if least * n_rows < 1:
            raise ValueError(
                f"kappa: {least:.6g} of {n_rows} rows is less than one row; give at least "
                f"1 / {n_rows}, or more rows."
            )
        return [self.run(float(density)) for density in densities]


@dataclass(frozen=True)
class TightSchedule(Schedule):
    r"""Density :math:`\max(\kappa, e^{-\eta (t-1)})` in round t: no weights are less even by then.

    Parameters
    ----------
    kappa : float or "doubling", default=0.05
        Least density of the weights: no row weighs more than 1 / (kappa n). "doubling" tries
        1/2, 1/4, ... one after another, with the budget divided among them in advance.
    rate : float, default=1.0
        eta of the reweighing. The theorem's alpha / 8 takes some thousand rounds. For
        :class:`SGDLearner`, whose noise is that of the least density, 0.2 and 10 rounds are better.
    rounds : int, default=5
        T at most. The budget is divided among all of them, also if fewer are needed.

    Examples
    --------
    >>> TightSchedule(kappa=0.5, rate=0.2).runs(n_rows=1000)[0].densities[-1]
    0.5
    """

    def run(self, kappa: float) -> DensityRun:
        """Densities that fall from 1 to kappa."""
        return DensityRun(tuple(density_schedule(kappa, [self.rate] * self.rounds)), self.rate)

    @property
    def useful(self) -> int:
        """Below the last density of the schedule, a smaller kappa changes nothing."""
        return math.ceil(self.rate * (self.rounds - 1) / math.log(2))


@dataclass(frozen=True)
class PaperSchedule(Schedule):
    """Density kappa from the first round on, as printed in Algorithms 2 and 4.

    Parameters
    ----------
    kappa : float or "doubling", default=0.05
    rate : float, default=1.0
    rounds : int, default=5
        As in :class:`TightSchedule`.

    Examples
    --------
    >>> PaperSchedule(kappa=0.1, rounds=3).runs(n_rows=1000)[0].densities
    (0.1, 0.1, 0.1)
    """

    def run(self, kappa: float) -> DensityRun:
        """The same density in every round."""
        return DensityRun((kappa,) * self.rounds, self.rate)
