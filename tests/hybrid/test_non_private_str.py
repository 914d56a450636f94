"""Algorithm 1 of paper 003, without privacy."""

from __future__ import annotations

import numpy as np
import pytest

from dpadapt.papers.hybrid.non_private import non_private_subsample_test_reweigh as run


def threshold_task(n=4000, seed=0):
    """Source dense at 0, target around 2; the learner prefers a wrong cut unless weights insist."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, 1))
    target = rng.uniform(1.5, 2.5, size=(n, 1))
    return X, X[:, 0] > 2, target, target[:, 0] > 2


def stump(X, y, weights):
    cuts = np.linspace(0, 4, 81)
    errors = [weights @ ((X[:, 0] > cut) != y) + 0.3 * abs(cut - 1) for cut in cuts]
    best = cuts[np.argmin(errors)]
    return lambda rows: rows[:, 0] > best


def oracle_of(target, labels):
    return lambda rule: float(np.mean(rule(target) != labels))


def test_reweighing_finds_what_the_source_alone_does_not():
    X, y, target, labels = threshold_task()
    oracle = oracle_of(target, labels)
    found = run(X, y, stump, oracle, threshold=0.06, rounds=90)
    assert found.estimates[0] > 0.3
    assert found.halted
    assert oracle(found.rule) == found.estimates[-1] <= 0.06
    assert 1 < found.rounds < 90


def test_the_wrong_sign_of_the_update_does_not_find_it():
    X, y, target, labels = threshold_task()
    wrong = lambda rule, X, y: rule(X) == y  # noqa: E731
    found = run(X, y, stump, oracle_of(target, labels), threshold=0.06, rounds=90, loss=wrong)
    assert not found.halted


def test_weights_are_the_ones_of_the_paper():
    X, y = np.arange(4.0)[:, None], np.array([0, 0, 1, 1])
    rules = [lambda rows: np.array([0, 1, 1, 0]), lambda rows: np.array([0, 0, 0, 0])]
    seen = []

    def learner(X, y, weights):
        seen.append(weights)
        return rules[len(seen) - 1]

    run(X, y, learner, lambda rule: 1.0, threshold=0.0, rounds=2, rate=0.5)
    expected = np.exp(-0.5 * np.array([1, 0, 1, 0]))
    np.testing.assert_allclose(seen[0], 0.25)
    np.testing.assert_allclose(seen[1], expected / expected.sum())


def test_draws_follow_the_weights():
    X, y = np.arange(3.0)[:, None], np.zeros(3)
    shares = []

    def learner(X, y, weights):
        assert weights.sum() == pytest.approx(1)
        shares.append(np.bincount(X[:, 0].astype(int), minlength=3) / len(X))
        return lambda rows: np.array([0, 1, 1])  # right on the first row only

    run(X, y, learner, lambda r: 1.0, threshold=0, rounds=2, rate=1.0, draws=200_000,
        random_state=0)  # fmt: skip
    np.testing.assert_allclose(shares[0], 1 / 3, atol=5e-3)
    second = np.exp([-1.0, 0, 0])
    np.testing.assert_allclose(shares[1], second / second.sum(), atol=5e-3)


def test_the_best_rule_seen_is_returned_if_none_passes():
    X, y = np.zeros((2, 1)), np.zeros(2)
    answers = iter([0.5, 0.2, 0.4])
    rules = iter([lambda r: np.zeros(2), lambda r: np.ones(2), lambda r: np.zeros(2)])
    found = run(X, y, lambda *_: next(rules), lambda r: next(answers), threshold=0.1, rounds=3)
    assert not found.halted
    assert found.estimates == (0.5, 0.2, 0.4)
    np.testing.assert_array_equal(found.rule(X), np.ones(2))


def test_losses_are_clipped_and_weights_never_underflow():
    X, y = np.zeros((3, 1)), np.zeros(3)
    loss = lambda rule, X, y: np.array([-50.0, 1e9, 0.5])  # noqa: E731
    found = run(X, y, lambda *_: None, lambda r: 1.0, threshold=0, rounds=5000, rate=1.0, loss=loss)
    assert np.isfinite(found.weights).all()
    np.testing.assert_allclose(found.weights, [0, 1, 0], atol=1e-12)


@pytest.mark.parametrize(("name", "value"), [("rounds", 0), ("rate", -1.0), ("draws", 0)])
def test_bad_arguments_are_named(name, value):
    given = {"threshold": 0.1, "rounds": 3, name: value}
    with pytest.raises(ValueError, match=name):
        run(np.zeros((2, 1)), np.zeros(2), stump, lambda r: 0.0, **given)
