import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from dpadapt.discrepancy.matrices import weighted_moment
from dpadapt.papers.discrepancy.first_stage import NoisyFrankWolfe, NoisyMirrorDescent
from dpadapt.papers.discrepancy.parameters import zcdp_rho
from dpadapt.papers.discrepancy.queries import RowBounds
from dpadapt.papers.discrepancy.single_stage import AdaptationObjective, NoisySingleStage
from dpadapt.papers.discrepancy.smoothing import PNorm, Softmax
from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.accounting.events import BoundedRangeEvent, GaussianEvent, PureEvent
from dpadapt.privacy.statistics import SecondMoment

QUERY = SecondMoment(Cleaning(radius=1.0))


def samples(seed=0, m=40, n=400, d=3):
    rng = np.random.default_rng(seed)
    X, T = rng.normal(size=(m, d)) / 3, 0.2 * rng.normal(size=(n, d)) + 0.3
    y = X @ np.array([0.5, -0.3, 0.2])[:d] + 0.1 * rng.normal(size=m)
    return X, y, QUERY.cleaning(T, None)[0]


def objective_of(X, y, mu=10.0, radius=1.0):
    return AdaptationObjective(X, y, Softmax(mu), radius)


def value(objective, q, w, target):
    M = target - weighted_moment(objective.X, q)
    loss = q @ (objective.X @ w - objective.y) ** 2
    return loss + 4 * objective.radius**2 * objective.smoothing.value(M)


def release(algorithm, rows, *, epsilon=1.0, delta=1e-3, seed=0, calibration="tight"):
    options = {"noise": "seeded", "random_state": seed}
    with Private(rows).open(epsilon=epsilon, delta=delta, **options) as session:
        grants = session.plan(**algorithm.mechanisms(session, QUERY, calibration=calibration))
        found = algorithm.release(
            session, grants, session.hide(QUERY), rng=np.random.default_rng(seed)
        )
    return found, session.guarantee


def test_gradients_agree_with_central_differences():
    X, y, T = samples()
    objective, target = objective_of(X, y, radius=1.5), T.T @ T / len(T)
    rng = np.random.default_rng(1)
    q, w = rng.dirichlet(np.ones(len(X))), rng.normal(size=3)
    h = 1e-5

    def numeric(f, x):
        return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])

    # weights off the simplex are differentiated too, so the moment is written out
    def at(weights, coefficients):
        M = target - (X * weights[:, None]).T @ X
        loss = weights @ (X @ coefficients - y) ** 2
        return loss + 4 * 1.5**2 * objective.smoothing.value(M)

    by_q = objective.weight_gradient(q, w, target)
    assert np.abs(by_q - numeric(lambda v: at(v, w), q)).max() <= 1e-5 * np.abs(by_q).max()
    by_w = objective.coefficient_gradient(q, w)
    assert np.abs(by_w - numeric(lambda v: at(q, v), w)).max() <= 1e-5 * np.abs(by_w).max()


@pytest.mark.parametrize("exact", [False, True])
def test_without_noise_it_reaches_a_stationary_point(exact):
    X, y, T = samples()
    objective, target = objective_of(X, y), T.T @ T / len(T)
    algorithm = NoisySingleStage(objective, 3000, 0.004, exact=exact)
    q, w = algorithm.minimise(target)
    start = value(objective, np.full(len(X), 1 / len(X)), np.zeros(3), target)
    assert algorithm._gap(q, w, target) < 0.1 * start
    assert value(objective, q, w, target) < start
    if exact:
        assert np.allclose(w, objective.best_coefficients(q))


def test_other_smoothing():
    X, y, T = samples()
    objective, target = AdaptationObjective(X, y, PNorm(3), 1.0), T.T @ T / len(T)
    q, w = NoisySingleStage(objective, 1500, 0.005).minimise(target)
    assert value(objective, q, w, target) < value(
        objective, np.full(len(X), 1 / len(X)), np.zeros(3), target
    )


@pytest.mark.parametrize("exact", [False, True])
def test_private_run_with_a_huge_epsilon_is_the_run_without_noise(exact):
    X, y, T = samples()
    algorithm = NoisySingleStage(objective_of(X, y), 200, 0.02, exact=exact)
    (q, w), _ = release(algorithm, T, epsilon=1e6)
    wanted = value(algorithm.objective, *algorithm.minimise(T.T @ T / len(T)), T.T @ T / len(T))
    assert value(algorithm.objective, q, w, T.T @ T / len(T)) == pytest.approx(wanted, rel=0.02)


def test_steps_are_the_papers():
    """Both geometries move by eta; the slope in w is taken at the old weights."""
    X, y, T = samples()
    objective, target = objective_of(X, y, radius=2.0), T.T @ T / len(T)
    algorithm = NoisySingleStage(objective, 3, 0.25)
    path = list(
        algorithm.path(
            lambda scores: int(np.argmin(scores(target))), objective.coefficient_gradient
        )
    )
    assert len(path) == 4
    for (q, w), (new_q, new_w) in itertools.pairwise(path):
        j = int(np.argmin(objective.weight_gradient(q, w, target)))
        slope = objective.coefficient_gradient(q, w)
        assert np.allclose(new_q, 0.75 * q + 0.25 * np.eye(len(X))[j])
        assert np.allclose(new_w, 0.75 * w - 0.25 * 2.0 * slope / np.linalg.norm(slope))
        assert abs(new_q.sum() - 1) <= 1e-12
        assert np.linalg.norm(new_w) <= 2.0 + 1e-12


def test_selected_iterate_is_on_the_path_and_has_a_small_gap():
    X, y, T = samples()
    target, K = T.T @ T / len(T), 60
    algorithm = NoisySingleStage(objective_of(X, y), K, 0.05, output="select")
    path = list(
        algorithm.path(
            lambda scores: int(np.argmin(scores(target))), algorithm.objective.coefficient_gradient
        )
    )
    gaps = [algorithm._gap(q, w, target) for q, w in path[:K]]
    q, w = algorithm.minimise(target)
    best = int(np.argmin(gaps))
    assert np.allclose(q, path[best][0])
    assert np.allclose(w, path[best][1])
    (q, w), _ = release(algorithm, T, epsilon=1e6)
    assert algorithm._gap(q, w, target) <= min(gaps) + 0.01


def test_uniform_iterate_is_on_the_path():
    X, y, T = samples()
    target = T.T @ T / len(T)
    path = list(
        NoisySingleStage(objective_of(X, y), 20, 0.1).path(
            lambda scores: int(np.argmin(scores(target))), objective_of(X, y).coefficient_gradient
        )
    )
    algorithm = NoisySingleStage(objective_of(X, y), 20, 0.1, output="uniform")
    places = set()
    for seed in range(12):
        q, _ = algorithm.minimise(target, rng=np.random.default_rng(seed))
        (place,) = [k for k, (other, _) in enumerate(path) if np.allclose(q, other)]
        places.add(place)
    assert len(places) > 4
    assert max(places) < 20


def test_gaps_move_by_no_more_than_the_range_and_differences_by_twice():
    rng = np.random.default_rng(0)
    X, y, _ = samples(m=6)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    n, worst, apart = 5, 0.0, 0.0
    algorithm = NoisySingleStage(objective_of(X, y, mu=3.0), 2, 0.5)
    reach = algorithm.objective.range_sensitivity(QUERY, n)
    for _ in range(1500):
        rows = rng.normal(size=(n, 3))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        other = rows.copy()
        other[0] = rng.choice([-1.0, 0.0, 1.0], size=3)
        other[0] /= max(1.0, np.linalg.norm(other[0]))
        moves = []
        for _ in range(2):
            q, w = rng.dirichlet(np.full(6, 0.2)), rng.normal(size=3) / 3
            gaps = [algorithm._gap(q, w, T.T @ T / n) for T in (rows, other)]
            moves.append(gaps[0] - gaps[1])
        worst, apart = max(worst, abs(moves[0])), max(apart, abs(moves[0] - moves[1]))
    assert 0.3 * reach < worst <= reach
    assert apart <= 2 * reach


def test_events_spend_the_budget_and_selection_costs_four_steps():
    X, y, T = samples()
    objective, K, n = objective_of(X, y, mu=5.0, radius=1.5), 40, len(T)
    R = 4 * 1.5**2 * Softmax(5.0).range_sensitivity(RowBounds.of(QUERY, X, n))
    _, plain = release(NoisySingleStage(objective, K, 0.1), T)
    (vertices,) = plain.events
    assert isinstance(vertices, BoundedRangeEvent)
    assert (vertices.count, vertices.sensitivity) == (K, pytest.approx(R))
    assert 0.999 < plain.epsilon <= 1.0

    _, selected = release(NoisySingleStage(objective, K, 0.1, output="select"), T)
    vertices, choice = selected.events
    assert choice.sensitivity == pytest.approx(2 * R)
    assert choice.scale == pytest.approx(vertices.scale)
    b = R * math.sqrt((K + 4) / (8 * zcdp_rho(1.0, 1e-3)))
    assert vertices.scale == pytest.approx(b, rel=1e-3)
    assert selected.epsilon <= 1.0


def test_printed_noise_is_the_papers():
    X, y, T = samples(n=30)
    objective, K = objective_of(X, y, mu=5.0, radius=1.5), 50
    reach = RowBounds.of(QUERY, X, 30).public
    tau = 8 * 1.5**2 * 5.0 * reach**2 / 30
    sigma = 4 * tau * math.sqrt(2 * K * math.log(1000)) / 2.0
    for output in ("last", "select"):
        algorithm = NoisySingleStage(objective, K, 0.1, output=output)
        _, guarantee = release(algorithm, T, epsilon=2.0, calibration="paper")
        vertices = guarantee.events[0]
        assert isinstance(vertices, PureEvent)
        assert vertices.epsilon == pytest.approx(tau / 2 / sigma, rel=1e-6)
        assert guarantee.epsilon < 0.5  # a quarter of what was asked, or less


@dataclass(frozen=True)
class Pull:
    """A function whose gradient in w is the private statistic: w . M e_1, and q . (0, 1)."""

    radius: float = 1.0
    shape: tuple[int, int] = (2, 2)

    def weight_gradient(self, q, w, statistic):
        return np.array([0.0, 1.0])

    def coefficient_gradient(self, q, w, statistic):
        return statistic[0]

    def best_coefficients(self, q):
        return np.zeros(2)

    def range_sensitivity(self, query, n_rows):
        return 1e-6

    def coefficient_sensitivity(self, query, n_rows):
        return query.sensitivity(n_rows)

    def printed_sensitivity(self, query, n_rows):
        return 1e-6


def test_any_objective_with_a_private_gradient_in_w():
    rows = np.tile([[1.0, 0.0]], (20_000, 1))
    for calibration in ("tight", "paper"):
        algorithm = NoisySingleStage(Pull(), 30, 0.2, output="select")
        (q, w), guarantee = release(algorithm, rows, epsilon=2.0, calibration=calibration)
        vertices, turns, choice = guarantee.events
        assert isinstance(turns, GaussianEvent)
        assert (turns.count, vertices.count, choice.count) == (30, 30, 1)
        assert choice.sensitivity == pytest.approx(2 * (1e-6 + 2 * turns.sensitivity))
    assert isinstance(vertices, PureEvent)
    (q, w), guarantee = release(NoisySingleStage(Pull(), 30, 0.2), rows, epsilon=2.0)
    assert guarantee.epsilon <= 2.0
    assert w[0] < -0.9  # downhill
    assert q[0] > 0.9


def test_split_session_is_refused():
    """Its parts have fewer rows than the sensitivity would be computed for."""
    X, y, T = samples()
    with Private(T).open(epsilon=1.0, delta=1e-3) as session:
        session.split(holdout=0.5)
        for algorithm in (
            NoisyFrankWolfe(X, Softmax(1.0), 3),
            NoisyMirrorDescent(X, Softmax(1.0), 3, 0.1),
        ):
            with pytest.raises(ValueError, match="split"):
                algorithm.mechanism(session, QUERY)
        with pytest.raises(ValueError, match="split"):
            NoisySingleStage(objective_of(X, y), 3, 0.1).mechanisms(session, QUERY)


def test_exact_update_is_refused_where_the_gradient_in_w_is_private():
    with pytest.raises(ValueError, match="exact"):
        release(NoisySingleStage(Pull(), 3, 0.2, exact=True), np.eye(2))


def test_seeds_repeat_and_differ():
    X, y, T = samples()
    algorithm = NoisySingleStage(objective_of(X, y), 15, 0.1)
    (one, _), (again, _), (other, _) = (release(algorithm, T, seed=s)[0] for s in (1, 1, 2))
    assert (one == again).all()
    assert not (one == other).all()


@pytest.mark.parametrize(
    ("X", "rows"),
    [
        (np.array([[1.0, 2.0]]), np.ones((5, 2))),  # m = 1
        (np.array([[1.0], [2.0], [2.0]]), np.ones((1, 1))),  # d = 1, n = 1
        (np.tile([[1.0, 0.0, 2.0]], (4, 1)), np.ones((2, 3))),  # d > n, duplicated rows
        (np.array([[0.0, 0.0], [1.0, 0.0]]), np.full((3, 2), np.inf)),  # rows of zeros, inf
    ],
)
@pytest.mark.parametrize("output", ["last", "uniform", "select"])
def test_small_and_degenerate_samples(X, rows, output):
    objective = objective_of(X, np.ones(len(X)))
    for exact in (False, True):
        algorithm = NoisySingleStage(objective, 6, 0.3, output=output, exact=exact)
        (q, w), _ = release(algorithm, rows)
        assert q.sum() == pytest.approx(1.0)
        assert np.linalg.norm(w) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"steps": 0}, "steps"),
        ({"step_size": 0.0}, "step_size"),
        ({"step_size": 1.5}, "step_size"),
        ({"output": "k*"}, "output"),
    ],
)
def test_bad_arguments_are_named(change, named):
    X, y, _ = samples()
    given = {"objective": objective_of(X, y), "steps": 3, "step_size": 0.1, **change}
    with pytest.raises(ValueError, match=named):
        NoisySingleStage(**given)


@pytest.mark.parametrize("radius", [0, -1.0, math.inf])
def test_bad_radius_is_named(radius):
    with pytest.raises(ValueError, match="radius"):
        AdaptationObjective(np.eye(2), np.ones(2), Softmax(1.0), radius)


def test_labels_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="y must"):
        AdaptationObjective(np.eye(2), np.ones(3), Softmax(1.0), 1.0)
