"""Coordinates of the private path in regression: columns, differences of experts, waves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .experts import Waves
from .trees import Array

__all__ = ["PathFeatures", "Ripples", "Whitening", "differences"]

_RATIO, _SEED = 0.5, 11
_SPREAD = 1000.0  # columns whose standard deviations differ by more are in units of their own
_REACH = 3.0  # standard deviations that a ripple is cut at
_RIDGE = 0.03  # of the whitening, in units of the mean variance


def differences(scores: Array, label: float) -> Array:
    """Experts against the first one, and the first against the mean label.

    Examples
    --------
    >>> differences(np.array([[1.0, 4.0]]), label=0.5)
    array([[3. , 0.5]])
    """
    return np.hstack([scores[:, 1:] - scores[:, :1], scores[:, :1] - label])


@dataclass(frozen=True, eq=False)
class Ripples:
    """Principal parts of Fourier features that are not linear in the columns.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> ripples = Ripples.of(X, most=5, size=1.0)
    >>> bool(np.abs(X.T @ ripples(X)).max() / 200 < 0.1), ripples.first(3)(X).shape
    (True, (200, 3))
    """

    waves: Waves
    line: Array
    axes: Array
    reach: Array

    @classmethod
    def of(cls, X: Array, *, most: int, size: float) -> Ripples:
        """The ``most`` largest of them, the first with the standard deviation ``size``."""
        waves = Waves.of(X, ratio=_RATIO, seed=_SEED)
        rows, features = _with_one(waves, X), waves(X)
        line = np.asarray(np.linalg.lstsq(rows, features, rcond=None)[0], dtype=np.float64)
        rest = features - rows @ line
        energy, axes = np.linalg.eigh(rest.T @ rest / len(rest))
        spread = np.sqrt(np.maximum(energy[::-1][:most], 1e-12))
        unit = size / spread[0]
        return cls(waves, line, axes[:, ::-1][:, :most] * unit, _REACH * spread * unit)

    def first(self, count: int) -> Ripples:
        """The first ones."""
        return replace(self, axes=self.axes[:, :count], reach=self.reach[:count])

    def __call__(self, X: Array) -> Array:
        """Of shape (n, count)."""
        rest = self.waves(X) - _with_one(self.waves, X) @ self.line
        return np.clip(rest @ self.axes, -self.reach, self.reach)


def _with_one(waves: Waves, X: Array) -> Array:
    return np.column_stack([waves.standardised(X), np.ones(len(X))])


@dataclass(frozen=True, eq=False)
class PathFeatures:
    """Features of the path: columns, differences of experts, ripples if there are any.

    Parameters
    ----------
    label : float
        Mean public label.
    column_scale : ndarray of shape (d,)
    score_scale : ndarray of shape (K - 1,)
    ripples : Ripples or None

    Examples
    --------
    >>> features = PathFeatures(0.0, np.ones(2), np.ones(1), None)
    >>> features(np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]]))
    array([[1., 2., 2.]])
    """

    label: float
    column_scale: Array
    score_scale: Array
    ripples: Any

    @classmethod
    def of(cls, X: Array, scores: Array, y: Array, *, ripples: int) -> PathFeatures:
        """Features of public rows with (cross-fitted) scores."""
        center, spread = X.mean(axis=0), X.std(axis=0)
        varying = spread > 1e-12 * np.abs(center)
        known = spread[varying]
        scale = np.ones(X.shape[1])
        if known.size and known.max() > _SPREAD * known.min():
            scale = np.where(varying, spread, 1.0)
        size = float(np.sqrt((X / scale).var(axis=0).mean())) or 1.0
        label = float(y.mean())
        apart = differences(scores, label)[:, :-1].std(axis=0)
        least = 1e-6 * (float(y.std()) or 1.0)
        waves = Ripples.of(X, most=ripples, size=size) if ripples else None
        return cls(label, scale, size / np.maximum(apart, least), waves)

    def __call__(self, X: Array, scores: Array) -> Array:
        """Of shape (n, p)."""
        parts = [
            X / self.column_scale,
            differences(scores, self.label)[:, :-1] * self.score_scale,
        ]
        if self.ripples is not None:
            parts.append(self.ripples(X))
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

    mean: Array
    matrix: Array
    energy: Array
    spread: Array

    @classmethod
    def of(cls, features: Array) -> Whitening:
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

    def __call__(self, features: Array) -> Array:
        """Of shape (n, p)."""
        return np.asarray((features - self.mean) @ self.matrix)
