"""SubsampleTestReweigh: the contract that every estimator keeps, what it promises, bad input."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from baselines.baseline_contracts import ClassificationContract
from contracts import Refusing, Secrets, taped, told
from dpadapt import BudgetExceeded, Private
from dpadapt.hybrid.estimator_learner import EstimatorLearner
from dpadapt.hybrid.finite_class import FiniteClassLearner, sparse_separators
from dpadapt.hybrid.gradient_learner import GradientLearner
from dpadapt.hybrid.parity import ParityLearner
from dpadapt.hybrid.sample_sizes import agents_for_test
from dpadapt.hybrid.sgd_learner import SGDLearner
from dpadapt.hybrid.str_estimator import NotCertified, SubsampleTestReweigh
from dpadapt.mixing import NoisyGDClassifier
from dpadapt.privacy import PrivacyError
from dpadapt.privacy.agents import Agents, NotEnoughAgents
from reweighting.reweighting_contracts import thin

FAST = {"learner": GradientLearner(steps=5), "agent_epsilon": 1.0}
SEEDED = {"noise": "seeded", "random_state": 0}


def people(n=3000, seed=3):
    X = np.random.default_rng(seed).normal(0.5, 0.6, size=(n, 3))
    return X, (X @ [1.0, -1.0, 0.5] > 0).astype(float)


class WithAgents(SubsampleTestReweigh):
    """Fitted with agents of its own, always the same ones."""

    def fit(self, X=None, y=None, *, private=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertified)
            return super().fit(X, y, private=private, agents=Agents(*people()))


class TestContract(ClassificationContract):
    """Without agents: one round."""

    def make(self, **params):
        given = {"epsilon": 1.0, "delta": 1e-6, **FAST, **SEEDED, **params}
        return SubsampleTestReweigh(**given)


class TestContractWithAgents(thin(ClassificationContract)):
    releases_all = False  # it may halt early

    def make(self, **params):
        rounds = {"rounds": 3, "batch": 400, "kappa": 0.3, "target_error": 0.01}
        given = {"epsilon": 1.0, "delta": 1e-6, **FAST, **SEEDED, **rounds, **params}
        return WithAgents(**given)

    @pytest.mark.parametrize("sample", ["constant", "objects", "strings", "integers"])
    def test_odd_private_samples_are_taken(self, sample):
        super().test_odd_private_samples_are_taken(sample)


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
    return SubsampleTestReweigh(**(known | params))


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


def easy(n=4000, seed=0, **params):
    rng = np.random.default_rng([2, seed])
    X, T = rng.normal(size=(n, 2)), rng.normal(0.3, 0.8, size=(60_000, 2))
    known = {"epsilon": 2.0, "delta": 1e-6, "agent_epsilon": 1.0, "classes": [0, 1], "rounds": 4}
    known |= {"batch": 5000, "target_error": 0.2, **SEEDED}
    label = lambda rows: (rows[:, 0] > 0).astype(int)  # noqa: E731
    return SubsampleTestReweigh(**(known | params)), X, label(X), T, label(T)


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
        needed = model._batch(tests=4)
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
        model.set_params(agnostic=True, learner=GradientLearner(5))
        model.fit(private=Private(X, y), agents=Agents(T, labels))
        truth = np.mean(model.predict(T) != labels)
        inside.append(truth <= model.certificate_.upper)
    assert np.mean(inside) >= 0.9


# learners


def test_any_estimator_of_the_library_can_be_the_learner():
    inner = NoisyGDClassifier(epsilon=9.0, delta=0.5, steps=15, noise="seeded", random_state=1)
    model, X, y, T, labels = easy(
        n=100_000, learner=EstimatorLearner(inner, draws=2000), epsilon=1.0, target_error=0.3
    )
    names = np.array(["no", "yes"])
    model.set_params(classes=["no", "yes"])
    model.fit(private=Private(X, names[y]), agents=Agents(T, names[labels]))
    assert model.certificate_.certified
    assert np.mean(model.predict(T) != names[labels]) < 0.25
    assert {event.kind for event in model.guarantee_.events} == {"draws"}
    assert 0.9 < model.guarantee_.epsilon <= 1.0
    assert set(np.unique(model.decision_function(T))) <= {-1.0, 1.0}


def test_a_parity_is_learned_from_a_skewed_source():
    rng = np.random.default_rng(0)
    mask = np.array([1, 0, 1, 1, 0, 1])
    X, T = (rng.random((20_000, 6)) < 0.3) * 1.0, (rng.random((12_000, 6)) < 0.5) * 1.0
    model, *_ = easy(learner=ParityLearner(), rounds=1, epsilon=1.0, batch=12_000)
    model.fit(private=Private(X, X @ mask % 2), agents=Agents(T, T @ mask % 2))
    assert model.certificate_.certified
    assert np.mean(model.predict(T) != T @ mask % 2) == 0


def test_the_best_of_a_finite_class_is_found_round_by_round():
    model, X, y, T, labels = easy(learner=FiniteClassLearner(sparse_separators(2, 1)))
    model.fit(private=Private(X, y), agents=Agents(T, labels))
    assert model.certificate_.certified
    assert {event.kind for event in model.guarantee_.events} == {"bounded-range"}
    assert np.mean(model.predict(T) != labels) < 0.05


def test_reweighing_finds_what_the_source_alone_does_not():
    """d = 8, six columns narrower in the target, features in the target's units."""
    rng = np.random.default_rng(3)
    spread = np.r_[np.ones(2), np.full(6, 0.4)]
    cut = stats.chi2.ppf(0.3, 6) * 0.16
    X, T = rng.normal(size=(50_000, 8)), rng.normal(size=(200_000, 8)) * spread
    label = lambda rows: ((rows[:, 2:] ** 2).sum(axis=1) > cut).astype(int)  # noqa: E731
    units = {"centre": spread**2, "scale": 2**0.5 * spread**2, "features": "squares"}
    model, *_ = easy(**units, rate=1.0, rounds=5, batch=40_000, target_error=0.1, delta=1e-4)
    model.fit(private=Private(X, label(X)), agents=Agents(T, label(T)))
    errors = [np.mean(each.rule.predict(T) != label(T)) for each in model.candidates_]
    assert errors[0] > 0.12
    assert errors[-1] < 0.1
    assert model.certificate_.certified


class Broken:
    """A learner that fails, and says why."""

    def __init__(self, error):
        self.error = error

    def requests(self, task, densities):
        return GradientLearner(1).requests(task, densities)

    def learn(self, task, session, grants, weights, density):
        raise self.error


def test_a_learner_that_fails_is_named_without_its_reason():
    model, X, y, T, labels = easy(learner=Broken(RuntimeError("value 987654.321 is bad")))
    with pytest.raises(PrivacyError, match=r"the learner failed \(RuntimeError\)") as caught:
        model.fit(private=Private(X, y), agents=Agents(T, labels))
    Secrets(np.zeros((1, 2))).check_text(told(caught.value), "the error")
    assert not hasattr(model, "rule_")


# bad input


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("agent_epsilon", 0.0),
        ("kappa", 0.0),
        ("kappa", 1.5),
        ("kappa", "guess"),
        ("rate", -0.1),
        ("rounds", 0),
        ("target_error", 0.0),
        ("target_error", 1.0),
        ("batch", 0),
        ("calibration", "loose"),
        ("features", "cubic"),
        ("unit", 0.0),
        ("centre", [1.0]),
        ("scale", [1.0, -1.0]),
        ("scale", [1.0, np.nan]),
        ("learner", "magic"),
        ("learner", 3),
        ("classes", None),
        ("classes", [0, 1, 2]),
    ],
)
def test_bad_parameters_are_named(name, value):
    model, X, y, T, labels = easy(**{name: value})
    private = Private(X, y)
    with (
        taped() as tape,
        pytest.raises((ValueError, TypeError), match=name if value != [0, 1, 2] else "two"),
    ):
        model.fit(private=private, agents=Agents(T, labels))
    assert tape == []
    assert private.spent(1e-6).epsilon == 0


def test_less_than_one_row_is_refused_before_anything_is_spent():
    model, X, y, T, labels = easy(kappa=0.01)
    private, agents = Private(X[:50], y[:50]), Agents(T, labels)
    with pytest.raises(ValueError, match=r"kappa: 0.01 of 50 rows is less than one row"):
        model.fit(private=private, agents=agents)
    assert private.spent(1e-6).epsilon == 0
    assert agents.n_left == 60_000


def test_agents_must_fit_the_rows():
    model, X, y, T, labels = easy()
    for agents, message in [
        (T, "agents must be"),
        (Agents(T), "agents must have labels"),
        (Agents(T[:, :1], labels), "agents have 1 columns"),
    ]:
        private = Private(X, y)
        with pytest.raises((TypeError, ValueError), match=message):
            model.fit(private=private, agents=agents)
        assert private.spent(1e-6).epsilon == 0


def test_a_refused_charge_asks_nobody():
    model, X, y, T, labels = easy(ledger=Refusing())
    agents = Agents(T, labels)
    with pytest.raises(BudgetExceeded):
        model.fit(private=Private(X, y), agents=agents)
    assert agents.n_left == 60_000


def test_exact_noise_and_single_draws_do_not_go_together():
    model, X, y, T, labels = easy(learner="sgd", noise="exact", random_state=None)
    private = Private(X, y)
    with pytest.raises(ValueError, match="exact"):
        model.fit(private=private, agents=Agents(T, labels))
    assert private.spent(1e-6).epsilon == 0


def test_public_rows_and_given_moments_set_the_units():
    model, X, y, T, labels = easy()
    model.fit(X * 3 + 1, y, private=Private(X, y), agents=Agents(T, labels))
    np.testing.assert_allclose(model.rule_.scale, (X * 3 + 1).std(axis=0))
    model.set_params(centre=[1.0, 2.0], scale=[3.0, 4.0])
    model.fit(private=Private(X, y), agents=Agents(T, labels))
    np.testing.assert_array_equal(model.rule_.centre, [1.0, 2.0])
    np.testing.assert_array_equal(model.rule_.scale, [3.0, 4.0])
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("features", ["linear", "squares", "quadratic"])
def test_units_of_features_are_those_of_normal_columns(features):
    model, _, _, _, _ = easy(features=features, unit=0.5, n=10)
    rows = np.random.default_rng(0).normal(0, 0.5, size=(400_000, 2))
    blank = model._blank(np.zeros((0, 2)), (0, 1))
    z = blank.with_coefficients(np.zeros(blank.width)).embed(rows)
    inner = z[:, :-1] / z[:, -1:]
    np.testing.assert_allclose(inner.mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(inner.std(axis=0), 1, atol=0.02)


def test_public_rows_alone_make_a_model():
    model, X, y, T, labels = easy()
    model.fit(X, y)
    assert model.guarantee_.epsilon == 0
    assert not model.certificate_.certified
    assert np.mean(model.predict(T) != labels) < 0.05
