"""What a transformer sees of a cell: the public type, and the same cell in any company."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from dpadapt import Private, Schema
from dpadapt.pipeline import _mapped
from dpadapt.privacy import Cleaning
from dpadapt.privacy.rows import schema as schema_module
from dpadapt.privacy.rows.columns import Column
from dpadapt.privacy.rows.schema import ReadBlock
from dpadapt.privacy.rows.sources import _as_table
from dpadapt.privacy.rows.tables import numbers
from dpadapt.privacy.rows.times import duration
from dpadapt.privacy.statistics import SecondMoment
from dpadapt.privacy.statistics.gram import Gram
from one_cell import ODD


class Nobody:
    """Does not even say what it is."""

    @property
    def __class__(self):
        raise RuntimeError("hostile")


class HostileWhole(int):
    def _refuse(self, *_):
        raise RuntimeError("hostile")

    __float__ = __mod__ = _refuse


class HostileDate(dt.datetime):
    def _refuse(self, *_, **__):
        raise RuntimeError("hostile")

    astimezone = replace = _refuse


def endless():
    cell = [1.0]
    cell.append(cell)
    return cell


def deep(levels=3000):
    cell = []
    for _ in range(levels):
        cell = [cell]
    return cell


def wide(levels=60):
    """As many cells as 2**levels, in a few bytes."""
    cell = [1.0]
    for _ in range(levels):
        cell = [cell, cell]
    return cell


HOSTILE = {
    **ODD,
    "a": "a",
    "zero at its end": "a\0",
    "0": 0,
    "-2**63": -(2**63),
    "1e39": 1e39,
    "65536": 65536.0,
    "longdouble": np.longdouble("1e4000"),
    "signalling": decimal.Decimal("sNaN"),
    "NaT of numpy": np.datetime64("NaT"),
    "first day": dt.date(1, 1, 1),
    "last moment": "9999-12-31T23:59:59.999999",
    "microsecond": dt.datetime(2020, 1, 1, 0, 0, 0, 1),
    "nanosecond": pd.Timestamp("2020-01-01 00:00:00.000000001"),
    "before nanoseconds": "1677-09-21 00:12:43",
    "far zone": "0001-01-01 00:00+23:00",
    "zone": dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))),
    "year": np.datetime64("2020"),
    "25 seconds": np.datetime64("2020-01-01", "25s"),
    "picoseconds": np.datetime64("2020-01-01T00", "ps"),
    "far": np.datetime64(2**62, "s"),
    "time": dt.time(1),
    "seconds": np.timedelta64(1, "s"),
    "weeks": np.timedelta64(2**62, "W"),
    "months": np.timedelta64(1, "M"),
    "longest": dt.timedelta.max,
    "nanoseconds": pd.Timedelta(1),
    "month": pd.Period("2020-01", "M"),
    "interval": pd.Interval(0, 1),
    "empty list": [],
    "tuple": (1,),
    "lists": [1, [2, ["a"]]],
    "array": np.array([1, 2]),
    "no axis": np.array(3.0),
    "texts": np.array(["a"]),
    "series": pd.Series([1]),
    "set": set(),
    "void": np.void(b"a"),
    "bytearray": bytearray(b"1"),
    "class": float,
    "nobody": Nobody(),
    "hostile whole": HostileWhole(3),
    "hostile date": HostileDate(2020, 1, 1),
    "endless": endless(),
    "deep": deep(),
}
DATES = [pd.Timestamp("2020-01-01"), pd.Timestamp("2021-02-03")]
ZONED = [each.tz_localize("UTC") for each in DATES]
LENGTHS = [pd.Timedelta(5, "s"), pd.Timedelta(90, "s")]
USUAL = {
    **{name: [1, 0] for name in ["int8", "int64", "uint64", "float16", "float32", "float64"]},
    **{name: [1, 0] for name in ["Int8", "Int64", "UInt64", "Float32", "Float64"]},
    **{f"{name}[pyarrow]": [1, 0] for name in ["int8", "int64", "uint64", "float", "double"]},
    **{name: [True, False] for name in ["bool", "boolean", "bool[pyarrow]"]},
    **{name: ["a", "b"] for name in ["object", "str", "string[python]", "string[pyarrow]"]},
    "large_string[pyarrow]": ["a", "b"],
    "category": ["a", "b"],
    pd.CategoricalDtype(["b", "a"], ordered=True): ["a", "b"],
    pd.CategoricalDtype([2, 1]): [1, 2],
    **{f"datetime64[{unit}]": DATES for unit in ("s", "ms", "us", "ns")},
    **{f"datetime64[{unit}, Asia/Tokyo]": ZONED for unit in ("s", "ms", "us", "ns")},
    **{f"timestamp[{unit}][pyarrow]": DATES for unit in ("s", "ms", "us", "ns")},
    **{
        pd.ArrowDtype(pa.timestamp(unit, "Europe/Berlin")): ZONED
        for unit in ("s", "ms", "us", "ns")
    },
    pd.ArrowDtype(pa.date32()): DATES,
    pd.ArrowDtype(pa.date64()): DATES,
    **{f"timedelta64[{unit}]": LENGTHS for unit in ("s", "ms", "us", "ns")},
    **{f"duration[{unit}][pyarrow]": LENGTHS for unit in ("s", "ms", "us", "ns")},
    "Sparse[bool]": [True, False],
    "Sparse[int]": [1, 0],
    "Sparse[float]": [1.0, 0.0],
    "period[M]": [pd.Period("2020-01", "M"), pd.Period("2020-02", "M")],
}
OBJECTS = {
    "lists": [[1.0], [2.0]],
    "texts and None": ["a", "b", None],
    "mixed": ["a", 1, None],
    "whole": [1, 2],
    "flags": [True, None],
    "dates": [dt.date(2020, 1, 1)],
    "durations": [dt.timedelta(1)],
    "nothing": [None, None],
    "empty": [],
}
ARROW = {  # types that not every cell can have
    "time": pd.Series([dt.time(1)], dtype=pd.ArrowDtype(pa.time64("us"))),
    "decimal": pd.Series([decimal.Decimal(1)], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
    "binary": pd.Series([b"a"], dtype=pd.ArrowDtype(pa.binary())),
    "list": pd.Series([["a"]], dtype=pd.ArrowDtype(pa.list_(pa.string()))),
    "no list": pd.Series([None], dtype=pd.ArrowDtype(pa.list_(pa.string()))),
    "struct": pd.Series([{"a": 1}], dtype=pd.ArrowDtype(pa.struct([("a", pa.int64())]))),
    "dictionary": pd.Series(["a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
    "interval": pd.Series(pd.interval_range(0, 3)),
    "sparse texts": pd.Series(["a", "b"], dtype="Sparse[object]"),
}
PUBLIC = {
    **{
        str(dtype) + repr(cells[:1]): pd.Series(cells).astype(dtype)
        for dtype, cells in USUAL.items()
    },
    **{f"objects: {name}": pd.Series(cells, dtype=object) for name, cells in OBJECTS.items()},
    **ARROW,
}


def look(public, cells, *, strict):
    """What a transformer sees of a table of one column."""
    schema = public if isinstance(public, Schema) else Schema.of(public.to_frame("c"))
    table = np.empty((len(cells), 1), dtype=object)
    for place, cell in enumerate(cells):
        table[place, 0] = cell
    with nothing_raised():
        return ReadBlock(table, schema).look(strict=strict)[0]["c"]


@contextmanager
def nothing_raised():
    try:
        yield
    except Exception as error:
        pytest.fail(f"raised {type(error).__name__}")


def seen(column, place):
    """Type of a column, and type and text of one of its cells."""
    cell = column.iloc[place]
    try:
        return str(column.dtype), type(cell), repr(cell)
    except Exception:  # a hostile one: it is itself
        return str(column.dtype), type(cell), id(cell)


def assert_one_look(public, strict):
    schema, alone = Schema.of(public.to_frame("c")), {}
    usual = [None, next(iter(public.dropna()), "a")]
    expected = [seen(look(schema, [cell], strict=strict), 0) for cell in usual]
    for name, cell in HOSTILE.items():
        alone[name] = seen(look(schema, [cell], strict=strict), 0)
        company = look(schema, [cell, *usual], strict=strict)
        assert [seen(company, 1), seen(company, 2)] == expected, name
        assert seen(company, 0) == alone[name], name
    together = look(schema, list(HOSTILE.values()), strict=strict)
    for place, name in enumerate(HOSTILE):
        assert seen(together, place) == alone[name], name


@pytest.mark.parametrize("name", PUBLIC)
def test_a_cell_looks_the_same_alone_and_in_any_company(name):
    assert_one_look(PUBLIC[name], strict=True)
    if PUBLIC[name].dtype.kind in "biu":  # which may have no missing cell
        assert_one_look(PUBLIC[name], strict=False)


@pytest.mark.parametrize("dtype", USUAL, ids=str)
def test_the_type_and_the_cells_are_those_of_public_rows(dtype):
    public = pd.Series(USUAL[dtype], name="c").astype(dtype)
    found = look(public, USUAL[dtype], strict=True)
    pd.testing.assert_series_equal(found, public)


def test_the_twin_that_lets_pandas_find_the_type_is_caught(monkeypatch):
    def inferred(values, index):
        return pd.Series(values.array if hasattr(values, "array") else values, index=index)

    monkeypatch.setattr(schema_module, "_indexed", inferred)
    for name in ("objects: texts and None", "objects: mixed", "objects: durations"):
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            assert_one_look(PUBLIC[name], strict=True)


def test_the_twin_that_does_not_look_for_cells_that_fail_is_caught(monkeypatch):
    monkeypatch.setattr(Column, "_without_failing", lambda self, cells, strict: cells)
    with pytest.raises(pytest.fail.Exception):
        assert_one_look(PUBLIC["objects: lists"], strict=True)


# cells that fail


@pytest.mark.parametrize("name", ["endless", "deep", "nobody"])
def test_cells_that_fail_are_missing_and_change_no_bit_of_the_others(name):
    bad = HOSTILE[name]
    rng = np.random.default_rng(0)
    column = Column.of(pd.Series([[1.0], [2.0]]))
    cells = [rng.normal(size=3).tolist() for _ in range(1000)]
    usual, _ = column.look(cells, None, strict=True)
    for places in ([0], [999], [3, 4, 700]):
        changed = [bad if i in places else cell for i, cell in enumerate(cells)]
        with nothing_raised():
            found, _ = column.look(changed, None, strict=True)
        assert [found[i] for i in places] == [None] * len(places)
        keep = [i for i in range(1000) if i not in places]
        assert repr(usual[keep].tolist()) == repr(found[keep].tolist())  # exact for floats


def test_floats_that_fail_are_found_by_halves(monkeypatch):
    """In a column of any type; here the type is told to fail on one number."""
    whole = Column._numbers

    def failing(self, cells, strict):
        if 7.0 in cells:
            raise ValueError("seven")
        return whole(self, cells, strict)

    cells = np.random.default_rng(0).normal(size=100)
    column = Column.of(cells)
    usual, _ = column.look(cells, None, strict=True)
    monkeypatch.setattr(Column, "_numbers", failing)
    for blank in (None, np.arange(100) == 5):
        found, _ = column.look(np.where(np.arange(100) == 40, 7.0, cells), blank, strict=True)
        keep = ~np.isin(np.arange(100), [5, 40])
        assert found[keep].tobytes() == usual[keep].tobytes()
        assert np.isnan(found[40])
        assert found[5] == (cells[5] if blank is None else cells[0])


def test_a_list_of_more_cells_than_memory_holds_is_missing(monkeypatch):
    monkeypatch.setattr("dpadapt.privacy.rows.columns._MOST_CELLS", 1000)
    found = look(PUBLIC["objects: lists"], [wide(), [3.0]], strict=True)
    assert list(found) == [None, [3.0]]


def test_many_different_texts_fit_a_public_dictionary_of_few():
    found = look(ARROW["dictionary"], [f"t{i}" for i in range(300)], strict=True)
    assert found[299] == "t299"


def test_a_gap_among_sparse_flags_is_a_float():
    public = pd.get_dummies(pd.Series(["a", "b"]), sparse=True)
    block = ReadBlock(_as_table([[True, False], [None, True]]), Schema.of(public))
    strict, fits = block.look(strict=True)
    assert list(strict.dtypes) == list(public.dtypes)
    assert list(fits) == [True, False]
    np.testing.assert_array_equal(block.look()[0].to_numpy(), [[1.0, 0.0], [np.nan, 1.0]])


def test_what_is_finer_than_the_unit_is_cut_off():
    cells = [dt.datetime(2020, 1, 1, 1, 2, 3, 999_999), "1969-12-31T23:59:59.5"]
    expected = [pd.Timestamp("2020-01-01 01:02:03"), pd.Timestamp("1969-12-31 23:59:59")]
    for dtype in ("datetime64[s]", "timestamp[s][pyarrow]"):
        found = look(pd.Series(DATES).astype(dtype), cells, strict=True)
        assert [pd.Timestamp(cell) for cell in found] == expected


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_every_date_can_be_read_on_the_clocks_of_its_zone(zone):
    public = pd.Series(ZONED).astype(pd.ArrowDtype(pa.timestamp("us", zone)))
    cells = ["2020-01-01", "0001-01-01", "9999-12-31T23:59:59.999999"]
    with nothing_raised():
        found = look(public, cells, strict=True).to_numpy(dtype=object)
    assert [pd.isna(cell) for cell in found] == [False, True, True]


@pytest.mark.parametrize("dtype", ["float32", "Float32", "float[pyarrow]", "Sparse[float32]"])
def test_no_number_is_too_large_for_a_caller_who_wants_errors(dtype):
    with np.errstate(all="raise"):
        found = look(pd.Series([1, 0]).astype(dtype), [1e300, math.inf], strict=False)
    assert list(np.isinf(found.astype(float))) == [True, True]


def test_one_meaning_for_one_duration():
    same = [dt.timedelta(days=7), pd.Timedelta(7, "D"), np.timedelta64(1, "W")]
    assert {duration(cell) for cell in same} == {np.timedelta64(7 * 86_400 * 10**6, "us")}
    assert all(np.isnat(duration(cell)) for cell in (7, "7 days", None, pd.NaT, dt.timedelta.max))


# other containers


class Masked(np.ma.MaskedArray):
    """A masked array of one's own."""


@pytest.mark.parametrize("mask", [[0, 0, 0], [0, 1, 0]])
def test_a_masked_array_of_ones_own_is_a_masked_array(mask):
    y = np.ma.masked_array([1.0, 2.0, 3.0], mask).view(Masked)
    expected = np.where(mask, np.nan, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(numbers(y), expected)
    assert Private(np.zeros((3, 1)), y).labelled
    np.testing.assert_array_equal(numbers(_as_table(y[:, None]))[:, 0], expected)


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_a_masked_date_leaves_the_others_dates(unit):
    days = np.array([["2020-01-01"], ["2020-01-02"]], dtype=f"M8[{unit}]")
    schema = Schema.of(pd.DataFrame({"a": DATES}))
    first = []
    for masked in (False, True):
        table = _as_table(np.ma.masked_array(days, [[False], [masked]]))
        first.append(ReadBlock(table, schema).look()[0]["a"].iloc[0])
    assert first == [pd.Timestamp("2020-01-01")] * 2


def test_a_number_beside_a_text_is_the_same_number():
    small = np.float32(0.1)
    assert numbers([[small, 1.0]])[0, 0] == numbers([[small, "x"]])[0, 0] == float(small)


# the scripts of the attack


def moved(maps):
    """How far a hidden second moment moves, in units of its stated sensitivity."""
    values = []
    for private in maps:
        with private.open(epsilon=1.0, delta=1e-6) as session:
            hidden = session.hide(SecondMoment(Cleaning(radius=2.0)))
            values.append((hidden._value, hidden.sensitivity))
    return np.linalg.norm(values[0][0] - values[1][0]) / values[0][1]


def kinds_of_missing(frame):
    cells = frame["a"]
    return np.array([[c is None, isinstance(c, float) and math.isnan(c)] for c in cells], float)


def whole_numbers(frame):
    return np.column_stack([frame["a"].astype("int64") / 1e7, np.ones(len(frame))])


ATTACKS = {
    "one text": (["A", "B", None], None, "A", None, "one-hot"),
    "one number": (["a", 1, None, "b"], "a", 1, None, kinds_of_missing),
    "one unit": (
        np.array([5, 6], "m8[us]"),
        dt.timedelta(seconds=6),
        pd.Timedelta(6, "s").as_unit("ns"),
        dt.timedelta(seconds=5),
        whole_numbers,
    ),
    "one microsecond": (
        pd.array(DATES, dtype="timestamp[s][pyarrow]"),
        DATES[0],
        HOSTILE["microsecond"],
        DATES[0],
        lambda frame: np.column_stack([frame["a"].dt.year.astype(float), np.ones(len(frame))]),
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_one_persons_cell_moves_a_statistic_by_its_sensitivity_at_most(name):
    public, one, two, others, function = ATTACKS[name]
    public = pd.DataFrame({"a": pd.Series(public, dtype=getattr(public, "dtype", object))})
    if function == "one-hot":
        transformer = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["a"]))
    else:
        transformer = FunctionTransformer(function)
    width = transformer.fit_transform(public).shape[1]
    tables = [
        pd.DataFrame({"a": pd.Series([c, *[others] * 999], dtype=object)}) for c in (one, two)
    ]
    assert moved([_mapped(transformer, public, Private(each), width) for each in tables]) <= 1


def test_a_kernel_of_other_rows_does_not_see_one_persons_cell():
    schema = Schema.of(pd.DataFrame({"t": pd.Series(["A", "B", None], dtype=object)}))

    def equal(A, B):
        return np.array([[float(a == b) for b in B["t"]] for a in A["t"]])

    tables = []
    for first in (None, "A"):
        frame = pd.DataFrame({"t": pd.Series([first, *[None] * 10], dtype=object)})
        blocks = [X for X, _ in Private(frame).read(schema)._rows.long_blocks()]
        tables.append(Gram(equal, 1.0).table(blocks, [None])[1:, 1:])
    assert tables[0].tobytes() == tables[1].tobytes()
