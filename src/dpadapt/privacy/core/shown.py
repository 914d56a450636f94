"""The words of a guarantee: as a notebook shows it, and what must be said beside it."""

from __future__ import annotations

import html
from collections.abc import Collection
from typing import TYPE_CHECKING

from ..accounting.composition import compose_epsilon
from ..accounting.events import Event

if TYPE_CHECKING:
    from .guarantee import Guarantee

_MOST_NAMES = 5


def as_html(guarantee: Guarantee) -> str:
    """Sentence, events and caveats of a guarantee.

    Examples
    --------
    >>> from dpadapt import Guarantee
    >>> as_html(Guarantee()).startswith("<div><strong>")
    True
    """
    rows = "".join(
        f"<tr><td>{html.escape(event.label)}</td><td>{html.escape(event.kind)}</td>"
        f"<td>{html.escape(_facts(event))}</td></tr>"
        for event in guarantee.events
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in guarantee.caveats)
    return (
        f"<div><strong>{html.escape(guarantee.sentence)}</strong>"
        f"<table><tr><th>release</th><th>mechanism</th><th>facts</th></tr>{rows}</table>"
        f"<ul>{notes}</ul></div>"
    )


def _facts(event: Event) -> str:
    """Numbers of an event in one line."""
    facts = {k: v for k, v in event.to_dict().items() if k not in ("kind", "label", "relation")}
    return ", ".join(
        f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in facts.items()
    )


def printed_caveat(events: tuple[Event, ...], epsilon: float, delta: float) -> list[str]:
    """Say it where a paper's constants give more than was asked for."""
    spent = compose_epsilon(events, delta)
    if spent <= epsilon * (1 + 1e-9):
        return []
    return [
        f"epsilon {epsilon:.4g} was asked for, but the printed constants give {spent:.4g} at "
        "this delta."
    ]


def delta_caveat(delta: float, n_rows: int) -> list[str]:
    """Say it where a delta is so large that it promises little."""
    if delta * n_rows <= 1:
        return []
    return [
        f"delta {delta:.3g} is larger than one over the {n_rows} private rows: a mechanism that "
        "publishes one row at random would also satisfy it."
    ]


def foreign_caveat(names: Collection[str]) -> list[str]:
    """Say it where code of others saw private rows: what the guarantee then rests on.

    Examples
    --------
    >>> foreign_caveat(["KNNImputer"])[0].partition(":")[0]
    'code of others saw private rows (KNNImputer), one row a call and with fresh state'
    """
    if not names:
        return []
    listed = ", ".join(sorted(names)[:_MOST_NAMES]) + ", ..." * (len(names) > _MOST_NAMES)
    return [
        f"code of others saw private rows ({listed}), one row a call and with fresh state: the "
        "guarantee rests on its keeping nothing of a row outside of itself, in variables of "
        "modules or classes, in threads, files or other processes."
    ]
