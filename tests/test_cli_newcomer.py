"""What somebody new meets: people with several rows, other letters, and errors that say what to do.

Most of it is refused or told before a fit, so that nothing here fits a private model.
"""

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from command import run
from dpadapt import AutoClassifier, AutoRegressor, Private
from dpadapt.cli import attack, audit
from dpadapt.cli.formats import Form, other_encoding, private_header
from dpadapt.cli.options import estimator_names
from dpadapt.cli.public_table import ColumnChoice, Task, choose_columns, read_public_table
from dpadapt.cli.tables import both_forms
from dpadapt.features import column_roles
from dpadapt.features.columns import named_like_a_code
from dpadapt.learning.cautions import CautionWarning, budget_cautions, size_cautions
from dpadapt.modelfolder import load_model, save_model

BUDGET = ("--epsilon", 1, "--delta", 1e-6)


def people(n, rows=4, seed=0):
    """Rows of people with several each: a code, what stays the same, and what changes."""
    rng = np.random.default_rng(seed)
    who = np.repeat(rng.permutation(n), rows)
    table = pd.DataFrame(
        {
            "who": who * 7 + 100,
            "born": rng.integers(1940, 1970, n)[who],
            "wage": rng.integers(800, 3000, len(who)),
            "größe": rng.normal(size=len(who)).round(3),
        }
    )
    table["bracket"] = table["wage"] // 200
    table["y"] = (table["born"] / 10 + table["größe"]).round(3)
    return table.sample(frac=1, random_state=seed).reset_index(drop=True)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    german = {"index": False, "sep": ";", "decimal": ","}
    people(60).to_csv("public.csv", encoding="cp1252", **german)
    people(90, seed=1).to_csv("private.csv", encoding="utf-8", **german)
    return tmp_path


def fit(*more, code=1, private="private.csv", public="public.csv", budget=BUDGET, label="y"):
    files = ("--public", public, "--private", private, "--label", label, "--out", "model")
    return run("fit", *files, *budget, *more, code=code)


# people with several rows


def test_a_code_of_people_is_found_by_what_stays_the_same_in_its_rows():
    kinds = {role.name: role.kind for role in column_roles(people(300))}
    assert kinds["who"] == "unit"
    assert {kinds[name] for name in ("born", "wage", "größe", "bracket")} == {"feature"}


def test_a_code_of_people_is_found_by_its_name():
    alone = people(300)[["who", "wage"]]
    assert column_roles(alone)[0].kind == "feature"
    for name in ("idcode", "personid", "cust_no", "caseKey", "nr", "ID"):
        role = column_roles(alone.rename(columns={"who": name}))[0]
        assert role.kind == "unit", name
        assert role.why.endswith("300 different values in 1,200 rows")


def test_measurements_and_levels_are_no_people():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"NO": rng.integers(0, 200, 900), "price": rng.integers(0, 300, 900)})
    table["price_eur"], table["price_class"] = table["price"] * 2, table["price"] // 50
    table["state"] = rng.choice([f"state {i}" for i in range(40)], 900)
    table["capital"] = table["state"] + " city"
    table["day_of_year"] = rng.integers(1, 366, 900)
    table["season"] = table["day_of_year"] * 7919 % 5
    twice = pd.concat([table, table])
    for rows in (table, twice):
        assert {role.kind for role in column_roles(rows)} == {"feature"}
    assert not named_like_a_code("no_of_rooms")


def test_what_is_left_out_is_told_with_what_to_do(capsys):
    table = people(60).drop(columns="y")
    assert "who" not in choose_columns(table, ColumnChoice(), "y").names
    text = " ".join(capsys.readouterr().out.split())
    assert "left out who (looks like an id of people with several rows: 60 different" in text
    assert "`dpadapt fit --unit who --max-rows 5` protects all rows of a person" in text
    assert "give --keep who" in text
    assert "who" in choose_columns(table, ColumnChoice(keep=["who"]), "y").names
    assert choose_columns(table, ColumnChoice(columns=["who", "born"]), "y").names == (
        "who",
        "born",
    )
    assert "who" not in choose_columns(table, ColumnChoice(unit="who"), "y").names
    assert "note" not in capsys.readouterr().out.split("says whose row it is")[-1]


def test_check_finds_people_in_the_private_file_too(here):
    files = ("--public", "public.csv", "--private", "private.csv", "--label", "y")
    text = run("check", *files, "--yes-show")
    assert "who: 90 different ids in 360 private rows, up to 4 rows each" in text
    assert "fit with --unit who and --max-rows" in text
    people(60, rows=1).to_csv("public.csv", index=False)  # nobody twice: nothing to see there
    people(90, seed=1).to_csv("private.csv", index=False)
    assert "who: 90 different ids in 360 private rows" in run("check", *files, "--yes-show")


def test_python_says_that_a_row_number_was_used():
    table = people(60).assign(row=range(240))
    names = ["row", "born", "größe"]
    model = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(table[names], table["y"])
    assert "The column row looks like an id, and was used all the same" in " ".join(model.explain_)
    model.fit(table[names[1:]], table["y"])
    assert "looks like" not in " ".join(model.explain_)


def test_a_model_takes_the_table_as_it_came(tmp_path, monkeypatch):
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    table = people(60)
    names = ["born", "größe"]
    model = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(table[names], table["y"])
    loaded = load_model(save_model(model, tmp_path / "m"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(loaded.predict(table), model.predict(table[names]))
    with pytest.raises(ValueError, match="born"):
        loaded.predict(table.drop(columns="born"))


# files


def test_each_file_may_have_its_own_letters(here, capsys):
    form, own = both_forms(Path("public.csv"), Path("private.csv"), {})
    assert (form.encoding, own.encoding) == ("cp1252", "utf-8")
    assert "private.csv: utf-8, by the names in its first line" in capsys.readouterr().out
    said = both_forms(Path("public.csv"), Path("private.csv"), {"encoding": "cp1252"})
    assert said[1].encoding == "cp1252"
    forced = both_forms(Path("public.csv"), Path("private.csv"), {}, "latin-1")
    assert forced[1].encoding == "latin-1"
    line = "size,y\nä,1\n".encode()  # what is behind the first line is not looked at
    assert private_header(line.split(b"\n")[0], ["size", "y"], Form(encoding="cp1252"))[1] == (
        "cp1252"
    )
    assert "--private-encoding 'utf-16'" in fit("--private-encoding", "utf-16", code=2)


def test_check_names_the_letters_as_the_cause(here):
    names = {"größe": "size"}
    towns = np.array(["Köln", "Bonn"] * 200)
    for name, encoding in (("public", "cp1252"), ("private", "utf-8")):
        table = people(60).rename(columns=names)
        table.assign(town=towns[:240]).to_csv(f"{name}.csv", index=False, encoding=encoding)
    files = ("--public", "public.csv", "--private", "private.csv", "--label", "y")
    text = run("check", *files, "--yes-show")
    assert "not cp1252 but looks like utf-8" in text
    assert "Give --private-encoding utf-8" in text
    text = run("check", *files, "--yes-show", "--private-encoding", "utf-8")
    assert "looks like utf-8" not in text
    assert other_encoding(b"\xff", "latin-1") == ""


def test_check_tells_how_files_are_written_and_counts_what_is_odd(here):
    table = people(60).assign(day="03.04.2020")
    table.loc[::2, "day"] = "13.04.2021"
    table.to_csv("public.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    table.loc[0, "y"] = None
    table.to_csv("private.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    with open("private.csv", "a", encoding="cp1252") as file:
        file.write("1;1950;900;1,0;4;190;13.04.2021;one;more\n")
    files = ("--public", "public.csv", "--private", "private.csv", "--label", "y")
    text = run("check", *files, "--yes-show")
    assert "separator semicolon, decimal comma, cp1252" in text
    assert "dates day (written as %d.%m.%Y)" in text
    assert "1 of 241 private labels are missing (0.4%)" in text
    assert "1 private rows have more cells than the first line has names" in text


@pytest.mark.parametrize("command", ["audit", "preview"])
def test_audit_and_preview_read_what_fit_reads(here, command, monkeypatch):
    class Read(Exception):
        pass

    def stop(*given, **options):
        raise Read(given, options)

    monkeypatch.setattr("dpadapt.preview.preview", stop)
    monkeypatch.setattr(attack, "run_attack", stop)
    own = ("--rows", 500, "--epsilon", 1) if command == "preview" else BUDGET
    asked = ("--drop", "wage", "--id", "bracket", "--keep", "who", "--groups", "born")
    text = run(command, "--public", "public.csv", "--label", "y", *own, *asked, code=70)
    assert "separator semicolon, decimal comma, cp1252" in text
    assert "left out born (as groups); bracket (as ids); wage (as you asked)" in text
    assert "did not foresee (Read)" in text


def test_an_attack_sees_named_dates_and_groups():
    table = people(60).assign(day=20200101).rename(columns={"größe": "size"})
    table.loc[::2, "day"] = 20210315
    asked = ColumnChoice(date=["day"], groups="bracket", drop=["who", "wage"])
    chosen = choose_columns(table.drop(columns="y"), asked, "y")
    assert chosen.dates == ("day",)
    model = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"])
    rows, y = table[list(chosen.names)], table["y"].to_numpy()
    target = attack.AttackedFit(model, rows, y, dates=chosen.dates, groups=chosen.groups)
    fitted = target.fit()(target.played)
    assert fitted.steps[0][0] == "features"
    assert fitted.guarantee_.epsilon == pytest.approx(1.0)


def test_an_audit_says_how_long_it_takes_and_what_few_runs_show(capsys):
    target = SimpleNamespace(estimator=SimpleNamespace(epsilon=1.0, delta=1e-6))
    audit._say_runs(target, 10)
    text = " ".join(capsys.readouterr().out.split())
    assert "10 of the attack and up to 35 replays, each of them two fits: 90 fits" in text
    assert "so few runs can hardly refute anything" in text
    audit._say_runs(target, 5000)
    assert "hardly" not in capsys.readouterr().out


# words


@pytest.mark.parametrize(
    ("more", "words", "code"),
    [
        ({"public": "nope.csv"}, "--public: there is no file nope.csv.", 1),
        ({"private": "nope.csv"}, "--private: there is no file nope.csv.", 1),
        ({"label": "y", "more": ("--sep", ",")}, "Which separator does it use? See --sep", 1),
        ({"budget": ("--epsilon", 0, "--delta", 1e-6)}, "leave the private rows out", 1),
        ({"budget": ("--epsilon", 1e9, "--delta", 1e-6)}, "at most 1,000,000", 1),
        ({"more": ("--holdout", 0.2, "--holdout-epsilon", 1e9)}, "at most 1,000,000", 1),
    ],
)
def test_errors_say_which_option_and_what_to_do(here, more, words, code):
    more = dict(more)
    assert words in fit(*more.pop("more", ()), **more, code=code)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--set", "nope=1"), "--set nope"),
        (("--estimator", "Nope"), "--estimator Nope is not one of"),
        (("--ledger", "none.db", "--dataset", "p"), "none.db"),
    ],
)
def test_settings_are_refused_before_files_are_read(here, monkeypatch, more, words):
    def read(*given, **options):
        raise AssertionError("a file was read")

    monkeypatch.setattr("dpadapt.cli.fit.both_forms", read)
    assert words in fit(*more, code=4 if "--ledger" in more else 2)


def test_completion_knows_the_estimators():
    assert "ReweightingRegressor" in estimator_names("Re")
    assert all(each.startswith("Auto") for each in estimator_names("Auto"))


def test_an_epsilon_that_cannot_be_stated_is_refused_before_it_is_spent():
    private = Private([[1.0]] * 50, [1.0] * 50)
    model = AutoRegressor(epsilon=1e9, delta=1e-6, experts=["linear"])
    with pytest.raises(ValueError, match="epsilon must be at most 1,000,000"):
        model.fit([[1.0], [2.0]] * 20, [1.0, 2.0] * 20, private=private)
    assert private.spent(1e-6).epsilon == 0


def test_labels_that_cannot_be_used_are_named():
    table = people(20)[["born", "größe"]].assign(town="A")
    texts = ["Sí", "No"] * 40
    model = AutoRegressor(epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="y holds texts, and this predicts numbers; for classes"):
        model.fit(table, texts)
    for kind in (AutoRegressor, AutoClassifier):
        for rows in (table, table[["born"]].to_numpy()):
            with pytest.raises(ValueError, match="y has missing labels"):
                kind(epsilon=1.0, delta=1e-6).fit(rows, [1.0, np.nan] * 40)


def test_private_rows_without_labels_are_warned_of():
    table = people(20)[["born", "größe"]]
    model = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"])
    with pytest.warns(CautionWarning, match="The private rows have no labels") as told:
        model.fit(table, table["born"], private=Private(table))
    assert len(told) == 1
    assert model.guarantee_.epsilon == 0


def test_too_few_rows_are_told():
    assert budget_cautions(1.0, 1e-6, 1)[0].startswith("there is one private row;")
    assert "Expect the public model" in size_cautions(0.01, 1e-6, 1000)[0]
    assert size_cautions(1.0, 1e-6, 1000) == []
    assert "too few to measure by" in size_cautions(1.0, 1e-6, 20, held_out=True)[0]
    assert size_cautions(1.0, 1e-6, 1000, held_out=True) == []


def test_public_rows_without_any_label(here):
    people(60).assign(y=None).to_csv("public.csv", index=False)
    with pytest.raises(ValueError, match="has no labels in column 'y'"):
        read_public_table(
            Path("public.csv"), "y", form=Form(), task=Task.auto, asked=ColumnChoice()
        )
