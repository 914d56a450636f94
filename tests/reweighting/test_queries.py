"""Derived claims: random neighbours never exceed them, and they are attained where proofs say so.

The neighbours of the other statistics: test_known_noise (RowGradient, Level), test_profiled
(ClippedGradient, LogisticGradient), test_network, test_labelled_discrepancy (LabelledMoment),
test_statistics_solver (BoundedMoment).
"""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest

import dpadapt.reweighting
from dpadapt.papers.reweighting.labelled_discrepancy import labelled_moment, row_length
from dpadapt.papers.reweighting.objective import LogisticLoss, SquaredLoss
from dpadapt.papers.reweighting.queries import (
    LabelledMoment,
    StepClaims,
    hidden_candidate_discrepancy,
    hidden_labelled_discrepancy,
    hidden_loss,
)
from dpadapt.privacy import Cleaning, Private, Rows

N, ALPHA, REACH = 6, 0.25, 2.0
UNIT = Cleaning(radius=1.5, intercept=0.5, label_range=(-1.0, 1.0), unit_labels=True)
CLASSES = {k: Cleaning(radius=1.5, intercept=0.5, classes=k) for k in (2, 3)}
LENGTH = row_length(UNIT)
B = SquaredLoss().bound(LENGTH, REACH)
HOSTILE = [1e6, -1e6, math.inf, math.nan, 1e308, 0.0]


def opened(X, y):
    return Private(X, y).open(epsilon=1.0, delta=1e-6)


def in_ball(rng, *shape):
    w = rng.normal(size=shape)
    return REACH * rng.choice([1.0, rng.random()]) * w / np.linalg.norm(w)


def samples(rng, label, trials=100):
    """Pairs of samples that differ in the first row; some rows and labels are hostile."""
    for _ in range(trials):
        X, y = 3 * rng.normal(size=(N, 2)), np.array([label() for _ in range(N)])
        other, changed = X.copy(), y.copy()
        other[0] = [rng.normal(size=2), -X[0], X[0], rng.choice(HOSTILE, 2)][rng.integers(4)]
        changed[0] = [label(), -y[0], rng.choice(HOSTILE)][rng.integers(3)]
        yield (X, y), (other, changed)


def moved(derive, pair):
    """How far a derived value moves, over what it claims."""
    values = []
    for sample in pair:
        with opened(*sample) as session:
            hidden = derive(session)
        values.append(np.asarray(hidden._value))
    return float(np.linalg.norm(values[0] - values[1])) / hidden.sensitivity


def largest(pairs, derive):
    """The largest move over pairs of neighbours; ``derive`` is made anew for each."""
    return max(moved(derive(), pair) for pair in pairs)


# the two numbers of a labelled moment


def test_no_row_moves_the_discrepancy_or_a_loss_by_more_than_claimed():
    rng = np.random.default_rng(0)
    public = labelled_moment(*UNIT(rng.normal(size=(20, 2)), rng.uniform(-1, 1, 20)))

    def discrepancy():
        def derive(session):
            moment = session.hide(LabelledMoment(UNIT))
            return hidden_labelled_discrepancy(session, moment, public, REACH, B)

        return derive

    def loss():
        w = in_ball(rng, 3)

        def derive(session):
            return hidden_loss(session, session.hide(LabelledMoment(UNIT)), w, REACH, B)

        return derive

    pairs = list(samples(rng, lambda: rng.uniform(-1.5, 1.5)))
    assert 0.1 < largest(pairs, discrepancy) <= 1
    assert 0.1 < largest(pairs, loss) <= 1


def test_a_loss_that_falls_from_b_to_nothing_attains_both():
    cleaning = Cleaning(radius=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    X, y = np.ones((N, 1)), np.full(N, -1.0)
    other = X.copy()
    other[0] = -1.0
    zero = np.zeros((2, 2))

    def loss(session):
        moment = session.hide(LabelledMoment(cleaning))
        return hidden_loss(session, moment, np.array([1.0]), 1.0, 4.0)

    def discrepancy(session):
        return hidden_labelled_discrepancy(
            session, session.hide(LabelledMoment(cleaning)), zero, 1.0, 4.0
        )

    for derive in (loss, discrepancy):
        assert moved(derive, ((X, y), (other, y))) == pytest.approx(1, rel=1e-5)


# a step of Algorithms 1 and 2


def step(loss, cleaning, shape, rng, which):
    """Derive one of the three values of a step at a random w and u."""
    claims = StepClaims.of(loss, LENGTH, REACH, alpha=ALPHA, n=N, width=math.prod(shape))

    def derive():
        w, u = in_ball(rng, *shape), N / (1 - ALPHA) * rng.choice([1.0, 1.1], size=N)
        return lambda session: getattr(claims, which)(session, session.hide(Rows(cleaning)), w, u)

    return derive


@pytest.mark.parametrize("which", ["by_w", "by_u", "together"])
def test_no_row_moves_a_step_of_algorithm_1_by_more_than_claimed(which):
    rng = np.random.default_rng(1)
    pairs = list(samples(rng, lambda: rng.uniform(-1.5, 1.5)))
    assert 0.2 < largest(pairs, step(SquaredLoss(), UNIT, (3,), rng, which)) <= 1


@pytest.mark.parametrize("which", ["by_w", "by_u", "together"])
@pytest.mark.parametrize("k", [2, 3])
def test_no_row_moves_a_step_of_algorithm_2_by_more_than_claimed(k, which):
    rng, shape = np.random.default_rng(2), (3,) if k == 2 else (3, k)
    pairs = list(samples(rng, lambda: float(rng.integers(-1, k))))
    assert 0.2 < largest(pairs, step(LogisticLoss(k), CLASSES[k], shape, rng, which)) <= 1


def test_the_claims_of_algorithm_1_are_attained():
    cleaning = Cleaning(radius=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    claims = StepClaims.of(SquaredLoss(), 1.0, 1e-9, alpha=ALPHA, n=N, width=1)
    w, u = np.zeros(1), np.full(N, N / (1 - ALPHA))

    def attained(which, x, y):
        """Of a row whose residual is the root of B, and another one in its place."""
        rows, labels = np.zeros((2, N, 1)), np.zeros((2, N))
        rows[0, 0], labels[0, 0] = 1.0, -1.0
        rows[1, 0], labels[1, 0] = x, y
        pair = list(zip(rows, labels, strict=True))
        return moved(lambda s: getattr(claims, which)(s, s.hide(Rows(cleaning)), w, u), pair)

    assert attained("by_w", -1.0, -1.0) == pytest.approx(1, rel=1e-6)
    assert attained("by_u", 1.0, 0.0) == pytest.approx(1, rel=1e-6)
    share = (1 - math.sqrt(0.5)) / 2  # the worst residual beside the largest, over the root of B
    assert attained("together", -1.0, -share) == pytest.approx(1, rel=1e-6)
    assert attained("together", -1.0, -1.0) < 0.9


# the discrepancy over candidates


def test_no_row_moves_the_discrepancy_over_candidates_by_more_than_claimed():
    rng, k = np.random.default_rng(3), 3
    loss = LogisticLoss(k)
    bound = loss.bound(LENGTH, REACH)

    def derive():
        models = [in_ball(rng, 3, k) for _ in range(4)]
        public = [float(rng.uniform(0, bound)) for _ in models]

        def found(session):
            rows = session.hide(Rows(CLASSES[k]))
            return hidden_candidate_discrepancy(session, rows, loss, models, public, bound)

        return found

    pairs = list(samples(rng, lambda: float(rng.integers(-1, k))))
    assert 0.2 < largest(pairs, derive) <= 1


def test_the_claim_on_candidates_is_attained():
    cleaning = Cleaning(radius=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    X, y = np.ones((N, 1)), np.full(N, -1.0)
    other = X.copy()
    other[0] = -1.0

    def derive(session):
        rows, models = session.hide(Rows(cleaning)), [np.zeros(1), np.ones(1)]
        loss = SquaredLoss()
        return hidden_candidate_discrepancy(session, rows, loss, models, [0.0, 0.0], 4.0)

    assert moved(derive, ((X, y), (other, y))) == pytest.approx(1, rel=1e-6)


# where claims stand


def test_no_other_file_of_the_method_claims_a_sensitivity():
    method, paper = dpadapt.reweighting.__file__, dpadapt.papers.reweighting.__file__
    files = [each for file in (method, paper) for each in Path(file).parent.glob("*.py")]
    homes = [path for path in files if path.name == "queries.py"]
    assert homes, "the paper's claims"
    for path in set(files) - set(homes):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert node.name != "sensitivity", path.name
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr != "derive", path.name
