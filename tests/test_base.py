"""The one fit, the table of constraints, and parameters that are objects."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from dpadapt import DiscrepancyRegressor, Guarantee, KernelRegressor, Private
from dpadapt.base import PrivateEstimator, Problem
from dpadapt.learning.cautions import CautionWarning, caution
from dpadapt.learning.checks import GuaranteeWarning
from dpadapt.learning.constraints import (
    Between,
    Count,
    Flag,
    Fraction,
    Grid,
    Instance,
    Like,
    Named,
    NonNegative,
    Null,
    OneOf,
    ParameterTable,
    Positive,
    Vector,
    check_value,
    constraints_of,
)
from dpadapt.learning.linear import LinearClassifier, LinearRegressor
from dpadapt.learning.progress import row_progress
from dpadapt.learning.story import Story
from dpadapt.learning.strategy import Strategy
from dpadapt.modelfolder import load_model, save_model
from dpadapt.privacy import Cleaning
from dpadapt.privacy.mechanisms import SymmetricGaussian
from dpadapt.privacy.statistics import SecondMoment
from dpadapt.report.content import story


@dataclass(frozen=True)
class Soft(Strategy):
    sharpness: float = 1.0
    _constraints: ClassVar[ParameterTable] = {"sharpness": [Positive()]}


@dataclass(frozen=True)
class Plain(Strategy):
    factor: float = 1.0
    _constraints: ClassVar[ParameterTable] = {"factor": [NonNegative()]}


@dataclass(frozen=True)
class Stepwise(Strategy):
    steps: int = 10
    rate: float | None = None
    smoothing: str | Soft = "soft"
    _constraints: ClassVar[ParameterTable] = {
        "steps": [Count()],
        "rate": [Positive(), Null()],
        "smoothing": [Named({"soft": Soft})],
    }

    def _check(self):
        if self.rate is not None and self.steps < 2:
            raise ValueError("rate needs steps=2 or more.")


class Parameters(PrivateEstimator):
    _constraints: ClassVar[ParameterTable] = {
        "solver": [Named({"plain": Plain, "stepwise": Stepwise})],
        "ridge": [NonNegative()],
    }

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-6,
        solver="plain",
        ridge=0.1,
        noise="seeded",
        random_state=0,
        ledger=None,
        verbose=0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.ridge = ridge
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _check(self):
        if self.ridge == 0 and isinstance(self._strategy("solver"), Stepwise):
            raise ValueError("ridge must not be 0 for solver='stepwise'.")

    def _released(self, problem, session):
        """A noisy trace of second moments, so that something is spent."""
        query = SecondMoment(Cleaning(radius=1.0))
        hidden = session.hide(query)
        grant = session.plan(moment=SymmetricGaussian.of(hidden)).moment
        return float(np.trace(session.release(grant, hidden)))


class Toy(Parameters, LinearRegressor):
    """Ridge regression, and a noisy number."""

    def _solve(self, problem, session):
        X, y = problem.X, problem.labels - problem.labels.mean()
        strength = self.ridge * getattr(self._strategy("solver"), "factor", 1.0)
        slopes = np.linalg.solve(X.T @ X + strength * np.eye(X.shape[1]), X.T @ y)
        found = {"coef_": slopes, "intercept_": float(problem.labels.mean())}
        if session is None:
            return found
        return found | {"trace_": self._released(problem, session)}


class ToyClassifier(Parameters, LinearClassifier):
    """Scores of zero."""

    def _solve(self, problem, session):
        self.seen = (problem.labels, problem.names, session is None)
        return {"coef_": np.zeros((1, problem.X.shape[1])), "intercept_": np.zeros(1)}


rng = np.random.default_rng(7)
X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
PRIVATE = Private(rng.normal(size=(30, 2)), rng.normal(size=30))


# the one fit


def test_private_rows_are_optional_and_the_guarantee_is_derived():
    alone = Toy().fit(X, y)
    assert alone.guarantee_ == Guarantee()
    assert not hasattr(alone, "trace_")
    both = Toy().fit(X, y, private=PRIVATE)
    assert 0.9 < both.guarantee_.epsilon <= 1.0
    assert both.n_features_in_ == 2
    labels = [each.label for each in both.guarantee_.events]
    assert labels == ["second moment", "rows with a label"]


def test_nothing_of_an_earlier_fit_stays():
    model = Toy().fit(X, y, private=PRIVATE)
    assert hasattr(model, "trace_")
    model.fit(X[:, :1], y)
    assert not hasattr(model, "trace_")
    assert model.n_features_in_ == 1
    assert model.guarantee_ == Guarantee()


class Refuses(Toy):
    def _solve(self, problem, session):
        found = super()._solve(problem, session)
        if self.ridge == 7:
            raise KeyboardInterrupt
        return found


@pytest.mark.parametrize("private", [None, PRIVATE])
def test_a_refused_fit_leaves_the_model_as_it_was(private):
    import pandas as pd

    model = Refuses().fit(pd.DataFrame(X, columns=["a", "b"]), y, private=PRIVATE)
    before = dict(vars(model))
    model.ridge = 7
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :1], y, private=private and Private(X[:, :1], y))
    assert vars(model) == before | {"ridge": 7}
    fresh = Refuses(ridge=7)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert vars(fresh) == vars(Refuses(ridge=7))


def test_a_refused_request_of_metadata_is_no_fitted_attribute():
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        model = Toy().set_fit_request(private=True).fit(X, y)
    assert "_metadata_request" in vars(model)


def test_checks_come_before_anything_is_read():
    private = Private(X, y)
    with pytest.raises(ValueError, match="ridge must not be 0 for solver='stepwise'"):
        Toy(solver="stepwise", ridge=0).fit(None, None, private=private)
    with pytest.raises(ValueError, match="epsilon must be a positive, finite number; got 0"):
        Toy(epsilon=0).fit(None, None, private=private)
    assert not private.spent(1e-6).events


def test_a_mixin_behind_the_estimator_is_refused_with_the_cure():
    """scikit-learn would not see it, and read classes as numbers."""
    with pytest.raises(TypeError, match=r"class Late\(ClassifierMixin, PrivateEstimator\)"):
        type("Late", (PrivateEstimator, ClassifierMixin), {})
    with pytest.raises(TypeError, match=r"class Late\(RegressorMixin, PrivateEstimator\)"):
        type("Late", (PrivateEstimator, RegressorMixin), {})
    early = type("Early", (ClassifierMixin, PrivateEstimator), {"__init__": lambda self: None})
    assert is_classifier(early())


def test_classes_are_encoded_and_kept():
    labels = np.where(X[:, 0] > 0, "yes", "no")
    model = ToyClassifier().fit(X, labels, private=Private(X, labels))
    codes, names, alone = model.seen
    assert names.tolist() == model.classes_.tolist() == ["no", "yes"]
    assert (names[codes] == labels).all()
    assert not alone
    with pytest.raises(ValueError, match="private must have labels"):
        ToyClassifier().fit(X, labels, private=Private(X))


class Unlabelled(Toy):
    _reads_labels = False


def test_a_method_may_do_without_private_labels():
    assert Unlabelled().fit(X, y, private=Private(X)).guarantee_.events
    with pytest.raises(ValueError, match="private must have labels"):
        Toy().fit(X, y, private=Private(X))


class Related(Toy):
    relation = "add-remove"

    def _adapt(self, problem, sample, options):
        assert options["relation"] == "add-remove"
        return self._solve(problem, None), Guarantee()


def test_under_add_remove_an_empty_sample_is_like_any_other():
    empty = Private(np.zeros((0, 2)), np.zeros(0))
    assert Toy()._sample(Problem(X, y), None) is None
    model, other = Toy().fit(X, y), Related().fit(X, y)
    assert model._sample(Problem(X, y), empty) is None
    assert other._sample(Problem(X, y), empty) is not None


class Counted(Toy):
    relation = "add-remove"

    def _solve(self, problem, session):
        return super()._solve(problem, None)


@pytest.mark.parametrize(("kind", "shown"), [(Toy, True), (Counted, False)])
def test_a_bar_shows_no_secret_number_of_rows(kind, shown, capsys):
    kind(verbose=1).fit(X, y, private=PRIVATE)
    assert ("reading private rows" in capsys.readouterr().err) == shown


class Spends(Toy):
    def _adapt(self, problem, sample, options):
        with sample.open(**options | {"epsilon": 2 * options["epsilon"]}) as session:
            return self._solve(problem, session), session.guarantee


def test_printed_constants_are_warned_of():
    with pytest.warns(GuaranteeWarning, match="give epsilon") as seen:
        Spends().fit(X, y, private=fresh())
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Toy().fit(X, y, private=fresh())


def fresh(n=30):
    return Private(rng.normal(size=(n, 2)), rng.normal(size=n))


def test_using_private_rows_again_is_told_with_the_sum():
    private = fresh()
    first = Toy().fit(X, y, private=private)
    assert not any("before" in text for text in first.guarantee_.caveats)
    with pytest.warns(GuaranteeWarning, match=r"all uses together have cost epsilon 1\.4") as seen:
        second = Toy().fit(X, y, private=private)
    assert seen[0].filename == __file__
    total = private.spent(second.guarantee_.delta).epsilon
    assert f"cost epsilon {total:.4g}" in second.guarantee_.caveats[-1]
    assert second.guarantee_.epsilon == pytest.approx(first.guarantee_.epsilon)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Toy().fit(X, y)  # no private row, nothing to tell


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": 50.0}, "promises next to nothing"),
        ({"delta": 0.1}, "not below one over the number of private rows"),
        ({"n": 5}, "there are 5 private rows"),
        ({"y": np.ones(len(y))}, "all public labels are the same"),
        ({"rows": 1}, "there are 1 public rows for 2 columns"),
    ],
    ids=str,
)
def test_what_is_hardly_meant_is_told(change, words):
    rows, labels = X[: change.get("rows")], change.get("y", y)[: change.get("rows")]
    settings = {name: change[name] for name in ("epsilon", "delta") if name in change}
    private = fresh(change.get("n", 30))
    with pytest.warns(CautionWarning, match=words):
        Toy(**settings).fit(rows, labels, private=private)


def test_a_secret_number_of_rows_is_not_warned_of():
    options = {"epsilon": 1.0, "delta": 0.1, "relation": "add-remove"}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        caution(None, fresh(3), options)
    assert not seen


class Asks(Toy):
    def fit(self, X, y, *, private=None, agents=None):
        return self._fit(X, y, private, agents=agents)

    def _read(self, X, y, private, *, agents):
        problem = super()._read(X, y, private)
        return replace(problem, labels=problem.labels + agents)


def test_fit_may_have_more_arguments():
    assert Asks().fit(X, y, agents=3.0).intercept_ == pytest.approx(y.mean() + 3)


def test_a_story_by_default_and_by_the_estimator():
    class Tells(Toy):
        def _story(self):
            return replace(super()._story(), summary="Once upon a time.")

    model = Toy().fit(X, y)
    told = story(model, model.guarantee_)
    assert told.summary == "Ridge regression, and a noisy number. Fitted on public rows alone."
    assert isinstance(told, Story)
    assert told.assumption == ""
    model = Tells().fit(X, y, private=PRIVATE)
    assert story(model, model.guarantee_).summary == "Once upon a time."
    assert story(model, model.guarantee_).assumption


# constraints


@pytest.mark.parametrize(
    ("constraint", "good", "bad", "message"),
    [
        (
            Positive(),
            [1, 0.5, np.float64(2)],
            [0, -1, math.inf, math.nan, "1", True, None],
            "be a p",
        ),
        (
            NonNegative(),
            [0, 0.0, 3],
            [-1, math.inf, math.nan, False, None],
            "be a finite number, z",
        ),
        (Fraction(), [0.5], [0, 1, 1.5, True, None, "0.5"], "lie strictly between 0 and 1"),
        (Between(0, 2), [0, 1.5, 2], [-0.1, 2.1, math.nan, True], r"lie in \[0, 2\]"),
        (Between(0, 2, left=False, right=False), [1], [0, 2], r"lie in \(0, 2\)"),
        (Count(), [1, np.int64(3)], [0, 1.0, True, None], "be a whole number, 1 or more"),
        (Count(least=0), [0], [-1], "be a whole number, 0 or more"),
        (OneOf("a", "b"), ["a"], ["c", None, 1, ["a"]], "be one of 'a', 'b'; got"),
        (Named({"s": Soft}), ["s", Soft(2.0)], ["t", Soft, None], "be one of 's', or an object"),
        (Flag(), [True, np.False_], [0, 1, "yes", None], "be True or False"),
        (Vector(), [[1.0], np.ones(3)], [1.0, [], [math.nan], [[1.0]], None, ["a"]], "hold finite"),
        (Vector(2), [[1, 2]], [[1], [1, 2, 3]], "hold 2 finite numbers"),
        (Grid(most=1), [0, [0.5, 1]], [2, [0.5, 2], [], None, [[1]], "a"], "be a number from 0 to"),
        (Grid(zero=False), [3, [1, 2]], [0, [0, 1], math.inf], "be a number above 0, or a grid"),
    ],
)
def test_constraints_accept_what_they_say(constraint, good, bad, message):
    for value in good:
        check_value("it", value, [constraint])
    for value in bad:
        with pytest.raises(ValueError, match=f"^it must {message}"):
            check_value("it", value, [constraint])
        if value is not None:
            with pytest.raises(ValueError, match=f"^it must {message}"):
                check_value("it", value, [constraint, Null()])
    check_value("it", None, [constraint, Null()])


def test_wrong_types_are_told_by_their_type():
    with pytest.raises(TypeError, match=r"^it must be a list or dict; got tuple\.$"):
        check_value("it", ("secret",), [Instance(list, dict), Null()])
    with pytest.raises(TypeError, match=r"^it must be an account; got int\. Open a ledger\.$"):
        check_value("it", 7, [Like("be an account", "charge", advice="Open a ledger."), Null()])
    with pytest.raises(ValueError, match=r"^it must be one of 'a', or be a list; got 7\.$"):
        check_value("it", 7, [OneOf("a"), Instance(list)])


def test_tables_are_inherited_row_by_row():
    rows = constraints_of(Toy)
    assert {"epsilon", "delta", "noise", "ledger", "verbose", "solver", "ridge"} == rows.keys()
    with pytest.raises(TypeError, match="ledger must be an account, as in Ledger"):
        Toy(ledger="budget.db").fit(X, y)


def library() -> list[type]:
    """Estimators of the library that fit by the base."""
    for name in ("baselines", "discrepancy", "hybrid", "kernels", "mixing", "reweighting"):
        package = import_module(f"dpadapt.{name}")
        for shown in package.__all__:  # those of papers are imported when they are asked for
            getattr(package, shown)
    kinds, found = [PrivateEstimator], []
    for kind in kinds:
        kinds += kind.__subclasses__()
        own = kind.__module__.startswith("dpadapt.") and "epsilon" in kind._get_param_names()
        found += [kind] if own else []
    return found


def test_every_parameter_has_a_row_and_every_row_a_parameter():
    # checked against labels and public rows, by the solver, and by scikit-learn
    free = {"classes", "start", "select", "random_state"}
    kinds = library()
    assert "DiscrepancyRegressor" in [kind.__name__ for kind in kinds]
    for kind in kinds:
        own = set(kind._get_param_names())
        assert constraints_of(kind).keys() <= own, kind
        assert own - free <= constraints_of(kind).keys(), kind
        assert len(own) <= 14


# parameters that are objects


def test_a_name_stands_for_the_default_object():
    assert Toy()._strategy("solver") == Plain()
    assert Toy(solver="stepwise")._strategy("solver") == Stepwise()
    chosen = Stepwise(steps=3)
    assert Toy(solver=chosen)._strategy("solver") is chosen
    with pytest.raises(ValueError, match="one of 'plain', 'stepwise', or an object of Plain or"):
        Toy(solver="newton").fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be a whole number, 1 or more"),
        ({"rate": -1.0}, "rate must be a positive, finite number"),
        ({"steps": 1, "rate": 1.0}, "rate needs steps=2"),
        ({"smoothing": "hard"}, "smoothing must be one of 'soft', or an object of Soft"),
    ],
)
def test_a_strategy_checks_itself(options, message):
    with pytest.raises(ValueError, match=message):
        Stepwise(**options)


def test_clones_share_a_strategy_that_nothing_changes():
    model = Toy(solver=Stepwise(steps=3))
    copy = clone(model)
    assert copy.solver == model.solver
    copy.set_params(solver__steps=5)
    assert (model.solver.steps, copy.solver.steps) == (3, 5)
    with pytest.raises(AttributeError):
        model.solver.steps = 4


def test_parameters_inside_are_listed_and_set():
    model = Toy(solver=Stepwise(smoothing=Soft(2.0)))
    listed = model.get_params()
    assert listed["solver__steps"] == 10
    assert listed["solver__smoothing__sharpness"] == 2.0
    assert "solver__steps" not in model.get_params(deep=False)
    model.set_params(solver__steps=4, solver__smoothing__sharpness=3.0, ridge=0.5)
    assert model.solver == Stepwise(steps=4, smoothing=Soft(3.0))
    assert model.ridge == 0.5
    by_name = Toy(solver="stepwise").set_params(solver__smoothing__sharpness=3.0)
    assert by_name.solver == Stepwise(smoothing=Soft(3.0))
    both = Toy().set_params(solver="stepwise", solver__steps=2)
    assert both.solver == Stepwise(steps=2)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"solver__factor": 1}, "Stepwise has no option factor; its options: steps, rate, smooth"),
        ({"solver__smoothing__rate": 1}, "Soft has no option rate"),
        ({"solver__steps": 0}, "steps must be a whole number"),
        ({"slover": "plain"}, "Invalid parameter 'slover'"),
        ({"slover__steps": 3}, "Invalid parameter 'slover'"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        Toy(solver="stepwise").set_params(**params)


@pytest.mark.parametrize("solver", ["plain", Plain()])
def test_grid_search_reaches_into_a_strategy(solver):
    search = GridSearchCV(Toy(solver=solver, ridge=1.0), {"solver__factor": [0.0, 1e9]}, cv=2)
    search.fit(X, X[:, 0])
    assert search.best_params_ == {"solver__factor": 0.0}
    kinds = GridSearchCV(Toy(ridge=1.0), {"solver": [Plain(1e9), Plain(0.0)]}, cv=2)
    kinds.fit(X, X[:, 0])
    assert kinds.best_estimator_.solver == Plain(0.0)


def test_it_prints_as_it_is_written():
    model = Toy(solver=Stepwise(steps=3))
    assert repr(model) == "Toy(solver=Stepwise(steps=3, rate=None, smoothing='soft'))"
    assert "Stepwise" in model._repr_html_()
    assert "Toy" in Toy()._repr_html_()


def test_a_model_folder_gives_the_strategy_back(tmp_path):
    model = Toy(solver=Stepwise(steps=3, smoothing=Soft(2.0))).fit(X, y, private=PRIVATE)
    names = [f"{each.__module__}.{each.__qualname__}" for each in (Toy, Stepwise, Soft)]
    save_model(model, tmp_path / "model", trusted=names)
    again: Any = load_model(tmp_path / "model", trusted=names)
    assert again.solver == model.solver
    assert (again.predict(X) == model.predict(X)).all()


def test_texts_in_public_rows_are_named_with_what_takes_them():
    table = pd.DataFrame({"size": [1.0, 2.0], "town": ["A", "B"], "street": ["x", "y"]})
    with pytest.raises(ValueError, match=r"the columns town, street hold texts.*AutoRegressor"):
        Toy().fit(table, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"y holds texts.*AutoClassifier"):
        Toy().fit([[1.0], [2.0]], ["a", "b"])
    with pytest.raises(ValueError, match=r"contains NaN. AutoRegressor and AutoClassifier take"):
        Toy().fit([[1.0], [np.nan]], [1.0, 2.0])


def test_no_bar_before_there_is_anything_to_count(capsys):
    with row_progress("reading", 1) as report:
        assert "reading" not in capsys.readouterr().err
        report(2, 4)
    assert "2/4" in capsys.readouterr().err
    with row_progress("reading", 1):
        pass
    assert "reading" not in capsys.readouterr().err


@pytest.mark.parametrize("where", ["X", "y"])
def test_public_numbers_that_overflow_are_refused_before_anything_is_charged(where):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    (X if where == "X" else y)[:3] = 1.7e308
    private = Private(rng.normal(size=(200, 3)), rng.normal(size=200))
    for kind in (DiscrepancyRegressor, KernelRegressor):
        with pytest.raises(ValueError, match=f"{where} holds the number 1.7e\\+308"):
            kind(epsilon=1.0, delta=1e-6).fit(X, y, private=private)
    assert private.spent(1e-6).epsilon == 0
