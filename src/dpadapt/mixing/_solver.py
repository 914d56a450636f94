"""What the algorithms of this folder have in common: what they are given, and what they say."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from dpadapt.learning.constraints import Named, NonNegative, Null, Table
from dpadapt.learning.softmax import Array
from dpadapt.learning.strategy import Strategy, strategy_of
from dpadapt.privacy import RowMap

from .features import PublicSample, UnitRows
from .iterates import Iterates
from .noisy_gradients import NoisyGradients
from .public_phase import penalised

Origin = Literal["public", "zero", "given"]
"""Where training starts: at the model of the public rows, at zero, at weights that were given."""


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
    start: Array
    origin: Origin
    sample_size: float
    iterates: Iterates


class Solver(Strategy):
    """An algorithm with its options."""

    _constraints: ClassVar[Table] = {
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
    def train(self, run: Run) -> tuple[Array, dict[str, Any]]:
        """Return the weights, and further attributes of the estimator."""

    def public_model(self, public: PublicSample, seed: int) -> Array:
        """Weights from public rows alone."""
        return penalised(public)

    def fitted_part(self, public: PublicSample) -> PublicSample:
        """Public rows that the public phase is fitted to, before private ones are read."""
        return public

    def units(self, units: UnitRows, X: Array) -> UnitRows:
        """Public map of rows, projected if rows are."""
        projection = strategy_of(self, "projection")
        return units if projection is None else projection.units(units, X)

    def cleaning(self, units: UnitRows, public: PublicSample) -> RowMap:
        """Public map of the private rows."""
        projection = strategy_of(self, "projection")
        return units if projection is None else projection.cleaning(units, public.rows)
