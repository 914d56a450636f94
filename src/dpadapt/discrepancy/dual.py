r"""The dual of discrepancy minimisation: tilts, their weights, what these certify, and its solvers.

The dual at the level :math:`\tau` is a concave function of a symmetric tilt L:

.. math:: \langle L, M_0\rangle - \log mean_i \exp(x_i^T L x_i) - \tau \|L\|_{tr}.

A pass over the rows is two m x d x d products. Second derivatives are computed in single precision
for large samples, since a Newton direction need not be exact. A level is solved by truncated Newton
steps, and by L-BFGS where these are slow.

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
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import OptimizeResult, minimize

from dpadapt._types import FloatArray
from dpadapt.learning.newton import BlockVector, Product, conjugate_gradients, line_search
from dpadapt.learning.softmax import softmax

_Rows = npt.NDArray[Any]

_BLOCK = 4096  # rows per matrix product: the temporaries stay in the processor's cache
_LARGE = 1_000_000  # numbers in the rows from which single precision pays
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


class DualRows:
    """The rows and the target, in units of the longest row and the eigenbasis of the moment."""

    def __init__(self, X: FloatArray, target_moment: FloatArray) -> None:
        longest = float(np.sqrt(np.vecdot(X, X).max()))
        self.unit = longest if longest > 0 else 1.0
        rows = X / self.unit
        self.rotation: FloatArray = np.linalg.eigh(rows.T @ rows)[1]
        self.rows: FloatArray = rows @ self.rotation
        symmetric = (target_moment + target_moment.T) / (2 * self.unit**2)
        self.target: FloatArray = self.rotation.T @ symmetric @ self.rotation
        self.coarse: _Rows = self.rows
        if self.rows.size >= _LARGE:
            self.coarse = self.rows.astype(np.float32)

    def forms(self, tilt: FloatArray) -> FloatArray:
        """Return x_i^T L x_i for every row."""
        return _forms(self.rows, tilt)

    def moment(self, weights: FloatArray) -> FloatArray:
        """Return S(q)."""
        total = np.zeros_like(self.target)
        for block, rows in _blocks(self.rows):
            half = rows * np.sqrt(weights[block, None])
            total += half.T @ half
        return total

    def curvature(
        self, weights: FloatArray, direction: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the direction's forms and the weighted covariance of these with x x^T."""
        forms = _forms(self.coarse, direction)
        factors = self._coarse(weights * (forms - weights @ forms))
        total = np.zeros_like(self.target)
        for block, rows in _blocks(self.coarse):
            total += (rows * factors[block]).T @ rows
        return forms, (total + total.T) / (2 * len(forms))

    def product_variances(self, weights: FloatArray, basis: FloatArray) -> FloatArray:
        """Return the weighted variance of y_k y_l for every pair of coordinates in the basis."""
        factors, turn = self._coarse(weights), basis.astype(self.coarse.dtype)
        second, fourth = np.zeros_like(self.target), np.zeros_like(self.target)
        for block, rows in _blocks(self.coarse):
            turned = rows @ turn
            second += (turned * factors[block]).T @ turned
            turned *= turned
            fourth += (turned * factors[block]).T @ turned
        m = len(self.rows)
        return np.maximum(fourth / m - (second / m) ** 2, 0.0)

    def _coarse(self, factors: FloatArray) -> _Rows:
        """Return one factor per row, times m against underflow, as a column."""
        return (len(factors) * factors).astype(self.coarse.dtype)[:, None]


class TiltedWeights:
    """The weights of one tilt, and what they certify."""

    def __init__(self, source: DualRows, tilt: FloatArray) -> None:
        # exactly symmetric: of rounding errors in one triangle only, nothing would be certified
        self.tilt = tilt = (tilt + tilt.T) / 2
        self.forms = source.forms(tilt)
        self.weights: FloatArray = softmax(self.forms)
        highest = self.forms.max()
        self.log_mean = float(highest + np.log(np.exp(self.forms - highest).mean()))
        self.residual: FloatArray = source.target - source.moment(self.weights)
        self.discrepancy = norm(self.residual)
        self.eigenvalues, self.eigenvectors = np.linalg.eigh(tilt)
        self.trace_norm = float(np.abs(self.eigenvalues).sum())
        self.alignment = float(np.vdot(tilt, source.target))

    @cached_property
    def lower_bound(self) -> float:
        """No weights have a smaller discrepancy (the tilt must not be zero)."""
        return (self.alignment - float(self.forms.max())) / self.trace_norm

    @cached_property
    def nearest_below(self) -> float:
        """No weights of at most this discrepancy are nearer to uniform."""
        return float(np.vdot(self.tilt, self.residual)) / self.trace_norm


class DiscrepancyLevel(NamedTuple):
    """One level: weights of a discrepancy under `accept` are wanted, none is under `lower`."""

    accept: float
    lower: float
    give_up: float
    slack: float
    final: bool
    max_passes: int

    @property
    def aim(self) -> float:
        """The constraint's tau: under `accept`, so that approximate solutions are accepted."""
        return self.accept - self.slack

    def solved_by(self, point: TiltedWeights) -> bool:
        """Whether the weights are good enough, on the final level also near enough to uniform."""
        near = not self.final or point.nearest_below >= self.aim - self.slack
        return point.discrepancy <= self.accept and near


class Incumbent(NamedTuple):
    """The best point of a level so far, the bound that was proved, and the passes it took."""

    best: TiltedWeights
    lower: float
    passes: int

    def settles(self, level: DiscrepancyLevel) -> bool:
        """Whether the level is solved or proved impossible."""
        return level.solved_by(self.best) or self.lower > min(level.aim, level.give_up)


def norm(symmetric: FloatArray) -> float:
    """Return the spectral norm."""
    return float(np.abs(np.linalg.eigvalsh(symmetric)).max())


def spread(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the symmetric matrix of given eigenvalues and eigenvectors."""
    matrix: FloatArray = (vectors * values) @ vectors.T
    return matrix


def _blocks(rows: _Rows) -> Iterator[tuple[slice, _Rows]]:
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        yield block, rows[block]


def _forms(rows: _Rows, tilt: FloatArray) -> FloatArray:
    matrix = tilt.astype(rows.dtype)
    parts = [np.vecdot(block @ matrix, block) for _, block in _blocks(rows)]
    return np.concatenate(parts).astype(np.float64)


def concentrated(weights: FloatArray) -> bool:
    """Whether a few hundred rows have nearly all the weight."""
    return float(weights[_heaviest(weights)].sum()) >= _HEAVY_SHARE


def newton(source: DualRows, start: TiltedWeights, level: DiscrepancyLevel) -> Incumbent:
    """Maximise the smoothed dual until the level is solved, impossible, or out of passes."""
    smoothing = min(_SMOOTHING, 2 * level.slack / level.aim)
    point = start
    found = Incumbent(start, level.lower, 0)
    patience = min(_PATIENCE, level.max_passes)
    while found.passes < patience and not found.settles(level):
        step = _newton_step(source, point, level.aim, smoothing, patience - found.passes)
        if step.length == 0:  # rounding errors: no way up can be seen
            return found._replace(passes=found.passes + step.passes)
        point = TiltedWeights(source, point.tilt + step.length * step.direction)
        better = level.solved_by(point) or point.discrepancy < found.best.discrepancy
        found = Incumbent(
            point if better else found.best,
            max(found.lower, point.lower_bound),
            found.passes + step.passes + 1,
        )
    return found


def quasi_newton(source: DualRows, start: TiltedWeights, level: DiscrepancyLevel) -> Incumbent:
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

    def symmetric(unknowns: FloatArray) -> FloatArray:
        half = np.zeros((d, d))
        half[upper] = scale * unknowns
        return half + np.triu(half, 1).T

    evaluated: list[TiltedWeights] = []  # the latest point only
    found = Incumbent(start, level.lower, 0)

    def negative_dual(unknowns: FloatArray) -> tuple[float, FloatArray]:
        nonlocal found
        found = found._replace(passes=found.passes + 1)
        point = TiltedWeights(source, symmetric(unknowns))
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
        found = Incumbent(best, max(found.lower, point.lower_bound), found.passes)
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
    direction: FloatArray
    length: float
    passes: int


def _newton_step(
    source: DualRows, point: TiltedWeights, level: float, smoothing: float, max_passes: int
) -> _Step:
    """Return an approximate Newton direction of the negative dual and a step along it."""
    trace = _SmoothTrace(point.eigenvalues, smoothing * point.trace_norm / len(point.tilt))
    vectors = point.eigenvectors
    gradient = level * spread(trace.slopes, vectors) - point.residual
    bends = level * trace.bends
    precondition = _preconditioner(source, point, bends)

    def product(search: BlockVector) -> Product:
        """With the forms, which add up as the directions do."""
        turned = vectors.T @ search[0] @ vectors
        forms, curvature = source.curvature(point.weights, search[0])
        image = curvature + vectors @ (bends * turned) @ vectors.T
        return Product((search[0], forms), image, float(np.vdot(search[0], image)))

    (direction, forms), products = conjugate_gradients(
        gradient,
        (np.zeros_like(gradient), np.zeros_like(point.forms)),
        product,
        lambda residual: (precondition(residual),),
        lambda residual, search: float(np.vdot(residual, search[0])),
        tolerance=_INEXACT**2,
        most=min(_MAX_PRODUCTS, max_passes),
    )

    start = float(np.vdot(gradient, direction))
    pull = float(np.vdot(spread(trace.slopes, vectors), direction))
    # <L, M_0> changes at this rate, but for the forms' rounding errors, which cancel in this way
    rate = float(point.weights @ forms) + level * pull - start

    def slope(length: FloatArray) -> FloatArray:
        values, turned = np.linalg.eigh(point.tilt + length * direction)
        moved = _SmoothTrace(values, trace.width)
        along = float(np.vdot(spread(moved.slopes, turned), direction))
        weights = softmax(point.forms + length * forms)
        return np.asarray(float(weights @ forms) - rate + level * along)

    if not start < 0:
        return _Step(direction, 0.0, products + 1)
    length = line_search(slope, np.asarray(start), flat=_FLAT, most=_MAX_TRIALS)
    return _Step(direction, float(length), products + 1)


def _heaviest(weights: FloatArray) -> npt.NDArray[np.intp]:
    """Return the rows of largest weight."""
    count = min(_HEAVY, len(weights))
    return np.argpartition(weights, -count)[-count:]


def _preconditioner(
    source: DualRows, point: TiltedWeights, bends: FloatArray
) -> Callable[[FloatArray], FloatArray]:
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

    def precondition(residual: FloatArray) -> FloatArray:
        half = np.zeros((d, d))
        half[upper] = inverse(scale * (vectors.T @ residual @ vectors)[upper]) / scale
        return _turned(vectors, half + np.triu(half, 1).T)

    return precondition


def _turned(vectors: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return the symmetric part, out of the basis."""
    return vectors @ (matrix + matrix.T) @ vectors.T / 2


def _inverse(diagonal: FloatArray, products: FloatArray) -> Callable[[FloatArray], FloatArray]:
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


class _SmoothTrace:
    """Derivatives of Tr (L^2 + e^2 I)^{1/2} in the eigenbasis of L."""

    def __init__(self, eigenvalues: FloatArray, width: float) -> None:
        self.width = width
        self.eigenvalues = eigenvalues
        self.roots = np.hypot(eigenvalues, width)
        self.slopes: FloatArray = eigenvalues / self.roots

    @property
    def bends(self) -> FloatArray:
        """The divided differences of the slopes: the second derivative multiplies by them."""
        # with l = e sinh(a): (tanh a - tanh b) / (sinh a - sinh b) = 1 / (cosh a cosh b) *
        # cosh((a - b) / 2) / cosh((a + b) / 2), and no difference of near equals is left
        angles = np.arcsinh(self.eigenvalues / self.width)
        mean = (angles[:, None] + angles) / 2
        half = (angles[:, None] - angles) / 2
        ratio = np.exp(np.logaddexp(half, -half) - np.logaddexp(mean, -mean))
        return self.width * ratio / np.outer(self.roots, self.roots)
