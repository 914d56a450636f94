"""Choosing with privacy: on a hold-out, and as the best of a secret number of runs."""

from __future__ import annotations

import inspect
import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from audit import epsilon_lower_bound
from dpadapt.papers.selection.candidates import _gamma
from dpadapt.papers.selection.exponential import noisy_argmin
from dpadapt.papers.selection.random_stopping import (
    RandomStopping,
    RandomStoppingEvent,
    random_runs,
)
from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.core.noise import SeededNoise
from dpadapt.privacy.mechanisms import (
    CandidateLosses,
    Exponential,
    Gaussian,
    SymmetricGaussian,
    best_of_random_runs,
    holdout_choice,
)
from dpadapt.privacy.mechanisms.gaussian import symmetric_gaussian
from dpadapt.privacy.statistics import SecondMoment

ALPHA = 1e-6


# The losses of candidates ----------------------------------------------------------------------

BOUND = 2.0
GUESSES = np.array([-1.0, 0.0, 0.5, 3.0])
LOSSES = CandidateLosses(
    lambda X, y: (X - GUESSES) ** 2, 4, bound=BOUND, cleaning=Cleaning(radius=5.0)
)


def spread(change: np.ndarray) -> float:
    """Largest change of a difference of two scores."""
    return float(change.max() - change.min())


def test_no_neighbour_passes_the_range_and_the_euclidean_sensitivity():
    rng = np.random.default_rng(0)
    pool = np.concatenate([rng.normal(size=300) * 3, GUESSES, [0, 5, -5, np.nan, np.inf, 1e300]])
    with np.errstate(all="ignore"):
        cleaned = [LOSSES.cleaning(x.reshape(1, 1), None)[0] for x in pool]
        rows = np.stack([LOSSES.block(x, None) for x in cleaned])
    i, j = rng.integers(len(rows), size=(2, 10_000))
    changes = rows[i] - rows[j]
    ranges = changes.max(axis=1) - changes.min(axis=1)
    assert ranges.max() <= 2 * BOUND
    assert ranges.max() > 1.2 * BOUND  # power: B / n, without the factor 2, would be passed
    assert np.linalg.norm(changes, axis=1).max() <= LOSSES.sensitivity(1)


def test_the_range_sensitivity_is_attained():
    query = CandidateLosses(lambda X, y: np.hstack([X, 1 - X]), 2, 1.0, Cleaning(radius=1.0))
    one, other = (query.block(np.array([[x]]), None) for x in (1.0, 0.0))
    assert spread(one - other) == 2.0
    opposite = np.linalg.norm(one - other)
    assert opposite == pytest.approx(query.sensitivity(1))
    with Private(np.zeros((100, 1))).open(epsilon=1.0, delta=1e-6) as session:
        session.split(0.3)
        sensitivity = holdout_choice(session, bound=1.0).sensitivity
    assert sensitivity == pytest.approx(2 / 30, rel=1e-8)
    assert sensitivity > 2 / 30


def test_losses_are_clipped_and_never_fail():
    query = CandidateLosses(
        lambda X, y: np.array([[np.nan, np.inf, -np.inf, -3.0, 9.0]]), 5, 2.0, Cleaning(radius=1.0)
    )
    assert query.block(np.zeros((1, 1)), None).tolist() == [2.0, 2.0, 0.0, 0.0, 2.0]
    assert query.shape(7) == (5,)
    with (
        Private([[0.0]]).open(epsilon=1.0, delta=1e-6) as session,
        pytest.raises(ValueError, match="bound"),
    ):
        holdout_choice(session, bound=0.0)


def choose(X: np.ndarray, times: int, epsilon: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Choices on the hold-out, each at this epsilon; the hidden losses and the scale too."""
    chosen, count = [], 100
    for seed in range(times // count):
        options = {"delta": 0.0, "noise": "seeded", "random_state": seed}
        with Private(X).open(epsilon=epsilon * count, **options) as session:
            session.split(0.5)
            sensitivity = holdout_choice(session, bound=BOUND).sensitivity
            grant = session.plan(
                it=Exponential("choice", sensitivity, count=count, part="holdout")
            ).it
            hidden = session.hide(LOSSES, "holdout")
            chosen += [
                session.release(
                    grant,
                    session.derive(
                        hidden, lambda value: value, sensitivity=grant.mechanism.sensitivity
                    ),
                )
                for _ in range(count)
            ]
    return np.array(chosen), hidden._value, grant.scale


def test_the_hold_out_choice_is_good_with_enough_rows():
    X = np.random.default_rng(0).normal(loc=0.5, scale=0.3, size=(4000, 1))
    assert (choose(X, 100, epsilon=1.0)[0] == 2).all()
    assert len(set(choose(X, 100, epsilon=1e-4)[0])) == 4  # and hardly any privacy loss, no choice


def test_the_frequencies_of_the_choice_are_the_softmax_of_the_losses():
    X = np.linspace(-1, 1, 40).reshape(-1, 1)
    epsilon, times = 0.4, 5000
    chosen, losses, stated = choose(X, times, epsilon)
    assert stated == pytest.approx(2 * BOUND / (20 * epsilon), rel=1e-3)

    def p_value(scale: float) -> float:
        weights = np.exp(-losses / scale)
        counts = np.bincount(chosen, minlength=4)
        tests = [
            stats.binomtest(int(k), times, float(p)).pvalue
            for k, p in zip(counts, weights / weights.sum(), strict=True)
        ]
        return min(1.0, 4 * min(tests))

    assert p_value(stated) > ALPHA
    assert p_value(stated * 0.5) < ALPHA
    assert p_value(stated * 2.0) < ALPHA


def test_the_choice_passes_an_audit_and_the_best_of_bare_losses_fails_it():
    """Two candidates, the worst pair of neighbours: one row moves one loss up, the other down."""
    losses = CandidateLosses(lambda X, y: np.hstack([X, 1 - X]), 2, 1.0, Cleaning(radius=1.0))
    neighbours = np.zeros((2, 6))
    neighbours[0, 1] = neighbours[1, [1, 3]] = 1.0  # held out are 1, 3 and 5: one against two
    epsilon, times = 1.0, 8000
    samples, bare = [], []
    for X in neighbours:
        with Private(X[:, None]).open(epsilon=epsilon, delta=0.0) as session:
            session.split(0.5)
            hidden = session.hide(losses, "holdout")
            sensitivity = holdout_choice(session, bound=1.0).sensitivity
            grant = session.plan(it=Exponential("choice", sensitivity, part="holdout")).it
            choices = (
                noisy_argmin(session._source, hidden._value, grant.scale) for _ in range(times)
            )
            samples.append(list(choices))
            bare.append([int(np.argmin(hidden._value))] * times)
    assert 0.2 * epsilon < epsilon_lower_bound(*samples, delta=0.0) <= epsilon
    assert epsilon_lower_bound(*bare, delta=0.0) > 3 * epsilon


# Random stopping -------------------------------------------------------------------------------


def law(shape: float, gamma: float, most: int = 3000) -> np.ndarray:
    """P(K = k) for k = 1, 2, ... by its product formula."""
    k = np.arange(1, most)
    factors = np.log1p(-gamma) + np.log(k + shape) - np.log(k + 1)
    mass = np.exp(np.concatenate([[0.0], np.cumsum(factors)]))
    return mass / mass.sum()


@pytest.mark.parametrize("shape", [0.0, 1.0, 0.5, 3.0, -0.5])
@pytest.mark.parametrize("gamma", [0.5, 0.1, 0.02])
def test_the_law_of_the_number_of_runs(shape, gamma):
    masses = law(shape, gamma)
    k = np.arange(1, 1 + len(masses))
    # quantiles: random_runs is the inverse of the distribution function
    below = np.cumsum(masses)
    for runs in (1, 2, 3, 10, 40):
        if masses[runs - 1] > 1e-9:
            inside = below[runs - 1] - masses[runs - 1] / 2
            assert random_runs(inside, shape, gamma) == runs
    mean = RandomStoppingEvent("x", (), shape, gamma).mean_runs
    assert float(k @ masses) == pytest.approx(mean, rel=1e-6)
    assert random_runs(0.0, shape, gamma) == 1
    u = np.linspace(0, 1, 200, endpoint=False)
    assert all(a <= b for a, b in pairwise(random_runs(x, shape, gamma) for x in u))
    assert random_runs(1 - 2.0**-53, shape, gamma) < 10_000  # and it ends


@pytest.mark.parametrize("shape", [0.0, 1.0, -0.5])
@pytest.mark.parametrize("mean", [1.5, 10.0, 200.0])
def test_the_mean_number_of_runs_is_the_wanted_one(shape, mean):
    gamma = _gamma(mean, shape)
    masses = law(shape, gamma, int(15 / gamma))
    assert float(np.arange(1, 1 + len(masses)) @ masses) == pytest.approx(mean, rel=1e-3)


def test_the_arguments_of_random_stopping():
    with Private(np.ones((9, 1))).open(epsilon=1.0, delta=1e-6) as session:
        for wrong in (1.0, 0.5, math.nan, -3):
            with pytest.raises(ValueError, match="mean_runs"):
                best_of_random_runs(session, (), lambda g: (0, 0), mean_runs=wrong)
        with pytest.raises(ValueError, match="shape"):
            best_of_random_runs(session, (), lambda g: (0, 0), shape=-1.0)


MOMENT = SecondMoment(Cleaning(radius=1.0))


def best_run(seed: int, calls: list, **options):
    private = Private(np.ones((500, 1)))
    session = private.open(epsilon=2.0, delta=1e-6, noise="seeded", random_state=seed)
    with session:
        hidden = session.hide(MOMENT)

        def run(grants):
            value = float(session.release(grants.moment, hidden)[0, 0])
            calls.append((grants, value))
            return -value, value

        return best_of_random_runs(
            session, {"moment": Gaussian.of(hidden)}, run, **options
        ), session


@pytest.mark.parametrize("shape", [0.0, 1.0])
def test_the_base_is_calibrated_so_that_the_total_is_the_budget(shape):
    calls: list = []
    _, session = best_run(0, calls, shape=shape, mean_runs=10.0)
    guarantee = session.guarantee
    assert 2 * (1 - 1e-3) <= guarantee.epsilon <= 2
    (event,) = guarantee.events
    assert event.kind == "random-stopping"
    assert event.mean_runs == pytest.approx(10.0)
    assert event.base[0].scale == calls[0][0].moment.scale
    # one run alone must cost much less than the total: choosing is not free
    assert compose_epsilon(event.base, 1e-6) < 0.9 * guarantee.epsilon


def test_the_best_run_is_returned_and_the_number_of_runs_is_not():
    numbers = set()
    for seed in range(12):
        calls: list = []
        best, session = best_run(seed, calls)
        assert best == max(value for _, value in calls)
        numbers.add(len(calls))
        stated = str(session.guarantee.to_dict())
        assert "runs'" not in stated.replace("best of random runs'", "")
        assert all(field not in stated for field in ("'count': 0", f"runs: {len(calls)}"))
        # every run has grants of its own, each good for one release
        assert len({id(grants.moment) for grants, _ in calls}) == len(calls)
    assert len(numbers) > 3
    # the guarantee is a public function of the plan: the same whatever the number of runs was
    totals = {best_run(seed, [])[1].guarantee.to_json() for seed in range(4)}
    assert len(totals) == 1
    assert "runs" not in inspect.signature(best_of_random_runs).parameters


def test_forgetting_the_cost_of_stopping_is_detected_by_an_audit():
    """Best of many runs, each with the noise that one of them alone would need."""
    rng, epsilon, delta, mean_runs, n = np.random.default_rng(0), 1.0, 0.05, 1000.0, 40_000
    private = Private(np.ones((10, 1)))
    with private.open(epsilon=epsilon, delta=delta) as session:
        hidden = session.hide(MOMENT)
        alone = session.plan(it=Gaussian.of(hidden)).it
    with private.open(epsilon=epsilon, delta=delta) as session:
        one_run = (("moment", Gaussian.of(session.hide(MOMENT))),)
        runs = session.plan(it=RandomStopping(one_run, 1.0, _gamma(mean_runs, 1.0))).it
        honest = next(runs).moment.scale
    means = 0.0, hidden.sensitivity

    def one(mean: float, scale: float) -> np.ndarray:
        return mean + scale * rng.normal(size=n)

    def best(mean: float, scale: float) -> np.ndarray:
        runs = rng.geometric(1 / mean_runs, size=n)  # shape 1 is the geometric law
        # the largest of k normal numbers, by its distribution function
        return mean + scale * stats.norm.isf(-np.expm1(np.log(rng.random(n)) / runs))

    assert 0.3 * epsilon < bound(one, means, alone.scale, delta) <= epsilon
    assert bound(best, means, honest, delta) <= epsilon
    assert bound(best, means, alone.scale, delta) > epsilon


def bound(draw, means, scale: float, delta: float) -> float:
    return epsilon_lower_bound(*(draw(mean, scale) for mean in means), delta)


def test_taking_the_best_of_bare_scores_is_detected_by_an_audit():
    """Two released models, chosen by scores that one row moves by 1: with noise, and without."""
    rng, epsilon, n = np.random.default_rng(0), 1.0, 8000
    models = np.array([0.0, 20.0]) + rng.normal(size=2)

    def chosen(shift: float, noise: float) -> np.ndarray:
        scores = np.array([0.5, shift]) - rng.gumbel(scale=max(noise, 1e-12), size=(n, 2))
        return models[np.argmin(scores, axis=1)]

    fair, bare = ([chosen(shift, noise) for shift in (0.0, 1.0)] for noise in (1 / epsilon, 0.0))
    assert 0.2 < epsilon_lower_bound(*fair, delta=1e-6) <= epsilon
    assert epsilon_lower_bound(*bare, delta=1e-6) > 3 * epsilon


# The audit itself, and the one-shot release ----------------------------------------------------


def one_shot(weak: float = 1.0, runs: int = 10_000, epsilon: float = 4.0, delta: float = 0.01):
    """Spec test 17: the noisy second moment on the worst pair, projected on its difference."""
    rows = np.zeros((20, 2))
    rows[:, 0] = 1.0
    neighbour = rows.copy()
    neighbour[7] = [0.0, 1.0]  # orthogonal rows of full length attain the sensitivity
    values, scale, samples = [], None, []
    for X in (rows, neighbour):
        with Private(X).open(epsilon=epsilon, delta=delta) as session:
            hidden = session.hide(MOMENT)
            grant = session.plan(it=SymmetricGaussian.of(hidden)).it
            values.append(hidden._value)
            scale = grant.scale
    direction = (values[0] - values[1]) / np.linalg.norm(values[0] - values[1])
    source = SeededNoise(11)
    for value in values:
        noisy = (symmetric_gaussian(source, value, weak * scale) for _ in range(runs))
        samples.append([float((m * direction).sum()) for m in noisy])
    return epsilon_lower_bound(*samples, delta), epsilon


@pytest.mark.slow
def test_the_one_shot_release_never_passes_its_claim():
    found, claim = one_shot()
    assert 0.3 * claim < found <= claim


@pytest.mark.slow
def test_half_the_noise_fails_the_audit():
    found, claim = one_shot(weak=0.5)
    assert found > claim


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (4.0, 0.01)])
def test_the_one_shot_release_never_passes_its_claim_in_many_runs(epsilon, delta):
    found, claim = one_shot(runs=200_000, epsilon=epsilon, delta=delta)
    assert 0.5 * claim < found <= claim
    assert one_shot(weak=0.5, runs=200_000, epsilon=epsilon, delta=delta)[0] > claim


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_audit_is_sound_and_sharp_on_randomised_response(epsilon):
    rng, keep = np.random.default_rng(0), 1 / (1 + math.exp(-epsilon))
    for _ in range(20):
        a, b = rng.random(20_000) < keep, rng.random(20_000) < 1 - keep
        assert 0.65 * epsilon < epsilon_lower_bound(a, b, delta=0.0) <= epsilon
        assert epsilon_lower_bound(b, a, delta=0.0) <= epsilon


def test_the_audit_finds_nothing_where_there_is_nothing():
    rng = np.random.default_rng(0)
    same = [epsilon_lower_bound(*rng.normal(size=(2, 5000)), delta=0.0) for _ in range(20)]
    assert max(same) == 0
    assert epsilon_lower_bound(np.zeros(1000), np.zeros(1000), delta=0.0) == 0
    # and a delta that explains the difference is respected
    a, b = np.zeros(20_000), np.zeros(20_000)
    a[:200] = 1
    rng.shuffle(a)
    assert epsilon_lower_bound(a, b, delta=0.0) > 1
    assert epsilon_lower_bound(a, b, delta=0.02) == 0
