"""What the algorithms of this folder have in common: steps, iterates, what a run has at hand."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Between, Count, Named, NonNegative, Null, ParameterTable
from dpadapt.learning.strategy import Strategy, strategy_of
from dpadapt.privacy import RowMap, Session
from dpadapt.privacy.accounting.calibration import gaussian_mu

from .features import PublicSample, UnitRows, penalised
from .noisy_gradients import NoisyGradients

FILTER = [Between(1, math.inf, right=False), Null()]
Origin = Literal["public", "zero", "given"]
"""Where training starts: at the model of the public rows, at zero, at weights that were given."""


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

    _constraints: ClassVar[ParameterTable] = {"steps": [Count()], "individual_filter": FILTER}

    def number(self, session: Session) -> int:
        """T."""
        return int(self.steps)


@dataclass(frozen=True)
class StableSteps(Strategy):
    """So many that none is too long for the horizon that a budget and the rows may allow.

    The horizon is at most n mu / clip (:func:`~.known_noise.plan_horizon`). Where the number of
    rows is a secret (add-remove) it is a quarter of ``most``, and the horizon is cut to what these
    reach.

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


@dataclass
class Iterates:
    """Counts the steps of a descent, and keeps of its weights what is asked for later.

    Parameters
    ----------
    number : int
        T, public.
    keep : bool, default=False
        Whether to keep all weights, not their mean alone.
    progress : callable, optional
        Is told (t, T) at each step.

    Examples
    --------
    >>> iterates, W = Iterates(2), np.array([[4.0]])
    >>> for t in range(iterates.number):
    ...     iterates.add(W, clip=1.0)
    ...     W = W - 0.5 * W
    >>> W, iterates.mean
    (array([[1.]]), array([[3.]]))
    """

    number: int
    keep: bool = False
    progress: Callable[[int, int], None] | None = None
    weights: list[FloatArray] = field(default_factory=list)
    clips: list[float] = field(default_factory=list)
    _total: Any = 0.0
    _mass: float = 0.0

    def add(self, W: FloatArray, clip: float, mass: float = 1.0) -> None:
        """Record weights at which a gradient was asked for."""
        if self.keep:
            self.weights.append(W)
        self.clips.append(clip)
        self._total = self._total + mass * W
        self._mass += mass
        if self.progress is not None:
            self.progress(len(self.clips), self.number)

    @property
    def mean(self) -> FloatArray:
        """Mean of the recorded weights, by mass."""
        return np.asarray(self._total / self._mass)


@dataclass(frozen=True, eq=False)
class Run:
    """What one private run has at hand.

    Parameters
    ----------
    gradients : NoisyGradients
    public : PublicSample
    start : ndarray of shape (d, c)
        w_1.
    origin : {"public", "zero", "given"}
        Where it comes from.
    sample_size : float
        Public, or noisy: the number of private rows itself would be told by the public term of a
        mixed step, which has no noise outside the span.
    iterates : Iterates
    """

    gradients: NoisyGradients
    public: PublicSample
    start: FloatArray
    origin: Origin
    sample_size: float
    iterates: Iterates


class Solver(Strategy):
    """An algorithm with its options."""

    _constraints: ClassVar[ParameterTable] = {
        "mixing": [NonNegative()],
        "projection": [
            Named({"features": "dpadapt.papers.mixing.projection.FeatureProjection"}),
            Null(),
        ],
    }
    words: ClassVar[str]
    """What it is, for the report."""
    counts_rows: ClassVar[bool] = True
    """Whether steps depend on the number of private rows."""
    projection: Any = None

    @property
    @abstractmethod
    def usual_steps(self) -> Any:
        """How many steps, or how much noise in each, if nobody says."""

    @abstractmethod
    def train(self, run: Run) -> tuple[FloatArray, dict[str, Any]]:
        """Return the weights, and further attributes of the estimator."""

    def public_model(self, public: PublicSample, seed: int) -> FloatArray:
        """Weights from public rows alone."""
        return penalised(public)

    def fitted_part(self, public: PublicSample) -> PublicSample:
        """Public rows that the public phase is fitted to, before private ones are read."""
        return public

    def units(self, units: UnitRows, X: FloatArray) -> UnitRows:
        """Public map of rows, projected if rows are."""
        projection = strategy_of(self, "projection")
        return units if projection is None else projection.units(units, X)

    def cleaning(self, units: UnitRows, public: PublicSample) -> RowMap:
        """Public map of the private rows."""
        projection = strategy_of(self, "projection")
        return units if projection is None else projection.cleaning(units, public.rows)
