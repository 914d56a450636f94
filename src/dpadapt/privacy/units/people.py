r"""Several rows a person: at most k rows of each count, and everybody has exactly k places.

*The construction.* Rows belong together if their ids mean the same. Of a person's rows the first k
in the order of the file are kept. They fill k places: each row once, and again from the first one
while places are left, so that everybody weighs the same. The places of a person stand together, and
people in the order of their first rows. With U people there are n = U k places, and a session sees
the rows of these places, nothing else.

*What is public:* U, k, and so n; not how many rows a person has, nor how many there are in the
file. Rows without an id are those of one person.

*Who is protected.* A table is a list of U people, each with rows of any number, one or more. A
neighbour has one of them replaced by any other person. What stands in a person's places depends on
that person's rows alone, so the neighbour has other rows in those k places and the same rows in all
others: it is k replaced rows away. All statements of a session are about one replaced row and hold
for any rows, so those about k follow (:mod:`.groups`). Parts are dealt by people
(:class:`~dpadapt.privacy.core.sample.Sample`): a person lies in one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ... import _validate
from ..accounting.events import Event, Relation
from ..core.errors import PrivacyError
from ..core.quiet import withheld
from ..rows.arrow import ArrowBlock
from ..rows.cells import cells_of, key
from ..rows.parquet import parquet_files
from ..rows.sources import Block, MemoryRows, ParquetRows, Places, RowSource
from .groups import of_people

__all__ = ["People", "PeopleRows", "memory_rows", "parquet_rows"]

_DIGITS = 40  # of an id that is a whole number


@dataclass(frozen=True, eq=False)
class People:
    """Who each row of a file belongs to.

    Parameters
    ----------
    of : ndarray of int
        The person of each row, counted in the order of first rows.
    each : int
        k, the places of a person.

    Examples
    --------
    >>> people = People.named(["ann", "bob", "ann", "ann"], 2)
    >>> people.size, people.places  # ann's third row is left out, bob's only one counts twice
    (2, array([0, 2, 1, 1]))
    """

    of: Places
    each: int

    @classmethod
    def named(cls, ids: Any, each: int) -> People:
        """People by ids, one for each row; cells of any kind, each read by itself."""
        known: dict[str | None, int] = {}
        found = (known.setdefault(_name(cell), len(known)) for cell in ids)
        return cls(np.fromiter(found, np.int64, len(ids)), each)

    @cached_property
    def size(self) -> int:
        """Number of people."""
        return int(self.of.max(initial=-1)) + 1

    @cached_property
    def places(self) -> Places:
        """The row in each place, person by person."""
        counts = np.bincount(self.of, minlength=self.size)
        starts, kept = np.cumsum(counts) - counts, np.minimum(counts, self.each)
        nth = np.arange(self.each) % kept[:, None]
        return np.asarray(np.argsort(self.of, kind="stable")[(starts[:, None] + nth).ravel()])

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
    >>> rows.n_rows, [block.tolist() for block, _ in rows.blocks()]
    (4, [[[1.0], [3.0], [2.0], [2.0]]])
    """

    def __init__(self, source: RowSource, people: People) -> None:
        self._source, self.people = source, people
        self.n_rows, self.labelled = people.size * people.each, source.labelled
        self.columns, self.n_columns = source.columns, source.n_columns

    def blocks(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, self.block_rows):
            yield self._source.take(self.people.places[start : start + self.block_rows])

    def coded(self, classes: Any) -> PeopleRows:
        return PeopleRows(self._source.coded(classes), self.people)

    def take(self, places: Places) -> Block:
        raise _no_draws()

    def sampled(self, places: Places) -> RowSource:
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


class _HeldRows(ParquetRows):
    """Rows of Parquet files, held in memory: those of a person may stand anywhere in the files."""

    def __init__(self, source: ParquetRows, unit: str) -> None:
        vars(self).update(vars(source))
        self._batch = source.whole()
        self.columns = tuple(name for name in source.columns or () if name != unit)
        self.n_columns = len(self.columns)

    def take(self, places: Places) -> Block:
        rows = ArrowBlock(self._batch, self.columns or ()).at(places)
        return rows, self._labels(rows._batch)


def memory_rows(X: Any, y: Any, unit: Any, max_rows: Any) -> RowSource:
    """Rows of a table, by people if there are ids: an array of them, or the name of a column.

    Examples
    --------
    >>> memory_rows([[1.0], [2.0]], None, ["ann", "ann"], 3).people.size
    1
    """
    if not _asked(unit, max_rows):
        return MemoryRows(X, y)
    if isinstance(unit, str):
        if unit not in getattr(X, "columns", ()):
            raise ValueError(f"unit: X has no column {unit!r}; give its name, or the ids.")
        X, unit = X.drop(columns=unit), X[unit]
    rows = MemoryRows(X, y)
    people = withheld(lambda: People.named(_ids(unit), max_rows))
    if len(people.of) != rows.n_rows:
        raise ValueError("unit must hold one id for each row of X.")
    rows.people = people
    return rows


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
    rows = ParquetRows(parquet_files(path), label)
    if not _asked(unit, max_rows):
        return rows
    if not isinstance(unit, str) or unit not in (rows.columns or ()):
        raise ValueError(f"unit must be the name of a column of the Parquet files; got {unit!r}.")
    held = withheld(lambda: _HeldRows(rows, unit), PrivacyError)
    ids = ArrowBlock(held._batch, (unit,))
    held.people = withheld(lambda: People.named(ids.exact(0), max_rows))
    return held


def _asked(unit: Any, max_rows: Any) -> bool:
    if unit is None and max_rows is None:
        return False
    if unit is None or max_rows is None:
        raise ValueError("unit and max_rows belong together: whose rows they are, and how many.")
    _validate.count("max_rows", max_rows)
    return True


def _ids(cells: Any) -> Any:
    """Ids as they are: whole numbers of an array stay whole, however large."""
    kind = getattr(getattr(cells, "dtype", None), "kind", "O")
    return np.asarray(cells).ravel().tolist() if kind in "iu" else cells_of(cells)


def _name(cell: Any) -> str | None:
    """What an id is compared by: whole numbers exactly, others as labels are."""
    if isinstance(cell, (int, np.integer)):
        return str(int(cell))
    if isinstance(cell, str) and cell.isascii() and cell.isdigit() and len(cell) < _DIGITS:
        return str(int(cell))
    return key(cell)


def _no_draws() -> PrivacyError:
    return PrivacyError(
        "rows of people with several rows (Private(unit=...)) cannot be drawn at random one by "
        "one; make one row of each person beforehand, or choose a method without draws."
    )
