"""The tables of a ledger, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

from sqlalchemy import Column, Double, ForeignKey, Integer, MetaData, String, Table, Text

VERSION = 2  # of the tables below; a ledger of another version is refused or converted
OLD = 1  # the version that `dpadapt ledger adopt` converts

metadata = MetaData()
schema = Table(
    "dpadapt_schema",
    metadata,
    Column("version", Integer, nullable=False),
    Column("home", Text, nullable=False),  # of a SQLite file; empty on PostgreSQL
)
datasets = Table(
    "dpadapt_dataset",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("epsilon", Double, nullable=False),
    Column("delta", Double, nullable=False),
    Column("created", String(40), nullable=False),
    Column("head", String(64), nullable=False),  # digest of the last charge: none can go missing
    Column("sums", Text, nullable=False),  # all charges composed; its digest is in the last charge
)
charges = Table(
    "dpadapt_charge",
    metadata,
    Column("dataset", ForeignKey(datasets.c.name), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("created", String(40), nullable=False),
    Column("label", Text, nullable=False),
    Column("events", Text, nullable=False),
    Column("sums", String(64), nullable=False),  # digest of the sums with this charge
    Column("digest", String(64), nullable=False),
)


def old_name(table: Table) -> str:
    """Name that a table of the old version is kept under."""
    return table.name.replace("dpadapt_", f"dpadapt_v{OLD}_")
