"""One line to each of many programs, one line back: deadlines, bounds, and nobody left behind.

What the lines say is not known here. Every program gets its line on the standard input, which is
then closed; what it writes is read until it closes its output, writes too much, or its time is up.
Then it is ended, with whatever it started, and waited for (:mod:`._family` says what cannot be
ended). POSIX only.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

from ._family import MARK, end_family

_CHUNK = 1 << 16  # bytes


@dataclass(frozen=True)
class ProgramOutput:
    """What one program said.

    Attributes
    ----------
    line : bytes
        Its only line; empty if there is a problem.
    problem : str or None
        "unstarted": there is no such program. "silent": no line in time. "died": it ended without
        a line. "twice": more than one line. "long": more bytes than allowed. None: one line.

    Examples
    --------
    >>> ProgramOutput(b"", "silent").problem
    'silent'
    """

    line: bytes
    problem: str | None = None


@dataclass(eq=False)
class _Talk:
    """A program that runs."""

    place: int
    process: subprocess.Popen[bytes]
    mark: str
    unsaid: memoryview
    deadline: float
    said: bytearray = field(default_factory=bytearray)

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout


def ask_programs(
    commands: Sequence[Sequence[str]],
    lines: Iterable[bytes],
    *,
    timeout: float,
    at_once: int,
    most_bytes: int,
) -> list[ProgramOutput]:
    r"""Give each program its line, and hear what it says.

    Parameters
    ----------
    commands : sequence of argument lists
    lines : iterable of bytes
        One for each program; drawn when the program is started.
    timeout : float
        Seconds that each has from its start.
    at_once : int
        Programs that run at the same time.
    most_bytes : int
        Output that is read of each; whoever writes more is ended.

    Examples
    --------
    >>> ask_programs([["cat"], ["true"]], [b"hello\n"] * 2, timeout=5, at_once=2, most_bytes=100)
    [ProgramOutput(line=b'hello\n', problem=None), ProgramOutput(line=b'', problem='died')]
    """
    if os.name != "posix":
        raise OSError("agents in processes need a POSIX system (Linux, macOS).")
    heard: list[ProgramOutput | None] = [None] * len(commands)
    waiting = iter(zip(range(len(commands)), commands, lines, strict=True))
    running: set[_Talk] = set()
    with selectors.DefaultSelector() as selector:
        try:
            while True:
                for talk, place in _start(waiting, at_once - len(running), timeout):
                    if talk is None:
                        heard[place] = ProgramOutput(b"", "unstarted")
                        continue
                    running.add(talk)
                    selector.register(talk.stdin, selectors.EVENT_WRITE, talk)
                    selector.register(talk.stdout, selectors.EVENT_READ, talk)
                if not running:
                    break
                for talk, late in _finished(selector, running, most_bytes):
                    running.discard(talk)
                    _forget(selector, talk)
                    heard[talk.place] = _verdict(talk, late, most_bytes)
        finally:
            for talk in running:  # only if something was raised meanwhile
                _end(talk)
    return [each for each in heard if each is not None]


def _start(
    waiting: Iterator[tuple[int, Sequence[str], bytes]], room: int, timeout: float
) -> Iterator[tuple[_Talk | None, int]]:
    """Start as many of those that wait as there is room for."""
    while room > 0 and (each := next(waiting, None)) is not None:
        place, command, line = each
        mark = uuid.uuid4().hex
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # so that it can be ended with all that it started
                env={**os.environ, MARK: mark},
            )
        except (OSError, ValueError):
            yield None, place
            continue
        talk = _Talk(place, process, mark, memoryview(line), time.monotonic() + timeout)
        os.set_blocking(talk.stdin.fileno(), False)
        os.set_blocking(talk.stdout.fileno(), False)
        room -= 1
        yield talk, place


def _finished(
    selector: selectors.BaseSelector, running: set[_Talk], most_bytes: int
) -> list[tuple[_Talk, bool]]:
    """Wait for something to happen; give those that are done, and whether their time was up."""
    first = min(talk.deadline for talk in running)
    events = selector.select(max(0.0, first - time.monotonic()))
    done = []
    for key, _ in events:
        talk: _Talk = key.data
        if key.fileobj is talk.stdout:
            if _listen(talk, most_bytes):
                done.append((talk, False))
        elif _speak(talk):
            selector.unregister(talk.stdin)
            talk.stdin.close()
    now, ended = time.monotonic(), {talk for talk, _ in done}
    return done + [(talk, True) for talk in running - ended if talk.deadline <= now]


def _speak(talk: _Talk) -> bool:
    """Write what the pipe takes; whether all is said, or nobody listens any more."""
    try:
        talk.unsaid = talk.unsaid[os.write(talk.stdin.fileno(), talk.unsaid[:_CHUNK]) :]
    except BlockingIOError:
        return False
    except OSError:
        return True
    return not len(talk.unsaid)


def _listen(talk: _Talk, most_bytes: int) -> bool:
    """Read what there is; whether nothing more will be read."""
    try:
        chunk = os.read(talk.stdout.fileno(), most_bytes + 1 - len(talk.said))
    except BlockingIOError:
        return False
    except OSError:
        return True
    talk.said += chunk
    return not chunk or len(talk.said) > most_bytes


def _verdict(talk: _Talk, late: bool, most_bytes: int) -> ProgramOutput:
    said = bytes(talk.said)
    if len(said) > most_bytes:
        return ProgramOutput(b"", "long")
    if not said.strip() or (late and b"\n" not in said):
        return ProgramOutput(b"", "silent" if late else "died")
    if b"\n" in said.strip():
        return ProgramOutput(b"", "twice")
    return ProgramOutput(said)


def _forget(selector: selectors.BaseSelector, talk: _Talk) -> None:
    for pipe in (talk.stdin, talk.stdout):
        if not pipe.closed:
            with suppress(KeyError):
                selector.unregister(pipe)
    _end(talk)


def _end(talk: _Talk) -> None:
    """End a program with all that it started, and wait for it: no zombie stays."""
    end_family(talk.process.pid, talk.mark)
    for pipe in (talk.stdin, talk.stdout):
        with suppress(OSError):
            pipe.close()
    talk.process.wait()
