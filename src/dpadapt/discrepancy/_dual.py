r"""The dual of discrepancy minimisation: tilts, their weights, and what these certify.

The dual at the level :math:`\tau` is a concave function of a symmetric tilt L:

.. math:: \langle L, M_0\rangle - \log mean_i \exp(x_i^T L x_i) - \tau \|L\|_{tr}.

A pass over the rows is two m x d x d products. Second derivatives are computed in single precision
for large samples, since a Newton direction need not be exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpadapt.learning.softmax import softmax

Array = npt.NDArray[np.float64]
_Rows = npt.NDArray[Any]

_BLOCK = 4096  # rows per matrix product: the temporaries stay in the processor's cache
_LARGE = 1_000_000  # numbers in the rows from which single precision pays


class DualRows:
    """The rows and the target, in units of the longest row and the eigenbasis of the moment."""

    def __init__(self, X: Array, target_moment: Array) -> None:
        longest = float(np.sqrt(np.vecdot(X, X).max()))
        self.unit = longest if longest > 0 else 1.0
        rows = X / self.unit
        self.rotation: Array = np.linalg.eigh(rows.T @ rows)[1]
        self.rows: Array = rows @ self.rotation
        symmetric = (target_moment + target_moment.T) / (2 * self.unit**2)
        self.target: Array = self.rotation.T @ symmetric @ self.rotation
        self.coarse: _Rows = self.rows
        if self.rows.size >= _LARGE:
            self.coarse = self.rows.astype(np.float32)

    def forms(self, tilt: Array) -> Array:
        """Return x_i^T L x_i for every row."""
        return _forms(self.rows, tilt)

    def moment(self, weights: Array) -> Array:
        """Return S(q)."""
        total = np.zeros_like(self.target)
        for block, rows in _blocks(self.rows):
            half = rows * np.sqrt(weights[block, None])
            total += half.T @ half
        return total

    def curvature(self, weights: Array, direction: Array) -> tuple[Array, Array]:
        """Return the direction's forms and the weighted covariance of these with x x^T."""
        forms = _forms(self.coarse, direction)
        factors = self._coarse(weights * (forms - weights @ forms))
        total = np.zeros_like(self.target)
        for block, rows in _blocks(self.coarse):
            total += (rows * factors[block]).T @ rows
        return forms, (total + total.T) / (2 * len(forms))

    def product_variances(self, weights: Array, basis: Array) -> Array:
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

    def _coarse(self, factors: Array) -> _Rows:
        """Return one factor per row, times m against underflow, as a column."""
        return (len(factors) * factors).astype(self.coarse.dtype)[:, None]


class Tilted:
    """The weights of one tilt, and what they certify."""

    def __init__(self, source: DualRows, tilt: Array) -> None:
        # exactly symmetric: of rounding errors in one triangle only, nothing would be certified
        self.tilt = tilt = (tilt + tilt.T) / 2
        self.forms = source.forms(tilt)
        self.weights: Array = softmax(self.forms)
        highest = self.forms.max()
        self.log_mean = float(highest + np.log(np.exp(self.forms - highest).mean()))
        self.residual: Array = source.target - source.moment(self.weights)
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


class Level(NamedTuple):
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

    def solved_by(self, point: Tilted) -> bool:
        """Whether the weights are good enough, on the final level also near enough to uniform."""
        near = not self.final or point.nearest_below >= self.aim - self.slack
        return point.discrepancy <= self.accept and near


class Found(NamedTuple):
    """What the work on a level led to."""

    best: Tilted
    lower: float
    passes: int

    def settles(self, level: Level) -> bool:
        """Whether the level is solved or proved impossible."""
        return level.solved_by(self.best) or self.lower > min(level.aim, level.give_up)


def norm(symmetric: Array) -> float:
    """Return the spectral norm."""
    return float(np.abs(np.linalg.eigvalsh(symmetric)).max())


def spread(values: Array, vectors: Array) -> Array:
    """Return the symmetric matrix of given eigenvalues and eigenvectors."""
    matrix: Array = (vectors * values) @ vectors.T
    return matrix


def _blocks(rows: _Rows) -> Iterator[tuple[slice, _Rows]]:
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        yield block, rows[block]


def _forms(rows: _Rows, tilt: Array) -> Array:
    matrix = tilt.astype(rows.dtype)
    parts = [np.vecdot(block @ matrix, block) for _, block in _blocks(rows)]
    return np.concatenate(parts).astype(np.float64)
