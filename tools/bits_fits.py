"""What :mod:`tools.bits` records: every estimator, solver and option, on small made-up tables.

Only public names are used, so that older and newer trees can be recorded. Estimators and their
options come from the library's own catalogue, found in :func:`catalogue`.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

import dpadapt
from dpadapt import Private, baselines

__all__ = ["all_fits", "catalogue", "estimators", "parts_of", "people", "sample", "solvers"]

CATALOGUES = ("dpadapt.audit", "tests.catalogue")  # where to look for `combinations`: edit here
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
TASKS = ("regression", "two classes", "three classes")
TESTS = Path(__file__).parent.parent / "tests"  # whose table of options is used
UNREPEATABLE = "noise='exact'"  # drawn by another library, which takes no seed
SLOW = ("ParityLearner", "SGDLearner", "method='sparse-vector'")  # of the catalogue
RELEASES = ("release", ("gaussian-process", "tddl", "tdil"))
SOLVERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "DiscrepancyRegressor": (
        "solver",
        ("moments", "frank-wolfe", "mirror-descent", "single-stage"),
    ),
    "ReweightingRegressor": ("solver", ("known-noise", "gradient", "profiled", "statistics")),
    "ReweightingClassifier": ("solver", ("known-noise", "gradient", "profiled")),
    "AdaMixClassifier": ("solver", ("known-noise", "adamix", "theory")),
    "NoisyGDClassifier": ("start", ("zero", "public")),
    "KernelRegressor": RELEASES,
    "KernelClassifier": RELEASES,
}
Fit = Callable[[], Mapping[str, Any]]


def catalogue() -> list[Any]:
    """The library's own list of estimators with their options, wherever it is.

    Examples
    --------
    >>> catalogue()[0].name
    "DiscrepancyRegressor(solver='moments')"
    """
    for place in CATALOGUES:
        with suppress(ImportError, AttributeError):
            return list(importlib.import_module(place).combinations())
    raise ImportError(f"no catalogue of combinations at {' or '.join(CATALOGUES)}.")


def option_fits() -> dict[str, Fit]:
    """Every way of the tests' table of options, as it is and with each option at a second value.

    Examples
    --------
    >>> "option | AutoRegressor(experts=['linear']) | numbers" in option_fits()
    True
    """
    fits: dict[str, Fit] = {}
    for name, fit in _options():
        number = 1  # ways that are told apart by their order alone
        while (found := name if number == 1 else f"{name} | {number}") in fits:
            number += 1
        fits[found] = fit
    return fits


def _options() -> Iterator[tuple[str, Fit]]:
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    table = importlib.import_module("option_table")
    asked = importlib.import_module("test_every_option")
    for way in table.WAYS:
        if not way.slow:
            yield f"option | {way.name} | {way.task}", partial(_way, table, way, {})
    for each in asked.tried(table.WAYS):
        way, option, thing = each.values
        name = option.rpartition("__")[2]
        value = asked.other_value(type(thing), name, getattr(thing, name))
        if not way.slow and name != "noise" and "FunctionKernel" not in way.name:  # seconds each
            changes = {**table.WITH.get(name, {}), option: value}
            yield f"option | {way.name} | {way.task} | {option}", partial(_way, table, way, changes)


def _way(table: Any, way: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    model = way.make().set_params(**changes)
    way.fit(model, way.private())
    found = parts_of(model, table.rows(12, 5, 0.3))
    if hasattr(model, "close"):
        model.close()
    return found


def all_fits(*, quick: bool = False) -> dict[str, Fit]:
    """Every fit by its name; nothing has run yet.

    Examples
    --------
    >>> "evaluate | regression" in all_fits()
    True
    """
    fits: dict[str, Fit] = {}
    for one in catalogue():
        number = sum(name.startswith(f"{one.name} | {one.task}") for name in fits)
        name = f"{one.name} | {one.task} | {one.relation}" + (f" | {number + 1}" if number else "")
        slow = quick and any(each in one.name for each in SLOW)
        if UNREPEATABLE not in one.name and not slow:
            fits[name] = partial(_combination, one)
    if not quick:
        fits |= option_fits()
    fits |= dict(_by_solver()) | dict(_by_table(quick))
    from tools import bits_more

    fits |= bits_more.more_fits(quick=quick)
    return {name: partial(_quietly, fit) for name, fit in fits.items()}


def _quietly(fit: Fit) -> Mapping[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit()


def parts_of(model: Any, X: Any) -> dict[str, Any]:
    """What a fitted model says about rows, its plain attributes, and its guarantee.

    Examples
    --------
    >>> model = baselines.PublicOnlyRegressor().fit(np.eye(2), [1.0, 2.0])
    >>> sorted(parts_of(model, np.eye(2)))
    ['coef_', 'guarantee', 'intercept_', 'n_features_in_', 'predict']
    """
    found: dict[str, Any] = {}
    for name in ("predict", "predict_proba", "decision_function", "predict_interval"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(X)
    for name in dir(model):
        if name.endswith("_") and name[0] != "_":
            with suppress(Exception):
                value = getattr(model, name)
                if name == "certificate_" or _is_plain(value):
                    found[name] = value
    if hasattr(model, "guarantee_"):
        found["guarantee"] = model.guarantee_.to_dict()
    return found


def _is_plain(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fiubUO"
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, (str, int, float, np.number, type(None)))


def sample(task: str, rows: int, seed: int, columns: int = 3) -> tuple[Any, Any]:
    """Draw rows and labels of a task; rows of larger seeds lie a little aside.

    Examples
    --------
    >>> X, y = sample("two classes", 40, 0)
    >>> X.shape, sorted(set(y.tolist()))
    ((40, 3), [0, 1])
    """
    rng = np.random.default_rng([seed, rows])
    X = rng.normal(0.2 * min(seed, 3), 1, size=(rows, columns))
    score = X[:, :3] @ [0.5, -0.3, 0.2] + 0.1 * seed * X[:, 0] + 0.2 * rng.normal(size=rows)
    if task in ("regression", "agents"):
        return X, score
    return X, np.digitize(score, [-0.3, 0.3] if task == "three classes" else [0.0])


def people(task: str, rows: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Draw a table with numbers, texts, categories, dates and missing cells, and labels.

    Examples
    --------
    >>> X, y = people("regression", 50, 0)
    >>> list(X.columns)
    ['age', 'size', 'town', 'kind', 'day']
    """
    rng = np.random.default_rng([7, seed, rows])
    X, score = sample("regression", rows, seed)
    town = rng.choice(["north", "south", "west"], rows)
    table = pd.DataFrame({"age": np.round(40 + 10 * X[:, 0]), "size": X[:, 1], "town": town})
    table["kind"] = pd.Categorical(rng.choice(["a", "b"], rows), categories=["a", "b"])
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, rows), unit="D")
    table["day"] = days
    table.loc[rng.random(rows) < 0.1, "size"] = np.nan
    table.loc[rng.random(rows) < 0.1, "town"] = None
    y = score + (town == "north")
    if task == "regression":
        return table, y
    names = np.array(["low", "mid", "high"] if task == "three classes" else ["low", "high"])
    return table, names[np.digitize(y, [0.0, 0.6] if task == "three classes" else [0.3])]


def _combination(one: Any) -> dict[str, Any]:
    task = "two classes" if one.task == "agents" else one.task
    rows, labels = sample(task, 1100 if one.task == "agents" else 40, 2)
    model = one.fit((rows.astype(object), labels.astype(object)))
    if isinstance(model, list):  # answers of a predictor that was asked, and its guarantee
        *answers, guarantee = model
        return {"answers": answers, "guarantee": guarantee.to_dict()}
    return parts_of(model, sample(task, 25, 3)[0])


@cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory()
    _KEPT.append(folder)  # until the process ends
    return Path(folder.name)


_KEPT: list[Any] = []


def estimators(task: str) -> Iterator[Any]:
    """The private estimators of a task as they come, by public names.

    Examples
    --------
    >>> type(next(estimators("regression"))).__name__
    'AutoRegressor'
    """
    ours = ("Auto", "Discrepancy", "Reweighting", "Kernel", "AdaMix", "NoisyGD")
    others = ("AdaSSP", "NoisyGradient", "NoisySGD", "ObjectivePerturbation")
    ending = "Regressor" if task == "regression" else "Classifier"
    for place, names in ((dpadapt, ours), (baselines, others)):
        for name in names:
            if hasattr(place, name + ending):
                yield getattr(place, name + ending)(**BUDGET)


def solvers() -> Iterator[tuple[str, Any, str]]:
    """Every estimator with every solver, learner or release by its name: name, model and task.

    The budget is larger, so that private rows are heard whatever the solver is.

    Examples
    --------
    >>> name, model, task = next(solvers())
    >>> name, model.epsilon, task
    ("DiscrepancyRegressor(solver='moments')", 8.0, 'regression')
    """
    much = {**BUDGET, "epsilon": 8.0}
    for estimator, (option, values) in SOLVERS.items():
        for value in values:
            tasks = TASKS[:1] if estimator.endswith("Regressor") else TASKS[1:]
            for task in tasks:
                model = getattr(dpadapt, estimator)(**much, **{option: value})
                yield f"{estimator}({option}={value!r})", model, task


def _by_solver() -> Iterator[tuple[str, Fit]]:
    for name, model, task in solvers():
        yield f"{name} | {task} | much budget", partial(_rows, model, task)


def _by_table(quick: bool) -> Iterator[tuple[str, Fit]]:
    """Every estimator on every kind of table."""
    kinds = (_rows, _frame, _texts, _several_rows, _parquet, _parquet_people, _sparse, _unlabelled)
    for task in TASKS:
        for model in estimators(task):
            name = type(model).__name__
            for kind in kinds:
                if quick and (kind not in kinds[:3] or (kind is _texts and task != TASKS[0])):
                    continue
                yield f"{name} | {task} | {kind.__name__[1:]}", partial(kind, model, task)
            if hasattr(model, "relation"):
                other = type(model)(**BUDGET, relation="add-remove")
                yield f"{name} | {task} | add-remove", partial(_rows, other, task)
            secure = type(model)(epsilon=0.5, delta=1e-6)
            yield f"{name} | {task} | secure", partial(_rows, secure, task)
            yield f"{name} | {task} | public alone", partial(_public, model, task)


def _private(model: Any, X: Any, y: Any, **options: Any) -> Private:
    return (
        Private(X, **options) if "Discrepancy" in type(model).__name__ else Private(X, y, **options)
    )


def _rows(model: Any, task: str) -> dict[str, Any]:
    X, y = sample(task, 200, 0)
    model.fit(X, y, private=_private(model, *sample(task, 600, 2)))
    return parts_of(model, sample(task, 25, 3)[0])


def _public(model: Any, task: str) -> dict[str, Any]:
    return parts_of(model.fit(*sample(task, 200, 0)), sample(task, 25, 3)[0])


def _frame(model: Any, task: str) -> dict[str, Any]:
    names = ["a", "b", "c"]
    (X, y), (Z, t) = sample(task, 150, 0), sample(task, 500, 2)
    private = _private(model, pd.DataFrame(Z[:, ::-1], columns=names[::-1]), t)
    model.fit(pd.DataFrame(X, columns=names), y, private=private)
    return parts_of(model, pd.DataFrame(sample(task, 25, 3)[0], columns=names))


def _of_texts(model: Any, public: pd.DataFrame) -> Any:
    if type(model).__name__.startswith("Auto"):
        return model
    from dpadapt.features import table_features

    return dpadapt.AdaptationPipeline([("table", table_features(public, 2))], model)


def _texts(model: Any, task: str) -> dict[str, Any]:
    X, y = people(task, 300, 0)
    whole = _of_texts(model, X)
    whole.fit(X, y, private=_private(model, *people(task, 600, 2)))
    return parts_of(whole, people(task, 25, 3)[0])


def _ids(rows: int) -> list[str]:
    return [f"person {number}" for number in np.random.default_rng(3).integers(0, rows // 2, rows)]


def _several_rows(model: Any, task: str) -> dict[str, Any]:
    X, y = sample(task, 200, 0)
    model.fit(X, y, private=_private(model, *sample(task, 600, 2), unit=_ids(600), max_rows=3))
    return parts_of(model, sample(task, 25, 3)[0])


def _stored(model: Any, task: str) -> tuple[Path, dict[str, Any]]:
    """Two Parquet files of a table with texts, ids and labels."""
    X, y = people(task, 700, 2)
    table = X.assign(label=y, person=_ids(700))
    label = {} if "Discrepancy" in type(model).__name__ else {"label": "label"}
    table = table if label else table.drop(columns="label")
    place = _folder() / f"{task} {len(label)}"
    place.mkdir(exist_ok=True)
    table.iloc[:400].to_parquet(place / "1.parquet", row_group_size=150)
    table.iloc[400:].to_parquet(place / "2.parquet")
    return place, label


def _parquet(model: Any, task: str, **people_too: Any) -> dict[str, Any]:
    X, y = people(task, 300, 0)
    place, label = _stored(model, task)
    whole = _of_texts(model, X)
    whole.fit(X, y, private=Private.from_parquet(place, **label, **people_too))
    return parts_of(whole, people(task, 25, 3)[0])


def _parquet_people(model: Any, task: str) -> dict[str, Any]:
    return _parquet(model, task, unit="person", max_rows=2)


def _sparse(model: Any, task: str) -> dict[str, Any]:
    (X, y), (Z, t) = sample(task, 200, 0), sample(task, 600, 2)
    Z = csr_array(np.where(np.abs(Z) > 0.5, Z, 0.0))
    private = (
        Private.from_sparse(Z)
        if "Discrepancy" in type(model).__name__
        else (Private.from_sparse(Z, t))
    )
    return parts_of(model.fit(X, y, private=private), sample(task, 25, 3)[0])


def _unlabelled(model: Any, task: str) -> dict[str, Any]:
    (X, y), (Z, t) = sample(task, 200, 0), sample(task, 600, 2)
    t = t.astype(object)
    t[::3] = None
    t[1::7] = "no label"
    model.fit(X, y, private=_private(model, Z, t))
    return parts_of(model, sample(task, 25, 3)[0])
