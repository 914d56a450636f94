"""The durable privacy budget of data sets.

A data set has one budget (epsilon, delta) for its whole life. Each fit charges its events before
any noise is drawn; all charges are composed together and tightly, and a charge that would pass
the budget is refused. A crash can waste budget, it never loses a charge.

The ledger is a SQLite file, or a PostgreSQL database where several machines share it. Keep the
file on a local disk: SQLite's locks are unsafe on network file systems. A file has one name and
one place; a copy, a second name or an old version is refused until it is adopted. Back it up with
``dpadapt ledger backup``, and never put an old copy back: what was charged since would be
forgotten. ``docs/ledger.md`` says more.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy.exc import IntegrityError

from ... import _validate
from ..accounting.composition import relation_of
from ..accounting.events import Event, GaussianEvent, Relation
from ..accounting.reserves import Reserve, reserve_of
from ..rows.errors import LedgerError
from . import tables as tables
from .adopting import adopt
from .opening import open_store
from .records import Balance, Charge, Dataset, decode_events, encode_events

_LONGEST = {"name": 200, "label": 500}
# characters that show nothing, besides those of category Cf: joiners, fillers, variation selectors
_INVISIBLE = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800)),
    *((0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF)),
)
_TRIES = 3  # compositions outside the lock before one under it


class Ledger:
    """The budgets of data sets, in a file or a database.

    Holds no connection: every call opens the ledger and closes it again, so a ledger can be
    shared by threads, forked, copied and pickled. A pickle does not carry the password of a URL;
    PGPASSWORD or ``.pgpass`` supply it on the other side.

    Parameters
    ----------
    location : str or path
        The path of a SQLite file (``"budget.db"``), or ``postgresql://user@host/database``.

    Attributes
    ----------
    wrote : bool
        Whether this very object has begun to write a charge: other charges are other people's.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dpadapt.privacy.accounting.events import GaussianEvent
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(pathlib.Path(folder.name) / "budget.db")
    >>> account = ledger.create("hospital", epsilon=1.0, delta=1e-6)
    >>> account.charge([GaussianEvent("mean", sensitivity=1.0, scale=10.0)], label="first fit")
    1
    >>> round(account.spent(), 3), round(account.left(), 3)
    (0.397, 0.9)
    >>> [charge.label for charge in ledger.charges("hospital")]
    ['first fit']
    >>> folder.cleanup()
    """

    def __init__(self, location: str | os.PathLike[str]) -> None:
        self._store = open_store(location)
        self.wrote = False

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
        name = _new_name(name)
        epsilon, delta, created = _validate.epsilon(epsilon), _validate.delta(delta), _now()
        self._store.prepare()
        with self._store.transaction(write=True) as connection:
            try:
                tables.new(connection, name, epsilon, delta, created)
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
            return tables.read_dataset(connection, self._store, _text("name", name))

    def datasets(self) -> list[Dataset]:
        """Every data set with its budget and charges, by name."""
        with self._store.transaction() as connection:
            listed = tables.names(connection)
            return [tables.read_dataset(connection, self._store, name) for name in listed]

    def charges(self, name: str) -> list[Charge]:
        """Every charge of one data set, oldest first."""
        return list(self.dataset(name).charges)

    def export(self, name: str) -> dict[str, Any]:
        """One data set as plain values for JSON: budget, spent, left, charges and events."""
        return self.dataset(name).to_dict()

    def check(self) -> list[Dataset]:
        """Compose every data set anew from all its charges, and compare with the sums it keeps.

        Reading checks every digest, but trusts the sums; this trusts nothing. Takes a while.
        """
        datasets = self.datasets()
        for dataset in datasets:
            tables.check(self._store, dataset)
        return datasets

    def adopt(self) -> list[Dataset]:
        """Make this place the ledger's home: after it was moved, copied, restored or is an old one.

        Everything is checked first. An old ledger is converted; its old records are kept in tables
        of their own. What was charged to another copy is not in this one, and no program can know:
        compare the number of charges that comes back with what you expect.
        """
        adopt(self._store)
        return self.check()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger to a new file, also while others charge; checked before it has its name.

        The copy is not in use: if it must be, put it into the place of the ledger and adopt it.
        What is charged after the copy is not in it.
        """
        self._store.backup(Path(path).expanduser())

    def _charge(self, name: str, events: Sequence[Event], label: str) -> int:
        """Compose outside the lock; insert if nobody else did meanwhile, else begin again.

        Who was overtaken a few times composes under the lock, where nobody can.
        """
        text = encode_events(events)
        stored = decode_events(text)  # what is composed is what the ledger will hold
        for _ in range(_TRIES):
            balance = self._balance(name)
            if not self._admits(balance, stored):
                raise balance.refusal(stored)
            with self._store.transaction(write=True) as connection:
                if tables.head_of(connection, name) == balance.head:
                    self.wrote = True
                    return tables.append(connection, balance, _now(), label, text, stored).number
        with self._store.transaction(write=True) as connection:
            tables.head_of(connection, name)
            balance = tables.read_balance(connection, self._store, name)
            if self._admits(balance, stored):
                self.wrote = True
                return tables.append(connection, balance, _now(), label, text, stored).number
        raise balance.refusal(stored)

    def _redeem(self, name: str, number: int, relation: Relation) -> None:
        """Write down, once and for all, that what a charge has set aside is used."""
        events = (GaussianEvent("nothing more", 0.0, 1.0, relation=relation),)
        label = _redeemed(number)
        with self._store.transaction(write=True) as connection:
            tables.head_of(connection, name)
            balance = tables.read_balance(connection, self._store, name)
            if not 0 < number <= balance.number or tables.is_labelled(connection, name, label):
                raise LedgerError(
                    f"what charge {number} of {name!r} has set aside for an evaluation is used "
                    "already. Nothing was released."
                )
            self.wrote = True
            tables.append(connection, balance, _now(), label, encode_events(events), events)

    def _balance(self, name: str) -> Balance:
        with self._store.transaction() as connection:
            return tables.read_balance(connection, self._store, name)

    def _admits(self, balance: Balance, events: Sequence[Event]) -> bool:
        try:
            relation_of((*balance.sums, *events))
        except ValueError as error:
            raise LedgerError(
                f"data set {balance.name!r} of the ledger {self._store.display} cannot take this "
                f"charge on top of the earlier ones: {error} Nothing was charged or released."
            ) from None
        return balance.admits(events)

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
    >>> from dpadapt.privacy.accounting.events import GaussianEvent
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(pathlib.Path(folder.name) / "budget.db")
    >>> account = ledger.create("hospital", epsilon=1.0, delta=1e-6)
    >>> account.charge([GaussianEvent("mean", sensitivity=1.0, scale=2.0)], label="fit")
    Traceback (most recent call last):
    ...
    dpadapt.privacy.rows.errors.BudgetExceeded: the budget of epsilon 1 at delta 1e-06 would be \
passed: spent 0, asked 2.254, left 1 (epsilons at that delta; they compose tightly, so they need \
not add up). Nothing was released. Ask for at most what is left: a budget is for a data set's \
whole life, nothing raises it.
    >>> account.events()
    ()
    >>> folder.cleanup()
    """

    ledger: Ledger
    name: str

    def charge(self, events: Sequence[Event], label: str) -> int | None:
        """Charge ``events``, or raise before anything is written.

        On return the charge is on disk, and the noise may be drawn. No events, no charge.
        Returns its number within the data set.

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
        events = tuple(events)
        return self.ledger._charge(_text("name", self.name), events, label) if events else None

    def redeem(self, number: int, relation: Relation = "replace-one") -> None:
        """Use what charge ``number`` has set aside, once: see :meth:`reserves`."""
        self.ledger._redeem(_text("name", self.name), number, relation)

    def reserves(self) -> tuple[Reserve, ...]:
        """What fits have set aside for an evaluation on people held out, and none has used.

        After a crash between fit and evaluation, ``dpadapt evaluate --holdout`` uses it.
        """
        charges = self.ledger.charges(self.name)
        used = {charge.label for charge in charges}
        unused = (charge for charge in charges if _redeemed(charge.id) not in used)
        found = (reserve_of(charge.id, charge.events) for charge in unused)
        return tuple(reserve for reserve in found if reserve is not None)

    def number(self) -> int:
        """How many charges there are."""
        return self._balance().number

    def events(self) -> tuple[Event, ...]:
        """Every event that was ever charged."""
        return self.ledger.dataset(self.name).events

    def spent(self) -> float:
        """Epsilon of all charges together, at the budget's delta."""
        return self._balance().spent()

    def left(self) -> float:
        """Epsilon, at the budget's delta, of the largest single Gaussian release that would fit."""
        return self._balance().left()

    def _balance(self) -> Balance:
        return self.ledger._balance(_text("name", self.name))


def _text(argument: str, value: object) -> str:
    """The text in one Unicode form (NFC): letters that look the same are the same."""
    longest = _LONGEST[argument]
    if isinstance(value, str):
        value = unicodedata.normalize("NFC", value)
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


def _new_name(value: object) -> str:
    """A name that no other one looks like: in its plainest form (NFKC), every character visible."""
    name = _text("name", value)
    if invisible := [f"U+{ord(each):04X}" for each in name if _is_invisible(each)]:
        raise ValueError(f"name must not hold invisible characters; {name!r} has {invisible[0]}.")
    if (plain := unicodedata.normalize("NFKC", name)) != name:
        raise ValueError(
            f"name must not hold characters that stand for others, like ligatures; got {name!r}. "
            f"Write {plain!r}."
        )
    return name


def _is_invisible(character: str) -> bool:
    """Whether Unicode lets it show nothing (Default_Ignorable_Code_Point)."""
    return unicodedata.category(character) == "Cf" or any(
        first <= ord(character) <= last for first, last in _INVISIBLE
    )


def _redeemed(number: int) -> str:
    """Label of the record that what a charge has set aside is used."""
    return f"evaluation on people held out, paid by charge {number}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
