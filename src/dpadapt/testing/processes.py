"""One process: a fork copies the count of releases, and pays for nothing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from dpadapt import PrivacyError

from .expecting import require
from .subject import Subject


class Forking:
    """A ledger that forks when it is charged: the child goes on with what the parent has paid."""

    def __init__(self) -> None:
        self._told, self._tells = os.pipe()
        self._child: int | None = None

    def charge(self, events: Any, label: str) -> None:
        if self._child is None:
            self._child = os.fork()

    def __deepcopy__(self, memo: Any) -> Forking:
        return self

    def outcome(self, call: Callable[[], Any]) -> str:
        """What became of the call in the child; in the parent it must end well."""
        said = "went on"
        try:
            call()
        except PrivacyError:
            said = "refused"
        except BaseException as error:
            if self._child != 0:
                raise
            said = f"failed: {error!r}"
        if self._child == 0:
            os.write(self._tells, said.encode())
            os._exit(0)
        os.close(self._tells)
        require(said == "went on", "the fit was refused in its own process")
        require(self._child is not None, "nothing was charged")
        os.waitpid(self._child or 0, 0)
        with os.fdopen(self._told) as pipe:
            return pipe.read()


def check_a_forked_process_cannot_go_on_with_a_fit(subject: Subject) -> None:
    """A fit that has been paid for in one process cannot be finished in another one as well."""
    if not hasattr(os, "fork"):
        return
    ledger = Forking()
    model = subject.make(noise="secure", random_state=None, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that forks and threads do not go together
        said = ledger.outcome(lambda: subject.fit(model, subject.private()))
    require(said == "refused", f"the fit in the forked process {said}")
