r"""Sets that the single stage may search: polyhedra of weights, convex sets of coefficients.

Algorithm 1 of the paper is for any polyhedron Q with J vertices and any bounded convex W. What it
needs of them is a vertex by its place, the scores of all vertices, how far one private row can
swing those, and the point of W that is farthest down a slope.

**How far a row swings the scores.** The score of a vertex v is :math:`\langle g, v \rangle`, g the
gradient in q. Let one private row move a difference of two entries of g by at most R (the range of
the objective) and a single entry by at most :math:`\tau`. For two vertices let a and b be the
positive and the negative part of v - v', of masses |a| and |b|. Pair off the smaller mass with as
much of the larger: the paired part moves by min(|a|, |b|) R, the rest by :math:`||a| - |b|| \tau`.
For distributions over rows (the simplex, groups) |a| = |b| <= 1: R, as for the simplex itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray


class Polyhedron(Protocol):
    """A polyhedron of weights, by its vertices."""

    @property
    def start(self) -> FloatArray:
        """A point of it, public."""

    @property
    def swing(self) -> tuple[float, float]:
        """Largest paired mass of two vertices' difference, and largest unpaired one."""

    def scores(self, gradient: FloatArray) -> FloatArray:
        """Inner product of every vertex with a gradient."""

    def vertex(self, place: int) -> FloatArray:
        """One vertex."""


class ConvexSet(Protocol):
    """A bounded convex set of coefficients."""

    @property
    def start(self) -> FloatArray:
        """A point of it, public."""

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two of its points."""

    def lowest(self, slope: FloatArray) -> FloatArray:
        """The point that is farthest down a slope."""


@dataclass(frozen=True)
class Simplex:
    """All distributions over m rows: the paper's own Q.

    Examples
    --------
    >>> Simplex(3).vertex(1), Simplex(3).swing
    (array([0., 1., 0.]), (1.0, 0.0))
    """

    m: int

    def __post_init__(self) -> None:
        validate.count("m", self.m)

    @property
    def start(self) -> FloatArray:
        """Equal weights."""
        return np.full(self.m, 1 / self.m)

    @property
    def swing(self) -> tuple[float, float]:
        """One row's weight goes to another."""
        return 1.0, 0.0

    def scores(self, gradient: FloatArray) -> FloatArray:
        """The gradient itself."""
        return gradient

    def vertex(self, place: int) -> FloatArray:
        """All weight on one row."""
        out = np.zeros(self.m)
        out[place] = 1.0
        return out


@dataclass(frozen=True, eq=False)
class GroupSimplex:
    """Distributions that are uniform within groups of rows: sources, shops, years.

    Parameters
    ----------
    groups : ndarray of int of shape (m,)
        The group of each row, from 0.

    Examples
    --------
    >>> sources = GroupSimplex(np.array([0, 0, 1]))
    >>> sources.vertex(0), sources.scores(np.array([1.0, 3.0, 5.0]))
    (array([0.5, 0.5, 0. ]), array([2., 5.]))
    """

    groups: FloatArray

    def __post_init__(self) -> None:
        found = np.asarray(self.groups)
        whole = found.ndim == 1 and found.size and np.equal(np.mod(found, 1), 0).all()
        if not whole or set(found.astype(int).tolist()) != set(range(int(found.max()) + 1)):
            raise ValueError("groups must number the groups of the rows from 0, without gaps.")
        object.__setattr__(self, "groups", found.astype(np.intp))

    @cached_property
    def _sizes(self) -> FloatArray:
        return np.bincount(self.groups).astype(float)

    @property
    def start(self) -> FloatArray:
        """Equal weights of the groups."""
        return np.asarray(1 / (len(self._sizes) * self._sizes[self.groups]))

    @property
    def swing(self) -> tuple[float, float]:
        """One group's weight goes to another."""
        return 1.0, 0.0

    def scores(self, gradient: FloatArray) -> FloatArray:
        """Means of the gradient over the groups."""
        return np.bincount(self.groups, weights=gradient) / self._sizes

    def vertex(self, place: int) -> FloatArray:
        """All weight on one group."""
        return np.where(self.groups == place, 1 / self._sizes[place], 0.0)


@dataclass(frozen=True, eq=False)
class Vertices:
    """Any polyhedron, by the list of its vertices.

    Parameters
    ----------
    points : ndarray of shape (J, m)

    Examples
    --------
    A box of two weights:

    >>> box = Vertices(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    >>> box.swing  # (0, 1) against (1, 0), and (0, 0) against (1, 1)
    (1.0, 2.0)
    """

    points: FloatArray

    def __post_init__(self) -> None:
        points = np.asarray(self.points, dtype=np.float64)
        if points.ndim != 2 or not points.size or not np.isfinite(points).all():
            raise ValueError("points must be a matrix of finite numbers, a row for each vertex.")
        object.__setattr__(self, "points", points)

    @property
    def start(self) -> FloatArray:
        """The mean of the vertices."""
        return np.asarray(self.points.mean(axis=0))

    @cached_property
    def swing(self) -> tuple[float, float]:
        """Over all pairs of vertices."""
        paired = alone = 0.0
        for point in self.points:
            apart = self.points - point
            up, down = np.maximum(apart, 0).sum(axis=1), np.maximum(-apart, 0).sum(axis=1)
            paired = max(paired, float(np.minimum(up, down).max()))
            alone = max(alone, float(np.abs(up - down).max()))
        return paired, alone

    def scores(self, gradient: FloatArray) -> FloatArray:
        """One for each vertex."""
        return np.asarray(self.points @ gradient)

    def vertex(self, place: int) -> FloatArray:
        """The listed one."""
        return np.asarray(self.points[place])


@dataclass(frozen=True)
class Ball:
    """Coefficients of bounded norm: the paper's own W.

    Examples
    --------
    >>> Ball(2, 5.0).lowest(np.array([3.0, 4.0]))
    array([-3., -4.])
    """

    d: int
    radius: float

    def __post_init__(self) -> None:
        validate.count("d", self.d)
        validate.positive("radius", self.radius)

    @property
    def start(self) -> FloatArray:
        """Zero."""
        return np.zeros(self.d)

    @property
    def diameter(self) -> float:
        """Twice the radius."""
        return 2 * self.radius

    def lowest(self, slope: FloatArray) -> FloatArray:
        """Against the slope; its center where there is none."""
        norm = float(np.linalg.norm(slope))
        return np.zeros_like(slope) if norm == 0 else -self.radius / norm * slope


@dataclass(frozen=True, eq=False)
class Box:
    """Coefficients between bounds of their own: signs that are known, slopes that are not steep.

    Parameters
    ----------
    low, high : ndarray of shape (d,)

    Examples
    --------
    >>> box = Box(np.array([0.0, -1.0]), np.array([2.0, 1.0]))
    >>> box.lowest(np.array([-1.0, 1.0])), round(box.diameter, 4)
    (array([ 2., -1.]), 2.8284)
    """

    low: FloatArray
    high: FloatArray

    def __post_init__(self) -> None:
        low, high = (np.asarray(each, dtype=np.float64) for each in (self.low, self.high))
        finite = np.isfinite(low).all() and np.isfinite(high).all()
        if low.ndim != 1 or low.shape != high.shape or not finite or not (low <= high).all():
            raise ValueError("low and high must be finite bounds of the same length, low first.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def start(self) -> FloatArray:
        """Its middle."""
        return np.asarray((self.low + self.high) / 2)

    @property
    def diameter(self) -> float:
        """Of its diagonal."""
        return float(np.linalg.norm(self.high - self.low))

    def lowest(self, slope: FloatArray) -> FloatArray:
        """A corner; the middle of a side along which there is no slope."""
        corner = np.where(slope > 0, self.low, self.high)
        return np.where(slope == 0, (self.low + self.high) / 2, corner)
