"""Cells of private tables as float64: what is no number becomes NaN, whatever it is.

Two promises, which every function here keeps. *Total*: no value raises, warns, logs or prints.
*Row-wise*: what a cell becomes depends on the cell and on the public type of its column, never on
another cell; otherwise one person's odd cell would change the rows of all.
"""

from __future__ import annotations

import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from decimal import Decimal
from fractions import Fraction
from threading import Lock
from typing import Any

import numpy as np

from .events import FloatArray

Table = Any  # one block of rows: an array, a DataFrame, a sparse matrix or an ArrowBlock
_TEXT = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}
_TEXT |= {"fixed_size_binary"}
_NUMBERS = (float, int, str, np.floating, np.integer, np.bool_, Decimal, Fraction)


def numbers(values: Any) -> FloatArray:
    """Any table or column as float64; what is no number becomes NaN.

    Examples
    --------
    >>> numbers(np.array([True, "2.5", None, 10**400, [3], b"4"], dtype=object))
    array([1. , 2.5, nan, nan, nan, 4. ])
    """
    if isinstance(values, ArrowBlock) or hasattr(values, "columns"):
        out = np.empty(values.shape, order="F")
        fill(out, values)
        return out
    if hasattr(values, "iloc"):
        return _series(values)
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), np.nan, numbers(np.asarray(values)))
    return _array(np.asarray(values))


def fill(out: FloatArray, table: Table) -> None:
    """Write a block into ``out``, column by column: one pass, no copy in between."""
    if isinstance(table, ArrowBlock):
        for position in range(table.shape[1]):
            out[:, position] = table.column(position)
    elif hasattr(table, "iloc"):
        for position in range(table.shape[1]):
            out[:, position] = _series(table.iloc[:, position])
    elif hasattr(table, "toarray"):
        out[...] = table.toarray()
    else:
        out[...] = numbers(table)


def rows_of_lists(rows: Iterable[Iterable[Any]]) -> FloatArray:
    """Lists of cells as one array, cell by cell: numpy would choose one type for all of them."""
    listed = [np.fromiter(map(_cell, row), np.float64) for row in rows]
    if len({len(row) for row in listed}) > 1:
        raise ValueError("X must be a table: every row needs the same number of columns.")
    return np.array(listed) if listed else np.zeros((0, 0))


def column_of_list(cells: Iterable[Any]) -> FloatArray:
    """List of cells as one column, cell by cell."""
    return np.fromiter(map(_cell, cells), np.float64)


def codes(labels: Any, classes: Any) -> FloatArray:
    """Place of each label among the classes; NaN for one that is not among them.

    Examples
    --------
    >>> codes(["no", "yes", None, b"no"], ["no", "yes"])
    array([ 0.,  1., nan,  0.])
    >>> codes(np.array([3.0, 5.0, 4.0]), np.array([3, 5]))
    array([ 0.,  1., nan])
    """
    known = np.asarray(classes)
    if known.dtype.kind in "biuf":
        of_number = {float(each): place for place, each in enumerate(known)}
        cells = numbers(labels) if hasattr(labels, "dtype") else column_of_list(labels)
        return np.array([of_number.get(cell, np.nan) for cell in cells.tolist()], dtype=np.float64)
    of_text = {str(each): float(place) for place, each in enumerate(known)}
    listed = labels if isinstance(labels, (list, tuple)) else np.asarray(labels, dtype=object)
    return np.fromiter((_code(cell, of_text) for cell in listed), np.float64)


def _code(cell: Any, of_text: dict[str, float]) -> float:
    try:
        if isinstance(cell, bytes):
            cell = cell.decode("utf-8", "replace")
        if isinstance(cell, (str, int, np.integer)):
            return of_text.get(str(cell), np.nan)
    except Exception:  # a class of one's own that claims to be a text
        pass
    return np.nan


def arrow_codes(column: Any, classes: Any) -> FloatArray:
    """Place of each label of a record batch's column among the classes."""
    import pyarrow as pa

    column = _decoded(column)
    if np.asarray(classes).dtype.kind in "biuf":
        return codes(arrow_numbers(column), classes)
    if _is_text(column.type):
        column = column.cast(pa.large_binary())  # bytes that are no UTF-8 must not raise
    elif not pa.types.is_integer(column.type):
        return np.full(len(column), np.nan)
    return codes(column.to_pylist(), classes)


def _array(values: Any) -> FloatArray:
    if values.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            return np.asarray(values, dtype=np.float64)
    if values.dtype.kind in "OUST":
        return np.fromiter(map(_cell, values.flat), np.float64, values.size).reshape(values.shape)
    return np.full(values.shape, np.nan)  # dates, durations, complex and structured types


def _series(column: Any) -> FloatArray:
    kind = column.dtype.kind
    if isinstance(column.dtype, np.dtype) and kind in "biuf":
        return _array(column.to_numpy())
    if kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind in "Mm":
        return np.full(len(column), np.nan)
    cells = _each(lambda: column.to_numpy(dtype=object), lambda i: column.iloc[i], len(column))
    return column_of_list(cells)


def _cell(value: Any) -> float:
    try:
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, _NUMBERS) and not isinstance(value, np.timedelta64):
            return float(value)
    except Exception:  # no such number, or one beyond the range of a float
        pass
    return np.nan


def _each(whole: Callable[[], Any], one: Callable[[int], Any], size: int) -> Iterable[Any]:
    """All cells at once or, if that fails, one by one, None for a cell that fails."""
    try:
        cells: Iterable[Any] = whole()
    except Exception:
        return [_or_none(one, i) for i in range(size)]
    return cells


def _or_none(one: Callable[[int], Any], i: int) -> Any:
    try:
        return one(i)
    except Exception:
        return None


class ArrowBlock:
    """A record batch that becomes numbers or a data frame when it is needed.

    Types follow from the file's schema alone. pyarrow's own choice would turn whole numbers with
    a gap into floats and flags with a gap into objects, for everybody in the block.
    """

    def __init__(self, batch: Any, names: tuple[str, ...]) -> None:
        self._columns = [batch.column(batch.schema.get_field_index(name)) for name in names]
        self._batch, self._names = batch, names
        self.shape = (int(batch.num_rows), len(names))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> ArrowBlock:
        return ArrowBlock(self._batch[rows], self._names)

    def column(self, position: int) -> FloatArray:
        """One column as numbers."""
        return arrow_numbers(self._columns[position])

    def frame(self) -> Any:
        """Return a data frame for a fitted transformer; whole numbers and flags become floats."""
        import pandas as pd

        columns = dict(zip(self._names, map(_arrow_series, self._columns), strict=True))
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self)))


def arrow_numbers(column: Any) -> FloatArray:
    """Column of a record batch as float64."""
    import pyarrow as pa

    column = _decoded(column)
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _array(column.to_numpy(zero_copy_only=False))
    if pa.types.is_decimal(kind) or _is_text(kind):
        if _is_text(kind):
            column = column.cast(pa.large_binary())  # bytes that are no UTF-8 must not raise
        return column_of_list(column.to_numpy(zero_copy_only=False))
    return np.full(len(column), np.nan)


def _arrow_series(column: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    column = _decoded(column)
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return pd.Series(arrow_numbers(column))
    dtype = column[:0].to_pandas().dtype
    cells = _each(column.to_pandas, lambda i: column[i].as_py(), len(column))
    return pd.Series(cells, dtype=dtype)


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


def _is_text(kind: Any) -> bool:
    return str(kind).split("[")[0] in _TEXT


def as_frame(table: Table) -> Any:
    """Copy of a block that a fitted transformer may take, and even change."""
    return table.frame() if isinstance(table, ArrowBlock) else table.copy()


class _Shared:
    """A setting of the whole process that the first to enter makes and the last to leave undoes.

    Two sessions in two threads would otherwise restore each other's settings, for good.
    """

    def __init__(self, make: Callable[[ExitStack], None]) -> None:
        self._make, self._lock, self._inside, self._undo = make, Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._make(self._undo)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._undo.close()


def _ignore_warnings(undo: ExitStack) -> None:
    undo.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")


def _mute(undo: ExitStack) -> None:
    undo.enter_context(redirect_stdout(_Nowhere()))
    undo.enter_context(redirect_stderr(_Nowhere()))
    undo.callback(logging.disable, logging.root.manager.disable)
    logging.disable(sys.maxsize)


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


_NO_WARNINGS, _MUTED = _Shared(_ignore_warnings), _Shared(_mute)


@contextmanager
def quiet() -> Iterator[None]:
    """No warning may speak of private values, no floating-point setting may raise on them."""
    with _NO_WARNINGS, np.errstate(all="ignore"):
        yield


@contextmanager
def muted() -> Iterator[None]:
    """Around foreign code: what it logs or prints may speak of private values, too."""
    with quiet(), _MUTED:
        yield
