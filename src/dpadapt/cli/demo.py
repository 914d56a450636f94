"""``dpadapt demo``: the experiment on the screen, and its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import screens
from .outputs import write_figure, write_frame
from .screens import plain_errors, say

if TYPE_CHECKING:
    import pandas as pd

    from dpadapt.preview import Preview

_DPI = 160
_ROWS, _GAP = 7000, 0.3  # of the private people, and what no privacy would gain on them


@plain_errors()
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for report, table and picture.")] = Path("demo"),
    runs: Annotated[int, typer.Option(min=1, max=100, help="Random splits a setting.")] = 2,
) -> None:
    """Show on real wages what private labels gain, what they cost in privacy, and where to stop.

    [bold]Example[/]

      dpadapt demo --out demo --runs 5
    """
    show_demo(out, runs)


def show_demo(out: Path, runs: int) -> None:
    """Run the demo, print what was gained and what it cost, and write its files."""
    from dpadapt.report import ReportContext, write_report
    from dpadapt.report.figures import errors_figure

    from . import demo_experiment as experiment
    from .demo_experiment import DELTA, REFERENCE

    out.mkdir(parents=True, exist_ok=True)
    both = experiment.both_settings()
    publics = tuple(experiment.public_people(setting) for setting in both)
    results = _run(runs, publics)
    summary = experiment.summarise(results)
    console = screens.console()
    console.print(
        "\nLog hourly earnings of real people (US survey, 2004); some of them play the private "
        f"ones. Random splits: {runs}; delta {DELTA:g}. The gap is between the better public model "
        "and models trained on private labels without any privacy.\n"
    )
    for setting in both:
        table = summary[summary["setting"] == setting.name]
        console.print(screens.results_table(setting.name, table))
        say("why", setting.story)
        say("result", experiment.verdict(table))
        console.print()
    model = experiment.example_model(publics[0])
    say("privacy", model.guarantee_.sentence, style="bold green")
    say(
        "cost",
        "that is for one fit at epsilon 1. Releases about the same people add up, as those of this "
        "demo would; for real data keep a ledger (dpadapt ledger --help). The test errors above "
        "are exact: a demo may show them, of real private people they would be a leak.",
    )
    found = experiment.example_evaluation(model, publics[0])
    say("evaluated", experiment.evaluation_sentence(found))
    context = ReportContext(
        title="Demo: wages of a private group",
        public_name="men of 40 and over",
        private_name="women (70 % of them)",
        label="log earnings",
        public_rows=len(publics[0].X),
        results=results,
        reference=REFERENCE,
        evaluations=[found.to_dict()],
    )
    write_report(model, out / "report.html", context=context)
    write_frame(results, out / "results.csv")
    write_figure(errors_figure(results, REFERENCE), out / "demo.png", _DPI)
    write_figure(_preview(publics[0]).draw(), out / "preview.png", _DPI)
    say(
        "wrote",
        f"{out}: report.html (open it in a browser), results.csv, demo.png, preview.png",
    )
    say(
        "next",
        "with your own two tables: dpadapt check (is the data fit), dpadapt preview (which "
        "epsilon), dpadapt fit, dpadapt evaluate, dpadapt report. Each has --help with examples.",
    )


def _preview(public: Any) -> Preview:
    """Rehearse the same model on its public people, and say what that would have told."""
    from dpadapt.preview import preview

    from .demo_experiment import DELTA, EPSILONS

    with screens.console(stderr=True).status("the preview, which reads public people alone"):
        view = preview(public.X, public.y, rows=_ROWS, epsilons=EPSILONS, delta=DELTA, gap=_GAP)
    told = ", ".join(f"{line.share:.0%} at epsilon {line.epsilon:g}" for line in view.lines)
    say(
        "preview",
        f"what could be known before: for people whose gap is {_GAP:.0%}, a rehearsal on public "
        f"people alone says {told} (share of the gap closed).",
    )
    return view


def _run(runs: int, publics: tuple[Any, ...]) -> pd.DataFrame:
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    from .demo_experiment import run_demo

    columns = (BarColumn(bar_width=20), TimeElapsedColumn(), "{task.description}")
    with Progress(*columns, console=screens.console(), transient=True) as bar:
        task = bar.add_task("loading")

        def progress(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=name)

        return run_demo(runs, publics=publics, progress=progress)
