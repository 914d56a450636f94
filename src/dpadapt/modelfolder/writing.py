"""From a model to plain data: a tree of JSON values, and the bytes of its arrays.

JSON's own values and lists stand for themselves. Anything else is an object of one key, which says
what it is: ``{"tuple": [...]}``, ``{"array": ["<f8", [3], "C"]}``, ``{"object": [name, [[attribute,
value], ...]]}`` and so on.
"""

from __future__ import annotations

import copyreg
import dataclasses
import math
from collections.abc import Collection, Iterable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from dpadapt.privacy import Guarantee

from .arrays import ArrayBytes, dtype_text
from .errors import ModelFolderError
from .types import Names

DEEPEST = 60
"""Nesting of a tree, at most."""

NUMBER_TYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "bool", "number")
"""Types of numpy that may be values; some encoders hold one."""

SPARSE = ("csr_matrix", "csc_matrix", "csr_array", "csc_array")
"""Sparse tables of scipy."""

_ITSELF = (type(None), bool, int, str)
_CALLED = (type, FunctionType, BuiltinFunctionType, np.ufunc)


def encode(model: Any, trusted: Collection[str] = ()) -> tuple[Any, bytes]:
    """Tree and bytes of a model.

    Parameters
    ----------
    model : estimator
        Its parts must be plain data or objects on the closed list.
    trusted : collection of str
        Names beside those of the list.

    Examples
    --------
    >>> from dpadapt.baselines import PublicOnlyRegressor
    >>> model = PublicOnlyRegressor().fit(np.eye(2), [1.0, 2.0])
    >>> tree, numbers = encode(model)
    >>> tree["object"][0], len(numbers)
    ('dpadapt.papers.baselines.public_only.PublicOnlyRegressor', 16)
    """
    writer = _Writer(Names(trusted))
    tree = writer.value(model, 0)
    return tree, bytes(writer.numbers)


class _Writer:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.numbers = ArrayBytes()

    def value(self, value: Any, depth: int) -> Any:
        """Tree of a value."""
        if depth > DEEPEST:
            raise ModelFolderError("its parts hold each other, or are nested too deeply.")
        kind, below = type(value), depth + 1
        if kind in _ITSELF:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is list:
            return self.values(value, below)
        if kind is tuple:
            return {"tuple": self.values(value, below)}
        if kind is dict:
            return {"dict": [self.values(pair, below) for pair in value.items()]}
        if kind is slice:
            return {"slice": self.values((value.start, value.stop, value.step), below)}
        if kind is Guarantee:
            return {"guarantee": value.to_dict()}
        return self._of_numpy(value, below)

    def values(self, values: Iterable[Any], depth: int) -> list[Any]:
        """Trees of several values."""
        return [self.value(each, depth) for each in values]

    def _of_numpy(self, value: Any, depth: int) -> Any:
        if type(value) is np.ndarray:
            if value.dtype.kind == "O":
                return {"cells": [list(value.shape), self.values(value.ravel().tolist(), depth)]}
            return {"array": self.numbers.add(value)}
        if isinstance(value, np.generic):
            return {"scalar": self.numbers.add(np.asarray(value))}
        if isinstance(value, np.dtype):
            return {"dtype": "object" if value.kind == "O" else dtype_text(value)}
        if isinstance(value, _CALLED):
            if any(value is getattr(np, name) for name in NUMBER_TYPES):
                return {"number type": value.__name__}
            return {"name": self.names.of(value)}
        if type(value).__name__ in SPARSE and type(value).__module__.startswith("scipy.sparse."):
            parts = (value.data, value.indices, value.indptr)
            arrays = [self.numbers.add(part) for part in parts]
            return {"sparse": [type(value).__name__, list(value.shape), arrays]}
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> Any:
        name = self.names.of(type(value))
        state = [[key, self.value(each, depth)] for key, each in _state(value).items()]
        return {"object": [name, state]}


def _state(value: Any) -> dict[str, Any]:
    """Parts of an object: arguments of its constructor, or else its attributes."""
    if dataclasses.is_dataclass(value):
        return {part.name: getattr(value, part.name) for part in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return dict(value._asdict())
    try:
        made, arguments, *rest = value.__reduce_ex__(2)  # also asks those that refuse to be stored
        state = {} if not rest or rest[0] is None else rest[0]
        plain = made is copyreg.__newobj__ and arguments == (type(value),) and not any(rest[1:])  # type: ignore[attr-defined]
    except Exception as error:
        raise ModelFolderError(f"{type(value).__name__}: {error}") from None
    if not plain or not isinstance(state, dict):
        raise ModelFolderError(f"a {type(value).__name__} is more than its attributes.")
    return state
