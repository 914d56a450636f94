"""From a model to plain data: a tree of JSON values, and the bytes of its arrays.

JSON's own values and lists stand for themselves. Anything else is an object of one key, which says
what it is: ``{"tuple": [...]}``, ``{"array": ["<f8", [3], "C"]}``, ``{"object": [name, [[attribute,
value], ...]]}`` and so on.
Arrays of plain numbers and texts are raw bytes, one after another, with nothing in between.
"""

from __future__ import annotations

import contextlib
import copyreg
import dataclasses
import math
import re
from collections.abc import Collection, Iterable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.privacy import Guarantee

from .files import ModelFolderError
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
    ('dpadapt.papers.baselines.non_private.PublicOnlyRegressor', 16)
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


_ONE = r"\|b1|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]c(8|16)|\|S[1-9]\d{0,5}|[<>]U[1-9]\d{0,5}"
_PLAIN = re.compile(rf"{_ONE}|[<>][mM]8\[\d{{0,4}}[A-Za-z]{{1,2}}\]")
_MOST_DIMENSIONS, _LONGEST = 32, 2**48
_LAST_CHARACTER = 0x10FFFF


class ArrayBytes:
    """Where arrays are written to.

    Examples
    --------
    >>> numbers = ArrayBytes()
    >>> numbers.add(np.array([[1.0, 2.0]]))
    ['<f8', [1, 2], 'C']
    >>> ArrayFeed(bytes(numbers)).take(['<f8', [1, 2], 'C'])
    array([[1., 2.]])
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def add(self, array: NDArray[Any]) -> list[Any]:
        """Append an array; return its type, shape and order in memory."""
        text = dtype_text(array.dtype)
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        order = "F" if fortran else "C"
        self._parts.append(array.tobytes(order=order))  # type: ignore[arg-type]
        return [text, list(array.shape), order]

    def __bytes__(self) -> bytes:
        return b"".join(self._parts)


class ArrayFeed:
    """Where arrays are read from: each takes the next bytes, and no more than there are.

    Examples
    --------
    >>> ArrayFeed(b"1234").take(["<f8", [1000000000], "C"])
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.files.ModelFolderError: an array is longer than the file of arrays.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._start = 0

    @property
    def left(self) -> int:
        """Number of bytes that no array has taken."""
        return len(self._content) - self._start

    def take(self, spec: Any) -> NDArray[Any]:
        """Next array: of its own memory, and free to be changed."""
        text, sizes, order = _three(spec)
        dtype, shape = parse_dtype(text), parse_shape(sizes)
        if order not in ("C", "F"):
            raise ModelFolderError(f"{order!r} is no order of an array.")
        count = math.prod(shape)
        if count * dtype.itemsize > self.left:
            raise ModelFolderError("an array is longer than the file of arrays.")
        flat = np.frombuffer(self._content, dtype=dtype, count=count, offset=self._start)
        self._start += count * dtype.itemsize
        _check_cells(flat)
        return flat.reshape(shape, order=order).copy(order=order)


def dtype_text(dtype: np.dtype[Any]) -> str:
    """Return the text of a plain type of numbers or texts; others are refused.

    Examples
    --------
    >>> dtype_text(np.dtype("float32"))
    '<f4'
    """
    if not _PLAIN.fullmatch(dtype.str):
        raise ModelFolderError(f"an array of {dtype} is not plain numbers or texts.")
    return dtype.str


def parse_dtype(text: Any) -> np.dtype[Any]:
    """Inverse of :func:`dtype_text`; the text is checked before numpy reads it.

    Examples
    --------
    >>> parse_dtype("|O")
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.files.ModelFolderError: '|O' is no plain type of numbers or texts.
    """
    if not isinstance(text, str) or not _PLAIN.fullmatch(text):
        raise ModelFolderError(f"{text!r} is no plain type of numbers or texts.")
    return np.dtype(text)


def parse_shape(sizes: Any) -> tuple[int, ...]:
    """Shape of an array, from a list of whole numbers.

    Examples
    --------
    >>> parse_shape([2, 3])
    (2, 3)
    """
    if not (
        isinstance(sizes, list)
        and len(sizes) <= _MOST_DIMENSIONS
        and all(type(size) is int and 0 <= size < _LONGEST for size in sizes)
        and math.prod(size for size in sizes if size) < _LONGEST
    ):
        raise ModelFolderError("an array has no proper shape.")
    return tuple(sizes)


def most_bytes(tree: Any) -> int:
    """Bytes that the arrays of a tree can take together: whatever looks like one counts.

    Examples
    --------
    >>> most_bytes({"tuple": [{"array": ["<f8", [2, 3], "C"]}, {"array": ["|b1", [7], "C"]}]})
    55
    """
    total, waiting = 0, [tree]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
            with contextlib.suppress(ModelFolderError):
                text, sizes, _ = _three(each)
                total += parse_dtype(text).itemsize * math.prod(parse_shape(sizes))
    return total


def _three(spec: Any) -> list[Any]:
    if not isinstance(spec, list) or len(spec) != 3:
        raise ModelFolderError("an array is a list of type, shape and order.")
    return spec


def _check_cells(flat: NDArray[Any]) -> None:
    """Refuse bytes that stand for no value: compiled code relies on that."""
    if flat.dtype.kind == "b" and flat.size and flat.view(np.uint8).max() > 1:
        raise ModelFolderError("an array of true and false holds other bytes.")
    if flat.dtype.kind == "U" and flat.size:
        codes = np.ascontiguousarray(flat).view(flat.dtype.byteorder.replace("|", "=") + "u4")
        if codes.max() > _LAST_CHARACTER:
            raise ModelFolderError("an array of texts holds numbers that are no characters.")
