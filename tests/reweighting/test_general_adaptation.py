"""Algorithm 2: its constants, its noise-free limit, and the discrepancy over public models."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt.papers.reweighting.general_adaptation import GeneralAdaptation
from dpadapt.papers.reweighting.objective import (
    LogisticLoss,
    SmoothPenalty,
    loss_gradients,
    reference_weights,
)
from dpadapt.privacy import Cleaning, Private
from dpadapt.testing.independent_accountant import recompute_epsilon

K = 3
CLEANINGS = {k: Cleaning(radius=1.0, intercept=0.5, classes=k) for k in (2, K)}
LENGTH = math.hypot(1.0, 0.5)
CENTRES = np.array([[1.0, 0.0], [-0.7, 0.7], [-0.7, -0.7]])


def _sample(n, seed, k):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, k, n)
    return CENTRES[codes] + 0.3 * rng.normal(size=(n, 2)), codes.astype(float)


def _public(k):
    return CLEANINGS[k](*_sample(60, 0, k))


def _fit(algorithm, k, private=None, **options):
    private = private or Private(*_sample(800, 1, k)).encode(np.arange(k))
    settings = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0, **options}
    with private.open(**settings) as session:
        return algorithm.fit(session, CLEANINGS[k]), session.guarantee


@pytest.mark.parametrize("k", [2, K])
def test_the_constants(k):
    """Lines 2 to 4 of Algorithm 2 and the T of Theorem 4, written out once more."""
    alpha, n, m, eps, delta, reach, lam = 0.3, 800, 60, 2.0, 0.01, 1.5, (0.3, 0.2, 0.1)
    models = np.zeros((1, 3, k))
    algorithm = GeneralAdaptation(
        *_public(k), k, alpha, lam, reach, calibration="paper", candidates=models
    )
    root = 1.0 if k == 2 else math.sqrt(2)
    G, beta = root * LENGTH, LENGTH**2 / (4 if k == 2 else 2)
    B = math.log(1 + (k - 1) * math.exp(root * reach * LENGTH))
    d = 3 if k == 2 else 3 * k
    a, b, mu = alpha / m, (1 - alpha) / n, 10 * m * math.log(m + n)
    c = max(a, b)
    block = c**3 * (2 * max(2 * B, lam[0]) + 4 * lam[1] + 2 * lam[2]) + 2 * lam[2] * mu * c**4
    tilde = beta + block + G * (alpha**2 / m**1.5 + (1 - alpha) ** 2 / n**1.5)
    assert algorithm.smoothness(LENGTH, n) == pytest.approx(tilde)
    M = 2 * B + lam[0] + lam[1] * (alpha / m**0.5 + (1 - alpha) / n**0.5) + lam[2] * c
    T = math.sqrt(tilde * M) * (eps / 2) * n**1.5 / (1 - alpha) / math.sqrt(math.log(2 / delta))
    T = math.ceil(T / math.sqrt(40 * G**2 * d * n + (1 - alpha) ** 2 * B**2))
    private = Private(*_sample(n, 1, k)).encode(np.arange(k))
    with private.open(epsilon=eps, delta=delta) as session:
        planned = algorithm.mechanisms(session, CLEANINGS[k])
    distance, by_w, by_u = (
        planned[name] for name in ("discrepancy", "gradient_by_w", "gradient_by_u")
    )
    assert (by_w.count, by_u.count, distance.count) == (T, T, 1)
    assert (by_w.dimension, by_u.dimension) == (d, n)
    units = 2 * math.sqrt(T * math.log(2 / delta)) / (eps / 2)
    assert distance.printed == pytest.approx(B / n)
    assert by_w.printed == pytest.approx(units * 2 * (1 - alpha) * G / n)
    assert by_u.printed == pytest.approx(units * (1 - alpha) ** 2 * B / n**2)


@pytest.mark.parametrize("k", [2, K])
def test_smoothness_bounds_the_whole_hessian(k):
    rng = np.random.default_rng(3)
    loss, m, n, alpha, lam = LogisticLoss(k), 3, 4, 0.4, (0.3, 0.2, 0.5)
    X, y = CLEANINGS[k](*_sample(m + n, 2, k))
    algorithm = GeneralAdaptation(
        X[:m], y[:m], k, alpha, lam, 2.0, steps=1, sharpness=9.0, candidates=np.zeros((1, 3, k))
    )
    p = reference_weights(m, n, alpha)
    penalty, width = SmoothPenalty(p, lam, 9.0), algorithm.width
    shape = (3,) if k == 2 else (3, k)
    worst = 0.0
    for _ in range(20):
        u = rng.uniform(1, 1.3, m + n) / p
        point = np.concatenate([rng.normal(size=width) / 3, u])
        d = rng.uniform(0, loss.bound(LENGTH, 2.0))

        def slope(v, d=d):
            by_w, by_u = loss_gradients(loss, X, y, v[:width].reshape(shape), v[width:])
            by_u = penalty.gradient(v[width:]) - by_u
            by_u[:m] -= d / v[width : width + m] ** 2
            return np.concatenate([by_w.ravel(), by_u])

        moves = 1e-4 * np.eye(len(point))
        hessian = np.array([(slope(point + e) - slope(point - e)) / 2e-4 for e in moves])
        worst = max(worst, float(np.linalg.norm(hessian, 2)))
    assert 0.05 * algorithm.smoothness(LENGTH, n) < worst <= algorithm.smoothness(LENGTH, n)


@pytest.mark.parametrize("k", [2, K])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_without_noise_it_learns_the_classes(k, alpha):
    algorithm = GeneralAdaptation(*_public(k), k, alpha, norm_bound=5.0, steps=400, seed=1)
    X, y = CLEANINGS[k](*_sample(800, 1, k))
    found = algorithm.minimise(X, y)
    assert found.coefficients.shape == (3, k)
    assert (np.argmax(X @ found.coefficients, axis=1) == y).mean() > 0.9
    assert found.discrepancy == 0.0
    assert (found.weights <= alpha / 60 * (1 + 1e-12)).all()


@pytest.mark.parametrize("k", [2, K])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_tight_calibration_spends_the_budget_exactly(k, alpha):
    models = np.random.default_rng(0).normal(size=(4, 3, k))
    algorithm = GeneralAdaptation(*_public(k), k, alpha, steps=20, candidates=models)
    w, guarantee = _fit(algorithm, k, epsilon=0.7)
    assert w.shape == (3, k)
    assert guarantee.epsilon == pytest.approx(0.7, rel=1e-6)
    low, high = recompute_epsilon(guarantee.events, 1e-6)
    assert low <= 0.7 <= high * (1 + 1e-3)
    assert len(guarantee.events) == (2 if alpha else 1)


def test_noise_that_vanishes_gives_the_noise_free_limit():
    algorithm = GeneralAdaptation(*_public(K), K, steps=30, norm_bound=2.0)
    noisy, _ = _fit(algorithm, K, epsilon=1e8)
    exact = algorithm.minimise(*CLEANINGS[K](*_sample(800, 1, K))).coefficients
    assert np.linalg.norm(noisy - exact) < 0.05 * np.linalg.norm(exact)


@pytest.mark.parametrize("k", [2, K])
def test_joint_sensitivity_of_the_two_gradients(k):
    """At most root 2 in units of s_1 and s_2, on random and on opposite neighbours."""
    rng, n, alpha, reach, worst = np.random.default_rng(4), 5, 0.2, 2.0, np.zeros(3)
    loss = LogisticLoss(k)
    s1 = 2 * (1 - alpha) * loss.lipschitz(LENGTH, reach) / n
    s2 = (1 - alpha) ** 2 * loss.bound(LENGTH, reach) / n**2
    for trial in range(1500):
        w = rng.normal(size=(3,) if k == 2 else (3, k))
        w *= reach / np.linalg.norm(w)
        X, y = CLEANINGS[k](4 * rng.normal(size=(n, 2)), rng.integers(-1, k, n).astype(float))
        X2, y2 = X.copy(), y.copy()
        X2[0, :2], y2[0] = (-X[0, :2], y[0]) if trial % 2 else (X[0, :2], rng.integers(-1, k))
        u = n / (1 - alpha) * np.ones(n)
        one, two = (loss_gradients(loss, *pair, w, u) for pair in ((X, y), (X2, y2)))
        move = np.linalg.norm(one[0] - two[0]) / s1, np.linalg.norm(one[1] - two[1]) / s2
        worst = np.maximum(worst, [*move, math.hypot(*move)])
    assert (worst[:2] <= 1).all()
    assert 0.6 < worst[2] <= math.sqrt(2)


@pytest.mark.parametrize("k", [2, K])
def test_what_is_asked_for_covers_both_gradients_at_once(k):
    """Each moves by 1 in its unit, at most; nothing says that they do not do so together."""
    algorithm = GeneralAdaptation(*_public(k), k, alpha=0.2, steps=3)
    private = Private(*_sample(800, 1, k)).encode(np.arange(k))
    with private.open(epsilon=1.0, delta=1e-6) as session:
        planned = algorithm.mechanisms(session, CLEANINGS[k])
    assert list(planned) == ["gradients"]
    assert math.sqrt(2) <= planned["gradients"].sensitivity <= math.sqrt(2) * (1 + 1e-6)


def test_the_discrepancy_over_candidates_moves_by_b_over_n_at_most():
    rng, n, worst = np.random.default_rng(5), 10, 0.0
    models = 20 * rng.normal(size=(5, 3, K))  # outside the ball: brought into it
    algorithm = GeneralAdaptation(*_public(K), K, norm_bound=2.0, steps=1, candidates=models)
    B = LogisticLoss(K).bound(LENGTH, 2.0)
    for _ in range(300):
        X, y = CLEANINGS[K](4 * rng.normal(size=(n, 2)), rng.integers(-1, K, n).astype(float))
        X2, y2 = X.copy(), y.copy()
        X2[0, :2], y2[0] = -X[0, :2], rng.integers(-1, K)
        moved = algorithm._discrepancy(X, y) - algorithm._discrepancy(X2, y2)
        worst = max(worst, abs(moved) / (B / n))
    assert 0.3 < worst <= 1


def test_the_index_is_public_and_uniform():
    X, y = CLEANINGS[2](*_sample(800, 1, 2))
    found = {
        GeneralAdaptation(*_public(2), 2, steps=3, seed=seed).minimise(X, y).coefficients[0, 1]
        for seed in range(30)
    }
    assert len(found) == 3  # the iterates 1, 2, 3; never the start
    assert 0.0 not in found


def test_public_start_minimises_the_public_loss():
    X, y = _public(K)
    algorithm = GeneralAdaptation(X, y, K, norm_bound=2.0, steps=1, start="public")
    w = algorithm._first(LENGTH)
    assert np.linalg.norm(w) <= 2.0 * (1 + 1e-12)
    slope = X.T @ LogisticLoss(K).residual(X @ w, y)
    np.testing.assert_allclose(slope / np.linalg.norm(slope), -w / 2.0, atol=1e-3)


def test_a_class_that_no_public_row_has_and_rows_of_no_class():
    X, y = _public(K)
    algorithm = GeneralAdaptation(X[y < 2], y[y < 2], K, alpha=0.1, steps=5)
    private = Private(np.full((50, 2), np.nan), np.full(50, 77.0)).encode(np.arange(K))
    w, _ = _fit(algorithm, K, private)
    assert np.isfinite(w).all()


def test_deterministic_under_a_seed():
    algorithm = GeneralAdaptation(*_public(2), 2, steps=5, calibration="paper")
    first, second, other = (_fit(algorithm, 2, random_state=s)[0] for s in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 1.0}, "steps must be given"),
        ({"strengths": (0.0, -1.0, 0.0)}, "strengths"),
        ({"sharpness": 0.0}, "sharpness"),
        ({"candidates": np.zeros((2, 3))}, "candidates"),
        ({"n_classes": 1}, "n_classes"),
        ({"y": np.full(60, 5.0)}, "class codes"),
    ],
)
def test_bad_settings_are_named(change, message):
    X, y = _public(2)
    with pytest.raises(ValueError, match=message):
        GeneralAdaptation(**{"X": X, "y": y, "n_classes": 2, **change})


def test_public_facts_are_checked_in_the_session():
    X, y = _public(2)
    with Private(*_sample(20, 1, 2)).open(epsilon=1.0, delta=1e-6) as session:
        with pytest.raises(ValueError, match="takes nothing"):
            GeneralAdaptation(X, y, 2, alpha=1.0, steps=3).mechanisms(session, CLEANINGS[2])
        with pytest.raises(ValueError, match="classes=2"):
            GeneralAdaptation(X, y, 2).mechanisms(session, CLEANINGS[K])
        with pytest.raises(ValueError, match="within the bounds"):
            GeneralAdaptation(9 * X, y, 2).mechanisms(session, CLEANINGS[2])
    with pytest.raises(ValueError, match="steps must be given"):
        GeneralAdaptation(X, y, 2).minimise(X, y)
