"""``dpadapt evaluate``: the error of a model on private rows, as a release of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .both_files import both_forms, private_form
from .formats import Form, given_form
from .options import (
    Decimal,
    Encoding,
    NoiseKind,
    Separator,
    require_ledger_with_dataset,
    require_unit_with_rows,
    takes,
)
from .outputs import refuse_out, write_whole
from .paid import charge_told, say_left
from .screens import console, plain_errors, say, say_note, told_if_it_can_be
from .tables import TableError, open_private, read_table

if TYPE_CHECKING:
    from rich.table import Table

    from dpadapt.evaluation import Evaluation
    from dpadapt.modelfolder.record import Record
    from dpadapt.privacy import Private
    from dpadapt.privacy.ledger.ledger import Account

__all__ = ["evaluate", "say_evaluation"]

_FORM = ("sep", "decimal", "encoding")


@dataclass(frozen=True)
class Job:
    """What was asked for on the command line."""

    model: Annotated[Path, typer.Option("--model", help="Model folder, written by fit.")]
    private: Annotated[
        Path, typer.Option(help="Private rows with labels: CSV, Parquet or folder of Parquet.")
    ]
    label: Annotated[str, typer.Option(help="Column of the private file with the label.")]
    epsilon: Annotated[float, typer.Option(help="What the evaluation may cost, e.g. 0.1.")]
    delta: Annotated[float, typer.Option(help="Probability that epsilon may fail, e.g. 1e-6.")]
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="mse, mae; accuracy, error, log_loss, auc, calibration. May be repeated; by "
            "default all that the model allows. Fewer are measured more precisely."
        ),
    ] = None
    baseline: Annotated[
        Path | None, typer.Option(help="Model folder to compare with, on the same rows.")
    ] = None
    label_range: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Public range of a label that is a number: LOW HIGH."),
    ] = None
    largest_error: Annotated[
        float | None, typer.Option(help="An error above counts as this; public.")
    ] = None
    public: Annotated[
        Path | None, typer.Option(help="Public file: private cells are read as its columns are.")
    ] = None
    unit: Annotated[str | None, typer.Option(help="Private column that says whose row it is.")] = (
        None
    )
    max_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows of one unit, at most; with --unit.")
    ] = None
    sep: Separator = None
    decimal: Decimal = None
    encoding: Encoding = None
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95
    out: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None
    ledger: Annotated[
        str | None, typer.Option(help="Charge this ledger before anything is released.")
    ] = None
    dataset: Annotated[
        str | None, typer.Option(help="Data set of the ledger that the private rows are.")
    ] = None
    trust: Annotated[
        list[str] | None,
        typer.Option(help="Also accept this class or function in the model; may be repeated."),
    ] = None
    noise: Annotated[NoiseKind, typer.Option(help="seeded is for tests only.")] = NoiseKind.secure
    random_state: Annotated[
        int | None, typer.Option(min=0, help="Seed, for --noise seeded only.")
    ] = None


@plain_errors()
@takes(Job)
def evaluate(job: Job) -> None:
    """Measure a model on private rows that it was not trained on, beside the public-only model.

    Error, accuracy, log-loss, AUC and calibration come with noise, and with intervals that hold
    both the noise and the sample. It costs privacy of the people in the file: once for each run.

    [bold]Examples[/]

      dpadapt evaluate --model model/ --private test.parquet --label y --epsilon 0.1 --delta 1e-6

      dpadapt evaluate --model model/ --private test.csv --label y --epsilon 0.1 --delta 1e-6 \
--metric accuracy --ledger budget.db --dataset patients --out evaluation.json
    """
    from dpadapt.privacy import Ledger

    require_ledger_with_dataset(job.ledger, job.dataset)
    if (job.random_state is None) == (job.noise is NoiseKind.seeded):
        raise typer.BadParameter("--random-state is needed with --noise seeded, and only then.")
    require_unit_with_rows(job.unit, job.max_rows)
    given_form(job.sep, job.decimal, job.encoding)  # or it is refused
    if job.out is not None:
        refuse_out(job.out, job.private, job.public, model=job.model, ledger=job.ledger)
        refuse_out(job.out, model=job.baseline)
        if not job.out.absolute().parent.is_dir():
            raise TableError(f"--out: there is no folder {job.out.absolute().parent}.")
    account = None if job.ledger is None else Ledger(job.ledger).account(str(job.dataset))
    found = _found(job, account)
    charged = "" if job.ledger is None else " The ledger was charged, which stands."
    with told_if_it_can_be(f"The evaluation is made.{charged}"):
        say_evaluation(found)  # first: it was paid for, and a file may fail
        if job.noise is NoiseKind.seeded:
            say_note("the noise came from a seed: for tests only, do not release these numbers.")
        say_left(account)
    if job.out is not None:
        write_whole(job.out, found.to_json() + "\n")
        say("wrote", str(job.out))


def _found(job: Job, account: Account | None) -> Evaluation:
    from dpadapt.evaluation import evaluate as measure
    from dpadapt.modelfolder import load_model
    from dpadapt.modelfolder.record import read_record

    trusted = job.trust or ()
    model = load_model(job.model, trusted=trusted)
    baseline = None if job.baseline is None else load_model(job.baseline, trusted=trusted)
    record, _, digest = read_record(job.model)
    form, schema, bounds = _reading(job, model, record)
    private = _private(job, model, form)
    with charge_told(account):
        found = measure(
            model,
            private,
            epsilon=job.epsilon,
            delta=job.delta,
            metrics=job.metric or None,
            baseline=baseline,
            **bounds,
            schema=schema,
            confidence=job.confidence,
            ledger=account,
            noise=job.noise.value,
            random_state=job.random_state,
        )
    return replace(found, model=digest)


def _reading(job: Job, model: Any, record: Record) -> tuple[Form, Any, dict[str, Any]]:
    """How cells of the private file are written, what they are, and bounds on labels.

    By the public file if it is given, by what the model folder remembers of fit's files otherwise.
    """
    from sklearn.base import is_classifier

    from dpadapt.privacy import Schema

    from .task import Task, error_bounds, labels_of

    said = given_form(job.sep, job.decimal, job.encoding)
    if job.public is None:
        names = [*map(str, getattr(model, "feature_names_in_", ())), job.label]
        kept = Form(**{**given_form(*map(record.form.get, _FORM)), **said})
        return private_form(job.private, names, kept, said), None, _bounds(job, record.bounds)
    form, own = both_forms(job.public, job.private, said)
    table = read_table(job.public, form)
    names = list(getattr(model, "feature_names_in_", table.columns.drop(job.label, "ignore")))
    if missing := [str(name) for name in names if name not in table.columns]:
        raise TableError(f"{job.public} lacks the column(s) {', '.join(missing)} of the model.")
    known = record.bounds
    if not (known or is_classifier(model)) and job.label in table.columns:
        known = error_bounds(labels_of(table[job.label].dropna(), Task.regression)[0])
    return own, Schema.of(table[names]), _bounds(job, known)


def _bounds(job: Job, known: dict[str, Any]) -> dict[str, Any]:
    """Bounds on labels as the command line says; where it is silent, from public labels."""
    if job.label_range is not None:
        known = {"label_range": job.label_range}
    if job.largest_error is not None:
        known = {**known, "largest_error": job.largest_error}
    return known


def _private(job: Job, model: Any, form: Form) -> Private:
    """Open the private file; refuse one that lacks a column."""
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    private = open_private(job.private, job.label, form=form, unit=job.unit, max_rows=job.max_rows)
    if not private.labelled:
        raise TableError(
            f"the private file {job.private} has no column {job.label!r} for the label: error is "
            "measured against labels. See --label, and --sep for how the file is written."
        )
    if missing := [name for name in names if name not in (private.columns or ())]:
        raise TableError(
            f"the private file {job.private} lacks the column(s) {', '.join(missing)} of the model."
        )
    return private


def say_evaluation(found: Evaluation, cost: str = "") -> None:
    """Show what an evaluation found, and what it has cost: its guarantee, or as ``cost`` says."""
    title = (
        f"On {found.people:,} {found.who} ({100 * found.confidence:g} % intervals; noise included)"
    )
    console().print(_table([_verdict_first(row) for row in found.rows()], title))
    if bins := found.bin_rows():
        console().print(_table(bins, "Reliability: is a probability what it says?"))
    say("cost", cost) if cost else say("guarantee", found.guarantee.sentence, style="bold green")
    for caveat in (*found.caveats, *found.guarantee.caveats):
        say_note(caveat)


def _table(rows: list[tuple[str, ...]], title: str) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    head, *body = rows
    table = Table(box=box.SIMPLE_HEAD, title=Text(title, style="bold"), title_justify="left")
    words = max(len(word) for row in body for word in row[0].split())
    for i, name in enumerate(head):
        first = i == 0  # the only one that may be broken, between words: intervals are read whole
        justify: Any = "left" if first else "right"
        least = words if first else None
        table.add_column(name, justify=justify, overflow="fold", no_wrap=not first, min_width=least)
    for row in body:
        table.add_row(*map(_two_lines, row))
    return table


def _verdict_first(row: tuple[str, ...]) -> tuple[str, ...]:
    """Cells of a measure with the verdict below its name, so that a line fits a screen."""
    name, *cells = row
    if len(cells) < 4:
        return row
    *cells, verdict = cells
    return (f"{name} (model: {verdict})" if name else "", *cells)


def _two_lines(cell: str) -> Any:
    from rich.text import Text

    value, _, ends = cell.partition(" (")
    text = Text(value)
    if ends:
        text.append("\n" + ends.rstrip(")").replace(" to ", " .. "), style="dim")
    return text
