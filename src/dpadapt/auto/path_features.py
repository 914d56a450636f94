"""Coordinates of the private path in regression: columns, differences of experts, curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray

from .curves import Curves
from .experts import column_units

_SPREAD = 1000.0  # columns whose standard deviations differ by more are in units of their own
_FAR = 1e300  # unit of a column that has one value only
_RIDGE = 0.03  # of the whitening, in units of the mean variance


def differences(scores: FloatArray, label: float) -> FloatArray:
    """Experts against the first one, and the first against the mean label.

    Examples
    --------
    >>> differences(np.array([[1.0, 4.0]]), label=0.5)
    array([[3. , 0.5]])
    """
    return np.hstack([scores[:, 1:] - scores[:, :1], scores[:, :1] - label])


@dataclass(frozen=True, eq=False)
class PathFeatures:
    """Features of the path: columns, differences of experts, curves if there are any.

    Parameters
    ----------
    label : float
        Mean public label.
    column_scale : ndarray of shape (d,)
    score_scale : ndarray of shape (K - 1,)
    curves : Curves or None

    Examples
    --------
    >>> features = PathFeatures(0.0, np.ones(2), np.ones(1), None)
    >>> features(np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]]))
    array([[1., 2., 2.]])
    """

    label: float
    column_scale: FloatArray
    score_scale: FloatArray
    curves: Any

    @classmethod
    def of(
        cls, X: FloatArray, scores: FloatArray, y: FloatArray, *, cells: Any, count: int
    ) -> PathFeatures:
        """Features of public rows with (cross-fitted) scores, and ``count`` curves of cells."""
        _, spread, constant = column_units(X)
        known = spread[~constant]
        wide = known.size and known.max() > _SPREAD * known.min()
        scale = spread if wide else np.ones(X.shape[1])
        size = float(np.sqrt(np.mean((known / scale[~constant]) ** 2))) if known.size else 1.0
        scale[constant] = _FAR
        label = float(y.mean())
        apart = differences(scores, label)[:, :-1].std(axis=0)
        least = 1e-6 * (float(y.std()) or 1.0)
        curves = Curves.of(cells, X, most=count, size=size) if count else None
        return cls(label, scale, size / np.maximum(apart, least), curves)

    def __call__(self, X: FloatArray, scores: FloatArray) -> FloatArray:
        """Of shape (n, p)."""
        parts = [
            X / self.column_scale,
            differences(scores, self.label)[:, :-1] * self.score_scale,
        ]
        if self.curves is not None:
            parts.append(self.curves(X))
        return np.hstack(parts)


@dataclass(frozen=True, eq=False)
class Whitening:
    """Public coordinates z = (f - mean) matrix, of mean square length 1.

    Attributes
    ----------
    energy : ndarray
        Mean square of each coordinate of z on public rows.
    spread : ndarray
        Share of the shift that is guessed to lie along each.

    Examples
    --------
    >>> F = np.random.default_rng(0).normal(size=(100, 3))
    >>> white = Whitening.of(F)
    >>> round(float(np.mean(np.sum(white(F) ** 2, axis=1))), 6)
    1.0
    """

    mean: FloatArray
    matrix: FloatArray
    energy: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, features: FloatArray) -> Whitening:
        """Whitening of public features."""
        mean = features.mean(axis=0)
        centred = features - mean
        variances, axes = np.linalg.eigh(centred.T @ centred / len(centred))
        variances = np.maximum(variances, 0.0)
        scales = (variances + (_RIDGE * variances.mean() or 1.0)) ** -0.5
        energy = variances * scales**2
        whole = float(energy.sum()) or 1.0
        roots = np.sqrt(variances)
        spread = roots / (roots.sum() or 1.0)
        return cls(mean, axes * (scales / np.sqrt(whole)), energy / whole, spread)

    def __call__(self, features: FloatArray) -> FloatArray:
        """Of shape (n, p)."""
        return np.asarray((features - self.mean) @ self.matrix)
