"""The known-noise descent: its coordinates, its response, its plan, its run."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt.learning.descent import (
    Geometry,
    affordable_step,
    descend,
    predicted_noise,
    response,
    within,
)

RNG = np.random.default_rng


@pytest.mark.parametrize("horizon", [0.5, 8.0, 90.0])
@pytest.mark.parametrize("steps", [1, 4, 101])
def test_response_is_what_a_descent_does(horizon, steps):
    curvature = np.array([0.0, 1e-13, 0.01, 0.4, 1.0]) * min(1.0, steps / horizon)
    known = response(curvature, horizon, steps)
    start, step = np.zeros(len(curvature)), horizon / steps
    ends = descend(lambda w: curvature * (w - 1), start, step, steps)
    np.testing.assert_allclose(1 - known.unlearned, ends, atol=1e-12)
    # noise enters linearly: its variance is the sum of squares of the answers to unit impulses
    squares = np.zeros(len(curvature))
    for at in range(steps):
        clock = iter(range(steps))

        def impulse(w, at=at, clock=clock):
            return curvature * w + (next(clock) == at)

        squares += descend(impulse, start, step, steps) ** 2
    np.testing.assert_allclose(known.noise, squares, rtol=1e-9)


def test_response_matches_the_noise_of_a_real_descent():
    rng, curvature = RNG(0), np.array([0.02, 0.3, 1.0])

    def gradient(w):
        return curvature * w + rng.normal(size=3)

    draws = np.array([descend(gradient, np.zeros(3), 0.5, 40) for _ in range(4000)])
    ratio = draws.var(axis=0) / response(curvature, 20.0, 40).noise
    assert np.all(np.abs(ratio - 1) < 5 * math.sqrt(2 / 4000))


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_geometry_has_public_mean_square_norm_one_and_maps_back(power):
    rows = RNG(1).normal(size=(500, 3)) * [1, 5, 0.1] + [3, 0, -1]
    geometry = Geometry.of(rows, power=power, constant=0.5)
    Z, W = geometry.features(rows), RNG(2).normal(size=(4, 2))
    assert np.mean(np.sum(Z**2, axis=1)) == pytest.approx(1.0)
    outer = geometry.coefficients(W)
    np.testing.assert_allclose(Z @ W, rows @ outer[:-1] + outer[-1], atol=1e-10)


def test_geometry_of_constant_columns_is_finite():
    geometry = Geometry.of(np.ones((5, 2)), power=1.0, constant=1.0)
    assert np.isfinite(geometry.features(np.ones((2, 2)))).all()


def test_predicted_noise_is_that_of_the_recursion():
    rng = np.random.default_rng(0)
    h, g, T = np.array([0.0, 0.5, 2.0]), np.array([0.3, 0.2, 0.4]), 9
    v, kept = np.zeros((40_000, 3)), []
    for t in range(T):
        v = (1 - g * h) * v - g * rng.normal(size=v.shape)
        if t >= T - 5:
            kept.append(v)
    np.testing.assert_allclose(
        np.var(np.mean(kept, axis=0), axis=0), predicted_noise(h, g, T), rtol=0.03
    )


def test_response_sums_up_what_a_prediction_is_off_by():
    known = response(np.array([0.5, 1.0]), horizon=2.0, steps=8)
    energy = np.array([0.3, 0.7])
    assert known.left(energy) == pytest.approx(np.sum(energy * known.unlearned**2))
    assert known.gathered(energy) == pytest.approx(np.sum(energy * known.noise))
    learned = (1 - known.unlearned) ** 2 / known.curvature
    assert known.sampled(energy) == pytest.approx(np.sum(energy * learned))


def test_guessed_shares_of_a_shift_add_up_and_follow_the_axes():
    rows = RNG(1).normal(size=(400, 3)) * [1, 5, 0.1]
    geometry = Geometry.of(rows, power=0.5, constant=1.0)
    shares = geometry.axis_shares(0.4)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[-1] == 0.4
    np.testing.assert_allclose(
        shares[:-1] / shares[0], np.sqrt(geometry.variances / geometry.variances[0])
    )
    Z = geometry.features(rows)
    moment = Z.T @ Z / len(Z)
    vectors = np.linalg.eigh(moment)[1]
    assert geometry.shift_shares(moment, vectors, 0.4).sum() == pytest.approx(1.0)


def test_a_step_is_as_long_as_its_noise_allows():
    assert affordable_step(lambda step: 0.0, 1.0, longest=3.0) == 3.0
    step = affordable_step(lambda step: step**2, 1.0, longest=3.0)
    assert 0.8 < step <= 1.0
    assert affordable_step(lambda step: math.inf, 1.0, longest=1.0) == pytest.approx(0.8**100)


def test_a_projected_descent_stays_in_its_ball():
    found = descend(lambda w: w - 3, np.zeros(2), 0.5, 50, last=1, project=within(1.0))
    np.testing.assert_allclose(found, [math.sqrt(0.5)] * 2, rtol=1e-9)


def test_the_start_is_not_written_to():
    start = np.ones(2)
    assert descend(lambda w: w, start, 0.1, 4).shape == (2,)
    assert (start == 1).all()
