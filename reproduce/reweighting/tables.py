"""What the tables of paper 001 share: a run of many methods on many splits, and how it is shown."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dpadapt.learning.figures import BLUE, GREY, INK, ORANGE, set_title
from reproduce.page import panels
from reproduce.runs import Options, run_cells
from reproduce.style import PINK, mean_and_spread

from . import methods_without_privacy as methods
from .published import Published
from .splits import AMAZON, CLASSES, HALF_YEARS, REGRESSION, Dataset, Split, draw

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "ADAPTED",
    "DATASETS",
    "LIMIT",
    "PRINTED",
    "STAR",
    "Cell",
    "Method",
    "beside_published",
    "caveat",
    "chosen",
    "draw_dots",
    "findings_by_dataset",
    "mark",
    "measured",
    "run_cell",
    "run_table",
    "true_epsilons",
]

Method = Callable[[Split], methods.Fit]

ADAPTED = "dpadapt, epsilon {:g}"
PRINTED = "{} as printed, epsilon {:g}"
LIMIT = "CnvxAdap, same steps"  # the printed algorithm without noise
DATASETS: Mapping[str, Dataset] = {
    each.name: each
    for each in (*REGRESSION.values(), HALF_YEARS, *AMAZON.values(), *CLASSES.values())
}
STAR = "* not the paper's data: see the table"  # in a legend, if a title has it
_QUICK = ("Wind", "News", "kitchen → dvd", "German", "Accent")


class Cell(NamedTuple):
    """One split of one data set, for one table.

    Attributes
    ----------
    methods : mapping of str to callable
        What the table compares.
    dataset : str
    seed : int
    n : int, optional
        Private rows; the data set's if not given, 0 for all but the test rows.
    """

    methods: Mapping[str, Method]
    dataset: str
    seed: int
    n: int | None = None


def run_cell(cell: Cell) -> list[dict[str, Any]]:
    """Every method of a table on one split."""
    split = draw(DATASETS[cell.dataset], cell.seed, cell.n)
    place = {"dataset": cell.dataset, "n": split.n, "repeat": cell.seed}
    return measured(split, cell.methods, place)


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


def run_table(
    table: Mapping[str, Method], datasets: Mapping[str, Dataset], options: Options, name: str
) -> pd.DataFrame:
    """Every method of a table on every split of its data sets."""
    cells = [
        Cell(table, each, seed)
        for each in chosen(datasets, options)
        for seed in range(options.repeats)
    ]
    return run_cells(run_cell, cells, options, name)


def chosen(datasets: Mapping[str, Dataset], options: Options) -> list[str]:
    """Names of the data sets that are run: all, or those of a quick run."""
    return [name for name in datasets if not options.quick or name in _QUICK]


def caveat(dataset: str) -> str:
    """Why numbers on a data set are not the paper's own.

    Examples
    --------
    >>> caveat("kitchen → dvd")[:24]
    "not the paper's labels: "
    """
    return DATASETS[dataset].caveat


def mark(dataset: str) -> str:
    """An asterisk where rows or labels of a data set are not the paper's.

    Examples
    --------
    >>> mark("Wind"), mark("Gas")
    ('', '*')
    """
    return "*" if caveat(dataset).startswith(("not", "a fifth")) else ""


def draw_dots(
    found: pd.DataFrame, published: Published, label: str, unit: float | None = None
) -> Figure:
    """One panel for each data set: dots with bars of one deviation, published as diamonds."""
    datasets = list(dict.fromkeys(found["dataset"]))
    methods = list(dict.fromkeys(found["method"]))
    figure, grid = panels(1.9 + 2.9 * len(datasets), 1.6 + 0.42 * len(methods), 1, len(datasets))
    for axes, dataset in zip(grid.flat, datasets, strict=True):
        part = found[found["dataset"] == dataset]
        for place, method in enumerate(methods):
            values = part.loc[part["method"] == method, "value"]
            spread = 0.0 if len(values) < 2 else float(values.std())
            private = method.startswith("dpadapt")
            colour = BLUE if private else ORANGE if "printed" in method else INK
            axes.errorbar(
                values.mean(), place, xerr=spread, fmt="o", color=colour, ms=6, capsize=2
            )  # fmt: skip
            if method in published.get(dataset, {}):
                mean, deviation = published[dataset][method]
                axes.errorbar(
                    mean, place + 0.27, xerr=deviation, fmt="D", mfc="white", color=PINK, ms=5,
                    capsize=2,
                )  # fmt: skip
        if unit is not None:
            axes.axvline(unit, color=GREY, lw=0.9, zorder=0)
        axes.set_yticks(range(len(methods)), methods if axes is grid.flat[0] else [])
        axes.set_ylim(len(methods) - 0.4, -0.6)
        axes.set_xlabel(label)
        set_title(axes, f"{dataset}{mark(dataset)} (n = {part['n'].iloc[0]:,})")
        if unit is not None and part["value"].max() > 4 * unit:
            axes.set_xscale("log")
            low, high = axes.get_xlim()
            digits = (1, 2, 5) if high < 100 * low else (1,)
            ticks = [digit * 10.0**power for power in range(-2, 6) for digit in digits]
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_xlim(low, high)
            axes.minorticks_off()
        else:
            axes.set_xlim(left=max(0.0, axes.get_xlim()[0]))  # a bar may pass it, no error does
    figure.legend(
        handles=_keys(any(map(mark, datasets))),
        loc="outside lower center",
        ncols=5,
        frameon=False,
        handlelength=1.5,
    )
    return figure


def _keys(marked: bool) -> list[Any]:
    from matplotlib.lines import Line2D

    plain: dict[str, Any] = {"ls": "", "marker": "o"}
    return [
        Line2D([], [], color=INK, label="here, no privacy", **plain),
        Line2D([], [], color=ORANGE, label="here, the paper's, as printed (δ = 0.01)", **plain),
        Line2D([], [], color=BLUE, label="here, dpadapt (δ = 10⁻⁶)", **plain),
        Line2D([], [], color=PINK, mfc="white", label="published", ls="", marker="D"),
        *([Line2D([], [], ls="", label=STAR)] if marked else []),
    ]


def beside_published(found: pd.DataFrame, published: Published, digits: int) -> pd.DataFrame:
    """A line for each data set: every method, published numbers beside, and what is different."""
    import pandas as pd

    lines = []
    for dataset, part in found.groupby("dataset", sort=False):
        line: dict[str, Any] = {"data": dataset, "n": part["n"].iloc[0]}
        for method, values in part.groupby("method", sort=False)["value"]:
            line[str(method)] = mean_and_spread(list(values), digits)
            if any(method in each for each in published.values()):
                known = published.get(str(dataset), {}).get(str(method))
                text = "" if known is None else f"{known[0]:.{digits}f} ± {known[1]:.{digits}f}"
                line[f"{method}, published".replace(" as printed", "")] = text
        lines.append(line | {"not the paper's": caveat(str(dataset))})
    return pd.DataFrame(lines)


def findings_by_dataset(found: pd.DataFrame, digits: int) -> list[str]:
    """A sentence for each data set: the mean of every method."""
    sentences = []
    for name, part in found.groupby("dataset", sort=False):
        shown = ", ".join(
            f"{method} {lines['value'].mean():.{digits}f}"
            for method, lines in part.groupby("method", sort=False)
        )
        sentences.append(f"{name} (n = {part['n'].iloc[0]}): {shown}.")
    return sentences


def true_epsilons(table: pd.DataFrame) -> list[str]:
    """What printed constants give, largest over the runs, as a sentence; none if none was run."""
    lines = table[table["method"].str.contains("as printed")]
    parts = []
    for method, values in lines.groupby("method", sort=False)["true_epsilon"]:
        low, high = values.min(), values.max()
        text = f"{low:.3g}" if math.isclose(low, high, rel_tol=0.01) else f"{low:.3g} to {high:.3g}"
        parts.append(f"{text} for {method} at delta 0.01")
    return [f"What the printed constants truly give: {'; '.join(parts)}."] if parts else []
