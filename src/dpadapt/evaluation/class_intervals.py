r"""From noisy counts by class to recall, precision and accuracy with intervals.

A recall is a ratio r of two released numbers, S / N. Its interval holds all r for which S - r N is
no farther from 0 than its noise and its sample allow at that r (Fieller 1940 for the noise, Wilson
1927 for the sample): a quadratic inequality, which is right also where a class is small. Means over
classes, and differences that were not released as such, add the squares of the two sides of
intervals (Zou and Donner 2008). A class that is lost in the noise has the whole range.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dpadapt._types import FloatArray

from .class_queries import ByClass
from .intervals import Chance, Interval, Raw, at_most

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
