"""Kernel models that correct the public one: never worse by more than noise, and as private."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes

from dpadapt import KernelClassifier, KernelRegressor, Private
from dpadapt.kernels import FunctionKernel, GaussianProcess
from dpadapt.kernels.constants import constants
from dpadapt.kernels.erm import certified_gradient, solve
from dpadapt.kernels.losses import HuberisedHinge, Logistic, SoftmaxLoss
from dpadapt.kernels.shifted_loss import Shifted
from dpadapt.learning.shrinkage import shrunk

BUDGET = {"delta": 1e-6, "noise": "seeded", "random_state": 0}


def tables():
    rng = np.random.default_rng(0)
    for load, kind in ((load_diabetes, KernelRegressor), (load_breast_cancer, KernelClassifier)):
        X, y = load(return_X_y=True)
        order = np.argsort(X[:, 1])  # public: one half of the population
        public = rng.permutation(order[: len(y) // 2])[:60]
        other = rng.permutation(order[len(y) // 2 :])
        train, test = other[: len(other) // 2], other[len(other) // 2 :]
        yield kind, X[public], y[public], Private(X[train], y[train]), X[test], y[test]


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 4.0])
def test_never_worse_than_the_public_model_by_more_than_noise(epsilon):
    for kind, X, y, private, T, t in tables():
        public = kind(epsilon=epsilon, **BUDGET).fit(X, y)
        model = kind(epsilon=epsilon, **BUDGET).fit(X, y, private=private)
        if kind is KernelClassifier:
            assert model.score(T, t) >= public.score(T, t) - 0.02
            continue
        wrong, before = (np.mean((each.predict(T) - t) ** 2) for each in (model, public))
        assert wrong <= 1.05 * before
        # alone, private rows are worse than the public mean here
        alone = kind(epsilon=epsilon, release=GaussianProcess(start="zero"), **BUDGET)
        alone.fit(X, y, private=private)
        assert epsilon > 1 or np.mean((alone.predict(T) - t) ** 2) > np.mean((y.mean() - t) ** 2)


def test_with_a_large_epsilon_private_rows_are_learnt():
    rng = np.random.default_rng(1)
    X, T = rng.uniform(-1, 1, size=(100, 2)), rng.uniform(-1, 1, size=(3000, 2))
    for kind, public, private, options in (
        (KernelRegressor, X[:, 0], T[:, 0] + np.sin(3 * T[:, 1]), {"label_range": (-2.0, 2.0)}),
        (KernelClassifier, X[:, 0] > 0, T[:, 0] + T[:, 1] > 0, {}),
    ):
        sample = Private(T[:2000], private[:2000] * 1.0)
        far = kind(epsilon=1e4, **options, **BUDGET).fit(X, public * 1.0)
        near = clone(far).fit(X, public * 1.0, private=sample)
        scores = [each.score(T[2000:], private[2000:] * 1.0) for each in (near, far)]
        assert scores[0] > max(0.95, scores[1] + 0.1)


def test_where_private_rows_say_nothing_the_model_is_the_public_one():
    """Three private rows at epsilon .1: the correction is noise, and dropped but for chance."""
    kind, X, y, _, T, _ = next(tables())
    public = kind(epsilon=0.1, **BUDGET).fit(X, y).predict(T)
    found = [
        kind(epsilon=0.1, delta=1e-6, noise="seeded", random_state=seed)
        .fit(X, y, private=Private(X[:3], y[:3]))
        .predict(T)
        for seed in range(5)
    ]
    spread = np.ptp(y)
    assert np.median([np.abs(each - public).max() for each in found]) < 0.01 * spread


@pytest.mark.parametrize(
    ("features", "pool"),
    [("none", False), ("none", True), ("nystroem", False), ("fourier", False)],
)
def test_every_way_to_a_model_has_the_public_part(features, pool):
    kind, X, y, private, T, _ = next(tables())
    release = GaussianProcess()
    if features == "none":
        release = GaussianProcess(pool=X[:20] if pool else None, points=30)
    model = kind(epsilon=0.1, features=features, release=release, **BUDGET)
    public = kind(epsilon=0.1, features=features, **BUDGET).fit(X, y).predict(T)
    found = model.fit(X, y, private=private).predict(T)
    assert np.corrcoef(found, public)[0, 1] > 0.9
    assert model.guarantee_.epsilon == pytest.approx(0.1, rel=1e-3)


def test_texts_are_corrected_too():
    kernel = FunctionKernel(
        lambda A, B: np.array([[float(a[0] == b[0]) for b in B] for a in A]), bound=1.0
    )
    X = np.array([["a"], ["b"], ["c"]] * 10, dtype=object)
    y = np.array([0.0, 1.0, 2.0] * 10)
    private = Private(X, y + 5.0)
    model = KernelRegressor(epsilon=1e4, kernel=kernel, label_range=(0.0, 8.0), **BUDGET)
    assert model.fit(X, y).predict(X[:3]) == pytest.approx([0, 1, 2], abs=0.3)
    # what is left over is clamped to what public rows leave over: it moves, but not all the way
    assert (model.fit(X, y, private=private).predict(X[:3]) > [0, 1, 2]).all()


LOSSES = [(Logistic(), 1), (HuberisedHinge(0.05), 1), (SoftmaxLoss(3), 3)]


@pytest.mark.parametrize(("loss", "outputs"), LOSSES, ids=str)
def test_a_shifted_loss_moves_no_further_and_stays_in_its_ball(loss, outputs):
    rng = np.random.default_rng(2)
    worst = 0.0
    for trial in range(40):
        n, penalty = int(rng.integers(1, 20)), float(10 ** rng.uniform(-2, 1))
        rows = rng.normal(size=(n, 3))
        rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
        y = rng.integers(1, 4, size=(n, 1)) if loss.joint else rng.choice([-1.0, 1.0], size=(n, 1))
        base = rng.normal(size=(n, outputs)) * 10 ** rng.uniform(-1, 3)
        shifted = Shifted(loss, outputs)
        facts = constants(shifted, 1.0, penalty, n, width=3)
        one = np.hstack([y, base])
        other, changed = one.copy(), rows.copy()
        other[0], changed[0] = np.roll(other[0], 1) if trial % 2 else -other[0], -rows[0]
        other[0, 0] = y[0, 0]
        w = [solve(rows, one, shifted, penalty, 1.0), solve(changed, other, shifted, penalty, 1.0)]
        assert certified_gradient(rows, one, shifted, penalty, 1.0, w[0]) <= facts.tolerance
        assert np.linalg.norm(w[0]) <= facts.norm_bound + facts.tolerance / penalty
        worst = max(worst, float(np.linalg.norm(w[0] - w[1])) / facts.sensitivity)
    assert 0.1 < worst <= 1


def test_a_public_model_that_is_all_wrong_makes_a_longer_correction_than_the_loss_at_zero_allows():
    """Why the norm of a correction is bounded by LR/lambda alone."""
    shifted, penalty = Shifted(Logistic(), 1), 0.01
    rows, y = np.ones((4, 1)), np.hstack([np.ones((4, 1)), np.full((4, 1), -200.0)])
    w = float(np.linalg.norm(solve(rows, y, shifted, penalty, 1.0)))
    assert w > 5 * np.sqrt(2 * Logistic().at_zero / penalty)
    assert w <= constants(shifted, 1.0, penalty, 4, width=1).norm_bound * (1 + 1e-6)


def test_noise_alone_is_dropped_and_a_signal_is_kept():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(200, 30)) * np.linspace(1, 0.01, 30)
    noise = rng.normal(size=(30, 2))
    left = shrunk(noise, 1.0, features)
    assert np.linalg.norm(left) < 0.5 * np.linalg.norm(noise)
    signal = np.zeros((30, 2))
    signal[0] = 50.0
    kept = shrunk(signal + noise, 1.0, features)
    assert np.linalg.norm(kept - signal) < np.linalg.norm(noise)
    few = shrunk(signal + noise, 1.0, features[:3])  # more columns than public rows
    assert few.shape == (30, 2)


def test_a_wrong_start_is_refused():
    with pytest.raises(ValueError, match="start"):
        GaussianProcess(start="one")
