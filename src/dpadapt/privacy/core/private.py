"""``Private``: an opaque handle on private rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ... import _validate
from ..accounting.events import Event, Relation
from ..rows.cells import places_of
from ..rows.kept import Keeping, size_of
from ..rows.schema import Schema
from ..rows.sources import RowSource, SparseRows
from ..rows.views import MappedRows, ReadRows, SelectedRows
from .guarantee import Guarantee
from .noise import noise_source
from .pricing import Budget
from .session import Session


class Private:
    """Private rows that only a session can touch, and only for statistics it keeps hidden.

    A ``Private`` has no length, no shape, no items and no array form, so nothing can slice or copy
    it by accident: ``copy``, ``sklearn.clone`` and ``GridSearchCV`` hand on the same object, and
    pickling is refused. Its sizes and column names are public.

    Parameters
    ----------
    X : array, DataFrame or list of lists of shape (n, d)
        One row a person, or see ``unit``. Cells may be anything, and each is read by itself, as a
        number if nothing else is said (:meth:`read`), whatever the types of the table are. What is
        no finite number is replaced by a public value when it is used, and never causes an error.
    y : array or Series of shape (n,), optional
        Labels. A row whose label is missing, no finite number, or none of the public classes counts
        in nothing that needs a label.
    unit : array of shape (n,), or str; optional
        Whose each row is, where people have several: ids, or the column of X that holds them. All
        rows of a person are then protected together.
    max_rows : int, optional
        With ``unit``: how many rows of a person count, the first ones. Those of who has fewer count
        several times, so that everybody weighs the same.

    Attributes
    ----------
    n_rows, n_columns, n_people : int
    columns : tuple of str or None
    labelled : bool

    See Also
    --------
    Private.from_parquet : rows in files larger than memory.
    Private.from_arrow : rows of DuckDB, Polars and other sources of Arrow streams.
    Private.from_sql : rows of a query of a database.
    Private.kept : how much of them a session keeps, and where.

    Examples
    --------
    >>> private = Private([[0.0, 1.0, 2.0]] * 1000)
    >>> private
    Private(1000 rows, 3 columns, unlabelled)
    >>> private[0]
    Traceback (most recent call last):
    ...
    TypeError: 'Private' object is not subscriptable
    """

    __slots__ = ("_charged", "_rows")

    def __init__(self, X: Any, y: Any = None, *, unit: Any = None, max_rows: Any = None) -> None:
        from ..rows.people import memory_rows

        self._rows: RowSource = memory_rows(X, y, unit, max_rows)
        self._charged: list[tuple[Event, ...]] = []

    @classmethod
    def from_parquet(
        cls,
        path: str | Path | Sequence[str | Path],
        *,
        label: str | None = None,
        unit: str | None = None,
        max_rows: int | None = None,
    ) -> Private:
        """Private rows in one Parquet file, several, or a folder of them; read in blocks.

        Parameters
        ----------
        path : path, list of paths, or folder
        label : str, optional
            The column that holds the label.
        unit : str, optional
            The column that says whose row it is; as in :class:`Private`.
        max_rows : int, optional

        Examples
        --------
        >>> import pandas as pd, tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.parquet"
        >>> pd.DataFrame({"age": [30, 40], "wage": [2.5, 3.0]}).to_parquet(file)
        >>> Private.from_parquet(file, label="wage")
        Private(2 rows, 1 column, labelled)
        """
        from ..rows.people import parquet_rows

        return cls._of(parquet_rows(path, label, unit, max_rows), [])

    @classmethod
    def from_arrow(
        cls,
        source: Any,
        *,
        n_rows: int | None = None,
        label: str | None = None,
        unit: str | None = None,
        max_rows: int | None = None,
    ) -> Private:
        """Private rows of an Arrow table, data set or stream: DuckDB, Polars, ADBC, Hugging Face.

        A table or a data set of pyarrow, and what a callable opens, is read in blocks for every
        pass that needs it. Any other stream may be one that gives its rows once, which nothing
        shows: it is read now, and its rows stay in memory. For more rows than that, give a
        callable that opens a new stream: ``lambda: connection.execute(query).arrow()``. It must
        give the same rows in the same order each time, as a query with ORDER BY on a key does.
        Every pass is compared with the first: if it has another number of rows, other columns, or
        other rows, it is refused, and nothing of it is released.

        Parameters
        ----------
        source : object or callable
            A Table, RecordBatch, Dataset or RecordBatchReader of pyarrow, an object with
            ``__arrow_c_stream__``, or a callable that returns one of these.
        n_rows : int, optional
            How many rows there are (public). By default they are counted, which may be a pass.
            Not for relation="add-remove", under which the number is a secret.
        label : str, optional
            The column that holds the label.
        unit : str, optional
            The column that says whose row it is; as in :class:`Private`. Rows are then held in
            memory.
        max_rows : int, optional

        Examples
        --------
        >>> import pyarrow as pa
        >>> people = pa.table({"age": [30, 40], "wage": [2.5, 3.0]})
        >>> Private.from_arrow(people, label="wage")
        Private(2 rows, 1 column, labelled)
        >>> Private.from_arrow(lambda: people.to_reader(), n_rows=2)  # opened for every pass
        Private(2 rows, 2 columns, unlabelled)
        """
        from ..rows.people import arrow_rows

        return cls._of(arrow_rows(source, n_rows, label, unit, max_rows), [])

    @classmethod
    def from_sql(
        cls,
        url: str,
        query: str,
        *,
        order_by: str | Sequence[str] | None = None,
        n_rows: int | None = None,
        label: str | None = None,
        unit: str | None = None,
        max_rows: int | None = None,
    ) -> Private:
        """Private rows of a query of a database, read in blocks; never all at once.

        Every pass that is needed runs the query again, on a connection of its own, and is compared
        with the first one: if it has another number of rows, other columns, or other rows, it is
        refused, and nothing of it is released. So nobody should change the table meanwhile.

        Parameters
        ----------
        url : str
            Of the database, as SQLAlchemy reads it. It is never shown.
        query : str
            One SELECT, without parameters.
        order_by : str or list of str, optional
            Columns by which the rows are ordered: a key that tells any two rows apart and says
            nothing else of them, so that one person's cells do not move the others. Needed for
            what goes by places: parts that are held out, and ``unit``.
        n_rows : int, optional
            How many rows there are (public). By default the database counts them. Not for
            relation="add-remove", under which the number is a secret.
        label : str, optional
            The column that holds the label.
        unit : str, optional
            The column that says whose row it is; as in :class:`Private`. Rows are then held in
            memory.
        max_rows : int, optional

        Examples
        --------
        >>> import pathlib, sqlite3, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.db"
        >>> base = sqlite3.connect(file)
        >>> base.executescript(
        ...     "create table people (id, age, wage); insert into people values (1, 30, 2.5)"
        ... ).close()
        >>> Private.from_sql(f"sqlite:///{file}", "SELECT * FROM people", order_by="id")
        Private(1 row, 3 columns, unlabelled)
        """
        from ..rows.people import sql_rows

        return cls._of(sql_rows(url, query, n_rows, label, unit, max_rows, order_by), [])

    @classmethod
    def from_sparse(cls, X: Any, y: Any = None) -> Private:
        """Private rows of a sparse matrix of SciPy: many columns, few of them not zero.

        Parameters
        ----------
        X : sparse matrix of shape (n, d)
        y : array of shape (n,), optional

        Examples
        --------
        >>> from scipy.sparse import random_array
        >>> Private.from_sparse(random_array((50, 100_000), density=1e-4), [0.0, 1.0] * 25)
        Private(50 rows, 100000 columns, labelled)
        """
        return cls._of(SparseRows(X, y), [])

    @classmethod
    def _of(cls, rows: RowSource, charged: list[tuple[Event, ...]]) -> Private:
        new = cls.__new__(cls)
        new._rows, new._charged = rows, charged
        return new

    @property
    def n_rows(self) -> int:
        """Number of private rows that count (public): with ``unit``, people times ``max_rows``."""
        return self._rows.by_people().n_rows

    @property
    def n_people(self) -> int:
        """Number of people (public): of rows, if nobody has several."""
        return getattr(self._rows.people, "size", self._rows.n_rows)

    @property
    def n_columns(self) -> int:
        """Number of columns, the label not counted (public)."""
        return self._rows.n_columns

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Column names, or None for a plain array (public)."""
        return self._rows.columns

    @property
    def labelled(self) -> bool:
        """Whether there are labels (public)."""
        return self._rows.labelled

    def select(self, columns: Sequence[str]) -> Private:
        """Return the named columns in this order, as a view on the same rows and charges.

        Examples
        --------
        >>> import pandas as pd
        >>> Private(pd.DataFrame({"a": [1], "b": [2]})).select(["b"]).columns
        ('b',)
        """
        return self._of(SelectedRows(self._rows, columns), self._charged)

    def read(self, schema: Schema) -> Private:
        """Return the rows with every cell read as a public schema says, as a view.

        Columns are found by name if both have names. A schema matters to who looks at more than
        numbers: a :meth:`map`, or a kernel of texts. What does not fit it is missing.

        Parameters
        ----------
        schema : Schema
            From public rows (:meth:`Schema.of`) or from the caller (:meth:`Schema.given`).

        Examples
        --------
        >>> texts = Private([["a"], ["bb"], [None]]).read(Schema.given({"text": "text"}))
        >>> texts.map(lambda frame: frame[["text"]].map(len), n_columns=1)
        Private(3 rows, 1 column, unlabelled)
        """
        return self._of(ReadRows(self._rows, schema), self._charged)

    def map(self, transform: Callable[[Any], Any], n_columns: int) -> Private:
        """Return the rows under a public, row-wise map, as a view on the same rows and charges.

        Parameters
        ----------
        transform : callable
            Takes a block of rows, an array or a DataFrame, and returns an array with as many rows.
            It must treat every row on its own and must have been fitted on public data. A row on
            which it fails counts as missing. What it is given are numbers, float64, in every
            column; for other kinds, :meth:`read` the rows under a schema first.
        n_columns : int
            Width of what it returns.

        Examples
        --------
        >>> Private([[1.0, 2.0]] * 5).map(lambda X: X[:, :1] ** 2, n_columns=1)
        Private(5 rows, 1 column, unlabelled)
        """
        width = _validate.count("n_columns", n_columns, least=0)
        return self._of(MappedRows(self._rows, transform, width), self._charged)

    def encode(self, classes: Sequence[Any]) -> Private:
        """Return the rows with each label replaced by its place among public classes, as a view.

        A label that is not among the classes belongs to no class: its row is left out of what is
        computed, and nothing tells that it was there.

        Parameters
        ----------
        classes : sequence
            The class labels: numbers, or texts. From the caller or from public data.

        Examples
        --------
        >>> Private([[1.0], [2.0]], ["no", "yes"]).encode(["no", "yes"])
        Private(2 rows, 1 column, labelled)
        """
        listed = np.asarray(classes).tolist() if hasattr(classes, "dtype") else list(classes)
        places_of(listed)  # says so if two of them are the same label
        return self._of(self._rows.coded(listed), self._charged)

    def kept(
        self,
        *,
        memory: float | str | None = None,
        spill: bool = True,
        folder: str | Path | None = None,
    ) -> Private:
        """Return the rows as a view of which a session keeps so much, so that it reads them once.

        A fit is a hundred sums over the rows and more. What reading and cleaning has made of them
        is kept for the next sum: in memory, and what is more in a file, where it is read back at
        the speed of the disk. The file has no name, only this user could open it, and it goes with
        the session, also if the process is killed; but private rows are on that disk meanwhile.
        What a :meth:`map` made that takes one row a call goes with the view, not with a session.

        Parameters
        ----------
        memory : float or str, optional
            Bytes of memory for kept rows, as a number or as in "2GB". By default a quarter of what
            is free.
        spill : bool, default=True
            Whether rows beyond that may be written to a file. If not, a fit that would need one is
            refused, with a :class:`StorageError`.
        folder : path, optional
            Where the file is: on a fast disk. By default ``$TMPDIR``, or ``/var/tmp``.

        Examples
        --------
        >>> Private([[1.0]] * 100).kept(memory="500MB", spill=False)
        Private(100 rows, 1 column, unlabelled)
        """
        room = None if memory is None else size_of("memory", memory)
        place = None if folder is None else Path(folder).absolute()
        if place is not None and not place.is_dir():
            raise ValueError(f"folder: there is no folder {place}.")
        return self._of(self._rows.kept_as(Keeping(room, bool(spill), place)), self._charged)

    def open(
        self,
        *,
        epsilon: float,
        delta: float,
        relation: Relation = "replace-one",
        noise: str = "secure",
        random_state: int | None = None,
        ledger: Budget | None = None,
        label: str = "session",
        progress: Callable[[int, int], None] | None = None,
    ) -> Session:
        """Open a session with a budget; use it in a ``with`` block.

        Parameters
        ----------
        epsilon, delta : float
            What the session may spend, at most.
        relation : {"replace-one", "add-remove"}, default="replace-one"
            Which samples must look alike: with one row replaced by another, or with one row added
            or removed. Under add-remove the number of rows is a secret too: the session does not
            tell it, and releases sums instead of means.
        noise : {"secure", "seeded", "exact"}, default="secure"
        random_state : int, optional
            The seed, for ``noise="seeded"`` only.
        ledger : Account, optional
            The durable budget to charge, from :meth:`dpadapt.privacy.Ledger.account`.
        label : str
            What the session is for, in the ledger.
        progress : callable, optional
            Called with (rows done, rows in all) while rows are read.
        """
        own = _Memory(self._charged)
        return Session(
            self._rows.by_people(),
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            source=noise_source(noise, random_state),
            budgets=[own] if ledger is None else [ledger, own],
            label=label,
            progress=progress,
        )

    def spent(self, delta: float) -> Guarantee:
        """Everything that was charged on these rows by this process, composed.

        A grid search opens one session for each fit: this is what they cost together.

        Examples
        --------
        >>> Private([[1.0]]).spent(delta=1e-6).epsilon
        0.0
        """
        _validate.delta(delta)
        events = tuple(event for session in self._charged for event in session)
        sizes = self._rows.by_people().sizes() if self._rows.people else {}
        return Guarantee(events, delta, "several", sizes) if events else Guarantee()

    def __repr__(self) -> str:
        kind = "labelled" if self.labelled else "unlabelled"
        who = self._rows.people or f"{self.n_rows} row{'s' * (self.n_rows != 1)}"
        return f"Private({who}, {self.n_columns} column{'s' * (self.n_columns != 1)}, {kind})"

    def __copy__(self) -> Private:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Private:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "Private rows cannot be pickled, and so cannot be sent to other processes; use "
            "n_jobs=1, or open Private.from_parquet in each process and charge a ledger."
        )


class _Memory:
    """Remembers what was charged; refuses nothing."""

    def __init__(self, charged: list[tuple[Event, ...]]) -> None:
        self._charged = charged

    def charge(self, events: Sequence[Event], label: str) -> None:
        self._charged.append(tuple(events))
