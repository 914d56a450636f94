"""Kernel mean matching (Huang et al. 2007): weights under which two samples have one mean.

    minimise  MMD^2(b) = | (1/m) sum_i b_i phi(x_i) - (1/n) sum_j phi(t_j) |^2
    s.t.      0 <= b_i <= bound,   |mean(b) - 1| <= slack,

with phi the feature map of a Gaussian kernel. Not private: the target rows are read in the clear.

The m x m kernel matrix K is never formed. Both means are projected on the span of a few hundred
landmarks, rows of both samples (Nystrom features F): K = F F^T + E with E positive semi-definite,
of which the diagonal, known exactly, is kept in the problem. The projected problem lies *below* the
true one everywhere, so with a Frank-Wolfe gap it gives a lower bound on the true minimum: weights
come with a certificate, whatever the landmarks and whenever the optimiser stopped. The MMD of the
result is that of the kernel itself, computed block by block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from dpadapt import _validate as validate
from dpadapt._types import FloatArray

from .non_private import WeightedClassifier, WeightedRegressor

_BLOCK_CELLS = 1 << 21  # of the kernel matrix, that are in memory at a time
_ROUNDING = 1e-13  # directions with a smaller share of the kernel matrix are none


def kernel(a: FloatArray, b: FloatArray, gamma: float) -> FloatArray:
    """Gaussian kernel of all pairs of rows."""
    squares = np.add.outer(np.einsum("ij,ij->i", a, a), np.einsum("ij,ij->i", b, b))
    squares -= 2 * (a @ b.T)
    np.maximum(squares, 0.0, out=squares)
    squares *= -gamma
    return np.exp(squares, out=squares)


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    size = max(1, _BLOCK_CELLS // max(1, columns))
    return (slice(start, start + size) for start in range(0, rows, size))


def kernel_means(rows: FloatArray, others: FloatArray, gamma: float) -> FloatArray:
    """Mean of k(x, t) over the others, for every row."""
    return np.concatenate(
        [kernel(rows[cut], others, gamma).mean(axis=1) for cut in _blocks(len(rows), len(others))]
    )


def kernel_squares(rows: FloatArray, weights: FloatArray, gamma: float) -> FloatArray:
    """b^T K b / m^2 for every column b of the weights, block by block, half of K by symmetry."""
    total = np.zeros(weights.shape[1])
    for cut in _blocks(len(rows), len(rows)):
        rest = weights[cut.start :].copy()
        rest[cut.stop - cut.start :] *= 2
        part = kernel(rows[cut], rows[cut.start :], gamma) @ rest
        total += np.einsum("ij,ij->j", weights[cut], part)
    return total / len(rows) ** 2


class Nystrom:
    """Coordinates of the projection on the span of landmarks."""

    diagonal = 1.0  # k(x, x)

    def __init__(self, rows: FloatArray, others: FloatArray, gamma: float, size: int) -> None:
        from_others = min(len(others), max(size // 2, size - len(rows)))
        picked = [_spread(others, from_others), _spread(rows, size - from_others)]
        self.landmarks, self.gamma = np.concatenate(picked), gamma
        values, vectors = np.linalg.eigh(kernel(self.landmarks, self.landmarks, gamma))
        kept = values > _ROUNDING * len(values)
        self.map = vectors[:, kept] / np.sqrt(values[kept])

    def __call__(self, rows: FloatArray) -> FloatArray:
        return kernel(rows, self.landmarks, self.gamma) @ self.map


class FourierMap:
    """Random Fourier features (Rahimi, Recht 2007): sqrt(2/D) cos(x . w + phase)."""

    diagonal = 0.0  # nothing beside the features counts

    def __init__(self, rows: FloatArray, others: FloatArray, gamma: float, size: int) -> None:
        rng = np.random.default_rng(0)
        self.waves = math.sqrt(2 * gamma) * rng.standard_normal((rows.shape[1], size))
        self.phases = rng.uniform(0.0, 2 * math.pi, size)

    def __call__(self, rows: FloatArray) -> FloatArray:
        size = len(self.phases)
        return np.asarray(math.sqrt(2 / size) * np.cos(rows @ self.waves + self.phases))


def _spread(rows: FloatArray, size: int) -> FloatArray:
    """So many of the rows, evenly through them; all where there are no more."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(size, len(rows))).astype(int))]


_CHECK = 20  # steps between two looks at the certificate


@dataclass(frozen=True)
class MatchingSolution:
    """Weights of the source rows, and their certificate.

    Attributes
    ----------
    weights : ndarray of shape (m,)
        Of mean about 1, an estimate of the density ratio.
    mmd : float
        Maximum mean discrepancy that is left: of the kernel itself, or of the random features.
    uniform_mmd : float
        The same for weights that are all 1.
    lower_bound : float
        No weights that satisfy the constraints have a smaller one (0 where that says nothing).
    iterations : int

    Examples
    --------
    >>> solution = kernel_mean_matching([[0.0], [1.0]], [[1.0]], width=1.0)
    >>> bool(solution.lower_bound <= solution.mmd < solution.uniform_mmd)
    True
    """

    weights: FloatArray
    mmd: float
    uniform_mmd: float
    lower_bound: float
    iterations: int


def kernel_mean_matching(
    source: ArrayLike,
    target: ArrayLike,
    *,
    width: float | None = None,
    bound: float = 1000.0,
    slack: float | None = None,
    features: int | None = None,
    landmarks: int = 256,
    gap: float = 1e-3,
    max_iter: int = 200,
) -> MatchingSolution:
    """Weights of the source rows that match the kernel mean of the target rows.

    Parameters
    ----------
    source : array-like of shape (m, d)
    target : array-like of shape (n, d)
        Plain rows, read in the clear: this is no private method.
    width : float, optional
        Of the kernel exp(-|x - x'|^2 / (2 width^2)). By default the root of d/2 times the mean
        variance of a source column.
    bound : float, default=1000
        Largest weight.
    slack : float, optional
        How far the mean of the weights may be from 1; by default 1 - 1/sqrt(m).
    features : int, optional
        Use so many random Fourier features (a fixed draw) in the place of the kernel.
    landmarks : int, default=256
        Most rows that the kernel's features are taken from; m * landmarks numbers are kept. With
        m + n or more nothing is approximated.
    gap : float, default=0.001
        Stop when the MMD is certified to be this near to its minimum, in parts of the MMD of equal
        weights.
    max_iter : int, default=200

    Returns
    -------
    MatchingSolution

    Notes
    -----
    Accelerated projected gradient with restarts; the projection on box and slab is exact.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> solution = kernel_mean_matching(rng.normal(size=(500, 1)), rng.normal(1, 0.5, (400, 1)))
    >>> solution.mmd < 0.02 * solution.uniform_mmd
    True
    """
    rows = check_array(source, dtype=np.float64, input_name="source")
    wanted = check_array(target, dtype=np.float64, input_name="target")
    if rows.shape[1] != wanted.shape[1]:
        raise ValueError(
            f"target has {wanted.shape[1]} columns, source {rows.shape[1]}; give both the same."
        )
    m = len(rows)
    slack = 1 - 1 / math.sqrt(m) if slack is None else validate.non_negative("slack", slack)
    validate.count("max_iter", max_iter)
    gamma = _precision(rows, width)
    box = _Box(m, validate.positive("bound", bound), slack)
    make = FourierMap if features is not None else Nystrom
    size = validate.count("landmarks", landmarks) if features is None else features
    phi = make(rows, wanted, gamma, validate.count("features", size))
    problem = _Problem(phi(rows), phi(wanted).mean(axis=0), phi.diagonal)
    weights, lower, steps = _minimise(problem, box, validate.positive("gap", gap), max_iter)
    both = np.column_stack([weights, np.ones(m)])
    if features is None:
        pull = kernel_means(rows, wanted, gamma)
        squares = kernel_squares(rows, both, gamma) - 2 * (pull @ both) / m
        squares += kernel_means(wanted, wanted, gamma).mean()
    else:
        squares = np.array([problem.projected(b)[0] for b in both.T])
    mmd, uniform = np.sqrt(np.maximum(squares, 0.0)).tolist()
    return MatchingSolution(weights, mmd, uniform, min(math.sqrt(max(0.0, lower)), mmd), steps)


@dataclass(frozen=True)
class _Box:
    """The constraints: 0 <= b <= bound, |mean(b) - 1| <= slack."""

    size: int
    bound: float
    slack: float

    def __post_init__(self) -> None:
        if self.bound < 1 - self.slack:
            raise ValueError(f"bound {self.bound:g} leaves no weights of mean 1 within the slack.")

    @property
    def sums(self) -> tuple[float, float]:
        """Least and largest sum of weights."""
        least = self.size * max(0.0, 1 - self.slack)
        return least, self.size * min(1 + self.slack, self.bound)

    def project(self, point: FloatArray) -> FloatArray:
        """Return the nearest point: clip(point - shift), with the shift that brings the sum in."""
        inside = np.clip(point, 0.0, self.bound)
        least, most = self.sums
        total = float(inside.sum())
        if least <= total <= most:
            return inside
        return np.clip(point - self._shift(point, least if total < least else most), 0, self.bound)

    def _shift(self, point: FloatArray, total: float) -> float:
        """Root of the falling, piecewise linear sum(clip(point - shift)) - total."""
        low, high = float(point.min()) - self.bound, float(point.max())
        shift = 0.0 if low < 0.0 < high else (low + high) / 2
        for _ in range(200):
            moved = point - shift
            free = int(((moved > 0) & (moved < self.bound)).sum())
            excess = float(np.clip(moved, 0.0, self.bound).sum()) - total
            if abs(excess) <= 1e-12 * total:
                break
            low, high = (shift, high) if excess > 0 else (low, shift)
            newton = shift + excess / free if free else math.nan
            shift = newton if low < newton < high else (low + high) / 2
        return shift

    def least(self, slope: FloatArray) -> float:
        """Minimum of slope . b over the constraints, by filling the cheapest weights first."""
        low, high = self.sums
        values = np.sort(slope)
        filled = np.clip(high - self.bound * np.arange(self.size), 0.0, self.bound)
        needed = np.clip(low - self.bound * np.arange(self.size), 0.0, self.bound)
        return float(values @ np.where(values < 0, filled, needed))


@dataclass(frozen=True)
class _Problem:
    """Projected squared MMD |F^T b / m - mean|^2, and f with b^T diag(E) b / m^2 in addition."""

    factor: FloatArray
    mean: FloatArray
    kernel_diagonal: float

    @cached_property
    def rest(self) -> FloatArray:
        """Diagonal of E."""
        inside = np.einsum("ij,ij->i", self.factor, self.factor)
        return np.maximum(self.kernel_diagonal - inside, 0.0)

    def projected(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Value and slope without the diagonal."""
        m = len(weights)
        left = weights @ self.factor / m - self.mean
        return float(left @ left), (2 / m) * (self.factor @ left)

    def slope(self, weights: FloatArray) -> FloatArray:
        return self.projected(weights)[1] + (2 / len(weights) ** 2) * self.rest * weights

    def step(self) -> float:
        """One over the largest curvature of f."""
        m, d = self.factor.shape
        gram = self.factor.T @ self.factor if d <= m else self.factor @ self.factor.T
        curvature = float(np.linalg.eigvalsh(gram)[-1]) + float(self.rest.max())
        return m * m / (2 * curvature) if curvature > 0 else 1.0


def _minimise(
    problem: _Problem, box: _Box, gap: float, max_iter: int
) -> tuple[FloatArray, float, int]:
    """Accelerated projected gradient; returns weights, lower bound on f, and steps."""
    step = problem.step()
    point = box.project(np.ones(box.size))
    ahead, slope, momentum = point, problem.slope(point), 1.0
    uniform, lower = math.sqrt(problem.projected(point)[0]), 0.0
    for done in range(1, max_iter + 1):
        new = box.project(ahead - step * slope)
        if momentum > 1 and float(slope @ (new - point)) > 0:  # overshot: start again from here
            ahead, momentum = point, 1.0
            new = box.project(ahead - step * problem.slope(ahead))
        grown = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / grown * (new - point)
        point, momentum = new, grown
        slope = problem.slope(ahead)
        if done % _CHECK == 0 or done == max_iter:
            value, down = problem.projected(point)
            lower = max(lower, value - float(down @ point) + box.least(down))
            if math.sqrt(value) - math.sqrt(lower) <= gap * uniform:
                break
    return point, lower, done


def _precision(rows: FloatArray, width: float | None) -> float:
    """Gamma of exp(-gamma |x - x'|^2)."""
    if width is not None:
        return 0.5 / validate.positive("width", width) ** 2
    variance = float(rows.var(axis=0).mean()) * rows.shape[1]
    return 1 / variance if variance > 0 else 1.0


class KMMRegressor(WeightedRegressor):
    """Ridge regression with kernel mean matching weights. No private method: it keeps no secret.

    Parameters
    ----------
    width, bound, landmarks : float, float, int
        As for :func:`kernel_mean_matching`, on columns standardised by the source.

    Attributes
    ----------
    weights_ : ndarray of shape (m,)
    coef_ : ndarray of shape (d,)
    intercept_ : float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> model = KMMRegressor().fit(X, X[:, 0] ** 2, target=rng.normal(1.0, 0.3, size=(300, 1)))
    >>> bool(model.coef_[0] > 1)
    True
    """

    def __init__(
        self, *, width: float | None = None, bound: float = 1000.0, landmarks: int = 256
    ) -> None:
        self.width = width
        self.bound = bound
        self.landmarks = landmarks

    def _weights(self, rows: FloatArray, target: FloatArray) -> FloatArray:
        return _match(self, rows, target)


class KMMClassifier(WeightedClassifier):
    """Logistic regression with kernel mean matching weights. No private method.

    Parameters
    ----------
    width, bound, landmarks : float, float, int
        As for :func:`kernel_mean_matching`, on columns standardised by the source.
    classes : sequence, optional
        All class labels; by default those of the source.

    Attributes
    ----------
    weights_ : ndarray of shape (m,)
    classes_ : ndarray
    coef_, intercept_ : ndarray

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> target = rng.normal(1.0, 0.3, size=(300, 1))
    >>> model = KMMClassifier().fit(X, np.abs(X[:, 0] - 0.5) > 0.5, target=target)
    >>> model.predict([[2.0], [0.5]])
    array([ True, False])
    """

    def __init__(
        self,
        *,
        width: float | None = None,
        bound: float = 1000.0,
        landmarks: int = 256,
        classes: Any = None,
    ) -> None:
        self.width = width
        self.bound = bound
        self.landmarks = landmarks
        self.classes = classes

    def _weights(self, rows: FloatArray, target: FloatArray) -> FloatArray:
        return _match(self, rows, target)


def _match(model: KMMRegressor | KMMClassifier, rows: FloatArray, target: FloatArray) -> FloatArray:
    return kernel_mean_matching(
        rows, target, width=model.width, bound=model.bound, landmarks=model.landmarks
    ).weights
