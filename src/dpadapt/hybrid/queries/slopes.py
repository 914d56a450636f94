"""Gradients of the logistic loss over the curator's rows, tilted or weighted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpadapt.privacy import Cleaning, RowMap, RowMean
from dpadapt.privacy.statistics import Prepared, WeightedMean

from ..rules import LinearRule

__all__ = ["TiltedRows", "TiltedSlope", "WeightedSlope"]

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


@dataclass(frozen=True, eq=False)
class WeightedSlope(WeightedMean):
    r"""Gradient of the weighted logistic loss of a linear rule in its coefficients v.

    One row contributes :math:`g(z, y) = -y \, z / (1 + e^{y \langle v, z \rangle})`, and 0 if it is
    of no class. :math:`\|z\| \le 1` gives :math:`\|g\| < 1`, so with weights
    :math:`\mu_i \le q` the sum moves by at most 2 q if a row is replaced (overlap lemma,
    ``statistics.weights``). Attained in the limit of a large v: two rows on its wrong side,
    almost orthogonal to it and opposite to each other, pull with all their weight to either side.

    Parameters
    ----------
    cleaning : RowMap
        To rows z of norm at most 1 and labels -1, 0, 1.
    coefficients : ndarray of shape (p,)
        v.

    Examples
    --------
    >>> query = WeightedSlope(Cleaning(1.0), np.zeros(2))
    >>> query.weighted_block(np.array([[0.6, 0.8]]), np.array([1.0]), np.array([0.1]))
    array([-0.03, -0.04])
    >>> query.sensitivity(100)
    0.02
    """

    cleaning: RowMap
    coefficients: Array
    label: str = "weighted gradient"
    magnitude: float = 1.0

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number for each coefficient."""
        return (len(self.coefficients),)

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum of the gradients, unweighted."""
        return self.weighted_block(X, y, np.ones(len(X)))

    def weighted_block(self, X: Array, y: Array | None, weights: Array) -> Array:
        """Sum of the gradients, each times its weight."""
        if y is None:
            return np.zeros(len(self.coefficients))
        pull = X @ self.coefficients
        pull *= y
        with np.errstate(over="ignore"):  # of a row that v is right about: it does not pull
            np.exp(pull, out=pull)
        pull += 1.0
        np.divide(y, pull, out=pull)
        pull *= weights
        return np.asarray(-(pull @ X))

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean over equally weighted rows."""
        return 2 / n_rows
