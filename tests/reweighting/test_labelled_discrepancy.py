"""The trust-region solver, the labelled moment, and what may be released of the discrepancy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from audit import epsilon_lower_bound
from dpadapt.papers.reweighting import labelled_discrepancy as module
from dpadapt.papers.reweighting.labelled_discrepancy import (
    ball_maximum,
    difference_of_convex,
    labelled_discrepancy,
    labelled_moment,
)
from dpadapt.papers.reweighting.queries import LabelledMoment
from dpadapt.papers.reweighting.released_discrepancy import LabelledDiscrepancy
from dpadapt.privacy import Cleaning, PrivacyError, Private

UNIT = {"label_range": (-1.0, 1.0), "unit_labels": True}


def _value(A, b, c, W):
    return np.einsum("ij,jk,ik->i", W, A, W) - 2 * W @ b + c


def _in_ball(rng, size, d, radius):
    W = rng.normal(size=(size, d))
    return radius * W / np.linalg.norm(W, axis=1)[:, None] * rng.random((size, 1)) ** (1 / d)


def _problems():
    """Random problems, and the corners: hard case, zero, definite, one-dimensional."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        d = int(rng.integers(1, 6))
        A = rng.normal(size=(d, d))
        yield A + A.T, rng.normal(size=d) * 10.0 ** rng.integers(-3, 2), rng.uniform(0.1, 3)
    yield np.diag([1.0, -1.0]), np.array([0.0, 0.5]), 1.0  # hard case
    yield np.diag([1.0, 1.0, -1.0]), np.array([0.0, 0.0, 0.3]), 2.0  # with a double eigenvalue
    yield np.diag([1.0, -1.0]), np.array([1e-14, 0.5]), 1.0  # nearly hard
    yield np.zeros((3, 3)), np.array([1.0, 2.0, 2.0]), 0.5
    yield np.zeros((2, 2)), np.zeros(2), 1.0
    yield np.eye(3), np.zeros(3), 1.5
    yield -np.eye(3), np.array([0.1, 0.0, 0.2]), 1.0  # interior
    yield -np.eye(3), np.array([3.0, 0.0, 4.0]), 1.0  # on the sphere


@pytest.mark.parametrize(("A", "b", "radius"), list(_problems()))
def test_ball_maximum_is_global(A, b, radius):
    rng = np.random.default_rng(1)
    found = ball_maximum(A, b, 0.3, radius)
    scale = 1 + np.abs(A).sum() * radius**2 + np.abs(b).sum() * radius
    assert np.linalg.norm(found.point) <= radius * (1 + 1e-12)
    np.testing.assert_allclose(
        found.reached, _value(A, b, 0.3, found.point[None])[0], atol=1e-12 * scale
    )
    # the dual value is an upper bound that the point attains
    assert abs(found.value - found.reached) <= 1e-9 * scale
    points = _in_ball(rng, 20_000, len(b), radius)
    assert found.value >= _value(A, b, 0.3, points).max() - 1e-12 * scale
    # first-order conditions, with a multiplier that is not negative
    slope = A @ found.point - b
    multiplier = max(
        0.0, float(slope @ found.point) / max(float(found.point @ found.point), 1e-300)
    )
    assert np.linalg.norm(slope - multiplier * found.point) <= 1e-6 * scale
    # no local search finds more
    starts = _in_ball(rng, 50, len(b), radius)
    step = np.linalg.norm(A, 2) + np.linalg.norm(b) / radius + 1e-9
    for _ in range(300):
        starts = starts + (starts @ A - b) / step
        starts /= np.maximum(1, np.linalg.norm(starts, axis=1) / radius)[:, None]
    assert found.value >= _value(A, b, 0.3, starts).max() - 1e-12 * scale


@pytest.mark.parametrize("a", [-2.0, -0.1, 0.0, 0.7])
def test_ball_maximum_in_one_dimension(a):
    for b in (-3.0, -0.05, 0.0, 0.4):
        inner = [b / a] if a < 0 and abs(b / a) <= 1.2 else []
        best = max(a * w * w - 2 * b * w for w in (-1.2, 1.2, *inner))
        found = ball_maximum([[a]], [b], 0.0, 1.2)
        assert found.value == pytest.approx(best, abs=1e-12)


def test_nearly_hard_cases_have_no_jump():
    values = [
        ball_maximum(np.diag([1.0, -1.0]), [g, 0.5], 0.0, 1.0).value
        for g in (0.0, 1e-300, 1e-18, 1e-12, 1e-9)
    ]
    np.testing.assert_allclose(values, 1.125, atol=1e-8)


def _sample(rng, n, d, radius=1.0):
    cleaning = Cleaning(radius=radius, **UNIT)
    X, y = cleaning(3 * rng.normal(size=(n, d)), 2 * rng.normal(size=n))
    return X, y


def test_the_discrepancy_moves_by_b_over_n_at_most():
    rng = np.random.default_rng(2)
    radius, norm_bound, n = 1.5, 2.0, 20
    B = (radius * norm_bound + 1) ** 2
    worst = 0.0
    for trial in range(400):
        d = int(rng.integers(1, 4))
        X, y = _sample(rng, n, d, radius)
        public = labelled_moment(*_sample(rng, 15, d, radius))
        X2, y2 = X.copy(), y.copy()
        X2[0], y2[0] = (v[0] for v in _sample(rng, 1, d, radius))
        if trial % 4 == 0:  # all rows alike but one
            X[:], y[:] = radius * np.eye(d)[0], -1.0
            X2, y2 = X.copy(), y.copy()
            y2[0] = 1.0
            public = labelled_moment(np.zeros((1, d)), np.zeros(1))
        moved = labelled_discrepancy(public, labelled_moment(X, y), norm_bound)
        moved -= labelled_discrepancy(public, labelled_moment(X2, y2), norm_bound)
        worst = max(worst, abs(moved) / (B / n))
    assert worst <= 1 + 1e-8
    # attained: at the maximiser the row's loss falls from B to 0
    row, other = np.array([[1.0]]), np.array([[-1.0]])
    public = labelled_moment(np.zeros((1, 1)), np.zeros(1))
    X, y = np.repeat(row, n, axis=0), np.full(n, -1.0)
    changed = labelled_moment(np.vstack([X[1:], other]), np.append(y[1:], -1.0))
    moved = labelled_discrepancy(public, labelled_moment(X, y), 1.0)
    moved -= labelled_discrepancy(public, changed, 1.0)
    assert moved == pytest.approx(4.0 / n, rel=1e-6)


def test_the_discrepancy_is_symmetric_and_zero_for_equal_samples():
    rng = np.random.default_rng(3)
    one, two = (labelled_moment(*_sample(rng, 30, 3)) for _ in range(2))
    assert labelled_discrepancy(one, two, 2.0) == pytest.approx(labelled_discrepancy(two, one, 2.0))
    assert labelled_discrepancy(one, one, 2.0) == pytest.approx(0.0, abs=1e-15)
    assert labelled_discrepancy(one, two, 2.0) > 0.01


@pytest.mark.parametrize("n", [100, 1000])
def test_the_value_of_local_search_jumps(n):
    public = labelled_moment([[0.0]], [0.4])
    rest = (0.4 * n + 1 - 1) / (n - 1)  # the mean label passes 0.4, the start, with the first row
    values, exact = [], []
    for first in (1.0, -1.0):
        y = np.append(first, np.full(n - 1, rest))
        private = labelled_moment(np.ones((n, 1)), y)
        values.append(difference_of_convex(public, private, 1.0, [0.4]))
        exact.append(labelled_discrepancy(public, private, 1.0))
    B = 4.0
    assert abs(values[0] - values[1]) / (B / n) > 30
    assert abs(exact[0] - exact[1]) / (B / n) <= 1 + 1e-8


def test_local_search_is_a_lower_bound_that_may_be_missed():
    rng = np.random.default_rng(4)
    for _ in range(60):
        public, private = (labelled_moment(*_sample(rng, 8, 2)) for _ in range(2))
        found = difference_of_convex(public, private, 1.0, _in_ball(rng, 1, 2, 1.0)[0])
        assert found <= labelled_discrepancy(public, private, 1.0) + 1e-9
    public = np.zeros((3, 3))
    private = np.array([[1.0, 0.0, 0.05], [0.0, -1.0, 0.0], [0.05, 0.0, 0.0]])
    assert difference_of_convex(public, private, 1.0, [0.5, 0.0]) == pytest.approx(0.9)
    assert labelled_discrepancy(public, private, 1.0) == pytest.approx(1.1)


def test_nothing_releases_the_value_of_local_search(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("local search must not be used on private rows")

    monkeypatch.setattr(module, "difference_of_convex", refuse)
    assert not {"solver", "method", "search"} & set(LabelledDiscrepancy.__dataclass_fields__)
    X, y = _sample(np.random.default_rng(0), 50, 2)
    target = LabelledDiscrepancy(X, y, 1.0, Cleaning(radius=1.0, **UNIT))
    assert 0 <= _release(target, X, y) <= target.loss_bound


def _release(target, X, y, *, calibration="gaussian", epsilon=1.0, delta=1e-6, seed=0):
    options = {"noise": "seeded", "random_state": seed}
    with Private(X, y).open(epsilon=epsilon, delta=delta, **options) as session:
        hidden = target.hide(session)
        grants = session.plan(d=target.mechanism(session, hidden, calibration=calibration))
        return target.release(session, grants.d, hidden)


def test_release_is_clamped_deterministic_and_near_the_truth():
    rng = np.random.default_rng(5)
    X, y = _sample(rng, 5000, 2)
    target = LabelledDiscrepancy(*_sample(rng, 50, 2), 1.0, Cleaning(radius=1.0, **UNIT))
    exact = labelled_discrepancy(
        labelled_moment(target.X, target.y), labelled_moment(X, y), target.norm_bound
    )
    assert _release(target, X, y) == _release(target, X, y)
    assert _release(target, X, y) != _release(target, X, y, seed=1)
    assert abs(_release(target, X, y) - exact) < 0.05
    far = [_release(target, X[:1], y[:1], epsilon=0.01, seed=seed) for seed in range(20)]
    assert min(far) == 0.0
    assert max(far) == target.loss_bound


def test_the_stated_sensitivity_and_noise():
    X, y = _sample(np.random.default_rng(0), 50, 2)
    target = LabelledDiscrepancy(X, y, 1.0, Cleaning(radius=1.0, **UNIT))
    B, n = 4.0, 1000
    with Private(np.zeros((n, 2)), np.zeros(n)).open(epsilon=0.5, delta=0.0) as session:
        hidden = target.hide(session)
        paper = target.mechanism(session, hidden, calibration="paper")
        assert paper.printed == B / n
        assert B / n < paper.sensitivity < B / n * (1 + 1e-5)
        grants = session.plan(d=target.mechanism(session, hidden, calibration="laplace"))
    assert grants.d.scale == pytest.approx(B / (n * 0.5), rel=1e-5)
    assert session.guarantee.epsilon == pytest.approx(0.5)


@pytest.mark.parametrize(("intercept", "weight"), [(0.0, 1.0), (0.5, 2.0), (9.0, 1.0)])
def test_the_labelled_moment_moves_as_it_says(intercept, weight):
    rng = np.random.default_rng(6)
    cleaning = Cleaning(radius=2.0, intercept=intercept, **UNIT)
    query, worst = LabelledMoment(cleaning, weight), 0.0
    for trial in range(2000):
        X, y = rng.normal(size=(1, 2)) * 9, rng.normal(size=1) * 9
        X2, y2 = (-X, -y) if trial % 2 else (rng.normal(size=(1, 2)) * 9, rng.normal(size=1) * 9)
        if trial == 1:  # the worst pair there is: orthogonal if possible, else opposite
            free = math.hypot(2.0, weight)
            cosine = max(-1.0, -(intercept**2) / free**2)
            # rotate (x, c y) within the plane of x_1 and the rest
            X, y = np.array([[2.0, 0.0]]), np.array([1.0])
            side = (cosine * free**2 + weight**2) / 2.0  # x.x' needed if y' = -y
            X2, y2 = np.array([[side, math.sqrt(max(0.0, 4 - side**2))]]), np.array([-1.0])
        one, two = (query.block(*cleaning(a, b)) for a, b in ((X, y), (X2, y2)))
        worst = max(worst, float(np.linalg.norm(one - two)) / query.sensitivity(1))
    assert 0.99 < worst <= 1 + 1e-12


def test_labelled_moment_needs_labels():
    with pytest.raises(ValueError, match="label_range"):
        LabelledMoment(Cleaning(radius=1.0))
    session = Private(np.ones((5, 1))).open(epsilon=1.0, delta=1e-6)
    with session, pytest.raises(PrivacyError, match="labels"):
        session.hide(LabelledMoment(Cleaning(radius=1.0, **UNIT)))


def test_public_rows_must_be_within_the_bounds():
    with pytest.raises(ValueError, match="within the bounds"):
        LabelledDiscrepancy(np.full((2, 1), 3.0), np.zeros(2), 1.0, Cleaning(radius=1.0, **UNIT))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("calibration", "holds"), [("gaussian", True), ("laplace", True), ("paper", False)]
)
def test_audit_of_the_released_discrepancy(calibration, holds):
    """The worst pair of neighbours at epsilon 0.5: the printed Laplace noise must fail."""
    epsilon, delta, runs, n = 0.5, 1e-6, 5000, 20
    target = LabelledDiscrepancy(np.zeros((1, 1)), np.zeros(1), 1.0, Cleaning(radius=1.0, **UNIT))
    X, y = np.ones((n, 1)), np.full(n, -1.0)
    other = np.vstack([X[1:], [[-1.0]]])
    outputs = []
    for rows in (X, other):
        with Private(rows, y).open(epsilon=epsilon, delta=delta) as session:
            planned = target.mechanism(session, target.hide(session), calibration=calibration)
            scale = session.plan(d=planned).d.scale
        # the same noise, as often as the audit needs it
        often = replace(planned, printed=scale, count=runs)
        options = {"noise": "seeded", "random_state": len(outputs)}
        with Private(rows, y).open(epsilon=epsilon, delta=delta, **options) as session:
            hidden, grants = target.hide(session), session.plan(d=often)
            outputs.append([target.release(session, grants.d, hidden) for _ in range(runs)])
    found = epsilon_lower_bound(*outputs, delta)
    assert (found <= epsilon) == holds, found
