r"""Full-batch noisy gradient descent on weighted rows.

In place of Algorithm 3's millions of steps on one drawn row each, some dozen steps on the whole
weighted gradient. Its sensitivity is that of a weighted sum: no subsampling lemma is needed, the
privacy of R T releases is exact (Gaussian differential privacy), and 2 q is all that a row can do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadapt.hybrid.rules import LinearRule
from dpadapt.learning.constraints import Count, ParameterTable, Positive
from dpadapt.learning.descent import descend, within
from dpadapt.privacy.mechanisms import Gaussian

from .doors.weighted import WeightedMean, weighted_sensitivity
from .learners import Learner, LearningTask, WeightedRows
from .queries.weighted_slopes import WeightedJointSlope, WeightedSlope


@dataclass(frozen=True)
class GradientLearner(Learner):
    r"""Logistic regression by R noisy gradients of all rows.

    :math:`v \leftarrow \Pi(v - \gamma C^2 (\sum_i \mu_i g_i + \text{noise}))`, and the mean of the
    last half of the iterates. Rows have norm at most 1 after division by C, hence the C^2.

    More than two classes have one joint rule, by the gradients of the joint logistic loss: one
    release a step as well, :math:`\sqrt 2` times as sensitive, with half the step, because that
    loss is up to twice as curved. The budget is not divided among the classes.

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

    joint: ClassVar[bool] = True
    _constraints: ClassVar[ParameterTable] = {
        "steps": [Count()],
        "step_size": [Positive()],
        "radius": [Positive()],
    }

    def mechanism(self, task: LearningTask, density: float) -> Gaussian:
        """R Gaussian releases, of sensitivity 2 / (density n); of many classes sqrt(2) times it."""
        query = _slope(task, np.zeros_like(task.blank.coefficients))
        sensitivity = weighted_sensitivity(query, density, task.n_rows)
        size = task.blank.coefficients.size
        return Gaussian(query.label, sensitivity, dimension=size, count=self.steps)

    def learn(self, rows: WeightedRows) -> LinearRule:
        """R steps from 0."""
        task, blank = rows.task, rows.task.blank
        start = np.zeros_like(blank.coefficients)
        size = self.step_size * blank.clip**2 / start.ndim

        def slope(v: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(rows.release(rows.sum(_slope(task, v), keep=True)))

        ball = within(self.radius * blank.clip)
        return blank.with_coefficients(descend(slope, start, size, self.steps, project=ball))


def _slope(task: LearningTask, v: NDArray[np.float64]) -> WeightedMean:
    """The gradient at v: of one score, or of one for each class."""
    kind: Any = WeightedSlope if v.ndim == 1 else WeightedJointSlope
    slope: WeightedMean = kind(task.embedded_columns, v)
    return slope
