"""What a list of events promises, as curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpadapt.privacy.accounting.composition import compose_delta, compose_epsilon
from dpadapt.privacy.accounting.events import Event

_POINTS, _SLOW_POINTS = 120, 16  # with a closed form, and where each point is a computation
_LARGEST = 50.0  # an epsilon beyond which a test's odds change by e^50: no limit worth drawing


def epsilon_curve(
    events: Sequence[Event], claimed_delta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Epsilon at a range of deltas around the claimed one; any of these points may be stated.

    Returns
    -------
    deltas, epsilons : ndarray

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent
    >>> deltas, epsilons = epsilon_curve([GaussianEvent("mean", 1.0, 4.0)], 1e-6)
    >>> bool(np.all(np.diff(epsilons) <= 0))
    True
    """
    low = min(1e-12, claimed_delta / 100) if claimed_delta > 0 else 1e-12
    deltas = np.geomspace(low, 1e-2, _how_many(events))
    return deltas, np.array([compose_epsilon(events, float(delta)) for delta in deltas])


def detection_limit(events: Sequence[Event], false_alarms: ArrayLike) -> NDArray[np.float64]:
    r"""Largest rate of true detections of any test with the given rates of false alarms.

    The test must tell two neighbouring private samples apart from everything that was released,
    with any knowledge and any amount of computing. For each epsilon with its delta,

    .. math:: t \le \delta + e^\epsilon f, \qquad t \le 1 - e^{-\epsilon} (1 - \delta - f).

    Parameters
    ----------
    events : sequence of Event
    false_alarms : array-like
        Rates f in [0, 1].

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent
    >>> detection_limit([GaussianEvent("mean", 1.0, 4.0)], [0.05]).round(3)
    array([0.082])
    >>> detection_limit([], [0.05])
    array([0.05])
    """
    rates = np.asarray(false_alarms, dtype=np.float64)
    pure = compose_epsilon(events, 0.0)
    largest = min(_LARGEST, pure if np.isfinite(pure) else compose_epsilon(events, 1e-9))
    limit = np.ones_like(rates)
    for epsilon in np.linspace(0.0, largest, _how_many(events)):
        delta = compose_delta(events, float(epsilon))
        limit = np.minimum(limit, delta + np.exp(epsilon) * rates)
        limit = np.minimum(limit, 1 - np.exp(-epsilon) * (1 - delta - rates))
    return np.clip(limit, rates, 1.0)


def _how_many(events: Sequence[Event]) -> int:
    closed_form = all(np.isfinite(event.gaussian_mu) for event in events)
    return _POINTS if closed_form else _SLOW_POINTS
