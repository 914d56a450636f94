"""Noisy sums over a Poisson sample: the event, and its privacy loss under either relation."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr

from dpadapt import _validate
from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.events import Addition, Event, Relation
from dpadapt.privacy.accounting.pld import MOST_POINTS, PrivacyLoss, connect_the_dots
from dpadapt.privacy.accounting.renyi import square

__all__ = ["PoissonGaussianEvent", "SampledLoss"]


@dataclass(frozen=True, slots=True)
class PoissonGaussianEvent(Event):
    """``count`` noisy sums over a Poisson sample: each record is in with probability ``rate``.

    One record contributes at most ``clip`` in l2 norm; the noise has standard deviation
    ``scale``. Under replace-one the worst pair is (1-q)N(0)+qN(clip) against
    (1-q)N(0)+qN(-clip), which costs more than the add-or-remove pair that accountants
    usually take: the relation is part of the event, and relations do not mix.

    Examples
    --------
    >>> PoissonGaussianEvent("gradient", clip=1.0, scale=2.0, rate=0.01, count=100).relation
    'replace-one'
    """

    clip: float
    scale: float
    rate: float
    count: int = 1
    kind: ClassVar[str] = "poisson-gaussian"
    adds: ClassVar[Addition | None] = "laws"
    worse: ClassVar[tuple[str, ...]] = ("scale", "rate")
    most: ClassVar[int] = 8

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        _validate.positive("clip", self.clip)
        _validate.positive("scale", self.scale)
        _validate.fraction("rate", self.rate)
        _validate.count("count", self.count)

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Bound without the sampling, which only hides (joint quasi-convexity): not tight."""
        move = self.clip if self.relation == "add-remove" else 2 * self.clip
        return orders * (self.count * square(move / self.scale) / 2)

    @property
    def loss(self) -> tuple[PrivacyLoss, int]:
        """Of one sum, in units of the clip."""
        return SampledLoss(self.scale / self.clip, self.rate, self.relation), self.count

    def law(self) -> tuple[Event, int]:
        """One sum, in units of the clip."""
        multiplier = self.scale / self.clip
        return replace(self, label="", clip=1.0, scale=multiplier, count=1), self.count


@dataclass(frozen=True, slots=True)
class SampledLoss(PrivacyLoss):
    """Privacy loss of one noisy sum in which a row of norm 1 takes part with probability ``rate``.

    Examples
    --------
    >>> loss = SampledLoss(2.0, 0.01, "replace-one")
    >>> loss.distribution(100, 1e-3).get_epsilon_for_delta(1e-6) < 1
    True
    """

    scale: float
    rate: float
    relation: Relation
    rank: ClassVar[int] = 1

    def variance(self, count: int) -> float:
        """Of what is left of two rows after the sampling."""
        one = 2 * self.rate / self.scale
        return count * one * one

    @classmethod
    def grid(cls, laws: Counter[SampledLoss], step: float, spread: float) -> float:
        """No more points than can be computed with."""
        return max(step, max(law._reach for law in laws) / MOST_POINTS)

    def distribution(self, count: int, step: float) -> Any:
        """Of dp-accounting's pair under add-or-remove, of ours under replace-one."""
        from dp_accounting.pld import privacy_loss_distribution

        if self.relation == "add-remove":
            one = privacy_loss_distribution.from_gaussian_mechanism(
                self.scale, value_discretization_interval=step, sampling_prob=self.rate
            )
        else:
            edge = math.ceil(self._reach / step)
            one = connect_the_dots(self._replace_one_hockey_stick, step, -edge, edge)
        return one.self_compose(count)

    @property
    def _reach(self) -> float:
        """Loss at nine standard deviations of noise; the mass of what is farther goes to inf."""
        return self._replace_one_loss(9.0 * self.scale + 1.0)

    def _replace_one_loss(self, at: float) -> float:
        """Log-density ratio of (1-q)N(0)+qN(1) to (1-q)N(0)+qN(-1) at a point; increasing."""
        q, variance = self.rate, self.scale**2
        with_record = math.log(q) + (2 * at - 1) / (2 * variance)
        without = math.log(q) + (-2 * at - 1) / (2 * variance)
        keep = math.log1p(-q)
        return float(np.logaddexp(keep, with_record) - np.logaddexp(keep, without))

    def _replace_one_hockey_stick(self, at: FloatArray) -> FloatArray:
        """Hockey-stick divergence of the replace-one pair, in closed form.

        The log-ratio reaches ``at`` where a t^2 + (1-q)(1-e^at) t - a e^at = 0 with t = exp(x/s^2)
        and a = q exp(-1/(2 s^2)); above that point the densities are integrated. All in logarithms:
        e^at overflows where the noise is small.
        """
        scale, log_q, log_rest = self.scale, math.log(self.rate), math.log1p(-self.rate)
        log_a = log_q - 1 / (2 * scale**2)
        size = np.abs(at)
        # with at = -size the equation has half = (1-q)(1-e^-size)/2; t at +size is one over that
        with np.errstate(divide="ignore"):
            log_half = log_rest + np.log(-np.expm1(-size) / 2)
        log_root = np.logaddexp(2 * log_half, 2 * log_a - size) / 2
        x = np.sign(at) * scale**2 * (np.logaddexp(log_half, log_root) - log_a + size)
        x = np.where(at == 0, 0.0, x)
        above = np.logaddexp(log_rest + log_ndtr(-x / scale), log_q + log_ndtr((1 - x) / scale))
        other = np.logaddexp(log_rest + log_ndtr(-x / scale), log_q + log_ndtr((-1 - x) / scale))
        return np.exp(above) * -np.expm1(np.minimum(at + other - above, 0.0))
