"""Figures 6 and 14 to 18 of paper 004, which show private facts: only for data that are public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.report.figures import INK, set_title
from reproduce.page import panels

from .errors import EPSILON
from .style import GREEN, GREY, NOTE, PRIVATE_FACTS, STYLES, caveat, curve, finish, title_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "draw_losses",
    "draw_reconstruction",
    "loss_findings",
    "reconstruction_findings",
    "summarise_losses",
    "summarise_reconstruction",
]

_SHOWN = {
    "public, a row": {"color": GREEN, "ls": "-", "marker": "s"},
    "random, a row": {"color": GREY, "ls": "-", "marker": "o"},
    "public, the sum": {"color": GREEN, "ls": "--", "marker": "s"},
    "random, the sum": {"color": GREY, "ls": "--", "marker": "o"},
}
_LABELS = {
    "public, a row": "public gradients' span: gradient of one row",
    "random, a row": "random subspace: gradient of one row",
    "public, the sum": "public gradients' span: sum of the gradients",
    "random, the sum": "random subspace: sum of the gradients",
}


def summarise_reconstruction(table: pd.DataFrame) -> pd.DataFrame:
    """Relative errors, mean over the training.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "digits", "dimension": 50, "of": 650} | dict.fromkeys(_SHOWN, 0.5)
    >>> summarise_reconstruction(pd.DataFrame([line]))["random / public, a row"].tolist()
    ['1.00']
    """
    import pandas as pd

    lines = []
    for task, part in table.groupby("dataset", sort=False):
        line: dict[str, Any] = {
            "data": title_of(str(task)),
            "dimensions": f"{part['dimension'].max()} of {part['of'].iloc[0]}",
        }
        line |= {name: f"{part[name].mean():.3f}" for name in _SHOWN}
        for kind in ("a row", "the sum"):
            ratio = part[f"random, {kind}"].mean() / part[f"public, {kind}"].mean()
            line[f"random / public, {kind}"] = f"{ratio:.2f}"
        lines.append(line | {"not the paper's": caveat(str(task))})
    return pd.DataFrame(lines)


def draw_reconstruction(table: pd.DataFrame) -> Figure:
    """Relative error along training, a panel a data set.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "digits", "step": 1} | dict.fromkeys(_SHOWN, 0.5)
    >>> len(draw_reconstruction(pd.DataFrame([line])).axes)
    1
    """
    tasks = list(dict.fromkeys(table["dataset"]))
    columns = min(3, len(tasks))
    rows = -(-len(tasks) // columns)
    figure, grid = panels(1 + 3.3 * columns, 1.2 + 2.5 * rows, rows, columns)
    for axes, task in zip(grid.flat, tasks, strict=False):
        part = table[table["dataset"] == task]
        for name, style in _SHOWN.items():
            curve(axes, part, "step", name, _LABELS[name], {**style, "markevery": 3})
        axes.set(xlabel="step of AdaMix, ε = 3", ylabel="relative error", ylim=(0, 1.05))
        set_title(axes, title_of(task))
    finish(figure, grid, len(tasks), columns=2, note=f"{PRIVATE_FACTS}\n{NOTE}")
    return figure


def reconstruction_findings(table: pd.DataFrame) -> list[str]:
    """Whether a random subspace is twice as bad, as the paper says.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "digits", "step": 1} | dict.fromkeys(_SHOWN, 0.5)
    >>> reconstruction_findings(pd.DataFrame([line]))[0][:30]
    'Relative error of a row, publi'
    """
    sentences = []
    for kind in ("a row", "the sum"):
        means = table.groupby("dataset", sort=False)[[f"public, {kind}", f"random, {kind}"]].mean()
        ratios = means[f"random, {kind}"] / means[f"public, {kind}"]
        listed = ", ".join(
            f"{title_of(str(task))} {means[f'public, {kind}'][task]:.2f} / "
            f"{means[f'random, {kind}'][task]:.2f}"
            for task in means.index
        )
        twice = int((ratios >= 2).sum())
        name = "a row" if kind == "a row" else "the sum over all rows"
        sentences.append(
            f"Relative error of {name}, public span / random subspace of equal dimension: "
            f"{listed}. The random one is at least twice as large on {twice} of {len(ratios)} "
            "data sets (the paper: generally more than twice)."
        )
    return sentences


def summarise_losses(table: pd.DataFrame) -> pd.DataFrame:
    """Quantiles of the rows' epsilons for each method.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dataset": "digits", "method": "AdaMix", "loss": [1.0, 3.0]})
    >>> summarise_losses(table).iloc[0, 1:].tolist()[:3]
    ['1.20', '2.00', '2.80']
    """
    import pandas as pd

    lines = []
    for method, part in table.groupby("method", sort=False):
        low, middle, high = np.quantile(part["loss"], [0.1, 0.5, 0.9])
        lines.append(
            {
                "method": method,
                "10% of rows below": f"{low:.2f}",
                "median": f"{middle:.2f}",
                "90% below": f"{high:.2f}",
                "largest": f"{part['loss'].max():.2f}",
                "not the paper's": caveat(str(part["dataset"].iloc[0])),
            }
        )
    return pd.DataFrame(lines)


def draw_losses(table: pd.DataFrame) -> Figure:
    """Histogram of the rows' epsilons, for each method.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dataset": "digits", "method": "AdaMix", "loss": [1.0, 3.0]})
    >>> len(draw_losses(table).axes)
    1
    """
    figure, grid = panels(8, 4.4, 1, 1)
    axes = grid.flat[0]
    bins = np.linspace(0, EPSILON, 41).tolist()
    for method, part in table.groupby("method", sort=False):
        colour = STYLES[str(method)]["color"]
        counts = part["loss"].to_numpy()
        axes.hist(counts, bins=bins, histtype="stepfilled", color=colour, alpha=0.25)
        axes.hist(counts, bins=bins, histtype="step", color=colour, lw=1.8, label=str(method))
        axes.axvline(float(np.median(counts)), color=colour, ls=":", lw=1.5)
    axes.axvline(EPSILON, color=INK, ls="--", lw=1.4, label="ε of the guarantee")
    axes.set(xlabel="ε of a row (δ = 10⁻⁵); dotted: medians", ylabel="private rows")
    set_title(axes, f"{title_of(str(table['dataset'].iloc[0]))}: what each row lost")
    finish(figure, grid, 1, note=f"{PRIVATE_FACTS}\n{NOTE}")
    return figure


def loss_findings(table: pd.DataFrame) -> list[str]:
    """Medians of the rows' epsilons, and how many lost next to nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dataset": "digits", "method": "AdaMix", "loss": [1.0, 3.0]})
    >>> loss_findings(table)[0]
    'Median epsilon of a row: AdaMix 2.00; the guarantee says 3.'
    """
    medians = table.groupby("method", sort=False)["loss"].median()
    low = table.assign(low=table["loss"] < 1).groupby("method", sort=False)["low"].mean()
    listed = ", ".join(f"{name} {medians[name]:.2f}" for name in medians.index)
    shares = ", ".join(f"{name} {100 * low[name]:.0f}%" for name in low.index)
    return [
        f"Median epsilon of a row: {listed}; the guarantee says {EPSILON:g}.",
        f"Rows below epsilon 1: {shares}.",
        f"{PRIVATE_FACTS} These values are no guarantee either: the path of the weights depends "
        "on the row (erratum to Proposition 14).",
    ]
