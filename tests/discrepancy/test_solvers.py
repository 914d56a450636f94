"""The paper's solvers behind the estimator: the contract, printed constants, bad choices."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
import pytest

from contracts import EstimatorContract
from dpadapt import DiscrepancyRegressor, Private
from dpadapt.discrepancy.estimator import GuaranteeWarning
from reproduce.discrepancy.data import figure_data

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}


class SolverContract(EstimatorContract):
    """The battery with few steps, which is all that privacy needs to be shown."""

    solver: ClassVar[dict]

    def make(self, **params):
        return DiscrepancyRegressor(**BUDGET | self.solver | params)


class TestFrankWolfe(SolverContract):
    solver: ClassVar[dict] = {"solver": "frank-wolfe", "steps": 5, "mu": 2.0}


class TestMirrorDescent(SolverContract):
    solver: ClassVar[dict] = {"solver": "mirror-descent", "steps": 5, "mu": 2.0}


@pytest.mark.slow
class TestMirrorDescentOnTheGradient(SolverContract):
    solver: ClassVar[dict] = {
        "solver": "mirror-descent",
        "steps": 3,
        "mu": 2.0,
        "geometry": "p-norm",
        "noise_on": "gradient",
    }


class TestSingleStage(SolverContract):
    chosen_from = 5  # iterates, of which one is selected
    solver: ClassVar[dict] = {"solver": "single-stage", "steps": 5, "mu": 2.0, "iterate": "select"}


@pytest.fixture(scope="module")
def figure():
    return figure_data(np.random.default_rng(0), 4000)


SOLVERS = ["moments", "frank-wolfe", "mirror-descent", "single-stage"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_beats_public_data_without_noise(figure, solver):
    public = DiscrepancyRegressor(**BUDGET).fit(figure.X_public, figure.y_public)
    given = BUDGET | {"epsilon": 1e5, "solver": solver}
    if solver != "moments":
        given |= {"mu": 5.0, "steps": 3000}
    model = DiscrepancyRegressor(**given)
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


@pytest.mark.parametrize("solver", ["frank-wolfe", "single-stage"])
def test_printed_constants_say_what_they_give(figure, solver):
    given = BUDGET | {"solver": solver, "calibration": "paper", "steps": 200, "delta": 1 / 8000}
    model = DiscrepancyRegressor(**given)
    model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    assert model.guarantee_.epsilon < 0.5  # far more noise than they would need
    assert sum(event.count for event in model.guarantee_.events) == 200


def test_printed_constants_that_give_less_privacy_than_asked_warn(figure, monkeypatch):
    """The printed scale is made a hundred times too small: the guarantee is not fooled."""
    from dpadapt.discrepancy import frank_wolfe

    honest = frank_wolfe.printed_vertex_noise
    monkeypatch.setattr(frank_wolfe, "printed_vertex_noise", lambda *a: honest(*a) / 100)
    model = DiscrepancyRegressor(
        **BUDGET, solver="frank-wolfe", calibration="paper", steps=100, mu=5.0
    )
    with pytest.warns(GuaranteeWarning, match="printed constants give epsilon"):
        model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    assert model.guarantee_.epsilon > 1.5
    assert any("was asked for" in caveat for caveat in model.guarantee_.caveats)


def test_tight_solvers_do_not_warn(figure):
    with warnings.catch_warnings():
        warnings.simplefilter("error", GuaranteeWarning)
        model = DiscrepancyRegressor(**BUDGET, solver="frank-wolfe", steps=20)
        model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    assert model.guarantee_.epsilon <= 1.0


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"solver": "sgd"}, "solver"),
        ({"objective": "three-stage"}, "objective"),
        ({"calibration": "loose"}, "calibration"),
        ({"calibration": "paper"}, "calibration"),
        ({"smoothing": "huber"}, "smoothing"),
        ({"solver": "frank-wolfe", "mu": 0.0}, "mu"),
        ({"solver": "frank-wolfe", "mu": np.inf}, "mu"),
        ({"solver": "frank-wolfe", "mu": 1.0, "smoothing": "p-norm"}, "mu"),
        ({"solver": "frank-wolfe", "steps": 0}, "steps"),
        ({"solver": "mirror-descent", "step_size": -1.0}, "step_size"),
        ({"solver": "mirror-descent", "geometry": "flat"}, "geometry"),
        ({"solver": "mirror-descent", "noise_on": "rows"}, "noise_on"),
        ({"solver": "frank-wolfe", "penalty": -1.0}, "penalty"),
        ({"solver": "single-stage", "norm_bound": 0.0}, "norm_bound"),
        ({"solver": "single-stage", "iterate": "best"}, "iterate"),
    ],
)
def test_bad_choices_are_named_and_cost_nothing(figure, wrong, named):
    private = Private(figure.X_private)
    with pytest.raises(ValueError, match=named):
        DiscrepancyRegressor(**BUDGET | wrong).fit(
            figure.X_public, figure.y_public, private=private
        )
    assert private.spent(delta=1e-6).epsilon == 0


@pytest.mark.parametrize("solver", SOLVERS[1:])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (1, 50, 3), (50, 1, 3), (20, 5, 30)], ids=["m=n=d=1", "m=1", "n=1", "d>n"]
)
def test_extreme_sizes(solver, shape):
    m, n, d = shape
    rng = np.random.default_rng(0)
    model = DiscrepancyRegressor(**BUDGET, solver=solver, steps=3, mu=1.0, radius=3.0)
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
    model = DiscrepancyRegressor(**BUDGET, solver=solver, steps=3, mu=1.0)
    model.fit(X, X[:, 0], private=Private(target))
    assert np.isfinite(model.coef_).all()


def test_the_report_of_a_paper_solver_has_no_number_that_was_not_released(figure, tmp_path):
    from dpadapt.report import write_report

    model = DiscrepancyRegressor(**BUDGET, solver="frank-wolfe", steps=20)
    model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    text = write_report(model, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "nan" not in text.lower().split("</style>")[1].split("base64")[0]
    assert "weighted to look like the private ones." in " ".join(text.split())


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_certificate_is_within_the_budget_and_above_the_error(figure, solver):
    model = DiscrepancyRegressor(**BUDGET, solver=solver, certificate=True)
    model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    assert model.guarantee_.epsilon <= 1.0
    assert len(model.guarantee_.events) == (1 if solver == "moments" else 2)
    error = np.mean((model.predict(figure.X_private) - figure.y_private) ** 2)
    assert model.certificate_.bound > error
    assert model.certificate_.discrepancy >= 0


def test_a_certificate_is_for_coefficients_within_the_norm_bound(figure):
    model = DiscrepancyRegressor(**BUDGET, certificate=True, norm_bound=1e-3)
    model.fit(figure.X_public, figure.y_public, private=Private(figure.X_private))
    assert model.certificate_ is None


def test_printed_constants_leave_nothing_for_a_certificate(figure):
    given = BUDGET | {"solver": "frank-wolfe", "calibration": "paper", "certificate": True}
    with pytest.raises(ValueError, match="certificate"):
        DiscrepancyRegressor(**given).fit(
            figure.X_public, figure.y_public, private=Private(figure.X_private)
        )


def test_moments_can_minimise_both_stages_at_once(figure):
    two, one = (
        DiscrepancyRegressor(**BUDGET, objective=objective).fit(
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
