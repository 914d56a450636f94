"""What a private step found and released, for people too: names, shares, findings, a picture."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Release", "Step", "draw_releases"]

_WIDE = 40  # letters of a line beside a bar


@dataclass(frozen=True)
class Release:
    """One release of the private step.

    Examples
    --------
    >>> Release("level", 0.1, "94% of it is kept").sentence()
    "Release 'level' took 10% of the budget: 94% of it is kept."
    """

    name: str
    share: float
    said: str

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


def draw_releases(releases: tuple[Release, ...], experts: dict[str, float]) -> Figure:
    """Weights of the experts, and what each release cost and said.

    Parameters
    ----------
    releases : tuple of Release
    experts : dict
        Weight of each public expert, by name.

    Examples
    --------
    >>> figure = draw_releases((Release("level", 1.0, "94% of it is kept"),), {"linear": 1.0})
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Public experts', 'Private releases: share of the budget']
    """
    from dpadapt.report.figures import blank, plain, set_title

    figure, (left, right) = blank(11, 0.8 + 0.5 * max(len(releases), len(experts)), columns=2)
    left.barh([plain(each) for each in experts], list(experts.values()), color="#4c78a8")
    left.invert_yaxis()
    left.set_xlim(0, max(1.0, *experts.values()))
    set_title(left, "Public experts")
    names = [each.name for each in releases]
    places = range(len(releases))
    right.barh(places, [each.share for each in releases], color="#f58518")
    right.set_yticks(places, labels=names)
    for place, each in zip(places, releases, strict=True):
        lines = "\n".join(plain(line) for line in wrap(each.said, _WIDE))
        right.text(each.share + 0.02, place, lines, va="center", fontsize=7)
    right.invert_yaxis()
    right.set_xlim(0, 2.5)
    right.set_xticks([0, 0.5, 1])
    set_title(right, "Private releases: share of the budget")
    return figure
