"""``dpadapt check``: everything is found, on a screen only, and nothing is left behind."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpadapt
from command import run


def people(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "person_id": rng.permutation(n) + 1,
            "size": rng.normal(size=n).round(4),
            "town": rng.choice(["A", "B"], n),
            "land": "X",
            "income": rng.gamma(2.0, 1.0, n).round(4),
            "y": rng.choice(["yes", "no"], n),
        }
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(400, 0).to_csv("public.csv", index=False)
    people(900, 1).to_csv("private.csv", index=False)
    return tmp_path


def check(
    *more, label="y", public="public.csv", private="private.csv", code=0, show=("--yes-show",)
):
    files = ("--public", public, "--private", private)
    labelled = () if label is None else ("--label", label)
    return run("check", *files, *labelled, *show, *more, code=code)


def test_what_it_advises_can_be_tried_before_fit_gets_it(here):
    rows = people(900, 1).assign(person_id=np.arange(900) // 3, street=1.0)
    rows.to_csv("private.csv", index=False)
    people(400, 0).assign(street=np.arange(400) / 7).to_csv("public.csv", index=False)
    advised = check("--epsilon", 1)
    assert "fit with --unit person_id and --max-rows" in advised
    assert "900 private rows at epsilon 1" in advised
    text = check("--epsilon", 1, "--unit", "person_id", "--drop", "street")
    assert "900 rows of 300 people" in text
    assert "300 people at epsilon 1" in text
    assert "fit with --unit" not in text
    assert "street" not in text
    assert "nothing stands in the way" in text
    assert "has no column 'who'" in check("--unit", "who", code=1)
    assert "has no column 'road'" in check("--drop", "road", code=1)
    assert "'y' is the label" in check("--drop", "y", code=1)


def test_what_is_fine_is_ready(here):
    text = check("--epsilon", 1)
    assert "nothing stands in the way" in text
    assert "person_id: left out by fit: looks like an id" in text
    assert "land: left out by fit: constant in public rows" in text
    assert "for the owner of the private file alone" in text
    check(label=None)


def test_columns_that_name_people_are_asked_about_by_their_names_alone(here):
    for name in ("public.csv", "private.csv"):
        table = pd.read_csv(name).rename(columns={"town": "first_name"})
        table["first_name"] += table.index.map(lambda place: "bcd"[place % 3])
        table.assign(phone_service=["yes", "no"] * (len(table) // 2)).to_csv(name, index=False)
    text = check()
    assert "phone_service: does it" not in text
    assert "look first_name: does it name people?" in text
    assert "leave it out: --drop first_name." in text
    assert "nothing stands in the way" in text


def test_everything_that_is_wrong_is_told(here):
    table = people(900, 1).astype(object)
    table["y"] = table["y"].str.upper()
    table.loc[:9, "y"] = "maybe"
    table.loc[10:19, "y"] = None
    table.loc[:99, "size"] = "42 yrs"
    table.loc[:399, "town"] = "Q"
    table.loc[400:, "income"] = None
    table.loc[:99, "income"] = 1e6
    table["person_id"] = np.arange(900) // 3
    table.to_csv("private.csv", index=False)
    text = check("--epsilon", 0.001, "--delta", 0.01)
    for words in (
        "are of class 'NO', and left out: is it 'no', spelt differently?",
        "10 private rows are of class 'maybe', and left out: public rows have no such class",
        "10 of 900 private labels are missing (1.1%)",
        "size: 100 private cells are no numbers, and counted as missing: '42 yrs'",
        "town: 44.4% of the private rows have a value that no public row has: 'Q'",
        "leave the column out: --drop town",
        "income: 56% of the private cells are missing, 0% of the public ones",
        "leave the column out: --drop income",
        "income: 11.1% of the private rows lie outside the public range",
        "person_id: 300 different ids in 900 private rows, up to 3 rows each",
        "delta 0.01 is not below 1/900: one person may be told outright. Give fit --delta 1e-06",
        "That is too few rows for this epsilon",
    ):
        assert words in text, words
    assert "things to see to" in text


def test_each_line_that_must_be_done_says_what_to_do(here):
    public, private = pd.read_csv("public.csv"), people(900, 1)
    private["size"] += 100 * public["size"].std()
    private.to_csv("private.csv", index=False)
    text = check()
    assert "size: 100.0% of the private rows lie outside the public range" in text
    assert "Is it in other units? Correct it." in text
    assert "rows: 100.0% of the private rows are farther from the middle of the public rows" in text
    assert "(most by size" in text
    assert "longer than 99" not in text


def test_two_columns_of_one_name_are_told(here):
    rows = pd.read_csv("private.csv").rename(columns={"income": "size"})
    rows.to_csv("private.csv", index=False)
    assert "two columns of private.csv are called 'size'" in check(code=1)


def test_labels_that_are_lists_are_told(here):
    people(400, 0).assign(y=[["no"]] * 400).to_parquet("public.parquet")
    assert "--label y: 400 of its public cells are lists" in check(public="public.parquet", code=1)


def test_rows_in_both_files_and_rows_twice(here):
    both = pd.concat([people(400, 0).iloc[:200], people(300, 3), people(300, 3)])
    both.assign(person_id=range(len(both))).to_csv("private.csv", index=False)
    text = check()
    assert "300 private rows repeat another one" in text
    assert "200 private rows are in the public file as well" in text
    assert "out of the public file; if rows are alike by chance, go on" in text


def test_rows_with_other_labels_are_not_in_both_files(here):
    twins = people(400, 0).assign(y=lambda t: t["y"].map({"yes": "no", "no": "yes"}))
    twins = twins.assign(person_id=range(1000, 1400))
    twins.to_csv("private.csv", index=False)
    assert "in the public file as well" not in check()
    twins.drop(columns="y").to_csv("private.csv", index=False)
    assert "400 private rows are in the public file as well" in check()


def test_dates_in_another_hand(here):
    days = pd.Series(pd.date_range("2020-01-01", periods=900))
    people(400, 0).assign(born=days[:400].dt.strftime("%d.%m.%Y")).to_csv("public.csv", index=False)
    private = people(900, 1).assign(born=days.dt.strftime("%m/%d/%Y"))
    private.to_csv("private.csv", index=False)
    text = check()
    assert "born: 900 private cells are no dates as public rows write them (%d.%m.%Y)" in text
    private.assign(born=days).to_parquet("private.parquet")
    assert "no dates" not in check(private="private.parquet")


def test_columns_and_number_labels(here):
    people(900, 1).drop(columns="town").assign(extra=1).to_parquet("private.parquet")
    text = check(private="private.parquet")
    assert "the private file lacks 'town'" in text
    assert "the public file lacks 'extra'" in text
    table = people(900, 1).astype(object)
    table.loc[:8, "income"], table.loc[9:99, "income"] = "much", 99.0
    table.to_csv("private.csv", index=False)
    text = check("--epsilon", 50, label="income")
    assert "9 private labels are no numbers, such as 'much'" in text
    assert "private labels are outside the public range" in text
    assert "Are labels in other units?" in text
    assert "promises next to nothing" in text
    table.drop(columns="y").to_csv("private.csv", index=False)
    assert "has no labels" in check()


def test_it_is_shown_on_a_screen_and_nowhere_else(here):
    before = {path: path.read_bytes() for path in here.rglob("*")}
    text = check(show=(), code=1)
    assert "the output is no terminal" in text
    assert "'A'" not in text
    check()
    assert {path: path.read_bytes() for path in here.rglob("*")} == before


def test_nothing_else_uses_what_it_sees():
    """The look at private cells is in one file, and one command imports it."""
    source = Path(dpadapt.__file__).parent
    users = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if any(
            isinstance(node, ast.ImportFrom | ast.Import) and "preflight" in ast.unparse(node)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    ]
    assert users == ["cli/check.py"]
    for name in ("check", "preflight"):
        text = (source / "cli" / f"{name}.py").read_text(encoding="utf-8")
        assert "Private(" not in text
        for word in ("open_private", ".write", "to_csv", "to_parquet", "Ledger", "dump"):
            assert word not in text, word


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "bad.csv is empty"),
        ("size,town\n", "has no rows"),
        ("a;b\n1;2\n", "is no line of names like that of the public one"),
        ('size,y\n"1,yes\n', "lacks"),
    ],
)
def test_damaged_files(here, content, words):
    Path("bad.csv").write_text(content)
    assert words in check(private="bad.csv", code=int(words != "lacks"))


def test_bad_arguments(here):
    assert "no column 'nope'" in check(label="nope", code=1)
    assert "no file" in check(private="nope.csv", code=1)
    assert "epsilon" in check("--epsilon", 0, code=1)
    assert "delta" in check("--delta", 2, code=1)
