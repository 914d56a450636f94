"""``--keep-memory``, ``--spill-folder`` and ``--no-spill``: what a fit may keep, and where."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpadapt.cli import app
from dpadapt.privacy import Ledger, Private

BUDGET = ["--epsilon", "1", "--delta", "1e-6"]
FAST = ["--estimator", "ReweightingClassifier"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, rows in (("public", 200), ("private", 3000)):
        table = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["a", "b", "c"])
        table["y"] = np.where(table["a"] + 0.3 * rng.normal(size=rows) > 0, "yes", "no")
        table.to_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "fast").mkdir()
    return tmp_path


def run(*options: str, command: str = "fit"):
    files = ["--private", "private.parquet", "--label", "y", *BUDGET]
    files += ["--public", "public.parquet", "--out", "model", *FAST] if command == "fit" else []
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, [command, *files, *options])


def test_a_fit_keeps_what_it_is_told_to_where_it_is_told_to(here, monkeypatch):
    asked, kept = [], Private.kept
    monkeypatch.setattr(Private, "kept", lambda self, **how: asked.append(how) or kept(self, **how))
    seeded = ["--noise", "seeded", "--random-state", "0"]
    found = [run(*seeded, "--keep-memory", "1kB", "--spill-folder", "fast")]
    spilled = (here / "model" / "arrays.bin").read_bytes()
    found += [run(*seeded, "--force"), run(*seeded, "--force", "--no-spill")]
    assert [each.exit_code for each in found] == [0, 0, 0], found[0].output
    assert (here / "model" / "arrays.bin").read_bytes() == spilled
    given = [(each["memory"], each["spill"], str(each["folder"])) for each in asked]
    assert given == [(1000.0, True, "fast"), (None, True, "None"), (None, False, "None")]
    assert list((here / "fast").iterdir()) == []
    more = ["--model", "model", "--keep-memory", "1MB"]
    measured = run(*more, command="evaluate")
    assert measured.exit_code == 0, measured.output
    assert asked[-1]["memory"] == 1e6


def test_no_room_ends_before_the_charge(here):
    ledger = Ledger(here / "budget.db")
    ledger.create("people", epsilon=5, delta=1e-5)
    found = run(
        "--keep-memory", "1kB", "--no-spill", "--ledger", "budget.db", "--dataset", "people"
    )
    assert found.exit_code == 4, found.output
    assert "cleaned rows take" in found.output
    assert "--spill-folder" in found.output
    assert ledger.account("people").spent() == 0
    assert not (here / "model").exists()


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--keep-memory", "much"], 2, "--keep-memory must be a number of bytes"),
        (["--spill-folder", "nowhere"], 1, "there is no folder nowhere"),
        (["--spill-folder", "fast", "--no-spill"], 2, "exclude each other"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_options_that_cannot_be(here, command, options, code, said):
    model = ["--model", "model"] if command == "evaluate" else []
    if command == "evaluate":
        (here / "model").mkdir()
        (here / "model" / "model.json").write_text(json.dumps({}))
    found = run(*options, *model, command=command)
    assert found.exit_code == code, found.output
    assert said in " ".join(found.output.replace("│", " ").split())
