"""The records of a ledger, read with every digest checked, and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, insert, select, update

from ..accounting.events import Event
from ..rows.errors import LedgerError
from .layout import charges as _charges
from .layout import datasets as _datasets
from .records import Balance, Charge, Dataset, chain, decode_events, digest_of, genesis
from .store import Store
from .sums import Sums, alike, decode_sums, encode_sums, summed

_EMPTY = encode_sums(())
_COLUMNS = [column for column in _charges.c if column.name != "dataset"]  # as they stand there


class _Record(NamedTuple):
    """One charge as it is stored, its digest right."""

    number: int
    created: str
    label: str
    events: str


def names(connection: Connection) -> list[str]:
    """Names of all data sets."""
    return sorted(connection.execute(select(_datasets.c.name)).scalars())


def new(connection: Connection, name: str, epsilon: float, delta: float, created: str) -> None:
    """Add a data set without charges."""
    head = genesis(name, epsilon, delta, created)
    row = {"name": name, "epsilon": epsilon, "delta": delta, "created": created}
    connection.execute(insert(_datasets).values(**row, head=head, sums=_EMPTY))


def append(
    connection: Connection,
    balance: Balance,
    created: str,
    label: str,
    text: str,
    events: Sequence[Event],
) -> Balance:
    """Add a charge on top of a balance, which must still be the latest; the balance after it."""
    number, sums = balance.number + 1, balance.after(events)
    kept = encode_sums(sums)
    record, digest = _Record(number, created, label, text), digest_of(kept)
    head = chain(balance.head, *record, digest)
    row = {"dataset": balance.name, **record._asdict(), "sums": digest, "digest": head}
    connection.execute(insert(_charges).values(**row))
    connection.execute(
        update(_datasets).where(_datasets.c.name == balance.name).values(head=head, sums=kept)
    )
    return replace(balance, number=number, sums=sums, head=head)


def head_of(connection: Connection, name: str) -> str | None:
    """Digest of the last charge, and no other charge before this transaction ends."""
    wanted = select(_datasets.c.head).where(_datasets.c.name == name).with_for_update()
    return connection.execute(wanted).scalar()


def is_labelled(connection: Connection, name: str, label: str) -> bool:
    """Whether a charge has this label."""
    wanted = select(_charges.c.number).where(_charges.c.dataset == name, _charges.c.label == label)
    return connection.execute(wanted.limit(1)).first() is not None


def read_balance(connection: Connection, store: Store, name: str) -> Balance:
    """Budget and sums; every digest is checked, the single events are not decoded."""
    row = _row(connection, store, name)
    number = sum(1 for _ in _records(connection, store, row))
    return _balance(store, row, number)


def read_dataset(connection: Connection, store: Store, name: str) -> Dataset:
    """Everything about a data set."""
    row, read = _row(connection, store, name), []
    for record in _records(connection, store, row):
        try:
            events = decode_events(record.events)
        except ValueError as error:
            raise broken(
                store, name, f"charge {record.number} cannot be understood: {error}"
            ) from None
        read.append(Charge(record.number, record.created, record.label, events))
    return Dataset(row.created, tuple(read), _balance(store, row, len(read)))


def check(store: Store, dataset: Dataset) -> None:
    """Compose all charges anew, in their order, and compare with the sums that are kept.

    Those of an older dpadapt may hold splits one by one: they are summed as splits are now.
    """
    total = Sums()
    for charge in dataset.charges:
        for event in charge.events:
            total.add(event)
        total.settle()
    if not alike(total.short(), summed(dataset.balance.sums)):
        raise broken(store, dataset.name, "its sums are not those of its charges")


def broken(store: Store, name: str, reason: str) -> LedgerError:
    """Return the error for a data set that cannot be trusted."""
    return LedgerError(store.damaged(f"data set {name!r}: {reason}"))


def _row(connection: Connection, store: Store, name: str) -> Row[Any]:
    row = connection.execute(select(_datasets).where(_datasets.c.name == name)).one_or_none()
    if row is None:
        listed = ", ".join(repr(other) for other in names(connection)) or "none"
        raise LedgerError(
            f"the ledger {store.display} has no data set named {name!r} (it has: {listed}). Create "
            "it with `dpadapt ledger create`."
        )
    return row


def _records(connection: Connection, store: Store, row: Row[Any]) -> Iterator[_Record]:
    """Follow the chain from the budget to the head, and to the digest of the sums."""
    head, sums = genesis(row.name, row.epsilon, row.delta, row.created), digest_of(_EMPTY)
    rows = select(*_COLUMNS).where(_charges.c.dataset == row.name).order_by(_charges.c.number)
    for number, each in enumerate(connection.execute(rows), start=1):
        found, created, label, events, sums, digest = each
        head = chain(head, number, created, label, events, sums)
        if found != number or digest != head:
            raise broken(store, row.name, f"charge {number} was changed after it was written")
        yield _Record(number, created, label, events)
    if head != row.head:
        raise broken(store, row.name, "its budget was changed or charges are missing")
    if digest_of(row.sums) != sums:
        raise broken(store, row.name, "its sums were changed")


def _balance(store: Store, row: Row[Any], number: int) -> Balance:
    try:
        sums = decode_sums(row.sums)
    except ValueError as error:
        raise broken(store, row.name, f"its sums cannot be understood: {error}") from None
    return Balance(row.name, row.epsilon, row.delta, number, sums, row.head)
