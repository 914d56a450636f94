"""The exponential mechanism: a choice among scores, or of a point of a ball by exact draws.

**Exact draws of the exponential mechanism on a ball, for the linear kernel.**

The law on the ball of radius R in d dimensions with density proportional to exp(|<z, v>| / b). By
symmetry, with a = R |v| / b and in units of R,

    z = sign * s * v/|v| + sqrt(1 - s^2) r u,

sign uniform, s in [0, 1] with density proportional to (1 - s^2)^{(d-1)/2} e^{a s}, r =
U^{1/(d-1)} and u uniform on the unit sphere orthogonal to v: |<z, v>| depends on s alone, and
given s the rest is uniform on a ball of d - 1 dimensions.

The density of s is log-concave. In q = 1 - s, where no digits are lost however large a is,

    g(q) = k log q + k log(2 - q) - a q,    k = (d - 1)/2,

lies below its tangents and below its maximum: three exponential pieces to draw from, and to reject
against. A fixed number of proposals is drawn, more than enough, and the first accepted one is
taken, so that the time taken tells nothing of v.

*Tails.* Uniform numbers are whole multiples of 2^-53. An inverse distribution function spreads the
last few of them over a whole tail: points of a comb, wider than the grid of what comes out, whose
places tell a: 2^-21 / a of all draws fall there, with the grid of 2^-32 below. So each piece is
drawn from its far end on, and r from 0 on, with 106 bits (:func:`_fine`), of which a float keeps 53
wherever it is. Points are then at most 2^-52 apart, and wider than the grid only in the last
2^-74 / a, or 2^-74 / (d - 1) for r.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from dpadapt import _validate
from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.events import Event, Relation
from dpadapt.privacy.core.hidden import Hidden
from dpadapt.privacy.core.mechanism import Noise
from dpadapt.privacy.core.noise import NoiseSource
from dpadapt.privacy.rows.errors import PrivacyError

_PROPOSALS = 64  # at 0.8 accepted and more, all are rejected with probability 1e-44
_STEEPEST = 1e12  # of a; beyond it v is taken for a shorter one, as by a projection on a ball
_GRID = 2.0**-32  # of the radius, of every coordinate that comes out
_TINY = float(np.finfo(np.float64).tiny)


def draw_on_ball(
    uniform: Callable[[int], FloatArray], direction: FloatArray, scale: float, radius: float = 1.0
) -> FloatArray:
    """Draw a point of the ball with density proportional to exp(|<z, direction>| / scale).

    If one record changes ``direction`` by at most D, it changes |<z, direction>| by at most S = R D
    at any z, so the difference of two of them by at most 2S: the draw is an exponential mechanism
    of range sensitivity 2S, that is (2S / scale)-DP and of bounded range.

    Parameters
    ----------
    uniform : callable
        From a number n to n independent uniform numbers in [0, 1).
    direction : ndarray of shape (d,)
        v; finite. At 0 the law is uniform.
    scale : float
        b.
    radius : float, default=1
        R.

    Returns
    -------
    ndarray of shape (d,)
        z, rounded towards 0 on a public grid, against attacks on the low bits of float64: a
        mitigation, not a proof.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = draw_on_ball(rng.random, np.array([50.0, 0.0, 0.0]), scale=1.0)
    >>> bool(abs(z[0]) > 0.8), bool(np.linalg.norm(z) <= 1)
    (True, True)
    """
    d = len(direction)
    largest = float(np.abs(direction).max())
    unit = direction / largest if largest > _TINY else np.eye(1, d)[0]  # its norm cannot overflow
    length = float(np.linalg.norm(unit))
    axis = np.asarray(unit / length, dtype=np.float64)
    a = min(largest * (length * radius / scale), _STEEPEST)
    signs, inner, normals, proposals = np.split(
        uniform(3 + d + 4 * _PROPOSALS), np.cumsum([1, 2, d])
    )
    piece, accept, high, low = proposals.reshape(4, _PROPOSALS)
    q = height(piece, _fine(high, low), accept, a, d)
    along = math.copysign(1 - q, float(signs[0]) - 0.5)
    normal = ndtri(np.clip(normals, 2.0**-54, None))
    across = normal - (normal @ axis) * axis
    across -= (across @ axis) * axis  # once more: what rounding left
    width = math.sqrt(q * (2 - q)) * float(_fine(*inner)) ** (1 / (d - 1)) if d > 1 else 0.0
    point = along * axis + width * across / max(float(np.linalg.norm(across)), _TINY)
    inside = point / max(1.0, float(np.linalg.norm(point)))
    grid = math.ldexp(1.0, math.frexp(radius)[1] - 1) * _GRID
    return np.asarray(np.trunc(inside * radius / grid) * grid)


def height(piece: FloatArray, within: FloatArray, accept: FloatArray, a: float, d: int) -> float:
    """Draw q = 1 - s, with s of density proportional to (1 - s^2)^{(d-1)/2} e^{a s} on [0, 1].

    Parameters
    ----------
    piece, within, accept : ndarray of shape (m,)
        Uniform numbers above 0: m proposals (from which piece of the envelope, and where in it),
        and whether they are accepted. In one dimension the first of ``within`` alone is used.
    a : float
    d : int

    Examples
    --------
    >>> half = np.array([0.5])
    >>> height(half, half, half, a=0.0, d=1)
    0.5
    """
    if d == 1:
        return float(_decay(within[:1], a)[0])
    envelope = _Envelope.of(a, (d - 1) / 2)
    q, above = envelope.propose(piece, within)
    accepted = np.log(np.maximum(accept, _TINY)) <= envelope.log_density(q) - above
    return float(q[np.argmax(accepted)]) if accepted.any() else envelope.mode


def _fine(high: Any, low: Any) -> Any:
    """Uniform numbers of 106 bits from two of 53, as far as a float holds them; above 0."""
    return np.maximum(high + 2.0**-53 * low, _TINY)


def _decay(uniform: FloatArray, a: float) -> FloatArray:
    """Points of [0, 1] with density proportional to e^{-a x}; those far out from numbers near 0."""
    if a <= 1e-12:
        return 1 - uniform
    gone = (1 - uniform) * -math.expm1(-a)  # mass before the point
    near = -np.log1p(-np.minimum(gone, 0.5)) / a
    far = -np.log(uniform + (1 - uniform) * math.exp(-a)) / a  # by the mass that is left
    return np.asarray(np.clip(np.where(gone < 0.5, near, far), 0.0, 1.0))


@dataclass(frozen=True)
class _Envelope:
    """An exponential, a constant and an exponential above g - max g; all relative to max g."""

    a: float
    k: float
    mode: float
    rise: float  # slope of the tangent left of the mode
    left: float  # where it meets the constant
    fall: float  # slope right of the mode; 0 where g hardly falls until q = 1
    right: float

    @classmethod
    def of(cls, a: float, k: float) -> _Envelope:
        long = math.hypot(k, a)
        mode = (k + k * k / (long + a)) / (k + long)
        new = cls(a, k, mode, 0.0, 0.0, 0.0, 1.0)
        # tangents at about one below the maximum: any point would do, this one wastes little
        low = mode * math.exp(-_bisect(lambda t: new._drop(mode * math.exp(-t)) > 1, 2 + 1 / k))
        rise = new._slope(low)
        left = low + new._drop(low) / rise
        fall, right = 0.0, 1.0
        if new._drop(1.0) > 1:
            high = mode + _bisect(lambda t: new._drop(mode + t) > 1, 1 - mode)
            fall = new._slope(high)
            right = min(1.0, high + new._drop(high) / fall)
        return cls(a, k, mode, rise, left, fall, right)

    def log_density(self, q: FloatArray) -> FloatArray:
        """g(q) - g(mode), written with ratios: the digits of a difference stay."""
        with np.errstate(divide="ignore"):
            ratio = np.log(q / self.mode) + np.log((2 - q) / (2 - self.mode))
        return np.asarray(self.k * ratio - self.a * (q - self.mode))

    def _drop(self, q: float) -> float:
        """What the density has lost at one point; as above."""
        ratio = math.log(q / self.mode) + math.log((2 - q) / (2 - self.mode))
        return self.a * (q - self.mode) - self.k * ratio

    def _slope(self, q: float) -> float:
        return self.k / q - self.k / (2 - q) - self.a

    def propose(self, piece: FloatArray, within: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points drawn under the envelope, and the height of the envelope there."""
        rising = -math.expm1(-self.rise * self.left) / self.rise
        flat = self.right - self.left
        falling = math.expm1(self.fall * (1 - self.right)) / self.fall if self.fall else 0.0
        area = piece * (rising + flat + falling)
        q = self.left + flat * within
        q = np.where(area < rising, self.left * (1 - _decay(within, self.rise * self.left)), q)
        if self.fall:
            beyond = 1 - self.right
            on_fall = self.right + beyond * _decay(within, -self.fall * beyond)
            q = np.where(area >= rising + flat, on_fall, q)
        q = np.clip(q, _TINY, 1.0)
        rise, fall = self.rise * (q - self.left), self.fall * (q - self.right)
        return q, np.minimum(0.0, np.minimum(rise, fall))


def _bisect(beyond: Callable[[float], bool], high: float) -> float:
    """Near the point where ``beyond`` becomes true, on its far side."""
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Exponential(Noise):
    """Place of a small score; the sensitivity is the largest change of a difference of two scores.

    Examples
    --------
    >>> Exponential("vertex", sensitivity=0.1, count=20).norm
    'range'
    """

    norm: ClassVar[str] = "range"

    def event(self, scale: float, source: NoiseSource) -> Event:
        """All choices together."""
        return source.argmin_event(self.label, self.sensitivity, scale, self.count)

    def numbers(self, hidden: Hidden) -> int:
        """One place comes out, whatever the number of scores."""
        return 0

    def stretch(self, hidden: Hidden, **_: Any) -> float:
        """One score up, another down."""
        return math.sqrt(2)

    def release(self, hidden: Hidden, scale: float, source: NoiseSource, **_: Any) -> Any:
        """Place of a small score."""
        return noisy_argmin(source, hidden._value, scale)


@dataclass(frozen=True)
class ExponentialOnBall(Exponential):
    """A point z of a ball with density proportional to exp(|<z, v>| / scale), v the hidden value.

    The scores are |<z, v>|: a difference of two changes by at most 2 * radius * |v - v'|, which is
    the sensitivity.

    Parameters
    ----------
    radius : float
        Of the ball.

    Examples
    --------
    >>> ExponentialOnBall("points", sensitivity=0.1, radius=2.0).norm
    'l2'
    """

    radius: float = 1.0
    norm: ClassVar[str] = "l2"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive("radius", self.radius)

    def check(self, relation: Relation, source: NoiseSource) -> None:
        """Refuse discrete noise."""
        if source.name == "exact":
            raise PrivacyError(
                "the exact sampler of a ball works in float64; use noise='secure', or a pool."
            )

    def stretch(self, hidden: Hidden, **_: Any) -> float:
        """Twice the radius, as stated above."""
        return 2 * float(self.radius)

    def release(self, hidden: Hidden, scale: float, source: NoiseSource, **_: Any) -> FloatArray:
        """Point of the ball."""
        return draw_on_ball(source.uniform, hidden._value, scale, self.radius)

    def coordinates(self, value: FloatArray, **_: Any) -> FloatArray:
        """Twice the radius times the value, whose distances the sensitivity bounds."""
        return 2 * float(self.radius) * np.asarray(value)


def noisy_argmin(source: NoiseSource, scores: FloatArray, scale: float) -> int:
    """Exponential mechanism: index i with probability proportional to exp(-scores[i] / scale).

    Sampled as argmin(scores - scale * Gumbel); argmin(scores + scale * Gumbel) would be no
    exponential mechanism at all. With range sensitivity R (largest change of a difference of two
    scores) it is R/scale-bounded-range.

    Examples
    --------
    >>> from dpadapt.privacy.core.noise import SeededNoise
    >>> noisy_argmin(SeededNoise(0), np.array([5.0, 0.0, 5.0]), scale=0.1)
    1
    """
    return source.noisy_argmin(np.asarray(scores, dtype=np.float64), scale)
