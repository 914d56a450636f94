"""The demo's claims, on one run of each setting."""

import os

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpadapt.cli import app
from dpadapt.cli.demo_experiment import (
    COLUMNS,
    EPSILONS,
    PUBLIC_LINEAR,
    PUBLIC_TREES,
    REFERENCE,
    UNLABELLED,
    both_settings,
    method_name,
    public_people,
    summarise,
    verdict,
)
from dpadapt.datasets import load_wages

APART, ALIKE = (setting.name for setting in both_settings())
PUBLIC = [PUBLIC_LINEAR, PUBLIC_TREES]


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


@pytest.mark.slow
def test_the_screen_tells_both_stories_the_guarantee_and_what_to_do_next(screen, summary):
    text = screen[0]
    for words in (APART, ALIKE, "did not adapt", "No weights turn", "epsilon = 1, delta = 1e-06"):
        assert words in text
    for words in ("dpadapt preview", "dpadapt fit", "would be a leak", "measured privately: 0."):
        assert words in text
    for error in summary["mse"]:
        assert f"{error:.4f}" in text
    assert "nan" not in text


@pytest.mark.slow
def test_the_files(screen):
    folder = screen[1]
    assert {"report.html", "results.csv", "demo.png"} <= set(os.listdir(folder))
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert "Error against baselines" in report
    assert "these errors are not protected" in report
    assert "Private evaluation" in report
    assert "no private value is in this file" not in report
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_every_method_in_both_settings(summary):
    methods = {*PUBLIC, UNLABELLED, REFERENCE, *map(method_name, EPSILONS)}
    assert set(summary.index) == {(s, m) for s in (APART, ALIKE) for m in methods}


@pytest.mark.slow
def test_private_labels_close_most_of_a_gap_that_matters(summary):
    public = min(summary.loc[(APART, name), "mse"] for name in PUBLIC)
    assert summary.loc[(APART, REFERENCE), "mse"] < 0.8 * public
    for epsilon in EPSILONS:
        assert summary.loc[(APART, method_name(epsilon)), "gap"] > 0.5


@pytest.mark.slow
def test_where_there_is_little_to_gain_little_is_lost(summary):
    public = min(summary.loc[(ALIKE, name), "mse"] for name in PUBLIC)
    for epsilon in EPSILONS:
        assert summary.loc[(ALIKE, method_name(epsilon)), "mse"] < 1.03 * public


@pytest.mark.slow
def test_without_labels_it_declines_where_no_weights_can_match(summary):
    assert summary.loc[(APART, UNLABELLED), "adapted"] == 0
    assert summary.loc[(ALIKE, UNLABELLED), "adapted"] == 1


def test_settings_are_disjoint_and_fixed():
    wages = load_wages()
    for first, again in zip(both_settings(), both_settings(), strict=True):
        assert not set(first.public) & set(first.private)
        assert (first.public == again.public).all()
        assert (first.private == again.private).all()
    apart, alike = both_settings()
    assert set(wages["gender"].iloc[apart.public]) == {"male"}
    assert set(wages["gender"].iloc[apart.private]) == {"female"}
    ages = wages["age"].to_numpy()
    assert len(set(ages[alike.private]) - set(ages[alike.public])) < 3


def test_the_public_people_have_labels_of_their_own():
    public = public_people(both_settings()[0])
    assert list(public.X.columns) == COLUMNS
    assert len(public.X) == len(public.y)
    assert np.isfinite(public.y).all()


def table(unlabelled: float) -> pd.DataFrame:
    names = [*PUBLIC, UNLABELLED, method_name(1.0), REFERENCE]
    errors = [0.4, 0.5, 0.38, 0.3, 0.2]
    adapted = [1, 1, unlabelled, 1, 1]
    return pd.DataFrame({"method": names, "mse": errors, "gap": 0.5, "adapted": adapted})


def test_the_verdict_tells_what_happened_without_labels():
    assert "it declined to adapt" in verdict(table(0.0))
    assert "changes by -5.0 %" in verdict(table(1.0))
