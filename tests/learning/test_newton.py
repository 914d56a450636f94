"""Conjugate gradients and the line search, against plain linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from dpadapt.learning.newton import Product, conjugate_gradients, line_search


def problem(size=8, columns=1):
    rng = np.random.default_rng(size)
    A = rng.normal(size=(size, size))
    return A @ A.T + np.eye(size), rng.normal(size=(size, columns))


def solved(H, g, precondition=lambda r: (r,), **options):
    """Each column is a problem of its own."""

    def product(search):
        image = H @ search[0]
        return Product(search, image, (search[0] * image).sum(axis=0))

    options = {"tolerance": 1e-24, "most": 50, **options}
    inner = lambda r, z: (r * z[0]).sum(axis=0)  # noqa: E731
    return conjugate_gradients(g, (np.zeros_like(g),), product, precondition, inner, **options)


@pytest.mark.parametrize("columns", [1, 3])
def test_direction_is_that_of_newton(columns):
    H, g = problem(columns=columns)
    (x,), _ = solved(H, g)
    np.testing.assert_allclose(x, -np.linalg.solve(H, g), atol=1e-9)


def test_a_preconditioner_that_is_the_inverse_needs_one_product():
    H, g = problem()
    (x,), products = solved(H, g, lambda r: (np.linalg.solve(H, r),), tolerance=1e-18)
    np.testing.assert_allclose(x, -np.linalg.solve(H, g), atol=1e-9)
    assert products == 1


def test_it_stops_at_the_number_of_products_and_at_the_size_that_is_measured():
    H, g = problem()
    assert solved(H, g, most=2)[1] == 2
    assert solved(H, g, measure=lambda r, z: np.abs(r).sum(), tolerance=1.0)[1] == 0


def test_what_is_kept_of_a_direction_is_added_up_with_it():
    H, g = problem()
    F = np.random.default_rng(1).normal(size=(5, len(g)))

    def product(search):
        image = H @ search[0]
        return Product((*search, F @ search[0]), image, float(np.vdot(search[0], image)))

    (x, kept), _ = conjugate_gradients(
        g,
        (np.zeros_like(g), np.zeros((5, 1))),
        product,
        lambda r: (r,),
        lambda r, z: float(np.vdot(r, z[0])),
        tolerance=1e-20,
        most=50,
    )
    np.testing.assert_allclose(kept, F @ x, atol=1e-12)


def test_no_direction_is_taken_along_which_nothing_curves():
    (x,), products = solved(np.zeros((2, 2)), np.ones((2, 1)))
    assert products == 1
    assert (x == 0).all()


@pytest.mark.parametrize("best", [1e-3, 1.0, 37.0])
def test_line_search_ends_where_the_slope_is_small(best):
    start = np.array([-best, -2 * best])
    step = line_search(lambda t: np.array([1.0, 2.0]) * (t - best), start, flat=0.1)
    assert (np.abs(step - best) <= 0.1 * best).all()
