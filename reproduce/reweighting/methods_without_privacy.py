"""The methods without privacy of paper 001's tables, each from a split to a fitted predictor.

They choose their settings by the error on the target's validation rows, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpadapt.learning.checks import public_scaling

from .splits import Split

__all__ = [
    "Fit",
    "adaptation",
    "discrepancy_minimisation",
    "error",
    "mean_matching",
    "pooled",
    "source_only",
    "target_only",
]

Array = NDArray[np.float64]
Predictor = Callable[[Array], Array]

RIDGES = tuple(10.0**power for power in range(-5, 2))  # of standardised rows, per unit of weight
STRENGTHS = (0.01, 0.1, 1.0)  # scikit-learn's C
ALPHAS = (0.0, 0.1, 0.3, 0.5, 0.9)
KAPPAS = (0.1, 1.0)  # times the mean loss; much larger ones change no weight
ROUNDS = 2
_DISTANCES = 200  # target rows whose distances set the kernel's width
GAP, PASSES = 0.02, 100  # where discrepancy minimisation ends
WIDTHS = (0.5, 1.0)  # of the kernel, times the median distance
LANDMARKS, MATCH = 256, 0.01  # how exactly kernel means are matched


class Fit(NamedTuple):
    """A fitted predictor and its privacy.

    Attributes
    ----------
    predict : callable
    epsilon : float
        What the guarantee says at the delta that was asked for; infinite without privacy.

    Examples
    --------
    >>> Fit(np.sum).epsilon
    inf
    """

    predict: Predictor
    epsilon: float = math.inf


def error(split: Split, predict: Predictor, part: str = "test") -> float:
    """Mean squared error, or share of wrong classes, on a part of the target.

    Examples
    --------
    >>> rows, labels = np.eye(2), np.ones(2)
    >>> split = Split(rows, labels, rows, labels, rows, labels, rows, labels, False, 0)
    >>> error(split, lambda X: np.zeros(len(X)))
    1.0
    """
    X, y = getattr(split, f"X_{part}"), getattr(split, f"y_{part}")
    found = predict(X)
    return float(np.mean(found != y) if split.classes else np.mean((found - y) ** 2))


def source_only(split: Split) -> Fit:
    """Trained on public rows; the strength of the penalty is chosen on the target.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> split = Split(X, X[:, 0], X, X[:, 0], X, X[:, 0], X, X[:, 0], False, 0)
    >>> round(error(split, source_only(split).predict), 4)
    0.0
    """
    return _weighted(split, split.X, split.y, np.ones(len(split.y)))


def target_only(split: Split) -> Fit:
    """Trained on the private rows, without privacy: the paper's unit of Table 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> split = Split(X, -X[:, 0], X, X[:, 0], X, X[:, 0], X, X[:, 0], False, 0)
    >>> round(error(split, target_only(split).predict), 4)
    0.0
    """
    rows, labels = split.X_private, split.y_private
    return _weighted(split, rows, labels, np.ones(len(labels)))


def pooled(split: Split) -> Fit:
    """Both samples, each with half of the weight, without privacy.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> split = Split(X, X[:, 0], X, X[:, 0], X, X[:, 0], X, X[:, 0], False, 0)
    >>> round(error(split, pooled(split).predict), 4)
    0.0
    """
    m, n = len(split.y), split.n
    rows, labels = np.vstack([split.X, split.X_private]), np.append(split.y, split.y_private)
    weights = (m + n) / 2 * np.append(np.full(m, 1 / m), np.full(n, 1 / n))
    return _weighted(split, rows, labels, weights)


def discrepancy_minimisation(split: Split) -> Fit:
    """Discrepancy minimisation without privacy (DM; Cortes and Mohri 2014).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> split = Split(X, X[:, 0], X, X[:, 0], X, X[:, 0], X, X[:, 0], False, 0)
    >>> round(error(split, discrepancy_minimisation(split).predict), 4)
    0.0
    """
    from dpadapt.discrepancy.minimisation import minimise_discrepancy

    rows = _scaling(split.X)
    target = rows(split.X_private)
    found = minimise_discrepancy(
        rows(split.X), target.T @ target / len(target), gap=GAP, max_iter=PASSES
    )
    return _weighted(split, split.X, split.y, len(split.y) * found.weights)


def mean_matching(split: Split) -> Fit:
    """Kernel mean matching without privacy (KMM; Huang et al. 2006), Gaussian kernel.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> split = Split(X, X[:, 0], X, X[:, 0], X, X[:, 0], X, X[:, 0], False, 0)
    >>> round(error(split, mean_matching(split).predict), 4)
    0.0
    """
    from dpadapt.papers.baselines.kernel_mean_matching import kernel_mean_matching

    rows = _scaling(split.X)
    source, target = rows(split.X)[:, :-1], rows(split.X_private)[:, :-1]
    sample = target[:_DISTANCES]
    distance = float(np.median(np.linalg.norm(sample[:, None] - sample, axis=2)))
    fits = []
    for width in WIDTHS:
        found = kernel_mean_matching(
            source, target, width=width * distance, landmarks=LANDMARKS, gap=MATCH
        )
        fits.append(_weighted(split, split.X, split.y, found.weights / found.weights.mean()))
    return _chosen(split, [fit.predict for fit in fits])


def adaptation(split: Split) -> Fit:
    r"""CnvxAdap, for classes NCnvxAdap: weights of public and private rows, without privacy.

    The paper's objective (with :math:`\kappa_2 = \kappa_\infty = 0`) is minimised over weights, in
    closed form, and over the predictor, in turns; :math:`\alpha`, :math:`\kappa_1` and the penalty
    are chosen on the validation rows. The offset of public losses is the labelled discrepancy; for
    classes, where that cannot be computed, the difference of the mean losses.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> split = Split(X, -X[:, 0], X, X[:, 0], X, X[:, 0], X, X[:, 0], False, 0)
    >>> round(error(split, adaptation(split).predict), 4)
    0.0
    """
    from dpadapt.papers.reweighting.objective import profile_weights

    m, n = len(split.y), split.n
    X, y = np.vstack([split.X, split.X_private]), np.append(split.y, split.y_private)
    kernel = _Penalised(split.classes, X, y)
    offset = np.append(np.full(m, _offset(split)), np.zeros(n))

    def candidates() -> Iterator[Predictor]:
        for alpha in ALPHAS:
            reference = np.append(np.full(m, alpha / m), np.full(n, (1 - alpha) / n))
            first = kernel.best(split, (m + n) * reference)
            yield first.predict
            for kappa in KAPPAS:
                found = first
                for _ in range(ROUNDS):
                    z = found.losses(X, y) + offset
                    _, weights = profile_weights(z, reference, kappa * float(reference @ z))
                    weights *= (m + n) / weights.sum()
                    found = kernel.fit(weights, first.strength)
                yield found.predict

    return _chosen(split, candidates())


def _weighted(split: Split, X: Array, y: Array, weights: Array) -> Fit:
    return Fit(_Penalised(split.classes, X, y).best(split, weights).predict)


def _offset(split: Split) -> float:
    """The labelled discrepancy of the two samples, over twice the norm of the public solution."""
    from dpadapt.papers.reweighting.labelled_discrepancy import (
        labelled_discrepancy,
        labelled_moment,
    )

    public = _Penalised(split.classes, split.X, split.y).best(split, np.ones(len(split.y)))
    if split.classes:
        own = public.losses(split.X, split.y).mean()
        return float(abs(public.losses(split.X_private, split.y_private).mean() - own))
    rows = _scaling(split.X)
    moments = (
        labelled_moment(rows(split.X), split.y),
        labelled_moment(rows(split.X_private), split.y_private),
    )
    return labelled_discrepancy(*moments, 2 * float(np.linalg.norm(public.coefficients)))


def _chosen(split: Split, candidates: Iterable[Predictor]) -> Fit:
    """The candidate with the least error on the validation rows."""
    return Fit(min(candidates, key=lambda predict: error(split, predict, "validation")))


@dataclass(frozen=True)
class _Trained:
    """A ridge or logistic regression of rows scaled by ``rows``."""

    classes: bool
    rows: Predictor
    coefficients: Array
    strength: float

    def predict(self, X: Array) -> Array:
        scores = self.rows(X) @ self.coefficients
        return (scores > 0).astype(float) if self.classes else scores

    def losses(self, X: Array, y: Array) -> Array:
        scores = self.rows(X) @ self.coefficients
        if self.classes:
            return np.asarray(np.logaddexp(0.0, -(2 * y - 1) * scores))
        return np.asarray((scores - y) ** 2)


class _Penalised:
    """Weighted ridge or logistic regressions of the same rows; weights have mean 1."""

    def __init__(self, classes: bool, X: Array, y: Array) -> None:
        self.classes, self.y = classes, y
        self.rows = _scaling(X)
        self.scaled = self.rows(X)

    def fit(self, weights: Array, strength: float) -> _Trained:
        if not self.classes:
            return self._ridges(weights, [strength])[0]
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=strength, max_iter=300)
        model.fit(self.scaled[:, :-1], self.y, sample_weight=weights)
        found = np.append(model.coef_[0], model.intercept_)
        return _Trained(True, self.rows, found, strength)

    def best(self, split: Split, weights: Array) -> _Trained:
        """The one whose strength suits the validation rows."""
        if self.classes:
            found = [self.fit(weights, strength) for strength in STRENGTHS]
        else:
            found = self._ridges(weights, RIDGES)
        return min(found, key=lambda each: error(split, each.predict, "validation"))

    def _ridges(self, weights: Array, ridges: Iterable[float]) -> list[_Trained]:
        scaled = self.scaled
        moment = (scaled * weights[:, None]).T @ scaled
        cross = scaled.T @ (weights * self.y)
        penalty = np.append(np.full(len(moment) - 1, weights.sum()), 0.0)
        return [
            _Trained(
                False,
                self.rows,
                np.asarray(np.linalg.lstsq(moment + np.diag(ridge * penalty), cross)[0]),
                ridge,
            )
            for ridge in ridges
        ]


def _scaling(X: Array) -> Predictor:
    """Standardise by the training rows, and add an intercept."""
    center, scale = public_scaling(X)
    return lambda rows: np.column_stack([(rows - center) / scale, np.ones(len(rows))])
