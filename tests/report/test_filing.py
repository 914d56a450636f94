"""What an officer files: the card, its blanks, Markdown, JSON, and the registry's record."""

import json
import math
from dataclasses import asdict, fields

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpadapt import DiscrepancyRegressor, Guarantee, InteractivePredictor, Private
from dpadapt.cli import app
from dpadapt.discrepancy import Moments
from dpadapt.evaluation import Evaluation, Interval, Measured
from dpadapt.modelfolder import save_model
from dpadapt.modelfolder.record import read_record
from dpadapt.privacy import Ledger
from dpadapt.privacy.accounting.composition import compose_delta
from dpadapt.privacy.accounting.events import GaussianEvent, ParallelEvent, PureEvent
from dpadapt.report import (
    Card,
    ReportContext,
    blank_card,
    filing,
    registry_record,
    write_report,
)
from dpadapt.report.card import QUESTIONS
from dpadapt.report.content import measured_rows, odds_sentence, schema_digest, unprotected
from dpadapt.report.wording import BLANK, relation, unit

from .registry_schema import check_record

INTERVAL = {"value": 0.25, "low": 0.125, "high": 0.375}
EVALUATION = {
    "sentence": "On 500 private rows the error is 0.25.",
    "against": "public data alone",
    "measures": {"error": {"title": "error rate", "model": INTERVAL, "baseline": INTERVAL}},
    "guarantee": {"sentence": "That cost epsilon 0.1."},
}
HOSTILE = '<script>alert("x")</script> | `a` \n# b'


def whole_card(**changes):
    answers = {each.name: f"answer on {each.name}" for each in QUESTIONS}
    known = {"releases": "one", "data_changes": "static", "sector": "Government"}
    return Card(**(answers | known | {"publication_date": "2026-11-30"} | changes))


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["age", "pay"])
    far = pd.DataFrame(rng.normal(size=(300, 2)) + 0.3, columns=["age", "pay"])
    fitted = DiscrepancyRegressor(epsilon=1.0, delta=1e-6, solver=Moments(max_remaining=1.0))
    return fitted.fit(X, X["age"], private=Private(far))


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    return save_model(model, tmp_path_factory.mktemp("here") / "model")


def texts(model, tmp_path, context):
    """Let every form of a report be written; return them."""
    return {
        ending: write_report(model, tmp_path / f"r.{ending}", context=context).read_text("utf-8")
        for ending in ("html", "md", "json")
    }


def test_every_answer_is_in_every_form(model, tmp_path):
    card = whole_card()
    context = ReportContext(card=card, evaluations=[EVALUATION], digests={"model.json": "ab" * 32})
    for text in texts(model, tmp_path, context).values():
        for answer in asdict(card).values():
            assert answer in text.replace("\\_", "_")
        for words in ("error rate", "ab" * 32, schema_digest(model), model.guarantee_.sentence):
            assert words in text
        blanks = [line for line in text.replace("\\", "").splitlines() if BLANK in line]
        assert all("none was given" in line or "no ledger" in line for line in blanks)


def test_what_nobody_filled_in_is_marked(model, tmp_path):
    made = texts(model, tmp_path, ReportContext())
    assert made["html"].count("[not filled in]") == len(QUESTIONS)
    assert made["md"].replace("\\", "").count(BLANK) == len(QUESTIONS) + 3
    assert json.loads(made["json"])["blanks"] == [each.name for each in QUESTIONS]


def test_hostile_answers_are_text(model, tmp_path):
    made = texts(model, tmp_path, ReportContext(card=whole_card(intended_use=HOSTILE)))
    assert "<script>" not in made["html"]
    assert "<script>" not in made["md"]
    assert json.loads(made["json"])["card"]["intended_use"] == HOSTILE
    lines = [line for line in made["md"].splitlines() if "Intended use" in line]
    assert len(lines) == 1
    assert lines[0].replace("\\|", "").count("|") == 3


def test_numbers_of_the_json_are_those_of_the_guarantee(model):
    filed = filing(model, ReportContext())
    assert filed["guarantee"] == model.guarantee_.to_dict()
    (event,) = model.guarantee_.events
    assert filed["releases"][0]["noise"] == f"{event.scale:.4g}"


def test_the_ledger_is_filed(model, tmp_path):
    ledger = Ledger(tmp_path / "b.db")
    ledger.create("people", epsilon=3.0, delta=1e-6).charge(model.guarantee_.events, label="fit")
    state = ledger.dataset("people")
    made = texts(model, tmp_path, ReportContext(ledger=state))
    filed = json.loads(made["json"])
    assert filed["ledger"]["spent"] == state.spent()
    assert filed["ledger"]["charges"] == 1
    assert "the ledger has what all releases cost" in filed["lasts"]
    assert "people" in made["md"]
    assert "somebody must keep count" in filing(model, ReportContext())["lasts"]
    assert "The ledger below keeps count" in made["html"]


def test_a_ledger_without_a_charge_for_the_model_does_not_keep_count(model, tmp_path):
    """Also where the fit was charged together with an evaluation of people held out."""
    account = Ledger(tmp_path / "b.db").create("people", epsilon=9.0, delta=1e-6)
    other = GaussianEvent("another fit", 1.0, 17.0)
    account.charge((other,), label="fit")
    for number, text in texts(
        model, tmp_path, ReportContext(ledger=Ledger(tmp_path / "b.db").dataset("people"))
    ).items():
        assert "no charge of the ledger that was given" in text, number
        assert "the ledger has what all releases cost" not in text
        assert "keeps count" not in text
    split = ParallelEvent("fit and evaluation", branches=(model.guarantee_.events, (other,)))
    account.charge((split,), label="fit")
    for text in texts(
        model, tmp_path, ReportContext(ledger=Ledger(tmp_path / "b.db").dataset("people"))
    ).values():
        assert "the ledger has what all releases cost" in text


@pytest.mark.parametrize("events", [(GaussianEvent("m", 1.0, 4.0),), (PureEvent("a", 1.0),)])
def test_nobody_guesses_better_than_the_odds_say(events):
    told = odds_sentence(Guarantee(events, 1e-6))
    times = float(told.split()[-2])
    best = 100 * (1 + compose_delta(events, 0.0)) / 2
    assert best <= times <= best + 0.1 + 1e-9


def test_odds_of_pure_privacy_are_those_of_a_randomised_answer():
    right = 100 * math.e / (1 + math.e)  # told the truth that often, and guessed so
    told = odds_sentence(Guarantee((PureEvent("a", 1.0),), 0.0))
    assert float(told.split()[-2]) >= right


def test_without_private_rows_nothing_was_used(tmp_path):
    alone = DiscrepancyRegressor(epsilon=1.0, delta=1e-6).fit(np.eye(3), [1.0, 2.0, 3.0])
    made = texts(alone, tmp_path, ReportContext())
    for text in made.values():
        assert "Nothing about you was used." in text
    assert unprotected(Guarantee()) == ()


def test_relations_and_units_have_words():
    for name in ("replace-one", "add-remove", "replace-unit"):
        assert "guarantee compares" in relation(name)
        assert "one" in unit(name)
    assert "(other)" in relation("other")
    assert "other" in unit("other")


def test_the_digest_of_columns_tells_names_and_order(model):
    same = DiscrepancyRegressor(epsilon=1.0, delta=1e-6)
    names = [["age", "pay"], ["pay", "age"], ["age", "pay2"]]
    found = [
        schema_digest(same.fit(pd.DataFrame(np.eye(3)[:, :2], columns=each), [1.0, 2.0, 3.0]))
        for each in names
    ]
    assert found[0] == schema_digest(model)
    assert len(set(found)) == 3


@pytest.mark.parametrize("given", [{}, {"measures": []}, "text", None])
def test_what_is_no_evaluation_is_refused(given):
    with pytest.raises(ValueError, match="evaluation: it has no measures"):
        measured_rows(given)


# the card


def test_every_question_is_a_field_and_none_is_missing():
    assert [each.name for each in QUESTIONS] == [each.name for each in fields(Card)]


def test_a_blank_card_can_be_read_and_is_blank(tmp_path):
    file = tmp_path / "card.toml"
    file.write_text(blank_card(), encoding="utf-8")
    assert Card.load(file) == Card()
    assert len(Card().blanks) == len(QUESTIONS)
    assert whole_card().blanks == ()


def test_a_card_is_read(tmp_path):
    file = tmp_path / "card.toml"
    file.write_text('curators = ["A", "B"]\npublication_date = 2026-01-02\nname = " x "\n')
    card = Card.load(file)
    assert (card.curators, card.publication_date, card.name) == ("A, B", "2026-01-02", "x")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "is no TOML file"),
        ("nmae = 'x'", "has a field 'nmae' that is none"),
        ("name = 3", "name must be a text"),
        ("releases = 'some'", "releases must be one of one, many"),
        ("sector = 'Pets'", "sector must be one of"),
        ("publication_date = 'soon'", "publication_date must be a date"),
    ],
)
def test_a_wrong_card_is_refused(tmp_path, text, words):
    file = tmp_path / "card.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        Card.load(file)


# the registry


def record(model, card, **context):
    return registry_record(filing(model, ReportContext(card=card, **context)))


def test_a_whole_card_gives_a_record_of_the_third_tier(model):
    made = record(model, whole_card())
    assert check_record(made) == []
    assert made["tier"] == 3
    loss = made["deployment"]["privacy_loss"]["privacy_parameters"]
    assert loss == {"epsilon": model.guarantee_.epsilon, "delta": model.guarantee_.delta}
    assert made["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"


def test_with_less_it_is_of_the_second_tier_and_has_no_blanks(model):
    card = whole_card(actors="", sector="", releases="", data_changes="", sources="")
    made = record(model, card)
    assert check_record(made) == []
    assert made["tier"] == 2
    assert "" not in json.dumps(made).split('"')[1::2]
    assert "data_product_sector" not in made["deployment"]["basic"]


def test_without_what_the_registry_needs_there_is_no_record(model):
    with pytest.raises(ValueError, match="card: a record needs region, prepared_by"):
        record(model, whole_card(region="", prepared_by=""))
    with pytest.raises(ValueError, match="card: a record needs name"):
        record(model, None)


def test_interactive_models_say_so(model):
    filed = filing(model, ReportContext(card=whole_card()))
    filed["method"] = InteractivePredictor.__name__
    made = registry_record(filed)
    assert made["deployment"]["deployment_model"]["access_type"] == "Interactive"
    assert check_record(made) == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda made: made.pop("status"),
        lambda made: made.update(tier=0),
        lambda made: made.update(surprise=1),
        lambda made: made["deployment"].pop("basic"),
        lambda made: made["deployment"]["basic"].update(publication_date="1/1/2026"),
        lambda made: made["deployment"]["basic"].update(data_curators=[]),
        lambda made: made["deployment"]["dp_variant"].update(variant_name="Strong"),
        lambda made: made["deployment"]["privacy_loss"]["privacy_parameters"].update(epsilon="1"),
        lambda made: made["deployment"]["administrative"].pop("registry_authors"),
    ],
)
def test_the_schema_notices_what_is_wrong(model, spoil):
    made = record(model, whole_card())
    spoil(made)
    assert check_record(made)


# the command


def run(*given, code=0):
    result = CliRunner().invoke(app, ["report", *map(str, given)])
    text = " ".join(result.output.split())
    assert result.exit_code == code, text
    return text


def test_from_a_new_card_to_all_files(folder, tmp_path):
    card, out, yaml = (tmp_path / name for name in ("card.toml", "r.md", "record.yaml"))
    assert "fill it in" in run("--new-card", card)
    assert "exists already" in run("--new-card", card, code=2)
    told = run("--model", folder, "--card", card, "--out", out)
    assert "left blank on the card: name, description" in told
    refused = run("--model", folder, "--card", card, "--registry", yaml, "--out", out, code=1)
    assert "a record needs name" in refused
    assert not yaml.exists()
    answers = [f"{name} = {json.dumps(text)}" for name, text in asdict(whole_card()).items()]
    card.write_text("\n".join(answers), encoding="utf-8")
    evaluation = tmp_path / "evaluation.json"
    error = Measured("error rate", Interval(0.25, 0.125, 0.375), None, None, False)
    found = Evaluation({"error": error}, (), 500, 0.95, Guarantee(), (), "", read_record(folder)[2])
    evaluation.write_text(found.to_json(), encoding="utf-8")
    given = ("--card", card, "--evaluation", evaluation, "--registry", yaml)
    told = run("--model", folder, *given, "--out", out)
    assert "left blank" not in told
    assert check_record(json.loads(yaml.read_text(encoding="utf-8"))) == []
    seal = json.loads((folder / "guarantee.json").read_text(encoding="utf-8"))["files"]
    for name, digest in seal.items():
        shown = digest in out.read_text(encoding="utf-8")
        assert shown == (name != "report.html"), "a report is not the one in the folder"


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (("--out", "r.html"), 2, "--model is needed"),
        (("--model", "m", "--out", "r.pdf"), 2, "must end in .html, .md, .json"),
    ],
)
def test_the_command_says_what_is_missing(given, code, words):
    assert words in run(*given, code=code)


def test_files_that_are_none_are_refused(folder, tmp_path):
    broken = tmp_path / "x.json"
    broken.write_text("[1]", encoding="utf-8")
    out = ("--out", tmp_path / "r.html")
    assert "is no JSON file" in run("--model", folder, "--evaluation", broken, *out, code=1)
    assert "there is no file" in run("--model", folder, "--card", tmp_path / "no", *out, code=1)
