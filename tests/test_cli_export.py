"""``dpadapt export``: other programs compute the same from the file."""

import datetime as dt
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command import run
from dpadapt import AdaptationPipeline, AutoRegressor, Private, save_model
from dpadapt.baselines import PublicOnlyRegressor
from dpadapt.cli.onnx_files import onnx_bytes
from dpadapt.cli.programs import plain_model
from dpadapt.features import table_features
from dpadapt.kernels import KernelRegressor
from dpadapt.mixing import AdaMixClassifier
from dpadapt.reweighting import ReweightingClassifier, ReweightingRegressor

rng = np.random.default_rng(0)


def people(n, classes=2):
    size = rng.normal(size=n)
    days = pd.Timestamp(2000, 1, 1) + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, size),
            "member": rng.random(n) < 0.5,
            "town": rng.choice(["A", "B", "C", "D"], n, p=[0.6, 0.39, 0.005, 0.005]),
            "born": days.strftime("%d.%m.%Y"),
        }
    )
    return table, size + (table["town"] == "A") + rng.normal(0, 0.1, n)


def labels(y, classes):
    return np.array(["no", "yes", "perhaps"])[np.digitize(y, [0.3, 1.2][: classes - 1])]


def fitted(classes):
    (X, y), (T, t) = people(400), people(900)
    steps = [("features", table_features(X, 1))]
    if not classes:
        model = ReweightingRegressor(epsilon=2.0, delta=1e-6)
    else:
        model = ReweightingClassifier(epsilon=2.0, delta=1e-6)
        y, t = labels(y, classes), labels(t, classes)
    return AdaptationPipeline(steps, model).fit(X, y, private=Private(T, t))


def feature(told, row):
    """One feature of a row, by what the file says alone."""
    cell = row[told["column"]]
    if told["kind"] == "level":
        return float(cell == told["level"])
    if told["kind"] == "other levels":
        return float(cell not in told["others"])
    if told["kind"].startswith("date"):
        when = dt.datetime.strptime(cell, told["written"])
        parts = {
            "days": (when - dt.datetime(1970, 1, 1)).days,
            "month": when.month,
            "weekday": when.weekday(),
        }
        return float(parts[told["kind"].removeprefix("date: ")])
    return float(told["if_missing"] if cell != cell else cell)


def features_of(data, rows):
    listed = {}
    for each in data["features"]:
        if each["kind"] == "level":
            listed.setdefault(each["column"], []).append(each["level"])
    told = [each | {"others": listed.get(each["column"], [])} for each in data["features"]]
    return np.array([[feature(each, row) for each in told] for row in rows.to_dict("records")])


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_the_file_says_all(classes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    model = fitted(classes)
    save_model(model, "model")
    assert "coefficients" in run("export", "--model", "model", "--out", "m.json")
    data = json.loads(Path("m.json").read_text())
    rows, _ = people(50)
    matrix = features_of(data, rows)
    scores = matrix @ np.array(data["coefficients"]).T + data["intercepts"]
    if classes:
        found = np.array(data["classes"])[scores.argmax(axis=1)]
        np.testing.assert_array_equal(found, model.predict(rows))
    else:
        np.testing.assert_allclose(scores[:, 0], model.predict(rows))
    assert data["guarantee"]["epsilon"] == model.guarantee_.epsilon
    assert "the JSON file says" in run("export", "--model", "model", "--out", "m.onnx")
    given, outputs = evaluate(Path("m.onnx").read_bytes(), matrix)
    assert [each["name"] for each in given] == [each["name"] for each in data["features"]]
    if classes:
        np.testing.assert_allclose(outputs["probabilities"], model.predict_proba(rows), atol=1e-4)
        assert np.mean(outputs["prediction"] == model.predict(rows)) > 0.97
    else:
        np.testing.assert_allclose(outputs["scores"][:, 0], model.predict(rows), atol=1e-2)


def fields(content):
    """Fields of a message: (number, value) each."""
    found, place = [], 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = content[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while place < len(content):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
        else:
            assert key & 7 == 2
            size = varint()
            found.append((key >> 3, content[place : place + size]))
            place += size
    return found


def only(message, number):
    return [value for field, value in message if field == number]


def evaluate(content, matrix):
    """Run the graph by its own words: what a runtime would do."""
    model = fields(content)
    notes = {only(fields(n), 1)[0].decode(): only(fields(n), 2)[0] for n in only(model, 14)}
    graph = fields(only(model, 7)[0])
    values = {"features": matrix.astype(np.float32)}
    for tensor in map(fields, only(graph, 5)):
        shape, kind = only(tensor, 1), only(tensor, 2)[0]
        if kind == 8:
            array = np.array([each.decode() for each in only(tensor, 6)])
        else:
            raw = only(tensor, 9)[0]
            array = np.frombuffer(raw, {1: "<f4", 7: "<i8"}[kind]).reshape(shape)
        values[only(tensor, 8)[0].decode()] = array
    for node in map(fields, only(graph, 1)):
        inputs = [values[name.decode()] for name in only(node, 1)]
        kind, out = only(node, 4)[0].decode(), only(node, 2)[0].decode()
        values[out] = {
            "MatMul": lambda a, b: a @ b,
            "Add": lambda a, b: a + b,
            "Softmax": lambda a: np.exp(a) / np.exp(a).sum(axis=1, keepdims=True),
            "ArgMax": lambda a: a.argmax(axis=1),
            "Gather": lambda a, places: a[places],
        }[kind](*inputs)
    names = [only(fields(each), 1)[0].decode() for each in only(graph, 12)]
    return json.loads(notes["features"]), {name: values[name] for name in names}


def test_a_runtime_of_onnx_agrees(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    for classes in (0, 2, 3):
        model = fitted(classes)
        loaded = onnx.load_from_string(onnx_bytes(plain_model(model)))
        onnx.checker.check_model(loaded, full_check=True)
        rows, _ = people(40)
        matrix = model.transformer_.transform(rows).astype(np.float32)
        found = ReferenceEvaluator(loaded).run(None, {"features": matrix})
        if classes:
            np.testing.assert_allclose(found[1], model.predict_proba(rows), atol=1e-4)
        else:
            np.testing.assert_allclose(found[0][:, 0], model.predict(rows), atol=1e-2)


def test_numbers_as_classes_and_plain_columns():
    X = rng.normal(size=(80, 2))
    model = ReweightingClassifier(epsilon=1.0, delta=1e-6).fit(X, (X[:, 0] > 0).astype(int))
    plain = plain_model(model)
    assert [each["name"] for each in plain.features] == ["x0", "x1"]
    _, found = evaluate(onnx_bytes(plain), X)
    np.testing.assert_array_equal(found["prediction"], model.predict(X))
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = plain_model(PublicOnlyRegressor().fit(frame, X[:, 0]))
    assert [each["column"] for each in named.features] == ["a", "b"]


def test_what_is_not_linear_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    X, y = people(100)
    trees = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(X, y)
    save_model(trees, "auto")
    assert "coefficients of linear models" in run(
        "export", "--model", "auto", "--out", "m.json", code=1
    )
    assert "must end in .py, .onnx or .json" in run(
        "export", "--model", "auto", "--out", "m.txt", code=2
    )
    assert "sealed" in run("export", "--model", "auto", "--out", "auto/m.json", code=2)
    assert "no model folder" in run("export", "--model", "nope", "--out", "m.json", code=1)
    squares = AdaptationPipeline([("features", table_features(X, 2))], PublicOnlyRegressor())
    with pytest.raises(ValueError, match="--degree 1"):
        plain_model(squares.fit(X, y))
    with pytest.raises(ValueError, match="neither linear nor"):
        plain_model(
            KernelRegressor(epsilon=1.0, delta=1e-6).fit(
                rng.normal(size=(30, 2)), [1.0, 2.0, 3.0] * 10
            )
        )
    Z = rng.normal(size=(60, 3)) * 5
    unit = AdaMixClassifier(epsilon=1.0, delta=1e-6).fit(Z, (Z[:, 0] > 0).astype(int))
    with pytest.raises(ValueError, match="changes rows"):
        plain_model(unit)
