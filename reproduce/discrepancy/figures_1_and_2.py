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
from dpadapt.report.figures import set_title
from reproduce.page import panels
from reproduce.runs import Options, run_cells

from .data import Array
from .methods import METHODS, ORACLE_METHODS, RIDGE, STEPS, Cell, Fit, Task
from .style import LINES, NAMES, ORACLE, summarise

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "CELLS",
    "best_mu",
    "draw_figure",
    "figure_findings",
    "run_cell",
    "run_figures",
    "summarise_figure",
]

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

_FIGURE_1 = [each for each in LINES if not each.startswith(("single", "moments, s", "private"))]
_FIGURE_2 = [each for each in LINES if each != ORACLE]
_KEY_METHODS = (
    "public only",
    "Frank-Wolfe, printed",
    "Frank-Wolfe, tight",
    "moments",
    "moments, single stage",
    "no privacy",
)
_SHOWN = {"discrepancy": _FIGURE_1, "mse": _FIGURE_2}
_UNITS = {"discrepancy": 1.0, "mse": 1e4}


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
    cells = [
        Cell(n, epsilon, repeat, steps)
        for repeat in range(options.repeats)
        for n, epsilon in (QUICK_CELLS if options.quick else CELLS)
    ]
    return run_cells(run_cell, cells, options, "figures 1 and 2")


def run_cell(cell: Cell) -> list[dict[str, Any]]:
    """Every method on one draw of the data.

    Examples
    --------
    >>> rows = run_cell(Cell(n=1000, epsilon=1.0, repeat=0, steps=5))
    >>> {"n", "epsilon", "method", "true_epsilon", "discrepancy", "mse"} <= set(rows[0])
    True
    """
    task, rows = Task(cell), []
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
    return found.rename(columns={column: NAMES[column]})


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
            colour, line = LINES[method]
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
        axes.set(ylabel=NAMES[column], yscale="log")
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
