import math

import numpy as np
import pytest

from dpadapt.discrepancy.matrices import row_scores
from dpadapt.papers.discrepancy.queries import RowBounds
from dpadapt.papers.discrepancy.smoothing import OneSidedSoftmax, PNorm, Softmax
from dpadapt.privacy import Cleaning
from dpadapt.privacy.statistics import SecondMoment

SHARP = [1.0, 30.0, 300.0]
ALL = [Softmax(mu) for mu in SHARP] + [OneSidedSoftmax(mu) for mu in SHARP] + [PNorm(1), PNorm(4)]
R, REACH, N = 1.3, 0.8, 7
BOUNDS = RowBounds(R, REACH, N)


def symmetric(rng, d, norm=1.0):
    A = rng.normal(size=(d, d))
    A = A + A.T
    return norm * A / max(np.abs(np.linalg.eigvalsh(A)).max(), 1e-300)


def spectral(M):
    return np.abs(np.linalg.eigvalsh(M)).max()


def trace_norm(M):
    return np.abs(np.linalg.eigvalsh(M)).sum()


def matrices(d):
    rng = np.random.default_rng(d)
    v = rng.normal(size=d)
    yield from (symmetric(rng, d, norm) for norm in (1e-3, 0.1, 1.0, 10.0))
    yield from (np.zeros((d, d)), np.eye(d), -np.eye(d), np.outer(v, v), -np.outer(v, v))


@pytest.mark.parametrize("smoothing", ALL, ids=str)
def test_gradient_agrees_with_central_differences(smoothing):
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(8, 4)), symmetric(rng, 4)
    q = rng.dirichlet(np.ones(8))

    def value(weights):
        return smoothing.value(target - (X * weights[:, None]).T @ X)

    gradient = row_scores(X, smoothing.gradient(target - (X * q[:, None]).T @ X))
    step = 1e-4 / max(1.0, getattr(smoothing, "mu", 1.0))
    unit = np.eye(8)
    numeric = [(value(q + step * e) - value(q - step * e)) / (2 * step) for e in unit]
    assert np.abs(gradient - numeric).max() <= 1e-5 * np.abs(gradient).max()


@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize("mu", SHARP)
def test_softmax_lies_within_its_bracket(mu, d):
    for M in matrices(d):
        for smoothing, norm in (
            (Softmax(mu), spectral(M)),
            (OneSidedSoftmax(mu), np.linalg.eigvalsh(M)[-1]),
        ):
            low, high = smoothing.bracket(smoothing.value(M), d)
            assert low - 1e-12 <= norm <= high + 1e-12 * (1 + norm)


@pytest.mark.parametrize("p", [1, 2, 6])
def test_p_norm_lies_within_its_bracket(p):
    for M in matrices(5):
        low, high = PNorm(p).bracket(PNorm(p).value(M), 5)
        assert low * (1 - 1e-12) <= spectral(M) <= high * (1 + 1e-12)


def test_error_counts_zero_eigenvalues_not_the_rank():
    """The paper's log(2 min(m + n, d)) is refuted by one row on each side in ten dimensions."""
    M, mu = np.zeros((10, 10)), 10.0
    M[0, 0] = 0.01
    error = Softmax(mu).value(M) - spectral(M)
    assert error > math.log(2 * 2) / mu
    assert error <= math.log(2 * 10) / mu


@pytest.mark.parametrize("d", [1, 6])
def test_extreme_sharpness_is_finite_and_of_trace_norm_one(d):
    M = symmetric(np.random.default_rng(1), d, norm=10.0)
    for smoothing in (Softmax(1e4), OneSidedSoftmax(1e4), Softmax(1e8)):
        H = smoothing.gradient(M)
        assert math.isfinite(smoothing.value(M))
        assert np.isfinite(H).all()
        assert trace_norm(H) <= 1 + 1e-12
    assert Softmax(1e4).value(M) == pytest.approx(10.0, abs=1e-3)


@pytest.mark.parametrize("smoothing", ALL, ids=str)
def test_zero_matrix(smoothing):
    H = smoothing.gradient(np.zeros((3, 3)))
    expected = np.eye(3) / 3 if isinstance(smoothing, OneSidedSoftmax) else np.zeros((3, 3))
    assert np.allclose(H, expected, atol=1e-15)


def pairs(rng, d):
    """Neighbouring rows, the extreme cases among them."""
    while True:
        x, other = rng.normal(size=(2, d))
        x *= R / np.linalg.norm(x)
        other *= R * rng.choice([1.0, rng.random()]) / np.linalg.norm(other)
        kind = rng.integers(5)
        if kind == 1:
            other = np.zeros(d)
        elif kind == 2:
            other = -x
        elif kind == 3 and d > 1:
            other -= (other @ x) * x / R**2
            other *= R / np.linalg.norm(other)
        elif kind == 4:
            other = x.copy()
        yield x, other


def moves(smoothing_of, d, count, seed=0):
    """Largest observed changes, as fractions of what is claimed."""
    rng = np.random.default_rng(seed)
    worst = dict.fromkeys(("entry", "range", "matrix", "trace", "value", "spectral"), 0.0)
    for _, (x, other) in zip(range(count), pairs(rng, d), strict=False):
        smoothing = smoothing_of(rng)
        rest = rng.normal(size=(rng.integers(0, N), d))
        rest *= R * rng.random() / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-9)
        X = rng.normal(size=(4, d))
        X *= REACH * np.r_[1.0, 1.0, rng.random(2)][:, None] / np.linalg.norm(X, axis=1)[:, None]
        if rng.random() < 0.5:
            X[0] = REACH * x / R  # aligned with what changes
            X[1] = REACH * other / R
        public = (X * rng.dirichlet(np.full(4, 0.3))[:, None]).T @ X
        base = rest.T @ rest / N - public
        one, two = base + np.outer(x, x) / N, base + np.outer(other, other) / N
        if rng.random() < 0.3:  # where the softmax is steepest: the change goes through zero
            one, two = np.outer(x, x) / N, np.outer(other, other) / N
            one, two = one - (one + two) / 2, two - (one + two) / 2
        H, H2 = smoothing.gradient(one), smoothing.gradient(two)
        change = np.append(row_scores(X, H - H2), 0.0)  # a row of zeros is a row
        observed = {
            "entry": np.abs(change).max() / smoothing.sensitivity(BOUNDS),
            "range": np.ptp(change) / smoothing.range_sensitivity(BOUNDS),
            "matrix": np.linalg.norm(H - H2) / smoothing.matrix_sensitivity(BOUNDS),
            "trace": trace_norm(H - H2) / (getattr(smoothing, "mu", math.inf) * BOUNDS.move),
            "value": abs(smoothing.value(one) - smoothing.value(two))
            / smoothing.value_sensitivity(BOUNDS),
            "spectral": abs(spectral(one) - spectral(two)) / BOUNDS.move,
        }
        worst = {name: max(worst[name], observed[name]) for name in worst}
    return worst


@pytest.mark.parametrize("d", [1, 2, 4])
def test_softmax_sensitivities_are_never_exceeded(d):
    worst = moves(lambda rng: Softmax(float(np.exp(rng.uniform(-4, 6)))), d, 3400)
    assert max(worst.values()) <= 1 + 1e-9
    if d == 1:  # and no number below them would do
        assert min(worst["entry"], worst["range"], worst["matrix"], worst["value"]) >= 0.99


def test_half_of_the_softmax_sensitivity_would_be_refuted():
    worst = moves(lambda rng: Softmax(0.01), 2, 300)
    assert worst["range"] > 0.5


@pytest.mark.parametrize("d", [1, 2, 3])
def test_one_sided_sensitivities_are_never_exceeded(d):
    worst = moves(lambda rng: OneSidedSoftmax(float(np.exp(rng.uniform(-4, 6)))), d, 1500)
    assert max(worst.values()) <= 1 + 1e-9
    if d == 2:  # two orthogonal rows attain all of them
        assert min(worst.values()) >= 0.99


@pytest.mark.parametrize("p", [1, 2, 5])
def test_p_norm_sensitivities_are_never_exceeded(p):
    worst = moves(lambda rng: PNorm(p), 3, 1200)
    assert max(worst.values()) <= 1 + 1e-9
    if p == 1:  # H = 2M: Frobenius sensitivity 2 sqrt(2) r^2 / n, attained by orthogonal rows
        assert min(worst["matrix"], worst["range"]) >= 0.99


@pytest.mark.parametrize("smoothing", ALL, ids=str)
def test_smoothness_and_slope_bound_the_gradient(smoothing):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(5, 3))
    X *= REACH / np.linalg.norm(X, axis=1, keepdims=True)
    private = rng.normal(size=(N, 3))
    private *= R / np.linalg.norm(private, axis=1, keepdims=True)
    for _ in range(100):
        q, other = rng.dirichlet(np.full(5, 0.4), size=2)
        g, g2 = (
            row_scores(X, smoothing.gradient(private.T @ private / N - (X * w[:, None]).T @ X))
            for w in (q, other)
        )
        change = np.abs(q - other).sum()
        assert np.abs(g - g2).max() <= smoothing.smoothness(REACH) * change * (1 + 1e-9)
        assert np.abs(g).max() <= smoothing.slope(BOUNDS) * (1 + 1e-9)


def test_printed_smoothness_of_the_p_norm_is_too_small():
    """At p = 1, G is the squared Frobenius norm, of modulus 2, not 1."""
    X, unit = np.array([[1.0]]), np.eye(1)
    change = row_scores(X, PNorm(1).gradient(unit) - PNorm(1).gradient(0 * unit))
    assert abs(change[0]) == pytest.approx(2.0)
    assert PNorm(1).smoothness(1.0) == 2.0


def test_scores_in_blocks_equal_scores_at_once():
    X = np.random.default_rng(0).normal(size=(9001, 3))
    H = symmetric(np.random.default_rng(1), 3)
    assert np.allclose(row_scores(X, H), -np.einsum("ij,jk,ik->i", X, H, X), atol=1e-12)


def test_bounds_hold_the_intercept_and_the_longest_public_row():
    query = SecondMoment(Cleaning(radius=3.0, intercept=4.0))
    bounds = RowBounds.of(query, np.array([[0.0, 2.0], [1.0, 0.0]]), 50)
    assert (bounds.private, bounds.public, bounds.n_rows) == (5.0, 2.0, 50)
    assert bounds.move == pytest.approx(25 / 50)
    assert bounds.move > 25 / 50  # rounding is paid for


@pytest.mark.parametrize("mu", [0, -1.0, math.inf, math.nan, "2", True])
@pytest.mark.parametrize("kind", [Softmax, OneSidedSoftmax])
def test_bad_sharpness_is_named(kind, mu):
    with pytest.raises(ValueError, match="mu"):
        kind(mu)


@pytest.mark.parametrize("p", [0, 1.5, math.inf])
def test_bad_power_is_named(p):
    with pytest.raises(ValueError, match="p must"):
        PNorm(p)


def test_rows_of_zeros_are_refused_by_name():
    with pytest.raises(ValueError, match="X must"):
        RowBounds.of(SecondMoment(Cleaning(radius=1.0)), np.zeros((3, 2)), 5)
