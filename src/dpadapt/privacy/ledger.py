"""The durable privacy budget of data sets.

A data set has one budget (epsilon, delta) for its whole life. Each fit charges its events before
any noise is drawn; all charges are composed together and tightly, and a charge that would pass
the budget is refused. A crash can waste budget, it never loses a charge.

The ledger is a SQLite file, or a PostgreSQL database where several machines share it. Keep the
file on a local disk: SQLite's locks and its write-ahead log are unsafe on network file systems.
Back it up with ``sqlite3 budget.db ".backup copy.db"`` (a ``budget.db-wal`` beside it belongs to
it), and never put an old copy back: what was charged since would be forgotten.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from . import _validate
from ._ledger_records import Charge, Dataset, chain, decode, encode, genesis
from ._ledger_schema import charges as _charges
from ._ledger_schema import datasets as _datasets
from ._ledger_store import open_store
from .errors import LedgerError
from .events import Event

__all__ = ["Account", "Charge", "Dataset", "Ledger"]

_LONGEST = {"name": 200, "label": 500}


class Ledger:
    """The budgets of data sets, in a file or a database.

    Holds no connection: every call opens the ledger and closes it again, so a ledger can be
    shared by threads, forked, copied and pickled. A pickle does not carry the password of a URL;
    PGPASSWORD or ``.pgpass`` supply it on the other side.

    Parameters
    ----------
    location : str or path
        The path of a SQLite file (``"budget.db"``), or ``postgresql://user@host/database``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dpadapt.privacy.events import GaussianEvent
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(pathlib.Path(folder.name) / "budget.db")
    >>> account = ledger.create("hospital", epsilon=1.0, delta=1e-6)
    >>> account.charge([GaussianEvent("mean", sensitivity=1.0, scale=10.0)], label="first fit")
    >>> round(account.spent(), 3), round(account.left(), 3)
    (0.397, 0.9)
    >>> [charge.label for charge in ledger.charges("hospital")]
    ['first fit']
    >>> folder.cleanup()
    """

    def __init__(self, location: str | os.PathLike[str]) -> None:
        self._store = open_store(location)

    def create(self, name: str, *, epsilon: float, delta: float) -> Account:
        """Add a data set with its budget; create the ledger itself where there is none.

        Parameters
        ----------
        name : str
            Name of the data set, new to this ledger.
        epsilon, delta : float
            The budget of its whole life.

        Returns
        -------
        Account
        """
        name = _text("name", name)
        epsilon, delta, created = _validate.epsilon(epsilon), _validate.delta(delta), _now()
        head = genesis(name, epsilon, delta, created)
        self._store.initialise()
        with self._store.transaction(write=True) as connection:
            try:
                connection.execute(insert(_datasets).values((name, epsilon, delta, created, head)))
            except IntegrityError:
                raise LedgerError(
                    f"the ledger {self._store.display} already has a data set named {name!r}; its "
                    "budget and charges stand. Choose another name for other data."
                ) from None
        return Account(self, name)

    def account(self, name: str) -> Account:
        """Return the account of an existing data set."""
        self.dataset(name)
        return Account(self, name)

    def dataset(self, name: str) -> Dataset:
        """Return the budget and all charges of one data set, as of now."""
        with self._store.transaction() as connection:
            return self._read(connection, name)

    def datasets(self) -> list[Dataset]:
        """Every data set with its budget and charges, by name."""
        with self._store.transaction() as connection:
            names = connection.execute(select(_datasets.c.name)).scalars().all()
            return [self._read(connection, name) for name in sorted(names)]

    def charges(self, name: str) -> list[Charge]:
        """Every charge of one data set, oldest first."""
        return list(self.dataset(name).charges)

    def export(self, name: str) -> dict[str, Any]:
        """One data set as plain values for JSON: budget, spent, left, charges and events."""
        return self.dataset(name).to_dict()

    def _charge(self, name: str, events: Sequence[Event], label: str) -> None:
        """Read, compose and insert in one transaction that no other writer can enter."""
        text = encode(events)
        stored = decode(text)  # what is composed is what the ledger will hold
        with self._store.transaction(write=True) as connection:
            dataset = self._read(connection, name, lock=True)
            if self._admits(dataset, stored):
                _append(connection, dataset, text, label)
                return
        raise dataset.refusal(stored)

    def _admits(self, dataset: Dataset, events: Sequence[Event]) -> bool:
        try:
            return dataset.admits(events)
        except ValueError as error:  # relations that do not mix, splits too many to combine
            raise LedgerError(
                f"data set {dataset.name!r} of the ledger {self._store.display} cannot take this "
                f"charge on top of the earlier ones: {error} Nothing was charged or released."
            ) from None

    def _read(self, connection: Connection, name: str, *, lock: bool = False) -> Dataset:
        """One data set, every digest checked; ``lock`` keeps other charges out (PostgreSQL)."""
        wanted = select(_datasets).where(_datasets.c.name == name)
        row = connection.execute(wanted.with_for_update() if lock else wanted).one_or_none()
        if row is None:
            names = connection.execute(select(_datasets.c.name)).scalars().all()
            listed = ", ".join(repr(other) for other in sorted(names)) or "none"
            raise LedgerError(
                f"the ledger {self._store.display} has no data set named {name!r} (it has: "
                f"{listed}). Create it with `dpadapt ledger create`."
            )
        head, read = genesis(row.name, row.epsilon, row.delta, row.created), []
        rows = select(_charges).where(_charges.c.dataset == name).order_by(_charges.c.number)
        for number, charge in enumerate(connection.execute(rows), start=1):
            head = chain(head, number, charge.created, charge.label, charge.events)
            if (charge.number, charge.digest) != (number, head):
                raise self._broken(name, f"charge {number} was changed after it was written")
            events = self._decode(name, number, charge.events)
            read.append(Charge(number, charge.created, charge.label, events))
        if head != row.head:
            raise self._broken(name, "its budget was changed or charges are missing")
        return Dataset(row.name, row.epsilon, row.delta, row.created, tuple(read), head)

    def _decode(self, name: str, number: int, text: str) -> tuple[Event, ...]:
        try:
            return decode(text)
        except (ValueError, TypeError, AttributeError) as error:
            raise self._broken(name, f"charge {number} cannot be understood: {error}") from None

    def _broken(self, name: str, reason: str) -> LedgerError:
        return LedgerError(self._store.damaged(f"data set {name!r}: {reason}"))

    def __repr__(self) -> str:
        return f"Ledger({self._store.display!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self._store.portable == other._store.portable

    def __hash__(self) -> int:
        return hash(self._store.portable)

    def __reduce__(self) -> tuple[type[Ledger], tuple[str]]:
        return Ledger, (self._store.portable,)

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self


@dataclass(frozen=True)
class Account:
    """One data set of a ledger: what an estimator takes as ``ledger=``.

    A handle, not a purse: copies, clones and pickles charge the same budget.

    Parameters
    ----------
    ledger : Ledger
    name : str
        A data set of that ledger.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dpadapt.privacy.events import GaussianEvent
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(pathlib.Path(folder.name) / "budget.db")
    >>> account = ledger.create("hospital", epsilon=1.0, delta=1e-6)
    >>> account.charge([GaussianEvent("mean", sensitivity=1.0, scale=2.0)], label="fit")
    Traceback (most recent call last):
    ...
    dpadapt.privacy.errors.BudgetExceeded: the budget of epsilon 1 at delta 1e-06 would be \
passed: spent 0, asked 2.254, left 1 (epsilons at that delta; they compose tightly, so they need \
not add up). Nothing was released. Ask for less, or have the budget raised.
    >>> account.events()
    ()
    >>> folder.cleanup()
    """

    ledger: Ledger
    name: str

    def charge(self, events: Sequence[Event], label: str) -> None:
        """Charge ``events``, or raise before anything is written.

        On return the charge is on disk, and the noise may be drawn. No events, no charge.

        Parameters
        ----------
        events : sequence of Event
        label : str
            Who asks, for the record.

        Raises
        ------
        BudgetExceeded
            The charges so far and these events together would pass the budget.
        LedgerError
            The ledger cannot be read or written.
        """
        label = _text("label", label)
        if events := tuple(events):
            self.ledger._charge(self.name, events, label)

    def events(self) -> tuple[Event, ...]:
        """Every event that was ever charged."""
        return self.ledger.dataset(self.name).events

    def spent(self) -> float:
        """Epsilon of all charges together, at the budget's delta."""
        return self.ledger.dataset(self.name).spent()

    def left(self) -> float:
        """Epsilon, at the budget's delta, of the largest single Gaussian release that would fit."""
        return self.ledger.dataset(self.name).left()


def _append(connection: Connection, dataset: Dataset, events: str, label: str) -> None:
    number, created = len(dataset.charges) + 1, _now()
    digest = chain(dataset.head, number, created, label, events)
    connection.execute(
        insert(_charges).values(
            dataset=dataset.name,
            number=number,
            created=created,
            label=label,
            events=events,
            digest=digest,
        )
    )
    connection.execute(
        update(_datasets).where(_datasets.c.name == dataset.name).values(head=digest)
    )


def _text(argument: str, value: object) -> str:
    longest = _LONGEST[argument]
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or value != value.strip()
        or not 0 < len(value) <= longest
    ):
        raise ValueError(
            f"{argument} must be 1 to {longest} printable characters without spaces at the ends; "
            f"got {value!r}."
        )
    return value


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
