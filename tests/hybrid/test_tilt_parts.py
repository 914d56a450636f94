"""Parts of the tilt: density ratios and their caps, agents' bits, plans, descents."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpadapt import Private
from dpadapt.hybrid.queries import tilted_rows
from dpadapt.hybrid.rules import LinearRule
from dpadapt.hybrid.tilt.algorithm import Columns, refine, tilt_mechanisms, tilted_descent
from dpadapt.hybrid.tilt.laws import (
    Populations,
    _correlations,
    marginal_mechanisms,
    release_marginals,
)
from dpadapt.hybrid.tilt.plan import AgentShares, agents_required
from dpadapt.hybrid.tilt.ratio import Cap, Law, Ratio, correlation_matrix, orthant_correlation
from dpadapt.hybrid.tilt.target import Shift, ask_agreements, ask_shape, ask_shift
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.local.agents import Agents

SEEDED = {"noise": "seeded", "random_state": 0}


def law(d=4, scale=1.0, move=0.0, matrix=None):
    return Law(np.full(d, move), np.full(d, scale), np.eye(d) if matrix is None else matrix)


# the ratio of densities


@pytest.mark.parametrize("correlated", [False, True])
def test_the_ratio_is_that_of_the_densities(correlated):
    matrix = correlation_matrix(3, np.triu_indices(3, 1), np.array([0.6, -0.2, 0.1]))
    target = law(3, 0.6, 0.3, matrix if correlated else None)
    X = np.random.default_rng(0).normal(size=(50, 3))
    covariance = np.outer(target.spread, target.spread) * target.correlation
    expected = stats.multivariate_normal(target.centre, covariance).logpdf(X)
    expected = expected - stats.multivariate_normal(np.zeros(3), np.eye(3)).logpdf(X)
    np.testing.assert_allclose(Ratio(law(3), target).logs(X), expected, atol=1e-9)


def test_tilted_source_rows_have_the_targets_moments():
    target = law(4, 0.6)
    X = np.random.default_rng(1).normal(size=(400_000, 4))
    weights = np.exp(Ratio(law(4), target).logs(X))
    assert weights.mean() == pytest.approx(1, abs=0.03)
    np.testing.assert_allclose((weights[:, None] * X**2).mean(axis=0), 0.36, rtol=0.06)
    cap = Cap.best(Ratio(law(4), target).logs(target.draw(20_000)), 0.01, 0.05)
    # the part that a cap leaves is the mass of the capped weights under the source
    assert np.minimum(weights, cap.weight).mean() == pytest.approx(cap.kept, abs=0.02)


def test_a_cap_biases_by_no_more_than_what_it_cuts():
    target = law(4, 0.5)
    ratio, rng = Ratio(law(4), target), np.random.default_rng(2)
    T = target.draw(100_000, seed=3)
    for most in (0.02, 0.05, 0.2):
        cap = Cap.best(ratio.logs(T), 0.01, most)
        kept = np.minimum(1, cap.weight * np.exp(-ratio.logs(T)))
        for _ in range(20):  # shares of ellipses under the target, and under what the cap makes it
            wrong = (T**2 @ rng.uniform(0, 1, 4)) < rng.uniform(0, 1)
            assert abs(np.average(wrong, weights=kept) - wrong.mean()) <= 1 - cap.kept + 0.01


def test_a_cap_weighs_noise_against_mass():
    logs = Ratio(law(6), law(6, 0.4)).logs(law(6, 0.4).draw(20_000))
    caps = [Cap.best(logs, noise, 0.05) for noise in (1e-5, 1e-3, 1e-1)]
    assert caps[0].weight > caps[1].weight >= caps[2].weight >= 1
    assert caps[0].kept > 0.94
    assert caps[0].noise <= 0.05
    assert caps[1].noise <= 0.05
    assert 0.29 < caps[2].kept < 0.36
    assert caps[2].noise > 0.05  # nothing fits; the least is taken


def test_populations_that_do_not_meet_are_not_tilted():
    far = Populations(
        Ratio(law(3), law(3, 0.05, 2.4)), law(3, 0.05, 2.4), shifted=True, beyond=False
    )
    tilt = far.tilt(noise=0.01)
    assert not tilt.overlap
    assert tilt.cap.weight == 1.0
    near = Populations(Ratio(law(3), law(3, 0.7)), law(3, 0.7), shifted=True, beyond=False)
    assert near.tilt(noise=0.01).overlap
    same = Populations(Ratio(law(3), law(3)), law(3), shifted=False, beyond=False)
    np.testing.assert_array_equal(same.tilt(0.01).weight(np.zeros((4, 3)), np.zeros(4)), 1.0)


def test_correlations_make_a_matrix_whatever_was_released():
    rng = np.random.default_rng(3)
    for _ in range(20):
        matrix = correlation_matrix(6, np.triu_indices(6, 1), rng.normal(size=15))
        assert np.linalg.eigvalsh(matrix).min() > 0.01
        np.testing.assert_allclose(np.diag(matrix), 1)
    assert orthant_correlation(np.array([-3.0, 5.0])) == pytest.approx([-1, 1], abs=0.01)


def test_one_shifted_pair_and_many_small_ones_are_told_from_noise():
    rng = np.random.default_rng(4)
    noise = 0.03 * rng.normal(size=28)
    flat = np.full(28, 0.5)
    one = flat.copy()
    one[5] = 0.9
    all_even = np.ones(28, dtype=bool)
    *_, changed = _correlations(8, all_even, flat, 0.001, flat + noise * 0.5, 0.03)
    assert not changed
    _, target, changed = _correlations(8, all_even, flat, 0.001, one + noise * 0.5, 0.03)
    assert changed
    first, second = np.triu_indices(8, 1)
    assert target[first[5], second[5]] > 0.8
    many = flat + 0.06 * rng.choice([-1, 1], 28)
    _, target, _ = _correlations(8, all_even, flat, 0.001, many, 0.03)
    assert (np.abs(target[first, second]) > 0.1).mean() > 0.9


def test_pairs_with_an_uneven_column_have_no_correlation():
    even = np.ones(28, dtype=bool)
    even[5] = False
    mine, theirs = np.full(28, 0.5), np.full(28, 0.5)
    mine[5] = theirs[5] = 0.9
    first, second = np.triu_indices(8, 1)
    for flags, least, most in ((even, -0.05, 0.05), (~even | even, 0.8, 1.0)):
        one, two, changed = _correlations(8, flags, mine, 0.001, theirs, 0.03)
        assert not changed
        assert least < one[first[5], second[5]] < most
        assert least < two[first[5], second[5]] < most
    theirs[5] = 0.1
    assert not _correlations(8, even, mine, 0.001, theirs, 0.03)[2]


# what agents tell


def people(n, d=4, seed=5, draw=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) if draw is None else draw(rng, (n, d))
    return Agents(X, np.where(X[:, 0] > 0, 1.0, 0.0))


def test_bits_find_centre_and_spread():
    agents = people(60_000, draw=lambda rng, size: 0.8 + 0.4 * rng.normal(size=size))
    with agents.open(epsilon=1.0, **SEEDED) as poll:
        shift = ask_shift(poll, 40_000, np.zeros(4), np.ones(4))
    np.testing.assert_allclose(shift.move, 0.8, atol=0.08)
    np.testing.assert_allclose(shift.log_scale, math.log(0.4), atol=0.2)
    assert (np.abs(shift.log_scale - math.log(0.4)) < 4 * shift.log_scale_error).all()
    assert agents.n_left == 20_000
    assert not shift.at_the_edge
    assert shift.cut(0.01).any


def test_a_target_that_is_far_off_is_at_the_edge():
    agents = people(20_000, draw=lambda rng, size: 30 + rng.normal(size=size))
    with agents.open(epsilon=1.0, **SEEDED) as poll:
        assert ask_shift(poll, 20_000, np.zeros(4), np.ones(4)).at_the_edge


def test_no_shift_is_mostly_left_alone():
    shifted = 0
    for seed in range(10):
        with people(8000, seed=seed).open(epsilon=1.0, **SEEDED) as poll:
            shift = ask_shift(poll, 8000, np.zeros(4), np.ones(4)).cut(0.0)
            shifted += np.count_nonzero(shift.move) + np.count_nonzero(shift.log_scale)
    assert shifted <= 16  # of 80, at two standard errors


@pytest.mark.parametrize(
    ("draw", "low", "high"),
    [
        (lambda rng, size: rng.normal(size=size), 2.0, 2.0),
        (lambda rng, size: rng.uniform(-1.4648, 1.4648, size=size), 4.0, 10.0),
        (lambda rng, size: rng.laplace(scale=0.8708, size=size), 1.0, 1.5),
    ],
)
def test_bits_tell_the_tails(draw, low, high):
    with people(20_000, draw=draw).open(epsilon=1.0, **SEEDED) as poll:
        assert low <= ask_shape(poll, 20_000, np.zeros(4), np.ones(4)) <= high


def test_bits_tell_which_pairs_agree():
    def draw(rng, size):
        X = rng.normal(size=size)
        X[:, 2] = X[:, 0]
        return X

    with people(30_000, draw=draw).open(epsilon=1.0, **SEEDED) as poll:
        found, error = ask_agreements(poll, 30_000, np.zeros(4))
    assert found[1] == pytest.approx(1.0, abs=4 * error)
    np.testing.assert_allclose(np.delete(found, 1), 0.5, atol=4 * error)


def test_what_is_small_is_cut():
    shift = Shift(np.array([0.3, 0.1]), np.zeros(2), np.full(2, 0.1), np.full(2, 0.1))
    np.testing.assert_array_equal(shift.cut(0.0).move, [0.3, 0.0])
    assert not shift.cut(error=1.0).any


# plans


@pytest.mark.parametrize("n_agents", [200, 2657, 50_000, 1_000_001])
@pytest.mark.parametrize("width", [1, 8, 50])
def test_no_agent_is_promised_twice(n_agents, width):
    shares = AgentShares.of(n_agents, width)
    used = shares.moments + shares.pairs + shares.shape + shares.slopes + shares.verdict
    assert used + 2 * (shares.trial + shares.round) == n_agents
    assert (shares.pairs > 0) == (width == 8)


def test_more_columns_and_less_epsilon_need_more_agents():
    assert agents_required(8, 1.0) < agents_required(8, 0.5) < agents_required(16, 0.5)


@pytest.mark.parametrize("width", [1, 8, 20])
@pytest.mark.parametrize("agents", [True, False])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-4), (2.0, 1e-6)])
def test_the_shares_add_up_to_the_budget(width, agents, epsilon, delta):
    columns = Columns("squares", (0, 1), np.zeros(width), np.ones(width))
    with Private(np.zeros((100, width)), np.zeros(100)).open(
        epsilon=epsilon, delta=delta
    ) as session:
        session.plan(**tilt_mechanisms(session, columns, agents=agents))
        events = session.guarantee.events
    squares = sum(event.count * (event.sensitivity / event.scale) ** 2 for event in events)
    assert math.sqrt(squares) == pytest.approx(gaussian_mu(epsilon, delta), rel=1e-6)
    assert math.sqrt(squares) <= gaussian_mu(epsilon, delta) * (1 + 1e-9)


# what the curator releases


def test_released_marginals_are_near_the_truth():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(20_000, 3)) * [0.1, 1.0, 7.0] + [0.3, 0.0, -5.0]
    with Private(X).open(epsilon=1.0, delta=1e-6, **SEEDED) as session:
        grants = session.plan(**marginal_mechanisms(session, 1.0))
        found = release_marginals(session, grants, np.zeros(3), np.ones(3))
    np.testing.assert_allclose(found.spread, [0.1, 1.0, 7.0], rtol=0.06)
    np.testing.assert_allclose(found.centre, [0.3, 0.0, -5.0], atol=0.05 * 7)
    assert found.clear


def test_too_few_rows_give_no_clear_marginals():
    with Private(np.zeros((50, 3))).open(epsilon=0.1, delta=1e-6, **SEEDED) as session:
        grants = session.plan(**marginal_mechanisms(session, 1.0))
        found = release_marginals(session, grants, np.zeros(3), np.ones(3))
    assert not found.clear
    assert np.isfinite(found.centre).all()
    assert (found.spread > 0).all()


# descents


def blank(width=2):
    return LinearRule("linear", np.zeros(width), np.ones(width), np.zeros(width + 1), (0, 1))


@pytest.mark.parametrize("cap", [Cap(1.0, 1.0, 0.0), Cap(8.0, 0.5, 0.0)])
def test_the_curators_descent_learns(cap):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(5000, 2))  # the weight of each is asked for by itself
    private = Private(X, (X[:, 0] > 0).astype(float)).encode([0, 1])
    columns = Columns("linear", (0, 1), np.zeros(2), np.ones(2))
    rows = tilted_rows(blank(), lambda X, y: np.full(len(X), 1.0 / cap.weight))
    with private.open(epsilon=5.0, delta=1e-6, **SEEDED) as session:
        grants = session.plan(**tilt_mechanisms(session, columns, agents=False))
        rule = tilted_descent(session, grants.plain, rows, blank(), cap)
    assert (rule.predict(X) == (X[:, 0] > 0)).mean() > 0.97


def test_agents_learn_from_nothing_and_do_not_unlearn():
    agents = people(80_000, d=2)
    X = np.random.default_rng(8).normal(size=(5000, 2))
    with agents.open(epsilon=2.0, **SEEDED) as poll:
        found = refine(poll, 40_000, blank())
        assert (found.predict(X) == (X[:, 0] > 0)).mean() > 0.95
        good = blank().with_coefficients(np.array([9.0, 0.0, 0.0]))
        again = refine(poll, 40_000, good)
    assert (again.predict(X) == (X[:, 0] > 0)).mean() > 0.97
    assert agents.n_left == 0
