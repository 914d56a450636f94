"""What the private step releases: bounded, whatever a person's row and label are."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from dpadapt import AutoClassifier, AutoRegressor, PrivacyError, Private
from dpadapt.audit import combinations, replay, replay_combination
from dpadapt.auto.classification_inference import ClassNoHarm
from dpadapt.auto.classification_step import _slope, _wrong
from dpadapt.auto.regression_inference import LineSearch
from dpadapt.auto.regression_step import NoHarm, _shares
from dpadapt.privacy import Cleaning
from dpadapt.privacy.recording.recording import recording
from dpadapt.privacy.statistics import MeanVector, histogram, mean_number
from dpadapt.report.wording import list_releases
from dpadapt.testing.search import HOSTILE_LABELS, HOSTILE_ROWS, hostile_row
from dpadapt.testing.tape import taped

CLEANING = Cleaning(1e6, label_range=(-1e6, 1e6))
WILD = (0.0, 1.0, 1e-9, 1e9, 1e300, np.nan, np.inf, -np.inf)


def whole(X, y):
    return np.column_stack([X, y])


BACK = LineSearch(error=1.0, square=0.25, precision=100.0)
TURN = np.array([0.5, -0.7, 0.2])
SLOPE = _slope(np.array([[-1.0, 1.0]]), energy=1e-3)  # of rows with one feature and two scores
QUERIES = {
    "number": mean_number(CLEANING, lambda X, y: X[:, 0] - y, -3.0, 4.0),
    "vector": MeanVector(CLEANING, whole, size=4, bound=2.0),
    "slope": mean_number(CLEANING, SLOPE, -1.0, 1.0),
    "errors": mean_number(CLEANING, _wrong, 0.0, 1.0),
    "cells": histogram(CLEANING, lambda X, y: X[:, 0] - y, np.array([-1.0, 0.0, 1.0, 30.0])),
    "move": MeanVector(CLEANING, lambda X, y: BACK.products(y, X[:, 0]), size=2, bound=1.0),
    "stack": MeanVector(
        CLEANING, lambda X, y: BACK.products(y - X[:, 0], X @ TURN), size=2, bound=1.0
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_one_row_moves_a_mean_by_its_sensitivity_at_most(name):
    query, rng, n = QUERIES[name], np.random.default_rng(0), 7
    largest = 0.0
    for _ in range(300):
        X = rng.standard_t(1, size=(n, 3)) * 10.0 ** rng.integers(-9, 9)
        y = rng.standard_t(1, size=n)
        other, labels = X.copy(), y.copy()
        other[3], labels[3] = rng.choice(WILD, size=3) * rng.choice([-1, 1], 3), rng.choice(WILD)
        with np.errstate(all="ignore"):
            one, two = (
                query.block(*CLEANING(rows, marks)) / n for rows, marks in ((X, y), (other, labels))
            )
        largest = max(largest, float(np.linalg.norm(one - two)))
    assert largest <= query.sensitivity(n) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [
        ("number", ([9.0, 0.0, 0.0], 0.0), ([-9.0, 0.0, 0.0], 0.0)),
        ("vector", ([9.0, 0.0, 0.0], 0.0), ([-9.0, 0.0, 0.0], 0.0)),
        ("errors", ([9.0, 0.0, 0.0], 0.0), ([0.0, 9.0, 0.0], 0.0)),
        ("slope", ([1.0, 0.0, 0.0], 1.0), ([1.0, 0.0, 0.0], 0.0)),
        ("cells", ([9.0, 0.0, 0.0], 0.0), ([-9.0, 0.0, 0.0], 0.0)),
        ("move", ([1e-3, 0.0, 0.0], 1e6), ([1e-3, 0.0, 0.0], -1e6)),
        ("stack", ([1e-3, 0.0, 0.0], 1e6), ([1e-3, 0.0, 0.0], -1e6)),
    ],
)
def test_the_sensitivity_is_attained(name, one, two):
    query = QUERIES[name]
    blocks = [query.block(np.array([row]), np.array([label])) for row, label in (one, two)]
    assert np.linalg.norm(blocks[0] - blocks[1]) == pytest.approx(query.sensitivity(1))


AUTO = combinations(names=["AutoRegressor", "AutoClassifier"])


REPLAYED = [
    pytest.param(one, id=one.name, marks=pytest.mark.slow if place % 3 else ())
    for place, one in enumerate(AUTO)
]


@pytest.mark.parametrize("one", REPLAYED)
def test_replays_hold(one):
    assert replay_combination(one, pairs=4).holds


def table(n, seed, classes):
    X = np.random.default_rng([n, seed]).normal(size=(n, 3))
    y = X @ [1.0, -2.0, 0.5] + X[:, 0] ** 2
    return X, (y > 0.5).astype(float) if classes else y


def fitter(kind, classes, experts=("linear",)):
    X, y = table(60, 1, classes)

    def fit(sample):
        model = kind(epsilon=1.0, delta=1e-6, experts=experts, noise="seeded", random_state=0)
        return model.fit(X, y, private=Private(*sample))

    return fit


@pytest.mark.parametrize(
    ("kind", "classes"),
    [(AutoRegressor, 0), pytest.param(AutoClassifier, 2, marks=pytest.mark.slow)],
)
def test_hostile_neighbours_move_no_release_beyond_its_sensitivity(kind, classes):
    fit, (T, t) = fitter(kind, classes), table(12, 2, classes)
    largest = 0.0
    people = [(hostile_row(name, 3), t[4]) for name in HOSTILE_ROWS]
    people += [(hostile_row("huge norm", 3), label) for label in HOSTILE_LABELS]
    for row, label in people:
        other, labels = T.copy(), t.copy()
        other[4], labels[4] = row, label
        found = replay(fit, (T, t), (other, labels))
        assert found.holds, (row, label)
        largest = max(largest, found.largest)
    assert largest > 0.3, "neighbours that move nothing prove nothing"


@pytest.mark.parametrize(("kind", "classes"), [(AutoRegressor, 0), (AutoClassifier, 2)])
def test_the_purse_is_spent_and_not_overspent(kind, classes):
    n = 200 if classes else 300  # too few for a look back at the slope; enough for a descent
    with taped() as tape:
        try:
            experts = ["linear"] if classes else ["linear", "fourier"]
            model = fitter(kind, classes, experts)(table(n, 2, classes))
        except PrivacyError as error:
            pytest.fail(f"a fit asked for more than its purse holds: {error}")
    event, count = model.guarantee_.events
    assert (event.label, count.label) == ("private step", "rows with a label")
    _, *draws = [draw for draw in tape if draw.mechanism == "add_gaussian"]  # after the count
    if classes:
        look, *steps = draws
        assert (1 / n / look.scale) ** 2 * event.scale**2 == pytest.approx(0.20, rel=1e-4)
        (scale,) = {draw.scale for draw in steps}  # all steps of the descent cost the same
        clips = scale * n / 2 / event.scale * np.sqrt(0.8 / len(steps))
        assert np.isclose(clips, (0.25, 0.35, 0.5, 0.7), rtol=1e-4).any()
    else:
        # mean and length have sensitivities that the releases before them chose
        shares = {each.name: each.share for each in model.releases_}
        errors, stack, centre, move = draws[0], draws[2], draws[4], draws[-2]
        bounds = {"errors": (np.sqrt(2), errors), "stack": (2, stack), "centre": (4, centre)}
        for name, (bound, draw) in {**bounds, "move": (2, move)}.items():
            spent = (bound / n / draw.scale) ** 2 * event.scale**2
            assert spent == pytest.approx(shares[name], rel=1e-4)
    assert model.guarantee_.epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("weights_unequal", [True, False])
@pytest.mark.parametrize("precision", [1e-3, 1.0, 30.0, 51.0, 100.0, 1e4, 1e12])
def test_shares_of_the_purse_add_up_to_one(precision, weights_unequal):
    shares = _shares(precision, weights_unequal=weights_unequal)
    assert ("stack" in shares) == weights_unequal
    assert ("descent" in shares) == (precision > 50.4)
    assert all(share > 0 for share in shares.values())
    assert sum(shares.values()) == pytest.approx(1.0, rel=1e-12)


class Keeping(BaseEstimator):
    """An expert that keeps, prints and logs what it was last given."""

    def fit(self, X, y):
        self.level_ = float(np.mean(y))
        return self

    def predict(self, X):
        self.last_ = X
        print("seen", X)
        logging.getLogger("expert").critical("seen %s", X)
        return np.full(len(X), self.level_)


def test_an_expert_that_keeps_and_tells_what_it_is_given(capfd, caplog):
    X, y = table(60, 2, 0)
    T, t = table(50, 9, 0)
    T[7] = 31337.25
    capfd.readouterr()
    model = AutoRegressor(
        epsilon=1.0, delta=1e-6, experts=["linear", Keeping()], noise="seeded", random_state=0
    )
    model.fit(X, y, private=Private(T, t))
    last = model.public_model_.experts[1].model.last_
    assert len(last) <= len(X)
    assert not np.isin(last, T).any(), "private rows in the model"
    said = [*capfd.readouterr(), *caplog.messages]
    assert "31337.25" not in "".join(said)


@pytest.mark.parametrize(("kind", "classes"), [(AutoRegressor, 0), (AutoClassifier, 2)])
@pytest.mark.parametrize(
    ("of_rows", "of_labels"), [(1e155, 1), (1e-160, 1), (1, 1e200), (1, 1e-160)]
)
def test_units_that_cannot_be_are_refused_before_anything_is_paid(
    kind, classes, of_rows, of_labels
):
    if classes and of_labels != 1:
        pytest.skip("classes have no units")
    X, y = table(60, 1, classes)
    T, t = table(50, 2, classes)
    private = Private(T * of_rows, t * of_labels)
    model = kind(epsilon=1.0, delta=1e-6, experts=["linear"])
    with pytest.raises(ValueError, match="must be in units"):
        model.fit(X * of_rows, y * of_labels, private=private)
    assert private.spent(1e-6).epsilon == 0


@pytest.mark.parametrize(
    ("make", "rows"), [(AutoRegressor, 80), (AutoClassifier, 80), (AutoClassifier, 10)]
)
def test_the_list_of_releases_is_what_was_released(make, rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2))
    y = X[:, 0] if make is AutoRegressor else X[:, 0] > 0
    T = rng.normal(size=(2000, 2)) + 1
    private = Private(T, T[:, 1] if make is AutoRegressor else T[:, 1] > 1)
    with recording(seed=0) as heard:
        model = make(epsilon=4.0, delta=1e-6, experts=["linear"]).fit(X, y, private=private)
    told, events = model._story(), model.guarantee_.events
    listed = list(list_releases(events, told.made, told.parts))
    charges = [each for each in listed if ": " not in each.what]
    assert [each.what for each in charges] == [event.label for event in events]
    counts = [int(each.times.partition(", ")[0].replace(",", "")) for each in charges]
    assert sum(counts) == len(heard.values)
    parts = told.parts["private step"]
    assert sum(share for _, share, _ in parts) == pytest.approx(1, abs=0.02)
    named = {each.what.partition(": ")[2]: each.times for each in listed if ": " in each.what}
    if rows > 10:
        assert named == {name: f"{times:,}" for name, _, times in parts}
        assert max(times for *_, times in parts) > 5, "of the descent"
    for name, *_ in parts:
        assert f"Release {name!r} took" in " ".join(model.explain_)
    assert told.result.startswith("Moved away from the public model")


def test_a_model_that_keeps_the_public_one_says_so():
    X = np.random.default_rng(0).normal(size=(80, 2))
    alone = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(X, X[:, 0])
    assert alone._story().result == "Kept the public model: no private row was used."
    assert "Kept the public model" in NoHarm(error=2.0, gain=0.01, noise=0.0).result
    assert "about 470 (less than 1%)." in str(NoHarm(error=470.0, gain=4.0, noise=0.0))
    assert "take 25% off" in NoHarm(error=2.0, gain=0.5, noise=0.0).result
    assert "would have left the error rate at 20.0%," in str(
        ClassNoHarm(error=0.2, after=0.2001, kept=0.5)
    )
    still = ClassNoHarm(error=0.2, after=0.2, kept=0.0).result
    assert "Kept the public model" in still
    assert "no gain that could be told from noise was seen" in still
    hardly = ClassNoHarm(error=0.075, after=0.075, kept=0.0104).result
    assert hardly.startswith("Kept the public model, or nearly so")
    assert "less than 5% of the move is kept" in hardly
    moved = ClassNoHarm(error=0.2, after=0.2, kept=0.5).result
    assert "50% of the move is kept" in moved
    assert "saves or costs" in moved
