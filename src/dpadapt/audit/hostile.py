"""Neighbours of the worst kind, and a replay of an estimator on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .replay import Replay, replay

_ROWS, _AGENTS = 40, 1100
_SEED = 11
HOSTILE_ROWS: tuple[Sequence[Any], ...] = (
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
Sample = tuple[Any, Any]


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
    fit: Callable[[Sample], Any]
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


def hostile_pairs(one: Combination, pairs: int, seed: int) -> Iterator[tuple[Sample, Sample]]:
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
        rows = rng.choice(len(HOSTILE_ROWS), 2, replace=False) if number else (0, 1)
        told = rng.choice(len(labels), 2) if number else (0, 1)
        X[where], y[where] = list(HOSTILE_ROWS[rows[0]]), labels[told[0]]
        other, other_y = X.copy(), y.copy()
        if one.relation == "add-remove":
            yield (X, y), (np.delete(other, where, 0), np.delete(other_y, where))
            continue
        other[where], other_y[where] = list(HOSTILE_ROWS[rows[1]]), labels[told[1]]
        yield (X, y), (other, other_y)


def sample_of(task: str, rng: np.random.Generator) -> Sample:
    """Draw harmless rows and labels of a task."""
    rows = _AGENTS if task == "agents" else _ROWS
    X = rng.normal(0.3, 1, size=(rows, 3))
    return X.astype(object), labels_of(task, X).astype(object)


def labels_of(task: str, X: Any) -> Any:
    """Labels of a task for rows."""
    score = X @ [0.5, -0.3, 0.2]
    if task == "regression":
        return score
    return np.digitize(score, [-0.3, 0.3] if task == "three classes" else [0.0])
