"""The demo's claims, on one run of each setting."""

import os

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpadapt.cli import app
from dpadapt.datasets import load_wages, wage_features
from dpadapt.demo import (
    EPSILONS,
    PRIVATE_LABELS,
    PUBLIC_ONLY,
    UNPROTECTED,
    example_model,
    method_name,
    settings,
    summarise,
)

WORKS, CANNOT = "an older public panel", "no age in common"


@pytest.fixture(scope="module")
def screen(tmp_path_factory):
    """One real run of the command: what it printed, and its folder."""
    folder = tmp_path_factory.mktemp("here") / "demo"
    result = CliRunner().invoke(app, ["demo", "--runs", "1", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split()), folder


@pytest.fixture(scope="module")
def summary(screen):
    results = pd.read_csv(screen[1] / "results.csv")
    return summarise(results).set_index(["setting", "method"])


def test_the_screen_tells_both_stories_and_the_guarantee(screen, summary):
    text = screen[0]
    for words in (WORKS, CANNOT, "did not adapt", "No weights turn", "epsilon = 1, delta = 1e-06"):
        assert words in text
    for error in summary["mse"]:
        assert f"{error:.4f}" in text


def test_the_files(screen):
    folder = screen[1]
    assert set(os.listdir(folder)) == {"report.html", "results.csv", "demo.png"}
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert "Error against baselines" in report
    assert CANNOT in report
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_every_method_in_both_settings(summary):
    methods = {PUBLIC_ONLY, UNPROTECTED, PRIVATE_LABELS, *map(method_name, EPSILONS)}
    assert set(summary.index) == {(s, m) for s in (WORKS, CANNOT) for m in methods}


def test_adaptation_closes_more_than_half_of_the_gap(summary):
    assert summary.loc[(WORKS, method_name(1.0)), "gap"] > 0.5
    assert summary.loc[(WORKS, method_name(1.0)), "adapted"] == 1


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_where_no_weights_can_match_ours_stays_at_public_only(summary, epsilon):
    ours = summary.loc[(CANNOT, method_name(epsilon))]
    assert ours["adapted"] == 0
    assert ours["mse"] == pytest.approx(summary.loc[(CANNOT, PUBLIC_ONLY), "mse"], rel=0.01)
    assert ours["mse"] <= summary.loc[(CANNOT, UNPROTECTED), "mse"]


def test_plain_discrepancy_minimisation_does_harm_there(summary):
    assert summary.loc[(CANNOT, UNPROTECTED), "mse"] > summary.loc[(CANNOT, PUBLIC_ONLY), "mse"]


def test_no_linear_model_halves_the_error_there(summary):
    """Least squares on the private rows themselves is the best of all linear models on them."""
    wages = load_wages()
    setting = settings(wages["age"])[1]
    people = wages[setting.private]
    X = np.column_stack([wage_features().fit_transform(people), np.ones(len(people))])
    y = np.log(people["earnings"].to_numpy())
    best = np.mean((y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) ** 2)
    assert best > summary.loc[(CANNOT, PUBLIC_ONLY), "mse"] / 2


def test_settings_are_disjoint_and_fixed():
    age = load_wages()["age"].to_numpy()
    first, second = settings(age)
    for setting in (first, second):
        assert not (setting.public & setting.private).any()
    assert set(age[first.public]) == set(age[first.private])
    assert not set(age[second.public]) & set(age[second.private])
    assert (settings(age)[0].public == first.public).all()


def test_example_model_keeps_its_promise():
    model = example_model(epsilon=0.5)
    assert model.estimator_.adapted_
    assert model.guarantee_.epsilon == pytest.approx(0.5, rel=1e-6)
    assert model.guarantee_.epsilon <= 0.5
    assert model.guarantee_.noise == "secure"
