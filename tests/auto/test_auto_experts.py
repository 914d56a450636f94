"""Public experts: trees as arrays, folds, users' own models, the stack."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV

from dpadapt import AutoRegressor
from dpadapt.auto.experts import (
    Own,
    Trees,
    Waves,
    expert_kinds,
    fit_expert,
    fit_trees,
    quick_ridge,
)
from dpadapt.auto.stacking import (
    block_folds,
    class_folds,
    class_weights,
    cluster_folds,
    convex_weights,
    cross_fit,
    group_folds,
    trial_rows,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = X[:, 0] + np.abs(X[:, 1]) + 0.1 * RNG.normal(size=300)
FAR = 100 * RNG.normal(size=(500, 4))


def test_trees_answer_as_scikit_learn_does():
    model = HistGradientBoostingRegressor(max_iter=30, early_stopping=False).fit(X, Y)
    np.testing.assert_allclose(Trees.of(model)(FAR)[:, 0], model.predict(FAR), rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_trees_of_classes_answer_as_scikit_learn_does(classes):
    codes = np.digitize(Y, np.quantile(Y, [0.5] if classes == 2 else [0.3, 0.7]))
    model = HistGradientBoostingClassifier(max_iter=10, early_stopping=False).fit(X, codes)
    expected = model.decision_function(FAR).reshape(len(FAR), -1)
    np.testing.assert_allclose(Trees.of(model)(FAR), expected, rtol=1e-12, atol=1e-12)


def test_a_row_has_the_same_score_whoever_comes_with_it():
    trees = fit_trees(X, Y)
    np.testing.assert_array_equal(trees(FAR)[::-7], trees(FAR[::-7].copy()))


@pytest.mark.parametrize("name", ["left", "right", "feature", "roots"])
def test_damaged_trees_are_refused(name):
    trees = fit_trees(X, Y)
    damaged = {**vars(trees), name: vars(trees)[name] - 10**6}
    with pytest.raises(ValueError, match="do not fit together"):
        Trees(**damaged)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("left", lambda old: np.tile(old, (2, 1))),  # a table of places would grow at every level
        ("left", lambda old: old.astype(float)),
        ("feature", lambda old: old.astype(float)),
        ("threshold", lambda old: old.astype(str)),
        ("threshold", lambda old: np.where(old < 0, np.nan, old)),
        ("value", lambda old: old[:-1]),
        ("roots", lambda old: old.astype(float)),
        ("depth", lambda old: 65),
    ],
)
def test_trees_of_a_wrong_kind_are_refused(name, change):
    trees = fit_trees(X, Y)
    damaged = {**vars(trees), name: change(vars(trees)[name])}
    with pytest.raises(ValueError, match="do not fit together"):
        Trees(**damaged)


def test_a_constant_column_moves_no_wave():
    rows = np.column_stack([X, np.full(300, 7.0)])
    waves = Waves.of(rows, ratio=1.0, seed=0)
    other = rows.copy()
    other[:, -1] = 1e9
    np.testing.assert_array_equal(waves(rows), waves(other))


@pytest.mark.parametrize("kind", ["linear", "trees", "fourier", "linear+trees"])
def test_experts_of_numbers_learn(kind):
    expert = fit_expert(kind, X[:200], Y[:200])
    assert np.mean((expert(X[200:])[:, 0] - Y[200:]) ** 2) < 0.7 * Y.var()


def test_scores_are_of_rows_that_were_not_seen():
    noise = RNG.normal(size=300)
    seen = fit_expert("trees", X, noise)(X)[:, 0]
    unseen = cross_fit(["trees"], X, noise, 0, block_folds(300))[:, 0, 0]
    assert np.mean((seen - noise) ** 2) < 0.5 < np.mean((unseen - noise) ** 2)


def test_a_fold_that_lacks_a_class_still_scores_it():
    codes = np.repeat([0, 1, 2], 100)
    scores = cross_fit(["linear", "trees"], X, codes, 3, np.repeat([0, 1, 2], 100))
    assert scores.shape == (300, 2, 3)
    assert np.isfinite(scores).all()


def test_folds():
    assert len(np.unique(block_folds(300))) == 5
    assert (np.diff(block_folds(300)) >= 0).all()
    codes = np.repeat([0, 1], 150)  # sorted by class: every fold must have both
    assert all(len(np.unique(codes[class_folds(codes) == fold])) == 2 for fold in range(4))
    apart = np.column_stack([codes * 100.0, X[:, 0]])
    assert cluster_folds(apart, (codes == 1) & (apart[:, 1] > 9)) is not None
    one_place = np.where((codes == 1)[:, None], 1000.0 + X[:, :2] * 1e-3, X[:, :2])
    assert cluster_folds(one_place, codes) is None, "all of a class in one cluster"


def test_groups_are_kept_together():
    groups = RNG.integers(40, size=300)
    folds = group_folds(groups, 300)
    assert len(np.unique(folds)) == 5
    assert all(len(np.unique(folds[groups == each])) == 1 for each in np.unique(groups))
    with pytest.raises(ValueError, match="groups must have one entry"):
        group_folds([1, 2], 300)
    with pytest.raises(ValueError, match="at least two"):
        group_folds(np.ones(300), 300)


def test_weights():
    scores = np.column_stack([Y + RNG.normal(size=300), Y, RNG.normal(size=300)])
    found = convex_weights(scores, Y)
    assert found.sum() == pytest.approx(1)
    assert found[1] > 0.95
    codes = (RNG.normal(size=300) < 2 * Y).astype(int)
    good = np.stack([np.column_stack([-Y, Y]), RNG.normal(size=(300, 2))], axis=1)
    found = class_weights(good, codes)
    assert found[1] < 0.3 < 1 < found[0]


def test_users_models_are_experts():
    (fitted,) = expert_kinds([LinearRegression().fit(X, Y)])
    assert isinstance(fitted, Own)
    np.testing.assert_allclose(
        cross_fit([fitted], X, Y, 0, block_folds(300))[:, 0, 0], fitted.model.predict(X)
    )
    names = np.array(["no", "yes"])
    labels = names[(Y > 0).astype(int)]
    (known,) = expert_kinds([LogisticRegression().fit(X, labels)], names)
    assert (known(X).argmax(axis=1) == (Y > 0)).mean() > 0.8
    unfitted = fit_expert(LogisticRegression(), X, (Y > 0).astype(int), 2)
    np.testing.assert_allclose(unfitted(X), known(X), atol=1e-6)


def test_a_model_that_mixes_rows_is_refused():
    class Ranks:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.argsort(np.argsort(X[:, 0])).astype(float)

    with pytest.raises(ValueError, match="treats every row on its own"):
        fit_expert(Ranks(), X, Y)


@pytest.mark.parametrize("given", ["linear", [], 3])
def test_what_is_no_list_of_experts_is_refused(given):
    with pytest.raises(ValueError, match="experts must be a list"):
        expert_kinds(given)


@pytest.mark.parametrize("shape", [(60, 3), (40, 60), (30, 1)])
def test_quick_ridge_is_ridge_by_leave_one_out(shape):
    rng = np.random.default_rng(1)
    X = rng.normal(size=shape) * rng.choice([0.1, 1.0, 5.0], shape[1])
    y = X @ rng.normal(size=shape[1]) + rng.normal(size=shape[0])
    coef, intercept = quick_ridge(X, y)
    slow = RidgeCV(np.logspace(-3, 4, 15)).fit(X, y)
    np.testing.assert_allclose(X @ coef[:, 0] + intercept[0], slow.predict(X), atol=1e-5)


def test_quick_ridge_bears_constant_columns_and_labels():
    for X, y in ((np.ones((9, 2)), np.arange(9.0)), (np.eye(9), np.full(9, 3.0))):
        coef, intercept = quick_ridge(X, y)
        np.testing.assert_allclose(X @ coef[:, 0] + intercept[0], y.mean(), atol=1e-6)


def test_many_rows_are_tried_in_part_and_learned_from_in_whole():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_400, 2))
    facts = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).public_facts(
        X, X[:, 0], groups=np.arange(len(X)) % 3
    )
    assert facts.scores.shape == (10_000, 1)
    np.testing.assert_array_equal(facts.rows, X[trial_rows(len(X))])
    assert np.all(np.diff(trial_rows(len(X))) > 0), "in their order"


def test_folds_by_lot_of_a_sorted_table_are_alike():
    """Blocks of a table that is sorted by year would make a shift look usual."""
    codes, year = np.tile([0, 1], 2000), np.arange(4000)
    means = [year[class_folds(codes) == fold].mean() for fold in range(4)]
    assert np.ptp(means) < 300, "in blocks they are 3,000 apart"
