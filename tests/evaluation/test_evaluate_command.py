"""``dpadapt evaluate``: from a model folder and a private file to numbers that can be shown."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
import typer

from command import run
from dpadapt import AutoClassifier, AutoRegressor, PrivacyError, Private
from dpadapt.cli.evaluate import say_evaluation
from dpadapt.cli.screens import plain_errors
from dpadapt.evaluation import Evaluation, Interval, Measured
from dpadapt.evaluation.measures import MEASURES
from dpadapt.modelfolder import save_model
from dpadapt.privacy import Guarantee, Ledger

SEED = ("--noise", "seeded", "--random-state", "0")
BUDGET = ("--epsilon", "0.5", "--delta", "1e-6")


def people(n, seed):
    rng = np.random.default_rng([n, seed])
    table = pd.DataFrame({"age": rng.integers(20, 70, n), "town": rng.choice(["A", "B"], n)})
    wage = table["age"] / 10 + (table["town"] == "A") + rng.normal(size=n)
    return table.assign(wage=wage, rich=np.where(wage > 5, "yes", "no"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    public, private = people(300, 0), people(2000, 1)
    X, T = (each[["age", "town"]] for each in (public, private))
    budget = {"epsilon": 1.0, "delta": 1e-6, "experts": ["linear"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
        classes = AutoClassifier(**budget)
        classes.fit(X, public["rich"], private=Private(T, private["rich"]))
        save_model(classes, folder / "classes")
        save_model(AutoRegressor(**budget).fit(X, public["wage"]), folder / "numbers")
    test = people(3000, 2)
    test.to_csv(folder / "test.csv", index=False)
    test.to_parquet(folder / "test.parquet")
    public.to_csv(folder / "public.csv", index=False)
    return folder


@pytest.fixture
def here(files, monkeypatch):
    monkeypatch.chdir(files)
    return files


def evaluated(*more, model="classes", private="test.parquet", label="rich", code=0):
    files = ("--model", model, "--private", private, "--label", label)
    return run("evaluate", *files, *BUDGET, *more, code=code)


def test_a_classifier(here, tmp_path):
    out = tmp_path / "evaluation.json"
    text = evaluated("--out", out, *SEED)
    for words in (
        "On 3,000 private rows",
        "public only",
        "accuracy",
        "recall of yes",
        "no verdict",
    ):
        assert words in text
    assert "epsilon = 0.5" in text
    assert "do not release these numbers" in text
    found = Evaluation.from_dict(json.loads(out.read_text()))
    assert found["accuracy"].model.value > 0.7
    assert found.guarantee.noise == "seeded"


def test_a_threshold_finds_more_of_a_class(here, tmp_path):
    found = {}
    for name, more in (("usual", ()), ("rule", ("--threshold", "yes=0.2"))):
        text = evaluated("--metric", "recall", "--out", tmp_path / name, *more, *SEED)
        assert ("predicting yes from 0.2 on" in " ".join(text.split())) == bool(more)
        found[name] = Evaluation.from_dict(json.loads((tmp_path / name).read_text()))
    assert found["rule"]["recall of yes"].model.low > found["usual"]["recall of yes"].model.high
    assert found["rule"].guarantee.epsilon == pytest.approx(found["usual"].guarantee.epsilon)
    assert "'maybe' is no class" in evaluated("--threshold", "maybe=0.1", code=2)
    none = evaluated("--threshold", "yes=0.1", model="numbers", label="wage", code=1)
    assert "has no probabilities" in none


def test_csv_and_parquet_and_the_types_of_a_public_file_give_the_same(here, tmp_path):
    values = []
    for i, more in enumerate(
        (("test.parquet",), ("test.csv",), ("test.csv", "--public", "public.csv"))
    ):
        out = tmp_path / f"{i}.json"
        evaluated("--metric", "accuracy", "--out", out, *SEED, *more[1:], private=more[0])
        values.append(json.loads(out.read_text())["measures"]["accuracy"])
    assert values[0] == values[1]
    assert values[0]["model"] == values[2]["model"]
    assert values[2]["limit"] < values[0]["limit"], "public rows say how far models are apart"


def test_numbers_and_a_baseline(here):
    more = ("--label-range", "0", "12", "--largest-error", "4", "--baseline", "numbers")
    text = evaluated(*more, *SEED, model="numbers", label="wage")
    assert "mean absolute" in text
    assert "baseline" in text
    assert "an error above 4 counts as that" in text


def test_the_ledger_is_charged_and_refuses(here, tmp_path):
    ledger = tmp_path / "budget.db"
    named = ("--ledger", ledger, "--dataset", "people")
    run("ledger", "create", *named, "--epsilon", "0.6", "--delta", "1e-6")
    assert "people, at delta 1e-06: spent 0.5 of 0.6, left 0.3086" in evaluated(*named)
    assert "evaluation" in run("ledger", "show", *named)
    assert "would be passed" in evaluated(*named, code=3)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--metric", "fun"), "'fun' is none of"),
        (("--metric", "mse"), "for models that predict numbers"),
        (("--out", "nowhere/e.json"), "there is no folder"),
        (("--public", "nothing.csv"), "there is no file"),
        (("--confidence", "2"), "confidence must lie"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(here, more, words):
    assert words in evaluated(*more, code=1)


def test_files_that_lack_something(here):
    assert "no column 'wealth' for the label" in evaluated(label="wealth", code=1)
    assert "no column 'wealth'" in evaluated(label="wealth", private="test.csv", code=1)
    assert "there is no file" in evaluated(private="other.csv", code=1)
    run("evaluate", "--model", "classes", *BUDGET, code=2)
    evaluated("--noise", "seeded", code=2)
    evaluated("--ledger", "budget.db", code=2)
    evaluated("--out", "classes/e.json", code=2)


def test_the_limit_is_said_before_anything_is_spent(here, tmp_path, monkeypatch):
    named = ("--ledger", tmp_path / "budget.db", "--dataset", "people")
    run("ledger", "create", *named, "--epsilon", "0.6", "--delta", "1e-6")
    text = evaluated("--outlook", *named)
    assert "With 3,000 private rows at epsilon 0.5" in text
    assert "can be seen from here on: accuracy 0.0" in text
    assert "Below that there is no verdict" in text
    assert Ledger(tmp_path / "budget.db").charges("people") == []
    monkeypatch.setattr("dpadapt.privacy.Private.open", None)  # nothing can be spent
    assert text == evaluated("--outlook")
    text = evaluated("--public", "public.csv", "--outlook", private="test.csv")
    assert "accuracy" in text


def test_measures_are_chosen_by_name(here, tmp_path):
    out = tmp_path / "recall.json"
    evaluated("--metric", "recall", "--metric", "precision", "--out", out, *SEED)
    found = Evaluation.from_dict(json.loads(out.read_text()))
    names = [f"{name} of {each}" for name in ("recall", "precision") for each in ("no", "yes")]
    assert list(found.measures) == names
    assert len(found.guarantee.events) == 1
    assert [name for name, _ in found.classes] == ["no", "yes"]


def test_the_help_has_examples():
    assert "dpadapt evaluate --model model/" in run("evaluate", "--help")


def test_files_in_another_hand_are_read_as_they_are_written(here, tmp_path):
    found, test = [], people(3000, 2)
    written = {"index": False, "sep": ";", "decimal": ",", "encoding": "cp1252"}
    test.assign(age=test["age"] + 0.5).to_csv(tmp_path / "plain.csv", index=False)
    test.assign(age=test["age"] + 0.5).to_csv(tmp_path / "other.csv", **written)
    public = people(300, 0)
    public.assign(age=public["age"] + 0.5).to_csv(tmp_path / "public.csv", **written)
    odd = tmp_path / "other.csv"
    for i, (file, more) in enumerate(
        (
            (tmp_path / "plain.csv", ()),
            (odd, ("--public", tmp_path / "public.csv")),
            (odd, ("--decimal", ",")),
            (odd, ("--sep", ";", "--decimal", ",", "--encoding", "latin-1")),
        )
    ):
        out = tmp_path / f"{i}.json"
        evaluated("--metric", "log_loss", "--out", out, *SEED, *more, private=file)
        found.append(json.loads(out.read_text())["measures"]["log_loss"])
    assert found[0] == found[2] == found[3]
    assert found[0]["model"]["value"] == pytest.approx(found[1]["model"]["value"], abs=0.01)
    assert found[1]["limit"] < 0.6 * found[0]["limit"], "public rows say how far models are apart"
    assert "has the separator semicolon, not comma" in evaluated(private=odd, code=1)
    assert "--sep must be one character" in evaluated("--sep", "ab", code=2)


@pytest.mark.parametrize("file", ["bare.csv", "bare.parquet"])
def test_a_file_without_labels_or_columns_is_told_plainly(here, tmp_path, file):
    bare = people(50, 2).drop(columns="rich")
    named = ("--ledger", tmp_path / "b.db", "--dataset", "people")
    run("ledger", "create", *named, "--epsilon", "1", "--delta", "1e-6")
    for table, words in (
        (bare, "has no column 'rich' for the label"),
        (bare.drop(columns="town").assign(rich="no"), "lacks the column(s) town of the model"),
    ):
        write = table.to_csv if file.endswith("csv") else table.to_parquet
        write(tmp_path / file, index=False)
        assert words in evaluated(*named, private=tmp_path / file, code=1)
    assert Ledger(tmp_path / "b.db").charges("people") == []


def test_people_with_several_rows(here, tmp_path):
    test = people(3000, 2).assign(who=np.arange(3000) // 2)
    for name in ("u.csv", "u.parquet"):
        (test.to_csv if name == "u.csv" else test.to_parquet)(tmp_path / name, index=False)
        text = evaluated("--unit", "who", "--max-rows", 2, *SEED, private=tmp_path / name)
        assert "On 1,500" in text
        assert "replace-unit" in text
    assert "belong together" in evaluated("--unit", "who", code=2)
    assert "no column 'nope'" in evaluated("--unit", "nope", "--max-rows", 2, code=1)


def test_a_charge_is_told_whatever_fails(here, tmp_path, monkeypatch):
    named = ("--ledger", tmp_path / "budget.db", "--dataset", "people")
    run("ledger", "create", *named, "--epsilon", "0.6", "--delta", "1e-6")

    def fails(*given, **named):
        raise PrivacyError("after the charge")

    with monkeypatch.context() as patch:
        patch.setattr("dpadapt.privacy.Session.release", fails)
        text = evaluated(*named, code=1)
    assert "The ledger was charged for people" in text
    text = evaluated(*named, code=3)
    assert "would be passed" in text
    assert "Nothing was charged for people" in text


def test_a_title_that_is_longer_than_a_line_goes_on_below(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    side = Interval(0.5, 0.4, 0.6)
    rule = "positive from 0.1 on and invalid from 0.05 on"
    rows = {"accuracy": Measured("accuracy", side, side, side, True, 0.1, 1.0)}
    found = Evaluation(rows, (), 2641, 0.95, Guarantee(), (), "public only", rule=rule)
    say_evaluation(found)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    told = f"On 2,641 private rows, predicting {rule} (95 % intervals; noise included)"
    assert told in " ".join(text.split())


def test_an_error_is_broken_between_words_on_a_screen_alone(monkeypatch, capsys):
    """A log or a pipe has it on one line, so that it can be searched."""
    monkeypatch.setenv("COLUMNS", "40")
    words = "the public file has no rows, and nothing can be learned from it."
    for screen in (False, True):
        monkeypatch.setenv("TTY_COMPATIBLE", "01"[screen])
        monkeypatch.setenv("NO_COLOR", "1")
        with pytest.raises(typer.Exit), plain_errors():
            raise ValueError(words)
        lines = capsys.readouterr().err.splitlines()
        assert (len(lines) > 1) == screen
        told = re.sub(r"\x1b\[[\d;]*m", "", " ".join(line.strip() for line in lines))
        assert " ".join(told.split()) == f"Error: {words}"


def test_a_screen_of_80_columns_breaks_no_word(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    side = Interval(-0.1234, -0.1631, -0.0812)
    rows = {
        name: Measured(MEASURES[name].title, side, side, side, False, 0.0812)
        for name in ("accuracy", "mse", "calibration")
    }
    bins = ((0.0, 0.5, 0.0, math.nan), (0.5, 1.0, 0.9, 0.01))
    say_evaluation(Evaluation(rows, bins, 960, 0.95, Guarantee(), (), "public only"))
    text = capsys.readouterr().out
    for words in (
        "calibration error",
        "mean squared error",
        "model: better",
        "seen from 0.081",
        "-0.163 .. -0.081",
    ):
        assert words in text
    assert "too few" in text
    assert "0.000" not in text
    say_evaluation(Evaluation(rows, bins[:1], 960, 0.95, Guarantee(), (), ""))
    assert "Reliability" not in capsys.readouterr().out
