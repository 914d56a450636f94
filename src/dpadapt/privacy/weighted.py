"""The part of a session that keeps weights on the private rows (:mod:`.weights`).

Weights are hidden like every statistic. They are made by :meth:`WeightedSession.weigh`, changed by
:meth:`~WeightedSession.reweigh` with losses under released models, and used in a weighted sum or
to draw rows (:mod:`.drawn`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from . import _validate
from ._process import Home
from ._quiet import quiet
from ._total import by_rows, taken
from .cleaning import RowMap
from .errors import LET_THROUGH, PrivacyError
from .events import FloatArray
from .grants import Grant, Hidden, Mechanism, Part
from .noise import NoiseSource
from .queries import Query, check_sum
from .rows import BLOCK_ROWS, RowSource, unreadable
from .weights import MOST_RATE, ROUNDING, RowWeights, log_cap, mass_of, projected

__all__ = ["WeightedQuery", "WeightedSession", "weighted_sensitivity"]

Losses = Callable[[FloatArray, FloatArray | None], FloatArray]
Reduction = Callable[[FloatArray, FloatArray | None], FloatArray]
CleanBlock = tuple[FloatArray, FloatArray | None]
KEPT_ROWS = 1 << 24  # of which projected weights are kept for the next query


class WeightedQuery(Query, Protocol):
    """A query that can also be summed with weights on the rows.

    ``magnitude`` bounds the norm of one row's contribution. ``sensitivity(1)``, the most that the
    answer on a single row can move, bounds the diameter of the contributions; where it is smaller
    than twice the magnitude (contributions in [0, 1], say) the weighted sum gains from it.
    """

    def weighted_block(
        self, X: FloatArray, y: FloatArray | None, weights: FloatArray
    ) -> FloatArray:
        """Sum over the rows of one cleaned block, each times its weight, in float64."""


def weighted_sensitivity(query: WeightedQuery, density: float, n_rows: int) -> float:
    """Sensitivity of :meth:`Session.hide_weighted`, from public facts alone.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, SecondMoment
    >>> query = SecondMoment(Cleaning(radius=1.0))
    >>> round(weighted_sensitivity(query, density=0.5, n_rows=1000), 8)  # sqrt(2) / 500
    0.00282843
    """
    diameter = min(2 * query.magnitude, query.sensitivity(1))
    summing = (BLOCK_ROWS + 8) * float(np.finfo(np.float64).eps)
    return diameter / mass_of(density, n_rows) + 2 * (summing + ROUNDING) * query.magnitude


class Cleaned(Protocol):
    """Whatever says under which map rows enter."""

    @property
    def cleaning(self) -> RowMap: ...


@dataclass(frozen=True)
class AllRows:
    """The query of who wants the cleaned rows themselves."""

    cleaning: RowMap
    label: str = "rows"


class WeightedSession(ABC):
    """Weights on private rows; inherited by :class:`dpadapt.privacy.Session`."""

    _home: Home
    _rows: RowSource | None
    _n_rows: int
    _source: NoiseSource
    _bounds: dict[str, float]
    _progress: Callable[[int, int], None] | None
    n_columns: int

    @abstractmethod
    def size(self, part: Part = "all") -> int: ...
    @abstractmethod
    def _needs_replace_one(self, what: str) -> None: ...
    @abstractmethod
    def _check_part(self, part: Part) -> None: ...
    @abstractmethod
    def _sum(self, query: Query, reduce: Reduction, part: Part, keep: bool) -> FloatArray: ...
    @abstractmethod
    def _part(self, query: Cleaned, part: Part) -> Iterator[CleanBlock]: ...
    @abstractmethod
    def _kept(self, query: Cleaned, part: Part) -> Iterable[CleanBlock]: ...
    @abstractmethod
    def _spend(self, grant: Grant, mechanism: Mechanism, times: int) -> float: ...

    # the weights

    def weigh(self, part: Part = "all") -> RowWeights:
        """Give every row of a part the weight 1, and keep the weights hidden."""
        self._open_rows()
        self._needs_replace_one("a weight for every row")
        self._check_part(part)
        return RowWeights(self.size(part), part, self)

    def reweigh(
        self,
        weights: RowWeights,
        losses: Losses,
        cleaning: RowMap,
        rate: float,
        *,
        keep: bool = False,
    ) -> None:
        """Lower the weight of every row on which a released model does well.

        log w -= rate * (1 - loss). The stored weights are not projected: a row's weight stays a
        function of that row and of what was released.

        Parameters
        ----------
        weights : RowWeights
        losses : callable
            From cleaned (X, y) to one loss for each row, in [0, 1]; each row on its own. What lies
            outside is clipped, NaN counts as 1. A row on which it fails counts as 1 too.
        cleaning : RowMap
        rate : float
        keep : bool, default=False
            As in :meth:`Session.hide`.
        """
        self._check_weights(weights)
        rate = _validate.positive("rate", rate)
        if weights.rate_spent + rate > MOST_RATE:
            raise ValueError(
                f"the rates of one set of weights may add up to {MOST_RATE:g} at most."
            )
        self._try_on_public_rows(losses, cleaning)
        weights._forget()
        weights.updates += 1
        weights.rate_spent += rate
        query, part = AllRows(cleaning), weights.part
        done, failure = 0, None
        with quiet():
            try:
                for X, y in self._kept(query, part) if keep else self._part(query, part):
                    gains = 1.0 - _losses(losses, X, y)
                    gains *= rate
                    weights._log[done : done + len(X)] -= gains
                    done += len(X)
            except (PrivacyError, *LET_THROUGH):
                raise
            except BaseException as error:
                failure = unreadable(error)
        if failure is not None:  # out here, so that it does not carry the first error along
            raise failure

    def hide_weighted(
        self, query: WeightedQuery, weights: RowWeights, density: float, *, keep: bool = False
    ) -> Hidden:
        r"""Compute the sum of a query under the projected weights, and keep it hidden.

        The answer is :math:`\sum_i \mu_i g(x_i)`, with the projection of the weights on the density
        and :math:`q = 1 / (\kappa n)`. By the overlap lemma (:mod:`.weights`) it is (1-q) a + q b
        on one sample and (1-q) a + q b' on a neighbour, b and b' averages of contributions: it
        moves by at most q times their diameter, and so by at most 2 q times the magnitude. Attained
        when the changed row holds the weight q before and after. The sensitivity is enlarged by
        what rounding can do to the weights and to the sum.

        Parameters
        ----------
        query : WeightedQuery
        weights : RowWeights
        density : float
            kappa; public.
        keep : bool, default=False
            As in :meth:`Session.hide`.
        """
        self._check_weights(weights)
        check_sum(query.label, lambda: query.magnitude, max(1, self._n_rows))
        sensitivity = weighted_sensitivity(query, density, len(weights._log))
        self._bounds.update({f"radius ({query.label})": query.cleaning.radius})
        with quiet():
            reduce = self._weighted(query, weights, density)
            value = np.asarray(self._sum(query, reduce, weights.part, keep), dtype=np.float64)
            value = np.nan_to_num(value, nan=0.0, posinf=0.0, neginf=0.0)
        return Hidden(value, query, sensitivity, weights.part, self)

    def _weighted(self, query: WeightedQuery, weights: RowWeights, density: float) -> Reduction:
        mass = mass_of(density, len(weights._log))
        cap = cap_of(weights, density)
        if len(weights._log) <= KEPT_ROWS and (weights._mass or (0,))[0] != density:
            weights._mass = (density, projected(weights._log, cap) / mass)
        known = weights._mass[1] if weights._mass and weights._mass[0] == density else None
        done = 0

        def reduce(X: FloatArray, y: FloatArray | None) -> FloatArray:
            nonlocal done
            cut = slice(done, done + len(X))
            done += len(X)
            own = projected(weights._log[cut], cap) / mass if known is None else known[cut]
            return query.weighted_block(X, y, own)

        return reduce

    def _check_weights(self, weights: RowWeights) -> None:
        if not isinstance(weights, RowWeights) or weights._owner is not self:
            raise PrivacyError(
                "the weights must come from this session: weights = session.weigh()."
            )
        self._open_rows()

    def _open_rows(self) -> RowSource:
        """The rows, in the session's own process and before it is closed."""
        self._home.check()
        if self._rows is None:
            raise PrivacyError("the session is closed; open a new one.")
        return self._rows

    def _try_on_public_rows(self, losses: Losses, cleaning: RowMap) -> None:
        """Run the losses on rows of zeros, where an error of theirs may be shown."""
        labels = np.zeros(2) if self._open_rows().labelled else None
        X, y = cleaning(np.zeros((2, self.n_columns)), labels)
        shape = np.shape(losses(X, y))
        if shape != (2,):
            raise ValueError(f"losses: one number for each row; got shape {shape} for 2 rows.")


def cap_of(weights: RowWeights, density: float) -> float:
    if density not in weights._cap:
        weights._cap[density] = log_cap(weights._log, density)
    return weights._cap[density]


def _losses(losses: Losses, X: FloatArray, y: FloatArray | None) -> FloatArray:
    """Losses in [0, 1] of one block; total."""

    def call(places: Any) -> tuple[FloatArray]:
        rows, labels = taken(X, places), taken(y, places)
        return (_unit(losses(rows, labels), len(rows)),)

    results, failed = by_rows(call, len(X))
    return np.ones(len(X)) if results is None else np.where(failed, 1.0, results[0])


def _unit(values: Any, rows: int) -> FloatArray:
    out = np.array(values, dtype=np.float64)  # a copy: it may be the caller's own
    if out.shape != (rows,):
        raise ValueError("one loss for each row.")
    out[np.isnan(out)] = 1.0
    return np.clip(out, 0.0, 1.0, out=out)
