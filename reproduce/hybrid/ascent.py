"""Compiled: coordinate ascent for a separator of largest margin. Imported when it is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["ascend"]


@njit(cache=True, fastmath=True)
def ascend(
    rows: Any, labels: Any, squares: Any, pulls: Any, plane: Any, passes: int, slack: float
) -> int:
    """Passes over the rows until each has its margin of 1, up to the slack; in place.

    ``plane`` is the sum of pull times label times row, pulls are at least 0 and have no upper
    bound: the separator is a hard one.
    """
    count, columns = rows.shape
    for done in range(passes):
        worst = 0.0
        for i in range(count):
            score = plane[0] * rows[i, 0]
            for j in range(1, columns):
                score += plane[j] * rows[i, j]
            excess = labels[i] * score - 1.0
            if pulls[i] <= 0.0 and excess >= 0.0:
                continue
            worst = max(worst, abs(excess))
            pull = max(pulls[i] - excess / squares[i], 0.0)
            # float32 like the rows: a wider number would halve the speed
            change = np.float32((pull - pulls[i]) * labels[i])
            pulls[i] = pull
            for j in range(columns):
                plane[j] += change * rows[i, j]
        if worst < slack:
            return done
    return passes
