"""The paper's solvers behind the estimator: the contract, printed constants, bad choices."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from dpadapt import DiscrepancyRegressor, Private, discrepancy
from dpadapt.discrepancy import (
    FrankWolfe,
    MirrorDescent,
    Moments,
    PNorm,
    PrivateLabels,
    SingleStage,
    Softmax,
)
from dpadapt.discrepancy.source import Source
from dpadapt.learning.checks import GuaranteeWarning, public_scaling
from dpadapt.modelfolder import load_model, save_model
from dpadapt.modelfolder.types import Names
from reproduce.discrepancy.data import figure_data

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
STATED = PrivateLabels(label_range=(-10.0, 10.0), label_difference=10.0)


@pytest.fixture(scope="module")
def figure():
    return figure_data(np.random.default_rng(0), 4000)


KINDS: dict[str, Any] = {
    "moments": Moments,
    "frank-wolfe": FrankWolfe,
    "mirror-descent": MirrorDescent,
    "single-stage": SingleStage,
}
SOLVERS = list(KINDS)


@pytest.mark.parametrize(
    "solver", [*SOLVERS[:-1], pytest.param(SOLVERS[-1], marks=pytest.mark.slow)]
)
def test_every_solver_beats_public_data_without_noise(figure, solver):
    public = DiscrepancyRegressor(**BUDGET).fit(figure.X_public, figure.y_public)
    given: Any = solver
    if solver != "moments":
        given = KINDS[solver](smoothing=Softmax(5.0), steps=3000)
    model = DiscrepancyRegressor(**BUDGET | {"epsilon": 1e5}, solver=given)
    model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    error, base = (
        np.mean((m.predict(figure.X_private) - figure.y_private) ** 2) for m in (model, public)
    )
    assert error < 0.8 * base
    np.testing.assert_allclose(model.weights_.sum(), 1.0, rtol=1e-9)


def test_moments_wins_at_epsilon_one(figure):
    errors = {}
    for solver in SOLVERS:
        model = DiscrepancyRegressor(**BUDGET, solver=solver)
        model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
        errors[solver] = np.mean((model.predict(figure.X_private) - figure.y_private) ** 2)
    assert min(errors, key=errors.__getitem__) == "moments"


@pytest.mark.parametrize("kind", [FrankWolfe, SingleStage])
def test_printed_constants_say_what_they_give(figure, kind):
    solver = kind(calibration="paper", steps=200)
    model = DiscrepancyRegressor(**BUDGET | {"delta": 1 / 8000}, solver=solver)
    model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    assert model.guarantee_.epsilon < 0.5  # far more noise than they would need
    assert sum(event.count for event in model.guarantee_.events) == 200


def test_printed_constants_that_give_less_privacy_than_asked_warn(figure, monkeypatch):
    """The printed scale is made a hundred times too small: the guarantee is not fooled."""
    from dpadapt.papers.discrepancy import first_stage

    honest = first_stage.printed_vertex_noise
    monkeypatch.setattr(first_stage, "printed_vertex_noise", lambda *a: honest(*a) / 100)
    solver = FrankWolfe(calibration="paper", steps=100, smoothing=Softmax(5.0))
    model = DiscrepancyRegressor(**BUDGET, solver=solver)
    with pytest.warns(GuaranteeWarning, match="printed constants give epsilon"):
        model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    assert model.guarantee_.epsilon > 1.5
    assert any("was asked for" in caveat for caveat in model.guarantee_.caveats)


def test_tight_solvers_do_not_warn(figure):
    with warnings.catch_warnings():
        warnings.simplefilter("error", GuaranteeWarning)
        model = DiscrepancyRegressor(**BUDGET, solver=FrankWolfe(steps=20))
        model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    assert model.guarantee_.epsilon <= 1.0


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"solver": "sgd"}, "solver must be one of 'moments', 'frank-wolfe', 'mirror-descent'"),
        ({"solver": FrankWolfe}, "solver must be one of"),
        ({"norm_bound": 0.0}, "norm_bound"),
        ({"solver": "single-stage", "norm_bound": 0.0}, "norm_bound"),
        ({"certificate": "yes"}, "certificate"),
        ({"certificate": True}, r"you must state.*PrivateLabels\(label_range=.*label_difference="),
        ({"solver": FrankWolfe(calibration="paper"), "certificate": STATED}, "certificate"),
    ],
)
def test_bad_choices_are_named_and_cost_nothing(figure, wrong, named):
    private = Private(figure.X_private)
    with pytest.raises((ValueError, TypeError), match=named):
        DiscrepancyRegressor(**BUDGET | wrong).fit(
            figure.X_public, figure.y_public, private=private
        )
    assert private.spent(delta=1e-6).epsilon == 0


@pytest.mark.parametrize(
    ("kind", "wrong", "named"),
    [
        (Moments, {"objective": "three-stage"}, "objective"),
        (Moments, {"max_remaining": -1}, "max_remaining"),
        (FrankWolfe, {"calibration": "loose"}, "calibration"),
        (
            FrankWolfe,
            {"smoothing": "huber"},
            "smoothing must be one of 'softmax', 'p-norm', 'one-sided', or",
        ),
        (FrankWolfe, {"smoothing": Softmax}, "smoothing"),
        (FrankWolfe, {"steps": 0}, "steps"),
        (FrankWolfe, {"penalty": -1.0}, "penalty"),
        (MirrorDescent, {"step_size": -1.0}, "step_size"),
        (MirrorDescent, {"geometry": "flat"}, "geometry"),
        (MirrorDescent, {"noise_on": "rows"}, "noise_on"),
        (MirrorDescent, {"calibration": "paper"}, "needs noise_on='gradient'"),
        (SingleStage, {"iterate": "best"}, "iterate"),
        (Softmax, {"mu": 0.0}, "mu"),
        (Softmax, {"mu": np.inf}, "mu"),
    ],
)
def test_bad_options_are_named_when_a_solver_is_made(kind, wrong, named):
    with pytest.raises(ValueError, match=named):
        kind(**wrong)


@pytest.mark.parametrize(
    ("kind", "foreign"),
    [
        (Moments, "calibration"),
        (Moments, "steps"),
        (FrankWolfe, "geometry"),
        (FrankWolfe, "mu"),
        (MirrorDescent, "iterate"),
        (SingleStage, "penalty"),
        (SingleStage, "max_remaining"),
    ],
)
def test_an_option_of_another_solver_cannot_be_written(kind, foreign):
    with pytest.raises(TypeError, match=foreign):
        kind(**{foreign: 1})
    model = DiscrepancyRegressor(**BUDGET, solver=kind())
    with pytest.raises(ValueError, match=f"has no option {foreign}"):
        model.set_params(**{f"solver__{foreign}": 1})


@pytest.mark.parametrize(
    "solver",
    [
        Moments(max_remaining=1.0),
        FrankWolfe(steps=3, smoothing=Softmax(2.0)),
        MirrorDescent(steps=3, smoothing=PNorm(2)),
        SingleStage(steps=3, iterate="uniform"),
    ],
    ids=lambda solver: type(solver).__name__,
)
def test_a_saved_model_keeps_its_solver(figure, solver, tmp_path, monkeypatch):
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    model = DiscrepancyRegressor(**BUDGET, solver=solver)
    X, y, T = figure.X_public[:200], figure.y_public[:200], figure.X_private[:300]
    model.fit(X, y, private=Private(T))
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.solver == solver
    np.testing.assert_array_equal(again.predict(T), model.predict(T))


@pytest.mark.parametrize("name", KINDS)
def test_a_name_is_its_default_object(figure, name):
    one, two = (
        DiscrepancyRegressor(**BUDGET, solver=solver).fit(
            figure.X_public[:200], figure.y_public[:200], private=Private(figure.X_private[:300])
        )
        for solver in (name, KINDS[name]())
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("solver", SOLVERS[1:])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (1, 50, 3), (50, 1, 3), (20, 5, 30)], ids=["m=n=d=1", "m=1", "n=1", "d>n"]
)
def test_extreme_sizes(solver, shape):
    m, n, d = shape
    rng = np.random.default_rng(0)
    few = KINDS[solver](steps=3, smoothing=Softmax(1.0))
    model = DiscrepancyRegressor(**BUDGET, solver=few, radius=3.0)
    model.fit(rng.normal(size=(m, d)), rng.normal(size=m), private=Private(rng.normal(size=(n, d))))
    assert np.isfinite(model.coef_).all()
    assert model.guarantee_.epsilon <= 1.0


@pytest.mark.parametrize("solver", SOLVERS[1:])
@pytest.mark.parametrize("kind", ["zero", "duplicated", "same", "far"])
def test_extreme_rows(solver, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    target = {
        "zero": np.zeros((30, 2)),
        "duplicated": np.repeat(X[:1], 30, axis=0),
        "same": X,
        "far": X + 1e6,
    }[kind]
    few = KINDS[solver](steps=3, smoothing=Softmax(1.0))
    model = DiscrepancyRegressor(**BUDGET, solver=few)
    model.fit(X, X[:, 0], private=Private(target))
    assert np.isfinite(model.coef_).all()


def test_the_report_of_a_paper_solver_has_no_number_that_was_not_released(figure, tmp_path):
    from dpadapt.report import write_report

    model = DiscrepancyRegressor(**BUDGET, solver=FrankWolfe(steps=20))
    model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    text = write_report(model, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "nan" not in text.lower().split("</style>")[1].split("base64")[0]
    assert "weighted to look like the private ones." in " ".join(text.split())


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_certificate_is_within_the_budget_and_above_the_error(figure, solver):
    model = DiscrepancyRegressor(**BUDGET, solver=solver, certificate=STATED)
    model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    assert model.guarantee_.epsilon <= 1.0
    assert len(model.guarantee_.events) == (1 if solver == "moments" else 2)
    error = np.mean((model.predict(figure.X_private) - figure.y_private) ** 2)
    assert model.certificate_.bound > error
    assert model.certificate_.discrepancy >= 0


@pytest.mark.parametrize("solver", ["moments", "frank-wolfe", "mirror-descent", "single-stage"])
def test_a_certificate_that_was_asked_for_comes(figure, solver):
    """Also where the weighted fit leaves the ball: then it is pulled back into it."""
    norm = Source(figure.X_public, figure.y_public).public_norm
    model = DiscrepancyRegressor(
        **BUDGET, solver=solver, certificate=STATED, norm_bound=norm * (1 + 1e-6)
    ).fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    assert model.certificate_.bound > 0
    center, scale = public_scaling(figure.X_public)
    slopes = model.coef_ * scale
    level = model.intercept_ + center @ model.coef_ - figure.y_public.mean()
    assert np.hypot(np.linalg.norm(slopes), level) <= norm * (1 + 1e-5)
    free = DiscrepancyRegressor(**BUDGET, solver=solver, certificate=STATED).fit(
        figure.X_public, figure.y_public, private=Private(figure.X_private)
    )
    assert free.certificate_.bound > 0


def test_a_certificate_that_cannot_be_is_refused_before_anything_is_charged(figure):
    private = Private(figure.X_private)
    model = DiscrepancyRegressor(**BUDGET, certificate=STATED, norm_bound=1e-3)
    with pytest.raises(ValueError, match=r"certificate needs a norm_bound of at least"):
        model.fit(figure.X_public, figure.y_public, private=private)
    assert private.spent(delta=1e-6).epsilon == 0


def test_printed_constants_leave_nothing_for_a_certificate(figure):
    printed = FrankWolfe(calibration="paper")
    with pytest.raises(ValueError, match="certificate needs a release of its own"):
        DiscrepancyRegressor(**BUDGET, solver=printed, certificate=STATED).fit(
            figure.X_public, figure.y_public, private=Private(figure.X_private)
        )


def test_moments_can_minimise_both_stages_at_once(figure):
    two, one = (
        DiscrepancyRegressor(**BUDGET, solver=Moments(objective=objective)).fit(
            figure.X_public, figure.y_public, private=Private(figure.X_private)
        )
        for objective in ("two-stage", "single-stage")
    )
    public = DiscrepancyRegressor(**BUDGET).fit(figure.X_public, figure.y_public)
    errors = [
        np.mean((m.predict(figure.X_private) - figure.y_private) ** 2) for m in (one, two, public)
    ]
    assert errors[0] < 0.9 * errors[2]
    assert one.guarantee_.events == two.guarantee_.events  # both are one release


@pytest.mark.parametrize(
    "old",
    ["certificate.Certificate", "label_difference.PrivateLabels", "smoothing.PNorm"]
    + [f"solvers.{name}" for name in ("FrankWolfe", "MirrorDescent", "SingleStage")],
)
def test_model_folders_that_were_written_before_find_what_is_the_papers(old):
    found = Names().find(f"dpadapt.discrepancy.{old}")
    assert found is getattr(discrepancy, old.partition(".")[2])


def test_a_solver_is_imported_when_it_is_asked_for():
    code = (
        "import sys; from dpadapt.discrepancy import DiscrepancyRegressor; "
        "DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 3.0]); "
        "print(sum(name.startswith('dpadapt.papers.discrepancy') for name in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "0"
