"""Discrepancy minimisation (Cortes, Mohri 2014) with the target rows in the clear."""

from __future__ import annotations

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.discrepancy import minimise_discrepancy

from ._nonprivate import WeightedRegressor


class DiscrepancyMinimisationRegressor(WeightedRegressor):
    """Ridge regression with weights of least discrepancy. No private method: it keeps no secret.

    The private form is :class:`dpadapt.DiscrepancyRegressor`.

    Parameters
    ----------
    gap : float, default=0.01
        How near to the least discrepancy to come, in parts of that of equal weights.

    Attributes
    ----------
    weights_ : ndarray of shape (m,)
        Of mean 1.
    coef_ : ndarray of shape (d,)
    intercept_ : float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> target = rng.normal(1.0, 0.5, size=(300, 1))
    >>> model = DiscrepancyMinimisationRegressor().fit(X, X[:, 0] ** 2, target=target)
    >>> bool(model.coef_[0] > 1)
    True
    """

    def __init__(self, *, gap: float = 0.01) -> None:
        self.gap = gap

    def _weights(self, rows: FloatArray, target: FloatArray) -> FloatArray:
        source, wanted = (np.column_stack([part, np.ones(len(part))]) for part in (rows, target))
        moment = wanted.T @ wanted / len(wanted)
        return len(rows) * minimise_discrepancy(source, moment, gap=self.gap).weights
