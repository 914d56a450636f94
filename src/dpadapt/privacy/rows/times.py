"""Dates, durations and periods of a column, in the public type of it.

*As a duration* (:func:`duration`) a cell is a number of microseconds, for at most 10**8 days, if it
is a duration of Python, numpy or pandas; anything else is missing. What a cell means as a date is
in :mod:`.cells`. A type keeps what it can hold: what is finer than its unit is cut off, what is
beyond its range is missing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np

from .cells import date

_NO_DURATION = np.timedelta64("NaT", "us")
_IN_NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_IN_NANOSECONDS |= {"h": 3600 * 10**9, "D": 86_400 * 10**9, "W": 7 * 86_400 * 10**9}
_LONGEST = 10**8 * 86_400 * 10**6
_DAY = np.timedelta64(1, "D")
_DATES = (np.datetime64("1677-09-22", "us"), np.datetime64("2262-04-11", "us"))  # in nanoseconds
_DURATIONS = (-106_751 * _DAY, 106_751 * _DAY)
_IN_ALL_ZONES = (np.datetime64("0001-01-02", "us"), np.datetime64("9999-12-30", "us"))


def duration(cell: Any) -> np.timedelta64:
    """Return the duration that a cell is, in microseconds; NaT for one that is none.

    Examples
    --------
    >>> duration(dt.timedelta(seconds=1)), duration(np.timedelta64(1, "s")), duration(1)
    (np.timedelta64(1000000,'us'), np.timedelta64(1000000,'us'), np.timedelta64('NaT','us'))
    """
    try:
        if hasattr(cell, "to_timedelta64"):
            cell = cell.to_timedelta64()
        if isinstance(cell, np.timedelta64):
            unit, step = np.datetime_data(cell.dtype)
            if np.isnat(cell) or unit not in _IN_NANOSECONDS:
                return _NO_DURATION
            micro = int(cell.astype(np.int64)) * step * _IN_NANOSECONDS[unit] // 1000
        elif isinstance(cell, dt.timedelta):
            micro = cell // dt.timedelta(microseconds=1)
        else:
            return _NO_DURATION
        return np.timedelta64(micro, "us") if abs(micro) <= _LONGEST else _NO_DURATION
    except Exception:
        return _NO_DURATION


def _dates(cells: list[Any], dtype: Any) -> Any:
    values = np.fromiter(map(date, cells), "M8[us]", len(cells))
    if dtype is None:
        return values
    inner = getattr(dtype, "pyarrow_dtype", dtype)
    zone, unit = getattr(inner, "tz", None), _unit(inner)
    if unit == "ns":
        values = _within(values, *_DATES)
    if zone is not None:  # no clock on earth may show a year that Python does not know
        values = _within(values, *_IN_ALL_ZONES)
    if isinstance(dtype, np.dtype):
        return values.astype(dtype)
    values = values.astype(f"M8[{unit}]")  # Arrow raises for what is cut off
    return _extension(values.astype("M8[s]") if unit == "D" else values, dtype, zone)


def _durations(cells: list[Any], dtype: Any) -> Any:
    values = np.fromiter(map(duration, cells), "m8[us]", len(cells))
    unit = _unit(getattr(dtype, "pyarrow_dtype", dtype))
    if unit == "ns":
        values = _within(values, *_DURATIONS)
    if isinstance(dtype, np.dtype):
        return values.astype(dtype)
    return _extension(values.astype(f"m8[{unit}]"), dtype, None)


def _periods(cells: list[Any], dtype: Any) -> Any:
    """Periods of the public length; others are missing."""
    import pandas as pd

    same = (isinstance(cell, pd.Period) and cell.freq == dtype.freq for cell in cells)
    kept = [cell if own else pd.NaT for cell, own in zip(cells, same, strict=True)]
    return pd.array(np.array(kept, dtype=object), dtype=dtype)


TIMES: dict[str, Callable[[list[Any], Any], Any]] = {
    "date": _dates,
    "duration": _durations,
    "period": _periods,
}


def _extension(values: Any, dtype: Any, zone: Any) -> Any:
    """Numpy's times in a type of pandas."""
    import pandas as pd

    series = pd.Series(values, dtype=values.dtype)
    return (series if zone is None else series.dt.tz_localize("UTC")).astype(dtype)


def _unit(dtype: Any) -> str:
    """Smallest step of a type of dates or durations, of numpy, pandas or Arrow."""
    if isinstance(dtype, np.dtype):
        return np.datetime_data(dtype)[0]
    return str(getattr(dtype, "unit", "D"))


def _within(values: Any, first: Any, last: Any) -> Any:
    return np.where((values > first) & (values < last), values, values.dtype.type("NaT", "us"))
