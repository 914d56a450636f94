"""The kernel model of public rows alone: what private rows correct."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray

from ._setup import Setup
from .erm import solve_each
from .features import NystroemFeatures
from .losses import ConvexLoss

_PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # over R^2, tried on a hold-out
_CUT = 0.7  # part of the rows that a candidate is fitted to
_FEW = 20  # rows; with fewer there is no hold-out
_USUAL = 1e-3  # over R^2, there
_ANCHORS = 1000  # public rows, at most, whose kernel values make the model


@dataclass(frozen=True, eq=False)
class PublicModel:
    """Coefficients of a model of public rows, and what it left over on rows held out.

    Attributes
    ----------
    coefficients : ndarray of shape (D, k) or (A, k)
        Of explicit features, or of anchors.
    anchors : public rows, or None
        None with explicit features.
    left : ndarray of shape (h,)
        Scores less targets on rows that it was not fitted to; on all rows if they are few.
    penalty : float
        lambda.

    Examples
    --------
    >>> PublicModel(np.zeros((3, 1)), None, np.zeros(5), penalty=0.1).anchors is None
    True
    """

    coefficients: FloatArray
    anchors: Any
    left: FloatArray
    penalty: float


def fit_public(
    setup: Setup, loss: ConvexLoss, X: Any, targets: FloatArray, penalty: float | None = None
) -> PublicModel:
    """Fit public rows, with the penalty that does best on rows held out.

    Parameters
    ----------
    setup : Setup
    loss : Loss
    X : public rows
    targets : ndarray of shape (m,) or (m, k)
        What the loss takes.
    penalty : float, optional
        lambda; by default it is chosen.
    """
    anchors = X[: min(X.shape[0], _ANCHORS)] if setup.features is None else None
    if setup.features is None:
        span = NystroemFeatures(setup.kernel, setup.rows(anchors))
        features, back = span(setup.rows(X)), span.back
    else:
        features, back = setup.features(setup.rows(X)), None
    radius = math.sqrt((setup.features or span).squared_bound)
    order = np.random.default_rng(0).permutation(len(features))
    train, test = np.split(order, [int(_CUT * len(order))])
    if len(features) < _FEW:
        train = test = order

    def fitted(rows: Any, strengths: list[float]) -> list[FloatArray]:
        each = solve_each(features[rows], targets[rows], loss, strengths, radius)
        return [weights.reshape(len(weights), -1) for weights in each]

    def held_out(weights: FloatArray) -> tuple[float, FloatArray]:
        scores, own = features[test] @ weights, targets[test].reshape(len(test), -1)
        losses = loss.value(scores, own)
        left = (scores - own if scores.shape == own.shape else np.zeros(1)).ravel()
        return float(np.mean(losses)), left

    unit = setup.radius**2
    if penalty is not None:
        tried = [penalty]
    elif len(features) >= _FEW:
        tried = [each * unit for each in _PENALTIES]
    else:
        tried = [_USUAL * unit]
    results = [held_out(weights) for weights in fitted(train, tried)]
    best = min(range(len(tried)), key=lambda place: results[place][0])
    penalty, left = tried[best], results[best][1]
    weights = fitted(order, [penalty])[0]
    return PublicModel(weights if back is None else back(weights), anchors, left, float(penalty))
