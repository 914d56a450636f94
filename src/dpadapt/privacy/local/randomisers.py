"""Randomisers: what a person's own device does to an answer before it leaves the device.

Each turns one true answer into one message that may be told to anybody: local differential
privacy, for any pair of true answers, with nobody to trust. All are vectorised, one person a row.

Total: a value outside the stated range is clipped by a public rule, NaN becomes a fixed public
value (0, or the zero vector), and nothing raises on a value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpadapt._types import FloatArray

from ... import _validate
from ..accounting.calibration import gaussian_mu
from ..accounting.composition import gaussian_delta
from ..accounting.events import Event, PureEvent
from ..core.noise import NoiseSource

_GRAIN = 2.0**-53  # uniforms are whole multiples of it
_LEAST_EPSILON = 1e-6  # below, an answer is as good as a coin


@dataclass(frozen=True)
class BinaryResponse:
    r"""One bit for a value in [0, 1]: randomised response after stochastic rounding.

    The value v is rounded to 1 with probability v, else to 0; the bit is flipped with
    :math:`p = 1 / (1 + e^\epsilon)`. So a 1 is sent with probability p + (1 - 2p) v, which lies in
    [p, 1 - p], and so does that of a 0. For any two values the ratio of the probabilities is at
    most :math:`(1 - p) / p = e^\epsilon`, attained at v = 0 and v = 1: pure epsilon-DP.

    The mean of bits has the expectation p + (1 - 2p) E v: (mean - p) / (1 - 2p) is unbiased.

    Both coins are one: u < p + (1 - 2p) v with u uniform on the whole multiples of 2^-53 below 1.
    p is rounded up to such a multiple and the threshold is kept within [p, 1 - p], so the two
    probabilities are what they are said to be to the last bit, and the ratio never above
    :math:`e^\epsilon`. That values are rounded to the same grain costs accuracy (1e-16), not
    privacy.

    Parameters
    ----------
    epsilon : float

    Examples
    --------
    >>> from dpadapt.privacy.core.noise import SeededNoise
    >>> response = BinaryResponse(epsilon=1.0)
    >>> bits = response.respond(SeededNoise(0), np.full(100_000, 0.3))
    >>> bool(abs(response.debias(bits.mean()) - 0.3) < 0.01)
    True
    """

    epsilon: float

    def __post_init__(self) -> None:
        _epsilon(self.epsilon)

    @cached_property
    def lie(self) -> float:
        """p: probability of a false bit."""
        return _lie(self.epsilon)

    @property
    def contrast(self) -> float:
        """1 - 2p: by how much the mean of bits moves with the mean of values."""
        return 1 - 2 * self.lie

    @property
    def proxy(self) -> float:
        """Variance proxy of one debiased bit: a bit is 1/2-sub-Gaussian (Hoeffding's lemma)."""
        return 0.25 / self.contrast**2

    def probability(self, values: Any) -> FloatArray:
        """Probability of sending 1."""
        inside = _unit(values)
        return np.clip(self.lie + self.contrast * inside, self.lie, 1 - self.lie)

    def respond(self, source: NoiseSource, values: Any) -> FloatArray:
        """Return one bit (0.0 or 1.0) for each value."""
        chances = self.probability(values)
        draws = source.uniform(chances.size).reshape(chances.shape)
        return (draws < chances).astype(np.float64)

    def debias(self, mean: Any) -> Any:
        """Unbiased estimate of the mean value from the mean of the bits."""
        return (mean - self.lie) / self.contrast

    def event(self, source: NoiseSource) -> Event:
        """What one answer costs."""
        return PureEvent("one randomised bit from each agent", self.epsilon)


@dataclass(frozen=True)
class GaussianResponse:
    r"""A value in [0, 1] plus Gaussian noise.

    Two values differ by at most 1, so with noise of standard deviation s one message is
    (1 / s)-GDP, and the exact delta at epsilon is
    :math:`\Phi(1/(2s) - \epsilon s) - e^\epsilon \Phi(-1/(2s) - \epsilon s)`.

    Form "tight" takes the least s for (epsilon, delta). Form "paper" (003) takes
    :math:`s^2 = 2 \ln(2/\delta) / \epsilon^2`. Erratum: at epsilon 0.5 and delta 1e-4 that really
    gives delta 1.27e-7 (2.3 times more variance than needed), while above epsilon 8.99 it
    is too little noise (1.65e-4 at epsilon 10). The event states what was really drawn, so the
    guarantee is right in either form. Per answer the bit of :class:`BinaryResponse` is far
    better: excess variance 3.9 at epsilon 0.5 against 34.7 (tight) and 79.2 (paper), and no delta.

    Erratum: the paper sends losses of up to L D through the same noise. The range is [0, 1]: divide
    a loss by its public bound first.

    Parameters
    ----------
    epsilon, delta : float
    form : {"tight", "paper"}, default="tight"

    Examples
    --------
    >>> paper = GaussianResponse(0.5, 1e-4, form="paper")
    >>> round(paper.scale**2, 1), f"{paper.exact_delta:.2e}"
    (79.2, '1.27e-07')
    >>> bool(GaussianResponse(10.0, 1e-4, form="paper").exact_delta > 1e-4)
    True
    """

    epsilon: float
    delta: float
    form: str = "tight"

    def __post_init__(self) -> None:
        _epsilon(self.epsilon)
        _validate.delta(self.delta)
        _validate.choice("form", self.form, ("tight", "paper"))

    @cached_property
    def scale(self) -> float:
        """Standard deviation of the noise."""
        if self.form == "paper":
            return math.sqrt(2 * math.log(2 / self.delta)) / self.epsilon
        return 1 / gaussian_mu(self.epsilon, self.delta)

    @property
    def exact_delta(self) -> float:
        """Delta that the noise really gives at ``epsilon``."""
        return float(gaussian_delta(self.epsilon, 1 / self.scale))

    @property
    def proxy(self) -> float:
        """Variance proxy of one message: a value in [0, 1] gives 1/4, the noise its variance."""
        return 0.25 + self.scale**2

    def respond(self, source: NoiseSource, values: Any) -> FloatArray:
        """Return one noisy number for each value."""
        return source.add_gaussian(_unit(values), self.scale)

    def debias(self, mean: Any) -> Any:
        """Return the mean itself: the noise is centred."""
        return mean

    def event(self, source: NoiseSource) -> Event:
        """What one answer costs."""
        label = "one number with Gaussian noise from each agent"
        return source.gaussian_event(label, 1.0, self.scale, 1, 1)


@dataclass(frozen=True)
class BallResponse:
    r"""A vector of fixed norm for a vector of norm at most 1 (Duchi, Jordan, Wainwright 2018).

    A direction U is drawn uniformly, without a look at the vector g. With probability
    :math:`1/2 + (1 - 2p) \|g\| / 2`, :math:`p = 1/(1 + e^\epsilon)`, its sign is turned so that
    <U, g> >= 0, else so that <U, g> <= 0. B U is sent,
    :math:`B = \sqrt{\pi}\, \Gamma((k+1)/2) / ((1 - 2p)\, \Gamma(k/2))` for k numbers.

    *Privacy.* U and -U have the same probability before the sign is chosen. Of the pair, the one
    that is sent has a probability in [p, 1 - p] whatever g is: against the uniform law the density
    of the message lies in [2p, 2(1 - p)], and for two vectors the ratio is at most
    :math:`(1 - p)/p = e^\epsilon`, attained by g and -g of norm 1. In floating point too: only the
    sign carries g, the law of U is symmetric to the last bit
    (:meth:`~dpadapt.privacy.core.noise.NoiseSource.directions`), <-U, g> is computed as exactly
    -<U, g>, and the coin is that of :class:`BinaryResponse`.

    *Unbiased.* U turned towards g has the mean E|U_1| g / |g|, with E|U_1| =
    :math:`\Gamma(k/2) / (\sqrt{\pi}\, \Gamma((k+1)/2))`; the excess probability of that side is
    :math:`(1 - 2p) \|g\|`. The product with B is g.

    It is the usual form: round g to s g / |g|, s = 1 with probability (1 + |g|) / 2, and send a
    direction on its side with probability :math:`e^\epsilon / (1 + e^\epsilon)`, with one coin for
    both.

    Parameters
    ----------
    epsilon : float
    width : int
        k, length of the vectors.

    Examples
    --------
    >>> from dpadapt.privacy.core.noise import SeededNoise
    >>> response = BallResponse(epsilon=1.0, width=2)
    >>> sent = response.respond(SeededNoise(0), np.tile([0.6, 0.0], (100_000, 1)))
    >>> bool(np.allclose(np.linalg.norm(sent, axis=1), response.norm))
    True
    >>> bool(np.abs(sent.mean(axis=0) - [0.6, 0.0]).max() < 0.05)
    True
    """

    epsilon: float
    width: int

    def __post_init__(self) -> None:
        _epsilon(self.epsilon)
        _validate.count("width", self.width)

    @cached_property
    def norm(self) -> float:
        """B: norm of every message."""
        k = self.width
        ratio = math.exp(math.lgamma((k + 1) / 2) - math.lgamma(k / 2))
        return math.sqrt(math.pi) * ratio / BinaryResponse(self.epsilon).contrast

    def respond(self, source: NoiseSource, values: Any) -> FloatArray:
        """Return one vector of norm ``norm`` for each row."""
        inside, lengths = _ball(values)
        towards = BinaryResponse(self.epsilon).respond(source, 0.5 + lengths / 2)
        sent = source.directions(inside.shape)
        squares = np.einsum("ij,ij->i", sent, sent)
        nowhere = np.flatnonzero(squares == 0)  # no direction: a fixed one
        sent[nowhere, :1], squares[nowhere] = 1.0, 1.0
        along = np.einsum("ij,ij->i", sent, inside) >= 0
        turn = np.where(along == (towards == 1), self.norm, -self.norm) / np.sqrt(squares)
        sent *= turn[:, None]
        return sent

    def event(self, source: NoiseSource) -> Event:
        """What one answer costs."""
        return PureEvent("one randomised direction from each agent", self.epsilon)


def _epsilon(value: Any) -> None:
    if _validate.epsilon(value) < _LEAST_EPSILON:
        raise ValueError(f"epsilon must be at least {_LEAST_EPSILON:g} for an answer of one agent.")


def _lie(epsilon: float) -> float:
    """1 / (1 + e^eps), rounded up to the grain of uniforms: never too few lies."""
    return math.ceil(1 / (2 + math.expm1(min(epsilon, 700.0))) / _GRAIN) * _GRAIN


def _unit(values: Any) -> FloatArray:
    """Values clipped to [0, 1]; NaN becomes 0."""
    given = np.asarray(values, dtype=np.float64)
    return np.asarray(np.fmin(np.fmax(given, 0.0), 1.0))  # of NaN and a number: the number


def _ball(values: Any) -> tuple[FloatArray, FloatArray]:
    """Rows and their norms, at most 1; a row that is not finite becomes the zero vector."""
    rows = np.array(values, dtype=np.float64)
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        odd = np.flatnonzero(~np.isfinite(lengths))  # these alone: no row is touched by another
        finite = np.isfinite(rows[odd]).all(axis=1, keepdims=True)
        others = np.where(finite, rows[odd], 0.0)
        largest = np.maximum(np.abs(others).max(axis=1, initial=0.0), 1.0)
        rows[odd] = others / largest[:, None]  # no square of it overflows
        lengths[odd] = np.linalg.norm(rows[odd], axis=1) * largest
    return rows, np.minimum(lengths, 1.0)
