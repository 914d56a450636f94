"""Paper 003 in one call: constants of the theorems, the continuous loss, weights, divergences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpadapt import Agents, NoisyGDClassifier, Private
from dpadapt.hybrid import (
    BitTest,
    Divergences,
    EstimatorLearner,
    GradientLearner,
    PaperSchedule,
    PaperTest,
    SGDLearner,
    SubsampleTestReweigh,
    rows_for_a_finite_class,
    rows_for_utility,
    sizes_of_algorithm_2,
    sizes_of_algorithm_4,
)
from dpadapt.hybrid.questions import Loss, Mistake
from dpadapt.hybrid.rules import LinearRule
from dpadapt.papers.hybrid.doors._compiled import steps
from dpadapt.papers.hybrid.learners import LearningTask

KNOWN = {"alpha": 0.2, "beta": 0.05, "chi2": 0.35, "epsilon": 1.0, "delta": 1e-6}


# the constants in one call


def rounded(number):
    return pytest.approx(number, abs=1.0)  # up to the rounding up


@pytest.mark.parametrize("features", ["linear", "quadratic"])
@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_algorithm_4_has_the_constants_of_the_ball_that_it_runs_in(calibration, features):
    """Theorem A.4's formulas once more, with L and D measured on the learner's own descent."""
    alpha, beta, excess, d = 0.2, 0.05, 1.35, 2
    options = {"calibration": calibration, "features": features, "classes": [0.0, 1.0]}
    model = SubsampleTestReweigh.from_theorem(**KNOWN, dimension=d, **options)
    width = {"linear": 3, "quadratic": 6}[features]
    blank = LinearRule(features, np.zeros(width - 1), np.ones(width - 1), np.zeros(width), (0, 1))
    descent = model.learner.descent(LearningTask(10**6, d, blank))
    D = 2 * descent.radius
    assert descent.radius == pytest.approx(math.sqrt(width))
    X = np.random.default_rng(0).normal(scale=9.0, size=(2000, d))
    steep, losses = 0.0, []
    for y in (np.full(2000, -1.0), np.full(2000, 1.0)):
        for direction in blank.embed(X)[:20]:
            edge = descent.radius * direction / np.linalg.norm(direction)
            rule = blank.with_coefficients(edge)
            steep = max(steep, np.linalg.norm(rule.slopes(X, y), axis=1).max())
            losses.append(rule.losses(X, y).max())
            answers = model.test.question(rule).values(X, y)
            assert answers * model.test.loss_bound == pytest.approx(rule.losses(X, y))  # none cut
    assert 0.8 < steep <= 1  # L = 1
    assert 0.5 * model.test.loss_bound < max(losses) < model.test.loss_bound == pytest.approx(D)

    T = 128 * D**2 * math.log2(8 * excess / alpha) / alpha**2
    assert model.schedule.kappa == pytest.approx(alpha / (8 * excess))
    assert model.schedule.rounds == rounded(T)
    assert model.test.halt_at * D == pytest.approx(3 * alpha)  # in units of the loss
    assert model.target_error * D == pytest.approx(4 * alpha)
    if calibration == "paper":
        assert isinstance(model.test, PaperTest)
        assert model.schedule.rate == pytest.approx(alpha / 8)
        assert model.test.batch == rounded(4 * math.log(2e6) * math.log(8 * T / beta) / alpha**2)
        R = max(9 * (1 + model.learner.sigma**2 * width), 8 * math.log(2 / beta))
        assert model.learner.steps == rounded(D**2 * R / alpha**2)
    else:
        assert isinstance(model.test, BitTest)
        assert model.learner.sigma is None
        assert model.schedule.rate == pytest.approx(alpha / (8 * D))
        shrunk = (math.e - 1) / (math.e + 1)
        wanted = math.log(2 * math.ceil(T) / beta) / (2 * (alpha / D * shrunk) ** 2)
        assert model.test.batch == rounded(wanted)
        sure = 1.5 * math.sqrt(1 + 20 * width) + math.sqrt(8 * math.log(4 / beta))
        sure += math.sqrt(40 * math.log(2 / beta))
        assert model.learner.steps == rounded((D * sure / alpha) ** 2)


def test_a_certificate_says_whether_it_is_about_mistakes_or_a_loss():
    X, y = population(4000, 0)
    texts = []
    for test in (BitTest(batch=300), BitTest(batch=300, loss_bound=2.0)):
        model = model_with(test, target_error=0.001, schedule=PaperSchedule(0.2, 0.5, 2))
        with pytest.warns(UserWarning, match="no rule was shown") as told:
            model.fit(private=Private(X, y), agents=Agents(*population(9000, 1)))
        texts.append(" ".join(str(each.message) for each in told))
        assert model.certificate_.about in ("mistakes", "logistic loss, over 2")
    assert "to err on at most 0.001 of the agents" in texts[0]
    assert "to have a logistic loss, over 2, of at most 0.001 in" in texts[1]


def test_algorithm_2_has_the_constants_of_its_theorem():
    learner = EstimatorLearner(NoisyGDClassifier(epsilon=1, delta=1e-8, steps=20), draws=500)
    model = SubsampleTestReweigh.from_theorem(**KNOWN, dimension=2, learner=learner)
    sizes = sizes_of_algorithm_2(**KNOWN, draws=500)
    assert model.learner.draws == 500
    assert model.learner.delta == pytest.approx(1e-6 / (math.e * math.sqrt(2 * sizes.rounds)))
    assert model.test.batch == sizes.agents_per_round
    assert model.test.loss_bound is None
    assert SubsampleTestReweigh.from_theorem(**KNOWN, dimension=2, unit=3.0).unit == 3.0


@pytest.mark.slow
def test_sizes_of_the_second_requirement_and_of_a_finite_class():
    facts = {key: KNOWN[key] for key in ("alpha", "beta", "chi2")}
    rows = rows_for_utility(**facts, dimension=8)
    assert rows_for_utility(**facts | {"chi2": 1.7}, dimension=8) == pytest.approx(
        2 * rows, rel=1e-3
    )
    few, many = (rows_for_a_finite_class(**KNOWN, rules=rules) for rules in (10, 10**6))
    assert few < many < 4 * few  # by the logarithm
    half = rows_for_a_finite_class(**KNOWN | {"alpha": 0.1}, rules=10)
    assert 6 < half / few < 14  # as 1/alpha^3, up to logarithms


def test_a_strongly_convex_loss_needs_fewer_steps():
    known = {**KNOWN, "alpha": 0.02, "beta": 0.5, "dimension": 8}
    plain = sizes_of_algorithm_4(**known, calibration="paper")
    convex = sizes_of_algorithm_4(**known, calibration="paper", convexity=1.0)
    assert convex.steps < plain.steps / 5
    unit = (1 + 20 * 8) / 0.02
    assert convex.steps == math.ceil(max(4 * unit * math.log(unit), 8 * math.log(4) / 0.02**2))


# the continuous loss


def population(n, seed, shift=0.0):
    X = np.random.default_rng(seed).normal(shift, 1.0, size=(n, 2))
    return X, (X[:, 0] > X[:, 1]).astype(float)


def model_with(test, **options):
    return SubsampleTestReweigh(
        epsilon=5.0, delta=1e-6, agent_epsilon=3.0, classes=[0.0, 1.0], test=test,
        noise="seeded", random_state=0, **options,
    )  # fmt: skip


@pytest.mark.parametrize("kind", [BitTest, PaperTest])
def test_agents_tell_the_loss_itself_and_rows_are_weighed_by_it(kind):
    X, y = population(4000, 0)
    test = kind(batch=3000, loss_bound=1.0)
    model = model_with(test, target_error=0.05, schedule=PaperSchedule(0.2, 0.5, 3))
    with pytest.warns(UserWarning, match="no rule was shown"):
        model.fit(private=Private(X, y), agents=Agents(*population(9000, 1)))
    assert len(model.candidates_) == 3
    T, t = population(20_000, 2)
    for each in model.candidates_:
        true = Loss(each.rule, 1.0).values(T, np.where(t > 0, 1.0, -1.0)).mean()
        assert each.error.value == pytest.approx(true, abs=0.08)
        assert abs(Mistake(each.rule).values(T, np.where(t > 0, 1.0, -1.0)).mean() - true) > 0.05
    weights = model.row_weights(X, y)
    losses = [Loss(each.rule, 1.0).values(X, 2 * y - 1) for each in model.candidates_[:-1]]
    assert weights == pytest.approx(np.exp(-0.5 * sum(1 - each for each in losses)))


def test_the_papers_stop_looks_at_the_mean_answer():
    X, y = population(4000, 0)
    agents = Agents(*population(9000, 1))
    test = BitTest(batch=300, halt_at=0.3)
    model = model_with(test, target_error=0.001, schedule=PaperSchedule(0.2, 0.5, 5))
    with pytest.warns(UserWarning, match="no rule"):
        model.fit(private=Private(X, y), agents=agents)
    assert len(model.candidates_) == 1
    assert model.candidates_[0].error.value <= 0.3 < 0.99
    for bad in ({"halt_at": 1.5}, {"loss_bound": 0.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            BitTest(**bad)


def test_weights_are_handed_on_as_a_public_function():
    X, y = population(4000, 0)
    test = BitTest(batch=500, agnostic=True)
    model = model_with(test, schedule=PaperSchedule(0.2, 0.5, 3), learner=GradientLearner(steps=5))
    model.fit(private=Private(X, y), agents=Agents(*population(5000, 1)))
    weights = model.row_weights(X, y)
    wrong = sum(each.rule.predict_sign(X) != 2 * y - 1 for each in model.candidates_[:-1])
    assert weights == pytest.approx(np.exp(-0.5 * (2 - wrong)))
    assert model.row_weights(X[:1], ["nobody"])[0] == pytest.approx(1.0)  # as if always wrong
    with pytest.raises(ValueError, match="label"):
        model.row_weights(X, y[:3])
    alone = model_with(test).fit(private=Private(X, y))
    assert (alone.row_weights(X, y) == 1).all()


# strongly convex and sparse descents


def by_hand(Z, y, penalty, lasso, radius, rate):
    h, total = np.zeros(Z.shape[1]), np.zeros(Z.shape[1])
    for r, (z, label) in enumerate(zip(Z, y, strict=True), start=1):
        total += h
        slope = -label if label * (h @ z) < 1 else 0.0
        step = 1 / (penalty * r) if penalty else rate / math.sqrt(r)
        h = h - step * (slope * z + penalty * h)
        h = np.sign(h) * np.maximum(np.abs(h) - step * lasso, 0.0)
        h *= min(1.0, radius / max(np.linalg.norm(h), 1e-300))
    return h, total


@pytest.mark.parametrize(("penalty", "lasso"), [(0.5, 0.0), (0.0, 0.05), (0.3, 0.02)])
def test_the_loop_with_penalties_is_the_one_by_hand(penalty, lasso):
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(200, 3)) / 3, rng.choice([-1.0, 1.0], size=200)
    at, total = np.zeros(3), np.zeros(3)
    steps(
        at, total, Z, y, np.zeros((200, 3)), 0, True, 1.0, 10.0, 2.0, 0.7, 0.0, 0.0, penalty, lasso
    )
    h, expected = by_hand(Z, y, penalty, lasso, 2.0, 0.7)
    np.testing.assert_allclose(at, h, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_a_lasso_finds_the_columns_that_matter_in_one_round():
    """One paragraph of the paper: the true separating coordinates are found on S at once."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30_000, 12))
    y = (X[:, 3] - X[:, 7] > 0).astype(float)
    found = {}
    for lasso in (0.0, 0.05):
        learner = SGDLearner(steps=60_000, lasso=lasso)
        model = SubsampleTestReweigh(
            epsilon=3.0, delta=1e-6, agent_epsilon=1.0, learner=learner, classes=[0.0, 1.0],
            noise="seeded", random_state=0,
        )  # fmt: skip
        model.fit(private=Private(X, y))
        found[lasso] = np.abs(model.rule_.coefficients[:12])
        assert model.guarantee_.epsilon == pytest.approx(3.0, rel=0.01)
    assert set(np.argsort(found[0.05])[-2:]) == {3, 7}
    rest = [np.delete(found[each], [3, 7]).max() / found[each][[3, 7]].min() for each in found]
    assert rest[1] < rest[0]


def test_bad_penalties_are_refused():
    for name in ("penalty", "lasso"):
        with pytest.raises(ValueError, match=name):
            SGDLearner(**{name: -1.0})


# divergences


def test_divergences_of_two_gaussians():
    rng = np.random.default_rng(2)
    for scale in (0.9, 0.75):
        x = rng.normal(size=400_000)
        found = Divergences.of_densities(stats.norm(0, scale).logpdf, stats.norm(0, 1).logpdf, x)
        exact = 1 / (scale * math.sqrt(2 - scale**2))  # chi^2 + 1 in one dimension
        assert found.chi2 + 1 == pytest.approx(exact, rel=0.01)
        assert found.renyi(2) == pytest.approx(math.log(exact), rel=0.05)
        assert found.most == found.renyi(math.inf) == pytest.approx(-math.log(scale), rel=1e-3)
        assert found.renyi(1.5) < found.renyi(3) < found.most
        assert found.share == pytest.approx(1 / exact, rel=0.01)
        assert found.source_error(0.1) == pytest.approx(0.01 / exact, rel=0.01)


def test_divergences_of_two_samples_and_of_one_twice():
    rng = np.random.default_rng(3)
    S, T = rng.normal(size=(20_000, 2)), rng.normal(size=(20_000, 2)) * [0.7, 1.0]
    exact = 1 / (0.7 * math.sqrt(2 - 0.49)) - 1
    assert Divergences.of_samples(T, S).chi2 == pytest.approx(exact, rel=0.3)
    assert Divergences.of_samples(S[:10_000], S[10_000:]).chi2 < 0.01


def test_bad_samples_and_densities_are_refused():
    with pytest.raises(ValueError, match="same columns"):
        Divergences.of_samples([[1.0]], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="no numbers"):
        Divergences(np.array([0.0, np.nan]))
    with pytest.raises(ValueError, match="at least one"):
        Divergences(np.zeros(0))
    with pytest.raises(ValueError, match="order"):
        Divergences(np.zeros(3)).renyi(1.0)
    with pytest.raises(ValueError, match="alpha"):
        Divergences(np.zeros(3)).source_error(2.0)
