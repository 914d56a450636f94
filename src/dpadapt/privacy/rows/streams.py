"""Blocks of rows from what can be read as an Arrow stream, and how two passes are compared.

A stream is asked anew for every pass, and it may break its word: other rows, in another order, more
or fewer of them. A part of the rows that is held out is so by places, and a label that is read
again must be that of its row. So every block is compared with the one that was there in the first
pass, by a keyed digest which never leaves the process; and the last block is given out only once it
is known that there are as many rows as were said. Nothing is told of what is different.

What others raise, log or print while they are asked for rows is withheld: it may quote a row.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from .arrow import TEXTS
from .errors import PrivacyError
from .quiet import Result, muted, withhold_errors

Kinds = tuple[tuple[str, Any], ...]  # names and types of columns
_KEY = secrets.token_bytes(32)  # of digests of blocks


def unheard(ask: Callable[[], Result]) -> Result:
    """Ask code of others for private rows; nothing of what it says is told.

    Examples
    --------
    >>> unheard(lambda: print("a private value"))
    """
    with muted():
        return withhold_errors(ask)


class Passes:
    """What every pass over the same rows must give: as many rows, and the same in every block.

    Parameters
    ----------
    again : str
        What to do about it, for the error.

    Examples
    --------
    >>> passes = Passes("Open it again.")
    >>> list(passes.same(iter([[1.0], [2.0]]), 2, lambda block: repr(block).encode()))
    [[1.0], [2.0]]
    >>> list(passes.same(iter([[2.0], [1.0]]), 2, lambda block: repr(block).encode()))
    Traceback (most recent call last):
    ...
    dpadapt.privacy.rows.errors.PrivacyError: the private rows are not those of the first pass, or \
not in the same order. Nothing was released of this pass. Open it again.
    """

    def __init__(self, again: str) -> None:
        self._again = again
        self._seen: dict[int, bytes] = {}

    def same(
        self, blocks: Iterator[Any], n_rows: int, content: Callable[[Any], bytes]
    ) -> Generator[Any, None, None]:
        """The same blocks, compared with those of the first pass; the last when all were there."""
        waiting: list[Any] = []
        left = n_rows
        for place, block in enumerate(blocks):
            left -= len(block)
            if left < 0:
                raise self.other_number()
            digest = _digest(block, content)
            if self._seen.setdefault(place, digest) != digest:
                raise self._broken(
                    "the private rows are not those of the first pass, or not in the same order"
                )
            yield from waiting
            waiting = [block]
        if left:
            raise self.other_number()
        yield from waiting

    def other_number(self) -> PrivacyError:
        """What is said if there are not as many rows as there should be."""
        return self._broken("there are not as many private rows as were said, or counted at first")

    def other_columns(self) -> PrivacyError:
        """What is said if a pass gives other columns than the first."""
        return self._broken("the private rows have other columns, or of other types, than at first")

    def _broken(self, what: str) -> PrivacyError:
        return PrivacyError(f"{what}. Nothing was released of this pass. {self._again}")


def _digest(block: Any, content: Callable[[Any], bytes]) -> bytes:
    return unheard(lambda: hashlib.blake2b(content(block), key=_KEY).digest())


class Stream:
    """Record batches of an object that can be read as an Arrow stream, once or many times.

    Parameters
    ----------
    source : callable, Table, Dataset or an object with ``__arrow_c_stream__``
        A callable is called for each pass. Of other streams nobody can know whether they give
        their rows twice: they are read here, and held in memory.
    n_rows : int, optional
        How many there should be: no more than a batch beyond is read.

    Examples
    --------
    >>> import pyarrow as pa
    >>> stream = Stream(pa.table({"a": [1, 2]}).to_reader())
    >>> stream.names, stream.known, [batch.num_rows for batch in stream.batches(8)]
    (('a',), 2, [2])
    """

    def __init__(self, source: Any, n_rows: int | None = None) -> None:
        _check(source)
        self._open = source if _opens(source) else lambda: source
        if not (_opens(source) or _is_lasting(source)):
            held = unheard(lambda: _whole(_reader(source, None), n_rows))
            self._open = lambda: held
        self.passes = Passes(
            "A callable or a data set must give the same rows in the same order each time (a query "
            "with ORDER BY, a snapshot); or give a table, which is held in memory."
        )
        self._kinds, self.known = unheard(self._first)
        self.names = tuple(name for name, _ in self._kinds)
        odd = [name for name, kind in self._kinds if not _is_read(kind)]
        if odd:
            listed = ", ".join(repr(name) for name in odd[:5])
            raise TypeError(
                f"source: lists, records and the like are no cells: {listed}. Leave these columns "
                "out, or make columns of numbers or texts of them."
            )

    def _first(self) -> tuple[Kinds, int | None]:
        """Columns, and the number of rows if it is known without a pass."""
        held = self._open()
        reader = _reader(held, None)
        kinds = _kinds(reader)
        _close(reader)
        return kinds, _count(held) if _is_lasting(held) else None

    def batches(self, rows: int | None) -> Generator[Any, None, None]:
        """Record batches of a new pass, of any size."""
        reader = unheard(lambda: _reader(self._open(), rows))
        try:
            if unheard(lambda: _kinds(reader)) != self._kinds:
                raise self.passes.other_columns()
            while (batch := unheard(lambda: _next(reader))) is not None:
                if batch.num_rows:
                    yield batch
        finally:
            unheard(lambda: _close(reader))

    def count(self) -> int:
        """Number of rows, by reading all of them."""
        return sum(batch.num_rows for batch in self.batches(None))


def _opens(source: Any) -> bool:
    return callable(source) and not hasattr(source, "__arrow_c_stream__")


def _is_lasting(source: Any) -> bool:
    """Whether it is of pyarrow, and can be read many times."""
    import pyarrow as pa

    return isinstance(source, (pa.Table, pa.RecordBatch)) or _is_dataset(source)


def _is_dataset(source: Any) -> bool:
    import sys

    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(source, module.Dataset)


def _check(source: Any) -> None:
    if hasattr(source, "iloc"):
        raise TypeError("source is a data frame of pandas; use Private(X, y).")
    if not (_opens(source) or _is_lasting(source) or hasattr(source, "__arrow_c_stream__")):
        raise TypeError(
            "source must be an Arrow table, data set or stream (with __arrow_c_stream__), or a "
            f"callable that opens one; got {type(source).__name__}."
        )


def _count(source: Any) -> int:
    return int(source.count_rows() if _is_dataset(source) else source.num_rows)


def _reader(source: Any, rows: int | None) -> Any:
    """A new reader of record batches; a data set reads few of them ahead."""
    import pyarrow as pa

    if isinstance(source, pa.RecordBatchReader):
        return source
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return source.to_reader()
    if _is_dataset(source):
        size = {} if rows is None else {"batch_size": rows}
        return source.scanner(**size, batch_readahead=2, fragment_readahead=1).to_reader()
    return pa.RecordBatchReader.from_stream(source)


def _kinds(reader: Any) -> Kinds:
    return tuple((str(field.name), field.type) for field in reader.schema)


def _next(reader: Any) -> Any:
    try:
        return _without_views(reader.read_next_batch())
    except StopIteration:
        return None


def _without_views(batch: Any) -> Any:
    """The same with plain texts in place of views, of which pyarrow cannot pick rows."""
    import pyarrow as pa

    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    for place, field in enumerate(batch.schema):
        column, kind = batch.column(place), field.type
        if kind in plain:
            batch = batch.set_column(place, field.name, column.cast(plain[kind]))
        elif pa.types.is_dictionary(kind) and kind.value_type in plain:
            levels = column.dictionary.cast(plain[kind.value_type])
            column = pa.DictionaryArray.from_arrays(column.indices, levels)
            batch = batch.set_column(place, field.name, column)
    return batch


def _whole(reader: Any, n_rows: int | None) -> Any:
    import pyarrow as pa

    batches: list[Any] = []
    left = float("inf") if n_rows is None else n_rows
    while left >= 0 and (batch := _next(reader)) is not None:
        batches.append(batch)
        left -= batch.num_rows
    return pa.Table.from_batches(batches, batches[0].schema if batches else reader.schema)


def _close(reader: Any) -> None:
    with suppress(Exception):
        reader.close()


def _is_read(kind: Any) -> bool:
    """Whether a column of this type has cells: texts, numbers, points in time, and the like."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _is_read(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _is_read(kind.storage_type)
    if pa.types.is_nested(kind):
        return False
    try:
        return _is_text(kind) or pa.types.is_null(kind) or bool(kind.bit_width)
    except ValueError:
        return False


def _is_text(kind: Any) -> bool:
    return str(kind).split("[")[0] in TEXTS


def cell_bytes(batch: Any) -> bytes:
    """All cells of a record batch as bytes: the same for the same cells, however they are held.

    Examples
    --------
    >>> import pyarrow as pa
    >>> one = pa.record_batch({"a": ["x", "yz", None]})
    >>> two = pa.record_batch({"a": ["", "x", "yz", None]})[1:]
    >>> cell_bytes(one) == cell_bytes(two), cell_bytes(one) == cell_bytes(two[::1].slice(1))
    (True, False)
    """
    return b"".join(part for column in batch.columns for part in _parts(column))


def _parts(column: Any) -> Iterator[bytes]:
    import pyarrow as pa

    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    size = len(column)
    if not size or pa.types.is_null(column.type):
        return
    there = column.is_valid().to_numpy(zero_copy_only=False)
    yield there.tobytes()
    if _is_text(column.type):
        column = column.cast(pa.large_binary()).fill_null(b"")
        _, starts, cells = column.buffers()
        ends = np.frombuffer(starts, np.int64)[column.offset : column.offset + size + 1]
        yield np.diff(ends).tobytes()
        yield b"" if cells is None else bytes(memoryview(cells)[ends[0] : ends[-1]])
    elif pa.types.is_boolean(column.type):
        yield column.fill_null(False).to_numpy(zero_copy_only=False).tobytes()
    else:  # what lies under a null may be anything
        width = column.type.bit_width // 8
        held = np.frombuffer(column.buffers()[1], np.uint8)
        rows = held[column.offset * width : (column.offset + size) * width].reshape(size, width)
        yield np.where(there[:, None], rows, np.uint8(0)).tobytes()
