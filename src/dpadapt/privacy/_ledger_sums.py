r"""A short list of events that costs what a long one does: what a ledger keeps composed.

Which sums are exact. Gaussian releases add up in mu^2, discrete Gaussians in rho; releases of one
law add up in their count; what has a Renyi statement alone adds up in it, order by order. Composing
the short list is then composing the long one, by the same code (mu and rho are rounded up).

Privacy loss distributions and the normal law have no sum of fixed size, only the count of each law,
and each law takes its time. Where there are too many different laws of one kind, laws within a
factor of 2^(1/64) (then 2^(1/32), 2^(1/16), ..., 2) become the worst of them. That is an upper
bound, because a law is never worse for a smaller sensitivity, clip, epsilon or delta, more noise, a
lower rate or fewer draws: an epsilon-DP mechanism is epsilon'-DP for epsilon' > epsilon, and so on;
of the sampled ones, rate q is what remains of rate q' > q if each output is exchanged, with
probability 1 - q/q', for one without the record.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from .events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DrawsEvent,
    Event,
    FloatArray,
    GaussianEvent,
    LaplaceEvent,
    OneDrawGaussianEvent,
    ParallelEvent,
    PoissonGaussianEvent,
    PureEvent,
    RandomStoppingEvent,
    Relation,
    UpdatesEvent,
    event_from_dict,
    renyi_orders,
)

__all__ = ["SummedEvent", "alike", "decode_sums", "encode_sums", "summed"]

_Normal = GaussianEvent | DiscreteGaussianEvent
# how many laws of one kind are kept apart: the time that a distribution of each takes
_MOST = {"pure": 24, "bounded-range": 16, "poisson-gaussian": 8, "one-draw-gaussian": 8}
_MOST |= {"updates": 64, "draws": 16}
_MOST_STOPPED = 8  # random stoppings that are kept as they are
_FINENESS = (64, 32, 16, 8, 4, 2, 1)  # laws an octave, where there are too many
_UP = 1 + 1e-12  # more than the rounding of a sum of Renyi divergences


@dataclass(frozen=True, slots=True)
class SummedEvent(Event):
    """Renyi divergences of many events together, at each of the usual orders.

    Examples
    --------
    >>> one = SummedEvent.of([PureEvent("a", 0.5)], "replace-one")
    >>> float(one.renyi(renyi_orders()).max()) <= 0.5 * (1 + 1e-11)
    True
    """

    values: tuple[float, ...]
    kind: ClassVar[str] = "summed"

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        if len(self.values) != len(renyi_orders()) or not min(self.values) >= 0:
            raise ValueError("sums must hold a number for each order.")

    @classmethod
    def of(cls, events: Iterable[Event], relation: Relation) -> SummedEvent:
        """The sum over events, rounded up."""
        orders = renyi_orders()
        total: FloatArray = np.zeros(orders.shape)
        for event in events:
            total = total + event.renyi(orders)
        return cls("", tuple((total * _UP).tolist()), relation=relation)

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Value of the next order above; a Renyi divergence grows with its order."""
        known = np.append(np.asarray(self.values), math.inf)
        return np.asarray(known[np.searchsorted(renyi_orders(), orders)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        text = base64.b64encode(np.asarray(self.values, dtype="<f8").tobytes()).decode()
        return {"kind": self.kind, "relation": self.relation, "values": text}


def summed(events: Iterable[Event]) -> tuple[Event, ...]:
    """Short list that costs at least what ``events`` do; the same where laws are few.

    Examples
    --------
    >>> for event in summed([PureEvent("a", 0.5), GaussianEvent("b", 3.0, 1.0)] * 4):
    ...     print(event)
    GaussianEvent(label='', relation='replace-one', sensitivity=6.000000000000001, scale=1.0, \
count=1)
    PureEvent(label='', relation='replace-one', epsilon=0.5, count=4)
    """
    squares: dict[tuple[type[_Normal], Relation], list[float]] = {}
    laws: dict[tuple[str, str], Counter[Event]] = {}
    stopped: dict[Relation, list[Event]] = {}
    parallel: list[Event] = []
    for event in events:
        if isinstance(event, ParallelEvent):
            parallel.append(_nameless(event))
        elif isinstance(event, (RandomStoppingEvent, SummedEvent)):
            stopped.setdefault(event.relation, []).append(_nameless(event))
        elif event.pure_epsilon == 0:
            continue
        elif isinstance(event, _Normal):
            square = math.sqrt(event.count) * event.ratio
            squares.setdefault((type(event), event.relation), []).append(square)
        else:
            unit, count = _law(event)
            laws.setdefault((unit.kind, unit.relation), Counter())[unit] += count
    short: list[Event] = []
    for (kind, relation), each in squares.items():
        size = each[0] if len(each) == 1 else math.nextafter(math.hypot(*each), math.inf)
        short.append(kind("", size, 1.0, relation=relation))
    for (name, _), units in laws.items():
        counted = _few(units, _MOST[name])
        short += [replace(unit, count=count) for unit, count in counted.items()]  # type: ignore[call-arg]
    for relation, some in stopped.items():
        many = len(some) > _MOST_STOPPED or any(isinstance(e, SummedEvent) for e in some[:-1])
        short += [SummedEvent.of(some, relation)] if many else some
    return tuple(short + parallel)


def _law(event: Event) -> tuple[Event, int]:
    """One release of an event, in units in which equal laws are equal; and how many there are."""
    if isinstance(event, LaplaceEvent):  # states what any pure release does
        return PureEvent("", event.ratio, relation=event.relation), event.count
    if isinstance(event, (BoundedRangeEvent, UpdatesEvent)):
        return replace(event, label="", sensitivity=event.ratio, scale=1.0, count=1), event.count
    if isinstance(event, (PoissonGaussianEvent, OneDrawGaussianEvent)):
        multiplier = event.scale / event.clip
        return replace(event, label="", clip=1.0, scale=multiplier, count=1), event.count
    if isinstance(event, (PureEvent, DrawsEvent)):
        return replace(event, label="", count=1), event.count
    raise ValueError(f"events of kind {event.kind!r} have no sum; was it made by a newer version?")


def _few(units: Counter[Event], most: int) -> Counter[Event]:
    """At most so many laws; those that are near each other become the worst of them."""
    for fineness in (None, *_FINENESS):
        if len(units) <= most:
            return units
        if fineness is not None:
            units = _merged(units, lambda facts, f=fineness: _cell(facts, f))  # type: ignore[misc]
    return units if len(units) <= most else _merged(units, lambda facts: ())


def _merged(units: Counter[Event], cell: Callable[[list[float]], Any]) -> Counter[Event]:
    groups: dict[Any, list[Event]] = {}
    for unit in units:
        groups.setdefault(cell([getattr(unit, name) for name in _facts(unit)]), []).append(unit)
    merged: Counter[Event] = Counter()
    for group in groups.values():
        worst = {
            name: (min if name == "scale" else max)(getattr(unit, name) for unit in group)
            for name in _facts(group[0])
        }
        merged[replace(group[0], **worst)] += sum(units[unit] for unit in group)
    return merged


def _facts(unit: Event) -> tuple[str, ...]:
    """What a law costs more with, the more of it there is; with ``scale`` less."""
    if isinstance(unit, PureEvent):
        return ("epsilon",)
    if isinstance(unit, (PoissonGaussianEvent, OneDrawGaussianEvent)):
        return ("scale", "rate")
    if isinstance(unit, DrawsEvent):
        return ("epsilon", "delta", "draws", "rate")
    return ("sensitivity",)


def _cell(facts: list[float], fineness: int) -> tuple[int, ...]:
    return tuple(math.floor(math.log2(fact) * fineness) if fact > 0 else -(10**9) for fact in facts)


def _nameless(event: Event) -> Event:
    """The event without the words in it."""
    if isinstance(event, ParallelEvent):
        branches = tuple(tuple(map(_nameless, branch)) for branch in event.branches)
        return replace(event, label="", branches=branches)
    if isinstance(event, RandomStoppingEvent):
        return replace(event, label="", base=tuple(map(_nameless, event.base)))
    return replace(event, label="")


def alike(first: Any, second: Any) -> bool:
    """Whether two lists are equal but for the rounding of another processor.

    Examples
    --------
    >>> alike((PureEvent("", 0.3),), (PureEvent("", 0.1 + 0.2),))
    True
    """
    if isinstance(first, Event):
        names = [each.name for each in fields(first)]
        return type(first) is type(second) and all(
            alike(getattr(first, name), getattr(second, name)) for name in names
        )
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(alike, first, second))
    if isinstance(first, float):
        return math.isclose(first, second, rel_tol=1e-9)
    return bool(first == second)


def encode_sums(events: Iterable[Event]) -> str:
    """JSON of a short list.

    Examples
    --------
    >>> decode_sums(encode_sums([PureEvent("", 0.5)]))
    (PureEvent(label='', relation='replace-one', epsilon=0.5, count=1),)
    """
    return json.dumps([event.to_dict() for event in events], allow_nan=True)


def decode_sums(text: str) -> tuple[Event, ...]:
    """The inverse of :func:`encode_sums`; ValueError where it is not that."""
    try:
        return tuple(_decoded(json.loads(text)))
    except (TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _decoded(items: Any) -> Iterator[Event]:
    for item in items:
        if item.get("kind") == SummedEvent.kind:
            values = np.frombuffer(base64.b64decode(item["values"]), dtype="<f8")
            yield SummedEvent("", tuple(values.tolist()), relation=item["relation"])
        else:
            yield event_from_dict(item)
