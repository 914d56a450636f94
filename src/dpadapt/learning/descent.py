r"""A noisy descent from a public model, whose noise is known before a private row is read.

A descent of T steps of size tau/T from 0 on a quadratic with curvature lambda, whose gradients
carry independent noise of standard deviation s, ends (as the mean of its last half) at

    (1 - u) w* + s * a Gaussian of variance v,

with u = u(lambda, tau, T) the part that is not learned yet and v = v(lambda, tau, T) the sum of
squares of the noise's weights. Both are geometric sums. The longer the *horizon* tau, the less is
left to learn, and the more noise is gathered: the best horizon follows from the noise, which is
ours, and from a guess of how far away w* is.

In the order in which a method needs them: coordinates (:class:`Geometry`), what a descent will do
(:func:`response`, or :func:`predicted_noise` for a step of one's own), the plan
(:meth:`Geometry.shift_shares`, :class:`Response`, or :func:`affordable_step`), and the run
(:func:`descend`). What is left of the result is a matter of :mod:`dpadapt.learning.shrinkage`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy import shrink_factors

_RIDGE = 0.03  # of the whitening, in units of the mean variance
_DECAY = 0.5  # the shift is guessed to lie along an axis in proportion to its variance^0.5
_SHORTER, _TRIALS = 0.8, 100  # steps that are tried: 1, 0.8, 0.64, ... of the longest

Map = Callable[[FloatArray], FloatArray]


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

    mean: FloatArray
    axes: FloatArray
    variances: FloatArray
    power: float
    constant: float

    @classmethod
    def of(cls, rows: FloatArray, *, power: float, constant: float) -> Geometry:
        """Geometry of public rows (without a constant column)."""
        mean = rows.mean(axis=0)
        centered = rows - mean
        variances, axes = np.linalg.eigh(centered.T @ centered / len(rows))
        return cls(mean, axes, np.maximum(variances, 0.0), power, constant)

    @cached_property
    def _scales(self) -> FloatArray:
        floor = _RIDGE * float(self.variances.mean()) or 1.0
        return np.asarray((self.variances + floor) ** (-self.power / 2))

    @cached_property
    def _energy(self) -> float:
        return float((self.variances * self._scales**2).sum()) or 1.0

    @cached_property
    def matrix(self) -> FloatArray:
        """Of shape (d, d): z without its constant is (x - mean) times it."""
        return self.axes * (self._scales / math.sqrt((1 + self.constant) * self._energy))

    @property
    def level(self) -> float:
        """The constant of z."""
        return math.sqrt(self.constant / (1 + self.constant))

    def features(self, rows: FloatArray) -> FloatArray:
        """z, of shape (rows, d + 1)."""
        return np.column_stack([(rows - self.mean) @ self.matrix, np.full(len(rows), self.level)])

    def coefficients(self, inner: FloatArray) -> FloatArray:
        """From coefficients of z, of shape (d + 1, k), to those of (x, 1)."""
        slopes = self.matrix @ inner[:-1]
        return np.vstack([slopes, self.level * inner[-1] - self.mean @ slopes])

    def axis_shares(self, level_share: float) -> FloatArray:
        """Share of a shift's energy that each coordinate is guessed to have, of shape (d + 1,).

        The shift lies along a public axis in proportion to the square root of its variance, and
        for a part of ``level_share`` along the constant.
        """
        shares = self.variances**_DECAY / (np.sum(self.variances**_DECAY) or 1.0)
        return np.append((1 - level_share) * shares, level_share)

    def shift_shares(
        self, moment: FloatArray, vectors: FloatArray, level_share: float
    ) -> FloatArray:
        """Share of a shift's energy that each direction of a descent is guessed to have.

        Parameters
        ----------
        moment : ndarray of shape (D, D)
            Public second moment of the features.
        vectors : ndarray of shape (D, D)
            Orthonormal columns: the directions.
        level_share : float

        Examples
        --------
        >>> geometry = Geometry.of(np.array([[1.0], [-1.0]]), power=0.0, constant=1.0)
        >>> geometry.shift_shares(np.eye(2), np.eye(2), level_share=0.25)
        array([0.75, 0.25])
        """
        variance = self.axis_shares(level_share) / np.maximum(np.diag(moment), 1e-12)
        energy = np.einsum("ji,jk,ki->i", vectors, moment, vectors)
        guess = (vectors**2).T @ variance * energy
        return np.asarray(guess / guess.sum())


@dataclass(frozen=True, eq=False)
class Response:
    """What T noisy steps do along directions of given curvature.

    Attributes
    ----------
    curvature : ndarray
        lambda.
    unlearned : ndarray
        u: part of the way to the minimiser that is left.
    noise : ndarray
        v: variance that noise of variance 1 in every gradient leaves.

    Examples
    --------
    >>> response(np.array([1.0]), horizon=1000.0, steps=2000).unlearned.round(6)
    array([0.])
    """

    curvature: FloatArray
    unlearned: FloatArray
    noise: FloatArray

    def left(self, shift: FloatArray) -> float:
        """Energy of what is not learned, of a shift with these energies."""
        return float(shift @ self.unlearned**2)

    def gathered(self, energy: FloatArray) -> float:
        """Variance of a prediction, for noise of variance 1 in every gradient.

        Parameters
        ----------
        energy : ndarray
            Mean squares of rows along the directions.
        """
        return float(energy @ self.noise)

    def sampled(self, energy: FloatArray) -> float:
        """Variance of a prediction that is learned from one row whose errors have variance 1."""
        learned = (1 - self.unlearned) ** 2 / np.maximum(self.curvature, 1e-9)
        return float(energy @ learned)


def response(curvature: FloatArray, horizon: float, steps: int) -> Response:
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
    return Response(np.asarray(curvature), unlearned, np.asarray((weights**2).sum(axis=1)))


def predicted_noise(curvature: FloatArray, gain: FloatArray, steps: int) -> FloatArray:
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


def affordable_step(noise: Callable[[float], float], allowed: float, longest: float) -> float:
    """Step at which the noise of the result is no more than what is allowed.

    Parameters
    ----------
    noise : callable
        From a step to the predicted variance.
    allowed : float
    longest : float
        Step to begin with; then 0.8, 0.64, ... of it are tried.

    Examples
    --------
    >>> round(affordable_step(lambda step: step**2, allowed=0.5, longest=1.0), 9)
    0.64
    """
    step = longest
    for _ in range(_TRIALS):
        if noise(step) <= allowed:
            break
        step *= _SHORTER
    return step


def within(radius: float) -> Map:
    """Projection to a ball.

    Examples
    --------
    >>> within(1.0)(np.array([3.0, 4.0])).round(6)
    array([0.6, 0.8])
    """
    return lambda point: np.asarray(point * shrink_factors(np.linalg.norm(point), radius))


def descend(
    gradient: Map,
    start: FloatArray,
    step: float,
    steps: int,
    *,
    last: int | None = None,
    project: Map | None = None,
) -> FloatArray:
    """Mean of the last iterates of a descent: of the last half, if their number is not given.

    Parameters
    ----------
    gradient : callable
        Of an iterate; may be noisy.
    start : ndarray
    step : float
    steps : int
        T.
    last : int, optional
    project : callable, optional
        Where an iterate is put after each step.

    Examples
    --------
    >>> descend(lambda w: w - 1, np.zeros((1, 1)), step=0.5, steps=100).round(4)
    array([[1.]])
    >>> descend(lambda w: -np.ones(1), np.zeros(1), step=1.0, steps=3)  # mean of 2 and 3
    array([2.5])
    """
    last = math.ceil(steps / 2) if last is None else last
    now, total = start, np.zeros_like(start)
    for k in range(steps):
        now = now - step * gradient(now)
        if project is not None:
            now = project(now)
        if k >= steps - last:
            total = total + now
    return np.asarray(total / last)
