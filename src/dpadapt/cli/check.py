"""``dpadapt check``: the owner's look at both files before a fit, on the owner's screen only."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .formats import Form, given_form, other_encoding
from .options import Decimal, Dropped, Encoding, PrivateEncoding, Separator, takes
from .public_table import Task, labels_and_task, listed_names
from .screens import plain_errors, say, say_note
from .tables import (
    TableError,
    check_label,
    header_form,
    is_csv,
    no_header,
    public_form,
    read_table,
    require_file,
    text_lines,
    widths,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd


@dataclass(frozen=True)
class CheckOptions:
    """What was asked for on the command line."""

    public: Annotated[Path, typer.Option(help="Public rows: CSV or Parquet.")]
    private: Annotated[Path, typer.Option(help="Private rows: CSV, Parquet or folder of Parquet.")]
    label: Annotated[str | None, typer.Option(help="Column to predict.")] = None
    epsilon: Annotated[float | None, typer.Option(help="As you would give it to fit.")] = None
    delta: Annotated[float, typer.Option(help="As you would give it to fit.")] = 1e-6
    drop: Dropped = None
    unit: Annotated[str | None, typer.Option(help="Private column that says whose row it is.")] = (
        None
    )
    sep: Separator = None
    decimal: Decimal = None
    encoding: Encoding = None
    private_encoding: PrivateEncoding = None
    yes_show: Annotated[
        bool, typer.Option("--yes-show", help="Show it although the output is no terminal.")
    ] = False


@plain_errors()
@takes(CheckOptions)
def check_command(job: CheckOptions) -> None:
    """Look at both files before a fit, for the owner of the private one. Free, and not private.

    It shows private cells as they are, on this screen only: nothing is written, nothing is charged,
    nothing goes into a model. Classes spelt differently, cells that are no numbers, ids, levels
    that public rows lack, people in several rows, and sizes too small for an epsilon are told. What
    it advises, --drop and --unit, can be tried here before fit gets it.

    [bold]Examples[/]

      dpadapt check --public a.csv --private b.csv --label y

      dpadapt check --public a.csv --private b.parquet --label y --epsilon 0.5

      dpadapt check --public a.csv --private b.csv --label y --drop street --unit person_id
    """
    from dpadapt import _validate

    if job.epsilon is not None:
        _validate.epsilon(job.epsilon, most=_validate.MOST_EPSILON)
    _validate.delta(job.delta)
    if not (job.yes_show or sys.stdout.isatty()):
        raise TableError(
            "check shows private cells, and the output is no terminal: a file or a log would keep "
            "them. Run it on a screen, or say --yes-show."
        )
    pair, roles, of_file = _read(job)
    from .preflight import findings

    say_note(
        "what follows shows private cells, for the owner of the private file alone. It is not "
        "covered by any guarantee. Nothing is written or charged. Do not pass it on."
    )
    found = [*of_file, *findings(pair, roles)]
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


def _read(job: CheckOptions) -> tuple[Any, Any, list[Any]]:
    """Read both files as texts, the public one also by its types; and what is odd about a file."""
    from dpadapt.features import column_roles

    from .preflight import Pair

    said = given_form(job.sep, job.decimal, job.encoding)
    given_form(None, None, job.private_encoding, option="--private-encoding")
    form = public_form(job.public, said)
    public = read_table(job.public, form)
    if job.label is not None:
        check_label(job.public, public, job.label)
    dropped = listed_names(public.columns, "--drop", job.drop, str(job.public))
    if job.label in dropped:
        raise TableError(f"--drop: {job.label!r} is the label.")
    classes = False
    if job.label is not None:
        _, task = labels_and_task(public[job.label].dropna(), Task.auto)
        classes = task is Task.classification
    own = header_form(job.private, list(public.columns), form)
    if "encoding" in said:
        own = replace(own, encoding=form.encoding)
    if job.private_encoding is not None:
        own = replace(own, encoding=job.private_encoding)
    private = _texts(job.private, own)
    if not {*map(str, public.columns)} & {*private.columns}:
        raise TableError(no_header(job.private))
    if len({*private.columns}) < private.shape[1]:
        twice = private.columns[private.columns.duplicated()][0]
        raise TableError(
            f"--private: two columns of {job.private} are called {twice!r}. Give one of them "
            "another name."
        )
    if private.empty:
        raise TableError(f"the private file {job.private} has no rows.")
    if own != form:
        say("format", f"{job.private}: {own.words}")
    people = None if job.unit is None else _people(job.private, private, job.unit)
    whose = "" if people is None else f" of {people:,} people"
    say("public", f"{job.public}: {len(public):,} rows, {public.shape[1]} columns")
    say("private", f"{job.private}: {len(private):,} rows{whose}, {private.shape[1]} columns")
    away = [*map(str, dropped), *([] if job.unit is None else [job.unit])]
    public, private = (each.drop(columns=away, errors="ignore") for each in (public, private))
    features = public.drop(columns=[] if job.label is None else job.label)
    numbers = [str(name) for name in features.columns if features[name].dtype.kind in "iufb"]
    roles = column_roles(features)
    dates = [role for role in roles if role.kind == "date"]
    if dates:
        say("dates", "; ".join(f"{role.name} ({role.why})" for role in dates))
    return (
        Pair(
            _as_texts(public),
            private,
            tuple(numbers),
            tuple(str(role.name) for role in dates),
            job.label,
            classes,
            job.epsilon,
            job.delta,
            people,
        ),
        roles,
        list(_of_file(job.private, own)),
    )


def _people(path: Path, private: pd.DataFrame, unit: str) -> int:
    """How many people there are; rows without an id are of one person, as fit takes them."""
    if unit not in private.columns:
        raise TableError(f"--unit: {path} has no column {unit!r}.")
    return int(private[unit].nunique(dropna=False))


def _of_file(path: Path, form: Form) -> Iterator[Any]:
    """What is odd about the private file itself: its letters, and lines of another length."""
    from .preflight import Remark

    if path.is_dir() or not is_csv(path):
        return
    if other := other_encoding(path.read_bytes(), form.encoding):
        text = (
            f"the private file is not {form.encoding} but looks like {other}: letters beyond ASCII "
            f"are read wrongly. Give --private-encoding {other}."
        )
        yield Remark(True, "encoding", text)
    wide, names = 0, 0
    for number, width in enumerate(widths(path, form)):
        names = width if number == 0 else names
        wide += width > names
    if wide:
        text = (
            f"{wide:,} private rows have more cells than the first line has names; what is too "
            "much is left out. Is a separator or a decimal comma inside a cell?"
        )
        yield Remark(True, "lines", text)


def _texts(path: Path, form: Form) -> pd.DataFrame:
    """Cells of a private file as texts, as they are."""
    import pandas as pd

    if not path.is_dir():
        require_file(path, "--private")
    try:
        if path.is_dir() or not is_csv(path):
            return _as_texts(pd.read_parquet(path))
        return text_lines(path, form)
    except (ValueError, OSError, StopIteration) as error:
        raise TableError(f"the private file {path} could not be read: {error}") from None


def _as_texts(table: pd.DataFrame) -> pd.DataFrame:
    plain = table.rename(columns=str)
    return plain.astype(object).where(plain.notna(), None).map(str, na_action="ignore")
