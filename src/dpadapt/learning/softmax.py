r"""The softmax, and multinomial logistic regression in matrix products.

Row i has the residual :math:`r_i = \mathrm{softmax}(W^T x_i) - e_{y_i}`, the gradient
:math:`x_i r_i^T` and so the gradient norm :math:`\|x_i\| \|r_i\|`: nobody needs the gradient of
one row. A row of no class (code -1) has residual 0.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from dpadapt._types import FloatArray

RealArray = npt.NDArray[Any]  # float32 or float64; what comes back has the same type
Codes = npt.NDArray[Any]  # whole numbers, in any type
_FEW = 16  # columns


def softmax(scores: FloatArray) -> FloatArray:
    """Probabilities: exponentials over their sum, of one vector or row by row.

    Examples
    --------
    >>> softmax(np.zeros(4)), softmax(np.array([[1000.0, 1000.0]]))
    (array([0.25, 0.25, 0.25, 0.25]), array([[0.5, 0.5]]))
    """
    if scores.ndim == 1:
        chances = np.exp(scores - scores.max())
        return np.asarray(chances / chances.sum())
    chances = scores - _over_rows(np.maximum, scores)[:, None]
    np.exp(chances, out=chances)
    chances /= _over_rows(np.add, chances)[:, None]
    return np.asarray(chances)


def log_sum_exp(scores: FloatArray) -> FloatArray:
    """Logarithm of the sum of the exponentials of each row: what :func:`softmax` divides by.

    Examples
    --------
    >>> log_sum_exp(np.array([[1000.0, 1000.0]])) - 1000
    array([0.69314718])
    """
    largest = _over_rows(np.maximum, scores)
    return np.asarray(largest + np.log(_over_rows(np.add, np.exp(scores - largest[:, None]))))


def _over_rows(function: np.ufunc, scores: FloatArray) -> FloatArray:
    """Maximum or sum of every row; of short rows column by column, which is quicker in numpy."""
    few = scores.shape[1] <= _FEW
    return np.asarray(reduce(function, scores.T) if few else function.reduce(scores, axis=1))


def numerators(
    X: RealArray, codes: Codes, W: RealArray, *, small: bool = False
) -> tuple[RealArray, RealArray]:
    """Residuals before their division: (A, s) with r_i = A_i / s_i, s_i > 0.

    Who scales the rows anyway saves a pass over them. A row whose scores overflow counts as one
    of no class.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    codes : ndarray of shape (n,)
        From 0 to c - 1, or -1.
    W : ndarray of shape (d, c)
    small : bool, default=False
        Whether scores are known to lie between -30 and 30: their largest need not be subtracted
        from the others.

    Examples
    --------
    >>> numerators(np.zeros((2, 1)), np.array([0, -1]), np.zeros((1, 3)))
    (array([[-2.,  1.,  1.],
           [ 0.,  0.,  0.]]), array([3., 1.]))
    """
    W = W.astype(X.dtype, copy=False)
    # in double precision the product of the transposes is the faster one, by a third
    A = X @ W if X.dtype == np.float32 else (W.T @ X.T).T
    if not small:
        A -= A.max(axis=1, keepdims=True)
    np.exp(A, out=A)
    total = A @ np.ones(A.shape[1], A.dtype)
    places = codes.astype(np.intp, copy=False)
    A[np.arange(len(A)), places] -= total  # a place -1 is the last column, set to 0 below
    none = (places < 0) | ~(total < np.inf)
    if none.any():
        A[none], total[none] = 0, 1
    return A, total


def residuals(X: RealArray, codes: Codes, W: RealArray) -> RealArray:
    r"""Residuals :math:`r_i = \mathrm{softmax}(W^T x_i) - e_{y_i}`, row by row.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    codes : ndarray of shape (n,)
        From 0 to c - 1, or -1 for a row of no class, whose residual is 0.
    W : ndarray of shape (d, c)

    Examples
    --------
    >>> residuals(np.zeros((2, 1)), np.array([0, -1]), np.zeros((1, 2)))
    array([[-0.5,  0.5],
           [ 0. ,  0. ]])
    """
    A, total = numerators(X, codes, W)
    A /= total[:, None]
    return A


def gradient(X: RealArray, codes: Codes, W: RealArray) -> FloatArray:
    """Sum of the rows' gradients, of shape (d, c); not clipped: for public rows.

    Examples
    --------
    >>> gradient(np.array([[2.0], [9.0]]), np.array([0, -1]), np.zeros((1, 2)))
    array([[-1.,  1.]])
    """
    rows = X.astype(np.float64, copy=False)
    return np.asarray(rows.T @ residuals(rows, codes, W))


def gradient_norms(X: RealArray, R: RealArray) -> RealArray:
    r"""Norms of the rows' gradients, :math:`\|x_i\| \|r_i\|`.

    Examples
    --------
    >>> gradient_norms(np.array([[3.0, 4.0]]), np.array([[-0.6, 0.8]]))
    array([5.])
    """
    return np.asarray(lengths(X) * lengths(R))


def loss(X: RealArray, codes: Codes, W: RealArray) -> float:
    """Sum of the rows' logistic losses; :func:`gradient` is its derivative.

    Examples
    --------
    >>> round(loss(np.zeros((3, 1)), np.array([0, 1, -1]), np.zeros((1, 2))), 4)
    1.3863
    """
    known = codes >= 0
    scores = X[known].astype(np.float64, copy=False) @ W
    own = scores[np.arange(len(scores)), codes[known].astype(np.intp)]
    return float(np.sum(log_sum_exp(scores) - own))


def lengths(A: RealArray) -> RealArray:
    """Euclidean norms of rows."""
    # each is slow where the other is fast
    squares = np.vecdot(A, A) if A.flags.c_contiguous else np.einsum("ij,ij->i", A, A)
    return np.asarray(np.sqrt(squares))
