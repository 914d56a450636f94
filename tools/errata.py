"""The page of errata: what the papers print, what is true, the number, and the test that shows it.

Entries are in ``reproduce/errata``, one TOML file a paper, each entry a table ``[[erratum]]`` with
the keys id, printed, true, number and test. What is in no paper, and was learnt on the way (about
numbers in a computer, or about a method of ours), is a ``[[note]]`` with ``about`` for ``printed``.
The page is generated; a test keeps it up to date.

Usage: ``python -m tools.errata`` writes ``docs/errata.md``; with ``--check`` it only looks.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["ENTRIES", "PAGE", "Erratum", "missing_tests", "page", "read_errata"]

ROOT = Path(__file__).parent.parent
ENTRIES = ROOT / "reproduce" / "errata"
PAGE = ROOT / "docs" / "errata.md"

_PAPERS = {
    "000": "Bassily, Mohri, Suresh: Principled Approaches for Private Adaptation from a Public "
    "Source (2023)",
    "001": "Bassily, Cortes, Mao, Mohri: Differentially Private Domain Adaptation with Theoretical "
    "Guarantees",
    "002": "Jain, Thakurta: Differentially Private Learning with Kernels (2013)",
    "003": "Kohen, Sheffet: Transfer Learning In Differential Privacy's Hybrid-Model (2022)",
    "004": "Golatkar and others: Mixed Differential Privacy in Computer Vision (2022)",
}
_HEAD = """# Errata of the papers

This page is generated (`python -m tools.errata`) from the files in `reproduce/errata`. Every entry
says what is printed, what is true, a number, and the test that would fail if the printed form were
right. None of it is held against the papers: a formula that is run on many machines is read more
often than one that is printed once. What is in no paper is under [notes](#notes-about-ourselves).
"""
_NOTES = """## Notes about ourselves

Nothing here is printed in a paper: these are about numbers in a computer, about what a paper leaves
open, and about methods of our own. The tests are those that would fail without the cure.

| | paper | about | what holds | number | test |
|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Erratum:
    """One entry.

    Parameters
    ----------
    id : str
        Unique over all papers.
    printed, true, number : str
        What the paper has, what holds, and one measured number that tells them apart.
    test : str or list of str
        ``path::name`` of the tests that fail if the printed form were right.
    note : bool, default=False
        Whether it is about ourselves: then ``printed`` says what it is about.

    Examples
    --------
    >>> Erratum("E0", "2 + 2 = 5", "4", "1 less", "tests/test_sums.py::test_sum").tests
    ('tests/test_sums.py::test_sum',)
    """

    id: str
    printed: str
    true: str
    number: str
    test: str | Sequence[str]
    note: bool = False

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests, one or several."""
        return (self.test,) if isinstance(self.test, str) else tuple(self.test)


def read_errata(path: Path) -> list[Erratum]:
    """Entries of one paper; an unknown or a missing key is an error that names the entry.

    Examples
    --------
    >>> [each.id for each in read_errata(ENTRIES / "000.toml")][:2]
    ['E1', 'E2']
    """
    found: list[Erratum] = []
    with path.open("rb") as file:
        document: dict[str, Any] = tomllib.load(file)
    for kind, tables in document.items():
        if kind not in ("erratum", "note"):
            raise ValueError(f"{path.name}: {kind} must be erratum or note.")
        first = "printed" if kind == "erratum" else "about"
        wanted = {"id", first, "true", "number", "test"}
        for table in tables:
            if set(table) != wanted:
                name = table.get("id", "an entry without id")
                wrong = ", ".join(sorted(set(table) ^ wanted))
                raise ValueError(f"{path.name}, {name}: keys missing or unknown: {wrong}.")
            found.append(Erratum(printed=table.pop(first), **table, note=kind == "note"))
    return found


def all_errata() -> dict[str, list[Erratum]]:
    """Entries by number of the paper.

    Examples
    --------
    >>> list(all_errata())[0]
    '000'
    """
    return {path.stem: read_errata(path) for path in sorted(ENTRIES.glob("*.toml"))}


@cache
def _names(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def missing_tests(entries: Sequence[Erratum]) -> list[str]:
    """Tests that are named and do not exist.

    Examples
    --------
    >>> missing_tests([Erratum("E0", "", "", "", "tests/test_house.py::test_of_nothing")])
    ['E0: tests/test_house.py::test_of_nothing']
    """
    gone = []
    for entry in entries:
        for test in entry.tests:
            file, *names = test.split("::")
            path = ROOT / file
            if not names or not path.exists() or not set(names) <= _names(path):
                gone.append(f"{entry.id}: {test}")
    return gone


def page() -> str:
    """The page, in Markdown.

    Examples
    --------
    >>> page().splitlines()[0]
    '# Errata of the papers'
    """
    papers = all_errata()
    every = [each for entries in papers.values() for each in entries]
    notes = sum(each.note for each in every)
    parts = [_HEAD, f"{len(every) - notes} errata, {notes} notes.\n"]
    for number, entries in papers.items():
        parts.append(f"## Paper {number}\n\n{_wrapped(_PAPERS[number])}\n")
        parts.append("| | printed | true | number | test |\n|---|---|---|---|---|")
        parts += [_row(each) for each in entries if not each.note]
        parts.append("")
    parts.append(_NOTES)
    parts += [
        _row(each, number) for number, entries in papers.items() for each in entries if each.note
    ]
    return "\n".join(parts).rstrip() + "\n"


def _row(entry: Erratum, *paper: str) -> str:
    tests = "; ".join(f"`{test}`" for test in entry.tests)
    cells = (entry.id, *paper, entry.printed, entry.true, entry.number, tests)
    return "| " + " | ".join(" ".join(each.split()).replace("|", "\\|") for each in cells) + " |"


def _wrapped(text: str) -> str:
    import textwrap

    return textwrap.fill(text, 100)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or say that it is out of date."""
    parser = argparse.ArgumentParser(description="The page of errata.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if out of date")
    given = parser.parse_args(arguments)
    text = page()
    if given.check:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
