"""Every option of every estimator changes what is found or released, or is refused by its name.

A refusal comes before anything is charged. The second values and the ways in which they are tried
are in :mod:`option_table`; an option without a value there, and an object that no way has, fail.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import warnings
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import dpadapt
from dpadapt import BudgetExceeded, baselines
from dpadapt.learning.strategy import Strategy
from dpadapt.testing.tape import Refusing
from option_table import NETWORKS, VALUES, WAYS, WITH, Way, rows

# observed by tests of their own, below
ELSEWHERE = {"ledger", "verbose", "state"}
INSIDE = {"Release", "StableSteps", "FeatureUnits"}  # made by the library, or a base of others
FOR_MANY_CLASSES = {"multiclass"}  # as its page says; two classes have one score
NOT_FITTED = {"AdaptationPipeline"}  # its options are those of what is in it


def estimators() -> list[type]:
    found = [getattr(dpadapt, name) for name in dpadapt.__all__]
    found += [getattr(baselines, name) for name in baselines.__all__]
    return [each for each in found if inspect.isclass(each) and issubclass(each, BaseEstimator)]


def strategies() -> set[type]:
    for module in pkgutil.walk_packages(dpadapt.__path__, "dpadapt."):
        importlib.import_module(module.name)
    found: set[type] = set()
    todo = [Strategy]
    while todo:
        more = [each for each in todo.pop().__subclasses__() if each.__module__[:7] == "dpadapt"]
        found |= set(more)
        todo += more
    return {each for each in found if is_dataclass(each) and not each.__name__.startswith("_")}


def options_of(kind: type) -> list[str]:
    if issubclass(kind, Strategy):
        return [field.name for field in fields(kind)]
    return list(kind._get_param_names())


def objects(thing: Any, path: str = "") -> list[tuple[str, Any]]:
    """The thing and the strategies inside it, each with the prefix of its options."""
    found = [(path, thing)]
    for name in options_of(type(thing)):
        value = thing._strategy(name) if hasattr(thing, "_strategy") else getattr(thing, name)
        if isinstance(value, Strategy):
            found += objects(value, f"{path}{name}__")
    return found


def other_value(kind: type, name: str, now: Any) -> Any:
    choices = VALUES[(kind.__name__, name) if (kind.__name__, name) in VALUES else name]
    return next(each for each in choices if repr(each) != repr(now))


def tried(ways: list[Way]) -> list[Any]:
    found = []
    for way in ways:
        for path, thing in objects(way.make()):
            for name in options_of(type(thing)):
                if name in ELSEWHERE or name == "module":  # NETWORKS have one
                    continue
                if way.task != "two" or name not in FOR_MANY_CLASSES:
                    place = f"{way.name}-{path}{name}"
                    marks = [pytest.mark.slow] if way.slow else []
                    found.append(pytest.param(way, path + name, thing, id=place, marks=marks))
    return found


def seen(way: Way, changes: dict[str, Any]) -> tuple[Any, ...]:
    """What a user sees of a fit: answers, guarantee, certificates, and what was to be kept."""
    model = way.make().set_params(**changes)
    private = way.private()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            way.fit(model, private)
        except (ValueError, TypeError) as refusal:
            assert private.spent(1e-6).epsilon == 0, "refused after it was charged"
            return ("refused", str(refusal))
        X = rows(40, 5, 0.3)
        try:
            told = [np.asarray(model.predict(X)).tolist()]
        except ValueError as refusal:
            told = [str(refusal)]
        for name in ("predict_proba", "decision_function"):
            if hasattr(model, name):
                told.append(np.asarray(getattr(model, name)(X)).tolist())
    if hasattr(model, "close"):
        model.close()
    shown = getattr(model, "guarantee_", None)
    told.append(None if shown is None else json.dumps(shown.to_dict(), default=str))
    for name in ("certificate_", "candidates_", "trajectory_", "classes_", "agents_guarantee_"):
        told.append(repr(getattr(model, name, None)))
    return tuple(map(str, told))


_BASES: dict[tuple[int, str], tuple[Any, ...]] = {}


def base(way: Way, given: dict[str, Any]) -> tuple[Any, ...]:
    place = (id(way), str(given))
    if place not in _BASES:
        _BASES[place] = seen(way, given)
        assert _BASES[place][0] != "refused", _BASES[place]
        assert seen(way, given) == _BASES[place], "seeded fits must be the same"
    return _BASES[place]


def check(way: Way, option: str, thing: Any) -> None:
    name = option.rpartition("__")[2]
    value = other_value(type(thing), name, getattr(thing, name))
    given = WITH.get(name, {})
    changes = {**given, option: value}
    if option == "noise":
        changes["random_state"] = None
    usual = base(way, given)
    try:
        found = seen(way, changes)
    except (ValueError, TypeError) as refusal:  # by the object, as it is made
        found = ("refused", str(refusal))
    if found[0] == "refused":
        assert name in found[1], f"a refusal must name {name}: {found[1]}"
    else:
        assert found != usual, f"{option}={value!r} changes nothing, and is not refused"


@pytest.mark.slow
@pytest.mark.parametrize(("way", "option", "thing"), tried(WAYS))
def test_an_option_changes_something_or_is_refused(way, option, thing):
    check(way, option, thing)


@pytest.mark.parametrize(("way", "option", "thing"), tried(NETWORKS) if find_spec("torch") else [])
def test_an_option_of_a_network_changes_something_or_is_refused(way, option, thing):
    check(way, option, thing)


def test_every_option_has_a_second_value():
    known = {each for each in estimators() if each.__name__ not in NOT_FITTED}
    known |= {each for each in strategies() if each.__name__ not in INSIDE}
    lacking = [
        f"{kind.__name__}.{name}"
        for kind in known
        if not inspect.isabstract(kind)
        for name in options_of(kind)
        if name not in ELSEWHERE and name not in VALUES and (kind.__name__, name) not in VALUES
    ]
    assert not lacking, f"no second value in option_table.VALUES: {sorted(lacking)}"


def test_every_estimator_and_every_object_is_in_some_way():
    there = {type(thing) for way in WAYS for _, thing in objects(way.make())}
    lacking = {each.__name__ for each in estimators()} - {each.__name__ for each in there}
    assert lacking == NOT_FITTED
    lacking = {each.__name__ for each in strategies() - there if not inspect.isabstract(each)}
    assert not lacking - INSIDE, f"in no way of option_table.WAYS: {sorted(lacking - INSIDE)}"


FIRST = {way.kind: way for way in reversed(WAYS) if "verbose" in options_of(way.kind)}


@pytest.mark.parametrize("kind", FIRST, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("verbose", [0, 1])
def test_verbose_draws_a_bar(kind, verbose, capsys):
    way = FIRST[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        way.fit(way.make().set_params(verbose=verbose), way.private())
    assert bool(capsys.readouterr().err) == bool(verbose)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", FIRST, ids=lambda kind: kind.__name__)
def test_a_ledger_is_charged(kind):
    way = FIRST[kind]
    model = way.make().set_params(ledger=Refusing())
    with pytest.raises(BudgetExceeded):
        way.fit(model, way.private())


def test_the_state_of_a_predictor_is_kept(tmp_path):
    way = next(way for way in WAYS if "state" in options_of(way.kind))
    model = way.fit(way.make().set_params(state=tmp_path / "secret"), way.private())
    model.predict(rows(3, 5))
    model.close()
    assert (tmp_path / "secret").stat().st_size > 0
