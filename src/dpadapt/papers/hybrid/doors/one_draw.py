r"""One row drawn by bounded weights, its clipped gradient released with Gaussian noise.

What one changed row can do. Weights w, w' that differ in one entry, projected so that no row has
more than q, overlap in 1 - q (the projection moves all other entries the same way). So one step
draws from P = (1-q) A + q B against Q = (1-q) A + q B', where A, B, B' are mixtures of
:math:`N(g, \sigma^2 I)`, :math:`|g| \le L`. With m = 2 L / sigma, Y = exp(m z - m^2/2), z standard
normal, and H the hockey-stick divergence, advanced joint convexity (Balle, Barthe, Gaboardi 2018)
and joint convexity give for g >= 1

    H_g(P || Q) <= q H_{1+(g-1)/q}(N(m,1) || N(0,1)) = E[(V - g)_+],   V = 1 + q (Y - 1)_+,   (1)

the same for (Q, P), and so for g < 1: H_g(P || Q) = 1 - g + g H_{1/g}(Q || P)
<= 1 - g + g E[(V - 1/g)_+]. (A step whose weights are smaller is covered: (1) grows with q.)

The pair. These bounds are the profile of a pair of laws (convex, the kink at g = 1 included:
2 Phi(m/2) - 1 >= q (2 Phi(m/2) - 1)). Its second derivative says which: for z > m/2 the first law
has the density ratio V with probability V phi(z) dz and 1/V with probability phi(z) dz; the rest
has ratio 1. The second law is its mirror image. Adaptive steps are dominated by the product of
the pairs of the steps (Zhu, Dong, Wang 2022), so everything below holds for adaptive steps.

Renyi divergence. With x = log V the moment of order a under the second law is

    1 + E[V^a + V^(1-a) - 1 - V; z > m/2] = 1 + E[(1 - e^{-(a-1)x}) (e^{ax} - 1); z > m/2],   (2)

a product of two positive factors: nothing cancels, however small q is.

Upper sums. V^a + V^(1-a) - 1 - V is convex in V, hence in Y: on a cell [z_i, z_{i+1}] it is at most
its chord in Y. Integrating the chords gives (2) with z replaced by the nodes, weighted with the
integrals of two hat functions over the cell: an upper bound whatever the cells, and the exact
moment of a pair on the nodes that dominates ("connect the dots", Doroshenko et al. 2022).
The hats are positive and integrated by Gauss-Legendre on panels of at most half a unit (relative
error below 1e-10). Beyond the last node V <= c Y with c the ratio there, and

    E[V^a; z > far] <= c^a e^{a(a-1)m^2/2} Phi(a m - far).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from dpadapt import _validate
from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.events import Addition, Event
from dpadapt.privacy.accounting.pld import FINEST, MOST_POINTS, PrivacyLoss

__all__ = ["DrawnLoss", "OneDrawGaussianEvent", "loss_masses", "loss_moments", "renyi"]

_CELLS = 600  # of the upper sums
_FAR = 40.0  # standard deviations of noise, where the nodes end
_ORDERS = 721  # at which upper sums are formed; between them the bound is interpolated
_STRONGEST = 20.0  # m beyond which sampling is not taken into account
_FARTHEST_MASS = 1e-17
_PANEL = 0.5  # widest interval of one quadrature
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_MARGIN = 1 + 1e-10  # what rounding and the quadrature of the hats can lose
_MOST_LAWS = 12  # of which a distribution is computed: each takes transforms of its own
_STRONGEST_LAW = 10.0  # m of such laws
_MOST_STEPS = 10**10  # of one such law: with more, rounding eats up every usual delta
_RAREST = 1e-30  # loss of such steps
_ROUNDING = 4e-16  # failure added to each such step: transforms were seen to be off by a fiftieth
_CUT = 1e-15  # of a tail, moved to infinity


@dataclass(frozen=True, slots=True)
class OneDrawGaussianEvent(Event):
    """``count`` steps: one row drawn by weights, its clipped gradient released with noise.

    No weight is above ``rate`` (q), no gradient longer than ``clip`` (L); the noise is
    N(0, ``scale``^2 I). Weights may depend on earlier releases and, each, on its own row.
    The proofs stand at the head of this file. Replace-one only.

    Examples
    --------
    >>> event = OneDrawGaussianEvent("descent", clip=1.0, scale=4.5, rate=1e-6, count=10**9)
    >>> float(event.renyi(np.array([2.0]))[0]) < 1e-3
    True
    """

    clip: float
    scale: float
    rate: float
    count: int = 1
    kind: ClassVar[str] = "one-draw-gaussian"
    relations: ClassVar[tuple[str, ...]] = ("replace-one",)
    adds: ClassVar[Addition | None] = "laws"
    worse: ClassVar[tuple[str, ...]] = ("scale", "rate")
    most: ClassVar[int] = 8

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        _validate.positive("clip", self.clip)
        _validate.positive("scale", self.scale)
        _validate.share("rate", self.rate)
        _validate.count("count", self.count)

    @property
    def strength(self) -> float:
        """M = 2 clip / scale: how far two gradients are apart, in units of the noise."""
        return 2 * self.clip / self.scale

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Upper sums of the dominating pair, ``count`` times."""
        return self.count * renyi(self.strength, self.rate, orders)

    @property
    def loss(self) -> tuple[PrivacyLoss, int]:
        """Of the dominating pair of one step."""
        return DrawnLoss(self.strength, self.rate), self.count

    def law(self) -> tuple[Event, int]:
        """One step, in units of the clip."""
        multiplier = self.scale / self.clip
        return replace(self, label="", clip=1.0, scale=multiplier, count=1), self.count


@dataclass(frozen=True, slots=True)
class DrawnLoss(PrivacyLoss):
    """Privacy loss of one step on a drawn row, which may be far smaller than the grid's step.

    Examples
    --------
    >>> loss = DrawnLoss(0.5, 0.01)
    >>> round(loss.moments[1], 9) == round(loss.variance(1), 9)
    True
    """

    strength: float
    rate: float
    rank: ClassVar[int] = 2
    slow: ClassVar[bool] = True

    @property
    def moments(self) -> tuple[float, float, float]:
        """Of the pair itself, no grid."""
        return loss_moments(self.strength, self.rate)

    def variance(self, count: int) -> float:
        """The exact one."""
        return count * self.moments[1]

    @classmethod
    def grid(cls, laws: Counter[DrawnLoss], step: float, spread: float) -> float:
        """Finer than others need, with no more points than can be computed with."""
        weak = all(m.strength <= _STRONGEST_LAW and m.strength * m.rate >= _RAREST for m in laws)
        if not weak or len(laws) > _MOST_LAWS or max(laws.values()) > _MOST_STEPS:
            return math.inf
        farthest = max(farthest_loss(law.strength, law.rate) for law in laws)
        return max(min(step, 2 * FINEST * spread), farthest / MOST_POINTS)

    def distribution(self, count: int, step: float) -> Any:
        """``count`` steps: blocks of them on a finer grid, then together on that of ``step``.

        Rounding a loss to a grid of step h adds up to h^2 / 4 to its variance, which must be small
        beside the variance s^2 of what is rounded. So single steps stand on a grid of about s / 10;
        blocks of so many steps that their deviation is 16 ``step`` are composed there and rounded,
        by connect-the-dots again, to multiples of ``step``. ``_ROUNDING`` is lost in each on top.
        """
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution

        deviation = math.sqrt(self.moments[1])
        reach = farthest_loss(self.strength, self.rate)
        finer = max(1, min(math.ceil(10 * step / deviation), int(step * MOST_POINTS / reach)))
        masses, lost = loss_masses(self.strength, self.rate, step / finer)
        block = 1 if finer == 1 else min(count, math.ceil((16 * step / deviation) ** 2))

        def steps(times: int) -> Any:
            grid, low = _self_convolved(masses, -(len(masses) // 2), times)
            failed = -math.expm1(times * math.log1p(-lost - _ROUNDING)) + (times > 1) * _CUT
            grid, low = _coarser(grid, low, finer, step)
            pmf = pld_pmf.DensePLDPmf(step, low, grid, failed, True)
            return privacy_loss_distribution.PrivacyLossDistribution(pmf)

        whole, rest = divmod(count, block)
        total = steps(block).self_compose(whole, _CUT)
        return total.compose(steps(rest)) if rest else total


def renyi(strength: float, rate: float, orders: FloatArray) -> FloatArray:
    """Bound on the Renyi divergence of one step at each order; m is ``strength``, q is ``rate``.

    Never above order * m^2 / 2, what the step costs without the sampling, which only hides.

    Between the orders at which (2) is summed, (order - 1) * divergence is interpolated: as the
    logarithm of a moment it is convex in the order, so its chords are upper bounds.

    Examples
    --------
    >>> f"{renyi(0.5, 1e-3, np.array([2.0]))[0]:.3g}"  # without the sampling 0.25
    '3.94e-07'
    """
    plain = orders * (strength * strength / 2)
    if not strength <= _STRONGEST:
        return np.asarray(plain)
    grid, moments = _log_moments(strength, rate)
    sampled = np.interp(orders, grid, moments, left=math.inf, right=math.inf) / (orders - 1)
    return np.minimum(plain, sampled)


@lru_cache(maxsize=256)
def _log_moments(strength: float, rate: float) -> tuple[FloatArray, FloatArray]:
    """Logarithm of (2), from above, at orders from 1 to where the bound stops being useful."""
    start = strength / 2
    end = math.asinh(_FAR / 2)
    nodes = start + 2 * np.sinh(np.linspace(0.0, end, _CELLS + 1))
    log_masses = _log_hats(nodes, strength)
    x = _loss_at(nodes, strength, rate)
    orders = 1 + np.append(0.0, np.logspace(-3, 6, _ORDERS))
    a = orders[orders * strength < 4 * _FAR, None]
    terms = log_masses + _log_expm1(a * x) + _log_one_minus_exp((a - 1) * x)
    bulk = logsumexp(terms, axis=1)
    order, far = a[:, 0], float(nodes[-1])
    log_ratio = float(x[-1]) - (strength * far - strength * strength / 2)
    tail = order * log_ratio + order * (order - 1) * strength**2 / 2
    tail = tail + log_ndtr(order * strength - far)
    total = np.log1p(np.exp(np.minimum(np.logaddexp(bulk, tail), 500.0)) * _MARGIN)
    over = np.logaddexp(bulk, tail) > 500.0
    total = np.where(over, np.logaddexp(np.logaddexp(bulk, tail) + 1e-10, 0.0), total)
    total[0] = 0.0  # at order 1
    return order, total


def loss_masses(strength: float, rate: float, step: float) -> tuple[FloatArray, float]:
    """Dominating privacy loss of one step on the grid -J step, ..., J step, and its mass at inf.

    Connect-the-dots: the hats of the nodes at which the loss is a multiple of ``step``.

    Examples
    --------
    >>> masses, lost = loss_masses(0.5, 0.01, 1e-3)
    >>> losses = 1e-3 * (np.arange(len(masses)) - len(masses) // 2)
    >>> bool(abs(masses @ np.exp(-losses) - 1) < 1e-9), lost < 1e-16
    (True, True)
    """
    reach = farthest_loss(strength, rate)
    x = step * np.arange(1 + max(1, math.ceil(reach / step)))
    log_y = np.log1p(np.expm1(np.minimum(x, 500.0)) / rate)
    log_y = np.where(x < 500, log_y, x - math.log(rate))
    nodes = (log_y + strength * strength / 2) / strength
    masses = np.exp(_log_hats(nodes, strength))
    # beyond the last node V = V_J + q (Y - Y_J): the first stays on the node, the second is lost
    far = float(nodes[-1])
    masses[-1] += ndtr(-far)
    lost = float(rate * ndtr(strength - far))
    up = masses * np.exp(np.minimum(x, 700.0))
    both = np.concatenate([masses[:0:-1], [0.0], up[1:]])
    both[len(x) - 1] = max(0.0, 1.0 - math.fsum(both) - lost)
    return both, lost


def farthest_loss(strength: float, rate: float) -> float:
    """Loss beyond which there is a mass of 1e-17 or so, which goes to infinity."""
    far = strength - float(ndtri(min(0.1, _FARTHEST_MASS / rate)))
    return float(_loss_at(np.array([far]), strength, rate)[0])


@lru_cache(maxsize=256)
def loss_moments(strength: float, rate: float) -> tuple[float, float, float]:
    """Mean, variance and third absolute central moment of the privacy loss of one step.

    Of the dominating pair itself (no grid), by quadrature; the third is an upper bound.

    Examples
    --------
    >>> mean, variance, third = loss_moments(0.5, 1e-4)
    >>> round(variance / mean, 3)  # as for a Gaussian
    2.0
    """
    width = _FAR / _CELLS
    edges = strength / 2 + width * np.arange(_CELLS)
    z = edges[:, None] + width * (_POINTS + 1) / 2
    x = _loss_at(z, strength, rate)
    density = np.exp(-z * z / 2) * (_WEIGHTS * width / 2 / math.sqrt(2 * math.pi))
    excess = np.expm1(x)  # V - 1
    mean = float(np.sum(density * excess * x))
    first, second, third = (float(np.sum(density * (2 + excess) * x**k)) for k in (1, 2, 3))
    variance = second - mean * mean
    return mean, variance, third + 3 * mean * second + 3 * mean**2 * first + mean**3


def _loss_at(z: FloatArray, strength: float, rate: float) -> FloatArray:
    """X = log(1 + q (Y - 1)) at points z >= m/2."""
    u = strength * z - strength * strength / 2
    small = np.log1p(rate * np.expm1(np.minimum(u, 30.0)))
    keep = math.log1p(-rate) if rate < 1 else -math.inf
    return np.asarray(np.where(u < 30, small, np.logaddexp(keep, math.log(rate) + u)))


def _log_hats(nodes: FloatArray, strength: float) -> FloatArray:
    """Log of the integrals of the nodes' hats, linear in Y, under the standard normal law.

    What lies beyond the last node is left out.
    """
    left, width = nodes[:-1], np.diff(nodes)
    panels = np.maximum(1, np.ceil(width / _PANEL)).astype(np.int64)
    cell = np.repeat(np.arange(len(width)), panels)
    place = np.arange(len(cell)) - np.repeat(np.cumsum(panels) - panels, panels)
    size = (width / panels)[cell]
    beyond = (place * size)[:, None] + size[:, None] * (_POINTS + 1) / 2  # z minus its left node
    z = left[cell]
    density = np.exp(-beyond * (z[:, None] + beyond / 2)) * (_WEIGHTS * size[:, None] / 2)
    rise = np.expm1(strength * beyond) / np.expm1(strength * width)[cell][:, None]
    rest = width[cell][:, None] - beyond
    fall = np.exp(strength * beyond) * np.expm1(strength * rest)
    fall = fall / np.expm1(strength * width)[cell][:, None]
    count = len(width)
    with np.errstate(divide="ignore"):
        scale = -left * left / 2 - math.log(2 * math.pi) / 2
        ups = np.log(np.bincount(cell, np.sum(density * rise, axis=1), count)) + scale
        downs = np.log(np.bincount(cell, np.sum(density * fall, axis=1), count)) + scale
    both = np.logaddexp(np.append(-math.inf, ups), np.append(downs, -math.inf))
    return np.asarray(both)


def _log_expm1(t: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(t < 30, np.log(np.expm1(np.minimum(t, 30.0))), t))


def _log_one_minus_exp(t: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(-t)))


def _self_convolved(masses: FloatArray, low: int, times: int) -> tuple[FloatArray, int]:
    from dp_accounting.pld import common

    if times == 1:
        return masses, low
    cut, convolved = common.self_convolve(masses, times, _CUT)
    return np.maximum(np.asarray(convolved), 0.0), low * times + cut


def _coarser(masses: FloatArray, low: int, ratio: int, step: float) -> tuple[FloatArray, int]:
    """Losses that are multiples of step / ratio, each spread over the two multiples of step.

    The spread keeps the mass and the mean of e^-loss, so the new pair dominates.
    """
    if ratio == 1:
        return masses, low
    below, over = np.divmod(low + np.arange(len(masses)), ratio)
    up = np.expm1(-over * (step / ratio)) / math.expm1(-step)
    first = int(below[0])
    size = int(below[-1]) - first + 2
    down_mass = np.bincount(below - first, masses * (1 - up), size)
    up_mass = np.bincount(below - first + 1, masses * up, size)
    return np.asarray(down_mass + up_mass, dtype=np.float64), first
