r"""Discrepancy minimisation: weights that make the public rows look like the private ones.

The discrepancy of weights q is the spectral norm of :math:`M(q) = M_0 - S(q)`, with
:math:`S(q) = \sum_i q_i x_i x_i^T` and :math:`M_0` the (noisy) second moment of the private rows.
Many weights come close to the minimum; the ones nearest to uniform keep most public rows in use.
So we solve

.. math:: \min_q KL(q \| uniform) \quad s.t. \quad \|M(q)\|_2 \le \tau

for a decreasing sequence of levels :math:`\tau`. The dual has only d(d+1)/2 unknowns, a symmetric
tilt L with :math:`q_i \propto \exp(x_i^T L x_i)`:

.. math:: \max_L \; \langle L, M_0\rangle - \log mean_i \exp(x_i^T L x_i) - \tau \|L\|_{tr}.

Every tilt certifies two things, whatever the optimiser did:

* no weights have a discrepancy under
  :math:`(\langle L, M_0\rangle - \max_i x_i^T L x_i) / \|L\|_{tr}`;
* no weights of discrepancy at most :math:`\langle L, M(q)\rangle / \|L\|_{tr}` are nearer to
  uniform than the tilted ones, for these are the projection of uniform on a half-space that
  contains them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import OptimizeResult, minimize

Array = npt.NDArray[np.float64]

_ROUNDING = 1e-12  # a discrepancy this small, relative to the moments, is a rounding error
_BLOCK = 4096  # rows per matrix product: the temporaries stay in the processor's cache
_MEMORY = 20  # curvature pairs kept by L-BFGS
# The next level's place between the lower bound and the best discrepancy, after a level that was
# reached and after one that was proved impossible.
_AFTER_SUCCESS, _AFTER_FAILURE = 0.5, 0.8
_SLACK = 0.15  # of a level's room: what is given away to stop the optimiser early
_SMOOTHING = 0.2  # smoothing of the trace norm, relative to the tilt's mean |eigenvalue|
_CURVATURE = 3.0  # curvature of the smoothed trace norm, relative to 1 / mean |eigenvalue|
_FIRST_TILT = 10.0  # the first guess moves no log-weight by more than this


@dataclass(frozen=True)
class DiscrepancySolution:
    r"""Weights of (nearly) minimal discrepancy and their certificate.

    Attributes
    ----------
    weights : ndarray of shape (m,)
        The weights q, in the simplex; exactly uniform when uniform weights are good enough.
    discrepancy : float
        :math:`\|M_0 - S(q)\|_2`.
    lower_bound : float
        No weights whatsoever have a smaller discrepancy than this.
    uniform_discrepancy : float
        The discrepancy of uniform weights.
    tilt : ndarray of shape (d, d)
        The symmetric L with :math:`q_i \propto \exp(x_i^T L x_i)`; it extends the weights to
        rows that were not in the sample.
    iterations : int
        Passes over the rows.

    Examples
    --------
    >>> solution = minimise_discrepancy(np.eye(2), np.eye(2) / 2)
    >>> solution.lower_bound <= solution.discrepancy < 1e-12
    True
    """

    weights: Array
    discrepancy: float
    lower_bound: float
    uniform_discrepancy: float
    tilt: Array
    iterations: int


def minimise_discrepancy(
    X: npt.ArrayLike,
    target_moment: npt.ArrayLike,
    *,
    tolerance: float = 0.0,
    gap: float = 0.01,
    give_up: float = np.inf,
    max_iter: int = 1000,
) -> DiscrepancySolution:
    r"""Find the weights nearest to uniform whose discrepancy is as good as minimal.

    Parameters
    ----------
    X : array-like of shape (m, d)
        Public rows, scaled and with an intercept column.
    target_moment : array-like of shape (d, d)
        :math:`M_0`, possibly noisy, possibly indefinite. Only its symmetric part counts.
    tolerance : float, default=0.0
        A discrepancy this small is good enough. With Gaussian noise of scale s on
        :math:`M_0` it is pointless to go much below :math:`s\sqrt{2d}`.
    gap : float, default=0.01
        Stop when the discrepancy is certified to exceed the minimum by at most this fraction
        of the minimum, or of a tenth of the uniform weights' discrepancy if that is larger.
    give_up : float, default=inf
        Stop as soon as the minimum is certified to be larger than this.
    max_iter : int, default=1000
        Greatest number of passes over the rows. The certificate is valid even if it is reached.

    Returns
    -------
    DiscrepancySolution
        The weights and what is certified about them.

    Notes
    -----
    A pass costs two m x d x d products. Each level is solved by L-BFGS on the dual, scaled by the
    variances of the products x_k x_l in the eigenbasis of the public moment, with the trace norm
    smoothed to :math:`Tr (L^2 + e^2 I)^{1/2}`; a level below the minimum is recognised by the
    lower bound that rises above it.

    Examples
    --------
    Rows 0 and 1 are the coordinate axes; the target has three quarters of its mass on the first.

    >>> import numpy as np
    >>> solution = minimise_discrepancy(np.eye(2), np.diag([0.75, 0.25]))
    >>> np.allclose(solution.weights, [0.75, 0.25], atol=0.001)
    True
    >>> minimise_discrepancy(np.eye(2), np.eye(2) / 2).weights
    array([0.5, 0.5])
    """
    if not gap > 0:
        raise ValueError(f"gap must be positive, got {gap!r}")
    source = _Source.rotated(np.asarray(X, dtype=float), np.asarray(target_moment, dtype=float))
    uniform = best = _Tilted(source, np.zeros_like(source.target))
    direction = _worst_direction(uniform.residual)
    forms = source.forms(direction)
    lower, passes = max(0.0, float(np.vdot(direction, source.target) - forms.max())), 3
    floor = max(tolerance, _ROUNDING * (_norm(source.target) + _norm(source.moment(best.weights))))

    def goal() -> float:
        return max(floor, lower + gap * max(lower, uniform.discrepancy / 10))

    def next_level() -> _Level:
        accept = max(lower + place * (best.discrepancy - lower), goal())
        room = min(accept - lower, max(uniform.discrepancy - accept, gap * accept))
        return _Level(accept, lower, give_up, _SLACK * room, accept == goal(), max_iter - passes)

    settled, place = uniform.discrepancy <= goal(), _AFTER_SUCCESS
    step = _first_step(forms, uniform.discrepancy - next_level().aim)
    point = _Tilted(source, step * direction)
    while not settled and passes < max_iter and lower <= give_up:
        level = next_level()
        found = _solve_level(source, point, level)
        passes += found.passes
        lower = max(lower, found.lower)
        if level.solved_by(found.best):
            best = point = found.best
            settled, place = level.final, _AFTER_SUCCESS
            continue
        if found.best.discrepancy < best.discrepancy:
            best = found.best
        elif lower <= level.aim:  # rounding errors stopped the optimiser: nothing more to gain
            break
        place = _AFTER_FAILURE

    return DiscrepancySolution(
        weights=best.weights,
        discrepancy=best.discrepancy,
        lower_bound=lower,
        uniform_discrepancy=uniform.discrepancy,
        tilt=source.rotation @ best.tilt @ source.rotation.T,
        iterations=passes,
    )


def discrepancy(X: npt.ArrayLike, weights: npt.ArrayLike, target_moment: npt.ArrayLike) -> float:
    r"""Discrepancy of given weights, :math:`\|M_0 - S(q)\|_2`.

    Examples
    --------
    >>> discrepancy(np.eye(2), [0.5, 0.5], np.diag([0.75, 0.25]))
    0.25
    """
    rows, q = np.asarray(X, dtype=float), np.asarray(weights, dtype=float)
    return _norm(np.asarray(target_moment, dtype=float) - (rows * q[:, None]).T @ rows)


class _Tilted:
    """The weights of one tilt, and what they certify."""

    def __init__(self, source: _Source, tilt: Array) -> None:
        forms = source.forms(tilt)
        self.tilt = tilt
        self.highest = float(forms.max())
        unnormalised = np.exp(forms - self.highest)
        total = unnormalised.sum()
        self.weights: Array = unnormalised / total
        self.log_mean = self.highest + float(np.log(total / len(forms)))
        self.residual: Array = source.target - source.moment(self.weights)
        self.discrepancy = _norm(self.residual)
        self.eigenvalues, self.eigenvectors = np.linalg.eigh(tilt)
        self.trace_norm = float(np.abs(self.eigenvalues).sum())
        self.alignment = float(np.vdot(tilt, source.target))

    @property
    def lower_bound(self) -> float:
        """No weights have a smaller discrepancy (the tilt must not be zero)."""
        return (self.alignment - self.highest) / self.trace_norm

    @property
    def nearest_below(self) -> float:
        """No weights of at most this discrepancy are nearer to uniform."""
        return float(np.vdot(self.tilt, self.residual)) / self.trace_norm


@dataclass(frozen=True)
class _Source:
    """The rows and the target in the eigenbasis of the rows' moment (spectra do not change)."""

    rows: Array
    target: Array
    rotation: Array

    @classmethod
    def rotated(cls, X: Array, target_moment: Array) -> _Source:
        rotation = np.linalg.eigh(X.T @ X / len(X))[1]
        symmetric = (target_moment + target_moment.T) / 2
        return cls(X @ rotation, rotation.T @ symmetric @ rotation, rotation)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        for start in range(0, len(self.rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            yield block, self.rows[block]

    def forms(self, tilt: Array) -> Array:
        """Return x_i^T L x_i for every row."""
        return np.concatenate([np.vecdot(rows @ tilt, rows) for _, rows in self.blocks()])

    def moment(self, weights: Array) -> Array:
        """Return S(q)."""
        total = np.zeros_like(self.target)
        for block, rows in self.blocks():
            half = rows * np.sqrt(weights[block, None])
            total += half.T @ half
        return total

    def product_variances(self, weights: Array) -> Array:
        """Return the weighted variance of x_k x_l for every pair of columns."""
        fourth = np.zeros_like(self.target)
        for block, rows in self.blocks():
            squares = rows**2
            fourth += (squares * weights[block, None]).T @ squares
        return np.maximum(fourth - self.moment(weights) ** 2, 0.0)


def _norm(symmetric: Array) -> float:
    return float(np.abs(np.linalg.eigvalsh(symmetric)).max())


def _worst_direction(residual: Array) -> Array:
    """Return the rank-one matrix whose inner product with the residual is its spectral norm."""
    values, vectors = np.linalg.eigh(residual)
    worst = int(np.abs(values).argmax())
    direction: Array = np.sign(values[worst]) * np.outer(vectors[:, worst], vectors[:, worst])
    return direction


def _first_step(forms: Array, drop: float) -> float:
    """Return the tilt that makes the discrepancy in one direction drop: a guarded Newton step."""
    spread, variance = float(np.ptp(forms)), float(np.var(forms))
    return min(drop / variance, _FIRST_TILT / spread) if variance > 0 else 1.0


class _Level(NamedTuple):
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

    def solved_by(self, point: _Tilted) -> bool:
        """Whether the weights are good enough, on the final level also near enough to uniform."""
        near = not self.final or point.nearest_below >= self.aim - self.slack
        return point.discrepancy <= self.accept and near


class _Found(NamedTuple):
    best: _Tilted
    lower: float
    passes: int


def _solve_level(source: _Source, start: _Tilted, level: _Level) -> _Found:
    """Maximise the smoothed dual until the level is solved, impossible, or out of passes."""
    d = len(source.target)
    mean_eigenvalue = start.trace_norm / d
    smoothing = min(_SMOOTHING, 2 * level.slack / level.aim) * mean_eigenvalue

    # The unknowns are svec(L), off-diagonals times sqrt(2), divided by the root of an estimate of
    # the dual's curvature: the variance of the row's products, plus the trace norm's share.
    upper = np.triu_indices(d)
    copies = np.where(upper[0] == upper[1], 1.0, 2.0)
    curvature = copies * source.product_variances(start.weights)[upper]
    curvature += _CURVATURE * level.aim / mean_eigenvalue
    scale = 1 / np.sqrt(copies * curvature)

    def symmetric(unknowns: Array) -> Array:
        half = np.zeros((d, d))
        half[upper] = scale * unknowns
        return half + np.triu(half, 1).T

    evaluated: list[_Tilted] = []  # the latest point only
    best, lower, passes = start, level.lower, 0

    def negative_dual(unknowns: Array) -> tuple[float, Array]:
        nonlocal passes
        passes += 1
        point = _Tilted(source, symmetric(unknowns))
        evaluated[:] = [point]
        roots = np.hypot(point.eigenvalues, smoothing)
        value = point.log_mean - point.alignment + level.aim * roots.sum()
        vectors = point.eigenvectors
        gradient = level.aim * (vectors * (point.eigenvalues / roots)) @ vectors.T - point.residual
        return value, scale * copies * gradient[upper]

    def check(intermediate_result: OptimizeResult) -> None:
        nonlocal best, lower
        point = evaluated[0]
        lower = max(lower, point.lower_bound)
        if level.solved_by(point):
            best = point
            raise StopIteration
        if point.discrepancy < best.discrepancy:
            best = point
        if lower > min(level.aim, level.give_up) or passes >= level.max_passes:
            raise StopIteration

    minimize(
        negative_dual,
        start.tilt[upper] / scale,
        jac=True,
        method="L-BFGS-B",
        callback=check,
        options={"maxcor": _MEMORY, "ftol": 0, "gtol": 0, "maxiter": level.max_passes},
    )
    return _Found(best, lower, passes)
