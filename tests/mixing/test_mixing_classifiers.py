"""AdaMixClassifier and NoisyGDClassifier: how many steps, and what is released in each."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpadapt import Private
from dpadapt.mixing import AdaMix, KnownNoise, Steps, StepsAtNoise, Theory
from dpadapt.mixing.features import UnitRows
from dpadapt.mixing.noisy_gradients import NoisyGradients, gradient_mechanisms
from dpadapt.mixing.solver import row_mu
from dpadapt.papers.mixing.noisy_gd import steps_for_noise
from dpadapt.testing.search import everything_said
from dpadapt.testing.tape import releases, taped
from mixing.mixing_problems import (
    SOLVERS,
    make,
    noisy_gd,
    problem,
)


def gdp_delta(epsilon, mu):
    """Written out again, on purpose."""
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("sigma", [8.0, 20.0, 63.0])
def test_as_many_steps_as_fit_and_not_one_more(epsilon, sigma):
    if math.floor((row_mu(epsilon, 1e-5, "add-remove") * sigma) ** 2) < 1:
        with pytest.raises(ValueError, match=r"sigma=.*too small.*Take at least"):
            steps_for_noise(sigma, epsilon, 1e-5, "add-remove")
        return
    steps = steps_for_noise(sigma, epsilon, 1e-5, "add-remove")
    assert gdp_delta(epsilon, math.sqrt(steps) / sigma) <= 1e-5 * (1 + 1e-9)
    assert gdp_delta(epsilon, math.sqrt(steps + 1) / sigma) > 1e-5


def test_replace_one_has_a_quarter_of_the_steps():
    for epsilon in (1.0, 3.0, 8.0):
        added = steps_for_noise(20.0, epsilon, 1e-5, "add-remove")
        assert steps_for_noise(20.0, epsilon, 1e-5, "replace-one") == added // 4


def test_the_printed_formula_of_proposition_9_is_not_used():
    """It has T^2 where T is right, and would give mu = 10.3 here."""
    model = noisy_gd(epsilon=3.0, delta=1e-5, steps=StepsAtNoise(20.0), relation="add-remove")
    X, y, T, t = problem(n=20)
    model.fit(X, y, private=Private(T, t))
    (event,) = [e for e in model.guarantee_.events if e.label == "clipped gradients"]
    assert model.n_steps_ == event.count == 206
    (count,) = [e for e in model.guarantee_.events if e.label == "number of rows"]
    assert math.hypot(event.gaussian_mu, count.gaussian_mu) == pytest.approx(0.7191, abs=2e-4)
    assert model.guarantee_.epsilon == pytest.approx(3.0, rel=1e-6)
    assert math.sqrt(206) / 20 == pytest.approx(0.7176, abs=1e-4)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("steps", [50, Steps(50), StepsAtNoise(20.0), None], ids=str)
def test_steps_or_noise_follow_from_each_other(relation, steps):
    X, y, T, t = problem()
    model = noisy_gd(epsilon=3.0, delta=1e-5, relation=relation, sample_size=300, steps=steps)
    model.fit(X, y, private=Private(T, t))
    mu = math.sqrt(model.n_steps_) / model.sigma_
    assert mu == pytest.approx(row_mu(3.0, 1e-5, relation), rel=2e-3)
    if steps is None or isinstance(steps, StepsAtNoise):
        assert model.sigma_ == pytest.approx(20.0, rel=0.01)  # the budget is used up to the end


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("projection", [None, "gradients"])
def test_noise_is_sigma_clips_in_every_coordinate(relation, projection):
    """The release is in clips; what the step gets is sigma times the clip of the step."""
    X, y, T, t = problem(n=50)
    solver = AdaMix(projection=projection)
    model = make(solver=solver, relation=relation, sample_size=50, steps=300)
    with taped() as tape:
        model.fit(X, y, private=Private(T, t))
    drawn = np.concatenate([(d.answer - d.value).ravel() for d in releases(tape)])
    assert np.ptp(model.clips_) > 0.01  # the clip adapts, the noise in clips does not
    error = 6 / math.sqrt(2 * drawn.size)
    assert abs(drawn.std() / model.sigma_ - 1) < error
    assert abs(0.7 * drawn.std() / model.sigma_ - 1) > error  # and the test would see it
    assert drawn.size >= 300 * (2 if projection else 15)


def test_noise_of_a_step_scales_with_its_clip():
    X, y, T, t = problem(n=5)
    rows = UnitRows.of(X, y, 3)
    with Private(T, t.astype(float)).open(
        epsilon=1.0, delta=1e-5, relation="add-remove", noise="seeded", random_state=0
    ) as session:
        asked = gradient_mechanisms(session, rows, (5, 3), 400, sample_size=5)
        oracle, W = NoisyGradients(session, rows, session.plan(**asked).steps), np.zeros((5, 3))
        small = np.array([oracle(W, 0.01) for _ in range(200)])
        large = np.array([oracle(W, 1.0) for _ in range(200)])
    ratio = (large - large.mean(axis=0)).std() / (small - small.mean(axis=0)).std()
    assert ratio == pytest.approx(100, rel=0.1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_add_remove_spends_the_same_without_any_private_row(solver):
    X, y, T, t = problem()
    full = make(solver=solver, relation="add-remove").fit(X, y, private=Private(T, t))
    empty = make(solver=solver, relation="add-remove").fit(X, y, private=Private(T[:0], t[:0]))
    assert empty.guarantee_ == full.guarantee_
    assert empty.guarantee_.to_json() == full.guarantee_.to_json()
    assert empty.guarantee_.relation == "add-remove"
    assert np.isfinite(empty.coef_).all()


@pytest.mark.parametrize("solver", [KnownNoise, AdaMix, Theory])
def test_the_number_of_rows_is_no_secret_normaliser(solver):
    """Rows that contribute nothing change nothing, given a public sample size."""
    X, y, T, t = problem()
    params = {"solver": solver(mixing=1.0), "relation": "add-remove", "sample_size": 300}
    one = make(**params).fit(X, y, private=Private(T, t))
    unknown = np.concatenate([t, np.full(77, 99)])  # of no class
    two = make(**params).fit(X, y, private=Private(np.vstack([T, T[:77]]), unknown))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=0, atol=1e-12)
    other = make(**{**params, "sample_size": 150}).fit(X, y, private=Private(T, t))
    if solver is not Theory:  # which takes sums, not means
        assert np.abs(one.coef_ - other.coef_).max() > 1e-6


@pytest.mark.slow
def test_without_a_hint_the_count_is_noisy_and_charged():
    X, y, T, t = problem(n=2000)
    sizes = [
        make(relation="add-remove", random_state=seed).fit(X, y, private=Private(T, t)).sample_size_
        for seed in range(200)
    ]
    model = make(relation="add-remove").fit(X, y, private=Private(T, t))
    (event,) = [e for e in model.guarantee_.events if e.label == "number of rows"]
    assert np.std(sizes) == pytest.approx(event.scale, rel=0.25)
    assert np.mean(sizes) == pytest.approx(2000, abs=4 * event.scale / math.sqrt(200))
    assert len(set(sizes)) > 150
    total = math.hypot(*(e.gaussian_mu for e in model.guarantee_.events))
    assert event.gaussian_mu / total == pytest.approx(0.1, rel=0.01)


def test_nothing_tells_the_number_of_rows_under_add_remove():
    X, y, T, t = problem(n=1234)
    with everything_said() as said:
        model = make(relation="add-remove", verbose=1, noise="secure", random_state=None)
        model.fit(X, y, private=Private(T, t))
    everything = said.all + repr(model) + model.guarantee_.to_json() + repr(vars(model))
    assert "1234" not in everything
    assert "8/8" in said.printed  # the bar counts steps


def test_the_public_sample_alone_sets_clip_and_subspace(monkeypatch):
    """At the same weights, other private rows change neither: noise and private sum held fixed."""
    X, y, T, t = problem()
    seen = {}
    monkeypatch.setattr(NoisyGradients, "release", lambda self, query: np.ones(query.shape(0)))
    for name, rows in (("one", T), ("two", -3 * T + 1)):
        model = make(solver=AdaMix(projection="gradients"), keep_trajectory=True)
        model.fit(X, y, private=Private(rows, t))
        seen[name] = model
    np.testing.assert_array_equal(seen["one"].clips_, seen["two"].clips_)
    for W, V in zip(seen["one"].trajectory_, seen["two"].trajectory_, strict=True):
        np.testing.assert_array_equal(W, V)
