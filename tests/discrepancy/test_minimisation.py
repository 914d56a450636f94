import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from dpadapt.discrepancy.minimisation import minimise_discrepancy


def moment(X, weights):
    return (X * weights[:, None]).T @ X


def spectral(matrix):
    return np.abs(np.linalg.eigvalsh(matrix)).max()


def shifted(seed, m=60, d=3, n=500, shift=0.4):
    """Return public rows and the moment of rows from a shifted distribution."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(m, d - 1)), np.ones(m)])
    T = np.column_stack([0.7 * rng.normal(size=(n, d - 1)) + shift, np.ones(n)])
    return X, T.T @ T / n


def noisy(matrix, scale, seed=0):
    noise = np.random.default_rng(seed).normal(size=matrix.shape)
    return matrix + scale * (noise + noise.T) / 2


def exact_minimum(X, target):
    """Solve the semidefinite program by cutting planes |v.(M0 - S(q)).v| <= t."""
    m = len(X)
    directions = list(np.linalg.eigh(target - moment(X, np.full(m, 1 / m)))[1].T)
    while True:
        forms = np.array([(X @ v) ** 2 for v in directions])
        wanted = np.array([v @ target @ v for v in directions])
        ones = np.ones((len(wanted), 1))
        program = linprog(
            np.r_[np.zeros(m), 1.0],
            A_ub=np.block([[-forms, -ones], [forms, -ones]]),
            b_ub=np.r_[-wanted, wanted],
            A_eq=np.r_[np.ones(m), 0.0][None],
            b_eq=[1.0],
        )
        q, bound = program.x[:-1], program.x[-1]
        values, vectors = np.linalg.eigh(target - moment(X, q))
        if np.abs(values).max() <= bound + 1e-5:
            return bound
        directions += list(vectors.T[np.abs(values) > bound])


def check_certificate(solution, X, target, gap):
    assert solution.weights.shape == (len(X),)
    assert (solution.weights >= 0).all()
    assert abs(solution.weights.sum() - 1) <= 1e-12
    achieved = spectral(target - moment(X, solution.weights))
    assert solution.discrepancy == pytest.approx(achieved, abs=1e-10)
    excess = solution.discrepancy - solution.lower_bound
    allowed = gap * max(solution.lower_bound, solution.uniform_discrepancy / 10)
    assert excess <= allowed * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noise", [0.0, 0.3, 3.0])
def test_certificate_brackets_the_exact_minimum(seed, noise):
    X, target = shifted(seed)
    target = noisy(target, noise, seed)
    solution = minimise_discrepancy(X, target, gap=0.01)
    check_certificate(solution, X, target, 0.01)
    assert solution.lower_bound - 1e-4 <= exact_minimum(X, target) <= solution.discrepancy + 1e-4


@pytest.mark.parametrize("d", [1, 2, 8, 20])
@pytest.mark.parametrize("m", [1, 2, 30, 1000])
def test_any_shape(m, d):
    X, target = shifted(7, m=m, d=d)
    target = noisy(target, 0.1)
    check_certificate(minimise_discrepancy(X, target, gap=0.02), X, target, 0.02)


@pytest.mark.parametrize("fraction", [0.3, 0.6, 0.9])
def test_weights_are_nearest_to_uniform_within_the_tolerance(fraction):
    X, target = shifted(1, m=25)
    tolerance = fraction * minimise_discrepancy(X, target).uniform_discrepancy
    solution = minimise_discrepancy(X, target, tolerance=tolerance)
    assert solution.discrepancy <= tolerance

    def divergence(q):
        q = np.maximum(q, 1e-300)
        return float(q @ np.log(q * len(q)))

    def slow_reference(level):
        return minimize(
            divergence,
            np.full(25, 1 / 25),
            method="SLSQP",
            bounds=[(0, 1)] * 25,
            constraints=[
                {"type": "eq", "fun": lambda q: q.sum() - 1},
                {
                    "type": "ineq",
                    "fun": lambda q: level**2 - np.linalg.eigvalsh(target - moment(X, q)) ** 2,
                },
            ],
            options={"maxiter": 500, "ftol": 1e-10},
        ).fun

    ours = divergence(solution.weights)
    assert slow_reference(tolerance) - 1e-6 <= ours <= slow_reference(0.7 * tolerance) + 1e-6


def test_weights_are_the_exponential_of_the_tilt():
    X, target = shifted(2)
    solution = minimise_discrepancy(X, target)
    np.testing.assert_allclose(solution.tilt, solution.tilt.T, atol=1e-9)
    logs = np.einsum("ij,jk,ik->i", X, solution.tilt, X)
    expected = np.exp(logs - logs.max())
    np.testing.assert_allclose(solution.weights, expected / expected.sum(), rtol=1e-6, atol=1e-12)


def test_equal_rows_get_equal_weights():
    X, target = shifted(3)
    solution = minimise_discrepancy(np.vstack([X, X, -X]), target)
    np.testing.assert_allclose(solution.weights[:60], solution.weights[60:120], rtol=1e-9)
    np.testing.assert_allclose(solution.weights[:60], solution.weights[120:], rtol=1e-9)


def test_no_shift_gives_exactly_uniform_weights():
    X, _ = shifted(4, m=777, d=6)
    solution = minimise_discrepancy(X, X.T @ X / 777)
    assert (solution.weights == 1 / 777).all()
    assert not solution.tilt.any()


def test_shift_within_the_tolerance_gives_exactly_uniform_weights():
    X, target = shifted(5)
    tolerance = spectral(target - X.T @ X / len(X)) * 1.001
    assert (minimise_discrepancy(X, target, tolerance=tolerance).weights == 1 / len(X)).all()


def test_scale_does_not_matter():
    X, target = shifted(6)
    small = minimise_discrepancy(X * 1e-3, target * 1e-6)
    large = minimise_discrepancy(X * 1e3, target * 1e6)
    np.testing.assert_allclose(small.weights, large.weights, rtol=1e-3, atol=1e-6)


def test_target_far_outside_picks_the_outermost_row():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [1.5, 0.0]])
    solution = minimise_discrepancy(X, np.diag([1e6, 0.0]), gap=1e-7)
    assert solution.weights.argmax() == 1
    check_certificate(solution, X, np.diag([1e6, 0.0]), 1e-7)


def test_rows_of_zeros_and_negative_target():
    for X in (np.zeros((4, 2)), np.array([[0.0, 0.0], [3.0, 1.0]])):
        solution = minimise_discrepancy(X, -np.eye(2))
        check_certificate(solution, X, -np.eye(2), 0.01)


def test_interior_target_is_reached():
    """With more rows than moments the minimum is zero; one pass budget must get close to it."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(1000, 10)) / 4
    target = moment(X, rng.dirichlet(np.full(1000, 0.5)))
    solution = minimise_discrepancy(X, target)
    assert solution.discrepancy <= 0.001 * solution.uniform_discrepancy


def test_too_few_iterations_keep_the_certificate_valid():
    X, target = shifted(9, m=300, d=6)
    hurried = minimise_discrepancy(X, target, gap=1e-3, max_iter=8)
    patient = minimise_discrepancy(X, target, gap=1e-3)
    assert hurried.iterations <= 8 + 20
    assert hurried.lower_bound <= patient.discrepancy
    assert hurried.discrepancy >= patient.lower_bound
    assert spectral(target - moment(X, hurried.weights)) == pytest.approx(hurried.discrepancy)


def test_same_input_same_output():
    X, target = shifted(10)
    first, second = (minimise_discrepancy(X, target).weights for _ in range(2))
    assert (first == second).all()


def test_gap_must_be_positive():
    with pytest.raises(ValueError, match="gap"):
        minimise_discrepancy(np.eye(2), np.eye(2), gap=0.0)
