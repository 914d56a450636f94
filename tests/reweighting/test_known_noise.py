"""The known-noise descent: its response, its plan, its sensitivity, its noise."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.privacy import Cleaning
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.statistics import Prepared, clipped
from dpadapt.reweighting import plan
from dpadapt.reweighting.known_noise import KnownNoiseDescent
from dpadapt.reweighting.plan import PublicProblem, choose_course
from dpadapt.reweighting.queries import descent_gradient, level
from dpadapt.testing.independent_accountant import recompute_epsilon

RNG = np.random.default_rng
LABELS = (-1e9, 1e9)


def shifted(rng, n=4000, d=4, classes=0, shift=0.5):
    X = rng.normal(size=(n, d))
    score = X[:, 0] + shift * X[:, 1] + shift
    if not classes:
        return X, score + 0.3 * rng.normal(size=n)
    logits = np.column_stack([j * score for j in range(classes)])
    return X, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def cleaning_for(classes):
    if classes:
        return Cleaning(1e6, intercept=1.0, classes=classes)
    return Cleaning(1e6, intercept=1.0, label_range=LABELS)


# sensitivity


def hostile(rng, n, classes):
    X = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-3, 5, size=(n, 1))
    if classes:
        return X, rng.integers(0, classes, size=n).astype(float)
    return X, rng.normal(size=n) * 10.0 ** rng.integers(-2, 6, size=n)


@pytest.mark.parametrize("classes", [0, 2, 5])
def test_no_row_moves_the_gradient_by_more_than_two_clips(classes):
    rng = RNG(3)
    X, y = shifted(rng, 300, 3, classes)
    solver = KnownNoiseDescent(X, y, classes)
    chosen = solver.course(300, 1.0, 1e-6)
    rows = solver.prepared(cleaning_for(classes), chosen)
    largest = 0.0
    for _ in range(400):
        W = rng.normal(size=(4, max(classes, 1))) * 10.0 ** rng.integers(-2, 4)
        query = descent_gradient(rows, W, chosen.clip)
        one, other = (query.block(*rows(*hostile(rng, 1, classes))) for _ in range(2))
        assert np.linalg.norm(one) <= chosen.clip
        largest = max(largest, float(np.linalg.norm(one - other)))
        assert largest <= query.sensitivity(1)
    assert largest > 0.6 * query.sensitivity(1)


def test_the_bound_is_attained_by_opposite_errors():
    rows = Prepared(Cleaning(1.0), lambda X, y: (X, y), 3, measured=2)
    query = descent_gradient(rows, np.zeros((2, 1)), clip=0.25)
    z = np.array([[0.6, 0.8, 1.0]])
    moved = query.block(z, np.array([9.0])) - query.block(z, np.array([-9.0]))
    assert np.linalg.norm(moved) == pytest.approx(query.sensitivity(1), rel=1e-9)


@pytest.mark.parametrize("classes", [0, 3])
def test_rows_of_nothing_finite_stay_within_the_bound(classes):
    X, y = shifted(RNG(4), 300, 3, classes)
    solver = KnownNoiseDescent(X, y, classes)
    chosen = solver.course(300, 1.0, 1e-6)
    rows = solver.prepared(cleaning_for(classes), chosen)
    query = descent_gradient(rows, np.ones((4, max(classes, 1))), chosen.clip)
    for bad in ([math.nan] * 3, [math.inf, -math.inf, 0.0], [1e300] * 3, [1.7e308, -1.7e308, 0.0]):
        for label in (0.0, math.nan, math.inf, -1e300):
            block = query.block(*rows(np.array([bad]), np.array([label])))
            assert np.isfinite(block).all()
            assert np.linalg.norm(block) <= chosen.clip


def test_a_row_of_no_class_contributes_nothing():
    X, y = shifted(RNG(5), 300, 3, 3)
    solver = KnownNoiseDescent(X, y, 3)
    chosen = solver.course(300, 1.0, 1e-6)
    rows = solver.prepared(cleaning_for(3), chosen)
    query = descent_gradient(rows, np.ones((4, 3)), chosen.clip)
    for label in (math.nan, 3.0, -1.0, 0.5):
        assert not query.block(*rows(np.ones((1, 3)), np.array([label]))).any()


def test_clip_is_on_the_product_of_the_lengths():
    error = np.array([[3.0, 4.0], [0.3, 0.4]])
    np.testing.assert_allclose(
        np.linalg.norm(clipped(error, np.array([0.1, 1.0]), 0.25), axis=1), [2.5, 0.25]
    )


def test_level_moves_by_two_clips_at_most():
    query = level(Cleaning(1.0, intercept=1.0), np.array([0.3, 0.0]), clip=2.0)
    rng, ends = RNG(6), []
    for _ in range(300):
        block = query.block(rng.normal(size=(1, 2)) * 1e3, rng.normal(size=1) * 1e3)
        ends.append(float(block[0]))
    assert max(ends) - min(ends) == pytest.approx(query.sensitivity(1))


# the plan


def test_the_course_takes_no_private_argument():
    assert set(inspect.signature(choose_course).parameters) == {"problem", "n_rows", "mu"}
    assert set(inspect.signature(KnownNoiseDescent.course).parameters) == {
        *("self", "n_rows", "epsilon", "delta")
    }


@pytest.mark.slow
@pytest.mark.parametrize("classes", [0, 2])
def test_more_rows_and_more_budget_never_shorten_what_is_learned(classes):
    X, y = shifted(RNG(7), 2000, 4, classes)
    solver = KnownNoiseDescent(X, y, classes)
    noises = []
    for n in (100, 1000, 10_000):
        chosen = solver.course(n, 1.0, 1e-6)
        scale = 2 * chosen.clip * math.sqrt(chosen.steps) / (n * gaussian_mu(1.0, 1e-6))
        noises.append(chosen.noise * scale**2)
    horizons = [solver.course(n, 1.0, 1e-6).horizon for n in (100, 1000, 10_000)]
    assert horizons == sorted(horizons)
    assert noises[-1] < noises[0]


@pytest.mark.slow
def test_a_level_is_planned_for_skew_residuals_only():
    rng = RNG(8)
    X = rng.normal(size=(3000, 3))
    skew = KnownNoiseDescent(X, X[:, 0] + rng.exponential(size=3000) ** 2)
    even = KnownNoiseDescent(X, X[:, 0] + rng.normal(size=3000))
    assert skew.course(5000, 1.0, 1e-6).level_share > 0
    assert skew.course(5000, 1.0, 1e-6).level_clip > skew.course(5000, 1.0, 1e-6).clip
    assert even.course(5000, 1.0, 1e-6).level_share <= skew.course(5000, 1.0, 1e-6).level_share


def test_public_problem_of_a_perfect_model_has_an_error_above_zero():
    X = RNG(9).normal(size=(50, 2))
    exact = PublicProblem(X, X[:, 0], np.array([[1.0], [0.0], [0.0]]))
    assert exact.public_error > 0
    assert choose_course(exact, 100, 0.2).clip > 0


def test_shrinkage_is_that_of_james_and_stein():
    chosen = KnownNoiseDescent(*shifted(RNG(10), 500, 2)).course(1000, 1.0, 1e-6)
    W = np.ones((3, 1))
    energy = float(W[:, 0] @ chosen.moment @ W[:, 0])
    noise = chosen.noise * 0.1**2 + chosen.sampling / 1000 + chosen.bias
    assert chosen.shrinkage(W, 0.1, 1000) == pytest.approx(max(0.0, 1 - noise / energy))
    assert chosen.shrinkage(W, 1e9, 1000) == 0
    assert chosen.shrinkage(0 * W, 0.1, 1000) == 0


# the whole


@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize(
    "epsilon",
    [pytest.param(0.1, marks=pytest.mark.slow), 1.0, pytest.param(8.0, marks=pytest.mark.slow)],
)
def test_claimed_epsilon_is_the_one_recomputed_from_the_events(classes, epsilon):
    X, y = shifted(RNG(11), 400, 3, classes)
    with Private(X, y).open(epsilon=epsilon, delta=1e-6, noise="seeded", random_state=0) as session:
        KnownNoiseDescent(X, y, classes).fit(session, cleaning_for(classes))
    guarantee = session.guarantee
    low, high = recompute_epsilon(guarantee.events, 1e-6)
    assert low <= guarantee.epsilon * (1 + 1e-6)
    assert guarantee.epsilon <= epsilon
    assert high == pytest.approx(epsilon, rel=2e-3)  # a noise x 0.97 would give 3% more


def test_the_level_takes_its_share_of_the_budget():
    rng = RNG(12)
    X = rng.normal(size=(2000, 2))
    y = X[:, 0] + rng.exponential(size=2000) ** 2
    solver = KnownNoiseDescent(X, y)
    with Private(X, y).open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
        chosen = solver.fit(session, cleaning_for(0)).course
    gradient, level = session.guarantee.events
    spent = [event.count * (event.sensitivity / event.scale) ** 2 for event in (gradient, level)]
    assert spent[1] / sum(spent) == pytest.approx(chosen.level_share, rel=1e-6)
    assert math.sqrt(sum(spent)) == pytest.approx(gaussian_mu(1.0, 1e-6), rel=1e-3)


@pytest.mark.parametrize("classes", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_without_noise_it_learns_the_shift(classes):
    rng = RNG(13)
    X, y = shifted(rng, 3000, 3, classes, shift=0.0)
    T, labels = shifted(rng, 3000, 3, classes, shift=1.0)
    solver = KnownNoiseDescent(X, y, classes)
    found = solver.minimise(T, labels)
    scores = T @ found.coefficients[:-1] + found.coefficients[-1]
    before = T @ solver.model[:-1] + solver.model[-1]
    if classes:
        assert np.mean(scores.argmax(1) != labels) < np.mean(before.argmax(1) != labels) - 0.05
    else:
        assert np.mean((scores[:, 0] - labels) ** 2) < 0.12  # the noise of the labels is 0.09


@pytest.mark.slow
def test_the_level_finds_the_mean_where_clipped_gradients_find_the_middle(monkeypatch):
    rng = RNG(14)
    X, T = rng.normal(size=(4000, 40)), rng.normal(size=(8000, 40))
    y = X[:, 0] + rng.exponential(size=4000) ** 2
    labels = 1.5 * (T[:, 0] + rng.exponential(size=8000) ** 2)

    def bias():
        private = Private(T, labels)
        with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=1) as session:
            found = KnownNoiseDescent(X, y).fit(session, cleaning_for(0))
        answers = T @ found.coefficients[:-1, 0] + found.coefficients[-1, 0]
        return found.course.level_share, abs(np.mean(answers) - labels.mean())

    share, with_level = bias()
    kind = replace(plan._REGRESSION, level_shares=(0.0,))
    monkeypatch.setattr(plan, "_REGRESSION", kind)
    none, without = bias()
    assert share > 0 == none
    assert with_level < 0.5 * without


@pytest.mark.slow
def test_zero_shift_does_little_harm_even_with_little_budget():
    ratios = []
    for seed in range(20):
        rng = RNG(100 + seed)
        X, y = shifted(rng, 1000, 5, shift=0.0)
        T, labels = shifted(rng, 200, 5, shift=0.0)
        solver = KnownNoiseDescent(X, y)
        private = Private(T, labels)
        with private.open(epsilon=0.5, delta=1e-6, noise="seeded", random_state=seed) as session:
            found = solver.fit(session, cleaning_for(0)).coefficients
        V, truth = shifted(rng, 2000, 5, shift=0.0)
        error = [np.mean((V @ w[:-1, 0] + w[-1, 0] - truth) ** 2) for w in (found, solver.model)]
        ratios.append(error[0] / error[1])
    assert np.mean(ratios) < 1.02
    assert max(ratios) < 1.2


def test_same_seed_same_answer_other_seed_other_answer():
    X, y = shifted(RNG(15), 500, 3)

    def fit(seed):
        private = Private(X, y + 1)
        with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=seed) as session:
            return KnownNoiseDescent(X, y).fit(session, cleaning_for(0)).coefficients

    np.testing.assert_array_equal(fit(0), fit(0))
    assert not np.array_equal(fit(0), fit(1))
