"""Where a ledger lives: a SQLite file or a PostgreSQL database, one schema for both.

A store hands out transactions and turns whatever the database says into a
:class:`~dpadapt.privacy.errors.LedgerError` that names the ledger and what to do. Every
transaction opens its own connection and closes it: threads, forks and copies share nothing.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, insert, inspect, make_url, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from ._ledger_schema import VERSION, metadata, schema
from .errors import LedgerError

__all__ = ["Store", "open_store"]

_BUSY_SECONDS = 30.0  # how long a charge waits for another one
_CONNECT_SECONDS = 10  # how long a PostgreSQL server may take to answer
_CREATE = "Create one with `dpadapt ledger create`."


def open_store(location: str | os.PathLike[str]) -> Store:
    """Return the store at a path or URL; nothing is opened or created yet."""
    text = os.fspath(location)
    if not isinstance(text, str) or not text.strip() or "\0" in text or text == ":memory:":
        raise ValueError(
            f"ledger must be the path of a file or a postgresql:// URL; got {location!r}."
        )
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _SqliteStore(text)
    if scheme == "sqlite" and rest.strip("/"):
        return _SqliteStore(rest.removeprefix("/"))
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return _PostgresStore(rest)
    raise ValueError(f"ledger must be the path of a file or a postgresql:// URL; got {scheme}://.")


class Store(ABC):
    """A place for a ledger.

    Attributes
    ----------
    display : str
        The ledger in messages: the password is masked.
    portable : str
        The ledger for another process: without the password.
    """

    display: str
    portable: str

    @contextlib.contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Connection]:
        """Transaction on an existing ledger; a writer has the ledger's lock to itself on SQLite.

        Leaving the block commits durably, an exception in it rolls everything back.
        """
        with self._guarded(write) as connection:
            self._check_version(connection)
            yield connection

    def initialise(self) -> None:
        """Create the schema where there is none; refuse to touch anything else."""
        self._prepare()
        with self._guarded(write=True) as connection:
            if self._is_blank(connection):
                metadata.create_all(connection)
                connection.execute(insert(schema).values(version=VERSION))
            self._check_version(connection)

    @contextlib.contextmanager
    def _guarded(self, write: bool) -> Iterator[Connection]:
        self._require()
        try:
            with self._engine.begin() as connection:
                self._begin(connection, write)
                yield connection
        except DBAPIError as error:
            # the driver's own words, never SQLAlchemy's; a refused commit lands here, too
            raise LedgerError(self._explain(error.orig)) from None

    def _check_version(self, connection: Connection) -> None:
        if not inspect(connection).has_table(schema.name):
            raise LedgerError(f"{self.display} is not a dpadapt ledger. {_CREATE}")
        versions = connection.execute(select(schema.c.version)).scalars().all()
        if len(versions) != 1 or not isinstance(versions[0], int) or versions[0] < 1:
            raise LedgerError(self.damaged("its version cannot be read"))
        if versions[0] != VERSION:
            raise LedgerError(
                f"the ledger {self.display} was written by a newer dpadapt (ledger version "
                f"{versions[0]}; this one reads {VERSION}). Nothing was changed. Upgrade dpadapt."
            )

    def damaged(self, reason: str) -> str:
        return (
            f"the ledger {self.display} is damaged or not a ledger: {reason}. Nothing was changed "
            "or released. Restore it from a backup that holds every charge; a new ledger would "
            "forget what was spent."
        )

    def _locked(self) -> str:
        return (
            f"the ledger {self.display} is locked by another process (waited {_BUSY_SECONDS:g} s). "
            "Nothing was charged or released. Try again, or find the program that holds it."
        )

    def _read_only(self) -> str:
        return (
            f"the ledger {self.display} is read-only for this user. Nothing was charged or "
            "released. A charge needs write access (to a SQLite file and to its directory)."
        )

    @property
    @abstractmethod
    def _engine(self) -> Engine: ...

    @abstractmethod
    def _require(self) -> None: ...

    @abstractmethod
    def _prepare(self) -> None: ...

    @abstractmethod
    def _is_blank(self, connection: Connection) -> bool: ...

    @abstractmethod
    def _begin(self, connection: Connection, write: bool) -> None: ...

    @abstractmethod
    def _explain(self, error: BaseException | None) -> str: ...


class _SqliteStore(Store):
    """A local file in write-ahead mode; see https://sqlite.org/wal.html for its three files."""

    def __init__(self, path: str) -> None:
        self._path = Path(os.path.expanduser(path)).absolute()
        self.display = self.portable = str(self._path)

    @cached_property
    def _engine(self) -> Engine:
        return create_engine("sqlite://", creator=self._open, poolclass=NullPool)

    def _open(self) -> sqlite3.Connection:
        # isolation_level=None: BEGIN is ours to say; mode=rw: never create by opening
        return sqlite3.connect(
            f"{self._path.as_uri()}?mode=rw", uri=True, timeout=_BUSY_SECONDS, isolation_level=None
        )

    def _require(self) -> None:
        try:
            mode = os.stat(self._path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            raise LedgerError(f"there is no ledger at {self.display}. {_CREATE}") from None
        except OSError as error:
            raise LedgerError(self._cannot_open(error.strerror)) from None
        if stat.S_ISDIR(mode):
            raise LedgerError(f"{self.display} is a directory, not a ledger. {_CREATE}")

    def _prepare(self) -> None:
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666))
        except OSError as error:
            raise LedgerError(self._cannot_open(error.strerror)) from None
        if os.stat(self._path).st_size == 0:
            # a new file only, so that a foreign one is never converted. Best effort: without the
            # write-ahead log (network drive, two creators at once) charges are as durable.
            with (
                contextlib.suppress(sqlite3.Error),
                contextlib.closing(self._open()) as connection,
            ):
                connection.execute("PRAGMA journal_mode=WAL")

    def _is_blank(self, connection: Connection) -> bool:
        return not inspect(connection).get_table_names()

    def _begin(self, connection: Connection, write: bool) -> None:
        # EXTRA is FULL, and durable without the write-ahead log as well
        connection.exec_driver_sql("PRAGMA synchronous=EXTRA")
        connection.exec_driver_sql("PRAGMA foreign_keys=ON")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

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


class _PostgresStore(Store):
    """A PostgreSQL database, through psycopg 3."""

    _SECRETS = ("password", "sslpassword")

    def __init__(self, rest: str) -> None:
        try:
            self._url = make_url(f"postgresql+psycopg://{rest}")
        except (SQLAlchemyError, ValueError):
            # the parser's words can hold pieces of a password
            raise ValueError(
                "ledger is not a valid PostgreSQL URL; it looks like "
                "postgresql://user@host:5432/database, with special characters %-encoded."
            ) from None
        bare = self._url.set(drivername="postgresql").difference_update_query(self._SECRETS)
        self.display = bare.render_as_string(hide_password=True)
        # URL.set() cannot take a password away
        self.portable = URL.create(
            "postgresql", bare.username, None, bare.host, bare.port, bare.database, bare.query
        ).render_as_string()

    @cached_property
    def _engine(self) -> Engine:
        url = self._url
        if "connect_timeout" not in url.query:
            url = url.update_query_dict({"connect_timeout": str(_CONNECT_SECONDS)})
        try:
            return create_engine(url, poolclass=NullPool)
        except ImportError:
            raise LedgerError(
                f"the ledger {self.display} needs the PostgreSQL driver psycopg: "
                "pip install 'dpadapt[service]'."
            ) from None

    def _require(self) -> None:
        """Whether the server answers is seen on connecting."""

    def _prepare(self) -> None:
        """The database exists; the schema is created in a transaction."""

    def _is_blank(self, connection: Connection) -> bool:
        # two creators at once take turns; the number is arbitrary, and the lock ends at commit
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(715517001)")
        return not inspect(connection).has_table(schema.name)

    def _begin(self, connection: Connection, write: bool) -> None:
        if not write:  # one snapshot for the data set and its charges
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            return
        # whoever waited for the row must then see the charges that it waited for
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE")
        connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(_BUSY_SECONDS * 1000)}")

    def _explain(self, error: BaseException | None) -> str:
        state = getattr(error, "sqlstate", None)
        reason = self._scrub(str(error).strip().partition("\n")[0])
        if state is None:
            return (
                f"the PostgreSQL server of the ledger {self.display} cannot be reached: {reason}. "
                "Nothing was released. Check that it runs, the address, and the password "
                "(PGPASSWORD or .pgpass supply one)."
            )
        if state == "55P03":
            return self._locked()
        if state in ("25006", "42501"):
            return f"{self._read_only()} PostgreSQL says: {reason}."
        return f"the ledger {self.display} refused: {reason}. Nothing was released."

    def _scrub(self, text: str) -> str:
        secrets = [self._url.password, *(self._url.query.get(key) for key in self._SECRETS)]
        for secret in secrets:
            if isinstance(secret, str) and secret:
                text = text.replace(secret, "***")
        return text
