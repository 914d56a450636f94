"""A ``Private`` tells its sizes and nothing else, whoever holds it."""

from __future__ import annotations

import copy
import datetime
import io
import math
import pickle
import traceback

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.accounting.composition import gaussian_delta
from dpadapt.privacy.mechanisms import SymmetricGaussian
from dpadapt.privacy.statistics import SecondMoment

SECRET = 271828.1828  # a value to look for in everything that is said


@pytest.fixture
def private() -> Private:
    return Private(np.full((40, 3), SECRET), np.full(40, SECRET))


# Opaque ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_cannot_be_pickled(private, protocol):
    with pytest.raises(TypeError, match=r"cannot be pickled.*n_jobs=1"):
        pickle.dumps(private, protocol)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps({"inside": [private]}, protocol)
    with pytest.raises(TypeError, match="cannot be pickled"):
        private.__reduce_ex__(protocol)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.Pickler(io.BytesIO(), protocol).dump(private)


def test_joblib_cannot_store_or_hash_it(private, tmp_path):
    with pytest.raises(TypeError, match="cannot be pickled"):
        joblib.dump(private, tmp_path / "private.joblib")
    with pytest.raises((TypeError, pickle.PicklingError), match="cannot be pickled"):
        joblib.hash(private)
    with pytest.raises(TypeError, match="cannot be pickled"):
        joblib.wrap_non_picklable_objects(private).__reduce__()


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p[0],
        lambda p: p[:1],
        lambda p: p["a"],
        len,
        iter,
        list,
        next,
        float,
        lambda p: p + 1,
        lambda p: p < p,
        lambda p: np.array(p, dtype=float),
        lambda p: np.asarray(p) + 1,
        lambda p: pd.DataFrame({"a": p}).astype(float),
        lambda p: memoryview(p),
        lambda p: f"{p:.3f}",
        vars,
        lambda p: setattr(p, "leak", 1),
    ],
)
def test_it_has_no_items_no_length_no_array_form_and_no_dict(private, use):
    with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
        use(private)
    assert str(SECRET)[:6] not in str(caught.value)


def test_as_an_array_it_is_one_opaque_object(private):
    array = np.asarray(private)
    assert array.shape == ()
    assert array.dtype == object
    assert array.item() is private
    for name in ("shape", "ndim", "dtype", "__array__", "__array_interface__", "__dict__", "iloc"):
        assert not hasattr(private, name)


def test_what_is_printed_are_sizes(private):
    expected = "Private(40 rows, 3 columns, labelled)"
    assert repr(private) == str(private) == f"{private}" == "%s" % private == expected  # noqa: UP031
    assert repr([private]) == f"[{expected}]"
    assert repr(Private([[1.0]])) == "Private(1 row, 1 column, unlabelled)"
    assert not hasattr(private, "_repr_html_")


def test_copies_are_the_same_object(private):
    assert copy.copy(private) is private
    assert copy.deepcopy(private) is private
    assert copy.deepcopy({"a": [private]})["a"][0] is private
    assert sklearn.clone(private, safe=False) is private


# scikit-learn hands it on ----------------------------------------------------------------------


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers, class-wide, which private object every fit was given."""

    seen: list = []  # noqa: RUF012

    def __init__(self, a=0):
        self.a = a

    def fit(self, X, y, *, private=None):
        Recorder.seen.append(private)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.fixture
def public():
    Recorder.seen.clear()
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), np.tile([0, 1], 20)


# the private sample has 40 rows too: where something array-like of that length would be sliced
def test_grid_search_hands_on_the_same_object(private, public):
    assert private.n_rows == len(public[0])
    GridSearchCV(Recorder(), {"a": [1, 2]}, cv=4).fit(*public, private=private)
    assert len(Recorder.seen) == 2 * 4 + 1
    assert all(one is private for one in Recorder.seen)


def test_cross_validation_hands_on_the_same_object(private, public):
    cross_validate(Recorder(), *public, cv=5, params={"private": private}, error_score="raise")
    assert len(Recorder.seen) == 5
    assert all(one is private for one in Recorder.seen)


def test_a_pipeline_hands_on_the_same_object(private, public):
    pipeline = make_pipeline(StandardScaler(), Recorder())
    pipeline.fit(*public, recorder__private=private)
    GridSearchCV(pipeline, {"recorder__a": [1, 2]}, cv=2).fit(*public, recorder__private=private)
    assert len(Recorder.seen) == 1 + 2 * 2 + 1
    assert all(one is private for one in Recorder.seen)


def test_an_array_in_its_place_would_have_been_sliced(public):
    """Power: the tests above fail for rows that are not opaque."""
    rows = np.zeros((40, 3))
    GridSearchCV(Recorder(), {"a": [1]}, cv=4).fit(*public, private=rows)
    assert not all(one is rows for one in Recorder.seen)


def test_several_processes_are_refused_with_the_reason(private, public):
    search = GridSearchCV(Recorder(), {"a": [1, 2]}, cv=2, n_jobs=2)
    with pytest.raises((TypeError, pickle.PicklingError)) as caught:
        search.fit(*public, private=private)
    told = "".join(traceback.format_exception(caught.value))
    assert "TypeError: Private rows cannot be pickled" in told
    assert "use n_jobs=1" in told
    assert str(SECRET)[:6] not in told


# Construction ----------------------------------------------------------------------------------

ONE_DIMENSION = np.full(5, SECRET)
BAD_TABLES = {
    "one dimension": (ONE_DIMENSION, None, "X must have two dimensions"),
    "three dimensions": (np.full((2, 2, 2), SECRET), None, "X must have two dimensions"),
    "a number": (SECRET, None, "X must have two dimensions"),
    "ragged": ([[SECRET, 1.0], [SECRET]], None, "X must"),
    "sparse": (sparse.csr_matrix(np.full((2, 2), SECRET)), None, "X is a sparse matrix"),
    "two names": (
        pd.DataFrame(np.full((2, 2), SECRET), columns=["a", "a"]),
        None,
        "X has two columns of the same name: a",
    ),
    "short y": (np.full((3, 2), SECRET), [SECRET] * 2, "y must hold one label for each of the 3"),
    "wide y": (np.full((3, 2), SECRET), np.full((3, 1), SECRET), "y must hold one label"),
    "scalar y": (np.full((3, 2), SECRET), SECRET, "y must hold one label"),
}


@pytest.mark.parametrize(("X", "y", "message"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_bad_input_is_refused_by_name_and_no_value_is_told(X, y, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        Private(X, y)
    told = "".join(traceback.format_exception(caught.value))
    assert str(SECRET)[:6] not in told.replace(f"SECRET = {SECRET}", "")


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda p: p.select(["a", "nowhere"]), "nowhere"),
        (lambda p: p.map(lambda X: X, n_columns=-1), "n_columns"),
        (lambda p: p.open(epsilon=0.0, delta=1e-6), "epsilon"),
        (lambda p: p.open(epsilon=math.inf, delta=1e-6), "epsilon"),
        (lambda p: p.open(epsilon=1.0, delta=1.0), "delta"),
        (lambda p: p.open(epsilon=1.0, delta=1e-6, noise="none"), "noise"),
        (lambda p: p.open(epsilon=1.0, delta=1e-6, random_state=3), "random_state"),
        (lambda p: p.spent(delta=2.0), "delta"),
    ],
)
def test_bad_arguments_are_refused_by_name(use, message):
    frame = Private(pd.DataFrame({"a": [SECRET], "b": [SECRET]}))
    with pytest.raises(ValueError, match=message) as caught:
        use(frame)
    assert str(SECRET)[:6] not in str(caught.value)


def test_parquet_arguments_are_refused_by_name(tmp_path):
    file = tmp_path / "rows.parquet"
    pd.DataFrame({"a": [SECRET]}).to_parquet(file)
    with pytest.raises(ValueError, match=r"label: .*'wage'"):
        Private.from_parquet(file, label="wage")
    with pytest.raises(ValueError, match="path"):
        Private.from_parquet(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="path: no Parquet file there"):
        Private.from_parquet(tmp_path / "empty")


def released(private: Private, *, radius: float = 2.0, intercept: float = 1.0) -> np.ndarray:
    """One private second moment, start to end."""
    with private.open(epsilon=1.0, delta=1e-6) as session:
        hidden = session.hide(SecondMoment(Cleaning(radius=radius, intercept=intercept)))
        grant = session.plan(it=SymmetricGaussian.of(hidden)).it
        return session.release(grant, hidden)


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (5, 0), (0, 0)])
@pytest.mark.parametrize("intercept", [0.0, 1.0])
def test_zero_rows_one_row_zero_columns(shape, intercept):
    private = Private(np.zeros(shape))
    assert (private.n_rows, private.n_columns) == shape
    noisy = released(private, intercept=intercept)
    assert noisy.shape == (shape[1] + (intercept != 0),) * 2
    assert np.isfinite(noisy).all()


CELLS = [
    "abc",
    "",
    None,
    math.nan,
    math.inf,
    -math.inf,
    1e300,
    10**400,
    b"bytes",
    datetime.date(2020, 1, 2),
    datetime.datetime(2020, 1, 2),
    np.datetime64("2020-01-02"),
    pd.NaT,
    pd.NA,
    True,
    1j,
    [1, 2],
    {"a": 1},
    object(),
    "12.5",
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: repr(cell)[:12])
@pytest.mark.parametrize("form", ["array", "frame", "labels"])
@pytest.mark.filterwarnings("error")
def test_no_cell_raises_or_warns(cell, form):
    column = np.empty(4, dtype=object)
    column[:] = [1.0, "2", None, 0.5]
    column[1] = cell
    table = np.empty((4, 2), dtype=object)
    table[:, 0], table[:, 1] = column, 1.0
    if form == "labels":
        private = Private(np.ones((4, 2)), column)
    else:
        private = Private(pd.DataFrame(table, columns=["a", "b"]) if form == "frame" else table)
    assert np.isfinite(released(private)).all()


@pytest.mark.filterwarnings("error")
def test_a_list_of_mixed_rows_does_not_raise():
    assert np.isfinite(released(Private([["abc", 1.0], [None, 2.0], [math.nan, 1e300]]))).all()
    assert np.isfinite(released(Private([[b"abc", b"2"], [b"x", b"y"]]))).all()


def test_a_bad_cell_does_not_change_how_other_rows_are_read():
    """One person's text must not decide how everybody else's is understood."""
    hidden = []
    for cell in ("1_000", "abc"):
        rows = np.array([["1_000"]] * 9 + [[cell]], dtype=object)
        with Private(rows).open(epsilon=1.0, delta=1e-6) as session:
            hidden.append(session.hide(SecondMoment(Cleaning(radius=1.0))))
    assert np.linalg.norm(hidden[0]._value - hidden[1]._value) <= hidden[0].sensitivity


# What it cost ----------------------------------------------------------------------------------


def spend(private: Private, epsilon: float) -> float:
    """Open a session, release once; returns mu of the release."""
    with private.open(epsilon=epsilon, delta=1e-6) as session:
        hidden = session.hide(SecondMoment(Cleaning(radius=1.0)))
        grant = session.plan(it=SymmetricGaussian.of(hidden)).it
        session.release(grant, hidden)
    (event,) = session.guarantee.events
    return event.gaussian_mu


def test_nothing_spent_is_epsilon_zero(private):
    assert private.spent(delta=1e-6).epsilon == 0
    with private.open(epsilon=1.0, delta=1e-6) as session:
        session.hide(SecondMoment(Cleaning(radius=1.0)))
    assert private.spent(delta=1e-6).epsilon == 0  # hiding alone costs nothing


def test_sessions_compose_and_tightly(private):
    mus = [spend(private, epsilon) for epsilon in (1.0, 1.0, 0.5)]
    total = private.spent(delta=1e-6)
    assert len(total.events) == 3
    assert gaussian_delta(total.epsilon, math.hypot(*mus)) == pytest.approx(1e-6, rel=1e-6)
    assert 1.4 < total.epsilon < 1.7  # the sum of the epsilons is 2.5
    assert total.noise == "several"


def test_views_share_what_was_charged():
    private = Private(pd.DataFrame(np.ones((9, 3)), columns=["a", "b", "c"]))
    views = [private, private.select(["c", "a"]), private.map(lambda X: X * 0, n_columns=3)]
    views.append(views[1].map(lambda X: X[["a"]].to_numpy(), n_columns=1))
    for view in views:
        spend(view, 0.5)
    assert {view.spent(delta=1e-6).epsilon for view in views} == {private.spent(delta=1e-6).epsilon}
    assert len(private.spent(delta=1e-6).events) == 4
    assert private.spent(delta=1e-6).epsilon > 0.9
    assert Private(np.ones((9, 3))).spent(delta=1e-6).epsilon == 0


def test_views_have_their_own_sizes():
    private = Private(pd.DataFrame(np.ones((9, 3)), columns=["a", "b", "c"]), np.ones(9))
    view = private.select(["c", "a"])
    assert (view.n_rows, view.n_columns, view.columns) == (9, 2, ("c", "a"))
    assert view.labelled
    mapped = view.map(lambda X: np.ones((len(X), 5)), n_columns=5)
    assert (mapped.n_rows, mapped.n_columns, mapped.columns) == (9, 5, None)


def test_a_map_that_fails_on_a_row_does_not_raise():
    def fussy(X):
        if (X > 100).any():
            raise ValueError(f"too large: {X}")
        return X

    rows = np.ones((6, 2))
    rows[3] = SECRET
    assert np.isfinite(released(Private(rows).map(fussy, n_columns=2))).all()


def test_select_refuses_a_bare_string():
    with pytest.raises(TypeError, match="columns must be a list of names"):
        Private(pd.DataFrame({"a": [1.0], "b": [2.0]})).select("ab")
