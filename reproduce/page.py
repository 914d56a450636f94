"""How the results of a paper's experiments become tables, pictures and one page.

A run leaves one CSV for each experiment; pictures and the page are made from the CSV files that are
in the folder, so that experiments can be run one by one and the page still shows all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpadapt.report.figures import GREY, STYLE, as_data_uri, blank

from .runs import Options

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Experiment", "Paper", "finish", "panels", "run_experiments", "write_page"]

_DPI = 150


@dataclass(frozen=True)
class Experiment:
    """One figure: how to run it, sum it up, draw it, and say what it shows.

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
    verdicts : mapping of str to str
        For an experiment's name, one line on whether the paper's claim holds, with the numbers of
        the page in ``docs``.

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
    verdicts: Mapping[str, str] = field(default_factory=dict)

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


def run_experiments(experiments: Sequence[Experiment], out: Path, options: Options) -> list[str]:
    """Run experiments and write their tables.

    Parameters
    ----------
    experiments : sequence of Experiment
    out : Path
        The folder; files of other experiments in it stay.
    options : Options

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
        tables[each.run].to_csv(out / f"{each.file}.csv", index=False)
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
    import matplotlib
    import pandas as pd

    sections: list[dict[str, Any]] = []
    for each in paper.experiments:
        source = out / f"{each.file}.csv"
        section: dict[str, Any] = {"experiment": each, "ran": source.exists()}
        if source.exists():
            table = pd.read_csv(source)
            summary, figure = each.summarise(table), each.draw(table)
            with matplotlib.rc_context(STYLE):
                figure.savefig(out / f"{each.file}.png", dpi=_DPI, bbox_inches="tight")
            section |= {
                "picture": as_data_uri(figure),
                "findings": each.findings(table),
                "columns": list(summary.columns),
                "rows": summary.astype(str).values.tolist(),
            }
        sections.append(section)
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
