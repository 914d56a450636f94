"""Where the curator's rows are: centre and spread of every column, signs of pairs. Released."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from dpadapt._types import FloatArray
from dpadapt.privacy import Grant, RowSum, Session
from dpadapt.privacy.mechanisms import Gaussian

from ..queries import Agreements, Histograms, Proportions
from ..signed_rows import SignedRows
from .cells import CellLaws, uneven_columns
from .plan import with_share
from .ratio import Law

_HALF_GRID = 2.0 ** (np.arange(-20, 13) / 2)
_GRID = np.concatenate([-_HALF_GRID[::-1], [0.0], _HALF_GRID])  # in units
_CELLS = len(_GRID) + 1


@dataclass(frozen=True, eq=False)
class Marginals:
    """Centre and spread of every column, as released.

    Attributes
    ----------
    centre, spread : ndarray of shape (d,)
    error : float
        Standard error of either in units of the spread, roughly.
    noise : float
        Standard deviation of the noise on one share of rows.
    cells : Cells or None
        Laws of the columns that are not nearly normal; None if all are.

    Examples
    --------
    >>> Marginals(np.zeros(1), np.ones(1), error=0.03, noise=0.01).clear
    False
    """

    centre: FloatArray
    spread: FloatArray
    error: float
    noise: float
    cells: CellLaws | None = None

    @property
    def law(self) -> Law:
        """Of independent columns."""
        return Law(self.centre, self.spread, np.eye(len(self.centre)), cells=self.cells)

    @property
    def clear(self) -> bool:
        """Whether quantiles are known to a few per cent; else a tilt would tilt anywhere."""
        return self.noise * math.sqrt(_CELLS / 2) <= 0.05


def marginal_mechanisms(session: Session, share: float) -> dict[str, Gaussian]:
    """What :func:`release_marginals` releases, by name; half of the share each.

    Examples
    --------
    >>> from dpadapt import Private
    >>> with Private([[0.0, 1.0]]).open(epsilon=1.0, delta=1e-6) as session:
    ...     planned = marginal_mechanisms(session, share=0.1)
    >>> {name: each.dimension for name, each in planned.items()}
    {'histograms': 136, 'shares': 4}
    """
    width = session.n_columns
    rows = SignedRows(width)
    first = Histograms(rows, np.zeros((width, len(_GRID))))
    second = Proportions(rows, np.zeros((2, width)))
    return {
        "histograms": with_share(session, first, share / 2, width * _CELLS),
        "shares": with_share(session, second, share / 2, 2 * width),
    }


def release_marginals(
    session: Session, grants: Any, origin: FloatArray, unit: FloatArray
) -> Marginals:
    """Release centre and spread of every column.

    First a histogram over a public grid of powers of the square root of 2: the normal law nearest
    to it in least squares. Then the shares of rows below centre minus and plus one spread of that
    law correct both.

    Parameters
    ----------
    session : Session
    grants : namespace of Grant
        With those of :func:`marginal_mechanisms`.
    origin, unit : ndarray of shape (d,)
        Public location and order of magnitude of the columns: the grid goes from 2^-10 to 2^6 units
        on both sides of the origin.

    Examples
    --------
    >>> from dpadapt import Private
    >>> X = np.random.default_rng(0).normal(3.0, 2.0, size=(10_000, 1))
    >>> with Private(X).open(epsilon=1.0, delta=1e-6) as session:
    ...     grants = session.plan(**marginal_mechanisms(session, share=1.0))
    ...     found = release_marginals(session, grants, np.zeros(1), np.ones(1))
    >>> found.centre.round(), found.spread.round()
    (array([3.]), array([2.]))
    """
    rows, n = SignedRows(len(unit)), max(1, session.n_rows)
    grid = origin[:, None] + unit[:, None] * _GRID
    histograms = session.hide(RowSum(Histograms(rows, grid)), keep=True)
    counts = session.release(grants.histograms, histograms)
    middle, half, normal = _nearest_normal(counts / n)
    noise = grants.histograms.scale / n
    uneven = uneven_columns(counts / n, normal, _GRID, half, noise)
    cells = CellLaws.of(counts / n, _GRID, origin, unit, uneven, noise) if uneven.any() else None
    middle, half = origin + unit * middle, unit * half

    thresholds = np.array([middle - half, middle + half])
    hidden = session.hide(RowSum(Proportions(rows, thresholds)), keep=True)
    shares = np.clip(session.release(grants.shares, hidden) / n, 0.02, 0.98)
    lower, upper = ndtri(shares)
    spread = 2 * half / np.maximum(upper - lower, 0.2)
    noise = grants.shares.scale / n
    return Marginals(middle + half - upper * spread, spread, 3 * noise, noise, cells)


def release_agreements(
    session: Session, grant: Grant, centre: FloatArray
) -> tuple[FloatArray, float]:
    """Release the share of rows on the same side of the centre, for pairs; and its noise.

    Examples
    --------
    >>> from dpadapt import Private
    >>> X = np.random.default_rng(0).normal(size=(10_000, 1)) * [1.0, 1.0, -1.0]
    >>> query = Agreements(SignedRows(3), np.zeros(3))
    >>> with Private(X).open(epsilon=1.0, delta=1e-6) as session:
    ...     grants = session.plan(pairs=with_share(session, query, 1.0, 3))
    ...     found, noise = release_agreements(session, grants.pairs, np.zeros(3))
    >>> np.abs(found.round(1))
    array([1., 0., 0.])
    """
    n = max(1, session.n_rows)
    query = Agreements(SignedRows(len(centre)), centre)
    shares = session.release(grant, session.hide(RowSum(query))) / n
    return shares, grant.scale / n


def _nearest_normal(shares: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Centre, spread (in units) and cells of the normal law nearest to each noisy histogram.

    Cell by cell, so that noise does not add up from cell to cell as in quantiles.
    """
    centres, spreads, cells = _normal_cells()
    misfit = np.square(cells).sum(axis=1) - 2 * shares @ cells.T
    best = misfit.argmin(axis=1)
    return centres[best], spreads[best], cells[best]


@lru_cache(maxsize=1)
def _normal_cells() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Normal laws of a grid of centres and spreads, and their histograms."""
    sides = 2.0 ** (np.arange(-40, 25) / 4)
    middles = np.concatenate([-sides[::-1], [0.0], sides])
    centres, spreads = (each.ravel() for each in np.meshgrid(middles, sides))
    below = ndtr((_GRID - centres[:, None]) / spreads[:, None])
    return centres, spreads, np.diff(below, axis=1, prepend=0.0, append=1.0)
