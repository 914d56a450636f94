"""A second accountant: events in, (epsilon, delta) out, by dp-accounting alone.

Nothing of ``accounting.composition`` is used, and of the events only their fields: a claim of
the library that agrees with what is computed here was not checked against itself.

``recompute_epsilon(events, delta)`` and ``recompute_delta(events, epsilon)`` answer a bracket
``(low, high)`` around the smallest value that is proved for the events. Where every event has a
privacy loss distribution (PLD) the low end is an optimistic discretisation and the high end a
pessimistic one; with Poisson sampling, where rounding down each of many steps is useless, the low
end is extrapolated from two pessimistic grids. Where an event has only a Renyi bound (discrete
Gaussian, exponential mechanism, random stopping) both ends come from dp-accounting's
RdpAccountant. A kind of event that is not known is refused.

Gaussians are put together by the root of the sum of squares before the PLD is built (that this is
right is tested with one PLD per release in ``tests/privacy/test_composition.py``). Laplace noise
enters as what its event states, a pure mechanism.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import dp_accounting
import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld_module
from dp_accounting.rdp import RdpAccountant

Bracket = tuple[float, float]
REPLACE_ONE = dp_accounting.NeighboringRelation.REPLACE_ONE
ADD_OR_REMOVE = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE

PURE_KINDS = {"laplace", "pure", "bounded-range"}
PLD_KINDS = PURE_KINDS | {"gaussian", "poisson-gaussian"}
RENYI_KINDS = PURE_KINDS | {"gaussian", "discrete-gaussian", "random-stopping"}
KNOWN_KINDS = PLD_KINDS | RENYI_KINDS | {"parallel"}

_POINTS = 4000  # grid points in one typical deviation of the privacy loss
_ORDERS = 1 + np.logspace(-3.0, 5.0, 600)
_RENYI_SLACK = 2e-3  # the grid of orders above is not the library's


def recompute_epsilon(events: Iterable[Any], delta: float) -> Bracket:
    """Bracket around the smallest proved epsilon of all events at ``delta``."""
    brackets = [_epsilon_bracket(way, delta) for way in _ways(tuple(events))]
    return max(low for low, _ in brackets), max(high for _, high in brackets)


def recompute_delta(events: Iterable[Any], epsilon: float) -> Bracket:
    """Bracket around the smallest proved delta of all events at ``epsilon``."""
    brackets = [_delta_bracket(way, epsilon) for way in _ways(tuple(events))]
    return max(low for low, _ in brackets), max(high for _, high in brackets)


def _ways(events: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Lists of events that one record can meet, one branch of every parallel event."""
    for event in events:
        if getattr(event, "kind", None) not in KNOWN_KINDS:
            raise ValueError(f"no independent accounting for {event!r}.")
    options = [
        list(itertools.chain.from_iterable(_ways(branch) for branch in event.branches))
        if event.kind == "parallel"
        else [(event,)]
        for event in events
    ]
    return (tuple(itertools.chain.from_iterable(pick)) for pick in itertools.product(*options))


def _epsilon_bracket(events: Sequence[Any], delta: float) -> Bracket:
    kinds = {event.kind for event in events}
    brackets = [(math.inf, math.inf)]
    if kinds <= PURE_KINDS:
        total = math.fsum(_pure(event) * event.count for event in events)
        brackets.append((total, total))
    if delta > 0 and kinds <= PLD_KINDS:
        brackets.append(_pld_bracket(events, lambda pld: pld.get_epsilon_for_delta(delta)))
    if delta > 0 and kinds <= RENYI_KINDS:
        value = float(_renyi(events).get_epsilon(delta))
        brackets.append((value * (1 - _RENYI_SLACK), value))
    return min(low for low, _ in brackets), min(high for _, high in brackets)


def _delta_bracket(events: Sequence[Any], epsilon: float) -> Bracket:
    kinds = {event.kind for event in events}
    brackets = [(1.0, 1.0)]
    if kinds <= PURE_KINDS and math.fsum(_pure(e) * e.count for e in events) <= epsilon:
        brackets.append((0.0, 0.0))
    if kinds <= PLD_KINDS:
        brackets.append(_pld_bracket(events, lambda pld: pld.get_delta_for_epsilon(epsilon)))
    if kinds <= RENYI_KINDS:
        value = float(_renyi(events).get_delta(epsilon))
        slack = 1 - 20 * _RENYI_SLACK
        brackets.append((value * slack, value))
    return min(low for low, _ in brackets), min(high for _, high in brackets)


def _pure(event: Any) -> float:
    """Epsilon of one release at delta = 0, as the event states it."""
    return float(event.epsilon if event.kind == "pure" else event.sensitivity / event.scale)


# Privacy loss distributions --------------------------------------------------------------------


def _pld_bracket(events: Sequence[Any], read: Any) -> Bracket:
    fine = float(read(_pld(events, _POINTS, pessimistic=True)))
    if any(event.kind == "poisson-gaussian" for event in events):
        coarse = float(read(_pld(events, _POINTS // 2, pessimistic=True)))
        return (fine - max(coarse - fine, 1e-5 * fine), fine)
    return float(read(_pld(events, _POINTS, pessimistic=False))), fine


def _pld(events: Sequence[Any], points: int, *, pessimistic: bool) -> Any:
    """PLD of all events, every loss rounded up (pessimistic) or down."""
    ratio, pure, sampled = 0.0, Counter[float](), Counter[tuple[float, float, str]]()
    for event in events:
        if event.kind == "gaussian":
            ratio = math.hypot(ratio, event.sensitivity / event.scale * math.sqrt(event.count))
        elif event.kind == "poisson-gaussian":
            sampled[event.scale / event.clip, event.rate, event.relation] += event.count
        elif _pure(event) > 0:
            pure[_pure(event)] += event.count
    digits = 12 - math.ceil(math.log10(ratio)) if ratio > 0 else 0
    rounded = math.ceil if pessimistic else math.floor  # so that the bracket stays one
    ratio = rounded(ratio * 10.0**digits) / 10.0**digits
    facts = (tuple(sorted(pure.items())), tuple(sorted(sampled.items())))
    return _composed(ratio, *facts, points, pessimistic)


@functools.lru_cache(maxsize=64)
def _composed(
    ratio: float,
    pure_counts: tuple[tuple[float, int], ...],
    sampled_counts: tuple[tuple[tuple[float, float, str], int], ...],
    points: int,
    pessimistic: bool,
) -> Any:
    """PLD of one Gaussian release, of pure ones and of sampled ones; the same facts come often."""
    pure, sampled = Counter(dict(pure_counts)), Counter(dict(sampled_counts))
    step = _step(ratio, pure, sampled, points, pessimistic=pessimistic)
    common = {"value_discretization_interval": step, "pessimistic_estimate": pessimistic}
    total = pld_module.identity(**common)
    if ratio > 0:
        total = total.compose(
            pld_module.from_gaussian_mechanism(1 / ratio, use_connect_dots=pessimistic, **common)
        )
    for epsilon, count in pure.items():
        answer = pld_module.from_randomized_response(2 / (1 + math.exp(epsilon)), 2, **common)
        total = total.compose(answer.self_compose(count))
    for (noise, rate, relation), count in sampled.items():
        one = pld_module.from_gaussian_mechanism(
            noise,
            sampling_prob=rate,
            use_connect_dots=pessimistic,
            neighboring_relation=ADD_OR_REMOVE if relation == "add-remove" else REPLACE_ONE,
            **common,
        )
        total = total.compose(one.self_compose(count))
    return total


def _step(
    ratio: float, pure: Counter, sampled: Counter, points: int, *, pessimistic: bool
) -> float:
    variance = ratio**2 + sum(k * min(e, 1.0) * e for e, k in pure.items())
    loss = 0.0  # the largest loss of a sampled step bounds its grid
    for (noise, rate, _), count in sampled.items():
        variance += count * (2 * rate / noise) ** 2
        loss = max(loss, math.log1p(rate * math.expm1(min(20 / noise + 1 / noise**2, 500.0))))
    step = max((math.sqrt(variance) + variance / 2) / points, loss / (10 * points), 1e-9)
    if len(pure) == 1:
        # a whole number of steps, so that rounding moves no mass (up or down, by less than 1e-9)
        (epsilon,) = pure
        steps = math.ceil(epsilon / step)
        return epsilon / steps * (1 + 1e-10 if pessimistic else 1 - 1e-10)
    return step / max(1, min(50, sum(pure.values())))


# Renyi divergences -----------------------------------------------------------------------------


def _renyi(events: Sequence[Any]) -> RdpAccountant:
    accountant = RdpAccountant(_ORDERS, REPLACE_ONE)
    for event in events:
        accountant.compose(_renyi_event(event), getattr(event, "count", 1))
    return accountant


def _renyi_event(event: Any) -> dp_event.DpEvent:
    if event.kind in ("gaussian", "discrete-gaussian"):
        return dp_event.ZCDpEvent((event.sensitivity / event.scale) ** 2 / 2)
    if event.kind == "bounded-range":
        return dp_event.ZCDpEvent((event.sensitivity / event.scale) ** 2 / 8)
    if event.kind in PURE_KINDS:
        return dp_event.RandomizedResponseDpEvent(2 / (1 + math.exp(_pure(event))), 2)
    if event.kind != "random-stopping":
        raise ValueError(f"no Renyi bound for {event!r}.")
    base = [
        dp_event.SelfComposedDpEvent(_renyi_event(one), getattr(one, "count", 1))
        for one in event.base
    ]
    return dp_event.RepeatAndSelectDpEvent(
        dp_event.ComposedDpEvent(base), _mean_runs(event.shape, event.gamma), event.shape
    )


def _mean_runs(shape: float, gamma: float) -> float:
    """Mean of the truncated negative binomial, from its probabilities."""
    runs = np.arange(1, 1 + math.ceil(60 / gamma), dtype=np.float64)
    steps = np.log((runs - 1 + shape) / runs, where=runs > 1, out=np.zeros_like(runs))
    weights = np.exp(np.cumsum(steps) + runs * math.log1p(-gamma))
    return float(runs @ weights / weights.sum())
