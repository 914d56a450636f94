"""What the pictures and tables of paper 004 have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpadapt.learning.figures import BLUE, GREY, INK, ORANGE
from reproduce import page
from reproduce.style import ALARM, GREEN, PINK, band
from reproduce.style import mean_and_spread as of_numbers

from .methods import FEW_SHOT, NO_PRIVACY, OURS, WEAK
from .tasks import TASKS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["STYLES", "caveat", "finish", "mean_and_spread", "percent_axis", "title_of"]

YELLOW = "#E69F00"
PRIVATE_FACTS = "PRIVATE FACTS, no release: for private data do not publish such a figure."
NOTE = (
    "Not the paper's data sets (photographs, ResNet-50 and CLIP features), which are not at hand."
)
STYLES: Mapping[str, dict[str, Any]] = {
    FEW_SHOT: {"color": GREY, "ls": ":"},
    "NoisyGD": {"color": ORANGE, "ls": "-", "marker": "^"},
    "AdaMix": {"color": GREEN, "ls": "-", "marker": "s"},
    WEAK: {"color": PINK, "ls": "-", "marker": "D"},
    OURS: {"color": BLUE, "ls": "-", "marker": "o"},
    NO_PRIVACY: {"color": INK, "ls": "--"},
}


def title_of(task: str) -> str:
    """What a data set is called in pictures and tables.

    Examples
    --------
    >>> title_of("office")
    'Office amazon, GoogLeNet'
    """
    return TASKS[task].title if task in TASKS else task


def caveat(task: str) -> str:
    """Why numbers on a data set are not the paper's own; stands beside them.

    Examples
    --------
    >>> caveat("digits")
    "not the paper's data: digits of scikit-learn, 5 public of a class"
    >>> caveat("web2ama")
    "not the paper's data: webcam (public) to amazon"
    """
    count = TASKS[task].per_class if task in TASKS else None
    title = title_of(task)
    few = f", {count} public of a class" if count is not None and "public" not in title else ""
    return f"not the paper's data: {title}{few}"


def mean_and_spread(values: Sequence[float], digits: int = 1) -> str:
    """Mean and standard deviation as text, in percent.

    Examples
    --------
    >>> mean_and_spread([0.1, 0.3])
    '20.0 ± 14.1'
    """
    return of_numbers([100 * each for each in values], digits)


def curve(axes: Axes, lines: pd.DataFrame, by: str, value: str, label: str, style: Any) -> None:
    """Mean over repeats with a band of one standard deviation."""
    if not len(lines):
        return
    band(axes, lines, by, value, label, style, width=1.8)


def percent_axis(axes: Axes, values: Sequence[float], name: str = "test error (%)") -> None:
    """Ticks of a logarithmic axis of what is used, not of every power.

    Parameters
    ----------
    axes : Axes
    values : sequence of float
        Where ticks are, on the horizontal axis.
    name : str
        Of the vertical axis.

    Examples
    --------
    >>> from reproduce.page import panels
    >>> axes = panels(4, 3, 1, 1)[1].flat[0]
    >>> percent_axis(axes, [1, 10])
    >>> axes.get_xscale()
    'log'
    """
    axes.set(xscale="log", ylabel=name)
    axes.set_xticks(list(values), [f"{each:g}" for each in values])
    axes.minorticks_off()


def finish(figure: Figure, grid: Any, used: int, columns: int = 5, note: str = NOTE) -> None:
    """Hide unused panels, add one legend and the note that the data are not the paper's.

    Examples
    --------
    >>> from reproduce.page import panels
    >>> figure, grid = panels(8, 3, 1, 2)
    >>> finish(figure, grid, used=1)
    >>> grid[0, 1].get_visible()
    False
    """
    for axes in list(grid.flat)[used:]:
        axes.set_visible(False)
    colour = ALARM if PRIVATE_FACTS in note else GREY
    page.finish(figure, grid, note, columns, colour)
