import math

import numpy as np
import pytest

from dpadapt.discrepancy import minimise_discrepancy
from dpadapt.discrepancy.matrices import weighted_moment
from dpadapt.discrepancy.second_stage import weighted_ridge
from dpadapt.discrepancy.variable_projection import SingleStageProblem, variable_projection
from dpadapt.papers.discrepancy.smoothing import PNorm, Softmax
from dpadapt.privacy.accounting.calibration import gaussian_mu
from reproduce.discrepancy.data import figure_data


def problem_of(seed=0, m=30, d=3, mu=20.0, radius=1.5, ridge=1e-3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) / 2
    y = X @ np.linspace(1.0, -1.0, d) + 0.2 * rng.normal(size=m)
    T = 0.2 * rng.normal(size=(300, d)) + 0.3
    return SingleStageProblem(X, y, T.T @ T / 300, Softmax(mu), radius, ridge)


def solve(problem, **options):
    return variable_projection(
        problem.X,
        problem.y,
        problem.target_moment,
        radius=problem.radius,
        ridge=problem.ridge,
        **options,
    )


def figure_task(seed, n, epsilon):
    """Public rows and labels, a (noisy) moment, its noise floor, and a large test sample."""
    rng = np.random.default_rng(seed)
    data = figure_data(rng, n)
    norms = np.linalg.norm(data.X_private, axis=1, keepdims=True)
    r = np.linalg.norm(data.X_public, axis=1).max()
    clipped = data.X_private * np.minimum(1, r / norms)
    scale = math.sqrt(2) * r**2 / (n * gaussian_mu(epsilon, 1 / 8000)) if epsilon else 0.0
    square = rng.normal(size=(10, 10))
    moment = clipped.T @ clipped / n + scale * (square + square.T) / 2
    test = figure_data(rng, 20_000)
    return data.X_public, data.y_public, moment, scale * math.sqrt(20), test


def error(w, test):
    return np.mean((test.X_private @ w - test.y_private) ** 2)


@pytest.mark.parametrize("radius", [0.4, 5.0])  # the ball binds, the ball is idle
@pytest.mark.parametrize("mu", [1.0, 30.0, 300.0])
def test_gradient_agrees_with_central_differences(mu, radius):
    problem = problem_of(mu=mu, radius=radius)
    q = np.random.default_rng(1).dirichlet(np.full(30, 5.0))
    point, h = problem.at(q), 1e-6
    binds = np.linalg.norm(point.coefficients) > 0.4 * (1 - 1e-9)
    assert binds if radius == 0.4 else np.linalg.norm(point.coefficients) < 5
    up, down = ([problem.at(q + s * h * e).value for e in np.eye(30)] for s in (1, -1))
    numeric = (np.array(up) - np.array(down)) / (2 * h)
    assert np.abs(problem.gradient(point) - numeric).max() <= 1e-5 * np.abs(numeric).max()


@pytest.mark.parametrize("smoothing", [None, Softmax(0.5), Softmax(1e4), PNorm(2)])
def test_lowers_the_objective_and_stays_in_the_simplex_and_the_ball(smoothing):
    problem = problem_of(radius=0.6)
    q, w = solve(problem, smoothing=smoothing, steps=300)
    uniform = np.full(30, 1 / 30)
    judge = SingleStageProblem(
        problem.X,
        problem.y,
        problem.target_moment,
        smoothing or problem.smoothing,
        problem.radius,
        problem.ridge,
    )
    assert judge.at(q).value < judge.at(uniform).value
    assert q.min() >= 0
    assert abs(q.sum() - 1) < 1e-12
    assert np.linalg.norm(w) <= 0.6 * (1 + 1e-9)
    assert np.allclose(w, problem.at(q).coefficients)


def test_more_steps_are_no_worse():
    problem = problem_of()
    values = [
        problem.at(solve(problem, smoothing=problem.smoothing, steps=k)[0]).value
        for k in (1, 10, 100, 1000)
    ]
    assert values == sorted(values, reverse=True)


def test_finds_the_exact_match_where_there_is_one():
    X = np.eye(3)
    q, w = variable_projection(X, X @ [0.2, 0.1, 0.3], np.diag([0.6, 0.3, 0.1]), radius=1.0)
    assert np.allclose(q, [0.6, 0.3, 0.1], atol=2e-3)
    assert np.allclose(w, [0.2, 0.1, 0.3], atol=1e-3)


def test_without_noise_it_is_no_worse_than_two_stages():
    X, y, moment, _, test = figure_task(0, 8000, epsilon=None)
    _, joint = variable_projection(X, y, moment, radius=1.0)
    weights = minimise_discrepancy(X, moment).weights
    assert error(joint, test) <= error(weighted_ridge(X, y, weights, ridge=1e-4), test)


@pytest.mark.slow
def test_figure_2():
    errors = []
    for seed in range(10):
        X, y, moment, _, test = figure_task(seed, 8000, epsilon=1.0)
        errors.append(error(variable_projection(X, y, moment, radius=1.0)[1], test))
    assert np.mean(errors) <= 3.5e-4  # public rows alone 9.5e-4, private labels 2.6e-4


def test_stops_at_the_noise_floor():
    X, y, moment, floor, _ = figure_task(0, 8000, epsilon=1.0)

    def reached(weights):
        return np.linalg.norm(moment - weighted_moment(X, weights), 2)

    stopped, w = variable_projection(X, y, moment, radius=1.0, tolerance=floor)
    full, _ = variable_projection(X, y, moment, radius=1.0)
    assert reached(full) < 0.9 * floor < reached(stopped) <= floor
    assert (stopped**2).sum() < (full**2).sum()  # nearer to uniform
    assert np.isfinite(w).all()
    at_once, _ = variable_projection(X, y, moment, radius=1.0, tolerance=9.0)
    assert np.array_equal(at_once, np.full(1000, 1 / 1000))


def test_does_not_depend_on_the_unit_of_measurement():
    problem = problem_of()
    q, w = solve(problem)
    for unit in (1e-3, 1e3):
        scaled, v = variable_projection(
            unit * problem.X,
            unit * problem.y,
            unit**2 * problem.target_moment,
            radius=problem.radius,
            ridge=unit**2 * problem.ridge,
        )
        assert np.allclose(scaled, q, atol=1e-6)
        assert np.allclose(v, w, atol=1e-6)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.5, 0.2]], [1.0]),
        ([[0.5], [0.1], [-0.7]], [1.0, 0.0, 2.0]),
        ([[0.5, 0.2], [0.1, -1.0], [0.3, 0.3]], [2.0, 2.0, 2.0]),
        ([[0.0, 0.0], [0.0, 0.0]], [1.0, 2.0]),
        ([[0.0, 0.0], [0.0, 0.0]], [0.0, 0.0]),
        ([[0.0, 0.0], [1.0, 0.0]], [1.0, 2.0]),
    ],
    ids=["m=1", "d=1", "constant labels", "zero rows", "zero everything", "flat"],
)
@pytest.mark.parametrize("ridge", [0.0, 1e-4])
@pytest.mark.parametrize("size", [0.0, 0.3])
def test_degenerate_input(X, y, ridge, size):
    target = size * np.eye(len(X[0]))
    q, w = variable_projection(X, y, target, radius=1.0, ridge=ridge, steps=50)
    assert abs(q.sum() - 1) < 1e-12
    assert q.min() >= 0
    assert np.isfinite(w).all()
    assert np.linalg.norm(w) <= 1 + 1e-9


def test_same_input_same_answer():
    assert np.array_equal(solve(problem_of())[0], solve(problem_of())[0])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"X": [[math.nan, 0.0]]}, "X"),
        ({"X": np.empty((0, 2))}, "X"),
        ({"y": [1.0]}, "y"),
        ({"y": [1.0, math.inf]}, "y"),
        ({"target_moment": np.eye(3)}, "target_moment"),
        ({"target_moment": [1.0, 2.0]}, "target_moment"),
        ({"radius": 0.0}, "radius"),
        ({"ridge": -1.0}, "ridge"),
        ({"steps": 0}, "steps"),
        ({"tolerance": -0.1}, "tolerance"),
    ],
)
def test_errors_name_the_argument(change, named):
    good = {"X": np.eye(2), "y": [1.0, 0.0], "target_moment": np.eye(2) / 2, "radius": 1.0}
    arguments = good | change
    places = [arguments.pop(name) for name in ("X", "y", "target_moment")]
    with pytest.raises(ValueError, match=f"^{named} "):
        variable_projection(*places, **arguments)
