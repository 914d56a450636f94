"""Estimators by name, and their parameters from texts of the command line."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from .task import Task

__all__ = ["check_settings", "estimator_class", "known_estimators", "make_estimator"]

_NEED_AGENTS = ("HybridTilt", "SubsampleTestReweigh")
_OWN_OPTIONS = {
    "epsilon": "--epsilon",
    "delta": "--delta",
    "noise": "--noise",
    "random_state": "--random-state",
    "ledger": "--ledger",
    "verbose": "a terminal",
}


def estimator_class(name: str | None, task: Task) -> type:
    """Class of an estimator by its name; the one that chooses by itself if there is none.

    Examples
    --------
    >>> estimator_class(None, Task.regression).__name__
    'AutoRegressor'
    """
    from sklearn.base import ClassifierMixin

    if name is None:
        name = "AutoClassifier" if task is Task.classification else "AutoRegressor"
    known = known_estimators()
    kind = _named(name, known)
    classifies = issubclass(kind, ClassifierMixin)
    if classifies != (task is Task.classification):
        asked = "classes" if task is Task.classification else "numbers"
        fitting = [each for each in known if issubclass(known[each], ClassifierMixin) != classifies]
        raise typer.BadParameter(
            f"--estimator {name} does not predict {asked}, which the label asks for. Those that "
            f"do: {', '.join(sorted(fitting))}. Or say --task."
        )
    return kind


def _named(name: str, known: dict[str, type]) -> type:
    if name in _NEED_AGENTS:
        raise typer.BadParameter(f"--estimator {name} asks agents one by one; use it in Python.")
    if name not in known:
        listed = ", ".join(sorted(known))
        raise typer.BadParameter(f"--estimator {name} is not one of: {listed}.")
    return known[name]


def check_settings(name: str | None, given: Sequence[str], **session: Any) -> None:
    """Refuse --estimator and --set as far as it can be done before any file is read.

    Without a name either of those that choose by themselves must take the parameters.

    Examples
    --------
    >>> check_settings("ReweightingRegressor", ["radius=2"], epsilon=1.0, delta=1e-6)
    """
    known = known_estimators()
    names = ("AutoRegressor", "AutoClassifier") if name is None else (name,)
    refused: Exception | None = None
    for each in names:
        try:
            make_estimator(_named(each, known), given, **session)
            return
        except (typer.BadParameter, ValueError, TypeError) as error:
            refused = refused or error
    assert refused is not None
    raise refused


def known_estimators() -> dict[str, type]:
    """Estimators that a model folder can hold, by name."""
    from importlib import import_module

    from dpadapt.modelfolder.types import ESTIMATORS

    pairs = (each.rpartition(".") for each in ESTIMATORS)
    return {
        name: getattr(import_module(module), name)
        for module, _, name in pairs
        if name not in ("AdaptationPipeline", *_NEED_AGENTS)
    }


def make_estimator(kind: type, given: Sequence[str], **session: Any) -> Any:
    """Make an estimator with parameters as ``--set name=value`` gives them, checked.

    Parameters
    ----------
    kind : type
    given : sequence of str
        "name=value" each. A value is a number, True, False, None, a list with commas, or a text.
    **session
        epsilon, delta and others that have options of their own.

    Examples
    --------
    >>> from dpadapt import ReweightingRegressor
    >>> make_estimator(ReweightingRegressor, ["radius=2"], epsilon=1.0, delta=1e-6).radius
    2
    """
    names = kind._get_param_names()  # type: ignore[attr-defined]
    estimator = kind(**{name: value for name, value in session.items() if name in names})
    for each in given:
        name, sign, text = each.partition("=")
        if not sign:
            raise typer.BadParameter(f"--set {each!r}: write it as name=value.")
        outer, inside, _ = name.partition("__")
        if outer in _OWN_OPTIONS:
            raise typer.BadParameter(f"--set {name}: that is {_OWN_OPTIONS[outer]}.")
        if outer not in names:
            own = ", ".join(sorted(set(names) - set(_OWN_OPTIONS)))
            raise typer.BadParameter(
                f"--set {name}: {kind.__name__} has no such parameter; it has: {own}."
            )
        if inside and not hasattr(getattr(estimator, outer), "set_params"):
            raise typer.BadParameter(f"--set {name}: {outer} has no parameters of its own.")
        _set(estimator, name, text)
    estimator._check_parameters()
    return estimator


def _set(estimator: Any, name: str, text: str) -> None:
    """Set a parameter to the first reading of a text that its constraints accept."""
    from dpadapt._constraints import constraints_of

    allowed = constraints_of(type(estimator)).get(name, ())
    listed = any("__iter__" in getattr(each, "listed", ()) for each in allowed)
    first: Exception | None = None
    for value in _readings(text, listed):
        try:
            estimator.set_params(**{name: value})._check_parameters()
            return
        except (ValueError, TypeError) as error:
            first = first or error
    raise typer.BadParameter(f"--set {name}={text}: {first}")


def _readings(text: str, listed: bool) -> Iterator[Any]:
    """What a text may mean: a list where there are commas or a list is wanted, a value, itself."""
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner, listed = inner[1:-1], True
    if listed or "," in inner:
        yield [_plain(part.strip()) for part in inner.split(",") if part.strip()]
    yield _plain(inner)
    yield text


def _plain(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, (int, float, bool, str, type(None))) else text
