"""Answers of a private kernel model to questions that come one after another.

The model itself is never released. An :class:`Oracle` knows its un-noised answers and tells them
to a mechanism alone; the mechanism's state is on disk before an answer leaves
(:mod:`.secret_state`), and a question that was answered is answered from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ._cells import muted
from .errors import PrivacyError
from .events import FloatArray
from .gram import Gram
from .grants import Grant, Hidden
from .paths import LazyPath
from .secret_state import Remembered, SecretState
from .session import Session

__all__ = ["Machine", "MachineAnswers", "Oracle", "PathAnswers", "Questions"]

_START = b"start"  # of a machine that has not been asked yet
_BITS = 12  # an answer is rounded to its noise over 2^12: its last digits must not betray it


class Questions(Protocol):
    """How questions are told apart and written down; public.

    A question must be rounded to a public grid, so that "the same question" means something.
    """

    def encode(self, table: Any) -> list[bytes]:
        """One text of bytes for each question; equal if and only if the questions are."""

    def decode(self, texts: Sequence[bytes]) -> Any:
        """Table of the questions."""


class Oracle:
    """Un-noised answers <w*, phi(z)> of a private model, for a mechanism alone.

    Parameters
    ----------
    session : Session
    gram : Gram
        The kernel.
    coefficients : Hidden
        Of shape (n, k): w* = sum of a_i phi(x_i), one column for each output.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> session, gram = Private([[0.5]] * 3).open(epsilon=1.0, delta=1e-6), Gram(np.inner, 1.0)
    >>> model = session.derive(session.hide_gram(gram), lambda K: K[:, :1], "model")
    >>> Oracle(session, gram, model)
    Oracle()
    """

    __slots__ = ("_coefficients", "_factors", "_gram", "_session")

    def __init__(self, session: Session, gram: Gram, coefficients: Hidden) -> None:
        if coefficients._owner is not session:
            raise PrivacyError("the coefficients must be hidden in the same session.")
        self._session, self._gram, self._coefficients = session, gram, coefficients
        self._factors: list[FloatArray] | None = None

    def _scores(self, questions: Any) -> FloatArray:
        rows, a = self._session._rows, self._coefficients._value
        if rows is None:
            raise PrivacyError("the session is closed; open a new one.")
        if self._factors is None:
            self._factors = [self._gram.factors(block) for block, _ in rows.long_blocks()]
        own = self._gram.factors(questions)
        out = np.zeros((questions.shape[0], a.shape[1]))
        done = 0
        for (block, _), factors in zip(rows.long_blocks(), self._factors, strict=True):
            values = self._gram.between(block, questions, factors, own)
            out += values.T @ a[done : done + len(factors)]
            done += len(factors)
        return out

    def __repr__(self) -> str:
        return "Oracle()"

    def __reduce__(self) -> Any:
        raise TypeError("an oracle cannot be copied or pickled.")


class _Answers(ABC):
    """Answers that are remembered: in memory, and in a file if there is one."""

    def __init__(self, session: Session, questions: Questions, state: SecretState | None) -> None:
        self._session, self._questions, self._state = session, questions, state
        self._known: dict[bytes, FloatArray] = {}
        if state is not None:
            with state.locked():
                self._catch_up()

    def ask(self, table: Any) -> FloatArray:
        """Answers, of shape (m, k); a question that was asked before has its answer already."""
        self._session._home.check()
        keys = self._questions.encode(table)
        if not all(key in self._known for key in keys):
            if self._state is None:
                self._answer(keys)
            else:
                with self._state.locked():
                    self._catch_up()
                    self._answer(keys)
        return np.array([self._known[key] for key in keys]).reshape(len(keys), -1)

    def __len__(self) -> int:
        return len(self._known.keys() - {_START})

    def close(self) -> None:
        """Close session and file."""
        self._session.__exit__()
        if self._state is not None:
            self._state.close()

    def _answer(self, keys: Sequence[bytes]) -> None:
        new = [key for key in dict.fromkeys(keys) if key not in self._known]
        if not new:
            return
        with muted():
            drawn = self._draw(new)
        if self._state is not None:
            self._state.append(drawn)
        self._known |= {one.key: np.frombuffer(one.answer) for one in drawn}

    def _catch_up(self) -> None:
        """Take over what was answered by an earlier process, or another one."""
        if self._state is not None and (others := self._state.since(len(self._known))):
            try:
                self._adopt(others)
                self._known |= {one.key: np.frombuffer(one.answer) for one in others}
            except (ValueError, TypeError, KeyError):
                raise PrivacyError(f"state: {self._state.path} is damaged.") from None

    @abstractmethod
    def _draw(self, keys: Sequence[bytes]) -> list[Remembered]: ...
    @abstractmethod
    def _adopt(self, others: Sequence[Remembered]) -> None: ...
    def __reduce__(self) -> Any:
        raise TypeError("a predictor's secret state cannot be copied or pickled.")


class PathAnswers(_Answers):
    """Any number of answers from one path of noise, for one charge.

    Parameters
    ----------
    session : Session
    grant : Grant
        Of a Gaussian request whose sensitivity is Delta, a bound on |w - w'| (of all outputs
        together).
    oracle : Oracle
    gram : Gram
    outputs : int
    questions : Questions
    state : SecretState, optional

    Examples
    --------
    >>> from dpadapt.privacy import Private, Request
    >>> class Points:
    ...     def encode(self, table):
    ...         return [row.tobytes() for row in table.round(6)]
    ...     def decode(self, texts):
    ...         return np.array([np.frombuffer(text) for text in texts])
    >>> session, gram = Private([[0.5]] * 3).open(epsilon=1.0, delta=1e-6), Gram(np.inner, 1.0)
    >>> model = session.derive(session.hide_gram(gram), lambda K: K[:, :1], "model")
    >>> (grant,) = session.plan(Request("gaussian", "answers", 0.01))
    >>> answers = PathAnswers(session, grant, Oracle(session, gram, model), gram, 1, Points())
    >>> one, two = answers.ask(np.array([[0.2], [0.2]]))
    >>> bool(one == two), len(answers)
    (True, 1)
    """

    def __init__(
        self,
        session: Session,
        grant: Grant,
        oracle: Oracle,
        gram: Gram,
        outputs: int,
        questions: Questions,
        state: SecretState | None = None,
    ) -> None:
        self._oracle, self._scale = oracle, session.spend(grant)
        # not rounded: they are scaled and added to a private score. The answer is rounded
        self._path = LazyPath(gram, outputs, session._source.normals)
        self._grid = 2.0 ** np.floor(np.log2(self._scale * gram.radius) - _BITS)
        super().__init__(session, questions, state)

    def _draw(self, keys: Sequence[bytes]) -> list[Remembered]:
        table = self._questions.decode(keys)
        noise = self._path.extend(table)
        answers = self._oracle._scores(table) + self._scale * noise
        rounded = np.round(answers / self._grid) * self._grid
        rows = zip(keys, noise, np.nan_to_num(rounded), strict=True)
        return [Remembered(key, key, g.tobytes(), answer.tobytes()) for key, g, answer in rows]

    def _adopt(self, others: Sequence[Remembered]) -> None:
        noise = np.array([np.frombuffer(one.secret) for one in others])
        self._path.adopt(self._questions.decode([one.question for one in others]), noise)


class Machine(Protocol):
    """An interactive mechanism with a state of its own, one question at a time."""

    def ask(self, question: Any) -> Any:
        """Answer; has an attribute ``value``."""

    def dump(self) -> bytes:
        """Whole state."""

    def load(self, state: bytes) -> None:
        """Go on from a state."""


class MachineAnswers(_Answers):
    """Answers of an interactive mechanism, which decides itself when it looks at private rows.

    Parameters
    ----------
    session : Session
    machine : callable
        From a function that gives the un-noised answer to one question, and the session's noise
        source, to a :class:`Machine`.
    oracle : Oracle
    questions : Questions
    state : SecretState, optional

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> class Always:  # a machine that never looks
    ...     value = 0.0
    ...     def ask(self, question):
    ...         return self
    ...     def dump(self):
    ...         return b""
    >>> class Texts:
    ...     def encode(self, table):
    ...         return [row.tobytes() for row in table]
    ...     def decode(self, texts):
    ...         return np.array([np.frombuffer(text) for text in texts])
    >>> session, gram = Private([[0.5]] * 3).open(epsilon=1.0, delta=1e-6), Gram(np.inner, 1.0)
    >>> model = session.derive(session.hide_gram(gram), lambda K: K[:, :1], "model")
    >>> oracle = Oracle(session, gram, model)
    >>> answers = MachineAnswers(session, lambda score, source: Always(), oracle, Texts())
    >>> answers.ask(np.array([[0.2]]))
    array([[0.]])
    """

    def __init__(
        self,
        session: Session,
        machine: Callable[[Callable[[Any], float], Any], Machine],
        oracle: Oracle,
        questions: Questions,
        state: SecretState | None = None,
    ) -> None:
        self.machine = machine(lambda z: float(oracle._scores(z)[0, 0]), session._source)
        super().__init__(session, questions, state)
        if state is not None and not len(state.since(0)):
            with state.locked():  # its first noise is a secret too
                state.append([Remembered(_START, b"", self.machine.dump(), b"")])
                self._known[_START] = np.zeros(0)

    def _draw(self, keys: Sequence[bytes]) -> list[Remembered]:
        drawn = []
        for key in keys:
            answer = self.machine.ask(self._questions.decode([key]))
            value = np.array([float(answer.value)])
            drawn.append(Remembered(key, key, self.machine.dump(), value.tobytes()))
        return drawn

    def _adopt(self, others: Sequence[Remembered]) -> None:
        self.machine.load(others[-1].secret)
