"""The default: how far the known noise allows to go, and how good that is."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from dpadapt import AdaMixClassifier, Private
from dpadapt.mixing import KnownNoise, known_noise
from dpadapt.mixing.features import PublicSample, UnitRows, class_energy, penalised
from dpadapt.mixing.known_noise import affordable_noise, margins_of, plan_horizon, unseen_margins
from mixing.mixing_problems import SEEDED, digits, make, problem


def test_kappa_grows_with_signal_over_noise_up_to_one():
    mus = np.geomspace(1e-4, 10, 60)
    kappas = [plan_horizon(500, mu, 0.3, 10).kappa for mu in mus]
    assert all(a <= b for a, b in itertools.pairwise(kappas))
    assert kappas[-1] == 1.0
    assert plan_horizon(1e9, 1.0, 1.0, 2).rate * 1e9 == pytest.approx(4)


@pytest.mark.slow
def test_the_noise_of_the_released_weights_is_kappa():
    """Not far from what was planned: later steps shrink it."""
    X, y, T, t = problem(d=30, n=400, classes=5, m=25)
    weights = []
    for seed in range(40):
        model = make(steps=100, random_state=seed).fit(X, y, private=Private(T, t))
        weights.append(model.features_.weights(model.coef_.T, model.intercept_))
    spread = np.std(weights, axis=0, ddof=1).mean()
    assert 0.5 * model.plan_.kappa < spread < 1.1 * model.plan_.kappa


def test_noise_costs_no_more_than_there_is_to_gain():
    """By the public rows; whatever their margins are."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        margins = rng.normal(
            rng.uniform(-1, 4), rng.uniform(0.01, 3), size=int(rng.integers(2, 90))
        )
        kappa = affordable_noise(margins)
        errors = np.mean(margins < 0)
        lost = np.mean(norm.cdf(-margins / (math.sqrt(2) * kappa)))
        assert 0 < kappa <= 1
        assert lost - errors <= max(errors, 0.5 / len(margins)) + 1e-9 or kappa <= 1e-3
    assert affordable_noise(np.full(50, 3.0)) < 1


def test_a_sure_public_model_gets_less_noise():
    """Nothing to gain, small margins: the noise shrinks, the accuracy stays."""
    rng = np.random.default_rng(0)
    centers = 9 * np.eye(3)
    y, t = np.arange(30) % 3, rng.integers(3, size=3000)
    X, T = centers[y] + rng.normal(size=(30, 3)), centers[t] + rng.normal(size=(3000, 3))
    model = make(steps=100, start=np.eye(3)).fit(X, y, private=Private(T, t))
    assert model.plan_.kappa < 0.5
    assert model.score(T, t) > 0.99


def test_margins_are_those_of_models_that_have_not_seen_the_row():
    """Labels drawn at random: a model that has seen a row knows it, one that has not does not."""
    rng = np.random.default_rng(0)
    rows = UnitRows.of(rng.normal(size=(60, 40)), np.arange(60) % 2, 2).rows(
        rng.normal(size=(60, 40))
    )
    public = PublicSample(rows, rng.permutation(np.arange(60) % 2), 2)
    seen = margins_of(public, penalised(public))
    unseen = unseen_margins(public)
    assert np.mean(seen < 0) < 0.15
    assert np.mean(unseen < 0) > 0.25
    assert unseen_margins(public.part([0, 1])) is None or len(unseen) == 60
    one_each = PublicSample(rows[:2], np.array([0, 1]), 2)
    assert unseen_margins(one_each) is None


def test_the_cap_reaches_the_plan(monkeypatch):
    given = []
    monkeypatch.setattr(known_noise, "affordable_noise", lambda m: given.append(m) or 0.123)
    X, y, T, t = problem(n=20_000)
    model = make(epsilon=8.0).fit(X, y, private=Private(T, t))
    assert model.plan_.kappa == 0.123
    assert given[0].shape == (len(X),)  # of all public rows


def test_class_energy_is_unbiased():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(3, 8)) / 4
    found = []
    for _ in range(400):
        codes = np.repeat(np.arange(3), 4)
        rows = means[codes] + rng.normal(size=(12, 8)) / 6
        found.append(class_energy(PublicSample(rows, codes, 3)))
    true = np.mean([m @ m for m in means]) - np.mean(
        [means[i] @ means[j] for i in range(3) for j in range(3) if i != j]
    )
    assert np.mean(found) == pytest.approx(true, rel=0.05)


def test_class_energy_is_the_mean_over_pairs():
    rng = np.random.default_rng(1)
    codes = rng.integers(4, size=60)
    rows = rng.normal(size=(60, 5)) / 4 + np.eye(5)[codes] / 2
    inner, same = rows @ rows.T, codes[:, None] == codes
    pairs = same & ~np.eye(60, dtype=bool)
    expected = inner[pairs].mean() - inner[~same].mean()
    assert class_energy(PublicSample(rows, codes, 4)) == pytest.approx(expected)


def test_class_energy_of_many_rows_needs_no_square_of_them():
    rows = np.tile(np.eye(2), (100_000, 1))  # all pairs of them: 320 GB
    assert class_energy(PublicSample(rows, np.arange(200_000) % 2, 2)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "relation", [pytest.param("replace-one", marks=pytest.mark.slow), "add-remove"]
)
def test_many_rows_and_much_budget_do_not_shake_it(relation):
    """Nearly all rows point the same way: the largest curvature that unit rows can have."""
    rng = np.random.default_rng(0)
    T = np.array([1.0, 0.0, 0.0]) + 0.02 * rng.normal(size=(1500, 3))
    t = (T[:, 1] + 0.01 * rng.normal(size=len(T)) > 0.005).astype(int)
    X = np.vstack([T[:20], -T[:20]])  # the middle of the public classes is far from both
    y = np.concatenate([t[:20], t[:20]])
    given = {"steps": None, "relation": relation, "keep_trajectory": True}
    model = make(epsilon=1e3, **given).fit(X, y, private=Private(T, t))
    moves = np.linalg.norm(np.diff(model.trajectory_, axis=0), axis=(1, 2))
    assert moves[-10:].max() < 0.1 * moves.max(), "it settles, and does not swing"
    assert model.plan_.rate * model.plan_.sample_size <= 4 * (1 + 1e-9)


def test_steps_follow_the_rows_where_their_number_is_public():
    X, y, T, t = problem(n=1000)
    private, given = Private(T, t), {"steps": None, "solver": KnownNoise(clip=0.25)}
    short, far = (make(epsilon=e, **given).fit(X, y, private=private) for e in (0.1, 20.0))
    assert short.n_steps_ == 100 < far.n_steps_ <= 1600
    secret = make(epsilon=20.0, relation="add-remove", **given).fit(X, y, private=private)
    assert secret.n_steps_ == 400  # whatever the rows are


def test_digits_few_examples_a_class():
    """Mean accuracy of three seeds; ten of them are in the slow test below."""
    scores = {"public": [], "ours": []}
    for seed in range(3):
        public, private, test = digits(seed)
        model = AdaMixClassifier(epsilon=3.0, delta=1e-5, **SEEDED)
        scores["public"].append(model.fit(*public).score(*test))
        scores["ours"].append(model.fit(*public, private=Private(*private)).score(*test))
    assert np.mean(scores["ours"]) > 0.915 > np.mean(scores["public"]) + 0.04


@pytest.mark.slow
@pytest.mark.parametrize(
    ("relation", "epsilon", "least"),
    [
        ("add-remove", 1.0, 0.91),
        ("add-remove", 3.0, 0.935),
        ("replace-one", 1.0, 0.89),
        ("replace-one", 3.0, 0.925),
    ],
)
def test_digits_accuracy(relation, epsilon, least):
    from reproduce.mixing.tasks import TASKS, draw

    found = []
    for seed in range(3, 13):
        sample = draw(TASKS["digits"], seed)
        params = {"noise": "seeded", "random_state": seed}
        model = AdaMixClassifier(epsilon=epsilon, delta=1e-5, relation=relation, **params)
        private = Private(sample.X_private, sample.y_private)
        model.fit(sample.X_public, sample.y_public, private=private)
        found.append(model.score(sample.X_test, sample.y_test))
        assert model.guarantee_.epsilon <= epsilon * (1 + 1e-9)
    assert np.mean(found) >= least
