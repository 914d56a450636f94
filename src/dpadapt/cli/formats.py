"""How a CSV file is written: its separator, its decimal sign, its letters, its lines and cells.

The form is guessed on public files; of a private file only the first line is looked at, which holds
names and is public. Lines and cells may be of whatever length, and hold whatever there is: nothing
here fails, and nothing of another line decides what a line means, except where a cell goes over
several lines. The reader of the standard library refuses cells above a limit and a lone carriage
return, and lets a quote that nobody closes take the rest of the file along.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import typer

_SEPARATORS = (",", ";", "\t", "|")
_NAMES = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar"}
_SPELT = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "bar": "|"}
_STATEFUL = ("iso2022", "unicode", "raw-unicode", "utf-7", "hz")  # one letter changes others
_UTF8 = ("utf-8", "utf8", "utf-8-sig")
_LINES = 50  # that a guess looks at
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+")
_POINT_NUMBER = re.compile(r"[+-]?\d+\.\d+")
_PLAIN_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*", re.ASCII)


@dataclass(frozen=True)
class Form:
    """How cells stand in a CSV file."""

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    @property
    def words(self) -> str:
        """What a person would call it."""
        decimal = "decimal comma" if self.decimal == "," else "decimal point"
        return f"separator {name_of(self.sep)}, {decimal}, {self.encoding}"

    def cell(self, text: str) -> str:
        """One cell with a decimal point in it, if it is a number with a comma."""
        if self.decimal == "," and _PLAIN_COMMA.fullmatch(text):
            return text.replace(",", ".")
        return text


def name_of(sep: str) -> str:
    """What a person calls a separator."""
    return _NAMES.get(sep, sep)


def given_form(
    sep: str | None, decimal: str | None, encoding: str | None, *, option: str = "--encoding"
) -> dict[str, str]:
    """Check what the command line says about a form; return what it says.

    ``option`` is what the encoding is called there.

    Examples
    --------
    >>> given_form("semicolon", None, "Latin1")
    {'sep': ';', 'encoding': 'Latin1'}
    """
    said: dict[str, str] = {}
    if sep is not None:
        said["sep"] = _SPELT.get(sep, sep)
        if len(said["sep"]) != 1 or said["sep"] in '"\n\r':
            raise typer.BadParameter(f"--sep must be one character, or tab; got {sep!r}.")
    if decimal is not None:
        if decimal not in (".", ","):
            raise typer.BadParameter(f"--decimal must be . or , ; got {decimal!r}.")
        said["decimal"] = decimal
    if encoding is not None:
        if not _one_byte_a_letter(encoding):
            raise typer.BadParameter(
                f"{option} {encoding!r} is not one that can be read line by line; save the files "
                "as UTF-8, or name an encoding such as latin-1 or cp1252."
            )
        said["encoding"] = encoding
    return said


def _one_byte_a_letter(encoding: str) -> bool:
    """Whether a wrong byte can spoil no other line: UTF-8, or a table of 256 letters."""
    try:
        if codecs.lookup(encoding).name.startswith(_STATEFUL):
            return False
        every = bytes(range(256)).decode(encoding, "replace")
        ascii_first = bytes(range(128)).decode(encoding) == bytes(range(128)).decode("ascii")
    except (LookupError, UnicodeError, ValueError):
        return False
    utf8 = encoding.lower().replace("_", "-") in _UTF8
    return ascii_first and (utf8 or len(every) == 256)


def guess_form(path: Path, said: dict[str, str]) -> Form:
    """Form of a public CSV file: what was said, and a guess for the rest."""
    content = path.read_bytes()
    encoding = said.get("encoding") or _encoding(content)
    text = content.decode(encoding, "replace").removeprefix("\ufeff")
    lines = [line for line in text.split("\n", _LINES)[:_LINES] if line.strip()]
    sep = said.get("sep") or max(_SEPARATORS, key=lambda each: _agreement(lines, each))
    decimal = said.get("decimal") or _decimal(lines, sep)
    return Form(sep, decimal, encoding)


def _encoding(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def other_encoding(content: bytes, encoding: str) -> str:
    """The encoding that a file seems to have instead of the one it is read in; or nothing.

    Examples
    --------
    >>> other_encoding("größe".encode(), "cp1252"), other_encoding(b"size", "cp1252")
    ('utf-8', '')
    >>> other_encoding("größe".encode("cp1252"), "utf-8")
    'cp1252'
    """
    guess = "" if content.isascii() else _encoding(content)
    utf8 = encoding.lower().replace("_", "-") in _UTF8
    return guess if guess and (guess == "utf-8") != utf8 else ""


def _agreement(lines: list[str], sep: str) -> tuple[float, int]:
    """How many lines are as wide as the first, and how wide; 0 for one column."""
    widths = [len(split(line, sep)) for line in lines]
    if not widths or widths[0] < 2:
        return 0.0, 0
    return sum(width == widths[0] for width in widths) / len(widths), widths[0]


def _decimal(lines: list[str], sep: str) -> str:
    if sep == ",":
        return "."
    cells = [cell.strip() for line in lines[1:] for cell in split(line, sep)]
    commas = sum(_COMMA_NUMBER.fullmatch(cell) is not None for cell in cells)
    points = sum(_POINT_NUMBER.fullmatch(cell) is not None for cell in cells)
    return "," if commas > points else "."


def private_header(first: bytes, columns: Collection[str], form: Form) -> tuple[str, str]:
    """First line of a private file, and the encoding in which it has most of the public names.

    Examples
    --------
    >>> private_header("größe,y".encode(), ["größe", "y"], Form(encoding="cp1252"))
    ('größe,y', 'utf-8')
    """
    order = dict.fromkeys((form.encoding, "utf-8", "cp1252"))
    lines = {
        each: first.decode(each, "replace").removeprefix("\ufeff").rstrip("\r\n") for each in order
    }

    def known(encoding: str) -> int:
        line = lines[encoding]
        return max(len({*split(line, sep)} & {*columns}) for sep in (form.sep, *_SEPARATORS))

    best = max(order, key=known)
    return lines[best], best


def private_separator(header: str, columns: Collection[str], form: Form) -> str:
    """Separator of a private file: under which most of the public columns stand in its header.

    Examples
    --------
    >>> private_separator("age;town", ["age", "town"], Form())
    ';'
    """
    order = (form.sep, *(each for each in _SEPARATORS if each != form.sep))
    return max(order, key=lambda each: len({*split(header, each)} & {*columns}))


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
