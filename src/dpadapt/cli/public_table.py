"""The public table as ``fit`` reads it; ``preview`` and ``audit`` read it in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .columns import Asked, choose_columns
from .formats import Form
from .screens import say_note
from .tables import TableError, read_public
from .task import Task, labels_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PublicTable", "read_public_table"]


@dataclass(frozen=True, eq=False)
class PublicTable:
    """Public rows that have a label, ready for a fit.

    Parameters
    ----------
    features : DataFrame
        The columns that are used.
    labels : ndarray
    task : Task
    dates : tuple or None
        Columns to read as dates, if some were named; None if they are found by themselves.
    groups : ndarray or None
    unused : tuple
        Columns that are left out.
    """

    features: pd.DataFrame
    labels: Any
    task: Task
    dates: tuple[Any, ...] | None
    groups: Any
    unused: tuple[Any, ...]


def read_public_table(
    path: Path, label: str, *, form: Form, task: Task, asked: Asked
) -> PublicTable:
    """Read the public file, tell what it is, and choose columns.

    Parameters
    ----------
    path : Path
    label : str
        Column to predict.
    form : Form
        How the file is written.
    task : Task
        What was asked for.
    asked : Asked
        Columns as the command line names them.
    """
    features, given = read_public(path, label, form)
    known = given.notna()
    if not known.any():
        raise TableError(f"--public {path} has no labels in column {label!r}.")
    if not known.all():
        say_note(f"{int((~known).sum()):,} public rows have no label, and are left out.")
        features, given = features[known], given[known]
    labels, found = labels_of(given, task)
    chosen = choose_columns(features, asked, label)
    unused = tuple(name for name in features.columns if name not in chosen.names)
    dates = None if asked.date is None else chosen.dates
    used = features[list(chosen.names)]
    return PublicTable(used, labels, found, dates, chosen.groups, unused)
