"""The inner loop of a descent. Imported lazily: it loads numba."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


def _compiled(function: Any) -> Any:
    # sums may be taken in any order; NaN, infinity and rounding keep their meaning
    return njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})(function)


@_compiled
def steps(
    at: Any,
    total: Any,
    Z: Any,
    y: Any,
    noise: Any,
    done: int,
    hinge: bool,
    margin: float,
    clip: float,
    radius: float,
    rate: float,
    scale: float,
    grid: float,
) -> None:
    """Take one step for each row of Z, in place; the iterates before each step go to ``total``.

    ``done`` steps came before; the step size is rate / sqrt(r). A noisy gradient is rounded to the
    grid (none if 0), which is post-processing.
    """
    n, d = Z.shape
    for i in range(n):
        label = 1.0 if y[i] > 0 else (-1.0 if y[i] < 0 else 0.0)
        score = 0.0
        square = 0.0
        for j in range(d):
            score += at[j] * Z[i, j]
            square += Z[i, j] * Z[i, j]
        score *= label
        if hinge:
            slope = -label if score < margin else 0.0
        else:
            slope = -label / (1.0 + math.exp(min(score, 700.0)))
        length = abs(slope) * math.sqrt(square)
        if length > clip:
            slope *= clip / length
        if not length < math.inf:  # a row that is no row of numbers
            slope = 0.0
        step = rate / math.sqrt(done + i + 1.0)
        norm = 0.0
        for j in range(d):
            total[j] += at[j]
            gradient = scale * noise[i, j]
            if slope != 0.0:
                gradient += slope * Z[i, j]
            if grid > 0:
                gradient = np.rint(gradient / grid) * grid
            at[j] -= step * gradient
            norm += at[j] * at[j]
        if norm > radius * radius:
            shrink = radius / math.sqrt(norm)
            for j in range(d):
                at[j] *= shrink
