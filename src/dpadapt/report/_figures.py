"""The figures of reports and of the demo, in colours that colour-blind eyes can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpadapt.learning.figures import BLUE, GREY, INK, ORANGE, blank, plain, set_title

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_MOST_NUMBERS = 80  # cells of a heat map that are written out
_MOST_LETTERS = 40  # of names side by side
_LINE = 56  # letters below a figure


def epsilon_figure(
    deltas: NDArray[np.float64], epsilons: NDArray[np.float64], claimed: tuple[float, float]
) -> Figure:
    """Epsilon against delta, with the claimed point (delta, epsilon) marked."""
    figure, axes = blank(5.2, 3.4)
    axes.plot(deltas, epsilons, color=BLUE, lw=2)
    axes.plot(*claimed, "o", color=ORANGE, ms=9, zorder=3)
    axes.annotate(
        f"claimed: epsilon {claimed[1]:.3g}\nat delta {claimed[0]:.1g}",
        claimed,
        xytext=(12, 12),
        textcoords="offset points",
        color=ORANGE,
        weight="bold",
    )
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    set_title(axes, "The same release, read at any delta")
    axes.set(
        xlabel="delta (probability that epsilon fails)",
        ylabel="epsilon",
    )
    return figure


def detection_figure(false_alarms: NDArray[np.float64], limit: NDArray[np.float64]) -> Figure:
    """Most that any test can detect, against its rate of false alarms."""
    figure, axes = blank(5.2, 3.4)
    axes.fill_between(false_alarms, false_alarms, limit, color=BLUE, alpha=0.18, lw=0)
    axes.plot(false_alarms, limit, color=BLUE, lw=2, label="limit for any test")
    axes.plot([0, 1], [0, 1], "--", color=GREY, label="guessing")
    set_title(axes, "What an adversary can learn, at most")
    axes.set(
        xlabel="false alarms (rate)",
        ylabel="true detections (rate)",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    axes.legend(frameon=False, loc="lower right")
    return figure


def weights_figure(weights: NDArray[np.float64]) -> Figure:
    """Weights of the public rows, in multiples of a uniform weight."""
    figure, axes = blank(5.2, 3.4)
    relative = weights * len(weights)
    counts, *_ = axes.hist(
        relative, bins=_weight_bins(relative), color=BLUE, edgecolor="white", lw=0.3
    )
    axes.axvline(1.0, color=ORANGE, ls="--", label="uniform")
    axes.set_yscale("log")
    axes.set_ylim(0.7, 8 * float(np.max(counts)))  # room above the bars for the legend
    axes.legend(frameon=False, loc="upper right", labelcolor=ORANGE)
    set_title(axes, "Weights of the public rows")
    axes.set(
        xlabel="weight (1 = every row counts the same)",
        ylabel="public rows (log scale)",
    )
    return figure


def coefficients_figure(names: Sequence[str], sizes: NDArray[np.float64], what: str) -> Figure:
    """Bars of coefficients, from the top down; ``what`` they are is written below."""
    return _bars(names, sizes, "Coefficients of the model", what)


def class_norms_figure(names: Sequence[str], norms: NDArray[np.float64]) -> Figure:
    """Bars of the lengths of the coefficients of classes."""
    return _bars(names, norms, "Coefficients of each class", "length of the class's coefficients")


def heat_map_figure(
    classes: Sequence[str], names: Sequence[str], sizes: NDArray[np.float64]
) -> Figure:
    """Coefficients of each class (across) and feature (down), blue above zero, orange below."""
    from matplotlib.colors import LinearSegmentedColormap

    across = [plain(each) for each in classes]
    upright = sum(map(len, across)) > _MOST_LETTERS
    room = 0.08 * max(map(len, across)) if upright else 0.0
    figure, axes = blank(5.2, max(2.2, 1.5 + 0.26 * len(names)) + room)
    colours = LinearSegmentedColormap.from_list("signed", [ORANGE, "white", BLUE])
    reach = float(np.abs(sizes).max()) or 1.0
    cells = sizes.T
    image = axes.imshow(cells, cmap=colours, vmin=-reach, vmax=reach, aspect="auto")
    axes.set_xticks(range(len(across)), across, rotation=90 if upright else 0)
    axes.set_yticks(range(len(names)), [plain(each) for each in names])
    axes.grid(visible=False)
    if cells.size <= _MOST_NUMBERS:
        for (down, right), value in np.ndenumerate(cells):
            ink = "white" if abs(value) > 0.6 * reach else INK
            axes.text(right, down, f"{value:.2g}", ha="center", va="center", color=ink, size=8)
    bar = figure.colorbar(image, ax=axes, label="coefficient")
    bar.outline.set_visible(False)
    set_title(axes, "Coefficients of each class")
    return figure


def _bars(names: Sequence[str], sizes: NDArray[np.float64], title: str, what: str) -> Figure:
    figure, axes = blank(5.2, max(1.8, 0.9 + 0.26 * len(sizes)))
    places = range(len(sizes))[::-1]  # the first on top
    colours = [BLUE if size >= 0 else ORANGE for size in sizes]
    axes.barh(places, sizes, color=colours, height=0.7)
    axes.set_yticks(places, [plain(name) for name in names])
    axes.axvline(0, color=INK, lw=0.8)
    axes.grid(axis="y", visible=False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, weight="bold")
    figure.supxlabel(fill(what, _LINE), fontsize=10)
    return figure


def errors_figure(results: pd.DataFrame, reference: str) -> Figure:
    """Error of each method beside that of ``reference``, one panel a setting, on one scale.

    Parameters
    ----------
    results : DataFrame
        Columns ``setting``, ``method``, ``run``, ``mse``; where there is also a column
        ``adapted``, methods that did not adapt are marked.
    reference : str
        The method that errors are compared with.
    """
    names = list(dict.fromkeys(results["setting"]))
    methods = [each for each in dict.fromkeys(results["method"]) if each != reference]
    figure, panels = blank(5.4 * len(names) + 1.6, 1.5 + 0.42 * len(methods), columns=len(names))
    panels = np.atleast_1d(panels)
    right = 1.6 * float(results["mse"].max())
    for axes, name in zip(panels, names, strict=True):
        part = results[results["setting"] == name]
        table = part.pivot(index="run", columns="method", values="mse")
        best = float(table[reference].mean())
        for place, method in enumerate(reversed(methods)):
            values, colour = table[method].to_numpy(), _colour(method)
            axes.barh(place, values.mean(), color=colour, alpha=0.4, height=0.66)
            axes.plot(values, np.full(len(values), place), "o", color=colour, ms=4, alpha=0.9)
            remark = _remark(part, method) or f"{100 * (values.mean() / best - 1):+.0f} %"
            axes.annotate(
                f"{values.mean():.3f}  ({remark})",
                (max(values.max(), values.mean()), place),
                xytext=(7, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                weight="bold" if colour == BLUE else "normal",
            )
        axes.axvline(best, color=ORANGE, ls="--", lw=1.4)
        axes.set_yticks(range(len(methods)), [plain(each) for each in reversed(methods)])
        axes.grid(axis="y", visible=False)
        axes.set_xlim(0, right)
        axes.set_ylim(-0.7, len(methods) - 0.3)
        set_title(axes, plain(name[:1].upper() + name[1:]))
        axes.set_xlabel(
            f"mean squared error; in brackets: above '{plain(reference)}',\n"
            f"the dashed line at {best:.3f}; dots are single runs"
        )
        if axes is not panels[0]:
            axes.tick_params(labelleft=False)
    return figure


def _colour(method: str) -> str:
    if method.startswith("dpadapt"):
        return BLUE
    return GREY if "public" in method else ORANGE


def _remark(part: pd.DataFrame, method: str) -> str:
    """Say that a private method noticed that it cannot adapt."""
    if not method.startswith("dpadapt") or "adapted" not in part:
        return ""
    adapted = part.loc[part["method"] == method, "adapted"].mean()
    return "declined to adapt" if adapted < 0.5 else ""


def _weight_bins(relative: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bins for weights that may all be equal."""
    low, high = float(relative.min()), float(relative.max())
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, 41)
