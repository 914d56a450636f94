"""``dpadapt fit`` on tables as people have them: labels, classes, ids, dates, other separators."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer import BadParameter

from command import run
from dpadapt.cli.formats import Form, given_form, guess_form
from dpadapt.cli.outputs import report_charge_on_error, shown_in_report
from dpadapt.cli.public_table import error_bounds
from dpadapt.cli.tables import TableError, header_form, open_private
from dpadapt.evaluation import Evaluation
from dpadapt.modelfolder import load_model
from dpadapt.privacy import Ledger, PrivacyError
from dpadapt.privacy.accounting.events import GaussianEvent
from dpadapt.report.content import measured_rows

SENTINEL = "987654.321"
LINEAR = ("--set", "experts=linear")
SEEDED = ("--noise", "seeded", "--random-state", 3)


def people(n, seed, level=0.0):
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    born = pd.Timestamp(1950, 1, 1) + pd.to_timedelta(rng.integers(0, 20_000, n), unit="D")
    late = (born - pd.Timestamp(1950, 1, 1)).days.to_numpy() / 20_000
    return pd.DataFrame(
        {
            "person_id": np.arange(n) + 1000 * seed,
            "size": size.round(3),
            "town": rng.choice(["A", "B"], n),
            "born": born.strftime("%d.%m.%Y"),
            "land": "X",
            "name": [f"{SENTINEL} {i} {seed}" for i in range(n)],
            "site": rng.choice(["north", "south"], n),
            "y": (level + size + 2 * late + rng.normal(0, 0.3, n)).round(3),
        }
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    people(300, 1).to_csv("public.csv", index=False)
    people(3000, 2, level=3.0).assign(land="Z").to_csv("private.csv", index=False)
    return tmp_path


def fit(*more, code=0, label="y", out="model", private="private.csv", public="public.csv"):
    files = ("--public", public, "--private", private, "--label", label, "--out", out)
    return run("fit", *files, "--epsilon", 1, "--delta", 1e-6, *more, code=code)


def predicted(out, rows):
    model = load_model(out)
    return model.predict(rows[model.feature_names_in_])


def error_of(out, rows):
    return float(np.mean((predicted(out, rows) - rows["y"]) ** 2))


def test_private_labels_are_used_and_columns_are_told(here):
    text = fit(*LINEAR)
    assert "left out person_id (looks like an id); land (constant in public rows); name" in text
    assert "dates born (written as %d.%m.%Y)" in text
    assert "3,000 rows, with labels task regression of y" in text
    assert "Release 'mean' took" in text
    assert "epsilon = 1" in text
    model = load_model("model")
    assert list(model.feature_names_in_) == ["size", "town", "born", "site"]
    test = people(500, 3, level=3.0)
    alone = model.public_model_.predict(test[model.feature_names_in_])
    assert error_of("model", test) < 0.5 < np.mean((test["y"] - alone) ** 2)
    assert SENTINEL not in text


def test_classes_are_told_by_the_public_label(here):
    for name in ("public.csv", "private.csv"):
        table = pd.read_csv(name)
        table["y"] = np.where(table["y"] > 2.5, "high", "low")
        table.to_csv(name, index=False)
    assert "task classification of y" in fit(*LINEAR)
    model = load_model("model")
    assert list(model.classes_) == ["high", "low"]
    rows = people(400, 4, level=3.0)
    truth = np.where(rows["y"] > 2.5, "high", "low")
    assert np.mean(predicted("model", rows) == truth) > 0.85


@pytest.mark.slow
def test_whole_numbers_are_numbers_unless_told_otherwise(here):
    for name in ("public.csv", "private.csv"):
        table = pd.read_csv(name)
        table["y"] = np.clip(table["y"].round(), 0, 3).astype(int)
        table.to_csv(name, index=False)
    assert "4 different whole numbers, which are taken for numbers" in fit(*LINEAR)
    text = fit(*LINEAR, "--task", "classification", out="classes")
    assert "task classification" in text
    assert list(load_model("classes").classes_) == [0, 1, 2, 3]


def test_without_private_labels_nothing_is_spent(here):
    pd.read_csv("private.csv").drop(columns="y").to_csv("unlabelled.csv", index=False)
    run("ledger", "create", "--ledger", "b.db", "--dataset", "p", "--epsilon", 1, "--delta", 1e-6)
    account = ("--ledger", "b.db", "--dataset", "p")
    text = fit(*LINEAR, *account, private="unlabelled.csv")
    assert "without labels" in text
    assert "Nothing is learned from them" in text
    assert "p, at delta 1e-06: spent 0 of 1, left 1." in text
    assert load_model("model").guarantee_.epsilon == 0
    adapted = ("--estimator", "DiscrepancyRegressor")
    assert "spent 1" in fit(*adapted, *account, private="unlabelled.csv", out="adapted")
    needs = fit("--estimator", "ReweightingRegressor", private="unlabelled.csv", out="x", code=1)
    assert "needs private labels" in needs
    assert "--estimator DiscrepancyRegressor" in needs


@pytest.mark.parametrize(
    ("more", "used"),
    [
        (("--columns", "size,town"), ["size", "town"]),
        (("--columns", "person_id", "--columns", "size"), ["person_id", "size"]),
        (("--drop", "town,born", "--id", "site"), ["size"]),
        (("--groups", "site"), ["size", "town", "born"]),
    ],
    ids=str,
)
def test_columns_as_asked(here, more, used):
    fit(*LINEAR, *more)
    assert list(load_model("model").feature_names_in_) == used


def test_groups_need_no_private_column(here):
    pd.read_csv("private.csv").drop(columns="site").to_csv("private.csv", index=False)
    assert "site (as groups)" in fit(*LINEAR, "--groups", "site")


def test_a_date_that_looks_like_a_number(here):
    for name in ("public.csv", "private.csv"):
        table = pd.read_csv(name)
        table["born"] = pd.to_datetime(table["born"], format="%d.%m.%Y").dt.strftime("%Y%m%d")
        table.to_csv(name, index=False)
    assert "born (as you asked)" in fit(*LINEAR, "--date", "born")
    rows = people(500, 3, level=3.0)
    rows["born"] = pd.to_datetime(rows["born"], format="%d.%m.%Y").dt.strftime("%Y%m%d").astype(int)
    assert error_of("model", rows) < 0.5
    assert "are not written as dates" in fit("--date", "town", out="other", code=1)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--columns", "nope"), "--columns: the public file has no column 'nope'; it has: person"),
        (("--drop", "y"), "--drop: 'y' is the label"),
        (("--drop", "size,town,born,site"), "no column is left"),
        (("--task", "classification"), "too many for classes"),
    ],
    ids=str,
)
def test_wrong_columns_cost_nothing(here, more, words):
    assert words in fit(*LINEAR, *more, code=1)
    assert not Path("model").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--estimator", "Nope"), "--estimator Nope is not one of: AdaMixClassifier, AdaSSP"),
        (("--estimator", "AutoClassifier"), "does not predict numbers"),
        (("--estimator", "HybridTilt"), "use it in Python"),
        (("--set", "expert=linear"), "no such parameter. Did you mean experts?"),
        (("--set", "classweight=balanced"), "AutoClassifier (for classes) has: class_weight, cl"),
        (("--set", "class_weight=balancd"), "must be one of 'balanced'"),
        (("--set", "class_weight=balanced"), "no such parameter. AutoRegressor (for numbers) has"),
        (("--task", "regression", "--set", "classes=1"), "AutoRegressor (for numbers) has: exp"),
        (("--set", "experts=forest"), "'forest'"),
        (("--set", "epsilon=3"), "that is --epsilon"),
        (("--set", "experts"), "write it as name=value"),
        (("--set", "ledger__x=1"), "that is --ledger"),
        (("--set", "experts__x=1"), "experts has no parameters of its own"),
        (("--degree", 2), "--degree needs --estimator"),
        (("--noise", "exact"), "--noise exact is not for AutoRegressor"),
        (("--sep", "ab"), "--sep must be one character"),
        (("--decimal", ";"), "--decimal must be"),
        (("--encoding", "utf-16"), "save the files as UTF-8"),
        (("--encoding", "klingon"), "save the files as UTF-8"),
        (
            ("--estimator", "ReweightingRegressor", "--set", "radius=-1"),
            "radius must be a positive, finite number",
        ),
        (("--estimator", "ReweightingRegressor", "--groups", "site"), "--groups is for Auto"),
    ],
    ids=str,
)
def test_wrong_settings_cost_nothing(here, more, words):
    assert words in fit(*more, code=2)
    assert not Path("model").exists()


@pytest.mark.slow
def test_any_estimator_and_its_parameters(here):
    text = fit("--estimator", "ReweightingRegressor", "--set", "solver=statistics", *SEEDED)
    assert "with labels" in text
    assert load_model("model").estimator.solver == "statistics"
    fit("--estimator", "AdaSSPRegressor", out="adassp")


@pytest.mark.slow
def test_other_separators_are_guessed_and_told(here):
    written = {"sep": ";", "decimal": ",", "index": False, "encoding": "cp1252"}
    for name in ("public.csv", "private.csv"):
        pd.read_csv(name).assign(town=lambda t: t["town"] + "ü").to_csv(name, **written)
    text = fit(*LINEAR, *SEEDED)
    assert "separator semicolon, decimal comma, cp1252: guessed from the public file" in text
    people(300, 1).assign(town=lambda t: t["town"] + "ü").to_csv("public.csv", index=False)
    people(3000, 2, 3.0).assign(town=lambda t: t["town"] + "ü", land="Z").to_csv(
        "private.csv", index=False
    )
    assert "guessed" not in fit(*LINEAR, *SEEDED, out="plain")
    rows = people(200, 5).assign(town=lambda t: t["town"] + "ü")
    np.testing.assert_allclose(predicted("model", rows), predicted("plain", rows))


def test_a_private_file_may_have_another_separator(here):
    table = pd.read_csv("private.csv")
    fit(*LINEAR, *SEEDED, out="plain")
    rows = people(200, 5)
    for i, sign in enumerate((".", ",")):
        table.to_csv("private.csv", index=False, sep=";", decimal=sign)
        refused = fit(*LINEAR, out="refused", code=1)
        assert "has the separator semicolon, not comma" in refused
        assert "Give --decimal . or --decimal , for it" in refused
        assert not Path("refused").exists()
        told = fit(*LINEAR, *SEEDED, "--decimal", sign, out=f"other{i}")
        assert f"read with a decimal {'point' if sign == '.' else 'comma'}" in told
        assert "3,000 rows, with labels" in told
        np.testing.assert_allclose(predicted(f"other{i}", rows), predicted("plain", rows))


def test_only_the_first_line_of_a_private_file_tells_the_separator(tmp_path):
    for cells in ("1;2", "1,5;2", '"', "\x00"):
        (tmp_path / "p.csv").write_text(f"n,t\n{cells}\n")
        assert header_form(tmp_path / "p.csv", ["n", "t"], Form(";", ",")) == Form(",", ",")


def test_of_a_private_file_only_what_is_known_is_said(tmp_path, monkeypatch):
    file = tmp_path / "p.csv"
    file.write_text("a,a\n1,2\n")
    with pytest.raises(TableError, match="is no line of names like"):
        open_private(file)
    file.write_text("a,b\n1,2\n")

    def failing(*given, **named):
        raise RuntimeError(SENTINEL)

    monkeypatch.setattr("dpadapt.privacy.Private", failing)
    with pytest.raises(TableError, match="the reason is withheld") as told:
        open_private(file)
    assert SENTINEL not in str(told.value)
    assert "twice" not in str(told.value)


def test_forms_of_files(tmp_path):
    for text, form in (
        ("a,b\n1,2\n", Form()),
        ("a;b\n1,5;2\n", Form(";", ",")),
        ("a;b\n1.5;2\n", Form(";", ".")),
        ("a\tb\n1\t2\n", Form("\t")),
        ("a\n1\n", Form()),
        ("", Form()),
        ('"a;x",b\n"1;2",2\n', Form()),
    ):
        (tmp_path / "t.csv").write_text(text)
        assert guess_form(tmp_path / "t.csv", {}) == form, text


def test_one_private_line_changes_no_other(tmp_path):
    """In every form: cells are read line by line, whatever stands in the others."""
    for form in (Form(";", ",", "cp1252"), Form("\t"), Form()):
        lines = [form.sep.join(["1,5", "a"] if form.decimal == "," else ["1.5", "a"])] * 4
        cells = []
        for odd in (b'"', b"\xff\xfe\x00", b"\x81" * 3, b'1;"2\t,', form.sep.encode() * 9):
            content = [form.sep.join(["n", "t"]).encode(), *map(str.encode, lines)]
            content[2] = odd
            (tmp_path / "p.csv").write_bytes(b"\n".join(content))
            try:
                private = open_private(tmp_path / "p.csv", form=form)
            except TableError:
                private = None
            assert private is not None, odd
            block = next(private._rows.blocks())[0]
            cells.append(np.asarray(block, dtype=object)[[0, 2, 3]].tolist())
        assert all(each == cells[0] == [["1.5", "a"]] * 3 for each in cells)


def test_wrong_budgets_are_refused_before_files_are_read(here):
    for more, word in ((("--epsilon", 0), "epsilon"), (("--delta", 2), "delta")):
        assert word in fit(*more, public="nope.csv", code=1)


def test_public_rows_without_a_label_are_left_out(here):
    table = pd.read_csv("public.csv")
    table.loc[::10, "y"] = None
    table.to_csv("public.csv", index=False)
    text = fit(*LINEAR)
    assert "30 public rows have no label" in text
    assert "270 rows" in text
    table.assign(y=1.0).to_csv("public.csv", index=False)
    assert "nothing to predict" in fit(out="other", code=1)


def test_odd_budgets_are_told_before_they_are_spent(here):
    text = fit(*LINEAR, "--epsilon", 50, "--delta", 0.01)
    assert "promises next to nothing" in text
    assert "not below one over the number of private rows (3000)" in text
    assert text.index("next to nothing") < text.index("model The public model")


def test_units_are_given_in_full(here):
    assert "belong together" in fit("--unit", "person_id", code=2)
    assert "no column 'nope'" in fit("--unit", "nope", "--max-rows", 2, code=1)


def test_people_with_several_rows(here):
    table = pd.read_csv("private.csv")
    table["person_id"] = np.arange(len(table)) // 2
    table.to_csv("private.csv", index=False)
    table.to_parquet("private.parquet")
    for name in ("private.csv", "private.parquet"):
        text = fit(*LINEAR, "--unit", "person_id", "--max-rows", 2, "--force", private=name)
        assert "person_id" not in list(load_model("model").feature_names_in_)
        assert "epsilon = 1" in text
        assert f"private {name}: {len(table) // 2:,} people (up to 2 rows of each count)" in text


@pytest.mark.parametrize("encoding", ["gb18030", "shift_jis", "utf-7", "utf-16", "idna", "rot13"])
def test_encodings_that_could_mix_lines_are_refused(encoding):
    with pytest.raises(BadParameter, match="save the files as UTF-8"):
        given_form(None, None, encoding)
    for fine in ("utf-8", "latin-1", "cp1252", "cp437", "UTF8", "ascii"):
        assert given_form(None, None, fine) == {"encoding": fine}


def test_a_fit_and_its_evaluation_from_one_file_cost_the_larger(here):
    run("ledger", "create", "--ledger", "b.db", "--dataset", "p", "--epsilon", 1, "--delta", 1e-6)
    account = ("--ledger", "b.db", "--dataset", "p")
    text = fit(*LINEAR, *SEEDED, *account, "--holdout", 0.2, "--holdout-epsilon", 0.5)
    assert "p, at delta 1e-06: spent 1 of 1, left 0" in text
    assert "On 600 private rows" in text
    assert "mean absolute" in text
    assert text.index("guarantee Replacing") < text.index("On 600") < text.rindex("together")
    assert "(epsilon = 1, " in text[text.rindex("together") :]
    assert text.count("Replacing any one private row") == 1, "one guarantee, told once"
    assert "3,000 rows, with labels; 600 rows are held out" in text
    charge, used = Ledger("b.db").charges("p")
    assert "held out" in charge.label
    assert "paid by charge 1" in used.label
    found = Evaluation.from_dict(json.loads(Path("model.evaluation.json").read_text()))
    assert found.guarantee.epsilon == pytest.approx(0.5, rel=1e-6)
    assert found["mae"].verdict == "better"
    assert load_model("model").guarantee_.epsilon == pytest.approx(1.0, rel=1e-6)
    page = Path("model/report.html").read_text(encoding="utf-8")
    (mae,) = (row for row in measured_rows(found.to_dict()) if row[0] == found["mae"].title)
    assert mae[1] in page
    assert "--force to replace it" in fit("--holdout", 0.2, out="./model", code=1)


def test_what_a_largest_error_is_comes_from_public_labels():
    labels = np.append(np.zeros(999), 50.0)
    assert error_bounds(labels)["label_range"] == (0.0, 50.0)
    assert 0 < error_bounds(labels)["largest_error"] < 1
    assert error_bounds(np.full(9, 3.0))["largest_error"] >= 0


def test_an_evaluation_that_no_report_can_show_is_told(here, monkeypatch):
    monkeypatch.setattr("dpadapt.cli.fit.shown_in_report", lambda *given, **context: False)
    text = fit(*LINEAR, *SEEDED, "--holdout", 0.2)
    assert "the report in the model folder could not be written again" in text
    assert Path("model.evaluation.json").exists()
    assert load_model("model").guarantee_.events


def test_a_folder_that_cannot_be_replaced_stays_as_it_was(here):
    fit(*LINEAR, *SEEDED)
    model, before = load_model("model"), Path("model/report.html").read_bytes()
    Path("model/mine.txt").write_text("not of a model folder", encoding="utf-8")
    found = SimpleNamespace(to_dict=lambda: {"measures": {}})
    assert not shown_in_report(Path("model"), model, None, found)
    assert Path("model/report.html").read_bytes() == before


def test_any_estimator_and_people_can_be_held_out(here):
    table = pd.read_csv("private.csv")
    table["person_id"] = np.arange(len(table)) // 2
    table.to_csv("private.csv", index=False)
    more = ("--unit", "person_id", "--max-rows", 2, "--evaluation-out", "e.json", *SEEDED)
    text = fit("--estimator", "DiscrepancyRegressor", "--holdout", 0.5, *more)
    assert "On 750" in text
    assert "held out With 750 people at" in text
    assert "replace-unit" in text[text.rindex("together") :]
    assert Path("e.json").exists()


@pytest.mark.parametrize(
    ("more", "words", "code"),
    [
        (("--holdout-epsilon", 1), "need --holdout", 2),
        (("--holdout", 1.5), "--holdout must lie", 1),
        (("--holdout", 0.2, "--holdout-epsilon", 0), "epsilon", 1),
        (("--holdout", 1e-6), "would have nobody", 1),
        (("--holdout", 0.2, "--evaluation-out", "private.csv"), "is what is read", 2),
        (("--holdout", 0.2, "--evaluation-out", "no/e.json"), "there is no folder", 1),
        (("--holdout", 0.2, "--evaluation-out", "model/e.json"), "sealed", 2),
        (("--holdout", 0.2, "--evaluation-out", "there.json"), "exists", 1),
    ],
    ids=str,
)
def test_what_cannot_be_held_out_costs_nothing(here, more, words, code):
    Path("there.json").write_text("kept")
    assert words in fit(*LINEAR, *more, code=code)
    assert not Path("model").exists()
    assert Path("there.json").read_text() == "kept"


def test_a_hold_out_needs_labels(here):
    pd.read_csv("private.csv").drop(columns="y").to_csv("unlabelled.csv", index=False)
    assert "needs private labels" in fit("--holdout", 0.2, private="unlabelled.csv", code=1)


def test_a_charge_is_told_whatever_fails(here, monkeypatch):
    run("ledger", "create", "--ledger", "b.db", "--dataset", "p", "--epsilon", 1, "--delta", 1e-6)
    account = ("--ledger", "b.db", "--dataset", "p")

    def fails(*given, **named):
        raise PrivacyError("after the charge")

    with monkeypatch.context() as patch:
        patch.setattr("dpadapt.privacy.Session.release", fails)
        assert "The ledger was charged for p" in fit(*LINEAR, *account, code=1)
    assert "Nothing was charged for p" in fit(*LINEAR, *account, code=3)
    assert len(Ledger("b.db").charges("p")) == 1


def test_a_charge_of_somebody_else_is_not_told_as_ones_own(tmp_path, capsys):
    mine, theirs = (Ledger(tmp_path / "b.db") for _ in range(2))
    account = mine.create("p", epsilon=1, delta=1e-6)
    event = GaussianEvent("mean", sensitivity=1.0, scale=20.0)

    def charge_and_fail(who):
        who.account("p").charge([event], label="fit")
        raise PrivacyError("after the charge")

    def failing(who):
        with pytest.raises(PrivacyError), report_charge_on_error(account):
            charge_and_fail(who)
        return capsys.readouterr().err

    assert "Nothing was charged for p." in failing(theirs)
    assert "The ledger was charged for p" in failing(mine)


def test_lines_of_a_cell_are_nobodys_rows(tmp_path):
    """With ``unit``, whose rows they are must not be for a cell to say."""
    table = pd.DataFrame(
        {"id": ["ann", "bob", "cy"], "x": [1.0, 2.0, 3.0], "note": ["a", "b", "c"]}
    )
    files = [tmp_path / name for name in ("plain.csv", "lines.csv")]
    table.to_csv(files[0], index=False)
    table.loc[0, "note"] = 'a "b"\nbob,9.0,x\ncy,9.0,x'
    table.to_csv(files[1], index=False)
    plain, lines = (open_private(file, unit="id", max_rows=2) for file in files)
    assert plain.n_people == lines.n_people == 3
    found = [
        np.vstack([np.asarray(X["x"], dtype=float) for X, _ in each._rows.by_people().blocks()])
        for each in (plain, lines)
    ]
    np.testing.assert_array_equal(*found)
