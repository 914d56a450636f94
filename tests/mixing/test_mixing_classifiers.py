"""AdaMixClassifier and NoisyGDClassifier: what they promise beyond the contract, and bad input."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.datasets import load_digits

from contracts import everything_said, releases, taped
from dpadapt import AdaMixClassifier, AdaptationPipeline, NoisyGDClassifier, Private
from dpadapt.mixing import adamix, known_noise, unsafe_individual_losses
from dpadapt.mixing.features import PublicSample, UnitRows
from dpadapt.mixing.known_noise import (
    affordable_noise,
    margins_of,
    plan_horizon,
    unseen_margins,
)
from dpadapt.mixing.noisy_gd import NoisyGradients, Path
from dpadapt.mixing.public_phase import class_energy, few_shot, one_pass, penalised
from dpadapt.mixing.softmax import gradient
from dpadapt.mixing.steps import row_mu, steps_for_noise
from dpadapt.mixing.theory import regularised_descent, theorem_penalty
from dpadapt.privacy import compose_epsilon

SEEDED = {"noise": "seeded", "random_state": 0}
SOLVERS = ("known-noise", "adamix", "theory")


def make(**params):
    return AdaMixClassifier(**({"epsilon": 1.0, "delta": 1e-6, "steps": 8} | SEEDED | params))


def noisy_gd(**params):
    return NoisyGDClassifier(**({"epsilon": 1.0, "delta": 1e-6, "steps": 8} | SEEDED | params))


def problem(seed=0, m=30, n=300, d=4, classes=3):
    rng = np.random.default_rng(seed)
    centers = 2 * rng.normal(size=(classes, d))
    y, t = np.arange(m) % classes, rng.integers(classes, size=n)
    return centers[y] + rng.normal(size=(m, d)), y, centers[t] + rng.normal(size=(n, d)), t


def digits(seed, n_test=450):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    test, rest = order[:n_test], order[n_test:]
    public = np.concatenate([rest[y[rest] == digit][:5] for digit in range(10)])
    private = np.setdiff1d(rest, public)
    return (X[public], y[public]), (X[private], y[private]), (X[test], y[test])


def gdp_delta(epsilon, mu):
    """Written out again, on purpose."""
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


# how many steps ----------------------------------------------------------------------------------


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
    model = noisy_gd(epsilon=3.0, delta=1e-5, steps=None, sigma=20.0, relation="add-remove")
    X, y, T, t = problem(n=20)
    model.fit(X, y, private=Private(T, t))
    (event,) = [e for e in model.guarantee_.events if e.label == "clipped gradients"]
    assert model.n_steps_ == event.count == 206
    (count,) = [e for e in model.guarantee_.events if e.label == "number of rows"]
    assert math.hypot(event.gaussian_mu, count.gaussian_mu) == pytest.approx(0.7191, abs=2e-4)
    assert model.guarantee_.epsilon == pytest.approx(3.0, rel=1e-6)
    assert math.sqrt(206) / 20 == pytest.approx(0.7176, abs=1e-4)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    "params", [{"steps": 50}, {"steps": None, "sigma": 20.0}, {"steps": None}], ids=str
)
def test_steps_or_noise_follow_from_each_other(relation, params):
    X, y, T, t = problem()
    model = noisy_gd(epsilon=3.0, delta=1e-5, relation=relation, sample_size=300, **params)
    model.fit(X, y, private=Private(T, t))
    mu = math.sqrt(model.n_steps_) / model.sigma_
    assert mu == pytest.approx(row_mu(3.0, 1e-5, relation), rel=2e-3)
    if params["steps"] is None:
        assert model.sigma_ == pytest.approx(20.0, rel=0.01)  # the budget is used up to the end


# what is released --------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("projection", [None, "gradients"])
def test_noise_is_sigma_clips_in_every_coordinate(relation, projection):
    """The release is in clips; what the step gets is sigma times the clip of the step."""
    X, y, T, t = problem(n=50)
    model = make(
        solver="adamix", relation=relation, sample_size=50, projection=projection, steps=300
    )
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
        from dpadapt.mixing.noisy_gd import gradient_requests

        (asked,) = gradient_requests(session, rows, (5, 3), 400, sample_size=5)
        (grant,) = session.plan(asked)
        oracle, W = NoisyGradients(session, rows, grant), np.zeros((5, 3))
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


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_number_of_rows_is_no_secret_normaliser(solver):
    """Rows that contribute nothing change nothing, given a public sample size."""
    X, y, T, t = problem()
    params = {"solver": solver, "relation": "add-remove", "sample_size": 300, "mixing": 1.0}
    one = make(**params).fit(X, y, private=Private(T, t))
    unknown = np.concatenate([t, np.full(77, 99)])  # of no class
    two = make(**params).fit(X, y, private=Private(np.vstack([T, T[:77]]), unknown))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=0, atol=1e-12)
    other = make(**{**params, "sample_size": 150}).fit(X, y, private=Private(T, t))
    if solver != "theory":  # which takes sums, not means
        assert np.abs(one.coef_ - other.coef_).max() > 1e-6


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
    monkeypatch.setattr(NoisyGradients, "_release", lambda self, query: np.ones(query.shape(0)))
    for name, rows in (("one", T), ("two", -3 * T + 1)):
        model = make(solver="adamix", projection="gradients", keep_trajectory=True)
        model.fit(X, y, private=Private(rows, t))
        seen[name] = model
    np.testing.assert_array_equal(seen["one"].clips_, seen["two"].clips_)
    for W, V in zip(seen["one"].trajectory_, seen["two"].trajectory_, strict=True):
        np.testing.assert_array_equal(W, V)


# the algorithms ----------------------------------------------------------------------------------


class NoPrivateGradients:
    """Stands in for NoisyGradients, with neither rows nor noise."""

    sigma = 1.0

    def __call__(self, W, clip):
        return np.zeros_like(W)


def test_algorithm_3_pulls_towards_the_public_model():
    """Without gradients its fixed point is w_ref; as printed it would not move at all."""
    reference = np.arange(6.0).reshape(3, 2)
    nobody = PublicSample(np.zeros((0, 3)), np.zeros(0, dtype=int), 2)
    for start in (reference, reference + 5):
        gradients = NoPrivateGradients()
        path = Path(keep=True)
        found = regularised_descent(
            gradients, nobody, reference, 40, clip=1.0, penalty=3.0, mixing=1.0, path=path
        )
        np.testing.assert_allclose(found, reference)
        # from elsewhere: the same update, by hand
        W = start
        for t in range(1, 41):
            W = W - 2 / (3.0 * (t + 1)) * (3.0 * (W - reference))
        np.testing.assert_allclose(W, reference, atol=1e-12)


def test_algorithm_3_update_and_average_by_hand():
    rng = np.random.default_rng(0)
    public = PublicSample(rng.normal(size=(7, 3)), rng.integers(2, size=7), 2)
    reference, push = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))

    class Constant(NoPrivateGradients):
        def __call__(self, W, clip):
            return clip * push

    path = Path(keep=False)
    found = regularised_descent(
        Constant(), public, reference, 9, clip=0.5, penalty=2.0, mixing=1.0, path=path
    )
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
    public = PublicSample(rng.normal(size=(12, 3)), rng.integers(2, size=12), 2)
    held, W, push = public.part(slice(8, 12)), rng.normal(size=(3, 2)), rng.normal(size=(3, 2))

    class Constant(NoPrivateGradients):
        def __call__(self, W, clip):
            return clip * push

    recipe = adamix.Recipe(rate=0.3, clip=9.0, penalty=0.1, percentile=50.0, mixing=2.0)
    path = Path(keep=True)
    found = adamix.mixed_descent(
        Constant(), public.part(slice(0, 8)), held, W, 1, 92.0, recipe, path=path
    )
    norms = []
    for x, code in zip(held.rows, held.codes, strict=True):
        p = np.exp(x @ W) / np.exp(x @ W).sum()
        norms.append(np.linalg.norm(np.outer(x, p - np.eye(2)[code])))
    clip = np.percentile(norms, 50)
    assert path.clips == pytest.approx([clip])
    mixed = clip * push + 2.0 * gradient(public.rows[:8], public.codes[:8], W)
    np.testing.assert_allclose(found, W - 0.3 * (mixed / (92 + 16) + 0.1 * W), rtol=1e-12)


def test_noisy_descent_without_noise_finds_the_minimum():
    """With a huge epsilon Algorithm 1 is gradient descent on the private loss."""
    X, y, T, t = problem(n=400, classes=2)
    model = noisy_gd(epsilon=1e5, delta=1e-3, steps=600, clip=2.0, penalty=1e-2)
    model.fit(X, y, private=Private(T, t))
    rows = model.features_.rows(T)
    best = penalised(PublicSample(rows, t, 2), penalty=1e-2)
    slopes, _ = model.features_.linear(best)
    np.testing.assert_allclose(model.coef_[0], slopes[:, 1] - slopes[:, 0], atol=2e-2)


@pytest.mark.parametrize("solver", SOLVERS)
def test_small_epsilon_gives_the_public_model_or_near(solver):
    X, y, T, t = problem()
    model = make(epsilon=1e-9, delta=1e-9).fit(X, y, private=Private(T, t))
    public = make().fit(X, y)
    np.testing.assert_allclose(model.coef_, public.coef_, atol=1e-4)


def test_averaged_iterate_is_the_mean_of_the_path():
    X, y, T, t = problem()
    for model in (noisy_gd(average=True), make(average=True), make(average=True, solver="adamix")):
        model.set_params(keep_trajectory=True).fit(X, y, private=Private(T, t))
        slopes, _ = model.features_.linear(np.mean(model.trajectory_, axis=0))
        np.testing.assert_allclose(model.coef_, slopes.T, atol=1e-12)


# the default -------------------------------------------------------------------------------------


def test_kappa_grows_with_signal_over_noise_up_to_one():
    mus = np.geomspace(1e-4, 10, 60)
    kappas = [plan_horizon(500, mu, 0.3, 10).kappa for mu in mus]
    assert all(a <= b for a, b in itertools.pairwise(kappas))
    assert kappas[-1] == 1.0
    assert plan_horizon(1e9, 1.0, 1.0, 2).rate * 100 * 1e9 == pytest.approx(6400)


def test_the_noise_of_the_released_weights_is_kappa():
    """Not far from what was planned: later steps shrink it."""
    X, y, T, t = problem(d=30, n=400, classes=5, m=25)
    weights = []
    for seed in range(40):
        model = make(steps=100, random_state=seed).fit(X, y, private=Private(T, t))
        weights.append(model.features_.weights(model.coef_.T, model.intercept_))
    spread = np.std(weights, axis=0, ddof=1).mean()
    assert 0.5 * model.plan_.kappa < spread < 1.1 * model.plan_.kappa


def test_noise_costs_no_more_than_there_is_to_gain():
    """By the public rows; whatever their margins are."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        margins = rng.normal(
            rng.uniform(-1, 4), rng.uniform(0.01, 3), size=int(rng.integers(2, 90))
        )
        kappa = affordable_noise(margins)
        errors = np.mean(margins < 0)
        lost = np.mean(norm.cdf(-margins / (math.sqrt(2) * kappa)))
        assert 0 < kappa <= 1
        assert lost - errors <= max(errors, 0.5 / len(margins)) + 1e-9 or kappa <= 1e-3
    assert affordable_noise(np.full(50, 3.0)) < 1


def test_a_sure_public_model_gets_less_noise():
    """Nothing to gain, small margins: the noise shrinks, the accuracy stays."""
    rng = np.random.default_rng(0)
    centers = 9 * np.eye(3)
    y, t = np.arange(30) % 3, rng.integers(3, size=3000)
    X, T = centers[y] + rng.normal(size=(30, 3)), centers[t] + rng.normal(size=(3000, 3))
    model = make(steps=100, start=np.eye(3)).fit(X, y, private=Private(T, t))
    assert model.plan_.kappa < 0.5
    assert model.score(T, t) > 0.99


def test_margins_are_those_of_models_that_have_not_seen_the_row():
    """Labels drawn at random: a model that has seen a row knows it, one that has not does not."""
    rng = np.random.default_rng(0)
    rows = UnitRows.of(rng.normal(size=(60, 40)), np.arange(60) % 2, 2).rows(
        rng.normal(size=(60, 40))
    )
    public = PublicSample(rows, rng.permutation(np.arange(60) % 2), 2)
    seen = margins_of(public, penalised(public))
    unseen = unseen_margins(public)
    assert np.mean(seen < 0) < 0.15
    assert np.mean(unseen < 0) > 0.25
    assert unseen_margins(public.part([0, 1])) is None or len(unseen) == 60
    one_each = PublicSample(rows[:2], np.array([0, 1]), 2)
    assert unseen_margins(one_each) is None


def test_the_cap_reaches_the_plan(monkeypatch):
    given = []
    monkeypatch.setattr(known_noise, "affordable_noise", lambda m: given.append(m) or 0.123)
    X, y, T, t = problem(n=20_000)
    model = make(epsilon=8.0).fit(X, y, private=Private(T, t))
    assert model.plan_.kappa == 0.123
    assert given[0].shape == (len(X),)  # of all public rows


def test_class_energy_is_unbiased():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(3, 8)) / 4
    found = []
    for _ in range(400):
        codes = np.repeat(np.arange(3), 4)
        rows = means[codes] + rng.normal(size=(12, 8)) / 6
        found.append(class_energy(PublicSample(rows, codes, 3)))
    true = np.mean([m @ m for m in means]) - np.mean(
        [means[i] @ means[j] for i in range(3) for j in range(3) if i != j]
    )
    assert np.mean(found) == pytest.approx(true, rel=0.05)


def test_digits_few_examples_a_class():
    """Mean accuracy of three seeds; ten of them are in the slow test below."""
    scores = {"public": [], "ours": []}
    for seed in range(3):
        public, private, test = digits(seed)
        model = AdaMixClassifier(epsilon=3.0, delta=1e-5, **SEEDED)
        scores["public"].append(model.fit(*public).score(*test))
        scores["ours"].append(model.fit(*public, private=Private(*private)).score(*test))
    assert np.mean(scores["ours"]) > 0.915 > np.mean(scores["public"]) + 0.04


@pytest.mark.slow
@pytest.mark.parametrize(
    ("relation", "epsilon", "least"),
    [
        ("add-remove", 1.0, 0.91),
        ("add-remove", 3.0, 0.935),
        ("replace-one", 1.0, 0.89),
        ("replace-one", 3.0, 0.925),
    ],
)
def test_digits_accuracy(relation, epsilon, least):
    from reproduce.mixing.tasks import TASKS, draw

    found = []
    for seed in range(3, 13):
        sample = draw(TASKS["digits"], seed)
        params = {"noise": "seeded", "random_state": seed}
        model = AdaMixClassifier(epsilon=epsilon, delta=1e-5, relation=relation, **params)
        private = Private(sample.X_private, sample.y_private)
        model.fit(sample.X_public, sample.y_public, private=private)
        found.append(model.score(sample.X_test, sample.y_test))
        assert model.guarantee_.epsilon <= epsilon * (1 + 1e-9)
    assert np.mean(found) >= least


# private selection -------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_selection_is_charged(relation):
    X, y, T, t = problem(n=2000)
    model = make(
        solver="adamix", relation=relation, epsilon=3.0, select={"learning_rate": [1e-4, 2.0]}
    )
    with taped() as tape:
        model.fit(X, y, private=Private(T, t))
    assert model.selected_["learning_rate"] in (1e-4, 2.0)
    (event,) = model.guarantee_.events
    assert event.kind == "random-stopping"
    assert model.guarantee_.relation == relation
    assert 0.9 < model.guarantee_.epsilon / 3.0 <= 1 + 1e-9
    runs = len(releases(tape)) / (8 + 1 + (relation == "add-remove"))
    assert runs == int(runs) >= 1
    # a run by itself costs much less than the whole: trying is paid for
    assert compose_epsilon(event.base, 1e-6) < 0.8 * model.guarantee_.epsilon


def test_selection_chooses_what_is_better():
    X, y, T, t = problem(n=3000)
    chosen = []
    for seed in range(12):
        model = make(
            solver="adamix",
            epsilon=8.0,
            select={"learning_rate": [1e-5, 2.0]},
            start="zero",
            random_state=seed,
            mixing=0.0,
        )
        model.fit(X, y, private=Private(T, t))
        chosen.append(model.selected_["learning_rate"])
    assert chosen.count(2.0) >= 8


@pytest.mark.parametrize(
    "select", [{}, {"sigma": [1.0]}, {"clip": []}, {"clip": [-1.0]}, ["clip"], {"epsilon": [9.0]}]
)
def test_bad_selection_is_refused(select):
    with pytest.raises((ValueError, TypeError), match=r"select|clip"):
        make(select=select).fit(*problem()[:2])


# per-instance losses -----------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"solver": "adamix"},
        {"solver": "adamix", "projection": "gradients"},
        {"solver": "adamix", "projection": "gradients", "clip_first": True},
        {"projection": "features"},
        {"solver": "theory"},
    ],
    ids=str,
)
def test_no_individual_loss_is_above_the_guarantee(relation, params):
    X, y, T, t = problem(m=20, n=60)
    model = make(relation=relation, sample_size=60, keep_trajectory=True, **params)
    model.fit(X, y, private=Private(T, t))
    losses = unsafe_individual_losses(model, T, t, public=(X, y))
    whole = math.hypot(*(e.gaussian_mu for e in model.guarantee_.events))
    share = 1 if relation == "add-remove" else 2
    assert losses.shape == (60,)
    assert (share * losses <= whole * (1 + 1e-9)).all()
    assert losses.max() > 0.2 * whole / share
    assert np.ptp(losses) > 0
    # a row of no class takes part in nothing
    assert unsafe_individual_losses(model, T[:1], [99], public=(X, y))[0] < 1e-12


def test_individual_losses_are_those_of_the_removed_row():
    """Sum of squared moves of the releases at the same weights, row taken out: Proposition 14."""
    X, y, T, t = problem(n=12)
    model = make(relation="add-remove", sample_size=12, keep_trajectory=True)
    model.fit(X, y, private=Private(T, t))
    from dpadapt.mixing.gradients import ClippedGradients

    rows = model.features_.rows(T)
    total = 0.0
    for W, clip in zip(model.trajectory_, model.clips_, strict=True):
        query = ClippedGradients(W, clip, model.features_)
        move = query.block(rows, t) - query.block(rows[1:], t[1:])
        total += np.linalg.norm(move / model.sigma_) ** 2
    found = unsafe_individual_losses(model, T, t)[0]
    assert found == pytest.approx(math.sqrt(total), rel=1e-9)


@pytest.mark.parametrize("keep", [False, True])
def test_individual_losses_are_nowhere_in_the_model(keep):
    X, y, T, t = problem(n=40)
    model = make(keep_trajectory=keep).fit(X, y, private=Private(T, t))
    names = " ".join(vars(model))
    assert not any(word in names for word in ("loss", "individual_l", "norms", "mu_"))
    if not keep:
        assert not hasattr(model, "trajectory_")
        with pytest.raises(ValueError, match="keep_trajectory=True"):
            unsafe_individual_losses(model, T, t)
        return
    with everything_said() as said:
        losses = unsafe_individual_losses(model, T, t)
    assert said.all.strip() == ""
    data = pickle.dumps(model)
    for value in losses:
        assert np.float64(value).tobytes() not in data
        assert f"{value:.6g}" not in repr(model) + model.guarantee_.to_json()


def test_a_filter_bounds_what_a_row_can_lose():
    """With it every realised loss stays within the claim; without it the same noise would not."""
    X, y, T, t = problem(n=60)
    T = np.vstack([T, -5 * T[:5]])  # rows that never fit
    t = np.concatenate([t, t[:5]])
    model = make(
        relation="add-remove", sample_size=65, steps=60, individual_filter=6.0, keep_trajectory=True
    ).fit(X, y, private=Private(T, t))
    (event,) = model.guarantee_.events
    assert (event.count, model.n_steps_) == (10, 60)
    unfiltered = unsafe_individual_losses(model, T, t)
    assert unfiltered.max() > 1.5 * event.gaussian_mu  # what they would have paid
    assert model.guarantee_.epsilon <= 1 + 1e-9


# bad input ---------------------------------------------------------------------------------------


def fitted(model, *public, private):
    with everything_said() as said:
        model.fit(*public, private=private)
    assert said.all.strip() == ""
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert model.guarantee_.epsilon <= 1 + 1e-9
    return model


VARIANTS = [
    {},
    {"solver": "adamix"},
    {"solver": "adamix", "projection": "gradients"},
    {"solver": "adamix", "projection": "gradients", "clip_first": True},
    {"projection": "features"},
    {"solver": "theory"},
    {"relation": "add-remove"},
    {"individual_filter": 3.0},
]
every_variant = pytest.mark.parametrize("params", VARIANTS, ids=str)


@every_variant
def test_a_class_without_public_examples(params):
    X, y, T, t = problem(n=4000)
    seen = y != 2
    with pytest.raises(ValueError, match="classes"):
        make(classes=[0, 1]).fit(X, y, private=Private(T, t))
    whole = make(classes=[0, 1, 2], **{"steps": 60, **params})
    model = fitted(whole, X[seen], y[seen], private=Private(T, t))
    assert model.predict_proba(T).shape == (len(T), 3)
    if params in ({}, {"relation": "add-remove"}):
        found = (model.predict(T) == t)[t == 2].mean()
        assert found > 0.5  # and it is learned from private rows


def test_a_class_without_public_examples_has_no_share_in_the_public_model():
    X, y, _, _ = problem()
    model = make(classes=[0, 1, 2]).fit(X[y != 2], y[y != 2])
    p = model.predict_proba(X[y != 2])[:, 2]
    assert 0 < p.max() < 0.2


@every_variant
def test_no_public_data_is_noisy_descent_from_zero(params):
    _, _, T, t = problem(n=3000)
    model = fitted(make(classes=[0, 1, 2], **params), None, None, private=Private(T, t))
    assert model.n_features_in_ == 4
    assert model.score(T, t) > 0.4
    frame = pd.DataFrame(T, columns=list("abcd"))
    named = make(classes=[0, 1, 2], **params).fit(private=Private(frame, t))
    assert list(named.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(named.coef_, model.coef_)


@pytest.mark.parametrize("build", [make, noisy_gd])
def test_without_public_data_something_must_be_given(build):
    X, y, T, t = problem()
    with pytest.raises(ValueError, match="classes: without public rows"):
        build().fit(private=Private(T, t))
    with pytest.raises(ValueError, match="X: give public rows, or private ones, or both"):
        build(classes=[0, 1]).fit()
    with pytest.raises(ValueError, match="y: public labels without public rows"):
        build(classes=[0, 1]).fit(None, y)
    with pytest.raises(TypeError, match=r"dpadapt\.Private"):
        build(classes=[0, 1]).fit(private=T)
    with pytest.raises(ValueError, match="requires y to be passed"):
        build().fit(X)


@every_variant
def test_all_public_gradients_zero(params):
    """Public rows at their center, and weights that fit: nothing but the floor of the clip."""
    _, _, T, t = problem(classes=2)
    X, y = np.zeros((6, 4)), np.array([0, 1] * 3)
    start = np.zeros((2, 4))
    model = fitted(make(start=start, **params), X, y, private=Private(T, t))
    if params.get("solver") == "adamix":
        assert (model.clips_ >= adamix.LEAST_CLIP).all()


@pytest.mark.parametrize("clip_first", [False, True])
def test_an_empty_span_moves_nothing_but_what_is_public(clip_first, monkeypatch):
    """All public gradients exactly zero: the subspace has no dimension, and is charged for."""
    X, y, T, t = problem()
    from dpadapt.mixing.projection import GradientSpan

    def empty(cls, rows, codes, W, rank=None, inner=None):
        return cls(rows, np.zeros((len(rows), W.shape[1])), np.zeros((len(rows), 0)))

    monkeypatch.setattr(GradientSpan, "of", classmethod(empty))
    params = {"solver": "adamix", "projection": "gradients", "clip_first": clip_first}
    model = make(**params, mixing=0.0, penalty=0.0, keep_trajectory=True)
    fitted(model, X, y, private=Private(T, t))
    np.testing.assert_array_equal(model.trajectory_[0], model.trajectory_[-1])
    assert model.guarantee_.epsilon == pytest.approx(1.0)


@every_variant
@pytest.mark.parametrize("classes", [2, 7])
def test_two_classes_and_many(params, classes):
    X, y, T, t = problem(classes=classes, m=4 * classes)
    model = fitted(make(**params), X, y, private=Private(T, t))
    scores = model.decision_function(T)
    assert scores.shape == ((len(T),) if classes == 2 else (len(T), classes))
    assert model.coef_.shape == ((1, 4) if classes == 2 else (classes, 4))
    np.testing.assert_allclose(model.predict_proba(T).sum(axis=1), 1)


def test_one_class_is_refused():
    X, _, T, t = problem()
    for build in (make, noisy_gd):
        with pytest.raises(ValueError, match="only one class"):
            build().fit(X, np.zeros(len(X)), private=Private(T, t))
        with pytest.raises(ValueError, match="only one class"):
            build(classes=[1]).fit(private=Private(T, t))


@every_variant
def test_features_of_norm_zero_and_infinity(params):
    X, y, T, t = problem()
    T = T.copy()
    T[0], T[1], T[2], T[3] = 0.0, np.inf, np.nan, 1e300
    T[4], T[5] = -1e308, 1e-320
    model = fitted(make(**params), X, y, private=Private(T, t))
    far = np.array([[1e300] * 4, [1e-320] * 4, [0.0] * 4])
    assert np.isfinite(model.decision_function(far)).all()
    np.testing.assert_array_equal(model.predict(T[6:9]), model.predict(T[6:9].copy()))


@every_variant
@pytest.mark.parametrize("n", [1, 2])
def test_one_private_row(params, n):
    X, y, T, t = problem()
    fitted(make(**params), X, y, private=Private(T[:n], t[:n]))


@every_variant
def test_more_columns_than_rows(params):
    X, y, T, t = problem(d=60, m=6, n=20)
    fitted(make(**params), X, y, private=Private(T, t))


@every_variant
def test_one_public_row_a_class(params):
    X, y, T, t = problem(m=3)
    model = fitted(make(**params), X, y, private=Private(T, t))
    public = make(**params).fit(X, y)
    assert np.abs(public.coef_).max() > 0.1  # the rows are used, though none can be held out
    if params.get("solver") == "adamix":
        tiny = make(**params, epsilon=1e-9, delta=1e-9).set_params(mixing=0.0, penalty=0.0)
        start = make(**params).set_params(penalty=0.0).fit(X, y)
        tiny.set_params(learning_rate=1e-12).fit(X, y, private=Private(T, t))
        np.testing.assert_allclose(tiny.coef_, start.coef_, atol=1e-2)
    assert np.isfinite(model.score(T, t))


@every_variant
def test_constant_columns(params):
    X, y, T, t = problem()
    X[:, 1], T[:, 1] = 5.0, 5.0
    fitted(make(**params), X, y, private=Private(T, t))


@pytest.mark.parametrize(
    ("params", "match"),
    [
        (
            {"sigma": 0.1, "steps": None, "solver": "adamix"},
            "sigma=0.1 is too small.*Take at least",
        ),
        ({"sigma": 1e-9, "steps": None}, "sigma=1e-09 is too small"),
        ({"steps": 5, "sigma": 20.0}, "steps and sigma"),
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"sigma": -1.0, "steps": None}, "sigma"),
        ({"sigma": math.nan, "steps": None}, "sigma"),
        ({"relation": "add_remove"}, "relation must be one of 'replace-one', 'add-remove'"),
        ({"solver": "newton"}, "solver must be one of"),
        ({"clipping": "soft"}, "clipping must be one of"),
        ({"clipping": "adaptive"}, "clipping='adaptive' needs solver='adamix'"),
        ({"projection": "gradients"}, "projection='gradients' needs solver='adamix'"),
        ({"projection": "random"}, "projection must be one of"),
        ({"learning_rate": 1.0}, "learning_rate needs solver='adamix'"),
        ({"penalty": 1.0}, "penalty needs solver"),
        ({"solver": "theory", "penalty": 0.0}, "penalty"),
        ({"solver": "adamix", "penalty": -1.0}, "penalty"),
        ({"clip": 0.0}, "clip"),
        ({"clip": math.inf}, "clip"),
        ({"solver": "adamix", "clipping": "adaptive", "clip": 1.0}, "clip: with clipping"),
        ({"percentile": 0.0}, "percentile"),
        ({"percentile": 101}, "percentile"),
        ({"mixing": -0.5}, "mixing"),
        ({"rank": 0}, "rank"),
        ({"individual_filter": 0.5}, "individual_filter must be at least 1"),
        ({"sample_size": 0}, "sample_size"),
        ({"start": "warm"}, "start must be one of"),
        ({"start": np.zeros((3, 9))}, r"start must have the shape \(3, 4\), or \(3, 5\)"),
        ({"start": np.full((3, 4), np.nan)}, "start must be finite"),
    ],
    ids=str,
)
def test_bad_parameters_are_told_before_anything_is_spent(params, match):
    X, y, T, t = problem()
    private = Private(T, t)
    with taped() as tape, pytest.raises((ValueError, TypeError), match=match):
        make(**params).fit(X, y, private=private)
    assert tape == []
    assert private.spent(1e-6).epsilon == 0


def test_given_weights_are_where_it_starts():
    """As from a text encoder: one direction for each class, with constants or without."""
    X, y, T, t = problem()
    rng = np.random.default_rng(0)
    start, constants = rng.normal(size=(3, 4)), rng.normal(size=3)
    plain = make(start=start).fit(X, y)
    np.testing.assert_allclose(plain.coef_, start)
    np.testing.assert_allclose(plain.intercept_, 0, atol=1e-15)
    model = make(start=np.column_stack([start, constants])).fit(X, y)
    np.testing.assert_allclose(model.intercept_, constants)
    tiny = make(start=start, epsilon=1e-9, delta=1e-9).fit(X, y, private=Private(T, t))
    np.testing.assert_allclose(tiny.coef_, start, atol=1e-4)
    two = make(start=start[:1]).fit(X[y < 2], y[y < 2])
    np.testing.assert_allclose(two.coef_, start[:1])
    for solver in ("adamix", "theory"):
        fitted(make(start=start, solver=solver), X, y, private=Private(T, t))


def test_a_private_row_of_no_class_is_left_out_in_silence():
    X, y, T, t = problem()
    labels = t.astype(str).astype(object)
    labels[3], labels[5], labels[7] = "unheard of", None, 17
    fitted(make(), X, y.astype(str), private=Private(T, labels))


def test_in_a_pipeline_with_text_columns():
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    X, y, T, t = problem()
    public, private = (
        pd.DataFrame(rows, columns=list("abcd")).assign(kind=["x", "z"] * (len(rows) // 2))
        for rows in (X, T)
    )
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["kind"]), remainder="passthrough"
    )
    model = AdaptationPipeline([("columns", steps)], make())
    model.fit(public, y, private=Private(private, t))
    assert model.score(private, t) > 0.5


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
