"""Lower bounds on epsilon: valid, and powerful where canaries have room."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpadapt import Private
from dpadapt.audit import (
    Canaries,
    epsilon_from_guesses,
    many_runs_audit,
    mu_from_guesses,
    one_run_audit,
)
from dpadapt.audit.one_run import epsilon_of_mu
from dpadapt.baselines import NoisyGradientClassifier, NoisyGradientRegressor
from dpadapt.discrepancy import DiscrepancyRegressor
from dpadapt.mixing import AdaMix, AdaMixClassifier, FixedClip, NoisyGD, NoisyGDClassifier
from dpadapt.privacy import Cleaning
from dpadapt.privacy import Private as Rows
from dpadapt.privacy import Rows as Table
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.core import noise as sources
from dpadapt.privacy.mechanisms import Exponential, Laplace, SymmetricGaussian
from dpadapt.privacy.statistics import SecondMoment

DELTA = 1e-5
pytestmark = pytest.mark.filterwarnings("ignore::dpadapt.discrepancy.AdaptationWarning")
# columns of gradients and of second moments at each epsilon: so many canaries find half of the
# noise with probability 0.92 at epsilon 1 and 0.98 at epsilon 4, if they are ideal (simulated)
ROOM = {1.0: (2500, 72), 4.0: (1000, 46)}


def half_noise(monkeypatch):
    """A twin of the library whose Gaussian noise is half of what it should be."""
    whole = sources._ContinuousNoise.add_gaussian
    monkeypatch.setattr(
        sources._ContinuousNoise,
        "add_gaussian",
        lambda self, values, scale: whole(self, values, scale / 2),
    )


def moment_canaries(columns):
    """a + b or a - b: their second moments are as far apart as can be, and all orthogonal."""
    first, second = np.triu_indices(columns, 1)
    one, two = 50 * np.eye(columns)[first], 50 * np.eye(columns)[second]
    return Canaries(one + two, None, one - two)


def gradient_canaries(label, columns):
    """Each has a column to itself, and points up or down."""
    rows, labels = 1e3 * np.eye(columns), np.full(columns, label)
    return Canaries(rows, labels, -rows, labels)


def training(kind, epsilon):
    """A fit of each of five estimators, and canaries that have room in what it releases."""
    budget = {"epsilon": epsilon, "delta": DELTA}
    rng = np.random.default_rng(1)
    wide, narrow = ROOM[epsilon]
    if kind == "DiscrepancyRegressor":
        X = rng.normal(size=(200, narrow))
        return (
            lambda sample: DiscrepancyRegressor(**budget).fit(
                X, X[:, 0], private=Private(sample[0])
            ),
            moment_canaries(narrow),
        )
    X, y = rng.normal(size=(20, wide)), np.arange(20) % 2
    if kind == "NoisyGradientRegressor":
        model = NoisyGradientRegressor(**budget, steps=2, clip=0.01)
        return (
            lambda sample: model.fit(X, X[:, 0], private=Private(*sample)),
            gradient_canaries(1e3, wide),
        )
    models = {
        "NoisyGDClassifier": NoisyGDClassifier(
            **budget, steps=2, classes=[0, 1], solver=NoisyGD(clip=0.3)
        ),
        "AdaMixClassifier": AdaMixClassifier(**budget, solver=AdaMix(FixedClip(0.3)), steps=2),
        "NoisyGradientClassifier": NoisyGradientClassifier(**budget, steps=2, clip=0.3),
    }
    return lambda sample: models[kind].fit(X, y, private=Private(*sample)), gradient_canaries(
        0, wide
    )


FIVE = (
    "DiscrepancyRegressor",
    "NoisyGradientRegressor",
    "NoisyGradientClassifier",
    "NoisyGDClassifier",
    "AdaMixClassifier",
)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("kind", FIVE)
def test_one_run_is_below_the_claim_and_above_it_with_half_of_the_noise(kind, epsilon, monkeypatch):
    found = one_run_audit(*training(kind, epsilon))
    assert found.claimed == pytest.approx(epsilon, rel=1e-6)
    assert 0 < found.epsilon < epsilon
    half_noise(monkeypatch)
    broken = one_run_audit(*training(kind, epsilon))
    assert broken.epsilon > epsilon
    assert broken.refuted


def test_one_run_finds_half_of_the_noise(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 40))

    def fit(sample):
        model = DiscrepancyRegressor(epsilon=4.0, delta=DELTA)
        return model.fit(X, X[:, 0], private=Private(sample[0]))

    found = one_run_audit(fit, moment_canaries(40))
    assert 1 < found.epsilon < 4
    half_noise(monkeypatch)
    assert one_run_audit(fit, moment_canaries(40)).epsilon > 4


# many runs


def release(rows, epsilon=4.0):
    """One noisy moment, with a guarantee."""

    class Model:
        def __init__(self):
            with Rows(rows).open(epsilon=epsilon, delta=DELTA) as session:
                hidden = session.hide(SecondMoment(Cleaning(radius=1.0)))
                grant = session.plan(it=SymmetricGaussian.of(hidden)).it
                self.noisy_ = session.release(grant, hidden)
                self.guarantee_ = session.guarantee

    return Model()


def pair():
    one, two = np.zeros((30, 2)), np.zeros((30, 2))
    one[0], two[0] = [9.0, 9.0], [9.0, -9.0]
    return one, two


def test_many_runs_come_near_the_claim_and_pass_it_with_half_of_the_noise(monkeypatch):
    found = many_runs_audit(release, *pair(), runs=300)
    assert 1 < found.epsilon < 4
    half_noise(monkeypatch)
    assert many_runs_audit(release, *pair(), runs=300).epsilon > 4


def test_many_runs_know_choices_and_laplace_noise():
    def fit(kind):
        class Model:
            def __init__(self, rows):
                with Rows(rows).open(epsilon=3.0, delta=0.0) as session:
                    hidden = session.hide(Table(Cleaning(radius=1.0)))
                    grant = session.plan(it=kind("scores", 2.0, 2, printed=2 / 3)).it
                    scores = session.derive(hidden, lambda table: table[0], sensitivity=2.0)
                    self.told_ = session.release(grant, scores)
                    self.guarantee_ = session.guarantee

        return Model

    one, two = np.zeros((5, 2)), np.zeros((5, 2))
    one[0], two[0] = [1.0, 0.0], [0.0, 1.0]
    for kind in (Laplace, Exponential):
        found = many_runs_audit(fit(kind), one, two, runs=200)
        assert 0.5 < found.epsilon < 3
        assert "(epsilon, delta)" in found.method


def test_progress_of_many_runs_is_told():
    told = []
    many_runs_audit(release, *pair(), runs=3, progress=lambda *each: told.append(each))
    assert told == [(1, 3), (2, 3), (3, 3)]


# the bounds themselves


def test_bound_without_delta_is_the_binomial_one():
    found = epsilon_from_guesses(1000, 200, 160, 0.0)
    chance = 1 / (1 + math.exp(-found))
    assert stats.binom.sf(159, 200, chance) == pytest.approx(0.05, rel=1e-6)


def test_delta_allows_that_everything_is_told():
    """With probability delta a mechanism may tell all coins: that must not be refuted."""
    assert epsilon_from_guesses(20, 20, 20, 0.0) > 1
    assert epsilon_from_guesses(20, 20, 20, 0.05) == 0


def test_bounds_grow_with_right_guesses_and_fall_with_confidence():
    for bound in (
        lambda v, c: epsilon_from_guesses(500, 100, v, 1e-6, confidence=c),
        lambda v, c: mu_from_guesses(500, 100, v, confidence=c),
    ):
        found = [bound(v, 0.95) for v in (50, 70, 80, 90, 99)]
        assert found == sorted(found)
        assert found[0] == 0 < found[-1]
        assert bound(80, 0.999) < bound(80, 0.95)


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_mu_is_refuted_no_more_often_than_is_said(mu):
    """Independent canaries of mu-GDP: at 80 % confidence, at most every fifth bound is too high."""
    rng, m, k, trials = np.random.default_rng(0), 300, 60, 300
    signs = rng.choice([-1, 1], size=(trials, m))
    scores = signs * mu / 2 + rng.normal(size=(trials, m))
    sure = np.argsort(-np.abs(scores), axis=1)[:, :k]
    right = (np.take_along_axis(scores * signs, sure, 1) > 0).sum(axis=1)
    least = {int(v): mu_from_guesses(m, k, int(v), confidence=0.8) for v in np.unique(right)}
    too_high = sum(least[int(v)] > mu for v in right)
    assert too_high <= stats.binom.isf(1e-6, trials, 0.2)
    assert max(least.values()) > mu / 2  # and not always nothing


def test_mechanism_that_tells_all_or_nothing_is_not_refuted():
    """A mu-GDP bit decides for all canaries together: right guesses come in one lump."""
    mu, m, trials = 1.0, 50, 400
    rng = np.random.default_rng(1)
    coins = rng.random((trials, m)) < 0.5
    first = coins[:, 0]
    told = (np.where(first, 0.5, -0.5) * mu + rng.normal(size=trials)) > 0  # first coin, noisy
    right = np.where(told == first, 1, 0)  # the only guess that is made
    bound = [mu_from_guesses(m, 1, int(v), confidence=0.8) for v in (0, 1)]
    too_high = sum(bound[v] > mu for v in right)
    assert too_high <= stats.binom.isf(1e-6, trials, 0.2)


def test_epsilon_of_mu_is_the_inverse():
    for epsilon in (0.3, 1.0, 8.0):
        assert epsilon_of_mu(gaussian_mu(epsilon, DELTA), DELTA) == pytest.approx(epsilon)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="each at most the next"):
        epsilon_from_guesses(10, 20, 5, 0.0)
    with pytest.raises(ValueError, match="confidence"):
        mu_from_guesses(10, 5, 5, confidence=1.5)


def test_canaries_that_are_there_or_not():
    canaries = Canaries(np.eye(2), np.ones(2), fixed_X=np.zeros((1, 2)), fixed_y=np.zeros(1))
    X, y = canaries.sample(np.array([False, True]))
    np.testing.assert_array_equal(X, [[0, 1], [0, 0]])
    np.testing.assert_array_equal(y, [1, 0])
