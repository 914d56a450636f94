"""Errata of paper 002 (Jain, Thakurta): each test fails if what is printed were right."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt.kernels.constants import Bounds, constants
from dpadapt.kernels.erm import solve
from dpadapt.kernels.losses import HuberisedHinge, Logistic
from dpadapt.kernels.pool import Pool
from dpadapt.kernels.rounds import Rounds
from dpadapt.kernels.tddl import ball_least_squares
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
            abs(float(ball_least_squares(pool, np.array([norm + noise]), max(norm, 1e-12))[0]))
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


def printed_theorem_8(n, penalty, d, epsilon, delta, beta, stretch):
    """Theorem 8 with C_1 = L = R = 1; ``stretch`` is L_phi."""
    logs = math.log(stretch) * math.log(1 / beta) * math.log(1 / delta) ** 2
    return d ** (1 / 3) * logs / ((penalty**2 * n) ** (2 / 3) * math.sqrt(epsilon))


def test_the_rate_of_theorem_8_is_zero_for_linear_kernels_and_else_above_plain_noise():
    """E2.15: ln L_phi is 0 for a linear kernel; elsewhere plain noise on the weights is better."""
    setting = {"penalty": 0.01, "d": 50, "epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
    assert printed_theorem_8(10**6, **setting, stretch=1.0) == 0  # no noise at all: impossible
    for n in (10**4, 10**6, 10**8):
        noise = 2 / (setting["penalty"] * n) / gaussian_mu(1.0, 1e-6)
        largest = noise * (math.sqrt(50) + math.sqrt(2 * math.log(1 / 0.05)))  # over the unit ball
        assert largest < printed_theorem_8(n, **setting, stretch=math.e) / 10


def test_the_sum_of_line_6_over_the_present_point_is_another_model():
    """E2.15: sum_tau alpha_tau phi(z_t) instead of phi(z_tau) forgets where steps were made."""
    points, alpha = np.eye(2), np.array([0.3, -0.3])
    right = alpha @ points
    assert right == pytest.approx([0.3, -0.3])
    as_printed = [alpha.sum() * points[t] for t in range(2)]
    assert np.allclose(as_printed, 0.0)


def test_corollary_6_cannot_bound_the_loss_itself():
    """E2.16: labels of a fair coin cost ln 2 under the logistic loss, however many rows there are.

    What the proof gives is the loss above that of the best model in the ball.
    """
    scores = np.linspace(-20, 20, 401)
    signs = np.ones_like(scores)
    expected = (Logistic().value(scores, signs) + Logistic().value(scores, -signs)) / 2
    assert expected.min() >= math.log(2) - 1e-12  # so no epsilon_g below .69 is ever reached
