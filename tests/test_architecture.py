"""The arrows of the design, checked on the source: who imports whom, who touches private rows."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpadapt
from dpadapt.privacy.accounting.reviewed import DOORS, READERS
from tools.house import cycles, read_house

ROOT = Path(__file__).parent.parent
SOURCE = Path(dpadapt.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
PAPERS = ROOT / "reproduce"  # not installed
SCRIPTS = sorted(PAPERS.rglob("*.py"))
METHODS = {"discrepancy", "reweighting", "kernels", "hybrid", "mixing"}
HIGHER = {"service", "cli", "report", "audit", "baselines"}
HIGHER |= {"modelfolder", "testing", "auto", "evaluation", "preview", "papers"}
PRIVATE_ROWS = {
    *("_rows", "_value", "_owner", "_charged", "_left", "_source", "_held", "_samples", "_kept"),
    *("_let_out", "_charge", "_grant", "_part", "_pass"),
    *("MemoryRows", "ParquetRows", "SelectedRows", "MappedRows", "RowSource", "ArrowBlock"),
    *("blocks", "block_rows", "ReadRows", "ReadBlock", "ArrowRows", "BatchRows", "Stream"),
    *("NamedRows", "SqlRows", "SqlQuery"),
}
CLOSED = {"rows.sources", "rows.views", "rows.cells", "rows.tables", "rows.arrow", "rows.columns"}
CLOSED |= {
    "rows.parquet",
    "rows.streams",
    "rows.database",
    "core.cleaning",
    "statistics.directions",
}
# of the papers: mechanisms on the closed list, and their statistics
READERS_OF_PAPERS = {
    f"papers/{each}.py"
    for each in (
        *("hybrid/doors/descent", "hybrid/doors/draws"),
        *("hybrid/doors/parity", "hybrid/doors/weights"),
        *("kernels/machines", "mixing/filtered", "selection/exponential"),
        *("selection/laplace", "selection/random_stopping"),
    )
}
LAZY = "dp_accounting matplotlib numba sqlalchemy pandas pyarrow randomgen opendp rich typer dask"
LAZY += " torch"


def base_of(path: Path) -> Path:
    return PAPERS if path.is_relative_to(PAPERS) else SOURCE


def name_of(path: Path) -> str:
    package = "reproduce" if base_of(path) == PAPERS else "dpadapt"
    parts = (package, *path.relative_to(base_of(path)).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module."""
    return tuple(ast.walk(tree(path)))


@functools.cache
def imports(path: Path) -> set[str]:
    """Absolute names of everything that a module imports, also inside functions."""
    package = name_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    found = set()
    for node in nodes(path):
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


def on_each(things, called):
    """One test that looks at each of many things, and tells all that are wrong."""

    def decorate(look):
        @functools.wraps(look)
        def test():
            wrong = []
            for thing in things:
                try:
                    look(thing)
                except AssertionError as error:
                    wrong.append(f"{called(thing)}: {error}")
            assert not wrong, "\n".join(wrong)

        del test.__wrapped__  # the test itself has no argument
        return test

    return decorate


every_module = on_each(MODULES, ids)
every_script = on_each(SCRIPTS, ids)
modules_and_scripts = on_each([*MODULES, *SCRIPTS], ids)


def test_all_that_is_wrong_is_told():
    @on_each([1, 2, 3], str)
    def odd(number):
        assert number % 2, "even"

    @on_each([0, 1, 2], str)
    def positive(number):
        assert number, "not positive"
        assert number < 2, "too large"

    with pytest.raises(AssertionError, match=r"2: even"):
        odd()
    with pytest.raises(AssertionError, match=r"(?s)0: not positive.*2: too large"):
        positive()


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
        assert used <= {"privacy", "_types", "_validate", "_lazy"}, (
            "the trusted core imports no other"
        )
    if own in METHODS:
        assert not used & (METHODS - {own}), "a method never imports another method"
        assert not used & HIGHER, "methods do not import what is built on them"
        assert "pipeline" not in used
    if own in {"learning", "base", "_lazy", "_types", "_validate"}:
        assert not used & (METHODS | HIGHER), "what methods share does not import methods"


FLOORS = (  # from the top; whoever stands on one imports from it and from those below
    {"__main__", "cli", "modelfolder", "pipeline", "testing"},
    {"audit", "evaluation", "preview", "report"},
    {"auto", "baselines", "papers", *METHODS},
    {"base", "datasets", "features", "learning", "privacy", "rare"},
    {"_lazy", "_types", "_validate"},
)


HOUSE = read_house()


def test_arrows_point_down():
    floor = {part: place for place, parts in enumerate(FLOORS) for part in parts}
    parts = {(one.split(".")[0], two.split(".")[0]) for one, two in HOUSE.arrows}
    parts = {pair for pair in parts if all(pair)}  # the public names are those of all floors
    assert {each for pair in parts for each in pair} <= set(floor), "a room without a floor"
    assert not {(one, two) for one, two in parts if floor[one] > floor[two]}


def test_no_files_import_in_a_circle():
    assert cycles(HOUSE.arrows) == []
    assert cycles(HOUSE.part_arrows) == []


@every_module
def test_the_package_does_not_know_what_is_built_around_it(path):
    around = {"reproduce", "benchmarks", "tests"}
    assert not {name.split(".")[0] for name in imports(path)} & around


@every_module
def test_nothing_imports_the_papers(path):
    if where(path) == "papers":
        return
    assert not {name for name in imports(path) if name.startswith("dpadapt.papers")}, "by name"


@every_module
def test_papers_share_doors_alone(path):
    if where(path) != "papers" or path.parent == SOURCE / "papers":
        return
    own = path.relative_to(SOURCE).parts[1]
    used = {name.split(".")[2] for name in imports(path) if name.startswith("dpadapt.papers.")}
    assert used <= {own, "selection"}


@every_script
def test_a_paper_does_not_import_another(path):
    folders = {each.parent.name for each in PAPERS.glob("*/page.py")}
    assert len(folders) == 5
    used = {name.split(".")[1] for name in imports(path) if name.startswith("reproduce.")}
    assert used & folders <= {where(path)}


@modules_and_scripts
def test_only_the_core_touches_private_rows(path):
    if where(path) == "privacy" or ids(path) in READERS_OF_PAPERS:
        return
    for node in nodes(path):
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
        inside = re.match(r"dpadapt\.privacy\.(\w+\.\w+)\.(\w+)", name)
        assert not (inside and inside[1] in CLOSED), name


def test_readers_of_private_rows_are_listed_by_name():
    assert READERS == READERS_OF_PAPERS
    assert {each for each in map(ids, MODULES) if each in READERS} == READERS
    homes = {name.rpartition(".")[0].replace(".", "/") + ".py" for name in DOORS}
    assert {home for home in homes if home.startswith("papers/")} <= READERS


@modules_and_scripts
def test_no_private_part_of_scikit_learn(path):
    for name in imports(path):
        parts = name.split(".")
        assert parts[0] != "sklearn" or not any(part.startswith("_") for part in parts), name


@modules_and_scripts
def test_library_does_not_print(path):
    if where(path) == "cli":
        return
    for node in nodes(path):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        assert not (called and node.func.id == "print"), f"line {node.lineno}: print"


@modules_and_scripts
def test_no_global_random_state(path):
    if ids(path) in ("testing/chance.py", "privacy/rows/foreign.py"):  # see that nobody else does
        return
    for node in nodes(path):
        used = isinstance(node, ast.Attribute) and re.match(r"np\.random\.(\w+)", ast.unparse(node))
        assert not used or used[1] in ("Generator", "default_rng"), f"line {node.lineno}"


@modules_and_scripts
def test_every_module_says_what_it_is(path):
    assert len(ast.get_docstring(tree(path)) or "") > 20


def public_names() -> list[tuple[str, str]]:
    """Names that a package or a public module shows."""
    names = []
    for path in MODULES:
        module = name_of(path)
        if any(part.startswith("_") for part in module.split(".")) or where(path) == "cli":
            continue
        for node in tree(path).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names += [(module, name) for name in importlib.import_module(module).__all__]
    return names


def names_of_other_folders() -> list[tuple[str, str]]:
    """Names that a folder takes from another one."""
    homes = {name_of(path): path.parent for path in MODULES}
    taken = {(full.rpartition(".")[0], path) for path in MODULES for full in imports(path)}
    shared = {module for module, path in taken if homes.get(module, path.parent) != path.parent}
    found = {full for path in MODULES for full in imports(path) if full not in homes}
    pairs = (full.rpartition(".")[::2] for full in found)
    return sorted((module, name) for module, name in pairs if module in shared)


def is_told(thing: object) -> bool:
    return not (inspect.isclass(thing) or inspect.isfunction(thing)) or bool(inspect.getdoc(thing))


@on_each(names_of_other_folders(), ".".join)
def test_what_another_folder_takes_says_what_it_is(pair):
    module, name = pair
    assert is_told(getattr(importlib.import_module(module), name)), "no docstring"


def test_only_packages_and_public_modules_list_their_names():
    """Elsewhere an underscore says what is of one file alone."""
    listed = {ids(path) for path in MODULES if "__all__ = " in path.read_text(encoding="utf-8")}
    assert {each for each in listed if not each.endswith("__init__.py")} == {
        *("base.py", "baselines.py", "pipeline.py", "rare.py"),
    }


def test_there_are_public_names():
    assert ("dpadapt", "Private") in public_names()
    assert len(public_names()) > 20


@on_each(public_names(), ".".join)
def test_public_names_are_documented_with_an_example(pair):
    module, name = pair
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


def imported_by(statement: str, among: str = LAZY) -> set[str]:
    """Packages, among those that are meant to be lazy, that a fresh process imports."""
    code = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split()) & set(among.split())


def test_import_brings_nothing_heavy():
    assert imported_by("import dpadapt") == set()


def test_the_command_line_says_help_with_nothing_heavy():
    assert imported_by("import dpadapt.cli", LAZY + " sklearn") == {"typer"}


def test_the_test_of_imports_can_see_one():
    assert imported_by("import dp_accounting") == {"dp_accounting"}


def settings() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


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
        "gaussian(source, np.zeros(d), scale)",
        "source.add_gaussian(np.array([0.0]), s)",
    ):
        assert noise_on_zeros(ast.parse(line)) == [1], line
    assert not noise_on_zeros(ast.parse("source.add_gaussian(svec(value), scale)"))


@every_module
def test_noise_is_added_to_values_and_never_to_zeros(path):
    assert not noise_on_zeros(tree(path))


KNOW_NO_EVENT = [
    *(SOURCE / "privacy" / "accounting").rglob("*.py"),
    *(SOURCE / "privacy" / "ledger").rglob("*.py"),
    *(SOURCE / "report").rglob("*.py"),
    # the second accountant reads nothing of an event but its kind and its fields, on purpose
    *(p for p in (SOURCE / "testing").rglob("*.py") if p.stem != "independent_accountant"),
]


def asked_kinds(module: ast.Module) -> list[int]:
    """Lines that ask which event they have before them: by its class, or by a ladder of kinds."""
    found = []
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            names = re.findall(r"\w+", ast.unparse(node.args[1]))
            found += [node.lineno] * any(re.fullmatch(r"\w+Event", name) for name in names)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            kind = any(re.search(r"(?<!dtype)\.kind$", ast.unparse(side)) for side in sides)
            word = any(isinstance(side, ast.Constant) for side in sides)
            found += [node.lineno] * (kind and word)
        elif isinstance(node, ast.MatchClass):
            found += [node.lineno] * ast.unparse(node.cls).endswith("Event")
    return found


def test_questions_for_the_kind_of_an_event_are_seen():
    for line in (
        "isinstance(event, GaussianEvent)",
        "isinstance(event, (PureEvent, events.LaplaceEvent))",
        "issubclass(type(event), events.GaussianEvent)",
        "isinstance(e, Event | PureEvent)",
        "event.kind == 'parallel'",
        "'pure' != event.kind",
    ):
        assert asked_kinds(ast.parse(line)) == [1], line
    assert asked_kinds(ast.parse("match event:\n    case PureEvent(): pass")) == [2]
    for line in ("isinstance(event, Event)", "event.kind in TABLE", "x.dtype.kind == 'f'"):
        assert not asked_kinds(ast.parse(line)), line
    assert len(KNOW_NO_EVENT) > 30


@pytest.mark.parametrize("path", KNOW_NO_EVENT, ids=lambda path: "/".join(path.parts[-2:]))
def test_who_composes_keeps_or_reports_events_knows_none_by_name(path):
    assert not asked_kinds(tree(path))


LAYERS = {  # of the trusted core: whom each folder may import when it is imported itself
    "accounting": set(),
    "core": {"accounting", "rows"},
    "rows": {"accounting"},
    "statistics": {"core", "rows"},
    "mechanisms": {"accounting", "core", "rows", "statistics", "files"},
    "local": {"accounting", "core", "rows"},
    "ledger": {"accounting", "core", "rows", "files"},
    "files": {"core"},
    "recording": {"accounting", "core", "rows", "mechanisms", "statistics", "local"},
}


def at_import(path: Path) -> set[str]:
    """Modules of the trusted core that a module imports at once, as "folder.module"."""
    name = name_of(path).split(".")
    package = name if path.name == "__init__.py" else name[:-1]
    found = set()
    for node in tree(path).body:
        if isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *(node.module or "").split(".")]).strip(".")
            inside = re.match(r"dpadapt\.privacy\.(\w+)(?:\.(\w+))?", module)
            if inside:
                found |= {f"{inside[1]}.{inside[2] or a.name}" for a in node.names}
    return found


@pytest.mark.parametrize("folder", sorted(LAYERS))
def test_layers_of_the_trusted_core(folder):
    paths = [path for path in MODULES if path.parent == SOURCE / "privacy" / folder]
    assert paths
    used = {name for path in paths for name in at_import(path)}
    assert {name.partition(".")[0] for name in used} - {folder} <= LAYERS[folder]


def test_every_folder_of_the_trusted_core_has_a_layer():
    folders = {path.parent.name for path in MODULES if path.parent.parent == SOURCE / "privacy"}
    assert folders == set(LAYERS)


def test_files_with_two_readers_have_owners():
    def owner(path):
        last = ""
        for line in (ROOT / ".github/CODEOWNERS").read_text(encoding="utf-8").splitlines():
            pattern, _, team = line.partition(" ")
            wanted = re.escape(pattern.removeprefix("/")).replace(r"\*\*/", "(.*/)?")
            if pattern == "*" or re.match(wanted + ("" if pattern.endswith("/") else "$"), path):
                last = team.strip()
        return last

    asked = set(READERS) | {str(each.relative_to(SOURCE)) for each in SOURCE.rglob("*queries.py")}
    asked |= {str(each.relative_to(SOURCE)) for each in (SOURCE / "privacy").rglob("*.py")}
    assert {owner(f"src/dpadapt/{each}") for each in asked} == {"@dpadapt/privacy"}
    assert owner("src/dpadapt/auto/experts.py") == "@dpadapt/maintainers"
