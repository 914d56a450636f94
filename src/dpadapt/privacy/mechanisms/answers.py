"""Answers of a private kernel model to questions that come one after another.

The model itself is never released. Its un-noised answers are told to a mechanism of this package
alone: a path of noise (:mod:`.path`) or a machine of the papers, made by :mod:`.asking`.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from threading import RLock
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray

from ..core.session import Session
from ..rows.errors import LET_THROUGH, PrivacyError, unreadable
from ..rows.quiet import muted
from .interactive_model import InteractiveModel
from .secret_state import Remembered, SecretState

_TOGETHER = 256  # new questions that are drawn, and written, at a time


class Answers(ABC):
    """Answers that are remembered: in memory, and in a file if there is one.

    Made by :mod:`.asking`. Any number of threads of its process
    may ask at once; each question is drawn once.

    Attributes
    ----------
    remembers : bool
        What was asked is told, by how many different questions there were: so no map of private
        rows may ask.
    """

    remembers: ClassVar[bool] = True

    def __init__(
        self,
        session: Session,
        model: InteractiveModel,
        coefficients: FloatArray,
        scale: float,
        state: SecretState | None,
    ) -> None:
        self._session, self._model, self._scale = session, model, scale
        self._coefficients, self._state = coefficients, state
        self._known: dict[bytes, FloatArray] = {}
        self._lock, self._closed = RLock(), ""
        self._factors: list[FloatArray] | None = None
        self._prepare()

    # asking

    def ask(self, table: Any) -> FloatArray:
        """Answers, of shape (m, k); a question that was asked before has its answer already."""
        self._session._home.check()  # before the lock: a fork may have copied it locked
        keys = self._model.questions.encode(table)
        with self._lock:
            self._check_open()
            new = self._new(keys)
            for start in range(0, len(new), _TOGETHER):
                self._answer(new[start : start + _TOGETHER])
            return np.array([self._known[key] for key in keys]).reshape(len(keys), -1)

    def _new(self, keys: Sequence[bytes]) -> list[bytes]:
        """Those among the questions that were never asked, if there is room for them."""
        new = [key for key in dict.fromkeys(keys) if key not in self._known]
        if len(self) + len(new) > self._model.most:
            raise ValueError(
                f"most_questions: {len(self)} different questions were answered, and {len(new)} "
                f"more would pass the {self._model.most} that are allowed; none of these was "
                "answered. Earlier questions are still answered. Every question takes memory for "
                "good: allow more, if there is enough."
            )
        return new

    def _answer(self, keys: Sequence[bytes]) -> None:
        """Draw new answers, bring them to disk, and only then remember them."""
        if self._state is not None:
            self._state.begin()
        try:
            self._catch_up()
            new = [key for key in keys if key not in self._known]
            with muted():
                drawn = self._draw(new)
            if self._state is not None:
                self._state.append(drawn)
                self._state.commit()
        except BaseException as error:
            # what is in memory now is not what is on disk
            failure = self._shut(error)
            if failure is None:
                raise
        else:
            self._known |= {one.question: np.frombuffer(one.answer) for one in drawn}
            return
        raise failure  # out here, so that it does not carry the first error along

    def _shut(self, error: BaseException) -> PrivacyError | None:
        """Close after a failure, for good; what to raise, None for what is no error of ours."""
        self._closed = (
            "the predictor closed itself, because an answer could not be drawn and written down; "
            "none has left. Restore it from its state file, if it has one."
        )
        self.close()
        if isinstance(error, sqlite3.Error) and self._state is not None:
            return PrivacyError(
                f"state: {self._state.path} could not be written ({type(error).__name__}: is the "
                f"disk full?); {self._closed}"
            )
        if isinstance(error, (PrivacyError, *LET_THROUGH)):
            return None
        return unreadable(error)

    def _catch_up(self) -> None:
        """Take over what was answered by an earlier process, or another one."""
        if self._state is None:
            return
        others: list[Remembered] = []
        for one in self._state.new():
            others.append(one)
            if len(others) == _TOGETHER:
                self._take_over(others)
                others = []
        if others:
            self._take_over(others)

    def _take_over(self, others: Sequence[Remembered]) -> None:
        self._adopt(others)
        self._known |= {one.question: np.frombuffer(one.answer) for one in others}

    def _write_down(self, coefficients: FloatArray) -> None:
        """What a restart needs; a crash before this leaves a file that cannot be restored."""
        if self._state is None:
            return
        try:
            self._state.begin()
            self._state.write("scale", np.array([self._scale]).tobytes())
            self._state.write("coefficients", np.ascontiguousarray(coefficients).tobytes())
            self._state.write("start", self._start())
            self._state.commit()
        except BaseException as error:
            failure = self._shut(error)
            if failure is None:
                raise
        else:
            return
        raise failure

    def _scores(self, questions: Any) -> FloatArray:
        """Un-noised answers <w*, phi(z)>, for a mechanism alone."""
        rows, gram = self._session._part("all").rows, self._model.gram
        if self._factors is None:
            blocks = rows.long_blocks()
            self._factors = [gram.factors(block) * self._counts(y) for block, y in blocks]
        own = gram.factors(questions)
        out = np.zeros((questions.shape[0], self._coefficients.shape[1]))
        done = 0
        for (block, _), factors in zip(rows.long_blocks(), self._factors, strict=True):
            values = gram.between(block, questions, factors, own)
            out += values.T @ self._coefficients[done : done + len(factors)]
            done += len(factors)
        return out

    def _counts(self, y: FloatArray | None) -> Any:
        """1 for a row that counts, 0 for one that has no label."""
        return 1.0 if y is None or self._model.gram.labels is None else np.isfinite(y)

    def __len__(self) -> int:
        return len(self._known)

    @property
    def updates_used(self) -> int | None:
        """Updates of a machine's public model so far; None for a path, which has none."""
        return None

    @property
    def updates_left(self) -> int | None:
        """Updates that are paid for still."""
        return None

    def _check_open(self) -> None:
        if self._closed:
            raise PrivacyError(self._closed)

    def close(self) -> None:
        """Close session and file."""
        with self._lock:
            self._closed = self._closed or "the predictor is closed; restore it, or fit a new one."
            self._session.__exit__()
            if self._state is not None:
                self._state.close()

    @abstractmethod
    def _prepare(self) -> None: ...
    @abstractmethod
    def _draw(self, keys: Sequence[bytes]) -> list[Remembered]: ...
    @abstractmethod
    def _adopt(self, others: Sequence[Remembered]) -> None: ...
    def _start(self) -> bytes:
        """State before the first question."""
        return b""

    def __repr__(self) -> str:
        return "Answers()"

    def __reduce__(self) -> Any:
        raise TypeError("a predictor's secret state cannot be copied or pickled.")
