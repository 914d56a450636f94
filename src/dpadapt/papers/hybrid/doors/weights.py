r"""Dense multiplicative weights on private rows: the projection on a density, and its overlap.

Weights are kept as logarithms. Where a distribution over the rows is needed, they are projected on
a density :math:`\kappa` (Barak, Hardt, Kale 2009; Kohen, Sheffet, section 4):

.. math:: \Pi(w)_i = \min(c\,w_i, 1), \qquad \sum_i \Pi(w)_i = \kappa n, \qquad
          \mu_i = \Pi(w)_i / (\kappa n) \le q := 1 / (\kappa n).

**Overlap lemma.** Let w and w' differ in entry i only. Then

.. math:: \sum_{j \ne i} \min(\mu_j, \mu'_j) = 1 - \max(\mu_i, \mu'_i) \ge 1 - q .

Proof: let :math:`w_i \le w'_i` and :math:`F(c) = \sum_j \min(c w_j, 1)`, :math:`F'` the same of w'.
:math:`F' \ge F` and both grow with c, so :math:`c' \le c`; hence :math:`\Pi'_j \le \Pi_j` for every
:math:`j \ne i`. Both sum to :math:`\kappa n`: the sum of the minima over :math:`j \ne i` is
:math:`\sum_{j \ne i} \Pi'_j = \kappa n - \Pi'_i \ge \kappa n - 1`, and :math:`\Pi'_i \ge \Pi_i`.
Divide by :math:`\kappa n`.

So :math:`\mu = (1-q) A + q B` and :math:`\mu' = (1-q) A + q B'` with the same A on rows that both
samples have. What follows, and all that follows:

- the distance of total variation between :math:`\mu` and :math:`\mu'` is at most q;
- a weighted sum :math:`\sum_i \mu_i g(x_i)` moves by at most q times the diameter of the range of
  g, by at most 2 q G if :math:`\|g\| \le G`;
- one row drawn from the weights is the changed one, or drawn differently, with probability q.

It needs the two weight vectors to differ in one entry. So the *stored* weights must depend on their
own row and on what was released, on nothing else: they are never projected, and nothing (a maximum,
a sum) is ever taken off them. Both happen to temporaries only.

**Sums over private rows with hidden weights, and how the weights change (:mod:`.weights`).**
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from dpadapt import _validate
from dpadapt._types import FloatArray
from dpadapt.privacy.core.cleaning import RowMap
from dpadapt.privacy.core.hidden import Part
from dpadapt.privacy.core.sample import Known, Reduction, Sample
from dpadapt.privacy.core.session import Session
from dpadapt.privacy.core.statistic import RowMean, Statistic, check_sum
from dpadapt.privacy.rows.errors import PrivacyError
from dpadapt.privacy.rows.foreign import apply
from dpadapt.privacy.rows.quiet import withhold_errors
from dpadapt.privacy.rows.sources import BLOCK_ROWS

ALIAS_BLOCK = 1 << 16  # log-weights at a time: temporaries stay in the processor's cache
# Most that the rates may add up to: float64 knows a weight of e^-1000 to 13 digits (ROUNDING).
MOST_RATE = 1000.0
# Bound on the sum of |computed - exact| over the projected weights, relative to their sum: one
# exponential and the pairwise sums (64 roundings), and log c, whose size the rates bound.
WEIGHT_ROUNDING = (64 + 4 * MOST_RATE) * float(np.finfo(np.float64).eps)


class RowWeights:
    """Hidden weights of private rows, all 1 at first. They belong to one session.

    They cannot be printed, compared, converted, copied or pickled. They are changed with losses
    under released models (:func:`reweigh`), and used in a weighted sum
    (:class:`Weighted`) or to draw rows (:mod:`dpadapt.papers.hybrid.doors.draws`).

    Parameters
    ----------
    session : Session
    part : {"all", "train", "holdout"}

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> with Private([[0.0]] * 5).open(epsilon=1.0, delta=1e-6) as session:
    ...     RowWeights(session)
    RowWeights(5 rows, 0 updates)
    """

    __slots__ = ("_cap", "_draws", "_log", "_mass", "_owner", "part", "rate_spent", "updates")

    def __init__(self, session: Session, part: Part = "all") -> None:
        sample = session._part(part)
        sample.needs_replace_one("a weight for every row")
        sample.rows  # noqa: B018, refuses a closed session
        self._log = np.zeros(sample.n_rows)
        self._owner, self.part = session, part
        self.updates, self.rate_spent = 0, 0.0
        self._forget()

    def _forget(self) -> None:
        """Drop what was computed from the weights; they are about to change."""
        self._cap: dict[float, float] = {}
        self._mass: tuple[float, FloatArray] | None = None
        self._draws: tuple[float, Any] | None = None

    def __repr__(self) -> str:
        return f"RowWeights({len(self._log)} rows, {self.updates} updates)"

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __reduce__(self) -> NoReturn:
        raise TypeError("the weights of private rows cannot be copied or pickled.")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("the weights of private rows cannot be read.")


def mass_of(density: float, n_rows: int) -> float:
    """Number of rows kappa n that a density stands for; at least 1.

    Examples
    --------
    >>> mass_of(0.25, 1000)
    250.0
    >>> mass_of(0.25, 3)
    Traceback (most recent call last):
    ...
    ValueError: density 0.25 of 3 rows is less than one row; give at least 1 / 3.
    """
    if not 0 < _validate.positive("density", density) <= 1:
        raise ValueError(f"density must lie above 0 and be at most 1; got {density!r}.")
    if density * n_rows < 1 - 1e-9:
        raise ValueError(
            f"density {density:.6g} of {n_rows} rows is less than one row; give at least "
            f"1 / {n_rows}."
        )
    return max(1.0, density * n_rows)


def density_schedule(least: float, rates: Sequence[float]) -> list[float]:
    r"""Public density of every round: :math:`\max(\kappa, \exp(-\sum_{s<t} \eta_s))`.

    After updates with rates that sum to s no weight is more than e^s times another, so the weights
    have density e^-s without any projection; the paper charges kappa from the first round on.

    Parameters
    ----------
    least : float
        kappa, the density of the last rounds.
    rates : sequence of float
        The rate with which the weights are updated *after* each round.

    Returns
    -------
    list of float
        One density for each rate.

    Examples
    --------
    >>> [round(density, 3) for density in density_schedule(0.6, [0.2] * 5)]
    [1.0, 0.819, 0.67, 0.6, 0.6]
    """
    _validate.positive("least", least)
    spent = np.cumsum([0.0, *(_validate.non_negative("rate", rate) for rate in rates)])[:-1]
    return [float(density) for density in np.maximum(least, np.exp(-spent))]


def threshold_bits(n_rows: int) -> int:
    """Bits of a threshold in a packed alias table: 63 less those of a place, at most 52."""
    return min(52, 63 - max(1, (n_rows - 1).bit_length()))


def draw_rate(density: float, n_rows: int) -> float:
    """Rate of one row drawn from projected weights: 1 / (density n), and what the table rounds.

    A draw comes from a table whose probabilities are multiples of 2^-b / n, within half of one of
    those and, in all, within 2^-b / 2 in total variation of the projected weights
    (:mod:`._compiled`).
    The overlap of two tables is then at least that of the weights less twice that distance.

    Examples
    --------
    >>> round(draw_rate(0.5, 1000), 9)
    0.002
    """
    rounding = 2.0 ** -threshold_bits(n_rows) + 2 * WEIGHT_ROUNDING
    return min(1.0, 1 / mass_of(density, n_rows) + rounding)


def log_cap(log_weights: FloatArray, density: float) -> float:
    r"""Logarithm of the factor c at which the capped weights sum to density times n.

    Starts at :math:`c = \kappa n / \sum w` and repeats: the entries with :math:`c w_i \ge 1` are
    capped, :math:`c = (\kappa n - \text{capped}) / \text{rest}`, until no more are. It is Newton's
    method on a concave, piecewise linear function, from the left: capped entries stay capped, and
    the product of error and slope falls at least fourfold a pass (Dinkelbach), so that the passes
    grow with the *logarithm* of the ratio of weights. Three to eight are usual. How many there
    are depends on the weights, as does the time of everything that reads them.

    Examples
    --------
    >>> weights = np.array([8.0, 1.0, 1.0, 2.0])
    >>> c = math.exp(log_cap(np.log(weights), density=0.5))
    >>> np.minimum(c * weights, 1)
    array([1.  , 0.25, 0.25, 0.5 ])
    """
    mass = mass_of(density, len(log_weights))
    cap, capped = -math.inf, -1
    while True:
        count, log_rest = _beyond(log_weights, cap)
        left = mass - count
        # rounding can leave nothing for the rest; what the rest then holds is rounding too
        if count == capped or left <= 0 or math.isinf(log_rest):
            return cap
        new = math.log(left) - log_rest
        if not new > cap:
            return cap
        cap, capped = new, count


def projected(log_weights: FloatArray, cap: float) -> FloatArray:
    """Pi(w) = min(c w, 1) of some of the log-weights, as a new array.

    Examples
    --------
    >>> projected(np.log([8.0, 1.0]), math.log(0.25))
    array([1.  , 0.25])
    """
    shifted = log_weights + cap
    np.minimum(shifted, 0.0, out=shifted)
    return np.exp(shifted, out=shifted)


def pieces(n_rows: int, size: int = ALIAS_BLOCK) -> Iterator[slice]:
    """Slices that cover the rows, in order."""
    for start in range(0, n_rows, size):
        yield slice(start, start + size)


def _beyond(log_weights: FloatArray, cap: float) -> tuple[int, float]:
    """Number of entries with c w >= 1, and the logarithm of the sum of the others."""
    count = 0
    tops, sums = [], []
    for cut in pieces(len(log_weights)):
        piece = log_weights[cut]
        if cap > -math.inf:
            rest = piece[piece + cap < 0]
            count += len(piece) - len(rest)
            piece = rest
        if len(piece):
            tops.append(float(piece.max()))
            sums.append(float(np.exp(piece - tops[-1]).sum()))
    if not tops:
        return count, -math.inf
    top = max(tops)
    parts = (each * math.exp(own - top) for each, own in zip(sums, tops, strict=True))
    return count, top + math.log(math.fsum(parts))


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

    withhold_errors(lower, PrivacyError)


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
