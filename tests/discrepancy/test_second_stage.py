import numpy as np
import pytest

from dpadapt.discrepancy.second_stage import shrunken_fit, weighted_ridge


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    return X, rng.normal(size=60), rng.dirichlet(np.ones(60))


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 10.0])
def test_gradient_vanishes(problem, ridge):
    X, y, q = problem
    w = weighted_ridge(X, y, q, ridge=ridge)
    np.testing.assert_allclose(X.T @ (q * (X @ w - y)) + ridge * w, 0, atol=1e-12)


def test_integer_weights_repeat_rows(problem):
    X, y, _ = problem
    counts = np.random.default_rng(1).integers(0, 4, size=len(y))
    weighted = weighted_ridge(X, y, counts, ridge=0.3)
    repeated = weighted_ridge(
        X.repeat(counts, axis=0), y.repeat(counts), np.ones(counts.sum()), ridge=0.3
    )
    np.testing.assert_allclose(weighted, repeated, atol=1e-12)


def test_singular_moment_gives_least_norm_solution(problem):
    X, y, q = problem
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    w = weighted_ridge(X, y, q, ridge=0.0)
    root = np.sqrt(q)
    expected = np.linalg.lstsq(root[:, None] * X, root * y, rcond=1e-9)[0]
    np.testing.assert_allclose(w, expected, atol=1e-8)


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_nothing_to_learn_gives_zero(ridge):
    assert not weighted_ridge(np.zeros((3, 2)), np.ones(3), np.ones(3) / 3, ridge=ridge).any()


def test_negative_penalty_is_refused(problem):
    with pytest.raises(ValueError, match="ridge"):
        weighted_ridge(*problem, ridge=-1.0)


@pytest.fixture
def shifted():
    """A curved truth, a straight model, and weights towards large x."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    X = np.column_stack([x, np.ones(4000)])
    weights = np.exp(x) / np.exp(x).sum()
    return X, x**2 + 0.1 * rng.normal(size=4000), weights


def test_uniform_weights_give_the_public_fit(shifted):
    X, y, _ = shifted
    fit = shrunken_fit(X, y, np.full(len(y), 1 / len(y)), ridge=0.0)
    expected = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(fit.coefficients, expected, atol=1e-10)
    assert fit.share == 0


def test_a_clear_move_is_made_nearly_whole(shifted):
    X, y, weights = shifted
    fit = shrunken_fit(X, y, weights, ridge=0.0)
    centered = weighted_ridge(X, y, weights, ridge=0.0)
    assert 0.97 < fit.share < 1
    np.testing.assert_allclose(fit.coefficients, centered, rtol=0.05)


def test_a_move_within_its_sampling_error_is_not_made(shifted):
    """The truth is straight, so that weights on few rows move the fit by chance alone."""
    X, _, _ = shifted
    rng = np.random.default_rng(1)
    y = X[:, 0] + rng.normal(size=len(X))
    shares = []
    for _ in range(50):
        weights = np.zeros(len(X))
        weights[rng.choice(len(X), size=20, replace=False)] = 1 / 20
        shares.append(shrunken_fit(X, y, weights, ridge=0.0).share)
    assert np.mean(shares) < 0.35


def test_a_fit_through_every_row_is_not_trusted():
    """As many weighted rows as coefficients: residuals are zero, leave-one-out ones are not."""
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=(500, 9)), np.ones(500)])
    y = X[:, 0] + rng.normal(size=500)
    weights = np.zeros(500)
    weights[:11] = 1 / 11
    assert shrunken_fit(X, y, weights, ridge=1e-6).share == 0


def test_shrunken_fit_does_not_depend_on_the_label_origin(shifted):
    X, y, weights = shifted
    one = shrunken_fit(X, y, weights, ridge=0.1)
    two = shrunken_fit(X, y + 1000.0, weights, ridge=0.1)
    np.testing.assert_allclose(two.coefficients - [0, 1000.0], one.coefficients, atol=1e-8)


def test_constant_labels_need_no_move(shifted):
    X, _, weights = shifted
    fit = shrunken_fit(X, np.ones(len(X)), weights, ridge=1e-4)
    np.testing.assert_allclose(fit.coefficients, [0, 1], atol=1e-12)
