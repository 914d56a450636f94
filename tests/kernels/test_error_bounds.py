"""Bounds of paper 002: they hold on drawn noise, and move as the theorems say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpadapt import KernelClassifier, KernelRegressor, Private
from dpadapt.kernels import (
    TDDL,
    TDIL,
    GaussianProcess,
    KernelFacts,
    answer_error,
    error_of_tdil,
    excess_of_tddl,
    path_error,
    points_of_tddl,
    rows_for_tddl,
)
from dpadapt.kernels.pool import Pool, nearest_in_ball
from dpadapt.papers.kernels.machines import MachineFacts, PINPConstants
from dpadapt.privacy.accounting.calibration import gaussian_mu

FACTS = KernelFacts(rows=10**7, penalty=0.01, epsilon=1.0, delta=1e-6)


def test_every_bound_falls_with_rows_and_epsilon():
    bounds = [
        lambda facts: answer_error(facts, 1000),
        lambda facts: answer_error(facts, 1000, calibration="paper"),
        lambda facts: answer_error(facts, 1000, calibration="printed"),
        lambda facts: path_error(facts, 1000),
        lambda facts: excess_of_tddl(facts, 1000),
        lambda facts: excess_of_tddl(facts, 1000, calibration="paper"),
        lambda facts: excess_of_tddl(facts, 1000, calibration="printed"),
        lambda facts: error_of_tdil(facts, 300),
        lambda facts: error_of_tdil(facts, 300, calibration="printed"),
    ]
    for bound in bounds:
        for better in (replace(FACTS, rows=10**8), replace(FACTS, epsilon=2.0)):
            assert bound(better) < bound(FACTS)


def test_rates_are_those_of_the_theorems():
    more = replace(FACTS, rows=100 * FACTS.rows)
    assert answer_error(FACTS, 1000) / answer_error(more, 1000) == pytest.approx(10, rel=0.1)
    assert path_error(FACTS, 1000) / path_error(more, 1000) == pytest.approx(100)
    best = [excess_of_tddl(each, points_of_tddl(each)) for each in (FACTS, more)]
    assert best[0] / best[1] == pytest.approx(10, rel=0.05)
    printed = [error_of_tdil(each, 1, calibration="printed") for each in (FACTS, more)]
    assert printed[0] / printed[1] == pytest.approx(100 ** (2 / 3))
    assert rows_for_tddl(FACTS, 0.5) / rows_for_tddl(FACTS, 1.0) == pytest.approx(4, rel=0.1)
    n = rows_for_tddl(FACTS, 0.5)
    reached = replace(FACTS, rows=n)
    assert excess_of_tddl(reached, points_of_tddl(reached)) <= 0.5
    short = replace(FACTS, rows=int(0.95 * n))
    assert excess_of_tddl(short, points_of_tddl(short)) > 0.5


def test_answers_are_within_the_bound_of_theorem_3():
    """Algorithm 1 with drawn noise, one feature after another; half of the bound is passed."""
    T, R, C = 400, 1.0, 10.0
    setting = MachineFacts(1e-4, R, C, epsilon=1.0, delta=1e-6, questions=T)
    machine = PINPConstants.calibrated(setting)
    facts = KernelFacts(20_000_000, 1e-3, 1.0, 1e-6, norm=C)
    assert facts.prediction == pytest.approx(1e-4)
    bound, worst = answer_error(facts, T), 0.0
    assert bound == pytest.approx(1.25 * machine.threshold)
    rng = np.random.default_rng(0)
    truth = rng.normal(size=5)
    truth *= C / np.linalg.norm(truth)
    model = np.zeros(5)
    for z in rng.normal(size=(T, 5)):
        z /= np.linalg.norm(z)
        noisy = truth @ z + rng.laplace(scale=machine.scale)
        off = noisy - model @ z
        answer = noisy if abs(off) > machine.threshold else model @ z
        worst = max(worst, abs(answer - truth @ z))
        if abs(off) > machine.threshold:
            model = model + machine.step * np.sign(off) * z
    assert 0.4 * bound < worst <= bound


def test_a_path_keeps_to_its_bound_and_half_of_it_is_passed():
    facts, T = replace(FACTS, rows=1000), 200
    noise = facts.prediction / gaussian_mu(1.0, 1e-6)
    rng = np.random.default_rng(1)
    worst = [np.abs(noise * rng.normal(size=T)).max() for _ in range(300)]
    assert 0.5 * path_error(facts, T) < np.mean(worst)
    assert np.mean(np.array(worst) > path_error(facts, T)) <= 0.05


@pytest.mark.parametrize("calibration", ["gaussian", "paper"])
def test_tddl_is_within_the_bound_of_theorem_13(calibration):
    rng = np.random.default_rng(2)
    facts, T, C = KernelFacts(10**6, 0.01, 1.0, 1e-6, norm=1.0), 50, 1.0
    bound = excess_of_tddl(facts, T, calibration=calibration)
    assert bound < 2 * C  # it says something
    worst = 0.0
    for _ in range(20):
        truth = rng.normal(size=4)
        truth /= np.linalg.norm(truth)
        Z, new = (each / np.linalg.norm(each, axis=1, keepdims=True)
                  for each in (rng.normal(size=(T, 4)), rng.normal(size=(500, 4))))  # fmt: skip
        if calibration == "gaussian":
            b = rng.normal(scale=math.sqrt(T) * facts.prediction / gaussian_mu(1.0, 1e-6), size=T)
        else:
            b = rng.laplace(scale=facts.prediction * 60, size=T)
        alpha = nearest_in_ball(Pool.of(Z @ Z.T), Z @ truth + b, C)
        worst = max(worst, float(np.mean(np.abs(new @ (Z.T @ alpha - truth)))))
    assert worst <= bound


def sample(n, kind):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, X[:, 0] * 1.0 if kind is KernelRegressor else (X[:, 0] > 0) * 1.0


@pytest.mark.parametrize("kind", [KernelRegressor, KernelClassifier])
@pytest.mark.parametrize("start", ["public", "zero"])
def test_a_fitted_model_is_within_its_bound(kind, start):
    """Against the same fit with a noise that does not count, at the same penalty."""
    X, y = sample(600, kind)
    release = GaussianProcess(start=start)
    options = {"kernel": "linear", "penalty": 0.3, "release": release, "noise": "seeded"}
    private = Private(X[100:], y[100:])
    model = kind(epsilon=1.0, delta=1e-6, random_state=0, **options)
    model.fit(X[:100], y[:100], private=private)
    plain = kind(epsilon=1e6, delta=1e-6, random_state=0, **options)
    plain.fit(X[:100], y[:100], private=private)
    assert plain.reach_ == pytest.approx(model.reach_) or kind is KernelRegressor
    if kind is KernelClassifier:
        off = np.abs(model.decision_function(X) - plain.decision_function(X)).max()
        assert off <= model.error_bound(len(X), beta=1e-6)
    assert 0 < model.error_bound(1) < model.error_bound(10_000)
    assert kind(epsilon=1.0, delta=1e-6).fit(X, y).error_bound() == 0.0


def test_what_has_no_bound_says_so():
    X, y = sample(120, KernelClassifier)
    private = Private(X[40:], y[40:])
    facts = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
    pool = KernelClassifier(features="none", **facts).fit(X[:40], y[:40], private=private)
    with pytest.raises(ValueError, match="between the points of a pool"):
        pool.error_bound()
    model = KernelClassifier(features="none", release=TDDL(points=20), **facts)
    assert model.fit(X[:40], y[:40], private=private).error_bound() > 0
    for release, said in ((TDIL(points=20), "first round"), (TDDL(norm_share=0.5), "norm_share")):
        model = KernelClassifier(features="none", release=release, **facts)
        with pytest.raises(ValueError, match=said):
            model.fit(X[:40], y[:40], private=private).error_bound()


def test_the_bound_of_people_with_several_rows_is_that_of_their_noise():
    """One person of 10 rows is replaced as a whole: noise is 10 times that of as many rows."""
    X, y = sample(600, KernelRegressor)
    ids = np.repeat(np.arange(50), 10)
    options = {"kernel": "linear", "penalty": 0.3, "release": GaussianProcess(start="zero")}
    bounds, noise = [], []
    for unit in ({}, {"unit": ids, "max_rows": 10}):
        model = KernelRegressor(epsilon=1.0, delta=1e-6, **options)
        model.fit(X[:100], y[:100], private=Private(X[100:], y[100:], **unit))
        bounds.append(model.error_bound())
        noise.append(model.guarantee_.events[0].scale)
    assert noise[1] == pytest.approx(10 * noise[0])
    assert bounds[1] == pytest.approx(10 * bounds[0])


def test_a_bound_is_for_all_scores_of_an_answer():
    """A hundred scores of one answer are a hundred chances to be off."""
    facts = replace(FACTS, rows=1000)
    noise = facts.prediction / gaussian_mu(1.0, 1e-6)
    off = np.abs(noise * np.random.default_rng(2).normal(size=(20_000, 100))).max(axis=1)
    assert np.mean(off > path_error(facts, 1)) > 0.3
    assert np.mean(off > path_error(replace(facts, outputs=100), 1)) <= 0.05
    assert excess_of_tddl(replace(facts, outputs=4), 10**4) > excess_of_tddl(facts, 10**4)
    with pytest.raises(ValueError, match="gaussian"):
        excess_of_tddl(replace(facts, outputs=4), 100, calibration="laplace")
    X, y = sample(600, KernelRegressor)
    thirds = np.digitize(y, [-0.3, 0.3])
    model = KernelClassifier(epsilon=1.0, delta=1e-6, kernel="linear")
    model.fit(X[:100], thirds[:100], private=Private(X[100:], thirds[100:]))
    assert model.facts_.outputs == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [("rows", 0), ("penalty", 0.0), ("epsilon", -1), ("delta", 2), ("norm", -1.0), ("beta", 1.0)],
)
def test_bad_facts_are_refused(field, value):
    with pytest.raises(ValueError, match=r"rows|penalty|epsilon|delta|ball|beta"):
        replace(FACTS, **{field: value})
    for call in (answer_error, excess_of_tddl, error_of_tdil):
        with pytest.raises(ValueError, match="calibration"):
            call(FACTS, 10, calibration="best")
