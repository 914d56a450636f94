"""Parities over a skewed source: sample sizes, the rule, the learner in a session."""

import itertools
import math

import numpy as np
import pytest

from dpadapt.hybrid.questions import Mistake
from dpadapt.hybrid.rules import LinearRule, ParityRule
from dpadapt.papers.hybrid.doors.parity import parity_masks
from dpadapt.papers.hybrid.doors.weights import RowWeights
from dpadapt.papers.hybrid.learners import (
    LearningTask,
    ParityLearner,
    ParityRows,
    WeightedRows,
    parity_rows,
)
from dpadapt.privacy import Private


def task_for(n, d, classes=(0, 1)):
    return LearningTask(
        n, d, LinearRule("linear", np.zeros(d), np.ones(d), np.zeros(d + 1), classes)
    )


def rows_of(learner, task, session):
    """All rows, of equal weight, and the grant of the one round."""
    grants = session.plan(rounds=learner.planned(task, [1.0]))
    return WeightedRows(task, session, RowWeights(session), 1.0, grants.rounds[0])


def skewed(n, d, chance, seed):
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, d)
    X = (rng.random((n, d), dtype=np.float32) < chance).astype(np.uint8)
    return X, X @ secret % 2, tuple(secret.tolist())


def chi2_of(d, chance):
    return (4 * chance * (1 - chance)) ** -d - 1


def test_64_bits_in_one_round_from_a_skewed_source():
    """At epsilon 1 with the rows of the formula; every batch that speaks is right."""
    d, chance, beta = 64, 0.45, 0.05
    sizes = parity_rows(d, chi2_of(d, chance), epsilon=1.0, beta=beta)
    X, y, secret = skewed(sizes.total, d, chance, 0)
    private, learner = Private(X, y), ParityLearner(beta=beta)
    task = task_for(sizes.total, d)
    with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
        rules = learner.candidates(rows_of(learner, task, session))
    assert [rule.mask for rule in rules] == [secret]
    assert session.guarantee.epsilon == pytest.approx(1.0, rel=1e-3)
    assert session.guarantee.epsilon <= 1.0
    fair = np.random.default_rng(1).integers(0, 2, (500, d)).astype(float)
    labels = np.where(fair @ np.array(secret) % 2 == 1, 1.0, -1.0)
    assert not Mistake(rules[0]).values(fair, labels).any()


def test_far_fewer_rows_do():
    """The bound is for the worst source: here 0.3 % of its rows are enough, at chi^2 = 12.6."""
    d, chance = 64, 0.4
    bound = parity_rows(d, chi2_of(d, chance), epsilon=1.0, beta=0.05)
    assert bound.total > 1_000_000
    right = 0
    for seed in range(20):
        X, y, secret = skewed(13 * 250, d, chance, seed)
        masks = parity_masks(X, y, 1.0, 13, np.random.default_rng(seed).random)
        spoken = [tuple(mask.tolist()) for mask in masks if mask is not None]
        right += secret in spoken
    assert right >= 19


def test_learn_returns_the_most_frequent_mask():
    X, y, secret = skewed(20_000, 10, 0.4, 3)
    learner, task = ParityLearner(), task_for(20_000, 10, ("no", "yes"))
    with Private(X, y).open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=1) as session:
        rule = learner.learn(rows_of(learner, task, session))
    assert rule.mask == secret
    assert set(rule.predict(X[:50].astype(float)).tolist()) <= {"no", "yes"}


def test_noisy_labels_leave_nothing_and_that_is_no_error():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (5000, 6)), rng.integers(0, 2, 5000)
    learner, task = ParityLearner(), task_for(5000, 6)
    with Private(X, y).open(epsilon=2.0, delta=1e-6) as session:
        (rule,) = learner.candidates(rows_of(learner, task, session))
    assert rule.mask == (0,) * 6


def test_more_rounds_are_refused():
    with pytest.raises(ValueError, match="one round"):
        ParityLearner().planned(task_for(100, 3), [1.0, 0.5])


# Sizes -------------------------------------------------------------------------------------------


def test_rows_follow_the_formula():
    d, chi2, epsilon, beta = 64, 3.0, 0.5, 0.05
    sizes = parity_rows(d, chi2, epsilon, beta)
    k = math.ceil(math.log(2 / beta, 4 / 3))
    kept = 4 * (chi2 + 1) * d * math.log(d * 4 * k / beta)
    assert isinstance(sizes, ParityRows)
    assert sizes.batches == k == ParityLearner(beta).batches
    assert sizes.kept == math.ceil(kept)
    p = math.tanh(epsilon / 2)
    assert sizes.total == k * sizes.batch
    mean = p * sizes.batch
    assert mean - math.sqrt(2 * mean * math.log(4 * k / beta)) >= kept
    assert sizes.batch < 1.2 * kept / p
    printed = 32 * (chi2 + 1) * d * math.log(2 * d / beta) / epsilon  # of the paper, one batch
    assert sizes.batch < 0.8 * printed


@pytest.mark.parametrize("chi2", [math.inf, math.nan, -0.5, "1"])
def test_no_number_of_rows_is_enough_for_an_infinite_divergence(chi2):
    with pytest.raises(ValueError, match="chi2 must be a finite number"):
        parity_rows(8, chi2, 1.0, 0.05)


def test_kept_rows_have_full_rank_as_often_as_is_said():
    """Small d and a strongly skewed source; the claim is b = 0.1 at most."""
    rng = np.random.default_rng(0)
    d, chance, b = 4, 0.15, 0.1
    size = math.ceil(4 * (chi2_of(d, chance) + 1) * d * math.log(d / b))
    failures = 0
    for _ in range(300):
        X = rng.random((size, d)) < chance
        orthogonal = [
            mask
            for mask in itertools.product((0, 1), repeat=d)
            if any(mask) and not ((X @ np.array(mask)) % 2).any()
        ]
        failures += bool(orthogonal)
    assert failures <= 0.1 * 300


# The rule ----------------------------------------------------------------------------------------


def test_rule_counts_modulo_two():
    rule = ParityRule((1, 1, 0, 1), ("even", "odd"))
    X = np.array(list(itertools.product((0.0, 1.0), repeat=4)))
    odd = (X[:, 0] + X[:, 1] + X[:, 3]) % 2 == 1
    np.testing.assert_array_equal(rule.predict_sign(X), np.where(odd, 1.0, -1.0))
    np.testing.assert_array_equal(rule.predict(X) == "odd", odd)
    labels = np.where(odd, 1.0, -1.0)
    assert not rule.losses(X, labels).any()
    assert rule.losses(X, -labels).all()
    assert np.isinf(rule.losses(X[:1], np.zeros(1))).all()
    assert rule.predict_sign(np.array([[np.nan, np.inf, 0.0, 0.3]])).tolist() == [1.0]


def test_rule_round_trip_and_checks():
    rule = ParityRule(np.array([1, 0, 1], dtype=np.uint8), ("a", "b"))
    assert ParityRule.from_dict(rule.to_dict()) == rule
    with pytest.raises(ValueError, match="3 columns"):
        rule.check(4)
    with pytest.raises(ValueError, match="mask must"):
        ParityRule((0, 2))
    with pytest.raises(ValueError, match="unknown kind"):
        ParityRule.from_dict({"rule": "linear"})
