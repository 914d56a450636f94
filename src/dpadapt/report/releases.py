"""The table of releases: what left the private sample, by which mechanism, how often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dpadapt.learning.story import number
from dpadapt.privacy.accounting.events import Event

from .wording import MECHANISMS


class Release(NamedTuple):
    """One line of the table.

    Examples
    --------
    >>> Release("mean", "Gaussian noise", "1", "4", "1").times
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
) -> Iterator[Release]:
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
        yield Release(
            what=event.label,
            mechanism=mechanism,
            sensitivity=number(facts.get("sensitivity", facts.get("clip"))),
            noise=number(facts.get("scale")),
            times=_times(often, count, spent),
        )
        for name, share, each in spent:
            whole = f"{share:.1%} of it"
            yield Release(f"{event.label}: {name}", whole, "–", "–", number(each))
        for release in list_releases(event.inner or (), made, parts):
            what, times = f"{event.label}: {release.what}", release.times + suffix
            yield release._replace(what=what, times=times)


def _times(often: int, count: int, spent: Sequence[tuple[str, float, int]]) -> str:
    if spent:
        return f"{sum(each for *_, each in spent):,}, as listed below"
    return f"{often:,}, at the price of {count:,}" if often > count else number(count)
