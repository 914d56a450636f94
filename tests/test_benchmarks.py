"""Benchmarks and tools run rarely: what they import must still be there."""

import ast
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted([*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "tools").glob("*.py")])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_name_of_the_library_that_a_script_imports_is_there(path):
    missing = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.level:
            continue
        if (node.module or "").partition(".")[0] != "dpadapt":
            continue
        for alias in node.names:
            home = import_module(node.module)
            if not hasattr(home, alias.name):
                try:
                    import_module(f"{node.module}.{alias.name}")
                except ModuleNotFoundError:
                    missing.append(f"{node.module}.{alias.name}")
    assert missing == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_name_that_a_script_takes_from_a_module_of_the_library_is_there(path):
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    modules = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "dpadapt":
            for alias in node.names:
                found = getattr(import_module(node.module), alias.name, None)
                if isinstance(found, ModuleType):
                    modules[alias.asname or alias.name] = found
    taken = [each for each in nodes if isinstance(each, ast.Attribute)]
    for each in taken:
        if isinstance(each.value, ast.Name) and each.value.id in modules:
            assert hasattr(modules[each.value.id], each.attr), f"{each.value.id}.{each.attr}"
