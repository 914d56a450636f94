"""What is hidden and derived moves by no more than is claimed of it, on random neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.discrepancy.matrices import weighted_moment
from dpadapt.papers.discrepancy.queries import (
    Scores,
    bounds_of,
    gap_range,
    gradient_spread,
    hidden_coefficient_gradient,
    hidden_discrepancies,
    hidden_discrepancy,
    hidden_gaps,
    hidden_gradient,
    hidden_gradient_matrix,
    hidden_scores,
    hidden_weight_gradient,
)
from dpadapt.papers.discrepancy.single_stage import AdaptationObjective, NoisySingleStage
from dpadapt.papers.discrepancy.smoothing import OneSidedSoftmax, PNorm, Softmax
from dpadapt.privacy import Cleaning
from dpadapt.privacy.statistics import SecondMoment

QUERY = SecondMoment(Cleaning(radius=1.0))
SMOOTHINGS = [Softmax(0.1), Softmax(20.0), OneSidedSoftmax(3.0), PNorm(1), PNorm(3)]
both_sides = pytest.mark.parametrize("smoothing", SMOOTHINGS, ids=str)


def neighbours(trials, d=2, n=4, seed=0):
    """Samples that differ in their first row, and public rows with weights."""
    rng = np.random.default_rng(seed)
    for trial in range(trials):
        rows = rng.normal(size=(n + 1, d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        if trial % 3 == 0:
            rows[1:n] = 0.0
        if trial % 4 == 0:
            rows[n] = 0.0
        if trial % 4 == 1:
            rows[n] = rows[0][::-1] * (-1.0, 1.0)  # at right angles
        X = rng.normal(size=(5, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        X[2] *= rng.random()
        if trial % 2:
            X[0], X[1] = rows[0], rows[0][::-1] * (-1.0, 1.0)
        X[4] = 0.0
        yield rows[:n], np.vstack([rows[n], rows[1:n]]), X, rng.dirichlet(np.full(5, 0.3))


def moved(one, two, hide):
    """What a claim allows, and the values of both neighbours."""
    found = []
    for rows in (one, two):
        with Private(rows).open(epsilon=1.0, delta=1e-6) as session:
            found.append(hide(session, session.hide(QUERY)))
    assert found[0].sensitivity == found[1].sensitivity
    return found[0].sensitivity, found[0]._value - found[1]._value


def worst(distance, hide_with, trials=80, **given):
    largest = 0.0
    for one, two, X, q in neighbours(trials, **given):
        allowed, change = moved(one, two, hide_with(X, q))
        largest = max(largest, float(distance(change)) / allowed)
    return largest


@both_sides
def test_scores_of_the_rows(smoothing):
    def hide_with(X, q):
        scores = Scores(X, smoothing, weighted_moment(X, q), q, strength=2.5)
        return lambda session, moment: hidden_scores(
            session, moment, scores, bounds_of(session, moment, X)
        )

    largest = worst(np.ptp, hide_with)
    assert 0.1 < largest <= 1
    if smoothing == PNorm(1):
        assert largest > 0.99


@both_sides
def test_gradient_as_a_matrix(smoothing):
    def hide_with(X, q):
        return lambda session, moment: hidden_gradient_matrix(
            session, moment, smoothing, weighted_moment(X, q), bounds_of(session, moment, X)
        )

    largest = worst(np.linalg.norm, hide_with)
    assert 0.1 < largest <= 1
    if smoothing == PNorm(1):
        assert largest > 0.99


@both_sides
def test_gradient_in_all_its_entries(smoothing):
    def hide_with(X, q):
        public, spread = weighted_moment(X, q), gradient_spread(X)
        return lambda session, moment: hidden_gradient(
            session, moment, smoothing, public, X, bounds_of(session, moment, X), spread=spread
        )

    assert 0.1 < worst(np.linalg.norm, hide_with) <= 1


def objective_of(X):
    return AdaptationObjective(X, np.linspace(-1, 1, len(X)), Softmax(0.5), radius=1.5)


def test_scores_of_the_single_stage():
    w = np.array([0.3, -0.2])

    def hide_with(X, q):
        objective = objective_of(X)
        return lambda session, moment: hidden_weight_gradient(
            session, moment, objective, lambda known: objective.weight_gradient(q, w, known)
        )

    assert 0.5 < worst(np.ptp, hide_with) <= 1


def test_gaps_of_iterates():
    other, points = np.full(5, 0.2), (np.array([0.3, -0.2]), np.array([1.0, 1.0]))

    def hide_with(X, q):
        objective = objective_of(X)
        algorithm = NoisySingleStage(objective, 2, 0.5)

        def gaps(known):
            pairs = zip((q, other), points, strict=True)
            return np.array([algorithm._gap(*pair, known) for pair in pairs])

        return lambda session, moment: hidden_gaps(session, moment, objective, gaps)

    assert 0.1 < worst(np.ptp, hide_with) <= 1


@dataclass(frozen=True)
class Turned:
    """Its gradient in w is a row of the moment, and the range of its scores is none."""

    radius: float = 2.0
    shape: tuple[int, int] = (2, 2)

    def weight_gradient(self, q, w, statistic):
        return np.zeros(2)

    def coefficient_gradient(self, q, w, statistic):
        return statistic[0]

    def range_sensitivity(self, query, n_rows):
        return 0.0

    def coefficient_sensitivity(self, query, n_rows):
        return query.sensitivity(n_rows) * (1 + 1e-9)


def test_private_gradient_in_the_coefficients():
    q, w = np.full(2, 0.5), np.zeros(2)

    def hide_with(X, _):
        return lambda session, moment: hidden_coefficient_gradient(session, moment, Turned(), q, w)

    assert 0.5 < worst(np.linalg.norm, hide_with) <= 1


def test_gaps_move_by_the_diameter_times_a_private_gradient_in_the_coefficients():
    objective = Turned()
    assert gap_range(objective, QUERY, 4) == pytest.approx(2 * 4.0 * QUERY.sensitivity(4))
    algorithm = NoisySingleStage(objective, 2, 0.5)
    q, points = np.full(2, 0.5), (np.array([2.0, 0.0]), np.array([-2.0, 0.0]))

    def hide_with(X, _):
        def gaps(known):
            return np.array([algorithm._gap(q, w, known) for w in points])

        return lambda session, moment: hidden_gaps(session, moment, objective, gaps)

    assert 0.2 < worst(np.ptp, hide_with) <= 1


def test_discrepancy_of_given_weights():
    def hide_with(X, q):
        return lambda session, moment: hidden_discrepancy(session, moment, X, q)

    largest = worst(np.abs, hide_with)
    assert largest <= 1

    def at_zero(X, q):
        return lambda session, moment: hidden_discrepancy(session, moment, 0 * X, q)

    assert worst(np.abs, at_zero) > 1 - 1e-6


def test_discrepancies_of_candidates():
    def hide_with(X, q):
        moments = [np.zeros((2, 2)), 2 * np.eye(2), weighted_moment(X, q)]
        return lambda session, moment: hidden_discrepancies(
            session, moment, moments, bounds_of(session, moment, X)
        )

    assert 0.5 < worst(np.ptp, hide_with) <= 1

    def one_column(X, q):
        moments = [np.zeros((1, 1)), np.full((1, 1), 2.0)]
        return lambda session, moment: hidden_discrepancies(
            session, moment, moments, bounds_of(session, moment, X[:, :1] + 1.0)
        )

    rows = np.zeros((4, 1))
    other = rows.copy()
    other[0] = 1.0
    allowed, change = moved(rows, other, one_column(np.zeros((2, 1)), None))
    assert 1 - 1e-6 < np.ptp(change) / allowed <= 1
