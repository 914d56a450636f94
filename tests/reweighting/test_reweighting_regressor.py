"""ReweightingRegressor: the contract, bad input, and what the solvers promise beyond it."""

from __future__ import annotations

import dataclasses
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder

from dpadapt import AdaptationPipeline, Private, ReweightingRegressor
from dpadapt.baselines import NoisyGradientRegressor
from dpadapt.learning.cautions import CautionWarning
from dpadapt.learning.checks import GuaranteeWarning
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.reweighting import (
    ConvexGradient,
    KnownNoise,
    Profiled,
    plan,
)
from dpadapt.reweighting.known_noise import KnownNoiseDescent
from dpadapt.reweighting.problem import standard_units
from dpadapt.testing.independent_accountant import recompute_epsilon
from dpadapt.testing.search import everything_said
from dpadapt.testing.tape import releases, taped
from reweighting.making import made

SOLVERS = ("known-noise", "gradient", "profiled", "statistics")
PAPER = SOLVERS[1:]
MANY = {"gradient": {"steps": 100}, "profiled": {"steps": 40}}  # as by default
SELECTIONS = [
    ("statistics", "holdout"),
    ("statistics", "certificate"),
    ("profiled", "random-stopping"),
]


# samples


def make(**params):
    given = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
    if params.get("solver") in ("gradient", "profiled"):
        given["steps"] = 10
    return made(ReweightingRegressor, **(given | params))


def problem(seed=0, m=200, n=400, d=3):
    """Other slopes and another level in the private domain."""
    rng = np.random.default_rng(seed)
    slopes = np.resize([1.0, -1.0, 0.5], d)
    X, T = rng.normal(size=(m, d)), rng.normal(0.2, 1.0, size=(n, d))
    y = X @ slopes + 0.3 * rng.normal(size=m)
    return X, y, T, T @ (slopes + 0.2) + 0.3 + 0.3 * rng.normal(size=n)


def moderate_shift(seed, n=1000, d=30, size=0.5):
    """A shift of the slopes and of the level, about as large as the noise; and a test sample."""
    rng = np.random.default_rng(seed)
    slopes, move = rng.normal(size=d), rng.normal(size=d)
    move *= size / np.linalg.norm(move)
    X, T = rng.normal(size=(1000, d)), rng.normal(0.2, 1.0, size=(n + 2000, d))
    y = X @ slopes + rng.normal(size=1000)
    t = T @ (slopes + move) + size + rng.normal(size=n + 2000)
    return (X, y), (T[:n], t[:n]), (T[n:], t[n:])


def error(model, rows, labels):
    return float(np.mean((model.predict(rows) - labels) ** 2))


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
    assert np.isfinite(model.predict(T)).all()
    assert model.guarantee_.epsilon <= 1.0 + 1e-9


@pytest.mark.parametrize("solver", PAPER)
@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan, math.inf, "half"])
def test_other_alpha_is_refused(solver, alpha):
    refused(r"\balpha\b", solver=solver, alpha=alpha)


@pytest.mark.parametrize("solver", PAPER)
@pytest.mark.parametrize("kappa", [0, 0.0, -1.0, math.nan, math.inf, "large"])
def test_kappa_that_is_not_positive_is_refused(solver, kappa):
    refused(rf"\bkappa\b(?!.*0\.00).*{kappa}", solver=solver, kappa=kappa)


@pytest.mark.parametrize(("solver", "selection"), SELECTIONS)
@pytest.mark.parametrize(
    ("argument", "grid"),
    [("alpha", [0.5, 2.0]), ("alpha", []), ("kappa", [0.0, 1.0]), ("kappa", [])],
)
def test_bad_grids_are_refused(solver, selection, argument, grid):
    refused(rf"\b{argument}\b", solver=solver, selection=selection, **{argument: grid})


@pytest.mark.parametrize("argument", ["alpha", "kappa"])
def test_grids_need_a_selection(argument):
    grid = {argument: [0.1, 0.5]}
    for solver in ("profiled", "statistics"):
        refused(rf"{argument} is a grid.*selection=", solver=solver, **grid)
    refused(rf"{argument} must .*0.1, 0.5", solver="gradient", **grid)


@pytest.mark.parametrize(("solver", "selection"), SELECTIONS)
def test_choice_is_one_of_the_grid(solver, selection):
    X, y, T, t = problem()
    model = make(solver=solver, selection=selection, alpha=[0.1, 0.6]).fit(
        X, y, private=Private(T, t)
    )
    assert model.chosen_.alpha in (0.1, 0.6)
    assert model.guarantee_.epsilon <= 1.0 + 1e-9


@pytest.mark.parametrize("argument", ["alpha", "kappa"])
def test_the_default_has_neither_alpha_nor_kappa(argument):
    refused(f"KnownNoise has no option {argument}; its options: shrink", **{argument: 0.5})
    with pytest.raises(TypeError, match=argument):
        KnownNoise(**{argument: 0.5})


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"selection": "holdout"}, "KnownNoise has no option selection"),
        ({"solver": "gradient", "selection": "holdout"}, "ConvexGradient has no option selection"),
        ({"solver": "profiled", "selection": "holdout"}, "selection must be .* 'random-stopping'"),
        (
            {"solver": "statistics", "selection": "random-stopping"},
            "selection must be one of 'holdout', 'certificate'",
        ),
        ({"calibration": "paper"}, "KnownNoise has no option calibration"),
        ({"solver": "statistics", "calibration": "paper"}, "Statistics has no option calibration"),
        ({"solver": "profiled", "calibration": "paper"}, "Profiled has no option calibration"),
        ({"steps": 7}, "steps: a linear model chooses their number itself"),
        ({"solver": "gradient", "calibration": "loose"}, "calibration must .* 'tight', 'paper'"),
        (
            {"solver": "statistics", "selection": "holdout", "certificate": True},
            "certificate=True needs.*no selection",
        ),
        (
            {"solver": "gradient", "calibration": "paper", "certificate": True},
            "certificate=True needs calibration='tight'",
        ),
        ({"solver": "profiled", "steps": 0}, r"\bsteps\b.*1 or more"),
        ({"solver": "profiled", "steps": 2.5}, r"\bsteps\b.*whole number"),
        ({"solver": "gradient", "radius": -1.0}, r"\bradius\b.*positive"),
        ({"solver": "gradient", "norm_bound": 0.0}, r"\bnorm_bound\b.*positive"),
        ({"label_range": (1.0, 0.0)}, r"\blabel_range\b"),
        ({"label_range": (-math.inf, 9.0)}, r"\blabel_range\b"),
        ({"label_range": 3.0}, r"\blabel_range\b"),
        ({"label_range": "ab"}, r"\blabel_range\b"),
        ({"label_range": (-9.0, 0.0, 9.0)}, r"\blabel_range\b"),
    ],
)
def test_settings_that_do_not_fit_are_refused(params, match):
    refused(match, **params)


@pytest.mark.parametrize("solver", SOLVERS)
def test_public_labels_beyond_the_range_are_refused(solver):
    refused("label_range must hold the public labels", solver=solver, label_range=(-0.1, 0.1))


@pytest.mark.parametrize("solver", SOLVERS)
def test_private_labels_beyond_the_range_are_clamped_in_silence(solver):
    X, y, T, t = problem()
    low, high = float(y.min()) - 0.1, float(y.max()) + 0.1
    far = t.copy()
    far[::7], far[::11] = 1e4, -1e4
    model = make(solver=solver, label_range=(low, high))
    with everything_said() as said:
        one = model.fit(X, y, private=Private(T, far)).predict(T)
    two = model.fit(X, y, private=Private(T, np.clip(far, low, high))).predict(T)
    np.testing.assert_allclose(one, two, rtol=1e-9)
    assert said.all.strip() == ""
    three = model.fit(X, y, private=Private(T, t)).predict(T)
    assert not np.allclose(one, three, rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("m", "n", "d"),
    [
        *[(2000, 5, 3), (5, 2000, 3), (200, 1, 2), (1, 200, 2), (1, 1, 1), (2, 2, 5)],
        *[(8, 60, 20), (60, 8, 20), (10, 20, 40)],
    ],
)
def test_odd_shapes_are_taken(solver, m, n, d):
    X, y, T, t = problem(1, m, n, d)
    for epsilon in (0.01, 1e6) if m + n < 1000 else (1.0,):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", CautionWarning)
            model = make(solver=solver, epsilon=epsilon).fit(X, y, private=Private(T, t))
        assert np.isfinite(model.predict(T)).all()
        assert model.guarantee_.epsilon <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_collinear_and_constant_columns_are_taken(solver):
    X, y, T, t = problem(m=150, n=1000)

    def widened(Z):
        return np.column_stack([Z, 2 * Z[:, 0] + Z[:, 1], np.full(len(Z), 7.0)])

    public_only = error(make().fit(widened(X), y), widened(T), t)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CautionWarning)
        model = make(solver=solver, epsilon=4.0).fit(widened(X), y, private=Private(widened(T), t))
        alike = make(solver=solver).fit(np.full_like(X, 3.0), y, private=Private(T, t))
    assert error(model, widened(T), t) < public_only
    assert np.isfinite(alike.predict(T)).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("label", [4.5, 0.0, -1e9])
def test_constant_label_is_predicted(solver, label):
    X, y, T, t = problem(m=60, n=400)
    model = make(solver=solver).fit(
        X, np.full_like(y, label), private=Private(T, np.full_like(t, label))
    )
    np.testing.assert_allclose(model.predict(T), label, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("solver", SOLVERS)
def test_hostile_private_cells_and_labels_are_taken_in_silence(solver):
    X, y, T, t = problem()
    T[:4] = np.array([[math.nan], [math.inf], [1e300], [-1.7e308]])
    t[4:8] = [math.nan, math.inf, -math.inf, 1e300]
    T[8:12] *= 1e9
    with everything_said() as said:
        model = make(solver=solver).fit(X, y, private=Private(T, t))
    assert np.isfinite(model.predict(X)).all()
    assert said.all.strip() == ""
    assert error(model, X, y) < 2.0


SCALES = [(1e-6, 1.0, 1e9), (1e-9, 1.0, 1.0), (1.0, 1e-9, 1e-9)]


@pytest.mark.parametrize(
    ("solver", "unit"),
    [*(("known-noise", unit) for unit in SCALES), *((solver, SCALES[0]) for solver in PAPER)],
)
def test_columns_on_wildly_different_scales(solver, unit):
    X, y, T, t = problem()
    other = (1e-3, 1e-1, 1e6)
    models = [
        make(solver=solver).fit(X * each, y, private=Private(T * each, t)) for each in (unit, other)
    ]
    public_only = [error(make().fit(X * each, y), T * each, t) for each in (unit, other)]
    assert public_only[0] == pytest.approx(public_only[1], rel=1e-6)
    np.testing.assert_allclose(
        models[0].predict(T * unit), models[1].predict(T * other), rtol=1e-6, atol=1e-9
    )
    if solver != "gradient":
        assert error(models[0], T * unit, t) < public_only[0]


def test_columns_of_one_name_are_refused():
    X, y, T, t = problem(m=60, n=60)
    with pytest.raises(Exception, match=r"(?s)column.*\ba\b"):
        make().fit(pd.DataFrame(X, columns=["a", "a", "b"]), y, private=Private(T, t))


def test_private_sample_without_rows_is_no_sample():
    X, y, T, t = problem()
    public_only = make().fit(X, y)
    for solver in SOLVERS:
        model = make(solver=solver).fit(X, y, private=Private(T[:0], t[:0]))
        np.testing.assert_array_equal(model.coef_, public_only.coef_)
        assert model.guarantee_.epsilon == model.share_ == 0
        assert model.certificate_ is model.course_ is model.chosen_ is None


# the certificate, and printed constants


def whole(y):
    return {"label_range": (float(y.min()), float(y.max()))}


@pytest.mark.parametrize("solver", SOLVERS)
def test_certificate_is_paid_from_the_same_budget_and_covers_the_error(solver):
    X, y, T, t = problem(m=150, n=4000)
    reach = {"label_range": (min(y.min(), t.min()), max(y.max(), t.max()))}
    model = make(solver=solver, certificate=True, **reach)
    model.fit(X, y, private=Private(T[:2000], t[:2000]))
    plain = make(solver=solver, **reach).fit(X, y, private=Private(T[:2000], t[:2000]))
    extra = len(model.guarantee_.events) - len(plain.guarantee_.events)
    assert extra == (2 if solver == "profiled" else 3)  # at alpha = 0 there is no discrepancy
    assert plain.certificate_ is None
    assert model.guarantee_.epsilon <= 1.0 + 1e-9
    low, high = recompute_epsilon(model.guarantee_.events, 1e-6)
    assert low * (1 - 1e-9) <= model.guarantee_.epsilon <= 1.01 * high
    assert model.certificate_.bound >= error(model, T[2000:], t[2000:])
    assert "as you stated" in str(model.certificate_).partition("\n")[0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_certificate_is_in_units_of_the_label(solver):
    """Labels that are 100 times as large have 10,000 times the squared error, and bound."""
    X, y, T, t = problem(m=150, n=2000)
    bounds = []
    for unit in (1.0, 100.0):
        wide = unit * max(np.abs(y).max(), np.abs(t).max())
        model = make(solver=solver, certificate=True, label_range=(-wide, wide))
        model.fit(X, unit * y, private=Private(T, unit * t))
        assert model.certificate_.bound >= error(model, T, unit * t)
        bounds.append((model.certificate_.bound, model.certificate_.ceiling))
    assert bounds[1] == pytest.approx([1e4 * each for each in bounds[0]], rel=0.05)


def test_a_certificate_needs_a_stated_range_of_labels():
    """By default labels beyond the public range are cut: there a bound was passed 25 times over."""
    X, _, T, _ = problem(m=150, n=2000)
    private = Private(T, 10 * np.random.default_rng(0).choice([-1.0, 1.0], 2000))
    with pytest.raises(ValueError, match="certificate=True needs label_range"):
        make(certificate=True).fit(X, X[:, 0].clip(-1, 1), private=private)
    assert private.spent(delta=1e-6).epsilon == 0
    model = make(certificate=True, label_range=(-10.0, 10.0))
    model.fit(X, X[:, 0].clip(-1, 1), private=private)
    assert model.certificate_ is None or model.certificate_.bound >= 100


def test_people_with_several_rows_are_the_draws_of_a_certificate():
    X, y, T, t = problem(m=150, n=300)
    wide = {"label_range": (-10.0, 10.0), "certificate": True, "solver": "statistics"}
    once = make(**wide).fit(X, y, private=Private(T, t)).certificate_
    rows, labels, ids = (np.repeat(each, 10, axis=0) for each in (T, t, np.arange(300)))
    people = Private(rows, labels, unit=ids, max_rows=10)
    many = make(**wide).fit(X, y, private=people).certificate_
    assert many.deviation == pytest.approx(once.deviation)
    assert many.complexity == pytest.approx(once.complexity)


@pytest.mark.parametrize("solver", ["known-noise", "profiled", "statistics"])
def test_no_certificate_for_coefficients_beyond_the_norm_bound(solver):
    X, y, T, t = problem()
    model = make(solver=solver, certificate=True, norm_bound=1e-3, **whole(y))
    model.fit(X, y, private=Private(T, t))
    units = standard_units(X, (float(y.min()), float(y.max())))
    w = units.inverse(model.coef_[:, None], np.array([model.intercept_]))
    assert (model.certificate_ is None) == (np.linalg.norm(w) > 1e-3)
    assert model.guarantee_.epsilon <= 1.0 + 1e-9


def test_no_certificate_without_private_rows():
    X, y, _, _ = problem()
    assert make(certificate=True, **whole(y)).fit(X, y).certificate_ is None


def test_printed_constants_are_told_for_what_they_are():
    X, y, T, t = problem()
    model = make(solver="gradient", calibration="paper", epsilon=0.5, delta=0.01)
    with pytest.warns(GuaranteeWarning, match=r"more than the 0\.5 that was asked for"):
        model.fit(X, y, private=Private(T, t))
    assert model.guarantee_.epsilon > 0.5
    assert model.guarantee_.epsilon == pytest.approx(
        compose_epsilon(model.guarantee_.events, 0.01), rel=1e-9
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CautionWarning)
        tight = make(solver="gradient", epsilon=0.5, delta=0.01).fit(X, y, private=Private(T, t))
    assert tight.guarantee_.epsilon <= 0.5 + 1e-9


# what it is for


def test_adapts_better_than_public_only_and_than_private_only():
    errors = []
    for seed in range(2):
        (X, y), (T, t), test = moderate_shift(seed)
        private = Private(T, t)
        alone = NoisyGradientRegressor(
            epsilon=1.0, delta=1e-6, start="zero", noise="seeded", random_state=seed
        )
        errors.append(
            [
                error(make().fit(X, y), *test),
                error(alone.fit(X, y, private=private), *test),
                error(make(random_state=seed).fit(X, y, private=private), *test),
            ]
        )
    public_only, private_only, adapted = np.mean(errors, axis=0)
    assert adapted < 0.8 * public_only
    assert adapted < 0.8 * private_only


def test_does_little_harm_where_there_is_no_shift():
    """Mean over small budgets; without the shrinkage it is more."""
    shrunken, whole = [], []
    for seed in range(8):
        (X, y), (T, t), test = moderate_shift(seed, n=500, d=4, size=0.0)
        public_only, private = error(make().fit(X, y), *test), Private(T, t)
        for epsilon in (0.01, 0.03, 0.1):
            model = make(epsilon=epsilon, random_state=seed).fit(X, y, private=private)
            shrunken.append(error(model, *test) / public_only)
        model = make(epsilon=0.1, random_state=seed, shrink=False).fit(X, y, private=private)
        whole.append(error(model, *test) / public_only)
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


def skewed(seed=0):
    rng = np.random.default_rng(seed)
    X, T = rng.normal(size=(2000, 2)), rng.normal(size=(8000, 2))
    y = X[:, 0] + rng.lognormal(0.0, 1.3, 2000)
    return X, y, T, T[:, 0] + 2 * rng.lognormal(0.0, 1.3, 8000)


def test_level_stage_removes_the_bias_of_skew_labels(monkeypatch):
    X, y, T, t = skewed()
    monkeypatch.setattr(KnownNoiseDescent, "moments", lambda *_: None)  # a descent, and a level
    bias = []
    for shares in (plan._REGRESSION.level_shares, (0.0,)):
        kind = dataclasses.replace(plan._REGRESSION, level_shares=shares)
        monkeypatch.setattr(plan, "_REGRESSION", kind)
        model = make().fit(X, y, private=Private(T, t))
        assert (model.course_.level_share > 0) == (shares != (0.0,))
        bias.append(abs(float(np.mean(t - model.predict(T)))))
    public_only = abs(float(np.mean(t - make().fit(X, y).predict(T))))
    assert bias[0] < 0.2 * public_only
    assert bias[0] < 0.5 * bias[1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_large_budget_recovers_the_private_model(solver):
    X, y, T, t = problem(m=150, n=3000)
    model = make(solver=solver, epsilon=1e4, **MANY.get(solver, {}))
    model.fit(X, y, private=Private(T, t))
    public_only = error(make().fit(X, y), T, t)
    rows = np.column_stack([T, np.ones(len(T))])
    best = float(np.mean((t - rows @ np.linalg.lstsq(rows, t, rcond=None)[0]) ** 2))
    closed = (public_only - error(model, T, t)) / (public_only - best)
    assert closed > (0.3 if solver == "gradient" else 0.6)


# equivariance, determinism, storage


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("unit", [2.0**-40, 2.0**70, 1e-100, 1e9, 1e100, 1e-200, 1e200])
def test_units_of_the_label_do_not_matter(solver, unit):
    X, y, T, t = problem()
    one = make(solver=solver).fit(X, y, private=Private(T, t)).predict(T)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CautionWarning)
        two = make(solver=solver).fit(X, y * unit, private=Private(T, t * unit)).predict(T)
    # noise comes on a grid of powers of two, which other units do not hit
    close = 1e-9 if math.frexp(unit)[0] == 0.5 else 1e-5
    np.testing.assert_allclose(two / unit, one, rtol=close, atol=close)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("offset", [100.0, -1e6])
def test_shifted_labels_shift_the_predictions(solver, offset):
    X, y, T, t = problem()
    one = make(solver=solver).fit(X, y, private=Private(T, t)).predict(T)
    two = make(solver=solver).fit(X, y + offset, private=Private(T, t + offset)).predict(T)
    np.testing.assert_allclose(two - offset, one, atol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("unit", [1e-100, 1e-3, 1e6, 1e100])
def test_a_unit_that_all_columns_share_matters_little(solver, unit):
    X, y, T, t = problem()
    one = make(solver=solver).fit(X, y, private=Private(T, t))
    two = make(solver=solver).fit(X * unit, y, private=Private(T * unit, t))
    assert error(two, T * unit, t) == pytest.approx(error(one, T, t), rel=0.1)


@pytest.mark.parametrize("unit", [1e-100, 1e-3, 1e6, 1e100])
def test_a_unit_that_all_columns_share_matters_little_for_the_public_model(unit):
    X, y, T, t = problem()
    one, two = make().fit(X, y), make().fit(X * unit, y)
    assert error(two, T * unit, t) == pytest.approx(error(one, T, t), rel=0.1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_order_of_the_columns_does_not_matter(solver):
    """But for the noise: every column gets its own."""
    X, y, T, t = problem(m=100, n=200)
    order = [2, 0, 1]
    model = make(solver=solver, epsilon=1e6)
    one = model.fit(X, y, private=Private(T, t)).predict(T)
    two = model.fit(X[:, order], y, private=Private(T[:, order], t)).predict(T[:, order])
    np.testing.assert_allclose(one, two, atol=5e-3)
    public_only = [make().fit(X, y).predict(T), make().fit(X[:, order], y).predict(T[:, order])]
    np.testing.assert_allclose(*public_only, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_seeds(solver):
    X, y, T, t = problem()
    one, again, other = (
        make(solver=solver, random_state=seed).fit(X, y, private=Private(T, t)).predict(T)
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, again)
    assert not np.allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize(("solver", "selection"), SELECTIONS)
@pytest.mark.parametrize("seed", [3, np.int64(3), np.random.RandomState])
def test_seeds_of_selections(solver, selection, seed):
    X, y, T, t = problem()
    found = []
    for _ in range(5):
        state = seed(3) if seed is np.random.RandomState else seed
        model = make(solver=solver, selection=selection, random_state=state)
        found.append(model.fit(X, y, private=Private(T, t)).coef_)
    np.testing.assert_array_equal(found, found[:1] * 5)


def test_pickled_model_with_everything_predicts_the_same():
    X, y, T, t = problem()
    model = make(certificate=True, **whole(y)).fit(X, y, private=Private(T, t))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(T), model.predict(T))
    assert again.certificate_ == model.certificate_
    assert again.guarantee_ == model.guarantee_


# with the rest of the library and of scikit-learn


@pytest.mark.parametrize("solver", SOLVERS)
def test_pipeline_with_categories(solver):
    rng = np.random.default_rng(0)

    def sample(n, towns, high):
        frame = pd.DataFrame({"town": rng.choice(towns, n), "size": rng.normal(size=n)})
        return frame, frame["size"] + high * (frame["town"] == "b") + 0.3 * rng.normal(size=n)

    X, y = sample(500, ["a", "b", "c"], 1.0)
    T, t = sample(3000, ["a", "b", "c"], 2.0)
    T.loc[:1, "town"] = "unseen"
    known = T["town"] != "unseen"
    encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    last = make(solver=solver, epsilon=4.0, **MANY.get(solver, {}))
    pipeline = AdaptationPipeline([("encode", encode)], last)
    public_only = error(pipeline.fit(X, y), T[known], t[known])
    model = pipeline.fit(X, y, private=Private(T, t))
    assert error(model, T[known], t[known]) < public_only
    assert 0 < model.guarantee_.epsilon <= 4.0 + 1e-9


def test_search_over_solvers_is_charged_for():
    X, y, T, t = problem(m=90)
    private = Private(T, t)
    solvers = ["known-noise", ConvexGradient(steps=5), Profiled(steps=5), "statistics"]
    search = GridSearchCV(make(), {"solver": solvers}, cv=2, error_score="raise")
    search.fit(X, y, private=private)
    spent, best = private.spent(1e-6), search.best_estimator_.guarantee_
    assert best.epsilon <= 1.0 + 1e-9
    assert spent.epsilon > 2.5 * best.epsilon
    assert sum(event.label == "clipped gradient" for event in spent.events) >= 2


@pytest.mark.parametrize("solver", SOLVERS)
def test_nothing_but_noisy_values_reaches_the_model(solver):
    """With the answers of one private sample, another one gives the same model."""
    X, y, T, t = problem()
    with taped() as tape:
        one = make(solver=solver).fit(X, y, private=Private(T, t))
    assert releases(tape)
    other = Private(-3 * T[::-1], 5 - t)
    with taped(replay=tape):
        two = make(solver=solver).fit(X, y, private=other)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.intercept_ == two.intercept_
    assert not np.allclose(one.coef_, make(solver=solver).fit(X, y, private=other).coef_)
