"""The house is measured: no cycles, few parameters, nothing dead, an honest README."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tools.draw import draw, floors
from tools.house import SOURCE, code_lines, cycles, read_house, reading_sentence
from tools.house_names import size_lines
from tools.house_walks import modules_imported, walk

MOST_PARAMETERS = 14  # of an estimator

NOT_YET_PARAMETERS: dict[str, int] = {}  # none: wrong combinations cannot be written
NOT_YET_USED = {  # of papers and of accountants; tests alone use them
    "gaussian_process_slack",
    "printed_draws_epsilon",
    "recompute_delta",
}

HOUSE = read_house()
ROOT = SOURCE.parent.parent


def test_estimators_have_few_parameters():
    many = {name: count for name, count in HOUSE.estimators.items() if count > MOST_PARAMETERS}
    assert set(many) == set(NOT_YET_PARAMETERS), "the list must name those that have too many"
    assert all(count <= NOT_YET_PARAMETERS[name] for name, count in many.items())
    assert "HybridTilt" in HOUSE.estimators


def test_the_readme_says_what_must_be_read():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert reading_sentence(HOUSE) in " ".join(text.split())


def test_what_no_source_uses_is_exported_and_documented():
    pages = " ".join(each.read_text(encoding="utf-8") for each in (ROOT / "docs").glob("*.md"))
    left = set()
    for module, name in HOUSE.used_by_nobody():
        if module.name.startswith("testing.") and name.startswith("check_"):
            continue  # found by its name, and run with the battery
        if f"{module.name.removeprefix('cli.')}_command" == name:
            continue  # found by its name, when the command is asked for
        package = HOUSE.modules[module.name.rpartition(".")[0]].name
        package = package.split(".")[1] if package.startswith("papers.") else package
        exported = name in getattr(
            importlib.import_module(f"dpadapt.{package}".rstrip(".")), "__all__", ()
        )
        if not exported or not re.search(rf"\b{name}\b", pages):
            left.add(name)
    assert left == NOT_YET_USED, "export and document it, use it, or remove it"


TEXT = '''"""Of the module."""

import os  # why


class A:
    """Of the class,
    of two lines.
    """

    x = """text
# no comment
"""
    # a comment
    "of x"

    def f(self): ...
'''


def test_lines_of_code_are_those_that_run():
    assert code_lines(TEXT) == 6  # import, class, three of x, def


def house_of(folder: Path, **files: str):
    (folder / "p" / "inner").mkdir(parents=True)
    for name, text in {"__init__": "", "inner/__init__": "", **files}.items():
        (folder / "p" / f"{name}.py").write_text(text, encoding="utf-8")
    return read_house(folder / "p")


def test_arrows_are_seen_however_they_are_written(tmp_path):
    files = {
        "a": "from .inner import c\n",
        "b": "def f():\n    import p.a\n",
        "inner/c": "from .. import b\nfrom p.inner.d import x\n",
        "inner/d": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .. import a\n",
    }
    house = house_of(tmp_path, **files)
    wanted = {("a", "inner.c"), ("b", "a"), ("inner.c", "b"), ("inner.c", "inner.d")}
    assert house.arrows == wanted
    assert cycles(house.arrows) == [["a", "b", "inner.c"]]
    assert cycles(house.part_arrows) == [["a", "b", "inner"]]


def test_names_that_nobody_uses_are_seen(tmp_path):
    files = {
        "a": "__all__ = ['dead', 'used']\ndef dead(): return dead()\ndef used(): ...\n",
        "b": "from .a import used\ndef listed(): ...\ndef _own(): ...\n",
        "inner/c": "TABLE = 'p.b.listed other'\n",
    }
    house = house_of(tmp_path, **files)
    assert [(module.name, name) for module, name in house.used_by_nobody()] == [("a", "dead")]


def test_sizes_are_counted(tmp_path):
    files = {
        "a": "import os\nfrom typing import (\n    Any,\n)\n__all__ = ['one']\ndef one(): ...\n",
        "b": "from .a import one\nclass Two:\n    class Inner: ...\n_own = value = 1\n",
        "inner/c": "value = 2\ndef one(): ...\n",
    }
    house = house_of(tmp_path, **files)
    told = list(size_lines("all", house.modules.values(), ["Of `Two`."]))
    assert told[0] == "all: 5 files, 12 lines, 12 of code"
    assert told[1] == "  plumbing: 6 lines of imports and __all__, 50.0% of the code"
    assert told[2].endswith(
        ": 5, 3 different ones, 2 of them imported by another file or in a page"
    )
    assert told[3].endswith("files: 2, 1 of them classes or functions")
    assert told[4] == "  classes: 2, 1 of them at the top of a file"
    assert {each.name for each in house.outside("inner")} == {"", "a", "b"}
    assert {each.name for each in house.outside("in")} == set(house.modules)


def test_a_walk_passes_files_and_says_how_deep():
    found = walk(lambda: reading_sentence(HOUSE), SOURCE.parent.parent / "tools")
    assert found.files == ("house.py",)
    assert "house.py:reading_sentence" in found.deepest
    assert found.calls > found.functions > 1


@pytest.mark.slow
def test_modules_of_a_command_are_counted():
    assert 5 < modules_imported(["--help"]) < len(HOUSE.modules)


def test_without_cycles_there_are_none():
    assert cycles([("a", "b"), ("b", "c"), ("a", "c")]) == []


def test_a_cycle_shares_a_floor():
    arrows = [("top", "one"), ("one", "two"), ("two", "one"), ("two", "ground")]
    found = floors(arrows, ["top", "one", "two", "ground"])
    assert found == {"top": 2, "one": 1, "two": 1, "ground": 0}


@pytest.mark.slow
def test_the_house_is_drawn(tmp_path):
    draw(HOUSE, tmp_path / "house.png")
    assert (tmp_path / "house.png").read_bytes().startswith(b"\x89PNG")
