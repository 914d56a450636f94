"""The objectives F and J, their gradients, their bounds, and the profile over u."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dpadapt.papers.reweighting.general_adaptation import GeneralAdaptation
from dpadapt.papers.reweighting.objective import (
    ConvexPenalty,
    LogisticLoss,
    SmoothPenalty,
    SquaredLoss,
    gradient_bounds,
    loss_gradients,
    profile_weights,
    reference_weights,
)
from dpadapt.papers.reweighting.queries import JOINT_SQUARED
from dpadapt.privacy import Cleaning

LOSSES = [SquaredLoss(), LogisticLoss(), LogisticLoss(4)]
LENGTH, NORM = 1.5, 2.0


def _labels(loss, rng, n):
    return (
        rng.uniform(-1, 1, n)
        if isinstance(loss, SquaredLoss)
        else rng.integers(-1, loss.n_classes, n).astype(float)
    )


def _rows(rng, n, d):
    return Cleaning(radius=LENGTH)(3 * rng.normal(size=(n, d)), None)[0]


def _coefficients(loss, rng, d):
    shape = (d, loss.n_classes) if getattr(loss, "n_classes", 2) > 2 else (d,)
    w = rng.normal(size=shape)
    return w * NORM / np.linalg.norm(w)


def _difference(function, at, step=1e-6):
    out = np.zeros(at.size)
    for i in range(at.size):
        move = np.zeros(at.size)
        move[i] = step
        move = move.reshape(at.shape)
        out[i] = (function(at + move) - function(at - move)) / (2 * step)
    return out.reshape(at.shape)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_stay_within_their_bounds(loss):
    rng = np.random.default_rng(0)
    B, G, beta = loss.bound(LENGTH, NORM), loss.lipschitz(LENGTH, NORM), loss.smoothness(LENGTH)
    seen_value, seen_slope, seen_curve = 0.0, 0.0, 0.0
    for _ in range(300):
        X, w = _rows(rng, 30, 2), _coefficients(loss, rng, 2)
        # rows along the coefficients are worst
        X[:10] = (
            LENGTH
            * (w if w.ndim == 1 else np.linalg.svd(w)[0][:, 0])
            / (NORM if w.ndim == 1 else 1)
            * rng.choice([-1, 1], (10, 1))
        )
        y = _labels(loss, rng, 30)
        if isinstance(loss, SquaredLoss):
            y[:10] = rng.choice([-1, 1], 10)
        values, residual = loss.value(X @ w, y), loss.residual(X @ w, y)
        assert (values >= 0).all()
        slopes = np.linalg.norm(residual.reshape(30, -1), axis=1) * np.linalg.norm(X, axis=1)
        other = w + 1e-4 * rng.normal(size=w.shape)
        change = (loss.residual(X @ other, y) - residual).reshape(30, -1)
        curve = np.linalg.norm(change, axis=1) * np.linalg.norm(X, axis=1)
        seen_value, seen_slope = max(seen_value, values.max()), max(seen_slope, slopes.max())
        seen_curve = max(seen_curve, float((curve / np.linalg.norm(other - w)).max()))
    assert seen_value <= B * (1 + 1e-9)
    assert seen_slope <= G * (1 + 1e-9)
    assert seen_curve <= beta * (1 + 1e-3)
    assert seen_value > 0.6 * B
    assert seen_slope > 0.6 * G


@pytest.mark.parametrize("loss", LOSSES)
def test_residual_is_the_derivative_and_a_row_of_no_class_counts_nothing(loss):
    rng = np.random.default_rng(1)
    w, X, y = _coefficients(loss, rng, 3), _rows(rng, 6, 3), _labels(loss, rng, 6)
    u = rng.uniform(1, 5, 6)

    def total(v):
        return float((loss.value(X @ v, y) / u).sum())

    by_w, by_u = loss_gradients(loss, X, y, w, u)
    np.testing.assert_allclose(by_w, _difference(total, w), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(by_u, loss.value(X @ w, y) / u**2)
    if not isinstance(loss, SquaredLoss):
        none = np.full(6, -1.0)
        assert not loss.value(X @ w, none).any()
        assert not loss.residual(X @ w, none).any()


def test_the_paper_s_bound_on_logistic_loss_is_wrong():
    """G Lambda is exceeded at w = 0, where the loss is log 2."""
    loss, small = LogisticLoss(), 0.1
    assert loss.value(np.zeros(1), np.ones(1))[0] > loss.lipschitz(1.0, small) * small
    assert loss.value(np.zeros(1), np.ones(1))[0] <= loss.bound(1.0, small)


def _penalties(reference):
    yield ConvexPenalty(reference, (0.7, 0.4, 0.2))
    yield SmoothPenalty(reference, (0.7, 0.4, 0.2), sharpness=20.0)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_gradients_by_u(which, alpha):
    rng = np.random.default_rng(2)
    reference = reference_weights(4, 5, alpha)
    penalty = list(_penalties(reference))[which]
    u = rng.uniform(1, 3, len(reference)) / reference
    z = rng.uniform(0, 2, len(u))
    exact = penalty.gradient(u) - z / u**2
    np.testing.assert_allclose(
        exact, _difference(lambda v: penalty.value(z, v), u, 1e-5), rtol=1e-5, atol=1e-9
    )


def test_f_is_jointly_convex_and_j_is_not():
    rng = np.random.default_rng(3)
    X, y = _rows(rng, 6, 2), rng.uniform(-1, 1, 6)
    penalty = ConvexPenalty(reference_weights(3, 3, 0.4), (0.5, 0.3, 0.2))
    offset = np.array([0.3] * 3 + [0.0] * 3)

    def F(w, u, form=penalty):
        return form.value(SquaredLoss().value(X @ w, y) + offset, u)

    floor, gaps = 1 / penalty.reference, []
    concave = SmoothPenalty(penalty.reference, (5.0, 0.0, 0.0), 1.0)
    for _ in range(500):
        ends = [(rng.normal(size=2), floor * rng.uniform(1, 4, 6)) for _ in range(2)]
        middle = [(a + b) / 2 for a, b in zip(*ends, strict=True)]
        for form in (penalty, concave):
            gaps.append((F(*ends[0], form) + F(*ends[1], form)) / 2 - F(*middle, form))
    assert min(gaps[::2]) >= -1e-12
    assert min(gaps[1::2]) < -1e-3  # the same test sees a function that is not convex


def test_the_tangent_bound():
    rng = np.random.default_rng(4)
    p = reference_weights(3, 4, 0.4)
    for _ in range(100):
        u = rng.uniform(1, 5, 7) / p
        assert p**2 @ u - 1 >= 1 - (1 / u).sum() - 1e-12
    assert p**2 @ (1 / p) - 1 == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.9, 1.0])
def test_lemma_1(alpha):
    rng = np.random.default_rng(5)
    m, n, kappa = 6, 9, (0.5, 0.3, 0.7)
    B, G = SquaredLoss().bound(LENGTH, NORM), SquaredLoss().lipschitz(LENGTH, NORM)
    public, private = gradient_bounds(m, n, alpha, B, kappa)
    penalty = ConvexPenalty(reference_weights(m, n, alpha), kappa)
    m0, worst = (m if alpha > 0 else 0), np.zeros(3)
    for trial in range(300):
        size = len(penalty.reference)
        X, w = _rows(rng, size, 2), _coefficients(SquaredLoss(), rng, 2)
        y, d = rng.uniform(-1, 1, size), rng.uniform(0, B)
        if trial % 3 == 0:  # every loss at its largest
            X[:], y[:], d = LENGTH * w / NORM, -1.0, B
        u = rng.uniform(1, 1 + (trial % 2), size) / penalty.reference
        by_w, by_u = loss_gradients(SquaredLoss(), X, y, w, u)
        by_u = penalty.gradient(u) - by_u
        by_u[:m0] -= d / u[:m0] ** 2
        worst = np.maximum(worst, [np.linalg.norm(v) for v in (by_w, by_u[:m0], by_u[m0:])])
    assert worst[0] <= G * (1 + 1e-12)
    assert worst[0] > 0.99 * G
    assert worst[1] <= public * (1 + 1e-12)
    assert worst[2] <= private * (1 + 1e-12)


def test_profile_is_the_minimum_over_u():
    rng = np.random.default_rng(6)
    p, kappa = reference_weights(3, 4, 0.6), 0.3
    penalty = ConvexPenalty(p, (kappa, 0.0, 0.0))
    for _ in range(10):
        z = rng.uniform(0, 2, 7) * rng.integers(0, 2, 7)
        found = minimize(  # in s = p u >= 1
            lambda s, z=z: penalty.value(z, s / p), np.full(7, 2.0), bounds=[(1, None)] * 7,
            jac=lambda s, z=z: (penalty.gradient(s / p) - z * p**2 / s**2) / p, tol=1e-12,
        )  # fmt: skip
        value, q = profile_weights(z, p, kappa)
        assert value == pytest.approx(found.fun, abs=1e-7)
        assert penalty.value(z, 1 / q) == pytest.approx(value, abs=1e-12)
        # envelope: the weights are the derivative of the profile by the losses
        slope = _difference(lambda v: profile_weights(v, p, kappa)[0], z + 1e-3, 1e-6)
        np.testing.assert_allclose(slope, profile_weights(z + 1e-3, p, kappa)[1], rtol=1e-4)


def test_profiled_private_gradients_are_short():
    rng = np.random.default_rng(7)
    n, kappa, r = 5, 0.05, LENGTH
    X, w, y = _rows(rng, 5000, 3), _coefficients(SquaredLoss(), rng, 3), rng.uniform(-1, 1, 5000)
    z = SquaredLoss().value(X @ w, y)
    q = profile_weights(z, np.full(5000, 1 / n), kappa)[1]
    lengths = np.linalg.norm(X * (q * SquaredLoss().residual(X @ w, y))[:, None], axis=1)
    assert lengths.max() <= 2 * math.sqrt(kappa) * r / n * (1 + 1e-9)
    assert lengths.max() > 1.9 * math.sqrt(kappa) * r / n


def test_softmax_smoothing_is_close_to_the_largest_weight():
    m, n = 50, 70
    p = reference_weights(m, n, 0.5)
    public = np.zeros((m, 1)), np.zeros(m)  # the sharpness that Algorithm 2 takes by itself
    sharp = GeneralAdaptation(*public, 2, strengths=(0.0, 0.0, 1.0))._penalty(n)
    error = sharp.value(np.zeros(m + n), 1 / p) - p.max()
    assert 0 <= error <= 0.1 / m
    printed = SmoothPenalty(p, (0.0, 0.0, 1.0), math.sqrt(m + n))
    assert printed.value(np.zeros(m + n), 1 / p) - p.max() > 10 * p.max()


@pytest.mark.parametrize("strengths", [(0.0, 0.0, 0.0), (9.0, 0.0, 0.0), (0.1, 3.0, 2.0)])
def test_smoothness_by_u_bounds_the_hessian(strengths):
    rng = np.random.default_rng(8)
    m, n, B = 3, 4, 1.3
    p = reference_weights(m, n, 0.5)
    penalty, worst = SmoothPenalty(p, strengths, 12.0), 0.0
    for trial in range(40):
        u = (rng.uniform(1, 2, 7) if trial else np.ones(7)) / p
        z = rng.uniform(0, B, 7) * (trial % 2) + np.array([B] * m + [0.0] * n) * (trial % 3 == 0)

        def slope(v, z=z):
            return penalty.gradient(v) - z / v**2

        step = 1e-4
        moves = step * np.eye(7)
        hessian = [(slope(u + e) - slope(u - e)) / (2 * step) for e in moves]
        worst = max(worst, float(np.linalg.norm(np.array(hessian), 2)))
    assert worst <= penalty.smoothness(B) * (1 + 1e-6)
    assert worst > 0.2 * penalty.smoothness(B)


def test_joint_sensitivity_of_the_two_gradients():
    """Root 1.2862 in units of s_1 and s_2: attained and not exceeded."""
    rng = np.random.default_rng(9)
    loss, n, alpha = SquaredLoss(), 4, 0.3
    a = (1 - math.sqrt(0.5)) / 2  # the residual of the replacement, over the largest
    r, reach = 1.0, (1 - a) / (1 + a)
    G, B = loss.lipschitz(r, reach), loss.bound(r, reach)
    s1, s2 = 2 * (1 - alpha) * G / n, (1 - alpha) ** 2 * B / n**2
    worst = np.zeros(3)
    for trial in range(4000):
        w = rng.normal(size=2)
        w *= reach / np.linalg.norm(w)
        X, y = _rows(rng, n, 2) / LENGTH, rng.uniform(-1, 1, n)
        u = n / (1 - alpha) * rng.uniform(1, 1 + trial % 2, n)
        X2, y2 = X.copy(), y.copy()
        X2[0], y2[0] = _rows(rng, 1, 2)[0] / LENGTH, rng.uniform(-1, 1)
        if trial % 4 == 0:
            X[0], X2[0], y[0], y2[0] = w / reach, -w / reach, -1.0, -1.0
        one, two = (loss_gradients(loss, rows, labels, w, u) for rows, labels in ((X, y), (X2, y2)))
        move = np.linalg.norm(one[0] - two[0]) / s1, np.linalg.norm(one[1] - two[1]) / s2
        worst = np.maximum(worst, [*move, math.hypot(*move)])
    assert (worst[:2] <= 1 + 1e-12).all()
    assert worst[2] == pytest.approx(JOINT_SQUARED, rel=1e-9)
    assert worst[2] ** 2 == pytest.approx(1.28615, abs=1e-5)
