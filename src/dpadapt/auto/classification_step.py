r"""The private step of classification: one look, then one descent on [logits of experts, columns].

The logits of the experts have 60 % of the features' variance: a short horizon (few rows, little
budget) can only move along them, a long one reaches all columns. So the planned horizon *is* the
choice between few directions and many, and nothing private is spent on choosing.

*The look*: how often the public model is wrong on private rows, for 0.5 to 10 % of the budget. What
to expect without a shift is known from public rows that its experts had not seen. Where it is wrong
far more often there is much to gain and noise hardly hurts: the plan guesses a large shift, and the
whole move is kept. Elsewhere the guess is small, and only that part of the move is kept which is
more than noise, the noise being rehearsed on public rows (:mod:`.classification_noise`). Where it
is wrong far less often there is little to gain: a second look, if there are rows enough for one,
must find that the move mends more rows than it spoils.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpadapt.privacy import Cleaning, Session, shrink_factors
from dpadapt.privacy.statistics import Prepared
from dpadapt.reweighting.known_noise_course import PublicProblem, choose_course

from .classification_noise import Rehearsal, centred
from .classification_queries import ErrorRate
from .descent import Looks, descend
from .public_model import PublicModel
from .queries import MeanNumber
from .trees import Array

__all__ = ["ClassFacts", "Scores", "adapt_classes"]

_ENERGY = 0.6  # share of the features' public variance on logits
_LEVEL = 0.4  # constant of the geometry, and share of the guessed shift that is a constant
_WIDE = (1.0, 1.5)  # further clips; the last one cuts nothing
_STEADY = 300.0  # n mu at which the guess of the shift has doubled
_MOST_VARIANCE = 16.0  # of logits
_LOOK, _MOST_LOOK, _LEAST_LOOK = 0.03, 0.1, 0.005  # noise of the look, and bounds of its share
_MUCH = 1.5  # standard deviations of its noise by which an error must differ from the expected
_EASY = 0.6  # of the expected error: below, there is little to gain
_CHECK, _TELLING = 0.05, 0.2  # share of a look back; its noise, in error rates, at most
_FAR = 1e6  # in largest public norms: only so that nothing overflows


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of the classes, linear in logits of experts and columns.

    Parameters
    ----------
    logit_scale, column_scale : float
    coefficients : ndarray of shape (p + 1, k)
        Of the public model.
    geometry : Geometry or None
        Coordinates of the private step.
    move : ndarray of shape (p + 1, k) or None
        What it adds, for coordinates that are shrunk to a length of 1 as they were in the step: far
        from public rows neither the move nor its noise grows.

    Examples
    --------
    >>> scores = Scores(1.0, 0.0, np.array([[-0.5, 0.5], [0.0, 0.0], [0.0, 0.0]]))
    >>> scores(np.zeros((1, 1)), np.array([[[-1.0, 1.0]]]))
    array([[-1.,  1.]])
    """

    logit_scale: float
    column_scale: float
    coefficients: Array
    geometry: Any = None
    move: Any = None

    def features(self, rows: Array, logits: Array) -> Array:
        """Of shape (n, p); for two classes one logit stands for both."""
        flat = logits.reshape(len(logits), -1)
        if logits.shape[2] == 2:
            flat = logits[:, :, 1] - logits[:, :, 0]
        return np.hstack([self.logit_scale * flat, self.column_scale * rows])

    def __call__(self, rows: Array, logits: Array) -> Array:
        """Scores, of shape (n, k)."""
        features = self.features(rows, logits)
        scores = np.asarray(features @ self.coefficients[:-1] + self.coefficients[-1])
        if self.move is None:
            return scores
        return np.asarray(scores + _coordinates(self.geometry, features)[0] @ self.move)


def _coordinates(geometry: Any, features: Array) -> tuple[Array, Array]:
    """Coordinates of the private step, shrunk to a length of 1 at most, and their lengths."""
    Z = geometry.features(features)
    lengths = np.linalg.norm(Z, axis=1)
    return Z * shrink_factors(lengths, 1.0)[:, None], np.minimum(lengths, 1.0)


@dataclass(frozen=True, eq=False)
class ClassFacts:
    """Public model, and logits of its experts for public rows that they had not seen.

    Parameters
    ----------
    model : PublicModel
    rows : ndarray of shape (m, d)
        Cut public rows.
    codes : ndarray of shape (m,)
    logits : ndarray of shape (m, K, k)
    unlike : float
        How much harder public sub-populations are than blocks of public rows, from 1 to 2.
    error : float
        Error rate of the stack on blocks of public rows that its experts had not seen: what is to
        be expected of it on private rows if nothing has shifted.

    Examples
    --------
    >>> from dpadapt.auto import AutoClassifier
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = AutoClassifier(epsilon=1.0, delta=1e-6, experts=["linear"])
    >>> facts = model.public_facts(X, np.where(X[:, 0] > 0, "yes", "no"))
    >>> facts.start.coefficients.shape
    (4, 2)
    """

    model: PublicModel
    rows: Array
    codes: Any
    logits: Array
    unlike: float
    error: float

    @cached_property
    def start(self) -> Scores:
        """The public model, as scores of the features."""
        classes = self.logits.shape[2]
        plain = Scores(1.0, 1.0, np.zeros((1, classes)))
        features = plain.features(self.rows, self.logits)
        width = features.shape[1] - self.rows.shape[1]
        variances = features.var(axis=0)
        on_logits, on_columns = float(variances[:width].sum()), float(variances[width:].sum())
        logit_scale = math.sqrt(_ENERGY / (on_logits or 1.0))
        column_scale = math.sqrt((1 - _ENERGY) / (on_columns or 1.0))
        each = np.eye(classes) if classes > 2 else np.array([[-0.5, 0.5]])
        coefficients = np.zeros((features.shape[1] + 1, classes))
        coefficients[:width] = np.kron(self.model.weights[:, None] / logit_scale, each)
        return Scores(logit_scale, column_scale, coefficients)

    def problem(self, bold: float) -> _Problem:
        """What the plan needs to know; ``bold`` is n mu if the shift is large, and 0 else."""
        guess = self.unlike * (1 + min(1.0, bold / _STEADY))
        features = self.start.features(self.rows, self.logits)
        return _Problem(features, self.codes, self.start.coefficients, guess)


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


def adapt_classes(facts: ClassFacts, session: Session) -> tuple[Scores, tuple[str, ...]]:
    """Spend a session; return scores of the classes, and what was done in plain sentences.

    Examples
    --------
    >>> from dpadapt.auto import AutoClassifier
    >>> from dpadapt.privacy import Private
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = AutoClassifier(epsilon=1.0, delta=1e-6, experts=["linear"])
    >>> facts = model.public_facts(X, X[:, 0] > 0)
    >>> with Private(X, X[:, 0] > 0).encode([False, True]).open(epsilon=1.0, delta=1e-6) as session:
    ...     scores, sentences = adapt_classes(facts, session)
    >>> scores.coefficients.shape, round(session.guarantee.epsilon, 6)
    ((4, 2), 1.0)
    """
    looks, start = Looks.open(session), facts.start
    found = _look(looks, facts)
    checked = found.easy and 2 / (looks.precision * math.sqrt(_CHECK)) < _TELLING * found.least
    problem = facts.problem(looks.precision if found.hard else 0.0)
    chosen = choose_course(problem, session.n_rows, 1 / looks.purse.scale)
    shape = (len(chosen.geometry.mean) + 1, start.coefficients.shape[1])
    rows = _prepared(facts, chosen.geometry, shape)
    share = 1 - found.paid - (_CHECK if checked else 0.0)
    move = centred(
        descend(looks, rows, shape, chosen.clip, chosen.horizon, chosen.steps, share=share)
    )
    rehearsal = Rehearsal(problem, chosen)
    noise = rehearsal.noise(2 * chosen.clip / looks.precision * math.sqrt(chosen.steps / share))
    kept = 1.0 if found.hard else rehearsal.kept(move, noise)
    told = [
        *found.sentences,
        f"Release 'descent' took {share:.1%} of the budget: {chosen.steps} noisy steps to the "
        f"horizon {chosen.horizon:g}. The move has an energy of {rehearsal.energy(move):.3g}, "
        f"noise alone makes {noise:.3g}; {kept:.0%} of it is kept.",
    ]
    if checked and kept > 0:
        (gain,), sd = looks.at(MeanNumber(rows, _gain(kept * move), -1.0, 1.0, "check"), _CHECK)
        kept = kept if gain > sd else 0.0
        told.append(
            f"Release 'check' took {_CHECK:.0%} of the budget: the error rate fell by {gain:.3f} "
            f"(noise {sd:.3f}), so the {'move is kept' if kept else 'start is taken'}."
        )
    elif found.easy:
        kept = 0.0
        told.append("There is little to gain and too few rows to tell, so the start is taken.")
    if not kept:
        return start, tuple(told)
    heat = _heat(kept**2 * noise, shape[1])
    cooler = replace(start, coefficients=start.coefficients / heat)
    return replace(cooler, geometry=chosen.geometry, move=kept / heat * move), tuple(told)


@dataclass(frozen=True)
class _Found:
    """How often the public model is wrong: expected without a shift, and found."""

    expected: float
    wrong: float
    noise: float
    paid: float

    @property
    def hard(self) -> bool:
        """Far more often than expected: there is much to gain, and noise hardly hurts."""
        return self.wrong - self.expected > _MUCH * self.noise

    @property
    def easy(self) -> bool:
        """Far less often than expected: there is little to gain, and noise hurts."""
        below = self.expected - self.wrong > _MUCH * self.noise
        return below and self.least < _EASY * self.expected

    @property
    def least(self) -> float:
        """The error rate that was found, as one."""
        return min(max(self.wrong, 0.0), 1.0)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was expected, what was found, what follows."""
        follows = "as expected: what is no more than noise will be given back"
        if self.hard:
            follows = "far more than expected: the shift is large, and the whole move is kept"
        elif self.easy:
            follows = "far less than expected: only a move that mends rows is kept"
        return (
            f"On public rows that its experts had not seen, the public model is wrong on "
            f"{self.expected:.1%}.",
            f"Release 'look' took {self.paid:.1%} of the budget: on private rows it is wrong on "
            f"{self.least:.1%} (noise {self.noise:.1%}), which is {follows}.",
        )


def _look(looks: Looks, facts: ClassFacts) -> _Found:
    """Look at how often the public model is wrong on private rows."""
    paid = float(np.clip((1 / (_LOOK * looks.precision)) ** 2, _LEAST_LOOK, _MOST_LOOK))
    (wrong,), sd = looks.at(ErrorRate(_scored(facts), 0, facts.logits.shape[2]), paid)
    return _Found(facts.error, float(wrong), sd, paid)


def _gain(move: Array) -> Any:
    """Whether a move mends a row (1), spoils it (-1) or neither; 0 for a row of no class."""
    features, outputs = move.shape

    def gain(X: Array, y: Array) -> Array:
        before = X[:, features : features + outputs]
        after = before + X[:, :features] @ move
        right = [each.argmax(axis=1) == y for each in (before, after)]
        return np.asarray((right[1].astype(float) - right[0]) * (y >= 0))

    return gain


def _heat(noise: float, classes: int) -> float:
    r"""What scores are divided by: sqrt(1 + pi v / 8), v the noise's variance between two classes.

    The mean of a logistic curve over Gaussian noise in its argument is nearly the curve of the
    argument divided by that. So probabilities allow for the noise; no order of classes changes.
    """
    return math.sqrt(1 + math.pi / 8 * 2 * noise / (classes - 1))


def _cleaning(facts: ClassFacts) -> tuple[Cleaning, Array]:
    """What is finite of private rows, from the public middle, which comes with it."""
    center = facts.rows.mean(axis=0)
    largest = float(np.linalg.norm(facts.rows - center, axis=1).max()) or 1.0
    classes = facts.logits.shape[2]
    return Cleaning(min(_FAR * largest, 1e300), center, classes=classes), center


def _scored(facts: ClassFacts) -> Prepared:
    """Private rows as scores of the public model."""
    cleaning, center = _cleaning(facts)

    def prepare(X: Array, y: Array | None) -> tuple[Array, Array | None]:
        rows = facts.model.rows(X + center)
        return facts.start(rows, facts.model.scores(rows)), y

    return Prepared(cleaning, prepare, facts.logits.shape[2])


def _prepared(facts: ClassFacts, geometry: Any, shape: tuple[int, int]) -> Prepared:
    """Private rows of the descent: features, scores of the public model, length."""
    model, start, (features, outputs) = facts.model, facts.start, shape
    cleaning, center = _cleaning(facts)

    def prepare(X: Array, y: Array | None) -> tuple[Array, Array | None]:
        rows = model.rows(X + center)
        logits = model.scores(rows)
        out = np.empty((len(X), features + outputs + 1), order="F")
        out[:, :features], out[:, -1] = _coordinates(geometry, start.features(rows, logits))
        out[:, features:-1] = start(rows, logits)
        return out, y

    return Prepared(cleaning, prepare, features + outputs + 1)
