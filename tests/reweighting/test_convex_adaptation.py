"""Algorithm 1: its constants, its noise-free limit, and what it really guarantees."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from dpadapt.papers.reweighting.convex_adaptation import ConvexAdaptation
from dpadapt.papers.reweighting.labelled_discrepancy import labelled_discrepancy, labelled_moment
from dpadapt.papers.reweighting.objective import ConvexPenalty, SquaredLoss, reference_weights
from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.composition import compose_delta
from dpadapt.privacy.mechanisms import Laplace
from dpadapt.testing.independent_accountant import recompute_epsilon

CLEANING = Cleaning(radius=1.0, intercept=0.5, label_range=(-1.0, 1.0), unit_labels=True)
LENGTH = math.hypot(1.0, 0.5)


def _sample(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) / 2
    y = np.clip(X @ [0.6, -0.3] + shift + 0.05 * rng.normal(size=n), -1, 1)
    return X, y


X_PUBLIC, Y_PUBLIC = CLEANING(*_sample(60, 0))
PRIVATE = Private(*_sample(500, 1, shift=0.2))
SEEDED = {"noise": "seeded", "random_state": 0}


def _fit(algorithm, private=PRIVATE, **options):
    settings = {"epsilon": 1.0, "delta": 1e-6, **SEEDED, **options}
    with private.open(**settings) as session:
        return algorithm.fit(session, CLEANING), session.guarantee


def test_the_printed_constants():
    """Lines 2 to 4 of Algorithm 1, written out once more."""
    alpha, T, n, epsilon, delta, kappa, reach = 0.3, 20, 500, 2.0, 0.01, (0.5, 0.2, 0.1), 1.5
    algorithm = ConvexAdaptation(
        X_PUBLIC, Y_PUBLIC, alpha, kappa, reach, steps=T, calibration="paper"
    )
    B, G = (reach * LENGTH + 1) ** 2, 2 * LENGTH * (reach * LENGTH + 1)
    with PRIVATE.open(epsilon=epsilon, delta=delta) as session:
        planned = algorithm.mechanisms(session, CLEANING)
    distance, by_w, by_u = (
        planned[name] for name in ("discrepancy", "gradient_by_w", "gradient_by_u")
    )
    assert (type(distance), distance.count) == (Laplace, 1)
    assert distance.printed == pytest.approx(B / n)
    units = 2 * math.sqrt(T * math.log(2 / delta)) / (epsilon / 2)
    s1, s2 = 2 * (1 - alpha) * G / n, (1 - alpha) ** 2 * B / n**2
    assert by_w.printed == pytest.approx(units * s1)
    assert by_u.printed == pytest.approx(units * s2)
    assert s1 <= by_w.sensitivity < s1 * (1 + 1e-6)
    assert s2 <= by_u.sensitivity < s2 * (1 + 1e-6)
    assert (by_w.count, by_u.count, by_w.dimension, by_u.dimension) == (T, T, 3, n)

    sigma1, sigma2 = units * s1, units * s2
    bar, m = B + sum(kappa), 60
    expected = (
        reach / math.sqrt(T * (G**2 + 3 * sigma1**2)),
        m**1.5 / (math.sqrt(T) * alpha**2 * (B + bar)),
        n**1.5 / math.sqrt(T * ((1 - alpha) ** 4 * bar**2 + n**4 * sigma2**2)),
    )
    assert algorithm.step_sizes(LENGTH, n, (sigma1, sigma2)) == pytest.approx(expected)
    warm = ConvexAdaptation(X_PUBLIC, Y_PUBLIC, alpha, kappa, reach, steps=T, start="public")
    assert warm.step_sizes(LENGTH, n, (sigma1, sigma2))[0] == pytest.approx(2 * expected[0])


@pytest.mark.parametrize(("epsilon", "real"), [(0.5, 1.0445), (1.0, 1.1543)])
def test_printed_constants_do_not_give_small_epsilon(epsilon, real):
    """Laplace noise is charged as any pure mechanism; exactly, it would be 1.026 and 1.124."""
    algorithm = ConvexAdaptation(X_PUBLIC, Y_PUBLIC, steps=10, calibration="paper")
    _, guarantee = _fit(algorithm, epsilon=epsilon, delta=0.01)
    assert guarantee.epsilon == pytest.approx(real, abs=0.001)
    assert any("was asked for" in caveat for caveat in guarantee.caveats)
    assert compose_delta(guarantee.events, epsilon) > 0.03  # at the epsilon that was claimed


def test_printed_constants_are_more_than_enough_at_epsilon_4():
    algorithm = ConvexAdaptation(X_PUBLIC, Y_PUBLIC, steps=10, calibration="paper")
    _, guarantee = _fit(algorithm, epsilon=4.0, delta=0.01)
    assert guarantee.epsilon < 4.0
    assert not any("was asked for" in caveat for caveat in guarantee.caveats)


def test_printed_gaussian_part_fails_above_its_range():
    """At delta 0.01 the Gaussian part holds up to an epsilon of 7.9 only."""
    alone = ConvexAdaptation(X_PUBLIC, Y_PUBLIC, alpha=0.0, steps=10, calibration="paper")
    for epsilon, real in ((7.0, None), (10.0, 11.13), (15.0, 20.53)):
        _, guarantee = _fit(alone, epsilon=epsilon, delta=0.01)
        if real is None:
            assert guarantee.epsilon < epsilon
        else:
            assert guarantee.epsilon == pytest.approx(real, abs=0.02)


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_tight_calibration_spends_the_budget_exactly(alpha):
    algorithm = ConvexAdaptation(X_PUBLIC, Y_PUBLIC, alpha=alpha, steps=7)
    _, guarantee = _fit(algorithm, epsilon=0.7)
    assert guarantee.epsilon == pytest.approx(0.7, rel=1e-6)
    low, high = recompute_epsilon(guarantee.events, 1e-6)
    assert low <= 0.7 <= high * (1 + 1e-3)
    shares = {
        event.label: event.count * (event.sensitivity / event.scale) ** 2
        for event in guarantee.events
    }
    mu = gaussian_mu(0.7, 1e-6)
    assert sum(shares.values()) == pytest.approx(mu**2, rel=1e-6)
    if alpha == 0.4:
        assert shares["labelled discrepancy"] == pytest.approx(0.1 * mu**2, rel=1e-6)
    assert ("labelled discrepancy" in shares) == (alpha > 0)
    assert ("gradients" in shares) == (alpha < 1)


def test_a_forgotten_charge_or_too_little_noise_would_be_noticed():
    """The second accountant sees more than was asked for, in either case."""
    _, guarantee = _fit(ConvexAdaptation(X_PUBLIC, Y_PUBLIC, steps=7), epsilon=0.7)
    twice = (*guarantee.events, guarantee.events[0])
    weak = [replace(event, scale=0.7 * event.scale) for event in guarantee.events]
    for wrong in (twice, weak):
        assert recompute_epsilon(wrong, 1e-6)[0] > 0.71


def test_without_noise_the_objective_is_minimised():
    """CnvxAdap approaches the minimum of F over w, u being almost where it started."""
    X, y = CLEANING(*_sample(500, 1, shift=0.2))
    kappa, alpha = (0.5, 0.1, 0.1), 0.3
    algorithm = ConvexAdaptation(X_PUBLIC, Y_PUBLIC, alpha, kappa, norm_bound=2.0, steps=20_000)
    found = algorithm.minimise(X, y)
    distance = labelled_discrepancy(labelled_moment(X_PUBLIC, Y_PUBLIC), labelled_moment(X, y), 2.0)
    assert found.discrepancy == pytest.approx(distance)
    rows, labels = np.vstack([X_PUBLIC, X]), np.concatenate([Y_PUBLIC, y])
    p = reference_weights(60, 500, alpha)
    penalty = ConvexPenalty(p, kappa)
    offset = np.where(np.arange(560) < 60, distance, 0.0)

    def F(w):
        return penalty.value(SquaredLoss().value(rows @ w, labels) + offset, 1 / p)

    best = np.linalg.solve(rows.T @ (rows * p[:, None]), rows.T @ (labels * p))
    assert F(best) <= F(found.coefficients) <= F(best) + 0.02 * (F(np.zeros(3)) - F(best))
    assert (found.weights <= alpha / 60 * (1 + 1e-12)).all()
    np.testing.assert_allclose(found.weights, alpha / 60, rtol=0.05)


def test_alpha_1_ignores_private_rows_but_for_one_number():
    algorithm = ConvexAdaptation(X_PUBLIC, Y_PUBLIC, alpha=1.0, steps=30)
    first = algorithm.minimise(*CLEANING(*_sample(500, 1, shift=0.2)))
    second = algorithm.minimise(*CLEANING(*_sample(900, 2, shift=-0.4)))
    assert first.discrepancy != second.discrepancy
    np.testing.assert_allclose(first.coefficients, second.coefficients, atol=1e-3)


def test_alpha_0_ignores_public_rows():
    X, y = CLEANING(*_sample(500, 1, shift=0.2))
    found = [
        ConvexAdaptation(public, labels, alpha=0.0, steps=30).minimise(X, y)
        for public, labels in ((X_PUBLIC, Y_PUBLIC), (X_PUBLIC[:5], -Y_PUBLIC[:5]))
    ]
    np.testing.assert_array_equal(found[0].coefficients, found[1].coefficients)
    assert not found[0].weights.any()


def test_public_start_is_least_squares_in_the_ball():
    for reach in (0.2, 50.0):
        w = ConvexAdaptation(X_PUBLIC, Y_PUBLIC, norm_bound=reach, start="public")._first()
        assert np.linalg.norm(w) <= reach * (1 + 1e-12)
        slope = X_PUBLIC.T @ (X_PUBLIC @ w - Y_PUBLIC)
        if reach == 50.0:
            np.testing.assert_allclose(slope, 0, atol=1e-10)
        else:  # at the border the slope points straight inwards
            np.testing.assert_allclose(slope / np.linalg.norm(slope), -w / reach, atol=1e-9)


def test_vanishing_noise_gives_the_noise_free_limit():
    algorithm = ConvexAdaptation(X_PUBLIC, Y_PUBLIC, alpha=0.3, norm_bound=2.0, steps=40)
    noisy, _ = _fit(algorithm, epsilon=1e7)
    X, y = CLEANING(*_sample(500, 1, shift=0.2))
    exact = algorithm.minimise(np.vstack([X, X_PUBLIC[:0]]), y)
    # the step size of the session allows for the longest row there may be: a little smaller
    assert np.linalg.norm(noisy - exact.coefficients) < 0.05


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("start", ["zero", "public"])
def test_deterministic_under_a_seed(calibration, start):
    algorithm = ConvexAdaptation(
        X_PUBLIC, Y_PUBLIC, kappa=(0.0, 0.0, 0.0), steps=5, start=start, calibration=calibration
    )
    first, second, other = (_fit(algorithm, random_state=seed)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()
    assert np.linalg.norm(first) <= 1 + 1e-12


def test_the_algorithm_keeps_nothing_of_a_session():
    algorithm = ConvexAdaptation(X_PUBLIC, Y_PUBLIC, steps=3)
    before = pickle.dumps(algorithm), repr(algorithm)
    _fit(algorithm)
    assert (pickle.dumps(algorithm), repr(algorithm)) == before


def test_hostile_rows_are_cleaned():
    X = np.array([[np.nan, np.inf], [1e300, -1e300], [0.0, 0.0]] * 10)
    y = np.array([np.nan, np.inf, -1e300] * 10)
    w, _ = _fit(ConvexAdaptation(X_PUBLIC, Y_PUBLIC, steps=3), Private(X, y))
    assert np.isfinite(w).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 1.5}, "alpha"),
        ({"alpha": float("nan")}, "alpha"),
        ({"kappa": (0.1, -1.0, 0.0)}, "kappa"),
        ({"kappa": (0.1, 1.0)}, "kappa"),
        ({"steps": 0}, "steps"),
        ({"norm_bound": 0.0}, "norm_bound"),
        ({"start": "warm"}, "start"),
        ({"calibration": "loose"}, "calibration"),
    ],
)
def test_bad_settings_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        ConvexAdaptation(X_PUBLIC, Y_PUBLIC, **change)


def test_public_facts_are_checked_in_the_session():
    with PRIVATE.open(epsilon=1.0, delta=1e-6) as session:
        with pytest.raises(ValueError, match="within the bounds"):
            ConvexAdaptation(9 * X_PUBLIC, Y_PUBLIC).mechanisms(session, CLEANING)
        session.split(0.5)
        with pytest.raises(ValueError, match="split"):
            ConvexAdaptation(X_PUBLIC, Y_PUBLIC, alpha=0.0).mechanisms(session, CLEANING)
    unlabelled = Private(np.zeros((20, 2)))
    with pytest.raises(ValueError, match="labels"):
        _fit(ConvexAdaptation(X_PUBLIC, Y_PUBLIC, alpha=0.0, steps=2), unlabelled)
