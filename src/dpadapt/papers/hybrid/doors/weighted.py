"""Sums over private rows with hidden weights, and how the weights change (:mod:`.weights`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt import _validate
from dpadapt._types import FloatArray
from dpadapt.privacy.core.cleaning import RowMap
from dpadapt.privacy.core.errors import PrivacyError
from dpadapt.privacy.core.quiet import withheld
from dpadapt.privacy.core.sample import Known, Reduction, Sample
from dpadapt.privacy.core.statistic import RowMean, Statistic, check_sum
from dpadapt.privacy.rows.foreign import apply
from dpadapt.privacy.rows.sources import BLOCK_ROWS

from .weights import MOST_RATE, WEIGHT_ROUNDING, RowWeights, log_cap, mass_of, projected

_Losses = Callable[[FloatArray, FloatArray | None], FloatArray]
KEPT_ROWS = 1 << 24  # of which projected weights are kept for the next query


class WeightedMean(RowMean):
    """A mean that can also be summed with weights on the rows.

    ``magnitude`` bounds the norm of one row's contribution. ``sensitivity(1)``, the most that the
    answer on a single row can move, bounds the diameter of the contributions; where it is smaller
    than twice the magnitude (contributions in [0, 1], say) the weighted sum gains from it.
    """

    @abstractmethod
    def weighted_block(
        self, X: FloatArray, y: FloatArray | None, weights: FloatArray
    ) -> FloatArray:
        """Sum over the rows of one cleaned block, each times its weight, in float64."""


def weighted_sensitivity(mean: WeightedMean, density: float, n_rows: int) -> float:
    """Sensitivity of a :class:`Weighted` sum, from public facts alone.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> from dpadapt.privacy.statistics import SecondMoment
    >>> query = SecondMoment(Cleaning(radius=1.0))
    >>> round(weighted_sensitivity(query, density=0.5, n_rows=1000), 8)  # sqrt(2) / 500
    0.00282843
    """
    # a row without a label adds 0, which may be farther away than what others add
    diameter = min(2 * mean.magnitude, max(mean.sensitivity(1), mean.alone))
    summing = (BLOCK_ROWS + 8) * float(np.finfo(np.float64).eps)
    return diameter / mass_of(density, n_rows) + 2 * (summing + WEIGHT_ROUNDING) * mean.magnitude


@dataclass(frozen=True, eq=False)
class Weighted(Statistic):
    r"""Sum of what a mean takes of every row, under the projected weights.

    The answer is :math:`\sum_i \mu_i g(x_i)`, with the projection of the weights on the density
    and :math:`q = 1 / (\kappa n)`. By the overlap lemma (:mod:`.weights`) it is (1-q) a + q b
    on one sample and (1-q) a + q b' on a neighbour, b and b' averages of contributions: it
    moves by at most q times their diameter, and so by at most 2 q times the magnitude. Attained
    when the changed row holds the weight q before and after. The sensitivity is enlarged by
    what rounding can do to the weights and to the sum.

    Parameters
    ----------
    mean : WeightedMean
    weights : RowWeights
    density : float
        kappa; public.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> with Private([[0.0]] * 5).open(epsilon=1.0, delta=1e-6) as session:
    ...     weights = RowWeights(session)
    """

    mean: WeightedMean
    weights: RowWeights
    density: float

    @property
    def label(self) -> str:
        """That of the mean."""
        return self.mean.label

    def entry_radius(self) -> float:
        """That of the mean."""
        return self.mean.entry_radius()

    def sensitivity_on(self, sample: Sample) -> float:
        """Sensitivity, for weights of the same session and part."""
        check_weights(self.weights, sample)
        check_sum(self.label, lambda: self.mean.magnitude, sample.most_rows)
        return weighted_sensitivity(self.mean, self.density, sample.n_rows)

    def reduce(self, sample: Sample) -> FloatArray:
        """Sum under the weights."""
        mean = self.mean
        shape = mean.shape(sample.n_columns)
        value = sample.total(mean.cleaning, _weighted(mean, self.weights, self.density), shape)
        return np.nan_to_num(value, nan=0.0, posinf=0.0, neginf=0.0)


def reweigh(
    weights: RowWeights, losses: _Losses, cleaning: RowMap, rate: float, *, keep: bool = False
) -> None:
    """Lower the weight of every row on which a released model does well.

    log w -= rate * (1 - loss); the loss of a row without a label is 0. The stored weights are not
    projected: a row's weight stays a function of that row and of what was released.

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

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> with Private([[0.0]] * 5).open(epsilon=1.0, delta=1e-6) as session:
    ...     weights = RowWeights(session)
    ...     reweigh(weights, lambda X, y: X[:, 0], Cleaning(radius=1.0), rate=0.1)
    >>> weights
    RowWeights(5 rows, 1 updates)
    """
    if not isinstance(weights, RowWeights):
        raise PrivacyError(_MADE)
    sample = weights._owner._part(weights.part)
    rate = _validate.positive("rate", rate)
    if weights.rate_spent + rate > MOST_RATE:
        raise ValueError(f"the rates of one set of weights may add up to {MOST_RATE:g} at most.")
    _try_on_public_rows(losses, cleaning, sample)
    weights._forget()
    weights.updates += 1
    weights.rate_spent += rate
    view = sample.lent(keep=keep)

    def lower() -> None:
        done = 0
        for X, y, known in view.blocks(cleaning):
            gains = 1.0 - _losses(losses, X, y)
            gains = gains if known is None else np.where(known, gains, 1.0)
            gains *= rate
            weights._log[done : done + len(X)] -= gains
            done += len(X)

    withheld(lower, PrivacyError)


_MADE = "the weights must come from this session: weights = RowWeights(session)."


def check_weights(weights: RowWeights, sample: Sample) -> None:
    """Refuse weights of another session, or of another part."""
    mine = isinstance(weights, RowWeights) and weights.part == sample.part
    if not mine or weights._owner._samples.get(sample.part) is not sample._origin:
        raise PrivacyError(_MADE)


def _weighted(mean: WeightedMean, weights: RowWeights, density: float) -> Reduction:
    mass = mass_of(density, len(weights._log))
    cap = cap_of(weights, density)
    if len(weights._log) <= KEPT_ROWS and (weights._mass or (0,))[0] != density:
        weights._mass = (density, projected(weights._log, cap) / mass)
    kept = weights._mass[1] if weights._mass and weights._mass[0] == density else None
    done = 0

    def reduce(X: FloatArray, y: FloatArray | None, known: Known | None) -> FloatArray:
        nonlocal done
        cut = slice(done, done + len(X))
        done += len(X)
        own = projected(weights._log[cut], cap) / mass if kept is None else kept[cut]
        return mean.weighted_block(X, y, own if known is None else np.where(known, own, 0.0))

    return reduce


def _try_on_public_rows(losses: _Losses, cleaning: RowMap, sample: Sample) -> None:
    """Run the losses on rows of zeros, where an error of theirs may be shown."""
    labels = np.zeros(2) if sample.rows.labelled else None
    X, y = cleaning(np.zeros((2, sample.n_columns)), labels)
    shape = np.shape(losses(X, y))
    if shape != (2,):
        raise ValueError(f"losses: one number for each row; got shape {shape} for 2 rows.")


def cap_of(weights: RowWeights, density: float) -> float:
    """Logarithm of the factor of the projection, remembered."""
    if density not in weights._cap:
        weights._cap[density] = log_cap(weights._log, density)
    return weights._cap[density]


def _losses(losses: _Losses, X: FloatArray, y: FloatArray | None) -> FloatArray:
    """Losses in [0, 1] of one block; total."""
    results, failed = apply(losses, (X, y), len(X), lambda found, rows: (_unit(found, rows),))
    return np.ones(len(X)) if results is None else np.where(failed, 1.0, results[0])


def _unit(values: Any, rows: int) -> FloatArray:
    out = np.array(values, dtype=np.float64)  # a copy: it may be the caller's own
    if out.shape != (rows,):
        raise ValueError("one loss for each row.")
    out[np.isnan(out)] = 1.0
    return np.clip(out, 0.0, 1.0, out=out)
