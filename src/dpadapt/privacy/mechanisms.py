"""The mechanisms: how a hidden statistic becomes a released one.

Each takes a noise source, the un-noised value and a noise scale. They are pure mathematics; who
may call them, with which scale, and what it costs is the session's business.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .events import FloatArray
from .noise import NoiseSource

__all__ = [
    "from_svec",
    "gaussian",
    "gaussian_process",
    "gaussian_process_slack",
    "laplace",
    "laplace_argmin",
    "noisy_argmin",
    "random_runs",
    "randomised_response",
    "svec",
    "symmetric_gaussian",
]

NUGGET = 1e-6  # of the mean variance, on the diagonal of every Gaussian-process covariance


def gaussian(source: NoiseSource, value: FloatArray, scale: float) -> FloatArray:
    """Add independent N(0, scale^2) to every entry.

    With l2-sensitivity D this is mu-GDP with mu = D / scale.

    Examples
    --------
    >>> from dpadapt.privacy.noise import SeededNoise
    >>> gaussian(SeededNoise(0), np.zeros(2), scale=1.0).shape
    (2,)
    """
    return source.add_gaussian(np.asarray(value, dtype=np.float64), scale)


def symmetric_gaussian(source: NoiseSource, value: FloatArray, scale: float) -> FloatArray:
    """Add symmetric Gaussian noise that is isotropic in the Frobenius norm.

    The noise is N(0, scale^2) on the diagonal and N(0, scale^2 / 2) off it, each off-diagonal pair
    sharing one draw: exactly the Gaussian mechanism on svec(value), and svec is an isometry from
    the Frobenius to the Euclidean norm. With Frobenius sensitivity D it is mu-GDP, mu = D / scale.
    Full noise on both triangles would be a waste of sqrt(2); independent triangles, averaged by an
    attacker, would be a leak. What is rounded is the sum of svec(value) and its noise, a release of
    its own; the matrix is computed from that alone.

    Examples
    --------
    >>> from dpadapt.privacy.noise import SeededNoise
    >>> noisy = symmetric_gaussian(SeededNoise(0), np.eye(3), scale=0.1)
    >>> bool((noisy == noisy.T).all())
    True
    """
    if value.ndim != 2 or value.shape[0] != value.shape[1]:
        raise ValueError(f"a symmetric matrix must be square; got shape {value.shape}.")
    # a projection, which brings no two matrices further apart: svec is an isometry on its image
    return from_svec(source.add_gaussian(svec((value + value.T) / 2), scale))


def laplace(source: NoiseSource, value: FloatArray, scale: float) -> FloatArray:
    """Add independent Laplace(scale) to every entry: (l1-sensitivity / scale)-DP.

    Examples
    --------
    >>> from dpadapt.privacy.noise import SeededNoise
    >>> laplace(SeededNoise(0), np.zeros(2), scale=1.0).shape
    (2,)
    """
    return source.add_laplace(np.asarray(value, dtype=np.float64), scale)


def noisy_argmin(source: NoiseSource, scores: FloatArray, scale: float) -> int:
    """Exponential mechanism: index i with probability proportional to exp(-scores[i] / scale).

    Sampled as argmin(scores - scale * Gumbel); argmin(scores + scale * Gumbel) would be no
    exponential mechanism at all. With range sensitivity R (largest change of a difference of two
    scores) it is R/scale-bounded-range.

    Examples
    --------
    >>> from dpadapt.privacy.noise import SeededNoise
    >>> noisy_argmin(SeededNoise(0), np.array([5.0, 0.0, 5.0]), scale=0.1)
    1
    """
    return source.noisy_argmin(np.asarray(scores, dtype=np.float64), scale)


def laplace_argmin(source: NoiseSource, scores: FloatArray, scale: float) -> int:
    """Report-noisy-min: the least of scores with independent Laplace(scale) noise.

    With *range* sensitivity R it is R/scale-DP (twice the l-infinity sensitivity is always enough;
    once is enough for monotone scores only). The exponential mechanism costs less: this is
    the form that papers print. The noisy scores are not rounded: on a grid of g the proof would
    give (R + g)/scale, because equal scores are decided by their order.

    Examples
    --------
    >>> from dpadapt.privacy.noise import SeededNoise
    >>> laplace_argmin(SeededNoise(0), np.array([5.0, 0.0, 5.0]), scale=0.1)
    1
    """
    return source.laplace_argmin(np.asarray(scores, dtype=np.float64), scale)


def randomised_response(
    source: NoiseSource, answers: NDArray[np.int64], categories: int, epsilon: float
) -> NDArray[np.int64]:
    """Keep each answer with probability e^eps / (e^eps + k - 1), else a uniform other one.

    Each answer is epsilon-DP on its own.

    Examples
    --------
    >>> from dpadapt.privacy.noise import SeededNoise
    >>> randomised_response(SeededNoise(0), np.array([0, 1, 2]), categories=3, epsilon=50.0)
    array([0, 1, 2])
    """
    answers = np.asarray(answers, dtype=np.int64)
    lie = (categories - 1) / (math.expm1(min(epsilon, 700.0)) + categories)
    lie = math.ceil(lie * 2**53) / 2**53  # the grain of a uniform float64; never too few lies
    lies = source.uniform(answers.size).reshape(answers.shape) < lie
    other = source.uniform(answers.size).reshape(answers.shape) * (categories - 1)
    shift = 1 + np.minimum(other.astype(np.int64), categories - 2)
    return np.where(lies, (answers + shift) % categories, answers)


def gaussian_process(
    source: NoiseSource, values: FloatArray, covariance: FloatArray, scale: float
) -> FloatArray:
    """Release <w, phi(z_t)> for a whole pool of points z_t with correlated Gaussian noise.

    ``covariance`` is the kernel matrix K of the pool. The noise is scale^2 (K + jI) with the fixed
    nugget j = 1e-6 tr(K)/T. With w of sensitivity D in the kernel's own norm, the Mahalanobis
    distance of the two means is at most D, whatever the number of points: mu = D / scale (plus
    :func:`gaussian_process_slack` for rounding). Without the nugget, or in float32, rounding is
    amplified by the near-singular K and the release leaks: both are refused.

    Examples
    --------
    >>> from dpadapt.privacy.noise import SeededNoise
    >>> K = np.exp(-0.5 * (np.arange(4)[:, None] - np.arange(4)) ** 2.0)
    >>> gaussian_process(SeededNoise(0), np.zeros(4), K, scale=1.0).shape
    (4,)
    """
    if covariance.dtype != np.float64 or values.dtype != np.float64:
        raise TypeError("values and covariance must be float64: rounding in float32 leaks.")
    if covariance.shape != (values.size, values.size):
        raise ValueError(
            f"covariance must be {values.size} x {values.size}, one row and column for each "
            f"value; got {' x '.join(map(str, covariance.shape))}."
        )
    nugget = NUGGET * float(np.trace(covariance)) / values.size
    root = np.linalg.cholesky(covariance + nugget * np.eye(values.size))
    # noise is added to the whitened values, where it is isotropic: any source serves. The sum is
    # rounded there, and is a release of its own; the root is public and comes after it
    whitened = np.linalg.solve(root, values)
    return np.asarray(root @ source.add_gaussian(whitened, scale), dtype=np.float64)


def gaussian_process_slack(points: int, largest_value: float, mean_variance: float) -> float:
    """What rounding of the values adds to the sensitivity of :func:`gaussian_process`.

    Twice u sqrt(T) max|p| / sqrt(nugget), u a bound on the relative error of a value.

    Examples
    --------
    >>> gaussian_process_slack(100, 1.0, 1.0) < 1e-9
    True
    """
    relative_error = 64 * float(np.finfo(np.float64).eps)
    return (
        2 * relative_error * math.sqrt(points) * largest_value / math.sqrt(NUGGET * mean_variance)
    )


def random_runs(uniform: float, shape: float, gamma: float) -> int:
    """Number of runs at a quantile of the truncated negative binomial law, 1 or more.

    P(K = k) is proportional to (1 - gamma)^k times the product over l < k of (l + shape) / (l + 1).

    Examples
    --------
    >>> random_runs(0.0, shape=0.0, gamma=0.1), random_runs(0.999, shape=1.0, gamma=0.1)
    (1, 66)
    """
    if shape == 0:
        mass = (1 - gamma) / np.log(1 / gamma)
    else:
        mass = shape * (1 - gamma) * gamma**shape / (1 - gamma**shape)
    k, below = 1, float(mass)
    while below < uniform and mass > 1e-18:
        mass *= (1 - gamma) * (k + shape) / (k + 1)
        below += float(mass)
        k += 1
    return k


def svec(matrix: FloatArray) -> FloatArray:
    """Upper triangle of a symmetric matrix as a vector, off-diagonals times sqrt(2).

    An isometry: the Euclidean norm of the vector is the Frobenius norm of the matrix.

    Examples
    --------
    >>> M = np.array([[1.0, 2.0], [2.0, 3.0]])
    >>> bool(np.isclose(np.linalg.norm(svec(M)), np.linalg.norm(M)))
    True
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    rows, columns = np.triu_indices(matrix.shape[0])
    return np.asarray(matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2)))


def from_svec(vector: FloatArray) -> FloatArray:
    """Inverse of :func:`svec`.

    Examples
    --------
    >>> M = np.array([[1.0, 2.0], [2.0, 3.0]])
    >>> bool(np.allclose(from_svec(svec(M)), M))
    True
    """
    size = (math.isqrt(8 * vector.size + 1) - 1) // 2
    rows, columns = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = vector / np.where(rows == columns, 1.0, math.sqrt(2))
    matrix[columns, rows] = matrix[rows, columns]
    return matrix
