"""The profiled objective, its private descent, and what one row can do to it."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import minimize

from audit import epsilon_lower_bound
from dpadapt import Private
from dpadapt.papers.reweighting.objective import profile, profiled_objective
from dpadapt.papers.reweighting.profiled import ProfiledClassification, ProfiledRegression
from dpadapt.papers.reweighting.queries import HuberGradient, LogisticGradient, shrink_together
from dpadapt.privacy import Cleaning, PrivacyError
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.events import GaussianEvent

CLEANING = Cleaning(5.0, intercept=1.0, label_range=(-1.0, 1.0), unit_labels=True)
HOSTILE = [1e6, -1e6, np.inf, -np.inf, np.nan, 1e308, 0.0]


def public(seed=0, m=300, d=3):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(m, d)), np.ones(m)])
    w = np.full(d + 1, 0.1)
    return X, np.clip(X @ w + 0.1 * rng.normal(size=m), -1, 1)


def private(seed=1, n=2000, d=3):
    rng = np.random.default_rng(seed)
    T = rng.normal(size=(n, d))
    return T, np.clip(T @ np.linspace(-0.2, 0.2, d) + 0.1 * rng.normal(size=n), -1, 1)


def opened(T, y, *, epsilon=1.0, delta=1e-6, seed=0):
    return Private(T, y).open(epsilon=epsilon, delta=delta, noise="seeded", random_state=seed)


def fitted(solver, T, y, **options):
    with opened(T, y, **options) as session:
        w = solver.fit(session, CLEANING)
    return w, session.guarantee


# the objective


def small_problem(seed):
    rng = np.random.default_rng(seed)
    draw = lambda n: (rng.normal(size=(n, 2)), rng.normal(size=n))  # noqa: E731
    facts = {"alpha": rng.uniform(0.1, 0.9), "kappa": rng.uniform(0.05, 2), "offset": rng.uniform()}
    return draw(4), draw(3), rng.normal(size=2), facts


@pytest.mark.parametrize("seed", range(5))
def test_profile_is_the_minimum_over_the_weights(seed):
    P, T, w, facts = small_problem(seed)
    alpha, kappa = facts["alpha"], facts["kappa"]
    a = np.concatenate([np.full(4, alpha / 4), np.full(3, (1 - alpha) / 3)])
    z = np.concatenate([(P[0] @ w - P[1]) ** 2 + facts["offset"], (T[0] @ w - T[1]) ** 2])

    def objective(s):  # in s = a u >= 1
        return float(np.sum(a * z / s) + kappa * (np.sum(a * s) - 1))

    found = minimize(objective, np.full(7, 2.0), bounds=[(1, None)] * 7, tol=1e-14)
    ours = profiled_objective(w, P, T, **facts)
    assert ours.value == pytest.approx(found.fun, rel=1e-7)
    weights = np.concatenate([ours.public_weights, ours.private_weights])
    np.testing.assert_allclose(weights, a / found.x, rtol=1e-3)
    assert (weights <= a * (1 + 1e-12)).all()
    wrong = profiled_objective(w, P, T, **facts | {"kappa": kappa * 1.1}).value
    assert wrong != pytest.approx(found.fun, rel=1e-5)  # another knee would be seen


@pytest.mark.parametrize("seed", range(5))
def test_gradient_is_that_of_the_envelope(seed):
    P, T, w, facts = small_problem(seed)
    facts["private_kappa"] = facts["kappa"] / 3
    step = 1e-6

    def value(v):
        return profiled_objective(v, P, T, **facts).value

    slopes = [(value(w + e) - value(w - e)) / (2 * step) for e in step * np.eye(2)]
    np.testing.assert_allclose(profiled_objective(w, P, T, **facts).gradient, slopes, rtol=1e-5)


def test_private_loss_is_huber_and_the_profile_is_smooth_at_its_knee():
    phi, slope = profile([0.25 - 1e-12, 0.25 + 1e-12], 0.25)
    np.testing.assert_allclose(phi, 0.5, atol=1e-9)
    np.testing.assert_allclose(slope, 1, atol=1e-9)
    e = np.linspace(0, 3, 50)
    huber = np.where(e <= 0.5, e**2, 2 * 0.5 * e - 0.25)
    np.testing.assert_allclose(profile(e**2, 0.25)[0] - 0.25, huber, atol=1e-12)


def test_a_huge_kappa_leaves_the_weights_uniform():
    P, T, w, facts = small_problem(0)
    found = profiled_objective(w, P, T, **facts | {"kappa": 1e6})
    np.testing.assert_allclose(found.public_weights, facts["alpha"] / 4)


def test_rows_are_shrunk_with_their_labels():
    X = np.array([[3.0, 4.0], [0.3, 0.4]])
    w = np.array([0.1, 0.05])
    rows, labels = shrink_together(X, X @ w, 1.0)
    np.testing.assert_allclose(rows @ w, labels, atol=1e-15)  # the relation stays
    assert np.linalg.norm(rows, axis=1).max() <= 1


# what one row can do


def neighbours(seed, trials=3000, d=2, n=4):
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        T, y = rng.normal(size=(n, d)) * rng.choice([0.1, 1, 100]), rng.normal(size=n)
        other, labels = T.copy(), y.copy()
        other[0] = [rng.normal(size=d), -T[0], np.zeros(d), rng.choice(HOSTILE, d)][rng.integers(4)]
        labels[0] = [rng.normal(), -y[0], rng.choice(HOSTILE)][rng.integers(3)]
        yield rng, (T, y), (other, labels)


def moved(query, rows, first, second):
    sums = [query.block(*rows(*each)) / len(each[0]) for each in (first, second)]
    return float(np.linalg.norm(sums[0] - sums[1]))


def test_one_row_never_moves_the_gradient_by_more_than_stated():
    solver = ProfiledRegression(*public(d=2), row_bound=1.0)
    rows, worst = solver.prepared(CLEANING), 0.0
    for rng, first, second in neighbours(0):
        query = HuberGradient(rows, rng.normal(size=3) * rng.choice([0.1, 9]), knee=0.1)
        worst = max(worst, moved(query, rows, first, second) / query.sensitivity(4))
    assert 0.9 < worst <= 1 + 1e-12


def test_the_bound_is_attained_and_a_smaller_one_would_fail():
    X, y = np.array([[1.0]]), np.array([0.0])
    solver = ProfiledRegression(X, y, row_bound=1.0, kappa=0.04, alpha=0.25, norm_bound=3.0)
    cleaning = Cleaning(1.0, label_range=(-1.0, 1.0), unit_labels=True)
    rows, n = solver.prepared(cleaning), 5
    T, labels = np.zeros((n, 1)), np.zeros(n)
    first, second = (T.copy(), labels), (T.copy(), labels)
    first[0][0], second[0][0] = 1.0, -1.0
    y1, y2 = labels.copy(), labels.copy()
    y1[0], y2[0] = -1.0, -1.0  # with w = 0, both residuals are 1
    query = HuberGradient(rows, np.zeros(1), solver.knee)
    reached = moved(query, rows, (first[0], y1), (second[0], y2))
    assert reached == pytest.approx(query.sensitivity(n), rel=1e-9)
    # in the units of the objective: 4 (1 - alpha) r min(sqrt kappa, sqrt B) / n
    assert 2 * 0.75 * solver.knee * reached == pytest.approx(4 * 0.75 * 0.2 / n, rel=1e-9)
    assert reached > 0.7 * query.sensitivity(n)  # noise x 0.7 would not do


def test_the_gradient_without_the_clip_passes_the_bound():
    solver = ProfiledRegression(*public(d=2), row_bound=1.0)
    rows = solver.prepared(CLEANING)
    worst = 0.0
    for _, first, second in neighbours(1, trials=300):
        (X, y), (Z, z) = rows(*first), rows(*second)
        gradients = [(A @ np.ones(3) - b) @ A / 0.1 / 4 for A, b in ((X, y), (Z, z))]
        worst = max(worst, float(np.linalg.norm(gradients[0] - gradients[1])) * 4 / 2)
    assert worst > 5


def test_start_outside_the_ball_is_projected():
    # the knee is the root of B only because no coefficients leave the ball
    X = np.array([[1.0], [-1.0]])
    solver = ProfiledRegression(
        X, np.array([1.0, -1.0]), norm_bound=0.1, kappa=100.0, row_bound=1.0
    )
    assert np.linalg.norm(solver.start) <= 0.1 + 1e-15
    assert solver.knee == pytest.approx(1.1)
    w, _ = fitted(
        ProfiledRegression(*public(), norm_bound=0.05, kappa=100.0), *private(), epsilon=50.0
    )
    assert np.linalg.norm(w) <= 0.05 * (1 + 1e-12)


def test_charge_is_that_of_all_gradients_at_the_stated_sensitivity():
    T, y = private()
    solver = ProfiledRegression(*public(), steps=7)
    _, guarantee = fitted(solver, T, y)
    (event,) = guarantee.events
    assert isinstance(event, GaussianEvent)
    assert event.count == 7
    assert event.sensitivity == pytest.approx(2 / len(T), rel=1e-6)
    assert event.sensitivity >= 2 / len(T)
    mu = gaussian_mu(1.0, 1e-6)
    assert event.scale == pytest.approx(2 / len(T) * math.sqrt(7) / mu, rel=1e-6)
    assert guarantee.epsilon <= 1.0


def test_released_offset_takes_a_tenth_of_the_budget():
    T, y = private()
    X, labels = public()
    X = CLEANING(X[:, :-1], None)[0]
    _, guarantee = fitted(ProfiledRegression(X, labels, alpha=0.5, offset="private", steps=9), T, y)
    gradients, offset = guarantee.events
    total = gradients.gaussian_mu**2 + offset.gaussian_mu**2
    assert offset.gaussian_mu**2 == pytest.approx(0.1 * total, rel=1e-6)
    assert math.sqrt(total) == pytest.approx(gaussian_mu(1.0, 1e-6), rel=1e-6)


def test_noise_that_is_really_added_is_the_planned_one():
    X, y = public()
    T, labels = private(n=200)
    solver = ProfiledRegression(X, y, steps=1)
    exact = fitted(solver, T, labels, epsilon=1e9)[0]
    draws, scale = [], 0.0
    for seed in range(400):
        with opened(T, labels, seed=seed) as session:
            rows = solver.prepared(CLEANING)
            grants = session.plan(**solver.mechanisms(session, rows))
            scale = grants.gradients.scale
            draws.append(solver.release(session, grants, rows))
    _, vectors, inverse = solver._spectrum
    P = (vectors * inverse) @ vectors.T
    step = solver.step_size(scale)
    expected = (step * 2 * solver.knee * scale / solver.row_unit) ** 2 * np.trace(P @ P)
    exact_step = solver.start / solver.row_unit
    mean = exact_step + (exact - exact_step) * step / 0.5
    spread = np.mean(np.sum((np.array(draws) - mean) ** 2, axis=1))
    assert spread == pytest.approx(expected, rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("lie", "holds"), [(1.0, True), (4.0, False)])
def test_audit_on_the_worst_neighbours(lie, holds):
    """10,000 runs; with the noise of four times the claimed epsilon, the same audit refutes it."""
    X, y = np.array([[1.0], [-1.0]]), np.array([0.1, -0.1])
    cleaning = Cleaning(1.0, label_range=(-1.0, 1.0), unit_labels=True)
    solver = ProfiledRegression(X, y, steps=3, row_bound=1.0, noise_share=1e9)
    epsilon, delta = 1.0, 1e-2
    samples = []
    for x in (1.0, -1.0):
        T, labels = np.zeros((3, 1)), np.zeros(3)
        T[0], labels[0] = x, -1.0
        data = Private(T, labels)
        runs = []
        for seed in range(10_000):
            options = {"noise": "seeded", "random_state": seed}
            with data.open(epsilon=epsilon * lie, delta=delta, **options) as session:
                # the ball would hide the last step: look at the released gradients themselves
                rows = solver.prepared(cleaning)
                grant = session.plan(**solver.mechanisms(session, rows)).gradients
                query = HuberGradient(rows, np.zeros(1), solver.knee)
                hidden = session.hide(query, keep=True)
                runs.append(sum(float(session.release(grant, hidden)[0]) for _ in range(3)))
        samples.append(np.array(runs))
    assert (epsilon_lower_bound(*samples, delta) <= epsilon) == holds


# what comes out


def test_noise_free_descent_reaches_the_minimum():
    X, y = public()
    T, labels = private()
    rows = np.column_stack([T, np.ones(len(T))])
    for alpha in (0.0, 0.5):
        solver = ProfiledRegression(X, y, alpha=alpha, steps=3000)
        w = solver.minimise(rows, labels) * solver.row_unit
        found = profiled_objective(
            w,
            solver.public,
            shrink_together(rows, labels, solver.row_unit),
            alpha=alpha,
            kappa=solver.public_kappa,
        )
        assert np.linalg.norm(found.gradient) < 1e-6


def test_a_huge_epsilon_is_the_run_without_noise():
    T, y = private()
    solver = ProfiledRegression(*public(), alpha=0.3)
    X, labels = CLEANING(T, y)
    w, _ = fitted(solver, T, y, epsilon=1e8)
    np.testing.assert_allclose(w, solver.minimise(X, labels), atol=1e-5)


def test_it_beats_the_public_model():
    T, y = private()
    solver = ProfiledRegression(*public())
    rows = np.column_stack([T, np.ones(len(T))])
    start = np.mean((rows @ solver.start / solver.row_unit - y) ** 2)
    for seed in range(5):
        w, _ = fitted(solver, T, y, seed=seed)
        assert np.mean((rows @ w - y) ** 2) < 0.7 * start


def test_more_noise_means_shorter_steps():
    solver = ProfiledRegression(*public())
    assert solver.step_size(1e-9) == 0.5
    assert solver.step_size(1e3) < solver.step_size(1e1) < 0.5


def test_same_seed_same_answer_and_nothing_private_is_shown():
    T, y = private()
    solver = ProfiledRegression(*public())
    first, again = (fitted(solver, T, y, seed=3)[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, fitted(solver, T, y, seed=4)[0])
    secret = np.full((50, 3), 123.456789)
    with opened(secret, np.full(50, 0.987654321)) as session:
        rows = solver.prepared(CLEANING)
        hidden = session.hide(HuberGradient(rows, solver.start, solver.knee), keep=True)
        for text in (repr(hidden), repr(session), repr(rows.cleaning), repr(session.guarantee)):
            assert "123.4" not in text
            assert "0.9876" not in text
        with pytest.raises(TypeError):
            pickle.dumps(hidden)
        with pytest.raises(PrivacyError):  # nothing comes out before it is paid for
            session.release(None, hidden)


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_rows_neither_fail_nor_show(value):
    T, y = private(n=50)
    T[0], y[1] = value, value
    w, guarantee = fitted(ProfiledRegression(*public(), alpha=0.2), T, y)
    assert np.isfinite(w).all()
    assert guarantee.epsilon <= 1.0


def test_alpha_one_reads_no_private_row():
    w, guarantee = fitted(ProfiledRegression(*public(), alpha=1.0), *private())
    other, _ = fitted(ProfiledRegression(*public(), alpha=1.0), *private(seed=9))
    np.testing.assert_array_equal(w, other)
    assert guarantee.epsilon == 0.0


@pytest.mark.parametrize("y", [np.zeros(20), np.full(20, 0.5)])
def test_constant_labels_and_collinear_columns(y):
    X = np.ones((20, 3))
    w, _ = fitted(ProfiledRegression(X, y), np.ones((100, 2)), np.full(100, 0.2))
    assert np.isfinite(w).all()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"alpha": 1.5}, "alpha"),
        ({"alpha": -0.1}, "alpha"),
        ({"kappa": 0.0}, "kappa"),
        ({"private_kappa": 0.0}, "private_kappa"),
        ({"steps": 0}, "steps"),
        ({"norm_bound": 0.0}, "norm_bound"),
        ({"y": np.full(300, 3.0)}, "y in"),
        ({"X": np.full((300, 4), np.nan)}, "X must be finite"),
    ],
)
def test_bad_input_is_named(options, name):
    X, y = public()
    with pytest.raises(ValueError, match=name):
        ProfiledRegression(**{"X": X, "y": y} | options)
    with pytest.raises(ValueError, match="unit_labels"):
        ProfiledRegression(X, y).prepared(Cleaning(1.0))


# classification


def classes(seed=0, n=600, k=3, d=2, turn=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    angle = np.arctan2(X[:, 1], X[:, 0]) + turn + rng.normal(0, 0.5, n)  # not separable
    return np.column_stack([X, np.ones(n)]), np.floor((angle / (2 * math.pi) + 0.5) * k) % k


def test_one_row_never_moves_the_logistic_gradient_by_more_than_stated():
    cleaning, worst = Cleaning(3.0, intercept=1.0, classes=3), 0.0
    for rng, (T, _), (other, _) in neighbours(2):
        y, labels = rng.integers(0, 3, 4).astype(float), rng.integers(0, 3, 4).astype(float)
        labels[1:] = y[1:]
        labels[0] = rng.choice([0.0, 1.0, 2.0, -1.0, np.nan, 7.0])
        query = LogisticGradient(
            cleaning, rng.normal(size=(3, 3)), clip=0.5, kappa=rng.choice([None, 0.3])
        )
        found = moved(query, cleaning, (T, y), (other, labels))
        worst = max(worst, found / query.sensitivity(4))
    assert 0.9 < worst <= 1 + 1e-12


def test_the_logistic_bound_is_attained():
    cleaning = Cleaning(1.0, classes=2)
    query = LogisticGradient(cleaning, np.zeros((2, 1)), clip=0.1)
    first, second = np.array([[1.0], [0.0]]), np.array([[-1.0], [0.0]])
    found = moved(query, cleaning, (first, np.zeros(2)), (second, np.zeros(2)))
    assert found == pytest.approx(query.sensitivity(2), rel=1e-9)


def test_rows_of_no_class_have_no_logistic_gradient():
    query = LogisticGradient(Cleaning(1.0, classes=2), np.ones((2, 1)), clip=0.1)
    X, y = np.array([[1.0], [0.5]]), np.array([1.0, -1.0])
    np.testing.assert_array_equal(query.block(X, y), query.block(X[:1], y[:1]))


def test_logistic_gradient_is_that_of_the_loss():
    X, y = classes(n=20)
    W = np.random.default_rng(0).normal(size=(3, 3))

    def loss(V):
        logits = X @ V.T
        picked = logits[np.arange(20), y.astype(int)]
        return float(np.sum(np.log(np.exp(logits).sum(axis=1)) - picked))

    step, slopes = 1e-6, np.zeros((3, 3))
    for i in np.ndindex(3, 3):
        E = np.zeros((3, 3))
        E[i] = step
        slopes[i] = (loss(W + E) - loss(W - E)) / (2 * step)
    query = LogisticGradient(Cleaning(9.0, classes=3), W, clip=1e9)
    np.testing.assert_allclose(query.block(X, y), slopes, atol=1e-6)


@pytest.mark.parametrize("k", [2, 3])
def test_classification_beats_the_public_model_and_keeps_its_budget(k):
    X, y = classes(k=k)
    T, labels = classes(seed=1, n=4000, k=k, turn=0.6)
    solver = ProfiledClassification(X, y, k)
    cleaning = Cleaning(5.0, intercept=1.0, classes=k)
    with opened(T[:, :-1], labels) as session:
        W = solver.fit(session, cleaning)
    (event,) = session.guarantee.events
    assert event.count == 40
    assert event.sensitivity == pytest.approx(2 * solver.gradient_bound / 4000, rel=1e-6)

    def error(V):
        return np.mean((T @ V.T).argmax(axis=1) != labels)

    assert error(W) < 0.9 * error(solver.start)
    assert error(solver.minimise(T, labels)) < 0.9 * error(solver.start)


def test_classification_of_one_public_class_and_rows_of_no_class():
    X, _ = classes()
    solver = ProfiledClassification(X, np.zeros(len(X)), 2, alpha=0.2, kappa=0.5)
    with opened(np.full((30, 2), np.nan), np.full(30, -1.0)) as session:
        W = solver.fit(session, Cleaning(5.0, intercept=1.0, classes=2))
    assert np.isfinite(W).all()
    with pytest.raises(ValueError, match="class codes"):
        ProfiledClassification(X, np.full(len(X), 2), 2)
    with pytest.raises(ValueError, match="classes"):
        ProfiledClassification(X, np.zeros(len(X)), 1)
