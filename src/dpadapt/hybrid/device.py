"""The side of one agent: its own row, its cap on epsilon, one answer for ever, kept on disk.

**The one answer of a device, on disk before it leaves.**

The file holds a digest of the question and the reply itself. Processes take turns. It is written
whole, under another name, and then given its own name by a link, which fails where the name is
taken. That other name is always the same, and what a killed process left there is removed: at most
one answer that never left is ever on disk. Nothing in it is secret: the reply leaves anyway.
Whoever deletes the file makes the device answer again, with new noise; no device can notice that.

**The device.**

A device trusts nobody. It randomises by itself, never answers at a larger epsilon than its owner
allows, and answers one question. The answer is kept in a file before it leaves: who asks the same
again, also after a restart, gets the same bytes; another question is refused. What it refuses, and
why, never depends on its row.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from dpadapt.privacy.files.whole_files import draft_of, sync, writer_lock
from dpadapt.privacy.local.agents import Agents
from dpadapt.privacy.rows.errors import PrivacyError

from . import protocol
from .questions import question_from_dict

_VERSION = 1
_LONGEST = 1 << 24  # bytes of a file that is read


class AnswerOnce:
    r"""A file that holds at most one answer, for good.

    Parameters
    ----------
    path : path
        The file; it need not exist yet, its folder must.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> once = AnswerOnce(Path(folder.name) / "answered")
    >>> once.answer({"ask": 1}, lambda: b"first\n"), once.answer({"ask": 1}, lambda: b"second\n")
    (b'first\n', b'first\n')
    >>> once.answer({"ask": 2}, lambda: b"third\n") is None
    True
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(os.path.realpath(path))

    def answer(self, question: Any, draw: Callable[[], bytes]) -> bytes | None:
        """The stored answer to this question, or a new one; None if another one was answered.

        A file that is damaged, or of an older dpadapt, counts as another question.
        """
        asked = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()
        if (found := self._read()) is None:
            found = self._first(asked, draw)
        return _said(found or b"", asked)

    def _first(self, asked: str, draw: Callable[[], bytes]) -> bytes | None:
        """Draw and keep an answer, or find that of who was quicker."""
        with writer_lock(self._path.parent), draft_of(self._path, 0o600) as draft:
            if (found := self._read()) is not None:
                return found
            state = {"dpadapt": _VERSION, "asked": asked, "said": draw().decode()}
            self._write(draft, json.dumps(state))
            return self._read()

    def _read(self) -> bytes | None:
        """What the file holds, or None where there is none."""
        try:
            if not stat.S_ISREG(os.stat(self._path).st_mode):
                raise OSError(None, "state must be a file, and is something else", str(self._path))
            with open(self._path, "rb") as file:
                return file.read(_LONGEST)
        except FileNotFoundError:
            return None

    def _write(self, draft: Path, text: str) -> None:
        """Make the file, whole and on disk, unless it is there."""
        with open(draft, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, self._path)
        sync(self._path.parent)


def _said(found: bytes, asked: str) -> bytes | None:
    try:
        state = json.loads(found)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(state, dict) and isinstance(state.get("said"), str)
    if not whole or state.get("dpadapt") != _VERSION or state.get("asked") != asked:
        return None
    return str(state["said"]).encode()


class Device:
    r"""Answers one question about one row.

    Parameters
    ----------
    row : sequence of cells
    label : object, optional
        The row's label.
    epsilon : float
        The most that the owner allows; a question at a smaller epsilon gets more noise.
    state : path
        File of the answer: made before the answer leaves. One device, one file, for good.

    Examples
    --------
    >>> import tempfile
    >>> from dpadapt.hybrid.questions import Below
    >>> folder = tempfile.TemporaryDirectory()
    >>> device = Device([0.3, 1.7], epsilon=1.0, state=f"{folder.name}/answered")
    >>> line = Below([1], [2.0]).request(0, agent=5, epsilon=1.0)
    >>> first = device.answer(line)
    >>> protocol.read_reply(first, agent=5) in (0, 1), device.answer(line) == first
    (True, True)
    >>> device.answer(Below([1], [3.0]).request(0, agent=5, epsilon=1.0))
    b'{"dpadapt": 1, "agent": 5, "refused": "answered before"}\n'
    >>> folder.cleanup()
    """

    def __init__(self, row: Any, label: Any = None, *, epsilon: float, state: str | Path) -> None:
        # without a label the device is asked like any other, and is of no class
        self._agents = Agents([list(row)], [label])
        self._agents.open(epsilon=epsilon)  # says so if the cap is no epsilon
        self.epsilon = float(epsilon)
        self._once = AnswerOnce(state)
        self._lock = Lock()

    def answer(self, line: bytes) -> bytes:
        """Reply to one line, or refuse."""
        agent = 0
        try:
            asked, agent, epsilon = protocol.read_question(line)
            question = question_from_dict(asked)
            question.check(self._agents.n_columns)
            if question.size not in (None, 1):
                raise ValueError("a question for several agents.")
            poll = self._agents.open(epsilon=epsilon)
        except ValueError:
            return protocol.write_refusal(agent, "not a question")
        if epsilon > self.epsilon:
            return protocol.write_refusal(agent, "epsilon above the cap")
        refusal = protocol.write_refusal(agent, "answered before")

        def draw() -> bytes:
            try:
                sent = poll.ask(question, 1).values[0]
            except PrivacyError:  # no word of why: the row may be the reason
                return refusal
            answer = sent.tolist() if question.kind == "ball" else int(sent)
            return protocol.write_reply(agent, answer)

        with self._lock:
            return self._once.answer([asked, agent, epsilon], draw) or refusal

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a device cannot be copied: the copy would answer again.")
