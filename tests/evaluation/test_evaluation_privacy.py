"""What an evaluation releases: bounded, whatever a person's row and label are."""

from __future__ import annotations

import copy
import json
import math

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from dpadapt import Private, evaluate
from dpadapt.audit import replay
from dpadapt.evaluation.class_queries import ByClass
from dpadapt.evaluation.facts import compared_models
from dpadapt.evaluation.queries import AsAnswered, MeanLosses, Ranking, Reliability
from dpadapt.privacy.rows.row_wise import parts_of
from dpadapt.testing.independent_accountant import recompute_epsilon
from dpadapt.testing.search import HOSTILE_LABELS, HOSTILE_ROWS, Secrets, hostile_row
from dpadapt.testing.tape import releases, taped

WILD = (0.0, 0.5, 1.0, 2.0, -1.0, 1e-9, 1e9, 1e300, np.nan, np.inf, -np.inf)
ANSWERS = AsAnswered(1.0)
N = 7
KINDS = ("losses", "whole losses", "ranking", "reliability", "by class", "by class, predicted")


def pairs_of(X, y):
    return [np.column_stack([X[:, i], y]) for i in range(X.shape[1])]


def query(kind, models):
    if kind == "ranking":
        return Ranking(ANSWERS, lambda X: X[:, :models] * 3, models, 4)
    if kind == "reliability":
        return Reliability(ANSWERS, lambda X, y: pairs_of(X[:, :models], y), models, 3)
    if kind.startswith("by class"):
        return ByClass(ANSWERS, lambda X: X[:, :models], 3, models, kind.endswith("predicted"))
    whole = kind == "whole losses"

    def losses(X, y):
        return (X[:, :models] != y[:, None]) if whole else X[:, :models]

    return MeanLosses(ANSWERS, losses, models, whole)


def value_of(each, X, y):
    known = np.isfinite(y)  # as a session leaves out rows without a label
    X, y = np.where(known[:, None], X, 0.0), np.where(known, y, np.nan)
    if isinstance(each, Ranking):
        return each.ranked(each.counts(X, y, known), len(X))
    return each.counted_block(X, y, known) / len(X)


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_without_a_label_adds_nothing_and_its_neighbour_moves_no_further(kind, models):
    each, rng = query(kind, models), np.random.default_rng(0)
    for _ in range(300):
        X, y = rng.choice([0.0, 0.4, 1.0], size=(N, 2)), rng.integers(0, 2, N).astype(float)
        lost, labels = X.copy(), y.copy()
        lost[3], labels[3] = rng.choice(WILD, size=2), np.nan
        found = value_of(each, lost, labels)
        rest = value_of(each, np.delete(X, 3, axis=0), np.delete(y, 3))
        times = np.full(len(found), (N - 1) / N)
        times[: models * isinstance(each, Ranking)] **= 2  # of pairs
        np.testing.assert_allclose(found, times * rest, rtol=0, atol=1e-12)
        moved = np.linalg.norm(value_of(each, X, y) - found)
        assert moved <= claim_of(each, N) * (1 + 1e-9)


def claim_of(each, n):
    if isinstance(each, MeanLosses | Reliability | ByClass):
        return each.sensitivity(n)
    with Private(np.zeros((n, 2)), np.zeros(n)).open(epsilon=1.0, delta=1e-6) as session:
        return session.sensitivity(each)


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_one_row_moves_a_statistic_by_its_sensitivity_at_most(kind, models):
    each, rng = query(kind, models), np.random.default_rng(0)
    claim = claim_of(each, N)
    largest = 0.0
    for _ in range(1500):
        X = rng.choice(WILD[:3], size=(N, 2)) if rng.random() < 0.6 else rng.random((N, 2))
        y = rng.integers(0, 2, N).astype(float)
        if rng.random() < 0.3:
            y[:] = y[0]
        other, labels = X.copy(), y.copy()
        other[3] = rng.choice(WILD, size=2) if rng.random() < 0.7 else rng.random(2)
        labels[3] = rng.choice(WILD) if rng.random() < 0.3 else rng.integers(0, 3)
        with np.errstate(all="ignore"):
            moved = np.linalg.norm(value_of(each, X, y) - value_of(each, other, labels))
        largest = max(largest, float(moved))
    assert largest <= claim * (1 + 1e-9)
    assert largest > 0.7 * claim, "neighbours that move little prove little"


@pytest.mark.parametrize(
    ("kind", "models", "one", "two"),
    [
        ("whole losses", 1, ([0.0, 0.0], 0.0), ([1.0, 0.0], 0.0)),
        ("whole losses", 2, ([0.0, 0.0], 0.0), ([1.0, 1.0], 0.0)),
        ("reliability", 1, ([1.0, 1.0], 0.0), ([0.0, 0.0], 1.0)),
        ("reliability", 2, ([1.0, 1.0], 0.0), ([0.0, 0.0], 1.0)),
        ("by class", 1, ([0.0, 0.0], 0.0), ([1.0, 0.0], 0.0)),
        ("by class", 1, ([0.0, 0.0], 0.0), ([0.0, 0.0], 1.0)),  # of another class
        ("by class", 2, ([0.0, 0.0], 0.0), ([1.0, 1.0], 0.0)),
        ("by class", 2, ([0.0, 0.0], 0.0), ([0.0, 0.0], 1.0)),
        ("by class, predicted", 2, ([0.0, 0.0], 0.0), ([1.0, 2.0], 0.0)),
    ],
)
def test_the_sensitivity_is_attained(kind, models, one, two):
    each = query(kind, models)
    values = [value_of(each, np.array([row]), np.array([label])) for row, label in (one, two)]
    assert np.linalg.norm(values[0] - values[1]) == pytest.approx(each.sensitivity(1))


@pytest.mark.parametrize("models", [1, 2])
def test_the_sensitivity_of_a_ranking_is_nearly_attained(models):
    each, n = query("ranking", models), 1000
    X, y = np.full((n, 2), 1 / 3), np.zeros(n)
    y[0] = 1.0
    moved = []
    for score in (0.0, 1.0):  # the only one of its class goes from the bottom to the top
        X[0] = score
        moved.append(value_of(each, X, y))
    assert np.linalg.norm(moved[0] - moved[1]) == pytest.approx(claim_of(each, n), rel=2e-3)


def test_a_row_has_one_class_for_all_models():
    each, n = query("ranking", 2), 1000
    X, y = np.full((n, 2), 1 / 3), np.zeros(n)
    moved = []
    for row in ([1.0, 0.0], [np.nan, 1.0]):  # the first model loses it: it is of no class for both
        X[0], y[0] = row, 1.0
        moved.append(value_of(each, X, y))
    assert np.linalg.norm(moved[0] - moved[1]) <= claim_of(each, n)


def test_the_diameter_of_two_losses_on_a_fine_grid():
    each = MeanLosses(ANSWERS, lambda X, y: X, 2, True)
    grid = np.linspace(0.0, 1.0, 41)
    pairs = np.array([(a, b) for a in grid for b in grid])
    points = np.array([each.block(pair[None], np.zeros(1)) for pair in pairs])
    far = np.linalg.norm(points[:, None] - points[None], axis=2).max()
    assert far == pytest.approx(each.sensitivity(1))
    assert far == pytest.approx(math.sqrt(2))
    longest = np.linalg.norm(points, axis=1).max()  # a row without a label adds 0
    assert longest <= each.sensitivity(1) * (1 + 1e-12)
    assert longest >= (1 - 1e-9) * each.sensitivity(1)


def test_two_models_count_as_far_apart_as_they_are():
    each = MeanLosses(ANSWERS, lambda X, y: X, 2, False)
    (total, far, square, *_), h = each.block(np.array([[0.3, 0.9]]), np.zeros(1)), math.sqrt(2)
    assert far * h == pytest.approx(-0.6)
    assert total * h == pytest.approx(0.3 + 0.9 - 0.5)
    assert square == pytest.approx(0.36)


def table(n, seed, classes):
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=n)
    return X, (y > 0).astype(int) if classes else y


def models_of(classes):
    X, y = table(80, 1, classes)
    kind = LogisticRegression if classes else LinearRegression
    return kind().fit(X, y), kind().fit(X * [1, 0, 0], y)


def evaluated(sample, classes, model, baseline, **options):
    extra = {} if classes else {"label_range": (-5.0, 5.0)}
    given = {"noise": "seeded", "random_state": 0} | options
    return evaluate(
        model, Private(*sample), epsilon=1.0, delta=1e-6, baseline=baseline, **extra, **given
    )


@pytest.mark.parametrize("classes", [False, True])
def test_hostile_neighbours_move_no_release_beyond_its_sensitivity(classes):
    model, baseline = models_of(classes)
    T, t = table(12, 2, classes)
    people = [(hostile_row(name, 3), t[4]) for name in HOSTILE_ROWS]
    people += [(hostile_row("huge norm", 3), label) for label in HOSTILE_LABELS]
    people += [(-T[4] * 9, 1 - t[4])]
    largest = 0.0
    for row, label in people:
        other, labels = T.copy(), t.astype(float)
        other[4], labels[4] = row, label
        found = replay(
            lambda sample: evaluated(sample, classes, model, baseline), (T, t), (other, labels)
        )
        assert found.holds, (row, label, found)
        largest = max(largest, found.largest)
    assert largest > 0.5, "neighbours that move nothing prove nothing"


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("classes", [False, True])
def test_the_guarantee_is_what_an_independent_accountant_finds(classes, epsilon):
    model, baseline = models_of(classes)
    extra = {} if classes else {"label_range": (-5.0, 5.0)}
    private = Private(*table(50, 3, classes))
    found = evaluate(model, private, epsilon=epsilon, delta=1e-6, baseline=baseline, **extra)
    low, high = recompute_epsilon(found.guarantee.events, 1e-6)
    assert low * (1 - 1e-9) <= found.guarantee.epsilon <= high * 1.01
    assert found.guarantee.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert private.spent(1e-6).events == found.guarantee.events


def test_noise_is_that_of_the_events():
    model, baseline = models_of(True)
    with taped() as tape:
        found = evaluated(table(50, 3, True), True, model, baseline)
    drawn, events = releases(tape), found.guarantee.events
    assert len(drawn) == len(events) == 1
    assert {d.scale for d in drawn} == {e.scale for e in events}


def test_nothing_private_is_in_what_comes_out():
    for classes in (False, True):
        model, baseline = models_of(classes)
        T, t = table(40, 5, classes)
        T = T * 1.2345678
        with taped() as tape:
            found = evaluated((T, t), classes, model, baseline, noise="secure", random_state=None)
        secrets = Secrets(T, None if classes else t, [draw.value for draw in releases(tape)])
        for thing in (found, copy.deepcopy(found), model, baseline):
            secrets.check(thing)
        for text in (found.to_json(), repr(found), str(found), found._repr_html_()):
            secrets.check_text(text, "what is shown")


class Remembering(LinearRegression):
    """A model that keeps what it was asked."""

    def predict(self, X):
        self.asked_ = np.asarray(X)
        return super().predict(X)


def test_a_model_that_remembers_keeps_nothing_private():
    X, y = table(60, 1, False)
    model = Remembering().fit(X, y)
    evaluated(table(20, 2, False), False, model, None)
    assert not hasattr(model, "asked_")
    assert all(part is not model for part in parts_of(compared_models(model, None).answer))


def test_what_is_charged_depends_on_public_facts_only():
    model, baseline = models_of(True)
    T, t = table(30, 2, True)
    wild = np.where(np.arange(30)[:, None] % 2, 1e300, np.nan) * np.ones(3)
    one, two = (evaluated((rows, t), True, model, baseline) for rows in (T, wild))
    assert one.guarantee == two.guarantee
    assert set(json.loads(one.to_json())) == set(json.loads(two.to_json()))


def test_a_budget_that_is_spent_refuses_before_noise():
    class Empty:
        def charge(self, events, label):
            assert label == "evaluation"
            raise RuntimeError("no budget")

    model, baseline = models_of(True)
    with taped() as tape, pytest.raises(RuntimeError, match="no budget"):
        evaluated(table(30, 2, True), True, model, baseline, ledger=Empty())
    assert releases(tape) == []
