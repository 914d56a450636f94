"""The arrows of the design, checked on the source: who imports whom, who touches private rows."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpadapt

ROOT = Path(__file__).parent.parent
SOURCE = Path(dpadapt.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
PAPERS = ROOT / "reproduce"  # not installed
SCRIPTS = sorted(PAPERS.rglob("*.py"))
METHODS = {"discrepancy", "reweighting", "kernels", "hybrid", "mixing"}
HIGHER = {"service", "cli", "_commands", "demo", "report", "audit", "baselines"}
HIGHER |= {"modelfolder"}
PRIVATE_ROWS = {
    *("_rows", "_value", "_owner", "_charged", "_left", "_source", "_open", "_part", "_sum"),
    *("MemoryRows", "ParquetRows", "SelectedRows", "MappedRows", "RowSource", "ArrowBlock"),
    *("blocks", "block_rows", "ReadRows", "ReadBlock"),
}
CLOSED = {"rows", "views", "_cells", "_tables", "_arrow", "_columns", "_parquet", "cleaning"}
LAZY = "dp_accounting matplotlib numba sqlalchemy pandas pyarrow randomgen opendp rich typer dask"
LAZY += " torch"


def base_of(path: Path) -> Path:
    return PAPERS if path.is_relative_to(PAPERS) else SOURCE


def name_of(path: Path) -> str:
    package = "reproduce" if base_of(path) == PAPERS else "dpadapt"
    parts = (package, *path.relative_to(base_of(path)).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports(path: Path) -> set[str]:
    """Absolute names of everything that a module imports, also inside functions."""
    package = name_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *(node.module or "").split(".")]).strip(".")
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def part_of(name: str) -> str | None:
    """The folder or module of dpadapt to which a dotted name belongs; None for other packages."""
    parts = name.split(".")
    return parts[1] if parts[0] == "dpadapt" and len(parts) > 1 else None


def where(path: Path) -> str:
    return path.relative_to(base_of(path)).parts[0].removesuffix(".py")


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT if base_of(path) == PAPERS else SOURCE))


every_module = pytest.mark.parametrize("path", MODULES, ids=ids)
every_script = pytest.mark.parametrize("path", SCRIPTS, ids=ids)
modules_and_scripts = pytest.mark.parametrize("path", [*MODULES, *SCRIPTS], ids=ids)


def test_reader_of_imports_sees_relative_and_late_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    folder = tmp_path / "mixing"
    folder.mkdir()
    file = folder / "estimator.py"
    file.write_text(
        "from ..kernels import x\ndef f():\n    from dpadapt.hybrid.y import z\nimport os\n"
    )
    assert imports(file) == {"dpadapt.kernels.x", "dpadapt.hybrid.y.z", "os"}


@every_module
def test_arrows(path):
    own, used = where(path), {part_of(name) for name in imports(path)} - {None}
    if own == "privacy":
        assert used <= {"privacy"}, "the trusted core imports none of the others"
    if own in METHODS:
        assert not used & (METHODS - {own}), "a method never imports another method"
        assert not used & HIGHER, "methods do not import what is built on them"
        assert "pipeline" not in used
    if own in ("_checks", "_progress", "_public_fits", "_linear"):
        assert not used & (METHODS | HIGHER), "helpers do not import methods"


@every_module
def test_the_package_does_not_know_what_is_built_around_it(path):
    around = {"reproduce", "benchmarks", "tests"}
    assert not {name.split(".")[0] for name in imports(path)} & around


@every_script
def test_a_paper_does_not_import_another(path):
    folders = {each.parent.name for each in PAPERS.glob("*/page.py")}
    assert len(folders) == 5
    used = {name.split(".")[1] for name in imports(path) if name.startswith("reproduce.")}
    assert used & folders <= {where(path)}


@modules_and_scripts
def test_only_the_core_touches_private_rows(path):
    if where(path) == "privacy":
        return
    for node in ast.walk(tree(path)):
        touched = ""
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "source")
            touched = "" if own else node.attr
        elif isinstance(node, ast.ImportFrom):
            assert not {alias.name for alias in node.names} & PRIVATE_ROWS
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            touched = node.value  # getattr(private, "_rows")
        assert touched not in PRIVATE_ROWS, f"line {getattr(node, 'lineno', '?')}: {touched}"
    for name in imports(path):
        inside = re.match(r"dpadapt\.privacy\.(\w+)\.(\w+)", name)
        assert not (inside and inside[1] in CLOSED), name


@modules_and_scripts
def test_no_private_part_of_scikit_learn(path):
    for name in imports(path):
        parts = name.split(".")
        assert parts[0] != "sklearn" or not any(part.startswith("_") for part in parts), name


@modules_and_scripts
def test_library_does_not_print(path):
    if where(path) in ("cli", "demo"):
        return
    for node in ast.walk(tree(path)):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        assert not (called and node.func.id == "print"), f"line {node.lineno}: print"


@modules_and_scripts
def test_no_global_random_state(path):
    for node in ast.walk(tree(path)):
        used = isinstance(node, ast.Attribute) and re.match(r"np\.random\.(\w+)", ast.unparse(node))
        assert not used or used[1] in ("Generator", "default_rng"), f"line {node.lineno}"


@modules_and_scripts
def test_every_module_says_what_it_is(path):
    assert len(ast.get_docstring(tree(path)) or "") > 20


def public_names() -> list[tuple[str, str]]:
    names = []
    for path in MODULES:
        module = name_of(path)
        if any(part.startswith("_") for part in module.split(".")) or where(path) == "cli":
            continue
        for node in tree(path).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names += [(module, name) for name in ast.literal_eval(node.value)]
    return names


def test_there_are_public_names():
    assert ("dpadapt", "Private") in public_names()
    assert len(public_names()) > 20


@pytest.mark.parametrize(
    ("module", "name"),
    [pytest.param(*pair, id=".".join(pair)) for pair in public_names()],
)
def test_public_names_are_documented_with_an_example(module, name):
    thing = getattr(importlib.import_module(module), name)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return  # a type alias, a module
    text = inspect.getdoc(thing) or ""
    assert text, "no docstring"
    # no example for what is only ever subclassed, raised, or handed out by a session
    protocol = getattr(thing, "_is_protocol", False) or inspect.isabstract(thing)
    simple = issubclass(thing, (Warning, Exception)) if inspect.isclass(thing) else False
    views = ("SelectedRows", "MappedRows", "ReadRows", "ParquetRows")
    handed_out = name in ("Grant", "Hidden", "Event", *views)
    if not (protocol or simple or handed_out):
        assert ">>>" in text, "no example"


def imported_by(statement: str) -> set[str]:
    """Packages, among those that are meant to be lazy, that a fresh process imports."""
    code = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split()) & set(LAZY.split())


def test_import_brings_nothing_heavy():
    assert imported_by("import dpadapt") == set()


def test_the_test_of_imports_can_see_one():
    assert imported_by("import dp_accounting") == {"dp_accounting"}


def settings() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_version_is_stated_once_in_effect():
    assert settings()["project"]["version"] == dpadapt.__version__


def test_the_wheel_holds_no_experiment_and_the_source_archive_does():
    targets = settings()["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"] == {"packages": ["src/dpadapt"]}
    assert "reproduce" in targets["sdist"]["include"]
    assert {each.name for each in (SOURCE / "datasets").glob("*.py")} == {"__init__.py", "wages.py"}


def is_zero(node: ast.AST) -> bool:
    """Zeros by the name of numpy, or a list of nothing else."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).split(".")[-1] in ("zeros", "zeros_like")
    literal = isinstance(node, (ast.List, ast.Tuple)) and node.elts
    return bool(literal) and all(isinstance(e, ast.Constant) and e.value == 0 for e in node.elts)


def noise_on_zeros(module: ast.Module) -> list[int]:
    """Lines that add noise to zeros: noise for its own sake, rounded before it is used."""
    adding = re.compile(r"add_\w+|(symmetric_)?gaussian|gaussian_process|laplace")
    found = []
    for node in ast.walk(module):
        called = isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1]
        if called and adding.fullmatch(called):
            parts = [part for given in node.args for part in ast.walk(given)]
            found += [node.lineno] * any(map(is_zero, parts))
    return found


def test_noise_on_zeros_is_seen():
    for line in (
        "source.add_gaussian(np.zeros(shape), 1.0)",
        "self._noise.add_laplace(np.zeros_like(x), b)",
        "session.gaussian(linear, rows, lambda _: np.zeros(d))",
        "source.add_gaussian(np.array([0.0]), s)",
    ):
        assert noise_on_zeros(ast.parse(line)) == [1], line
    assert not noise_on_zeros(ast.parse("source.add_gaussian(svec(value), scale)"))


@every_module
def test_noise_is_added_to_values_and_never_to_zeros(path):
    assert not noise_on_zeros(tree(path))
