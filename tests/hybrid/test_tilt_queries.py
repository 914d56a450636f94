"""What the tilt asks the curator's rows: sensitivities on random neighbours, and where attained."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt.hybrid.learners import SignedRows
from dpadapt.hybrid.rules import LinearRule
from dpadapt.hybrid.tilt_queries import (
    Agreements,
    Histograms,
    Proportions,
    TiltedRows,
    TiltedSlope,
    pairs_of,
)
from dpadapt.hybrid.tilt_ratio import Law, Ratio

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
        "histograms": Histograms(rows, GRID[:width]),
        "proportions": Proportions(rows, np.array([-np.ones(width), np.ones(width)])),
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
    assert np.linalg.norm(move) == pytest.approx(math.sqrt(2 * WIDTH), rel=1e-12)
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


def tilted_rows(features="squares", top=3.0):
    tilt, width = ratio(), WIDTH
    rule = LinearRule(features, np.zeros(width), np.ones(width), np.zeros(width + 1), (0, 1))
    return TiltedRows(rule, lambda X, y: np.exp(np.minimum(tilt.logs(X) - top, 0.0)))


@pytest.mark.parametrize("features", ["linear", "squares"])
def test_no_neighbour_moves_a_gradient_beyond_two(features):
    rng = np.random.default_rng(2)
    rows = tilted_rows(features)
    for size in (0.0, 1.0, 150.0):
        v = size * rng.normal(size=rows.rule.width)
        assert largest_move(TiltedSlope(rows, v), rng, 150) <= 2.0


def test_two_rows_attain_the_bound_of_the_gradient():
    rule = LinearRule("linear", np.zeros(1), np.ones(1), np.zeros(2), (0, 1))
    rows = TiltedRows(rule, lambda X, y: np.ones(len(X)))
    query = TiltedSlope(rows, np.array([0.0, 1e6]))  # says 1 to everybody
    move = np.linalg.norm(part(query, [1e3], 0) - part(query, [-1e3], 0))
    assert move == pytest.approx(2.0, rel=1e-5)
    assert move <= query.sensitivity(1)


def test_a_weight_is_a_function_of_its_row_alone():
    rows = tilted_rows()
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, WIDTH)), rng.integers(0, 2, 40).astype(float)
    before, _ = rows(X, y)
    for hostile in (np.full(WIDTH, 1e300), np.full(WIDTH, math.nan), np.zeros(WIDTH)):
        changed = X.copy()
        changed[7] = hostile
        after, _ = rows(changed, y)
        others = np.arange(40) != 7
        np.testing.assert_array_equal(before[others], after[others])
        assert np.linalg.norm(after[:, :-1], axis=1).max() <= 1.0
        assert 0 <= after[:, -1].min() <= after[:, -1].max() <= 1.0


def test_weights_divided_by_their_sum_would_break_the_bound():
    """The self-normalised gradient looks better and moves further: never do it."""
    rows = tilted_rows()
    rng = np.random.default_rng(4)
    n = 30
    X, y = 6 + rng.normal(size=(n, WIDTH)), np.ones(n)  # rows that hardly weigh anything
    near = X.copy()
    near[0] = 0.5  # in the middle of the target

    def normalised(table):
        Z, signs = rows(table, y)
        slope = TiltedSlope(rows, np.zeros(rows.rule.width)).block(Z, signs)
        return slope / Z[:, -1].sum()

    ours = TiltedSlope(rows, np.zeros(rows.rule.width))
    bound = ours.sensitivity(n)
    mean = [ours.block(*rows(table, y)) / n for table in (X, near)]
    assert np.linalg.norm(mean[0] - mean[1]) <= bound
    assert np.linalg.norm(normalised(X) - normalised(near)) > bound


def test_a_row_of_no_class_pulls_nowhere():
    rows = tilted_rows()
    query = TiltedSlope(rows, np.ones(rows.rule.width))
    for label in (-1.0, 2.0, math.nan, 0.5):
        assert not part(query, np.zeros(WIDTH), label).any()


@pytest.mark.parametrize(
    "wild", [lambda X, y: np.full(len(X), 7.0), lambda X, y: 1 / (0 * X[:, 0])]
)
def test_weights_are_cut_to_one(wild):
    rule = LinearRule("linear", np.zeros(2), np.ones(2), np.zeros(3), (0, 1))
    with np.errstate(all="ignore"):
        found, _ = TiltedRows(rule, wild)(np.ones((3, 2)), np.ones(3))
    assert found[:, -1].max() <= 1.0
