"""What iterative methods need of a session: kept rows, hidden rows, prepared rows, class labels."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from dpadapt import PrivacyError, Private
from dpadapt.privacy import Cleaning, RowMean, Rows
from dpadapt.privacy.mechanisms import Gaussian, Laplace
from dpadapt.privacy.rows.arrow import arrow_cells
from dpadapt.privacy.rows.cells import cells_of, codes
from dpadapt.privacy.statistics import Prepared, SecondMoment

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}


@dataclass(frozen=True, eq=False)
class Sum(RowMean):
    """Mean of the first column and of the labels."""

    cleaning: Cleaning
    label: str = "sum"
    magnitude: float = 10.0

    def shape(self, n_columns):
        return (2,)

    def block(self, X, y):
        return np.array([X[:, 0].sum(), 0.0 if y is None else y.sum()])

    def sensitivity(self, n_rows):
        return 20.0 / n_rows


def revealed(session, hidden):
    """The un-noised value: tests may look."""
    return hidden._value


class Counting(Cleaning):
    """A cleaning that counts how often it is used."""

    def __call__(self, X, y):
        object.__setattr__(self, "calls", getattr(self, "calls", 0) + 1)
        return super().__call__(X, y)


# kept rows


def test_kept_rows_give_the_same_answer_and_are_cleaned_once():
    rng = np.random.default_rng(0)
    cleaning = Counting(radius=5.0, label_range=(-1.0, 1.0))
    private = Private(rng.normal(size=(500, 3)), rng.normal(size=500))
    with private.open(**BUDGET) as session:
        fresh = revealed(session, session.hide(Sum(cleaning)))
        first = revealed(session, session.hide(Sum(cleaning), keep=True))
        used = cleaning.calls
        again = revealed(session, session.hide(Sum(cleaning), keep=True))
        assert cleaning.calls == used
    np.testing.assert_array_equal(first, fresh)
    np.testing.assert_array_equal(again, fresh)


def test_another_cleaning_is_not_answered_from_kept_rows():
    X = np.full((50, 1), 4.0)
    with Private(X).open(**BUDGET) as session:
        session.hide(Sum(Cleaning(radius=5.0)), keep=True)
        short = session.hide(Sum(Cleaning(radius=1.0)), keep=True)
        assert revealed(session, short)[0] == pytest.approx(1.0)


def test_parts_of_a_split_are_kept_apart():
    X = np.arange(100.0)[:, None]
    with Private(X).open(**BUDGET) as session:
        session.split(0.3)
        cleaning = Cleaning(radius=1e3)
        train = [revealed(session, session.hide(Sum(cleaning), "train", keep=True))] * 2
        holdout = revealed(session, session.hide(Sum(cleaning), "holdout", keep=True))
        again = revealed(session, session.hide(Sum(cleaning), "train", keep=True))
        assert session.size("train") * train[0][0] + session.size("holdout") * holdout[0] == 4950
        np.testing.assert_array_equal(train[0], again)


def test_a_closed_session_keeps_no_rows():
    with Private(np.ones((5, 1))).open(**BUDGET) as session:
        session.hide(Sum(Cleaning(radius=5.0)), keep=True)
        assert session._samples["all"]._kept
    assert not any(sample._kept for sample in session._samples.values())
    with pytest.raises(PrivacyError, match="closed"):
        session.hide(Sum(Cleaning(radius=5.0)))


# hidden rows


def test_hidden_rows_are_the_cleaned_rows_with_their_labels():
    X, y = np.array([[3.0, 4.0], [math.nan, 1e300]]), np.array([9.0, math.nan])
    with Private(X, y).open(**BUDGET) as session:
        rows = session.hide(Rows(Cleaning(radius=5.0, label_range=(-1.0, 1.0))))
        expected = [[3.0, 4.0, 1.0], [0.0, 0.0, 0.0]]  # the second has no label
        np.testing.assert_allclose(revealed(session, rows), expected, rtol=1e-12)


@pytest.mark.parametrize("mechanism", [Gaussian, Laplace])
def test_hidden_rows_cannot_be_released_as_they_are(mechanism):
    with Private(np.ones((3, 1))).open(**BUDGET) as session:
        rows = session.hide(Rows(Cleaning(radius=5.0)))
        grant = session.plan(it=mechanism("rows", 1e9, dimension=99)).it
        with pytest.raises(PrivacyError, match="no bounded sensitivity"):
            session.release(grant, rows)


def test_a_function_of_hidden_rows_can_be_released_and_cannot_change_them():
    with Private(np.ones((1000, 1))).open(**BUDGET) as session:
        rows = session.hide(Rows(Cleaning(radius=5.0)))
        claim = 10 / 1000
        grant = session.plan(it=Gaussian("mean", claim, count=2)).it
        mean = session.derive(rows, lambda Z: Z.mean(), sensitivity=claim)
        assert session.release(grant, mean) == pytest.approx(1.0, abs=0.5)

        def vandal(Z):
            Z[:] = 7.0
            return Z.mean()

        with pytest.raises(PrivacyError, match="withheld"):
            session.derive(rows, vandal, sensitivity=claim)
        assert revealed(session, rows)[0, 0] == 1.0


def test_hidden_rows_show_and_pickle_nothing():
    with Private([[123456.0]]).open(**BUDGET) as session:
        rows = session.hide(Rows(Cleaning(radius=1e9)))
        assert "123456" not in repr(rows)
        with pytest.raises(TypeError):
            pickle.dumps(rows)


# prepared rows


def test_a_prepared_map_that_fails_on_one_row_loses_only_that_row():
    def fragile(X, y):
        if (X > 90).any():
            raise ValueError("a private value")
        return X * 2, y

    prepared = Prepared(Cleaning(radius=1e3, label_range=(0.0, 9.0)), fragile, width=1)
    rows, labels = prepared(np.array([[1.0], [99.0], [3.0]]), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(rows, [[2.0], [0.0], [6.0]])
    np.testing.assert_array_equal(labels, [1.0, 0.0, 3.0])


def test_a_prepared_map_makes_nothing_infinite():
    prepared = Prepared(Cleaning(radius=1.0), lambda X, y: (X / 0.0, y), width=1)
    np.testing.assert_array_equal(prepared(np.array([[1.0], [0.0]]), None)[0], [[0.0], [0.0]])


def test_a_prepared_map_of_a_wrong_width_is_zero_everywhere():
    prepared = Prepared(Cleaning(radius=1.0), lambda X, y: (X[:, :1], y), width=2)
    np.testing.assert_array_equal(prepared(np.ones((2, 2)), None)[0], np.zeros((2, 2)))


# class labels


CLASSES = {
    "text": (
        ["no", "yes"],
        ["yes", "maybe", None, b"no", 3, math.nan],
        [1, None, None, 0] + [None] * 2,
    ),
    "numbers": ([2, 5], [5, 2.0, "5", True, None, math.inf], [1, 0, 1, None, None, None]),
    "flags": ([False, True], [True, 0, "1", 2, None, b"0"], [1, 0, 1, None, None, 0]),
}


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("form", [list, lambda v: np.array(v, dtype=object), pd.Series])
def test_labels_become_places_among_the_classes(kind, form):
    classes, labels, expected = CLASSES[kind]
    found = codes(cells_of(form(labels)), classes)
    np.testing.assert_array_equal(found, [math.nan if e is None else e for e in expected])


class Odd(str):
    def __str__(self):
        raise RuntimeError("no")


def test_no_label_raises():
    odd = [Odd("x"), object(), {}, [1], b"\xff", 10**400]
    assert np.isnan(codes(cells_of(odd), ["no", "yes"])).all()
    assert np.isnan(codes(cells_of(odd), [0, 1])).all()


@pytest.mark.parametrize(
    ("column", "classes"),
    [
        (["a", "b", None, "c"], ["a", "b"]),
        ([1, 2, None, 7], [1, 2]),
        ([1, 2, None, 7], ["1", "2"]),
        ([1.0, 2.0, None, math.nan], [1, 2]),
    ],
)
def test_labels_of_parquet_files(column, classes, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"x": [0.0, 1.0, 2.0, 3.0], "y": pa.array(column)})
    np.testing.assert_array_equal(
        codes(arrow_cells(table.column("y").combine_chunks()), classes),
        [0.0, 1.0, math.nan, math.nan],
    )
    pq.write_table(table, tmp_path / "people.parquet")
    private = Private.from_parquet(tmp_path / "people.parquet", label="y").encode(classes)
    with private.select(["x"]).open(**BUDGET) as session:
        rows = session.hide(Rows(Cleaning(radius=9.0, classes=2)))
        np.testing.assert_array_equal(revealed(session, rows)[:, -1], [0, 1, -1, -1])


def test_dates_as_labels_belong_to_no_class():
    import pyarrow as pa

    column = pa.array([0, 1], pa.timestamp("s"))
    assert np.isnan(codes(arrow_cells(column), ["a", "b"])).all()


def test_encoding_is_a_view_on_the_same_charges_through_select_and_map():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    private = Private(frame, ["no", "yes"])
    for view in (
        private.encode(["no", "yes"]).select(["b"]),
        private.select(["b"]).encode(["no", "yes"]),
        private.map(lambda X: X[["b"]], 1).encode(["no", "yes"]),
    ):
        with view.open(**BUDGET) as session:
            rows = session.hide(Rows(Cleaning(radius=9.0, classes=2)))
            np.testing.assert_array_equal(revealed(session, rows), [[3.0, 0.0], [4.0, 1.0]])
            grant = session.plan(it=Gaussian("mean", 1.0)).it
            session.release(
                grant,
                session.derive(rows, lambda Z: Z.mean(), sensitivity=grant.mechanism.sensitivity),
            )
    assert len(private.spent(1e-6).events) == 3


def test_an_unlabelled_sample_has_nothing_to_encode():
    assert not Private([[1.0]]).encode(["a", "b"]).labelled


def test_unit_labels_map_the_range_to_minus_one_and_one():
    cleaning = Cleaning(radius=1.0, label_range=(10.0, 30.0), unit_labels=True)
    _, y = cleaning(np.zeros((5, 1)), np.array([10.0, 20.0, 30.0, 99.0, math.nan]))
    np.testing.assert_allclose(y, [-1.0, 0.0, 1.0, 1.0, 0.0])
    _, y = Cleaning(1.0, label_range=(2.0, 2.0), unit_labels=True)(np.zeros((1, 1)), np.ones(1))
    assert y[0] == 0.0


def test_class_codes_that_are_none_become_minus_one():
    _, y = Cleaning(1.0, classes=3)(
        np.zeros((6, 1)), np.array([0.0, 2.0, 3.0, -1.0, 1.5, math.nan])
    )
    np.testing.assert_array_equal(y, [0, 2, -1, -1, -1, -1])


def test_second_moments_still_take_plain_cleanings():
    with Private(np.eye(2)).open(**BUDGET) as session:
        assert session.hide(SecondMoment(Cleaning(radius=1.0))).shape == (2, 2)
