"""The four forms: whatever a method hands over, no release moves beyond what the core derives."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from dpadapt import (
    AutoClassifier,
    AutoRegressor,
    DiscrepancyRegressor,
    Private,
    ReweightingClassifier,
    ReweightingRegressor,
)
from dpadapt.mixing import AdaMixClassifier
from dpadapt.papers.mixing.projection import WithProducts
from dpadapt.privacy import Cleaning, PrivacyError, RowSum, Session
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.rows import foreign
from dpadapt.privacy.statistics import (
    Histogram,
    MeanOuter,
    MeanProduct,
    MeanVector,
    Prepared,
    SecondMoment,
    clipped,
    forms,
    mean_number,
)
from dpadapt.privacy.statistics.directions import Directions

N, D = 6, 3
CLEANING = Cleaning(2.0, label_range=(-3.0, 3.0))
WILD = (0.0, 1.0, -1.0, 1e-300, 1e9, -1e300, np.nan, np.inf, -np.inf)


def too_long(X, y):
    return 1e3 * X * np.sign(y)[:, None]


def no_numbers(X, y):
    return X / 0.0


def mixed(X, y):
    return X - X.mean(axis=0) + y.sum()


def sorted_rows(X, y):
    return np.sort(X, axis=0) * len(X)


def failing(X, y):
    if (y > 1).any():
        raise ValueError(f"a label above 1: {y.max()}")
    return X


def shrinking(X, y):
    return X[y < 1]


def with_memory(seen, X, y):
    seen.extend(X.tolist())
    return np.full(X.shape, float(len(seen)))


HOSTILE = {
    "too long": too_long,
    "no numbers": no_numbers,
    "mixed": mixed,
    "sorted": sorted_rows,
    "failing": failing,
    "of another length": shrinking,
    "with memory": partial(with_memory, []),
}
FORMS = {
    "vector": lambda function: MeanVector(CLEANING, function, D, 0.5),
    "off centre": lambda function: MeanVector(CLEANING, function, D, 0.5, centre=4.0),
    "number": lambda function: mean_number(
        CLEANING, lambda X, y: np.sum(function(X, y), axis=1), -1.0, 4.0
    ),
    "product": lambda function: MeanProduct(CLEANING, function, D, D, 0.7),
    "measured": lambda function: MeanProduct(
        Prepared(CLEANING, lambda X, y: (np.hstack([X, X]), y), 2 * D, measured=D),
        lambda X, y: function(X[:, D:], y),
        *(D, D, 0.7),
    ),
    "outer": lambda function: MeanOuter(
        Prepared(CLEANING, lambda X, y: (function(X, y), y), D), D + 1, 1.5
    ),
    "cells": lambda function: Histogram(CLEANING, function, 4, D),
}


def moved(query, rng):
    """Largest move of the mean by one row, in sensitivities; and how far it moved."""
    X, y = rng.normal(size=(N, D)) * 10.0 ** rng.uniform(-2, 2), rng.normal(size=N)
    other, labels = X.copy(), y.copy()
    other[2], labels[2] = rng.choice(WILD, D), rng.choice(WILD)
    means = []
    for rows, given in ((X, y), (other, labels)):
        with Private(rows, given).open(epsilon=1.0, delta=1e-6) as session:
            means.append(session.hide(query)._value)
            bound = session.sensitivity(query)
    return float(np.linalg.norm(means[0] - means[1])) / bound


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_method_moves_nothing_beyond_the_derived_sensitivity(form, name):
    query, rng = FORMS[form](HOSTILE[name]), np.random.default_rng(0)
    with np.errstate(all="ignore"):
        assert max(moved(query, rng) for _ in range(12)) <= 1.0


def test_without_the_seam_a_method_that_mixes_rows_moves_more(monkeypatch):
    """The tests above have power: given whole blocks, the same functions go beyond."""
    monkeypatch.setattr(forms, "row_wise", lambda function: True)
    query, rng = FORMS["vector"](mixed), np.random.default_rng(0)
    assert max(moved(query, rng) for _ in range(12)) > 1.5


@pytest.mark.parametrize("form", ["vector", "number", "product", "cells"])
def test_without_the_bound_a_long_answer_moves_more(form, monkeypatch):
    monkeypatch.setattr(forms, "shrunk_rows", lambda vectors, length: vectors)
    monkeypatch.setattr(forms, "clipped", lambda coefficients, lengths, clip: coefficients)
    monkeypatch.setattr(np, "clip", lambda values, *_: values)
    query, rng = FORMS[form](too_long), np.random.default_rng(0)
    if form == "cells":
        with pytest.raises(Exception):  # noqa: B017, PT011, there is no such cell
            moved(query, rng)
    else:
        assert max(moved(query, rng) for _ in range(12)) > 1.5


def test_products_of_tiny_and_huge_numbers_are_bounded():
    tiny, huge = np.array([[1e-200]]), np.array([1e150])
    assert abs(clipped(tiny, huge, 1e-60)[0, 0] * huge[0]) <= 1e-60
    assert abs(clipped(np.array([[1e150]]), np.array([1e-200]), 1e-60)[0, 0] * 1e-200) <= 1e-60
    assert clipped(np.array([[np.inf]]), np.array([1.0]), 1.0).tolist() == [[0.0]]


def test_a_form_cannot_be_changed():
    with pytest.raises(TypeError, match="subclass RowMean and prove"):
        type("Loud", (MeanVector,), {"sensitivity": lambda self, n: 0.0})
    with pytest.raises(AttributeError):
        FORMS["vector"](too_long).bound = 9.0


def test_a_map_of_rows_that_is_not_ours_is_refused():
    class Mixing:
        radius = 1.0

        def __call__(self, X, y):
            return X - X.mean(axis=0), y

    for made in (
        lambda: Prepared(Mixing(), lambda X, y: (X, y), D),
        lambda: MeanOuter(WithProducts(Mixing(), np.eye(D)), 2 * D + 1, 1.0),
        lambda: SecondMoment(Mixing()),
        lambda: SecondMoment(type("Longer", (Cleaning,), {})(1.0)),
    ):
        with pytest.raises(TypeError, match="cleaning must be a"):
            made()
    with pytest.raises(TypeError, match="Put a map of yours into Prepared"):
        MeanVector(Mixing(), too_long, D, 1.0)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_bounds_are_finite(bad):
    with pytest.raises(ValueError, match="bound must be"):
        MeanVector(CLEANING, too_long, D, bad)
    with pytest.raises(ValueError, match="bound must be"):
        MeanOuter(CLEANING, D + 1, bad)
    with pytest.raises(ValueError, match="measured must be"):
        Prepared(CLEANING, too_long, 2, measured=2)


class Acting(np.ndarray):
    """An array that takes part in sums as it likes, over all rows."""

    def __array_ufunc__(self, ufunc, method, *given, out=None, **more):
        plain = [np.asarray(each) for each in given]
        found = getattr(ufunc, method)(*plain, **more)
        if out is None:
            return found
        np.asarray(out[0])[...] = np.sign(found.sum(axis=0))
        return out[0]


def changed(query, *tables):
    """How far the mean of one table is from that of another, in sensitivities."""
    means = []
    for table in tables:
        with Private(*table).open(epsilon=1.0, delta=1e-6) as session:
            means.append(session.hide(query)._value)
            bound = session.sensitivity(query)
    return float(np.linalg.norm(means[0] - means[1])) / bound


@pytest.mark.parametrize("map_of", [Cleaning, Directions])
def test_an_array_that_acts_does_not_move_rows(map_of):
    acting = np.zeros(2).view(Acting)
    rows = {
        Cleaning: lambda: Cleaning(9.0, center=acting, scale=acting + 1.0),
        Directions: lambda: Directions(acting, (acting + 1.0).view(Acting), 0.0, 2),
    }[map_of]()
    X = np.tile([1.0, 0.0], (50, 1))
    other = X.copy()
    other[0] = [-100.0, 0.0]
    query = MeanVector(rows, lambda X, y: X[:, :2], 2, 1.0)
    assert changed(query, (X,), (other,)) <= 1.0


def test_a_function_of_two_tables_gets_one_row():
    """The label of one row, times a column of all rows, in as many columns as there are rows."""
    X, y = np.zeros((50, 50)), np.ones(50)
    X[:, 0] = 1.0
    labels = y.copy()
    labels[0] = -1.0
    query = MeanVector(Cleaning(9.0, label_range=(-1.0, 1.0)), np.multiply, 50, 1.0)
    assert changed(query, (X, y), (X, labels)) <= 1.0


def test_a_transformer_that_learns_keeps_nothing_of_private_rows():
    X = np.tile([[-1.0], [1.0]], (50, 1))
    other = X.copy()
    other[0] = 1e6
    scaler = StandardScaler()
    means = []
    for rows in (X, other):
        mapped = Private(rows).map(scaler.fit_transform, n_columns=1)
        with mapped.open(epsilon=1.0, delta=1e-6) as session:
            hidden = session.hide(SecondMoment(Cleaning(1.0)))
            means.append(hidden._value)
    assert np.linalg.norm(means[0] - means[1]) <= hidden.sensitivity
    assert not hasattr(scaler, "mean_")


@pytest.mark.parametrize("through", [False, True], ids=["directions", "prepared"])
def test_lengths_of_rows_of_few_bits_are_long_enough(through, monkeypatch):
    monkeypatch.setattr(foreign, "row_wise", lambda function: True)  # its numbers stay as they are
    few = Directions(np.zeros(300), np.ones(300), 0.0, 2, dtype=np.float32)
    rows = few
    if through:
        rows = Prepared(few, lambda X, y: (np.hstack([X, X[:, :1]]), y), 302, measured=301)
    query = MeanProduct(rows, lambda X, y: np.full(len(X), 1e3), 301, 1, 1.0)
    X = np.random.default_rng(0).normal(size=(100, 1, 300))
    assert max(np.linalg.norm(query.block(*rows(row, np.zeros(1)))) for row in X) <= 1.0


def test_a_function_cannot_change_the_rows_that_are_summed():
    scaler = StandardScaler(copy=False).fit(np.array([[1e-6, 1.0], [-1e-6, -1.0]]))
    rows = Prepared(CLEANING, lambda X, y: (np.hstack([X, X]), y), 2, measured=1)
    query = MeanProduct(rows, scaler.transform, 1, 2, 0.7)
    block = query.block(*rows(np.array([[1.0]]), np.zeros(1)))
    assert np.linalg.norm(block) <= 0.7


@pytest.mark.parametrize(
    "query",
    [
        MeanProduct(CLEANING, lambda X, y: y, 400, 1, 0.7),
        MeanOuter(Prepared(CLEANING, lambda X, y: (X[:, :0], y), 0), 400, 1.0),
    ],
    ids=["product", "outer"],
)
def test_a_narrow_row_is_not_added_several_times(query):
    """One column, in place of the 400 that were said, would stand in each of them."""
    private = Private(np.ones((6, 1)), np.ones(6))
    with private.open(epsilon=1.0, delta=1e-6) as session, pytest.raises(PrivacyError) as caught:
        session.hide(query)
    assert "must have the shape" in str(caught.value)


def test_lengths_are_measured_by_the_core():
    """A method that says that its rows are short is not believed."""
    rows = Prepared(CLEANING, lambda X, y: (np.hstack([X, 0 * X[:, :1]]), y), D + 1, measured=D)
    query = MeanProduct(rows, lambda X, y: np.full(len(X), 1e6), D, 1, 0.7)
    block = query.block(*rows(np.array([[1.0, 1.0, 0.0]]), np.zeros(1)))
    assert np.linalg.norm(block) == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("query", "one", "two"),
    [
        (FORMS["vector"](lambda X, y: X), [1, 0, 0], [-1, 0, 0]),
        (FORMS["product"](lambda X, y: y[:, None] * [1, 0, 0]), [1, 0, 0], [-1, 0, 0]),
        (MeanOuter(CLEANING, D + 1, 1.0), [1, 0, 0], [0, 1, 0]),
        (FORMS["cells"](lambda X, y: X), [0, 0, 0], [2, 1, 1]),
    ],
    ids=["vector", "product", "outer", "cells"],
)
def test_the_sensitivities_are_attained(query, one, two):
    label = 0.0 if isinstance(query, MeanOuter) else 2.0
    parts = [query.block(np.array([row], dtype=float), np.array([label])) for row in (one, two)]
    assert np.linalg.norm(parts[0] - parts[1]) == pytest.approx(query.sensitivity(1), rel=1e-9)


def test_a_method_says_no_sensitivity_and_a_release_has_the_derived_one():
    query = MeanVector(Cleaning(9.0), lambda X, y: X, 2, 1.0)
    with Private(np.ones((50, 2))).open(epsilon=1.0, delta=1e-6) as session:
        hidden = session.hide(query)
        grants = session.plan(mean=Gaussian.of(hidden))
        assert grants.mean.scale == pytest.approx(
            hidden.sensitivity * grants.mean.scale / (2 / 50), rel=1e-6
        )
        session.release(grants.mean, hidden)


# what the defaults ask

CLAIMED = {  # not a form: a claim with a proof, and why
    "LabelledRows": "the core's own count of rows with a label",
    "ClippedGradients": "a product whose rows may be float32, and are summed in pieces",
}


def default_fits():
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(300, 3)), rng.normal(size=(400, 3))
    y, t = X[:, 0] + rng.normal(size=300), T[:, 0] + rng.normal(size=400)
    facts = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
    yield AutoRegressor(**facts, experts=("linear",)), X, y, Private(T, t)
    yield AutoClassifier(**facts, experts=("linear",)), X, y > 0, Private(T, t > 0)
    yield DiscrepancyRegressor(**facts), X, y, Private(T)
    yield ReweightingRegressor(**facts), X, y, Private(T, t)
    yield ReweightingRegressor(**facts), X, 0 * y, Private(T, t)  # public residuals do not tell
    yield ReweightingClassifier(**facts), X, y > 0, Private(T, t > 0)
    yield AdaMixClassifier(**facts), X, y > 0, Private(T, t > 0)


def test_every_statistic_of_the_defaults_is_a_form_or_says_why_not(monkeypatch):
    asked, hide = set(), Session.hide

    def noticed(session, statistic, *args, **kwargs):
        inner = statistic.mean if isinstance(statistic, RowSum) else statistic
        asked.add(type(inner))
        return hide(session, statistic, *args, **kwargs)

    monkeypatch.setattr(Session, "hide", noticed)
    for model, X, y, private in default_fits():
        model.fit(X, y, private=private)
    own = (MeanVector, MeanProduct, MeanOuter, Histogram, SecondMoment)
    assert {MeanVector, MeanProduct, Histogram, SecondMoment} <= asked
    assert {kind.__name__ for kind in asked if kind not in own} == set(CLAIMED)
