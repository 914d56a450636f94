"""Both populations as releases and agents' bits show them: the curator's rows, and the tilt.

Of the curator's rows the centre and spread of every column and signs of pairs are released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpadapt._types import FloatArray
from dpadapt.privacy import Grant, RowSum, Session
from dpadapt.privacy.local.poll import Poll
from dpadapt.privacy.mechanisms import Gaussian

from ..queries import Agreements, Weight, histograms, pairs_of, proportions
from ..signed_rows import SignedRows
from .plan import AgentShares, with_share
from .ratio import (
    Cap,
    CellLaws,
    Law,
    Ratio,
    correlation_matrix,
    orthant_correlation,
    uneven_columns,
)
from .target import Shift, ask_agreements, ask_shape, ask_shift

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
    first = histograms(rows, np.zeros((width, len(_GRID))))
    second = proportions(rows, np.zeros((2, width)))
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
    hidden = session.hide(RowSum(histograms(rows, grid)), keep=True)
    counts = session.release(grants.histograms, hidden).reshape(len(unit), -1)
    middle, half, normal = _nearest_normal(counts / n)
    noise = grants.histograms.scale / n
    uneven = uneven_columns(counts / n, normal, _GRID, half, noise)
    cells = CellLaws.of(counts / n, _GRID, origin, unit, uneven, noise) if uneven.any() else None
    middle, half = origin + unit * middle, unit * half

    thresholds = np.array([middle - half, middle + half])
    hidden = session.hide(RowSum(proportions(rows, thresholds)), keep=True)
    shares = np.clip(session.release(grants.shares, hidden) / n, 0.02, 0.98)
    lower, upper = ndtri(shares.reshape(thresholds.shape))
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


DRAWS = 20_000  # public rows of a law, for the features' scale and the cap
CLEAR_SIGNAL = 0.05  # noise of a gradient, over its signal, that a cap is raised for
_TOO_MUCH_NOISE = 1.0  # above, a tilt is given up


def unit_weights(X: FloatArray, y: FloatArray) -> FloatArray:
    """Weight 1 for every row.

    Examples
    --------
    >>> unit_weights(np.zeros((2, 1)), np.zeros(2))
    array([1., 1.])
    """
    return np.ones(len(X))


@dataclass(frozen=True, eq=False)
class Tilt:
    """Weights of rows: min(w, W) / W.

    Attributes
    ----------
    weight : callable
        From rows and labels to numbers between 0 and 1.
    cap : Cap
    overlap : bool
        False if the populations are too far apart: then all rows weigh the same.

    Examples
    --------
    >>> Tilt(unit_weights, Cap.none(0.01)).overlap
    True
    """

    weight: Weight
    cap: Cap
    overlap: bool = True


@dataclass(frozen=True, eq=False)
class Populations:
    """Where both populations are.

    Attributes
    ----------
    ratio : Ratio
    target : Law
        With the shape of its tails.
    shifted : bool
        Whether there is anything to tilt.
    beyond : bool
        Whether the target is further off than can be told.
    spare : int
        Agents that nothing was left to ask.

    Examples
    --------
    >>> wide = Law(np.zeros(1), np.ones(1), np.eye(1))
    >>> narrow = Law(np.zeros(1), np.array([0.5]), np.eye(1))
    >>> found = Populations(Ratio(wide, narrow), narrow, shifted=True, beyond=False)
    >>> found.tilt(noise=0.01).weight(np.array([[0.0], [2.0]]), np.zeros(2)).round(3)
    array([1.   , 0.003])
    """

    ratio: Ratio
    target: Law
    shifted: bool
    beyond: bool
    spare: int = 0

    def tilt(self, noise: float) -> Tilt:
        """Tilt for gradients that have this noise if no row weighs more than 1."""
        flat = Tilt(unit_weights, Cap.none(noise))
        if not self.shifted:
            return flat
        rows = replace(self.target, cells=self.ratio.target.cells).draw(DRAWS)
        cap = Cap.best(self.ratio.logs(rows), noise, CLEAR_SIGNAL)
        if self.beyond or cap.noise > _TOO_MUCH_NOISE:
            return Tilt(unit_weights, flat.cap, overlap=False)
        ratio, top = self.ratio, math.log(cap.weight)
        return Tilt(lambda X, y: np.exp(np.minimum(ratio.logs(X) - top, 0.0)), cap)


def moved(centre: FloatArray, spread: FloatArray, shift: Shift) -> tuple[FloatArray, FloatArray]:
    """Centre and spread after a shift.

    Examples
    --------
    >>> shift = Shift(np.array([2.0]), np.log([0.5]), np.zeros(1), np.zeros(1))
    >>> moved(np.array([1.0]), np.array([4.0]), shift)
    (array([9.]), array([2.]))
    """
    return centre + spread * shift.move, spread * np.exp(shift.log_scale)


def locate(
    session: Session,
    pairs: Grant | None,
    poll: Poll,
    shares: AgentShares,
    source: Marginals,
) -> Populations:
    """Laws of both populations; correlations only if there is a grant for them.

    Examples
    --------
    >>> from dpadapt import Private
    >>> from dpadapt.privacy.local.agents import Agents
    >>> X = np.random.default_rng(0).normal(size=(20_000, 1))
    >>> source = Marginals(np.zeros(1), np.ones(1), error=0.01, noise=0.001)
    >>> with (
    ...     Private(X).open(epsilon=1.0, delta=1e-6) as session,
    ...     Agents(X / 2).open(epsilon=1.0) as poll,
    ... ):
    ...     found = locate(session, None, poll, AgentShares.of(20_000, 1), source)
    >>> found.shifted, bool(0.3 < found.target.spread[0] < 0.7)
    (True, True)
    """
    width, cells = len(source.centre), source.cells
    asked = ask_shift(poll, shares.moments, source.centre, source.spread, cells)
    shift, uneven, tilted = asked.cut(source.error), np.zeros(width, dtype=bool), None
    changed = False
    if cells is not None:
        uneven, tilted = cells.uneven, cells.tilted(shift.move)
        changed = bool(shift.move[uneven].any())
        shift = shift.without(uneven)
    centre, spread = moved(source.centre, source.spread, shift)
    shape = ask_shape(poll, shares.shape, centre, spread, np.flatnonzero(~uneven))
    mine = theirs = np.eye(width)
    first, second = pairs_of(width)
    even = ~(uneven[first] | uneven[second])
    spare = (0 if even.any() else shares.pairs) + (shares.shape if uneven.all() else 0)
    if pairs is not None:
        # also if nobody will use it: what is spent must not depend on what was found
        released = release_agreements(session, pairs, source.centre)
    if pairs is not None and even.any():
        told = ask_agreements(poll, shares.pairs, centre, even)
        mine, theirs, turned = _correlations(width, even, *released, *told)
        changed |= turned
    known, leant = (None if each is None else each.without_hidden for each in (cells, tilted))
    ratio = Ratio(
        Law(source.centre, source.spread, mine, cells=known),
        Law(centre, spread, theirs, cells=leant),
    )
    shifted = source.clear and (shift.any or changed)
    target = Law(centre, spread, theirs, shape, tilted)
    return Populations(ratio, target, shifted, shift.at_the_edge, spare)


def _correlations(
    width: int,
    even: NDArray[np.bool_],
    mine: FloatArray,
    noise: float,
    theirs: FloatArray,
    error: float,
) -> tuple[FloatArray, FloatArray, bool]:
    """Correlations of source and target; pairs that do not clearly differ have the source's.

    Pairs with an uneven column have none.

    A pair counts as shifted from 3 standard errors on. If all pairs together differ by more than
    chance, many small shifts are likely (a direction across the columns), and 1.5 are enough.
    """
    away = np.where(even, np.abs(theirs - mine) / math.hypot(noise, error), 0.0)
    size = int(even.sum())
    many = float((away**2).sum()) > size + 3 * math.sqrt(2 * size)
    shifted = away > (1.5 if many else 3.0)
    flat = (np.abs(mine - 0.5) < 3 * noise) | ~even
    source = np.where(flat, 0.0, orthant_correlation(mine))
    target = np.where(shifted, orthant_correlation(theirs), source)
    pairs = pairs_of(width)
    one, two = (correlation_matrix(width, pairs, each) for each in (source, target))
    return one, two, bool(shifted.any())
