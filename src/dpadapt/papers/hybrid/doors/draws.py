"""Rows drawn by bounded weights, with replacement, and a private learner on a sample of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpadapt import _validate
from dpadapt._types import FloatArray, IntArray
from dpadapt.privacy.accounting.events import Addition, Event, PureEvent, Relation
from dpadapt.privacy.core.errors import PrivacyError
from dpadapt.privacy.core.hidden import Hidden, Opaque
from dpadapt.privacy.core.mechanism import OwnEpsilon
from dpadapt.privacy.core.noise import NoiseSource, SecureNoise, _ContinuousNoise
from dpadapt.privacy.core.quiet import quiet
from dpadapt.privacy.core.sample import Progress
from dpadapt.privacy.rows.sources import RowSource

from .loans import Loan
from .weighted import cap_of
from .weights import RowWeights, draw_rate, mass_of, projected


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
            from ._alias import DrawTable

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
