"""The figures of reports and of the demo, and the curves and coefficients that they show.

Their colours are those that colour-blind eyes can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpadapt.learning.figures import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    blank,
    literal_text,
    one_line,
    set_title,
)
from dpadapt.privacy.accounting.composition import compose_delta, compose_epsilon
from dpadapt.privacy.accounting.events import Event

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

    across = [literal_text(each) for each in classes]
    upright = sum(map(len, across)) > _MOST_LETTERS
    room = 0.08 * max(map(len, across)) if upright else 0.0
    figure, axes = blank(5.2, max(2.2, 1.5 + 0.26 * len(names)) + room)
    colours = LinearSegmentedColormap.from_list("signed", [ORANGE, "white", BLUE])
    reach = float(np.abs(sizes).max()) or 1.0
    cells = sizes.T
    image = axes.imshow(cells, cmap=colours, vmin=-reach, vmax=reach, aspect="auto")
    axes.set_xticks(range(len(across)), across, rotation=90 if upright else 0)
    axes.set_yticks(range(len(names)), [literal_text(each) for each in names])
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
    axes.set_yticks(places, [literal_text(name) for name in names])
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
        axes.set_yticks(range(len(methods)), [literal_text(each) for each in reversed(methods)])
        axes.grid(axis="y", visible=False)
        axes.set_xlim(0, right)
        axes.set_ylim(-0.7, len(methods) - 0.3)
        set_title(axes, literal_text(name[:1].upper() + name[1:]))
        axes.set_xlabel(
            f"mean squared error; in brackets: above '{literal_text(reference)}',\n"
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


_POINTS, _SLOW_POINTS = 120, 16  # with a closed form, and where each point is a computation
_LARGEST = 50.0  # an epsilon beyond which a test's odds change by e^50: no limit worth drawing


def epsilon_curve(
    events: Sequence[Event], claimed_delta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Epsilon at a range of deltas around the claimed one; any of these points may be stated.

    Returns
    -------
    deltas, epsilons : ndarray

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent
    >>> deltas, epsilons = epsilon_curve([GaussianEvent("mean", 1.0, 4.0)], 1e-6)
    >>> bool(np.all(np.diff(epsilons) <= 0))
    True
    """
    low = min(1e-12, claimed_delta / 100) if claimed_delta > 0 else 1e-12
    deltas = np.geomspace(low, 1e-2, _how_many(events))
    return deltas, np.array([compose_epsilon(events, float(delta)) for delta in deltas])


def detection_limit(events: Sequence[Event], false_alarms: ArrayLike) -> NDArray[np.float64]:
    r"""Largest rate of true detections of any test with the given rates of false alarms.

    The test must tell two neighbouring private samples apart from everything that was released,
    with any knowledge and any amount of computing. For each epsilon with its delta,

    .. math:: t \le \delta + e^\epsilon f, \qquad t \le 1 - e^{-\epsilon} (1 - \delta - f).

    Parameters
    ----------
    events : sequence of Event
    false_alarms : array-like
        Rates f in [0, 1].

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent
    >>> detection_limit([GaussianEvent("mean", 1.0, 4.0)], [0.05]).round(3)
    array([0.082])
    >>> detection_limit([], [0.05])
    array([0.05])
    """
    rates = np.asarray(false_alarms, dtype=np.float64)
    pure = compose_epsilon(events, 0.0)
    largest = min(_LARGEST, pure if np.isfinite(pure) else compose_epsilon(events, 1e-9))
    limit = np.ones_like(rates)
    for epsilon in np.linspace(0.0, largest, _how_many(events)):
        delta = compose_delta(events, float(epsilon))
        limit = np.minimum(limit, delta + np.exp(epsilon) * rates)
        limit = np.minimum(limit, 1 - np.exp(-epsilon) * (1 - delta - rates))
    return np.clip(limit, rates, 1.0)


def _how_many(events: Sequence[Event]) -> int:
    closed_form = all(np.isfinite(event.gaussian_mu) for event in events)
    return _POINTS if closed_form else _SLOW_POINTS


_DRAWN = 20  # bars, or rows and columns of a heat map, at most
_LISTED = 50  # with more, a table has only the largest _DRAWN
_NAMED = 3  # features of a class


@dataclass(frozen=True)
class Shown:
    """A figure and a table.

    Parameters
    ----------
    figure : Figure
    alt, note : str
        Texts for the figure.
    caption : str
    head : tuple of str
    rows : sequence of tuple of str
    words : bool
        Whether the last column is text.

    Examples
    --------
    >>> Shown(None, "a bar chart", "", "One coefficient", ("a", "b"), [("x", "1")]).words
    False
    """

    figure: Figure
    alt: str
    note: str
    caption: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    words: bool = False


def show_coefficients(
    model: Any, *, label: str = "", scale: Sequence[float] = (), features: str = "feature"
) -> Shown | None:
    """Return the coefficients of a fitted model to look at; None if it has none (a network).

    Parameters
    ----------
    model : estimator
        Linear, or an ``AdaptationPipeline`` of one.
    label : str
        Name of what is predicted.
    scale : sequence of float
        Public standard deviations of the features, to compare coefficients by.
    features : str
        What a coefficient is for.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> model = DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> [row[0] for row in show_coefficients(model).rows]
    ['(intercept)', 'feature 1']
    """
    estimator = getattr(model, "estimator_", model)
    if not hasattr(estimator, "coef_"):
        return None
    sizes = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
    names, constants = _names(model, sizes.shape[1]), np.ravel(estimator.intercept_)
    scaled = len(scale) == sizes.shape[1] and features == "feature"
    compared = sizes * np.asarray(scale, dtype=np.float64) if scaled else sizes
    unit = "public standard deviation" if scaled else f"unit of the {features}"
    if len(sizes) == 1:
        what = f"change of {_what(estimator)} per {unit}"
        caption = f" of {label}" if label else ""
        caption += f", per unit of each {features}"
        return _one(names, sizes[0], float(constants[0]), compared[0], what, caption)
    classes = [str(each) for each in estimator.classes_]
    return _several(classes, names, sizes, constants, compared, f"change of score per {unit}")


def _one(
    names: list[str],
    sizes: NDArray[np.float64],
    constant: float,
    compared: NDArray[np.float64],
    what: str,
    caption: str,
) -> Shown:
    """One output: bars of the largest, and a table of all if they are not too many."""
    order = np.argsort(-np.abs(compared), kind="stable")[:_DRAWN]
    all_listed = len(sizes) <= _LISTED
    listed: Any = range(len(sizes)) if all_listed else order
    count = f"All {len(sizes)} coefficients" if all_listed else _largest("coefficients", sizes)
    rows = [("(intercept)", f"{constant:.6g}")]
    drawn = "All coefficients" if len(sizes) <= _DRAWN else _largest("coefficients", sizes)
    return Shown(
        coefficients_figure([names[i] for i in order], compared[order], what),
        f"Bar chart. {drawn} of the model; the table has their numbers.",
        f"{drawn}; the numbers are in the table.",
        count + caption,
        ("feature", "coefficient"),
        rows + [(names[i], f"{sizes[i]:.6g}") for i in listed],
    )


def _several(
    classes: list[str],
    names: list[str],
    sizes: NDArray[np.float64],
    constants: NDArray[np.float64],
    compared: NDArray[np.float64],
    what: str,
) -> Shown:
    """Several classes: a heat map if it is small, else the length of each class's coefficients."""
    norms = np.linalg.norm(compared, axis=1)
    order = np.arange(len(classes))
    some = "All classes"
    if len(classes) > _DRAWN:
        order = np.argsort(-norms, kind="stable")[:_DRAWN]
        some = _largest("classes by the length of their coefficients", classes)
    picked = [classes[i] for i in order]
    small = len(classes) <= _DRAWN and len(names) <= _DRAWN
    if small:
        figure = heat_map_figure(classes, names, compared)
        alt = "Heat map of the coefficients of each class and feature"
    else:
        figure = class_norms_figure(picked, norms[order])
        alt = "Bar chart of the length of the coefficients of each class"
    rows = [
        (classes[i], f"{constants[i]:.6g}", f"{norms[i]:.6g}", _tops(names, compared[i]))
        for i in order
    ]
    return Shown(
        figure,
        f"{alt}. {some}; the table has numbers.",
        f"{some}. A class is predicted where its score is the largest: only differences count.",
        f"{some}, {len(names)} coefficients each: {what}",
        ("class", "intercept", "length", "largest coefficients"),
        rows,
        words=True,
    )


def _tops(names: list[str], sizes: NDArray[np.float64]) -> str:
    order = np.argsort(-np.abs(sizes), kind="stable")[:_NAMED]
    return ", ".join(f"{one_line(names[i])}: {sizes[i]:.3g}" for i in order)


def _largest(what: str, of: Any) -> str:
    return f"The {_DRAWN} largest of {len(of):,} {what}"


def _what(estimator: Any) -> str:
    """What one output is: a prediction, or the score of the second class."""
    if not hasattr(estimator, "classes_"):
        return "prediction"
    return f"score of {one_line(estimator.classes_[-1])!r}".replace("$", r"\$")


def _names(model: Any, count: int) -> list[str]:
    """Names of the features, as far as they are known."""
    try:
        names = model.transformer_.get_feature_names_out()
    except (AttributeError, ValueError):
        names = getattr(model, "feature_names_in_", None)
    if names is None or len(names) != count:
        return [f"feature {i + 1}" for i in range(count)]
    return [_plain(str(name)) for name in names]


def _plain(name: str) -> str:
    """Name of a feature as people would say it.

    Examples
    --------
    >>> _plain("town_infrequent_sklearn"), _plain("town_A")
    ('other levels of town', 'town_A')
    """
    column = name.removesuffix("_infrequent_sklearn")
    return name if column == name else f"other levels of {column}"
