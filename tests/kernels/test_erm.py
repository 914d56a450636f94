"""Certified minimisers from explicit features: sensitivity, certificate, bad data."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import sparse

from dpadapt.kernels import erm
from dpadapt.kernels.constants import Constants, constants
from dpadapt.kernels.erm import certified_gradient, solve
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
    EpsilonInsensitive(0.0, 0.2),
    Squared(1.0),
    SoftmaxLoss(3),
]


def ball(rng, n, d, radius=1.0):
    rows = rng.normal(size=(n, d))
    return radius * rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))


def labels(rng, rows, loss):
    if loss.joint:
        return rng.integers(0, 4, len(rows)).astype(float)
    return np.sign(rows @ rng.normal(size=rows.shape[1]) + 0.3 * rng.normal(size=len(rows)))


def proved(features, y, loss, penalty, radius=1.0):
    """Weights, after a check of their certificate in arithmetic of its own (long double)."""
    w = solve(features, y, loss, penalty, radius)
    facts = constants(loss, radius, penalty, len(features), width=features.shape[1])
    assert np.isfinite(w).all()
    assert certified_gradient(features, y, loss, penalty, radius, w) <= facts.tolerance
    wide = np.asarray(features, dtype=np.longdouble)
    c = np.asarray(w, dtype=np.longdouble).reshape(features.shape[1], -1)
    target = np.asarray(y, dtype=np.float64).reshape(len(features), -1)
    slopes = loss.derivative(np.asarray(wide @ c, dtype=np.float64), target)
    gradient = wide.T @ slopes.astype(np.longdouble) / len(features) + penalty * c
    norms = np.linalg.norm(np.asarray(gradient, dtype=np.float64), axis=None if loss.joint else 0)
    assert np.max(norms) <= facts.tolerance
    return w


def adversarial(rng):
    for n, d in ((1, 1), (1, 5), (2, 1), (40, 3), (20, 60)):
        rows = ball(rng, n, d)
        yield rows
        yield np.repeat(rows[:1], n, axis=0)  # all equal
        yield rows[rng.integers(0, max(1, n // 10), n)]  # duplicated
        yield np.zeros((n, d))
        yield rows * 10.0 ** rng.integers(-12, 1, size=(n, 1))  # of all sizes


@pytest.mark.parametrize("penalty", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_certificate_holds_on_adversarial_data(loss, penalty):
    rng = np.random.default_rng(1)
    for rows in adversarial(rng):
        conflicting = (
            1.0 + np.arange(len(rows)) % 2 if loss.joint else (-1.0) ** np.arange(len(rows))
        )
        for y in (labels(rng, rows, loss), np.ones(len(rows)), conflicting):
            proved(rows, y, loss, penalty)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_minimiser_is_no_longer_than_its_two_bounds(loss):
    rng = np.random.default_rng(2)
    for penalty in (10.0, 0.1, 1e-3):
        rows = ball(rng, 60, 4)
        w = proved(rows, labels(rng, rows, loss), loss, penalty)
        facts = constants(loss, 1.0, penalty, 60, width=4)
        slack = facts.tolerance / penalty
        assert np.linalg.norm(w) <= facts.lipschitz / penalty + slack
        assert np.linalg.norm(w) <= math.sqrt(2 * loss.at_zero / penalty) + slack
        assert facts.norm_bound == min(
            facts.lipschitz / penalty, math.sqrt(2 * loss.at_zero / penalty)
        )


def neighbours(rng, loss, n, d, radius=1.0):
    rows = ball(rng, n, d, radius)
    y = labels(rng, rows, loss)
    other, other_y = rows.copy(), y.copy()
    other[0] = -rows[0] if rng.random() < 0.5 else ball(rng, 1, d, radius)
    if loss.joint:
        other_y[0] = rng.integers(0, 4)
    else:
        other_y[0] = -y[0] if rng.random() < 0.5 else 100 * rng.normal()
    return (rows, y), (other, other_y)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_replacing_one_record_moves_the_weights_by_at_most_the_sensitivity(loss):
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(60):
        n, penalty = int(rng.integers(1, 30)), float(10 ** rng.uniform(-3, 1))
        one, other = neighbours(rng, loss, n, 3)
        moved = solve(*one, loss, penalty, 1.0) - solve(*other, loss, penalty, 1.0)
        facts = constants(loss, 1.0, penalty, n, width=3)
        worst = max(worst, float(np.linalg.norm(moved)) / facts.sensitivity)
    assert worst <= 1
    assert worst > (0.05 if isinstance(loss, Squared) else 0.2)  # the test is not empty


@pytest.mark.parametrize("loss", [HuberisedHinge(0.5), HuberisedHinge(0.01)], ids=str)
def test_hinge_attains_the_sensitivity(loss):
    rows = np.array([[0.6, 0.8]])
    moved = solve(rows, [1.0], loss, 4.0, 1.0) - solve(rows, [-1.0], loss, 4.0, 1.0)
    exact = constants(loss, 1.0, 4.0, 1, width=2).exact_sensitivity
    assert np.linalg.norm(moved) / exact == pytest.approx(1.0, abs=0.01)
    # so constants that forget the 2, or take R or L at 0.7 of what it is, are refuted
    assert np.linalg.norm(moved) > 0.7 * exact * 1.01


def test_logistic_comes_to_half_of_the_sensitivity():
    rows = np.ones((1, 1))
    moved = solve(rows, [1.0], Logistic(), 1e3, 1.0) - solve(rows, [-1.0], Logistic(), 1e3, 1.0)
    exact = constants(Logistic(), 1.0, 1e3, 1, width=1).exact_sensitivity
    assert float(np.abs(moved[0])) / exact == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("classes", [2, 5, 10])
def test_one_against_rest_moves_by_root_k_and_no_more(classes):
    """All k models move if a record goes to the other side: one Delta would be too little."""
    loss, rows, y = HuberisedHinge(0.1), np.array([[1.0, 0.0]]), one_against_rest([1.0], classes)
    moved = solve(rows, y, loss, 4.0, 1.0) - solve(-rows, y, loss, 4.0, 1.0)
    one = constants(loss, 1.0, 4.0, 1, width=2)
    joint = constants(loss, 1.0, 4.0, 1, width=2, columns=classes)
    assert moved.shape == (2, classes)
    assert np.linalg.norm(moved) > 1.4 * one.sensitivity * (1 - 0.02)
    assert np.linalg.norm(moved) <= joint.sensitivity
    assert np.linalg.norm(moved) == pytest.approx(joint.exact_sensitivity, rel=0.01)


@pytest.mark.parametrize("classes", [2, 5, 20])
def test_softmax_moves_by_at_most_two_root_two_whatever_the_classes(classes):
    rng, loss = np.random.default_rng(4), SoftmaxLoss(classes)
    worst = 0.0
    for penalty in (0.02, 1.0, 100.0):
        facts = constants(loss, 1.0, penalty, 2, width=2)
        assert facts.exact_sensitivity == pytest.approx(2 * math.sqrt(2) / (2 * penalty))
        for _ in range(20):
            rows, y = ball(rng, 2, 2), rng.integers(1, classes + 1, 2).astype(float)
            other, other_y = rows.copy(), y.copy()
            other[0] = -rows[0]
            other_y[0] = rng.integers(0, classes + 1)
            moved = solve(rows, y, loss, penalty, 1.0) - solve(other, other_y, loss, penalty, 1.0)
            worst = max(worst, float(np.linalg.norm(moved)) / facts.sensitivity)
    assert 0.3 < worst <= 1


@pytest.mark.parametrize("loss", [Logistic(), HuberisedHinge(0.2), Squared(1.0)], ids=str)
def test_scaling_features_changes_nothing_that_is_released(loss):
    """phi -> c phi, lambda -> c^2 lambda is the same problem, with the same noise."""
    rng = np.random.default_rng(5)
    rows = ball(rng, 50, 3)
    y = labels(rng, rows, loss)
    base = constants(loss, 1.0, 0.1, 50, width=3)
    w = solve(rows, y, loss, 0.1, 1.0)
    for c in (0.01, 100.0):
        facts = constants(loss, c, 0.1 * c**2, 50, width=3)
        assert facts.sensitivity * c == pytest.approx(base.sensitivity)
        assert facts.norm_bound * c == pytest.approx(base.norm_bound)
        assert facts.accelerated_steps == base.accelerated_steps
        scaled = solve(c * rows, y, loss, 0.1 * c**2, c)
        assert np.allclose(c * rows @ scaled, rows @ w, atol=2 * base.tolerance / 0.1)


def test_no_iterations_would_be_noticed():
    """A loop starved of steps leaves a gradient that the certificate refuses."""
    rng = np.random.default_rng(6)
    rows, loss = ball(rng, 200, 5), Logistic()
    y = labels(rng, rows, loss)
    facts = constants(loss, 1.0, 1e-3, 200, width=5)
    for momentum in (0.0, 0.9):
        w, ok = erm.certified_descent(erm.Explicit(rows), y[:, None], loss, facts, 5, momentum)
        assert not ok
        assert certified_gradient(rows, y, loss, 1e-3, 1.0, w[:, 0]) > facts.tolerance
    far = np.full(5, 1e9)
    assert certified_gradient(rows, y, loss, 1e-3, 1.0, far) == math.inf


def never(space, y, loss, facts):
    return np.zeros((space.size, loss.columns(y))), False


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_descents_reach_the_tolerance_in_the_public_number_of_steps(loss, monkeypatch):
    """Without Newton's steps, and each of the two descents alone."""
    rng = np.random.default_rng(7)
    rows = ball(rng, 40, 3)
    rows[:10] = rows[0]
    y = labels(rng, rows, loss).reshape(-1, 1)
    facts = constants(loss, 1.0, 0.1, 40, width=3)
    root = math.sqrt(facts.condition)
    space = erm.Explicit(rows)
    for steps, momentum in (
        (facts.accelerated_steps, (root - 1) / (root + 1)),
        (facts.plain_steps, 0.0),
    ):
        w, ok = erm.certified_descent(space, y, loss, facts, steps, momentum)
        assert ok
        assert certified_gradient(rows, y[:, 0], loss, 0.1, 1.0, w) <= facts.tolerance
    fast = solve(rows, y[:, 0], loss, 0.1, 1.0)
    monkeypatch.setattr(erm, "_newton_from_softer", never)
    slow = solve(rows, y[:, 0], loss, 0.1, 1.0)
    assert np.linalg.norm(fast - slow) <= 2 * facts.tolerance / 0.1


def test_columns_are_solved_as_if_alone_also_by_the_descents(monkeypatch):
    rng = np.random.default_rng(8)
    rows = ball(rng, 60, 4)
    y = one_against_rest(rng.integers(0, 4, 60).astype(float), 3)
    facts = constants(Logistic(), 1.0, 0.05, 60, width=4)
    for _ in range(2):
        together = solve(rows, y, Logistic(), 0.05, 1.0)
        assert certified_gradient(rows, y, Logistic(), 0.05, 1.0, together) <= facts.tolerance
        for j in range(3):
            alone = solve(rows, y[:, j], Logistic(), 0.05, 1.0)
            assert np.linalg.norm(alone - together[:, j]) <= 2 * facts.tolerance / 0.05
        monkeypatch.setattr(erm, "_newton_from_softer", never)


def test_rounding_floor_is_part_of_the_public_tolerance():
    plain = constants(Logistic(), 1.0, 0.1, 1000, width=10)
    assert plain.tolerance == pytest.approx(0.005 * 2 / 1000)
    assert plain.rounding < 1e-3 * plain.tolerance
    assert plain.sensitivity == pytest.approx(1.01 * plain.exact_sensitivity)
    steep = constants(HuberisedHinge(1e-4), 1.0, 1e-6, 10**6, width=4000)
    assert steep.tolerance == 4 * steep.rounding > 0.005 * 2 / 10**6
    assert steep.sensitivity > 1.01 * steep.exact_sensitivity


def test_rounding_bound_covers_what_is_lost():
    """Gradients in float64 against long double: never off by more than rho."""
    rng = np.random.default_rng(9)
    loss, penalty = HuberisedHinge(1e-3), 1e-5
    rows = ball(rng, 3000, 40)
    y = labels(rng, rows, loss)[:, None]
    facts = constants(loss, 1.0, penalty, 3000, width=40)
    space = erm.Explicit(rows)
    for _ in range(20):
        w = rng.normal(size=(40, 1))
        w *= 2 * facts.norm_bound / np.linalg.norm(w)
        g = space.lift(loss.derivative(space.scores(w), y) / 3000) + penalty * w
        wide = rows.astype(np.longdouble)
        scores = wide @ w.astype(np.longdouble)
        slopes = -y * np.clip((1 - y * scores) / np.longdouble(2e-3) + 0.5, 0, 1)
        exact = wide.T @ slopes / 3000 + np.longdouble(penalty) * w
        assert float(np.linalg.norm((g - exact).astype(float))) <= facts.rounding


def test_wide_features_and_sparse_rows():
    rng = np.random.default_rng(10)
    rows = ball(rng, 30, 500) * (rng.random((30, 500)) < 0.05)
    y = labels(rng, rows, Logistic())
    dense = proved(rows, y, Logistic(), 1e-3)
    thin = solve(sparse.csr_matrix(rows), y, Logistic(), 1e-3, 1.0)
    facts = constants(Logistic(), 1.0, 1e-3, 30, width=500)
    assert np.linalg.norm(dense - thin) <= 2 * facts.tolerance / 1e-3
    tall = sparse.csr_matrix(rows.T)
    y = labels(rng, rows.T, Logistic())
    w = solve(tall, y, Logistic(), 1e-3, 6.0)
    assert certified_gradient(tall, y, Logistic(), 1e-3, 6.0, w) <= 0.01 * 6 / 500


def test_quadratic_problem_is_solved_like_ridge_regression():
    rng = np.random.default_rng(11)
    rows = ball(rng, 300, 6)
    y = rng.uniform(-3, 3, 300)
    clamped = np.clip(y, -1, 1)
    expected = np.linalg.solve(
        rows.T @ rows * 2 / 300 + 0.01 * np.eye(6), rows.T @ clamped * 2 / 300
    )
    assert np.allclose(solve(rows, y, Squared(1.0), 0.01, 1.0), expected, atol=1e-9)


def test_single_precision_is_computed_in_double():
    rng = np.random.default_rng(12)
    rows = ball(rng, 50, 3).astype(np.float32)
    y = labels(rng, rows, Logistic())
    assert np.array_equal(
        solve(rows, y, Logistic(), 0.1, 1.0), solve(rows.astype(float), y, Logistic(), 0.1, 1.0)
    )


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"penalty": 0.0}, "penalty must be a positive"),
        ({"penalty": math.inf}, "penalty must be a positive"),
        ({"radius": -1.0}, "radius must be a positive"),
        ({"y": np.ones(3)}, "one label for each of 4 rows"),
        ({"features": np.ones((0, 2)), "y": np.ones(0)}, "rows must be"),
    ],
)
def test_public_mistakes_are_named(change, match):
    call = {"features": np.ones((4, 2)), "y": np.ones(4), "loss": Logistic()}
    call |= {"penalty": 1.0, "radius": 1.5}
    with pytest.raises(ValueError, match=match):
        solve(**(call | change))


def test_constants_depend_on_nothing_private():
    fields = {field.name for field in dataclasses.fields(Constants)}
    assert fields == {
        *("lipschitz", "smoothness", "radius", "penalty", "rows", "columns", "norm_bound"),
        *("rounding", "tolerance"),
    }


@pytest.mark.slow
def test_hundred_thousand_rows():
    rng = np.random.default_rng(13)
    rows = ball(rng, 100_000, 100)
    y = labels(rng, rows, Logistic())
    w = solve(rows, y, Logistic(), 1e-4, 1.0)
    facts = constants(Logistic(), 1.0, 1e-4, 100_000, width=100)
    assert certified_gradient(rows, y, Logistic(), 1e-4, 1.0, w) <= facts.tolerance
    assert facts.tolerance == pytest.approx(0.005 * 2 / 100_000)
