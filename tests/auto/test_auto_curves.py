"""Curves of the private step: leaves and waves, and when which of them is used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpadapt import AutoClassifier, AutoRegressor, Private
from dpadapt.audit import replay
from dpadapt.auto import curves
from dpadapt.auto.curves import Curves, Leaves, beats_line, curve_waves, first_trees
from dpadapt.auto.experts import Waves, fit_class_trees, fit_expert, fit_trees
from dpadapt.modelfolder import load_model, save_model
from dpadapt.testing.search import HOSTILE_ROWS, hostile_row

BUDGET = {"epsilon": 4.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
QUICK = ["linear", "trees", "fourier"]
one_of_both = pytest.mark.parametrize(
    "kind", [AutoRegressor, pytest.param(AutoClassifier, marks=pytest.mark.slow)]
)


def stairs(n, seed, height=2.0):
    """Steps at the same places, and of another height: trees know where, not how high."""
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 12))
    up = (np.abs(X[:, 0]) < 0.5).astype(float) * np.sign(X[:, 1])
    return X, height * up + 0.3 * X[:, 2] + 0.2 * rng.normal(size=n)


def signs(n, seed):
    X, _ = stairs(n, seed)
    return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "other")


def line(n, seed):
    X, _ = stairs(n, seed)
    return X, X @ np.linspace(-1, 1, 12) + np.random.default_rng(seed).normal(size=n)


def wave(n, seed):
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X @ [1.0, 1.0]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("classes", [0, 2, 4])
def test_leaves_and_their_values_are_the_first_rounds(classes):
    X, y = stairs(400, 0)
    codes = np.digitize(y, np.linspace(-1, 1, max(classes - 1, 1)))
    trees = fit_class_trees(X, codes, classes) if classes else fit_trees(X, y)
    leaves = Leaves.of(trees)
    rounds = len(leaves.trees.roots)
    assert rounds < len(trees.roots)
    found = leaves(X)
    np.testing.assert_array_equal(found.sum(axis=1), leaves.trees.roots.size)
    np.testing.assert_array_equal(
        trees.leaves(X)[:, : leaves.trees.roots.size], leaves.trees.leaves(X)
    )
    if classes != 4:
        value = leaves.trees.value[leaves.places]
        np.testing.assert_allclose(found @ value + trees.base, leaves.trees(X)[:, 0])


def test_all_rounds_are_taken_where_there_are_few_leaves():
    X = np.repeat([0.0, 1.0], 30)[:, None]
    trees = fit_trees(X, X[:, 0])
    assert len(Leaves.of(trees).trees.roots) == len(trees.roots)
    assert trees.first(10**6) is trees


@pytest.mark.parametrize("cells", ["leaves", "waves"])
def test_curves_are_not_linear_and_never_far(cells):
    X, y = stairs(500, 0)
    kind = Leaves.of(fit_trees(X, y)) if cells == "leaves" else curve_waves(X)
    made = Curves.of(kind, X, most=8, size=2.0)
    found = made(X)
    assert found.shape == (500, len(made)) == (500, 8)
    bend = found[:, (np.abs(found) < made.reach).all(axis=0)]  # those that nothing was cut of
    assert bend.shape[1] > 0
    assert np.abs(X.T @ bend).max() / 500 < 1e-8
    assert found[:, 0].std() == pytest.approx(2.0, rel=0.2)
    far = made(np.array([[1e300] * 12, [-1e300] * 12, [0.0] * 12]))
    assert np.isfinite(far[2]).all()
    assert (np.abs(far) <= made.reach)[np.isfinite(far)].all()
    np.testing.assert_allclose(made.times(3.0)(X), 3 * found)


def test_a_row_has_the_same_curves_whoever_comes_with_it():
    X, y = stairs(200, 0)
    made = Curves.of(Leaves.of(fit_trees(X, y)), X, most=4, size=1.0)
    np.testing.assert_allclose(made(X[7:8])[0], made(X)[7], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("table", "experts", "kind"),
    [
        (stairs, QUICK, Leaves),
        (wave, QUICK, Waves),
        (line, QUICK, type(None)),
        (stairs, ["linear"], Waves),
        (stairs, ["trees"], Waves),
        (stairs, ["linear", "fourier"], type(None)),
    ],
)
def test_public_rows_say_what_bends(table, experts, kind):
    facts = AutoRegressor(**BUDGET, experts=experts).public_facts(*table(600, 0))
    assert isinstance(facts.cells, kind)
    assert facts.features(1.0).curves is None, "a small budget pays for none"
    made = facts.features(1e9).curves
    assert (0 if made is None else len(made)) == (0 if kind is type(None) else 40)


@pytest.mark.parametrize(("table", "bent"), [(signs, True), (line, False)])
def test_public_rows_say_whether_classes_bend(table, bent):
    X, y = table(800, 0)
    y = y if bent else y > 0
    facts = AutoClassifier(**BUDGET).public_facts(X, y)
    assert (facts.leaves is not None) == bent
    start, plain = facts.start(1e9), facts.start(1.0)
    assert plain.curves is None
    assert (start.curves is not None) == bent
    logits = facts.model.scores(X)
    np.testing.assert_allclose(start(X, logits), plain(X, logits), atol=1e-12)
    assert start.features(X, facts.logits).var(axis=0).sum() == pytest.approx(1.0)


def test_experts_without_lines_or_trees_have_no_leaves():
    X, y = signs(400, 0)
    for experts in (["linear"], ["trees"]):
        assert AutoClassifier(**BUDGET, experts=experts).public_facts(X, y).leaves is None
    assert first_trees([fit_expert("linear", X, np.arange(400.0))]) is None
    inner = fit_expert("linear+trees", X, np.arange(400.0))
    assert first_trees([inner]) is inner.parts[1]
    assert not beats_line(float("inf"), 1.0)


@pytest.mark.slow
def test_steps_of_another_height_are_learned():
    """No line in columns and scores can turn one step and leave the other."""
    (X, y), (T, t), (U, u) = stairs(1500, 0), stairs(6000, 1), stairs(3000, 2)
    turned = [
        (rows, labels + 2.0 * (rows[:, 1] > 0) * (np.abs(rows[:, 0]) < 0.5))
        for rows, labels in ((T, t), (U, u))
    ]
    errors = {}
    for experts in (QUICK, ["linear", "trees", "fourier"][:2]):
        model = AutoRegressor(**BUDGET, experts=experts).fit(X, y, private=Private(*turned[0]))
        errors[len(experts)] = float(np.mean((model.predict(turned[1][0]) - turned[1][1]) ** 2))
        assert ("leaves of trees" in " ".join(model.explain_)) == (len(experts) == 3)
        assert model.no_harm_.gain <= model.no_harm_.error
    assert errors[3] < 0.8 * errors[2]


@one_of_both
def test_hostile_neighbours_move_no_release_on_leaves_beyond_its_sensitivity(kind):
    classes = kind is AutoClassifier
    (X, y), (T, t) = (
        (signs if classes else stairs)(400, 0),
        (signs if classes else stairs)(700 if classes else 250, 1),
    )

    def fit(sample):
        return kind(**BUDGET, experts=["linear", "trees"] if classes else QUICK).fit(
            X, y, private=Private(*sample)
        )

    told = " ".join(fit((T, t)).explain_)
    assert "leaves of trees" in told
    for name in list(HOSTILE_ROWS)[::4]:
        other = T.copy()
        other[4] = hostile_row(name, 12)
        assert replay(fit, (T, t), (other, t)).holds, name


@pytest.mark.parametrize("kind", [AutoRegressor, AutoClassifier])
def test_a_model_folder_holds_leaves(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    table = signs if kind is AutoClassifier else stairs
    experts = ["linear", "trees"] if kind is AutoClassifier else QUICK
    (X, y), (T, t) = table(400, 0), table(700, 1)
    model = kind(**BUDGET, experts=experts).fit(X, y, private=Private(T, t))
    assert "leaves of trees" in " ".join(model.explain_)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(T), model.predict(T))


@one_of_both
def test_with_too_few_public_rows_for_their_columns_there_are_no_curves(kind):
    """A line would go through all cells, and what is left of them is rounding."""
    rng = np.random.default_rng(1)
    X, T = rng.normal(size=(150, 160)), rng.normal(size=(900, 160))
    y, t = np.abs(X[:, 0]), np.abs(T[:, 0]) + T[:, 1]
    y, t = (y > 0.7, t > 0.7) if kind is AutoClassifier else (y, t)
    model = kind(**BUDGET, experts=["linear", "trees"]).fit(X, y, private=Private(T, t))
    assert "leaves" not in " ".join(model.explain_)
    assert "waves" not in " ".join(model.explain_)
    answer = model.predict if kind is AutoRegressor else model.decision_function
    alone = np.concatenate([answer(X[i : i + 1]) for i in range(9)])
    np.testing.assert_allclose(answer(X[:9]), alone, rtol=1e-6, atol=1e-9)


def test_cells_that_are_all_alike_have_no_curves():
    X = np.random.default_rng(0).normal(size=(50, 2))
    trees = fit_trees(np.zeros((50, 2)), np.zeros(50))
    assert Curves.of(Leaves.of(trees), X, most=4, size=1.0) is None


@one_of_both
def test_a_constant_column_changes_nothing_however_large_it_is(kind):
    (X, y), (T, t) = stairs(600, 0), stairs(1500, 1, height=3.0)
    y, t = (y > 0.5, t > 1.0) if kind is AutoClassifier else (y, t)
    experts = ["linear", "trees"] if kind is AutoClassifier else QUICK
    errors = []
    for value in (None, 1.7e18):
        one, two = X, T
        if value is not None:
            one, two = (np.column_stack([rows, np.full(len(rows), value)]) for rows in (X, T))
        model = kind(**BUDGET, experts=experts).fit(one, y, private=Private(two, t))
        errors.append(float(np.mean((model.predict(two).astype(float) - t) ** 2)))
    assert errors[1] == pytest.approx(errors[0], rel=0.1)


@pytest.mark.parametrize("unit", [1e-95, 1e95])
def test_labels_may_have_any_unit(unit):
    (X, y), (T, t) = stairs(400, 0), stairs(1500, 1)
    plain, other = (
        AutoRegressor(**BUDGET, experts=["linear"]).fit(
            X, times * y, private=Private(T, times * (t + 1))
        )
        for times in (1.0, unit)
    )
    np.testing.assert_allclose(other.predict(T) / unit, plain.predict(T), rtol=1e-5, atol=3e-5)


DAMAGE = {
    "cells": None,
    "center": np.zeros(3),
    "scale": np.zeros(12),
    "line": np.zeros((3, 3)),
    "axes": np.full((310, 4), np.nan),
    "reach": -np.ones(4),
}


@pytest.mark.parametrize("name", sorted(DAMAGE))
def test_damaged_curves_are_refused(name):
    X, y = stairs(400, 0)
    made = Curves.of(Leaves.of(fit_trees(X, y)), X, most=4, size=1.0)
    with pytest.raises(ValueError, match="do not fit together"):
        replace(made, **{name: DAMAGE[name]})


def test_leaves_of_no_trees_are_refused():
    with pytest.raises(ValueError, match="trees"):
        Leaves("abc")


def test_many_rows_are_taken_in_parts(monkeypatch):
    X, y = stairs(400, 0)
    made = Curves.of(Leaves.of(fit_trees(X, y)), X, most=4, size=1.0)
    whole = made(X)
    monkeypatch.setattr(curves, "_CELLS_AT_ONCE", 5000)
    np.testing.assert_allclose(made(X), whole, rtol=1e-12, atol=1e-13)
    assert made(X[:0]).shape == (0, 4)
