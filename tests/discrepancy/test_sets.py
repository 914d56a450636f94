"""Algorithm 1 over other sets; the one-sided discrepancy; how far labels differ."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpadapt import DiscrepancyRegressor, Private
from dpadapt.discrepancy import (
    AdaptationObjective,
    Ball,
    Box,
    FrankWolfe,
    GroupSimplex,
    MirrorDescent,
    NoisySingleStage,
    OneSidedSoftmax,
    Simplex,
    SingleStage,
    Softmax,
    Vertices,
    discrepancy,
    label_difference,
)
from dpadapt.papers.discrepancy.queries import vertex_range
from dpadapt.privacy import Cleaning
from dpadapt.privacy.statistics import SecondMoment

QUERY = SecondMoment(Cleaning(radius=1.0))
CORNERS = np.array(list(itertools.product([0.0, 0.4], repeat=4)))
POLYHEDRA = {
    "simplex": Simplex(4),
    "groups": GroupSimplex(np.array([0, 1, 1, 0])),
    "box": Vertices(CORNERS),
    "signed": Vertices(np.array([[1.0, 0, 0, 0], [0, 2.0, -1.0, 0], [0, 0, 0, -1.0]])),
}


def objective(mu=3.0, m=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return AdaptationObjective(X, X[:, 0], Softmax(mu), radius=1.0)


def release(algorithm, rows, epsilon=1.0, seed=0):
    options = {"noise": "seeded", "random_state": seed}
    with Private(rows).open(epsilon=epsilon, delta=1e-6, **options) as session:
        grants = session.plan(**algorithm.mechanisms(session, QUERY))
        found = algorithm.release(session, grants, session.hide(QUERY))
    return found, session.guarantee


@pytest.mark.parametrize("name", POLYHEDRA)
def test_no_row_swings_scores_of_vertices_by_more_than_the_claim(name):
    polyhedron, f, n = POLYHEDRA[name], objective(), 4
    rng, worst = np.random.default_rng(1), 0.0
    claim = vertex_range(f, QUERY, n, polyhedron.swing)
    for _ in range(1500):
        rows = rng.normal(size=(n, 2))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        other = rows.copy()
        other[0] = rng.choice([-1.0, 0.0, 1.0], size=2)
        other[0] /= max(1.0, np.linalg.norm(other[0]))
        q, w = rng.dirichlet(np.ones(4)), rng.normal(size=2) / 3
        moved = [polyhedron.scores(f.weight_gradient(q, w, T.T @ T / n)) for T in (rows, other)]
        worst = max(worst, float(np.ptp(moved[0] - moved[1])))
    assert 0.15 * claim < worst <= claim


def test_vertices_of_different_mass_swing_as_far_as_single_entries():
    """One weight, on or off: the claim is attained by a row that comes and goes (d = 1)."""
    f = AdaptationObjective(np.ones((1, 1)), np.ones(1), Softmax(1e-3), radius=1.0)
    switch, n = Vertices(np.array([[0.0], [1.0]])), 1
    query, at = SecondMoment(Cleaning(radius=1.0)), (np.ones(1) / 2, np.zeros(1))
    moved = [switch.scores(f.weight_gradient(*at, np.array([[M]]))) for M in (0.0, 1.0)]
    claim = vertex_range(f, query, n, switch.swing)
    assert 0.99 * claim < float(np.ptp(moved[0] - moved[1])) <= claim


@pytest.mark.parametrize("name", POLYHEDRA)
def test_points_of_a_polyhedron_are_means_of_its_vertices(name):
    polyhedron = POLYHEDRA[name]
    g = np.array([0.3, -0.2, 0.1, 0.5])
    scores = polyhedron.scores(g)
    vertices = np.array([polyhedron.vertex(j) for j in range(len(scores))])
    np.testing.assert_allclose(vertices @ g, scores)
    np.testing.assert_allclose(vertices.mean(axis=0), polyhedron.start)


@pytest.mark.parametrize("name", ["groups", "box"])
@pytest.mark.parametrize("output", ["last", "select"])
def test_the_single_stage_runs_over_other_sets(name, output):
    rows = np.tile([[1.0, 0.0]], (5000, 1))
    sets = {"weights": POLYHEDRA[name], "coefficients": Box(np.zeros(2), np.ones(2))}
    algorithm = NoisySingleStage(objective(), 40, 0.1, output=output, **sets)
    (q, w), guarantee = release(algorithm, rows, epsilon=2.0)
    assert guarantee.epsilon <= 2.0
    assert ((w >= 0) & (w <= 1)).all()
    if name == "groups":
        assert q[0] == pytest.approx(q[3])
        assert q.sum() == pytest.approx(1.0)
    else:
        assert ((q >= -1e-12) & (q <= 0.4 + 1e-12)).all()
    exact = algorithm.minimise(rows.T @ rows / len(rows))[0]
    assert np.abs(q - exact).max() < 0.3


def test_two_sources_are_weighed_against_each_other():
    """Of two public sources, the one that looks like the private rows gets the weight."""
    rng = np.random.default_rng(0)
    near, far = rng.normal([0.5, 0.0], 0.1, (30, 2)), rng.normal([0.0, 0.5], 0.1, (50, 2))
    X = np.vstack([near, far])
    f = AdaptationObjective(X, X[:, 0], Softmax(20.0), radius=1.0)
    groups = GroupSimplex(np.repeat([0, 1], [30, 50]))
    T = rng.normal([0.5, 0.0], 0.1, (4000, 2))
    (q, _), _ = release(NoisySingleStage(f, 60, 0.05, weights=groups), T)
    assert q[:30].sum() > 0.8


def test_default_sets_are_the_papers():
    f = objective()
    plain = NoisySingleStage(f, 5, 0.2)
    same = NoisySingleStage(f, 5, 0.2, weights=Simplex(4), coefficients=Ball(2, 1.0))
    M = np.diag([0.5, 0.2])
    for one, other in zip(plain.minimise(M), same.minimise(M), strict=True):
        np.testing.assert_array_equal(one, other)


def test_masses_that_differ_need_the_sensitivity_of_an_entry():
    class Bare:
        def range_sensitivity(self, query, n_rows):
            return 1.0

    assert vertex_range(Bare(), QUERY, 5) == 1.0
    with pytest.raises(ValueError, match="entry_sensitivity"):
        vertex_range(Bare(), QUERY, 5, (1.0, 0.5))


def test_printed_noise_is_refused_where_nothing_is_printed():
    algorithm = NoisySingleStage(objective(), 3, 0.2, weights=POLYHEDRA["box"])
    with (
        Private(np.eye(2)).open(epsilon=1.0, delta=1e-3) as session,
        pytest.raises(ValueError, match="paper"),
    ):
        algorithm.mechanisms(session, QUERY, calibration="paper")


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: GroupSimplex(np.array([0, 2])), "groups"),
        (lambda: GroupSimplex(np.array([0.5, 1.0])), "groups"),
        (lambda: Vertices(np.array([1.0])), "points"),
        (lambda: Vertices(np.array([[np.nan]])), "points"),
        (lambda: Box(np.ones(2), np.zeros(2)), "low"),
        (lambda: Ball(2, 0.0), "radius"),
        (lambda: Simplex(0), "m"),
        (
            lambda: NoisySingleStage(objective(), 3, 0.2, exact=True, coefficients=Ball(2, 1.0)),
            "exact",
        ),
    ],
)
def test_bad_sets_are_named(make, named):
    with pytest.raises(ValueError, match=named):
        make()


# one side


@pytest.mark.parametrize("kind", [FrankWolfe, MirrorDescent, SingleStage])
def test_the_one_sided_discrepancy_can_be_chosen(kind):
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(60, 2)), 0.5 * rng.normal(size=(3000, 2))
    given = {"epsilon": 5.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
    model = DiscrepancyRegressor(**given, solver=kind(smoothing="one-sided", steps=30))
    model.fit(X, X[:, 0], private=Private(T))
    assert model.guarantee_.epsilon <= 5.0
    same = kind(smoothing=OneSidedSoftmax(2.0), steps=30)
    assert same.smoothing.mu == 2.0


def test_one_side_counts_only_what_private_rows_have_more_of():
    X, q = np.eye(2), [0.5, 0.5]
    assert discrepancy(X, q, np.diag([0.2, 0.6])) == pytest.approx(0.3)
    assert discrepancy(X, q, np.diag([0.2, 0.6]), one_sided=True) == pytest.approx(0.1)
    assert discrepancy(X, q, np.diag([0.2, 0.3]), one_sided=True) == 0.0


# eta_H


def test_label_difference_is_the_best_of_all_models_in_the_ball():
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(15, 2)), rng.normal(size=(10, 2))
    y, t = X @ [1.0, 0.5] + 0.1 * rng.normal(size=15), T @ [-0.5, 1.5]
    for radius in (0.3, 1.0, 10.0):
        found = label_difference((X, y), (T, t), radius)
        assert np.linalg.norm(found.model) <= radius * (1 + 1e-9)
        assert found.lower_bound <= found.value <= found.lower_bound + 1e-5
        w = rng.normal(size=(20_000, 2))
        w *= (radius * np.sqrt(rng.uniform(size=20_000)) / np.linalg.norm(w, axis=1))[:, None]
        values = np.abs(w @ X.T - y).max(axis=1) + np.abs(w @ T.T - t).max(axis=1)
        assert found.value <= values.min() + 1e-6


@pytest.mark.parametrize("wrong", ["public", "private", "norm_bound"])
def test_bad_arguments_of_the_label_difference_are_named(wrong):
    good = (np.eye(2), np.ones(2))
    given = {"public": good, "private": good, "norm_bound": 1.0}
    given[wrong] = -1.0 if wrong == "norm_bound" else (np.eye(2), np.array([np.nan, 1.0]))
    with pytest.raises(ValueError, match=wrong):
        label_difference(**given)
