"""A poll: questions to agents who were never asked before, and what their answers cost them."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpadapt._types import IntArray

from ... import _validate
from ..accounting.events import Event, ParallelEvent
from ..core.guarantee import Guarantee
from ..core.noise import _FLOAT_CAVEAT as FLOAT_CAVEAT
from ..core.noise import NoiseSource
from ..rows.errors import PrivacyError
from .holders import Question
from .randomisers import BallResponse, BinaryResponse, GaussianResponse
from .replies import Randomiser, Replies

if TYPE_CHECKING:
    from .agents import Agents


_CAVEATS = (
    "Each agent answered one question at most, once, and is never asked again.",
    "One role a person: somebody who is also a row of a curator's private table pays both "
    "guarantees.",
)


class AgentAskedTwice(PrivacyError):
    """An agent was to be asked that was asked before: refused, nobody was asked."""


class NotEnoughAgents(PrivacyError):
    """More agents are needed than are left: refused, nobody was asked."""

    def __init__(self, needed: int, left: int) -> None:
        self.needed, self.left = needed, left
        super().__init__(
            f"{needed} agents are needed, but only {left} are left that were never asked."
        )

    def __reduce__(self) -> Any:
        return (NotEnoughAgents, (self.needed, self.left))


class Poll:
    """Questions to fresh agents at one epsilon; made by :meth:`Agents.open`.

    Examples
    --------
    >>> from dpadapt.hybrid.questions import Within
    >>> from dpadapt.privacy.local.agents import Agents
    >>> agents = Agents(np.zeros((5, 1)))
    >>> with agents.open(epsilon=1.0) as poll:
    ...     _ = poll.ask(Within(np.zeros(2, int), np.zeros(2), np.ones(2)), ids=[4, 2])
    >>> poll.guarantee.epsilon, agents.n_left
    (1.0, 3)
    """

    def __init__(
        self,
        agents: Agents,
        *,
        epsilon: float,
        delta: float,
        response: str,
        source: NoiseSource,
        order: np.random.Generator,
    ) -> None:
        self.epsilon, self.delta = _validate.epsilon(epsilon), float(delta)
        self._number = _number_response(self.epsilon, delta, response)
        self._agents, self._source, self._order = agents, source, order
        self._used: dict[type, Randomiser] = {}
        self._count = 0
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False

    def ask(
        self, question: Question, count: int | None = None, *, ids: Sequence[int] | None = None
    ) -> Replies:
        """Put a question to fresh agents; they are spent from now on.

        Parameters
        ----------
        question : Question
        count : int, optional
            How many, drawn at random from those never asked; by default as many as the question is
            made for.
        ids : sequence of int, optional
            Ask these instead, in this order.

        Raises
        ------
        NotEnoughAgents, AgentAskedTwice
            Before anybody is asked.
        PrivacyError
            If the poll is closed, or was opened in another process.
        """
        self._agents._home.check()
        if not self._open:
            raise PrivacyError("the poll is closed; open a new one.")
        wanted = _wanted(question, count, ids)
        randomiser = self._number
        if question.kind == "ball":
            randomiser = BallResponse(self.epsilon, question.width)
        self._agents._holders.admit(question, randomiser)
        chosen = self._claim(wanted, ids)
        self._used[type(randomiser)] = randomiser
        self._count += wanted
        return self._agents._holders.answer(question, chosen, randomiser, self._source)

    def _claim(self, count: int, ids: Sequence[int] | None) -> IntArray:
        """Choose fresh agents and mark them as asked, in a step that no other thread enters."""
        asked = self._agents._asked
        with self._agents._lock:
            if ids is None:
                fresh = np.flatnonzero(~asked)
                if len(fresh) < count:
                    raise NotEnoughAgents(count, len(fresh))
                chosen = self._order.choice(fresh, count, replace=False)
            else:
                chosen = np.array([int(each) for each in ids], dtype=np.int64)
                if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(asked)):
                    raise ValueError(f"ids must lie between 0 and {len(asked) - 1}.")
                if len(np.unique(chosen)) < len(chosen) or asked[chosen].any():
                    raise AgentAskedTwice(
                        "an agent among ids was asked before, or is named twice; every agent "
                        "answers once. Nobody was asked."
                    )
            asked[chosen] = True
        return chosen

    @property
    def guarantee(self) -> Guarantee:
        """What each agent's one message costs that agent; epsilon 0 if nobody was asked."""
        if not self._used:
            return Guarantee()
        events: tuple[Event, ...] = tuple(r.event(self._source) for r in self._used.values())
        if len(events) > 1:
            label = "one message from each agent, of one kind or the other"
            events = (ParallelEvent(label, tuple((event,) for event in events)),)
        guarantee = Guarantee(events, self.delta, self._source.name)
        caveats = [*_CAVEATS, *self._source.caveats]
        if GaussianResponse not in self._used:  # bits and directions are exact in floating point
            caveats = [each for each in caveats if each != FLOAT_CAVEAT]
        if guarantee.epsilon > self.epsilon * (1 + 1e-9):
            caveats.append(
                f"epsilon {self.epsilon:.4g} was asked for, but the printed constants give "
                f"{guarantee.epsilon:.4g} at this delta."
            )
        bounds = {"agents asked": float(self._count)}
        return Guarantee(events, self.delta, self._source.name, bounds, tuple(caveats))


def _number_response(epsilon: float, delta: float, response: str) -> Randomiser:
    _validate.choice("response", response, ("binary", "gaussian", "paper-gaussian"))
    if response == "binary":
        if delta != 0:
            raise ValueError("delta must be 0 for response='binary', which is pure.")
        return BinaryResponse(epsilon)
    return GaussianResponse(epsilon, delta, "tight" if response == "gaussian" else "paper")


def _wanted(question: Question, count: int | None, ids: Sequence[int] | None) -> int:
    if ids is not None and count is not None:
        raise ValueError("give count or ids, not both.")
    size = question.size if ids is None else len(ids)
    if count is not None:
        size = _validate.count("count", count, least=0)
    if size is None:
        raise ValueError("count must say how many agents are asked; the question does not.")
    if question.size is not None and question.size != size:
        raise ValueError(f"the question is made for {question.size} agents, not for {size}.")
    return size
