"""Public sub-populations that play the private people: the user's groups, clusters, row order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from dpadapt.auto.folds import group_folds

_CLUSTERS = _BLOCKS = 3
_LEAST = 40  # rows of a part, and of what is left
_NAMED = 3  # values that the name of a part lists
_CUT = 5.0  # standard deviations, so that one far row makes no cluster of its own


@dataclass(frozen=True, eq=False)
class Part:
    """Rows that play the private people; the others stay public.

    Parameters
    ----------
    name : str
    rows : ndarray of int

    Examples
    --------
    >>> Part("first rows", np.arange(3)).name
    'first rows'
    """

    name: str
    rows: NDArray[np.int64]


def sub_populations(X: NDArray[np.float64], groups: Any = None) -> tuple[Part, ...]:
    """Sub-populations of public rows: the user's groups, or clusters and both ends of the table.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Rows as numbers.
    groups : array-like of shape (m,), optional
        Put together to five parts at most, in the order in which they appear.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> [part.name for part in sub_populations(X)]
    ['cluster 1', 'cluster 2', 'cluster 3', 'first rows', 'last rows']
    >>> [part.name for part in sub_populations(X, np.repeat(["a", "b"], 250))]
    ['a', 'b']
    """
    m = len(X)
    if groups is not None:
        folds = group_folds(groups, m)
        found = [
            Part(_name(np.asarray(groups)[folds == each]), np.flatnonzero(folds == each))
            for each in np.unique(folds)
        ]
    else:
        found = [*_clusters(X), *_ends(m)]
    large = tuple(part for part in found if _LEAST <= len(part.rows) <= m - _LEAST)
    if not large:
        raise ValueError(
            f"X: no sub-population of the {m} public rows has {_LEAST} rows and leaves {_LEAST}, "
            "so that nothing can be rehearsed. Bring more public rows, or other groups."
        )
    return large


def _name(values: NDArray[Any]) -> str:
    """What a part of groups is called: by the values in it, in the order in which they appear."""
    names = [str(each) for each in dict.fromkeys(values.tolist())]
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _clusters(X: NDArray[np.float64]) -> list[Part]:
    """Three clusters of standardised columns."""
    scale = X.std(axis=0)
    rows = np.clip((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0), -_CUT, _CUT)
    if len(np.unique(rows, axis=0)) < _CLUSTERS:
        return []
    of = KMeans(_CLUSTERS, n_init=2, random_state=0).fit_predict(rows)
    return [Part(f"cluster {each + 1}", np.flatnonzero(of == each)) for each in range(_CLUSTERS)]


def _ends(m: int) -> list[Part]:
    size = m // _BLOCKS
    return [Part("first rows", np.arange(size)), Part("last rows", np.arange(m - size, m))]
