"""Frozen records of what a mechanism did to the private rows, and what follows from each.

An event states a mathematical fact about one release (or ``count`` of the same kind), and answers
whatever composition, calibration, ledgers and reports ask; those know no event by name. Silence is
safe: :class:`Event` itself states nothing, and what states nothing costs everything.

A class of events registers itself, if it stands in :mod:`dpadapt.privacy`, or is known by its name
(:mod:`.reviewed`). One from elsewhere, or a subclass that answers differently, states nothing,
whatever it says: answers are part of the proof. Here are the basic ones; others stand with their
mechanism.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field, replace
from itertools import chain
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from dpadapt._lazy import named
from dpadapt._types import FloatArray

from ... import _validate
from .pld import PrivacyLoss, RandomisedResponseLoss, WorstLoss
from .renyi import renyi_pure, renyi_sum, square
from .reviewed import EVENTS

Relation = Literal["replace-one", "add-remove", "replace-unit"]  # unit: a person's rows together
# in a ledger: ratios add up in squares, equal laws are counted, Renyi divergences and probabilities
# of failure add up, the branches of a split are looked at
Addition = Literal["squares", "laws", "orders", "failures", "branches"]
_KINDS: dict[str, type[Event]] = {}


@dataclass(frozen=True, slots=True)
class Event:
    """What one mechanism did; see the subclasses.

    Parameters
    ----------
    label : str
        What was released, in the words of the method ("second moment").
    relation : {"replace-one", "add-remove", "replace-unit"}
        Between which samples its sensitivity holds. Relations do not mix.
    """

    kind: ClassVar[str] = ""
    relations: ClassVar[tuple[str, ...]] = get_args(Relation)  # for which it is proved
    adds: ClassVar[Addition | None] = None  # None: refused by ledgers
    worse: ClassVar[tuple[str, ...]] = ()  # facts a law costs more with; with ``scale`` less
    most: ClassVar[int] = 0  # different laws that a ledger keeps apart
    label: str
    relation: Relation = field(default="replace-one", kw_only=True)

    def __init_subclass__(cls) -> None:
        kind, ours = vars(cls).get("kind"), cls.__module__.startswith("dpadapt.privacy.")
        if kind in EVENTS:
            if f"{cls.__module__}.{cls.__qualname__}" != f"dpadapt.{EVENTS[kind]}":
                raise TypeError(f"the kind of event {kind!r} is taken by {EVENTS[kind]}.")
            return
        if kind in _KINDS:
            raise TypeError(f"the kind of event {kind!r} is taken by {_KINDS[kind].__qualname__}.")
        if kind and ours and "__slots__" in vars(cls):  # made twice: first without, then with slots
            _KINDS[kind] = cls

    def __post_init__(self) -> None:
        _validate.plain_numbers(self)  # a count of few bits would wrap around
        _validate.choice("relation", self.relation, self.relations)

    @property
    def gaussian_mu(self) -> float:
        """Mu of Gaussian differential privacy, exact; inf where none is proved."""
        return math.inf

    @property
    def pure_epsilon(self) -> float:
        """Epsilon at delta = 0; inf where none is proved."""
        return math.inf

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Bound on the Renyi divergence at each order above 1; inf where none is proved."""
        return np.full(orders.shape, math.inf)

    def under(self, relation: Relation) -> Self:
        """Return the same event for samples that are related in this way."""
        return replace(self, relation=relation)

    @property
    def loss(self) -> tuple[PrivacyLoss, int] | None:
        """Privacy loss of one release, and how many there are; None where none is proved."""
        return None

    @property
    def failure(self) -> float:
        """Probability with which nothing is promised."""
        return 0.0

    @property
    def without_failure(self) -> Event:
        """What it costs where it does not fail."""
        return self

    @property
    def ways(self) -> tuple[tuple[Event, ...], ...]:
        """Events of which a changed record meets one list only; none for a single release."""
        return ()

    @property
    def inner(self) -> tuple[Event, ...] | None:
        """Events that this one is made of, whose relation is its own; None for a release."""
        return tuple(chain.from_iterable(self.ways)) if self.ways else None

    @property
    def mean_runs(self) -> float | None:
        """How often, on average, what is inside was run in secret; None for once."""
        return None

    def law(self) -> tuple[Event, int]:
        """One release, in units in which equal laws are equal; and how many there are."""
        return self.nameless(), 1

    def nameless(self) -> Event:
        """The same without the words in it."""
        return replace(self, label="")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; :func:`event_from_dict` is the inverse."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {"kind": self.kind, **{name: _plain(value) for name, value in fields.items()}}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """From :meth:`to_dict` of this kind."""
        return cls(**{name: _revive(value) for name, value in data.items() if name != "kind"})


@dataclass(frozen=True, slots=True)
class NoisyEvent(Event):
    """A statistic of bounded sensitivity plus noise of a fixed scale, ``count`` times."""

    sensitivity: float
    scale: float
    count: int = 1
    worse: ClassVar[tuple[str, ...]] = ("sensitivity",)

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        _validate.non_negative("sensitivity", self.sensitivity)
        _validate.positive("scale", self.scale)
        _validate.count("count", self.count)

    @property
    def ratio(self) -> float:
        """Sensitivity over noise scale of one release."""
        return self.sensitivity / self.scale

    @property
    def pure_epsilon(self) -> float:
        """Zero for a statistic that no record can change; inf otherwise."""
        return 0.0 if self.ratio == 0 else math.inf

    def law(self) -> tuple[Event, int]:
        """One release, in units of the noise."""
        return replace(self, label="", sensitivity=self.ratio, scale=1.0, count=1), self.count


@dataclass(frozen=True, slots=True)
class GaussianEvent(NoisyEvent):
    """``count`` releases f + N(0, scale^2 I), f of l2-sensitivity ``sensitivity``.

    Exactly mu-GDP with mu = sqrt(count) * sensitivity / scale, also under adaptive composition.

    Examples
    --------
    >>> GaussianEvent("mean", sensitivity=1.0, scale=4.0, count=4).gaussian_mu
    0.5
    """

    kind: ClassVar[str] = "gaussian"
    adds: ClassVar[Addition | None] = "squares"

    @property
    def gaussian_mu(self) -> float:
        """Exact mu of all ``count`` releases."""
        return math.sqrt(self.count) * self.ratio

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Order * mu^2 / 2."""
        return orders * (square(self.gaussian_mu) / 2)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianEvent(NoisyEvent):
    """``count`` releases with discrete Gaussian noise on a grid.

    ``sensitivity`` must already hold what rounding to the grid adds (grid * sqrt(dimension)).
    Accounted by rho = ratio^2 / 2 zCDP, the statement proved in any dimension (Canonne, Kamath,
    Steinke 2020); the discrete Gaussian is *not* mu-GDP.

    Examples
    --------
    >>> DiscreteGaussianEvent("mean", sensitivity=1.0, scale=4.0).gaussian_mu
    inf
    """

    kind: ClassVar[str] = "discrete-gaussian"
    adds: ClassVar[Addition | None] = "squares"

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Order * count * ratio^2 / 2."""
        return orders * (self.count * square(self.ratio) / 2)


@dataclass(frozen=True, slots=True)
class _PureNoise(NoisyEvent):
    """Noise with which one release is (sensitivity / scale)-DP."""

    adds: ClassVar[Addition | None] = "laws"

    @property
    def pure_epsilon(self) -> float:
        """Count * sensitivity / scale."""
        return self.count * self.ratio

    @property
    def loss(self) -> tuple[PrivacyLoss, int]:
        """That of any pure release; not tight."""
        return RandomisedResponseLoss(self.ratio), self.count


@dataclass(frozen=True, slots=True)
class LaplaceEvent(_PureNoise):
    """``count`` releases with Laplace noise, f of l1-sensitivity ``sensitivity``.

    Pure epsilon = sensitivity / scale each (discrete or continuous noise).

    Examples
    --------
    >>> LaplaceEvent("count", sensitivity=1.0, scale=2.0).pure_epsilon
    0.5
    """

    kind: ClassVar[str] = "laplace"

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Renyi bound of a pure mechanism, ``count`` times."""
        return self.count * renyi_pure(self.ratio, orders)

    def law(self) -> tuple[Event, int]:
        """What any pure release states."""
        return PureEvent("", self.ratio, relation=self.relation), self.count


@dataclass(frozen=True, slots=True)
class PureEvent(Event):
    """``count`` releases of any epsilon-DP mechanism (randomised response, for one).

    Examples
    --------
    >>> PureEvent("answer", epsilon=0.5, count=3).pure_epsilon
    1.5
    """

    epsilon: float
    count: int = 1
    kind: ClassVar[str] = "pure"
    adds: ClassVar[Addition | None] = "laws"
    worse: ClassVar[tuple[str, ...]] = ("epsilon",)
    most: ClassVar[int] = 24

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        _validate.non_negative("epsilon", self.epsilon)
        _validate.count("count", self.count)

    @property
    def pure_epsilon(self) -> float:
        """Count * epsilon."""
        return self.count * self.epsilon

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Renyi bound of a pure mechanism, ``count`` times."""
        return self.count * renyi_pure(self.epsilon, orders)

    @property
    def loss(self) -> tuple[PrivacyLoss, int]:
        """The worst that is epsilon-DP."""
        return RandomisedResponseLoss(self.epsilon), self.count

    def law(self) -> tuple[Event, int]:
        """One release."""
        return replace(self, label="", count=1), self.count


@dataclass(frozen=True, slots=True)
class BoundedRangeEvent(_PureNoise):
    """``count`` exponential-mechanism selections, P(i) proportional to exp(-score_i / scale).

    ``sensitivity`` is the *range* sensitivity of the scores: the largest change of a difference
    score_i - score_j between neighbours. With eta = sensitivity / scale the log-ratio of the
    outcome probabilities has range eta, so one selection is eta-DP and eta^2/8-zCDP (Hoeffding).

    Examples
    --------
    >>> event = BoundedRangeEvent("choice", sensitivity=1.0, scale=2.0)
    >>> float(event.renyi(np.array([2.0]))[0]) == 2 * 0.5**2 / 8
    True
    """

    kind: ClassVar[str] = "bounded-range"
    most: ClassVar[int] = 16

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Order * eta^2 / 8, never above the pure bound, ``count`` times."""
        one = np.minimum(orders * (square(self.ratio) / 8), renyi_pure(self.ratio, orders))
        return self.count * one


@dataclass(frozen=True, slots=True)
class ParallelEvent(Event):
    """Events on disjoint parts of the private rows, split by public indices; ``count`` such splits.

    A neighbour changes one record, hence one part of each split: the cost is that of the worst
    branch. What is answered here holds whichever branch is met: each answer is the largest of the
    branches', order by order (Renyi) or threshold by threshold (:class:`~.pld.WorstLoss`). Those of
    several splits add up as they do for any release, without a list of who meets what.

    Examples
    --------
    >>> split = ParallelEvent("parts", branches=((PureEvent("a", 1.0),), (PureEvent("b", 2.0),)))
    >>> split.kind, split.pure_epsilon
    ('parallel', 2.0)
    """

    branches: tuple[tuple[Event, ...], ...]
    count: int = 1
    kind: ClassVar[str] = "parallel"
    adds: ClassVar[Addition | None] = "branches"

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        if not isinstance(self.branches, tuple) or not self.branches:
            raise ValueError("branches must be a tuple of at least one tuple of events.")
        for branch in self.branches:
            check_events("branches", branch)
        _validate.count("count", self.count)

    @property
    def ways(self) -> tuple[tuple[Event, ...], ...]:
        """The branches."""
        return self.branches

    @property
    def gaussian_mu(self) -> float:
        """The largest of a branch: of two Gaussian releases the noisier is the other, noised."""
        worst = max(math.hypot(*(e.gaussian_mu for e in branch)) for branch in self.branches)
        return math.sqrt(self.count) * worst

    @property
    def pure_epsilon(self) -> float:
        """The largest of a branch."""
        worst = max(math.fsum(event.pure_epsilon for event in branch) for branch in self.branches)
        return self.count * worst

    def renyi(self, orders: FloatArray) -> FloatArray:
        """The largest of a branch, at each order."""
        each = [renyi_sum(branch, orders) for branch in self.branches]
        return np.asarray(self.count * np.max(each, axis=0))

    @property
    def loss(self) -> tuple[PrivacyLoss, int] | None:
        """The smallest that is no better than any branch; None where one branch has none."""
        worst = WorstLoss.of(self.branches)
        return None if worst is None else (worst, self.count)

    @property
    def failure(self) -> float:
        """The largest of a branch."""
        worst = max(math.fsum(event.failure for event in branch) for branch in self.branches)
        return min(1.0, self.count * worst)

    @property
    def without_failure(self) -> ParallelEvent:
        """What the branches cost where they do not fail."""
        ways = tuple(tuple(event.without_failure for event in b) for b in self.branches)
        return replace(self, branches=ways)

    def law(self) -> tuple[Event, int]:
        """One split."""
        return replace(self.nameless(), count=1), self.count

    def nameless(self) -> ParallelEvent:
        """The same without the words in it."""
        ways = tuple(tuple(event.nameless() for event in branch) for branch in self.branches)
        return replace(self, label="", branches=ways)


def check_events(name: str, value: Any) -> None:
    """Refuse what is no tuple of events."""
    if not isinstance(value, tuple) or not all(isinstance(item, Event) for item in value):
        raise ValueError(f"{name} must hold events in a tuple; got {value!r}.")


def is_known(event: Event) -> bool:
    """Whether an event and all that it holds answer as they were reviewed, in this package."""
    own = _kind(type(event).kind) is type(event)
    return own and all(map(is_known, event.inner or ()))


def event_from_dict(data: dict[str, Any]) -> Event:
    """Rebuild an event from :meth:`Event.to_dict`.

    Examples
    --------
    >>> event = GaussianEvent("mean", 1.0, 2.0)
    >>> event_from_dict(event.to_dict()) == event
    True
    """
    kind = data.get("kind")
    if (own := _kind(kind)) is None:
        raise ValueError(f"unknown kind of event {kind!r}; was it written by a newer version?")
    return own.from_dict(data)


def _kind(kind: Any) -> type[Event] | None:
    """The one class of a kind; one that stands elsewhere is imported only now."""
    if kind not in EVENTS:
        return _KINDS.get(kind)
    found: type[Event] = named(f"dpadapt.{EVENTS[kind]}")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Event):
        return value.to_dict()
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _revive(value: Any) -> Any:
    if isinstance(value, dict):
        return event_from_dict(value)
    return tuple(map(_revive, value)) if isinstance(value, list) else value
