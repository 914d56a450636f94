"""Figures 5, 7 and 8 of paper 004: which part helps, which percentile, how much noise a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.report.figures import BLUE, GREY, ORANGE, set_title
from reproduce.page import panels

from .methods import ABLATION, OURS
from .style import (
    GREEN,
    NOTE,
    PINK,
    STYLES,
    YELLOW,
    caveat,
    curve,
    finish,
    mean_and_spread,
    percent_axis,
    title_of,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "ablation_findings",
    "decreases",
    "draw_ablation",
    "draw_settings",
    "setting_findings",
    "summarise_ablation",
    "summarise_settings",
]

_BASE = "NGD"
_COLOURS = (YELLOW, YELLOW, GREEN, ORANGE, ORANGE, PINK, GREY, BLUE)


def decreases(table: pd.DataFrame) -> pd.DataFrame:
    """Relative decrease of the error against NGD on the same sample, in percent.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [("digits", 0, "NGD", 0.2), ("digits", 0, "dpadapt", 0.15)]
    >>> table = pd.DataFrame(lines, columns=["dataset", "repeat", "method", "error"])
    >>> decreases(table)["decrease"].round(6).tolist()
    [0.0, 25.0]
    """
    keys = ["dataset", "repeat"]
    base = table[table["method"] == _BASE].set_index(keys)["error"]
    bases = base.loc[list(table[keys].itertuples(index=False, name=None))].to_numpy()
    return table.assign(decrease=100 * (1 - table["error"].to_numpy() / np.maximum(bases, 1e-9)))


def summarise_ablation(table: pd.DataFrame) -> pd.DataFrame:
    """Test errors in percent, a line for each data set.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [("digits", 0, "NGD", 0.2), ("digits", 0, "dpadapt", 0.15)]
    >>> table = pd.DataFrame(lines, columns=["dataset", "repeat", "method", "error"])
    >>> summarise_ablation(table)["dpadapt"].tolist()
    ['15.0']
    """
    import pandas as pd

    lines = []
    for task, part in table.groupby("dataset", sort=False):
        line: dict[str, Any] = {"data": title_of(str(task))}
        for method, errors in part.groupby("method", sort=False)["error"]:
            line[str(method)] = mean_and_spread(list(errors))
        lines.append(line | {"not the paper's": caveat(str(task))})
    return pd.DataFrame(lines)


def draw_ablation(table: pd.DataFrame) -> Figure:
    """Box plot of the decreases, over data sets and repeats; points are means of data sets.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [("digits", 0, "NGD", 0.2), ("digits", 0, "dpadapt", 0.15)]
    >>> table = pd.DataFrame(lines, columns=["dataset", "repeat", "method", "error"])
    >>> len(draw_ablation(table).axes)
    1
    """
    found = decreases(table)
    means = found.groupby(["method", "dataset"], sort=False)["decrease"].mean()
    methods = [name for name in ABLATION if name != _BASE and name in set(found["method"])]
    figure, grid = panels(9.5, 4.6, 1, 1)
    axes = grid.flat[0]
    boxes = axes.boxplot(
        [means[name].to_numpy() for name in methods],
        orientation="horizontal",
        patch_artist=True,
        widths=0.55,
        medianprops={"color": "black"},
        showfliers=False,
    )
    for box, name in zip(boxes["boxes"], methods, strict=True):
        box.set(facecolor=_COLOURS[ABLATION.index(name) - 1], alpha=0.55)
    markers = dict(zip(dict.fromkeys(found["dataset"]), "osD^vP", strict=False))
    for place, name in enumerate(methods, start=1):
        for task, value in means[name].items():
            axes.plot(value, place, markers[task], color="#222222", ms=4.5, alpha=0.8)
    for task, marker in markers.items():
        axes.plot([], [], marker, color="#222222", ms=5, label=title_of(task))
    named = {"NoisyGD": "NoisyGD from zero,\nno public data", OURS: "dpadapt (default)"}
    axes.set_yticks(range(1, len(methods) + 1), [named.get(name, name) for name in methods])
    axes.invert_yaxis()
    axes.axvline(0, color=GREY, lw=1.2)
    axes.set_xlabel("decrease of the test error against NGD with public start (%), ε = 3")
    finish(figure, grid, 1, columns=3)
    return figure


def ablation_findings(table: pd.DataFrame) -> list[str]:
    """Median decrease of each method, and whether the paper's order is found.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [("digits", 0, "NGD", 0.2), ("digits", 0, "dpadapt", 0.15)]
    >>> table = pd.DataFrame(lines, columns=["dataset", "repeat", "method", "error"])
    >>> ablation_findings(table)[0]
    'Change of the test error against NGD, median over 1 data sets: dpadapt -25%.'
    """
    found = decreases(table)
    means = found.groupby(["method", "dataset"], sort=False)["decrease"].mean()
    methods = [name for name in ABLATION if name != _BASE and name in set(found["method"])]
    medians = {name: float(means[name].median()) for name in methods}
    count = found["dataset"].nunique()
    listed = ", ".join(f"{name} {_change(value)}" for name, value in medians.items())
    sentences = [f"Change of the test error against NGD, median over {count} data sets: {listed}."]
    best = {
        str(task): str(part.groupby("method")["error"].mean().idxmin())
        for task, part in found.groupby("dataset", sort=False)
    }
    wins = sum(name == OURS for name in best.values())
    others = [f"{title_of(task)}: {name}" for task, name in best.items() if name != OURS]
    sentences.append(
        f"The default has the smallest mean error on {wins} of {count} data sets"
        + (f"; elsewhere it is {', '.join(others)}." if others else ".")
    )
    clipping, both = "NGD + adaptive clipping", "NGD + both (gradients)"
    if clipping in medians and both in medians:
        sentences.append(
            "The paper finds that adaptive clipping helps more than projection and both together "
            "most. Here adaptive clipping changes the error by "
            f"{_change(medians[clipping])}, and with the projection on the span of public "
            f"gradients by {_change(medians[both])}: that span has as many dimensions as there are "
            "public examples, and leaves much of the private gradient outside (Figure 6)."
        )
    return sentences


def _change(decrease: float) -> str:
    return f"{-round(decrease):+d}%"


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
