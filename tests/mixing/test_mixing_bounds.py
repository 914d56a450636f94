"""Bounds of paper 004 on drawn noise, and the set that weights are kept in."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt import AdaMixClassifier, NoisyGDClassifier, Private
from dpadapt.mixing import (
    Ball,
    Box,
    DescentFacts,
    NoisyGD,
    Theory,
    average_gap,
    last_distance,
    public_distance,
)

FACTS = DescentFacts(rows=10_000, dimension=100, mu=1.0, steps=10**9)


def noisy_descent(rng, steps, d=4, noise=1.0, convexity=1.0):
    """Last iterate and weighted mean on m/2 |w|^2 in the unit ball, from a corner of it."""
    w, mean = np.ones(d) / math.sqrt(d), np.zeros(d)
    for t in range(1, steps + 1):
        mean += 2 * t / (steps * (steps + 1)) * w
        w = w - 2 / (convexity * (t + 1)) * (convexity * w + noise * rng.normal(size=d))
        w /= max(1.0, float(np.linalg.norm(w)))
    return w, mean


def test_theorem_15_holds_on_drawn_noise_and_a_tenth_of_it_does_not():
    rng, steps = np.random.default_rng(0), 50
    gradient = math.sqrt(1 + 4)  # |grad|^2 <= 1 in the ball, and the noise
    runs = [noisy_descent(rng, steps) for _ in range(200)]
    last = np.mean([np.sum(w**2) for w, _ in runs])
    gap = np.mean([np.sum(mean**2) / 2 for _, mean in runs])
    assert last_distance(1.0, gradient, steps) / 10 < last <= last_distance(1.0, gradient, steps)
    assert average_gap(1.0, gradient, steps) / 40 < gap <= average_gap(1.0, gradient, steps)


def test_corollary_17_holds_on_drawn_rows():
    rng, rows, curvature = np.random.default_rng(1), 200, 1.0
    lipschitz = 3.0  # of (w - x)^2/2 with |w|, |x| <= 1.5
    found = []
    for x in np.clip(rng.normal(scale=0.5, size=(200, rows)), -1.5, 1.5):
        w = 0.0
        for t, each in enumerate(x, start=1):
            w -= 2 / (curvature * (t + 1)) * (w - each)
        found.append(w**2)
    assert math.sqrt(np.mean(found)) <= public_distance(curvature, lipschitz, rows)


def test_the_best_penalty_minimises_the_bound_of_theorem_3():
    best = FACTS.best_penalty(0.5)
    assert FACTS.excess(0.5) == FACTS.excess(0.5, best)
    assert all(
        FACTS.excess(0.5) < FACTS.excess(0.5, factor * best) for factor in (0.5, 0.9, 1.1, 2)
    )
    # the printed lambda is the inverse
    inverse = math.sqrt(FACTS.mu**2 / 2 / (2 * 0.5 * FACTS.dimension))
    assert FACTS.excess(0.5, inverse) > 10 * FACTS.excess(0.5)


def test_the_printed_bound_of_theorem_3_is_half_of_its_own_proof():
    """E4.7: at T without end, where the first term is gone."""
    assert FACTS.excess(0.5) / FACTS.excess(0.5, printed=True) == pytest.approx(2, rel=0.02)
    # what its proof adds up: dL^2/(lambda rho) + lambda D^2/2
    lam, rho = FACTS.best_penalty(0.5), FACTS.mu**2 / 2
    proof = (FACTS.dimension / (lam * rho) + lam * 0.25 / 2) / FACTS.rows
    assert FACTS.excess(0.5) == pytest.approx(proof, rel=0.02)


def test_theorem_18_has_the_factor_of_its_statement():
    """E4.9: 4 sqrt(d) L^2 / (c sqrt(N_pub) N sqrt(2 rho)), twice the display in the proof."""
    found = FACTS.excess_with_public(public_rows=400, curvature=0.1)
    assert found == pytest.approx(4 * 10 / (0.1 * 20 * 10_000 * 1.0))
    away = public_distance(0.1, 1.0, 400)
    assert found == pytest.approx(FACTS.excess(away), rel=0.05)
    assert FACTS.excess_with_public(1600, 0.1) == pytest.approx(found / 2)


@pytest.mark.parametrize(("field", "value"), [("rows", 0), ("mu", 0.0), ("radius", -1)])
def test_bad_facts_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        DescentFacts(**{"rows": 10, "dimension": 2, "mu": 1.0, "steps": 5, field: value})
    with pytest.raises(ValueError, match="steps"):
        average_gap(1.0, 1.0, 0)


def problem(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 3))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("within", [Ball(radius=0.01), Box(bound=0.01)])
def test_weights_stay_in_their_set(within):
    X, y = problem()
    budget = {"epsilon": 5.0, "delta": 1e-5, "noise": "seeded", "random_state": 0}
    private = Private(X[40:], y[40:])
    free = NoisyGDClassifier(solver=NoisyGD(), keep_trajectory=True, steps=10, **budget)
    kept = NoisyGDClassifier(
        solver=NoisyGD(within=within), keep_trajectory=True, steps=10, **budget
    )
    for model in (free, kept):
        model.fit(X[:40], y[:40], private=private)
    paths = [np.asarray(model.trajectory_) for model in (free, kept)]
    moved = [np.abs(path - path[0]).max() for path in paths]
    assert moved[0] > 0.05
    assert moved[1] <= 0.011 or isinstance(within, Box)
    if isinstance(within, Box):
        assert np.abs(paths[1][1:]).max() <= 0.01 + 1e-12
    assert kept.guarantee_.epsilon == pytest.approx(free.guarantee_.epsilon)


def test_algorithm_3_stays_in_its_set():
    X, y = problem()
    solver = Theory(within=Ball(radius=0.05))
    model = AdaMixClassifier(epsilon=5.0, delta=1e-5, solver=solver, steps=10, noise="seeded",
                             random_state=0, keep_trajectory=True)  # fmt: skip
    path = np.asarray(model.fit(X[:40], y[:40], private=Private(X[40:], y[40:])).trajectory_)
    assert all(np.linalg.norm(each - path[0]) <= 0.05 + 1e-9 for each in path)


def test_a_set_must_be_one():
    with pytest.raises(ValueError, match="radius"):
        Ball(radius=0.0)
    with pytest.raises((TypeError, ValueError), match="within"):
        NoisyGD(within=1.0)
