"""Tables 1, 3 and 4 of paper 001, and what adaptation gains on its data at small epsilon."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from reproduce.runs import Options, run_cells

from . import methods_without_privacy as methods
from . import private_methods as private
from .splits import AMAZON, CLASSES, HALF_YEARS, REGRESSION, Dataset, Split, draw

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "GAIN_SETS",
    "TABLE_1",
    "TABLE_3",
    "TABLE_4",
    "Cell",
    "run_cell",
    "run_gains",
    "run_table_1",
    "run_table_3",
    "run_table_4",
]

Method = Callable[[Split], methods.Fit]

_ADAPTED = "dpadapt, epsilon {:g}"
_PRINTED = "{} as printed, epsilon {:g}"
TABLE_1: Mapping[str, Method] = {
    "target only": methods.target_only,
    "source only": methods.source_only,
    "KMM": methods.mean_matching,
    "DM": methods.discrepancy_minimisation,
    "CnvxAdap": methods.adaptation,
    _PRINTED.format("PCnvxAdap", 1): partial(private.printed, epsilon=1.0),
    _ADAPTED.format(1): partial(private.known_noise, epsilon=1.0),
}
TABLE_3: Mapping[str, Method] = {
    "target only": methods.target_only,
    "source only": methods.source_only,
    "DM": methods.discrepancy_minimisation,
    "CnvxAdap": methods.adaptation,
    **{
        _PRINTED.format("PCnvxAdap", epsilon): partial(private.printed, epsilon=epsilon)
        for epsilon in (4.0, 10.0)
    },
    **{
        _ADAPTED.format(epsilon): partial(private.known_noise, epsilon=epsilon)
        for epsilon in (1.0, 4.0, 10.0)
    },
}
TABLE_4: Mapping[str, Method] = {
    "source only": methods.source_only,
    "target only": methods.target_only,
    "KMM": methods.mean_matching,
    "NCnvxAdap": methods.adaptation,
    _PRINTED.format("PNCnvxAdap", 1): partial(private.printed, epsilon=1.0),
    _ADAPTED.format(1): partial(private.known_noise, epsilon=1.0),
}
BUDGETS = (0.25, 0.5, 1.0, 4.0)
GAINS: Mapping[str, Method] = {
    "public only": private.public_only,
    "public only, standardised": private.plain_public,
    "private rows, no privacy": private.oracle_private,
    "both, no privacy": private.oracle_pooled,
    **{
        f"private only, epsilon {epsilon:g}": partial(private.noisy_gradient, epsilon=epsilon)
        for epsilon in BUDGETS
    },
    **{
        _ADAPTED.format(epsilon): partial(private.known_noise, epsilon=epsilon)
        for epsilon in BUDGETS
    },
}
GAIN_SETS: Mapping[str, Dataset] = {
    each.name: each
    for each in (*REGRESSION.values(), HALF_YEARS, *AMAZON.values(), *CLASSES.values())
}
_TABLES: dict[str, Mapping[str, Method]] = {
    "1": TABLE_1,
    "3": TABLE_3,
    "4": TABLE_4,
    "gains": GAINS,
}
GAIN_SPLITS = 5
# no size of the paper's, or nearly all rows in it
_ONE_SIZE: Mapping[str, tuple[int | None, ...]] = {HALF_YEARS.name: (0,), "Adult": (None,)}
_QUICK = ("Wind", "News", "kitchen → dvd", "German", "Accent")


class Cell(NamedTuple):
    """One split of one data set, for one table.

    Attributes
    ----------
    table : str
    dataset : str
    seed : int
    n : int, optional
        Private rows; the data set's if not given, 0 for all but the test rows.

    Examples
    --------
    >>> Cell("1", "Wind", 0).n is None
    True
    """

    table: str
    dataset: str
    seed: int
    n: int | None = None


def run_cell(cell: Cell) -> list[dict[str, Any]]:
    """Every method of a table on one split.

    Examples
    --------
    >>> from reproduce.data.files import MissingDataError
    >>> try:
    ...     lines = run_cell(Cell("4", "Accent", 0))
    ... except MissingDataError:
    ...     lines = [{"method": "source only"}]
    >>> lines[0]["method"]
    'source only'
    """
    split = draw(GAIN_SETS[cell.dataset], cell.seed, cell.n)
    place = {"dataset": cell.dataset, "n": split.n, "repeat": cell.seed}
    return measured(split, _TABLES[cell.table], place)


def measured(
    split: Split, table: Mapping[str, Method], place: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """One line for each method: its error on the test rows, and its true epsilon.

    Examples
    --------
    >>> import numpy as np
    >>> rows, labels = np.arange(6.0)[:, None], np.arange(6.0)
    >>> split = Split(rows, labels, rows, labels, rows, labels, rows, labels, False, 0)
    >>> line = measured(split, {"target": methods.target_only}, {"n": 6})[0]
    >>> line["n"], line["method"], round(line["error"], 6)
    (6, 'target', 0.0)
    """
    lines = []
    for name, method in table.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what printed constants truly give is in the table
            fit = method(split)
        seconds = time.perf_counter() - start
        lines.append(
            dict(place)
            | {
                "method": name,
                "error": methods.error(split, fit.predict),
                "true_epsilon": fit.epsilon,
                "seconds": seconds,
            }
        )
    return lines


def run_table_1(options: Options) -> pd.DataFrame:
    """Regression on four data sets.

    Examples
    --------
    >>> from reproduce.data.files import MissingDataError
    >>> try:
    ...     found = "error" in run_table_1(Options(repeats=1, quick=True))
    ... except MissingDataError:
    ...     found = True
    >>> found
    True
    """
    return _run("1", REGRESSION, options)


def run_table_3(options: Options) -> pd.DataFrame:
    """Regression on twelve pairs of kinds of reviews.

    Examples
    --------
    >>> from reproduce.data.files import MissingDataError
    >>> try:
    ...     found = "error" in run_table_3(Options(repeats=1, quick=True))
    ... except MissingDataError:
    ...     found = True
    >>> found
    True
    """
    return _run("3", AMAZON, options)


def run_table_4(options: Options) -> pd.DataFrame:
    """Classes on three data sets.

    Examples
    --------
    >>> from reproduce.data.files import MissingDataError
    >>> try:
    ...     found = "error" in run_table_4(Options(repeats=1, quick=True))
    ... except MissingDataError:
    ...     found = True
    >>> found
    True
    """
    return _run("4", CLASSES, options)


def run_gains(options: Options) -> pd.DataFrame:
    """Ours at four epsilons on all data sets, with the paper's number of private rows and all.

    Examples
    --------
    >>> len(GAIN_SETS), GAIN_SPLITS
    (20, 5)
    """
    cells = [
        Cell("gains", name, seed, n)
        for name in _chosen(GAIN_SETS, options)
        for n in _ONE_SIZE.get(name, (None, 0))
        for seed in range(min(GAIN_SPLITS, options.repeats))
    ]
    return run_cells(run_cell, cells, options, "gains")


def _run(table: str, datasets: Mapping[str, Dataset], options: Options) -> pd.DataFrame:
    cells = [
        Cell(table, name, seed)
        for name in _chosen(datasets, options)
        for seed in range(options.repeats)
    ]
    return run_cells(run_cell, cells, options, f"table {table}")


def _chosen(datasets: Mapping[str, Dataset], options: Options) -> list[str]:
    return [name for name in datasets if not options.quick or name in _QUICK]
