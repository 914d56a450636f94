"""Argument checks whose message names the argument and says what to do.

Every check here looks at public facts only: configuration, sizes, bounds.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a float, or say that it must be positive and finite.

    Examples
    --------
    >>> positive("radius", 2)
    2.0
    >>> positive("radius", -1)
    Traceback (most recent call last):
    ...
    ValueError: radius must be a positive, finite number; got -1.
    """
    if not _is_number(value) or not (0 < float(value) < math.inf):
        raise ValueError(f"{name} must be a positive, finite number; got {value!r}.")
    return float(value)


def non_negative(name: str, value: Any) -> float:
    """Return ``value`` as a float, or say that it must be zero or more and finite."""
    if not _is_number(value) or not (0 <= float(value) < math.inf):
        raise ValueError(f"{name} must be a finite number, zero or more; got {value!r}.")
    return float(value)


MOST_EPSILON = 1e6  # of an estimator: beyond it no finite epsilon can be stated any more
EPSILON_ADVICE = (
    "Smaller means more private; 1.0 is a common choice. Epsilon 0 would be full privacy, which is "
    "a model of public rows alone: for that, leave the private rows out."
)


def epsilon(value: Any, *, most: float = math.inf) -> float:
    """Check a target epsilon, which may have a largest value.

    Examples
    --------
    >>> epsilon(float("inf"))
    Traceback (most recent call last):
    ...
    ValueError: epsilon must be a positive, finite number; got inf. Smaller means more private; \
1.0 is a common choice. Epsilon 0 would be full privacy, which is a model of public rows alone: \
for that, leave the private rows out.
    >>> epsilon(1e9, most=MOST_EPSILON)
    Traceback (most recent call last):
    ...
    ValueError: epsilon must be at most 1,000,000; got 1000000000.0. Above 10 it promises next to \
nothing.
    """
    try:
        found = positive("epsilon", value)
    except ValueError as error:
        raise ValueError(f"{error} {EPSILON_ADVICE}") from None
    if found > most:
        raise ValueError(
            f"epsilon must be at most {most:,.0f}; got {value!r}. Above 10 it promises next to "
            "nothing."
        )
    return found


def delta(value: Any, *, allow_zero: bool = False) -> float:
    """Check a target delta: strictly between 0 and 1 (0 itself for pure mechanisms only).

    Examples
    --------
    >>> delta(1e-6)
    1e-06
    >>> delta(1)
    Traceback (most recent call last):
    ...
    ValueError: delta must lie strictly between 0 and 1; got 1. A common choice is 1e-6, well \
below one over the number of private rows.
    """
    inside = _is_number(value) and (0 < float(value) < 1 or (allow_zero and float(value) == 0))
    if not inside:
        raise ValueError(
            f"delta must lie strictly between 0 and 1; got {value!r}. A common choice is 1e-6, "
            "well below one over the number of private rows."
        )
    return float(value)


def count(name: str, value: Any, *, least: int = 1) -> int:
    """Return ``value`` as an int, or say that it must be a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number, {least} or more; got {value!r}.")
    return int(value)


def fraction(name: str, value: Any) -> float:
    """Return ``value`` as a float strictly between 0 and 1."""
    if not _is_number(value) or not (0 < float(value) < 1):
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return float(value)


def share(name: str, value: Any) -> float:
    """Return ``value`` as a float above 0 and at most 1."""
    if not _is_number(value) or not (0 < float(value) <= 1):
        raise ValueError(f"{name} must be above 0 and at most 1; got {value!r}.")
    return float(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return ``value``, or list the allowed strings."""
    if value not in allowed:
        listed = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name} must be {'one of ' * (len(allowed) > 1)}{listed}; got {value!r}.")
    return str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def plain_numbers(value: Any) -> None:
    """Turn other numbers in the fields of a statistic, and of its parts, into Python's own.

    Numpy's of few bits wrap around: np.uint8(255) ** 2 is 1, and no bound at all. So do those of an
    array without axes, and a subclass of Python's calculates as it likes.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> cleaning = Cleaning(radius=np.uint8(255))
    >>> plain_numbers(cleaning)
    >>> cleaning.radius**2
    65025
    """
    for name in field_names(type(value)):
        held = getattr(value, name)
        if isinstance(held, np.ndarray) and held.ndim == 0:
            held = held[()]
        if isinstance(held, np.generic) and held.dtype.kind in "iuf":
            number = float(held) if held.dtype.kind == "f" else int(held)
            object.__setattr__(value, name, number)
        elif isinstance(held, float) and type(held) is not float:
            object.__setattr__(value, name, float.__float__(held))
        elif isinstance(held, int) and type(held) not in (int, bool):
            object.__setattr__(value, name, int.__int__(held))
        elif field_names(type(held)):
            plain_numbers(held)


def _names(kind: type) -> tuple[str, ...]:
    """Names of the fields of a dataclass; none of other classes."""
    found = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return tuple(field.name for field in found)


field_names: Callable[[type], tuple[str, ...]] = functools.cache(_names)  # asked at every step
