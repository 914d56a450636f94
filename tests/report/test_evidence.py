"""An evaluation or an audit speaks for its own model only, and a folder remembers public facts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

from command import run
from dpadapt import DiscrepancyRegressor, Private, ReweightingRegressor
from dpadapt.audit import AuditResult
from dpadapt.audit.result import settings_digest
from dpadapt.cli.formats import given_form
from dpadapt.evaluation import Evaluation
from dpadapt.evaluation.evaluation import Measured
from dpadapt.evaluation.intervals import Interval
from dpadapt.modelfolder import ModelFolderError, load_model
from dpadapt.modelfolder.record import Record, read_record, seal
from dpadapt.privacy import Guarantee, Ledger
from dpadapt.privacy.accounting.events import GaussianEvent
from dpadapt.privacy.files.guarantees import read_guarantee
from dpadapt.report import ReportContext, write_report
from dpadapt.report.content import found_words, measured_rows, odds_sentence
from dpadapt.report.evidence import check_evidence, together
from dpadapt.report.figures import detection_limit

BUDGET = ("--label", "wage", "--epsilon", "1", "--delta", "1e-6")
SEED = ("--noise", "seeded", "--random-state", "1")
QUICK = ("--estimator", "ReweightingRegressor")
FACTS = (0.4, 1e-6, 0.95, "400 runs", 250, 400, 12, 12, 0.98, "", "public rows")


def people(n, seed):
    rng = np.random.default_rng([n, seed])
    table = pd.DataFrame({"age": rng.integers(20, 70, n), "hours": rng.normal(size=n)})
    return table.assign(wage=(table["age"] / 10 + rng.normal(size=n)).round(3))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model with people held out, of files with semicolons, and another model."""
    folder = tmp_path_factory.mktemp("evidence")
    samples = (("public", 200), ("private", 1500), ("test", 2000))
    for seed, (name, n) in enumerate(samples):
        people(n, seed).to_csv(folder / f"{name}.csv", index=False, sep=";", decimal=",")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
        patch.chdir(folder)
        both = ("--public", "public.csv", "--private", "private.csv")
        run("fit", *both, *BUDGET, *QUICK, *SEED, "--out", "held", "--holdout", "0.4")
        run("fit", *both, *BUDGET, *QUICK, *SEED, "--out", "other", "--set", "solver=profiled")
        where = ("--private", "test.csv", "--out", "own.json")
        run("evaluate", "--model", "held", *BUDGET, *SEED, *where)
    return folder


@pytest.fixture
def here(files, monkeypatch):
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    monkeypatch.chdir(files)
    return files


def reported(tmp_path, *more, model="held", code=0, end="json"):
    out = tmp_path / f"report.{end}"
    said = run("report", "--model", model, "--out", out, *more, code=code)
    if code:
        return said
    return json.loads(out.read_text()) if end == "json" else out.read_text(encoding="utf-8")


def test_an_evaluation_of_another_model_is_refused(here, tmp_path):
    own = ("--evaluation", "own.json")
    assert [each["people"] for each in reported(tmp_path, *own)["evaluations"]] == [600, 2000]
    for given in (own, ("--evaluation", "held.evaluation.json")):
        words = reported(tmp_path, *given, model="other", code=1)
        assert "of another model" in words
        assert "run dpadapt evaluate" in words
    assert not (tmp_path / "other.json").exists()


def test_every_evaluation_that_was_released_stays_in_the_report(here, tmp_path):
    given = ("--evaluation", "own.json", "--evaluation", "held.evaluation.json")
    filed = reported(tmp_path, *given)
    assert [each["people"] for each in filed["evaluations"]] == [600, 2000], "each once"
    page, text = (reported(tmp_path, *given, end=end) for end in ("html", "md"))
    for number, each in enumerate(filed["evaluations"], 1):
        cells = [cell for row in measured_rows(each) for cell in row if cell != "–"]
        for words in (f"Evaluation {number}: {each['people']:,} private rows", *cells):
            assert words in page
            assert words in text.replace("\\", "")
    assert "2 evaluations were given to this report; all of them stand here" in page


def test_the_report_says_what_fit_and_evaluations_cost_together(here, tmp_path):
    """From what was released: the larger of fit and hold-out, and all of any other evaluation."""
    fit = load_model("held").guarantee_
    alone, both = reported(tmp_path), reported(tmp_path, "--evaluation", "own.json")
    assert f"together cost epsilon = {fit.epsilon:.4g}, delta = 1e-06" in alone["together"]
    assert "600 private rows were held out from the fit" in alone["together"]
    assert "added in full" not in alone["together"]
    other = Guarantee.from_dict(both["evaluations"][1]["guarantee"])
    sum_of_all = Guarantee((*fit.events, *other.events), fit.delta).epsilon
    assert f"together cost epsilon = {sum_of_all:.4g}," in both["together"]
    assert "added in full" in both["together"]
    assert reported(tmp_path, model="other")["together"] == "", "nothing was measured"
    for end in ("html", "md"):
        assert alone["together"] in reported(tmp_path, end=end)


def test_odds_count_evaluations_that_may_be_of_the_people_of_the_fit(here, tmp_path):
    """All that was released is more than the fit where its people may be measured once more."""
    fit = load_model("held").guarantee_
    both = reported(tmp_path, "--evaluation", "own.json")
    other = Guarantee.from_dict(both["evaluations"][1]["guarantee"])
    assert reported(tmp_path)["for_people"] == odds_sentence(fit), "nobody is in both"
    everything = Guarantee((*fit.events, *other.events), fit.delta)
    assert both["for_people"] == odds_sentence(everything) != odds_sentence(fit)
    found = 100 * float(detection_limit(everything.events, [0.05])[0])
    page = reported(tmp_path, "--evaluation", "own.json", end="html")
    assert f"in more than {found:.1f} % of cases" in page


def test_an_interval_has_as_many_digits_as_its_width_tells():
    given = {"value": -0.0004, "low": -0.06213, "high": 0.01376}
    measure = {"title": "accuracy", "model": given, "difference": {**given, "value": 54321.0}}
    rows = measured_rows({"measures": {"accuracy": measure}})
    assert rows[0][1] == "0.000 (-0.062 to 0.014)", "two of the width, and no -0"
    assert rows[0][3].startswith("54,321.000 (")


def test_the_table_of_an_evaluation_has_the_digits_of_its_sentence():
    sides = [(0.0, 0.0, 0.28), (0.35, 0.0, 0.6), (-0.35, -1.0, 0.16)]
    for given in (sides, [(0.9, 0.5, 1.0), (0.8, 0.7, 0.9), (0.1, 0.098, 0.102)]):
        measured = Measured("recall", *(Interval(*each) for each in given), larger=True)
        row = measured_rows({"measures": {"recall": asdict(measured)}})[0]
        assert row[1:4] == measured.texts
    alone = Measured("recall", Interval(*given[0]), None, None, larger=True)
    assert measured_rows({"measures": {"recall": asdict(alone)}})[0][2:4] == ("–", "–")


def test_a_table_has_no_number_where_nothing_was_seen():
    whole = Interval(0.5, 0.0, 1.0), Interval(0.5, 0.0, 1.0), Interval(0.0, -1.0, 1.0)
    lost = Measured("recall of a", *whole, True, limit=1.2, largest=1.0)
    row = measured_rows({"measures": {"recall of a": asdict(lost)}})[0]
    assert row[1:4] == lost.texts == ("– (0.0 to 1.0)", "– (0.0 to 1.0)", "– (-1.0 to 1.0)")


def test_an_evaluation_is_summed_up_and_its_classes_are_counted(here, tmp_path):
    """The summary names what has a verdict, and every count that was released stands there."""
    side = Interval(0.8, 0.7, 0.9)
    measures = {
        name: Measured(name, side, side, Interval(apart, apart - 0.02, apart + 0.02), True)
        for name, apart in (("accuracy", 0.1), ("recall of a", -0.1), ("recall of b", 0.0))
    }
    counts = (("a", Interval(41.2, 6.0, 76.4)), ("<b>", Interval(1181.0, 1146.0, 1216.0)))
    found = Evaluation(measures, (), 600, 0.9, Guarantee(), (), "public only", classes=counts)
    context = ReportContext(evaluations=[found.to_dict()])
    told = (
        "The model is better than the public model in accuracy, and worse in recall of a. No "
        "verdict: recall of b."
    )
    for end in ("html", "md"):
        file = write_report(load_model("held"), tmp_path / f"r.{end}", context=context)
        text = file.read_text("utf-8")
        for words in (told, "41 (6 to 76)", "1,181 (1,146 to 1,216)"):
            assert words in text
        assert "<b>" not in text
    assert "in brackets the 90 % interval" in Path(tmp_path / "r.html").read_text("utf-8")
    none = {name: measures[name] for name in ("recall of b",)}
    words = found_words(replace(found, measures=none).to_dict())
    assert words.startswith("No verdict: from these rows, at this epsilon,")
    assert found_words(replace(found, against="").to_dict()) == ""


def test_a_larger_evaluation_of_those_held_out_counts_as_it_is():
    fit, large = (Guarantee((GaussianEvent("", 1.0, each),), 1e-6) for each in (9.0, 3.0))
    held = {"people": 70, "held_out": True, "guarantee": large.to_dict()}
    assert f"epsilon = {large.epsilon:.4g}," in together([held], fit, held_out=True)
    assert "70 private rows" in together([held], Guarantee(), held_out=True)
    people = GaussianEvent("", 1.0, 3.0, relation="replace-unit")
    other = held | {"guarantee": Guarantee((people,), 1e-6).to_dict()}
    assert "do not add up" in together([other], fit, held_out=True)
    of_people = Guarantee((people,), 1e-6)
    assert "70 people were held out" in together([other], of_people, held_out=True)
    forged = together([held], fit)  # the fit held nobody out, whatever the file says
    assert f"epsilon = {Guarantee((*fit.events, *large.events), 1e-6).epsilon:.4g}," in forged
    assert "added in full" in forged
    assert "nobody is in both" not in forged


def test_each_evaluation_has_a_heading(here, tmp_path):
    heads = (
        "Evaluation 1: 600 private rows, held out from the fit, epsilon 1",
        "Evaluation 2: 2,000 private rows, epsilon 1",
    )
    given = ("--evaluation", "own.json")
    page, text = (reported(tmp_path, *given, end=end) for end in ("html", "md"))
    for each in heads:
        assert f"<h3>{each}</h3>" in page
        assert f"### {each}" in text


def test_an_evaluation_that_says_of_no_model_is_refused(here, tmp_path):
    data = json.loads(Path("own.json").read_text())
    del data["model"]
    (tmp_path / "old.json").write_text(json.dumps(data))
    words = reported(tmp_path, "--evaluation", tmp_path / "old.json", code=1)
    assert "does not say of which model" in words
    (tmp_path / "odd.json").write_text("{}")
    words = reported(tmp_path, "--evaluation", tmp_path / "odd.json", code=1)
    assert "holds none that dpadapt evaluate has written" in words


def test_a_report_written_again_says_what_the_first_one_said(here, tmp_path):
    filed = reported(tmp_path)
    assert filed["label"] == "wage"
    assert filed["title"] == "Privacy report: a model of wage"
    assert filed["evaluations"] == [json.loads(Path("held.evaluation.json").read_text())]
    first, again = Path("held/report.html").read_text(), reported(tmp_path, end="html")
    for words in ("public.csv", "private.csv", ">200<", "Evaluation 1: 600 private rows", "(wage)"):
        assert words in first
        assert words in again
    assert "not recorded" not in again
    assert ">difference<" not in again, "there is no baseline"


def test_bounds_and_form_are_those_of_the_fit(here):
    record, _, digest = read_record(Path("held"))
    labels = pd.read_csv("public.csv", sep=";", decimal=",")["wage"]
    assert record.label_range == (labels.min(), labels.max())
    assert record.form == {"sep": ";", "decimal": ",", "encoding": "utf-8"}
    found = [json.loads(Path(name).read_text()) for name in ("own.json", "held.evaluation.json")]
    clamped = [next(x for x in each["caveats"] if "clamped" in x) for each in found]
    assert clamped[0] == clamped[1]
    assert f"{labels.min():g} to {labels.max():g}" in clamped[0]
    assert {each["model"] for each in found} == {digest}


def audit_of(fitted, **changed):
    estimator = getattr(fitted, "estimator_", fitted)
    digest = settings_digest(estimator, "replace-one")
    facts = (type(estimator).__name__, fitted.guarantee_.epsilon, *FACTS)
    return replace(AuditResult(*facts, settings=digest), **changed)


def test_an_audit_of_another_model_is_refused(here, tmp_path):
    model, file = load_model("held"), tmp_path / "audit.json"
    audit_of(model).save(file)
    filed = reported(tmp_path, "--audit", file)
    assert "not from this model folder" in filed["audit"]["sentence"]
    assert "same estimator, parameters" in reported(tmp_path, "--audit", file, end="html")
    words = reported(tmp_path, "--audit", file, model="other", code=1)
    assert "other parameters" in words
    assert "run dpadapt audit --model" in words
    audit_of(model, model=read_record(Path("held"))[2]).save(file)
    filed = reported(tmp_path, "--audit", file)
    assert "estimator and parameters of this model folder" in filed["audit"]["sentence"]
    audit_of(load_model("other"), model=read_record(Path("held"))[2]).save(file)
    assert "another model folder" in reported(tmp_path, "--audit", file, model="other", code=1)


def test_an_audit_that_says_of_no_model_is_refused(here, tmp_path):
    model = load_model("held")
    context = ReportContext(audit=audit_of(model, settings=""))
    with pytest.raises(ValueError, match="not of this model"):
        write_report(model, tmp_path / "x.html", context=context)
    file = tmp_path / "audit.json"
    audit_of(model).save(file)
    data = json.loads(file.read_text()) | {"format": "dpadapt audit 1"}
    file.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="run dpadapt audit again"):
        AuditResult.load(file)


def test_settings_are_what_a_guarantee_rests_on():
    def digest(relation="replace-one", **options):
        given = {"epsilon": 1.0, "delta": 1e-6} | options
        return settings_digest(ReweightingRegressor(**given), relation)

    assert digest() == digest(epsilon=1, noise="seeded", random_state=3, verbose=1)
    others = [digest("replace-unit"), digest(epsilon=2.0), digest(solver="profiled")]
    assert len({digest(), *others}) == 4


@pytest.mark.parametrize(
    "record",
    [
        {"unknown": 1},
        {"label": 3},
        {"public_rows": "many"},
        {"feature_scale": ["x"]},
        {"label_range": [0.0]},
        {"label_range": [0.0, True]},
        {"largest_error": "1"},
        {"form": {"sep": 1}},
        {"form": {"engine": "python"}},
        {"form": []},
        [],
        7,
    ],
)
def test_a_record_of_another_kind_is_refused(record, tmp_path):
    names = ("model.json", "arrays.bin")
    sealed = seal(Guarantee(), dict.fromkeys(names, b""), {"record": 0})
    text = json.loads(sealed)["digest"]
    blank = sealed.replace(text.encode(), b"0" * 64)
    blank = blank.replace(b'{\n    "record": 0\n  }', json.dumps(record).encode())
    content = blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode())
    (tmp_path / "guarantee.json").write_bytes(content)
    if record == []:  # as good as none
        assert read_record(tmp_path)[0] == Record()
        return
    with pytest.raises(ModelFolderError, match="a record that no fit has written"):
        read_record(tmp_path)


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_nothing_in_a_name_is_obeyed_by_a_terminal(ending, tmp_path):
    model = DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    about = ReportContext(title="a\x1b[2J\x9b\u202eb\ud800", label="c\x07")
    file = write_report(model, tmp_path / f"report.{ending}", context=about)
    text = file.read_text(encoding="utf-8")
    assert len(text) > 100
    assert not set(text) & set("\x1b\x9b\u202e\x07")


@pytest.mark.parametrize("count", [10**7, 10**15])
def test_a_guarantee_that_takes_minutes_to_compose_is_refused(count):
    event = {"kind": "laplace", "label": "x", "sensitivity": 1.0, "scale": 1e6, "count": count}
    with pytest.raises(ValueError, match="more than 1,000,000 releases"):
        read_guarantee({"events": [{"branches": [[event]]}]})


@pytest.mark.parametrize(
    ("name", "value"),
    [("people", -5), ("people", 0), ("confidence", 1e308), ("confidence", 0.0), ("bins", [[1, 2]])],
)
def test_an_evaluation_that_cannot_be_is_refused(name, value):
    sound = Evaluation({}, (), 10, 0.95, Guarantee(), (), "").to_dict()
    assert Evaluation.from_dict(sound).people == 10
    with pytest.raises(ValueError, match="changed after it was written"):
        Evaluation.from_dict({**sound, name: value})


@pytest.mark.parametrize(
    "encoding", ["unicode_escape", "raw_unicode_escape", "iso2022_jp", "utf-7"]
)
def test_encodings_in_which_one_letter_changes_others_are_refused(encoding):
    with pytest.raises(typer.BadParameter, match="line by line"):
        given_form(None, None, encoding)


def test_columns_are_listed_by_name_with_what_became_of_them(here, tmp_path):
    table = people(200, 0).assign(surname=[*"vwxy"] * 50, land="A", who=np.arange(200) // 2)
    for name, rows in (("p.csv", table), ("q.csv", table.assign(more=1.0, other=2.0))):
        rows.to_csv(tmp_path / name, index=False)
    files = ("--public", tmp_path / "p.csv", "--private", tmp_path / "q.csv")
    asked = ("--unit", "who", "--max-rows", "2", "--drop", "hours", "--out", tmp_path / "m")
    said = run("fit", *files, *BUDGET, *QUICK, *SEED, *asked)
    assert "does surname name people?" in said
    assert "--drop surname, or say --keep surname" in said
    filed = reported(tmp_path, model=tmp_path / "m")
    assert filed["columns"] == {
        "count": 2,
        "used": ["age", "surname"],
        "left_out": {
            "says whose row it is": ["who"],
            "as you asked": ["hours"],
            "constant in public rows": ["land"],
            "public rows lack them; not named here": ["2 private columns"],
        },
        "name_people": ["surname"],
    }
    for end in ("html", "md"):
        text = reported(tmp_path, model=tmp_path / "m", end=end)
        assert "age, surname" in text
        assert "constant in public rows" in text
        assert "may name people" in text
        assert "By its name" not in text, "there may be several"
        assert "more" not in json.dumps(filed["columns"]), "private names are counted"
    again = ("--force", "--keep", "surname")
    assert "name people?" not in run("fit", *files, *BUDGET, *QUICK, *SEED, *asked, *again)
    named = run("fit", *files, *BUDGET, *QUICK, *SEED, "--out", tmp_path / "n", "--columns", "age")
    assert "name people?" not in named
    left_out = reported(tmp_path, model=tmp_path / "n")["columns"]["left_out"]
    assert left_out["not among --columns"] == ["hours", "surname", "land", "who"]


def test_an_evaluation_that_the_report_would_not_take_is_refused_before_it_is_paid_for(
    tmp_path, monkeypatch
):
    """A model that protects people is measured on people; where no column says who, it is told."""
    monkeypatch.chdir(tmp_path)
    for seed, (name, n) in enumerate((("public", 200), ("private", 1500), ("test", 2000))):
        people(n, seed).assign(who=np.arange(n) // 2).to_csv(f"{name}.csv", index=False)
    whose, given = ("--unit", "who", "--max-rows", "2"), ("--ledger", "b.db", "--dataset", "all")
    both = ("--public", "public.csv", "--private", "private.csv")
    run("fit", *both, *BUDGET, *QUICK, *SEED, *whose, "--out", "m")
    run("ledger", "create", *given, *BUDGET[2:])
    order = ("evaluate", "--model", "m", *BUDGET, *SEED, *given)
    words = run(*order, "--private", "test.csv", code=1)
    assert "this model protects all rows of a person" in words
    assert "Give --unit who --max-rows 2." in words
    assert not Ledger("b.db").charges("all")
    run(*order, "--private", "test.csv", *whose, "--out", "e.json")
    assert len(Ledger("b.db").charges("all")) == 1
    run("report", "--model", "m", "--evaluation", "e.json", "--out", "r.html")
    people(2000, 2).to_csv("nobody.csv", index=False)
    told = run(*order[:-4], "--private", "nobody.csv", "--outlook")
    assert "If everybody has one row here, number the rows" in told


def test_digests_are_of_files_that_are_there(here, tmp_path):
    files = {name: Path("held", name).read_bytes() for name in ("model.json", "arrays.bin")}
    first = Path("held/report.html").read_text()
    for each in files.values():
        assert hashlib.sha256(each).hexdigest() in first
    files["guarantee.json"] = Path("held/guarantee.json").read_bytes()
    digests = reported(tmp_path)["digests"]
    del digests["names of the columns"]
    assert digests == {name: hashlib.sha256(each).hexdigest() for name, each in files.items()}


def test_the_result_is_told_in_a_sentence(here, tmp_path):
    filed = reported(tmp_path)
    share = load_model("held").estimator_.share_
    assert filed["result"].startswith(f"Moved {share:.0%} of the way from the public model")
    for end in ("html", "md"):
        assert filed["result"] in reported(tmp_path, end=end)


def test_an_evaluation_of_rows_is_none_of_people():
    of_people, of_rows = (
        ReweightingRegressor(epsilon=1.0, delta=1e-6)
        .fit(
            np.eye(4).repeat(9, axis=0),
            np.arange(36.0),
            private=Private(np.eye(4).repeat(50, axis=0), np.arange(200.0), **unit),
        )
        .guarantee_
        for unit in ({"unit": np.arange(200) // 2, "max_rows": 2}, {})
    )
    measured = {"model": "a", "guarantee": of_rows.to_dict()}
    context = ReportContext(evaluations=[measured], model="a")
    check_evidence(context, None, of_rows)
    with pytest.raises(ValueError, match=r"it protects single rows.*--unit"):
        check_evidence(context, None, of_people)
    context = ReportContext(evaluations=[measured | {"guarantee": of_people.to_dict()}], model="a")
    check_evidence(context, None, of_people)


def test_a_report_says_that_the_noise_of_an_evaluation_is_seeded(here, tmp_path):
    for name in ("r.html", "r.md"):
        report = ("--model", "held", "--evaluation", "own.json", "--out", tmp_path / name)
        run("report", *report)
        assert "noise is seeded" in (tmp_path / name).read_text().partition("Private evaluation")[2]
