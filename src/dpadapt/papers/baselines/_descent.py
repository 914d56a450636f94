"""Gradient descent on clipped per-row gradients: the loop, and public tuning."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.descent import descend, within

from ._tasks import BaselineTask, fit_logistic, fit_ridge, loss_derivatives
from .queries import clipped_gradient

Gradient = Callable[[FloatArray], FloatArray]

GRID = [(t, s, c) for t in (5, 20, 80, 320) for s in (0.1, 0.5, 1.0) for c in (0.3, 1.0)]
DEFAULT = (20, 0.5, 1.0)  # where there are too few public rows to try settings
_FEW, _MOST, _DRAWS = 40, 2000, 2  # public rows to tune on at least, at most; noises per setting


def noisy_descent(
    gradient: Gradient,
    start: FloatArray,
    steps: int,
    step_size: float,
    *,
    keep: float = 0.5,
    radius: float = math.inf,
) -> FloatArray:
    """Mean of the last part ``keep`` of the iterates, each within ``radius``."""
    first = min(steps - 1, math.floor((1 - keep) * steps))
    return descend(gradient, start, step_size, steps, last=steps - first, project=within(radius))


def smoothness(rows: FloatArray, classes: int) -> float:
    """Largest curvature of the mean loss."""
    top = float(np.linalg.eigvalsh(rows.T @ rows / len(rows))[-1])
    return top * (1.0 if not classes else 0.25 if classes <= 2 else 0.5)


def median_norm(rows: FloatArray, labels: Any, coefficients: FloatArray, classes: int) -> float:
    """Median norm of a public row's gradient; never zero."""
    errors = loss_derivatives(rows @ coefficients, labels, classes)
    norms = np.linalg.norm(errors, axis=1) * np.linalg.norm(rows, axis=1)
    return max(float(np.median(norms)), 1e-3)


def tuned(
    task: BaselineTask, start: str, n_rows: int, mu: float, given: tuple[Any, Any, Any]
) -> tuple[int, float, float]:
    """Settings (steps, step size, clip) that do best on public rows at the real n and budget.

    Step sizes are multiples of one over the smoothness, clip norms of the median norm of a public
    gradient at the start. From zero: on random halves of the public rows. From the public model:
    on a made-up shift, the model fitted to public rows below the median of the first principal
    direction, the noisy steps and the validation on those above it. Settings that are given stay.
    """
    settings = sorted({filled_from_row(given, row) for row in GRID})
    default = filled_from_row(given, DEFAULT)
    m = len(task.rows)
    if len(settings) == 1 or m < _FEW:
        return default
    rng = np.random.default_rng(0)
    rows, labels, classes = task.rows, task.targets, task.classes
    if start == "public":
        moved = rows - rows.mean(axis=0)
        along = moved @ np.linalg.eigh(moved.T @ moved)[1][:, -1]
        above = along > np.median(along)
        source, pool = np.flatnonzero(~above), rng.permutation(np.flatnonzero(above))
        if len(pool) < _FEW // 4 or len(source) < _FEW // 4:
            return default
        first = (
            fit_logistic(rows[source], labels[source], classes)
            if classes
            else fit_ridge(rows[source], labels[source][:, None])
        )
    else:
        source, pool, first = np.arange(m), rng.permutation(m), task.zero()
    size = min(n_rows, _MOST, len(pool) // 2)
    train, test = pool[:size], pool[size : size + _MOST]
    curvature = smoothness(rows[source], classes)
    unit = median_norm(rows[source], labels[source], first, classes)

    def error(setting: tuple[int, float, float]) -> float:
        steps, step, clip = setting
        scale = 2 * clip * unit * math.sqrt(steps) / (mu * n_rows)
        losses = []
        for draw in range(_DRAWS):
            noise = np.random.default_rng([1, draw])

            def gradient(w: FloatArray, noise: Any = noise) -> FloatArray:
                mean = clipped_gradient(rows[train], labels[train], w, clip * unit, classes) / size
                return mean + scale * noise.standard_normal(w.shape)

            w = noisy_descent(gradient, first, steps, step / curvature)
            losses.append(_loss(rows[test] @ w, labels[test], classes))
        return float(np.mean(losses))

    with np.errstate(all="ignore"):
        return min(settings, key=lambda setting: np.nan_to_num(error(setting), nan=math.inf))


def filled_from_row(
    given: tuple[Any, Any, Any], row: tuple[int, float, float]
) -> tuple[Any, Any, Any]:
    """What is given, and the rest from the row."""
    steps, step, clip = (new if old is None else old for old, new in zip(given, row, strict=True))
    return steps, step, clip


def _loss(scores: FloatArray, labels: Any, classes: int) -> float:
    """Mean squared error, or the rate of wrong classes."""
    if not classes:
        return float(np.mean((scores[:, 0] - labels) ** 2))
    places = scores.argmax(axis=1) if classes > 2 else (scores[:, 0] > 0).astype(int)
    return float(np.mean(places != labels))
