"""Lines and cells of a CSV file: of whatever length, whatever stands in them.

Nothing here fails, and nothing of another line decides what a line means, except where a cell goes
over several lines. The reader of the standard library refuses cells above a limit and a lone
carriage return, and lets a quote that nobody closes take the rest of the file along.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

_INSIDE = r'[^"]*+(?:""[^"]*+)*+'  # of a quoted cell; a quote in it is doubled


def split(line: str, sep: str) -> list[str]:
    """Cells of one line; none of an empty one.

    A cell is quoted if it begins with a quote and ends with one, before a separator or the end of
    the line. Any other quote is a letter: one that nobody closed hides no cell behind it.

    Examples
    --------
    >>> split('a,"b, ""c"" d",', ",")
    ['a', 'b, "c" d', '']
    >>> split('a,"b,c', ",")
    ['a', '"b', 'c']
    """
    line = line.rstrip("\r\n")
    if '"' not in line:
        return line.split(sep) if line else []
    cell, cells, at = _one_cell(sep), [], 0
    while True:
        found = cell.match(line, at)
        assert found is not None  # an unquoted cell may be empty
        quoted, plain, more = found.groups()
        cells.append(plain if quoted is None else quoted.replace('""', '"'))
        if not more:
            return cells
        at = found.end()


def whole_rows(lines: Sequence[str], sep: str) -> Iterator[str]:
    r"""Rows: lines, joined where a quoted cell goes over several of them.

    A line with an odd number of quotes may begin such a row, and then the next one with an odd
    number ends it. Both and all between are one row if their cells are quoted as CSV has it, to the
    letter; else the first is a row by itself, as every other line is.

    Examples
    --------
    >>> list(whole_rows(['a,"1', '2"', 'b,"3', 'c,4'], ","))
    ['a,"1\n2"', 'b,"3', 'c,4']
    """
    odd = [place for place, line in enumerate(lines) if line.count('"') % 2]
    ends = dict(pairwise(odd))
    at = 0
    while at < len(lines):
        end = ends.get(at, at)
        row = "\n".join(lines[at : end + 1])
        if end > at and not _well_quoted(sep).fullmatch(row.rstrip("\r")):
            row, end = lines[at], at
        yield row
        at = end + 1


@cache
def _one_cell(sep: str) -> re.Pattern[str]:
    """A cell from where one begins: its text if quoted, its text if not, what ends it."""
    one = re.escape(sep)
    return re.compile(rf'(?:"({_INSIDE})"(?={one}|\Z)|([^{one}]*+))({one}|\Z)')


@cache
def _well_quoted(sep: str) -> re.Pattern[str]:
    one = re.escape(sep)
    cell = rf'(?:"{_INSIDE}"|[^{one}"\n]*+)'
    return re.compile(rf"{cell}(?:{one}{cell})*+")
