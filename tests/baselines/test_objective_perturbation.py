"""Objective perturbation: the coupling of its proof, its certificate, and an audit."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from audit import epsilon_lower_bound
from dpadapt import Private
from dpadapt.baselines import ObjectivePerturbationClassifier, ObjectivePerturbationRegressor
from dpadapt.papers.baselines import objective_perturbation as module
from dpadapt.papers.baselines._tasks import BaselineTask
from dpadapt.papers.baselines.objective_perturbation import (
    MarginLogistic,
    PerturbedObjective,
    PseudoHuber,
    minimise,
    nesterov,
)
from dpadapt.papers.baselines.queries import JACOBIAN, needed_strength
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.composition import gaussian_delta
from dpadapt.privacy.core.noise import SeededNoise
from dpadapt.privacy.mechanisms import gaussian as gaussian_mechanism
from dpadapt.testing import Facts, Subject
from dpadapt.testing.neighbours import PLACE, few
from dpadapt.testing.search import HOSTILE_LABELS, HOSTILE_ROWS
from dpadapt.testing.tape import releases, taped


def classification():
    kind = ObjectivePerturbationClassifier(epsilon=1.0, delta=1e-6)
    subject = Subject(kind, Facts(labels=True))
    X, y = subject.public()
    return subject, BaselineTask(X, y.astype(int), np.array([0.0, 1.0])), MarginLogistic()


def regression():
    kind = ObjectivePerturbationRegressor(epsilon=1.0, delta=1e-6, start="public")
    subject = Subject(kind, Facts(labels=True))
    task = BaselineTask(*subject.public())
    left = task.targets - (task.rows @ task.public_fit())[:, 0]
    return subject, task, PseudoHuber(float(np.sqrt(np.mean(left**2))))


def gradient(task, loss, X, y, w):
    """Sum of the rows' gradients at w, for rows as the estimator sees them."""
    Z, t = task.prepared()(X, y)
    Z[~np.isfinite(np.asarray(y, dtype=float))] = 0.0  # a row without a label adds nothing
    if task.classes:
        t = np.where(t < 0, 0.0, 2 * t - 1)
    return Z.T @ loss.slopes(Z @ w, t)


def compare_coupled(kind, one, two):
    """Neighbours, with the noise that the proof gives the second of them.

    With one and the same linear term two neighbours have different minimisers. The proof compares
    the linear terms that lead to *one* minimiser: they differ by at most the sum of two gradients,
    half of the sensitivity that is charged, and then the solver's answers by what is charged too.
    """
    subject, task, loss = kind()
    samples = []
    for row, label in (one, two):
        X, y = few(subject)
        X[PLACE] = X[PLACE] if row is None else row
        y[PLACE] = y[PLACE] if label is None else label
        samples.append((X, y))
    with taped() as tape:
        subject.fit(subject.make(), subject.private(*samples[0]))
    term, solved = tape
    gradients = [gradient(task, loss, *sample, solved.value) for sample in samples]
    moved = gradients[0] - gradients[1]
    again = dataclasses.replace(term, answer=term.answer + moved)
    with taped(replay=[again, solved]) as other:
        model = subject.fit(subject.make(), subject.private(*samples[1]))
    linear, output = model.guarantee_.events
    assert not term.value.any()
    assert np.linalg.norm(moved) <= linear.sensitivity / 2 * (1 + 1e-9)
    assert [draw.scale for draw in other] == [draw.scale for draw in tape]
    assert np.linalg.norm(other[1].value - solved.value) <= output.sensitivity


both_kinds = pytest.mark.parametrize("kind", [classification, regression])


@pytest.mark.parametrize("after", HOSTILE_ROWS)
@both_kinds
def test_one_replaced_row_moves_no_coupled_release_beyond_its_sensitivity(kind, after):
    for before in (None, HOSTILE_ROWS["huge norm"], HOSTILE_ROWS["zero"]):
        compare_coupled(kind, (before, None), (HOSTILE_ROWS[after], None))


@pytest.mark.parametrize("label", HOSTILE_LABELS)
@both_kinds
def test_one_replaced_label_moves_no_coupled_release_beyond_its_sensitivity(kind, label):
    far = HOSTILE_ROWS["huge norm"]
    compare_coupled(kind, (None, None), (far, label))
    compare_coupled(kind, (far, -label), (far, label))


# the proof, in numbers


def profile(tail, epsilon):
    """Delta at epsilon for a loss that exceeds x with chance tail(x)."""
    x = epsilon + np.linspace(0.0, 60.0, 600_001) * max(0.05, 0.02 * epsilon)
    y = np.exp(epsilon - x) * tail(x)
    return float(np.sum((y[1:] + y[:-1]) / 2 * np.diff(x)))


def removed(m, a):
    return lambda x: np.where(x < a, 1.0, stats.norm.sf((x - a) / m - m / 2))


def added(m):
    return lambda x: np.where(x < m * m / 2, 1.0, np.minimum(1, 2 * stats.norm.sf(x / m - m / 2)))


@pytest.mark.parametrize("m", [0.01, 0.05, 0.2, 0.5, 1.0, 2.0])
def test_both_losses_are_dominated_by_a_gaussian_of_twice_the_ratio(m):
    for epsilon in np.concatenate([[0.0], m * np.array([0.1, 0.39, 0.5, 1, 2, 3, 5])]):
        allowed = gaussian_delta(float(epsilon), 2 * m) + 1e-7
        assert profile(added(m), epsilon) <= allowed
        assert profile(removed(m, JACOBIAN * m), epsilon) <= allowed


def test_less_noise_or_less_curvature_would_not_be_dominated():
    m = 0.2
    assert profile(added(m), 0.0) > gaussian_delta(0.0, 1.9 * m)
    assert profile(removed(m, 0.5 * m), 0.0) > gaussian_delta(0.0, 2 * m)
    assert profile(added(m), 3 * m) > gaussian_delta(3 * m, m)  # as if the move were independent


def test_determinant_stays_within_its_share():
    rng = np.random.default_rng(0)
    R, worst = 2.0, 0.0
    for loss in (MarginLogistic(), PseudoHuber(0.5)):
        mu = 0.3
        strength = needed_strength(mu, R, loss.curvature)
        for _ in range(300):
            Z = rng.normal(size=(6, 3))
            Z *= R / np.linalg.norm(Z, axis=1)[:, None]
            Z[: rng.integers(0, 6)] = 0.0
            w = rng.normal(size=3) * rng.choice([0.0, 0.1, 1.0])
            y = np.sign(rng.normal(size=6))
            whole, less = (
                PerturbedObjective(Z[k:], y[k:], loss, strength, w, w).hessian(w) for k in (0, 1)
            )
            one = PerturbedObjective(Z[-1:], y[-1:], loss, strength, w, w).hessian(w)
            none = PerturbedObjective(Z[:0], y[:0], loss, strength, w, w).hessian(w)
            for big, small in ((whole, less), (one, none)):
                ratio = np.linalg.slogdet(big)[1] - np.linalg.slogdet(small)[1]
                worst = max(worst, ratio / (JACOBIAN * mu / 4))
                assert ratio >= -1e-12
    assert 0.99 < worst <= 1 + 1e-9


def test_rows_gradients_are_within_their_bound_and_smooth():
    z = np.linspace(-50, 50, 20_001)
    for loss, y in ((MarginLogistic(), np.ones_like(z)), (PseudoHuber(0.7), np.zeros_like(z))):
        slopes, curvatures = loss.slopes(z, y), loss.curvatures(z, y)
        assert np.abs(slopes).max() <= loss.slope
        assert np.abs(slopes).max() > 0.99 * loss.slope
        assert 0.999 * loss.curvature < curvatures.max() <= loss.curvature * (1 + 1e-12)
        values = loss.values(z, y)
        np.testing.assert_allclose(np.gradient(values, z)[1:-1], slopes[1:-1], atol=1e-4)
        np.testing.assert_allclose(np.gradient(slopes, z)[1:-1], curvatures[1:-1], atol=1e-4)


# the solver


@pytest.mark.parametrize("loss", [MarginLogistic(), PseudoHuber(0.01)])
@pytest.mark.parametrize("strength", [0.5, 50.0])
@pytest.mark.parametrize("solver", [minimise, nesterov])
def test_gradient_certificate(loss, strength, solver):
    rng = np.random.default_rng(0)
    for trial in range(5):
        n, R = 400, 3.0
        Z = rng.normal(size=(n, 4))
        Z *= R / np.linalg.norm(Z, axis=1)[:, None]
        y = np.sign(Z[:, 0]) if trial else np.ones(n)
        center = rng.normal(size=4)
        objective = PerturbedObjective(Z, y, loss, strength, center, 100 * rng.normal(size=4))
        tolerance = 1e-8 * n * R * loss.slope
        start = () if solver is minimise else (center,)
        w = solver(objective, *start, tolerance, R)
        assert np.linalg.norm(objective.gradient(w)) <= tolerance
        near = [objective.value(w + 1e-3 * step) for step in rng.normal(size=(20, 4))]
        assert objective.value(w) <= min(near) + 1e-9


def test_noise_scales():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = (X[:, 0] > 0).astype(int)
    model = ObjectivePerturbationClassifier(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0)
    with taped() as tape:
        model.fit(X, y, private=Private(X, y))
    linear, output = releases(tape)
    R, mu = BaselineTask(X, y, np.arange(2)).radius, gaussian_mu(1.0, 1e-6) / math.hypot(1.0, 0.1)
    assert math.isclose(linear.scale, 4 * R / mu, rel_tol=1e-9)
    assert output.scale < 1e-4
    assert math.isclose(model.guarantee_.epsilon, 1.0, rel_tol=1e-6)


def test_noise_of_the_solver_covers_what_its_stop_leaves():
    X = np.random.default_rng(0).normal(size=(500, 3))
    y = (X[:, 0] > 0).astype(int)
    model = ObjectivePerturbationClassifier(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0)
    _, output = model.fit(X, y, private=Private(X, y)).guarantee_.events
    R, mu = BaselineTask(X, y, np.arange(2)).radius, gaussian_mu(1.0, 1e-6) / math.hypot(1.0, 0.1)
    # strongly convex: a gradient of norm t is at most t / strength from the minimiser, either side
    apart = (
        2 * (module._TOLERANCE * len(X) * R) / needed_strength(mu, R, MarginLogistic().curvature)
    )
    assert apart <= output.sensitivity * (1 + 1e-6)


def test_grid_noise_is_refused():
    model = ObjectivePerturbationClassifier(epsilon=1.0, delta=1e-6, noise="exact")
    with pytest.raises(ValueError, match="noise"):
        model.fit([[0.0], [1.0]], [0, 1])


def test_it_learns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = np.argmax(X, axis=1)
    common = {"epsilon": 4.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
    model = ObjectivePerturbationClassifier(**common).fit(X[:200], y[:200], private=Private(X, y))
    assert model.score(X, y) > 0.9
    assert len(model.guarantee_.events) == 2
    labels = X @ [1.0, 2.0, 0.0]
    line = ObjectivePerturbationRegressor(**common)
    line.fit(X[:200], 0.5 * labels[:200], private=Private(X, labels))
    assert line.score(X[:2000], labels[:2000]) > line.fit(X[:200], 0.5 * labels[:200]).score(
        X[:2000], labels[:2000]
    )


# the audit


def samples(strength, s, runs, seed):
    """The minimisers with and without one row, along it: 1-d, so the map from noise is inverted."""
    rng = np.random.default_rng(seed)
    b = s * rng.standard_normal(runs)
    outputs = []
    for row in (np.zeros(0), np.ones(1)):
        w = np.zeros(runs)
        for _ in range(80):
            slope = strength * w + b + sum(-(1 / (1 + np.exp(w * z))) * z for z in row)
            w -= slope / (strength + 0.25)
        outputs.append(w)
        b = s * rng.standard_normal(runs)
    return outputs


@pytest.mark.slow
@pytest.mark.parametrize("weaker", [1.0, 8.0])
def test_audit_of_one_row_more_or_less(weaker):
    """Removal of a row is 2 G / s - GDP; with an eighth of the noise and curvature it is not."""
    mu, delta = 2.0, 1e-3
    s = 4.0 / (2 * mu) / weaker
    strength = needed_strength(2 * mu, 1.0, 0.25) / weaker**2
    one, two = samples(strength, s, 400_000, seed=1)
    allowed = next(e for e in np.arange(0, 60, 0.01) if gaussian_delta(e, mu) <= delta)
    found = epsilon_lower_bound(one, two, delta)
    assert (found <= allowed) == (weaker == 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.1])
def test_audit_of_the_estimator_on_a_replaced_row(share, monkeypatch):
    """Runs on two neighbours stay within epsilon; with a tenth of the noise they do not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    task = BaselineTask(X, (X[:, 0] > 0).astype(int), np.arange(2))
    original = gaussian_mechanism.gaussian
    monkeypatch.setattr(
        gaussian_mechanism,
        "gaussian",
        lambda source, value, s: original(source, value, share * s),
    )
    normals = SeededNoise.normals  # of the linear term, which is never released
    monkeypatch.setattr(SeededNoise, "normals", lambda self, shape: share * normals(self, shape))

    def runs(label):
        private = Private([[2.0]], [label]).encode([0, 1])
        found = [
            module._perturbed(
                task,
                private,
                {"epsilon": 1.0, "delta": 1e-2, "noise": "seeded", "random_state": seed},
                MarginLogistic(),
                task.zero(),
                0.0,
            )[0]
            for seed in range(label * 10_000, label * 10_000 + 5000)
        ]
        return [float(w[0, 0] * 2.0 + w[1, 0]) for w in found]

    spent = epsilon_lower_bound(runs(0), runs(1), 1e-2)
    assert (spent <= 1.0) == (share == 1.0)
