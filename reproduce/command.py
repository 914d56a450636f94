"""The command ``python -m reproduce``: its options, what it shows, and the files it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpadapt.cli import help_text, screens
from dpadapt.cli.screens import plain_errors, say, say_note

from .markdown import write_markdown
from .page import Paper, read_section, run_experiments, write_page
from .papers import known_papers, paper_of
from .runs import Options

__all__ = ["app", "list_figures", "reproduce_paper"]

_RESAMPLED = ("001",)  # whose figures draw private people with replacement
_QUICK_REPEATS = 2

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@plain_errors()
def reproduce(
    paper: Annotated[str, typer.Argument(help=f"Number or name of the paper: {known_papers()}.")],
    figure: Annotated[str | None, typer.Option(help="Only this figure; see --list.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for tables, pictures and page.")] = None,
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="Draws of data and noise.")] = 10,
    quick: Annotated[
        bool, typer.Option("--quick", help="At most 2 repeats, fewer settings and steps.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Processes.")] = 1,
    resample: Annotated[
        bool,
        typer.Option(
            "--resample",
            help="Draw private people with replacement, as paper 001 does: VOIDS the guarantee.",
        ),
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="Only list the figures.")] = False,
) -> None:
    """Run the experiments of a paper again, with ours beside them.

    Writes a table (CSV) and a picture (PNG) for each figure and one page, index.html and as text
    index.md, that also says what of the paper could not be matched, and whether its claims hold,
    computed from the tables; it is written anew after each figure. By default into reproduced/ and
    the paper's number; figures that are already there and not run again stay. Real data is read
    from the folder that the environment variable DPADAPT_DATA names.

    [bold]Examples[/]

      python -m reproduce 000 --list

      python -m reproduce 000 --figure 1 --quick

      python -m reproduce 000 --repeats 10 --jobs 2 --out reproduced/000

      python -m reproduce 001 --figure table-1

      python -m reproduce hybrid --figure settings
    """
    chosen = paper_of(paper)
    if listing:
        list_figures(chosen)
        return
    folder = Path("reproduced") / chosen.number if out is None else out
    reproduce_paper(
        chosen, figure, folder, repeats=repeats, quick=quick, jobs=jobs, resample=resample
    )


app.command(no_args_is_help=True, help=help_text(str(reproduce.__doc__)))(reproduce)


def list_figures(paper: Paper) -> None:
    """Print what can be run."""
    say(f"paper {paper.number}", paper.title)
    for each in paper.experiments:
        say(each.name, each.title)


def reproduce_paper(
    paper: Paper,
    figure: str | None,
    out: Path,
    *,
    repeats: int,
    quick: bool,
    jobs: int,
    resample: bool = False,
) -> None:
    """Run one figure or all, write their files, and say what was found."""
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    if resample and paper.number not in _RESAMPLED:
        raise ValueError(f"paper {paper.number} draws no private people with replacement.")
    chosen = list(paper.experiments) if figure is None else [paper.choose(figure)]

    def write() -> list[Path]:
        """Both pages, after one figure too: none may tell less than the tables beside it."""
        return [write_page(paper, out), write_markdown(paper, out)]

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
        missing = run_experiments(chosen, out, options, after=write)
    if figure is not None and missing:
        raise ValueError(missing[0])
    for each in chosen:
        section = read_section(each, out)
        if section is None or any(note.startswith(f"figure {each.name}:") for note in missing):
            continue
        say(each.name, each.title, style="bold")
        for sentence in section.findings:
            say("", sentence)
        if section.verdict is not None:
            say("", section.verdict.head, style="bold")
            for sentence in section.verdict.lines:
                say("", sentence)
    for note in missing:
        say_note(note)
    if resample:
        say_note("private people were drawn with replacement: such results are NOT private.")
    page, text = write()
    say("wrote", f"{page} (open it in a browser), a CSV and a PNG a figure")
    say("", f"{text} (the same as text)")
