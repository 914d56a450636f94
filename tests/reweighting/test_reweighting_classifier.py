"""ReweightingClassifier: the contract, bad input, and what the solvers promise beyond it."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder

from dpadapt import AdaptationPipeline, Private, ReweightingClassifier
from dpadapt.baselines import NoisyGradientClassifier
from dpadapt.learning.cautions import CautionWarning
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.reweighting import GeneralGradient, KnownNoise, ProfiledLogistic
from dpadapt.testing.search import everything_said
from dpadapt.testing.tape import releases, taped
from reweighting.making import made

SOLVERS = ("known-noise", "gradient", "profiled")
PAPER = SOLVERS[1:]
MANY = {solver: {"steps": 100} for solver in PAPER}


# samples


def make(**params):
    given = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
    if params.get("solver") in ("gradient", "profiled"):
        given["steps"] = 10
    return made(ReweightingClassifier, **(given | params))


def problem(seed=0, m=150, n=300, d=3, classes=2):
    """Other boundaries in the private domain."""
    rng = np.random.default_rng(seed)
    slopes = np.resize([1.0, -1.0, 0.5], d)
    X, T = rng.normal(size=(m, d)), rng.normal(0.2, 1.0, size=(n, d))
    cuts = [0.0] if classes == 2 else [-0.7, 0.7]
    y = np.digitize(X @ slopes + 0.3 * rng.normal(size=m), cuts)
    return X, y, T, np.digitize(T @ (slopes + 0.2) + 0.3 + 0.3 * rng.normal(size=n), cuts)


def moderate_shift(seed, n=1000, d=30, size=0.5):
    """A shift of the slopes and of the level, about as large as the noise; and a test sample."""
    rng = np.random.default_rng(seed)
    slopes, move = rng.normal(size=d), rng.normal(size=d)
    move *= size / np.linalg.norm(move)
    X, T = rng.normal(size=(1000, d)), rng.normal(0.2, 1.0, size=(n + 4000, d))
    y = X @ slopes + rng.normal(size=1000) > 0
    t = T @ (slopes + move) + size + rng.normal(size=n + 4000) > 0
    return (X, y), (T[:n], t[:n]), (T[n:], t[n:])


def refused(match, **params):
    """Assert that a fit is refused, with a private sample and without, before it spends."""
    X, y, T, t = problem(m=60, n=60)
    private = Private(T, t)
    for sample in (private, None):
        with taped() as tape, pytest.raises((ValueError, TypeError), match=match):
            make(**params).fit(X, y, private=sample)
        assert tape == []
    assert private.spent(1e-6).epsilon == 0


# bad input


@pytest.mark.parametrize("solver", PAPER)
@pytest.mark.parametrize("alpha", [0, 0.0, 1, 1.0])
def test_alpha_of_zero_and_one_work(solver, alpha):
    X, y, T, t = problem()
    model = make(solver=solver, alpha=alpha).fit(X, y, private=Private(T, t))
    assert np.isfinite(model.predict_proba(T)).all()
    assert model.guarantee_.epsilon <= 1.0 + 1e-9


@pytest.mark.parametrize("solver", PAPER)
@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan, math.inf, "half", [0.1, 0.5]])
def test_other_alpha_is_refused(solver, alpha):
    refused(r"\balpha\b", solver=solver, alpha=alpha)


@pytest.mark.parametrize("kappa", [0, 0.0, -1.0, math.nan, math.inf, "large"])
def test_kappa_that_is_not_positive_is_refused(kappa):
    refused(r"\bkappa\b", solver="profiled", kappa=kappa)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"solver": "gradient", "kappa": 1.0}, "GeneralGradient has no option kappa"),
        ({"solver": "statistics"}, "solver must be one of 'known-noise', 'gradient', 'profiled'"),
        ({"calibration": "paper"}, "KnownNoise has no option calibration"),
        (
            {"solver": "profiled", "calibration": "paper"},
            "Logistic has no option calibration",
        ),
        ({"steps": 7}, "steps: a linear model chooses their number itself"),
        ({"norm_bound": 1.0}, "KnownNoise has no option norm_bound"),
        (
            {"solver": "gradient", "calibration": "loose"},
            "calibration must be one of 'tight', 'paper'",
        ),
        ({"solver": "profiled", "steps": 0}, r"\bsteps\b.*1 or more"),
        ({"solver": "gradient", "steps": 2.5}, r"\bsteps\b.*whole number"),
        ({"solver": "gradient", "radius": -1.0}, r"\bradius\b.*positive"),
        ({"solver": "gradient", "norm_bound": 0.0}, r"\bnorm_bound\b.*positive"),
        ({"classes": [1, 2]}, "classes.*public label.*0"),
        ({"classes": ["no", "yes"]}, "classes.*public label"),
    ],
)
def test_settings_that_do_not_fit_are_refused(params, match):
    refused(match, **params)


@pytest.mark.parametrize("argument", ["alpha", "kappa"])
def test_the_default_has_neither_alpha_nor_kappa(argument):
    refused(f"KnownNoise has no option {argument}; its options: shrink", **{argument: 0.5})
    with pytest.raises(TypeError, match=argument):
        KnownNoise(**{argument: 0.5})


def test_numbers_are_no_classes():
    X, _, T, t = problem()
    with pytest.raises(ValueError, match=r"label type: continuous"):
        make().fit(X, X[:, 0], private=Private(T, t))


# classes


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_class_of_private_rows_only_is_left_out_in_silence(solver):
    X, y, T, t = problem()
    labels = t.copy()
    labels[::5] = 7
    with everything_said() as said:
        model = make(solver=solver).fit(X, y, private=Private(T, labels))
    assert said.all.strip() == ""
    assert model.classes_.tolist() == [0, 1]
    other = labels.copy()
    other[::5] = 9  # another unknown class is the same as this one
    again = make(solver=solver).fit(X, y, private=Private(T, other))
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert model.guarantee_ == make(solver=solver).fit(X, y, private=Private(T, t)).guarantee_


@pytest.mark.parametrize("solver", SOLVERS)
def test_classes_that_are_given_can_be_predicted(solver):
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(600, 2)), rng.normal(size=(4000, 2))
    y, t = (X[:, 0] > 0).astype(int), (T[:, 0] > 0).astype(int)
    t[T[:, 1] > 0.5] = 2
    model = make(solver=solver, epsilon=4.0, classes=[2, 0, 1], **MANY.get(solver, {}))
    model.fit(X, y, private=Private(T, t))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.coef_.shape == (3, 2)
    assert (model.predict(T) == 2).any()
    public_only = make(classes=[0, 1, 2]).fit(X, y)
    assert not (public_only.predict(T) == 2).any()
    assert model.score(T, t) > public_only.score(T, t)


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_class_is_refused_unless_classes_are_given(solver):
    X, y, T, t = problem(n=2000)
    private = Private(T, t)
    with pytest.raises(ValueError, match=r"\by\b has only one class.*classes="):
        make(solver=solver).fit(X, np.ones_like(y), private=private)
    with pytest.raises(ValueError, match=r"\by\b has only one class.*classes="):
        make(solver=solver, classes=[1]).fit(X, np.ones_like(y), private=private)
    assert private.spent(1e-6).epsilon == 0
    model = make(solver=solver, classes=[0, 1]).fit(X, np.ones_like(y), private=private)
    assert np.isfinite(model.predict_proba(T)).all()
    alone = make(solver=solver, classes=[0, 1]).fit(X, np.ones_like(y))
    assert (alone.predict(T) == 1).all()


def test_one_public_class_is_overcome_by_private_rows():
    X, y, T, t = problem(n=4000)
    model = make(epsilon=4.0, classes=[0, 1]).fit(X, np.ones_like(y), private=Private(T, t))
    assert model.score(T, t) > max(np.mean(t), 1 - np.mean(t)) + 0.1


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["text", "objects", "bool", "int", "float", "int8"])
def test_labels_of_any_kind(solver, kind):
    X, y, T, t = problem(m=60, n=60)
    names = {
        "text": np.array(["no", "yes"]),
        "objects": np.array(["no", "yes"], dtype=object),
        "bool": np.array([False, True]),
        "int": np.array([-3, 12]),
        "float": np.array([1.0, 2.0]),
        "int8": np.array([0, 1], dtype=np.int8),
    }[kind]
    numbered = make(solver=solver).fit(X, y, private=Private(T, t))
    model = make(solver=solver).fit(X, names[y], private=Private(T, names[t]))
    np.testing.assert_array_equal(model.classes_, names)
    np.testing.assert_array_equal(model.coef_, numbered.coef_)
    np.testing.assert_array_equal(model.predict(T), names[numbered.predict(T)])


@pytest.mark.parametrize("solver", SOLVERS)
def test_private_labels_that_are_no_class_are_taken_in_silence(solver):
    X, y, T, t = problem(n=300)
    labels = np.array(["no", "yes"], dtype=object)[t]
    labels[:8] = [None, 3, 2.5, math.nan, "Yes", "", b"other", True]
    with everything_said() as said:
        model = make(solver=solver).fit(X, np.array(["no", "yes"])[y], private=Private(T, labels))
        numbers = np.where(np.arange(300) < 4, [1e300, math.nan, math.inf, -1.0] * 75, t)
        make(solver=solver).fit(X, y, private=Private(T, numbers))
    assert said.all.strip() == ""
    assert np.isfinite(model.predict_proba(T)).all()
    labels[:8] = "unknown"
    again = make(solver=solver).fit(X, np.array(["no", "yes"])[y], private=Private(T, labels))
    np.testing.assert_array_equal(model.coef_, again.coef_)


def test_two_classes_as_usual():
    X, y, T, t = problem()
    model = make().fit(X, y, private=Private(T, t))
    assert model.coef_.shape == (1, 3)
    assert model.intercept_.shape == (1,)
    assert model.decision_function(T).shape == (300,)
    np.testing.assert_array_equal(model.predict(T), model.decision_function(T) > 0)
    np.testing.assert_allclose(model.predict_proba(T).sum(axis=1), 1.0, rtol=1e-12)


# odd samples


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("m", "n", "d"),
    [
        *[(2000, 5, 3), (5, 2000, 3), (200, 1, 2), (1, 200, 2), (1, 1, 1), (2, 2, 5)],
        *[(8, 60, 20), (60, 8, 20), (10, 20, 40)],
    ],
)
def test_odd_shapes_are_taken(solver, m, n, d):
    X, _, T, t = problem(1, m, n, d)
    for epsilon in (0.01, 1e6) if m + n < 1000 else (1.0,):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", CautionWarning)
            model = make(solver=solver, epsilon=epsilon, classes=[0, 1])
            model.fit(X, np.arange(m) % 2, private=Private(T, t))
        assert np.isfinite(model.predict_proba(T)).all()
        assert model.guarantee_.epsilon <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_collinear_and_constant_columns_are_taken(solver, classes):
    X, y, T, t = problem(m=150, n=400, classes=classes)

    def widened(Z):
        return np.column_stack([Z, 2 * Z[:, 0] + Z[:, 1], np.full(len(Z), 7.0)])

    public_only = make().fit(widened(X), y).score(widened(T), t)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CautionWarning)
        model = make(solver=solver, epsilon=4.0).fit(widened(X), y, private=Private(widened(T), t))
        alike = make(solver=solver).fit(np.full_like(X, 3.0), y, private=Private(T, t))
    assert model.score(widened(T), t) > public_only - 0.02
    assert np.isfinite(alike.predict_proba(T)).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_hostile_private_cells_are_taken_in_silence(solver):
    X, y, T, t = problem()
    T[:4] = np.array([[math.nan], [math.inf], [1e300], [-1.7e308]])
    T[8:12] *= 1e9
    with everything_said() as said:
        model = make(solver=solver).fit(X, y, private=Private(T, t))
    assert said.all.strip() == ""
    assert model.score(X, y) > 0.7


SCALES = [(1e-6, 1.0, 1e9), (1e-9, 1.0, 1.0), (1.0, 1e-9, 1e-9)]


@pytest.mark.parametrize(
    ("solver", "unit"),
    [*(("known-noise", unit) for unit in SCALES), *((solver, SCALES[0]) for solver in PAPER)],
)
def test_columns_on_wildly_different_scales(solver, unit):
    X, y, T, t = problem()
    found = []
    for each in (unit, (1e-3, 1e-1, 1e6)):
        model = make(solver=solver).fit(X * each, y, private=Private(T * each, t))
        found.append([model.score(T * each, t), make().fit(X * each, y).score(T * each, t)])
    np.testing.assert_allclose(*found, atol=0.01)


@pytest.mark.parametrize("unit", [1e-100, 1e-3, 1e6, 1e50])
def test_a_unit_that_all_columns_share_matters_little(unit):
    X, y, T, t = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CautionWarning)
        for sample, same in ((None, None), (Private(T, t), Private(T * unit, t))):
            one, two = make().fit(X, y, private=sample), make().fit(X * unit, y, private=same)
            assert two.score(T * unit, t) == pytest.approx(one.score(T, t), abs=0.03)


def test_private_sample_without_rows_is_no_sample():
    X, y, T, t = problem()
    public_only = make().fit(X, y)
    for solver in SOLVERS:
        model = make(solver=solver).fit(X, y, private=Private(T[:0], t[:0]))
        np.testing.assert_array_equal(model.coef_, public_only.coef_)
        assert model.guarantee_.epsilon == model.share_ == 0
        assert model.course_ is None


# printed constants


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_printed_constants_are_told_for_what_they_are(epsilon):
    X, y, T, t = problem()
    model = make(solver="gradient", calibration="paper", epsilon=epsilon, delta=0.01)
    with everything_said() as said:
        model.fit(X, y, private=Private(T, t))
    found = model.guarantee_
    assert found.epsilon == pytest.approx(compose_epsilon(found.events, 0.01), rel=1e-9)
    assert ("GuaranteeWarning" in said.warned) == (found.epsilon > epsilon * (1 + 1e-9))
    tight = make(solver="gradient", epsilon=epsilon, delta=0.01).fit(X, y, private=Private(T, t))
    assert tight.guarantee_.epsilon <= epsilon * (1 + 1e-9)


# what it is for


def test_adapts_better_than_public_only_and_than_private_only():
    scores = []
    for seed in range(2):
        (X, y), (T, t), test = moderate_shift(seed)
        private = Private(T, t)
        alone = NoisyGradientClassifier(
            epsilon=1.0, delta=1e-6, start="zero", noise="seeded", random_state=seed
        )
        scores.append(
            [
                make().fit(X, y).score(*test),
                alone.fit(X, y, private=private).score(*test),
                make(random_state=seed).fit(X, y, private=private).score(*test),
            ]
        )
    public_only, private_only, adapted = np.mean(scores, axis=0)
    assert adapted > public_only + 0.003
    assert adapted > private_only + 0.02


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_solver_adapts(solver, classes):
    X, y, T, t = problem(m=300, n=6000, classes=classes)
    model = make(solver=solver, epsilon=4.0, **MANY.get(solver, {}))
    public_only = make().fit(X, y).score(T[3000:], t[3000:])
    model.fit(X, y, private=Private(T[:3000], t[:3000]))
    assert model.score(T[3000:], t[3000:]) > public_only + 0.005


def test_does_little_harm_where_there_is_no_shift():
    """Mean over small budgets; without the shrinkage it is more."""
    shrunken, whole = [], []
    for seed in range(8):
        (X, y), (T, t), test = moderate_shift(seed, n=500, d=4, size=0.0)
        public_only, private = 1 - make().fit(X, y).score(*test), Private(T, t)
        for epsilon in (0.01, 0.03, 0.1):
            model = make(epsilon=epsilon, random_state=seed).fit(X, y, private=private)
            shrunken.append((1 - model.score(*test)) / public_only)
        model = make(epsilon=0.1, random_state=seed, shrink=False).fit(X, y, private=private)
        whole.append((1 - model.score(*test)) / public_only)
    assert np.mean(shrunken) < 1.02
    assert np.mean(whole) > np.mean(shrunken[2::3]) + 0.01


def test_without_shrinkage_it_moves_farther():
    X, y, T, t = problem(n=200)
    start = make().fit(X, y)
    whole, shrunk = (
        make(shrink=shrink, epsilon=0.3).fit(X, y, private=Private(T, t))
        for shrink in (False, True)
    )
    assert whole.share_ == 1.0
    assert 0 <= shrunk.share_ < 1
    moves = [np.linalg.norm(model.coef_ - start.coef_) for model in (whole, shrunk)]
    assert moves[1] == pytest.approx(shrunk.share_ * moves[0], rel=1e-9)
    assert moves[1] < moves[0]


# equivariance, determinism, storage


@pytest.mark.parametrize("solver", SOLVERS)
def test_order_of_the_columns_does_not_matter(solver):
    """But for the noise: every column gets its own."""
    X, y, T, t = problem(m=100, n=200)
    order = [2, 0, 1]
    model = make(solver=solver, epsilon=1e6)
    one = model.fit(X, y, private=Private(T, t)).predict_proba(T)
    two = model.fit(X[:, order], y, private=Private(T[:, order], t)).predict_proba(T[:, order])
    np.testing.assert_allclose(one, two, atol=5e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_names_of_the_classes_do_not_matter(solver):
    """The other class as the second one turns the coefficients, but for the noise."""
    X, y, T, t = problem(m=100, n=200)
    model = make(solver=solver, epsilon=1e6)
    one = model.fit(X, y, private=Private(T, t)).predict_proba(T)
    two = model.fit(X, 1 - y, private=Private(T, 1 - t)).predict_proba(T)
    np.testing.assert_allclose(one, two[:, ::-1], atol=5e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_seeds(solver):
    X, y, T, t = problem()
    one, again, other = (
        make(solver=solver, random_state=seed).fit(X, y, private=Private(T, t)).predict_proba(T)
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, again)
    assert not np.allclose(one, other, rtol=1e-6)


def test_pickled_model_predicts_the_same():
    X, y, T, t = problem(classes=3)
    model = make().fit(
        X, np.array(["a", "b", "c"])[y], private=Private(T, np.array(list("abc"))[t])
    )
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(T), model.predict(T))
    assert again.guarantee_ == model.guarantee_


# with the rest of the library and of scikit-learn


@pytest.mark.parametrize("solver", SOLVERS)
def test_pipeline_with_categories(solver):
    rng = np.random.default_rng(0)

    def sample(n, high):
        frame = pd.DataFrame({"town": rng.choice(["a", "b", "c"], n), "size": rng.normal(size=n)})
        return frame, np.where(frame["size"] + high * (frame["town"] == "b") > 0, "yes", "no")

    X, y = sample(500, -1.0)
    T, t = sample(3000, 1.0)
    T.loc[:1, "town"] = "unseen"
    encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    last = make(solver=solver, epsilon=4.0, **MANY.get(solver, {}))
    pipeline = AdaptationPipeline([("encode", encode)], last)
    public_only = pipeline.fit(X, y).score(T[2:], t[2:])
    model = pipeline.fit(X, y, private=Private(T, t))
    assert model.score(T[2:], t[2:]) > public_only + 0.02
    assert model.predict_proba(X).shape == (500, 2)
    assert 0 < model.guarantee_.epsilon <= 4.0 + 1e-9


def test_search_over_solvers_is_charged_for():
    X, y, T, t = problem(m=90)
    private = Private(T, t)
    solvers = ["known-noise", GeneralGradient(steps=5), ProfiledLogistic(steps=5)]
    search = GridSearchCV(make(), {"solver": solvers}, cv=2, error_score="raise")
    search.fit(X, y, private=private)
    spent, best = private.spent(1e-6), search.best_estimator_.guarantee_
    assert best.epsilon <= 1.0 + 1e-9
    assert spent.epsilon > 2 * best.epsilon


@pytest.mark.parametrize("solver", SOLVERS)
def test_nothing_but_noisy_values_reaches_the_model(solver):
    """With the answers of one private sample, another one gives the same model."""
    X, y, T, t = problem()
    with taped() as tape:
        one = make(solver=solver).fit(X, y, private=Private(T, t))
    assert releases(tape)
    other = Private(-3 * T[::-1], 1 - t)
    with taped(replay=tape):
        two = make(solver=solver).fit(X, y, private=other)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    assert not np.allclose(one.coef_, make(solver=solver).fit(X, y, private=other).coef_)
