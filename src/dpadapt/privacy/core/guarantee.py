"""The guarantee that a fitted model carries: derived from its events, never asserted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..accounting.composition import compose_epsilon, relation_of
from ..accounting.events import Event, event_from_dict

_RELATIONS = {
    "replace-one": "replacing any one private row by any other",
    "add-remove": "adding or removing any one private row",
    "replace-unit": "replacing all rows of any one person, up to {} of which count, by any others",
}


@dataclass(frozen=True)
class Guarantee:
    """What was promised about the private rows, and everything needed to check it.

    Parameters
    ----------
    events : tuple of Event
        Every release that was charged. With none, epsilon is 0.
    delta : float
        The probability with which the epsilon may fail; 0 if nothing was released.
    noise : str
        "secure", "seeded", "exact", or "none" if nothing was released.
    bounds : mapping of str to float
        The public bounds under which private rows were cleaned, and public sizes.
    caveats : tuple of str
        What the numbers do not say.

    Attributes
    ----------
    epsilon : float
        Computed from ``events`` at ``delta``; it cannot be set.
    relation : str
        "replace-one" or "add-remove".
    sentence : str
        The guarantee in plain words.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent
    >>> g = Guarantee((GaussianEvent("second moment", 1.0, 4.0),), delta=1e-6, noise="secure")
    >>> round(g.epsilon, 3)
    1.061
    >>> Guarantee.from_dict(g.to_dict()) == g
    True
    >>> print(Guarantee().sentence)
    No private row was used: the result says nothing about private rows (epsilon = 0, delta = 0).
    """

    events: tuple[Event, ...] = ()
    delta: float = 0.0
    noise: str = "none"
    bounds: Mapping[str, float] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    @cached_property
    def epsilon(self) -> float:
        """Epsilon of all events together at ``delta``."""
        return compose_epsilon(self.events, self.delta)

    @property
    def relation(self) -> str:
        """The neighbouring relation under which the events hold."""
        return relation_of(self.events)

    @property
    def sentence(self) -> str:
        """The guarantee in one plain sentence."""
        if not self.events:
            return (
                "No private row was used: the result says nothing about private rows "
                "(epsilon = 0, delta = 0)."
            )
        who = _RELATIONS[self.relation].format(self.bounds.get("rows a person", "several"))
        factor = f"{math.exp(self.epsilon):.4g}" if self.epsilon < 100 else f"e^{self.epsilon:.4g}"
        but = f", except with probability {self.delta:.3g}" if self.delta else ""
        return (
            f"{who.capitalize()} changes the probability of any outcome by "
            f"a factor of at most {factor}{but} (epsilon = {self.epsilon:.4g}, "
            f"delta = {self.delta:.3g}, {self.relation})."
        )

    def __str__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "relation": self.relation,
            "sentence": self.sentence,
            "noise": self.noise,
            "bounds": dict(self.bounds),
            "caveats": list(self.caveats),
            "events": [event.to_dict() for event in self.events],
        }

    def to_json(self) -> str:
        """Indented JSON of :meth:`to_dict`."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """Rebuild from :meth:`to_dict`; refuses an epsilon that the events do not add up to."""
        guarantee = cls(
            events=tuple(event_from_dict(event) for event in data["events"]),
            delta=float(data["delta"]),
            noise=str(data["noise"]),
            bounds=dict(data["bounds"]),
            caveats=tuple(data["caveats"]),
        )
        if not math.isclose(guarantee.epsilon, float(data["epsilon"]), rel_tol=1e-6):
            raise ValueError(
                f"this guarantee states epsilon {data['epsilon']}, but its events add up to "
                f"{guarantee.epsilon}: it was changed after it was written."
            )
        return guarantee

    def _repr_html_(self) -> str:
        from .shown import as_html

        return as_html(self)
