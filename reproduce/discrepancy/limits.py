"""Paper 000's algorithms at epsilon infinity: without noise, as its Figure 2 shows them.

Nothing is private here. The paper states neither mu nor the steps, and its bounds, which balance
them against the noise, are loose without it. So each algorithm takes, of a small grid, the setting
with the least value of its own objective on the rows that it was fitted to; no test row is looked
at. Every setting of the single stage is kept as well, for the best one in hindsight.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpadapt.discrepancy.minimisation import discrepancy
from dpadapt.discrepancy.variable_projection import variable_projection
from dpadapt.papers.discrepancy.first_stage import NoisyFrankWolfe, NoisyMirrorDescent
from dpadapt.papers.discrepancy.single_stage import AdaptationObjective, NoisySingleStage
from dpadapt.papers.discrepancy.smoothing import Softmax

from .methods import ORACLE_MU, PENALTY, RADIUS, RIDGE, Array, Fit, Task

__all__ = ["without_noise"]

MIRROR_STEPS = (0.3, 1.0)
SINGLE_STEPS = (0.003, 0.01, 0.03)


def without_noise(task: Task) -> dict[str, Fit]:
    """Algorithms 1 to 3 and our single stage on the exact second moment.

    "Refitted" keeps the weights of Algorithm 1 and has the second stage of the others.

    Examples
    --------
    >>> from .methods import Cell
    >>> found = without_noise(Task(Cell(n=100, epsilon=math.inf, repeat=0, steps=2)))
    >>> [name for name in found if ", mu " not in name]  # doctest: +NORMALIZE_WHITESPACE
    ['Frank-Wolfe, no noise', 'mirror descent, no noise', 'single stage, no noise',
     'single stage, no noise, refitted', 'moments, single stage, no noise']
    """
    steps, moment = task.cell.steps, task.true_moment
    two_stage = {
        "Frank-Wolfe, no noise": [
            NoisyFrankWolfe(task.X, Softmax(mu), steps, PENALTY).minimise(moment)
            for mu in ORACLE_MU
        ],
        "mirror descent, no noise": [
            NoisyMirrorDescent(
                task.X, Softmax(mu), steps, size, PENALTY, "p-norm", "gradient", "all"
            ).minimise(moment)
            for mu in ORACLE_MU
            for size in MIRROR_STEPS
        ],
    }
    found = {
        name: _least(task, [_fit(weights) for weights in each]) for name, each in two_stage.items()
    }
    settings = {
        f"single stage, no noise, mu {mu:g}, step {size:g}": _fit(
            *NoisySingleStage(
                AdaptationObjective(task.X, task.y, Softmax(mu), RADIUS), steps, size
            ).minimise(moment)
        )
        for mu in ORACLE_MU
        for size in SINGLE_STEPS
    }
    single = _least(task, settings.values())
    ours = variable_projection(task.X, task.y, moment, radius=RADIUS, ridge=RIDGE)
    return found | {
        "single stage, no noise": single,
        "single stage, no noise, refitted": single._replace(coefficients=None),
        "moments, single stage, no noise": _fit(*ours),
        **settings,
    }


def _fit(weights: Array, coefficients: Array | None = None) -> Fit:
    return Fit(weights, coefficients, math.inf)


def _least(task: Task, fits: Iterable[Fit]) -> Fit:
    """The fit with the least objective on its own rows, without smoothing."""
    return min(fits, key=lambda fit: _objective(task, fit))


def _objective(task: Task, fit: Fit) -> float:
    weights = np.asarray(fit.weights, dtype=float)
    distance = discrepancy(task.X, weights, task.true_moment)
    if fit.coefficients is None:
        return distance + PENALTY / 2 * float(weights @ weights)
    loss = float(weights @ (task.X @ fit.coefficients - task.y) ** 2)
    return loss + 4 * RADIUS**2 * distance
