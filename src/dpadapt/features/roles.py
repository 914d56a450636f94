"""What the columns of a public table are for: ids, constants and texts of no use are found."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from .dates import date_format, is_date
from .people import coded_rows, people_column

if TYPE_CHECKING:
    import pandas as pd

_ID_NAME = re.compile(
    r"(.*[_\W])?(?i:id|ids|uuid|guid|key|index|rownames?|row_?(number|nr|no))"
    r"|(?i:unnamed:? ?\d*|id[_\W].*)|.*[a-z](Id|ID)"
)
_ENOUGH_ROWS = 20  # to tell an id from a measurement
_NEARLY_ALL = 0.95  # of the texts of an id are different
_DENSE = 100  # whole numbers that are all different, in a range of so many for each row
_COMMON = 0.01  # of the rows: levels below are pooled


@dataclass(frozen=True)
class Role:
    """What a column is, and why.

    Parameters
    ----------
    name : object
        Of the column.
    kind : {"constant", "id", "unit", "text", "date", "feature"}
        "unit": says whose row it is, where people have several. "text": texts of which none is
        common. "date" and "feature" are of use.
    why : str
        In words, for people.

    Examples
    --------
    >>> Role("row", "id", "looks like an id").useful
    False
    """

    name: Any
    kind: str
    why: str = ""

    @property
    def useful(self) -> bool:
        """Whether a model can learn from it."""
        return self.kind in ("date", "feature")


def column_roles(public: pd.DataFrame) -> tuple[Role, ...]:
    """What each column of a public table is.

    Parameters
    ----------
    public : DataFrame
        Features only.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = range(30)
    >>> public = pd.DataFrame({"id": rows, "land": "A", "born": pd.Timestamp(2000, 1, 1)})
    >>> public["age"] = [20 + i % 7 for i in rows]
    >>> [role.kind for role in column_roles(public)]
    ['id', 'constant', 'constant', 'feature']
    """
    short = [place for place, kind in enumerate(public.dtypes) if kind == "float16"]
    if short:  # which pandas cannot sort
        public = public.astype({public.columns[place]: "float32" for place in short})
    coded = cache(lambda: coded_rows(public))
    own = (_role(name, public[name]) for name in public.columns)
    return tuple(_whose(public, role, coded) for role in own)


def number_ids(public: pd.DataFrame) -> tuple[Role, ...]:
    """Roles of columns of whole numbers that look like ids: as numbers they say nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> [role.name for role in number_ids(pd.DataFrame({"row": range(30), "land": "A"}))]
    ['row']
    """
    whole = [name for name in public.columns if getattr(public[name].dtype, "kind", "") in "iu"]
    roles = column_roles(public[whole])
    return tuple(role for role in roles if role.kind in ("id", "unit"))


def _whose(public: pd.DataFrame, role: Role, coded: Callable[[], pd.DataFrame]) -> Role:
    """The role of a column, or "unit" if it says whose rows they are."""
    if role.kind not in ("feature", "text") or _unhashable(public[role.name]):
        return role
    why = people_column(public, role.name, coded)
    return Role(role.name, "unit", why) if why else role


def _role(name: Any, column: pd.Series) -> Role:
    texts = column.astype(object).map(str) if _unhashable(column) else column
    present = texts.dropna()
    distinct = int(present.nunique())
    number = column.dtype.kind in "iuf"
    if distinct == 0:
        return Role(name, "constant", "empty in public rows")
    if distinct == 1 and (number or len(present) == len(column)):
        return Role(name, "constant", "constant in public rows")
    if is_date(column):
        how = "by its type" if column.dtype.kind == "M" else f"written as {date_format(column)}"
        return Role(name, "date", how)
    if number:
        return (
            Role(name, "id", "looks like an id")
            if _numbers_id(name, present)
            else Role(name, "feature")
        )
    if column.dtype.kind == "b" or len(present) < _ENOUGH_ROWS:
        return Role(name, "feature")
    if distinct >= _NEARLY_ALL * len(present):
        return Role(name, "id", "looks like an id: nearly every text is different")
    if present.value_counts().iloc[0] < _COMMON * len(column) and len(present) == len(column):
        return Role(name, "text", f"{distinct:,} different texts, none of them common")
    return Role(name, "feature")


def _numbers_id(name: Any, present: pd.Series) -> bool:
    """Whole numbers, all different, that are called an id, are in order, or lie close together."""
    if len(present) < _ENOUGH_ROWS or not present.is_unique or not (present % 1 == 0).all():
        return False
    named = named_like_an_id(name)
    rising = present.is_monotonic_increasing or present.is_monotonic_decreasing
    dense = float(present.max()) - float(present.min()) < _DENSE * len(present)
    return named or rising or (dense and len(present) >= 10 * _ENOUGH_ROWS)


def named_like_an_id(name: Any) -> bool:
    """Whether people would call a column so whose cells tell rows apart.

    Examples
    --------
    >>> [named_like_an_id(each) for each in ("person_id", "ID", "idle", "rownames", "paid")]
    [True, True, False, True, False]
    """
    return _ID_NAME.fullmatch(str(name)) is not None


def _unhashable(column: pd.Series) -> bool:
    return column.dtype.kind == "O" and any(type(cell).__hash__ is None for cell in column)
