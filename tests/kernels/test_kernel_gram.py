"""Certified minimisers from a kernel matrix: like the explicit ones, on any kernel."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt.kernels import erm
from dpadapt.kernels import kernel as forms
from dpadapt.kernels.constants import constants
from dpadapt.kernels.erm import KernelMatrix, certified_gram_gradient, solve, solve_gram
from dpadapt.kernels.features import PolynomialFeatures
from dpadapt.kernels.losses import (
    EpsilonInsensitive,
    HuberisedHinge,
    Logistic,
    SoftmaxLoss,
    Squared,
    one_against_rest,
)

LOSSES = [
    Logistic(),
    HuberisedHinge(0.5),
    HuberisedHinge(0.01),
    EpsilonInsensitive(0.1, 0.05, 1.0),
    Squared(1.0),
    SoftmaxLoss(3),
]
RBF = forms.RBF(gamma=1.0).within()


def ball(rng, n, d):
    rows = rng.normal(size=(n, d))
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))


def labels(rng, n, loss):
    return (rng.integers(0, 4, n) if loss.joint else rng.choice([-1.0, 1.0], n)).astype(float)


def proved(matrix, y, loss, penalty, radius=1.0):
    a = solve_gram(matrix, y, loss, penalty, radius)
    facts = constants(loss, radius, penalty, len(matrix))
    assert np.isfinite(a).all()
    assert certified_gram_gradient(matrix, y, loss, penalty, radius, a) <= facts.tolerance
    return a


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("penalty", [0.1, 1e-3])
def test_same_minimiser_as_from_explicit_features(loss, penalty):
    rng = np.random.default_rng(0)
    rows = ball(rng, 150, 3)
    y = labels(rng, 150, loss)
    maps = PolynomialFeatures(3, radius=1.0)
    kernel = forms.Polynomial().within(radius=1.0)
    radius = math.sqrt(maps.squared_bound)
    features = maps(rows)
    a = proved(kernel(rows, rows), y, loss, penalty, radius)
    w = solve(features, y, loss, penalty, radius)
    one = constants(loss, radius, penalty, 150)
    two = constants(loss, radius, penalty, 150, width=20)
    assert np.linalg.norm(features.T @ a - w) <= (one.tolerance + two.tolerance) / penalty
    points = ball(rng, 20, 3)
    apart = np.abs(kernel(points, rows) @ a - maps(points) @ w).max()
    assert apart <= radius * (one.tolerance + two.tolerance) / penalty


@pytest.mark.parametrize("penalty", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_certificate_holds_on_adversarial_matrices(loss, penalty):
    rng = np.random.default_rng(1)
    for n in (1, 2, 40):
        rows = ball(rng, n, 2)
        for matrix in (
            RBF(rows, rows),
            np.ones((n, n)),  # all rows equal
            np.zeros((n, n)),
            np.eye(n),
            RBF(rows[np.zeros(n, dtype=int)], rows[np.zeros(n, dtype=int)]),
            rows @ rows.T * 1e-12,
        ):
            for y in (labels(rng, n, loss), np.ones(n)):
                proved(matrix, y, loss, penalty)


def in_features(rows, a, others, b):
    """Distance in the space of the kernel."""
    both = RBF(np.vstack([rows, others]), np.vstack([rows, others]))
    c = np.concatenate([a, -b]).reshape(len(both), -1)
    return math.sqrt(max(float((c * (both @ c)).sum()), 0.0))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_replacing_one_record_moves_the_model_by_at_most_the_sensitivity(loss):
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(40):
        n, penalty = int(rng.integers(1, 20)), float(10 ** rng.uniform(-3, 1))
        rows = ball(rng, n, 2)
        others, y = rows.copy(), labels(rng, n, loss)
        others[0], other_y = ball(rng, 1, 2), y.copy()
        other_y[0] = rng.integers(0, 4) if loss.joint else -y[0]
        a = solve_gram(RBF(rows, rows), y, loss, penalty, 1.0)
        b = solve_gram(RBF(others, others), other_y, loss, penalty, 1.0)
        facts = constants(loss, 1.0, penalty, n)
        worst = max(worst, in_features(rows, a, others, b) / facts.sensitivity)
    assert worst <= 1
    assert worst > (0.1 if isinstance(loss, Squared) else 0.3)


def test_hinge_attains_the_sensitivity():
    rows = np.zeros((1, 1))
    a = solve_gram(RBF(rows, rows), [1.0], HuberisedHinge(0.1), 4.0, 1.0)
    b = solve_gram(RBF(rows, rows), [-1.0], HuberisedHinge(0.1), 4.0, 1.0)
    exact = constants(HuberisedHinge(0.1), 1.0, 4.0, 1).exact_sensitivity
    assert in_features(rows, a, rows, b) / exact == pytest.approx(1.0, abs=0.01)


def test_descents_reach_the_tolerance_and_starved_ones_are_noticed():
    rng = np.random.default_rng(3)
    rows = ball(rng, 40, 2)
    matrix = RBF(rows, rows)
    space = KernelMatrix(matrix)
    for loss in LOSSES:
        y = labels(rng, 40, loss)
        facts = constants(loss, 1.0, 0.1, 40)
        root = math.sqrt(facts.condition)
        for steps, momentum in (
            (facts.accelerated_steps, (root - 1) / (root + 1)),
            (facts.plain_steps, 0.0),
        ):
            a, ok = erm.certified_descent(space, y[:, None], loss, facts, steps, momentum)
            assert ok
            assert certified_gram_gradient(matrix, y, loss, 0.1, 1.0, a) <= facts.tolerance
            a, ok = erm.certified_descent(space, y[:, None], loss, facts, 2, momentum)
            assert not ok
            assert certified_gram_gradient(matrix, y, loss, 0.1, 1.0, a) > facts.tolerance


def test_coefficients_out_of_bounds_are_never_certified():
    """Far coefficients in the kernel's null space predict nothing, but rounding does not know."""
    matrix = np.ones((2, 2))
    far = np.array([1e8, -1e8])
    assert certified_gram_gradient(matrix, [1.0, -1.0], Logistic(), 1.0, 1.0, far) == math.inf


def test_columns_together_are_as_alone():
    rng = np.random.default_rng(4)
    rows = ball(rng, 80, 2)
    matrix, y = RBF(rows, rows), one_against_rest(rng.integers(0, 4, 80).astype(float), 3)
    together = proved(matrix, y, HuberisedHinge(0.1), 0.01)
    facts = constants(HuberisedHinge(0.1), 1.0, 0.01, 80)
    for j in range(3):
        alone = proved(matrix, y[:, j], HuberisedHinge(0.1), 0.01)
        apart = in_features(rows, alone, rows, together[:, j])
        assert apart <= 2 * facts.tolerance / 0.01


def test_squared_loss_is_kernel_ridge_regression():
    rng = np.random.default_rng(5)
    rows = ball(rng, 100, 2)
    matrix, y = RBF(rows, rows), rng.uniform(-2, 2, 100)
    a = proved(matrix, y, Squared(1.0), 0.01)
    exact = np.linalg.solve(matrix + 0.01 * 100 / 2 * np.eye(100), np.clip(y, -1, 1))
    facts = constants(Squared(1.0), 1.0, 0.01, 100)
    assert in_features(rows, a, rows, exact) <= facts.tolerance / 0.01


def test_a_view_of_a_larger_array_will_do():
    rng = np.random.default_rng(6)
    rows = ball(rng, 30, 2)
    wide = np.column_stack([RBF(rows, rows), rng.normal(size=(30, 7))])
    y = labels(rng, 30, Logistic())
    one = solve_gram(wide[:, :30], y, Logistic(), 0.1, 1.0)
    two = solve_gram(RBF(rows, rows), y, Logistic(), 0.1, 1.0)
    assert np.allclose(one, two, atol=1e-12)


@pytest.mark.parametrize(
    "matrix", [np.ones((2, 3)), np.eye(2, dtype=np.float32), np.ones(2)], ids=["wide", "f4", "1d"]
)
def test_matrices_of_another_shape_or_precision_are_refused(matrix):
    with pytest.raises(ValueError, match="square and of float64"):
        solve_gram(matrix, np.ones(len(matrix)), Logistic(), 1.0, 1.0)


@pytest.mark.slow
def test_five_thousand_rows():
    rng = np.random.default_rng(7)
    rows = ball(rng, 5000, 5)
    matrix = RBF(rows, rows)
    y = np.sign(np.sin(4 * rows[:, 0]) + 0.2 * rng.normal(size=5000))
    for loss in (Logistic(), HuberisedHinge(0.05), Squared(1.0)):
        proved(matrix, y, loss, 1e-4)
