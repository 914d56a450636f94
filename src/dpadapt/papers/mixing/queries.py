"""What the paper's algorithms ask of private rows, with proofs of how far one row can move it.

Sums of clipped gradients (:mod:`dpadapt.mixing.queries`) as an individual filter takes them, which
must know what each row contributes; and in the coordinates of a public span.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpadapt._types import FloatArray
from dpadapt.learning.softmax import RealArray, lengths, numerators
from dpadapt.mixing.noisy_gradients import NAME, NoisyGradients
from dpadapt.mixing.queries import PIECE, ClippedGradients, GradientSum, chunks, known_codes
from dpadapt.privacy import Grant, RowMap, RowMean, Session

from .filtered import EachRow, FilteredMean
from .projection import GradientSpan

_TOGETHER = 8192  # rows whose clipped sum is projected at once


class _Priced(GradientSum, FilteredMean):
    """Sums of gradients from which rows can be left out."""

    def kept(self, X: RealArray, y: RealArray | None, keep: npt.NDArray[np.bool_]) -> FloatArray:
        """Sum of the contributions of some of the rows; the others stay in their places, as 0."""
        return self.block(X, np.where(keep, known_codes(y), -1))


@dataclass(frozen=True, eq=False)
class PricedGradients(ClippedGradients, _Priced):
    """Clipped gradients that say what each row contributes: see there for the proof.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = PricedGradients(np.zeros((1, 2)), 1.0, Cleaning(radius=1.0, classes=2))
    >>> query.norms(np.array([[1.0], [0.5]]), np.array([0.0, 1.0])).round(6)
    array([0.707107, 0.353553])
    """

    def norms(self, X: RealArray, y: RealArray | None) -> FloatArray:
        """Bounds on the norms of the rows' contributions, each at most the magnitude."""
        bounds, codes = np.empty(len(X)), known_codes(y)
        underflow = 1e-16 if X.dtype == np.float32 else 1e-150
        with np.errstate(all="ignore"):
            for chunk in chunks(X):
                A, total = numerators(X[chunk], codes[chunk], self.weights, small=self._small)
                found = lengths(X[chunk]).astype(float) * lengths(A) / total
                bounds[chunk] = np.fmin((found + underflow) / self.clip, 1.0)
        return bounds


@dataclass(frozen=True, eq=False)
class ProjectedGradients(_Priced):
    r"""Sum over the private rows of their gradients in public coordinates, clipped, over the clip.

    *Project, then clip* (default). Row i contributes
    :math:`m_i \min(1, \tau / \|m_i\|) / \tau` with :math:`m_i = U^T g_i`, that is
    :math:`m_i = B^T ((\tilde X x_i) \circ (\tilde R r_i))`. Magnitude 1, whatever U is and however
    :math:`m_i` was rounded: the scale is computed from the very coordinates that are added up, a
    hair below (:class:`ClippedGradients`). Replace-one: at most 2, attained at
    :math:`m' = -m`; in float32 pieces of 128 rows are summed, which rounds less than the pairs of
    pieces of :class:`ClippedGradients`, whose bound serves here too.

    *Clip, then project*. Row i contributes :math:`U^T` of its clipped gradient. As U stretches by
    at most 1 (:class:`GradientSpan`), magnitude and sensitivity are those of
    :class:`ClippedGradients`, whose sum is projected, at most N = 8192 rows at a time. Rounding
    in :math:`U^T` takes such a sum off by N ``span.rounding`` at most, for either neighbour, and
    one sum alone differs between them: all are divided by 1 + N ``span.rounding``, so that the
    bound holds as it is.

    Parameters
    ----------
    weights : ndarray of shape (d, c)
    clip : float
        tau, from 1e-6 to 1e6.
    cleaning : RowMap
        Rows of d columns; or of d + n_public columns, if the products with the public rows stand
        beside them (:class:`~.projection.WithProducts`): they are the same at every step.
    span : GradientSpan
    clip_first : bool, default=False

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> X, y, W = np.eye(2), np.array([0.0, 1.0]), np.zeros((2, 2))
    >>> span = GradientSpan.of(X, y, W)
    >>> query = ProjectedGradients(W, 0.5, Cleaning(radius=1.0, classes=2), span)
    >>> span.back(query.block(X, y)).round(4)
    array([[-0.7071,  0.7071],
           [ 0.7071, -0.7071]])
    """

    weights: FloatArray
    clip: float
    cleaning: RowMap
    span: GradientSpan
    clip_first: bool = False
    label: str = "projected gradients"

    @cached_property
    def _clipped(self) -> PricedGradients:
        return PricedGradients(self.weights, self.clip, self.cleaning)

    def __post_init__(self) -> None:
        _ = self._clipped  # checks weights and clip

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """The number of coordinates."""
        return (self.span.rank,)

    def block(self, X: RealArray, y: RealArray | None) -> FloatArray:
        """Sum of the contributions, in float64."""
        total = np.zeros(self.span.rank)
        if self.clip_first:
            inner, codes = X[:, : len(self.weights)], known_codes(y)
            for start in range(0, len(X), _TOGETHER):
                part = slice(start, start + _TOGETHER)
                total += self.span.coordinates(self._clipped.block(inner[part], codes[part]))
            return np.asarray(total / (1 + _TOGETHER * self.span.rounding))
        for M, scales in self._each(X, y):
            step = PIECE if M.dtype == np.float32 else len(M)
            for start in range(0, len(M), step):
                total += scales[start : start + step] @ M[start : start + step]
        return total

    def norms(self, X: RealArray, y: RealArray | None) -> FloatArray:
        """Bounds on the norms of the rows' contributions, each at most the magnitude."""
        if self.clip_first:
            return self._clipped.norms(X[:, : len(self.weights)], y)
        found = [lengths(M * scales[:, None]) for M, scales in self._each(X, y)]
        bounds = np.concatenate([np.zeros(0), *found]) * (1 + 2 * _slack(self.span.rank, X))
        return np.fmin(bounds + 1e-16, 1.0)

    def _each(self, X: RealArray, y: RealArray | None) -> Iterator[tuple[RealArray, RealArray]]:
        """Coordinates of the rows' gradients and what they are multiplied by, chunk by chunk."""
        kind, span, columns = X.dtype, self.span, len(self.weights)
        public, residual, basis, weights = (
            a.astype(kind, copy=False)
            for a in (span.rows.T, span.residuals.T, span.basis, self.weights)
        )
        codes, hair = known_codes(y), 1 - _slack(span.rank, X)
        for chunk in chunks(X):
            with np.errstate(all="ignore"):  # nothing may be said about a value
                rows, beside = X[chunk, :columns], X[chunk, columns:]
                A, sums = numerators(rows, codes[chunk], weights)
                products = A @ residual
                products *= beside if beside.shape[1] else rows @ public
                M = products @ basis
                sizes = lengths(M)
                M[~np.isfinite(sizes)] = 0
                scales = hair / (np.maximum(sizes / sums, self.clip, dtype=kind) * sums)
                scales[~np.isfinite(scales)] = 0
            yield M, scales


def _slack(rank: int, X: RealArray) -> float:
    return float((rank + 32) * np.finfo(X.dtype).eps)


class FilteredGradients(NoisyGradients):
    """Sums over the rows that can still pay.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.mixing.noisy_gradients import gradient_mechanisms
    >>> rows = Cleaning(radius=1.0, classes=2)
    >>> with Private([[1.0], [-1.0]] * 500, [0, 1] * 500).open(epsilon=1.0, delta=1e-5) as session:
    ...     asked = gradient_mechanisms(session, rows, (1, 2), 6, sample_size=9, filtered=2.0)
    ...     gradients = FilteredGradients(session, rows, session.plan(**asked).steps)
    ...     gradients(np.zeros((1, 2)), clip=0.5).shape
    (1, 2)
    """

    kind: ClassVar[type[ClippedGradients]] = PricedGradients

    def __init__(self, session: Session, cleaning: RowMap, grant: Grant) -> None:
        super().__init__(session, cleaning, grant)
        self._sums: Any = session.release(grant, session.hide(EachRow(cleaning.radius, NAME)))

    def release(self, query: RowMean) -> FloatArray:
        """Sum over the rows that can still pay for it."""
        return np.asarray(self._sums.release(query))


def within_span(
    gradients: NoisyGradients, W: FloatArray, clip: float, span: GradientSpan, *, clip_first: bool
) -> FloatArray:
    """Sum at W, projected on the span of public gradients; noise in that span alone.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.mixing.noisy_gradients import gradient_mechanisms
    >>> rows, W = Cleaning(radius=1.0, classes=2), np.zeros((1, 2))
    >>> span = GradientSpan.of(np.ones((1, 1)), np.array([0]), W)
    >>> with Private([[1.0], [-1.0]] * 500, [0, 1] * 500).open(epsilon=1.0, delta=1e-5) as session:
    ...     asked = gradient_mechanisms(session, rows, (1, 2), 6, sample_size=9)
    ...     gradients = NoisyGradients(session, rows, session.plan(**asked).steps)
    ...     within_span(gradients, W, 0.5, span, clip_first=False).shape
    (1, 2)
    """
    query = ProjectedGradients(W, clip, gradients.cleaning, span, clip_first, NAME)
    return clip * span.back(gradients.release(query))
