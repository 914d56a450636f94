"""Random command lines and damaged files: no traceback, no private value, one line of error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).with_name("fuzzer.py")
CASES = int(os.environ.get("DPADAPT_FUZZ", "300"))  # one full run is 10000
WORKERS = 2


def problems(first: int, count: int, broken: str = "") -> list[dict[str, object]]:
    """What went wrong in some cases; ``broken`` is run before them, to break something."""
    step = -(-count // WORKERS)
    runs = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", FUZZER, str(start), str(start + step), broken],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for start in range(first, first + count, step)
    ]
    found = []
    for run in runs:
        out, err = run.communicate()
        assert run.returncode == 0, err  # a crash of the interpreter is a finding as well
        found += [json.loads(line) for line in out.splitlines()]
    return [each for each in found if "problem" in each]


@pytest.mark.slow
def test_fuzzed_command_lines_and_files():
    assert problems(0, CASES) == []


LEAK = """
import dpadapt.cli.fit as fit
def telling(path, *others, **how):
    raise ValueError(f"{path} could not be read: {path.read_bytes()[:400]!r}")
fit.open_private = telling
"""
RAISE = """
import dpadapt.cli.screens as screens
def failing(text, code):
    raise RuntimeError(text)
screens._fail = failing
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "word"), [(LEAK, "a private value is shown"), (RAISE, "RuntimeError")]
)
def test_the_fuzzer_finds_what_is_broken(broken, word):
    assert any(word in str(each["problem"]) for each in problems(0, 60, broken))
