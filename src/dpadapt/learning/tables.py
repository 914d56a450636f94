"""Public tables that are no numbers: which columns, and what takes them as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LARGEST = 1e300
"""Number of a public cell or label: sums of larger ones over rows are no numbers any more."""


_TEXTS = "could not convert string to float"
_LISTS = ("setting an array element with a sequence", "Sequence of sequences", "should be a 1d")
_ONE_LABEL = (
    "y must hold one label for each row, a number or a class, and its entries are lists. Give one "
    "of their values, or join the values of a list into one text."
)
_MISSING = (
    "y has missing labels (NaN or None); leave those public rows out of X and y, as in known = "
    "pandas.notna(y); fit(X[known], y[known])."
)
_CURE = (
    "AutoRegressor and AutoClassifier take tables as they are; before others, put "
    "dpadapt.features.table_features into an AdaptationPipeline."
)


def refuse_huge(name: str, values: Any, largest: float = _LARGEST) -> None:
    """Refuse public numbers that overflow: a fit would find out after it is paid for.

    Examples
    --------
    >>> refuse_huge("y", [1.0, 1e308])
    Traceback (most recent call last):
    ...
    ValueError: y holds the number 1e+308; public numbers beyond 1e+300 are refused, because what \
is computed of them overflows. Is it a code for a missing value? Correct it, or leave that row out.
    """
    import numpy as np

    sizes = np.abs(np.asarray(values, dtype=np.float64))
    if sizes.size and (found := float(np.max(sizes))) > largest:
        raise ValueError(
            f"{name} holds the number {found:g}; public numbers beyond {largest:g} are refused, "
            "because what is computed of them overflows. Is it a code for a missing value? Correct "
            "it, or leave that row out."
        )


@contextmanager
def words_for_tables(X: Any, y: Any, *, numbers: bool) -> Iterator[None]:
    """Say of public rows that are texts, or have gaps, where that is and what to do.

    Parameters
    ----------
    X, y : table and labels
        Public.
    numbers : bool
        Whether labels must be numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> with words_for_tables(pd.DataFrame({"town": ["A"]}), [1.0], numbers=True):
    ...     float("A")
    Traceback (most recent call last):
    ...
    ValueError: X: the column town holds texts, and numbers are needed here. AutoRegressor and \
AutoClassifier take tables as they are; before others, put dpadapt.features.table_features into \
an AdaptationPipeline.
    """
    _check_labels(y)
    try:
        yield
    except ValueError as error:
        first = str(error).partition("\n")[0]
        if _TEXTS in first:
            raise ValueError(_of_texts(X, y, numbers) or str(error)) from None
        if "contains NaN" in first and "X" in first:
            raise ValueError(f"{first} {_CURE}") from None
        if "contains NaN" in first:
            raise ValueError(_MISSING) from None
        if any(words in first for words in _LISTS):
            raise ValueError(_ONE_LABEL) from None
        raise


def _check_labels(y: Any) -> None:
    """Refuse labels of which some are lists or nothing, where they are cells of any kind."""
    import numpy as np

    try:
        cells = np.asarray(y)
    except ValueError:
        raise ValueError(_ONE_LABEL) from None
    if cells.dtype.kind != "O" or cells.ndim != 1:
        return
    if any(hasattr(cell, "__len__") and not isinstance(cell, (str, bytes)) for cell in cells):
        raise ValueError(_ONE_LABEL)
    if any(_is_missing(cell) for cell in cells):
        raise ValueError(_MISSING)


def _is_missing(cell: Any) -> bool:
    nothing = cell is None or type(cell).__name__ in ("NAType", "NaTType")
    return nothing or (isinstance(cell, float) and cell != cell)


def _of_texts(X: Any, y: Any, numbers: bool) -> str:
    columns = [str(name) for name in getattr(X, "columns", ()) if not _is_numeric(X[name])]
    if columns:
        listed = ", ".join(columns[:5]) + (" and others" if len(columns) > 5 else "")
        many = len(columns) > 1
        return (
            f"X: the column{'s' * many} {listed} hold{'s' * (not many)} texts, and numbers are "
            f"needed here. {_CURE}"
        )
    if numbers and not _is_numeric(y):
        return (
            "y holds texts, and this predicts numbers; for classes there are AutoClassifier and "
            "ReweightingClassifier."
        )
    return ""


def _is_numeric(values: Any) -> bool:
    import numpy as np

    try:
        np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError):
        return False
    return True


def known_columns(model: Any, X: Any) -> Any:
    """A table without the columns that a fitted model has never seen, such as ids.

    Where a column that it knows is missing, the table comes back as it is, to be refused.

    Examples
    --------
    >>> import pandas as pd
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(feature_names_in_=["age"])
    >>> list(known_columns(model, pd.DataFrame({"id": [1], "age": [2]})).columns)
    ['age']
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None or not hasattr(X, "iloc") or len(X.columns) <= len(names):
        return X
    known = set(names)
    own = [name for name in X.columns if name in known]
    return X[own] if len(own) == len(names) else X
