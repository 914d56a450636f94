"""Replay: freeze what was released, change one person, and see what moves.

Differential privacy is proved release by release: *given what was released before*, the next
un-noised value moves by at most its stated sensitivity when one person changes. That can be checked
as it stands. A fit runs on a sample while everything is recorded; then it runs on a neighbour, and
every mechanism gives what it gave the first time. Now

- the same must be done: the same sessions, charges, passes over the rows, requests, shapes, scales
  and releases in the same order, and the same error, if there is one;
- every un-noised value must lie within its stated sensitivity of the first one;
- the two results must be equal, bit by bit, because all that they are made of is.

The *ratio* of a release is the distance over the sensitivity. More than 1, or a difference in the
rest, refutes the guarantee for this pair. A clean replay proves nothing: another pair may be worse.

The norm of the distance is that of the mechanism:

======== ==================================================================================
l2       Gaussian noise; Frobenius for symmetric matrices, the kernel's norm for processes
l1       Laplace noise
range    choices: the largest difference of two changes of scores
draw     rows drawn from weights: largest probability of a row, or distance in total variation
rows     one row's own answer may change in any way: how many rows' answers have
======== ==================================================================================

A grant that pays for fewer releases than it makes (an individual filter) has a ratio of its own
for all of them together, the root of the sum of squares over what it pays for.

A learner that is handed drawn rows is not replayed inside the fit: its guarantee is for those rows.
Replay it by itself. Un-noised values must not leave: replay made-up or public rows only: the
last part makes neighbours of the worst kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy.recording.recording import recording
from dpadapt.privacy.recording.tape import Diverged, Recorded, Recording

_ROUNDING = 1e-9  # by which a ratio may pass 1: what this module's own arithmetic can do
_DEPTH = 12  # of attributes within attributes that are compared


@dataclass(frozen=True)
class Moved:
    """How far one un-noised value moved.

    Parameters
    ----------
    label, mechanism : str
    ratio : float
        Distance over stated sensitivity.

    Examples
    --------
    >>> Moved("second moment", "SymmetricGaussian", 0.7).ratio
    0.7
    """

    label: str
    mechanism: str
    ratio: float


@dataclass(frozen=True)
class Replay:
    """What a replay found.

    Parameters
    ----------
    moved : tuple of Moved
        Every release, in order; then every filtered grant.
    diverged : str or None
        Where what was done differs, in words.
    refused : str or None
        The error that both samples gave.

    Examples
    --------
    >>> Replay((Moved("mean", "Gaussian", 0.25),))
    Replay(1 release, largest ratio 0.2500)
    """

    moved: tuple[Moved, ...]
    diverged: str | None = None
    refused: str | None = None

    @property
    def largest(self) -> float:
        """Largest ratio; 0 if nothing was released."""
        return max((one.ratio for one in self.moved), default=0.0)

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the guarantee."""
        return self.diverged is None and self.largest <= 1 + _ROUNDING

    def __repr__(self) -> str:
        count = len(self.moved)
        text = f"{count} release{'s' * (count != 1)}, largest ratio {self.largest:.4f}"
        if self.diverged is not None:
            text += f", DIVERGED at {self.diverged}"
        if self.refused is not None:
            text += f", both refused: {self.refused}"
        return f"Replay({text})"


def replay(fit: Callable[[Any], Any], sample: Any, neighbour: Any, *, seed: int = 0) -> Replay:
    """Run on a sample, freeze the releases, run on a neighbour, compare.

    Parameters
    ----------
    fit : callable
        Takes a sample, builds its own :class:`dpadapt.Private` (or ``Agents``) of it, and returns
        what would be published. Anything that is written with sessions or agents will do; a new
        estimator at every call, without a ledger.
    sample, neighbour : object
        Made-up or public; they differ in one person.
    seed : int, default=0
        Of the noise of the first run.

    Returns
    -------
    Replay

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor, Private
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.normal(size=(200, 2)), rng.normal(size=(50, 2))
    >>> def fit(rows):
    ...     model = DiscrepancyRegressor(epsilon=1.0, delta=1e-6)
    ...     return model.fit(X, X[:, 0], private=Private(rows))
    >>> other = T.copy()
    >>> other[3] = [1e308, np.nan]
    >>> found = replay(fit, T, other)
    >>> found.holds, found.largest <= 1
    (True, True)
    """
    first, result, failure = _run(fit, sample, None, seed)
    second, again, failure_again = _run(fit, neighbour, first, seed)
    pairs = list(zip(first.values, second.values, strict=False))
    moved = [Moved(one.label, one.mechanism, _ratio(one, two)) for one, two in pairs]
    moved += _of_filters(pairs)
    diverged = second.diverged
    if diverged is None and failure != failure_again:
        diverged = f"an error: {failure or 'none'}; now {failure_again or 'none'}"
    if diverged is None and len(second.facts) < len(first.facts):
        diverged = f"step {len(second.facts)}: {first.facts[len(second.facts)]}; now the end"
    if diverged is None and failure is None:
        difference = _difference(result, again, "result", {}, _DEPTH)
        diverged = difference and f"{difference}, though every release was the same"
    return Replay(tuple(moved), diverged, failure)


def distance_between(norm: str, one: FloatArray, two: FloatArray) -> float:
    """How far two un-noised values are apart; see the module for the norms.

    Examples
    --------
    >>> distance_between("l1", np.array([0.0, 3.0]), np.array([4.0, 0.0]))
    7.0
    >>> distance_between("range", np.array([0.0, 3.0]), np.array([4.0, 0.0]))
    7.0
    """
    if norm == "rows":
        same = (one == two) | (np.isnan(one) & np.isnan(two))
        return float(np.count_nonzero(~same.reshape(len(same), -1).all(axis=1))) if same.size else 0
    change = np.asarray(two - one, dtype=np.float64)
    if norm == "draw":
        most = max(one.max(initial=0.0), two.max(initial=0.0))
        return float(max(most, np.abs(change).sum() / 2))
    if norm == "l1":
        return float(np.abs(change).sum())
    if norm == "range":
        return float(np.ptp(change)) if change.size else 0.0
    largest = float(np.abs(change).max(initial=0.0))
    # in units of the largest one, whose square neither overflows nor underflows
    return (
        largest * float(np.linalg.norm(change.ravel() / largest))
        if 0 < largest < np.inf
        else (largest)
    )


def _run(
    fit: Callable[[Any], Any], sample: Any, played: Recording | None, seed: int
) -> tuple[Recording, Any, str | None]:
    result, failure = None, None
    with recording(played, seed=seed) as heard, np.errstate(all="ignore"):
        try:
            result = fit(sample)
        except Diverged:
            pass
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
    return heard, result, failure


def _ratio(one: Recorded, two: Recorded) -> float:
    if one.value.shape != two.value.shape:
        return math.inf
    if one.label.endswith(": gradients"):  # lengths on both sides, not a difference
        return float(max(one.value.max(), two.value.max()) / one.sensitivity)
    return distance_between(one.norm, one.value, two.value) / one.sensitivity


def _of_filters(pairs: Sequence[tuple[Recorded, Recorded]]) -> list[Moved]:
    """All releases together of each grant that makes more of them than it pays for."""
    made: dict[int, list[tuple[Recorded, Recorded]]] = {}
    for pair in pairs:
        made.setdefault(pair[0].grant, []).append(pair)
    found = []
    for grant, its in made.items():
        first = its[0][0]
        if grant >= 0 and first.norm == "l2" and len(its) > first.count:
            total = math.sqrt(
                math.fsum(pair[0].share * _ratio(*pair) ** 2 for pair in its) / first.count
            )
            found.append(Moved(f"{first.label}: all of them", first.mechanism, total))
    return found


def _difference(one: Any, two: Any, path: str, seen: dict[int, Any], depth: int) -> str | None:
    """Where two results differ, if they do: numbers bit by bit, objects by their attributes."""
    if one is two or depth == 0 or id(one) in seen:
        return None
    seen[id(one)] = one
    if type(one) is not type(two):
        return path
    if isinstance(one, np.ndarray) and one.dtype != object:
        same = one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()
        return None if same else path
    if isinstance(one, (str, bytes, bool, int, float, complex, np.generic)) or one is None:
        return None if one == two or (one != one and two != two) else path
    if isinstance(one, dict):
        if list(map(repr, one)) != list(map(repr, two)):
            return path
        parts = [(f"{path}[{key!r}]", one[key], two[key]) for key in one if key in two]
    elif isinstance(one, (list, tuple, np.ndarray)):
        if len(one) != len(two):
            return path
        parts = [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(one, two, strict=True))]
    elif hasattr(one, "__dict__") and not callable(one):
        parts = [(path, vars(one), vars(two))]
    else:
        return None
    for name, a, b in parts:
        if (found := _difference(a, b, name, seen, depth - 1)) is not None:
            return found
    return None


_ROWS, _AGENTS = 40, 1100
_SEED = 11
_HOSTILE_ROWS: tuple[Sequence[Any], ...] = (
    [1e5, 0.0, 0.0],  # the first two, and the first two labels, move a release the farthest
    [-1e5, 0.0, 0.0],
    [1e308, -1e308, 1e308],
    [np.nan, np.nan, np.nan],
    [np.inf, -np.inf, 0.0],
    [5e-324, -5e-324, 5e-324],
    [-0.0, -0.0, -0.0],
    [0.0, 0.0, 1e154],
    [3.0, 3.0, 3.0],
    [-3.0, -3.0, -3.0],
    [None, True, "x"],
    ["2021-01-01", b"\xff", 10**400],
)
HOSTILE_NUMBERS = (5.0, -5.0, 1e308, -1e308, np.nan, np.inf, -0.0, None, "a lot", True)
HOSTILE_CLASSES = (0, 1, 2, -7, np.nan, None, "none of them", True, 1e308)
RowsAndLabels = tuple[Any, Any]


@dataclass(frozen=True)
class Combination:
    """An estimator with options.

    Parameters
    ----------
    name : str
    fit : callable
        From a sample of private rows and labels to what would be published.
    task : {"regression", "two classes", "three classes", "agents"}
        "agents": the sample is that of the agents.
    relation : {"replace-one", "add-remove"}

    Examples
    --------
    >>> Combination("nothing", lambda sample: None, "regression").relation
    'replace-one'
    """

    name: str
    fit: Callable[[RowsAndLabels], Any]
    task: str
    relation: str = "replace-one"

    @property
    def estimator(self) -> str:
        """Name of the class."""
        return self.name.partition("(")[0]


def replay_combination(one: Combination, *, pairs: int = 3, seed: int = _SEED) -> Replay:
    """Replay a combination on hostile pairs; the first that fails, else all ratios together.

    Examples
    --------
    >>> nothing = Combination("nothing", lambda sample: None, "regression")
    >>> replay_combination(nothing).holds
    True
    """
    moved: list[Any] = []
    refused = None
    for number, (sample, neighbour) in enumerate(hostile_pairs(one, pairs, seed)):
        found = replay(one.fit, sample, neighbour, seed=number)
        if not found.holds:
            return found
        moved += found.moved
        refused = refused or found.refused
    return Replay(tuple(moved), None, refused)


def hostile_pairs(
    one: Combination, pairs: int, seed: int
) -> Iterator[tuple[RowsAndLabels, RowsAndLabels]]:
    """Neighbours that differ in one row of the worst kind; under add-remove the other lacks it.

    The first pair differs in two long rows, opposite to each other in cells and labels; the others
    in whatever chance takes from the list.

    Examples
    --------
    >>> nothing = Combination("nothing", lambda sample: None, "regression")
    >>> ((X, y), (Z, t)), = hostile_pairs(nothing, 1, seed=0)
    >>> sum(list(map(str, a)) != list(map(str, b)) for a, b in zip(X, Z))
    1
    """
    rng = np.random.default_rng(seed)
    labels = HOSTILE_NUMBERS if one.task == "regression" else HOSTILE_CLASSES
    for number in range(pairs):
        X, y = sample_of(one.task, rng)
        X[1] = X[0]  # people who are alike
        where = int(rng.integers(len(X)))
        rows = rng.choice(len(_HOSTILE_ROWS), 2, replace=False) if number else (0, 1)
        told = rng.choice(len(labels), 2) if number else (0, 1)
        X[where], y[where] = list(_HOSTILE_ROWS[rows[0]]), labels[told[0]]
        other, other_y = X.copy(), y.copy()
        if one.relation == "add-remove":
            yield (X, y), (np.delete(other, where, 0), np.delete(other_y, where))
            continue
        other[where], other_y[where] = list(_HOSTILE_ROWS[rows[1]]), labels[told[1]]
        yield (X, y), (other, other_y)


def sample_of(task: str, rng: np.random.Generator) -> RowsAndLabels:
    """Draw harmless rows and labels of a task."""
    rows = _AGENTS if task == "agents" else _ROWS
    X = rng.normal(0.3, 1, size=(rows, 3))
    return X.astype(object), task_labels(task, X).astype(object)


def task_labels(task: str, X: Any) -> Any:
    """Labels of a task for rows."""
    score = X @ [0.5, -0.3, 0.2]
    if task == "regression":
        return score
    return np.digitize(score, [-0.3, 0.3] if task == "three classes" else [0.0])
