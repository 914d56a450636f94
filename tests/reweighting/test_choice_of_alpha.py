"""Choosing alpha and kappa: on a hold-out, by a free score, by random stopping."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.papers.reweighting.choice import (
    Candidate,
    candidate_grid,
    choose_by_random_stopping,
    choose_by_score,
    choose_on_holdout,
    public_loss_bound,
)
from dpadapt.papers.reweighting.moment_regression import MomentRegression
from dpadapt.papers.reweighting.profiled import ProfiledRegression
from dpadapt.papers.selection.random_stopping import RandomStoppingEvent
from dpadapt.privacy import Cleaning
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.events import ParallelEvent
from dpadapt.privacy.mechanisms import CandidateLosses

CLEANING = Cleaning(5.0, intercept=1.0, label_range=(-1.0, 1.0), unit_labels=True)


def public(m=400):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(m, 2)), np.ones(m)])
    return X, np.clip(X @ [0.1, 0.1, 0.0] + 0.1 * rng.normal(size=m), -1, 1)


def private(n=4000):
    rng = np.random.default_rng(1)
    T = rng.normal(size=(n, 2))
    return T, np.clip(T @ [0.1, -0.1] + 0.05 * rng.normal(size=n), -1, 1)


def opened(epsilon=1.0, seed=0, n=4000, delta=1e-6):
    options = {"noise": "seeded", "random_state": seed}
    return Private(*private(n)).open(epsilon=epsilon, delta=delta, **options)


SOLVER = MomentRegression(*public())
GRID = [Candidate(alpha, 100.0) for alpha in (1.0, 0.05)]  # the public model, and the shift


def on_holdout(**options):
    with opened(**options) as session:
        chosen = choose_on_holdout(session, CLEANING, SOLVER, GRID)
    return chosen, session.guarantee


def test_training_and_choice_cost_the_larger_of_the_two():
    chosen, guarantee = on_holdout()
    assert chosen.candidate == GRID[1]
    (event,) = guarantee.events
    assert isinstance(event, ParallelEvent)
    train, holdout = event.branches
    # the training part has its whole budget: what the choice takes is not taken from it
    assert train[0].sensitivity == pytest.approx(2 * math.sqrt(2) / 2800, rel=1e-6)
    assert train[0].gaussian_mu == pytest.approx(gaussian_mu(1.0, 1e-6), rel=1e-6)
    assert len(holdout) == 1
    assert guarantee.epsilon <= 1.0


def test_the_choice_is_as_noisy_as_its_range_asks_for():
    _, guarantee = on_holdout()
    ((_, (choice,)),) = (event.branches for event in guarantee.events)
    model = SOLVER.public_model
    bound = public_loss_bound(SOLVER.X, SOLVER.y, model.start / model.row_unit)
    assert choice.sensitivity == pytest.approx(2 * bound / 1200, rel=1e-6)
    assert choice.sensitivity >= 2 * bound / 1200
    assert choice.scale == pytest.approx(2 * bound / (1200 * 1.0), rel=1e-6)  # 2B / (n_val epsilon)


def test_a_tiny_budget_chooses_nearly_at_random():
    chosen = {on_holdout(epsilon=1e-3, seed=seed)[0].index for seed in range(30)}
    assert chosen == {0, 1}


def test_range_sensitivity_is_never_passed_and_attained():
    rng, worst = np.random.default_rng(0), 0.0
    cleaning = Cleaning(1.0, label_range=(-1.0, 1.0), unit_labels=True)
    w = np.array([0.0, 1.0])
    query = CandidateLosses(lambda X, y: (X * w - y[:, None]) ** 2, 2, 1.0, cleaning)
    for _ in range(4000):
        T, y = rng.normal(size=(4, 1)), rng.normal(size=4)
        other, labels = T.copy(), y.copy()
        other[0] = rng.choice([1e6, np.nan, 1.0, 0.0, rng.normal()])
        labels[0] = rng.choice([1e6, np.inf, 1.0, 0.0, rng.normal()])
        before, after = (query.block(*cleaning(*each)) / 4 for each in ((T, y), (other, labels)))
        difference = (before - after)[0] - (before - after)[1]
        worst = max(worst, abs(difference) / (2 * 1.0 / 4))
    assert worst <= 1 + 1e-12
    first = query.block(*cleaning(np.array([[1.0]]), np.array([1.0])))  # losses 1 and 0
    second = query.block(*cleaning(np.array([[1.0]]), np.array([0.0])))  # losses 0 and 1
    moved = (first - second)[0] - (first - second)[1]
    assert moved == pytest.approx(2.0)  # twice the bound: a range of one bound would be passed


def test_hold_out_rows_do_not_enter_the_training_part():
    T, y = private(1000)
    held = np.diff(np.floor(np.arange(1001) * 0.3)) > 0
    changed = y.copy()
    changed[held] = -changed[held]
    answers = []
    for labels in (y, changed):
        data = Private(T, labels)
        with data.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
            only = [GRID[1]]
            answers.append(choose_on_holdout(session, CLEANING, SOLVER, only).coefficients)
    np.testing.assert_array_equal(*answers)


def test_a_score_of_the_release_is_free():
    with opened() as session:
        moment = SOLVER.fit(session, CLEANING)
    before = session.guarantee.epsilon
    chosen = choose_by_score(moment, SOLVER, GRID, lambda each, w: each.alpha)
    assert chosen.index == 1
    np.testing.assert_array_equal(
        chosen.coefficients, SOLVER.solve(moment, alpha=0.05, kappa=100.0)
    )
    assert session.guarantee.epsilon == before <= 1.0
    # a score that is no number is the worst
    assert (
        choose_by_score(moment, SOLVER, GRID, lambda each, w: np.nan if each.alpha < 1 else 1).index
        == 0
    )


SOLVERS = [
    ProfiledRegression(*public(), alpha=0.99),
    ProfiledRegression(*public(), alpha=0.0, kappa=0.003),
]


def stopping(seed=0, epsilon=4.0):
    with opened(epsilon=epsilon, seed=seed) as session:
        found = choose_by_random_stopping(session, CLEANING, SOLVERS, random_state=seed)
    return found, session.guarantee


def test_random_stopping_is_charged_for_and_finds_the_better_solver():
    found = [stopping(seed) for seed in range(12)]
    # the logarithmic law often stops after one run, whichever solver that was
    assert sum(index for (index, _), _ in found) >= 8
    guarantee = found[0][1]
    (event,) = guarantee.events
    assert isinstance(event, RandomStoppingEvent)
    gradients, score = event.base
    assert gradients.count == 40
    assert (
        score.sensitivity
        >= public_loss_bound(SOLVERS[0].X, SOLVERS[0].y, SOLVERS[0].start / SOLVERS[0].row_unit)
        / 4000
    )
    assert guarantee.epsilon <= 4.0
    # one run alone must cost much less than the whole: the repetition is charged
    alone = math.hypot(gradients.gaussian_mu, score.gaussian_mu)
    assert alone < 0.7 * gaussian_mu(4.0, 1e-6)


def test_same_seed_same_choice():
    (first, w), (again, v) = (stopping(3)[0] for _ in range(2))
    assert first == again
    np.testing.assert_array_equal(w, v)


def test_bad_input_is_named():
    with opened() as session, pytest.raises(ValueError, match="candidates"):
        choose_on_holdout(session, CLEANING, SOLVER, [])
    with opened() as session, pytest.raises(ValueError, match="holdout"):
        choose_on_holdout(session, CLEANING, SOLVER, GRID, holdout=1.0)
    with opened() as session, pytest.raises(ValueError, match="solvers"):
        choose_by_random_stopping(session, CLEANING, [])
    mixed = [SOLVERS[0], ProfiledRegression(*public(), steps=7)]
    with opened() as session, pytest.raises(ValueError, match="number of steps"):
        choose_by_random_stopping(session, CLEANING, mixed)
    mixed = [SOLVERS[0], ProfiledRegression(*public(), alpha=1.0)]
    with opened() as session, pytest.raises(ValueError, match="alpha below 1"):
        choose_by_random_stopping(session, CLEANING, mixed)


def test_grid_is_in_units_of_the_public_residual():
    grid = candidate_grid(SOLVER, alphas=(0.5,), kappas=(1.0, 2.0))
    assert grid[1].kappa == 2 * grid[0].kappa == 2 * SOLVER.public_model.residual**2
