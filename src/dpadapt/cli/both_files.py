"""How two CSV files are written: the public one by a look, the private one by its first line."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from .formats import Form, guess_form, name_of, private_header, private_separator
from .screens import say
from .tables import TableError, is_csv, require_file


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
