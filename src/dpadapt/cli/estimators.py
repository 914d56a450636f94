"""Estimators by name, their parameters from texts, and the features that go before them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import typer

from .public_table import Task

if TYPE_CHECKING:
    import pandas as pd

_NEED_AGENTS = ("HybridTilt", "SubsampleTestReweigh")
_NO_BUDGET = (
    *("AdaptationPipeline", "PublicOnlyClassifier", "PublicOnlyRegressor"),
    *_NEED_AGENTS,
)
_AUTO = {
    Task.auto: ("AutoClassifier", "AutoRegressor"),
    Task.classification: ("AutoClassifier",),
    Task.regression: ("AutoRegressor",),
}
_FOR = {"AutoClassifier": " (for classes)", "AutoRegressor": " (for numbers)"}
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
    kind = _named(name)
    classifies = issubclass(kind, ClassifierMixin)
    if classifies != (task is Task.classification):
        asked = "classes" if task is Task.classification else "numbers"
        known = {each: _named(each) for each in known_estimators()}
        fitting = [each for each in known if issubclass(known[each], ClassifierMixin) != classifies]
        raise typer.BadParameter(
            f"--estimator {name} does not predict {asked}, which the label asks for. Those that "
            f"do: {', '.join(sorted(fitting))}. Or say --task."
        )
    return kind


def _named(name: str) -> type:
    """The class of a name, which alone is imported."""
    from dpadapt._lazy import named

    known = known_estimators()
    if name in _NEED_AGENTS:
        raise typer.BadParameter(f"--estimator {name} asks agents one by one; use it in Python.")
    if name not in known:
        listed, near = ", ".join(sorted(known)), get_close_matches(name, known, n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise typer.BadParameter(f"--estimator {name} is not one of: {listed}.{meant}")
    kind: type = named(f"{known[name]}.{name}")
    return kind


def check_settings(
    name: str | None, given: Sequence[str], *, task: Task = Task.auto, **session: Any
) -> None:
    """Refuse --estimator and --set as far as it can be done before any file is read.

    Without a name one of those that choose by themselves must take the parameters: the one that
    the task asks for, or while nobody has looked at the label, either.

    Examples
    --------
    >>> check_settings("DiscrepancyRegressor", ["radius=2"], epsilon=1.0, delta=1e-6)
    """
    kinds = [_named(each) for each in (_AUTO[task] if name is None else [name])]
    refused: list[Exception] = []
    for kind in kinds:
        try:
            make_estimator(kind, given, **session)
            return
        except (typer.BadParameter, ValueError, TypeError) as error:
            refused.append(error)
    for each in given:  # what no estimator has is told with what all of them have
        _check_name(each.partition("=")[0], kinds)
    known_names = [all(_has(kind, each) for each in given) for kind in kinds]
    raise refused[known_names.index(True)] if any(known_names) else refused[0]


def _has(kind: Any, given: str) -> bool:
    return given.partition("=")[0].partition("__")[0] in kind._get_param_names()


def _check_name(name: str, kinds: Sequence[Any]) -> None:
    """Refuse a parameter that no estimator has; say which there are, and which may be meant."""
    outer = name.partition("__")[0]
    own = {
        kind.__name__: sorted(set(kind._get_param_names()) - set(_OWN_OPTIONS)) for kind in kinds
    }
    if outer in _OWN_OPTIONS or any(outer in names for names in own.values()):
        return
    near = get_close_matches(outer, {each for names in own.values() for each in names}, n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    lists = "; ".join(
        f"{kind}{_FOR.get(kind, '')} has: {', '.join(names) or 'none'}"
        for kind, names in own.items()
    )
    raise typer.BadParameter(f"--set {name}: no such parameter.{meant} {lists}.")


def known_estimators() -> dict[str, str]:
    """Estimators that a model folder can hold and that take a budget: their modules, by name."""
    from dpadapt.modelfolder.types import ESTIMATORS

    pairs = (each.rpartition(".") for each in ESTIMATORS)
    return {name: module for module, _, name in pairs if name not in _NO_BUDGET}


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
    >>> from dpadapt import DiscrepancyRegressor
    >>> make_estimator(DiscrepancyRegressor, ["radius=2"], epsilon=1.0, delta=1e-6).radius
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
        _check_name(name, [kind])
        if inside and not hasattr(getattr(estimator, outer), "set_params"):
            raise typer.BadParameter(f"--set {name}: {outer} has no parameters of its own.")
        _set(estimator, name, text)
    estimator._check_parameters()
    return estimator


def _set(estimator: Any, name: str, text: str) -> None:
    """Set a parameter to the first reading of a text that its constraints accept."""
    from dpadapt.learning.constraints import constraints_of

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


def table_model(
    public: pd.DataFrame, estimator: Any, *, degree: int = 1, dates: Sequence[Any] | None = None
) -> Any:
    """Return an estimator for a table: with features by the types of its public columns before it.

    Those that choose by themselves read tables as they are.

    Parameters
    ----------
    public : DataFrame
        Features only.
    estimator : estimator
    degree : {1, 2}
        2 adds squares and products of the numeric columns.
    dates : sequence, optional
        Columns to read as dates; by default those that look like dates.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpadapt import DiscrepancyRegressor
    >>> regressor = DiscrepancyRegressor(epsilon=1.0, delta=1e-6)
    >>> table_model(pd.DataFrame({"age": [30, 40]}), regressor).estimator
    DiscrepancyRegressor(delta=1e-06, epsilon=1.0)
    """
    from dpadapt.features import table_features
    from dpadapt.pipeline import AdaptationPipeline

    if is_auto(estimator) and dates is None:
        return estimator
    return AdaptationPipeline([("features", table_features(public, degree, dates))], estimator)


def is_auto(estimator: Any) -> bool:
    """Whether an estimator, or a class of them, reads tables by itself."""
    from dpadapt.auto import AutoClassifier, AutoRegressor

    kind = estimator if isinstance(estimator, type) else type(estimator)
    return issubclass(kind, (AutoClassifier, AutoRegressor))
