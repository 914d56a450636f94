"""The clip from public gradients: a percentile of their norms, taken where it is not biased."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Between, ParameterTable, Positive
from dpadapt.learning.softmax import Codes, RealArray, gradient_norms, residuals
from dpadapt.learning.strategy import Strategy
from dpadapt.mixing.features import PublicSample

LEAST_CLIP = 1e-3  # below it public gradients say nothing about private ones
_UNKNOWN = 1.0  # without public rows


@dataclass(frozen=True)
class FixedClip(Strategy):
    """The same clip in every step.

    Parameters
    ----------
    clip : float, default=1.0
        tau, bound on a row's gradient norm, which is at most 1.42 anyway.

    Examples
    --------
    >>> FixedClip(0.5)
    FixedClip(clip=0.5)
    """

    clip: float = _UNKNOWN

    _constraints: ClassVar[ParameterTable] = {"clip": [Positive()]}

    def at(self, W: FloatArray, unseen: PublicSample) -> float:
        """The clip, wherever the weights are."""
        return self.clip


@dataclass(frozen=True)
class AdaptiveClip(Strategy):
    """The clip of a step is a percentile of public gradient norms at its weights.

    Parameters
    ----------
    percentile : float, default=90.0
        Of the norms, on public rows that the public phase has not seen.

    Examples
    --------
    >>> unseen = PublicSample(np.eye(2), np.array([0, 1]), 2)
    >>> round(AdaptiveClip().at(np.zeros((2, 2)), unseen), 4)
    0.7071
    """

    percentile: float = 90.0

    _constraints: ClassVar[ParameterTable] = {"percentile": [Between(0, 100, left=False)]}

    def at(self, W: FloatArray, unseen: PublicSample) -> float:
        """The percentile at W; 1 without public rows."""
        if not len(unseen):
            return _UNKNOWN
        return adaptive_clip(unseen.rows, unseen.codes, W, self.percentile, floor=LEAST_CLIP)


def adaptive_clip(
    X: RealArray, codes: Codes, W: FloatArray, percentile: float, floor: float
) -> float:
    r"""Percentile of the gradient norms of public rows at W, at least ``floor``: tau_t.

    A function of public rows and released weights: it costs no privacy. Erratum: rows that W was
    fitted to have small gradients, so that the percentile of theirs clips many more private
    gradients than it says (see :func:`held_out`).

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Public rows.
    codes : ndarray of shape (n,)
    W : ndarray of shape (d, c)
    percentile : float
        From 0 to 100.
    floor : float
        Positive: were all public gradients 0, nothing could move.

    Examples
    --------
    >>> X, codes = np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 0])
    >>> round(adaptive_clip(X, codes, np.zeros((1, 2)), 50.0, floor=0.1), 4)
    1.4142
    >>> adaptive_clip(X, codes, np.array([[1e3, -1e3]]), 10.0, floor=0.1)
    0.1
    """
    known = codes >= 0
    rows = X[known].astype(np.float64, copy=False)
    norms = gradient_norms(rows, residuals(rows, codes[known], W))
    if not norms.size:
        return floor
    return max(floor, float(np.percentile(norms, percentile)))


def held_out(codes: Codes, fraction: float = 0.2, seed: int = 0) -> npt.NDArray[np.bool_]:
    """Choose public rows that the public phase must not fit, for the clip: some of every class.

    A class keeps at least one row to fit; one with a single row has none to spare. If no row can
    be held out (one for each class), all rows serve both purposes, and the clip is biased low.

    Parameters
    ----------
    codes : ndarray of shape (n,)
    fraction : float
        Of each class, rounded, but at least one row where there are two.
    seed : int

    Returns
    -------
    ndarray of bool, shape (n,)
        True for rows that the clip is taken from; fit the others, or all if none is left.

    Examples
    --------
    >>> held = held_out(np.array([0] * 5 + [1] * 10))
    >>> held[:5].sum(), held[5:].sum()
    (np.int64(1), np.int64(2))
    >>> held_out(np.array([0, 1, 2]))
    array([ True,  True,  True])
    """
    rng = np.random.default_rng(seed)
    held = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes[codes >= 0]):
        places = rng.permutation(np.flatnonzero(codes == code))
        count = min(max(1, round(fraction * len(places))), len(places) - 1)
        held[places[:count]] = True
    return held if held.any() else np.ones(len(codes), dtype=bool)
