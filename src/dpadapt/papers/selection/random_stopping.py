"""The best of a secret, random number of runs: the event, its proof, and the law of the number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np

from dpadapt import _validate
from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.events import Addition, Event, Relation, check_events
from dpadapt.privacy.accounting.renyi import renyi_orders, renyi_sum
from dpadapt.privacy.core.doors import check_door
from dpadapt.privacy.core.hidden import Hidden
from dpadapt.privacy.core.mechanism import Mechanism, Noise
from dpadapt.privacy.core.noise import NoiseSource
from dpadapt.privacy.rows.errors import PrivacyError


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
    >>> from dpadapt.privacy.accounting.events import GaussianEvent
    >>> base = (GaussianEvent("run", sensitivity=1.0, scale=5.0),)
    >>> round(RandomStoppingEvent("tuning", base, shape=1.0, gamma=0.1).mean_runs, 6)
    10.0
    """

    base: tuple[Event, ...]
    shape: float
    gamma: float
    kind: ClassVar[str] = "random-stopping"
    adds: ClassVar[Addition | None] = "orders"

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        check_events("base", self.base)
        _validate.fraction("gamma", self.gamma)
        number = isinstance(self.shape, Real) and not isinstance(self.shape, bool)
        if not number or not -1 < float(self.shape) < math.inf:
            raise ValueError(f"shape must be a finite number above -1; got {self.shape!r}.")

    def under(self, relation: Relation) -> Self:
        """Return the same event, its runs too, for samples that are related in this way."""
        base = tuple(event.under(relation) for event in self.base)
        return replace(self, base=base, relation=relation)

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
        aside = renyi_sum(self.base, grid) * (1 - 1 / grid) - math.log(self.gamma) / grid
        penalty = (1 + self.shape) * float(np.min(aside))

        def theorem(at: FloatArray) -> FloatArray:
            return renyi_sum(self.base, at) + penalty + math.log(self.mean_runs) / (at - 1)

        higher = np.append(np.minimum.accumulate(theorem(grid)[::-1])[::-1], math.inf)
        return np.asarray(np.minimum(theorem(orders), higher[np.searchsorted(grid, orders)]))

    @property
    def inner(self) -> tuple[Event, ...]:
        """What one run costs."""
        return self.base

    def nameless(self) -> RandomStoppingEvent:
        """The same without the words in it."""
        return replace(self, label="", base=tuple(event.nameless() for event in self.base))


@dataclass(frozen=True)
class RandomStopping(Mechanism):
    """Runs of the same mechanisms, as many as chance decides; their number is a secret.

    What is handed out is not a grant but one set of grants for each run, by name.

    Parameters
    ----------
    runs : tuple of (name, mechanism)
        What one run releases.
    shape, gamma : float
        Of the truncated negative binomial law of their number.

    Examples
    --------
    >>> RandomStopping((), 0.0, 0.1).secret_course
    True
    """

    runs: tuple[tuple[str, Noise], ...]
    shape: float
    gamma: float
    label: str = "best of random runs"

    secret_course: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", tuple((name, one) for name, one in self.runs))

    def check(self, relation: Relation, source: NoiseSource) -> None:
        """What is refused in a plan is refused in a run."""
        for _, mechanism in self.runs:
            check_door(mechanism)
            if not isinstance(mechanism, Noise):
                raise PrivacyError(f"a run is made of single releases, not of {mechanism.label!r}.")
            mechanism.check(relation, source)

    def scale_at(self, multiplier: float) -> float:
        """The multiplier itself: each mechanism makes its own scale of it."""
        return multiplier

    def events(self, scale: float, source: NoiseSource) -> tuple[Event, ...]:
        """One event, of all runs together."""
        base = tuple(m.event(m.scale_at(scale), source) for _, m in self.runs)
        return (RandomStoppingEvent(self.label, base, self.shape, self.gamma),)

    def grants(self, make: Any, noise: float, source: NoiseSource) -> Iterator[SimpleNamespace]:
        """One set of grants for each run."""
        runs = random_runs(float(source.uniform(1)[0]), self.shape, self.gamma)
        return (
            SimpleNamespace(**{name: make(m, m.scale_at(noise)) for name, m in self.runs})
            for _ in range(runs)
        )

    def admit(self, hidden: Hidden, **_: Any) -> float:
        """Refuse: its runs have grants of their own."""
        raise PrivacyError("random stopping is released by its runs.")

    def release(self, hidden: Hidden, scale: float, source: NoiseSource, **_: Any) -> Any:
        """Refuse."""
        raise PrivacyError("random stopping is released by its runs.")


def random_runs(uniform: float, shape: float, gamma: float) -> int:
    """Number of runs at a quantile of the truncated negative binomial law, 1 or more.

    P(K = k) is proportional to (1 - gamma)^k times the product over l < k of (l + shape) / (l + 1).

    Examples
    --------
    >>> random_runs(0.0, shape=0.0, gamma=0.1), random_runs(0.999, shape=1.0, gamma=0.1)
    (1, 66)
    """
    if shape == 0:
        mass = (1 - gamma) / np.log(1 / gamma)
    else:
        mass = shape * (1 - gamma) * gamma**shape / (1 - gamma**shape)
    k, below = 1, float(mass)
    while below < uniform and mass > 1e-18:
        mass *= (1 - gamma) * (k + shape) / (k + 1)
        below += float(mass)
        k += 1
    return k
