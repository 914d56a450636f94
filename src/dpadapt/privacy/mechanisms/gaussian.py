"""Gaussian noise: on a value, on a symmetric matrix, on a function at a pool, inside a computation.

With l2-sensitivity D and noise of scale s, a release is exactly mu-GDP with mu = D / s, and so are
any number of them together with the root of the sum of squares (:class:`.events.GaussianEvent`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray

from ..accounting.events import Event
from ..core.hidden import Hidden
from ..core.mechanism import Noise
from ..core.noise import NoiseSource

NUGGET = 1e-6  # of the mean variance, on the diagonal of every Gaussian-process covariance


@dataclass(frozen=True)
class Gaussian(Noise):
    """Independent Gaussian noise on every number; the sensitivity is Euclidean.

    Examples
    --------
    >>> Gaussian("mean", sensitivity=0.1, dimension=3).weight
    1.0
    """

    adds: ClassVar[bool] = True

    def event(self, scale: float, source: NoiseSource) -> Event:
        """All releases together."""
        facts = (self.label, self.sensitivity, scale, self.dimension, self.count)
        return source.gaussian_event(*facts)

    def release(self, hidden: Hidden, scale: float, source: NoiseSource, **_: Any) -> FloatArray:
        """Value and noise."""
        return gaussian(source, hidden._value, scale)


def check_square(hidden: Hidden) -> None:
    """Refuse what cannot be a symmetric matrix, by its public shape."""
    if len(hidden.shape) != 2 or hidden.shape[0] != hidden.shape[1]:
        raise ValueError(f"a symmetric matrix must be square; got shape {hidden.shape}.")


@dataclass(frozen=True)
class SymmetricGaussian(Gaussian):
    """Noise on a symmetric matrix, isotropic in the Frobenius norm, which is that of sensitivity.

    Examples
    --------
    >>> SymmetricGaussian("second moment", sensitivity=0.1, dimension=9).adds
    True
    """

    def admit(self, hidden: Hidden, **public: Any) -> float:
        """One release of a square matrix."""
        check_square(hidden)
        return super().admit(hidden)

    def release(self, hidden: Hidden, scale: float, source: NoiseSource, **_: Any) -> FloatArray:
        """Matrix and noise."""
        return symmetric_gaussian(source, hidden._value, scale)

    def coordinates(self, value: FloatArray, **_: Any) -> FloatArray:
        """The upper triangle, as its norm measures it."""
        return svec(value)


@dataclass(frozen=True)
class GaussianPool(Gaussian):
    """Values of a function at a pool of points, with noise of the kernel's covariance.

    The sensitivity is one in the kernel's norm. Takes ``covariance=``, the kernel matrix.

    Examples
    --------
    >>> GaussianPool("answers", sensitivity=0.1, dimension=50).adds
    True
    """

    def admit(self, hidden: Hidden, *, covariance: FloatArray, **_: Any) -> float:  # type: ignore[override]
        """One release of as many values as the covariance has rows."""
        size = math.prod(hidden.shape)
        if covariance.dtype != np.float64 or covariance.shape != (size, size):
            raise ValueError(
                f"covariance must be {size} x {size} float64, a row and a column for each value; "
                f"got {' x '.join(map(str, covariance.shape))} {covariance.dtype}."
            )
        return super().admit(hidden)

    def stretch(self, hidden: Hidden, **_: Any) -> float:
        """No bound: a small covariance makes long what is short. Only a claim can tell."""
        return math.inf

    def release(
        self,
        hidden: Hidden,
        scale: float,
        source: NoiseSource,
        *,
        covariance: FloatArray | None = None,
        **_: Any,
    ) -> FloatArray:
        """Values and noise."""
        return gaussian_process(source, hidden._value, np.asarray(covariance), scale)

    def coordinates(self, value: FloatArray, *, covariance: FloatArray, **_: Any) -> FloatArray:  # type: ignore[override]
        """The whitened values."""
        return np.asarray(np.linalg.solve(_root(covariance), value))


@dataclass(frozen=True)
class GaussianInside(Gaussian):
    """Noise inside a computation (an objective with a random linear term), hidden as its result.

    For a proof that needs a density: the noise is not rounded, and nobody but ``function=`` sees
    it, which takes the hidden value and ``dimension`` independent normals of the scale. Its own
    sensitivity is that of the method's proof.

    Examples
    --------
    >>> GaussianInside("linear term", sensitivity=2.0, dimension=5).hides
    True
    """

    adds: ClassVar[bool] = False
    unbounded: ClassVar[bool] = True
    hides: ClassVar[bool] = True

    def admit(self, hidden: Hidden, **_: Any) -> float:
        """One draw of noise."""
        return 1

    def release(
        self, hidden: Hidden, scale: float, source: NoiseSource, *, function: Any = None, **_: Any
    ) -> FloatArray:
        """Result of the computation; the session keeps it hidden."""
        noise = scale * source.normals(self.dimension)
        return np.asarray(function(hidden._value, noise), dtype=np.float64)


def gaussian(source: NoiseSource, value: FloatArray, scale: float) -> FloatArray:
    """Add independent N(0, scale^2) to every entry.

    With l2-sensitivity D this is mu-GDP with mu = D / scale.

    Examples
    --------
    >>> from dpadapt.privacy.core.noise import SeededNoise
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
    >>> from dpadapt.privacy.core.noise import SeededNoise
    >>> noisy = symmetric_gaussian(SeededNoise(0), np.eye(3), scale=0.1)
    >>> bool((noisy == noisy.T).all())
    True
    """
    if value.ndim != 2 or value.shape[0] != value.shape[1]:
        raise ValueError(f"a symmetric matrix must be square; got shape {value.shape}.")
    # a projection, which brings no two matrices further apart: svec is an isometry on its image
    return from_svec(source.add_gaussian(svec((value + value.T) / 2), scale))


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
    >>> from dpadapt.privacy.core.noise import SeededNoise
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
    root = _root(covariance)
    # noise is added to the whitened values, where it is isotropic: any source serves. The sum is
    # rounded there, and is a release of its own; the root is public and comes after it
    whitened = np.asarray(np.linalg.solve(root, values), dtype=np.float64)
    return np.asarray(root @ source.add_gaussian(whitened, scale), dtype=np.float64)


def _root(covariance: FloatArray) -> FloatArray:
    nugget = NUGGET * float(np.trace(covariance)) / len(covariance)
    return np.asarray(np.linalg.cholesky(covariance + nugget * np.eye(len(covariance))))


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
