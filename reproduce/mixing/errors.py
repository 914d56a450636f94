"""Test errors of paper 004's methods on its tasks: what most of its figures are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reproduce.runs import Options, run_cells

from .methods import (
    Run,
    limits,
    measure,
)
from .tasks import TASKS, draw

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Cell", "run_cell", "run_errors"]

EPSILON = 3.0  # of the paper's Figures 5 to 8 and 14 to 18
SIX = ("digits", "mnist", "usps", "office", "surf-amazon", "surf-caltech")
FIVE = ("digits", "usps2", "mnist", "office", "surf-caltech")  # of the figures for one data set
_QUICK_TASKS = ("digits", "office")
QUICK_EPSILONS = (1.0, 3.0)


@dataclass(frozen=True)
class Cell:
    """Some runs on one sample of a task.

    Parameters
    ----------
    task : str
    seed : int
    runs : sequence of Run
    ends : bool, default=False
        Whether public examples alone and no privacy are measured, too.
    """

    task: str
    seed: int
    runs: Sequence[Run]
    ends: bool = False


def run_cell(cell: Cell) -> list[dict[str, Any]]:
    """All lines of one cell.

    Examples
    --------
    >>> lines = run_cell(Cell("digits", 0, (Run("dpadapt", 1.0),), ends=True))
    >>> [line["method"] for line in lines]
    ['few-shot (public only)', 'no privacy', 'dpadapt']
    """
    sample = draw(TASKS[cell.task], cell.seed)
    place = {"dataset": cell.task, "n": len(sample.y_private), "repeat": cell.seed}
    lines = limits(sample) if cell.ends else []
    lines += [measure(sample, run) | dict(run.options) for run in cell.runs]
    return [place | line for line in lines]


def run_errors(
    tasks: Sequence[str], runs: Sequence[Run], options: Options, name: str, *, ends: bool = False
) -> pd.DataFrame:
    """Some runs on every sample of some tasks; with ``ends`` also the models to compare with."""
    chosen = tasks if len(tasks) == 1 or not options.quick else _QUICK_TASKS
    cells = [
        Cell(task, seed, tuple(runs), ends) for task in chosen for seed in range(options.repeats)
    ]
    return run_cells(run_cell, cells, options, name)
