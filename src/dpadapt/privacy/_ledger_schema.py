"""The tables of a ledger, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

from sqlalchemy import Column, Double, ForeignKey, Integer, MetaData, String, Table, Text

__all__ = ["VERSION", "charges", "datasets", "metadata", "schema"]

VERSION = 1  # of the tables below; a ledger of another version is refused

metadata = MetaData()
schema = Table("dpadapt_schema", metadata, Column("version", Integer, nullable=False))
datasets = Table(
    "dpadapt_dataset",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("epsilon", Double, nullable=False),
    Column("delta", Double, nullable=False),
    Column("created", String(40), nullable=False),
    Column("head", String(64), nullable=False),  # digest of the last charge: none can go missing
)
charges = Table(
    "dpadapt_charge",
    metadata,
    Column("dataset", ForeignKey(datasets.c.name), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("created", String(40), nullable=False),
    Column("label", Text, nullable=False),
    Column("events", Text, nullable=False),
    Column("digest", String(64), nullable=False),
)
