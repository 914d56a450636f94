"""Signals that ask a command to end: at once while nothing is paid for, and then not before it is.

An interrupt from the keyboard (SIGINT), a batch queue or a container that ends (SIGTERM), a
terminal that is gone (SIGHUP): all end a command alike, with the exit code 128 + the number of the
signal. From the moment in which a ledger is charged they wait until what was paid for is kept;
another signal changes nothing about that. Only SIGKILL ends a command at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end.

    Examples
    --------
    >>> Stopped(signal.SIGTERM).code
    143
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def code(self) -> int:
        """Exit code, as shells know it."""
        return 128 + self.number


class _Ear:
    """Whether signals must wait, and the first that does."""

    def __init__(self) -> None:
        self.paid: Callable[[], bool] = lambda: False
        self.tell: Callable[[str], None] = lambda text: None
        self.number: int | None = None

    def hear(self, number: int, frame: FrameType | None) -> None:
        if not self.paid():
            raise Stopped(number)
        if self.number is None:
            self.number = number
            self.tell(
                f"{signal.Signals(number).name}: the ledger is charged already, so this ends as "
                "soon as what was paid for is kept. Nothing but SIGKILL ends it sooner."
            )


_ear = _Ear()


@contextmanager
def heard() -> Iterator[None]:
    """Let signals end what runs inside, by :class:`Stopped`; one that is ignored stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}
    try:
        for name in _SIGNALS:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, _ear.hear)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def not_before(paid: Callable[[], bool], tell: Callable[[str], None]) -> Iterator[None]:
    """Let signals wait for the end of what runs inside, from the moment in which ``paid()`` holds.

    What raises inside is not replaced by the signal.
    """
    _ear.paid, _ear.tell = paid, tell
    try:
        yield
    finally:
        number, _ear.number = _ear.number, None
        _ear.paid = lambda: False
    if number is not None:
        raise Stopped(number)
