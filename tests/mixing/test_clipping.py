"""The clip from public gradients, and why they must not be those of fitted rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dpadapt.learning.softmax import gradient, gradient_norms, residuals
from dpadapt.mixing.queries import ClippedGradients
from dpadapt.papers.mixing.adamix import adaptive_clip, held_out
from dpadapt.privacy import Cleaning


def test_clip_is_the_percentile_of_the_norms_of_rows_with_a_class():
    rng = np.random.default_rng(0)
    X, codes, W = rng.normal(size=(50, 4)), rng.integers(-1, 3, 50), rng.normal(size=(4, 3))
    known = codes >= 0
    norms = gradient_norms(X[known], residuals(X[known], codes[known], W))
    for percentile in (0.0, 50.0, 90.0, 100.0):
        found = adaptive_clip(X, codes, W, percentile, floor=1e-6)
        assert found == pytest.approx(np.percentile(norms, percentile))
    assert adaptive_clip(X, codes, W, 90.0, floor=100.0) == 100.0


@pytest.mark.parametrize("case", ["zero", "perfect", "none", "no class"])
def test_without_public_gradients_the_floor_is_used(case):
    X, codes, W = np.eye(3), np.arange(3), np.zeros((3, 3))
    if case == "zero":
        X = np.zeros_like(X)
    elif case == "perfect":
        W = 1e4 * np.eye(3)
    elif case == "none":
        X, codes = X[:0], codes[:0]
    else:
        codes = -np.ones(3, dtype=int)
    clip = adaptive_clip(X, codes, W, 90.0, floor=1e-3)
    assert clip == 1e-3
    query = ClippedGradients(np.zeros((3, 3)), clip, Cleaning(radius=1.0, classes=3))
    assert np.isfinite(query.block(np.eye(3), np.arange(3.0))).all()


def test_held_out_rows_are_a_part_of_every_class_and_leave_rows_to_fit():
    codes = np.repeat([0, 1, 2, 3], [1, 2, 5, 20])
    held = held_out(codes, seed=3)
    assert [int(held[codes == k].sum()) for k in range(4)] == [0, 1, 1, 4]
    np.testing.assert_array_equal(held, held_out(codes, seed=3))
    assert any((held != held_out(codes, seed=s)).any() for s in range(5))
    assert held_out(codes, fraction=0.99)[codes == 3].sum() == 19
    many = held_out(np.array([-1, -1, 0, 0]))
    assert not many[:2].any()


@pytest.mark.parametrize("codes", [[0, 1, 2], [0], [-1, -1], []])
def test_with_one_row_a_class_all_rows_serve(codes):
    held = held_out(np.array(codes, dtype=int))
    assert held.all()
    assert len(held) == len(codes)


def digits(seed: int):
    """Unit rows with a constant: 5 public ones a class, and the others as private."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    place = np.concatenate([np.flatnonzero(y == k)[:5] for k in range(10)])
    public = np.zeros(len(y), dtype=bool)
    public[place] = True
    X = X - np.mean([X[public & (y == k)].mean(axis=0) for k in range(10)], axis=0)
    X = np.column_stack([X / np.linalg.norm(X, axis=1, keepdims=True), np.full(len(X), 0.3)])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X[public], y[public], X[~public], y[~public]


def fit(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    W = np.zeros((X.shape[1], 10))
    for _ in range(300):
        W -= 10 * (gradient(X, codes, W) / len(X) + 1e-4 * W)
    return W


def test_percentile_of_fitted_rows_clips_too_many_private_gradients_and_held_out_rows_cure_it():
    biased, cured = [], []
    for seed in range(5):
        P, codes, X, y = digits(seed)

        def clipped(rows, labels, W, X=X, y=y):
            clip = adaptive_clip(rows, labels, W, 90.0, floor=1e-3)
            return np.mean(gradient_norms(X, residuals(X, y, W)) > clip)

        biased.append(clipped(P, codes, fit(P, codes)))
        held = held_out(codes, seed=seed)
        cured.append(clipped(P[held], codes[held], fit(P[~held], codes[~held])))
    assert np.mean(biased) > 0.4  # the percentile says 0.1
    assert np.mean(cured) < 0.25
