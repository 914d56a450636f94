"""Errata of paper 002 (Jain, Thakurta): each test fails if what is printed were right."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpadapt.kernels import KernelFacts, error_of_tdil, queries
from dpadapt.kernels.constants import Bounds, constants
from dpadapt.kernels.erm import solve
from dpadapt.kernels.losses import HuberisedHinge, Logistic, Squared
from dpadapt.kernels.pool import Pool, nearest_in_ball
from dpadapt.papers.kernels.rounds import Rounds
from dpadapt.papers.kernels.tdil import learn
from dpadapt.privacy import Cleaning, Private, Rows
from dpadapt.privacy.accounting.calibration import gaussian_mu

HINGE = HuberisedHinge(0.01)


def moved(rows, penalty, radius):
    """By how much the minimiser moves when the label of the one row flips."""
    one, other = (solve(rows, [y], HINGE, penalty, radius) for y in (1.0, -1.0))
    return float(np.linalg.norm(one - other))


def test_the_penalty_of_equation_1_would_double_the_sensitivity():
    """E2.1: (lambda/2) r(w) with r = |w|^2/2 is lambda/4; (3) holds for lambda/2 only."""
    rows, penalty = np.array([[0.6, 0.8]]), 4.0
    bound = 2 / penalty  # (3), with L = R = n = 1
    assert moved(rows, penalty, 1.0) <= bound * 1.01
    # lambda/4 |w|^2 is half the penalty of lambda/2 |w|^2
    assert moved(rows, penalty / 2, 1.0) > 1.9 * bound


def test_a_lipschitz_constant_in_the_weights_would_count_the_radius_twice():
    """E2.2: a loss that is L-Lipschitz in w has L R there, and 2 (L R) R/(lambda n) is exceeded."""
    radius, penalty = 0.5, 4.0
    rows = radius * np.array([[0.6, 0.8]])
    in_weights = 1.0 * radius  # the Lipschitz constant in w that the text asks for
    as_read = 2 * in_weights * radius / penalty
    assert moved(rows, penalty, radius) > 1.9 * as_read
    assert moved(rows, penalty, radius) <= 2 * radius / penalty * 1.01


def test_the_norm_of_the_minimiser_is_no_public_number():
    """E2.4: a ball of radius |w*| tells two neighbours apart, whatever the noise is."""
    n, penalty, pool = 10, 0.5, Pool.of(np.eye(1))
    rows = np.ones((n, 1))
    balanced = np.repeat([1.0, -1.0], n // 2)
    flipped = balanced.copy()
    flipped[0] = -1.0
    norms = [
        float(np.linalg.norm(solve(rows, y, HINGE, penalty, 1.0))) for y in (balanced, flipped)
    ]
    assert norms[0] < 1e-3 < 0.1 < norms[1]
    rng = np.random.default_rng(0)
    for noise in rng.laplace(scale=1e6, size=20):
        fits = [
            abs(float(nearest_in_ball(pool, np.array([norm + noise]), max(norm, 1e-12))[0]))
            for norm in norms
        ]
        assert fits[0] < 1e-3 < 0.1 < fits[1]  # the length of what is released says which it was
    public = constants(HINGE, 1.0, penalty, n, width=1).norm_bound
    assert public == pytest.approx(2.0)  # the same for both


def printed_rounds(n, epsilon, delta, radius):
    """B of Algorithm 3, with L = 1."""
    return n * epsilon / (100 * radius * math.log(4 / delta))


def test_the_printed_rounds_of_algorithm_3_depend_on_the_unit_of_the_features():
    """E2.13: B has neither lambda nor C, and scales as 1/R for one and the same problem."""
    n, epsilon, delta = 10**6, 1.0, 1e-6
    base = Rounds.of(Bounds(1e-5, norm=10.0), epsilon=epsilon, delta=delta)
    for c in (0.1, 10.0):
        same = Rounds.of(Bounds(1e-5 / c, 10.0 / c, radius=c), epsilon=epsilon, delta=delta)
        assert same.count == base.count
        ratio = printed_rounds(n, epsilon, delta, c) / printed_rounds(n, epsilon, delta, 1.0)
        assert ratio == pytest.approx(1 / c)
    # a model ten times as long needs more steps; the printed number knows nothing of it
    longer = Rounds.of(Bounds(1e-5, norm=100.0), epsilon=epsilon, delta=delta)
    assert longer.count > 5 * base.count


def test_the_rate_of_theorem_8_is_zero_for_linear_kernels_and_else_above_plain_noise():
    """E2.15: ln L_phi is 0 for a linear kernel; elsewhere plain noise on the weights is better.

    The bound that is offered for a linear kernel is not passed by answers that were drawn; the
    printed one, which says that there is no error, is.
    """
    facts = KernelFacts(rows=100_000, penalty=1.0, epsilon=1.0, delta=1e-6, norm=1.0)
    rounds = Rounds.of(Bounds(facts.model, norm=1.0), epsilon=1.0, delta=1e-6)
    truth, options = np.array([0.8, -0.6]), {"noise": "seeded", "random_state": 0}
    with Private(np.tile(truth, (100_000, 1))).open(epsilon=1.0, delta=1e-6, **options) as session:
        rows = session.hide(Rows(Cleaning(radius=1.0)))
        predicted = queries.predictions(session, rows, lambda X: X.mean(axis=0))
        grants = session.plan(**rounds.mechanisms())
        alpha = learn(session, grants, predicted, Pool.of(np.eye(2)), rounds)[:, 0]
    missed = float(np.abs(alpha - truth).max())
    assert missed > error_of_tdil(facts, 2, calibration="printed", stretch=1.0) == 0
    assert missed <= error_of_tdil(facts, 2, stretch=1.0) < 1
    for n in (10**4, 10**6, 10**8):
        plain = replace(facts, rows=n, penalty=0.01)
        noise = plain.model / gaussian_mu(1.0, 1e-6)
        largest = noise * (math.sqrt(50) + math.sqrt(2 * math.log(1 / 0.05)))  # over the unit ball
        assert largest < error_of_tdil(plain, 1, calibration="printed", columns=50) / 10


def test_the_sum_of_line_6_over_the_present_point_is_another_model():
    """E2.15: sum_tau alpha_tau phi(z_t) instead of phi(z_tau) forgets where steps were made.

    Two directions with answers of opposite signs: steps at both, hardly any noise. At one point all
    steps together would be one number times that point, with 0 or with one sign elsewhere.
    """
    Z, truth = np.eye(2), np.array([0.8, -0.6])
    rounds = Rounds.of(Bounds(2 / 100_000, norm=1.0), epsilon=1.0, delta=1e-6)
    options = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
    with Private(np.tile(truth, (100_000, 1))).open(**options) as session:
        rows = session.hide(Rows(Cleaning(radius=1.0)))
        predicted = queries.predictions(session, rows, lambda X: Z @ X.mean(axis=0))
        grants = session.plan(**rounds.mechanisms())
        alpha = learn(session, grants, predicted, Pool.of(Z @ Z.T), rounds)[:, 0]
        reach = 1.25 * rounds.threshold(grants.differences.scale)
    assert np.abs(alpha - truth).max() < reach < 0.3
    for t in range(2):  # as printed, whichever point is the present one
        assert np.abs(alpha.sum() * Z[t] - truth).max() > 2 * reach


def test_least_squares_keeps_to_its_bound_only_with_clamped_labels():
    """E2.3: a label may be anything; (3) holds for L = 2 (R C + Y) with the clamp alone."""
    loss, penalty, rows = Squared(1.0), 0.5, np.array([[0.6, 0.8]] * 3)
    slope = loss.lipschitz(radius=1.0, penalty=penalty)
    assert slope == pytest.approx(2 * (math.sqrt(2 / penalty) + 1))  # 2 (R C + Y), R = Y = 1
    allowed = 2 * slope / (penalty * len(rows))
    for label in (1.0, 1e3, 1e9):
        one, other = (
            solve(rows, [each, 0.3, -0.2], loss, penalty, 1.0) for each in (label, -label)
        )
        assert 0.05 * allowed < np.linalg.norm(one - other) <= allowed
    gram = rows.T @ rows * 2 / 3 + penalty * np.eye(2)
    free = [np.linalg.solve(gram, rows.T @ [label, 0.3, -0.2] * 2 / 3) for label in (1e3, -1e3)]
    assert np.linalg.norm(free[0] - free[1]) > 50 * allowed


def test_corollary_6_cannot_bound_the_loss_itself():
    """E2.16: labels of a fair coin cost ln 2 under the logistic loss, however many rows there are.

    What the proof gives is the loss above that of the best model in the ball.
    """
    scores = np.linspace(-20, 20, 401)
    signs = np.ones_like(scores)
    expected = (Logistic().value(scores, signs) + Logistic().value(scores, -signs)) / 2
    assert expected.min() >= math.log(2) - 1e-12  # so no epsilon_g below .69 is ever reached
