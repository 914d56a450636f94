"""``Schema``: what the columns of a private table are, said by public rows or by the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .arrow import ArrowBlock
from .cells import Cells, key
from .columns import KINDS, Column, Fits, _spelling
from .tables import ColumnBlock, Table, column_of, numbers, objects


@dataclass(frozen=True, eq=False)
class Schema:
    """Kinds of the columns under which private cells are read. Public.

    A private table must not say by itself what its columns are: then one person's odd cell could
    change what everybody's cells mean. Without a schema every cell is read as a number. What does
    not fit the kind of its column is missing.

    Parameters
    ----------
    columns : tuple of Column
    names : tuple or None
        Names of the columns: a transformer is given data frames. None: it is given arrays.

    See Also
    --------
    Private.read : private rows under a schema.

    Examples
    --------
    From public rows:

    >>> import pandas as pd
    >>> public = pd.DataFrame({"town": ["A", "B"], "size": [1, 2], "new": [True, False]})
    >>> Schema.of(public)
    Schema(town: text, size: number, new: flag)

    From the caller; a list of levels is a category:

    >>> Schema.given({"town": ["A", "B"], "size": "number"})
    Schema(town: category, size: number)
    """

    columns: tuple[Column, ...]
    names: tuple[Any, ...] | None = None
    header: Any = None

    @classmethod
    def of(cls, X: Any) -> Schema:
        """Kinds and types of the columns of public rows.

        Parameters
        ----------
        X : DataFrame, array or list of rows
            Public rows.
        """
        if hasattr(X, "iloc"):
            columns = tuple(Column.of(X.iloc[:, i]) for i in range(X.shape[1]))
            return cls(columns, tuple(X.columns), X.columns)
        if isinstance(X, (list, tuple)):
            X = objects(X)
        array = X.toarray() if hasattr(X, "toarray") else np.asanyarray(X)
        if array.ndim != 2:
            raise ValueError(f"X must have two dimensions, rows and columns; got {array.ndim}.")
        return cls(tuple(Column.of(array[:, i]) for i in range(array.shape[1])))

    @classmethod
    def given(cls, kinds: Mapping[str, str | Sequence[Any]]) -> Schema:
        """Kinds by the names of the columns.

        Parameters
        ----------
        kinds : mapping of str to str or list
            "number", "flag", "date", "text", or the levels of a category.
        """
        return cls(tuple(_column(*each) for each in kinds.items()), tuple(kinds))

    @classmethod
    def numbers(cls, width: int, names: tuple[Any, ...] | None = None) -> Schema:
        """Every column a number: what is read where nobody says otherwise.

        Examples
        --------
        >>> Schema.numbers(2)
        Schema(number, number)
        """
        return cls((Column("number"),) * width, names)

    def chosen(self, positions: Sequence[int]) -> Schema:
        """Return the columns at these places.

        Examples
        --------
        >>> Schema.given({"a": "text", "b": "date"}).chosen([1])
        Schema(b: date)
        """
        names = None if self.names is None else tuple(self.names[i] for i in positions)
        return Schema(tuple(self.columns[i] for i in positions), names)

    @property
    def _plain(self) -> bool:
        return self.names is None and all(
            column.kind == "number" and column.dtype in (None, np.float64)
            for column in self.columns
        )

    def _joined(self, values: list[Any], rows: int) -> Any:
        if self.names is not None:
            import pandas as pd

            index = pd.RangeIndex(rows)
            series = {i: _indexed(each, index) for i, each in enumerate(values)}
            frame = pd.DataFrame(series, index=index)
            frame.columns = pd.Index(self.names) if self.header is None else self.header
            return frame
        if not values:
            return np.zeros((rows, 0))
        same = {each.dtype for each in values}
        out = np.empty((rows, len(values)), dtype=same.pop() if len(same) == 1 else object)
        for i, each in enumerate(values):
            out[:, i] = each
        return out

    def __repr__(self) -> str:
        kinds = [column.kind for column in self.columns]
        if self.names is not None:
            kinds = [f"{name}: {kind}" for name, kind in zip(self.names, kinds, strict=True)]
        return f"Schema({', '.join(kinds)})"


class ReadBlock(ColumnBlock):
    """A block of private rows under a schema."""

    def __init__(self, table: Table, schema: Schema, places: Sequence[int] | None = None) -> None:
        self.table, self.schema = table, schema
        self._places = range(len(schema.columns)) if places is None else places
        self.shape = (int(table.shape[0]), len(schema.columns))

    def __getitem__(self, rows: slice) -> ReadBlock:
        table = self.table.iloc[rows] if hasattr(self.table, "iloc") else self.table[rows]
        return ReadBlock(table, self.schema, self._places)

    def column(self, position: int) -> Cells:
        """Cells of one column."""
        return column_of(self.table, self._places[position])

    def chosen(self, positions: Sequence[int]) -> ReadBlock:
        """Return some of the columns."""
        places = [self._places[i] for i in positions]
        return ReadBlock(self.table, self.schema.chosen(positions), places)

    def look(self, blank: Fits = None, *, strict: bool = False) -> tuple[Any, Fits]:
        """Rows as a transformer sees them, and which of them fit; see ``Column.look``."""
        whole = isinstance(self._places, range) and isinstance(self.table, np.ndarray)
        if whole and blank is None and self.schema._plain:
            return numbers(self.table), None
        pairs = [
            column.look(self.column(i), blank, strict=strict)
            for i, column in enumerate(self.schema.columns)
        ]
        held = [fits for _, fits in pairs if fits is not None]
        fits = np.logical_and.reduce(held) if held else None
        return self.schema._joined([each for each, _ in pairs], len(self)), fits


def as_read(table: Table) -> Any:
    """Block under its schema, as a transformer may take and even change it; numbers without one."""
    if isinstance(table, ReadBlock):
        return table.look()[0]
    if is_sparse(table):
        return table.copy()
    return with_schema(table).look()[0]


def with_schema(table: Table) -> ReadBlock:
    """Block with its schema; one that has none holds numbers."""
    if isinstance(table, ReadBlock):
        return table
    frame = hasattr(table, "iloc")
    names = table.columns if frame else table.names if isinstance(table, ArrowBlock) else None
    plain = Schema.numbers(table.shape[1], None if names is None else tuple(names))
    return ReadBlock(table, replace(plain, header=table.columns) if frame else plain)


def is_sparse(table: Table) -> bool:
    """Whether a block is a sparse matrix: of numbers, and left as it is."""
    return hasattr(table, "toarray") and not hasattr(table, "iloc")


def _column(name: str, kind: str | Sequence[Any]) -> Column:
    if not isinstance(kind, str):
        levels = list(kind)
        if not levels or any(key(level) is None for level in levels):
            raise ValueError(f"kinds: the levels of {name!r} must be a list of texts or numbers.")
        return Column("category", spelling=_spelling(levels), filler=levels[0])
    if kind not in KINDS[:4]:
        listed = ", ".join(KINDS[:4])
        raise ValueError(f"kinds: {name!r} must be {listed} or a list of levels; got {kind!r}.")
    return Column(kind)


def _indexed(values: Any, index: Any) -> Any:
    import pandas as pd

    array = values.array if hasattr(values, "array") else values
    return pd.Series(array, index=index, dtype=array.dtype)  # or pandas would look for another
