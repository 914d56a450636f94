"""Algorithms 1, 2 and 3 of paper 004, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.learning.softmax import gradient
from dpadapt.mixing import AdaMix, AdaptiveClip, GradientProjection, NoisyGD, Theory
from dpadapt.mixing.features import PublicSample, UnitRows, penalised
from dpadapt.mixing.solver import Iterates, Run
from dpadapt.papers.mixing.adamix import few_shot, held_out, one_pass, theorem_penalty
from dpadapt.papers.mixing.projection import GradientSpan
from mixing.mixing_problems import make, noisy_gd, problem


class NoPrivateGradients:
    """Stands in for NoisyGradients, with neither rows nor noise."""

    sigma = 1.0

    def __call__(self, W, clip):
        return np.zeros_like(W)


def trained(solver, gradients, public, start, steps, sample_size=1.0):
    """Run a solver by itself; returns the weights and the iterates."""
    iterates = Iterates(steps, keep=True)
    run = Run(gradients, public, start, "public", sample_size, iterates)
    return solver.train(run)[0], iterates


def test_algorithm_1_by_hand():
    rng = np.random.default_rng(0)
    nobody, push = (
        PublicSample(np.zeros((0, 3)), np.zeros(0, dtype=int), 2),
        rng.normal(size=(3, 2)),
    )

    class Constant(NoPrivateGradients):
        def __call__(self, W, clip):
            return clip * push

    solver = NoisyGD(learning_rate=0.3, clip=0.5, penalty=0.1)
    found, iterates = trained(solver, Constant(), nobody, np.ones((3, 2)), 4, sample_size=50.0)
    W, mean = np.ones((3, 2)), 0.0
    for _ in range(4):
        mean = mean + W / 4
        W = W - 0.3 * (0.5 * push / 50 + 0.1 * W)
    np.testing.assert_allclose(found, W, rtol=1e-12)
    assert iterates.clips == [0.5] * 4
    averaged, _ = trained(
        solver.with_params(average=True), Constant(), nobody, np.ones((3, 2)), 4, sample_size=50.0
    )
    np.testing.assert_allclose(averaged, mean, rtol=1e-12)


def test_algorithm_3_pulls_towards_the_public_model():
    """Without gradients it stays at w_ref."""
    reference = np.arange(6.0).reshape(3, 2)
    nobody = PublicSample(np.zeros((0, 3)), np.zeros(0, dtype=int), 2)
    found, _ = trained(Theory(penalty=3.0), NoPrivateGradients(), nobody, reference, 40)
    np.testing.assert_allclose(found, reference)


def test_algorithm_3_update_and_average_by_hand():
    rng = np.random.default_rng(0)
    public = PublicSample(rng.normal(size=(7, 3)), rng.integers(2, size=7), 2)
    reference, push = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))

    class Constant(NoPrivateGradients):
        def __call__(self, W, clip):
            return clip * push

    found, _ = trained(Theory(clip=0.5, penalty=2.0), Constant(), public, reference, 9)
    W, mean = reference, 0.0
    for t in range(1, 10):
        mean = mean + 2 * t / (9 * 10) * W
        slope = 0.5 * push + gradient(public.rows, public.codes, W) + 2.0 * (W - reference)
        W = W - 2 / (2.0 * (t + 1)) * slope
    np.testing.assert_allclose(found, mean, rtol=1e-12)


def test_theorem_3_lambda_minimises_its_bound():
    best = theorem_penalty(50, 1.3, 0.7, 2.5)

    def bound(penalty):
        return 50 * 1.3**2 / (penalty * 0.7**2 / 2) + penalty / 2 * 2.5**2

    assert bound(best) < min(bound(0.99 * best), bound(1.01 * best))
    assert bound(best) == pytest.approx(
        2 * math.sqrt(50) * 1.3 * 2.5 / 0.7
    )  # the printed one: half


def test_algorithm_2_by_hand():
    """One step: clip from held-out rows, private sum, public sum, both penalised."""
    rng = np.random.default_rng(0)
    public = PublicSample(rng.normal(size=(12, 3)), np.arange(12) % 2, 2)
    aside = held_out(public.codes)
    fitted, held = public.part(~aside), public.part(aside)
    W, push = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))

    class Constant(NoPrivateGradients):
        def __call__(self, W, clip):
            return clip * push

    solver = AdaMix(AdaptiveClip(50.0), learning_rate=0.3, penalty=0.1, mixing=2.0)
    found, iterates = trained(solver, Constant(), public, W, 1, sample_size=92.0)
    norms = []
    for x, code in zip(held.rows, held.codes, strict=True):
        p = np.exp(x @ W) / np.exp(x @ W).sum()
        norms.append(np.linalg.norm(np.outer(x, p - np.eye(2)[code])))
    clip = np.percentile(norms, 50)
    assert len(norms) == 2
    assert iterates.clips == pytest.approx([clip])
    mixed = clip * push + 2.0 * gradient(fitted.rows, fitted.codes, W)
    np.testing.assert_allclose(found, W - 0.3 * (mixed / (92 + 20) + 0.1 * W), rtol=1e-12)


def test_rows_are_held_out_for_an_adaptive_clip_alone_and_the_span_has_all_of_them():
    """The paper's Figure 5 would hide what a projection can do, if the span were smaller."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 30)), np.arange(12) % 2
    T, t = rng.normal(size=(40, 30)), np.arange(40) % 2
    span = GradientProjection(clip_first=True)
    for clipping, fitted in (("fixed", 12), ("adaptive", 10)):
        solver = AdaMix(clipping, mixing=0.0, penalty=0.0, projection=span)
        assert len(solver.fitted_part(PublicSample(X, y, 2))) == fitted
        model = make(solver=solver, steps=2, keep_trajectory=True).fit(
            X, y, private=Private(T + 0, t)
        )
        first, second = model.trajectory_
        sample = PublicSample(model.features_.rows(X), y, 2)
        aside = held_out(y)
        for part, least, most in ((sample, 0.0, 1e-4), (sample.part(~aside), 0.05, 1.0)):
            U = GradientSpan.of(part.rows, part.codes, first)
            moved = second - first
            left = np.linalg.norm(moved - U.back(U.coordinates(moved))) / np.linalg.norm(moved)
            assert least <= left <= most


def test_noisy_descent_without_noise_finds_the_minimum():
    """With a huge epsilon Algorithm 1 is gradient descent on the private loss."""
    X, y, T, t = problem(n=400, classes=2)
    model = noisy_gd(epsilon=1e5, delta=1e-3, steps=600, solver=NoisyGD(clip=2.0, penalty=1e-2))
    model.fit(X, y, private=Private(T, t))
    rows = model.features_.rows(T)
    best = penalised(PublicSample(rows, t, 2), penalty=1e-2)
    slopes, _ = model.features_.linear(best)
    np.testing.assert_allclose(model.coef_[0], slopes[:, 1] - slopes[:, 0], atol=2e-2)


def test_small_epsilon_gives_the_public_model_or_near():
    X, y, T, t = problem()
    model = make(epsilon=1e-9, delta=1e-9).fit(X, y, private=Private(T, t))
    public = make().fit(X, y)
    np.testing.assert_allclose(model.coef_, public.coef_, atol=1e-4)


def test_averaged_iterate_is_the_mean_of_the_path():
    X, y, T, t = problem()
    for model in (noisy_gd(), make(), make(solver="adamix")):
        model.set_params(solver__average=True)
        model.set_params(keep_trajectory=True).fit(X, y, private=Private(T, t))
        slopes, _ = model.features_.linear(np.mean(model.trajectory_, axis=0))
        np.testing.assert_allclose(model.coef_, slopes.T, atol=1e-12)


def test_public_phases_agree_where_they_should():
    """Descent for long enough is the penalised minimum; one pass points the same way."""
    X, y, _, _ = problem(classes=2)
    rows = UnitRows.of(X, y, 2)
    public = PublicSample(rows.rows(X), y, 2)
    long = few_shot(public, steps=5000, rate=2.0, penalty=1e-2)
    best = penalised(public, penalty=1e-2)
    np.testing.assert_allclose(long, best, atol=1e-3)
    once = one_pass(public, curvature=0.1, clip=1.0, seed=0)
    cosine = np.sum(once * best) / np.linalg.norm(once) / np.linalg.norm(best)
    assert cosine > 0.7
