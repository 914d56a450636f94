"""What is paid for is kept: signals, closed and full outputs, crashes; and exit codes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.signals_table import FIT, HOLD_OUT, SIGNALS, found, tables
from command import run
from dpadapt.cli.screens import Stopped, defer_signals, handle_signals
from dpadapt.modelfolder import load_model
from dpadapt.modelfolder.record import seal, sealed_facts
from dpadapt.privacy import Ledger
from dpadapt.privacy.files.guarantees import read_guarantee
from dpadapt.privacy.files.whole_files import patience, whole_file, writer_lock
from dpadapt.privacy.ledger import tables as tables_of_ledger
from dpadapt.privacy.ledger.sqlite import SqliteStore

BASIC = ["--label", "wage", "--epsilon", "1", "--delta", "1e-6"]
LINEAR = ["--estimator", "ReweightingRegressor"]
LEDGER = ["--ledger", "budget.db", "--dataset", "rows"]
SOFT = [each for each in SIGNALS if each is not signal.SIGKILL]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Reports without figures: to draw them takes longer than to fit."""
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")


@pytest.fixture
def here(tmp_path, monkeypatch):
    tables(tmp_path)
    Ledger(tmp_path / "budget.db").create("rows", epsilon=100.0, delta=1e-5)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(*more, out="model", code=0):
    files = ("--public", "public.csv", "--private", "private.csv", "--out", out)
    return run("fit", *files, *BASIC, *LINEAR, *LEDGER, *more, code=code)


def account():
    return Ledger("budget.db").account("rows")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        tables(folder)
        Ledger("budget.db").create("rows", epsilon=100.0, delta=1e-5)
        fit()
    return folder / "model"


@pytest.fixture
def model(here, fitted):
    """A folder ``model`` here, as ``fit()`` would write it."""
    shutil.copytree(fitted, "model")


# signals -----------------------------------------------------------------------------------------


def check(left, number):
    """Nothing is charged, or all that was paid for is there, and it is said."""
    if number is signal.SIGKILL:
        assert left.code == -number
        return
    assert left.code == 128 + number, left.text
    assert not left.lost, left.text
    assert left.drafts == 0
    assert f"ended by {number.name}" in left.text
    assert "Traceback" not in left.text


@pytest.mark.parametrize("number", SOFT)
def test_a_signal_in_a_release_waits_until_the_model_is_kept(tmp_path, number):
    left = found(tmp_path / "fit", FIT["first release"], number, hold_out=False)
    check(left, number)
    assert left.charged
    assert left.model
    assert "the ledger is charged already" in left.text
    assert "guarantee" in left.text


def test_a_signal_before_the_charge_costs_nothing(tmp_path):
    left = found(tmp_path / "fit", FIT["before the charge"], signal.SIGTERM, hold_out=False)
    check(left, signal.SIGTERM)
    assert not left.charged
    assert "Nothing was charged for rows" in left.text


def test_whatever_ends_a_fit_it_is_told_once_whether_the_ledger_was_charged(tmp_path, here):
    place = FIT["opening the private file"]
    left = found(tmp_path / "fit", place, signal.SIGTERM, hold_out=False)
    assert left.text.count("Nothing was charged for rows") == 1
    for more, code in ((["--drop", "nobody"], 1), (["--epsilon", "500"], 3)):
        assert fit(*more, code=code).count("Nothing was charged for rows") == 1


def test_two_signals_between_fit_and_evaluation_lose_neither(tmp_path):
    place = HOLD_OUT["before the evaluation"]
    left = found(tmp_path / "fit", place, signal.SIGHUP, hold_out=True, times=2)
    check(left, signal.SIGHUP)
    assert left.model
    assert left.evaluation


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("stage", HOLD_OUT)
def test_a_signal_at_every_stage_of_a_hold_out(tmp_path, stage, number, times):
    left = found(tmp_path / "fit", HOLD_OUT[stage], number, hold_out=True, times=times)
    check(left, number)
    if left.charged and number is not signal.SIGKILL:
        assert left.evaluation
    if left.model and number is signal.SIGKILL:
        released = stage in ("after the evaluation", "writing the evaluation")
        assert left.evaluation or left.reserve or released


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("stage", FIT)
def test_a_signal_at_every_stage_of_a_fit(tmp_path, stage, number):
    check(found(tmp_path / "fit", FIT[stage], number, hold_out=False), number)


def test_a_hold_out_that_was_paid_for_is_measured_after_a_kill(tmp_path, monkeypatch):
    folder = tmp_path / "fit"
    left = found(folder, HOLD_OUT["before the evaluation"], signal.SIGKILL, hold_out=True)
    assert (left.model, left.evaluation, left.reserve) == (True, False, True)
    monkeypatch.chdir(folder)
    spent = account().spent()
    again = ("evaluate", "--model", "model", "--private", "private.csv", *BASIC, *LEDGER)
    before = Path("model/guarantee.json").read_bytes()
    _, record = sealed_facts(Path("guarantee.json"), before)
    assert record.pop("held_out") == [0.25, 120]
    another = Path(shutil.copytree("model", "another"))  # released the same, and held nobody out
    files = {each.name: each.read_bytes() for each in another.iterdir()}
    files.pop("guarantee.json")
    own = read_guarantee(json.loads(before))
    (another / "guarantee.json").write_bytes(seal(own, files, record))
    refused = run("evaluate", "--model", "another", *again[3:], "--holdout", code=1)
    assert "has paid for no evaluation of this model" in refused
    text = run(*again, "--holdout", "--out", "found.json")
    assert "On 30 private rows" in text
    assert account().spent() == spent
    assert json.loads(Path("found.json").read_text())["people"] == 30
    assert "has paid for no evaluation of this model" in run(*again, "--holdout", code=1)
    assert "--holdout needs --ledger" in run(*again[:-4], "--holdout", code=2)


def test_signals_wait_only_for_what_is_paid_for():
    paid, told, done = [], [], []

    def work(price):
        with defer_signals(lambda: bool(paid), told.append):
            paid.extend(price)
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
            done.append(1)

    with handle_signals():
        with pytest.raises(Stopped):
            work([])
        assert done == []
        with pytest.raises(Stopped) as stopped:
            work([1])
        assert done == [1]
        assert stopped.value.code == 129
        assert len(told) == 1
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_error_is_not_replaced_by_a_signal_that_waited():
    def fails():
        with defer_signals(lambda: True, lambda text: None):
            os.kill(os.getpid(), signal.SIGTERM)
            raise ValueError("the real error")

    with handle_signals(), pytest.raises(ValueError, match="the real error"):
        fails()


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with handle_signals():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


# outputs -----------------------------------------------------------------------------------------


def shell(command):
    """A command of the shell, with dpadapt in it."""
    program = f"{sys.executable} -W ignore -m dpadapt"
    return subprocess.run(
        ["bash", "-c", command.replace("dpadapt", program, 1)], capture_output=True, text=True
    )


@pytest.mark.parametrize(
    "closed",
    [
        pytest.param(">&-", marks=pytest.mark.slow),  # all at once are closed below
        pytest.param("2>&-", marks=pytest.mark.slow),
        ">&- 2>&- <&-",
        ">/dev/full",
    ],
)
def test_a_fit_whose_output_is_closed_or_full(here, closed):
    files = "--public public.csv --private private.csv --out model"
    options = " ".join([*BASIC, *LINEAR, *LEDGER])
    ended = shell(f"dpadapt fit {files} {options} {closed}")
    if closed == ">/dev/full":  # noticed before anything is paid for
        assert ended.returncode == 4, ended.stderr
        assert account().number() == 0
        return
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    load_model("model")
    assert account().number() == 1


def test_a_place_with_a_detour(here):
    fit(out="model/../model")
    load_model("model")
    assert sorted(each.name for each in here.glob("*model*")) == ["model"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("p.csv", ["predict", "--model", "model", "--input", "public.csv", "--out"]),
        ("p.parquet", ["predict", "--model", "model", "--input", "public.csv", "--out"]),
        ("m.json", ["export", "--model", "model", "--out"]),
        ("m.onnx", ["export", "--model", "model", "--out"]),
        ("r.html", ["report", "--model", "model", "--out"]),
        ("r.md", ["report", "--model", "model", "--out"]),
    ],
)
@pytest.mark.usefixtures("model")
def test_a_file_is_there_whole_or_as_before(here, monkeypatch, name, arguments):
    Path(name).write_text("before")
    with monkeypatch.context() as patch:
        patch.setattr("dpadapt.privacy.files.whole_files.sync", full)
        assert "No space left" in run(*arguments, name, code=4)
    assert Path(name).read_text() == "before"
    assert [each.name for each in here.iterdir() if each.name.endswith(".new")] == []
    run(*arguments, name)
    assert Path(name).read_bytes() != b"before"


def full(*given, **named):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_evaluation_that_was_paid_for_is_kept_somewhere(here, monkeypatch):
    Path("elsewhere").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(here / "elsewhere"))
    monkeypatch.setattr("dpadapt.cli.outputs.write_whole", full)
    text = fit("--holdout", 0.25, code=4)
    assert "On 30 private rows" in text
    (kept,) = Path("elsewhere").glob("*/model.evaluation.json")
    assert json.loads(kept.read_text())["people"] == 30
    load_model("model")


def test_files_of_others_are_not_waited_for(tmp_path):
    with writer_lock(tmp_path), whole_file(tmp_path / "a") as draft:
        draft.write_text("b")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


# memory ------------------------------------------------------------------------------------------


def test_out_of_memory_is_named_and_the_charge_is_told(here, monkeypatch):
    def starved(*given, **named):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("dpadapt.privacy.Session.release", starved)
        text = fit(code=5)
    assert "out of memory" in text
    assert "The ledger was charged for rows" in text


def test_rows_that_do_not_fit_into_memory_are_refused_before_the_charge(here, monkeypatch):
    monkeypatch.setattr("dpadapt.privacy.rows.memory.free_memory", lambda: 1000.0)
    text = fit("--set", "solver=gradient", code=5)
    assert "of memory are needed" in text
    assert account().number() == 0
    assert not Path("model").exists()


# ledgers -----------------------------------------------------------------------------------------


def test_a_ledger_whose_disk_is_full_charged_nothing(here, monkeypatch):
    """SQLite rolls back what was written of a charge, and that is what is told."""
    begin, append = SqliteStore._begin, tables_of_ledger.append

    def on_a_small_disk(store, connection, write):
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        begin(store, connection, write)

    def large(connection, *given):
        append(connection, *given)
        connection.exec_driver_sql("CREATE TABLE large AS SELECT zeroblob(1000000)")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "_begin", on_a_small_disk)
        patch.setattr(tables_of_ledger, "append", large)
        text = fit(code=4)
    assert "is full or failing" in text
    assert "Nothing was charged for rows" in text
    assert account().number() == 0


def test_a_disk_that_is_full_is_found_out_before_the_charge(here, monkeypatch):
    monkeypatch.setattr("os.posix_fallocate", full)
    assert "model cannot be written: No space left on device" in fit(code=4)
    assert account().number() == 0
    assert not list(here.glob(".model*"))


def test_a_backup_is_a_ledger_that_is_not_in_use(here):
    fit()
    text = run("ledger", "backup", "--ledger", "budget.db", "--out", "copy.db")
    assert "1 charge," in text
    assert "not where it was made" in run("ledger", "show", "--ledger", "copy.db", code=4)
    assert "exists; choose a new file" in run(
        "ledger", "backup", "--ledger", "budget.db", "--out", "copy.db", code=4
    )
    run("ledger", "adopt", "--ledger", "copy.db")
    assert Ledger("copy.db").charges("rows") == Ledger("budget.db").charges("rows")


def test_a_folder_that_another_has_locked_ends_the_wait(tmp_path, monkeypatch):
    monkeypatch.setenv("DPADAPT_WAIT", "0")
    with writer_lock(tmp_path):
        text = run(
            *("ledger", "create", "--ledger", tmp_path / "b.db", "--dataset", "p"),
            *("--epsilon", 1, "--delta", 1e-6),
            code=4,
        )
    assert "another process has locked this folder (waited 0 s)" in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wait", ["x", "-1", "nan", "1e9"])
def test_a_wait_that_is_no_number_of_seconds(monkeypatch, wait):
    monkeypatch.setenv("DPADAPT_WAIT", wait)
    with pytest.raises(ValueError, match="DPADAPT_WAIT must be a number of seconds"):
        patience()


# public numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["x", "wage"])
@pytest.mark.parametrize("cell", ["1e200", "-1e308"])
@pytest.mark.parametrize("estimator", ["KernelRegressor", "DiscrepancyRegressor", "AutoRegressor"])
def test_public_numbers_that_overflow_are_refused_before_the_charge(here, column, cell, estimator):
    lines = Path("public.csv").read_text().splitlines()
    place = lines[0].split(",").index(column)
    for at in (3, 4, 5):
        cells = lines[at].split(",")
        cells[place] = cell
        lines[at] = ",".join(cells)
    Path("public.csv").write_text("\n".join(lines) + "\n")
    text = fit("--estimator", estimator, code=1)
    assert f"the column '{column}' holds the number" in text
    assert account().number() == 0
    assert not Path("model").exists()
