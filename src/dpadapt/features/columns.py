"""What the columns of a public table are for: ids, constants and texts of no use are found.

Where people have several rows, a column may say whose they are. Such a column is a code (whole
numbers or texts) with many different values that repeat a few times each. That alone would also be
true of a rounded wage, so that one of two more signs is needed: the name says so, or another column
is the same in all rows of a value although it differs from value to value (the year of birth of a
person). What is a coarser form of the code itself (the bracket of a wage) is no such column: along
the sorted code it hardly ever changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .cells import date_format, is_date

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

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


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ANYWHERE = {"id", "ids", "uuid", "guid", "key", "code", "pid", "uid", "idcode", "idnr", "idno"}
_AT_THE_END = {"nr", "no", "num", "number"}  # after another word: NO may be a gas
_TIMES = {"time", "date", "year", "month", "week", "day", "hour", "minute", "age"}
_WHOSE = re.compile(
    r"(person|pers|people|patient|subject|user|customer|cust|client|member|case|household|hh|"
    r"employee|emp|student|pupil|worker|account|acct|respondent|resp|family)(id|nr|no|code|key)"
)
_PERSONAL = re.compile(
    r"(first|fore|given|christian|middle|last|sur|family|maiden|nick|birth|full|user|vor|nach)name|"
    r"name|e?mail|emailaddress|phone|telephone|phonenumber|ssn|passport"
)
_NAMED = {
    *("first", "given", "christian", "middle", "last", "family", "maiden", "birth", "full", "user"),
    *("patient", "person", "customer", "client", "member", "employee", "student", "pupil"),
    *("worker", "respondent", "subject", "tenant", "doctor", "father", "mother", "spouse"),
}  # before "name": those of a station or a product are no names of people
_ANSWERS = 3  # different values, as of yes and no: too few to be names
_LEAST = 20  # different values, and values that repeat
_MOST_ROWS = 50.0  # of a value, on average
_COMMON_CODE = 0.05  # of all rows, that one value may have
_COMMON_LEVEL = 0.01  # of all rows: texts below are pooled anyway
_NEARLY_ALL_REPEATED = 0.95  # of the repeated values have one value of another column
_BY_CHANCE = 0.5  # two rows agree in that column, at most
_CHANGES = 0.1  # along the sorted code, as a part of what would be expected in any order


def named_like_a_code(name: Any) -> bool:
    """Whether the name of a column says that it is a code or an id.

    Examples
    --------
    >>> [named_like_a_code(each) for each in ("idcode", "cust_no", "unitKey", "no_of_rooms")]
    [True, True, True, False]
    """
    words = [each.lower() for each in _WORDS.findall(str(name))]
    anywhere = any(each in _ANYWHERE or _WHOSE.fullmatch(each) for each in words)
    return anywhere or words == ["nr"] or (len(words) > 1 and words[-1] in _AT_THE_END)


def named_like_a_person(name: Any) -> bool:
    """Whether the name of a column says that its cells name people: names, mail, telephone.

    Examples
    --------
    >>> names = ("fake_first_name", "Surname", "patientName", "name", "e-mail", "phone_no")
    >>> all(map(named_like_a_person, names))
    True
    >>> any(map(named_like_a_person, ("station_name", "filename", "mailing_costs", "renamed")))
    False
    """
    words = [each.lower() for each in _WORDS.findall(str(name))]
    if words[:2] == ["e", "mail"]:
        words = ["email", *words[2:]]
    return any(
        _PERSONAL.fullmatch(word) is not None
        and (word != "name" or len(words) == 1 or bool(_NAMED & {*words[:place]}))
        for place, word in enumerate(words)
    )


def may_name_people(name: Any, column: pd.Series) -> bool:
    """Whether a column may name people: by its name, unless it has very few different values.

    Examples
    --------
    >>> import pandas as pd
    >>> may_name_people("phone_service", pd.Series(["yes", "no", "yes"]))
    False
    >>> may_name_people("first_name", pd.Series(["Ann", "Bo", "Cy", "Di"]))
    True
    """
    return named_like_a_person(name) and column.dropna().astype(str).nunique() > _ANSWERS


def coded_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Rows with their cells as places among the sorted values, each row once.

    Examples
    --------
    >>> import pandas as pd
    >>> coded_rows(pd.DataFrame({"a": [7, 5, 7], "b": ["x", None, "x"]})).to_numpy().tolist()
    [[1, 0], [0, -1]]
    """
    import pandas as pd

    def codes(column: pd.Series) -> Any:
        try:
            return pd.factorize(column, sort=True)[0]
        except TypeError:  # cells that cannot be sorted, or are lists
            return pd.factorize(column.astype(str), sort=True)[0]

    return pd.DataFrame({name: codes(table[name]) for name in table.columns}).drop_duplicates()


def people_column(table: pd.DataFrame, name: Any, coded: Callable[[], pd.DataFrame]) -> str:
    """Say in words why a column seems to tell whose rows they are; nothing if it does not.

    Parameters
    ----------
    table : DataFrame
        Public rows, or those of whoever owns them.
    name : object
        Of the column.
    coded : callable
        Gives :func:`coded_rows` of the table, if they are needed.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> who = np.repeat(rng.permutation(60), 3)
    >>> table = pd.DataFrame({"who": who, "born": rng.integers(1940, 1970, 60)[who]})
    >>> table["pay"] = rng.normal(size=180)
    >>> people_column(table, "who", lambda: coded_rows(table))
    'looks like an id of people with several rows: 60 different values in 180 rows'
    >>> people_column(table, "born", lambda: coded_rows(table))
    ''
    """
    column = table[name]
    present = column.dropna()
    if column.dtype.kind == "f" and not (present % 1 == 0).all():
        return ""
    if column.dtype.kind not in "iufO" and str(column.dtype) not in ("string", "str", "category"):
        return ""
    counts = present.value_counts()
    distinct, rows = len(counts), len(present)
    repeated = int((counts > 1).sum())
    if min(distinct, repeated) < _LEAST or rows > _MOST_ROWS * distinct:
        return ""
    if counts.iloc[0] > max(_COMMON_CODE * rows, 2):
        return ""
    if not (named_like_a_code(name) or (_may_be(name, column) and _determines(coded(), name))):
        return ""
    return (
        f"looks like an id of people with several rows: {distinct:,} different values in "
        f"{rows:,} rows"
    )


def _may_be(name: Any, column: pd.Series) -> bool:
    """Whether a column without such a name may be a code: no time, and no text of common levels."""
    if column.dtype.kind in "iuf":
        return not _TIMES & {each.lower() for each in _WORDS.findall(str(name))}
    return bool(column.value_counts().iloc[0] < _COMMON_LEVEL * len(column))


def _determines(coded: pd.DataFrame, name: Any) -> bool:
    """Whether another column is the same in all rows of a value, and not a form of the value."""
    known = coded[coded[name] >= 0]
    codes = known[name].to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    several = np.diff(starts, append=len(order)) > 1
    if several.sum() < _LEAST:
        return False
    return any(
        _steady(known[other].to_numpy()[order] + 1, starts, several)  # missing cells are 0
        for other in known.columns
        if other != name
    )


def _steady(cells: NDArray[np.int64], starts: NDArray[np.int64], several: Any) -> bool:
    """Whether a column is the same within groups of rows, and differs from group to group."""
    agree = float(np.sum((np.bincount(cells) / len(cells)) ** 2))
    if agree > _BY_CHANCE:
        return False
    same = np.minimum.reduceat(cells, starts) == np.maximum.reduceat(cells, starts)
    if same[several].mean() < _NEARLY_ALL_REPEATED:
        return False
    changes = np.mean(np.diff(cells[starts]) != 0)
    back = len(np.unique(cells)) < _BY_CHANCE * len(starts)  # or each is a form of the other
    return bool(back and changes > _CHANGES * (1 - agree))
