"""Public rows as matrices: their weighted moment, and what a symmetric matrix says of each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpadapt._types import FloatArray

_BLOCK = 4096  # rows per matrix product: the temporaries stay in the processor's cache


def row_scores(X: FloatArray, H: FloatArray) -> FloatArray:
    r"""Gradient in q from the gradient in M: :math:`-x_i^T H x_i` for every row.

    Examples
    --------
    >>> row_scores(np.array([[1.0, 0.0], [1.0, 2.0]]), np.diag([1.0, 0.5]))
    array([-1., -3.])
    """
    blocks = (X[start : start + _BLOCK] for start in range(0, len(X), _BLOCK))
    return -np.concatenate([np.vecdot(rows @ H, rows) for rows in blocks])


def weighted_moment(X: FloatArray, weights: FloatArray) -> FloatArray:
    r"""S(q), the weighted sum of :math:`x_i x_i^T`.

    Examples
    --------
    >>> weighted_moment(np.eye(2), np.array([0.25, 0.75]))
    array([[0.25, 0.  ],
           [0.  , 0.75]])
    """
    half = X * np.sqrt(weights)[:, None]
    moment: FloatArray = half.T @ half
    return moment


def symmetric_part(moment: npt.ArrayLike) -> FloatArray:
    """Symmetric part of a square matrix of finite numbers.

    Examples
    --------
    >>> symmetric_part([[1.0, 2.0], [0.0, 1.0]])
    array([[1., 1.],
           [1., 1.]])
    """
    matrix = np.asarray(moment, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError("target_moment must be a square matrix of finite numbers.")
    symmetric: FloatArray = (matrix + matrix.T) / 2
    return symmetric


def public_rows(X: npt.ArrayLike) -> FloatArray:
    """Public rows as a float64 matrix, or an error that names X.

    Examples
    --------
    >>> public_rows([[1, 2]])
    array([[1., 2.]])
    """
    rows = np.ascontiguousarray(X, dtype=np.float64)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise ValueError("X must be a matrix of finite numbers with at least one row and column.")
    return rows
