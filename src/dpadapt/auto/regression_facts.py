"""What public rows say about the errors of the public model: scales, clips, priors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning
from dpadapt.reweighting.residual_size import ordinary, residuals_tell

from .curves import Leaves, affordable, curve_waves, first_trees, worth
from .experts import Fourier, Linear, Sum, Waves
from .path_features import PathFeatures
from .public_model import PublicModel
from .regression_errors import ErrorShapes
from .trees import Trees

OCTAVES = (-3.0, 4.0)
"""Range of the logarithm of an error, in units of the public mean error."""

_FAR = 1e6  # in largest public norms, or spreads of labels: only so that nothing overflows
_LEAST_ERROR = 1e-3  # in units of the labels' spread
_SMALL = 0.02  # smaller errors than that, in the same units, do not tell: no cell reaches so far
_LEAST_CURVES = 4
_PER_WAVE, _PER_LEAF = 20.0, 40.0  # of n mu
LEVEL_CLIPS = (1.5, 2.0, 3.0, 5.0, 8.0, 12.0)  # of the looks at the level, in mean errors


@dataclass(frozen=True, eq=False)
class RegressionFacts:
    """Public model, and scores of its experts for public rows that they had not seen.

    Parameters
    ----------
    model : PublicModel
    rows : ndarray of shape (m, d)
        Cut public rows.
    y : ndarray of shape (m,)
    scores, easy : ndarray of shape (m, K)
        Under the folds that rehearse a shift, and under shuffled ones.
    size : float, default=1
        How many times as large private errors are, where public ones do not tell and a look does.

    Examples
    --------
    >>> from dpadapt.auto import AutoRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> facts = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).public_facts(X, X[:, 0])
    >>> facts.rms < 0.1, facts.curvature > 0.4
    (True, True)
    """

    model: PublicModel
    rows: FloatArray
    y: FloatArray
    scores: FloatArray
    easy: FloatArray
    size: float = 1.0

    @cached_property
    def label(self) -> float:
        """Mean label."""
        return float(self.y.mean())

    @cached_property
    def cleaning(self) -> Cleaning:
        """Private rows around the public mean; only what would overflow is cut."""
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
    def tells(self) -> bool:
        """Whether private errors are about as large as public ones."""
        easy = self.y - self.easy @ self.model.weights
        return residuals_tell(easy, self.y, small=_SMALL)

    @cached_property
    def planned(self) -> FloatArray:
        """Errors to plan with, in units of which all releases are: ordinary if they do not tell."""
        if self.tells:
            return self.residuals
        return self.size * ordinary(self.residuals, self._least)

    @cached_property
    def _least(self) -> float:
        return _LEAST_ERROR * (float(self.y.std()) or 1.0)

    @cached_property
    def rms(self) -> float:
        """Root mean square error."""
        return max(float(np.sqrt(np.mean(self.planned**2))), self.size * self._least)

    @cached_property
    def mad(self) -> float:
        """Mean absolute error."""
        return max(float(np.abs(self.planned).mean()), self.size * self._least)

    def octaves(self, residuals: FloatArray) -> FloatArray:
        """Logarithms of errors, before they are cut."""
        return np.log2(np.abs(residuals) / self.mad + 1e-9)

    @cached_property
    def mean_octave(self) -> float:
        """What the mean logarithm is if private errors are like public ones."""
        return float(np.clip(self.octaves(self.planned), *OCTAVES).mean())

    @cached_property
    def optimism(self) -> float:
        """Half way, in octaves, to the mean error under shuffled folds."""
        if not self.tells:
            return 0.0
        easy = float(np.abs(self.y - self.easy @ self.model.weights).mean())
        return 0.5 * float(np.log2(min(1.0, max(easy, self._least) / self.mad)))

    @cached_property
    def shapes(self) -> ErrorShapes:
        """What a histogram of private errors would be, for any move and size."""
        return ErrorShapes.of(self.planned / self.mad, optimism=self.optimism)

    # the descent

    @cached_property
    def cells(self) -> Waves | Leaves | None:
        """What bends: waves, unless their expert was tried and did not beat the line; then leaves.

        Leaves are used where trees beat it, and nothing where neither does: the line is enough.
        """
        squares = np.mean((self.scores - self.y[:, None]) ** 2, axis=0)
        squares += np.mean((self.easy - self.y[:, None]) ** 2, axis=0)
        experts = self.model.experts

        def least(*kinds: type) -> float:
            found = (
                each
                for each, expert in zip(squares, experts, strict=True)
                if isinstance(expert, kinds)
            )
            return float(min(found, default=np.nan))

        line, waves = least(Linear), least(Fourier)
        if np.isnan(line) or np.isnan(waves) or worth(waves, line):
            return curve_waves(self.rows)
        trees = first_trees(experts)
        return Leaves.of(trees) if trees and worth(least(Trees, Sum), line) else None

    def features(self, precision: float) -> PathFeatures:
        """Coordinates of the path, with as many curves as n mu pays for."""
        per = _PER_WAVE if isinstance(self.cells, Waves) else _PER_LEAF
        count = 0 if self.cells is None else affordable(precision, per, least=_LEAST_CURVES)
        return PathFeatures.of(self.rows, self.scores, self.y, cells=self.cells, count=count)

    @cached_property
    def curvature(self) -> float:
        """Part of the curvature that a clip at the mean error leaves."""
        return max(float(np.mean(np.abs(self.planned) < self.mad)), 0.05)

    @cached_property
    def missed(self) -> dict[float, float]:
        """What a mean of errors clipped at k mean errors misses, in mean errors, by k."""
        residuals, mad = self.planned, self.mad
        middle = float(np.median(residuals))
        for _ in range(30):  # Huber's centre: where a descent with this clip ends
            inside = max(float(np.mean(np.abs(residuals - middle) < mad)), 0.05)
            middle += float(np.clip(residuals - middle, -mad, mad).mean()) / inside
        rest = residuals - middle
        mean = float(rest.mean())
        return {
            k: (mean - float(np.clip(rest, -k * mad, k * mad).mean())) / mad for k in LEVEL_CLIPS
        }
