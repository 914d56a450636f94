"""Where the agents are: their randomised bits give centre, spread, shape and correlations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincinv, ndtr

from dpadapt._types import FloatArray, IntArray
from dpadapt.privacy.local.poll import Poll
from dpadapt.privacy.local.randomisers import BinaryResponse

from ..queries import pairs_of
from ..questions import Below, SameSide, Within
from .ratio import CellLaws

_PHASES = (0.2, 0.3, 0.5)  # parts of the agents: each phase asks where the last one points
_FIRST_WIDTHS = np.array([0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
_FIRST_CUTS = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
_MOVES = np.linspace(-2.5, 2.5, 81)  # grid of the posterior, in spreads of the source
_LOG_SCALES = np.linspace(-3.2, 1.0, 85)
_LEAST_LIE = (
    1e-9  # as if: at large epsilon a bit that no law of the grid explains would rule out all
)
_WITHIN_ONE = 0.6826894921370859  # of the normal law
_FAR = 1.6  # spreads: how much lies within tells the tails
_SHAPES = np.array([1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0])


@dataclass(frozen=True, eq=False)
class Shift:
    """How the target's columns lie to the source's, in spreads of the source.

    Attributes
    ----------
    move, log_scale : ndarray of shape (d,)
        m and l: the target's centre is m spreads off, its spread e^l times the source's. For an
        uneven column m is its tilt, and l is 0.
    move_error, log_scale_error : ndarray of shape (d,)
        Posterior standard deviations.

    Examples
    --------
    >>> shift = Shift(np.array([0.1, 1.0]), np.zeros(2), np.full(2, 0.1), np.full(2, 0.1))
    >>> shift.cut(error=0.0).move
    array([0., 1.])
    """

    move: FloatArray
    log_scale: FloatArray
    move_error: FloatArray
    log_scale_error: FloatArray

    def cut(self, error: float, times: float = 2.0) -> Shift:
        """Without what is smaller than ``times`` its standard error, the source's included."""

        def large(values: FloatArray, errors: FloatArray) -> FloatArray:
            return np.where(np.abs(values) < times * np.hypot(errors, error), 0.0, values)

        move, scale = self.move, self.log_scale
        return Shift(
            large(move, self.move_error),
            large(scale, self.log_scale_error),
            self.move_error,
            self.log_scale_error,
        )

    def without(self, columns: NDArray[np.bool_]) -> Shift:
        """Some columns stay where they are."""
        move, scale = (np.where(columns, 0.0, each) for each in (self.move, self.log_scale))
        return Shift(move, scale, self.move_error, self.log_scale_error)

    @property
    def any(self) -> bool:
        """Whether any column moves or changes its scale."""
        return bool(self.move.any() or self.log_scale.any())

    @property
    def at_the_edge(self) -> bool:
        """Whether a column is as far off as can be told, or further."""
        far = np.abs(self.move) > 2.3
        return bool((far | (self.log_scale < -3.0) | (self.log_scale > 0.9)).any())


def ask_shift(
    poll: Poll, count: int, centre: FloatArray, spread: FloatArray, cells: CellLaws | None = None
) -> Shift:
    """Ask ``count`` agents one bit each about one of their columns.

    By turns whether the cell lies within a width of a point, and whether it lies below a cut; the
    first phase asks at fixed places, the later ones where the posterior mean is. The posterior is
    exact for a normal law on a grid, with a standard normal prior on move and log-scale. Uneven
    columns are only asked for the side of the edge that divides them most evenly.

    Parameters
    ----------
    poll : Poll
    count : int
    centre, spread : ndarray of shape (d,)
        The source's, as released.
    cells : Cells, optional
        The source's laws of uneven columns.

    Examples
    --------
    >>> from dpadapt.privacy.local.agents import Agents
    >>> X = np.random.default_rng(0).normal(1.0, 0.5, (20_000, 1))
    >>> with Agents(X).open(epsilon=1.0) as poll:
    ...     shift = ask_shift(poll, 20_000, np.zeros(1), np.ones(1))
    >>> shift.move.round(), np.exp(shift.log_scale).round(1)
    (array([1.]), array([0.5]))
    """
    width = len(centre)
    moves, scales = np.meshgrid(_MOVES, _LOG_SCALES, indexing="ij")
    logs = np.tile(-(moves**2 + scales**2) / 2, (width, 1, 1))
    lie = max(BinaryResponse(poll.epsilon).lie, _LEAST_LIE)
    found = Shift(np.zeros(width), np.zeros(width), np.ones(width), np.ones(width))
    uneven = np.zeros(width, dtype=bool) if cells is None else cells.uneven
    for phase, part in enumerate(_PHASES):
        asked = np.arange(int(part * count))
        column, turn = asked % width, asked // width // 2
        wide = (asked // width % 2 == 0) & ~uneven[column]
        first = phase == 0
        at = np.where(first, 0.0, found.move[column])
        reach = np.where(
            first, _FIRST_WIDTHS[turn % len(_FIRST_WIDTHS)], np.exp(found.log_scale[column])
        )
        cut = np.where(first, _FIRST_CUTS[turn % len(_FIRST_CUTS)], found.move[column])
        c, s = centre[column], spread[column]
        if cells is not None:
            edges = (cells.tilted(found.move).cuts() - centre) / spread
            cut = np.where(uneven[column], edges[column], cut)
        for mine, about_width in ((wide, True), (~wide, False)):
            if not mine.any():
                continue
            question = (
                Within(column[mine], (c + s * at)[mine], (s * reach)[mine])
                if about_width
                else Below(column[mine], (c + s * cut)[mine])
            )
            replies = poll.ask(question)
            who = np.flatnonzero(mine)[replies.places]
            at_or_zero = at[who] if about_width else np.zeros(len(who))
            edge = (reach if about_width else cut)[who]
            keys = np.column_stack([column[who], at_or_zero, edge])
            for j, point, t, yes, no in _tally(keys, replies.values):
                if cells is not None and uneven[int(j)]:
                    place = cells.place(int(j), centre[int(j)] + spread[int(j)] * t)
                    inside = np.broadcast_to(cells.below(int(j), _MOVES)[:, [place]], moves.shape)
                else:
                    inside = ndtr((point + t - moves) * np.exp(-scales))
                if about_width:
                    inside -= ndtr((point - t - moves) * np.exp(-scales))
                chance = lie + (1 - 2 * lie) * inside
                logs[int(j)] += yes * np.log(chance) + no * np.log1p(-chance)
        found = _posterior(logs, moves, scales)
        found.log_scale[uneven] = 0.0
    return found


def _tally(keys: FloatArray, bits: FloatArray) -> list[tuple[float, float, float, float, float]]:
    """Ones and zeros of equal questions."""
    if not len(keys):
        return []
    rows, which = np.unique(keys, axis=0, return_inverse=True)
    which = which.ravel()
    yes = np.bincount(which, bits, minlength=len(rows))
    no = np.bincount(which, 1 - bits, minlength=len(rows))
    return [(*row, y, n) for row, y, n in zip(rows.tolist(), yes, no, strict=True)]


def _posterior(logs: FloatArray, moves: FloatArray, scales: FloatArray) -> Shift:
    chances = np.exp(logs - logs.max(axis=(1, 2), keepdims=True))
    chances /= chances.sum(axis=(1, 2), keepdims=True)

    def mean(values: FloatArray) -> FloatArray:
        return np.asarray((chances * values).sum(axis=(1, 2)))

    m, s = mean(moves), mean(scales)
    variances = mean(moves**2) - m**2, mean(scales**2) - s**2
    errors = (np.sqrt(np.maximum(each, 1e-9)) for each in variances)
    return Shift(m, s, *errors)


def ask_shape(
    poll: Poll, count: int, centre: FloatArray, spread: FloatArray, among: IntArray | None = None
) -> float:
    """Exponent of the generalised normal law whose tails the agents' columns have, on average.

    Asks for the share within 1.6 spreads, over the columns ``among`` (or all) together; 2 (normal)
    unless the answer is 2.5 standard errors off. Only the features' scale depends on it: squares of
    a box-shaped column vary half as much as those of a normal one with the same spread.

    Examples
    --------
    >>> from dpadapt.privacy.local.agents import Agents
    >>> X = np.random.default_rng(0).uniform(-1.46, 1.46, (20_000, 1))
    >>> with Agents(X).open(epsilon=1.0) as poll:
    ...     ask_shape(poll, 20_000, np.zeros(1), np.ones(1)) > 3
    True
    """
    among = np.arange(len(centre)) if among is None else among
    if not len(among):
        return 2.0
    column = among[np.arange(count) % len(among)]
    replies = poll.ask(Within(column, centre[column], _FAR * spread[column]))
    response = BinaryResponse(poll.epsilon)
    if not len(replies.values):
        return 2.0
    inside = float(response.debias(replies.values.mean()))
    error = math.sqrt(response.proxy / len(replies.values))
    expected = _inside(_SHAPES)
    if abs(inside - expected[_SHAPES == 2.0][0]) <= 2.5 * error:
        return 2.0
    return float(_SHAPES[np.abs(expected - inside).argmin()])


def _inside(shapes: FloatArray) -> FloatArray:
    """Share within 1.6 spreads of laws that have 68% within one."""
    power = 1 / shapes
    unit = gammaincinv(power, _WITHIN_ONE) ** power
    return np.asarray(gammainc(power, (_FAR * unit) ** shapes))


def ask_agreements(
    poll: Poll, count: int, centre: FloatArray, even: NDArray[np.bool_] | None = None
) -> tuple[FloatArray, float]:
    """Share of agents on the same side of the centre, for pairs of columns; and its error.

    Only pairs that are ``even`` are asked about.

    Examples
    --------
    >>> from dpadapt.privacy.local.agents import Agents
    >>> X = np.random.default_rng(0).normal(size=(20_000, 1)) * [1.0, -1.0]
    >>> with Agents(X).open(epsilon=1.0) as poll:
    ...     found, error = ask_agreements(poll, 20_000, np.zeros(2))
    >>> np.abs(found.round(1))
    array([0.])
    """
    first, second = pairs_of(len(centre))
    among = np.arange(len(first)) if even is None else np.flatnonzero(even)
    pair: IntArray = among[np.arange(count) % len(among)]
    i, j = first[pair], second[pair]
    replies = poll.ask(SameSide(i, j, centre[i], centre[j]))
    response = BinaryResponse(poll.epsilon)
    answered = pair[replies.places]
    totals = np.bincount(answered, minlength=len(first))
    ones = np.bincount(answered, replies.values, minlength=len(first))
    # a pair that nobody spoke of counts as independent
    means = np.where(totals > 0, ones / np.maximum(totals, 1), 0.5)
    error = math.sqrt(response.proxy * len(among) / max(1, len(answered)))
    return np.asarray(response.debias(means)), error
