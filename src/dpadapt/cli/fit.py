"""``dpadapt fit``: from two files to a model folder, and what is said on the way."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .formats import Form, given_form
from .holdout import HoldOut, as_options, rehearsal
from .options import (
    ClassWeight,
    Dates,
    Decimal,
    Dropped,
    Encoding,
    EstimatorName,
    Groups,
    IdColumns,
    KeepMemory,
    Kept,
    NoiseKind,
    NoSpill,
    OnlyColumns,
    PrivateEncoding,
    Separator,
    Settings,
    SpillFolder,
    TaskOption,
    keeping,
    require_ledger_with_dataset,
    require_unit_with_rows,
    say_rare_classes,
    takes,
    weighted,
)
from .outputs import (
    kept_when_stopped,
    refuse_out,
    report_charge_on_error,
    saved,
    say_left,
    shown_in_report,
)
from .public_table import ColumnChoice, PublicTable, Task, error_bounds, read_public_table
from .screens import console, fall_back_to_stderr, plain_errors, say, say_aside, say_note
from .tables import TableError, both_forms, no_header, open_private, partition_keys, require_file

if TYPE_CHECKING:
    from dpadapt.modelfolder import Destination
    from dpadapt.privacy import Private
    from dpadapt.privacy.ledger.ledger import Account


@dataclass(frozen=True)
class FitOptions:
    """What was asked for on the command line."""

    public: Annotated[Path, typer.Option(help="Public rows with labels: CSV or Parquet.")]
    private: Annotated[Path, typer.Option(help="Private rows: CSV, Parquet or folder of Parquet.")]
    label: Annotated[str, typer.Option(help="Column to predict. Private labels are used, if any.")]
    epsilon: Annotated[float, typer.Option(help="Privacy budget; smaller is more private.")]
    delta: Annotated[float, typer.Option(help="Probability that epsilon may fail, e.g. 1e-6.")]
    out: Annotated[Path, typer.Option(help="Folder for the model; must not exist.")]
    task: TaskOption = Task.auto
    estimator: EstimatorName = None
    set: Settings = None
    class_weight: ClassWeight = None
    columns: OnlyColumns = None
    keep: Kept = None
    drop: Dropped = None
    id: IdColumns = None
    date: Dates = None
    groups: Groups = None
    unit: Annotated[str | None, typer.Option(help="Private column that says whose row it is.")] = (
        None
    )
    max_rows: Annotated[
        int | None,
        typer.Option(min=1, metavar="<int>", help="Rows of one unit, at most; with --unit."),
    ] = None
    holdout: Annotated[
        float | None, typer.Option(help="Share of the private rows to measure the model on: 0.2.")
    ] = None
    holdout_epsilon: Annotated[
        float | None,
        typer.Option(help="What measuring may cost; by default as much as the fit."),
    ] = None
    evaluation_out: Annotated[
        Path | None, typer.Option(help="JSON file of --holdout; by default beside the model.")
    ] = None
    sep: Separator = None
    decimal: Decimal = None
    encoding: Encoding = None
    private_encoding: PrivateEncoding = None
    degree: Annotated[
        int,
        typer.Option(
            min=1, max=2, metavar="<int>", help="2 adds products of numbers; with --estimator."
        ),
    ] = 1
    keep_memory: KeepMemory = None
    spill_folder: SpillFolder = None
    no_spill: NoSpill = False
    ledger: Annotated[
        str | None, typer.Option(help="Charge this ledger before anything is released.")
    ] = None
    dataset: Annotated[
        str | None, typer.Option(help="Data set of the ledger that the private rows are.")
    ] = None
    noise: Annotated[
        NoiseKind, typer.Option(metavar="<noise>", help="secure, exact; seeded is for tests only.")
    ] = NoiseKind.secure
    random_state: Annotated[
        int | None, typer.Option(min=0, metavar="<int>", help="Seed, for --noise seeded only.")
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace an existing model.")] = False


@dataclass(frozen=True)
class PaidModel:
    """A model that is saved, and what it was fitted to."""

    model: Any
    public: PublicTable
    private: Private
    test: Private | None
    account: Account | None
    context: dict[str, Any]  # of its report
    reading: dict[str, Any]  # of private files, by whoever measures it
    digest: str


@plain_errors()
@takes(FitOptions)
def fit_command(job: FitOptions) -> None:
    """Learn from public rows and private ones, with a privacy guarantee.

    The public label tells whether numbers or classes are predicted. Private labels are used where
    the private file has them. Columns that look like ids, are constant, or are dates are found on
    public rows; nothing is inferred from private cells.

    [bold]Examples[/]

      dpadapt fit --public a.csv --private b.parquet --label y --epsilon 1 --delta 1e-6 --out model/

      dpadapt fit --public a.csv --private b.csv --label y --epsilon 0.5 --delta 1e-6 --out model/ \
--drop name,street --ledger budget.db --dataset patients

      dpadapt fit --public a.csv --private b.csv --label y --epsilon 1 --delta 1e-6 --out model/ \
--estimator ReweightingRegressor --set solver=profiled

      dpadapt fit --public a.csv --private b.csv --label y --epsilon 1 --delta 1e-6 --out model/ \
--holdout 0.2
    """
    from dpadapt import _validate

    require_ledger_with_dataset(job.ledger, job.dataset)
    if (job.random_state is None) == (job.noise is NoiseKind.seeded):
        raise typer.BadParameter("--random-state is needed with --noise seeded, and only then.")
    require_unit_with_rows(job.unit, job.max_rows)
    keeping(job.keep_memory, job.spill_folder, job.no_spill)
    refuse_out(job.out, job.public, job.private, ledger=job.ledger)
    said = given_form(job.sep, job.decimal, job.encoding)
    given_form(None, None, job.private_encoding, option="--private-encoding")
    for each in (job.epsilon, job.holdout_epsilon or job.epsilon):
        _validate.epsilon(each, most=_validate.MOST_EPSILON)
    _validate.delta(job.delta)
    require_file(job.public, "--public")
    if not job.private.is_dir():
        require_file(job.private, "--private")
    hold = _hold(job)
    from dpadapt.modelfolder import open_destination  # not before: it takes its time

    from .estimators import check_settings

    budget = {"epsilon": job.epsilon, "delta": job.delta}
    check_settings(job.estimator, job.set or (), task=job.task, **budget)
    _refuse_existing(job)
    # whatever can be refused is refused before any budget is spent
    account = None if job.ledger is None else _account(job.ledger, str(job.dataset))
    with kept_when_stopped(account):
        with open_destination(job.out, force=job.force) as place:
            done = _fitted(job, said, place, hold, account)
        _tell(job, done)
        if hold is not None:
            _measure(job, done, hold)


def _account(ledger: str, dataset: str) -> Account:
    from dpadapt.privacy import Ledger

    return Ledger(ledger).account(dataset)


def _refuse_existing(job: FitOptions) -> None:
    from dpadapt.modelfolder import ModelExistsError, check_destination

    try:
        check_destination(job.out, force=job.force)
    except ModelExistsError:
        raise TableError(f"--out: {job.out} exists; use --force to replace it.") from None


def _hold(job: FitOptions) -> HoldOut | None:
    given = (job.holdout, job.holdout_epsilon, job.evaluation_out)
    hold = HoldOut.from_options(*given, model=job.out, usual=job.epsilon, delta=job.delta)
    if hold is not None:
        hold.refuse(job.public, job.private, model=job.out, ledger=job.ledger, force=job.force)
    return hold


def _tell(job: FitOptions, done: PaidModel) -> None:
    """Say what was fitted."""
    from dpadapt.learning.story import label_count_sentence

    model, account = done.model, done.account
    charged = "" if job.ledger is None else " The ledger was charged, which stands."
    with fall_back_to_stderr(f"The model is in {job.out}.{charged}"):
        say_outcome(model)
        told = getattr(getattr(model, "estimator_", model), "explain_", ())
        if done.private.labelled and reads_labels(model) and not told:
            say("labels", label_count_sentence(model.guarantee_))
        say_rare_classes(getattr(getattr(model, "estimator_", model), "class_errors_", None))
        say("guarantee", model.guarantee_.sentence, style="bold green")
        if job.noise is NoiseKind.seeded:
            say_note("the noise came from a seed: for tests only, do not release this model.")
        say_left(account)
        say("wrote", f"{job.out} (model.json, arrays.bin, guarantee.json, report.html)")


def _measure(job: FitOptions, done: PaidModel, hold: HoldOut) -> None:
    """Measure the model on those held out."""
    from dpadapt.privacy import Schema

    reading = done.reading
    found = hold.evaluated(
        done.model,
        done.digest,
        done.test,
        done.account,
        schema=Schema.of(done.public.features),
        **as_options(reading),
        noise=job.noise.value,
        random_state=None if job.random_state is None else job.random_state + 1,
    )
    hold.tell(found, done.private, done.model.guarantee_)
    if not shown_in_report(job.out, done.model, done.account, found, reading, **done.context):
        say_note("the report in the model folder could not be written again: it lacks this.")


def _fitted(
    job: FitOptions,
    said: dict[str, str],
    place: Destination,
    hold: HoldOut | None,
    account: Account | None,
) -> PaidModel:
    """Return the model, fitted and saved."""
    from dpadapt.learning.cautions import budget_cautions, size_cautions
    from dpadapt.rare import keep_class_errors

    form, own_form = both_forms(job.public, job.private, said, job.private_encoding)
    asked = ColumnChoice(job.columns, job.keep, job.drop, job.id, job.date, job.groups, job.unit)
    public = read_public_table(job.public, job.label, form=form, task=job.task, asked=asked)
    private = _private(job, public, own_form)
    train, test, own = private, None, account
    if hold is not None:
        train, test = hold.parts(private, account)
        own = None  # the parts charge it, for both
    model = _model(job, public, private, own)
    say_samples(job, public, private, test, reads_labels=reads_labels(model))
    for text in budget_cautions(job.epsilon, job.delta, train.n_rows):
        say_note(text)
    for text in size_cautions(job.epsilon, job.delta, people_of(train)):
        say_note(text)
    if hold is not None and test is not None:
        hold.foresee(test, public, model, who="private rows" if job.unit is None else "people")
        for text in size_cautions(hold.epsilon, job.delta, people_of(test), held_out=True):
            say_note(text)
    if console(stderr=True).is_terminal:
        say_aside(" fitting public rows first, which costs no privacy; this may take a minute ...")
    groups = {} if public.groups is None else {"groups": public.groups}
    with report_charge_on_error(account), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # told later, in other words
        model.fit(public.features, public.labels, private=train, **groups)
        with suppress(Exception):  # the model was paid for, and is worth more than a table
            keep_class_errors(model, public.features, public.labels)
        context = _context(job, public, private, model)
        reading = _reading(public, own_form, model)
        if hold is not None:
            reading["held_out"], context["held_out"] = (hold.share, private.n_people), True
        digest = saved(place, model, account, reading, **context)
    return PaidModel(model, public, private, test, account, context, reading, digest)


def _reading(public: PublicTable, private: Form, model: Any) -> dict[str, Any]:
    """How private files are read, bounds, what public rows say: for whoever measures the model."""
    bounds = error_bounds(public.labels) if public.task is Task.regression else {}
    return {"form": asdict(private), **bounds, **rehearsal(model, public, bounds)}


def _context(job: FitOptions, public: PublicTable, private: Private, model: Any) -> dict[str, Any]:
    """What the report says beyond the model."""
    import numpy as np

    left_out = [(str(name), why) for name, why in public.unused]
    if extra := extra_columns(job, public, private):
        left_out.append((f"{extra} private columns", "public rows lack them; not named here"))
    context: dict[str, Any] = {
        "title": f"Privacy report: a model of {job.label}",
        "public_name": job.public.name,
        "private_name": job.private.name,
        "label": job.label,
        "public_rows": len(public.features),
        "unit": job.unit or "",
        "left_out": tuple(left_out),
    }
    if hasattr(model, "transformer_"):
        spread = model.transformer_.transform(public.features).std(axis=0)
        if np.isfinite(spread).all():
            context["feature_scale"] = tuple(spread)
    return context


def _private(job: FitOptions, public: PublicTable, form: Form) -> Private:
    """Open the private file; refuse one that lacks a column."""
    used = [str(name) for name in public.features.columns]
    private = open_private(job.private, job.label, form=form, unit=job.unit, max_rows=job.max_rows)
    private = private.kept(**keeping(job.keep_memory, job.spill_folder, job.no_spill))
    missing = [name for name in used if name not in (private.columns or ())]
    if len(missing) == len(used):
        raise TableError(no_header(job.private))
    if missing:
        raise TableError(
            f"the private file {job.private} lacks the column(s) {', '.join(missing)} that "
            f"{job.public} has; give both the same columns, or leave them out with --drop."
        )
    if private.n_rows == 0:
        raise TableError(f"the private file {job.private} has no rows.")
    return private


def _model(job: FitOptions, public: PublicTable, private: Private, account: Any) -> Any:
    """The model to fit; whatever is wrong with it is told now."""
    from .estimators import estimator_class, is_auto, make_estimator, table_model

    kind = estimator_class(job.estimator, public.task)
    auto = is_auto(kind)
    if auto and job.noise is NoiseKind.exact:
        raise typer.BadParameter(
            f"--noise exact is not for {kind.__name__}, whose step is proved for continuous noise "
            "only. Leave --noise out, or choose an --estimator that takes it."
        )
    estimator = make_estimator(
        kind,
        job.set or (),
        epsilon=job.epsilon,
        delta=job.delta,
        noise=job.noise.value,
        random_state=job.random_state,
        ledger=account,
        verbose=int(console(stderr=True).is_terminal),
    )
    if auto and job.degree > 1:
        raise typer.BadParameter("--degree needs --estimator; by default curves are found anyway.")
    if public.groups is not None and not auto:
        raise typer.BadParameter("--groups is for AutoRegressor and AutoClassifier.")
    if not (auto or private.labelled) and getattr(estimator, "_reads_labels", True):
        raise TableError(
            f"{kind.__name__} needs private labels, and {job.private} has no column "
            f"{job.label!r}. Without labels there is --estimator DiscrepancyRegressor."
        )
    estimator = weighted(estimator, job.class_weight, public.task, public.labels)
    return table_model(public.features, estimator, degree=job.degree, dates=public.dates)


_INDEX = "__index_level_"  # columns in which pandas keeps its row numbers


def people_of(private: Private) -> int:
    """How many are protected: rows, or people where they have several."""
    return private.n_people or private.n_rows


def reads_labels(model: Any) -> bool:
    """Whether an estimator, or the one at the end of a pipeline, learns from private labels."""
    return bool(getattr(getattr(model, "estimator", model), "_reads_labels", True))


def say_samples(
    job: FitOptions,
    public: PublicTable,
    private: Private,
    test: Private | None,
    *,
    reads_labels: bool,
) -> None:
    """Say what the samples are, and what of them is not used."""
    rows, columns = public.features.shape
    say("public", f"{job.public}: {rows:,} rows, {columns} columns, labelled")
    labelled = "with" if private.labelled else "without"
    people = "rows" if job.unit is None else "people"
    size = f"{private.n_people:,} {people}"
    if job.unit is not None:
        size += f" (up to {job.max_rows} rows of each count)"
    held = "" if test is None else f"; {test.n_people:,} {people} are held out to measure the model"
    say("private", f"{job.private}: {size}, {labelled} labels{held}")
    if keys := partition_keys(job.private):
        say_note(
            f"the private folder is partitioned by {', '.join(keys)}: which folder a row is in "
            "counts as public."
        )
    say("task", f"{public.task.value} of {job.label}")
    if private.labelled and not reads_labels:
        say_note(f"this method does not use the private labels in column {job.label!r}.")
    if extra := extra_columns(job, public, private):
        say_note(f"not used, because the public file lacks them: {extra} private column(s).")


def extra_columns(job: FitOptions, public: PublicTable, private: Private) -> int:
    """Private columns that the public file lacks.

    They are counted, not named: of a damaged file, cells of a row may pass for names.
    """
    known = {job.label, *public.features.columns, *(name for name, _ in public.unused)}
    return sum(each not in known and not each.startswith(_INDEX) for each in private.columns or ())


_FEW = 0.05  # of the rows: with fewer of equal weight, words must not sound like success


def say_outcome(model: Any) -> None:
    """Say how far the model moved away from public data."""
    fitted = getattr(model, "estimator_", model)
    if hasattr(fitted, "explain_"):
        for number, sentence in enumerate(fitted.explain_):
            say("" if number else "model", sentence)
        say("result", fitted._story().result, style="bold")
        return
    if hasattr(fitted, "weights_") and hasattr(fitted, "adapted_"):
        _say_weights(fitted)
        return
    share = getattr(fitted, "share_", None)
    if isinstance(share, float):
        say("model", f"{share:.0%} of the way from public data to what private rows ask for.")


def _say_weights(fitted: Any) -> None:
    """What became of a model that weights public rows."""
    import numpy as np

    weights = np.asarray(fitted.weights_)
    if not fitted.adapted_:
        say_note(
            "the model did not adapt: no weights make the public rows look like the private ones. "
            "It is the model of public data alone, which is the safe choice. The report says more."
        )
        return
    if np.ptp(weights) == 0:
        say_note(
            "the model did not adapt: within the noise the two samples look alike. All public rows "
            "keep the same weight, and the model is the one of public data alone."
        )
        return
    effective = 1 / float(np.sum(weights**2))
    text = (
        "the public rows were weighted to look like the private ones; they are now worth "
        f"{effective:,.0f} rows of equal weight"
    )
    if effective < _FEW * len(weights):
        say_note(f"{text}, of {len(weights):,}. That is little: do not expect much of this model.")
    else:
        say("adapted", f"{text}.")
