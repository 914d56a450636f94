"""The methods of paper 000's figures: its algorithms, and the release of one noisy matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpadapt.discrepancy.minimisation import minimise_discrepancy
from dpadapt.discrepancy.moments import NoisyMoment, release_second_moment
from dpadapt.discrepancy.second_stage import weighted_ridge
from dpadapt.discrepancy.variable_projection import variable_projection
from dpadapt.papers.discrepancy.first_stage import NoisyFrankWolfe, NoisyMirrorDescent
from dpadapt.papers.discrepancy.parameters import (
    PublicFacts,
    frank_wolfe_parameters,
    mirror_descent_parameters,
    single_stage_parameters,
)
from dpadapt.papers.discrepancy.single_stage import AdaptationObjective, NoisySingleStage
from dpadapt.papers.discrepancy.smoothing import Softmax
from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.statistics import SecondMoment

from .data import FigureData, figure_data

if TYPE_CHECKING:
    pass

__all__ = ["METHODS", "ORACLE_METHODS", "Cell", "Fit", "Task"]

Array = NDArray[np.float64]

DELTA = 1 / 8000  # stated
PENALTY = 0.001  # stated, the paper's lambda
STEPS = 1000  # stated, the paper's K
RIDGE = 1e-4  # ours: not stated
RADIUS = 1.0  # ours, the paper's Lambda: not stated
TEST_ROWS = 20_000  # ours: not stated
ORACLE_MU = (5.0, 15.0, 50.0, 150.0)


@dataclass(frozen=True)
class Cell:
    """One draw of the data at one setting."""

    n: int
    epsilon: float
    repeat: int
    steps: int = STEPS


class Fit(NamedTuple):
    """What a method returns.

    Attributes
    ----------
    weights : ndarray of shape (m,), optional
    coefficients : ndarray of shape (d,), optional
        None where the second stage has still to fit them.
    epsilon : float
        What the guarantee says, at the paper's delta; infinite for methods without privacy.
    mu, steps : float
        Chosen sharpness and number of steps, where there are any.

    Examples
    --------
    >>> Fit(np.array([0.5, 0.5])).epsilon
    0.0
    """

    weights: Array | None
    coefficients: Array | None = None
    epsilon: float = 0.0
    mu: float = math.nan
    steps: float = math.nan


class Task:
    """The data of a cell, as the methods get to see them.

    Examples
    --------
    >>> task = Task(Cell(n=100, epsilon=1.0, repeat=0))
    >>> task.X.shape, round(task.facts("tight").bounds.public, 1)
    ((1000, 10), 1.1)
    """

    def __init__(self, cell: Cell) -> None:
        rng = np.random.default_rng([cell.repeat, cell.n])
        self.cell = cell
        self.data: FigureData = figure_data(rng, cell.n)
        self.test: FigureData = figure_data(rng, TEST_ROWS)
        self.X, self.y = self.data.X_public, self.data.y_public
        # r = r_hat: private rows that are longer than every public one are shrunk
        self.cleaning = Cleaning(radius=float(np.linalg.norm(self.X, axis=1).max()))
        self.query = SecondMoment(self.cleaning)
        self.session: dict[str, Any] = {
            "epsilon": cell.epsilon,
            "delta": DELTA,
            "noise": "seeded",
            "random_state": cell.repeat,
        }

    def facts(self, calibration: str) -> PublicFacts:
        """What parameters may depend on."""
        cell = self.cell
        return PublicFacts(self.X, self.query, cell.n, cell.epsilon, DELTA, calibration)

    @cached_property
    def private(self) -> Private:
        """The private rows, without labels."""
        return Private(self.data.X_private)

    @cached_property
    def true_moment(self) -> Array:
        """Second moment of the private rows: for measuring, and for methods without privacy."""
        return self.data.X_private.T @ self.data.X_private / self.cell.n

    @cached_property
    def noisy(self) -> NoisyMoment:
        """The released second moment."""
        return release_second_moment(self.private, self.cleaning, **self.session)


def frank_wolfe(
    task: Task, *, calibration: str, own_steps: bool = False, mu: float | None = None
) -> Fit:
    """Algorithm 2 with the printed or the tight noise; ``own_steps`` chooses K by its bound.

    Examples
    --------
    >>> task = Task(Cell(n=1000, epsilon=1.0, repeat=0, steps=10))
    >>> fit = frank_wolfe(task, calibration="paper")
    >>> bool(fit.epsilon < 0.2), fit.steps
    (True, 10)
    """
    chosen = frank_wolfe_parameters(
        task.facts(calibration),
        smoothing=None if mu is None else Softmax(mu),
        steps=None if own_steps else task.cell.steps,
    )
    algorithm = NoisyFrankWolfe(task.X, chosen.smoothing, chosen.steps, PENALTY)
    return _two_stage(task, algorithm, calibration)


def mirror_descent(task: Task, *, calibration: str) -> Fit:
    """Algorithm 3: as printed (p-norm, noise on every entry), or tight (noise on the matrix).

    Examples
    --------
    >>> task = Task(Cell(n=1000, epsilon=1.0, repeat=0, steps=10))
    >>> bool(mirror_descent(task, calibration="paper").epsilon < 0.1)
    True
    """
    printed = calibration == "paper"
    geometry, noise_on = ("p-norm", "gradient") if printed else ("entropy", "matrix")
    chosen = mirror_descent_parameters(
        task.facts(calibration),
        steps=task.cell.steps,
        penalty=PENALTY,
        geometry=geometry,
        noise_on=noise_on,
    )
    algorithm = NoisyMirrorDescent(
        task.X,
        chosen.smoothing,
        chosen.steps,
        chosen.step_size,
        PENALTY,
        geometry,
        noise_on,
        "all" if printed else "half",
    )
    return _two_stage(task, algorithm, calibration)


def single_stage(task: Task, *, calibration: str) -> Fit:
    """Algorithm 1, last iterate (the paper's choice of an iterate has no proof).

    Examples
    --------
    >>> task = Task(Cell(n=1000, epsilon=1.0, repeat=0, steps=10))
    >>> single_stage(task, calibration="tight").coefficients.shape
    (10,)
    """
    chosen = single_stage_parameters(
        task.facts(calibration), task.y, radius=RADIUS, steps=task.cell.steps
    )
    objective = AdaptationObjective(task.X, task.y, chosen.smoothing, RADIUS)
    algorithm = NoisySingleStage(objective, chosen.steps, chosen.step_size)
    with task.private.open(**task.session) as session:
        grants = session.plan(**algorithm.mechanisms(session, task.query, calibration=calibration))
        weights, coefficients = algorithm.release(session, grants, session.hide(task.query))
    return Fit(
        weights, coefficients, session.guarantee.epsilon, _mu(chosen.smoothing), chosen.steps
    )


def moments(task: Task) -> Fit:
    """Ours: one noisy matrix, weights nearest to uniform that match it up to the noise.

    Examples
    --------
    >>> fit = moments(Task(Cell(n=1000, epsilon=1.0, repeat=0)))
    >>> round(fit.epsilon, 6)
    1.0
    """
    noisy = task.noisy
    solution = minimise_discrepancy(task.X, noisy.matrix, tolerance=noisy.noise_floor)
    return Fit(solution.weights, epsilon=noisy.guarantee.epsilon)


def moments_single_stage(task: Task) -> Fit:
    """Ours: the single-stage objective on the same noisy matrix, by variable projection.

    Examples
    --------
    >>> fit = moments_single_stage(Task(Cell(n=1000, epsilon=1.0, repeat=0)))
    >>> fit.coefficients.shape
    (10,)
    """
    noisy = task.noisy
    weights, coefficients = variable_projection(
        task.X, task.y, noisy.matrix, radius=RADIUS, ridge=RIDGE, tolerance=noisy.noise_floor
    )
    return Fit(weights, coefficients, noisy.guarantee.epsilon)


def without_privacy(task: Task) -> Fit:
    """Discrepancy minimisation on the exact second moment.

    Examples
    --------
    >>> without_privacy(Task(Cell(n=1000, epsilon=1.0, repeat=0))).epsilon
    inf
    """
    return Fit(minimise_discrepancy(task.X, task.true_moment).weights, epsilon=math.inf)


def public_only(task: Task) -> Fit:
    """Uniform weights.

    Examples
    --------
    >>> public_only(Task(Cell(n=100, epsilon=1.0, repeat=0))).weights[0]
    np.float64(0.001)
    """
    return Fit(np.full(len(task.X), 1 / len(task.X)))


def private_labels(task: Task) -> Fit:
    """The paper's oracle: trained on the private rows with their labels, which nobody has.

    Examples
    --------
    >>> private_labels(Task(Cell(n=100, epsilon=1.0, repeat=0))).weights is None
    True
    """
    rows, labels = task.data.X_private, task.data.y_private
    fit = weighted_ridge(rows, labels, np.full(len(rows), 1 / len(rows)), ridge=RIDGE)
    return Fit(None, fit, math.inf)


METHODS: Mapping[str, Callable[[Task], Fit]] = {
    "public only": public_only,
    "Frank-Wolfe, printed": partial(frank_wolfe, calibration="paper"),
    "Frank-Wolfe, tight": partial(frank_wolfe, calibration="tight"),
    "Frank-Wolfe, tight, own K": partial(frank_wolfe, calibration="tight", own_steps=True),
    "mirror descent, printed": partial(mirror_descent, calibration="paper"),
    "mirror descent, tight": partial(mirror_descent, calibration="tight"),
    "single stage, printed": partial(single_stage, calibration="paper"),
    "single stage, tight": partial(single_stage, calibration="tight"),
    "moments": moments,
    "moments, single stage": moments_single_stage,
    "no privacy": without_privacy,
    "private labels": private_labels,
}
ORACLE_METHODS: Mapping[str, Callable[[Task], Fit]] = {
    f"Frank-Wolfe, printed, mu {mu:g}": partial(frank_wolfe, calibration="paper", mu=mu)
    for mu in ORACLE_MU
}


def _two_stage(
    task: Task, algorithm: NoisyFrankWolfe | NoisyMirrorDescent, calibration: str
) -> Fit:
    with task.private.open(**task.session) as session:
        steps = algorithm.mechanism(session, task.query, calibration=calibration)
        grants = session.plan(steps=steps)
        weights = algorithm.release(session, grants.steps, session.hide(task.query))
    sharpness = _mu(algorithm.smoothing)
    return Fit(weights, None, session.guarantee.epsilon, sharpness, algorithm.steps)


def _mu(smoothing: Any) -> float:
    return float(smoothing.mu)
