"""Ledgers that refuse, and ledgers that watch."""

from __future__ import annotations

from typing import Any

from dpadapt import BudgetExceeded

from .tape import Draw


class Refusing:
    """A ledger that has no budget left."""

    def charge(self, events: Any, label: str) -> None:
        raise BudgetExceeded(spent=1.0, asked=1.0, left=0.0, budget_epsilon=1.0, budget_delta=1e-6)


class Watching:
    """A ledger that writes down its charges, and how much noise had been drawn before."""

    def __init__(self, tape: list[Draw]) -> None:
        self.tape = tape
        self.charges: list[Any] = []
        self.draws_before: list[int] = []

    def charge(self, events: Any, label: str) -> None:
        self.charges.append(tuple(events))
        self.draws_before.append(len(self.tape))

    def __deepcopy__(self, memo: Any) -> Watching:
        return self
