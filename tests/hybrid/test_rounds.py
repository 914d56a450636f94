"""The loop of Algorithms 1, 2 and 4: weights, densities, sensitivity, what is planned."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.hybrid.rules import LinearRule
from dpadapt.papers.hybrid.doors.weights import log_cap, projected
from dpadapt.papers.hybrid.learners import GradientLearner, Learner, LearningTask
from dpadapt.papers.hybrid.rounds import (
    DensityRun,
    PaperSchedule,
    Round,
    TightSchedule,
    best_of,
    plan_rounds,
    subsample_test_reweigh,
)
from dpadapt.privacy import PrivacyError, Rows
from dpadapt.privacy.local.replies import Estimate
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.testing.tape import releases, taped

BLANK = LinearRule("linear", np.zeros(2), np.ones(2), np.zeros(3), (0, 1))
UNTESTED = Estimate(math.nan, 0.0, 1.0, 0)


def sample(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(float)


class Scripted(Learner):
    """Answers with given rules, and looks at the weights that it is handed."""

    def __init__(self, rounds, seed=0):
        rng = np.random.default_rng([1, seed])
        self.rules = [BLANK.with_coefficients(rng.normal(size=3)) for _ in range(rounds)]
        self.logs, self.densities = [], []

    def mechanism(self, task, density):
        return Gaussian("nothing", 1.0)

    def learn(self, rows):
        self.logs.append(rows.weights._log.copy())
        self.densities.append(rows.density)
        return self.rules[len(self.logs) - 1]


def planned(session, learner, task, runs):
    """The runs, with a grant for every round."""
    mechanisms, deal = plan_rounds(learner, task, runs)
    return list(zip(runs, deal(session.plan(rounds=mechanisms).rounds), strict=True))


def run(X, y, learner, schedule, noise="seeded", seed=0):
    """All rounds, on labels coded 0 and 1."""
    task = LearningTask(len(X), X.shape[1], BLANK)
    private = Private(X, y)
    with private.open(epsilon=1.0, delta=1e-6, noise=noise, random_state=seed) as session:
        paid = planned(session, learner, task, schedule.runs(len(X)))
        test, passes = lambda rule: UNTESTED, lambda error: False
        return subsample_test_reweigh(session, learner, task, paid, test, passes)


# stored weights


def test_weights_follow_the_update_of_the_paper():
    X, y = sample()
    learner = Scripted(4)
    run(X, y, learner, TightSchedule(0.1, 0.3, 4))
    expected = np.zeros(len(X))
    for log, rule in zip(learner.logs, learner.rules, strict=True):
        np.testing.assert_allclose(log, expected, atol=1e-12)
        right = rule.predict_sign(X) == 2 * y - 1
        expected = expected - 0.3 * right


def test_another_row_changes_its_own_weight_only():
    """Given the same rules, the stored weights of all other rows stay the same to the last bit."""
    X, y = sample()
    other, labels = X.copy(), y.copy()
    other[7], labels[7] = [-50.0, 3.0], 1 - y[7]
    one, two = Scripted(6), Scripted(6)
    schedule = TightSchedule(0.05, 0.5, 6)
    run(X, y, one, schedule)
    run(other, labels, two, schedule)
    rest = np.arange(len(X)) != 7
    changed = False
    for first, second in zip(one.logs, two.logs, strict=True):
        np.testing.assert_array_equal(first[rest], second[rest])
        changed |= first[7] != second[7]
    assert changed


def test_projected_weights_would_not_stay_the_same():
    """The trap: weights that are stored after projection depend on every row."""
    logs = []
    for value in (0.0, -3.0):
        log = np.zeros(60)
        log[:20] = -1.0
        log[7] = value
        logs.append(np.log(projected(log, log_cap(log, 0.9))))
    rest = np.arange(60) != 7
    assert not np.array_equal(logs[0][rest], logs[1][rest])


# densities


@pytest.mark.parametrize("rate", [0.1, 0.7])
@pytest.mark.parametrize("least", [0.02, 0.3])
def test_no_row_weighs_more_than_the_schedule_says(rate, least):
    X, y = sample(200)
    learner = Scripted(12)
    schedule = TightSchedule(least, rate, 12)
    run(X, y, learner, schedule)
    tight = []
    for t, (log, density) in enumerate(zip(learner.logs, learner.densities, strict=True)):
        masses = projected(log, log_cap(log, density)) / (density * len(X))
        assert masses.sum() == pytest.approx(1)
        assert masses.max() <= 1 / (density * len(X)) * (1 + 1e-9)
        if math.exp(-rate * t) >= least:  # not projected at all by then
            plain = np.exp(log - log.max())
            np.testing.assert_allclose(masses, plain / plain.sum(), rtol=1e-9)
            tight.append(plain.max() / plain.sum() * density * len(X))
    assert max(tight[1:], default=1) > 0.5  # and not far from it


def test_a_schedule_that_is_one_round_late_promises_too_much():
    """With the density of the round before, rows would weigh more than 1 / (density n)."""
    n, rate = 400, 0.5
    log = np.full(n, -3 * rate)  # right in all three updates, but for a single row
    log[0] = 0.0
    plain = np.exp(log) / np.exp(log).sum()
    right, late = (TightSchedule(0.01, rate, 4).run(0.01).densities[t] for t in (3, 2))
    assert plain.max() <= 1 / (right * n)
    assert plain.max() > 1 / (late * n)


def test_the_papers_schedule_is_constant():
    assert PaperSchedule(0.1, 0.2, 3).run(0.1).densities == (0.1, 0.1, 0.1)


# sensitivity, through the loop


@pytest.mark.parametrize("schedule", [TightSchedule(0.2, 0.6, 4), PaperSchedule(0.2, 0.6, 4)])
def test_a_replaced_row_moves_no_gradient_beyond_its_sensitivity(schedule):
    """Gradients and the shift of everybody's projected weight together, the transcript the same."""
    rng = np.random.default_rng(5)
    learner = GradientLearner(steps=3)
    (whole,) = schedule.runs(30)
    densities = np.repeat(whole.densities, 3)
    worst = np.zeros(len(densities))
    for trial in range(60):
        X, y = sample(30, trial)
        other, labels = X.copy(), y.copy()
        other[4] = rng.normal(size=2) * 10.0 ** rng.integers(-1, 3)
        labels[4] = rng.integers(0, 2)
        with taped() as first:
            run(X, y, learner, schedule, seed=trial)
        with taped(replay=first) as second:
            run(other, labels, learner, schedule, seed=trial)
        moved = [
            np.linalg.norm(one.value - two.value)
            for one, two in zip(releases(first), releases(second), strict=True)
        ]
        worst = np.maximum(worst, np.array(moved) * densities * 30 / 2)
    assert worst.max() <= 1 + 1e-9
    if whole.densities[0] == 1:
        assert worst.max() > 0.5, "the test must come near to what it forbids"
    else:  # all weights are equal in the first round: the printed density charges too much
        assert worst[:3].max() <= 0.2


# the plan


def test_equal_rounds_are_planned_as_one():
    task = LearningTask(1000, 2, BLANK)
    mechanisms, deal = plan_rounds(GradientLearner(7), task, PaperSchedule(0.1, 0.2, 50).runs(1000))
    assert [each.count for each in mechanisms] == [350]
    assert deal(["grant"]) == [["grant"] * 50]


def test_a_round_buys_no_more_than_it_asked_for():
    class Greedy(Scripted):
        def learn(self, rows):
            one = rows.session.hide(Rows(rows.task.rows))
            number = rows.session.derive(one, lambda table: np.zeros(1), sensitivity=1.0)
            rows.release(number)
            rows.release(number)
            return super().learn(rows)

    X, y = sample()
    with pytest.raises(PrivacyError, match="as often as it was planned"):
        run(X, y, Greedy(3), PaperSchedule(0.5, 0.2, 3))


def test_every_round_of_every_run_has_the_grant_of_its_own_density():
    class Dense(Scripted):
        def mechanism(self, task, density):
            return Gaussian("nothing", 1 / density)

    runs = [DensityRun((1.0, 0.5, 0.25), 0.7), DensityRun((1.0, 0.25), 0.7)]
    mechanisms, deal = plan_rounds(Dense(2), None, runs)
    assert [each.sensitivity for each in mechanisms] == [1.0, 2.0, 4.0]
    assert [each.count for each in mechanisms] == [2, 1, 2]
    assert deal([1.0, 2.0, 4.0]) == [[1.0, 2.0, 4.0], [1.0, 4.0]]


def test_it_runs_no_further_than_it_is_asked_to():
    X, y = sample()
    learner, task = Scripted(5), LearningTask(len(X), 2, BLANK)
    runs = TightSchedule(0.5, 0.2, 5).runs(len(X))
    asked = []

    def test(rule):
        asked.append(rule)
        return UNTESTED

    with Private(X, y).open(epsilon=1.0, delta=1e-6) as session:
        paid = planned(session, learner, task, runs)
        enough = lambda error: len(asked) == 2  # noqa: E731
        rounds = subsample_test_reweigh(session, learner, task, paid, test, enough)
    assert len(learner.logs) == len(asked) == len(rounds) == 2


def test_a_learner_that_fails_tells_nothing():
    class Failing(Scripted):
        def learn(self, rows):
            raise KeyError("the row of Jane Doe")

    X, y = sample()
    with pytest.raises(PrivacyError, match=r"the learner failed \(KeyError\)") as caught:
        run(X, y, Failing(2), PaperSchedule(0.5, 0.2, 2))
    assert "Jane" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("base", [KeyError, PrivacyError])
def test_a_learner_that_makes_up_an_error_tells_nothing(base):
    class Failing(Scripted):
        def learn(self, rows):
            raise type("JaneDoe", (base,), {})("the row of Jane Doe")

    X, y = sample()
    with pytest.raises(PrivacyError, match="the learner failed; the reason is withheld") as caught:
        run(X, y, Failing(2), PaperSchedule(0.5, 0.2, 2))
    assert "Jane" not in str(caught.value)


def test_losses_beyond_the_range_are_clipped_not_refused():
    """A rule whose predictions are rubbish counts as wrong, and stops nothing."""

    class Rubbish:
        classes = (0, 1)

        def predict_sign(self, X):
            return np.full(len(X), np.nan)

    class Odd(Scripted):
        def learn(self, rows):
            super().learn(rows)
            return Rubbish()

    X, y = sample()
    learner = Odd(3)
    run(X, y, learner, TightSchedule(0.5, 0.2, 3))
    np.testing.assert_array_equal(learner.logs[-1], 0.0)  # wrong everywhere: no weight is lost


def test_the_best_is_chosen_by_the_agents_and_missing_answers_lose():
    rounds = [
        Round(1.0, name, Estimate(value, value - 0.1, value + 0.1, 10))
        for name, value in [("a", 0.3), ("b", -0.05), ("c", 0.1)]
    ]
    nobody = Round(1.0, "d", Estimate(math.nan, 0.0, 1.0, 0))
    assert best_of([nobody, *rounds]).rule == "b"
    assert best_of([nobody]) is nobody
    few = Round(1.0, "e", Estimate(-0.1, 0.0, 0.3, 3))  # a lower estimate, but nobody's word
    assert best_of([few, *rounds]).rule == "b"


def test_a_second_run_begins_with_equal_weights():
    X, y = sample()
    learner = Scripted(6)
    rounds = run(X, y, learner, TightSchedule("doubling", rate=2.0, rounds=2))
    assert [each.density for each in rounds] == pytest.approx([1, 0.5, 1, 0.25, 1, math.exp(-2)])
    for first, second in zip(learner.logs[::2], learner.logs[1::2], strict=True):
        assert not first.any()
        assert second.any()
