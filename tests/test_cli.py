"""The command line: every command, and one clear line for everything that can go wrong."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from command import run
from dpadapt import AdaptationPipeline
from dpadapt.cli import app
from dpadapt.cli.tables import open_private
from dpadapt.features import NumberCells, TextCells
from dpadapt.modelfolder import Destination, load_model

SENTINEL = "987654.321"
BASIC = ["--label", "y", "--epsilon", "1", "--delta", "1e-6"]
COMMANDS = (
    [],
    ["demo"],
    ["check"],
    ["export"],
    ["fit"],
    ["predict"],
    ["preview"],
    ["report"],
    ["ledger"],
    ["ledger", "create"],
    ["ledger", "show"],
    ["ledger", "export"],
    ["agent"],
)


def table(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    size = rng.normal(shift, 1.0, n)
    town = rng.choice(["A", "B", "C"], n)
    member = rng.random(n) < 0.5
    return pd.DataFrame(
        {"size": size, "town": town, "member": member, "y": size + size**2 + (town == "A")}
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    table(600, 0).to_csv(folder / "public.csv", index=False)
    table(6000, 1, 0.4).drop(columns="y").to_csv(folder / "private.csv", index=False)
    table(6000, 1, 0.4).to_parquet(folder / "private.parquet")
    return folder


@pytest.fixture
def drawing_here(files, tmp_path, monkeypatch):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def here(drawing_here, monkeypatch):
    """The same, where reports have no figures: to draw them takes longer than to fit."""
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    return drawing_here


QUICK = ("--estimator", "DiscrepancyRegressor")


def fit(*more, private="private.parquet", public="public.csv", out="model", code=0, kind=QUICK):
    files = ("--public", public, "--private", private, "--out", out)
    return run("fit", *files, *BASIC, *kind, *more, code=code)


@pytest.fixture(scope="module")
def fitted(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("fitted") / "model"
    fit(private=files / "private.parquet", public=files / "public.csv", out=out)
    return out


@pytest.fixture
def model(here, fitted):
    """A folder ``model`` here, as ``fit()`` would write it."""
    shutil.copytree(fitted, "model")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_help_has_examples(command):
    text = run(*command, "--help")
    assert "Example" in text
    assert "dpadapt" in text.partition("Example")[2]


def test_version():
    assert run("--version").startswith("dpadapt 0.")


def test_fit_predict_report(drawing_here):
    text = fit("--degree", 2)
    assert "Replacing any one private row by any other" in text
    assert "does not use the private labels in column 'y'" in text
    assert "the public rows were weighted" in text
    run("predict", "--model", "model", "--input", "public.csv", "--out", "p.csv")
    predicted, public = pd.read_csv("p.csv")["prediction"], pd.read_csv("public.csv")
    assert len(predicted) == len(public)
    assert np.corrcoef(predicted, public["y"])[0, 1] > 0.95
    assert "epsilon = 1" in run("report", "--model", "model", "--out", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "data:image/svg+xml;base64," in page


def test_csv_and_parquet_give_the_same_model(here):
    seeded = ("--noise", "seeded", "--random-state", 3)
    assert "do not release" in fit(*seeded, out="a")
    fit(*seeded, private="private.csv", out="b")
    first, second = load_model("a").estimator_, load_model("b").estimator_
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-6)
    assert load_model("a").guarantee_.noise == "seeded"


def test_one_strange_private_row_changes_no_other_row(here):
    """The type of a CSV column must not depend on the cells of other people."""
    rows = table(50, 2).drop(columns="y").assign(code=[1, 2] * 25)
    rows.to_csv("plain.csv", index=False)
    rows.astype(object).replace({"code": {2: 2}}).to_csv("odd.csv", index=False)
    text = Path("odd.csv").read_text().splitlines()
    text[1] = "strange,strange,strange,strange"
    Path("odd.csv").write_text("\n".join(text))
    plain, odd = (next(open_private(Path(f))._rows.blocks())[0] for f in ("plain.csv", "odd.csv"))
    for cells in (NumberCells(), TextCells()):
        before, after = cells.fit_transform(plain), cells.fit_transform(odd)
        np.testing.assert_array_equal(before[1:], after[1:])


def test_flags_with_gaps_read_the_same_from_both_kinds_of_files(here):
    public = table(600, 0).astype({"member": object})
    public.iloc[::9, 2] = None
    public.to_csv("public.csv", index=False)
    fit("--noise", "seeded", "--random-state", 3, out="a")
    fit("--noise", "seeded", "--random-state", 3, private="private.csv", out="b")
    first, second = load_model("a").estimator_, load_model("b").estimator_
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-6)


def test_missing_and_unknown_cells(here):
    public = table(600, 0).astype(object)
    public.iloc[::9, 0], public.iloc[::7, 1] = None, None
    public.to_csv("public.csv", index=False)
    private = table(500, 3).astype(object)
    private.iloc[::3, 0], private.iloc[::4, 1] = "n/a?", "never seen"
    private.to_csv("private.csv", index=False)
    fit(private="private.csv")
    private.drop(columns="y").to_csv("new.csv", index=False)
    run("predict", "--model", "model", "--input", "new.csv", "--out", "p.parquet")
    assert pd.read_parquet("p.parquet")["prediction"].notna().all()


def test_samples_too_far_apart_are_told_kindly(here):
    far = table(2000, 1).assign(size=50.0).drop(columns="y")
    far.to_parquet("private.parquet")
    assert "did not adapt" in fit("--degree", 2)


def test_columns_that_only_the_private_file_has_are_named(here):
    table(2000, 1).assign(extra=1).to_parquet("private.parquet")
    assert "the public file lacks them: 1 private column(s)" in fit()


def test_a_folder_of_parquet_files(here):
    Path("people").mkdir()
    for i in range(2):
        table(500, i).to_parquet(f"people/{i}.parquet")
    assert "1,000 rows" in fit(private="people")


def test_force(here):
    fit()
    assert "exists; use --force" in fit(code=1)
    fit("--force")


def test_ledger(here):
    run("ledger", "create", "--ledger", "b.db", "--dataset", "p", "--epsilon", 1.2, "--delta", 1e-6)
    account = ("--ledger", "b.db", "--dataset", "p")
    assert "p, at delta 1e-06: spent 1 of 1.2, left" in fit(*account)
    refused = fit(*account, out="second", code=3)
    assert "budget of epsilon 1.2" in refused
    assert "Ask for at most what is left" in refused
    assert "need not add up to the budget" in run("ledger", "show", "--ledger", "b.db")
    assert not Path("second").exists()
    assert "p 1.2 1e-06 1 " in run("ledger", "show", "--ledger", "b.db")
    assert "DiscrepancyRegressor" in run("ledger", "show", *account)
    assert json.loads(run("ledger", "export", *account))["spent"] == pytest.approx(1.0)
    run("ledger", "export", *account, "--out", "p.json")
    assert len(json.loads(Path("p.json").read_text())["charges"]) == 1
    run("report", "--model", "model", *account)
    assert "Budget of the data set" in Path("report.html").read_text(encoding="utf-8")


def test_nothing_is_written_over_a_ledger(here):
    account = ("--ledger", "b.db", "--dataset", "p")
    run("ledger", "create", *account, "--epsilon", 1, "--delta", 1e-6)
    run("ledger", "create", "--ledger", "other.db", *account[2:], "--epsilon", 1, "--delta", 1e-6)
    (here / "link.json").symlink_to("b.db")
    before = [(here / name).read_bytes() for name in ("b.db", "other.db")]
    for out in ("b.db", "./b.db", here / "b.db", "link.json", "b.db-journal", "other.db"):
        words = "database" if out == "other.db" else "the ledger itself"
        said = run("ledger", "export", *account, "--out", out, code=2)
        assert words in " ".join(said.replace("\u2502", " ").split())
        run("report", "--model", "model", *account, "--out", out, code=2)
    run("report", "--model", "model", "--out", "b.db", code=2)
    run("predict", "--model", "model", "--input", "new.csv", "--out", "b.db", code=2)
    assert [(here / name).read_bytes() for name in ("b.db", "other.db")] == before
    assert not (here / "b.db-journal").exists()
    (here / "p.json").write_text("an earlier one")
    run("ledger", "export", *account, "--out", "p.json")
    assert json.loads((here / "p.json").read_text())["spent"] == 0
    assert not list(here.glob(".*"))


def test_nothing_is_charged_when_the_model_cannot_be_written(here):
    run("ledger", "create", "--ledger", "b.db", "--dataset", "p", "--epsilon", 3, "--delta", 1e-6)
    Path("model").write_text("a file")
    fit("--ledger", "b.db", "--dataset", "p", code=1)
    assert (
        json.loads(run("ledger", "export", "--ledger", "b.db", "--dataset", "p"))["charges"] == []
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"public": "nope.csv"}, "--public: there is no file nope.csv"),
        ({"private": "nope.parquet"}, "--private: there is no file nope.parquet"),
        ({"private": "nope.xlsx"}, "there is no file nope.xlsx"),
        ({"public": "text.txt"}, "must end in .csv or .parquet"),
        ({"public": "empty.csv"}, "--public: empty.csv is empty."),
        ({"public": "norows.csv"}, "has no rows"),
        ({"public": "textlabel.csv"}, "1 of 2 public labels in column 'y' are no numbers"),
        (
            {"public": "nolabel.csv"},
            "no column 'y' for the label; it has: one column only, 'a'.",
        ),
        ({"public": "onlylabel.csv"}, "no column besides the label"),
        ({"private": "other.csv"}, "lacks the column(s) town, member"),
        (
            {"private": "headless.csv"},
            "headless.csv is no line of names like that of the public one",
        ),
        ({"private": "empty.csv"}, "--private: empty.csv is empty."),
        ({"private": "norows_private.csv"}, "has no rows"),
        ({"private": "damaged.parquet"}, "--private: damaged.parquet cannot be read as Parquet"),
        ({"private": "emptyfolder"}, "no Parquet file there"),
        ({"out": "missing.csv/model"}, "cannot be written"),
    ],
    ids=lambda each: next(iter(each.values())) if isinstance(each, dict) else "",
)
def test_bad_files(here, change, words):
    for name, text in {
        "text.txt": "a",
        "empty.csv": "",
        "norows.csv": "a,y\n",
        "textlabel.csv": "a,y\n1,x\n2,3\n",
        "nolabel.csv": "a\n1\n",
        "onlylabel.csv": "y\n1\n",
        "other.csv": "size\n1\n",
        "headless.csv": "7,8,8\n1,2,3\n",
        "norows_private.csv": "size,town,member\n",
        "damaged.parquet": "PAR1 no",
        "missing.csv": "",
    }.items():
        Path(name).write_text(text)
    Path("emptyfolder").mkdir()
    text = fit(code=4 if "out" in change else 1, **change)
    assert text.startswith("Error: ")
    assert words in text
    assert not Path("model").exists()


@pytest.mark.parametrize(
    "content",
    [
        f'size,town,member\n"{SENTINEL},A,True\n1,B,True\n',
        f"size,town,member\n1,A,True\n{SENTINEL},{SENTINEL},{SENTINEL},{SENTINEL},{SENTINEL}\n",
        f"size,town,member\n{SENTINEL},A,True\n\x00\xff,B\n",
    ],
)
def test_a_damaged_private_csv_says_nothing_of_its_cells(here, content):
    Path("private.csv").write_bytes(content.encode("latin-1"))
    result = CliRunner().invoke(
        app,
        [*FIT[:4], "private.csv", *BASIC, *QUICK, "--out", "model"],
    )
    assert "987654" not in result.output
    assert result.exit_code in (0, 1)
    if result.exit_code:
        assert "could not be read as CSV" in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_unforeseen_errors_tell_only_their_type(here, monkeypatch):
    def broken(*args):
        raise RuntimeError(SENTINEL)

    monkeypatch.setattr("dpadapt.cli.public_table.read_labelled", broken)
    text = fit(code=70)
    assert "RuntimeError" in text
    assert SENTINEL not in text


@pytest.mark.parametrize(
    "more",
    [
        ["--degree", 3],
        ["--noise", "loud"],
        ["--noise", "seeded"],
        ["--random-state", 1],
        ["--ledger", "b.db"],
        ["--dataset", "p"],
        ["--runs", 1],
        ["--epsilon", "small"],
    ],
    ids=str,
)
def test_wrong_usage(here, more):
    assert "Traceback" not in fit(*more, code=2)


@pytest.mark.parametrize("more", [["--epsilon", 0], ["--epsilon", "nan"], ["--delta", 2]], ids=str)
def test_impossible_budgets(here, more):
    assert more[0].strip("-") in fit(*more, code=1)


def test_bad_models_and_inputs(model):
    predict = ("predict", "--out", "p.csv", "--model")
    assert "no model folder" in run(*predict, "nope", "--input", "public.csv", code=1)
    table(5, 1).drop(columns="town").to_csv("short.csv", index=False)
    assert "lacks the column(s) town" in run(*predict, "model", "--input", "short.csv", code=1)
    assert "no file nope.csv" in run(*predict, "model", "--input", "nope.csv", code=1)
    Path("model/model.json").write_bytes(b"junk")
    for command in ((*predict, "model", "--input", "public.csv"), ("report", "--model", "model")):
        assert "model.json is not the file that" in run(*command, code=1)


def test_a_header_that_swallowed_a_row_is_not_shown(here):
    """With its line break gone, the first person's cells pass for names of columns."""
    rows = Path("private.csv").read_text().splitlines()
    header = ["size", "town", "member", "note*" + SENTINEL, SENTINEL]
    Path("private.csv").write_text("\n".join([",".join(header), *(f"{r},1,2" for r in rows[1:])]))
    text = fit(private="private.csv")
    assert "lacks them: 2 private column(s)" in text
    assert SENTINEL not in text


def test_control_characters_do_not_reach_the_terminal(here):
    assert "\x1b" not in run("report", "--model", "\x1b[31mred", code=1)


def test_the_report_does_not_break_the_seal(model):
    assert "sealed" in run("report", "--model", "model", "--out", "model/report.html", code=2)
    load_model("model")


def test_bad_ledgers(here):
    Path("junk.db").write_text("no ledger" * 1000)
    for name in ("nope.db", "junk.db"):
        assert name in run("ledger", "show", "--ledger", name, code=4)
    create = ("ledger", "create", "--ledger", "b.db", "--dataset", "[red]p", "--delta", 1e-6)
    run(*create, "--epsilon", 1)
    assert "already has a data set" in run(*create, "--epsilon", 1, code=4)
    assert "epsilon" in run(*create, "--epsilon", -1, code=1)
    assert "[red]p" in run("ledger", "show", "--ledger", "b.db")
    assert "no data set named 'q'" in fit("--ledger", "b.db", "--dataset", "q", code=4)


def process(*arguments, script=None):
    start = [sys.executable, "-m", "dpadapt"] if script is None else [sys.executable, "-c", script]
    return subprocess.Popen(
        [*start, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


FIT = ["fit", "--public", "public.csv", "--private", "private.parquet", *BASIC, *QUICK]


@pytest.mark.slow
def test_two_processes_cannot_overspend_one_ledger(here):
    run("ledger", "create", "--ledger", "b.db", "--dataset", "p", "--epsilon", 1.2, "--delta", 1e-6)
    both = [process(*FIT, "--ledger", "b.db", "--dataset", "p", "--out", out) for out in "ab"]
    ends = [each.communicate() for each in both]
    assert sorted(each.returncode for each in both) == [0, 3], ends
    assert sorted(Path(out).exists() for out in "ab") == [False, True]
    refused = next(err for each, (_, err) in zip(both, ends, strict=True) if each.returncode)
    told, error = refused.splitlines()
    assert told == "Nothing was charged for p."
    assert error.startswith("Error: the budget of epsilon 1.2")
    assert "Traceback" not in refused
    exported = json.loads(run("ledger", "export", "--ledger", "b.db", "--dataset", "p"))
    assert len(exported["charges"]) == 1


def test_killed_half_way_leaves_no_model(here):
    script = (
        "import os, signal, dpadapt.report\n"
        "dpadapt.report.write_report = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from dpadapt.cli import app\n"
        "app()\n"
    )
    killed = process(*FIT, "--out", "model", script=script)
    killed.communicate()
    assert killed.returncode == -9
    assert not Path("model").exists()
    fit()
    load_model("model")


def account(epsilon=9):
    create = ("ledger", "create", "--ledger", "b.db", "--dataset", "p", "--delta", 1e-6)
    run(*create, "--epsilon", epsilon)
    return ("--ledger", "b.db", "--dataset", "p")


def charges():
    exported = json.loads(run("ledger", "export", "--ledger", "b.db", "--dataset", "p"))
    return len(exported["charges"])


def test_a_reader_that_goes_away_costs_no_model(here):
    """The model is saved before anything is said of it, and to say it may fail."""
    paid = account()
    script = (
        "import os\n"
        "import dpadapt.learning.figures\n"
        "from dpadapt import AdaptationPipeline\n"
        "dpadapt.learning.figures.as_data_uri = lambda figure: 'data:,'\n"
        "whole = AdaptationPipeline.fit\n"
        "def fit(self, *args, **kwargs):\n"
        "    whole(self, *args, **kwargs)\n"
        "    read, write = os.pipe()\n"
        "    os.close(read)\n"
        "    os.dup2(write, 1)\n"
        "AdaptationPipeline.fit = fit\n"
        "from dpadapt.cli import app\n"
        "app()\n"
    )
    fitted = process(*FIT, *paid, "--out", "model", script=script)
    _, told = fitted.communicate()
    assert (fitted.returncode, charges()) == (0, 1), told
    assert "The model is in model. The ledger was charged, which stands." in told
    load_model("model")


def test_a_model_that_was_paid_for_is_kept_somewhere(here, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    def full_here(place, *args, **kwargs):
        return (full if str(place.target) == "model" else whole)(place, *args, **kwargs)

    paid, whole = account(), Destination.write
    Path("elsewhere").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(here / "elsewhere"))
    monkeypatch.setattr("dpadapt.modelfolder.Destination.write", full)
    text = fit(*paid, code=4)
    assert "could not be written to model, nor anywhere else" in text
    monkeypatch.undo()
    monkeypatch.chdir(here)
    monkeypatch.setattr("tempfile.tempdir", str(here / "elsewhere"))
    monkeypatch.setattr("dpadapt.modelfolder.Destination.write", full_here)
    text = fit(*paid, code=4)
    assert "a charge stands" in text
    assert "Error: model cannot be written: No space left on device" in text
    kept = text.partition("it is kept in ")[2].partition(". ")[0]
    load_model(kept.replace(" ", ""))
    assert charges() == 2
    assert not Path("model").exists()


def test_a_fit_that_fails_after_the_charge_says_so(here, monkeypatch):
    whole = AdaptationPipeline.fit

    def interrupted(self, *args, **kwargs):
        whole(self, *args, **kwargs)
        raise RuntimeError(SENTINEL)

    monkeypatch.setattr(AdaptationPipeline, "fit", interrupted)
    text = fit(*account(), code=70)
    assert "a charge stands whatever fails after it" in text
    assert SENTINEL not in text
    assert charges() == 1


@pytest.mark.parametrize("out", ["nosuch/..", "x" * 250, "/proc/model"])
def test_a_place_that_cannot_be_costs_nothing(here, out):
    text = fit(*account(), out=out, code=1 if out.endswith("..") else 4)
    assert "must end in a name" in text or "cannot be written" in text
    assert charges() == 0


def test_nothing_is_written_into_a_model_folder_by_any_path(model):
    Path("link").symlink_to("model")
    Path("file.csv").symlink_to("model/model.json")
    for out in ("link/report.html", "./model/../model/r.html", "file.csv"):
        assert "sealed" in run("report", "--model", "model", "--out", out, code=2)
    for model, out in (("model", "link/p.csv"), ("link", "model/p.csv"), ("model", "file.csv")):
        what = ("predict", "--model", model, "--input", "public.csv", "--out", out)
        assert "sealed" in run(*what, code=2)
    load_model("model")


def test_pipes_are_no_inputs(model):
    """Reading one would wait for a writer for ever."""
    Path("people").mkdir()
    for name in ("pipe.csv", "pipe.json", "people/a.parquet"):
        os.mkfifo(name)
    words = "is a pipe or a device"
    assert words in fit(public="pipe.csv", out="other", code=1)
    assert words in fit(private="pipe.csv", out="other", code=1)
    assert words in fit(private="people", out="other", code=1)
    predict = ("predict", "--model", "model", "--out", "p.csv")
    assert words in run(*predict, "--input", "pipe.csv", code=1)
    assert words in run("report", "--model", "model", "--audit", "pipe.json", code=1)
    assert words in run("agent", "--row", "pipe.json", "--epsilon", 1, "--state", "s", code=1)
