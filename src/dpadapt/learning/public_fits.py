"""Linear models of public rows alone: where every private method starts."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeCV

from dpadapt._types import FloatArray, IntArray

from .checks import public_scaling

_STRENGTHS = np.logspace(-3, 4, 15)  # of the ridge, tried by leave-one-out
_INVERSE_STRENGTHS = (0.01, 0.1, 1.0, 10.0)  # C of the logistic regression, tried on a hold-out
_CUT = 0.7  # part of the rows that a candidate C is fitted to
_MOST_STEPS = 1000
_FEW = 100  # rows; with fewer, C is 1


class PublicRidge(NamedTuple):
    """A ridge regression of public rows.

    Attributes
    ----------
    coefficients : ndarray of shape (d + 1, k)
        The constant is the last row.
    strength : float
        The penalty that leave-one-out chose, on the sum of squared errors and for standardised
        columns.
    """

    coefficients: FloatArray
    strength: float


def public_ridge(
    rows: FloatArray, targets: FloatArray, weights: FloatArray | None = None
) -> PublicRidge:
    """Ridge with its strength by leave-one-out; the constant is not penalised.

    The penalty is on standardised columns, so that the model does not depend on their units: every
    method starts from the same one.

    Examples
    --------
    >>> rows = np.column_stack([np.arange(9.0), np.ones(9)])
    >>> found = public_ridge(rows, rows[:, :1])
    >>> found.coefficients.round(3).ravel(), found.strength
    (array([1., 0.]), 0.001)
    """
    if len(rows) < 2:  # nothing to leave out
        out = np.zeros((rows.shape[1], targets.shape[1]))
        out[-1] = targets[0]
        return PublicRidge(out, float(_STRENGTHS[0]))
    center, scale = public_scaling(rows[:, :-1])
    model = RidgeCV(alphas=_STRENGTHS)
    model.fit((rows[:, :-1] - center) / scale, targets, sample_weight=weights)
    slopes = np.atleast_2d(model.coef_).T / scale[:, None]
    found = np.vstack([slopes, np.atleast_1d(model.intercept_) - center @ slopes])
    return PublicRidge(found, float(model.alpha_))


def fit_ridge(
    rows: FloatArray, targets: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Coefficients of :func:`public_ridge`."""
    return public_ridge(rows, targets, weights).coefficients


def fit_logistic(
    rows: FloatArray, codes: IntArray, classes: int, weights: FloatArray | None = None
) -> FloatArray:
    """Logistic regression with C by one hold-out; a class without rows gets half a row."""
    seen = np.unique(codes)
    out = np.zeros((rows.shape[1], classes if classes > 2 else 1))
    if len(seen) < 2:
        odds = np.log(2.0 * len(codes))  # all rows against half a row
        if classes > 2:
            out[-1] = np.where(np.arange(classes) == seen[0], odds, 0.0)
        else:
            out[-1] = odds if seen[0] == 1 else -odds
        return out
    model = _logistic(rows, codes, weights, _choose_strength(rows, codes, weights))
    found = np.vstack([model.coef_.T, model.intercept_])
    if classes <= 2:
        return found
    if len(seen) == 2:
        found = np.hstack([-found / 2, found / 2])
    out[-1] = -np.log(2.0 * len(codes))
    out[:, seen] = found
    return out


def _choose_strength(rows: FloatArray, codes: IntArray, weights: FloatArray | None) -> float:
    order = np.random.default_rng(0).permutation(len(codes))
    train, test = np.split(order, [int(_CUT * len(order))])
    if len(codes) < _FEW or len(np.unique(codes[train])) < 2:
        return 1.0

    def error(strength: float) -> float:
        model = _logistic(rows[train], codes[train], _cut(weights, train), strength)
        wrong = model.predict(rows[test][:, :-1]) != codes[test]
        return float(np.average(wrong, weights=_cut(weights, test)))

    return min(_INVERSE_STRENGTHS, key=error)


def _cut(weights: FloatArray | None, places: IntArray) -> FloatArray | None:
    return None if weights is None else weights[places]


def _logistic(
    rows: FloatArray, codes: IntArray, weights: FloatArray | None, strength: float
) -> Any:
    model = LogisticRegression(C=strength, max_iter=_MOST_STEPS, tol=1e-6)
    with warnings.catch_warnings():  # whoever fits or rehearses cannot act on it
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows[:, :-1], codes, sample_weight=weights)
