"""Blocks of private rows as numbers, column by column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpadapt._types import FloatArray

from .cells import Cells, cells_of, numbers_of
from .errors import LET_THROUGH

Table = Any  # one block of rows: an array, a DataFrame, a sparse matrix or a Block


class ColumnBlock(ABC):
    """Rows whose columns are read when they are needed."""

    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, rows: slice) -> ColumnBlock: ...

    @abstractmethod
    def column(self, position: int) -> Cells:
        """Cells of one column."""


def numbers(values: Any) -> FloatArray:
    """Any table or column as float64; what is no number becomes NaN.

    Examples
    --------
    >>> numbers(np.array([True, "2.5", None, 10**400, [3], b"4"], dtype=object))
    array([1. , 2.5, nan, inf, nan, 4. ])
    """
    if isinstance(values, ColumnBlock) or (hasattr(values, "iloc") and values.ndim == 2):
        out = np.empty(values.shape, order="F")
        fill(out, values)
        return out
    if not isinstance(values, np.ndarray):
        return numbers(_array(values)) if np.ndim(values) != 1 else numbers_of(cells_of(values))
    if values.dtype.kind in "biufc" and not isinstance(values, np.ma.MaskedArray):
        cells = cells_of(values)
        assert isinstance(cells, np.ndarray)
        return cells
    return numbers_of(cells_of(values.ravel())).reshape(values.shape)


def _array(values: Any) -> Any:
    array = np.asarray(values)
    if array.dtype.kind in "biufc" or array.ndim != 2 or not isinstance(values, (list, tuple)):
        return array
    return objects(values)  # numpy would write numbers as texts beside a text


def fill(out: FloatArray, table: Table) -> None:
    """Write a block into ``out``, column by column: one pass, no copy in between."""
    if isinstance(table, np.ndarray) and table.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            out[...] = table
            out += 0.0  # zero has no sign
    elif isinstance(table, ColumnBlock) or hasattr(table, "iloc"):
        for position in range(table.shape[1]):
            out[:, position] = numbers_of(column_of(table, position))
    elif hasattr(table, "toarray"):
        fill(out, table.toarray())
    else:
        out[...] = numbers(table)


def column_of(table: Table, position: int) -> Cells:
    """Cells of one column of a block."""
    if isinstance(table, ColumnBlock):
        return table.column(position)
    if hasattr(table, "iloc"):
        return cells_of(table.iloc[:, position])
    if hasattr(table, "toarray"):
        return cells_of(table[:, [position]].toarray()[:, 0])
    return cells_of(table[:, position])


def objects(rows: Iterable[Iterable[Any]]) -> Any:
    """Lists of cells as one array of them as they are: numpy would choose one type for all.

    What is no list of cells is a row of which everything is missing.
    """
    listed = [_listed(row) for row in rows]
    widths = {len(row) for row in listed if row is not None}
    if len(widths) > 1 or (listed and not widths):
        raise ValueError("X must be a table: every row needs the same number of columns.")
    out = np.empty((len(listed), max(widths, default=0)), dtype=object)
    for place, row in enumerate(listed):
        for position, cell in enumerate(row or ()):
            out[place, position] = cell
    return out


def _listed(row: Any) -> list[Any] | None:
    try:
        return list(row)
    except LET_THROUGH:
        raise
    except BaseException:  # nobody's row may raise, nor tell why
        return None
