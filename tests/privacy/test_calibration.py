"""Calibration: the smallest noise, from the conservative side, also at extreme targets."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpadapt.papers.discrepancy.parameters import zcdp_rho
from dpadapt.papers.mixing.poisson import PoissonGaussianEvent
from dpadapt.privacy.accounting import pld as _pld
from dpadapt.privacy.accounting.calibration import calibrate, gaussian_mu
from dpadapt.privacy.accounting.composition import compose_delta, compose_epsilon, gaussian_delta
from dpadapt.privacy.accounting.events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
)

DELTA = 1 / 8000


@pytest.mark.parametrize(
    ("epsilon", "mu", "rho"),
    [(0.5, 0.1731, 0.0121), (1.0, 0.3195, 0.0419), (3.0, 0.8292, 0.2905), (10.0, 2.2187, 2.1564)],
)
def test_numbers_of_the_specification(epsilon, mu, rho):
    """Section 1.4, delta = 1/8000."""
    assert gaussian_mu(epsilon, DELTA) == pytest.approx(mu, abs=6e-5)
    assert zcdp_rho(epsilon, DELTA) == pytest.approx(rho, abs=6e-5)


EXTREME_EPSILONS = [1e-3, 0.1, 1.0, 30.0, 1e3, 1e6]
EXTREME_DELTAS = [1e-15, 1e-9, 1e-3, 0.5]


@pytest.mark.parametrize("epsilon", EXTREME_EPSILONS)
@pytest.mark.parametrize("delta", EXTREME_DELTAS)
def test_gaussian_mu_at_extreme_targets(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(epsilon, mu) <= delta
    assert gaussian_delta(epsilon, mu * (1 + 1e-7)) > delta
    with mpmath.workdps(60):
        size = mpmath.mpf(mu)
        upper = mpmath.erfc((epsilon / size - size / 2) / mpmath.sqrt(2)) / 2
        lower = mpmath.erfc((epsilon / size + size / 2) / mpmath.sqrt(2)) / 2
        assert upper - mpmath.exp(mpmath.mpf(epsilon)) * lower == pytest.approx(delta, rel=1e-7)


@pytest.mark.parametrize("epsilon", EXTREME_EPSILONS)
@pytest.mark.parametrize("delta", EXTREME_DELTAS)
def test_zcdp_rho_at_extreme_targets(epsilon, delta):
    """Against the conversion written out with an order found by scipy, not on the grid."""
    from scipy.optimize import minimize_scalar

    rho = zcdp_rho(epsilon, delta)

    def log_delta(rho):
        def at(log_excess):
            excess = math.exp(log_excess)
            order = 1 + excess
            room = order * (math.log(excess) - math.log(order))
            return excess * (order * rho - epsilon) - math.log(excess) + room

        best = min(
            minimize_scalar(at, bounds=(left, left + 4), method="bounded").fun
            for left in range(-10, 14, 2)
        )
        return min(0.0, best)

    assert log_delta(rho) <= math.log(delta) + 1e-9
    assert log_delta(rho * 1.02) > math.log(delta)
    assert rho <= gaussian_mu(epsilon, delta) ** 2 / 2  # exact GDP is never worse


@settings(max_examples=150, deadline=None)
@given(
    epsilon=st.floats(1e-3, 1e4),
    log_delta=st.floats(math.log(1e-15), math.log(0.5)),
    ratios=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5),
)
def test_gaussian_plans_are_solved_from_the_conservative_side(epsilon, log_delta, ratios):
    delta = math.exp(log_delta)

    def plan(noise):
        return [GaussianEvent("g", r, noise, 2) for r in ratios]

    noise = calibrate(plan, epsilon, delta)
    assert compose_delta(plan(noise), epsilon) <= delta
    assert compose_delta(plan(noise * (1 - 1e-3)), epsilon) > delta
    assert compose_delta(plan(noise * (1 - 1e-8)), epsilon) > delta  # exact, not searched


@settings(max_examples=6, deadline=None)
@given(
    epsilon=st.floats(0.05, 20.0),
    log_delta=st.floats(math.log(1e-10), math.log(0.1)),
    pure=st.floats(0.05, 1.0),
    count=st.integers(1, 30),
)
def test_mixtures_come_out_on_the_conservative_side(epsilon, log_delta, pure, count):
    delta = math.exp(log_delta)

    def plan(noise):
        return [GaussianEvent("g", 1.0, noise), PureEvent("p", pure / noise, count)]

    noise = calibrate(plan, epsilon, delta)
    assert compose_delta(plan(noise), epsilon) <= delta
    assert compose_delta(plan(noise * (1 - 1e-3)), epsilon) > delta


PLANS = {
    "discrete": lambda z: [DiscreteGaussianEvent("d", 1.0, z, 3)],
    "selections": lambda z: [BoundedRangeEvent("b", 1.0, z, 20)],
    "one pure": lambda z: [LaplaceEvent("l", 1.0, z)],
    "sampled": lambda z: [PoissonGaussianEvent("s", 1.0, z, 0.1, 30)],
    "parallel": lambda z: [
        ParallelEvent("f", ((GaussianEvent("g", 1.0, z),), (PureEvent("p", 1.0 / z),)))
    ],
}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (5.0, 1e-3)])
def test_other_plans_come_out_on_the_conservative_side(name, epsilon, delta):
    plan = PLANS[name]
    noise = calibrate(plan, epsilon, delta)
    assert compose_delta(plan(noise), epsilon) <= delta
    assert compose_epsilon(plan(noise), delta) <= epsilon * (1 + 1e-9)
    assert compose_delta(plan(noise * (1 - 1e-3)), epsilon) > delta


@pytest.mark.parametrize("unit", [1e-20, 1e-9, 1.0, 1e9, 1e20])
def test_units_do_not_matter(unit):
    """Sensitivity in any unit: the noise scales along, mixtures included."""
    plain = calibrate(lambda z: [GaussianEvent("g", 1.0, z)], 1.0, 1e-6)
    scaled = calibrate(lambda z: [GaussianEvent("g", unit, z)], 1.0, 1e-6)
    assert scaled == pytest.approx(unit * plain, rel=1e-9)
    plain = calibrate(lambda z: [DiscreteGaussianEvent("g", 1.0, z)], 1.0, 1e-6)
    scaled = calibrate(lambda z: [DiscreteGaussianEvent("g", unit, z)], 1.0, 1e-6)
    assert scaled == pytest.approx(unit * plain, rel=2e-4)


@pytest.mark.parametrize("epsilon", [1e-3, 1e6])
@pytest.mark.parametrize("delta", [1e-15, 0.5])
def test_extreme_targets_of_a_mixture(epsilon, delta):
    def plan(noise):
        return [GaussianEvent("g", 1.0, noise), PureEvent("p", 0.1 / noise, 3)]

    noise = calibrate(plan, epsilon, delta)
    assert 0 < noise < math.inf
    assert compose_delta(plan(noise), epsilon) <= delta
    alone = calibrate(lambda z: plan(z)[:1], epsilon, delta)
    assert noise >= alone * (1 - 1e-9)


def test_a_fixed_gaussian_beside_the_calibrated_one():
    """A plan of Gaussians that do not all scale is not solved by the proportional formula."""

    def plan(noise):
        return [GaussianEvent("fixed", 1.0, 8.0), GaussianEvent("rest", 1.0, noise)]

    noise = calibrate(plan, 1.0, 1e-6)
    left = math.sqrt(gaussian_mu(1.0, 1e-6) ** 2 - 1 / 64)
    assert noise == pytest.approx(1 / left, rel=2e-4)
    assert noise >= 1 / left * (1 - 1e-9)


@pytest.mark.parametrize(
    "plan",
    [
        lambda z: [PureEvent("fixed", 2.0), GaussianEvent("g", 1.0, z)],
        lambda z: [GaussianEvent("fixed", 1.0, 1.0), GaussianEvent("g", 1.0, z)],
        lambda z: [PureEvent("fixed", 2.0)],
    ],
)
def test_a_plan_that_never_fits_is_refused(plan):
    with pytest.raises(ValueError, match="costs more than epsilon 1 at delta 1e-06 whatever"):
        calibrate(plan, 1.0, 1e-6)


@pytest.mark.parametrize(
    "plan",
    [
        lambda z: [],
        lambda z: [GaussianEvent("g", 0.0, z)],
        lambda z: [PureEvent("p", 0.0)],
        lambda z: [GaussianEvent("g", 0.0, z), LaplaceEvent("l", 0.0, z)],
        lambda z: [PureEvent("small and fixed", 0.1)],
    ],
)
def test_a_plan_that_costs_nothing(plan):
    noise = calibrate(plan, 1.0, 1e-6)
    assert 0 < noise < 1e-6
    assert compose_delta(plan(noise), 1.0) == 0


def test_delta_zero():
    def plan(noise):
        return [LaplaceEvent("l", 1.0, noise, 3), PureEvent("p", 0.5 / noise)]

    noise = calibrate(plan, 2.0, 0.0)
    assert compose_epsilon(plan(noise), 0.0) <= 2.0
    assert noise == pytest.approx(3.5 / 2, rel=2e-4)
    with pytest.raises(ValueError, match="delta is 0, but the plan holds noise that is never pure"):
        calibrate(lambda z: [*plan(z), GaussianEvent("g", 1.0, z)], 2.0, 0.0)
    for function in (gaussian_mu, zcdp_rho):
        with pytest.raises(ValueError, match=r"^delta must"):
            function(1.0, 0.0)


@pytest.mark.parametrize("function", [gaussian_mu, zcdp_rho, lambda e, d: calibrate(list, e, d)])
def test_bad_targets_are_named(function):
    for epsilon in (0.0, -1.0, math.nan, math.inf, True, "1", None):
        with pytest.raises(ValueError, match=r"^epsilon must"):
            function(epsilon, 1e-6)
    for delta in (-1e-9, 1.0, 2, math.nan, True, "1", None):
        with pytest.raises(ValueError, match=r"^delta must"):
            function(1.0, delta)


def test_more_privacy_needs_more_noise():
    def plan(noise):
        return [GaussianEvent("g", 1.0, noise), PureEvent("p", 0.2 / noise)]

    by_epsilon = [calibrate(plan, epsilon, 1e-6) for epsilon in (0.2, 2.0)]
    by_delta = [calibrate(plan, 1.0, delta) for delta in (1e-9, 1e-3)]
    assert by_epsilon[0] > by_epsilon[1]
    assert by_delta[0] > by_delta[1]


@pytest.mark.slow
@pytest.mark.parametrize("different", [False, True])
def test_a_large_mixture_needs_few_distributions(monkeypatch, different):
    """1,000 Gaussian and 1,000 pure events: at most 25 privacy loss distributions."""
    sensitivities = np.linspace(1.0, 2.0, 1000) if different else np.ones(1000)
    built = []
    original = _pld.distribution

    def counting(events):
        built.append(len(events))
        return original(events)

    monkeypatch.setattr(_pld, "distribution", counting)

    def plan(noise):
        normal = [GaussianEvent("g", float(s), noise) for s in sensitivities]
        return normal + [PureEvent("p", 1.0 / noise) for _ in range(1000)]

    noise = calibrate(plan, 1.0, 1e-6)
    assert 1 <= len(built) <= 25
    assert max(built) == 2000
    claim = compose_epsilon(plan(noise), 1e-6)
    assert 0.999 <= claim <= 1 + 1e-9
