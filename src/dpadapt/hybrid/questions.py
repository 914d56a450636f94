"""Questions that agents answer: one bit, one number in [0, 1], or one vector of norm at most 1.

A question carries an array with one entry for each agent that it is made for, or is the same for
all. It is public. What an agent says to it is randomised on the agent's side, whatever the question
is, so a question may depend on earlier replies. A cell that is no number counts as false.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpadapt._types import FloatArray, IntArray
from dpadapt.privacy.local.randomisers import BallResponse

from . import protocol
from .rules import LinearRule, ParityRule, Rule

AnyQuestion: TypeAlias = "Below | Within | SameSide | Mistake | Loss | Slope"


@dataclass(frozen=True, eq=False)
class _Question(ABC):
    """What all questions have in common."""

    name: ClassVar[str]
    kind: ClassVar[str] = "bit"

    @property
    def size(self) -> int | None:
        """Number of agents that it is made for; None: the same for everybody."""
        return None

    @property
    def width(self) -> int:
        """Numbers in an answer."""
        return 1

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Labels that -1 and 1 stand for, or 1, 2, 3, ...; None if no label is read."""
        return None

    def at(self, places: IntArray) -> Self:
        """The parts of those agents only."""
        return self

    @abstractmethod
    def values(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """True answers, row by row; a label 0 is one of no class, others see ``classes``."""

    @abstractmethod
    def check(self, n_columns: int) -> None:
        """Raise if it does not fit rows of that many columns."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; nothing is rounded."""

    def request(self, place: int, agent: int, epsilon: float) -> bytes:
        """Message that puts the question to one agent."""
        one = self.at(np.array([place]))
        return protocol.write_question(one.to_dict(), agent, epsilon)

    def reply(self, line: bytes, agent: int, epsilon: float) -> int | list[float]:
        """Answer in a message of that agent; raises ValueError if it is none."""
        norm = BallResponse(epsilon, self.width).norm if self.kind == "ball" else None
        return protocol.read_reply(line, agent, width=self.width, norm=norm)


@dataclass(frozen=True, eq=False)
class _Cells(_Question):
    """Questions about cells: every field is an array with an entry for each agent."""

    columns: ClassVar[tuple[str, ...]] = ("coordinates",)

    def __post_init__(self) -> None:
        sizes = set()
        for field in fields(self):
            whole = field.name in self.columns
            array = np.array(getattr(self, field.name))
            if array.ndim != 1 or (array.size and array.dtype.kind not in ("iu", "iuf")[not whole]):
                what = "whole numbers" if whole else "numbers"
                raise ValueError(f"{field.name} must be one row of {what}, one for each agent.")
            array = array.astype(np.int64 if whole else np.float64)
            if not np.isfinite(array).all():
                raise ValueError(f"{field.name} must be finite.")
            array.setflags(write=False)
            object.__setattr__(self, field.name, array)
            sizes.add(len(array))
        if len(sizes) > 1:
            raise ValueError("a question needs as many entries in each array as it has agents.")

    @property
    def size(self) -> int:
        return len(getattr(self, self.columns[0]))

    def at(self, places: IntArray) -> Self:
        arrays = {each.name: getattr(self, each.name)[places] for each in fields(self)}
        return replace(self, **arrays)

    def check(self, n_columns: int) -> None:
        for name in self.columns:
            places = getattr(self, name)
            if places.size and not (places.min() >= 0 and places.max() < n_columns):
                raise ValueError(f"{name} must lie between 0 and {n_columns - 1}.")

    def to_dict(self) -> dict[str, Any]:
        arrays = {each.name: getattr(self, each.name).tolist() for each in fields(self)}
        return {"question": self.name, **arrays}


@dataclass(frozen=True, eq=False)
class Below(_Cells):
    """Whether x_j <= t.

    Parameters
    ----------
    coordinates : int array of shape (count,)
        j, one for each agent.
    thresholds : array of shape (count,)
        t.

    Examples
    --------
    >>> Below([0, 1], [0.5, 0.5]).values(np.array([[0.2, 9.0], [0.2, 9.0]]), None)
    array([1., 0.])
    """

    coordinates: NDArray[np.int64]
    thresholds: FloatArray
    name: ClassVar[str] = "below"

    def values(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """1 where the cell is at most the threshold, else 0."""
        return (_cells(X, self.coordinates) <= self.thresholds).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Within(_Cells):
    """Whether |x_j - c| <= w.

    Parameters
    ----------
    coordinates : int array of shape (count,)
        j, one for each agent.
    centres, widths : array of shape (count,)
        c and w.

    Examples
    --------
    >>> Within([0, 0], [0.0, 0.0], [1.0, 2.0]).values(np.array([[-1.5], [-1.5]]), None)
    array([0., 1.])
    """

    coordinates: NDArray[np.int64]
    centres: FloatArray
    widths: FloatArray
    name: ClassVar[str] = "within"

    def values(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """1 where the cell is that near, else 0."""
        with np.errstate(all="ignore"):
            away = np.abs(_cells(X, self.coordinates) - self.centres)
            return (away <= self.widths).astype(np.float64)


@dataclass(frozen=True, eq=False)
class SameSide(_Cells):
    """Whether x_i > c_i and x_j > c_j are both true or both false.

    Parameters
    ----------
    first, second : int array of shape (count,)
        i and j, one for each agent.
    first_centres, second_centres : array of shape (count,)
        c_i and c_j.

    Examples
    --------
    >>> SameSide([0], [1], [0.0], [0.0]).values(np.array([[-1.0, -2.0]]), None)
    array([1.])
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    first_centres: FloatArray
    second_centres: FloatArray
    name: ClassVar[str] = "same-side"
    columns: ClassVar[tuple[str, ...]] = ("first", "second")

    def values(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """1 on the same side, else 0."""
        one = _cells(X, self.first) > self.first_centres
        two = _cells(X, self.second) > self.second_centres
        return (one == two).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _RuleQuestion(_Question):
    """Questions about a rule, the same for all."""

    rule: Rule

    @property
    def classes(self) -> tuple[Any, ...]:
        return self.rule.classes

    def check(self, n_columns: int) -> None:
        self.rule.check(n_columns)

    def to_dict(self) -> dict[str, Any]:
        return {"question": self.name, "rule": self.rule.to_dict()}


@dataclass(frozen=True, eq=False)
class Mistake(_RuleQuestion):
    """Whether a rule errs on the agent: h(x) != y. A label of no class counts as an error.

    Parameters
    ----------
    rule : Rule

    Examples
    --------
    >>> rule = LinearRule("linear", np.zeros(1), np.ones(1), np.array([1.0, 0.0]), (0, 1))
    >>> Mistake(rule).values(np.array([[2.0], [2.0], [2.0]]), np.array([1.0, -1.0, 0.0]))
    array([0., 1., 1.])
    """

    name: ClassVar[str] = "mistake"

    def values(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """1 for a mistake, else 0."""
        labels = _labels(y)
        return np.where(labels == 0, 1.0, (self.rule.predict_sign(X) != labels) * 1.0)


@dataclass(frozen=True, eq=False)
class Loss(_RuleQuestion):
    """Loss of a rule on the agent, divided by its public bound: a number in [0, 1].

    A larger loss counts as the bound, and so does a label of no class.

    Parameters
    ----------
    rule : Rule
    bound : float

    Examples
    --------
    >>> rule = LinearRule("linear", np.zeros(1), np.ones(1), np.array([0.0, 0.0]), (0, 1))
    >>> Loss(rule, bound=2.0).values(np.array([[5.0]]), np.array([1.0])).round(3)
    array([0.347])
    """

    bound: float
    name: ClassVar[str] = "loss"
    kind: ClassVar[str] = "unit"

    def __post_init__(self) -> None:
        if not 0 < float(self.bound) < math.inf:
            raise ValueError(f"bound must be positive and finite; got {self.bound!r}.")

    def values(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Loss over bound, at most 1."""
        losses = np.nan_to_num(self.rule.losses(X, _labels(y)), nan=np.inf, posinf=np.inf)
        return np.clip(losses, 0.0, self.bound) / self.bound

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "bound": float(self.bound)}


@dataclass(frozen=True, eq=False)
class Slope(_RuleQuestion):
    """Gradient of the logistic loss of a linear rule in its coefficients; of norm at most 1.

    Parameters
    ----------
    rule : LinearRule

    Examples
    --------
    >>> rule = LinearRule("linear", np.zeros(1), np.ones(1), np.array([0.0, 0.0]), (0, 1), clip=1.0)
    >>> Slope(rule).values(np.array([[0.0]]), np.array([1.0])).round(3)
    array([[-0. , -0.5]])
    """

    rule: LinearRule
    name: ClassVar[str] = "slope"
    kind: ClassVar[str] = "ball"

    def __post_init__(self) -> None:
        if not hasattr(self.rule, "slopes") or len(self.rule.classes) != 2:
            raise TypeError("the slope is that of a LinearRule between two classes.")

    @property
    def width(self) -> int:
        return self.rule.width

    def values(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """One gradient a row."""
        return self.rule.slopes(X, _labels(y))


def question_from_dict(data: Mapping[str, Any]) -> AnyQuestion:
    """Rebuild a question from its ``to_dict``; ValueError if it is none.

    Examples
    --------
    >>> question_from_dict(Below([2], [0.1]).to_dict()).thresholds
    array([0.1])
    """
    try:
        kind = _KINDS[data["question"]]
        given = {each.name: data[each.name] for each in fields(kind)}
        if set(data) != {"question", *given}:
            raise ValueError("unknown entries.")
        if "rule" in given:
            given["rule"] = rule_from_dict(given["rule"])
        return kind(**given)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError("this is no question that the present version knows.") from error


def rule_from_dict(data: Mapping[str, Any]) -> Rule:
    """Rebuild any rule that can be written down from its ``to_dict``.

    Examples
    --------
    >>> rule = LinearRule("linear", np.zeros(2), np.ones(2), np.array([1.0, 0.0, 0.0]), (0, 1))
    >>> rule_from_dict(rule.to_dict()).classes
    (0, 1)
    """
    if data.get("rule") == "parity":
        return ParityRule.from_dict(data)
    return LinearRule.from_dict(data)


_KINDS: dict[str, Any] = {
    each.name: each for each in (Below, Within, SameSide, Mistake, Loss, Slope)
}


def _cells(X: FloatArray, coordinates: NDArray[np.int64]) -> FloatArray:
    return np.asarray(X[np.arange(len(X)), coordinates])


def _labels(y: FloatArray | None) -> FloatArray:
    if y is None:
        raise ValueError("the question is about labels, but there are none.")
    return y
