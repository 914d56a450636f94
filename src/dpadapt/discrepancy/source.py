"""What solvers are given, public rows in public units, and what they return: weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.base import Problem
from dpadapt.learning.checks import public_scaling
from dpadapt.learning.public_fits import public_ridge
from dpadapt.privacy import Guarantee, shrink_factors

from .second_stage import weighted_fit

if TYPE_CHECKING:
    from dpadapt.learning.certificate import NoisyNumber

    from .moments import NoisyMoment


INTERCEPT = 1.0
"""The constant column beside standardised features."""

_QUANTILE = 0.99  # of public norms: the radius


@dataclass(frozen=True, eq=False)
class Source(Problem):
    """Public rows, standardised, with a last column for the constant; and their labels.

    Rows are matched as private rows are released, shrunk to the radius, and fitted as they are.

    Parameters
    ----------
    given_ridge : float, optional
        The caller's penalty of the second stage, else that of the public-only model.
    given_bound : float, optional
        The caller's bound on the norm of coefficients.
    given_radius : float, optional
        The caller's bound on the norm of rows.

    Examples
    --------
    >>> source = Source(np.array([[1.0], [3.0]]), np.array([5.0, 9.0]))
    >>> source.rows
    array([[-1.,  1.],
           [ 1.,  1.]])
    >>> source.linear(np.array([2.0, 7.0]))
    {'coef_': array([2.]), 'intercept_': 3.0}
    """

    given_ridge: float | None = None
    given_bound: float | None = None
    given_radius: float | None = None

    @cached_property
    def scaling(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the columns."""
        return public_scaling(self.X)

    @cached_property
    def rows(self) -> FloatArray:
        """Standardised, of shape (m, d + 1)."""
        center, scale = self.scaling
        return np.column_stack([(self.X - center) / scale, np.full(len(self.X), INTERCEPT)])

    @cached_property
    def radius(self) -> float:
        """The caller's, or a norm that 99 % of public rows do not exceed."""
        if self.given_radius is not None:
            return float(self.given_radius)
        norms = np.linalg.norm(self.rows[:, :-1], axis=1)
        found = float(np.quantile(norms, _QUANTILE)) or float(norms.max())
        if not found > 0:
            raise ValueError(
                "radius: every column of the public X is constant, so that no bound on private "
                "rows follows from it; pass radius."
            )
        return found

    @cached_property
    def matched(self) -> FloatArray:
        """The rows, shrunk to the radius: the form in which private rows are released."""
        features = self.rows[:, :-1]
        factors = shrink_factors(np.linalg.norm(features, axis=1), self.radius)
        return np.column_stack([features * factors[:, None], self.rows[:, -1]])

    @cached_property
    def ridge(self) -> float:
        """Penalty of the second stage, on a mean of squared errors: that of the public model."""
        if self.given_ridge is not None:
            return float(self.given_ridge)
        unit = float(np.abs(self.centered).max()) or 1.0
        found = public_ridge(self.rows, self.centered[:, None] / unit)
        return found.strength / len(self.rows)

    @cached_property
    def centered(self) -> FloatArray:
        """Labels, of mean 0."""
        return np.asarray(self.labels - self.labels.mean())

    @property
    def uniform(self) -> FloatArray:
        """Equal weights."""
        return np.full(len(self.rows), 1 / len(self.rows))

    @cached_property
    def norm_bound(self) -> float:
        """The paper's Lambda: given, or twice the norm of the public-only coefficients."""
        if self.given_bound is not None:
            return float(self.given_bound)
        return max(2 * self.public_norm, 1e-6)

    @cached_property
    def public_norm(self) -> float:
        """Norm of the public-only coefficients, for standardised columns and centered labels."""
        public = weighted_fit(self.rows, self.centered, self.uniform, ridge=self.ridge)
        return float(np.linalg.norm(public))

    def constant(self, value: float) -> FloatArray:
        """Coefficients of the function that is ``value`` everywhere."""
        slopes = np.zeros(self.rows.shape[1])
        slopes[-1] = value / INTERCEPT
        return slopes

    def linear(self, slopes: FloatArray) -> dict[str, Any]:
        """Fitted attributes, in the units of the caller."""
        center, scale = self.scaling
        coef = slopes[:-1] / scale
        return {"coef_": coef, "intercept_": float(INTERCEPT * slopes[-1] - center @ coef)}


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Weights of the public rows, and what they cost.

    Parameters
    ----------
    weights : ndarray of shape (m,)
    discrepancy, uniform_discrepancy : float or None
        Measured on what was released; None where nothing was.
    guarantee : Guarantee
    slopes : ndarray, optional
        Where the solver has coefficients of its own, for standardised columns.
    released : NoisyMoment or NoisyNumber, optional
        What a certificate rests on.

    Examples
    --------
    >>> Adaptation(np.array([0.5, 0.5])).discrepancy
    0.0
    """

    weights: FloatArray
    discrepancy: float | None = 0.0
    uniform_discrepancy: float | None = 0.0
    guarantee: Guarantee = field(default_factory=Guarantee)
    slopes: FloatArray | None = None
    released: NoisyMoment | NoisyNumber | None = None
