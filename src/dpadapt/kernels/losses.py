r"""Losses for regularised learning with kernels, and the constants that privacy needs of them.

A loss l(f, y) is convex in the score f. Everything that enters a sensitivity is public: its
Lipschitz constant L and its smoothness beta *in the score*, and a bound of l(0, y). (Erratum:
Jain and Thakurta declare L for the weights; their 2LR/(lambda n) is right for the score only.)

Scores are arrays of shape (n, k), one column for each output. Labels of classes are read by their
sign, 0 being a row of no class, whose loss is 0; labels of regression are clamped. So no label can
break a constant, and none is refused.

The exact hinge and the exact epsilon-insensitive loss have no solver with a provable number of
steps; both are rounded off on a *knee*, which keeps L = 1 and makes them smooth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from scipy.special import expit

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.softmax import log_sum_exp, softmax


class ConvexLoss(Protocol):
    """What a solver and a sensitivity ask of a loss.

    Examples
    --------
    >>> loss: ConvexLoss = Logistic()
    >>> loss.joint, loss.smoothness, loss.lipschitz(radius=1.0, penalty=0.1)
    (False, 0.25, 1.0)
    """

    @property
    def joint(self) -> bool:
        """Whether all columns of the scores make one problem (softmax), or each its own."""

    @property
    def smoothness(self) -> float:
        """Beta: bound of the second derivative in the score."""

    @property
    def at_zero(self) -> float:
        """Bound of l(0, y) over all labels."""

    @property
    def softer(self) -> tuple[ConvexLoss, ...]:
        """Like losses that are easier to minimise, the easiest first: a way to this one."""

    def lipschitz(self, radius: float, penalty: float) -> float:
        """L: of the score, wherever a minimiser can be."""

    def columns(self, y: FloatArray) -> int:
        """Number of outputs for labels of shape (n, k)."""

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """Losses, of the shape of f, or one for each row if ``joint``."""

    def derivative(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """In the scores, of the shape of f."""

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """What :meth:`curve` and :meth:`diagonal` need, of the shape of f."""

    def curve(self, curvature: FloatArray, direction: FloatArray) -> FloatArray:
        """Second derivative applied to a direction of the scores."""

    def diagonal(self, curvature: FloatArray) -> FloatArray:
        """Diagonal of the second derivative."""


class _Separable:
    """Every column its own problem: the second derivative is diagonal."""

    joint: ClassVar[bool] = False
    softer: ClassVar[tuple[ConvexLoss, ...]] = ()

    def columns(self, y: FloatArray) -> int:
        return y.shape[1]

    def curve(self, curvature: FloatArray, direction: FloatArray) -> FloatArray:
        return np.asarray(curvature * direction)

    def diagonal(self, curvature: FloatArray) -> FloatArray:
        return curvature


class _UnitSlope(_Separable):
    """A loss of slope at most 1."""

    def lipschitz(self, radius: float, penalty: float) -> float:
        return 1.0


def _wider(knee: float) -> list[float]:
    """Knees above the given one, the widest first."""
    knees = [knee * 4**power for power in range(1, 20)]
    return [wide for wide in knees if wide < 4][::-1]


@dataclass(frozen=True)
class Logistic(_UnitSlope):
    """log(1 + exp(-y f)), y = 1 or -1: L = 1, beta = 1/4.

    Examples
    --------
    >>> Logistic().derivative(np.zeros((3, 1)), np.array([[1.0], [-1.0], [0.0]])).ravel()
    array([-0.5,  0.5, -0. ])
    """

    smoothness: ClassVar[float] = 0.25
    at_zero: ClassVar[float] = math.log(2)

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        sign = np.sign(y)
        return np.asarray(np.abs(sign) * np.logaddexp(0.0, -sign * f))

    def derivative(self, f: FloatArray, y: FloatArray) -> FloatArray:
        sign = np.sign(y)
        return np.asarray(-sign * expit(-sign * f))

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.abs(np.sign(y)) * expit(f) * expit(-f))


@dataclass(frozen=True)
class HuberisedHinge(_UnitSlope):
    """Hinge max(0, 1 - y f), made quadratic where y f is within h of 1: L = 1, beta = 1/(2h).

    Never more than h/4 above the hinge, never below it.

    Parameters
    ----------
    knee : float, default=0.5
        h.

    Examples
    --------
    >>> HuberisedHinge(0.5).value(np.array([[0.0], [1.0], [2.0]]), np.ones((3, 1))).ravel()
    array([1.   , 0.125, 0.   ])
    """

    knee: float = 0.5

    def __post_init__(self) -> None:
        validate.positive("knee", self.knee)

    @property
    def smoothness(self) -> float:
        """1 / (2h)."""
        return 0.5 / self.knee

    @property
    def at_zero(self) -> float:
        """1 for a knee below 1."""
        return 1.0 if self.knee <= 1 else (1 + self.knee) ** 2 / (4 * self.knee)

    @property
    def softer(self) -> tuple[ConvexLoss, ...]:  # type: ignore[override]
        """With wider knees."""
        return tuple(replace(self, knee=knee) for knee in _wider(self.knee))

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        short = 1 - np.sign(y) * f
        bent = np.clip(short + self.knee, 0.0, 2 * self.knee) ** 2 / (4 * self.knee)
        return np.asarray(np.abs(np.sign(y)) * (bent + np.maximum(short - self.knee, 0.0)))

    def derivative(self, f: FloatArray, y: FloatArray) -> FloatArray:
        sign = np.sign(y)
        return np.asarray(-sign * np.clip((1 - sign * f) / (2 * self.knee) + 0.5, 0.0, 1.0))

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        sign = np.sign(y)
        return np.asarray(self.smoothness * np.abs(sign) * (np.abs(1 - sign * f) < self.knee))


@dataclass(frozen=True)
class EpsilonInsensitive(_UnitSlope):
    """max(0, abs(f - y) - epsilon), quadratic on the first h above 0: L = 1, beta = 1/h.

    At most h/2 below the exact loss, never above it; with epsilon = 0 it is Huber's.

    Parameters
    ----------
    epsilon : float, default=0.1
        Error that costs nothing.
    knee : float, default=0.1
        h.
    bound : float, default=inf
        Labels are clamped to [-bound, bound].

    Examples
    --------
    >>> loss = EpsilonInsensitive(epsilon=1.0, knee=1.0)
    >>> loss.value(np.array([[0.5], [2.0], [4.0]]), np.zeros((3, 1))).ravel()
    array([0. , 0.5, 2.5])
    """

    epsilon: float = 0.1
    knee: float = 0.1
    bound: float = math.inf

    def __post_init__(self) -> None:
        validate.positive("knee", self.knee)
        validate.non_negative("epsilon", self.epsilon)
        if not self.bound > 0:
            raise ValueError(f"bound must be positive; got {self.bound!r}.")

    @property
    def smoothness(self) -> float:
        """1 / h."""
        return 1 / self.knee

    @property
    def at_zero(self) -> float:
        """Loss of the largest label."""
        return max(0.0, self.bound - self.epsilon)

    @property
    def softer(self) -> tuple[ConvexLoss, ...]:  # type: ignore[override]
        """With wider knees."""
        return tuple(replace(self, knee=knee) for knee in _wider(self.knee))

    def _excess(self, f: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        error = f - np.clip(y, -self.bound, self.bound)
        return np.sign(error), np.maximum(np.abs(error) - self.epsilon, 0.0)

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        _, excess = self._excess(f, y)
        bent = np.minimum(excess, self.knee)
        return np.asarray(bent**2 / (2 * self.knee) + excess - bent)

    def derivative(self, f: FloatArray, y: FloatArray) -> FloatArray:
        side, excess = self._excess(f, y)
        return np.asarray(side * np.minimum(excess / self.knee, 1.0))

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        _, excess = self._excess(f, y)
        return np.asarray(self.smoothness * ((excess > 0) & (excess < self.knee)))


@dataclass(frozen=True)
class Squared(_Separable):
    r"""(f - y)^2 with labels clamped to [-Y, Y]: beta = 2, L = 2(RC + Y), C = Y sqrt(2/lambda).

    The square is not Lipschitz. But J(w*) <= J(0) <= Y^2 gives \|w*\| <= C, and the proof of the
    sensitivity uses L only between two minimisers, where \|f\| <= RC. Without a bound of the labels
    there is no sensitivity, so there is no such loss.

    Parameters
    ----------
    bound : float
        Y.

    Examples
    --------
    >>> Squared(1.0).lipschitz(radius=1.0, penalty=2.0)
    4.0
    >>> Squared(float("inf"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: bound must be a positive, finite number; got inf. Without clamped labels ...
    """

    bound: float

    smoothness: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.bound < math.inf:
            raise ValueError(
                f"bound must be a positive, finite number; got {self.bound!r}. Without clamped "
                "labels the squared loss has no sensitivity."
            )

    @property
    def at_zero(self) -> float:
        """Y^2."""
        return self.bound**2

    def lipschitz(self, radius: float, penalty: float) -> float:
        """2(RC + Y)."""
        return 2 * self.bound * (radius * math.sqrt(2 / penalty) + 1)

    def _error(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(f - np.clip(y, -self.bound, self.bound))

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return self._error(f, y) ** 2

    def derivative(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return 2 * self._error(f, y)

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.full_like(f, 2.0)


@dataclass(frozen=True)
class SoftmaxLoss:
    r"""Cross entropy of k classes, jointly: labels 1, ..., k; any other is a row of no class.

    The derivative in the k scores is p - e_y, of norm at most L = sqrt(2), whatever k: one record
    moves all columns together by 2 sqrt(2) R/(lambda n). beta = 1/2.

    Parameters
    ----------
    classes : int
        k.

    Examples
    --------
    >>> SoftmaxLoss(2).derivative(np.zeros((2, 2)), np.array([[1.0], [0.0]]))
    array([[-0.5,  0.5],
           [ 0. ,  0. ]])
    """

    classes: int

    joint: ClassVar[bool] = True
    softer: ClassVar[tuple[ConvexLoss, ...]] = ()
    smoothness: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise ValueError(f"classes must be at least 2; got {self.classes!r}.")

    @property
    def at_zero(self) -> float:
        """log(k)."""
        return math.log(self.classes)

    def lipschitz(self, radius: float, penalty: float) -> float:
        """sqrt(2)."""
        return math.sqrt(2)

    def columns(self, y: FloatArray) -> int:
        return self.classes

    def _own(self, y: FloatArray) -> FloatArray:
        return np.asarray((y == np.arange(1, self.classes + 1)).astype(np.float64))

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        own = self._own(y)
        return np.asarray(own.sum(axis=1) * log_sum_exp(f) - (own * f).sum(axis=1))

    def derivative(self, f: FloatArray, y: FloatArray) -> FloatArray:
        own = self._own(y)
        return np.asarray(own.sum(axis=1, keepdims=True) * softmax(f) - own)

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """Probabilities; all 0 in a row of no class."""
        return np.asarray(self._own(y).sum(axis=1, keepdims=True) * softmax(f))

    def curve(self, curvature: FloatArray, direction: FloatArray) -> FloatArray:
        mean = (curvature * direction).sum(axis=1, keepdims=True)
        return np.asarray(curvature * (direction - mean))

    def diagonal(self, curvature: FloatArray) -> FloatArray:
        return np.asarray(curvature * (1 - curvature))


def one_against_rest(y: FloatArray, classes: int) -> FloatArray:
    """Labels 1, ..., k as k columns of signs; any other label is a row of zeros.

    One record may move every column, so the joint sensitivity of the k models is sqrt(k) times
    that of one.

    Parameters
    ----------
    y : ndarray of shape (n,)
    classes : int
        k.

    Examples
    --------
    >>> one_against_rest(np.array([2.0, 0.0]), 2)
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    own = np.asarray(y, dtype=np.float64)[:, None] == np.arange(1, classes + 1)
    return np.where(own.any(axis=1, keepdims=True), np.where(own, 1.0, -1.0), 0.0)
