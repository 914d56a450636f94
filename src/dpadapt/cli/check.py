"""``dpadapt check``: the owner's look at both files before a fit, on the owner's screen only."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .both_files import header_form
from .formats import Form, given_form, guess_form
from .options import Decimal, Encoding, Separator, takes
from .screens import plain_errors, say, say_note
from .tables import TableError, is_csv, read_table, require_file, text_lines
from .task import Task, labels_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check"]


@dataclass(frozen=True)
class Job:
    """What was asked for on the command line."""

    public: Annotated[Path, typer.Option(help="Public rows: CSV or Parquet.")]
    private: Annotated[Path, typer.Option(help="Private rows: CSV, Parquet or folder of Parquet.")]
    label: Annotated[str | None, typer.Option(help="Column to predict.")] = None
    epsilon: Annotated[float | None, typer.Option(help="As you would give it to fit.")] = None
    delta: Annotated[float, typer.Option(help="As you would give it to fit.")] = 1e-6
    sep: Separator = None
    decimal: Decimal = None
    encoding: Encoding = None
    yes_show: Annotated[
        bool, typer.Option("--yes-show", help="Show it although the output is no terminal.")
    ] = False


@plain_errors()
@takes(Job)
def check(job: Job) -> None:
    """Look at both files before a fit, for the owner of the private one. Free, and not private.

    It shows private cells as they are, on this screen only: nothing is written, nothing is charged,
    nothing goes into a model. Classes spelt differently, cells that are no numbers, ids, levels
    that public rows lack, people in several rows, and sizes too small for an epsilon are told.

    [bold]Examples[/]

      dpadapt check --public a.csv --private b.csv --label y

      dpadapt check --public a.csv --private b.parquet --label y --epsilon 0.5
    """
    from dpadapt import _validate

    if job.epsilon is not None:
        _validate.epsilon(job.epsilon)
    _validate.delta(job.delta)
    if not (job.yes_show or sys.stdout.isatty()):
        raise TableError(
            "check shows private cells, and the output is no terminal: a file or a log would keep "
            "them. Run it on a screen, or say --yes-show."
        )
    pair, roles = _read(job)
    from .preflight import findings

    say_note(
        "what follows shows private cells, for the owner of the private file alone. It is not "
        "covered by any guarantee. Nothing is written or charged. Do not pass it on."
    )
    found = findings(pair, roles)
    for each in sorted(found, key=lambda finding: not finding.serious):
        say("must do" if each.serious else "look", f"{each.about}: {each.text}", _style(each))
    serious = sum(each.serious for each in found)
    if not serious:
        say("ready", "nothing stands in the way of a fit.", style="bold green")
    else:
        things = "one thing" if serious == 1 else f"{serious} things"
        say("verdict", f"{things} to see to before budget is spent.", style="bold")


def _style(finding: Any) -> str:
    return "red" if finding.serious else ""


def _read(job: Job) -> tuple[Any, Any]:
    """Read both files as texts; the public one also by its types."""
    from dpadapt.features import column_roles
    from dpadapt.features.dates import is_date

    from .preflight import Pair

    said = given_form(job.sep, job.decimal, job.encoding)
    require_file(job.public)
    form = guess_form(job.public, said) if is_csv(job.public) else Form(**said)
    public = read_table(job.public, form)
    if job.label is not None and job.label not in public.columns:
        listed = ", ".join(map(str, public.columns))
        raise TableError(f"{job.public} has no column {job.label!r}; it has: {listed}.")
    features = public.drop(columns=[] if job.label is None else job.label)
    classes = False
    if job.label is not None:
        _, task = labels_of(public[job.label].dropna(), Task.auto)
        classes = task is Task.classification
    private = _texts(job.private, form, list(public.columns))
    if private.empty:
        raise TableError(f"the private file {job.private} has no rows.")
    say("public", f"{job.public}: {len(public):,} rows, {public.shape[1]} columns")
    say("private", f"{job.private}: {len(private):,} rows, {private.shape[1]} columns")
    numbers = [str(name) for name in features.columns if features[name].dtype.kind in "iufb"]
    dates = [str(name) for name in features.columns if is_date(features[name])]
    return (
        Pair(
            _as_texts(public),
            private,
            tuple(numbers),
            tuple(dates),
            job.label,
            classes,
            job.epsilon,
            job.delta,
        ),
        column_roles(features),
    )


def _texts(path: Path, form: Form, columns: list[str]) -> pd.DataFrame:
    """Cells of a private file as texts, as they are."""
    import pandas as pd

    if not path.is_dir():
        require_file(path)
    try:
        if path.is_dir() or not is_csv(path):
            return _as_texts(pd.read_parquet(path))
        return text_lines(path, header_form(path, columns, form))
    except (ValueError, OSError, StopIteration) as error:
        raise TableError(f"the private file {path} could not be read: {error}") from None


def _as_texts(table: pd.DataFrame) -> pd.DataFrame:
    plain = table.rename(columns=str)
    return plain.astype(object).where(plain.notna(), None).map(str, na_action="ignore")
