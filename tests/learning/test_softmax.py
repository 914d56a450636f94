"""Residuals, gradients and losses of the softmax model, against the plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import dpadapt.learning.softmax as ours
from dpadapt.learning.softmax import gradient, gradient_norms, loss, numerators, residuals


def sample(rng: np.random.Generator, n: int, d: int, c: int, dtype: type = np.float64):
    X = rng.normal(size=(n, d)).astype(dtype)
    codes = rng.integers(-1, c, size=n)
    return X, codes, rng.normal(size=(d, c))


def plain(X: np.ndarray, codes: np.ndarray, W: np.ndarray) -> np.ndarray:
    R = softmax(X.astype(float) @ W, axis=1)
    for i, code in enumerate(codes):
        if code < 0:
            R[i] = 0
        else:
            R[i, code] -= 1
    return R


@pytest.mark.parametrize("classes", [2, 7, 16, 17, 300])
def test_softmax_and_its_logarithm_are_those_of_scipy(classes):
    scores = 30 * np.random.default_rng(classes).normal(size=(40, classes))
    given = scores.copy()
    np.testing.assert_allclose(ours.softmax(scores), softmax(scores, axis=1), rtol=1e-13)
    np.testing.assert_allclose(ours.softmax(scores[0]), softmax(scores[0]), rtol=1e-13)
    np.testing.assert_allclose(ours.log_sum_exp(scores), logsumexp(scores, axis=1), rtol=1e-13)
    np.testing.assert_array_equal(scores, given)
    assert ours.softmax(scores[:0]).shape == (0, classes)


def test_softmax_is_stable():
    scores = np.array([[1e4, 0.0], [-1e4, -1e4]])
    np.testing.assert_allclose(ours.softmax(scores), [[1, 0], [0.5, 0.5]])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "c"), [(1, 1, 2), (37, 5, 2), (64, 9, 4), (20, 3, 1000)])
def test_residuals_are_probabilities_less_the_class(n, d, c, dtype, order):
    X, codes, W = sample(np.random.default_rng(c), n, d, c, dtype)
    given = X.copy()
    R = residuals(np.asarray(X, order=order), codes, W)
    assert R.dtype == dtype
    np.testing.assert_allclose(R, plain(X, codes, W), atol=3e-6 if dtype == np.float32 else 1e-14)
    np.testing.assert_array_equal(X, given)  # in place, but not in the caller's rows


def test_numerators_over_their_sums_are_the_residuals():
    X, codes, W = sample(np.random.default_rng(0), 30, 4, 3)
    A, total = numerators(X, codes.astype(float), W)
    assert (total > 0).all()
    np.testing.assert_allclose(A / total[:, None], plain(X, codes, W), atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_scores_need_no_largest_one_subtracted(dtype):
    X, codes, W = sample(np.random.default_rng(9), 200, 4, 1000, dtype)
    W *= 30 / np.abs(X @ W).max()
    plainly, quickly = (numerators(X, codes, W, small=small) for small in (False, True))
    near = 1e-5 if dtype == np.float32 else 1e-13
    found, wanted = (A / total[:, None] for A, total in (quickly, plainly))
    np.testing.assert_allclose(found, wanted, atol=near)


def test_a_row_of_no_class_and_a_row_whose_scores_overflow_have_residual_0():
    X = np.array([[1.0, 0.0], [1.0, 1.0], [0.5, 0.0]])
    W = np.array([[1.0, 0.0], [1e308, -1e308]]) * np.array([[1.0], [1.7]])
    with np.errstate(all="ignore"):
        R = residuals(X * [[1, 1], [1, 10], [1, 1]], np.array([-1, 0, 1]), W)
    np.testing.assert_array_equal(R[:2], 0)
    assert np.isfinite(R).all()
    assert (R[2] != 0).all()


def test_large_scores_do_not_overflow():
    R = residuals(np.array([[1e3], [-1e3]]), np.array([0, 0]), np.array([[1.0, -1.0]]))
    np.testing.assert_allclose(R, [[0, 0], [-1, 1]], atol=1e-300)


@pytest.mark.parametrize("c", [2, 5])
def test_gradient_is_the_derivative_of_the_loss(c):
    X, codes, W = sample(np.random.default_rng(1), 25, 3, c)
    found = gradient(X, codes, W)
    h = 1e-6
    for i in range(3):
        for k in range(c):
            step = np.zeros_like(W)
            step[i, k] = h
            slope = (loss(X, codes, W + step) - loss(X, codes, W - step)) / (2 * h)
            assert found[i, k] == pytest.approx(slope, abs=1e-6)
    known = codes >= 0
    scores = X[known] @ W
    own = scores[np.arange(known.sum()), codes[known]]
    assert loss(X, codes, W) == pytest.approx(np.sum(logsumexp(scores, axis=1) - own))


def test_gradient_of_float32_rows_is_summed_in_float64():
    X, codes, W = sample(np.random.default_rng(2), 500, 4, 3, np.float32)
    found = gradient(X, codes, W)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, X.astype(float).T @ plain(X, codes, W), atol=1e-11)


@pytest.mark.parametrize("order", ["C", "F"])
def test_norm_formula_is_the_norm_of_the_materialised_gradient(order):
    X, codes, W = sample(np.random.default_rng(3), 40, 6, 4)
    R = residuals(np.asarray(X, order=order), codes, W)
    each = np.einsum("ij,ik->ijk", X, plain(X, codes, W))
    wanted = np.linalg.norm(each, axis=(1, 2))
    np.testing.assert_allclose(gradient_norms(np.asarray(X, order=order), R), wanted, atol=1e-13)
