"""``python -m reproduce``: papers by number and by name, help with examples, where files go."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpadapt.cli import app
from paper_command import call
from reproduce import command
from reproduce.papers import FOLDERS, paper_of

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(("number", "name"), FOLDERS.items())
def test_number_and_name_are_the_same_paper(number, name):
    assert paper_of(number) is paper_of(name)
    assert paper_of(name).number == number


def test_every_folder_with_a_page_is_a_known_paper():
    assert {path.parent.name for path in (ROOT / "reproduce").glob("*/page.py")} == {
        *FOLDERS.values()
    }


def test_help_has_examples_and_names_the_papers():
    code, text = call("--help")
    assert code == 0
    assert "python -m reproduce 001 --figure table-1" in text
    for number in FOLDERS:
        assert number in text


@pytest.mark.parametrize("given", ["001", "reweighting"])
def test_files_go_to_a_folder_of_the_papers_number(monkeypatch, given):
    asked = []
    monkeypatch.setattr(
        command, "reproduce_paper", lambda *given, **options: asked.append((given, options))
    )
    code, text = call(given, "--figure", "table-1", "--jobs", 2)
    assert code == 0, text
    ((paper, figure, folder), options) = asked[0]
    assert (paper.number, figure, folder) == ("001", "table-1", Path("reproduced/001"))
    assert options == {"repeats": 10, "quick": False, "jobs": 2, "resample": False}


@pytest.mark.slow
def test_it_runs_from_the_root_of_the_project():
    run = subprocess.run(
        [sys.executable, "-m", "reproduce", "hybrid", "--list"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "parity" in run.stdout


def test_the_packages_own_command_does_not_know_it():
    assert CliRunner().invoke(app, ["reproduce", "000"]).exit_code == 2
