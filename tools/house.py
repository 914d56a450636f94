"""Measure the house: files, lines, arrows, cycles, parameters, and what must be read to trust it.

Usage: ``python -m tools.house [folder of the package] [--without papers ...] [--walks]``. Sizes are
printed with and without the named folders; ``--walks`` also runs fits and follows them.
"""

from __future__ import annotations

import argparse
import ast
import io
import math
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .house_names import doubled, read_pages, size_lines

__all__ = ["SOURCE", "House", "Module", "code_lines", "cycles", "read_house", "reading_sentence"]

SOURCE = Path(__file__).parent.parent / "src" / "dpadapt"
TABLE = "privacy.accounting.reviewed"
READ_ALWAYS = ("privacy.core", "privacy.accounting", "privacy.rows")
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_NO_CODE |= {tokenize.ENCODING, tokenize.ENDMARKER}
_SHOWN = 12
_NAMES = re.compile(r"[A-Za-z_][\w. ]*")


def code_lines(text: str) -> int:
    r"""Count the lines of a source that are neither blank nor comment nor docstring.

    Examples
    --------
    >>> code_lines('# why\n\nx = 1  # what\n"A docstring."\n')
    1
    """
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            found |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        if isinstance(node.value.value, str):
            found -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(found)


@dataclass(frozen=True)
class Module:
    """One file: its dotted name without that of the package, and its source.

    Examples
    --------
    >>> Module("privacy.core.noise", False, "import os").part
    'privacy.core'
    """

    name: str
    is_package: bool
    text: str

    @property
    def part(self) -> str:
        """Folder that it is in, inside ``privacy`` the second; a file of the root is its own."""
        folders = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        return ".".join(folders[: 2 if folders[:1] == ["privacy"] else 1]) or self.name or "."

    @property
    def lines(self) -> int:
        """Lines of the file."""
        return self.text.count("\n")

    @cached_property
    def code(self) -> int:
        """Lines of code."""
        return code_lines(self.text)

    @cached_property
    def tree(self) -> ast.Module:
        """Syntax of the source."""
        return ast.parse(self.text)

    @cached_property
    def words(self) -> Counter[str]:
        """Names that its code uses, and how often; its list of public names does not count."""
        code = [each for each in self.tree.body if not ast.unparse(each).startswith("__all__")]
        return Counter(word for each in code for word in _words(each))

    @property
    def own_words(self) -> set[str]:
        """Names that its code uses; what a package imports only to show it does not count."""
        if not self.is_package:
            return set(self.words)
        code = [each for each in self.tree.body if isinstance(each, ast.Assign | ast.FunctionDef)]
        code = [each for each in code if not ast.unparse(each).startswith("__all__")]
        return {word for each in code for word in _words(each)}

    def imports(self, package: str) -> Iterator[str]:
        """Names inside the package that it imports, wherever it does; not those for types only."""
        own = [package, *self.name.split(".")] if self.name else [package]
        here = own if self.is_package else own[:-1]
        for node in _running(self.tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                start = here[: len(here) - node.level + 1] if node.level else []
                module = ".".join([*start, *filter(None, [node.module])])
                names = [f"{module}.{alias.name}" for alias in node.names]
            else:
                continue
            inside = [name for name in names if name.split(".")[0] == package]
            yield from (name.removeprefix(package).removeprefix(".") for name in inside)

    def estimators(self) -> Iterator[tuple[str, int]]:
        """Estimators and how many parameters their constructors take."""
        for made in (each for each in self.tree.body if isinstance(each, ast.ClassDef)):
            for node in made.body:
                if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                    given = node.args.args[1:] + node.args.kwonlyargs
                    if {"epsilon", "random_state"} <= {each.arg for each in given}:
                        yield made.name, len(given)


def _words(tree: ast.AST) -> Iterator[str]:
    """Names that code uses, also in short texts, as in tables of names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name.split(".")[-1]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.split(r"[. ]", node.value) if _NAMES.fullmatch(node.value) else ()


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a tree without those that only a type checker reads."""
    yield node
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    for child in ast.iter_child_nodes(node):
        yield from _running(child)


@dataclass(frozen=True)
class House:
    """The files of a package, by name.

    Examples
    --------
    >>> house = House("p", {"": Module("", True, ""), "a": Module("a", False, "from p import b"),
    ...                     "b": Module("b", False, "from . import a")})
    >>> sorted(house.arrows), cycles(house.arrows)
    ([('a', 'b'), ('b', 'a')], [['a', 'b']])
    """

    package: str
    modules: dict[str, Module]

    @cached_property
    def arrows(self) -> set[tuple[str, str]]:
        """Who imports whom, file by file."""
        found = {
            (name, self._owner(wanted))
            for name, module in self.modules.items()
            for wanted in module.imports(self.package)
        }
        return {(one, two) for one, two in found if one != two}

    @property
    def part_arrows(self) -> Counter[tuple[str, str]]:
        """Who imports whom, folder by folder, with the number of files' arrows."""
        parts = ((self.modules[one].part, self.modules[two].part) for one, two in self.arrows)
        return Counter((one, two) for one, two in parts if one != two)

    def _owner(self, name: str) -> str:
        while name not in self.modules:
            name = name.rpartition(".")[0]
        return name

    def inside(self, *parts: str) -> list[Module]:
        """Files of folders."""
        return [module for module in self.modules.values() if module.part in parts]

    def outside(self, folder: str) -> list[Module]:
        """Files that are not in a folder of this name, such as "papers" or "privacy.local"."""
        found = self.modules.items()
        return [module for name, module in found if not f"{name}.".startswith(f"{folder}.")]

    def code(self, *parts: str) -> int:
        """Lines of code of folders."""
        return sum(module.code for module in self.inside(*parts))

    def used_by_nobody(self) -> Iterator[tuple[Module, str]]:
        """Public functions and classes that no source uses: for users, or for nobody."""
        sources = [module for module in self.modules.values() if not module.is_package]
        users = Counter(word for module in self.modules.values() for word in module.own_words)
        for module in sources:
            for made in module.tree.body:
                if isinstance(made, (ast.FunctionDef, ast.ClassDef)) and made.name[0] != "_":
                    own = Counter(_words(made))[made.name]
                    within = module.words[made.name]
                    if within == own and users[made.name] == (within > 0):
                        yield module, made.name

    @property
    def estimators(self) -> dict[str, int]:
        """Parameters of every estimator."""
        return dict(pair for module in self.modules.values() for pair in module.estimators())


def read_house(source: Path = SOURCE) -> House:
    """Read all files of a package.

    Examples
    --------
    >>> "privacy.core.session" in read_house().modules
    True
    """
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = Module(name, is_package, path.read_text(encoding="utf-8"))
    return House(source.name, found)


def cycles(arrows: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Groups of names that lead to one another.

    Examples
    --------
    >>> cycles([("a", "b"), ("b", "a"), ("b", "c")])
    [['a', 'b']]
    """
    pairs = list(arrows)
    names = sorted({name for pair in pairs for name in pair})
    place = {name: number for number, name in enumerate(names)}
    ends = [[place[pair[side]] for pair in pairs] for side in (0, 1)]
    graph = coo_array((np.ones(len(pairs)), (ends[0], ends[1])), shape=(len(names),) * 2)
    _, group = connected_components(graph, connection="strong")
    groups = [[name for name in names if group[place[name]] == each] for each in np.unique(group)]
    return [each for each in groups if len(each) > 1]


def reading_sentence(house: House) -> str:
    """Say what must be read to trust one number; numbers are rounded up to hundreds.

    Examples
    --------
    >>> reading_sentence(read_house()).startswith("To trust one number, read")
    True
    """
    always = _hundreds(house.code(*READ_ALWAYS))
    table = set(re.findall(r'"([\w.]+)\.\w+"', house.modules[TABLE].text))
    mechanisms = [*house.inside("privacy.mechanisms"), *(house.modules[each] for each in table)]
    one = _hundreds(max(module.code for module in mechanisms))
    claims = [module.code for name, module in house.modules.items() if ".queries" in name]
    texts = [
        f"`privacy/core`, `privacy/accounting` and `privacy/rows` (at most {always} lines of code)",
        f"`privacy/statistics` (at most {_hundreds(house.code('privacy.statistics'))})",
        f"the one file that released it, by `privacy/accounting/reviewed.py` (at most {one})",
    ]
    if claims:
        texts.append(f"the `queries.py` of its method (at most {_hundreds(max(claims))})")
    return f"To trust one number, read {', '.join(texts[:-1])} and {texts[-1]}."


def _hundreds(count: int) -> str:
    return f"{100 * math.ceil(count / 100):,}"


def _story(house: House, left_out: Sequence[str], pages: Sequence[str]) -> Iterator[str]:
    modules = list(house.modules.values())
    yield from size_lines("all", modules, pages)
    for folder in left_out:
        rest = house.outside(folder)
        there = "" if len(rest) < len(modules) else " (there is none)"
        yield from size_lines(f"without {folder}/{there}", rest, pages)
    yield f"\narrows: {len(house.arrows):,} of files, {len(house.part_arrows)} of folders"
    yield f"cycles of files: {cycles(house.arrows) or 'none'}"
    without = [pair for pair in house.arrows if not any(house.modules[e].is_package for e in pair)]
    yield f"cycles without __init__ files: {cycles(without) or 'none'}"
    yield f"cycles of folders: {cycles(house.part_arrows) or 'none'}"
    yield "\npublic names of two or more files"
    for name, files in doubled({each.name: each.tree for each in modules}).items():
        yield f"{name:28} {' '.join(files)}"
    yield "\nfolder                   files   lines    code"
    for part in sorted({each.part for each in modules}):
        inside = house.inside(part)
        total = sum(each.lines for each in inside)
        yield f"{part:24} {len(inside):5} {total:7,} {house.code(part):7,}"
    yield "\nlargest files"
    for each in sorted(modules, key=lambda each: -each.lines)[:_SHOWN]:
        yield f"{each.name:44} {each.lines:4} lines, {each.code:4} of code"
    yield "\nparameters"
    for name, count in sorted(house.estimators.items(), key=lambda pair: -pair[1]):
        yield f"{name:44} {count:4}"
    yield f"\ncore + accounting: {house.code('privacy.core', 'privacy.accounting'):,} lines of code"
    yield reading_sentence(house)


def main() -> None:
    """Print the measures of a package."""
    parser = argparse.ArgumentParser(description="Measure the house.")
    parser.add_argument("source", nargs="?", type=Path, default=SOURCE, help="folder of a package")
    parser.add_argument("--without", nargs="*", default=["papers"], help="folders to leave out")
    parser.add_argument("--walks", action="store_true", help="follow some runs; a few minutes")
    given = parser.parse_args()
    house = read_house(given.source)
    for line in _story(house, given.without, read_pages(given.source.parent.parent)):
        print(line)
    if given.walks:
        from .house_walks import walk_lines

        for line in walk_lines(house, given.source):
            print(line, flush=True)


if __name__ == "__main__":
    main()
