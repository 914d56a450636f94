"""Choosing among weights on a hold-out part without labels."""

from __future__ import annotations

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.papers.discrepancy.theorems import choose_weights, weights_choice
from dpadapt.privacy import Cleaning
from dpadapt.privacy.mechanisms import SymmetricGaussian
from dpadapt.privacy.statistics import SecondMoment

QUERY = SecondMoment(Cleaning(radius=1.0))


def norm(matrix):
    return np.linalg.norm(matrix, 2)


def test_range_sensitivity_is_never_passed_and_attained():
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(4000):
        d, n = int(rng.integers(1, 4)), 5
        T = rng.normal(size=(n, d))
        T /= np.maximum(np.linalg.norm(T, axis=1, keepdims=True), 1)
        other = T.copy()
        x = rng.normal(size=d)
        other[0] = [np.zeros(d), -T[0], x / np.linalg.norm(x)][rng.integers(3)]
        S = [np.diag(rng.uniform(0, 2, d)) for _ in range(2)]
        before, after = ([norm(rows.T @ rows / n - each) for each in S] for rows in (T, other))
        worst = max(worst, abs((before[0] - after[0]) - (before[1] - after[1])) * n / 2)
    assert worst <= 1 + 1e-12
    # a row of length 1 against none; weights at the origin and far beyond move up and down
    n, S = 5, [0.0, 2.0]
    moved = [abs(1 / n - s) - abs(0 - s) for s in S]
    assert abs(moved[0] - moved[1]) * n / 2 == pytest.approx(1.0)


def test_what_is_asked_for_is_what_a_replaced_row_attains():
    X, candidates = np.array([[0.0], [np.sqrt(2)]]), np.eye(2)  # weighted moments 0 and 2
    moved = []
    for row in ([0.0], [1.0]):  # of 5 rows that are set aside, all others zero
        moment = np.array([row]).T @ np.array([row]) / 5
        moved.append([norm(moment - X.T @ np.diag(q) @ X) for q in candidates])
    with Private(np.zeros((10, 1))).open(epsilon=1.0, delta=1e-6) as session:
        session.split(holdout=0.5)
        asked = weights_choice(session, QUERY, X).sensitivity
    attained = abs(np.subtract(*np.subtract(*moved)))
    assert attained <= asked <= attained * (1 + 1e-6)


def run(epsilon=1.0, seed=0, holdout=0.5, candidates=None):
    private = Private([[1.0, 0.0]] * 9000 + [[0.0, 1.0]] * 1000)
    X = np.eye(2)
    if candidates is None:
        candidates = [np.array([q, 1 - q]) for q in (0.1, 0.5, 0.9)]
    with private.open(epsilon=epsilon, delta=1e-6, noise="seeded", random_state=seed) as session:
        session.split(holdout=holdout)
        train = session.hide(QUERY, "train")
        grants = session.plan(
            moment=SymmetricGaussian.of(train), choice=weights_choice(session, QUERY, X)
        )
        session.release(grants.moment, train)
        moment = session.hide(QUERY, "holdout")
        return choose_weights(session, grants.choice, moment, X, candidates), session.guarantee


def test_the_best_match_is_chosen_at_no_more_than_the_budget():
    best, guarantee = run()
    assert best == 2
    assert 0.999 <= guarantee.epsilon <= 1.0  # training and choice together, not twice


def test_a_tiny_budget_chooses_nearly_at_random():
    chosen = {run(epsilon=1e-4, seed=seed)[0] for seed in range(30)}
    assert chosen == {0, 1, 2}


def test_bad_input_is_named():
    private = Private([[1.0, 0.0]] * 10)
    session = private.open(epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="session must be split"):
        weights_choice(session, QUERY, np.eye(2))
    with pytest.raises(ValueError, match="candidates"):
        run(candidates=[])
