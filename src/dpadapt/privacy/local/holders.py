"""Who holds the agents' rows and plays their devices: memory, files, or real processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpadapt._types import FloatArray, IntArray

from ... import _validate
from ..core.noise import NoiseSource
from ..rows.cells import cells_of, codes
from ..rows.quiet import muted, quiet, withhold_errors
from ..rows.sources import MemoryRows, ParquetRows
from ..rows.tables import numbers
from .randomisers import BinaryResponse, GaussianResponse
from .replies import Randomiser, Replies

_BLOCK = 32_768  # rows whose answers are computed at a time
Classes = tuple[Any, ...] | None
Held = tuple[IntArray, FloatArray, FloatArray | None]


class Question(Protocol):
    """What a poll needs to know of a question. Public: it depends on earlier messages only.

    Attributes
    ----------
    kind : {"bit", "unit", "ball"}
        Whether an answer is 0 or 1, a number in [0, 1], or a vector of norm at most 1.
    size : int or None
        Number of agents it is made for, each with its own part; None: the same for everybody.
    width : int
        Numbers in an answer.
    classes : tuple of labels, or None
        The classes that its labels -1 and 1 stand for, or 1, 2, 3, ... if they are more than two;
        None if no label is read.
    """

    @property
    def kind(self) -> str: ...
    @property
    def size(self) -> int | None: ...
    @property
    def width(self) -> int: ...
    @property
    def classes(self) -> Classes: ...
    def at(self, places: NDArray[np.int64]) -> Question:
        """The parts of those agents only."""

    def values(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """True answers, row by row; a label 0 is one of no class. Total."""

    def check(self, n_columns: int) -> None:
        """Raise if it does not fit rows of that many columns."""

    def request(self, place: int, agent: int, epsilon: float) -> bytes:
        """Message that puts the question to one agent."""

    def reply(self, line: bytes, agent: int, epsilon: float) -> Any:
        """Answer in a message of that agent; raises ValueError if it is none."""


class Holders(ABC):
    """Those who can answer for agents.

    Attributes
    ----------
    n_agents, n_columns : int
    labelled : bool
    """

    n_agents: int
    n_columns: int
    labelled: bool

    def admit(self, question: Question, randomiser: Randomiser) -> None:
        """Raise if they could not be asked this, before anybody is."""
        question.check(self.n_columns)
        if question.classes is not None and not self.labelled:
            raise ValueError("the question is about labels, but the agents have none.")

    @abstractmethod
    def answer(
        self, question: Question, asked: IntArray, randomiser: Randomiser, source: NoiseSource
    ) -> Replies:
        """Put the i-th part of a question to the i-th agent of ``asked``."""


class _RowHolders(Holders):
    """Rows in this process, which plays every device."""

    @abstractmethod
    def _held(self, asked: IntArray, classes: Classes) -> Iterator[Held]:
        """Blocks of the asked agents' rows: their places in ``asked``, X, labels as numbers."""

    def answer(
        self, question: Question, asked: IntArray, randomiser: Randomiser, source: NoiseSource
    ) -> Replies:
        bits = isinstance(randomiser, (BinaryResponse, GaussianResponse))
        shape = (len(asked),) if bits else (len(asked), question.width)
        sent = np.empty(shape)
        for places, X, y in self._held(asked, question.classes):
            true = _true(question.at(places), X, y, shape[1:])
            sent[places] = randomiser.respond(source, true)
        return Replies(sent, np.arange(len(asked)), asked, randomiser)


def _true(
    question: Question, X: FloatArray, y: FloatArray | None, shape: tuple[int, ...]
) -> FloatArray:
    """True answers; if a question fails on a row, nothing is told of why."""

    def answers() -> FloatArray:
        with muted():
            true = np.asarray(question.values(X, y), dtype=np.float64)
        if true.shape != (len(X), *shape):
            raise ValueError("a question must give one answer for each row.")
        return true

    return withhold_errors(answers)


class MemoryHolders(_RowHolders):
    """Rows of an array or a data frame.

    Examples
    --------
    >>> MemoryHolders(np.ones((3, 2)), None).n_agents
    3
    """

    def __init__(self, X: Any, y: Any) -> None:
        rows = MemoryRows(X, None)
        self._X, self._y = rows._X, y
        self.n_agents, self.n_columns = rows.n_rows, rows.n_columns
        self.labelled = y is not None
        self._signs: dict[tuple[Any, ...], FloatArray] = {}
        if y is not None and len(y) != self.n_agents:
            raise ValueError(f"y must hold one label for each of the {self.n_agents} agents.")

    def _held(self, asked: IntArray, classes: Classes) -> Iterator[Held]:
        labels = None if classes is None else self._labels(classes)
        for start in range(0, len(asked), _BLOCK):
            ids = asked[start : start + _BLOCK]
            with quiet():
                frame = hasattr(self._X, "iloc")
                X = numbers(self._X.iloc[ids] if frame else np.take(self._X, ids, axis=0))
            places = np.arange(start, start + len(ids))
            yield places, X, None if labels is None else labels[ids]

    def _labels(self, classes: tuple[Any, ...]) -> FloatArray:
        if classes not in self._signs:
            with quiet():
                self._signs[classes] = signs(self._y, classes)
        return self._signs[classes]


class ParquetHolders(_RowHolders):
    """Rows of Parquet files, read in blocks; of each only those are kept that were asked.

    Examples
    --------
    >>> import pandas as pd, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.parquet"
    >>> pd.DataFrame({"age": [30, 40]}).to_parquet(file)
    >>> ParquetHolders(file, None).n_agents
    2
    """

    def __init__(self, path: str | Path | Sequence[str | Path], label: str | None) -> None:
        from ..core.private import Private

        rows = Private.from_parquet(path, label=label)._rows
        assert isinstance(rows, ParquetRows)
        self._rows = rows
        self.n_agents, self.n_columns, self.labelled = rows.n_rows, rows.n_columns, rows.labelled

    def _held(self, asked: IntArray, classes: Classes) -> Iterator[Held]:
        order = np.argsort(asked)
        ids, start = asked[order], 0
        source = self._rows if classes is None else self._rows.coded(classes)
        for table, y in source.blocks():
            stop = start + len(table)
            first, last = np.searchsorted(ids, [start, stop])
            if first < last:
                inside = ids[first:last] - start
                with quiet():
                    X = numbers(table)[inside]
                labels = None
                if classes is not None and y is not None:
                    labels = _of_codes(y[inside], len(classes))
                yield order[first:last], X, labels
            start = stop


class ProcessHolders(Holders):
    """Programs that hold their own row; :mod:`.pipes` talks to them.

    Examples
    --------
    >>> ProcessHolders([["my-device"]], n_columns=2, timeout=1.0, at_once=8).n_agents
    1
    """

    labelled = True  # who has no label answers as one of no class

    def __init__(
        self, commands: Sequence[Sequence[str]], n_columns: int, timeout: float, at_once: int
    ) -> None:
        if any(isinstance(each, (str, bytes)) for each in commands):
            raise TypeError("commands must hold a list of arguments for each agent, not a text.")
        self._commands = [tuple(map(str, each)) for each in commands]
        if not all(self._commands):
            raise ValueError("commands must name a program for each agent.")
        self.n_agents = len(self._commands)
        self.n_columns = _validate.count("n_columns", n_columns)
        self._timeout = _validate.positive("timeout", timeout)
        self._at_once = _validate.count("at_once", at_once)

    def admit(self, question: Question, randomiser: Randomiser) -> None:
        super().admit(question, randomiser)
        if isinstance(randomiser, GaussianResponse):
            raise ValueError("agents in processes answer in bits and directions only.")
        if question.size != 0:
            question.request(0, 0, randomiser.epsilon)  # says so if it cannot be sent

    def answer(
        self, question: Question, asked: IntArray, randomiser: Randomiser, source: NoiseSource
    ) -> Replies:
        from .pipes import ask_programs

        epsilon, width = randomiser.epsilon, question.width
        said = ask_programs(
            [self._commands[agent] for agent in asked],
            (question.request(place, int(agent), epsilon) for place, agent in enumerate(asked)),
            timeout=self._timeout,
            at_once=self._at_once,
            most_bytes=256 + 64 * width,
        )
        values, places, problems = [], [], Counter[str]()
        for place, (agent, heard) in enumerate(zip(asked, said, strict=True)):
            problem = heard.problem
            if problem is None:
                try:
                    values.append(question.reply(heard.line, int(agent), epsilon))
                    places.append(place)
                except ValueError as error:
                    problem = "refused" if error.args == ("refused",) else "rubbish"
            if problem is not None:
                problems[problem] += 1
        shape = (len(values),) if isinstance(randomiser, BinaryResponse) else (len(values), width)
        return Replies(
            np.array(values, dtype=np.float64).reshape(shape),
            np.array(places, dtype=np.int64),
            asked,
            randomiser,
            dict(problems),
        )


def signs(labels: Any, classes: tuple[Any, ...]) -> FloatArray:
    """-1 for the first of two classes, 1 for the second; 1, 2, 3, ... of more; 0 for no class.

    Examples
    --------
    >>> signs(["no", "yes", None], ("no", "yes"))
    array([-1.,  1.,  0.])
    >>> signs(np.array([0, 1, 7]), (0, 1))
    array([-1.,  1.,  0.])
    >>> signs(["b", "c", None], ("a", "b", "c"))
    array([2., 3., 0.])
    """
    return _of_codes(codes(cells_of(labels), classes), len(classes))


def _of_codes(places: FloatArray, classes: int) -> FloatArray:
    numbered = 2 * places - 1 if classes == 2 else places + 1
    return np.asarray(np.nan_to_num(numbered, nan=0.0))
