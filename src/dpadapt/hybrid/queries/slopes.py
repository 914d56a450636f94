"""Gradients of the logistic loss over the curator's rows, tilted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpadapt.privacy import Cleaning, RowMap, RowMean
from dpadapt.privacy.statistics import Prepared

from ..rules import LinearRule

__all__ = ["TiltedRows", "TiltedSlope"]

Array = NDArray[np.float64]
Weight = Callable[[Array, Array], Array]

_LONGEST = 1e100  # of a row: squares stay finite


@dataclass(frozen=True, eq=False)
class TiltedRows:
    """Rows z(x) of a linear rule, of norm at most 1, and last a weight between 0 and 1.

    The weight is a fixed public function of one row and its label. It is not divided by a sum
    over rows: no row changes another one's.

    Parameters
    ----------
    rule : LinearRule
        Its features, not its coefficients.
    weight : callable
        From rows and labels (-1, 1, or 0 for no class) to numbers; cut to [0, 1], NaN becomes 0.

    Examples
    --------
    >>> rule = LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1), clip=1.0)
    >>> rows = TiltedRows(rule, lambda X, y: 0.5 * np.abs(X[:, 0]))
    >>> rows(np.array([[0.0], [9.0]]), np.array([0.0, 1.0]))[0][:, -1]
    array([0., 1.])
    """

    rule: LinearRule
    weight: Weight

    @property
    def radius(self) -> float:
        """Bound on the norm of z."""
        return 1.0

    @cached_property
    def _map(self) -> Prepared:
        def prepare(X: Array, y: Array | None) -> tuple[Array, Array | None]:
            signs = np.zeros(len(X)) if y is None else np.where(y < 0, 0.0, 2 * y - 1)
            weights = np.clip(np.nan_to_num(self.weight(X, signs), nan=0.0), 0.0, 1.0)
            return np.column_stack([self.rule.embed(X), weights]), signs

        return Prepared(Cleaning(_LONGEST, classes=2), prepare, self.rule.width + 1)

    def __call__(self, X: Array, y: Array | None) -> tuple[Array, Array | None]:
        """Map one block; total and row by row."""
        return self._map(X, y)


@dataclass(frozen=True, eq=False)
class TiltedSlope(RowMean):
    r"""Gradient in v of the logistic loss of tilted rows, each times its weight.

    One row contributes :math:`-w y z / (1 + e^{y \langle v, z \rangle})` with 0 <= w <= 1,
    :math:`\|z\| \le 1` and y in -1, 0, 1: a vector shorter than 1. Given v and the public weight
    function the other rows contribute the same to both samples, so the sum moves by less than 2 if
    a row is replaced, whatever the weights are divided by later on. Attained in the limit by
    two rows with label -1 far out on both sides of one column, whose constants are small but
    positive, and a large v that looks at the constant alone: both are wrong and pull with all
    their weight, to opposite sides.

    Parameters
    ----------
    cleaning : RowMap
        To rows (z, w): :class:`TiltedRows`.
    coefficients : ndarray of shape (p,)
        v.

    Examples
    --------
    >>> rule = LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1), clip=1.0)
    >>> query = TiltedSlope(TiltedRows(rule, lambda X, y: np.ones(len(X))), np.zeros(2))
    >>> query.block(np.array([[0.6, 0.8, 0.1]]), np.array([1.0]))
    array([-0.03, -0.04])
    """

    cleaning: RowMap
    coefficients: Array
    label: str = "gradient of tilted rows"
    magnitude: float = 1.0

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number a coefficient."""
        return self.coefficients.shape

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum over one block."""
        if y is None:
            return np.zeros(self.coefficients.shape)
        rows = X[:, :-1]
        pull = expit(-y * (rows @ self.coefficients)) * y * X[:, -1]
        return np.asarray(-(pull @ rows))

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean; see the proof above."""
        return 2.0 / n_rows
