r"""Algorithm 1 of the paper, and the sets that it may search.

**Sets that the single stage may search: polyhedra of weights, convex sets of coefficients.**

Algorithm 1 of the paper is for any polyhedron Q with J vertices and any bounded convex W. What it
needs of them is a vertex by its place, the scores of all vertices, how far one private row can
swing those, and the point of W that is farthest down a slope.

**How far a row swings the scores.** The score of a vertex v is :math:`\langle g, v \rangle`, g the
gradient in q. Let one private row move a difference of two entries of g by at most R (the range of
the objective) and a single entry by at most :math:`\tau`. For two vertices let a and b be the
positive and the negative part of v - v', of masses |a| and |b|. Pair off the smaller mass with as
much of the larger: the paired part moves by min(|a|, |b|) R, the rest by :math:`||a| - |b|| \tau`.
For distributions over rows (the simplex, groups) |a| = |b| <= 1: R, as for the simplex itself.

**Algorithm 1 of the paper: Frank-Wolfe in two geometries, private, for a joint objective f(q, w).**

    for k = 0 ... K-1:
        vertex     j   = noisy argmin of the gradient in q
        direction  u   = argmin of <gradient in w (noisy, where it is private), u> over the ball
        step       q_{k+1} = (1 - eta) q_k + eta e_j,   w_{k+1} = (1 - eta) w_k + eta u

q lies in the simplex (or another polyhedron) and w in a Euclidean ball (or another convex set). The
paper's use of it is
:math:`L(q, w) = \sum_i q_i (w \cdot x_i - y_i)^2 + 4 \Lambda^2 \tilde F(q)`, in which the gradient
in w is public once q is: :class:`AdaptationObjective`.

Which iterate to return. The paper returns the one with the smallest noisy gap, but its gaps hold
un-noised numbers and noise that was used before, and no proof covers them; so that rule is not
offered. "last" and "uniform" (a random one) cost nothing; "select" chooses by a fresh exponential
mechanism over the gaps (:func:`.queries.gap_range` has the proof). With the noise of a vertex
it costs as much as four vertices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.discrepancy.matrices import public_rows, symmetric_part, weighted_moment
from dpadapt.learning.least_squares import ball_least_squares
from dpadapt.privacy import Hidden, Mechanism, Session
from dpadapt.privacy.mechanisms import Exponential, Gaussian, LaplaceMin
from dpadapt.privacy.statistics import SecondMoment

from .first_stage import whole_sample
from .queries import (
    Objective,
    RowBounds,
    Scores,
    Smoothing,
    gap_range,
    hidden_coefficient_gradient,
    hidden_gaps,
    hidden_weight_gradient,
    vertex_range,
)


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


@dataclass(frozen=True, eq=False)
class AdaptationObjective:
    r"""The paper's :math:`L(q, w) = \sum_i q_i (w \cdot x_i - y_i)^2 + 4 \Lambda^2 \tilde F(q)`.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    y : ndarray of shape (m,)
        Public labels.
    smoothing : Smoothing
        Of the discrepancy; :class:`~.smoothing.Softmax` in the paper.
    radius : float
        :math:`\Lambda`, bound on the norm of the coefficients.

    Notes
    -----
    The loss is public once w is, and w is a function of released vertices; the private rows enter
    through the smoothing alone, so that the range is :math:`4 \Lambda^2` times its.

    Examples
    --------
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> objective = AdaptationObjective(np.eye(2), np.array([1.0, 0.0]), Softmax(9.0), radius=1.0)
    >>> objective.best_coefficients(np.array([0.5, 0.5])).round(6)
    array([1., 0.])
    """

    X: FloatArray
    y: FloatArray
    smoothing: Smoothing
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", public_rows(self.X))
        object.__setattr__(self, "y", np.asarray(self.y, dtype=np.float64))
        if self.y.shape != (len(self.X),) or not np.isfinite(self.y).all():
            raise ValueError("y must hold one finite label for each row of X.")
        validate.positive("radius", self.radius)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of public rows, number of columns."""
        m, d = self.X.shape
        return m, d

    @property
    def strength(self) -> float:
        """Factor of the discrepancy, 4 Lambda^2."""
        return 4 * self.radius**2

    def weight_gradient(self, q: FloatArray, w: FloatArray, statistic: FloatArray) -> FloatArray:
        """Losses plus 4 Lambda^2 times the gradient of the smoothed discrepancy."""
        losses = (self.X @ w - self.y) ** 2
        moment = weighted_moment(self.X, q)
        return Scores(self.X, self.smoothing, moment, losses, self.strength)(statistic)

    def coefficient_gradient(
        self, q: FloatArray, w: FloatArray, statistic: FloatArray | None = None
    ) -> FloatArray:
        """Gradient of the weighted loss: public."""
        return np.asarray(2 * (q * (self.X @ w - self.y)) @ self.X)

    def best_coefficients(self, q: FloatArray) -> FloatArray:
        """Least squares over the ball."""
        return ball_least_squares(
            weighted_moment(self.X, q), (q * self.y) @ self.X, radius=self.radius
        )

    def range_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """4 Lambda^2 times that of the smoothing."""
        return self.strength * self.smoothing.range_sensitivity(RowBounds.of(query, self.X, n_rows))

    def entry_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """4 Lambda^2 times that of the smoothing, for polyhedra with vertices of different mass."""
        return self.strength * self.smoothing.sensitivity(RowBounds.of(query, self.X, n_rows))

    def coefficient_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """Zero."""
        return 0.0

    def printed_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """8 Lambda^2 mu r^2 r_hat^2 / n for the softmax."""
        return self.strength * self.smoothing.printed_sensitivity(
            RowBounds.of(query, self.X, n_rows)
        )


@dataclass(frozen=True, eq=False)
class NoisySingleStage:
    r"""Weights and coefficients together, by private Frank-Wolfe (Algorithm 1).

    Parameters
    ----------
    objective : Objective
        :class:`AdaptationObjective`, or any other.
    steps : int
        K.
    step_size : float
        :math:`\eta`, in (0, 1].
    output : {"last", "uniform", "select"}, default="last"
        Which iterate to return.
    exact : bool, default=False
        Whether w is the minimiser for the current weights after every step, rather than a
        Frank-Wolfe step; only where the gradient in w is public, and over the ball.
    weights : Polyhedron, optional
        Q, if it is not the simplex.
    coefficients : ConvexSet, optional
        W, if it is not the ball of the objective.

    See Also
    --------
    dpadapt.papers.discrepancy.parameters.single_stage_parameters : chooses mu, K and the step size.

    Examples
    --------
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning, Private
    >>> X, y = np.eye(2), np.array([0.5, -0.5])
    >>> algorithm = NoisySingleStage(
    ...     AdaptationObjective(X, y, Softmax(mu=10.0), radius=1.0), steps=30, step_size=0.1
    ... )
    >>> private, query = Private([[1.0, 0.0]] * 9000 + [[0.0, 1.0]] * 1000), SecondMoment(
    ...     Cleaning(radius=1.0)
    ... )
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     grants = session.plan(**algorithm.mechanisms(session, query))
    ...     q, w = algorithm.release(session, grants, session.hide(query))
    >>> bool(q[0] > 0.7), bool(w[0] > 0.1), session.guarantee.epsilon <= 1.0
    (True, True, True)
    """

    objective: Objective
    steps: int
    step_size: float
    output: str = "last"
    exact: bool = False
    weights: Polyhedron | None = None
    coefficients: ConvexSet | None = None

    def __post_init__(self) -> None:
        validate.count("steps", self.steps)
        if not 0 < validate.positive("step_size", self.step_size) <= 1:
            raise ValueError(f"step_size must be at most 1; got {self.step_size!r}.")
        validate.choice("output", self.output, ("last", "uniform", "select"))
        if self.exact and self.coefficients is not None:
            raise ValueError("exact=True is for the ball; leave coefficients out.")

    @cached_property
    def _q(self) -> Polyhedron:
        return Simplex(self.objective.shape[0]) if self.weights is None else self.weights

    @cached_property
    def _w(self) -> ConvexSet:
        if self.coefficients is not None:
            return self.coefficients
        return Ball(self.objective.shape[1], self.objective.radius)

    def minimise(
        self, statistic: npt.ArrayLike, *, rng: np.random.Generator | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Weights and coefficients for a statistic that is public (or released), without noise."""
        known = symmetric_part(statistic)
        return self._run(
            lambda scores: int(np.argmin(scores(known))),
            lambda q, w: self.objective.coefficient_gradient(q, w, known),
            lambda gaps: int(np.argmin(gaps(known))),
            rng,
        )

    def mechanisms(
        self, session: Session, query: SecondMoment, *, calibration: str = "tight"
    ) -> dict[str, Mechanism]:
        """Plan the vertices, the gradients in w ("turn", if private), the choice (if any).

        Parameters
        ----------
        session : Session
            Gives n, and for the printed noise epsilon and delta.
        query : SecondMoment
            The private statistic, whose bounds enter the sensitivity.
        calibration : {"tight", "paper"}, default="tight"
            "paper" is the printed 4 tau sqrt(2 K log(1/delta)) / epsilon, for Laplace noise on the
            scores and Gaussian noise on the gradient in w.
        """
        validate.choice("calibration", calibration, ("tight", "paper"))
        facts = (query, whole_sample(session))
        reach = vertex_range(self.objective, *facts, self._q.swing)
        turn = self.objective.coefficient_sensitivity(*facts)
        if self.exact and turn > 0:
            raise ValueError("exact=True needs an objective whose gradient in w is public.")
        (_, d), K, printed = self.objective.shape, self.steps, calibration == "paper"
        if printed and self._q.swing != (1.0, 0.0):
            raise ValueError("calibration='paper' is for distributions over rows.")
        noise = factor = None
        if printed:
            factor = 4 * math.sqrt(2 * K * math.log(1 / validate.delta(session.delta)))
            factor /= session.epsilon
            noise = factor * self.objective.printed_sensitivity(*facts)
        kind = LaplaceMin if printed else Exponential
        planned: dict[str, Mechanism] = {
            "vertex": kind("Frank-Wolfe vertex", reach, count=K, printed=noise)
        }
        if turn > 0:
            spread = None if factor is None else factor * turn
            planned["turn"] = Gaussian("gradient in w", turn, d, K, printed=spread)
        if self.output == "select":
            gap = gap_range(self.objective, *facts, self._q.swing, self._w.diameter)
            planned["choice"] = Exponential("choice of iterate", gap, weight=2.0, printed=noise)
        return planned

    def release(
        self,
        session: Session,
        grants: SimpleNamespace,
        statistic: Hidden,
        *,
        rng: np.random.Generator | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Weights and coefficients for a hidden statistic; trades the grants of the mechanisms.

        ``rng`` draws the iterate where the output is "uniform"; no privacy hangs on it.
        """
        facts = (session, statistic, self.objective)

        def turn(q: FloatArray, w: FloatArray) -> FloatArray:
            if not hasattr(grants, "turn"):
                return self.objective.coefficient_gradient(q, w, None)
            slope = hidden_coefficient_gradient(*facts, q, w)
            return np.asarray(session.release(grants.turn, slope))

        def choose(scores: Callable[[FloatArray], FloatArray]) -> int:
            hidden = hidden_weight_gradient(*facts, scores, self._q.swing)
            return int(session.release(grants.vertex, hidden))

        def select(gaps: Callable[[FloatArray], FloatArray]) -> int:
            hidden = hidden_gaps(*facts, gaps, self._q.swing, self._w.diameter)
            return int(session.release(grants.choice, hidden))

        return self._run(choose, turn, select, rng)

    def path(
        self,
        choose: Callable[[Callable[[FloatArray], FloatArray]], int],
        turn: Callable[..., FloatArray],
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Iterates (q_0, w_0) ... (q_K, w_K).

        Parameters
        ----------
        choose : callable
            Takes the scores as a function of the private statistic, returns the chosen vertex.
        turn : callable
            Takes q and w, returns the (noisy) gradient in w.
        """
        eta, q, w = self.step_size, self._q.start, self._w.start
        yield q, w
        for _ in range(self.steps):

            def scores(statistic: FloatArray, q: FloatArray = q, w: FloatArray = w) -> FloatArray:
                return self._q.scores(self.objective.weight_gradient(q, w, statistic))

            chosen = choose(scores)
            slope = turn(q, w)
            q = (1 - eta) * q + eta * self._q.vertex(chosen)
            if self.exact:
                w = self.objective.best_coefficients(q)
            else:
                w = (1 - eta) * w + eta * self._w.lowest(slope)
            yield q, w

    def _run(
        self,
        choose: Callable[[Callable[[FloatArray], FloatArray]], int],
        turn: Callable[[FloatArray, FloatArray], FloatArray],
        select: Callable[[Callable[[FloatArray], FloatArray]], int],
        rng: np.random.Generator | None,
    ) -> tuple[FloatArray, FloatArray]:
        # a path is repeated from what was released: no step pays twice, nothing large is stored
        vertices: list[int] = []
        slopes: list[FloatArray] = []

        def record(scores: Callable[[FloatArray], FloatArray]) -> int:
            vertices.append(choose(scores))
            return vertices[-1]

        def remember(q: FloatArray, w: FloatArray) -> FloatArray:
            slopes.append(turn(q, w))
            return slopes[-1]

        def replay() -> Iterator[tuple[FloatArray, FloatArray]]:
            again, downhill = iter(vertices), iter(slopes)
            return self.path(lambda _: next(again), lambda q, w: next(downhill))

        def gaps(statistic: FloatArray) -> FloatArray:
            iterates = zip(range(self.steps), replay(), strict=False)
            return np.array([self._gap(q, w, statistic) for _, (q, w) in iterates])

        for last in self.path(record, remember):
            end = last
        if self.output == "last":
            return end
        rng = np.random.default_rng() if rng is None else rng
        k = select(gaps) if self.output == "select" else int(rng.integers(self.steps))
        return next(pair for place, pair in enumerate(replay()) if place == k)

    def _gap(self, q: FloatArray, w: FloatArray, statistic: FloatArray) -> float:
        """Stationarity gap: how fast f falls towards the best vertex and direction."""
        gradient = self.objective.weight_gradient(q, w, statistic)
        slope = self.objective.coefficient_gradient(q, w, statistic)
        steepest = slope @ (w - self._w.lowest(slope))
        return float(gradient @ q - self._q.scores(gradient).min() + steepest)
