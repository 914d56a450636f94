"""Rows drawn by bounded weights, with replacement, and lent to a private learner for one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from dpadapt import _validate
from dpadapt._types import FloatArray, IntArray
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.accounting.events import Addition, Event, PureEvent, Relation
from dpadapt.privacy.core.hidden import Hidden, Opaque
from dpadapt.privacy.core.mechanism import OwnEpsilon
from dpadapt.privacy.core.noise import NoiseSource, SecureNoise, _ContinuousNoise
from dpadapt.privacy.core.sample import Progress
from dpadapt.privacy.rows.errors import LET_THROUGH, PrivacyError, kind_of
from dpadapt.privacy.rows.quiet import quiet
from dpadapt.privacy.rows.sources import Block, RowSource

from .weights import RowWeights, cap_of, draw_rate, mass_of, projected

if TYPE_CHECKING:
    from dpadapt.privacy.core.private import Private

_Model = TypeVar("_Model")
_OVER = "the drawn rows were lent to a learner for one call, which is over."


class Loan:
    """A sample of private rows that can be read, and charged for, during one call only.

    After the call its views, its sessions and its statistics are of no more use: what the learner
    has spent is then known for good, and must fit into what it was allowed.

    Parameters
    ----------
    drawn : RowSource
        The sample.

    Examples
    --------
    >>> from dpadapt.privacy.rows.sources import MemoryRows
    >>> with Loan(MemoryRows([[1.0], [2.0]], None)) as sample:
    ...     sample
    Private(2 rows, 1 column, unlabelled)
    """

    def __init__(self, drawn: RowSource) -> None:
        self._held = [drawn]
        self._charges = _Charges()

    def __enter__(self) -> Private:
        from dpadapt.privacy.core.private import Private

        return Private._of(_RevocableRows(self._held, None), self._charges)

    def __exit__(self, *_: object) -> None:
        self._held.clear()
        self._charges.closed = True

    def run(
        self, learner: Callable[[Private], _Model], sample: Private, epsilon: float, delta: float
    ) -> _Model:
        """What the learner makes of the sample, if it kept to (epsilon, delta)."""
        failure = None
        try:
            model = learner(sample)
        except LET_THROUGH:
            raise
        except BaseException as error:
            failure = PrivacyError(
                f"the learner failed{kind_of(error)}; the reason is withheld, because it may "
                "depend on private values. Its share of the budget is spent."
            )
        self._check(epsilon, delta)  # first: whether a learner that overspent failed is a secret
        if failure is not None:  # out here, so that it does not carry the first error along
            raise failure
        return model

    def _check(self, epsilon: float, delta: float) -> None:
        events = [event for session in self._charges for event in session]
        if any(event.relation != "replace-one" for event in events):
            raise PrivacyError("the learner must use relation='replace-one', as its session does.")
        if events and compose_epsilon(events, delta) > epsilon * (1 + 1e-9):
            raise PrivacyError(
                f"the learner spent more on its sample than epsilon {epsilon:.6g} at delta "
                f"{delta:.6g}; what it returned is withheld."
            )


class _Charges(list[tuple[Event, ...]]):
    """Charges on the sample, until the loan is over."""

    closed = False

    def append(self, events: tuple[Event, ...]) -> None:
        if self.closed:
            raise PrivacyError(_OVER)
        super().append(events)


class _RevocableRows(RowSource):
    """Rows that are gone when the loan is over, for all views on them alike."""

    def __init__(self, held: list[RowSource], classes: Any) -> None:
        self._held, self._classes = held, classes
        rows = held[0]
        self.n_rows, self.columns = rows.n_rows, rows.columns
        self.n_columns, self.labelled = rows.n_columns, rows.labelled
        self.keeping = rows.keeping

    def _rows(self) -> RowSource:
        if not self._held:
            raise PrivacyError(_OVER)
        return self._held[0] if self._classes is None else self._held[0].coded(self._classes)

    def blocks(self) -> Iterator[Block]:
        return self._rows().blocks()

    def long_blocks(self) -> Iterator[Block]:
        return self._rows().long_blocks()

    def labels(self) -> FloatArray:
        return self._rows().labels()

    def take(self, places: IntArray) -> Block:
        return self._rows().take(places)

    def sampled(self, places: IntArray) -> RowSource:
        return self._rows().sampled(places)

    def coded(self, classes: Any) -> _RevocableRows:
        self._rows()
        return _RevocableRows(self._held, classes)


@dataclass(frozen=True, slots=True)
class DrawsEvent(Event):
    """``count`` runs of an (epsilon, delta)-DP learner, each on ``draws`` rows drawn by weights.

    Rows are drawn independently, with replacement; no weight is above ``rate`` (b). Weights of
    neighbours overlap in 1 - b, so one draw is from (1-b) A + b B or from (1-b) A + b B'.
    Exchange the m draws one after another. One exchange costs, by advanced joint convexity,
    e_1 = ln(1 + b (e^epsilon - 1)) and b delta; the chain of m costs

        epsilon* = m e_1,   delta* = b delta (1 + e^{e_1} + ... + e^{(m-1) e_1}).

    An (epsilon*, delta*)-DP run is dominated by one that betrays everything with probability
    delta* and is epsilon*-DP otherwise (Kairouz, Oh, Viswanath 2015): composition adds up the
    former (``failure``) and treats the rest as pure releases (``without_failure``).

    Examples
    --------
    >>> event = DrawsEvent("learner", epsilon=1.0, delta=1e-8, draws=100, rate=1e-5, count=5)
    >>> round(event.run_epsilon, 6), f"{event.failure:.2g}"
    (0.001718, '5e-11')
    """

    epsilon: float
    delta: float
    draws: int
    rate: float
    count: int = 1
    kind: ClassVar[str] = "draws"
    relations: ClassVar[tuple[str, ...]] = ("replace-one",)
    adds: ClassVar[Addition | None] = "laws"
    worse: ClassVar[tuple[str, ...]] = ("epsilon", "delta", "draws", "rate")
    most: ClassVar[int] = 16

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        _validate.non_negative("epsilon", self.epsilon)
        _validate.delta(self.delta, allow_zero=True)
        _validate.count("draws", self.draws)
        _validate.share("rate", self.rate)
        _validate.count("count", self.count)

    @property
    def run_epsilon(self) -> float:
        """Epsilon* of one run."""
        return self.draws * self._draw_epsilon

    @property
    def run_delta(self) -> float:
        """Delta* of one run, at most 1."""
        one, total = self._draw_epsilon, self.run_epsilon
        if self.delta == 0:
            return 0.0
        if total > 700:
            return 1.0
        terms = math.expm1(total) / math.expm1(one) if one > 0 else float(self.draws)
        return min(1.0, self.rate * self.delta * terms)

    @property
    def _draw_epsilon(self) -> float:
        if self.epsilon > 30:  # e^epsilon may be no float
            rest = math.log1p(-self.rate) if self.rate < 1 else -math.inf
            return float(np.logaddexp(rest, math.log(self.rate) + self.epsilon))
        return math.log1p(self.rate * math.expm1(self.epsilon))

    @property
    def failure(self) -> float:
        """1 - (1 - delta*)^count: probability with which some run promises nothing."""
        one = self.run_delta
        return 1.0 if one == 1 else -math.expm1(self.count * math.log1p(-one))

    @property
    def without_failure(self) -> PureEvent:
        """What the runs cost where none fails."""
        return PureEvent(self.label, self.run_epsilon, self.count)

    @property
    def pure_epsilon(self) -> float:
        """Count * epsilon* for a learner with delta = 0."""
        return self.count * self.run_epsilon if self.failure == 0 else math.inf

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Renyi bound of the pure runs; inf where they can fail."""
        if self.failure > 0:
            return np.full(orders.shape, math.inf)
        return self.without_failure.renyi(orders)

    def law(self) -> tuple[Event, int]:
        """One run."""
        return replace(self, label="", count=1), self.count


def printed_draws_epsilon(epsilon: float, draws: int, rate: float) -> float:
    """6 epsilon m b, what paper 003 states for a learner on m draws (Claim 4.1).

    Erratum: it is false for large epsilon. A learner that counts how often a row was drawn loses
    m b (e^epsilon - 1) for small m b, which passes 6 epsilon m b from epsilon 2.9 on. The claim
    is used at epsilon = 1 in the paper and refused above it here. It is never below
    ``DrawsEvent.run_epsilon``, which holds for every epsilon.

    Examples
    --------
    >>> round(printed_draws_epsilon(1.0, draws=100, rate=1e-4), 4)
    0.06
    >>> round(DrawsEvent("learner", 1.0, 0.0, draws=100, rate=1e-4).run_epsilon, 4)
    0.0172
    """
    _validate.positive("epsilon", epsilon)
    _validate.count("draws", draws)
    _validate.share("rate", rate)
    if epsilon > 1:
        raise ValueError(
            f"epsilon must be at most 1 for the printed claim, which is false for large ones; got "
            f"{epsilon!r}. DrawsEvent states what holds for every epsilon."
        )
    return 6 * epsilon * draws * rate


class Drawn(Opaque):
    """Rows that can be drawn from weights of a density."""

    def __init__(self, weights: RowWeights, density: float) -> None:
        sample = weights._owner._part(weights.part)
        self.rate = draw_rate(density, sample.n_rows)
        self.weights, self.density, self._sample = weights, density, sample

    @property
    def rows(self) -> RowSource:
        """The rows that are drawn from."""
        return self._sample.rows

    @property
    def progress(self) -> Progress | None:
        """Whom to tell how many are done."""
        return self._sample.progress

    @property
    def chances(self) -> FloatArray:
        """Probabilities of the rows: for recordings of made-up rows alone."""
        log = self.weights._log
        cap = cap_of(self.weights, self.density)
        return projected(log, cap) / mass_of(self.density, len(log))

    def places(self, source: NoiseSource) -> Callable[[int], IntArray]:
        """Return a function that draws the places of so many rows."""
        weights, density = self.weights, self.density
        if weights._draws is None or weights._draws[0] != density:
            from ._compiled import DrawTable

            weights._draws = None  # so that there are never two tables
            with quiet():
                table = DrawTable(weights._log, cap_of(weights, density), density)
            weights._draws = (density, table)
        table = weights._draws[1]
        own = source if isinstance(source, _ContinuousNoise) else SecureNoise()
        return lambda size: table.draw(own._generator(), size)


def draws(weights: RowWeights, density: float) -> Hidden:
    """Hide rows that are drawn from the projected weights, for a mechanism that draws them.

    Parameters
    ----------
    weights : RowWeights
        Of all rows.
    density : float
        kappa; public.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> from dpadapt.papers.hybrid.doors.weights import RowWeights
    >>> with Private([[0.0]] * 5).open(epsilon=1.0, delta=1e-6) as session:
    ...     draws(RowWeights(session), density=0.5)
    Hidden('drawn rows', shape=())
    """
    if not isinstance(weights, RowWeights):
        raise PrivacyError("rows are drawn from weights: RowWeights(session).")
    if weights.part != "all":
        raise PrivacyError("rows are drawn from all rows, not from a part of a split.")
    drawn = Drawn(weights, density)
    return Hidden(drawn, "drawn rows", float("inf"), weights.part, weights._owner)


def check_drawn(relation: Relation) -> None:
    """Refuse add-remove: it changes every place."""
    if relation != "replace-one":
        raise PrivacyError(
            "a draw from weights depends on the number of rows, a secret under "
            "relation='add-remove'; use relation='replace-one'."
        )


def check_rate(hidden: Hidden, rate: float) -> None:
    """Refuse what is not drawn, or from weights that are less dense than was planned."""
    if not isinstance(hidden._value, Drawn):
        raise PrivacyError("needs rows that are drawn: draws(weights, density).")
    if hidden._value.rate > rate:
        raise PrivacyError("the weights are less dense than the grant allows.")


@dataclass(frozen=True)
class LearnOnDraws(OwnEpsilon):
    """A private learner on rows drawn from weights, with replacement.

    Takes the hidden :func:`draws`, ``size=`` (how many rows are drawn) and ``learner=``, from a
    :class:`Private` of the drawn rows to anything. The learner may spend the grant's ``epsilon``
    and ``delta`` on the sample, under replace-one *of the drawn rows*: a row that was drawn twice
    is two of them, and the amplification counts one draw at a time. What it spent is checked
    afterwards, from the charges on the sample; the sample is then closed.

    Parameters
    ----------
    draws : int
        How many rows are drawn, at most.
    rate : float
        :func:`.weights.draw_rate`, the most that one row can change a draw.
    delta : float
        The learner's own delta.

    Examples
    --------
    >>> LearnOnDraws("learner", draws=10, rate=0.01).delta
    0.0
    """

    draws: int = 1
    rate: float = 1.0
    delta: float = 0.0
    norm: ClassVar[str] = "draw"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.count("draws", self.draws)
        _validate.delta(self.delta, allow_zero=True)

    def check(self, relation: Relation, source: NoiseSource) -> None:
        """Refuse add-remove."""
        check_drawn(relation)

    def event(self, scale: float, source: NoiseSource) -> Event:
        """All runs together."""
        return DrawsEvent(self.label, 1 / scale, self.delta, self.draws, self.rate, self.count)

    def admit(self, hidden: Hidden, *, size: int, **_: Any) -> float:  # type: ignore[override]
        """One run on as many draws as were planned."""
        check_rate(hidden, self.rate)
        if _validate.count("size", size) > self.draws:
            raise PrivacyError(f"{self.label!r} was planned with {self.draws} draws; got {size}.")
        return 1

    def release(
        self,
        hidden: Hidden,
        scale: float,
        source: NoiseSource,
        *,
        size: int = 1,
        learner: Any = None,
        **_: Any,
    ) -> Any:
        """What the learner makes of the draws."""
        drawn = hidden._value
        loan = Loan(drawn.rows.sampled(drawn.places(source)(size)))
        with loan as sample:
            return loan.run(learner, sample, 1 / scale, self.delta)
