"""What Subsample-Test-Reweigh asks of a learner.

A learner is configuration: it holds no data. Before the first round it says what it will release
in every round, given the densities that the weights will have then; in a round it trades the
grant of that round for one rule. Only the session reads rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadapt._strategy import Strategy
from dpadapt.hybrid.rules import LinearRule, Rule
from dpadapt.hybrid.signed_rows import SignedRows
from dpadapt.privacy import Grant, Hidden, Mechanism, RowMap, Session

from .doors.draws import draws
from .doors.weighted import Weighted, WeightedMean
from .doors.weights import RowWeights

__all__ = ["Learner", "LearningTask", "WeightedRows"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LearningTask:
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
    >>> task = LearningTask(n_rows=100, n_columns=2, blank=blank)
    >>> X, y = task.rows(np.array([[1.0, np.nan]] * 3), np.array([0.0, 1.0, -1.0]))
    >>> X[0], y
    (array([1., 0.]), array([-1.,  1.,  0.]))
    """

    n_rows: int
    n_columns: int
    blank: LinearRule

    @cached_property
    def rows(self) -> RowMap:
        """Rows as they are (0 for a cell that is no number), labels as numbers, 0 for no class."""
        return SignedRows(self.n_columns, classes=len(self.blank.classes))

    @cached_property
    def embedded(self) -> RowMap:
        """Rows z(x) of the blank rule, of norm at most 1, with the same labels."""
        return SignedRows(self.blank.width, self.blank.embed, len(self.blank.classes))

    @cached_property
    def embedded_columns(self) -> RowMap:
        """The same rows column by column: products with a vector are twice as fast."""
        embed, classes = self.blank.embed, len(self.blank.classes)
        return SignedRows(self.blank.width, lambda X: np.asfortranarray(embed(X)), classes)


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """The curator's rows in one round: weighted, hidden, with what pays for the round's release.

    Parameters
    ----------
    task : Task
    session : Session
    weights : RowWeights
    density : float
        kappa_t: no row weighs more than 1 / (kappa_t n).
    grant : Grant
        Of what the learner has planned for this round.

    Examples
    --------
    >>> from dpadapt.papers.hybrid.gradient_learner import GradientLearner
    >>> from dpadapt.privacy import Private
    >>> task = LearningTask(5, 1, LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1)))
    >>> learner = GradientLearner(steps=2)
    >>> with Private([[0.0]] * 5, [0.0] * 5).open(epsilon=1.0, delta=1e-6) as session:
    ...     grants = session.plan(rounds=learner.planned(task, [1.0]))
    ...     rows = WeightedRows(task, session, RowWeights(session), 1.0, grants.rounds[0])
    ...     learner.learn(rows).width
    2
    """

    task: LearningTask
    session: Session
    weights: RowWeights
    density: float
    grant: Grant

    def sum(self, mean: WeightedMean, *, keep: bool = False) -> Hidden:
        """Hide the sum over the weighted rows; ``keep`` as in :meth:`Session.hide`."""
        return self.session.hide(Weighted(mean, self.weights, self.density), keep=keep)

    def draws(self) -> Hidden:
        """Hide rows that are drawn from the weights."""
        return draws(self.weights, self.density)

    def release(self, hidden: Hidden, **public: Any) -> Any:
        """Let a hidden value out through what was planned for this round."""
        return self.session.release(self.grant, hidden, **public)


class Learner(Strategy, ABC):
    """A private learner on weighted rows (the paper's M): configuration, no data.

    Subclasses are frozen dataclasses, as every strategy.

    Attributes
    ----------
    joint : bool
        Whether it can learn one rule between more than two classes.
    """

    joint: ClassVar[bool] = False

    @abstractmethod
    def mechanism(self, task: LearningTask, density: float) -> Mechanism:
        """What one round releases, if no row weighs more than 1 / (density n)."""

    @abstractmethod
    def learn(self, rows: WeightedRows) -> Rule:
        """One round: a rule from the weighted rows, paid for with the grant of this round.

        Rounds of equal mechanisms share one grant; each may use it as often as one round planned.
        """

    def planned(self, task: LearningTask, densities: Sequence[float]) -> list[Mechanism]:
        """What every round will release. Raises on what is public only."""
        return [self.mechanism(task, density) for density in densities]
