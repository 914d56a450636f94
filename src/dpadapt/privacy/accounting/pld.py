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

FINEST, _STEP = 1e-4, 5e-4  # grid step over the spread of the privacy loss
MOST_POINTS = 100_000  # of one side of the grid of one sampled release
_SMALLEST = 1e-9  # step of the grid
_NOTHING = 1e-18  # a delta that nobody asks for
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
class RandomisedResponseLoss(PrivacyLoss):
    """Binary randomised response, which dominates every epsilon-DP mechanism.

    Examples
    --------
    >>> RandomisedResponseLoss(0.5) == RandomisedResponseLoss(0.5)
    True
    """

    epsilon: float
    rank: ClassVar[int] = 0

    def variance(self, count: int) -> float:
        """At most epsilon^2, and epsilon for large ones."""
        return count * min(self.epsilon, 1.0) * self.epsilon

    @classmethod
    def grid(cls, laws: Counter[RandomisedResponseLoss], step: float, spread: float) -> float:
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


@dataclass(frozen=True, slots=True)
class WorstLoss(PrivacyLoss):
    """Privacy loss that no branch of a split exceeds, whichever a changed record is in.

    Let h_b(t) be the hockey-stick divergence, at the threshold t = e^epsilon, of the pair that
    dominates branch b. Each h_b is convex and non-increasing, and so is their maximum h, which is
    1 at t = 0 and never below 1 - t: h is the curve of a pair of laws, and the smallest that
    dominates all branches (Zhu, Dong, Wang 2022, Proposition 8: a curve with these properties has a
    pair; Theorem 10: under adaptive composition, pairs of the parts dominate the whole). A record
    meets one branch of each split, so a product of such pairs dominates every combination of
    branches at once. Chords of a convex function lie above it: connecting the dots is an upper
    bound, and a branch that is discretised before is one, too. Curves of symmetric pairs satisfy
    h(1/t) = 1 - 1/t + h(t)/t, and so does their maximum.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent, PureEvent
    >>> worst = WorstLoss.of(((PureEvent("a", 0.5),), (GaussianEvent("b", 0.1, 1.0),)))
    >>> round(worst.distribution(1, 1e-3).get_epsilon_for_delta(1e-9), 2)
    0.54
    """

    branches: tuple[tuple[Event, ...], ...]
    rank: ClassVar[int] = 3

    @classmethod
    def of(cls, branches: tuple[tuple[Event, ...], ...]) -> WorstLoss | None:
        """Of branches that all have a privacy loss."""
        return None if any(_laws(branch) is None for branch in branches) else cls(branches)

    def _parts(self) -> list[tuple[float, _Laws]]:
        return [laws for branch in self.branches if (laws := _laws(branch)) is not None]

    def variance(self, count: int) -> float:
        """Of the widest branch."""
        return count * max(_variance(*part) for part in self._parts())

    @classmethod
    def grid(cls, laws: Counter[WorstLoss], step: float, spread: float) -> float:
        """What all branches can be computed on."""
        for worst in laws:
            for _, inner in worst._parts():
                step = _grid(inner, step, spread)
        return step

    def distribution(self, count: int, step: float) -> Any:
        """Of the largest divergence at each threshold, out to where all but infinity is seen."""
        each = [_composed(mu, laws, step) for mu, laws in self._parts()]
        edge = max(_edge(one, step) for one in each)

        def hockey_stick(at: FloatArray) -> FloatArray:
            return np.asarray(np.max([one.get_delta_for_epsilon(at) for one in each], axis=0))

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
    found = _laws(events)
    if found is None:
        return None
    mu, laws = found
    variance = _variance(mu, laws)
    spread = math.sqrt(variance) + variance / 2
    step = _grid(laws, max(_STEP * spread, _SMALLEST), spread) if spread < _WIDEST else math.inf
    try:
        return None if math.isinf(step) else _composed(mu, laws, step)
    except (ValueError, OverflowError):  # too far out for dp-accounting: other proofs remain
        return None


_Laws = dict[type[PrivacyLoss], Counter[PrivacyLoss]]


def _laws(events: Sequence[Event]) -> tuple[float, _Laws] | None:
    """The mu of Gaussian releases together, and the laws of others; None where one has none."""
    mu = 0.0
    laws: _Laws = {}
    for event in events:
        one = event.gaussian_mu
        if math.isfinite(one):
            mu = math.hypot(mu, one)
            continue
        loss = event.loss
        if loss is None:
            return None
        law, count = loss
        laws.setdefault(type(law), Counter())[law] += count
    return mu, {kind: laws[kind] for kind in sorted(laws, key=lambda kind: kind.rank)}


def _variance(mu: float, laws: _Laws) -> float:
    each = (law.variance(count) for some in laws.values() for law, count in some.items())
    return mu * mu + sum(each)


def _grid(laws: _Laws, step: float, spread: float) -> float:
    for kind, some in laws.items():
        step = kind.grid(some, step, spread)
    return step


def _composed(mu: float, laws: _Laws, step: float) -> Any:
    parts = [law.distribution(k, step) for some in laws.values() for law, k in some.items()]
    if mu > 0 or not parts:
        parts.append(_gaussian(mu, step))
    return reduce(lambda total, part: total.compose(part), parts)


def _edge(pld: Any, step: float) -> int:
    """Where a divergence has fallen to what it is far away, in steps."""
    edges = 2 ** np.arange(3, 17)
    curve = _upper(pld.get_delta_for_epsilon(edges * step))
    falls = (curve > curve[-1] * (1 + 1e-6)) & (curve > _NOTHING)
    return int(edges[min(int(np.count_nonzero(falls)), len(edges) - 1)])


def _upper(curve: FloatArray) -> FloatArray:
    """A computed hockey-stick curve, at growing thresholds, made one again: nowhere lower.

    Rounding takes it beyond 1 or below 0, and far out it is no number (e^710 times nothing). No
    divergence is above 1, so what is may become 1, and so may what is none. A divergence does not
    grow with its threshold: the smallest bound up to a threshold holds there.

    Examples
    --------
    >>> _upper(np.array([1 + 1e-11, 0.5, -1e-17, 0.6, np.nan, 0.1, -np.inf]))
    array([1. , 0.5, 0.5, 0.5, 0.5, 0.1, 0.1])
    """
    return np.minimum.accumulate(np.where(curve >= 0, np.minimum(curve, 1.0), 1.0))


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

    deltas = _upper(hockey_stick(np.arange(low, high + 1, dtype=np.float64) * step))
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, low, high, deltas)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)
