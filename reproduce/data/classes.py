"""Rows and classes; and patches of forest, which two papers use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .files import data_file

__all__ = ["ClassData", "load_covertype"]

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


class ClassData(NamedTuple):
    """Rows and classes.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        Codes, from 0 on.

    Examples
    --------
    >>> ClassData(np.eye(2), np.array([0, 1])).y.tolist()
    [0, 1]
    """

    X: Array
    y: Codes


def load_covertype() -> ClassData:
    """Cover of 15,120 patches of forest (2,160 of each of seven classes), 54 columns.

    Examples
    --------
    >>> import os
    >>> if "DPADAPT_DATA" in os.environ:
    ...     assert load_covertype().X.shape == (15120, 54)
    """
    import pandas as pd

    table = pd.read_csv(data_file("covtype/covtype_15120.csv.gz"))
    codes = table.pop("Cover_Type").to_numpy(dtype=np.int64) - 1
    return ClassData(table.drop(columns="Id").to_numpy(dtype=float), codes)
