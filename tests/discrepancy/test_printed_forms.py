"""What the paper prints and what is true: each test fails if the printed form were right."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from dpadapt.discrepancy.matrices import weighted_moment
from dpadapt.papers.discrepancy.first_stage import bregman_step
from dpadapt.papers.discrepancy.parameters import SingleStageConstants
from dpadapt.papers.discrepancy.queries import RowBounds
from dpadapt.papers.discrepancy.single_stage import AdaptationObjective
from dpadapt.papers.discrepancy.smoothing import OneSidedSoftmax, PNorm, Softmax
from dpadapt.papers.discrepancy.theorems import (
    Setting,
    corollary_2,
    corollary_3,
    corollary_4,
    theorem_4,
    theorem_10,
    theorem_11,
)

DELTA = 1 / 8000


def log_probability_of_the_first(gap, K, J):
    """Of k* = 1: the first gap is larger by ``gap``; noise: minus the least of J Laplace."""
    grid = np.linspace(-30.0, 400.0, 200_001)
    half = np.log(0.5)
    below = np.where(grid < 0, half + grid, np.log1p(-0.5 * np.exp(-np.abs(grid))))
    log_cdf = J * below  # of the largest of J
    log_density = math.log(J) + (J - 1) * below + half - np.abs(grid)
    shifted = np.interp(grid + gap, grid, log_cdf)
    beyond = grid + gap > 30  # there log(1 - F) is log(J/2) - x
    log_tail = np.where(
        beyond,
        math.log(J / 2) - (grid + gap),
        np.log(-np.expm1(np.minimum(shifted, -1e-300))),
    )
    return float(logsumexp(log_density + (K - 1) * log_tail))


@pytest.mark.parametrize("K", [2, 10, 50])
def test_taking_the_smallest_noisy_gap_costs_more_than_report_noisy_min(K):
    """E1: two gaps that move apart by 2 eps_0 would cost 2 eps_0; they cost 2 (K - 1) eps_0."""
    eps_0, J = 0.01, 1000
    loss = log_probability_of_the_first(60.0, K, J) - log_probability_of_the_first(
        60.0 + 2 * eps_0, K, J
    )
    assert loss == pytest.approx(2 * (K - 1) * eps_0, rel=0.03)
    assert K == 2 or loss > 8 * (2 * eps_0)


@pytest.mark.parametrize("r", [1.5, 2.0, 4.0])
def test_hessians_grow_with_the_fourth_power_of_the_rows(r):
    """E6, Propositions 2 and 5: the printed bounds grow with the square."""
    X, h = r * np.eye(2), 1e-3

    def largest(f):
        def at(q):
            return f(np.eye(2) - (X * q[:, None]).T @ X)

        q0 = np.array([0.5, 0.5])
        hessian = np.array(
            [
                [
                    (at(q0 + h * (a + b)) - at(q0 + h * a) - at(q0 + h * b) + at(q0)) / h**2
                    for a in np.eye(2)
                ]
                for b in np.eye(2)
            ]
        )
        return np.abs(np.linalg.eigvalsh(hessian)).max()

    mu = 0.01
    assert largest(OneSidedSoftmax(mu).value) > 1.05 * mu * np.linalg.norm(X.T @ X, 2)
    assert largest(OneSidedSoftmax(mu).value) == pytest.approx(mu * r**4 / 2, rel=0.05)
    assert largest(PNorm(1).value) > 1.05 * (2 - 1) * (X**2).sum()
    assert largest(PNorm(1).value) == pytest.approx(2 * r**4, rel=0.01)


def test_corollary_3_asks_for_no_step_and_promises_nothing():
    """E7: K = 0.67 at n = 1000, and a bound above that of any weights whatever."""
    facts = {"m": 1000, "d": 10, "delta": DELTA, "public_radius": 1.1, "private_radius": 1.1}
    for n, epsilon, steps in ((1000, 1.0, 0.67), (8000, 1.0, 2.09), (8000, 10.0, 9.7)):
        setting = Setting(n=n, epsilon=epsilon, norm_bound=0.5, **facts)
        found = corollary_3(setting)
        assert found.steps == pytest.approx(steps, abs=0.02)
        assert found.bound > setting.trivial
        assert corollary_4(setting).bound > setting.trivial
        assert theorem_4(setting, 5.0).bound > setting.trivial
        assert corollary_3(setting, printed=False).bound < found.bound


def test_the_excess_of_a_discrepancy_grows_with_the_square_of_the_norm_bound():
    """E7: Corollary 3 prints the fourth power; whatever its constant, a small bound breaks it."""
    X = np.array([[1.0], [0.0]])
    worst = float(np.abs(1.0 - weighted_moment(X, np.array([0.5, 0.5]))).max())
    rate, constant = (1.0 * 1000) ** (-1 / 3), 1e6
    for small in (1e-4, 1e-5):
        assert 4 * small**2 * worst > constant * small**4 * rate
    wide, narrow = (Setting(1000, 10, 8000, 1.0, DELTA, norm_bound=bound) for bound in (1.0, 0.5))
    assert corollary_3(wide).bound == pytest.approx(4 * corollary_3(narrow).bound)


def test_the_printed_theorem_10_leaves_out_the_diameter():
    """E7: with steps 3 / (k + 2) the recursion of the proof ends above 2 (mu r^4 + lambda) / K."""
    K, modulus = 200, 1.0
    left = 2 * modulus  # of the smoothness inequality from the first vertex: L D^2 / 2
    for k in range(2, K + 1):
        eta = 3 / (k + 2)
        left = (1 - eta) * left + eta**2 * 4 * modulus / 2
    assert left > 2 * modulus / K
    assert left <= 9 * modulus / K
    setting = Setting(1000, 10, 10**15, 1.0, DELTA)
    assert theorem_10(setting, K, 1.0) == pytest.approx(2 / K, rel=1e-3)
    assert theorem_10(setting, K, 1.0, printed=False) == pytest.approx(9 / K, rel=1e-3)


def test_the_squared_p_norm_is_less_convex_than_printed():
    """E8: Phi would be 1-strongly convex in the l1 norm; its modulus is near 2/e^2 = 0.27."""
    m = 1000
    p = 1 + 1 / math.log(m)

    def phi(q):
        return (np.abs(q) ** p).sum() ** (2 / p) / (p - 1)

    def slope(q):
        return 2 / (p - 1) * (q**p).sum() ** ((2 - p) / p) * q ** (p - 1)

    q = np.full(m, 1 / m)
    other = q * np.where(np.arange(m) % 2, 1.2, 0.8)
    divergence = phi(other) - phi(q) - slope(q) @ (other - q)
    modulus = 2 * divergence / np.abs(other - q).sum() ** 2
    assert modulus < 0.5
    assert modulus > 2 / math.e**2 * 0.9


def test_the_printed_prox_is_not_the_step_of_mirror_descent():
    """E8: |q - q_k|_p^2 is not the Bregman divergence; its step moves weights elsewhere."""
    m, eta = 20, 0.5
    rng = np.random.default_rng(0)
    q, g = rng.dirichlet(np.ones(m)), rng.normal(size=m)
    p = 1 + 1 / math.log(m)

    def printed(x):
        return g @ (x - q) + (np.abs(x - q) ** p).sum() ** (2 / p) / (eta * (p - 1))

    step = bregman_step(q, g, eta)
    # along the segment to the Bregman step the printed objective is least well before its end
    values = [printed(q + t * (step - q)) for t in np.linspace(0, 1, 101)]
    assert int(np.argmin(values)) < 80


def test_the_squared_loss_bends_twice_as_much_as_printed():
    """E9: mu_w is 2 r^2, not r^2."""
    objective = AdaptationObjective(np.array([[1.5]]), np.array([0.2]), Softmax(1.0), radius=1.0)
    q = np.ones(1)
    change = objective.coefficient_gradient(q, np.array([1.0])) - objective.coefficient_gradient(
        q, np.array([0.0])
    )
    bend = abs(change[0])
    assert bend == pytest.approx(2 * 1.5**2)
    # the constants of Algorithm 1 know it: D_q^2 mu_q + D_w^2 mu_w + 2 gamma_qw D_q D_w
    bounds, residual = RowBounds(private=1.0, public=1.5, n_rows=100), 1.5 + 0.2
    found = SingleStageConstants.of(Softmax(1.0), bounds, 1.0, 0.2).curvature
    weights = 4 * 4 * Softmax(1.0).smoothness(1.5)
    assert found == pytest.approx(weights + 4 * bend + 2 * (2 * residual * 1.5) * 2 * 2)


def test_a_number_of_steps_does_not_depend_on_the_unit_of_labels():
    """E9: Theorem 4 prints sqrt(2 D); with labels in other units K would change."""
    facts = {"m": 1000, "d": 10, "n": 8000, "epsilon": 1.0, "delta": DELTA}
    here = Setting(norm_bound=1.0, largest_label=1.0, **facts)
    there = Setting(norm_bound=10.0, largest_label=10.0, **facts)
    steps = theorem_4(here, 5.0, printed=False).steps, theorem_4(there, 5.0, printed=False).steps
    assert steps[0] == steps[1]
    assert theorem_4(here, 5.0).steps > 5 * theorem_4(there, 5.0).steps
    assert corollary_2(here, 5.0).steps == pytest.approx(corollary_2(there, 5.0).steps)


def test_noise_in_units_of_a_private_radius_gives_a_row_away():
    """E10: were r the largest private norm, neighbours would have noise of different scales."""
    rows = np.array([[1.0, 0.0]] * 9 + [[3.0, 0.0]])
    neighbour = rows.copy()
    neighbour[-1] = [1.0, 0.0]
    scales = [float(np.linalg.norm(T, axis=1).max()) ** 2 for T in (rows, neighbour)]
    at = 60 * scales[1]  # something that the larger scale gives now and then
    log_densities = [-at / scale - math.log(2 * scale) for scale in scales]
    assert log_densities[0] - log_densities[1] > 50  # whatever epsilon was


def test_the_printed_composition_fails_at_large_epsilon():
    """E11: K steps of eps / sqrt(8 K log(1/delta)) each give more than eps = 40 at delta = 0.01."""

    def delta_of(eps_0, K, epsilon):
        """Of K randomised responses, the worst eps_0-DP mechanisms (Kairouz, Oh, Viswanath)."""
        counts = np.arange(K + 1)
        loss = (2 * counts - K) * eps_0
        chance = binom.pmf(counts, K, 1 / (1 + math.exp(-eps_0)))
        return float(chance @ np.maximum(0.0, -np.expm1(epsilon - loss)))

    delta, K = 0.01, 400
    for epsilon, holds in ((1.0, True), (10.0, True), (40.0, False)):
        eps_0 = epsilon / math.sqrt(8 * K * math.log(1 / delta))
        advanced = math.sqrt(2 * K * math.log(1 / delta)) * eps_0 + K * eps_0 * math.expm1(eps_0)
        assert (advanced <= epsilon) is holds
        if holds:
            assert delta_of(eps_0, K, epsilon) <= delta
    # and not only the theorem that is cited: the worst mechanisms themselves, at a larger epsilon
    eps_0 = 80.0 / math.sqrt(8 * K * math.log(1 / delta))
    assert delta_of(eps_0, K, 80.0) > delta


def test_the_slope_cancels_in_theorem_11():
    """The printed factor lambda + r_hat^2 makes the bound too small where it is below 0.7."""
    setting = Setting(1000, 10, 8000, 1.0, DELTA, public_radius=0.1)
    slope, K = 0.1**2, theorem_11(setting, 1.0).steps
    sigma = 4 * 0.1**2 * math.sqrt(2 * K * 1000 * math.log(8000)) / 8000
    rest = slope**2 + 4 * sigma**2 * math.log(2 * 1000 / 0.05)
    own = 2 * math.sqrt(math.log(1000) * rest / K)  # least over the step size, as in the proof
    assert theorem_11(setting, 1.0).bound < own / 10
    wide = Setting(1000, 10, 8000, 1.0, DELTA, public_radius=1.0)
    assert theorem_11(wide, 1.0).bound > own  # there the factor does no harm
