"""Where a SQLite file is at home: one file, in one folder, under one name, since one moment.

SQLite locks the file itself, whatever name it was opened by; but it finds the journal that undoes
a half-written transaction by the *name* of the file. Under a second name (a hard link, a file that
is mounted by itself into a container, a new name after a crash) that journal is not seen, and
rolling it back later would undo what was written meanwhile. So a ledger, and the secret state of a
predictor, write down the number of their file, the number of their folder, their name and the
moment the file was made, and are refused anywhere else. Who mounts or links the *folder* sees the
same four facts, and the same journal. Copies are noticed by the same means.

A file is only ever written to where it is at home. So a journal beside a file is its own exactly
if the home in the file is this place; that is read as it is on disk, before SQLite may undo
anything, and no transaction but the first one writes the page that it is on.

The numbers are inodes. Devices are left out, because their numbers change when a machine starts
again; within one device inodes are unique, and a file on another device than its folder is refused.
The number of a deleted file is soon given to a new one: hence the moment.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sqlite3
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ONE = "It has one name: where several programs or containers share it, share its folder."


class NotAtHome(Exception):
    """A file that must not be used here; the text goes on after the name of the file."""


@dataclass(frozen=True, slots=True)
class FileHome:
    """The file, its folder, its name, and when it was made (None where nobody knows).

    Examples
    --------
    >>> FileHome(file=7, folder=3, name="budget.db", born=5).text
    '[7, 3, "budget.db", 5]'
    """

    file: int
    folder: int
    name: str
    born: int | None

    @property
    def text(self) -> str:
        """One line, as the file keeps it."""
        return json.dumps([self.file, self.folder, self.name, self.born])


def home_of(path: Path) -> FileHome:
    """Home of an existing file, symbolic links resolved; it must have that one name.

    Raises OSError where there is no file, and NotAtHome where it has other names.
    """
    real = Path(os.path.realpath(path))
    file, folder = os.stat(real), os.stat(real.parent)
    if stat.S_ISREG(file.st_mode) and file.st_nlink > 1:
        raise NotAtHome(
            f"has {file.st_nlink} names (hard links). {_ONE} Remove the others "
            f"(`find -inum {file.st_ino}` finds them)."
        )
    if file.st_dev != folder.st_dev or is_mounted(real):
        raise NotAtHome(f"is a file that is mounted by itself. {_ONE} Mount its folder.")
    return FileHome(file.st_ino, folder.st_ino, real.name, _born(real))


def is_mounted(path: Path) -> bool:
    """Whether the file itself, not its folder, is a mount point (known on Linux alone)."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return False
    points = {line.split()[4].decode("unicode_escape").encode("latin-1") for line in lines}
    return os.path.realpath(os.fsencode(path)) in points


def journals(path: Path, name: str | None = None) -> list[Path]:
    """What SQLite would play back into a file of this name; empty files are nothing to it.

    Examples
    --------
    >>> journals(Path("no/such/file.db"))
    []
    """
    real = Path(os.path.realpath(path))
    beside = [real.with_name((name or real.name) + end) for end in ("-journal", "-wal")]
    found = []
    for each in beside:
        with contextlib.suppress(OSError):
            if os.stat(each).st_size:
                found.append(each)
    return found


def read_on_disk(path: Path, statement: str) -> Any:
    """First value of a statement on the file as it is, without looking at any journal.

    SQLite itself reads: who opened and closed the file otherwise would drop its locks. A commit
    writes the first page, which says how long the file is, before the pages that make it so long:
    without ``writable_schema`` a file in between, after a kill or beside another process, would be
    taken for a damaged one.
    """
    real = Path(os.path.realpath(path))
    opened = sqlite3.connect(f"{real.as_uri()}?mode=ro&immutable=1", uri=True)
    with contextlib.closing(opened) as connection:
        connection.execute("pragma writable_schema = on")  # of a connection that cannot write
        row = connection.execute(statement).fetchone()
    return None if row is None else row[0]


def _born(real: Path) -> int | None:
    """When the file was made, in nanoseconds; None where system or file system do not say."""
    known = getattr(os.stat(real), "st_birthtime", None)
    if known is not None:
        return int(known * 1e9)
    if not sys.platform.startswith("linux"):
        return None
    try:
        statx = ctypes.CDLL(None).statx
    except (OSError, AttributeError):
        return None
    answer = ctypes.create_string_buffer(256)
    here, wanted = -100, 0x800  # AT_FDCWD, STATX_BTIME
    if statx(here, os.fsencode(real), 0, wanted, answer):
        return None
    if not int.from_bytes(answer.raw[:4], sys.byteorder) & wanted:  # stx_mask: what it says
        return None
    seconds = int.from_bytes(answer.raw[80:88], sys.byteorder, signed=True)  # stx_btime
    return seconds * 10**9 + int.from_bytes(answer.raw[88:92], sys.byteorder)
