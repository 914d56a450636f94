"""Row-wise functions of private rows, made total: a failure stays with its row, to the last bit.

A sum of products rounds by the size of a call. So the rows that do not fail must not be computed
in a smaller call because another row failed: once the failing rows are known, a row that does not
fail stands in their places, and the function is called again on the *same* number of rows. What
it then makes of the places of those that failed is the caller's to blank.

Let the function treat every row on its own, so that a call fails if a row in it does, or if it
has a size that the function cannot take (which is public). Then a row that does not fail is
computed in the largest piece around it that has a size the function takes, whoever else fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt._types import BoolArray

from .errors import LET_THROUGH

_Places = NDArray[np.intp]
Results = tuple[Any, ...]  # arrays with one row for each row of a call; or None
Call = Callable[[_Places | None], Results]

_PIECES = (2048, 256, 32, 1)  # rows in which a function is tried that failed on more


def taken(table: Any, places: _Places | None) -> Any:
    """Rows of a table at these places, in the same layout of memory; None for all as they are.

    Examples
    --------
    >>> taken(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 1]))
    array([[3., 4.],
           [3., 4.]])
    """
    if places is None or table is None:
        return table
    if hasattr(table, "iloc"):
        rows = table.iloc[places]
        rows.index = table.index[: len(places)] if len(places) <= len(table) else range(len(places))
        return rows
    if isinstance(table, np.ndarray):
        out = np.empty_like(table, shape=(len(places), *table.shape[1:]))
        out[...] = table[places]
        return out
    return [table[i] for i in places] if isinstance(table, (list, tuple)) else table[places]


def by_rows(call: Call, n_rows: int) -> tuple[Results | None, BoolArray]:
    """What a function makes of rows, and which rows it fails on; None if it fails on all.

    Parameters
    ----------
    call : callable
        From places among the rows (None: all of them, in order) to a tuple of arrays, each with
        one row for each place. It must raise if the function fails or gives the wrong shape.
    n_rows : int

    Examples
    --------
    >>> def inverse(places):
    ...     return (np.array([1 / x for x in taken([2, 0, 4], places)]),)
    >>> (values,), failed = by_rows(inverse, 3)
    >>> np.where(failed, np.nan, values), failed
    (array([0.5 ,  nan, 0.25]), array([False,  True, False]))
    """
    whole = _attempt(call, None)
    if whole is not None:
        return whole, np.zeros(n_rows, dtype=bool)
    everybody = np.arange(n_rows)
    results, failed = _in_pieces(call, everybody, set())
    if results is not None:
        results = _again(call, everybody, results, failed)
    return results, failed


def _in_pieces(call: Call, places: _Places, sizes: set[int]) -> tuple[Results | None, BoolArray]:
    """Of places at which a call has failed; and of sizes that the function is known to take."""
    failed = np.ones(len(places), dtype=bool)
    if len(places) <= 1:
        if 1 in sizes or not len(places):
            return None, failed
        twice = _attempt(call, np.repeat(places, 2))  # a function may take no single row
        if twice is None:
            return None, failed
        return tuple(None if each is None else each[:1] for each in twice), ~failed
    results: Results | None = None
    for cut in _cuts(len(places)):
        part = _attempt(call, places[cut])
        if part is None:
            part, failed[cut] = _in_pieces(call, places[cut], sizes)
        else:
            failed[cut] = False
            sizes.add(len(places[cut]))
        if part is not None:
            if results is None:
                results = tuple(_room(each, len(places)) for each in part)
            _write(results, cut, part)
    return results, failed


def _again(call: Call, places: _Places, results: Results, failed: BoolArray) -> Results:
    """Replace what was computed in a smaller piece because a row in the larger one fails."""
    if failed.all() or not failed.any():
        return results
    found = _attempt(call, _filled(places, failed))
    if found is not None:
        return tuple(found)
    for cut in _cuts(len(places)):
        part = tuple(None if each is None else each[cut] for each in results)
        _write(results, cut, _again(call, places[cut], part, failed[cut]))
    return results


def _cuts(rows: int) -> list[slice]:
    size = next(size for size in _PIECES if size < rows)
    return [slice(start, start + size) for start in range(0, rows, size)]


def _write(results: Results, cut: slice, part: Results) -> None:
    for room, each in zip(results, part, strict=True):
        if room is not None:
            room[cut] = each


def _filled(places: _Places, failed: BoolArray) -> _Places:
    """As many places, a row that does not fail at each one that does."""
    return np.where(failed, places[np.argmin(failed)], places)


def _room(part: Any, rows: int) -> Any:
    return None if part is None else np.zeros((rows, *part.shape[1:]), dtype=part.dtype)


def _attempt(call: Callable[[Any], Any], places: Any) -> Any:
    try:
        return call(places)
    except LET_THROUGH:
        raise
    except BaseException:  # it may depend on a value: it must stay with its row
        return None
