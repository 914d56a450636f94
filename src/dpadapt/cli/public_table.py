"""The public table: its columns, its label, and what the label asks for.

Which columns are used follows from what was asked for and from what public rows say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .formats import Form
from .screens import say, say_note
from .tables import TableError, read_labelled

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
    path: Path, label: str, *, form: Form, task: Task, asked: ColumnChoice
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

    features, given = read_labelled(path, label, form)
    known = given.notna()
    if not known.any():
        raise TableError(f"--public {path} has no labels in column {label!r}.")
    if not known.all():
        say_note(f"{int((~known).sum()):,} public rows have no label, and are left out.")
        features, given = features[known], given[known]
    labels, found = labels_and_task(given, task)
    chosen = choose_columns(features, asked, label)
    unit = features[asked.unit] if asked.unit in features.columns else None
    dates = None if asked.date is None else chosen.dates
    used = features[list(chosen.names)]
    if found is Task.regression:
        refuse_huge(f"--public {path}: the column {label!r}", labels, _LARGEST)
    for name in used.select_dtypes("number").columns:
        refuse_huge(f"--public {path}: the column {name!r}", used[name].dropna(), _LARGEST)
    return PublicTable(used, labels, found, dates, chosen.groups, chosen.left_out, unit)


_Names = Sequence[str] | None


@dataclass(frozen=True)
class ColumnChoice:
    """Columns as the command line names them: one an option, or several with commas."""

    columns: _Names = None
    keep: _Names = None
    drop: _Names = None
    id: _Names = None
    date: _Names = None
    groups: str | None = None
    unit: str | None = None


@dataclass(frozen=True)
class UsedColumns:
    """The columns of a fit: its features, dates among them, groups, and what is left out, why."""

    names: tuple[Any, ...]
    dates: tuple[Any, ...] = ()
    groups: Any = None
    left_out: tuple[tuple[Any, str], ...] = ()


def choose_columns(public: pd.DataFrame, asked: ColumnChoice, label: str) -> UsedColumns:
    """Choose columns by what was asked for and by what they are in public rows; tell it."""
    from dpadapt.features import column_roles
    from dpadapt.features.columns import may_name_people

    wanted = _listed(public, "--columns", asked.columns, label)
    kept = [*wanted, *_listed(public, "--keep", asked.keep, label)]
    dropped = _listed(public, "--drop", asked.drop, label)
    ids = _listed(public, "--id", asked.id, label)
    whose = [name for name in public.columns if asked.unit == str(name)]  # need not be there
    dates = _listed(public, "--date", asked.date, label)
    groups = _listed(public, "--groups", None if asked.groups is None else [asked.groups], label)
    out = {*dropped, *ids, *whose, *groups}
    told = {
        **dict.fromkeys(groups, "as groups"),
        **dict.fromkeys(ids, "as ids"),
        **dict.fromkeys(whose, "says whose row it is"),
        **dict.fromkeys(dropped, "as you asked"),
    }
    used = {*wanted, *kept} if wanted else {*public.columns}
    roles = [role for role in column_roles(public) if role.name in used]
    names, found, found_out = [], [], []
    for role in roles:
        if role.name in out:
            continue
        if role.name in dates:
            _check_dates(public, role.name)
            found.append((role.name, "as you asked"))
        elif not role.useful and role.name not in kept:
            told[role.name] = role.why
            found_out.append(role.name)
            continue
        elif role.kind == "date":
            found.append((role.name, role.why))
        names.append(role.name)
    if not names:
        raise TableError("no column is left to learn from; name some with --columns.")
    _say("left out", list(told.items()))
    if units := [role.name for role in roles if role.kind == "unit" and role.name in found_out]:
        say_note(
            f"if {units[0]} says whose row it is, people have several rows: `dpadapt fit --unit "
            f"{units[0]} --max-rows 5` protects all rows of a person. If it is a number like "
            f"others, give --keep {units[0]}."
        )
    asked_about = [name for name in names if name not in kept]
    if personal := [str(name) for name in asked_about if may_name_people(name, public[name])]:
        listed, more = ",".join(personal), len(personal) > 1
        do, it, them = ("do", "They are", "them") if more else ("does", "It is", "it")
        say_note(
            f"{do} {' and '.join(personal)} name people? {it} used as any other column is: "
            f"leave {them} out with --drop {listed}, or say --keep {listed}."
        )
    _say("dates", found)
    values = public[groups[0]].astype(str).to_numpy() if groups else None
    others = {name: "not among --columns" for name in public.columns if name not in used}
    left_out = {name: why for name, why in (others | told).items() if name not in names}
    return UsedColumns(
        tuple(names), tuple(name for name, _ in found), values, tuple(left_out.items())
    )


def _say(title: str, pairs: list[tuple[Any, str]]) -> None:
    """Say columns, those with the same reason together."""
    reasons = dict.fromkeys(why for _, why in pairs)
    parts = [
        f"{', '.join(str(name) for name, own in pairs if own == why)} ({why})" for why in reasons
    ]
    if parts:
        say(title, "; ".join(parts))


def _check_dates(public: pd.DataFrame, name: Any) -> None:
    from dpadapt.features.cells import date_format

    if public[name].dtype.kind != "M" and date_format(public[name], every=True) is None:
        raise TableError(f"--date {name}: its public cells are not written as dates.")


def _listed(public: pd.DataFrame, option: str, given: _Names, label: str) -> list[Any]:
    names = listed_names([*public.columns, label], option, given, "the public file")
    if label in names:
        raise TableError(f"{option}: {label!r} is the label.")
    return names


def listed_names(columns: Any, option: str, given: _Names, file: str) -> list[Any]:
    """Columns by name; commas divide names, unless a name has them.

    Examples
    --------
    >>> listed_names(["a", "b", "c,d"], "--drop", ["a,b", "c,d"], "x.csv")
    ['a', 'b', 'c,d']
    """
    known = {str(name): name for name in columns}
    names: list[str] = []
    for each in given or ():
        names += [each] if each in known else [part.strip() for part in each.split(",")]
    if unknown := [name for name in names if name not in known]:
        raise TableError(
            f"{option}: {file} has no column {unknown[0]!r}; it has: {', '.join(known)}."
        )
    return [known[name] for name in dict.fromkeys(names)]


_FEW = 0.995  # of the public labels are nearer to their mean than the largest error that counts
_MOST_CLASSES = 100
_FEW_NUMBERS = 10  # different whole numbers, which may be meant as classes


class Task(StrEnum):
    """What is predicted."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


def labels_and_task(label: pd.Series, task: Task) -> tuple[Any, Task]:
    """Labels for a fit and their task, told by the public labels alone; none may be missing.

    Examples
    --------
    >>> import pandas as pd
    >>> labels_and_task(pd.Series(["yes", "no"], name="y"), Task.auto)
    (array(['yes', 'no'], dtype=object), <Task.classification: 'classification'>)
    >>> labels_and_task(pd.Series([1.5, 2.5, 4.0], name="y"), Task.auto)[1].value
    'regression'
    """
    import numpy as np
    import pandas as pd

    if lists := sum(hasattr(cell, "__len__") and not isinstance(cell, str) for cell in label):
        raise TableError(
            f"--label {label.name}: {lists:,} of its public cells are lists, and each needs one "
            "number or class. Give one value of each list, or join them into a text."
        )
    numbers = pd.to_numeric(label, errors="coerce").astype("float64")
    wrong, distinct = int(numbers.isna().sum()), label.nunique()
    if distinct < 2:
        raise TableError(
            f"the public label {label.name!r} has one value only: there is nothing to predict."
        )
    if task is Task.auto:
        flags = label.dtype.kind == "b" or (distinct == 2 and wrong in (0, len(label)))
        if wrong and 2 * wrong <= len(label) and not flags:
            raise TableError(_some_texts(label.name, wrong, len(label)))
        task = Task.classification if wrong or flags else Task.regression
        if not (wrong or flags) and distinct <= _FEW_NUMBERS and (numbers % 1 == 0).all():
            say_note(
                f"the label has {distinct} different whole numbers, which are taken for numbers; "
                "if they are classes, give --task classification."
            )
    if task is Task.regression:
        if wrong or not np.isfinite(numbers).all():
            raise TableError(_some_texts(label.name, wrong or 1, len(label)))
        return numbers.to_numpy(), task
    if distinct > max(2, min(_MOST_CLASSES, len(label) // 2)):
        raise TableError(
            f"the public label {label.name!r} has {distinct} different values in {len(label)} "
            "rows: too many for classes. Is it the right column?"
        )
    plain = label.dtype.kind in "biuf"
    return (label.to_numpy() if plain else label.astype(str).to_numpy(dtype=object)), task


def _some_texts(name: Any, wrong: int, rows: int) -> str:
    return (
        f"{wrong} of {rows} public labels in column {name!r} are no numbers. If it holds classes, "
        "give --task classification; if it holds numbers, correct or remove those rows (see "
        "--decimal for 1,5)."
    )


def error_bounds(labels: Any) -> dict[str, Any]:
    """Range of a label that is a number, and the largest error that counts, from public labels.

    A square of the whole range would drown everything in noise: a model that is of any use is
    hardly ever farther off than public labels are from their own mean.

    Examples
    --------
    >>> import numpy as np
    >>> found = error_bounds(np.array([-1.0] * 500 + [1.0] * 500 + [90.0]))
    >>> found["label_range"], round(found["largest_error"], 2)
    ((-1.0, 90.0), 1.09)
    """
    import numpy as np

    largest = float(np.quantile(np.abs(labels - labels.mean()), _FEW))
    span = (float(labels.min()), float(labels.max()))
    return {"label_range": span, "largest_error": largest or span[1] - span[0]}
