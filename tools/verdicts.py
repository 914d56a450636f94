"""Verdicts on the pages of the papers: computed from the tables that stand there.

The runs behind ``docs/reproduce_*.md`` take hours and their CSV files are not kept. But a rule
reads the printed table and nothing else, so that the verdict below it can always be computed again.

Usage: ``python -m tools.verdicts`` writes the pages; with ``--check`` it only looks.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from reproduce.markdown import verdict_lines
from reproduce.page import Experiment
from reproduce.papers import FOLDERS, paper_of
from reproduce.verdicts import Table, Verdict, judge

from .wrap import wrapped

__all__ = ["PAGES", "computed", "page_of", "read_table", "rewritten"]

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {number: DOCS / f"reproduce_{number}.md" for number in FOLDERS}

_DRAWS = re.compile(r"\bDraws of data and noise: (\d+(?: to \d+)?)\.")
# the head, and the list below it if there is one
_VERDICT = re.compile(
    r"\n*^\*\*(?:Verdict|No verdict|Not a claim)[^\n]*(?:\n[^\n]+)*"
    r"(?:\n(?:\n(?:- |  )[^\n]+)+)?",
    re.M,
)


def page_of(number: str) -> str:
    """The text of a paper's page.

    Examples
    --------
    >>> page_of("003")[:9]
    '# Paper 0'
    """
    return PAGES[number].read_text(encoding="utf-8")


def read_table(section: str) -> Table:
    r"""The first table below the picture.

    Examples
    --------
    >>> read_table("![a](b.png)\n\n| n | loss |\n|---|---|\n| 10 | 0.5 |\n")
    [{'n': '10', 'loss': '0.5'}]
    """
    below = section[section.find("![") :]
    found = re.search(r"(?:^\|.*\|\n?)+", below, re.M)
    if found is None:
        return []
    lines = [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in found.group().strip().split("\n")
    ]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def computed(experiment: Experiment, section: str) -> Verdict | None:
    """The verdict on a section's table, with its number of draws."""
    draws = _DRAWS.search(section)
    return judge(experiment.claims, read_table(section), draws.group(1) if draws else "")


def rewritten(number: str, text: str) -> str:
    """The page with the verdicts of its tables, and with no other.

    A section is that of an experiment if it shows its picture.
    """
    experiments = {
        f"reproduce_{number}_{each.file}.png": each for each in paper_of(number).experiments
    }
    sections = re.split(r"(?=^## )", text, flags=re.M)
    return "".join(_section(section, experiments) for section in sections)


def _section(section: str, experiments: dict[str, Experiment]) -> str:
    picture = re.search(r"!\[[^\]]*\]\(([^)]+)\)", section)
    where = _VERDICT.search(section)
    bare = _VERDICT.sub("\n", section) if where else section
    if picture is None or picture.group(1) not in experiments:
        return bare
    verdict = computed(experiments[picture.group(1)], section)
    if verdict is None:
        return bare
    block = wrapped("\n".join(verdict_lines(verdict)))
    at = where.start() if where else len(bare.rstrip())
    before, after = bare[:at].rstrip(), bare[at:].strip("\n")
    end = f"\n\n{after}" if after else ""
    return f"{before}\n\n{block}{end}\n" + ("\n" if section.endswith("\n\n") else "")


def main() -> int:
    """Write the pages, or tell which are out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only look")
    check, late = parser.parse_args().check, []
    for number, path in PAGES.items():
        text = page_of(number)
        if (new := rewritten(number, text)) != text:
            late.append(path.name)
            if not check:
                path.write_text(new, encoding="utf-8")
    print("\n".join(late) or "all verdicts are those of their tables")
    return int(check and bool(late))


if __name__ == "__main__":
    sys.exit(main())
