"""Wrap the prose of Markdown pages at 100 columns; tables, code, headings and pictures stay.

Usage: ``python -m tools.wrap`` for all pages of the project. A paragraph or an item of a list that
is narrow enough is left as it is, so that a change of one sentence is a change of one paragraph.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

__all__ = ["PAGES", "WIDTH", "wrapped"]

WIDTH = 100
ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_ITEM = re.compile(r"(\s*(?:[-*+>]|\d+[.)]) +)(.*)")
_AS_IT_IS = re.compile(r"\s*(?:\||#|<|!\[)|    |\s*$")  # a table, heading, picture, code, nothing
_CODE, _MARK = re.compile(r"`[^`]+`"), re.compile(r" (?=(?:[-*+>]|#+|\d+[.)]) )")
_GLUE = "\0"  # for a space that must not be broken


def wrapped(text: str) -> str:
    r"""Return a page with its prose wrapped.

    Examples
    --------
    >>> print(wrapped("- " + "word " * 25 + "\n\n| a table | stays |"))
    - word word word word word word word word word word word word word word word word word word word
      word word word word word word
    <BLANKLINE>
    | a table | stays |
    """
    return "\n".join(line for block in _blocks(text.split("\n")) for line in block)


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Paragraphs and items of lists, wrapped; what is not prose comes line by line, as it is."""
    block: list[str] = []
    fenced = False
    for line in lines:
        fence = line.lstrip().startswith("```")
        inside = block and _ITEM.match(block[0]) and line.startswith("  ") and line.strip()
        alone = fenced or fence or (bool(_AS_IT_IS.match(line)) and not inside)
        if alone or _ITEM.match(line):
            yield _narrow(block)
            block = []
        fenced ^= fence
        if alone:
            yield [line]
        else:
            block.append(line)
    yield _narrow(block)


def _narrow(block: list[str]) -> list[str]:
    meant = any(each.endswith("  ") for each in block)  # breaks of lines
    if meant or max(map(len, block), default=0) <= WIDTH:
        return block
    item = _ITEM.match(block[0])
    first, rest = (item[1], item[2]) if item else ("", block[0])
    text = " ".join([rest, *(each.strip() for each in block[1:])])
    text = _CODE.sub(lambda found: found[0].replace(" ", _GLUE), _MARK.sub(_GLUE, text))
    later = first if ">" in first else " " * len(first)
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]


def main() -> None:
    """Wrap all pages of the project."""
    for page in PAGES:
        page.write_text(wrapped(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
