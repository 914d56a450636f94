"""Blocks of rows from a query of a database, through SQLAlchemy.

Each pass is one statement, read in blocks by a cursor of the server where there is one. A database
gives rows in whatever order it finds them, which what is in them may decide, unless one is stated:
so what needs places (parts held out, people) needs a stated order. A pass that gives other rows
than the first, or in another order, is refused in any case (:mod:`.streams`).

What a driver raises, logs or prints may quote rows, and a URL may hold a password: neither is told.
That a pass failed is told, so no cell may decide it where that is ours to say: a text in SQLite
that is not UTF-8 is read as bytes are, and what psycopg makes no object of (a date without an end,
or before Christ) is missing.
"""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from .errors import LET_THROUGH, PrivacyError
from .quiet import Result
from .streams import Passes, unheard

_NARROW = ("date", "interval", "json", "jsonb", "time", "timestamp", "timestamptz", "timetz")
_NO_TEXT: Any = object.__repr__  # tells an address
_SHAPE = (
    "url must be that of a database, as SQLAlchemy reads it: sqlite:///people.db, "
    "postgresql://user@host:5432/database, with special characters %-encoded."
)


class SqlQuery:
    """What a query of a database gives, in frames of cells as the driver gives them.

    Parameters
    ----------
    url, query : str
    order_by : str or sequence of str, optional
        Columns that the rows are ordered by.

    Examples
    --------
    >>> import pathlib, sqlite3, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.db"
    >>> base = sqlite3.connect(file)
    >>> base.executescript("create table t (a); insert into t values (2), (1), (3)").close()
    >>> query = SqlQuery(f"sqlite:///{file}", "SELECT a FROM t", "a")
    >>> query.names, query.count(), [list(frame["a"]) for frame in query.frames(2, n_rows=3)]
    (('a',), 3, [[1, 2], [3]])
    """

    def __init__(self, url: str, query: str, order_by: str | Sequence[str] | None) -> None:
        for name, given in (("url", url), ("query", query)):
            if not isinstance(given, str):
                raise TypeError(f"{name} must be a text; got {type(given).__name__}.")
        self._engine = _engine(url)
        self._query = query.strip().rstrip(";")
        self.names: tuple[str, ...] = self._asked("*", " WHERE 1 = 0", _names)
        order = (order_by,) if isinstance(order_by, str) else tuple(order_by or ())
        for name in order:
            if name not in self.names:
                raise ValueError(f"order_by: the query has no column {name!r}.")
        # by place: databases differ in what a quoted name is, and in whether a and A are two
        places = ", ".join(str(self.names.index(name) + 1) for name in order)
        self._order = f" ORDER BY {places}" if order else ""
        self.passes = Passes(
            "Every pass runs the query again: state an order that is the same each time, "
            "order_by= a key, and let nobody change the table meanwhile (a copy, a snapshot)."
        )

    def need_order(self, what: str) -> None:
        """Refuse what goes by the places of rows, if no order is stated."""
        if not self._order:
            raise PrivacyError(
                f"{what} goes by the places of rows, and a database gives rows in any order: state "
                "one that is the same each time, order_by= a key. Nothing was released."
            )

    def count(self) -> int:
        """Number of rows."""
        return int(self._asked("count(*)", "", lambda found: found.scalar_one()))

    def frames(self, rows: int, n_rows: int) -> Generator[Any, None, None]:
        """Rows of a new pass, in frames of so many, but for the last."""
        yield from self.passes.same(self._frames(rows), n_rows, _content)

    def _frames(self, rows: int) -> Generator[Any, None, None]:
        undo = ExitStack()
        try:
            found = unheard(lambda: self._run("*", self._order, undo, rows))
            if unheard(lambda: _names(found)) != self.names:
                raise self.passes.other_columns()
            while cells := unheard(lambda: _next(found, rows)):
                yield unheard(partial(_frame, self.names, cells))
        finally:
            unheard(undo.close)

    def _run(self, wanted: str, order: str, undo: ExitStack, rows: int = 1) -> Any:
        connection = undo.enter_context(self._engine.connect()).execution_options(
            stream_results=True, max_row_buffer=rows, no_parameters=True
        )
        _read_any_cell(connection.connection.driver_connection)
        # as the driver reads it: colons and percent signs have no meaning of their own
        found = connection.exec_driver_sql(
            f"SELECT {wanted} FROM (\n{self._query}\n) dpadapt_rows{order}"
        )
        undo.callback(found.close)  # or the cursor would say, when it is deleted, that it was open
        return found

    def _asked(self, wanted: str, which: str, read: Callable[[Any], Result]) -> Result:
        def ask() -> Result:
            with ExitStack() as undo:
                return read(self._run(wanted, which, undo))

        with suppress(PrivacyError):
            return unheard(ask)
        raise PrivacyError(
            "the database could not be reached, or did not take the query; what it said is "
            "withheld, because it may quote private rows or a password. Nothing was released. Try "
            "SELECT count(*) FROM (your query) in a program of the database itself."
        )


def _engine(url: str) -> Any:
    from sqlalchemy import create_engine, make_url
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    failure: Exception
    try:
        read = make_url(url)
        if read.drivername == "postgresql":
            read = read.set(drivername="postgresql+psycopg")
        file = read.database if read.get_backend_name() == "sqlite" else None
        if file and file != ":memory:" and not file.startswith("file:") and not Path(file).exists():
            failure = ValueError("url: there is no such SQLite file; it would be made, and empty.")
        else:
            return unheard(lambda: create_engine(read, poolclass=NullPool, hide_parameters=True))
    except (SQLAlchemyError, ValueError, OSError):  # whose words may hold a password
        failure = ValueError(_SHAPE)
    except PrivacyError:
        failure = ValueError(
            "url: the driver of this database is not installed, or does not know what the URL "
            "says; for PostgreSQL it is psycopg: pip install 'dpadapt[postgres]'."
        )
    raise failure


def _read_any_cell(driver: Any) -> None:
    """Cells that a driver has no object for are no reason to fail."""
    if isinstance(driver, sqlite3.Connection):
        driver.text_factory = partial(str, encoding="utf-8", errors="replace")
    psycopg = sys.modules.get("psycopg")
    if psycopg is not None and isinstance(driver, psycopg.Connection):
        adapters, text = driver.adapters, psycopg.pq.Format.TEXT
        for name in _NARROW:  # types of PostgreSQL that hold more than those of Python
            known = adapters.get_loader(adapters.types[name].oid, text)
            adapters.register_loader(name, _or_missing(known))


def _or_missing(known: Any) -> Any:
    """A loader of psycopg, and None for what it fails on."""
    from psycopg.adapt import Loader

    class OrMissing(Loader):
        def __init__(self, oid: int, context: Any = None) -> None:
            super().__init__(oid, context)
            self._inner = known(oid, context)

        def load(self, data: Any) -> Any:
            try:
                return self._inner.load(data)
            except LET_THROUGH:
                raise
            except BaseException:
                return None

    return OrMissing


def _names(found: Any) -> tuple[str, ...]:
    return tuple(map(str, found.keys()))


def _frame(names: tuple[str, ...], rows: list[Any]) -> Any:
    """Cells as they are: pandas chooses no type."""
    import numpy as np
    import pandas as pd

    cells = np.empty((len(names), len(rows)), dtype=object)
    for place, column in enumerate(zip(*rows, strict=True)):
        plain = (bytes(cell) if isinstance(cell, memoryview) else cell for cell in column)
        cells[place] = np.fromiter(plain, object, len(rows))
    return pd.DataFrame(cells.T, columns=pd.Index(names, dtype=object), dtype=object)


def _content(frame: Any) -> bytes:
    """All cells as bytes; of objects without a text of their own, that they are there."""
    return b"\n".join(_said(frame[name].tolist()) for name in frame.columns)


def _said(cells: list[Any]) -> bytes:
    kinds = set(map(type, cells))
    if kinds == {float}:  # the text of a float takes long
        return b"floats " + array("d", cells).tobytes()
    silent = {kind for kind in kinds if getattr(kind, "__repr__", None) is _NO_TEXT}
    if silent:
        cells = [type(cell) if type(cell) in silent else cell for cell in cells]
    return repr(cells).encode("utf-8", "surrogatepass")


def _next(found: Any, rows: int) -> list[Any]:
    """So many rows, or all that are left; a driver may give fewer at a time."""
    cells = list(found.fetchmany(rows))
    while cells and len(cells) < rows and (more := found.fetchmany(rows - len(cells))):
        cells += more
    return cells
