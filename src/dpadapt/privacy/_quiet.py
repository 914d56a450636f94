"""Silence while private values are handled: what is warned, logged or printed may speak of them."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from threading import Lock

import numpy as np

__all__ = ["muted", "quiet"]


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
    undo.enter_context(redirect_stdout(_Nowhere()))
    undo.enter_context(redirect_stderr(_Nowhere()))
    undo.callback(logging.disable, logging.root.manager.disable)
    logging.disable(sys.maxsize)


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


_NO_WARNINGS, _MUTED = _Shared(_ignore_warnings), _Shared(_mute)


@contextmanager
def quiet() -> Iterator[None]:
    """No warning may speak of private values, no floating-point setting may raise on them."""
    with _NO_WARNINGS, np.errstate(all="ignore"):
        yield


@contextmanager
def muted() -> Iterator[None]:
    """Around foreign code: what it logs or prints may speak of private values, too."""
    with quiet(), _MUTED:
        yield
