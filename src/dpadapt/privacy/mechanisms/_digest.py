"""Digests of tables: of private rows under a secret key, of public ones without."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..rows.errors import LET_THROUGH
from ..rows.quiet import quiet
from ..rows.schema import as_read
from ..rows.sources import Block


def keyed_digest(key: bytes, text: bytes, blocks: Iterable[Block]) -> bytes:
    """HMAC of a text and of every row and label, as they are read; no two alike but by chance.

    Rows are taken as their schema reads them. How they are cut into blocks is of no matter.
    """
    streams = _Streams(key)
    streams.add("text", text)
    with quiet():
        for table, labels in blocks:
            _feed(streams, "rows", as_read(table))
            if labels is not None:
                _feed(streams, "labels", np.asarray(labels, dtype=np.float64))
    return streams.digest()


def public_digest(*tables: Any) -> str:
    """Digest of public tables or columns, as text.

    Examples
    --------
    >>> public_digest(np.eye(2)) == public_digest(np.eye(2)) != public_digest(np.eye(3))
    True
    """
    streams = _Streams(b"public")
    for number, table in enumerate(tables):
        plain = table if hasattr(table, "shape") else np.asarray(table)
        streams.add(f"shape {number}", repr(plain.shape).encode())
        _feed(streams, str(number), plain)
    return streams.digest().hex()


class _Streams:
    """Several streams of bytes, each by a name, that grow side by side."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._parts: dict[str, hmac.HMAC] = {}

    def add(self, name: str, data: bytes) -> None:
        if name not in self._parts:
            self._parts[name] = hmac.new(self._key, digestmod=hashlib.sha256)
        self._parts[name].update(data)

    def digest(self) -> bytes:
        whole = hmac.new(self._key, digestmod=hashlib.sha256)
        for name, part in sorted(self._parts.items()):
            whole.update(framed(name.encode()) + part.digest())
        return whole.digest()


def framed(data: bytes) -> bytes:
    """Bytes with their length before them: two of these in a row are never two others."""
    return len(data).to_bytes(8, "big") + data


def _feed(streams: _Streams, name: str, table: Any) -> None:
    if hasattr(table, "tocsr"):
        rows = table.tocsr().copy()
        rows.sum_duplicates()
        streams.add(f"{name}: sizes", np.diff(rows.indptr).astype(np.int64).tobytes())
        streams.add(f"{name}: columns", rows.indices.astype(np.int64).tobytes())
        _cells(streams, f"{name}: cells", rows.data)
    elif hasattr(table, "iloc"):
        parts = [table] if table.ndim == 1 else [table.iloc[:, i] for i in range(table.shape[1])]
        for position, column in enumerate(parts):
            _cells(streams, f"{name}: column {position} {column.name}", column.to_numpy())
    else:
        _cells(streams, f"{name}: cells", np.asarray(table))


def _cells(streams: _Streams, name: str, cells: Any) -> None:
    if isinstance(cells, np.ndarray) and not cells.dtype.hasobject:
        streams.add(f"{name} {cells.dtype.str}", np.ascontiguousarray(cells).tobytes())
        return
    streams.add(
        f"{name} of any type", b"".join(map(_cell, np.asarray(cells, dtype=object).ravel()))
    )


def _cell(cell: Any) -> bytes:
    try:
        return framed(type(cell).__name__.encode()) + framed(repr(cell).encode())
    except LET_THROUGH:
        raise
    except BaseException:  # a class of one's own; no cell may raise
        return framed(type(cell).__name__.encode())
