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

Splits. A record is in one part of each split, and nobody keeps which: in the worst case it is in
the dearer part of all. A branch that another one covers is dropped, because whatever a record costs
in the first it costs in the second, whatever else is charged
(:func:`~dpadapt.privacy.accounting.composition.worst_ways`). Where one branch is left, the split is
that branch, and its events are summed like any others: exact, since there is a record that meets
them all. That is the case of every split into Gaussian releases: the larger mu. Of other splits
equal ones are counted, and stated as
:class:`~dpadapt.privacy.accounting.events.ParallelEvent` states them, for every branch at once: an
upper bound on every combination. Too many different ones become the worst of those that are made
alike, branch by branch and law by law; where that is not enough, or a branch has no privacy loss
distribution, their largest Renyi divergence at each order is summed.

Why a worst one is never below the truth. Two laws have one shape if they differ in nothing but the
facts that a law costs more with (``worse``): of splits, if they have as many branches, each as many
events, and these have one shape in turn, at every depth, counts included. Only laws of one shape
become one, W, with the worst of each fact. *A law L of that shape is dominated by W.* By induction
on the depth: a single law by the above. Of a split, branch i of L has event by event the shape of
branch i of W, so each event is dominated, and so is their adaptive composition (Zhu, Dong, Wang
2022, Theorem 10). Hence at each threshold the hockey-stick divergence of branch i is at most that
of W's, and the largest over branches at most W's largest; the same holds of Renyi divergences,
order by order. What states the largest of its branches dominates whichever branch a record meets. A
count of W's instead of each L then dominates all of them. Shapes that differ never become one: what
is left over goes to the Renyi sum, where a split has at each order the largest divergence of its
branches, and those of all splits add up.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray

from ..accounting.composition import worst_ways
from ..accounting.events import (
    Addition,
    Event,
    ParallelEvent,
    PureEvent,
    Relation,
    event_from_dict,
)
from ..accounting.renyi import renyi_orders, renyi_sum

_MOST_STOPPED = 8  # random stoppings that are kept as they are
_MOST_SPLITS = 8  # different splits, none of whose branches covers the others
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


@dataclass(frozen=True, slots=True)
class FailedEvent(Event):
    """Probability with which some branch of some split promises nothing, and no other cost.

    Examples
    --------
    >>> FailedEvent("", 1e-9).failure
    1e-09
    """

    probability: float
    kind: ClassVar[str] = "failed"
    adds: ClassVar[Addition | None] = "failures"

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        if not 0 <= self.probability <= 1:
            raise ValueError("probability must lie between 0 and 1.")

    @property
    def failure(self) -> float:
        """All that it is."""
        return self.probability

    @property
    def without_failure(self) -> PureEvent:
        """Nothing."""
        return PureEvent(self.label, 0.0, relation=self.relation)


def summed(events: Iterable[Event]) -> tuple[Event, ...]:
    """Short list that costs at least what ``events`` do; the same where laws are few.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent, ParallelEvent, PureEvent
    >>> for event in summed([PureEvent("a", 0.5), GaussianEvent("b", 3.0, 1.0)] * 4):
    ...     print(event)
    GaussianEvent(label='', relation='replace-one', sensitivity=6.000000000000001, scale=1.0, \
count=1)
    PureEvent(label='', relation='replace-one', epsilon=0.5, count=4)
    >>> fold, rest = GaussianEvent("fold", 1.0, 2.0), GaussianEvent("rest", 1.0, 1.0)
    >>> len(summed(ParallelEvent("split", ((fold,), (rest,))) for _ in range(1000)))
    1
    """
    total = Sums()
    for event in events:
        total.add(event)
    return total.short()


class Sums:
    """Sums that events are added to one by one; ``settle`` keeps them short.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import PureEvent
    >>> total = Sums()
    >>> total.add(PureEvent("a", 0.5)), total.add(PureEvent("b", 0.5))
    (None, None)
    >>> total.short()
    (PureEvent(label='', relation='replace-one', epsilon=0.5, count=2),)
    """

    def __init__(self) -> None:
        self._squares: dict[tuple[Any, Relation], list[float]] = {}
        self._laws: dict[tuple[type[Event], Relation], Counter[Event]] = {}
        self._splits: dict[Relation, Counter[Event]] = {}
        self._orders: dict[Relation, list[Event]] = {}
        self._total: dict[Relation, FloatArray] = {}
        self._failed: dict[Relation, list[float]] = {}

    def add(self, event: Event, times: int = 1) -> None:
        """One more event, so many times."""
        if event.pure_epsilon == 0:
            return
        if event.adds == "branches":
            self._add_split(event, times)
            return
        if event.adds == "failures":
            self._failed.setdefault(event.relation, []).append(event.failure * times)
            return
        unit, count = event.law()
        key = (type(unit), unit.relation)
        if event.adds == "squares":
            ratio = getattr(unit, unit.worse[0])
            self._squares.setdefault(key, []).append(math.sqrt(count * times) * ratio)
        elif event.adds == "laws":
            self._laws.setdefault(key, Counter())[unit] += count * times
        elif event.kind == SummedEvent.kind:
            self._add_total(event.relation, times * event.renyi(renyi_orders()))
        elif event.adds == "orders":
            self._orders.setdefault(unit.relation, []).extend([unit] * times)
        else:
            raise ValueError(f"events of kind {event.kind!r} have no sum.")

    def _add_total(self, relation: Relation, more: FloatArray) -> None:
        known = self._total.get(relation)
        self._total[relation] = more if known is None else (known + more) * _UP

    def _add_split(self, event: Event, times: int) -> None:
        count = event.law()[1] * times
        ways = worst_ways(summed(branch) for branch in event.ways)
        if len(ways) == 1:
            for one in ways[0]:
                self.add(one, count)
            return
        if event.failure > 0:
            self._failed.setdefault(event.relation, []).append(event.failure * times)
            self._add_split(event.without_failure, times)
            return
        split = ParallelEvent("", tuple(sorted(ways, key=repr)), relation=event.relation)
        if split.loss is None:
            self._orders.setdefault(event.relation, []).append(replace(split, count=count))
        else:
            self._splits.setdefault(event.relation, Counter())[split] += count

    def settle(self) -> None:
        """Join what has become too long."""
        for key, each in self._squares.items():
            if len(each) > 1:
                self._squares[key] = [math.nextafter(math.hypot(*each), math.inf)]
        for relation, lost in self._failed.items():
            if len(lost) > 1:
                self._failed[relation] = [min(1.0, math.fsum(lost) * _UP)]
        for key, units in self._laws.items():
            self._laws[key] = _few(units, key[0].most)
        for relation, splits in self._splits.items():
            few = _few(splits, _MOST_SPLITS)
            if len(few) > _MOST_SPLITS:  # too many shapes
                some = [replace(e, count=n) for e, n in few.items()]  # type: ignore[call-arg]
                self._orders.setdefault(relation, []).extend(some)
                few = Counter()
            self._splits[relation] = few
        for relation, some in self._orders.items():
            if some and (len(some) > _MOST_STOPPED or relation in self._total):
                self._add_total(relation, renyi_sum(some, renyi_orders()) * _UP)
                some.clear()

    def short(self) -> tuple[Event, ...]:
        """All as a short list."""
        self.settle()
        short: list[Event] = []
        for (kind, relation), (size,) in self._squares.items():
            short.append(kind("", size, 1.0, relation=relation))
        for relation, (lost,) in self._failed.items():
            short.append(FailedEvent("", lost, relation=relation))
        for units in (*self._laws.values(), *self._splits.values()):
            short += [replace(unit, count=count) for unit, count in units.items()]  # type: ignore[call-arg]
        for some in self._orders.values():
            short += some
        for relation, total in self._total.items():
            short.append(SummedEvent("", tuple(total.tolist()), relation=relation))
        return tuple(short)


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
        groups.setdefault((_shape(unit), cell(_facts(unit))), []).append(unit)
    merged: Counter[Event] = Counter()
    for group in groups.values():
        worst = group[0] if len(group) == 1 else _worst(group)
        merged[worst] += sum(units[unit] for unit in group)
    return merged


def _shape(unit: Event) -> Any:
    """What laws must have in common to become one: all but the facts of ``worse``, at any depth."""
    if unit.ways:
        inner = tuple(tuple(map(_shape, way)) for way in unit.ways)
        return type(unit), unit.relation, unit.law()[1], inner
    same = (getattr(unit, each.name) for each in fields(unit) if each.name not in unit.worse)
    return type(unit), *same


def _facts(unit: Event) -> list[float]:
    if unit.ways:
        return [fact for way in unit.ways for event in way for fact in _facts(event)]
    return [getattr(unit, name) for name in unit.worse]


def _worst(group: Sequence[Event]) -> Event:
    """The law that no law of a group, all of one shape, is worse than; of splits by branches."""
    first = group[0]
    if first.ways:
        ways = tuple(
            tuple(map(_worst, zip(*way, strict=True)))
            for way in zip(*(unit.ways for unit in group), strict=True)
        )
        return replace(first, branches=ways)  # type: ignore[call-arg]
    worst = {
        name: (min if name == "scale" else max)(getattr(unit, name) for unit in group)
        for name in first.worse
    }
    return replace(first, **worst)


def _cell(facts: list[float], fineness: int) -> tuple[int, ...]:
    return tuple(math.floor(math.log2(fact) * fineness) if fact > 0 else -(10**9) for fact in facts)


def alike(first: Any, second: Any) -> bool:
    """Whether two lists are equal but for their order and the rounding of another processor.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import PureEvent
    >>> alike((PureEvent("", 0.3), PureEvent("", 1)), (PureEvent("", 1), PureEvent("", 0.1 + 0.2)))
    True
    """
    if isinstance(first, Event):
        names = [each.name for each in fields(first)]
        return type(first) is type(second) and all(
            alike(getattr(first, name), getattr(second, name)) for name in names
        )
    if isinstance(first, tuple):
        if first and all(isinstance(each, Event) for each in (*first, *second)):
            first, second = sorted(first, key=_place), sorted(second, key=_place)
        return len(first) == len(second) and all(map(alike, first, second))
    if isinstance(first, float):
        return math.isclose(first, second, rel_tol=1e-9)
    return bool(first == second)


def _place(event: Event) -> Any:
    return (event.kind, event.relation, repr(_shape(event)), _facts(event))


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
