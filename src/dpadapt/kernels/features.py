r"""Explicit feature maps of some kernels, each with a public bound of the norm of its features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Count, ParameterTable
from dpadapt.learning.strategy import Strategy

from .kernel import Kernel, check_positive_definite

_FLOOR = 1e-6  # of the largest eigenvalue: below it landmarks add rounding, not features
_ROUNDING = 1e-12  # of a squared norm: the tolerance of a solver covers it
_CHUNK = 4096  # rows mapped at a time


@dataclass(frozen=True)
class Fourier(Strategy):
    """Choose random Fourier features, of the kernel "rbf".

    Parameters
    ----------
    n_components : int, default=300
        Even.

    Examples
    --------
    >>> Fourier(n_components=100).n_components
    100
    """

    n_components: int = 300

    _constraints: ClassVar[ParameterTable] = {"n_components": [Count()]}

    def _check(self) -> None:
        if self.n_components % 2:
            raise ValueError(f"n_components must be even; got {self.n_components}.")


@dataclass(frozen=True)
class Nystroem(Strategy):
    """Choose features on the span of public rows, of any kernel.

    Parameters
    ----------
    n_components : int, default=300
        Number of public rows, the landmarks.

    Examples
    --------
    >>> Nystroem(n_components=100).n_components
    100
    """

    n_components: int = 300

    _constraints: ClassVar[ParameterTable] = {"n_components": [Count()]}


def _within(features: FloatArray, squared_bound: float) -> FloatArray:
    """Rows scaled down to the bound of their norm, in place."""
    squares = np.einsum("ij,ij->i", features, features)
    above = squares > squared_bound * (1 + _ROUNDING)
    if above.any():
        features[above] *= np.sqrt(squared_bound / squares[above])[:, None]
    return features


@dataclass(frozen=True)
class LinearFeatures:
    """The rows themselves: K(x, y) = x.y.

    Parameters
    ----------
    width : int
        Number of columns.
    radius : float
        Rows of a larger norm are scaled down to it.

    Examples
    --------
    >>> LinearFeatures(2, radius=1.0)(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """

    width: int
    radius: float

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.width

    @property
    def squared_bound(self) -> float:
        """R^2."""
        return self.radius**2

    def __call__(self, X: FloatArray) -> FloatArray:
        """Features of every row."""
        return _within(np.array(X, dtype=np.float64), self.squared_bound)


@dataclass(frozen=True)
class PolynomialFeatures:
    r"""Exact features of (gamma x.y + coef0)^degree: all weighted monomials.

    With v = (sqrt(gamma) x, sqrt(coef0)) the kernel is (v.v')^q, the sum over multisets alpha of q
    coordinates of q!/prod(alpha_i!) v^alpha v'^alpha. So the features are
    sqrt(q!/prod(alpha_i!)) v^alpha, C(d + q, q) of them (C(d + q - 1, q) if coef0 is 0), of
    squared norm K(x, x) <= (gamma r^2 + coef0)^q.

    Parameters
    ----------
    width : int
        d.
    radius : float
        r; rows of a larger norm count as the nearest of norm r.
    degree : int, default=3
        q.
    gamma : float, default=1.0
    coef0 : float, default=1.0

    Examples
    --------
    >>> features = PolynomialFeatures(2, radius=1.0, degree=2)
    >>> x, y = np.array([[0.6, 0.8]]), np.array([[1.0, 0.0]])
    >>> features.n_features, features.squared_bound
    (6, 4.0)
    >>> float((features(x) @ features(y).T)[0, 0].round(12)), 1.6**2
    (2.56, 2.5600000000000005)
    """

    width: int
    radius: float
    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        validate.count("width", self.width)
        validate.count("degree", self.degree)
        validate.positive("radius", self.radius)
        validate.positive("gamma", self.gamma)
        validate.non_negative("coef0", self.coef0)

    @property
    def _variables(self) -> int:
        return self.width + (self.coef0 > 0)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return math.comb(self._variables + self.degree - 1, self.degree)

    @property
    def squared_bound(self) -> float:
        """R^2."""
        return float((self.gamma * self.radius**2 + self.coef0) ** self.degree)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Features of every row."""
        rows = math.sqrt(self.gamma) * _within(np.array(X, dtype=np.float64), self.radius**2)
        out = np.empty((len(rows), self.n_features))
        for start in range(0, len(rows), _CHUNK):
            part = rows[start : start + _CHUNK].T
            if self.coef0 > 0:
                part = np.vstack([part, np.full((1, part.shape[1]), math.sqrt(self.coef0))])
            out[start : start + _CHUNK] = self._monomials(np.ascontiguousarray(part)).T
        return _within(out, self.squared_bound)

    def _monomials(self, v: FloatArray) -> FloatArray:
        """Weighted monomials of degree q of the rows of v, one in a row.

        Degree by degree: those that begin with coordinate j are v_j times those of one degree less
        in the coordinates from j on. The weight of v_j^m is 1/sqrt(m!), gathered as 1/sqrt(run)
        from the length of each run of equal coordinates, and sqrt(q!) at the end.
        """
        count = len(v)
        values = np.ones((1, v.shape[1]))
        first, run = np.full(1, count), np.zeros(1)  # first coordinate, and how often it repeats
        for _ in range(self.degree):
            blocks, heads, runs = [], [], []
            for j in range(count):
                tail = first >= j
                again = np.where(first[tail] == j, run[tail] + 1, 1.0)
                blocks.append(v[j] * (values[tail] / np.sqrt(again)[:, None]))
                heads.append(np.full(len(again), j))
                runs.append(again)
            values = np.concatenate(blocks)
            first, run = np.concatenate(heads), np.concatenate(runs)
        return np.asarray(values * math.sqrt(math.factorial(self.degree)))


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    r"""Random Fourier features of exp(-gamma \|x - y\|^2): public draws, norm exactly 1.

    cos(w.x) and sin(w.x) for D/2 frequencies w from N(0, 2 gamma I), divided by sqrt(D/2): the
    squares of each pair sum to 2/D, so \|phi(x)\| = 1 for every x.

    Parameters
    ----------
    width : int
        Number of columns.
    gamma : float, default=1.0
    n_components : int, default=512
        D; even.
    seed : int, default=0
        Public: it protects nothing.

    Examples
    --------
    >>> features = FourierFeatures(1, gamma=0.5, n_components=4000)
    >>> float((features(np.zeros((1, 1))) @ features(np.ones((1, 1))).T)[0, 0].round(2))
    0.61
    """

    width: int
    gamma: float = 1.0
    n_components: int = 512
    seed: int = 0

    def __post_init__(self) -> None:
        validate.positive("gamma", self.gamma)
        if validate.count("n_components", self.n_components) % 2:
            raise ValueError(f"n_components must be even; got {self.n_components}.")
        draws = np.random.default_rng(self.seed).standard_normal(
            (validate.count("width", self.width), self.n_components // 2)
        )
        object.__setattr__(self, "_frequencies", math.sqrt(2 * self.gamma) * draws)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.n_components

    @property
    def squared_bound(self) -> float:
        """1."""
        return 1.0

    def __call__(self, X: FloatArray) -> FloatArray:
        """Features of every row."""
        angles = np.asarray(X, dtype=np.float64) @ self._frequencies  # type: ignore[attr-defined]
        half = self.n_components // 2
        out = np.empty((len(angles), self.n_components))
        np.cos(angles, out=out[:, :half])
        np.sin(angles, out=out[:, half:])
        out /= math.sqrt(half)
        return _within(out, 1.0)


@dataclass(frozen=True, eq=False)
class NystroemFeatures:
    r"""Features of any kernel on the span of public landmarks Z: S^{-1/2} U^T K(Z, x).

    K_ZZ = U S U^T, only eigenvalues above a millionth of the largest being kept. The columns of
    Phi_Z^T U S^{-1/2} are orthonormal, so phi(x) holds the coordinates of a projection of the
    kernel's own features, and \|phi(x)\|^2 <= K(x, x) <= R^2. What rounding adds to that is cut
    off.

    Parameters
    ----------
    kernel : Kernel
    landmarks : public rows

    Examples
    --------
    >>> from dpadapt.kernels.kernel import Linear
    >>> kernel = Linear().within(radius=1.0)
    >>> features = NystroemFeatures(kernel, np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    >>> features.n_features
    2
    >>> x = np.array([[0.6, 0.8]])
    >>> float(np.linalg.norm(features(x)).round(6))
    1.0
    """

    kernel: Kernel
    landmarks: Any

    def __post_init__(self) -> None:
        scales, axes = check_positive_definite(self.kernel, self.landmarks)
        kept = scales > _FLOOR * max(float(scales[-1]), np.finfo(float).tiny)
        if not kept.any():
            raise ValueError("landmarks: the kernel is 0 on all of them; choose others.")
        object.__setattr__(self, "_map", axes[:, kept] / np.sqrt(scales[kept]))

    @property
    def n_features(self) -> int:
        """Number of features: at most that of the landmarks."""
        return int(self._map.shape[1])  # type: ignore[attr-defined]

    @property
    def squared_bound(self) -> float:
        """R^2."""
        return self.kernel.squared_bound

    def __call__(self, X: Any) -> FloatArray:
        """Features of every row."""
        features = self.kernel(X, self.landmarks) @ self._map  # type: ignore[attr-defined]
        return _within(features, self.squared_bound)

    def back(self, weights: FloatArray) -> FloatArray:
        """Coefficients of the landmarks that make the same model as weights of the features."""
        return np.asarray(self._map @ weights)  # type: ignore[attr-defined]
