"""Which public rows are scored by experts that have not seen them: folds that rehearse a shift.

Shuffled folds make a stack trust the experts as if private rows were more of the same. Folds that
differ from each other rehearse what a private table will do. The rules, as they were measured:

- *groups* that the user gives (sites, batches, years), put together to five folds at most;
- regression without groups: five blocks in row order; the weights of the stack are the mean of
  those under blocks and those under shuffled folds;
- classification without groups: five clusters of the columns, unless one cluster holds nearly all
  of a class (the others would not know the class); then four folds by lot, class by class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from dpadapt._types import FloatArray

Codes = NDArray[np.int64]

_FOLDS, _CLASS_FOLDS = 5, 4
_MOST_OF_A_CLASS, _A_CLASS = 0.99, 50
_MOST = 10_000  # rows that experts of numbers are tried on
_FEW = 20  # rows: with fewer there is one fold, and nothing is held out


def trial_rows(rows: int) -> Codes:
    """Places of the rows that experts are tried on: all, or 10,000 by lot in their order.

    Weights of a stack and sizes of errors need no more; the experts themselves see all rows.

    Examples
    --------
    >>> trial_rows(3)
    array([0, 1, 2])
    >>> len(trial_rows(50_000))
    10000
    """
    return np.sort(np.random.default_rng(0).permutation(rows)[:_MOST])


def block_folds(rows: int) -> Codes:
    """Five blocks in row order.

    Examples
    --------
    >>> np.bincount(block_folds(50))
    array([10, 10, 10, 10, 10])
    """
    return np.arange(rows) * (_FOLDS if rows >= _FEW else 1) // max(rows, 1)


def shuffled_folds(rows: int) -> Codes:
    """Five folds by lot, always the same.

    Examples
    --------
    >>> np.bincount(shuffled_folds(50))
    array([10, 10, 10, 10, 10])
    """
    return block_folds(rows)[np.random.default_rng(0).permutation(rows)]


def class_folds(codes: Codes) -> Codes:
    """Four folds by lot, class by class, always the same: rows that nothing tells apart.

    Not in row order: blocks of a sorted table (by year, say) differ, and what is usual without a
    shift would look like one.

    Examples
    --------
    >>> np.bincount(class_folds(np.repeat([0, 1], 20)))
    array([10, 10, 10, 10])
    """
    fold = np.zeros(len(codes), dtype=np.int64)
    for each in np.unique(codes) if len(codes) >= _FEW else ():
        places = np.random.default_rng(0).permutation(np.flatnonzero(codes == each))
        fold[places] = np.arange(len(places)) * _CLASS_FOLDS // len(places)
    return fold


def cluster_folds(X: FloatArray, codes: Codes) -> Codes | None:
    """Five clusters of the columns, never of columns and classes; None where a class would go.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> len(np.unique(cluster_folds(X, np.arange(300) % 2)))
    5
    """
    scale = X.std(axis=0)
    rows = np.clip((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0), -5, 5)
    if len(X) < 2 * _A_CLASS or len(np.unique(rows, axis=0)) < _FOLDS:
        return None
    fold = KMeans(_FOLDS, n_init=2, random_state=0).fit_predict(rows).astype(np.int64)
    common = [each for each in np.unique(codes) if np.sum(codes == each) >= _A_CLASS]
    shares = [np.bincount(fold[codes == each]).max() / np.sum(codes == each) for each in common]
    return None if not shares or max(shares) > _MOST_OF_A_CLASS else fold


def group_folds(groups: Any, rows: int) -> Codes:
    """A user's groups, in the order in which they appear, put together to five folds at most.

    Examples
    --------
    >>> group_folds(["b", "b", "a", "c"], 4)
    array([0, 0, 1, 2])
    """
    given = np.asarray(groups)
    if given.shape != (rows,):
        raise ValueError(
            f"groups must have one entry for each public row, {rows} in all; got shape "
            f"{given.shape}."
        )
    names, first, places = np.unique(given, return_index=True, return_inverse=True)
    if len(names) < 2:
        raise ValueError("groups must name at least two groups; leave it None for the usual folds.")
    order = np.argsort(np.argsort(first))[places]
    if len(names) <= _FOLDS:
        return order.astype(np.int64)
    sizes = np.bincount(order)
    middle = np.cumsum(sizes) - sizes / 2
    return (middle * _FOLDS / rows).astype(np.int64)[order]
