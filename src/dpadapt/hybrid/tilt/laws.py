"""Both populations as released numbers and agents' bits show them, and the tilt between them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpadapt._types import FloatArray
from dpadapt.privacy import Grant, Session
from dpadapt.privacy.local.poll import Poll

from ..queries import Weight, pairs_of
from .plan import AgentShares
from .ratio import Cap, Law, Ratio, correlation_matrix, orthant_correlation
from .source import Marginals, release_agreements
from .target import Shift, ask_agreements, ask_shape, ask_shift

DRAWS = 20_000  # public rows of a law, for the features' scale and the cap
CLEAR = 0.05  # noise of a gradient, over its signal, that a cap is raised for
_TOO_MUCH_NOISE = 1.0  # above, a tilt is given up


def weigh_all(X: FloatArray, y: FloatArray) -> FloatArray:
    """Weight 1 for every row.

    Examples
    --------
    >>> weigh_all(np.zeros((2, 1)), np.zeros(2))
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
    >>> Tilt(weigh_all, Cap.none(0.01)).overlap
    True
    """

    weight: Weight
    cap: Cap
    overlap: bool = True


@dataclass(frozen=True, eq=False)
class Located:
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
    >>> found = Located(Ratio(wide, narrow), narrow, shifted=True, beyond=False)
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
        flat = Tilt(weigh_all, Cap.none(noise))
        if not self.shifted:
            return flat
        rows = replace(self.target, cells=self.ratio.target.cells).draw(DRAWS)
        cap = Cap.best(self.ratio.logs(rows), noise, CLEAR)
        if self.beyond or cap.noise > _TOO_MUCH_NOISE:
            return Tilt(weigh_all, flat.cap, overlap=False)
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
) -> Located:
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
    return Located(ratio, target, shifted, shift.at_the_edge, spare)


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
