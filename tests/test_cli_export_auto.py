"""``dpadapt export`` of Auto: another program predicts what the model does."""

import csv
import dataclasses
import datetime as dt
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from command import run
from dpadapt import AdaptationPipeline, AutoClassifier, AutoRegressor, Private, save_model
from dpadapt.auto.curves import Leaves
from dpadapt.auto.experts import Waves
from dpadapt.cli import auto_programs, scorer, tables
from dpadapt.cli.auto_programs import auto_program
from dpadapt.cli.onnx_files import program_onnx
from dpadapt.cli.programs import scorer_text
from dpadapt.features import cells, table_features
from dpadapt.features import cells as dates
from dpadapt.reweighting import ReweightingRegressor
from test_cli_export import fields, only

BUDGET = {"epsilon": 8.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
NAMES = np.array(["no", "it's '''", "perhaps"])


def people(rows, seed, shift=0.0):
    """Numbers with gaps, a flag, a constant, texts with rare levels and gaps, a date."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=rows) + shift
    days = pd.Timestamp(2000, 1, 1) + pd.to_timedelta(rng.integers(0, 900, rows), unit="D")
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(rows) < 0.1, np.nan, size),
            "age": rng.integers(20, 60, rows),
            "always": np.full(rows, 3.0),
            "member": rng.random(rows) < 0.5,
            "town": rng.choice(
                ["A", "B", "it's", "D", None], rows, p=[0.5, 0.38, 0.006, 0.004, 0.11]
            ),
            "kind": rng.choice(["x", "y"], rows),
            "born": days.strftime("%d.%m.%Y"),
        }
    )
    bent = np.sin(table["age"] / 3) * (size > 0)
    return table, size + (table["town"] == "A") + 2 * bent + rng.normal(0, 0.1, rows)


def classes_of(y, count):
    return NAMES[np.digitize(y, [0.3, 1.2][: count - 1])]


def hostile(rows=300):
    """New rows: gaps, levels that nobody knew, cells of another kind, far away."""
    table, _ = people(rows, 9, shift=2.0)
    table = table.astype(object)
    for column, value in {
        "size": 1e6,
        "age": None,
        "always": -7.0,
        "member": None,
        "town": "nowhere",
        "kind": "z",
        "born": "soon",
    }.items():
        table.loc[table.index[len(column) :: 11], column] = value
    table.loc[3, ["size", "town", "born"]] = ["2.5 ", " A", "2001-03-04"]
    table.loc[4, ["size", "member"]] = ["12 yrs", "false"]
    return table


def regressor(public=400, private=2000, **given):
    (X, y), (T, t) = people(public, 0), people(private, 1, shift=0.5)
    return AutoRegressor(**BUDGET, **given).fit(X, y, private=Private(T, t + 1))


def classifier(count, public=400, private=2000, **given):
    (X, y), (T, t) = people(public, 0), people(private, 1, shift=0.5)
    labels, own = classes_of(y, count), classes_of(t, count)
    return AutoClassifier(**BUDGET, **given).fit(X, labels, private=Private(T, own))


def curved():
    (X, _), (T, _) = people(400, 0), people(1500, 1)
    y, t = (np.nan_to_num(table["size"]) ** 2 for table in (X, T))
    model = AutoRegressor(**BUDGET, experts=["linear", "fourier"])
    return model.fit(X[["size", "kind"]], y, private=Private(T[["size", "kind"]], t + 1))


def dated():
    (X, y), (T, t) = people(300, 0), people(600, 1)
    steps = [("features", table_features(X, 1, ["born"]))]
    return AdaptationPipeline(steps, AutoRegressor(**BUDGET, experts=["linear"])).fit(
        X, y, private=Private(T, t)
    )


def unknown_class():
    (X, y), (T, t) = people(400, 0), people(600, 1)
    model = AutoClassifier(**BUDGET, classes=[*NAMES, "never"], experts=["trees"])
    return model.fit(X, classes_of(y, 3), private=Private(T, classes_of(t, 3)))


MADE = {
    "numbers": regressor,
    "waves": curved,
    "public numbers": lambda: AutoRegressor(epsilon=1.0, delta=1e-6).fit(*people(200, 0)),
    "dates": dated,
    "two classes": lambda: classifier(2),
    "three classes": lambda: classifier(3, class_weight="balanced"),
    "unknown class": unknown_class,
    "few rows": lambda: classifier(3, public=120, private=600),
    "public classes": lambda: AutoClassifier(epsilon=1.0, delta=1e-6).fit(
        people(320, 0)[0], classes_of(people(320, 0)[1], 2)
    ),
    "few public": lambda: AutoClassifier(epsilon=1.0, delta=1e-6).fit(
        people(90, 0)[0], classes_of(people(90, 0)[1], 2)
    ),
}
_models = {}


def made(name):
    if name not in _models:
        _models[name] = MADE[name]()
    return _models[name]


every = pytest.mark.parametrize("name", MADE)


def test_models_have_all_parts():
    assert isinstance(made("numbers").adapted_.features.curves.cells, Leaves)
    assert isinstance(made("waves").adapted_.features.curves.cells, Waves)
    assert isinstance(made("two classes").adapted_.curves.cells, Leaves)
    assert made("two classes").adapted_.move is not None
    assert made("public numbers").adapted_ is None
    assert made("few rows").adapted_.units is not None


def same(model, prediction, shares, rows):
    expected = model.predict(rows)
    if shares is None:
        np.testing.assert_allclose(prediction, expected, rtol=1e-9, atol=1e-9)
    else:
        assert list(prediction) == list(expected)
        np.testing.assert_allclose(shares, model.predict_proba(rows), rtol=0, atol=1e-9)


@every
def test_a_file_of_python_predicts_the_same(name):
    model, rows = made(name), hostile()
    score = {"__name__": "score"}
    exec(compile(scorer_text(auto_program(model)), "score.py", "exec"), score)
    records = rows.to_dict("records")
    shares = score["probabilities"](records) if score["MODEL"]["classes"] else None
    same(model, score["predict"](records), shares, rows)
    assert score["MODEL"]["guarantee"]["epsilon"] == model.guarantee_.epsilon


@every
def test_the_graph_predicts_the_same(name):
    model, rows = made(name), hostile()
    content = program_onnx(auto_program(model))
    found = evaluated(content, inputs(content, rows))
    same(model, found["prediction"], found.get("probabilities"), rows)


def inputs(content, rows):
    """What somebody who reads the notes of the file gives a runtime."""
    notes = {
        only(fields(n), 1)[0].decode(): only(fields(n), 2)[0] for n in only(fields(content), 14)
    }
    given = {}
    for each in json.loads(notes["inputs"]):
        cells_ = rows[each["column"]]
        if each["kind"] == "text":
            given[each["name"]] = np.array([scorer.text_of(c) for c in cells_], dtype=object)
            given[each["name"]][given[each["name"]] == "(missing)"] = ""
        elif "date" in each:
            moments = [scorer.date_of(cell, each["written"]) for cell in cells_]
            part = scorer.DATE_PARTS[each["date"]]
            given[each["name"]] = np.array([math.nan if m is None else part(m) for m in moments])
        else:
            given[each["name"]] = np.array([scorer.number_of(cell) for cell in cells_])
    return {name: values[:, None] for name, values in given.items()}


def attributes(node):
    found = {}
    for each in map(fields, only(node, 5)):
        name, kind = only(each, 1)[0].decode(), only(each, 20)[0]
        own = {2: only(each, 3), 7: only(each, 8), 8: [t.decode() for t in only(each, 9)]}[kind]
        found[name] = own[0] if kind == 2 else own
    return found


def label_encoder(cells_, keys_strings, values_int64s, default_int64):
    known = dict(zip(keys_strings, values_int64s, strict=True))
    return np.array([[known.get(cell, default_int64) for cell in row] for row in cells_])


SHARED = ("Abs", "Add", "Cos", "Div", "Log", "MatMul", "Max", "Min", "Mul", "Sqrt", "Sub")
ONNX = {
    "Cast": lambda given, to: given.astype({11: float}[to]),
    "Concat": lambda *given, axis: np.concatenate(given, axis=axis),
    "Equal": np.equal,
    "Gather": lambda table, places, axis: np.take(table, places, axis=axis),
    "GatherElements": lambda table, places, axis: np.take_along_axis(table, places, axis),
    "Identity": lambda given: given,
    "IsNaN": np.isnan,
    "LabelEncoder": label_encoder,
    "LessOrEqual": np.less_equal,
    "ReduceMax": lambda given, axes, keepdims: given.max(axis=axes[0], keepdims=bool(keepdims)),
    "ReduceSum": lambda given, axes, keepdims: given.sum(axis=axes[0], keepdims=bool(keepdims)),
    "ArgMax": lambda given, axis, keepdims: given.argmax(axis=axis),
    "Softmax": lambda given, axis: scorer.class_shares(given),
    "Where": np.where,
} | {kind: scorer.OPERATORS[kind] for kind in SHARED}


def evaluated(content, given):
    """Run the graph by its own words: what a runtime would do."""
    graph = fields(only(fields(content), 7)[0])
    values = dict(given)
    for tensor in map(fields, only(graph, 5)):
        shape, kind = only(tensor, 1), only(tensor, 2)[0]
        if kind == 8:
            array = np.array([each.decode() for each in only(tensor, 6)])
        else:
            array = np.frombuffer(only(tensor, 9)[0], {7: "<i8", 11: "<f8"}[kind]).reshape(shape)
        values[only(tensor, 8)[0].decode()] = array
    with np.errstate(all="ignore"):
        for node in map(fields, only(graph, 1)):
            names = [name.decode() for name in only(node, 1)]
            kind, out = only(node, 4)[0].decode(), only(node, 2)[0].decode()
            values[out] = ONNX[kind](*(values[each] for each in names), **attributes(node))
    outputs = [only(fields(each), 1)[0].decode() for each in only(graph, 12)]
    return {name: values[name] for name in outputs}


@every
def test_a_runtime_of_onnx_agrees(name):
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    model, rows = made(name), hostile()
    content = program_onnx(auto_program(model))
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    found = dict(zip(names, session.run(None, inputs(content, rows)), strict=True))
    same(model, found["prediction"], found.get("probabilities"), rows)


@pytest.mark.parametrize("name", ["numbers", "three classes"])
def test_the_command_and_the_file_alone(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    save_model(made(name), "model")
    rows = hostile(60).assign(id=range(60))
    rows.loc[5, "town"] = "NA"
    rows.to_csv("rows.csv", index=False)
    proba = [] if name == "numbers" else ["--proba"]
    text = run("export", "--model", "model", "--out", "score.py")
    assert "7 columns" in text
    assert "python score.py rows.csv" in text
    assert "64-bit" in run("export", "--model", "model", "--out", "model.onnx")
    run(
        "predict",
        "--model",
        "model",
        "--input",
        "rows.csv",
        "--out",
        "p.csv",
        "--keep",
        "id",
        *proba,
    )
    code = """
import runpy, sys
for each in ("dpadapt", "sklearn", "scipy", "pandas"):
    sys.modules[each] = None  # may not be imported
runpy.run_path("score.py", run_name="__main__")
"""
    call = [sys.executable, "-I", "-c", code, "rows.csv", "--keep", "id", *proba]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert not done.stderr
    found = list(csv.reader(done.stdout.splitlines()))
    expected = list(csv.reader(Path("p.csv").read_text().splitlines()))
    assert found[0] == expected[0]
    assert len(found) == len(expected) == 61
    for one, other in zip(found[1:], expected[1:], strict=True):
        for cell, wanted in zip(one, other, strict=True):
            assert cell == wanted or float(cell) == pytest.approx(float(wanted), rel=1e-9, abs=1e-9)


def test_linear_models_as_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    (X, y), (T, t) = people(300, 0), people(600, 1)
    steps = [("features", table_features(X, 1))]
    model = AdaptationPipeline(steps, ReweightingRegressor(epsilon=1.0, delta=1e-6))
    save_model(model.fit(X, y, private=Private(T, t)), "model")
    assert "coefficients" in run("export", "--model", "model", "--out", "score.py")
    score = {"__name__": "score"}
    exec(compile(Path("score.py").read_text(), "score.py", "exec"), score)
    rows = hostile()
    np.testing.assert_allclose(score["predict"](rows.to_dict("records")), model.predict(rows))


def test_arrays_have_no_value_for_a_gap():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(X, X[:, 0])
    program = auto_program(model).to_dict()
    rows = [{"x0": each, "x1": other} for each, other in X.tolist()]
    np.testing.assert_allclose(scorer.predict(rows, program), model.predict(X))
    with pytest.raises(ValueError, match="row 2 has no number in column 'x1'"):
        scorer.predict([rows[0], {"x0": 1.0, "x1": None}], program)
    with pytest.raises(ValueError, match="no probabilities"):
        scorer.probabilities(rows, program)


def test_what_cannot_be_written_is_refused_and_nothing_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    X = np.random.default_rng(0).normal(size=(60, 2))
    own = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear", Ridge()]).fit(X, X[:, 0])
    save_model(own, "own", trusted=["sklearn.linear_model._ridge.Ridge"])
    trust = ["--trust", "sklearn.linear_model._ridge.Ridge"]
    for file in ("score.py", "model.onnx"):
        text = run("export", "--model", "own", "--out", file, *trust, code=1)
        assert "a model of your own (Ridge)" in text
    save_model(made("public numbers"), "auto")
    assert "linear models" in run("export", "--model", "auto", "--out", "m.json", code=1)
    assert "must end in .py" in run("export", "--model", "auto", "--out", "m.txt", code=2)
    assert "sealed" in run("export", "--model", "auto", "--out", "auto/score.py", code=2)
    named = pd.DataFrame(X, columns=["prediction", "x"])
    fitted = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(named, X[:, 0])
    save_model(fitted, "named")
    assert "one name for each" in run("export", "--model", "named", "--out", "m.onnx", code=1)
    assert {each.name for each in tmp_path.iterdir()} == {"own", "auto", "named"}
    run("export", "--model", "named", "--out", "score.py")


def test_parts_that_do_not_fit_together_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(X, X[:, 0])
    model.public_model_ = dataclasses.replace(model.public_model_, score_range=7.0)
    save_model(model, "forged")
    assert "is damaged" in run("export", "--model", "forged", "--out", "score.py", code=1)
    assert not Path("score.py").exists()


def test_steps_that_are_wrong_are_noticed(monkeypatch):
    monkeypatch.setattr(auto_programs, "LINEAR_PART", 0.3)
    with pytest.raises(ValueError, match="fault of dpadapt"):
        auto_program(made("waves"))


ODD = [
    None,
    math.nan,
    math.inf,
    "",
    " ",
    "NaN",
    "NA",
    "NaT",
    "None",
    "true",
    " FALSE ",
    True,
    False,
]
ODD += [1, 1.0, "1.0", "01", 2.5, "2.5", "1e3", "1_000", "-0", "x", "it's", pd.NA, pd.NaT, 10**400]
ODD += [
    "31.01.2020",
    "2020-01-31",
    "2020-01-31T10:20",
    "2020-01-31 10:20+02:00",
    20200131,
    20200131.0,
]
ODD += [pd.Timestamp(2020, 1, 31), dt.date(2020, 1, 31), np.datetime64("2020-01-31"), "99.99.2020"]


def test_cells_mean_what_they_do_in_the_library():
    for cell in ODD:
        assert scorer.text_of(cell) == cells._text(cell)
        assert scorer.number_of(cell) == pytest.approx(cells._number(cell), nan_ok=True)
        for how in ("ISO", "%d.%m.%Y", "%Y%m%d"):
            assert scorer.date_of(cell, how) == dates._moment(dates._written(cell), how)
    assert scorer.NOTHING == tables._NOTHING
    assert scorer.MISSING == cells._MISSING
    assert set(scorer.DATE_PARTS) == set(dates._PARTS)


@pytest.mark.parametrize(
    "codes", [["1", "2", ""], ["1.0", "02", ""], ["1", "2.0", "A"], ["NA"], ["true"]]
)
def test_a_column_of_codes_is_read_as_predict_reads_it(tmp_path, monkeypatch, codes):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": draw.normal(size=90), "code": draw.choice(["1", "2", "A", "True"], 90)}
    )
    y = frame["x"] + frame["code"].map({"1": 1.0, "2": -2.0, "A": 0.0, "True": 5.0})
    save_model(AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(frame, y), "model")
    rows = [f"{number},{code}" for number, code in enumerate(codes)]
    Path("rows.csv").write_text("\n".join(["x,code", *rows, ""]))
    run("predict", "--model", "model", "--input", "rows.csv", "--out", "p.csv")
    run("export", "--model", "model", "--out", "score.py")
    score = {"__name__": "score"}
    exec(compile(Path("score.py").read_text(), "score.py", "exec"), score)
    found = score["predict"](score["read"]("rows.csv", ",", ".", "utf-8", score["MODEL"]))
    np.testing.assert_allclose(found, pd.read_csv("p.csv")["prediction"], rtol=1e-9)
    Path("less.csv").write_text("x\n1\n")
    assert score["main"](["less.csv"]) == 1


def test_files_with_other_signs(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    X = np.random.default_rng(0).normal(size=(60, 1))
    frame = pd.DataFrame(X, columns=["x"])
    fitted = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(frame, X[:, 0])
    program = auto_program(fitted).to_dict()
    path.write_text("x;id\n0,5;a\n-1,5e-1;b,c\n", encoding="utf-8")
    assert scorer.main([str(path), "--sep", ";", "--decimal", ",", "--keep", "id"], program) == 0
    found = pd.DataFrame(list(csv.reader(capsys.readouterr().out.splitlines()))[1:])
    assert list(found[0]) == ["a", "b,c"]
    np.testing.assert_allclose(
        found[1].astype(float), fitted.predict(pd.DataFrame({"x": [0.5, -0.15]}))
    )
    assert scorer.main([str(path)], program) == 1
    assert "lacks the column(s) x" in capsys.readouterr().err
    assert scorer.main([str(tmp_path / "no.csv")], program) == 1
    assert "cannot be read" in capsys.readouterr().err
