"""What the pictures and tables of paper 003 have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.learning.figures import BLUE, INK, ORANGE
from reproduce.style import GREEN, PINK, band

from .methods import AGENTS, CURATOR, FIXED, OPEN, OURS, SCHEDULE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["STYLES", "curve", "shades", "size_axis"]

STYLES: Mapping[str, dict[str, Any]] = {
    OURS: {"color": BLUE, "ls": "-", "marker": "o"},
    SCHEDULE: {"color": ORANGE, "ls": "-", "marker": "s"},
    FIXED: {"color": ORANGE, "ls": ":", "marker": "x"},
    CURATOR: {"color": GREEN, "ls": "-", "marker": "D"},
    AGENTS: {"color": PINK, "ls": "-", "marker": "^"},
    OPEN: {"color": INK, "ls": "--", "marker": "|"},
}


def shades(count: int) -> list[Any]:
    """Colours from pale to dark, for sizes that grow.

    Examples
    --------
    >>> len(shades(3))
    3
    """
    from matplotlib import colormaps

    return [colormaps["cividis_r"](place) for place in np.linspace(0.15, 1.0, count)]


def curve(axes: Axes, lines: pd.DataFrame, by: str, value: str, label: str) -> None:
    """Mean over repeats with a band of one standard deviation.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduce.page import panels
    >>> axes = panels(4, 3, 1, 1)[1].flat[0]
    >>> curve(axes, pd.DataFrame({"n": [1, 2], "error": [0.2, 0.1]}), "n", "error", CURATOR)
    >>> len(axes.lines)
    1
    """
    style = STYLES[label]
    band(axes, lines, by, value, label, style)


def size_axis(axes: Axes, sizes: Sequence[float]) -> None:
    """Logarithmic axis of n with ticks at these sizes.

    Examples
    --------
    >>> from reproduce.page import panels
    >>> axes = panels(4, 3, 1, 1)[1].flat[0]
    >>> size_axis(axes, [5_000, 324_700_000])
    >>> [each.get_text() for each in axes.get_xticklabels()]
    ['5k', '324.7M']
    """
    axes.set(xscale="log", xlabel="n")
    names = [f"{n / 1e6:g}M" if n >= 1e6 else f"{n / 1e3:g}k" for n in sizes]
    axes.set_xticks(list(sizes), names)
    axes.minorticks_off()
