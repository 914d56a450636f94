"""More of what :mod:`tools.bits` records: all that is not a fit of one estimator to one table."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpadapt
from dpadapt import Agents, Private, audit, baselines, hybrid
from dpadapt.features import table_features

from .bits_fits import BUDGET, TASKS, UNREPEATABLE, catalogue, estimators, parts_of, people, sample

__all__ = ["more_fits"]

Fit = Callable[[], Mapping[str, Any]]
YARDSTICKS = (  # they read all rows in the clear, or no private one
    *("KMMRegressor", "KMMClassifier", "DiscrepancyMinimisationRegressor"),
    *("NonPrivateRegressor", "NonPrivateClassifier", "PublicOnlyRegressor", "PublicOnlyClassifier"),
    "kernel_mean_matching",
)
METRICS = {"regression": ["mae", "mse"], "two classes": ["accuracy", "recall", "precision"]}


def more_fits(*, quick: bool = False) -> dict[str, Fit]:
    """Fits by their names; nothing has run yet.

    Examples
    --------
    >>> "hold-out | regression" in more_fits(quick=True)
    True
    """
    fits: dict[str, Fit] = {}
    for task in TASKS[:2] if quick else TASKS:
        fits[f"evaluate | {task}"] = partial(_evaluated, task)
        fits[f"hold-out | {task}"] = partial(_held_out, task)
        fits[f"hold-out of people | {task}"] = partial(_held_out, task, several=True)
        for method in ("gaussian-process", "pinp", "sparse-vector"):
            if not (quick and method == "sparse-vector"):
                fits[f"questions, {method} | {task}"] = partial(_asked, task, method)
        fits[f"secret file | {task}"] = partial(_restored, task)
        for made in estimators(task):
            name = f"saved {type(made).__name__} | {task}"
            if not quick or type(made).__name__ == "AutoRegressor":
                fits[name] = partial(_saved, made, task)
    fits |= {f"yardstick {name}": partial(_yardstick, name) for name in YARDSTICKS}
    fits |= _hybrid()
    fits["charges of a ledger"] = _charged
    if not quick:
        fits |= {f"preview | {task}": partial(_previewed, task) for task in TASKS[:2]}
        fits["command line"] = _commands
        fits["many runs audit"], fits["one run audit"] = _many_runs, _one_run
        fits["membership attack"] = _membership
        fits |= {
            f"replay of {one.name} | {one.task} | {one.relation}": partial(_replayed, one)
            for one in catalogue()
            if not any(slow in one.name for slow in (UNREPEATABLE, "Parity", "SGDLearner"))
        }
    return fits


def _auto(task: str) -> Any:
    kind = dpadapt.AutoRegressor if task == "regression" else dpadapt.AutoClassifier
    return kind(**BUDGET, experts=["linear"])


@cache
def _measured(task: str) -> tuple[Any, Any, Any]:
    """A model to be measured, private rows for that, and its public rows."""
    public = people(task, 200, 0)
    model = _auto(task).fit(*public, private=Private(*people(task, 600, 2)))
    return model, people(task, 500, 3), public


def _evaluated(task: str) -> dict[str, Any]:
    model, rows, public = _measured(task)
    kind = baselines.PublicOnlyRegressor if task == "regression" else baselines.PublicOnlyClassifier
    table = table_features(public[0], 1)
    baseline = dpadapt.AdaptationPipeline([("table", table)], kind()).fit(*public)
    told: dict[str, Any] = {}
    ways: dict[str, dict[str, Any]] = {
        "plain": {},
        "metrics": {"metrics": METRICS.get(task, ["balanced_accuracy"])},
        "baseline": {"baseline": baseline, "public": public},
        "confidence": {"confidence": 0.8},
    }
    if task == "regression":
        ways["range"] = {"label_range": (-2.0, 3.0), "largest_error": 1.0}
    else:
        ways["threshold"] = {"threshold": {"low": 0.4}}
        told["by threshold"] = dpadapt.predict_classes(model, rows[0], threshold={"low": 0.4})
        told["by weight"] = dpadapt.predict_classes(model, rows[0], class_weight="balanced")
    for name, options in ways.items():
        private = Private(rows[0], rows[1])
        told[name] = dpadapt.evaluate(model, private, **BUDGET, **options).to_dict()
    return told


def _held_out(task: str, several: bool = False) -> dict[str, Any]:
    from dpadapt.evaluation import hold_out

    public, (X, y) = people(task, 200, 0), people(task, 800, 2)
    model = _auto(task)
    ids = np.random.default_rng(5).integers(0, 500, 800)
    private = Private(X, y, unit=ids, max_rows=2) if several else Private(X, y)
    train, test = hold_out(private, 0.3, epsilon=0.5, delta=1e-6)
    model.fit(*public, private=train)
    found = dpadapt.evaluate(model, test, **{**BUDGET, "epsilon": 0.5})
    spent = private.spent(1e-6).to_dict()
    return {**parts_of(model, people(task, 25, 4)[0]), "found": found.to_dict(), "spent": spent}


def _predictor(task: str, method: str, **options: Any) -> tuple[Any, Any, Any]:
    kind = dpadapt.KernelRegressor if task == "regression" else dpadapt.KernelClassifier
    predictor = dpadapt.InteractivePredictor(kind(**BUDGET), method=method, **options)
    return predictor, sample(task, 80, 0), sample(task, 300, 2)


def _asked(task: str, method: str) -> dict[str, Any]:
    predictor, public, rows = _predictor(task, method)
    predictor.fit(*public, private=Private(*rows))
    X = sample(task, 25, 3)[0]
    told = {f"answers {n}": predictor.predict(X[n : n + 8]) for n in (0, 4, 12)}
    told["scores"] = predictor.decision_function(X[:5])
    told["guarantee"] = predictor.guarantee_.to_dict()
    if method == "gaussian-process" and task != "three classes":  # a model of one output
        told["model"] = predictor.model_of_answers(X).predict(X)
    predictor.close()
    return told


def _restored(task: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "secret"
        predictor, public, rows = _predictor(task, "gaussian-process", state=state)
        X = sample(task, 25, 3)[0]
        predictor.fit(*public, private=Private(*rows))
        first = predictor.predict(X[:6])
        predictor.close()
        again = _predictor(task, "gaussian-process", state=state)[0]
        again.restore(*public, private=Private(*rows))
        told = {"first": first, "again": again.predict(X[:9])}
        again.close()
        return told


def _saved(model: Any, task: str) -> dict[str, Any]:
    X, y = sample(task, 120, 0)
    rows = sample(task, 300, 2)
    private = Private(rows[0]) if "Discrepancy" in type(model).__name__ else Private(*rows)
    model.fit(X, y, private=private)
    with tempfile.TemporaryDirectory() as folder:
        loaded = dpadapt.load_model(dpadapt.save_model(model, Path(folder) / "model"))
    return parts_of(loaded, sample(task, 25, 3)[0])


def _yardstick(name: str) -> dict[str, Any]:
    task = "two classes" if name.endswith("Classifier") else "regression"
    (X, y), (Z, t) = sample(task, 120, 0), sample(task, 200, 2)
    if name == "kernel_mean_matching":
        return {"weights": baselines.kernel_mean_matching(X, Z).weights}
    kind, public = getattr(baselines, name), name.startswith("PublicOnly")
    target = (Z, t) if name.startswith("NonPrivate") else Z
    model = kind().fit(X, y) if public else kind().fit(X, y, target=target)
    return parts_of(model, sample(task, 25, 3)[0])


def _hybrid() -> dict[str, Fit]:
    """The hybrid model: a curator's rows, and people who trust nobody."""
    fits: dict[str, Fit] = {}
    for kind in (dpadapt.HybridTilt, dpadapt.SubsampleTestReweigh):
        for public in (True, False):
            for relation in ("memory", "files"):
                name = f"{kind.__name__} | {'public' if public else 'no public'} | {relation}"
                fits[name] = partial(_with_agents, kind, public, relation)
    return fits


def _with_agents(kind: Any, public: bool, place: str) -> dict[str, Any]:
    X, y = sample("two classes", 800, 2)
    Z, t = sample("two classes", 9000, 3)
    few: dict[str, Any] = {}
    if kind is dpadapt.SubsampleTestReweigh:
        few["schedule"] = hybrid.TightSchedule(kappa=0.3, rate=0.4, rounds=3)
        few |= {"test": hybrid.BitTest(batch=500), "target_error": 0.01}
    model = kind(**BUDGET, agent_epsilon=1.0, classes=[0, 1], **few)
    given = sample("two classes", 60, 0) if public else ()
    with tempfile.TemporaryDirectory() as folder:
        agents = Agents(Z, t)
        if place == "files":
            path = Path(folder) / "agents.parquet"
            pd.DataFrame(Z, columns=["a", "b", "c"]).assign(label=t).to_parquet(path)
            agents = Agents.from_parquet(path, label="label")
        model.fit(*given, private=Private(X, y), agents=agents)
    return {**parts_of(model, Z[:25]), "agents left": agents.n_left}


def _charged() -> dict[str, Any]:
    """A ledger that every default fit charges, and what it says after each."""
    from dpadapt.privacy import Ledger

    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        account = Ledger(Path(folder) / "budget.db").create("people", epsilon=40.0, delta=1e-6)
        for task in TASKS[:2]:
            for model in estimators(task):
                if type(model).__name__.startswith("Auto"):
                    model.set_params(experts=["linear"])
                model.set_params(ledger=account)
                rows = sample(task, 200, 2)
                own = Private(rows[0]) if "Discrepancy" in type(model).__name__ else Private(*rows)
                model.fit(*sample(task, 80, 0), private=own)
                name = f"{account.number()} {type(model).__name__}"
                told[name] = [account.spent(), account.left()]
        account.ledger.check()
        told["events"] = [event.to_dict() for event in account.events()]
    return told


def _previewed(task: str) -> dict[str, Any]:
    from dpadapt.preview import preview

    X, y = sample(task, 240, 0)
    return {"preview": preview(X, y, rows=2000, epsilons=[1.0]).to_dict()}


def _replayed(one: Any) -> dict[str, Any]:
    found = audit.replay_combination(one, pairs=1)
    moved = [(each.label, each.mechanism, each.ratio) for each in found.moved]
    return {"moved": moved, "holds": found.holds, "refused": found.refused}


def _descent(rows: Any) -> Any:
    model = baselines.NoisyGradientRegressor(epsilon=1.0, delta=1e-6, steps=3)
    return model.fit(*sample("regression", 60, 0), private=Private(*rows))


def _many_runs() -> dict[str, Any]:
    X, y = sample("regression", 60, 2)
    Z, t = X.copy(), y.copy()
    Z[0], t[0] = [40.0, -40.0, 40.0], 90.0
    return {"found": audit.many_runs_audit(_descent, (X, y), (Z, t), runs=20)}


def _one_run() -> dict[str, Any]:
    X, y = sample("regression", 120, 2)
    return {"found": audit.one_run_audit(_descent, audit.Canaries(9 * X, y, -9 * X, -y))}


def _membership() -> dict[str, Any]:
    def fit(X: Any, y: Any, seed: int) -> Any:
        model = baselines.AdaSSPClassifier(**{**BUDGET, "random_state": seed})
        return model.fit(*sample("two classes", 60, 0), private=Private(X, y))

    X, y = sample("two classes", 80, 2)
    return {"found": audit.membership_attack(fit, X, y, shadows=6, targets=3)}


def _commands() -> dict[str, Any]:
    """The command line in this process: what it writes, without its reports."""
    from dpadapt.cli import app

    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for name, rows, seed in (("public", 300, 0), ("private", 700, 2), ("new", 40, 3)):
            X, y = people("regression", rows, seed)
            X.assign(wage=np.round(y, 6)).to_csv(here / f"{name}.csv", index=False)
        both = ["--label", "wage", "--epsilon", "1", "--delta", "1e-6"]
        private, model = ["--private", str(here / "private.csv")], str(here / "model")
        seeded = ["--noise", "seeded", "--random-state", "3"]
        out = here / "predictions.csv"
        for told in (
            ["fit", "--public", str(here / "public.csv"), *private, *both, "--out", model, *seeded],
            ["predict", "--model", model, "--input", str(here / "new.csv"), "--out", str(out)],
        ):
            with redirect_stdout(StringIO()):
                app([*told], standalone_mode=False)
        sealed = json.loads((here / "model" / "guarantee.json").read_text(encoding="utf-8"))
        stated = {name: sealed[name] for name in ("epsilon", "delta", "events", "sentence")}
        return {"predictions": out.read_text(encoding="utf-8"), "guarantee": stated}
