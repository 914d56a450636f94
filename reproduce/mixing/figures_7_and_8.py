"""Figures 7 and 8 of paper 004: which percentile of adaptive clipping, how much noise a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpadapt.learning.figures import set_title
from reproduce.page import panels
from reproduce.runs import Options

from .errors import EPSILON, SIX, run_errors
from .methods import OURS, PRIVATE, WEAK, Run
from .style import NOTE, STYLES, caveat, curve, finish, mean_and_spread, percent_axis, title_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "draw_settings",
    "run_percentiles",
    "run_sigmas",
    "setting_findings",
    "summarise_settings",
]

PERCENTILES = (25.0, 50.0, 75.0, 90.0, 95.0)
SIGMAS = (5.0, 10.0, 20.0, 40.0)


def run_percentiles(options: Options) -> pd.DataFrame:
    """Figure 7: AdaMix with other percentiles of adaptive clipping, at epsilon 3."""
    runs = [
        Run(name, EPSILON, options={"percentile": each})
        for each in PERCENTILES
        for name in ("AdaMix", WEAK)
    ]
    return run_errors(SIX, (*runs, Run(OURS, EPSILON)), options, "figure 7")


def run_sigmas(options: Options) -> pd.DataFrame:
    """Figure 8: other noise, and so another number of steps, at the same epsilon 3."""
    names = (*PRIVATE, WEAK)
    runs = [Run(name, EPSILON, options={"sigma": sigma}) for sigma in SIGMAS for name in names]
    return run_errors(SIX, runs, options, "figure 8")


def summarise_settings(table: pd.DataFrame, *, setting: str) -> pd.DataFrame:
    """Test errors in percent for each value of a setting.

    Parameters
    ----------
    table : DataFrame
    setting : str
        The column: "percentile" or "sigma".

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame([{"dataset": "digits", "method": "AdaMix", "error": 0.1,
    ...                        "sigma": 20.0, "steps": 206}])
    >>> summarise_settings(table, setting="sigma").iloc[0, 1:3].tolist()
    ['AdaMix', '10.0']
    """
    import pandas as pd

    lines = []
    for (task, method), part in table.groupby(["dataset", "method"], sort=False):
        line: dict[str, Any] = {"data": title_of(str(task)), "method": method}
        if part[setting].isna().all():
            line["as it comes"] = mean_and_spread(list(part["error"]))
        for value, cell in part.groupby(setting):
            steps = f", T = {cell['steps'].iloc[0]}" if setting == "sigma" else ""
            line[f"{setting} {value:g}{steps}"] = mean_and_spread(list(cell["error"]))
        lines.append(line | {"not the paper's": caveat(str(task))})
    found = pd.DataFrame(lines).fillna("")
    return found[[*(name for name in found if name != "not the paper's"), "not the paper's"]]


def draw_settings(table: pd.DataFrame, *, setting: str, name: str) -> Figure:
    """Test error against a setting, a panel a data set.

    Parameters
    ----------
    table : DataFrame
    setting, name : str
        The column, and what the axis is called.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame([{"dataset": "digits", "method": "AdaMix", "error": 0.1,
    ...                        "sigma": 20.0, "steps": 206}])
    >>> len(draw_settings(table, setting="sigma", name="sigma").axes)
    1
    """
    tasks = list(dict.fromkeys(table["dataset"]))
    columns = min(3, len(tasks))
    rows = -(-len(tasks) // columns)
    figure, grid = panels(1 + 3.3 * columns, 1.1 + 2.6 * rows, rows, columns)
    shown = table.assign(percent=100 * table["error"])
    values = sorted(set(shown[setting].dropna()))
    for axes, task in zip(grid.flat, tasks, strict=False):
        for method, part in shown[shown["dataset"] == task].groupby("method", sort=False):
            style = STYLES[str(method)]
            if part[setting].isna().all():  # it has no such setting
                level = part["percent"].mean()
                axes.axhline(level, color=style["color"], ls="-.", lw=1.8, label=str(method))
            else:
                curve(axes, part, setting, "percent", str(method), style)
        if setting == "sigma":
            percent_axis(axes, values)
        else:
            axes.set(ylabel="test error (%)")
            axes.set_xticks(values)
        axes.set_xlabel(name)
        set_title(axes, title_of(task))
    finish(figure, grid, len(tasks), note=f"{NOTE} ε = 3, δ = 10⁻⁵, add/remove.")
    return figure


def setting_findings(table: pd.DataFrame, *, setting: str, usual: float) -> list[str]:
    """Best value of a setting on each data set, and what the paper's value costs against it.

    Parameters
    ----------
    table : DataFrame
    setting : str
    usual : float
        The paper's value.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [("digits", "AdaMix", 0.1, 20.0), ("digits", "AdaMix", 0.2, 5.0)]
    >>> table = pd.DataFrame(lines, columns=["dataset", "method", "error", "sigma"])
    >>> setting_findings(table, setting="sigma", usual=20.0)[0][-61:]
    'With 20 the mean error over data sets is 10.0%; 20.0% with 5.'
    """
    sentences = []
    for method, part in table.groupby("method", sort=False):
        if part[setting].isna().all():
            error = 100 * part.groupby("dataset")["error"].mean().mean()
            sentences.append(f"{method} has no such setting: {error:.1f}%.")
            continue
        means = part.groupby(["dataset", setting], sort=False)["error"].mean()
        best = {task: means[task].idxmin() for task in dict.fromkeys(part["dataset"])}
        named = ", ".join(f"{title_of(str(task))} {value:g}" for task, value in best.items())
        over = 100 * means.groupby(setting).mean()
        listed = ", ".join(
            f"{over[value]:.1f}% with {value:g}" for value in sorted(over.index) if value != usual
        )
        sentences.append(
            f"{method}, best {setting}: {named}. With {usual:g} the mean error over data sets is "
            f"{over[usual]:.1f}%{'; ' + listed if listed else ''}."
        )
    return sentences
