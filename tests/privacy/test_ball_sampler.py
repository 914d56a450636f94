"""The exponential mechanism on a ball: its law, its bounds, its privacy.

Statistical tests reject at ALPHA, one in a million, and are shown to reject a scale that is wrong
by a factor of 0.7 or 1.3 wherever the law depends on it.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpadapt.papers.selection.exponential import (
    _PROPOSALS,
    _decay,
    _Envelope,
    _fine,
    draw_on_ball,
    height,
)
from dpadapt.privacy.core.noise import ExactNoise, SecureNoise, SeededNoise

ALPHA = 1e-6
DRAWS = 5_000
CASES = [(0.5, 3), (20.0, 10), (5.0, 1), (200.0, 200), (500.0, 50), (3.0, 2), (40.0, 2)]


def cdf_of_s(a: float, d: int):
    """Distribution function of s, by quadrature of its density."""
    s = np.linspace(0, 1, 400_001)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_f = a * (s - 1) + (0.0 if d == 1 else (d - 1) / 2 * np.log1p(-(s**2)))
    f = np.exp(log_f - log_f[np.isfinite(log_f)].max())
    total = integrate.cumulative_trapezoid(f, s, initial=0.0)
    return lambda x: np.interp(x, s, total / total[-1])


def direction(d: int) -> np.ndarray:
    v = np.random.default_rng(d).normal(size=d)
    return v / np.linalg.norm(v)


def points(a: float, d: int, draws: int = DRAWS, seed: int = 0) -> np.ndarray:
    source = SeededNoise(seed)
    return np.stack([draw_on_ball(source.uniform, a * direction(d), 1.0) for _ in range(draws)])


@pytest.mark.slow
@pytest.mark.parametrize(("a", "d"), CASES)
def test_law_along_the_direction(a, d):
    z = points(a, d)
    assert np.linalg.norm(z, axis=1).max() <= 1
    along = z @ direction(d)
    p = stats.kstest(np.abs(along), cdf_of_s(a, d)).pvalue
    assert p > ALPHA
    assert stats.binomtest(int((along > 0).sum()), DRAWS).pvalue > ALPHA
    if a >= 3:
        for wrong in (0.7, 1.3):
            assert stats.kstest(np.abs(along), cdf_of_s(wrong * a, d)).pvalue < ALPHA


@pytest.mark.parametrize(("a", "d"), [(0.5, 3), (20.0, 10), (3.0, 2)])
def test_law_across_the_direction(a, d):
    z, v = points(a, d), direction(d)
    along = z @ v
    across = z - np.outer(along, v)
    radius = np.linalg.norm(across, axis=1) / np.sqrt(1 - along**2)
    assert stats.kstest(radius ** (d - 1), "uniform").pvalue > ALPHA
    assert stats.kstest(radius**d, "uniform").pvalue < ALPHA  # as if in one dimension more
    basis = np.linalg.svd(v[None])[2][1:]
    unit = across @ basis.T / np.linalg.norm(across, axis=1, keepdims=True)
    # isotropic: mean 0 and second moment 1/(d-1) of each coordinate, z-scores of bounded variables
    for coordinate in unit.T:
        assert abs(coordinate.mean()) * math.sqrt(DRAWS * (d - 1)) < 5.5
    second = (unit[:, 0] ** 2).mean() * (d - 1)
    spread = math.sqrt(max(1e-12, 2 * (d - 2) / (d + 1) / DRAWS))
    assert abs(second - 1) < 5.5 * spread + 1e-9


@pytest.mark.parametrize("d", [1, 2, pytest.param(5, marks=pytest.mark.slow)])
def test_without_a_direction_the_law_is_uniform(d):
    source = SeededNoise(1)
    z = np.stack([draw_on_ball(source.uniform, np.zeros(d), 1.0) for _ in range(DRAWS)])
    assert stats.kstest(np.linalg.norm(z, axis=1) ** d, "uniform").pvalue > ALPHA
    for coordinate in z.T:
        assert abs(coordinate.mean()) * math.sqrt(DRAWS * (d + 2)) < 5.5
    tilted = np.stack([draw_on_ball(source.uniform, np.full(d, 3.0), 1.0) for _ in range(DRAWS)])
    assert stats.kstest(np.linalg.norm(tilted, axis=1) ** d, "uniform").pvalue < ALPHA


@pytest.mark.parametrize(("a", "d"), [*CASES[:2], *CASES[3:], (1e-9, 4), (1e8, 4), (0.0, 1000)])
def test_the_envelope_is_above_and_near(a, d):
    envelope = _Envelope.of(a, (d - 1) / 2)
    q, above = envelope.propose(*np.random.default_rng(0).random((2, 100_000)))
    gap = above - envelope.log_density(q)
    assert gap.min() > -1e-9
    assert np.exp(-gap).mean() > 0.8  # accepted
    assert q.min() > 0
    assert q.max() <= 1


@pytest.mark.parametrize("length", [0.0, 1e-320, 1e-200, 1e9, 1e200, 1e308])
@pytest.mark.parametrize("d", [1, 2, 30])
def test_any_length_of_the_direction_gives_a_point_of_the_ball(length, d):
    v = np.zeros(d)
    v[-1] = length
    with np.errstate(all="ignore"):
        z = draw_on_ball(SeededNoise(0).uniform, v, 1e-3, radius=2.5)
    assert np.isfinite(z).all()
    assert np.linalg.norm(z) <= 2.5
    if length >= 1e9:
        assert abs(z[-1]) > 2.49


def test_rejected_proposals_end_at_the_mode():
    half = np.full(4, 0.5)
    q = height(half, half, np.full(4, 1.0 - 1e-16), a=20.0, d=10)
    assert 0 < q < 1
    nowhere = height(np.array([1 - 1e-9]), np.array([1e-9]), np.array([1 - 1e-12]), a=20.0, d=10)
    assert nowhere == pytest.approx(_Envelope.of(20.0, 4.5).mode)


@pytest.mark.parametrize("source", [SecureNoise(), SeededNoise(3), ExactNoise()])
def test_the_number_of_draws_does_not_depend_on_the_direction(source):
    for v in (np.zeros(7), np.full(7, 1e3), direction(7)):
        sizes = []

        def uniform(size, sizes=sizes):
            sizes.append(size)
            return source.uniform(size)

        draw_on_ball(uniform, v, 1.0)
        assert sizes == [3 + 4 * _PROPOSALS + 7]


# Tails: no comb that is wider than the grid -------------------------------------------------------

GRID = 2.0**-32
COARSE = 2.0**-53 * np.arange(2000)  # the last uniform numbers, which a tail is drawn from


def widest_gap(points: np.ndarray) -> float:
    return float(np.diff(np.sort(points)).max())


@pytest.mark.parametrize("a", [1.0, 50.0, 1e4])
def test_a_tail_is_no_comb(a):
    """Between the points of two neighbouring numbers of 53 bits there are all others."""
    low = np.linspace(0, 1, 50_000, endpoint=False)
    for high in 2.0**-53 * np.array([1, 2, 7, 1000]):
        assert widest_gap(_decay(_fine(high, low), a)) <= max(GRID, 1e-4 / a)
    steps = 2.0**-20 * np.arange(1000)
    assert widest_gap(_decay(_fine(2.0**-53, steps), a)) < 2e-6 / a, "as fine as its numbers are"
    ends = _decay(_fine(COARSE, 1 - 2.0**-53), a)[:-1] - _decay(_fine(COARSE, 0.0), a)[1:]
    assert np.abs(ends).max() < GRID, "and so on from one to the next"
    if a > 1:
        assert widest_gap(_decay(COARSE[1:], a)) > GRID, "53 bits would be a comb"


@pytest.mark.parametrize("a", [1e-15, 1e-6, 0.3, 0.7, 2.0, 50.0, 1e6])
def test_the_law_of_a_piece_holds_in_its_tail(a):
    """The mass beyond each point is the number that it was drawn from, to the last digits."""
    left = np.concatenate([np.geomspace(1e-30, 0.5, 200), 1 - np.geomspace(1e-15, 0.5, 200)])
    points = _decay(left, a)
    before = (1 - left) * -math.expm1(-a)
    found = -np.expm1(-a * points)
    np.testing.assert_allclose(found, before, rtol=1e-12, atol=1e-15)
    floor = math.exp(-a)
    if a > 0.5:
        beyond = (np.exp(-a * points) - floor) / -math.expm1(-a)
        inside = left > 1e-3 * floor
        np.testing.assert_allclose(beyond[inside], left[inside], rtol=1e-9, atol=1e-12 * floor)


@pytest.mark.parametrize(("a", "d"), [(500.0, 50), (40.0, 2), (3.0, 2)])
def test_no_piece_of_the_envelope_is_a_comb(a, d):
    envelope = _Envelope.of(a, (d - 1) / 2)
    low = np.linspace(0, 1, 50_000, endpoint=False)
    for piece in (0.0, 1 - 2.0**-53):  # the two exponential ones
        for high in 2.0**-53 * np.array([1, 50]):
            q, _ = envelope.propose(np.full(len(low), piece), _fine(high, low))
            assert widest_gap(q) < 1e-4 / a
    inner = _fine(2.0**-53, low) ** (1 / (d - 1))
    assert widest_gap(inner) < 1e-4


def test_a_draw_uses_the_fine_digits():
    """In one dimension: with all numbers of 53 bits the same, the point still moves."""

    def point(low: float) -> float:
        given = np.full(3 + 4 * _PROPOSALS + 1, 2.0**-53)
        given[-_PROPOSALS:] = low
        return float(draw_on_ball(lambda size: given[:size], np.array([50.0]), 1.0)[0])

    found = [point(low) for low in np.linspace(0, 1, 2000, endpoint=False)]
    assert len({*found}) == 2000


# Privacy: the densities of two neighbours, exactly ------------------------------------------------


def log_density(z: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    """Log-density on the disc, its normaliser by quadrature in one dimension."""
    a = np.linalg.norm(v) / scale
    mass = integrate.quad(lambda s: 4 * math.sqrt(1 - s * s) * math.exp(a * (s - 1)), 0, 1)[0]
    return np.abs(z @ v) / scale - a - math.log(mass)


def largest_ratio(scale: float, sensitivity: float, worst: bool) -> float:
    rng = np.random.default_rng(0)
    grid = rng.normal(size=(4000, 2))
    grid /= np.maximum(1.0, np.linalg.norm(grid, axis=1, keepdims=True))
    most = 0.0
    for _ in range(40):
        v, move = rng.normal(size=2) * rng.exponential(5), rng.normal(size=2)
        if worst:
            v = np.array([-move[1], move[0]]) * rng.exponential(20)
        w = v + sensitivity * move / np.linalg.norm(move)
        ratio = log_density(grid, v, scale) - log_density(grid, w, scale)
        most = max(most, float(np.abs(ratio).max()), float(np.ptp(ratio)))
    return most


def test_neighbours_differ_by_no_more_than_was_charged():
    sensitivity, epsilon = 0.1, 0.5
    scale = 2 * sensitivity / epsilon
    for worst in (False, True):
        assert largest_ratio(scale, sensitivity, worst) <= epsilon
    assert largest_ratio(scale, sensitivity, True) > 0.9 * epsilon  # nearly attained
    assert largest_ratio(0.7 * scale, sensitivity, True) > epsilon  # and 0.7 of the noise fails
