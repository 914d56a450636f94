"""A ledger in a PostgreSQL database."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, inspect, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from ..rows.errors import LedgerError
from .layout import schema
from .store import Store

# how long the server may take to answer, and when a connection that is silent counts as lost
_PATIENT = {
    "connect_timeout": "10",
    "keepalives": "1",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
_GRACE = 60  # seconds that a statement may take beyond the wait for a lock


class PostgresStore(Store):
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
        usual = {name: value for name, value in _PATIENT.items() if name not in self._url.query}
        url = self._url.update_query_dict(usual)
        try:
            return create_engine(url, poolclass=NullPool)
        except ImportError:
            raise LedgerError(
                f"the ledger {self.display} needs the PostgreSQL driver psycopg: "
                "pip install 'dpadapt[postgres]'."
            ) from None

    def _require(self) -> None:
        """Whether the server answers is seen on connecting."""

    def prepare(self) -> None:
        with self._guarded(write=True) as connection:
            self._take_turn(connection)
            if not inspect(connection).has_table(schema.name):
                self.fill(connection, self._home())

    def _settle(self) -> None:
        """The server keeps one database, and its own log."""

    def _home(self) -> str:
        return ""

    def _check_home(self, connection: Connection, home: str) -> None:
        """A database has no second name that it would notice."""

    def _check_sound(self, connection: Connection) -> None:
        self._take_turn(connection)

    def _take_turn(self, connection: Connection) -> None:
        """Creators at once wait for each other; any number does, the lock ends at commit."""
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(715517001)")

    def _begin(self, connection: Connection, write: bool) -> None:
        if not write:  # one snapshot for the data set and its charges
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            self._limit(connection)
            return
        # whoever waited for the row must then see the charges that it waited for
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE")
        connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
        self._limit(connection)

    def _limit(self, connection: Connection) -> None:
        """A wait for a lock ends, of readers too, and so does a statement, whatever it does."""
        most = int((self.busy_seconds + _GRACE) * 1000)
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(self.busy_seconds * 1000)}")
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {most}")

    def backup(self, path: Path) -> None:
        raise LedgerError(
            f"the ledger {self.display} is a PostgreSQL database: copy it with pg_dump, or as its "
            "server is backed up. Nothing was copied."
        )

    def _explain(self, error: BaseException | None) -> str:
        state = getattr(error, "sqlstate", None)
        reason = self._scrub(str(error).strip().partition("\n")[0])
        if state is None:
            return (
                f"the PostgreSQL server of the ledger {self.display} cannot be reached: {reason}. "
                "Nothing was released. Check that it runs, the address, and the password "
                "(PGPASSWORD or .pgpass supply one)."
            )
        if state == "55P03":  # no lock in time
            return self._locked()
        if state == "57014":  # no end in time
            return (
                f"the PostgreSQL server of the ledger {self.display} did not end a statement in "
                f"{self.busy_seconds + _GRACE:g} s. Nothing was released. Is it busy, or its disk "
                "full? DPADAPT_WAIT sets how long it may take."
            )
        if state in ("25006", "42501"):
            return f"{self._read_only()} PostgreSQL says: {reason}."
        return f"the ledger {self.display} refused: {reason}. Nothing was released."

    def _scrub(self, text: str) -> str:
        secrets = [self._url.password, *(self._url.query.get(key) for key in self._SECRETS)]
        for secret in secrets:
            if isinstance(secret, str) and secret:
                text = text.replace(secret, "***")
        return text
