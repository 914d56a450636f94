"""Membership inference: it finds what leaks, does not find what does not, and obeys the bounds."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from dpadapt import Private
from dpadapt.audit import (
    AttackResult,
    advantage_bound,
    auc_bound,
    draw_attack,
    gaussian_advantage_bound,
    gaussian_auc_bound,
    membership_attack,
)
from dpadapt.audit import membership as figures
from dpadapt.mixing import NoisyGDClassifier
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.composition import gaussian_delta

N, D = 200, 3000


def examples(n=N, d=D, classes=2, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), rng.integers(0, classes, n)


class Direction:
    """Classifier by the sign of a projection."""

    classes_ = np.array([0, 1])

    def __init__(self, weights):
        self.weights = weights

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-(X @ self.weights)))
        return np.column_stack([1 - p, p])


def noisy_mean(deviation):
    """The sum of signed unit rows with Gaussian noise: 1/deviation-GDP when a row is added.

    In many dimensions the other rows hardly touch what the noise does to one: the attack is then
    nearly the best one there is.
    """

    def fit(X, y, seed):
        noise = np.random.default_rng(seed).normal(size=X.shape[1])
        return Direction((2 * y - 1) @ X + deviation * noise)

    return fit


def plain_logistic(X, y, seed):
    return LogisticRegression(C=1e4, max_iter=200).fit(X, y)


# what leaks, and what does not


@pytest.mark.parametrize("shadows", [16, 64])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_an_unregularised_model_in_many_dimensions_is_found_out(shadows, relation):
    X, y = examples(100, 300, classes=3)
    result = membership_attack(plain_logistic, X, y, shadows=shadows, relation=relation)
    assert result.auc > 0.95
    assert result.advantage > 0.85


def test_nearest_neighbours_are_found_out_as_far_as_labels_differ():
    X, y = examples(300, 20, classes=4)
    result = membership_attack(lambda X, y, seed: KNeighborsClassifier(1).fit(X, y), X, y)
    # a left-out example has its neighbour's label with probability 1/4, and no more is to be had
    assert result.advantage == pytest.approx(3 / 4, abs=0.05)
    assert result.auc > 0.85


def test_a_constant_model_gives_nothing_away():
    X, y = examples(60, 4)
    uniform = membership_attack(
        lambda X, y, seed: DummyClassifier(strategy="uniform").fit(X, y), X, y, shadows=8
    )
    assert (uniform.auc, uniform.advantage) == (0.5, 0.0)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_model_of_other_data_gives_nothing_away(relation):
    X, y = examples(150, 100)
    X_other, y_other = examples(100, 100, seed=2)

    def other(X, y, seed):
        some = np.random.default_rng(seed).permutation(100)[:50]
        return LogisticRegression(C=100.0).fit(X_other[some], y_other[some])

    attacks = [
        membership_attack(other, X, y, shadows=16, relation=relation, random_state=seed)
        for seed in range(6)
    ]
    # 0.5 with a deviation of about 1 / sqrt(12 * 8 victims * 37) = 0.017, if victims were still
    assert np.mean([attack.auc for attack in attacks]) == pytest.approx(0.5, abs=0.025)
    assert max(attack.advantage for attack in attacks) < 0.15


def test_victims_are_held_out():
    """A model that answers by chance: an attack on its own shadows would succeed."""
    X, y = examples(100, 5)

    def chance(X, y, seed):
        return Direction(np.random.default_rng(seed).normal(size=X.shape[1]) * 5)

    attacks = [membership_attack(chance, X, y, shadows=4, random_state=s) for s in range(10)]
    assert np.mean([attack.auc for attack in attacks]) == pytest.approx(0.5, abs=0.05)


# the bounds, for a mechanism whose privacy is known


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_the_attack_comes_near_the_bound_and_does_not_pass_it(mu):
    X, y = examples()
    result = membership_attack(
        noisy_mean(1 / mu), X, y, shadows=64, targets=64, relation="add-remove"
    )
    noise = 3 / math.sqrt(result.scores.size / 2)
    assert result.advantage <= gaussian_advantage_bound(mu) + noise
    assert result.auc <= gaussian_auc_bound(mu) + noise
    assert result.advantage >= 0.75 * gaussian_advantage_bound(mu)  # it has power


@pytest.mark.parametrize("factor", [0.1, 0.7])
def test_too_little_noise_is_refuted(factor):
    X, y = examples()
    claimed = 1.0
    result = membership_attack(
        noisy_mean(factor / claimed), X, y, shadows=64, targets=64, relation="add-remove"
    )
    noise = 3 / math.sqrt(result.scores.size / 2)
    assert result.advantage > gaussian_advantage_bound(claimed) + noise
    assert result.auc > gaussian_auc_bound(claimed) + noise


def test_rates_stay_below_the_whole_curve():
    X, y = examples()
    result = membership_attack(noisy_mean(1.0), X, y, shadows=64, targets=64, relation="add-remove")
    false_alarms, detections = result.roc
    inside = (false_alarms > 0) & (false_alarms < 1)
    limit = stats.norm.cdf(stats.norm.ppf(false_alarms[inside]) + 1.0)
    assert (detections[inside] - limit).max() < 3 / math.sqrt(result.scores.size / 2)
    assert result.detected_at_1_percent <= stats.norm.cdf(stats.norm.ppf(0.01) + 1.0) + 0.02


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_an_estimator_of_the_library_obeys_its_guarantee(relation):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 400)), rng.integers(0, 2, 100)

    def training(epsilon):
        def fit(X, y, seed):
            model = NoisyGDClassifier(
                epsilon=epsilon, delta=1e-5, relation=relation, classes=[0, 1], sample_size=50,
                steps=10, noise="seeded", random_state=seed,
            )  # fmt: skip
            return model.fit(None, None, private=Private(X, y))

        return fit

    mu = gaussian_mu(1.0, 1e-5)
    claimed = membership_attack(training(1.0), X, y, relation=relation)
    assert claimed.advantage <= gaussian_advantage_bound(mu) + 0.06
    assert claimed.auc <= gaussian_auc_bound(mu) + 0.03
    # had it spent 16, the same attack would refute it
    lie = membership_attack(training(16.0), X, y, relation=relation)
    assert lie.advantage > gaussian_advantage_bound(mu) + 0.06
    assert lie.auc > gaussian_auc_bound(mu) + 0.03


# the bounds themselves


def _hockey_stick(p, q, epsilon):
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def test_bounds_hold_for_random_pairs_of_distributions():
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(500):
        p, q = rng.dirichlet(np.full(4, rng.choice([0.3, 1.0, 5.0])), size=2)
        epsilon = rng.exponential()
        delta = max(_hockey_stick(p, q, epsilon), _hockey_stick(q, p, epsilon))
        if delta >= 1:
            continue
        advantage = np.abs(p - q).sum() / 2  # of the best test
        assert advantage <= advantage_bound(epsilon, delta) + 1e-12
        worst = max(worst, advantage / advantage_bound(epsilon, delta))
        above, same = p[:, None] * q, np.subtract.outer(p / q, p / q)
        auc = above[same > 0].sum() + above[same == 0].sum() / 2
        assert auc <= auc_bound(epsilon, delta) + 1e-12
    assert worst > 0.95


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.2])
def test_bounds_are_attained_by_randomised_response(epsilon, delta):
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    p = np.array([delta, (1 - delta) * truth, (1 - delta) * (1 - truth), 0.0])
    q = p[::-1]
    assert np.abs(p - q).sum() / 2 == pytest.approx(advantage_bound(epsilon, delta), abs=1e-15)
    pairs = itertools.product(range(4), repeat=2)  # outcomes in the order of their odds
    auc = sum(p[i] * q[j] * ((i < j) + (i == j) / 2) for i, j in pairs)
    assert auc == pytest.approx(auc_bound(epsilon, delta), abs=1e-15)
    if delta == 0.2:  # a bound that forgets delta is passed
        assert np.abs(p - q).sum() / 2 > math.tanh(epsilon / 2) + 1e-3


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_gaussian_bounds_follow_from_the_curve(mu):
    rates = np.linspace(0, 1, 200_001)
    curve = stats.norm.cdf(stats.norm.ppf(rates) + mu)
    assert (curve - rates).max() == pytest.approx(gaussian_advantage_bound(mu), abs=1e-9)
    assert np.trapezoid(curve, rates) == pytest.approx(gaussian_auc_bound(mu), abs=1e-4)
    for epsilon in (1e-9, 0.5, 1.0, 3.0):
        implied = advantage_bound(epsilon, gaussian_delta(epsilon, mu))
        assert gaussian_advantage_bound(mu) <= implied + 1e-8
        assert gaussian_auc_bound(mu) <= auc_bound(epsilon, gaussian_delta(epsilon, mu)) + 1e-8
    at_zero = advantage_bound(0.0, gaussian_delta(1e-12, mu))
    assert at_zero == pytest.approx(gaussian_advantage_bound(mu), abs=1e-9)


def test_bounds_at_the_ends():
    assert advantage_bound(0.0) == gaussian_advantage_bound(0.0) == 0.0
    assert auc_bound(0.0) == gaussian_auc_bound(0.0) == 0.5
    assert advantage_bound(1e6, 0.5) == advantage_bound(math.inf) == 1.0
    assert advantage_bound(0.01, 0.999) <= 1.0
    for bound, arguments, name in (
        (advantage_bound, (-1.0,), "epsilon"),
        (auc_bound, (math.nan,), "epsilon"),
        (advantage_bound, (1.0, 1.0), "delta"),
        (auc_bound, (1.0, -0.1), "delta"),
        (gaussian_advantage_bound, (-1.0,), "mu"),
        (gaussian_auc_bound, (math.inf,), "mu"),
    ):
        with pytest.raises(ValueError, match=name):
            bound(*arguments)


# the game


def spied(fit=plain_logistic):
    calls = []

    def fit_and_tell(X, y, seed):
        calls.append((X[:, 0].astype(int), seed))
        return fit(X, y, seed)

    return fit_and_tell, calls


@pytest.mark.parametrize("n", [20, 21])
def test_halves_come_in_pairs_and_victims_do_not(n):
    X, y = np.arange(2 * n, dtype=float).reshape(n, 2) // 2, np.arange(n) % 2
    fit, calls = spied()
    result = membership_attack(fit, X, y, shadows=6, targets=5)
    assert len(calls) == 11
    bits = np.array([np.isin(np.arange(n), members) for members, _ in calls])
    np.testing.assert_array_equal(bits[:3], ~bits[3:6])
    np.testing.assert_array_equal(bits[6:], result.members)
    assert set(result.members.sum(axis=1)) == {n // 2}
    assert len({seed for _, seed in calls}) == 11
    assert len({tuple(row) for row in bits}) == 11
    assert result.scores.shape == (5, n)


def test_coins_are_tossed_one_by_one():
    n = 400
    X, y = np.arange(2 * n, dtype=float).reshape(n, 2) // 2, np.arange(n) % 2
    result = membership_attack(
        lambda X, y, seed: Direction(np.zeros(2)), X, y, shadows=4, targets=300,
        relation="add-remove",
    )  # fmt: skip
    sizes = result.members.sum(axis=1)
    assert sizes.var() == pytest.approx(n / 4, rel=0.3)
    assert sizes.mean() == pytest.approx(n / 2, abs=3)


def test_the_same_seed_gives_the_same_result():
    X, y = examples(40, 30)
    before = X.copy(), y.copy()
    one, two = (membership_attack(noisy_mean(1.0), X, y, shadows=8) for _ in range(2))
    other = membership_attack(noisy_mean(1.0), X, y, shadows=8, random_state=1)
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.members, two.members)
    assert not np.array_equal(one.members, other.members)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_frames_and_names_of_classes_change_nothing():
    X, y = examples(40, 50)
    frame = pd.DataFrame(X, index=np.arange(40)[::-1]).add_prefix("x")
    names = np.array(["no", "yes"])[y]
    for rows, labels in ((frame, y), (X, names), (frame, list(names))):
        found = membership_attack(plain_logistic, rows, labels, shadows=4)
        expected = membership_attack(plain_logistic, X, y, shadows=4)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-6, atol=1e-6)


def test_a_class_that_a_half_lacks_has_probability_zero():
    X, y = examples(40, 50)
    y[0] = 2  # in half of the models no one has seen this class
    result = membership_attack(plain_logistic, X, y, shadows=16)
    assert np.isfinite(result.scores).all()
    member = result.members[:, 0]
    assert result.scores[member, 0].min() > result.scores[~member, 0].max()


@pytest.mark.parametrize("certain", [0.0, 1.0])
def test_certain_models_do_no_harm(certain):
    X, y = examples(20, 3)

    class Certain(Direction):
        def predict_proba(self, X):
            return np.tile([1 - certain, certain], (len(X), 1))

    result = membership_attack(lambda X, y, seed: Certain(None), X, y, shadows=4)
    assert np.isfinite(result.scores).all()
    assert result.auc == 0.5


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"shadows": 5}, "shadows.*even"),
        ({"shadows": 2}, "shadows"),
        ({"shadows": 8.5}, "shadows"),
        ({"targets": 0}, "targets"),
        ({"relation": "swap"}, "relation"),
    ],
)
def test_bad_options_are_named(options, match):
    X, y = examples(20, 3)
    with pytest.raises((ValueError, TypeError), match=match):
        membership_attack(plain_logistic, X, y, **options)


def test_bad_examples_and_models_are_named():
    X, y = examples(20, 3)
    with pytest.raises(ValueError, match="one label for each"):
        membership_attack(plain_logistic, X, y[:-1])
    with pytest.raises(ValueError, match="four"):
        membership_attack(plain_logistic, X[:3], y[:3])

    class Broken(Direction):
        def predict_proba(self, X):
            return np.full((len(X), 2), np.nan)

    with pytest.raises(ValueError, match="predict_proba"):
        membership_attack(lambda X, y, seed: Broken(None), X, y)


# the result


def test_measures_agree_with_others():
    rng = np.random.default_rng(0)
    scores, members = rng.integers(0, 9, (4, 700)).astype(float), rng.random((4, 700)) < 0.5
    scores += members
    result = AttackResult(scores, members)
    assert result.auc == pytest.approx(roc_auc_score(members.ravel(), scores.ravel()), abs=1e-12)
    best = max(
        (scores[members] >= t).mean() - (scores[~members] >= t).mean() for t in np.unique(scores)
    )
    assert result.advantage == pytest.approx(best, abs=1e-12)
    allowed = [t for t in np.unique(scores) if (scores[~members] >= t).mean() <= 0.01]
    found = max(((scores[members] >= t).mean() for t in allowed), default=0.0)
    assert result.detected_at_1_percent == pytest.approx(found, abs=1e-12)
    assert AttackResult(-scores, members).auc == pytest.approx(1 - result.auc, abs=1e-12)
    assert result.without(0).scores.shape == (3, 700)


def test_few_examples_have_no_rate_at_one_percent():
    members = np.arange(1900)[None] % 2 == 0
    assert math.isnan(AttackResult(members.astype(float), members).detected_at_1_percent)
    members = np.arange(2000)[None] % 2 == 0
    assert AttackResult(members.astype(float), members).detected_at_1_percent == 1.0


def test_result_is_frozen_and_does_not_show_scores():
    members = np.array([[True, False]])
    result = AttackResult(np.array([[0.123456, 0.0]]), members)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.scores = members
    assert "0.12" not in repr(result)
    assert repr(result) == "AttackResult(auc=1.000, advantage=1.000, 1 victim, 2 examples)"


# the figure


def attacks():
    X, y = examples(60, 500)
    return {
        epsilon: membership_attack(
            noisy_mean(2 / gaussian_mu(epsilon, 1e-5) if math.isfinite(epsilon) else 0.0),
            X, y, shadows=8,
        )
        for epsilon in (0.5, 2.0, 8.0, math.inf)
    }  # fmt: skip


def test_figure_shows_every_attack_and_both_bounds(tmp_path):
    results = attacks()
    figure = draw_attack({"noisy mean": results}, delta=1e-5)
    for axes, value in zip(figure.axes, ("auc", "advantage"), strict=True):
        lines = {line.get_label(): line for line in axes.lines}
        assert {"limit for any attack", "limit, Gaussian noise", "guessing"} <= set(lines)
        drawn = next(c for c in axes.containers if c.get_label() == "noisy mean")[0].get_ydata()
        np.testing.assert_allclose(
            drawn.astype(float), [getattr(r, value) for r in results.values()]
        )
        limit, gaussian = (
            lines[name].get_ydata() for name in ("limit for any attack", "limit, Gaussian noise")
        )
        assert (np.asarray(gaussian) <= np.asarray(limit) + 1e-12).all()
        labels = [text.get_text() for text in axes.get_xticklabels()]
        assert labels == ["0.5", "2", "8", "no\nprivacy"]
    figure.savefig(tmp_path / "attack.png")
    alone = draw_attack(results, delta=1e-5)
    assert any(c.get_label() == "attack" for c in alone.axes[0].containers)


def test_standard_error_is_that_of_other_victims():
    X, y = examples(60, 500)
    attacks = [
        membership_attack(noisy_mean(1.0), X, y, shadows=32, targets=12, random_state=seed)
        for seed in range(30)
    ]
    claimed = np.mean([figures._standard_error(each, lambda a: a.auc) for each in attacks])
    assert np.std([each.auc for each in attacks]) == pytest.approx(claimed, rel=0.5)
    assert figures._standard_error(AttackResult(np.eye(2)[:1], np.eye(2)[:1] > 0), abs) == 0.0


@pytest.mark.parametrize("results", [{}, {1.0: {1.0: "x"}}, {0.0: None}, {-1.0: None}])
def test_figure_of_something_else_is_refused(results):
    known = AttackResult(np.array([[0.0, 1.0]]), np.array([[False, True]]))
    results = {epsilon: known if each is None else each for epsilon, each in results.items()}
    with pytest.raises((ValueError, TypeError), match="results"):
        draw_attack(results, delta=1e-5)
