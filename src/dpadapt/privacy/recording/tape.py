"""A recording: every un-noised value on its way to its noise, and what came out. For tests alone.

What is recorded is what differential privacy hides. So a recording is for made-up rows and public
ones: a session that charges a ledger is refused while one runs. All randomness comes from a seed.

There is one place in the library at which a hidden value meets its noise: a mechanism of a session,
the answers of a predictor, an agent's randomiser. A recording wraps those, and what leads to them
(sessions, plans, passes over the rows), in :mod:`.places` and nowhere else. A recording
can be played: then each mechanism gives what it gave before, whatever the rows are now
(:mod:`dpadapt.audit.replaying`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dpadapt._types import FloatArray


class Diverged(Exception):
    """Private values decide what is done, not only what is released."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """One value that met its noise.

    Parameters
    ----------
    label, mechanism : str
        What it is, and what noised it.
    norm : {"l2", "l1", "range", "draw", "rows"}
        In which its sensitivity is meant (:mod:`dpadapt.audit.replaying`).
    sensitivity, scale : float
        As stated in the request, and the scale of the noise.
    value : ndarray
        The un-noised value, in coordinates in which the norm is a plain one.
    released : object
        What came out.
    grant : int
        Place of the grant among those that were used.
    count : int
        Releases of full sensitivity that the grant pays for.
    query : Query, optional
        Whose sum or mean over the rows the value is, if it is one.
    rows : int
        By which that sum was divided.
    noisy : ndarray, optional
        What came out, in the coordinates of the value, if noise was added to it.
    share : float
        Part of a release of full sensitivity that it uses up (of a purse).

    Examples
    --------
    >>> import numpy as np
    >>> Recorded("mean", "gaussian", "l2", 0.1, 1.0, np.zeros(2), np.ones(2)).fact
    "gaussian of 'mean', shape (2,), sensitivity 0.1, scale 1.0, grant -1"
    """

    label: str
    mechanism: str
    norm: str
    sensitivity: float
    scale: float
    value: FloatArray
    released: Any
    grant: int = -1
    count: int = 1
    query: Any = None
    rows: int = 1
    noisy: FloatArray | None = None
    share: float = 1.0

    @property
    def fact(self) -> str:
        """All of it that must not depend on private values."""
        return (
            f"{self.mechanism} of {self.label!r}, shape {self.value.shape}, sensitivity "
            f"{self.sensitivity!r}, scale {self.scale!r}, grant {self.grant}"
        )


@dataclass(eq=False)
class Recording:
    """What happened, in order.

    Attributes
    ----------
    facts : list of str
        Everything that was done, in words; of it nothing may depend on private values.
    values : list of Recorded

    Examples
    --------
    >>> heard = Recording()
    >>> heard.note("a pass over the rows")
    >>> heard.facts
    ['a pass over the rows']
    """

    frozen: Sequence[Recorded] | None = None
    facts: list[str] = field(default_factory=list)
    values: list[Recorded] = field(default_factory=list)
    diverged: str | None = None
    _expected: Sequence[str] | None = None
    _inside: int = 0  # mechanisms that are built of others count once
    _grants: dict[Any, int] = field(default_factory=dict)
    _opened: FloatArray | None = None
    _longest: float = 0.0
    _paths: dict[int, tuple[list[Any], list[FloatArray]]] = field(default_factory=dict)

    def note(self, fact: str) -> None:
        """Write down a fact; in a replay it must be the one of the earlier recording."""
        if self._inside:
            return
        if self._expected is not None:
            then = self._expected[len(self.facts)] if len(self.facts) < len(self._expected) else ""
            if fact != then and self.diverged is None:
                self.diverged = f"step {len(self.facts)}: {then or 'the end'}; now {fact}"
            if fact != then:
                raise Diverged(self.diverged)
        self.facts.append(fact)

    def release(self, made: Recorded) -> Any:
        """Write down a release and hand it on; in a replay, the earlier one."""
        self.note(made.fact)
        if self.frozen is not None:
            then = self.frozen[len(self.values)]
            made = replace(made, released=then.released, noisy=then.noisy)
        self.values.append(made)
        return copy.deepcopy(made.released)

    @property
    def next_release(self) -> Any:
        """What will be released next, if this is a replay and it is known."""
        known = self.frozen is not None and len(self.values) < len(self.frozen)
        return copy.deepcopy(self.frozen[len(self.values)].released) if known else None  # type: ignore[index]

    def place(self, grant: Any) -> int:
        """Place of a grant in the order of use."""
        return self._grants.setdefault(grant, len(self._grants))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """While a mechanism runs, the ones that it is built of are not recorded."""
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
