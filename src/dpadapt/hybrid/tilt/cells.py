"""Columns that no normal law describes: counts, 0 and 1, atoms, long tails. Histograms instead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from dpadapt._types import BoolArray, FloatArray

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
