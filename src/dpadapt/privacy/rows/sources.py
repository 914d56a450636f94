"""Where private rows come from, in blocks.

A source yields blocks of rows, so that an array, a data frame and a Parquet file larger than
memory give the same statistics. Nothing here raises on a value (:mod:`.cells`). Exceptions,
warnings and messages depend on shapes, types and column names only.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from dpadapt._types import FloatArray, IntArray

from . import parquet as _parquet
from .arrow import ArrowBlock, arrow_cells
from .cells import cells_of, codes, numbers_of
from .database import SqlQuery
from .errors import PrivacyError
from .kept import Keeping
from .quiet import quiet
from .schema import as_read
from .streams import Stream, cell_bytes
from .tables import Table, numbers, objects

BLOCK_ROWS = 16_384  # at most; small enough for the processor's cache at 20 columns
BLOCK_CELLS = 1 << 20  # at most, so that wide tables stay within memory
Block = tuple[Table, FloatArray | None]


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
    people: Any = None  # whose rows they are, where people have several (people.py)
    keeping: Keeping = Keeping()  # what a session may keep of them

    def kept_as(self, keeping: Keeping) -> RowSource:
        """Return the same rows, of which as much may be kept; also what a view of them keeps."""
        new = copy.copy(self)
        new.keeping = keeping
        if isinstance(inner := vars(self).get("_source"), RowSource):
            vars(new)["_source"] = inner.kept_as(keeping)
        return new

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Rows in order, as (table, labels or None)."""

    @abstractmethod
    def coded(self, classes: Any) -> RowSource:
        """Return the same rows, each label replaced by its place among the classes."""

    def long_blocks(self) -> Iterator[Block]:
        """Rows in order, as a kernel may take them: under the schema; sparse ones stay sparse."""
        for table, y in self.blocks():
            yield as_read(table), y

    def raw(self) -> RowSource:
        """Return the same rows with the cells as they were given, to be read under a schema."""
        return self

    def take(self, places: IntArray) -> Block:
        """Rows at these places, in this order, as (table, labels or None)."""
        raise _no_places()

    def sampled(self, places: IntArray) -> RowSource:
        """Source of the rows at these places, in this order; copies of them."""
        raise _no_places()

    def need_order(self, what: str) -> None:
        """Refuse what goes by the places of rows, if these have none of their own."""
        if isinstance(inner := vars(self).get("_source"), RowSource):
            inner.need_order(what)

    def sizes(self) -> dict[str, float]:
        """Public sizes, for the guarantee."""
        return {"private rows": self.n_rows}

    def relation(self, asked: Any) -> Any:
        """Relation that is stated where this one was asked for."""
        inner = vars(self).get("_source")
        return inner.relation(asked) if isinstance(inner, RowSource) else asked

    def by_people(self) -> RowSource:
        """Return the places of people, where rows have people; else the rows themselves."""
        return self if self.people is None else self.people.rows(self)

    def with_labels(self) -> RowSource:
        """Return the same places, none filled by a row without a label where there is another."""
        return self

    @abstractmethod
    def labels(self) -> FloatArray:
        """All labels, in order, as numbers or places among classes; NaN for none."""

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
            self._raw: Any = _as_table(X)
            # lists are read once: their cells would be read again in every pass
            self._X: Any = numbers(self._raw) if isinstance(X, (list, tuple)) else self._raw
            self.n_rows, self.n_columns = (int(size) for size in self._X.shape)
            self.columns = unique(self._raw.columns) if hasattr(self._raw, "iloc") else None
            self._y = None if y is None else _as_labels(y, self.n_rows)
        self._given = y
        self.labelled = y is not None

    def coded(self, classes: Any) -> MemoryRows:
        new = copy.copy(self)
        if self.labelled:
            with quiet():
                new._y = _coded(self._given, classes, self.n_rows)
        return new

    def raw(self) -> MemoryRows:
        new = copy.copy(self)
        new._X = self._raw
        return new

    def blocks(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, self.block_rows):
            cut = slice(start, start + self.block_rows)
            rows = self._X[cut] if self.columns is None else self._X.iloc[cut]
            yield rows, None if self._y is None else numbers(self._y[cut])

    def labels(self) -> FloatArray:
        return np.full(self.n_rows, np.nan) if self._y is None else numbers(self._y)

    def take(self, places: IntArray) -> Block:
        # take is five times as fast as an index, on rows far apart in memory
        rows = self._X.take(places, axis=0) if self.columns is None else self._X.iloc[places]
        return rows, None if self._y is None else numbers(self._y.take(places))

    def sampled(self, places: IntArray) -> RowSource:
        new = copy.copy(self)
        for name in ("_X", "_raw"):
            table = getattr(self, name)
            setattr(new, name, table[places] if self.columns is None else table.iloc[places])
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
            self._raw = self._X = _as_sparse(X)
            self.n_rows, self.n_columns = (int(size) for size in self._X.shape)
            self._y = None if y is None else _as_labels(y, self.n_rows)
        self.columns, self._given, self.labelled = None, y, y is not None

    coded, sampled, labels = MemoryRows.coded, MemoryRows.sampled, MemoryRows.labels

    def take(self, places: IntArray) -> Block:
        return self._X[places], None if self._y is None else numbers(self._y[places])

    def blocks(self) -> Iterator[Block]:
        return self._cut(self.block_rows)

    def long_blocks(self) -> Iterator[Block]:
        return self._cut(BLOCK_ROWS)  # that nobody turns into dense arrays

    def _cut(self, size: int) -> Iterator[Block]:
        for start in range(0, self.n_rows, size):
            cut = slice(start, start + size)
            yield self._X[cut], None if self._y is None else numbers(self._y[cut])


class NamedRows(RowSource):
    """Rows of named columns, one of which may be the label; read in blocks."""

    _label: str | None
    _classes: Any = None
    _said: int | None = None  # rows, as somebody stated

    def relation(self, asked: Any) -> Any:
        if asked == "add-remove" and self._said is not None:
            raise PrivacyError(
                "under relation='add-remove' the number of rows is a secret, and n_rows states it: "
                "whether it is true is told. Leave n_rows out, or use relation='replace-one'."
            )
        return asked

    def coded(self, classes: Any) -> NamedRows:
        new = copy.copy(self)
        new._classes = classes
        return new

    def labels(self) -> FloatArray:
        found = [y for _, y in self._labelled() if y is not None]
        return np.concatenate(found) if found else np.full(self.n_rows, np.nan)

    def _labelled(self) -> Iterator[Block]:
        """Blocks for the sake of their labels."""
        return self.blocks()

    def _name(self, names: tuple[str, ...], label: str | None, what: str) -> None:
        """Say which columns there are."""
        if label is not None and label not in names:
            raise ValueError(f"label: {what} no column {label!r}.")
        self._label, self.labelled = label, label is not None
        self.columns = tuple(name for name in unique(names) if name != label)
        self.n_columns = len(self.columns)

    def _numbered(self, labels: Any) -> FloatArray:
        return numbers_of(labels) if self._classes is None else codes(labels, self._classes)


class BatchRows(NamedRows):
    """Rows that come as Arrow record batches."""

    @abstractmethod
    def _read(self, columns: tuple[str, ...]) -> Iterator[Any]:
        """Record batches of ``block_rows`` rows, but for the last, with at least these columns."""

    def blocks(self, columns: tuple[str, ...] | None = None) -> Iterator[Block]:
        wanted = (self.columns or ()) if columns is None else columns
        for batch in self._read(wanted if self._label is None else (*wanted, self._label)):
            label = None if self._label is None else arrow_cells(batch.column(self._label))
            yield ArrowBlock(batch, wanted), None if label is None else self._numbered(label)

    def _labelled(self) -> Iterator[Block]:
        return self.blocks(())

    def batches(self) -> Iterator[Any]:
        """All rows and columns as record batches, which may differ in the types of columns."""
        label = () if self._label is None else (self._label,)
        yield from self._read((*(self.columns or ()), *label))


class ParquetRows(BatchRows):
    """Rows of one or more Parquet files, read in blocks; never more than a few in memory.

    Files may differ in the order of their columns: columns are found by name.
    """

    def __init__(self, paths: Sequence[Path], label: str | None) -> None:
        self._paths = tuple(paths)
        names, self._counts = _parquet.sizes(self._paths)
        self._name(names, label, "the Parquet files have")
        self.n_rows = sum(self._counts)

    def _read(self, columns: tuple[str, ...]) -> Iterator[Any]:
        yield from _parquet.batches_ahead(self._paths, self._counts, columns, self.block_rows)


class ArrowRows(BatchRows):
    """Rows of an Arrow table, data set or stream, read in blocks.

    Parameters
    ----------
    source : object
        See :class:`~.streams.Stream`.
    n_rows : int, optional
        How many there are, if that is known; otherwise they are counted.
    label : str, optional

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = ArrowRows(lambda: pa.table({"a": [1.0, 2.0], "y": [0.0, 1.0]}), None, "y")
    >>> rows.n_rows, [y.tolist() for _, y in rows.blocks()]
    (2, [[0.0, 1.0]])
    """

    def __init__(self, source: Any, n_rows: int | None, label: str | None) -> None:
        self._stream = Stream(source, n_rows)
        self._name(self._stream.names, label, "the stream has")
        known = self._stream.known
        if None not in (known, n_rows) and known != n_rows:
            raise self._stream.passes.other_number()
        self._said, said = n_rows, known if n_rows is None else n_rows
        self.n_rows = self._stream.count() if said is None else said

    def _read(self, columns: tuple[str, ...]) -> Iterator[Any]:
        rows = self.block_rows
        with closing(self._stream.batches(rows * _parquet.BATCH_BLOCKS)) as batches:
            cut = _parquet.even(batches, rows)
            yield from self._stream.passes.same(cut, self.n_rows, cell_bytes)


class SqlRows(NamedRows):
    """Rows of a query of a database, read in blocks.

    Parameters
    ----------
    query : SqlQuery
    n_rows : int, optional
        How many there are, if that is known; otherwise the database counts them.
    label : str, optional

    Examples
    --------
    >>> import pathlib, sqlite3, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.db"
    >>> base = sqlite3.connect(file)
    >>> base.executescript("create table t (a); insert into t values (2.5), ('3')").close()
    >>> rows = SqlRows(SqlQuery(f"sqlite:///{file}", "SELECT a FROM t", None), None, None)
    >>> rows.n_rows, [numbers(table).tolist() for table, _ in rows.blocks()]
    (2, [[[2.5], [3.0]]])
    """

    def __init__(self, query: SqlQuery, n_rows: int | None, label: str | None) -> None:
        self._query, self.names, self._said = query, query.names, n_rows
        self._name(query.names, label, "the query has")
        self.n_rows = query.count() if n_rows is None else n_rows

    def blocks(self) -> Iterator[Block]:
        for frame in self.frames():
            y = None if self._label is None else frame.pop(self._label)
            yield frame, None if y is None else self._numbered(cells_of(y))

    def frames(self) -> Iterator[Any]:
        """All rows and columns as data frames of cells as they are."""
        with closing(self._query.frames(self.block_rows, self.n_rows)) as frames:
            yield from frames

    def need_order(self, what: str) -> None:
        self._query.need_order(what)


def _at(labels: Any, places: IntArray) -> Any:
    if labels is None or isinstance(labels, np.ndarray):
        return None if labels is None else labels[places]
    if hasattr(labels, "iloc"):
        return labels.iloc[places]
    return [labels[place] for place in places]


def _no_places() -> PrivacyError:
    return PrivacyError(
        "rows cannot be drawn at random from Parquet files, streams or queries: read them once, "
        "and hold the rows in memory or in a memory-mapped array (Private(X, y))."
    )


def _as_table(X: Any) -> Any:
    if hasattr(X, "iloc"):
        if X.ndim != 2:
            raise ValueError("X must be a DataFrame, not one column of it; use X.to_frame().")
        return X
    if hasattr(X, "toarray"):
        raise TypeError("X is a sparse matrix; use Private.from_sparse(X, y), or X.toarray().")
    if isinstance(X, (list, tuple)):
        return objects(X)
    if isinstance(X, np.ma.MaskedArray) and X.dtype.names is None:
        array = _unmasked(X)
    else:
        array = np.asarray(X)
    if array.dtype.names is not None and array.ndim == 1:
        return _as_fields(X)
    if array.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, rows and columns; got {array.ndim}. "
            "One column of n values is X.reshape(-1, 1)."
        )
    return array


def _unmasked(X: Any) -> Any:
    """Cells of a masked array as they are; None for one that is masked."""
    array, masked = np.asarray(X), np.ma.getmaskarray(X)
    if not masked.any() or array.ndim != 2:
        return array
    # numpy takes dates in nanoseconds for whole numbers when it makes objects of them
    array = objects(array) if array.dtype.kind in "mM" else array.astype(object)
    array[masked] = None
    return array


def _as_fields(X: Any) -> Any:
    """Fields of a structured array as columns."""
    import pandas as pd

    columns = {}
    for name in X.dtype.names:
        if X[name].ndim != 1:
            raise ValueError(f"X: the field {name!r} must hold one value in a row.")
        columns[name] = pd.Series(cells_of(X[name]), dtype=None if _real(X[name]) else object)
    return pd.DataFrame(columns)


def _real(field: Any) -> bool:
    return field.dtype.kind in "biufc" and not isinstance(field, np.ma.MaskedArray)


def _as_sparse(X: Any) -> Any:
    """Rows of their own: an entry of a column that does not exist is none.

    scipy takes indices as they are, and one beyond the last column is a cell of another row.
    """
    from scipy.sparse import csr_matrix

    if not hasattr(X, "tocsr"):
        raise TypeError(f"X must be a sparse matrix of SciPy; got {type(X).__name__}.")
    given = X if X.format in ("csr", "csc") else X.tocsr()
    ends, size = np.asarray(given.indptr), len(given.indices)
    if ends[0] != 0 or (np.diff(ends) < 0).any() or ends[-1] > min(size, len(given.data)):
        raise ValueError("X is no sound sparse matrix: its indptr does not grow from 0.")
    outer, inner = np.repeat(np.arange(len(ends) - 1), np.diff(ends)), given.indices[: ends[-1]]
    row, column = (outer, inner) if given.format == "csr" else (inner, outer)
    n_rows, n_columns = given.shape
    inside = (row >= 0) & (row < n_rows) & (column >= 0) & (column < n_columns)
    cells = numbers(given.data[: ends[-1]])[inside]
    return csr_matrix((cells, (row[inside], column[inside])), shape=given.shape)


def _coded(y: Any, classes: Any, n_rows: int) -> Any:
    """Places among the classes, as float32 and piece by piece: labels can be many."""
    if not isinstance(y, np.ndarray):
        return codes(cells_of(y), classes)
    out = np.empty(n_rows, dtype=np.float32 if len(classes) < 1 << 24 else np.float64)
    for start in range(0, n_rows, BLOCK_CELLS):
        cut = slice(start, start + BLOCK_CELLS)
        out[cut] = codes(cells_of(y[cut]), classes)
    return out


def _as_labels(y: Any, n_rows: int) -> Any:
    if type(y) is np.ndarray and y.dtype.kind in "biuf":
        array = y  # as it is: blocks of it become float64
    else:
        array = numbers_of(cells_of(y)) if isinstance(y, (list, tuple)) else numbers(y)
    if array.shape != (n_rows,):
        shape = " x ".join(map(str, array.shape))
        raise ValueError(f"y must hold one label for each of the {n_rows} rows; got shape {shape}.")
    return array


def unique(names: Any) -> tuple[str, ...]:
    """Names of columns; raises if two are the same."""
    counts = Counter(names)
    twice = sorted(str(name) for name, count in counts.items() if count > 1)
    if twice:
        raise ValueError(f"X has two columns of the same name: {', '.join(twice)}; rename one.")
    return tuple(counts)
