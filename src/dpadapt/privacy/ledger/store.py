"""Where a ledger lives: a SQLite file or a PostgreSQL database, one schema for both.

A store hands out transactions and turns whatever the database says into a
:class:`~dpadapt.privacy.rows.errors.LedgerError` that names the ledger and what to do. Every
transaction opens its own connection and closes it: threads, forks and copies share nothing.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, Engine, insert, inspect, select, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ..files.whole_files import patience
from ..rows.errors import LedgerError
from .layout import OLD, VERSION, metadata, schema

CREATE = "Create one with `dpadapt ledger create`."


class Store(ABC):
    """A place for a ledger.

    Attributes
    ----------
    display : str
        The ledger in messages: the password is masked.
    portable : str
        The ledger for another process: without the password.
    busy_seconds : float
        How long a charge waits for another one: ``DPADAPT_WAIT``, or two minutes.
    """

    display: str
    portable: str

    @property
    def busy_seconds(self) -> float:
        return patience()

    @contextlib.contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Connection]:
        """Transaction on an existing ledger; a writer has the ledger's lock to itself on SQLite.

        Leaving the block commits durably, an exception in it rolls everything back.
        """
        with self._guarded(write) as connection:
            if self.version(connection) != VERSION:
                raise LedgerError(
                    f"the ledger {self.display} was written by an older dpadapt. Nothing was "
                    f"changed. Convert it once, its old records are kept: {self.adopt_command}"
                )
            home = self._home()
            self._check_home(connection, home)
            yield connection
        if write and self._home() != home:
            raise LedgerError(
                f"the ledger {self.display} was moved or replaced while it was written to. "
                "Nothing was released. Find out which file is the ledger."
            )

    @contextlib.contextmanager
    def adoption(self) -> Iterator[Connection]:
        """Transaction on a ledger of any known version and place, which is then at home here."""
        with self._guarded(write=False) as connection:
            self.version(connection)
        self._settle()
        with self._guarded(write=True) as connection:
            self._check_sound(connection)
            yield connection
            connection.execute(update(schema).values(home=self._home()))

    @abstractmethod
    def prepare(self) -> None:
        """Create an empty ledger where there is none; leave alone whatever is there."""

    @abstractmethod
    def backup(self, path: Path) -> None:
        """Copy the ledger to a new file."""

    @staticmethod
    def fill(connection: Connection, home: str) -> None:
        """Make the tables of an empty ledger."""
        metadata.create_all(connection)
        connection.execute(insert(schema).values(version=VERSION, home=home))

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
        except (SQLAlchemyError, UnicodeError) as error:  # of tables that were damaged
            raise LedgerError(self.damaged(type(error).__name__)) from None

    def version(self, connection: Connection) -> int:
        """Version of the tables, one that this program knows; refuses anything else."""
        if not inspect(connection).has_table(schema.name):
            raise LedgerError(f"{self.display} is not a dpadapt ledger. {CREATE}")
        versions = connection.execute(select(schema.c.version)).scalars().all()
        if len(versions) != 1 or not isinstance(versions[0], int) or versions[0] < OLD:
            raise LedgerError(self.damaged("its version cannot be read"))
        if versions[0] > VERSION:
            raise LedgerError(
                f"the ledger {self.display} was written by a newer dpadapt (ledger version "
                f"{versions[0]}; this one reads {VERSION}). Nothing was changed. Upgrade dpadapt."
            )
        return versions[0]

    @property
    def adopt_command(self) -> str:
        """What brings a ledger into use here."""
        return f"`dpadapt ledger adopt --ledger {self.display}`."

    def damaged(self, reason: str) -> str:
        return (
            f"the ledger {self.display} is damaged or not a ledger: {reason}. Nothing was changed "
            "or released. Restore it from a backup that holds every charge; a new ledger would "
            "forget what was spent."
        )

    def _locked(self) -> str:
        return (
            f"the ledger {self.display} is locked by another process (waited "
            f"{self.busy_seconds:g} s). Nothing was charged or released. Try again, find the "
            "program that holds it, or set DPADAPT_WAIT to more seconds."
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
    def _settle(self) -> None: ...

    @abstractmethod
    def _home(self) -> str: ...

    @abstractmethod
    def _check_home(self, connection: Connection, home: str) -> None: ...

    @abstractmethod
    def _check_sound(self, connection: Connection) -> None: ...

    @abstractmethod
    def _begin(self, connection: Connection, write: bool) -> None: ...

    @abstractmethod
    def _explain(self, error: BaseException | None) -> str: ...
