"""One person more, less or other moves no release beyond its stated sensitivity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpadapt import Private

from .expecting import require
from .hostile import HOSTILE_LABELS, HOSTILE_ROWS, hostile_row
from .subject import Subject
from .tape import Draw, distance, paid_by, releases, taped

PLACE = 4  # of the person who is replaced
FEW = 12  # rows: one person weighs much
Person = tuple[Any, Any]  # a row and a label; None for the usual ones


def check_one_replaced_row_moves_no_release_beyond_its_sensitivity(subject: Subject) -> None:
    """One person's row, whatever is in it, moves no release by more than its sensitivity."""
    for after in HOSTILE_ROWS:
        for before in ("usual", "huge norm", "zero"):
            start = None if before == "usual" else hostile_row(before, subject.columns)
            end = hostile_row(after, subject.columns)
            compare_neighbours(subject, (start, None), (end, None), f"{before} row to {after}")


def check_one_replaced_label_moves_no_release_beyond_its_sensitivity(subject: Subject) -> None:
    """One person's label, whatever it is, moves no release by more than its sensitivity."""
    if not subject.facts.labels:
        return
    far = hostile_row("huge norm", subject.columns)
    for label in HOSTILE_LABELS:
        compare_neighbours(subject, (None, None), (far, label), f"another row, label {label}")
        compare_neighbours(subject, (far, -label), (far, label), f"label {-label} to {label}")


def compare_neighbours(subject: Subject, one: Person, two: Person, which: str) -> None:
    """Play the tape of one table to its neighbour, and compare what each wants to release.

    Where neighbours have one row more or less, both persons are compared with nobody.
    """
    if subject.facts.relation == "add-remove":
        for person in (one, two):
            _compare(subject, with_person(subject, person), _without(subject), person, which)
    else:
        _compare(subject, with_person(subject, one), with_person(subject, two), one, which)


def _compare(subject: Subject, one: Private, two: Private, key: Any, which: str) -> None:
    first = subject.tape_of(repr(key), one)
    require(first, "nothing was asked of the noise: neighbours cannot be compared")
    with taped(replay=first) as second:
        events = subject.fit(subject.make(), two).guarantee_.events
    _measure(first, second, events, which)


def _measure(first: Sequence[Draw], second: Sequence[Draw], events: Any, which: str) -> None:
    require(len(first) == len(second), f"{which}: private values change the number of releases")
    for one, two in zip(releases(first), releases(second), strict=True):
        require(
            math.isclose(one.scale, two.scale, rel_tol=1e-12),
            f"{which}: the scale of the noise depends on the rows",
        )
        allowed = max((plan.sensitivity for plan in paid_by(one, events)), default=0.0)
        moved = distance(one.mechanism, one.value, two.value) / one.unit
        require(
            moved <= allowed * (1 + 1e-9),
            f"{which}: a release moves by {moved}, its stated sensitivity is {allowed}",
        )


def few(subject: Subject) -> tuple[np.ndarray, np.ndarray | None]:
    """A few rows and labels."""
    X = subject.rows(n=FEW)
    return X, subject.labels(X)


def with_person(subject: Subject, person: Person) -> Private:
    """A few rows, one of which is this person's."""
    X, y = few(subject)
    row, label = person
    if row is not None:
        X[PLACE] = row
    if y is not None and label is not None:
        y[PLACE] = label
    return subject.private(X, y)


def _without(subject: Subject) -> Private:
    X, y = few(subject)
    keep = np.arange(FEW) != PLACE
    return subject.private(X[keep], None if y is None else y[keep])
