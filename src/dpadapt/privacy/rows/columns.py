"""One column of a schema: its kind, and how its cells look to a transformer.

The look comes from a public column: its type, its categories, the way it writes a text. A cell
means what it means by itself (:mod:`.cells`), and then takes the look. Two types have no missing
cell, whole numbers and flags: a cell that does not fit is said so, and as a float it is NaN.

No library is left to find a type from the cells: the type is public, and always given. A type that
cannot be given to any cell whatever is not used: its column holds objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cells import Cells, cell_number, cells_of, key, numbers_of, text
from .times import TIMES

KINDS = ("number", "flag", "date", "text", "category", "duration", "period", "object")
Fits = NDArray[np.bool_] | None  # which cells the type of a column can hold; None: all
_FLAGS, _TEXTS = (bool, np.bool_), (str, bytes)
_WHOLE = (int, np.integer)
_DEEPEST, _MOST_CELLS = 64, 1 << 24  # of a list in a cell


@dataclass(frozen=True, eq=False)
class Column:
    """Kind and look of one column; public.

    Parameters
    ----------
    kind : {"number", "flag", "date", "text", "category", "duration", "period", "object"}
        "object" is for what no other kind is: lists of numbers, and objects as they are.
    dtype : dtype, optional
        Type of the public column; None: float64, datetime64[us] or object.
    spelling : mapping, optional
        How public cells of a text or category column are written, by what they mean.
    missing : object, default=NaN
        How a missing text is written.
    filler : object, optional
        A public cell, which stands for a row that is left out.
    whole : bool, default=False
        Whether a column of objects holds whole numbers.
    """

    kind: str
    dtype: Any = None
    spelling: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    missing: Any = np.nan
    filler: Any = 0.0
    whole: bool = False

    @classmethod
    def of(cls, column: Any) -> Column:
        """Kind and look of a public column.

        Examples
        --------
        >>> Column.of(np.array([1, 2])).kind, Column.of(["a", 1, None]).kind
        ('number', 'text')
        """
        dtype = getattr(column, "dtype", np.dtype(object))
        cells = cells_of(column)
        missing = [cell for cell in cells if _is_missing(cell)]
        present = [cell for cell in cells if not _is_missing(cell)]
        kind = _kind(dtype, present)
        return cls(
            kind,
            dtype if _holds_any_cell(kind, dtype) else np.dtype(object),
            _spelling(
                {"category": getattr(dtype, "categories", ()), "text": present}.get(kind, ())
            ),
            missing[0] if missing else np.nan,
            present[0] if present else 0.0,
            all(isinstance(cell, _WHOLE) for cell in present),
        )

    def look(self, cells: Cells, blank: Fits, *, strict: bool) -> tuple[Any, Fits]:
        """Cells in the public look, and which of them fit; blank ones are the filler's.

        Whole numbers and flags have the public type only if ``strict``; then those that do not fit
        are the filler's, too.
        """
        with np.errstate(all="ignore"):
            try:
                return self._look(cells, blank, strict)
            except Exception:  # of some cells: those are missing, the others look as they always do
                return self._look(self._without_failing(cells, strict), blank, strict)

    def _look(self, cells: Cells, blank: Fits, strict: bool) -> tuple[Any, Fits]:
        if _is_sparse(self.dtype):
            return self._sparse(cells, blank, strict)
        values = {"number": self._numbers, "flag": self._flags}.get(self.kind, self._others)
        return values(self._blanked(cells, blank), strict)

    def _without_failing(self, cells: Cells, strict: bool) -> Cells:
        """Cells without those that fail alone, found by halves."""
        try:
            self._look(cells, None, strict)
        except Exception:
            if len(cells) == 1:
                return [None]
            half = len(cells) // 2
            halves = (cells[:half], cells[half:])
            return [cell for part in halves for cell in self._without_failing(part, strict)]
        return cells

    def _blanked(self, cells: Cells, blank: Fits) -> Cells:
        if blank is None:
            return cells
        if isinstance(cells, np.ndarray):
            if self.kind in ("number", "flag"):
                return np.where(blank, cell_number(self.filler), cells)
            cells = cells.tolist()
        return [self.filler if b else cell for cell, b in zip(cells, blank, strict=True)]

    def _numbers(self, cells: Cells, strict: bool) -> tuple[Any, Fits]:
        values = numbers_of(cells)
        dtype = np.dtype(np.float64) if self.dtype is None else self.dtype
        if dtype.kind not in "iu":
            if dtype.kind == "O":
                listed = [int(v) if self.whole and v % 1 == 0 else v for v in values.tolist()]
                return _objects(listed), None
            plain = isinstance(dtype, np.dtype) and dtype.kind == "f"
            return (values.astype(dtype) if plain else _extension(values, dtype)), None
        bounds = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        above = float(int(bounds.max) + 1)
        fits = (values % 1 == 0) & (values >= float(bounds.min)) & (values < above)
        return self._gapless(values, fits, strict)

    def _sparse(self, cells: Cells, blank: Fits, strict: bool) -> tuple[Any, Fits]:
        """Cells of the type that is stored; those of a type with gaps are plain floats."""
        import pandas as pd

        stored = self.dtype.subtype
        values, fits = replace(self, dtype=stored)._look(cells, blank, strict)
        if values.dtype != stored:
            return values, fits
        return pd.arrays.SparseArray(values, dtype=self.dtype), fits

    def _flags(self, cells: Cells, strict: bool) -> tuple[Any, Fits]:
        values = numbers_of(cells)
        fits = (values == 0) | (values == 1)
        if self.dtype is not None and self.dtype.kind == "O":
            truth = zip(values.tolist(), fits, strict=True)
            return _objects([bool(v) if fit else self.missing for v, fit in truth]), None
        return self._gapless(np.where(fits, values, np.nan), fits, strict)

    def _gapless(self, values: Any, fits: NDArray[np.bool_], strict: bool) -> tuple[Any, Fits]:
        """Whole numbers or flags, of a type that may have no missing cell."""
        if self.dtype is None:
            return values, None
        if not isinstance(self.dtype, np.dtype):
            return _extension(np.where(fits, values, np.nan), self.dtype), None
        if not strict:
            return values, fits
        return np.where(fits, values, cell_number(self.filler)).astype(self.dtype), fits

    def _others(self, cells: Cells, strict: bool) -> tuple[Any, Fits]:
        listed: list[Any] = cells.tolist() if isinstance(cells, np.ndarray) else cells
        if self.kind == "object":
            return _objects([_as_it_is(cell, count(), 0) for cell in listed]), None
        if self.kind in TIMES:
            return TIMES[self.kind](listed, self.dtype), None
        if self.kind == "category":
            return self._categories(listed), None
        return _texts([self._written(cell) for cell in listed], self.dtype), None

    def _written(self, cell: Any) -> Any:
        found = text(cell)
        if found is None:
            return self.missing
        return self.spelling.get(found.strip(), found)

    def _categories(self, cells: list[Any]) -> Any:
        if self.dtype is None:
            return _objects([self.spelling.get(key(cell) or "", self.missing) for cell in cells])
        import pandas as pd

        place = {name: i for i, name in enumerate(self.dtype.categories)}
        codes = {meaning: place[level] for meaning, level in self.spelling.items()}
        found = np.fromiter((codes.get(key(cell) or "", -1) for cell in cells), np.int64)
        return pd.Categorical.from_codes(found, dtype=self.dtype)


def _kind(dtype: Any, present: list[Any]) -> str:
    if hasattr(dtype, "categories"):
        return "category"
    if dtype.kind in "biufMm":
        return {"b": "flag", "M": "date", "m": "duration"}.get(dtype.kind, "number")
    if hasattr(dtype, "freq"):
        return "period"
    if all(isinstance(cell, _FLAGS) for cell in present) and present:
        return "flag"
    if all(
        not isinstance(cell, _TEXTS) and cell_number(cell) == cell_number(cell) for cell in present
    ):
        return "number" if present else "text"
    plain = all(isinstance(cell, _TEXTS) or text(cell) is not None for cell in present)
    return "text" if plain else "object"


def _holds_any_cell(kind: str, dtype: Any) -> bool:
    """Whether a column of the kind can have the type, whatever its cells are."""
    if _is_sparse(dtype):
        return dtype.subtype.kind in "biufMm"
    if kind == "text":
        return str(dtype).split("[")[0] in ("str", "string", "large_string")
    return kind != "object"


def _is_sparse(dtype: Any) -> bool:
    return hasattr(dtype, "subtype") and hasattr(dtype, "fill_value")


def _spelling(cells: Iterable[Any]) -> Mapping[str, Any]:
    """How public cells are written, by what they mean; the first of those that mean the same."""
    found: dict[str, Any] = {}
    for cell in cells:
        meaning = key(cell)
        if meaning is not None:
            found.setdefault(meaning, cell)
    return MappingProxyType(found)


def _is_missing(cell: Any) -> bool:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, (float, np.floating)) and cell != cell


def _objects(cells: list[Any]) -> Any:
    out = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        out[place] = cell
    return out


def _texts(cells: list[Any], dtype: Any) -> Any:
    if dtype is None or isinstance(dtype, np.dtype):  # no width from private cells
        return _objects(cells)
    import pandas as pd

    return pd.Series(_objects(cells), dtype=dtype)


def _extension(values: Any, dtype: Any) -> Any:
    """Numbers in a type of pandas that knows missing cells."""
    import pandas as pd

    gaps = np.isnan(values)
    return pd.Series(np.where(gaps, 0.0, values)).astype(dtype).mask(gaps)


def _as_it_is(cell: Any, seen: Iterator[int], depth: int) -> Any:
    """A cell of no kind: lists hold what their cells mean, other objects are themselves.

    Raises for a list without end.
    """
    if depth > _DEEPEST or next(seen) > _MOST_CELLS:
        raise ValueError("a list is too deep or too long.")
    if isinstance(cell, np.ndarray) and cell.dtype.kind in "biuf":
        return np.add(cell, 0.0, dtype=np.float64, casting="unsafe")
    if isinstance(cell, (list, tuple, np.ndarray)):
        return [_as_it_is(each, seen, depth + 1) for each in cell]
    found = cell_number(cell)
    return found if found == found else text(cell) if isinstance(cell, _TEXTS) else cell
