r"""Clipped gradients and residuals of private rows: what the descents take, how far it moves.

Every statistic is a mean of contributions of bounded length; the proof stands with each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from dpadapt.learning.softmax import softmax
from dpadapt.privacy import RowMap, RowMean, shrink_factors

Array = npt.NDArray[np.float64]


def errors(scores: Array, offsets: Array | None, targets: Array) -> Array:
    """Derivative of the loss in the scores, in their place: regression where there is no offset."""
    found = scores if offsets is None else softmax(offsets + scores)
    return np.subtract(found, targets, out=found)


def clipped(error: Array, lengths: Array, clip: float) -> Array:
    """Errors shrunk so that (length of the row) x (length of the error) is at most the clip."""
    size = np.sqrt(reduce(np.add, (error * error).T)) * lengths
    return np.asarray(error * shrink_factors(size, clip)[:, None])


@dataclass(frozen=True, eq=False)
class RowGradient(RowMean):
    r"""Mean of the rows' clipped gradients at W.

    A prepared row holds the features :math:`\bar z`, shrunk to the reach of the course, the scores
    of the public model (classification), and :math:`|\bar z|`. Its gradient is
    :math:`\bar z e^T`, with :math:`e = \bar z W - y` or
    :math:`e = softmax(offset + \bar z W) - onehot(y)`, shrunk to a length of R at most.

    Sensitivity under replace-one. The Frobenius norm of :math:`\bar z e^T` is
    :math:`|\bar z| |e|`, which the clip brings to R at most, whatever the row and its label are.
    The sum of n rows moves by :math:`|g - g'| \le 2R`, the mean by 2R/n; attained by rows with the
    same long features and opposite errors. A row of no class contributes 0.

    Parameters
    ----------
    cleaning : RowMap
    coefficients : ndarray of shape (D, k)
        W.
    clip : float
        R.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> from dpadapt.privacy.statistics import Prepared
    >>> rows = Prepared(Cleaning(1.0), lambda X, y: (X, y), 2)
    >>> query = RowGradient(rows, np.zeros((1, 1)), clip=0.5)
    >>> query.block(np.array([[1.0, 1.0], [0.1, 0.1]]), np.array([-9.0, 1.0])).round(6)
    array([[0.4]])
    >>> query.sensitivity(10)
    0.1
    """

    cleaning: RowMap
    coefficients: Array
    clip: float
    label: str = "clipped gradient"

    @property
    def magnitude(self) -> float:
        """R."""
        return self.clip

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """That of the coefficients."""
        return self.coefficients.shape

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum of the clipped gradients."""
        features, outputs = self.coefficients.shape
        if y is None:
            return np.zeros_like(self.coefficients)
        Z, lengths = X[:, :features], X[:, -1]
        if outputs == 1:
            error = errors(Z @ self.coefficients, None, y[:, None])
        else:
            targets = y[:, None] == np.arange(outputs)
            error = errors(Z @ self.coefficients, X[:, features:-1], targets.astype(float))
            error[y < 0] = 0.0
        return np.asarray(Z.T @ clipped(error, lengths, self.clip))

    def sensitivity(self, n_rows: int) -> float:
        """2R/n; see the proof above."""
        return 2 * self.clip / n_rows


@dataclass(frozen=True, eq=False)
class Level(RowMean):
    """Mean residual of a model, each clipped to [-clip, clip].

    Two numbers of that interval are 2 clip apart at most, so the mean of n moves by 2 clip / n;
    attained.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = Level(Cleaning(1.0, intercept=1.0), np.array([0.0, 1.0]), clip=2.0)
    >>> query.block(np.array([[0.5, 1.0], [0.5, 1.0]]), np.array([9.0, 2.0]))
    array([3.])
    """

    cleaning: RowMap
    coefficients: Array
    clip: float
    label: str = "level"

    @property
    def magnitude(self) -> float:
        """The clip."""
        return self.clip

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number."""
        return (1,)

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum of the clipped residuals."""
        if y is None:
            return np.zeros(1)
        residual = np.clip(y - X @ self.coefficients, -self.clip, self.clip)
        return np.array([residual.sum()])

    def sensitivity(self, n_rows: int) -> float:
        """2 clip / n."""
        return 2 * self.clip / n_rows
