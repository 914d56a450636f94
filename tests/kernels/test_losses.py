"""Losses: values, derivatives and the constants that sensitivities rest on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt.kernels.losses import (
    EpsilonInsensitive,
    HuberisedHinge,
    Logistic,
    SoftmaxLoss,
    Squared,
    one_against_rest,
)

SCALAR = [
    Logistic(),
    HuberisedHinge(0.05),
    HuberisedHinge(0.5),
    HuberisedHinge(2.0),
    EpsilonInsensitive(0.1, 0.05, 1.0),
    EpsilonInsensitive(0.0, 0.5, 1.0),
    EpsilonInsensitive(0.3, 0.1),
    Squared(1.0),
]
GRID = np.linspace(-4, 4, 4001)[:, None]


def labels_of(loss):
    return (-1.0, 1.0) if isinstance(loss, Logistic | HuberisedHinge) else (-1.0, -0.3, 0.0, 1.0)


@pytest.mark.parametrize("loss", SCALAR, ids=str)
def test_derivatives_are_those_of_the_value(loss):
    step = 1e-5
    for label in labels_of(loss):
        y = np.full_like(GRID, label)
        slope = (loss.value(GRID + step, y) - loss.value(GRID - step, y)) / (2 * step)
        assert np.abs(slope - loss.derivative(GRID, y)).max() < 2e-5 * max(1, loss.smoothness)
        bend = (loss.derivative(GRID + step, y) - loss.derivative(GRID - step, y)) / (2 * step)
        wrong = np.abs(bend - loss.curvature(GRID, y)) > 1e-4 * loss.smoothness
        assert wrong.mean() < 0.01  # at the ends of a knee the second derivative jumps


@pytest.mark.parametrize("loss", SCALAR, ids=str)
def test_constants_bound_slope_bend_and_value_at_zero_and_are_attained(loss):
    radius, penalty = 1.0, 1.0
    reach = 4.0 if not isinstance(loss, Squared) else math.sqrt(2) * loss.bound
    scores = np.linspace(-reach, reach, 4001)[:, None]
    slopes, bends, zeros = [], [], []
    for label in labels_of(loss):
        y = np.full_like(scores, label)
        slopes.append(np.abs(loss.derivative(scores, y)).max())
        bends.append(loss.curvature(scores, y).max())
        zeros.append(loss.value(np.zeros((1, 1)), y[:1])[0, 0])
    assert max(slopes) <= loss.lipschitz(radius, penalty) * (1 + 1e-12)
    assert max(slopes) >= 0.98 * loss.lipschitz(radius, penalty)
    assert max(bends) == pytest.approx(loss.smoothness)
    assert max(zeros) <= loss.at_zero + 1e-12
    if math.isfinite(loss.at_zero):  # for a tube it forgets the knee: half of it
        knee = loss.knee if isinstance(loss, EpsilonInsensitive) else 0.0
        assert max(zeros) == pytest.approx(loss.at_zero - knee / 2)


def test_knees_stay_close_to_the_exact_losses():
    hinge = np.maximum(0, 1 - GRID)
    above = HuberisedHinge(0.2).value(GRID, np.ones_like(GRID)) - hinge
    assert above.min() >= -1e-15
    assert above.max() == pytest.approx(0.2 / 4, rel=1e-3)
    tube = np.maximum(0, np.abs(GRID) - 0.5)
    below = tube - EpsilonInsensitive(0.5, 0.2).value(GRID, np.zeros_like(GRID))
    assert below.min() >= -1e-15
    assert below.max() == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize("loss", [Logistic(), HuberisedHinge(0.5)], ids=str)
def test_row_of_no_class_has_no_loss(loss):
    none = np.zeros_like(GRID)
    for part in (loss.value, loss.derivative, loss.curvature):
        assert not part(GRID, none).any()


@pytest.mark.parametrize("loss", SCALAR, ids=str)
def test_wild_labels_and_scores_keep_to_the_constants(loss):
    y = np.array([[1e300], [-1e300], [5e-324], [1e9]])
    with np.errstate(all="ignore"):
        for scores in (np.zeros((4, 1)), np.full((4, 1), 1e8), np.full((4, 1), -1e8)):
            assert np.isfinite(loss.derivative(scores, y)).all()
            if not isinstance(loss, Squared):
                assert np.abs(loss.derivative(scores, y)).max() <= 1
    assert np.abs(loss.derivative(np.zeros((4, 1)), y)).max() <= loss.lipschitz(1.0, 1.0)


def test_softmax_derivatives_norm_and_bend():
    loss, rng = SoftmaxLoss(4), np.random.default_rng(0)
    f = 3 * rng.normal(size=(200, 4))
    y = rng.integers(0, 6, size=(200, 1)).astype(float)  # 0 and 5 are no class
    step = 1e-6
    for column in range(4):
        move = step * np.eye(4)[column]
        slope = (loss.value(f + move, y) - loss.value(f - move, y)) / (2 * step)
        assert np.allclose(slope, loss.derivative(f, y)[:, column], atol=1e-8)
    state, direction = loss.curvature(f, y), rng.normal(size=f.shape)
    turn = (loss.derivative(f + step * direction, y) - loss.derivative(f, y)) / step
    assert np.allclose(turn, loss.curve(state, direction), atol=1e-4)
    ratio = np.linalg.norm(loss.curve(state, direction), axis=1) / np.linalg.norm(direction, axis=1)
    assert ratio.max() <= loss.smoothness
    unknown = np.isin(y[:, 0], (0, 5))
    assert unknown.any()
    assert not loss.derivative(f, y)[unknown].any()
    assert not loss.value(f, y)[unknown].any()
    far = loss.derivative(np.array([[-50.0, 50.0, 0.0, 0.0]]), np.array([[1.0]]))
    assert np.linalg.norm(far) == pytest.approx(loss.lipschitz(1, 1))  # sqrt(2) is attained
    assert loss.value(np.zeros((1, 4)), np.ones((1, 1)))[0] == pytest.approx(loss.at_zero)


def test_one_against_rest_signs():
    signs = one_against_rest(np.array([1.0, 3.0, 0.0, 7.0, 1.5]), 3)
    assert signs.tolist() == [[1, -1, -1], [-1, -1, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("bound", [math.inf, 0.0, -1.0, math.nan])
def test_squared_loss_needs_clamped_labels(bound):
    with pytest.raises(ValueError, match="bound must be a positive, finite number"):
        Squared(bound)


@pytest.mark.parametrize(
    "make",
    [
        lambda: HuberisedHinge(0.0),
        lambda: EpsilonInsensitive(-1.0),
        lambda: EpsilonInsensitive(knee=0.0),
        lambda: EpsilonInsensitive(bound=0.0),
        lambda: SoftmaxLoss(1),
    ],
)
def test_parameters_without_sense_are_refused(make):
    with pytest.raises(ValueError, match="must be"):
        make()
