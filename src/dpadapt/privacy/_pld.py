"""Privacy loss distributions, computed by dp-accounting, which is imported only here.

It is always fed with noise over sensitivity under add-or-remove, or with hockey-stick divergences
that we compute: its own treatment of replace-one doubles a Gaussian's sensitivity in one
accountant and not in the other, and its randomised response forgets the count
(``tests/privacy/test_dp_accounting_defects.py``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from . import _one_draw
from .events import (
    BoundedRangeEvent,
    Event,
    FloatArray,
    GaussianEvent,
    LaplaceEvent,
    OneDrawGaussianEvent,
    PoissonGaussianEvent,
    PureEvent,
)

__all__ = ["distribution"]

_FINEST, _STEP = 1e-4, 5e-4  # grid step over the spread of the privacy loss
_MOST_POINTS = 100_000  # of one side of the grid of one sampled release
_MOST_LAWS = 12  # different laws of steps on drawn rows: each takes transforms of its own
_STRONGEST = 10.0  # gradients over noise of such steps
_MOST_STEPS = 10**10  # of one such law: with more, rounding eats up every usual delta
_RAREST = 1e-30  # loss of such steps
_ROUNDING = 4e-16  # failure added to each such step: transforms were seen to be off by a fiftieth
_CUT = 1e-15  # of a tail, moved to infinity
_WIDEST = 1e6  # spread of a privacy loss beyond which no distribution is computed


def distribution(events: Sequence[Event]) -> Any:
    """Pessimistic privacy loss distribution of all events, or None where one has none."""
    mu = 0.0
    pure: Counter[float] = Counter()
    sampled: Counter[PoissonGaussianEvent] = Counter()
    drawn: Counter[tuple[float, float]] = Counter()
    for event in events:
        if isinstance(event, GaussianEvent):
            mu = math.hypot(mu, event.gaussian_mu)
        elif isinstance(event, PureEvent):
            pure[event.epsilon] += event.count
        elif isinstance(event, (LaplaceEvent, BoundedRangeEvent)):
            pure[event.ratio] += event.count
        elif isinstance(event, PoissonGaussianEvent):
            multiplier = event.scale / event.clip
            sampled[replace(event, label="", clip=1.0, scale=multiplier, count=1)] += event.count
        elif isinstance(event, OneDrawGaussianEvent):
            drawn[event.strength, event.rate] += event.count
        else:
            return None
    spread = _spread(mu, pure, sampled, drawn)
    if not spread < _WIDEST:
        return None
    if any(m > _STRONGEST or m * q < _RAREST or k > _MOST_STEPS for (m, q), k in drawn.items()):
        return None
    if len(drawn) > _MOST_LAWS:
        return None
    reach = max((_replace_one_loss(event, _farthest(event)) for event in sampled), default=0.0)
    step = max(min([_STEP * spread, *(e / 20 for e in pure)]), _FINEST * spread, 1e-9)
    step = max(step, reach / _MOST_POINTS)
    if drawn:
        farthest = max(_one_draw.farthest_loss(*facts) for facts in drawn)
        step = max(min(step, 2 * _FINEST * spread), farthest / _MOST_POINTS)
    parts = [_pure(e, step).self_compose(k) for e, k in pure.items()]
    parts += [_sampled(event, step).self_compose(k) for event, k in sampled.items()]
    parts += [_drawn(*facts, k, step) for facts, k in drawn.items()]
    if mu > 0 or not parts:
        parts.append(_gaussian(mu, step))
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return total


def _spread(
    mu: float,
    pure: Counter[float],
    sampled: Counter[PoissonGaussianEvent],
    drawn: Counter[tuple[float, float]],
) -> float:
    """Rough standard deviation plus mean of the total privacy loss: sets the grid only."""
    variance = mu * mu + sum(k * min(e, 1.0) * e for e, k in pure.items())
    for event, k in sampled.items():
        one = 2 * event.rate / event.scale
        variance += k * one * one
    variance += sum(k * _one_draw.loss_moments(*facts)[1] for facts, k in drawn.items())
    return math.sqrt(variance) + variance / 2


def _gaussian(mu: float, step: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    if mu == 0:
        return privacy_loss_distribution.identity(value_discretization_interval=step)
    return privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=step
    )


def _pure(epsilon: float, step: float) -> Any:
    """Binary randomised response, which dominates every epsilon-DP mechanism."""

    def hockey_stick(at: FloatArray) -> FloatArray:
        # (e^eps - e^at)/(1 + e^eps) between -eps and eps, scaled by e^-eps against overflow
        middle = -np.expm1(np.minimum(at - epsilon, 0.0)) / (1 + math.exp(-epsilon))
        return np.where(at <= -epsilon, -np.expm1(np.minimum(at, 0.0)), middle)

    edge = math.ceil(epsilon / step)
    return _connect_the_dots(hockey_stick, step, -edge, edge)


def _sampled(event: PoissonGaussianEvent, step: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    if event.relation == "add-remove":
        return privacy_loss_distribution.from_gaussian_mechanism(
            event.scale, value_discretization_interval=step, sampling_prob=event.rate
        )
    reach = math.ceil(_replace_one_loss(event, _farthest(event)) / step)
    return _connect_the_dots(lambda at: _replace_one_hockey_stick(event, at), step, -reach, reach)


def _drawn(strength: float, rate: float, count: int, step: float) -> Any:
    """``count`` steps on one drawn row each, of a loss that may be far smaller than ``step``.

    Rounding a loss to a grid of step h adds up to h^2 / 4 to its variance, which must be small
    beside the variance s^2 of what is rounded. So single steps stand on a grid of about s / 10;
    blocks of so many steps that their deviation is 16 ``step`` are composed there and rounded, by
    connect-the-dots again, to multiples of ``step``. ``_ROUNDING`` is lost in each step on top.
    """
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    deviation = math.sqrt(_one_draw.loss_moments(strength, rate)[1])
    reach = _one_draw.farthest_loss(strength, rate)
    finer = max(1, min(math.ceil(10 * step / deviation), int(step * _MOST_POINTS / reach)))
    masses, lost = _one_draw.loss_masses(strength, rate, step / finer)
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


def _farthest(event: PoissonGaussianEvent) -> float:
    """Nine standard deviations of noise; the mass of what is farther goes to infinity."""
    return 9.0 * event.scale + 1.0


def _replace_one_loss(event: PoissonGaussianEvent, at: float) -> float:
    """Log-density ratio of (1-q)N(0)+qN(1) to (1-q)N(0)+qN(-1) at a point; increasing."""
    q, variance = event.rate, event.scale**2
    with_record = math.log(q) + (2 * at - 1) / (2 * variance)
    without = math.log(q) + (-2 * at - 1) / (2 * variance)
    keep = math.log1p(-q)
    return float(np.logaddexp(keep, with_record) - np.logaddexp(keep, without))


def _replace_one_hockey_stick(event: PoissonGaussianEvent, at: FloatArray) -> FloatArray:
    """Hockey-stick divergence of the replace-one pair, in closed form.

    The log-ratio reaches ``at`` where a t^2 + (1-q)(1-e^at) t - a e^at = 0 with t = exp(x/s^2)
    and a = q exp(-1/(2 s^2)); above that point the densities are integrated. All in logarithms:
    e^at overflows where the noise is small.
    """
    scale, log_q, log_rest = event.scale, math.log(event.rate), math.log1p(-event.rate)
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


def _connect_the_dots(
    hockey_stick: Callable[[FloatArray], FloatArray], step: float, low: int, high: int
) -> Any:
    """Upper discretisation of a symmetric pair from its hockey-stick curve on a grid."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    deltas = np.minimum.accumulate(hockey_stick(np.arange(low, high + 1, dtype=np.float64) * step))
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, low, high, deltas)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)
