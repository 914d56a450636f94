"""Errata of paper 003 (Kohen, Sheffet): each test fails if what is printed were right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpadapt import NoisyGDClassifier
from dpadapt.hybrid import EstimatorLearner, SGDLearner, SubsampleTestReweigh, parity_rows
from dpadapt.hybrid.rules import LinearRule
from dpadapt.papers.hybrid.doors._compiled import steps
from dpadapt.papers.hybrid.doors.draws import DrawsEvent
from dpadapt.papers.hybrid.learners import LearningTask
from dpadapt.papers.hybrid.sample_sizes import agents_for_test
from dpadapt.privacy.accounting.composition import compose_delta, compose_epsilon, gaussian_delta
from dpadapt.privacy.accounting.events import GaussianEvent


def test_the_delta_of_the_algorithm_is_enough_and_the_proof_has_two_others():
    """E3.2: what ``from_theorem`` gives its learner composes to delta; 400 times that does not."""
    delta, draws = 1e-6, 500
    known = {"alpha": 0.2, "beta": 0.05, "chi2": 0.35, "epsilon": 1.0, "delta": delta}
    learner = EstimatorLearner(NoisyGDClassifier(epsilon=1, delta=1e-8, steps=20), draws=draws)
    model = SubsampleTestReweigh.from_theorem(**known, dimension=2, learner=learner)
    own, kappa, T = model.learner.delta, model.schedule.kappa, model.schedule.rounds
    # as many rows as Theorem 4.2 prints, each drawn with a rate of 1 / (kappa n) at most
    n = draws * math.sqrt(288 * T * math.log(2 / delta)) / kappa
    event = DrawsEvent("draws", 1.0, own, draws=draws, rate=1 / (kappa * n), count=T)
    assert compose_delta([event], 1.0) <= delta
    many = DrawsEvent("draws", 1.0, 400 * own, draws=draws, rate=1 / (kappa * n), count=T)
    assert compose_delta([many], 1.0) > delta
    proof = delta / (4 * math.e * math.sqrt(2 * T)), kappa * delta / (8 * math.e * T)
    assert own == pytest.approx(4 * proof[0])
    assert own > 1e4 * proof[1]


def test_all_batches_of_a_parity_must_have_full_rank():
    """E3.15: the printed rows are those of one batch, and the corollary speaks of all k."""
    d, chi2, beta = 64, 0.9, 0.05
    found = parity_rows(d, chi2, epsilon=1.0, beta=beta)
    k = math.ceil(math.log(2 / beta, 4 / 3))

    def dependent(kept):
        """Claim B.2: the chance that so many kept rows of one batch miss full rank, at most."""
        return d * math.exp(-kept / (4 * (chi2 + 1) * d))

    assert found.batches == k == 13
    assert k * dependent(found.kept) <= beta / 4  # a batch may also be silent, or keep too few
    printed = 32 * (chi2 + 1) * d * math.log(2 * d / beta) / 8  # eps/8 of the printed rows
    assert dependent(printed) <= beta / 2 * (1 + 1e-9) < k * dependent(printed)


@pytest.mark.parametrize(("bound", "real"), [(2, 0.69), (10, 4.4), (395, 1149)])
def test_gaussian_answers_to_a_loss_of_up_to_ld_are_not_private(bound, real):
    """E3.3: the noise is that of a loss in [0, 1]; the appendix asks for one in [0, LD]."""
    epsilon, delta = 0.5, 1e-4
    noise = math.sqrt(2 * math.log(2 / delta)) / epsilon
    assert gaussian_delta(epsilon, 1 / noise) < delta  # as printed, for a loss in [0, 1]
    assert gaussian_delta(epsilon, bound / noise) > delta
    spent = compose_epsilon([GaussianEvent("answer", float(bound), noise)], delta)
    assert spent == pytest.approx(real, rel=0.02)


def test_the_printed_number_of_agents_forgets_that_they_are_a_sample():
    """E3.4: N_0 leaves all of alpha to the noise; a mean of N_0 losses errs by itself."""
    alpha, beta, epsilon, delta = 0.05, 1e-4, 8.0, 1e-4
    printed = agents_for_test(alpha, beta, epsilon, delta, "paper")
    assert printed == math.ceil(
        4 * math.log(2 / delta) * math.log(8 / beta) / (epsilon * alpha) ** 2
    )
    noise = math.sqrt(2 * math.log(2 / delta)) / epsilon / math.sqrt(printed)

    def missed(mean: float) -> float:
        """Exact probability that the mean answer is farther than alpha from the mean loss."""
        counts = np.arange(printed + 1)
        off = counts / printed - mean
        tails = stats.norm.sf((alpha - off) / noise) + stats.norm.cdf((-alpha - off) / noise)
        return float(stats.binom.pmf(counts, printed, mean) @ tails)

    assert 2 * stats.norm.sf(alpha / noise) < beta  # the noise alone keeps to it
    assert missed(0.5) > 3 * beta
    assert missed(0.3) > 2 * beta


def mean_iterate(sigma, step, steps=400, centre=0.3):
    """Mean of the iterates of Algorithm 3 on |h - centre| over [-1, 1], without its noise."""
    h, total = 0.0, 0.0
    for r in range(1, steps + 1):
        total += h
        h = min(1.0, max(-1.0, h - step(sigma, r) * math.copysign(1.0, h - centre)))
    return total / steps


def test_the_printed_step_of_algorithm_3_does_not_converge_at_little_noise():
    """E3.6: D/(sigma sqrt(r)) has no limit as sigma falls; the theorem's is D/(G sqrt(r))."""
    D, L = 2.0, 1.0
    promised = 1.5 * D * L / math.sqrt(400)
    right = mean_iterate(0.01, lambda sigma, r: D / (math.hypot(L, sigma) * math.sqrt(r)))
    printed = mean_iterate(0.01, lambda sigma, r: D / (sigma * math.sqrt(r)))
    assert abs(right - 0.3) <= promised
    assert abs(printed - 0.3) > promised  # it jumps from one end to the other


def test_a_lipschitz_loss_on_a_small_set_is_not_below_ld():
    """E3.8: a hinge is 1 at the rule that says nothing, also where L D is a tenth of it."""
    rule = LinearRule("linear", np.zeros(1), np.ones(1), np.zeros(2), (0, 1), clip=1.0)
    X, y = np.array([[0.5], [-0.5]]), np.array([1.0, -1.0])
    lipschitz, diameter = 1.0, 0.1
    hinge = np.maximum(0.0, 1.0 - y * (X[:, 0] * 0.0))
    assert (hinge > 5 * lipschitz * diameter).all()
    assert (rule.losses(X, y) > 5 * lipschitz * diameter).all()  # the logistic loss: ln 2


def test_a_hinge_without_a_margin_has_nothing_to_minimise():
    """E3.9: the rule that says nothing has loss 0 as printed: a descent from it never starts."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(500, 2)) / 4
    y, blank = np.sign(Z[:, 0] - Z[:, 1]), LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1))
    lengths = []
    for learner in (SGDLearner(loss="hinge"), SGDLearner(loss="hinge", margin=0.0)):
        descent = learner.descent(LearningTask(500, 1, blank))
        at, total = np.zeros(2), np.zeros(2)
        sizes = (descent.margin, 10.0, descent.radius, 1.0)
        steps(at, total, Z, y, np.zeros((500, 2)), 0, True, *sizes, 0.0, 0.0, 0.0, 0.0)
        lengths.append(np.linalg.norm(at))
        if learner.margin:
            assert np.mean(np.sign(Z @ at) == y) > 0.95
    assert lengths[0] > 0.5
    assert lengths[1] == 0


def test_a_cap_taken_from_the_private_rows_tells_neighbours_apart():
    """E3.10: "the maximum of 90% of the examples" is released without noise."""
    rng = np.random.default_rng(0)
    norms = np.linalg.norm(rng.normal(size=(1001, 8)), axis=1)
    place = int(np.argsort(norms)[900])
    other = norms.copy()
    other[place] += 0.1
    caps = [np.quantile(each, 0.9) for each in (norms, other)]
    assert caps[0] != caps[1]  # an output that differs for sure: no (epsilon, delta < 1) holds


def test_the_printed_strongly_convex_step_depends_on_the_diameter():
    """E3.14: D/(lambda r) is too short where D is small; 1/(lambda r) keeps to its bound."""
    penalty, diameter, steps = 1.0, 0.1, 10_000
    slope = penalty * diameter  # the largest gradient of (lambda/2) h^2 on the set
    bound = 4 * slope**2 / (penalty**2 * steps)

    def squared_error(size):
        h = diameter / 2
        for r in range(1, steps + 1):
            h -= size / (penalty * r) * penalty * h
        return h**2

    assert squared_error(1.0) <= bound
    assert squared_error(diameter) > 50 * bound
