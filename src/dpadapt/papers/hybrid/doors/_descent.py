r"""Algorithm 3 of Kohen and Sheffet, Online SGD: its loop. Imported lazily, since it loads numba.

With the paper's names::

    h^1 <- 0
    for r = 1, ..., R:
        draw (x_r, l(x_r)) from mu
        draw v from N(0, sigma^2 I_d)
        eta^r   <- D / (G sqrt(r))                with G^2 = L^2 + sigma^2 d (printed: sigma)
        h^{r+1} <- Proj_D(h^r - eta^r (grad L(h^r(x_r), l(x_r)) + v))
    return the mean of h^1, ..., h^R

Rows and noise are drawn a block at a time in :func:`.descent.drawn_descent`, which calls
:func:`steps` for each block, and divides by R.
"""

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
    penalty: float = 0.0,
    lasso: float = 0.0,
) -> None:
    """Take one step for each row of Z, in place; the iterates before each step go to ``total``.

    ``at`` is h^r, ``radius`` D, ``clip`` L, ``rate`` D / G, ``scale`` sigma. ``done`` steps came
    before. A noisy gradient is rounded to the grid (none if 0), which is post-processing; so are
    ``penalty`` and ``lasso``, functions of h^r.
    """
    n, d = Z.shape
    for i in range(n):  # r = done + i + 1
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
        length = abs(slope) * math.sqrt(square)  # of the gradient, slope times the row
        if length > clip:
            slope *= clip / length
        if not length < math.inf:  # a row that is no row of numbers
            slope = 0.0
        step = rate / math.sqrt(done + i + 1.0)
        if penalty > 0:  # strongly convex
            step = 1.0 / (penalty * (done + i + 1.0))
        norm = 0.0
        for j in range(d):
            total[j] += at[j]
            gradient = scale * noise[i, j]
            if slope != 0.0:
                gradient += slope * Z[i, j]
            if grid > 0:
                gradient = np.rint(gradient / grid) * grid
            at[j] -= step * (gradient + penalty * at[j])
            if lasso > 0:
                at[j] = math.copysign(max(abs(at[j]) - step * lasso, 0.0), at[j])
            norm += at[j] * at[j]
        if norm > radius * radius:  # Proj_D
            shrink = radius / math.sqrt(norm)
            for j in range(d):
                at[j] *= shrink
