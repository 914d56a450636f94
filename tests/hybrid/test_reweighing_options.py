"""SubsampleTestReweigh: its learners, bad input, public rows, objects that say how."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from dpadapt import BudgetExceeded, Private
from dpadapt.hybrid._classifier import FeatureUnits, HybridProblem, NotCertified
from dpadapt.mixing import NoisyGDClassifier
from dpadapt.modelfolder import load_model, save_model
from dpadapt.papers.hybrid.finite_class import FiniteClassLearner, sparse_separators
from dpadapt.papers.hybrid.learners import (
    EstimatorLearner,
    GradientLearner,
    Learner,
    ParityLearner,
    SGDLearner,
)
from dpadapt.papers.hybrid.rounds import BitTest, PaperSchedule, PaperTest, TightSchedule
from dpadapt.privacy import PrivacyError
from dpadapt.privacy.local.agents import Agents
from dpadapt.testing.search import Secrets, exception_text
from dpadapt.testing.tape import Refusing, taped
from hybrid.reweighing import easy

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


def test_the_learner_learns_whatever_the_labels_are_called():
    inner = NoisyGDClassifier(epsilon=1.0, delta=1e-8, steps=15, noise="seeded", random_state=1)
    said = []
    for names in (np.array([0, 1]), np.array(["no", "yes"]), np.array([3, 7])):
        model, X, y, T, labels = easy(
            learner=EstimatorLearner(inner, draws=2000), epsilon=50.0, rounds=1, kappa=1.0
        )
        model.set_params(classes=names)
        model.fit(private=Private(X, names[y]), agents=Agents(T, names[labels]))
        said.append(np.mean(model.predict(T) == names[labels]))
    assert min(said) > 0.95
    assert said[0] == said[1]


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


@dataclass(frozen=True)
class Broken(Learner):
    """A learner that fails, and says why."""

    error: Exception

    def mechanism(self, task, density):
        return GradientLearner(1).mechanism(task, density)

    def learn(self, rows):
        raise self.error


def test_a_learner_that_fails_is_named_without_its_reason():
    model, X, y, T, labels = easy(learner=Broken(RuntimeError("value 987654.321 is bad")))
    with pytest.raises(PrivacyError, match=r"the learner failed \(RuntimeError\)") as caught:
        model.fit(private=Private(X, y), agents=Agents(T, labels))
    Secrets(np.zeros((1, 2))).check_text(exception_text(caught.value), "the error")
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
        ("schedule", "loose"),
        ("schedule", BitTest()),
        ("test", "loose"),
        ("test", TightSchedule()),
        ("agnostic", 2),
        ("features", "cubic"),
        ("unit", 0.0),
        ("centre", [1.0]),
        ("scale", [1.0, -1.0]),
        ("scale", [1.0, np.nan]),
        ("learner", "magic"),
        ("learner", 3),
        ("classes", None),
        ("classes", [0]),
    ],
)
def test_bad_parameters_are_named(name, value):
    _, X, y, T, labels = easy()
    private = Private(X, y)
    with (
        taped() as tape,
        pytest.raises((ValueError, TypeError), match=name if value != [0, 1, 2] else "two"),
    ):
        easy(**{name: value})[0].fit(private=private, agents=Agents(T, labels))
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
    model.set_params(unit=FeatureUnits(centre=[1.0, 2.0], scale=[3.0, 4.0]))
    model.fit(private=Private(X, y), agents=Agents(T, labels))
    np.testing.assert_array_equal(model.rule_.centre, [1.0, 2.0])
    np.testing.assert_array_equal(model.rule_.scale, [3.0, 4.0])
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("features", ["linear", "squares", "quadratic"])
def test_units_of_features_are_those_of_normal_columns(features):
    model, _, _, _, _ = easy(features=features, unit=0.5, n=10)
    rows = np.random.default_rng(0).normal(0, 0.5, size=(400_000, 2))
    blank = model._blank(HybridProblem(np.zeros((0, 2)), np.zeros(0), (0, 1)))
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


# its objects


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (("tight", "bits", "gradient"), (TightSchedule, BitTest, GradientLearner)),
        (("paper", "paper", "sgd"), (PaperSchedule, PaperTest, SGDLearner)),
    ],
)
def test_a_name_stands_for_a_default_object(names, kinds):
    model, *_ = easy()
    parameters = ("schedule", "test", "learner")
    model.set_params(**dict(zip(parameters, names, strict=True)))
    for parameter, kind in zip(parameters, kinds, strict=True):
        assert model._strategy(parameter) == kind()
    model.set_params(schedule__rounds=2, test__batch=7)
    assert (model.schedule.rounds, model.test.batch) == (2, 7)
    with pytest.raises(ValueError, match="has no option batch"):
        model.set_params(schedule__batch=2)


def test_a_model_with_objects_is_saved_and_loaded(tmp_path):
    model, X, y, T, labels = easy(centre=[0.0, 0.5], scale=[1.0, 2.0], learner=GradientLearner(5))
    model.fit(private=Private(X, y), agents=Agents(T, labels))
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(T), model.predict(T))
    assert again.schedule == model.schedule
    assert again.test == model.test
    assert again.learner == model.learner
    np.testing.assert_array_equal(again.unit.scale, [1.0, 2.0])
    assert again.certificate_ == model.certificate_


def test_the_warning_points_at_who_fitted():
    model, X, y, T, labels = easy(target_error=0.001, rounds=1)
    with pytest.warns(NotCertified) as caught:
        model.fit(private=Private(X, y), agents=Agents(T, labels))
    assert [each.filename for each in caught] == [__file__]
