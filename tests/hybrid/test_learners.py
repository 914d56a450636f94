"""The learners of a round: gradients of all rows, one drawn row a step, any estimator on draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator

from dpadapt import Private
from dpadapt.hybrid.rules import LinearRule
from dpadapt.mixing import NoisyGDClassifier
from dpadapt.papers.hybrid.doors.weights import RowWeights, log_cap, projected, reweigh
from dpadapt.papers.hybrid.learners import (
    EstimatorLearner,
    GradientLearner,
    LearningTask,
    SGDLearner,
    WeightedRows,
)
from dpadapt.privacy import PrivacyError


def blank(d=2, features="linear"):
    k = d if features != "quadratic" else d * (d + 3) // 2
    return LinearRule(features, np.zeros(k), np.ones(k), np.zeros(k + 1), (0, 1))


def sample(n=500, d=2, seed=0):
    rng = np.random.default_rng([4, seed])
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] > 0.2 * X[:, -1]).astype(float)


def learn(learner, X, y, *, density=1.0, epsilon=1.0, seed=0, heavy=None, n_rounds=1):
    """One round, some rows heavier than others."""
    task = LearningTask(len(X), X.shape[1], blank(X.shape[1]))
    with Private(X, y).open(epsilon=epsilon, delta=1e-6, noise="seeded", random_state=seed) as s:
        grant = s.plan(round=learner.mechanism(task, density)).round
        weights = RowWeights(s)
        if heavy is not None:
            reweigh(weights, lambda Z, labels: (Z[:, 0] > 0) * 1.0, task.rows, heavy)
        return learner.learn(WeightedRows(task, s, weights, density, grant)), grant


# rows


def test_rows_come_signed_and_embedded():
    task = LearningTask(4, 2, blank())
    X = np.array([[3.0, 4.0], [np.nan, 1.0], [np.inf, 0.0], [1e200, 0.0]])
    for rows in (task.rows, task.embedded):
        Z, y = rows(X, np.array([0.0, 1.0, np.nan, 7.0]))
        assert np.isfinite(Z).all()
        np.testing.assert_array_equal(y, [-1, 1, 0, 0])
    assert np.linalg.norm(task.embedded(X, None)[0], axis=1).max() <= 1
    np.testing.assert_array_equal(task.rows(X[:1], None)[0], X[:1])
    assert task.embedded is task.embedded  # by identity a session knows rows that it has kept


# full-batch descent


def test_gradient_descent_is_the_one_it_says():
    """At a huge epsilon the noise is gone; plain numpy takes the same steps."""
    X, y = sample(400)
    learner = GradientLearner(steps=9, step_size=2.0, radius=1.5)
    rule, grant = learn(learner, X, y, density=0.7, epsilon=1e7, heavy=0.35)
    assert grant.scale < 1e-5
    b = blank()
    Z, signs = b.embed(X), 2 * y - 1
    log = -0.35 * (1 - (X[:, 0] > 0))
    mu = projected(log, log_cap(log, 0.7)) / (0.7 * 400)
    v, kept = np.zeros(3), []
    for _ in range(9):
        pull = -signs / (1 + np.exp(signs * (Z @ v)))
        v = v - 2.0 * 3 * (mu * pull) @ Z
        v *= min(1, 1.5 * math.sqrt(3) / np.linalg.norm(v))
        kept.append(v)
    np.testing.assert_allclose(rule.coefficients, np.mean(kept[-5:], axis=0), atol=3e-4)


def test_gradient_noise_is_what_was_paid_for():
    learner, task = GradientLearner(steps=5), LearningTask(1000, 2, blank())
    planned = learner.mechanism(task, 0.25)
    assert planned.count == 5
    assert planned.sensitivity == pytest.approx(2 / 250, rel=1e-6)
    assert planned.sensitivity >= 2 / 250


# one drawn row a step (Algorithm 3)


def reference_descent(Z, signs, draws, noise, *, clip, radius, sigma, hinge=None):
    """Algorithm 3 in plain Python, with the steps of its Theorem A.1."""
    h, total = np.zeros(Z.shape[1]), np.zeros(Z.shape[1])
    G = math.sqrt(clip**2 + sigma**2 * Z.shape[1])
    for r, i in enumerate(draws, start=1):
        total += h
        score = signs[i] * (h @ Z[i])
        if hinge is None:
            slope = -signs[i] / (1 + math.exp(score))
        else:
            slope = -signs[i] if score < hinge else 0.0
        h = h - radius / (G * math.sqrt(r)) * (slope * Z[i] + sigma * noise[r - 1])
        h *= min(1.0, radius / max(np.linalg.norm(h), 1e-300))
    return total / len(draws)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_sgd_without_noise_is_the_reference(loss):
    """All rows alike, so that it does not matter which ones are drawn."""
    X, y = np.tile([[0.8, -0.3]], (50, 1)), np.ones(50)
    margin = {"margin": 0.7} if loss == "hinge" else {}
    learner = SGDLearner(steps=400, radius=2.0, loss=loss, sigma=1e-9, **margin)
    rule, grant = learn(learner, X, y)
    assert grant.scale == 1e-9
    Z = blank().embed(X)
    expected = reference_descent(
        Z,
        2 * y - 1,
        np.zeros(400, dtype=int),
        np.zeros((400, 3)),
        clip=1.0,
        radius=2.0 * blank().clip,
        sigma=1e-9,
        hinge=0.7 if loss == "hinge" else None,
    )
    np.testing.assert_allclose(rule.coefficients, expected, rtol=1e-6, atol=1e-9)


def sgd_noise(factor, runs=400):
    """Coefficients after one noisy step on rows of no class, in units of what they should be."""
    X, sigma, found = np.zeros((20, 2)), 0.05, []
    for seed in range(runs):
        learner = SGDLearner(steps=2, radius=1.0, sigma=sigma * factor)
        rule, _ = learn(learner, X, np.full(20, 9.0), seed=seed)
        found.append(rule.coefficients)
    step = blank().clip / math.sqrt(1 + 3 * (sigma * factor) ** 2)
    return np.concatenate(found) / (0.5 * step * sigma)  # the mean of h_1 = 0 and h_2


def test_sgd_noise_has_the_scale_that_it_claims():
    def plausible(values):
        total = np.sum(values**2)
        return min(stats.chi2.cdf(total, values.size), stats.chi2.sf(total, values.size)) > 1e-6

    assert plausible(sgd_noise(1.0))
    assert not plausible(sgd_noise(0.7)), "noise that is too small would not be noticed"


@pytest.mark.slow
def test_sgd_learns_and_its_budget_is_certified():
    X, y = sample(20_000)
    learner = SGDLearner(steps=20_000)
    rule, grant = learn(learner, X, y, density=0.5, heavy=0.6)
    assert grant.mechanism.rate == pytest.approx(1 / 10_000, rel=1e-3)
    assert np.mean(rule.predict(X) != y) < 0.1


def test_sgd_follows_the_weights():
    """Rows with x_0 < 0 vote otherwise; when they lose weight, so does their vote."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.r_[np.ones(3000), -np.ones(3000)], rng.normal(size=6000)])
    y = (np.where(X[:, 0] > 0, 1, -1) * X[:, 1] > 0).astype(float)
    learner = SGDLearner(steps=40_000, sigma=1e-6)
    right = [
        np.mean(learn(learner, X, y, density=0.5, heavy=rate)[0].predict(X[:3000]) == y[:3000])
        for rate in (1e-9, 5.0)
    ]
    assert right[0] < 0.8
    assert right[1] > 0.95


# any estimator (Algorithm 2)


def noisy(**params):
    known = {"epsilon": 1.0, "delta": 1e-8, "steps": 10, "noise": "seeded", "random_state": 0}
    return NoisyGDClassifier(**(known | params))


def test_estimators_are_fitted_to_draws_with_the_epsilon_that_was_solved_for():
    seen = []

    class Spy(NoisyGDClassifier):
        def fit(self, X=None, y=None, *, private=None):
            seen.append((self.epsilon, self.delta, private.n_rows, self.random_state))
            return super().fit(X, y, private=private)

    X, y = sample(20_000)
    learner = EstimatorLearner(Spy(**noisy().get_params()), draws=300)
    rule, grant = learn(learner, X, y, density=0.5)
    ((epsilon, delta, rows, _),) = seen
    assert (delta, rows, grant.mechanism.draws) == (1e-8, 300, 300)
    assert epsilon == min(grant.epsilon, 20.0)
    assert epsilon > 1.0  # amplified: a draw is one row in ten thousand
    assert np.mean(rule.predict_sign(X[:500]) == 2 * y[:500] - 1) > 0.8


def test_an_estimator_that_overspends_is_refused():
    class Spendthrift(NoisyGDClassifier):
        def fit(self, X=None, y=None, *, private=None):
            self.epsilon *= 1.5
            return super().fit(X, y, private=private)

    X, y = sample(20_000)
    with pytest.raises(PrivacyError, match="spent more on its sample"):
        learn(EstimatorLearner(Spendthrift(**noisy().get_params()), draws=300), X, y)


def test_an_estimator_that_fails_tells_nothing():
    class Failing(NoisyGDClassifier):
        def fit(self, X=None, y=None, *, private=None):
            raise RuntimeError("Jane Doe")

    X, y = sample(2000)
    with pytest.raises(PrivacyError, match=r"learner failed \(RuntimeError\)") as caught:
        learn(EstimatorLearner(Failing(**noisy().get_params()), draws=30), X, y)
    assert "Jane" not in str(caught.value)


def test_rounds_have_noise_of_their_own():
    X, y = sample(5000)
    learner, rules = EstimatorLearner(noisy(), draws=300), []
    task = LearningTask(len(X), 2, blank())
    with Private(X, y).open(epsilon=5.0, delta=1e-6, noise="seeded", random_state=0) as session:
        grants = session.plan(rounds=learner.planned(task, [1.0, 0.9]))
        weights = RowWeights(session)
        for grant, density in zip(grants.rounds, (1.0, 0.9), strict=True):
            rules.append(learner.learn(WeightedRows(task, session, weights, density, grant)))
            reweigh(weights, lambda Z, labels: np.zeros(len(Z)), task.rows, 0.1)
    seeds = [rule.function.model.random_state for rule in rules]
    assert seeds == [0, 1]


def test_a_public_sample_is_handed_on_in_the_same_units():
    given = []

    class Spy(NoisyGDClassifier):
        def fit(self, X=None, y=None, *, private=None):
            given.append((X, y))
            return super().fit(X, y, private=private)

    X, y = sample(5000)
    public = (np.array([[2.0, 4.0], [0.0, 0.0]]), ["yes", "no"])
    learner = EstimatorLearner(Spy(**noisy().get_params()), draws=200, public=public)
    rule = LinearRule("linear", np.ones(2), np.full(2, 2.0), np.zeros(3), ("no", "yes"))
    task = LearningTask(len(X), 2, rule)
    private = Private(X, np.where(y > 0, "yes", "no"))
    with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
        grants = session.plan(round=learner.mechanism(task, 1.0))
        rows = WeightedRows(task, session, RowWeights(session), 1.0, grants.round)
        found = learner.learn(rows)
    np.testing.assert_allclose(given[0][0], [[0.5, 1.5], [-0.5, -0.5]])
    np.testing.assert_array_equal(given[0][1], ["yes", "no"])
    assert set(found.function(X)) <= {"no", "yes"}


# bad input


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: GradientLearner(steps=0), "steps"),
        (lambda: GradientLearner(step_size=-1.0), "step_size"),
        (lambda: GradientLearner(radius=0.0), "radius"),
        (lambda: SGDLearner(steps=1.5), "steps"),
        (lambda: SGDLearner(radius=math.inf), "radius"),
        (lambda: SGDLearner(loss="square"), "loss"),
        (lambda: SGDLearner(margin=-1.0), "margin"),
        (lambda: SGDLearner(sigma=0.0), "sigma"),
        (lambda: EstimatorLearner(noisy(), draws=0), "draws"),
        (lambda: EstimatorLearner(noisy(), draws=5, delta=0.0), "delta"),
        (lambda: EstimatorLearner(BaseEstimator(), draws=5), "epsilon, delta, classes"),
    ],
)
def test_bad_arguments_are_named(make, name):
    with pytest.raises((ValueError, TypeError), match=name):
        make()


@pytest.mark.parametrize("learner", [GradientLearner(), SGDLearner(), EstimatorLearner(noisy(), 5)])
def test_less_than_one_row_is_refused(learner):
    with pytest.raises(ValueError, match="less than one row"):
        learner.mechanism(LearningTask(10, 2, blank()), 0.05)
