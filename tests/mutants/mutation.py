"""Mutants of the library: one line changed for the worse, and the tests that must notice.

The rows of the table are in the ``*.toml`` files beside this one. A row is never wrong in silence:
its old text must stand exactly once in its file, the new text must parse, its tests must exist.
"""

from __future__ import annotations

import ast
import shutil
import tomllib
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

__all__ = ["Mutant", "TableError", "load", "mutate", "mutated_copy"]

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent


class TableError(ValueError):
    """A row of the table that does not fit the sources."""


@dataclass(frozen=True)
class Mutant:
    """One row of the table.

    Attributes
    ----------
    name : str
        Short and unique.
    why : str
        One sentence: what such a mistake would do.
    file : str
        The source file, from the root of the repository.
    old, new : str
        The exact text, which must stand in the file once, and what is put in its place.
    tests : tuple of str
        Node ids, from the root of the repository; one of them at least must fail.
    """

    name: str
    why: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def load(folder: Path = FOLDER, root: Path = ROOT) -> list[Mutant]:
    """All rows of the ``*.toml`` files in a folder, each checked against the sources."""
    mutants = []
    for path in sorted(folder.glob("*.toml")):
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            if set(row) != {field.name for field in fields(Mutant)}:
                raise TableError(f"{path.name}: {row.get('name')!r} has the wrong keys.")
            mutants.append(Mutant(**row | {"tests": tuple(row["tests"])}))
    names = [mutant.name for mutant in mutants]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise TableError(f"two mutants are called {twice.pop()!r}.")
    for mutant in mutants:
        mutate(mutant, root)
        for test in mutant.tests:
            if not (root / test.partition("::")[0]).is_file():
                raise TableError(f"{mutant.name}: there is no test {test}.")
        if not mutant.tests or not mutant.why:
            raise TableError(f"{mutant.name}: tests and why must not be empty.")
    return mutants


def mutate(mutant: Mutant, root: Path = ROOT) -> str:
    """Text of the mutated file."""
    path = root / mutant.file
    if not path.is_file():
        raise TableError(f"{mutant.name}: there is no file {mutant.file}.")
    text = path.read_text(encoding="utf-8")
    found = text.count(mutant.old)
    if found != 1:
        raise TableError(f"{mutant.name}: the old text stands {found} times in {mutant.file}.")
    mutated = text.replace(mutant.old, mutant.new)
    try:
        same = ast.dump(ast.parse(mutated)) == _parsed(text)
    except SyntaxError as error:
        raise TableError(f"{mutant.name}: the mutated file does not parse: {error}.") from None
    if same:
        raise TableError(f"{mutant.name}: the new text says the same as the old.")
    return mutated


@lru_cache
def _parsed(text: str) -> str:
    return ast.dump(ast.parse(text))


def mutated_copy(mutant: Mutant, folder: Path, root: Path = ROOT) -> Path:
    """A copy of the sources with one file mutated, in an empty folder; gives its ``src``."""
    text = mutate(mutant, root)
    # a compiled function keeps what it called when it was compiled: compile all of them again
    compiled = ("*.nbi", "*.nbc") if "numba" in text else ()
    shutil.copytree(root / "src", folder / "src", ignore=shutil.ignore_patterns(*compiled))
    (folder / mutant.file).write_text(text, encoding="utf-8")
    return folder / "src"
