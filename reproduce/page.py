"""How the results of a paper's experiments become tables, pictures and one page.

A run leaves one CSV for each experiment; pictures and the page are made from the CSV files that are
in the folder, so that experiments can be run one by one and the page still shows all of them. Both
are written after each experiment: a run that is stopped leaves the page of what was run.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpadapt.learning.figures import GREY, STYLE, blank

from .runs import Options, draws_of
from .verdicts import Claim, Verdict, judge, printed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "Experiment",
    "Paper",
    "Section",
    "finish",
    "panels",
    "read_section",
    "run_experiments",
    "write_page",
    "write_picture",
]

_DPI = 150
_QUICK = "A quick run: fewer settings and steps than are named above."


@dataclass(frozen=True)
class Experiment:
    """One figure: how to run it, sum it up, draw it, say what it shows, and judge it.

    Parameters
    ----------
    name : str
        What the command line calls it; also in the names of its files.
    title, about : str
        Heading, and what was done with which settings.
    run : callable
        From options to a tidy table. Experiments with the same ``run`` share one run.
    summarise : callable
        From that table to the one on the page.
    draw : callable
        From that table to a figure.
    findings : callable
        From that table to sentences.
    claims : sequence of Claim
        What the paper says of it; a verdict is computed from the table on the page.
    spread : str
        What bars or bands are; told where there is more than one draw.

    Examples
    --------
    >>> import pandas as pd
    >>> Experiment("1", "Title", "About.", pd.DataFrame, str, str, str).file
    'figure_1'
    """

    name: str
    title: str
    about: str
    run: Callable[[Options], pd.DataFrame]
    summarise: Callable[[pd.DataFrame], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Figure]
    findings: Callable[[pd.DataFrame], Sequence[str]]
    claims: Sequence[Claim] = ()
    spread: str = ""

    @property
    def file(self) -> str:
        """Name of its files, without ending."""
        return f"figure_{self.name}"


@dataclass(frozen=True)
class Paper:
    """A paper's experiments, and how far they can be those of the paper.

    Parameters
    ----------
    number, title : str
    stated : sequence of str
        Settings that the paper states and that are used here.
    unstated : mapping of str to str
        Settings that it does not state, and what was chosen instead.
    differences : sequence of str
        Where this differs from what the paper states.
    experiments : sequence of Experiment

    Examples
    --------
    >>> Paper("000", "A paper", ["m = 1000"], {"mu": "by a bound"}, [], []).names
    ()
    """

    number: str
    title: str
    stated: Sequence[str]
    unstated: Mapping[str, str]
    differences: Sequence[str]
    experiments: Sequence[Experiment]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the experiments."""
        return tuple(each.name for each in self.experiments)

    def choose(self, name: str) -> Experiment:
        """The experiment of this name, or an error that lists them."""
        for each in self.experiments:
            if each.name == name:
                return each
        raise ValueError(
            f"paper {self.number} has no figure {name!r}; there are {', '.join(self.names)}."
        )


@dataclass(frozen=True)
class Section:
    """What the page says of one experiment that was run."""

    summary: pd.DataFrame
    draws: str
    findings: tuple[str, ...]
    verdict: Verdict | None


def read_section(experiment: Experiment, out: Path) -> Section | None:
    """From the experiment's table in the folder; None if there is none.

    Examples
    --------
    >>> import pandas as pd
    >>> each = Experiment("1", "Title", "About.", pd.DataFrame, str, str, str)
    >>> read_section(each, Path("no such folder")) is None
    True
    """
    if not (out / f"{experiment.file}.csv").exists():
        return None
    table, quick = _read_table(experiment, out)
    summary = experiment.summarise(table)
    draws, told = draws_of(table), [_QUICK] if quick else []
    if draws is not None:
        told.append(f"Draws of data and noise: {draws}.")
        told += [experiment.spread] if draws.most > 1 and experiment.spread else []
    return Section(
        summary,
        " ".join(told),
        tuple(experiment.findings(table)),
        judge(experiment.claims, printed(summary), str(draws or "")),
    )


def _read_table(experiment: Experiment, out: Path) -> tuple[pd.DataFrame, bool]:
    """What an experiment's run left, and whether it was a quick one."""
    import pandas as pd

    table = pd.read_csv(out / f"{experiment.file}.csv")
    quick = "quick" in table and bool(table["quick"].any())
    return table.drop(columns="quick", errors="ignore"), quick


def write_picture(experiment: Experiment, out: Path) -> Path:
    """Draw an experiment from its table, unless its picture is newer than that.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> each = Experiment("1", "", "", pd.DataFrame, str, lambda table: panels(2, 1, 1, 1)[0], str)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"n": [1]}).to_csv(Path(folder) / "figure_1.csv")
    ...     write_picture(each, Path(folder)).name
    'figure_1.png'
    """
    import matplotlib

    source, path = out / f"{experiment.file}.csv", out / f"{experiment.file}.png"
    if not path.exists() or path.stat().st_mtime_ns < source.stat().st_mtime_ns:
        with matplotlib.rc_context(STYLE):
            figure = experiment.draw(_read_table(experiment, out)[0])
            figure.savefig(path, dpi=_DPI, bbox_inches="tight")
    return path


def run_experiments(
    experiments: Sequence[Experiment],
    out: Path,
    options: Options,
    after: Callable[[], object] = lambda: None,
) -> list[str]:
    """Run experiments and write their tables.

    Parameters
    ----------
    experiments : sequence of Experiment
    out : Path
        The folder; files of other experiments in it stay.
    options : Options
    after : callable
        Called when a table was written.

    Returns
    -------
    list of str
        What could not be run for lack of data, one sentence each.

    Examples
    --------
    >>> run_experiments([], Path("."), Options())
    []
    """
    from reproduce.data.files import MissingDataError

    out.mkdir(parents=True, exist_ok=True)
    tables: dict[Any, pd.DataFrame] = {}
    missing = []
    for each in experiments:
        try:
            if each.run not in tables:
                tables[each.run] = each.run(options)
        except MissingDataError as error:
            missing.append(f"figure {each.name}: {error}")
            continue
        tables[each.run].assign(quick=options.quick).to_csv(out / f"{each.file}.csv", index=False)
        after()
    return missing


def write_page(paper: Paper, out: Path) -> Path:
    """Write pictures and ``index.html`` (self-contained) from the tables in the folder.

    Examples
    --------
    >>> import tempfile
    >>> paper = Paper("000", "A paper", ["m = 1000"], {"mu": "by a bound"}, [], [])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     "by a bound" in write_page(paper, Path(folder)).read_text(encoding="utf-8")
    True
    """
    import jinja2

    sections: list[dict[str, Any]] = []
    for each in paper.experiments:
        section = read_section(each, out)
        shown: dict[str, Any] = {"experiment": each, "ran": section is not None}
        if section is not None:
            picture = base64.b64encode(write_picture(each, out).read_bytes()).decode("ascii")
            shown |= {
                "picture": f"data:image/png;base64,{picture}",
                "said": section,
                "columns": list(section.summary.columns),
                "rows": section.summary.astype(str).to_numpy().tolist(),
            }
        sections.append(shown)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    path = out / "index.html"
    path.write_text(
        environment.get_template("page.html").render(paper=paper, sections=sections),
        encoding="utf-8",
    )
    return path


def panels(width: float, height: float, rows: int, columns: int) -> tuple[Figure, Any]:
    """Figure with a grid of axes, in the style of the reports.

    Examples
    --------
    >>> figure, axes = panels(8, 6, 2, 2)
    >>> axes.shape
    (2, 2)
    """
    return blank(width, height, rows=rows, columns=columns, squeeze=False)


def finish(figure: Figure, grid: Any, note: str, columns: int = 5, colour: str = GREY) -> None:
    """One legend for all panels, and the note of what is not the paper's.

    Examples
    --------
    >>> figure, grid = panels(8, 3, 1, 2)
    >>> finish(figure, grid, "Not the paper's rows.")
    """
    figure.suptitle(note, fontsize=9, color=colour, x=0.01, ha="left")
    found: dict[str, Any] = {}
    for axes in grid.flat:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(
            found.values(), found.keys(), loc="outside lower center", ncols=columns, frameon=False
        )
