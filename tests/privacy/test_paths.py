"""A lazily drawn path of noise: its law, and what it does not betray."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular

from dpadapt.privacy.mechanisms.path import QUESTION_NUGGET, LazyPath
from dpadapt.privacy.statistics import Gram


def factor_of(path):
    """The whole Cholesky factor."""
    size = len(path)
    out = np.zeros((size, size))
    for number in range(size):
        out[number, : number + 1] = np.frombuffer(path.secret(number))[path._drawn.shape[1] :]
    return out


def rbf(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / 2)


def linear(A, B):
    return A @ B.T


def models(n=50, penalty=0.01, seed=0):
    """Kernel ridge models of two neighbouring samples, and their distance."""
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-1, 1, size=(n, 1)), rng.choice([-1.0, 1.0], size=n)
    other = y.copy()
    other[0] = -y[0]
    K = rbf(X, X)
    a, b = (np.linalg.solve(K + n * penalty * np.eye(n), labels) for labels in (y, other))
    return X, a, b, float(np.sqrt((a - b) @ K @ (a - b)))


def naive_leftover(model, X, queries, scale, rng):
    """Attack on a path without nugget, whose variances below zero are clipped at zero.

    The asker predicts each answer from the earlier ones; at the first question whose computed
    variance is zero, what is left is the model's own part, without noise.
    """
    Z, L, g, answers = queries[:0], np.zeros((0, 0)), np.zeros(0), np.zeros(0)
    for z in queries:
        row = solve_triangular(L, rbf(Z, z[None])[:, 0], lower=True) if len(L) else np.zeros(0)
        variance = max(0.0, 1.0 - row @ row)
        fresh = rng.standard_normal()
        noise = row @ g + np.sqrt(variance) * fresh
        answer = rbf(X, z[None])[:, 0] @ model + scale * noise
        if variance == 0:
            return answer - row @ solve_triangular(L, answers, lower=True)
        size = len(L)
        L = np.block([[L, np.zeros((size, 1))], [row[None], np.sqrt([[variance]])]])
        Z, g, answers = np.vstack([Z, z]), np.append(g, fresh), np.append(answers, answer)
    raise AssertionError("the attack needs a question that adds nothing")


def test_the_naive_path_betrays_the_model_and_ours_does_not():
    X, a, b, distance = models()
    scale = 2 * distance  # mu = 0.5
    queries = np.random.default_rng(7).uniform(-1, 1, size=(30, 1))
    one, two = (
        [naive_leftover(model, X, queries, scale, np.random.default_rng(s)) for s in seeds]
        for model, seeds in ((a, range(60)), (b, range(60, 120)))
    )
    cut = (np.median(one) + np.median(two)) / 2
    right = np.mean([x > cut for x in one] + [x <= cut for x in two])
    assert max(right, 1 - right) > 0.95  # mu = 0.5 allows 0.6

    # ours: every answer keeps noise of its own, and the whitened distance is what was paid for
    p, q = (rbf(X, queries).T @ model for model in (a, b))
    path = LazyPath(Gram(rbf, 1.0), 1, np.random.default_rng(0).standard_normal)
    for z in queries:
        path.extend(z[None])
    factor = factor_of(path)
    assert (np.diagonal(factor) >= np.sqrt(QUESTION_NUGGET / 2)).all()
    whitened = solve_triangular(factor, p - q, lower=True)
    assert np.linalg.norm(whitened) <= distance * (1 + 1e-6)
    exact = solve_triangular(
        cholesky(rbf(queries, queries) + QUESTION_NUGGET * np.eye(30), lower=True),
        p - q,
        lower=True,
    )
    assert np.linalg.norm(whitened) == pytest.approx(np.linalg.norm(exact), rel=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_no_dense_questions_cost_more_than_was_paid(seed):
    X, a, b, distance = models(seed=seed)
    rng = np.random.default_rng(seed)
    queries = np.concatenate(
        [rng.uniform(-1, 1, size=(60, 1)), 0.5 + 1e-9 * rng.normal(size=(20, 1))]
    )
    path = LazyPath(Gram(rbf, 1.0), 1, rng.standard_normal)
    done = 0
    for size in (1, 3, 20, 1, 30, 25):
        path.extend(queries[done : done + size])
        done += size
    p, q = (rbf(X, queries).T @ model for model in (a, b))
    whitened = solve_triangular(factor_of(path), p - q, lower=True)
    assert np.linalg.norm(whitened) <= distance * (1 + 1e-6)


@pytest.mark.parametrize("sizes", [(12,), (1,) * 12, (5, 1, 6)])
def test_drawn_lazily_it_is_the_path_drawn_at_once(sizes):
    """The same normals through the Cholesky factor of K + j I."""
    rng = np.random.default_rng(0)
    Z, normals = rng.normal(size=(12, 2)), rng.normal(size=(12, 3))
    given = iter(normals)
    path = LazyPath(
        Gram(rbf, 1.0), 3, lambda shape: np.array([next(given) for _ in range(shape[0])])
    )
    drawn, done = [], 0
    for size in sizes:
        drawn.append(path.extend(Z[done : done + size]))
        done += size
    at_once = cholesky(rbf(Z, Z) + QUESTION_NUGGET * np.eye(12), lower=True) @ normals
    np.testing.assert_allclose(np.concatenate(drawn), at_once, atol=1e-9)


def test_noise_has_the_covariance_of_the_kernel():
    rng = np.random.default_rng(0)
    Z = np.array([[0.0], [0.3], [2.0]])
    draws = np.concatenate(
        [LazyPath(Gram(rbf, 1.0), 500, rng.standard_normal).extend(Z).T for _ in range(20)]
    )
    error = np.abs(draws.T @ draws / len(draws) - rbf(Z, Z))
    assert error.max() < 6 / np.sqrt(len(draws))
    wrong = np.abs(0.49 * draws.T @ draws / len(draws) - rbf(Z, Z))
    assert wrong.max() > 6 / np.sqrt(len(draws))  # noise x 0.7 would be seen


def test_a_path_goes_on_where_another_one_stopped():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 2))
    first = LazyPath(Gram(rbf, 1.0), 2, np.random.default_rng(1).standard_normal)
    first.extend(Z[:7])
    first.extend(Z[7:20])
    second = LazyPath(Gram(rbf, 1.0), 2, lambda shape: np.zeros(shape))
    second.adopt(Z[:15], [first.secret(i) for i in range(15)])
    second.adopt(Z[15:20], [first.secret(i) for i in range(15, 20)])
    np.testing.assert_array_equal(second._drawn, first._drawn)
    first._normals = second._normals
    np.testing.assert_array_equal(second.extend(Z[20:]), first.extend(Z[20:]))
    with pytest.raises(ValueError, match="not the secret"):
        second.adopt(Z[:1], [first.secret(3)])


def test_the_factor_takes_no_more_memory_than_is_said():
    """More than two blocks, in pieces that do not fit them; the factor is that of the kernel."""
    Z = np.random.default_rng(0).normal(size=(600, 2))
    path = LazyPath(Gram(rbf, 1.0), 1, np.random.default_rng(1).standard_normal)
    for cut in (slice(0, 100), slice(100, 300), slice(300, 599), slice(599, 600)):
        path.extend(Z[cut])
    factor = factor_of(path)
    np.testing.assert_allclose(
        factor @ factor.T, rbf(Z, Z) + QUESTION_NUGGET * np.eye(600), atol=1e-9, rtol=0
    )
    assert sum(block.nbytes for block in path._factor) <= 4 * 768 * (768 + 256)
    again = LazyPath(Gram(rbf, 1.0), 1, np.zeros)
    again.adopt(Z, [path.secret(i) for i in range(600)])
    np.testing.assert_array_equal(factor_of(again), factor)


def test_questions_beyond_the_bound_are_scaled():
    far = np.array([[1e6, 0.0]])
    path = LazyPath(Gram(linear, 1.0), 2000, np.random.default_rng(0).standard_normal)
    assert path.extend(far).std() == pytest.approx(1.0, rel=0.1)


def test_questions_may_be_sparse():
    Z = sparse.random_array((9, 50), density=0.2, rng=np.random.default_rng(0)).tocsr()
    path = LazyPath(Gram(linear, 9.0), 1, np.random.default_rng(0).standard_normal)
    for i in range(9):
        path.extend(Z[i : i + 1])
    assert len(path) == 9


def test_a_path_is_a_secret():
    path = LazyPath(Gram(rbf, 1.0), 1, np.random.default_rng(0).standard_normal)
    for forbidden in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="secret"):
            forbidden(path)
