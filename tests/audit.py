"""A small audit: a lower bound on epsilon from samples of a mechanism on two neighbours.

Any event S that is more likely under one neighbour than e^eps times the other (plus delta) refutes
(epsilon, delta)-DP. Outputs are reduced to one number each by the caller (a likelihood ratio, a
projection on the difference of the two inputs); events are half-lines of that number. The
threshold is chosen on a fourth of the samples, the bound is computed on the rest, with exact
(Clopper-Pearson) limits, so that it passes the true epsilon with probability at most
1 - confidence.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

__all__ = ["epsilon_lower_bound"]


def epsilon_lower_bound(
    samples_a: ArrayLike, samples_b: ArrayLike, delta: float, confidence: float = 1 - 1e-6
) -> float:
    """Epsilon that the mechanism has at least, at ``delta``, with this confidence.

    Parameters
    ----------
    samples_a, samples_b : array of shape (n,)
        One number for each independent run on the one and on the other neighbour; discrete
        outcomes may be given as numbers. Larger should speak for the first (or for the second:
        both half-lines are tried, in both directions).
    delta : float
    confidence : float
    """
    a, b = (np.asarray(s, dtype=np.float64).ravel() for s in (samples_a, samples_b))
    events = [(sign, swap) for sign in (1, -1) for swap in (False, True)]
    best, chosen = -math.inf, None
    for sign, swap in events:
        first, second = (sign * b, sign * a) if swap else (sign * a, sign * b)
        threshold, guess = _best_threshold(first[::4], second[::4], delta)
        if guess > best:
            best, chosen = guess, (_rest(first), _rest(second), threshold)
    if chosen is None:
        return 0.0
    first, second, threshold = chosen
    miss = (1 - confidence) / 2  # one limit each
    low = _lower_limit(int((first >= threshold).sum()), first.size, miss)
    high = 1 - _lower_limit(int((second < threshold).sum()), second.size, miss)
    return max(0.0, math.log((low - delta) / high)) if low > delta and high > 0 else 0.0


def _rest(samples: np.ndarray) -> np.ndarray:
    return samples[np.arange(samples.size) % 4 != 0]


def _best_threshold(first: np.ndarray, second: np.ndarray, delta: float) -> tuple[float, float]:
    """Threshold t with the largest pessimistic log((P(first >= t) - delta) / P(second >= t))."""
    values = np.unique(np.concatenate([first, second]))
    values = values[:: max(1, len(values) // 2000)]
    n, m = len(first), len(second)
    p = 1 - np.searchsorted(np.sort(first), values) / n
    q = 1 - np.searchsorted(np.sort(second), values) / m
    # normal limits stand in for the exact ones of the final bound, which has three times the runs
    p = p - 2.5 * np.sqrt(p * (1 - p) / n) - 4 / n
    q = q + 2.5 * np.sqrt(q * (1 - q) / m) + 4 / m
    with np.errstate(divide="ignore", invalid="ignore"):
        guess = np.where(p > delta, np.log((p - delta) / q), -np.inf)
    best = int(np.argmax(guess))
    return float(values[best]), float(guess[best])


def _lower_limit(count: int, size: int, miss: float) -> float:
    """Clopper-Pearson: the probability is at least this, except with probability ``miss``."""
    return 0.0 if count == 0 else float(stats.beta.ppf(miss, count, size - count + 1))
