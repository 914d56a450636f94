"""Plain words for what the numbers mean, and the table of what left the private sample."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dpadapt.learning.story import number
from dpadapt.privacy.accounting.events import Event

MECHANISMS = {
    "gaussian": "Gaussian noise",
    "discrete-gaussian": "discrete Gaussian noise",
    "laplace": "Laplace noise",
    "pure": "randomised answer",
    "bounded-range": "noisy choice (exponential mechanism)",
    "poisson-gaussian": "Gaussian noise on random samples of the rows",
    "parallel": "releases on separate parts of the rows",
    "one-draw-gaussian": "Gaussian noise on the gradient of one drawn row at a time",
    "draws": "a private learner on randomly drawn rows",
    "random-stopping": "best of a secret, random number of runs",
}

RELATIONS = {
    "replace-one": "The guarantee compares the private sample with any other that differs in one "
    "row: one person's row replaced by any other row. The number of rows is the same in both, and "
    "counts as public.",
    "add-remove": "The guarantee compares the private sample with any other that has one row more "
    "or less: one person's row added or taken away. The number of private rows is a secret.",
    "replace-unit": "The guarantee compares the private sample with any other that differs in one "
    "person: all rows of that person replaced by any others. The number of people is the same in "
    "both, and counts as public; how many rows somebody has does not.",
}
_UNITS = {
    "replace-one": "one row of the private table, which is one person if nobody has several",
    "add-remove": "one row of the private table, which is one person if nobody has several",
    "replace-unit": "one person with all their rows",
}

_COUNTED = {
    "replace-one": "private rows",
    "replace-unit": "people, and how many rows each may have",
}

BLANK = "[not filled in]"
CLASSES = (
    "Counted on public rows with the released model, which costs nothing beyond the guarantee "
    "above. Private people may have more or fewer of a class: of them, only a private evaluation "
    "tells."
)
LIFE = (
    "This epsilon is that of this model alone. Other releases about the same people add up, and no "
    "ledger was given to this report: somebody must keep count."
)
KEPT = "This epsilon is that of this model alone; the ledger has what all releases cost together."
NOT_IN_IT = (
    "This epsilon is that of this model alone, and no charge of the ledger that was given to this "
    "report has the releases of this model: what that ledger has spent does not count it. Other "
    "releases about the same people add up: somebody must keep count."
)
BEFORE = (
    "What was fitted or chosen before private rows were read, was fitted to or chosen by public "
    "rows. What was chosen by private rows is among the releases. What was done to the private "
    "table before dpadapt read it, or with it elsewhere, dpadapt cannot know."
)

NOISE = {
    "secure": "a cryptographic random generator, keyed by the operating system",
    "seeded": "a generator with a known seed: for tests only. Whoever knows the seed can take the "
    "noise away again",
    "exact": "exact discrete noise (OpenDP), safe against floating-point attacks",
    "none": "none was needed",
    "several": "several sources",
}

_STRENGTHS = (
    (0.1, "very strong: what comes out hardly depends on any one person"),
    (1.0, "strong"),
    (3.0, "moderate"),
    (10.0, "weak: defensible only together with other safeguards"),
    (math.inf, "very weak: little more than a formality"),
)


def relation(name: str) -> str:
    """What the guarantee compares.

    Examples
    --------
    >>> relation("replace-one")[:36]
    'The guarantee compares the private s'
    """
    return RELATIONS.get(name, f"The guarantee compares neighbouring private samples ({name}).")


def public_counts(name: str) -> str:
    """What is counted in public under a relation; nothing if the number is a secret.

    Examples
    --------
    >>> public_counts("replace-one"), public_counts("add-remove")
    ('private rows', '')
    """
    return _COUNTED.get(name, "")


def people(name: str) -> str:
    """What there are so many of, under a relation.

    Examples
    --------
    >>> people("replace-one"), people("replace-unit")
    ('private rows', 'people')
    """
    return "people" if name == "replace-unit" else "private rows"


def unit(name: str) -> str:
    """Who is protected.

    Examples
    --------
    >>> unit("replace-unit")
    'one person with all their rows'
    """
    return _UNITS.get(name, f"see the relation, {name}")


def strength(epsilon: float) -> str:
    """Usual reading of an epsilon in words; a convention, not a theorem.

    Examples
    --------
    >>> strength(1.0)
    'strong'
    """
    return next(words for limit, words in _STRENGTHS if epsilon <= limit * (1 + 1e-9))


class ReleaseLine(NamedTuple):
    """One line of the table.

    Examples
    --------
    >>> ReleaseLine("mean", "Gaussian noise", "1", "4", "1").times
    '1'
    """

    what: str
    mechanism: str
    sensitivity: str
    noise: str
    times: str


def list_releases(
    events: Sequence[Event],
    made: Mapping[str, int] | None = None,
    parts: Mapping[str, Sequence[tuple[str, float, int]]] | None = None,
) -> Iterator[ReleaseLine]:
    """One line for each event; those within parallel or repeated ones are named after them.

    So are those that one charge was spent on.

    Parameters
    ----------
    events : sequence of Event
    made : mapping of str to int, optional
        How often a release was made, by its label, where an individual filter made it more often
        than it was charged for.
    parts : mapping of str to sequence of (str, float, int), optional
        What a charge was spent on, by its label: name, share of it, and how often.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent
    >>> events = [GaussianEvent("gradients", 1.0, 9.0, count=25)]
    >>> [release.times for release in list_releases(events, {"gradients": 100})]
    ['100, at the price of 25']
    >>> spent = {"gradients": [("look", 0.25, 1), ("descent", 0.75, 40)]}
    >>> [release[-1] for release in list_releases(events[:1], parts=spent)]
    ['41, as listed below', '1', '40']
    """
    for event in events:
        facts = event.to_dict()
        count = int(facts.get("count", 1))
        often = (made or {}).get(event.label, count)
        spent = (parts or {}).get(event.label, ())
        mechanism, suffix = MECHANISMS.get(event.kind, event.kind), ""
        if event.mean_runs is not None:
            mechanism += f", {event.mean_runs:.3g} on average"
            suffix = " a run"
        yield ReleaseLine(
            what=event.label,
            mechanism=mechanism,
            sensitivity=number(facts.get("sensitivity", facts.get("clip"))),
            noise=number(facts.get("scale")),
            times=_times(often, count, spent),
        )
        for name, share, each in spent:
            whole = f"{share:.1%} of it"
            yield ReleaseLine(f"{event.label}: {name}", whole, "–", "–", number(each))
        for release in list_releases(event.inner or (), made, parts):
            what, times = f"{event.label}: {release.what}", release.times + suffix
            yield release._replace(what=what, times=times)


def _times(often: int, count: int, spent: Sequence[tuple[str, float, int]]) -> str:
    if spent:
        return f"{sum(each for *_, each in spent):,}, as listed below"
    return f"{often:,}, at the price of {count:,}" if often > count else number(count)
