"""From noisy means to values with intervals that hold both the sample and the noise.

An interval is for what the measure would be on endless rows of the same people, and covers it with
about the stated probability: value +- z sqrt(noise^2 + spread^2 / people). Values are of rows with
a label, whose part of all rows is known up to noise: released sums are divided by it, and what that
adds to the noise of a value is in proportion to what was divided (``blur``). The noise is known.
The spread is estimated from released values, on the safe side: moved by one deviation of its own
noise (and by what Wilson's interval adds) in the direction that makes the interval wider.

**By class.** A recall is a ratio r of two released numbers, S / N. Its interval holds all r for
which S - r N is no farther from 0 than its noise and its sample allow at that r (Fieller 1940 for
the noise, Wilson 1927 for the sample): a quadratic inequality, which is right also where a class is
small. Means over classes, and differences that were not released as such, add the squares of the
two sides of intervals (Zou and Donner 2008). A class that is lost in the noise has the whole range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from dpadapt._types import FloatArray

from .class_queries import ByClass
from .queries import CENTRE, MeanLosses

PUBLIC_ONLY, BASELINE = "public only", "baseline"  # what an evaluation may compare with
SECOND_MODEL = {PUBLIC_ONLY: "the public model", BASELINE: "the baseline"}  # in a sentence

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

    def says_nothing(self, largest: float | None) -> bool:
        """Whether it holds all that a measure can be: the value is the middle, and not measured.

        Parameters
        ----------
        largest : float or None
            How large the measure can be; None if that is not known.

        Examples
        --------
        >>> Interval(0.5, 0.0, 1.0).says_nothing(1.0), Interval(0.0, -1.0, 1.0).says_nothing(1.0)
        (True, True)
        >>> Interval(0.4, 0.0, 1.0).says_nothing(1.0), Interval(0.5, 0.0, 1.0).says_nothing(None)
        (False, False)
        """
        if largest is None or (self.low, self.high) not in ((0.0, largest), (-largest, largest)):
            return False
        return self.value == (self.low + self.high) / 2

    def around(self, value: float) -> Interval:
        """The same interval, or a wider one, around another value."""
        return Interval(value, min(self.low, value), max(self.high, value))

    def cut(self, low: float, high: float) -> Interval:
        """What lies between two ends; as wide as it was, from the nearer end, if nothing does."""
        value = min(max(self.value, low), high)
        inside = self if self.low < high and self.high > low else self.moved(value - self.value)
        return Interval(value, max(inside.low, low), min(inside.high, high))

    def moved(self, by: float) -> Interval:
        """The same around a value that is larger."""
        return Interval(self.value + by, self.low + by, self.high + by)

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
    people : float
        Independent rows with a label: people, where they have several rows each.
    confidence : float
    part : float, default=1
        Of the rows, those with a label, as released.
    blur : float, default=0
        Deviation of the noise in that part, over it.

    Examples
    --------
    >>> Chance(noise=0.0, people=100, confidence=0.95).interval(0.5, 0.0, 0.25)
    Interval(value=0.5, low=0.4020018007729973, high=0.5979981992270027)
    """

    noise: float
    people: float
    confidence: float
    part: float = 1.0
    blur: float = 0.0

    @property
    def z(self) -> float:
        """Quantile of the normal law."""
        return NormalDist().inv_cdf((1 + self.confidence) / 2)

    def interval(self, value: float, noise: float, variance: float) -> Interval:
        """Interval around a value."""
        half = self.z * math.sqrt(noise**2 + variance / self.people)
        return Interval(value, value - half, value + half)

    @property
    def doubt(self) -> float:
        """How far a share may be from its release, as far as its spread goes."""
        return self.noise + self.z**2 / (2 * self.people)


class Raw(NamedTuple):
    """Intervals as noise left them, between 0 and 1 but for noise.

    Parameters
    ----------
    sides : tuple of Interval
        Of the model; or of model, baseline and their difference.
    most : float, default=1
        How large a difference is shown. Its interval is not cut by it: public rows may say that two
        models are nearer to each other than they are on private ones.

    Examples
    --------
    >>> wild = Interval(0.7, 0.2, 1.2), Interval(1.3, 0.8, 1.8), Interval(-0.6, -1.3, 0.1)
    >>> [round(each.value, 2) for each in Raw(wild).settled()]
    [0.4, 1.0, -0.6]
    >>> [round(each.value, 2) for each in Raw(wild, most=0.1).settled()]
    [0.9, 1.0, -0.1]
    >>> Raw(wild, most=0.1).settled()[2]
    Interval(value=-0.1, low=-1.0, high=0.1)
    """

    sides: Side
    most: float = 1.0

    def settled(self) -> Side:
        """Cut to what can be, and agreeing: the difference is that of the columns."""
        cut = [each.cut(0.0, 1.0) for each in self.sides]
        if len(cut) == 1:
            return tuple(cut)
        apart = self.sides[2].cut(-1.0, 1.0)
        apart = apart.around(min(max(apart.value, -self.most), self.most))
        half = apart.value / 2
        middle = (self.sides[0].value + self.sides[1].value) / 2
        middle = min(max(middle, abs(half)), 1 - abs(half))
        return (cut[0].around(middle + half), cut[1].around(middle - half), apart)


def at_most(
    square: float,
    noise: float,
    known: float,
    people: float,
    power: float = 1.0,
    nearer: float | None = None,
) -> float:
    """How large a difference may be, by how far two models were seen to be apart, and by more.

    Parameters
    ----------
    square : float
        Mean square of differences, as released.
    noise : float
        On it; three deviations of noise and sample are allowed for.
    known : float
        What public facts say. It counts for nothing if the release shows, by three deviations, that
        it does not hold.
    people : float
    power : {1.0, 0.5}
        1 if differences are whole: then the mean square is no less than a mean. 1/2 elsewhere.
    nearer : float, optional
        What holds as well, by the same facts, unless the release shows that ``known`` does not.

    Examples
    --------
    >>> round(at_most(0.04, 0.01, 1.0, 10**9), 4), at_most(0.04, 0.01, 0.05, 10**9)
    (0.07, 0.05)
    >>> round(at_most(0.04, 0.01, 0.005, 10**9), 4)
    0.07
    >>> at_most(0.04, 0.01, 0.05, 10**9, nearer=0.02)
    0.02
    """
    deviation = math.hypot(noise, math.sqrt((max(0.0, square) + 4 / people) / people))
    least, reach = (max(0.0, square + side * 3 * deviation) ** power for side in (-1, 1))
    return min(1.0, reach if least > known else min(reach, known if nearer is None else nearer))


def losses(
    found: FloatArray,
    query: MeanLosses,
    chance: Chance,
    known: float = 1.0,
    nearer: float | None = None,
) -> Raw:
    """Mean losses between 0 and 1, and the difference of the first and the second.

    Where there are two models, the difference is shown no larger than how far they are apart on a
    row, by the mean of its square as released (and three deviations of that), nor than is known.
    Its interval is what noise and sample make it.

    Parameters
    ----------
    found : ndarray
        Released, as :class:`~dpadapt.evaluation.queries.MeanLosses` orders it, over the part of
        rows with a label.
    query : MeanLosses
    chance : Chance
    known : float, default=1
        How large the difference may be, by public facts; releases may show that it is larger.
    nearer : float, optional
        What public facts say as well; it counts for nothing if the released difference is beyond,
        by three deviations.

    Examples
    --------
    >>> from dpadapt.evaluation.queries import AsAnswered
    >>> query = MeanLosses(AsAnswered(1.0), lambda X, y: X, models=2, whole=True)
    >>> found = np.array([0.0, -0.0707, 0.1])
    >>> sides = losses(found, query, Chance(0.001, 10_000, 0.95))
    >>> [round(side.low, 3) for side in sides.settled()]
    [0.192, 0.291, -0.107]
    """
    models, root = query.models, math.sqrt(2)
    if models == 1:
        moved, own = [float(found[0])], chance.noise
    else:
        total, apart = float(found[0]) * root, float(found[1]) * root
        moved = [(total + apart) / 2, (total - apart) / 2]
        own = chance.noise
    less = np.zeros(models) if query.whole else np.maximum(found[-models:] - chance.noise, 0.0)
    sides = []
    for each, lost in zip(moved, less, strict=True):
        towards = _towards_half(CENTRE + each, own + chance.z**2 / (2 * chance.people))
        variance = max(0.0, towards * (1 - towards) - float(lost))
        noise = math.hypot(own, chance.blur * each)
        sides.append(chance.interval(CENTRE + each, noise, variance))
    if models == 1:
        return Raw(tuple(sides))
    noise = math.hypot(root * chance.noise, chance.blur * apart)
    square = float(found[2])
    most = min(1.0, max(0.0, square) + chance.doubt)
    variance = max(0.0, most - max(0.0, abs(apart) - noise) ** 2)
    sides.append(chance.interval(apart, noise, variance))
    power = 1.0 if query.whole else 0.5
    if nearer is not None:
        deviation = math.hypot(noise, math.sqrt(variance / chance.people))
        nearer = nearer if abs(apart) - 3 * deviation <= nearer else None
    return Raw(tuple(sides), at_most(square, chance.noise, known, chance.people, power, nearer))


def rankings(found: FloatArray, models: int, class_weight: float, chance: Chance) -> Raw:
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
        Released, as :class:`~dpadapt.evaluation.queries.Ranking` orders it, over the part of rows
        with a label; sums over pairs must be divided by it twice.
    models : {1, 2}
    class_weight : float
    chance : Chance

    Examples
    --------
    >>> areas = rankings(np.array([0.0625, 0.0]), 1, 0.866, Chance(1e-4, 10_000, 0.95))
    >>> round(areas.sides[0].value, 3), round(areas.sides[0].low, 2)
    (0.75, 0.74)
    """
    more = float(found[-1]) / class_weight
    share, doubt = 0.5 + more, math.hypot(chance.noise / class_weight, chance.blur * more)
    of_pairs = chance.noise / chance.part
    if not 2 * doubt < share < 1 - 2 * doubt:  # one class is lost in the noise, and with it pairs
        nothing = Interval(0.5, 0.0, 1.0)
        return Raw((nothing,) if models == 1 else (nothing, nothing, Interval(0.0, -1.0, 1.0)))
    pairs = share * (1 - share)
    rare = min(share, 1 - share) - doubt  # the wider of the two
    least, slope = rare * (1 - rare), (1 - 2 * rare) / (rare * (1 - rare)) * doubt
    sides, variance, right, wrong = [], 0.0, 1.0, 1.0
    for each in found[:models]:
        above = float(each) / chance.part / pairs
        area, noise = 0.5 + above, math.hypot(of_pairs / least, above * slope)
        noise = math.hypot(noise, 2 * chance.blur * above)
        doubt = noise + chance.z**2 / (2 * rare * chance.people)
        towards = _towards_half(area, doubt)
        sides.append(chance.interval(area, noise, towards * (1 - towards) / rare))
        variance += towards * (1 - towards)
        right, wrong = right * _most(area, doubt), wrong * _most(1 - area, doubt)
    if models == 1:
        return Raw(tuple(sides))
    variance = (variance + 2 * min(right, wrong)) / rare
    apart = float(found[0] - found[1]) / chance.part / pairs
    noise = math.hypot(math.sqrt(2) * of_pairs / least, apart * slope, 2 * chance.blur * apart)
    return Raw((*sides, chance.interval(apart, noise, variance)))


def reliabilities(
    found: FloatArray, count_weight: float, chance: Chance
) -> tuple[Raw, tuple[tuple[float, ...], ...]]:
    """Expected calibration errors and their difference; and the table of the first model.

    The error is the sum over bins of abs(G), G the mean of p - o over rows of the bin (0 for
    others). Noise and sampling move the G by deviations s times normal numbers u, so that the error
    moves by at most sum s abs(u) <= root of (sum s^2) (sum u^2), whose second part has a
    chi-squared law. The value is without the part that noise adds on average:
    sqrt(max(0, G^2 - variance)).

    Parameters
    ----------
    found : ndarray of shape (models, 2, bins)
        Released, as :class:`~dpadapt.evaluation.queries.Reliability` orders it, over the part of
        rows with a label.
    count_weight : float
    chance : Chance

    Examples
    --------
    >>> counts, gaps = [0.25, 0.25], [0.05, -0.05]
    >>> sides, table = reliabilities(np.array([[counts, gaps]]), 0.5, Chance(0.0, 10**6, 0.95))
    >>> round(sides.sides[0].value, 3), [round(each, 2) for each in table[1]]
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
        variances = chance.noise**2 + (chance.blur * gaps) ** 2 + spread
        value = float(np.sqrt(np.maximum(gaps**2 - variances, 0.0)).sum())
        seen, half = float(np.abs(gaps).sum()), math.sqrt(reach * float(variances.sum()))
        low, high = min(max(seen - half, 0.0), value), min(max(seen + half, value), 1.0)
        sides.append(Interval(min(value, 1.0), min(low, 1.0), high))
        table = table or _table(edges, shares, gaps, count_weight, chance)
    if len(sides) == 1:
        return Raw(tuple(sides)), table
    apart = sides[0].value - sides[1].value
    ends = (sides[0].low - sides[1].high, sides[0].high - sides[1].low)
    return Raw((*sides, Interval(apart, *ends))), table


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


_HALF = (-0.5, 0.5)


class _Square(NamedTuple):
    """A variance as a function of a ratio r: at 0, with r and with its square."""

    constant: float
    linear: float
    square: float


class Counted:
    """Released numbers of :class:`~dpadapt.evaluation.class_queries.ByClass`, made to agree.

    Numbers of classes and the total are two views of the same errors: each is moved by what the
    other says, as least squares have it. Shares of classes add up to one.

    Parameters
    ----------
    found : ndarray
        Over the part of rows with a label, and without the last number.
    query : ByClass
    chance : Chance

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.evaluation.queries import AsAnswered
    >>> query = ByClass(AsAnswered(1.0), lambda X: X, classes=2, models=1)
    >>> found = np.array([-0.3, -0.2, -0.1, 0.25, 0.25])
    >>> counted = Counted(found, query, Chance(0.0, 10**6, 0.95))
    >>> [round(each.sides[0].value, 2) for each in (counted.error(), counted.recall(1))]
    [0.2, 0.7]
    """

    def __init__(self, found: FloatArray, query: ByClass, chance: Chance) -> None:
        self._query, self._chance = query, chance
        kinds, classes = query.kinds, query.classes
        parts = found[kinds:].reshape(-1, classes)
        own = parts[:kinds]
        self._own = own + ((found[:kinds] - own.sum(axis=1)) / (classes + 1))[:, None]
        shares = parts[kinds] / query.class_weight
        self.shares: FloatArray = shares + (1 - shares.sum()) / classes
        self._predicted = parts[kinds + 1 :] / query.predicted_weight
        self._noise = chance.noise * math.sqrt(classes / (classes + 1))  # of a class, and of all
        self.share_noise = chance.noise / query.class_weight

    def error(self, known: float = 1.0) -> Raw:
        """Share of wrong answers; the difference is no larger than the share of rows in question.

        Parameters
        ----------
        known : float, default=1
            How large a difference may be by public facts; more, if releases show that it is.
        """
        chance, totals = self._chance, self._own.sum(axis=1)
        sides = []
        for each in map(float, totals[: self._query.models]):
            noise = math.hypot(self._noise, chance.blur * each)
            spread = _Square(noise**2 + 0.25 / chance.people, 0.0, -1 / chance.people)
            sides.append(_ratio(each, 1.0, 0.0, spread, chance, _HALF).moved(0.5))
        if self._query.models == 1:
            return Raw(tuple(sides))
        apart, square = float(totals[0] - totals[1]), float(totals[2]) + 0.5
        noise = math.hypot(math.sqrt(2) * self._noise, chance.blur * apart)
        most = min(1.0, max(0.0, square) + self._noise + chance.z**2 / (2 * chance.people))
        variance = max(0.0, most - max(0.0, abs(apart) - noise) ** 2)
        sides.append(chance.interval(apart, noise, variance))
        return Raw(tuple(sides), at_most(square, self._noise, known, chance.people))

    def recall(self, at: int, known: float = 1.0) -> Raw:
        """Share of right answers in one class.

        Parameters
        ----------
        at : int
            Place of the class.
        known : float, default=1
            As in :meth:`error`.
        """
        chance, share = self._chance, float(self.shares[at])
        each = (max(share, 0.0) + self.share_noise) / chance.people
        spread = _Square(self._noise**2 + each / 4, 0.0, self.share_noise**2 - each)
        sides = [
            _ratio(float(wrong), share, self.share_noise, spread, chance, _HALF).flipped(0.5)
            for wrong in self._own[: self._query.models, at]
        ]
        if self._query.models == 1:
            return Raw(tuple(sides))
        first, second, differ = map(float, self._own[:, at])
        square = differ + share / 2
        most = max(0.0, square) + self._noise + chance.z**2 / (2 * chance.people)
        most = min(most, max(share, 0.0) + self.share_noise)
        spread = _Square(2 * self._noise**2 + most / chance.people, 0.0, self.share_noise**2)
        far = _ratio(first - second, share, self.share_noise, spread, chance, (-1.0, 1.0))
        least = max(share - 2 * self.share_noise, 1e-9)
        bound = at_most(square / least, self._noise / least, known, least * chance.people)
        return Raw((*sides, far.flipped(0.0)), bound)

    def balanced(self, known: FloatArray) -> Raw:
        """Mean of the recalls.

        Parameters
        ----------
        known : ndarray
            Of each class, how large a difference may be.
        """
        each = [self.recall(at, float(known[at])) for at in range(self._query.classes)]
        sides = zip(*(raw.sides for raw in each), strict=True)
        most = math.fsum(raw.most for raw in each) / len(each)
        means = (_mean(list(side), [*map(_is_lost, side)]) for side in sides)
        return Raw(tuple(means), most)

    def precision(self, at: int) -> Raw:
        """Share of right answers among rows that a model predicts as one class.

        Parameters
        ----------
        at : int
            Place of the class.
        """
        chance, sides = self._chance, []
        for model in range(self._query.models):
            wrong = self._own[model]
            right = float(self.shares[at] / 2 - wrong[at])
            constant = self.share_noise**2 / 4 + self._noise**2
            if self._query.predicted:
                named = float(self._predicted[model, at])
                blurred = chance.noise / self._query.predicted_weight
                linear, square = 0.0, blurred**2
            else:  # of two classes
                named = float(0.5 - wrong[at] + wrong[1 - at])
                blurred = math.sqrt(2) * self._noise
                linear, square = -2 * self._noise**2, 2 * self._noise**2
            each = (max(named, 0.0) + blurred) / chance.people
            spread = _Square(constant, linear + each, square - each)
            sides.append(_ratio(right, named, blurred, spread, chance, (0.0, 1.0)))
        if self._query.models == 1:
            return Raw(tuple(sides))
        apart = _mean([sides[0], sides[1].flipped(0.0)], [*map(_is_lost, sides)])
        return Raw((*sides, apart.times(2.0)))


def _ratio(
    top: float,
    bottom: float,
    blurred: float,
    spread: _Square,
    chance: Chance,
    ends: tuple[float, float],
) -> Interval:
    """All r for which top - r bottom is not farther from 0 than z deviations.

    It may reach beyond the ends: cut to them, a mean of several would be pushed away from them.
    """
    z = chance.z**2
    square = bottom**2 - z * spread.square
    if bottom <= 2 * blurred or bottom <= 0 or square <= 0:
        return Interval(sum(ends) / 2, *ends)
    linear = -2 * top * bottom - z * spread.linear
    root = linear**2 - 4 * square * (top**2 - z * spread.constant)
    value = top / bottom
    inside = min(max(value, ends[0]), ends[1])
    noise = spread.constant + spread.linear * inside + spread.square * inside**2
    half = math.sqrt(z * max(noise, 0.0)) / bottom
    if root < 0:  # far beyond what can be
        return Interval(value, value - half, value + half)
    low, high = ((-linear + side * math.sqrt(root)) / (2 * square) for side in (-1, 1))
    return Interval(value, low, high).around(value)


def _mean(sides: list[Interval], lost: list[bool]) -> Interval:
    """Mean of values with noise of their own: squares of either side add up.

    Of a value that is lost nothing is known but its ends: these add up as they are.
    """
    value = math.fsum(each.value for each in sides) / len(sides)
    reach = []
    for ends in (
        [each.value - each.low for each in sides],
        [each.high - each.value for each in sides],
    ):
        pairs = list(zip(ends, lost, strict=True))
        seen = math.hypot(*(end for end, away in pairs if not away))
        reach.append((seen + math.fsum(end for end, away in pairs if away)) / len(sides))
    return Interval(value, value - reach[0], value + reach[1])


def _is_lost(side: Interval) -> bool:
    return side in (Interval(0.5, 0.0, 1.0), Interval(0.0, -1.0, 1.0))
