"""From a table of any cells to numbers: what ``dpadapt fit`` puts before the estimator.

Every cell is converted on its own, and nothing is ever refused. So a strange cell in a private
table changes the features of its own row and of no other, as the privacy proof needs.
Dates are found on public rows, and read cell by cell in the public way of writing them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

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


_ISO = "ISO"  # as in 2020-01-31, with or without a time
_DAYS: tuple[str, ...] = (
    "%Y/%m/%d",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d %b %Y",
)
_DAYS += ("%d %B %Y", "%d-%b-%Y", "%b %d, %Y", "%B %d, %Y", "%m/%d/%y", "%d.%m.%y", "%Y%m%d")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
_MONTHS = ("%b-%Y", "%b %Y", "%B %Y", "%m/%Y", "%Y-%m", "%b-%y")
_FORMATS = (_ISO, *(day + time for day in _DAYS for time in _TIMES), *_MONTHS)
_MOST_TEXTS, _ENOUGH = 300, 0.99  # different texts, and the share of them that must be dates
_FIRST = 20  # texts that tell which formats are worth a try
_ZERO = dt.datetime(1970, 1, 1)
_PARTS: dict[str, Callable[[dt.datetime], float]] = {
    "days": lambda when: (when - _ZERO) / dt.timedelta(days=1),
    "month": lambda when: float(when.month),
    "weekday": lambda when: float(when.weekday()),
    "hour": lambda when: when.hour + when.minute / 60,
}


class DateCells(TransformerMixin, BaseEstimator):
    """Dates as days since 1970, month, weekday (Monday is 0) and hour; what is none is missing.

    How dates are written is found on the rows that it is fitted to (ISO is always read), and so is
    which of the four say anything: one that is the same in all of them is left out, and so is the
    weekday of months.

    Examples
    --------
    >>> dates = DateCells().fit([["31.01.2020"], ["14.02.2020"], ["16.02.2020"]])
    >>> dates.get_feature_names_out(["born"]).tolist()
    ['born_days', 'born_month', 'born_weekday']
    >>> dates.transform([["01.01.1970"], ["1970-01-02"], ["soon"]])
    array([[ 0.,  1.,  3.],
           [ 1.,  1.,  4.],
           [nan, nan, nan]])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find how the dates of each column are written, and what they tell."""
        cells = self._cells(X, reset=True)
        self.formats_, self.parts_ = [], []
        for column in cells.T:
            found = date_format(column, every=True) or _ISO
            self.formats_.append(found)
            read = [when for when in _moments(column, found) if when is not None]
            self.parts_.append([name for name in _PARTS if _varies(name, read)])
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Convert every cell to numbers."""
        check_is_fitted(self, "formats_")
        cells = self._cells(X, reset=False)
        columns = [
            [np.nan if when is None else _PARTS[name](when) for when in moments]
            for i, (how, parts) in enumerate(zip(self.formats_, self.parts_, strict=True))
            for moments in [_moments(cells[:, i], how)]
            for name in parts
        ]
        return np.array(columns, dtype=np.float64).reshape(len(columns), len(cells)).T

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the numbers: that of the column, and what they tell."""
        check_is_fitted(self, "formats_")
        given = getattr(self, "feature_names_in_", input_features)
        names = [f"x{i}" for i in range(self.n_features_in_)] if given is None else given
        pairs = zip(names, self.parts_, strict=True)
        return np.array([f"{name}_{part}" for name, parts in pairs for part in parts], dtype=object)

    def _cells(self, X: Any, *, reset: bool) -> NDArray[np.object_]:
        validate_data(self, X, reset=reset, skip_check_array=True)
        if not hasattr(X, "iloc"):
            return np.asarray(X, dtype=object)
        out = np.empty(X.shape, dtype=object)
        for i in range(X.shape[1]):
            out[:, i] = X.iloc[:, i].to_numpy(dtype=object)
        return out


def _varies(part: str, read: list[dt.datetime]) -> bool:
    """Whether a part of dates differs; a weekday only where the days of the month do."""
    if part == "weekday" and len({when.day for when in read}) < 2:
        return False
    return part == "days" or len({_PARTS[part](when) for when in read}) > 1


def date_format(column: Iterable[Any], *, every: bool = False) -> str | None:
    """How the dates of a public column are written; None if they are no dates.

    Parameters
    ----------
    column : iterable
        Texts, or dates of Python, numpy and pandas.
    every : bool, default=False
        Whether numbers such as 20200131 may be dates, too.

    Examples
    --------
    >>> date_format(["Mar-2018", "Feb-2018"]), date_format(["a", "b"]), date_format([1, 2])
    ('%b-%Y', None, None)
    """
    seen = dict.fromkeys(_written(cell) for cell in column if not _is_missing(cell))
    texts = list(seen)[:_MOST_TEXTS]
    if len(texts) < 2 or (not every and any(_is_number(text) for text in texts)):
        return None

    def share(how: str, among: list[str]) -> float:
        return float(np.mean([_moment(text, how) is not None for text in among]))

    if np.mean([any(map(str.isdigit, text)) for text in texts]) < _ENOUGH:
        return None
    likely = [how for how in _FORMATS if share(how, texts[:_FIRST]) >= 0.5]
    best = max(likely, key=lambda how: share(how, texts), default=None)
    return best if best is not None and share(best, texts) >= _ENOUGH else None


def is_date(column: pd.Series) -> bool:
    """Whether a public column holds dates, by its type or by how its texts are written."""
    if column.dtype.kind == "M":
        return True
    return column.dtype.kind not in "biufcm" and date_format(column) is not None


def not_dates(cells: Iterable[Any], how: str) -> list[str]:
    """Cells that are there and are no dates, when dates are written like this.

    Examples
    --------
    >>> not_dates(["31.01.2020", None, "soon"], "%d.%m.%Y")
    ['soon']
    """
    return [
        _written(cell)
        for cell in cells
        if not _is_missing(cell) and _moment(_written(cell), how) is None
    ]


def _moments(cells: Iterable[Any], how: str) -> list[dt.datetime | None]:
    """Dates of cells, each by itself; a text that comes again is read once."""
    known: dict[str, dt.datetime | None] = {}
    found = []
    for cell in cells:
        text = _written(cell)
        if text not in known:
            known[text] = _moment(text, how)
        found.append(known[text])
    return found


def _moment(text: str, how: str) -> dt.datetime | None:
    """One date: as public rows write it, or else in ISO, as typed dates of a file are written."""
    if how != _ISO:
        try:
            return dt.datetime.strptime(text, how)
        except (ValueError, OverflowError):
            pass
    if not text[:4].isdigit() or text[4:5] != "-":
        return None
    try:
        when = dt.datetime.fromisoformat(text)
        return when if when.tzinfo is None else when.astimezone(dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def _written(cell: Any) -> str:
    """A cell as text: that of a date is ISO, a whole number has no point."""
    if isinstance(cell, np.datetime64):
        return str(cell.astype("M8[us]").item())
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def _is_missing(cell: Any) -> bool:
    return cell is None or str(cell).strip().lower() in ("", "nat", "nan", "none", "<na>")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
