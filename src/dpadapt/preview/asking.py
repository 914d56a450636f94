"""The question itself: what so many private rows and these budgets would buy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from dpadapt.auto.stacking import Reader

from .rehearsal import Rehearsal, Stage, Tally, sub_populations
from .result import Preview, trust_in_words

_MOST_PUBLIC = 3000  # rows of a rehearsal: more would take long and change little
_ROUNDS = 3  # of each sub-population, with other test rows and other noise
_MEASURES = {True: "error rate", False: "mean squared error"}


def preview(
    X: Any,
    y: Any,
    *,
    rows: int,
    epsilons: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 4.0),
    delta: float = 1e-6,
    groups: Any = None,
    gap: float | None = None,
    task: str = "auto",
    progress: Callable[[int, int, str], None] | None = None,
) -> Preview:
    """Rehearse the fit on public sub-populations; nothing is spent, no private row is read.

    Each sub-population in turn plays the private people: :class:`~dpadapt.AutoRegressor` or
    :class:`~dpadapt.AutoClassifier` is fitted with the others as public rows and with the noise
    that ``rows`` private rows would get.

    Parameters
    ----------
    X : DataFrame or array-like of shape (m, d)
        Public rows.
    y : array-like of shape (m,)
        Public labels.
    rows : int
        Private rows that the real fit will have.
    epsilons : sequence of float
    delta : float, default=1e-6
    groups : array-like of shape (m,), optional
        Sub-populations of the public rows (sites, years); otherwise clusters and row order.
    gap : float, optional
        What no privacy at all would gain on the real private people, as a part of the error of
        public data alone, where more is known than the sub-populations show.
    task : {"auto", "regression", "classification"}
        By default what the labels say: texts and few whole numbers are classes.
    progress : callable, optional
        Called with (sub-populations done, in all, name of the next).

    Returns
    -------
    Preview

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> view = preview(X, X[:, 0] > 0, rows=5000, epsilons=[1.0])
    >>> view.measure, len(view.lines), view.rows
    ('error rate', 1, 5000)
    """
    _check(rows, epsilons, delta, gap)
    labels = np.asarray(y)
    table = X if hasattr(X, "iloc") else np.asarray(X)
    if labels.ndim != 1 or len(table) != len(labels):
        raise ValueError(
            f"y must hold one label for each of the {len(table)} public rows; got shape "
            f"{labels.shape}."
        )
    kept = _sample(len(labels))
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != labels.shape:
            raise ValueError(
                f"groups must have one entry for each public row, {len(labels)} in all; got shape "
                f"{groups.shape}."
            )
        groups = groups[kept]
    table = table.iloc[kept] if hasattr(table, "iloc") else table[kept]
    left_out, labels = len(labels) - len(kept), labels[kept]
    classes = np.unique(labels) if classifies(labels, task) else None
    if classes is None:
        labels = labels.astype(np.float64)
    reader = Reader.of(table)
    parts = sub_populations(reader.rows(table), groups)
    found: list[Rehearsal] = []
    tally = None if classes is None else Tally(classes)
    for place, part in enumerate(parts):
        if progress is not None:
            progress(place, len(parts), part.name)
        stage = Stage(table, labels, reader, part, rows, delta, classes, seed=place)
        found += stage.rehearse(sorted(set(map(float, epsilons))), _ROUNDS, tally)
    notes = trust_in_words(
        found,
        rows,
        grouped=groups is not None,
        left_out=left_out,
        expected_gap=gap,
        classes=classes is not None,
    )
    rare = () if tally is None else tuple(tally.sentences())
    measure = _MEASURES[classes is not None]
    return Preview(rows, delta, measure, tuple(found), (*rare, *notes), gap)


def classifies(labels: NDArray[Any], task: str = "auto") -> bool:
    """Whether labels are classes.

    Examples
    --------
    >>> classifies(np.array(["yes", "no"])), classifies(np.array([1.5, 2.25, 3.125]))
    (True, False)
    """
    if task not in ("auto", "regression", "classification"):
        raise ValueError(f"task must be 'auto', 'regression' or 'classification'; got {task!r}.")
    if task != "auto":
        return task == "classification"
    if labels.dtype.kind in "OUSb":
        return True
    few = len(np.unique(labels)) <= 10
    return few and type_of_target(labels) in ("binary", "multiclass")


def _sample(m: int) -> NDArray[np.int64]:
    """Rows that take part, in order."""
    if m <= _MOST_PUBLIC:
        return np.arange(m)
    return np.sort(np.random.default_rng(0).choice(m, _MOST_PUBLIC, replace=False))


def _check(rows: int, epsilons: Sequence[float], delta: float, gap: float | None) -> None:
    if rows < 1:
        raise ValueError(f"rows must be at least 1; got {rows}.")
    if len(epsilons) == 0 or not all(0 < each < np.inf for each in epsilons):
        raise ValueError(f"epsilons must be positive numbers, one or more; got {list(epsilons)}.")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be between 0 and 1; got {delta}.")
    if gap is not None and not 0 < gap < 1:
        raise ValueError(f"gap must be a part of the public error, between 0 and 1; got {gap}.")
