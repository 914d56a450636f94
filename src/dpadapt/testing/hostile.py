"""Values that a private sample may hold and that nothing may be upset by."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

SENTINEL = 987654.321  # a private number that nothing else in a test is equal to
SECRET_TEXT = "zqx-secret-7781"  # the same for text
NAMES = ["alpha", "beta", "gamma"]
HOSTILE_ROWS = {
    "nan": [math.nan, math.nan, math.nan],
    "one nan": [math.nan, 0.5, -0.5],
    "inf": [math.inf, -math.inf, math.inf],
    "one inf": [0.1, -math.inf, 0.2],
    "huge": [1e300, -1e300, 1e300],
    "largest": [1.7976931348623157e308] * 3,
    "huge norm": [1e6, 0.0, 0.0],
    "the opposite": [-1e6, 0.0, 0.0],
    "negative zero": [-0.0, -0.0, -0.0],
    "denormal": [5e-324, -5e-324, 5e-324],
    "zero": [0.0, 0.0, 0.0],
    "sentinel": [SENTINEL, -SENTINEL, SENTINEL],
}
HOSTILE_LABELS = [math.nan, math.inf, -math.inf, 1e300, -1e300, -0.0, SENTINEL]
HOSTILE_CELLS = [None, SECRET_TEXT, b"\xff", [1, 2], {"a": 1}, 10**400, object(), pd.NaT, 1 + 2j]


def hostile_row(name: str, columns: int) -> Any:
    """A hostile row with as many columns as are needed."""
    return np.resize(np.array(HOSTILE_ROWS[name]), columns)
