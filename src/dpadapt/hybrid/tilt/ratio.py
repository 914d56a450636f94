"""The tilt: the ratio of the target's density to the source's, from released moments and cells.

Columns that no normal law describes (counts, 0 and 1, atoms, long tails) have histograms instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import gammaincinv, ndtr

from dpadapt._types import BoolArray, FloatArray, IntArray

_VISIBLE = 4.0  # standard deviations of noise from which a cell counts as filled
_MOST_HIDDEN = 0.1
_FAR_FROM_NORMAL = 0.1  # largest difference of the distribution functions
_WIDE = 2.0  # standard deviation over the spread of the normal law that fits the middle
_ATOM = 0.9
_NOTHING = 1e-300


def uneven_columns(
    shares: FloatArray, normal: FloatArray, grid: FloatArray, spread: FloatArray, noise: float
) -> BoolArray:
    """Which columns are not to be described by their nearest normal law.

    Because another tenth of the rows lies elsewhere than the law says; or because rows far out
    make the standard deviation twice that of the law; or because one cell holds nearly all rows,
    and nothing is known of their spread. Noise alone does not make a column uneven.

    Parameters
    ----------
    shares, normal : ndarray of shape (d, k + 1)
        Noisy shares of rows in the cells, and those of the nearest normal law.
    grid : ndarray of shape (k,)
        Edges of the cells.
    spread : ndarray of shape (d,)
        Of the normal laws, in the units of the grid.
    noise : float
        Standard deviation of the noise on a share.

    Examples
    --------
    >>> grid, shares = np.array([-1.0, 0.0, 1.0]), np.array([[0.0, 0.7, 0.3, 0.0]])
    >>> uneven_columns(shares, shares, grid, np.ones(1), noise=0.001)
    array([False])
    >>> uneven_columns(shares, np.array([[0.0, 1.0, 0.0, 0.0]]), grid, np.array([0.1]), 0.001)
    array([ True])
    """
    apart = np.abs(np.cumsum(shares - normal, axis=1)).max(axis=1)
    seen = _visible(shares, noise)
    middles = _middles(grid)
    sd = np.sqrt(np.maximum(seen @ middles**2 - (seen @ middles) ** 2, 0.0))
    noisy = 3 * noise * np.sqrt(shares.shape[1])  # sums of noise stay below, with chance 0.99
    return np.asarray(
        (apart > max(_FAR_FROM_NORMAL, noisy))
        | (sd > _WIDE * spread)
        | (shares.max(axis=1) > _ATOM)
    )


@dataclass(frozen=True, eq=False)
class CellLaws:
    """Laws of the uneven columns over public cells.

    Parameters
    ----------
    grid : ndarray of shape (k,)
        Edges of the cells, in units.
    origin, unit : ndarray of shape (d,)
    shares : ndarray of shape (d, k + 1)
        Positive where a row may be; the others' rows of this table mean nothing.
    seen : ndarray of shape (d, k + 1)
        Shares of the rows that noise does not hide.
    uneven : ndarray of bool of shape (d,)

    Examples
    --------
    >>> coins = CellLaws.of(np.array([[0.0, 0.75, 0.25, 0.0]]), np.array([-1.0, 0.0, 1.0]),
    ...                  np.zeros(1), np.ones(1), np.array([True]), noise=1e-9)
    >>> bool(coins.tilted(np.array([0.5])).shares[0, 2] > 0.25)
    True
    """

    grid: FloatArray
    origin: FloatArray
    unit: FloatArray
    shares: FloatArray
    seen: FloatArray
    uneven: BoolArray

    @classmethod
    def of(
        cls,
        shares: FloatArray,
        grid: FloatArray,
        origin: FloatArray,
        unit: FloatArray,
        uneven: BoolArray,
        noise: float,
    ) -> CellLaws:
        """Laws from noisy shares.

        Only cells that noise cannot have filled count. The rest of the rows, and be it the few that
        noise could hide, counts as normal with the public origin and unit: so a column that seems
        constant has a scale, and its rare values may be common in another population.
        """
        total = np.where(shares > _VISIBLE * noise, shares, 0.0).sum(axis=1)
        least = min(_VISIBLE * noise, _MOST_HIDDEN)
        hidden = np.clip(1 - total, least, 1.0)[:, None]
        normal = np.diff(ndtr(grid), prepend=0.0, append=1.0)
        seen = _visible(shares, noise)
        return cls(grid, origin, unit, (1 - hidden) * seen + hidden * normal, seen, uneven)

    @cached_property
    def _standard(self) -> FloatArray:
        """Middles of the cells, less the mean, over the standard deviation of the column."""
        middles = _middles(self.grid)
        mean = self.shares @ middles
        sd = np.sqrt(np.maximum(self.shares @ middles**2 - mean**2, 1e-12))
        return np.asarray((middles - mean[:, None]) / sd[:, None])

    def tilted(self, move: FloatArray) -> CellLaws:
        """Shares times exp(move * standardised middle): for a normal law, a move of its mean."""
        logs = move[:, None] * self._standard
        return replace(self, shares=_tilt(self.shares, logs), seen=_tilt(self.seen, logs))

    @property
    def without_hidden(self) -> CellLaws:
        """Laws of the rows that noise does not hide: only of these can a weight be told."""
        return replace(self, shares=self.seen)

    def below(self, column: int, moves: FloatArray) -> FloatArray:
        """Chances to lie below each edge after each of some tilts: (m, k)."""
        logs = moves[:, None] * self._standard[column]
        return np.asarray(np.cumsum(_tilt(self.shares[column], logs), axis=1)[:, :-1])

    def cuts(self) -> FloatArray:
        """For each column, the edge that divides it most evenly."""
        below = np.cumsum(self.shares, axis=1)[:, :-1]
        return self.origin + self.unit * self.grid[np.abs(below - 0.5).argmin(axis=1)]

    def place(self, column: int, cut: float) -> int:
        """Index of the edge nearest to a cut."""
        at = (cut - self.origin[column]) / self.unit[column]
        return int(np.abs(self.grid - at).argmin())

    def logs(self, X: FloatArray, other: CellLaws) -> FloatArray:
        """Log of another law's density over this one's, summed over the uneven columns."""
        total = np.zeros(len(X))
        for j in np.flatnonzero(self.uneven):
            cell = np.searchsorted(self.origin[j] + self.unit[j] * self.grid, X[:, j])
            # where neither law has rows there is nothing to say
            mine, theirs = (np.log(np.maximum(e.shares[j], _NOTHING)) for e in (self, other))
            total += (theirs - mine)[cell]
        return total

    def fill(self, rows: FloatArray, rng: np.random.Generator) -> None:
        """Put draws of the laws into the uneven columns of a table: middles of cells."""
        middles = _middles(self.grid)
        for j in np.flatnonzero(self.uneven):
            drawn = rng.choice(len(middles), len(rows), p=self.shares[j] / self.shares[j].sum())
            rows[:, j] = self.origin[j] + self.unit[j] * middles[drawn]


def _visible(shares: FloatArray, noise: float) -> FloatArray:
    seen = np.where(shares > _VISIBLE * noise, shares, 0.0)
    seen[np.arange(len(seen)), shares.argmax(axis=1)] += 1e-12  # at least one cell
    return np.asarray(seen / seen.sum(axis=1, keepdims=True))


def _middles(grid: FloatArray) -> FloatArray:
    """Middles of the cells; of the open ones, their edge."""
    return np.concatenate([grid[:1], (grid[1:] + grid[:-1]) / 2, grid[-1:]])


def _tilt(shares: FloatArray, logs: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        logs = np.log(shares) + logs
    logs = logs - logs.max(axis=-1, keepdims=True)
    tilted = np.exp(logs)
    return np.asarray(tilted / tilted.sum(axis=-1, keepdims=True))


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
