r"""From noisy means to values with intervals that hold both the sample and the noise.

An interval is for what the measure would be on endless rows of the same people, and covers it with
about the stated probability: value +- z sqrt(noise^2 + spread^2 / people). The noise is known. The
spread is estimated from released values, on the safe side: moved by one deviation of its own noise
(and by what Wilson's interval adds) in the direction that makes the interval wider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy import stats

from dpadapt._types import FloatArray

__all__ = ["Chance", "Interval", "losses", "rankings", "reliabilities"]

Side = tuple["Interval", ...]  # of the model; or of model, baseline and their difference


@dataclass(frozen=True)
class Interval:
    """A value, and between which numbers the truth lies.

    Parameters
    ----------
    value, low, high : float

    Examples
    --------
    >>> Interval(0.2, 0.1, 0.3).times(2.0)
    Interval(value=0.4, low=0.2, high=0.6)
    """

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Interval:
        """In another unit."""
        return Interval(self.value * factor, self.low * factor, self.high * factor)

    def flipped(self, whole: float) -> Interval:
        """Of what is missing to a whole; of a difference with the whole 0."""
        return Interval(whole - self.value, whole - self.high, whole - self.low)


@dataclass(frozen=True)
class Chance:
    """What is between a noisy mean and the truth.

    Parameters
    ----------
    noise : float
        Deviation of the noise on each released number.
    people : int
        Independent rows: people, where they have several rows each.
    confidence : float

    Examples
    --------
    >>> Chance(noise=0.0, people=100, confidence=0.95).interval(0.5, 0.0, 0.25)
    Interval(value=0.5, low=0.4020018007729973, high=0.5979981992270027)
    """

    noise: float
    people: int
    confidence: float

    @property
    def z(self) -> float:
        """Quantile of the normal law."""
        return NormalDist().inv_cdf((1 + self.confidence) / 2)

    def interval(
        self, value: float, noise: float, variance: float, ends: tuple[float, float] = (0.0, 1.0)
    ) -> Interval:
        """Interval around a value, within public ends."""
        half = self.z * math.sqrt(noise**2 + variance / self.people)
        cut = np.clip([value, value - half, value + half], *ends)
        return Interval(*map(float, cut))

    @property
    def doubt(self) -> float:
        """How far a share may be from its release, as far as its spread goes."""
        return self.noise + self.z**2 / (2 * self.people)


def losses(found: FloatArray, models: int, whole: bool, chance: Chance) -> Side:
    """Mean losses between 0 and 1, and the difference of the first and the second.

    Parameters
    ----------
    found : ndarray
        Released, as :class:`~dpadapt.evaluation.queries.MeanLosses` orders it.
    models : {1, 2}
    whole : bool
    chance : Chance

    Examples
    --------
    >>> sides = losses(np.array([0.2, 0.3, 0.1]), 2, True, Chance(0.001, 10_000, 0.95))
    >>> [round(side.low, 3) for side in sides]
    [0.192, 0.291, -0.107]
    """
    means = found[:models]
    less = np.zeros(models) if whole else np.maximum(found[-models:] - chance.noise, 0.0)
    sides = []
    for mean, lost in zip(means, less, strict=True):
        towards = _towards_half(float(mean), chance.doubt)
        variance = max(0.0, towards * (1 - towards) - float(lost))
        sides.append(chance.interval(float(mean), chance.noise, variance))
    if models == 1:
        return tuple(sides)
    noise, apart = math.sqrt(2) * chance.noise, float(means[0] - means[1])
    square = min(1.0, max(0.0, float(found[2])) + chance.doubt)
    variance = max(0.0, square - max(0.0, abs(apart) - noise) ** 2)
    return (*sides, chance.interval(apart, noise, variance, (-1.0, 1.0)))


def rankings(found: FloatArray, models: int, class_weight: float, chance: Chance) -> Side:
    """Areas under the curve, and the difference of the first and the second.

    An area is the mean over pairs of a number h between 0 and 1: is the pair in the right order?
    The variance of such a mean of n1 times n0 pairs is at most var(h) / min(n1, n0), whatever the
    scores (Birnbaum and Klose 1957), and var(h) <= A (1 - A) for its area A. A difference is the
    mean of g - h, and var(g - h) = var(g) + var(h) - 2 cov(g, h). Since g h >= 0 and
    g h >= g + h - 1, the covariance is at least -min(A B, (1 - A) (1 - B)), also for models that
    rank against each other.

    Parameters
    ----------
    found : ndarray
        Released, as :class:`~dpadapt.evaluation.queries.Ranking` orders it.
    models : {1, 2}
    class_weight : float
    chance : Chance

    Examples
    --------
    >>> areas = rankings(np.array([0.0625, 0.433]), 1, 0.866, Chance(1e-4, 10_000, 0.95))
    >>> round(areas[0].value, 3), round(areas[0].low, 2)
    (0.75, 0.74)
    """
    share, doubt = float(found[-1]) / class_weight, chance.noise / class_weight
    if not 2 * doubt < share < 1 - 2 * doubt:  # one class is lost in the noise, and with it pairs
        nothing = Interval(0.5, 0.0, 1.0)
        return (nothing,) if models == 1 else (nothing, nothing, Interval(0.0, -1.0, 1.0))
    pairs = share * (1 - share)
    rare = min(share, 1 - share) - doubt  # the wider of the two
    least, slope = rare * (1 - rare), (1 - 2 * rare) / (rare * (1 - rare)) * doubt
    sides, variance, right, wrong = [], 0.0, 1.0, 1.0
    for each in found[:models]:
        area = 0.5 + float(each) / pairs
        noise = math.hypot(chance.noise / least, (area - 0.5) * slope)
        doubt = noise + chance.z**2 / (2 * rare * chance.people)
        towards = _towards_half(area, doubt)
        sides.append(chance.interval(area, noise, towards * (1 - towards) / rare))
        variance += towards * (1 - towards)
        right, wrong = right * _most(area, doubt), wrong * _most(1 - area, doubt)
    if models == 1:
        return tuple(sides)
    variance = (variance + 2 * min(right, wrong)) / rare
    apart = float(found[0] - found[1]) / pairs
    noise = math.hypot(math.sqrt(2) * chance.noise / least, apart * slope)
    return (*sides, chance.interval(apart, noise, variance, (-1.0, 1.0)))


def reliabilities(
    found: FloatArray, count_weight: float, chance: Chance
) -> tuple[Side, tuple[tuple[float, ...], ...]]:
    """Expected calibration errors and their difference; and the table of the first model.

    The error is the sum over bins of abs(G), G the mean of p - o over rows of the bin (0 for
    others). Noise and sampling move the G by deviations s times normal numbers u, so that the error
    moves by at most sum s abs(u) <= root of (sum s^2) (sum u^2), whose second part has a
    chi-squared law. The value is without the part that noise adds on average:
    sqrt(max(0, G^2 - variance)).

    Parameters
    ----------
    found : ndarray of shape (models, 2, bins)
        Released, as :class:`~dpadapt.evaluation.queries.Reliability` orders it.
    count_weight : float
    chance : Chance

    Examples
    --------
    >>> counts, gaps = [0.25, 0.25], [0.05, -0.05]
    >>> sides, table = reliabilities(np.array([[counts, gaps]]), 0.5, Chance(0.0, 10**6, 0.95))
    >>> round(sides[0].value, 3), [round(each, 2) for each in table[1]]
    (0.1, [0.5, 1.0, 0.5, -0.1])
    """
    bins = found.shape[2]
    edges = np.linspace(0.0, 1.0, bins + 1)
    far = np.maximum(edges[1:], 1 - edges[:-1]) ** 2  # of p - o in a bin, squared
    sure = 1 - (1 - chance.confidence) / len(found)  # of each, so that the difference holds too
    reach = float(stats.chi2.ppf(sure, bins))
    sides: list[Interval] = []
    table: tuple[tuple[float, ...], ...] = ()
    for counts, gaps in found:
        shares = np.clip(counts / count_weight, 0.0, 1.0)
        spread = np.minimum(shares + chance.doubt / count_weight, 1.0) * far / chance.people
        variances = chance.noise**2 + spread
        value = float(np.sqrt(np.maximum(gaps**2 - variances, 0.0)).sum())
        seen, half = float(np.abs(gaps).sum()), math.sqrt(reach * float(variances.sum()))
        low, high = min(max(seen - half, 0.0), value), min(max(seen + half, value), 1.0)
        sides.append(Interval(min(value, 1.0), min(low, 1.0), high))
        table = table or _table(edges, shares, gaps, count_weight, chance)
    if len(sides) == 1:
        return tuple(sides), table
    apart = sides[0].value - sides[1].value
    ends = (sides[0].low - sides[1].high, sides[0].high - sides[1].low)
    return (*sides, Interval(apart, *ends)), table


def _table(
    edges: FloatArray, shares: FloatArray, gaps: FloatArray, weight: float, chance: Chance
) -> tuple[tuple[float, ...], ...]:
    """Bins as (from, to, share of rows, mean of p - o); NaN where a bin is lost in the noise."""
    seen = shares > 2 * chance.noise / weight
    means = np.where(seen, np.clip(gaps / np.where(seen, shares, 1.0), -1.0, 1.0), np.nan)
    rows: Any = zip(edges[:-1], edges[1:], shares, means, strict=True)
    return tuple(tuple(map(float, row)) for row in rows)


def _towards_half(share: float, by: float) -> float:
    share = min(max(share, 0.0), 1.0)
    return min(0.5, share + by) if share < 0.5 else max(0.5, share - by)


def _most(share: float, by: float) -> float:
    return min(1.0, max(0.0, share) + by)
