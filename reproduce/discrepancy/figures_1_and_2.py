"""Tables, pictures and sentences of paper 000's experiments, from their tidy tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from dpadapt.report.figures import BLUE, GREY, INK, ORANGE, set_title
from reproduce.page import panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "best_mu",
    "crossover_findings",
    "draw_crossover",
    "draw_errors",
    "draw_figure",
    "figure_findings",
    "real_findings",
    "summarise",
    "summarise_figure",
]

GREEN, PINK, YELLOW = "#009E73", "#CC79A7", "#B8860B"
ORACLE = "Frank-Wolfe, printed, best mu (oracle)"
# colour tells the algorithm, the line the constants
_LINES: dict[str, tuple[str, str]] = {
    "public only": (GREY, ":"),
    "uniform weights": (GREY, ":"),
    "Frank-Wolfe, printed": (ORANGE, "-"),
    ORACLE: (ORANGE, "none"),
    "Frank-Wolfe, tight": (ORANGE, "--"),
    "Frank-Wolfe, tight, own K": (ORANGE, "-."),
    "mirror descent, printed": (PINK, "-"),
    "mirror descent, tight": (PINK, "--"),
    "single stage, printed": (GREEN, "-"),
    "single stage, tight": (GREEN, "--"),
    "moments": (BLUE, "-"),
    "moments, single stage": (BLUE, "--"),
    "no privacy": (INK, ":"),
    "private labels": (INK, "-."),
}
_FIGURE_1 = [each for each in _LINES if not each.startswith(("single", "moments, s", "private"))]
_FIGURE_2 = [each for each in _LINES if each != ORACLE]
_KEY_METHODS = (
    "public only",
    "Frank-Wolfe, printed",
    "Frank-Wolfe, tight",
    "moments",
    "moments, single stage",
    "no privacy",
)
_SHOWN = {"discrepancy": _FIGURE_1, "mse": _FIGURE_2}
_CONFIDENCE = 0.975  # of a paired difference, one side
_UNITS = {"discrepancy": 1.0, "mse": 1e4}
_NAMES = {"discrepancy": "discrepancy ‖M(q)‖₂", "mse": "test error (MSE x 10⁴)"}


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
        best = cell.groupby("method")[column].mean().idxmin()
        kept.append(cell[cell["method"] == best].assign(method=ORACLE))
    return pd.concat(kept, ignore_index=True)


def summarise(table: pd.DataFrame, keys: Sequence[str], column: str) -> pd.DataFrame:
    """Mean and spread (standard deviation over repeats) of a column, in the table's order.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"method": ["a", "a"], "mse": [1.0, 3.0]})
    >>> summarise(table, ["method"], "mse").to_dict("records")
    [{'method': 'a', 'mse': '2', 'spread': '1.4', 'repeats': 2}]
    """
    grouped = table.groupby(list(keys), sort=False)[column]
    found = grouped.agg(["mean", "std", "count"]).reset_index()
    found["mean"] = found["mean"].map("{:.3g}".format)
    found["std"] = found["std"].map(lambda value: "" if math.isnan(value) else f"{value:.2g}")
    return found.rename(columns={"mean": column, "std": "spread", "count": "repeats"})


def summarise_figure(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Numbers of Figure 1 ("discrepancy") or 2 ("mse"), with the epsilon that truly holds.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"n": 1, "epsilon": 1.0, "true_epsilon": 0.15, "method": "moments", "mse": 2e-4}
    >>> summarise_figure(pd.DataFrame([line]), "mse").iloc[0, 2:5].tolist()
    ['moments', '0.15', '2']
    """
    shown = best_mu(table, column)
    shown = shown[shown["method"].isin(_SHOWN[column])].sort_values(["n", "epsilon"], kind="stable")
    shown = shown.assign(**{column: shown[column] * _UNITS[column]})
    found = summarise(shown, ["n", "epsilon", "method"], column)
    true = shown.groupby(["n", "epsilon", "method"], sort=False)["true_epsilon"].max()
    found.insert(3, "true epsilon", [f"{value:.3g}" for value in true])
    return found.rename(columns={column: _NAMES[column]})


def draw_figure(table: pd.DataFrame, column: str) -> Figure:
    """Figure 1 ("discrepancy") or 2 ("mse"): against n, and against epsilon.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"n": 1, "epsilon": 1.0, "true_epsilon": 1.0, "method": "moments", "mse": 2e-4}
    >>> len(draw_figure(pd.DataFrame([line]), "mse").axes)
    2
    """
    shown = best_mu(table, column)
    cuts = _cuts(shown)
    rows = math.ceil(len(cuts) / 2)
    figure, grid = panels(11, 1.9 + 3.4 * rows, rows, 2)
    handles: dict[str, Any] = {}
    for axes, (fixed, value, along) in zip(grid.flat, cuts, strict=False):
        part = shown[shown[fixed] == value]
        for method in _SHOWN[column]:
            curve = part[part["method"] == method].groupby(along)[column]
            if not len(curve):
                continue
            mean, spread = curve.mean() * _UNITS[column], curve.std().fillna(0) * _UNITS[column]
            colour, line = _LINES[method]
            lower = np.minimum(spread, 0.9 * mean)  # a logarithmic axis has no zero
            handles[_legend(shown, method)] = axes.errorbar(
                mean.index,
                mean,
                yerr=[lower, spread],
                color=colour,
                ls=line,
                marker="D" if line == "none" else "o",
                mfc="white" if line == "none" else colour,
                ms=7 if line == "none" else 4,
                lw=2.2 if method.startswith("moments") else 1.5,
                capsize=2,
                elinewidth=1,
            )
        name = "ε" if fixed == "epsilon" else "n"
        set_title(axes, f"{name} = {value:g}")
        axes.set(xlabel="private rows n" if along == "n" else "ε asked for", xscale="log")
        axes.set(ylabel=_NAMES[column], yscale="log")
        ticks = sorted(set(part[along]))
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        if column == "mse":
            axes.set_yticks([3, 5, 10, 20], ["3", "5", "10", "20"])
    for axes in list(grid.flat)[len(cuts) :]:
        axes.set_visible(False)
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=2,
        frameon=False,
        handlelength=4,
    )
    return figure


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
        f"{shares.max():.2g} times the epsilon that they claim: they add more noise than they "
        "need.",
        *sentences,
    ]


def draw_crossover(table: pd.DataFrame) -> Figure:
    """Discrepancy against d, one panel for each n epsilon.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"d": 10, "n": 100, "epsilon": 0.1, "method": "moments", "discrepancy": 0.3}
    >>> len(draw_crossover(pd.DataFrame([line])).axes)
    1
    """
    settings = _settings(table)
    figure, grid = panels(4 * len(settings) + 0.5, 4.3, 1, len(settings))
    for axes, ((n, epsilon), part) in zip(grid.flat, settings, strict=True):
        for method, lines in part.groupby("method", sort=False):
            curve = lines.groupby("d")["discrepancy"]
            colour, line = _LINES[str(method)]
            axes.errorbar(
                curve.mean().index,
                curve.mean(),
                yerr=curve.std().fillna(0),
                color=colour,
                ls=line,
                marker="o",
                ms=4,
                capsize=2,
                label=method,
            )
        axes.axvline((n * epsilon) ** (4 / 3), color=GREY, lw=0.8)
        axes.set(xscale="log", ylim=(0, None), xlabel="columns d", xlim=(7, 2900))
        set_title(axes, f"n = {n}, ε = {epsilon:.2g}")
    grid.flat[0].set_ylabel(_NAMES["discrepancy"])
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def crossover_findings(table: pd.DataFrame) -> list[str]:
    """On which side of the crossover Frank-Wolfe wins, by a paired t test at 95%.

    Examples
    --------
    >>> import pandas as pd
    >>> methods = {"uniform weights": 0.4, "moments": 0.1, "Frank-Wolfe, tight, own K": 0.2}
    >>> lines = [
    ...     {"d": 9, "n": 100, "epsilon": 0.1, "repeat": 0, "method": m, "discrepancy": x}
    ...     for m, x in methods.items()
    ... ]
    >>> crossover_findings(pd.DataFrame(lines))
    ['n epsilon = 10: Frank-Wolfe is clearly lower at no d; moments clearly lower at no d.']
    """
    sentences = []
    for (n, epsilon), part in _settings(table):
        found = part.pivot(index=["d", "repeat"], columns="method", values="discrepancy")
        gain = (found["moments"] - found["Frank-Wolfe, tight, own K"]).groupby("d")
        # Student's t; not a number for a single run, which shows nothing
        clear = gain.mean() / gain.sem() / stats.t.ppf(_CONFIDENCE, gain.count() - 1)
        mean = found.groupby("d").mean()

        def places(
            chosen: pd.Series[bool], winner: str, loser: str, mean: pd.DataFrame = mean
        ) -> str:
            wins = [
                f"d = {d} ({mean[winner][d]:.2g} against {mean[loser][d]:.2g}; uniform weights "
                f"{mean['uniform weights'][d]:.2g})"
                for d in mean.index[chosen]
            ]
            return ", ".join(wins) or "no d"

        rival = "Frank-Wolfe, tight, own K"
        sentences.append(
            f"n epsilon = {n * epsilon:.4g}: Frank-Wolfe is clearly lower at "
            f"{places(clear > 1, rival, 'moments')}; moments clearly lower at "
            f"{places(clear < -1, 'moments', rival)}."
        )
    return sentences


def draw_errors(table: pd.DataFrame) -> Figure:
    """Error of each method: means as bars, single runs as dots.

    Examples
    --------
    >>> import pandas as pd
    >>> len(draw_errors(pd.DataFrame({"method": ["a", "a"], "mse": [1.0, 2.0]})).axes)
    1
    """
    methods = list(dict.fromkeys(table["method"]))[::-1]
    figure, grid = panels(8, 1.2 + 0.5 * len(methods), 1, 1)
    axes = grid.flat[0]
    for place, method in enumerate(methods):
        values = table.loc[table["method"] == method, "mse"].to_numpy()
        colour = BLUE if method.startswith("dpadapt") else GREY
        axes.barh(place, values.mean(), color=colour, alpha=0.35, height=0.62)
        axes.plot(values, np.full(len(values), place), "o", color=colour, ms=4.5)
        axes.annotate(
            f"{values.mean():.4f}",
            (values.max(), place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
        )
    axes.set_yticks(range(len(methods)), methods)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("error on private rows (MSE, in units of the public labels' variance)")
    axes.set_xlim(right=1.12 * float(table["mse"].max()))
    return figure


def real_findings(table: pd.DataFrame) -> list[str]:
    """Whether adaptation helps, and whether discrepancy minimisation itself does.

    Examples
    --------
    >>> import pandas as pd
    >>> names = ["public only", "dpadapt, epsilon 1", "plain DM, no privacy"]
    >>> lines = [{"repeat": 0, "method": m, "mse": x} for m, x in zip(names, [0.2, 0.2, 0.4])]
    >>> real_findings(pd.DataFrame(lines))[1]
    'Plain discrepancy minimisation, without privacy, changes it by +100.0%: it does not help here.'
    """
    runs = table.pivot(index="repeat", columns="method", values="mse")
    mean, public = runs.mean(), runs["public only"]
    sentences = []
    ours = runs["dpadapt, epsilon 1"]
    sentences.append(
        f"dpadapt at epsilon 1 changes the error of public data alone ({public.mean():.4f}) by "
        f"{ours.mean() / public.mean() - 1:+.1%}; it is lower in {int((ours < public).sum())} of "
        f"{len(runs)} splits."
    )
    for method, name in (
        ("plain DM, no privacy", "Plain discrepancy minimisation"),
        ("kernel mean matching, no privacy", "Kernel mean matching"),
    ):
        if method not in mean.index:
            sentences.append(f"{name} was not run: the package `adapt` is not installed.")
            continue
        change = mean[method] / public.mean() - 1
        verdict = "it helps" if change < 0 else "it does not help here"
        sentences.append(f"{name}, without privacy, changes it by {change:+.1%}: {verdict}.")
    return sentences


def _settings(table: pd.DataFrame) -> list[tuple[tuple[int, float], pd.DataFrame]]:
    """Parts of the crossover's table with the same n and epsilon."""
    pairs = sorted(set(zip(table["n"], table["epsilon"], strict=True)))
    return [
        ((n, epsilon), table[(table["n"] == n) & (table["epsilon"] == epsilon)])
        for n, epsilon in pairs
    ]


def _cuts(table: pd.DataFrame) -> list[tuple[str, float, str]]:
    """Panels: an epsilon with every n, then an n with every epsilon."""
    sizes, budgets = sorted(set(table["n"])), sorted(set(table["epsilon"]))
    by_n = [value for value in budgets if set(table[table["epsilon"] == value]["n"]) == set(sizes)]
    by_epsilon = [n for n in sizes if set(table[table["n"] == n]["epsilon"]) == set(budgets)]
    cuts = [("epsilon", value, "n") for value in by_n[:2]]
    if len(budgets) > 1:
        cuts += [("n", n, "epsilon") for n in (by_epsilon[0], by_epsilon[-1])]
    return cuts


def _legend(table: pd.DataFrame, method: str) -> str:
    """Name of a curve; for printed constants with the epsilon that they truly give."""
    if "printed" not in method:
        return {
            "moments": "moments (ours)",
            "moments, single stage": "moments, single stage (ours)",
        }.get(method, method)
    lines = table[table["method"] == method].groupby("epsilon")["true_epsilon"].max()
    shown = {lines.index[0], lines.index[-1]} | ({1.0} & set(lines.index))
    pairs = ", ".join(f"{lines[e]:.2g} for {e:g}" for e in sorted(shown))
    return f"{method} (true ε: {pairs})"
