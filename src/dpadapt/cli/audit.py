"""``dpadapt audit``: attacks on one's own fit, on public rows that play the private ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .columns import Asked, choose_columns
from .options import Trusted, takes
from .outputs import refuse_out
from .screens import plain_errors, say, say_note
from .tables import TableError, read_public
from .task import Task, labels_of

if TYPE_CHECKING:
    from dpadapt.audit.result import AuditResult

    from .attack import Target

__all__ = ["audit"]

_LEAST_ROWS = 20


@dataclass(frozen=True)
class Order:
    """What was asked for on the command line."""

    public: Annotated[
        Path | None, typer.Option(help="Public rows with labels: CSV or Parquet.")
    ] = None
    label: Annotated[str | None, typer.Option(help="Column to predict.")] = None
    epsilon: Annotated[float | None, typer.Option(help="As you will give it to fit.")] = None
    delta: Annotated[float | None, typer.Option(help="As you will give it to fit.")] = None
    task: Annotated[Task, typer.Option(help="As you will give it to fit.")] = Task.auto
    estimator: Annotated[
        str | None, typer.Option(help="As you will give it to fit; by default what fit chooses.")
    ] = None
    set: Annotated[
        list[str] | None, typer.Option(help="Parameter of the estimator, name=value.")
    ] = None
    columns: Annotated[list[str] | None, typer.Option(help="As you will give them to fit.")] = None
    drop: Annotated[list[str] | None, typer.Option(help="As you will give them to fit.")] = None
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
def audit(order: Order) -> None:
    """Attack a fit, on public rows that play the private ones.

    It is the fit that dpadapt fit would run, or that of a saved model. No private row is read and
    no ledger is charged. Half of the public rows play the private table. A replay checks that no
    un-noised value moves by more than its stated sensitivity when one row changes; an attacker who
    sees every release then tells the worst pair apart, run after run, which gives a lower bound on
    epsilon. Exit code 1 if the guarantee is refuted.

    [bold]Examples[/]

      dpadapt audit --public a.csv --label y --epsilon 1 --delta 1e-6 --out audit/

      dpadapt audit --public a.csv --label y --epsilon 1 --delta 1e-6 --estimator \
ReweightingRegressor

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
    for each in ("audit.json", "audit.png"):
        refuse_out(order.out / each, order.public, model=order.model)
    if order.out.exists() and not order.out.is_dir():
        raise TableError(f"--out {order.out} is a file; give a folder.")
    from .attack import run_attack

    target = _target(order, order.public, order.label)
    kind = type(target.estimator).__name__
    at = f"epsilon {target.estimator.epsilon:g}, delta {target.estimator.delta:g}"
    say("attacked", f"{kind} at {at}")
    played = len(target.rows) // 2
    say("on", f"{played:,} rows of {order.public} that play the private ones; no ledger")
    result = run_attack(target, runs=order.runs, seed=order.seed)
    if order.model is not None:
        from dpadapt.modelfolder.record import read_record

        result = replace(result, model=read_record(order.model)[2])
    _write(result, order.out)
    _say(result)
    say("wrote", f"{order.out} (audit.json, audit.png)")
    if not result.holds:
        raise typer.Exit(1)


def _target(order: Order, public: Path, label: str) -> Target:
    """Rows and the estimator to attack; whatever is wrong with them is told now."""
    from .attack import Target
    from .settings import estimator_class, make_estimator

    features, given = read_public(public, label)
    features, given = features[given.notna()], given[given.notna()]
    if len(features) < _LEAST_ROWS:
        raise TableError(
            f"{public} has {len(features)} labelled rows; an audit needs {_LEAST_ROWS}."
        )
    saved = None if order.model is None else _saved(order)
    if saved is not None:
        from sklearn.base import is_classifier

        estimator, names = saved
        wanted = Task.classification if is_classifier(estimator) else Task.regression
        labels, _ = labels_of(given, wanted)
        if lacks := [each for each in names if each not in features.columns]:
            raise TableError(f"{public} lacks the column {lacks[0]!r} that the model has.")
        return Target(estimator, features[names], labels, order.degree)
    labels, task = labels_of(given, order.task)
    chosen = choose_columns(features, Asked(order.columns, order.drop), label)
    kind = estimator_class(order.estimator, task)
    budget = {"epsilon": order.epsilon, "delta": order.delta}
    estimator = make_estimator(kind, order.set or (), **budget)
    return Target(estimator, features[list(chosen.names)], labels, order.degree)


def _saved(order: Order) -> tuple[Any, list[str]]:
    """Estimator of a model folder, not fitted, and the names of its columns."""
    from sklearn.base import clone

    from dpadapt.modelfolder import load_model

    model = load_model(str(order.model), trusted=order.trust or ())
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
    draw_audit(result).savefig(out / "audit.png", dpi=150)


def _say(result: AuditResult) -> None:
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
