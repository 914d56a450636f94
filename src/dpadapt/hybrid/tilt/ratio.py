"""The ratio of the target's density to the source's, modelled from released moments; its cap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaincinv

from dpadapt._types import FloatArray, IntArray

from .cells import CellLaws

_WITHIN_ONE = 0.6826894921370859  # of the normal law, within one standard deviation
_KEPT = np.arange(0.30, 0.96, 0.05)  # rho: shares of the target that a cap may leave whole
_CAPS = np.geomspace(1.0, 1e6, 400)


@dataclass(frozen=True, eq=False)
class Law:
    """Location, spread and correlations of a population; the normal law unless ``shape`` is not 2.

    Parameters
    ----------
    centre, spread : ndarray of shape (d,)
        Spread: half of the interval around the centre that holds 68%.
    correlation : ndarray of shape (d, d)
    shape : float, default=2.0
        Exponent of the generalised normal law: 1 has longer tails (Laplace), 10 is nearly uniform.
    cells : Cells, optional
        Laws of the columns that are none of these; they are independent of the others.

    Examples
    --------
    >>> law = Law(np.zeros(1), np.ones(1), np.eye(1), shape=10.0)
    >>> bool(law.draw(1000).max() < 1.8), bool((np.abs(law.draw(1000)) < 1).mean() > 0.6)
    (True, True)
    """

    centre: FloatArray
    spread: FloatArray
    correlation: FloatArray
    shape: float = 2.0
    cells: CellLaws | None = None

    @cached_property
    def factor(self) -> FloatArray:
        """L with L L^T = covariance (of the normal law)."""
        return np.asarray(np.linalg.cholesky(self.correlation) * self.spread[:, None])

    def draw(self, count: int, seed: int = 0) -> FloatArray:
        """Rows of the law by public coins."""
        rng = np.random.default_rng(seed)
        size = (count, len(self.centre))
        if self.shape == 2.0:
            units = rng.normal(size=size)
        else:
            power = 1 / self.shape
            units = rng.gamma(power, size=size) ** power * rng.choice([-1.0, 1.0], size)
            units /= gammaincinv(power, _WITHIN_ONE) ** power
        rows = np.asarray(self.centre + units @ self.factor.T)
        if self.cells is not None:
            self.cells.fill(rows, rng)
        return rows


@dataclass(frozen=True, eq=False)
class Ratio:
    """log of target density over source density.

    Normal laws both, times the ratio cell by cell of the columns that are not normal; these have
    the same centre, spread and (no) correlations in both laws, so that nothing counts twice.

    Parameters
    ----------
    source, target : Law

    Examples
    --------
    >>> one = Law(np.zeros(1), np.ones(1), np.eye(1))
    >>> ratio = Ratio(one, Law(np.zeros(1), np.array([0.5]), np.eye(1)))
    >>> ratio.logs(np.array([[0.0], [2.0]])).round(3)  # log 2, and log 2 - 6
    array([ 0.693, -5.307])
    """

    source: Law
    target: Law

    @cached_property
    def _parts(self) -> tuple[FloatArray, FloatArray, float]:
        inverse = [np.linalg.inv(law.factor) for law in (self.source, self.target)]
        logs = [float(np.log(np.diag(law.factor)).sum()) for law in (self.source, self.target)]
        return np.asarray(inverse[0].T), np.asarray(inverse[1].T), logs[0] - logs[1]

    def logs(self, X: FloatArray) -> FloatArray:
        """One number a row."""
        source, target, constant = self._parts
        near = np.square((X - self.target.centre) @ target).sum(axis=1)
        far = np.square((X - self.source.centre) @ source).sum(axis=1)
        logs = np.asarray(constant + (far - near) / 2)
        if self.source.cells is not None and self.target.cells is not None:
            logs += self.source.cells.logs(X, self.target.cells)
        return logs


@dataclass(frozen=True)
class Cap:
    """Largest weight W of a row, and the part of the target's mass that it leaves.

    Attributes
    ----------
    weight : float
        W.
    kept : float
        rho = E min(1, W / w) over the target.
    noise : float
        Noise of a gradient's coefficients together, over their signal: p s W / rho, with s the
        noise of one coefficient for weights of at most 1.

    Examples
    --------
    >>> Cap.none(noise=0.01)
    Cap(weight=1.0, kept=1.0, noise=0.01)
    """

    weight: float
    kept: float
    noise: float

    @classmethod
    def none(cls, noise: float) -> Cap:
        """All rows weigh 1."""
        return cls(1.0, 1.0, noise)

    @classmethod
    def best(cls, logs: FloatArray, noise: float, most: float) -> Cap:
        """Largest cap with a noise of at most ``most``; else the one that keeps 30% of the mass.

        A lower cap biases little where some rule is nearly right: what it keeps has the same
        labels, in other proportions. Noise grows with W and spares nobody.

        Parameters
        ----------
        logs : ndarray
            log w of rows of the target.
        noise : float
            Of a gradient whose rows weigh at most 1.
        most : float

        Examples
        --------
        >>> Cap.best(np.zeros(100), noise=0.01, most=0.05)
        Cap(weight=1.0, kept=1.0, noise=0.01)
        >>> round(Cap.best(np.full(100, np.log(50.0)), noise=0.01, most=0.05).kept, 1)
        0.3
        """
        ordered = np.sort(np.exp(np.clip(logs, -700, 700)))
        above = np.concatenate([np.cumsum(1 / np.maximum(ordered, 1e-300)[::-1])[::-1], [0.0]])
        whole = np.searchsorted(ordered, _CAPS)
        kept = np.minimum((whole + _CAPS * above[whole]) / len(ordered), 1.0)
        found = None
        for least in _KEPT:
            place = min(int(np.searchsorted(kept, least)), len(_CAPS) - 1)
            share = max(float(kept[place]), 1e-12)
            cap = cls(float(_CAPS[place]), share, noise * float(_CAPS[place]) / share)
            if found is None or cap.noise <= most:
                found = cap
        assert found is not None
        return found


def correlation_matrix(
    size: int, pairs: tuple[IntArray, IntArray], values: FloatArray
) -> FloatArray:
    """Correlations of pairs as a matrix that is one: eigenvalues raised to 0.05, diagonal 1.

    Examples
    --------
    >>> correlation_matrix(2, (np.array([0]), np.array([1])), np.array([0.999])).round(3)
    array([[1.  , 0.95],
           [0.95, 1.  ]])
    """
    matrix = np.eye(size)
    matrix[pairs[0], pairs[1]] = matrix[pairs[1], pairs[0]] = np.clip(values, -0.95, 0.95)
    roots, vectors = np.linalg.eigh(matrix)
    matrix = (vectors * np.maximum(roots, 0.05)) @ vectors.T
    spread = np.sqrt(np.diag(matrix))
    return np.asarray(matrix / np.outer(spread, spread))


def orthant_correlation(agreement: FloatArray) -> FloatArray:
    r"""Correlation of two normal variables from the chance of equal signs, 1/2 + asin(r) / pi.

    Examples
    --------
    >>> orthant_correlation(np.array([0.5, 2 / 3])).round(3)
    array([0. , 0.5])
    """
    return np.sin(math.pi * (np.clip(agreement, 0.01, 0.99) - 0.5))
