"""Made-up populations of paper 003 (Kohen, Sheffet: hybrid model).

The curator's rows come from the source S, the agents' from the target T; a label, -1 or +1, is a
function of the row. The divergence of the two is known for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, stats

__all__ = [
    "Bimodal",
    "Correlated",
    "Labelled",
    "Population",
    "Shifted",
    "Shrunk",
    "SkewedBits",
]

Array = NDArray[Any]

_DRAWS = 400_000  # for a threshold that has no formula
_CORRELATION = 0.5  # of neighbours in AR1


class Labelled(NamedTuple):
    """Rows and their labels.

    Examples
    --------
    >>> Labelled(np.zeros((2, 3)), np.array([-1.0, 1.0])).X.shape
    (2, 3)
    """

    X: Array
    y: Array


class Population(Protocol):
    """A source and a target."""

    @property
    def chi2(self) -> float:
        """chi-squared divergence of the target from the source."""

    def source(self, n: int, rng: np.random.Generator) -> Labelled:
        """Rows of the curator."""

    def target(self, n: int, rng: np.random.Generator) -> Labelled:
        """Rows of the agents."""


@dataclass(frozen=True)
class Shrunk:
    """Columns of one law; under the target some of them are smaller.

    The label is -1 in a ball of those columns, or, for a plane, below one in them; so that a given
    share of the target has it.

    Parameters
    ----------
    dimension : int
        d.
    columns : tuple of int
        The k that shrink.
    factor : float
        By what.
    share : float
        Of the target with label -1.
    scale : float, default=1.0
        Standard deviation of the source's columns.
    law : {"normal", "uniform", "laplace", "t4", "ar1"}
        "ar1": normal, neighbouring columns have correlation 0.5.
    plane : bool, default=False
        A hyperplane instead of a ball.
    single : bool, default=False
        Rows as float32.

    Examples
    --------
    The paper's private run, and the divergence that the paper prints (1.35):

    >>> easy = Shrunk(8, (0, 1), 0.7, 0.4, scale=0.1)
    >>> round(easy.chi2 + 1, 3)
    1.352
    >>> X, y = easy.target(20_000, np.random.default_rng(0))
    >>> float(round(np.mean(y < 0), 2))
    0.4
    """

    dimension: int
    columns: tuple[int, ...]
    factor: float
    share: float
    scale: float = 1.0
    law: str = "normal"
    plane: bool = False
    single: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.factor <= 1:
            raise ValueError(f"factor must be in (0, 1]; got {self.factor!r}.")

    def source(self, n: int, rng: np.random.Generator) -> Labelled:
        """Rows of the curator."""
        return self._label(self.scale * _draw(self.law, n, self.dimension, rng, self.single))

    def target(self, n: int, rng: np.random.Generator) -> Labelled:
        """Rows of the agents."""
        X = self.scale * _draw(self.law, n, self.dimension, rng, self.single)
        X[:, list(self.columns)] *= X.dtype.type(self.factor)
        return self._label(X)

    def _label(self, X: Array) -> Labelled:
        part = X[:, list(self.columns)].astype(np.float64) / (self.scale * self.factor)
        threshold = _threshold(self.law, self.dimension, self.columns, self.share, self.plane)
        value = part.sum(axis=1) if self.plane else np.sum(part**2, axis=1)
        return Labelled(X, np.where(value <= threshold, -1.0, 1.0).astype(X.dtype))

    @property
    def chi2(self) -> float:
        """chi-squared divergence of the target from the source; infinite if it is."""
        s, k = self.factor, len(self.columns)
        if self.law == "ar1":
            source = _neighbours(self.dimension)
            shrink = np.ones(self.dimension)
            shrink[list(self.columns)] = s
            return _gaussian_chi2(shrink[:, None] * source * shrink, source)
        each = {
            "normal": lambda: (s * s * (2 - s * s)) ** -0.5,
            "uniform": lambda: 1 / s,
            "laplace": lambda: 1 / (s * (2 - s)),
            "t4": lambda: _numerical_chi2(
                lambda x: stats.t.pdf(x / s, 4) / s, lambda x: stats.t.pdf(x, 4)
            ),
        }[self.law]()
        return float(each) ** k - 1


@dataclass(frozen=True)
class Shifted:
    """The target's mean is elsewhere; labels by a direction that the shift does not touch.

    Parameters
    ----------
    shift : tuple of float
        Mean of the target; that of the source is 0.
    direction : tuple of float
        y = sign <direction, x>.
    beyond : float, optional
        Labels are flipped where <shift, x> / |shift| is larger: in most of the target, in a minor
        part of the source. The best linear rule of the source is then wrong for the target.

    Examples
    --------
    >>> setting = Shifted((2.0, 0.0), (0.0, 1.0))
    >>> round(setting.chi2 + 1, 1)
    54.6
    >>> setting.source(5, np.random.default_rng(0)).X.shape
    (5, 2)
    """

    shift: tuple[float, ...]
    direction: tuple[float, ...]
    beyond: float | None = None

    def source(self, n: int, rng: np.random.Generator) -> Labelled:
        """Rows of the curator."""
        return self._label(rng.normal(size=(n, len(self.shift))))

    def target(self, n: int, rng: np.random.Generator) -> Labelled:
        """Rows of the agents."""
        return self._label(rng.normal(size=(n, len(self.shift))) + np.array(self.shift))

    def _label(self, X: Array) -> Labelled:
        y = np.where(X @ np.array(self.direction) > 0, 1.0, -1.0)
        if self.beyond is None:
            return Labelled(X, y)
        along = X @ np.array(self.shift) / np.linalg.norm(self.shift)
        return Labelled(X, np.where(along > self.beyond, -y, y))

    @property
    def chi2(self) -> float:
        """chi-squared divergence of the target from the source."""
        return float(np.expm1(np.dot(self.shift, self.shift)))


@dataclass(frozen=True)
class Correlated:
    """Two columns agree under the target only; each column alone looks the same.

    y = sign(x_1 + x_2), flipped where |x_1 - x_2| is large: often under the source, almost never
    under the target.

    Parameters
    ----------
    dimension : int
    pair : tuple of int
    correlation : float, default=0.95
        Under the target.
    apart : float, default=0.85
        Where labels flip.

    Examples
    --------
    >>> setting = Correlated(8, (2, 5))
    >>> round(setting.chi2 + 1, 2)
    10.26
    """

    dimension: int
    pair: tuple[int, int]
    correlation: float = 0.95
    apart: float = 0.85

    def source(self, n: int, rng: np.random.Generator) -> Labelled:
        """Rows of the curator."""
        return self._label(rng.normal(size=(n, self.dimension)))

    def target(self, n: int, rng: np.random.Generator) -> Labelled:
        """Rows of the agents."""
        X = rng.normal(size=(n, self.dimension))
        first, second = self.pair
        r = self.correlation
        X[:, second] = r * X[:, first] + np.sqrt(1 - r * r) * X[:, second]
        return self._label(X)

    def _label(self, X: Array) -> Labelled:
        first, second = (X[:, column] for column in self.pair)
        y = np.where(first + second > 0, 1.0, -1.0)
        return Labelled(X, np.where(np.abs(first - second) > self.apart, -y, y))

    @property
    def chi2(self) -> float:
        """chi-squared divergence of the target from the source."""
        r = self.correlation
        return _gaussian_chi2(np.array([[1.0, r], [r, 1.0]]), np.eye(2))


@dataclass(frozen=True)
class Bimodal:
    """Along one direction the target has two modes where the source has one.

    y = sign <v, x>, flipped where |<u, x>| is large: half of the source, almost all of the target.

    Parameters
    ----------
    split, direction : tuple of float
        u and v, of length 1 and orthogonal.
    mode, spread : float
        The modes along u are at ``mode`` and ``-mode``.
    beyond : float, default=0.68
        Where labels flip.

    Examples
    --------
    >>> setting = Bimodal((1.0, 0.0), (0.0, 1.0))
    >>> X, y = setting.target(4_000, np.random.default_rng(0))
    >>> bool(np.mean(y == np.sign(X[:, 1])) < 0.02)
    True
    """

    split: tuple[float, ...]
    direction: tuple[float, ...]
    mode: float = 2.0
    spread: float = 0.55
    beyond: float = 0.68

    def source(self, n: int, rng: np.random.Generator) -> Labelled:
        """Rows of the curator."""
        return self._label(rng.normal(size=(n, len(self.split))))

    def target(self, n: int, rng: np.random.Generator) -> Labelled:
        """Rows of the agents."""
        X = rng.normal(size=(n, len(self.split)))
        u = np.array(self.split)
        along = rng.choice([-self.mode, self.mode], n) + self.spread * rng.normal(size=n)
        return self._label(X + np.outer(along - X @ u, u))

    def _label(self, X: Array) -> Labelled:
        y = np.where(X @ np.array(self.direction) > 0, 1.0, -1.0)
        return Labelled(X, np.where(np.abs(X @ np.array(self.split)) > self.beyond, -y, y))

    @property
    def chi2(self) -> float:
        """chi-squared divergence of the target from the source."""

        def modes(x: float) -> float:
            return 0.5 * sum(stats.norm.pdf(x, sign * self.mode, self.spread) for sign in (-1, 1))

        return _numerical_chi2(modes, stats.norm.pdf) - 1


@dataclass(frozen=True)
class SkewedBits:
    """Bits that are 1 more rarely under the source; the target's are fair. Labels are a parity.

    Parameters
    ----------
    dimension : int
        d.
    secret : tuple of int
        Columns whose sum, modulo 2, is the label: +1 if odd.
    chance : float, default=0.45
        Of a 1 under the source.

    Examples
    --------
    >>> bits = SkewedBits(64, (0, 3))
    >>> round(bits.chi2 + 1, 2)
    1.9
    >>> X, y = bits.source(100, np.random.default_rng(0))
    >>> bool(np.all((X[:, 0] + X[:, 3]) % 2 == (y > 0)))
    True
    """

    dimension: int
    secret: tuple[int, ...]
    chance: float = 0.45

    def source(self, n: int, rng: np.random.Generator) -> Labelled:
        """Rows of the curator."""
        return self._label(rng.random((n, self.dimension), dtype=np.float32) < self.chance)

    def target(self, n: int, rng: np.random.Generator) -> Labelled:
        """Rows of the agents."""
        return self._label(rng.random((n, self.dimension), dtype=np.float32) < 0.5)

    def _label(self, bits: Array) -> Labelled:
        odd = np.sum(bits[:, list(self.secret)], axis=1) % 2
        return Labelled(bits.astype(np.float64), np.where(odd == 1, 1.0, -1.0))

    @property
    def chi2(self) -> float:
        """chi-squared divergence of the target from the source."""
        p = self.chance
        return float((4 * p * (1 - p)) ** -self.dimension - 1)


def _draw(law: str, n: int, d: int, rng: np.random.Generator, single: bool = False) -> Array:
    """Rows with columns of variance 1; of scale 1 for Laplace's and Student's laws."""
    if law == "normal":
        return rng.standard_normal((n, d), dtype=np.float32 if single else np.float64)
    if law == "uniform":
        return rng.uniform(-(3**0.5), 3**0.5, size=(n, d))
    if law == "laplace":
        return rng.laplace(size=(n, d))
    if law == "t4":
        return rng.standard_t(4, size=(n, d))
    return np.asarray(rng.standard_normal((n, d)) @ np.linalg.cholesky(_neighbours(d)).T)


def _neighbours(d: int) -> Array:
    return np.asarray(_CORRELATION ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))


@lru_cache(maxsize=64)
def _threshold(law: str, d: int, columns: tuple[int, ...], share: float, plane: bool) -> float:
    """Below it lies the share of the target's rows, in units of the target."""
    k = len(columns)
    if law == "normal":
        return float(stats.norm.ppf(share) * np.sqrt(k) if plane else stats.chi2.ppf(share, k))
    part = _draw(law, _DRAWS, d, np.random.default_rng(12345))[:, list(columns)]
    return float(np.quantile(np.sum(part**2, axis=1), share))


def _gaussian_chi2(target: Array, source: Array) -> float:
    """Of two normal laws of the same mean, from their covariances."""
    inner = 2 * np.linalg.inv(target) - np.linalg.inv(source)
    if np.linalg.eigvalsh(inner)[0] <= 0:
        return float("inf")
    logs = [np.linalg.slogdet(each)[1] for each in (target, source, inner)]
    return float(np.expm1(-logs[0] + logs[1] / 2 - logs[2] / 2))


def _numerical_chi2(target: Any, source: Any) -> float:
    """The integral of target^2 / source over the line, for symmetric laws."""
    value, _ = integrate.quad(lambda x: target(x) ** 2 / source(x), 0, 12, points=[1, 2, 3])
    return float(2 * value)
