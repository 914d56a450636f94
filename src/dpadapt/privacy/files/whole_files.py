"""Files that are there whole or not at all: one draft, one turn, one rename."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["draft_of"]

_DRAFT = ".new"


@contextlib.contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Writers of new files in one folder take turns, and may remove what a killed one left."""
    if os.name != "posix":  # a file that is open is neither renamed nor removed there
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def draft_of(real: Path, mode: int) -> Iterator[Path]:
    """An empty file beside a place, gone at the end unless it was renamed; needs :func:`turn`.

    Its name is always the same: what a killed process left is removed by the next one. So no file
    that matters may have such a name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with draft_of(Path(folder) / "budget.db", 0o600) as draft:
    ...         print(draft.name, os.path.getsize(draft))
    ...     print(draft.exists())
    .budget.db.new 0
    False
    """
    if real.name.startswith(".") and real.name.endswith(_DRAFT):
        raise ValueError(f"{real}: names like .NAME{_DRAFT} are for drafts; choose another one.")
    draft = real.with_name(f".{real.name}{_DRAFT}")
    _remove(draft)
    try:
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))
        yield draft
    finally:
        _remove(draft)


def _remove(draft: Path) -> None:
    draft.unlink(missing_ok=True)
    draft.with_name(draft.name + "-journal").unlink(missing_ok=True)


def sync(folder: Path) -> None:
    """Make sure that a new name survives a crash of the machine."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
