r"""Clipped gradients of the profiled objective: what its descents take, how far it moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpadapt._types import FloatArray
from dpadapt.learning.softmax import log_sum_exp
from dpadapt.privacy import PrivacyError, RowMap, RowMean, shrink_factors

from ..profile import profile


def shrink_together(X: FloatArray, y: FloatArray, bound: float) -> tuple[FloatArray, FloatArray]:
    r"""Rows in units of ``bound``, those longer than 1 shrunk to 1 *together with their label*.

    The factor :math:`c_i = \min(1, bound/|x_i|)` is then a weight of the row: a linear relation
    between x and y stays what it was. Shrinking x alone would bias it.

    Examples
    --------
    >>> X, y = shrink_together(np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([0.5, 0.5]), 2.5)
    >>> X.round(9), y.round(9)
    (array([[0.6, 0.8],
           [0.4, 0. ]]), array([0.25, 0.5 ]))
    """
    factor = shrink_factors(np.sqrt(np.einsum("ij,ij->i", X, X)), bound)
    return X * (factor / bound)[:, None], y * factor


@dataclass(frozen=True, eq=False)
class HuberGradient(RowMean):
    r"""Mean of x clip((w.x - y) / k, -1, 1) over private rows of length 1 at most.

    It is the private part of the gradient of the profiled objective (:mod:`..profile`), over
    :math:`2 (1-\alpha) k`: with residual e = w.x - y and :math:`k = \sqrt\kappa`,

    .. math:: \frac{1-\alpha}{n} \sum_j 2 x_j e_j \min(1, \sqrt\kappa / |e_j|)
       = 2 (1-\alpha) k \cdot \frac1n \sum_j x_j\, clip(e_j / k, \pm1).

    Sensitivity under replace-one: every contribution has length |x| |clip| <= 1, so the mean moves
    by 2/n at most; attained by (x, y) and (-x, y') with both residuals >= k. It does not depend on
    the knee k: candidates with different knees cost the same. If :math:`\|w\| \le \Lambda` then
    :math:`|e| \le \Lambda + 1`, and a larger k changes nothing; e is *clipped* here, so that the
    bound holds whatever w is.

    Parameters
    ----------
    cleaning : RowMap
        Must give rows of length 1 at most, as :meth:`ProfiledRegression.prepared` does.
    coefficients : ndarray of shape (d,)
        w, public or released.
    knee : float

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = HuberGradient(Cleaning(radius=1.0), np.zeros(1), knee=0.5)
    >>> query.block(np.array([[1.0], [0.5]]), np.array([9.0, -0.1])).round(9)
    array([-0.9])
    >>> query.sensitivity(100)
    0.02
    """

    reads_labels: ClassVar[bool] = True
    cleaning: RowMap
    coefficients: FloatArray
    knee: float
    label: str = "clipped gradient"

    @property
    def magnitude(self) -> float:
        """Bound on one row's contribution."""
        return 1.0

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """That of the coefficients."""
        return self.coefficients.shape

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum over the rows of one block."""
        if y is None:
            raise PrivacyError("the private sample must have labels: Private(X, y).")
        gradient: FloatArray = np.clip((X @ self.coefficients - y) / self.knee, -1.0, 1.0) @ X
        return gradient

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean, in the Euclidean norm."""
        return 2 / n_rows


@dataclass(frozen=True, eq=False)
class LogisticGradient(RowMean):
    r"""Mean over private rows of the gradient of their logistic loss, each clipped to length C.

    Sensitivity under replace-one: a contribution :math:`s (p - e_y) x^T`, scaled down where
    :math:`s |p - e_y| |x| > C`, has a Frobenius norm of C at most, so the mean moves by 2C/n at
    most; attained by (x, y) and (-x, y) where p is uniform. A row of no class contributes nothing.

    Parameters
    ----------
    cleaning : RowMap
        With ``classes``.
    coefficients : ndarray of shape (k, d)
        Public or released.
    clip : float
        C.
    kappa : float, optional
        Of the profiled weight s; None for s = 1.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = LogisticGradient(Cleaning(radius=1.0, classes=2), np.zeros((2, 1)), clip=9.0)
    >>> query.block(np.array([[1.0], [3.0]]), np.array([0.0, -1.0])).round(9)
    array([[-0.5],
           [ 0.5]])
    >>> query.sensitivity(100)
    0.18
    """

    reads_labels: ClassVar[bool] = True
    cleaning: RowMap
    coefficients: FloatArray
    clip: float
    kappa: float | None = None
    label: str = "clipped logistic gradient"

    @property
    def magnitude(self) -> float:
        """Bound on one row's contribution."""
        return self.clip

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """That of the coefficients."""
        return self.coefficients.shape

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of the clipped gradients of one block."""
        if y is None:
            raise PrivacyError("the private sample must have labels: Private(X, y).")
        known = y >= 0
        errors, losses = logistic_errors(
            X @ self.coefficients.T, np.where(known, y, 0).astype(np.intp)
        )
        if self.kappa is not None:
            errors = errors * profile(losses, self.kappa)[1][:, None]
        length = np.sqrt(np.einsum("ij,ij->i", X, X) * np.einsum("ij,ij->i", errors, errors))
        factor = shrink_factors(length, self.clip)
        # an entry that is no number must stay with its row
        weighted = np.nan_to_num(errors * np.where(known, factor, 0.0)[:, None], posinf=0.0)
        gradient: FloatArray = weighted.T @ X
        return gradient

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean, in the Frobenius norm."""
        return 2 * self.clip / n_rows


def logistic_errors(
    logits: FloatArray, codes: npt.NDArray[np.intp]
) -> tuple[FloatArray, FloatArray]:
    """P - e_y, and the losses."""
    logs = logits - log_sum_exp(logits)[:, None]
    place = (np.arange(len(codes)), codes)
    errors = np.exp(logs)
    errors[place] -= 1
    return errors, -logs[place]
