"""Rows of Arrow streams: the same bits as in memory, and streams that break their word."""

import datetime as dt
import hashlib
import re
import traceback
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as datasets
import pytest

from dpadapt import AdaMixClassifier, Private, ReweightingRegressor
from dpadapt.evaluation import hold_out
from dpadapt.privacy import Cleaning, PrivacyError, Schema, StorageError
from dpadapt.privacy.rows import sources, streams
from dpadapt.privacy.rows.streams import cell_bytes
from dpadapt.privacy.statistics import SecondMoment

SECRET = "private-31337"
NAMES = ["a", "b", "c"]


@pytest.fixture(autouse=True)
def _nothing_is_said(recwarn, caplog, capfd):
    yield
    said = [str(each.message) for each in recwarn] + caplog.messages + list(capfd.readouterr())
    assert not any(said)


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=NAMES)
    frame["y"] = np.tanh(frame["a"]) - frame["b"] + 0.1 * rng.normal(size=n)
    frame.iloc[n // 2, 3] = np.nan
    return frame


def in_pieces(table, *sizes):
    """A reader of batches of odd sizes."""
    batches, start, place = [], 0, 0
    while start < table.num_rows:
        batches += table.slice(start, sizes[place % len(sizes)]).combine_chunks().to_batches()
        start += sizes[place % len(sizes)]
        place += 1
    return pa.RecordBatchReader.from_batches(table.schema, batches)


class Capsule:
    """What knows the protocol and nothing else, as a table of Polars does."""

    def __init__(self, reader):
        self._reader = reader

    def __arrow_c_stream__(self, requested_schema=None):
        return self._reader.__arrow_c_stream__(requested_schema)


def opened(table, folder, **more):
    """The same rows by all ways."""
    table_to = folder / "one.parquet"
    frame = table.to_pandas()
    frame.to_parquet(table_to)
    return {
        "memory": Private(frame.drop(columns="y"), frame["y"]),
        "parquet": Private.from_parquet(table_to, label="y"),
        "table": Private.from_arrow(table, label="y"),
        "reader": Private.from_arrow(in_pieces(table, 7, 4096, 1), label="y"),
        "capsule": Private.from_arrow(Capsule(in_pieces(table, 999)), label="y", n_rows=len(table)),
        "callable": Private.from_arrow(lambda: in_pieces(table, 5000, 3), label="y"),
        "said": Private.from_arrow(lambda: Capsule(table), label="y", n_rows=len(table)),
        "data set": Private.from_arrow(datasets.dataset(table_to), label="y"),
    }


def value(private, part="all", **more):
    with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
        if part != "all":
            session.split(0.3)
        return session.hide(SecondMoment(Cleaning(9.0, label_range=(-1, 1))), part)._value


def bits(private, estimator, public):
    """SHA-256 of predictions and events."""
    labels = public["y"].fillna(0.0)
    if "Classifier" in type(estimator).__name__:
        labels = (labels > 0).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(public[NAMES], labels, private=private)
    told = np.asarray(estimator.predict(public[NAMES])).tobytes()
    return hashlib.sha256(told + repr(estimator.guarantee_.events).encode()).hexdigest()


def test_bits_are_those_of_rows_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_ROWS", 1000)
    table = pa.Table.from_pandas(rows_of(12_345), preserve_index=False)
    found = opened(table, tmp_path)
    assert {private.n_rows for private in found.values()} == {12_345}
    assert {private.columns for private in found.values()} == {("a", "b", "c")}
    for part in ("all", "train", "holdout"):
        values = {name: value(private, part).tobytes() for name, private in found.items()}
        assert len(set(values.values())) == 1, values


@pytest.mark.parametrize("kept", [{}, {"memory": 0}])
def test_a_fit_has_the_same_bits(tmp_path, kept):
    public, seeded = rows_of(200, 1), {"noise": "seeded", "random_state": 0}
    found = opened(pa.Table.from_pandas(rows_of(3000), preserve_index=False), tmp_path)
    model = ReweightingRegressor(epsilon=1.0, delta=1e-6, **seeded)
    made = {name: bits(private.kept(**kept), model, public) for name, private in found.items()}
    assert len(set(made.values())) == 1, made


def test_classes_and_parts_held_out(tmp_path):
    table = pa.Table.from_pandas(rows_of(3000), preserve_index=False)
    signs = np.where(np.array(table["y"]) > 0, "yes", "no")
    table = table.set_column(3, "y", pa.array(signs).dictionary_encode())
    model = AdaMixClassifier(epsilon=1.0, delta=1e-6, steps=3, noise="seeded", random_state=0)
    made = {}
    for name, private in opened(table, tmp_path).items():
        train, _ = hold_out(private.encode(["no", "yes"]), 0.2, epsilon=1.0, delta=1e-6)
        made[name] = bits(train, model, rows_of(200, 1))
    assert len(set(made.values())) == 1, made


def block_of(private):
    """The only block of these rows, which must not be refused."""
    try:
        ((table, _),) = private._rows.blocks()
    except (PrivacyError, ValueError) as error:
        pytest.fail(f"refused: {type(error).__name__}")
    return table


def odd_table():
    return pa.table(
        {
            "text": pa.array(["ä", None, "", "日本"]),
            "view": pa.array(["1", "x", None, "3"], pa.string_view()),
            "large": pa.array(["a", None, "c", "d"], pa.large_string()),
            "bytes": pa.array([b"\xff", b"2", None, b""]),
            "kind": pa.array(["u", "v", None, "u"]).dictionary_encode(),
            "date": pa.array([dt.date(2020, 1, 1), None, dt.date(1900, 1, 1), dt.date.max]),
            "time": pa.array([dt.datetime(2020, 1, 1, 5), None, None, dt.datetime(1, 1, 1)]),
            "decimal": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal("0.00")]),
            "flag": pa.array([True, None, False, True]),
            "whole": pa.array([1, None, 2**62, -1]),
            "null": pa.nulls(4),
            "odd": pa.array([np.nan, np.inf, -np.inf, 1e308]),
            "half": pa.array(np.array([1, 2, 3, 4], np.float16)),
        }
    )


def test_cells_are_those_of_memory(tmp_path):
    table = odd_table()
    schema = Schema.of(table.to_pandas())
    columns = {name: table[name].to_pylist() for name in table.column_names}
    memory = Private(pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in columns.items()}))
    for source in (table, in_pieces(table, 1, 2), lambda: in_pieces(table, 3)):
        private = Private.from_arrow(source)
        for view in (lambda rows: rows, lambda rows: rows.read(schema)):
            ((mine, _),) = view(private)._rows.long_blocks()
            ((other, _),) = view(memory)._rows.long_blocks()
            for place in range(mine.shape[1]):
                one, two = (
                    each.iloc[:, place].tolist() if hasattr(each, "iloc") else each[:, place]
                    for each in (mine, other)
                )
                assert repr(list(one)) == repr(list(two)), table.column_names[place]


@pytest.mark.parametrize("sizes", [(3,), (2, 1), (1, 1, 1)])
def test_a_gap_in_a_column_that_is_said_to_have_none(sizes):
    full = pa.schema([pa.field("a", pa.float64(), nullable=False)])
    rows = pa.record_batch([pa.array([1.0, None, 3.0])], schema=full)
    starts = np.cumsum((0, *sizes))
    pieces = [rows[start : start + size] for start, size in zip(starts, sizes, strict=False)]
    table = block_of(Private.from_arrow(pa.Table.from_batches(pieces)))
    assert repr(table.column(0).tolist()) == "[1.0, nan, 3.0]"


def test_the_content_of_a_block_is_that_of_its_cells():
    table = odd_table()
    (whole,) = table.to_batches()
    shifted = pa.concat_tables([table.slice(3), table, table]).combine_chunks().to_batches()[0]
    assert cell_bytes(shifted[1:5]) == cell_bytes(whole) != cell_bytes(shifted[:4])
    for place, name in enumerate(table.column_names):
        if name != "null":
            other = table.set_column(
                place,
                name,
                pa.chunked_array([pa.concat_arrays([whole[name][1:], whole[name][:1]])]),
            )
            assert cell_bytes(other.combine_chunks().to_batches()[0]) != cell_bytes(whole), name
    under = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([5, 7], np.int64))]
    )
    letters = [pa.record_batch([pa.array(each)], ["a"]) for each in (["ab", "c"], ["a", "bc"])]
    gaps = [pa.record_batch([pa.array(each, pa.float64())], ["a"]) for each in ([0.0], [None])]
    for one, two in (letters, gaps):
        assert cell_bytes(one) != cell_bytes(two)
    zeros = pa.array([5, None])
    assert cell_bytes(pa.record_batch([under], ["a"])) == cell_bytes(
        pa.record_batch([zeros], ["a"])
    )


def test_people(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.Table.from_pandas(rows_of(600), preserve_index=False)
    table = table.append_column("who", pa.array(rng.integers(0, 200, 600)))
    table.to_pandas().to_parquet(tmp_path / "a.parquet")
    whose = {"label": "y", "unit": "who", "max_rows": 2}
    found = [
        Private.from_parquet(tmp_path / "a.parquet", **whose),
        Private.from_arrow(table, **whose),
        Private.from_arrow(in_pieces(table, 17), **whose),
        Private.from_arrow(lambda: in_pieces(table, 100), **whose),
    ]
    assert len({repr(private) for private in found}) == 1
    assert len({value(private).tobytes() for private in found}) == 1
    with pytest.raises(ValueError, match="is a secret"):
        Private.from_arrow(table, n_rows=600, **whose)
    nameless = table.rename_columns(["a", "b", "c", "", "who"])
    assert Private.from_arrow(nameless, **whose | {"label": ""})._rows.labelled
    with pytest.raises(ValueError, match="name of a column of the stream"):
        Private.from_arrow(table, unit="nobody", max_rows=2)


# Streams that break their word --------------------------------------------------------------


def refused(ask, match):
    """The error of a pass: it tells nothing, holds no other error, and nothing was let out."""
    error = None
    try:
        ask()
    except BaseException as raised:
        error = raised
    assert type(error) is PrivacyError
    assert re.search(match, str(error))
    assert SECRET not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


TEXTS = pa.schema({"a": pa.string(), "b": pa.float64()})


def batch(*texts):
    return pa.record_batch([pa.array(texts), pa.array([1.0] * len(texts))], schema=TEXTS)


@pytest.mark.parametrize("said", [2, 4, 2**40, 0])
def test_another_number_of_rows_than_said(said):
    def reader():
        return pa.RecordBatchReader.from_batches(TEXTS, [batch(SECRET, "y"), batch("z")])

    refused(lambda: value(Private.from_arrow(reader, n_rows=said)), "not as many private rows")
    refused(lambda: Private.from_arrow(reader(), n_rows=said), "not as many private rows")
    with pytest.raises(ValueError, match="n_rows"):
        Private.from_arrow(reader, n_rows=-1)


def test_the_last_block_is_given_out_when_the_number_is_known(monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_ROWS", 2)
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0]})
    for said, given in ((4, 2), (3, 0), (2, 0), (5, 1), (6, 1)):
        blocks, seen = Private.from_arrow(lambda: Capsule(table), n_rows=said)._rows.blocks(), []
        try:
            seen.extend(len(rows) for rows, _ in blocks)
        except PrivacyError:
            assert said != 4
        assert len(seen) == given, said


def changing(*tables):
    """A callable that opens the first table, then the second, ..., and the last for ever."""
    left = list(tables)
    return lambda: in_pieces(left.pop(0) if len(left) > 1 else left[0], 2)


def test_passes_that_differ():
    first = pa.table({"a": [1.0, 2.0, 3.0], "b": [SECRET, "x", None]})
    other = pa.table({"a": [1.0, 2.0, 3.0], "b": ["y", "x", None]})
    cases = {
        "other columns": first.rename_columns(["a", "c"]),
        "other types": first.set_column(0, "a", pa.array([1, 2, 3])),
        "first pass": first.slice(1),
        "not as many": pa.concat_tables([first, first]),
        "not those of the first pass": other,
        "not in the same order": first.take(pa.array([1, 0, 2])),
    }
    for said, table in cases.items():
        private = Private.from_arrow(changing(first, first, first, table))  # columns, count, pass
        before = value(private)
        refused(lambda private=private: value(private), said)
        assert before.shape == (2, 2)
        assert len(private.spent(1e-6).events) == 0


def test_views_and_copies_compare_with_the_same_first_pass():
    first = pa.table({"a": [1.0, 2.0], "y": [0.0, 1.0]})
    other = pa.table({"a": [1.0, 3.0], "y": [0.0, 1.0]})
    for view in (
        lambda rows: rows.encode([0, 1]),
        lambda rows: rows.select(["a"]),
        lambda rows: rows.map(lambda X: X, 1),
        lambda rows: rows.kept(memory=0),
    ):
        private = Private.from_arrow(changing(first, first, other), n_rows=2, label="y")
        value(private)
        refused(lambda private=private, view=view: value(view(private)), "first pass")


def failing(schema, after):
    def batches():
        for _ in range(after):
            yield pa.record_batch([pa.array(["x"]), pa.array([1.0])], schema=schema)
        print(SECRET)
        warnings.warn(SECRET, stacklevel=1)
        raise PrivacyError(SECRET)

    return pa.RecordBatchReader.from_batches(schema, batches())


@pytest.mark.parametrize("after", [0, 1, 5])
@pytest.mark.parametrize("wrap", [lambda reader: reader, Capsule])
def test_what_a_stream_says_is_withheld(after, wrap, capfd):
    withheld = "the reason is withheld"
    refused(lambda: Private.from_arrow(wrap(failing(TEXTS, after))), withheld)
    refused(lambda: Private.from_arrow(lambda: wrap(failing(TEXTS, after))), withheld)
    private = Private.from_arrow(lambda: wrap(failing(TEXTS, after)), n_rows=9)
    refused(lambda: value(private), withheld)

    def nothing():
        print(SECRET)
        raise KeyError(SECRET)

    refused(lambda: Private.from_arrow(nothing), r"KeyError.*withheld")
    refused(lambda: Private.from_arrow(lambda: SECRET), withheld)
    refused(lambda: list(private._rows.blocks()), withheld)
    assert not any(capfd.readouterr())


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interruption_carries_nothing_along(kind):
    def opened():
        try:
            raise ValueError(SECRET)
        except ValueError:
            stop = kind(SECRET)
            stop.add_note(SECRET)
            raise stop  # noqa: B904, as if somebody pressed a key just now

    with pytest.raises(kind) as caught:
        Private.from_arrow(opened)
    assert SECRET not in "".join(traceback.format_exception_only(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_stated_number_of_rows_is_no_secret():
    """Whether it is true is told, and a neighbour under add-remove has another one."""
    table = pa.table({"a": [1.0, 2.0]})
    budget = {"epsilon": 1.0, "delta": 1e-6, "relation": "add-remove"}
    for view in (lambda rows: rows, lambda rows: rows.select(["a"]).map(lambda X: X, 1)):
        said = view(Private.from_arrow(lambda: table, n_rows=2))
        refused(lambda said=said: said.open(**budget), "n_rows states it")
        view(Private.from_arrow(lambda: table)).open(**budget)


@pytest.mark.parametrize("kind", ["table", "reader", "callable", "data set"])
def test_rows_that_find_no_room_are_refused_before_a_pass(tmp_path, monkeypatch, kind):
    table = pa.Table.from_pandas(rows_of(3000), preserve_index=False)
    private, read = opened(table, tmp_path)[kind].kept(memory=1000, spill=False), []
    model = AdaMixClassifier(epsilon=1.0, delta=1e-6, steps=3)
    monkeypatch.setattr(streams.Stream, "batches", lambda *given: read.append(1))
    with pytest.raises(StorageError, match="--keep-memory"):
        bits(private.map(np.sign, 3), model, rows_of(200, 1))
    assert not private.spent(1e-6).events
    assert not read


@pytest.mark.parametrize("kept", [{}, {"memory": 0}])
def test_rows_are_read_few_times(kept):
    table, opens = pa.Table.from_pandas(rows_of(3000), preserve_index=False), []

    def asked():
        opens.append(1)
        return Capsule(table)

    private = Private.from_arrow(asked, label="y", n_rows=3000)
    model = ReweightingRegressor(epsilon=0.05, delta=1e-6)
    bits(private.kept(**kept), model, rows_of(200, 1))
    assert len(opens) <= 6  # one of them for the columns


def test_a_reader_that_is_used_twice():
    table = pa.table({"a": [1.0, 2.0]})
    reader = in_pieces(table, 1)
    assert Private.from_arrow(reader).n_rows == 2
    again = in_pieces(table, 1)
    private = Private.from_arrow(again)
    assert value(private).tobytes() == value(private).tobytes()
    same = in_pieces(table, 1)
    refused(lambda: value(Private.from_arrow(lambda: same)), "not as many")  # it was counted
    once = in_pieces(table, 1)
    private = Private.from_arrow(lambda: once, n_rows=2)
    value(private)
    refused(lambda: value(private), "not as many")
    assert len(private.spent(1e-6).events) == 0


def test_categories_of_polars():
    """Places in a list of views of texts, which pyarrow cannot decode."""
    places, levels = pa.array([0, 1, None] * 5, pa.uint32()), pa.array(["a", "ü"], pa.string_view())
    kinds = pa.table({"a": pa.DictionaryArray.from_arrays(places, levels)})
    private = Private.from_arrow(lambda: in_pieces(kinds, 2, 7))
    (block,) = (table.column(0) for table, _ in private._rows.blocks())
    assert [None if cell is None else cell.decode() for cell in block] == ["a", "ü", None] * 5
    private.encode([0])
    assert value(private).shape == (1, 1)


def test_views_of_texts_can_be_held_out():
    """As Polars gives them; pyarrow cannot pick rows of such a column."""
    views = pa.table({"a": pa.array(list("abcdefghij") * 2, pa.string_view())})
    schema = Schema.given({"a": "text"})
    parts = [
        hold_out(private.read(schema), 0.3, epsilon=1.0, delta=1e-6).test
        for private in (Private.from_arrow(views), Private(views.to_pandas()))
    ]
    one, two = ([block.look()[0] for block, _ in part._rows.blocks()] for part in parts)
    assert [each.iloc[:, 0].tolist() for each in one] == [each.iloc[:, 0].tolist() for each in two]


def test_a_reader_without_an_end():
    endless = (batch(SECRET, "y") for _ in iter(int, 1))
    reader = pa.RecordBatchReader.from_batches(TEXTS, endless)
    refused(lambda: Private.from_arrow(reader, n_rows=9), "not as many")
    endless = pa.RecordBatchReader.from_batches(TEXTS, (batch("x") for _ in iter(int, 1)))
    private = Private.from_arrow(lambda: endless, n_rows=9)
    refused(lambda: value(private), "not as many")


def test_columns_that_are_refused():
    lists = pa.table({"fine": [1.0], "numbers of": pa.array([[31337]])})
    for source in (lists, lambda: lists, lists.to_reader()):
        with pytest.raises(TypeError, match="no cells: 'numbers of'") as caught:
            Private.from_arrow(source)
        assert "31337" not in str(caught.value)
    twice = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    with pytest.raises(ValueError, match="two columns of the same name: a"):
        Private.from_arrow(twice)
    with pytest.raises(ValueError, match="no column 'y'"):
        Private.from_arrow(pa.table({"a": [1.0]}), label="y")
    with pytest.raises(TypeError, match=r"Private\(X, y\)"):
        Private.from_arrow(pd.DataFrame({"a": [1.0]}))
    with pytest.raises(TypeError, match="got int"):
        Private.from_arrow(3)


def test_no_rows_and_no_columns():
    empty = pa.table({"a": pa.array([], pa.float64()), "y": pa.array([], pa.string())})
    for source in (empty, lambda: empty, in_pieces(empty, 1), datasets.dataset(empty)):
        private = Private.from_arrow(source, label="y")
        assert private.n_rows == 0
        assert value(private).tobytes() == value(Private(np.zeros((0, 1)), [])).tobytes()
    assert Private.from_arrow(pa.table({"y": [1.0]}), label="y").n_columns == 0


def test_draws_are_refused_as_for_files():
    with pytest.raises(PrivacyError, match="drawn at random"):
        Private.from_arrow(pa.table({"a": [1.0]}))._rows.take(np.array([0]))


def test_a_pass_that_ends_early_closes_the_stream():
    closed = []

    def batches():
        try:
            while True:
                yield batch("x", "y")
        finally:
            closed.append(True)

    blocks = Private.from_arrow(
        lambda: pa.RecordBatchReader.from_batches(TEXTS, batches()), n_rows=10**6
    )._rows.blocks()
    next(blocks)
    closed.clear()
    blocks.close()
    assert closed
