"""What a preview found: gains at each epsilon, how far they can be trusted, and the picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from dpadapt.learning.figures import BLUE, GREY, ORANGE, blank, set_title
from dpadapt.privacy.accounting.calibration import gaussian_mu

from .rehearsal import Rehearsal

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_BAND = (0.1, 0.9)
_NO_GAP = 0.02  # of the public error: less is no gap that a rehearsal could see


@dataclass(frozen=True)
class PreviewLine:
    """What one epsilon buys.

    Parameters
    ----------
    epsilon : float
    error, low, high : float
        Mean over rehearsals, and the band that holds eight of ten.
    share, share_low, share_high : float
        Of the gap between public data alone and no privacy; nan where there is no gap.
    cost : float
        What privacy costs, as a part of the public error: a gap below this does not pay.
    worse : float
        Part of the rehearsals that were worse than public data alone.

    Examples
    --------
    >>> PreviewLine(1.0, 0.2, 0.19, 0.22, 0.8, 0.7, 0.9, 0.05, 0.0).share
    0.8
    """

    epsilon: float
    error: float
    low: float
    high: float
    share: float
    share_low: float
    share_high: float
    cost: float
    worse: float


@dataclass(frozen=True)
class Target:
    """What must be reached: an error, or a share of the gap.

    Parameters
    ----------
    value : float
    share : bool, default=False

    Examples
    --------
    >>> Target.of("50%"), Target.of("0.2")
    (Target(value=0.5, share=True), Target(value=0.2, share=False))
    """

    value: float
    share: bool = False

    @classmethod
    def of(cls, text: str) -> Target:
        """Read "0.2" (an error) or "50%" (a share of the gap)."""
        share = text.strip().endswith("%")
        try:
            value = float(text.strip().rstrip("% ")) / (100 if share else 1)
        except ValueError:
            value = math.nan
        if not (0 < value < math.inf) or (share and value > 1):
            raise ValueError(
                f"target must be an error as in 0.2, or a share of the gap as in 50%; got {text!r}."
            )
        return cls(value, share)

    def __str__(self) -> str:
        return f"{self.value:.0%} of the gap" if self.share else f"an error of {self.value:.4g}"


def mean_of(rehearsals: Sequence[Rehearsal], name: str) -> float:
    """Mean of an error, sub-populations by the number of their rows: small ones are mostly chance.

    Examples
    --------
    >>> found = [Rehearsal("a", 90, 1.0, 0.1, 0.4, 0.2), Rehearsal("b", 10, 1.0, 0.3, 0.4, 0.2)]
    >>> round(mean_of(found, "error"), 2)
    0.12
    """
    rows = [each.rows for each in rehearsals]
    return float(np.average([getattr(each, name) for each in rehearsals], weights=rows))


def seen_gap(rehearsals: Sequence[Rehearsal]) -> float:
    """Part of the public error that no privacy at all took away.

    Examples
    --------
    >>> seen_gap([Rehearsal("a", 90, 1.0, 0.1, 0.4, 0.2)])
    0.5
    """
    return 1 - _ratio(rehearsals, "best")


def _ratio(rehearsals: Sequence[Rehearsal], name: str) -> float:
    public = mean_of(rehearsals, "public")
    return mean_of(rehearsals, name) / public if public > 0 else 1.0


@dataclass(frozen=True)
class Preview:
    """What budgets would buy, from rehearsals on public rows alone.

    Parameters
    ----------
    rows : int
        Private rows of the real fit.
    delta : float
    measure : str
        What the error is.
    rehearsals : tuple of Rehearsal
    notes : tuple of str
        How far they can be trusted, in words.
    expected_gap : float, optional
        The gap to reckon with, as a part of the public error, instead of the one that public
        sub-populations show: what privacy costs is as rehearsed.

    Examples
    --------
    >>> found = [Rehearsal("a", 90, e, 0.4 - 0.1 * e, 0.4, 0.2) for e in (0.5, 1.0)]
    >>> view = Preview(1000, 1e-6, "mean squared error", tuple(found), ())
    >>> [round(line.share, 2) for line in view.lines]
    [0.25, 0.5]
    >>> round(view.least_epsilon(Target.of("40%")), 2)
    0.76
    >>> from dataclasses import replace
    >>> [round(line.share, 2) for line in replace(view, expected_gap=0.75).lines]
    [0.5, 0.67]
    """

    rows: int
    delta: float
    measure: str
    rehearsals: tuple[Rehearsal, ...]
    notes: tuple[str, ...]
    expected_gap: float | None = None

    @property
    def public_error(self) -> float:
        """Mean error of public data alone, sub-populations by their rows."""
        return mean_of(self.rehearsals, "public")

    @property
    def seen_gap(self) -> float:
        """Part of the public error that no privacy at all took away in the rehearsals."""
        return seen_gap(self.rehearsals)

    @property
    def gap(self) -> float:
        """The gap that is reckoned with: the expected one, or the one seen."""
        return self.seen_gap if self.expected_gap is None else self.expected_gap

    @property
    def best_error(self) -> float:
        """Error without any privacy, on the scale of the others."""
        return self.public_error * (1 - self.gap)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Budgets that were rehearsed, in order."""
        return tuple(sorted({each.epsilon for each in self.rehearsals}))

    @property
    def lines(self) -> tuple[PreviewLine, ...]:
        """What each epsilon buys.

        More budget does no harm to whoever may spend less, so that what rises with epsilon is
        chance, and neighbours are averaged until nothing rises.
        """
        moved = self.seen_gap - self.gap
        its = [
            [each for each in self.rehearsals if each.epsilon == epsilon]
            for epsilon in self.epsilons
        ]
        ratios = [np.array([each.ratio for each in some]) + moved for some in its]
        courses = [
            isotonic_regression(course, increasing=False)
            for course in (
                [_ratio(some, "error") + moved for some in its],
                *([np.quantile(each, end) for each in ratios] for end in _BAND),
            )
        ]
        worse = [float(np.mean(each > 1)) for each in ratios]
        return tuple(
            self._line(epsilon, middle, min(low, middle), max(high, middle), often)
            for epsilon, middle, low, high, often in zip(
                self.epsilons, *(map(float, each) for each in courses), worse, strict=True
            )
        )

    def _line(
        self, epsilon: float, middle: float, low: float, high: float, worse: float
    ) -> PreviewLine:
        error, gap = self.public_error, self.gap if self.gap >= _NO_GAP else math.nan
        return PreviewLine(
            epsilon,
            error=error * middle,
            low=error * low,
            high=error * high,
            share=(1 - middle) / gap,
            share_low=(1 - high) / gap,
            share_high=(1 - low) / gap,
            cost=middle - (1 - self.gap),
            worse=worse,
        )

    def _course(self, target: Target) -> tuple[NDArray[np.float64], float]:
        """Numbers that never fall with epsilon, and the one to reach."""
        if not target.share:
            values, goal = [-line.error for line in self.lines], -target.value
        else:
            values, goal = [line.share for line in self.lines], target.value
        return np.array(values), goal

    def least_epsilon(self, target: Target) -> float:
        """Least epsilon that reaches the target, between those rehearsed; nan if none does.

        Parameters
        ----------
        target : Target
        """
        values, goal = self._course(target)
        if not np.isfinite(values).all() or goal > values[-1]:
            return math.nan
        place = int(np.argmax(values >= goal))
        if place == 0:
            return self.epsilons[0]
        part = (goal - values[place - 1]) / (values[place] - values[place - 1])
        ends = np.log(self.epsilons[place - 1 : place + 1])
        return float(np.exp(ends[0] + part * (ends[1] - ends[0])))

    def least_rows(self, target: Target, epsilon: float) -> float:
        """Private rows that reach the target at an epsilon; nan if none of the rehearsals does.

        What noise costs depends on rows times mu, so that the same course answers for rows.

        Parameters
        ----------
        target : Target
        epsilon : float
        """
        least = self.least_epsilon(target)
        if math.isnan(least):
            return math.nan
        mu = gaussian_mu(least, self.delta) / gaussian_mu(epsilon, self.delta)
        return float(math.ceil(self.rows * mu))

    def to_frame(self) -> pd.DataFrame:
        """Every rehearsal as a line of a table."""
        import pandas as pd

        return pd.DataFrame([vars(each) for each in self.rehearsals])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and texts."""
        return {
            "rows": self.rows,
            "delta": self.delta,
            "measure": self.measure,
            "seen_gap": self.seen_gap,
            "expected_gap": self.expected_gap,
            "public_error": self.public_error,
            "best_error": self.best_error,
            "lines": [vars(line) for line in self.lines],
            "notes": list(self.notes),
        }

    def draw(self) -> Figure:
        """Error against epsilon, with the band, public data alone and no privacy."""
        return preview_figure(self)


_WIDE = 0.5
_LEAST_PARTS = 2
_MEASURED = {  # benchmarks/bench_preview.py, docs/preview.md
    False: "On real tasks the share of the gap that a rehearsal told was off by 0.2 on average, "
    "and the error by a tenth of the public one.",
    True: "On real tasks with classes the share of the gap that a rehearsal told was off by 0.3 on "
    "average: read it as little, some or most. The error was off by a tenth of the public one.",
}
_UNSURE = 0.5  # standard errors of a gap, as a part of it


def trust_in_words(
    rehearsals: Sequence[Rehearsal],
    rows: int,
    *,
    grouped: bool,
    left_out: int,
    expected_gap: float | None = None,
    classes: bool = False,
) -> tuple[str, ...]:
    """Sentences on what was rehearsed and what it cannot know.

    Parameters
    ----------
    rehearsals : sequence of Rehearsal
    rows : int
        Of the real private table.
    grouped : bool
        Whether the user said which rows belong together.
    left_out : int
        Public rows that took no part.
    expected_gap : float, optional
        What the user said that no privacy would gain.
    classes : bool
        Whether classes are predicted.

    Examples
    --------
    >>> alike = [Rehearsal("a", 90, 1.0, 0.4, 0.4, 0.4)]
    >>> print(trust_in_words(alike, 80, grouped=True, left_out=0)[2])
    The sub-populations hardly differ: no privacy at all would gain less than 2 %. If you expect \
the private people to differ more, say how much (gap): what privacy costs is known all the same.
    """
    parts = {each.part: each for each in rehearsals}
    kind = "your groups" if grouped else "clusters of the columns and both ends of the table"
    told = [
        f"{len(parts)} public sub-populations ({kind}) played the private people. The real private "
        "people may differ from public ones more, less, or in another way: believe what privacy "
        "costs more than the error itself.",
        _MEASURED[classes],
    ]
    gap, around = seen_gap(rehearsals), _gap_error(rehearsals)
    if expected_gap is not None:
        told.append(
            f"A gap of {expected_gap:.0%} of the public error is what you expect; the "
            f"sub-populations showed {max(gap, 0.0):.0%}."
        )
    elif gap < _NO_GAP:
        told.append(
            "The sub-populations hardly differ: no privacy at all would gain less than 2 %. If you "
            "expect the private people to differ more, say how much (gap): what privacy costs is "
            "known all the same."
        )
    elif around > _UNSURE * gap:
        told.append(
            f"The gap of {gap:.0%} may be chance: it is uncertain by {around:.0%}, from one "
            "sub-population to another. Do not read the share of it as more than an order of "
            "magnitude."
        )
    fewest = min(each.rows for each in parts.values())
    if fewest < rows:
        told.append(
            f"The noise is that of {rows:,} rows, but the smallest sub-population has {fewest:,}: "
            "what more rows would teach is reckoned, not seen. Without privacy they might teach "
            "more than that, and then the share is too high."
        )
    if left_out:
        told.append(f"{left_out:,} public rows took no part, to keep the rehearsal short.")
    shares = [1 - each.ratio for each in rehearsals]
    if gap >= _NO_GAP and np.std(shares) > _WIDE * gap:
        told.append("The sub-populations disagree: look at the band, not at the middle.")
    if not grouped:
        told.append(
            "If a column says where rows come from (site, year, region), give it as groups: that "
            "rehearses the change of people that you expect."
        )
    return tuple(told)


def _gap_error(rehearsals: Sequence[Rehearsal]) -> float:
    """Standard error of the gap, as a part of the public error, from part to part."""
    names = list(dict.fromkeys(each.part for each in rehearsals))
    public = mean_of(rehearsals, "public")
    if len(names) < _LEAST_PARTS or public <= 0:
        return 0.0
    parts = [[each for each in rehearsals if each.part == name] for name in names]
    gaps = np.array([mean_of(part, "public") - mean_of(part, "best") for part in parts])
    weights = np.array([part[0].rows for part in parts], dtype=np.float64)
    weights /= weights.sum()
    spread = float(np.sqrt(np.sum((weights * (gaps - weights @ gaps)) ** 2)))
    return spread * float(np.sqrt(len(names) / (len(names) - 1))) / public


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
