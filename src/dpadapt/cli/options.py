"""Options that several commands share, and how the fields of a dataclass become options.

The last part is about what a mistake costs: weights and thresholds of classes, and rare ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from enum import StrEnum
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from .public_table import Task
from .screens import console, numbers_table, say, say_note
from .tables import TableError

if TYPE_CHECKING:
    from dpadapt.rare import ClassErrors

_Job = TypeVar("_Job")
_Names = list[str] | None


def estimator_names(incomplete: str = "") -> list[str]:
    """Names that --estimator takes, for the completion of a shell.

    Examples
    --------
    >>> estimator_names("AutoR")
    ['AutoRegressor']
    """
    from .estimators import known_estimators

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
OnlyColumns = Annotated[_Names, typer.Option(help="Use these columns only: a,b,c.")]
Kept = Annotated[_Names, typer.Option(help="Use these, also if they look like ids.")]
Dropped = Annotated[_Names, typer.Option(help="Leave these columns out: a,b,c.")]
IdColumns = Annotated[_Names, typer.Option(help="These columns are ids: left out.")]
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


KeepMemory = Annotated[
    str | None,
    typer.Option(
        metavar="<size>", help="Memory for cleaned rows: 2GB; by default a quarter of what is free."
    ),
]
SpillFolder = Annotated[
    Path | None,
    typer.Option(help="Where cleaned rows beyond that are written, in a file without a name."),
]
NoSpill = Annotated[
    bool, typer.Option("--no-spill", help="Write no private row to a disk; refuse instead.")
]


def keeping(memory: str | None, folder: Path | None, no_spill: bool) -> dict[str, Any]:
    """Arguments of ``Private.kept`` from --keep-memory, --spill-folder and --no-spill; checked.

    Examples
    --------
    >>> keeping("2GB", None, True)
    {'memory': 2000000000.0, 'spill': False, 'folder': None}
    """
    from dpadapt.privacy.rows.kept import size_of

    if folder is not None and no_spill:
        raise typer.BadParameter("--spill-folder and --no-spill exclude each other; give one.")
    if folder is not None and not folder.is_dir():
        raise TableError(f"--spill-folder: there is no folder {folder}.")
    try:
        room = None if memory is None else size_of("--keep-memory", memory)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return {"memory": room, "spill": not no_spill, "folder": folder}


def takes(job: type[_Job]) -> Callable[[Callable[[_Job], None]], Callable[..., None]]:
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

    def decorate(run: Callable[[_Job], None]) -> Callable[..., None]:
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


_BALANCED = "balanced"
_HEADS = ("dpadapt predict", "found", "false\nalarms", "right of\n100 alarms", "wrong\nin all")

ClassWeight = Annotated[
    list[str] | None,
    typer.Option(
        metavar="<weights>", help="What a mistake costs: balanced, or class=number as in yes=5."
    ),
]
Threshold = Annotated[
    list[str] | None,
    typer.Option(
        metavar="<class=p>", help="Predict a class from this probability on, as in yes=0.1."
    ),
]


def numbers_by_class(option: str, given: Sequence[str], classes: Any) -> dict[Any, float]:
    """Numbers of classes by name; commas divide, unless a class has them in its name.

    Parameters
    ----------
    option : str
    given : sequence of str
        "class=number" each, or several with commas.
    classes : array-like
        The class labels.

    Examples
    --------
    >>> numbers_by_class("--threshold", ["yes=0.1"], ["no", "yes"])
    {'yes': 0.1}
    >>> numbers_by_class("--class-weight", ["1=5,0=2"], [0, 1])
    {1: 5.0, 0: 2.0}
    """
    known = {str(each): each for each in getattr(classes, "tolist", lambda: classes)()}
    found: dict[Any, float] = {}
    for each in given:
        whole = each.rpartition("=")[0].strip() in known
        for part in [each] if whole else each.split(","):
            name, sign, text = (piece.strip() for piece in part.rpartition("="))
            if not sign:
                raise typer.BadParameter(
                    f"{option} {part}: write it as class=number. {_classes(known)}"
                )
            if name not in known:
                near = get_close_matches(name, known, n=1)
                meant = f" Did you mean {near[0]}?" if near else ""
                raise typer.BadParameter(
                    f"{option} {part}: {name!r} is no class.{meant} {_classes(known)}"
                )
            try:
                found[known[name]] = float(text)
            except ValueError:
                raise typer.BadParameter(f"{option} {part}: {text!r} is no number.") from None
    return found


def require_probabilities(option: str, fitted: Any) -> None:
    """Refuse an option that chooses classes, for a model that has no probabilities of them."""
    if not hasattr(fitted, "predict_proba"):
        raise TableError(f"{option}: this model has no probabilities of classes to go by.")


def _classes(known: Any) -> str:
    names = list(known)
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"The classes are: {', '.join(names[:20])}{more}."


def weights_of(given: Sequence[str] | None, classes: Any) -> Any:
    """Weights as --class-weight gives them: "balanced", a dict, or None.

    Examples
    --------
    >>> weights_of(["balanced"], ["no", "yes"]), weights_of(["yes=3"], ["no", "yes"])
    ('balanced', {'yes': 3.0})
    """
    if not given:
        return None
    if list(given) == [_BALANCED]:
        return _BALANCED
    if wrong := [each for each in given if "=" not in each]:
        near = get_close_matches(wrong[0], [_BALANCED], n=1)
        meant = f" Did you mean {_BALANCED}?" if near else ""
        known = [str(each) for each in getattr(classes, "tolist", lambda: classes)()]
        raise typer.BadParameter(
            f"--class-weight {wrong[0]}: write {_BALANCED}, or class=number.{meant} "
            f"{_classes(known)}"
        )
    return numbers_by_class("--class-weight", given, classes)


def weighted(estimator: Any, given: Sequence[str] | None, task: Task, labels: Any) -> Any:
    """Return an estimator with the weights of --class-weight; refuse it where there are none.

    Parameters
    ----------
    estimator : estimator
    given : sequence of str or None
    task : Task
    labels : ndarray
        Public.

    Examples
    --------
    >>> from dpadapt import AutoClassifier
    >>> import numpy as np
    >>> model = AutoClassifier(epsilon=1.0, delta=1e-6)
    >>> weighted(model, ["1=9"], Task.classification, np.array([0, 1])).class_weight
    {1: 9.0}
    """
    import numpy as np

    if not given:
        return estimator
    name = type(estimator).__name__
    if task is not Task.classification:
        raise typer.BadParameter(
            "--class-weight is for classes, and the label asks for numbers. If they are classes, "
            "give --task classification."
        )
    if "class_weight" not in estimator.get_params(deep=False):
        raise typer.BadParameter(
            f"--class-weight is not for {name}, which has no class_weight. Leave it out, and give "
            "--class-weight or --threshold to dpadapt predict: that costs nothing and does the "
            "same for every classifier with probabilities."
        )
    if estimator.class_weight is not None:
        raise typer.BadParameter("--class-weight and --set class_weight are the same; give one.")
    return estimator.set_params(class_weight=weights_of(given, np.unique(labels)))


def say_rare_classes(errors: ClassErrors | None) -> None:
    """Tell of classes that are hardly ever predicted, and what finding more of them costs.

    Parameters
    ----------
    errors : ClassErrors or None
    """
    told = () if errors is None else errors.sentences()
    if errors is None or not told:
        return
    for sentence in told:
        say("rare class", sentence, style="yellow")
    say(
        "",
        "Where private people have fewer of it, that may be right. Where missing one is worse than "
        "a false alarm, predict with one of these options: it costs nothing, and needs no new fit.",
    )
    for name in errors.shown:
        title = f"Finding {name!s}: what it costs on {errors.rows:,} public rows"
        lines = [
            (
                line.rule,
                f"{line.found:,} of {errors.count(name):,}",
                f"{line.alarms:,}",
                "–" if line.found + line.alarms == 0 else f"{100 * line.precision:.0f}",
                f"{line.wrong / errors.rows:.1%}",
            )
            for line in errors.lines(name)
        ]
        console().print(numbers_table(title, _HEADS, lines))
    say_note(
        f"these are {errors.where}. Of private people, only an evaluation tells: dpadapt evaluate "
        "--threshold, or one of a model that was fitted with --class-weight."
    )
