"""``dpadapt evaluate``: the error of a model on private rows, as a release of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .formats import Form, given_form
from .options import (
    Decimal,
    Encoding,
    KeepMemory,
    NoiseKind,
    NoSpill,
    Separator,
    SpillFolder,
    Threshold,
    keeping,
    numbers_by_class,
    require_ledger_with_dataset,
    require_probabilities,
    require_unit_with_rows,
    takes,
)
from .outputs import kept_when_stopped, refuse_out, report_charge_on_error, say_left, write_paid
from .screens import console, fall_back_to_stderr, plain_errors, say, say_note
from .tables import TableError, both_forms, open_private, private_form, read_table

if TYPE_CHECKING:
    from rich.table import Table

    from dpadapt.evaluation import Evaluation
    from dpadapt.modelfolder.record import Record
    from dpadapt.privacy import Private
    from dpadapt.privacy.ledger.ledger import Account

_FORM = ("sep", "decimal", "encoding")
_IN_PYTHON = "class_weight='balanced' of AutoClassifier"
_AS_OPTION = "--class-weight balanced of dpadapt fit"
_NAME = 20  # columns of a screen for the name of a measure, at least; longer ones are folded


@dataclass(frozen=True)
class EvaluateOptions:
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
            help="Numbers: mae, mse. Classes: accuracy, error, balanced_accuracy, recall, "
            "precision (one release for all five), log_loss, auc, calibration. May be repeated; "
            "by default few. Fewer are measured more precisely."
        ),
    ] = None
    baseline: Annotated[
        Path | None, typer.Option(help="Model folder to compare with, on the same rows.")
    ] = None
    threshold: Threshold = None
    label_range: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Public range of a label that is a number: LOW HIGH."),
    ] = None
    largest_error: Annotated[
        float | None, typer.Option(help="An error above counts as this; public.")
    ] = None
    public: Annotated[
        Path | None,
        typer.Option(
            help="Public file: private cells are read as its columns are, and it says how far the "
            "two models are apart."
        ),
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
    keep_memory: KeepMemory = None
    spill_folder: SpillFolder = None
    no_spill: NoSpill = False
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95
    holdout: Annotated[
        bool,
        typer.Option(
            "--holdout", help="On those whom fit --holdout has paid for, if it was cut off."
        ),
    ] = False
    outlook: Annotated[
        bool,
        typer.Option(
            "--outlook", help="Say which differences could be seen, and stop: nothing is spent."
        ),
    ] = False
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
@takes(EvaluateOptions)
def evaluate_command(job: EvaluateOptions) -> None:
    """Measure a model on private rows that it was not trained on, beside the public-only model.

    Before anything is spent, the screen says which difference between the two can be seen with so
    many rows; --outlook stops there. Errors, accuracy, recall and more come with noise, and with
    intervals that hold both the noise and the sample. It costs privacy of the people in the file:
    once for each run.

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
    keeping(job.keep_memory, job.spill_folder, job.no_spill)
    given_form(job.sep, job.decimal, job.encoding)  # or it is refused
    if job.out is not None:
        refuse_out(job.out, job.private, job.public, model=job.model, ledger=job.ledger)
        refuse_out(job.out, model=job.baseline)
        if not job.out.absolute().parent.is_dir():
            raise TableError(f"--out: there is no folder {job.out.absolute().parent}.")
    if job.holdout and job.ledger is None:
        raise typer.BadParameter("--holdout needs --ledger and --dataset, which were charged.")
    if job.outlook:
        _say_power(job, *_load_inputs(job)[:2])
        return
    account = None if job.ledger is None else Ledger(job.ledger).account(str(job.dataset))
    with kept_when_stopped(account):
        _keep(job, _evaluate(job, account), account)


def _keep(job: EvaluateOptions, found: Evaluation, account: Account | None) -> None:
    """Write an evaluation that was paid for, and show it, whichever fails."""
    charged = "" if job.ledger is None else " The ledger was charged, which stands."
    try:
        if job.out is not None:
            write_paid(job.out, found.to_json() + "\n")
    finally:
        with fall_back_to_stderr(f"The evaluation is made.{charged}"):
            say_evaluation(found)
            if job.noise is NoiseKind.seeded:
                seeded = "the noise came from a seed: for tests only, do not release these numbers."
                say_note(seeded)
            say_left(account)
            if job.out is not None:
                say("wrote", str(job.out))


def _evaluate(job: EvaluateOptions, account: Account | None) -> Evaluation:
    from dpadapt.evaluation import evaluate as measure

    given, options, digest = _load_inputs(job)
    _say_power(job, given, options)
    (model, private), own = given, account
    if job.holdout and account is not None:
        private, own = _held_out(private, job, model, account), None  # charged already
    with report_charge_on_error(account):
        found = measure(
            model,
            private,
            **options,
            ledger=own,
            noise=job.noise.value,
            random_state=job.random_state,
        )
    return replace(found, model=digest, held_out=job.holdout)


def _load_inputs(job: EvaluateOptions) -> tuple[tuple[Any, Private], dict[str, Any], str]:
    """Model and private rows, how they are measured, and the digest of the model."""
    from dpadapt.modelfolder import load_model
    from dpadapt.modelfolder.record import read_record

    trusted = job.trust or ()
    model = load_model(job.model, trusted=trusted)
    baseline = None if job.baseline is None else load_model(job.baseline, trusted=trusted)
    record, _, digest = read_record(job.model)
    form, schema, bounds = _reading(job, model, record)
    if job.threshold:
        require_probabilities("--threshold", model)
        bounds["threshold"] = numbers_by_class("--threshold", job.threshold, model.classes_)
    options = {
        "epsilon": job.epsilon,
        "delta": job.delta,
        "metrics": job.metric or None,
        "baseline": baseline,
        "schema": schema,
        "confidence": job.confidence,
        **bounds,
    }
    private = _private(job, model, form)
    _refuse_rows_of_people(job, model, private, record.unit)
    return (model, private), options, digest


def _refuse_rows_of_people(job: EvaluateOptions, model: Any, private: Private, unit: str) -> None:
    """Refuse to measure rows where people are protected, and the file says whose they are."""
    guarantee = getattr(model, "guarantee_", None)
    if job.unit is not None or guarantee is None or guarantee.relation != "replace-unit":
        return
    told = (
        "this model protects all rows of a person, and an evaluation without --unit protects "
        "single rows: the report of the model does not take it"
    )
    if unit not in (private.columns or ()):
        say_note(f"{told}. If everybody has one row here, number the rows, and give that as unit.")
        return
    rows = guarantee.bounds.get("rows a person")
    most = "" if rows is None else f" --max-rows {rows:g}"
    raise TableError(f"--unit: {told}. Give --unit {quote(unit)}{most}.")


def _say_power(job: EvaluateOptions, given: tuple[Any, Private], options: dict[str, Any]) -> None:
    """Say which differences can be seen, before anything is spent."""
    from dpadapt.evaluation import outlook

    if job.holdout:
        return  # fit has said it, for those held out
    for number, sentence in enumerate(outlook(*given, **options).sentences):
        say("" if number else "before", sentence)


def _held_out(private: Private, job: EvaluateOptions, model: Any, account: Account) -> Private:
    """Those whom the fit of a model has held out, if it has paid to measure them.

    Another fit may have released the same of people of whom none were held out: the model folder
    says what its own fit did.
    """
    from dpadapt.modelfolder.record import read_record
    from dpadapt.privacy.core.holdout import paid_part

    say_note("the private file must be that of fit, its rows in the same order.")
    released, held = model.guarantee_.events, read_record(job.model)[0].held_out
    for reserve in account.reserves():
        own = released[: len(reserve.fit)] == reserve.fit and held == (
            reserve.share,
            reserve.people,
        )
        if reserve.fit and own:
            return paid_part(private, reserve, account)
    raise TableError(
        f"--holdout: {account.name} has paid for no evaluation of this model that is not made yet. "
        "See `dpadapt ledger show`."
    )


def _reading(job: EvaluateOptions, model: Any, record: Record) -> tuple[Form, Any, dict[str, Any]]:
    """How cells of the private file are written, what they are, and what public rows say.

    By the public file if it is given, by what the model folder remembers of fit's files otherwise.
    """
    from dpadapt.privacy import Schema

    said = given_form(job.sep, job.decimal, job.encoding)
    if job.public is None:
        names = [*map(str, getattr(model, "feature_names_in_", ())), job.label]
        kept = Form(**{**given_form(*map(record.form.get, _FORM)), **said})
        return private_form(job.private, names, kept, said), None, _remembered(job, record)
    form, own = both_forms(job.public, job.private, said)
    table = read_table(job.public, form)
    names = list(getattr(model, "feature_names_in_", table.columns.drop(job.label, "ignore")))
    if missing := [str(name) for name in names if name not in table.columns]:
        raise TableError(f"{job.public} lacks the column(s) {', '.join(missing)} of the model.")
    return own, Schema.of(table[names]), _of_public(job, model, table, names, record)


def _of_public(
    job: EvaluateOptions, model: Any, table: Any, names: list[str], record: Record
) -> dict[str, Any]:
    """Bounds on labels, and public rows with labels, as far as a public file has them."""
    from sklearn.base import is_classifier

    from .public_table import Task, error_bounds, labels_and_task

    if job.label not in table.columns:
        return _bounds(job, record.bounds)
    kept = table[table[job.label].notna()]
    task = Task.classification if is_classifier(model) else Task.regression
    labels, known = labels_and_task(kept[job.label], task)[0], record.bounds
    if not known and task is Task.regression:
        known = error_bounds(labels)
    return {**_bounds(job, known), "public": (kept[names], labels)}


def _remembered(job: EvaluateOptions, record: Record) -> dict[str, Any]:
    """Bounds on labels, and what fit's public rows have said, if it is about the same models."""
    from dpadapt.evaluation import OnPublic

    bounds, known = _bounds(job, record.bounds), record.on_public
    if known is None or job.baseline is not None or bounds != record.bounds:
        return bounds
    try:
        return {**bounds, "public": OnPublic.from_dict(known)}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise TableError(
            f"{job.model} has facts about public rows that no fit has written."
        ) from None


def _bounds(job: EvaluateOptions, known: dict[str, Any]) -> dict[str, Any]:
    """Bounds on labels as the command line says; where it is silent, from public labels."""
    if job.label_range is not None:
        known = {"label_range": job.label_range}
    if job.largest_error is not None:
        known = {**known, "largest_error": job.largest_error}
    return known


def _private(job: EvaluateOptions, model: Any, form: Form) -> Private:
    """Open the private file; refuse one that lacks a column."""
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    private = open_private(job.private, job.label, form=form, unit=job.unit, max_rows=job.max_rows)
    private = private.kept(**keeping(job.keep_memory, job.spill_folder, job.no_spill))
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
    title = f"On {found.where} ({100 * found.confidence:g} % intervals; noise included)"
    _print_table([_verdict_first(row) for row in found.rows()], title)
    if classes := found.class_rows():
        _print_table(classes, "How many of each class (noise included)")
    if bins := found.bin_rows():
        _print_table(bins, "Reliability: is a probability what it says?")
    say("cost", cost) if cost else say("guarantee", found.guarantee.sentence, style="bold green")
    for caveat in (*found.caveats, *found.guarantee.caveats):
        say_note(caveat.replace(_IN_PYTHON, _AS_OPTION))


def _print_table(rows: list[tuple[str, ...]], title: str) -> None:
    """A table below its title, which may be wider than the cells and longer than a line."""
    from rich.text import Text

    console().print(Text(title, style="bold"))
    console().print(_table(rows))


def _table(rows: list[tuple[str, ...]]) -> Table:
    from rich import box
    from rich.table import Table

    head, *body = rows
    table = Table(box=box.SIMPLE_HEAD)
    words = max(len(line) for row in body for line in row[0].split("\n"))
    for i, name in enumerate(head):
        first = i == 0  # the only one that may be broken, between words: intervals are read whole
        justify: Any = "left" if first else "right"
        least = min(words, _NAME) if first else None
        table.add_column(name, justify=justify, overflow="fold", no_wrap=not first, min_width=least)
    for row in body:
        table.add_row(*map(_two_lines, row))
    return table


def _verdict_first(row: tuple[str, ...]) -> tuple[str, ...]:
    """Cells of a measure with the verdict below its name, so that a line fits a screen."""
    name, *cells = row
    if len(cells) < 5:
        return row
    *cells, seen, verdict = cells
    below = f"\nmodel: {verdict}" * bool(verdict) + f"\n{seen}" * bool(seen)
    return (name + below if name else "", *cells)


def _two_lines(cell: str) -> Any:
    from rich.text import Text

    name, _, below = cell.partition("\n")
    value, _, ends = name.partition(" (")
    if below or not ends.endswith(")") or " to " not in ends:  # no interval
        return Text(name).append("\n" * bool(below) + below, style="dim")
    return Text(value).append("\n" + ends.rstrip(")").replace(" to ", " .. "), style="dim")
