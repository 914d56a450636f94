r"""The plan of the known-noise descent: coordinates, horizon, clip and shares, by public facts.

For every choice a course adds up what a prediction will be off by, and takes the least:

    shift * (share of it that the horizon leaves)   the guess: ``shift`` = a quarter of the public
  + noise                                           error, or half the variance of public logits
  + sampling error of n rows
  + bias of the clip                                measured by a descent on public rows
  + error of the level                              regression: noise and bias of its own, wide clip

Nothing here takes a private argument: n and the noise (epsilon, delta) are public.

This course shrinks private rows to length 1 and clips their gradients: right where noise is large,
and a bias that no budget removes. For classes there is another one, in which nothing is cut
(:func:`choose_whole`): the bound on a row is the longest public one, or a multiple of it that grows
with n epsilon, and the clip is the most that a gradient of such a row can be, since a softmax error
has length sqrt(2) at most. The noise is larger by the same factor, and known. The one that is
expected to do better is run. So the error falls to that of a logistic regression of the private
rows, from the public model, up to the horizon: along an axis of curvature c a part exp(-2048 c) of
the shift is left.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpadapt._types import FloatArray
from dpadapt.learning.descent import Geometry, Map, descend, response
from dpadapt.learning.shrinkage import james_stein
from dpadapt.learning.softmax import softmax
from dpadapt.privacy import shrink_factors
from dpadapt.privacy.statistics import clipped

from .queries import errors
from .residual_size import are_informative, ordinary

POWERS = (0.0, 0.5, 1.0)  # of the whitening
LEAST_STEPS = 100
_ROWS = 2000  # public rows that are used, at most
_REHEARSAL = 200  # steps of a descent on public rows, at most
_QUANTILES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)  # clips of regression
_LEVEL_QUANTILES = (0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
_MOST_LOGIT_VARIANCE, _LEAST_LOGIT_VARIANCE = 16.0, 0.25
_LEAST_ERROR = 1e-3  # root mean square residual, in units of the labels' spread
_LONG = 1e-4  # of a shift: what is lost on private rows that are longer than the longest public one
_GROWTH = (1.0, 2.0, 4.0)  # of the bound, in longest public rows
_MOST_STEPS = 2048
_LONGEST_ERROR = math.sqrt(2)


@dataclass(frozen=True)
class _Kind:
    """Constants of regression, or of classification."""

    shift: float  # in units of the public error, or of the variance of public logits
    level_share: float  # of the shift that is guessed to be a constant
    constant: float  # of the geometry
    horizons: tuple[float, ...]
    pace: float  # steps for each unit of the horizon
    clip_weight: float  # of the bias of the clip
    level_shares: tuple[float, ...]  # of the budget, for the level
    clips: tuple[float, ...] = ()  # of classification: a row's gradient is sqrt(2) long at most


_REGRESSION = _Kind(0.25, 0.5, 1.0, tuple(2.0**p for p in range(-3, 10)), 1.0, 1.0, (0.0, 0.1, 0.3))
_CLASSIFICATION = _Kind(
    0.5, 0.25, 0.1, tuple(2.0**p for p in range(-3, 12)), 0.5, 8.0, (0.0,), (0.25, 0.35, 0.5, 0.7)
)


@dataclass(frozen=True)
class Course:
    """What will be done; all of it may be published.

    Attributes
    ----------
    geometry : Geometry
    horizon : float
        tau.
    steps : int
        T.
    clip : float
        R: bound on the length of one row's gradient.
    level_share : float
        f: part of the (squared) budget that goes into the level; 0 for none.
    level_clip : float
        Bound on one row's residual in the level.
    moment : ndarray
        H: public second moment of the features, which turns coefficients into the energy of their
        predictions.
    noise : float
        Variance of a prediction for noise of variance 1 in every gradient.
    sampling : float
        Variance of a prediction from n rows for n = 1.
    bias : float
        Energy of what the clip alone moves.
    outputs : int
        k: columns of coefficients.
    expected : float
        Mean square that a prediction is expected to be off by.
    reach : float
        Longer rows are shrunk to this length.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> chosen = choose_course(PublicProblem(X, X[:, 0], np.zeros((3, 1))), n_rows=2000, mu=0.2)
    >>> chosen.steps >= 100, bool(chosen.clip > 0)
    (True, True)
    >>> len(repr(chosen)) < 300
    True
    """

    geometry: Geometry = field(repr=False)
    horizon: float
    steps: int
    clip: float
    level_share: float
    level_clip: float
    moment: FloatArray = field(repr=False)
    noise: float
    sampling: float
    bias: float
    outputs: int
    expected: float = 0.0
    reach: float = 1.0

    def descend(self, gradient: Map) -> FloatArray:
        """Coefficients of z after the whole descent from 0; the gradient may be noisy."""
        start = np.zeros((len(self.moment), self.outputs))
        return descend(gradient, start, self.horizon / self.steps, self.steps)

    def shrinkage(self, coefficients: FloatArray, scale: float, n_rows: int) -> float:
        """James and Stein: part of the move that is more than noise and clip alone would make."""
        energy = float(np.sum(coefficients * (self.moment @ coefficients)))
        noise = self.outputs * (self.noise * scale**2 + self.sampling / n_rows + self.bias)
        return james_stein(energy, noise)

    def sized(self, size: float) -> Course:
        """The same for residuals that are so many times as large."""
        powers = {"clip": 1, "level_clip": 1, "sampling": 2, "bias": 2, "expected": 2}
        return replace(self, **{name: size**p * getattr(self, name) for name, p in powers.items()})


@dataclass(frozen=True, eq=False)
class PublicProblem:
    """Public rows, what is to be predicted, and the public model of it.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
        Without a constant column.
    labels : ndarray of shape (m,)
        Numbers, or class codes.
    model : ndarray of shape (d + 1, k)
        Coefficients of (x, 1); k = 1 for regression, one column for each class else.

    Examples
    --------
    >>> PublicProblem(np.eye(2), np.array([1.0, 0.0]), np.zeros((3, 1))).public_error
    0.5
    """

    rows: FloatArray
    labels: npt.NDArray[np.generic]
    model: FloatArray

    @property
    def classification(self) -> bool:
        """Whether there is one column of coefficients for each class."""
        return self.model.shape[1] > 1

    @property
    def kind(self) -> _Kind:
        """Constants of the choice."""
        return _CLASSIFICATION if self.classification else _REGRESSION

    @cached_property
    def some(self) -> npt.NDArray[np.int64]:
        """Places of the public rows that are used."""
        return np.random.default_rng(0).permutation(len(self.rows))[:_ROWS]

    @cached_property
    def offsets(self) -> FloatArray:
        """Scores of the public model, on those rows."""
        rows = self.rows[self.some]
        return np.asarray(rows @ self.model[:-1] + self.model[-1])

    @cached_property
    def targets(self) -> FloatArray:
        """Residuals of the public model (ordinary, if not informative), or one-hot classes."""
        labels = self.labels[self.some]
        if self.classification:
            return (labels[:, None] == np.arange(self.model.shape[1])).astype(float)
        left = self._residuals
        return (left if self.residuals_informative else ordinary(left, self.least_error))[:, None]

    @cached_property
    def _residuals(self) -> FloatArray:
        return np.asarray(self.labels[self.some].astype(float) - self.offsets[:, 0])

    @cached_property
    def residuals_informative(self) -> bool:
        """Whether private residuals are about as large as public ones; always so for classes."""
        labels, columns = self.labels[self.some].astype(float), self.rows.shape[1]
        return self.classification or are_informative(self._residuals, labels, columns)

    @cached_property
    def least_error(self) -> float:
        """Of regression: residuals count as this large at least."""
        spread = float(np.asarray(self.labels, dtype=float).std())
        return _LEAST_ERROR * (spread or 1e-6)  # labels in a wide range mapped to [-1, 1]

    @cached_property
    def public_error(self) -> float:
        """Mean square residual, or variance of logits (centred over rows and classes)."""
        if self.classification:
            logits = self.offsets - self.offsets.mean(axis=1, keepdims=True)
            variance = float(np.mean((logits - logits.mean(axis=0)) ** 2))
            return min(max(variance, _LEAST_LOGIT_VARIANCE), _MOST_LOGIT_VARIANCE)
        return max(float(np.mean(self.targets**2)), self.least_error**2)

    @property
    def curvature(self) -> float:
        """Second derivative of the loss: 1, or that of the softmax at uniform probabilities."""
        k = self.model.shape[1]
        return (1 - 1 / k) / k if self.classification else 1.0

    @cached_property
    def sampling_error(self) -> float:
        """Variance of one row's error, in units of the curvature."""
        if self.classification:
            errors = softmax(self.offsets) - self.targets
            return min(1.0, float(np.mean(errors**2)) / self.curvature)
        return self.public_error


def choose_course(problem: PublicProblem, n_rows: int, mu: float) -> Course:
    """Best course for n private rows and a budget of mu (Gaussian differential privacy).

    Parameters
    ----------
    problem : PublicProblem
    n_rows : int
    mu : float

    Examples
    --------
    More private rows allow a longer horizon:

    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> problem = PublicProblem(X, X[:, 0] + X[:, 1] ** 2, np.zeros((3, 1)))
    >>> choose_course(problem, 100, 0.2).horizon < choose_course(problem, 10_000, 0.2).horizon
    True
    """
    found: tuple[float, Course] | None = None
    plain = Geometry.of(problem.rows, power=0.0, constant=problem.kind.constant)
    geometries = [_Candidate(problem, replace(plain, power=power)) for power in POWERS]
    choices = [choice for each in geometries for choice in each.choices(n_rows, mu)]
    for bound, make in sorted(choices, key=lambda choice: choice[0]):
        if found is not None and bound >= found[0]:
            break  # the terms that are still to come only add to it
        extra, chosen = make()
        if found is None or bound + extra < found[0]:
            found = bound + extra, chosen
    assert found is not None
    return replace(found[1], expected=found[0])


class _Candidate:
    """All choices with one geometry."""

    def __init__(self, problem: PublicProblem, geometry: Geometry) -> None:
        self.problem, self.kind, self.geometry = problem, problem.kind, geometry
        features = self.geometry.features(problem.rows[problem.some])
        self.lengths = np.linalg.norm(features, axis=1)
        self.weight = shrink_factors(self.lengths, 1.0)
        self.rows, self.features = features * self.weight[:, None], features
        self.short = np.minimum(self.lengths, 1.0)
        self.moment = features.T @ features / len(features)
        self._rehearsals: dict[tuple[float, float | None], FloatArray] = {}

    def choices(
        self, n_rows: int, mu: float
    ) -> Iterator[tuple[float, Callable[[], tuple[float, Course]]]]:
        """Pairs of a lower bound on the error, and a function that adds what the bound lacks."""
        kind, problem = self.kind, self.problem
        values, vectors = np.linalg.eigh(self.rows.T @ self.rows / len(self.rows))
        curvature = np.maximum(values, 0.0) * problem.curvature
        energy = np.einsum("ji,jk,ki->i", vectors, self.moment, vectors)
        shift = self.geometry.shift_shares(self.moment, vectors, kind.level_share)
        clips = self._clips().tolist()
        for horizon in kind.horizons:
            steps = max(LEAST_STEPS, int(np.ceil(horizon * kind.pace)))
            known = response(curvature, horizon, steps)
            noise = known.gathered(energy)
            sampling = known.sampled(energy) * problem.sampling_error
            for clip in clips:
                for share in kind.level_shares:
                    scale = 2 * clip * math.sqrt(steps / (1 - share)) / (n_rows * mu)
                    bound = kind.shift * problem.public_error * known.left(shift)
                    bound += noise * scale**2 + sampling / n_rows
                    chosen = (horizon, steps, clip, share, noise, sampling)
                    yield bound, lambda chosen=chosen: self._finish(n_rows, mu, *chosen)  # type: ignore[misc]

    def _clips(self) -> FloatArray:
        if self.problem.classification:
            return np.array(self.kind.clips)
        sizes = self.short * self.weight * np.abs(self.problem.targets[:, 0])
        least = _LEAST_ERROR * np.sqrt(self.problem.public_error)
        return np.unique(np.maximum(np.quantile(sizes, _QUANTILES), least))

    def _rehearse(self, horizon: float, clip: float | None) -> FloatArray:
        """Scores on public rows after a descent on them without noise."""
        if (horizon, clip) not in self._rehearsals:
            self._rehearsals[horizon, clip] = self._rehearsal(horizon, clip)
        return self._rehearsals[horizon, clip]

    def _rehearsal(self, horizon: float, clip: float | None) -> FloatArray:
        problem, rows = self.problem, self.rows
        offsets = problem.offsets if problem.classification else None
        targets = problem.targets
        if offsets is None:
            targets = targets * self.weight[:, None]

        def gradient(W: FloatArray) -> FloatArray:
            error = errors(rows @ W, offsets, targets)
            if clip is not None:
                error = clipped(error, self.short, clip)
            return np.asarray(rows.T @ error / len(rows))

        pace = self.kind.pace
        steps = int(np.clip(np.ceil(horizon * pace), 20, _REHEARSAL))
        reach = min(horizon, steps / (0.8 * pace))  # no step beyond what is stable
        start = np.zeros((rows.shape[1], problem.model.shape[1]))
        W = descend(gradient, start, reach / steps, steps)
        return np.asarray((rows if problem.classification else self.features) @ W)

    def _finish(
        self,
        n_rows: int,
        mu: float,
        horizon: float,
        steps: int,
        clip: float,
        share: float,
        noise: float,
        sampling: float,
    ) -> tuple[float, Course]:
        problem, level_clip = self.problem, 0.0
        if problem.classification:
            drift = self._rehearse(horizon, clip) - self._rehearse(horizon, None)
            bias = float(np.mean((drift - drift.mean(axis=1, keepdims=True)) ** 2))
            level_error = 0.0
        else:
            residual = problem.targets[:, 0] - self._rehearse(horizon, clip)[:, 0]
            level_error = 0.0
            if share > 0:
                residual = residual - residual.mean()
                level_error, level_clip = _level(residual, n_rows * mu * np.sqrt(share))
            bias = max(0.0, float(np.mean(residual**2)) - problem.public_error)
        chosen = Course(
            self.geometry,
            horizon,
            steps,
            clip,
            share,
            level_clip,
            self.moment,
            noise,
            sampling,
            bias,
            problem.model.shape[1],
        )
        return self.kind.clip_weight * bias + level_error, chosen


def _level(residual: FloatArray, precision: float) -> tuple[float, float]:
    """Error and clip of the level: noise of (2 clip / precision)^2, squared bias of the clip."""
    sizes = np.abs(residual)

    def error(clip: float) -> float:
        bias = float(np.mean(residual - np.clip(residual, -clip, clip)))
        return (2 * clip / precision) ** 2 + bias**2

    clips = np.quantile(sizes, _LEVEL_QUANTILES)
    least = max(float(sizes.max()) * 1e-3, 1e-300)
    best = min((max(float(clip), least) for clip in clips), key=error)
    return error(best), best


def choose_class_course(problem: PublicProblem, n_rows: int, mu: float) -> Course:
    """The usual course of a classification or the one without a cut, whichever is expected better.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> problem = PublicProblem(X, (X[:, 0] > 0).astype(int), np.zeros((3, 2)))
    >>> [choose_class_course(problem, 1000, mu).reach > 1 for mu in (0.1, 1e4)]
    [False, True]
    """
    usual, whole = choose_course(problem, n_rows, mu), choose_whole(problem, n_rows, mu)
    cut = _LONG * problem.kind.shift * problem.public_error
    return whole if whole.expected < usual.expected + cut else usual


def choose_whole(problem: PublicProblem, n_rows: int, mu: float) -> Course:
    """Best course without a cut for n private rows and a budget of mu, of a classification.

    Parameters
    ----------
    problem : PublicProblem
    n_rows : int
    mu : float
        Gaussian differential privacy.

    Examples
    --------
    The bound on a row grows with the budget:

    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> problem = PublicProblem(X, (X[:, 0] > 0).astype(int), np.zeros((3, 2)))
    >>> little, much = (choose_whole(problem, 1000, mu) for mu in (1.0, 1e6))
    >>> little.reach < much.reach, little.expected > much.expected
    (True, True)
    """
    plain = Geometry.of(problem.rows, power=0.0, constant=problem.kind.constant)
    geometries = (replace(plain, power=power) for power in POWERS)
    options = (each for geometry in geometries for each in _options(problem, geometry, n_rows, mu))
    return min(options, key=lambda each: each.expected)


def _options(problem: PublicProblem, geometry: Geometry, n_rows: int, mu: float) -> list[Course]:
    kind, features = problem.kind, geometry.features(problem.rows[problem.some])
    longest = float(np.linalg.norm(features, axis=1).max())
    moment = features.T @ features / len(features)
    values, vectors = np.linalg.eigh(moment)
    energy = np.maximum(values, 0.0)
    curvature = energy * problem.curvature
    shares = geometry.shift_shares(moment, vectors, kind.level_share)
    shift = kind.shift * problem.public_error
    found: list[Course] = []
    for growth, horizon in itertools.product(_GROWTH, kind.horizons):
        reach = growth * longest
        # rows of that length have a curvature of reach^2 / 2 at most: no step is ever too long
        steps = max(LEAST_STEPS, math.ceil(horizon * reach**2 / 4))
        if steps > _MOST_STEPS and found:
            continue
        known = response(curvature, horizon, steps)
        noise = known.gathered(energy)
        sampling = known.sampled(energy) * problem.sampling_error / n_rows
        clip = _LONGEST_ERROR * reach
        scale = 2 * clip * math.sqrt(steps) / (n_rows * mu)
        expected = shift * float(shares @ known.unlearned**2 + _LONG / growth**4)
        expected += noise * scale**2 + sampling
        # no sampling error in the course: only noise is shrunk away, else a bias would remain
        settings = (geometry, horizon, steps, clip, 0.0, 0.0, moment, noise, 0.0, 0.0)
        found.append(Course(*settings, problem.model.shape[1], expected, reach))
    return found
