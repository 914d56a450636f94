r"""What the theorems of paper 004 promise, as numbers: :math:`\rho = \mu^2 / 2` is the privacy.

Theorem 15 (Lacoste-Julien, Schmidt and Bach) is about any m-strongly convex f, stochastic gradients
of mean square G^2 and steps 2 / (m (t + 1)); the corollaries and Theorems 3 and 18 put the noise of
gradients into G. Expectations are over the noise (and over the public rows in Corollary 17 and
Theorem 18). Losses are sums over N rows in Corollary 16, and means in Theorems 3 and 18.

Errata. Theorem 3's bound lacks a factor 2: its own proof, at the best lambda, gives
2 sqrt(d) L D / sqrt(2 rho) for the sum of losses (``printed=True`` gives the printed form); the
lambda it prints is the inverse. Theorem 18's statement has the factor, the display in its proof
has not. W must be bounded (B) in Corollary 16: gradients of the penalty are at most lambda B there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpadapt import _validate as validate

__all__ = ["DescentFacts", "average_gap", "last_distance", "public_distance"]


def average_gap(convexity: float, gradient: float, steps: int) -> float:
    r"""Theorem 15 (1): by how much f is too high at the weighted mean of T iterates.

    At most 2 G^2 / (m (T + 1)).

    Parameters
    ----------
    convexity, gradient : float
        m and G.
    steps : int
        T.

    Examples
    --------
    >>> average_gap(convexity=1.0, gradient=2.0, steps=7)
    1.0
    """
    m, G = validate.positive("convexity", convexity), validate.positive("gradient", gradient)
    return 2 * G**2 / (m * (validate.count("steps", steps) + 1))


def last_distance(convexity: float, gradient: float, steps: int) -> float:
    r"""Theorem 15 (2): the last iterate's mean squared distance from the minimum.

    At most 4 G^2 / (m^2 (T + 1)).

    Examples
    --------
    >>> last_distance(convexity=2.0, gradient=2.0, steps=3)
    1.0
    """
    return 2 * average_gap(convexity, gradient, steps) / convexity


def public_distance(curvature: float, lipschitz: float, rows: int) -> float:
    r"""Corollary 17: how far one pass over public rows ends from the best weights (rms).

    At most 2 L / (c sqrt(N_pub)).

    Parameters
    ----------
    curvature, lipschitz : float
        c of the expected loss, and L.
    rows : int
        N_pub.

    Examples
    --------
    >>> public_distance(curvature=0.1, lipschitz=1.0, rows=400)
    1.0
    """
    c, L = validate.positive("curvature", curvature), validate.positive("lipschitz", lipschitz)
    return 2 * L / (c * math.sqrt(validate.count("rows", rows)))


@dataclass(frozen=True)
class DescentFacts:
    r"""Noisy gradient descent held near the public model: Corollary 16, Theorems 3 and 18.

    Parameters
    ----------
    rows : int
        N.
    dimension : int
        d, numbers in the weights.
    mu : float
        Of the whole run: :math:`\sqrt{T} / \sigma`, sigma in units of L.
    steps : int
        T.
    lipschitz : float, default=1.0
        L, at which gradients are clipped.
    radius : float, default=1.0
        B, bound on the weights, and on how far any of them are from the public model: the set
        that the descent stays in, of which the theorems speak. A comparator beyond it is refused.

    Examples
    --------
    >>> facts = DescentFacts(rows=10_000, dimension=100, mu=1.0, steps=10**6)
    >>> best = facts.best_penalty(distance=0.5)
    >>> all(facts.excess(0.5, best) <= facts.excess(0.5, other) for other in (best / 2, best * 2))
    True
    """

    rows: int
    dimension: int
    mu: float
    steps: int
    lipschitz: float = 1.0
    radius: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rows", "dimension", "steps"):
            validate.count(name, getattr(self, name))
        for name in ("mu", "lipschitz", "radius"):
            validate.positive(name, getattr(self, name))

    def gap(self, penalty: float) -> float:
        """Corollary 16: the objective (a sum of losses, and the penalty) above its least value.

        Parameters
        ----------
        penalty : float
            lambda.
        """
        lam = validate.positive("penalty", penalty)
        slope = self.rows * self.lipschitz + lam * self.radius
        noise = self.dimension * self.steps * (self.lipschitz / self.mu) ** 2  # d sigma^2
        return 2 * (slope**2 + noise) / (lam * self.steps)

    def best_penalty(self, distance: float) -> float:
        r"""Lambda at which the noise and the pull to the public model are balanced (Theorem 3).

        :math:`\sqrt{2 d L^2 / (\rho D^2)}`, D the distance of the comparator from that model.
        """
        D = self._reached(distance)
        return math.sqrt(2 * self.dimension / (self.mu**2 / 2)) * self.lipschitz / D

    def excess(
        self, distance: float, penalty: float | None = None, *, printed: bool = False
    ) -> float:
        """Theorem 3: mean loss above that of weights at a distance from the public model.

        Parameters
        ----------
        distance : float
            D.
        penalty : float, optional
            lambda; by default the best one.
        printed : bool, default=False
            The privacy term as printed: half of what its proof gives at the best lambda.
        """
        lam = self.best_penalty(distance) if penalty is None else penalty
        if not printed:
            return (self.gap(lam) + lam * self._reached(distance) ** 2 / 2) / self.rows
        slope = self.rows * self.lipschitz + lam * self.radius
        noise = math.sqrt(self.dimension) * self.lipschitz * distance / self.mu
        return (4 * slope**2 / (lam * self.steps) + noise) / self.rows

    def _reached(self, distance: float) -> float:
        """D, of a comparator that lies in the set."""
        D = validate.positive("distance", distance)
        if self.radius < D:
            raise ValueError(
                f"distance must be at most radius, {self.radius:.6g}: the theorems compare with "
                f"weights of the set that the descent stays in; got {D:.6g}."
            )
        return D

    def excess_with_public(self, public_rows: int, curvature: float) -> float:
        """Theorem 18: the cost of privacy above the best weights, as T grows without end.

        4 sqrt(d) L^2 / (c sqrt(N_pub) N sqrt(2 rho)); two gaps of generalisation, which learning
        without privacy has as well, come on top.

        Parameters
        ----------
        public_rows : int
            N_pub.
        curvature : float
            c of the expected loss.
        """
        away = public_distance(curvature, self.lipschitz, public_rows)
        return 2 * math.sqrt(self.dimension) * self.lipschitz * away / (self.mu * self.rows)
