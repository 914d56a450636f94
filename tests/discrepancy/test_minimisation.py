import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from dpadapt.discrepancy.dual import DiscrepancyLevel, DualRows, TiltedWeights, newton, quasi_newton
from dpadapt.discrepancy.minimisation import DiscrepancySolution, minimise_discrepancy


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
    rounding = 1e-12 * max(1.0, 1 / solution.uniform_discrepancy)
    assert solution.gap <= gap * (1 + 1e-9) + rounding
    excess = achieved - solution.lower_bound
    assert solution.gap * solution.uniform_discrepancy == pytest.approx(excess, abs=1e-10)


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


def reachable(m, d, seed=8):
    """Return rows and a moment that some weights of theirs match: the minimum is zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) / 4
    weights = rng.exponential(size=m)
    return X, moment(X, weights / weights.sum())


@pytest.mark.parametrize(("m", "d"), [(1000, 5), (4000, 11), (6000, 30)])
def test_reachable_target_is_matched_to_nine_digits_in_few_passes(m, d):
    X, target = reachable(m, d)
    solution = minimise_discrepancy(X, target, gap=1e-9, max_iter=300)
    assert solution.lower_bound == 0
    assert spectral(target - moment(X, solution.weights)) <= 1e-9 * solution.uniform_discrepancy


def test_maximum_entropy_weights_of_a_reachable_target():
    """Of all weights that match, the tilted ones are nearest to uniform, so nearer than these."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(2000, 4)) / 2
    given = rng.exponential(size=2000)
    given /= given.sum()
    found = minimise_discrepancy(X, moment(X, given), gap=1e-8).weights
    assert found @ np.log(2000 * found) < 0.1 * (given @ np.log(2000 * given))


def test_unreachable_target_is_certified_in_few_passes():
    """Few rows carry the weight: the preconditioner must know them."""
    X, target = shifted(0, m=1000, d=20)
    solution = minimise_discrepancy(X, target, gap=1e-3, max_iter=400)
    assert solution.lower_bound > 0.05 * solution.uniform_discrepancy
    check_certificate(solution, X, target, 1e-3)


def test_minimum_that_thousands_of_rows_share_is_certified():
    """Between the two: fewer rows than products have the weight, and L-BFGS takes over."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(5000, 39)), np.ones(5000)])
    T = np.column_stack([rng.normal(0.12, 0.75, size=(5000, 39)), np.ones(5000)])
    target = T.T @ T / 5000
    solution = minimise_discrepancy(X, target, gap=0.01, max_iter=600)
    assert solution.lower_bound > 0
    check_certificate(solution, X, target, 0.01)


@pytest.mark.parametrize("solver", [newton, quasi_newton])
def test_either_solver_reaches_a_level_and_notices_an_impossible_one(solver):
    X, target = shifted(0, m=200, d=4)
    source = DualRows(X, target)
    uniform = TiltedWeights(source, np.zeros_like(target))
    start = TiltedWeights(source, uniform.residual)
    least = minimise_discrepancy(X, target, gap=1e-5).lower_bound / source.unit**2
    step = 0.2 * (uniform.discrepancy - least)
    above = DiscrepancyLevel(least + step, 0.0, np.inf, 0.1 * step, True, 200)
    assert above.solved_by(solver(source, start, above).best)
    X, target = shifted(0, m=60, d=8)
    source = DualRows(X, target)
    uniform = TiltedWeights(source, np.zeros_like(target))
    start = TiltedWeights(source, uniform.residual)
    least = minimise_discrepancy(X, target, gap=1e-4).lower_bound / source.unit**2
    below = DiscrepancyLevel(0.8 * least, 0.0, np.inf, 0.05 * least, False, 400)
    assert least > 0
    assert below.aim < solver(source, start, below).lower <= least * (1 + 1e-3)


def test_single_precision_products_lose_no_digits(monkeypatch):
    X, target = reachable(3000, 12)
    monkeypatch.setattr("dpadapt.discrepancy.dual._LARGE", 1)
    assert DualRows(X, target).coarse.dtype == np.float32
    solution = minimise_discrepancy(X, target, gap=1e-9, max_iter=300)
    assert spectral(target - moment(X, solution.weights)) <= 1e-9 * solution.uniform_discrepancy


@pytest.mark.slow
def test_largest_size_reaches_the_default_gap():
    X, target = reachable(100_000, 200)
    solution = minimise_discrepancy(X, target, max_iter=200)
    check_certificate(solution, X, target, 0.001)


def test_the_gap_is_the_part_of_the_uniform_discrepancy_not_known_to_be_needed():
    given = {"weights": np.ones(1), "tilt": np.zeros((1, 1)), "iterations": 1}
    solution = DiscrepancySolution(
        discrepancy=3.0, lower_bound=1.0, uniform_discrepancy=4.0, **given
    )
    assert solution.gap == 0.5
    perfect = DiscrepancySolution(
        discrepancy=0.0, lower_bound=0.0, uniform_discrepancy=0.0, **given
    )
    assert perfect.gap == 0


def test_search_ends_when_the_minimum_is_known_to_exceed_the_limit():
    X, target = shifted(0, m=60, d=8)
    patient = minimise_discrepancy(X, target)
    hasty = minimise_discrepancy(X, target, give_up=0.5 * patient.lower_bound)
    assert 0.5 * patient.lower_bound < hasty.lower_bound <= patient.discrepancy
    assert hasty.iterations < patient.iterations


@pytest.mark.parametrize("seed", range(12))
def test_badly_scaled_and_repeated_columns_keep_the_certificate_valid(seed):
    rng = np.random.default_rng(seed)
    m, d = int(rng.choice([3, 50, 1000])), 3
    X = rng.normal(size=(m, d)) * [0.01, 1.0, 100.0]
    X[:, 1] = X[:, 0]
    target = noisy(moment(X, rng.dirichlet(np.ones(m))), 100.0, seed)
    solution = minimise_discrepancy(X, target, max_iter=200)
    assert solution.lower_bound <= solution.discrepancy * (1 + 1e-9)
    assert solution.discrepancy <= solution.uniform_discrepancy
    assert (solution.tilt == solution.tilt.T).all()


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
