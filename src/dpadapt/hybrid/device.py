"""The side of one agent: its own row, its own cap on epsilon, one answer for ever.

A device trusts nobody. It randomises by itself, never answers at a larger epsilon than its owner
allows, and answers one question. The answer is kept in a file before it leaves: who asks the same
again, also after a restart, gets the same bytes; another question is refused. What it refuses, and
why, never depends on its row.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any

from dpadapt.privacy.core.errors import PrivacyError
from dpadapt.privacy.local.agents import Agents

from . import protocol
from .device_state import AnswerOnce
from .questions import question_from_dict


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
