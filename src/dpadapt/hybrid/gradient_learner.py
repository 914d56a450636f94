r"""Full-batch noisy gradient descent on weighted rows.

In place of Algorithm 3's millions of steps on one drawn row each, some dozen steps on the whole
weighted gradient. Its sensitivity is that of a weighted sum: no subsampling lemma is needed, the
privacy of R T releases is exact (Gaussian differential privacy), and 2 q is all that a row can do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpadapt._constraints import Count, Positive, Table
from dpadapt.privacy import shrink_factors
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.statistics import weighted_sensitivity

from .learners import Learner, LearningTask, WeightedRows
from .queries import WeightedSlope
from .rules import LinearRule

__all__ = ["GradientLearner"]


@dataclass(frozen=True)
class GradientLearner(Learner):
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
    >>> first, second = GradientLearner().planned(LearningTask(1000, 2, blank), [1.0, 0.5])
    >>> first.count, round(first.sensitivity, 6), round(second.sensitivity, 6)
    (25, 0.002, 0.004)
    """

    steps: int = 25
    step_size: float = 6.0
    radius: float = 8.0

    _constraints: ClassVar[Table] = {
        "steps": [Count()],
        "step_size": [Positive()],
        "radius": [Positive()],
    }

    def mechanism(self, task: LearningTask, density: float) -> Gaussian:
        """R Gaussian releases, of sensitivity 2 / (density n)."""
        query = WeightedSlope(task.embedded_columns, np.zeros(task.blank.width))
        sensitivity = weighted_sensitivity(query, density, task.n_rows)
        return Gaussian(query.label, sensitivity, dimension=task.blank.width, count=self.steps)

    def learn(self, rows: WeightedRows) -> LinearRule:
        """R steps from 0."""
        task, blank = rows.task, rows.task.blank
        v = np.zeros(blank.width)
        longest, size = self.radius * blank.clip, self.step_size * blank.clip**2
        last = math.ceil(self.steps / 2)
        total = np.zeros_like(v)
        for step in range(self.steps):
            slope = rows.sum(WeightedSlope(task.embedded_columns, v), keep=True)
            v = v - size * rows.release(slope)
            v = v * shrink_factors(np.linalg.norm(v), longest)
            if step >= self.steps - last:
                total += v
        return blank.with_coefficients(total / last)
