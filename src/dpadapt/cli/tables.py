"""Tables in files. What goes wrong in a private file is told without a word of its content.

How a CSV file is written is guessed of a public one, and of a private one read off its first line.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .formats import Form, guess_form, name_of, private_header, private_separator, split, whole_rows
from .screens import say

if TYPE_CHECKING:
    import pandas as pd

    from dpadapt.privacy import Private

# what stands for a missing cell in a CSV file, private or public: pandas's own list
_NOTHING = {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"}
_NOTHING |= {"1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}


class TableError(ValueError):
    """A table cannot be read, or lacks what is needed."""


def read_table(path: Path, form: Form | None = None) -> pd.DataFrame:
    """Read a table that is not private: a CSV or Parquet file."""
    import pandas as pd

    require_file(path)
    try:
        if is_csv(path):
            how = form or Form()
            table = pd.read_csv(path, sep=how.sep, decimal=how.decimal, encoding=how.encoding)
        else:
            table = pd.read_parquet(path)
    except (ValueError, OSError, LookupError) as error:
        raise TableError(f"{path} could not be read as {_kind(path)}: {_reason(error)}") from None
    if table.empty:
        raise TableError(f"{path} has no rows.")
    return table


def _kind(path: Path) -> str:
    return "CSV" if is_csv(path) else "Parquet"


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):  # of what pandas writes into a Parquet file
        return "its notes on pandas types are damaged."
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "tokenizing" in text:
        return (
            "its lines have different numbers of cells. Which separator does it use? Name it with "
            "--sep."
        )
    return text


def read_labelled(
    path: Path, label: str, form: Form | None = None
) -> tuple[pd.DataFrame, pd.Series]:
    """Read a public table; return its features and its label, as it is."""
    table = read_table(path, form)
    check_label(path, table, label)
    if len(table.columns) == 1:
        raise TableError(f"{path} has no column besides the label {label!r}.")
    return table.drop(columns=label), table[label]


def check_label(path: Path, table: pd.DataFrame, label: str) -> None:
    """Refuse a public table that lacks the label."""
    if label not in table.columns:
        listed = ", ".join(map(str, table.columns))
        if len(table.columns) == 1:
            listed = f"one column only, {listed!r}. Which separator does it use? See --sep"
        raise TableError(f"{path} has no column {label!r} for the label; it has: {listed}.")


def open_private(
    path: Path,
    label: str | None = None,
    *,
    form: Form | None = None,
    unit: str | None = None,
    max_rows: int | None = None,
) -> Private:
    """Open a private table: a CSV file, a Parquet file (read in blocks) or a folder of those.

    The cells of a CSV file stay text here: each cell is read by itself later, as the public table
    says. A quoted cell may go over several lines: its lines would else be rows of their own, and
    one person several of them. So the file must come from a program that writes quotes as CSV does:
    what is quoted so is read as it was written, whatever stands in a cell, and each record is a row
    of its own. In a file that is not well quoted a stray quote can pair with one of another line,
    and make one row of two, or two of one. A missing comma or a blank line changes its own row.

    Parameters
    ----------
    path : Path
    label : str, optional
        The column that holds labels, if the file has it.
    form : Form, optional
        How the file is written.
    unit : str, optional
        The column that says whose rows they are.
    max_rows : int, optional
        Rows of one unit, at most.
    """
    people = {} if unit is None else {"unit": unit, "max_rows": max_rows}
    if path.is_dir():
        for each in path.rglob("*.parquet"):
            require_file(each, "--private")
    else:
        require_file(path, "--private")
    if path.is_dir() or not is_csv(path):
        return _parquet(path, label, people)
    try:
        table = text_lines(path, form or Form(), unit)
    except Exception:  # the message may quote private cells
        raise TableError(
            f"the private file {path} could not be read as CSV (the reason is withheld, because "
            "it may quote private cells). Does it begin with a line of names, in UTF-8? See --sep "
            "and --encoding."
        ) from None
    _check_unit(path, unit, tuple(table.columns))
    return _in_memory(path, table, label, people)


def _in_memory(path: Path, table: pd.DataFrame, label: str | None, people: dict[str, Any]) -> Any:
    from dpadapt.privacy import Private

    if table.columns.has_duplicates:  # the first line is public
        raise TableError(no_header(path))
    try:
        if label is None or label not in table.columns:
            return Private(table, **people)
        return Private(table.drop(columns=label), list(table[label]), **people)
    except Exception:  # the message may quote private cells
        raise TableError(
            f"the private file {path} cannot be used (the reason is withheld, because it may quote "
            "private cells)."
        ) from None


def _parquet(path: Path, label: str | None, people: dict[str, Any]) -> Private:
    from dpadapt.privacy import Private

    try:
        columns = Private.from_parquet(path).columns or ()
    except ValueError as error:
        text = str(error).removeprefix("path: ")
        raise TableError(f"--private: {text}") from None
    _check_unit(path, people.get("unit"), columns)
    try:
        return Private.from_parquet(path, label=label if label in columns else None, **people)
    except ValueError:  # the message may quote private cells
        raise TableError(f"--private: {path} cannot be used as Parquet.") from None


def partition_keys(path: Path) -> list[str]:
    """Columns that the names of folders inside a folder say."""
    keys, folder = [], path
    while folder.is_dir():
        inner = sorted(each for each in folder.iterdir() if "=" in each.name and each.is_dir())
        if not inner:
            break
        folder = inner[0]
        keys.append(folder.name.partition("=")[0])
    return keys


def no_header(path: Path) -> str:
    """What is said of a private file without a line of names: no word of what is there instead."""
    return (
        f"the first line of the private file {path} is no line of names like that of the public "
        "one, each there once. Give it one; if it has one, is it another separator (--sep)?"
    )


def _check_unit(path: Path, unit: str | None, columns: Sequence[str]) -> None:
    if unit is not None and list(columns).count(unit) != 1:
        raise TableError(f"--unit: the private file {path} has no column {unit!r}.")


def text_lines(path: Path, form: Form, unit: str | None = None) -> pd.DataFrame:
    """Rows of a CSV file as texts, under the names in its first line.

    A quoted cell may go over several lines. With ``unit``, the column of ids, an id is a text like
    any other, and missing where a line ends before it. Lines with nothing at all are no rows then:
    no row of two cells or more is written so.
    """
    import pandas as pd

    first, *rest = _lines(path)
    names = split(first.decode(form.encoding).removeprefix("\ufeff"), form.sep)
    found = _split_rows(rest, form)
    if unit in names:
        place = names.index(unit)
        rows = [_of_a_person(cells, len(names), form, place) for cells in found if cells]
    else:
        rows = [_cells(cells, len(names), form) for cells in found]
    cells: Any = list(zip(*rows, strict=True)) or [()] * len(names)
    table = pd.DataFrame(dict(enumerate(map(list, cells))), dtype=object)
    table.columns = pd.Index(names)
    return table


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().removesuffix(b"\n").split(b"\n")


def _split_rows(given: Sequence[bytes], form: Form) -> Iterator[list[str]]:
    """Cells of each row, which has several lines where a quoted cell has."""
    lines = [line.decode(form.encoding, "replace") for line in given]
    return (split(row, form.sep) for row in whole_rows(lines, form.sep))


def widths(path: Path, form: Form) -> Iterator[int]:
    """Number of cells in each row of a CSV file."""
    return map(len, _split_rows(_lines(path), form))


def _cells(found: list[str], width: int, form: Form) -> list[Any]:
    """Cells of one line; what is not there is missing, and what is too much is left out."""
    cells = [None if cell in _NOTHING else form.cell(cell) for cell in found[:width]]
    return cells + [None] * (width - len(cells))


def _of_a_person(found: list[str], width: int, form: Form, place: int) -> list[Any]:
    """Cells of one line, with an id at ``place`` that is a text, unless the line ends before it."""
    cells = _cells(found, width, form)
    cells[place] = form.cell(found[place]) if place < len(found) else None
    return cells


def require_file(path: Path, option: str = "") -> None:
    """Refuse what is no file on a disk: a pipe would wait for its writer, a device never end.

    ``option`` is what gave the path on the command line.
    """
    by = f"{option}: " if option else ""
    try:
        found = path.stat()
    except (OSError, ValueError):
        raise TableError(f"{by}there is no file {path}.") from None
    if stat.S_ISDIR(found.st_mode):
        raise TableError(f"{by}{path} is a folder, not a file.")
    if not stat.S_ISREG(found.st_mode):
        raise TableError(f"{by}{path} is a pipe or a device; write its content to a file first.")
    if found.st_size == 0:
        raise TableError(f"{by}{path} is empty.")


def is_csv(path: Path) -> bool:
    """Whether a name says CSV; refuses what is neither that nor Parquet."""
    if path.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise TableError(f"{path}: the name must end in .csv or .parquet.")
    return path.suffix.lower() == ".csv"


def public_form(path: Path, said: dict[str, str]) -> Form:
    """Form of a public file, guessed where nothing was said; the guess is told."""
    form = _guessed(path, said)
    if form != Form(**said):
        say(
            "format",
            f"{form.words}: guessed from the public file; see --sep, --decimal, --encoding",
        )
    return form


def _guessed(path: Path, said: dict[str, str]) -> Form:
    require_file(path, "--public")
    return guess_form(path, said) if is_csv(path) else Form(**said)


def both_forms(
    public: Path, private: Path, said: dict[str, str], private_encoding: str | None = None
) -> tuple[Form, Form]:
    """Forms of both files. If their separators differ, --decimal is for the private one."""
    form = public_form(public, said)
    own = private_form(private, _names(public, form), form, said)
    if private_encoding is not None:
        own = replace(own, encoding=private_encoding)
    if own.sep != form.sep and "decimal" in said:
        form = _guessed(public, {key: each for key, each in said.items() if key != "decimal"})
    return form, own


def private_form(path: Path, columns: Collection[str], form: Form, said: dict[str, str]) -> Form:
    """Form of a private file: the separator is that of its first line; no cell is looked at.

    Parameters
    ----------
    path : Path
    columns : collection of str
        Names that its first line should have.
    form : Form
        Of the public file, or what was said.
    said : dict
        What the command line says.
    """
    own = header_form(path, columns, form)
    if "encoding" in said:
        own = replace(own, encoding=form.encoding)
    elif own.encoding != form.encoding:
        say("format", f"{path}: {own.encoding}, by the names in its first line")
    if own.sep == form.sep:
        return own
    found = f"{path} has the separator {name_of(own.sep)}, not {name_of(form.sep)}"
    if not {"sep", "decimal"} & {*said}:
        raise TableError(
            f"the private file {found}: its numbers may have another decimal sign as well, and no "
            "private cell is looked at to find out. Give --decimal . or --decimal , for it."
        )
    say("format", f"{found}; its numbers are read with a decimal {_SIGNS[own.decimal]}")
    return own


_SIGNS = {",": "comma", ".": "point"}


def header_form(path: Path, columns: Collection[str], form: Form) -> Form:
    """A form with separator and encoding of the first line of a CSV file, which is public."""
    if path.is_dir() or not is_csv(path):
        return form
    require_file(path, "--private")
    with open(path, "rb") as file:
        header, encoding = private_header(file.readline(), columns, form)
    return replace(form, sep=private_separator(header, columns, form), encoding=encoding)


def _names(path: Path, form: Form) -> list[Any]:
    """Names of the columns of a public file; none if it cannot be read, which is told later."""
    import pandas as pd
    from pyarrow.parquet import read_schema

    try:
        if not is_csv(path):
            return list(read_schema(path).names)
        return list(pd.read_csv(path, sep=form.sep, encoding=form.encoding, nrows=0).columns)
    except (ValueError, OSError, LookupError):
        return []
