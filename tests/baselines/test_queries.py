"""The claims of the baselines on random neighbours: never exceeded, and attained where tight."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.papers.baselines.objective_perturbation import (
    MarginLogistic,
    PerturbedObjective,
    PseudoHuber,
    minimise,
)
from dpadapt.papers.baselines.queries import (
    ClippedGradient,
    CrossMoment,
    RowMoment,
    clipped_gradient,
    hidden_least_eigenvalue,
    hidden_solution,
    linear_term,
    solver_reach,
)
from dpadapt.privacy import Cleaning, Rows


def test_moments_hold_on_random_neighbours_and_are_attained():
    rng = np.random.default_rng(0)
    worst = {"moment": 0.0, "cross": 0.0}
    cleaning = Cleaning(radius=9.0)
    n, R, B = 3, 2.0, 1.5
    moment = RowMoment(cleaning, R, 2)
    cross = CrossMoment(cleaning, R, B, 2, 1)
    for trial in range(4000):
        rows = rng.normal(size=(n + 1, 3))
        rows[:, :2] *= (R / np.linalg.norm(rows[:, :2], axis=1))[:, None]
        rows[:, 2] = B * np.sign(rows[:, 2])
        if trial % 4 == 0:
            rows[n, :2] = [-rows[0, 1], rows[0, 0]]  # at right angles
        if trial % 4 == 1:
            rows[n, :2] = -rows[0, :2]
        if trial % 4 == 2:
            rows[1:n] = 0.0
        one, two = rows[:n], np.vstack([rows[1:n], rows[n]])
        change = (moment.block(one, None) - moment.block(two, None)) / n
        other = (cross.block(one, None) - cross.block(two, None)) / n
        worst["moment"] = max(worst["moment"], np.linalg.norm(change) / moment.sensitivity(n))
        worst["cross"] = max(worst["cross"], np.linalg.norm(other) / cross.sensitivity(n))
    assert max(worst.values()) <= 1 + 1e-12
    assert min(worst.values()) > 0.999


@pytest.mark.parametrize("width", [1, 2])
def test_least_eigenvalue_holds_and_is_attained_by_a_single_column(width):
    rng = np.random.default_rng(width)
    n, R, worst = 3, 2.0, 0.0
    for trial in range(300):
        rows = rng.normal(size=(n + 1, width))
        rows *= (R / np.linalg.norm(rows, axis=1))[:, None]
        if trial % 2:
            rows[rng.integers(0, n + 1)] = 0.0
        found = []
        for sample in (rows[:n], np.vstack([rows[1:n], rows[n:]])):
            with Private(sample).open(epsilon=1.0, delta=1e-6) as session:
                moment = session.hide(RowMoment(Cleaning(radius=R), R, width))
                found.append(hidden_least_eigenvalue(session, moment))
        moved = abs(float(found[0]._value[0] - found[1]._value[0]))
        worst = max(worst, moved / found[0].sensitivity)
        assert math.isclose(found[0].sensitivity, R**2 / n, rel_tol=1e-9)
    assert worst <= 1
    assert worst > (0.999 if width == 1 else 0.2)


@pytest.mark.parametrize("classes", [0, 2, 4])
def test_no_pair_of_rows_moves_the_sum_by_more_than_twice_the_clip(classes):
    rng = np.random.default_rng(classes)
    worst, clip = 0.0, 0.7
    for trial in range(2000):
        X = rng.normal(size=(2, 3)) * 10.0 ** rng.integers(-2, 4)
        if trial % 2:
            X[1] = -X[0]
        labels = rng.integers(-1, classes, size=2).astype(float) if classes else rng.normal(size=2)
        w = rng.normal(size=(3, classes if classes > 2 else 1))
        if trial % 2:
            labels[1], w = labels[0], 0 * w  # opposite gradients
        one, two = (
            clipped_gradient(X[i : i + 1], labels[i : i + 1], w, clip, classes) for i in range(2)
        )
        worst = max(worst, float(np.linalg.norm(one - two)) / (2 * clip))
    query = ClippedGradient(Cleaning(1.0), w, clip, classes)
    assert query.sensitivity(10) == 2 * clip / 10
    assert worst <= 1
    assert worst > 0.999


@pytest.mark.parametrize("loss", [MarginLogistic(), PseudoHuber(0.5)])
def test_linear_terms_that_lead_to_one_minimiser_are_half_of_the_claim_apart(loss):
    rng = np.random.default_rng(0)
    R, worst = 2.0, 0.0
    allowed = linear_term(loss.slope * R, 3, 1).sensitivity / 2
    for trial in range(2000):
        Z = rng.normal(size=(2, 3))
        Z *= R / np.linalg.norm(Z, axis=1)[:, None]
        w, y = rng.normal(size=3) * 10.0 ** rng.integers(-1, 3), np.sign(rng.normal(size=2))
        if trial % 2:  # gradients at their longest, and opposite
            Z[1], y, w = -Z[0], np.ones(2), np.zeros(3)
            y = y if isinstance(loss, MarginLogistic) else 1e3 * y
        terms = [-Z[i] * loss.slopes(Z[i] @ w, y[i]) for i in range(2)]
        worst = max(worst, float(np.linalg.norm(terms[0] - terms[1])) / allowed)
    assert worst <= 1 + 1e-12
    assert worst > (0.999 if isinstance(loss, PseudoHuber) else 0.45)


def test_answers_of_the_solver_with_one_minimiser_are_within_the_reach():
    rng = np.random.default_rng(0)
    worst, n, R, loss = 0.0, 30, 1.0, MarginLogistic()
    for strength in (0.1, 1.0, 10.0):
        for _ in range(20):
            Z = rng.normal(size=(n + 1, 2))
            Z *= R / np.linalg.norm(Z, axis=1)[:, None]
            y, center = np.sign(rng.normal(size=n + 1)), rng.normal(size=2)
            term, tolerance = rng.normal(size=2), 0.3
            first = PerturbedObjective(Z[:n], y[:n], loss, strength, center, term)
            exact = minimise(first, 1e-12, R)
            same = PerturbedObjective(Z[1:], y[1:], loss, strength, center, np.zeros(2))
            same = PerturbedObjective(Z[1:], y[1:], loss, strength, center, -same.gradient(exact))
            answers = [minimise(each, tolerance, R) for each in (first, same)]
            moved = float(np.linalg.norm(answers[0] - answers[1]))
            worst = max(worst, moved / solver_reach(tolerance, strength))
    assert 0 < worst <= 0.5  # the other half is for rounding


def test_the_claim_about_the_solver_is_the_one_that_is_planned():
    with Private(np.zeros((5, 2))).open(epsilon=1.0, delta=1e-6) as session:
        rows = session.hide(Rows(Cleaning(radius=1.0)))
        solution = hidden_solution(session, rows, tolerance=0.1, strength=2.0)
    assert solution.sensitivity == solver_reach(0.1, 2.0) == 0.2
