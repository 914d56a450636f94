"""Kernel mean matching: the density ratio, the reference QP, the certificate, memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.utils.estimator_checks import check_estimator

from dpadapt import Private
from dpadapt.baselines import KMMClassifier, KMMRegressor, kernel_mean_matching
from dpadapt.papers.baselines.kernel_mean_matching import _Box, kernel


def gaussians(m=2000, n=2000, seed=0, d=1):
    rng = np.random.default_rng(seed)
    X, T = rng.normal(size=(m, d)), rng.normal(0.5, 0.8, size=(n, d))
    ratio = np.prod(stats.norm.pdf(X, 0.5, 0.8) / stats.norm.pdf(X), axis=1)
    return X, T, ratio


@pytest.mark.parametrize("features", [None, 300])
def test_weights_are_the_density_ratio_of_two_gaussians(features):
    X, T, ratio = gaussians()
    found = kernel_mean_matching(X, T, width=0.7, features=features, max_iter=40)
    assert np.corrcoef(found.weights, ratio)[0, 1] > 0.93
    assert np.mean(np.abs(found.weights - ratio)) < 0.25 * np.mean(np.abs(1 - ratio))
    assert abs(found.weights @ X[:, 0] / len(X) - 0.5) < 0.05
    assert np.mean(np.abs(found.weights - ratio)) > 0  # an estimate, not the ratio itself
    wrong = kernel_mean_matching(X, -T, width=0.7, features=features, max_iter=40)
    assert np.corrcoef(wrong.weights, ratio)[0, 1] < 0  # the test sees a wrong target


def exact_square(K, cross, constant, b):
    m = len(b)
    return b @ K @ b / m**2 - 2 * cross @ b / m + constant


@pytest.mark.parametrize(("bound", "slack"), [(1000.0, None), (2.0, 0.0), (5.0, 0.1)])
def test_minimum_is_that_of_a_reference_solver(bound, slack):
    rng = np.random.default_rng(0)
    m, n = 30, 20
    X, T = rng.normal(size=(m, 2)), rng.normal(1.0, 0.5, size=(n, 2))
    found = kernel_mean_matching(
        X, T, width=1.0, bound=bound, slack=slack, gap=1e-7, max_iter=200_000
    )
    K, cross = kernel(X, X, 0.5), kernel(X, T, 0.5).mean(axis=1)
    constant = kernel(T, T, 0.5).mean()
    room = 1 - 1 / np.sqrt(m) if slack is None else slack
    best = optimize.minimize(
        lambda b: exact_square(K, cross, constant, b),
        np.ones(m),
        jac=lambda b: 2 * (K @ b / m - cross) / m,
        bounds=[(0, bound)] * m,
        constraints=[
            {"type": "ineq", "fun": lambda b: 1 + room - b.mean(), "jac": lambda b: 0 * b - 1 / m},
            {"type": "ineq", "fun": lambda b: b.mean() - 1 + room, "jac": lambda b: 0 * b + 1 / m},
        ],
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    assert found.mmd == pytest.approx(np.sqrt(exact_square(K, cross, constant, found.weights)))
    assert found.mmd == pytest.approx(np.sqrt(best.fun), rel=1e-3)
    assert found.lower_bound <= np.sqrt(best.fun) * (1 + 1e-6)
    assert found.lower_bound >= 0.99 * np.sqrt(best.fun)
    assert found.uniform_mmd == pytest.approx(np.sqrt(exact_square(K, cross, constant, np.ones(m))))
    assert found.weights.min() >= 0
    assert found.weights.max() <= bound
    assert abs(found.weights.mean() - 1) <= room + 1e-9


def test_projection_is_the_nearest_point():
    rng = np.random.default_rng(0)
    for trial in range(200):
        size = int(rng.integers(2, 30))
        box = _Box(size, float(rng.uniform(1.0, 4.0)), float(rng.uniform(0.0, 0.5)))
        point = rng.normal(scale=3.0, size=size) + (trial % 3 - 1) * 3
        near = box.project(point)
        low, high = box.sums
        assert near.min() >= 0
        assert near.max() <= box.bound
        assert low - 1e-9 <= near.sum() <= high + 1e-9
        for _ in range(20):  # the angle to every other point is obtuse
            other = box.project(rng.normal(scale=3.0, size=size))
            assert (point - near) @ (other - near) <= 1e-7
        assert box.least(near - point) <= (near - point) @ near + 1e-9
        slope = rng.normal(size=size)
        answer = optimize.linprog(
            slope,
            A_ub=[np.ones(size), -np.ones(size)],
            b_ub=[high, -low],
            bounds=[(0, box.bound)] * size,
        )
        assert box.least(slope) == pytest.approx(answer.fun, abs=1e-7)


def test_more_landmarks_come_nearer_and_the_bound_holds():
    X, T, _ = gaussians(m=600, n=300, d=3)
    all_rows = kernel_mean_matching(X, T, landmarks=900, max_iter=3000, gap=1e-6)
    found = [kernel_mean_matching(X, T, landmarks=k, max_iter=500) for k in (5, 20, 100)]
    for some in found:
        assert some.lower_bound <= all_rows.mmd * (1 + 1e-9)
        assert all_rows.mmd <= some.mmd * 1.01
    assert found[2].mmd < found[1].mmd < found[0].mmd < found[0].uniform_mmd


def test_memory_is_bounded():
    X, T, _ = gaussians(m=20_000, n=500, d=2)
    tracemalloc.start()
    kernel_mean_matching(X, T, landmarks=32, max_iter=20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6  # the kernel matrix alone would have 3.2 GB


def test_same_samples_keep_weights_near_one():
    X, _, _ = gaussians(m=300)
    found = kernel_mean_matching(X, X)
    np.testing.assert_allclose(found.weights, 1.0, atol=0.01)
    assert found.mmd < 1e-4


@pytest.mark.parametrize(
    ("argument", "value"),
    [("width", 0.0), ("bound", -1.0), ("slack", -0.1), ("features", 0), ("landmarks", 0)],
)
def test_bad_arguments_are_named(argument, value):
    with pytest.raises(ValueError, match=argument):
        kernel_mean_matching([[0.0], [1.0]], [[0.0]], **{argument: value})


def test_odd_samples():
    assert kernel_mean_matching([[1.0]], [[2.0]]).weights.shape == (1,)
    same = kernel_mean_matching(np.ones((5, 2)), np.ones((3, 2)))
    np.testing.assert_allclose(same.weights, 1.0, atol=1e-6)
    with pytest.raises(ValueError, match="columns"):
        kernel_mean_matching([[1.0]], [[2.0, 3.0]])
    with pytest.raises(ValueError, match="bound"):
        kernel_mean_matching([[1.0], [2.0]], [[2.0]], bound=0.5, slack=0.1)


@pytest.mark.parametrize("model", [KMMRegressor(), KMMClassifier()])
def test_check_estimator(model):
    check_estimator(model)


def test_weighted_models_fit_the_target_better():
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(1500, 1)), rng.normal(1.0, 0.4, size=(1000, 1))
    errors = [
        np.mean((KMMRegressor().fit(X, X[:, 0] ** 2, target=t).predict(T) - T[:, 0] ** 2) ** 2)
        for t in (None, T)
    ]
    assert errors[1] < 0.3 * errors[0]
    with pytest.raises(TypeError, match="target"):
        KMMRegressor().fit(X, X[:, 0], target=Private(T))
