"""How far a rehearsal can be trusted, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .rehearsal import Rehearsal
from .result import mean_of, seen_gap

_NO_GAP, _WIDE = 0.02, 0.5
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
