"""Noisy gradient descent, noisy SGD: contracts, clipping, noise scales, public tuning."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.baselines import (
    NoisyGradientClassifier,
    NoisyGradientRegressor,
    NoisySGDRegressor,
    PublicOnlyRegressor,
)
from dpadapt.papers.baselines._tasks import BaselineTask, loss_derivatives
from dpadapt.papers.baselines.noisy_gradient import noisy_descent, tuned
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.testing.tape import releases, taped

FEW = {"steps": 6, "step_size": 0.5, "clip": 1.0}


def shifted(seed=0, m=2000, n=3000, d=3):
    rng = np.random.default_rng(seed)
    slopes = np.array([1.0, -1.0, 0.5])
    X, T = rng.normal(size=(m, d)), rng.normal(0.2, 1.0, size=(n, d))
    y = X @ slopes + 0.2 * rng.normal(size=m)
    return X, y, T, T @ (slopes + 0.5) + 0.2 * rng.normal(size=n)


def test_gradients_are_those_of_the_losses():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(20, 3)), rng.integers(0, 3, size=20)
    w = rng.normal(size=(3, 3))

    def loss(v):
        scores = X @ v
        return float((np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(20), codes]).sum())

    slope = X.T @ loss_derivatives(X @ w, codes.astype(float), 3)
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 1e-6
        assert math.isclose((loss(w + step) - loss(w - step)) / 2e-6, slope[place], abs_tol=1e-6)


def test_rows_of_no_class_count_for_nothing():
    scores = np.array([[1.0, 2.0, -1.0], [0.0, 0.0, 0.0]])
    assert not loss_derivatives(scores, np.array([-1.0, -1.0]), 3).any()
    assert not loss_derivatives(scores[:, :1], np.array([-1.0, -1.0]), 2).any()


def test_mean_of_the_last_half():
    assert noisy_descent(lambda w: -np.ones(1), np.zeros(1), 4, 1.0)[0] == 3.5
    assert noisy_descent(lambda w: -np.ones(1), np.zeros(1), 4, 1.0, keep=1.0)[0] == 2.5
    held = noisy_descent(lambda w: -np.ones(1), np.zeros(1), 4, 1.0, radius=2.0)[0]
    assert 2.0 - 1e-11 < held <= 2.0


def test_noise_is_exactly_what_the_steps_need():
    X, y, T, t = shifted()
    model = NoisyGradientRegressor(
        epsilon=1.0, delta=1e-6, steps=7, step_size=0.5, clip=1.0, noise="seeded", random_state=0
    )
    with taped() as tape:
        model.fit(X, y, private=Private(T, t))
    event, count = model.guarantee_.events
    first, *drawn = releases(tape)
    assert len(drawn) == event.count == 7
    assert first.scale == count.scale  # 1 % of the squared mu is for the rows that have a label
    needed = event.sensitivity * math.sqrt(7 / 0.99) / gaussian_mu(1.0, 1e-6)
    assert all(math.isclose(draw.scale, needed, rel_tol=1e-6) for draw in drawn)


def test_fine_tuning_beats_the_public_model_and_is_near_it_with_no_budget():
    X, y, T, t = shifted()
    public = np.mean((PublicOnlyRegressor().fit(X, y).predict(T) - t) ** 2)
    errors = []
    for epsilon in (1.0, 1e-3):
        model = NoisyGradientRegressor(
            epsilon=epsilon,
            delta=1e-6,
            start="public",
            steps=40,
            step_size=0.5,
            clip=3.0,
            noise="seeded",
            random_state=0,
        ).fit(X, y, private=Private(T, t))
        errors.append(np.mean((model.predict(T) - t) ** 2))
    assert errors[0] < 0.5 * public
    assert errors[1] > errors[0]


def test_tuning_looks_at_public_rows_and_sizes_only():
    X, y, _, _ = shifted()
    task = BaselineTask(X, y)
    rich = tuned(task, "public", 100_000, 1.0, (None, None, None))
    poor = tuned(task, "public", 100, 0.05, (None, None, None))
    assert rich == tuned(
        BaselineTask(X.copy(), y.copy()), "public", 100_000, 1.0, (None, None, None)
    )
    assert rich[0] * rich[1] > poor[0] * poor[1]
    assert tuned(task, "zero", 100, 1.0, (9, None, 0.5))[::2] == (9, 0.5)


def test_classifier_fine_tunes_three_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = np.argmax(X + 0.1 * rng.normal(size=X.shape), axis=1)
    moved = np.argmax(X + np.array([1.0, 0.0, 0.0]), axis=1)
    model = NoisyGradientClassifier(
        epsilon=2.0,
        delta=1e-6,
        start="public",
        steps=40,
        step_size=1.0,
        clip=20.0,
        noise="seeded",
        random_state=0,
    )
    public = model.fit(X, y).score(X, moved)
    assert model.fit(X, y, private=Private(X, moved)).score(X, moved) > public + 0.03
    assert model.predict_proba(X[:5]).shape == (5, 3)


def test_printed_noise_of_sgd_is_accounted_for_as_what_it_is():
    X, y, T, t = shifted()
    for epsilon, steps in [(1.0, 20), (4.0, 50)]:
        model = NoisySGDRegressor(
            epsilon=epsilon,
            delta=1e-6,
            calibration="paper",
            steps=steps,
            noise="seeded",
            random_state=0,
        ).fit(X, y, private=Private(T, t))
        (event,) = model.guarantee_.events
        mu = epsilon / math.sqrt(2 * math.log(1e6))
        assert math.isclose(event.gaussian_mu, mu, rel_tol=1e-6)
        largest = event.sensitivity * len(T) / 2
        printed = 8 * steps * largest**2 * math.log(1e6) / (len(T) * epsilon) ** 2
        assert math.isclose(event.scale**2, printed, rel_tol=1e-6)
        assert math.isclose(model.guarantee_.epsilon, compose_epsilon([event], 1e-6))


def test_sgd_learns_with_much_budget():
    X, y, T, t = shifted()
    model = NoisySGDRegressor(epsilon=200.0, delta=1e-3, noise="seeded", random_state=0)
    model.fit(X, y, private=Private(T, t))
    assert np.mean((model.predict(T) - t) ** 2) < 0.5 * np.var(t)


@pytest.mark.parametrize(
    ("argument", "value"), [("start", "warm"), ("steps", 0), ("clip", -1.0), ("step_size", 0)]
)
def test_bad_settings_are_named(argument, value):
    X, y, _, _ = shifted(m=50)
    model = NoisyGradientRegressor(epsilon=1.0, delta=1e-6, **{argument: value})
    with pytest.raises(ValueError, match=argument):
        model.fit(X, y)
