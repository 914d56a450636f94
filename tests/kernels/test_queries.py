"""Claims of sensitivity: never exceeded by neighbours in a session, attained where it is said."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt.kernels import queries
from dpadapt.kernels.constants import Bounds, constants
from dpadapt.kernels.erm import solve
from dpadapt.kernels.losses import HuberisedHinge, Logistic, Squared, one_against_rest
from dpadapt.kernels.pool import Pool
from dpadapt.papers.kernels import queries as paper
from dpadapt.privacy import Cleaning, Private, Rows

RADIUS, PENALTY = 2.0, 4.0


def hidden_rows(session):
    return session.hide(Rows(Cleaning(radius=RADIUS, label_range=(-1.0, 1.0))))


def moves(one, other, claim):
    """What a claim hides for two neighbours, and the sensitivity that it states for both."""
    found = []
    for rows, labels in (one, other):
        with Private(rows, labels).open(epsilon=1.0, delta=1e-6) as session:
            found.append(claim(session, hidden_rows(session)))
    first, second = found
    assert first.sensitivity == second.sensitivity
    return first._value - second._value, first.sensitivity


def ball(rng, n, d):
    rows = rng.normal(size=(n, d))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return RADIUS * rows / lengths * rng.random((n, 1)) ** (1 / d)


def neighbours(rng, n, d=3):
    """Random neighbours; one row in two is turned round, with its label."""
    rows, labels = ball(rng, n, d), rng.choice([-1.0, 1.0], n)
    other, signs = rows.copy(), labels.copy()
    if rng.random() < 0.5:
        other[0] = ball(rng, 1, d)
    signs[0] = -labels[0]
    return (rows, labels), (other, signs)


def worst_neighbours(d=3):
    """One row on the slope of the hinge, whose label changes: the model moves as far as it can."""
    rows = np.zeros((1, d))
    rows[0, 0] = RADIUS
    return (rows, np.ones(1)), (rows, -np.ones(1))


LOSS = HuberisedHinge(0.01)


def facts_of(n, loss=LOSS, columns=1):
    return constants(loss, RADIUS, PENALTY, n, width=3, columns=columns)


def solver(loss=LOSS, columns=1):
    def run(table):
        labels = table[:, -1] if columns == 1 else np.tile(table[:, -1:], (1, columns))
        return solve(table[:, :-1], labels, loss, PENALTY, RADIUS).reshape(3, -1)

    return run


def predicted(points, columns=1):
    """Predictions of the model at points, as a claim's hidden value."""
    run = solver(columns=columns)
    return lambda session, rows: queries.predictions(session, rows, lambda t: points @ run(t))


def both_kinds(claim, measure, *, seeds=40):
    """Largest move over its claim, for random neighbours and for the worst ones."""
    random, worst = [], measure(*moves(*worst_neighbours(), claim(1)))
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 12))
        random.append(measure(*moves(*neighbours(rng, n), claim(n))))
    return max(random), worst


def euclidean(move, claim):
    return float(np.linalg.norm(move)) / claim


# the model itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [LOSS, Logistic(), Squared(1.0)], ids=str)
def test_weights(loss):
    def claim(n):
        facts = facts_of(n, loss)
        return lambda session, rows: queries.weights(session, rows, solver(loss), facts)

    random, worst = both_kinds(claim, euclidean)
    assert 0.03 < random <= 1
    assert worst <= 1
    if loss is LOSS:
        assert worst > 0.98  # attained, but for the hundredth that the solver is given


def test_weights_of_several_models_move_together():
    def claim(n):
        facts = facts_of(n, columns=4)
        return lambda session, rows: queries.weights(session, rows, solver(columns=4), facts)

    random, worst = both_kinds(claim, euclidean, seeds=10)
    assert max(random, worst) <= 1
    assert worst > 0.98
    single = facts_of(1).sensitivity
    assert worst * facts_of(1, columns=4).sensitivity > 1.9 * single  # one Delta is too little


def test_a_row_of_no_class_moves_one_against_the_rest_no_further():
    rows = np.array([[RADIUS, 0.0, 0.0]])
    facts = facts_of(1, columns=3)
    moved = [
        solve(rows, one_against_rest(np.array([code]), 3), LOSS, PENALTY, RADIUS)
        for code in (0.0, 1.0, 2.0)
    ]
    for a in moved:
        for b in moved:
            assert np.linalg.norm(a - b) <= facts.sensitivity


# predictions at a pool ----------------------------------------------------------------------------


def unit_pool(rng, size, first=True):
    """Points of norm R; the first along the way in which the worst neighbours move."""
    Z = rng.normal(size=(size, 3))
    Z *= RADIUS / np.linalg.norm(Z, axis=1, keepdims=True)
    if first:
        Z[0] = [RADIUS, 0.0, 0.0]
    return Z


@pytest.mark.parametrize("size", [1, 4, 60])
def test_whitened_predictions(size):
    Z = unit_pool(np.random.default_rng(1), size)
    pool = Pool.of(Z @ Z.T)

    def claim(n):
        bounds = Bounds.joint(facts_of(n))
        return lambda s, rows: queries.whitened(s, predicted(Z)(s, rows), pool, bounds)

    random, worst = both_kinds(claim, euclidean)
    assert 0.03 < random <= 1
    assert 0.98 < worst <= 1


@pytest.mark.parametrize("columns", [1, 3])
def test_all_predictions(columns):
    Z = np.tile([[RADIUS, 0.0, 0.0]], (5, 1))  # the first eigenvector is the way of the move
    pool = Pool.of(Z @ Z.T)

    def claim(n):
        bounds = Bounds.joint(facts_of(n, columns=columns))
        values = predicted(Z, columns)
        return lambda s, rows: paper.all_predictions(s, values(s, rows), pool, bounds)

    random, worst = both_kinds(claim, euclidean, seeds=20)
    assert 0.03 < random <= 1
    assert 0.98 < worst <= 1


@pytest.mark.parametrize("columns", [1, 3])
def test_predictions_at_one_point(columns):
    Z = unit_pool(np.random.default_rng(2), 4)
    pool = Pool.of(Z @ Z.T)

    def claim(n):
        bounds = Bounds.joint(facts_of(n, columns=columns))
        values = predicted(Z, columns)
        return lambda s, rows: paper.prediction_at(s, values(s, rows), 0, pool, bounds)

    l1 = lambda move, claim: float(np.abs(move).sum()) / claim  # noqa: E731
    random, worst = both_kinds(claim, l1, seeds=20)
    assert 0.03 < random <= 1
    assert 0.98 < worst <= 1


# rounds of Algorithm 3 ----------------------------------------------------------------------------


def test_scores_of_points():
    """Where w_t lies between the two models, one score rises as much as another falls."""
    Z = np.array([[RADIUS, 0.0, 0.0], [0.0, RADIUS, 0.0]])

    def claim(fitted):
        def of(n):
            S = Bounds.each(facts_of(n)).prediction
            return lambda s, rows: paper.gap_scores(s, predicted(Z)(s, rows), fitted, 0, S)

        return of

    ranged = lambda move, claim: float(np.ptp(move)) / claim  # noqa: E731
    most = 0.0
    for fitted in (np.zeros(2), np.array([100.0, -3.0]), np.array([-100.0, 0.1])):
        random, worst = both_kinds(claim(fitted), ranged, seeds=20)
        most = max(most, worst)
        assert max(random, worst) <= 1
    assert most > 0.45  # one side of it; the other point stands still
    # two points along the move, one each side of it
    opposite = np.array([[RADIUS, 0.0, 0.0], [-RADIUS, 0.0, 0.0]])
    far = np.array([1e3, 1e3])  # w_t beyond both models, at both points

    def both_sides(n):
        S = Bounds.each(facts_of(n)).prediction
        return lambda s, rows: paper.gap_scores(s, predicted(opposite)(s, rows), far, 0, S)

    assert 0.98 < ranged(*moves(*worst_neighbours(), both_sides(1))) <= 1


def test_differences_at_a_point():
    Z = unit_pool(np.random.default_rng(3), 4)

    def claim(n):
        S = Bounds.each(facts_of(n)).prediction
        fitted = np.arange(4.0)
        return lambda s, rows: paper.difference_at(s, predicted(Z)(s, rows), fitted, 0, 0, S)

    random, worst = both_kinds(claim, euclidean)
    assert 0.03 < random <= 1
    assert 0.98 < worst <= 1


def weights_of(session, rows, n):
    return queries.weights(session, rows, solver(), facts_of(n))


def test_scores_of_the_ball():
    """Differences of two scores at many points of the ball, and the norm that bounds them."""
    rng = np.random.default_rng(4)
    points = np.vstack([unit_pool(rng, 200), [[-RADIUS, 0.0, 0.0]], np.zeros((1, 3))])

    def claim(n):
        S = Bounds.each(facts_of(n)).prediction
        w = np.array([0.05, 0.0, 0.0])
        return lambda s, rows: paper.away_from(s, weights_of(s, rows, n), w, S)

    radius_times_norm = lambda move, claim: 2 * RADIUS * float(np.linalg.norm(move)) / claim  # noqa: E731
    random, worst = both_kinds(claim, radius_times_norm)
    assert 0.03 < random <= 1
    assert 0.98 < worst <= 1
    for seed in range(20):
        rng = np.random.default_rng(seed)
        one, other = neighbours(rng, 4)
        values = []
        for rows, labels in (one, other):
            with Private(rows, labels).open(epsilon=1.0, delta=1e-6) as session:
                away = claim(4)(session, hidden_rows(session))
                values.append(np.abs(points @ away._value))
        assert np.ptp(values[0] - values[1]) <= away.sensitivity


def test_differences_along_a_point_of_the_ball():
    point = np.array([RADIUS, 0.0, 0.0])

    def claim(n):
        S = Bounds.each(facts_of(n)).prediction
        w = np.array([0.05, 0.2, 0.0])
        return lambda s, rows: paper.difference_along(s, weights_of(s, rows, n), w, point, S)

    random, worst = both_kinds(claim, euclidean)
    assert 0.03 < random <= 1
    assert 0.98 < worst <= 1


# the bounds ---------------------------------------------------------------------------------------


def test_bounds_of_all_outputs_and_of_one():
    facts = facts_of(50, columns=4)
    joint, each = Bounds.joint(facts), Bounds.each(facts)
    assert joint.model == each.model == facts.sensitivity
    assert joint.norm == pytest.approx(2 * each.norm)
    assert joint.error > each.error > 0
    assert each.prediction == pytest.approx(RADIUS * facts.sensitivity)
    assert math.isclose(Bounds(0.1, 1.0, 2.0, 0.05).prediction, 0.3)


@pytest.mark.parametrize(
    ("name", "value"), [("model", 0.0), ("norm", -1.0), ("radius", math.inf), ("error", -1e-9)]
)
def test_bad_bounds_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        Bounds(**{"model": 0.1, "norm": 1.0, name: value})
