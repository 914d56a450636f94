"""Sums that could overflow are refused by public facts; what a function overflows is clipped."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.papers.hybrid.doors.weights import RowWeights, Weighted
from dpadapt.privacy import Cleaning, Rows, RowSum
from dpadapt.privacy.core.sample import MOST_ROWS
from dpadapt.privacy.core.statistic import MOST_SUM, check_sum
from dpadapt.privacy.mechanisms import EachRow, FilteredGaussian, FilteredMean
from dpadapt.privacy.statistics import Gram, SecondMoment

N = 1900
ROWS = np.zeros((N, 1))


def opened(rows=ROWS, **options):
    return Private(rows).open(epsilon=1.0, delta=1e-6, **options)


class WeightedMoment(SecondMoment):
    def weighted_block(self, X, y, weights):
        return (X.T * weights) @ X


def moment(radius):
    return WeightedMoment(Cleaning(radius=radius))


def unread(*_, **__):
    raise AssertionError("rows were read")


def largest(n_rows):
    """A radius whose squares, added up, are just within the limit."""
    return math.sqrt(MOST_SUM / n_rows) * (1 - 1e-12)


REFUSED = {
    "hide": lambda session, r: session.hide(moment(r)),
    "sum": lambda session, r: session.hide(RowSum(moment(r))),
    "sum_sensitivity": lambda session, r: session.sensitivity(RowSum(moment(r))),
    "weighted sum": lambda session, r: session.hide(Weighted(moment(r), RowWeights(session), 0.5)),
    "kernel values": lambda session, r: session.hide(Gram(lambda A, B: A @ B.T, r**2)),
    "rows": lambda session, r: session.hide(Rows(Cleaning(radius=r**2))),
}


@pytest.mark.parametrize("way", REFUSED)
def test_what_could_overflow_is_refused_before_a_row_is_read(way):
    with opened() as session:
        rows = session._samples["all"].rows
        rows.blocks = rows.long_blocks = unread
        with pytest.raises(ValueError, match="sums could overflow"):
            REFUSED[way](session, 1.001 * largest(N))
        if way == "hide":  # the square of the radius is no number
            with pytest.raises(ValueError, match="sums could overflow"):
                REFUSED[way](session, 1e200)


@pytest.mark.parametrize("way", sorted(set(REFUSED) - {"kernel values"}))
def test_what_fits_is_taken(way):
    with opened() as session:
        REFUSED[way](session, largest(N))


def test_the_refusal_under_add_remove_does_not_tell_how_many_rows_there_are():
    for n in (1, 5, 1900):
        with opened(np.zeros((n, 1)), relation="add-remove") as session:
            session.hide(RowSum(moment(largest(MOST_ROWS))))
            with pytest.raises(ValueError, match="sums could overflow"):
                session.hide(RowSum(moment(1.001 * largest(MOST_ROWS))))


def test_a_filtered_sum_is_refused_too():
    class Filtered(SecondMoment, FilteredMean):
        def norms(self, X, y):
            return np.zeros(len(X))

        def kept(self, X, y, keep):
            return np.zeros((1, 1))

    with opened() as session:
        grant = session.plan(it=FilteredGaussian("steps", 1.0, count=1, releases=2)).it
        sums = session.release(grant, session.hide(EachRow(1e152)))
        with pytest.raises(ValueError, match="sums could overflow"):
            sums.release(Filtered(Cleaning(radius=1e152)))


def moved(radius):
    """By how many sensitivities a mean of second moments moves, at the edge of float64."""
    fits = int(1.7976e308 / radius**2)
    rows = np.zeros((N, 1))
    rows[: fits + 1] = radius
    other = rows.copy()
    other[0] = 0.0
    values = []
    for table in (rows, other):
        with opened(table) as session:
            hidden = session.hide(moment(radius))
            values.append(float(hidden._value[0, 0]))
    return abs(values[0] - values[1]) / hidden.sensitivity


def test_one_row_moved_a_mean_by_a_thousand_sensitivities(monkeypatch):
    radius = math.sqrt(1e305)
    with pytest.raises(ValueError, match="sums could overflow"):
        moved(radius)
    zeroed = functools.partial(np.nan_to_num, posinf=0.0, neginf=0.0)
    monkeypatch.setattr("dpadapt.privacy.core.statistic.check_sum", lambda *facts: None)
    monkeypatch.setattr("dpadapt.privacy.core.session.finite", zeroed)
    assert moved(radius) > 500  # as it did without the refusal


def test_what_a_function_makes_too_large_is_clipped_and_not_zero():
    with opened(np.ones((N, 1))) as session:
        hidden = session.hide(moment(1.0))
        values = [
            session.derive(hidden, lambda M, f=factor: M * f * 1e308, label="large")._value[0, 0]
            for factor in (1e-9, 1e-8, 1.0, 10.0, -10.0, np.nan)
        ]
    assert values[:4] == sorted(values[:4])
    assert values[3:] == [1e300, -1e300, 0.0]


def test_check_sum_takes_a_bound_that_is_no_number():
    with pytest.raises(ValueError, match="overflow"):
        check_sum("sum", lambda: math.nan, 1)
