"""The text of --help in a terminal of 80 columns: no line breaks off before it is full."""

from __future__ import annotations

from itertools import pairwise

import pytest
from typer.testing import CliRunner

from dpadapt.cli import app

COMMANDS = ["", "demo", "check", "preview", "fit", "predict", "evaluate", "export", "report"]
COMMANDS += ["audit", "agent", "ledger", "ledger create", "ledger show", "ledger adopt"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_eighty_columns_and_is_not_ragged(command):
    runner = CliRunner(env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    lines = runner.invoke(app, [*command.split(), "--help"]).output.splitlines()
    assert max(map(len, lines)) <= 80
    heads = lines[: [line[:2] for line in lines].index("╭─")]
    examples = [line for line in heads if line.strip().startswith("dpadapt ") and " --" in line]
    assert all(line.startswith("   dpadapt") for line in examples), "below their heading"
    above = [line.strip() for line in heads]
    for line, following in pairwise(above):
        example = line.endswith("\\") or line.startswith("dpadapt") or following.startswith("--")
        if line and following and not example:
            assert len(line) + 1 + len(following.split(" ")[0]) > 76, (line, following)
