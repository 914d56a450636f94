"""Ending a program with all that it started, wherever that went.

A group of processes is ended by one signal, but a process may leave its group (setsid) and its
parent (by outliving it). Two things stay: the environment that it was started with, which its
children inherit, and the parents that still live. Every program gets a mark in its environment;
on Linux whoever carries the mark, or descends from who does, is ended as well. Each is checked
again through a handle before the signal, so that no stranger with a used number is hit.

What cannot be found: a process that cleared its environment *and* lost all its parents, one of
another user, one that another service started on request, and, on systems without /proc, any that
left its group.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MARK = "DPADAPT_CONVERSATION"
_ROUNDS = 100  # of ending what was found: whoever forks meanwhile is found in the next
_PROC = Path("/proc")


class _Process(NamedTuple):
    number: int
    parent: int
    began: int  # clock ticks since the machine started


def end_family(leader: int, mark: str) -> None:
    """End a process that was not waited for yet, its group, and all that descends from it."""
    family: set[_Process] = set()
    for _ in range(_ROUNDS):
        found = set(_family(leader, mark, family))
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        for process in found:
            _end(process)
        if not found:
            return
        family |= found


def _family(leader: int, mark: str, known: set[_Process]) -> Iterator[_Process]:
    """Living processes that carry the mark or descend from one that does."""
    first = _read_process(leader, zombies=True)
    if first is None:
        return
    seen = {each.number: each for each in _all() if each.began >= first.began}
    numbers = {leader} | {each.number for each in known}
    numbers |= {number for number in seen if _carries(number, mark)}
    while more := {n for n, each in seen.items() if each.parent in numbers} - numbers:
        numbers |= more
    for number in numbers & seen.keys() - {os.getpid()}:
        yield seen[number]


def _all() -> Iterator[_Process]:
    with suppress(OSError):
        for name in os.listdir(_PROC):
            if name.isdigit() and (process := _read_process(int(name))) is not None:
                yield process


def _read_process(number: int, *, zombies: bool = False) -> _Process | None:
    try:
        text = (_PROC / str(number) / "stat").read_bytes()
    except OSError:
        return None
    fields = text.rpartition(b")")[2].split()  # a program's name may hold anything
    if fields[0] in (b"Z", b"X") and not zombies:
        return None
    return _Process(number, int(fields[1]), int(fields[19]))


def _carries(number: int, mark: str) -> bool:
    try:
        variables = (_PROC / str(number) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"{MARK}={mark}".encode() in variables


def _end(process: _Process) -> None:
    with suppress(OSError):
        handle = os.pidfd_open(process.number)
        try:
            again = _read_process(process.number)
            if again is not None and again.began == process.began:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
