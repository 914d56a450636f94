"""What is asked of private rows: the value, and how far one row can move it, as is claimed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import softmax

from dpadapt.mixing.queries import (
    correct_rows,
    rounding_of_pieces,
    row_count,
)
from dpadapt.papers.mixing.projection import GradientSpan
from dpadapt.papers.mixing.queries import PricedGradients, ProjectedGradients
from dpadapt.privacy import Cleaning, Private, RowSum

KINDS = [np.float32, np.float64]


def unit_rows(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def query(W: np.ndarray, clip: float = 0.5) -> PricedGradients:
    return PricedGradients(W, clip, Cleaning(radius=1.0, classes=W.shape[1]))


def contributions(X: np.ndarray, y: np.ndarray, W: np.ndarray, clip: float) -> np.ndarray:
    """Gradient of every row, one by one, clipped, over the clip."""
    out = []
    for x, code in zip(X.astype(float), y, strict=True):
        r = softmax(x @ W)
        if code >= 0:
            r[int(code)] -= 1
        g = np.outer(x, r if code >= 0 else 0 * r)
        out.append(g * min(1.0, clip / max(np.linalg.norm(g), 1e-300)) / clip)
    return np.array(out)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(
    ("n", "d", "c"), [(1, 3, 2), (127, 4, 2), (128, 4, 3), (1500, 6, 5), (60, 3, 1000)]
)
def test_fast_sum_is_the_sum_of_materialised_clipped_gradients(n, d, c, dtype, order):
    rng = np.random.default_rng(n)
    X, y, W = unit_rows(rng, n, d), rng.integers(-1, c, n).astype(float), rng.normal(size=(d, c))
    X[0] = 0
    rows = np.asarray(X.astype(dtype), order=order)
    for clip in (0.1, 0.7, 5.0):
        found = query(W, clip).block(rows, y)
        wanted = contributions(rows, y, W, clip).sum(axis=0)
        assert found.dtype == np.float64
        near = 1e-4 if dtype == np.float32 else 1e-11
        np.testing.assert_allclose(found, wanted, atol=near * math.sqrt(n))


@pytest.mark.parametrize("dtype", KINDS)
def test_no_contribution_is_longer_than_1_and_norms_bound_it(dtype):
    rng = np.random.default_rng(0)
    d, c = 200, 30
    # all lengths, also ones whose squares underflow or overflow
    X = unit_rows(rng, 300, d) * 10.0 ** rng.uniform(-30, 25, size=(300, 1))
    X[:100] = unit_rows(rng, 100, d)
    X = X.astype(dtype)
    y, W = rng.integers(-1, c, 300).astype(float), 3 * rng.normal(size=(d, c))
    for clip in (1e-6, 0.05, 0.5, 1e6):
        q = query(W, clip)
        each = np.array([q.block(X[i : i + 1], y[i : i + 1]) for i in range(300)])
        lengths = np.linalg.norm(each, axis=(1, 2))
        assert np.isfinite(each).all()
        assert lengths.max() <= q.magnitude
        bounds = q.norms(X, y)
        assert bounds.dtype == np.float64
        assert (lengths <= bounds * (1 + 1e-12)).all()
        assert (bounds <= q.magnitude).all()
        some = np.linalg.norm(X.astype(float), axis=1) < 1e18
        assert (bounds[some & (y < 0)] < 1e-9).all()
        if clip == 0.05:
            assert lengths.max() > 0.999  # the bound is no larger than it must be
        short = lengths[:100] < 0.9
        np.testing.assert_allclose(bounds[:100][short], lengths[:100][short], rtol=1e-3, atol=1e-9)


def test_without_the_hair_rounding_passes_the_clip():
    rng = np.random.default_rng(1)
    X = unit_rows(rng, 2000, 30).astype(np.float32)
    r = rng.normal(size=(2000, 10)).astype(np.float32)
    norms = np.sqrt(np.vecdot(X, X)) * np.sqrt(np.vecdot(r, r))
    q = (r / norms[:, None]).astype(float)
    assert (np.linalg.norm(X.astype(float), axis=1) * np.linalg.norm(q, axis=1)).max() > 1


def neighbours(rng: np.random.Generator, d: int, c: int):
    """A sample, a place in it, and what stands there instead: opposite, huge, zero, random."""
    n = int(rng.integers(1, 400))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=(n, 1))
    y = rng.integers(0, c, n).astype(float)
    place, kind = int(rng.integers(n)), int(rng.integers(5))
    other = [-X[place], 1e200 * rng.normal(size=d), np.zeros(d), rng.normal(size=d), X[place]][kind]
    code = -1.0 if kind == 4 else float(rng.integers(c))
    return X, y, place, other, code


@pytest.mark.parametrize("c", [2, 7])
@pytest.mark.parametrize("dtype", KINDS)
def test_no_neighbour_passes_the_sensitivities(dtype, c):
    rng = np.random.default_rng(c)
    d = 5
    for _ in range(300):
        X, y, place, other, code = neighbours(rng, d, c)
        q = query(rng.normal(size=(d, c)) * rng.choice([0.1, 3.0]), 10.0 ** rng.uniform(-3, 0.5))

        def total(X, y, q=q):
            rows, labels = q.cleaning(X, y)
            return q.block(rows.astype(dtype), labels)

        whole, changed, codes = total(X, y), X.copy(), y.copy()
        changed[place], codes[place] = other, code
        moved = np.linalg.norm(whole - total(changed, codes))
        assert moved <= len(X) * q.sensitivity(len(X))
        if dtype == np.float64:  # add/remove: the other rows move up
            fewer = total(np.delete(X, place, axis=0), np.delete(y, place))
            assert np.linalg.norm(whole - fewer) <= q.magnitude * (1 + 1e-9)


def test_float32_moves_a_sum_farther_than_its_rows_and_the_allowance_covers_it():
    worst, n, codes = 0.0, 256, np.zeros(256)
    other = codes.copy()
    other[0] = 1.0  # at weights 0 the opposite gradient
    for seed in range(200):  # all rows pull the same way: partial sums are large, and rounded
        x = unit_rows(np.random.default_rng(seed), 1, 3).astype(np.float32)
        q, rows = query(np.zeros((3, 2)), 0.01), np.repeat(x, n, axis=0)
        worst = max(worst, float(np.linalg.norm(q.block(rows, codes) - q.block(rows, other))))
    assert 2 < worst <= n * q.sensitivity(n)


@pytest.mark.parametrize("dtype", KINDS)
def test_sensitivity_is_attained_at_the_opposite_row(dtype):
    x = np.zeros((1, 3), dtype=dtype)
    x[0, 0] = 1
    q, y = query(np.zeros((3, 2))), np.array([1.0])
    moved = np.linalg.norm(q.block(x, y) - q.block(-x, y))
    assert moved <= q.sensitivity(1)
    assert moved >= 0.998 * q.sensitivity(1)
    assert moved > 0.7 * q.sensitivity(1) * 1.4  # noise of 0.7 times the scale would not do


@pytest.mark.parametrize("dtype", KINDS)
def test_unclipped_gradients_would_break_the_bound(dtype):
    X, y = np.array([[1.0, 0.0]], dtype=dtype), np.array([0.0])
    W = np.array([[-50.0, 50.0], [0.0, 0.0]])  # the row is wrong: its residual has norm sqrt 2
    loose = query(W, 1e6).block(X, y) * 1e6 / 0.5
    assert np.linalg.norm(loose) > 2
    assert np.linalg.norm(query(W).block(X, y)) <= 1


def exact(X: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """X^T Q without rounding: products of float32 numbers are float64, and fsum is exact."""
    d, c = X.shape[1], Q.shape[1]
    X, Q = X.astype(float), Q.astype(float)
    return np.array([[math.fsum(X[:, i] * Q[:, k]) for k in range(c)] for i in range(d)])


def test_slack_of_float32_pieces_covers_adversarial_rows():
    # all rows alike and of full length: partial sums grow, and every addition rounds the same way
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(200):
        d, c = 3, 2
        x = np.float32(unit_rows(rng, 1, d))
        X = np.repeat(x, 128, axis=0)
        y, q = np.zeros(128), query(rng.normal(size=(d, c)), 1e-3)
        one = q.block(x, y[:1])  # one row alone: no sum to round
        direction = one / np.linalg.norm(one)
        residual = direction[0] / x[0, 0]
        Q = np.repeat(np.float32(residual)[None], 128, axis=0)
        error = np.linalg.norm(np.float64(X.T @ Q) - exact(X, Q))
        worst = max(worst, error)
        assert error <= rounding_of_pieces()
        # several rows and several pieces, as the query adds them up
        moved = np.linalg.norm(q.block(np.repeat(x, 300, axis=0), np.zeros(300)) - 300 * one)
        assert moved <= 3 * rounding_of_pieces() + 300 * 1e-6
    assert worst > 1e-6  # there is something to cover


def test_summing_all_rows_in_float32_would_pass_the_slack():
    # the broken form: one float32 product of the whole block
    n = 2_000_000
    x = np.float32([[0.6, 0.8]])
    r = np.float32([[-0.70710677, 0.70710677]])
    total = np.zeros((2, 2), dtype=np.float32)
    for _ in range(10):  # what a long sum does: small terms against a large partial sum
        total += np.float32(n / 10) * (x.T @ r)
    grown = (total + x.T @ r).astype(float) - total.astype(float)
    assert abs(np.linalg.norm(grown) - 1) > 10 * rounding_of_pieces()


@pytest.mark.parametrize("dtype", KINDS)
def test_a_replaced_row_leaves_other_pieces_the_same_to_the_last_bit(dtype):
    rng = np.random.default_rng(4)
    X, y = unit_rows(rng, 1000, 20).astype(dtype), rng.integers(0, 4, 1000).astype(float)
    q = query(rng.normal(size=(20, 4)))
    changed, codes = X.copy(), y.copy()
    changed[700], codes[700] = 0, -1
    np.testing.assert_array_equal(q.norms(X, y)[:700], q.norms(changed, codes)[:700])
    np.testing.assert_array_equal(q.norms(X, y)[701:], q.norms(changed, codes)[701:])


@pytest.mark.parametrize("dtype", KINDS)
def test_order_of_rows_does_not_matter(dtype):
    rng = np.random.default_rng(5)
    X, y = unit_rows(rng, 700, 8).astype(dtype), rng.integers(-1, 3, 700).astype(float)
    q, order = query(rng.normal(size=(8, 3))), rng.permutation(700)
    near = 1e-3 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(q.block(X, y), q.block(X[order], y[order]), atol=near)


@pytest.mark.parametrize("dtype", KINDS)
def test_kept_sums_the_rows_that_are_kept(dtype):
    rng = np.random.default_rng(6)
    X, y = unit_rows(rng, 300, 8).astype(dtype), rng.integers(-1, 3, 300).astype(float)
    q, keep = query(rng.normal(size=(8, 3))), rng.random(300) < 0.4
    near = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(q.kept(X, y, keep), q.block(X[keep], y[keep]), atol=near)
    np.testing.assert_array_equal(q.kept(X, y, np.ones(300, dtype=bool)), q.block(X, y))
    np.testing.assert_array_equal(q.kept(X, y, np.zeros(300, dtype=bool)), 0)


def test_a_row_of_no_class_and_a_zero_row_contribute_nothing():
    W = np.ones((2, 3))
    X = np.array([[1.0, 0.0], [0.0, 0.0]])
    np.testing.assert_array_equal(query(W).block(X, np.array([-1.0, 2.0])), 0)
    assert query(W).block(np.zeros((0, 2)), np.zeros(0)).shape == (2, 3)
    assert query(W).shape(17) == (2, 3)


@pytest.mark.parametrize("dtype", KINDS)
def test_scores_that_overflow_stay_with_their_row(dtype):
    # cleaned rows have norm 1; if one were longer, it must not spoil the sum of the others
    X = np.array([[1.0, 0.0], [0.0, 1e30 if dtype == np.float32 else 1e300]], dtype=dtype)
    q, y = query(np.array([[0.3, -0.3], [9e29, -9e29]])), np.array([0.0, 1.0])
    found = q.block(X, y)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[1], 0)
    np.testing.assert_allclose(found[0], q.block(X[:1], y[:1])[0], rtol=1e-6)
    assert np.isfinite(q.norms(X, y)).all()


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("slope", [1.0, -1.0])
def test_a_row_longer_than_the_radius_is_lost_but_spoils_nothing(slope, dtype):
    # scores of at most 30 are expected; these overflow, or all underflow
    X = np.array([[1.0, 0.0], [0.0, 1e5]], dtype=dtype)
    q, y = query(np.array([[0.3, -0.3], [slope, 1.1 * slope]])), np.array([0.0, 1.0])
    found = q.block(X, y)
    np.testing.assert_array_equal(found[1], 0)
    np.testing.assert_allclose(found[0], q.block(X[:1], y[:1])[0], rtol=1e-6)
    assert (q.norms(X, y) <= 1).all()


@pytest.mark.parametrize("clip", [0.0, -1.0, 1e-7, 1e7, math.inf, math.nan])
def test_a_clip_out_of_range_is_refused(clip):
    with pytest.raises(ValueError, match="clip must lie between"):
        query(np.zeros((2, 2)), clip)


def test_weights_that_are_not_finite_and_missing_labels_are_refused():
    for bad in (np.nan, np.inf, 2e30):
        with pytest.raises(ValueError, match="finite numbers"):
            query(np.array([[bad, 0.0]]))
    with pytest.raises(TypeError, match="labels"):
        query(np.zeros((2, 2))).block(np.zeros((1, 2)), None)


# every claim, under both relations ---------------------------------------------------------------


def claims(rng: np.random.Generator, d: int = 5, c: int = 3) -> dict[str, object]:
    """One statistic of each kind, at random weights."""
    W, cleaning = 2 * rng.normal(size=(d, c)), Cleaning(radius=1.0, classes=c)
    clip = 10.0 ** rng.uniform(-3, 0.5)
    span = GradientSpan.of(unit_rows(rng, 9, d), rng.integers(0, c, 9), W)
    return {
        "ClippedGradients": PricedGradients(W, clip, cleaning),
        "ProjectedGradients": ProjectedGradients(W, clip, cleaning, span),
        "clip first": ProjectedGradients(W, clip, cleaning, span, clip_first=True),
        "row_count": row_count(cleaning),
        "correct_rows": correct_rows(W, cleaning),
    }


def claimed(statistic, X: np.ndarray, y: np.ndarray, relation: str) -> float:
    """Sensitivity of the sum, as a session has it."""
    with Private(X, y).open(epsilon=1.0, delta=1e-6, relation=relation) as session:
        return session.sensitivity(RowSum(statistic))


def summed(statistic, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return statistic.block(*statistic.cleaning(X, y))


@pytest.mark.parametrize("name", list(claims(np.random.default_rng(0))))
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_no_neighbour_passes_a_claim(relation, name):
    rng, d, c = np.random.default_rng(8), 5, 3
    worst = 0.0
    for _ in range(150):
        X, y, place, other, code = neighbours(rng, d, c)
        statistic = claims(rng, d, c)[name]
        if relation == "add-remove":
            changed, codes = np.delete(X, place, axis=0), np.delete(y, place)
        else:
            changed, codes = X.copy(), y.copy()
            changed[place], codes[place] = other, code
        moved = np.linalg.norm(summed(statistic, X, y) - summed(statistic, changed, codes))
        bound = claimed(statistic, X, y, relation)
        assert moved <= bound
        worst = max(worst, moved / bound)
    assert worst > 0.5  # neighbours that hardly move anything would test nothing


@pytest.mark.parametrize("name", list(claims(np.random.default_rng(0))))
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_claims_are_attained(relation, name):
    """By a row that counts, or whose gradient is clipped, and by its opposite."""
    cleaning, W = Cleaning(radius=1.0, classes=2), np.zeros((3, 2))
    x, y = np.array([[1.0, 0.0, 0.0]]), np.array([0.0])
    span = GradientSpan.of(x, np.array([0]), W)
    statistic = {
        "ClippedGradients": PricedGradients(W, 0.5, cleaning),
        "ProjectedGradients": ProjectedGradients(W, 0.5, cleaning, span),
        "clip first": ProjectedGradients(W, 0.5, cleaning, span, clip_first=True),
        "row_count": row_count(cleaning),
        "correct_rows": correct_rows(W, cleaning),
    }[name]
    counts = name in ("row_count", "correct_rows")
    other = (x[:0], y[:0]) if relation == "add-remove" else (-x, np.array([-1.0 if counts else 0]))
    moved = np.linalg.norm(summed(statistic, x, y) - summed(statistic, *other))
    bound = claimed(statistic, x, y, relation)
    assert 0.998 * bound <= moved <= bound


def test_counts_are_of_rows_with_a_class_and_of_rows_that_are_right():
    cleaning = Cleaning(radius=1.0, classes=3)
    X, y = np.eye(3), np.array([0.0, 1.0, -1.0])
    assert summed(row_count(cleaning), X, y) == [2.0]
    assert summed(correct_rows(np.eye(3), cleaning), X, y) == [2.0]
    assert summed(correct_rows(np.eye(3)[::-1], cleaning), X, y) == [1.0]
    beside = np.column_stack([X, 9 * X[::-1]])  # products with public rows are no features
    assert correct_rows(np.eye(3), cleaning).block(beside, y) == [2.0]
    assert row_count(cleaning).block(X, None) == [0.0]
