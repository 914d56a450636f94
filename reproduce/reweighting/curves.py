"""Pictures and sentences of paper 001's figures: error against the number of private rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.learning.figures import BLUE, GREY, INK, ORANGE, set_title
from reproduce.page import panels
from reproduce.style import ALARM, GREEN, budget_colour, mean_and_spread

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "curve_findings",
    "draw_by_budget",
    "draw_by_method",
    "draw_figure_3",
    "summarise_curves",
]

_LIMITS = ("CnvxAdap, same steps", "CnvxAdap, tuned", "NCnvxAdap")
FIGURE_3 = (
    *("public only", "PCnvxAdap, alpha 1", "private DM as printed", "private DM, ours", "dpadapt"),
    *_LIMITS[:2],
)
_METHODS: Mapping[str, dict[str, Any]] = {
    "public only": {"color": GREY, "ls": ":"},
    "PCnvxAdap as printed": {"color": ORANGE, "ls": "-", "marker": "o"},
    "PCnvxAdap, alpha 1": {"color": ORANGE, "ls": "-", "marker": "o"},
    "noisy SGD": {"color": GREY, "ls": "-.", "marker": "^"},
    "private DM as printed": {"color": GREEN, "ls": "-", "marker": "s"},
    "private DM, ours": {"color": GREEN, "ls": "-.", "marker": "v"},
    "dpadapt": {"color": BLUE, "ls": "-", "marker": "o"},
    "CnvxAdap, same steps": {"color": INK, "ls": "--"},
    "CnvxAdap, tuned": {"color": INK, "ls": ":"},
    "NCnvxAdap": {"color": INK, "ls": "--"},
}
_MOST_DRAWN = 100.0  # epsilon
_NOTES = {
    "Gas": "Gas, not the paper's target: batch 6 instead of batch 7.",
    "Adult": "Adult: men are public, women private; columns and sizes are our choice.",
}
_DELTAS = {"dpadapt": "δ = 10⁻⁶"}  # of the others: the paper's 0.01


def summarise_curves(
    table: pd.DataFrame, *, methods: tuple[str, ...], least: float = 0.0
) -> pd.DataFrame:
    """Error of some methods for each n and epsilon; accuracy in percent for Adult.

    Parameters
    ----------
    table : DataFrame
    methods : sequence of str
    least : float, default=0
        Smallest epsilon to show.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "Gas", "n": 9, "copies": 1.0, "epsilon": 1.0, "method": "dpadapt"}
    >>> table = pd.DataFrame([line | {"error": 0.5, "true_epsilon": 1.0}])
    >>> summarise_curves(table, methods=("dpadapt",)).iloc[0, 1:].tolist()
    ['1', '0.5000']
    """
    import pandas as pd

    shown, digits = _drawn(table), 4 if table["dataset"].iloc[0] == "Gas" else 2
    shown = shown[shown["method"].isin(methods)]
    lines = []
    for n in sorted(set(shown["n"])):
        here = shown[shown["n"] == n]
        for epsilon in sorted(set(here["epsilon"]) - {0.0, np.inf}):
            if epsilon < least:
                continue
            line: dict[str, Any] = {"n": n, "epsilon": f"{epsilon:g}"}
            for method in methods:
                found = here[
                    (here["method"] == method) & here["epsilon"].isin([0.0, epsilon, np.inf])
                ]
                line[method] = mean_and_spread(list(found["value"]), digits) if len(found) else ""
                if len(found) and _claimed(method):
                    line[f"true epsilon of {method}"] = f"{found['true_epsilon'].max():.3g}"
            if shown["copies"].max() > 1:
                copies = here["copies"].max()
                mark = "yes" if copies == 1 else f"NO: each person {copies:.1f} times"
                line["private"] = mark
            lines.append(line)
    return pd.DataFrame(lines).fillna("")


def draw_by_budget(table: pd.DataFrame, *, methods: tuple[str, str]) -> Figure:
    """Figures 1 and 4: a panel for the paper's algorithm and one for ours, a curve an epsilon.

    Parameters
    ----------
    table : DataFrame
    methods : (str, str)
        The paper's, and ours.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "Gas", "n": 9, "copies": 1.0, "epsilon": 1.0, "error": 0.5}
    >>> table = pd.DataFrame([line | {"method": m} for m in ("PCnvxAdap as printed", "dpadapt")])
    >>> figure = draw_by_budget(table, methods=("PCnvxAdap as printed", "dpadapt"))
    >>> len(figure.axes)
    2
    """
    shown = _drawn(table)
    figure, grid = panels(11, 4.9, 1, 2)
    for axes, method in zip(grid.flat, methods, strict=True):
        part = shown[shown["method"] == method]
        for place, epsilon in enumerate(sorted(set(part["epsilon"]))):
            lines = part[part["epsilon"] == epsilon]
            style = {"color": budget_colour(epsilon), "marker": "o", "ls": "-"}
            _curve(axes, lines, f"ε = {epsilon:g}", place=place, **style)
        for other in ("public only", *_LIMITS):
            _curve(axes, shown[shown["method"] == other], other, **_METHODS.get(other, {}))
        _finish(axes, table)
        set_title(axes, f"{method}, {_DELTAS.get(method, 'δ = 0.01')}")
    _share_limits(grid)
    _legend(figure, grid, table, columns=4)
    return figure


def draw_by_method(table: pd.DataFrame) -> Figure:
    """Figure 2: a panel an epsilon, with noisy SGD, the paper's algorithm and ours.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "Gas", "n": 9, "copies": 1.0, "epsilon": 1.0, "error": 0.5}
    >>> len(draw_by_method(pd.DataFrame([line | {"method": "noisy SGD"}])).axes)
    1
    """
    shown = _drawn(table)
    budgets = sorted(set(shown.loc[shown["method"] == "noisy SGD", "epsilon"]))
    columns = 2 if len(budgets) == 4 else min(3, len(budgets))
    rows = -(-len(budgets) // columns)
    figure, grid = panels(1 + 3.5 * columns, 1.2 + 3.1 * rows, rows, columns)
    for axes, epsilon in zip(grid.flat, budgets, strict=False):
        for method in ("noisy SGD", "PCnvxAdap as printed", "dpadapt"):
            lines = shown[(shown["method"] == method) & (shown["epsilon"] == epsilon)]
            label = f"{method} ({_DELTAS.get(method, 'δ = 0.01')})"
            _curve(axes, lines, label, **_METHODS[method])
        for other in ("public only", *_LIMITS):
            _curve(axes, shown[shown["method"] == other], other, **_METHODS[other])
        _finish(axes, table)
        set_title(axes, f"ε = {epsilon:g}")
    for axes in list(grid.flat)[len(budgets) :]:
        axes.set_visible(False)
    _share_limits(grid)
    _legend(figure, grid, table, columns=3)
    return figure


def draw_figure_3(table: pd.DataFrame) -> Figure:
    """Figure 3: alpha = 1 against private discrepancy minimisation, at epsilon 15.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "Gas", "n": 9, "copies": 1.0, "epsilon": 15.0, "error": 0.5}
    >>> len(draw_figure_3(pd.DataFrame([line | {"method": "private DM, ours"}])).axes)
    1
    """
    shown = _drawn(table)
    free = ("public only", *_LIMITS)
    shown = shown[(shown["epsilon"] == 15) | shown["method"].isin(free)]
    figure, grid = panels(8, 4.8, 1, 1)
    axes = grid.flat[0]
    for method in FIGURE_3:
        label = method if method in free else f"{method}, ε = 15"
        _curve(axes, shown[shown["method"] == method], label, **_METHODS[method])
    _finish(axes, table)
    _share_limits(grid)
    _legend(figure, grid, table, columns=3)
    return figure


def curve_findings(table: pd.DataFrame, *, methods: tuple[str, ...], epsilon: float) -> list[str]:
    """Ends of the curves at one epsilon, in a sentence; and what printed constants truly give.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "Gas", "n": 9, "copies": 1.0, "epsilon": 1.0, "method": "dpadapt"}
    >>> table = pd.DataFrame([line | {"error": 0.5, "true_epsilon": 1.0}])
    >>> curve_findings(table, methods=("dpadapt",), epsilon=1.0)
    ['At n = 9, epsilon 1: dpadapt 0.5000.']
    """
    shown = _drawn(table)
    shown = shown[shown["method"].isin(methods)]
    unit, digits = ("", 4) if table["dataset"].iloc[0] == "Gas" else ("%", 2)
    sentences = []
    for n in sorted({shown["n"].min(), shown["n"].max()}):
        part = shown[(shown["n"] == n) & shown["epsilon"].isin([0.0, epsilon, np.inf])]
        values = part.groupby("method", sort=False)["value"].mean()
        named = ", ".join(f"{method} {values[method]:.{digits}f}{unit}" for method in values.index)
        copies = shown.loc[shown["n"] == n, "copies"].max()
        note = "" if copies == 1 else f" Not private: each person appears {copies:.1f} times."
        sentences.append(f"At n = {n:,}, epsilon {epsilon:g}: {named}.{note}")
    printed = shown[shown["method"].map(_claimed)]
    for method, part in printed.groupby("method", sort=False):
        true = part.groupby("epsilon")["true_epsilon"].max()
        given = ", ".join(f"{true[asked]:.3g} where {asked:g} is claimed" for asked in true.index)
        sentences.append(f"{method} truly gives epsilon {given} (delta 0.01).")
    return sentences


def _valued(table: pd.DataFrame) -> pd.DataFrame:
    """Mean squared error for Gas, accuracy in percent for Adult."""
    gas = table["dataset"].iloc[0] == "Gas"
    return table.assign(value=table["error"] if gas else 100 * (1 - table["error"]))


def _drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Without the one budget that shows what is left when noise is not."""
    shown = _valued(table)
    return shown[(shown["epsilon"] <= _MOST_DRAWN) | np.isinf(shown["epsilon"])]


def _claimed(method: str) -> bool:
    """Whether a method has printed constants, which need not keep what they claim."""
    return any(word in method for word in ("printed", "SGD", "alpha 1"))


def _curve(
    axes: Axes, lines: pd.DataFrame, label: str, place: int | None = None, **style: Any
) -> None:
    """Mean over splits with a band of one standard deviation, or with bars side by side."""
    if not len(lines):
        return
    groups = lines.groupby("n")["value"]
    mean, spread = groups.mean(), groups.std().fillna(0)
    n = mean.index.to_numpy(dtype=float)
    if place is not None:
        low = np.minimum(spread, 2 / 3 * mean)  # a logarithmic axis has no zero
        bars: dict[str, Any] = {"yerr": [low, spread], "capsize": 2, "elinewidth": 1}
        axes.errorbar(n * 1.03**place, mean, label=label, ms=4.5, lw=1.8, **bars, **style)
        return
    axes.plot(n, mean, label=label, ms=4.5, lw=1.8, **style)
    low = np.maximum(mean - spread, mean / 3)
    axes.fill_between(n, low, mean + spread, color=style.get("color"), alpha=0.08, lw=0)


def _finish(axes: Axes, table: pd.DataFrame) -> None:
    gas = table["dataset"].iloc[0] == "Gas"
    sizes = sorted(set(table["n"]))
    axes.set(xscale="log", xlabel="private rows n (target, labelled)")
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    if gas:
        axes.set(yscale="log", ylabel="test error (MSE, labels in [-1, 1])")
    else:
        axes.set_ylabel("accuracy on women's test rows (%)")
    axes.minorticks_off()
    copied = table[table["copies"] > 1]
    if len(copied):
        first = copied["n"].min()
        axes.axvspan(first / 1.15, copied["n"].max() * 1.15, color="#f6c4a8", alpha=0.35, zorder=0)


def _share_limits(grid: Any) -> None:
    """The same vertical axis in all panels; accuracies keep their own, and say so."""
    visible = [axes for axes in grid.flat if axes.get_visible()]
    if visible[0].get_yscale() != "log":
        for axes in visible[1:]:
            axes.set_ylabel(f"{axes.get_ylabel()}, other scale")
        return
    low = min(axes.get_ylim()[0] for axes in visible)
    high = max(axes.get_ylim()[1] for axes in visible)
    digits = (1, 2, 5) if high < 1000 * low else (1,)
    ticks = [digit * 10.0**power for power in range(-5, 4) for digit in digits]
    for axes in visible:
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(low, high)


def _legend(figure: Figure, grid: Any, table: pd.DataFrame, columns: int = 5) -> None:
    copied = table.loc[table["copies"] > 1, "copies"]
    drawn, colour = "No person is drawn twice.", GREY
    if len(copied):
        times = f"{copied.min():.1f} to {copied.max():.1f}"
        drawn, colour = f"SHADED: NOT PRIVATE, each person appears {times} times.", ALARM
    note = f"{_NOTES[table['dataset'].iloc[0]]} {drawn}"
    figure.suptitle(note, fontsize=9, color=colour, x=0.01, ha="left")
    found: dict[str, Any] = {}
    for axes in grid.flat:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        found.values(), found.keys(), loc="outside lower center", ncols=columns, frameon=False
    )
