"""Pieces of the private step of regression: what a histogram says, what is kept, long rows."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from dpadapt import AutoRegressor, Private
from dpadapt.auto.auto_regressor import ErrorQuantiles
from dpadapt.auto.regression_inference import (
    CELLS,
    SLOPE_SHIFTS,
    SPIKE,
    ErrorShapes,
    LineSearch,
    descent_rows,
    posterior_shrinkage,
)
from dpadapt.auto.regression_step import NoHarm
from dpadapt.privacy import Cleaning
from dpadapt.privacy.statistics.forms import shrunk_rows

RNG = np.random.default_rng(0)
ERRORS = RNG.standard_t(5, size=4000)
ERRORS /= np.abs(ERRORS).mean()
SHAPES = ErrorShapes.of(ERRORS, optimism=0.0)


def shares(errors):
    cells = np.searchsorted(CELLS, errors)
    return np.bincount(cells, minlength=len(CELLS) + 1) / len(errors)


@pytest.mark.parametrize("move", [-20.0, -1.0, 0.0, 0.5, 5.0])
@pytest.mark.parametrize("times", [0.25, 1.0, 8.0])
def test_a_histogram_tells_where_errors_are_and_how_large(move, times):
    seen = SHAPES.posterior(shares(times * ERRORS + move), sd=0.005)
    assert abs(seen.shift - move) < 0.5 * max(abs(move), times), "cells are wide far away"
    if abs(move) <= 1:
        assert abs(np.log2(seen.scale / times)) < 1.0
    assert (seen.unmoved > 0.5) == (abs(move) < 0.2 * times)


def test_a_histogram_that_is_all_noise_says_nothing():
    noise = 5.0 * RNG.standard_normal((200, len(CELLS) + 1))
    seen = [SHAPES.posterior(shares(ERRORS) + each, sd=5.0) for each in noise]
    assert max(abs(each.shift) for each in seen) < 1.0
    assert 0.6 < np.median([each.scale for each in seen]) < 1.7
    assert min(each.unmoved for each in seen) > 0.3


def test_more_of_a_larger_move_is_kept():
    noise = np.full(8, 0.05)
    parts = [
        posterior_shrinkage(moved, noise, SLOPE_SHIFTS) for moved in (0.0, 0.4, 1.0, 3.0, 10.0)
    ]
    assert parts == sorted(parts)
    assert parts[0] < 0.05
    assert 0.75 < parts[-1] < 1.0


def test_without_a_shift_little_of_the_noise_is_kept():
    for count in (1, 8, 100):
        noise = np.full(count, 1.0 / count)
        moves = np.sum(RNG.standard_normal((2000, count)) ** 2, axis=1) / count
        parts = np.array(
            [posterior_shrinkage(float(moved), noise, SLOPE_SHIFTS) for moved in moves]
        )
        assert np.mean(parts**2 * moves) < 0.35, "in units of the noise"


def test_what_is_kept_is_the_posterior_mean_of_one_number():
    noise, sizes = 0.3, (0.2, 2.0)
    truth = np.where(
        RNG.random(400_000) < SPIKE,
        0.0,
        RNG.standard_normal(400_000) * np.sqrt(RNG.choice(sizes, 400_000)),
    )
    seen = truth + np.sqrt(noise) * RNG.standard_normal(400_000)
    near = np.abs(np.abs(seen) - 1.2) < 0.05
    expected = np.mean(truth[near] / seen[near])
    assert posterior_shrinkage(1.44, np.array([noise]), sizes) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("noise", [0.0, 1e-200, 1e200])
def test_kept_is_a_number_for_any_noise(noise):
    assert 0.0 <= posterior_shrinkage(1.0, np.full(3, noise), SLOPE_SHIFTS) <= 1.0


def test_long_rows_are_a_weight():
    rows = descent_rows(Cleaning(1e6, label_range=(-1e6, 1e6)), lambda X, y: (X, y), 2)
    X, y = np.array([[0.1, 0.0], [30.0, 40.0]]), np.array([3.0, 3.0])
    found, errors = rows(X, y)
    assert np.linalg.norm(found[:, :3], axis=1).max() <= 1 + 1e-12
    np.testing.assert_allclose(errors, found[:, 3] * y)
    np.testing.assert_allclose(np.linalg.norm(found[:, :3], axis=1), found[:, 4])


@pytest.mark.parametrize("best", [0.0, 0.3, 1.0, 1.7])
@pytest.mark.parametrize("longer", [0.5, 1.0, 2.0])
def test_a_look_back_finds_the_part_of_a_move_that_pays(best, longer):
    move = longer * RNG.standard_t(4, size=20_000)
    errors = best * move + ERRORS.std() * RNG.standard_normal(len(move))
    search = LineSearch(error=1.0, square=1.0, precision=1e3)
    found = shrunk_rows(search.products(errors, move), 1.0).mean(axis=0)
    assert search.step_length(found, 1e-3, before=0.1, optimism=0.0) == pytest.approx(best, abs=0.1)
    assert search.step_length(found, 50.0, before=0.1, optimism=0.0) == pytest.approx(0.1, abs=0.05)


def test_a_look_back_at_noise_gives_most_of_it_back():
    search = LineSearch(error=1.0, square=0.1, precision=30.0)
    noise = 2 / 30.0 * RNG.standard_normal((500, 2))
    parts = [
        search.step_length(np.array([0.0, 0.1 / search.clips[1]]) + each, 2 / 30.0, 0.1, 0.0)
        for each in noise
    ]
    assert np.mean(np.square(parts)) < 0.06


def people(n, seed, wage):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.integers(20, 60, n), "town": rng.choice(["A", "B"], n)})
    noise = rng.exponential(size=n) - 1
    return table, wage + table["age"] / 10 + (table["town"] == "A") + noise


@cache
def fitted(seed, epsilon=1.0, wage=8.0, n=2000):
    model = AutoRegressor(
        epsilon=epsilon, delta=1e-6, experts=["linear"], noise="seeded", random_state=seed
    )
    X, y = people(400, 1, wage=5.0)
    return model.fit(X, y, private=None if n == 0 else Private(*people(n, 2, wage)))


@pytest.mark.parametrize("seed", range(2))
def test_columns_that_add_up_to_a_constant_do_no_harm(seed):
    T, t = people(2000, 3, wage=8.0)
    error = np.mean((fitted(seed).predict(T) - t) ** 2)
    assert error < 1.1, "the variance of the noise is 1"


def test_a_level_that_is_far_away_is_found():
    """The variance of the labels is 1 there; 1.5 is left on average, from 0.9 to 3.2."""
    T, t = people(2000, 3, wage=65.0)
    errors = [np.mean((fitted(seed, wage=65.0).predict(T) - t) ** 2) for seed in range(8)]
    assert np.mean(errors) < 2.2, "without the scale it is about 80"


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize(("wage", "n"), [(8.0, 2000), (5.0, 2000), (5.0, 0)])
def test_intervals_hold_about_what_they_should(level, wage, n):
    T, t = people(4000, 3, wage)
    held = []
    for seed in range(2):
        low, high = fitted(seed, wage=wage, n=n).predict_interval(T, level=level).T
        assert (low < high).all()
        held.append(np.mean((low <= t) & (t <= high)))
    assert abs(np.mean(held) - level) < 0.06


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, np.nan, "0.9", None, True])
def test_levels_that_are_none_are_refused(level):
    with pytest.raises(ValueError, match="level must be a number from"):
        fitted(0).predict_interval(people(3, 0, 0.0)[0], level=level)


def test_noise_makes_an_interval_wider():
    quiet, loud = ErrorQuantiles.of(ERRORS), ErrorQuantiles.of(ERRORS, noise=3.0 * ERRORS.var())
    for one, two in zip(quiet.ends(0.9), loud.ends(0.9), strict=True):
        assert two == pytest.approx(2 * one, rel=0.1)


def test_what_the_step_is_expected_to_change_is_told():
    moved, stayed = fitted(0).no_harm_, fitted(0, wage=5.0).no_harm_
    assert 6.0 < moved.gain < 10.0, "three times three; several moves count one by one"
    assert 7.0 < moved.error < 12.0
    assert stayed.gain < 0.05
    assert max(moved.noise, stayed.noise) < 0.05
    assert str(moved) == fitted(0).explain_[-1]
    assert "expected to take 0.5 off" in str(NoHarm(2.0, 0.5, 0.1))
    assert fitted(0, n=0).no_harm_ is None


def test_the_picture_shows_every_release():
    model = fitted(0)
    figure = model.explain_figure()
    left, right = figure.axes
    assert [each.get_text() for each in left.get_yticklabels()] == ["linear"]
    assert [each.get_text() for each in right.get_yticklabels()] == [
        each.name for each in model.releases_
    ]
    assert sum(each.share for each in model.releases_) == pytest.approx(1.0)
    assert len(fitted(0, n=0).explain_figure().axes) == 2


@pytest.mark.parametrize("seed", [0, 1])
def test_rows_that_are_far_away_are_centred_all_the_same(seed):
    """A centre that is cut too short leaves a mean in the move, and the line search is misled."""

    def rows(n, at, turn):
        rng = np.random.default_rng([n, seed, at])
        X = rng.normal(size=(n, 4)) + at * np.array([1.0, 1.0, 0.0, 0.0])
        return X, X @ [1.0 + turn, -1.0, 0.5, 0.0] + rng.exponential(size=n)

    (X, y), (T, t), (U, u) = rows(600, 0, 0.0), rows(4000, 8, 0.7), rows(4001, 8, 0.7)
    model = AutoRegressor(
        epsilon=4.0, delta=1e-6, experts=["linear"], noise="seeded", random_state=seed
    )
    model.fit(X, y, private=Private(T, t))
    best = float(np.mean((Ridge().fit(T, t).predict(U) - u) ** 2))
    assert float(np.mean((model.predict(U) - u) ** 2)) < 1.1 * best
