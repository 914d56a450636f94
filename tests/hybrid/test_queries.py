"""What the curator's rows are asked: sensitivities on random neighbours, and where attained."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt.hybrid.queries import (
    Agreements,
    histograms,
    pairs_of,
    proportions,
    tilted_rows,
    tilted_slope,
)
from dpadapt.hybrid.questions import Mistake
from dpadapt.hybrid.rules import FunctionRule, LinearRule
from dpadapt.hybrid.signed_rows import SignedRows
from dpadapt.hybrid.tilt.ratio import Law, Ratio
from dpadapt.papers.hybrid.doors.weights import RowWeights, log_cap, projected, weighted_sensitivity
from dpadapt.papers.hybrid.finite_class import RuleList, sparse_separators
from dpadapt.papers.hybrid.learners import LearningTask
from dpadapt.papers.hybrid.queries import ClassLosses, WeightedSlope, hide_scores, lower_weights
from dpadapt.privacy import Private

WIDTH = 5
GRID = np.tile(np.linspace(-2, 2, 9), (WIDTH, 1))
HOSTILE = [math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, 5e-324]


def row(rng):
    """A row of any kind: usual, far, or with cells that are no numbers."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.normal(size=WIDTH)
    if kind == 1:
        return rng.choice([-9.0, 9.0], WIDTH)
    if kind == 2:
        return rng.normal(size=WIDTH) * 10.0 ** rng.uniform(-5, 5)
    return rng.choice(HOSTILE, WIDTH)


def part(query, X, y):
    """What one row adds to the sum."""
    return query.block(*query.cleaning(np.atleast_2d(X), np.atleast_1d(y)))


def largest_move(query, rng, tries=400):
    moves = [
        np.linalg.norm(part(query, row(rng), rng.choice(2)) - part(query, row(rng), rng.choice(2)))
        for _ in range(tries)
    ]
    return max(moves)


def marginals(width=WIDTH):
    rows = SignedRows(width)
    return {
        "histograms": histograms(rows, GRID[:width]),
        "proportions": proportions(rows, np.array([-np.ones(width), np.ones(width)])),
        "agreements": Agreements(rows, np.zeros(width)),
    }


@pytest.mark.parametrize("name", marginals())
def test_no_neighbour_moves_a_marginal_beyond_its_sensitivity(name):
    query = marginals()[name]
    found = largest_move(query, np.random.default_rng(0))
    assert 0.9 * query.sensitivity(1) <= found <= query.sensitivity(1) * (1 + 1e-12)
    assert query.sensitivity(100) == pytest.approx(query.sensitivity(1) / 100)


@pytest.mark.parametrize("name", ["histograms", "proportions"])
def test_opposite_corners_attain_the_sensitivity(name):
    query = marginals()[name]
    move = part(query, np.full(WIDTH, -9.0), 0) - part(query, np.full(WIDTH, 9.0), 0)
    assert np.linalg.norm(move) == pytest.approx(math.sqrt(2 * WIDTH), rel=2e-12)  # but for a hair
    assert query.sensitivity(1) == pytest.approx(math.sqrt(2 * WIDTH), rel=1e-12)


@pytest.mark.parametrize("width", [2, 3, 4, 5, 8])
def test_half_of_the_signs_attain_the_sensitivity_of_pairs(width):
    query = Agreements(SignedRows(width), np.zeros(width))
    one = np.ones(width)
    other = np.where(np.arange(width) < width // 2, -1.0, 1.0)
    move = np.linalg.norm(part(query, one, 0) - part(query, other, 0))
    assert move == pytest.approx(query.sensitivity(1), rel=1e-12)
    # all sign vectors: none moves it further, and a smaller claim would be broken
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * width)).reshape(width, -1).T
    parts = np.array([part(query, each, 0) for each in signs])
    apart = np.linalg.norm(parts[:, None] - parts[None], axis=2).max()
    assert apart == pytest.approx(query.sensitivity(1), rel=1e-12)
    assert apart > 0.99 * math.sqrt(width**2 // 4)


def test_pairs_are_in_the_order_of_the_agreements():
    first, second = pairs_of(4)
    X = np.random.default_rng(1).normal(size=(50, 4))
    found = Agreements(SignedRows(4), np.zeros(4)).block(X, None)
    expected = [((X[:, i] > 0) == (X[:, j] > 0)).sum() for i, j in zip(first, second, strict=True)]
    np.testing.assert_array_equal(found, expected)


# gradients of tilted rows


def ratio():
    source = Law(np.zeros(WIDTH), np.ones(WIDTH), np.eye(WIDTH))
    return Ratio(source, Law(np.full(WIDTH, 0.5), np.full(WIDTH, 0.4), np.eye(WIDTH)))


def tilted(features="squares", top=3.0):
    tilt, width = ratio(), WIDTH
    rule = LinearRule(features, np.zeros(width), np.ones(width), np.zeros(width + 1), (0, 1))
    return tilted_rows(rule, lambda X, y: np.exp(np.minimum(tilt.logs(X) - top, 0.0)))


@pytest.mark.parametrize("features", ["linear", "squares"])
def test_no_neighbour_moves_a_gradient_beyond_two(features):
    rng = np.random.default_rng(2)
    rows = tilted(features)
    for size in (0.0, 1.0, 150.0):
        v = size * rng.normal(size=rows.measured)
        assert largest_move(tilted_slope(rows, v), rng, 150) <= 2.0


def test_two_rows_attain_the_bound_of_the_gradient():
    rule = LinearRule("linear", np.zeros(1), np.ones(1), np.zeros(2), (0, 1))
    rows = tilted_rows(rule, lambda X, y: np.ones(len(X)))
    query = tilted_slope(rows, np.array([0.0, 1e6]))  # says 1 to everybody
    move = np.linalg.norm(part(query, [1e3], 0) - part(query, [-1e3], 0))
    assert move == pytest.approx(2.0, rel=1e-5)
    assert move <= query.sensitivity(1)


def test_a_weight_is_a_function_of_its_row_alone():
    rows = tilted()
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, WIDTH)), rng.integers(0, 2, 40).astype(float)
    before, _ = rows(X, y)
    for hostile in (np.full(WIDTH, 1e300), np.full(WIDTH, math.nan), np.zeros(WIDTH)):
        changed = X.copy()
        changed[7] = hostile
        after, _ = rows(changed, y)
        others = np.arange(40) != 7
        np.testing.assert_array_equal(before[others], after[others])
        assert np.linalg.norm(after[:, : rows.measured], axis=1).max() <= 1.0
        assert 0 <= after[:, -2].min() <= after[:, -2].max() <= 1.0


def test_weights_divided_by_their_sum_would_break_the_bound():
    """The self-normalised gradient looks better and moves further: never do it."""
    rows = tilted()
    rng = np.random.default_rng(4)
    n = 30
    X, y = 6 + rng.normal(size=(n, WIDTH)), np.ones(n)  # rows that hardly weigh anything
    near = X.copy()
    near[0] = 0.5  # in the middle of the target

    def normalised(table):
        Z, signs = rows(table, y)
        slope = tilted_slope(rows, np.zeros(rows.measured)).block(Z, signs)
        return slope / Z[:, -2].sum()

    ours = tilted_slope(rows, np.zeros(rows.measured))
    bound = ours.sensitivity(n)
    mean = [ours.block(*rows(table, y)) / n for table in (X, near)]
    assert np.linalg.norm(mean[0] - mean[1]) <= bound
    assert np.linalg.norm(normalised(X) - normalised(near)) > bound


def test_a_row_of_no_class_pulls_nowhere():
    rows = tilted()
    query = tilted_slope(rows, np.ones(rows.measured))
    for label in (-1.0, 2.0, math.nan, 0.5):
        assert not part(query, np.zeros(WIDTH), label).any()


@pytest.mark.parametrize(
    "wild", [lambda X, y: np.full(len(X), 7.0), lambda X, y: 1 / (0 * X[:, 0])]
)
def test_weights_are_cut_to_one(wild):
    rule = LinearRule("linear", np.zeros(2), np.ones(2), np.zeros(3), (0, 1))
    with np.errstate(all="ignore"):
        found, _ = tilted_rows(rule, wild)(np.ones((3, 2)), np.ones(3))
    assert found[:, -2].max() <= 1.0


# gradients and mistakes of weighted rows


def task_for(n, d):
    return LearningTask(
        n, d, LinearRule("linear", np.zeros(d), np.ones(d), np.zeros(d + 1), (0, 1))
    )


def mu_of(log_weights, density):
    kept = projected(log_weights, log_cap(log_weights, density))
    return kept / (density * len(log_weights))


def test_the_weighted_gradient_is_the_gradient():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 3)) / 4
    y, mu = rng.choice([-1.0, 1.0], 40), rng.random(40)
    v = rng.normal(size=3)
    query = WeightedSlope(task_for(40, 2).embedded, v)
    loss = lambda v: np.sum(mu * np.logaddexp(0, -y * (Z @ v)))  # noqa: E731
    steps = np.eye(3) * 1e-6
    slopes = [(loss(v + e) - loss(v - e)) / 2e-6 for e in steps]
    np.testing.assert_allclose(query.weighted_block(Z, y, mu), slopes, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(query.block(Z, y), query.weighted_block(Z, y, np.ones(40)))
    np.testing.assert_array_equal(query.weighted_block(Z, 0 * y, mu), 0)
    np.testing.assert_array_equal(query.weighted_block(Z, None, mu), 0)


def weighted_pair(n, rng, v, rows):
    """Weighted gradients of two samples that differ in the first row and in its weight."""
    density = rng.uniform(1 / n, 1)
    query = WeightedSlope(task_for(n, len(v) - 1).embedded, v)
    Z = rng.normal(size=(n, len(v)))
    Z /= np.maximum(1, np.linalg.norm(Z, axis=1))[:, None]
    y, log, found = rng.choice([-1.0, 0.0, 1.0], n), rng.exponential(2, n), []
    for z, label, weight in rows:
        Z[0], y[0], log[0] = z, label, weight
        found.append(query.weighted_block(Z, y, mu_of(log, density)))
    return np.linalg.norm(found[0] - found[1]) / weighted_sensitivity(query, density, n)


def test_no_neighbour_moves_the_weighted_gradient_beyond_its_sensitivity():
    rng, worst = np.random.default_rng(1), 0.0
    for _ in range(2000):
        v = rng.normal(size=3) * 10.0 ** rng.integers(-1, 4)
        rows = []
        for _ in range(2):
            z = rng.normal(size=3)
            rows.append((z / np.linalg.norm(z), rng.choice([-1.0, 1.0]), rng.exponential(4)))
        worst = max(worst, weighted_pair(12, rng, v, rows))
    assert 0.7 < worst <= 1


def test_the_sensitivity_of_the_weighted_gradient_is_attained():
    """Rows on the wrong side of a large v, almost orthogonal to it, and opposite to each other."""
    v, a = np.array([1e4, 0.0, 0.0]), 0.003
    rows = [(np.array([-a, side * math.sqrt(1 - a * a), 0.0]), 1.0, 500.0) for side in (1, -1)]
    assert weighted_pair(12, np.random.default_rng(0), v, rows) == pytest.approx(1, abs=1e-4)


def test_range_sensitivity_on_random_neighbours():
    """Row and weight of one record change; differences of scores move by 2 q at most."""
    rng = np.random.default_rng(0)
    nearest = 0.0
    for turn in range(600):
        n, d, density = rng.integers(4, 12), 2, rng.uniform(0.3, 1)
        task, separators = task_for(int(n), d), sparse_separators(d, 1, thresholds=(-0.5, 0.5))
        query = ClassLosses(separators, separators.cleaning(task))
        X, y = rng.normal(size=(n, d)), rng.choice([0.0, 1.0], n)
        logs = rng.normal(size=n) * rng.choice([0.0, 1.0, 3.0])
        other, labels, moved = X.copy(), y.copy(), logs.copy()
        if turn % 2:  # the worst: the heaviest row, on which opposite hypotheses err
            logs[0] = moved[0] = 10.0
            X[0], other[0] = (3.0, 3.0), (-3.0, -3.0)
        else:
            other[0], labels[0] = 3 * rng.normal(size=d), rng.choice([0.0, 1.0])
            moved[0] = rng.normal() * 3

        first, second = (
            query.weighted_block(*query.cleaning(*rows), mu_of(weights, density))
            for rows, weights in (((X, y), logs), ((other, labels), moved))
        )
        change = first - second
        bound = query.range_sensitivity(float(density), int(n))
        assert np.ptp(change) <= bound
        assert np.linalg.norm(change) <= 2 * query.magnitude / (density * n) * (1 + 1e-9)
        nearest = max(nearest, np.ptp(change) / bound)
    assert nearest > 0.999  # so half of it would be seen to be wrong


def test_losses_of_one_row_are_as_far_apart_as_all_hypotheses():
    """Attained: all hypotheses err on the one row, and none on the other."""
    rule = LinearRule("linear", [0.0], [1.0], [1.0, 0.0], (0, 1))
    query = ClassLosses(RuleList((rule,) * 7), task_for(2, 1).rows)
    move = part(query, [3.0], 0) - part(query, [3.0], 1)
    assert np.linalg.norm(move) == pytest.approx(query.sensitivity(1), rel=1e-12)
    rng = np.random.default_rng(6)
    query = ClassLosses(sparse_separators(WIDTH, 2), task_for(2, WIDTH).embedded)
    assert 0 < largest_move(query, rng, 100) <= query.sensitivity(1)


@pytest.mark.parametrize("density", [1.0, 0.25])
def test_scores_claim_the_range_and_not_the_norm(density):
    """Many hypotheses: the l2 norm of the same losses would be charged for 26 times as much."""
    separators = sparse_separators(WIDTH, 2)
    query = ClassLosses(separators, separators.cleaning(task_for(40, WIDTH)))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, WIDTH)), rng.choice([0.0, 1.0], 40)
    with Private(X, y).open(epsilon=1.0, delta=1e-6) as session:
        scores = hide_scores(session, query, RowWeights(session), density)
    assert scores.sensitivity == query.range_sensitivity(density, 40)
    assert 2 / (density * 40) < scores.sensitivity < 2 / (density * 40) * (1 + 1e-6)
    assert weighted_sensitivity(query, density, 40) > 10 * scores.sensitivity
    mistakes = query.block(*query.cleaning(X, y)) / 40
    np.testing.assert_allclose(scores._value, mistakes, atol=1e-12)


# weights


def stored(X, y, rules, rate):
    task = task_for(*X.shape)
    with Private(X, y).open(epsilon=1.0, delta=1e-6) as session:
        weights = RowWeights(session)
        for rule in rules:
            lower_weights(weights, rule, task.rows, rate)
        return weights._log.copy()


def test_neighbours_have_weights_that_differ_in_one_row():
    """Rows of any kind, also such that a rule fails on them; to the last bit."""
    rng, rate, changed = np.random.default_rng(8), 0.7, 0
    broken = FunctionRule(lambda X: 1 / int(np.abs(X).max() < 100) * X[:, 0], (0, 1))
    for _ in range(20):
        rules = [
            LinearRule(
                "linear", np.zeros(WIDTH), np.ones(WIDTH), rng.normal(size=WIDTH + 1), (0, 1)
            )
            for _ in range(2)
        ]
        X = np.array([row(rng) for _ in range(12)])
        y = rng.choice([0.0, 1.0, math.nan], 12)
        other, labels = X.copy(), y.copy()
        other[5], labels[5] = row(rng), rng.choice([0.0, 1.0])
        one, two = (stored(*pair, [*rules, broken], rate) for pair in ((X, y), (other, labels)))
        rest = np.arange(12) != 5
        np.testing.assert_array_equal(one[rest], two[rest])
        assert min(one.min(), two.min()) >= -3 * rate - 1e-12
        assert max(one.max(), two.max()) <= 0
        changed += one[5] != two[5]
    assert changed > 3


def test_a_weight_falls_by_the_rate_where_the_rule_is_right():
    rule = LinearRule("linear", [0.0], [1.0], [1.0, 0.0], (0, 1))
    X, y = np.array([[1.0], [1.0], [1.0]]), np.array([1.0, 0.0, math.nan])
    # who has no label fades as who is always right
    np.testing.assert_allclose(stored(X, y, [rule], 0.3), [-0.3, 0.0, -0.3])
    signs = np.array([1.0, -1.0, 0.0])
    np.testing.assert_array_equal(Mistake(rule).values(X, signs), [0.0, 1.0, 1.0])
