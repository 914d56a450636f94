"""From a list of events to (epsilon, delta), by the tightest statement that is proved.

Only Gaussian events
    the exact Gaussian-DP closed form.
Anything else
    the smallest of: the sum of pure epsilons; the Renyi sum (which holds the zCDP sums) with the
    conversion of Canonne, Kamath, Steinke (2020); the privacy loss distribution (PLD) computed by
    dp-accounting on an upper (pessimistic) discretisation; for very many steps on one drawn row
    each, the normal law with the Berry-Esseen bound on how far it is off.

Runs that can fail (:class:`~dpadapt.privacy.events.DrawsEvent`) are parted first: the probability
that some run fails is added to delta, the rest are pure releases.

dp-accounting is imported only when a PLD is needed.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from . import _one_draw, _pld, _validate
from .events import (
    DrawsEvent,
    Event,
    FloatArray,
    GaussianEvent,
    OneDrawGaussianEvent,
    ParallelEvent,
    RandomStoppingEvent,
    Relation,
    renyi_orders,
)

__all__ = [
    "compose_delta",
    "compose_epsilon",
    "fits",
    "gaussian_delta",
    "pld_epsilon",
    "relation_of",
]

_MOST_SCENARIOS = 1_000  # ways to pass through parallel events, repetitions not counted
_LARGEST_EPSILON = 1e7  # where a search for epsilon gives up and answers inf
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


@np.errstate(all="ignore")  # a user's seterr must not turn an underflow into an error
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
    return max(_with_failures(_epsilon_of, s, delta) for s in _scenarios(events))


@np.errstate(all="ignore")
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
    return max(_total_delta(scenario, epsilon) for scenario in _scenarios(events))


@np.errstate(all="ignore")
def fits(events: Iterable[Event], epsilon: float, delta: float) -> bool:
    """Whether ``compose_delta(events, epsilon) <= delta``, by the quickest bound that proves it.

    Examples
    --------
    >>> from dpadapt.privacy.events import PureEvent
    >>> fits([PureEvent("a", 0.5)], 0.5, 1e-6), fits([PureEvent("a", 0.6)], 0.5, 1e-6)
    (True, False)
    """
    _validate.non_negative("epsilon", epsilon)
    return all(
        _quickly_fits(scenario, epsilon, delta) or _total_delta(scenario, epsilon) <= delta
        for scenario in _scenarios(events)
    )


def _quickly_fits(scenario: Sequence[Event], epsilon: float, delta: float) -> bool:
    lost, rest = _failures(scenario)
    return min(1.0, lost + (1 - lost) * _renyi_delta(rest, epsilon)) <= delta


def _total_delta(scenario: Sequence[Event], epsilon: float) -> float:
    lost, rest = _failures(scenario)
    return min(1.0, lost + (1 - lost) * _delta_of(rest, epsilon))


@np.errstate(all="ignore")
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
    return max(_with_failures(_pld_epsilon, s, delta) for s in _scenarios(events))


def relation_of(events: Iterable[Event], default: Relation = "replace-one") -> Relation:
    """Neighbouring relation that the events state; mixing two is refused.

    Examples
    --------
    >>> relation_of([])
    'replace-one'
    """
    stated = {event.relation for event in _leaves(events)}
    if len(stated) > 1:
        raise ValueError(
            "events under replace-one and under add-remove cannot be composed; keep to one "
            "relation on one data set."
        )
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


def _failures(events: Sequence[Event]) -> tuple[float, tuple[Event, ...]]:
    """Probability that some run fails (sum of the bounds), and what the events cost otherwise."""
    lost = math.fsum(event.failure for event in events if isinstance(event, DrawsEvent))
    rest = (e.without_failure if isinstance(e, DrawsEvent) else e for e in events)
    return min(1.0, lost * (1 + 1e-12)), tuple(e for e in rest if e.pure_epsilon > 0)


def _with_failures(
    epsilon_of: Callable[[Sequence[Event], float], float], events: Sequence[Event], delta: float
) -> float:
    """Epsilon at what the failures leave of delta: delta = lost + (1 - lost) left."""
    lost, rest = _failures(events)
    if lost > delta or lost == 1:
        return math.inf
    return epsilon_of(rest, (delta - lost) / (1 - lost) if lost > 0 else delta)


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
    proved = min(pure, _renyi_epsilon(events, delta), _pld_epsilon(events, delta))
    return min(proved, _normal_epsilon(events, delta))


def _delta_of(events: Sequence[Event], epsilon: float) -> float:
    """Delta is zero only where pure epsilons prove it: one that underflows is no zero."""
    pure = math.fsum(event.pure_epsilon for event in events)
    if pure <= epsilon:
        return 0.0
    mu = _gaussian_mu(events)
    if math.isfinite(mu):
        proved = gaussian_delta(epsilon, mu)
    elif _is_one_release(events) and math.isfinite(pure):
        proved = min(_single_pure_delta(pure, epsilon), _renyi_delta(events, epsilon))
    else:
        proved = min(1.0, _renyi_delta(events, epsilon), _pld_delta(events, epsilon))
        proved = min(proved, _normal_delta(events, epsilon))
    return max(proved, math.ulp(0.0))


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


# The normal law, with its error ---------------------------------------------------------------


def _normal_epsilon(events: Sequence[Event], delta: float) -> float:
    if not any(isinstance(event, OneDrawGaussianEvent) for event in events):
        return math.inf
    return _smallest_epsilon(lambda epsilon: _normal_delta(events, epsilon), delta)


def _normal_delta(events: Sequence[Event], epsilon: float) -> float:
    """Delta of steps on drawn rows and Gaussian releases; 1 where nothing is proved.

    The dominating pair of each is symmetric, so with S the sum of all privacy losses
    delta = P(S > epsilon) - e^epsilon P(S < -epsilon). Either probability is within
    B = C * (sum of third absolute central moments) / (sum of variances)^(3/2) of the normal law's
    (Berry, Esseen; C = 0.4748 for summands of one law, 0.56 for others, Shevtsova 2011, 2010).
    Gaussian losses add to the variance alone: cut into many small ones, they have no third moment.
    """
    mean = variance = third = 0.0
    laws: set[tuple[float, float] | None] = set()
    for event in events:
        if isinstance(event, GaussianEvent):
            mu = event.gaussian_mu
            one, count = (mu * mu / 2, mu * mu, 0.0), 1
            laws.add(None)  # of many small ones: never that of a drawn row, not even at rate 1
        elif isinstance(event, OneDrawGaussianEvent):
            facts = (event.strength, event.rate)
            one, count = _one_draw.loss_moments(*facts), event.count
            laws.add(facts)
        else:
            return 1.0
        mean, variance, third = (
            t + count * o for t, o in zip((mean, variance, third), one, strict=True)
        )
    if not (math.isfinite(third) and third > 0 and epsilon < 500):
        return 1.0
    deviation = math.sqrt(variance)
    off = (0.4748 if len(laws) == 1 else 0.56) * third / variance / deviation * (1 + 1e-9)
    above = float(ndtr((mean - epsilon) / deviation)) + off
    below = max(0.0, float(ndtr((-epsilon - mean) / deviation)) - off)
    return min(1.0, above - math.exp(epsilon) * below)


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


def _pld_epsilon(events: Sequence[Event], delta: float) -> float:
    return _pld_value(tuple(events), delta=delta)


def _pld_delta(events: Sequence[Event], epsilon: float) -> float:
    return _pld_value(tuple(events), epsilon=epsilon)


@lru_cache(maxsize=4096)  # a plan is calibrated, rechecked, claimed; a distribution takes seconds
def _pld_value(
    events: tuple[Event, ...], *, delta: float | None = None, epsilon: float | None = None
) -> float:
    pld = _pld.distribution(events)
    if pld is None:
        return math.inf
    if delta is not None:
        return float(pld.get_epsilon_for_delta(delta))
    return float(pld.get_delta_for_epsilon(epsilon))
