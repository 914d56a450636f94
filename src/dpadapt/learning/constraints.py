"""Constraints on parameters as a table: what each may be, in words that say what to do.

A class states them once, as ``_constraints: ClassVar[Table] = {"radius": [Positive(), Null()]}``,
and inherits the rows of its parents. A value is fine if one constraint of its row accepts it; a
parameter without a row may be anything. Constraints look at public facts only: configuration.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from dpadapt._lazy import is_of, named


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """One thing that a parameter may be; ``advice`` follows what is said to be wrong."""

    advice: str = ""
    error: ClassVar[type[Exception]] = ValueError

    @property
    def rule(self) -> str:
        """What the value must do: "be a positive, finite number". Empty: nothing to tell."""
        raise NotImplementedError

    def accepts(self, value: Any) -> bool:
        """Whether the value is fine."""
        raise NotImplementedError


ParameterTable = Mapping[str, Sequence[Constraint]]
"""Constraints by parameter."""


@dataclass(frozen=True, kw_only=True)
class Positive(Constraint):
    """A positive, finite number.

    Examples
    --------
    >>> check_value("radius", -1, [Positive()])
    Traceback (most recent call last):
    ...
    ValueError: radius must be a positive, finite number; got -1.
    """

    rule = "be a positive, finite number"

    def accepts(self, value: Any) -> bool:
        return _is_number(value) and 0 < float(value) < math.inf


@dataclass(frozen=True, kw_only=True)
class NonNegative(Constraint):
    """A finite number, zero or more."""

    rule = "be a finite number, zero or more"

    def accepts(self, value: Any) -> bool:
        return _is_number(value) and 0 <= float(value) < math.inf


@dataclass(frozen=True, kw_only=True)
class Fraction(Constraint):
    """A number strictly between 0 and 1."""

    rule = "lie strictly between 0 and 1"

    def accepts(self, value: Any) -> bool:
        return _is_number(value) and 0 < float(value) < 1


@dataclass(frozen=True)
class Between(Constraint):
    """A number of an interval, whose ends are closed unless it is said otherwise.

    Examples
    --------
    >>> check_value("percentile", 0, [Between(0, 100, left=False)])
    Traceback (most recent call last):
    ...
    ValueError: percentile must lie in (0, 100]; got 0.
    """

    low: float
    high: float
    left: bool = True
    right: bool = True

    @property
    def rule(self) -> str:
        start, end = "[" if self.left else "(", "]" if self.right else ")"
        return f"lie in {start}{self.low:g}, {self.high:g}{end}"

    def accepts(self, value: Any) -> bool:
        if not _is_number(value) or not self.low <= float(value) <= self.high:
            return False
        return (self.left or value != self.low) and (self.right or value != self.high)


@dataclass(frozen=True)
class Count(Constraint):
    """A whole number of at least ``least``.

    Examples
    --------
    >>> check_value("steps", 1.5, [Count(least=2)])
    Traceback (most recent call last):
    ...
    ValueError: steps must be a whole number, 2 or more; got 1.5.
    """

    least: int = 1

    @property
    def rule(self) -> str:
        return f"be a whole number, {self.least} or more"

    def accepts(self, value: Any) -> bool:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return whole and int(value) >= self.least


@dataclass(frozen=True, init=False)
class _Listed(Constraint):
    """One of some things, which are given one after another."""

    listed: tuple[Any, ...]

    def __init__(self, *listed: Any, advice: str = "") -> None:
        object.__setattr__(self, "listed", listed)
        object.__setattr__(self, "advice", advice)


@dataclass(frozen=True, init=False)
class OneOf(_Listed):
    """One of some strings.

    Examples
    --------
    >>> check_value("noise", "white", [OneOf("secure", "seeded")])
    Traceback (most recent call last):
    ...
    ValueError: noise must be one of 'secure', 'seeded'; got 'white'.
    """

    @property
    def rule(self) -> str:
        return "be one of " + ", ".join(map(repr, self.listed))

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.listed


@dataclass(frozen=True, init=False)
class Named(Constraint):
    """A strategy (:class:`.strategy.Strategy`): the name of a default one, or an object.

    A class may be given by its dotted name; it is imported when it is asked for.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Newton:
    ...     steps: int = 10
    >>> solvers = Named({"newton": Newton})
    >>> solvers.make("newton"), solvers.make(Newton(3))
    (Newton(steps=10), Newton(steps=3))
    >>> check_value("solver", "secant", [solvers])
    Traceback (most recent call last):
    ...
    ValueError: solver must be one of 'newton', or an object of Newton; got 'secant'.
    """

    kinds: Mapping[str, type | str]

    def __init__(self, kinds: Mapping[str, type | str], *, advice: str = "") -> None:
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "advice", advice)

    @property
    def rule(self) -> str:
        objects = " or ".join(dict.fromkeys(map(_short, self.kinds.values())))
        return f"be one of {', '.join(map(repr, self.kinds))}, or an object of {objects}"

    def accepts(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self.kinds
        return _is_one_of(value, self.kinds.values())

    def make(self, value: Any) -> Any:
        """The object that a name stands for; an object stands for itself."""
        if not isinstance(value, str):
            return value
        kind = self.kinds[value]
        if isinstance(kind, str):  # a paper's own way, which is imported when it is asked for
            kind = named(kind)
        return kind()


@dataclass(frozen=True, init=False)
class Instance(_Listed):
    """An object of one of some classes, which may be given by their dotted names.

    Examples
    --------
    >>> check_value("rows", 7, [Instance(list, tuple)])
    Traceback (most recent call last):
    ...
    TypeError: rows must be a list or tuple; got int.
    """

    error: ClassVar[type[Exception]] = TypeError

    @property
    def rule(self) -> str:
        return "be a " + " or ".join(map(_short, self.listed))

    def accepts(self, value: Any) -> bool:
        return _is_one_of(value, self.listed)


@dataclass(frozen=True, init=False)
class Like(_Listed):
    """An object that has some attributes; ``words`` say what it must be.

    Examples
    --------
    >>> check_value("kernel", 7, [Like("be a function of two tables", "__call__")])
    Traceback (most recent call last):
    ...
    TypeError: kernel must be a function of two tables; got int.
    """

    words: str
    error: ClassVar[type[Exception]] = TypeError

    def __init__(self, words: str, *attributes: str, advice: str = "") -> None:
        super().__init__(*attributes, advice=advice)
        object.__setattr__(self, "words", words)

    @property
    def rule(self) -> str:
        return self.words

    def accepts(self, value: Any) -> bool:
        return all(hasattr(value, name) for name in self.listed)


@dataclass(frozen=True, kw_only=True)
class Null(Constraint):
    """None: a choice from public facts. Messages are silent about it."""

    rule = ""

    def accepts(self, value: Any) -> bool:
        return value is None


@dataclass(frozen=True, kw_only=True)
class Flag(Constraint):
    """True or False."""

    rule = "be True or False"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, (bool, np.bool_))


@dataclass(frozen=True)
class Vector(Constraint):
    """Finite numbers in a row, as many as ``length`` says (any number, if it is None).

    Examples
    --------
    >>> check_value("centre", [1.0, float("nan")], [Vector(2)])
    Traceback (most recent call last):
    ...
    ValueError: centre must hold 2 finite numbers; got [1.0, nan].
    """

    length: int | None = None

    @property
    def rule(self) -> str:
        return (
            "hold finite numbers" if self.length is None else f"hold {self.length} finite numbers"
        )

    def accepts(self, value: Any) -> bool:
        array = _numbers(value)
        if array is None or array.ndim != 1 or not array.size:
            return False
        return self.length in (None, array.size)


@dataclass(frozen=True)
class Grid(Constraint):
    """A number from 0 (or above it) to ``most``, or a grid of such numbers.

    Examples
    --------
    >>> check_value("alpha", [0.5, 2.0], [Grid(most=1.0)])
    Traceback (most recent call last):
    ...
    ValueError: alpha must be a number from 0 to 1, or a grid of such; got [0.5, 2.0].
    """

    most: float = math.inf
    zero: bool = True

    @property
    def rule(self) -> str:
        reach = f"from 0 to {self.most:g}" if math.isfinite(self.most) else "above 0"
        return f"be a number {reach}, or a grid of such"

    def accepts(self, value: Any) -> bool:
        array = _numbers(value)
        if array is None or array.ndim > 1 or not array.size:
            return False
        low = (array >= 0) if self.zero else (array > 0)
        return bool((low & (array <= self.most)).all())


def constraints_of(kind: type) -> dict[str, Sequence[Constraint]]:
    """Rows of the tables of a class and of its parents; the nearest one counts.

    Examples
    --------
    >>> class Parent:
    ...     _constraints = {"steps": [Count()], "ridge": [Positive()]}
    >>> class Child(Parent):
    ...     _constraints = {"ridge": [NonNegative()]}
    >>> constraints_of(Child)
    {'steps': [Count(advice='', least=1)], 'ridge': [NonNegative(advice='')]}
    """
    rows: dict[str, Sequence[Constraint]] = {}
    for each in reversed(kind.__mro__):
        rows |= vars(each).get("_constraints", {})
    return rows


def check_parameters(thing: Any) -> None:
    """Check every parameter of an object that has ``get_params`` by the tables of its classes."""
    rows = constraints_of(type(thing))
    for name, value in thing.get_params(deep=False).items():
        check_value(name, value, rows.get(name, ()))


def check_value(name: str, value: Any, allowed: Sequence[Constraint]) -> None:
    """Raise what says how to do it right, unless one of the constraints accepts the value.

    Examples
    --------
    >>> check_value("radius", None, [Positive(), Null()])
    """
    if isinstance(value, np.generic) and value.dtype.kind in "iuf" and value.dtype.itemsize < 8:
        short = f"{type(value).__name__}, which wraps around or rounds"
        raise TypeError(f"{name} must not be a {short}: give a plain number, {value.item()!r}.")
    if not allowed or any(each.accepts(value) for each in allowed):
        return
    told = [each for each in allowed if each.rule]
    error = TypeError if all(each.error is TypeError for each in told) else ValueError
    got = type(value).__name__ if error is TypeError else repr(value)
    sentences = [f"{name} must {', or '.join(each.rule for each in told)}; got {got}."]
    sentences += [each.advice for each in told if each.advice]
    raise error(" ".join(sentences))


def _short(kind: type | str) -> str:
    """Name of a class without its module."""
    return kind.rpartition(".")[2] if isinstance(kind, str) else kind.__name__


def _is_one_of(value: Any, kinds: Iterable[type | str]) -> bool:
    return any(
        is_of(value, kind) if isinstance(kind, str) else isinstance(value, kind) for kind in kinds
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _numbers(value: Any) -> Any:
    """Finite numbers as an array; None for anything else."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return array if value is not None and np.isfinite(array).all() else None
