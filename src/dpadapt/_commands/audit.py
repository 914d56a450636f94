"""``dpadapt audit``: attacks on one's own fit, on public rows that play the private ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt._commands import screens
from dpadapt._commands.features import table_features
from dpadapt._commands.screens import say, say_note
from dpadapt._commands.tables import TableError, read_public
from dpadapt.audit import combinations, replay, replay_combination
from dpadapt.audit.many_runs import many_runs_audit
from dpadapt.audit.replay import Replay
from dpadapt.audit.result import AuditResult, draw_audit
from dpadapt.discrepancy import DiscrepancyRegressor
from dpadapt.pipeline import AdaptationPipeline
from dpadapt.privacy import Private

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AuditJob", "audit_fit", "audit_library"]

_LEAST_ROWS = 20
_EXTREME = 1e6  # beyond every radius: such a row is shortened to its bound
_MOST_PAIRS = 24
_ODD = (1e308, float("nan"), float("inf"), -0.0, 5e-324, None, "text", True)


@dataclass(frozen=True)
class AuditJob:
    """What was asked for on the command line."""

    public: Path
    label: str
    out: Path
    epsilon: float
    delta: float
    degree: int = 1
    runs: int = 300
    confidence: float = 0.95
    seed: int = 0


def audit_fit(job: AuditJob) -> bool:
    """Attack a fit of this configuration; whether nothing spoke against its guarantee."""
    features, labels = read_public(job.public, job.label)
    if len(features) < _LEAST_ROWS:
        raise TableError(f"{job.public} has {len(features)} rows; an audit needs {_LEAST_ROWS}.")
    if job.out.exists() and not job.out.is_dir():
        raise TableError(f"--out {job.out} is a file; give a folder.")
    public, played = features.iloc[::2], features.iloc[1::2]
    say("attacked", f"dpadapt fit at epsilon {job.epsilon:g}, delta {job.delta:g}")
    say("on", f"{len(played):,} rows of {job.public} that play the private ones; no ledger")

    def fit(rows: pd.DataFrame) -> Any:
        model = AdaptationPipeline(
            [("features", table_features(public, job.degree))],
            DiscrepancyRegressor(epsilon=job.epsilon, delta=job.delta),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(public, labels.iloc[::2], private=Private(rows))

    pairs = list(_pairs(played, np.random.default_rng(job.seed)))
    found: list[Replay] = []
    with _bar() as bar:
        task = bar.add_task("replay", total=len(pairs))
        for number, pair in enumerate(pairs):
            found.append(replay(fit, *pair, seed=job.seed))
            bar.update(task, completed=number + 1)
        if refused := next((each.refused for each in found if each.refused), None):
            raise ValueError(refused)
        worst = int(np.argmax([each.largest for each in found]))
        task = bar.add_task("attack", total=job.runs)
        bound = many_runs_audit(
            fit,
            *pairs[worst],
            runs=job.runs,
            confidence=job.confidence,
            seed=job.seed,
            progress=lambda done, _: bar.update(task, completed=done),
        )
    result = AuditResult(
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
    _write(result, job.out)
    _say(result)
    return result.holds


def audit_library(pairs: int) -> bool:
    """Replay every estimator and option of the library; whether all hold."""
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


def _pairs(rows: pd.DataFrame, rng: np.random.Generator) -> Any:
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
