"""Noise that is not released itself is not rounded; what is released is, by its scale alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpadapt.papers.selection.laplace import laplace as add_laplace
from dpadapt.papers.selection.laplace import laplace_argmin
from dpadapt.privacy.core.noise import ExactNoise, SecureNoise, SeededNoise, _power_of_two, _to_grid

ALPHA = 1e-6
SOURCES = [SecureNoise(), SeededNoise(0), ExactNoise()]


class Silent(SeededNoise):
    """Laplace noise of 0."""

    def __init__(self):
        super().__init__(0)

    def _laplace(self, shape):
        return np.zeros(shape)


def test_scores_are_compared_before_any_rounding():
    scores = np.array([1e-5, 0.0])  # much less apart than the grid of a release
    assert laplace_argmin(Silent(), scores, scale=1.0) == 1
    rounded = add_laplace(Silent(), scores, scale=1.0)  # what the choice was made by once
    assert rounded[0] == rounded[1]
    assert int(np.argmin(rounded)) == 0


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_report_noisy_min_has_its_law(source):
    """P(first wins) for two scores that are one scale apart: 1 - exp(-1) (1/2 + 1/4)."""
    runs = 4000 if source.name != "exact" else 1500
    wins = sum(laplace_argmin(source, np.array([0.0, 2.0]), 2.0) == 0 for _ in range(runs))
    chance = 1 - np.exp(-1) * 0.75
    assert stats.binomtest(wins, runs, chance).pvalue > ALPHA
    assert stats.binomtest(wins, runs, chance - 0.12).pvalue < ALPHA


class Chosen(SeededNoise):
    def __init__(self, sizes, sides):
        super().__init__(0)
        self.given = np.concatenate([sizes, sides])

    def uniform(self, size):
        return self.given


def test_directions_are_normal_and_symmetric_to_the_last_bit():
    sizes = np.append(np.random.default_rng(0).random(1000), [0.0, 1 - 2.0**-53])
    one, two = (Chosen(sizes, np.full(1002, side)).directions((1002,)) for side in (0.25, 0.75))
    assert (one == -two).all()
    assert np.isfinite(one).all()
    for source in (SecureNoise(), SeededNoise(0), ExactNoise()):
        drawn = source.directions((2000, 2))
        assert stats.kstest(drawn.ravel(), "norm").pvalue > ALPHA
        assert stats.kstest(0.8 * drawn.ravel(), "norm").pvalue < ALPHA


@pytest.mark.parametrize("scale", [1e-9, 0.3, 1.0, 7e5])
def test_the_grid_depends_on_the_scale_alone(scale):
    grid = _power_of_two(scale, 12)
    for value in (0.0, 1.0, -3e7, 1e12):
        noisy = SecureNoise().add_gaussian(np.full(50, value), scale)
        small = np.abs(noisy) < 2.0**52 * grid
        assert (noisy[small] / grid % 1 == 0).all()
        assert (noisy[~small] / grid % 1 == 0).all()  # float64 has no finer numbers there


def test_numbers_beyond_the_reach_of_the_grid_stay_finite():
    huge = np.array([1e300, -1e300])
    assert (_to_grid(huge, 2.0**-70) == huge).all()
    released = SecureNoise().add_gaussian(huge, 1e-15)
    assert np.isfinite(released).all()
