"""From a table of any cells to numbers: what ``dpadapt fit`` puts before the estimator.

Every cell is converted on its own, and nothing is ever refused. So a strange cell in a private
table changes the features of its own row and of no other, as the privacy proof needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils.validation import validate_data

from .dates import DateCells, is_date

if TYPE_CHECKING:
    import pandas as pd

_MISSING, _NOTHING = "(missing)", ("", "None", "nan", "NaN", "NaT", "<NA>")
_TRUTH = {"true": 1.0, "false": 0.0}
_PEEK = 100  # cells that tell most columns from those of true and false
_RARE, _MOST_LEVELS = 0.01, 30  # levels in fewer public rows, or beyond the most common, are pooled


class _Cells(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Convert every cell by itself."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Take note of the columns."""
        validate_data(self, X, dtype=None, ensure_all_finite=False)
        return self


class NumberCells(_Cells):
    """Cells as numbers, true and false as 1 and 0; what is no finite number is missing (NaN).

    Examples
    --------
    >>> NumberCells().fit_transform([[" 2.5", "True"], ["?", None]])
    array([[2.5, 1. ],
           [nan, nan]])
    """

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Convert every cell to a number."""
        cells = np.asarray(X)
        if cells.dtype.kind in "biuf":
            numbers = cells.astype(np.float64)
        else:
            numbers = np.array([_number(cell) for cell in cells.ravel()]).reshape(cells.shape)
        return np.where(np.isfinite(numbers), numbers, np.nan)


class TextCells(_Cells):
    """Cells as text; a whole number reads the same whether it was stored as 1, 1.0 or "1".

    Examples
    --------
    >>> TextCells().fit_transform([[1.0, "true"], [None, "B "]]).tolist()
    [['1', 'True'], ['(missing)', 'B']]
    """

    def transform(self, X: Any) -> NDArray[np.object_]:
        """Convert every cell to text."""
        cells = np.asarray(X, dtype=object)
        texts = np.empty(cells.size, dtype=object)
        texts[:] = [_text(cell) for cell in cells.ravel()]
        return texts.reshape(cells.shape)


def _number(cell: Any) -> float:
    if isinstance(cell, str):
        cell = _TRUTH.get(cell.strip().lower(), cell)
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = str(cell).strip()
    if text in _NOTHING:
        return _MISSING
    return text.capitalize() if text.lower() in ("true", "false") else text


def table_features(
    public: pd.DataFrame, degree: int, dates: Sequence[Any] | None = None
) -> ColumnTransformer:
    """Transformer for the columns of a public table, by their types.

    Parameters
    ----------
    public : DataFrame
        Features only.
    degree : {1, 2}
        2 adds squares and products of the numeric columns.
    dates : sequence, optional
        Columns that are dates; by default those that look like dates.

    Examples
    --------
    >>> import pandas as pd
    >>> public = pd.DataFrame({"age": [30, 40, None], "town": ["A", "B", "A"]})
    >>> table_features(public, degree=2).fit_transform(public).shape
    (3, 4)
    """
    from pandas.api.types import is_numeric_dtype

    if dates is None:
        dates = [name for name in public.columns if is_date(public[name])]
    left = [name for name in public.columns if name not in dates]
    flags = [name for name in left if _is_flag(public[name])]
    numeric = [name for name in left if name not in flags and is_numeric_dtype(public[name])]
    other = [name for name in left if name not in flags and name not in numeric]
    numbers = [NumberCells(), _median()]
    if degree > 1:
        numbers += [StandardScaler(), PolynomialFeatures(degree, include_bias=False)]
    levels = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=_RARE,
        max_categories=_MOST_LEVELS,
        sparse_output=False,
    )
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(*numbers), numeric),
            ("flags", make_pipeline(NumberCells(), SimpleImputer(strategy="median")), flags),
            ("levels", make_pipeline(TextCells(), levels), other),
            ("dates", make_pipeline(DateCells(), _median()), list(dates)),
        ],
        verbose_feature_names_out=False,
    )


def _median() -> SimpleImputer:
    return SimpleImputer(strategy="median", keep_empty_features=True)


def _is_flag(column: pd.Series) -> bool:
    """Whether a column says true or false and nothing else."""
    texts = {_text(cell) for cell in column.head(_PEEK)}
    if not texts & {"True", "False"}:
        return False
    return {_text(cell) for cell in column} <= {"True", "False", _MISSING}
