"""Posterior means from noisy releases of regression, under priors, given the known noise.

Of a level and of slopes (a spike at no shift, slabs of several sizes), of a histogram of errors, of
a move that was tried on private rows (a line search), and of a descent, whose horizon is planned
from its known noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.descent import response
from dpadapt.privacy import Cleaning, shrink_factors
from dpadapt.privacy.statistics import Prepared

from .releases import StepBudget

MEAN_SQUARE = 1.57  # over the squared mean size of an error, if that is normal
SPIKE = 0.5  # prior chance that the level did not shift
_SLOPE_SPIKE = 0.7  # prior chance that the slopes did not
SLOPE_SHIFTS = (0.02, 0.06, 0.2, 0.6, 2.0)  # sizes of a shift of the slopes, in squared errors
_LEVEL_SHIFTS = (0.06, 0.2, 0.6, 2.0, 10.0, 100.0)  # of the level


def posterior_shrinkage(
    moved: float, noise: FloatArray, sizes: Sequence[float], spike: float = SPIKE
) -> float:
    """Part of a move that is kept: its posterior mean, given the known noise.

    The square of the move is compared with what noise makes alone (a sum of squares with known
    variances, taken for a chi-square of the same mean and variance), and with what a shift of
    each size and noise make together.

    Parameters
    ----------
    moved : float
        Square of the move.
    noise : ndarray
        Variances of the noise, direction by direction.
    sizes : sequence of float
        Squares of the moves that a shift may make, all as likely.
    spike : float
        Prior chance of none.

    Examples
    --------
    >>> noise = np.full(10, 0.1)
    >>> [round(posterior_shrinkage(moved, noise, SLOPE_SHIFTS), 2) for moved in (1.0, 30.0)]
    [0.06, 0.67]
    """
    mean = max(float(noise.sum()), 1e-300)
    freedom = 1 / max(float(((noise / mean) ** 2).sum()), 1 / len(noise))
    shifts = np.array([0.0, *sizes])
    chances = np.array([spike] + [(1 - spike) / len(sizes)] * len(sizes))
    both = mean + shifts
    logs = np.log(chances) - freedom / 2 * (np.log(both) + moved / both)
    weights = np.exp(logs - logs.max())
    return float(weights @ (shifts / both)) / math.fsum(weights)


def pooled(*estimates: tuple[float, float]) -> tuple[float, float]:
    """Mean and variance of independent estimates together, each with its variance.

    Examples
    --------
    >>> pooled((1.0, 1.0), (4.0, 0.5))
    (3.0, 0.3333333333333333)
    """
    weights = [1 / max(variance, 1e-300) for _, variance in estimates]
    total = math.fsum(weights)
    means = math.fsum(w * mean for w, (mean, _) in zip(weights, estimates, strict=True))
    return means / total, 1 / total


def level_shrinkage(clip: float, level: float, noise: float) -> tuple[float, float]:
    """What is kept of a level, and of the variance of its noise; errors have the size ``clip``.

    Examples
    --------
    >>> [round(each, 3) for each in level_shrinkage(1.0, level=2.0, noise=0.1)]
    [1.927, 0.093]
    """
    square = MEAN_SQUARE * clip**2
    sizes = [square * each for each in _LEVEL_SHIFTS]
    part = posterior_shrinkage(level**2, np.array([noise]), sizes)
    return part * level, part**2 * noise


# a histogram of errors

_EDGES = (0.1, 0.33, 1.0, 3.0, 9.0, 27.0, 81.0)
CELLS = np.array([-each for each in _EDGES[::-1]] + [0.0, *_EDGES])
"""Edges of the cells, in public mean errors. Wide cells hold many rows: noise is small in them."""

_SHIFTS = np.concatenate([np.arange(0, 2, 0.1), np.arange(2, 6, 0.25), np.arange(6, 40, 1.0)])
_SCALES = 2.0 ** np.arange(-3, 6.01, 0.5)
_SHIFT_SDS = (0.25, 0.5, 1.0, 3.0, 10.0)  # of the level if it moved, in public mean errors
_LOG2_SD = 0.8  # of the size of private errors
_MISFIT = 0.04  # share of a cell that is off because private errors have another shape


@dataclass(frozen=True)
class ErrorPosterior:
    """What a noisy histogram says.

    Attributes
    ----------
    shift : float
        Of the middle of the errors, in public mean errors.
    scale : float
        Size of private errors in public ones.
    unmoved : float
        Chance that the middle did not move.

    Examples
    --------
    >>> ErrorPosterior(shift=0.5, scale=1.2, unmoved=0.1).scale
    1.2
    """

    shift: float
    scale: float
    unmoved: float


@dataclass(frozen=True, eq=False)
class ErrorShapes:
    """Shares of the cells if private errors are public ones, shifted and scaled.

    Parameters
    ----------
    shares : ndarray of shape (shifts, scales, cells)
    shifts : ndarray
    optimism : float
        Logarithm to the base 2 of the factor by which the errors of folds are too large.

    Examples
    --------
    >>> errors = np.random.default_rng(0).normal(size=2000)
    >>> shapes = ErrorShapes.of(errors / np.abs(errors).mean(), optimism=0.0)
    >>> cells = np.searchsorted(CELLS, 2 * errors + 3)
    >>> found = shapes.posterior(np.bincount(cells, minlength=len(CELLS) + 1) / 2000, sd=0.001)
    >>> bool(abs(found.shift - 3) < 0.3), bool(1.5 < found.scale < 3), found.unmoved < 0.01
    (True, True, True)
    """

    shares: FloatArray
    shifts: FloatArray
    optimism: float

    @classmethod
    def of(cls, errors: FloatArray, *, optimism: float) -> ErrorShapes:
        """Shapes of public errors, in units of their mean size."""
        shifts = np.concatenate([-_SHIFTS[:0:-1], _SHIFTS])
        places = (CELLS[None, None, :] - shifts[:, None, None]) / _SCALES[None, :, None]
        below = np.searchsorted(np.sort(errors), places, side="right") / len(errors)
        ends = np.zeros((*below.shape[:2], 1)), np.ones((*below.shape[:2], 1))
        return cls(np.diff(np.concatenate([ends[0], below, ends[1]], axis=2)), shifts, optimism)

    def posterior(self, shares: FloatArray, sd: float) -> ErrorPosterior:
        """Posterior means, with half of the prior on "the level did not move"."""
        log2_scales = np.log2(_SCALES)
        off = ((self.shares - shares) ** 2).sum(axis=2)
        fit = -off / (2 * (sd**2 + _MISFIT**2))
        fit -= 0.5 * ((log2_scales - self.optimism) / _LOG2_SD) ** 2
        weights = self._prior()[:, None] * np.exp(fit - fit.max())
        weights /= weights.sum()
        by_shift, by_scale = weights.sum(axis=1), weights.sum(axis=0)
        unmoved = float(by_shift[self.shifts == 0.0].sum())
        return ErrorPosterior(
            float(by_shift @ self.shifts), 2.0 ** float(by_scale @ log2_scales), unmoved
        )

    def _prior(self) -> FloatArray:
        steps = np.gradient(self.shifts)
        slabs = [np.exp(-0.5 * (self.shifts / sd) ** 2) * steps for sd in _SHIFT_SDS]
        slab = np.mean([each / each.sum() for each in slabs], axis=0)
        return np.asarray(SPIKE * (self.shifts == 0.0) + (1 - SPIKE) * slab)


# a line search

_CROSS, _SQUARES = 2.8, 5.0  # clips of e f and f^2, in usual sizes
_WIDER, _WIDEST = 60.0, 4.0  # clips are wider where the budget allows
_PRIOR_SD = 0.5  # of the part, around what the descent alone would keep
_SQUARE_SD = 0.6  # of mean f^2, relative to that on public rows
_LEAST_SQUARE = 0.2  # of it
_MOST_STEP_LENGTH = 2.0  # times as far as the descent went


@dataclass(frozen=True)
class LineSearch:
    r"""A line search along a move: how it is clipped, and which part of the move pays.

    With f what the move adds to an answer and e the error that it is to correct, the part a of the
    move that leaves the least square error is (mean e f) / (mean f^2). Public rows cannot tell: the
    move may be longer or shorter on private rows, and noise in it does not follow their errors. So
    both means are released together, as one vector of each row,

        (e f / b, f^2 / q), shrunk to length 1 at most,

    by :class:`~dpadapt.privacy.statistics.MeanVector`, which bounds what one row adds whatever e
    and f are: two vectors of the unit ball are 2 apart at most, so the mean of n moves by 2 / n. A
    row that is shrunk is shrunk in both numbers, which is a weight of the row, so that their ratio
    stays right.

    Parameters
    ----------
    error : float
        R, the size of a private error.
    square : float
        Mean f^2 on public rows.
    precision : float
        N mu, for this release alone.

    Examples
    --------
    >>> search = LineSearch(error=1.0, square=0.25, precision=100.0)
    >>> [round(clip, 3) for clip in search.clips]
    [2.333, 2.083]
    >>> said = np.array([0.25 / 2.333, 0.25 / 2.083])  # mean e f and mean f^2 are 0.25
    >>> [round(search.step_length(said, sd, before=0.3, optimism=0.0), 2) for sd in (1e-4, 10.0)]
    [1.0, 0.3]
    """

    error: float
    square: float
    precision: float

    @property
    def clips(self) -> tuple[float, float]:
        """Lengths b and q."""
        wider = min(max(self.precision / _WIDER, 1.0), _WIDEST)
        return wider * _CROSS * self.error * math.sqrt(self.square), wider * _SQUARES * self.square

    def products(self, errors: FloatArray, move: FloatArray) -> FloatArray:
        """What is averaged, of shape (n, 2), before each row is shrunk."""
        return np.column_stack([errors * move, move**2]) / np.array(self.clips)

    def step_length(self, means: FloatArray, sd: float, before: float, optimism: float) -> float:
        """Part of the move to keep: posterior mean, around what would be kept without it.

        Parameters
        ----------
        means : ndarray of shape (2,)
        sd : float
            Of the noise in each number.
        before : float
            Part that would be kept without it.
        optimism : float
            Mean e f that a move has on the rows that it was made for, and not on others.
        """
        cross, square = (  # in units of mean f^2 on public rows
            float(mean) * clip / self.square for mean, clip in zip(means, self.clips, strict=True)
        )
        off = sd * self.clips[1] / self.square
        shrinkage = _SQUARE_SD**2 / (_SQUARE_SD**2 + off**2)
        square = max(1 + shrinkage * (square - 1), _LEAST_SQUARE)
        shrinkage = _shrinkage(sd * self.clips[0] / self.square / square)
        part = before + shrinkage * ((cross - optimism / self.square) / square - before)
        return min(max(part, 0.0), _MOST_STEP_LENGTH)

    def noise(self, sd: float) -> float:
        """Mean square of what the noise in it adds to answers, if f is as on public rows."""
        off = sd * self.clips[0] / self.square
        return (_shrinkage(off) * off) ** 2 * self.square


def _shrinkage(sd: float) -> float:
    """Weight of a noisy part against what is known before it."""
    return _PRIOR_SD**2 / (_PRIOR_SD**2 + sd**2)


# a descent

_BETA = 0.25  # energy of the constant beside the slopes
_GUESS, _CONSTANT = 0.35, 0.4  # guessed shift in units of the error, share of it on the constant
_HEDGE = ((1.0, 0.5), (0.25, 0.25), (0.0625, 0.25))  # curvature against the public one, weight
_HORIZONS = tuple(2.0**p for p in range(-2, 11))
_PACE, _LEAST_STEPS, _MOST_STEPS = 1.5, 40, 700
_Coordinates = Callable[[FloatArray, FloatArray | None], tuple[FloatArray, FloatArray | None]]


@dataclass(frozen=True, eq=False)
class DescentProblem:
    """What public rows and earlier releases say about a descent.

    Parameters
    ----------
    energy : ndarray of shape (d,)
        Mean squares of the coordinates on public rows, 1 together.
    spread : ndarray of shape (d,)
        Share of the shift that is guessed to lie along each.
    clip : float
        R, the size of a private error.
    curvature : float
        Part of the curvature that a clip at R leaves.

    Examples
    --------
    >>> DescentProblem(np.ones(1), np.ones(1), 1.0, 0.6).energies
    array([0.8, 0.2])
    """

    energy: FloatArray
    spread: FloatArray
    clip: float
    curvature: float

    @property
    def energies(self) -> FloatArray:
        """Energies of the coordinates and of the constant beside them."""
        return np.append(self.energy, _BETA) / (1 + _BETA)


@dataclass(frozen=True, eq=False)
class DescentOutcome:
    """Where a descent ended, and what is known of its noise.

    Attributes
    ----------
    slopes : ndarray of shape (d,)
        Of the coordinates; nothing was given back.
    level, level_noise : float
        Of the error at their centre, and the variance of its noise.
    shrinkage : float
        Part of the slopes that is more than noise.
    moved, noise : float
        Mean square of the move, and that of the noise in it.
    optimism : float
        Mean product of move and residual on these rows that other rows would not have.

    Examples
    --------
    >>> end = DescentOutcome(np.ones(1), 0.0, 0.1, 1.0, 4.0, 40, 0.1, 0.1, 0.0)
    >>> end.fitted(np.ones((1, 4))).round(3)
    array([1.118])
    """

    slopes: FloatArray
    level: float
    level_noise: float
    shrinkage: float
    horizon: float
    steps: int
    moved: float
    noise: float
    optimism: float

    def fitted(self, rows: FloatArray) -> FloatArray:
        """Values of the whole move for prepared rows, in their weights."""
        scale = math.sqrt(1 + _BETA)
        return np.asarray(rows[:, : len(self.slopes)] @ (scale * self.slopes))


def descent_rows(cleaning: Cleaning | Prepared, coordinates: _Coordinates, width: int) -> Prepared:
    """Private rows of a descent: coordinates and a constant, in length 1 at most; weight; length.

    A row that is longer is shrunk together with its error, which is a weight of the row: the model
    stays right.

    Parameters
    ----------
    cleaning : Cleaning or Prepared
    coordinates : callable
        From its rows and labels to ``width`` coordinates, and the residual to be fitted.
    width : int

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> rows = descent_rows(Cleaning(9.0, label_range=(-9.0, 9.0)), lambda X, y: (X, y), 1)
    >>> rows(np.array([[0.0], [3.0]]), np.array([1.0, 1.0]))[0][:, 2:].round(2)
    array([[1.  , 0.45],
           [0.37, 1.  ]])
    """

    def prepare(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        places, errors = coordinates(X, y)
        out = np.empty((len(X), width + 3), order="F")
        out[:, :width], out[:, width] = places, math.sqrt(_BETA)
        out[:, : width + 1] /= math.sqrt(1 + _BETA)
        weight = shrink_factors(np.linalg.norm(out[:, : width + 1], axis=1), 1.0)
        out[:, : width + 1] *= weight[:, None]
        out[:, -2] = weight
        return out, None if errors is None else weight * errors

    return Prepared(cleaning, prepare, width + 3, measured=width + 1)


def planned_descent(
    budget: StepBudget, rows: Prepared, problem: DescentProblem, share: float, most: float
) -> DescentOutcome:
    """Descend to the horizon at which known noise and unlearned shift together are least.

    Parameters
    ----------
    budget : StepBudget
    rows : Prepared
        As :func:`descent_rows` makes them.
    problem : DescentProblem
    share : float
        Of the purse.
    most : float
        Longest horizon.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> X = np.random.default_rng(0).normal(size=(9999, 1))
    >>> rows = descent_rows(Cleaning(9.0, label_range=(-9.0, 9.0)), lambda X, y: (X, y), 1)
    >>> with Private(X, X[:, 0]).open(epsilon=1.0, delta=1e-6) as session:
    ...     problem = DescentProblem(np.ones(1), np.ones(1), 0.5, 0.5)
    ...     end = planned_descent(StepBudget.open(session), rows, problem, 1.0, most=1024.0)
    >>> bool(abs(end.slopes[0] - 1) < 0.2)
    True
    """
    energy, size = problem.energies, MEAN_SQUARE * problem.clip**2
    unit = 2 * problem.clip / (budget.precision * math.sqrt(share))  # noise if T were 1
    horizon, steps = planned_course(problem, unit, most)
    path = budget.descend(rows, (len(energy), 1), problem.clip, horizon, steps, share)[:, 0]
    known = response(energy * problem.curvature, horizon, steps)
    noise = energy * known.noise * steps * unit**2
    learned = 1 - known.unlearned[:-1]
    chance = size / budget.n_rows * learned**2  # other rows, other slopes
    moved = float(energy[:-1] @ path[:-1] ** 2)
    sizes = [size * each for each in SLOPE_SHIFTS]
    part = posterior_shrinkage(moved, noise[:-1] + chance, sizes, _SLOPE_SPIKE)
    return DescentOutcome(
        slopes=path[:-1] / math.sqrt(1 + _BETA),
        level=float(path[-1]) * math.sqrt(energy[-1]),
        level_noise=float(noise[-1]),
        shrinkage=part,
        horizon=horizon,
        steps=steps,
        moved=moved,
        noise=float(noise[:-1].sum()),
        optimism=size / budget.n_rows * float(learned.sum()),
    )


def planned_course(problem: DescentProblem, unit: float, most: float) -> tuple[float, int]:
    """Horizon and steps, given the noise that one step would have.

    In units of the clip they do not depend on it: they are known before it is.

    Examples
    --------
    >>> near, far = (DescentProblem(np.ones(1), np.ones(1), clip, 0.5) for clip in (1.0, 8.0))
    >>> planned_course(near, 0.01, 1024.0) == planned_course(far, 0.08, 1024.0)
    True
    """
    horizon = min((h for h in _HORIZONS if h <= most), key=lambda h: _cost(h, problem, unit))
    return horizon, _steps(horizon)


def _cost(horizon: float, problem: DescentProblem, unit: float) -> float:
    """Expected square error: shift that is left, and noise; hedged over the curvature."""
    energy = problem.energies
    guess = np.append((1 - _CONSTANT) * problem.spread, _CONSTANT)
    shift, steps, total = guess * _GUESS * MEAN_SQUARE * problem.clip**2, _steps(horizon), 0.0
    for ratio, weight in _HEDGE:
        other = np.append(np.full(len(energy) - 1, ratio), 1.0)
        known = response(energy * problem.curvature * other, horizon, steps)
        noise = steps * unit**2 * known.gathered(energy * other)
        total += weight * (known.left(shift) + noise)
    return total


def _steps(horizon: float) -> int:
    return int(np.clip(math.ceil(horizon / _PACE), _LEAST_STEPS, _MOST_STEPS))
