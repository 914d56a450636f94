"""What the baselines claim about one replaced row, each claim with its proof.

Private rows z have norm R at most, labels t norm B at most, n of them, under replace-one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy import Hidden, RowMean, Session, shrink_factors
from dpadapt.privacy.mechanisms import GaussianInside

from ._tasks import loss_derivatives

JACOBIAN = 0.385  # largest a / m of the linear term; its proof holds up to 0.398


@dataclass(frozen=True)
class RowMoment(RowMean):
    r"""Mean of z z^T over rows whose first ``width`` columns are z, of norm ``radius`` at most.

    The square of what one row changes is :math:`|z|^4 + |z'|^4 - 2 (z \cdot z')^2` in the Frobenius
    norm, at most 2 R^4: the mean moves by at most :math:`\sqrt 2 R^2 / n`, attained by rows of
    length R at right angles.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = RowMoment(Cleaning(radius=2.0), radius=2.0, width=1)
    >>> query.block(np.array([[1.0, 5.0], [2.0, 5.0]]), None), query.sensitivity(1) == 4 * 2**0.5
    (array([[5.]]), True)
    """

    cleaning: Any
    radius: float
    width: int
    label: str = "second moment"

    @property
    def magnitude(self) -> float:
        """R^2."""
        return self.radius**2

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Square."""
        return (self.width, self.width)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of z z^T."""
        rows = X[:, : self.width]
        return np.asarray(rows.T @ rows)

    def sensitivity(self, n_rows: int) -> float:
        """Frobenius sensitivity of the mean."""
        return math.sqrt(2) * self.radius**2 / n_rows


def hidden_least_eigenvalue(session: Session, moment: Hidden) -> Hidden:
    r"""Hide the least eigenvalue of a hidden :class:`RowMoment`.

    :math:`z z^T - z' z'^T` lies between :math:`-R^2 I` and :math:`R^2 I`, so every eigenvalue moves
    by at most R^2 / n (Weyl's inequality), which is the moment's sensitivity over the root of two.
    Attained where the least eigenvalue is 0 but for the one row: a single column, say.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> with Private([[1.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(RowMoment(Cleaning(radius=1.0), radius=1.0, width=1))
    ...     round(hidden_least_eigenvalue(session, moment).sensitivity, 6)
    0.1
    """
    return session.derive(
        moment,
        lambda matrix: np.linalg.eigvalsh(matrix)[:1],
        label="least eigenvalue",
        sensitivity=moment.sensitivity / math.sqrt(2),
    )


@dataclass(frozen=True)
class CrossMoment(RowMean):
    """Mean of z t^T over rows (z, t), with |z| <= ``radius`` and |t| <= ``bound``.

    A row adds a matrix of Frobenius norm |z| |t| <= R B, so the mean moves by at most 2 R B / n,
    attained by opposite rows with one label.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = CrossMoment(Cleaning(radius=9.0), radius=2.0, bound=5.0, width=1, outputs=1)
    >>> query.block(np.array([[1.0, 5.0], [2.0, 5.0]]), None), query.sensitivity(10)
    (array([[15.]]), 2.0)
    """

    cleaning: Any
    radius: float
    bound: float
    width: int
    outputs: int
    label: str = "moment with the label"

    @property
    def magnitude(self) -> float:
        """R B."""
        return self.radius * self.bound

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One column for each output."""
        return (self.width, self.outputs)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of z t^T."""
        return np.asarray(X[:, : self.width].T @ X[:, self.width :])

    def sensitivity(self, n_rows: int) -> float:
        """Frobenius sensitivity of the mean."""
        return 2 * self.radius * self.bound / n_rows


@dataclass(frozen=True, eq=False)
class ClippedGradient(RowMean):
    """Mean over the rows of the loss's gradient, each row's cut to the norm ``clip``.

    Two rows' contributions have norms of at most clip, so their difference has at most 2 clip:
    the mean moves by at most 2 clip / n under replace-one, attained at opposite gradients.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = ClippedGradient(Cleaning(radius=9.0), np.zeros((1, 1)), clip=3.0, classes=0)
    >>> query.block(np.array([[1.0]]), np.array([2.0])), query.sensitivity(10)
    (array([[-2.]]), 0.6)
    """

    cleaning: Any
    coefficients: FloatArray
    clip: float
    classes: int
    label: str = "gradient"

    @property
    def magnitude(self) -> float:
        """Clip."""
        return self.clip

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Of the coefficients."""
        return self.coefficients.shape

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of the clipped gradients."""
        return clipped_gradient(X, y, self.coefficients, self.clip, self.classes)

    def sensitivity(self, n_rows: int) -> float:
        """Euclidean sensitivity of the mean."""
        return 2 * self.clip / n_rows


def clipped_gradient(
    X: FloatArray, labels: Any, coefficients: FloatArray, clip: float, classes: int
) -> FloatArray:
    """Sum of the rows' gradients, each cut to the norm ``clip``.

    Examples
    --------
    >>> clipped_gradient(np.array([[1.0]]), np.array([2.0]), np.zeros((1, 1)), 9.0, classes=0)
    array([[-2.]])
    """
    errors = loss_derivatives(X @ coefficients, labels, classes)
    norms = np.linalg.norm(errors, axis=1) * np.linalg.norm(X, axis=1)
    errors *= shrink_factors(norms, clip)[:, None]
    return np.asarray(X.T @ errors)


# objective perturbation


def linear_term(largest: float, dimension: int, problems: int) -> GaussianInside:
    """Plan the random linear term of :mod:`.objective_perturbation`: sensitivity 4 G.

    The released w minimises

        F(w) = sum_i phi_i(z_i . w) + (L/2) |w - w_0|^2 + b . w,    b ~ N(0, s^2 I),

    phi convex with |phi'| <= c and phi'' <= k; G = c R (``largest``) bounds a row's gradient. It is
    a generalised linear model: a row's gradient is a multiple of the row.

    F is strongly convex, so b and w determine each other: b(w) = -(sum phi' z + L (w - w_0)), and
    the density of w is that of b at b(w) times det H(w), H the Hessian. Take first the sample with
    one row z *removed*. Write g = b . z/|z| for the noise along z, m = G/s, and
    a = log(1 + k R^2/L).

    * Row removed. b' = b + phi'(z.w) z moves along z by v(g), |v| <= G. Given the noise across z,
      z.w falls in g and phi' grows, so v falls in g: it is >= 0 before some g_0 and <= 0 after it.
      The loss (2 g v + v^2) / (2 s^2) is convex in v, so for g_0 >= 0 it is at most that of the
      constant move G, or 0 (for g_0 < 0 that of -G). H loses a matrix of rank one: the determinant
      adds at most a. The loss is at most a + max(0, l), l ~ N(m^2/2, m^2).
    * Row added. Now v grows in g: the move may have the sign of the noise, whichever that is. The
      loss is at most m |h| + m^2/2, h standard normal; the determinant only lowers it. (Proofs that
      treat the direction of the move as independent of the noise miss this.)

    Both are dominated by a Gaussian mechanism with mu = 2 m if a <= 0.39 m. With p(x) and q(x) the
    chances of a loss above x here and there, delta(e) is the integral of exp(e - x) p(x) over
    x > e. At e = 0 it is 2 Phi(m) - 1 for a row added, which is the Gaussian's; and for a row
    removed 1 - 2 exp(-a) Phi(-m/2), which is no more because a <= log(Phi(-m/2) / Phi(-m)), a
    number of at least m phi(0) > 0.398 m. p/q is above 1 for small x, then falls (the hazard of the
    normal law grows), so it crosses 1 once; before the crossing the integral of p from 0 is the
    larger, after it p is the smaller: in both cases delta(e) is at most the Gaussian's.

    A row is replaced by removing it and adding another: 4 m-GDP. So the linear term is charged as a
    Gaussian release of sensitivity 4 G with noise s, and L >= k R^2 / (exp(0.385 m) - 1)
    (:func:`needed_strength`).

    The proof needs noise with a density. b is never released, so it is never rounded: on a grid,
    b(w) computed from w would lie on the grid for the true rows alone, and w would tell them.

    Examples
    --------
    >>> linear_term(largest=2.0, dimension=3, problems=1).sensitivity
    8.0
    """
    return GaussianInside("linear term", 4 * largest, dimension, problems)


def needed_strength(mu: float, radius: float, curvature: float) -> float:
    """L that keeps the determinant within its share, for a linear term of mu = 4 G / s.

    Examples
    --------
    >>> round(needed_strength(mu=1.0, radius=1.0, curvature=0.25), 3)
    2.474
    """
    return curvature * radius**2 / math.expm1(JACOBIAN * mu / 4)


def solver_reach(tolerance: float, strength: float) -> float:
    """How far apart, for neighbours, the answers of a solver can be that have one minimiser.

    Inexact minima (Iyengar et al. 2019). F is strongly convex: where its gradient has a norm of at
    most t (``tolerance``), the minimiser w is at most t / L away, L the ``strength``. Given w, what
    the solver adds to it differs between neighbours by at most 2 t / L: noise calibrated to that is
    added, a Gaussian release of its own. As much again is for rounding in the gradient itself.

    Examples
    --------
    >>> solver_reach(tolerance=0.1, strength=2.0)
    0.2
    """
    return 4 * tolerance / strength


def hidden_solution(session: Session, minimum: Hidden, tolerance: float, strength: float) -> Hidden:
    """Hide the answer of the solver, to be released given the minimiser: :func:`solver_reach`.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> with Private([[1.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     rows = session.hide(Rows(Cleaning(radius=1.0)))
    ...     grants = session.plan(linear=linear_term(1.0, 1, 1))
    ...     minimum = session.release(grants.linear, rows, function=lambda rows, noise: noise)
    ...     hidden_solution(session, minimum, tolerance=0.1, strength=2.0).sensitivity
    0.2
    """
    reach = solver_reach(tolerance, strength)
    return session.derive(minimum, lambda w: w, label="solver", sensitivity=reach)
