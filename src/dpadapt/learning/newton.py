"""Newton's steps without a matrix: directions by conjugate gradients, a line search by slopes.

Several problems may be solved at once: then slopes, lengths and inner products are arrays that hold
one number for each problem, of a shape that broadcasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dpadapt._types import FloatArray

BlockVector = tuple[FloatArray, ...]
"""A direction, and what is linear in it and worth keeping: its scores on the rows, say."""


class Product(NamedTuple):
    """What the second derivative makes of a direction.

    Attributes
    ----------
    direction : tuple of ndarray
        With all that is kept of it.
    image : ndarray
    bend : float or ndarray
        Inner product of direction and image.

    Examples
    --------
    >>> Product((np.ones(1),), 2 * np.ones(1), 2.0).bend
    2.0
    """

    direction: BlockVector
    image: FloatArray
    bend: Any


def conjugate_gradients(
    gradient: FloatArray,
    zero: BlockVector,
    product: Callable[[BlockVector], Product],
    precondition: Callable[[FloatArray], BlockVector],
    inner: Callable[[FloatArray, BlockVector], Any],
    *,
    tolerance: float,
    most: int,
    measure: Callable[[FloatArray, BlockVector], Any] | None = None,
) -> tuple[BlockVector, int]:
    """Newton direction -H^{-1} g, nearly, and the number of products with H.

    Parameters
    ----------
    gradient : ndarray
        g.
    zero : tuple of ndarray
        The direction 0, with all that is kept of it.
    product : callable
    precondition : callable
        An approximate inverse of H, with as much of the result as ``product`` needs.
    inner : callable
        Inner product of a residual with a direction.
    tolerance : float
        Part of its first size to which the residual is brought.
    most : int
        Products.
    measure : callable, optional
        The size of a residual, squared, from it and what ``precondition`` made of it; by default
        their inner product.

    Examples
    --------
    >>> H, g = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 0.0])
    >>> (x,), products = conjugate_gradients(
    ...     g,
    ...     (np.zeros(2),),
    ...     lambda p: Product(p, H @ p[0], p[0] @ H @ p[0]),
    ...     lambda r: (r,),
    ...     lambda r, p: r @ p[0],
    ...     tolerance=1e-20,
    ...     most=9,
    ... )
    >>> (H @ x).round(9), products
    (array([-1.,  0.]), 2)
    """
    found, residual = zero, -gradient
    conjugate = precondition(residual)
    search, size = conjugate, inner(residual, conjugate)
    first = size if measure is None else measure(residual, conjugate)
    for products in range(most):
        now = size if measure is None else measure(residual, conjugate)
        if np.all(now <= tolerance * first):
            return found, products
        direction, image, bend = product(search)
        if not np.any(bend > 0):  # rounding errors
            return found, products + 1
        length = _divided(size, bend)
        found = tuple(x + length * p for x, p in zip(found, direction, strict=True))
        residual = residual - length * image
        conjugate = precondition(residual)
        size, before = inner(residual, conjugate), size
        turn = _divided(size, before)
        search = tuple(z + turn * p for z, p in zip(conjugate, search, strict=True))
    return found, most


def _divided(above: Any, below: Any) -> FloatArray:
    """Quotients; 0 where there is nothing to divide by."""
    return np.divide(above, below, out=np.zeros_like(above, dtype=float), where=below > 0)


def line_search(
    slope: Callable[[FloatArray], FloatArray], start: FloatArray, *, flat: float, most: int = 60
) -> FloatArray:
    """Steps down convex functions to a much smaller slope, by doubling and halving.

    Parameters
    ----------
    slope : callable
        From steps to the slopes there.
    start : ndarray
        Slopes at 0, not positive.
    flat : float
        Part of the first slope that is small enough.
    most : int, default=60
        Trials.

    Examples
    --------
    >>> line_search(lambda t: t - 3.0, np.array([-3.0]), flat=0.1)
    array([3.])
    """
    low, high = np.zeros_like(start), np.full_like(start, np.inf)
    step = np.ones_like(start)
    for _ in range(most):
        now = slope(step)
        done = np.abs(now) <= flat * np.abs(start)
        if done.all():
            break
        low, high = np.where(now < 0, step, low), np.where(now > 0, step, high)
        middle = np.where(np.isinf(high), 2 * step, (low + np.minimum(high, 1e300)) / 2)
        step = np.where(done, step, middle)
    return step
