"""Renyi divergences of events, and with them zero-concentrated DP: rho is order * rho here."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from dpadapt._types import FloatArray

if TYPE_CHECKING:
    from .events import Event


def renyi_orders() -> FloatArray:
    """Grid of orders on which Renyi bounds are optimised: 1 + [1e-3, 1e6], log-spaced.

    Examples
    --------
    >>> renyi_orders()[[0, -1]]
    array([1.001000e+00, 1.000001e+06])
    """
    return np.asarray(1 + np.logspace(-3, 6, 3601))


def renyi_sum(events: Iterable[Event], orders: FloatArray) -> FloatArray:
    """Renyi divergence of all events together.

    Examples
    --------
    >>> renyi_sum([], np.array([2.0]))
    array([0.])
    """
    total: FloatArray = np.zeros(orders.shape)
    for event in events:
        total = total + event.renyi(orders)
    return total


def renyi_epsilon(events: Iterable[Event], delta: float) -> float:
    """Epsilon of all events by their Renyi sum (Canonne, Kamath, Steinke 2020).

    Examples
    --------
    >>> renyi_epsilon([], 1e-6)
    0.0
    """
    orders = renyi_orders()
    room = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(0.0, float(np.min(renyi_sum(events, orders) + room)))


def renyi_delta(events: Iterable[Event], epsilon: float) -> float:
    """Delta of all events by their Renyi sum; the inverse of :func:`renyi_epsilon`.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import PureEvent
    >>> renyi_delta([PureEvent("answer", 1.0)], 1.1) < 1e-6
    True
    """
    orders = renyi_orders()
    over = renyi_sum(events, orders) - epsilon
    log_delta = (orders - 1) * (over + np.log1p(-1 / orders)) - np.log(orders)
    return math.exp(min(0.0, float(np.min(log_delta))))


def renyi_pure(epsilon: float, orders: FloatArray) -> FloatArray:
    """Renyi divergence of binary randomised response, the worst epsilon-DP mechanism.

    D_a = log( sinh(a e) - sinh((a-1) e) over sinh(e) ) / (a-1), always at most a e^2 / 2 and e;
    the closed form loses digits for small a * e, where the first bound is as good.

    Examples
    --------
    >>> renyi_pure(0.5, np.array([1e6])).round(3)
    array([0.5])
    """
    bound = np.minimum(orders * (square(epsilon) / 2), epsilon)
    if epsilon < 1e-3:
        return bound
    a = orders
    # log of (e^{ae} p' + e^{-(a-1)e}...) written with the two atoms p = e^eps/(1+e^eps), 1-p
    log_p, log_q = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    first = a * log_p + (1 - a) * log_q
    second = a * log_q + (1 - a) * log_p
    return np.minimum(bound, np.logaddexp(first, second) / (a - 1))


def square(value: float) -> float:
    """Value * value: unlike ``**``, inf rather than an error where it overflows."""
    return value * value
