"""Messages between who asks and an agent's device: one JSON object a line, whatever carries it.

A question for one agent::

    {"dpadapt": 1, "ask": {...}, "agent": 17, "epsilon": 1.0}

and what the device says to it, a reply or a refusal::

    {"dpadapt": 1, "agent": 17, "answer": 0}
    {"dpadapt": 1, "agent": 17, "refused": "answered before"}

An answer is 0 or 1, or a list of numbers of the norm that the randomiser gives every message. The
number behind "dpadapt" is the version. Here are only texts and plain values: a pipe, a socket or a
queue may carry them.
"""

from __future__ import annotations

import json
import math
from typing import Any

_VERSION = 1
LONGEST_QUESTION = 1 << 24  # bytes
REFUSALS = ("answered before", "epsilon above the cap", "not a question")


def write_question(question: dict[str, Any], agent: int, epsilon: float) -> bytes:
    r"""Line that asks one agent.

    Examples
    --------
    >>> write_question({"kind": "below"}, agent=3, epsilon=0.5)
    b'{"dpadapt": 1, "ask": {"kind": "below"}, "agent": 3, "epsilon": 0.5}\n'
    """
    return _line({"dpadapt": _VERSION, "ask": question, "agent": agent, "epsilon": epsilon})


def read_question(line: bytes) -> tuple[dict[str, Any], int, float]:
    """Question, agent and epsilon of a line; ValueError if it asks nothing.

    Examples
    --------
    >>> read_question(write_question({"kind": "below"}, agent=3, epsilon=0.5))
    ({'kind': 'below'}, 3, 0.5)
    """
    if len(line) > LONGEST_QUESTION:
        raise ValueError("the question is too long.")
    message = _message(line, {"dpadapt", "ask", "agent", "epsilon"})
    question, epsilon = message["ask"], message["epsilon"]
    if not isinstance(question, dict) or not _is_number(epsilon) or not 0 < epsilon < math.inf:
        raise ValueError("not a question.")
    return question, _agent(message), float(epsilon)


def write_reply(agent: int, answer: int | list[float]) -> bytes:
    r"""Line that answers.

    Examples
    --------
    >>> write_reply(3, 1)
    b'{"dpadapt": 1, "agent": 3, "answer": 1}\n'
    """
    return _line({"dpadapt": _VERSION, "agent": agent, "answer": answer})


def write_refusal(agent: int, reason: str) -> bytes:
    r"""Line that refuses, for one of the reasons in ``REFUSALS``; none depends on the row.

    Examples
    --------
    >>> write_refusal(3, "answered before")
    b'{"dpadapt": 1, "agent": 3, "refused": "answered before"}\n'
    """
    if reason not in REFUSALS:
        raise ValueError(f"reason must be one of {', '.join(REFUSALS)}.")
    return _line({"dpadapt": _VERSION, "agent": agent, "refused": reason})


def read_reply(
    line: bytes, agent: int, *, width: int = 1, norm: float | None = None
) -> int | list[float]:
    """Answer of that agent in a line; ValueError ("refused") for a refusal, or if it is none.

    Parameters
    ----------
    line : bytes
    agent : int
        The one that was asked.
    width : int, default=1
        Numbers in an answer that is a vector.
    norm : float, optional
        Norm of an answer that is a vector; by default the answer is a bit.

    Examples
    --------
    >>> read_reply(write_reply(3, [0.0, -2.0]), agent=3, width=2, norm=2.0)
    [0.0, -2.0]
    >>> read_reply(write_reply(4, 1), agent=3)
    Traceback (most recent call last):
    ...
    ValueError: a reply of another agent.
    """
    if b'"refused"' in line:
        message = _message(line, {"dpadapt", "agent", "refused"})
        if message["refused"] in REFUSALS:
            raise ValueError("refused")
        raise ValueError("not a reply.")
    message = _message(line, {"dpadapt", "agent", "answer"})
    if _agent(message) != agent:
        raise ValueError("a reply of another agent.")
    answer = message["answer"]
    if norm is None:
        if type(answer) is not int or answer not in (0, 1):
            raise ValueError("the answer must be 0 or 1.")
        return answer
    if not isinstance(answer, list) or len(answer) != width or not all(map(_is_number, answer)):
        raise ValueError(f"the answer must be {width} numbers.")
    vector = [float(each) for each in answer]
    if not math.isclose(math.hypot(*vector), norm, rel_tol=1e-9):
        raise ValueError(f"the answer must have the norm {norm:.6g}.")
    return vector


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, allow_nan=False).encode() + b"\n"


def _message(line: bytes, keys: set[str]) -> dict[str, Any]:
    """Return the object in a line, of this version, with these keys and no other."""
    try:
        message = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ValueError("not a message.") from None
    if not isinstance(message, dict) or set(message) != keys:
        raise ValueError("not a message.")
    if type(message["dpadapt"]) is not int or message["dpadapt"] != _VERSION:
        raise ValueError("a message of another version.")
    return message


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _agent(message: dict[str, Any]) -> int:
    agent = message["agent"]
    if type(agent) is not int or agent < 0:
        raise ValueError("agent must be a whole number.")
    return agent


def _is_number(value: Any) -> bool:
    """Whether it is a number that a float can hold: JSON knows numbers of any length."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
