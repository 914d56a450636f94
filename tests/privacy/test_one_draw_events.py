"""Steps on one drawn row: the profile, the Renyi curve, the composition of very many of them."""

import itertools
import json
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld_module
from scipy import integrate, stats
from scipy.optimize import brentq

from dpadapt.papers.hybrid.doors import one_draw
from dpadapt.papers.hybrid.doors.one_draw import OneDrawGaussianEvent
from dpadapt.privacy import Ledger
from dpadapt.privacy.accounting.calibration import calibrate
from dpadapt.privacy.accounting.composition import (
    _normal_delta,
    compose_delta,
    compose_epsilon,
    gaussian_delta,
    pld_epsilon,
)
from dpadapt.privacy.accounting.events import (
    GaussianEvent,
    ParallelEvent,
    PureEvent,
    event_from_dict,
)
from dpadapt.privacy.accounting.renyi import renyi_epsilon

PAPER = OneDrawGaussianEvent(
    "descent",
    clip=1.0,
    scale=math.sqrt(20),
    rate=1 / (0.08 / (4 * 1.35) * 324.7e6),
    count=50_000_000 * 997,
)


def steps(rate, count, scale=4.47):
    return OneDrawGaussianEvent("steps", 1.0, scale, rate, count)


# One step ----------------------------------------------------------------------------------------


def profile(epsilon, q, m):
    """Q H_{1+(e^eps-1)/q}(N(m,1) || N(0,1)), by the cdf."""
    g = 1 + math.expm1(epsilon) / q
    cut = math.log(g) / m
    return q * (stats.norm.cdf(m / 2 - cut) - g * stats.norm.cdf(-m / 2 - cut))


def hockey_stick(first, second, epsilon, grid):
    return np.trapezoid(np.maximum(first - math.exp(epsilon) * second, 0.0), grid)


def mixture(rng, grid, scale):
    means = rng.uniform(-1, 1, 3) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], 3)
    return stats.norm.pdf(grid[:, None], means, scale) @ rng.dirichlet(np.ones(3))


def test_no_mixture_passes_the_profile_and_one_attains_it():
    """(1-q)A+qB against (1-q)A+qB', with A, B, B' mixtures of shifted noise, both ways."""
    rng = np.random.default_rng(0)
    grid = np.linspace(-25, 25, 20_001)
    worst = 0.0
    for turn in range(100):
        scale, q = math.exp(rng.uniform(-0.7, 1.2)), math.exp(rng.uniform(-4, 0))
        epsilon = q * rng.uniform(0, 2) / scale
        if turn < 20:  # the worst: B' = A
            common, one, other = (stats.norm.pdf(grid, at, scale) for at in (-1.0, 1.0, -1.0))
        else:
            common, one, other = (mixture(rng, grid, scale) for _ in range(3))
        first, second = (1 - q) * common + q * one, (1 - q) * common + q * other
        bound = profile(epsilon, q, 2 / scale)
        for pair in ((first, second), (second, first)):
            found = hockey_stick(*pair, epsilon, grid)
            assert found <= bound * (1 + 1e-6) + 1e-9
            worst = max(worst, found / bound)
        smaller = profile(epsilon, 0.7 * q, 2 / scale)
        assert smaller < bound
    assert worst > 0.999


@pytest.mark.parametrize(("q", "m"), [(1e-3, 0.447), (0.2, 1.0), (1.0, 2.0), (0.05, 5.0)])
def test_one_step_has_the_profile(q, m):
    event = steps(q, 1, 2 / m)
    for epsilon in (1e-4, 0.1 * q, q * m, 2 * q * m):
        exact = profile(epsilon, q, m)
        stated = compose_delta([event], epsilon)
        assert exact <= stated <= exact * 1.02 + 1e-10


@pytest.mark.parametrize(("q", "m"), [(1e-3, 0.447), (0.3, 1.5), (1e-7, 0.447)])
def test_masses_have_the_profile(q, m):
    """Both signs of epsilon: the symmetric part is what one-sided accountants leave out."""
    step = q * m / 10
    masses, lost = one_draw.loss_masses(m, q, step)
    losses = step * (np.arange(len(masses)) - len(masses) // 2)
    assert masses.sum() + lost == pytest.approx(1.0, abs=1e-12)
    for at in (-20, -3, 0, 3, 20):
        epsilon = at * step
        above = losses > epsilon
        found = lost - masses[above] @ np.expm1(epsilon - losses[above])
        other = profile(-epsilon, q, m) if epsilon < 0 else profile(epsilon, q, m)
        exact = other if epsilon >= 0 else -math.expm1(epsilon) + math.exp(epsilon) * other
        assert found == pytest.approx(exact, rel=1e-6)


# Renyi -------------------------------------------------------------------------------------------


def exact_renyi(order, q, m):
    """Divergence of the dominating pair, from its densities in V, in high precision."""
    with mpmath.workdps(30):
        a, q, m = mpmath.mpf(order), mpmath.mpf(q), mpmath.mpf(m)

        def integrand(z):
            v = 1 + q * (mpmath.exp(m * z - m * m / 2) - 1)
            return mpmath.npdf(z) * (v**a + v ** (1 - a) - 1 - v)

        points = [m / 2 + k for k in (0, 1, 2, 4, 8, 16, 32, 64, 128)]
        peak = a * m
        points = sorted({*points, *(peak + k for k in (-6, -2, 0, 2, 6) if peak + k > m / 2)})
        return float(mpmath.log1p(mpmath.quad(integrand, points)) / (a - 1))


@pytest.mark.parametrize("order", [1.001, 2.0, 7.3, 60.0])
@pytest.mark.parametrize(
    ("q", "m"), [(2e-7, 0.447), (1e-8, 0.447), (1e-3, 0.447), (0.3, 0.1), (0.05, 2.0)]
)
def test_renyi_is_an_upper_sum(order, q, m):
    stated = float(one_draw.renyi(m, q, np.array([order]))[0])
    plain = order * m * m / 2
    exact = exact_renyi(order, q, m)
    assert exact * (1 - 1e-12) <= stated <= min(exact * 1.015, plain * (1 + 1e-12))


def test_renyi_of_the_discrete_pair_by_its_definition():
    """Sum of P^a Q^(1-a) over the masses: the symmetric pair is what formula (2) integrates."""
    q, m, order = 0.01, 0.8, 6.0
    masses, _ = one_draw.loss_masses(m, q, q * m / 50)
    losses = q * m / 50 * (np.arange(len(masses)) - len(masses) // 2)
    divergence = math.log(masses @ np.exp((order - 1) * losses)) / (order - 1)
    assert divergence == pytest.approx(exact_renyi(order, q, m), rel=1e-3)


def test_renyi_falls_with_noise_and_grows_with_the_rate():
    orders = np.array([1.1, 3.0, 30.0])
    curves = [one_draw.renyi(m, 1e-4, orders) for m in (0.1, 0.3, 1.0, 3.0, 30.0)]
    assert all(np.all(a < b) for a, b in itertools.pairwise(curves))
    curves = [one_draw.renyi(0.5, q, orders) for q in (1e-7, 1e-4, 1e-2, 1.0)]
    assert all(np.all(a < b) for a, b in itertools.pairwise(curves))
    np.testing.assert_allclose(curves[-1], orders * 0.125, rtol=5e-3)


# Many steps --------------------------------------------------------------------------------------


def fourier_epsilon(q, m, count, delta, *, symmetric=True):
    """An accountant of its own: the density of the sum, from its characteristic function.

    Without ``symmetric`` it is the pair (1-q)A+qB against A, as for Poisson sampling, from one
    side: the part of the loss below zero is not mirrored.
    """
    z = np.linspace(m / 2 if symmetric else -12.0, 16.0, 40_001)
    ratio = 1 + q * np.expm1(m * z - m * m / 2)
    density = stats.norm.pdf(z)
    losses, masses = np.log(ratio), ratio * density
    if symmetric:
        losses, masses = np.append(losses, -losses), np.append(masses, density)
    edges = np.isin(np.arange(len(masses)) % len(z), (0, len(z) - 1))
    masses = masses * (z[1] - z[0]) * np.where(edges, 0.5, 1.0)
    mean, second = masses @ losses, masses @ losses**2
    deviation, centre = math.sqrt(count * (second - mean**2)), count * mean
    window = 40 * deviation
    frequencies = 2 * np.pi * np.arange(1, 80) / window
    # minus the linear term, which only moves the sum: what is left is small and keeps its digits
    change = np.array([masses @ (np.expm1(1j * t * losses) - 1j * t * losses) for t in frequencies])
    waves = np.exp(count * (np.log1p(change + 1j * frequencies * mean) - 1j * frequencies * mean))
    at = np.linspace(-20, 20, 20_001) * deviation
    sums = (1 + 2 * np.real(np.exp(-1j * at[:, None] * frequencies) @ waves)) / window

    def excess(epsilon):
        gain = -np.expm1(np.minimum(epsilon - at - centre, 0.0))
        return np.trapezoid(gain * sums, at) - delta

    return brentq(excess, 0.0, centre + 15 * deviation)


def test_a_million_steps_against_an_accountant_of_its_own():
    q, m, count, delta = 1e-3, 2 / 4.47, 10**6, 1e-4
    exact = fourier_epsilon(q, m, count, delta)
    assert exact == pytest.approx(1.8796, abs=2e-3)
    ours = compose_epsilon([steps(q, count)], delta)
    assert exact <= ours <= exact * 1.003
    by_renyi = renyi_epsilon([steps(q, count)], delta)
    assert ours < by_renyi < 1.15 * exact
    # what is broken would be seen: a smaller rate, one side only
    assert compose_epsilon([steps(0.7 * q, count)], delta) < 0.8 * exact
    assert fourier_epsilon(q, m, count, delta, symmetric=False) < 0.9 * exact


@pytest.mark.parametrize(
    ("q", "scale", "count", "delta"),
    [(1e-4, 4.47, 10**7, 1e-6), (1e-2, 2.0, 3000, 1e-5), (1e-5, 10.0, 10**9, 1e-5)],
)
def test_more_steps_against_the_same(q, scale, count, delta):
    exact = fourier_epsilon(q, 2 / scale, count, delta)
    assert exact * 0.999 <= compose_epsilon([steps(q, count, scale)], delta) <= exact * 1.02


@pytest.mark.parametrize(("q", "count"), [(1e-3, 10**5), (1e-2, 1000), (1e-4, 10**6)])
def test_never_below_the_poisson_remove_pair_or_the_normal_limit(q, count):
    noise, delta = 4.47, 1e-5
    one = pld_module.from_gaussian_mechanism(
        noise / 2, value_discretization_interval=q * 2 / noise / 20, sampling_prob=q
    )
    removed = one._pmf_remove.self_compose(count).get_epsilon_for_delta(delta)
    ours = pld_epsilon([steps(q, count, noise)], delta)
    mu = math.sqrt(count * one_draw.loss_moments(2 / noise, q)[1])
    limit = brentq(lambda e: gaussian_delta(e, mu) - delta, 0, 50)
    assert ours >= removed * 0.999
    assert ours >= 0.99 * limit


def test_monotone_in_steps_rate_and_noise():
    for events in (
        [steps(1e-4, n) for n in (10**3, 10**5, 10**7, 10**9, 10**11)],
        [steps(q, 10**6) for q in (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)],
        [steps(1e-4, 10**6, scale) for scale in (30.0, 10.0, 3.0, 1.0, 0.3)],
    ):
        found = [compose_epsilon([event], 1e-6) for event in events]
        assert all(a < b for a, b in itertools.pairwise(found))


def test_the_papers_run_is_certified():
    """The paper claims 0.5; the normal limit is .058."""
    found = compose_epsilon([PAPER], 1e-4)
    mu = math.sqrt(PAPER.count * one_draw.loss_moments(PAPER.strength, PAPER.rate)[1])
    limit = brentq(lambda e: gaussian_delta(e, mu) - 1e-4, 0, 5)
    assert limit == pytest.approx(0.0577, abs=1e-3)
    assert limit < found < 0.0595
    assert renyi_epsilon([PAPER], 1e-4) < 0.068
    assert compose_epsilon([PAPER], 1e-8) < 0.14  # where the error of the normal law is too large


def test_the_normal_law_is_never_below_the_truth():
    for q, scale, count in ((1e-5, 4.47, 10**9), (1e-4, 2.0, 10**8)):
        exact = fourier_epsilon(q, 2 / scale, count, 1e-3)
        found = brentq(lambda e: _normal_delta([steps(q, count, scale)], e) - 1e-3, 0, 20)  # noqa: B023
        assert exact < found < 1.2 * exact
    assert _normal_delta([steps(1e-3, 10)], 0.1) > 0.05  # too few steps: nearly nothing is said
    assert _normal_delta([steps(1e-3, 10), PureEvent("p", 0.1)], 0.1) == 1


def test_moments_are_the_integrals():
    q, m = 1e-3, 0.8

    def moment(function):
        def integrand(z):
            v = 1 + q * math.expm1(m * z - m * m / 2)
            return stats.norm.pdf(z) * (v * function(math.log(v)) + function(-math.log(v)))

        return integrate.quad(integrand, m / 2, 30, epsabs=0, epsrel=1e-10)[0]

    mean, variance, third = one_draw.loss_moments(m, q)
    assert mean == pytest.approx(moment(lambda x: x), rel=1e-6)
    assert variance == pytest.approx(moment(lambda x: x * x) - mean**2, rel=1e-9)
    assert moment(lambda x: abs(x) ** 3) <= third <= 1.01 * moment(lambda x: abs(x) ** 3)


# Together with others ----------------------------------------------------------------------------


def test_with_other_events():
    event = steps(1e-4, 10**6)
    alone = compose_epsilon([event], 1e-6)
    both = compose_epsilon([event, GaussianEvent("mean", 1.0, 20.0)], 1e-6)
    pure = compose_epsilon([event, PureEvent("count", 0.1)], 1e-6)
    assert alone < both < alone + compose_epsilon([GaussianEvent("mean", 1.0, 20.0)], 1e-9)
    assert alone < pure < alone + 0.1001
    parallel = ParallelEvent("parts", ((event,), (PureEvent("other", 0.01),)))
    assert compose_epsilon([parallel], 1e-6) == pytest.approx(alone, rel=1e-9)
    twice = compose_epsilon([steps(1e-4, 5 * 10**5), steps(1e-4, 5 * 10**5)], 1e-6)
    assert twice == pytest.approx(alone, rel=1e-2)


def test_a_schedule_of_rates():
    """Rounds of different rates: between all at the least and all at the largest."""
    rates = [1e-7 * 1.2**t for t in range(20)]
    found = compose_epsilon([steps(q, 10**9) for q in rates], 1e-6)
    assert compose_epsilon([steps(rates[0], 20 * 10**9)], 1e-6) < found
    assert found < compose_epsilon([steps(rates[-1], 20 * 10**9)], 1e-6)


@pytest.mark.slow
def test_calibration_meets_its_target():
    def plan(noise):
        return [steps(1e-4, 10**6, 2 * noise)]

    noise = calibrate(plan, 1.0, 1e-6)
    assert compose_delta(plan(noise), 1.0) <= 1e-6
    assert compose_delta(plan(noise * 0.99), 1.0) > 1e-6
    assert compose_epsilon(plan(noise * 0.7), 1e-6) > 1.2


def test_round_trip_and_ledger(tmp_path):
    text = json.dumps(PAPER.to_dict())
    assert event_from_dict(json.loads(text)) == PAPER
    ledger = Ledger(tmp_path / "ledger.db")
    account = ledger.create("rows", epsilon=1.0, delta=1e-6)
    account.charge([steps(1e-5, 10**6)], "fit")
    assert 0 < account.spent() < 0.1


def test_no_pure_epsilon_and_no_other_relation():
    assert compose_epsilon([steps(1e-3, 1)], 0.0) == math.inf
    with pytest.raises(ValueError, match=r"^relation must be 'replace-one'"):
        OneDrawGaussianEvent("steps", 1.0, 1.0, 0.1, relation="add-remove")
    for rate in (0.0, 1.1, math.nan, True, "1"):
        with pytest.raises(ValueError, match=r"^rate must"):
            steps(rate, 1)


def test_extremes_are_no_errors():
    for scale in (1e-300, 1e-3, 1e6, 1e300):
        for rate in (1e-300, 1e-8, 1.0):
            for count in (1, 10**15):
                event = steps(rate, count, scale)
                assert 0 <= compose_delta([event], 1.0) <= 1
                assert compose_epsilon([event], 1e-6) >= 0


def test_rounding_to_a_coarser_grid_dominates():
    masses, _ = one_draw.loss_masses(0.5, 0.01, 1e-4)
    low = -(len(masses) // 2)
    coarse, first = one_draw._coarser(masses, low, 7, 7e-4)
    fine_at, coarse_at = (
        1e-4 * (low + np.arange(len(masses))),
        7e-4 * (first + np.arange(len(coarse))),
    )
    assert coarse.sum() == pytest.approx(masses.sum(), abs=1e-14)
    assert coarse @ np.exp(-coarse_at) == pytest.approx(masses @ np.exp(-fine_at), abs=1e-14)
    for epsilon in np.linspace(-0.02, 0.02, 41):
        fine = np.maximum(-np.expm1(epsilon - fine_at), 0) @ masses
        assert np.maximum(-np.expm1(epsilon - coarse_at), 0) @ coarse >= fine - 1e-15
