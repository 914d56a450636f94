"""The command line, called in tests."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from dpadapt.cli import app

__all__ = ["run"]


def run(*arguments: Any, code: int = 0) -> str:
    """Call a command, which must end with this code; what it says on one line, without frames."""
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.output.replace("\u2502", " ").split())
