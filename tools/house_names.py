"""What a reader of a package must hold in the head: names, classes, and lines that only join files.

Used by :mod:`tools.house`, which prints it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = [
    "doubled",
    "imported_or_documented",
    "names_of",
    "plumbing",
    "read_pages",
    "size_lines",
]

MADE = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def plumbing(tree: ast.Module) -> int:
    r"""Lines of imports, wherever they are, and of the list of public names.

    Examples
    --------
    >>> plumbing(ast.parse("from a import (\n    b,\n)\n__all__ = ['c']\nc = 1"))
    4
    """
    joined: list[Any] = [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    joined += [node for node in tree.body if "__all__" in _assigned(node)]
    return sum(node.end_lineno - node.lineno + 1 for node in joined)


def names_of(tree: ast.Module) -> list[str]:
    r"""Public names that a file defines at its top: classes, functions and values.

    Examples
    --------
    >>> names_of(ast.parse("class A: ...\ndef f(): ...\nB: int = 1\n_c = 2\nimport os"))
    ['A', 'f', 'B']
    """
    found: list[str] = []
    for node in tree.body:
        found += [node.name] if isinstance(node, MADE) else _assigned(node)
    return [name for name in dict.fromkeys(found) if not name.startswith("_")]


def _assigned(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        targets = [node.target]
    else:
        return []
    return [each.id for each in targets if isinstance(each, ast.Name)]


def doubled(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    r"""Public names that two files or more define at their top, and those files.

    Examples
    --------
    >>> doubled({"a": ast.parse("x = 1"), "b": ast.parse("def x(): ...\ny = 2")})
    {'x': ['a', 'b']}
    """
    where: dict[str, list[str]] = defaultdict(list)
    for name, tree in trees.items():
        for each in names_of(tree):
            where[each].append(name)
    return {name: files for name, files in sorted(where.items()) if len(files) > 1}


def imported_or_documented(trees: Mapping[str, ast.Module], pages: Iterable[str]) -> set[str]:
    r"""Public names that another file imports by name, or that a page has as a word.

    Examples
    --------
    >>> trees = {"a": ast.parse("x = 1\ny = 2\nz = 3"), "b": ast.parse("from a import x")}
    >>> sorted(imported_or_documented(trees, ["Use `z`."]))
    ['x', 'z']
    """
    asked = {word for page in pages for word in re.findall(r"\b[A-Za-z]\w*\b", page)}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                asked |= {alias.name for alias in node.names}
    return {name for tree in trees.values() for name in names_of(tree)} & asked


def size_lines(title: str, modules: Iterable[Any], pages: Iterable[str]) -> Iterator[str]:
    r"""Sizes of some files of a house, in words.

    Examples
    --------
    >>> from tools.house import Module
    >>> next(size_lines("all", [Module("a", False, "x = 1\n")], []))
    'all: 1 files, 1 lines, 1 of code'
    """
    files = list(modules)
    trees = {each.name: each.tree for each in files}
    code = sum(each.code for each in files)
    joined = sum(plumbing(tree) for tree in trees.values())
    names = {name for tree in trees.values() for name in names_of(tree)}
    defined = sum(len(names_of(tree)) for tree in trees.values())
    kept = imported_or_documented(trees, pages)
    classes = [n for tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    top = sum(isinstance(node, ast.ClassDef) for tree in trees.values() for node in tree.body)
    lines = sum(each.lines for each in files)
    yield f"{title}: {len(files)} files, {lines:,} lines, {code:,} of code"
    share = joined / max(code, 1)
    yield f"  plumbing: {joined:,} lines of imports and __all__, {share:.1%} of the code"
    yield f"  public names at the top of files: {defined:,}, {len(names):,} different ones, " + (
        f"{len(kept):,} of them imported by another file or in a page"
    )
    twice = doubled(trees)
    made = {node.name for tree in trees.values() for node in tree.body if isinstance(node, MADE)}
    yield f"  public names of two or more files: {len(twice)}, {len(made & twice.keys())} " + (
        "of them classes or functions"
    )
    yield f"  classes: {len(classes)}, {top} of them at the top of a file"


def read_pages(root: Path) -> list[str]:
    """Texts of the pages of a project.

    Examples
    --------
    >>> len(read_pages(Path(__file__).parent.parent)) > 10
    True
    """
    found = [*sorted((root / "docs").glob("*.md")), root / "README.md"]
    return [path.read_text(encoding="utf-8") for path in found if path.exists()]
