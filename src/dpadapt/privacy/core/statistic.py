"""What goes in: statistics of private rows, each with its sensitivity and the proof of it.

A statistic says how the rows of a sample are reduced to an array, and how far that array can move
when one row is replaced. The session runs it and keeps the answer hidden. Most are means of a
function of single rows (:class:`RowMean`); methods add those of their own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dpadapt._types import FloatArray

from ..rows.errors import PrivacyError
from ..rows.memory import check_memory
from .cleaning import RowMap
from .sample import ORDER_SLACK, ROUNDING, Known, Sample

MOST_SUM = 1e290  # of rows times the bound on one of them; float64 ends at 1.8e308
LEAST_BOUND = 1e-150  # on one row; squares of numbers below 1.5e-154 lose digits


class Statistic(ABC):
    """What a session needs to know of whatever it hides.

    Attributes
    ----------
    label : str
        What it is, for the event log.
    divided : bool
        Whether it is divided by the number of rows that count.
    """

    divided: ClassVar[bool] = False

    if TYPE_CHECKING:  # a field of some, a property of others

        @property
        def label(self) -> str: ...

    @abstractmethod
    def entry_radius(self) -> float:
        """Public bound under which rows enter, for the guarantee."""

    @abstractmethod
    def sensitivity_on(self, sample: Sample) -> float:
        """Return the sensitivity on a sample, or refuse, by public facts; before a row is read."""

    @abstractmethod
    def reduce(self, sample: Sample) -> FloatArray:
        """Return the un-noised value."""


class RowMean(Statistic):
    """Mean over the rows of a function of single rows.

    Sums are taken in float64, block by block with compensation, and the sensitivity is enlarged by
    what rounding can still do.

    Attributes
    ----------
    label : str
        What it is, for the event log.
    cleaning : RowMap
        The public map under which rows enter.
    magnitude : float
        Bound on the norm of one row's contribution; scales the allowance for rounding.
    """

    divided: ClassVar[bool] = True
    reads_labels: ClassVar[bool] = False
    """Whether rows without labels are refused."""

    @property
    @abstractmethod
    def magnitude(self) -> float: ...
    @abstractmethod
    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Shape of the answer."""

    @abstractmethod
    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum over the rows of one cleaned block, in float64."""

    def counted_block(self, X: FloatArray, y: FloatArray | None, known: Known | None) -> FloatArray:
        """Sum over the rows of one block that count.

        The others are all one public row (:meth:`Sample.blocks`): what they add is taken off. Zeros
        times anything are exact, whatever stands around them, so that the row adds the same alone.
        """
        total = self.block(X, y)
        lost = np.zeros(0, dtype=np.intp) if known is None else np.flatnonzero(~known)
        if not len(lost):
            return total
        nobody = self.block(X[lost[:1]], None if y is None else y[lost[:1]])
        return np.asarray(total - len(lost) * nobody)

    @abstractmethod
    def sensitivity(self, n_rows: int) -> float:
        """Euclidean sensitivity of the mean over ``n_rows`` under replace-one."""

    def moved(self, sample: Sample, n_rows: int) -> float:
        """How far one row moves the mean, also if it is replaced by one that does not count.

        Such a row adds 0: then the mean moves by what the other one adds, the magnitude at most.
        """
        alone = self.alone / n_rows if sample.leaves_out(self.cleaning) else 0.0
        return max(self.sensitivity(n_rows), alone)

    @property
    def alone(self) -> float:
        """How long what one row adds can be; the magnitude, unless that allows for more."""
        return self.magnitude

    def entry_radius(self) -> float:
        """That of the cleaning."""
        return self.cleaning.radius

    if TYPE_CHECKING:  # a field of some, a property of others

        @property
        def cleaning(self) -> RowMap: ...

    def sensitivity_on(self, sample: Sample) -> float:
        """Sensitivity of the mean, with what rounding can do."""
        sample.needs_replace_one("a mean")
        if self.reads_labels and not sample.labelled:
            raise PrivacyError("the private sample must have labels: Private(X, y).")
        check_sum(self.label, lambda: self.magnitude, sample.most_rows)
        return self.divided_by(sample, sample.counted_rows)

    def divided_by(self, sample: Sample, n_rows: int) -> float:
        """Sensitivity of the sum over a number of rows, with what rounding can do to the sum."""
        more = max(1.0, sample.n_rows / n_rows)  # rows than the sum is divided by
        return self.moved(sample, n_rows) + ROUNDING * self.magnitude * more

    def reduce(self, sample: Sample) -> FloatArray:
        """Mean over the rows."""
        total = sample.total(self.cleaning, self.counted_block, self.shape(sample.n_columns))
        return np.asarray(total / sample.counted_rows)


@dataclass(frozen=True)
class RowSum(Statistic):
    """Sum, instead of the mean, of what a :class:`RowMean` takes of every row; for both relations.

    Under replace-one its sensitivity is n times that of the mean. Under add-remove one row moves
    the sum by what it contributes: the magnitude.

    Parameters
    ----------
    mean : RowMean

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> from dpadapt.privacy.statistics import SecondMoment
    >>> RowSum(SecondMoment(Cleaning(radius=2.0))).label
    'second moment'
    """

    mean: RowMean

    @property
    def label(self) -> str:
        """That of the mean."""
        return self.mean.label

    def entry_radius(self) -> float:
        """That of the mean."""
        return self.mean.entry_radius()

    def sensitivity_on(self, sample: Sample) -> float:
        """Sensitivity of the sum, with what rounding can do."""
        check_sum(self.label, lambda: self.mean.magnitude, sample.most_rows)
        if sample.relation == "add-remove":
            return self.mean.magnitude * (1 + ORDER_SLACK)
        n_rows = max(1, sample.n_rows)
        return n_rows * self.mean.divided_by(sample, n_rows)

    def reduce(self, sample: Sample) -> FloatArray:
        """Sum over the rows."""
        mean = self.mean
        return sample.total(mean.cleaning, mean.counted_block, mean.shape(sample.n_columns))


@dataclass(frozen=True)
class Rows(Statistic):
    """The cleaned rows themselves, their label (if any) as the last column.

    For algorithms whose state has an entry for every row. The rows are held in memory, and no
    sensitivity bounds them: only what is derived from them, with a claim, can be released.

    Parameters
    ----------
    cleaning : RowMap

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> Rows(Cleaning(radius=2.0)).label
    'rows'
    """

    cleaning: RowMap
    label: str = "rows"

    def entry_radius(self) -> float:
        """That of the cleaning."""
        return self.cleaning.radius

    def sensitivity_on(self, sample: Sample) -> float:
        """No bound."""
        sample.needs_replace_one("a table of rows")
        check_memory(self.label, 2 * 8 * sample.n_rows * (sample.n_columns + 1))  # and a copy
        check_sum(self.label, lambda: self.cleaning.radius, sample.most_rows)
        return math.inf

    def reduce(self, sample: Sample) -> FloatArray:
        """All rows, one below the other."""
        given = sample.blocks(self.cleaning)
        blocks = [X if y is None else np.column_stack([X, y]) for X, y, _ in given]
        return np.concatenate(blocks) if blocks else np.zeros((0, sample.n_columns))


def check_sum(label: str, magnitude: Callable[[], float], n_rows: float) -> None:
    """Refuse a sum that could overflow or underflow, by public facts, before any row is read.

    A sum that overflows is no number, and whatever is put in its place is far from what the sum of
    a neighbour is: one row would move it by any number of sensitivities. Where squares of what a
    row contributes underflow, no length is right, and no clip.

    Parameters
    ----------
    label : str
    magnitude : callable
        Gives the bound on one row's contribution (which may overflow itself).
    n_rows : float
        Number of rows, or a public bound on it.

    Examples
    --------
    >>> check_sum("mean", lambda: 3.0, n_rows=1000)
    >>> check_sum("mean", lambda: 1e288, n_rows=1000)
    Traceback (most recent call last):
        ...
    ValueError: 'mean': the bound on one row, times the number of rows, must be at most 1e+290, or \
sums could overflow, and itself at least 1e-150, or squares could underflow; take another radius, \
or other units.
    """
    try:
        bound = float(magnitude())
    except OverflowError:
        bound = math.inf
    if not (bound * n_rows <= MOST_SUM and (bound == 0 or bound >= LEAST_BOUND)):
        raise ValueError(
            f"{label!r}: the bound on one row, times the number of rows, must be at most "
            f"{MOST_SUM:g}, or sums could overflow, and itself at least {LEAST_BOUND:g}, or "
            "squares could underflow; take another radius, or other units."
        )
