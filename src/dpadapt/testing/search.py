"""Values that must not be found or upset anything, the search for them, and what a check expects.

That is said by ``require``, not by ``assert``, which ``python -O`` leaves out: a battery that
cannot fail would be worse than none.
"""

from __future__ import annotations

import functools
import io
import logging
import math
import re
import struct
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dpadapt import Private
from dpadapt.privacy import Hidden, Session

SENTINEL = 987654.321  # a private number that nothing else in a test is equal to
SECRET_TEXT = "zqx-secret-7781"  # the same for text
NAMES = ["alpha", "beta", "gamma"]
HOSTILE_ROWS = {
    "nan": [math.nan, math.nan, math.nan],
    "one nan": [math.nan, 0.5, -0.5],
    "inf": [math.inf, -math.inf, math.inf],
    "one inf": [0.1, -math.inf, 0.2],
    "huge": [1e300, -1e300, 1e300],
    "largest": [1.7976931348623157e308] * 3,
    "huge norm": [1e6, 0.0, 0.0],
    "the opposite": [-1e6, 0.0, 0.0],
    "negative zero": [-0.0, -0.0, -0.0],
    "denormal": [5e-324, -5e-324, 5e-324],
    "zero": [0.0, 0.0, 0.0],
    "sentinel": [SENTINEL, -SENTINEL, SENTINEL],
}
HOSTILE_LABELS = [math.nan, math.inf, -math.inf, 1e300, -1e300, -0.0, SENTINEL]
HOSTILE_CELLS = [None, SECRET_TEXT, b"\xff", [1, 2], {"a": 1}, 10**400, object(), pd.NaT, 1 + 2j]


def hostile_row(name: str, columns: int) -> Any:
    """A hostile row with as many columns as are needed."""
    return np.resize(np.array(HOSTILE_ROWS[name]), columns)


def require(holds: object, how: str) -> None:
    """Fail, with what is wrong, if a condition does not hold."""
    if not holds:
        raise AssertionError(how)


@dataclass
class Refusal:
    """The error that was raised."""

    error: BaseException | None = None


@contextmanager
def refused(
    kinds: type[BaseException] | tuple[type[BaseException], ...], pattern: str = "", what: str = ""
) -> Iterator[Refusal]:
    """Fail unless an error of some kind is raised, with a message that fits a pattern."""
    caught = Refusal()
    try:
        yield caught
    except kinds as error:
        caught.error = error
        if not re.search(pattern, str(error)):
            raise AssertionError(
                f"{what}: the message does not match {pattern!r}: {error}"
            ) from error
    else:
        raise AssertionError(f"{what or 'the call'} was not refused")


_ATOMS = (str, bytes, bytearray, int, float, complex, np.generic, np.ndarray)


def reachable(root: Any) -> Iterator[tuple[str, Any]]:
    """Everything that can be reached from an object, with the way to it.

    Goes through attributes, slots, containers, views of arrays, data frames, closures, defaults,
    bound methods, partial functions, running generators and data of the object's classes.
    """
    stack, seen = [("model", root)], {}
    while stack:
        path, thing = stack.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing  # kept, so that no identity is used twice
        yield path, thing
        stack += [(f"{path}{step}", part) for step, part in _parts(thing) if part is not None]


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, np.ndarray):
        yield ".base", thing.base
        if thing.dtype.hasobject:
            yield from ((f"[{i}]", cell) for i, cell in enumerate(thing.ravel().tolist()))
        return
    if isinstance(thing, (*_ATOMS, types.ModuleType, type)) or thing is None:
        return
    if isinstance(thing, (pd.DataFrame, pd.Series, pd.Index)):
        yield ".values", np.asarray(thing.to_numpy(dtype=object))
        for axis in ("index", "columns"):
            if not isinstance(thing, pd.Index):
                yield f".{axis}", getattr(thing, axis, None)
        return
    yield from _held(thing)
    yield "", getattr(thing, "__dict__", None)
    for cls in type(thing).__mro__:
        yield from _data_of_class(cls, thing)


def _held(thing: Any) -> Iterator[tuple[str, Any]]:
    """What containers hold, and what functions and generators keep."""
    if isinstance(thing, dict):
        for key, value in list(thing.items()):
            yield ".key", key
            yield f"[{key!r}]", value
    elif isinstance(thing, (list, tuple, set, frozenset)) or hasattr(thing, "popleft"):
        yield from ((f"[{i}]", part) for i, part in enumerate(list(thing)))
    elif isinstance(thing, types.FunctionType):
        yield ".defaults", (thing.__defaults__, thing.__kwdefaults__)
        for cell in thing.__closure__ or ():
            yield ".closure", _cell(cell)
    elif isinstance(thing, types.MethodType):
        yield ".__self__", thing.__self__
        yield ".__func__", thing.__func__
    elif isinstance(thing, functools.partial):
        yield ".partial", (thing.func, thing.args, thing.keywords)
    elif isinstance(thing, types.GeneratorType) and thing.gi_frame is not None:
        yield ".frame", dict(thing.gi_frame.f_locals)


def _data_of_class(cls: type, thing: Any) -> Iterator[tuple[str, Any]]:
    slots = vars(cls).get("__slots__", ())
    for name in (slots,) if isinstance(slots, str) else slots:
        yield f".{name}", getattr(thing, name, None)
    if cls.__module__.split(".")[0] not in ("builtins", "sklearn", "abc", "typing", "numpy"):
        for name, value in vars(cls).items():
            if isinstance(value, (np.ndarray, list, dict, set, pd.DataFrame)):
                yield f".{cls.__name__}.{name}", value


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet bound
        return None


def _reads_rows(kind: type) -> bool:
    """Whether a class, or one that it is made from, is of the part that reads private rows."""
    return any(base.__module__.startswith("dpadapt.privacy.rows.sources") for base in kind.__mro__)


@dataclass
class Secrets:
    """A private sample as something to look for."""

    X: Any
    y: Any = None
    hidden: list[np.ndarray] = field(default_factory=list)  # un-noised statistics
    _by_length: dict[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        frame = pd.DataFrame(self.X).apply(pd.to_numeric, errors="coerce")
        rows = frame.to_numpy(dtype=float)
        finite = np.where(np.isfinite(rows), rows, 0.0)
        vectors = [*rows, *rows.T]
        with np.errstate(all="ignore"):
            vectors += [finite.sum(axis=0), finite.mean(axis=0), finite.std(axis=0)]
            vectors += [np.abs(finite).max(axis=0), finite.max(axis=0), finite.min(axis=0)]
        vectors += [] if self.y is None else [np.asarray(self.y, dtype=float)]
        vectors += [np.asarray(value, dtype=float).ravel() for value in self.hidden]
        found: dict[int, list[np.ndarray]] = {}
        for vector in vectors:
            if vector.size > 1 and np.isfinite(vector).all() and np.ptp(vector) > 0:
                found.setdefault(vector.size, []).append(vector)
        self._by_length = {size: np.array(some) for size, some in found.items()}

    def check(self, thing: Any) -> None:
        """Fail if anything private can be reached from an object."""
        for path, part in reachable(thing):
            private = isinstance(part, (Private, Hidden, Session)) or _reads_rows(type(part))
            require(not private, f"{path} is a {type(part).__name__}")
            if isinstance(part, np.ndarray):
                self._check_array(path, part)
            elif isinstance(part, (bytes, bytearray)):
                self.check_bytes(bytes(part), path)
            elif isinstance(part, _ATOMS):
                self.check_text(f"{part!r} {part!s}", path)

    def _check_array(self, path: str, array: np.ndarray) -> None:
        if not array.size:
            return
        if array.dtype.kind in "biuf":
            self.check_bytes(np.ascontiguousarray(array, dtype="<f8").tobytes(), path)
            values = array.astype(float)
            for lines in (values.reshape(1, -1), np.atleast_2d(values), np.atleast_2d(values.T)):
                self._check_lines(path, lines.reshape(-1, lines.shape[-1]))
        elif not array.dtype.hasobject:
            self.check_bytes(array.tobytes(), path)

    def _check_lines(self, path: str, lines: np.ndarray) -> None:
        private = self._by_length.get(lines.shape[-1])
        if private is None or not len(lines):
            return
        for line in lines:
            size = 1e-9 * np.abs(private).max(axis=1)
            equal = np.abs(private - line).max(axis=1) <= size
            require(not equal.any(), f"{path} holds a private row, column or sum")

    def check_bytes(self, data: bytes, where: str) -> None:
        """Fail if the bytes hold the sentinel or the secret text."""
        marks = [struct.pack(form, SENTINEL) for form in ("<d", ">d", "<f", ">f")]
        marks += [SECRET_TEXT.encode(code) for code in ("utf-8", "utf-16-le", "utf-32-le")]
        marks += [b"987654.3"]
        require(not any(mark in data for mark in marks), f"{where} holds a private value")

    def check_text(self, text: str, where: str) -> None:
        """Fail if a text quotes the sentinel or the secret text."""
        for mark in ("987654", "9.87654", "9.88e+05", "9.877e+05", SECRET_TEXT):
            require(mark not in text, f"{where} quotes a private value")


@dataclass
class Said:
    """Everything that came out beside the result."""

    printed: str = ""
    logged: str = ""
    warned: str = ""

    @property
    def all(self) -> str:
        return "\n".join([self.printed, self.logged, self.warned])


class _Keeping(logging.Handler):
    """Keeps all of every record."""

    def __init__(self, records: list[str]) -> None:
        super().__init__(level=1)
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(f"{record.getMessage()} {record.__dict__!r}")


@contextmanager
def everything_said() -> Iterator[Said]:
    """Catch what is printed, logged (at any level) or warned."""
    said, out = Said(), io.StringIO()
    records: list[str] = []
    handler = _Keeping(records)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(1)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            redirect_stdout(out),
            redirect_stderr(out),
        ):
            warnings.simplefilter("always")
            yield said
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        said.printed = out.getvalue()
        said.logged = "\n".join(records)
        said.warned = "\n".join(f"{w.category.__name__}: {w.message!r}" for w in caught)


def exception_text(error: BaseException | None) -> str:
    """All text of an exception and of those behind it."""
    text = ""
    while error is not None:
        notes = getattr(error, "__notes__", ())
        text += f"{error}\n{error!r}\n{error.args!r}\n{notes!r}\n"
        cause = getattr(error, "cause", None)  # concurrent.futures keeps its own
        error = error.__cause__ or error.__context__ or (cause if cause is not error else None)
    return text
