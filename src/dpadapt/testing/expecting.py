"""What a check expects: a condition that holds, an error that is raised.

Not ``assert``, which ``python -O`` leaves out: a battery that cannot fail would be worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


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
