"""One noisy moment of rows and residuals, and everything that follows from it at no cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from audit import epsilon_lower_bound
from dpadapt import Private
from dpadapt.papers.reweighting.moment_regression import MomentRegression, ReleasedMoment
from dpadapt.papers.reweighting.objective import profile
from dpadapt.papers.reweighting.queries import shrink_together
from dpadapt.privacy import Cleaning
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.statistics import MeanOuter

CLEANING = Cleaning(5.0, intercept=1.0, label_range=(-1.0, 1.0), unit_labels=True)
HOSTILE = [1e6, -1e6, np.inf, -np.inf, np.nan, 1e308, 0.0]


def public(seed=0, m=300, d=3):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(m, d)), np.ones(m)])
    return X, np.clip(X @ np.full(d + 1, 0.1) + 0.1 * rng.normal(size=m), -1, 1)


def private(seed=1, n=4000, d=3):
    rng = np.random.default_rng(seed)
    T = rng.normal(size=(n, d))
    return T, np.clip(T @ np.linspace(-0.1, 0.2, d) + 0.1 * rng.normal(size=n), -1, 1)


def released(solver, T, y, *, epsilon=1.0, delta=1e-6, seed=0):
    options = {"noise": "seeded", "random_state": seed}
    with Private(T, y).open(epsilon=epsilon, delta=delta, **options) as session:
        moment = solver.fit(session, CLEANING)
    return moment, session.guarantee


def error(w, T, y):
    return float(np.mean((T @ w[:-1] + w[-1] - y) ** 2))


# what one row can do


@pytest.mark.parametrize("residuals", [True, False])
def test_one_row_never_moves_the_moment_by_more_than_stated(residuals):
    solver = MomentRegression(*public(d=2), residuals=residuals, row_bound=1.0, label_weight=0.8)
    rows, rng, worst = solver.prepared(CLEANING), np.random.default_rng(0), 0.0
    query = MeanOuter(rows, 4, math.hypot(1.0, 0.8))
    for _ in range(3000):
        T, y = rng.normal(size=(4, 2)) * rng.choice([0.1, 1, 100]), rng.normal(size=4)
        other, labels = T.copy(), y.copy()
        other[0] = [rng.normal(size=2), -T[0], rng.choice(HOSTILE, 2)][rng.integers(3)]
        labels[0] = rng.choice([rng.normal(), -y[0], rng.choice(HOSTILE)])
        sums = [query.block(*rows(*each)) / 4 for each in ((T, y), (other, labels))]
        worst = max(worst, float(np.linalg.norm(sums[0] - sums[1])) / query.sensitivity(4))
    assert 0.6 < worst <= 1 + 1e-12


def test_the_bound_is_attained_and_a_smaller_one_would_fail():
    solver = MomentRegression(np.eye(2), np.zeros(2), residuals=False, row_bound=1.0)
    cleaning = Cleaning(1.0, label_range=(-1.0, 1.0), unit_labels=True)
    query, rows = MeanOuter(cleaning, 3, math.sqrt(2)), solver.prepared(cleaning)
    T, y = np.zeros((5, 2)), np.zeros(5)
    other, labels = T.copy(), y.copy()
    T[0, 0] = other[0, 0] = 1.0
    y[0], labels[0] = 1.0, -1.0  # (1, 0, 1) and (1, 0, -1) are orthogonal
    found = np.linalg.norm(query.block(*rows(T, y)) - query.block(*rows(other, labels))) / 5
    assert found == pytest.approx(query.sensitivity(5), rel=1e-9)
    assert found > 2 / math.sqrt(2) / 5  # a bound of |z|^2 / n, without the root of 2, is passed


def test_residuals_without_the_clamp_pass_the_bound():
    solver = MomentRegression(*public(), row_bound=1.0)
    T, y = np.zeros((1, 3)), np.array([1.0])
    X, labels = shrink_together(*CLEANING(T, y), 1.0)
    z = np.append(X[0], (labels - X @ solver.center)[0] / solver.label_bound)
    assert z @ z > 2  # more than the bound; the clamp is what keeps it
    X, clamped = solver.prepared(CLEANING)(T, y)
    assert X[0] @ X[0] + clamped[0] ** 2 <= 2


def test_charge_is_one_gaussian_at_the_stated_sensitivity():
    T, y = private()
    moment, guarantee = released(MomentRegression(*public()), T, y)
    (event,) = guarantee.events
    assert event.count == 1
    assert event.sensitivity == pytest.approx(math.sqrt(2) * 2 / len(T), rel=1e-6)
    assert event.scale == pytest.approx(event.sensitivity / gaussian_mu(1.0, 1e-6), rel=1e-9)
    assert moment.row_noise == pytest.approx(event.scale / math.sqrt(2))
    assert guarantee.epsilon <= 1.0


def test_noise_has_the_stated_size():
    T, y = private(n=300)
    solver = MomentRegression(*public())
    exact = solver.exact(*CLEANING(T, y)).matrix
    noise = [released(solver, T, y, seed=seed)[0] for seed in range(300)]
    deviations = np.array([each.matrix for each in noise]) - exact
    assert np.std(deviations[:, 0, 1]) == pytest.approx(noise[0].row_noise, rel=0.15)
    assert np.std(deviations[:, 0, 0]) == pytest.approx(math.sqrt(2) * noise[0].row_noise, rel=0.15)
    assert np.std(deviations[:, 0, -1]) == pytest.approx(noise[0].label_noise, rel=0.15)
    norms = [np.linalg.norm(each[:-1, :-1], 2) for each in deviations]
    assert 0.6 < np.mean(norms) / noise[0].noise_norm < 1.2


@pytest.mark.slow
@pytest.mark.parametrize(("lie", "holds"), [(1.0, True), (4.0, False)])
def test_audit_on_the_worst_neighbours(lie, holds):
    """10,000 releases; with the noise of four times the claimed epsilon, it is refuted."""
    solver = MomentRegression(np.eye(2), np.zeros(2), residuals=False, row_bound=1.0)
    cleaning = Cleaning(1.0, label_range=(-1.0, 1.0), unit_labels=True)
    samples = []
    for label in (1.0, -1.0):
        data = Private(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([label, 0.0]))
        runs = []
        for seed in range(10_000):
            options = {"noise": "seeded", "random_state": seed}
            with data.open(epsilon=lie, delta=1e-2, **options) as session:
                runs.append(solver.fit(session, cleaning).matrix[0, -1])
        samples.append(np.array(runs))
    assert (epsilon_lower_bound(*samples, 1e-2) <= 1.0) == holds


# what follows from the moment


def test_exact_moment_gives_weighted_least_squares():
    X, y = public()
    T, labels = private()
    rows = np.column_stack([T, np.ones(len(T))])
    solver = MomentRegression(X, y, shift_bound=100.0)
    w = solver.solve(solver.exact(rows, labels), alpha=0.4, kappa=1e6)
    unit = solver.public_model.row_unit
    (A, a), (B, b) = (shrink_together(*each, unit) for each in ((X, y), (rows, labels)))
    b = B @ solver.center + np.clip(b - B @ solver.center, -solver.label_bound, solver.label_bound)
    H = 0.4 * A.T @ A / len(A) + 0.6 * B.T @ B / len(B)
    g = 0.4 * A.T @ a / len(A) + 0.6 * B.T @ b / len(B)
    np.testing.assert_allclose(w * unit, np.linalg.solve(H, g), atol=1e-7)


def test_reweighting_minimises_the_objective_over_the_ball():
    solver = MomentRegression(*public())
    moment, _ = released(solver, *private(n=300), epsilon=0.3)
    A, e = solver.public_model.public
    e = e - A @ solver.center
    M = moment.matrix.copy()
    M[:-1, :-1] += moment.noise_norm * np.eye(len(M) - 1)

    def objective(v):
        z = np.append(v, -1.0)
        return 0.7 * z @ M @ z + 0.3 * np.mean(profile((A @ v - e) ** 2 + 0.01, 0.005)[0])

    w = solver.solve(moment, alpha=0.3, kappa=0.005, offset=0.01)
    v = w * solver.public_model.row_unit - solver.center
    assert np.linalg.norm(v) <= solver.ball * (1 + 1e-9)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(200):
            near = v + size * rng.normal(size=len(v))
            near /= max(1.0, np.linalg.norm(near) / solver.ball)
            assert objective(v) <= objective(near) + 1e-9


def test_an_indefinite_moment_is_no_trouble():
    solver = MomentRegression(*public())
    w = solver.solve(ReleasedMoment(-np.eye(5), 0.0, 0.0), alpha=0.0)
    shift = w * solver.public_model.row_unit - solver.center
    assert np.linalg.norm(shift) == pytest.approx(solver.ball)


def test_alpha_one_is_public_and_a_huge_epsilon_is_exact():
    T, y = private()
    solver = MomentRegression(*public())
    near, _ = released(solver, T, y, epsilon=1e8)
    far, _ = released(solver, T, y, epsilon=1e-3)
    np.testing.assert_array_equal(solver.solve(near, alpha=1.0), solver.solve(far, alpha=1.0))
    exact = solver.exact(*CLEANING(T, y))
    np.testing.assert_allclose(near.matrix, exact.matrix, atol=1e-7)
    assert solver.discrepancy(near) == pytest.approx(solver.discrepancy(exact), abs=1e-5)
    assert solver.discrepancy(far) > solver.discrepancy(exact)  # the noise looks like a shift


def test_residuals_are_better_than_labels_and_than_the_public_model():
    rng = np.random.default_rng(2)
    T = rng.normal(size=(1500, 12))
    y = np.clip(T @ np.r_[np.full(6, 0.1), np.full(6, 0.07)] + 0.05 * rng.normal(size=1500), -1, 1)
    y = np.clip(y + 0.1, -1, 1)  # the shift is in the level, and small in the slopes
    residual, label = (MomentRegression(*public(d=12), residuals=each) for each in (True, False))
    model = residual.public_model
    start = error(model.start / model.row_unit, T, y)
    errors = np.array(
        [
            [error(each.solve(released(each, T, y, seed=s)[0], alpha=0.1), T, y) for s in range(5)]
            for each in (residual, label)
        ]
    )
    assert (errors[0] < errors[1]).all()
    assert errors[0].mean() < 0.9 * start


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_rows_neither_fail_nor_show(value):
    T, y = private(n=50)
    T[0], y[1] = value, value
    moment, guarantee = released(MomentRegression(*public()), T, y)
    assert np.isfinite(moment.matrix).all()
    assert guarantee.epsilon <= 1.0


def test_same_seed_same_moment():
    T, y = private(n=50)
    solver = MomentRegression(*public())
    first, again, other = (released(solver, T, y, seed=s)[0].matrix for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_bad_input_is_named():
    X, y = public()
    solver = MomentRegression(X, y)
    with pytest.raises(ValueError, match="alpha"):
        solver.solve(ReleasedMoment(np.eye(5), 0.0, 0.0), alpha=2.0)
    with pytest.raises(ValueError, match="kappa"):
        solver.solve(ReleasedMoment(np.eye(5), 0.0, 0.0), alpha=0.5, kappa=0.0)
    with pytest.raises(ValueError, match="label_quantile"):
        MomentRegression(X, y, label_quantile=1.0)
    with pytest.raises(ValueError, match="y in"):
        MomentRegression(X, 3 + y)
    with pytest.raises(ValueError, match="unit_labels"):
        solver.prepared(Cleaning(1.0))
