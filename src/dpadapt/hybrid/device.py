"""The side of one agent: its own row, its own cap on epsilon, one answer for ever.

A device trusts nobody. It randomises by itself, never answers at a larger epsilon than its owner
allows, answers one question, and can keep that fact in a file, so that a restart does not answer
again. What it refuses, and why, never depends on its row.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import Any

from dpadapt.privacy.agents import Agents
from dpadapt.privacy.errors import PrivacyError

from . import protocol
from .questions import question_from_dict

__all__ = ["Device"]


class Device:
    r"""Answers one question about one row.

    Parameters
    ----------
    row : sequence of cells
    label : object, optional
        The row's label.
    epsilon : float
        The most that the owner allows; a question at a smaller epsilon gets more noise.
    state : path, optional
        File that is made before the answer leaves. If it exists, nothing is answered.

    Examples
    --------
    >>> from dpadapt.hybrid.questions import Below
    >>> device = Device([0.3, 1.7], epsilon=1.0)
    >>> line = Below([1], [2.0]).request(0, agent=5, epsilon=1.0)
    >>> protocol.read_reply(device.answer(line), agent=5) in (0, 1)
    True
    >>> device.answer(line)
    b'{"dpadapt": 1, "agent": 5, "refused": "answered before"}\n'
    """

    def __init__(
        self, row: Any, label: Any = None, *, epsilon: float, state: str | Path | None = None
    ) -> None:
        # without a label the device is asked like any other, and is of no class
        self._agents = Agents([list(row)], [label])
        self._agents.open(epsilon=epsilon)  # says so if the cap is no epsilon
        self.epsilon = float(epsilon)
        self._state = None if state is None else Path(state)
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
        with self._lock:
            if not self._agents.n_left or not self._remember():
                return protocol.write_refusal(agent, "answered before")
            try:
                sent = poll.ask(question, 1).values[0]
            except PrivacyError:  # no word of why: the row may be the reason
                return protocol.write_refusal(agent, "answered before")
        answer = sent.tolist() if question.kind == "ball" else int(sent)
        return protocol.write_reply(agent, answer)

    def _remember(self) -> bool:
        """Write down that there was an answer, before it leaves; False if there was one."""
        if self._state is None:
            return True
        try:
            handle = os.open(self._state, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            return False
        try:
            os.write(handle, b"answered\n")
            os.fsync(handle)
        finally:
            os.close(handle)
        return True

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a device cannot be copied: the copy would answer again.")
