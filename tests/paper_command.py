"""What the tests of all papers share: the command, and the mark of those that need real data."""

import os

import pytest
from typer.testing import CliRunner

from reproduce.command import app

needs_data = pytest.mark.skipif("DPADAPT_DATA" not in os.environ, reason="DPADAPT_DATA is not set")


def call(*arguments):
    """Exit code and output of ``python -m reproduce``."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, " ".join(result.output.split())
