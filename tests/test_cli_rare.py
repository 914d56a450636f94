"""Rare classes on the command line: told, weighed, and found by a threshold after the fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command import run
from dpadapt import load_model
from dpadapt.cli.evaluate import _IN_PYTHON, _print_table
from dpadapt.cli.options import numbers_by_class
from dpadapt.evaluation import private_error

BUDGET = ("--epsilon", 1, "--delta", "1e-6", "--noise", "seeded", "--random-state", 1)


def people(n, seed):
    rng = np.random.default_rng([n, seed])
    ill = rng.random(n) < 0.04
    fever = rng.normal(size=n) + 1.2 * ill
    return pd.DataFrame(
        {"fever": fever, "age": rng.normal(size=n), "y": np.where(ill, "is ill", "well")}
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rare")
    for seed, (name, n) in enumerate({"public": 1200, "private": 1500, "new": 800}.items()):
        people(n, seed).to_csv(folder / f"{name}.csv", index=False)
    said = run(*fit(folder), "--out", folder / "model")
    return folder, said


def fit(folder, *more):
    both = ("--public", folder / "public.csv", "--private", folder / "private.csv")
    return ("fit", *both, "--label", "y", *BUDGET, "--set", "experts=linear", *more)


def predicted(folder, *more):
    out = folder / "out.csv"
    run("predict", "--model", folder / "model", "--input", folder / "new.csv", "--out", out, *more)
    return pd.read_csv(out)["prediction"]


def test_fit_tells_of_a_rare_class_and_what_each_option_costs(files):
    folder, said = files
    count = (pd.read_csv(folder / "public.csv")["y"] == "is ill").sum()
    assert "Class 'is ill' is" in said
    assert f"{count} of 1,200 public rows are of it" in said
    assert "--threshold 'is ill=0.1'" in said
    assert "--class-weight balanced" in said
    assert "it costs nothing, and needs no new fit" in said
    assert "only an evaluation tells: dpadapt evaluate --threshold, or one of a model" in said
    line = load_model(folder / "model").class_errors_.lines("is ill")[1]
    assert f"{line.found} of {count} {line.alarms}" in said


def test_predict_finds_them_by_threshold_or_weight_and_no_probability_changes(files):
    folder, _ = files
    model, rows = load_model(folder / "model"), pd.read_csv(folder / "new.csv")
    ill = model.predict_proba(rows)[:, 0]
    assert (predicted(folder) == "is ill").sum() <= 2
    np.testing.assert_array_equal(
        predicted(folder, "--threshold", "is ill=0.05") == "is ill", ill >= 0.05
    )
    fair = predicted(folder, "--class-weight", "balanced")
    assert (fair == "is ill").mean() > 0.1
    given = predicted(folder, "--class-weight", "is ill=3,well=0.5", "--proba")
    np.testing.assert_array_equal(given == "is ill", 3 * ill > 0.5 * (1 - ill))


def test_a_fit_with_weights_predicts_by_them(files):
    folder, _ = files
    out = folder / "fair"
    said = run(*fit(folder, "--class-weight", "balanced"), "--out", out)
    assert "hardly ever" not in said
    fair, rows = load_model(out), pd.read_csv(folder / "new.csv")
    assert (fair.predict(rows) == "is ill").mean() > 0.1
    assert "class_weight" in " ".join(fair.explain_)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--threshold", "is il=0.1"), "'is il' is no class. Did you mean is ill?"),
        (("--threshold", "0.1"), "write it as class=number. The classes are: is ill, well."),
        (("--threshold", "is ill=often"), "'often' is no number"),
        (("--threshold", "is ill=0.1", "--class-weight", "balanced"), "give one"),
    ],
)
def test_options_of_predict_are_refused_with_a_cure(files, more, told):
    folder, _ = files
    given = ("--model", folder / "model", "--input", folder / "new.csv", "--out", folder / "no.csv")
    assert told in run("predict", *given, *more, code=2)


def test_a_probability_that_is_none_is_refused(files):
    folder, _ = files
    given = ("--model", folder / "model", "--input", folder / "new.csv", "--out", folder / "no.csv")
    said = run("predict", *given, "--threshold", "well=7", code=1)
    assert "must be a probability above 0 and at most 1" in said


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--label", "age"), "the label asks for numbers"),
        (("--class-weight", "sick=3"), "'sick' is no class"),
        (("--class-weight", "balancd"), "write balanced, or class=number. Did you mean balanced?"),
        (("--set", "class_weight=balanced"), "are the same; give one"),
    ],
)
def test_weights_of_fit_are_refused_before_anything_is_spent(files, tmp_path, more, told):
    folder, _ = files
    weights = () if "--class-weight" in more else ("--class-weight", "balanced")
    assert told in run(*fit(folder, *weights, *more), "--out", tmp_path / "m", code=2)


def test_an_estimator_without_weights_says_what_to_do(files, tmp_path):
    folder, _ = files
    both = ("--public", folder / "public.csv", "--private", folder / "private.csv")
    given = ("fit", *both, "--label", "y", *BUDGET, "--estimator", "ReweightingClassifier")
    said = run(*given, "--class-weight", "balanced", "--out", tmp_path / "m", code=2)
    assert "not for ReweightingClassifier" in said
    assert "dpadapt predict" in said
    said = run(*given, "--out", tmp_path / "m")
    assert "Class 'is ill' is" in said
    assert "on which it looks better than it is" in said
    again = load_model(tmp_path / "m")
    assert again.estimator_.class_errors_.hardly_predicted == ["is ill"]


def test_names_of_classes_may_have_signs_in_them():
    names = ["a,b", "c=d", "e"]
    assert numbers_by_class("--threshold", ["a,b=0.2", "c=d=0.3,e=0.4"], names) == {
        "a,b": 0.2,
        "c=d": 0.3,
        "e": 0.4,
    }


def test_a_caveat_of_an_evaluation_names_the_option():
    assert _IN_PYTHON in Path(private_error.__file__).read_text(encoding="utf-8")


def test_a_title_wider_than_its_table_is_one_line(capsys):
    title = "How many of each class (noise included)"
    rows = [("class", "people"), ("no", "99 (64 to 133)")]
    _print_table(rows, title)
    assert capsys.readouterr().out.splitlines()[0].strip() == title
