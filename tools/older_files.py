"""Files of this tree, for later trees to read: model folders, ledgers, and what they say.

``python -m tools.older_files write FOLDER`` fits and saves every estimator with every solver and
option, makes ledgers with events of every kind, and writes what they say into ``expected.json``.
``... read FOLDER`` lets the tree that is imported read them, and says what is not the same. With
``--small`` only a default of each estimator and each solver is written: those of the folder
``tests/data/older_files``, which ``tests/test_older_files.py`` reads.

The reports in the folders are one line long, and their digests are those of that line.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpadapt
from dpadapt import Agents, Private, baselines, load_model, save_model
from dpadapt.privacy import Ledger

from .bits_fits import BUDGET, TASKS, UNREPEATABLE, catalogue, estimators, people, sample, solvers

__all__ = ["differences", "read_ledger", "read_model", "unequal", "write_files"]

EXPECTED = "expected.json"
COLUMNS = ["age", "size", "town"]


def read_model(folder: Path, rows: Any) -> dict[str, Any]:
    """What a stored model says about rows, as plain values.

    Parameters
    ----------
    folder : Path
    rows : list
        Of lists of numbers, or of mappings for a table.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     model = baselines.PublicOnlyRegressor().fit(np.eye(2), [1.0, 1.0])
    ...     told = read_model(save_model(model, Path(parent) / "model"), [[1.0, 0.0]])
    >>> sorted(told)
    ['epsilon', 'events', 'predict']
    """
    model = load_model(folder)
    X = pd.DataFrame(rows) if isinstance(rows[0], dict) else np.array(rows)
    told = {"epsilon": model.guarantee_.epsilon, "events": len(model.guarantee_.events)}
    for name in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, name):
            told[name] = np.asarray(getattr(model, name)(X)).tolist()
    return told


def read_ledger(path: Path) -> dict[str, Any]:
    """What a ledger says of each data set, after a copy of it was adopted and checked.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     _ = Ledger(Path(parent) / "b.db").create("people", epsilon=1.0, delta=1e-6)
    ...     read_ledger(Path(parent) / "b.db")["people"]["charges"]
    0
    """
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(shutil.copy(path, folder))
        told = {}
        for dataset in ledger.adopt():
            account = ledger.account(dataset.name)
            told[dataset.name] = {
                "charges": account.number(),
                "spent": account.spent(),
                "left": account.left(),
                "reserves": [repr(reserve) for reserve in account.reserves()],
            }
        ledger.check()
        return told


def write_files(folder: Path, *, small: bool = False) -> int:
    """Write model folders, ledgers and what they say; return how many model folders there are.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_files(Path(folder) / "new", small=True) > 40  # doctest: +SKIP
    True
    """
    (folder / "models").mkdir(parents=True)
    (folder / "ledgers").mkdir()
    tables = {task: sample(task, 8, 3)[0].tolist() for task in TASKS}
    texts = people("regression", 8, 3)[0][COLUMNS].astype(object)
    tables["texts"] = texts.where(texts.notna(), None).to_dict("records")
    models = {}
    with _short_reports(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, rows, model in _small() if small else [*_small(), *_everything()]:
            place = folder / "models" / _file_name(name)
            try:
                save_model(model, place)
            except dpadapt.modelfolder.ModelFolderError as error:
                print(f"not stored: {name}: {error}")
                continue
            models[place.name] = {"rows": rows, "told": read_model(place, tables[rows])}
    _write_ledger(folder / "ledgers" / "budget.db")
    ledgers = {"budget.db": read_ledger(folder / "ledgers" / "budget.db")}
    expected = {"tables": tables, "models": models, "ledgers": ledgers}
    (folder / EXPECTED).write_text(json.dumps(expected, indent=0), encoding="utf-8")
    return len(models)


def differences(folder: Path) -> Iterator[str]:
    """What the imported tree says otherwise than the one that wrote the files.

    Examples
    --------
    >>> from contextlib import suppress
    >>> with suppress(FileNotFoundError):
    ...     list(differences(Path("no such folder")))
    """
    expected = json.loads((folder / EXPECTED).read_text(encoding="utf-8"))
    for name, one in expected["models"].items():
        try:
            told = read_model(folder / "models" / name, expected["tables"][one["rows"]])
        except Exception as error:  # whatever it is, the file cannot be read
            yield f"{name}: {type(error).__name__}: {error}"
            continue
        yield from unequal(name, told, one["told"])
    for name, one in expected["ledgers"].items():
        yield from unequal(name, read_ledger(folder / "ledgers" / name), one)


def unequal(name: str, told: Any, wanted: Any) -> Iterator[str]:
    """Differences of plain values, in words; numbers may differ by a billionth.

    Examples
    --------
    >>> list(unequal("model", {"epsilon": 1.0, "predict": [2.0]}, {"epsilon": 1.0, "predict": [3]}))
    ['model, predict: other numbers']
    """
    if isinstance(wanted, dict) and isinstance(told, dict):
        for key in sorted(wanted.keys() | told.keys()):
            yield from unequal(f"{name}, {key}", told.get(key), wanted.get(key))
    elif _has_numbers(wanted) and _has_numbers(told) and np.shape(told) == np.shape(wanted):
        if not np.allclose(told, wanted, rtol=1e-9, atol=1e-12):
            yield f"{name}: other numbers"
    elif told != wanted:
        yield f"{name}: {told!r} for {wanted!r}"


def _has_numbers(value: Any) -> bool:
    return not isinstance(value, str) and np.asarray(value).dtype.kind in "fi"


class _short_reports:
    """Reports of one line while this is open: what is in them is not what is kept."""

    def __enter__(self) -> None:
        from dpadapt import report

        self.own = report.write_report

        def one_line(model: Any, path: Any, *, context: Any = None) -> Path:
            Path(path).write_text("<p>A report.</p>\n", encoding="utf-8")
            return Path(path)

        report.write_report = one_line

    def __exit__(self, *_: object) -> None:
        from dpadapt import report

        report.write_report = self.own


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:120]


def _fit(model: Any, task: str) -> Any:
    X, y = sample(task, 60, 0)
    rows = sample(task, 400, 2)
    private = Private(rows[0]) if "Discrepancy" in type(model).__name__ else Private(*rows)
    return model.fit(X, y, private=private)


def _small() -> Iterator[tuple[str, str, Any]]:
    """Name, kind of rows and fitted model of each default and each solver."""
    for task in TASKS:
        for model in estimators(task):
            if task != "two classes" or type(model).__name__.startswith("Auto"):
                yield f"{type(model).__name__} {task}", task, _fit(model, task)
    for name, model, task in solvers():
        if task != "three classes":
            yield f"{name} {task}", task, _fit(model, task)
    for kind in (baselines.PublicOnlyRegressor, baselines.PublicOnlyClassifier):
        task = "regression" if kind is baselines.PublicOnlyRegressor else "two classes"
        yield kind.__name__, task, kind().fit(*sample(task, 60, 0))
    X, y = people("regression", 80, 0)
    Z, t = people("regression", 400, 2)
    private = Private(Z[COLUMNS], t)
    auto = dpadapt.AutoRegressor(**BUDGET, experts=["linear"])
    yield "AutoRegressor texts", "texts", auto.fit(X[COLUMNS], y, private=private)
    from dpadapt.features import table_features

    steps = [("table", table_features(X[COLUMNS], 2))]
    piped = dpadapt.AdaptationPipeline(steps, dpadapt.ReweightingRegressor(**BUDGET))
    yield "AdaptationPipeline texts", "texts", piped.fit(X[COLUMNS], y, private=private)
    yield from _hybrid()


def _hybrid() -> Iterator[tuple[str, str, Any]]:
    from dpadapt.hybrid import BitTest, TightSchedule

    rows, agents = sample("two classes", 800, 2), sample("two classes", 9000, 3)
    few: dict[str, Any] = {"schedule": TightSchedule(kappa=0.3, rate=0.4, rounds=3)}
    few["test"] = BitTest(batch=500)
    kinds: list[tuple[Any, dict[str, Any]]] = [(dpadapt.HybridTilt, {})]
    for kind, options in [*kinds, (dpadapt.SubsampleTestReweigh, few)]:
        model = kind(**BUDGET, agent_epsilon=1.0, classes=[0, 1], **options)
        fitted = model.fit(private=Private(*rows), agents=Agents(*agents))
        yield kind.__name__, "two classes", fitted


def _everything() -> Iterator[tuple[str, str, Any]]:
    """Every combination of the catalogue that can be fitted and stored."""
    for number, one in enumerate(catalogue()):
        if UNREPEATABLE in one.name or "InteractivePredictor" in one.name:
            continue
        task = "two classes" if one.task == "agents" else one.task
        X, y = sample(task, 1100 if one.task == "agents" else 40, 2)
        try:
            model = one.fit((X.astype(object), y.astype(object)))
        except (TypeError, ValueError):  # refused by its public rules
            continue
        yield f"{number:03} {one.name}", task, model


def _events() -> list[Any]:
    """One event of every kind."""
    from dpadapt.papers.hybrid.doors.draws import DrawsEvent
    from dpadapt.papers.hybrid.doors.one_draw import OneDrawGaussianEvent
    from dpadapt.papers.kernels.machines import UpdatesEvent
    from dpadapt.papers.mixing.poisson import PoissonGaussianEvent
    from dpadapt.papers.selection.random_stopping import RandomStoppingEvent
    from dpadapt.privacy.accounting import events as e

    gaussian, other = e.GaussianEvent("mean", 1.0, 30.0), e.GaussianEvent("rows", 2.0, 50.0)
    return [
        gaussian,
        e.DiscreteGaussianEvent("counts", 1.0, 40.0),
        e.LaplaceEvent("level", 1.0, 60.0),
        e.PureEvent("choice", 0.01, count=2),
        e.BoundedRangeEvent("best", 1.0, 50.0),
        PoissonGaussianEvent("drawn", 1.0, 20.0, 0.01),
        UpdatesEvent("answers", 1.0, 3000.0, count=3),
        RandomStoppingEvent("runs", (gaussian,), shape=1.0, gamma=0.5),
        DrawsEvent("loan", 0.5, 1e-9, 100, 1e-6),
        OneDrawGaussianEvent("steps", 1.0, 10.0, 1e-4, count=20),
        e.ParallelEvent("fit and test", ((gaussian, other), (e.LaplaceEvent("x", 1.0, 80.0),))),
    ]


def _write_ledger(path: Path) -> None:
    """A data set for each kind of event, one with all, one of people, one with real fits."""
    from dpadapt.evaluation import hold_out

    ledger, budget = Ledger(path), {"epsilon": 20.0, "delta": 1e-5}
    every = ledger.create("every kind", **budget)
    for event in _events():
        ledger.create(event.kind, **budget).charge([event, event], label="twice")
        every.charge([event], label=event.kind)
    for relation in ("add-remove", "replace-unit"):
        account = ledger.create(relation, **budget)
        account.charge([_events()[0].under(relation)], label="one")
    fits = ledger.create("fits", **budget)
    private = Private(*sample("regression", 200, 2))
    train, test = hold_out(private, 0.5, epsilon=1.0, delta=1e-6, ledger=fits)
    model = dpadapt.ReweightingRegressor(**BUDGET).fit(*sample("regression", 60, 0), private=train)
    model.set_params(ledger=fits, epsilon=0.5)
    model.fit(*sample("regression", 60, 0), private=Private(*sample("regression", 200, 2)))
    del test  # set aside, and not used: a reserve


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or read."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("todo", choices=["write", "read"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small", action="store_true", help="defaults and solvers alone")
    given = parser.parse_args(arguments)
    if given.todo == "write":
        print(f"{write_files(given.folder, small=given.small)} model folders")
        return 0
    found = list(differences(given.folder))
    print(*found, f"{len(found)} differences", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
