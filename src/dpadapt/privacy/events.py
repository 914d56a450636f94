"""Frozen records of what a mechanism did to the private rows.

An event states a mathematical fact about one release (or ``count`` releases of the same
kind); :mod:`dpadapt.privacy.composition` turns a list of events into (epsilon, delta). An
event that composition does not know is refused, never guessed.

Each event answers up to three questions, and ``inf`` means "no statement":

``gaussian_mu``
    mu of Gaussian differential privacy, exact for continuous Gaussian noise.
``pure_epsilon``
    an epsilon with delta = 0.
``renyi(orders)``
    the Renyi divergence bound at each order > 1; rho * order for zero-concentrated DP.

:class:`DrawsEvent` alone also states a ``failure``: a probability with which nothing is promised.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from . import _one_draw, _validate

__all__ = [
    "BoundedRangeEvent",
    "DiscreteGaussianEvent",
    "DrawsEvent",
    "Event",
    "GaussianEvent",
    "LaplaceEvent",
    "OneDrawGaussianEvent",
    "ParallelEvent",
    "PoissonGaussianEvent",
    "PureEvent",
    "RandomStoppingEvent",
    "Relation",
    "UpdatesEvent",
    "event_from_dict",
    "printed_draws_epsilon",
]

Relation = Literal["replace-one", "add-remove"]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Event:
    """What one mechanism did; see the subclasses.

    Parameters
    ----------
    label : str
        What was released, in the words of the method ("second moment").
    relation : {"replace-one", "add-remove"}
        Between which samples its sensitivity holds. Relations do not mix.
    """

    kind: ClassVar[str]
    label: str
    relation: Relation = field(default="replace-one", kw_only=True)

    def __post_init__(self) -> None:
        _validate.choice("relation", self.relation, get_args(Relation))

    @property
    def gaussian_mu(self) -> float:
        """Mu of Gaussian differential privacy; inf where none is proved."""
        return math.inf

    @property
    def pure_epsilon(self) -> float:
        """Epsilon at delta = 0; inf where none is proved."""
        return math.inf

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Bound on the Renyi divergence at each order; inf where none is proved."""
        return np.full(orders.shape, math.inf)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; :func:`event_from_dict` is the inverse."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {"kind": self.kind, **{name: _plain(value) for name, value in fields.items()}}


@dataclass(frozen=True, slots=True)
class _NoisyEvent(Event):
    """A statistic of bounded sensitivity plus noise of a fixed scale, ``count`` times."""

    sensitivity: float
    scale: float
    count: int = 1

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


@dataclass(frozen=True, slots=True)
class GaussianEvent(_NoisyEvent):
    """``count`` releases f + N(0, scale^2 I), f of l2-sensitivity ``sensitivity``.

    Exactly mu-GDP with mu = sqrt(count) * sensitivity / scale, also under adaptive composition.

    Examples
    --------
    >>> GaussianEvent("mean", sensitivity=1.0, scale=4.0, count=4).gaussian_mu
    0.5
    """

    kind: ClassVar[str] = "gaussian"

    @property
    def gaussian_mu(self) -> float:
        """Exact mu of all ``count`` releases."""
        return math.sqrt(self.count) * self.ratio

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Order * mu^2 / 2."""
        return orders * (_square(self.gaussian_mu) / 2)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianEvent(_NoisyEvent):
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

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Order * count * ratio^2 / 2."""
        return orders * (self.count * _square(self.ratio) / 2)


@dataclass(frozen=True, slots=True)
class LaplaceEvent(_NoisyEvent):
    """``count`` releases with Laplace noise, f of l1-sensitivity ``sensitivity``.

    Pure epsilon = sensitivity / scale each (discrete or continuous noise).

    Examples
    --------
    >>> LaplaceEvent("count", sensitivity=1.0, scale=2.0).pure_epsilon
    0.5
    """

    kind: ClassVar[str] = "laplace"

    @property
    def pure_epsilon(self) -> float:
        """Count * sensitivity / scale."""
        return self.count * self.ratio

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Renyi bound of a pure mechanism, ``count`` times."""
        return self.count * _renyi_pure(self.ratio, orders)


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
        return self.count * _renyi_pure(self.epsilon, orders)


@dataclass(frozen=True, slots=True)
class BoundedRangeEvent(_NoisyEvent):
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

    @property
    def pure_epsilon(self) -> float:
        """Count * eta."""
        return self.count * self.ratio

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Order * eta^2 / 8, never above the pure bound, ``count`` times."""
        one = np.minimum(orders * (_square(self.ratio) / 8), _renyi_pure(self.ratio, orders))
        return self.count * one


@dataclass(frozen=True, slots=True)
class PoissonGaussianEvent(Event):
    """``count`` noisy sums over a Poisson sample: each record is in with probability ``rate``.

    One record contributes at most ``clip`` in l2 norm; the noise has standard deviation
    ``scale``. Under replace-one the worst pair is (1-q)N(0)+qN(clip) against
    (1-q)N(0)+qN(-clip), which costs more than the add-or-remove pair that accountants
    usually take: the relation is part of the event, and relations do not mix.

    Examples
    --------
    >>> PoissonGaussianEvent("gradient", clip=1.0, scale=2.0, rate=0.01, count=100).relation
    'replace-one'
    """

    clip: float
    scale: float
    rate: float
    count: int = 1
    kind: ClassVar[str] = "poisson-gaussian"

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        _validate.positive("clip", self.clip)
        _validate.positive("scale", self.scale)
        _validate.fraction("rate", self.rate)
        _validate.count("count", self.count)

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Bound without the sampling, which only hides (joint quasi-convexity): not tight."""
        move = self.clip if self.relation == "add-remove" else 2 * self.clip
        return orders * (self.count * _square(move / self.scale) / 2)


@dataclass(frozen=True, slots=True)
class ParallelEvent(Event):
    """Events on disjoint parts of the private rows, split by public indices.

    A neighbour changes one record, hence one part: the cost is that of the worst branch.

    Examples
    --------
    >>> ParallelEvent("parts", branches=((PureEvent("a", 1.0),), (PureEvent("b", 2.0),))).kind
    'parallel'
    """

    branches: tuple[tuple[Event, ...], ...]
    kind: ClassVar[str] = "parallel"

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        if not isinstance(self.branches, tuple) or not self.branches:
            raise ValueError("branches must be a tuple of at least one tuple of events.")
        for branch in self.branches:
            _events("branches", branch)


@dataclass(frozen=True, slots=True)
class RandomStoppingEvent(Event):
    """Best of K runs of one private algorithm, K drawn in secret (Papernot, Steinke 2022).

    K follows the truncated negative binomial with parameters ``shape`` (their eta) and ``gamma``;
    candidates are drawn independently, only the best is published. Their Theorem 2 gives, for
    every order l and every l' > 1,

        renyi(l) + (1 + shape) (1 - 1/l') renyi(l') + (1 + shape) log(1/gamma) / l'
        + log E[K] / (l - 1),

    of which the best l' is taken here; and since a Renyi divergence grows with its order, the
    bound of any higher order holds as well.

    Examples
    --------
    >>> base = (GaussianEvent("run", sensitivity=1.0, scale=5.0),)
    >>> round(RandomStoppingEvent("tuning", base, shape=1.0, gamma=0.1).mean_runs, 6)
    10.0
    """

    base: tuple[Event, ...]
    shape: float
    gamma: float
    kind: ClassVar[str] = "random-stopping"

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        _events("base", self.base)
        _validate.fraction("gamma", self.gamma)
        number = isinstance(self.shape, Real) and not isinstance(self.shape, bool)
        if not number or not -1 < float(self.shape) < math.inf:
            raise ValueError(f"shape must be a finite number above -1; got {self.shape!r}.")

    @property
    def mean_runs(self) -> float:
        """E[K] of the truncated negative binomial."""
        if self.shape == 0:
            return (1 / self.gamma - 1) / -math.log(self.gamma)
        kept = -math.expm1(self.shape * math.log(self.gamma))  # 1 - gamma^shape
        return float(self.shape * (1 - self.gamma) / (self.gamma * kept))

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Theorem 2 of Papernot and Steinke, the best of this and the higher orders."""
        grid = renyi_orders()
        aside = _renyi_sum(self.base, grid) * (1 - 1 / grid) - math.log(self.gamma) / grid
        penalty = (1 + self.shape) * float(np.min(aside))

        def theorem(at: FloatArray) -> FloatArray:
            return _renyi_sum(self.base, at) + penalty + math.log(self.mean_runs) / (at - 1)

        higher = np.append(np.minimum.accumulate(theorem(grid)[::-1])[::-1], math.inf)
        return np.asarray(np.minimum(theorem(orders), higher[np.searchsorted(grid, orders)]))


@dataclass(frozen=True, slots=True)
class UpdatesEvent(_NoisyEvent):
    """Rounds of Laplace noise, as many as are asked for, of which ``count`` change the model.

    A round whose noisy value stays within a threshold tells that alone; the proof is in
    :mod:`.machine_constants`. No statement at delta = 0: any number of rounds may pass.

    Examples
    --------
    >>> event = UpdatesEvent("answers", sensitivity=1.0, scale=100.0, count=10)
    >>> float(event.renyi(np.array([2.0]))[0].round(5))  # about two pure releases a step
    0.00203
    """

    kind: ClassVar[str] = "updates"

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Count * log(1 + (x + y - 1) / (1 - x)) / (alpha - 1), inf where x >= 1."""
        e, a = self.sensitivity / self.scale, orders - 1
        log_x = a * e - math.log1p(math.exp(-e))
        finite = log_x < 0
        half = np.where(finite, a * e / 2, 0.0)
        excess = 2 * np.sinh(half) * (np.sinh(half) + math.tanh(e / 2) * np.cosh(half))
        room = -np.expm1(np.where(finite, log_x, -1.0))
        return np.where(finite, self.count * np.log1p(excess / room) / a, math.inf)


@dataclass(frozen=True, slots=True)
class OneDrawGaussianEvent(Event):
    """``count`` steps: one row drawn by weights, its clipped gradient released with noise.

    No weight is above ``rate`` (q), no gradient longer than ``clip`` (L); the noise is
    N(0, ``scale``^2 I). Weights may depend on earlier releases and, each, on its own row.
    The proofs stand in :mod:`dpadapt.privacy._one_draw`. Replace-one only.

    Examples
    --------
    >>> event = OneDrawGaussianEvent("descent", clip=1.0, scale=4.5, rate=1e-6, count=10**9)
    >>> float(event.renyi(np.array([2.0]))[0]) < 1e-3
    True
    """

    clip: float
    scale: float
    rate: float
    count: int = 1
    kind: ClassVar[str] = "one-draw-gaussian"

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        _needs_replace_one(self)
        _validate.positive("clip", self.clip)
        _validate.positive("scale", self.scale)
        _share("rate", self.rate)
        _validate.count("count", self.count)

    @property
    def strength(self) -> float:
        """M = 2 clip / scale: how far two gradients are apart, in units of the noise."""
        return 2 * self.clip / self.scale

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Upper sums of the dominating pair, ``count`` times."""
        return self.count * _one_draw.renyi(self.strength, self.rate, orders)


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

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        _needs_replace_one(self)
        _validate.non_negative("epsilon", self.epsilon)
        _validate.delta(self.delta, allow_zero=True)
        _validate.count("draws", self.draws)
        _share("rate", self.rate)
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
            return float(np.logaddexp(_log_rest(self.rate), math.log(self.rate) + self.epsilon))
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
    _share("rate", rate)
    if epsilon > 1:
        raise ValueError(
            f"epsilon must be at most 1 for the printed claim, which is false for large ones; got "
            f"{epsilon!r}. DrawsEvent states what holds for every epsilon."
        )
    return 6 * epsilon * draws * rate


def renyi_orders() -> FloatArray:
    """Grid of orders on which Renyi bounds are optimised: 1 + [1e-3, 1e6], log-spaced."""
    return np.asarray(1 + np.logspace(-3, 6, 3601))


def _square(value: float) -> float:
    """Value * value: unlike ``**``, inf rather than an error where it overflows."""
    return value * value


def _share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1; got {value!r}.")


def _needs_replace_one(event: Event) -> None:
    if event.relation != "replace-one":
        raise ValueError(f"relation must be 'replace-one' for events of kind {event.kind!r}.")


def _log_rest(rate: float) -> float:
    return math.log1p(-rate) if rate < 1 else -math.inf


def _events(name: str, value: Any) -> None:
    if not isinstance(value, tuple) or not all(isinstance(item, Event) for item in value):
        raise ValueError(f"{name} must hold events in a tuple; got {value!r}.")


def _renyi_sum(events: tuple[Event, ...], orders: FloatArray) -> FloatArray:
    total: FloatArray = np.zeros(orders.shape)
    for event in events:
        total = total + event.renyi(orders)
    return total


def _renyi_pure(epsilon: float, orders: FloatArray) -> FloatArray:
    """Renyi divergence of binary randomised response, the worst epsilon-DP mechanism.

    D_a = log( sinh(a e) - sinh((a-1) e) over sinh(e) ) / (a-1), always at most a e^2 / 2 and e;
    the closed form loses digits for small a * e, where the first bound is as good.
    """
    bound = np.minimum(orders * (_square(epsilon) / 2), epsilon)
    if epsilon < 1e-3:
        return bound
    a = orders
    # log of (e^{ae} p' + e^{-(a-1)e}...) written with the two atoms p = e^eps/(1+e^eps), 1-p
    log_p, log_q = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    first = a * log_p + (1 - a) * log_q
    second = a * log_q + (1 - a) * log_p
    return np.minimum(bound, np.logaddexp(first, second) / (a - 1))


_KINDS: dict[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        GaussianEvent,
        DiscreteGaussianEvent,
        LaplaceEvent,
        PureEvent,
        BoundedRangeEvent,
        PoissonGaussianEvent,
        ParallelEvent,
        RandomStoppingEvent,
        UpdatesEvent,
        OneDrawGaussianEvent,
        DrawsEvent,
    )
}


def event_from_dict(data: dict[str, Any]) -> Event:
    """Rebuild an event from :meth:`Event.to_dict`.

    Examples
    --------
    >>> event = GaussianEvent("mean", 1.0, 2.0)
    >>> event_from_dict(event.to_dict()) == event
    True
    """
    kind = data.get("kind")
    if kind not in _KINDS:
        raise ValueError(f"unknown kind of event {kind!r}; was it written by a newer version?")
    return _KINDS[kind](**{k: _revive(k, v) for k, v in data.items() if k != "kind"})


def _plain(value: Any) -> Any:
    if isinstance(value, Event):
        return value.to_dict()
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _revive(name: str, value: Any) -> Any:
    if name == "base":
        return tuple(event_from_dict(item) for item in value)
    if name == "branches":
        return tuple(tuple(event_from_dict(item) for item in branch) for branch in value)
    return value
