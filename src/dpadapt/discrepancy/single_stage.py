r"""Algorithm 1 of the paper: Frank-Wolfe in two geometries, private, for a joint objective f(q, w).

    for k = 0 ... K-1:
        vertex     j   = noisy argmin of the gradient in q
        direction  u   = argmin of <gradient in w (noisy, where it is private), u> over the ball
        step       q_{k+1} = (1 - eta) q_k + eta e_j,   w_{k+1} = (1 - eta) w_k + eta u

q lies in the simplex and w in a Euclidean ball. The paper's use of it is
:math:`L(q, w) = \sum_i q_i (w \cdot x_i - y_i)^2 + 4 \Lambda^2 \tilde F(q)`, in which the gradient
in w is public once q is: :class:`AdaptationObjective`.

Which iterate to return. The paper returns the one with the smallest noisy gap, but its gaps hold
un-noised numbers and noise that was used before, and no proof covers them; so that rule is not
offered. "last" and "uniform" (a random one) cost nothing; "select" chooses by a fresh exponential
mechanism over the gaps :math:`\langle g_k, q_k \rangle - \min_i g_{k,i} + G_{w,k}`. A gap is the
largest of :math:`\langle g_k, q_k - e_v \rangle` over the vertices v. Each of these is a mean of
differences of two scores, hence moves by at most their range R when one private row is replaced,
and so does the largest; two gaps may move in opposite directions: range 2R. (Where the gradient in
w is private with sensitivity t, the w-part adds t times the diameter of the ball to R.) With the
noise of a vertex it costs as much as four vertices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from dpadapt.privacy import Grant, Hidden, Request, SecondMoment, Session
from dpadapt.privacy import _validate as validate
from dpadapt.privacy.grants import Mechanism

from .frank_wolfe import (
    public_rows,
    symmetric_part,
    vertex_mechanism,
    weighted_moment,
    whole_sample,
)
from .smoothing import Array, Bounds, Smoothing, row_scores

__all__ = ["AdaptationObjective", "Objective", "SingleStage", "ball_least_squares"]


class Objective(Protocol):
    """A function f(q, w) of weights and coefficients that depends on a private statistic.

    Attributes
    ----------
    shape : (int, int)
        Number of weights, number of coefficients.
    radius : float
        Of the ball of coefficients.
    """

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def radius(self) -> float: ...
    def weight_gradient(self, q: Array, w: Array, statistic: Array) -> Array:
        """Gradient in q, one score for each vertex of the simplex."""

    def coefficient_gradient(self, q: Array, w: Array, statistic: Array | None) -> Array:
        """Gradient in w; the statistic is None where ``coefficient_sensitivity`` is 0."""

    def best_coefficients(self, q: Array) -> Array:
        """Minimiser over w for given weights, from public data."""

    def range_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """How far one private row moves the difference of two entries of the gradient in q."""

    def coefficient_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """How far one private row moves the gradient in w, in the Euclidean norm."""

    def printed_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """Sensitivity of one entry of the gradient in q as the paper prints it."""


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
    >>> from dpadapt.discrepancy.smoothing import Softmax
    >>> objective = AdaptationObjective(np.eye(2), np.array([1.0, 0.0]), Softmax(9.0), radius=1.0)
    >>> objective.best_coefficients(np.array([0.5, 0.5])).round(6)
    array([1., 0.])
    """

    X: Array
    y: Array
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

    def weight_gradient(self, q: Array, w: Array, statistic: Array) -> Array:
        """Losses plus 4 Lambda^2 times the gradient of the smoothed discrepancy."""
        H = self.smoothing.gradient(statistic - weighted_moment(self.X, q))
        return np.asarray((self.X @ w - self.y) ** 2 + self.strength * row_scores(self.X, H))

    def coefficient_gradient(self, q: Array, w: Array, statistic: Array | None = None) -> Array:
        """Gradient of the weighted loss: public."""
        return np.asarray(2 * (q * (self.X @ w - self.y)) @ self.X)

    def best_coefficients(self, q: Array) -> Array:
        """Least squares over the ball."""
        return ball_least_squares(
            weighted_moment(self.X, q), (q * self.y) @ self.X, radius=self.radius
        )

    def range_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """4 Lambda^2 times that of the smoothing."""
        return self.strength * self.smoothing.range_sensitivity(Bounds.of(query, self.X, n_rows))

    def coefficient_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """Zero."""
        return 0.0

    def printed_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """8 Lambda^2 mu r^2 r_hat^2 / n for the softmax."""
        return self.strength * self.smoothing.printed_sensitivity(Bounds.of(query, self.X, n_rows))


@dataclass(frozen=True, eq=False)
class SingleStage:
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
        Frank-Wolfe step; only where the gradient in w is public.

    See Also
    --------
    dpadapt.discrepancy.parameters.single_stage_parameters : chooses mu, K and the step size.

    Examples
    --------
    >>> from dpadapt.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning, Private
    >>> X, y = np.eye(2), np.array([0.5, -0.5])
    >>> algorithm = SingleStage(
    ...     AdaptationObjective(X, y, Softmax(mu=10.0), radius=1.0), steps=30, step_size=0.1
    ... )
    >>> private, query = Private([[1.0, 0.0]] * 9000 + [[0.0, 1.0]] * 1000), SecondMoment(
    ...     Cleaning(radius=1.0)
    ... )
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     grants = session.plan(*algorithm.requests(session, query))
    ...     q, w = algorithm.release(session, grants, session.hide(query))
    >>> bool(q[0] > 0.7), bool(w[0] > 0.1), session.guarantee.epsilon <= 1.0
    (True, True, True)
    """

    objective: Objective
    steps: int
    step_size: float
    output: str = "last"
    exact: bool = False

    def __post_init__(self) -> None:
        validate.count("steps", self.steps)
        if not 0 < validate.positive("step_size", self.step_size) <= 1:
            raise ValueError(f"step_size must be at most 1; got {self.step_size!r}.")
        validate.choice("output", self.output, ("last", "uniform", "select"))

    def minimise(
        self, statistic: npt.ArrayLike, *, rng: np.random.Generator | None = None
    ) -> tuple[Array, Array]:
        """Weights and coefficients for a statistic that is public (or released), without noise."""
        known = symmetric_part(statistic)
        return self._run(
            lambda scores: int(np.argmin(scores(known))),
            lambda q, w: self.objective.coefficient_gradient(q, w, known),
            lambda gaps: int(np.argmin(gaps(known))),
            rng,
        )

    def requests(
        self, session: Session, query: SecondMoment, *, calibration: str = "tight"
    ) -> tuple[Request, ...]:
        """Ask for the vertices, then the gradients in w (if private), then the selection (if any).

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
        reach = self.objective.range_sensitivity(*facts)
        turn = self.objective.coefficient_sensitivity(*facts)
        if self.exact and turn > 0:
            raise ValueError("exact=True needs an objective whose gradient in w is public.")
        (_, d), K, printed = self.objective.shape, self.steps, calibration == "paper"
        noise = factor = None
        if printed:
            factor = 4 * math.sqrt(2 * K * math.log(1 / validate.delta(session.delta)))
            factor /= session.epsilon
            noise = factor * self.objective.printed_sensitivity(*facts)
        vertex: Mechanism = "laplace-argmin" if printed else "noisy-argmin"
        asked = [Request(vertex, "Frank-Wolfe vertex", reach, count=K, printed=noise)]
        if turn > 0:
            spread = None if factor is None else factor * turn
            asked.append(Request("gaussian", "gradient in w", turn, d, K, printed=spread))
        if self.output == "select":
            gap = 2 * (reach + 2 * self.objective.radius * turn)
            asked.append(
                Request("noisy-argmin", "choice of iterate", gap, weight=2.0, printed=noise)
            )
        return tuple(asked)

    def release(
        self,
        session: Session,
        grants: Sequence[Grant],
        statistic: Hidden,
        *,
        rng: np.random.Generator | None = None,
    ) -> tuple[Array, Array]:
        """Weights and coefficients for a hidden statistic; trades the grants of :meth:`requests`.

        ``rng`` draws the iterate where the output is "uniform"; no privacy hangs on it.
        """
        mechanism, vertex = vertex_mechanism(session, grants[0]), grants[0]
        by_label = {grant.request.label: grant for grant in grants}

        def turn(q: Array, w: Array) -> Array:
            if "gradient in w" not in by_label:
                return self.objective.coefficient_gradient(q, w, None)
            return session.gaussian(
                by_label["gradient in w"],
                statistic,
                lambda known: self.objective.coefficient_gradient(q, w, known),
            )

        return self._run(
            lambda scores: mechanism(vertex, statistic, scores),
            turn,
            lambda gaps: session.noisy_argmin(by_label["choice of iterate"], statistic, gaps),
            rng,
        )

    def path(
        self, choose: Callable[[Callable[[Array], Array]], int], turn: Callable[..., Array]
    ) -> Iterator[tuple[Array, Array]]:
        """Iterates (q_0, w_0) ... (q_K, w_K).

        Parameters
        ----------
        choose : callable
            Takes the scores as a function of the private statistic, returns the chosen vertex.
        turn : callable
            Takes q and w, returns the (noisy) gradient in w.
        """
        (m, d), eta = self.objective.shape, self.step_size
        q, w = np.full(m, 1 / m), np.zeros(d)
        yield q, w
        for _ in range(self.steps):

            def scores(statistic: Array, q: Array = q, w: Array = w) -> Array:
                return self.objective.weight_gradient(q, w, statistic)

            chosen = choose(scores)
            slope = turn(q, w)
            q = (1 - eta) * q
            q[chosen] += eta
            if self.exact:
                w = self.objective.best_coefficients(q)
            else:
                w = (1 - eta) * w + eta * _farthest(slope, self.objective.radius)
            yield q, w

    def _run(
        self,
        choose: Callable[[Callable[[Array], Array]], int],
        turn: Callable[[Array, Array], Array],
        select: Callable[[Callable[[Array], Array]], int],
        rng: np.random.Generator | None,
    ) -> tuple[Array, Array]:
        # a path is repeated from what was released: no step pays twice, nothing large is stored
        vertices: list[int] = []
        slopes: list[Array] = []

        def record(scores: Callable[[Array], Array]) -> int:
            vertices.append(choose(scores))
            return vertices[-1]

        def remember(q: Array, w: Array) -> Array:
            slopes.append(turn(q, w))
            return slopes[-1]

        def replay() -> Iterator[tuple[Array, Array]]:
            again, downhill = iter(vertices), iter(slopes)
            return self.path(lambda _: next(again), lambda q, w: next(downhill))

        def gaps(statistic: Array) -> Array:
            iterates = zip(range(self.steps), replay(), strict=False)
            return np.array([self._gap(q, w, statistic) for _, (q, w) in iterates])

        for last in self.path(record, remember):
            end = last
        if self.output == "last":
            return end
        rng = np.random.default_rng() if rng is None else rng
        k = select(gaps) if self.output == "select" else int(rng.integers(self.steps))
        return next(pair for place, pair in enumerate(replay()) if place == k)

    def _gap(self, q: Array, w: Array, statistic: Array) -> float:
        """Stationarity gap: how fast f falls towards the best vertex and direction."""
        scores = self.objective.weight_gradient(q, w, statistic)
        slope = self.objective.coefficient_gradient(q, w, statistic)
        steepest = slope @ (w - _farthest(slope, self.objective.radius))
        return float(scores @ q - scores.min() + steepest)


def ball_least_squares(moment: Array, cross: Array, *, radius: float) -> Array:
    r"""Minimise :math:`w^T A w - 2 b \cdot w` over :math:`\|w\| \le \Lambda`, A semidefinite.

    Of several minimisers the one of least norm. On the sphere :math:`w = (A + \nu I)^{-1} b` with
    the multiplier :math:`\nu \ge 0` that brings its norm to the radius.

    Examples
    --------
    >>> ball_least_squares(np.eye(2), np.array([3.0, 4.0]), radius=1.0).round(6)
    array([0.6, 0.8])
    >>> ball_least_squares(np.eye(2), np.array([3.0, 4.0]), radius=9.0)
    array([3., 4.])
    """
    values, vectors = np.linalg.eigh(moment)
    kept = values > 1e-12 * max(float(values[-1]), 0.0)
    values, along = values[kept], vectors[:, kept].T @ cross

    def excess(multiplier: float) -> float:
        return float(np.linalg.norm(along / (values + multiplier))) - radius

    multiplier = 0.0
    if values.size and excess(0.0) > 0:
        multiplier = float(brentq(excess, 0.0, 2 * float(np.linalg.norm(along)) / radius))
    return np.asarray(vectors[:, kept] @ (along / (values + multiplier)))


def _farthest(slope: Array, radius: float) -> Array:
    """Point of the ball that is farthest down the slope; its center where there is none."""
    norm = float(np.linalg.norm(slope))
    return np.zeros_like(slope) if norm == 0 else -radius / norm * slope
