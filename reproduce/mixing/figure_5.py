"""Figure 5 of paper 004: what each part of AdaMix adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.learning.figures import BLUE, GREY, INK, ORANGE
from reproduce.page import panels
from reproduce.runs import Options
from reproduce.style import GREEN, PINK

from .errors import EPSILON, SIX, run_errors
from .methods import ABLATION, OURS, Run
from .style import (
    YELLOW,
    caveat,
    finish,
    mean_and_spread,
    title_of,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["ablation_findings", "decreases", "draw_ablation", "run_ablation", "summarise_ablation"]

_BASE = "NGD"
_COLOURS = (YELLOW, YELLOW, GREEN, ORANGE, ORANGE, PINK, PINK, PINK, GREY, BLUE)


def run_ablation(options: Options) -> pd.DataFrame:
    """Figure 5: each part of AdaMix added to noisy gradient descent, at epsilon 3."""
    runs = tuple(Run(name, EPSILON) for name in ABLATION)
    return run_errors(SIX, runs, options, "figure 5")


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
            axes.plot(value, place, markers[task], color=INK, ms=4.5, alpha=0.8)
    for task, marker in markers.items():
        axes.plot([], [], marker, color=INK, ms=5, label=title_of(task))
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
            f"gradients by {_change(medians[both])}."
        )
    return sentences


def _change(decrease: float) -> str:
    return f"{-round(decrease):+d}%"
