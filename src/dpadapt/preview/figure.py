"""The picture of a preview."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpadapt.learning.figures import BLUE, GREY, ORANGE, blank, set_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def preview_figure(view: Any) -> Figure:
    """Error against epsilon, with the band, public data alone and no privacy.

    Parameters
    ----------
    view : Preview

    Examples
    --------
    >>> from dpadapt.preview import Preview
    >>> from dpadapt.preview.rehearsal import Rehearsal
    >>> found = tuple(Rehearsal("a", 90, e, 0.4 - 0.1 * e, 0.4, 0.2) for e in (0.5, 1.0))
    >>> figure = preview_figure(Preview(1000, 1e-6, "error rate", found, ()))
    >>> len(figure.axes)
    1
    """
    figure, axes = blank(7.2, 4.0)
    lines, epsilons = view.lines, list(view.epsilons)
    axes.fill_between(
        epsilons,
        [line.low for line in lines],
        [line.high for line in lines],
        color=BLUE,
        alpha=0.18,
        lw=0,
        label="eight of ten rehearsals",
    )
    middle = [line.error for line in lines]
    axes.plot(epsilons, middle, "o-", color=BLUE, lw=2, label="dpadapt, mean")
    axes.axhline(view.public_error, color=GREY, ls="--", label="public data alone")
    axes.axhline(view.best_error, color=ORANGE, ls="--", label="no privacy")
    axes.set_xscale("log", base=2)
    axes.set_xticks(epsilons, [f"{each:g}" for each in epsilons])
    axes.minorticks_off()
    set_title(axes, f"Rehearsed on public rows, noise of {view.rows:,} private rows")
    axes.set(xlabel=f"epsilon (at delta {view.delta:g})", ylabel=view.measure)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure
