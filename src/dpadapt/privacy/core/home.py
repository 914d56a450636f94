"""Whatever counts releases belongs to one process: a fork would copy the count, and pay nothing."""

from __future__ import annotations

import os

from ..rows.errors import PrivacyError

_FORKS: list[None] = []  # one for each process from which this one was forked
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _FORKS.append(None))


class Home:
    """The process in which something was opened, and the only one in which it may be used.

    A process is told by its id and by the forks before it: ids are used again.

    Parameters
    ----------
    what : str
        What was opened, for the error.

    Examples
    --------
    >>> Home("the session").check()
    """

    __slots__ = ("_process", "_what")

    def __init__(self, what: str) -> None:
        self._what, self._process = what, here()

    def check(self) -> None:
        """Raise in any other process."""
        if self._process != here():
            raise PrivacyError(
                f"{self._what} was opened in another process and works in that one only: a fork "
                "copies the count of what was released, but pays for nothing. Open one in this "
                "process, with a charge of its own, or ask the process that has it."
            )


def here() -> tuple[int, int]:
    """Return what tells this process from all others: its id, and the forks before it."""
    return os.getpid(), len(_FORKS)
