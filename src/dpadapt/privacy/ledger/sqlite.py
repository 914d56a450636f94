"""A ledger in a local SQLite file."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from ..files.file_home import FileHome, NotAtHome, home_of, journals, read_on_disk
from ..files.whole_files import draft_of, sync, whole_file, writer_lock
from ..rows.errors import LedgerError
from .layout import VERSION, schema
from .store import CREATE, Store


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
        return _engine_on(self._path, self.busy_seconds)

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
        self._refuse_journal()

    def _refuse_journal(self) -> None:
        """Before SQLite opens the file: it would play back a journal of another time or file."""
        here, beside = self._home(), journals(self._path)
        if not beside:
            return
        try:
            home = read_on_disk(self._path, f"SELECT home FROM {schema.name}")
        except sqlite3.Error as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise LedgerError(self._explain(error)) from None
            return  # no table or no column: of the old version, or no ledger
        if home != here:
            raise LedgerError(
                f"beside the ledger {self.display} is {beside[0].name}, which a crash left there "
                "and which is not of this file in this place: it would undo charges. Nothing was "
                "charged or released. If another ledger had this name then, give it the name back "
                f"and open it once (`dpadapt ledger check`). If not, remove {beside[0].name}, then "
                f"{self.adopt_command}"
            )

    def _refuse_left_journal(self, connection: Connection) -> None:
        """A ledger that was renamed after a crash left its journal at its old name."""
        home = connection.execute(select(schema.c.home)).scalar()
        try:
            old = FileHome(*json.loads(home or ""))
        except (ValueError, TypeError):
            return
        left = journals(self._path, str(old.name))
        if old.folder == self._here().folder and old.name != self._here().name and left:
            raise LedgerError(
                f"the ledger {self.display} was called {old.name}, and {left[0].name} holds what "
                "takes back a charge that a crash cut off, or a charge is being written there. "
                f"Nothing was changed. Give the file its old name back ({old.name}), open it once "
                "(`dpadapt ledger check`), then rename it again."
            )

    def prepare(self) -> None:
        """Build a new ledger beside its place and move it there: it is never seen half made."""
        real = Path(os.path.realpath(self._path))
        try:
            with writer_lock(real.parent):
                if not real.exists():
                    self._build(real)
        except OSError as error:
            raise LedgerError(self._cannot_open(error.strerror)) from None
        except DBAPIError as error:  # a full disk, for one
            raise LedgerError(self._explain(error.orig)) from None

    def backup(self, path: Path) -> None:
        """Copy by SQLite itself, under its locks: whoever charges meanwhile is in it whole or not.

        The home in the copy is still that of the ledger, so that nobody charges it by mistake.
        """
        if path.exists() or path.is_symlink():
            raise LedgerError(f"{path} exists; choose a new file for the copy. Nothing was copied.")
        with self.transaction():
            pass  # only a ledger in its place
        try:
            with whole_file(path) as draft:
                with contextlib.closing(_connect(draft, 0.0)) as target:
                    with contextlib.closing(_connect(self._path, self.busy_seconds)) as source:
                        source.backup(target)
                    (found,) = target.execute("PRAGMA integrity_check").fetchone()
                if found != "ok":
                    raise LedgerError(self.damaged(str(found)))
        except OSError as error:
            raise LedgerError(f"{path} cannot be written: {error.strerror}.") from None
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {self.display} cannot be copied: {error}.") from None

    def _build(self, real: Path) -> None:
        if left := journals(real):
            raise LedgerError(
                f"there is no ledger at {self.display}, but {left[0].name} of one that was: it "
                "would spoil a new one. Nothing was changed. If the old ledger was renamed, give "
                f"it its name back and open it once. If it is gone, remove {left[0].name}."
            )
        with draft_of(real, 0o666) as draft:
            with self._drafted(draft, real.name) as connection:
                self.fill(connection, "")
            os.rename(draft, real)
        sync(real.parent)

    @contextlib.contextmanager
    def adoption(self) -> Iterator[Connection]:
        """Transaction on a ledger of any known version and place, which is then at home here.

        A file is not written to where it is not at home: a copy is made, and takes its place.
        """
        with self._guarded(write=False) as connection:
            if self.version(connection) == VERSION:
                self._refuse_left_journal(connection)
        self._settle()
        real = Path(os.path.realpath(self._path))
        try:
            with (
                writer_lock(real.parent),
                draft_of(real, 0o600) as draft,
                self._guarded(write=True) as connection,
            ):
                self._check_sound(connection)
                if self.version(connection) == VERSION and self._is_home(connection):
                    yield connection
                else:
                    self._copy_to(draft)
                    with self._drafted(draft, real.name) as copied:
                        yield copied
                    os.replace(draft, real)  # as long as nobody can write to the old file
                    sync(real.parent)
        except OSError as error:
            raise LedgerError(self._cannot_open(error.strerror)) from None
        except DBAPIError as error:
            raise LedgerError(self._explain(error.orig)) from None

    def _copy_to(self, draft: Path) -> None:
        with (
            contextlib.closing(_connect(self._path, self.busy_seconds)) as source,
            contextlib.closing(_connect(draft, 0.0)) as target,
        ):
            source.backup(target)
        found = os.stat(self._path)
        with contextlib.suppress(PermissionError):
            if os.name == "posix":
                os.chown(draft, found.st_uid, found.st_gid)
        os.chmod(draft, stat.S_IMODE(found.st_mode))

    @contextlib.contextmanager
    def _drafted(self, draft: Path, name: str) -> Iterator[Connection]:
        """Transaction on a draft, which is at home under the name that it will have."""
        with _engine_on(draft, 0.0).begin() as connection:
            self._begin(connection, write=True)
            yield connection
            home = replace(home_of(draft), name=name).text
            connection.execute(update(schema).values(home=home))

    def _begin(self, connection: Connection, write: bool) -> None:
        connection.exec_driver_sql("PRAGMA synchronous=EXTRA")
        connection.exec_driver_sql("PRAGMA foreign_keys=ON")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    def _settle(self) -> None:
        try:
            with contextlib.closing(_connect(self._path, self.busy_seconds)) as connection:
                # whatever is in a write-ahead log goes into the file first
                (mode,) = connection.execute("PRAGMA journal_mode=DELETE").fetchone()
        except sqlite3.Error as error:
            raise LedgerError(self._explain(error)) from None
        if mode != "delete":
            raise LedgerError(self._locked())

    def _home(self) -> str:
        return self._here().text

    def _here(self) -> FileHome:
        try:
            return home_of(self._path)
        except OSError as error:
            raise LedgerError(self._cannot_open(error.strerror)) from None
        except NotAtHome as error:
            raise LedgerError(
                f"the ledger {self.display} {error} Nothing was charged or released."
            ) from None

    def _is_home(self, connection: Connection) -> bool:
        return bool(connection.execute(select(schema.c.home)).scalar() == self._home())

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


def _engine_on(path: Path, patience: float) -> Engine:
    return create_engine("sqlite://", creator=lambda: _connect(path, patience), poolclass=NullPool)
