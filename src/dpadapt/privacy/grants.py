"""What passes between a method and its session: requests, hidden statistics, grants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol, get_args

from . import _validate
from .events import DrawsEvent, Event, FloatArray, OneDrawGaussianEvent, PureEvent
from .noise import NoiseSource

__all__ = ["Grant", "Hidden", "Mechanism", "Part", "Request"]

Mechanism = Literal[
    "gaussian",
    "laplace",
    "noisy-argmin",
    "laplace-argmin",
    "randomised-response",
    "one-draw-gaussian",
    "draws",
    "pure",
]
_EPSILONS = ("randomised-response", "draws", "pure")  # whose scale is one over their epsilon
_DRAWN = ("one-draw-gaussian", "draws")
Part = Literal["all", "train", "holdout"]


@dataclass(frozen=True)
class Request:
    """Something that will be released, before its noise is known.

    Parameters
    ----------
    mechanism : {"gaussian", "laplace", "noisy-argmin", "laplace-argmin", "randomised-response", \
"one-draw-gaussian", "draws", "pure"}
        The last three: steps of a descent on rows drawn from weights, a private learner on drawn
        rows, an algorithm that is private by itself at an epsilon that it is told.
    label : str
        What it is, for the event log.
    sensitivity : float
        In the norm of the mechanism: l2 (Frobenius for matrices, the kernel's norm for Gaussian
        processes), l1, or the range of score differences; of one drawn row, twice the bound of a
        gradient. Not used where the scale is one over an epsilon.
    dimension : int
        How many numbers are released at once (matters for discrete noise only).
    count : int
        How often it will be released.
    weight : float
        Its share: sensitivity over noise is proportional to it.
    printed : float, optional
        A noise scale printed in a paper, taken as it is instead of a calibrated one. The
        guarantee says what it really gives.
    releases : int, optional
        For Gaussian noise: release it that often under an individual filter, by which every row
        pays for ``count`` releases of full sensitivity and no more (:meth:`Session.hide_filtered`).
    rate : float, optional
        Of drawn rows: :func:`.weights.draw_rate`, the most that one row can change a draw.
    draws : int, optional
        How many rows are drawn for a learner.
    delta : float, default=0
        The learner's own delta.

    Examples
    --------
    >>> Request("gaussian", "mean", sensitivity=0.1).weight
    1.0
    """

    mechanism: Mechanism
    label: str
    sensitivity: float = 1.0
    dimension: int = 1
    count: int = 1
    weight: float = 1.0
    printed: float | None = None
    releases: int | None = None
    rate: float | None = None
    draws: int | None = None
    delta: float = 0.0

    def __post_init__(self) -> None:
        if self.releases is not None:
            _validate.count("releases", self.releases)
            if self.mechanism != "gaussian":
                raise ValueError("releases: an individual filter needs the Gaussian mechanism.")
        _validate.choice("mechanism", self.mechanism, get_args(Mechanism))
        if self.printed is not None:
            _validate.positive("printed", self.printed)
        _validate.positive("sensitivity", self.sensitivity)
        _validate.count("dimension", self.dimension)
        _validate.count("count", self.count)
        _validate.positive("weight", self.weight)
        _validate.delta(self.delta, allow_zero=True)
        if (self.rate is not None) != (self.mechanism in _DRAWN):
            raise ValueError("rate: of rows that are drawn, and of no others.")
        if (self.draws is not None) != (self.mechanism == "draws"):
            raise ValueError("draws: how many rows a learner gets, and of nothing else.")

    def scale(self, multiplier: float) -> float:
        """Noise scale (or one over an epsilon) at a noise multiplier."""
        if self.printed is not None:
            return self.printed
        unit = 1.0 if self.mechanism in _EPSILONS else self.sensitivity
        return multiplier * unit / self.weight

    def event(self, source: NoiseSource, multiplier: float) -> Event:
        """Event that releasing this with that noise will be."""
        scale = self.scale(multiplier)
        facts = (self.label, self.sensitivity, scale)
        if self.mechanism == "gaussian":
            return source.gaussian_event(*facts, self.dimension, self.count)
        if self.mechanism == "laplace":
            return source.laplace_event(*facts, self.dimension, self.count)
        if self.mechanism == "noisy-argmin":
            return source.argmin_event(*facts, self.count)
        if self.mechanism == "laplace-argmin":  # on the same grid, where there is one
            epsilon = source.argmin_event(*facts, 1).pure_epsilon
            return PureEvent(self.label, epsilon, self.count)
        if self.mechanism == "one-draw-gaussian" and self.rate is not None:
            clip = self.sensitivity / 2
            return OneDrawGaussianEvent(self.label, clip, scale, self.rate, self.count)
        if self.draws is not None and self.rate is not None:
            return DrawsEvent(self.label, 1 / scale, self.delta, self.draws, self.rate, self.count)
        return PureEvent(self.label, 1 / scale, self.count)


class _Labelled(Protocol):
    @property
    def label(self) -> str: ...


class Hidden:
    """An un-noised statistic. Only a mechanism of its own session can open it.

    It cannot be printed, compared, indexed, converted, changed, copied or pickled.
    """

    __slots__ = ("_owner", "_value", "label", "part", "sensitivity", "shape")
    _owner: Any
    _value: FloatArray
    label: str
    part: Part
    sensitivity: float
    shape: tuple[int, ...]

    def __init__(
        self, value: FloatArray, query: _Labelled, sensitivity: float, part: Part, owner: Any
    ):
        facts = (owner, value, query.label, part, sensitivity, value.shape)
        for name, fact in zip(self.__slots__, facts, strict=True):
            object.__setattr__(self, name, fact)

    def request(self, *, weight: float = 1.0, count: int = 1) -> Request:
        """Ask for a Gaussian release of this statistic."""
        dimension = max(1, math.prod(self.shape))
        return Request("gaussian", self.label, self.sensitivity, dimension, count, weight)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("a hidden statistic cannot be changed.")

    def __repr__(self) -> str:
        return f"Hidden({self.label!r}, shape={self.shape})"

    def __reduce__(self) -> Any:
        raise TypeError("a hidden statistic cannot be copied or pickled.")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a hidden statistic cannot be read; release it through its session.")


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Grant:
    """The right to release one request, as often as it was planned and charged for.

    Its session keeps count by identity: a copy, or a grant of one's own making, buys nothing.
    """

    request: Request
    scale: float
    part: Part

    @property
    def epsilon(self) -> float:
        """The epsilon of one use, where the scale is one over it (a learner on drawn rows)."""
        return 1 / self.scale if self.request.mechanism in _EPSILONS else math.inf

    def __repr__(self) -> str:
        return f"Grant({self.request.label!r}, scale={self.scale:.6g})"
