r"""Full-batch noisy gradient descent on weighted rows.

In place of Algorithm 3's millions of steps on one drawn row each, some dozen steps on the whole
weighted gradient. Its sensitivity is that of a weighted sum: no subsampling lemma is needed, the
privacy of R T releases is exact (Gaussian differential privacy), and 2 q is all that a row can do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpadapt.privacy import Grant, Request, RowMap, Session
from dpadapt.privacy import _validate as validate
from dpadapt.privacy.weighted import weighted_sensitivity
from dpadapt.privacy.weights import RowWeights

from .learners import Task
from .rules import LinearRule

__all__ = ["GradientLearner", "WeightedSlope"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WeightedSlope:
    r"""Gradient of the weighted logistic loss of a linear rule in its coefficients v.

    One row contributes :math:`g(z, y) = -y \, z / (1 + e^{y \langle v, z \rangle})`, and 0 if it is
    of no class. :math:`\|z\| \le 1` gives :math:`\|g\| < 1`, so with weights
    :math:`\mu_i \le q` the sum moves by at most 2 q if a row is replaced (overlap lemma,
    :mod:`dpadapt.privacy.weights`). Attained in the limit of a large v: two rows on its wrong side,
    almost orthogonal to it and opposite to each other, pull with all their weight to either side.

    Parameters
    ----------
    cleaning : RowMap
        To rows z of norm at most 1 and labels -1, 0, 1.
    coefficients : ndarray of shape (p,)
        v.

    Examples
    --------
    >>> task = Task(2, 1, LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1), clip=1.0))
    >>> query = WeightedSlope(task.embedded, np.zeros(2))
    >>> query.weighted_block(np.array([[0.6, 0.8]]), np.array([1.0]), np.array([0.1]))
    array([-0.03, -0.04])
    >>> query.sensitivity(100)
    0.02
    """

    cleaning: RowMap
    coefficients: Array
    label: str = "weighted gradient"
    magnitude: float = 1.0

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number for each coefficient."""
        return (len(self.coefficients),)

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum of the gradients, unweighted."""
        return self.weighted_block(X, y, np.ones(len(X)))

    def weighted_block(self, X: Array, y: Array | None, weights: Array) -> Array:
        """Sum of the gradients, each times its weight."""
        if y is None:
            return np.zeros(len(self.coefficients))
        pull = X @ self.coefficients
        pull *= y
        with np.errstate(over="ignore"):  # of a row that v is right about: it does not pull
            np.exp(pull, out=pull)
        pull += 1.0
        np.divide(y, pull, out=pull)
        pull *= weights
        return np.asarray(-(pull @ X))

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean over equally weighted rows."""
        return 2 / n_rows


@dataclass(frozen=True)
class GradientLearner:
    r"""Logistic regression by R noisy gradients of all rows.

    :math:`v \leftarrow \Pi(v - \gamma C^2 (\sum_i \mu_i g_i + \text{noise}))`, and the mean of the
    last half of the iterates. Rows have norm at most 1 after division by C, hence the C^2.

    Parameters
    ----------
    steps : int, default=25
        R, of one round.
    step_size : float, default=6.0
        gamma, for features of unit variance.
    radius : float, default=8.0
        Bound on the norm of v, in units of C.

    Examples
    --------
    >>> blank = LinearRule("linear", np.zeros(2), np.ones(2), np.zeros(3), (0, 1))
    >>> first, second = GradientLearner().requests(Task(1000, 2, blank), [1.0, 0.5])
    >>> first.count, round(first.sensitivity, 6), round(second.sensitivity, 6)
    (25, 0.002, 0.004)
    """

    steps: int = 25
    step_size: float = 6.0
    radius: float = 8.0

    def __post_init__(self) -> None:
        validate.count("steps", self.steps)
        validate.positive("step_size", self.step_size)
        validate.positive("radius", self.radius)

    def requests(self, task: Task, densities: Sequence[float]) -> tuple[Request, ...]:
        """R Gaussian releases a round, of sensitivity 2 / (density n)."""
        query = WeightedSlope(task.embedded_columns, np.zeros(task.blank.width))
        return tuple(
            Request(
                "gaussian",
                query.label,
                weighted_sensitivity(query, density, task.n_rows),
                dimension=task.blank.width,
                count=self.steps,
            )
            for density in densities
        )

    def learn(
        self,
        task: Task,
        session: Session,
        grants: tuple[Grant, ...],
        weights: RowWeights,
        density: float,
    ) -> LinearRule:
        """R steps from 0."""
        (grant,) = grants
        v = np.zeros(task.blank.width)
        longest, size = self.radius * task.blank.clip, self.step_size * task.blank.clip**2
        last = math.ceil(self.steps / 2)
        total = np.zeros_like(v)
        for step in range(self.steps):
            slope = WeightedSlope(task.embedded_columns, v)
            hidden = session.hide_weighted(slope, weights, density, keep=True)
            v = v - size * session.gaussian(grant, hidden)
            v = v * min(1.0, longest / max(float(np.linalg.norm(v)), 1e-300))
            if step >= self.steps - last:
                total += v
        return task.blank.with_coefficients(total / last)
