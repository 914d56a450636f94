"""What the paper prints and what is true: each test fails if the printed form were right."""

import math

import numpy as np
import pytest

from dpadapt.learning.descent import predicted_noise
from dpadapt.papers.reweighting.convex_adaptation import ConvexAdaptation
from dpadapt.papers.reweighting.labelled_discrepancy import labelled_discrepancy, labelled_moment
from dpadapt.papers.reweighting.objective import SquaredLoss, profile_weights, reference_weights
from dpadapt.papers.selection.random_stopping import RandomStoppingEvent
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.accounting.events import GaussianEvent


def two_samples(m=60, n=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X, T = (rng.normal(size=(size, d)) for size in (m, n))
    X, T = (rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None] for rows in (X, T))
    y, t = X @ [0.5, -0.3], T @ [0.5, 0.4]
    y[::7] = np.sign(y[::7])  # rows that ought to lose weight
    return X, np.clip(y, -1, 1), T, np.clip(t, -1, 1)


def test_the_weights_do_not_move():
    """E14: the printed steps leave u where it was, while its best value is far away."""
    X, y, T, t = two_samples()
    algorithm = ConvexAdaptation(X, y, alpha=0.5, kappa=(0.01, 0.0, 0.0), steps=60)
    found = algorithm.minimise(T, t)
    moved = np.abs(found.weights * len(X) / 0.5 - 1).max()
    assert moved < 2e-3
    losses = SquaredLoss().value(X @ found.coefficients, y) + found.discrepancy
    p = reference_weights(len(X), len(T), 0.5)[: len(X)]
    _, best = profile_weights(losses, p, 0.01)
    assert np.abs(best / p - 1).max() > 0.5


def test_more_rows_make_the_weights_stiffer():
    """E14: the relative move falls like n^(-3/2), so that no sample is large enough."""
    moves = []
    for times in (1, 4):
        X, y, T, t = two_samples(60 * times, 40 * times)
        found = ConvexAdaptation(X, y, kappa=(0.01, 0.0, 0.0), steps=60).minimise(T, t)
        moves.append(np.abs(found.weights * len(X) / 0.5 - 1).max())
    assert moves[1] < moves[0] / 4


def test_symmetrisation_needs_its_factor_of_two():
    """E16: (11) has R_q where (9) has 2 R_q; on one row of a rich class the factor is attained."""
    rng = np.random.default_rng(0)
    places = 10_000  # the domain: a loss of 0 or 1 at every place, all such functions
    drawn = rng.integers(places, size=500)
    deviation = np.mean([1 - 1 / places for _ in drawn])  # loss 0 where it was drawn, 1 elsewhere
    rademacher = np.mean([max(0.0, sign) for sign in rng.choice([-1.0, 1.0], size=20_000)])
    assert deviation > 1.9 * rademacher
    assert deviation <= 2.1 * rademacher


def test_the_proof_of_theorem_5_adds_up_to_nine():
    """E16: its own steps, with t = |q - p0|_1; the theorem prints 6 B t."""
    empirical, mixture, discrepancy, complexity = 2, 1, 2, 2 * 2
    assert empirical + mixture + discrepancy + complexity == 9
    # the discrepancy's part is not 0: q^pub may move by 2 t while the discrepancy is B
    q, p = np.array([0.2, 0.5]), np.array([0.5, 0.5])
    assert abs(q[0] - p[0]) * 1.0 == pytest.approx(np.abs(q - p).sum() * 1.0)


@pytest.mark.parametrize("copies", [1, 57])
def test_a_person_with_57_copies_moves_the_answer_57_times_as_far(copies):
    """E17: rows drawn with replacement: what is promised is promised to a copy."""
    X, y, T, t = two_samples(n=20)
    bound, n = SquaredLoss().bound(1.0, 1.0), 20 * copies
    moved = T.copy(), t.copy()
    moved[0][0], moved[1][0] = [0.0, -1.0], 1.0
    public = labelled_moment(X, y)
    values = [
        labelled_discrepancy(
            public, labelled_moment(np.repeat(a, copies, 0), np.repeat(b, copies)), 1.0
        )
        for a, b in ((T, t), moved)
    ]
    claimed = bound / n  # the printed sensitivity
    change = abs(values[0] - values[1])
    assert (change <= claimed) is (copies == 1)
    mu = gaussian_mu(1.0, 0.01)
    real = compose_epsilon([GaussianEvent("gradients", copies * mu, 1.0)], 0.01)
    assert real == pytest.approx(1.0, rel=1e-6) if copies == 1 else real > 400


def test_the_printed_step_needs_a_start_at_zero():
    """E21: from an arbitrary w_0 the mean iterate ends beyond Lambda G / sqrt(T)."""
    T, G, radius = 400, 1.0, 1.0
    eta = radius / math.sqrt(T * G**2)

    def excess(start, step):
        w, total = start, 0.0
        for _ in range(T):
            total += G * (radius - w) / T  # a linear loss, least at w = Lambda
            w = min(radius, w + step * G)
        return total

    promise = radius * G / math.sqrt(T)
    assert excess(0.0, eta) <= promise
    assert excess(-radius, eta) > 1.9 * promise
    assert excess(-radius, 2 * eta) <= 2 * promise  # the step that start="public" takes
    X, y, *_ = two_samples()
    sizes = [
        ConvexAdaptation(X, y, start=s).step_sizes(1.0, 40, (0.0, 0.0)) for s in ("zero", "public")
    ]
    assert sizes[1][0] == pytest.approx(2 * sizes[0][0])


@pytest.mark.parametrize(
    ("base", "printed", "true"), [(0.5, 1.0, 1.12), (1.0, 1.91, 2.11), (3.0, 5.19, 5.66)]
)
def test_the_best_of_ten_runs_costs_more_than_a_zcdp_base_says(base, printed, true):
    """A7: totals for runs that are calibrated exactly, at delta 1/8000."""
    run = (GaussianEvent("run", gaussian_mu(base, 1 / 8000), 1.0),)
    totals = []
    for shape, gamma in ((0.0, 0.0281), (1.0, 0.1)):
        event = RandomStoppingEvent("best of ten", run, shape, gamma)
        assert event.mean_runs == pytest.approx(10, rel=0.05)
        totals.append(compose_epsilon([event], 1 / 8000))
    assert min(totals) == pytest.approx(true, rel=0.01)
    assert min(totals) > 1.05 * printed


def test_without_the_isotropic_term_noise_is_blown_up():
    """A10: the preconditioner without it divides by directions in which public rows hardly vary."""
    values = np.array([1.0, 0.3, 1e-2, 1e-3])  # of the public second moment
    shifted = np.array([1.0, 0.3, 0.3, 0.3])  # private rows do vary there
    floors = {"with": 3 * values.mean(), "without": 0.0}
    cost = {
        name: float(shifted @ predicted_noise(2 * shifted, 0.5 / (2 * (values + floor)), 4))
        for name, floor in floors.items()
    }
    assert cost["without"] > 8 * cost["with"]
