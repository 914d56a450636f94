"""The purse that a private step is paid from, what is released from it, and what is told of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.descent import descend
from dpadapt.privacy import Grant, RowMean, Session
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.mechanisms import GaussianPurse
from dpadapt.privacy.statistics import Prepared
from dpadapt.reweighting.queries import descent_gradient

PRIVATE_STEP = "private step"
"""Label of the one charge that all releases of a step are paid from."""


@dataclass(frozen=True)
class ReleaseRecord:
    """One release of the private step: its share of the budget, and how many noisy values it is.

    Examples
    --------
    >>> ReleaseRecord("level", 0.1, "94% of it is kept").sentence()
    "Release 'level' took 10% of the budget: 94% of it is kept."
    """

    name: str
    share: float
    said: str
    times: int = 1

    def sentence(self, places: int = 0) -> str:
        """The release in a sentence, its share with as many decimals."""
        return f"Release {self.name!r} took {self.share:.{places}%} of the budget: {self.said}."


@dataclass(frozen=True, eq=False)
class StepBudget:
    """A session whose whole budget is one Gaussian purse, and what has been released from it.

    Attributes
    ----------
    session : Session
    purse : Grant
    shares : dict
        Parts of the purse, by the name of what they are for.
    records : list of ReleaseRecord
        What was released, in its order.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.privacy.statistics import mean_number
    >>> with Private([[1.0]] * 1000).open(epsilon=1.0, delta=1e-6) as session:
    ...     budget = StepBudget.open(session)
    ...     query = mean_number(Cleaning(2.0), lambda X, y: X[:, 0], -2.0, 2.0)
    ...     mean, sd = budget.release(query, share=0.5)
    >>> bool(abs(mean[0] - 1) < 5 * sd), round(budget.precision)
    (True, 237)
    """

    session: Session
    purse: Grant
    shares: dict[str, float] = field(default_factory=dict)
    records: list[ReleaseRecord] = field(default_factory=list)

    @classmethod
    def open(cls, session: Session) -> StepBudget:
        """Charge the whole budget."""
        return cls(session, session.plan(purse=GaussianPurse(PRIVATE_STEP)).purse)

    def divided(self, shares: dict[str, float]) -> StepBudget:
        """The same budget, divided."""
        return replace(self, shares=shares)

    @property
    def precision(self) -> float:
        """N mu: one over the noise of a mean of numbers from an interval of length 1."""
        return self.session.n_rows / self.purse.scale

    def precision_of(self, name: str) -> float:
        """N mu for a share alone."""
        return self.precision * math.sqrt(self.shares[name])

    @property
    def n_rows(self) -> int:
        """Number of private rows, which is public."""
        return self.session.n_rows

    def release(self, query: RowMean, share: float) -> tuple[Any, float]:
        """Release a statistic for a share of the purse; return it, and the scale of its noise."""
        hidden = self.session.hide(query, keep=True)
        released = self.session.release(self.purse, hidden, share=share)
        return released, hidden.sensitivity * self.purse.scale / math.sqrt(share)

    def descend(
        self,
        rows: Prepared,
        shape: tuple[int, int],
        clip: float,
        horizon: float,
        steps: int,
        share: float,
    ) -> FloatArray:
        """Mean of the last half of a noisy descent from 0 on clipped gradients.

        Parameters
        ----------
        rows : Prepared
            As :func:`~dpadapt.reweighting.queries.descent_gradient` takes them.
        shape : (int, int)
            Features, and columns of coefficients: 1, or one for each class.
        clip : float
        horizon : float
            tau; the step size is tau / T.
        steps : int
            T.
        share : float
            Of the purse, for all steps together.

        Examples
        --------
        >>> from dpadapt.privacy import Cleaning, Private
        >>> def prepare(X, y):
        ...     return np.ones((len(X), 2)), y
        >>> rows = Prepared(Cleaning(1.0, label_range=(-1.0, 1.0)), prepare, 2)
        >>> with Private([[0.0]] * 9999, [0.3] * 9999).open(epsilon=1.0, delta=1e-6) as session:
        ...     end = StepBudget.open(session).descend(rows, (1, 1), 1.0, 20.0, 50, share=1.0)
        >>> bool(abs(end[0, 0] - 0.3) < 0.05)
        True
        """

        def gradient(W: FloatArray) -> FloatArray:
            return np.asarray(self.release(descent_gradient(rows, W, clip), share / steps)[0])

        return descend(gradient, np.zeros(shape), horizon / steps, steps)

    def record(self, name: str, said: str, times: int = 1) -> None:
        """Say what a release of so many noisy values has told."""
        self.records.append(ReleaseRecord(name, self.shares[name], said, times))


def foreseen_precision(session: Session) -> float:
    """N mu of a session that is to be charged; a little less where rows are counted.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> with Private([[1.0]] * 1000).open(epsilon=1.0, delta=1e-6) as session:
    ...     before, budget = foreseen_precision(session), StepBudget.open(session)
    >>> bool(abs(before / budget.precision - 1) < 1e-6)
    True
    """
    return session.n_given * gaussian_mu(session.epsilon, session.delta)


@dataclass(frozen=True, eq=False)
class StepResult:
    """What the private step found.

    Attributes
    ----------
    adapted : Correction, ClassScores, DirectionScores or None
        What stands beside, or in place of, the public model; None without private rows.
    releases : tuple of ReleaseRecord
        What each cost, and what it said.
    no_harm : NoHarm, ClassNoHarm or None
        What it costs if there was no shift.
    sentences : tuple of str
        What was done.
    scale : float
        For numbers: size of private errors in public ones.

    Examples
    --------
    >>> StepResult(None, (), None, ("Nothing was read.",)).scale
    1.0
    """

    adapted: Any
    releases: tuple[ReleaseRecord, ...]
    no_harm: Any
    sentences: tuple[str, ...]
    scale: float = 1.0
