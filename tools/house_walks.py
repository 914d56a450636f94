"""How far a run walks through a package: files, depth, modules, and lines that a number rests on.

Used by :mod:`tools.house` with ``--walks``; the fits take about a minute. A private table of this
script is made up, so that what is seen here is nobody's.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Walk", "modules_imported", "run_lines", "walk", "walk_lines"]


@dataclass(frozen=True)
class Walk:
    """What a run passed.

    Parameters
    ----------
    files : tuple of str
        Files of the package in which a function was called, in order.
    functions, calls : int
        Different functions, and calls of them.
    changes : int
        How often a call was in another file than the call before.
    deepest : tuple of str
        The most frames of ours that were open at once, "file:function".

    Examples
    --------
    >>> Walk(("a.py",), 1, 2, 1, ("a.py:f",)).sentence
    '1 files, 1 functions, 2 calls, 1 changes of file, depth 1'
    """

    files: tuple[str, ...]
    functions: int
    calls: int
    changes: int
    deepest: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        return (
            f"{len(self.files)} files, {self.functions} functions, {self.calls:,} calls, "
            f"{self.changes:,} changes of file, depth {len(self.deepest)}"
        )


def walk(run: Callable[[], Any], source: Path) -> Walk:
    """Run something, and follow the calls inside a folder of sources.

    Examples
    --------
    >>> import tools.house
    >>> walk(lambda: tools.house.code_lines("x = 1"), Path(tools.house.__file__).parent).files
    ('house.py',)
    """
    root = f"{source.resolve()}/"
    files: dict[str, int] = {}
    functions: set[tuple[str, str]] = set()
    deepest: list[str] = []
    calls = changes = 0
    last = ""

    def heard(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls, changes, last, deepest
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(root) or code.co_name[0] == "<":
            return
        name = code.co_filename[len(root) :]
        files[name] = files.get(name, 0) + 1
        functions.add((name, code.co_qualname))
        calls, changes, last = calls + 1, changes + (name != last), name
        open_now = _ours(frame, root)
        if len(open_now) > len(deepest):
            deepest = open_now

    before = sys.getprofile()
    sys.setprofile(heard)
    try:
        run()
    finally:
        sys.setprofile(before)
    return Walk(tuple(files), len(functions), calls, changes, tuple(reversed(deepest)))


def _ours(frame: FrameType | None, root: str) -> list[str]:
    found = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(root):
            found.append(f"{frame.f_code.co_filename[len(root) :]}:{frame.f_code.co_qualname}")
        frame = frame.f_back
    return found


def run_lines(run: Callable[[], Any], source: Path) -> dict[str, set[int]]:
    """Lines that ran inside functions, by file of a folder of sources.

    Examples
    --------
    >>> import tools.house
    >>> found = run_lines(lambda: tools.house.cycles([]), Path(tools.house.__file__).parent)
    >>> list(found)
    ['house.py']
    """
    root = f"{source.resolve()}/"
    found: dict[str, set[int]] = {}

    def opened(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(root) or code.co_name == "<module>":
            return None
        lines = found.setdefault(code.co_filename[len(root) :], set())

        def ran(inner: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                lines.add(inner.f_lineno)
            return ran

        return ran

    before = sys.gettrace()
    sys.settrace(opened)
    try:
        run()
    finally:
        sys.settrace(before)
    return found


def modules_imported(arguments: list[str], package: str = "dpadapt") -> int:
    """Modules of the package that its command line imports for some arguments.

    Examples
    --------
    >>> modules_imported(["--help"]) > 5
    True
    """
    script = (
        "import contextlib, io, sys\n"
        f"from {package}.cli import app\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    app(sys.argv[1:])\n"
        f"print(sum(name.split('.')[0] == {package!r} for name in sys.modules))\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", script, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(ran.stdout.split()[-1])


BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def walk_lines(house: Any, source: Path) -> Iterator[str]:
    """All of it in words: three runs, modules of three commands, and what a number rests on."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = Path(folder)
        _write_tables(here)
        yield "\nwalks, after everything was imported"
        for name, run in _runs(here).items():
            run()  # what is imported late
            found = walk(run, source)
            yield f"{name}: {found.sentence}"
            yield f"  deepest: {' > '.join(found.deepest)}"
        yield "\nmodules imported"
        for name, arguments in _commands(here).items():
            yield f"{name}: {modules_imported(arguments)}"
        yield "\nlines to read for a default number: files of privacy/ and queries that ran"
        yield from _read_lines(house, here, source)


def _table(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.integers(20, 60, rows), "size": rng.normal(size=rows)})
    table["town"] = rng.choice(["A", "B"], rows)
    table["wage"] = 5 + 0.1 * table["age"] + (table["town"] == "A") + seed + rng.normal(size=rows)
    return table


def _write_tables(here: Path) -> None:
    for name, rows in (("public", 300), ("private", 2000), ("new", 20)):
        _table(rows, len(name)).to_csv(here / f"{name}.csv", index=False)
    numbers = _table(2000, 7).drop(columns="town").astype(float)
    numbers.drop(columns="wage").to_parquet(here / "rows.parquet")
    numbers.to_parquet(here / "numbers.parquet")
    numbers.assign(wage=(numbers["wage"] > 16) * 1.0).to_parquet(here / "classes.parquet")


def _commands(here: Path) -> dict[str, list[str]]:
    files = ["--public", str(here / "public.csv"), "--private", str(here / "private.csv")]
    asked = ["--label", "wage", "--epsilon", "1", "--delta", "1e-6", "--force"]
    model = str(here / "model")
    return {
        "dpadapt --help": ["--help"],
        "dpadapt fit": ["fit", *files, *asked, "--out", model],
        "dpadapt predict": [
            *("predict", "--model", model, "--input", str(here / "new.csv")),
            *("--out", str(here / "predictions.csv")),
        ],
    }


def _runs(here: Path) -> dict[str, Callable[[], Any]]:
    from dpadapt import AutoRegressor, InteractivePredictor, KernelRegressor, Private
    from dpadapt.cli import app

    def auto() -> None:
        X, Z = _table(300, 6), _table(2000, 7)
        private = Private(Z.drop(columns="wage"), Z["wage"])
        AutoRegressor(**BUDGET).fit(X.drop(columns="wage"), X["wage"], private=private)

    def command() -> None:
        with redirect_stdout(StringIO()):
            app(_commands(here)["dpadapt fit"], standalone_mode=False)

    def asked() -> None:
        X, Z = (_table(rows, rows).drop(columns="town").to_numpy(float) for rows in (80, 300))
        predictor = InteractivePredictor(KernelRegressor(**BUDGET))
        predictor.fit(X[:, :2], X[:, 2], private=Private(Z[:, :2], Z[:, 2]))
        predictor.close()

    return {
        "AutoRegressor.fit on a frame": auto,
        "dpadapt fit on CSV files": command,
        "InteractivePredictor.fit": asked,
    }


def _fit(name: str, kind: str, here: Path) -> None:
    """A default fit on an array, a frame or a Parquet file."""
    import dpadapt
    from dpadapt import Private

    classes, unlabelled = name.endswith("Classifier"), name.startswith("Discrepancy")
    label = None if unlabelled else "wage"
    file = "rows" if unlabelled else "classes" if classes else "numbers"
    X, Z = (_table(rows, seed).drop(columns="town").astype(float) for rows, seed in _SIZES)
    for table in (X, Z):
        table["wage"] = (table["wage"] > 16) * 1.0 if classes else table["wage"]
    rows, labels = Z[["age", "size"]], None if unlabelled else Z["wage"]
    public: Any = X[["age", "size"]]
    if kind == "Parquet":
        private = Private.from_parquet(here / f"{file}.parquet", label=label)
    elif kind == "frame":
        private = Private(rows, labels)
    else:
        private = Private(rows.to_numpy(), labels if labels is None else labels.to_numpy())
        public = public.to_numpy()
    getattr(dpadapt, name)(**BUDGET).fit(public, X["wage"], private=private)


_SIZES = ((300, 6), (2000, 7))
DEFAULTS = (
    *("AutoRegressor", "AutoClassifier", "DiscrepancyRegressor"),
    *("ReweightingRegressor", "ReweightingClassifier", "AdaMixClassifier"),
    *("KernelRegressor", "KernelClassifier"),
)


def _read_lines(house: Any, here: Path, source: Path) -> Iterator[str]:
    places = {f"{name.replace('.', '/')}.py": module for name, module in house.modules.items()}
    whole: dict[str, set[int]] = {}
    for name in DEFAULTS:
        ran: dict[str, set[int]] = {}
        for kind in ("array", "frame", "Parquet"):
            _fit(name, kind, here)
            for file, lines in run_lines(partial(_fit, name, kind, here), source).items():
                if file.startswith("privacy/") or "queries" in file:
                    ran.setdefault(file, set()).update(lines)
                    whole.setdefault(file, set()).update(lines)
        yield _said(name, ran, places)
    yield _said("all of them together", whole, places)
    always = {file: lines for file, lines in whole.items() if file.startswith("privacy/")}
    yield _said("of these, privacy/", always, places)


def _said(name: str, ran: dict[str, set[int]], places: dict[str, Any]) -> str:
    modules = [places[file] for file in ran if file in places]
    code, lines = sum(module.code for module in modules), sum(map(len, ran.values()))
    return f"{name:24} {len(ran):3} files, {code:6,} lines of code in them, {lines:6,} lines ran"
