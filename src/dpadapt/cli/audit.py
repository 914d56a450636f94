"""``dpadapt audit``: attacks on one's own fit, on public rows that play the private ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import screens
from .outputs import refuse_out
from .screens import plain_errors, say, say_note
from .tables import TableError, read_public
from .task import Task, labels_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from dpadapt.audit.result import AuditResult

    Pair = tuple[pd.DataFrame, pd.DataFrame]

__all__ = ["audit"]

_LEAST_ROWS = 20
_EXTREME = 1e6  # beyond every radius: such a row is shortened to its bound
_MOST_PAIRS = 24
_ODD = (1e308, float("nan"), float("inf"), -0.0, 5e-324, None, "text", True)


@plain_errors()
def audit(
    public: Annotated[
        Path | None, typer.Option(help="Public rows with labels: CSV or Parquet.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="As you will give it to fit.")] = None,
    delta: Annotated[float | None, typer.Option(help="As you will give it to fit.")] = None,
    degree: Annotated[int, typer.Option(min=1, max=2, help="As you will give it to fit.")] = 1,
    runs: Annotated[
        int, typer.Option(min=10, max=100_000, help="Runs of the attack; more finds more.")
    ] = 300,
    out: Annotated[Path, typer.Option(help="Folder for audit.json and audit.png.")] = Path("audit"),
    seed: Annotated[int, typer.Option(min=0, help="Of coins and noise of the attack.")] = 0,
    library: Annotated[
        bool, typer.Option("--library", help="Replay every estimator and option instead.")
    ] = False,
    pairs: Annotated[
        int, typer.Option(min=1, max=1000, help="Of --library: neighbours of each combination.")
    ] = 2,
) -> None:
    """Attack a fit of DiscrepancyRegressor, on public rows that play the private ones.

    No private row is read and no ledger is charged. Half of the public rows play the private
    table. A replay checks that no un-noised value moves by more than its stated sensitivity when
    one row changes; an attacker who sees every release then tells the worst pair apart, run after
    run, which gives a lower bound on epsilon. Exit code 1 if the guarantee is refuted.

    [bold]Examples[/]

      dpadapt audit --public a.csv --label y --epsilon 1 --delta 1e-6 --out audit/

      dpadapt report --model model/ --audit audit/audit.json

      dpadapt audit --library
    """
    if library:
        if not _replay_library(pairs):
            raise typer.Exit(1)
        return
    if public is None or label is None or epsilon is None or delta is None:
        raise typer.BadParameter("give --public, --label, --epsilon and --delta, or --library.")
    for each in ("audit.json", "audit.png"):
        refuse_out(out / each, public)
    features, given = read_public(public, label)
    labels, _ = labels_of(given, Task.regression)
    if len(features) < _LEAST_ROWS:
        raise TableError(f"{public} has {len(features)} rows; an audit needs {_LEAST_ROWS}.")
    if out.exists() and not out.is_dir():
        raise TableError(f"--out {out} is a file; give a folder.")
    shown, played = features.iloc[::2], features.iloc[1::2]
    fitted = "dpadapt fit --estimator DiscrepancyRegressor"
    say("attacked", f"{fitted} at epsilon {epsilon:g}, delta {delta:g}")
    say("on", f"{len(played):,} rows of {public} that play the private ones; no ledger")
    fit = _fit_of(shown, labels[::2], degree, epsilon=epsilon, delta=delta)
    result = _attack(fit, played, runs=runs, seed=seed)
    _write(result, out)
    _say(result)
    say("wrote", f"{out} (audit.json, audit.png)")
    if not result.holds:
        raise typer.Exit(1)


def _fit_of(
    public: pd.DataFrame, labels: Any, degree: int, **budget: Any
) -> Callable[[pd.DataFrame], Any]:
    """Return what fits the model of this configuration to rows that play the private ones."""
    from dpadapt.discrepancy import DiscrepancyRegressor
    from dpadapt.privacy import Private

    from .model import table_model

    def fit(rows: pd.DataFrame) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            regressor = DiscrepancyRegressor(**budget)
            model = table_model(public, regressor, degree=degree)
            return model.fit(public, labels, private=Private(rows))

    return fit


def _attack(
    fit: Callable[[pd.DataFrame], Any], played: pd.DataFrame, *, runs: int, seed: int
) -> AuditResult:
    """Replay a fit on neighbours, and tell the worst pair apart."""
    import numpy as np

    from dpadapt.audit import replay
    from dpadapt.audit.many_runs import many_runs_audit
    from dpadapt.audit.result import AuditResult

    pairs = list(_pairs(played, np.random.default_rng(seed)))
    found = []
    with _bar() as bar:
        task = bar.add_task("replay", total=len(pairs))
        for number, pair in enumerate(pairs):
            found.append(replay(fit, *pair, seed=seed))
            bar.update(task, completed=number + 1)
        if refused := next((each.refused for each in found if each.refused), None):
            raise ValueError(refused)
        worst = int(np.argmax([each.largest for each in found]))
        task = bar.add_task("attack", total=runs)
        bound = many_runs_audit(
            fit,
            *pairs[worst],
            runs=runs,
            seed=seed,
            progress=lambda done, _: bar.update(task, completed=done),
        )
    return AuditResult(
        "DiscrepancyRegressor",
        bound.claimed,
        bound.epsilon,
        bound.delta,
        bound.confidence,
        bound.method,
        bound.right,
        bound.guesses,
        len(pairs),
        sum(len(each.moved) for each in found),
        max(each.largest for each in found),
        next((each.diverged for each in found if each.diverged), ""),
        f"{len(played)} public rows that played the private ones",
    )


def _replay_library(pairs: int) -> bool:
    """Replay every estimator and option of the library; whether all hold."""
    from dpadapt.audit import combinations, replay_combination

    all_of_them = combinations()
    ran, releases, largest, worst, broken = 0, 0, 0.0, "", []
    with warnings.catch_warnings(), _bar() as bar:
        warnings.simplefilter("ignore")
        task = bar.add_task("replay", total=len(all_of_them))
        for number, one in enumerate(all_of_them):
            found = replay_combination(one, pairs=pairs)
            bar.update(task, completed=number + 1)
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


def _pairs(rows: pd.DataFrame, rng: np.random.Generator) -> Iterator[Pair]:
    """Neighbours: one row far out in one direction or in another, and cells of every kind."""
    numbers = [name for name in rows.columns if rows[name].dtype.kind in "biuf"]
    where = int(rng.integers(len(rows)))
    directions = [(a, b) for i, a in enumerate(numbers) for b in numbers[i:]]
    chosen = rng.permutation(len(directions))[:_MOST_PAIRS]
    for a, b in (directions[int(i)] for i in chosen):
        one = {a: _EXTREME, b: _EXTREME}
        other = {a: _EXTREME, b: -_EXTREME} if a != b else {a: 0.0}
        yield _changed(rows, where, one), _changed(rows, where, other)
    for cell in _ODD:
        name = rows.columns[int(rng.integers(rows.shape[1]))]
        yield rows.astype(object), _changed(rows, where, {name: cell})


def _changed(rows: pd.DataFrame, where: int, cells: dict[Any, Any]) -> pd.DataFrame:
    out = rows.astype(object).reset_index(drop=True)
    for name, cell in cells.items():
        out.at[where, name] = cell
    return out


def _bar() -> Any:
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    columns = ("{task.description}", BarColumn(bar_width=20), TimeElapsedColumn())
    return Progress(*columns, console=screens.console(stderr=True), transient=True)


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
