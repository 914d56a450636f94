"""A paper's results as one text page, with the pictures beside it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from .page import Experiment, Paper, read_section
from .verdicts import Verdict

__all__ = ["verdict_lines", "write_markdown"]


def write_markdown(paper: Paper, out: Path, path: Path | None = None) -> Path:
    """Write the page from the tables and pictures in a folder.

    Parameters
    ----------
    paper : Paper
    out : Path
        Where :func:`~reproduce.page.write_page` left tables and pictures.
    path : Path, optional
        The page. By default ``index.md`` in that folder; elsewhere the pictures are copied beside
        it, under names that start with its own.

    Examples
    --------
    >>> import tempfile
    >>> paper = Paper("000", "A paper", ["m = 1000"], {"mu": "by a bound"}, [], [])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_markdown(paper, Path(folder)).read_text(encoding="utf-8")[:22])
    # Paper 000, run again
    """
    path = out / "index.md" if path is None else path
    lines = [
        f"# Paper {paper.number}, run again",
        "",
        f"{paper.title}.",
        "",
        f"    python -m reproduce {paper.number} --list",
        f"    python -m reproduce {paper.number} --figure {paper.names[0] if paper.names else '1'}",
        f"    python -m reproduce {paper.number} --repeats 10 --jobs 2     # everything",
        "",
        "This page is written by the command, from its tables; every verdict is computed from the "
        "table above it. Real data is read from the folder that the environment variable "
        "`DPADAPT_DATA` names; `reproduce/data` says which files. Set `OPENBLAS_NUM_THREADS=1`: "
        "the matrices are small.",
        "",
        "## What is the paper's setting, and what is not",
        "",
        "Stated, and used here:",
        "",
        *(f"- {each}" for each in paper.stated),
        "",
        "Not stated in the paper:",
        "",
        *_table(["setting", "chosen here"], [list(pair) for pair in paper.unstated.items()]),
    ]
    if paper.differences:
        lines += ["", "Different from the paper:", "", *(f"- {each}" for each in paper.differences)]
    for each in paper.experiments:
        lines += _section(each, out, path)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def verdict_lines(verdict: Verdict) -> list[str]:
    """How a verdict stands on a page.

    Examples
    --------
    >>> verdict_lines(Verdict("Verdict: holds.", ("Holds: it falls: from 3 to 1.",)))
    ['**Verdict: holds.**', '', '- Holds: it falls: from 3 to 1.']
    """
    return [f"**{verdict.head}**", "", *(f"- {line}" for line in verdict.lines)]


def _section(experiment: Experiment, out: Path, path: Path) -> list[str]:
    lines = ["", f"## {experiment.title}", "", experiment.about, ""]
    section = read_section(experiment, out)
    if section is None:
        return [*lines, "Not run, or its data is missing, so that there is no verdict."]
    picture = f"{experiment.file}.png"
    if path.parent != out:
        shutil.copyfile(out / picture, path.parent / f"{path.stem}_{picture}")
        picture = f"{path.stem}_{picture}"
    lines += [
        *([section.draws, ""] if section.draws else []),
        *(f"- {sentence}" for sentence in section.findings),
        "",
        f"![{experiment.title}]({picture})",
        "",
        *_table(list(section.summary.columns), section.summary.astype(str).to_numpy().tolist()),
    ]
    return lines if section.verdict is None else [*lines, "", *verdict_lines(section.verdict)]


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(names), "|" + "---|" * len(names), *(line(row) for row in rows)]
