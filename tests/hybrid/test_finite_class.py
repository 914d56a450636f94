"""The exponential mechanism over a finite class: scores, sensitivity, sparse separators."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from dpadapt.hybrid.rules import LinearRule
from dpadapt.papers.hybrid.doors.weights import RowWeights, reweigh
from dpadapt.papers.hybrid.finite_class import FiniteClassLearner, RuleList, sparse_separators
from dpadapt.papers.hybrid.learners import LearningTask, WeightedRows
from dpadapt.privacy import Private
from dpadapt.privacy.accounting.events import BoundedRangeEvent


def task_for(n, d):
    return LearningTask(
        n, d, LinearRule("linear", np.zeros(d), np.ones(d), np.zeros(d + 1), (0, 1))
    )


def test_sensitivity_is_that_of_the_plan():
    task = task_for(1000, 5)
    learner = FiniteClassLearner(sparse_separators(5, 2))
    found = [each.sensitivity for each in learner.planned(task, [1.0, 0.25])]
    assert found == pytest.approx([2 / 1000, 2 / 250], rel=1e-6)
    assert all(more > least for more, least in zip(found, (2 / 1000, 2 / 250), strict=True))


# The class ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [(-1.0, 1.0), (-2.0, 0.5, 1.0)])
def test_histograms_are_the_rules(levels):
    """Mistakes of all thresholds at once against one rule after the other."""
    rng = np.random.default_rng(1)
    d, n = 4, 200
    task = task_for(n, d)
    separators = sparse_separators(d, 2, levels=levels, thresholds=(-1.0, 0.0, 0.3, 2.0))
    assert len(separators) == math.comb(4, 2) * len(levels) ** 2 * 4
    raw, y = rng.normal(size=(n, d)) * 2, rng.choice([-1.0, 0.0, 1.0], n)
    weights = rng.dirichlet(np.ones(n))
    z = task.blank.embed(raw)
    found = separators.mistakes(z, y, weights)
    for index in range(len(separators)):
        rule = separators.rule(index, task)
        assert found[index] == pytest.approx(weights @ (rule.predict_sign(raw) != y), abs=1e-12)


def test_every_separator_is_there_once():
    separators = sparse_separators(5, 2, thresholds=(-1.0, 1.0))
    every = {tuple(separators.coefficients(i)) for i in range(len(separators))}
    assert len(every) == len(separators) == 10 * 4 * 2
    for columns in itertools.combinations(range(5), 2):
        for signs in itertools.product((-1.0, 1.0), repeat=2):
            wanted = np.zeros(6)
            wanted[list(columns)] = signs
            wanted[-1] = -1.0
            assert tuple(wanted) in every


def test_a_list_of_rules():
    rules = [LinearRule("linear", [0.0], [1.0], [sign, 0.0], (0, 1)) for sign in (-1.0, 1.0)]
    X, y = np.linspace(-1, 1, 50)[:, None], np.repeat([-1.0, 1.0], 25)
    losses = RuleList(rules).mistakes(X, y, np.full(50, 0.02))
    np.testing.assert_allclose(losses, [1.0, 0.0], atol=1e-12)


# Learning ----------------------------------------------------------------------------------------


def sparse_data(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 3] - X[:, 11] > 0.5).astype(float)


def learn(X, y, epsilon, learner, seed=0, density=1.0):
    task = task_for(*X.shape)
    with Private(X, y).open(
        epsilon=epsilon, delta=1e-6, noise="seeded", random_state=seed
    ) as session:
        grants = session.plan(choice=learner.mechanism(task, density))
        rows = WeightedRows(task, session, RowWeights(session), density, grants.choice)
        rule = learner.learn(rows)
    return rule, session.guarantee


def test_sparse_separators_over_30_features():
    """7395 hypotheses, 3000 rows, epsilon 1: the true pair of features is found."""
    learner = FiniteClassLearner(sparse_separators(30, 2))
    for seed in range(3):
        X, y = sparse_data(3000, 30, seed)
        rule, guarantee = learn(X, y, 1.0, learner, seed)
        assert np.flatnonzero(rule.coefficients[:-1]).tolist() == [3, 11]
        assert np.mean(rule.predict(X) != y) < 0.05
        assert guarantee.epsilon <= 1.0
        (event,) = guarantee.events
        assert isinstance(event, BoundedRangeEvent)


@pytest.mark.slow
def test_a_choice_follows_the_exponential_law():
    """Frequencies over many choices against exp(-score / scale); |z| < 5."""
    cuts, turns = (0.0, 0.5, 1.0), 3000
    rules = [LinearRule("linear", [0.0], [1.0], [1.0, -cut], (0, 1)) for cut in cuts]
    learner, task = FiniteClassLearner(rules), task_for(40, 1)
    X = np.linspace(-2, 2, 40)[:, None]
    y = (X[:, 0] > 0).astype(float)
    choice = learner.mechanism(task, 1.0)
    scale, counts = 2 * choice.sensitivity, np.zeros(3)
    with Private(X, y).open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
        grants = session.plan(choice=replace(choice, count=turns, printed=scale))
        rows = WeightedRows(task, session, RowWeights(session), 1.0, grants.choice)
        for _ in range(turns):
            rule = learner.learn(rows)
            counts[cuts.index(-rule.coefficients[-1])] += 1
    scores = np.array([np.mean((X[:, 0] > cut) != y) for cut in cuts])

    def deviations(noise):
        law = np.exp(-scores / noise) / np.exp(-scores / noise).sum()
        return np.abs(counts - turns * law) / np.sqrt(turns * law * (1 - law))

    assert deviations(scale).max() < 5
    assert deviations(0.7 * scale).max() > 5  # less noise would be seen


def test_weights_move_the_choice():
    """One in six rows is of class 1; after reweighing hardly any other weighs anything."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 1))
    y = (np.arange(3000) >= 2500).astype(float)
    rules = [LinearRule("linear", [0.0], [1.0], [0.0, side], (0, 1)) for side in (-1.0, 1.0)]
    learner, task = FiniteClassLearner(rules), task_for(3000, 1)
    with Private(X, y).open(epsilon=5.0, delta=1e-6) as session:
        grants = session.plan(choice=replace(learner.mechanism(task, 0.2), count=2))
        weights = RowWeights(session)
        before = learner.learn(WeightedRows(task, session, weights, 1.0, grants.choice))
        reweigh(weights, lambda X, y: (y > 0) * 1.0, task.rows, 10.0)
        after = learner.learn(WeightedRows(task, session, weights, 0.2, grants.choice))
    assert (before.coefficients[-1], after.coefficients[-1]) == (-1.0, 1.0)


def test_bad_classes_are_refused():
    with pytest.raises(ValueError, match="one at least"):
        FiniteClassLearner([])
    with pytest.raises(ValueError, match="s must be at most d"):
        sparse_separators(2, 3)
    with pytest.raises(ValueError, match="at most 20000000"):
        sparse_separators(500, 4)
    for bad in ({"levels": (0.0, 1.0)}, {"levels": ()}, {"thresholds": (math.inf,)}):
        with pytest.raises(ValueError, match="finite numbers"):
            sparse_separators(3, 1, **bad)
    with pytest.raises(ValueError, match="4 features"):
        FiniteClassLearner(sparse_separators(4, 1)).mechanism(task_for(10, 5), 1.0)
