"""One cell of a private table is replaced; what happens to all the others?

``ODD`` are the cells that put one into trouble, ``CONTAINERS`` the ways in which a table comes. A
container is built from the cells by the library that is usual for it, which chooses its types by
looking at all of them: that is the trap.
"""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from dpadapt import Private
from dpadapt.privacy import Cleaning
from dpadapt.privacy.rows import views
from dpadapt.privacy.rows.foreign import apply

PLACE = 3  # of the odd cell
NAMES = ["a", "b", "c"]


class Hostile:
    """Cannot be read, written or compared."""

    def _refuse(self, *_: Any) -> Any:
        raise RuntimeError("hostile")

    __float__ = __int__ = __str__ = __repr__ = __eq__ = __bool__ = __len__ = __index__ = _refuse
    __hash__ = object.__hash__


class HostileFloat(float):
    __float__ = __str__ = __repr__ = __eq__ = __mod__ = Hostile._refuse
    __hash__ = float.__hash__


class HostileText(str):
    strip = __str__ = __eq__ = encode = Hostile._refuse
    __hash__ = str.__hash__


ODD: dict[str, Any] = {
    "None": None,
    "NaN": np.nan,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "text": "x",
    "long text": "x" * 500,
    "empty": "",
    "nan text": "NaN",
    "inf text": "-inf",
    "true": True,
    "true text": "TRUE",
    "1.5": 1.5,
    "1": 1,
    "1 text": "1",
    " 01 ": " 01 ",
    "1e3": "1e3",
    "-0": "-0",
    "2**53+1": 2**53 + 1,
    "2**63": 2**63,
    "huge": 10**400,
    "inf": np.inf,
    "float32": np.float32(0.1),
    "decimal": Decimal("1.10"),
    "complex": 1 + 2j,
    "date": dt.date(2020, 1, 1),
    "moment": pd.Timestamp("2020-01-01T12:00", tz="Europe/Paris"),
    "date text": "2020-01-01",
    "period": pd.Period("2020"),
    "duration": dt.timedelta(1),
    "bytes": b"\xff",
    "numpy text": np.str_("y"),
    "half letter": "\ud800",
    "list": [1.0, 2.0],
    "dict": {"a": 1},
    "hostile": Hostile(),
    "hostile float": HostileFloat(1.0),
    "hostile text": HostileText("x"),
}
FEW = ("None", "text", "true", "1.5", "2**63", "date", "huge", "hostile")  # where time is short


def column(kind: str, n: int = 12) -> list[Any]:
    """Cells of a kind, as a person would give them."""
    rng = np.random.default_rng(3)
    return {
        "float": rng.normal(size=n).tolist(),
        "whole": rng.integers(0, 3, n).tolist(),
        "large": [2**53 + 1 + 2 * i for i in range(n)],
        "flag": [bool(i % 2) for i in range(n)],
        "text": [f"t{i % 3}" for i in range(n)],
        "digits": [f"0{i % 3}" for i in range(n)],
        "date": [dt.datetime(2020, 1, 1 + i) for i in range(n)],
    }[kind]


KINDS = ("float", "whole", "large", "flag", "text", "digits", "date")


def replaced(cells: list[Any], cell: Any) -> list[Any]:
    """The neighbour: the same cells but one."""
    return [*cells[:PLACE], cell, *cells[PLACE + 1 :]]


def _frame(cells: list[Any]) -> Any:
    return pd.DataFrame({"a": cells, "b": np.linspace(0, 1, len(cells))})


def _categories(cells: list[Any]) -> Any:
    return _frame(cells).astype({"a": "category"})


def _best(cells: list[Any]) -> Any:
    return _frame(cells).convert_dtypes()


def _array(cells: list[Any]) -> Any:
    return np.array([[cell] for cell in cells])


def _mixed_array(cells: list[Any]) -> Any:
    return np.array([[cell, "x"] for cell in cells])


def _objects(cells: list[Any]) -> Any:
    out = np.empty((len(cells), 1), dtype=object)
    for place, cell in enumerate(cells):
        out[place, 0] = cell
    return out


def _masked(cells: list[Any]) -> Any:
    gaps = [[cell is None] for cell in cells]
    return np.ma.masked_array([[0 if cell is None else cell] for cell in cells], gaps)


def _records(cells: list[Any]) -> Any:
    return np.rec.fromarrays([np.array(cells)], names="a")


def _csv(cells: list[Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        _frame(cells).to_csv(Path(folder) / "a.csv", index=False)
        return pd.read_csv(Path(folder) / "a.csv", float_precision="round_trip")


CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda cells: [[cell, 1.0] for cell in cells],
    "frame": _frame,
    "categories": _categories,
    "convert_dtypes": _best,
    "array": _array,
    "mixed array": _mixed_array,
    "objects": _objects,
    "masked": _masked,
    "records": _records,
    "csv": _csv,
}


def cleaned(private: Private, classes: int | None = None) -> tuple[Any, Any]:
    """What the statistics of a session see: cleaned rows and labels."""
    cleaning = Cleaning(1e300, label_range=(-1e300, 1e300), classes=classes)
    blocks = [cleaning(X, y) for X, y in private._rows.blocks()]
    rows = np.concatenate([X for X, _ in blocks])
    return rows, np.concatenate([y for _, y in blocks]) if private.labelled else None


def same_bits(one: Any, two: Any) -> bool:
    """Whether all rows but the odd one are the same to the last bit."""
    keep = np.arange(len(one)) != PLACE
    one, two = np.ascontiguousarray(one[keep]), np.ascontiguousarray(two[keep])
    return one.shape == two.shape and one.tobytes() == two.tobytes()


def tables_seen(private: Private) -> list[Any]:
    """Tables from which a transformer that is not ours is given one row after the other."""
    seen = []

    def tapped(function: Any, tables: Any, *rest: Any) -> Any:
        seen.append(tables[0].copy())
        return apply(function, tables, *rest)

    with mock.patch.object(views, "apply", tapped):
        cleaned(private.map(lambda rows: np.zeros((rows.shape[0], 1)), 1))
    return seen
