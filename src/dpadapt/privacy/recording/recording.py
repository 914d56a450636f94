"""Make a recording, or play one: what stands at its :mod:`.places` meanwhile. For tests alone."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any

import numpy as np

from ... import _validate
from ..rows.errors import PrivacyError
from .places import places
from .tape import Recording

_ONE_AT_A_TIME = Lock()


@contextmanager
def recording(played: Recording | None = None, *, seed: int = 0) -> Iterator[Recording]:
    """Record what this process releases until the block ends; never on rows that matter.

    Parameters
    ----------
    played : Recording, optional
        Play it: every mechanism releases what it released then.
    seed : int, default=0
        Of all noise that would be secure.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.privacy.mechanisms import SymmetricGaussian
    >>> from dpadapt.privacy.statistics import SecondMoment
    >>> with recording() as heard:
    ...     with Private([[0.5]] * 100).open(epsilon=1.0, delta=1e-6) as session:
    ...         moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...         grant = session.plan(moment=SymmetricGaussian.of(moment)).moment
    ...         noisy = session.release(grant, moment)
    >>> [(one.label, one.value.tolist()) for one in heard.values]
    [('second moment', [0.25])]
    """
    _validate.count("seed", seed, least=0)
    now = Recording(
        None if played is None else played.values,
        _expected=None if played is None else played.facts,
    )
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise PrivacyError("another recording runs; one at a time, in one thread.")
    before: list[tuple[Any, str, Any]] = []
    try:
        for owner, name, wrapped in places(now, np.random.default_rng(seed)):
            original = inspect.getattr_static(owner, name)
            before.append((owner, name, original))
            setattr(owner, name, _here_only(original, wrapped))
        yield now
    finally:
        for owner, name, original in reversed(before):
            setattr(owner, name, original)
        _ONE_AT_A_TIME.release()


def _here_only(original: Any, wrapped: Any) -> Any:
    """What stands in for a method in the thread that records; other threads go on as before."""
    here = get_ident()

    def call(*args: Any, **options: Any) -> Any:
        return (wrapped if get_ident() == here else original)(*args, **options)

    return call
