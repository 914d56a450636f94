"""Columns that say whose rows they are, where people have several: found on public rows.

Such a column is a code (whole numbers or texts) with many different values that repeat a few times
each. That alone would also be true of a rounded wage, so that one of two more signs is needed: the
name says so, or another column is the same in all rows of a value although it differs from value
to value (the year of birth of a person). What is a coarser form of the code itself (the bracket of
a wage) is no such column: along the sorted code it hardly ever changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

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
_COMMON = 0.05  # of all rows, that one value may have
_COMMON_LEVEL = 0.01  # of all rows: texts below are pooled anyway
_NEARLY_ALL = 0.95  # of the repeated values have one value of another column
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
    if counts.iloc[0] > max(_COMMON * rows, 2):
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
    if same[several].mean() < _NEARLY_ALL:
        return False
    changes = np.mean(np.diff(cells[starts]) != 0)
    back = len(np.unique(cells)) < _BY_CHANCE * len(starts)  # or each is a form of the other
    return bool(back and changes > _CHANGES * (1 - agree))
