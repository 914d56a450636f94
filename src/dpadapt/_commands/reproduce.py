"""``dpadapt reproduce``: the experiments of a paper on the screen, and their files."""

from __future__ import annotations

from pathlib import Path

from dpadapt._commands import screens
from dpadapt._commands.screens import say, say_note
from dpadapt.experiments.page import Paper, run_experiments, write_page
from dpadapt.experiments.runs import Options

__all__ = ["list_figures", "paper_of", "reproduce_paper"]

_QUICK_REPEATS = 2


def paper_of(number: str) -> Paper:
    """The paper of this number, or an error that lists them."""
    from dpadapt.experiments.paper_000 import PAPER

    papers = {PAPER.number: PAPER}
    if number not in papers:
        raise ValueError(f"there is no paper {number!r}; there are {', '.join(papers)}.")
    return papers[number]


def list_figures(number: str) -> None:
    """Print what can be run."""
    paper = paper_of(number)
    say(f"paper {number}", paper.title)
    for each in paper.experiments:
        say(each.name, each.title)


def reproduce_paper(
    number: str, figure: str | None, out: Path, *, repeats: int, quick: bool, jobs: int
) -> None:
    """Run one figure or all, write their files, and say what was found."""
    import pandas as pd
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    paper = paper_of(number)
    chosen = list(paper.experiments) if figure is None else [paper.choose(figure)]
    columns = (BarColumn(bar_width=20), TimeElapsedColumn(), "{task.description}")
    with Progress(*columns, console=screens.console(), transient=True) as bar:
        task = bar.add_task("starting")

        def progress(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=f"{name}: {done} of {total}")

        options = Options(
            repeats=min(repeats, _QUICK_REPEATS) if quick else repeats,
            quick=quick,
            jobs=jobs,
            progress=progress,
        )
        missing = run_experiments(chosen, out, options)
    if figure is not None and missing:
        raise ValueError(missing[0])
    for each in chosen:
        if any(note.startswith(f"figure {each.name}:") for note in missing):
            continue
        say(each.name, each.title, style="bold")
        for sentence in each.findings(pd.read_csv(out / f"{each.file}.csv")):
            say("", sentence)
    for note in missing:
        say_note(note)
    say("wrote", f"{write_page(paper, out)} (open it in a browser), a CSV and a PNG a figure")
