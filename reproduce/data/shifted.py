"""Regression with a public and a private sample: wind speeds, and gas sensors that drift."""

from __future__ import annotations

import gzip
import io
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .files import MissingDataError, data_file

__all__ = ["ShiftedData", "load_gas", "load_wind"]

Array = NDArray[np.float64]
PUBLIC_BATCHES, PRIVATE_BATCHES = (1, 2, 3, 4, 5, 8, 9), (6,)
_STATION = "DUB"
_SUMMER = (4, 5, 6, 7, 8, 9)
_GAS_FEATURES = 128


class ShiftedData(NamedTuple):
    """A public and a private sample of one regression task.

    Attributes
    ----------
    X_public, y_public : ndarray
    X_private, y_private : ndarray
        The private labels are for measuring errors only.

    Examples
    --------
    >>> ShiftedData(np.eye(2), np.ones(2), np.eye(2), np.ones(2)).X_public.shape
    (2, 2)
    """

    X_public: Array
    y_public: Array
    X_private: Array
    y_private: Array


def load_wind() -> ShiftedData:
    """Daily wind speeds at twelve Irish stations, 1961-1978 (Haslett and Raftery 1989).

    Public is the winter half year (October to March), private the summer half year; the label is
    the speed at Dublin (knots), the columns are the speeds at the other eleven stations.

    Examples
    --------
    >>> import os
    >>> if "DPADAPT_DATA" in os.environ:
    ...     assert load_wind().X_public.shape == (3280, 11)
    """
    import pandas as pd

    table = pd.read_csv(data_file("wind/wind.csv.gz"))
    summer = table["month"].isin(_SUMMER).to_numpy()
    labels = table[_STATION].to_numpy(dtype=float)
    rows = table.drop(columns=["year", "month", "day", _STATION]).to_numpy(dtype=float)
    return ShiftedData(rows[~summer], labels[~summer], rows[summer], labels[summer])


def load_gas() -> ShiftedData:
    """Gas sensors that drift (Vergara et al. 2012): log concentration from 128 features.

    Public are batches 1-5, 8 and 9, private is batch 6. (Batches 7 and 10 are not used: no copy
    of them could be checked.)

    Examples
    --------
    >>> import os
    >>> if "DPADAPT_DATA" in os.environ:
    ...     assert load_gas().X_private.shape == (2300, 128)
    """
    public = [_sensors(number) for number in PUBLIC_BATCHES]
    private = [_sensors(number) for number in PRIVATE_BATCHES]
    X_public, y_public = (np.concatenate(part) for part in zip(*public, strict=True))
    X_private, y_private = (np.concatenate(part) for part in zip(*private, strict=True))
    return ShiftedData(X_public, y_public, X_private, y_private)


def _sensors(number: int) -> tuple[Array, Array]:
    features, _, labels = gas_batch(number)
    return features, labels


def gas_batch(number: int) -> tuple[Array, Array, Array]:
    """Features, gas and log concentration; a line is ``gas;concentration 1:v 2:v ... 128:v``."""
    rows, gases, labels = [], [], []
    with gzip.open(data_file(f"gas_drift/batch{number}.dat.gz")) as stream:
        for line in io.TextIOWrapper(stream, encoding="ascii"):
            head, *cells = line.split()
            gas, concentration = head.split(";")
            gases.append(float(gas))
            labels.append(float(concentration))
            rows.append([float(cell.split(":")[1]) for cell in cells])
    features = np.array(rows)
    if features.shape[1] != _GAS_FEATURES:
        raise MissingDataError(f"batch {number}: expected {_GAS_FEATURES} features.")
    return features, np.array(gases), np.log(labels)
