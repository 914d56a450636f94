"""Algorithm 2: the three calibrations, the fit in a ball, the law of the noise.

The statistical test rejects at ALPHA, one in a million, and is shown to reject noise of 0.7 and 1.3
times its scale.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpadapt.kernels import tddl
from dpadapt.kernels.pool import Pool
from dpadapt.privacy import Cleaning, Private, calibrate, gaussian_mu
from dpadapt.privacy.events import LaplaceEvent

ALPHA = 1e-6
TARGET = {"epsilon": 0.5, "delta": 1e-6}


def plan(asked, count: int | None = None, rows: int = 10, **target):
    with Private(np.ones((rows, 1))).open(**{**TARGET, **target}) as session:
        grants = session.plan(asked if count is None else replace(asked, count=count))
    return grants[0], session.guarantee


# Noise per prediction in units of S, delta = 1e-6: advanced composition, Laplace tight, Gaussian
TABLE = [
    (0.1, 100, 746, 507, 363),
    (0.1, 1000, 2359, 1622, 1148),
    (0.5, 1000, 478, 360, 255),
    (1.0, 1000, 243, 188, 134),
]


@pytest.mark.parametrize(("epsilon", "T", "paper", "tight", "gaussian"), TABLE)
def test_noise_of_the_three_calibrations(epsilon, T, paper, tight, gaussian):
    assert math.sqrt(2) / tddl.composed_epsilon(T, epsilon, 1e-6) == pytest.approx(paper, rel=2e-3)
    least = calibrate(lambda b: [LaplaceEvent("", 1.0, b, T)], epsilon, 1e-6)
    assert math.sqrt(2) * least == pytest.approx(tight, rel=2e-2)
    assert math.sqrt(T) / gaussian_mu(epsilon, 1e-6) == pytest.approx(gaussian, rel=4e-3)


def test_composed_epsilon_solves_its_equation_from_below():
    for T, epsilon, delta in ((1, 0.1, 1e-6), (300, 1.0, 1e-8), (10, 5.0, 0.01)):
        e = tddl.composed_epsilon(T, epsilon, delta)
        spent = math.sqrt(2 * T * math.log(1 / delta)) * e + T * e * math.expm1(e)
        assert epsilon * (1 - 1e-9) < spent <= epsilon


@pytest.mark.parametrize("calibration", ["paper", "laplace", "gaussian"])
def test_what_is_charged_is_what_was_asked_or_less(calibration):
    pool = Pool.of(np.eye(20))
    asked = tddl.request(pool, calibration, 0.01, bound=1.0, **TARGET)
    grant, guarantee = plan(asked)
    assert guarantee.epsilon <= 0.5 * (1 + 1e-9)
    assert not any("printed" in caveat for caveat in guarantee.caveats)
    if calibration == "paper":
        assert guarantee.epsilon < 0.4  # what the paper's constant gives in truth
        assert grant.scale == pytest.approx(0.01 / tddl.composed_epsilon(20, 0.5, 1e-6))
        _, broken = plan(replace(asked, printed=0.5 * asked.printed))
        assert broken.epsilon > 0.5
        assert any("printed" in caveat for caveat in broken.caveats)
    else:
        assert guarantee.epsilon > 0.499


def test_sensitivities_hold_on_neighbours_and_are_attained():
    rng = np.random.default_rng(0)
    ratios = {"laplace": [], "gaussian": []}
    for k in (1, 3):
        for _ in range(200):
            Z = rng.normal(size=(12, 4))
            Z /= np.linalg.norm(Z, axis=1, keepdims=True)
            dW = rng.normal(size=(4, k))
            if rng.random() < 0.5:  # along the pool's first direction: the worst for both
                dW = np.outer(np.linalg.svd(Z)[2][0], rng.normal(size=k))
            if rng.random() < 0.5:  # along one point, all outputs alike: the worst for l1
                dW = np.outer(Z[0], np.ones(k))
            delta, move = float(np.linalg.norm(dW)), Z @ dW
            pool = Pool.of(Z @ Z.T)
            facts = {"bound": 1.0, "outputs": k, **TARGET}
            each = tddl.request(pool, "laplace", delta, **facts)
            assert (each.count, each.dimension) == (12, k)
            ratios["laplace"].append(np.abs(move).sum(axis=1).max() / each.sensitivity)
            whole = tddl.request(pool, "gaussian", delta, **facts)
            ratios["gaussian"].append(np.linalg.norm(move) / whole.sensitivity)
            assert whole.sensitivity <= math.sqrt(12) * delta * (1 + 1e-6)
    for found in ratios.values():
        assert 0.999 < max(found) <= 1


def test_noise_grows_with_the_root_of_the_number_of_points():
    scales = {}
    for T in (25, 100, 400):
        pool = Pool.of(np.ones((T, T)))  # one point, T times
        for calibration in ("paper", "laplace", "gaussian"):
            asked = tddl.request(pool, calibration, 0.01, bound=1.0, **TARGET)
            scales[calibration, T] = plan(asked)[0].scale
    for calibration in ("paper", "laplace", "gaussian"):
        assert scales[calibration, 400] / scales[calibration, 100] == pytest.approx(2, rel=0.02)
        assert scales[calibration, 100] / scales[calibration, 25] == pytest.approx(2, rel=0.1)
    for T in (25, 100, 400):
        assert scales["laplace", T] < scales["paper", T]
        assert scales["gaussian", T] < math.sqrt(2) * scales["laplace", T]


def test_a_question_beyond_the_bound_is_refused():
    pool = Pool.of(np.diag([1.0, 4.0]))
    assert tddl.request(pool, "laplace", 0.1, bound=2.0, **TARGET).sensitivity == pytest.approx(0.2)
    with pytest.raises(ValueError, match="norm of 2"):
        tddl.request(pool, "laplace", 0.1, bound=1.9, **TARGET)
    with pytest.raises(ValueError, match="calibration"):
        tddl.request(pool, "exact", 0.1, bound=2.0, **TARGET)


# The fit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("norm", [1e-3, 0.5, 2.0, 1e6])
def test_the_fit_satisfies_the_conditions_of_its_minimum(norm, k):
    rng = np.random.default_rng(1)
    for T, d in ((5, 9), (30, 4)):  # full rank, and far from it
        Z = rng.normal(size=(T, d))
        pool, t = Pool.of(Z @ Z.T), rng.normal(size=T if k is None else (T, k))
        w = Z.T @ tddl.ball_least_squares(pool, t, norm)
        length = np.linalg.norm(w)
        assert length <= norm * (1 + 1e-9)
        gradient = Z.T @ (Z @ w - t)
        # stationary inside; at the boundary the gradient points inwards along w, with l >= 0
        multiplier = -float(np.sum(gradient * w)) / length**2
        assert multiplier >= -1e-9
        assert np.allclose(gradient, -multiplier * w, atol=1e-8 * np.linalg.norm(Z.T @ t))
        assert length == pytest.approx(norm, rel=1e-9) or abs(multiplier) < 1e-8
        assert np.isclose(pool.norm(tddl.ball_least_squares(pool, t, norm)), length, rtol=1e-6)
        shorter = w * 0.99  # and no model of the ball is better
        assert np.linalg.norm(Z @ w - t) <= np.linalg.norm(Z @ shorter - t)


# The release ------------------------------------------------------------------------------------


def p_laplace(noise: np.ndarray, scale: float) -> float:
    z = noise.ravel() / scale
    total = stats.gamma(z.size)
    size = float(np.abs(z).sum())
    p = [min(1.0, 2 * min(total.cdf(size), total.sf(size)))]
    p += [float(stats.kstest(z, "laplace").pvalue)]
    return min(1.0, 2 * min(p))


def p_gaussian(noise: np.ndarray, scale: float) -> float:
    z = noise.ravel() / scale
    law, size = stats.chi2(z.size), float(z @ z)
    p = [min(1.0, 2 * min(law.cdf(size), law.sf(size))), float(stats.kstest(z, "norm").pvalue)]
    return min(1.0, 2 * min(p))


@pytest.mark.parametrize("calibration", ["paper", "laplace", "gaussian"])
def test_the_predictions_get_the_noise_that_was_charged(calibration):
    T = 2000
    pool = Pool.of(np.eye(T))  # the fit to targets is then the targets
    asked = tddl.request(pool, calibration, 0.01, bound=1.0, **TARGET)
    calls = []

    def predict(X):
        calls.append(1)
        return np.linspace(-1, 1, T)

    private = Private(np.ones((10, 1)))
    with private.open(**TARGET, noise="seeded", random_state=1) as session:
        rows = session.hide_rows(Cleaning(radius=1.0))
        (grant,) = session.plan(asked)
        alpha = tddl.release(session, grant, rows, predict, pool, norm=1e9)
    noise = alpha - np.linspace(-1, 1, T)
    test = p_gaussian if calibration == "gaussian" else p_laplace
    assert test(noise, grant.scale) > ALPHA
    for wrong in (0.7, 1.3):
        assert test(wrong * noise, grant.scale) < ALPHA
    assert len(calls) == (1 if calibration == "gaussian" else T)


@pytest.mark.parametrize("calibration", ["paper", "laplace", "gaussian"])
def test_several_outputs(calibration):
    rng = np.random.default_rng(3)
    Z, W = rng.normal(size=(15, 4)), rng.normal(size=(4, 3))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    pool = Pool.of(Z @ Z.T)
    facts = {"epsilon": 5.0, "delta": 1e-6}
    asked = tddl.request(pool, calibration, 1e-6, bound=1.0, outputs=3, **facts)
    with Private(np.ones((10, 1))).open(**facts) as session:
        rows = session.hide_rows(Cleaning(radius=1.0))
        (grant,) = session.plan(asked)
        alpha = tddl.release(session, grant, rows, lambda X: Z @ W, pool, norm=10.0)
    assert np.allclose(Z.T @ alpha, W, atol=1e-3)


def test_pool_size_balances_noise_and_coverage_from_public_facts():
    facts = {"norm": 20.0, "epsilon": 0.5, "delta": 1e-6}
    sizes = [tddl.pool_size(c, 0.01, available=10**6, **facts) for c in ("paper", "laplace")]
    gaussian = tddl.pool_size("gaussian", 0.01, available=10**6, **facts)
    assert gaussian == math.ceil(20.0 / (0.01 / gaussian_mu(0.5, 1e-6)))
    # one Laplace release is cheap where its delta is not used; advanced composition is not
    assert sizes[0] < gaussian < sizes[1]
    assert tddl.pool_size("gaussian", 0.01, available=7, **facts) == 7
    assert tddl.pool_size("gaussian", 1e9, available=7, **facts) == 1
