"""What comes out: a mechanism has an event, a sampler and the proof that they belong together.

Mechanisms stand in :mod:`dpadapt.privacy.mechanisms`, one idea a file, and nowhere else: a session
plans with no others. A method can add a statistic, never a door.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np

from dpadapt._types import FloatArray

from ... import _validate
from ..accounting.events import Event, Relation
from ..rows.errors import PrivacyError
from .hidden import Hidden, Part
from .noise import NoiseSource


class Mechanism(ABC):
    """What a session needs to know of whatever it releases.

    Attributes
    ----------
    label : str
        What it is, for the event log.
    part : {"all", "train", "holdout"}
        Of which rows.
    count : float
        How much may be released: releases, as a rule.
    printed : float, optional
        A noise scale printed in a paper, taken as it is instead of a calibrated one. The
        guarantee says what it really gives.
    fixed : bool
        Whether it has its own noise, which must fit into the budget.
    unbounded : bool
        Whether it takes values of no bounded sensitivity, and bounds what they do itself.
    secret_course : bool
        Whether how long it runs is a secret: then no progress is told.
    hides : bool
        Whether what it gives is hidden still.
    divided : bool
        Whether its sensitivity is of what is divided by the number of rows, as a mean is: where
        fewer have a label, that is more, and so is the noise.
    """

    label: str
    part: Part = "all"
    count: float = 1
    printed: float | None = None
    fixed: ClassVar[bool] = False
    unbounded: ClassVar[bool] = False
    secret_course: ClassVar[bool] = False
    hides: ClassVar[bool] = False
    divided: bool = False

    @property
    def allowance(self) -> float | Fraction:
        """How much one grant buys, in units of what :meth:`admit` says."""
        return self.count

    def enlarged(self, times: float) -> Self:
        """Return the same for values that are so many times as large."""
        return self

    @abstractmethod
    def scale_at(self, multiplier: float) -> float:
        """Noise scale (or one over an epsilon) at a noise multiplier."""

    @abstractmethod
    def events(self, scale: float, source: NoiseSource) -> tuple[Event, ...]:
        """All that its releases with that noise will be."""

    def epsilon(self, scale: float) -> float:
        """Epsilon of one release, where the scale says it alone."""
        return math.inf

    def check(self, relation: Relation, source: NoiseSource) -> None:  # noqa: B027
        """Refuse, by public facts, what it was not proved for."""

    def grants(
        self, make: Callable[[Mechanism, float], Grant], noise: float, _: NoiseSource
    ) -> Any:
        """What is handed out once it was charged for: a grant."""
        return make(self, self.scale_at(noise))

    @abstractmethod
    def admit(self, hidden: Hidden, **public: Any) -> float | Fraction:
        """Refuse a release, or say how much of the count it uses up; before it is paid for."""

    @abstractmethod
    def release(self, hidden: Hidden, scale: float, source: NoiseSource, **public: Any) -> Any:
        """Let a hidden value out, with noise."""


@dataclass(frozen=True)
class Noise(Mechanism):
    """Noise on a value of bounded sensitivity: the common part of most mechanisms.

    Parameters
    ----------
    label : str
        What it is, for the event log.
    sensitivity : float
        In the norm of the mechanism.
    dimension : int
        How many numbers are released at once (matters for discrete noise only).
    count : int
        How often it will be released.
    weight : float
        Its share: sensitivity over noise is proportional to it.
    printed : float, optional
        As in :class:`Mechanism`.
    part : {"all", "train", "holdout"}
        Of which rows.
    divided : bool, default=True
        As in :class:`Mechanism`.
    """

    label: str
    sensitivity: float = 1.0
    dimension: int = 1
    count: int = 1
    weight: float = 1.0
    _: KW_ONLY
    printed: float | None = None
    part: Part = "all"
    divided: bool = True

    norm: ClassVar[str] = "l2"  # of the sensitivity, in the coordinates below
    adds: ClassVar[bool] = False  # whether noise is added in those coordinates

    def __post_init__(self) -> None:
        _validate.positive("printed", 1.0 if self.printed is None else self.printed)
        _validate.positive("sensitivity", self.sensitivity)
        _validate.count("dimension", self.dimension)
        _validate.count("count", self.count)
        _validate.positive("weight", self.weight)

    @classmethod
    def of(cls, hidden: Hidden, *, count: int = 1, weight: float = 1.0) -> Self:
        """Plan for releases of a hidden value, or of others like it."""
        numbers = max(1, math.prod(hidden.shape))
        part, divided = hidden.part, bool(getattr(hidden.statistic, "divided", True))
        facts = (hidden.label, hidden.sensitivity, numbers, count, weight)
        return cls(*facts, part=part, divided=divided)

    def enlarged(self, times: float) -> Self:
        """The same for values that are so many times as large."""
        return replace(self, sensitivity=times * self.sensitivity)

    def scale_at(self, multiplier: float) -> float:
        """Noise scale at a noise multiplier."""
        return multiplier * self.sensitivity / self.weight if self.printed is None else self.printed

    @abstractmethod
    def event(self, scale: float, source: NoiseSource) -> Event:
        """Return the one event of all its releases."""

    def events(self, scale: float, source: NoiseSource) -> tuple[Event, ...]:
        """Return the one event of all its releases."""
        return (self.event(scale, source),)

    def admit(self, hidden: Hidden, **public: Any) -> float:
        """One release of at most the sensitivity and the dimension that were planned."""
        if hidden.norm not in (None, self.norm):
            raise PrivacyError(f"the claim is in the norm {hidden.norm!r}, not {self.norm!r}.")
        reach = 1.0 if hidden.statistic is None else self.stretch(hidden, **public)
        if not hidden.sensitivity * reach <= self.sensitivity:
            raise PrivacyError("the hidden statistic is more sensitive than the grant allows.")
        if self.numbers(hidden) > self.dimension:
            self._refuse_numbers()
        return 1

    def stretch(self, hidden: Hidden, **public: Any) -> float:
        """How long, in its own norm, what is 1 long in the Euclidean norm of a statistic can be.

        What was derived has been claimed in the norm of the mechanism already.
        """
        return 1.0

    def _refuse_numbers(self) -> NoReturn:
        raise PrivacyError(
            f"{self.label!r} was planned with fewer numbers than are to be released; state its "
            "dimension (for randomised response: a count)."
        )

    def numbers(self, hidden: Hidden) -> int:
        """How many numbers pay: all of them, for the grid of discrete noise."""
        return math.prod(hidden.shape)

    def coordinates(self, value: FloatArray, **public: Any) -> FloatArray:
        """Return a value as its norm measures it."""
        return np.asarray(value)


@dataclass(frozen=True)
class OwnEpsilon(Noise):
    """A mechanism that is private by itself, at an epsilon that it is told: one over its scale."""

    norm: ClassVar[str] = "rows"
    unbounded: ClassVar[bool] = True

    def scale_at(self, multiplier: float) -> float:
        """One over the epsilon of one release."""
        return multiplier / self.weight if self.printed is None else self.printed

    def epsilon(self, scale: float) -> float:
        """Epsilon of one release."""
        return 1 / scale


class Counting(NamedTuple):
    """How a plan counts the rows that have a label (:mod:`..mechanisms.counted`).

    Parameters
    ----------
    mechanism : Mechanism
    statistic : Statistic
    read : callable
        From the count, the scale of its noise and the number of rows to a part of them.

    Examples
    --------
    >>> from dpadapt.privacy.mechanisms import Gaussian
    >>> Counting(Gaussian("rows"), None, lambda found, scale, n: found / n).read(40.0, 5.0, 80)
    0.5
    """

    mechanism: Mechanism
    statistic: Any
    read: Callable[[float, float, int], float]


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Grant:
    """The right to release with one mechanism, as often as was planned and charged for.

    Its session keeps count by identity: a copy, or a grant of one's own making, buys nothing.
    """

    mechanism: Mechanism
    scale: float

    @property
    def epsilon(self) -> float:
        """The epsilon of one use, where the scale is one over it (a learner on drawn rows)."""
        return self.mechanism.epsilon(self.scale)

    def __repr__(self) -> str:
        return f"Grant({self.mechanism.label!r}, scale={self.scale:.6g})"
