"""Variables of modules, classes and threads that foreign code reaches, put back after each row.

A copy of a function has its own objects, and still the variables of the module it was written in
and those of its classes: a dictionary there that grows by every row would number one row by those
before it. So whatever code names, and what is inside, is noted before the first row, and is the
same again after each.
"""

from __future__ import annotations

import random
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import CodeType, FunctionType, GeneratorType, ModuleType
from typing import Any

import numpy as np

__all__ = ["Variables"]

# Whose own variables hold nothing of a row; what somebody keeps in *their* objects is looked at.
_LIBRARIES = frozenset(
    {*sys.stdlib_module_names, "dpadapt", "numpy", "scipy", "sklearn", "pandas", "torch"}
) - {"__main__"}
_WITH_STATE = ("sklearn", "torch")  # objects of theirs hold what they learned among their variables
_NOTHING = object()
_CACHE = type(cache(len))
_OF_CLASS = ("__dict__", "__weakref__", "__doc__", "_abc_impl")
_HELD = (list, set, deque, dict)


class Variables:
    """What a function's modules and classes hold now.

    Parameters
    ----------
    parts : iterable
        What the function is made of; its own state is not noted, only where it comes from.

    Examples
    --------
    >>> class Counting:
    ...     seen = []
    >>> Counting.__module__ = "somebody's"
    >>> kept = Variables([Counting()])
    >>> Counting.seen.append(1); Counting.last = 2
    >>> kept.put_back()
    >>> Counting.seen, hasattr(Counting, "last")
    ([], False)
    """

    def __init__(self, parts: Iterable[Any]) -> None:
        self._undo: list[Callable[[], None]] = []
        self._seen: dict[int, Any] = {}  # held, so that no other object gets their address
        self._noted: dict[int, Any] = {}
        for part in parts:
            self._code(part)

    def put_back(self) -> None:
        """Make everything what it was."""
        for undo in self._undo:
            undo()

    def _code(self, part: Any) -> None:
        """Note variables of the code that an object, a class or a function runs."""
        ahead = [part]
        while ahead:
            each = ahead.pop()
            if id(each) in self._seen:
                continue
            self._seen[id(each)] = each
            if isinstance(each, FunctionType):
                ahead.extend(self._of_function(each))
            elif isinstance(each, type):
                ahead.extend(self._of_class(each))
            else:
                ahead.append(type(each))
                inner = ("__func__", "__wrapped__", "fget")  # of methods, caches and properties
                found = (_plain_attribute(each, name) for name in inner)
                ahead.extend(one for one in found if isinstance(one, FunctionType))

    def _of_function(self, function: FunctionType) -> Iterator[Any]:
        room, names = function.__globals__, list(_names(function.__code__))
        if _library(room.get("__name__")):
            return
        modules = [room[name] for name in names if isinstance(room.get(name), ModuleType)]
        rooms = [room, *(vars(each) for each in modules if not _library(each.__name__))]
        for each in rooms:
            held = {name: each.get(name, _NOTHING) for name in names}
            self._undo.append(lambda each=each, held=held: _bind(each, held))  # type: ignore[misc]
            for value in held.values():
                yield from self._values(value)

    def _of_class(self, kind: type) -> Iterator[Any]:
        yield from (base for base in kind.__mro__ if base is not kind)
        if _library(kind.__module__):
            return
        held = dict(vars(kind))
        self._undo.append(lambda: _bind_class(kind, held))
        for value in held.values():
            yield from self._values(value)

    def _values(self, value: Any) -> Iterator[Any]:
        """Note what a variable holds, all the way down; yield what may run code."""
        ahead = [value]
        while ahead:
            each = ahead.pop()
            if id(each) in self._noted:
                continue
            self._noted[id(each)] = each
            if isinstance(each, GeneratorType):
                raise TypeError(
                    "a generator in a variable of a module or a class cannot be put back, and code "
                    "that is not ours must find the same state for every private row."
                )
            yield each
            ahead.extend(self._inside(each))

    def _inside(self, each: Any) -> list[Any]:
        if isinstance(each, (tuple, frozenset)):
            return list(each)
        inside: list[Any] = []
        if isinstance(each, _HELD):
            was = each.copy()
            self._undo.append(lambda: _fill(each, was))
            inside = [*was, *(was.values() if isinstance(was, dict) else ())]
        elif isinstance(each, np.ndarray):
            cells = each.copy()
            self._undo.append(lambda: _write(each, cells))
        elif isinstance(each, np.random.Generator):
            bits = each.bit_generator
            state = bits.state
            self._undo.append(lambda: setattr(bits, "state", state))
        elif isinstance(each, random.Random):
            drawn = each.getstate()
            self._undo.append(lambda: each.setstate(drawn))
        elif isinstance(each, _CACHE):
            self._undo.append(each.cache_clear)
        elif (torch := sys.modules.get("torch")) and isinstance(each, torch.Tensor):
            numbers = each.detach().clone()
            self._undo.append(lambda: _write_tensor(each, numbers))
        kind: Any = type(each)
        if isinstance(each, (type, ModuleType, FunctionType)) or not _has_state(kind):
            return inside
        held = dict(getattr(each, "__dict__", {}))  # of a thread, its own
        self._undo.append(lambda: _bind(getattr(each, "__dict__", {}), held, whole=True))
        return [*inside, *held.values()]


def _plain_attribute(part: Any, name: str) -> Any:
    try:
        return getattr(part, name, None)
    except Exception:
        return None


def _has_state(kind: Any) -> bool:
    home = str(kind.__module__).partition(".")[0]
    return issubclass(kind, threading.local) or home in _WITH_STATE or not _library(home)


def _library(name: Any) -> bool:
    return str(name).partition(".")[0] in _LIBRARIES


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _bind(room: dict[str, Any], held: dict[str, Any], *, whole: bool = False) -> None:
    for name in [name for name in room if name not in held] if whole else ():
        del room[name]
    for name, value in held.items():
        if room.get(name, _NOTHING) is not value:
            if value is _NOTHING:
                del room[name]
            else:
                room[name] = value


def _bind_class(kind: type, held: dict[str, Any]) -> None:
    now = dict(vars(kind))
    for name in now.keys() | held.keys():
        if name not in _OF_CLASS and now.get(name, _NOTHING) is not held.get(name, _NOTHING):
            if name in held:
                setattr(kind, name, held[name])
            else:
                delattr(kind, name)


def _fill(room: Any, was: Any) -> None:
    """The same things in the same order, compared by identity: their own code is not asked."""
    same = len(room) == len(was) and all(a is b for a, b in zip(room, was, strict=True))
    if same and isinstance(room, dict):
        same = all(a is b for a, b in zip(room.values(), was.values(), strict=True))
    if not same:
        room.clear()
        (room.extend if isinstance(room, (list, deque)) else room.update)(was)


def _write(room: Any, cells: Any) -> None:
    if room.flags.writeable and room.shape == cells.shape:
        np.copyto(room, cells, casting="unsafe")


def _write_tensor(room: Any, numbers: Any) -> None:
    with sys.modules["torch"].no_grad():
        room.copy_(numbers)
