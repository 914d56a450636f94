"""Tables in files. What goes wrong in a private file is told without a word of its content."""

from __future__ import annotations

import csv
import json
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from dpadapt.privacy import Private

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "TableError",
    "open_private",
    "read_public",
    "read_table",
    "require_file",
    "write_table",
]

# what stands for a missing cell in a CSV file, private or public: pandas's own list
_NOTHING = {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"}
_NOTHING |= {"1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}


class TableError(ValueError):
    """A table cannot be read, or lacks what is needed."""


def read_table(path: Path) -> pd.DataFrame:
    """Read a table that is not private: a CSV or Parquet file."""
    import pandas as pd

    require_file(path)
    try:
        table = pd.read_csv(path) if _is_csv(path) else pd.read_parquet(path)
    except (ValueError, OSError) as error:
        kind = "CSV" if _is_csv(path) else "Parquet"
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if isinstance(error, json.JSONDecodeError):  # of what pandas writes into a Parquet file
            reason = "its notes on pandas types are damaged."
        raise TableError(f"{path} could not be read as {kind}: {reason}") from None
    if table.empty:
        raise TableError(f"{path} has no rows.")
    return table


def read_public(path: Path, label: str) -> tuple[pd.DataFrame, pd.Series]:
    """Read a public table; return its features and its label."""
    import pandas as pd

    table = read_table(path)
    if label not in table.columns:
        listed = ", ".join(map(str, table.columns))
        raise TableError(f"{path} has no column {label!r} for the label; it has: {listed}.")
    if len(table.columns) == 1:
        raise TableError(f"{path} has no column besides the label {label!r}.")
    labels = pd.to_numeric(table[label], errors="coerce")
    if labels.isna().any():
        raise TableError(
            f"{path}: {int(labels.isna().sum())} of {len(labels)} labels in column {label!r} are "
            "missing or no numbers; remove those rows (this method predicts numbers)."
        )
    return table.drop(columns=label), labels.astype("float64")


def open_private(path: Path) -> Private:
    """Open a private table: a CSV file, a Parquet file (read in blocks) or a folder of those.

    The cells of a CSV file stay text here: each cell is read by itself later, as the public table
    says. One line of the file is one row, so that a stray quote, a missing comma or a blank line
    changes its own row and no other; a cell cannot go over several lines.
    """
    if path.is_dir():
        for each in path.glob("*.parquet"):
            require_file(each)
        return Private.from_parquet(path)
    require_file(path)
    if not _is_csv(path):
        try:
            return Private.from_parquet(path)
        except ValueError:
            raise TableError(f"the private file {path} could not be read as Parquet.") from None
    try:
        return Private(_lines(path))
    except Exception:  # the message may quote private cells
        raise TableError(
            f"the private file {path} could not be read as CSV (the reason is withheld, because "
            "it may quote private cells)."
        ) from None


def _lines(path: Path) -> pd.DataFrame:
    """Lines of a CSV file as rows of texts, under the names in its first line."""
    import pandas as pd

    first, *lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    names = next(csv.reader([first.decode("utf-8-sig").rstrip("\r")]))
    columns = zip(*(_cells(line, len(names)) for line in lines), strict=True)
    cells = list(columns) or [()] * len(names)
    table = pd.DataFrame(dict(enumerate(map(list, cells))), dtype=object)
    table.columns = pd.Index(names)
    return table


def _cells(line: bytes, width: int) -> list[str | None]:
    """Cells of one line; what is not there is missing, and what is too much is left out."""
    try:
        found = next(csv.reader([line.decode("utf-8", "replace").rstrip("\r")]), [])
    except csv.Error:
        found = []
    cells = [None if cell in _NOTHING else cell for cell in found[:width]]
    return cells + [None] * (width - len(cells))


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV or, by the ending of the name, Parquet."""
    if _is_csv(path):
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)


def require_file(path: Path) -> None:
    """Refuse what is no file on a disk: a pipe would wait for its writer, a device never end."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        raise TableError(f"there is no file {path}.") from None
    if stat.S_ISDIR(mode):
        raise TableError(f"{path} is a folder, not a file.")
    if not stat.S_ISREG(mode):
        raise TableError(f"{path} is a pipe or a device; write its content to a file first.")


def _is_csv(path: Path) -> bool:
    if path.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise TableError(f"{path}: the name must end in .csv or .parquet.")
    return path.suffix.lower() == ".csv"
