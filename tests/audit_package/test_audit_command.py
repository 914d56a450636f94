"""``dpadapt audit``, its file, its picture, and its section in a report."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpadapt.audit import AuditResult, draw_audit
from dpadapt.audit.settings import settings_digest
from dpadapt.cli import app
from dpadapt.cli.attack import Target, _pairs
from dpadapt.discrepancy import DiscrepancyRegressor, Moments
from dpadapt.modelfolder import save_model
from dpadapt.modelfolder.record import read_record
from dpadapt.privacy import Private
from dpadapt.privacy.statistics import SecondMoment
from dpadapt.report import ReportContext, write_report
from dpadapt.reweighting import ReweightingRegressor

FACTS = (1.0, 0.4, 1e-6, 0.95, "400 runs", 250, 400, 12, 12, 0.98, "", "public rows")
RESULT = AuditResult("DiscrepancyRegressor", *FACTS)
UNLABELLED = ("--estimator", "DiscrepancyRegressor")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(60, 2)), columns=["age", "hours"])
    rows["wage"] = rows["age"] + rng.normal(size=60)
    rows.to_csv(tmp_path / "public.csv", index=False)
    return tmp_path


def run(folder, *extra):
    line = ["audit", "--public", str(folder / "public.csv"), "--label", "wage", "--delta", "1e-6"]
    out = ["--epsilon", "1", "--runs", "10", "--out", str(folder / "audit")]
    return CliRunner().invoke(app, [*line, *out, *extra])


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [None, "DiscrepancyRegressor", "ReweightingRegressor"])
def test_a_sound_fit_is_not_refuted(table, estimator):
    done = run(table, *(() if estimator is None else ("--estimator", estimator)))
    assert done.exit_code == 0, done.output
    assert f"attacked   {estimator or 'AutoRegressor'} at" in done.output
    assert "Nothing speaks against the guarantee" in done.output
    result = AuditResult.load(table / "audit" / "audit.json")
    assert result.holds
    assert result.claimed == pytest.approx(1)
    assert 0.5 < result.largest <= 1
    assert (table / "audit" / "audit.png").stat().st_size > 1000


def test_a_sensitivity_that_is_too_small_is_refuted(table, monkeypatch):
    whole = SecondMoment.sensitivity
    monkeypatch.setattr(SecondMoment, "sensitivity", lambda self, n: whole(self, n) / 3)
    done = run(table, *UNLABELLED)
    assert done.exit_code == 1
    assert "REFUTED" in done.output
    assert AuditResult.load(table / "audit" / "audit.json").largest > 1


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [None, "ReweightingClassifier"])
def test_a_sound_fit_of_classes_is_not_refuted(table, estimator):
    rows = pd.read_csv(table / "public.csv")
    rows.assign(wage=np.where(rows["wage"] > 0, "high", "low")).to_csv(
        table / "public.csv", index=False
    )
    done = run(table, *(() if estimator is None else ("--estimator", estimator)))
    assert done.exit_code == 0, done.output
    assert AuditResult.load(table / "audit" / "audit.json").releases > 0


def test_the_fit_of_a_saved_model_is_attacked(table):
    rows = pd.read_csv(table / "public.csv")
    model = DiscrepancyRegressor(epsilon=2.0, delta=1e-6, noise="seeded", random_state=1)
    save_model(model.fit(rows[["hours"]], rows["wage"]), table / "model")
    line = ["audit", "--public", str(table / "public.csv"), "--label", "wage", "--runs", "10"]
    line += ["--model", str(table / "model"), "--out", str(table / "audit")]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    result = AuditResult.load(table / "audit" / "audit.json")
    assert (result.estimator, result.claimed) == ("DiscrepancyRegressor", pytest.approx(2))
    assert result.model == read_record(table / "model")[2]
    assert result.settings == settings_digest(model, "replace-one")
    refused = CliRunner().invoke(app, [*line, "--epsilon", "1", "--delta", "1e-6"])
    assert refused.exit_code != 0


def test_labels_are_changed_with_the_rows(table):
    rows = pd.read_csv(table / "public.csv")
    estimator = ReweightingRegressor(epsilon=1.0, delta=1e-6)
    target = Target(estimator, rows[["age", "hours"]], rows["wage"].to_numpy())
    pairs = list(_pairs(target.played, np.random.default_rng(0), None))
    assert len(target.played) == 30
    assert any(
        one["label"].iloc[i] == -other["label"].iloc[i] == 1e6
        for one, other in pairs
        for i in range(30)
    )
    for one, other in pairs:
        changed = (one.astype(str) != other.astype(str)).any(axis=1)
        assert changed.sum() <= 1  # neighbours


def test_what_is_missing_or_wrong_is_said(table):
    assert "--library" in CliRunner().invoke(app, ["audit"]).output
    done = run(table, "--label", "height")
    assert done.exit_code == 1
    assert "height" in done.output
    (table / "short.csv").write_text("age,wage\n1,2\n3,4\n")
    done = run(table, "--public", str(table / "short.csv"))
    assert "an audit needs 20" in " ".join(done.output.split())


def test_help_has_examples():
    text = CliRunner().invoke(app, ["audit", "--help"]).output
    assert "dpadapt audit --library" in text


def test_file_is_read_back_and_damage_is_refused(tmp_path):
    file = tmp_path / "audit.json"
    RESULT.save(file)
    assert AuditResult.load(file) == RESULT
    data = json.loads(file.read_text())
    broken = [
        "",
        "[]",
        "[" * 5000,
        json.dumps({**data, "format": "other"}),
        json.dumps({**data, "extra": 1}),
        json.dumps({**data, "found": "0.4"}),
        json.dumps({**data, "found": None}),
        json.dumps({**data, "claimed": -1}),
        json.dumps({**data, "right": 1.5}),
        json.dumps({**data, "holds": True}),
        file.read_text().replace("0.98", "NaN"),
    ]
    for text in broken:
        file.write_text(text)
        with pytest.raises(ValueError, match="is no audit"):
            AuditResult.load(file)
    with pytest.raises(ValueError, match="is no audit"):
        AuditResult.load(tmp_path / "none.json")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    return DiscrepancyRegressor(epsilon=1.0, delta=1e-6, solver=Moments(max_remaining=1.0)).fit(
        X, X[:, 0], private=Private(X)
    )


def test_report_has_a_section(model, tmp_path):
    plain = write_report(model, tmp_path / "plain.html").read_text()
    assert "Adversarial test" not in plain
    settings = settings_digest(model, "replace-one")
    audited = ReportContext(audit=replace(RESULT, settings=settings))
    text = write_report(model, tmp_path / "audited.html", context=audited).read_text()
    assert "Adversarial test" in text
    assert "250 of 400 guesses right" in text
    facts = (1.0, 3.0, *FACTS[2:10], "<b>x</b>", "rows", "", settings)
    refuted = AuditResult("DiscrepancyRegressor", *facts)
    text = write_report(
        model, tmp_path / "refuted.html", context=ReportContext(audit=refuted)
    ).read_text()
    assert "THE GUARANTEE IS REFUTED" in text
    assert "<b>x</b>" not in text


def test_audit_of_another_model_is_refused(model, tmp_path):
    others = [
        AuditResult("AdaMixClassifier", *FACTS),
        AuditResult("DiscrepancyRegressor", 2.0, *FACTS[1:]),
        AuditResult("DiscrepancyRegressor", 1.0, 0.4, 1e-5, *FACTS[3:]),
    ]
    for other in others:
        with pytest.raises(ValueError, match=r"audit: it is of .* not of this model"):
            write_report(model, tmp_path / "x.html", context=ReportContext(audit=other))


def test_picture_marks_what_is_broken():
    sound, broken = draw_audit(RESULT), draw_audit(AuditResult("x", 1.0, 3.0, *FACTS[2:]))
    colours = [each.axes[0].patches[0].get_facecolor() for each in (sound, broken)]
    assert colours[0] != colours[1]
