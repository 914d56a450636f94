"""Benchmarks and tools run rarely: what they import must still be there."""

import ast
from importlib import import_module
from pathlib import Path

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
