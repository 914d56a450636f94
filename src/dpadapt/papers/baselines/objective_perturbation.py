r"""Objective perturbation (Chaudhuri et al. 2011, Kifer et al. 2012): noise inside the objective.

The released w minimises, over the private rows z_i of norm R at most,

    F(w) = sum_i phi_i(z_i . w) + (L/2) |w - w_0|^2 + b . w,    b ~ N(0, s^2 I),

phi convex with |phi'| <= c and phi'' <= k; G = c R bounds a row's gradient. It is a generalised
linear model: a row's gradient is a multiple of the row.

Privacy (:mod:`.queries` has the proofs). The linear term is charged as a Gaussian release of
sensitivity 4 G with noise s, and L is at least what keeps the determinant of the Hessian within its
share. The solver stops near the minimum: noise that covers how near is added, a Gaussian release
of its own. The steps that suffice are bounded for every sample, so that this is reached always, and
nothing is ever raised. b is never released, so it is never rounded; only the final sum is.
``noise="exact"`` (a grid) is refused, because the proof needs noise with a density.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import NonNegative, OneOf, ParameterTable
from dpadapt.privacy import Guarantee, Private, Rows
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.mechanisms import Gaussian

from ._tasks import BaselineTask, PrivateClassifier, PrivateRegressor, signed
from .queries import hidden_solution, linear_term, needed_strength, solver_reach

_OUTPUT = 0.1  # share of the noise that covers the solver
_TOLERANCE = 1e-8  # norm of the gradient at which the solver stops, in n G
_LEAST_KNEE = 0.25  # of the pseudo-Huber loss, in public label sd
_NEWTON = 50  # Newton steps before the slow and certain way

_TABLE: ParameterTable = {
    "start": [OneOf("zero", "public")],
    "ridge": [NonNegative()],
    "noise": [
        OneOf(
            "secure",
            "seeded",
            advice="Objective perturbation has no proof for noise on a grid.",
        )
    ],
}


class ObjectivePerturbationRegressor(PrivateRegressor):
    """Robust linear regression (pseudo-Huber loss) by objective perturbation.

    The knee of the loss is the root mean square of the public residuals at the start, and a quarter
    of the standard deviation of public labels at least.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    start : {"zero", "public"}, default="zero"
        Where the quadratic term pulls to: zero, or the public model.
    ridge : float, default=0
        Strength of the quadratic term for each row; raised to what privacy needs.
    noise : {"secure", "seeded"}, default="secure"
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
    verbose : int, default=0

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
    intercept_ : float
    guarantee_ : Guarantee

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = ObjectivePerturbationRegressor(epsilon=1.0, delta=1e-6, start="public")
    >>> model = model.fit(X, X[:, 0], private=Private(X, X[:, 0] + 1))
    >>> model.guarantee_.epsilon <= 1.0
    True
    """

    _constraints: ClassVar[ParameterTable] = _TABLE

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        start: str = "zero",
        ridge: float = 0.0,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.start = start
        self.ridge = ridge
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _coefficients(
        self, task: BaselineTask, private: Private, options: dict[str, Any]
    ) -> tuple[FloatArray, Guarantee]:
        start = task.public_fit() if self.start == "public" else task.zero()
        left = task.targets - (task.rows @ start)[:, 0]
        loss = PseudoHuber(max(float(np.sqrt(np.mean(left**2))), _LEAST_KNEE))
        return _perturbed(task, private, options, loss, start, self.ridge)


class ObjectivePerturbationClassifier(PrivateClassifier):
    """Logistic regression by objective perturbation; one against the rest for many classes.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    start : {"zero", "public"}, default="zero"
        Where the quadratic term pulls to: zero, or the public model.
    ridge : float, default=0
        Strength of the quadratic term for each row; raised to what privacy needs.
    classes : sequence, optional
        All class labels; by default those of the public labels.
    noise : {"secure", "seeded"}, default="secure"
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
    verbose : int, default=0

    Attributes
    ----------
    classes_ : ndarray
    coef_, intercept_ : ndarray
    guarantee_ : Guarantee

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = ObjectivePerturbationClassifier(epsilon=1.0, delta=1e-6)
    >>> model = model.fit(X, X[:, 0] > 0, private=Private(X, X[:, 0] > 0))
    >>> model.guarantee_.epsilon <= 1.0
    True
    """

    _constraints: ClassVar[ParameterTable] = _TABLE

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        start: str = "zero",
        ridge: float = 0.0,
        classes: Any = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.start = start
        self.ridge = ridge
        self.classes = classes
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _coefficients(
        self, task: BaselineTask, private: Private, options: dict[str, Any]
    ) -> tuple[FloatArray, Guarantee]:
        start = task.public_fit() if self.start == "public" else task.zero()
        return _perturbed(task, private, options, MarginLogistic(), start, self.ridge)


@dataclass(frozen=True)
class MarginLogistic:
    """log(1 + exp(-y z)) for y = -1 or 1; nothing for y = 0, a row of no class."""

    slope: float = 1.0  # c: bound on |phi'|
    curvature: float = 0.25  # k: bound on phi''

    def values(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        return np.abs(labels) * np.logaddexp(0.0, -labels * scores)

    def slopes(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        return -labels * expit(-labels * scores)

    def curvatures(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        return np.abs(labels) * expit(scores) * expit(-scores)


@dataclass(frozen=True)
class PseudoHuber:
    """K^2 (sqrt(1 + r^2 / K^2) - 1) of the residual r: half a square, linear beyond the knee K."""

    slope: float  # K, and so the bound on |phi'|
    curvature: float = 1.0

    def values(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        root = np.hypot(1.0, (scores - labels) / self.slope)
        return self.slope**2 * (root - 1.0)

    def slopes(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        return (scores - labels) / np.hypot(1.0, (scores - labels) / self.slope)

    def curvatures(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        return np.hypot(1.0, (scores - labels) / self.slope) ** -3.0


@dataclass(frozen=True, eq=False)
class PerturbedObjective:
    """F, for rows and labels in the clear: made inside the session only."""

    rows: FloatArray
    labels: FloatArray
    loss: MarginLogistic | PseudoHuber
    strength: float  # L
    center: FloatArray  # w_0
    linear: FloatArray  # b

    def value(self, w: FloatArray) -> float:
        away = w - self.center
        losses = self.loss.values(self.rows @ w, self.labels).sum()
        return float(losses + self.strength / 2 * (away @ away) + self.linear @ w)

    def gradient(self, w: FloatArray) -> FloatArray:
        slopes = self.loss.slopes(self.rows @ w, self.labels)
        return np.asarray(self.rows.T @ slopes + self.strength * (w - self.center) + self.linear)

    def hessian(self, w: FloatArray) -> FloatArray:
        curvatures = self.loss.curvatures(self.rows @ w, self.labels)
        return (self.rows.T * curvatures) @ self.rows + self.strength * np.eye(len(w))


def minimise(objective: PerturbedObjective, tolerance: float, radius: float) -> FloatArray:
    """Point at which the gradient's norm is at most ``tolerance``.

    Newton steps that halve until they descend; if those do not arrive, Nesterov's method for as
    many steps as suffice for any smooth, strongly convex function.
    """
    w = objective.center
    for _ in range(_NEWTON):
        gradient = objective.gradient(w)
        if np.linalg.norm(gradient) <= tolerance:
            return w
        step = np.asarray(np.linalg.solve(objective.hessian(w), gradient), dtype=np.float64)
        w = _line_search(objective, w, step, float(gradient @ step))
    return nesterov(objective, w, tolerance, radius)


def _line_search(
    objective: PerturbedObjective, w: FloatArray, step: FloatArray, decrease: float
) -> FloatArray:
    now, size = objective.value(w), 1.0
    for _ in range(40):
        new = w - size * step
        if objective.value(new) <= now - 0.1 * size * decrease:
            return new
        size /= 2
    return w - step  # so near that rounding hides the descent


def nesterov(
    objective: PerturbedObjective, w: FloatArray, tolerance: float, radius: float
) -> FloatArray:
    """Accelerated gradient descent with its worst-case number of steps."""
    low = objective.strength
    high = low + len(objective.rows) * objective.loss.curvature * radius**2
    root = math.sqrt(high / low)
    start = float(np.linalg.norm(objective.gradient(w)))
    # |gradient|^2 <= 2 high (F - F*) <= 2 (high start / low)^2 (1 - 1/root)^steps
    ratio = max(2.0 * (high * start / (low * tolerance)) ** 2, 1.0)
    momentum = (root - 1) / (root + 1)
    ahead = w
    for _ in range(math.ceil(root * math.log(ratio)) + 1):
        new = ahead - objective.gradient(ahead) / high
        ahead, w = new + momentum * (new - w), new
        if np.linalg.norm(objective.gradient(w)) <= tolerance:
            break
    return w


def _perturbed(
    task: BaselineTask,
    private: Private,
    options: dict[str, Any],
    loss: MarginLogistic | PseudoHuber,
    start: FloatArray,
    ridge: float,
) -> tuple[FloatArray, Guarantee]:
    """Coefficients in public units, one problem for each output."""
    d, problems = start.shape
    largest = loss.slope * task.radius  # G
    total = gaussian_mu(options["epsilon"], options["delta"])
    mu = total / math.sqrt(problems * (1 + _OUTPUT**2))
    # a hair more, for what rounding in the calibration may take from the planned mu
    needed = needed_strength(mu, task.radius, loss.curvature) * (1 + 1e-9)
    with private.open(**options) as session:
        # nothing is counted: the losses are a sum, to which a row without a label adds a constant
        session.leave_out_unlabelled()
        n = session.n_rows
        strength = max(needed, ridge * n)
        tolerance = _TOLERANCE * n * largest
        rows = session.hide(Rows(task.prepared()))
        reach = solver_reach(tolerance, strength)
        grants = session.plan(
            linear=linear_term(largest, d, problems),
            solver=Gaussian("solver", reach, d, problems, weight=_OUTPUT),
        )

        def solver(output_number: int) -> Callable[[FloatArray, FloatArray], FloatArray]:
            def solve(hidden: FloatArray, noise: FloatArray) -> FloatArray:
                labels = hidden[:, -1]
                if task.classes:
                    labels = _one_against_rest(labels, task.classes, output_number)
                objective = PerturbedObjective(
                    hidden[:, :-1], labels, loss, strength, start[:, output_number], noise
                )
                return minimise(objective, tolerance, task.radius)

            return solve

        found = []
        for k in range(problems):
            minimum = session.release(grants.linear, rows, function=solver(k))
            solution = hidden_solution(session, minimum, tolerance, strength)
            found.append(session.release(grants.solver, solution))
    return np.column_stack(found), session.guarantee


def _one_against_rest(codes: FloatArray, classes: int, place: int) -> FloatArray:
    """1 for the class, -1 for the others, 0 for no class."""
    known = signed(codes, classes)
    if classes <= 2:
        return known[:, 0]
    return np.where(codes < 0, 0.0, 2 * known[:, place] - 1)
