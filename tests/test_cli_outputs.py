"""What a command writes is never what it reads: refused before anything is read."""

import os
from pathlib import Path

import pytest
from typer import BadParameter
from typer.testing import CliRunner

from dpadapt.cli import app
from dpadapt.cli.outputs import refuse_out

BUDGET = ("--epsilon", "1", "--delta", "1e-6")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Folders and files of no use: whoever reads them fails with another word."""
    monkeypatch.chdir(tmp_path)
    for name in ("v.csv", "card.toml", "e.json", "audit.json", "preview.csv"):
        Path(name).write_text("kept")
    os.link("v.csv", "hard.csv")
    os.symlink("v.csv", "soft.csv")
    Path("part").mkdir()
    Path("part/1.parquet").write_text("kept")
    return tmp_path


@pytest.mark.parametrize("out", ["v.csv", "./part/../v.csv", "hard.csv", "soft.csv"])
@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "--model", "m", "--private", "v.csv", "--label", "y", *BUDGET),
        (
            "evaluate",
            "--model",
            "m",
            "--private",
            "w.csv",
            "--public",
            "v.csv",
            "--label",
            "y",
            *BUDGET,
        ),
        ("predict", "--model", "m", "--input", "v.csv"),
        ("fit", "--public", "v.csv", "--private", "w.csv", "--label", "y", "--force", *BUDGET),
        ("fit", "--public", "w.csv", "--private", "v.csv", "--label", "y", "--force", *BUDGET),
        ("report", "--model", "m", "--card", "v.csv"),
    ],
    ids=lambda command: " ".join(command[:4]),
)
def test_an_input_is_not_written_over(here, command, out):
    result = CliRunner().invoke(app, [*command, "--out", out])
    assert result.exit_code == 2
    assert "is what is read" in " ".join(result.output.split())
    assert Path("v.csv").read_text() == "kept"


@pytest.mark.parametrize(
    "command",
    [
        (
            "evaluate",
            "--model",
            "m",
            "--private",
            "part",
            "--label",
            "y",
            *BUDGET,
            "--out",
            "part/1.parquet",
        ),
        ("report", "--model", "m", "--evaluation", "e.json", "--out", "e.json"),
        ("report", "--model", "m", "--audit", "audit.json", "--out", "audit.json"),
        ("report", "--model", "m", "--card", "card.toml", "--registry", "card.toml"),
        ("report", "--model", "m", "--out", "r.json", "--registry", "r.json"),
        ("preview", "--public", "preview.csv", "--label", "y", "--rows", "9", "--out", "."),
        (
            "fit",
            "--public",
            "part/a.csv",
            "--private",
            "w.csv",
            "--label",
            "y",
            *BUDGET,
            "--force",
            "--out",
            "part",
        ),
    ],
    ids=lambda command: " ".join(command[:4]),
)
def test_other_files_that_are_read(here, command):
    result = CliRunner().invoke(app, list(command))
    assert result.exit_code == 2
    assert "is what is read" in " ".join(result.output.split())
    for name in ("card.toml", "e.json", "audit.json", "preview.csv", "part/1.parquet"):
        assert Path(name).read_text() == "kept"


def test_what_is_no_input_may_be_replaced(here):
    refuse_out(Path("v.csv"), Path("w.csv"), None, Path("part"), model=Path("m"), ledger="b.db")
    with pytest.raises(BadParameter, match=r"--registry v\.csv is what is read"):
        refuse_out(Path("v.csv"), Path("hard.csv"), option="--registry")
