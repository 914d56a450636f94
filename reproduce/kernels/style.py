"""What the pictures and tables of paper 002 have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpadapt.learning.figures import BLUE, GREY, INK, ORANGE
from reproduce.style import GREEN, PINK, SKY, YELLOW, band, mean_and_spread

from .methods import (
    LINEAR,
    MAJORITY,
    NO_PRIVACY,
    OURS,
    PAPER_SVM,
    PRINTED_PINP,
    PRINTED_SVM,
    PRINTED_TDDL,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["STYLES", "bars", "budget_axis", "curve", "pivot"]

# colour tells the algorithm, a dashed line the printed constants
STYLES: Mapping[str, dict[str, Any]] = {
    OURS: {"color": BLUE, "ls": "-", "marker": "o"},
    "dpadapt, asked one by one": {"color": SKY, "ls": "-", "marker": "o"},
    PRINTED_SVM: {"color": ORANGE, "ls": ":", "marker": "x"},
    PRINTED_TDDL: {"color": ORANGE, "ls": "--", "marker": "v"},
    "TDDL, Laplace": {"color": ORANGE, "ls": "-.", "marker": "^"},
    "TDDL, Gaussian": {"color": ORANGE, "ls": "-", "marker": "s"},
    "TDIL, repaired": {"color": GREEN, "ls": "-", "marker": "D"},
    PRINTED_PINP: {"color": PINK, "ls": "--", "marker": "v"},
    "PINP, least noise": {"color": PINK, "ls": "-", "marker": "s"},
    "sparse vector": {"color": PINK, "ls": ":", "marker": "P"},
    LINEAR: {"color": YELLOW, "ls": "-", "marker": "*"},
    "objective perturbation, 500 columns": {"color": YELLOW, "ls": "-", "marker": "*"},
    MAJORITY: {"color": GREY, "ls": ":"},
    "always 0": {"color": GREY, "ls": ":"},
    NO_PRIVACY: {"color": INK, "ls": "--"},
    PAPER_SVM: {"color": INK, "ls": ":"},
}


def pivot(
    table: pd.DataFrame, keys: Sequence[str], value: str, caveat: str, digits: int = 1
) -> pd.DataFrame:
    """A line for each key, a column for each epsilon; without epsilon the same in each.

    Parameters
    ----------
    table : DataFrame
        With a column epsilon, which is NaN for what has none.
    keys : sequence of str
    value : str
        What is averaged.
    caveat : str
        Column of what is not the paper's, the last one; or that text itself.
    digits : int, default=1

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"method": ["a", "b"], "epsilon": [1.0, None], "error": [2.0, 3.0]})
    >>> pivot(table, ["method"], "error", "not the paper's data").to_numpy().tolist()
    [['a', '2.0', "not the paper's data"], ['b', '3.0', "not the paper's data"]]
    """
    import pandas as pd

    budgets = sorted(table["epsilon"].dropna().unique())
    lines = []
    for found, part in table.groupby(list(keys), sort=False):
        line: dict[str, Any] = dict(zip(keys, found, strict=True))
        for epsilon in budgets:
            cell = part[(part["epsilon"] == epsilon) | part["epsilon"].isna()]
            line[f"ε {epsilon:g}"] = mean_and_spread(list(cell[value]), digits) if len(cell) else ""
        line["not the paper's"] = part[caveat].iloc[0] if caveat in part else caveat
        lines.append(line)
    return pd.DataFrame(lines)


def curve(axes: Axes, lines: pd.DataFrame, by: str, value: str, label: str) -> None:
    """Mean over repeats with a band of one standard deviation; level where there is no epsilon.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduce.page import panels
    >>> axes = panels(4, 3, 1, 1)[1].flat[0]
    >>> lines = pd.DataFrame({"epsilon": [0.1, 1.0], "accuracy": [50.0, 60.0]})
    >>> curve(axes, lines, "epsilon", "accuracy", "dpadapt")
    >>> len(axes.lines)
    1
    """
    if not len(lines):
        return
    style = STYLES[label]
    if lines[by].isna().all():
        axes.axhline(lines[value].mean(), label=label, lw=1.4, zorder=1, **style)
        return
    band(axes, lines, by, value, label, style)


def bars(axes: Axes, lines: pd.DataFrame, label: str, apart: float = 1.0) -> None:
    """Accuracy against epsilon with bars of one standard deviation; a level without epsilon.

    Parameters
    ----------
    axes : Axes
    lines : DataFrame
    label : str
        The method, which has a style.
    apart : float, default=1.0
        Factor on epsilon, so that bars of several methods do not lie on each other.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduce.page import panels
    >>> axes = panels(4, 3, 1, 1)[1].flat[0]
    >>> bars(axes, pd.DataFrame({"epsilon": [0.1], "accuracy": [50.0]}), "dpadapt")
    >>> len(axes.containers)
    1
    """
    if lines["epsilon"].isna().all():
        curve(axes, lines, "epsilon", "accuracy", label)
        return
    found = lines.groupby("epsilon")["accuracy"].agg(["mean", "std"]).fillna(0.0)
    facts = {"lw": 1.4, "capsize": 2, "ms": 5, "label": label, **STYLES[label]}
    axes.errorbar(found.index * apart, found["mean"], yerr=found["std"], **facts)


def budget_axis(axes: Axes, budgets: Sequence[float], name: str) -> None:
    """Logarithmic axis of epsilon with ticks where it was run.

    Examples
    --------
    >>> from reproduce.page import panels
    >>> axes = panels(4, 3, 1, 1)[1].flat[0]
    >>> budget_axis(axes, [0.1, 1.0], "accuracy (%)")
    >>> axes.get_xscale()
    'log'
    """
    axes.set(xscale="log", xlabel="ε", ylabel=name)
    axes.set_xticks(list(budgets), [f"{each:g}" for each in budgets])
    axes.minorticks_off()
