"""The table of mutants fits the sources, and the runner tells a kill from an accident."""

from __future__ import annotations

import dataclasses
import textwrap
from functools import partial

import pytest

from mutants.mutation import Mutant, TableError, load, mutate, mutated_copy
from mutants.runner import Job, run

SOURCE = """
def clipped(values, bound):
    return [min(value, bound) for value in values]


LIMIT = 3
"""
TESTS = """
from toy.core import LIMIT, clipped

def test_clip():
    assert clipped([1, 9], LIMIT) == [1, LIMIT]

def test_empty():
    assert clipped([], 2) == []
"""
CLIP = Mutant(
    name="not clipped",
    why="One value would decide.",
    file="src/toy/core.py",
    old="min(value, bound) for",
    new="value for",
    tests=("tests/test_toy.py::test_clip",),
)


@pytest.fixture
def toy(tmp_path):
    """A package of one module, with tests."""
    for name, text in {
        "src/toy/__init__.py": "",
        CLIP.file: SOURCE,
        "tests/test_toy.py": TESTS,
    }.items():
        path = tmp_path / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return tmp_path / "toy"


def outcome(toy, mutant, **options):
    work = toy.parent / "work"
    work.mkdir()
    job = Job(mutant.name, partial(mutated_copy, mutant, root=toy), mutant.tests)
    (found,) = run([job], toy, work, workers=1, **options)
    return found


def test_every_row_fits_the_sources():
    mutants = load()
    assert len(mutants) >= 200
    files = {mutant.file for mutant in mutants}
    parts = ("privacy", "reweighting", "discrepancy", "kernels", "hybrid", "mixing", "baselines")
    parts += ("modelfolder", "audit", "report")
    assert all(any(f"/{part}/" in file for file in files) for part in parts)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"old": "min(value, limit)"}, "stands 0 times"),
        ({"old": "bound"}, "stands 2 times"),
        ({"new": "value for for"}, "does not parse"),
        ({"new": "min( value, bound) for"}, "says the same"),
        ({"file": "src/toy/other.py"}, "no file"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(toy, change, match):
    with pytest.raises(TableError, match=f"not clipped.*{match}"):
        mutate(dataclasses.replace(CLIP, **change), toy)


def test_a_table_is_checked_as_it_is_read(toy):
    row = {**dataclasses.asdict(CLIP), "tests": list(CLIP.tests)}

    def read(*rows):
        text = "".join(
            "[[mutant]]\n" + "".join(f"{k} = {v!r}\n" for k, v in each.items()) for each in rows
        )
        (toy / "table.toml").write_text(text)
        return load(toy, toy)

    assert read(row) == [CLIP]
    for rows, match in [
        ([row, row], "two mutants"),
        ([row | {"tests": ["tests/test_other.py"]}], "no test"),
        ([row | {"tests": []}], "must not be empty"),
        ([row | {"seed": "0"}], "wrong keys"),
    ]:
        with pytest.raises(TableError, match=match):
            read(*rows)


def test_a_failed_assertion_kills(toy):
    found = outcome(toy, CLIP)
    assert found.verdict == "killed"
    assert found.failed == list(CLIP.tests)


@pytest.mark.parametrize(
    ("change", "verdict", "said"),
    [
        ({"tests": ("tests/test_toy.py::test_empty",)}, "survived", None),
        ({"old": "LIMIT = 3", "new": "LIMIT = 3 if value else 4"}, "broken", "could not be coll"),
        ({"new": "value / 'x' for"}, "broken", "TypeError"),
        ({"tests": ("tests/test_toy.py::test_other",)}, "broken", "USAGE_ERROR"),
    ],
)
def test_what_is_no_failed_assertion_is_no_kill(toy, change, verdict, said):
    found = outcome(toy, dataclasses.replace(CLIP, **change))
    assert found.verdict == verdict
    assert said is None or any(said in line for line in found.broken)


def test_a_mutant_that_never_ends_is_ended(toy):
    whole = "[min(value, bound) for value in values]"
    endless = dataclasses.replace(CLIP, old=whole, new="sum(iter(int, 1))")
    found = outcome(toy, endless, limit=3.0)
    assert found.verdict == "broken"
    assert any("no end" in line for line in found.broken)
