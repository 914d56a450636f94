"""Row sources and the cleaning map: total, row-wise, strict, the same in memory and in files."""

import datetime as dt
import logging
import math
import os
import subprocess
import sys
import threading
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from dpadapt.privacy import Cleaning, PrivacyError, Private, Schema
from dpadapt.privacy.rows import sources as rows_module
from dpadapt.privacy.rows.quiet import muted, quiet
from dpadapt.privacy.rows.tables import numbers
from dpadapt.privacy.statistics import SecondMoment
from one_cell import tables_seen

SECRET = 31337.25
ODD_CELLS = [
    *(None, pd.NA, pd.NaT, np.nan, "", "abc", "\ud800", b"\xff", [1.0], (2.0,), {}, {3}, object()),
    *(10**400, -(10**400), 1 + 2j, np.complex128(1j), np.array([3.0]), np.array(4.0), type, len),
    *(dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), dt.timedelta(1), pd.Timestamp("2020")),
    *(np.datetime64("2020"), np.timedelta64(5, "ns"), Decimal("sNaN"), "1" * 400, "0x10"),
]
NUMBER_CELLS = [
    *((1, 1.0), (True, 1.0), (np.True_, 1.0), ("2.5", 2.5), (b" 3 ", 3.0), (Decimal("1.5"), 1.5)),
    *(
        (1 + 0j, 1.0),
        (np.complex128(2), 2.0),
        ("TRUE", 1.0),
        (Fraction(1, 4), 0.25),
        (np.float16(0.5), 0.5),
        (np.int8(-3), -3.0),
        (5e-324, 5e-324),
    ),
]


class Explosive(float):
    """A number that cannot be read."""

    def __float__(self):
        raise RuntimeError(SECRET)


@pytest.fixture(autouse=True)
def _nothing_is_said(recwarn, caplog, capfd):
    """No test here may warn, log or print: whatever the cells hold."""
    yield
    said = [str(each.message) for each in recwarn] + caplog.messages + list(capfd.readouterr())
    assert not any(said)


def moment(private, cleaning=None, part="all"):
    query = SecondMoment(cleaning or Cleaning(radius=1e4))
    with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
        if part != "all":
            session.split(0.3)
        return session.hide(query, part)._value


def stored(path, columns, **options):
    parquet.write_table(pa.table(columns), path, **options)
    return path


def cleaned(private, radius=1e4):
    cleaning = Cleaning(radius=radius, label_range=(-1.0, 1.0))
    blocks = [cleaning(X, y) for X, y in private._rows.blocks()]
    y = np.concatenate([y for _, y in blocks]) if private.labelled else None
    return np.concatenate([X for X, _ in blocks]), y


# Cells -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", [*ODD_CELLS, Explosive(1.0)], ids=lambda cell: type(cell).__name__)
def test_a_cell_that_is_no_number_becomes_the_public_value(cell):
    column = np.empty(3, dtype=object)
    column[:] = [1.5, 0, 2.5]
    column[1] = cell
    expected = np.array([[1.5], [0.0], [2.5]])
    for X in (column[:, None], pd.DataFrame({"a": column}, dtype=object), [[1.5], [cell], [2.5]]):
        with np.errstate(all="raise"):
            np.testing.assert_array_equal(cleaned(Private(X))[0], expected)
    for y in (column, pd.Series(column), list(column)):
        np.testing.assert_array_equal(cleaned(Private(np.zeros((3, 1)), y))[1], [1, 0, 1])


@pytest.mark.parametrize(("cell", "value"), NUMBER_CELLS)
def test_what_an_odd_cell_does_to_its_column_does_not_reach_the_others(cell, value):
    """A row-wise map: the cells beside a bad one are read as they are without it."""
    for bad in ODD_CELLS:
        column = np.empty(2, dtype=object)
        column[0], column[1] = cell, bad
        for X in (column[:, None], pd.DataFrame({"a": column}, dtype=object), [[cell], [bad]]):
            assert cleaned(Private(X))[0][0, 0] == value


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.array([1, None, 3], dtype="Int64"), [1, 0, 3]),
        (pd.array([True, None, False], dtype="boolean"), [1, 0, 0]),
        (pd.array([1.5, None, 3], dtype="Float32"), [1.5, 0, 3]),
        (pd.Categorical(["2", "x", None]), [2, 0, 0]),
        (pd.Categorical([2, 3, None]), [2, 3, 0]),
        (pd.array(["1", None, "x"], dtype="string"), [1, 0, 0]),
        (pd.array([1, None, 3], dtype=pd.ArrowDtype(pa.int64())), [1, 0, 3]),
        (pd.array(["1", None, "x"], dtype=pd.ArrowDtype(pa.string())), [1, 0, 0]),
        (pd.date_range("2020", periods=3), [0, 0, 0]),
        (pd.date_range("2020", periods=3, tz="UTC"), [0, 0, 0]),
        (pd.to_timedelta([1, 2, None], unit="s"), [0, 0, 0]),
        (pd.period_range("2020", periods=3), [0, 0, 0]),
        (pd.arrays.SparseArray([1.0, np.nan, 3.0]), [1, 0, 3]),
        (np.array([1.5, 2, 3], dtype=np.float16), [1.5, 2, 3]),
        (np.array([1.5, 2, 3], dtype=np.longdouble), [1.5, 2, 3]),
        (np.array([1, 2, 2**63], dtype=np.uint64), [1, 2, 1e4]),
        (np.array([True, False, True]), [1, 0, 1]),
        (np.array(["1", "x", "nan"]), [1, 0, 0]),
        (np.array([1, 2, 3], dtype=">f8"), [1, 2, 3]),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_types_of_columns(column, expected):
    frame = pd.DataFrame({"plain": [1.0, 2.0, 3.0], "odd": column})
    X, _ = cleaned(Private(frame[["odd"]]))
    np.testing.assert_allclose(X[:, 0], expected, rtol=1e-12)
    np.testing.assert_array_equal(cleaned(Private(frame))[0][:2, 0], [1, 2])
    if isinstance(column, np.ndarray):
        np.testing.assert_allclose(cleaned(Private(column[:, None]))[0][:, 0], expected, rtol=1e-12)


def test_masked_cells_are_missing():
    X = np.ma.masked_array([[1.0, SECRET]], mask=[[False, True]])
    np.testing.assert_array_equal(cleaned(Private(X))[0], [[1.0, 0.0]])


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None, 3]), [1, 0, 3]),
        (pa.array([True, None, False]), [1, 0, 0]),
        (pa.array([1.5, None, np.nan], pa.float32()), [1.5, 0, 0]),
        (pa.array(np.array([1.5, 2, 3], np.float16)), [1.5, 2, 3]),
        (pa.array([2**63, None, 1], pa.uint64()), [1e4, 0, 1]),
        (pa.array([None, None, None], pa.float64()), [0, 0, 0]),
        (pa.nulls(3), [0, 0, 0]),
        (pa.array(["1.5", "x", None]), [1.5, 0, 0]),
        (pa.array([b"1.5", b"\xff", None]), [1.5, 0, 0]),
        (pa.array([b"12", b"\xff\xff", None], pa.binary(2)), [12, 0, 0]),
        (pa.array(["2", "x", None]).dictionary_encode(), [2, 0, 0]),
        (pa.array([Decimal("1.5"), None, Decimal("-2")]), [1.5, 0, -2]),
        (pa.array([Decimal(10) ** 60, None, Decimal(1)], pa.decimal256(76, 2)), [1e4, 0, 1]),
        (pa.array([0, None, 2**60], pa.timestamp("us")), [0, 0, 0]),
        (pa.array([0, None, 2**31 - 1], pa.date32()), [0, 0, 0]),
        (pa.array([0, None, 5], pa.time64("us")), [0, 0, 0]),
        (pa.array([0, None, 5], pa.duration("us")), [0, 0, 0]),
        (pa.array([[1.0], None, []]), [0, 0, 0]),
        (pa.array([{"a": 1.0}, None, {}]), [0, 0, 0]),
    ],
    ids=lambda value: str(getattr(value, "type", "")).split("<")[0],
)
def test_types_of_parquet_columns(tmp_path, column, expected):
    file = stored(tmp_path / "a.parquet", {"odd": column, "plain": [1.0, 2.0, 3.0]})
    private = Private.from_parquet(file)
    np.testing.assert_allclose(cleaned(private.select(["odd"]))[0][:, 0], expected, rtol=1e-12)
    assert cleaned(Private.from_parquet(file, label="odd"))[1].shape == (3,)
    mapped = private.map(lambda frame: frame[["plain"]], 1)
    np.testing.assert_array_equal(cleaned(mapped)[0][:, 0], [1, 2, 3])
    assert list(tables_seen(private)[0].columns) == ["odd", "plain"]


def test_text_that_is_no_utf8(tmp_path):
    text = pa.array(["12", "ab"])
    broken = pa.StringArray.from_buffers(2, text.buffers()[1], pa.py_buffer(b"12\xff\xfe"))
    file = stored(tmp_path / "a.parquet", {"a": broken})
    np.testing.assert_array_equal(cleaned(Private.from_parquet(file))[0], [[12], [0]])
    lengths = (
        Private.from_parquet(file)
        .read(Schema.given({"a": "text"}))
        .map(lambda frame: np.array([[len(cell)] for cell in frame["a"]]), 1)
    )
    assert cleaned(lengths)[0][0, 0] == 2


def test_the_types_a_transformer_sees_do_not_depend_on_gaps(tmp_path):
    seen = []
    for i, cell in enumerate((7, None)):
        file = stored(
            tmp_path / f"{i}.parquet",
            {
                "whole": pa.array([1, cell], pa.int64()),
                "flag": pa.array([True, cell and False]),
                "text": pa.array(["a", cell and "b"]).dictionary_encode(),
            },
        )
        seen += tables_seen(Private.from_parquet(file))
    assert list(seen[0].dtypes) == list(seen[1].dtypes)
    pd.testing.assert_frame_equal(seen[0][:1], seen[1][:1])


# The cleaning map ------------------------------------------------------------------------------

WIDE = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=30),
    elements=st.floats(width=64, allow_subnormal=True)
    | st.sampled_from([0.0, -0.0, 5e-324, 1e-170, 1e-308, 1e154, 1e308, -1e308, math.inf]),
)
RADII = st.sampled_from([1e-300, 3e-170, 1e-154, 1e-3, 1.0, 5.0, 1e3, 1e154, 7e200, 1e300])


@settings(max_examples=300, deadline=None)
@given(X=WIDE, radius=RADII, intercept=st.sampled_from([0.0, 2.0]))
def test_no_row_is_longer_than_the_radius_and_cleaning_twice_is_cleaning_once(X, radius, intercept):
    before = X.copy()
    cleaning = Cleaning(radius=radius, intercept=intercept)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        Z, _ = cleaning(X, None)
        again, _ = cleaning(Z[:, : X.shape[1]], None)
    np.testing.assert_array_equal(X, before)
    rows = Z[:, : X.shape[1]]
    assert np.isfinite(Z).all()
    unit = Fraction(radius)
    for row in rows.tolist():  # in exact arithmetic: never longer
        assert sum((Fraction(x) / unit) ** 2 for x in row) <= 1
    np.testing.assert_array_equal(again, Z)


@pytest.mark.parametrize("columns", [1, 20, 3000])
def test_rows_within_the_radius_are_left_alone_and_long_ones_keep_their_direction(columns):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, columns))
    X *= rng.uniform(0, 2, size=(500, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    Z, _ = Cleaning(radius=1.0)(X, None)
    lengths = np.linalg.norm(X, axis=1)
    np.testing.assert_array_equal(Z[lengths < 1 - 1e-9], X[lengths < 1 - 1e-9])
    np.testing.assert_allclose(Z, X / np.maximum(lengths, 1)[:, None], rtol=1e-11)
    assert np.linalg.norm(Z, axis=1).max() <= 1 + 1e-15
    assert np.linalg.norm(Z, axis=1).max() > 1 - 1e-10


def test_one_bad_cell_is_replaced_and_the_rest_of_its_row_kept():
    Z, _ = Cleaning(radius=10.0)(np.array([[np.nan, 3.0], [np.inf, -4.0], [-np.inf, 0.0]]), None)
    np.testing.assert_array_equal(Z, [[0, 3], [0, -4], [0, 0]])


def test_center_and_scale_that_overflow():
    cleaning = Cleaning(radius=3.0, center=np.array([-1e308, 0.0]), scale=np.array([1.0, 1e-300]))
    X = np.array([[1e308, 0.0], [-1e308, 1e300], [-1e308, 1e-300]])
    with np.errstate(all="raise"):
        Z, _ = cleaning(X, None)
    np.testing.assert_allclose(Z, [[0, 0], [0, 0], [0, 1]])


def test_labels_are_clamped():
    cleaning = Cleaning(radius=1.0, label_range=(-1.0, 3.0))
    y = np.array([np.nan, np.inf, -np.inf, -5.0, 2.0, 1e308])
    np.testing.assert_array_equal(cleaning(np.zeros((6, 1)), y)[1], [1, 1, 1, -1, 2, 3])
    assert Cleaning(radius=1.0)(np.zeros((6, 1)), y)[1] is None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"radius": 0.0}, "radius"),
        ({"radius": math.nan}, "radius"),
        ({"radius": 1e-310}, "radius"),
        ({"radius": 1e301}, "radius"),
        ({"radius": 1.0, "label_range": (1.0, 0.0)}, "label_range"),
        ({"radius": 1.0, "label_range": (math.nan, 0.0)}, "label_range"),
    ],
)
def test_cleaning_refuses_public_nonsense(arguments, named):
    with pytest.raises(ValueError, match=named):
        Cleaning(**arguments)


# Tables in memory ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array", "fortran", "strided", "frame", "mixed frame", "labels"])
def test_inputs_are_never_changed(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)) * 10
    X[3, 1] = np.nan
    table = {
        "array": X,
        "fortran": np.asfortranarray(X),
        "strided": rng.normal(size=(100, 8))[::2, ::-2],
        "frame": pd.DataFrame(X),
        "mixed frame": pd.DataFrame(X).assign(text="a"),
        "labels": X,
    }[kind]
    y = np.array([*np.full(49, 9.0), np.nan])
    before, y_before = table.copy(), y.copy()

    def in_place(block):
        block *= 2
        return block

    private = Private(table, y)
    cleaning = Cleaning(radius=1.0, center=np.ones(table.shape[1]), scale=np.full(1, 2.0))
    moment(private, cleaning)
    moment(private.map(in_place, table.shape[1]), cleaning)
    cleaned(private)
    assert (
        (before.equals(table))
        if hasattr(table, "equals")
        else np.array_equal(before, table, equal_nan=True)
    )
    np.testing.assert_array_equal(y, y_before)


def test_read_only_and_strided_arrays_are_read():
    X = np.arange(80.0).reshape(10, 8)
    X.flags.writeable = False
    np.testing.assert_allclose(moment(Private(X[::-2, ::3])), X[::-2, ::3].T @ X[::-2, ::3] / 5)


@pytest.mark.parametrize(
    ("X", "y", "error", "words"),
    [
        ([[1.0, 2.0], [SECRET]], None, ValueError, "same number of columns"),
        (np.full(3, SECRET), None, ValueError, "two dimensions"),
        (np.full((2, 2, 2), SECRET), None, ValueError, "two dimensions"),
        (sparse.csr_array(np.full((2, 2), SECRET)), None, TypeError, "sparse"),
        (pd.Series([SECRET]), None, ValueError, "to_frame"),
        (pd.DataFrame([[SECRET, 1.0]], columns=["a", "a"]), None, ValueError, "same name: a;"),
        (np.full((2, 1), SECRET), [SECRET], ValueError, "got shape 1"),
        (np.full((2, 1), SECRET), np.full((2, 1), SECRET), ValueError, "got shape 2 x 1"),
    ],
)
def test_tables_of_the_wrong_shape_are_refused_by_shape_alone(X, y, error, words):
    with pytest.raises(error, match=words) as caught:
        Private(X, y)
    assert "31337" not in str(caught.value)


def test_names_of_any_kind_and_indices_that_repeat():
    X = np.arange(12.0).reshape(4, 3)
    expected = X[:, [2, 0]].T @ X[:, [2, 0]] / 4
    for names in ([0, 1, 2], ["a", 1, None], pd.MultiIndex.from_tuples([("a", i) for i in "xyz"])):
        frame = pd.DataFrame(X, columns=names, index=[7, 7, 7, 7])
        private = Private(frame)
        assert private.columns == tuple(frame.columns)
        chosen = private.select([frame.columns[2], frame.columns[0]])
        np.testing.assert_allclose(moment(chosen), expected)


def test_tables_without_rows_or_columns(tmp_path):
    empty = stored(tmp_path / "e.parquet", {"a": pa.array([], pa.float64())})
    for private in (
        Private([]),
        Private(np.zeros((0, 1))),
        Private(pd.DataFrame({"a": []})),
        Private.from_parquet(empty),
    ):
        assert private.n_rows == 0
        np.testing.assert_array_equal(moment(private), np.zeros((private.n_columns,) * 2))
    assert moment(Private(np.zeros((5, 0)))).shape == (0, 0)
    assert moment(Private.from_parquet(empty, label="a")).shape == (0, 0)


# One answer, wherever the rows are -------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 3, 20, 40])
@pytest.mark.parametrize("block_rows", [pytest.param(1, marks=pytest.mark.slow), 7, 600, 100_000])
def test_memory_and_files_give_the_same_statistics(tmp_path, monkeypatch, columns, block_rows):
    rows = {1: 103, 7: 203}.get(block_rows, 1253)
    monkeypatch.setattr(rows_module, "BLOCK_ROWS", block_rows)
    X = np.random.default_rng(columns).normal(size=(rows, columns))
    expected = X.T @ X / rows
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(columns)])
    frame.to_parquet(tmp_path / "one.parquet", row_group_size=997)
    (tmp_path / "parts").mkdir()
    frame[:1].to_parquet(tmp_path / "parts" / "0.parquet")
    frame[:0].to_parquet(tmp_path / "parts" / "1.parquet")
    frame[1:100].to_parquet(tmp_path / "parts" / "2.parquet", row_group_size=1)
    frame[100:].iloc[:, ::-1].to_parquet(tmp_path / "parts" / "3.parquet", compression=None)
    sources = {
        "array": Private(X),
        "fortran": Private(np.asfortranarray(X)),
        "list": Private(X.tolist()),
        "frame": Private(frame),
        "object frame": Private(frame.astype(object)),
        "file": Private.from_parquet(tmp_path / "one.parquet"),
        "folder": Private.from_parquet(tmp_path / "parts"),
        "mapped file": Private.from_parquet(tmp_path / "one.parquet").map(np.asarray, columns),
    }
    for name, private in sources.items():
        assert private.n_rows == rows, name
        np.testing.assert_allclose(moment(private), expected, rtol=1e-11, atol=1e-14, err_msg=name)
    parts = [moment(sources["array"], part=part) for part in ("train", "holdout")]
    for part, value in zip(("train", "holdout"), parts, strict=True):
        there = moment(sources["folder"], part=part)
        np.testing.assert_allclose(there, value, rtol=1e-11, atol=1e-14)
    assert not np.allclose(*parts, rtol=1e-3)


def test_the_second_moment_is_symmetric_to_the_last_bit():
    X = np.random.default_rng(0).normal(size=(5000, 7))
    value = moment(Private(X))
    np.testing.assert_array_equal(value, value.T)


def test_labels_stay_with_their_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_ROWS", 10)
    y = np.linspace(-1, 1, 101)
    X = np.column_stack([y, y])
    frame = pd.DataFrame({"a": y, "y": y, "b": y})
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=33)
    for private in (
        Private(X, y),
        Private(X, list(y)),
        Private(frame[["a", "b"]], frame["y"]),
        Private(X, y).map(lambda X: X, 2),
        Private.from_parquet(tmp_path / "a.parquet", label="y"),
        Private.from_parquet(tmp_path / "a.parquet", label="y").select(["b"]),
    ):
        rows, labels = cleaned(private)
        np.testing.assert_array_equal(labels, y)
        np.testing.assert_array_equal(rows[:, 0], y)


def test_select_keeps_the_order_asked_for(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 1.0], "b": [2.0, 2.0], "c": [3.0, 3.0], "y": [1.0, -1.0]})
    frame.to_parquet(tmp_path / "a.parquet")
    for private in (
        Private(frame[["a", "b", "c"]], frame["y"]),
        Private.from_parquet(tmp_path / "a.parquet", label="y"),
    ):
        np.testing.assert_array_equal(cleaned(private.select(["c", "a"]))[0][0], [3, 1])
        twice = private.select(["c", "b", "a"]).select(["a", "c"])
        assert twice.columns == ("a", "c")
        X, y = cleaned(twice)
        np.testing.assert_array_equal(X[0], [1, 3])
        np.testing.assert_array_equal(y, [1, -1])
        with pytest.raises(ValueError, match=r"lack .* 'b' that"):
            private.select(["c", "a"]).select(["b"])
        with pytest.raises(ValueError, match="same name"):
            private.select(["a", "a"])


@pytest.mark.parametrize("groups", ["fixed", "closed by bytes"])
def test_no_cell_moves_the_blocks_of_a_file(tmp_path, groups):
    """Row groups and dictionaries depend on cells; blocks, and with them progress, do not."""
    seen, n = {}, 40_000
    for cell in ("x", "y", None, "x" * 100_000):
        texts = ["x"] * n
        texts[7000] = cell
        frame = pd.DataFrame({"a": np.arange(n) % 7.0, "b": pd.Categorical(texts)})
        path, size = tmp_path / "a.parquet", 9000
        if groups == "closed by bytes":
            size = 9000 if len(cell or "") < 9 else 7001
        frame.to_parquet(path, row_group_size=size)
        seen[cell] = told = []
        private = Private.from_parquet(path)
        with private.open(epsilon=1.0, delta=1e-6, progress=lambda n, _, t=told: t.append(n)) as s:
            moment = s.hide(SecondMoment(Cleaning(9.0)))
        seen[cell] = (told, moment._value.tolist())
    assert len({str(each) for each in seen.values()}) == 1


def test_wide_tables_come_in_shorter_blocks():
    source = Private(np.zeros((3000, 2000)))._rows
    sizes = [X.size for X, _ in source.blocks()]
    assert len(sizes) > 1
    assert max(sizes) <= rows_module.BLOCK_CELLS


# Maps ------------------------------------------------------------------------------------------


def fails_on_negative(X):
    if (X < 0).any():
        raise ValueError(f"negative: {X}")
    return X * 2


def drops_negative(X):
    return X[(X >= 0).all(axis=1)] * 2


@pytest.mark.parametrize("transform", [fails_on_negative, drops_negative])
def test_a_row_on_which_a_map_fails_becomes_zeros_and_no_other(transform):
    X = np.arange(1.0, 2001.0)[:, None]
    bad = [0, 1, 777, 1999]
    X[bad] *= -1
    Z, _ = cleaned(Private(X).map(transform, 1))
    expected = X * 2
    expected[bad] = 0
    np.testing.assert_array_equal(Z, expected)


def test_a_row_that_fails_does_not_change_the_size_of_the_others_call():
    """The last bits of a row may depend on how many rows came with it: always the same number."""

    def size(X):
        return np.full_like(fails_on_negative(X), len(X))

    X = np.ones((3000, 1))
    X[7] = -1
    Z, _ = cleaned(Private(X).map(size, 1))
    np.testing.assert_array_equal(Z, np.where(X < 0, 0, 1))


def test_few_failures_cost_few_attempts():
    calls = []
    X = np.ones((1000, 1))
    X[5] = -1
    cleaned(Private(X).map(lambda X: calls.append(1) or fails_on_negative(X), 1))
    assert len(calls) < 60
    calls.clear()
    cleaned(Private(-X).map(lambda X: calls.append(1) or fails_on_negative(X), 1))
    assert len(calls) < 1.1 * len(X)  # nearly every row fails: no more than its own attempt


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (lambda X: sparse.csr_matrix(X), 1.5),
        (lambda X: sparse.csr_array(X), 1.5),
        (lambda X: pd.DataFrame(X), 1.5),
        (lambda X: pd.DataFrame({"a": pd.array([None] * len(X), dtype="Int64")}), 0),
        (lambda X: X.astype(object), 1.5),
        (lambda X: X * np.nan, 0),
        (lambda X: X * 1e400, 0),
        (lambda X: X + 1j, 0),
        (lambda X: X[:, 0], 0),
        (lambda X: np.hstack([X, X]), 0),
        (lambda X: X[:0], 0),
        (lambda X: None, 0),
        (lambda X: "abc", 0),
        (lambda X: 1 / 0, 0),
        (lambda X: X.tolist(), 1.5),
    ],
)
def test_whatever_a_map_returns(transform, expected):
    Z, _ = cleaned(Private(np.full((5, 1), 1.5)).map(transform, 1))
    np.testing.assert_array_equal(Z, np.full((5, 1), float(expected)))


def test_a_map_has_no_voice(capfd, caplog):
    def loud(X):
        warnings.warn(f"seen {X}", UserWarning, stacklevel=1)
        logging.getLogger("loud").critical("seen %s", X)
        print("seen", X)
        print("seen", X, file=sys.stderr)
        np.log(-X)
        return X

    np.testing.assert_array_equal(cleaned(Private([[SECRET]]).map(loud, 1), 1e6)[0], [[SECRET]])
    logging.getLogger("loud").debug("never shown")
    assert capfd.readouterr() == ("", "")
    assert not caplog.messages


def test_silence_ends_even_when_sessions_overlap(capfd, caplog, recwarn):
    """Two threads: neither may restore the other's silence as if it were the normal state."""
    inside, leave = threading.Event(), threading.Event()

    def other():
        with muted():
            inside.set()
            leave.wait(10)
            print("not to be heard")

    thread = threading.Thread(target=other)
    with muted():
        thread.start()
        inside.wait(10)
    leave.set()
    thread.join()
    print("heard")
    logging.getLogger("x").warning("heard")
    warnings.warn("heard", UserWarning, stacklevel=1)
    assert capfd.readouterr().out == "heard\n"
    assert caplog.messages == ["heard"]
    assert [str(each.message) for each in recwarn] == ["heard"]
    caplog.clear()
    recwarn.clear()


def test_progress_is_not_silenced(capfd):
    private = Private(np.ones((3, 1))).map(lambda X: X, 1)
    with private.open(epsilon=1, delta=1e-6, progress=lambda *p: print(*p)) as session:
        session.hide(SecondMoment(Cleaning(radius=1.0)))
    assert capfd.readouterr().out == "3 3\n"


# Files -----------------------------------------------------------------------------------------


def test_files_that_cannot_be_opened(tmp_path):
    (tmp_path / "text.parquet").write_text("no Parquet")
    (tmp_path / "empty.parquet").write_bytes(b"")
    for name in ("text.parquet", "empty.parquet", "none.parquet"):
        with pytest.raises(ValueError, match=name):
            Private.from_parquet(tmp_path / name)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="no Parquet file"):
        Private.from_parquet(tmp_path / "folder")


def test_files_with_other_columns(tmp_path):
    one = stored(tmp_path / "1.parquet", {"a": [1.0], "b": [2.0]})
    other = stored(tmp_path / "2.parquet", {"a": [1.0], "c": [2.0]})
    with pytest.raises(ValueError, match="same columns"):
        Private.from_parquet([one, other])
    with pytest.raises(ValueError, match="no column 'y'"):
        Private.from_parquet(one, label="y")
    twice = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    parquet.write_table(twice, tmp_path / "3.parquet")
    with pytest.raises(ValueError, match="same name: a"):
        Private.from_parquet(tmp_path / "3.parquet")


def truncate(file):
    os.truncate(file, file.stat().st_size // 2)


def damage(file):
    data = bytearray(file.read_bytes())
    data[4 : len(data) // 2] = b"\x07" * (len(data) // 2 - 4)
    file.write_bytes(bytes(data))


def other_rows(file):
    stored(file, {"a": np.full(7, SECRET), "b": np.full(7, SECRET)})


def other_names(file):
    stored(file, {"a": np.full(20_000, SECRET), "c": np.full(20_000, SECRET)})


@pytest.mark.parametrize(
    "change", [os.unlink, truncate, damage, other_rows, other_names], ids=lambda f: f.__name__
)
def test_a_file_that_changes_after_it_was_opened(tmp_path, change):
    cells = np.random.default_rng(0).normal(size=20_000)
    file = stored(tmp_path / "a.parquet", {"a": cells, "b": cells}, use_dictionary=False)
    private = Private.from_parquet(file)
    change(file)
    with pytest.raises(PrivacyError, match=r"a\.parquet.*Nothing was released") as caught:
        moment(private)
    assert caught.value.__context__ is None
    assert "31337" not in str(caught.value)
    assert not reader_threads()


def reader_threads():
    return [each for each in threading.enumerate() if each.name.startswith("dpadapt")]


def test_the_reader_thread_ends_with_the_blocks(tmp_path):
    file = stored(tmp_path / "a.parquet", {"a": np.ones(300_000)})
    blocks = Private.from_parquet(file)._rows.blocks()
    next(blocks)
    assert reader_threads()
    blocks.close()
    assert not reader_threads()

    class Failing(SecondMoment):
        def block(self, X, y):
            raise RuntimeError(SECRET)

    session = Private.from_parquet(file).open(epsilon=1, delta=1e-6)
    with pytest.raises(PrivacyError) as caught:
        session.hide(Failing(Cleaning(radius=1.0)))
    assert "31337" not in str(caught.value)
    assert caught.value.__context__ is None
    del caught
    assert not reader_threads()


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_file_in_one_row_group_is_streamed(tmp_path):
    """130 MB in a single row group, which pyarrow's own iter_batches would hold whole."""
    cells = np.random.default_rng(0).normal(size=800_000)
    table = pa.table({f"x{i}": np.roll(cells, i) for i in range(20)})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=len(cells))
    code = f"""
from pathlib import Path
from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.statistics import SecondMoment

def memory(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if field in line) // 1024

import pandas, pyarrow.parquet
private = Private.from_parquet({str(tmp_path / "a.parquet")!r})
Path("/proc/self/clear_refs").write_text("5")
start = memory("VmRSS")
with private.open(epsilon=1, delta=1e-6) as session:
    session.hide(SecondMoment(Cleaning(radius=100.0)))
print(memory("VmHWM") - start)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 125  # less than the file, however the allocator rounds


def test_importing_the_core_stays_light():
    code = (
        "import sys; from dpadapt.privacy.rows import cells, parquet, sources;"
        "print(*(m for m in ('dp_accounting', 'sqlalchemy', 'matplotlib') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not done.stdout.split()


def test_quiet_overrides_settings_that_raise():
    with np.errstate(all="raise"), quiet():
        assert np.array([1e308]) * 10 == np.inf
    assert numbers(np.array([np.longdouble("1e400")])) == np.inf
    assert numbers(np.zeros(2, dtype="V4")).shape == (2,)


def spark_folder(parent: Path) -> tuple[Path, pd.DataFrame]:
    """Files as Spark writes a table that is partitioned by two columns."""
    folder = parent / "visits"
    rng = np.random.default_rng(0)
    parts = []
    for year in (2025, 2026):
        for town in ("A b", None):
            text = "__HIVE_DEFAULT_PARTITION__" if town is None else "A%20b"
            inner = folder / f"year={year}" / f"town={text}"
            inner.mkdir(parents=True)
            rows = pd.DataFrame({"x": rng.normal(size=5), "y": rng.normal(size=5)})
            rows.to_parquet(inner / "part-00000-abc.snappy.parquet")
            (inner / "_SUCCESS").touch()
            (inner / ".part-00000-abc.snappy.parquet.crc").touch()
            parts.append(rows.assign(year=year, town=town))
    (folder / "_SUCCESS").touch()
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "part-0.parquet").write_bytes(b"half")
    return folder, pd.concat(parts, ignore_index=True)


def test_a_folder_that_spark_has_partitioned_is_read(tmp_path):
    folder, whole = spark_folder(tmp_path)
    private = Private.from_parquet(folder, label="y")
    assert private.columns == ("x", "year", "town")
    assert private.n_rows == 20
    columns: list[list] = [[], [], []]
    for block, _ in private._rows.blocks():
        for place, cells in enumerate(columns):
            cells += list(block.column(place))
    assert columns[0] == list(whole["x"])
    assert [float(each) for each in columns[1]] == list(whole["year"])
    assert [None if e is None else e.decode() for e in columns[2]] == [
        None if e is None or e != e else e for e in whole["town"]
    ]


def test_a_label_may_be_what_a_folder_says(tmp_path):
    folder, whole = spark_folder(tmp_path)
    private = Private.from_parquet(folder, label="year")
    labels = np.concatenate([y for _, y in private._rows.blocks()])
    assert list(labels) == list(whole["year"])


def test_partitions_that_differ_are_refused(tmp_path):
    folder, _ = spark_folder(tmp_path)
    (folder / "month=1").mkdir()
    pd.DataFrame({"x": [1.0], "y": [2.0]}).to_parquet(folder / "month=1" / "a.parquet")
    with pytest.raises(ValueError, match="do not have the same columns"):
        Private.from_parquet(folder, label="y")
