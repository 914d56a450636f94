"""The density projection and the overlap lemma, which every weighted sensitivity rests on."""

import math
import pickle

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.papers.hybrid.doors.weights import (
    MOST_RATE,
    WEIGHT_ROUNDING,
    RowWeights,
    density_schedule,
    draw_rate,
    log_cap,
    mass_of,
    projected,
)


def by_sorting(weights, density):
    """Textbook form: cap the j largest, j the least that leaves the next one below 1."""
    n = len(weights)
    order = np.sort(weights)[::-1]
    tails = np.cumsum(order[::-1])[::-1]
    mass = mass_of(density, n)
    for capped in range(n):
        if mass - capped <= 0:
            break
        factor = (mass - capped) / tails[capped]
        if factor * order[capped] <= 1:
            return np.minimum(factor * weights, 1)
    return (weights >= order[min(n - 1, round(mass) - 1)]).astype(float)


def projection(log_weights, density):
    return projected(log_weights, log_cap(log_weights, density))


def mu(log_weights, density):
    return projection(log_weights, density) / mass_of(density, len(log_weights))


def random_case(rng):
    """Log-weights of every spread, many at ties, some far beyond the range of exp."""
    n = int(rng.integers(1, 60))
    spread = 10.0 ** rng.uniform(-3, 2.5)
    log_weights = -spread * rng.random(n)
    if rng.random() < 0.3:
        log_weights = -spread * rng.integers(0, 4, n) / 3
    density = float(rng.uniform(1 / n, 1)) if rng.random() < 0.8 else rng.integers(1, n + 1) / n
    return log_weights, density


@pytest.mark.parametrize("seed", range(5))
def test_projection_sums_to_the_mass_is_capped_and_agrees_with_sorting(seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        n = int(rng.integers(1, 400))
        log_weights = -rng.uniform(0.01, 12) * rng.random(n)
        density = float(rng.uniform(1 / n, 1))
        result = projection(log_weights, density)
        assert result.sum() == pytest.approx(mass_of(density, n), rel=1e-13)
        assert result.max() <= 1
        weights = np.exp(log_weights)
        np.testing.assert_allclose(result, by_sorting(weights, density), rtol=5e-13)
        order = np.argsort(weights)
        assert (np.diff(result[order]) >= 0).all()


def test_projection_is_idempotent_and_leaves_dense_weights_in_proportion():
    rng = np.random.default_rng(0)
    for _ in range(100):
        log_weights, density = random_case(rng)
        once = projection(log_weights, density)
        positive = np.maximum(once, 1e-300)
        np.testing.assert_allclose(projection(np.log(positive), density), once, rtol=1e-12)
    log_weights = -0.5 * rng.random(50)  # of density exp(-0.5) without any cap
    result = projection(log_weights, math.exp(-0.5))
    np.testing.assert_allclose(result / result[0], np.exp(log_weights - log_weights[0]), rtol=1e-13)


@pytest.mark.parametrize("density", [1.0, 0.5, 1 / 7])
def test_uniform_weights_stay_uniform(density):
    np.testing.assert_allclose(mu(np.full(7, -3.2), density), 1 / 7, rtol=1e-14)


def test_weights_beyond_the_range_of_exp():
    log_weights = np.array([0.0, -900.0, -900.0, -950.0])  # exp(-900) is no float
    np.testing.assert_allclose(projection(log_weights, 0.5), [1, 0.5, 0.5, 0], atol=1e-12)
    far = log_weights - 5000
    np.testing.assert_allclose(projection(far, 0.5), [1, 0.5, 0.5, 0], atol=1e-11)


def test_a_ladder_of_weights_ends():
    ladder = -15.0 * np.arange(60)  # every pass caps one more
    result = projection(ladder, 0.5)
    assert result.sum() == pytest.approx(30)
    assert (result[:29] == 1).all()


def test_the_stated_rounding_holds_at_the_largest_rates():
    rng = np.random.default_rng(1)
    for _ in range(20):
        log_weights = -MOST_RATE * rng.random(3000) ** 8
        shifted = mu(log_weights, 0.01)
        exact = mu(log_weights - log_weights.max(), 0.01)  # sizes near 0: no digits are lost
        assert np.abs(shifted - exact).sum() < WEIGHT_ROUNDING
        assert abs(shifted.sum() - 1) < WEIGHT_ROUNDING


# the overlap lemma


def neighbours(rng):
    log_weights, density = random_case(rng)
    other = log_weights.copy()
    i = int(rng.integers(len(other)))
    other[i] = rng.choice([0.0, -1e3, other[i] - rng.exponential(), rng.uniform(-5, 5)])
    return log_weights, other, i, density


def worst_overlap(project, cases=3000):
    """Largest (1 - overlap outside the changed row) * kappa n, and largest distance * kappa n."""
    rng = np.random.default_rng(2)
    most = far = 0.0
    for _ in range(cases):
        log_weights, other, i, density = neighbours(rng)
        mass = mass_of(density, len(other))
        one, two = project(log_weights, density), project(other, density)
        kept = np.delete(np.minimum(one, two), i).sum()
        most = max(most, (1 - kept) * mass)
        far = max(far, 0.5 * np.abs(one - two).sum() * mass)
        if project is mu:
            assert kept == pytest.approx(1 - max(one[i], two[i]), abs=1e-11)
    return most, far


def test_overlap_lemma_and_distance_on_random_neighbours():
    most, far = worst_overlap(mu)
    assert most <= 1 + 1e-10  # never exceeded
    assert far <= 1 + 1e-10
    assert most > 1 - 1e-9  # attained
    assert far > 0.999


def test_the_overlap_test_finds_broken_projections():
    def softmax(log_weights, density):  # normalised, not projected: no cap on a row
        weights = np.exp(log_weights - log_weights.max())
        return weights / weights.sum()

    def clipped(log_weights, density):  # capped, and normalised afterwards
        weights = np.exp(log_weights - log_weights.max())
        share = np.minimum(weights / weights.sum(), 1 / mass_of(density, len(weights)))
        return share / share.sum()

    assert worst_overlap(softmax)[0] > 1.5
    assert worst_overlap(clipped)[0] > 1.05


@pytest.mark.parametrize("broken", ["fed back", "maximum taken off"])
def test_weights_that_are_not_stored_as_they_are_break_the_lemma(broken):
    """Rounds in which the stored weights are projected (or shifted) let one row move all others."""

    def run(losses, store):
        log_weights = np.zeros(losses.shape[1])
        for loss in losses:
            log_weights = log_weights - 0.9 * (1 - loss)
            if store == "fed back":
                log_weights = np.log(np.maximum(projection(log_weights, 0.3), 1e-300))
            if store == "maximum taken off":
                log_weights = log_weights - log_weights.max()
        return log_weights

    rng = np.random.default_rng(3)
    others_moved = {"as they are": False, broken: False}
    for _ in range(50):
        losses = rng.random((6, 12))
        changed = losses.copy()
        changed[:, 4] = rng.random(6) * rng.integers(0, 2)
        for store in others_moved:
            one, two = run(losses, store), run(changed, store)
            others_moved[store] |= bool((np.delete(one, 4) != np.delete(two, 4)).any())
    assert others_moved == {"as they are": False, broken: True}


# public facts


@pytest.mark.parametrize(
    ("density", "rows", "words"),
    [
        (0.0, 10, "positive"),
        (1.5, 10, "at most 1"),
        (0.05, 10, "less than one row"),
        (0.5, 0, "row"),
    ],
)
def test_density_that_cannot_be(density, rows, words):
    with pytest.raises(ValueError, match=words):
        mass_of(density, rows)


def test_one_over_n_is_one_row():
    for rows in range(1, 500):
        assert mass_of(1 / rows, rows) == pytest.approx(1)
        assert mass_of(1 / rows, rows) >= 1


def test_the_schedule_bounds_the_weights_without_a_cap():
    rng = np.random.default_rng(4)
    rates = [0.2] * 12
    densities = density_schedule(0.15, rates)
    assert len(densities) == 12
    assert densities[0] == 1
    assert densities[-1] == 0.15
    log_weights = np.zeros(300)
    for density, rate in zip(densities, rates, strict=True):
        distribution = mu(log_weights, density)
        assert distribution.max() * density * 300 <= 1 + 1e-12
        if density > 0.15:  # no projection was needed
            plain = np.exp(log_weights)
            np.testing.assert_allclose(distribution, plain / plain.sum(), rtol=1e-12)
        log_weights -= rate * (1 - rng.integers(0, 2, 300))


def test_rate_of_a_draw():
    assert draw_rate(0.5, 1000) == pytest.approx(1 / 500, rel=1e-8)
    assert draw_rate(0.5, 1000) > 1 / 500
    assert draw_rate(1.0, 1) == 1.0
    large = 324_700_000
    assert draw_rate(1 / 68, large) / (68 / large) < 1.001


def test_row_weights_tell_nothing():
    weights = RowWeights(Private([[0.0]] * 3).open(epsilon=1.0, delta=1e-6))
    weights._log[1] = -7.25
    assert "7" not in repr(weights)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(weights)
    with pytest.raises(TypeError, match="read"):
        np.asarray(weights)
