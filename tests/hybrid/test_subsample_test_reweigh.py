"""SubsampleTestReweigh: the contract that every estimator keeps, and what agents decide."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from dpadapt import Private
from dpadapt.hybrid._classifier import NotCertified
from dpadapt.learning.cautions import CautionWarning
from dpadapt.papers.hybrid.learners import GradientLearner, SGDLearner
from dpadapt.papers.hybrid.sample_sizes import agents_for_test
from dpadapt.privacy.local import Agents, NotEnoughAgents
from hybrid.reweighing import easy, made

FAST = {"learner": GradientLearner(steps=5), "agent_epsilon": 1.0}


def people(n=3000, seed=3):
    X = np.random.default_rng(seed).normal(0.5, 0.6, size=(n, 3))
    return X, (X @ [1.0, -1.0, 0.5] > 0).astype(float)


# the paper's private setting


def paper_setting(seed, n, people):
    """d = 8, k = 2: S = N(0, 0.1^2 I), T narrower in two columns; labels by a ball in those."""
    rng = np.random.default_rng([9, seed])
    narrow = np.r_[np.full(6, 0.1), np.full(2, 0.07)]
    cut = stats.chi2.ppf(0.4, 2) * 0.07**2
    source, target = rng.normal(0, 0.1, (n, 8)), rng.normal(size=(people, 8)) * narrow
    label = lambda X: ((X[:, 6:] ** 2).sum(axis=1) > cut).astype(int)  # noqa: E731
    return source, label(source), target, label(target)


def paper_model(seed=0, **params):
    known = {
        "epsilon": 0.5,
        "delta": 1e-4,
        "agent_epsilon": 0.5,
        "kappa": 0.08 / (4 * 1.3515),
        "target_error": 0.16,
        "batch": 20_000,
        "features": "squares",
        "unit": 0.1,
        "classes": [0, 1],
        "noise": "seeded",
        "random_state": seed,
    }
    return made(**(known | params))


def fit_paper_setting(seed, n, model):
    X, y, T, labels = paper_setting(seed, n, 450_000)
    model.fit(private=Private(X, y), agents=Agents(T[:400_000], labels[:400_000]))
    return float(np.mean(model.predict(T[400_000:]) != labels[400_000:]))


def test_the_papers_private_setting_with_twenty_thousand_rows():
    learner = GradientLearner(steps=100, step_size=2.0)
    errors = []
    for seed in range(3):
        model = paper_model(seed, rounds=20, learner=learner)
        errors.append(fit_paper_setting(seed, 20_000, model))
        assert model.guarantee_.epsilon == pytest.approx(0.5, rel=1e-6)
        assert model.agents_guarantee_.epsilon == pytest.approx(0.5)
        assert model.certificate_.upper >= errors[-1]
    assert max(errors) <= 0.16


def test_nine_of_ten_seeds_reach_the_target():
    errors = [fit_paper_setting(seed, 20_000, paper_model(seed)) for seed in range(10)]
    assert sum(error <= 0.16 for error in errors) >= 9


@pytest.mark.slow
def test_fixed_density_needs_many_more_rows():
    learner = GradientLearner(steps=100, step_size=2.0)
    printed = {"calibration": "paper", "rounds": 20, "learner": learner}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        error = fit_paper_setting(0, 20_000, paper_model(0, **printed))
    assert error > 0.2


@pytest.mark.slow
def test_algorithm_4_reaches_the_target_too():
    # its noise is that of the least density: small rates, and weights that stay dense
    model = paper_model(0, learner=SGDLearner(300_000), rate=0.2, rounds=10)
    assert fit_paper_setting(0, 20_000, model) <= 0.16


# what the agents decide


@pytest.mark.parametrize("rounds", [1, 3, 8])
@pytest.mark.parametrize("steps", [1, 20])
@pytest.mark.parametrize("target", [0.01, 0.4])
def test_the_whole_budget_is_charged_whenever_it_halts(rounds, steps, target):
    model, X, y, T, labels = easy(
        rounds=rounds, learner=GradientLearner(steps), target_error=target
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        model.fit(private=Private(X, y), agents=Agents(T, labels))
    assert model.guarantee_.epsilon == pytest.approx(2.0, rel=1e-6)
    assert model.guarantee_.epsilon <= 2.0
    assert model.guarantee_.delta == 1e-6
    assert sum(event.count for event in model.guarantee_.events) == rounds * steps
    if target == 0.4:
        assert len(model.candidates_) < max(2, rounds)


def test_it_halts_at_the_first_rule_that_passes():
    model, X, y, T, labels = easy()
    agents = Agents(T, labels)
    model.fit(private=Private(X, y), agents=agents)
    assert len(model.candidates_) == 1
    assert agents.n_left == 60_000 - 5000
    assert model.certificate_.certified
    assert model.rule_ is model.candidates_[-1].rule
    assert model.certificate_.upper == model.candidates_[-1].error.high <= 0.2


def test_what_comes_out_does_not_depend_on_agents_that_were_not_asked():
    model, X, y, T, labels = easy()
    agents = Agents(T, labels)
    first = model.fit(private=Private(X, y), agents=agents)
    coefficients, error = first.rule_.coefficients, first.certificate_
    idle = ~agents._asked
    assert 0 < idle.sum() < len(T)
    other, wrong = T.copy(), labels.copy()
    other[idle], wrong[idle] = 100.0, 1 - wrong[idle]
    again = model.fit(private=Private(X, y), agents=Agents(other, wrong))
    np.testing.assert_array_equal(again.rule_.coefficients, coefficients)
    assert again.certificate_ == error
    wrong[~idle] = 1 - wrong[~idle]  # those who were asked do matter
    with pytest.warns(NotCertified):
        other = model.fit(private=Private(X, y), agents=Agents(T, wrong)).certificate_
    assert other != error


def test_nobody_is_asked_twice_in_two_fits():
    model, X, y, T, labels = easy(rounds=2, target_error=0.01)
    agents = Agents(T[:20_000], labels[:20_000])
    for left in (10_000, 0):
        with pytest.warns(NotCertified):
            model.fit(private=Private(X, y), agents=agents)
        assert agents.n_left == left
    private = Private(X, y)
    with pytest.raises(NotEnoughAgents, match=r"10000 agents are needed, but only 0") as caught:
        model.fit(private=private, agents=agents)
    assert "2 tests of 5000" in "".join(caught.value.__notes__)
    assert private.spent(1e-6).epsilon == 0


def test_agents_for_some_rounds_only_are_not_enough():
    model, X, y, T, labels = easy(rounds=4)
    private, agents = Private(X, y), Agents(T[:19_999], labels[:19_999])
    with pytest.raises(NotEnoughAgents, match=r"20000 agents are needed, but only 19999"):
        model.fit(private=private, agents=agents)
    assert agents.n_left == 19_999
    assert private.spent(1e-6).epsilon == 0


def test_agnostic_mode_runs_all_rounds_and_returns_the_best():
    model, X, y, T, labels = easy(agnostic=True, rounds=5)
    flipped = np.where(np.random.default_rng(0).random(len(T)) < 0.3, 1 - labels, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CautionWarning)
        model.fit(private=Private(X, y), agents=Agents(T, flipped))
    values = [each.error.value for each in model.candidates_]
    assert len(values) == 5
    assert model.certificate_.error == min(values)
    assert model.rule_ is model.candidates_[int(np.argmin(values))].rule
    assert 0.25 < model.certificate_.upper < 0.45


def test_disjoint_supports_are_noticed():
    """The source knows nothing of the target: labels there are the other way round."""
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(2000, 1)), rng.normal(50.0, 1.0, size=(40_000, 1))
    model, *_ = easy(rounds=4)
    agents = Agents(T, (T[:, 0] > 50.0).astype(int))
    with pytest.warns(NotCertified, match="no rule was shown to err on at most 0.2"):
        model.fit(private=Private(X, (X[:, 0] > 0).astype(int)), agents=agents)
    assert not model.certificate_.certified
    assert model.certificate_.upper > 0.4
    assert len(model.candidates_) == 4


def test_doubling_divides_the_budget_in_advance():
    given = {"kappa": "doubling", "rounds": 5, "rate": 0.5, "batch": 2000}
    model, X, y, T, labels = easy(**given, target_error=0.001)
    agents = Agents(T, labels)
    with pytest.warns(NotCertified):
        model.fit(private=Private(X, y), agents=agents)
    densities = [each.density for each in model.candidates_]
    assert len(densities) == 15  # 1/2, 1/4, 1/8: by then the schedule is at e^-2
    np.testing.assert_allclose(
        np.array(densities).reshape(3, 5).min(axis=1), [0.5, 0.25, math.exp(-2)]
    )
    assert model.guarantee_.epsilon == pytest.approx(2.0, rel=1e-6)
    # every gradient carries the noise of a third of mu^2
    ratios = {round(event.scale / event.sensitivity, 6) for event in model.guarantee_.events}
    assert len(ratios) == 1
    model.set_params(target_error=0.3).fit(private=Private(X, y), agents=Agents(T, labels))
    assert len(model.candidates_) == 1
    assert model.guarantee_.epsilon == pytest.approx(2.0, rel=1e-6)


def test_the_papers_constants():
    model, X, y, T, labels = easy(calibration="paper", kappa=0.25, target_error=0.5, batch=15_000)
    model.fit(private=Private(X, y), agents=Agents(T, labels))
    (event,) = model.guarantee_.events
    assert event.sensitivity == pytest.approx(2 / (0.25 * 4000), rel=1e-6)
    assert model.agents_guarantee_.delta == 1e-6
    assert model.agents_guarantee_.epsilon <= 1.0


def test_the_number_of_agents_follows_from_the_target():
    """A quarter of the target, as in the paper: three alpha is the threshold, four the promise."""
    for calibration in ("tight", "paper"):
        model, *_ = easy(batch=None, calibration=calibration, target_error=0.2)
        needed = model._batch(tests=4, left=10**9)
        assert needed == agents_for_test(0.05, 0.025, 1.0, 1e-6, calibration)
        noise = 1 / math.tanh(0.5) ** 2 / 4 if calibration == "tight" else 2 * math.log(2e6) + 0.25
        width = math.sqrt(2 * noise * math.log(1 / 0.0125) / needed)
        assert width <= 0.0501


@pytest.mark.parametrize("rounds", [1, 6])
def test_the_bound_has_room_for_every_test_that_was_planned(rounds):
    model, X, y, T, labels = easy(rounds=rounds, target_error=0.4, batch=5000)
    found = model.fit(private=Private(X, y), agents=Agents(T, labels)).certificate_
    width = math.sqrt(math.log(rounds / 0.05) / (2 * 5000)) / math.tanh(0.5)
    assert found.upper - found.error == pytest.approx(width)


def test_answers_of_a_certificate_are_right_most_of_the_time():
    inside = []
    for seed in range(40):
        model, X, y, T, labels = easy(seed=seed, n=300, random_state=seed, batch=1000)
        model.set_params(test__agnostic=True, learner=GradientLearner(5))
        model.fit(private=Private(X, y), agents=Agents(T, labels))
        truth = np.mean(model.predict(T) != labels)
        inside.append(truth <= model.certificate_.upper)
    assert np.mean(inside) >= 0.9
