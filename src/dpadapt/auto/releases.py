"""The purse that a private step is paid from, what is released from it, and what is told of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.descent import descend as noisy_descent
from dpadapt.privacy import Grant, RowMean, Session
from dpadapt.privacy.mechanisms import GaussianPurse
from dpadapt.privacy.statistics import Prepared
from dpadapt.reweighting.queries import RowGradient

STEP = "private step"
"""Label of the one charge that all looks and the descent are paid from."""


@dataclass(frozen=True, eq=False)
class Looks:
    """A session whose whole budget is one Gaussian purse.

    Attributes
    ----------
    session : Session
    purse : Grant

    Examples
    --------
    >>> from dpadapt.auto.queries import MeanNumber
    >>> from dpadapt.privacy import Cleaning, Private
    >>> with Private([[1.0]] * 1000).open(epsilon=1.0, delta=1e-6) as session:
    ...     looks = Looks.open(session)
    ...     query = MeanNumber(Cleaning(2.0), lambda X, y: X[:, 0], -2.0, 2.0)
    ...     found, sd = looks.at(query, share=0.5)
    >>> bool(abs(found[0] - 1) < 5 * sd), round(looks.precision)
    (True, 237)
    """

    session: Session
    purse: Grant

    @classmethod
    def open(cls, session: Session) -> Looks:
        """Charge the whole budget."""
        return cls(session, session.plan(purse=GaussianPurse(STEP)).purse)

    @property
    def precision(self) -> float:
        """N mu: one over the noise of a mean of numbers from an interval of length 1."""
        return self.session.n_rows / self.purse.scale

    @property
    def n_rows(self) -> int:
        """Number of private rows, which is public."""
        return self.session.n_rows

    def at(self, query: RowMean, share: float, *, symmetric: bool = False) -> tuple[Any, float]:
        """Release a statistic for a share of the purse; return it, and the scale of its noise."""
        hidden = self.session.hide(query, keep=True)
        found = self.session.release(self.purse, hidden, share=share, symmetric=symmetric)
        return found, hidden.sensitivity * self.purse.scale / math.sqrt(share)


def descend(
    looks: Looks,
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
    looks : Looks
    rows : Prepared
        As :class:`~dpadapt.reweighting.queries.RowGradient` takes them: its proof bounds what
        one row adds to a gradient.
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
    ...     found = descend(Looks.open(session), rows, (1, 1), 1.0, 20.0, 50, 1.0)
    >>> bool(abs(found[0, 0] - 0.3) < 0.05)
    True
    """

    def gradient(W: FloatArray) -> FloatArray:
        return np.asarray(looks.at(RowGradient(rows, W, clip), share / steps)[0])

    return noisy_descent(gradient, np.zeros(shape), horizon / steps, steps)


@dataclass(frozen=True)
class Release:
    """One release of the private step: its share of the budget, and how many noisy values it is.

    Examples
    --------
    >>> Release("level", 0.1, "94% of it is kept").sentence()
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
class Step:
    """What the private step found.

    Attributes
    ----------
    adapted : Correction, Scores, DirectionScores or None
        What stands beside, or in place of, the public model; None without private rows.
    releases : tuple of Release
        What each cost, and what it said.
    no_harm : NoHarm, ClassNoHarm or None
        What it costs if there was no shift.
    told : tuple of str
        What was done, in sentences.
    times : float
        For numbers: size of private errors in public ones.

    Examples
    --------
    >>> Step(None, (), None, ("Nothing was read.",)).times
    1.0
    """

    adapted: Any
    releases: tuple[Release, ...]
    no_harm: Any
    told: tuple[str, ...]
    times: float = 1.0
