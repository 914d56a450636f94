r"""Public constants of a kernel model: what is known of it before a record is read.

    J(w) = (1/n) sum_i l(<w, phi_i>, y_i) + (lambda/2) \|w\|^2,    \|phi_i\| <= R.

**Norms.** w = -(1/(lambda n)) sum l'_i phi_i gives \|w\| <= LR/lambda, J(w) <= J(0) gives
\|w\| <= sqrt(2 J(0)/lambda); C is the smaller. Both are public. So is J(0) - J(w) <= lambda C^2/2.

**Tolerance.** A solver returns w~ with \|grad J(w~)\| <= r, r = 0.005 * 2LR/n, so that the
sensitivity (:func:`dpadapt.kernels.queries.weights`) is one hundredth more than for exact
minimisers.

**Rounding.** With unit u = 2^-53, sums of n terms taken in blocks of b, and \|w\| <= 2C: a score is
off by at most 2uDRC, which moves the gradient by beta R times that; the sum of gradients is off
by u(b + n/b) LR, the functions in it by a few u LR, the penalty's part and the step itself by a
few u (beta R^2 + lambda) C. rho is twice the sum of these, and 4e-12 LR/n for norms that rounding
lifts above R. The tolerance r is never below 4 rho: a computed norm of at most r - rho proves
\|grad J\| <= r, and 3 rho can be reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpadapt import _validate as validate
from dpadapt.privacy.accounting.calibration import gaussian_mu

from .losses import ConvexLoss

UNIT = 2.0**-53  # of rounding
BLOCK = 1024  # rows summed before blocks are
SLACK = 0.01  # of the sensitivity, for the solver


def summing(terms: int) -> float:
    """Roundings of a sum taken in blocks."""
    return min(terms, BLOCK) + math.ceil(terms / BLOCK)


@dataclass(frozen=True)
class Constants:
    r"""Public constants of a problem: nothing in them depends on a record.

    Attributes
    ----------
    lipschitz, smoothness : float
        L and beta.
    radius, penalty : float
        R and lambda.
    rows, columns : int
        n and, for one model against the rest for each class, their number.
    norm_bound : float
        C >= \|w*\|, of one column.
    rounding, tolerance : float
        rho and r.

    Examples
    --------
    >>> from dpadapt.kernels.losses import Logistic
    >>> facts = constants(Logistic(), radius=1.0, penalty=0.1, rows=1000, width=5)
    >>> round(facts.exact_sensitivity, 6), round(facts.sensitivity, 6)
    (0.02, 0.0202)
    """

    lipschitz: float
    smoothness: float
    radius: float
    penalty: float
    rows: int
    columns: int
    norm_bound: float
    rounding: float
    tolerance: float

    @property
    def exact_sensitivity(self) -> float:
        """Of the exact minimisers together: sqrt(k) 2LR/(lambda n)."""
        one = 2 * self.lipschitz * self.radius / (self.penalty * self.rows)
        return math.sqrt(self.columns) * one

    @property
    def sensitivity(self) -> float:
        """Delta: of what the solver returns, all columns together."""
        slack = 2 * self.tolerance / self.penalty
        return self.exact_sensitivity + math.sqrt(self.columns) * slack

    @property
    def target(self) -> float:
        """Computed norm of a gradient that proves a true one of r: r - rho."""
        return self.tolerance - self.rounding

    @property
    def steepest(self) -> float:
        """H: the largest curvature of J."""
        return self.smoothness * self.radius**2 + self.penalty

    @property
    def condition(self) -> float:
        """The condition number kappa."""
        return self.steepest / self.penalty

    @property
    def accelerated_steps(self) -> int:
        """Sufficient for Nesterov's descent."""
        reach = 18 * (self.steepest * self.norm_bound / self.target) ** 2
        return 2 + math.ceil(math.sqrt(self.condition) * math.log(max(reach, 1.0)))

    @property
    def plain_steps(self) -> int:
        """Sufficient for the plain descent, whatever the rounding."""
        end = self.target - self.rounding
        reach = self.penalty * self.steepest * (self.norm_bound / end) ** 2
        return 1 + math.ceil(4 / 3 * self.condition * math.log(max(reach, 1.0)))


def constants(
    loss: ConvexLoss,
    radius: float,
    penalty: float,
    rows: int,
    *,
    width: int | None = None,
    columns: int = 1,
) -> Constants:
    """Sensitivity, bounds and tolerance, before a record is read.

    Parameters
    ----------
    loss : Loss
    radius : float
        R: bound of the norm of features.
    penalty : float
        lambda.
    rows : int
        n.
    width : int, optional
        Number of features; None for a kernel matrix.
    columns : int, default=1
        Number of models fitted to the same records (1 for softmax, which is one problem).

    Examples
    --------
    >>> from dpadapt.kernels.losses import SoftmaxLoss
    >>> round(constants(SoftmaxLoss(9), 1.0, 0.1, 1000, width=5).exact_sensitivity / 2**0.5, 6)
    0.02
    """
    radius, penalty = validate.positive("radius", radius), validate.positive("penalty", penalty)
    rows, columns = validate.count("rows", rows), validate.count("columns", columns)
    slope, bend = loss.lipschitz(radius, penalty), loss.smoothness
    norm = min(slope * radius / penalty, math.sqrt(2 * loss.at_zero / penalty))
    if width is None:  # scores are sums of n kernel values, coefficients at most 2L/lambda in all
        far = 2 * slope * radius / penalty
        scores = (summing(rows) + BLOCK) * radius * far
    else:
        far = 2 * norm
        scores = (width + 4) * radius * far
    sums = (summing(rows) + 24) * slope * radius
    steps = 4 * (bend * radius**2 + penalty) * far
    norms = 4e-12 * slope * radius / rows  # features may exceed R by rounding: part of the slack
    rounding = 2 * UNIT * (bend * radius * scores + sums + steps) + norms
    tolerance = max(SLACK * slope * radius / rows, 4 * rounding)
    return Constants(slope, bend, radius, penalty, rows, columns, norm, rounding, tolerance)


@dataclass(frozen=True)
class Bounds:
    """What is known of a private model w* before a row is read; public.

    Parameters
    ----------
    model : float
        Delta: by how much w* moves, in the kernel's norm, jointly over all outputs.
    norm : float
        C >= the norm of w*.
    radius : float
        R >= the norm of features.
    error : float
        e, of the rounding of one prediction.

    Examples
    --------
    >>> Bounds(model=0.01, norm=1.0, radius=2.0).prediction
    0.02
    """

    model: float
    norm: float
    radius: float = 1.0
    error: float = 0.0

    def __post_init__(self) -> None:
        validate.positive("model", self.model)
        validate.positive("norm", self.norm)
        validate.positive("radius", self.radius)
        validate.non_negative("error", self.error)

    @classmethod
    def joint(cls, facts: Constants) -> Bounds:
        """Of all outputs together."""
        norm = math.sqrt(facts.columns) * facts.norm_bound
        return cls(
            facts.sensitivity, norm, facts.radius, sum_error(facts.rows, norm * facts.radius)
        )

    @classmethod
    def each(cls, facts: Constants) -> Bounds:
        """Of one output, which moves by no more than all of them."""
        norm = facts.norm_bound
        return cls(
            facts.sensitivity, norm, facts.radius, sum_error(facts.rows, norm * facts.radius)
        )

    @property
    def prediction(self) -> float:
        r"""S, by how much one prediction of one output moves: R Delta, and e for each neighbour.

        \|<w - w', phi(z)>\| <= \|w - w'\| \|phi(z)\| (Cauchy and Schwarz); attained where phi(z) is
        along w - w' and has norm R.
        """
        return self.radius * self.model + 2 * self.error


def sum_error(terms: int, magnitude: float) -> float:
    r"""Rounding error, at most, of a sum of products in float64.

    Whatever the order of summation, :math:`\sum_i a_i K(z, x_i)` over n rows is within
    (n + 8) u :math:`\sum_i |a_i K(z, x_i)|` of its exact value, entries of relative error 8u
    included. In a kernel ERM :math:`|a_i| \le L / (\lambda n)`, so that the magnitude is at most
    :math:`L R^2 / \lambda`; for explicit features it is at most C R.

    Parameters
    ----------
    terms : int
        How many products are added: rows, or features.
    magnitude : float
        Public bound on the sum of their absolute values.

    Examples
    --------
    >>> sum_error(10_000, 50.0) < 2e-10
    True
    """
    return (
        (validate.count("terms", terms) + 8) * 2 * UNIT * validate.positive("magnitude", magnitude)
    )


@dataclass(frozen=True)
class KernelFacts:
    r"""Public facts of a kernel model, in the paper's letters.

    Parameters
    ----------
    rows : int
        n; the number of people where they have several rows, since noise is then theirs.
    penalty : float
        lambda.
    epsilon, delta : float
    lipschitz, radius : float, default=1.0
        L in the score, and R.
    norm : float, optional
        C; by default L R / lambda, which \|w*\| never exceeds (half of the paper's).
    beta : float, default=0.05
        Probability that a bound fails.
    outputs : int, default=1
        k, scores of an answer: a bound is for all of them at once, and L, C are those of all.

    Examples
    --------
    >>> facts = KernelFacts(rows=100_000, penalty=0.01, epsilon=1.0, delta=1e-6)
    >>> round(facts.prediction, 6), facts.ball
    (0.002, 100.0)
    """

    rows: int
    penalty: float
    epsilon: float
    delta: float
    lipschitz: float = 1.0
    radius: float = 1.0
    norm: float | None = None
    beta: float = 0.05
    outputs: int = 1

    def __post_init__(self) -> None:
        validate.count("rows", self.rows)
        validate.epsilon(self.epsilon)
        validate.delta(self.delta)
        for name in ("penalty", "lipschitz", "radius", "ball"):
            validate.positive(name, getattr(self, name))
        validate.fraction("beta", self.beta)
        validate.count("outputs", self.outputs)

    @property
    def model(self) -> float:
        """Delta = 2LR/(lambda n), by how much the model moves."""
        return 2 * self.lipschitz * self.radius / (self.penalty * self.rows)

    @property
    def prediction(self) -> float:
        """S = R Delta, by how much a prediction moves."""
        return self.radius * self.model

    @property
    def ball(self) -> float:
        """C."""
        return self.lipschitz * self.radius / self.penalty if self.norm is None else self.norm


def path_error(facts: KernelFacts, questions: int) -> float:
    """Largest error of T answers from one path of noise, or of a model with explicit features.

    Examples
    --------
    >>> facts = KernelFacts(rows=10**6, penalty=0.01, epsilon=1.0, delta=1e-6)
    >>> few, many = (path_error(facts, T) for T in (100, 10_000))
    >>> few < many < 1.5 * few  # T counts by the root of its logarithm
    True
    """
    noise = facts.prediction / gaussian_mu(facts.epsilon, facts.delta)
    rare = 2 * facts.outputs * validate.count("questions", questions) / facts.beta
    return noise * math.sqrt(2 * math.log(rare))
