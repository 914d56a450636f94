"""How an estimator and its options become a combination to be replayed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any

import numpy as np

from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Private

from .hostile import Combination, Sample, labels_of

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
STEPS = 4
PUBLIC_ROWS = 60


def public_sample(task: str) -> Sample:
    X = np.random.default_rng(5).normal(size=(PUBLIC_ROWS, 3))
    return X, labels_of(task, X)


def one_at_a_time(
    main: Mapping[str, Sequence[Any]], others: Mapping[str, Sequence[Any]]
) -> Iterator[dict[str, Any]]:
    """Each value of the main option alone, and with each value of each other option."""
    for name, values in main.items():
        for value in values:
            yield {name: value}
            for other, choices in others.items():
                for choice in choices:
                    yield {name: value, other: choice}


def named(kind: type, options: Mapping[str, Any]) -> str:
    return f"{kind.__name__}({', '.join(f'{k}={short(v)}' for k, v in options.items())})"


def short(value: Any) -> str:
    plain = (str, int, float, tuple, list, dict, bool, Strategy)
    return repr(value) if isinstance(value, plain) else f"{type(value).__name__}()"


def fitting(
    kind: Any,
    task: str,
    options: Mapping[str, Any],
    fixed: Mapping[str, Any] | None = None,
    *,
    labelled: bool = True,
    solvers: Mapping[str, type] | None = None,
) -> Combination:
    """An estimator on rows; options of its solver go into the object, if that one has them."""
    X, y = public_sample(task)

    def fit(sample: Sample) -> Any:
        given = {**BUDGET, **(fixed or {}), **options}
        model = kind(**(given if solvers is None else with_solver(given, solvers)))
        if model.noise == "exact":
            model.random_state = None
        rows, labels = sample
        return model.fit(X, y, private=Private(rows, labels) if labelled else Private(rows))

    relation = options.get("relation", "replace-one")
    return Combination(named(kind, options), fit, task, relation)


def with_solver(given: Mapping[str, Any], solvers: Mapping[str, type]) -> dict[str, Any]:
    """Options of the solver as an object; those of other solvers are left out."""
    chosen = solvers[given["solver"]]
    own = {field.name for field in fields(chosen)}
    foreign = {field.name for kind in solvers.values() for field in fields(kind)}
    solver = chosen(**{name: value for name, value in given.items() if name in own})
    rest = {name: value for name, value in given.items() if name not in foreign | {"solver"}}
    return {**rest, "solver": solver}


def given_to_the_solver(kind: Any) -> Any:
    """The estimator; options that are not its own go to its solver, which may refuse them."""
    own = inspect.signature(kind).parameters

    @wraps(kind, updated=())
    def make(**given: Any) -> Any:
        model = kind(**{name: value for name, value in given.items() if name in own})
        others = {f"solver__{name}": value for name, value in given.items() if name not in own}
        return model.set_params(**others)

    return make


def nested(kind: Any) -> Any:
    """Take options of an object inside too, such as ``release__calibration``, if it has them."""

    @wraps(kind, updated=())
    def make(**given: Any) -> Any:
        own = {name: value for name, value in given.items() if "__" not in name}
        return kind(**own).set_params(**{name: given[name] for name in given.keys() - own.keys()})

    return make
