"""The smallest noise for a target (epsilon, delta), always from the conservative side.

Each function re-checks its answer with :mod:`.composition` before it is returned:
what comes back satisfies the target, whatever rounding did on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq

from ... import _validate
from .composition import compose_delta, gaussian_delta
from .events import Event, is_known

_RELATIVE = 1e-4  # how near to the smallest noise a numerical search comes
_COARSE = 1e-3  # the same for events whose distributions take seconds
_BEYOND = 1.02  # factor by which a search for a bracket aims beyond the root
_LEAST, _MOST = 1e-30, 1e30  # where a search for the noise multiplier stops


@np.errstate(all="ignore")  # as in composition
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu (from below) such that mu-GDP implies (epsilon, delta)-DP.

    A Gaussian release of l2-sensitivity D then needs the noise D / mu.

    Examples
    --------
    >>> round(gaussian_mu(1.0, 1 / 8000), 4)
    0.3195
    """
    _validate.epsilon(epsilon)
    _validate.delta(delta)
    high = 1.0
    while gaussian_delta(epsilon, high) <= delta:
        high *= 2
    low = high
    while gaussian_delta(epsilon, low) > delta:
        low /= 2
    log_target = math.log(delta)

    def excess(mu: float) -> float:
        value = gaussian_delta(epsilon, mu)
        return (math.log(value) if value > 0 else -1e4) - log_target

    mu = float(brentq(excess, low, high, xtol=1e-300, rtol=1e-14)) if low < high else low
    while gaussian_delta(epsilon, mu) > delta:
        mu *= 1 - 1e-12
    return mu


@np.errstate(all="ignore")
def calibrate(
    events_at: Callable[[float], Sequence[Event]],
    epsilon: float,
    delta: float,
    *,
    relative: float = _RELATIVE,
) -> float:
    """Smallest noise multiplier whose events fit into (epsilon, delta).

    Parameters
    ----------
    events_at : callable
        The plan: maps a noise multiplier (> 0) to the events it would cause. More noise must
        never cost more.
    epsilon, delta : float
        The target.
    relative : float, default=1e-4
        How near to the smallest multiplier the search comes (from above). A plan of Gaussian
        releases whose noise grows in proportion to the multiplier is solved exactly.

    Returns
    -------
    float
        A multiplier that satisfies the target: re-checked.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent, PureEvent
    >>> plan = lambda noise: [GaussianEvent("mean", 1.0, noise), PureEvent("count", 0.1 / noise)]
    >>> round(calibrate(plan, 1.0, 1e-6), 3)
    4.245
    """
    _validate.epsilon(epsilon)
    _validate.delta(delta, allow_zero=True)
    at_one = list(events_at(1.0))
    total = math.hypot(*(event.gaussian_mu for event in at_one))
    if math.isfinite(total) and delta > 0 and all(map(is_known, at_one)):
        mu = gaussian_mu(epsilon, delta)
        noise = max(total / mu, _LEAST)
        reached = math.hypot(*(e.gaussian_mu for e in events_at(noise)))
        if noise == _LEAST or math.isclose(reached, mu, rel_tol=1e-9):
            return _recheck(events_at, epsilon, delta, noise)
    if delta == 0 and any(math.isinf(event.pure_epsilon) for event in at_one):
        raise ValueError(
            "delta is 0, but the plan holds noise that is never pure (Gaussian, say); "
            "give a delta above 0, 1e-6 for one."
        )
    if any(event.loss is not None and event.loss[0].slow for event in at_one):
        relative = max(relative, _COARSE)
    return _search(events_at, epsilon, delta, relative)


def _search(
    events_at: Callable[[float], Sequence[Event]], epsilon: float, delta: float, relative: float
) -> float:
    """Secant steps inside a bracket, on log noise against log delta (nearly a line)."""

    def excess(noise: float) -> float:
        spent = compose_delta(events_at(noise), epsilon)
        if delta == 0:
            return 1.0 if spent > 0 else -1.0
        gap = (math.log(spent) if spent > 0 else -800.0) - math.log(delta)
        return max(gap, 1e-300) if spent > delta else min(gap, 0.0)

    low, high = 1.0, 1.0
    at_low = at_high = excess(1.0)
    while at_high > 0:
        (low, at_low), before = (high, at_high), (low, at_low)
        high *= _stride(before, (high, at_high))
        if high > _MOST:
            raise ValueError(
                f"the plan costs more than epsilon {epsilon:g} at delta {delta:g} whatever the "
                "noise: some of its releases do not get noisier as the multiplier grows."
            )
        at_high = excess(high)
    while at_low <= 0:
        (high, at_high), before = (low, at_low), (high, at_high)
        low /= _stride(before, (low, at_low))
        if low < _LEAST:
            return high  # the plan costs nothing whatever the noise
        at_low = excess(low)
    side = 0
    while math.log(high / low) > relative:
        width = math.log(high / low)
        step = at_low / (at_low - at_high) if delta > 0 else 0.5
        step = min(max(step, 0.05), 0.95) if abs(side) < 3 else 0.5
        # a little to the far side of the root: what is evaluated becomes the farther end's heir
        step += 0.4 * relative / width * (1 if step < 0.5 else -1)
        middle = low * (high / low) ** step
        middle = middle if low < middle < high else math.sqrt(low * high)
        value = excess(middle)
        if value > 0:
            low, at_low, side = middle, value, (side + 1 if side > 0 else 1)
        else:
            high, at_high, side = middle, value, (side - 1 if side < 0 else -1)
    return _recheck(events_at, epsilon, delta, high)


def _stride(before: tuple[float, float], last: tuple[float, float]) -> float:
    """Factor, at most 2, by which to go on: a little beyond where a line has the root."""
    run = abs(math.log(last[0] / before[0]))
    rise = abs(last[1] - before[1])
    if run * abs(last[1]) >= rise * math.log(2):  # farther than that, or no slope at all
        return 2.0
    return math.exp(run * abs(last[1]) / rise) * _BEYOND


def _recheck(
    events_at: Callable[[float], Sequence[Event]], epsilon: float, delta: float, noise: float
) -> float:
    more = 1e-12
    while compose_delta(events_at(noise), epsilon) > delta:
        noise *= 1 + more
        more *= 2
    return noise
