"""One person more, less or other moves no release beyond its stated sensitivity.

What a statistic takes of a block is what it takes of its rows: nobody's row changes another's.

The most likely mistake in a statistic of one's own: to centre rows by the mean of their block, to
sort them, to divide by their largest. One private row then moves what all others contribute, by any
number of sensitivities. Neighbours of a few rows show it only if the row that is replaced happens
to; a block beside its rows, one by one, always does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from dpadapt import Private
from dpadapt._lazy import named
from dpadapt._types import FloatArray, IntArray
from dpadapt.privacy import RowMean, Session
from dpadapt.privacy.core.sample import ROUNDING, Sample
from dpadapt.privacy.core.statistic import Rows, Statistic
from dpadapt.privacy.rows.quiet import quiet
from dpadapt.privacy.statistics.gram import Gram

from .search import HOSTILE_LABELS, HOSTILE_ROWS, hostile_row, require
from .subject import Subject
from .tape import Draw, distance, paid_by, releases, taped

PLACE = 4  # of the person who is replaced
_FEW_ROWS = 12  # rows: one person weighs much
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
    X = subject.rows(n=_FEW_ROWS)
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
    keep = np.arange(_FEW_ROWS) != PLACE
    return subject.private(X[keep], None if y is None else y[keep])


_BLOCK_ROWS = 40  # rows of the block that is looked at; the first of them hostile


def check_a_block_adds_up_what_its_rows_add(subject: Subject) -> None:
    """What a statistic takes of a block of rows is the sum of what it takes of each row alone."""
    times: Counter[Any] = Counter()
    wrong: list[str] = []

    def inspect(statistic: Any, rows: Any) -> None:
        one = getattr(statistic, "mean", None)  # of a sum
        one = one if isinstance(one, RowMean) else statistic
        times[type(one), one.label] += 1
        if times[type(one), one.label].bit_count() != 1:  # the first, the second, the fourth ...
            return
        try:
            found = list(_odd(one, rows))
        except Exception as error:
            found = [f"fails on a row alone ({error!r})"]
        wrong.extend(f"{type(one).__name__} ({one.label!r}): {each}" for each in found)

    X = subject.rows()
    X[: len(HOSTILE_ROWS)] = [hostile_row(name, subject.columns) for name in HOSTILE_ROWS][: len(X)]
    y = subject.labels(X)
    if y is not None and y.dtype.kind == "f":
        y[: len(HOSTILE_LABELS)] = HOSTILE_LABELS[: len(y)]
    with _inspected(inspect):
        subject.fit(subject.make(), subject.private(X, y))
    require(not wrong, "".join(wrong[:1]))


@dataclass(frozen=True, eq=False)
class _Inspection(Statistic):
    """Hidden just before another statistic, of the same rows: what is told of both is the same."""

    statistic: Statistic
    inspect: Callable[[Any], None]

    @property
    def label(self) -> str:
        return self.statistic.label

    def entry_radius(self) -> float:
        return self.statistic.entry_radius()

    def sensitivity_on(self, sample: Sample) -> float:
        return self.statistic.sensitivity_on(sample)

    def reduce(self, sample: Sample) -> FloatArray:
        self.inspect(sample.rows)
        return np.zeros(())


@contextmanager
def _inspected(inspect: Callable[[Any, Any], None]) -> Iterator[None]:
    """Look at every statistic that a fit hides, and at the made-up rows that it is of."""
    sums = named("dpadapt.papers.mixing.filtered.FilteredSums")
    hide, release = Session.hide, sums.release
    last: list[Any] = [None]  # rows that were hidden

    def hiding(session: Session, statistic: Any, part: Any = "all", **options: Any) -> Any:
        def at(rows: Any) -> None:
            last[0] = rows
            inspect(statistic, rows)

        hide(session, _Inspection(statistic, at), part)
        return hide(session, statistic, part, **options)

    def releasing(handle: Any, mean: Any) -> FloatArray:
        with quiet():
            inspect(mean, last[0])
        return np.asarray(release(handle, mean))

    with (
        mock.patch.object(Session, "hide", hiding),
        mock.patch.object(sums, "release", releasing),
    ):
        yield


def _odd(statistic: Any, rows: Any) -> Iterator[str]:
    places = np.arange(min(_BLOCK_ROWS, rows.n_rows))
    if isinstance(statistic, RowMean):
        return _odd_sum(statistic, rows, places)
    if isinstance(statistic, Rows):
        return _odd_cleaning(statistic.cleaning, rows, places)
    if isinstance(statistic, Gram):
        return _odd_pairs(statistic, rows, places)
    return iter(())


def _odd_sum(mean: RowMean, rows: Any, places: IntArray) -> Iterator[str]:
    """A sum, weighted or of some rows only, beside those of single rows; rows beyond the bound."""
    yield from _odd_cleaning(mean.cleaning, rows, places)
    X, y = mean.cleaning(*rows.take(places))
    alone = np.stack(
        [
            np.asarray(mean.block(*mean.cleaning(*rows.take(one))), np.float64)
            for one in _ones(places)
        ]
    )
    yield from _apart(mean, mean.block(X, y), alone)
    weights = np.random.default_rng(0).random(len(places))
    if hasattr(mean, "weighted_block"):
        each = weights.reshape(-1, *[1] * (alone.ndim - 1)) * alone
        yield from _apart(mean, mean.weighted_block(X, y, weights), each)
    if hasattr(mean, "kept"):
        keep = weights > 0.5
        yield from _apart(mean, mean.kept(X, y, keep), alone[keep])
    largest = float(np.sqrt((alone.reshape(len(alone), -1) ** 2).sum(axis=1)).max())
    if not largest <= mean.magnitude * (1 + ROUNDING):
        yield f"a row adds {largest:.6g}, and magnitude says at most {mean.magnitude:.6g}"


def _apart(mean: RowMean, whole: Any, alone: FloatArray) -> Iterator[str]:
    """How far a sum is from its parts, if that is more than rounding can do.

    That is what every sum of the core is granted, and what the class claims beyond the distance of
    two contributions (for sums in float32, say).
    """
    n = max(1, len(alone))
    claimed = max(0.0, n * mean.sensitivity(n) - 2 * mean.magnitude)
    allowed = n * ROUNDING * mean.magnitude + claimed
    off = float(np.linalg.norm(np.asarray(whole, np.float64) - alone.sum(axis=0)))
    if not off <= allowed:
        yield (
            f"what a block of {n} rows adds and what they add one by one are {off:.3g} apart, "
            f"where rounding explains {allowed:.3g}"
        )


def _odd_cleaning(cleaning: Any, rows: Any, places: IntArray) -> Iterator[str]:
    """Rows as they enter, beside each alone."""
    X, y = cleaning(*rows.take(places))
    alone = np.vstack([_joined(*cleaning(*rows.take(one))) for one in _ones(places)])
    hair = ROUNDING * float(np.finfo(X.dtype).eps / np.finfo(np.float64).eps)
    if not np.allclose(
        _joined(X, y), alone, rtol=hair, atol=hair * cleaning.radius, equal_nan=True
    ):
        yield "a row is cleaned in another way where others are there"


def _odd_pairs(gram: Gram, rows: Any, places: IntArray) -> Iterator[str]:
    """Kernel values of pairs, and of rows with a pool, beside each pair alone."""
    whole, n = _kernel(gram, rows, places), len(places)
    for one, two in zip(places, np.roll(places, 1), strict=True):
        pair = [one, two]
        known = np.hstack([whole[np.ix_(pair, pair)], whole[pair, n:]])
        alone = _kernel(gram, rows, np.array(pair))
        if not np.allclose(known, alone, rtol=1e-9, atol=1e-9 * gram.squared_bound):
            yield "the kernel value of two rows is another where others are there"
            return


def _kernel(gram: Gram, rows: Any, places: IntArray) -> FloatArray:
    X, y = rows.take(places)
    return gram.table([X], [y])


def _joined(X: FloatArray, y: FloatArray | None) -> FloatArray:
    return X if y is None else np.column_stack([X, y])


def _ones(places: IntArray) -> list[IntArray]:
    return [places[i : i + 1] for i in range(len(places))]
