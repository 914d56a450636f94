"""Public subspaces: orthonormal to rounding, equal to what is materialised, safe to clip before."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpadapt.learning.softmax import residuals
from dpadapt.mixing.queries import ClippedGradients
from dpadapt.papers.mixing.projection import FeatureSpan, GradientSpan, WithProducts
from dpadapt.papers.mixing.queries import ProjectedGradients
from dpadapt.privacy import Cleaning

KINDS = [np.float32, np.float64]
ORDERS = [False, True]


def unit_rows(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def materialised(X: np.ndarray, codes: np.ndarray, W: np.ndarray) -> np.ndarray:
    """One gradient a row, flattened."""
    R = residuals(X.astype(float), codes, W)
    return np.einsum("ij,ik->ijk", X.astype(float), R).reshape(len(X), -1)


def whole_basis(span: GradientSpan) -> np.ndarray:
    """U of shape (d c, k), column by column."""
    columns = [span.back(e).ravel() for e in np.eye(span.rank)]
    return np.array(columns).T.reshape(-1, span.rank)


def problem(seed: int, *, n: int = 60, d: int = 6, c: int = 4, n_public: int = 15):
    rng = np.random.default_rng(seed)
    P, codes = unit_rows(rng, n_public, d), rng.integers(0, c, n_public)
    X, y = unit_rows(rng, n, d), rng.integers(-1, c, n).astype(float)
    return rng, P, codes, X, y, rng.normal(size=(d, c))


def query(W, span, clip_first=False, clip=0.3) -> ProjectedGradients:
    cleaning = Cleaning(radius=1.0, classes=W.shape[1])
    return ProjectedGradients(W, clip, cleaning, span, clip_first)


@pytest.mark.parametrize("rank", [None, 1, 5, 1000])
def test_basis_is_orthonormal_and_spans_the_public_gradients(rank):
    rng, P, codes, _, _, W = problem(0)
    span = GradientSpan.of(P, codes, W, rank)
    assert span.rank == min(15, rank or 15)
    U, G = whole_basis(span), materialised(P, codes, W)
    assert np.abs(U.T @ U - np.eye(span.rank)).max() < 1e-8
    if span.rank == 15:
        np.testing.assert_allclose(U @ (U.T @ G.T), G.T, atol=1e-7)
    # the first directions are those of the singular value decomposition
    V = np.linalg.svd(G)[2][: span.rank].T
    np.testing.assert_allclose(U @ U.T, V @ V.T, atol=1e-6)
    S, u = rng.normal(size=W.shape), rng.normal(size=span.rank)
    np.testing.assert_allclose(span.coordinates(S), U.T @ S.ravel(), atol=1e-10)
    np.testing.assert_allclose(span.back(u).ravel(), U @ u, atol=1e-10)


def test_inner_products_of_public_rows_can_be_given_once_but_not_in_float32():
    _, P, codes, _, _, W = problem(1)
    given = GradientSpan.of(P, codes, W, inner=P @ P.T)
    np.testing.assert_array_equal(given.basis, GradientSpan.of(P, codes, W).basis)
    with pytest.raises(TypeError, match="float64"):
        GradientSpan.of(P, codes, W, inner=(P @ P.T).astype(np.float32))


@pytest.mark.parametrize("scale", [1.0, 1e-12])
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("clip_first", ORDERS)
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(
    ("n", "c", "rank"), [(60, 4, None), (300, 2, 3), (1100, 4, 7), (20, 1000, 4)]
)
def test_factored_sum_is_the_materialised_one(n, c, rank, dtype, clip_first, beside, scale):
    _, P, codes, X, y, W = problem(n, n=n, c=c)
    X, clip = X.astype(dtype), 0.3
    span = GradientSpan.of(scale * P, codes, W, rank)  # small public gradients span the same
    U, G = whole_basis(span), materialised(X, y, W)
    each = G @ U
    sizes = np.linalg.norm(G if clip_first else each, axis=1)
    wanted = (each * np.minimum(1, clip / np.maximum(sizes, 1e-300))[:, None]).sum(axis=0) / clip
    q = query(W, span, clip_first, clip)
    rows = np.hstack([X, (X @ (scale * P).T.astype(dtype)).astype(dtype)]) if beside else X
    found = q.block(rows, y)
    assert found.dtype == np.float64
    assert found.shape == q.shape(6) == (span.rank,)
    near = 3e-5 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(found, wanted, atol=near * n)


def near_duplicates(seed: int, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    few = unit_rows(rng, 10, 30)
    P = np.repeat(few, 5, axis=0) + noise * rng.normal(size=(50, 30))
    return P, np.repeat(rng.integers(0, 5, 10), 5), rng.normal(size=(30, 5))


def broken_basis(P: np.ndarray, codes: np.ndarray, W: np.ndarray) -> np.ndarray:
    """U with a float32 Gram matrix, eigenvalues kept above 1e-10 of the largest, no division."""
    R = residuals(P, codes, W)
    few = np.float32(P) @ np.float32(P).T * (np.float32(R) @ np.float32(R).T)
    values, vectors = np.linalg.eigh(few.astype(float))
    keep = values > 1e-10 * values.max()
    return materialised(P, codes, W).T @ (vectors[:, keep] / np.sqrt(values[keep]))


@pytest.mark.parametrize(
    ("noise", "stretch"), [(1e-4, 1.5), (3e-4, 1.2), (1e-3, 1.02), (3e-3, 1.002)]
)
def test_near_duplicates_stretch_a_float32_basis_but_not_ours(noise, stretch):
    broken = []
    for seed in range(8):
        P, codes, W = near_duplicates(seed, noise)
        span = GradientSpan.of(P, codes, W)
        assert np.linalg.norm(whole_basis(span), 2) <= 1 + 1e-12
        assert span.rank >= 10
        broken.append(np.linalg.norm(broken_basis(P, codes, W), 2))
    assert max(broken) > stretch


def test_a_stretching_basis_would_break_clip_first_alone():
    P, codes, W = near_duplicates(0, 3e-4)
    U = broken_basis(P, codes, W)
    worst = np.linalg.svd(U)[0][:, 0]  # a gradient in this direction is stretched most
    clipped_then_projected = U.T @ (worst / np.linalg.norm(worst))
    assert np.linalg.norm(clipped_then_projected) > 1.05
    projected = U.T @ worst
    assert np.linalg.norm(projected / max(1, np.linalg.norm(projected))) <= 1 + 1e-12


@pytest.mark.parametrize("clip_first", ORDERS)
@pytest.mark.parametrize("dtype", KINDS)
def test_no_neighbour_passes_the_sensitivities(dtype, clip_first):
    rng = np.random.default_rng(7)
    for trial in range(150):
        c = int(rng.choice([2, 5]))
        _, P, codes, X, y, W = problem(trial, n=int(rng.integers(1, 300)), c=c)
        if trial % 3 == 0:  # nearly the same public rows
            P = np.repeat(P[:3], 5, axis=0) + 1e-4 * rng.normal(size=P.shape)
            codes = np.repeat(codes[:3], 5)
        X *= 10.0 ** rng.integers(-3, 4, size=(len(X), 1))
        q = query(W, GradientSpan.of(P, codes, W), clip_first, 10.0 ** rng.uniform(-3, 0.5))
        if trial % 2:
            q = replace(q, cleaning=WithProducts(q.cleaning, P))

        def total(X, y, q=q):
            rows, labels = q.cleaning(X, y)
            return q.block(rows.astype(dtype), labels)

        place, kind = int(rng.integers(len(X))), trial % 4
        changed, labels = X.copy(), y.copy()
        changed[place] = [-X[place], 1e200 * P[0], np.zeros(6), rng.normal(size=6)][kind]
        labels[place] = y[place] if kind == 0 else rng.integers(-1, c)
        whole = total(X, y)
        assert np.linalg.norm(whole - total(changed, labels)) <= len(X) * q.sensitivity(len(X))
        if dtype == np.float64:
            fewer = total(np.delete(X, place, axis=0), np.delete(y, place))
            assert np.linalg.norm(whole - fewer) <= q.magnitude * (1 + 1e-9)


@pytest.mark.parametrize("clip_first", ORDERS)
@pytest.mark.parametrize("dtype", KINDS)
def test_sensitivity_is_attained_at_the_opposite_row(dtype, clip_first):
    # a public row is in the span, and its gradient is clipped
    P, W = np.eye(3)[:1].astype(dtype), np.zeros((3, 2))
    q, y = query(W, GradientSpan.of(P, np.array([0]), W), clip_first), np.array([0.0])
    moved = np.linalg.norm(q.block(P, y) - q.block(-P, y))
    assert 0.998 * q.sensitivity(1) <= moved <= q.sensitivity(1)


@pytest.mark.parametrize("clip_first", ORDERS)
@pytest.mark.parametrize("dtype", KINDS)
def test_norms_bound_the_contributions_and_kept_leaves_rows_out(dtype, clip_first):
    rng, P, codes, X, y, W = problem(8, n=200)
    X = X.astype(dtype)
    q = query(W, GradientSpan.of(P, codes, W), clip_first)
    each = np.array([q.block(X[i : i + 1], y[i : i + 1]) for i in range(200)])
    sizes = np.linalg.norm(each, axis=1)
    assert (sizes <= q.norms(X, y) * (1 + 1e-12)).all()
    assert (q.norms(X, y) <= q.magnitude).all()
    assert sizes.max() > 0.99 or clip_first
    keep = rng.random(200) < 0.5
    near = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(q.kept(X, y, keep), each[keep].sum(axis=0), atol=near)
    np.testing.assert_array_equal(q.kept(X, y, np.ones(200, dtype=bool)), q.block(X, y))


@pytest.mark.parametrize("dtype", KINDS)
def test_projected_queries_need_no_more_than_clipped_ones(dtype):
    # what was planned for gradients pays for projected ones, in either order
    P, codes, W = near_duplicates(1, 1e-4)
    span = GradientSpan.of(P, codes, W)
    plain = ClippedGradients(W, 0.3, Cleaning(radius=1.0, classes=5))
    for clip_first in ORDERS:
        q = query(W, span, clip_first)
        assert q.sensitivity(50) == plain.sensitivity(50)
        assert q.magnitude == plain.magnitude


def test_rounding_of_the_projection_is_within_its_bound():
    rng = np.random.default_rng(9)
    P, codes, W = near_duplicates(2, 1e-4)
    span = GradientSpan.of(P, codes, W)
    G = materialised(span.rows, codes, W)
    G *= np.linalg.norm(span.residuals) / np.linalg.norm(residuals(P, codes, W))
    for _ in range(20):
        S = rng.normal(size=W.shape)
        S /= np.linalg.norm(S)
        inner = [math.fsum(g * S.ravel()) for g in G]
        exact = np.array([math.fsum(inner * b) for b in span.basis.T])
        assert np.linalg.norm(span.coordinates(S) - exact) <= span.rounding
    assert span.rounding < 1e-7


@pytest.mark.parametrize("clip_first", ORDERS)
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("case", ["zero rows", "no class", "no rows", "perfect"])
def test_without_public_gradients_nothing_moves(case, dtype, clip_first):
    _, P, codes, X, y, W = problem(10)
    if case == "zero rows":
        P = np.zeros_like(P)
    elif case == "no class":
        codes = np.full_like(codes, -1)
    elif case == "no rows":
        P, codes = P[:0], codes[:0]
    else:
        P, W = np.eye(6)[codes], 1e3 * np.eye(6)[:, :4]  # every public row is predicted exactly
    span = GradientSpan.of(P, codes, W)
    q = query(W, span, clip_first)
    assert span.rank == 0
    assert q.shape(6) == (0,)
    u = q.block(X.astype(dtype), y)
    assert u.shape == (0,)
    np.testing.assert_array_equal(span.back(u), np.zeros_like(W))
    assert (q.norms(X.astype(dtype), y) <= 1).all()
    assert math.isfinite(q.sensitivity(10))


def test_span_and_clip_do_not_see_private_rows():
    _, P, codes, X, y, W = problem(11)
    before = GradientSpan.of(P, codes, W)
    q = query(W, before)
    q.block(X, y)
    q.block(1e3 * X, y)
    after = GradientSpan.of(P, codes, W)
    np.testing.assert_array_equal(before.basis, after.basis)
    np.testing.assert_array_equal(before.residuals, after.residuals)
    assert q.clip == 0.3


def test_order_of_rows_does_not_matter():
    rng, P, codes, X, y, W = problem(12, n=500)
    order = rng.permutation(500)
    for clip_first in ORDERS:
        q = query(W, GradientSpan.of(P, codes, W), clip_first)
        np.testing.assert_allclose(q.block(X, y), q.block(X[order], y[order]), atol=1e-11)


def test_products_stand_beside_the_rows():
    _, P, _, X, y, _ = problem(13)
    rows, labels = WithProducts(Cleaning(radius=1.0, classes=4), P)(X, y)
    np.testing.assert_allclose(rows, np.hstack([X, X @ P.T]), atol=1e-12)
    np.testing.assert_array_equal(labels, y)


@pytest.mark.parametrize("rank", [None, 1, 4, 100])
def test_feature_span_is_that_of_the_public_rows(rank):
    rng = np.random.default_rng(14)
    P = rng.normal(size=(5, 3)) @ rng.normal(size=(3, 8))  # of rank 3
    basis = FeatureSpan.of(P, rank).basis
    assert basis.shape == (8, min(3, rank or 3))
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    V = np.linalg.svd(P)[2][: basis.shape[1]].T
    np.testing.assert_allclose(basis @ basis.T, V @ V.T, atol=1e-10)


def test_feature_span_of_zero_rows_is_empty_and_its_query_still_answers():
    span = FeatureSpan.of(np.zeros((4, 3)))
    assert span.basis.shape == (3, 0)
    q = ClippedGradients(np.zeros((0, 2)), 0.5, Cleaning(radius=1.0, classes=2))
    assert q.block(np.ones((5, 3)) @ span.basis, np.zeros(5)).shape == (0, 2)


def test_clipped_gradients_of_projected_rows_are_those_of_the_small_model():
    rng, P, _, X, y, _ = problem(15)
    basis = FeatureSpan.of(P[:4]).basis
    V = rng.normal(size=(4, 4))
    found = ClippedGradients(V, 0.3, Cleaning(radius=1.0, classes=4)).block(X @ basis, y)
    G = materialised(X @ basis, y, V)
    scales = np.minimum(1 / 0.3, 1 / np.maximum(np.linalg.norm(G, axis=1), 1e-300))
    np.testing.assert_allclose(found.ravel(), scales @ G, atol=1e-10)
