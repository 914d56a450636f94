"""Files that are there whole or not at all: one draft, one turn, one rename."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

_DRAFT = ".new"
_WAIT, _PATIENCE, _LONGEST = "DPADAPT_WAIT", 120.0, 86_400.0  # seconds
_PAUSE = 0.02


@contextlib.contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Writers of new files in one folder take turns, and may remove what a killed one left."""
    if os.name != "posix":  # a file that is open is neither renamed nor removed there
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        _lock(handle, folder, patience())
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path, seconds: float) -> None:
    """Lock a folder; anybody who can read it may have locked it, and need not let it go."""
    import fcntl

    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                reason = f"another process has locked this folder (waited {seconds:g} s)"
                raise TimeoutError(errno.ETIMEDOUT, reason, str(folder)) from None
            time.sleep(_PAUSE)


def patience() -> float:
    """Seconds to wait for a lock that another process holds: ``DPADAPT_WAIT``, or 120.

    Examples
    --------
    >>> patience()
    120.0
    """
    said = os.environ.get(_WAIT, "")
    try:
        seconds = float(said or _PATIENCE)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _LONGEST:
        raise ValueError(
            f"{_WAIT} must be a number of seconds between 0 and {_LONGEST:g}; got {said!r}."
        )
    return seconds


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Another name to write a file under; at the end it is renamed: there whole, or as before.

    The name is new, so that nobody has to be waited for; a process that is killed leaves it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "a.csv") as draft:
    ...         size = draft.write_text("b")
    ...     os.listdir(folder)
    ['a.csv']
    """
    real = Path(os.path.realpath(path))
    if real.exists() and not real.is_file():  # a terminal, a pipe: nothing to replace
        yield real
        return
    draft = real.with_name(f".{real.name[:100]}.{secrets.token_hex(4)}{_DRAFT}")
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield draft
        sync(draft)
        os.replace(draft, real)
        sync(real.parent)
    finally:
        _remove(draft)


@contextlib.contextmanager
def draft_of(real: Path, mode: int) -> Iterator[Path]:
    """An empty file beside a place, gone at the end unless it was renamed.

    It needs :func:`writer_lock`.

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


def sync(place: Path) -> None:
    """Make sure that a file, or a new name in a folder, survives a crash of the machine."""
    if os.name != "posix":
        return
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
