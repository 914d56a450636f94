"""What a ledger says about a data set: its budget, its charges, and the sums over them.

Charges form a chain of digests that starts at the budget: a changed, lost or added record is
noticed on reading, which SQLite alone would not do. The chain has no key: it protects from damage,
not from somebody who may write to the ledger and computes the digests anew.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..accounting.calibration import gaussian_mu
from ..accounting.composition import compose_epsilon, fits, quick_epsilon, quickly_fits
from ..accounting.events import Event, GaussianEvent, event_from_dict, is_known
from ..rows.errors import BudgetExceeded
from .sums import summed

TOLERANCE = 1e-12  # of a budget, relative

_ENCODER = json.JSONEncoder(default=repr)  # made once: a long chain has many digests
_SEARCH_STEPS = 12  # of the search for what is left where there is no closed form


@dataclass(frozen=True, slots=True)
class Charge:
    """One charge of a data set.

    Parameters
    ----------
    id : int
        Its number within the data set: 1, 2, 3, ...
    created : str
        When, in UTC, as ISO 8601.
    label : str
        Who asked for it ("DiscrepancyRegressor").
    events : tuple of Event

    Examples
    --------
    >>> Charge(1, "2025-01-01T00:00:00+00:00", "fit", ()).label
    'fit'
    """

    id: int
    created: str
    label: str
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Balance:
    """Budget of a data set and everything charged to it, composed.

    Parameters
    ----------
    name : str
    epsilon, delta : float
        The whole budget.
    number : int
        How many charges there are.
    sums : tuple of Event
        A short list that costs what all charges do (:mod:`.sums`).
    head : str
        Digest of all charges.

    Examples
    --------
    >>> balance = Balance("hospital", 1.0, 1e-6, 1, (GaussianEvent("mean", 1.0, 10.0),), "")
    >>> round(balance.spent(), 3), round(balance.left(), 3)
    (0.397, 0.9)
    """

    name: str
    epsilon: float
    delta: float
    number: int
    sums: tuple[Event, ...]
    head: str

    def admits(self, events: Sequence[Event]) -> bool:
        """Whether the budget still holds with ``events`` on top of all charges.

        The budget is read as epsilon * (1 + 1e-12): else three charges of 0.1 would not fit into
        0.3, because 0.1 is no binary number. All that it changes is that no probability grows by
        more than a factor of exp(epsilon * 1e-12), below what float64 noise is computed to.
        """
        return self._fits(events, fits)

    def _fits(self, events: Sequence[Event], proof: Callable[..., bool]) -> bool:
        return proof(self.after(events), self.epsilon * (1 + TOLERANCE), self.delta)

    def after(self, events: Sequence[Event]) -> tuple[Event, ...]:
        """The sums with ``events`` on top."""
        return summed((*self.sums, *events))

    def spent(self) -> float:
        """Epsilon of all charges together, at the budget's delta."""
        return compose_epsilon(self.sums, self.delta)

    def left(self) -> float:
        """Epsilon, at the budget's delta, of the largest single Gaussian release that would fit.

        Exact (up to 1e-12 of the budget, kept back against rounding) while all charges are
        Gaussian; otherwise a search from below.
        """
        return self._left(fits)

    def _left(self, proof: Callable[..., bool]) -> float:
        largest = gaussian_mu(self.epsilon, self.delta)
        spent = math.fsum(event.gaussian_mu**2 for event in self.sums)
        if math.isfinite(spent):
            mu = math.sqrt(max(0.0, largest**2 * (1 - 1e-12) - spent))
        else:
            mu = self._search_left(largest, proof)
        return compose_epsilon([_gaussian(mu)], self.delta)

    def _search_left(self, largest: float, proof: Callable[..., bool]) -> float:
        low, high = 0.0, largest
        for _ in range(_SEARCH_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._fits([_gaussian(middle)], proof) else (low, middle)
        return low

    def refusal(self, events: Sequence[Event]) -> BudgetExceeded:
        """Return the error that says spent, asked and left, at the cost of a charge.

        No privacy loss distribution is computed for it: but for Gaussian charges, what is spent and
        asked is stated as an upper bound, what is left as a lower one. ``spent`` and ``left`` are
        tighter, and take their time.
        """
        return BudgetExceeded(
            spent=min(quick_epsilon(self.sums, self.delta), self.epsilon),
            asked=quick_epsilon(events, self.delta),
            left=self._left(quickly_fits),
            budget_epsilon=self.epsilon,
            budget_delta=self.delta,
        )


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set as the ledger held it at one moment.

    Parameters
    ----------
    created : str
        When, in UTC, as ISO 8601.
    charges : tuple of Charge
    balance : Balance
        Its budget, and all charges composed.

    Examples
    --------
    >>> event = GaussianEvent("mean", 1.0, 10.0)
    >>> balance = Balance("hospital", 1.0, 1e-6, 1, (event,), "")
    >>> dataset = Dataset("", (Charge(1, "", "fit", (event,)),), balance)
    >>> dataset.name, round(dataset.spent(), 3), round(dataset.left(), 3)
    ('hospital', 0.397, 0.9)
    """

    created: str
    charges: tuple[Charge, ...]
    balance: Balance

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.balance.name

    @property
    def epsilon(self) -> float:
        """Epsilon of the whole budget."""
        return self.balance.epsilon

    @property
    def delta(self) -> float:
        """Delta of the whole budget."""
        return self.balance.delta

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event that was ever charged."""
        return tuple(event for charge in self.charges for event in charge.events)

    def spent(self) -> float:
        """Epsilon of all charges together, at the budget's delta."""
        return self.balance.spent()

    def left(self) -> float:
        """Epsilon, at the budget's delta, of the largest single Gaussian release that would fit."""
        return self.balance.left()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the budget, what is spent and left, every charge."""
        return {
            "dataset": self.name,
            "created": self.created,
            "budget": {"epsilon": self.epsilon, "delta": self.delta},
            "spent": self.spent(),
            "left": self.left(),
            "charges": [
                {
                    "id": charge.id,
                    "created": charge.created,
                    "label": charge.label,
                    "events": [event.to_dict() for event in charge.events],
                }
                for charge in self.charges
            ],
            "digest": self.balance.head,
        }


def encode_events(events: Sequence[Event]) -> str:
    """JSON of ``events``; whatever could not be read back is refused here."""
    for event in events:
        if not isinstance(event, Event):
            raise TypeError(f"events must hold Event objects; got {type(event).__name__}.")
        if not is_known(event):
            raise ValueError(f"events cannot be stored: unknown kind of event {event.kind!r}.")
    try:
        text = json.dumps([event.to_dict() for event in events], allow_nan=False, default=_plain)
        decode_events(text)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"events cannot be stored: {error}") from None
    return text


def decode_events(text: str) -> tuple[Event, ...]:
    """Events of :func:`encode_events`; ValueError where it is not that."""
    try:
        return tuple(event_from_dict(item) for item in json.loads(text))
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def genesis(name: str, epsilon: float, delta: float, created: str) -> str:
    """First digest of a data set: its budget."""
    return _digest("dpadapt", name, epsilon, delta, created)


def chain(previous: str, number: int, created: str, label: str, events: str, *sums: str) -> str:
    """Digest of a charge and of everything before it; old ledgers had no sums."""
    return _digest(previous, number, created, label, events, *sums)


def digest_of(text: str) -> str:
    """Digest of the sums."""
    return _digest(text)


def _digest(*values: Any) -> str:
    # a damaged file can hold values of any type: they get a digest, too, and a wrong one
    return hashlib.sha256(_ENCODER.encode(values).encode()).hexdigest()


def _gaussian(mu: float) -> GaussianEvent:
    return GaussianEvent("left", sensitivity=mu, scale=1.0)


def _plain(value: Any) -> Any:
    """JSON for what an event may hold besides plain values: numpy scalars, events in lists."""
    return value.to_dict() if isinstance(value, Event) else value.item()
