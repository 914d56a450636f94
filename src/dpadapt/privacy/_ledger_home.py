"""Where a SQLite ledger is at home: one file, in one folder, under one name.

SQLite locks the file itself, whatever name it was opened by; but it finds the journal that undoes
a half-written charge by the *name* of the file. Under a second name (a hard link, a file that is
mounted by itself into a container) that journal is not seen, and rolling it back later would undo
the charges that were made meanwhile. So a ledger writes down the number of its file, the number of
its folder and its name, and is refused anywhere else. Who mounts or links the *folder* sees the
same three facts, and the same journal. Copies are noticed by the same means.

The numbers are inodes. Devices are left out, because their numbers change when a machine starts
again; within one device inodes are unique, and a file on another device than its folder is refused.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from .errors import LedgerError

__all__ = ["Home", "home_of", "is_mounted"]

_ONE = (
    "Nothing was charged or released. A ledger has one name: where several programs or containers "
    "share it, share its folder."
)


@dataclass(frozen=True, slots=True)
class Home:
    """The file, its folder and its name.

    Examples
    --------
    >>> Home(file=7, folder=3, name="budget.db").text
    '[7, 3, "budget.db"]'
    """

    file: int
    folder: int
    name: str

    @property
    def text(self) -> str:
        """One line, as the ledger keeps it."""
        return json.dumps([self.file, self.folder, self.name])


def home_of(path: Path) -> Home:
    """Home of an existing file, symbolic links resolved; it must have that one name.

    Raises OSError where there is no file, and LedgerError where it has other names.
    """
    real = Path(os.path.realpath(path))
    file, folder = os.stat(real), os.stat(real.parent)
    if stat.S_ISREG(file.st_mode) and file.st_nlink > 1:
        raise LedgerError(
            f"the ledger {path} has {file.st_nlink} names (hard links). {_ONE} Remove the others "
            f"(`find -inum {file.st_ino}` finds them)."
        )
    if file.st_dev != folder.st_dev:
        raise LedgerError(_mounted(path))
    return Home(file.st_ino, folder.st_ino, real.name)


def is_mounted(path: Path) -> bool:
    """Whether the file itself, not its folder, is a mount point (known on Linux alone)."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return False
    points = {line.split()[4].decode("unicode_escape").encode("latin-1") for line in lines}
    return os.path.realpath(os.fsencode(path)) in points


def refuse_mounted(path: Path) -> None:
    """Raise where the file itself is a mount point."""
    if is_mounted(path):
        raise LedgerError(_mounted(path))


def _mounted(path: Path) -> str:
    return f"the ledger {path} is a file that is mounted by itself. {_ONE} Mount its folder."
