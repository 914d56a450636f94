"""What people do with any scikit-learn model, through a pipeline and from a folder."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

import dpadapt
from command import run
from dpadapt import AdaptationPipeline, AutoRegressor, Private, ReweightingClassifier
from dpadapt.features import DateCells, column_roles, table_features

rng = np.random.default_rng(0)


def people(n):
    table = pd.DataFrame({"age": rng.integers(20, 60, n), "town": rng.choice(["A", "B"], n)})
    return table, np.where(table["age"] + 5 * rng.normal(size=n) > 40, "yes", "no")


@pytest.fixture(scope="module")
def fitted():
    (X, y), (T, t) = people(200), people(500)
    steps = [("features", table_features(X, 1)), ("scale", StandardScaler())]
    model = AdaptationPipeline(steps, ReweightingClassifier(epsilon=1.0, delta=1e-6))
    return model.fit(X, y, private=Private(T, t)), X, y


def test_a_pipeline_is_scored_like_any_classifier(fitted):
    model, X, y = fitted
    assert list(model.classes_) == ["no", "yes"]
    assert get_scorer("roc_auc")(model, X, y) > 0.8
    assert get_scorer("neg_log_loss")(model, X, y) > -0.6
    assert 0.5 < model.score(X, y) <= 1
    assert model.decision_function(X).shape == (200,)
    for scoring in ("roc_auc", "neg_log_loss"):
        found = cross_val_score(model, X, y, scoring=scoring, cv=2)
        assert np.isfinite(found).all(), scoring


def test_features_have_names_after_a_pipeline(fitted, recwarn):
    model, X, _ = fitted
    assert list(model.feature_names_in_) == ["age", "town"]
    assert list(model.estimator_.feature_names_in_) == ["age", "town_A", "town_B"]
    model.predict(X)
    model.predict_proba(X)
    assert not [each for each in recwarn if "feature names" in str(each.message)]


def test_steps_hand_on_frames(fitted):
    model, X, y = fitted
    framed = clone(model).set_output(transform="pandas").fit(X, y)
    assert list(framed.transformer_.transform(X).columns) == ["age", "town_A", "town_B"]
    plain = clone(model).set_output(transform="default").fit(X, y)
    np.testing.assert_allclose(framed.predict_proba(X), plain.predict_proba(X))
    before = model.predict_proba(X)
    np.testing.assert_allclose(model.set_output(transform="pandas").predict_proba(X), before)
    model.set_output(transform="default")


def test_models_are_saved_and_loaded_by_name(fitted, tmp_path):
    model, X, _ = fitted
    folder = dpadapt.save_model(model, tmp_path / "model")
    same = dpadapt.load_model(folder)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert list(same.estimator_.feature_names_in_) == ["age", "town_A", "town_B"]


def test_predictions_with_ids_and_probabilities(fitted, tmp_path, monkeypatch):
    model, X, _ = fitted
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    dpadapt.save_model(model, "model")
    X.assign(person=range(200), visit=1).to_csv("new.csv", index=False, sep=";")
    predict = ("predict", "--model", "model", "--input", "new.csv", "--out", "p.csv")
    assert "--keep" in run(*predict)
    assert "--keep" not in run(*predict, "--keep", "person,visit", "--proba")
    table = pd.read_csv("p.csv")
    columns = ["person", "visit", "prediction", "probability_no", "probability_yes"]
    assert list(table.columns) == columns
    np.testing.assert_allclose(table["probability_no"] + table["probability_yes"], 1)
    np.testing.assert_array_equal(table["prediction"], model.predict(X))
    assert "has no column 'nope'; it has: age" in run(*predict, "--keep", "nope", code=1)
    assert "must end in .csv or .parquet" in run(*predict[:-1], "p.txt", code=1)
    X.assign(prediction=1).to_csv("new.csv", index=False)
    assert "what the predictions are called" in run(*predict, "--keep", "prediction", code=1)
    numbers = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(X, X["age"])
    dpadapt.save_model(numbers, "numbers")
    text = run(predict[0], "--model", "numbers", *predict[3:], "--proba", code=1)
    assert "predicts numbers, which have no probabilities" in text


def frame(n, written):
    days = pd.Timestamp(2000, 1, 1) + pd.to_timedelta(rng.integers(0, 9000, n), unit="D")
    y = (days - pd.Timestamp(2000, 1, 1)).days / 1000 + 0.1 * rng.normal(size=n)
    cells = days if written is None else days.strftime(written)
    return pd.DataFrame({"when": cells, "size": rng.normal(size=n)}), np.asarray(y)


@pytest.mark.parametrize("written", [None, "%Y-%m-%d", "%d.%m.%Y", "%b %d, %Y", "%m/%d/%Y %H:%M"])
def test_dates_go_straight_into_auto(written):
    (X, y), (T, t) = frame(300, written), frame(2000, written)
    T = T.astype(object)
    T.iloc[::7, 0] = "soon"
    T.iloc[1::7, 0] = None
    model = AutoRegressor(epsilon=4.0, delta=1e-6, experts=["linear"])
    model.fit(X, y, private=Private(T, t))
    U, u = frame(200, written)
    assert np.mean((model.predict(U) - u) ** 2) < 0.3 * np.var(u)


def test_what_columns_are():
    n = 100
    table = pd.DataFrame(
        {
            "row": range(n),
            "shuffled_id": rng.permutation(n),
            "income": rng.permutation(n * 1000)[:n],
            "name": [f"N{i}" for i in range(n)],
            "empty": [None] * n,
            "same": 1.0,
            "mostly": [None] * 50 + [3.0] * 50,
            "text": [f"t{i % 60}" for i in range(n)],
            "when": pd.date_range("2020", periods=n),
            "month": [f"0{1 + i % 9}/2020" for i in range(n)],
            "flag": [True, False] * 50,
            "size": rng.normal(size=n),
            "town": ["A", "B"] * 50,
        }
    )
    kinds = {role.name: role.kind for role in column_roles(table)}
    assert kinds == {
        "row": "id",
        "shuffled_id": "id",
        "income": "feature",
        "name": "id",
        "empty": "constant",
        "same": "constant",
        "mostly": "constant",
        "text": "feature",
        "when": "date",
        "month": "date",
        "flag": "feature",
        "size": "feature",
        "town": "feature",
    }
    assert column_roles(pd.DataFrame({"a": [[1], [2]] * 30}))[0].kind == "feature"


def test_one_cell_of_a_date_changes_no_other():
    plain = np.array([["2020-01-31"], ["2021-02-01"], ["2022-03-01"]] * 9, dtype=object)
    dates = DateCells().fit(plain)
    expected = dates.transform(plain)
    odd = ("x" * 10_000, None, 1e308, [1], "9999-99-99", "0001-01-01T00:00+14:00", b"\xff", True)
    for cell in odd:
        changed = plain.copy()
        changed[4, 0] = cell
        found = dates.transform(changed)
        np.testing.assert_array_equal(np.delete(found, 4, 0), np.delete(expected, 4, 0))
        np.testing.assert_array_equal(found[4], dates.transform(changed[[4]])[0])


def test_the_version_needs_nothing_heavy():
    code = (
        "import sys, dpadapt.cli; print('numpy' in sys.modules, 'dpadapt.privacy' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "False"]
