"""What the pictures and tables of paper 000 have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpadapt.report.figures import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["summarise"]

LINES: dict[str, tuple[str, str]] = {
    "uniform weights": (GREY, ":"),
    "Frank-Wolfe, tight, own K": (ORANGE, "-."),
    "moments": (BLUE, "-"),
}
NAMES = {"discrepancy": "discrepancy ‖M(q)‖₂", "mse": "test error (MSE x 10⁴)"}


def summarise(table: pd.DataFrame, keys: Sequence[str], column: str) -> pd.DataFrame:
    """Mean and spread (standard deviation over repeats) of a column, in the table's order.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"method": ["a", "a"], "mse": [1.0, 3.0]})
    >>> summarise(table, ["method"], "mse").to_dict("records")
    [{'method': 'a', 'mse': '2', 'spread': '1.4', 'repeats': 2}]
    """
    grouped = table.groupby(list(keys), sort=False)[column]
    found = grouped.agg(["mean", "std", "count"]).reset_index()
    found["mean"] = found["mean"].map("{:.3g}".format)
    found["std"] = found["std"].map(lambda value: "" if math.isnan(value) else f"{value:.2g}")
    return found.rename(columns={"mean": column, "std": "spread", "count": "repeats"})
