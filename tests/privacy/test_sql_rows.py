"""Rows of queries of databases: the same bits as in memory, and databases that break their word."""

import datetime as dt
import logging
import sqlite3
from decimal import Decimal
from itertools import islice

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpadapt import Private, ReweightingRegressor
from dpadapt.evaluation import hold_out
from dpadapt.privacy import PrivacyError, Schema, StorageError
from dpadapt.privacy.rows import database, sources
from dpadapt.privacy.rows.cells import text
from privacy.test_arrow_rows import NAMES, SECRET, bits, block_of, refused, rows_of, value

WITHHELD = "withheld"


@pytest.fixture(autouse=True)
def _nothing_is_said(recwarn, caplog, capfd):
    yield
    said = [str(each.message) for each in recwarn] + caplog.messages + list(capfd.readouterr())
    assert not any(said)


@pytest.fixture
def base(tmp_path):
    """A database with 3000 people, and its URL."""
    frame = rows_of(3000)
    frame.insert(0, "id", np.arange(3000))
    with sqlite3.connect(tmp_path / "people.db") as connection:
        frame.sample(frac=1.0, random_state=0).to_sql("people", connection, index=False)
    connection.close()
    return f"sqlite:///{tmp_path / 'people.db'}", frame


def changed(url, *statements):
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


QUERY = "SELECT a, b, c, y, id FROM people"


def opened(url, frame, folder):
    frame[[*NAMES, "y", "id"]].to_parquet(folder / "people.parquet")
    return {
        "memory": Private(frame[[*NAMES, "id"]], frame["y"]),
        "parquet": Private.from_parquet(folder / "people.parquet", label="y"),
        "arrow": Private.from_arrow(
            pa.Table.from_pandas(frame[[*NAMES, "y", "id"]], preserve_index=False), label="y"
        ),
        "sql": Private.from_sql(url, QUERY, label="y", order_by="id"),
        "said": Private.from_sql(
            url, f" {QUERY} -- all\n;", label="y", order_by=["id"], n_rows=3000
        ),
    }


@pytest.mark.parametrize("part", ["all", "train", "holdout"])
def test_bits_are_those_of_rows_in_memory(base, tmp_path, monkeypatch, part):
    monkeypatch.setattr(sources, "BLOCK_ROWS", 700)
    found = opened(*base, tmp_path)
    assert {private.n_rows for private in found.values()} == {3000}
    assert {private.columns for private in found.values()} == {("a", "b", "c", "id")}
    for view in (lambda rows: rows, lambda rows: rows.select(["b", "a"])):
        values = {name: value(view(each), part).tobytes() for name, each in found.items()}
        assert len(set(values.values())) == 1


@pytest.mark.parametrize("kept", [{}, {"memory": 0}])
def test_a_fit_has_the_same_bits(base, tmp_path, kept):
    model = ReweightingRegressor(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0)
    made = {
        name: bits(private.select(NAMES).kept(**kept), model, rows_of(200, 1))
        for name, private in opened(*base, tmp_path).items()
    }
    assert len(set(made.values())) == 1, made


def test_parts_held_out_and_people_need_an_order(base, tmp_path):
    url, _ = base
    loose = Private.from_sql(url, QUERY, label="y")
    read = []
    frames = database.SqlQuery.frames
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            database.SqlQuery, "frames", lambda *a, **k: read.append(1) or frames(*a, **k)
        )
        for view in (loose, loose.select(["a"]), loose.map(lambda X: X, 4), loose.encode([0, 1])):
            refused(lambda v=view: hold_out(v, 0.2, epsilon=1.0, delta=1e-6), "order_by")
            refused(lambda v=view: value(v, "train"), "order_by")
        who = {"unit": "id", "max_rows": 2}
        refused(lambda: Private.from_sql(url, QUERY, **who), "order_by")
        refused(lambda: loose._rows.take(np.array([0])), "drawn at random")
        assert not read
    assert value(loose).shape == (4, 4)
    with pytest.raises(ValueError, match="no column 'nobody'"):
        Private.from_sql(url, QUERY, order_by="nobody")


def test_people(base):
    url, frame = base
    query = "SELECT id, a, b, c, y, id / 3 AS who FROM people"
    private = Private.from_sql(url, query, label="y", unit="who", max_rows=2, order_by="id")
    assert private.n_people == 1000
    whose = frame.assign(who=frame["id"] // 3)[["id", *NAMES, "who"]]
    memory = Private(whose, frame["y"], unit="who", max_rows=2)
    assert value(private).tobytes() == value(memory).tobytes()
    with pytest.raises(ValueError, match="secret"):
        Private.from_sql(url, query, unit="who", max_rows=2, order_by="id", n_rows=3000)
    for unit in ("nobody", "y"):
        with pytest.raises(ValueError, match="unit must be"):
            Private.from_sql(url, query, label="y", unit=unit, max_rows=2, order_by="id")


CELLS = [None, 1, -(2**62), 2.5, 1e308, float("inf"), "日本", "", "12", b"\xff", b"3", "a'b\n:x %s"]


def test_cells_are_those_of_memory(base):
    url, _ = base
    changed(url, "CREATE TABLE odd (place, cell)")
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.executemany("INSERT INTO odd VALUES (?, ?)", list(enumerate(CELLS)))
    connection.close()
    query = "SELECT cell, '100%s :x {} \"' AS text FROM odd"
    private = Private.from_sql(url, query)
    memory = Private(
        pd.DataFrame({"cell": CELLS, "text": ['100%s :x {} "'] * len(CELLS)}, dtype=object)
    )
    schemas = [Schema.given({"cell": kind, "text": "text"}) for kind in ("text", "number", "date")]
    for schema in schemas:
        one, two = (
            [table.iloc[:, 0].tolist() for table, _ in rows.read(schema)._rows.long_blocks()]
            for rows in (private, memory)
        )
        assert repr(one) == repr(two)


def test_a_text_that_is_no_utf8_is_read_as_bytes_are(base):
    url, _ = base
    changed(url, "UPDATE people SET a = CAST(X'FF41' AS TEXT) WHERE id = 7")
    table = block_of(Private.from_sql(url, "SELECT a, b FROM people", order_by="b"))
    assert table["a"].map(text).eq(text(b"\xffA")).sum() == 1


def test_no_rows_and_few_columns(base):
    url, _ = base
    empty = Private.from_sql(url, f"{QUERY} WHERE id < 0", label="y")
    assert (empty.n_rows, value(empty).any()) == (0, False)
    assert Private.from_sql(url, "SELECT y FROM people", label="y").n_columns == 0
    with pytest.raises(ValueError, match="no column 'z'"):
        Private.from_sql(url, QUERY, label="z")


# Databases that break their word ------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        ([f"INSERT INTO people (id, a) VALUES (5000, '{SECRET}')"], "not as many"),
        (["DELETE FROM people WHERE id = 2999"], "first pass"),
        ([f"UPDATE people SET a = '{SECRET}' WHERE id = 7"], "first pass"),
        (["UPDATE people SET id = -id"], "not in the same order"),
        (["ALTER TABLE people DROP COLUMN b"], WITHHELD),
        (["DROP TABLE people"], WITHHELD),
    ],
)
def test_rows_that_change_between_passes(base, statements, said):
    private = Private.from_sql(base[0], QUERY, order_by="id", label="y")
    value(private)
    changed(base[0], *statements)
    refused(lambda: value(private), said)
    assert not private.spent(1e-6).events


def test_other_columns_are_refused(base):
    private = Private.from_sql(base[0], "SELECT * FROM people", label="y")
    changed(base[0], "ALTER TABLE people ADD COLUMN more")
    refused(lambda: value(private), "other columns")


@pytest.mark.parametrize("said", [0, 2999, 3001, 10**9])
def test_another_number_of_rows_than_said(base, said):
    private = Private.from_sql(base[0], QUERY, n_rows=said)
    refused(lambda: value(private), "not as many")


def test_what_a_database_says_is_withheld(base):
    url, _ = base
    odd = f"'{SECRET}'"
    for query in (
        "SELECT * FROM nobody",
        f"SELECT {odd} FROM",
        "DELETE FROM people",
        "SELECT 1; SELECT 2",
        "PRAGMA user_version",
        f"SELECT a FROM people WHERE abs(a, {odd})",
    ):
        refused(lambda query=query: Private.from_sql(url, query), WITHHELD)
    # sums of whole numbers overflow when the rows are read, and not before
    late = f"SELECT id, abs(-9223372036854775807 - (id = 2900)) AS b, {odd} AS c FROM people"
    private = Private.from_sql(url, late, order_by="id")
    refused(lambda: value(private), WITHHELD)
    refused(lambda: list(Private.from_sql(url, late)._rows.blocks()), WITHHELD)


def test_a_stated_number_of_rows_is_no_secret(base):
    budget = {"epsilon": 1.0, "delta": 1e-6, "relation": "add-remove"}
    refused(lambda: Private.from_sql(base[0], QUERY, n_rows=3000).open(**budget), "n_rows states")
    Private.from_sql(base[0], QUERY).open(**budget)


def test_rows_that_find_no_room_are_refused_before_a_pass(base, monkeypatch):
    private = Private.from_sql(base[0], QUERY, label="y").select(NAMES)
    model, read = ReweightingRegressor(epsilon=0.05, delta=1e-6), []
    monkeypatch.setattr(database.SqlQuery, "frames", lambda *given: read.append(1))
    with pytest.raises(StorageError, match="--keep-memory"):
        bits(private.kept(memory=1000, spill=False), model, rows_of(200, 1))
    assert not private.spent(1e-6).events
    assert not read


@pytest.mark.parametrize(
    "url",
    [
        f"nosuch://me:{SECRET}@host/base",
        f"postgresql://me:{SECRET}@host:port{SECRET}/base",
        f"{SECRET}",
        f"sqlite:////nowhere/{SECRET}.db",
        f"sqlite:////tmp/{SECRET * 300}.db",
        f"mssql+pymssql://me:{SECRET}@host/base",
    ],
)
def test_a_url_is_not_told(url):
    with pytest.raises(ValueError, match="url") as caught:
        Private.from_sql(url, "SELECT 1")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_no_connection(tmp_path):
    url = f"postgresql://me:{SECRET}@/base?host={tmp_path}"
    refused(lambda: Private.from_sql(url, "SELECT 1"), "could not be reached")


def test_nothing_is_logged(base, caplog):
    caplog.set_level(logging.DEBUG)
    logging.getLogger("sqlalchemy").setLevel(logging.DEBUG)
    try:
        value(Private.from_sql(base[0], QUERY, order_by="id", label="y"))
    finally:
        logging.getLogger("sqlalchemy").setLevel(logging.NOTSET)
    assert not caplog.records


class Slow:
    """A result of which a driver gives one row at a time."""

    def __init__(self, rows):
        self._rows = iter(rows)

    def fetchmany(self, rows):
        return list(islice(self._rows, 1))


def test_blocks_are_full_whatever_a_driver_gives_at_a_time():
    slow = Slow([(place,) for place in range(5)])
    assert [len(database._next(slow, 2)) for _ in range(4)] == [2, 2, 1, 0]


def test_the_content_of_a_block_is_that_of_its_cells():
    def content(*cells):
        return database._content(database._frame(("a", "b"), [(each, "z") for each in cells]))

    same = [(1.0, 2.0), (object(), 1), (None, "x"), ([1], {"a": 1}), (memoryview(b"a"), 1)]
    for cells in same:
        again = [object() if type(each) is object else each for each in cells]
        assert content(*cells) == content(*again)
    others = [(1.0, 2.0), (2.0, 1.0), (1, 2.0), ("1.0", 2.0), (None, 2.0), (True, 2.0), (b"1", 2.0)]
    others += [("x at 0x1", 2.0), ("x at 0x2", 2.0), ("\ud800", 2.0), (float("nan"), 2.0)]
    assert len({content(*cells) for cells in others}) == len(others)


def test_types():
    for given in ({"url": 3, "query": "SELECT 1"}, {"url": "sqlite:///", "query": b"SELECT 1"}):
        with pytest.raises(TypeError, match="must be a text"):
            Private.from_sql(**given)
    with pytest.raises(ValueError, match="n_rows"):
        Private.from_sql("sqlite:///", "SELECT 1 AS a", n_rows=-1)


def test_connections_are_closed_when_a_pass_ends_early(base, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_ROWS", 10)
    private = Private.from_sql(base[0], QUERY)
    closed = []
    from sqlalchemy import Connection

    close = Connection.close
    monkeypatch.setattr(Connection, "close", lambda self: closed.append(1) or close(self))
    blocks = private._rows.blocks()
    next(blocks)
    assert not closed
    blocks.close()
    assert closed
    with pytest.raises(PrivacyError):
        private._rows.take(np.array([1]))


@pytest.fixture
def rows_in_postgres(postgres_url):
    import psycopg

    frame = rows_of(3000)
    with psycopg.connect(postgres_url) as connection:
        connection.execute(
            "CREATE TABLE people (id integer, a float8, b float8, c float8, y float8, "
            "money numeric, born date, seen timestamptz, list integer[], text text, raw bytea)"
        )
        with connection.cursor().copy("COPY people (id, a, b, c, y) FROM STDIN") as copy:
            for row in frame.reset_index().sample(frac=1.0, random_state=0).itertuples(index=False):
                copy.write_row([None if each != each else each for each in row])
        connection.execute(
            "INSERT INTO people VALUES (9000, 'NaN', 'inf', 1, 0, 1.50, '2020-01-01', "
            "'2020-01-01 05:00+01', '{1, 2}', %s, %s)",
            [SECRET, b"\xff"],
        )
    return postgres_url, frame


def test_postgres(rows_in_postgres, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_ROWS", 700)
    url, frame = rows_in_postgres
    found = opened(url, frame.reset_index(names="id"), tmp_path)
    del found["sql"], found["said"]
    query = f"{QUERY} WHERE id < 3000 AND coalesce(text, '') NOT LIKE '%s'"
    found["sql"] = Private.from_sql(url, query, label="y", order_by="id")
    for part in ("all", "train"):
        values = {name: value(each, part).tobytes() for name, each in found.items()}
        assert len(set(values.values())) == 1
    odd = Private.from_sql(
        url, "SELECT money, born, seen, list, text, raw, a, b FROM people WHERE id = 9000"
    )
    ((table, _),) = odd._rows.blocks()
    cells = [
        *(Decimal("1.50"), dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 4, tzinfo=dt.UTC)),
        *([1, 2], SECRET, b"\xff"),
    ]
    assert table.iloc[0].tolist()[:6] == cells
    assert value(odd).shape == (8, 8)
    late = Private.from_sql(
        url, "SELECT id, text::int AS b FROM people", n_rows=3001, order_by="id"
    )
    refused(lambda: value(late), WITHHELD)
    named = 'SELECT -id AS "share %%s", id AS "Share %%s", id AS "100 %" FROM people'
    for name, first in (("100 %", 0), ("share %%s", 9000), ("Share %%s", 0)):
        rows = Private.from_sql(url, named, order_by=name)._rows
        assert next(rows.blocks())[0]["Share %%s"][0] == first
    with pytest.raises(ValueError, match="two columns of the same name: a"):
        Private.from_sql(url, "SELECT a, a FROM people")


NARROW = [
    ("date", "infinity", "2020-01-01", dt.date(2020, 1, 1)),
    ("date", "0044-03-15 BC", "2020-01-01", dt.date(2020, 1, 1)),
    ("timestamp", "-infinity", "2020-01-01", dt.datetime(2020, 1, 1)),
    ("timestamptz", "20000-01-01", "2020-01-01 00:00+00", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
    ("time", "24:00", "05:00", dt.time(5)),
    ("timetz", "24:00+00", "05:00+00", dt.time(5, tzinfo=dt.UTC)),
    ("interval", "170000000 years", "1 day", dt.timedelta(days=1)),
    ("json", "9" * 5000, "[1]", [1]),
    ("jsonb", "[" * 5000 + "]" * 5000, "[1]", [1]),
    ("date[]", "{infinity}", "{2020-01-01}", [dt.date(2020, 1, 1)]),
]


@pytest.mark.parametrize(("kind", "odd", "plain", "cell"), NARROW)
def test_a_cell_that_python_has_no_object_for_is_missing(postgres_url, kind, odd, plain, cell):
    one, two = (f"'{each}'::{kind}" for each in (odd, plain))
    query = f"SELECT 0 AS id, {one} AS a UNION ALL SELECT 1, {two}"
    table = block_of(Private.from_sql(postgres_url, query, order_by="id"))
    assert table["a"][0] in (None, [None])
    assert table["a"][1] == cell


@pytest.mark.parametrize(("kind", "odd", "plain", "cell"), NARROW[:-1])
def test_a_loader_that_fails_finds_nothing(kind, odd, plain, cell):
    psycopg = pytest.importorskip("psycopg")
    number = psycopg.adapters.types[kind].oid
    known = psycopg.adapters.get_loader(number, psycopg.pq.Format.TEXT)
    loader = database._or_missing(known)(number)
    try:
        found = loader.load(odd.encode())
    except Exception as error:
        pytest.fail(type(error).__name__)
    assert found is None
    assert kind == "timestamptz" or loader.load(plain.encode()) == cell


def test_postgres_reads_in_blocks(rows_in_postgres, monkeypatch):
    import psycopg

    monkeypatch.setattr(sources, "BLOCK_ROWS", 100)
    made = []
    cursor = psycopg.ServerCursor.__init__
    monkeypatch.setattr(
        psycopg.ServerCursor, "__init__", lambda *a, **k: made.append(1) or cursor(*a, **k)
    )
    value(Private.from_sql(rows_in_postgres[0], QUERY, n_rows=3001, label="y"))
    assert made
