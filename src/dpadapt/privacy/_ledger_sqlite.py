"""A ledger in a local SQLite file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import uuid
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, select
from sqlalchemy.pool import NullPool

from ._ledger_home import home_of, refuse_mounted
from ._ledger_schema import schema
from ._ledger_store import CREATE, Store
from .errors import LedgerError

__all__ = ["SqliteStore"]


class SqliteStore(Store):
    """A local file with a rollback journal, and no write-ahead log.

    A write-ahead log is found by the name of the file and holds charges that the file itself does
    not: under a second name, or in a copy, they would be forgotten. With a rollback journal every
    charge is in the file when it returns.

    The file is never opened here but by SQLite: closing it would drop the locks that SQLite holds
    in other threads.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(os.path.expanduser(path)).absolute()
        self.display = self.portable = str(self._path)

    @cached_property
    def _engine(self) -> Engine:
        return create_engine("sqlite://", creator=self._open, poolclass=NullPool)

    def _open(self) -> sqlite3.Connection:
        return _connect(self._path, self.busy_seconds)

    def _require(self) -> None:
        try:
            found = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            raise LedgerError(f"there is no ledger at {self.display}. {CREATE}") from None
        except OSError as error:
            raise LedgerError(self._cannot_open(error.strerror)) from None
        if stat.S_ISDIR(found.st_mode):
            raise LedgerError(f"{self.display} is a directory, not a ledger. {CREATE}")
        if found.st_size == 0:
            raise LedgerError(
                self.damaged("it is empty (0 bytes), and was cut off if it ever was a ledger")
            )
        self._home()

    def prepare(self) -> None:
        """Build a new ledger beside its place and move it there: it is never seen half made."""
        real = Path(os.path.realpath(self._path))
        try:
            with _turn(real.parent):
                if not real.exists():
                    self._build(real)
        except OSError as error:
            raise LedgerError(self._cannot_open(error.strerror)) from None

    def _build(self, real: Path) -> None:
        draft = real.with_name(f".{real.name}.{uuid.uuid4().hex}.new")
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
        try:
            home = home_of(draft)
            engine = create_engine(
                "sqlite://", creator=lambda: _connect(draft, 0.0), poolclass=NullPool
            )
            with engine.begin() as connection:
                self._begin(connection, write=True)
                self.fill(connection, replace(home, name=real.name).text)
            os.rename(draft, real)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        _sync(real.parent)

    def _begin(self, connection: Connection, write: bool) -> None:
        connection.exec_driver_sql("PRAGMA synchronous=EXTRA")
        connection.exec_driver_sql("PRAGMA foreign_keys=ON")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    def _settle(self) -> None:
        refuse_mounted(self._path)
        try:
            with contextlib.closing(self._open()) as connection:
                # whatever is in a write-ahead log goes into the file first
                (mode,) = connection.execute("PRAGMA journal_mode=DELETE").fetchone()
        except sqlite3.Error as error:
            raise LedgerError(self._explain(error)) from None
        if mode != "delete":
            raise LedgerError(self._locked())

    def _home(self) -> str:
        try:
            return home_of(self._path).text
        except OSError as error:
            raise LedgerError(self._cannot_open(error.strerror)) from None

    def _check_home(self, connection: Connection, home: str) -> None:
        if connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal":
            raise LedgerError(
                f"the ledger {self.display} was switched to a write-ahead log, which can lose "
                f"charges. Nothing was charged or released. Switch it back: {self.adopt_command}"
            )
        if connection.execute(select(schema.c.home)).scalar() != home:
            raise LedgerError(
                f"the ledger {self.display} is not where it was made: it was moved, copied, "
                "restored, or has a second name. Nothing was charged or released. If no other "
                "copy or name of it is in use, and no later one was, make this its place: "
                f"{self.adopt_command} Charges of another copy are not in it."
            )

    def _check_sound(self, connection: Connection) -> None:
        found = connection.exec_driver_sql("PRAGMA integrity_check").scalar()
        if found != "ok":
            raise LedgerError(self.damaged(str(found)))

    def _explain(self, error: BaseException | None) -> str:
        code = (getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
            return self._locked()
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            return self._read_only()
        if code == sqlite3.SQLITE_CANTOPEN:
            return self._cannot_open("unable to open the file")
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return (
                f"the disk that holds the ledger {self.display} is full or failing ({error}). "
                "Nothing was released."
            )
        return self.damaged(str(error))

    def _cannot_open(self, reason: str | None) -> str:
        return (
            f"the ledger {self.display} cannot be opened: {reason}. Nothing was charged or "
            "released. The file and its directory must exist and be writable for this user."
        )


def _connect(path: Path, patience: float) -> sqlite3.Connection:
    # isolation_level=None: BEGIN is ours to say; mode=rw: never create by opening
    return sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=patience, isolation_level=None
    )


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Two creators at once take turns."""
    if os.name != "posix":  # a file is not renamed over another one there
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sync(folder: Path) -> None:
    """Make sure that a new name survives a crash of the machine."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
