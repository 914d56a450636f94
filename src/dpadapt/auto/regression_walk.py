"""A noisy descent from the start whose horizon is planned, and what of its move is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.descent import response
from dpadapt.privacy import Cleaning, shrink_factors
from dpadapt.privacy.statistics import Prepared

from .descent import Looks, descend
from .regression_prior import SHIFTS, STRAIGHT, kept

SQUARE = 1.57
"""Mean square over squared mean size of a normal error."""

_BETA = 0.25  # energy of the constant beside the slopes
_PRIOR, _CONSTANT = 0.35, 0.4  # guessed shift in units of the error, share of it on the constant
_HEDGE = ((1.0, 0.5), (0.25, 0.25), (0.0625, 0.25))  # curvature against the public one, weight
_HORIZONS = tuple(2.0**p for p in range(-2, 11))
_PACE, _LEAST_STEPS, _MOST_STEPS = 1.5, 40, 700

Coordinates = Callable[[FloatArray, FloatArray | None], tuple[FloatArray, FloatArray | None]]


@dataclass(frozen=True, eq=False)
class Ground:
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
    >>> Ground(np.ones(1), np.ones(1), 1.0, 0.6).whole
    array([0.8, 0.2])
    """

    energy: FloatArray
    spread: FloatArray
    clip: float
    curvature: float

    @property
    def whole(self) -> FloatArray:
        """Energies of the coordinates and of the constant beside them."""
        return np.append(self.energy, _BETA) / (1 + _BETA)


@dataclass(frozen=True, eq=False)
class Walked:
    """Where a descent ended.

    Attributes
    ----------
    slopes : ndarray of shape (d,)
        Of the coordinates; nothing was given back.
    level, level_noise : float
        Of the error at their centre, and the variance of its noise.
    share : float
        Part of the slopes that is more than noise.
    moved, noise : float
        Mean square of the move, and that of the noise in it.
    by_chance : float
        Mean product of move and error on these rows that other rows would not have.

    Examples
    --------
    >>> Walked(np.ones(1), 0.0, 0.1, 1.0, 4.0, 40, 0.1, 0.1, 0.0).mended(np.ones((1, 4))).round(3)
    array([1.118])
    """

    slopes: FloatArray
    level: float
    level_noise: float
    share: float
    horizon: float
    steps: int
    moved: float
    noise: float
    by_chance: float

    def mended(self, rows: FloatArray) -> FloatArray:
        """What the whole move takes off the errors of prepared rows, in their weights."""
        scale = math.sqrt(1 + _BETA)
        return np.asarray(rows[:, : len(self.slopes)] @ (scale * self.slopes))


def walk_rows(cleaning: Cleaning, coordinates: Coordinates, width: int) -> Prepared:
    """Private rows of a descent: coordinates and a constant, in length 1 at most; weight; length.

    A row that is longer is shrunk together with its error, which is a weight of the row: the model
    stays right.

    Parameters
    ----------
    cleaning : Cleaning
    coordinates : callable
        From cleaned rows and labels to ``width`` coordinates, and the error to be mended.
    width : int

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> rows = walk_rows(Cleaning(9.0, label_range=(-9.0, 9.0)), lambda X, y: (X, y), 1)
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


def walk(looks: Looks, rows: Prepared, ground: Ground, share: float, most: float) -> Walked:
    """Descend to the horizon at which known noise and unlearned shift together are least.

    Parameters
    ----------
    looks : Looks
    rows : Prepared
        As :func:`walk_rows` makes them.
    ground : Ground
    share : float
        Of the purse.
    most : float
        Longest horizon.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> X = np.random.default_rng(0).normal(size=(9999, 1))
    >>> rows = walk_rows(Cleaning(9.0, label_range=(-9.0, 9.0)), lambda X, y: (X, y), 1)
    >>> with Private(X, X[:, 0]).open(epsilon=1.0, delta=1e-6) as session:
    ...     ground = Ground(np.ones(1), np.ones(1), 0.5, 0.5)
    ...     found = walk(Looks.open(session), rows, ground, share=1.0, most=1024.0)
    >>> bool(abs(found.slopes[0] - 1) < 0.2)
    True
    """
    energy, size = ground.whole, SQUARE * ground.clip**2
    unit = 2 * ground.clip / (looks.precision * math.sqrt(share))  # noise if T were 1
    horizon = min((h for h in _HORIZONS if h <= most), key=lambda h: _cost(h, ground, unit))
    steps = _steps(horizon)
    path = descend(looks, rows, (len(energy), 1), ground.clip, horizon, steps, share)[:, 0]
    known = response(energy * ground.curvature, horizon, steps)
    noise = energy * known.noise * steps * unit**2
    learned = 1 - known.unlearned[:-1]
    chance = size / looks.n_rows * learned**2  # other rows, other slopes
    moved = float(energy[:-1] @ path[:-1] ** 2)
    part = kept(moved, noise[:-1] + chance, [size * each for each in SHIFTS], STRAIGHT)
    return Walked(
        slopes=path[:-1] / math.sqrt(1 + _BETA),
        level=float(path[-1]) * math.sqrt(energy[-1]),
        level_noise=float(noise[-1]),
        share=part,
        horizon=horizon,
        steps=steps,
        moved=moved,
        noise=float(noise[:-1].sum()),
        by_chance=size / looks.n_rows * float(learned.sum()),
    )


def _cost(horizon: float, ground: Ground, unit: float) -> float:
    """Expected square error: shift that is left, and noise; hedged over the curvature."""
    energy = ground.whole
    guess = np.append((1 - _CONSTANT) * ground.spread, _CONSTANT)
    shift, steps, total = guess * _PRIOR * SQUARE * ground.clip**2, _steps(horizon), 0.0
    for ratio, weight in _HEDGE:
        other = np.append(np.full(len(energy) - 1, ratio), 1.0)
        known = response(energy * ground.curvature * other, horizon, steps)
        noise = steps * unit**2 * known.gathered(energy * other)
        total += weight * (known.left(shift) + noise)
    return total


def _steps(horizon: float) -> int:
    return int(np.clip(math.ceil(horizon / _PACE), _LEAST_STEPS, _MOST_STEPS))
