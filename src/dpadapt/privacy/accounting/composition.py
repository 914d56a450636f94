"""From a list of events to (epsilon, delta), by the tightest statement that is proved.

Only Gaussian events
    the exact Gaussian-DP closed form.
Anything else
    the smallest of: the plain sum (the Gaussian events at delta, the pure epsilons of the
    others); the Renyi sum (which holds the zCDP sums) with the conversion of Canonne, Kamath,
    Steinke (2020); the privacy loss distribution (PLD) computed by dp-accounting on an upper
    (pessimistic) discretisation; for very many steps on one drawn row each, the normal law with
    the Berry-Esseen bound on how far it is off.

Runs that can fail are parted first: the probability that some run fails is added to delta, the
rest are releases that cannot. An event that is not known here (:func:`~.events.is_known`) states
nothing: together with it, nothing is promised.

dp-accounting is imported only when a PLD is needed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain, combinations_with_replacement

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from ... import _validate
from . import pld as _pld
from .events import Event, Relation, is_known
from .renyi import renyi_delta, renyi_epsilon

_Events = tuple[Event, ...]
_Of = Callable[[_Events, float], float]  # epsilon of events at a delta, or the reverse
_MOST_SCENARIOS = 8  # ways to pass through splits that are looked at one by one
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
    >>> from dpadapt.privacy.accounting.events import GaussianEvent, PureEvent
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
    >>> from dpadapt.privacy.accounting.events import GaussianEvent, PureEvent
    >>> compose_delta([PureEvent("a", 0.5)], 0.5)
    0.0
    >>> f"{compose_delta([GaussianEvent('mean', 1.0, 4.0)], 1.06072):.2g}"
    '1e-06'
    """
    _validate.non_negative("epsilon", epsilon)
    return max(_total_delta(_delta_of, scenario, epsilon) for scenario in _scenarios(events))


@np.errstate(all="ignore")
def fits(events: Iterable[Event], epsilon: float, delta: float) -> bool:
    """Whether ``compose_delta(events, epsilon) <= delta``, by the quickest bound that proves it.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import PureEvent
    >>> fits([PureEvent("a", 0.5)], 0.5, 1e-6), fits([PureEvent("a", 0.6)], 0.5, 1e-6)
    (True, False)
    """
    return _fits(events, epsilon, delta, (_quick_delta_of, _delta_of))


@np.errstate(all="ignore")
def quickly_fits(events: Iterable[Event], epsilon: float, delta: float) -> bool:
    """Whether that can be proved without a privacy loss distribution, which takes its time.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import PureEvent
    >>> quickly_fits([PureEvent("a", 0.5)], 0.5, 1e-6)
    True
    """
    return _fits(events, epsilon, delta, (_quick_delta_of,))


def _fits(events: Iterable[Event], epsilon: float, delta: float, proofs: Iterable[_Of]) -> bool:
    _validate.non_negative("epsilon", epsilon)
    return all(
        any(_total_delta(of, scenario, epsilon) <= delta for of in proofs)
        for scenario in _scenarios(events)
    )


@np.errstate(all="ignore")
def quick_epsilon(events: Iterable[Event], delta: float) -> float:
    """Epsilon that is proved without a privacy loss distribution: no less than the smallest.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import PureEvent
    >>> quick_epsilon([PureEvent("a", 0.5), PureEvent("b", 0.25)], 0.0)
    0.75
    """
    _validate.delta(delta, allow_zero=True)
    return max(_with_failures(_quick_epsilon_of, s, delta) for s in _scenarios(events))


def _total_delta(delta_of: _Of, scenario: _Events, epsilon: float) -> float:
    lost, rest = _failures(scenario)
    return min(1.0, lost + (1 - lost) * delta_of(rest, epsilon))


@np.errstate(all="ignore")
def pld_epsilon(events: Iterable[Event], delta: float) -> float:
    """Epsilon from the privacy loss distribution alone: an independent second opinion.

    Answers inf where an event has no PLD (discrete Gaussian, random stopping). A selection by the
    exponential mechanism enters as a pure mechanism, which is not tight.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent
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
            f"events under {' and '.join(sorted(stated))} cannot be composed; keep to one "
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
        inner = event.inner
        yield from (event,) if inner is None else _leaves(inner)


def _scenarios(events: Iterable[Event]) -> list[_Events]:
    """Lists of events that cover all that one changed record can meet: a branch of each split.

    Branches that another one covers (:func:`worst_ways`) are dropped, events that cost nothing
    too. Where few combinations are left, each is a list of its own, so that the cost is the largest
    of theirs. Where there would be more, there is one list, in which the splits stand as they are:
    what a :class:`~.events.ParallelEvent` answers by itself holds for each of its branches.
    """
    events = tuple(events)
    for event in events:
        if not isinstance(event, Event):
            raise TypeError(f"events must hold Event objects; got {type(event).__name__}.")
    relation_of(events)
    events = tuple(e if is_known(e) else Event(e.label, relation=e.relation) for e in events)
    common = tuple(e for e in events if not e.ways and e.pure_epsilon > 0)
    splits = [
        (event, worst_ways(chain(*map(_scenarios, event.ways)))) for event in events if event.ways
    ]
    counts = [event.law()[1] for event, _ in splits]
    sizes = (math.comb(len(ways) + n - 1, n) for (_, ways), n in zip(splits, counts, strict=True))
    few = math.prod(sizes) <= _MOST_SCENARIOS
    scenarios: list[_Events] = [()]
    for (event, ways), count in zip(splits, counts, strict=True):
        if count > _MOST_SCENARIOS or (len(ways) > 1 and not few):
            scenarios = [(*scenario, event) for scenario in scenarios]
        else:
            met = [sum(each, ()) for each in combinations_with_replacement(ways, count)]
            scenarios = worst_ways(scenario + way for scenario in scenarios for way in met)
    return [common + scenario for scenario in scenarios]


def worst_ways(ways: Iterable[_Events]) -> list[_Events]:
    """Those lists of events that no other one covers; in their order.

    One list covers another if it has at least its mu of Gaussian releases together, and every other
    law at least as often: then the other is what is left of it if releases are withheld and
    noise is added, which costs nothing, also beside any third list.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent, PureEvent
    >>> small, large = (GaussianEvent("a", 1.0, 9.0),), (GaussianEvent("b", 1.0, 2.0),)
    >>> worst_ways([small, large]) == [large]
    True
    >>> len(worst_ways([large, (PureEvent("c", 0.1),)]))
    2
    """
    kept: list[tuple[float, Counter[Event], _Events]] = []
    for way in ways:
        mu, laws = 0.0, Counter[Event]()
        for event in way:
            if math.isfinite(event.gaussian_mu):
                mu = math.hypot(mu, event.gaussian_mu)
            else:
                unit, count = event.law()
                laws[unit] += count
        if not any(mu <= other and laws <= more for other, more, _ in kept):
            kept = [one for one in kept if not (one[0] <= mu and one[1] <= laws)]
            kept.append((mu, laws, way))
    return [way for _, _, way in kept]


def _failures(events: _Events) -> tuple[float, _Events]:
    """Probability that some run fails (sum of the bounds), and what the events cost otherwise."""
    lost = math.fsum(event.failure for event in events)
    rest = (event.without_failure for event in events)
    return min(1.0, lost * (1 + 1e-12)), tuple(e for e in rest if e.pure_epsilon > 0)


def _with_failures(epsilon_of: _Of, events: _Events, delta: float) -> float:
    """Epsilon at what the failures leave of delta: delta = lost + (1 - lost) left."""
    lost, rest = _failures(events)
    if lost > delta or lost == 1:
        return math.inf
    return epsilon_of(rest, (delta - lost) / (1 - lost) if lost > 0 else delta)


def _gaussian_and_rest(events: _Events) -> tuple[float, float]:
    """The mu of all Gaussian events together, and the pure epsilons of the others added up."""
    mus = [event.gaussian_mu for event in events if math.isfinite(event.gaussian_mu)]
    rest = (event.pure_epsilon for event in events if math.isinf(event.gaussian_mu))
    return math.hypot(*mus), math.fsum(rest)


def _epsilon_of(events: _Events, delta: float) -> float:
    proved = _quick_epsilon_of(events, delta)
    if delta == 0 or _is_closed(events):
        return proved
    return min(proved, _pld_epsilon(events, delta), _normal_epsilon(events, delta))


def _quick_epsilon_of(events: _Events, delta: float) -> float:
    pure = math.fsum(event.pure_epsilon for event in events)
    if delta == 0:
        return pure
    mu, rest = _gaussian_and_rest(events)
    plain = rest + _smallest_epsilon(lambda epsilon: gaussian_delta(epsilon, mu), delta)
    if rest == 0:
        return plain
    if _is_one_release(events) and math.isfinite(pure):
        return min(_single_pure_epsilon(pure, delta), renyi_epsilon(events, delta))
    return min(plain, renyi_epsilon(events, delta))


def _delta_of(events: _Events, epsilon: float) -> float:
    """Delta is zero only where pure epsilons prove it: one that underflows is no zero."""
    proved = _quick_delta_of(events, epsilon)
    if proved == 0 or _is_closed(events):
        return proved
    proved = min(proved, _pld_delta(events, epsilon), _normal_delta(events, epsilon))
    return max(proved, math.ulp(0.0))


def _quick_delta_of(events: _Events, epsilon: float) -> float:
    pure = math.fsum(event.pure_epsilon for event in events)
    if pure <= epsilon:
        return 0.0
    mu, rest = _gaussian_and_rest(events)
    plain = gaussian_delta(epsilon - rest, mu) if rest <= epsilon else 1.0
    if rest == 0:
        proved = plain
    elif _is_one_release(events) and math.isfinite(pure):
        proved = min(_single_pure_delta(pure, epsilon), renyi_delta(events, epsilon))
    else:
        proved = min(plain, renyi_delta(events, epsilon))
    return max(proved, math.ulp(0.0))


def _is_closed(events: _Events) -> bool:
    """Whether a closed form is as good as a privacy loss distribution."""
    if _gaussian_and_rest(events)[1] == 0:
        return True
    return _is_one_release(events) and math.isfinite(events[0].pure_epsilon)


def _is_one_release(events: _Events) -> bool:
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


def _normal_epsilon(events: _Events, delta: float) -> float:
    if _normal_law(events) is None:
        return math.inf
    return _smallest_epsilon(lambda epsilon: _normal_delta(events, epsilon), delta)


def _normal_delta(events: _Events, epsilon: float) -> float:
    """Delta of many small releases and Gaussian ones; 1 where nothing is proved.

    The dominating pair of each is symmetric, so with S the sum of all privacy losses
    delta = P(S > epsilon) - e^epsilon P(S < -epsilon). Either probability is within
    B = C * (sum of third absolute central moments) / (sum of variances)^(3/2) of the normal law's
    (Berry, Esseen; C = 0.4748 for summands of one law, 0.56 for others, Shevtsova 2011, 2010).
    Gaussian losses add to the variance alone: cut into many small ones, they have no third moment.
    """
    law = _normal_law(events)
    if law is None or epsilon >= 500:
        return 1.0
    mean, deviation, off = law
    above = float(ndtr((mean - epsilon) / deviation)) + off
    below = max(0.0, float(ndtr((-epsilon - mean) / deviation)) - off)
    return min(1.0, above - math.exp(epsilon) * below)


def _normal_law(events: _Events) -> tuple[float, float, float] | None:
    """Mean and deviation of the sum of all losses, and B; None where nothing is proved."""
    total, laws = np.zeros(3), set()
    for event in events:
        mu, (loss, count) = event.gaussian_mu, event.loss or (None, 1)
        moments = loss.moments if loss else (mu * mu / 2, mu * mu, 0.0)
        if moments is None or not math.isfinite(moments[1]):
            return None
        laws.add(loss)  # None for Gaussians: never the law of a drawn row, not even at rate 1
        total = total + count * np.array(moments)
    mean, variance, third = total.tolist()
    if not (math.isfinite(third) and third > 0):
        return None
    deviation = math.sqrt(variance)
    off = (0.4748 if len(laws) == 1 else 0.56) * third / variance / deviation * (1 + 1e-9)
    return mean, deviation, off


# Privacy loss distributions: a plan is calibrated, rechecked, claimed, and each takes seconds ---


@lru_cache(maxsize=4096)
def _pld_epsilon(events: _Events, delta: float) -> float:
    pld = _pld.distribution(events)
    return math.inf if pld is None else float(pld.get_epsilon_for_delta(delta))


@lru_cache(maxsize=4096)
def _pld_delta(events: _Events, epsilon: float) -> float:
    pld = _pld.distribution(events)
    return math.inf if pld is None else float(pld.get_delta_for_epsilon(epsilon))
