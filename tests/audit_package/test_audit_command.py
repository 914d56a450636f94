"""``dpadapt audit``, its file, its picture, and its section in a report."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpadapt import AutoClassifier
from dpadapt.audit import AuditResult, draw_audit
from dpadapt.audit.result import settings_digest
from dpadapt.cli import app
from dpadapt.cli.attack import AttackedFit, _pairs
from dpadapt.discrepancy import DiscrepancyRegressor, Moments
from dpadapt.mixing import NoisyGDClassifier
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
    target = AttackedFit(estimator, rows[["age", "hours"]], rows["wage"].to_numpy())
    pairs = list(_pairs(target, np.random.default_rng(0), None))
    assert len(target.played) == 30
    assert any(
        one["label"].iloc[i] == -other["label"].iloc[i] == 1e6
        for one, other in pairs
        for i in range(30)
    )
    for one, other in pairs:
        changed = (one.astype(str) != other.astype(str)).any(axis=1)
        assert changed.sum() <= 1  # neighbours


PEOPLE = ("--unit", "who", "--max-rows", "3")


@pytest.fixture
def visits(table):
    """Public rows of thirty people with two each, and what fits a linear model to people."""
    rows = pd.read_csv(table / "public.csv").assign(who=np.repeat(np.arange(30), 2))
    rows.to_csv(table / "public.csv", index=False)
    return table


def test_neighbours_differ_in_all_rows_of_one_person(visits):
    rows = pd.read_csv(visits / "public.csv")
    estimator = ReweightingRegressor(epsilon=1.0, delta=1e-6)
    facts = (estimator, rows[["age", "hours"]], rows["wage"].to_numpy())
    target = AttackedFit(*facts, people=rows["who"].to_numpy(), max_rows=3)
    pairs = list(_pairs(target, np.random.default_rng(0), None))
    assert set(target.played["person"]) == set(range(1, 30, 2))
    sizes = set()
    for one, other in pairs:
        kept = [
            {name: list(map(str, group.to_numpy())) for name, group in each.groupby("person")}
            for each in (one, other)
        ]
        assert kept[0].keys() == kept[1].keys(), "as many people"
        (changed,) = [name for name in kept[0] if kept[0][name] != kept[1][name]]
        sizes.add((len(kept[0][changed]), len(kept[1][changed])))
        same = len(kept[0][changed]) == len(kept[1][changed])
        if same:
            assert all(a != b for a, b in zip(kept[0][changed], kept[1][changed], strict=True))
    assert sizes == {(2, 2), (2, 1), (2, 5)}


def test_under_add_remove_the_neighbour_lacks_the_row(table):
    rows = pd.read_csv(table / "public.csv")
    estimator = NoisyGDClassifier(epsilon=1.0, delta=1e-6, relation="add-remove")
    target = AttackedFit(estimator, rows[["age", "hours"]], np.asarray(rows["wage"] > 0))
    assert target.relation == "add-remove"
    for one, other in _pairs(target, np.random.default_rng(0), np.array([False, True])):
        assert len(other) == len(one) - 1
        assert set(other["person"]) < set(one["person"])


def rows_alone(monkeypatch):
    """Break the library: what is stated of people is what holds for one row."""
    monkeypatch.setattr(
        "dpadapt.privacy.rows.people.of_people", lambda event, rows: event.under("replace-unit")
    )


@pytest.mark.slow
def test_a_fit_that_protects_rows_only_is_refuted_by_people_alone(visits, monkeypatch):
    budget = (*UNLABELLED, "--epsilon", "4", "--runs", "30")
    sound = run(visits, *budget, *PEOPLE)
    assert sound.exit_code == 0, sound.output
    assert "15 people with 30 public rows" in sound.output
    assert "unit all rows of one person replaced, of which up to 3 count" in " ".join(
        sound.output.split()
    )
    result = AuditResult.load(visits / "audit" / "audit.json")
    assert (result.relation, result.max_rows, result.holds) == ("replace-unit", 3, True)
    assert 0.9 < result.largest <= 1 + 1e-9
    rows_alone(monkeypatch)
    broken = run(visits, *budget, *PEOPLE)
    assert broken.exit_code == 1, broken.output
    result = AuditResult.load(visits / "audit" / "audit.json")
    assert result.found > result.claimed
    by_rows = run(visits, *budget, "--drop", "who")
    assert by_rows.exit_code == 0, "an audit of rows does not see it"
    assert AuditResult.load(visits / "audit" / "audit.json").relation == "replace-one"


def saved_for_people(table, name="model", max_rows=3):
    rows = pd.read_csv(table / "public.csv")
    private = Private(rows[["age"]], unit=rows["who"].tolist(), max_rows=max_rows)
    model = DiscrepancyRegressor(epsilon=2.0, delta=1e-6)
    model.fit(rows[["age"]], rows["wage"], private=private)
    return save_model(model, table / name, context=ReportContext(unit="who"))


def of_model(table, *extra, model="model"):
    line = ["audit", "--public", str(table / "public.csv"), "--label", "wage", "--runs", "10"]
    line += ["--model", str(table / model), "--out", str(table / "audit")]
    done = CliRunner().invoke(app, [*line, *extra])
    return done.exit_code, " ".join(done.output.split())


def test_people_of_a_model_are_attacked_by_its_own_unit(visits, monkeypatch):
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    saved_for_people(visits)
    code, said = of_model(visits)
    assert code == 0, said
    assert "15 people with 30 public rows" in said
    assert "made up" not in said
    result = AuditResult.load(visits / "audit" / "audit.json")
    assert (result.relation, result.max_rows) == ("replace-unit", 3)
    assert result.rows == "15 people with 30 public rows that played the private ones"
    code, said = of_model(visits, "--max-rows", "2")
    assert code != 0
    assert "leave it out with --model" in said
    pd.read_csv(visits / "public.csv").drop(columns="who").to_csv(
        visits / "public.csv", index=False
    )
    code, said = of_model(visits)
    assert code == 0, said
    assert "has no column 'who', so that people are made up: every 3 rows" in said
    assert "10 people with 30 public rows" in said
    saved = pd.read_csv(visits / "public.csv")
    saved.head(20).to_csv(visits / "public.csv", index=False)
    saved_rows = DiscrepancyRegressor(epsilon=2.0, delta=1e-6).fit(saved[["age"]], saved["wage"])
    save_model(saved_rows, visits / "rows")
    code, said = of_model(visits, "--unit", "who", model="rows")
    assert code != 0
    assert "fitted without --unit" in said


def test_a_report_takes_no_audit_of_another_unit(visits, tmp_path, monkeypatch):
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    saved_for_people(visits)
    saved_for_people(visits, "two", max_rows=2)
    of_model(visits)
    audit, line = str(visits / "audit" / "audit.json"), ["report", "--out", str(tmp_path / "r.md")]
    done = CliRunner().invoke(app, [*line, "--model", str(visits / "model"), "--audit", audit])
    assert done.exit_code == 0, done.output
    assert "all rows of one person replaced, of which up to 3" in (tmp_path / "r.md").read_text()
    done = CliRunner().invoke(app, [*line, "--model", str(visits / "two"), "--audit", audit])
    assert done.exit_code != 0
    assert "another unit" in " ".join(done.output.split())
    assert run(visits, *UNLABELLED, "--drop", "who", "--epsilon", "2").exit_code == 0
    done = CliRunner().invoke(app, [*line, "--model", str(visits / "model"), "--audit", audit])
    said = " ".join(done.output.split())
    assert done.exit_code != 0
    assert "(one row replaced by another) than this model protects (one person with all" in said
    assert "run dpadapt audit --model with this model's folder" in said


def test_what_is_missing_or_wrong_is_said(table):
    assert "belong together" in " ".join(run(table, "--unit", "who").output.split())
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
        json.dumps({**data, "relation": "replace-all"}),
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


def test_warnings_of_public_experts_are_not_shown(monkeypatch):
    def facts(self, X, y, *, groups=None):
        warnings.warn("lbfgs failed to converge", UserWarning, stacklevel=1)

    monkeypatch.setattr(AutoClassifier, "public_facts", facts)
    rows = pd.DataFrame({"x": np.arange(40.0)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AttackedFit(AutoClassifier(epsilon=1.0, delta=1e-6), rows, np.arange(40) % 2).fit()
