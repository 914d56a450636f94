"""Gaussian kernels in bounded memory: means and squares block by block, and features."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpadapt._types import FloatArray

_BLOCK_CELLS = 1 << 21  # of the kernel matrix, that are in memory at a time
_ROUNDING = 1e-13  # directions with a smaller share of the kernel matrix are none


def kernel(a: FloatArray, b: FloatArray, gamma: float) -> FloatArray:
    squares = np.add.outer(np.einsum("ij,ij->i", a, a), np.einsum("ij,ij->i", b, b))
    squares -= 2 * (a @ b.T)
    np.maximum(squares, 0.0, out=squares)
    squares *= -gamma
    return np.exp(squares, out=squares)


def blocks(rows: int, columns: int) -> Iterator[slice]:
    size = max(1, _BLOCK_CELLS // max(1, columns))
    return (slice(start, start + size) for start in range(0, rows, size))


def kernel_means(rows: FloatArray, others: FloatArray, gamma: float) -> FloatArray:
    """Mean of k(x, t) over the others, for every row."""
    return np.concatenate(
        [kernel(rows[cut], others, gamma).mean(axis=1) for cut in blocks(len(rows), len(others))]
    )


def kernel_squares(rows: FloatArray, weights: FloatArray, gamma: float) -> FloatArray:
    """b^T K b / m^2 for every column b of the weights, block by block, half of K by symmetry."""
    total = np.zeros(weights.shape[1])
    for cut in blocks(len(rows), len(rows)):
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
