"""Rules for one attribute of an object of scikit-learn: whether it may have this value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Rule = Callable[[Any, Any], bool]
"""Whether an object may have this value for an attribute."""

_MOST_COLUMNS = 2**31 - 1


@dataclass(frozen=True)
class Only:
    """Rule for an argument that must be there and be this, because another value reads files.

    Examples
    --------
    >>> Only("content")(None, "filename")
    False
    """

    value: Any

    def __call__(self, made: Any, value: Any) -> bool:
        return type(value) is type(self.value) and value == self.value


def anything(made: Any, value: Any) -> bool:
    return True


def flag(made: Any, value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def text(made: Any, value: Any) -> bool:
    return isinstance(value, str)


def number(made: Any, value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


def count(made: Any, value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and 0 <= int(value) <= _MOST_COLUMNS


def array(*shape: str | None, kinds: str = "biuf") -> Rule:
    """Rule for arrays: of these kinds, and as long as other attributes say."""

    def check(made: Any, value: Any) -> bool:
        wanted = [None if name is None else getattr(made, name, -1) for name in shape]
        return (
            isinstance(value, np.ndarray)
            and value.dtype.kind in kinds
            and value.ndim == len(wanted)
            and all(one in (None, two) for one, two in zip(wanted, value.shape, strict=True))
        )

    return check


def or_none(rule: Rule) -> Rule:
    return lambda made, value: value is None or rule(made, value)


def part(name: str) -> Rule:
    """Rule for a part of one class, which was checked when it was made."""
    return lambda made, value: (
        value is None
        or (type(value).__name__ == name and type(value).__module__.startswith("sklearn."))
    )


def names(made: Any, value: Any) -> bool:
    named = array("n_features_in_", kinds="O")(made, value)
    return named and all(isinstance(each, str) for each in value)


def output(made: Any, value: Any) -> bool:
    return value in ({}, *({"transform": each} for each in ("default", "pandas", "polars")))


def vocabulary(made: Any, value: Any) -> bool:
    """Each word has a place of its own, and the places are 0 to n - 1."""
    return (
        isinstance(value, dict)
        and all(isinstance(word, str) for word in value)
        and all(type(place) is int or isinstance(place, np.integer) for place in value.values())
        and sorted(value.values()) == list(range(len(value)))
    )


def categories(made: Any, value: Any) -> bool:
    columns = getattr(made, "n_features_in_", None)
    return isinstance(value, list) and len(value) == columns and all(map(_in_order, value))


def _in_order(levels: Any) -> bool:
    """Whether levels are different, and their numbers rising, with NaN at the end."""
    if not (isinstance(levels, np.ndarray) and levels.ndim == 1 and levels.size):
        return False
    if levels.dtype.kind not in "biufOUSmM":
        return False
    cells = levels.tolist() if levels.dtype.kind not in "mM" else levels.astype("i8").tolist()
    if not all(isinstance(cell, (str, bytes, int, float, type(None))) for cell in cells):
        return False
    if any(cell != cell for cell in cells[:-1]) or len(set(cells)) < len(cells):
        return False
    numbers = [cell for cell in cells if isinstance(cell, (int, float)) and cell == cell]
    return numbers == sorted(numbers)


def infrequent(made: Any, value: Any) -> bool:
    levels = getattr(made, "categories_", None)
    return (
        isinstance(value, list)
        and isinstance(levels, list)
        and len(value) == len(levels)
        and all(
            places is None
            or (
                array(None, kinds="iu")(made, places)
                and places.size > 0
                and places[0] >= 0
                and places[-1] < len(column)
                and bool(np.all(np.diff(places.astype(np.int64)) > 0))
            )
            for places, column in zip(value, levels, strict=True)
        )
    )


def edges(made: Any, value: Any) -> bool:
    ends = array("n_features_in_", kinds="O")(made, value)
    return ends and all(array(None)(made, each) for each in value)


def sparse_or_table(made: Any, value: Any) -> bool:
    wanted = (getattr(made, "n_components_", -1), getattr(made, "n_features_in_", -1))
    return getattr(value, "shape", None) == wanted and getattr(value, "dtype", None) in (
        np.float64,
        np.float32,
    )


def seen(made: Any, value: Any) -> bool:
    return number(made, value) or array("n_features_in_")(made, value)
