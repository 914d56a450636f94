r"""A lower bound on epsilon from many runs with one canary.

One run with many canaries needs room for them: many columns, many rows. Where there is little, or
where what is released is no sum over rows, one person who is one of two alternatives is told apart
run after run. Each run throws a coin, fits on the sample or on its neighbour, and freezes what was
released; a replay on the other one (:mod:`.replay`) gives the un-noised values that would have led
to the same releases. So the attacker knows the likelihood ratio of everything that was released,
step by step, and guesses by its sign: no test of one bit is better (Neyman and Pearson).

The runs are independent, so exact binomial limits (Clopper, Pearson) hold for the rates of both
errors, a and b. A mu-Gaussian-DP fit has :math:`\Phi^{-1}(1 - a) - \Phi^{-1}(b) \le \mu`, an
(epsilon, delta)-DP one :math:`1 - b \le e^\epsilon a + \delta`, and with a and b exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy.recording.recording import recording
from dpadapt.privacy.recording.tape import Recorded

from .one_run import Found, all_gaussian, epsilon_of_mu


def many_runs_audit(
    fit: Callable[[Any], Any],
    sample: Any,
    neighbour: Any,
    *,
    runs: int = 400,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Found:
    """Tell two neighbours apart by everything that is released, many times.

    Parameters
    ----------
    fit : callable
        From a sample to a fitted model with a ``guarantee_``; as in
        :func:`~dpadapt.audit.replay`.
    sample, neighbour : object
        Made-up or public; the farther apart they are in what is released, the more is found.
    runs : int, default=400
        Each is two fits.
    confidence : float, default=0.95
    seed : int, default=0
    progress : callable, optional
        Called with (runs done, runs in all).

    Returns
    -------
    Found

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor, Private
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> one, two = X.copy(), X.copy()
    >>> one[0], two[0] = [9.0, 9.0], [9.0, -9.0]
    >>> def fit(rows):
    ...     model = DiscrepancyRegressor(epsilon=4.0, delta=1e-6)
    ...     return model.fit(X, X[:, 0], private=Private(rows))
    >>> found = many_runs_audit(fit, one, two, runs=40)
    >>> found.trials, found.refuted
    (40, False)
    """
    validate.count("runs", runs)
    miss = 1 - validate.fraction("confidence", confidence)
    rng = np.random.default_rng([validate.count("seed", seed, least=0), 2])
    coins = rng.random(runs) < 0.5
    said = np.zeros(runs, dtype=bool)
    guarantee = None
    for number, first in enumerate(coins):
        pair = (sample, neighbour) if first else (neighbour, sample)
        ratio, model = _log_ratio(fit, *pair, int(rng.integers(2**31)))
        tie = bool(rng.random() < 0.5)
        own = tie if ratio == 0 else ratio > 0
        said[number] = own == first
        guarantee = model.guarantee_
        if progress is not None:
            progress(number + 1, runs)
    assert guarantee is not None
    alarms = _upper(int((said & ~coins).sum()), int((~coins).sum()), miss / 2)
    misses = _upper(int((~said & coins).sum()), int(coins.sum()), miss / 2)
    delta, right = guarantee.delta, int((said == coins).sum())
    if all_gaussian(guarantee):
        mu = max(0.0, float(ndtri(1 - alarms) - ndtri(misses))) if max(alarms, misses) < 1 else 0.0
        epsilon, bound = epsilon_of_mu(mu, delta), "Gaussian DP"
    else:
        epsilon, bound = _epsilon(alarms, misses, delta), "(epsilon, delta)"
    method = f"{runs} runs with one canary, {bound} bound"
    return Found(epsilon, delta, confidence, guarantee.epsilon, method, right, runs, runs)


def _log_ratio(fit: Callable[[Any], Any], own: Any, other: Any, seed: int) -> tuple[float, Any]:
    """Logarithm of how much likelier the releases are under the sample that they came from."""
    with recording(seed=seed) as heard:
        model = fit(own)
    with recording(heard, seed=seed) as again:
        fit(other)
    return _likelier(heard.values, again.values), model


def _likelier(own: Sequence[Recorded], other: Sequence[Recorded]) -> float:
    total = 0.0
    for one, two in zip(own, other, strict=False):
        if one.mechanism == "Exponential":
            chosen = int(one.released)
            total += _chance(one, chosen) - _chance(two, chosen)
        elif one.mechanism == "Laplace" and one.noisy is not None:
            total += (_l1(one.noisy, two.value) - _l1(one.noisy, one.value)) / one.scale
        elif one.noisy is not None:
            squares = [float(np.sum((one.noisy - each.value) ** 2)) for each in (two, one)]
            total += (squares[0] - squares[1]) / (2 * one.scale**2)
    return total


def _l1(one: FloatArray, two: FloatArray) -> float:
    return float(np.abs(one - two).sum())


def _chance(one: Recorded, chosen: int) -> float:
    """Logarithm of the probability of a choice by the exponential mechanism."""
    scores = -one.value.ravel() / one.scale
    return float(scores[chosen] - np.logaddexp.reduce(scores))


def _upper(count: int, size: int, miss: float) -> float:
    """Clopper-Pearson: the probability is at most this, except with probability ``miss``."""
    return 1.0 if count >= size else float(beta.ppf(1 - miss, count + 1, size - count))


def _epsilon(alarms: float, misses: float, delta: float) -> float:
    """Least epsilon at which both error rates are possible."""
    ratios = [(1 - misses - delta) / alarms, (1 - alarms - delta) / misses]
    return max(0.0, math.log(max(*ratios, 1e-300)))
