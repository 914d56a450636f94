"""What a maintainer relies on: one version, pinned tools, targets that exist, tried bounds."""

from __future__ import annotations

import re
import tomllib

import pytest

import dpadapt
from tools.release import EXTRAS, ROOT, example


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


PROJECT = tomllib.loads(text("pyproject.toml"))
REQUIRED, EXTRA = (PROJECT["project"][each] for each in ("dependencies", "optional-dependencies"))
TARGETS = set(re.findall(r"^([a-z-]+):(?!=)", text("Makefile"), re.M))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_version_is_written_in_one_place():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/dpadapt/__init__.py"


def test_citation_and_changelog_speak_of_this_version():
    assert re.search(r"^version: (.*)$", text("CITATION.cff"), re.M)[1] == dpadapt.__version__
    assert re.search(r"^## (\S+)", text("CHANGELOG.md"), re.M)[1] == dpadapt.__version__


def test_tools_are_pinned_and_the_commit_hook_has_the_same_ruff():
    tools = EXTRA["dev"][1:]
    assert all("==" in tool for tool in tools)
    ruff = next(tool for tool in tools if tool.startswith("ruff"))
    assert re.findall(r"ruff==[\d.]+", text(".pre-commit-config.yaml")) == [ruff, ruff]


def test_the_oldest_versions_are_the_lower_bounds():
    bounds = [re.match(r"([\w-]+)>=([\d.]+)", each) for each in REQUIRED + EXTRA["test"]]
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)", text("tools/oldest.txt"), re.M))
    for bound in bounds:
        assert re.fullmatch(rf"{re.escape(bound[2])}(\.0)*", pinned.pop(bound[1])), bound[0]
    assert not pinned


def asked(workflow: str) -> list[str]:
    """Targets that a workflow makes: words of its steps, and of ``target`` in its matrix."""
    steps = re.findall(r"\brun: *(.*)$", workflow, re.M)
    assert steps
    assert {step.split()[0] for step in steps} == {"make"}
    words = [re.sub(r"make|\w+=\S+|\$\{\{ matrix\.target \}\}", "", step) for step in steps]
    words += re.findall(r"\btarget: (?:\[(?=.*\]))?([a-z, -]+)[\],]", workflow)
    return re.findall(r"[^\s,]+", " ".join(words))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_make_targets_that_exist(path):
    found = asked(path.read_text(encoding="utf-8"))
    assert found
    assert set(found) <= TARGETS


def test_the_whole_gate_runs_targets_that_exist():
    lines = re.findall(r"^make ([a-z -]+)", text(".ci/run"), re.M)
    assert {"test", "slow", "mutants", "demo", "test-oldest"} <= set(" ".join(lines).split())
    assert set(" ".join(lines).split()) <= TARGETS


def test_every_target_is_in_the_table_of_contributing():
    table = set(re.findall(r"^\| `make ([a-z-]+)`", text("CONTRIBUTING.md"), re.M))
    assert table == TARGETS - {"help"}


def test_tests_that_the_makefile_names_are_there():
    names = re.findall(r"\btests/[\w/]+\.py", text("Makefile"))
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_the_example_of_the_readme_needs_no_extra():
    code = example(text("README.md"))
    assert "AutoRegressor" in code
    assert not re.search("|".join(EXTRAS.split()), code)
