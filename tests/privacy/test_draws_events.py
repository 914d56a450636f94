"""A private learner on drawn rows: what m draws cost, and how runs that can fail compose."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy.optimize import brentq, linprog

from dpadapt.papers.hybrid.doors.draws import DrawsEvent, printed_draws_epsilon
from dpadapt.papers.selection.random_stopping import RandomStoppingEvent
from dpadapt.privacy import Guarantee, Ledger
from dpadapt.privacy.accounting.calibration import calibrate
from dpadapt.privacy.accounting.composition import compose_delta, compose_epsilon, pld_epsilon
from dpadapt.privacy.accounting.events import (
    GaussianEvent,
    ParallelEvent,
    PureEvent,
    event_from_dict,
)


def runs(epsilon=1.0, delta=1e-9, draws=100, rate=1e-4, count=1):
    return DrawsEvent("learner", epsilon, delta, draws, rate, count)


# What one run costs ------------------------------------------------------------------------------


@pytest.mark.parametrize("draws", [1, 2, 30])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_learner_that_counts_a_row_attains_epsilon(draws, epsilon):
    """It says "o" with probability c e^{K epsilon}, K how often the row was drawn."""
    rate, unit = 0.01, math.exp(-draws * epsilon) * 1e-3
    # neighbouring samples differ by one in K: it is epsilon-DP, for "o" and for its absence
    says = [unit * math.exp(k * epsilon) for k in range(draws + 1)]
    for few, more in itertools.pairwise(says):
        assert more / few <= math.exp(epsilon) * (1 + 1e-12)
        assert (1 - few) / (1 - more) <= math.exp(epsilon)
    binomial = [math.comb(draws, k) * rate**k * (1 - rate) ** (draws - k) for k in range(draws + 1)]
    loss = math.log(math.fsum(b * s for b, s in zip(binomial, says, strict=True)) / says[0])
    stated = runs(epsilon, 0.0, draws, rate).run_epsilon
    assert loss == pytest.approx(stated, rel=1e-9)


def test_the_printed_claim_is_false_for_a_large_epsilon():
    """Erratum of Claim 4.1: what that learner loses passes 6 epsilon m b."""
    draws, rate = 1000, 1e-4  # m b = 0.1
    losses = {e: runs(e, 0.0, draws, rate).run_epsilon for e in (0.5, 1.0, 2.0, 3.0, 5.0)}
    assert all(losses[e] < 6 * e * draws * rate for e in (0.5, 1.0, 2.0))
    assert losses[3.0] == pytest.approx(1.9, abs=0.02)
    assert losses[3.0] > 6 * 3.0 * 0.1
    assert losses[5.0] > 4 * 6 * 5.0 * 0.1


def test_the_printed_claim_refuses_what_it_does_not_cover():
    assert printed_draws_epsilon(1.0, 1000, 1e-4) == pytest.approx(0.6)
    for epsilon in (1.0 + 1e-9, 3.0):
        with pytest.raises(ValueError, match=r"^epsilon must be at most 1"):
            printed_draws_epsilon(epsilon, 1000, 1e-4)
    for epsilon in np.linspace(0.01, 1, 20):
        for draws, rate in ((1, 0.5), (100, 1e-3), (10**5, 1e-6)):
            assert runs(epsilon, 0.0, draws, rate).run_epsilon <= printed_draws_epsilon(
                float(epsilon), draws, rate
            )


def worst_excess(epsilon, delta, draws, rate, ratio):
    """Largest P(event) - ratio P'(event) over all (epsilon, delta)-DP learners: a linear program.

    A draw is common (a), the row (b) or what replaced it (c); the learner sees how many of each.
    """
    samples = [s for s in itertools.product(range(draws + 1), repeat=3) if sum(s) == draws]
    place = {s: i for i, s in enumerate(samples)}
    rows, bounds = [], []
    for s in samples:
        for i, j in itertools.permutations(range(3), 2):
            if s[i] == 0:
                continue
            other = list(s)
            other[i] -= 1
            other[j] += 1
            row = np.zeros(len(samples))  # f(s) <= e^eps f(other) + delta
            row[place[s]], row[place[tuple(other)]] = 1, -math.exp(epsilon)
            rows.append(row)
            bounds.append(delta)
            swapped = np.zeros(len(samples))  # 1 - f(s) <= e^eps (1 - f(other)) + delta
            swapped[place[s]], swapped[place[tuple(other)]] = -1, math.exp(epsilon)
            rows.append(swapped)
            bounds.append(math.exp(epsilon) - 1 + delta)
    gain = np.zeros(len(samples))
    for k in range(draws + 1):
        mass = math.comb(draws, k) * rate**k * (1 - rate) ** (draws - k)
        gain[place[draws - k, k, 0]] += mass
        gain[place[draws - k, 0, k]] -= ratio * mass
    found = linprog(-gain, np.array(rows), np.array(bounds), bounds=(0, 1), method="highs")
    return -found.fun


@pytest.mark.parametrize("draws", [1, 2, 3])
def test_no_learner_loses_more_and_one_loses_as_much(draws):
    epsilon, rate = 1.2, 0.2
    for delta in (0.0, 1e-3, 0.02):
        event = runs(epsilon, delta, draws, rate)
        worst = worst_excess(epsilon, delta, draws, rate, math.exp(event.run_epsilon))
        assert worst <= event.run_delta + 1e-9
        if delta == 0:  # a smaller epsilon* would be false
            below = worst_excess(epsilon, 0.0, draws, rate, math.exp(0.99 * event.run_epsilon))
            assert below > 1e-6
        else:
            assert worst > 0.999 * event.run_delta


def test_the_sum_of_failures():
    event = runs(1.0, 1e-6, 50, 0.01)
    one = math.log1p(0.01 * math.expm1(1.0))
    terms = math.fsum(math.exp(j * one) for j in range(50))
    assert event.run_delta == pytest.approx(0.01 * 1e-6 * terms, rel=1e-12)
    assert runs(0.0, 1e-6, 50, 0.01).run_delta == pytest.approx(50 * 0.01 * 1e-6)
    assert runs(1.0, 1e-6, 1, 1.0).run_epsilon == pytest.approx(1.0)
    assert runs(100.0, 1e-6, 1, 1.0).run_epsilon == pytest.approx(100.0)
    assert runs(1000.0, 1e-6, 10, 0.5).run_delta == 1


# Many runs ---------------------------------------------------------------------------------------


def exact_delta(at, epsilon, delta, count):
    """Of count randomised answers that all fail to hold with probability delta each."""
    truth, total = 1 / (1 + math.exp(-epsilon)), 0.0
    for k in range(count + 1):
        loss = (2 * k - count) * epsilon
        mass = math.comb(count, k) * truth**k * (1 - truth) ** (count - k)
        total += mass * max(0.0, -math.expm1(at - loss))
    return 1 - (1 - delta) ** count * (1 - total)


@pytest.mark.parametrize("delta", [1e-5, 1e-3])
def test_runs_compose_as_the_binomial_law_says(delta):
    event = runs(1.0, 1e-7, 1000, 1e-4, 40)
    facts = (event.run_epsilon, event.run_delta, 40)
    other = brentq(lambda at: exact_delta(at, *facts) - delta, 0.0, 40 * event.run_epsilon)
    ours = compose_epsilon([event], delta)
    assert other <= ours <= other * 1.01
    assert pld_epsilon([event], delta) == pytest.approx(ours, rel=1e-2)
    once = compose_epsilon([runs(1.0, 1e-7, 1000, 1e-4, 1)], delta)
    assert once < 0.5 * other  # a forgotten count would be seen


def test_failures_are_paid_from_delta():
    event = runs(1.0, 1e-5, 1000, 1e-4, 40)
    assert event.failure == pytest.approx(40 * event.run_delta, rel=1e-3)
    assert compose_epsilon([event], event.failure * 0.99) == math.inf
    assert math.isfinite(compose_epsilon([event], event.failure * 1.01))
    total = 40 * event.run_epsilon
    assert compose_delta([event], total) == pytest.approx(event.failure, rel=1e-9)
    pure = PureEvent("p", event.run_epsilon, 40)
    assert compose_delta([event], 1.0) > compose_delta([pure], 1.0)
    two = compose_delta([event, runs(0.0, 1e-5, 10, 0.1)], total)
    assert two == pytest.approx(event.failure + 1e-5, rel=1e-3)


def test_a_learner_without_delta_is_pure():
    event = runs(1.0, 0.0, 100, 1e-4, 7)
    assert event.failure == 0
    assert compose_epsilon([event], 0.0) == pytest.approx(7 * event.run_epsilon)
    assert runs(1.0, 1e-9).pure_epsilon == math.inf
    assert compose_epsilon([runs(1.0, 1e-9)], 0.0) == math.inf


def test_with_other_events(tmp_path):
    event = runs(1.0, 1e-9, 1000, 1e-4, 3)
    alone = compose_epsilon([event], 1e-6)
    with_noise = compose_epsilon([event, GaussianEvent("mean", 1.0, 30.0)], 1e-6)
    assert alone < with_noise < alone + compose_epsilon([GaussianEvent("mean", 1.0, 30.0)], 1e-9)
    assert compose_epsilon([ParallelEvent("p", ((event,), ()))], 1e-6) == alone
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event
    guarantee = Guarantee((event,), delta=1e-6, noise="secure")
    assert Guarantee.from_dict(guarantee.to_dict()).epsilon == guarantee.epsilon == alone
    account = Ledger(tmp_path / "ledger.db").create("rows", epsilon=3.0, delta=1e-6)
    account.charge([event], "fit")
    assert account.spent() == pytest.approx(alone)


def test_random_stopping_says_nothing_of_runs_that_can_fail():
    """Its theorem needs a Renyi bound, and there is none."""
    assert compose_epsilon([RandomStoppingEvent("t", (runs(),), 1.0, 0.1)], 1e-6) == math.inf
    pure = RandomStoppingEvent("t", (runs(1.0, 0.0, 10, 1e-3),), 1.0, 0.1)
    assert math.isfinite(compose_epsilon([pure], 1e-6))


def test_the_learners_epsilon_can_be_solved_for():
    def plan(noise):
        return [runs(1 / noise, 1e-9, 1000, 1e-4, 20)]

    noise = calibrate(plan, 1.0, 1e-6)
    assert compose_delta(plan(noise), 1.0) <= 1e-6
    assert compose_delta(plan(noise * 0.98), 1.0) > 1e-6


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", -1.0), ("delta", 1.0), ("draws", 0), ("rate", 0.0), ("rate", 1.5), ("count", 0)],
)
def test_bad_facts_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} must"):
        runs(**{name: value})
    with pytest.raises(ValueError, match=r"^relation must"):
        DrawsEvent("learner", 1.0, 0.0, 1, 0.1, relation="add-remove")
