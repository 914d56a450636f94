r"""How many private rows have a label, about: a noisy count that is part of a plan.

Rows without a label add nothing to a statistic (:meth:`.sample.Sample.blocks`), so a mean must not
be divided by the number of all rows. How many have a label is a secret: it is counted with noise,
in the plan and charged with it, before anything else is released. From then on everything looks as
if the private sample had so many rows: means are divided by the count, and ``Session.n_rows`` tells
it. Any public number would do as far as privacy is concerned: a sum that one row moves by D, over a
number c, moves by D / c, and noise grows as that does, so that what a release costs stays as it was
planned. What is charged does not depend on the count.

*Sensitivity.* One row more or less has a label: the count moves by 1.

*What it costs.* It gets 1 % of the squared mu of a plan; noise of everything else is 0.5 % larger.
A plan of printed constants, or of mechanisms with noise of their own, has no count: means are then
divided by the number of all rows.

*What is made of it.* A count within two deviations of its noise below the number of all rows does
not tell that any label is missing: then it is that number, and nothing changes. It is never below
one deviation, so that no mean is divided by what is noise alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._lazy import named
from dpadapt._types import FloatArray

from ..core.hidden import Part
from ..core.mechanism import Counting, Mechanism
from ..core.sample import Sample
from ..core.session import Session
from ..core.statistic import Statistic
from ..rows.errors import PrivacyError
from .gaussian import Gaussian

COUNTED = "rows with a label"
"""The label of the count, in event logs."""

_SHARE = 0.01  # of the squared mu of a plan
_PURE = "dpadapt.papers.selection.laplace.Laplace"  # the noise of the count where delta is 0


@dataclass(frozen=True)
class LabelledRows(Statistic):
    """Number of rows that have a label; exact, and no other cell is read.

    The sensitivity is 1: attained by a row with a label in place of one without.

    Examples
    --------
    >>> LabelledRows().label
    'rows with a label'
    """

    label: str = COUNTED

    def entry_radius(self) -> float:
        """1: what a row adds."""
        return 1.0

    def sensitivity_on(self, sample: Sample) -> float:
        """1."""
        if not sample.labelled:
            raise PrivacyError("the private sample must have labels: Private(X, y).")
        return 1.0

    def reduce(self, sample: Sample) -> FloatArray:
        """Count."""
        return np.asarray(float(np.count_nonzero(np.isfinite(sample.labels()))))


def count_labels(session: Session) -> None:
    """Leave out rows without a label, and count the others in the plan, with noise.

    It comes before everything else. Without labels it does nothing; under add-remove, where the
    number of rows is a secret anyway, nothing is counted.

    Parameters
    ----------
    session : Session
        With nothing hidden and nothing planned.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> from dpadapt.privacy.mechanisms import GaussianPurse
    >>> labels = np.where(np.arange(10_000) % 4 > 0, 1.0, np.nan)
    >>> with Private(np.zeros((10_000, 1)), labels).open(epsilon=1.0, delta=1e-6) as session:
    ...     count_labels(session)
    ...     purse = session.plan(purse=GaussianPurse()).purse
    ...     told = session.n_rows
    >>> 7200 < told < 7800, [event.label for event in session.guarantee.events]
    (True, ['purse', 'rows with a label'])
    """
    if not session._part("all").labelled:
        return
    session.leave_out_unlabelled()
    if session.relation != "replace-one" or not session.n_given:
        return

    def counting(others: Sequence[Mechanism], part: Part) -> Counting:
        squares = math.fsum(getattr(each, "weight", 1.0) ** 2 * each.count for each in others)
        weight = math.sqrt(_SHARE / (1 - _SHARE) * squares)
        query = LabelledRows()
        facts: Any = {"weight": weight, "part": part, "divided": False}
        kind = named(_PURE) if session.delta == 0 else Gaussian
        return Counting(kind(COUNTED, session.sensitivity(query, part), **facts), query, _read)

    session._counting = counting


def _read(found: float, scale: float, n_rows: int) -> float:
    return counted(found, scale, n_rows) / n_rows


def counted(found: float, deviation: float, n_rows: int) -> float:
    """Number of rows that a noisy count stands for.

    Examples
    --------
    >>> counted(930.0, 40.0, 1000), counted(700.0, 40.0, 1000), counted(-3.0, 40.0, 1000)
    (1000.0, 700.0, 40.0)
    """
    if found > n_rows - 2 * deviation:
        return float(n_rows)
    return min(max(found, deviation, 1.0), float(n_rows))
