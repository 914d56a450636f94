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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray

from ..accounting.events import Addition, Event, Relation, event_from_dict
from ..accounting.renyi import renyi_orders, renyi_sum

__all__ = ["SummedEvent", "alike", "encode_sums", "summed"]

_MOST_STOPPED = 8  # random stoppings that are kept as they are
_FINENESS = (64, 32, 16, 8, 4, 2, 1)  # laws an octave, where there are too many
_UP = 1 + 1e-12  # more than the rounding of a sum of Renyi divergences


@dataclass(frozen=True, slots=True)
class SummedEvent(Event):
    """Renyi divergences of many events together, at each of the usual orders.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import PureEvent
    >>> one = SummedEvent.of([PureEvent("a", 0.5)], "replace-one")
    >>> float(one.renyi(renyi_orders()).max()) <= 0.5 * (1 + 1e-11)
    True
    """

    values: tuple[float, ...]
    kind: ClassVar[str] = "summed"
    adds: ClassVar[Addition | None] = "orders"

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        if len(self.values) != len(renyi_orders()) or not min(self.values) >= 0:
            raise ValueError("sums must hold a number for each order.")

    @classmethod
    def of(cls, events: Iterable[Event], relation: Relation) -> SummedEvent:
        """The sum over events, rounded up."""
        total = renyi_sum(events, renyi_orders())
        return cls("", tuple((total * _UP).tolist()), relation=relation)

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Value of the next order above; a Renyi divergence grows with its order."""
        known = np.append(np.asarray(self.values), math.inf)
        return np.asarray(known[np.searchsorted(renyi_orders(), orders)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        text = base64.b64encode(np.asarray(self.values, dtype="<f8").tobytes()).decode()
        return {"kind": self.kind, "relation": self.relation, "values": text}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SummedEvent:
        """The inverse."""
        values = np.frombuffer(base64.b64decode(data["values"]), dtype="<f8")
        return cls("", tuple(values.tolist()), relation=data["relation"])


def summed(events: Iterable[Event]) -> tuple[Event, ...]:
    """Short list that costs at least what ``events`` do; the same where laws are few.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent, PureEvent
    >>> for event in summed([PureEvent("a", 0.5), GaussianEvent("b", 3.0, 1.0)] * 4):
    ...     print(event)
    GaussianEvent(label='', relation='replace-one', sensitivity=6.000000000000001, scale=1.0, \
count=1)
    PureEvent(label='', relation='replace-one', epsilon=0.5, count=4)
    """
    squares: dict[tuple[Any, Relation], list[float]] = {}
    laws: dict[tuple[type[Event], Relation], Counter[Event]] = {}
    orders: dict[Relation, list[Event]] = {}
    apart: list[Event] = []
    for event in events:
        if event.pure_epsilon == 0:
            continue
        unit, count = event.law()
        key = (type(unit), unit.relation)
        if event.adds == "squares":
            ratio = getattr(unit, unit.worse[0])
            squares.setdefault(key, []).append(math.sqrt(count) * ratio)
        elif event.adds == "laws":
            laws.setdefault(key, Counter())[unit] += count
        elif event.adds == "orders":
            orders.setdefault(unit.relation, []).append(unit)
        elif event.adds == "apart":
            apart.append(unit)
        else:
            raise ValueError(f"events of kind {event.kind!r} have no sum.")
    short: list[Event] = []
    for (kind, relation), each in squares.items():
        size = each[0] if len(each) == 1 else math.nextafter(math.hypot(*each), math.inf)
        short.append(kind("", size, 1.0, relation=relation))
    for (kind, _), units in laws.items():
        counted = _few(units, kind.most)
        short += [replace(unit, count=count) for unit, count in counted.items()]  # type: ignore[call-arg]
    for relation, some in orders.items():
        many = len(some) > _MOST_STOPPED or any(e.kind == SummedEvent.kind for e in some[:-1])
        short += [SummedEvent.of(some, relation)] if many else some
    return tuple(short + apart)


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
        groups.setdefault(cell([getattr(unit, name) for name in unit.worse]), []).append(unit)
    merged: Counter[Event] = Counter()
    for group in groups.values():
        worst = {
            name: (min if name == "scale" else max)(getattr(unit, name) for unit in group)
            for name in group[0].worse
        }
        merged[replace(group[0], **worst)] += sum(units[unit] for unit in group)
    return merged


def _cell(facts: list[float], fineness: int) -> tuple[int, ...]:
    return tuple(math.floor(math.log2(fact) * fineness) if fact > 0 else -(10**9) for fact in facts)


def alike(first: Any, second: Any) -> bool:
    """Whether two lists are equal but for the rounding of another processor.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import PureEvent
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
    >>> from dpadapt.privacy.accounting.events import PureEvent
    >>> decode_sums(encode_sums([PureEvent("", 0.5)]))
    (PureEvent(label='', relation='replace-one', epsilon=0.5, count=1),)
    """
    return json.dumps([event.to_dict() for event in events], allow_nan=True)


def decode_sums(text: str) -> tuple[Event, ...]:
    """The inverse of :func:`encode_sums`; ValueError where it is not that."""
    try:
        return tuple(event_from_dict(item) for item in json.loads(text))
    except (TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ValueError(str(error)) from None
