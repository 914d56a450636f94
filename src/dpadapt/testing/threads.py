"""Two threads, one private sample: each fit has its own guarantee, and both are charged."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from .expecting import require
from .subject import Subject


class Meeting:
    """A ledger at which two fits meet: neither is charged before the other is there too.

    So both have opened what they open before the noise, and neither has drawn any.
    """

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2)
        self.charges: list[Any] = []

    def charge(self, events: Any, label: str) -> None:
        self.charges.append(tuple(events))
        try:
            self._barrier.wait(timeout=60)  # fits that wait for each other are right as well
        except threading.BrokenBarrierError:
            return

    def __deepcopy__(self, memo: Any) -> Meeting:
        return self


def together(calls: list[Callable[[], Any]]) -> list[Any]:
    """Results of calls, each in a thread of its own."""
    with warnings.catch_warnings(), ThreadPoolExecutor(len(calls)) as pool:
        warnings.simplefilter("ignore", UserWarning)
        return [future.result() for future in [pool.submit(call) for call in calls]]


def check_two_fits_at_once_are_two_fits(subject: Subject) -> None:
    """Two fits at the same time do not see each other, and both are charged."""
    X, y = subject.public()
    asked: list[dict[str, Any]] = [
        {"epsilon": 1.0, "random_state": 3},
        {"epsilon": 0.5, "random_state": 4},
    ]
    alone = [subject.fit(subject.make(**params), subject.private()) for params in asked]
    meeting, private = Meeting(), subject.private()
    models = [subject.make(**params, ledger=meeting) for params in asked]
    together([partial(model.fit, X, y, private=private) for model in models])
    for model, expected in zip(models, alone, strict=True):
        require(model.guarantee_ == expected.guarantee_, "a guarantee of another fit")
        np.testing.assert_array_equal(subject.predictions(model), subject.predictions(expected))
    events = Counter(event for model in alone for event in model.guarantee_.events)
    require(Counter(private.spent(1e-6).events) == events, "charges do not add up")
    charged = Counter(e for charge in meeting.charges for e in charge)
    require(charged == events, "charges of the ledger do not add up")
