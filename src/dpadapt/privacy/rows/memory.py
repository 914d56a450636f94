"""How much memory there is left, where the system says so."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")


class NotEnoughMemory(MemoryError):
    """Sizes alone tell that memory will not do."""


def check_memory(label: str, needed: float) -> None:
    """Refuse what needs more bytes than there are, by sizes alone, before anything is read.

    Examples
    --------
    >>> check_memory("rows", 1000)
    >>> check_memory("rows", 1e18)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    dpadapt.privacy.rows.memory.NotEnoughMemory: rows: 1e+09 GB of memory are needed, and ... GB \
are free. Take fewer rows or columns, or a machine or container that has more memory.
    """
    if needed > (free := free_memory()):
        raise NotEnoughMemory(
            f"{label}: {needed / 1e9:.3g} GB of memory are needed, and {free / 1e9:.3g} GB are "
            "free. Take fewer rows or columns, or a machine or container that has more memory."
        )


def free_memory() -> float:
    """Bytes that this process can still take: of the machine, its container, its own limit.

    Examples
    --------
    >>> free_memory() > 0
    True
    """
    found = [math.inf]
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found.append(next(int(s.split()[1]) for s in lines if s.startswith("MemAvailable")) * 1024)
    with contextlib.suppress(OSError, ValueError):
        most, used = ((_GROUP / f"memory.{n}").read_text() for n in ("max", "current"))
        found.append(int(most) - int(used))
    with contextlib.suppress(OSError, ValueError, ImportError):
        import resource

        most_mapped, _ = resource.getrlimit(resource.RLIMIT_AS)
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        if most_mapped != resource.RLIM_INFINITY:
            found.append(most_mapped - mapped)
    return max(0.0, min(found))
