"""Where private training starts: models of the few public rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from dpadapt.learning.softmax import Array, gradient, loss

from .features import PublicSample

_ITERATIONS = 150
_LONE_ENERGY = 0.05  # between-class energy where every class has one public row
_LEAST_ENERGY = 0.01


def penalised(public: PublicSample, penalty: float = 1e-3) -> Array:
    """Minimum of the mean public loss plus penalty / 2 times the squared norm.

    Examples
    --------
    >>> public = PublicSample(np.array([[1.0, 0.3], [-1.0, 0.3]]), np.array([0, 1]), 2)
    >>> W = penalised(public)
    >>> gap = gradient(public.rows, public.codes, W) / 2 + 1e-3 * W
    >>> bool(np.abs(gap).max() < 1e-4)
    True
    """
    shape = (public.width, public.classes)
    if not len(public):
        return np.zeros(shape)

    def objective(flat: Array) -> tuple[float, Array]:
        W = flat.reshape(shape)
        value = loss(public.rows, public.codes, W) / len(public) + penalty / 2 * float(flat @ flat)
        slope = gradient(public.rows, public.codes, W) / len(public) + penalty * W
        return value, slope.ravel()

    options: Any = {"maxiter": _ITERATIONS}
    start = np.zeros(shape).ravel()
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return with_unseen(public, np.asarray(found.x, dtype=np.float64).reshape(shape))


def class_energy(public: PublicSample) -> float:
    """Squared distance of class means, without the noise of few rows: a U-statistic.

    Mean inner product of two rows of one class less that of two rows of different classes; what
    private rows of a class have in common, and so the signal in their sum. From sums of rows class
    by class, so that it is linear in public rows.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> class_energy(PublicSample(rows, np.array([0, 0, 1, 1]), 2))
    1.0
    """
    counts = np.bincount(public.codes, minlength=public.classes).astype(np.float64)
    same, pairs = float(counts @ counts), float(counts @ (counts - 1))
    apart = len(public) ** 2 - same
    if not pairs or not apart:
        return _LONE_ENERGY
    sums = np.zeros((public.classes, public.width))
    np.add.at(sums, public.codes, public.rows)
    within, whole = float(np.sum(sums**2)), sums.sum(axis=0)
    own = float(np.sum(public.rows**2))  # of rows with themselves: no pair
    energy = (within - own) / pairs - (float(whole @ whole) - within) / apart
    return min(max(energy, _LEAST_ENERGY), 1.0)


def with_unseen(public: PublicSample, W: Array) -> Array:
    """Give each class without public rows the odds of half a row, instead of none at all.

    Examples
    --------
    >>> public = PublicSample(np.array([[1.0], [1.0]]), np.array([0, 0]), 2)
    >>> with_unseen(public, np.zeros((1, 2))).round(4)
    array([[ 0.    , -1.3863]])
    """
    seen = np.unique(public.codes)
    if len(seen) == public.classes or not len(seen):
        return W
    scores = public.rows @ W[:, seen]
    constant = float(np.logaddexp.reduce(scores, axis=1).mean() - np.log(2 * len(public)))
    W = W.copy()
    # the smallest weights with this score on the mean public row
    middle = public.rows.mean(axis=0)
    others = np.setdiff1d(np.arange(public.classes), seen)
    W[:, others] = (constant * middle / max(float(middle @ middle), 1e-12))[:, None]
    return W
