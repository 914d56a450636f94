r"""What is asked of private rows, each with the proof of how far one row can move it.

Sums of clipped gradients, two matrix products and no gradient of one row. Row i contributes
:math:`g_i \min(1, \tau / \|g_i\|) / \tau`, of norm at most 1: in units of the clip :math:`\tau`,
noise of a given scale means the same privacy whatever :math:`\tau` is, and who takes the sum
multiplies it by the public :math:`\tau` again. And two counts of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from dpadapt._types import FloatArray as Array
from dpadapt.learning.softmax import RealArray as Rows
from dpadapt.learning.softmax import lengths, numerators
from dpadapt.privacy import RowMap, RowMean
from dpadapt.privacy.statistics import MeanVector, mean_number

PIECE = 128  # float32 rows that are multiplied at once
_HUGE = 1e30  # no score of a row of norm 1 overflows in float32
_CHUNK = 1 << 18  # numbers of rows at once, about


class GradientSum(RowMean):
    """Sums of what rows contribute, each of norm 1 at most; proofs are in the subclasses."""

    magnitude: float = 1.0

    def sensitivity(self, n_rows: int) -> float:
        """Sensitivity of the mean under replace-one; see the proof in the class."""
        return 2 * (1 + rounding_of_pieces()) / n_rows


@dataclass(frozen=True, eq=False)
class ClippedGradients(GradientSum):
    r"""Sum over the private rows of their gradients, clipped, in units of the clip.

    With rows of norm |x_i| and residuals r_i, the sum is X^T diag(s) R, where
    s_i = (1 - k) / max(tau, |x_i| |r_i|). *Magnitude 1*: the contribution x_i (s_i r_i)^T has norm
    |x_i| |s_i r_i|, at most 1 - k if computed exactly. Every number in it is computed from the very
    numbers that are then multiplied: the squares of the two norms, sums of d and of c squares in
    any order, are off by a factor 1 + (d + 1) u and 1 + (c + 1) u at most, and a dozen further
    roundings by 1 + u each (u half an ulp of one). k = 2 (d + c + 32) u is twice what all of them
    can do; squares that underflow change nothing above 1e-16, and the clip is at least 1e-6.

    *Replace-one.* Exactly, the sum moves by |c - c'| <= 2, attained at x' = -x with r' = r. In
    float64 what rounding adds is the session's business. In float32, rows are multiplied in pieces
    of 128, which sit at fixed places; the products of two pieces, B = 256 rows, are added up in
    float32, all others in float64. No number of a row depends on another row, and a product of a
    piece depends on its rows alone: if one row is replaced, the sums of all other pieces stay the
    same to the last bit. A term passes through 129 roundings at most, in whatever order a piece
    is summed, so that (Higham, Accuracy and Stability of Numerical Algorithms, 3.1) entry by entry

        |fl(X^T Q) - X^T Q| <= gamma |X|^T |Q|,    gamma = 129 u / (1 - 129 u),

    hence in the Frobenius norm at most gamma times the sum of |x_i| |q_i| over the two pieces,
    which is gamma B. This may happen to both neighbours: the sum moves by 2 (1 + gamma B) at most,
    0.2% more than 2.

    *Add/remove* (float64): a row more or less moves the sum by its own contribution, at most 1.

    Parameters
    ----------
    weights : ndarray of shape (d, c)
        W, public or released.
    clip : float
        tau, from 1e-6 to 1e6.
    cleaning : RowMap
        Its rows are finite, of norm ``radius`` at most; its labels are codes from 0 to c - 1, or
        -1 for no class.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = ClippedGradients(np.zeros((1, 2)), 0.5, Cleaning(radius=1.0, classes=2))
    >>> query.block(np.array([[1.0], [0.5]]), np.array([0.0, -1.0])).round(6)
    array([[-0.707107,  0.707107]])
    >>> query.magnitude, round(query.sensitivity(100), 3)
    (1.0, 0.02)
    """

    weights: Array
    clip: float
    cleaning: RowMap
    label: str = "clipped gradients"

    def __post_init__(self) -> None:
        if not 1e-6 <= self.clip <= 1e6:
            raise ValueError(f"clip must lie between 1e-6 and 1e6; got {self.clip!r}.")
        if np.ndim(self.weights) != 2 or not (np.abs(self.weights) < _HUGE).all():
            raise ValueError(
                "weights must be a matrix of finite numbers, none above 1e30: a descent may have "
                "diverged; take a smaller step."
            )

    @cached_property
    def _small(self) -> bool:
        """Whether no score can be large: a public fact, the same for every row."""
        return bool(self.cleaning.radius * lengths(self.weights.T).max(initial=0.0) <= 30)

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Shape of the weights."""
        return self.weights.shape

    def block(self, X: Rows, y: Rows | None) -> Array:
        """Sum of the contributions, in float64."""
        total = np.zeros(self.weights.shape[::-1])
        weights, codes = self.weights.astype(X.dtype, copy=False), known_codes(y)
        with np.errstate(all="ignore"):  # nothing may be said about a value
            for chunk in chunks(X):
                rows = X[chunk]
                found, sums = numerators(rows, codes[chunk], weights, small=self._small)
                found *= self._scales(rows, found, sums)[:, None]
                _add_product(total, found, rows)
        return np.ascontiguousarray(total.T)

    def _scales(self, X: Rows, A: Rows, sums: Rows) -> Rows:
        """What the numerators are multiplied by: 1 / max(tau, |g|), a hair less, over the sums."""
        hair = 1 - (sum(self.weights.shape) + 32) * np.finfo(X.dtype).eps
        norms = lengths(X) * (lengths(A) / sums)
        scales = hair / (np.maximum(norms, self.clip, dtype=X.dtype) * sums)
        scales[~np.isfinite(scales)] = 0
        return np.asarray(scales)


def row_count(cleaning: RowMap) -> MeanVector:
    """Number of private rows that have a class: a row counts once or not at all.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = row_count(Cleaning(radius=1.0, classes=2))
    >>> query.block(np.zeros((3, 2)), np.array([0.0, 1.0, -1.0]))
    array([2.])
    """
    return mean_number(cleaning, _has_class, 0.0, 1.0, "number of rows")


def _has_class(X: Array, y: Array) -> npt.NDArray[np.bool_]:
    return np.asarray(y >= 0)


def correct_rows(weights: Array, cleaning: RowMap) -> MeanVector:
    """Number of private rows that released weights classify correctly.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = correct_rows(np.eye(2), Cleaning(radius=1.0, classes=2))
    >>> query.block(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.0, 0.0]))
    array([1.])
    """
    return mean_number(cleaning, partial(_right, weights), 0.0, 1.0, "correct rows")


def _right(weights: Array, X: Array, y: Array) -> npt.NDArray[np.bool_]:
    scores = X[:, : len(weights)] @ weights
    return np.asarray(scores.argmax(axis=1) == y)


def _add_product(total: Array, Q: Rows, X: Rows) -> None:
    """Add Q^T X to a float64 total; if it is float32, products of 128 rows, two by two."""
    if X.dtype != np.float32:
        total += Q.T @ X
        return
    paired = len(X) - len(X) % (2 * PIECE)
    pieces = (A[:paired].reshape(-1, PIECE, A.shape[1]) for A in (Q, X))
    products = np.matmul(np.matrix_transpose(next(pieces)), next(pieces))
    products[::2] += products[1::2]  # to float64 half as often: faster
    total += products[::2].sum(axis=0, dtype=np.float64)
    one, two = slice(paired, paired + PIECE), slice(paired + PIECE, None)
    total += Q[one].T @ X[one] + Q[two].T @ X[two]


def rounding_of_pieces() -> float:
    """How far float32 takes the sum of two pieces of contributions of norm at most 1, at most.

    Examples
    --------
    >>> round(rounding_of_pieces(), 6)
    0.001968
    """
    unit = (PIECE + 1) * float(np.finfo(np.float32).eps) / 2
    return 2 * PIECE * unit / (1 - unit)


def chunks(X: Rows) -> list[slice]:
    """Rows at once, a multiple of two pieces: they stay in the processor's cache.

    Examples
    --------
    >>> chunks(np.zeros((1500, 256)))
    [slice(0, 1024, None), slice(1024, 2048, None)]
    """
    most, least = _CHUNK // max(1, X.shape[1]), 8 * PIECE
    size = max(least, min(most // least * least, 8 * least))
    return [slice(start, start + size) for start in range(0, len(X), size)]


def known_codes(y: Rows | None) -> npt.NDArray[np.intp]:
    """Codes of the classes, which gradients need.

    Examples
    --------
    >>> known_codes(np.array([1.0, -1.0]))
    array([ 1, -1])
    """
    if y is None:
        raise TypeError("gradients need labels: Private(X_private, y_private).")
    return y.astype(np.intp)
