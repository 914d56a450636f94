"""``dpadapt demo``: the experiment on the screen, and its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpadapt._commands import screens
from dpadapt._commands.screens import say
from dpadapt.datasets import load_wages
from dpadapt.demo import (
    DELTA,
    PRIVATE_LABELS,
    PUBLIC_ONLY,
    Setting,
    example_model,
    method_name,
    run_demo,
    settings,
    summarise,
)
from dpadapt.report import ReportContext, write_report
from dpadapt.report._figures import errors_figure

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["demo_figure", "show_demo"]

_DPI = 160


def show_demo(out: Path, runs: int) -> None:
    """Run the demo, print what was gained and what it cost, and write three files."""
    out.mkdir(parents=True, exist_ok=True)
    results = _run(runs)
    summary = summarise(results)
    console = screens.console()
    console.print(
        "\nLog hourly earnings of real people (US survey, 2004). Public people have labels; of the "
        f"private ones only unlabelled rows are used. {runs} random splits, delta {DELTA:g}. "
        "Spread is that of the test people; the gap is compared within each split.\n"
    )
    for setting in settings(load_wages()["age"]):
        table = summary[summary["setting"] == setting.name]
        console.print(screens.results_table(setting.name, table))
        say("why", setting.story)
        say("result", _verdict(setting, table))
        console.print()
    model = example_model()
    say("privacy", model.guarantee_.sentence, style="bold green")
    say(
        "cost",
        "that is for one fit at epsilon 1. Releases about the same people add up, as those of this "
        "demo would; for real data keep a ledger (dpadapt ledger --help).",
    )
    context = ReportContext(
        title="Demo: wages of a private group",
        public_name="older public panel",
        private_name="everybody else (70 % of them)",
        label="log earnings",
        results=results,
        reference=PRIVATE_LABELS,
        feature_scale=_feature_scale(model),
    )
    write_report(model, out / "report.html", context=context)
    results.to_csv(out / "results.csv", index=False)
    demo_figure(results, out / "demo.png")
    say("wrote", f"{out}: report.html (open it in a browser), results.csv, demo.png")


def demo_figure(results: pd.DataFrame, path: Path) -> None:
    """Draw the error of each method in both settings."""
    errors_figure(results, PRIVATE_LABELS).savefig(path, dpi=_DPI)


def _run(runs: int) -> pd.DataFrame:
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    columns = (BarColumn(bar_width=20), TimeElapsedColumn(), "{task.description}")
    with Progress(*columns, console=screens.console(), transient=True) as bar:
        task = bar.add_task("loading")

        def progress(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=name)

        return run_demo(runs, progress=progress)


def _verdict(setting: Setting, table: pd.DataFrame) -> str:
    """What was gained, in one sentence."""
    lines = {str(row["method"]): row for row in table.to_dict("records")}
    ours = lines[method_name(1.0)]
    public, best = lines[PUBLIC_ONLY]["mse"], lines[PRIVATE_LABELS]["mse"]
    if ours["adapted"] < 0.5:
        return (
            f"nothing gained, nothing lost: {ours['mse']:.4f}, as with public data only. "
            f"{best:.4f} would need private labels, which were never seen."
        )
    return (
        f"private labels would lower the error by {1 - best / public:.1%}; at epsilon 1 dpadapt "
        f"gets {ours['gap']:.0%} of that without seeing one."
    )


def _feature_scale(model: object) -> tuple[float, ...]:
    """Standard deviations of the public features of the first setting."""
    wages = load_wages()
    public = wages[settings(wages["age"])[0].public]
    transformed = model.transformer_.transform(public)  # type: ignore[attr-defined]
    return tuple(np.std(transformed, axis=0))
