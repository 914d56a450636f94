"""Table 3 of paper 001: regression on twelve pairs of kinds of reviews."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from dpadapt.learning.figures import BLUE, GREY, INK, ORANGE, set_title
from reproduce.page import panels
from reproduce.runs import Options
from reproduce.style import GREEN

from . import methods_without_privacy as methods
from . import private_methods as private
from .published import REVIEW_ERRORS
from .splits import AMAZON
from .tables import ADAPTED, LIMIT, PRINTED, Method, beside_published, run_table, true_epsilons

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["TABLE_3", "draw_reviews", "review_findings", "run_table_3", "summarise_reviews"]

TABLE_3: Mapping[str, Method] = {
    "target only": methods.target_only,
    "source only": methods.source_only,
    "DM": methods.discrepancy_minimisation,
    "CnvxAdap": methods.adaptation,
    LIMIT: private.own_limit,
    **{
        PRINTED.format("PCnvxAdap", epsilon): partial(private.printed, epsilon=epsilon)
        for epsilon in (4.0, 10.0)
    },
    **{
        ADAPTED.format(epsilon): partial(private.known_noise, epsilon=epsilon)
        for epsilon in (1.0, 4.0, 10.0)
    },
}

_STYLES: dict[str, dict[str, Any]] = {
    "source only": {"color": GREY, "marker": "|", "ms": 11, "mew": 2},
    "target only": {"color": INK, "marker": "|", "ms": 11, "mew": 2},
    "DM": {"color": GREY, "marker": "s"},
    "CnvxAdap": {"color": GREEN, "marker": "s"},
    LIMIT: {"color": ORANGE, "marker": "|", "ms": 11, "mew": 2},
    "PCnvxAdap as printed, epsilon 4": {"color": ORANGE, "marker": "o", "mfc": "white"},
    "PCnvxAdap as printed, epsilon 10": {"color": ORANGE, "marker": "o"},
    "dpadapt, epsilon 1": {"color": BLUE, "marker": "o", "mfc": "white"},
    "dpadapt, epsilon 4": {"color": BLUE, "marker": "o", "mfc": "#7fb8d8"},
    "dpadapt, epsilon 10": {"color": BLUE, "marker": "o"},
}


def run_table_3(options: Options) -> pd.DataFrame:
    """Regression on twelve pairs of kinds of reviews."""
    return run_table(TABLE_3, AMAZON, options, "table 3")


def summarise_reviews(table: pd.DataFrame) -> pd.DataFrame:
    """Table 3, ours beside the published numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> line = ("books → dvd", 9, 0, "DM", 1.0, math.inf)
    >>> columns = ["dataset", "n", "repeat", "method", "error", "true_epsilon"]
    >>> summarise_reviews(pd.DataFrame([line], columns=columns))["DM, published"].tolist()
    ['0.761 ± 0.562']
    """
    return beside_published(table.assign(value=table["error"]), REVIEW_ERRORS, 3)


def draw_reviews(table: pd.DataFrame) -> Figure:
    """Table 3 as a picture: ours on the left, published numbers on the right.

    Examples
    --------
    >>> import pandas as pd
    >>> line = ("books → dvd", 9, 0, "DM", 1.0)
    >>> columns = ["dataset", "n", "repeat", "method", "error"]
    >>> len(draw_reviews(pd.DataFrame([line], columns=columns)).axes)
    2
    """
    import pandas as pd

    found = table.assign(value=table["error"])
    pairs = list(dict.fromkeys(found["dataset"]))
    figure, grid = panels(11.5, 2.4 + 0.42 * len(pairs), 1, 2)
    ours, theirs = grid.flat
    methods = [each for each in dict.fromkeys(found["method"]) if each in _STYLES]
    _review_panel(ours, found.groupby(["dataset", "method"])["value"], pairs, methods)
    set_title(ours, "Here: labels -1 and +1")
    lines = [
        {"dataset": pair, "method": method, "value": value}
        for pair in pairs
        for method, (mean, spread) in REVIEW_ERRORS[pair].items()
        for value in (mean - spread / math.sqrt(2), mean + spread / math.sqrt(2))
    ]
    published = pd.DataFrame(lines).groupby(["dataset", "method"])["value"]
    _review_panel(theirs, published, pairs, [m for m in _STYLES if m in REVIEW_ERRORS[pairs[0]]])
    set_title(theirs, "Published: labels are stars, their unit is not stated")
    theirs.set_yticklabels([])
    handles, labels = ours.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _review_panel(axes: Axes, groups: Any, pairs: list[str], methods: list[str]) -> None:
    """Dots with bars of one standard deviation, a line for each pair."""
    mean, spread = groups.mean(), groups.std().fillna(0)
    for place, method in enumerate(methods):
        keys = [(pair, method) for pair in pairs if (pair, method) in mean.index]
        rows = [
            pairs.index(pair) + 0.6 * (place - (len(methods) - 1) / 2) / len(methods)
            for pair, _ in keys
        ]
        axes.errorbar(
            mean.loc[keys], rows, xerr=spread.loc[keys], ls="", lw=1, label=method,
            elinewidth=0.9, **({"ms": 5} | _STYLES[method]),
        )  # fmt: skip
    axes.set_yticks(range(len(pairs)), pairs)
    axes.set_ylim(len(pairs) - 0.4, -0.6)
    axes.set(xlabel="mean squared error on 1,000 target reviews", xscale="log")
    axes.set_xticks([0.3, 0.5, 0.7, 1, 1.5, 2, 3], ["0.3", "0.5", "0.7", "1", "1.5", "2", "3"])
    axes.minorticks_off()


def review_findings(table: pd.DataFrame) -> list[str]:
    """What Table 3 shows: means over the pairs, and what printed constants truly give."""
    mean = table.groupby(["dataset", "method"], sort=False)["error"].mean().unstack()
    named = ", ".join(f"{name} {mean[name].mean():.3f}" for name in dict.fromkeys(table.method))
    return [f"Mean over {len(mean)} pairs: {named}.", *true_epsilons(table)]
