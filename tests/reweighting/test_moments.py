"""The one noisy moment of the known-noise solver: its sensitivity, its solution, its limit."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from dpadapt import DiscrepancyRegressor, Private, ReweightingRegressor
from dpadapt.privacy import Cleaning
from dpadapt.reweighting.known_noise import KnownNoiseDescent
from dpadapt.reweighting.moments import MomentCourse, choose_moments, moment_query, solve_shift
from dpadapt.reweighting.plan import Course, PublicProblem
from real_tables import halves, regression_tables

CLEANING = Cleaning(1e9, intercept=1.0, label_range=(-1e9, 1e9))


def public(m=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * np.array([1.0, 3.0, 0.2])[:d]
    return X, X[:, 0] + 0.5 * rng.normal(size=m)


def problem_and_query(n_rows=10**5, mu=1.0):
    X, y = public()
    model = np.array([[1.0], [0.0], [0.0], [0.0]])
    chosen = choose_moments(PublicProblem(X, y, model), n_rows, mu)
    return chosen, moment_query(chosen, model, CLEANING)


def test_no_row_moves_the_moment_by_more_than_the_claim():
    _, query = problem_and_query()
    rng, n, worst = np.random.default_rng(0), 50, 0.0
    for _ in range(2000):
        wild = rng.choice([0.0, 1.0, -3.0, 1e3, -1e7], size=(2, 3)) * rng.normal(size=(2, 3))
        labels = rng.choice([0.0, 1.0, -50.0, 1e8], size=2) * rng.normal(size=2)
        Z, e = query.cleaning(wild, labels)
        assert np.linalg.norm(Z, axis=1).max() <= 1 + 1e-12
        assert np.abs(e).max() <= 1
        moved = [query.block(Z[[i]], e[[i]]) / n for i in range(2)]
        worst = max(worst, float(np.linalg.norm(moved[0] - moved[1])))
    assert 0.9 * query.sensitivity(n) < worst <= query.sensitivity(n) * (1 + 1e-12)
    assert query.sensitivity(n) == pytest.approx(2 * math.sqrt(2) / n)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_wild_cells_raise_nothing_and_stay_within_the_bounds(value):
    _, query = problem_and_query()
    with np.errstate(all="ignore"):
        Z, e = query.cleaning(np.full((2, 3), value), np.array([value, 0.0]))
    assert np.isfinite(query.block(Z, e)).all()
    assert np.abs(query.block(Z, e)).max() <= 2 + 1e-9


def test_bounds_grow_without_end_and_the_error_falls():
    X, y = public()
    problem = PublicProblem(X, y, np.zeros((4, 1)))
    found = [choose_moments(problem, 1000, mu) for mu in (0.1, 10.0, 1e4, 1e8)]
    for less, more in itertools.pairwise(found):
        assert less.length <= more.length
        assert less.clip <= more.clip
        assert less.expected > more.expected
    assert found[0].clip < found[-1].clip / 30


def test_without_noise_it_is_least_squares_of_the_residuals():
    X, y = public()
    rng = np.random.default_rng(3)
    T = rng.normal(size=(3000, 3))
    t = T @ [2.0, -1.0, 0.5] + 0.1 * rng.normal(size=3000)
    model = np.array([[1.0], [0.0], [0.0], [0.0]])
    chosen = choose_moments(PublicProblem(X, y, model), 3000, 1e6)
    query = moment_query(chosen, model, CLEANING)
    Z, e = query.cleaning(T, t)
    shift, share = solve_shift(query.block(Z, e) / 3000, 0.0, 3000, chosen)
    wanted = LinearRegression().fit(T, t)
    np.testing.assert_allclose((model + shift)[:3, 0], wanted.coef_, atol=0.01)
    assert 0.99 < share <= 1


def test_little_budget_takes_the_descent_and_much_the_moment():
    X, y = public()
    descent = KnownNoiseDescent(X, y)
    kinds = {}
    for epsilon in (0.5, 1e5):
        with Private(X, y + X[:, 1]).open(epsilon=epsilon, delta=1e-6) as session:
            kinds[epsilon] = type(descent.begin(session, CLEANING).course)
    assert kinds == {0.5: Course, 1e5: MomentCourse}


# as n epsilon grows, every default reaches the model without privacy


TABLES = regression_tables()


def error_of(model, X, y):
    return float(np.mean((model.predict(X) - y) ** 2))


@pytest.mark.parametrize("name", TABLES)
def test_the_default_converges_to_the_model_without_privacy(name):
    """At epsilon 1e4 the error is within 2 % of least squares on the private rows.

    Of diabetes there are 145 rows only, which need a larger one.
    """
    (X, y, T, t), test = halves(TABLES[name])
    epsilon = 1e4 if len(T) > 700 else 1e6
    model = ReweightingRegressor(epsilon=epsilon, delta=1e-6, noise="seeded", random_state=0)
    ours = error_of(model.fit(X, y, private=Private(T, t)), *test)
    assert ours <= 1.02 * error_of(LinearRegression().fit(T, t), *test)


@pytest.mark.parametrize("name", TABLES)
def test_discrepancy_minimisation_converges_to_its_own_limit(name):
    X, y, T, t = TABLES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        much, limit = (
            DiscrepancyRegressor(epsilon=epsilon, delta=1e-6, noise="seeded", random_state=0).fit(
                X, y, private=Private(T)
            )
            for epsilon in (1e4, 1e6)
        )
    assert error_of(much, T, t) <= 1.02 * error_of(limit, T, t)
    assert error_of(limit, T, t) <= 1.02 * error_of(
        DiscrepancyRegressor(epsilon=1.0, delta=1e-6).fit(X, y), T, t
    )
