"""Kernels with public bounds, and explicit maps that keep to them."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import pairwise

from dpadapt.kernels import RBF, Fourier, FunctionKernel, InnerProduct, Linear, Polynomial
from dpadapt.kernels.features import (
    FourierFeatures,
    LinearFeatures,
    NystroemFeatures,
    PolynomialFeatures,
)
from dpadapt.kernels.kernel import KERNELS, check_positive_definite
from dpadapt.privacy import Cleaning
from dpadapt.privacy.statistics import Prepared

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 3))
ROWS /= np.maximum(1, np.linalg.norm(ROWS, axis=1, keepdims=True))


def shared_letters(A, B):
    return [[len(set(a) & set(b)) for b in B] for a in A]


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("linear", lambda A: A @ A.T),
        ("polynomial", lambda A: (A @ A.T + 1) ** 3),
        ("rbf", pairwise.rbf_kernel),
        ("laplacian", pairwise.laplacian_kernel),
        ("cosine", pairwise.cosine_similarity),
        ("chi2", lambda A: pairwise.chi2_kernel(np.maximum(A, 0))),
    ],
)
def test_named_kernels_have_their_values_and_bounds(name, reference):
    options = {"gamma": 1 / 3} if name in ("rbf", "laplacian") else {}
    kernel = KERNELS[name](**options).within(radius=1.0)
    values = kernel(ROWS, ROWS)
    assert values.dtype == np.float64
    assert np.allclose(values, reference(ROWS))
    assert np.allclose(kernel.diagonal(ROWS), np.diag(values))
    assert kernel.diagonal(ROWS).max() <= kernel.squared_bound * (1 + 1e-12)
    check_positive_definite(kernel, ROWS)


def test_bounds_of_the_named_kernels():
    assert Linear().within(radius=3.0).squared_bound == 9
    poly = Polynomial(gamma=0.5, degree=2, coef0=3.0).within(radius=2.0)
    assert poly.squared_bound == (0.5 * 4 + 3) ** 2
    assert Polynomial().within(radius=7.0).squared_bound == pytest.approx(8)
    for name in ("rbf", "laplacian", "cosine", "chi2"):
        assert KERNELS[name]().within(radius=5.0).squared_bound == 1


@pytest.mark.parametrize("name", ["linear", "polynomial"])
def test_rows_beyond_the_radius_are_scaled_into_the_bound(name):
    kernel = KERNELS[name]().within(radius=1.0)
    wild = np.vstack([ROWS, 50 * ROWS[:5]])
    values = kernel(wild, wild)
    assert np.diag(values).max() <= kernel.squared_bound * (1 + 1e-9)
    assert np.allclose(values[:40, :40], kernel(ROWS, ROWS))  # the others are as before
    assert np.linalg.eigvalsh(values).min() > -1e-9
    assert np.allclose(kernel.diagonal(wild), np.diag(values))


def test_callable_is_scaled_by_its_stated_bound():
    kernel = FunctionKernel(lambda A, B: A @ B.T, bound=0.25).within()
    values = kernel(ROWS, ROWS)
    norms = np.linalg.norm(ROWS, axis=1)
    short = np.minimum(1, 0.5 / norms)
    assert np.allclose(values, (ROWS @ ROWS.T) * short[:, None] * short)
    assert kernel.diagonal(ROWS).max() <= 0.25


@pytest.mark.parametrize("wrap", [list, np.array, lambda x: np.array(x, dtype=object)])
def test_strings_pass_to_a_callable(wrap):
    words = wrap(["abc", "bcd", "xyz", ""])
    kernel = FunctionKernel(shared_letters, bound=2.0).within()
    values = kernel(words, words)
    scale = np.array([math.sqrt(2 / 3)] * 3 + [1])
    assert np.allclose(values, np.array(shared_letters(words, words)) * scale[:, None] * scale)
    check_positive_definite(kernel, words)


@pytest.mark.parametrize("name", ["linear", "polynomial", "rbf", "laplacian", "cosine"])
def test_sparse_rows_have_the_values_of_dense_ones(name):
    kernel = KERNELS[name]().within(radius=0.5)
    thin = sparse.csr_matrix(ROWS)
    assert np.allclose(kernel(thin, thin), kernel(ROWS, ROWS))
    assert np.allclose(kernel.diagonal(thin), kernel.diagonal(ROWS))


def test_sparse_rows_pass_to_a_callable():
    thin = sparse.csr_matrix(ROWS)
    kernel = FunctionKernel(lambda A, B: A @ B.T, bound=1.0).within()
    assert np.allclose(kernel(thin, thin), ROWS @ ROWS.T)


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_matrix, pd.DataFrame])
def test_inner_products_are_those_of_rows_as_they_are_within_the_bound(wrap):
    kernel, own = InnerProduct(bound=0.25).within(), FunctionKernel(lambda A, B: A @ B.T, 0.25)
    assert np.allclose(kernel(wrap(ROWS), wrap(ROWS)), own.within()(ROWS, ROWS))
    assert np.allclose(kernel.diagonal(wrap(ROWS)), own.within().diagonal(ROWS))
    assert kernel.diagonal(wrap(ROWS)).max() == 0.25


def test_an_inner_product_of_sparse_rows_is_that_of_two_rows_to_the_last_bit():
    """Whoever else is in the block: not finite, huge, or with its cells in another order."""
    rng = np.random.default_rng(0)
    rows = sparse.random(60, 5_000, density=0.02, random_state=rng, format="csr")
    rows.data *= 10 ** rng.uniform(-8, 8, size=len(rows.data))
    rows.data[:3] = np.nan, np.inf, 1e300
    for i in range(0, 60, 2):  # the same row, its cells not in the order of the columns
        cells = slice(rows.indptr[i], rows.indptr[i + 1])
        order = rng.permutation(cells.stop - cells.start)
        rows.indices[cells] = rows.indices[cells][order]
        rows.data[cells] = rows.data[cells][order]
    rows.has_sorted_indices = False
    form = InnerProduct(bound=1.0)
    with np.errstate(all="ignore"):
        whole = form.values(rows, rows[:40])
        single = [[form.values(rows[i], rows[j]).item() for j in range(40)] for i in range(60)]
    assert np.array_equal(whole, single, equal_nan=True)


def test_single_precision_is_computed_in_double():
    low = ROWS.astype(np.float32)
    for name in ("linear", "polynomial", "rbf"):
        kernel = KERNELS[name]().within(radius=1.0)
        assert np.allclose(
            kernel(low, low), kernel(low.astype(float), low.astype(float)), atol=1e-14
        )


def test_failing_callable_keeps_the_failure_with_its_pair():
    """A row that cannot be read is as if it had no features; no other row is touched."""

    def picky(A, B):
        if any("!" in text for text in [*A, *B]):
            raise RuntimeError("the private text was: " + "".join(A))
        return shared_letters(A, B)

    kernel = FunctionKernel(picky, bound=9.0).within()
    values = kernel(["ab", "!", "b"], ["ab", "!", "b"])
    assert values.tolist() == [[2, 0, 1], [0, 0, 0], [1, 0, 1]]
    assert kernel.diagonal(["!"]).tolist() == [0]


def test_values_that_are_not_finite_count_as_zero():
    kernel = FunctionKernel(lambda A, B: np.where(A @ B.T > 0, np.nan, np.inf), bound=1.0).within()
    assert not kernel(ROWS, ROWS).any()


def test_callable_must_return_a_matrix():
    with pytest.raises(ValueError, match="one value for each pair"):
        FunctionKernel(lambda A, B: np.ones(3), bound=1.0).within()(ROWS, ROWS)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Linear().within(), "radius"),
        (lambda: Polynomial().within(), "radius"),
        (lambda: Polynomial(coef0=-1.0), "coef0"),
        (lambda: Polynomial(degree=1.5), "degree"),
        (lambda: RBF(gamma=0.0), "gamma"),
        (lambda: FunctionKernel(shared_letters), "bound"),
        (lambda: FunctionKernel(shared_letters, bound=math.inf), "bound"),
        (lambda: FunctionKernel("shared letters", bound=1.0), "function"),
        (lambda: Fourier(n_components=7), "n_components must be even"),
    ],
)
def test_mistakes_are_named(make, match):
    with pytest.raises((ValueError, TypeError), match=match):
        make()


def test_a_default_gamma_follows_the_length_of_rows():
    assert RBF().within(4.0, middle=2.0).form.gamma == 1 / 4
    assert RBF().within(4.0).form.gamma == 1 / 16
    assert RBF(gamma=3.0).within(4.0, middle=2.0).form.gamma == 3.0
    assert KERNELS["laplacian"]().within(4.0, middle=2.0).form.gamma == 1 / 2
    assert Polynomial().within(4.0, middle=2.0).form.gamma == 1 / 16
    assert RBF().within().form.gamma == 1.0


def test_chi2_needs_dense_rows():
    with pytest.raises(TypeError, match="dense"):
        KERNELS["chi2"]().within()(sparse.csr_matrix(ROWS), sparse.csr_matrix(ROWS))


@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        (lambda A, B: -(A @ B.T), "not positive definite"),
        (
            lambda A, B: pairwise.sigmoid_kernel(A, B, gamma=5.0, coef0=-1.0),
            "not positive definite",
        ),
        (lambda A, B: A[:, :1] + 2 * B[:, :1].T, "not symmetric"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "not finite"),
    ],
)
def test_kernels_that_are_none_are_noticed_on_public_points(kernel, match):
    with pytest.raises(ValueError, match=match):
        check_positive_definite(kernel, ROWS)


@pytest.mark.parametrize("width", [1, 3, 6])
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize(("gamma", "coef0"), [(1.0, 1.0), (0.3, 2.0), (1.0, 0.0)])
def test_polynomial_features_are_exact(width, degree, gamma, coef0):
    rows = np.random.default_rng(1).normal(size=(30, width))
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    maps = PolynomialFeatures(width, 1.0, degree=degree, gamma=gamma, coef0=coef0)
    features = maps(rows)
    assert features.shape == (30, maps.n_features)
    expected = math.comb(width + degree - (coef0 == 0), degree)
    assert maps.n_features == expected
    assert np.allclose(features @ features.T, (gamma * rows @ rows.T + coef0) ** degree, atol=1e-12)
    assert (features**2).sum(axis=1).max() <= maps.squared_bound * (1 + 1e-11)
    kernel = Polynomial(degree, gamma, coef0).within(radius=1.0)
    assert kernel.squared_bound == maps.squared_bound


def test_cubic_features_of_ten_columns():
    maps = PolynomialFeatures(10, 1.0)
    assert (maps.n_features, maps.squared_bound) == (286, 8.0)
    assert (maps(np.eye(10)[:1]) ** 2).sum() == pytest.approx(8.0)  # the bound is attained


@pytest.mark.parametrize(
    "maps",
    [
        LinearFeatures(3, radius=0.5),
        PolynomialFeatures(3, radius=0.5),
        FourierFeatures(3, gamma=2.0, n_components=64),
        NystroemFeatures(RBF(gamma=1.0).within(), ROWS[:12]),
        NystroemFeatures(Linear().within(radius=0.5), ROWS),
    ],
    ids=lambda maps: type(maps).__name__,
)
def test_maps_are_row_wise_bounded_and_travel(maps):
    wild = np.vstack([ROWS, 100 * ROWS[:4], np.zeros((1, 3))])
    features = maps(wild)
    assert features.shape == (45, maps.n_features)
    assert (features**2).sum(axis=1).max() <= maps.squared_bound * (1 + 1e-11)
    alone = np.vstack([maps(row[None]) for row in wild])
    assert np.allclose(features, alone, atol=1e-12)
    assert np.array_equal(pickle.loads(pickle.dumps(maps))(ROWS), maps(ROWS))
    assert maps(np.zeros((0, 3))).shape == (0, maps.n_features)
    before = wild.copy()
    prepared = Prepared(Cleaning(radius=1.0), lambda X, y: (maps(X), y), width=maps.n_features)
    out, _ = prepared(wild, None)
    assert np.array_equal(wild, before)
    assert out.shape == features.shape


def test_chunks_do_not_show():
    rows = np.random.default_rng(2).normal(size=(9000, 2)) / 5
    maps = PolynomialFeatures(2, radius=1.0, degree=2)
    assert np.array_equal(maps(rows)[4000:4200], maps(rows[4000:4200]))


def test_fourier_features_come_near_the_kernel_with_norm_one():
    maps = FourierFeatures(3, gamma=1.5, n_components=20_000, seed=3)
    features = maps(ROWS)
    assert np.allclose((features**2).sum(axis=1), 1.0, atol=1e-12)
    assert np.abs(features @ features.T - pairwise.rbf_kernel(ROWS, gamma=1.5)).max() < 0.05
    same, other = FourierFeatures(3, seed=3), FourierFeatures(3, seed=4)
    assert np.array_equal(FourierFeatures(3, seed=3)(ROWS), same(ROWS))
    assert not np.allclose(other(ROWS), same(ROWS))
    with pytest.raises(ValueError, match="even"):
        FourierFeatures(3, n_components=5)


def test_nystroem_features_are_a_projection():
    kernel = RBF(gamma=1.0).within()
    maps = NystroemFeatures(kernel, ROWS[:15])
    features = maps(ROWS)
    # exact on the landmarks, and never longer than the kernel's own features
    inside = features[:15] @ features[:15].T
    assert np.allclose(inside, kernel(ROWS[:15], ROWS[:15]), atol=1e-4)
    assert (features**2).sum(axis=1).max() <= 1 + 1e-11
    rest = kernel(ROWS, ROWS) - features @ features.T
    assert np.linalg.eigvalsh(rest).min() > -1e-6


def test_near_duplicate_landmarks_do_not_stretch_features():
    near = np.vstack([ROWS[:10] + 1e-8 * RNG.normal(size=(10, 3)) for _ in range(5)])
    maps = NystroemFeatures(RBF(gamma=1.0).within(), near)
    assert maps.n_features <= 10
    assert (maps(ROWS) ** 2).sum(axis=1).max() <= 1 + 1e-11


def test_nystroem_of_strings():
    maps = NystroemFeatures(FunctionKernel(shared_letters, bound=26.0).within(), ["ab", "cd", "ad"])
    features = maps(["abcd", "zz"])
    assert features.shape == (2, maps.n_features)
    assert not features[1].any()


def test_landmarks_without_features_are_refused():
    with pytest.raises(ValueError, match="landmarks"):
        NystroemFeatures(Linear().within(radius=1.0), np.zeros((3, 2)))
