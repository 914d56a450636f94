r"""Several rows a person: at most k rows of each count, and everybody has exactly k places.

*The construction.* Rows belong together if their ids mean the same; what is no id (missing, blank,
or nothing that can be compared) is one, too: the rows that have it are those of one person. Of a
person's rows the first k in the order of the file are kept. They fill k places: each row once, and
again from the first one while places are left, so that everybody weighs the same. Where a label
matters, rows without one are left out first, but for those of who has no other. The places of a
person stand together, and people in the order of a keyed digest of their ids, whose key is drawn
anew in every process and never leaves it. With U people there are n = U k places, and a session
sees the rows of these places, nothing else.

*What is public:* U, k, and so n; not how many rows a person has, nor how many there are in the
file.

*Who is protected.* A neighbour has one of the U people replaced by any other person, with rows of
any number, one or more, anywhere in the file. What stands in a person's places depends on that
person's rows alone. Where these places are does not depend on anybody's rows: if the id stays,
nobody moves. If it is another one, people are still in an order that is uniformly random (as far as
a keyed digest is), whoever they are; so let the new person stand where the old one stood, and
everybody else where they were: the law is the same. Either way the neighbour has other rows in k
places and the same rows in all others: it is k replaced rows away. All statements of a session are
about one replaced row and hold for any rows, so those about k follow (:mod:`.groups`). Parts are
dealt by people (:class:`~dpadapt.privacy.core.sample.Sample`): a person lies in one of them.

*Why a missing id is an id.* Let all id cells of a person become c. With every cell somebody's, U
stays, and one person is replaced, for every c that nobody else has. No rule allows more: whoever
takes the id of another is that other, and U falls. If rows without an id were nobody's, the person
would vanish for c = "", and U, which is public, would tell. If each were a person of its own, k of
them would be k people: U would grow, and one person have the places of k. Where only some cells of
a person are missing, it has two ids, as anybody may have, and rows with two people; never more.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from dpadapt._types import FloatArray, IntArray

from ... import _validate
from ..accounting.events import Event, Relation
from .arrow import ArrowBlock, arrow_cells
from .cells import cell_number, cells_of, key
from .database import SqlQuery
from .errors import LET_THROUGH, PrivacyError
from .groups import of_people
from .parquet import parquet_files
from .quiet import withhold_errors
from .sources import ArrowRows, BatchRows, Block, MemoryRows, ParquetRows, RowSource, SqlRows

_KEY = secrets.token_bytes(32)  # of the order of people
_DIGITS = re.compile(r"([+-]?)(\d+)(\.0*)?", re.ASCII)  # of a text that is a whole number
_WHOLE, _LONG = (int, np.integer), (Decimal, Fraction)
_LARGEST = 10**5000  # Decimals beyond, whose digits may not fit anywhere, are compared as floats
_NO_ID = ""  # the id of whoever's is missing
_MOST = 2**31  # places, all together
_EXACT = (int, np.integer, float, np.floating, Decimal, Fraction)


@dataclass(frozen=True, eq=False)
class People:
    """Who each row of a file belongs to.

    Parameters
    ----------
    of : ndarray of int
        The person of each row: 0, 1, 2, ..., everybody there.
    each : int
        k, the places of a person.
    known : ndarray of bool, optional
        Which rows have a label, where that matters: the others fill places only of who has no row
        with one. By default all.

    Examples
    --------
    >>> people = People.named(["ann", "bob", "ann", "ann"], 2)
    >>> people.size, sorted(people.places.tolist())  # not ann's third row; bob's only one twice
    (2, [0, 1, 1, 2])
    """

    of: IntArray
    each: int
    known: Any = None

    @classmethod
    def named(cls, ids: Any, each: int) -> People:
        """People by ids, one for each row; cells of any kind, each read by itself."""
        names = [_name(cell) for cell in ids]
        known = {name: place for place, name in enumerate(sorted(set(names), key=_digest))}
        return cls(np.fromiter((known[name] for name in names), np.int64), each)

    @cached_property
    def size(self) -> int:
        """Number of people."""
        return int(self.of.max(initial=-1)) + 1

    @cached_property
    def places(self) -> IntArray:
        """The row in each place, person by person."""
        counts = np.bincount(self.of, minlength=self.size)
        known = np.ones(len(self.of), dtype=bool) if self.known is None else self.known
        useful = np.bincount(self.of[known], minlength=self.size)
        starts, kept = np.cumsum(counts) - counts, np.clip(useful, 1, self.each)
        nth = np.arange(self.each) % kept[:, None]
        return np.asarray(np.lexsort((~known, self.of))[(starts[:, None] + nth).ravel()])

    def knowing(self, known: Any) -> People:
        """Return the same people, their places filled with rows that have a label."""
        return People(self.of, self.each, known)

    def rows(self, source: RowSource) -> PeopleRows:
        """Return the rows in all places."""
        return PeopleRows(source, self)

    def states(self, event: Event) -> Event:
        """Return what an event about one row states about people."""
        return of_people(event, self.each)

    def __str__(self) -> str:
        return f"{self.size} people, up to {self.each} rows each"


class PeopleRows(RowSource):
    """Rows of another source by people: everybody has the same number of places.

    Examples
    --------
    >>> rows = memory_rows([[1.0], [2.0], [3.0]], None, ["ann", "bob", "ann"], 2).by_people()
    >>> rows.n_rows, [sorted(block.ravel().tolist()) for block, _ in rows.blocks()]
    (4, [[1.0, 2.0, 2.0, 3.0]])
    """

    def __init__(self, source: RowSource, people: People) -> None:
        self._source, self.people = source, people
        self.n_rows, self.labelled = people.size * people.each, source.labelled
        self.columns, self.n_columns = source.columns, source.n_columns
        self.keeping = source.keeping

    def blocks(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, self.block_rows):
            yield self._source.take(self.people.places[start : start + self.block_rows])

    def coded(self, classes: Any) -> PeopleRows:
        return PeopleRows(self._source.coded(classes), self.people)

    def labels(self) -> FloatArray:
        return np.asarray(self._source.labels()[self.people.places])

    def with_labels(self) -> PeopleRows:
        return PeopleRows(self._source, self.people.knowing(np.isfinite(self._source.labels())))

    def take(self, places: IntArray) -> Block:
        raise _no_draws()

    def sampled(self, places: IntArray) -> RowSource:
        raise _no_draws()

    def sizes(self) -> dict[str, float]:
        """How many people, and how many rows of each count."""
        return {"people": self.people.size, "rows a person": self.people.each}

    def relation(self, asked: str) -> Relation:
        """That of people; refuses what is not proved for them."""
        if asked != "replace-one":
            raise PrivacyError(
                "relation='add-remove' is about rows, and these are people with several rows each "
                "(Private(unit=...)); use relation='replace-one', where the number of people is "
                "public."
            )
        return "replace-unit"


def memory_rows(X: Any, y: Any, unit: Any, max_rows: Any) -> RowSource:
    """Rows of a table, by people if there are ids: an array of them, or the name of a column.

    Examples
    --------
    >>> memory_rows([[1.0], [2.0]], None, ["ann", "ann"], 3).people.size
    1
    """
    each = _rows_per_person(unit, max_rows)
    if each is None:
        return MemoryRows(X, y)
    if isinstance(unit, str):
        if unit not in getattr(X, "columns", ()):
            raise ValueError(f"unit: X has no column {unit!r}; give its name, or the ids.")
        X, unit = X.drop(columns=unit), X[unit]
    rows = MemoryRows(X, None)  # says what is wrong with X
    if y is not None:
        try:
            rows = MemoryRows(X, y)
        except ValueError:  # no word of how many rows there are, which is private here
            raise ValueError("y must hold one label for each row of X.") from None
    return _by_people(rows, withhold_errors(lambda: People.named(_ids(unit), each)))


def parquet_rows(path: Any, label: str | None, unit: Any, max_rows: Any) -> RowSource:
    """Rows of Parquet files; by people if a column of ids is named, and then held in memory.

    Examples
    --------
    >>> import pandas as pd, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "visits.parquet"
    >>> pd.DataFrame({"who": ["ann", "bob", "ann"], "age": [30, 40, 31]}).to_parquet(file)
    >>> parquet_rows(file, None, "who", 2).by_people().n_rows
    4
    """
    return _in_batches(
        ParquetRows(parquet_files(path), label), label, unit, max_rows, "the Parquet files"
    )


def arrow_rows(source: Any, n_rows: Any, label: str | None, unit: Any, max_rows: Any) -> RowSource:
    """Rows of an Arrow stream; by people if a column of ids is named, and then held in memory.

    Examples
    --------
    >>> import pyarrow as pa
    >>> visits = pa.table({"who": ["ann", "bob", "ann"], "age": [30, 40, 31]})
    >>> arrow_rows(visits, None, None, "who", 2).by_people().n_rows
    4
    """
    said = _said(n_rows, unit)
    return _in_batches(ArrowRows(source, said, label), label, unit, max_rows, "the stream")


def sql_rows(
    url: str, query: str, n_rows: Any, label: str | None, unit: Any, max_rows: Any, order_by: Any
) -> RowSource:
    """Rows of a query of a database; by people if a column of ids is named, and then in memory.

    Examples
    --------
    >>> sql_rows("sqlite:///", "SELECT 1 AS a, 2 AS b", None, "b", None, None, None).columns
    ('a',)
    """
    said, each, asked = (
        _said(n_rows, unit),
        _rows_per_person(unit, max_rows),
        SqlQuery(url, query, order_by),
    )
    if each is None:
        return SqlRows(asked, said, label)
    if not isinstance(unit, str) or unit == label or unit not in asked.names:
        raise ValueError(f"unit must be the name of a column of the query; got {unit!r}.")
    asked.need_order("which rows of a person count (max_rows)")
    rows = SqlRows(asked, None, label)
    return _by_people(*withhold_errors(lambda: _held_frames(rows, label, unit, each), PrivacyError))


def _held_frames(
    rows: SqlRows, label: str | None, unit: str, each: int
) -> tuple[MemoryRows, People]:
    """Rows and people of a query, cell by cell."""
    import pandas as pd

    none = pd.DataFrame(columns=rows.names, dtype=object)
    whole = pd.concat([none, *rows.frames()], ignore_index=True)
    ids, y = whole.pop(unit), None if label is None else whole.pop(label)
    return MemoryRows(whole, y), People.named(_ids(ids), each)


def _said(n_rows: Any, unit: Any) -> int | None:
    """Number of rows that was stated."""
    if n_rows is not None and unit is not None:
        raise ValueError("n_rows: how many rows people have is a secret; leave it out with unit.")
    return None if n_rows is None else _validate.count("n_rows", n_rows, least=0)


def _in_batches(
    rows: BatchRows, label: str | None, unit: Any, max_rows: Any, where: str
) -> RowSource:
    each = _rows_per_person(unit, max_rows)
    if each is None:
        return rows
    if not isinstance(unit, str) or unit not in (rows.columns or ()):
        raise ValueError(f"unit must be the name of a column of {where}; got {unit!r}.")
    return _by_people(*withhold_errors(lambda: _held(rows, label, unit, each), PrivacyError))


def _held(rows: BatchRows, label: str | None, unit: str, each: int) -> tuple[MemoryRows, People]:
    """Rows and people of record batches, cell by cell: they need not agree on any type."""
    import pandas as pd

    batches = list(rows.batches())
    columns = {
        name: _joined([arrow_cells(batch.column(name)) for batch in batches])
        for name in (*(rows.columns or ()), *(() if label is None else (label,)))
        if name != unit
    }
    ids = chain.from_iterable(ArrowBlock(batch, (unit,)).exact(0) for batch in batches)
    y = None if label is None else columns.pop(label)
    index = range(sum(batch.num_rows for batch in batches))
    return MemoryRows(pd.DataFrame(columns, index=index), y), People.named(ids, each)


def _joined(parts: list[Any]) -> Any:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate([np.empty(0), *parts])
    joined = np.empty(sum(map(len, parts)), dtype=object)
    joined[:] = list(chain.from_iterable(parts))
    return joined


def _by_people(rows: RowSource, people: People) -> RowSource:
    if len(people.of) != rows.n_rows:
        raise ValueError("unit must hold one id for each row of X.")
    if people.size * people.each > _MOST:
        raise ValueError(
            f"max_rows: {people.size} people with {people.each} places each are more than "
            f"{_MOST}; choose a smaller number."
        )
    rows.people = people
    return rows


def _rows_per_person(unit: Any, max_rows: Any) -> int | None:
    """How many rows of a person count; None if rows are protected, not people."""
    if unit is None and max_rows is None:
        return None
    if unit is None or max_rows is None:
        raise ValueError("unit and max_rows belong together: whose rows they are, and how many.")
    return _validate.count("max_rows", max_rows)


def _ids(cells: Any) -> Any:
    """Ids as they are, each by itself: whole numbers stay whole, however large."""
    if isinstance(cells, np.ma.MaskedArray):
        return cells_of(cells)
    if isinstance(cells, np.ndarray):
        return cells.ravel().tolist() if cells.dtype.kind in "biuf" else list(cells)
    categories = getattr(getattr(cells, "dtype", None), "categories", None)
    if categories is not None:
        known = [*categories, None]  # the code of a missing one is -1
        return [known[code] for code in getattr(cells, "cat", cells).codes]
    return list(getattr(cells, "array", cells))


def _name(cell: Any) -> str:
    """What an id is compared by: some text for every cell, and the empty one for no id.

    Whole numbers are compared exactly, as numbers or as texts of plain digits. Every other text is
    itself, without space around it: 0e123456 is not 0, and Nan is somebody. What is neither is
    compared as labels are.
    """
    try:
        if isinstance(cell, bytes):
            cell = _decoded(cell)
        if isinstance(cell, str):
            return _text_name(cell)
        if isinstance(cell, uuid.UUID):
            return str(cell)
        exact = isinstance(cell, _EXACT) and not isinstance(cell, np.timedelta64)
        value = cell if exact else cell_number(cell)
        whole = isinstance(value, _WHOLE) or (_is_short(value) and value == int(value))
        return f"{Decimal(int(value)):f}" if whole else key(cell) or _NO_ID
    except LET_THROUGH:
        raise
    except BaseException:
        return _NO_ID


def _is_short(value: Any) -> bool:
    """Whether the digits before the point of a number can be written down."""
    if isinstance(value, _LONG):
        return -_LARGEST < value < _LARGEST
    return bool(np.isfinite(value))  # a float of few bits cannot even be compared with the largest


def _text_name(text: str) -> str:
    plain = text.rstrip("\0").strip()  # arrays of texts cannot hold zeros at the end
    digits = _DIGITS.fullmatch(plain)
    if digits is None:
        return plain or _NO_ID
    number = digits[2].lstrip("0") or "0"
    return f"-{number}" if digits[1] == "-" and number != "0" else number


def _decoded(cell: bytes) -> str:
    try:
        return cell.decode("utf-8")
    except UnicodeDecodeError:
        return f"0x{cell.hex()}"


def _digest(name: str) -> bytes:
    text = name.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, key=_KEY, digest_size=16).digest()


def _no_draws() -> PrivacyError:
    return PrivacyError(
        "rows of people with several rows (Private(unit=...)) cannot be drawn at random one by "
        "one; make one row of each person beforehand, or choose a method without draws."
    )
