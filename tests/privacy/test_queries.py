"""Sensitivities of the shared queries: never passed, attained, and safe from what rows may hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.statistics import SecondMoment

RADIUS = 1.5
INTERCEPTS = {"none": 0.0, "below": 0.6, "equal": RADIUS, "above": 2.5}


def moved(x: np.ndarray, other: np.ndarray, cleaning: Cleaning) -> float:
    """How far one replaced row moves the sum of z z^T, in the Frobenius norm."""
    query = SecondMoment(cleaning)
    sums = [query.block(cleaning(row[None, :], None)[0], None) for row in (x, other)]
    return float(np.linalg.norm(sums[0] - sums[1]))


def many_moved(X: np.ndarray, Y: np.ndarray, cleaning: Cleaning) -> np.ndarray:
    """The same for many pairs at once, cleaned by the library, multiplied here."""
    (Z, _), (W, _) = cleaning(X, None), cleaning(Y, None)
    difference = np.einsum("ni,nj->nij", Z, Z) - np.einsum("ni,nj->nij", W, W)
    return np.linalg.norm(difference, axis=(1, 2))


def neighbours(rng: np.random.Generator, pairs: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Random rows and replacements: of all lengths, orthogonal, opposite, zero, duplicated."""
    X = rng.normal(size=(pairs, d))
    X *= RADIUS * rng.choice([0.3, 0.9, 1.0, 5.0], size=(pairs, 1)) / norms(X)
    Y = rng.normal(size=(pairs, d))
    kind = np.arange(pairs) % 5
    Y[kind == 1] = -X[kind == 1]
    Y[kind == 2] = 0.0
    Y[kind == 3] = X[kind == 3]
    across = kind == 4
    Y[across] -= (Y * X).sum(axis=1, keepdims=True)[across] * (X / norms(X) ** 2)[across]
    Y[across] *= RADIUS / np.maximum(norms(Y[across]), 1e-12)
    return X, Y


def norms(X: np.ndarray) -> np.ndarray:
    return np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("intercept", INTERCEPTS.values(), ids=INTERCEPTS.keys())
@pytest.mark.parametrize("d", [1, 2, 6])
def test_no_neighbour_passes_the_sensitivity_of_the_second_moment(d, intercept):
    rng = np.random.default_rng(d)
    cleaning = Cleaning(radius=RADIUS, intercept=intercept)
    X, Y = neighbours(rng, 10_000, d)
    bound = SecondMoment(cleaning).sensitivity(1)
    assert many_moved(X, Y, cleaning).max() <= bound * (1 + 1e-12)


@pytest.mark.parametrize("intercept", [0.0, 0.6, RADIUS, 1.6, 2.5, -0.6, -2.5])
def test_the_sensitivity_of_the_second_moment_is_attained(intercept):
    cleaning = Cleaning(radius=RADIUS, intercept=intercept)
    # x.x' = -c^2 makes the rows with intercept orthogonal; beyond that the opposite row is worst
    cosine = max(-1.0, -(intercept**2) / RADIUS**2)
    x = np.array([RADIUS, 0.0])
    other = RADIUS * np.array([cosine, math.sqrt(1 - cosine**2)])
    ratio = moved(x, other, cleaning) / SecondMoment(cleaning).sensitivity(1)
    assert 0.999 <= ratio <= 1 + 1e-12


def test_the_formula_for_small_intercepts_would_be_loose_for_large_ones_and_the_other_wrong():
    """Power: each regime's formula fails the other regime's test."""
    large = Cleaning(radius=RADIUS, intercept=2.5)
    assert SecondMoment(large).sensitivity(1) < 0.9 * math.sqrt(2) * (RADIUS**2 + 2.5**2)
    small = Cleaning(radius=RADIUS, intercept=0.6)
    X, Y = neighbours(np.random.default_rng(0), 10_000, 3)
    assert many_moved(X, Y, small).max() > 1.1 * math.sqrt(8) * 0.6 * RADIUS
    # a spectral-norm bound (r^2), taken for the Frobenius norm, would be passed as well
    assert many_moved(X, Y, Cleaning(radius=RADIUS)).max() > 1.3 * RADIUS**2


def test_the_sensitivity_of_a_mean_falls_with_the_rows():
    query = SecondMoment(Cleaning(radius=RADIUS))
    assert query.sensitivity(1000) == pytest.approx(query.sensitivity(1) / 1000)
    assert query.magnitude == pytest.approx(RADIUS**2)
    assert query.shape(4) == (4, 4)
    assert SecondMoment(Cleaning(radius=1.0, intercept=1.0)).shape(4) == (5, 5)


def hidden_value(X: np.ndarray, cleaning: Cleaning) -> tuple[np.ndarray, float]:
    """What a session hides (read here only because this is a test), and its sensitivity."""
    with Private(X).open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
        hidden = session.hide(SecondMoment(cleaning))
        return hidden._value, hidden.sensitivity


EXTREME = {
    "long": [1e6, 0.0, 0.0],
    "longer": [1e308, 1e308, -1e308],
    "inf": [np.inf, 0.0, 1.0],
    "minus inf": [-np.inf, np.inf, 1.0],
    "nan": [np.nan, 1.0, 1.0],
    "all nan": [np.nan] * 3,
    "tiny": [1e-310, 0.0, 0.0],
}


@pytest.mark.parametrize("row", EXTREME.values(), ids=EXTREME.keys())
@pytest.mark.parametrize("intercept", [0.0, 3.0])
@pytest.mark.parametrize("position", [0, 7])
def test_an_extreme_row_moves_the_hidden_value_by_no_more_than_the_sensitivity(
    row, intercept, position
):
    X = np.random.default_rng(1).normal(size=(8, 3))
    other = X.copy()
    other[position] = row
    cleaning = Cleaning(radius=RADIUS, intercept=intercept)
    (value, bound), (value_too, bound_too) = (
        hidden_value(X, cleaning),
        hidden_value(other, cleaning),
    )
    assert np.isfinite(value_too).all()
    assert bound == bound_too  # the sensitivity is public
    assert np.linalg.norm(value - value_too) <= bound


def test_without_clipping_the_extreme_row_would_be_seen():
    X = np.random.default_rng(1).normal(size=(8, 3))
    other = X.copy()
    other[0] = EXTREME["long"]
    cleaning = Cleaning(radius=RADIUS)
    raw = np.linalg.norm(X.T @ X - other.T @ other) / 8
    assert raw > 1e9 * SecondMoment(cleaning).sensitivity(8)


def float32_sum_of_squares(x: np.ndarray) -> float:
    """One number after the other, as a careless loop (or a float32 GEMM) does it."""
    return float(np.cumsum(np.square(x, dtype=np.float32), dtype=np.float32)[-1])


def test_float32_rows_are_summed_in_float64():
    """Amendment A8b: sums in float32 move by more than their sensitivity; ours do not."""
    n = 3_000_000
    x = np.full(n, 0.83, dtype=np.float32)
    x[0] = 1.0
    other = x.copy()
    other[0] = 0.0
    bound = 1.0  # of the sum, for rows in [-1, 1] and d = 1
    assert float32_sum_of_squares(x) - float32_sum_of_squares(other) > 1.2 * bound

    cleaning = Cleaning(radius=1.0)
    values = [hidden_value(rows[:, None], cleaning)[0][0, 0] for rows in (x, other)]
    assert abs(values[0] - values[1]) * n == pytest.approx(1.0, rel=1e-6)
    assert abs(values[0] - values[1]) <= hidden_value(x[:, None], cleaning)[1]
    assert values[0] == pytest.approx(math.fsum(x.astype(np.float64) ** 2) / n, rel=1e-14)
