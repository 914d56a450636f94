"""Options: those that several commands share, and how the fields of a job become options."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from .task import Task

Job = TypeVar("Job")
_Names = list[str] | None


def estimator_names(incomplete: str = "") -> list[str]:
    """Names that --estimator takes, for the completion of a shell.

    Examples
    --------
    >>> estimator_names("AutoR")
    ['AutoRegressor']
    """
    from .settings import known_estimators

    return [each for each in sorted(known_estimators()) if each.startswith(incomplete)]


class NoiseKind(StrEnum):
    """Where noise comes from."""

    secure = "secure"
    seeded = "seeded"
    exact = "exact"


LedgerPath = Annotated[
    str, typer.Option("--ledger", help="SQLite file of the ledger, or postgresql:// URL.")
]
DatasetName = Annotated[str, typer.Option("--dataset", help="Name of the data set in the ledger.")]
ModelPath = Annotated[Path, typer.Option("--model", help="Model folder, written by fit.")]
Trusted = Annotated[
    list[str] | None,
    typer.Option("--trust", help="Also accept this class or function in it; may be repeated."),
]
Separator = Annotated[str | None, typer.Option(help="Separator of CSV files; guessed.")]
Decimal = Annotated[str | None, typer.Option(help="Decimal sign: . or , ; guessed.")]
Encoding = Annotated[str | None, typer.Option(help="Of CSV files, e.g. latin-1; guessed.")]
TaskOption = Annotated[
    Task,
    typer.Option(
        metavar="<task>",  # shorter than the list of what there is, which would widen all of --help
        help="regression, classification, or auto: asks the public label.",
    ),
]
PrivateEncoding = Annotated[
    str | None, typer.Option(help="Of the private file, if it is another one.")
]
Columns = Annotated[_Names, typer.Option(help="Use these columns only: a,b,c.")]
Kept = Annotated[_Names, typer.Option(help="Use these, also if they look like ids.")]
Dropped = Annotated[_Names, typer.Option(help="Leave these columns out: a,b,c.")]
Ids = Annotated[_Names, typer.Option(help="These columns are ids: left out.")]
Dates = Annotated[_Names, typer.Option(help="These columns are dates.")]
Groups = Annotated[
    str | None, typer.Option(help="Public column whose values are sub-populations; no feature.")
]
Settings = Annotated[
    _Names, typer.Option(help="Parameter of the estimator, name=value; may be repeated.")
]
EstimatorName = Annotated[
    str | None,
    typer.Option(
        help="Estimator of the library; by default it chooses itself.",
        autocompletion=estimator_names,
    ),
]


def takes(job: type[Job]) -> Callable[[Callable[[Job], None]], Callable[..., None]]:
    """Make the fields of a dataclass the options of a command, which is then given the job.

    So an option is written once: with its type, its text and its default.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Greeting:
    ...     name: Annotated[str, typer.Option(help="Whom to greet.")]
    >>> @takes(Greeting)
    ... def greet(job):
    ...     print(f"hello, {job.name}")
    >>> greet(name="world")
    hello, world
    """
    hints = get_type_hints(job, include_extras=True)
    fields = [each.replace(annotation=hints[each.name]) for each in _parameters(job)]

    def decorate(run: Callable[[Job], None]) -> Callable[..., None]:
        @wraps(run)
        def command(**given: Any) -> None:
            run(job(**given))

        command.__annotations__ = hints
        command.__signature__ = Signature(fields)  # type: ignore[attr-defined]
        return command

    return decorate


def _parameters(job: type) -> list[Any]:
    return list(signature(job).parameters.values())


def require_ledger_with_dataset(ledger: str | None, dataset: str | None) -> None:
    """Refuse one without the other."""
    if (ledger is None) != (dataset is None):
        raise typer.BadParameter("--ledger and --dataset belong together; give both or neither.")


def require_unit_with_rows(unit: str | None, max_rows: int | None) -> None:
    """Refuse one without the other."""
    if (unit is None) != (max_rows is None):
        raise typer.BadParameter("--unit and --max-rows belong together; give both or neither.")
