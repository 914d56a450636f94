"""What figures and tables of all papers have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["ALARM", "GREEN", "PINK", "SKY", "YELLOW", "band", "budget_colour", "mean_and_spread"]

GREEN, PINK, SKY = "#009E73", "#CC79A7", "#56B4E9"  # Okabe and Ito's, beside those of reports
YELLOW, ALARM = "#B8860B", "#8a3b00"  # dark enough for thin lines, and for warnings

# up to which epsilon a colour goes: by its value, so that it is the same in every picture
_SHADES = {0.5: "#440154", 1.0: "#31688e", 2.0: "#1f9e89", 5.0: "#6ab82f", math.inf: "#d9a400"}


def budget_colour(epsilon: float) -> str:
    """Colour of a curve, from small epsilon to large; whatever other curves there are.

    Examples
    --------
    >>> budget_colour(1.0), budget_colour(15.0)
    ('#31688e', '#d9a400')
    """
    return next(shade for most, shade in _SHADES.items() if epsilon <= most)


def mean_and_spread(values: Sequence[float], digits: int = 1) -> str:
    """Mean and standard deviation as text.

    Examples
    --------
    >>> mean_and_spread([10.0, 30.0])
    '20.0 ± 14.1'
    """
    given = np.asarray(values, dtype=float)
    mean = f"{given.mean():,.{digits}f}"
    return f"{mean} ± {given.std(ddof=1):,.{digits}f}" if len(given) > 1 else mean


def band(
    axes: Axes,
    lines: pd.DataFrame,
    by: str,
    value: str,
    label: str,
    style: Mapping[str, Any],
    width: float = 1.7,
) -> None:
    """Mean over repeats with a band of one standard deviation.

    Examples
    --------
    >>> import pandas as pd
    >>> from .page import panels
    >>> axes = panels(4, 3, 1, 1)[1].flat[0]
    >>> lines = pd.DataFrame({"n": [1, 2], "error": [0.2, 0.1]})
    >>> band(axes, lines, "n", "error", "dpadapt", {"color": "black"})
    >>> len(axes.lines)
    1
    """
    groups = lines.groupby(by)[value]
    mean, spread = groups.mean(), groups.std().fillna(0)
    places = mean.index.to_numpy(dtype=float)
    axes.plot(places, mean, label=label, ms=4.5, lw=width, **style)
    axes.fill_between(places, mean - spread, mean + spread, color=style["color"], alpha=0.1, lw=0)
