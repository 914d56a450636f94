r"""Impossible outcomes: outputs that one of two neighbours can give and the other cannot.

An (epsilon, delta) guarantee says that what happens with probability p under one neighbour happens
with (p - delta) e^{-epsilon} at least under the other. Noise that was drawn on a grid and then
scaled, rotated or added to a private value breaks that in a way that no histogram shows: the
outputs lie on a comb, placed by the private value, and the teeth of two neighbours do not meet. So
outputs are looked at *modulo* a step: of a grid, of a lattice that the caller suspects, and of
lattices that are found in the outputs themselves (peaks in the Fourier transform of the difference
of the two histograms). Atoms, values that come again and again, are compared one by one.

Runs are cut in three. The first third shows which phases and atoms speak for which neighbour, and
which lattices there are; the second chooses one event; the last one counts it. Its two
probabilities have exact (Clopper-Pearson) limits, so that the bound

.. math:: \epsilon \ge \log \frac{p - \delta}{q}

is wrong with probability 1 - confidence at most, however the event was found.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from dpadapt import _validate as validate
from dpadapt._types import FloatArray, IntArray

_Mechanism = Callable[[Any, int], ArrayLike]
_BINS = 32  # of a phase
_CELLS = (1 << 17) - 2  # of the histograms in which lattices are looked for
_PADDED = 4  # times as many frequencies, so that a peak is not missed between two
_SMOOTH = 50  # frequencies below this many cycles over the range are those of the laws themselves
_FOUND = 3  # lattices that are looked at in each column
_FEW = 64  # different values that are too few to look for a lattice in
_THRESHOLDS = 100


@dataclass(frozen=True)
class SupportResult:
    """What was found; of :func:`compare_supports`.

    Attributes
    ----------
    epsilon : float
        The mechanism's epsilon is at least this, at ``delta``, with ``confidence``.
    claimed, delta : float
        The guarantee that was tested.
    confidence : float
    event : str
        The event that gave the bound, in words.
    seen : tuple of int
        How often it was seen under the first and the second neighbour.
    runs : int
        Out of so many runs each, which had no part in choosing it.

    Examples
    --------
    >>> SupportResult(2.0, 1.0, 1e-6, 0.95, "phases of column 0", (90, 2), 100).passed
    False
    """

    epsilon: float
    claimed: float
    delta: float
    confidence: float
    event: str
    seen: tuple[int, int]
    runs: int

    @property
    def passed(self) -> bool:
        """Whether nothing was found that the guarantee forbids."""
        return self.epsilon <= self.claimed

    def __str__(self) -> str:
        return (
            f"epsilon >= {self.epsilon:.3g} at delta {self.delta:.2g} with confidence "
            f"{self.confidence:.6g}; claimed {self.claimed:.3g}. Event: {self.event}, seen "
            f"{self.seen[0]} and {self.seen[1]} times in {self.runs} runs."
        )


def support_audit(
    mechanism: _Mechanism,
    first: Any,
    second: Any,
    *,
    runs: int,
    epsilon: float,
    delta: float,
    steps: Iterable[float] = (),
    confidence: float = 0.95,
) -> SupportResult:
    """Run a mechanism under two neighbours and look for outputs that only one of them can give.

    Parameters
    ----------
    mechanism : callable
        From a neighbour and a number of runs to a table of outputs, one row for each independent
        run. A number computed from an output may stand in a column too: what the output
        would have come from, were this or that the data.
    first, second : object
        Two neighbours, as the mechanism takes them.
    runs : int
        Of each; three at least, thousands to find something.
    epsilon, delta : float
        What is claimed.
    steps : iterable of float
        Steps of lattices to look at, besides those that are found: the grid of the noise, a
        scale over a power of two.
    confidence : float, default=0.95
        Of the bound.

    Returns
    -------
    SupportResult

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def honest(value, runs):
    ...     return value + rng.normal(size=runs)
    >>> def on_a_comb(value, runs):  # noise that is rounded before it is added
    ...     return value + np.rint(rng.normal(size=runs) * 4096) / 4096
    >>> claim = {"runs": 20_000, "epsilon": 1.0, "delta": 1e-6}
    >>> support_audit(honest, 0.0, 0.01, **claim).passed
    True
    >>> found = support_audit(on_a_comb, 0.0, 0.01, **claim)
    >>> found.passed, found.epsilon > 5
    (False, True)
    """
    validate.count("runs", runs, least=3)
    tables = [mechanism(neighbour, runs) for neighbour in (first, second)]
    return compare_supports(
        *tables, epsilon=epsilon, delta=delta, steps=steps, confidence=confidence
    )


def compare_supports(
    first: ArrayLike,
    second: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    steps: Iterable[float] = (),
    confidence: float = 0.95,
) -> SupportResult:
    """Test that two tables of outputs have the same support to within epsilon and delta.

    Parameters
    ----------
    first, second : array of shape (runs,) or (runs, columns)
        Outputs of independent runs under the one and under the other neighbour; finite numbers.
    epsilon, delta, steps, confidence
        As in :func:`support_audit`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> coins = [rng.random(3000) < p for p in (0.5, 0.6)]
    >>> compare_supports(*coins, epsilon=math.log(1.25), delta=0.0).passed
    True
    >>> compare_supports(*coins, epsilon=0.01, delta=0.0).passed
    False
    """
    validate.non_negative("epsilon", epsilon)
    validate.delta(delta, allow_zero=True)
    validate.fraction("confidence", confidence)
    known = [validate.positive("steps", step) for step in steps]
    a, b = (_table(name, given) for name, given in (("first", first), ("second", second)))
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"second has {b.shape[1]} columns and first has {a.shape[1]}.")
    runs = min(len(a), len(b))
    if runs < 3:
        raise ValueError("first and second need three runs each, at least.")
    learn, choose, count = ((a[i:runs:3], b[i:runs:3]) for i in range(3))
    miss = (1 - confidence) / 2  # for each of the two limits
    views = list(_views(*learn, known))
    view, event = _best(views, choose, delta, miss)
    seen = [int(event.holds(view.score(table)).sum()) for table in count]
    sizes = [len(table) for table in count]
    more, less = (0, 1) if event.for_first else (1, 0)
    found = _bound(seen[more], sizes[more], seen[less], sizes[less], delta, miss)
    words = f"{view.name} that speak for the {'first' if event.for_first else 'second'}"
    return SupportResult(
        float(found), epsilon, delta, confidence, words, (seen[0], seen[1]), min(sizes)
    )


def _table(name: str, given: ArrayLike) -> FloatArray:
    table = np.asarray(given, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError(f"{name} must be a table of finite numbers, one row for each run.")
    return table


# What is looked at -----------------------------------------------------------------------------


class _View(NamedTuple):
    """A way to look at outputs: a score that speaks for the first neighbour if it is large."""

    name: str
    score: Callable[[FloatArray], FloatArray]


class _Event(NamedTuple):
    """A half-line of scores."""

    threshold: float
    for_first: bool

    def holds(self, scores: FloatArray) -> NDArray[np.bool_]:
        return scores >= self.threshold if self.for_first else scores <= self.threshold


def _views(a: FloatArray, b: FloatArray, steps: list[float]) -> Iterator[_View]:
    every: dict[str, list[Callable[[FloatArray], FloatArray]]] = {}
    for column in range(a.shape[1]):
        one, two = a[:, column], b[:, column]
        looks = {"atoms": _atoms(one, two)}
        looks |= {f"phases modulo {step:.9g}": _phases(step) for step in steps}
        found = {f"phases modulo {s:.9g} (found)": _phases(s) for s in _lattices(one, two)}
        for name, codes in (looks | found).items():
            score = _scored(codes, one, two, column)
            yield _View(f"{name}, column {column}", score)
            if name in looks:
                every.setdefault(name, []).append(score)
    for name, scores in every.items():
        if len(scores) > 1:
            yield _View(f"{name}, all columns", functools.partial(_added, scores))


def _added(scores: list[Callable[[FloatArray], FloatArray]], table: FloatArray) -> FloatArray:
    return np.asarray(np.sum([score(table) for score in scores], axis=0))


def _scored(
    codes: Callable[[FloatArray], IntArray], one: FloatArray, two: FloatArray, column: int
) -> Callable[[FloatArray], FloatArray]:
    """Log-ratio of how often a code was seen; a code that was never seen says nothing."""
    seen = [codes(values) for values in (one, two)]
    size = max(_BINS, *(int(c.max()) + 1 for c in seen))
    first, second = (np.bincount(c, minlength=size) for c in seen)
    ratio = np.log((first + 0.5) / len(one)) - np.log((second + 0.5) / len(two))

    def score(table: FloatArray) -> FloatArray:
        return np.asarray(ratio[codes(table[:, column])])

    return score


def _phases(step: float) -> Callable[[FloatArray], IntArray]:
    def codes(values: FloatArray) -> IntArray:
        phase = values / step
        return np.rint((phase - np.floor(phase)) * _BINS).astype(np.int64) % _BINS

    return codes


def _atoms(one: FloatArray, two: FloatArray) -> Callable[[FloatArray], IntArray]:
    """0 for a value that came once at most, else its number."""
    values, counts = np.unique(np.concatenate([one, two]), return_counts=True)
    atoms = values[counts > 1]

    def codes(given: FloatArray) -> IntArray:
        if not len(atoms):
            return np.zeros(len(given), dtype=np.int64)
        place = np.minimum(np.searchsorted(atoms, given), len(atoms) - 1)
        return np.where(atoms[place] == given, place + 1, 0)

    return codes


def _lattices(one: FloatArray, two: FloatArray) -> list[float]:
    """Steps of lattices on which the two samples lie differently."""
    both = np.concatenate([one, two])
    low, high = (float(q) for q in np.quantile(both, [0.001, 0.999]))
    if high <= low or len(np.unique(both)) < _FEW:
        return []
    cell = (high - low) / _CELLS
    grid = _power_of_two_grid(both, cell)
    # on a grid, cells are its own points: no step is lost between them, all others are aliases
    cell, low = (grid, math.floor(low / grid) * grid) if grid else (cell, low)
    histograms = []
    for values in (one, two):
        inside = values[(values >= low) & (values <= high)]
        places = np.rint((inside - low) / cell).astype(np.int64)
        histograms.append(np.bincount(places, minlength=_CELLS + 2) / len(values))
    longest = max(map(len, histograms))
    first, second = (np.pad(h, (0, longest - len(h))) for h in histograms)
    size = 1 << (_PADDED * longest - 1).bit_length()
    power = np.abs(np.fft.rfft(first - second, size))
    frequencies = np.arange(len(power)) / (size * cell)
    power[frequencies < _SMOOTH / (high - low)] = 0.0
    width = math.ceil(size * cell / (high - low))
    found = []
    for _ in range(_FOUND):
        peak = int(np.argmax(power))
        if power[peak] > 0:
            found.append(1 / float(frequencies[peak]))
        power[max(0, peak - width) : peak + width + 1] = 0.0
    return found


def _power_of_two_grid(values: FloatArray, least: float) -> float | None:
    """A power of two, ``least`` or more, of which all values are multiples."""
    grid = math.ldexp(1.0, math.frexp(least)[1])
    if not (values / grid % 1 == 0).all():
        return None
    while (values / (2 * grid) % 1 == 0).all() and values.any():
        grid *= 2
    return grid


# What is concluded -----------------------------------------------------------------------------


def _best(
    views: list[_View],
    choose: tuple[FloatArray, FloatArray],
    delta: float,
    miss: float,
) -> tuple[_View, _Event]:
    """View and event with the largest bound on the runs that are for choosing."""
    best, chosen = -math.inf, (views[0], _Event(math.inf, True))
    for view in views:
        a, b = (np.sort(view.score(table)) for table in choose)
        at = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0, 1, _THRESHOLDS)))
        for for_first in (True, False):
            if for_first:
                more, less = (len(s) - np.searchsorted(s, at, side="left") for s in (a, b))
            else:
                more, less = (np.searchsorted(s, at, side="right") for s in (b, a))
            sizes = (len(a), len(b)) if for_first else (len(b), len(a))
            bounds = _bound(more, sizes[0], less, sizes[1], delta, miss)
            place = int(np.argmax(bounds))
            if bounds[place] > best:
                best, chosen = float(bounds[place]), (view, _Event(float(at[place]), for_first))
    return chosen


def _bound(more: Any, n: int, less: Any, m: int, delta: float, miss: float) -> Any:
    """Log((p - delta) / q) at the Clopper-Pearson limits; 0 where nothing is shown."""
    more, less = np.asarray(more), np.asarray(less)
    with np.errstate(all="ignore"):
        p = np.where(more > 0, stats.beta.ppf(miss, more, n - more + 1), 0.0)
        q = np.where(less < m, stats.beta.ppf(1 - miss, less + 1, m - less), 1.0)
        return np.where(p > delta, np.maximum(0.0, np.log((p - delta) / q)), 0.0)
