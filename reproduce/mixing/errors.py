"""Runs of paper 004's figures: ablation, percentile, sigma, error and attack, headline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduce.runs import Options, run_cells

from .methods import (
    ABLATION,
    NO_PRIVACY,
    OURS,
    PRIVATE,
    WEAK,
    Run,
    fit_private,
    limits,
    measure,
    plain_fit,
    with_private,
)
from .tasks import TASKS, draw

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "AttackCell",
    "Cell",
    "run_ablation",
    "run_attack",
    "run_cell",
    "run_curve",
    "run_headline",
    "run_percentiles",
    "run_sigmas",
]

EPSILON = 3.0  # of the paper's Figures 5 to 8 and 14 to 18
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
HEADLINE_EPSILONS = (0.25, 0.5, 1.0, 3.0, 8.0)
ATTACKED = (0.5, 1.0, 3.0, 8.0)
PERCENTILES = (25.0, 50.0, 75.0, 90.0, 95.0)
SIGMAS = (5.0, 10.0, 20.0, 40.0)
SIX = ("digits", "mnist", "usps", "office", "surf-amazon", "surf-caltech")
FIVE = ("digits", "usps2", "mnist", "office", "surf-caltech")  # of the figures for one data set
HEADLINE = ("office", "digits", "mnist", "usps", "web2ama", "usps2mnist", "reviews")
HEADLINE_METHODS = ("AdaMix", WEAK, OURS)
SHADOWS, VICTIMS = 16, 8
_QUICK_TASKS = ("digits", "office")
_QUICK_EPSILONS = (1.0, 3.0)


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

    Examples
    --------
    >>> Cell("digits", 0, ()).ends
    False
    """

    task: str
    seed: int
    runs: Sequence[Run]
    ends: bool = False


@dataclass(frozen=True)
class AttackCell:
    """An attack on one method.

    Parameters
    ----------
    task, method : str
    epsilon : float
        Infinity for the model without privacy.
    shadows, victims : int
        Models that the attacker trains, and models that it attacks.

    Examples
    --------
    >>> AttackCell("digits", "AdaMix", 1.0, 4, 2).victims
    2
    """

    task: str
    method: str
    epsilon: float
    shadows: int
    victims: int


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


def run_attack(cell: AttackCell) -> list[dict[str, Any]]:
    """One line: how well an attack tells members from others; see ``dpadapt.audit``.

    Examples
    --------
    >>> line = run_attack(AttackCell("digits", "dpadapt", 1.0, 4, 2))[0]
    >>> line["measure"], 0 <= line["advantage"] <= 1
    ('attack', True)
    """
    from dpadapt.audit import membership_attack

    sample = draw(TASKS[cell.task], 0)

    def fit(X: Any, y: Any, seed: int) -> Any:
        if math.isinf(cell.epsilon):
            return plain_fit(sample, X, y)
        return fit_private(with_private(sample, X, y), Run(cell.method, cell.epsilon), seed)

    found = membership_attack(
        fit,
        sample.X_private,
        sample.y_private,
        shadows=cell.shadows,
        targets=cell.victims,
        relation="add-remove",
    )
    return [
        {
            "dataset": cell.task,
            "n": len(sample.y_private) // 2,
            "measure": "attack",
            "method": cell.method,
            "epsilon": cell.epsilon,
            "auc": found.auc,
            "auc_error": _jackknife(found),
            "advantage": found.advantage,
        }
    ]


def _jackknife(found: Any) -> float:
    """Standard error of the area under the curve over other draws of the victims."""
    victims = len(found.scores)
    areas = [found.without(victim).auc for victim in range(victims)]
    return float(np.std(areas) * math.sqrt(victims - 1))


def run_ablation(options: Options) -> pd.DataFrame:
    """Figure 5: each part of AdaMix added to noisy gradient descent, at epsilon 3.

    Examples
    --------
    >>> len(ABLATION), len(SIX)
    (9, 6)
    """
    runs = tuple(Run(name, EPSILON) for name in ABLATION)
    return _errors(SIX, runs, options, "figure 5")


def run_percentiles(options: Options) -> pd.DataFrame:
    """Figure 7: AdaMix with other percentiles of adaptive clipping, at epsilon 3.

    Examples
    --------
    >>> PERCENTILES
    (25.0, 50.0, 75.0, 90.0, 95.0)
    """
    runs = [Run("AdaMix", EPSILON, options={"percentile": each}) for each in PERCENTILES]
    return _errors(SIX, (*runs, Run(OURS, EPSILON)), options, "figure 7")


def run_sigmas(options: Options) -> pd.DataFrame:
    """Figure 8: other noise, and so another number of steps, at the same epsilon 3.

    Examples
    --------
    >>> SIGMAS
    (5.0, 10.0, 20.0, 40.0)
    """
    runs = [Run(name, EPSILON, options={"sigma": sigma}) for sigma in SIGMAS for name in PRIVATE]
    return _errors(SIX, runs, options, "figure 8")


def run_curve(options: Options, *, task: str) -> pd.DataFrame:
    """Figures 9 to 13: error and success of an attack against epsilon, on one data set.

    Examples
    --------
    >>> FIVE
    ('digits', 'usps2', 'mnist', 'office', 'surf-caltech')
    """
    import pandas as pd

    budgets = _QUICK_EPSILONS if options.quick else EPSILONS
    runs = [Run(name, epsilon) for name in (*PRIVATE, WEAK) for epsilon in budgets]
    errors = _errors((task,), runs, options, f"{task}, error", ends=True)
    shadows, victims = (4, 2) if options.quick else (SHADOWS, VICTIMS)
    attacked = [
        AttackCell(task, name, epsilon, shadows, victims)
        for epsilon in (_QUICK_EPSILONS[:1] if options.quick else ATTACKED)
        for name in PRIVATE
    ]
    attacked.append(AttackCell(task, NO_PRIVACY, math.inf, shadows, victims))
    attacks = run_cells(run_attack, attacked[::-1], options, f"{task}, attack")
    return pd.concat([errors.assign(measure="error"), attacks], ignore_index=True)


def run_headline(options: Options) -> pd.DataFrame:
    """Increase of the error over the model without privacy, for both relations.

    Examples
    --------
    >>> HEADLINE[0]
    'office'
    """
    runs = [
        Run(name, epsilon, relation)
        for relation in ("add-remove", "replace-one")
        for epsilon in (_QUICK_EPSILONS if options.quick else HEADLINE_EPSILONS)
        for name in HEADLINE_METHODS
    ]
    return _errors(HEADLINE, runs, options, "headline", ends=True)


def _errors(
    tasks: Sequence[str], runs: Sequence[Run], options: Options, name: str, *, ends: bool = False
) -> pd.DataFrame:
    chosen = tasks if len(tasks) == 1 or not options.quick else _QUICK_TASKS
    cells = [
        Cell(task, seed, tuple(runs), ends) for task in chosen for seed in range(options.repeats)
    ]
    return run_cells(run_cell, cells, options, name)
