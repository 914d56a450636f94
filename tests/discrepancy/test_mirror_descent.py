import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dpadapt.discrepancy import minimise_discrepancy
from dpadapt.discrepancy.matrices import row_scores, weighted_moment
from dpadapt.papers.discrepancy.first_stage import NoisyMirrorDescent, bregman_step, entropic_step
from dpadapt.papers.discrepancy.queries import RowBounds, gradient_spread
from dpadapt.papers.discrepancy.smoothing import PNorm, Softmax
from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.statistics import SecondMoment

QUERY = SecondMoment(Cleaning(radius=1.0))
KINDS = [(g, n) for g in ("entropy", "p-norm") for n in ("matrix", "gradient")]


def samples(seed=0, m=50, n=400, d=3):
    rng = np.random.default_rng(seed)
    X, T = rng.normal(size=(m, d)) / 3, 0.2 * rng.normal(size=(n, d)) + 0.3
    return X, QUERY.cleaning(T, None)[0]


def excess(X, weights, target):
    found = minimise_discrepancy(X, target, gap=1e-3)
    norm = np.abs(np.linalg.eigvalsh(target - weighted_moment(X, weights))).max()
    return norm - found.lower_bound


def release(algorithm, rows, *, epsilon=1.0, delta=1e-3, seed=0, calibration="tight"):
    options = {"noise": "seeded", "random_state": seed}
    with Private(rows).open(epsilon=epsilon, delta=delta, **options) as session:
        gradient = algorithm.mechanism(session, QUERY, calibration=calibration)
        grant = session.plan(gradient=gradient).gradient
        weights = algorithm.release(session, grant, session.hide(QUERY))
    return weights, session.guarantee


def step_for(X, steps):
    reach = np.linalg.norm(X, axis=1).max()
    return math.sqrt(2 * math.log(len(X)) / steps) / reach**2


@pytest.mark.parametrize("average", ["all", "half"])
@pytest.mark.parametrize("geometry", ["entropy", "p-norm"])
def test_without_noise_it_reaches_the_minimum_within_the_proved_bound(geometry, average):
    X, T = samples()
    target, mu, K = T.T @ T / len(T), 30.0, 1500
    eta = step_for(X, K)
    weights = NoisyMirrorDescent(
        X, Softmax(mu), K, eta, geometry=geometry, average=average
    ).minimise(target)
    lipschitz = np.linalg.norm(X, axis=1).max() ** 2
    bound = (
        lipschitz * math.sqrt(2 * math.log(len(X)) / K) * (math.e if geometry != "entropy" else 1)
    )
    assert excess(X, weights, target) <= bound + math.log(2 * X.shape[1]) / mu
    assert excess(X, weights, target) < 0.02  # and in truth much nearer


@pytest.mark.parametrize(("geometry", "noise_on"), KINDS)
def test_private_run_with_a_huge_epsilon_is_the_run_without_noise(geometry, noise_on):
    X, T = samples()
    algorithm = NoisyMirrorDescent(
        X, Softmax(30.0), 300, step_for(X, 300), geometry=geometry, noise_on=noise_on
    )
    weights, _ = release(algorithm, T, epsilon=1e6)
    assert np.abs(weights - algorithm.minimise(T.T @ T / len(T))).sum() < 0.02


def test_p_norm_smoothing_is_minimised_too():
    X, T = samples()
    target = T.T @ T / len(T)
    weights = NoisyMirrorDescent(X, PNorm(3), 1500, 3.0).minimise(target)
    assert excess(X, weights, target) < 0.02


@pytest.mark.parametrize("geometry", ["entropy", "p-norm"])
def test_every_step_stays_in_the_simplex(geometry):
    X, T = samples()
    target, rng = T.T @ T / len(T), np.random.default_rng(0)
    algorithm = NoisyMirrorDescent(X, Softmax(20.0), 300, 1.0, penalty=0.1, geometry=geometry)

    def noisy(S):
        return row_scores(X, Softmax(20.0).gradient(target - S)) + 3 * rng.normal(size=len(X))

    path = list(algorithm.path(noisy))
    assert len(path) == 300
    for weights in path:
        assert abs(weights.sum() - 1) <= 1e-12
        assert (weights >= 0).all()
    assert np.allclose(path[0], 1 / len(X))


def test_average_is_of_all_or_of_the_later_half():
    X, T = samples()
    target = T.T @ T / len(T)
    path = np.array(
        list(
            NoisyMirrorDescent(X, Softmax(20.0), 10, 0.5).path(
                lambda S: row_scores(X, Softmax(20.0).gradient(target - S))
            )
        )
    )
    for average, part in (("all", path), ("half", path[5:])):
        found = NoisyMirrorDescent(X, Softmax(20.0), 10, 0.5, average=average).minimise(target)
        assert np.allclose(found, part.mean(axis=0))


@pytest.mark.parametrize("m", [1, 2, 3, 10])
def test_bregman_step_minimises_the_linear_function_plus_the_divergence(m):
    rng = np.random.default_rng(m)
    q, g, eta = rng.dirichlet(np.ones(m)), rng.normal(size=m), 0.3
    p = 1 + 1 / max(1.0, math.log(m))

    def phi(x):
        return (np.abs(x) ** p).sum() ** (2 / p) / (p - 1)

    slope = 2 / (p - 1) * (q**p).sum() ** ((2 - p) / p) * q ** (p - 1)

    def objective(x):
        return eta * g @ x + phi(x) - phi(q) - slope @ (x - q)

    found = bregman_step(q, g, eta)
    best = minimize(
        objective,
        np.full(m, 1 / m),
        bounds=[(0, 1)] * m,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert objective(found) <= best.fun + 1e-8
    assert abs(found.sum() - 1) <= 1e-12


def test_entropic_step_survives_huge_and_tiny_numbers():
    q = entropic_step(np.array([1.0, 0.0, 1e-310]), np.array([1e6, 0.0, -1e6]), 1.0)
    assert np.isfinite(q).all()
    assert q[2] == pytest.approx(1.0)
    back = entropic_step(np.array([1.0, 0.0]), np.array([2000.0, 0.0]), 1.0)
    assert back[1] > 0.99  # a weight that was lost comes back


def test_spread_bounds_the_gradients_change():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    worst = 0.0
    for _ in range(500):
        E = rng.normal(size=(3, 3))
        E = (E + E.T) / np.linalg.norm(E + E.T)
        worst = max(worst, float(np.linalg.norm(row_scores(X, E))))
    assert 0.3 * gradient_spread(X) < worst <= gradient_spread(X)
    top = X[:1]
    assert np.linalg.norm(row_scores(top, top.T @ top / (top @ top.T))) == pytest.approx(
        gradient_spread(top)
    )
    assert gradient_spread(X) <= math.sqrt(20) * np.linalg.norm(X, axis=1).max() ** 2


def test_events_have_the_right_sensitivity_and_spend_the_budget():
    X, T = samples()
    mu, K, n = 5.0, 40, len(T)
    for noise_on, reach in (("matrix", 1.0), ("gradient", gradient_spread(X))):
        algorithm = NoisyMirrorDescent(X, Softmax(mu), K, 0.1, noise_on=noise_on)
        _, guarantee = release(algorithm, T, epsilon=1.0, delta=1e-3)
        (event,) = guarantee.events
        assert event.count == K
        assert event.sensitivity == pytest.approx(reach * mu / n, rel=1e-6)
        assert event.sensitivity >= reach * mu / n
        assert event.scale == pytest.approx(
            event.sensitivity * math.sqrt(K) / gaussian_mu(1.0, 1e-3), rel=1e-9
        )
        assert 0.999 < guarantee.epsilon <= 1.0


def test_noise_on_the_matrix_is_smaller_by_the_root_of_the_rows():
    X = np.tile([[1.0, 0.0]], (400, 1))
    with Private(np.eye(2)).open(epsilon=1.0, delta=1e-3) as session:
        matrix, entries = (
            NoisyMirrorDescent(X, Softmax(5.0), 9, 0.1, noise_on=place).mechanism(session, QUERY)
            for place in ("matrix", "gradient")
        )
    assert entries.sensitivity == pytest.approx(20 * matrix.sensitivity)
    assert (matrix.dimension, entries.dimension) == (4, 400)


def test_printed_noise_is_the_papers_and_gives_less_than_it_claims():
    X, T = samples(n=30)
    K, m, mu = 100, len(X), 5.0
    algorithm = NoisyMirrorDescent(X, Softmax(mu), K, 0.1, noise_on="gradient", average="all")
    _, guarantee = release(algorithm, T, epsilon=1.0, delta=1 / 8000, calibration="paper")
    (event,) = guarantee.events
    reach = RowBounds.of(QUERY, X, 30).public
    sigma = 4 * mu * reach**2 * math.sqrt(2 * K * m * math.log(8000)) / 30
    assert event.scale == pytest.approx(sigma)
    assert event.sensitivity == pytest.approx(mu * gradient_spread(X) / 30, rel=1e-6)
    assert guarantee.epsilon < 0.25


def test_the_mechanism_adds_what_the_event_says():
    """One step of size 1 on one row would show nothing; the entropic step shows every entry."""
    X = np.eye(2)
    algorithm = NoisyMirrorDescent(X, Softmax(1.0), 2, 1.0, noise_on="gradient", average="half")
    drawn = []
    for seed in range(300):
        weights, guarantee = release(algorithm, [[0.7, 0.7]] * 50, seed=seed)
        drawn.append(math.log(weights[0] / weights[1]))
    # log(q_1 / q_2) = g_2 - g_1, whose noise has twice the variance of one entry
    scale = guarantee.events[0].scale
    assert np.std(drawn) == pytest.approx(math.sqrt(2) * scale, rel=0.25)


def test_seeds_repeat_and_differ():
    X, T = samples()
    algorithm = NoisyMirrorDescent(X, Softmax(5.0), 20, 0.1)
    one, again, other = (release(algorithm, T, seed=s)[0] for s in (1, 1, 2))
    assert (one == again).all()
    assert not (one == other).all()


@pytest.mark.parametrize(("geometry", "noise_on"), KINDS)
@pytest.mark.parametrize(
    ("X", "rows"),
    [
        (np.array([[1.0, 2.0]]), np.ones((5, 2))),  # m = 1
        (np.array([[1.0], [2.0], [2.0]]), np.ones((1, 1))),  # d = 1, n = 1
        (np.tile([[1.0, 0.0, 2.0]], (4, 1)), np.ones((2, 3))),  # d > n, duplicated rows
        (np.array([[0.0, 0.0], [1.0, 0.0]]), np.full((3, 2), np.nan)),  # rows of zeros, NaN
    ],
)
def test_small_and_degenerate_samples(X, rows, geometry, noise_on):
    algorithm = NoisyMirrorDescent(X, Softmax(5.0), 7, 0.5, geometry=geometry, noise_on=noise_on)
    weights, _ = release(algorithm, rows)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0).all()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"steps": 0}, "steps"),
        ({"step_size": 0.0}, "step_size"),
        ({"step_size": math.inf}, "step_size"),
        ({"penalty": -1.0}, "penalty"),
        ({"geometry": "round"}, "geometry"),
        ({"noise_on": "rows"}, "noise_on"),
        ({"average": "none"}, "average"),
        ({"X": np.array([1.0])}, "X"),
    ],
)
def test_bad_arguments_are_named(change, named):
    given = {"X": np.eye(2), "smoothing": Softmax(1.0), "steps": 3, "step_size": 0.1, **change}
    with pytest.raises(ValueError, match=named):
        NoisyMirrorDescent(**given)


def test_printed_noise_on_the_matrix_is_refused():
    with (
        Private(np.eye(2)).open(epsilon=1.0, delta=1e-3) as session,
        pytest.raises(ValueError, match="noise_on='gradient'"),
    ):
        NoisyMirrorDescent(np.eye(2), Softmax(1.0), 3, 0.1).mechanism(
            session, QUERY, calibration="paper"
        )
