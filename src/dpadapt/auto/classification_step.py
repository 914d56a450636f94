r"""The private step of classification: an error rate, a descent, and a slope along its move.

The descent is on [logits of experts, columns, leaves of trees where these beat the line on public
rows]. The logits have 60 % of the features' variance: a short horizon (few rows, little budget) can
only move along them, a long one reaches all columns. So the planned horizon *is* the choice between
few directions and many, and nothing private is spent on choosing.

*The error rate* (release "look"): how often the public model is wrong on private rows, for 0.5 to
20 % of the budget. What to expect without a shift is known from public rows that its experts had
not seen.

*The slope* (release "look back"): how fast the log-loss of private rows falls along the move, for
0.5 to 10 % of the budget. Noise makes a move longer, but no row's loss falls along noise.

*What is kept*: the step is rehearsed on public rows, which shows how long and how steep a move is
that chance and noise make. The posterior chance of a shift, from both and from the length of the
move, is the part of it that is kept (:mod:`.classification_inference`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.story import rounded
from dpadapt.privacy import Cleaning, Session
from dpadapt.privacy.statistics import Prepared, mean_number
from dpadapt.reweighting.plan import LEAST_STEPS, Course, PublicProblem, choose_course

from .classification_inference import (
    ClassNoHarm,
    NullSimulation,
    Observation,
    centred,
    coordinates,
    shift_posterior,
    slopes,
)
from .curves import Curves, Leaves, beats_line, first_trees, max_features
from .experts import LinearExpert
from .releases import StepBudget, StepResult, foreseen_precision
from .stacking import PublicStack

_ENERGY = 0.6  # share of the features' public variance on logits
_BENT = 0.2  # share of it on curves where there are any; the rest is on columns
_LEAST_CURVES, _PER_CURVE = 12, 40.0  # one for each 40 of n mu
_LEVEL = 0.4  # constant of the geometry, and share of the guessed shift that is a constant
_WIDE = (1.0, 1.5)  # further clips; the last one clips nothing
_STEADY = 300.0  # n mu at which the guess of the shift has doubled
_MOST_VARIANCE = 16.0  # of logits
_RATE_NOISE, _MOST_RATE_SHARE = 0.03, 0.2  # of the error rate; its share at most
_SLOPE_NOISE, _MOST_SLOPE_SHARE = 0.015, 0.1  # of the slope
_USELESS_SLOPE_NOISE = 0.12  # noise with which the slope has no power
_LEAST_SHARE = 0.005  # of either
_FAR = 1e6  # in largest public norms: only so that nothing overflows


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Scores of the classes, linear in logits of experts and columns.

    Parameters
    ----------
    logit_scale : float
    column_scale : float or ndarray of shape (d,)
        0 for a column that is constant in public rows.
    coefficients : ndarray of shape (p + 1, k)
        Of the public model.
    geometry : Geometry or None
        Coordinates of the private step.
    move : ndarray of shape (p + 1, k) or None
        What it adds, for coordinates that are shrunk to a length of 1 as they were in the step: far
        from public rows neither the move nor its noise grows.
    curves : Curves or None
        Features beside logits and columns.

    Examples
    --------
    >>> scores = ClassScores(1.0, 0.0, np.array([[-0.5, 0.5], [0.0, 0.0], [0.0, 0.0]]))
    >>> scores(np.zeros((1, 1)), np.array([[[-1.0, 1.0]]]))
    array([[-1.,  1.]])
    """

    logit_scale: float
    column_scale: Any
    coefficients: FloatArray
    geometry: Any = None
    move: Any = None
    curves: Any = None

    def features(self, rows: FloatArray, logits: FloatArray) -> FloatArray:
        """Of shape (n, p); for two classes one logit stands for both."""
        flat = logits.reshape(len(logits), -1)
        if logits.shape[2] == 2:
            flat = logits[:, :, 1] - logits[:, :, 0]
        parts = [self.logit_scale * flat, self.column_scale * rows]
        return np.hstack(parts if self.curves is None else [*parts, self.curves(rows)])

    def __call__(self, rows: FloatArray, logits: FloatArray) -> FloatArray:
        """Scores, of shape (n, k)."""
        features = self.features(rows, logits)
        scores = np.asarray(features @ self.coefficients[:-1] + self.coefficients[-1])
        if self.move is None:
            return scores
        return np.asarray(scores + coordinates(self.geometry, features)[0] @ self.move)


@dataclass(frozen=True, eq=False)
class ClassFacts:
    """Public model, and logits of its experts for public rows that they had not seen.

    Parameters
    ----------
    model : PublicStack
    rows : ndarray of shape (m, d)
        Clipped public rows.
    codes : ndarray of shape (m,)
    logits : ndarray of shape (m, K, k)
    loss_ratio : float
        Log-loss on public sub-populations over that on shuffled folds, from 1 to 2.
    shuffled_logits : ndarray of shape (m, K, k)
        Logits from shuffled folds: what private rows have if nothing has shifted.

    Examples
    --------
    >>> from dpadapt.auto import AutoClassifier
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = AutoClassifier(epsilon=1.0, delta=1e-6, experts=["linear"])
    >>> facts = model.public_facts(X, np.where(X[:, 0] > 0, "yes", "no"))
    >>> facts.start(precision=100.0).coefficients.shape
    (4, 2)
    """

    model: PublicStack
    rows: FloatArray
    codes: Any
    logits: FloatArray
    loss_ratio: float
    shuffled_logits: FloatArray

    @cached_property
    def leaves(self) -> Leaves | None:
        """Leaves of the trees, if these beat the line on public rows that they had not seen."""
        experts = self.model.experts
        trees = first_trees(experts)
        wrong = np.mean(self.shuffled_logits.argmax(axis=2) != self.codes[:, None], axis=0)

        def least(chosen: list[bool]) -> float:
            return float(np.min(wrong[chosen], initial=np.inf))

        line = least([_is_line(each) for each in experts])
        bent = least([first_trees([each]) is not None for each in experts])
        return Leaves.of(trees) if trees and line < np.inf and beats_line(bent, line) else None

    def start(self, precision: float) -> ClassScores:
        """The public model, as scores of the features that n mu pays for."""
        classes = self.logits.shape[2]
        plain = ClassScores(1.0, 1.0, np.zeros((1, classes)))
        features = plain.features(self.rows, self.logits)
        width = features.shape[1] - self.rows.shape[1]
        varies = np.ptp(self.rows, axis=0) > 0
        on_logits = float(features[:, :width].var(axis=0).sum())
        on_columns = float(self.rows[:, varies].var(axis=0).sum())
        curves, energy = self._curves(precision), 1 - _ENERGY
        if curves is not None:
            energy -= _BENT
            curves = curves.times(math.sqrt(_BENT / float(curves(self.rows).var(axis=0).sum())))
        logit_scale = math.sqrt(_ENERGY / (on_logits or 1.0))
        column_scale = np.where(varies, math.sqrt(energy / (on_columns or 1.0)), 0.0)
        each = np.eye(classes) if classes > 2 else np.array([[-0.5, 0.5]])
        size = features.shape[1] + (0 if curves is None else len(curves))
        coefficients = np.zeros((size + 1, classes))
        coefficients[:width] = np.kron(self.model.weights[:, None] / logit_scale, each)
        return ClassScores(logit_scale, column_scale, coefficients, curves=curves)

    def width(self, precision: float) -> int:
        """Columns of private rows in the descent, at most."""
        (_, experts, classes), columns = self.logits.shape, self.rows.shape[1]
        curves = max_features(precision, _PER_CURVE, least=_LEAST_CURVES) * (
            self.leaves is not None
        )
        return experts * (classes if classes > 2 else 1) + columns + curves + classes + 2

    def _curves(self, precision: float) -> Curves | None:
        count = max_features(precision, _PER_CURVE, least=_LEAST_CURVES)
        if self.leaves is None or not count:
            return None
        return Curves.of(self.leaves, self.rows, most=count, size=1.0)

    @cached_property
    def error(self) -> float:
        """Error rate of the stack without a shift."""
        return float(np.mean(self.model.stacked(self.shuffled_logits).argmax(axis=1) != self.codes))

    def problem(self, start: ClassScores, precision: float) -> _Problem:
        """What the plan needs to know, at n mu."""
        guess = self.loss_ratio * (1 + min(1.0, precision / _STEADY))
        features = start.features(self.rows, self.logits)
        return _Problem(features, self.codes, start.coefficients, guess)

    def simulation(self, start: ClassScores, course: Course) -> NullSimulation:
        """What a course does without a shift."""
        features = start.features(self.rows, self.shuffled_logits)
        return NullSimulation(
            course, features, self.model.stacked(self.shuffled_logits), self.codes
        )


@dataclass(frozen=True, eq=False)
class _Problem(PublicProblem):
    """The public problem with a bolder level, and a guess of the shift."""

    guess: float = 1.0

    @property
    def kind(self) -> Any:
        """Constants of the plan."""
        usual = super().kind
        clips = (*usual.clips, *_WIDE)
        return replace(usual, constant=_LEVEL, level_share=_LEVEL, clips=clips)

    @cached_property
    def public_error(self) -> float:
        """Variance of the logits, times the guess."""
        usual = PublicProblem(self.rows, self.labels, self.model).public_error
        return min(_MOST_VARIANCE, self.guess * usual)


def adapt_classification(facts: ClassFacts, session: Session) -> StepResult:
    """Spend a session; return what was found.

    Examples
    --------
    >>> from dpadapt.auto import AutoClassifier
    >>> from dpadapt.privacy import Private
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = AutoClassifier(epsilon=1.0, delta=1e-6, experts=["linear"])
    >>> facts = model.public_facts(X, X[:, 0] > 0)
    >>> with Private(X, X[:, 0] > 0).encode([False, True]).open(epsilon=1.0, delta=1e-6) as session:
    ...     found = adapt_classification(facts, session)
    >>> found.adapted.coefficients.shape, round(session.guarantee.epsilon, 6)
    ((4, 2), 1.0)
    """
    scored, before = _scored(facts), foreseen_precision(session)
    width = facts.width(before)
    looks = len(_shares(before)) - 1
    session.foresee(looks + LEAST_STEPS, scored[0].width, width)
    budget = StepBudget.open(session)
    budget = budget.divided(_shares(budget.precision))
    start = facts.start(budget.precision)
    wrong = _release_error_rate(budget, facts, scored)
    problem, share = facts.problem(start, budget.precision), budget.shares["descent"]
    course = choose_course(problem, budget.n_rows, math.sqrt(share) / budget.purse.scale)
    shape = (len(course.geometry.mean) + 1, start.coefficients.shape[1])
    rows = _prepared(scored, start, course.geometry, shape)
    session.foresee(len(budget.shares) - 1 + course.steps)
    end = budget.descend(rows, shape, course.clip, course.horizon, course.steps, share)
    move = centred(end)
    simulation = facts.simulation(start, course)
    energy = simulation.energy(move)
    noise = 2 * course.clip / budget.precision * math.sqrt(course.steps / share)
    null = simulation.run(budget.n_rows, noise)
    also = "" if start.curves is None else f" on columns and {start.curves}"
    budget.record(
        "descent",
        f"{course.steps} noisy steps{also} move the scores of public rows by "
        f"{math.sqrt(energy):.2g} (root mean square); noise and chance alone move them by "
        f"{math.sqrt(null.energy):.2g}",
        course.steps,
    )
    slope = None
    if "look back" in budget.shares:
        slope = _release_slope(budget, rows, move, energy, null.slope)
    kept = shift_posterior(wrong, energy / max(null.energy, 1e-300), slope)
    temperature = _temperature(kept**2 * null.energy, shape[1])
    cooler = replace(start, coefficients=start.coefficients / temperature)
    adapted = replace(cooler, geometry=course.geometry, move=kept / temperature * move)
    no_harm = ClassNoHarm(facts.error, simulation.error(null.moves, kept), kept)
    sentences = (
        f"On public rows that its experts had not seen, the public model is wrong on "
        f"{facts.error:.1%}.",
        *(each.sentence(places=1) for each in budget.records),
        f"So the chance is {rounded(kept)} that a step learned from private labels is more than "
        "noise, and as much of the move is kept.",
        str(no_harm),
    )
    return StepResult(adapted, tuple(budget.records), no_harm, sentences)


def _shares(precision: float) -> dict[str, float]:
    """Shares of the budget: a slope with too much noise to have power is not released.

    Examples
    --------
    >>> {name: round(share, 3) for name, share in _shares(100.0).items()}
    {'look': 0.111, 'descent': 0.789, 'look back': 0.1}
    """
    paid = float(np.clip((1 / (_RATE_NOISE * precision)) ** 2, _LEAST_SHARE, _MOST_RATE_SHARE))
    back = float(np.clip((2 / (_SLOPE_NOISE * precision)) ** 2, _LEAST_SHARE, _MOST_SLOPE_SHARE))
    if 2 / (precision * math.sqrt(back)) > _USELESS_SLOPE_NOISE:
        back = 0.0
    share = 1 - paid - back
    return {"look": paid, "descent": share} | ({"look back": back} if back else {})


def _release_error_rate(
    budget: StepBudget, facts: ClassFacts, scored: tuple[Prepared, _Scored]
) -> Observation:
    """How often the public model is wrong on private rows."""
    query = mean_number(scored[0], scored[1].wrong, 0.0, 1.0, "error rate")
    (rate,), sd = budget.release(query, budget.shares["look"])
    wrong = Observation(float(rate), sd, facts.error)
    budget.record(
        "look",
        f"the public model is wrong on {min(max(wrong.value, 0.0), 1.0):.1%} of the private "
        f"rows (noise {wrong.sd:.1%})",
    )
    return wrong


def _release_slope(
    budget: StepBudget, rows: Prepared, move: FloatArray, energy: float, expected: float
) -> Observation:
    """How fast the log-loss of private rows falls along the move."""
    query = mean_number(rows, _slope(move, energy), -1.0, 1.0, "slope")
    (fall,), sd = budget.release(query, budget.shares["look back"])
    slope = Observation(float(fall), sd, expected)
    budget.record(
        "look back",
        f"tried on private rows, the move fits their labels by {slope.value:.3f} on a scale "
        f"from -1 to 1 (noise {sd:.3f}); noise and chance alone fit by {expected:.3f}",
    )
    return slope


def _is_line(expert: Any) -> bool:
    return isinstance(getattr(expert, "expert", None), LinearExpert)


def _slope(move: FloatArray, energy: float) -> Any:
    """How fast the log-loss of a prepared row falls along a move."""
    features, outputs = move.shape

    def slope(X: FloatArray, y: FloatArray) -> FloatArray:
        offsets = X[:, features : features + outputs]
        return slopes(X[:, :features] @ move, offsets, y, energy)

    return slope


def _temperature(noise: float, classes: int) -> float:
    r"""What scores are divided by: sqrt(1 + pi v / 8), v the noise's variance between two classes.

    The mean of a logistic curve over Gaussian noise in its argument is nearly the curve of the
    argument divided by that. So probabilities allow for the noise; no order of classes changes.
    """
    return math.sqrt(1 + math.pi / 8 * 2 * noise / (classes - 1))


def _cleaning(facts: ClassFacts) -> tuple[Cleaning, FloatArray]:
    """What is finite of private rows, from the public middle, which comes with it."""
    center = facts.rows.mean(axis=0)
    largest = float(np.linalg.norm(facts.rows - center, axis=1).max()) or 1.0
    classes = facts.logits.shape[2]
    return Cleaning(min(_FAR * largest, 1e300), center, classes=classes), center


@dataclass(frozen=True, eq=False)
class _Scored:
    """How a private row is kept: its columns, logits of the experts, 1 where all are numbers.

    It holds no expert: these are asked once for each row, where rows are scored.
    """

    columns: int
    experts: int
    weights: FloatArray

    def logits(self, X: FloatArray) -> FloatArray:
        """Of shape (n, K, k)."""
        found = np.ascontiguousarray(X[:, self.columns : -1])
        return found.reshape(len(X), self.experts, -1)

    def stacked(self, logits: FloatArray) -> FloatArray:
        """Scores of the public model."""
        return np.einsum("nij,i->nj", logits, self.weights)

    def wrong(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Whether the public model is wrong."""
        return _wrong(self.stacked(self.logits(X)), y)


def _scored(facts: ClassFacts) -> tuple[Prepared, _Scored]:
    """Private rows as the experts score them."""
    cleaning, center = _cleaning(facts)
    model, (_, experts, classes) = facts.model, facts.logits.shape
    columns = facts.rows.shape[1]

    def prepare(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        rows = model.rows(X + center)
        logits = model.scores(rows).reshape(len(rows), -1)
        out = np.hstack([rows, logits, np.ones((len(rows), 1))])
        out[~np.isfinite(out).all(axis=1), -1] = 0.0
        return out, y

    width = columns + experts * classes + 1
    return Prepared(cleaning, prepare, width), _Scored(columns, experts, model.weights)


def _wrong(X: FloatArray, y: FloatArray) -> FloatArray:
    """Whether the highest score is another class's; a row of no class counts as right."""
    return np.asarray((X.argmax(axis=1) != y) & (y >= 0), dtype=np.float64)


def _prepared(
    scored: tuple[Prepared, _Scored], start: ClassScores, geometry: Any, shape: tuple[int, int]
) -> Prepared:
    """Private rows of the descent: features, scores of the public model, length."""
    (before, known), (features, outputs) = scored, shape

    def prepare(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        logits = known.logits(X)
        out = np.empty((len(X), features + outputs + 1), order="F")
        found = start.features(X[:, : known.columns], logits)
        out[:, :features], _ = coordinates(geometry, found)
        out[:, features:-1] = known.stacked(logits)
        out[X[:, -1] == 0] = np.nan  # no place in the descent
        return out, y

    return Prepared(before, prepare, features + outputs + 1, measured=features)
