"""Bringing a ledger into use: one that was moved, copied or restored, or of an old version."""

from __future__ import annotations

import unicodedata
from typing import Any

from sqlalchemy import Connection, Row, column, select, table

from . import tables as tables
from .layout import OLD, charges, datasets, old_name, schema
from .records import Balance, chain, decode_events, genesis
from .store import Store

_DATASET = ("name", "epsilon", "delta", "created", "head")
_CHARGE = ("dataset", "number", "created", "label", "events", "digest")


def adopt(store: Store) -> None:
    """Check a ledger, convert it if it is old, and make its place its home: all or nothing."""
    with store.adoption() as connection:
        if store.version(connection) == OLD:
            _convert(connection, store)
        for name in tables.names(connection):
            tables.check(store, tables.read_dataset(connection, store, name))


def _convert(connection: Connection, store: Store) -> None:
    """Write every charge again with its sums; the old tables stay under another name.

    Names in two Unicode forms are one data set: it has all their charges, and the smallest budget.
    """
    for renamed in (charges, datasets, schema):  # first of all: nobody writes to them any more
        connection.exec_driver_sql(f"ALTER TABLE {renamed.name} RENAME TO {old_name(renamed)}")
    store.fill(connection, "")
    old = table(old_name(datasets), *map(column, _DATASET))
    groups: dict[str, list[Row[Any]]] = {}
    for row in connection.execute(select(old).order_by(old.c.name)).all():
        groups.setdefault(unicodedata.normalize("NFKC", row.name), []).append(row)
    for name, rows in groups.items():
        epsilon, delta = min(row.epsilon for row in rows), min(row.delta for row in rows)
        created = min(row.created for row in rows)
        charged = [each for row in rows for each in _old_charges(connection, store, row)]
        tables.new(connection, name, epsilon, delta, created)
        balance = Balance(name, epsilon, delta, 0, (), genesis(name, epsilon, delta, created))
        for each in sorted(charged, key=lambda charge: charge.created):
            events = decode_events(each.events)
            balance = tables.append(
                connection, balance, each.created, each.label, each.events, events
            )


def _old_charges(connection: Connection, store: Store, row: Row[Any]) -> list[Row[Any]]:
    """Charges of a data set of an old ledger, every digest checked."""
    old = table(old_name(charges), *map(column, _CHARGE))
    wanted = select(old).where(old.c.dataset == row.name).order_by(old.c.number)
    head, read = genesis(row.name, row.epsilon, row.delta, row.created), []
    for number, each in enumerate(connection.execute(wanted), start=1):
        head = chain(head, number, each.created, each.label, each.events)
        if (each.number, each.digest) != (number, head):
            reason = f"charge {number} was changed after it was written"
            raise tables.broken(store, row.name, reason)
        try:
            decode_events(each.events)
        except ValueError as error:
            reason = f"charge {number} cannot be understood: {error}"
            raise tables.broken(store, row.name, reason) from None
        read.append(each)
    if head != row.head:
        raise tables.broken(store, row.name, "its budget was changed or charges are missing")
    return read
