"""Numbers, pictures and sentences of paper 000's Figures 1 and 2."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.learning.figures import GREY, INK, set_title
from reproduce.page import finish, panels
from reproduce.runs import spread_note
from reproduce.style import budget_colour, mean_and_spread

from .style import NAMES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["best_mu", "draw_figure", "figure_findings", "summarise_figure"]

_KEY_METHODS = (
    "public only",
    "Frank-Wolfe, printed",
    "Frank-Wolfe, tight",
    "moments",
    "moments, single stage",
    "no privacy",
)
_PANELS = {
    "discrepancy": (
        ("Frank-Wolfe, printed", "mirror descent, printed", "moments"),
        ("Frank-Wolfe, tight", "mirror descent, tight", "Frank-Wolfe, tight, own K"),
    ),
    "mse": (
        ("Frank-Wolfe, printed", "mirror descent, printed", "single stage, printed", "moments"),
        (
            "Frank-Wolfe, tight",
            "mirror descent, tight",
            "single stage, tight",
            "moments, single stage",
        ),
    ),
}
_COLUMNS = {
    "discrepancy": ("public only", *sum(_PANELS["discrepancy"], ()), "no privacy"),
    "mse": ("public only", *sum(_PANELS["mse"], ()), "no privacy", "private labels"),
}
_BEST = "best mu (oracle)"
_ORACLES = {
    "discrepancy": (f"Frank-Wolfe, printed, {_BEST}",),
    "mse": (f"single stage, no noise, {_BEST}",),
}
_UNITS = {"discrepancy": 1.0, "mse": 1e4}
_DIGITS = {"discrepancy": 4, "mse": 2}


def _limit(method: str) -> str:
    """The curve of a method at epsilon infinity."""
    return "no privacy" if method == "moments" else f"{_algorithm(method)}, no noise"


def _algorithm(method: str) -> str:
    return method.split(", printed")[0].split(", tight")[0]


def best_mu(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Keep, of the lines with a given mu, those of the mu with the least mean in their cell.

    That is an oracle's choice: it looks at the private rows, and is not private.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [(1, 1.0, "Frank-Wolfe, printed, mu 5", 0.3), (1, 1.0, "a, mu 15", 0.2)]
    >>> table = pd.DataFrame(lines, columns=["n", "epsilon", "method", "mse"])
    >>> best_mu(table, "mse")["mse"].tolist()
    [0.2]
    """
    import pandas as pd

    given = table["method"].str.contains(", mu ")
    kept = [table[~given]]
    for _, cell in table[given].groupby(["n", "epsilon"]):
        best = str(cell.groupby("method")[column].mean().idxmin())
        name = f"{best.split(', mu ')[0]}, {_BEST}"
        kept.append(cell[cell["method"] == best].assign(method=name))
    return pd.concat(kept, ignore_index=True)


def summarise_figure(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Numbers of Figure 1 ("discrepancy") or 2 ("mse", times 10,000): mean and deviation.

    A line for each n and epsilon; those of epsilon infinity hold the algorithms without noise.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"n": 1, "epsilon": 1.0, "true_epsilon": 0.15, "method": "moments", "mse": 2e-4}
    >>> summarise_figure(pd.DataFrame([line]), "mse")["moments"].tolist()
    ['2.00']
    """
    import pandas as pd

    digits, unit = _DIGITS[column], _UNITS[column]
    found = best_mu(table, column)
    lines = []
    limits = {_limit(each): each for each in _COLUMNS[column] if ", tight" not in each}
    for (n, given), cell in found.groupby(["n", "epsilon"]):
        epsilon = float(str(given))
        free = math.isinf(epsilon)
        part = cell.assign(method=cell["method"].map(limits)) if free else cell
        values = part.groupby("method")[column]
        line: dict[str, Any] = {"n": n, "epsilon": "infinity" if free else f"{epsilon:g}"}
        for method in _COLUMNS[column]:
            if method in values.groups:
                line[method] = mean_and_spread(list(values.get_group(method) * unit), digits)
        lines.append(line)
    columns = [
        "n",
        "epsilon",
        *(each for each in _COLUMNS[column] if any(each in x for x in lines)),
    ]
    return pd.DataFrame(lines, columns=columns).fillna("")


def draw_figure(table: pd.DataFrame, column: str) -> Figure:
    """Figure 1 ("discrepancy") or 2 ("mse") against n: a panel for each algorithm.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"n": 1, "epsilon": 1.0, "true_epsilon": 1.0, "method": "moments", "mse": 2e-4}
    >>> len(draw_figure(pd.DataFrame([line]), "mse").axes)
    8
    """
    shown = best_mu(table, column)
    shown = shown.assign(value=shown[column] * _UNITS[column])
    rows = _PANELS[column]
    figure, grid = panels(0.8 + 3.2 * len(rows[0]), 7.2, 2, len(rows[0]))
    for axes, method in zip(grid.flat, [each for row in rows for each in row], strict=True):
        _panel(axes, shown, method, oracles=_ORACLES[column])
        axes.set(xscale="log", yscale="log", xlabel="private rows n")
        sizes = sorted(set(shown["n"]))
        axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
        ticks = [3, 5, 10, 20] if column == "mse" else [0.001, 0.01, 0.1, 1]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    low, high = (
        pick(axes.get_ylim()[place] for axes in grid.flat) for place, pick in enumerate((min, max))
    )
    for axes in grid.flat:
        axes.set_ylim(low, high)
    for axes in grid[:, 0]:
        axes.set_ylabel(NAMES[column])
    note = (
        "Top: noise as printed, and ours. Bottom: the same algorithms with no more noise than ε "
        f"needs. {spread_note(table, 'Bars: one standard deviation.')}"
    )
    finish(figure, grid, note, columns=8)
    return figure


def _panel(axes: Axes, shown: pd.DataFrame, method: str, oracles: tuple[str, ...]) -> None:
    """A curve for each epsilon, the algorithm without noise, and what it is measured against."""
    part = shown[(shown["method"] == method) & np.isfinite(shown["epsilon"])]
    for epsilon in sorted(set(part["epsilon"])):
        colour = budget_colour(epsilon)
        here = part["epsilon"] == epsilon
        _curve(axes, part[here], f"ε = {epsilon:g}", color=colour, marker="o")
        best = (shown["method"] == f"{method}, {_BEST}") & (shown["epsilon"] == epsilon)
        if f"{method}, {_BEST}" in oracles:
            _curve(
                axes, shown[best], "best μ (oracle)", color=colour, ls="", marker="D", mfc="white"
            )
    limit = _limit(method)
    _curve(axes, shown[shown["method"] == limit], "ε = ∞ (no noise)", color=INK, ls="--")
    if f"{limit}, {_BEST}" in oracles:
        best = shown["method"] == f"{limit}, {_BEST}"
        _curve(axes, shown[best], "ε = ∞, best μ and step (oracle)", color=INK, ls=":", marker="D")
    _curve(axes, shown[shown["method"] == "public only"], "public only", color=GREY, ls=":")
    labels = shown[(shown["method"] == "private labels") & shown["value"].notna()]
    _curve(axes, labels, "private labels", color=GREY, ls="-.")
    set_title(axes, f"{method} (ours)" if method.startswith("moments") else method)
    if method.endswith("printed") and len(part):
        true = part.groupby("epsilon")["true_epsilon"].max()
        given = ", ".join(f"{value:.2g}" for value in true)
        axes.text(0.03, 0.97, f"true ε: {given}", transform=axes.transAxes, va="top", fontsize=9)


def _curve(axes: Axes, lines: pd.DataFrame, label: str, **style: Any) -> None:
    """Mean over repeats, with bars of one standard deviation."""
    if not len(lines):
        return
    values = lines.groupby("n")["value"]
    mean, spread = values.mean(), values.std().fillna(0)
    lower = np.minimum(spread, 0.9 * mean)  # a logarithmic axis has no zero
    axes.errorbar(
        mean.index, mean, yerr=[lower, spread], label=label, ms=4.5, lw=1.6, capsize=2,
        elinewidth=1, **style,
    )  # fmt: skip


def figure_findings(table: pd.DataFrame, column: str) -> list[str]:
    """What Figure 1 or 2 shows, in sentences made from its numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> methods = ["public only", "Frank-Wolfe, printed", "Frank-Wolfe, tight", "moments"]
    >>> line = {"n": 1, "epsilon": 1.0, "true_epsilon": 0.15, "mse": 2e-4}
    >>> table = pd.DataFrame([line | {"method": method} for method in methods])
    >>> len(figure_findings(table, "mse"))
    2
    """
    unit = _UNITS[column]
    table = best_mu(table, column)
    free = table[np.isinf(table["epsilon"])]
    table = table[np.isfinite(table["epsilon"])]
    cells = table.groupby(["n", "epsilon", "method"])[column].mean().unstack() * unit
    shown = [each for each in _KEY_METHODS if each in cells.columns]
    ends = list(dict.fromkeys([cells.index[0], cells.index[-1]]))
    sentences = [
        f"n = {end[0]:,}, epsilon = {end[1]:g}: "
        + ", ".join(f"{method} {cells.loc[end, method]:.3g}" for method in shown)
        + "."
        for end in ends
    ]
    private = cells.drop(columns=["no privacy", "private labels"], errors="ignore")
    ours = [str(best).startswith("moments") for best in private.idxmin(axis=1)]
    printed = table[table["method"].str.endswith("printed")]
    shares = printed["true_epsilon"] / printed["epsilon"]
    return [
        f"One noisy matrix gives the lowest value of all private methods in {sum(ours)} of "
        f"{len(ours)} settings. The printed constants truly give {shares.min():.2g} to "
        f"{shares.max():.2g} times the epsilon that they claim.",
        *sentences,
        *_limits(free, column),
    ]


def _limits(table: pd.DataFrame, column: str) -> list[str]:
    """What the algorithms reach without noise, with the most private rows."""
    part = table[table["n"] == table["n"].max()]
    mean = part.groupby("method", sort=False)[column].mean() * _UNITS[column]
    if not len(mean):
        return []
    named = ", ".join(f"{each.replace(', no noise', '')} {mean[each]:.3g}" for each in mean.index)
    return [f"n = {part['n'].iloc[0]:,}, epsilon infinity: {named}."]
