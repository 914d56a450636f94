"""Tables, pictures and sentences of paper 001's tables, from their tidy tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.report.figures import BLUE, GREY, INK, ORANGE, set_title
from reproduce.page import panels

from .published import ACCURACY, RELATIVE_ERRORS, REVIEW_ERRORS, Published
from .splits import AMAZON, CLASSES, HALF_YEARS, REGRESSION

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "accuracies",
    "caveat",
    "draw_accuracies",
    "draw_relative",
    "mark",
    "plus_minus",
    "relative",
    "summarise_accuracies",
    "summarise_relative",
    "summarise_reviews",
    "table_findings",
]

PINK = "#CC79A7"


def caveat(dataset: str) -> str:
    """Why numbers on a data set are not the paper's own.

    Examples
    --------
    >>> caveat("kitchen → dvd")[:24]
    "not the paper's labels: "
    """
    known = {**REGRESSION, **AMAZON, **CLASSES, HALF_YEARS.name: HALF_YEARS}
    return known[dataset].caveat


def mark(dataset: str) -> str:
    """An asterisk where rows or labels of a data set are not the paper's.

    Examples
    --------
    >>> mark("Wind"), mark("Gas")
    ('', '*')
    """
    return "*" if caveat(dataset).startswith(("not", "a fifth")) else ""


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """Error over that of target-only training on the same split, as in Table 1.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [("Wind", 0, "target only", 2.0), ("Wind", 0, "KMM", 3.0)]
    >>> table = pd.DataFrame(lines, columns=["dataset", "repeat", "method", "error"])
    >>> relative(table)["value"].tolist()
    [1.0, 1.5]
    """
    keys = ["dataset", "repeat"]
    unit = table[table["method"] == "target only"].set_index(keys)["error"]
    units = unit.loc[list(table[keys].itertuples(index=False, name=None))].to_numpy()
    return table.assign(value=table["error"] / units)


def accuracies(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy in percent, as in Table 4.

    Examples
    --------
    >>> import pandas as pd
    >>> accuracies(pd.DataFrame({"error": [0.25]}))["value"].tolist()
    [75.0]
    """
    return table.assign(value=100 * (1 - table["error"]))


def plus_minus(values: Sequence[float], digits: int) -> str:
    """Mean and standard deviation as text.

    Examples
    --------
    >>> plus_minus([1.0, 3.0], 2)
    '2.00 ± 1.41'
    >>> plus_minus([1.0], 1)
    '1.0'
    """
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else mean


def summarise_relative(table: pd.DataFrame) -> pd.DataFrame:
    """Table 1, ours beside the published numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [("Wind", 9, 0, m, 1.0, math.inf) for m in ("target only", "KMM")]
    >>> columns = ["dataset", "n", "repeat", "method", "error", "true_epsilon"]
    >>> summarise_relative(pd.DataFrame(lines, columns=columns))["KMM, published"].tolist()
    ['1.009 ± 0.035']
    """
    return _beside(relative(table), RELATIVE_ERRORS, 3)


def summarise_reviews(table: pd.DataFrame) -> pd.DataFrame:
    """Table 3, ours beside the published numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> line = ("books → dvd", 9, 0, "DM", 1.0, math.inf)
    >>> columns = ["dataset", "n", "repeat", "method", "error", "true_epsilon"]
    >>> summarise_reviews(pd.DataFrame([line], columns=columns))["DM, published"].tolist()
    ['0.761 ± 0.562']
    """
    return _beside(table.assign(value=table["error"]), REVIEW_ERRORS, 3)


def summarise_accuracies(table: pd.DataFrame) -> pd.DataFrame:
    """Table 4, ours beside the published numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> line = ("Accent", 9, 0, "KMM", 0.5, math.inf)
    >>> columns = ["dataset", "n", "repeat", "method", "error", "true_epsilon"]
    >>> summarise_accuracies(pd.DataFrame([line], columns=columns))["KMM, published"].tolist()
    ['52.18 ± 2.27']
    """
    return _beside(accuracies(table), ACCURACY, 2)


def draw_relative(table: pd.DataFrame) -> Figure:
    """Table 1 as a picture.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [("Wind", 9, 0, m, 1.0) for m in ("target only", "KMM")]
    >>> columns = ["dataset", "n", "repeat", "method", "error"]
    >>> len(draw_relative(pd.DataFrame(lines, columns=columns)).axes)
    1
    """
    found = relative(table)
    label = "mean squared error,\ntarget-only training = 1"
    return _dots(found, RELATIVE_ERRORS, label, unit=1.0)


def draw_accuracies(table: pd.DataFrame) -> Figure:
    """Table 4 as a picture.

    Examples
    --------
    >>> import pandas as pd
    >>> line = ("Accent", 9, 0, "KMM", 0.5)
    >>> columns = ["dataset", "n", "repeat", "method", "error"]
    >>> len(draw_accuracies(pd.DataFrame([line], columns=columns)).axes)
    1
    """
    return _dots(accuracies(table), ACCURACY, "accuracy on target test rows (%)")


def table_findings(table: pd.DataFrame, *, number: str) -> list[str]:
    """What Table 1, 3 or 4 shows, in sentences made from its numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> methods = ["target only", "source only", "DM", "CnvxAdap", "dpadapt, epsilon 1"]
    >>> lines = [("Wind", 9, 0, m, 1.0, 1.0) for m in methods]
    >>> columns = ["dataset", "n", "repeat", "method", "error", "true_epsilon"]
    >>> table_findings(pd.DataFrame(lines, columns=columns), number="1")[0][:13]
    'Wind (n = 9):'
    """
    value = {"1": relative, "3": lambda each: each.assign(value=each["error"]), "4": accuracies}
    found = value[number](table)
    digits = {"1": 3, "3": 3, "4": 1}[number]
    sentences = []
    mean = found.groupby(["dataset", "method"], sort=False)["value"].mean().unstack()
    if number == "3":
        named = ", ".join(f"{name} {mean[name].mean():.3f}" for name in dict.fromkeys(table.method))
        sentences.append(f"Mean over {len(mean)} pairs: {named}.")
    else:
        for name, part in found.groupby("dataset", sort=False):
            shown = ", ".join(
                f"{method} {lines['value'].mean():.{digits}f}"
                for method, lines in part.groupby("method", sort=False)
            )
            sentences.append(f"{name} (n = {part['n'].iloc[0]}): {shown}.")
    truth = _true_epsilons(table)
    return sentences + ([f"What the printed constants truly give: {truth}."] if truth else [])


def _dots(
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
    figure.legend(
        handles=_keys(), loc="outside lower center", ncols=5, frameon=False, handlelength=1.5
    )
    return figure


def _keys() -> list[Any]:
    from matplotlib.lines import Line2D

    plain: dict[str, Any] = {"ls": "", "marker": "o"}
    return [
        Line2D([], [], color=INK, label="here, no privacy", **plain),
        Line2D([], [], color=ORANGE, label="here, the paper's, as printed (δ = 0.01)", **plain),
        Line2D([], [], color=BLUE, label="here, dpadapt (δ = 10⁻⁶)", **plain),
        Line2D([], [], color=PINK, mfc="white", label="published", ls="", marker="D"),
        Line2D([], [], ls="", label="* not the paper's data: see the table"),
    ]


def _beside(found: pd.DataFrame, published: Published, digits: int) -> pd.DataFrame:
    """A line for each data set: every method, published numbers beside, and what is different."""
    import pandas as pd

    lines = []
    for dataset, part in found.groupby("dataset", sort=False):
        line: dict[str, Any] = {"data": dataset, "n": part["n"].iloc[0]}
        for method, values in part.groupby("method", sort=False)["value"]:
            line[str(method)] = plus_minus(list(values), digits)
            if any(method in each for each in published.values()):
                known = published.get(str(dataset), {}).get(str(method))
                text = "" if known is None else f"{known[0]:.{digits}f} ± {known[1]:.{digits}f}"
                line[f"{method}, published".replace(" as printed", "")] = text
        lines.append(line | {"not the paper's": caveat(str(dataset))})
    return pd.DataFrame(lines)


def _true_epsilons(table: pd.DataFrame) -> str:
    """What printed constants give, largest over the runs."""
    lines = table[table["method"].str.contains("as printed")]
    parts = []
    for method, values in lines.groupby("method", sort=False)["true_epsilon"]:
        low, high = values.min(), values.max()
        text = f"{low:.3g}" if math.isclose(low, high, rel_tol=0.01) else f"{low:.3g} to {high:.3g}"
        parts.append(f"{text} for {method} at delta 0.01")
    return "; ".join(parts)
