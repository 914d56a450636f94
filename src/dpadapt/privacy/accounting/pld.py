"""Privacy loss distributions, computed by dp-accounting, which is imported when one is needed.

It is always fed with noise over sensitivity under add-or-remove, or with hockey-stick divergences
that we compute: its own treatment of replace-one doubles a Gaussian's sensitivity in one
accountant and not in the other, and its randomised response forgets the count
(``tests/privacy/test_dp_accounting_defects.py``).

An event states the :class:`PrivacyLoss` of one of its releases; those of Gaussian releases are one
normal law together. All stand on one grid, which each kind of loss may ask to be finer or wider.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray

if TYPE_CHECKING:
    from .events import Event

__all__ = ["PrivacyLoss", "RandomisedResponse", "distribution"]

FINEST, _STEP = 1e-4, 5e-4  # grid step over the spread of the privacy loss
MOST_POINTS = 100_000  # of one side of the grid of one sampled release
_SMALLEST = 1e-9  # step of the grid
_WIDEST = 1e6  # spread of a privacy loss beyond which no distribution is computed


class PrivacyLoss(ABC):
    """Privacy loss of one release, dominated by that of a symmetric pair; equal for equal laws."""

    rank: ClassVar[int]  # the lower, the sooner this kind has its say on the grid
    slow: ClassVar[bool] = False  # a distribution takes seconds

    @property
    def moments(self) -> tuple[float, float, float] | None:
        """Mean, variance, third absolute central moment (or more); None where not computed."""
        return None

    @abstractmethod
    def variance(self, count: int) -> float:
        """Rough variance of the loss of ``count`` releases: sets the grid only."""

    @classmethod
    @abstractmethod
    def grid(cls, laws: Counter[Any], step: float, spread: float) -> float:
        """Step that losses of this kind need, given that of the others; inf where none will do."""

    @abstractmethod
    def distribution(self, count: int, step: float) -> Any:
        """Pessimistic distribution of the loss of ``count`` releases, on multiples of ``step``."""


@dataclass(frozen=True, slots=True)
class RandomisedResponse(PrivacyLoss):
    """Binary randomised response, which dominates every epsilon-DP mechanism.

    Examples
    --------
    >>> RandomisedResponse(0.5) == RandomisedResponse(0.5)
    True
    """

    epsilon: float
    rank: ClassVar[int] = 0

    def variance(self, count: int) -> float:
        """At most epsilon^2, and epsilon for large ones."""
        return count * min(self.epsilon, 1.0) * self.epsilon

    @classmethod
    def grid(cls, laws: Counter[RandomisedResponse], step: float, spread: float) -> float:
        """A twentieth of the smallest epsilon, within reason."""
        return max(min(step, *(e.epsilon / 20 for e in laws)), FINEST * spread, _SMALLEST)

    def distribution(self, count: int, step: float) -> Any:
        """Of the two atoms."""
        epsilon, edge = self.epsilon, math.ceil(self.epsilon / step)

        def hockey_stick(at: FloatArray) -> FloatArray:
            # (e^eps - e^at)/(1 + e^eps) between -eps and eps, scaled by e^-eps against overflow
            middle = -np.expm1(np.minimum(at - epsilon, 0.0)) / (1 + math.exp(-epsilon))
            return np.where(at <= -epsilon, -np.expm1(np.minimum(at, 0.0)), middle)

        return connect_the_dots(hockey_stick, step, -edge, edge).self_compose(count)


def distribution(events: Sequence[Event]) -> Any:
    """Pessimistic privacy loss distribution of all events, or None where one has none.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import DiscreteGaussianEvent, PureEvent
    >>> distribution([DiscreteGaussianEvent("mean", 1.0, 4.0)]) is None
    True
    >>> round(distribution([PureEvent("answer", 0.5)]).get_epsilon_for_delta(1e-9), 3)
    0.5
    """
    mu = 0.0
    laws: dict[type[PrivacyLoss], Counter[PrivacyLoss]] = {}
    for event in events:
        one, loss = event.gaussian_mu, event.loss
        if math.isfinite(one):
            mu = math.hypot(mu, one)
        elif loss is None:
            return None
        else:
            law, count = loss
            laws.setdefault(type(law), Counter())[law] += count
    kinds = sorted(laws, key=lambda kind: kind.rank)
    variance = mu * mu
    for kind in kinds:
        variance += sum(law.variance(count) for law, count in laws[kind].items())
    spread = math.sqrt(variance) + variance / 2
    if not spread < _WIDEST:
        return None
    step = max(_STEP * spread, _SMALLEST)
    for kind in kinds:
        step = kind.grid(laws[kind], step, spread)
    if math.isinf(step):
        return None
    parts = [law.distribution(k, step) for kind in kinds for law, k in laws[kind].items()]
    if mu > 0 or not parts:
        parts.append(_gaussian(mu, step))
    return reduce(lambda total, part: total.compose(part), parts)


def _gaussian(mu: float, step: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    if mu == 0:
        return privacy_loss_distribution.identity(value_discretization_interval=step)
    return privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=step
    )


def connect_the_dots(
    hockey_stick: Callable[[FloatArray], FloatArray], step: float, low: int, high: int
) -> Any:
    """Upper discretisation of a symmetric pair from its hockey-stick curve on a grid."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    deltas = np.minimum.accumulate(hockey_stick(np.arange(low, high + 1, dtype=np.float64) * step))
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, low, high, deltas)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)
