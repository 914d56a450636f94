"""The page of all public names, from their docstrings: signatures, parameters, methods.

The front door (what a user needs) is told in full, every other package as a list. The page is
generated; a test keeps it up to date.

Usage: ``python -m tools.api`` writes ``docs/api.md``; with ``--check`` it only looks.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tools.wrap import wrapped

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
_IN_FULL = ("", "preview", "evaluation", "features", "report", "modelfolder")
_METHODS = ("auto", "reweighting", "mixing", "discrepancy", "kernels", "hybrid", "baselines")
_LISTED = (*_METHODS, "audit", "testing", "privacy", "datasets")
_ROLE = re.compile(r":(?:class|func|meth|mod|data):`~?\.?(?:[\w.]*\.)?(\w+)`")
_HEAD = """# All public names

This page is generated from the docstrings (`python -m tools.api`). Every docstring also has an
example that is run by the tests: `help(dpadapt.AutoRegressor)` shows it. [index.md](index.md) says
which name is for what.
"""


def page() -> str:
    """Return the page as it should be.

    Examples
    --------
    >>> page().splitlines()[0]
    '# All public names'
    """
    parts = [_HEAD]
    done: set[Any] = set()
    for name in _IN_FULL:
        parts += _in_full(_module(name), done)
    parts.append("## Everything else, by package\n")
    for name in _LISTED:
        parts += _listed(_module(name))
    return wrapped("\n".join(parts))


def _module(name: str) -> Any:
    return import_module(f"dpadapt.{name}" if name else "dpadapt")


def _in_full(module: Any, done: set[Any]) -> Iterator[str]:
    """A package with everything about each of its names that was not told before."""
    yield f"## {module.__name__}\n"
    yield f"{_first(module)}\n"
    for name in sorted(module.__all__, key=str.lower):
        thing = getattr(module, name)
        if thing in done:
            continue
        done.add(thing)
        yield f"### {name}\n"
        yield f"    {_signature(thing, name)}\n"
        yield f"{_summary(thing)}\n"
        if rows := list(_parameters(thing)):
            yield "| parameter | | |\n|---|---|---|"
            yield "\n".join(f"| `{each}` | {kind} | {text} |" for each, kind, text in rows) + "\n"
        if inspect.isclass(thing) and (methods := list(_methods(thing))):
            yield "\n".join(f"- `{each}`: {text}" for each, text in methods) + "\n"


def _listed(module: Any) -> Iterator[str]:
    yield f"### {module.__name__}\n"
    yield f"{_first(module)}\n"
    rows = [(name, _first(getattr(module, name))) for name in sorted(module.__all__)]
    yield "| name | |\n|---|---|"
    yield "\n".join(f"| `{name}` | {_cell(text)} |" for name, text in rows) + "\n"


def _doc(thing: Any) -> str:
    return _ROLE.sub(r"`\1`", inspect.getdoc(thing) or "").replace("``", "`")


def _first(thing: Any) -> str:
    """First paragraph of a docstring on one line."""
    return " ".join(_doc(thing).split("\n\n")[0].split())


def _summary(thing: Any) -> str:
    """Everything before the first section."""
    text = re.split(r"\n\n\w[\w ]*\n-{3,}\n", _doc(thing), maxsplit=1)[0]
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _signature(thing: Any, name: str) -> str:
    """Name with parameters and defaults; types stand below."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for key, each in found.parameters.items()
        if key not in ("self", "cls")
    ]
    shown = str(found.replace(parameters=parameters, return_annotation=inspect.Parameter.empty))
    return name + re.sub(r"<factory>|<object object[^>]*>", "...", shown)


def _parameters(thing: Any) -> Iterator[tuple[str, str, str]]:
    """Name, type and text of each parameter in a docstring."""
    found = re.search(
        r"(?:^|\n)Parameters\n-{3,}\n(.*?)(?=\n\n\w[\w ]*\n-{3,}\n|\Z)", _doc(thing), re.S
    )
    if found is None:
        return
    names, kind = "", ""
    text: list[str] = []
    for line in [*found[1].split("\n"), "end"]:
        if line and not line.startswith(" "):
            if names:
                yield names, _cell(kind), _cell(" ".join(text))
            names, _, kind = line.partition(" : ")
            text = []
        else:
            text.append(line.strip())


def _methods(thing: type) -> Iterator[tuple[str, str]]:
    """Public methods and properties that the library wrote, with their first sentence."""
    for name in sorted(dir(thing)):
        if name.startswith("_"):
            continue
        own = inspect.getattr_static(thing, name)
        inner = getattr(own, "fget", None) or getattr(own, "__func__", None) or own
        inner = getattr(inner, "fn", inner)
        written = getattr(inner, "__module__", "") or ""
        if not (inspect.isfunction(inner) and written.startswith("dpadapt")):
            continue
        shown = name if isinstance(own, property) else _signature(inner, name)
        yield shown, _first(inner)


def _cell(text: str) -> str:
    """Text that may stand in a table."""
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    """Write the page, or look whether it is up to date."""
    parser = argparse.ArgumentParser(description="Write docs/api.md from the docstrings.")
    parser.add_argument("--check", action="store_true", help="only look; exit code 1 if it is old")
    if parser.parse_args().check:
        sys.exit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
