"""Synthetic data of paper 000 (Bassily, Mohri, Suresh 2023, section 7; Figures 1 and 2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FigureData", "figure_data"]

Array = NDArray[np.float64]

_TARGET_SHARE = 0.25  # of the public rows that come from the private rows' distribution


class FigureData(NamedTuple):
    """One draw of the paper's samples.

    Attributes
    ----------
    X_public : ndarray of shape (m, d)
    y_public : ndarray of shape (m,)
    X_private : ndarray of shape (n, d)
    y_private : ndarray of shape (n,)
        Labels of the private rows: for the oracle and for test errors; no method may read them.

    Examples
    --------
    >>> figure_data(np.random.default_rng(0), n=50, m=20).y_public.shape
    (20,)
    """

    X_public: Array
    y_public: Array
    X_private: Array
    y_private: Array


def figure_data(rng: np.random.Generator, n: int, m: int = 1000, d: int = 10) -> FigureData:
    r"""Draw the samples of Figures 1 and 2.

    Stated in the paper, and done here: d = 10; the target P is a spherical Gaussian of variance
    1/(9d) in every direction around
    :math:`(-1, 1, \ldots, -1, 1) / \sqrt{2d}`, Q one of the same variance around
    :math:`(1, \ldots, 1) / \sqrt{2d}`; private rows come from P, public rows from the mixture of
    25% P and 75% Q; labels are :math:`f(x) = x \cdot u` where that is positive and half of it
    elsewhere, :math:`u = (1, \ldots, 1) / \sqrt d`, without noise; m = 1000, n from 1000 to 8000,
    ten repetitions, K = 1000, :math:`\lambda` = 0.001, :math:`\delta` = 1/8000.

    Not stated: whether each public row draws its component (as here) or exactly a quarter is from
    P; whether rows are scaled to the unit ball or have an intercept (neither here); r and how it
    is enforced, :math:`\mu`, :math:`\Lambda`, the second stage's penalty, the size of the test
    sample. So its figures cannot be matched point by point.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Private rows.
    m : int, default=1000
        Public rows.
    d : int, default=10
        Columns; the paper's alternating mean needs an even number to end in +1.

    Examples
    --------
    >>> data = figure_data(np.random.default_rng(0), n=2000)
    >>> data.X_public.shape, data.X_private.shape
    ((1000, 10), (2000, 10))
    >>> (np.sqrt(20) * data.X_private.mean(axis=0)).round(1)
    array([-1.,  1., -1.,  1., -1.,  1., -1.,  1., -1.,  1.])
    """
    target = np.where(np.arange(d) % 2 == 0, -1.0, 1.0) / np.sqrt(2 * d)
    other = np.full(d, 1 / np.sqrt(2 * d))
    deviation = np.sqrt(1 / (9 * d))
    from_target = rng.random((m, 1)) < _TARGET_SHARE
    public = np.where(from_target, target, other) + deviation * rng.standard_normal((m, d))
    private = target + deviation * rng.standard_normal((n, d))
    return FigureData(public, _labels(public), private, _labels(private))


def _labels(X: Array) -> Array:
    along = X.sum(axis=1) / np.sqrt(X.shape[1])
    return np.where(along > 0, along, along / 2)
