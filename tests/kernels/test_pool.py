"""The pool in the kernel's own space: Mahalanobis sensitivity, rounding, the law of the noise.

Statistical tests reject at ALPHA, one in a million; each is shown to reject noise of 0.7 and 1.3
times its scale, which it misses less than once in a million runs at these sizes.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpadapt.kernels import queries
from dpadapt.kernels.constants import Bounds, sum_error
from dpadapt.kernels.pool import Pool
from dpadapt.kernels.queries import whitened_sensitivity
from dpadapt.kernels.release import released
from dpadapt.privacy import Cleaning, Private, Rows
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.mechanisms.gaussian import NUGGET
from dpadapt.privacy.rows.errors import PrivacyError

ALPHA = 1e-6
RNG = np.random.default_rng(6)


def rbf(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * ((A[:, None, :] - B[None]) ** 2).sum(axis=2))


def linear(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return A @ B.T


def ridge(K: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    """Minimiser of (1/n) |K a - y|^2 + (penalty/2) a^T K a, exactly."""
    n = len(y)
    return np.linalg.solve(2 * K / n + penalty * np.eye(n), 2 * y / n)


def neighbours(n: int, d: int, rng: np.random.Generator):
    X = rng.uniform(-1, 1, size=(n, d))
    y = rng.uniform(-1, 1, size=n)
    other, labels = X.copy(), y.copy()
    other[0], labels[0] = rng.uniform(-1, 1, size=d), -np.sign(y[0])
    return (X, y), (other, labels)


def models(kernel, n: int, d: int, penalty: float, rng: np.random.Generator):
    """Predictors of two neighbours, and the distance of the two models in the kernel's norm."""
    (X, y), (other, labels) = neighbours(n, d, rng)
    a, b = ridge(kernel(X, X), y, penalty), ridge(kernel(other, other), labels, penalty)
    points, weights = np.vstack([X, other]), np.concatenate([a, -b])
    distance = math.sqrt(max(0.0, weights @ kernel(points, points) @ weights))
    return (lambda Z: kernel(Z, X) @ a), (lambda Z: kernel(Z, other) @ b), distance, points


@pytest.mark.parametrize("kernel", [rbf, linear])
@pytest.mark.parametrize("T", [3, 40, 300])
def test_whitened_predictions_move_no_more_than_the_model(kernel, T):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        one, two, distance, _ = models(kernel, 50, 2, 0.1, rng)
        Z = rng.uniform(-1, 1, size=(T, 2))
        pool = Pool.of(kernel(Z, Z))
        move = np.linalg.norm(pool.whiten(one(Z)) - pool.whiten(two(Z)))
        assert move <= distance * (1 + 1e-6)
        broken = np.linalg.norm(one(Z) - two(Z))  # not whitened: grows with the pool
        assert T < 300 or broken > 2 * distance


def test_the_sensitivity_is_attained_where_the_pool_spans_the_models():
    one, two, distance, points = models(rbf, 20, 3, 0.1, np.random.default_rng(0))
    pool = Pool.of(rbf(points, points))
    move = np.linalg.norm(pool.whiten(one(points)) - pool.whiten(two(points)))
    assert 0.99 < move / distance <= 1 + 1e-6


@pytest.mark.parametrize("T", [14, 60, 300])
def test_float32_breaks_it_and_is_refused(T):
    """Many rows move a model little; rounding of 6e-8, times 1000, is more than that."""
    rng = np.random.default_rng(1)
    n, penalty = 2000, 0.1
    (X, y), (other, labels) = neighbours(n, 1, rng)
    a, b = ridge(rbf(X, X), y, penalty), ridge(rbf(other, other), labels, penalty)
    points, weights = np.vstack([X, other]), np.concatenate([a, -b])
    distance = math.sqrt(max(0.0, weights @ rbf(points, points) @ weights))
    Z = rng.uniform(-1, 1, size=(T, 1))
    pool = Pool.of(rbf(Z, Z))
    p, other_p = 100 * (rbf(Z, X) @ a), 100 * (rbf(Z, other) @ b)  # in larger units
    distance *= 100
    norm = 100 * math.sqrt(a @ rbf(X, X) @ a)
    exact = np.linalg.norm(pool.whiten(p) - pool.whiten(other_p))
    # with rounding of the sums accounted for, float64 is always inside
    error = sum_error(n, 100 * np.abs(a).sum())
    claim = whitened_sensitivity(pool, Bounds(distance, norm, error=error))
    assert exact <= claim < 1.01 * distance
    with pytest.raises(TypeError, match="float32"):
        pool.whiten(p.astype(np.float32))
    with pytest.raises(TypeError, match="float32"):
        Pool.of(rbf(Z, Z).astype(np.float32))
    # what would happen if it were not refused, with the smallest nugget that was once proposed
    for nugget in (1e-10, NUGGET):
        root = np.linalg.cholesky(rbf(Z, Z) + nugget * np.eye(T))
        rounded = p.astype(np.float32) - other_p.astype(np.float32)
        broken = np.linalg.norm(np.linalg.solve(root, rounded.astype(np.float64)))
        assert broken > distance or (T == 14 and nugget == NUGGET)


def test_the_allowance_for_rounding_is_needed_and_enough():
    Z = np.linspace(-1, 1, 200)[:, None]
    pool, distance = Pool.of(rbf(Z, Z)), 1e-3
    vectors = pool.spectrum[1]
    worst = vectors[:, 0] * math.sqrt(pool.size)  # errors of size about 1 in the least direction
    worst /= np.abs(worst).max()
    error = 1e-6
    move = np.linalg.norm(pool.whiten(error * worst) - pool.whiten(-error * worst))
    allowed = whitened_sensitivity(pool, Bounds(distance, 1.0, error=error)) - distance
    assert distance < move <= allowed
    assert whitened_sensitivity(pool, Bounds(distance, 1.0)) < distance * (1 + 1e-3)


def test_sum_error_bounds_what_summation_does():
    import fractions

    rng = np.random.default_rng(0)
    for order in (np.float64, np.float32):
        a, b = rng.normal(size=500), rng.normal(size=500)
        exact = sum(
            fractions.Fraction(x) * fractions.Fraction(y) for x, y in zip(a, b, strict=True)
        )
        total = order(0)
        for x, y in zip(a, b, strict=True):
            total = order(total + order(x) * order(y))
        within = abs(float(fractions.Fraction(float(total)) - exact)) <= sum_error(
            500, float(np.abs(a * b).sum())
        )
        assert within == (order is np.float64)


# The law of the noise ---------------------------------------------------------------------------


def two_sided(law, value: float) -> float:
    return min(1.0, 2 * min(law.cdf(value), law.sf(value)))


def p_white(white: np.ndarray) -> float:
    """Columns are independent standard normal: each column (chi2) and each pair (Student)."""
    n, columns = white.shape
    p_values = [two_sided(stats.chi2(n), float(c @ c)) for c in white.T]
    unit = white / np.linalg.norm(white, axis=0)
    r = (unit.T @ unit)[np.triu_indices(columns, 1)]
    p_values += list(2 * stats.t(n - 1).sf(np.abs(r) * math.sqrt(n - 1) / np.sqrt(1 - r**2)))
    p_values.append(float(stats.kstest(white.ravel(), "norm").pvalue))
    return min(1.0, len(p_values) * min(p_values))


def rows_of_ones(n: int) -> Private:
    return Private(np.ones((n, 1)))


def predicted(session, predict, radius=1.0):
    """Hidden predictions of a model that looks at rows through one function."""
    return queries.predictions(session, session.hide(Rows(Cleaning(radius=radius))), predict)


def test_the_noise_has_the_covariance_of_the_kernel():
    Z = np.linspace(-1, 1, 6)[:, None]
    pool, draws = Pool.of(rbf(Z, Z)), 2000
    truth = np.cos(Z[:, 0])
    with rows_of_ones(10).open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
        hidden = predicted(session, lambda X: truth)
        whitened = queries.whitened(session, hidden, pool, Bounds(0.01, norm=5.0, error=1e-15))
        grant = session.plan(predictions=Gaussian.of(whitened, count=draws)).predictions
        alphas = [pool.coefficients(session.release(grant, whitened)) for _ in range(draws)]
    noise = np.stack(alphas) @ (pool.gram + pool.nugget * np.eye(6)) - truth
    covariance = rbf(Z, Z) + NUGGET * np.eye(6)
    white = np.linalg.solve(np.linalg.cholesky(covariance), noise.T).T / grant.scale
    assert p_white(white) > ALPHA
    for wrong in (0.7, 1.3):
        assert p_white(wrong * white) < ALPHA
    assert p_white(noise / grant.scale) < ALPHA  # independent noise is another law


def charged(pool: Pool, norm: float = 1.0):
    """Scale of the noise of a released model, and the epsilon of its charge."""
    with rows_of_ones(10).open(epsilon=0.5, delta=1e-6) as session:
        hidden = predicted(session, lambda X: np.zeros(pool.size))
        released(session, hidden, pool, Bounds(0.01, norm, error=1e-16))
    (event,) = session.guarantee.events
    return event.scale, session.guarantee.epsilon


def test_noise_of_a_prediction_does_not_depend_on_the_number_of_points():
    scales, spreads = [], []
    z = np.array([[0.3]])
    for T in (5, 50, 500):
        Z = np.vstack([z, np.linspace(-1, 1, T - 1)[:, None]])
        pool = Pool.of(rbf(Z, Z))
        scale, _ = charged(pool)
        # alpha = L^{-T} (c + scale * g): the noise at z is scale * |L^{-1} K(Z, z)|
        scales.append(scale)
        spreads.append(scale * np.linalg.norm(pool.whiten(rbf(Z, z)[:, 0])))
    assert np.ptp(scales) < 1e-3 * scales[0]
    assert np.ptp(spreads) < 1e-2 * spreads[0]
    assert max(spreads) <= max(scales) * (1 + 1e-6)


def test_the_charge_knows_neither_pool_nor_norm():
    Z = RNG.uniform(-1, 1, size=(30, 2))
    spent = []
    for pool, norm in ((Pool.of(rbf(Z, Z)), 1.0), (Pool.of(rbf(Z[:4], Z[:4])), 50.0)):
        spent.append(charged(pool, norm)[1])
    assert spent[0] == pytest.approx(0.5, rel=1e-9)
    assert spent[0] == pytest.approx(spent[1], rel=1e-9)


def test_rows_are_read_through_the_predictions_alone():
    Z = RNG.uniform(-1, 1, size=(8, 2))
    pool, answers, calls = Pool.of(rbf(Z, Z)), [], []
    for rows in (np.zeros((20, 2)), RNG.normal(size=(20, 2))):
        with Private(rows).open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=3) as session:
            hidden = predicted(session, lambda X: calls.append(1) or np.ones(8))
            answers.append(released(session, hidden, pool, Bounds(0.1, norm=1.0)))
            with pytest.raises(PrivacyError):
                released(session, hidden, pool, Bounds(0.1, norm=1.0))
    assert np.array_equal(*answers)
    assert len(calls) == 2  # once each


def test_float32_predictions_are_refused_inside_a_session():
    session = rows_of_ones(5).open(epsilon=1.0, delta=1e-6)
    with session, pytest.raises(PrivacyError, match="TypeError"):
        predicted(session, lambda X: np.ones(2, dtype=np.float32))


# Several outputs, and what comes after ------------------------------------------------------------


def test_several_outputs_share_one_joint_sensitivity():
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(40, 3))
    pool = Pool.of(linear(Z, Z))
    W, V = rng.normal(size=(3, 5)), rng.normal(size=(3, 5))
    move = np.linalg.norm(pool.whiten(Z @ W) - pool.whiten(Z @ V))
    assert 0.99 < move / np.linalg.norm(W - V) <= 1 + 1e-6
    assert move > np.linalg.norm(W - V, axis=0).max()  # one output's distance is not enough
    with rows_of_ones(10).open(epsilon=50.0, delta=1e-6) as session:
        hidden = predicted(session, lambda X: Z @ W)
        alpha = released(session, hidden, pool, Bounds(1e-6, norm=5.0, error=1e-15))
    assert alpha.shape == (40, 5)
    assert np.allclose(Z.T @ alpha, W, atol=1e-3)
    with rows_of_ones(10).open(epsilon=50.0, delta=1e-6) as session:
        bounds = Bounds(1e-6, norm=5.0, error=1e-15)
        one = queries.whitened(session, predicted(session, lambda X: Z @ W[:, 0]), pool, bounds)
        five = queries.whitened(session, predicted(session, lambda X: Z @ W), pool, bounds)
        grant = session.plan(predictions=replace(Gaussian.of(five), dimension=40)).predictions
        assert five.sensitivity > one.sensitivity  # rounding of more numbers
        with pytest.raises(PrivacyError, match="fewer numbers"):
            session.release(grant, five)


def test_projection_on_the_ball():
    rng = np.random.default_rng(4)
    Z = rng.uniform(-1, 1, size=(60, 1))
    pool, w = Pool.of(rbf(Z, Z)), rng.normal(size=60)
    w /= pool.norm(w)
    assert pool.norm(pool.within_ball(5 * w, 2.0)) == pytest.approx(2.0)
    assert np.allclose(pool.within_ball(w, 2.0), w)
    assert np.array_equal(pool.within_ball(np.zeros(60), 2.0), np.zeros(60))


@pytest.mark.parametrize(
    ("gram", "match"),
    [
        (np.ones((2, 3)), "square"),
        (np.zeros((2, 2)), "positive diagonal"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "finite"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "positive semidefinite"),
        (np.empty((0, 0)), "square"),
    ],
)
def test_bad_pools_are_refused(gram, match):
    with pytest.raises(ValueError, match=match):
        Pool.of(gram)


def test_a_smaller_nugget_is_refused():
    with pytest.raises(ValueError, match="nugget"):
        Pool.of(np.eye(2), nugget=1e-10)
    assert Pool.of(np.eye(2), nugget=1e-3).nugget == 1e-3


@pytest.mark.parametrize("nugget", [NUGGET, 1e-4])
def test_the_root_holds_the_nugget_that_is_stated(nugget):
    Z = np.linspace(-1, 1, 40)[:, None]
    pool = Pool.of(7 * rbf(Z, Z), nugget=nugget)
    assert pool.nugget == pytest.approx(7 * nugget)
    least = np.linalg.svd(pool.root, compute_uv=False)[-1] ** 2
    assert least == pytest.approx(7 * nugget, rel=1e-3)
