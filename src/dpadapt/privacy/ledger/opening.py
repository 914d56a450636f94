"""From the words for a ledger to the place where it lives."""

from __future__ import annotations

import os

from .postgres import PostgresStore
from .sqlite import SqliteStore
from .store import Store


def open_store(location: str | os.PathLike[str]) -> Store:
    """Return the store at a path or URL; nothing is opened or created yet."""
    text = os.fspath(location)
    if not isinstance(text, str) or not text.strip() or "\0" in text or text == ":memory:":
        raise ValueError(
            f"ledger must be the path of a file or a postgresql:// URL; got {location!r}."
        )
    scheme, separator, rest = text.partition("://")
    if not separator:
        return SqliteStore(text)
    if scheme == "sqlite" and rest.strip("/"):
        return SqliteStore(rest.removeprefix("/"))
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return PostgresStore(rest)
    raise ValueError(f"ledger must be the path of a file or a postgresql:// URL; got {scheme}://.")
