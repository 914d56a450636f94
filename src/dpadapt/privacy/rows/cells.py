"""What one cell of a private table means. The same, whatever the other cells are.

A library that reads a table chooses one type for all cells of a column, by looking at all of them:
one odd cell turns numbers into texts, one gap turns whole numbers into floats, and so one person
would change what everybody's cells mean. Here every cell is read by itself, under the public kind
of its column (:mod:`.schema`), and is the same value whatever the container made of it.

*As a number* (:func:`cell_number`): the nearest float64. 1, 1.0, True, "1", " 1.0 ", b"1", "true",
``Decimal(1)``, ``Fraction(1)``, ``np.int8(1)`` and 1+0j are 1.0; zero has no sign; whole numbers
above 2**53 are rounded; what is beyond the range of a float is infinite, which cleaning takes for
missing. None, NaN, a text that is no number, a date, a duration, a list and any other object are
missing: NaN.

*As a text* (:func:`text`): a cell that is a number by the rule above has the shortest text of that
number, so that 1, 1.0, "1.0", "01" and True are all "1". A date or a text like one is its ISO text
in UTC, without the time at midnight. Other texts are themselves, bytes are UTF-8. NaN, "nan", "NaT"
and any other object are missing: None. :func:`key` is the same without space around it; it is what
labels and categories are compared by.

*As a date* (:func:`date`): a point in time in microseconds, UTC, from a date or an ISO text of the
years 1 to 9999; anything else is missing.

*As a duration*, see :mod:`.times`.

Two promises, which every function here keeps. *Total*: no value raises, warns, logs or prints.
*Row-wise*: what a cell becomes depends on the cell and on the public kind of its column alone.
What was lost before the cells came here (digits that a float32 does not hold, letters that a column
of five letters cut off) cannot be found again.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt._types import FloatArray

from .errors import LET_THROUGH

Cells = FloatArray | list[Any]  # of one column: numbers, or whatever they are
_NUMBERS = (float, int, np.floating, np.integer, np.bool_, Decimal, Fraction)
_COMPLEX = (complex, np.complexfloating)
_TRUTH = {"true": 1.0, "false": 0.0}
_ISO = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d\S*)?", re.ASCII)
_NO_DATE = np.datetime64("NaT", "us")
_UNITS = ("ns", "us", "ms", "s", "m", "h", "D", "W", "M", "Y")


def cell_number(cell: Any) -> float:
    """Return the number that a cell is; NaN for one that is none.

    Examples
    --------
    >>> [cell_number(cell) for cell in (1, True, " 1.0", b"1", "TRUE", 1 + 0j, -0.0)]
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    >>> [cell_number(cell) for cell in (None, "x", 1j, [1], 10**400)]
    [nan, nan, nan, nan, inf]
    """
    if type(cell) is float:
        return cell + 0.0  # zero has no sign
    try:
        if isinstance(cell, (str, bytes)):
            return _parsed(_plain(cell))
        if isinstance(cell, _NUMBERS) and not isinstance(cell, np.timedelta64):
            return _nearest(cell) + 0.0
        if isinstance(cell, _COMPLEX) and cell.imag == 0:
            return float(cell.real) + 0.0
    except LET_THROUGH:
        raise
    except BaseException:  # a class of one's own that claims to be a number
        pass
    return math.nan


def text(cell: Any) -> str | None:
    """Return the text that a cell is; None for one that is missing.

    Examples
    --------
    >>> [text(cell) for cell in (1, 1.0, "1.0", True, 0.5, " a ", b"a", dt.date(2020, 1, 1))]
    ['1', '1', '1', '1', '0.5', ' a ', 'a', '2020-01-01']
    >>> [text(cell) for cell in (None, "nan", math.nan, ["a"])]
    [None, None, None, None]
    """
    try:
        if isinstance(cell, (str, bytes)):
            plain = _plain(cell)
            value = _parsed(plain)
            stripped = plain.strip()
            if value != value:
                if stripped == "NaT" or stripped.lower().lstrip("+-") == "nan":
                    return None
                return _date_text(stripped) or plain
        else:
            value = cell_number(cell)
            if value != value:
                return _date_text(cell)
        return str(int(value)) if abs(value) < 1e16 and value == int(value) else repr(value)
    except LET_THROUGH:
        raise
    except BaseException:
        return None


def key(cell: Any) -> str | None:
    """Return what a label or a category is compared by; None for one that is missing."""
    found = text(cell)
    return found if found is None else found.strip()


def date(cell: Any) -> np.datetime64:
    """Return the point in time that a cell is, in microseconds; NaT for one that is none.

    Examples
    --------
    >>> date("2020-01-01"), date(dt.datetime(2020, 1, 1)) == date(np.datetime64("2020"))
    (np.datetime64('2020-01-01T00:00:00.000000'), np.True_)
    >>> date("01.02.2020")
    np.datetime64('NaT','us')
    """
    try:
        if isinstance(cell, (str, bytes)):
            plain = _plain(cell).strip()
            if not _ISO.fullmatch(plain):
                return _NO_DATE
            cell = dt.datetime.fromisoformat(plain)
        if isinstance(cell, dt.datetime):
            if cell.tzinfo is not None:
                cell = cell.astimezone(dt.UTC)
            cell = cell.replace(tzinfo=None)
            if hasattr(cell, "to_datetime64"):
                cell = cell.to_datetime64()
        elif not isinstance(cell, (dt.date, np.datetime64)):
            return _NO_DATE
        unit = None if isinstance(cell, np.datetime64) else "M8[us]"
        found: np.datetime64 = _moments(np.asarray(cell, dtype=unit))[()]
        return found
    except LET_THROUGH:
        raise
    except BaseException:
        return _NO_DATE


def cells_of(column: Any) -> Cells:
    """Cells of a list, an array or a pandas column: floats if they are all numbers, else objects.

    Examples
    --------
    >>> cells_of(np.array([1, 2])), cells_of(["1", None])
    (array([1., 2.]), ['1', None])
    """
    if isinstance(column, (list, tuple)):
        return list(column)
    if isinstance(column, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(column).ravel()
        return [None if m else c for c, m in zip(np.asarray(column).ravel(), mask, strict=True)]
    if isinstance(column, np.ndarray):
        return _real(column) if column.dtype.kind in "biufc" else list(column)
    if hasattr(column, "iloc"):
        return _series(column)
    return cells_of(np.asarray(column))


def numbers_of(cells: Cells) -> FloatArray:
    """Cells of a column as numbers."""
    return (
        cells if isinstance(cells, np.ndarray) else np.fromiter(map(cell_number, cells), np.float64)
    )


def codes(cells: Cells, classes: Sequence[Any]) -> FloatArray:
    """Place of each label among the classes; NaN for one that is not among them.

    Examples
    --------
    >>> codes(["no", "yes", None, b"no", " no "], ["no", "yes"])
    array([ 0.,  1., nan,  0.,  0.])
    >>> codes(np.array([3.0, 5.0, 4.0]), ["3", 5])
    array([ 0.,  1., nan])
    """
    known = places_of(classes)
    if isinstance(cells, np.ndarray):  # a number's key is as good as the number
        values = np.fromiter(map(cell_number, classes), np.float64)
        order = np.argsort(values)  # NaN, the texts among the classes, comes last
        found = order[np.searchsorted(values[order], cells).clip(max=len(values) - 1)]
        return np.where(values[found] == cells, found, np.nan)
    return np.fromiter((known.get(cell, math.nan) for cell in map(key, cells)), np.float64)


def places_of(classes: Iterable[Any]) -> dict[str | None, int]:
    """Place of each class by its key; raises if two classes have one key, or one has none.

    Examples
    --------
    >>> places_of([0, 1, 1.0])
    Traceback (most recent call last):
    ...
    ValueError: classes: 1 and 1.0 are the same label; a cell means the same as a number and as \
its text.
    """
    places: dict[str | None, int] = {}
    listed = list(classes)
    for place, each in enumerate(listed):
        found = key(each)
        if found is None:
            raise ValueError(f"classes: {each!r} is no label: it counts as missing.")
        if found in places:
            raise ValueError(
                f"classes: {listed[places[found]]!s} and {each!s} are the same label; a cell means "
                "the same as a number and as its text."
            )
        places[found] = place
    return places


def _plain(cell: str | bytes) -> str:
    """Text without what arrays and files of texts cannot hold: zeros at its end, half letters."""
    if isinstance(cell, bytes):
        return bytes(cell).decode("utf-8", "replace").rstrip("\0")
    plain = str(cell)
    if not plain.isascii():
        plain = plain.encode("utf-8", "replace").decode()
    return plain.rstrip("\0")


def _parsed(plain: str) -> float:
    try:
        return float(plain) + 0.0
    except ValueError:
        pass
    stripped = plain.strip().lower()
    if stripped.endswith(("j", "j)")):  # how a column of complex numbers writes a real one
        try:
            value = complex(stripped)
        except ValueError:
            return math.nan
        return value.real + 0.0 if value.imag == 0 else math.nan
    return _TRUTH.get(stripped, math.nan)


def _nearest(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def _date_text(cell: Any) -> str | None:
    moment = date(cell)
    if np.isnat(moment):
        return None
    found: Any = moment.item()
    return str(found.isoformat() if found.time() != dt.time() else found.date().isoformat())


def _moments(array: Any) -> Any:
    """Datetimes of numpy in microseconds; NaT outside the years 1 to 9999."""
    unit, step = np.datetime_data(array.dtype)
    if unit not in _UNITS or step != 1:
        return np.full(array.shape, _NO_DATE)
    years = array.astype("M8[Y]")
    inside = (years >= np.datetime64("0001")) & (years <= np.datetime64("9999"))
    kept = np.array(array)
    kept[~inside] = "NaT"
    return kept.astype("M8[us]")


def _real(values: NDArray[Any]) -> FloatArray:
    """Arrays of numbers: the same as cell by cell, in one pass."""
    with np.errstate(all="ignore"):
        if values.dtype.kind == "c":
            values = np.where(values.imag == 0, values.real, np.nan)
        return np.asarray(np.add(values, 0.0, dtype=np.float64, casting="unsafe"))


def _series(column: Any) -> Cells:
    kind = column.dtype.kind
    if isinstance(column.dtype, np.dtype) and kind in "biufc":
        return _real(column.to_numpy())
    if kind in "biuf":
        return _real(np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan)))
    return each(lambda: column.to_numpy(dtype=object), lambda i: column.iloc[i], len(column))


def each(whole: Callable[[], Any], one: Callable[[int], Any], size: int) -> list[Any]:
    """All cells at once or, if that fails, one by one, None for a cell that fails."""
    try:
        return list(whole())
    except LET_THROUGH:
        raise
    except BaseException:
        return [_or_none(one, i) for i in range(size)]


def _or_none(one: Callable[[int], Any], i: int) -> Any:
    try:
        return one(i)
    except LET_THROUGH:
        raise
    except BaseException:
        return None
