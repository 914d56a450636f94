"""What a plan costs, and how much noise it needs to cost what may be spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..accounting.calibration import calibrate
from ..accounting.composition import compose_epsilon
from ..accounting.events import Event, Relation
from ..rows.errors import PrivacyError
from .mechanism import Mechanism
from .noise import NoiseSource


class Budget(Protocol):
    """Whoever keeps the budget of the data set (:mod:`dpadapt.privacy.ledger`)."""

    def charge(self, events: Sequence[Event], label: str) -> int | None:
        """Record the events durably, or raise before anything is released; gives its number."""


def calibrated(
    asked: Sequence[Mechanism],
    epsilon: float,
    delta: float,
    relation: Relation,
    source: NoiseSource,
    people: Any = None,
) -> float:
    """Noise multiplier at which all of them together cost what may be spent.

    Examples
    --------
    >>> from dpadapt.privacy.mechanisms import Gaussian
    >>> from dpadapt.privacy.core.noise import SeededNoise
    >>> round(calibrated([Gaussian("mean")], 1.0, 1e-6, "replace-one", SeededNoise(0)), 3)
    4.225
    """
    given = [m.printed is not None or m.fixed for m in asked]
    if all(given):
        return 1.0  # of no consequence: nothing is calibrated
    if any(given):
        raise PrivacyError("a plan is either calibrated or printed, not both.")
    spend = (epsilon, delta, relation, source, people)
    return calibrate(lambda noise: priced(asked, noise, *spend), epsilon, delta)


def priced(
    asked: Sequence[Mechanism],
    noise: float,
    epsilon: float,
    delta: float,
    relation: Relation,
    source: NoiseSource,
    people: Any = None,
) -> tuple[Event, ...]:
    """All events of the mechanisms at a noise multiplier, of rows or of people; or a refusal.

    Examples
    --------
    >>> from dpadapt.privacy.mechanisms import Gaussian
    >>> from dpadapt.privacy.core.noise import SeededNoise
    >>> len(priced([Gaussian("mean")], 4.3, 1.0, 1e-6, "replace-one", SeededNoise(0)))
    1
    """
    for mechanism in asked:
        mechanism.check(relation, source)
    every = (e for m in asked for e in m.events(m.scale_at(noise), source))
    events = tuple(e.under(relation) if people is None else people.states(e) for e in every)
    fixed = any(mechanism.fixed for mechanism in asked)
    if fixed and compose_epsilon(events, delta) > epsilon * (1 + 1e-9):
        raise PrivacyError("the mechanism costs more than the session may spend.")
    return events
