"""James and Stein's factor: it lowers the error, and keeps what is far from noise."""

from __future__ import annotations

import numpy as np
import pytest

from dpadapt.learning.shrinkage import james_stein, shrunk


def test_factor_keeps_what_is_more_than_noise():
    assert james_stein(10.0, 1.0) == pytest.approx(0.9)
    assert james_stein(1.0, 1.0) == james_stein(0.5, 1.0) == james_stein(0.0, 1.0) == 0.0
    assert james_stein(1.0, 0.0) == 1.0


@pytest.mark.parametrize("length", [0.0, 1.0, 5.0])
def test_a_shrunken_vector_is_nearer_to_the_truth(length):
    rng, d = np.random.default_rng(0), 20
    truth = np.full(d, length / np.sqrt(d))
    seen = truth + rng.normal(size=(2000, d))
    factors = np.array([james_stein(float(each @ each), float(d)) for each in seen])
    error = np.mean(np.sum((factors[:, None] * seen - truth) ** 2, axis=1))
    assert error < np.mean(np.sum((seen - truth) ** 2, axis=1))


def test_directions_without_noise_stay():
    rows = np.random.default_rng(0).normal(size=(50, 4))
    noisy = np.random.default_rng(1).normal(size=(4, 2))
    np.testing.assert_allclose(shrunk(noisy, 0.0, rows), noisy)
