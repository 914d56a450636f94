"""Views on private rows: some columns, cells under a schema, rows under a map."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from dpadapt._types import FloatArray, IntArray

from .arrow import ArrowBlock
from .errors import StorageError
from .foreign import Alone, apply, note
from .kept import Keeping, Shelf
from .row_wise import row_wise
from .schema import ReadBlock, Schema, is_sparse, with_schema
from .sources import Block, ParquetRows, RowSource, unique
from .tables import Table, numbers

_SLOW_ROWS = 256  # in a block, where a map is called for each row

View = TypeVar("View", "SelectedRows", "MappedRows", "ReadRows")


class SelectedRows(RowSource):
    """The named columns of another source, in the given order."""

    def __init__(self, source: RowSource, columns: Sequence[str]) -> None:
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names; did you mean [{columns!r}]?")
        known = set(source.columns or ())
        missing = [name for name in columns if name not in known]
        if missing:
            listed = ", ".join(repr(name) for name in missing[:5])
            raise ValueError(
                f"private: the private rows lack the column(s) {listed} that the public rows "
                "have; give both the same columns."
            )
        self._source: RowSource = source._source if isinstance(source, SelectedRows) else source
        self.columns, self.n_columns = unique(columns), len(columns)
        self.n_rows, self.labelled, self.people = source.n_rows, source.labelled, source.people
        self.keeping = source.keeping

    def blocks(self) -> Iterator[Block]:
        if isinstance(self._source, ParquetRows):
            yield from self._source.blocks(self.columns)
        else:
            for table, y in self._source.blocks():
                yield self._chosen(table), y

    def labels(self) -> FloatArray:
        return self._source.labels()

    def take(self, places: IntArray) -> Block:
        table, y = self._source.take(places)
        return self._chosen(table), y

    def _chosen(self, table: Table) -> Table:
        place = {name: i for i, name in enumerate(self._source.columns or ())}
        positions = [place[name] for name in self.columns or ()]
        chosen = isinstance(table, (ArrowBlock, ReadBlock))
        return table.chosen(positions) if chosen else table.iloc[:, positions]

    def sampled(self, places: IntArray) -> RowSource:
        return _on(self, self._source.sampled(places), len(places))

    def coded(self, classes: Any) -> SelectedRows:
        return _on(self, self._source.coded(classes), self.n_rows)

    def raw(self) -> SelectedRows:
        inner = self._source.raw()
        return self if inner.columns is None else _on(self, inner, self.n_rows)


class ReadRows(RowSource):
    """Another source's rows, each cell read under a public schema."""

    def __init__(self, source: RowSource, schema: Schema) -> None:
        if not isinstance(schema, Schema):
            kind = type(schema).__name__
            raise TypeError(f"schema must be a Schema, as in Schema.of(public rows); got {kind}.")
        if schema.names is not None and source.columns is not None:
            source = SelectedRows(source, tuple(schema.names))
        elif len(schema.columns) != source.n_columns:
            raise ValueError(
                f"schema has {len(schema.columns)} columns, but the private rows have "
                f"{source.n_columns}; give both the same columns."
            )
        self._source, self._schema = source.raw(), schema
        self.columns = None if schema.names is None else unique(schema.names)
        self.n_columns = len(schema.columns)
        self.n_rows, self.labelled, self.people = source.n_rows, source.labelled, source.people
        self.keeping = source.keeping

    def blocks(self) -> Iterator[Block]:
        for table, y in self._source.blocks():
            yield ReadBlock(table, self._schema), y

    def labels(self) -> FloatArray:
        return self._source.labels()

    def take(self, places: IntArray) -> Block:
        table, y = self._source.take(places)
        return ReadBlock(table, self._schema), y

    def sampled(self, places: IntArray) -> RowSource:
        return _on(self, self._source.sampled(places), len(places))

    def coded(self, classes: Any) -> ReadRows:
        return _on(self, self._source.coded(classes), self.n_rows)

    def raw(self) -> RowSource:
        return self._source


class MappedRows(RowSource):
    """Another source's rows under a public map of single rows (fitted transformers, say).

    A map that is known to treat every row on its own is given blocks, any other one row a call, so
    that what a row becomes never depends on who else is there (:mod:`.foreign`); its rows are kept
    for the next pass, if they find room (:mod:`.kept`). A row on which it fails becomes NaN, which
    cleaning turns into the public mean. What the map warns, logs or prints is swallowed, because it
    may speak of private values. It works on a copy, so it may change what it is given.

    Types without missing cells (whole numbers, flags) are seen as the public rows have them by a
    row that fits them; a row that does not is seen with floats, and NaN where a cell is missing.
    """

    def __init__(self, source: RowSource, transform: Callable[[Any], Any], width: int) -> None:
        self._source, self._transform = source, transform
        self.columns, self.n_columns = None, width
        self.n_rows, self.labelled, self.people = source.n_rows, source.labelled, source.people
        self.keeping = source.keeping
        self._slow = not row_wise(transform)
        if self._slow:
            Alone(transform).check()
        self._kept: list[Shelf] = []  # of a slow map, once it has seen all rows; views share it

    def blocks(self) -> Iterator[Block]:
        if not self._slow:
            for table, y in self._source.blocks():
                yield self._mapped(table), y
            return
        note(self._transform)  # it may have seen them before
        known = iter(self._kept[0]) if self._kept else iter(())
        shelf = None if self._kept else self._shelf()
        for table, y in self._source.blocks():
            for start in range(0, table.shape[0], _SLOW_ROWS):  # so that a progress bar moves
                cut = slice(start, start + _SLOW_ROWS)
                (rows,) = next(known, (None,))
                if rows is None:
                    rows = self._mapped(table.iloc[cut] if hasattr(table, "iloc") else table[cut])
                    if shelf is not None and not _fits(shelf.add, (rows,)):
                        shelf = None
                yield rows.copy(), None if y is None else y[cut]
        if shelf is not None and _fits(shelf.seal):
            self._kept[:] = [shelf]

    def _shelf(self) -> Shelf | None:
        """A place for all rows; None where there is no room."""
        store, needed = self.keeping.store(), self.n_rows * self.n_columns * 8
        return store.shelf(needed) if _fits(store.check, needed) else None

    def kept_as(self, keeping: Keeping) -> RowSource:
        new = super().kept_as(keeping)
        vars(new)["_kept"] = []
        return new

    def labels(self) -> FloatArray:
        return self._source.labels()

    def take(self, places: IntArray) -> Block:
        table, y = self._source.take(places)
        return self._mapped(table), y

    def sampled(self, places: IntArray) -> RowSource:
        new = _on(self, self._source.sampled(places), len(places))
        new._kept = []
        return new

    def _mapped(self, table: Table) -> FloatArray:
        out = np.full((table.shape[0], self.n_columns), np.nan)
        if is_sparse(table):
            out[...] = self._seen(table, len(out))
            return out
        block, everybody = with_schema(table), np.ones(len(out), dtype=bool)
        _, fits = block.look(strict=True)
        fits = everybody if fits is None else fits
        for rows, strict in ((fits, True), (~fits, False)):
            if rows.any():  # the others are a public row, so that a call has always one size
                seen, _ = block.look(_unless_none(~rows), strict=strict)
                out[rows] = self._seen(seen, len(out))[rows]
        return out

    def _seen(self, table: Table, n_rows: int) -> FloatArray:
        """Rows under the map; NaN where it fails."""

        def finish(found: Any, rows: int) -> tuple[FloatArray]:
            result = numbers(found.toarray() if is_sparse(found) else found)
            if result.shape != (rows, self.n_columns):
                raise ValueError("the map must return one row for each row, of the stated width.")
            return (result,)

        results, failed = apply(self._transform, (table,), n_rows, finish)
        if results is None:
            return np.full((n_rows, self.n_columns), np.nan)
        return np.where(failed[:, None], np.nan, results[0]) if failed.any() else results[0]

    def coded(self, classes: Any) -> MappedRows:
        return _on(self, self._source.coded(classes), self.n_rows)


def _fits(keep: Callable[..., None], *given: Any) -> bool:
    """Whether there was room.

    Where there is none, rows are made again, without a word: their number may be a secret, and
    whoever keeps cleaned rows refuses where it is none.
    """
    try:
        keep(*given)
    except StorageError:
        return False
    return True


def _unless_none(blank: Any) -> Any:
    return blank if blank.any() else None


def _on(view: View, source: RowSource, n_rows: int) -> View:
    """Return the same view on other rows."""
    new = copy.copy(view)
    new._source, new.n_rows = source, n_rows
    return new
