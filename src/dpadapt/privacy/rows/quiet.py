"""Silence while private values are handled: what is warned, logged or printed may speak of them."""

from __future__ import annotations

import io
import logging
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from ..accounting.reviewed import READERS
from .errors import LET_THROUGH, unreadable

Result = TypeVar("Result")
_PACKAGE = Path(__file__).parents[1]
_READERS = {_PACKAGE.parent / each for each in READERS}


class _Shared:
    """A setting of the whole process that the first to enter makes and the last to leave undoes.

    Two sessions in two threads would otherwise restore each other's settings, for good.
    """

    def __init__(self, make: Callable[[ExitStack], None]) -> None:
        self._make, self._lock, self._inside, self._undo = make, Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._make(self._undo)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._undo.close()


def _ignore_warnings(undo: ExitStack) -> None:
    undo.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")


def _mute(undo: ExitStack) -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):  # held by a logger, say
        with suppress(AttributeError, TypeError):  # one of another kind keeps its voice
            if "write" not in vars(stream):
                vars(stream)["write"] = len
                undo.callback(vars(stream).pop, "write", None)
    undo.enter_context(redirect_stdout(_Nowhere()))
    undo.enter_context(redirect_stderr(_Nowhere()))
    for owner, name, nothing in _SPEAKING:
        undo.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, nothing)
    undo.callback(logging.disable, logging.root.manager.disable)
    logging.disable(sys.maxsize)


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


# where code speaks that does not ask for the standard output, or undoes that logging is disabled
_SPEAKING: tuple[tuple[Any, str, Any], ...] = (
    (sys, "__stdout__", _Nowhere()),
    (sys, "__stderr__", _Nowhere()),
    (logging.Logger, "callHandlers", lambda self, record: None),
)
_NO_WARNINGS, _MUTED = _Shared(_ignore_warnings), _Shared(_mute)


@contextmanager
def quiet() -> Iterator[None]:
    """No warning may speak of private values, no floating-point setting may raise on them.

    Examples
    --------
    >>> with quiet():
    ...     print(np.log(np.zeros(1)))
    [-inf]
    """
    with _NO_WARNINGS, np.errstate(all="ignore"):
        yield


@contextmanager
def muted() -> Iterator[None]:
    """Around foreign code: what it logs or prints may speak of private values, too.

    Examples
    --------
    >>> with muted():
    ...     print("a private value")
    """
    with quiet(), _MUTED:
        yield


def withhold_errors(compute: Callable[[], Result], *passing: type[BaseException]) -> Result:
    """Compute something from private values; nothing of them is told, also if it fails.

    Parameters
    ----------
    compute : callable
    *passing : exception classes
        Errors that are raised as they are where this package raised them, because public facts
        alone decide about its own. What others raise under the same name is withheld.

    Examples
    --------
    >>> withhold_errors(lambda: 1 + 1)
    2
    >>> withhold_errors(lambda: {}["a secret"])
    Traceback (most recent call last):
    ...
    dpadapt.privacy.rows.errors.PrivacyError: the private rows could not be read or reduced \
(KeyError); the reason is withheld, because it may depend on private values. Nothing was released.
    """
    failure: BaseException
    with quiet():
        try:
            return compute()
        except LET_THROUGH as error:
            error.args = ()  # an exit says a number, and no text
            error.__cause__ = error.__context__ = None  # nor what was handled when it came
            vars(error).pop("__notes__", None)  # the number of a signal stays
            if isinstance(error, SystemExit) and not isinstance(error.code, int):
                error.code = 1
            raise
        except BaseException as error:
            ours = isinstance(error, passing) and raised_here(error)
            failure = error.with_traceback(None) if ours else unreadable(error)
            failure.__cause__ = failure.__context__ = None  # nor what was handled when it came
    raise failure  # out here, so that it does not carry the first error along


def raised_here(error: BaseException) -> bool:
    """Whether a file of this package raised it, and not somebody's own statistic or learner.

    Or one of the papers that is listed as a reader of private rows.

    Examples
    --------
    >>> raised_here(ValueError("of somebody's own"))
    False
    """
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    last = Path(frames[-1]) if frames else None
    return last is not None and (last.is_relative_to(_PACKAGE) or last in _READERS)
