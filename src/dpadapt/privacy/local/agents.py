"""``Agents``: people who trust nobody and answer one question each, once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ..core.home import Home
from ..core.noise import noise_source
from .holders import Holders, MemoryHolders, ParquetHolders, ProcessHolders
from .poll import Poll


class Agents:
    """People who each hold their own row and answer one question, through a randomiser, once.

    Like :class:`dpadapt.Private` an opaque handle: no length, no items, no pickling. Which agents
    were asked is remembered here for the life of the object, across fits and threads: an agent that
    was asked is spent, even if it never answered. A forked process has a copy that would not know
    of it, and is refused. A second object on the same people does not know
    it, so keep to one; a real device can remember by itself. Here the process holds all rows and
    plays all the devices; :meth:`from_processes` has real ones.

    One role a person: who is also a row of a curator's private table pays both guarantees.

    A poll may make its next question from the replies to the last (sequential interaction): every
    agent's message is epsilon-DP for its own row whatever the question is.

    Parameters
    ----------
    X : array, DataFrame or list of lists of shape (N, d)
        One row a person; cells may be anything.
    y : array or Series of shape (N,), optional
        Labels: numbers or texts.

    Attributes
    ----------
    n_agents, n_left, n_columns : int
    labelled : bool

    Examples
    --------
    >>> from dpadapt.hybrid.questions import Below
    >>> rng = np.random.default_rng(0)
    >>> agents = Agents(rng.normal(size=(20_000, 2)))
    >>> with agents.open(epsilon=1.0) as poll:
    ...     replies = poll.ask(Below(np.zeros(10_000, int), np.full(10_000, 0.5)))
    >>> replies, agents.n_left
    (Replies(10000 of 10000 agents), 10000)
    >>> from dpadapt.privacy.local.replies import estimate
    >>> found = estimate(replies, beta=1e-9)
    >>> found.low < 0.69 < found.high  # the normal law's 0.6915, give or take
    True
    """

    __slots__ = ("_asked", "_holders", "_home", "_lock")

    def __init__(self, X: Any, y: Any = None) -> None:
        self._hold(MemoryHolders(X, y))

    @classmethod
    def from_parquet(
        cls, path: str | Path | Sequence[str | Path], *, label: str | None = None
    ) -> Agents:
        """Agents whose rows are in Parquet files; read in blocks, never all at once.

        Agents are asked in random order, so each question is one pass over the files.

        Parameters
        ----------
        path : path, list of paths, or folder
        label : str, optional
            The column that holds the label.

        Examples
        --------
        >>> import pandas as pd, tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.parquet"
        >>> pd.DataFrame({"age": [30, 40], "sick": [0, 1]}).to_parquet(file)
        >>> Agents.from_parquet(file, label="sick")
        Agents(2 agents, 2 left, 1 column, labelled)
        """
        return cls._of(ParquetHolders(path, label))

    @classmethod
    def from_processes(
        cls,
        commands: Sequence[Sequence[str]],
        *,
        n_columns: int,
        timeout: float = 30.0,
        at_once: int = 64,
    ) -> Agents:
        """Agents that are programs of their own, hold their own row, and answer over a pipe.

        Each is started when it is asked, gets one line with its question, writes one line, and
        ends. Whoever does not answer, answers twice or otherwise than it should is left out and
        counted in :attr:`Replies.problems`; it is spent all the same. The program is trusted by its
        owner to randomise; here nobody needs trust it.

        Parameters
        ----------
        commands : sequence of argument lists
            One program for each agent, e.g. ``["dpadapt", "agent", "--row", "my.json", ...]``.
        n_columns : int
            Columns of their rows, the label not counted; public.
        timeout : float, default=30
            Seconds that an agent has from its start to its answer.
        at_once : int, default=64
            Processes at the same time. A question to ``count`` agents takes
            ``ceil(count / at_once) * timeout`` seconds at most.

        Examples
        --------
        >>> Agents.from_processes([["my-device", "--once"]] * 40, n_columns=3)
        Agents(40 agents, 40 left, 3 columns, labelled)
        """
        return cls._of(ProcessHolders(commands, n_columns, timeout, at_once))

    @classmethod
    def _of(cls, holders: Holders) -> Agents:
        new = cls.__new__(cls)
        new._hold(holders)
        return new

    def _hold(self, holders: Holders) -> None:
        self._holders = holders
        self._asked = np.zeros(holders.n_agents, dtype=bool)
        self._home, self._lock = Home("the handle on the agents"), Lock()

    @property
    def n_agents(self) -> int:
        """Number of agents (public)."""
        return self._holders.n_agents

    @property
    def n_left(self) -> int:
        """Number of agents that were never asked (public)."""
        return int(self.n_agents - np.count_nonzero(self._asked))

    @property
    def n_columns(self) -> int:
        """Number of columns of a row, the label not counted (public)."""
        return self._holders.n_columns

    @property
    def labelled(self) -> bool:
        """Whether agents know their label (public)."""
        return self._holders.labelled

    def open(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        response: str = "binary",
        noise: str = "secure",
        random_state: int | None = None,
    ) -> Poll:
        """Open a poll at one epsilon; use it in a ``with`` block.

        Parameters
        ----------
        epsilon : float
            Of the one message that each agent sends.
        delta : float, default=0
            0 for the binary response; the Gaussian ones need it.
        response : {"binary", "gaussian", "paper-gaussian"}, default="binary"
            How a bit or a number in [0, 1] is sent: :class:`BinaryResponse`, or
            :class:`GaussianResponse` in its tight or in paper 003's form. Vectors are always sent
            by :class:`BallResponse`.
        noise : {"secure", "seeded", "exact"}, default="secure"
        random_state : int, optional
            The seed, for ``noise="seeded"`` only; fixes the order of asking, too.
        """
        self._home.check()
        return Poll(
            self,
            epsilon=epsilon,
            delta=delta,
            response=response,
            source=noise_source(noise, random_state),
            order=np.random.default_rng(None if random_state is None else [random_state, 1]),
        )

    def __repr__(self) -> str:
        kind = "labelled" if self.labelled else "unlabelled"
        return (
            f"Agents({self.n_agents} agent{'s' * (self.n_agents != 1)}, {self.n_left} left, "
            f"{self.n_columns} column{'s' * (self.n_columns != 1)}, {kind})"
        )

    def __copy__(self) -> Agents:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Agents:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "Agents cannot be pickled, and so cannot be sent to other processes: a copy would not "
            "know who was asked. Use n_jobs=1."
        )
