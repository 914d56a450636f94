"""What private adaptation gains on paper 001's data: part of the gap that it closes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from dpadapt.learning.figures import BLUE, GREY, INK, ORANGE, set_title
from reproduce.page import panels
from reproduce.runs import Options, run_cells

from . import private_methods as private
from .splits import AMAZON, CLASSES, HALF_YEARS
from .tables import ADAPTED, DATASETS, STAR, Cell, Method, caveat, chosen, mark, run_cell

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_gains", "gain_findings", "gaps", "run_gains", "summarise_gains"]

BUDGETS = (0.25, 0.5, 1.0, 4.0)
GAINS: Mapping[str, Method] = {
    "public only": private.public_only,
    "public only, standardised": private.plain_public,
    "private rows, no privacy": private.oracle_private,
    "both, no privacy": private.oracle_pooled,
    **{
        f"private only, epsilon {epsilon:g}": partial(private.noisy_gradient, epsilon=epsilon)
        for epsilon in BUDGETS
    },
    **{
        ADAPTED.format(epsilon): partial(private.known_noise, epsilon=epsilon)
        for epsilon in BUDGETS
    },
}
GAIN_SPLITS = 5
# no size of the paper's, or nearly all rows in it
_ONE_SIZE: Mapping[str, tuple[int | None, ...]] = {HALF_YEARS.name: (0,), "Adult": (None,)}

_ORACLES = ("private rows, no privacy", "both, no privacy")
_NO_GAP = 0.01  # of the public-only error: below, nothing is there to be gained
_CONFIDENCE = 0.975  # of a paired difference, one side


def run_gains(options: Options) -> pd.DataFrame:
    """Ours at four epsilons on all data sets, with the paper's number of private rows and all."""
    cells = [
        Cell(GAINS, name, seed, n)
        for name in chosen(DATASETS, options)
        for n in _ONE_SIZE.get(name, (None, 0))
        for seed in range(min(GAIN_SPLITS, options.repeats))
    ]
    return run_cells(run_cell, cells, options, "gains")


def gaps(table: pd.DataFrame) -> pd.DataFrame:
    """Errors and gap closed for each data set, n and epsilon.

    gap closed = (public only - ours) / (public only - oracle), of mean errors; the oracle is the
    better one of private rows and both samples without privacy. There is no gap where it is within
    1% of public only. ``worse`` tells whether ours is worse than public only by a paired t test
    over the splits at 95%.

    Examples
    --------
    >>> import pandas as pd
    >>> errors = {"public only": 1.0, "both, no privacy": 0.5, "dpadapt, epsilon 1": 0.75}
    >>> lines = [{"dataset": "Wind", "n": 9, "repeat": r, "method": m, "error": e}
    ...          for m, e in errors.items() for r in (0, 1)]
    >>> gaps(pd.DataFrame(lines))[["epsilon", "gap", "worse"]].values.tolist()
    [[1.0, 0.5, False]]
    """
    import pandas as pd

    lines = []
    for (dataset, n), part in table.groupby(["dataset", "n"], sort=False):
        runs = part.pivot(index="repeat", columns="method", values="error")
        mean = runs.mean()
        public = mean["public only"]
        oracle = min(mean[name] for name in _ORACLES if name in mean)
        gap = public - oracle
        for epsilon in BUDGETS:
            ours, alone = f"dpadapt, epsilon {epsilon:g}", f"private only, epsilon {epsilon:g}"
            if ours not in mean:
                continue
            lines.append(
                {
                    "dataset": dataset,
                    "n": n,
                    "epsilon": epsilon,
                    "public": public,
                    "plain": mean.get("public only, standardised", math.nan),
                    "alone": mean.get(alone, math.nan),
                    "ours": mean[ours],
                    "oracle": oracle,
                    "gap": (public - mean[ours]) / gap if gap > _NO_GAP * public else math.nan,
                    "worse": _worse(runs[ours] - runs["public only"]),
                    "repeats": len(runs),
                }
            )
    return pd.DataFrame(lines)


def summarise_gains(table: pd.DataFrame) -> pd.DataFrame:
    """One line for each data set and n, gap closed at every epsilon.

    Examples
    --------
    >>> import pandas as pd
    >>> errors = {"public only": 1.0, "both, no privacy": 0.5, "dpadapt, epsilon 1": 0.75}
    >>> lines = [{"dataset": "Wind", "n": 9, "repeat": 0, "method": m, "error": e}
    ...          for m, e in errors.items()]
    >>> summarise_gains(pd.DataFrame(lines))["gap closed at 1"].tolist()
    ['50%']
    """
    import pandas as pd

    found, lines = gaps(table), []
    for (dataset, n), part in found.groupby(["dataset", "n"], sort=False):
        first = part.iloc[0]
        line: dict[str, Any] = {
            "data": dataset,
            "n": n,
            "public only": f"{first['public']:.4f}",
            "public only, standardised": f"{first['plain']:.4f}",
            "no privacy": f"{first['oracle']:.4f}",
        }
        by_epsilon = part.set_index("epsilon")
        for epsilon in by_epsilon.index:
            line[f"private only at {epsilon:g}"] = f"{by_epsilon['alone'][epsilon]:.4f}"
        for epsilon in by_epsilon.index:
            mark = " (worse!)" if by_epsilon["worse"][epsilon] else ""
            line[f"ours at {epsilon:g}"] = f"{by_epsilon['ours'][epsilon]:.4f}{mark}"
        for epsilon in by_epsilon.index:
            line[f"gap closed at {epsilon:g}"] = _percent(by_epsilon["gap"][epsilon])
        lines.append(line | {"not the paper's": caveat(str(dataset))})
    return pd.DataFrame(lines)


def draw_gains(table: pd.DataFrame) -> Figure:
    """Error against epsilon, a panel a data set; the twelve pairs of reviews as their mean.

    Examples
    --------
    >>> import pandas as pd
    >>> errors = {"public only": 1.0, "both, no privacy": 0.5, "dpadapt, epsilon 1": 0.75}
    >>> lines = [{"dataset": "Wind", "n": 9, "repeat": 0, "method": m, "error": e}
    ...          for m, e in errors.items()]
    >>> len(draw_gains(pd.DataFrame(lines)).axes)
    1
    """
    from matplotlib.lines import Line2D

    found = gaps(table)
    found["panel"] = found["dataset"].where(~found["dataset"].isin(AMAZON), "Amazon")
    # within a data set the smaller n is the paper's; pairs differ in their larger one
    order = found.groupby("dataset")["n"].rank(method="dense").astype(int)
    found["size"] = order
    names = list(dict.fromkeys(zip(found["panel"], found["size"], strict=True)))
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure, grid = panels(1 + 3.2 * columns, 1.0 + 2.5 * rows, rows, columns)
    for axes, (name, size) in zip(grid.flat, names, strict=False):
        part = found[(found["panel"] == name) & (found["size"] == size)]
        mean = part.groupby("epsilon")[["public", "alone", "ours", "oracle"]].mean()
        _gain_panel(axes, mean)
        axes.set_ylabel("share of wrong classes" if name in CLASSES else "MSE", fontsize=8)
        low, high = part["n"].min(), part["n"].max()
        sizes = f"{low:,}" if low == high else f"{low:,} - {high:,}"
        set_title(axes, f"{name}{mark(part['dataset'].iloc[0])}, n = {sizes}")
    for axes in list(grid.flat)[len(names) :]:
        axes.set_visible(False)
    for axes in grid[-1, :]:
        axes.set_xlabel("ε (δ = 10⁻⁶)")
    handles, labels = grid.flat[0].get_legend_handles_labels()
    if any(map(mark, found["dataset"])):
        handles.append(Line2D([], [], ls=""))
        labels.append(STAR)
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    return figure


def gain_findings(table: pd.DataFrame) -> list[str]:
    """How much of the gap is closed, and where ours is worse than public only.

    Examples
    --------
    >>> import pandas as pd
    >>> errors = {"public only": 1.0, "both, no privacy": 0.5, "dpadapt, epsilon 1": 0.75}
    >>> lines = [{"dataset": "Wind", "n": 9, "repeat": 0, "method": m, "error": e}
    ...          for m, e in errors.items()]
    >>> gain_findings(pd.DataFrame(lines))[0][-29:]
    ' 1: 50% and 50% at epsilon 1.'
    """
    found = _as_printed(gaps(table))
    largest = found["n"] == found.groupby("dataset")["n"].transform("max")
    sentences = []
    for name, group in (("the largest n", found[largest]), ("the paper's n", found[~largest])):
        closed = group.dropna(subset="closed").groupby("epsilon")["closed"]
        parts = [
            f"{values.median():.0f}% and {values.mean():.0f}% at epsilon {epsilon:g}"
            for epsilon, values in closed
        ]
        if parts:
            sentences.append(
                f"Gap closed with {name} of each data set, median and mean of "
                f"{int(closed.size().max())}: {', '.join(parts)}."
            )
    above = found[found["ours"] > found["public"]]
    worse = found[found["worse"]]
    named = "; ".join(
        f"{row.dataset}, n = {row.n}, epsilon {row.epsilon:g}: {row.ours:.4f} against "
        f"{row.public:.4f}"
        for row in worse.itertuples()
    )
    sentences.append(
        f"Ours has the larger mean error than public only in {len(above)} of {len(found)} "
        f"settings (largest ratio {(found['ours'] / found['public']).max():.3f}), by a paired t "
        f"test at 95% in {len(worse)}{': ' + named if named else ''}."
    )
    plain = found[found["plain"] < found["ours"]]
    sentences.append(
        "A plain public model, of standardised columns, has the smaller mean error than ours in "
        f"{len(plain)} of {len(found)} settings."
    )
    behind = found[found["alone"] < found["ours"]]
    sentences.append(
        f"Private rows alone (noisy gradient descent from zero) are better than ours in "
        f"{len(behind)} of {len(found)} settings."
    )
    return sentences


def _gain_panel(axes: Axes, mean: pd.DataFrame) -> None:
    places = np.arange(len(mean))
    axes.axhline(mean["public"].iloc[0], color=GREY, ls=":", lw=1.8, label="public only")
    axes.axhline(mean["oracle"].iloc[0], color=INK, ls="--", lw=1.4, label="no privacy (oracle)")
    axes.plot(places, mean["alone"], "^-", color=ORANGE, lw=1.5, label="private only, noisy GD")
    axes.plot(places, mean["ours"], "o-", color=BLUE, lw=2.2, label="dpadapt")
    axes.set_xticks(places, [f"{epsilon:g}" for epsilon in mean.index])
    low = min(mean["oracle"].min(), mean["ours"].min())
    high = max(mean["public"].max(), mean["ours"].max())
    room = 0.35 * max(high - low, 0.02 * high)
    axes.set_ylim(max(0.0, low - room), high + 2 * room)
    if mean["alone"].min() > high + 2 * room:
        axes.text(
            0.97, 0.95,
            f"private only: {mean['alone'].iloc[0]:.3g} to {mean['alone'].iloc[-1]:.3g}",
            transform=axes.transAxes, ha="right", va="top", fontsize=8, color=ORANGE,
        )  # fmt: skip


def _worse(difference: pd.Series[float]) -> bool:
    """Whether a paired difference is above zero by a t test."""
    values = difference.to_numpy()
    if len(values) < 2 or np.ptp(values) == 0:
        return False
    error = values.std(ddof=1) / math.sqrt(len(values))
    return bool(values.mean() > stats.t.ppf(_CONFIDENCE, len(values) - 1) * error)


def _as_printed(found: pd.DataFrame) -> pd.DataFrame:
    """Rounded as on the page, so that what is counted here is what its reader and rules count."""
    found = found.copy()
    for name in ("public", "plain", "alone", "ours"):
        found[name] = [float(f"{value:.4f}") for value in found[name]]
    found["closed"] = [float(f"{100 * value:.0f}") for value in found["gap"]]
    return found


def _percent(share: float) -> str:
    return "no gap" if math.isnan(share) else f"{100 * share:.0f}%"
