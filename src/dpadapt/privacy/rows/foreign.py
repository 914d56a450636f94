"""Code that is not ours meets private rows here: one row a call, so that no row can touch another.

A transformer, a model, a kernel or a loss that somebody else wrote may look at all rows it is
given: an imputer searches neighbours among them, a factorisation stops by a sum over them, a
matrix product rounds by their number. No trial on public rows finds all of that. So a map is given
a whole block only if everything that it is made of is known to be row-wise (:mod:`.row_wise`); any
other is called with *one* row, or with two copies of it where it takes no single row. What it says
of a row is then a function of this row alone, whatever it does.

- It gets fresh state for every row: a copy of its objects and of the cells of its closures, and
  the same state of the global random generators. What a row leaves behind is thrown away with the
  copy, so that nothing of it stays in a model. It runs in a context of its own, in which numpy's
  and decimal's settings and all context variables are; warning filters, the environment,
  scikit-learn's settings, torch's default type and whether it follows gradients are put back after
  each row. Variables of a module, of a class or of a thread, also those of functions that it finds
  there, other settings of the process, shared memory and what native code keeps are not ours to
  copy: code that keeps rows *there* keeps them. The guarantee says so by name (:func:`note`).
- It gets clean memory: an array that it makes and does not fill (``np.empty``, ``where=`` without
  ``out=``, ``torch.empty``) holds the same for every row, and not what the row before left there.
- A row on which it fails is a row without a value; whoever calls says what that means.
- What it warns, prints or logs through Python goes nowhere. What it writes past Python, to a file
  descriptor, is not ours to hold back.
"""

from __future__ import annotations

import ctypes
import decimal
import gc
import os
import random
import re
import signal
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from copy import copy, deepcopy
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache, partial
from importlib import import_module
from pathlib import PosixPath, PurePosixPath, PureWindowsPath
from threading import RLock, current_thread, main_thread
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from uuid import UUID

import numpy as np
import sklearn

from dpadapt._types import BoolArray

from .quiet import muted
from .row_wise import closed, content, names_of_unknown, parts_of, row_wise
from .total import Results, by_rows, taken

Finish = Callable[[Any, int], Results]

_ONE_AT_A_TIME = RLock()  # the generators are of the whole process
_FRESH = 20_261_118  # the seed that every row finds in the global generators


_NOTED: ContextVar[set[str] | None] = ContextVar("names of foreign code", default=None)


@contextmanager
def noted(names: set[str]) -> Iterator[None]:
    """Meanwhile, names of foreign code that sees rows are added to a set.

    Examples
    --------
    >>> names = set()
    >>> with noted(names):
    ...     note(abs)
    >>> names
    {'builtin_function_or_method'}
    """
    before = _NOTED.set(names)
    try:
        yield
    finally:
        _NOTED.reset(before)


def note(function: Any) -> None:
    """Say that a map that is not known to be row-wise sees rows, or has seen them.

    Examples
    --------
    >>> note(abs)  # nobody listens
    """
    names = _NOTED.get()
    if names is not None:
        names |= names_of_unknown(function)


class Alone:
    """A function of foreign code, which finds the same state at every call and keeps nothing.

    Parameters
    ----------
    function : callable
        Never called itself, only its copies.

    Examples
    --------
    >>> seen = []
    >>> alone = Alone(partial(lambda seen, x: seen.append(x) or len(seen), seen))
    >>> alone.fresh()("a"), alone.fresh()("b"), seen
    (1, 1, [])
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._parts = list(parts_of(function))  # held, so that no other object gets their address
        self._shared = {id(part): part for part in self._parts if _is_shared(part)}
        self._functions = [part for part in self._parts if _has_cells(part)]
        self._bound = [part for part in self._parts if isinstance(part, _BOUND)]
        stateless = (tuple, frozenset, FunctionType)
        self._state = any(
            id(part) not in self._shared and type(part) not in stateless for part in self._parts
        )

    def check(self) -> None:
        """Refuse what cannot be copied, before any row is read."""
        try:
            copied = deepcopy(self._function, self._memo())
            kind, why = self._same_in(copied), "it is its own copy"
        except Exception as error:
            kind, why = self._function, type(error).__name__
        if kind is not None:
            raise TypeError(
                f"a {type(kind).__name__} cannot be copied ({why}), and code that is not ours must "
                "find the same state for every private row: give it without open files, locks and "
                "handles."
            )

    def _same_in(self, copied: Any) -> Any:
        """What a copy still shares with the original and can hold something; None if nothing."""
        theirs = list(parts_of(copied))
        ours, own = {id(part) for part in self._parts}, {id(part) for part in theirs}
        plain = (part for part in self._parts if type(part) is FunctionType and _is_constant(part))
        ours -= {id(vars(part)) for part in plain}  # attributes that a function does not have
        ours -= {id(each) for part in self._shared.values() for each in parts_of(part)}
        for part in theirs:
            if isinstance(part, weakref.ref):
                held = part()
                if held is not None and id(held) not in own and not _is_constant(held):
                    return part
            elif id(part) in ours and not _is_constant(part):
                return part
        return None

    def fresh(self) -> Callable[..., Any]:
        """The function with the state it was given in."""
        if not (self._state or self._functions):
            return self._function
        function: Callable[..., Any] = deepcopy(self._function, self._memo())
        return function

    def _memo(self) -> dict[int, Any]:
        """What ``deepcopy`` would share: functions with cells, caches, methods that are bound."""
        memo = dict(self._shared)
        made = [(each, _emptied(each)) for each in self._functions]
        memo |= {id(old): new for old, new in made}
        for each in self._bound:
            memo[id(each)] = _bound_again(each, memo)
        for old, new in made:
            for cell, own in zip(old.__closure__ or (), new.__closure__ or (), strict=True):
                own.cell_contents = deepcopy(content(cell), memo)
            new.__defaults__ = deepcopy(old.__defaults__, memo)
            new.__kwdefaults__ = deepcopy(old.__kwdefaults__, memo)
            vars(new).update(deepcopy(vars(old), memo))
        return memo

    def on(self, arguments: tuple[Any, ...], finish: Callable[[Any], Any]) -> Any:
        """What the function makes of arguments of its own, finished; None where it fails."""
        _same_chance()
        try:
            return copy_context().run(lambda: finish(self.fresh()(*arguments)))
        except BaseException:  # it may depend on a value: it must stay with its row
            return None


_CACHE = type(cache(len))
_PATHS = (PosixPath, PurePosixPath, PureWindowsPath)
_CONSTANT: tuple[type, ...] = (tuple, frozenset, CodeType, re.Pattern, Fraction, UUID, *_PATHS)
_OF_NUMPY = (np.ufunc, type(np.inner))  # its functions
_BOUND = (MethodType, BuiltinFunctionType, _CACHE)


def _is_shared(part: Any) -> bool:
    """Modules, classes and the core's own; a built-in function that has nobody to act on."""
    alone = isinstance(part, BuiltinFunctionType) and _actor(part) is None
    return alone or closed(part) or isinstance(part, (ModuleType, type, *_OF_NUMPY, Enum))


def _actor(part: Any) -> Any:
    actor = getattr(part, "__self__", None)
    return None if isinstance(actor, (ModuleType, type)) else actor


def _has_cells(part: Any) -> bool:
    if not isinstance(part, FunctionType):
        return False
    return bool(part.__closure__ or part.__defaults__ or part.__kwdefaults__ or vars(part))


def _is_constant(part: Any) -> bool:
    """Whether an object cannot hold anything that it did not hold before."""
    if _is_shared(part) or isinstance(part, (np.generic, np.dtype)):
        return True
    kind = type(part)
    if kind is FunctionType:
        return not _has_cells(part)
    return kind in _CONSTANT or kind.__module__ in ("datetime", "decimal", "torch")


def _bound_again(part: Any, memo: dict[int, Any]) -> Any:
    """The same method of a copy, or the same cache, empty, of a fresh function."""
    if isinstance(part, _CACHE):
        own = memo.get(id(part.__wrapped__), part.__wrapped__)
        return lru_cache(**part.cache_parameters())(own)
    if isinstance(part, MethodType):
        return MethodType(memo.get(id(part.__func__), part.__func__), deepcopy(part.__self__, memo))
    actor = _actor(part)
    return part if actor is None else getattr(deepcopy(actor, memo), part.__name__)


def _emptied(function: FunctionType) -> FunctionType:
    cells = tuple(CellType() for _ in function.__closure__ or ())
    return FunctionType(
        function.__code__, function.__globals__, function.__name__, None, cells or None
    )


class _Allocator(ctypes.Structure):
    """numpy's ``PyDataMemAllocator``: what it asks for the memory of arrays."""

    _fields_ = (
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


class _Handler(ctypes.Structure):
    """numpy's ``PyDataMem_Handler``."""

    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("by", _Allocator))


_SET_HANDLER, _GET_HANDLER = 304, 305  # places in numpy's C interface, fixed since numpy 1.22
_NAME = b"mem_handler"


@cache
def _zeroing() -> tuple[Callable[[Any], Any], Any, _Handler]:
    """How numpy's handler is set, and one that gives arrays memory of zeros.

    It is numpy's own, but for ``malloc(context, size)``, which is C's ``calloc(1, size)``: the
    context is 1, and the others do not read it.
    """
    core = import_module("numpy._core._multiarray_umath")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype = ctypes.py_object
    capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    table = ctypes.cast(pointer(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    change = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
    now = ctypes.PYFUNCTYPE(ctypes.py_object)(table[_GET_HANDLER])()
    usual = ctypes.cast(pointer(now, _NAME), ctypes.POINTER(_Handler)).contents.by
    zeros = ctypes.cast(ctypes.CDLL(None).calloc, ctypes.c_void_p)
    own = _Allocator(1, zeros, usual.calloc, usual.realloc, usual.free)
    handler = _Handler(b"zeros", 1, own)  # arrays that live on need it: it is never freed
    return change, capsule(ctypes.addressof(handler), _NAME, None), handler


@contextmanager
def _clean_memory() -> Iterator[None]:
    """New arrays of numpy and torch, in this thread, hold nothing of older ones."""
    change, zeros, _ = _zeroing()
    torch = sys.modules.get("torch")
    before = change(zeros)
    try:
        if torch is None:
            yield
            return
        was = torch.are_deterministic_algorithms_enabled()
        warn = torch.is_deterministic_algorithms_warn_only_enabled()
        fills = torch.utils.deterministic.fill_uninitialized_memory
        try:
            torch.use_deterministic_algorithms(True, warn_only=True)
            torch.utils.deterministic.fill_uninitialized_memory = True
            yield
        finally:
            torch.utils.deterministic.fill_uninitialized_memory = fills
            torch.use_deterministic_algorithms(was, warn_only=warn)
    finally:
        change(before)


@contextmanager
def _chances() -> Iterator[Callable[[], None]]:
    """One thread at a time, with clean memory; the generators are given back as they were.

    What is yielded is called after each row: it puts settings back, and ends the work if a signal
    asked for that.
    """
    with _ONE_AT_A_TIME, _clean_memory(), _signals() as raised:
        torch = sys.modules.get("torch")
        python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
        drawn = None if torch is None else torch.get_rng_state()
        settings = _Settings()
        settings.put_back()  # so that the first row finds what the others do

        def after() -> None:
            settings.put_back()
            if raised:
                raise raised[0]

        try:
            yield after
        finally:
            gc.collect(1)  # what a row left in a circle may speak when it goes
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002
            if torch is not None:
                torch.set_rng_state(drawn)


@contextmanager
def _signals() -> Iterator[list[BaseException]]:
    """What handlers of signals raise meanwhile: the same, raised by foreign code, is a failure."""
    raised: list[BaseException] = []

    def noting(handler: Any, number: int, frame: Any) -> None:
        try:
            handler(number, frame)
        except BaseException as error:
            raised.append(copy(error))  # as it was before anybody wrote into it
            raise

    before = {}
    if current_thread() is main_thread():
        before = {number: signal.getsignal(number) for number in signal.valid_signals()}
        before = {number: handler for number, handler in before.items() if callable(handler)}
    for number, handler in before.items():
        signal.signal(number, partial(noting, handler))
    try:
        yield raised
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Settings:
    """Settings of the process or the thread that one row must not change for the next."""

    def __init__(self) -> None:
        self._filters = list(warnings.filters)
        self._variables = dict(_environment())
        self._scikit, self._decimal = sklearn.get_config(), decimal.getcontext().copy()
        self._torch = sys.modules.get("torch")
        if self._torch is not None:
            self._type, self._grad = self._torch.get_default_dtype(), self._torch.is_grad_enabled()

    def put_back(self) -> None:
        if warnings.filters != self._filters:
            warnings.resetwarnings()
            warnings.filters.extend(self._filters)  # type: ignore[attr-defined]
        if _environment() != self._variables:
            os.environ.clear()
            os.environ.update({os.fsdecode(k): os.fsdecode(v) for k, v in self._variables.items()})
        decimal.setcontext(self._decimal.copy())
        if sklearn.get_config() != self._scikit:
            sklearn.set_config(**self._scikit)
        if self._torch is not None:
            if self._torch.get_default_dtype() != self._type:
                self._torch.set_default_dtype(self._type)
            if self._torch.is_grad_enabled() != self._grad:
                self._torch.set_grad_enabled(self._grad)


def _environment() -> Any:
    """Variables of the environment as they are kept; reading them one by one takes long."""
    return getattr(os.environ, "_data", os.environ)


def _same_chance() -> None:
    random.seed(_FRESH)
    np.random.seed(_FRESH)  # noqa: NPY002
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(_FRESH)


def apply(
    function: Callable[..., Any], tables: tuple[Any, ...], n_rows: int, finish: Finish
) -> tuple[Results | None, BoolArray]:
    """What a map makes of rows, and which rows it fails on; None if it fails on all.

    One that is known to be row-wise is given all rows together, any other one row a call.

    Parameters
    ----------
    function : callable
        Of tables (or columns, or None) with a row for each row.
    tables : tuple
        What it is given; copies of it.
    n_rows : int
    finish : callable
        From what the function returns, and the number of rows it was given, to arrays with one row
        each, or None; it raises if the function gave the wrong shape.

    Examples
    --------
    >>> def centred(X):  # of one row, nothing is left
    ...     return X - X.mean(axis=0)
    >>> apply(centred, (np.array([[1.0], [5.0]]),), 2, lambda found, rows: (found,))
    ((array([[0.],
           [0.]]),), array([False, False]))
    """

    def given(places: Any) -> tuple[Any, ...]:
        found = (taken(table, places) for table in tables)
        return tuple(each.copy() if hasattr(each, "copy") else each for each in found)

    with muted():
        if row_wise(function):

            def call(places: Any) -> Results:
                return finish(function(*given(places)), n_rows if places is None else len(places))

            return by_rows(call, n_rows)
        note(function)
        alone, results, failed = Alone(function), None, np.ones(n_rows, dtype=bool)
        alone.check()
        with _chances() as after:
            for i in range(n_rows):
                row = None
                for copies in (1, 2):  # a function may take no single row
                    if row is None:
                        own = given(np.full(copies, i))
                        row = alone.on(own, partial(_finished, finish, copies))
                        after()
                if row is None:
                    continue
                if results is None:
                    results = tuple(_room(each, n_rows) for each in row)
                if not _fits(results, row):  # of a shape of its own: nothing is said of it
                    continue
                for room, each in zip(results, row, strict=True):
                    if room is not None:
                        room[i] = each[0]
                failed[i] = False
        return results, failed


def _finished(finish: Finish, rows: int, found: Any) -> Results:
    """Plain numbers, made here: what cannot be read as one fails with its row, and not later."""
    parts = finish(found, rows)
    return tuple(None if each is None else np.array(each, dtype=np.float64) for each in parts)


def _fits(results: Results, row: Results) -> bool:
    """Whether a row has the parts and the shapes of the others."""
    if len(results) != len(row):
        return False
    both = zip(results, row, strict=True)
    return all(np.shape(a)[1:] == np.shape(b)[1:] and (a is None) == (b is None) for a, b in both)


def _room(row: Any, rows: int) -> Any:
    """For all rows, of one type whatever row came first."""
    return None if row is None else np.zeros((rows, *row.shape[1:]))


def apply_to_pairs(
    kernel: Callable[[Any, Any], Any], A: Any, B: Any, finish: Callable[[Any, tuple[int, int]], Any]
) -> Any:
    """Values of a kernel for every row of A with every row of B.

    One that is known to be row-wise is given both tables, any other one pair of rows a call, and
    its value is 0 for a pair on which it fails: a value is a function of its two rows alone.

    Parameters
    ----------
    kernel : callable
        From two tables to a value for each pair.
    A, B : table
        Arrays, frames, sparse matrices.
    finish : callable
        From what the kernel returns, and the shape it must have, to an array of it.

    Examples
    --------
    >>> def inverse(A, B):
    ...     return [[1 / (a * b) for b in B.tolist()] for a in A.tolist()]
    >>> def made(values, shape):
    ...     return np.reshape(values, shape)
    >>> apply_to_pairs(inverse, np.array([2, 0, 4]), np.array([1, 0]), made)
    array([[0.5 , 0.  ],
           [0.  , 0.  ],
           [0.25, 0.  ]])
    """
    rows, columns = int(A.shape[0]), int(B.shape[0])
    with muted():
        if row_wise(kernel):
            return finish(kernel(A.copy(), B.copy()), (rows, columns))
        note(kernel)
        alone, values = Alone(kernel), np.zeros((rows, columns))
        left, right = ([T[i : i + 1] for i in range(len_)] for T, len_ in ((A, rows), (B, columns)))
        alone.check()
        with _chances() as after:
            for i in range(rows):
                for j in range(i + 1 if A is B else columns):
                    pair = left[i].copy(), right[j].copy()
                    found = alone.on(pair, lambda value: float(finish(value, (1, 1))[0, 0]))
                    after()
                    values[i, j] = 0.0 if found is None else found
    return values if A is not B else np.tril(values) + np.tril(values, -1).T
