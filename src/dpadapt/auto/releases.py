"""What a private step found and released, for people too: names, shares, findings, a picture."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDE, _LINE = 58, 120  # letters of a line beside a bar, and above all
_BESIDE, _RIGHT = 1.35, 4.0  # where texts begin, and where the axes end
_BLUE, _ORANGE, _GREEN = "#4c78a8", "#f58518", "#2e7d32"


@dataclass(frozen=True)
class Release:
    """One release of the private step: its share of the budget, and how many noisy values it is.

    Examples
    --------
    >>> Release("level", 0.1, "94% of it is kept").sentence()
    "Release 'level' took 10% of the budget: 94% of it is kept."
    """

    name: str
    share: float
    said: str
    times: int = 1

    def sentence(self, places: int = 0) -> str:
        """The release in a sentence, its share with as many decimals."""
        return f"Release {self.name!r} took {self.share:.{places}%} of the budget: {self.said}."


@dataclass(frozen=True, eq=False)
class Step:
    """What the private step found.

    Attributes
    ----------
    adapted : Correction, Scores, DirectionScores or None
        What stands beside, or in place of, the public model; None without private rows.
    releases : tuple of Release
        What each cost, and what it said.
    no_harm : NoHarm, ClassNoHarm or None
        What it costs if there was no shift.
    told : tuple of str
        What was done, in sentences.
    times : float
        For numbers: size of private errors in public ones.

    Examples
    --------
    >>> Step(None, (), None, ("Nothing was read.",)).times
    1.0
    """

    adapted: Any
    releases: tuple[Release, ...]
    no_harm: Any
    told: tuple[str, ...]
    times: float = 1.0


def draw_releases(
    releases: tuple[Release, ...],
    experts: dict[str, float],
    result: str = "",
    kept: float | None = None,
) -> Figure:
    """Weights of the experts, what each release cost and said, and what was kept.

    Parameters
    ----------
    releases : tuple of Release
    experts : dict
        Weight of each public expert, by name.
    result : str
        What became of the public model, in a sentence.
    kept : float, optional
        Part of the private move that was kept.

    Examples
    --------
    >>> figure = draw_releases((Release("level", 1.0, "94% of it is kept"),), {"linear": 1.0})
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Public experts', 'Private releases: share of the budget, and what was found']
    """
    from dpadapt.learning.figures import blank, set_title
    from dpadapt.learning.figures import literal_text as plain

    bars = [(each.name, each.share, each.said, _ORANGE) for each in releases]
    if kept is not None:
        bars.append(("kept", kept, "part of the private move that is in the model", _GREEN))
    said = [_wrapped(each[2], _WIDE) for each in bars]
    lines = sum(max(2, each.count("\n") + 1) for each in said)
    height = 1.2 + max(0.22 * lines, 0.45 * len(experts))
    figure, (left, right) = blank(11, height, columns=2)
    left.get_gridspec().set_width_ratios([1, 2.6])
    left.barh([plain(each) for each in experts], list(experts.values()), color=_BLUE)
    left.invert_yaxis()
    left.set_xlim(0, max(1.0, *experts.values()))
    left.grid(False)
    set_title(left, "Public experts")
    _bars(right, bars, said)
    set_title(right, "Private releases: share of the budget, and what was found")
    if result:
        figure.suptitle(_wrapped(result, _LINE), x=0.01, ha="left", fontsize=11)
    return figure


def _wrapped(text: str, width: int) -> str:
    """Words of ours in lines, in which nothing is a formula."""
    return "\n".join(wrap(text.replace("$", r"\$"), width))


def _bars(axes: Any, bars: list[tuple[str, float, str, str]], said: list[str]) -> None:
    """Bars from 0 to 100 %, with a text beside each where no bar or line reaches."""
    places = range(len(bars))
    axes.barh(places, [each[1] for each in bars], color=[each[3] for each in bars], height=0.6)
    axes.set_yticks(places, labels=[each[0] for each in bars])
    for place, each, text in zip(places, bars, said, strict=True):
        axes.text(each[1] + 0.02, place, f"{each[1]:.1%}", va="center", fontsize=9)
        axes.text(_BESIDE, place, text, va="center", fontsize=9)
    axes.invert_yaxis()
    axes.grid(False)
    axes.set_xlim(0, _RIGHT)
    axes.set_xticks([0, 0.5, 1], labels=["0 %", "50 %", "100 %"])
    axes.spines["bottom"].set_bounds(0, 1)
    axes.tick_params(axis="y", length=0)
