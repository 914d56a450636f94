"""Columns that are not normal: which they are, their laws, their tilt, and whole fits with them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.hybrid._classifier import NotCertified
from dpadapt.hybrid.hybrid_tilt import HybridTilt
from dpadapt.hybrid.rules import LinearRule
from dpadapt.hybrid.tilt.algorithm import Columns
from dpadapt.hybrid.tilt.laws import marginal_mechanisms, release_marginals
from dpadapt.hybrid.tilt.plan import AgentShares
from dpadapt.hybrid.tilt.ratio import Law, Ratio
from dpadapt.hybrid.tilt.target import ask_agreements, ask_shape, ask_shift
from dpadapt.hybrid.tilt.trials import Trial, Trials
from dpadapt.privacy.local.agents import Agents
from dpadapt.privacy.local.replies import Estimate

SEEDED = {"noise": "seeded", "random_state": 0}
N = 30_000


def released(X, epsilon=2.0, seed=0):
    """Marginals of rows, with a tenth of the budget of a fit."""
    private = Private(np.asarray(X, dtype=float))
    width = private.n_columns
    with private.open(epsilon=epsilon, delta=1e-6, noise="seeded", random_state=seed) as session:
        grants = session.plan(**marginal_mechanisms(session, share=0.1))
        return release_marginals(session, grants, np.zeros(width), np.ones(width))


def drawn(kind, rng, n=N):
    return {
        "normal": lambda: rng.normal(0.3, 1.2, n),
        "narrow": lambda: 0.02 * rng.normal(size=n),
        "uniform": lambda: rng.uniform(-2, 2, n),
        "laplace": lambda: rng.laplace(size=n),
        "student": lambda: rng.standard_t(4, n),
        "coin": lambda: rng.integers(0, 2, n),
        "rare": lambda: rng.random(n) < 0.05,
        "constant": lambda: np.zeros(n),
        "gains": lambda: np.where(rng.random(n) < 0.08, rng.exponential(8, n), 0.0),
        "delays": lambda: rng.lognormal(0, 1.2, n) - 0.5,
        "years": lambda: rng.choice([-0.33, 0.0, 0.33, 1.0], n, p=[0.4, 0.2, 0.1, 0.3]),
    }[kind]()


EVEN = ["normal", "narrow", "uniform", "laplace", "student"]
UNEVEN = ["coin", "rare", "constant", "gains", "delays", "years"]


@pytest.mark.parametrize("seed", range(3))
def test_which_columns_are_uneven(seed):
    rng = np.random.default_rng(seed)
    found = released(np.column_stack([drawn(kind, rng) for kind in EVEN + UNEVEN]), seed=seed)
    expected = [kind in UNEVEN for kind in EVEN + UNEVEN]
    assert found.cells.uneven.tolist() == expected


def test_noise_alone_makes_no_column_uneven():
    rows = np.random.default_rng(0).normal(size=(2000, 8))
    flagged = sum(
        found.cells.uneven.sum() if found.cells is not None else 0
        for found in (released(rows, epsilon=0.5, seed=seed) for seed in range(20))
    )
    assert flagged <= 5  # of 160


@pytest.mark.parametrize("kind", ["coin", "rare", "years", "constant"])
def test_an_uneven_column_has_the_scale_of_its_values(kind):
    """The nearest normal law may have nearly none: then one such column drowns all others."""
    column = drawn(kind, np.random.default_rng(1)).astype(float)
    found = released(column[:, None])
    scale = Columns("linear", (0, 1), np.zeros(1), np.ones(1)).scaled(found.law).scale[0]
    assert max(0.5 * column.std(), 0.02) < scale < 2 * column.std() + 0.2
    if kind == "rare":
        assert found.spread[0] < 0.1 * scale


def test_a_tilt_makes_a_coin_any_other_coin():
    found = released(drawn("coin", np.random.default_rng(2))[:, None])
    cells = found.cells
    people = (np.random.default_rng(3).random((20_000, 1)) < 0.2).astype(float)
    with Agents(people).open(epsilon=2.0, **SEEDED) as poll:
        shift = ask_shift(poll, 20_000, found.centre, found.spread, cells)
    assert shift.log_scale[0] == 0
    theirs = cells.tilted(shift.move)
    cut = cells.place(0, 0.5)
    assert theirs.shares[0, : cut + 1].sum() == pytest.approx(0.8, abs=0.04)
    source = Law(found.centre, found.spread, np.eye(1), cells=cells.without_hidden)
    target = Law(found.centre, found.spread, np.eye(1), cells=theirs.without_hidden)
    logs = Ratio(source, target).logs(np.array([[0.0], [1.0]]))
    np.testing.assert_allclose(np.exp(logs), [1.6, 0.4], atol=0.15)


@pytest.mark.parametrize("kind", ["coin", "rare"])
def test_without_lies_people_on_one_side_are_no_chance_below_zero(kind):
    """Shares of cells add up to a hair above 1, which at a small epsilon a lie makes up for."""
    found = released(drawn(kind, np.random.default_rng(2))[:, None], epsilon=1e4)
    with Agents(np.ones((2_000, 1))).open(epsilon=1e4, **SEEDED) as poll:
        shift = ask_shift(poll, 2_000, found.centre, found.spread, found.cells)
    assert shift.move[0] > 0.5
    assert np.isfinite(shift.move_error).all()


def test_no_tilt_no_weights():
    found = released(drawn("years", np.random.default_rng(4))[:, None])
    same = found.cells.tilted(np.zeros(1))
    np.testing.assert_allclose(found.cells.logs(np.array([[-0.33], [0.0], [5.0]]), same), 0)


def test_weights_of_an_uneven_column_average_to_one_over_the_source():
    column = drawn("years", np.random.default_rng(5))[:, None]
    cells = released(column).cells.without_hidden
    for move in (-1.0, 0.5, 2.0):
        weights = np.exp(cells.logs(column, cells.tilted(np.array([move]))))
        assert weights.mean() == pytest.approx(1, abs=0.1)


def test_what_noise_hides_gets_no_weight_but_a_scale():
    """No row of the source is 1 here, half of the target's people are."""
    found = released(np.zeros((N, 1)))
    people = np.random.default_rng(6).integers(0, 2, (20_000, 1)).astype(float)
    with Agents(people).open(epsilon=2.0, **SEEDED) as poll:
        shift = ask_shift(poll, 20_000, found.centre, found.spread, found.cells)
    theirs = found.cells.tilted(shift.move)
    law = Law(found.centre, found.spread, np.eye(1), cells=theirs)
    assert 0.2 < law.draw(5000).std() < 2
    logs = found.cells.without_hidden.logs(np.array([[1.0]]), theirs.without_hidden)
    assert logs == pytest.approx(0)


def test_only_even_columns_are_asked_for_tails_and_pairs():
    X = np.random.default_rng(7).normal(size=(30_000, 3))
    X[:, 2] = X[:, 2] > 0
    with Agents(X).open(epsilon=2.0, **SEEDED) as poll:
        assert ask_shape(poll, 10_000, np.zeros(3), np.ones(3), np.array([0, 1])) == 2.0
        assert ask_shape(poll, 10_000, np.zeros(3), np.ones(3), np.array([], dtype=int)) == 2.0
        even = np.array([True, False, False])
        shares, _ = ask_agreements(poll, 10_000, np.zeros(3), even)
    np.testing.assert_allclose(shares[1:], 0.5)  # nobody spoke of them


# trials


def rule_of_one_column(level=0.0):
    return LinearRule("linear", [0.0], [1.0], [1.0, level], (0, 1))


def test_a_level_is_found():
    X = np.random.default_rng(8).normal(size=(40_000, 1))
    shares = AgentShares.of(40_000, 1)
    agents = Agents(X, (X[:, 0] > 1.5).astype(float))
    with agents.open(epsilon=1.0, **SEEDED) as poll:
        found = Trials(poll, shares).levelled(rule_of_one_column(), 20_000)
    assert agents.n_left >= 20_000
    answer = (X[:, 0] > 1.5) == (found.rule.predict(X) == 1)
    assert answer.mean() > 0.9 > 0.6 > ((X[:, 0] > 1.5) == (X[:, 0] > 0)).mean()


def test_a_level_that_is_right_stays():
    X = np.random.default_rng(9).normal(size=(40_000, 1))
    with Agents(X, (X[:, 0] > 0).astype(float)).open(epsilon=1.0, **SEEDED) as poll:
        rule = rule_of_one_column()
        found = Trials(poll, AgentShares.of(40_000, 1)).levelled(rule, 20_000)
    np.testing.assert_array_equal(found.rule.coefficients, rule.coefficients)


def test_the_luckiest_of_small_samples_is_not_taken():
    def candidate(value, count):
        return Trial("one", rule_of_one_column(), Estimate(value, 0.0, 1.0, count))

    with Agents(np.zeros((10, 1))).open(epsilon=1.0, **SEEDED) as poll:
        trials = Trials(poll, AgentShares.of(10, 1))
        start, lucky = candidate(0.35, 200), candidate(0.28, 100)
        assert trials.clearly_better([lucky], start) is start
        good = candidate(0.28, 100_000)
        assert trials.clearly_better([lucky, good], candidate(0.35, 100_000)) is not start
        nobody = candidate(float("nan"), 0)
        assert trials.clearly_better([nobody], start) is start


def test_an_earlier_rule_is_taken_if_the_last_ones_are_clearly_worse():
    X = np.random.default_rng(10).normal(size=(40_000, 1))
    right, wrong = rule_of_one_column(), rule_of_one_column(level=3.0)
    with Agents(X, (X[:, 0] > 0).astype(float)).open(epsilon=1.0, **SEEDED) as poll:
        trials = Trials(poll, AgentShares.of(40_000, 1))
        earlier = (trials.first("right", right), trials.first("wrong", wrong))
        assert trials.verdict({"last": wrong}, earlier).name == "right"
    with Agents(X, (X[:, 0] > 0).astype(float)).open(epsilon=1.0, **SEEDED) as poll:
        trials = Trials(poll, AgentShares.of(40_000, 1))
        earlier = (trials.first("right", right), trials.first("wrong", wrong))
        assert trials.verdict({"last": right}, earlier).name == "last"


def test_bounds_of_all_that_may_be_returned_hold_at_once():
    """One in twenty at most, over five rules of which the luckiest is taken."""
    rng, failed = np.random.default_rng(11), 0
    rule = rule_of_one_column()
    for seed in range(100):
        y = (rng.random(3000) < 0.5).astype(float)
        with Agents(np.ones((3000, 1)), y).open(
            epsilon=2.0, noise="seeded", random_state=seed
        ) as poll:
            trials = Trials(poll, AgentShares.of(3000, 1))
            earlier = (trials.first("one", rule), trials.first("two", rule))
            found = trials.verdict({"a": rule, "b": rule, "c": rule}, earlier)
            failed += found.error.high < 0.5
    assert failed <= 10


# whole fits


def survey(n, seed, woman, gains=0.08):
    """Two numbers, two 0/1 columns, one with an atom and a long tail: as tables of people are."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.normal(size=n),
            rng.choice([-1.0, -0.33, 0.0, 1.0], n, p=[0.2, 0.4, 0.2, 0.2]),
            rng.random(n) < woman,
            rng.random(n) < 0.2,
            np.where(rng.random(n) < gains, rng.exponential(10, n), 0.0),
        ]
    )
    score = X @ [1.0, 1.0, -2.0, 0.5, 0.2]
    return X, (score > -0.5).astype(float)


@pytest.mark.parametrize("features", ["linear", "quadratic"])
def test_fits_tables_with_uneven_columns(features):
    model = HybridTilt(
        epsilon=1.0, delta=1e-6, agent_epsilon=2.0, features=features, classes=[0, 1], **SEEDED
    )
    X, y = survey(10_000, 3, woman=0.8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        private = Private(*survey(20_000, 1, woman=0.4))
        agents = Agents(*survey(20_000, 2, woman=0.8))
        assert (model.fit(private=private, agents=agents).predict(X) != y).mean() < 0.12
        assert (model.fit(private=private).predict(X) != y).mean() < 0.15


def test_a_rarer_class_is_learned_from_agents():
    """Labels of the target are by another threshold: only agents can tell."""
    X, y = survey(20_000, 1, woman=0.4)
    A, _ = survey(40_000, 2, woman=0.4)
    high = lambda rows: (rows @ [1.0, 1.0, -2.0, 0.5, 0.2] > 1.5).astype(float)  # noqa: E731
    model = HybridTilt(epsilon=1.0, delta=1e-6, agent_epsilon=1.0, classes=[0, 1], **SEEDED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        curator = model.fit(private=Private(X, y)).predict(A)
        both = model.fit(private=Private(X, y), agents=Agents(A, high(A))).predict(A)
    assert (curator != high(A)).mean() > 0.3
    assert (both != high(A)).mean() < 0.2
