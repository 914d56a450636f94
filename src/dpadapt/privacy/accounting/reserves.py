"""What a fit with a hold-out has paid for in advance: an evaluation, to be used once.

A fit on people of one part charges, in one split, its own events and a Gaussian release for an
evaluation of the other part (:mod:`dpadapt.privacy.core.holdout`). The charge says which part that
is. Who evaluates writes down first, in the same ledger, that the reserve of that charge is used: a
second one is refused there, whichever process, machine or copy of a model it comes from. So a
reserve that was paid for and not used can be used after a crash.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .events import Event

_LABEL = re.compile(r"fit and evaluation \((\S+) of (\d+) held out\)")


@dataclass(frozen=True, slots=True)
class Reserve:
    """An evaluation that is paid for.

    Parameters
    ----------
    number : int
        Of the charge.
    share : float
        That was held out.
    people : int
        Of both parts together.
    fit : tuple of Event
        Released of the other part.
    mu : float
        Of the evaluation.

    Examples
    --------
    >>> Reserve(1, 0.2, 100, (), 0.3).share
    0.2
    """

    number: int
    share: float
    people: int
    fit: tuple[Event, ...]
    mu: float


def reserve_label(share: float, people: int) -> str:
    """Name of the split in a charge.

    Examples
    --------
    >>> reserve_label(0.2, 100)
    'fit and evaluation (0.2 of 100 held out)'
    """
    return f"fit and evaluation ({share!r} of {people} held out)"


def reserve_of(number: int, events: Sequence[Event]) -> Reserve | None:
    """Return what a charge has set aside, if it has.

    Examples
    --------
    >>> reserve_of(1, ()) is None
    True
    """
    event = events[0] if len(events) == 1 else None
    said = None if event is None else _LABEL.fullmatch(event.label)
    if event is None or said is None or len(event.ways) != 2:
        return None
    fit, (reserve,) = event.ways
    return Reserve(number, float(said[1]), int(said[2]), fit, reserve.gaussian_mu)
