"""What agents sent back, and what may be concluded from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpadapt._types import FloatArray

from ... import _validate
from .randomisers import BallResponse, BinaryResponse, GaussianResponse

Randomiser = BinaryResponse | GaussianResponse | BallResponse


@dataclass(frozen=True, eq=False)
class Replies:
    """Messages of the agents that answered one question in time. All of it is public.

    Attributes
    ----------
    values : array of shape (m,) or (m, k)
        Randomised bits (0 or 1), noisy numbers, or vectors, one of each that answered.
    places : array of shape (m,)
        Which of those asked: indices into the question's own arrays, ascending.
    asked : array of shape (count,)
        The agents asked, by their ids; they are spent, also those that did not answer.
    randomiser : BinaryResponse, GaussianResponse or BallResponse
        What their devices did.
    problems : mapping of str to int
        How many did not answer as they should; empty for agents in memory. By kind: "silent" (not
        in time), "died", "twice", "rubbish" (no valid reply to this question), "long" (more than a
        reply can be), "refused" (answered before, or a cap below epsilon), "unstarted".

    Examples
    --------
    >>> Replies(np.array([1.0, 0.0]), np.array([0, 2]), np.array([7, 3, 5]), BinaryResponse(1.0))
    Replies(2 of 3 agents)
    """

    values: FloatArray
    places: NDArray[np.int64]
    asked: NDArray[np.int64]
    randomiser: Randomiser
    problems: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Replies({len(self.values)} of {len(self.asked)} agents)"


@dataclass(frozen=True)
class Estimate:
    """Mean answer of the population that the agents come from.

    Attributes
    ----------
    value : float
        Unbiased, so it may lie outside [0, 1]; NaN without replies.
    low, high : float
        Contain the mean with probability 1 - beta at least, cut to [0, 1].
    count : int
        Replies that it rests on.

    Examples
    --------
    >>> Estimate(0.1, 0.05, 0.15, 1000).high
    0.15
    """

    value: float
    low: float
    high: float
    count: int


def estimate(replies: Replies, beta: float) -> Estimate:
    r"""Mean answer with an interval that fails with probability ``beta`` at most.

    One debiased message is the true mean plus a sub-Gaussian variable: of variance proxy
    :math:`1 / (4 (1 - 2p)^2)` for bits (Hoeffding's lemma), :math:`1/4 + s^2` for Gaussian noise of
    scale s. Over m replies of agents drawn independently, each tail beyond t is at most
    :math:`\exp(-m t^2 / (2 \cdot proxy))`, so :math:`t = \sqrt{2 \, proxy \ln(2/\beta) / m}`; for
    bits :math:`t = \sqrt{\ln(2/\beta) / (2m)} / (1 - 2p)`. For one side only, 2 ``beta`` serves.

    It speaks of those who answer: where agents stay silent for a reason that goes with the answer,
    so does the estimate.

    Examples
    --------
    >>> randomiser = BinaryResponse(1.0)
    >>> bits = np.repeat([1.0, 0.0], [3000, 7000])
    >>> found = estimate(Replies(bits, np.arange(10_000), np.arange(10_000), randomiser), 0.05)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.067, 0.038, 0.097)
    """
    _validate.fraction("beta", beta / 2)
    randomiser, m = replies.randomiser, len(replies.values)
    if isinstance(randomiser, BallResponse):
        raise TypeError("these replies are vectors; their mean is replies.values.mean(axis=0).")
    if not m:
        return Estimate(math.nan, 0.0, 1.0, 0)
    value = float(randomiser.debias(replies.values.mean()))
    half = math.sqrt(2 * randomiser.proxy * math.log(2 / beta) / m)
    low, high = (min(max(end, 0.0), 1.0) for end in (value - half, value + half))
    return Estimate(value, low, high, m)


def agents_needed(half_width: float, epsilon: float, beta: float) -> int:
    r"""Agents whose bits give a mean to within ``half_width``, except with probability ``beta``.

    :math:`N_0 = \lceil \ln(2/\beta) / (2 a^2 (1 - 2p)^2) \rceil`, a the half-width.

    Examples
    --------
    >>> agents_needed(0.02, epsilon=1.0, beta=0.05)
    21593
    """
    _validate.positive("half_width", half_width)
    _validate.fraction("beta", beta)
    proxy = BinaryResponse(epsilon).proxy
    return math.ceil(2 * proxy * math.log(2 / beta) / half_width**2)
