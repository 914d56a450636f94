"""Figures 1 to 4 of paper 001: error against the number of private rows, for several epsilons.

The paper draws its private rows with replacement to reach 35,000 of 613 (Gas) and 50,000 of at most
16,192 (Adult): each person is then in the sample many times, and the stated epsilon protects one
copy, not a person. Here n ends where the people end, unless ``Options.resample`` asks otherwise;
such runs carry the number of copies and are marked as not private.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reproduce.runs import Options, run_cells

from . import methods_without_privacy as methods
from . import private_methods as private
from .splits import CLASSES, GAS, Dataset, Split, draw
from .tables import Method, measured

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BUDGETS", "Cell", "resampled", "run_cell", "run_figure_4", "run_gas_figures"]

BUDGETS = (0.5, 1.0, 5.0, 15.0)
QUICK_BUDGETS = (1.0, 15.0)
LIMIT_BUDGET = 1e6  # with the most people only: what is left when noise is not
GAS_SIZES = (150, 300, 613, 1300)
ADULT_SIZES = (500, 2000, 10000)  # of 14,695 women, 4,000 serve other purposes
GAS_RESAMPLED = (5000, 15000, 35000)  # the paper's axis
ADULT_RESAMPLED = (20000, 50000)
FIGURE_3_EPSILON = 15.0
_SETS: Mapping[str, Dataset] = {"Gas": GAS, "Adult": CLASSES["Adult"]}


class Cell(NamedTuple):
    """One split with n private rows.

    Attributes
    ----------
    dataset : {"Gas", "Adult"}
    n : int
    seed : int
    budgets : tuple of float
        The epsilons.
    resample : bool
        Whether private rows may be drawn with replacement to make n.
    """

    dataset: str
    n: int
    seed: int
    budgets: tuple[float, ...]
    resample: bool = False


def resampled(split: Split, n: int) -> tuple[Split, float]:
    """Draw n private rows with replacement: voids the guarantee. Also how often each is there.

    A person who is there k times has k times the influence that the noise was made for.

    Examples
    --------
    >>> rows, labels = np.eye(2), np.ones(2)
    >>> split = Split(rows, labels, rows, labels, rows, labels, rows, labels, False, 0)
    >>> larger, copies = resampled(split, 20)
    >>> larger.n, copies
    (20, 10.0)
    """
    drawn = np.random.default_rng([3, split.seed]).integers(split.n, size=n)
    larger = dataclasses.replace(
        split, X_private=split.X_private[drawn], y_private=split.y_private[drawn]
    )
    return larger, n / split.n


def run_cell(cell: Cell) -> list[dict[str, Any]]:
    """Every curve's point at one n of one split.

    Raises
    ------
    ValueError
        If there are fewer than n private people and resampling was not asked for.

    Examples
    --------
    >>> try:
    ...     run_cell(Cell("Gas", 35000, 0, (1.0,)))
    ... except ValueError as error:
    ...     "voids the guarantee" in str(error) or "DPADAPT_DATA" in str(error)
    True
    """
    dataset = _SETS[cell.dataset]
    people = dataclasses.replace(dataset, sizes=dataclasses.replace(dataset.sizes, train=None))
    split, copies = draw(people, cell.seed), 1.0
    if split.n >= cell.n:
        split = draw(people, cell.seed, cell.n)
    elif cell.resample:
        split, copies = resampled(split, cell.n)
    else:
        raise ValueError(
            f"there are only {split.n:,} private people; drawing {cell.n:,} rows of them with "
            "replacement voids the guarantee."
        )
    place = {"dataset": cell.dataset, "n": cell.n, "copies": copies, "repeat": cell.seed}
    table = _gas(cell) if cell.dataset == "Gas" else _adult(cell.budgets)
    return [
        line
        for epsilon, curves in table.items()
        for line in measured(split, curves, place | {"epsilon": epsilon})
    ]


def run_gas_figures(options: Options) -> pd.DataFrame:
    """Figures 1, 2 and 3: regression on Gas."""
    return _run("Gas", GAS_SIZES, GAS_RESAMPLED, options)


def run_figure_4(options: Options) -> pd.DataFrame:
    """Figure 4: classes of Adult."""
    return _run("Adult", ADULT_SIZES, ADULT_RESAMPLED, options)


def _gas(cell: Cell) -> dict[float, dict[str, Method]]:
    table: dict[float, dict[str, Method]] = {
        0.0: {"public only": private.public_only},
        np.inf: {"CnvxAdap, same steps": private.own_limit, "CnvxAdap, tuned": methods.adaptation},
    }
    for epsilon in cell.budgets:
        table[epsilon] = {
            "PCnvxAdap as printed": partial(private.printed, epsilon=epsilon),
            "PCnvxAdap as printed, 100 steps": partial(private.printed, epsilon=epsilon, steps=100),
            "noisy SGD": partial(private.noisy_sgd, epsilon=epsilon),
            "dpadapt": partial(private.known_noise, epsilon=epsilon),
        }
    table[FIGURE_3_EPSILON] = table.get(FIGURE_3_EPSILON, {}) | {
        "PCnvxAdap, alpha 1": partial(private.printed, epsilon=FIGURE_3_EPSILON, alpha=1.0),
        "private DM as printed": partial(private.printed_discrepancy, epsilon=FIGURE_3_EPSILON),
        "private DM, ours": partial(private.private_discrepancy, epsilon=FIGURE_3_EPSILON),
    }
    if cell.n == GAS_SIZES[-1]:
        table[LIMIT_BUDGET] = {
            "PCnvxAdap as printed": partial(private.printed, epsilon=LIMIT_BUDGET),
            "dpadapt": partial(private.known_noise, epsilon=LIMIT_BUDGET),
        }
    return table


def _adult(budgets: tuple[float, ...]) -> dict[float, dict[str, Method]]:
    table: dict[float, dict[str, Method]] = {
        0.0: {"public only": private.public_only},
        np.inf: {"NCnvxAdap": methods.adaptation},
    }
    for epsilon in budgets:
        table[epsilon] = {
            "PNCnvxAdap as printed": partial(private.printed, epsilon=epsilon),
            "dpadapt": partial(private.known_noise, epsilon=epsilon),
        }
    return table


def _run(
    dataset: str, sizes: tuple[int, ...], larger: tuple[int, ...], options: Options
) -> pd.DataFrame:
    shown = (sizes[0], sizes[-1]) if options.quick else sizes
    budgets = QUICK_BUDGETS if options.quick else BUDGETS
    if options.resample:
        shown += larger
    cells = [
        Cell(dataset, n, seed, budgets, options.resample)
        for n in shown
        for seed in range(options.repeats)
    ]
    return run_cells(run_cell, cells, options, f"figures on {dataset}")
