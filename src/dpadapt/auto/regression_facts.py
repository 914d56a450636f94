"""What public rows say before private ones are read: features, scales, clips, priors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning
from dpadapt.reweighting.residual_size import are_informative, ordinary

from .curves import Curves, Leaves, beats_line, curve_waves, first_trees, max_features
from .experts import FourierExpert, LinearExpert, Sum, Trees, Waves, column_units
from .regression_inference import (
    ErrorShapes,
)
from .stacking import PublicStack

_MOST_SPREAD = 1000.0  # columns whose standard deviations differ by more are in units of their own
_NO_UNIT = 1e300  # unit of a column that has one value only
_RIDGE = 0.03  # of the whitening, in units of the mean variance
_LEAST_DIRECTION = 1e-6  # of the stack, in mean errors: along shorter ones there is no line search
LOG2_RANGE = (-3.0, 4.0)
"""Range of the logarithm to the base 2 of an error, in units of the public mean error."""

_FAR = 1e6  # in largest public norms, or spreads of labels: only so that nothing overflows
_LEAST_ERROR = 1e-3  # in units of the labels' spread
_SMALL = 0.02  # smaller errors, in the same units, are not informative: no cell reaches so far
_LEAST_CURVES = 4
_PER_WAVE, _PER_LEAF = 20.0, 40.0  # of n mu
LEVEL_CLIPS = (1.5, 2.0, 3.0, 5.0, 8.0, 12.0)  # of means of errors, in mean errors


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
        wide = known.size and known.max() > _MOST_SPREAD * known.min()
        scale = spread if wide else np.ones(X.shape[1])
        size = float(np.sqrt(np.mean((known / scale[~constant]) ** 2))) if known.size else 1.0
        scale[constant] = _NO_UNIT
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


@dataclass(frozen=True, eq=False)
class RegressionFacts:
    """Public model, and scores of its experts for public rows that they had not seen.

    Parameters
    ----------
    model : PublicStack
    rows : ndarray of shape (m, d)
        Clipped public rows.
    y : ndarray of shape (m,)
    scores, shuffled_scores : ndarray of shape (m, K)
        Cross-fitted on folds that rehearse a shift, and on shuffled (exchangeable) ones.
    size : float, default=1
        How many times as large private errors are, where public ones are not informative.

    Examples
    --------
    >>> from dpadapt.auto import AutoRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> facts = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).public_facts(X, X[:, 0])
    >>> facts.rms < 0.1, facts.curvature > 0.4
    (True, True)
    """

    model: PublicStack
    rows: FloatArray
    y: FloatArray
    scores: FloatArray
    shuffled_scores: FloatArray
    size: float = 1.0

    @cached_property
    def label(self) -> float:
        """Mean label."""
        return float(self.y.mean())

    @cached_property
    def cleaning(self) -> Cleaning:
        """Private rows around the public mean; only what would overflow is clipped."""
        center = self.rows.mean(axis=0)
        largest = float(np.linalg.norm(self.rows - center, axis=1).max()) or 1.0
        spread = float(self.y.std()) or max(1.0, abs(self.label))
        reach = min(_FAR * spread, 1e300)
        labels = (max(self.label - reach, -1e300), min(self.label + reach, 1e300))
        return Cleaning(min(_FAR * largest, 1e300), center, label_range=labels)

    @cached_property
    def residuals(self) -> FloatArray:
        """Errors of the stack where its experts had not seen the rows."""
        return np.asarray(self.y - self.scores @ self.model.weights)

    @cached_property
    def residuals_informative(self) -> bool:
        """Whether public errors say how large private ones are."""
        shuffled = self.y - self.shuffled_scores @ self.model.weights
        return are_informative(shuffled, self.y, small=_SMALL)

    @cached_property
    def planning_residuals(self) -> FloatArray:
        """Errors to plan with, in units of which all releases are: ordinary if not informative."""
        if self.residuals_informative:
            return self.residuals
        return self.size * ordinary(self.residuals, self._least)

    @cached_property
    def _least(self) -> float:
        return _LEAST_ERROR * (float(self.y.std()) or 1.0)

    @cached_property
    def rms(self) -> float:
        """Root mean square error."""
        return max(float(np.sqrt(np.mean(self.planning_residuals**2))), self.size * self._least)

    @cached_property
    def mean_abs_error(self) -> float:
        """Mean absolute error to plan with: the unit of clips."""
        return max(float(np.abs(self.planning_residuals).mean()), self.size * self._least)

    def log2_errors(self, residuals: FloatArray) -> FloatArray:
        """Logarithms to the base 2 of errors in mean errors, before they are clipped."""
        return np.log2(np.abs(residuals) / self.mean_abs_error + 1e-9)

    @cached_property
    def mean_log2_error(self) -> float:
        """The mean logarithm if private errors are like public ones."""
        return float(np.clip(self.log2_errors(self.planning_residuals), *LOG2_RANGE).mean())

    @cached_property
    def optimism(self) -> float:
        """Half way, in logarithms to the base 2, to the mean error under shuffled folds."""
        if not self.residuals_informative:
            return 0.0
        shuffled = float(np.abs(self.y - self.shuffled_scores @ self.model.weights).mean())
        return 0.5 * float(np.log2(min(1.0, max(shuffled, self._least) / self.mean_abs_error)))

    @cached_property
    def shapes(self) -> ErrorShapes:
        """What a histogram of private errors would be, for any move and size."""
        return ErrorShapes.of(self.planning_residuals / self.mean_abs_error, optimism=self.optimism)

    def square_error(self, clip: float) -> float:
        """Mean square error if the mean error is ``clip``."""
        return float((clip / self.mean_abs_error * self.rms) ** 2)

    # the stack

    @cached_property
    def weight_direction(self) -> FloatArray:
        """From the public weights of the experts to equal ones; adds up to 0."""
        return np.asarray(1 / len(self.model.weights) - self.model.weights)

    @cached_property
    def weight_direction_square(self) -> float:
        """Mean square of what the whole way changes in predictions."""
        return float(np.mean((self.scores @ self.weight_direction) ** 2))

    @cached_property
    def weights_unequal(self) -> bool:
        """Whether the public weights differ from equal ones enough to matter."""
        return self.weight_direction_square > (_LEAST_DIRECTION * self.mean_abs_error) ** 2

    # the descent

    @cached_property
    def cells(self) -> Waves | Leaves | None:
        """What bends: waves, unless their expert was tried and did not beat the line; then leaves.

        Leaves are used where trees beat it, and nothing where neither does: the line is enough.
        """
        squares = np.mean((self.scores - self.y[:, None]) ** 2, axis=0)
        squares += np.mean((self.shuffled_scores - self.y[:, None]) ** 2, axis=0)
        experts = self.model.experts

        def least(*kinds: type) -> float:
            found = (
                each
                for each, expert in zip(squares, experts, strict=True)
                if isinstance(expert, kinds)
            )
            return float(min(found, default=np.nan))

        line, waves = least(LinearExpert), least(FourierExpert)
        if np.isnan(line) or np.isnan(waves) or beats_line(waves, line):
            return curve_waves(self.rows)
        trees = first_trees(experts)
        return Leaves.of(trees) if trees and beats_line(least(Trees, Sum), line) else None

    def features(self, precision: float) -> PathFeatures:
        """Coordinates of the path, with as many curves as n mu pays for."""
        count = self.curves(precision)
        return PathFeatures.of(self.rows, self.scores, self.y, cells=self.cells, count=count)

    def curves(self, precision: float) -> int:
        """How many curves n mu pays for."""
        per = _PER_WAVE if isinstance(self.cells, Waves) else _PER_LEAF
        return 0 if self.cells is None else max_features(precision, per, least=_LEAST_CURVES)

    @cached_property
    def curvature(self) -> float:
        """Part of the curvature that a clip at the mean error leaves."""
        return max(float(np.mean(np.abs(self.planning_residuals) < self.mean_abs_error)), 0.05)

    @cached_property
    def clip_bias(self) -> dict[float, float]:
        """Bias of a mean of errors clipped at k mean errors, in mean errors, by k."""
        residuals, unit = self.planning_residuals, self.mean_abs_error
        middle = float(np.median(residuals))
        for _ in range(30):  # Huber's centre: where a descent with this clip ends
            inside = max(float(np.mean(np.abs(residuals - middle) < unit)), 0.05)
            middle += float(np.clip(residuals - middle, -unit, unit).mean()) / inside
        rest = residuals - middle
        mean = float(rest.mean())
        return {
            k: (mean - float(np.clip(rest, -k * unit, k * unit).mean())) / unit for k in LEVEL_CLIPS
        }
