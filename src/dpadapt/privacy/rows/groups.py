r"""What a statement about one replaced row says about k of them: group privacy, event by event.

A person with up to k rows fills k places (:mod:`.people`), so neighbours are k
replaced rows apart: there are tables between them, one replaced row after the other. What an event
states holds between any two tables that follow each other, given all that was released before. So

*Gaussian.* It states that means are at most D apart in units of the noise, D = sensitivity; over k
steps at most k D, by the triangle inequality. (Any mechanism that is mu-GDP is k mu-GDP for groups
of k: Dong, Roth and Su 2022, theorem 2.14.)

*Discrete Gaussian.* rho-zCDP is k^2 rho-zCDP for groups of k (Bun and Steinke 2016, proposition
27), rho = (sensitivity / scale)^2 / 2.

*Laplace, pure.* Factors of e^epsilon multiply: k epsilon.

*Bounded range* (exponential mechanism). Differences of scores move by at most k times their range
sensitivity, and what the event states follows from that range alone.

So k times the sensitivity, or the epsilon, in the same event. Everything else is refused by name:
mechanisms that draw rows at random, count what single rows have spent, or hide what they did.
"""

from __future__ import annotations

from dataclasses import replace

from ..accounting.events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
)
from .errors import PrivacyError

_NOISY = (BoundedRangeEvent, DiscreteGaussianEvent, GaussianEvent, LaplaceEvent)


def of_people(event: Event, rows: int) -> Event:
    """Return what an event about one row states about people with up to so many rows.

    Parameters
    ----------
    event : Event
        For one replaced row.
    rows : int

    Examples
    --------
    >>> of_people(GaussianEvent("mean", sensitivity=0.1, scale=1.0), 5).sensitivity
    0.5
    >>> of_people(PureEvent("answer", epsilon=0.25), 4).relation
    'replace-unit'
    """
    if event.relation != "replace-one" or type(event) not in (*_NOISY, PureEvent):
        raise PrivacyError(
            f"an event {event.kind!r} says nothing about people with several rows "
            "(Private(unit=...)); take a method that does without it."
        )
    if isinstance(event, PureEvent):
        return replace(event, epsilon=rows * event.epsilon).under("replace-unit")
    assert isinstance(event, _NOISY)
    return replace(event, sensitivity=rows * event.sensitivity).under("replace-unit")
