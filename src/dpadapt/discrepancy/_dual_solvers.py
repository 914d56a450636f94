r"""Solvers of the dual at one level: truncated Newton steps, and L-BFGS where these are slow.

Both smooth the trace norm to :math:`Tr (L^2 + e^2 I)^{1/2}`. A Newton direction comes from
conjugate gradients, each of which is a pass over the rows; the preconditioner is diagonal in the
eigenbasis of L, where the smoothed trace norm's second derivative is diagonal too. Along a
direction the forms :math:`x_i^T L x_i` are linear, so that a line search needs no pass.

Newton steps are quick while most rows have weight, and again when few hundred rows have all of
it. In between, fewer rows than unknowns have the weight, the second derivative is nearly
singular, and L-BFGS gets further in as many passes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import OptimizeResult, minimize

from dpadapt.learning.softmax import softmax

from ._dual import Array, DualRows, Found, Level, Tilted, spread

_SMOOTHING = 0.2  # smoothing of the trace norm, relative to the tilt's mean |eigenvalue|, at most
_INEXACT = 0.3  # relative error of a Newton direction, in the preconditioner's norm
_MAX_PRODUCTS = 60  # of one Newton direction
_HEAVY, _HEAVY_SHARE = 400, 0.9  # rows that the preconditioner treats exactly, and their weight
_FLAT = 0.3  # a line search stops where the slope has fallen to this part of its start
_MAX_TRIALS = 40  # of a line search
_TINY = 1e-10  # curvatures are at least this part of the largest
_PATIENCE = 60  # passes that Newton steps may take for one level
_MEMORY = 20  # curvature pairs kept by L-BFGS
_CURVATURE = 3.0  # of the smoothed trace norm for L-BFGS, relative to 1 / mean |eigenvalue|


def concentrated(weights: Array) -> bool:
    """Whether a few hundred rows have nearly all the weight."""
    return float(weights[_heaviest(weights)].sum()) >= _HEAVY_SHARE


def newton(source: DualRows, start: Tilted, level: Level) -> Found:
    """Maximise the smoothed dual until the level is solved, impossible, or out of passes."""
    smoothing = min(_SMOOTHING, 2 * level.slack / level.aim)
    point = start
    found = Found(start, level.lower, 0)
    patience = min(_PATIENCE, level.max_passes)
    while found.passes < patience and not found.settles(level):
        step = _newton_step(source, point, level.aim, smoothing, patience - found.passes)
        if step.length == 0:  # rounding errors: no way up can be seen
            return found._replace(passes=found.passes + step.passes)
        point = Tilted(source, point.tilt + step.length * step.direction)
        better = level.solved_by(point) or point.discrepancy < found.best.discrepancy
        found = Found(
            point if better else found.best,
            max(found.lower, point.lower_bound),
            found.passes + step.passes + 1,
        )
    return found


def quasi_newton(source: DualRows, start: Tilted, level: Level) -> Found:
    """Do the same by L-BFGS."""
    d = len(source.target)
    mean_eigenvalue = start.trace_norm / d
    smoothing = min(_SMOOTHING, 2 * level.slack / level.aim) * mean_eigenvalue

    # The unknowns are svec(L), off-diagonals times sqrt(2), divided by the root of an estimate of
    # the dual's curvature: the variance of the row's products, plus the trace norm's share.
    upper = np.triu_indices(d)
    copies = np.where(upper[0] == upper[1], 1.0, 2.0)
    curvature = copies * source.product_variances(start.weights, np.eye(d))[upper]
    curvature += _CURVATURE * level.aim / mean_eigenvalue
    scale = 1 / np.sqrt(copies * curvature)

    def symmetric(unknowns: Array) -> Array:
        half = np.zeros((d, d))
        half[upper] = scale * unknowns
        return half + np.triu(half, 1).T

    evaluated: list[Tilted] = []  # the latest point only
    found = Found(start, level.lower, 0)

    def negative_dual(unknowns: Array) -> tuple[float, Array]:
        nonlocal found
        found = found._replace(passes=found.passes + 1)
        point = Tilted(source, symmetric(unknowns))
        evaluated[:] = [point]
        trace = _SmoothTrace(point.eigenvalues, smoothing)
        value = point.log_mean - point.alignment + level.aim * trace.roots.sum()
        gradient = level.aim * spread(trace.slopes, point.eigenvectors) - point.residual
        return value, scale * copies * gradient[upper]

    def check(intermediate_result: OptimizeResult) -> None:
        nonlocal found
        point = evaluated[0]
        better = level.solved_by(point) or point.discrepancy < found.best.discrepancy
        best = point if better else found.best
        found = Found(best, max(found.lower, point.lower_bound), found.passes)
        if found.settles(level) or found.passes >= level.max_passes:
            raise StopIteration

    minimize(
        negative_dual,
        start.tilt[upper] / scale,
        jac=True,
        method="L-BFGS-B",
        callback=check,
        options={"maxcor": _MEMORY, "ftol": 0, "gtol": 0, "maxiter": level.max_passes},
    )
    return found


class _Step(NamedTuple):
    direction: Array
    length: float
    passes: int


def _newton_step(
    source: DualRows, point: Tilted, level: float, smoothing: float, max_passes: int
) -> _Step:
    """Return an approximate Newton direction of the negative dual and a step along it."""
    trace = _SmoothTrace(point.eigenvalues, smoothing * point.trace_norm / len(point.tilt))
    vectors = point.eigenvectors
    gradient = level * spread(trace.slopes, vectors) - point.residual
    bends = level * trace.bends
    precondition = _preconditioner(source, point, bends)

    def product(direction: Array) -> tuple[Array, Array]:
        forms, curvature = source.curvature(point.weights, direction)
        return forms, curvature + vectors @ (bends * (vectors.T @ direction @ vectors)) @ vectors.T

    # conjugate gradients, which keep the forms of the sum of their directions
    direction, forms = np.zeros_like(gradient), np.zeros_like(point.forms)
    residual = -gradient
    search = precondition(residual)
    size = first_size = float(np.vdot(residual, search))
    products = 0
    while products < min(_MAX_PRODUCTS, max_passes) and size > _INEXACT**2 * first_size:
        search_forms, image = product(search)
        products += 1
        bend = float(np.vdot(search, image))
        if not bend > 0:  # rounding errors
            break
        direction = direction + size / bend * search
        forms += size / bend * search_forms
        residual = residual - size / bend * image
        conjugate = precondition(residual)
        size, before = float(np.vdot(residual, conjugate)), size
        search = conjugate + size / before * search

    start = float(np.vdot(gradient, direction))
    pull = float(np.vdot(spread(trace.slopes, vectors), direction))
    # <L, M_0> changes at this rate, but for the forms' rounding errors, which cancel in this way
    rate = float(point.weights @ forms) + level * pull - start

    def slope(length: float) -> float:
        values, turned = np.linalg.eigh(point.tilt + length * direction)
        moved = _SmoothTrace(values, trace.width)
        along = float(np.vdot(spread(moved.slopes, turned), direction))
        return float(softmax(point.forms + length * forms) @ forms) - rate + level * along

    return _Step(direction, _search(slope, start), products + 1)


def _heaviest(weights: Array) -> npt.NDArray[np.intp]:
    """Return the rows of largest weight."""
    count = min(_HEAVY, len(weights))
    return np.argpartition(weights, -count)[-count:]


def _preconditioner(source: DualRows, point: Tilted, bends: Array) -> Callable[[Array], Array]:
    """Return the inverse of an estimate of the second derivative.

    In the eigenbasis of the tilt, the estimate is diagonal but for the rows of large weight: near
    the minimum few rows carry most of it, and their part is inverted exactly.
    """
    vectors, light = point.eigenvectors, point.weights.copy()
    d = len(bends)
    heaviest = _heaviest(light)
    if not concentrated(light):
        heaviest = heaviest[:0]
    light[heaviest] = 0.0
    copies = 2.0 - np.eye(d)
    diagonal = copies * source.product_variances(light, vectors) + bends
    diagonal = np.maximum(diagonal, _TINY * diagonal.max())
    if not len(heaviest):
        return lambda residual: _turned(vectors, (vectors.T @ residual @ vectors) / diagonal)
    upper = np.triu_indices(d)
    scale = np.sqrt(copies[upper])  # of svec, off-diagonals times sqrt 2
    turned = source.rows[heaviest] @ vectors
    mean = vectors.T @ (source.target - point.residual) @ vectors
    products = turned[:, upper[0]] * turned[:, upper[1]] - mean[upper]
    products *= scale
    products *= np.sqrt(point.weights[heaviest, None])
    inverse = _inverse(diagonal[upper], products)

    def precondition(residual: Array) -> Array:
        half = np.zeros((d, d))
        half[upper] = inverse(scale * (vectors.T @ residual @ vectors)[upper]) / scale
        return _turned(vectors, half + np.triu(half, 1).T)

    return precondition


def _turned(vectors: Array, matrix: Array) -> Array:
    """Return the symmetric part, out of the basis."""
    return vectors @ (matrix + matrix.T) @ vectors.T / 2


def _inverse(diagonal: Array, products: Array) -> Callable[[Array], Array]:
    """Return the inverse of diag + P^T P, in the smaller of the two spaces (Woodbury)."""
    rows, columns = products.shape
    with contextlib.suppress(LinAlgError):  # rounding errors: make do with the diagonal
        if columns <= rows:
            whole = products.T @ products
            whole[np.diag_indices(columns)] += diagonal
            factor = cho_factor(whole, overwrite_a=True, check_finite=False)
            return lambda b: cho_solve(factor, b, check_finite=False)
        spread_out = products / diagonal
        gram = spread_out @ products.T
        gram[np.diag_indices(rows)] += 1.0
        factor = cho_factor(gram, overwrite_a=True, check_finite=False)
        return lambda b: (
            b / diagonal - cho_solve(factor, spread_out @ b, check_finite=False) @ spread_out
        )
    return lambda b: b / diagonal


def _search(slope: Callable[[float], float], start: float) -> float:
    """Return where a convex function that falls with slope `start` at 0 is nearly lowest."""
    if not start < 0:
        return 0.0
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(_MAX_TRIALS):
        here = slope(length)
        if abs(here) <= _FLAT * -start:
            return length
        if here > 0:
            high = length
        else:
            low = length
        length = 2 * low if high == np.inf else (low + high) / 2
    return low


class _SmoothTrace:
    """Derivatives of Tr (L^2 + e^2 I)^{1/2} in the eigenbasis of L."""

    def __init__(self, eigenvalues: Array, width: float) -> None:
        self.width = width
        self.eigenvalues = eigenvalues
        self.roots = np.hypot(eigenvalues, width)
        self.slopes: Array = eigenvalues / self.roots

    @property
    def bends(self) -> Array:
        """The divided differences of the slopes: the second derivative multiplies by them."""
        # with l = e sinh(a): (tanh a - tanh b) / (sinh a - sinh b) = 1 / (cosh a cosh b) *
        # cosh((a - b) / 2) / cosh((a + b) / 2), and no difference of near equals is left
        angles = np.arcsinh(self.eigenvalues / self.width)
        mean = (angles[:, None] + angles) / 2
        half = (angles[:, None] - angles) / 2
        ratio = np.exp(np.logaddexp(half, -half) - np.logaddexp(mean, -mean))
        return self.width * ratio / np.outer(self.roots, self.roots)
