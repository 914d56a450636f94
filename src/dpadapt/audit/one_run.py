r"""Lower bounds on epsilon: from one run with many canaries, and from many runs with one.

Each of m *canaries* is a person who is one of two alternatives, by a fair coin (under add-remove:
there or not). One fit runs; the attacker sees everything that it released and guesses k of the m
coins, those it is surest of. Private training keeps guesses near chance, so many right ones refute
a small epsilon. Both bounds below are p-values: the largest epsilon that is refuted at 5 % is a
lower bound at 95 % confidence.

**(epsilon, delta)** (Steinke, Nasr, Jagielski 2023, Theorem 5.2). With W binomial of k guesses that
are right with probability :math:`p = e^\epsilon / (1 + e^\epsilon)`, at least v are right with
probability at most

.. math:: P(W \ge v) + 2 m \delta \max_{1 \le i \le v} \frac{P(v > W \ge v - i)}{i} .

**f-DP** (Mahloujifar, Melis, Chaudhuri 2024). For a trade-off function f and
:math:`\bar f = 1 - f`, let N be the number of right guesses among exactly k, and

.. math:: r_j = E[N; N \ge j] / m, \qquad h_j = E[k - N; N \ge j] / m .

Turn over one coin: where guess i was right and :math:`N \ge j` it is now wrong and
:math:`N \ge j - 1`, with the same output. f-DP for each i and each setting of the other coins, and
Jensen's inequality for the concave :math:`\bar f`, give :math:`r_j \le \bar f(h_{j-1})`. So if
:math:`P(N \ge v) \ge \beta`, then :math:`r_v \ge \beta v / m`, and going down from v each
:math:`h_{j-1}` is at least :math:`\bar f^{-1}(r_j)`, which forces probability mass on N = j - 1:

.. math:: h_{j} = \max(h_{j+1}, \bar f^{-1}(r_{j+1})), \qquad
          r_j = r_{j+1} + \frac{j}{k - j} (h_j - h_{j+1}) .

But :math:`r_0 + h_0 = k / m`. A start :math:`\beta` that leads to more is impossible. For Gaussian
noise f is that of mu-GDP, and the bound on mu loses little; it is told as the epsilon of that mu.

**White box.** The score of a canary is what the releases say along its own contribution. With
:math:`\Delta_i` the difference of the two alternatives' contributions to all releases, each over
its noise, and z the releases less what the average canaries would give, the best linear guess of
all coins is :math:`(I + A/4)^{-1} \Delta z` with :math:`A = \Delta \Delta^T`. It is at its best
where contributions are as long as the sensitivity and nearly orthogonal.

**Many runs.** One run with many canaries needs room for them: many columns, many rows. Where there
is little, or where what is released is no sum over rows, one person who is one of two alternatives
is told apart run after run. Each run throws a coin, fits on the sample or on its neighbour, and
freezes what was released; a replay on the other one (:mod:`.replaying`) gives the un-noised values
that would have led to the same releases. So the attacker knows the likelihood ratio of everything
that was released, step by step, and guesses by its sign: no test of one bit is better (Neyman and
Pearson).

The runs are independent, so exact binomial limits (Clopper, Pearson) hold for the rates of both
errors, a and b. A mu-Gaussian-DP fit has :math:`\Phi^{-1}(1 - a) - \Phi^{-1}(b) \le \mu`, an
(epsilon, delta)-DP one :math:`1 - b \le e^\epsilon a + \delta`, and with a and b exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy import Guarantee
from dpadapt.privacy.accounting.composition import gaussian_delta
from dpadapt.privacy.mechanisms.gaussian import svec
from dpadapt.privacy.recording.recording import recording
from dpadapt.privacy.recording.tape import Recorded

_MOST_EPSILON, _MOST_MU = 60.0, 30.0


@dataclass(frozen=True)
class Found:
    """A lower bound on epsilon, beside the claim.

    Parameters
    ----------
    epsilon : float
        Epsilon is at least this, with the confidence.
    delta, confidence : float
    claimed : float
        The guarantee's epsilon at this delta.
    method : str
        In words: which audit.
    right, guesses : int
    trials : int
        Canaries of one run, or runs with one canary.

    Examples
    --------
    >>> Found(0.41, 1e-6, 0.95, 1.0, "one run", 620, 1000, 2000)
    Found(epsilon >= 0.41 with 95 % confidence, claimed 1: one run, 620 of 1000 guesses right)
    """

    epsilon: float
    delta: float
    confidence: float
    claimed: float
    method: str
    right: int
    guesses: int
    trials: int

    @property
    def refuted(self) -> bool:
        """Whether the claim is false, up to the confidence."""
        return self.epsilon > self.claimed

    def __repr__(self) -> str:
        return (
            f"Found(epsilon >= {self.epsilon:.3g} with {self.confidence:.0%} confidence, claimed "
            f"{self.claimed:.4g}: {self.method}, {self.right} of {self.guesses} guesses right)"
        ).replace("%", " %")


@dataclass(frozen=True, eq=False)
class Canaries:
    """People who are one of two alternatives, and people who are always there.

    Parameters
    ----------
    X, y : array of shape (m, d) and (m,)
        The first alternative of each; y may be None.
    other_X, other_y : arrays, optional
        The second one; None: the canary is not there (add-remove).
    fixed_X, fixed_y : arrays, optional
        Rows of all others.

    Examples
    --------
    >>> Canaries(np.eye(3), None, -np.eye(3)).sample(np.array([True, False, True]))[0]
    array([[ 1.,  0.,  0.],
           [-0., -1., -0.],
           [ 0.,  0.,  1.]])
    """

    X: Any
    y: Any = None
    other_X: Any = None
    other_y: Any = None
    fixed_X: Any = None
    fixed_y: Any = None

    def sample(self, coins: Any) -> tuple[Any, Any]:
        """Rows and labels for a setting of the coins."""
        if self.other_X is None:
            X, y = self.X[coins], None if self.y is None else self.y[coins]
        else:
            X = np.where(coins[:, None], self.X, self.other_X)
            y = None if self.y is None else np.where(coins, self.y, self.other_y)
        if self.fixed_X is not None:
            X = np.concatenate([X, self.fixed_X])
            y = None if y is None else np.concatenate([y, self.fixed_y])
        return X, y


def one_run_audit(
    fit: Callable[[Any], Any],
    canaries: Canaries,
    *,
    share: float = 0.15,
    confidence: float = 0.95,
    seed: int = 0,
) -> Found:
    """Audit a fit in one run, with canaries seen in every release that is a sum over rows.

    Parameters
    ----------
    fit : callable
        From a sample (X, y) to a fitted model with a ``guarantee_``; as in
        :func:`~dpadapt.audit.replaying`.
    canaries : Canaries
    share : float, default=0.15
        Of the canaries that are guessed; the others are left out. Fixed before the run.
    confidence : float, default=0.95
    seed : int, default=0
        Of coins and noise.

    Returns
    -------
    Found
        By the f-DP bound where all noise is Gaussian, else by the (epsilon, delta) one.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor, Private
    >>> X = np.random.default_rng(0).normal(size=(100, 12))
    >>> pairs = np.triu_indices(12, 1)
    >>> ones = np.eye(12)[pairs[0]] * 9
    >>> twos = np.eye(12)[pairs[1]] * 9
    >>> def fit(sample):
    ...     model = DiscrepancyRegressor(epsilon=1.0, delta=1e-6)
    ...     return model.fit(X, X[:, 0], private=Private(sample[0]))
    >>> found = one_run_audit(fit, Canaries(ones + twos, None, ones - twos))
    >>> found.trials, found.refuted
    (66, False)
    """
    rng = np.random.default_rng([validate.count("seed", seed, least=0), 1])
    m = len(canaries.X)
    coins = rng.random(m) < 0.5
    with recording(seed=int(rng.integers(2**31))) as heard:
        model = fit(canaries.sample(coins))
    scores = _scores(heard.values, canaries, coins)
    k = max(1, int(validate.fraction("share", share) * m))
    sure = np.argsort(-np.abs(scores), kind="stable")[:k]
    right = int(np.count_nonzero((scores[sure] > 0) == coins[sure]))
    return _audit_result(model.guarantee_, m, k, right, confidence)


def epsilon_from_guesses(
    canaries: int, guesses: int, right: int, delta: float, *, confidence: float = 0.95
) -> float:
    """Epsilon that is refuted by so many right guesses (Steinke et al.); 0 if none is.

    Examples
    --------
    >>> round(epsilon_from_guesses(1000, 100, 90, 1e-5), 2)
    1.63
    """
    _check_counts(canaries, guesses, right)
    miss = 1 - validate.fraction("confidence", confidence)
    validate.delta(delta, allow_zero=True)

    def refuted(epsilon: float) -> bool:
        chance = 1 / (1 + math.exp(-epsilon))
        below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))
        slack = float((below / np.arange(1, right + 1)).max()) if right else 1.0
        tail = float(binom.sf(right - 1, guesses, chance))
        return tail + 2 * canaries * delta * slack <= miss

    return _largest(refuted, _MOST_EPSILON)


def mu_from_guesses(canaries: int, guesses: int, right: int, *, confidence: float = 0.95) -> float:
    """The mu of Gaussian DP that is refuted by so many right guesses (Mahloujifar et al.).

    Examples
    --------
    >>> round(mu_from_guesses(1000, 500, 400), 2)
    0.52
    """
    _check_counts(canaries, guesses, right)
    miss = 1 - validate.fraction("confidence", confidence)

    def refuted(mu: float) -> bool:
        if right == 0:
            return False
        r, h = miss * right / canaries, miss * (guesses - right) / canaries
        for j in range(right - 1, -1, -1):
            new = max(h, float(ndtr(ndtri(r) - mu)))
            r, h = r + j / (guesses - j) * (new - h), new
            if r + h > guesses / canaries:
                return True
        return False

    return _largest(refuted, _MOST_MU)


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Epsilon of a mu-Gaussian-DP mechanism at a delta.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.calibration import gaussian_mu
    >>> round(epsilon_of_mu(gaussian_mu(1.0, 1e-6), 1e-6), 6)
    1.0
    """
    validate.delta(delta)
    return _largest(lambda epsilon: gaussian_delta(epsilon, mu) > delta, 1e4)


def _largest(holds: Callable[[float], bool], most: float) -> float:
    """Largest number up to which a statement holds; 0 if it never does."""
    low, high = 0.0, most
    if not holds(low):
        return 0.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _check_counts(canaries: int, guesses: int, right: int) -> None:
    for name, count in (("canaries", canaries), ("guesses", guesses), ("right", right)):
        validate.count(name, count, least=0)
    if not right <= guesses <= canaries:
        raise ValueError("right, guesses, canaries: each at most the next.")


def all_gaussian(guarantee: Guarantee) -> bool:
    """Whether all noise of a guarantee is Gaussian, so that it is one of Gaussian DP."""
    return bool(guarantee.events) and all(event.kind == "gaussian" for event in guarantee.events)


def _audit_result(guarantee: Guarantee, m: int, k: int, right: int, confidence: float) -> Found:
    delta = guarantee.delta
    if all_gaussian(guarantee):
        mu = mu_from_guesses(m, k, right, confidence=confidence)
        epsilon, method = epsilon_of_mu(mu, delta), f"one run, {m} canaries, f-DP bound"
    else:
        epsilon = epsilon_from_guesses(m, k, right, delta, confidence=confidence)
        method = f"one run, {m} canaries, (epsilon, delta) bound"
    return Found(epsilon, delta, confidence, guarantee.epsilon, method, right, k, m)


def _scores(values: list[Recorded], canaries: Canaries, coins: Any) -> FloatArray:
    """Best linear guess of every coin, from all releases that are sums over rows."""
    m = len(coins)
    signs = np.where(coins, 1.0, -1.0)
    overlap, along = np.zeros((m, m)), np.zeros(m)
    for one in values:
        if one.query is None or one.norm != "l2" or one.noisy is None:
            continue
        change = _contributions(one, canaries.X, canaries.y)
        if canaries.other_X is not None:
            change = change - _contributions(one, canaries.other_X, canaries.other_y)
        # what the average canaries would give: the value less the coins' part of it
        usual = one.value.ravel() - (signs / 2) @ change
        overlap += change @ change.T / one.scale**2
        along += change @ (one.noisy.ravel() - usual) / one.scale**2
    return np.asarray(np.linalg.solve(np.eye(m) + overlap / 4, along))


def _contributions(one: Recorded, X: Any, y: Any) -> FloatArray:
    """What each row would add to a recorded sum, in its coordinates."""
    clean, labels = one.query.cleaning(X, y)
    out = np.empty((len(clean), one.value.size))
    for i in range(len(clean)):
        own = None if labels is None else labels[i : i + 1]
        value = np.asarray(one.query.block(clean[i : i + 1], own), dtype=np.float64)
        out[i] = (svec(value) if value.size > one.value.size else value.ravel()) / one.rows
    return out


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
        :func:`~dpadapt.audit.replaying`.
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
