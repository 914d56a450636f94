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

_LARGEST = 1e75  # number of a cell: fourth powers of larger ones are no numbers any more


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
    unused : tuple of (name, str)
        Columns that are left out, and why.
    unit : Series or None
        Whose each row is, where public rows say so.
    """

    features: pd.DataFrame
    labels: Any
    task: Task
    dates: tuple[Any, ...] | None
    groups: Any
    unused: tuple[tuple[Any, str], ...]
    unit: pd.Series | None = None


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
    from dpadapt.learning.tables import refuse_huge

    features, given = read_public(path, label, form)
    known = given.notna()
    if not known.any():
        raise TableError(f"--public {path} has no labels in column {label!r}.")
    if not known.all():
        say_note(f"{int((~known).sum()):,} public rows have no label, and are left out.")
        features, given = features[known], given[known]
    labels, found = labels_of(given, task)
    chosen = choose_columns(features, asked, label)
    unit = features[asked.unit] if asked.unit in features.columns else None
    dates = None if asked.date is None else chosen.dates
    used = features[list(chosen.names)]
    if found is Task.regression:
        refuse_huge(f"--public {path}: the column {label!r}", labels, _LARGEST)
    for name in used.select_dtypes("number").columns:
        refuse_huge(f"--public {path}: the column {name!r}", used[name].dropna(), _LARGEST)
    return PublicTable(used, labels, found, dates, chosen.groups, chosen.left_out, unit)
