"""From a list of events to (epsilon, delta), by the tightest statement that is proved.

Only Gaussian events
    the exact Gaussian-DP closed form.
Anything else
    the smallest of: the sum of pure epsilons; the Renyi sum (which holds the zCDP sums) with the
    conversion of Canonne, Kamath, Steinke (2020); the privacy loss distribution (PLD) computed by
    dp-accounting on an upper (pessimistic) discretisation.

dp-accounting is imported only when a PLD is needed. It is always fed with noise over sensitivity
under add-or-remove, or with hockey-stick divergences that we compute: its own treatment of
replace-one doubles a Gaussian's sensitivity in one accountant and not in the other, and its
randomised response forgets the count (``tests/privacy/test_dp_accounting_defects.py``).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr

from . import _validate
from .events import (
    BoundedRangeEvent,
    Event,
    FloatArray,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PoissonGaussianEvent,
    PureEvent,
    RandomStoppingEvent,
    Relation,
    renyi_orders,
)

__all__ = ["compose_delta", "compose_epsilon", "gaussian_delta", "pld_epsilon", "relation_of"]

_FINEST, _STEP = 1e-4, 5e-4  # grid step of a privacy loss distribution over its spread
_MOST_POINTS = 100_000  # of one side of the grid of one sampled release
_MOST_SCENARIOS = 1_000  # ways to pass through parallel events, repetitions not counted
_LARGEST_EPSILON = 1e7  # where a search for epsilon gives up and answers inf
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def compose_epsilon(events: Iterable[Event], delta: float) -> float:
    """Smallest proved epsilon of all ``events`` together at ``delta``.

    Parameters
    ----------
    events : iterable of Event
    delta : float
        In [0, 1); at 0 only pure mechanisms have a finite answer.

    Examples
    --------
    >>> from dpadapt.privacy.events import GaussianEvent, PureEvent
    >>> compose_epsilon([], 1e-6)
    0.0
    >>> round(compose_epsilon([GaussianEvent("mean", 1.0, 4.0)], 1e-6), 4)
    1.0607
    >>> compose_epsilon([PureEvent("a", 0.5), PureEvent("b", 0.25)], 0.0)
    0.75
    """
    _validate.delta(delta, allow_zero=True)
    return max(_epsilon_of(scenario, delta) for scenario in _scenarios(events))


def compose_delta(events: Iterable[Event], epsilon: float) -> float:
    """Smallest proved delta of all ``events`` together at ``epsilon``.

    Examples
    --------
    >>> from dpadapt.privacy.events import GaussianEvent, PureEvent
    >>> compose_delta([PureEvent("a", 0.5)], 0.5)
    0.0
    >>> f"{compose_delta([GaussianEvent('mean', 1.0, 4.0)], 1.06072):.2g}"
    '1e-06'
    """
    _validate.non_negative("epsilon", epsilon)
    return max(_delta_of(scenario, epsilon) for scenario in _scenarios(events))


def pld_epsilon(events: Iterable[Event], delta: float) -> float:
    """Epsilon from the privacy loss distribution alone: an independent second opinion.

    Answers inf where an event has no PLD (discrete Gaussian, random stopping). A selection by the
    exponential mechanism enters as a pure mechanism, which is not tight.

    Examples
    --------
    >>> from dpadapt.privacy.events import GaussianEvent
    >>> round(pld_epsilon([GaussianEvent("mean", 1.0, 4.0)], 1e-6), 3)
    1.061
    """
    _validate.delta(delta, allow_zero=True)
    return max(_pld_epsilon(scenario, delta) for scenario in _scenarios(events))


def relation_of(events: Iterable[Event], default: Relation = "replace-one") -> Relation:
    """Neighbouring relation that the events state; mixing two is refused.

    Examples
    --------
    >>> relation_of([])
    'replace-one'
    """
    stated = {e.relation for e in _leaves(events) if isinstance(e, PoissonGaussianEvent)}
    if len(stated) > 1:
        raise ValueError("events under replace-one and under add-remove cannot be composed.")
    return stated.pop() if stated else default


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Delta of a mu-GDP mechanism: Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2).

    Computed through log-cdf, so that neither term overflows; for small mu, where the two terms
    cancel, through the integral of 1 - z R(z) over the interval of length mu around eps / mu,
    with R the Mills ratio (e^eps phi(eps/mu + mu/2) = phi(eps/mu - mu/2), and R' = z R - 1).

    Examples
    --------
    >>> gaussian_delta(1.0, 0.0)
    0.0
    >>> round(gaussian_delta(0.0, 1.0), 6)
    0.382925
    """
    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    if mu < 0.01:
        start = epsilon / mu - mu / 2
        if start > 39:  # below the smallest float
            return 0.0
        z = start + mu * (_NODES + 1) / 2
        slope = 1 - z * math.sqrt(math.pi / 2) * erfcx(z / math.sqrt(2))
        density = math.exp(-start * start / 2) / math.sqrt(2 * math.pi)
        return mu * density * float(_WEIGHTS @ slope) / 2
    upper = float(log_ndtr(-epsilon / mu + mu / 2))
    lower = epsilon + float(log_ndtr(-epsilon / mu - mu / 2))
    return math.exp(upper) * -math.expm1(min(0.0, lower - upper))


def _leaves(events: Iterable[Event]) -> Iterable[Event]:
    for event in events:
        if isinstance(event, ParallelEvent):
            yield from _leaves(itertools.chain.from_iterable(event.branches))
        elif isinstance(event, RandomStoppingEvent):
            yield from _leaves(event.base)
        else:
            yield event


def _scenarios(events: Iterable[Event]) -> list[tuple[Event, ...]]:
    """Every list of events that one changed record can meet: one branch of each split.

    Events that cost nothing are dropped; lists that differ in their labels alone count once.
    """
    events = tuple(events)
    for event in events:
        if not isinstance(event, Event):
            raise TypeError(f"events must hold Event objects; got {type(event).__name__}.")
    relation_of(events)
    common = tuple(e for e in events if not isinstance(e, ParallelEvent) and e.pure_epsilon > 0)
    scenarios: list[tuple[Event, ...]] = [()]
    for event in events:
        if isinstance(event, ParallelEvent):
            ways = _distinct(way for branch in event.branches for way in _scenarios(branch))
            combined = (s + way for s in scenarios for way in ways)
            too_many = len(scenarios) * len(ways) > 100 * _MOST_SCENARIOS
            scenarios = [] if too_many else _distinct(combined)
            if too_many or len(scenarios) > _MOST_SCENARIOS:
                raise ValueError(
                    f"the parallel events combine in more than {_MOST_SCENARIOS} ways; put what "
                    "runs on one split of the rows into one ParallelEvent."
                )
    return [common + scenario for scenario in scenarios]


def _distinct(scenarios: Iterable[tuple[Event, ...]]) -> list[tuple[Event, ...]]:
    """One of each set of scenarios that differ in labels and order alone."""
    seen = {
        frozenset(Counter(replace(event, label="") for event in scenario).items()): scenario
        for scenario in scenarios
    }
    return list(seen.values())


def _gaussian_mu(events: Sequence[Event]) -> float:
    return math.hypot(*(event.gaussian_mu for event in events))


def _epsilon_of(events: Sequence[Event], delta: float) -> float:
    if not events:
        return 0.0
    pure = math.fsum(event.pure_epsilon for event in events)
    if delta == 0:
        return pure
    mu = _gaussian_mu(events)
    if math.isfinite(mu):
        return _smallest_epsilon(lambda epsilon: gaussian_delta(epsilon, mu), delta)
    if _is_one_release(events) and math.isfinite(pure):
        return min(_single_pure_epsilon(pure, delta), _renyi_epsilon(events, delta))
    return min(pure, _renyi_epsilon(events, delta), _pld_epsilon(events, delta))


def _delta_of(events: Sequence[Event], epsilon: float) -> float:
    pure = math.fsum(event.pure_epsilon for event in events)
    if pure <= epsilon:
        return 0.0
    mu = _gaussian_mu(events)
    if math.isfinite(mu):
        return gaussian_delta(epsilon, mu)
    if _is_one_release(events) and math.isfinite(pure):
        return min(_single_pure_delta(pure, epsilon), _renyi_delta(events, epsilon))
    return min(1.0, _renyi_delta(events, epsilon), _pld_delta(events, epsilon))


def _is_one_release(events: Sequence[Event]) -> bool:
    return len(events) == 1 and getattr(events[0], "count", 1) == 1


def _single_pure_delta(pure: float, epsilon: float) -> float:
    """Delta of binary randomised response, the worst mechanism: (e^pure - e^eps)/(1 + e^pure)."""
    return -math.expm1(epsilon - pure) / (1 + math.exp(-pure))


def _single_pure_epsilon(pure: float, delta: float) -> float:
    """Inverse of :func:`_single_pure_delta`."""
    if pure > 30:
        lost = delta * (1 + math.exp(-pure))
        return max(0.0, pure + math.log1p(-lost)) if lost < 1 else 0.0
    return math.log1p(max(0.0, math.expm1(pure) - delta * (1 + math.exp(pure))))


def _smallest_epsilon(delta_at: Callable[[float], float], delta: float) -> float:
    """Smallest epsilon >= 0 with delta_at(epsilon) <= delta, from above (bisection)."""
    if delta_at(0.0) <= delta:
        return 0.0
    high = 1.0
    while delta_at(high) > delta:
        high *= 2
        if high > _LARGEST_EPSILON:
            return math.inf
    low = 0.0
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


# Renyi divergences, and with them zCDP -------------------------------------------------------


def _renyi_total(events: Sequence[Event]) -> tuple[FloatArray, FloatArray]:
    orders = renyi_orders()
    total: FloatArray = np.zeros(orders.shape)
    for event in events:
        total = total + event.renyi(orders)
    return orders, total


def _renyi_epsilon(events: Sequence[Event], delta: float) -> float:
    orders, total = _renyi_total(events)
    room = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(0.0, float(np.min(total + room)))


def _renyi_delta(events: Sequence[Event], epsilon: float) -> float:
    orders, total = _renyi_total(events)
    log_delta = (orders - 1) * (total - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    return math.exp(min(0.0, float(np.min(log_delta))))


# Privacy loss distributions --------------------------------------------------------------------


def _pld_epsilon(events: Sequence[Event], delta: float) -> float:
    pld = _pld(events)
    return math.inf if pld is None else float(pld.get_epsilon_for_delta(delta))


def _pld_delta(events: Sequence[Event], epsilon: float) -> float:
    pld = _pld(events)
    return math.inf if pld is None else float(pld.get_delta_for_epsilon(epsilon))


def _pld(events: Sequence[Event]) -> Any:
    """Pessimistic privacy loss distribution of all events, or None where one has none."""
    mu = 0.0
    pure: Counter[float] = Counter()
    sampled: Counter[PoissonGaussianEvent] = Counter()
    for event in events:
        if isinstance(event, GaussianEvent):
            mu = math.hypot(mu, event.gaussian_mu)
        elif isinstance(event, PureEvent):
            pure[event.epsilon] += event.count
        elif isinstance(event, (LaplaceEvent, BoundedRangeEvent)):
            pure[event.ratio] += event.count
        elif isinstance(event, PoissonGaussianEvent):
            multiplier = event.scale / event.clip
            sampled[replace(event, label="", clip=1.0, scale=multiplier, count=1)] += event.count
        else:
            return None
    spread = _spread(mu, pure, sampled)
    if not spread < _LARGEST_EPSILON:
        return None
    reach = max((_replace_one_loss(event, _farthest(event)) for event in sampled), default=0.0)
    step = max(min([_STEP * spread, *(e / 20 for e in pure)]), _FINEST * spread, 1e-9)
    step = max(step, reach / _MOST_POINTS)
    parts = [_pld_pure(e, step).self_compose(k) for e, k in pure.items()]
    parts += [_pld_sampled(event, step).self_compose(k) for event, k in sampled.items()]
    if mu > 0 or not parts:
        parts.append(_pld_gaussian(mu, step))
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return total


def _spread(mu: float, pure: Counter[float], sampled: Counter[PoissonGaussianEvent]) -> float:
    """Rough standard deviation plus mean of the total privacy loss: sets the grid only."""
    variance = mu * mu + sum(k * min(e, 1.0) * e for e, k in pure.items())
    for event, k in sampled.items():
        one = 2 * event.rate / event.scale
        variance += k * one * one
    return math.sqrt(variance) + variance / 2


def _pld_gaussian(mu: float, step: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    if mu == 0:
        return privacy_loss_distribution.identity(value_discretization_interval=step)
    return privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=step
    )


def _pld_pure(epsilon: float, step: float) -> Any:
    """Binary randomised response, which dominates every epsilon-DP mechanism."""

    def hockey_stick(at: FloatArray) -> FloatArray:
        # (e^eps - e^at)/(1 + e^eps) between -eps and eps, scaled by e^-eps against overflow
        middle = -np.expm1(np.minimum(at - epsilon, 0.0)) / (1 + math.exp(-epsilon))
        return np.where(at <= -epsilon, -np.expm1(np.minimum(at, 0.0)), middle)

    edge = math.ceil(epsilon / step)
    return _connect_the_dots(hockey_stick, step, -edge, edge)


def _pld_sampled(event: PoissonGaussianEvent, step: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    if event.relation == "add-remove":
        return privacy_loss_distribution.from_gaussian_mechanism(
            event.scale, value_discretization_interval=step, sampling_prob=event.rate
        )
    reach = math.ceil(_replace_one_loss(event, _farthest(event)) / step)
    return _connect_the_dots(lambda at: _replace_one_hockey_stick(event, at), step, -reach, reach)


def _farthest(event: PoissonGaussianEvent) -> float:
    """Nine standard deviations of noise; the mass of what is farther goes to infinity."""
    return 9.0 * event.scale + 1.0


def _replace_one_loss(event: PoissonGaussianEvent, at: float) -> float:
    """Log-density ratio of (1-q)N(0)+qN(1) to (1-q)N(0)+qN(-1) at a point; increasing."""
    q, variance = event.rate, event.scale**2
    with_record = math.log(q) + (2 * at - 1) / (2 * variance)
    without = math.log(q) + (-2 * at - 1) / (2 * variance)
    keep = math.log1p(-q)
    return float(np.logaddexp(keep, with_record) - np.logaddexp(keep, without))


def _replace_one_hockey_stick(event: PoissonGaussianEvent, at: FloatArray) -> FloatArray:
    """Hockey-stick divergence of the replace-one pair, in closed form.

    The log-ratio reaches ``at`` where a t^2 + (1-q)(1-e^at) t - a e^at = 0 with t = exp(x/s^2)
    and a = q exp(-1/(2 s^2)); above that point the densities are integrated. All in logarithms:
    e^at overflows where the noise is small.
    """
    scale, log_q, log_rest = event.scale, math.log(event.rate), math.log1p(-event.rate)
    log_a = log_q - 1 / (2 * scale**2)
    size = np.abs(at)
    # with at = -size the equation has half = (1-q)(1-e^-size)/2; t at +size is one over that
    with np.errstate(divide="ignore"):
        log_half = log_rest + np.log(-np.expm1(-size) / 2)
    log_root = np.logaddexp(2 * log_half, 2 * log_a - size) / 2
    x = np.sign(at) * scale**2 * (np.logaddexp(log_half, log_root) - log_a + size)
    x = np.where(at == 0, 0.0, x)
    above = np.logaddexp(log_rest + log_ndtr(-x / scale), log_q + log_ndtr((1 - x) / scale))
    other = np.logaddexp(log_rest + log_ndtr(-x / scale), log_q + log_ndtr((-1 - x) / scale))
    return np.exp(above) * -np.expm1(np.minimum(at + other - above, 0.0))


def _connect_the_dots(
    hockey_stick: Callable[[FloatArray], FloatArray], step: float, low: int, high: int
) -> Any:
    """Upper discretisation of a symmetric pair from its hockey-stick curve on a grid."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    deltas = np.minimum.accumulate(hockey_stick(np.arange(low, high + 1, dtype=np.float64) * step))
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, low, high, deltas)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)
