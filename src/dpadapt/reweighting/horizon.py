r"""What a noisy descent from a public model will do, known before a private row is read.

A descent of T steps of size tau/T from 0 on a quadratic with curvature lambda, whose gradients
carry independent noise of standard deviation s, ends (as the mean of its last half) at

    (1 - u) w* + s * a Gaussian of variance v,

with u = u(lambda, tau, T) the part that is not learned yet and v = v(lambda, tau, T) the sum of
squares of the noise's weights. Both are geometric sums. The longer the *horizon* tau, the less is
left to learn, and the more noise is gathered: the best horizon follows from the noise, which is
ours, and from a guess of how far away w* is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Geometry", "Response", "mean_of_last", "response", "shift_shares"]

Array = NDArray[np.float64]

_RIDGE = 0.03  # of the whitening, in units of the mean variance
_DECAY = 0.5  # the shift is guessed to lie along an axis in proportion to its variance^0.5


def mean_of_last(
    update: Callable[[Array], Array], start: Array, steps: int, last: int | None = None
) -> Array:
    """Mean of the last iterates: of the last half, if their number is not given.

    Parameters
    ----------
    update : callable
        From one iterate to the next.
    start : ndarray
    steps : int
    last : int, optional

    Examples
    --------
    >>> mean_of_last(lambda w: w + 1, np.zeros(1), steps=3)  # of 2 and 3
    array([2.5])
    """
    last = math.ceil(steps / 2) if last is None else last
    now, total = start, np.zeros_like(start)
    for step in range(steps):
        now = update(now)
        if step >= steps - last:
            total = total + now
    return np.asarray(total / last)


@dataclass(frozen=True, eq=False)
class Response:
    """What T noisy steps do along directions of given curvature.

    Attributes
    ----------
    unlearned : ndarray
        u: part of the way to the minimiser that is left.
    noise : ndarray
        v: variance that noise of variance 1 in every gradient leaves.

    Examples
    --------
    >>> response(np.array([1.0]), horizon=1000.0, steps=2000).unlearned.round(6)
    array([0.])
    """

    unlearned: Array
    noise: Array


def response(curvature: Array, horizon: float, steps: int) -> Response:
    """Response of the mean of the last half of the steps, direction by direction.

    Parameters
    ----------
    curvature : ndarray
        lambda >= 0, at most steps / horizon.
    horizon : float
        tau; the step size is tau / T.
    steps : int
        T.

    Examples
    --------
    Without curvature nothing is learned, and the noise adds up:

    >>> flat = response(np.array([0.0]), horizon=1.0, steps=4)
    >>> flat.unlearned, flat.noise  # weights 1/4, 1/4, 1/4 and 1/8
    (array([1.]), array([0.203125]))
    """
    size = horizon / steps
    kept = 1 - size * np.asarray(curvature, dtype=np.float64)[:, None]
    first = steps - math.ceil(steps / 2) + 1  # iterates first, ..., T are averaged
    averaged = np.arange(first, steps + 1)
    unlearned = (kept**averaged).mean(axis=1)
    # noise of step t enters iterate i >= t with weight size * kept^(i - t)
    step = np.arange(1, steps + 1)
    begin = np.maximum(step, first)
    count = steps - begin + 1
    slope = 1 - kept
    some = slope[:, 0] > 1e-12
    sums = np.broadcast_to(count.astype(float), (len(slope), steps)).copy()
    sums[some] = (1 - kept[some] ** count) / slope[some]
    weights = size / len(averaged) * kept ** (begin - step) * sums
    return Response(unlearned, np.asarray((weights**2).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class Geometry:
    r"""The coordinates in which a descent is run: public principal axes, scaled, and a constant.

    z(x) = ((h + ridge)^{-power/2} V^T (x - mean), b) / C with V, h the axes and variances of the
    public rows, b^2 = ``constant`` E, C^2 = (1 + constant) E, E the public mean square norm of
    the first part. So z has mean square norm 1 on public rows; power 0 keeps the units of the
    columns, power 1 makes all axes alike.

    Parameters
    ----------
    mean : ndarray of shape (d,)
    axes : ndarray of shape (d, d)
        V.
    variances : ndarray of shape (d,)
        h.
    power : float
    constant : float

    Examples
    --------
    >>> rows = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> geometry = Geometry.of(rows, power=1.0, constant=1.0)
    >>> np.mean(np.sum(geometry.features(rows) ** 2, axis=1)).round(6)
    np.float64(1.0)
    """

    mean: Array
    axes: Array
    variances: Array
    power: float
    constant: float

    @classmethod
    def of(cls, rows: Array, *, power: float, constant: float) -> Geometry:
        """Geometry of public rows (without a constant column)."""
        mean = rows.mean(axis=0)
        centered = rows - mean
        variances, axes = np.linalg.eigh(centered.T @ centered / len(rows))
        return cls(mean, axes, np.maximum(variances, 0.0), power, constant)

    @cached_property
    def _scales(self) -> Array:
        floor = _RIDGE * float(self.variances.mean()) or 1.0
        return np.asarray((self.variances + floor) ** (-self.power / 2))

    @cached_property
    def _energy(self) -> float:
        return float((self.variances * self._scales**2).sum()) or 1.0

    @cached_property
    def matrix(self) -> Array:
        """Of shape (d, d): z without its constant is (x - mean) times it."""
        return self.axes * (self._scales / math.sqrt((1 + self.constant) * self._energy))

    @property
    def level(self) -> float:
        """The constant of z."""
        return math.sqrt(self.constant / (1 + self.constant))

    def features(self, rows: Array) -> Array:
        """z, of shape (rows, d + 1)."""
        return np.column_stack([(rows - self.mean) @ self.matrix, np.full(len(rows), self.level)])

    def coefficients(self, inner: Array) -> Array:
        """From coefficients of z, of shape (d + 1, k), to those of (x, 1)."""
        slopes = self.matrix @ inner[:-1]
        return np.vstack([slopes, self.level * inner[-1] - self.mean @ slopes])


def shift_shares(geometry: Geometry, moment: Array, vectors: Array, level_share: float) -> Array:
    """Share of a shift's energy that each direction of a descent is guessed to have.

    The shift lies along a public axis in proportion to the square root of its variance, and for a
    part of ``level_share`` along the constant.

    Parameters
    ----------
    geometry : Geometry
    moment : ndarray of shape (D, D)
        Public second moment of its features.
    vectors : ndarray of shape (D, D)
        Orthonormal columns: the directions.
    level_share : float

    Examples
    --------
    >>> geometry = Geometry.of(np.array([[1.0], [-1.0]]), power=0.0, constant=1.0)
    >>> shift_shares(geometry, np.eye(2), np.eye(2), level_share=0.25)
    array([0.75, 0.25])
    """
    shares = geometry.variances**_DECAY / (np.sum(geometry.variances**_DECAY) or 1.0)
    shares = np.append((1 - level_share) * shares, level_share)
    variance = shares / np.maximum(np.diag(moment), 1e-12)
    energy = np.einsum("ji,jk,ki->i", vectors, moment, vectors)
    guess = (vectors**2).T @ variance * energy
    return np.asarray(guess / guess.sum())


def predicted_noise(curvature: Array, gain: Array, steps: int) -> Array:
    r"""Variance that unit noise in every gradient leaves in the mean of the last half of the steps.

    For :math:`v_t = (1 - g h) v_{t-1} - g \xi_t` from 0, with curvature h, gain g (the step times
    the preconditioner) and :math:`\xi_t` of variance 1, in one direction or several at once.

    Examples
    --------
    >>> predicted_noise(np.array([0.0, 1.0]), np.array([1.0, 1.0]), 2)
    array([2., 1.])
    """
    last = math.ceil(steps / 2)
    powers = (1 - gain * curvature) ** np.arange(steps)[:, None]
    sums = np.vstack([np.zeros_like(curvature), np.cumsum(powers, axis=0)])
    first = np.arange(steps)  # a noise of step t+1 acts on the iterates from t+1 on
    share = (sums[steps - first] - sums[np.maximum(0, steps - last - first)]) / last
    return np.asarray(gain**2 * np.sum(share**2, axis=0))
