"""Both estimators: tables as they are, what is told, no harm without a shift, hostile shifts."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from dpadapt import AutoClassifier, AutoRegressor, Private
from dpadapt.modelfolder import load_model, save_model

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
FAST = ["linear", "fourier"]
SLOW_CLASSES = [AutoRegressor, pytest.param(AutoClassifier, marks=pytest.mark.slow)]


def numbers(n, seed, level=0.0, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + shift
    return X, X @ [1.0, -1.0, 0.5, 0.0] + level + np.sin(2 * X[:, 3]) + 0.5 * rng.normal(size=n)


def people(n, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n)),
            "town": rng.choice(["A", "B", None], n),
            "job": pd.Categorical(rng.choice(["x", "y"], n)),
            "member": rng.random(n) < 0.5,
        }
    )
    wage = table["age"].fillna(40) / 10 + (table["town"] == "A") + rng.normal(size=n)
    return table, wage.to_numpy()


def error(model, X, y):
    return float(np.mean((model.predict(X) - y) ** 2))


def both(X, y, T, t, kind=AutoRegressor, **options):
    return kind(**{**BUDGET, "experts": FAST, **options}).fit(X, y, private=Private(T, t))


def test_tables_are_taken_as_they_are():
    (X, y), (T, t) = people(300, 0), people(2000, 1)
    T.loc[3, "town"] = "never seen"
    model = both(X, y, T, t + 2)
    assert model.predict(T).shape == (2000,)
    assert error(model, T, t + 2) < 0.6 * error(model.public_model_, T, t + 2)
    assert list(model.feature_names_in_) == ["age", "town", "job", "member"]
    shuffled = T[["job", "member", "town", "age"]].assign(other=1)
    again = both(X, y, shuffled, t + 2)
    np.testing.assert_allclose(again.predict(T), model.predict(T))


def test_classes_have_any_names_and_number():
    (X, y), (T, t) = people(400, 0), people(2000, 1)
    names = np.array(["high", "low", "middle"])
    cut = np.quantile(y, [0.3, 0.7])
    given = [names[np.digitize(each, cut)] for each in (y, t + 1)]
    model = both(X, given[0], T, given[1], AutoClassifier, experts=["linear"])
    assert list(model.classes_) == list(names)
    assert model.predict_proba(T).shape == (2000, 3)
    assert model.score(T, given[1]) > np.mean(model.public_model_.predict(T) == given[1])


@pytest.mark.parametrize("kind", [AutoRegressor, AutoClassifier])
def test_without_rows_or_labels_it_is_the_public_model_and_says_so(kind):
    X, y = numbers(200, 0)
    y = y if kind is AutoRegressor else (y > 0).astype(int)
    model = kind(**BUDGET, experts=["linear"])
    for private, told in (
        (None, "no private rows"),
        (Private(np.zeros((0, 4)), np.zeros(0)), "has no rows"),
        (Private(X), "no labels"),
    ):
        model.fit(X, y, private=private)
        assert model.guarantee_.epsilon == 0
        assert told in model.explain_[-1]
        assert "cost nothing" in model.explain_[-1]
        np.testing.assert_array_equal(model.predict(X), model.public_model_.predict(X))


def test_what_was_done_is_told():
    model = both(*numbers(200, 0), *numbers(500, 1, level=3.0))
    text = " ".join(model.explain_)
    for name in (
        "errors",
        "mean",
        "stack",
        "scale",
        "centre",
        "length",
        "descent",
        "move",
        "level",
    ):
        assert f"Release '{name}' took" in text
    assert "stack of experts on 200 rows: linear 0." in text
    story = model._story()
    assert story.summary == text
    pairs = zip(FAST, model.public_model_.weights, strict=True)
    assert story.facts[0].value == ", ".join(f"{name} {weight:.2f}" for name, weight in pairs)


def test_a_small_budget_goes_to_the_level_and_the_stack():
    model = both(*numbers(200, 0), *numbers(100, 1, level=3.0))
    assert [each.name for each in model.releases_] == ["errors", "mean", "stack"]
    assert sum(each.share for each in model.releases_) == pytest.approx(1.0)
    assert not model.adapted_.on_features.any()


@pytest.mark.parametrize(("gone", "least", "most"), [(0.0, 0.0, 0.2), (1.0, 0.5, 1.0)])
def test_the_stack_turns_to_equal_weights_where_they_are_right(gone, least, most):
    X, y = numbers(300, 0)
    T, _ = numbers(3000, 1)
    facts = AutoRegressor(**BUDGET, experts=FAST).public_facts(X, y)
    scores = facts.model.scores(facts.model.rows(T))[:, :, 0]
    turn = 1 / len(FAST) - facts.model.weights
    t = scores @ (facts.model.weights + gone * turn)
    t = t + 0.3 * facts.rms * np.random.default_rng(2).normal(size=len(t))
    model = both(X, y, T, t, epsilon=4.0)
    part = model.adapted_.on_scores[:-1] / turn[1:]
    assert (least <= part).all()
    assert (part <= most).all()


def test_one_expert_has_no_stack_to_look_at():
    model = both(*numbers(200, 0), *numbers(500, 1), experts=["linear"])
    assert "stack" not in [each.name for each in model.releases_]
    assert sum(each.share for each in model.releases_) == pytest.approx(1.0)


def test_groups_change_the_folds():
    X, y = numbers(200, 0)
    groups = (X[:, 0] > 0).astype(int)
    plain, given = (
        AutoRegressor(**BUDGET, experts=FAST).public_facts(X, y, groups=each)
        for each in (None, groups)
    )
    assert np.abs(plain.scores - given.scores).max() > 1e-3
    np.testing.assert_array_equal(plain.shuffled_scores, given.shuffled_scores)


@pytest.mark.parametrize("kind", SLOW_CLASSES)
def test_a_model_folder_holds_trees_and_all(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    (X, y), (T, t) = people(310, 0), people(500, 1)
    if kind is AutoClassifier:
        y, t = np.where(y > 4, "yes", "no"), np.where(t > 4, "yes", "no")
    model = both(X, y, T, t, kind, experts=None)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(T), model.predict(T))
    np.testing.assert_array_equal(again.public_model_.predict(T), model.public_model_.predict(T))
    assert again.explain_ == model.explain_


def test_as_epsilon_grows_it_reaches_what_is_learned_without_noise():
    (X, y), (T, t) = numbers(300, 0), numbers(3000, 1, level=2.0)
    T, t = T, t + 1.5 * T[:, 0]
    limit = Ridge().fit(T, t).predict(T)
    errors = []
    for epsilon in (0.3, 3.0, 300.0):
        model = both(X, y, T, t, epsilon=epsilon, experts=["linear"])
        errors.append(float(np.mean((model.predict(T) - t) ** 2)))
    assert errors[2] <= errors[1] <= errors[0]
    assert errors[2] <= 1.02 * float(np.mean((limit - t) ** 2))


@pytest.mark.slow
def test_as_epsilon_grows_classes_reach_what_is_learned_without_noise():
    (X, y), (T, t) = numbers(300, 0), numbers(3000, 1)
    y, t = y > 0, t + 2 * T[:, 0] > 1
    best = np.mean((Ridge().fit(T, t).predict(T) > 0.5) == t)
    one, two = (
        both(X, y, T, t, AutoClassifier, epsilon=1000.0, experts=["linear"], random_state=seed)
        for seed in (1, 2)
    )
    assert np.mean(one.predict(T) != two.predict(T)) < 0.005, "nothing is left to chance"
    assert one.score(T, t) > best - 0.02
    assert one.score(T, t) > np.mean(one.public_model_.predict(T) == t) + 0.05


def excess(kind, epsilon, n, change):
    """Mean error over that of the start, in units of it; twelve tables."""
    found = []
    for seed in range(12):
        (X, y), (T, t), (U, u) = (numbers(k, [seed, k]) for k in (300, n, 2000))
        (T, t), (U, u) = change(T, t), change(U, u)
        if kind is AutoClassifier:
            y, t, u = y > 0, t > 0, u > 0
        model = both(X, y, T, t, kind, epsilon=epsilon, random_state=seed, experts=["linear"])
        one, two = model.predict(U), model.public_model_.predict(U)
        errors = [float(np.mean((each.astype(float) - u) ** 2)) for each in (one, two)]
        found.append(errors[0] / errors[1] - 1)
    return float(np.mean(found))


@pytest.mark.parametrize("kind", SLOW_CLASSES)
@pytest.mark.parametrize("epsilon", [0.25, pytest.param(1.0, marks=pytest.mark.slow)])
def test_without_a_shift_it_does_little_harm(kind, epsilon):
    most = 0.01 if kind is AutoClassifier else 0.03
    assert excess(kind, epsilon, 500, lambda X, y: (X, y)) < most


def noisy_labels(y, share):
    """Some labels turned round: the expected error is at least their share."""
    turned = np.random.default_rng(0).random(len(y)) < share
    return np.where(turned, ~y, y)


@pytest.mark.parametrize(("change", "moved"), [(0.0, False), (0.5, True)])
def test_where_there_is_little_to_gain_only_what_mends_rows_is_moved(change, moved):
    """Private labels are far less noisy than public ones: more certainty, and no other class."""
    rng = np.random.default_rng(0)
    X, T = (
        np.column_stack([rng.choice([-1.0, 0.05, 1.0], 2000, p=[0.4, 0.1, 0.5]), wild])
        for wild in 0.1 * rng.normal(size=(2, 2000))
    )
    y, t = noisy_labels(X[:, 0] > 0, 0.35), noisy_labels(T[:, 0] > change, 0.05)
    model = both(X, y, T, t, AutoClassifier, epsilon=4.0, experts=["linear"])
    assert np.any(model.predict(T) != model.public_model_.predict(T)) == moved
    assert model.score(T, t) > np.mean(model.public_model_.predict(T) == t) + 0.05 * moved - 1e-9


def test_with_too_few_rows_to_tell_there_is_no_look_back_and_little_harm():
    (X, y), (T, t), (U, u) = numbers(300, 0), numbers(100, 1), numbers(5000, 2)
    scores = []
    for seed in range(8):
        facts = {"epsilon": 1.0, "experts": ["linear"], "random_state": seed}
        model = both(X, y > 0, T, t > 0, AutoClassifier, **facts)
        assert "look back" not in " ".join(model.explain_)
        scores.append(model.score(U, u > 0))
    assert np.mean(scores) > np.mean(model.public_model_.predict(U) == (u > 0)) - 0.015


def test_a_model_that_is_wrong_far_more_than_expected_is_left():
    (X, y), (T, t) = numbers(300, 0), numbers(500, 1)
    model = both(X, y > 0, T, t <= 0, AutoClassifier, experts=["linear"])
    assert re.search("chance is 100% that .* is more than noise", model.explain_[-2])
    assert model.score(T, t <= 0) > 0.6 > np.mean(model.public_model_.predict(T) == (t <= 0))


HOSTILE = {
    "disjoint supports": lambda X, y: (X + 10, y),
    "flipped labels": lambda X, y: (X, -y),
    "a heavy tail": lambda X, y: (X, y + np.where(X[:, 0] > 2.3, 1e4, 0.0)),
    "ten times the scale": lambda X, y: (10 * X, y),
    "other labels": lambda X, y: (X, y[::-1].copy()),
}


QUICK = ("disjoint supports", "flipped labels")
REST = [pytest.param(name, marks=pytest.mark.slow) for name in HOSTILE if name not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *REST])
def test_hostile_shifts_do_no_harm(name):
    assert excess(AutoRegressor, 1.0, 500, HOSTILE[name]) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_shifts_of_classes_do_no_harm(name):
    most = 0.02 if name == "disjoint supports" else 0.01
    assert excess(AutoClassifier, 1.0, 500, HOSTILE[name]) < most


def test_a_column_that_is_constant_in_public_rows_is_left_out_and_told():
    (X, y), (T, t) = numbers(300, 0), numbers(1000, 1, level=1.0)
    X, wild = np.column_stack([X, np.full(300, 5.0)]), np.random.default_rng(0).normal(size=1000)
    plain = both(X, y, np.column_stack([T, np.full(1000, 5.0)]), t)
    other = both(X, y, np.column_stack([T, 1e6 * wild]), t)
    np.testing.assert_allclose(
        plain.predict(np.column_stack([T, wild])), other.predict(np.column_stack([T, -wild]))
    )
    shape = f"1 of {X.shape[1]} features is constant in public rows"
    assert shape in " ".join(plain.explain_)
    wider = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"])
    wider.fit(np.column_stack([X, np.ones(300)]), y)
    told = "are constant in public rows, which say nothing about them, and are left out."
    assert f"2 of {X.shape[1] + 1} features {told}" in wider.explain_


def test_only_columns_of_the_table_are_told_to_be_constant_and_by_name():
    X, y = numbers(300, 0)
    table = pd.DataFrame(X, columns=[f"x{place}" for place in range(X.shape[1])])
    model = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"])
    made = model.fit(table.assign(seen=[1.0, None] * 150), y)  # a gap tells; the number does not
    assert (made.public_model_.low == made.public_model_.high).sum() == 1
    assert "constant" not in " ".join(made.explain_)
    told = "The column land is constant in public rows, which say nothing about it"
    assert told in " ".join(model.fit(table.assign(land="Z"), y).explain_)


@pytest.mark.parametrize("kind", [AutoRegressor, AutoClassifier])
def test_exact_noise_is_refused_by_name(kind):
    with pytest.raises(ValueError, match="noise must be one of 'secure', 'seeded'; got 'exact'"):
        kind(epsilon=1.0, delta=1e-6, noise="exact").fit(np.ones((5, 1)), [0, 1, 0, 1, 0])
