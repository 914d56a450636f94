"""Least squares in a ball, against a general solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from dpadapt.learning.least_squares import ball_least_squares, ball_multiplier


@pytest.mark.parametrize("radius", [0.05, 0.5, 10.0])
def test_ball_least_squares_agrees_with_a_general_solver(radius):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1.0, 0.3, 2.0]
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=40)
    A, b = X.T @ X / len(X), X.T @ y / len(X)
    w = ball_least_squares(A, b, radius=radius)
    best = minimize(
        lambda v: v @ A @ v - 2 * b @ v,
        np.zeros(3),
        constraints={"type": "ineq", "fun": lambda v: radius**2 - v @ v},
        options={"ftol": 1e-14},
    )
    assert np.linalg.norm(w) <= radius * (1 + 1e-9)
    assert w @ A @ w - 2 * b @ w <= best.fun + 1e-8


def test_ball_least_squares_without_any_information():
    assert (ball_least_squares(np.zeros((2, 2)), np.zeros(2), radius=1.0) == 0).all()


@pytest.mark.parametrize("columns", [(), (3,)])
def test_multiplier_brings_the_coefficients_to_the_radius(columns):
    rng = np.random.default_rng(0)
    values, along = rng.uniform(1e-3, 2.0, size=6), rng.normal(size=(6, *columns))
    multiplier = ball_multiplier(values, along, 0.3)
    shrunk = along / (values + multiplier).reshape(-1, *[1] * len(columns))
    assert np.linalg.norm(shrunk) == pytest.approx(0.3, rel=1e-12)
    assert ball_multiplier(values, along, 1e6) == 0.0
