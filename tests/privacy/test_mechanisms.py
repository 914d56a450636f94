"""The mathematics of the mechanisms; the law of their noise is tested in ``tests/statistical``."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt.papers.selection.exponential import noisy_argmin
from dpadapt.papers.selection.laplace import laplace as add_laplace
from dpadapt.privacy.core.noise import NoiseSource, SeededNoise
from dpadapt.privacy.mechanisms.gaussian import (
    NUGGET,
    from_svec,
    gaussian_process,
    gaussian_process_slack,
    svec,
    symmetric_gaussian,
)
from dpadapt.privacy.mechanisms.gaussian import gaussian as add_gaussian
from dpadapt.privacy.mechanisms.randomised_response import randomised_response


class NoNoise(SeededNoise):
    """Adds nothing and remembers what it was to be added to (tests only)."""

    def __init__(self):
        super().__init__(0)
        self.seen = None

    def add_gaussian(self, values, scale):
        self.seen = values.copy()
        return values


# Symmetric matrices ----------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_svec_is_an_isometry_and_from_svec_its_inverse(d):
    rng = np.random.default_rng(d)
    for _ in range(50):
        A, B = (M + M.T for M in rng.normal(size=(2, d, d)))
        assert svec(A).shape == (d * (d + 1) // 2,)
        assert svec(A) @ svec(B) == pytest.approx(np.sum(A * B), rel=1e-12, abs=1e-12)
        assert np.linalg.norm(svec(A)) == pytest.approx(np.linalg.norm(A), rel=1e-12)
        assert np.allclose(from_svec(svec(A)), A, rtol=1e-15, atol=0)
        v = rng.normal(size=d * (d + 1) // 2)
        assert np.allclose(svec(from_svec(v)), v, rtol=1e-14, atol=0)
        assert np.array_equal(from_svec(v), from_svec(v).T)
    if d > 1:  # power: without the factor sqrt(2) it is no isometry
        assert np.linalg.norm(A[np.triu_indices(d)]) < 0.999 * np.linalg.norm(A)


def test_svec_of_nothing():
    assert svec(np.zeros((0, 0))).shape == (0,)
    assert from_svec(np.zeros(0)).shape == (0, 0)


def test_noise_goes_to_the_isometric_coordinates():
    source, M = NoNoise(), np.array([[1.0, 2.0], [2.0, 5.0]])
    assert np.allclose(symmetric_gaussian(source, M, 1.0), M)
    assert np.allclose(source.seen, [1.0, 2 * math.sqrt(2), 5.0])


def test_float32_values_are_noised_in_float64():
    value = np.ones(3, dtype=np.float32)
    for mechanism in (add_gaussian, add_laplace):
        assert mechanism(SeededNoise(0), value, 1.0).dtype == np.float64


def test_two_matrices_are_no_further_apart_after_the_symmetric_mechanism_than_before():
    """A matrix that is not symmetric would be stretched by its upper triangle alone."""
    seen = []

    class Seen(SeededNoise):
        def add_gaussian(self, values, scale):
            seen.append(values.copy())
            return super().add_gaussian(values, scale)

    rng = np.random.default_rng(0)
    corner = np.zeros((3, 3))
    corner[0, 1] = 1.0
    for move in (corner, *rng.normal(size=(50, 3, 3))):
        value = rng.normal(size=(3, 3))
        noisy = [symmetric_gaussian(Seen(0), one, 1.0) for one in (value, value + move)]
        assert np.linalg.norm(seen[-1] - seen[-2]) <= np.linalg.norm(move) * (1 + 1e-12)
        assert all((one == one.T).all() for one in noisy)
    with pytest.raises(ValueError, match="square"):
        symmetric_gaussian(SeededNoise(0), np.zeros((2, 3)), 1.0)


# Gaussian processes ----------------------------------------------------------------------------


def rbf(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * (a[:, None] - b[None, :]) ** 2)


def weights_apart(seed: int, n: int = 50) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Two kernel ridge fits that differ in one label: points, both coefficients, ||w - w'||."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
    other = y.copy()
    other[0] = -np.sign(y[0])
    K = rbf(x, x)
    a, b = (np.linalg.solve(K + 0.1 * n * np.eye(n), t) for t in (y, other))
    return x, a, b, math.sqrt((a - b) @ K @ (a - b))


def whitened(values: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Where the mechanism puts isotropic noise."""
    source = NoNoise()
    gaussian_process(source, values, K, scale=1.0)
    return source.seen


@pytest.mark.parametrize("points", [14, 60, 300])
@pytest.mark.parametrize("seed", range(3))
def test_dense_queries_cost_no_more_than_the_distance_of_the_weights(points, seed):
    """Amendments A1 and A2: the whitened answers of two neighbours, in float64 with a nugget."""
    x, a, b, distance = weights_apart(seed)
    z = np.random.default_rng(seed).uniform(-1, 1, points)
    K = rbf(z, z)
    one, other = (whitened(rbf(z, x) @ w, K) for w in (a, b))
    slack = gaussian_process_slack(points, np.abs(rbf(z, x) @ a).max(), 1.0)
    assert np.linalg.norm(one - other) <= distance * (1 + 1e-6)
    assert np.linalg.norm(one - other) >= 0.5 * distance  # the bound is not idle
    assert slack < 1e-6 * distance


def test_values_in_float32_would_break_it():
    """Amendment A2: rounding in float32 is blown up by the nugget, and refused therefore."""
    broken = []
    for seed in range(3):
        x, a, b, distance = weights_apart(seed)
        z = np.random.default_rng(seed).uniform(-1, 1, 300)
        K = rbf(z, z)
        cross = rbf(z, x).astype(np.float32)
        one, other = ((cross @ w.astype(np.float32)).astype(np.float64) for w in (a, b))
        root = np.linalg.cholesky(K + 1e-10 * np.eye(300))  # the nugget of the first specification
        moved = np.linalg.norm(np.linalg.solve(root, one - other))
        broken.append(moved / distance)
        with pytest.raises(TypeError, match="float64: rounding in float32 leaks"):
            gaussian_process(SeededNoise(0), one.astype(np.float32), K, 1.0)
        with pytest.raises(TypeError, match="float64: rounding in float32 leaks"):
            gaussian_process(SeededNoise(0), one, K.astype(np.float32), 1.0)
    assert max(broken) > 1.05


def test_without_a_nugget_the_covariance_is_numerically_singular():
    """Amendment A1: conditional variances of dense queries compute to zero; answers then leak."""
    z = np.random.default_rng(0).uniform(-1, 1, 30)
    K = rbf(z, z)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(K)
    # one query after the other, variance clipped at zero: some are answered without noise
    zero = 0
    for t in range(1, 30):
        past = K[:t, :t]
        l2 = K[t, :t] @ np.linalg.lstsq(past, K[t, :t], rcond=None)[0]
        zero += K[t, t] - l2 <= 1e-15
    assert zero > 5
    noise = gaussian_process(SeededNoise(0), np.zeros(30), K, 1.0)  # with the nugget all is well
    assert np.isfinite(noise).all()
    assert np.linalg.eigvalsh(K + NUGGET * np.eye(30)).min() > 0.9e-6


def test_a_pool_of_duplicates_has_noise_too():
    K = np.ones((4, 4))
    noise = gaussian_process(SeededNoise(0), np.zeros(4), K, 1.0)
    assert 1e-4 < np.ptp(noise) < 1e-2  # the nugget, of sd 1e-3, is drawn for each point
    assert abs(noise.mean()) > 0.01


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4), (4,), (4, 4, 1)])
def test_the_covariance_must_fit_the_values(shape):
    with pytest.raises(ValueError, match="covariance must be 4 x 4"):
        gaussian_process(SeededNoise(0), np.zeros(4), np.ones(shape), 1.0)


def test_the_slack_grows_as_stated():
    one = gaussian_process_slack(1, 1.0, 1.0)
    assert gaussian_process_slack(100, 1.0, 1.0) == pytest.approx(10 * one)
    assert gaussian_process_slack(1, 3.0, 1.0) == pytest.approx(3 * one)
    assert gaussian_process_slack(1, 1.0, 4.0) == pytest.approx(one / 2)
    assert one >= 2 * np.finfo(float).eps / math.sqrt(NUGGET)


# Noisy argmin ----------------------------------------------------------------------------------


def log_probabilities(scores: np.ndarray, scale: float) -> np.ndarray:
    from scipy.special import log_softmax

    return log_softmax(-scores / scale)


def test_the_log_ratio_of_a_choice_is_at_most_range_over_scale():
    rng, scale, worst = np.random.default_rng(0), 0.37, 0.0
    for trial in range(5000):
        scores = rng.normal(size=int(rng.integers(2, 9))) * rng.choice([0.01, 1.0, 30.0])
        change = rng.uniform(-1, 1, size=scores.size)
        if trial % 3 == 0:
            change = rng.choice([-1.0, 1.0], size=scores.size)
        reach = change.max() - change.min()  # the range sensitivity of this pair
        ratio = log_probabilities(scores, scale) - log_probabilities(scores + change, scale)
        assert np.abs(ratio).max() <= reach / scale * (1 + 1e-9) + 1e-12
        assert ratio.max() - ratio.min() <= reach / scale * (1 + 1e-9) + 1e-12  # bounded range
        if reach > 0:
            worst = max(worst, float(np.abs(ratio).max()) / (reach / scale))
    assert worst > 0.999  # attained: half of it (the linf-sensitivity, say) would be passed


def test_probabilities_of_the_mechanism_are_those_of_the_bound():
    """The wrong sign, argmin(scores + Gumbel), has other probabilities, and breaks the bound."""
    rng = np.random.default_rng(0)
    gumbel = rng.gumbel(size=(400_000, 3))

    def worst_log_ratio(sign: int) -> float:
        frequencies = [
            np.bincount(np.argmin(s + sign * gumbel, axis=1), minlength=3) / len(gumbel)
            for s in (np.array([0.0, 2.0, 2.0]), np.array([1.0, 1.0, 1.0]))
        ]
        return float(np.abs(np.log(frequencies[0] / frequencies[1])).max())

    assert worst_log_ratio(-1) <= 2.0 * 1.01
    expected = np.exp(log_probabilities(np.array([0.0, 2.0, 2.0]), 1.0))
    source = SeededNoise(4)
    scores = np.array([0.0, 2.0, 2.0])
    counts = np.bincount([noisy_argmin(source, scores, 1.0) for _ in range(20_000)], minlength=3)
    assert np.allclose(counts / 20_000, expected, atol=0.02)


def test_randomised_response_keeps_its_shape_and_its_categories():
    source: NoiseSource = SeededNoise(0)
    answers = np.arange(12).reshape(3, 4) % 3
    noisy = randomised_response(source, answers, categories=3, epsilon=0.1)
    assert noisy.shape == (3, 4)
    assert set(noisy.ravel()) <= {0, 1, 2}
    assert noisy.dtype == np.int64
    same = randomised_response(source, answers, categories=3, epsilon=1e6)
    assert (same == answers).all()
    for epsilon in (1e-9, 0.1, 5.0, 30.0):
        lies = np.mean(randomised_response(source, np.zeros(50_000, int), 2, epsilon) != 0)
        assert lies == pytest.approx(1 / (1 + math.exp(epsilon)), abs=0.012)
