"""Where private rows come from, in blocks.

A source yields blocks of rows, so that an array, a data frame and a Parquet file larger than
memory give the same statistics. Nothing here raises on a value (:mod:`._cells`). Exceptions,
warnings and messages depend on shapes, types and column names only.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _parquet
from ._cells import (
    ArrowBlock,
    Table,
    arrow_codes,
    arrow_numbers,
    as_frame,
    codes,
    column_of_list,
    muted,
    numbers,
    quiet,
    rows_of_lists,
)
from .errors import PrivacyError
from .events import FloatArray

__all__ = [
    "MappedRows",
    "MemoryRows",
    "ParquetRows",
    "RowSource",
    "SelectedRows",
    "SparseRows",
]

BLOCK_ROWS = 16_384  # at most; small enough for the processor's cache at 20 columns
BLOCK_CELLS = 1 << 20  # at most, so that wide tables stay within memory
Block = tuple[Table, FloatArray | None]
Places = NDArray[np.int64]
View = TypeVar("View", "SelectedRows", "MappedRows")


class RowSource(ABC):
    """Blocks of private rows with public sizes and column names.

    Attributes
    ----------
    n_rows : int
    columns : tuple of str or None
        None where the rows have no names (a plain array).
    n_columns : int
    labelled : bool
    """

    n_rows: int
    columns: tuple[str, ...] | None
    n_columns: int
    labelled: bool

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Rows in order, as (table, labels or None)."""

    @abstractmethod
    def coded(self, classes: Any) -> RowSource:
        """Return the same rows, each label replaced by its place among the classes."""

    def long_blocks(self) -> Iterator[Block]:
        """Rows in order, in blocks that nobody turns into dense arrays."""
        return self.blocks()

    def take(self, places: Places) -> Block:
        """Rows at these places, in this order, as (table, labels or None)."""
        raise _no_places()

    def sampled(self, places: Places) -> RowSource:
        """Source of the rows at these places, in this order; copies of them."""
        raise _no_places()

    @property
    def block_rows(self) -> int:
        """Rows of one block."""
        return max(1, min(BLOCK_ROWS, BLOCK_CELLS // max(1, self.n_columns)))


class MemoryRows(RowSource):
    """Rows of an array or a data frame.

    Examples
    --------
    >>> MemoryRows(np.ones((3, 2)), None).n_rows
    3
    """

    def __init__(self, X: Any, y: Any) -> None:
        with quiet():
            self._X = _as_table(X)
            self.n_rows, self.n_columns = (int(size) for size in self._X.shape)
            self.columns = _unique(X.columns) if hasattr(X, "iloc") else None
            self._y = None if y is None else _as_labels(y, self.n_rows)
        self._given = y
        self.labelled = y is not None

    def coded(self, classes: Any) -> MemoryRows:
        new = copy.copy(self)
        if self.labelled:
            with quiet():
                new._y = _coded(self._given, classes, self.n_rows)
        return new

    def blocks(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, self.block_rows):
            cut = slice(start, start + self.block_rows)
            rows = self._X[cut] if self.columns is None else self._X.iloc[cut]
            yield rows, None if self._y is None else numbers(self._y[cut])

    def take(self, places: Places) -> Block:
        # take is five times as fast as an index, on rows far apart in memory
        rows = self._X.take(places, axis=0) if self.columns is None else self._X.iloc[places]
        return rows, None if self._y is None else numbers(self._y.take(places))

    def sampled(self, places: Places) -> RowSource:
        new = copy.copy(self)
        new._X = self._X[places] if self.columns is None else self._X.iloc[places]
        new._y = None if self._y is None else self._y[places]
        new._given, new.n_rows = _at(self._given, places), len(places)
        return new


class SparseRows(RowSource):
    """Rows of a sparse matrix: blocks of it are sparse matrices, for who can take them.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> SparseRows(csr_matrix(np.eye(3)), None).n_columns
    3
    """

    def __init__(self, X: Any, y: Any) -> None:
        with quiet():
            self._X = X.tocsr().astype(np.float64)
            self.n_rows, self.n_columns = (int(size) for size in self._X.shape)
            self._y = None if y is None else _as_labels(y, self.n_rows)
        self.columns, self._given, self.labelled = None, y, y is not None

    coded, sampled = MemoryRows.coded, MemoryRows.sampled

    def take(self, places: Places) -> Block:
        return self._X[places], None if self._y is None else numbers(self._y[places])

    def blocks(self) -> Iterator[Block]:
        return self._cut(self.block_rows)

    def long_blocks(self) -> Iterator[Block]:
        return self._cut(BLOCK_ROWS)

    def _cut(self, size: int) -> Iterator[Block]:
        for start in range(0, self.n_rows, size):
            cut = slice(start, start + size)
            yield self._X[cut], None if self._y is None else numbers(self._y[cut])


class ParquetRows(RowSource):
    """Rows of one or more Parquet files, read in blocks; never more than a few in memory.

    Files may differ in the order of their columns: columns are found by name.
    """

    def __init__(self, paths: Sequence[Path], label: str | None) -> None:
        self._paths, self._label = tuple(paths), label
        self._classes: Any = None
        names, self._counts = _parquet.sizes(self._paths)
        if label is not None and label not in names:
            raise ValueError(f"label: the Parquet files have no column {label!r}.")
        self.columns = tuple(name for name in _unique(names) if name != label)
        self.n_columns, self.n_rows = len(self.columns), sum(self._counts)
        self.labelled = label is not None

    def blocks(self, columns: tuple[str, ...] | None = None) -> Iterator[Block]:
        wanted = (self.columns or ()) if columns is None else columns
        read = wanted if self._label is None else (*wanted, self._label)
        for batch in _parquet.batches_ahead(self._paths, self._counts, read, self.block_rows):
            yield ArrowBlock(batch, wanted), self._labels(batch)

    def _labels(self, batch: Any) -> FloatArray | None:
        if self._label is None:
            return None
        column = batch.column(self._label)
        if self._classes is not None:
            return arrow_codes(column, self._classes)
        return arrow_numbers(column)

    def coded(self, classes: Any) -> ParquetRows:
        new = copy.copy(self)
        new._classes = classes
        return new


class SelectedRows(RowSource):
    """The named columns of another source, in the given order."""

    def __init__(self, source: RowSource, columns: tuple[str, ...]) -> None:
        known = set(source.columns or ())
        missing = [name for name in columns if name not in known]
        if missing:
            listed = ", ".join(repr(name) for name in missing[:5])
            raise ValueError(
                f"private: the private rows lack the column(s) {listed} that the public rows "
                "have; give both the same columns."
            )
        self._source: RowSource = source._source if isinstance(source, SelectedRows) else source
        self.columns, self.n_columns = _unique(columns), len(columns)
        self.n_rows, self.labelled = source.n_rows, source.labelled

    def blocks(self) -> Iterator[Block]:
        if isinstance(self._source, ParquetRows):
            yield from self._source.blocks(self.columns)
        else:
            place = {name: i for i, name in enumerate(self._source.columns or ())}
            positions = [place[name] for name in self.columns or ()]
            for table, y in self._source.blocks():
                yield table.iloc[:, positions], y

    def take(self, places: Places) -> Block:
        table, y = self._source.take(places)
        return table[list(self.columns or ())], y

    def sampled(self, places: Places) -> RowSource:
        return _on(self, self._source.sampled(places), len(places))

    def coded(self, classes: Any) -> SelectedRows:
        return _on(self, self._source.coded(classes), self.n_rows)


class MappedRows(RowSource):
    """Another source's rows under a public, row-wise map (fitted transformers, say).

    The map is made total: where it fails on a block, it is tried on smaller and smaller pieces
    down to single rows; a row on which it fails becomes NaN, which cleaning turns into the public
    mean. What the map warns, logs or prints is swallowed, because it may speak of private values.
    It works on a copy, so it may change what it is given.
    """

    def __init__(self, source: RowSource, transform: Callable[[Any], Any], width: int) -> None:
        self._source, self._transform = source, transform
        self.columns, self.n_columns = None, width
        self.n_rows, self.labelled = source.n_rows, source.labelled

    def blocks(self) -> Iterator[Block]:
        for table, y in self._source.blocks():
            yield self._mapped(table), y

    def take(self, places: Places) -> Block:
        table, y = self._source.take(places)
        return self._mapped(table), y

    def sampled(self, places: Places) -> RowSource:
        return _on(self, self._source.sampled(places), len(places))

    def _mapped(self, table: Table) -> FloatArray:
        out = np.full((table.shape[0], self.n_columns), np.nan)
        with muted():
            self._write(out, table, (2048, 256, 32, 1))
        return out

    def coded(self, classes: Any) -> MappedRows:
        return _on(self, self._source.coded(classes), self.n_rows)

    def _write(self, out: FloatArray, table: Table, smaller: tuple[int, ...]) -> None:
        if not self._attempt(out, table) and smaller:
            for start in range(0, len(out), smaller[0]):
                cut = slice(start, start + smaller[0])
                self._write(out[cut], table[cut], smaller[1:])

    def _attempt(self, out: FloatArray, table: Table) -> bool:
        try:
            result = self._transform(as_frame(table))
            result = numbers(result.toarray() if hasattr(result, "toarray") else result)
        except Exception:
            return False
        if result.shape != out.shape:
            return False
        out[...] = result
        return True


def _on(view: View, source: RowSource, n_rows: int) -> View:
    """Return the same view on other rows."""
    new = copy.copy(view)
    new._source, new.n_rows = source, n_rows
    return new


def _at(labels: Any, places: Places) -> Any:
    if labels is None or isinstance(labels, np.ndarray):
        return None if labels is None else labels[places]
    if hasattr(labels, "iloc"):
        return labels.iloc[places]
    return [labels[place] for place in places]


def _no_places() -> PrivacyError:
    return PrivacyError(
        "rows cannot be drawn at random from Parquet files: read them once, and hold the rows in "
        "memory or in a memory-mapped array (Private(X, y))."
    )


def _as_table(X: Any) -> Any:
    if hasattr(X, "iloc"):
        if X.ndim != 2:
            raise ValueError("X must be a DataFrame, not one column of it; use X.to_frame().")
        return X
    if hasattr(X, "toarray"):
        raise TypeError("X is a sparse matrix; use Private.from_sparse(X, y), or X.toarray().")
    if isinstance(X, (list, tuple)):
        return rows_of_lists(X)
    array = numbers(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, rows and columns; got {array.ndim}. "
            "One column of n values is X.reshape(-1, 1)."
        )
    if np.iscomplexobj(array):
        raise TypeError("X must hold real numbers; got a complex array.")
    return array


def _coded(y: Any, classes: Any, n_rows: int) -> Any:
    """Places among the classes, as float32 and piece by piece: labels can be many."""
    if not isinstance(y, np.ndarray):
        return codes(y, classes)
    out = np.empty(n_rows, dtype=np.float32 if len(classes) < 1 << 24 else np.float64)
    for start in range(0, n_rows, BLOCK_CELLS):
        cut = slice(start, start + BLOCK_CELLS)
        out[cut] = codes(y[cut], classes)
    return out


def _as_labels(y: Any, n_rows: int) -> Any:
    if type(y) is np.ndarray and y.dtype.kind in "biuf":
        array = y  # as it is: blocks of it become float64
    else:
        array = column_of_list(y) if isinstance(y, (list, tuple)) else numbers(y)
    if array.shape != (n_rows,):
        shape = " x ".join(map(str, array.shape))
        raise ValueError(f"y must hold one label for each of the {n_rows} rows; got shape {shape}.")
    return array


def _unique(names: Any) -> tuple[str, ...]:
    counts = Counter(names)
    twice = sorted(str(name) for name, count in counts.items() if count > 1)
    if twice:
        raise ValueError(f"X has two columns of the same name: {', '.join(twice)}; rename one.")
    return tuple(counts)


def unreadable(error: Exception) -> PrivacyError:
    """Say that a block could not be processed, without a word of what was in it."""
    return PrivacyError(
        f"the private rows could not be read or reduced ({type(error).__name__}); the reason is "
        "withheld, because it may depend on private values. Nothing was released."
    )
