"""Gas with the most private rows: what is left of the error as epsilon grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.learning.figures import BLUE, GREY, INK, ORANGE
from reproduce.page import finish, panels
from reproduce.style import band, mean_and_spread

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["draw_limit", "limit_findings", "summarise_limit"]

_PUBLISHED = (0.03, 0.1)  # the axis of the paper's Figures 1 and 2; it prints no numbers
_BUDGETS = (1.0, 15.0, 1e6)
_CURVES: dict[str, dict[str, Any]] = {
    "PCnvxAdap as printed": {"color": ORANGE, "marker": "o"},
    "dpadapt": {"color": BLUE, "marker": "o"},
}
_LINES: dict[str, dict[str, Any]] = {
    "public only": {"color": GREY, "ls": ":"},
    "CnvxAdap, same steps": {"color": ORANGE, "ls": "--"},
    "CnvxAdap, tuned": {"color": INK, "ls": ":"},
}


def summarise_limit(table: pd.DataFrame) -> pd.DataFrame:
    """Errors at three budgets, and without privacy.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"n": 9, "epsilon": 1.0, "method": "dpadapt", "error": 0.5}
    >>> summarise_limit(pd.DataFrame([line])).iloc[0].tolist()
    ['dpadapt', '0.5000', '', '']
    """
    import pandas as pd

    part, lines = _largest(table), []
    for method in (*_CURVES, *_LINES):
        here = part[part["method"] == method]
        line = {"method": method}
        for epsilon in _BUDGETS:
            values = here[here["epsilon"].isin([epsilon, 0.0, np.inf])]["error"]
            line[f"epsilon {epsilon:,.0f}"] = (
                mean_and_spread(list(values), 4) if len(values) else ""
            )
        if len(here):
            lines.append(line)
    return pd.DataFrame(lines)


def draw_limit(table: pd.DataFrame) -> Figure:
    """Error against epsilon, with the most private rows.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"n": 9, "epsilon": 1.0, "method": "dpadapt", "error": 0.5}
    >>> len(draw_limit(pd.DataFrame([line])).axes)
    1
    """
    part = _largest(table)
    figure, grid = panels(8, 4.6, 1, 1)
    axes = grid.flat[0]
    for method, style in _CURVES.items():
        here = part[part["method"] == method]
        if len(here):
            band(axes, here, "epsilon", "error", method, style)
    for method, style in _LINES.items():
        values = part[part["method"] == method]["error"]
        if len(values):
            axes.axhline(values.mean(), label=method, lw=1.6, **style)
    axes.axhspan(*_PUBLISHED, color=GREY, alpha=0.15, lw=0, label="axis of the paper's figures")
    axes.set(xscale="log", yscale="log", xlabel="ε", ylabel="test error (MSE, labels in [-1, 1])")
    finish(figure, grid, f"Gas, n = {part['n'].iloc[0]:,}, batch 6 instead of 7.", columns=3)
    return figure


def limit_findings(table: pd.DataFrame) -> list[str]:
    """How much of the way to the model without privacy is left at the largest budget.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [("dpadapt", 1e6, 0.2), ("PCnvxAdap as printed", 1e6, 0.3)]
    >>> free = [("CnvxAdap, tuned", float("inf"), 0.1), ("CnvxAdap, same steps", float("inf"), 0.3)]
    >>> table = pd.DataFrame(lines + free, columns=["method", "epsilon", "error"]).assign(n=9)
    >>> limit_findings(table)[0][:78]
    'At epsilon 1,000,000: PCnvxAdap as printed 0.3000, without noise 0.3000; dpada'
    """
    part = _largest(table)
    free = part[np.isinf(part["epsilon"])].groupby("method")["error"].mean()
    most = part[part["epsilon"] == _BUDGETS[-1]].groupby("method")["error"].mean()
    if not len(most):
        return []
    return [
        f"At epsilon {_BUDGETS[-1]:,.0f}: PCnvxAdap as printed {most['PCnvxAdap as printed']:.4f}, "
        f"without noise {free['CnvxAdap, same steps']:.4f}; dpadapt {most['dpadapt']:.4f}, tuned "
        f"without privacy {free['CnvxAdap, tuned']:.4f}."
    ]


def _largest(table: pd.DataFrame) -> pd.DataFrame:
    """Lines with the most people, none of whom is drawn twice."""
    people = table[table["copies"] == 1] if "copies" in table else table
    return people[people["n"] == people["n"].max()]
