"""The way of rows down trees, compiled by numba; imported when there is much to walk.

It compares the same numbers as numpy does, and nothing is added up: the leaves are the same ones,
whatever walks there.
"""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(nogil=True)
def leaves_of(
    X: Any, roots: Any, feature: Any, threshold: Any, left: Any, right: Any, depth: int, out: Any
) -> None:
    """Write the place of the leaf of every row in every tree into ``out``.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        In row-major order. Every ``feature`` must be below d, every place below the number of
        nodes: nothing checks that here.
    roots : ndarray of shape (trees,)
    feature, threshold, left, right : ndarray
    depth : int
    out : ndarray of shape (n, trees)

    Examples
    --------
    >>> import numpy as np
    >>> nodes = np.array([1, 1, 2]), np.array([2, 1, 2])
    >>> X, out = np.array([[0.0], [1.0], [np.nan]]), np.empty((3, 1), dtype=np.int32)
    >>> root, column = np.zeros(1, dtype=int), np.zeros(3, dtype=int)
    >>> leaves_of(X, root, column, np.full(3, 0.5), *nodes, 1, out)
    >>> out.ravel()
    array([1, 2, 2], dtype=int32)
    """
    for i in range(len(X)):
        for j in range(len(roots)):
            node = roots[j]
            for _ in range(depth):
                if left[node] == node and right[node] == node:
                    break
                node = left[node] if X[i, feature[node]] <= threshold[node] else right[node]
            out[i, j] = node
