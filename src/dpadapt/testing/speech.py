"""What a fit says beside its result."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass


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


def told(error: BaseException | None) -> str:
    """All text of an exception and of those behind it."""
    text = ""
    while error is not None:
        notes = getattr(error, "__notes__", ())
        text += f"{error}\n{error!r}\n{error.args!r}\n{notes!r}\n"
        cause = getattr(error, "cause", None)  # concurrent.futures keeps its own
        error = error.__cause__ or error.__context__ or (cause if cause is not error else None)
    return text
