"""What Subsample-Test-Reweigh asks of a learner.

A learner is configuration: it holds no data. Before the first round it says what it will release
in every round, given the densities that the weights will have then; in a round it trades the
grants of that round for one rule. Only the session reads rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpadapt.privacy import Cleaning, Grant, Prepared, Request, RowMap, Session
from dpadapt.privacy.weights import RowWeights

from .rules import LinearRule, Rule

__all__ = ["Learner", "Task"]

Array = NDArray[np.float64]

_LONGEST = 1e100  # of a row: squares stay finite


@dataclass(frozen=True, eq=False)
class Task:
    """The public facts of one fit.

    Parameters
    ----------
    n_rows, n_columns : int
        n and d of the curator's sample.
    blank : LinearRule
        A rule with coefficients 0: it knows the classes, the features and their public centre and
        scale, so that a linear learner only fills in coefficients.

    Examples
    --------
    >>> blank = LinearRule("linear", np.zeros(2), np.ones(2), np.zeros(3), (0, 1))
    >>> task = Task(n_rows=100, n_columns=2, blank=blank)
    >>> X, y = task.rows(np.array([[1.0, np.nan]] * 3), np.array([0.0, 1.0, -1.0]))
    >>> X[0], y
    (array([1., 0.]), array([-1.,  1.,  0.]))
    """

    n_rows: int
    n_columns: int
    blank: LinearRule

    @cached_property
    def rows(self) -> RowMap:
        """Rows as they are (0 for a cell that is no number), labels -1 and 1, 0 for no class."""
        return SignedRows(self.n_columns)

    @cached_property
    def embedded(self) -> RowMap:
        """Rows z(x) of the blank rule, of norm at most 1, with the same labels."""
        return SignedRows(self.blank.width, self.blank.embed)

    @cached_property
    def embedded_columns(self) -> RowMap:
        """The same rows column by column: products with a vector are twice as fast."""
        return SignedRows(self.blank.width, lambda X: np.asfortranarray(self.blank.embed(X)))


@dataclass(frozen=True, eq=False)
class SignedRows:
    """Rows, or public features of them, with labels -1 and 1; from labels coded 0 and 1.

    Parameters
    ----------
    width : int
    features : callable, optional
        From rows to rows of norm at most 1. By default rows stay as they are.
    """

    width: int
    features: Callable[[Array], Array] | None = None

    @property
    def radius(self) -> float:
        """Bound on the norm of what comes out."""
        return _LONGEST if self.features is None else 1.0

    @cached_property
    def _map(self) -> Prepared:
        def prepare(X: Array, y: Array | None) -> tuple[Array, Array | None]:
            signs = None if y is None else np.where(y < 0, 0.0, 2 * y - 1)
            return X if self.features is None else self.features(X), signs

        return Prepared(Cleaning(_LONGEST, classes=2), prepare, self.width)

    def __call__(self, X: Array, y: Array | None) -> tuple[Array, Array | None]:
        """Map one block; total and row by row."""
        return self._map(X, y)


class Learner(Protocol):
    """A private learner on weighted rows (the paper's M)."""

    def requests(self, task: Task, densities: Sequence[float]) -> tuple[Request, ...]:
        """What the rounds will release, round by round; the same number for every round.

        In a round of density k no row weighs more than 1 / (k n). Raises on what is public only.
        """

    def learn(
        self,
        task: Task,
        session: Session,
        grants: tuple[Grant, ...],
        weights: RowWeights,
        density: float,
    ) -> Rule:
        """One round: a rule from the weighted rows, paid for with the grants of this round.

        Every round of equal requests gets the same grants; each may be used as often as one round
        asked for.
        """
