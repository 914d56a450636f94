"""A budget for every row: a row takes part in noisy sums until its own is spent.

A step with Gaussian noise costs a row the square of its own contribution over the noise, not of
the largest contribution that any row may have. Where contributions become small, as gradients do,
most rows could pay for many more steps than the worst one. Counting that after the fact is no
guarantee, because the steps depend on the rows (erratum of paper 004, Proposition 14). A filter
is: it drops a row from a step that the row can no longer pay for, so that what it pays is bounded
before anything runs. Fully adaptive composition then gives Gaussian differential privacy of the
bound (Feldman, Zrnic 2021; Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2023).
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadapt import _validate
from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.events import Relation
from dpadapt.privacy.core.hidden import Hidden, finite
from dpadapt.privacy.core.noise import NoiseSource
from dpadapt.privacy.core.sample import Known, Reduction, Sample
from dpadapt.privacy.core.statistic import RowMean, RowSum, Statistic
from dpadapt.privacy.mechanisms.gaussian import Gaussian, gaussian
from dpadapt.privacy.rows.errors import PrivacyError
from dpadapt.privacy.rows.quiet import withhold_errors


class FilteredMean(RowMean):
    """A mean that also says how much each row contributes, and can leave rows out."""

    @abstractmethod
    def norms(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Norm of each row's contribution, or an upper bound of it; at most the magnitude."""

    @abstractmethod
    def kept(self, X: FloatArray, y: FloatArray | None, keep: NDArray[np.bool_]) -> FloatArray:
        """Sum over the rows that are kept."""


@dataclass(frozen=True)
class EachRow(Statistic):
    """The sample itself, for a mechanism that reads it row by row.

    Examples
    --------
    >>> EachRow(radius=1.0).label
    'each row'
    """

    radius: float
    label: str = "each row"

    def entry_radius(self) -> float:
        """As it is given."""
        return self.radius

    def sensitivity_on(self, sample: Sample) -> float:
        """No bound."""
        return float("inf")

    def reduce(self, sample: Sample) -> Any:
        """The sample; it stays hidden."""
        view = copy.copy(sample._origin)  # it ends with the session, not with this computation
        view._keeps = True
        return view


@dataclass(frozen=True)
class FilteredGaussian(Gaussian):
    """Noisy sums under an individual filter: a handle with :meth:`FilteredSums.release`.

    Every row pays for ``count`` releases of full sensitivity and no more; there are ``releases``.
    Takes the hidden :class:`EachRow`.

    Examples
    --------
    >>> FilteredGaussian("gradients", 2.0, 10, count=5, releases=50).releases
    50
    """

    releases: int = 1
    adds: ClassVar[bool] = False
    unbounded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.count("releases", self.releases)

    @property
    def allowance(self) -> float:
        """One handle, which keeps its own count."""
        return 1

    def check(self, relation: Relation, source: NoiseSource) -> None:
        """Refuse discrete noise."""
        if source.name == "exact":
            raise PrivacyError(
                "an individual filter is proved for continuous Gaussian noise; use noise='secure'."
            )

    def admit(self, hidden: Hidden, **_: Any) -> float:
        """The whole sample, once."""
        if type(hidden.statistic) is not EachRow:
            raise PrivacyError("an individual filter needs the rows: session.hide(EachRow(...)).")
        return 1

    def release(self, hidden: Hidden, scale: float, source: NoiseSource, **_: Any) -> Any:
        """Give the handle."""
        return FilteredSums(self, hidden._value, hidden.statistic.radius, scale, source)


class FilteredSums:
    """Noisy sums of rows that can still pay; made by :class:`FilteredGaussian`.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> with Private([[0.5]] * 9).open(epsilon=1.0, delta=1e-6) as session:
    ...     planned = FilteredGaussian("gradients", 2.0, count=5, releases=50)
    ...     grant = session.plan(sums=planned).sums
    ...     session.release(grant, session.hide(EachRow(radius=1.0)))
    FilteredSums(50 releases left)
    """

    def __init__(
        self,
        mechanism: FilteredGaussian,
        sample: Sample,
        radius: float,
        scale: float,
        source: NoiseSource,
    ) -> None:
        own = mechanism.sensitivity / (1 if sample.relation == "add-remove" else 2)
        facts = (mechanism.count, mechanism.releases, own)
        self._mechanism, self._sample, self._radius = mechanism, sample, radius
        self._scale, self._source = scale, source
        self._filter = IndividualFilter(sample.rows.n_rows, *facts)
        self._lock = Lock()  # what rows have spent is read, and then written

    def __repr__(self) -> str:
        return f"FilteredSums({self._filter.left} releases left)"

    def __reduce__(self) -> Any:
        raise TypeError("sums of private rows cannot be copied or pickled.")

    def release(self, mean: FilteredMean) -> FloatArray:
        """Noisy sum of what a mean takes of every row that can still pay for it."""
        sample = self._sample
        sample.rows  # noqa: B018, refuses a closed session and another process
        if mean.entry_radius() > self._radius:
            raise PrivacyError("rows enter under a larger radius than was stated: EachRow(radius).")
        if not RowSum(mean).sensitivity_on(sample.lent(rows=False)) <= self._mechanism.sensitivity:
            raise PrivacyError("the hidden statistic is more sensitive than the grant allows.")
        shape = mean.shape(sample.n_columns)
        if int(np.prod(shape)) > self._mechanism.dimension:
            self._mechanism._refuse_numbers()
        with self._lock:
            step = self._filter.step(mean)
            return self._noisy(
                withhold_errors(
                    lambda: finite(sample.total(mean.cleaning, step, shape)), PrivacyError
                )
            )

    def _noisy(self, value: FloatArray) -> FloatArray:
        return withhold_errors(lambda: gaussian(self._source, value, self._scale))


class IndividualFilter:
    """What every row has spent, in releases of full sensitivity.

    Let S be the sensitivity of one release to one row's presence, ``own`` here: the magnitude M of
    a contribution plus an allowance h for rounding. A row that contributes v moves the sum by at
    most |v| + h, so that one step costs it ((|v| + h) / S)^2, and (h / S)^2 if it is left out. It
    takes part only if, with this step and without it in all later ones, its costs stay at most
    ``count``. Sum over the steps: at most ``count``, for every row, every sample and every outcome
    of the noise, which is what a filter needs.

    Under replace-one two rows differ, with contributions v and v'. The sum moves by at most
    (|v| + h) + (|v'| + h); by Minkowski's inequality the root of the sum of squares over the steps
    is at most twice the one of a single row, sqrt(count) S: as many releases of sensitivity 2 S.

    Nothing of this is ever released: the number of steps is public, also when no row is left.

    Parameters
    ----------
    n_rows : int
    count : int
        What a row can pay for.
    releases : int
        Steps.
    own : float
        S.

    Examples
    --------
    >>> IndividualFilter(n_rows=3, count=2, releases=8, own=1.0).left
    8
    """

    def __init__(self, n_rows: int, count: int, releases: int, own: float) -> None:
        self.left = releases
        self._count, self._own = count * (1 - 1e-9), own
        self._spent = np.zeros(n_rows)

    def step(self, query: FilteredMean) -> Reduction:
        """Return the reduction of one step; blocks must come in the order of the rows."""
        if self.left < 1:
            raise PrivacyError(f"{query.label!r} was hidden as often as it was planned.")
        self.left -= 1
        rounding = self._own - query.magnitude  # h
        if rounding < 0:
            raise PrivacyError(
                f"{query.label!r}: one row can contribute more than half of the sensitivity that "
                "was planned; plan with twice the magnitude."
            )
        absent = (rounding / self._own) ** 2
        reserve = absent * self.left
        done = 0

        def reduce(X: FloatArray, y: FloatArray | None, known: Known | None) -> FloatArray:
            nonlocal done
            spent = self._spent[done : done + len(X)]
            done += len(X)
            price = ((query.norms(X, y) + rounding) / self._own) ** 2
            keep = spent + price + reserve <= self._count
            keep = keep if known is None else keep & known
            spent += np.where(keep, price, absent)
            return query.kept(X, y, keep)

        return reduce
