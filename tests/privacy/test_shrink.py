"""One function shrinks to a norm: no vector is left longer, whatever rounding does."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpadapt.privacy import shrink_factors

CELLS = st.floats(-1e140, 1e140, allow_nan=False)
RADII = st.floats(1e-140, 1e140)


def square(vector):
    """Exact square of the norm."""
    return sum(Fraction(float(cell)) ** 2 for cell in vector)


@settings(max_examples=300, deadline=None)
@given(arrays(np.float64, st.integers(1, 6), elements=CELLS), RADII)
def test_no_vector_is_left_longer_than_the_radius(vector, radius):
    shrunk = vector * shrink_factors(np.linalg.norm(vector), radius)
    assert square(shrunk) <= Fraction(radius) ** 2


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 300), RADII, st.floats(-1e-12, 3e-12))
def test_no_vector_near_the_radius_is_left_longer(seed, columns, radius, above):
    rows = np.random.default_rng(seed).normal(size=(3, columns))
    rows *= (radius * (1 + above) / np.linalg.norm(rows, axis=1))[:, None]
    rows *= shrink_factors(np.linalg.norm(rows, axis=1), radius)[:, None]
    assert all(square(row) <= Fraction(radius) ** 2 for row in rows)


def test_without_the_hair_some_would_be():
    rows = np.random.default_rng(0).normal(size=(300, 5))
    rows *= (1.0 / np.linalg.norm(rows, axis=1))[:, None]
    assert any(square(row) > 1 for row in rows)
    rows *= shrink_factors(np.linalg.norm(rows, axis=1), 1.0)[:, None]
    assert all(square(row) <= 1 for row in rows)


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1e300), RADII)
def test_short_ones_stay_and_long_ones_reach_the_radius(length, radius):
    factor = float(shrink_factors(length, radius))
    if length <= radius * (1 - 2e-12):
        assert factor == 1.0
    elif 1e-290 < factor < 1:
        assert radius * (1 - 2e-12) <= factor * length <= radius


@pytest.mark.parametrize(
    ("length", "factor"),
    [(0.0, 1.0), (np.inf, 0.0), (np.nan, 0.0), (5e-324, 1.0), (1.7e308, 0.0)],
)
def test_odd_lengths(length, factor):
    with np.errstate(all="raise"):
        assert shrink_factors(length, 1e-8) == factor


def test_an_infinite_radius_shrinks_nothing():
    assert (shrink_factors([0.0, 1.0, 1e308], np.inf) == 1.0).all()
