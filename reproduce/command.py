"""``dpadapt reproduce``: the experiments of a paper on the screen, and their files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from dpadapt._commands import screens
from dpadapt._commands.screens import say, say_note
from dpadapt.experiments.markdown import write_markdown
from dpadapt.experiments.page import Paper, run_experiments, write_page
from dpadapt.experiments.runs import Options

__all__ = ["list_figures", "paper_of", "reproduce_paper"]

_PAPERS = ("000", "001", "002", "003", "004")
_RESAMPLED = ("001",)  # whose figures draw private people with replacement
_QUICK_REPEATS = 2


def paper_of(number: str) -> Paper:
    """The paper of this number, or an error that lists them."""
    if number not in _PAPERS:
        raise ValueError(f"there is no paper {number!r}; there are {', '.join(_PAPERS)}.")
    paper: Paper = import_module(f"dpadapt.experiments.paper_{number}").PAPER
    return paper


def list_figures(number: str) -> None:
    """Print what can be run."""
    paper = paper_of(number)
    say(f"paper {number}", paper.title)
    for each in paper.experiments:
        say(each.name, each.title)


def reproduce_paper(
    number: str,
    figure: str | None,
    out: Path,
    *,
    repeats: int,
    quick: bool,
    jobs: int,
    resample: bool = False,
) -> None:
    """Run one figure or all, write their files, and say what was found."""
    import pandas as pd
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    paper = paper_of(number)
    if resample and number not in _RESAMPLED:
        raise ValueError(f"paper {number} draws no private people with replacement.")
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
            resample=resample,
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
    if resample:
        say_note("private people were drawn with replacement: such results are NOT private.")
    say("wrote", f"{write_page(paper, out)} (open it in a browser), a CSV and a PNG a figure")
    if figure is None:
        say("", f"{write_markdown(paper, out)} (the same as text)")
