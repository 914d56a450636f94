"""docs/refit.md: every block is run as it is written, in the order of the page."""

from __future__ import annotations

import doctest
import re
import shlex

from command import run
from tools.wrap import ROOT

PAGE = ROOT / "docs" / "refit.md"


def calls(block: str) -> list[tuple[list[str], list[str]]]:
    """Commands of a console block, each with the lines that it must show."""
    found: list[tuple[list[str], list[str]]] = []
    for line in block.replace("\\\n", " ").strip().splitlines():
        if line.startswith("$ "):
            name, *arguments = shlex.split(line[2:])
            assert name == "dpadapt"
            found.append((arguments, []))
        elif line.strip() != "...":
            found[-1][1].append(" ".join(line.split()))
    return found


def test_the_commands_and_the_code_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    shown = examples = 0
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        if language == "python":
            test = doctest.DocTestParser().get_doctest(block, names, "refit.md", str(PAGE), 0)
            test.globs, told = names, list[str]()
            done = doctest.DocTestRunner().run(test, out=told.append, clear_globs=False)
            assert not done.failed, "".join(told)
            examples += done.attempted
            continue
        for arguments, lines in calls(block):
            said = run(*arguments)
            for line in lines:
                assert line in said
                shown += 1
    assert shown == 6
    assert examples > 8
