"""Which columns a fit uses: what was asked for, and what public rows say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .screens import say, say_note
from .tables import TableError

if TYPE_CHECKING:
    import pandas as pd

_Names = Sequence[str] | None


@dataclass(frozen=True)
class Asked:
    """Columns as the command line names them: one an option, or several with commas."""

    columns: _Names = None
    keep: _Names = None
    drop: _Names = None
    id: _Names = None
    date: _Names = None
    groups: str | None = None
    unit: str | None = None


@dataclass(frozen=True)
class Chosen:
    """The columns of a fit: its features, dates among them, groups, and what is left out, why."""

    names: tuple[Any, ...]
    dates: tuple[Any, ...] = ()
    groups: Any = None
    left_out: tuple[tuple[Any, str], ...] = ()


def choose_columns(public: pd.DataFrame, asked: Asked, label: str) -> Chosen:
    """Choose columns by what was asked for and by what they are in public rows; tell it."""
    from dpadapt.features import column_roles
    from dpadapt.features.people import may_name_people

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
    return Chosen(tuple(names), tuple(name for name, _ in found), values, tuple(left_out.items()))


def _say(title: str, pairs: list[tuple[Any, str]]) -> None:
    """Say columns, those with the same reason together."""
    reasons = dict.fromkeys(why for _, why in pairs)
    parts = [
        f"{', '.join(str(name) for name, own in pairs if own == why)} ({why})" for why in reasons
    ]
    if parts:
        say(title, "; ".join(parts))


def _check_dates(public: pd.DataFrame, name: Any) -> None:
    from dpadapt.features.dates import date_format

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
