"""Figures 1 and 2 of paper 000: the paper's algorithms beside the release of one noisy matrix.

Both figures come from the same runs. Stage 1 finds weights of the public rows (Figure 1 shows their
discrepancy to the private rows), stage 2 fits a ridge regression to the weighted rows (Figure 2
shows its error on fresh target rows).
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.discrepancy.minimisation import discrepancy
from dpadapt.discrepancy.second_stage import weighted_ridge
from reproduce.runs import Options, run_cells

from .data import Array
from .limits import without_noise
from .methods import METHODS, ORACLE_METHODS, RIDGE, STEPS, Cell, Fit, Task

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CELLS", "run_cell", "run_figures"]

# every n at epsilon 1 and 10, every epsilon at the smallest and the largest n
CELLS = tuple(
    (n, epsilon)
    for n in (1000, 2000, 4000, 8000)
    for epsilon in (0.5, 1.0, 3.0, 10.0)
    if n in (1000, 8000) or epsilon in (1.0, 10.0)
)
ORACLE_CELLS = ((1000, 1.0), (1000, 10.0), (8000, 1.0), (8000, 10.0))
QUICK_CELLS = ((1000, 1.0), (8000, 1.0))
QUICK_STEPS = 100


def run_figures(options: Options) -> pd.DataFrame:
    """Run the experiment of Figures 1 and 2.

    Parameters
    ----------
    options : Options

    Returns
    -------
    DataFrame
        A line for each n, epsilon, repeat and method.

    Examples
    --------
    >>> table = run_figures(Options(repeats=1, quick=True, steps=5))
    >>> sorted(set(table["n"]))
    [1000, 8000]
    """
    steps = options.steps or (QUICK_STEPS if options.quick else STEPS)
    settings = QUICK_CELLS if options.quick else CELLS
    free = [(n, math.inf) for n in dict.fromkeys(n for n, _ in settings)]
    cells = [
        Cell(n, epsilon, repeat, steps)
        for repeat in range(options.repeats)
        for n, epsilon in (*settings, *free)
    ]
    return run_cells(run_cell, cells, options, "figures 1 and 2")


def run_cell(cell: Cell) -> list[dict[str, Any]]:
    """Every method on one draw of the data; at epsilon infinity, the algorithms without noise.

    Examples
    --------
    >>> rows = run_cell(Cell(n=1000, epsilon=1.0, repeat=0, steps=5))
    >>> {"n", "epsilon", "method", "true_epsilon", "discrepancy", "mse"} <= set(rows[0])
    True
    """
    task, rows = Task(cell), []
    if math.isinf(cell.epsilon):
        return [_measured(task, fit) | {"method": m} for m, fit in without_noise(task).items()]
    methods = dict(METHODS)
    if (cell.n, cell.epsilon) in ORACLE_CELLS:
        methods |= ORACLE_METHODS
    for name, method in methods.items():
        start = time.perf_counter()
        fit = method(task)
        seconds = time.perf_counter() - start
        rows.append(_measured(task, fit) | {"method": name, "seconds": seconds})
    return rows


def _measured(task: Task, fit: Fit) -> dict[str, Any]:
    """One line of the table."""
    return {
        "n": task.cell.n,
        "epsilon": task.cell.epsilon,
        "repeat": task.cell.repeat,
        "mu": fit.mu,
        "steps": fit.steps,
        "true_epsilon": fit.epsilon,
        "discrepancy": _distance(task, fit.weights),
        "mse": _error(task, fit),
    }


def _distance(task: Task, weights: Array | None) -> float:
    return math.nan if weights is None else discrepancy(task.X, weights, task.true_moment)


def _error(task: Task, fit: Fit) -> float:
    """Mean squared error on fresh target rows, after the second stage where there is one."""
    coefficients = fit.coefficients
    if coefficients is None:
        weights = np.asarray(fit.weights, dtype=float)
        coefficients = weighted_ridge(task.X, task.y, weights, ridge=RIDGE)
    return float(np.mean((task.test.X_private @ coefficients - task.test.y_private) ** 2))
