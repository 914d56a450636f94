"""AdaptationPipeline: the contract, and what goes through transformers."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from dpadapt import AdaptationPipeline, DiscrepancyRegressor, Private, ReweightingClassifier
from dpadapt.discrepancy import Moments
from dpadapt.testing import Subject
from dpadapt.testing.search import SECRET_TEXT, Secrets, everything_said
from dpadapt.testing.tape import taped

TOWNS = np.array(["north", "south", "west"])


def regressor(**params):
    given = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0} | params
    return DiscrepancyRegressor(**({"solver": Moments(max_remaining=1.0)} | given))


MADE_UP = Subject(regressor())  # samples


def table(n, seed=0, towns=TOWNS):
    rng = np.random.default_rng([9, seed])
    frame = pd.DataFrame({"town": rng.choice(towns, n), "size": rng.normal(3.0, 1.0, n)})
    return frame.assign(rooms=rng.integers(1, 5, n))


def public():
    frame = table(200)
    return frame, frame["size"] ** 2 + frame["rooms"] * (frame["town"] == "west")


def encoder(**options):
    return make_column_transformer(
        (OneHotEncoder(**options), ["town"]), (StandardScaler(), ["size", "rooms"])
    )


def pipeline(**options):
    return AdaptationPipeline([("encode", encoder(**options))], regressor())


def test_scaler_changes_nothing_for_an_estimator_that_scales_itself():
    X, y = MADE_UP.public()
    private = Private(MADE_UP.rows())
    alone = regressor().fit(X, y, private=private)
    piped = AdaptationPipeline([("scale", StandardScaler())], regressor())
    piped.fit(X, y, private=private)
    np.testing.assert_allclose(piped.predict(X), alone.predict(X), rtol=1e-6)
    np.testing.assert_allclose(piped.estimator_.weights_, alone.weights_, rtol=1e-6)


# categories


@pytest.mark.parametrize("handling", ["error", "ignore", "infrequent_if_exist"])
def test_unseen_private_categories_are_no_error_and_no_warning(handling):
    X, y = public()
    private = table(500, seed=1)
    private.loc[::40, "town"] = SECRET_TEXT
    private.loc[3, "town"] = None
    with everything_said() as said:
        model = pipeline(handle_unknown=handling).fit(X, y, private=Private(private))
    assert said.all.strip() == ""
    assert model.guarantee_.epsilon == pytest.approx(1.0)
    assert np.isfinite(model.predict(X)).all()
    Secrets(private[["size", "rooms"]]).check(model)
    known = pipeline(handle_unknown=handling).fit(X, y, private=Private(table(500, seed=1)))
    assert known.estimator_.uniform_discrepancy_ != model.estimator_.uniform_discrepancy_


def test_a_refused_row_counts_as_missing():
    X, y = public()
    refused = table(300, seed=1)
    refused.loc[5, "town"] = "unseen"
    with taped() as tape:
        pipeline(handle_unknown="error").fit(X, y, private=Private(refused))
    known = refused.assign(town=refused["town"].replace("unseen", "west"))
    rows = np.asarray(encoder().fit(X).transform(known))
    rows[5] = np.nan
    with taped() as expected:
        regressor().fit(np.asarray(encoder().fit_transform(X)), y, private=Private(rows))
    np.testing.assert_allclose(tape[0].value, expected[0].value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("private_first", ["frame", "shuffled", "extra"])
def test_columns_are_found_by_name(private_first):
    X, y = public()
    private = table(300, seed=1)
    forms = {
        "frame": private,
        "shuffled": private[["rooms", "town", "size"]],
        "extra": private.assign(other=SECRET_TEXT)[["other", "rooms", "town", "size"]],
    }
    expected = pipeline().fit(X, y, private=Private(private)).predict(X)
    found = pipeline().fit(X, y, private=Private(forms[private_first])).predict(X)
    np.testing.assert_array_equal(found, expected)


def test_missing_columns_are_named():
    X, y = public()
    with pytest.raises(ValueError, match=r"private.*'town', 'rooms'") as caught:
        pipeline().fit(X, y, private=Private(table(50)[["size"]]))
    assert "'size'" not in str(caught.value)


def test_private_array_takes_the_names_of_the_public_frame():
    X, y = public()
    frame = table(300, seed=1)
    one = pipeline().fit(X, y, private=Private(frame))
    two = pipeline().fit(X, y, private=Private(frame.to_numpy()))
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-9)
    numeric = X[["size", "rooms"]]
    scale = make_column_transformer((StandardScaler(), ["size", "rooms"]))
    models = [
        AdaptationPipeline([("scale", scale)], regressor()).fit(numeric, y, private=Private(rows))
        for rows in (frame[["size", "rooms"]], frame[["size", "rooms"]].to_numpy())
    ]
    np.testing.assert_allclose(models[0].predict(numeric), models[1].predict(numeric), rtol=1e-9)


def test_parquet_equals_memory(tmp_path):
    X, y = public()
    private = table(3000, seed=1)
    private.loc[::500, "town"] = "unseen"
    private.to_parquet(tmp_path / "people.parquet")
    one = pipeline().fit(X, y, private=Private(private))
    two = pipeline().fit(X, y, private=Private.from_parquet(tmp_path / "people.parquet"))
    np.testing.assert_allclose(two.predict(X), one.predict(X), rtol=1e-9)
    assert two.guarantee_ == one.guarantee_


@pytest.mark.parametrize("sparse", [True, False])
def test_sparse_output_is_taken(sparse):
    X, y = public()
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=sparse), ["town", "rooms"]), sparse_threshold=1.0
    )
    model = AdaptationPipeline([("encode", encode)], regressor())
    model.fit(X, y, private=Private(table(300, seed=1)))
    assert model.predict(X).shape == (200,)
    assert math.isfinite(model.score(X, y))


def test_pandas_output_is_taken():
    X, y = public()
    encode = encoder(sparse_output=False).set_output(transform="pandas")
    private = Private(table(300, seed=1))
    one = AdaptationPipeline([("encode", encode)], regressor()).fit(X, y, private=private)
    two = pipeline().fit(X, y, private=private)
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-9)


# transformers and private rows


class Spy(TransformerMixin, BaseEstimator):
    """Writes down what it is fitted on, and remembers what it transforms."""

    fitted_on: list = []  # noqa: RUF012

    def fit(self, X, y=None):
        type(self).fitted_on.append(np.array(X, copy=True))
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X):
        self.last_ = X
        return np.asarray(X, dtype=float) * 2.0


def test_transformers_are_fitted_on_public_rows_only():
    X, y = MADE_UP.public()
    rows = MADE_UP.rows()
    Spy.fitted_on.clear()
    spies = [("one", Spy()), ("scale", StandardScaler()), ("two", Spy())]
    model = AdaptationPipeline(spies, regressor()).fit(X, y, private=Private(rows))
    assert len(Spy.fitted_on) == 2
    np.testing.assert_array_equal(Spy.fitted_on[0], X)
    np.testing.assert_allclose(Spy.fitted_on[1].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(model.transformer_["scale"].mean_, 2 * X.mean(axis=0))
    Spy.fitted_on.clear()


def test_a_transformer_that_remembers_does_not_keep_private_rows():
    X, y = MADE_UP.public()
    rows, _ = MADE_UP.marked()
    model = AdaptationPipeline([("spy", Spy())], regressor()).fit(X, y, private=Private(rows))
    Spy.fitted_on.clear()
    assert model.transformer_["spy"].last_ is not None
    Secrets(rows).check(model)


class Batchwise(TransformerMixin, BaseEstimator):
    """What a row becomes depends on its neighbours."""

    def __init__(self, kind="center"):
        self.kind = kind

    def fit(self, X, y=None):
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X):
        X = np.asarray(X, dtype=float)
        return {
            "center": lambda: X - X.mean(axis=0),
            "difference": lambda: np.diff(X, axis=0, prepend=X[:1]),
            "cumulative": lambda: np.cumsum(X, axis=0),
            "rank": lambda: X.argsort(axis=0).argsort(axis=0),
            "drop": lambda: X[: max(1, len(X) // 2)],
        }[self.kind]()


@pytest.mark.parametrize("kind", ["center", "difference", "cumulative", "rank", "drop"])
@pytest.mark.parametrize("m", [4, 30, 300])
def test_transformers_that_mix_rows_are_refused(kind, m):
    X, y = MADE_UP.public(m=m)
    model = AdaptationPipeline([("mix", Batchwise(kind))], regressor())
    private = Private(MADE_UP.rows())
    with taped() as tape, pytest.raises(ValueError, match=r"steps.*row"):
        model.fit(X, y, private=private)
    assert tape == []
    assert private.spent(1e-6).epsilon == 0


class Fragile(TransformerMixin, BaseEstimator):
    """Treats public rows well; on some private rows it misbehaves."""

    def __init__(self, how="raise"):
        self.how = how

    def fit(self, X, y=None):
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X):
        X = np.array(X, dtype=float)
        bad = X[:, 0] > 50
        if bad.any():
            if self.how == "raise":
                raise ValueError(f"cannot transform {X[bad]}")
            if self.how == "shape":
                return X[~bad]
            if self.how == "width":
                return X[:, :1]
            if self.how == "warn":
                warnings.warn(f"odd: {X[bad]}", stacklevel=2)
                print("odd:", X[bad])
            X[bad] = {"nan": math.nan, "inf": math.inf}.get(self.how, 0.0)
        return X


@pytest.mark.parametrize("how", ["raise", "shape", "width", "nan", "inf", "warn"])
def test_private_rows_that_a_transformer_refuses_count_as_missing(how):
    X, y = MADE_UP.public()
    rows = MADE_UP.rows()
    rows[[3, 40, 41]] = 987654.321
    model = AdaptationPipeline(
        [("fragile", Fragile(how)), ("scale", StandardScaler())], regressor()
    )
    with everything_said() as said, taped() as tape:
        model.fit(X, y, private=Private(rows))
    assert said.all.strip() == ""
    assert np.isfinite(model.predict(X)).all()
    clean = np.delete(rows, [3, 40, 41], axis=0)
    with taped() as expected:
        AdaptationPipeline([("scale", StandardScaler())], regressor()).fit(
            X, y, private=Private(clean)
        )
    # the other rows are untouched: only three of them may have changed the moment
    size = np.abs(tape[0].value * 400 - expected[0].value * 397).max()
    assert size <= 3 * (np.linalg.norm(StandardScaler().fit_transform(X), axis=1).max() ** 2 + 1)


def test_transformers_that_change_their_input_do_not_change_the_private_rows():
    X, y = MADE_UP.public()
    rows = MADE_UP.rows()
    before = rows.copy()
    model = AdaptationPipeline([("scale", StandardScaler(copy=False))], regressor())
    model.fit(X.copy(), y, private=Private(rows))
    np.testing.assert_array_equal(rows, before)


# parameters


def test_nested_parameters_can_be_searched():
    X, y = public()
    private = Private(table(300, seed=1))
    model = AdaptationPipeline(
        [("encode", encoder()), ("poly", PolynomialFeatures(include_bias=False))], regressor()
    )
    grid = {"estimator__epsilon": [0.5, 1.0], "poly__degree": [1, 2]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, y, private=private)
    assert len(private.spent(1e-6).events) == 2 * 4 + 1
    assert search.best_params_["poly__degree"] in (1, 2)
    assert model.steps[1][1].degree == 2  # the original is as it was
    assert not hasattr(model, "estimator_")


def test_parameters_can_be_set_deep_and_whole():
    model = AdaptationPipeline([("a", StandardScaler()), ("b", PCA(2))], regressor())
    model.set_params(b__n_components=1, a__with_mean=False, estimator__epsilon=0.3)
    params = model.get_params()
    assert (params["b__n_components"], params["a__with_mean"]) == (1, False)
    assert params["estimator__epsilon"] == model.estimator.epsilon == 0.3
    model.set_params(a__with_std=False, a=StandardScaler())
    assert model.steps[0][1].with_std is False
    model.set_params(b="passthrough")
    assert dict(model.steps)["b"] == "passthrough"
    copied = clone(model)
    assert copied.steps[0][1] is not model.steps[0][1]
    assert copied.get_params()["a__with_std"] is False
    X, y = MADE_UP.public()
    copied.fit(X, y, private=Private(MADE_UP.rows()))
    with pytest.raises(ValueError, match="nonsense"):
        model.set_params(nonsense=1)
    model.set_params(steps=[("c", PCA(1))])
    assert list(model.get_params())[-1].startswith("c__") or "c" in model.get_params()


@pytest.mark.parametrize("steps", [["passthrough"], ["passthrough", StandardScaler()], [None]])
def test_columns_are_known_after_steps_that_do_nothing(steps):
    rows = np.random.default_rng(0).normal(size=(30, 3))
    regressor = DiscrepancyRegressor(epsilon=1.0, delta=1e-6)
    named = [(f"step {number}", step) for number, step in enumerate(steps)]
    model = AdaptationPipeline(named, regressor)
    assert not hasattr(model, "n_features_in_")
    assert model.fit(rows, rows[:, 0]).n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")


def test_column_names_are_known_after_a_step_that_does_nothing():
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["a", "b"])
    regressor = DiscrepancyRegressor(epsilon=1.0, delta=1e-6)
    steps = [("nothing", "passthrough"), ("scale", StandardScaler())]
    model = AdaptationPipeline(steps, regressor).fit(rows, rows["a"])
    assert list(model.feature_names_in_) == ["a", "b"]


@pytest.mark.parametrize(
    "steps",
    [
        [],
        None,
        StandardScaler(),
        [StandardScaler()],
        {"a": StandardScaler()},
        [("a", StandardScaler()), ("a", StandardScaler())],
        [("estimator", StandardScaler())],
        "scale",
    ],
)
def test_bad_steps_are_named(steps):
    X, y = MADE_UP.public()
    with pytest.raises(ValueError, match=r"\bsteps\b"):
        AdaptationPipeline(steps, regressor()).fit(X, y)


def test_a_model_is_no_transformer():
    X, y = MADE_UP.public()
    with pytest.raises(TypeError, match=r"steps.*'line'.*LinearRegression"):
        AdaptationPipeline([("line", LinearRegression())], regressor()).fit(X, y)


def test_estimator_must_take_a_private_sample():
    X, y = MADE_UP.public()
    with pytest.raises(TypeError, match=r"\bestimator\b.*LinearRegression"):
        AdaptationPipeline([("scale", StandardScaler())], LinearRegression()).fit(X, y)


def test_methods_are_those_of_the_estimator():
    model = AdaptationPipeline([("scale", StandardScaler())], regressor())
    assert hasattr(model, "predict")
    assert not hasattr(model, "predict_proba")


def test_whatever_is_asked_of_an_unfitted_pipeline_is_refused():
    classifier = ReweightingClassifier(epsilon=1.0, delta=1e-6)
    model = AdaptationPipeline([("scale", StandardScaler())], classifier)
    X, y = MADE_UP.public()
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(model, method)(X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.score(X, y)
    for attribute in ("classes_", "guarantee_", "n_features_in_", "feature_names_in_"):
        assert not hasattr(model, attribute)


def test_one_charge_is_shared_with_the_sample_itself():
    X, y = public()
    private = Private(table(300, seed=1))
    model = pipeline().fit(X, y, private=private)
    assert private.spent(1e-6).events == model.guarantee_.events
