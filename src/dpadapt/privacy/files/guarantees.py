"""Guarantees from files that may be hostile: what they ask to be computed is bounded first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.guarantee import Guarantee

_MOST = 1_000_000  # releases, all events together: composing many takes long


def read_guarantee(data: Any) -> Guarantee:
    """Rebuild a guarantee from its values; refuse one that would take minutes to compose.

    Examples
    --------
    >>> read_guarantee(Guarantee().to_dict()).epsilon
    0.0
    >>> read_guarantee({"events": [{"count": 10**9}]})
    Traceback (most recent call last):
    ...
    ValueError: this guarantee is of more than 1,000,000 releases, the most that is read.
    """
    if _counted(data) > _MOST:
        raise ValueError(
            f"this guarantee is of more than {_MOST:,} releases, the most that is read."
        )
    return Guarantee.from_dict(data)


def _counted(data: Any) -> int:
    """All counts in it, however deep."""
    if isinstance(data, Mapping):
        own = data.get("count", 0)
        inner = sum(map(_counted, data.values()))
        return inner + (max(own, 0) if isinstance(own, int) else 0)
    return sum(map(_counted, data)) if isinstance(data, list | tuple) else 0
