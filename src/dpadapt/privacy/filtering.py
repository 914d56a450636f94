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

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import PrivacyError
from .events import FloatArray
from .queries import Query

__all__ = ["FilteredQuery", "IndividualFilter"]


class FilteredQuery(Query, Protocol):
    """A query that also says how much each row contributes, and can leave rows out."""

    def norms(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Norm of each row's contribution, or an upper bound of it; at most the magnitude."""

    def kept(self, X: FloatArray, y: FloatArray | None, keep: NDArray[np.bool_]) -> FloatArray:
        """Sum over the rows that are kept."""


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

    def step(self, query: FilteredQuery) -> Callable[[FloatArray, FloatArray | None], FloatArray]:
        """Return the reduction of one step; blocks must come in the order of the rows."""
        if self.left < 1:
            raise PrivacyError(f"{query.label!r} was hidden as often as it was planned.")
        self.left -= 1
        rounding = self._own - query.magnitude  # h
        absent = (rounding / self._own) ** 2
        reserve = absent * self.left
        done = 0

        def reduce(X: FloatArray, y: FloatArray | None) -> FloatArray:
            nonlocal done
            spent = self._spent[done : done + len(X)]
            done += len(X)
            price = ((query.norms(X, y) + rounding) / self._own) ** 2
            keep = spent + price + reserve <= self._count
            spent += np.where(keep, price, absent)
            return query.kept(X, y, keep)

        return reduce
