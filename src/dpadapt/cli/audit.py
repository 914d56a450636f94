"""``dpadapt audit``: attacks on one's own fit, on public rows that play the private ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .formats import Form, given_form
from .options import (
    Dates,
    Decimal,
    Dropped,
    Encoding,
    EstimatorName,
    Groups,
    IdColumns,
    Kept,
    OnlyColumns,
    Separator,
    Settings,
    TaskOption,
    Trusted,
    require_unit_with_rows,
    takes,
)
from .outputs import refuse_out, write_figure
from .public_table import ColumnChoice, Task, labels_and_task, read_public_table
from .screens import plain_errors, say, say_note
from .tables import TableError, public_form, read_labelled, require_file

if TYPE_CHECKING:
    from dpadapt.audit.result import AuditResult

    from .attack import AttackedFit

_LEAST_ROWS, _LEAST_PEOPLE = 20, 4


@dataclass(frozen=True)
class Order:
    """What was asked for on the command line."""

    public: Annotated[
        Path | None, typer.Option(help="Public rows with labels: CSV or Parquet.")
    ] = None
    label: Annotated[str | None, typer.Option(help="Column to predict.")] = None
    epsilon: Annotated[float | None, typer.Option(help="As you will give it to fit.")] = None
    delta: Annotated[float | None, typer.Option(help="As you will give it to fit.")] = None
    task: TaskOption = Task.auto
    estimator: EstimatorName = None
    set: Settings = None
    columns: OnlyColumns = None
    keep: Kept = None
    drop: Dropped = None
    id: IdColumns = None
    date: Dates = None
    groups: Groups = None
    unit: Annotated[
        str | None,
        typer.Option(help="Attack people: the column that says whose row it is, as for fit."),
    ] = None
    max_rows: Annotated[
        int | None,
        typer.Option(min=1, metavar="<int>", help="Rows of one unit, at most; with --unit."),
    ] = None
    sep: Separator = None
    decimal: Decimal = None
    encoding: Encoding = None
    model: Annotated[
        Path | None, typer.Option(help="Model folder: attack a fit like that one, instead.")
    ] = None
    trust: Trusted = None
    degree: Annotated[int, typer.Option(min=1, max=2, help="As you will give it to fit.")] = 1
    runs: Annotated[
        int, typer.Option(min=10, max=100_000, help="Runs of the attack; more finds more.")
    ] = 300
    out: Annotated[Path, typer.Option(help="Folder for audit.json and audit.png.")] = Path("audit")
    seed: Annotated[int, typer.Option(min=0, help="Of coins and noise of the attack.")] = 0
    library: Annotated[
        bool, typer.Option("--library", help="Replay every estimator and option instead.")
    ] = False
    pairs: Annotated[
        int, typer.Option(min=1, max=1000, help="Of --library: neighbours of each combination.")
    ] = 2


@plain_errors()
@takes(Order)
def audit_command(order: Order) -> None:
    """Attack a fit, on public rows that play the private ones.

    It is the fit that dpadapt fit would run, or that of a saved model. No private row is read and
    no ledger is charged. Half of the public rows play the private table. A replay checks that no
    un-noised value moves by more than its stated sensitivity when one row changes; an attacker who
    sees every release then tells the worst pair apart, run after run, which gives a lower bound on
    epsilon. With --unit, and for a model that was fitted with it, all rows of a person change;
    where the public file does not say whose a row is, people are made up. Exit code 1 if the
    guarantee is refuted.

    [bold]Examples[/]

      dpadapt audit --public a.csv --label y --epsilon 1 --delta 1e-6 --out audit/

      dpadapt audit --public a.csv --label y --epsilon 1 --delta 1e-6 --estimator \
ReweightingRegressor

      dpadapt audit --public a.csv --label y --epsilon 1 --delta 1e-6 --unit patient --max-rows 5

      dpadapt audit --public a.csv --label y --model model/

      dpadapt report --model model/ --audit audit/audit.json

      dpadapt audit --library
    """
    if order.library:
        if not _replay_library(order.pairs):
            raise typer.Exit(1)
        return
    budget = order.epsilon is not None and order.delta is not None
    if order.public is None or order.label is None or budget == (order.model is not None):
        raise typer.BadParameter(
            "give --public, --label, and --epsilon with --delta or --model; or --library."
        )
    if order.model is None:
        require_unit_with_rows(order.unit, order.max_rows)
    elif order.max_rows is not None:
        raise typer.BadParameter("--max-rows is that of the model; leave it out with --model.")
    for each in ("audit.json", "audit.png"):
        refuse_out(order.out / each, order.public, model=order.model)
    if order.out.exists() and not order.out.is_dir():
        raise TableError(f"--out {order.out} is a file; give a folder.")
    said = given_form(order.sep, order.decimal, order.encoding)
    if order.model is None:
        _check_budget_and_settings(order)
    require_file(order.public, "--public")
    from .attack import run_attack

    target = _target(order, order.public, order.label, public_form(order.public, said))
    kind = type(target.estimator).__name__
    at = f"epsilon {target.estimator.epsilon:g}, delta {target.estimator.delta:g}"
    say("attacked", f"{kind} at {at}")
    say("on", f"{target.counted} of {order.public} that play the private ones; no ledger")
    _say_runs(target, order.runs)
    result = run_attack(target, runs=order.runs, seed=order.seed, told=_say_time)
    if order.model is not None:
        from dpadapt.modelfolder.record import read_record

        result = replace(result, model=read_record(order.model)[2])
    _write(result, order.out)
    _say(result)
    say("wrote", f"{order.out} (audit.json, audit.png)")
    if not result.holds:
        raise typer.Exit(1)


def _check_budget_and_settings(order: Order) -> None:
    from dpadapt import _validate

    from .estimators import check_settings

    _validate.epsilon(order.epsilon, most=_validate.MOST_EPSILON)
    _validate.delta(order.delta)
    budget = {"epsilon": order.epsilon, "delta": order.delta}
    check_settings(order.estimator, order.set or (), task=order.task, **budget)


def _say_runs(target: AttackedFit, runs: int) -> None:
    """Say how many fits it will be, and what so few runs can show."""
    from .attack import MOST_REPLAYS, runs_that_see_half

    told = f"{runs:,} of the attack and up to {MOST_REPLAYS} replays, each of them two fits"
    say("runs", f"{told}: {2 * (runs + MOST_REPLAYS):,} fits")
    enough = runs_that_see_half(target.estimator.epsilon, target.estimator.delta)
    if runs < enough:
        say_note(
            f"so few runs can hardly refute anything: to see noise of half its size at epsilon "
            f"{target.estimator.epsilon:g} takes about {enough:,} (--runs). The replay needs none."
        )


def _say_time(seconds: float) -> None:
    say("", f"Judging by the first fit, this takes {_duration(seconds)}.")


def _duration(seconds: float) -> str:
    """A time in words that promise no more than they know.

    Examples
    --------
    >>> _duration(20), _duration(400), _duration(9000)
    ('a minute or less', 'about 7 minutes', 'about 2.5 hours')
    """
    if seconds < 90:
        return "a minute or less"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} minutes"
    return f"about {seconds / 3600:.1f} hours"


def _target(order: Order, public: Path, label: str, form: Form) -> AttackedFit:
    """Rows and the estimator to attack; whatever is wrong with them is told now."""
    from .attack import AttackedFit
    from .estimators import estimator_class, is_auto, make_estimator

    if order.model is not None:
        return _target_of_model(order, public, label, form)
    named = (order.columns, order.keep, order.drop, order.id, order.date, order.groups)
    asked = ColumnChoice(*named, order.unit)
    table = read_public_table(public, label, form=form, task=order.task, asked=asked)
    _require_rows(public, len(table.features))
    kind = estimator_class(order.estimator, table.task)
    budget = {"epsilon": order.epsilon, "delta": order.delta}
    estimator = make_estimator(kind, order.set or (), **budget)
    if table.groups is not None and not is_auto(estimator):
        raise typer.BadParameter("--groups is for AutoRegressor and AutoClassifier.")
    target = AttackedFit(
        estimator, table.features, table.labels, order.degree, table.dates, table.groups
    )
    if order.max_rows is None:
        return target
    return _of_people(target, public, table.unit, order.unit, order.max_rows)


def _of_people(
    target: AttackedFit, public: Path, whose: Any, unit: str | None, max_rows: int
) -> AttackedFit:
    """The same with people in the place of rows: as public rows say, or made up."""
    import numpy as np
    import pandas as pd

    if whose is None:
        people = np.arange(len(target.rows)) // max_rows
        named = "does not say whose a row is" if unit is None else f"has no column {unit!r}"
        say_note(
            f"{public} {named}, so that people are made up: every {max_rows} rows that follow each "
            "other are one. Where it has such a column, name it: --unit."
        )
    else:
        people = pd.factorize(whose)[0]
    if (known := int(people.max()) + 1) < _LEAST_PEOPLE:
        raise TableError(
            f"{public} has {known} people; an audit needs {_LEAST_PEOPLE}. Give more public rows."
        )
    return replace(target, people=people, max_rows=max_rows)


def _target_of_model(order: Order, public: Path, label: str, form: Form) -> AttackedFit:
    """Rows and estimator of a fit like that of a saved model."""
    from sklearn.base import is_classifier

    from dpadapt.modelfolder import load_model
    from dpadapt.modelfolder.record import read_record

    from .attack import AttackedFit

    assert order.model is not None
    features, given = read_labelled(public, label, form)
    features, given = features[given.notna()], given[given.notna()]
    _require_rows(public, len(features))
    model = load_model(str(order.model), trusted=order.trust or ())
    estimator, names = _saved(model)
    wanted = Task.classification if is_classifier(estimator) else Task.regression
    labels, _ = labels_and_task(given, wanted)
    if lacks := [each for each in names if each not in features.columns]:
        raise TableError(f"{public} lacks the column {lacks[0]!r} that the model has.")
    target = AttackedFit(estimator, features[names], labels, order.degree)
    if model.guarantee_.relation != "replace-unit":
        if order.unit is not None:
            raise typer.BadParameter(
                f"--unit: {order.model} protects rows, because it was fitted without --unit; leave "
                "it out."
            )
        return target
    unit = order.unit or read_record(order.model)[0].unit or None
    whose = features[unit] if unit in features.columns else None
    return _of_people(target, public, whose, unit, int(model.guarantee_.bounds["rows a person"]))


def _require_rows(public: Path, rows: int) -> None:
    if rows < _LEAST_ROWS:
        raise TableError(f"{public} has {rows} labelled rows; an audit needs {_LEAST_ROWS}.")


def _saved(model: Any) -> tuple[Any, list[str]]:
    """Estimator of a saved model, not fitted, and the names of its columns."""
    from sklearn.base import clone

    estimator = clone(getattr(model, "estimator", model))
    usual = {"noise": "secure", "random_state": None, "ledger": None, "verbose": 0}
    own = estimator.get_params(deep=False)
    estimator.set_params(**{name: value for name, value in usual.items() if name in own})
    if not ({"epsilon", "delta"} <= set(own)):
        raise TableError(f"a {type(estimator).__name__} has no epsilon and delta to attack.")
    return estimator, [str(name) for name in getattr(model, "feature_names_in_", ())]


def _replay_library(pairs: int) -> bool:
    """Replay every estimator and option of the library; whether all hold."""
    from dpadapt.audit import combinations, replay_combination

    from .attack import bar

    all_of_them = combinations()
    ran, releases, largest, worst, broken = 0, 0, 0.0, "", []
    with warnings.catch_warnings(), bar() as shown:
        warnings.simplefilter("ignore")
        task = shown.add_task("replay", total=len(all_of_them))
        for number, one in enumerate(all_of_them):
            found = replay_combination(one, pairs=pairs)
            shown.update(task, completed=number + 1)
            if found.refused and not found.moved:
                continue
            ran, releases = ran + 1, releases + len(found.moved)
            if found.largest > largest:
                largest, worst = found.largest, one.name
            if not found.holds:
                broken.append(f"{one.name}: {found}")
    say("replayed", f"{ran} combinations of estimator and options, {releases:,} releases")
    refused = len(all_of_them) - ran
    say("refused", f"{refused} more, by the estimators' public rules")
    say("largest", f"ratio {largest:.6f} (1 is allowed), of {worst}")
    for each in broken:
        say("BROKEN", each, style="bold red")
    return not broken


def _write(result: AuditResult, out: Path) -> None:
    from dpadapt.audit.result import draw_audit

    out.mkdir(parents=True, exist_ok=True)
    result.save(out / "audit.json")
    write_figure(draw_audit(result), out / "audit.png", 150)


def _say(result: AuditResult) -> None:
    say("unit", result.unit)
    say("claimed", f"epsilon {result.claimed:.4g} at delta {result.delta:g}")
    say(
        "found",
        f"epsilon at least {result.found:.3g} with {result.confidence:.0%} confidence "
        f"({result.method}; {result.right} of {result.guesses} guesses right)",
    )
    say(
        "replay",
        f"largest ratio {result.largest:.4f} (1 is allowed) over {result.pairs} neighbours",
    )
    if result.diverged:
        say_note(f"what is done depends on private values: {result.diverged}")
    say("verdict", result.verdict, style="bold green" if result.holds else "bold red")
    if result.holds:
        say("", "An attack that fails proves nothing; the guarantee rests on its proof.")
