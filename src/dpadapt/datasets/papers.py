"""Real data of the papers, read from the folder that the variable DPADAPT_DATA names.

The files are not part of the package: licences differ, and together they are large. Each is checked
against the sha256 recorded here, so that results on another copy cannot pass for results on this.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["MissingDataError", "ShiftedData", "data_file", "load_gas", "load_wind"]

Array = NDArray[np.float64]

VARIABLE = "DPADAPT_DATA"
_WIND = "wind/wind.csv.gz"
_PUBLIC_BATCHES, _PRIVATE_BATCHES = (1, 2, 3, 4, 5, 8, 9), (6,)
_STATION = "DUB"
_SUMMER = (4, 5, 6, 7, 8, 9)
_GAS_FEATURES = 128
_CHECKSUMS = {
    _WIND: "aeede1fbdfb75117ae26dbbec77ed2ccb54ebb5ccf4733e68360ba97edcf156f",
    "gas_drift/batch1.dat.gz": "a4c7d3adf2472039c58fa058468175a2ae761cdda3315700fc900e830d3dd26a",
    "gas_drift/batch2.dat.gz": "1cf129576d799a9ee2e3e730dd17cd49f4e8d0e8e4a4d5e380e4af16c4291836",
    "gas_drift/batch3.dat.gz": "bead15207f22cbda59115bccfc276c5577337d4fd169ab9ce1d4eeff38f61495",
    "gas_drift/batch4.dat.gz": "867319098bd7a885bdec5eb67f56b6a2424aeb67a7c8fde436d82248784dcb85",
    "gas_drift/batch5.dat.gz": "28f60a451e3011a35ff16717b29bcaea8308d89d09f7084f32263d6ec7827ef9",
    "gas_drift/batch6.dat.gz": "9d35eda987ef3aa048d9363b64e958179d7ef6c9be0f291cbdb4e4874dc689e2",
    "gas_drift/batch8.dat.gz": "7ae96a6b806f20a3215aab4b809124f8aec0de680ea4ea38a40d15dd55306384",
    "gas_drift/batch9.dat.gz": "890e1c7ea58495642c8e81b321b7307b6120a5ca68ddf830eea96b03a942e364",
}
_SOURCES = {
    "wind": "the data set `wind` of the R package gstat (data/wind.rda), saved as CSV",
    "gas_drift": "UCI data set 270, Gas Sensor Array Drift at Different Concentrations",
}


class MissingDataError(ValueError):
    """A data set is not there, or is not the one that is meant.

    Examples
    --------
    >>> issubclass(MissingDataError, ValueError)
    True
    """


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


def data_file(name: str) -> Path:
    """Path of a data file whose content is the recorded one.

    Parameters
    ----------
    name : str
        Relative to the folder that DPADAPT_DATA names, as in ``"wind/wind.csv.gz"``.

    Examples
    --------
    >>> try:
    ...     data_file("wind/no-such-file.gz")
    ... except MissingDataError as error:
    ...     "wind/no-such-file.gz" in str(error)
    True
    """
    folder = os.environ.get(VARIABLE)
    source = _SOURCES.get(name.split("/")[0], "the paper's authors")
    if not folder:
        raise MissingDataError(
            f"{name} is needed: set the environment variable {VARIABLE} to a folder that holds it "
            f"(it is {source}, compressed by gzip)."
        )
    path = Path(folder) / name
    if not path.is_file():
        raise MissingDataError(
            f"{name} is not in the folder that {VARIABLE} names (it is {source}, compressed by "
            "gzip)."
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != _CHECKSUMS.get(name):
        raise MissingDataError(
            f"{name} in the folder that {VARIABLE} names is not the recorded file (sha256 differs)."
        )
    return path


def load_wind() -> ShiftedData:
    """Daily wind speeds at twelve Irish stations, 1961-1978 (Haslett and Raftery 1989).

    Public is the winter half year (October to March), private the summer half year; the label is
    the speed at Dublin (knots), the columns are the speeds at the other eleven stations.

    Examples
    --------
    >>> if VARIABLE in os.environ:
    ...     assert load_wind().X_public.shape == (3280, 11)
    """
    import pandas as pd

    table = pd.read_csv(data_file(_WIND))
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
    >>> if VARIABLE in os.environ:
    ...     assert load_gas().X_private.shape == (2300, 128)
    """
    public = [_batch(number) for number in _PUBLIC_BATCHES]
    private = [_batch(number) for number in _PRIVATE_BATCHES]
    X_public, y_public = (np.concatenate(part) for part in zip(*public, strict=True))
    X_private, y_private = (np.concatenate(part) for part in zip(*private, strict=True))
    return ShiftedData(X_public, y_public, X_private, y_private)


def _batch(number: int) -> tuple[Array, Array]:
    """Features and log concentration; a line is ``gas;concentration 1:v 2:v ... 128:v``."""
    rows, labels = [], []
    with gzip.open(data_file(f"gas_drift/batch{number}.dat.gz")) as stream:
        for line in io.TextIOWrapper(stream, encoding="ascii"):
            head, *cells = line.split()
            labels.append(float(head.split(";")[1]))
            rows.append([float(cell.split(":")[1]) for cell in cells])
    features = np.array(rows)
    if features.shape[1] != _GAS_FEATURES:
        raise MissingDataError(f"batch {number}: expected {_GAS_FEATURES} features.")
    return features, np.log(labels)
