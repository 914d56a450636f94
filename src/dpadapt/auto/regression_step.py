r"""The private step of regression: from the public model, as far as the known noise allows.

All releases come out of one Gaussian purse (``GaussianPurse``). With r the
error of the start and z the whitened features:

 0. size: only where public errors say nothing about private ones (almost none, no less than the
    spread of the labels, or all of it in a few giants): how large those are. 1 to 25 %, and what
    follows is in units of it.
 1. errors: histogram of r. Whatever the shift is, it tells where errors are and how large: the
    clip R. mean: mean of r, clipped around there. Half of the prior is on "the level did not move".
 2. stack: a line search. How r follows the way from the public weights of the experts to equal
    ones, and how long that way is on private rows. Public weights trust the experts that are best
    without a shift; under one, equal weights are often better, and this is one number. 1 and 2
    together take (45 / n mu)^2 of the budget, 5 % at least, and all of it where that is above 80 %.
 3. scale, 2 % of the rest: mean logarithm of |r|, now that it is around 0; intervals need it.
    centre, 8 %, and length, 2 %, of z: where private rows are, and how spread.
 4. descent, 73 %: T gradients on z, each row's clipped to R. The horizon is the one at which
    known noise and unlearned shift together are least.
 5. move, 10 %: a line search. How the move follows the errors of private rows, and how long it is
    there. With it, and with what noise alone could have done, the part to be kept is chosen.
 6. level, 5 %: mean error with a wide clip, put together with the mean of 1 and with that of the
    descent by the noise of each; what is no more than noise is given back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.shrinkage import james_stein
from dpadapt.learning.story import plain, rounded
from dpadapt.privacy import Session
from dpadapt.privacy.statistics import MeanVector, Prepared, histogram, mean_number
from dpadapt.reweighting.residual_size import ResidualSizeQuery, size_share

from .regression_facts import (
    LEVEL_CLIPS,
    LOG2_RANGE,
    PathFeatures,
    RegressionFacts,
    Whitening,
    differences,
)
from .regression_inference import (
    CELLS,
    MEAN_SQUARE,
    DescentOutcome,
    DescentProblem,
    LineSearch,
    descent_rows,
    level_shrinkage,
    planned_course,
    planned_descent,
    pooled,
)
from .releases import StepBudget, StepResult, foreseen_precision

_FIRST, _LEAST_FIRST, _MOST_FIRST = 45.0, 0.05, 0.8  # (45 / n mu)^2; above the last one, all
_FIRST_SHARES = {"errors": 0.15, "mean": 0.40, "stack": 0.45}  # shares of the first releases
_DESCENT_SHARES = {  # shares of the descent and of what follows it, in the rest
    "scale": 0.02,
    "centre": 0.08,
    "length": 0.02,
    "descent": 0.73,
    "move": 0.10,
    "level": 0.05,
}
_LOG2_SD, _LENGTH_SD = 0.6, 0.4  # prior deviations of scale (log2) and length (relative)
_CENTRE_CLIP, _LENGTH_CLIP = 2.0, 2.5  # clips of z, in public lengths
_MOST_CENTRE_CLIP, _CENTRE_NOISE = (
    8.0,
    0.1,
)  # the first one is wider if noise stays that short: less bias
_LONGEST_HORIZON = 1024.0
_MEAN_OF_MOVE = 0.25  # square of the mean of a move on private rows, in its mean square
_Estimate = tuple[float, float]  # a number, and the variance of its noise

_NEGLIGIBLE = 0.01  # of the error: a smaller gain is none that anybody sees


@dataclass(frozen=True)
class NoHarm:
    """What the private step is expected to change in the mean square error of the start.

    Both numbers are for the model as it is, before any test row is seen. Moves are posterior means:
    under the prior (half on "no shift") a move takes off its own square on average, and noise is
    a part of what was weighed against it.

    Attributes
    ----------
    error : float
        Mean square error of the public model on private rows, as far as that was released.
    gain : float
        What the kept moves are expected to take off: their mean square.
    noise : float
        Part of the kept moves that is noise, by its known variance. If there was no shift at all,
        this is what the step costs on average.

    Examples
    --------
    >>> print(NoHarm(error=2.0, gain=0.5, noise=0.02))
    The move from the public model is expected to take 0.5 off a mean square error of about 2 \
(25%). The noise in what was kept has a mean square of 0.02 (1.0%): had there been no shift, that \
is what the step would cost on average.
    """

    error: float
    gain: float
    noise: float

    @property
    def result(self) -> str:
        """What became of the public model, in a sentence."""
        part = self.gain / self.error
        if part < _NEGLIGIBLE:
            return (
                f"Kept the public model, or nearly so: the moves that are left are expected to "
                f"take less than {_NEGLIGIBLE:.0%} off its mean square error."
            )
        return (
            f"Moved away from the public model: expected to take {part:.0%} off its mean square "
            "error on private rows."
        )

    def __str__(self) -> str:
        part = self.gain / self.error
        share = f"less than {_NEGLIGIBLE:.0%}" if 0 < part < _NEGLIGIBLE else f"{part:.0%}"
        gain, error, noise = (plain(each, 2) for each in (self.gain, self.error, self.noise))
        return (
            f"The move from the public model is expected to take {gain} off a mean square error of "
            f"about {error} ({share}). The noise in what was kept has a mean square of {noise} "
            f"({self.noise / self.error:.1%}): had there been no shift, that is what the step "
            "would cost on average."
        )


@dataclass(frozen=True, eq=False)
class Correction:
    """What the private step adds to the public model.

    Parameters
    ----------
    constant : float
    on_scores : ndarray of shape (K,)
        For the differences of the experts.
    features : PathFeatures
    on_features : ndarray of shape (p,)

    Examples
    --------
    >>> features = PathFeatures(0.0, np.ones(1), np.ones(0), None)
    >>> Correction(1.0, np.zeros(1), features, np.array([2.0]))(np.array([[3.0]]), np.zeros((1, 1)))
    array([7.])
    """

    constant: float
    on_scores: FloatArray
    features: PathFeatures
    on_features: FloatArray

    def __call__(self, rows: FloatArray, scores: FloatArray) -> FloatArray:
        """What is added, of shape (n,)."""
        moved = differences(scores, self.features.label) @ self.on_scores
        return np.asarray(self.constant + moved + self.features(rows, scores) @ self.on_features)


@dataclass(frozen=True, eq=False)
class _Residuals:
    """Labels less answers, of prepared rows; it holds no expert, so that blocks are safe with it.

    Parameters
    ----------
    weights, on_scores : ndarray of shape (K,)
    label, level : float
    """

    weights: FloatArray
    on_scores: FloatArray
    label: float
    level: float

    def __call__(self, X: FloatArray, y: FloatArray) -> FloatArray:
        scores = X[:, : len(self.weights)]
        moved = differences(scores, self.label) @ self.on_scores
        return np.asarray(y - scores @ self.weights - moved - self.level)


@dataclass(frozen=True, eq=False)
class _Start:
    """The public model on private rows, as far as it is corrected: its level, and its weights.

    Parameters
    ----------
    facts : RegressionFacts
    features : PathFeatures
    white : Whitening
    rows : Prepared
        Private rows as scores of the experts, whitened features, and 1 where all of that is a
        number; beside their labels. Experts are asked here alone, once for each row.
    on_scores : ndarray of shape (K,)
    level : float
    """

    facts: RegressionFacts
    features: PathFeatures
    white: Whitening
    rows: Prepared
    on_scores: FloatArray
    level: float = 0.0

    @classmethod
    def of(cls, facts: RegressionFacts, precision: float) -> _Start:
        """The public model as it is, with the features that n mu pays for."""
        model, experts, cleaning = facts.model, facts.scores.shape[1], facts.cleaning
        features = facts.features(precision)
        white = Whitening.of(features(facts.rows, facts.scores))
        center = np.asarray(cleaning.center)

        def prepare(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
            rows = model.rows(X + center)
            scores = model.scores(rows)[:, :, 0]
            out = np.hstack([scores, white(features(rows, scores)), np.ones((len(rows), 1))])
            out[~np.isfinite(out).all(axis=1), -1] = 0.0
            return out, y

        rows = Prepared(cleaning, prepare, experts + len(white.mean) + 1)
        return cls(facts, features, white, rows, np.zeros(experts))

    @property
    def residuals(self) -> _Residuals:
        """Labels less answers, of prepared rows."""
        return _Residuals(self.facts.model.weights, self.on_scores, self.facts.label, self.level)

    @property
    def coordinates(self) -> slice:
        """Where whitened features are, in prepared rows."""
        return slice(len(self.on_scores), -1)


@dataclass(frozen=True)
class _Kept:
    """Mean squares of the moves that are kept, and of the noise in them."""

    gain: float = 0.0
    noise: float = 0.0

    def plus(self, gain: float, noise: float) -> _Kept:
        return _Kept(self.gain + float(gain), self.noise + float(noise))


def adapt_regression(facts: RegressionFacts, session: Session) -> StepResult:
    """Spend a session; return what was found.

    Examples
    --------
    >>> from dpadapt.auto import AutoRegressor
    >>> from dpadapt.privacy import Private
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> facts = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).public_facts(X, X[:, 0])
    >>> with Private(X, X[:, 0]).open(epsilon=1.0, delta=1e-6) as session:
    ...     found = adapt_regression(facts, session)  # 60 rows do not pay for a descent
    >>> [each.name for each in found.releases], round(session.guarantee.epsilon, 6)
    (['errors', 'mean'], 1.0)
    """
    before = foreseen_precision(session)
    start = _foreseen(facts, session, before)
    budget = StepBudget.open(session)
    if facts.curves(budget.precision) != facts.curves(before):
        start = _Start.of(facts, budget.precision)
    budget = budget.divided(
        _shares(
            budget.precision,
            weights_unequal=facts.weights_unequal,
            informative=facts.residuals_informative,
        )
    )
    if "size" in budget.shares:
        start = _release_residual_size(budget, start)
    clip, middle = _release_histogram(budget, start)
    level, level_noise, first = _release_mean(budget, start, clip, middle)
    start, kept = replace(start, level=level), _Kept().plus(level**2, level_noise)
    error = start.facts.square_error(clip) + kept.gain
    if "stack" in budget.shares:
        part, noise = _line_search_weights(budget, start, clip)
        moved = part**2 * facts.weight_direction_square
        start = replace(
            start, on_scores=part * np.append(facts.weight_direction[1:], 0.0)
        )  # adds up to 0
        first, kept = _inflate_variance(first, moved), kept.plus(moved, noise)
    if "descent" not in budget.shares:
        move = Correction(level, start.on_scores, start.features, np.zeros(len(start.white.mean)))
        return _result(budget, start, clip, error, kept, move)
    clip = _release_scale(budget, start, clip)
    error = start.facts.square_error(clip) + kept.gain
    descent = _descend(budget, start, clip)
    second = descent.level(start, clip)
    rest = level_shrinkage(clip, *pooled(first, second))[0] - level
    part = _line_search_move(budget, descent, clip, rest)
    moved = part**2 * descent.end.moved
    first, kept = _inflate_variance(first, moved), kept.plus(moved, part**2 * descent.end.noise)
    third = _release_level(budget, start, descent, clip, part, rest)
    whole, noise = level_shrinkage(clip, *pooled(first, second, third))
    kept = kept.plus(whole**2 - level**2, noise - level_noise)
    said = f"together with the mean before, answers move by {plain(whole, 3)} in all"
    budget.record("level", said)
    return _result(budget, start, clip, error, kept, descent.correction(start, part, whole))


def _foreseen(facts: RegressionFacts, session: Session, precision: float) -> _Start:
    """The public model as it will be; what its step takes is told, before anything is charged."""
    start = _Start.of(facts, precision)
    shares = _shares(
        precision,
        weights_unequal=facts.weights_unequal,
        informative=facts.residuals_informative,
    )
    if "descent" not in shares:
        session.foresee(len(shares), start.rows.width)
        return start
    white, unit = start.white, 2 / (precision * math.sqrt(shares["descent"]))
    problem = DescentProblem(white.energy, white.spread, 1.0, facts.curvature)
    _, steps = planned_course(problem, unit, _LONGEST_HORIZON)
    session.foresee(len(shares) - 1 + steps, start.rows.width, len(white.energy) + 3)
    return start


def _release_residual_size(budget: StepBudget, start: _Start) -> _Start:
    """0. How large private errors are, if public ones are not informative."""
    size_query = ResidualSizeQuery(start.rows, start.residuals, start.facts.planning_residuals)
    size = size_query.size(budget.release(size_query.query, budget.shares["size"])[0])
    budget.record("size", f"public errors do not tell, private ones look {size:.2g} times as large")
    return replace(start, facts=replace(start.facts, size=size))


def _release_histogram(budget: StepBudget, start: _Start) -> tuple[float, float]:
    """1. How large private errors are (the clip R), and where their middle is."""
    facts, residuals, unit = start.facts, start.residuals, start.facts.mean_abs_error

    def errors(X: FloatArray, y: FloatArray) -> FloatArray:
        return residuals(X, y) / unit

    query = histogram(start.rows, errors, CELLS, "errors")
    shares, sd = budget.release(query, budget.shares["errors"])
    found = facts.shapes.posterior(shares, sd)
    budget.record(
        "errors",
        f"errors of the public model look {found.scale:.2g} times as large on private rows; "
        f"the chance that they are centred there, too, is {rounded(found.unmoved)}",
    )
    return facts.mean_abs_error * found.scale, facts.mean_abs_error * found.shift


def _release_mean(
    budget: StepBudget, start: _Start, clip: float, middle: float
) -> tuple[float, float, _Estimate]:
    """1. What is kept of the mean error, the noise in it; the mean error around that middle."""
    times = _choose_clip(budget, start.facts, "mean")
    bound, residuals = times * clip, start.residuals

    def errors(X: FloatArray, y: FloatArray) -> FloatArray:
        return residuals(X, y) - middle

    query = mean_number(start.rows, errors, -bound, bound, "mean")
    (mean,), sd = budget.release(query, budget.shares["mean"])
    seen, chance = middle + mean, MEAN_SQUARE * clip**2 / budget.n_rows
    level, noise = level_shrinkage(clip, seen, sd**2 + chance)
    bias = start.facts.clip_bias[times] * clip
    inside = abs(mean) < bound / 2  # else errors are clipped, and their mean may be anywhere
    part = level / seen if seen else 0.0
    budget.record("mean", f"answers move by {plain(level, 3)}, {part:.0%} of the mean error seen")
    return level, noise, (seen, sd**2 + chance + bias**2 if inside else math.inf)


def _line_search_weights(budget: StepBudget, start: _Start, clip: float) -> tuple[float, float]:
    """2. A line search from the public weights of the experts to equal ones; the noise in that."""
    facts = start.facts
    search = LineSearch(clip, facts.weight_direction_square, budget.precision_of("stack"))
    residuals, direction = start.residuals, facts.weight_direction

    def products(X: FloatArray, y: FloatArray) -> FloatArray:
        return search.products(residuals(X, y), X[:, : len(direction)] @ direction)

    query = MeanVector(start.rows, products, 2, 1.0, "stack")
    means, sd = budget.release(query, budget.shares["stack"])
    part = min(search.step_length(means, sd, before=0.0, optimism=0.0), 1.0)
    budget.record("stack", f"weights of the experts go {part:.0%} of the way to equal ones")
    return part, search.noise(sd) if part else 0.0


def _release_scale(budget: StepBudget, start: _Start, clip: float) -> float:
    """3. The size of private errors, now that they are around 0."""
    facts = start.facts

    def log2_errors(X: FloatArray, y: FloatArray) -> FloatArray:
        return facts.log2_errors(start.residuals(X, y))

    query = mean_number(start.rows, log2_errors, *LOG2_RANGE, "scale")
    (mean,), sd = budget.release(query, budget.shares["scale"])
    shrinkage, before = _LOG2_SD**2 / (_LOG2_SD**2 + sd**2), math.log2(clip / facts.mean_abs_error)
    log2_clip = before + shrinkage * (mean - facts.mean_log2_error - before)
    clip = facts.mean_abs_error * 2.0 ** min(max(log2_clip, LOG2_RANGE[0]), LOG2_RANGE[1])
    times = clip / facts.mean_abs_error
    budget.record("scale", f"with that, private errors look {times:.2g} times as large")
    return clip


def _release_location(budget: StepBudget, start: _Start) -> tuple[FloatArray, float]:
    """3. Where private rows are (the centre of z), and how spread (its length from there)."""
    size, share = len(start.white.mean), budget.shares["centre"]
    coordinates = start.coordinates
    noise = 2 * math.sqrt(size / share) / budget.precision  # its length, for a clip of 1
    bound = min(max(_CENTRE_CLIP, _CENTRE_NOISE / noise), _MOST_CENTRE_CLIP)

    def places(X: FloatArray, y: FloatArray) -> FloatArray:
        return X[:, coordinates]

    mean, sd = budget.release(MeanVector(start.rows, places, size, bound, "centre"), share)
    shrinkage = james_stein(float(mean @ mean), (size - 2) * sd**2)
    centre, usual = shrinkage * mean, math.sqrt(1 + shrinkage**2 * size * sd**2)
    budget.record(
        "centre", f"rows lie elsewhere; {shrinkage:.0%} of what was seen is more than noise"
    )

    def lengths(X: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.norm(X[:, coordinates] - centre, axis=1))

    query = mean_number(start.rows, lengths, 0.0, _LENGTH_CLIP * usual, "length")
    (mean,), sd = budget.release(query, budget.shares["length"])
    prior = (_LENGTH_SD * usual) ** 2
    length = usual + prior / (prior + sd**2) * (mean - usual)
    length = min(max(length, 0.3 * usual), _LENGTH_CLIP * usual)
    budget.record("length", f"private rows look {length:.2g} times as far apart as public ones")
    return centre, length


@dataclass(frozen=True, eq=False)
class _Descent:
    """A descent that was run: its rows, where it ended, and the units that z had in it."""

    rows: Prepared
    end: DescentOutcome
    centre: FloatArray
    length: float

    def level(self, start: _Start, clip: float) -> _Estimate:
        """The level that the descent found, with the bias that its clip may have."""
        bias = start.facts.clip_bias[LEVEL_CLIPS[0]] * clip
        return start.level + self.end.level, self.end.level_noise + bias**2

    def correction(self, start: _Start, part: float, level: float) -> Correction:
        """A part of the move, and a level, in the units of the model."""
        slopes = part * self.end.slopes / self.length
        on_features = start.white.matrix @ slopes
        moved = float(start.white.mean @ on_features + self.centre @ slopes)
        constant = start.level + (level - start.level - moved)
        return Correction(constant, start.on_scores, start.features, on_features)


def _descend(budget: StepBudget, start: _Start, clip: float) -> _Descent:
    """4. The descent on all features, from where private rows are."""
    white, facts = start.white, start.facts
    residuals, coordinates = start.residuals, start.coordinates
    centre, length = _release_location(budget, start)

    def places(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        errors = None if y is None else residuals(X, y)
        found = (X[:, coordinates] - centre) / length
        found[X[:, -1] == 0] = np.nan  # no place in the descent
        return found, errors

    problem = DescentProblem(white.energy, white.spread, clip, facts.curvature)
    rows = descent_rows(start.rows, places, len(white.energy))
    end = planned_descent(budget, rows, problem, budget.shares["descent"], _LONGEST_HORIZON)
    also = "" if start.features.curves is None else f" and {start.features.curves}"
    budget.record(
        "descent",
        f"{end.steps} noisy steps to new weights of the columns{also}; by its length alone "
        f"{end.shrinkage:.0%} of that move is more than noise",
        end.steps,
    )
    return _Descent(rows, end, centre, length)


def _line_search_move(budget: StepBudget, descent: _Descent, clip: float, level: float) -> float:
    """5. A line search along the move: which part of it pays."""
    square = max(descent.end.moved, 1e-12 * clip**2)
    search = LineSearch(clip, square, budget.precision_of("move"))

    def products(X: FloatArray, y: FloatArray) -> FloatArray:
        weight = np.maximum(X[:, -2], 1e-300)  # rows are shrunk together with their errors
        return search.products(y / weight - level, descent.end.fitted(X) / weight)

    query = MeanVector(descent.rows, products, 2, 1.0, "move")
    means, sd = budget.release(query, budget.shares["move"])
    part = search.step_length(means, sd, descent.end.shrinkage, descent.end.optimism)
    budget.record("move", f"tried on private rows, {part:.0%} of the move pays, and is kept")
    return part


def _release_level(
    budget: StepBudget, start: _Start, descent: _Descent, clip: float, part: float, level: float
) -> _Estimate:
    """6. The mean error beside that part of the move, with a wide clip."""
    bound = _choose_clip(budget, start.facts, "level") * clip

    def errors(X: FloatArray, y: FloatArray) -> FloatArray:
        weight = np.maximum(X[:, -2], 1e-300)
        return np.asarray((y - part * descent.end.fitted(X)) / weight - level)

    query = mean_number(descent.rows, errors, -bound, bound, "level")
    (mean,), sd = budget.release(query, budget.shares["level"])
    return start.level + level + mean, sd**2


def _choose_clip(budget: StepBudget, facts: RegressionFacts, name: str) -> float:
    """Where errors are clipped for their mean, in R: least bias and noise together."""
    bias, sd = facts.clip_bias, 2 / budget.precision_of(name)
    return min(LEVEL_CLIPS, key=lambda k: bias[k] ** 2 + (k * sd) ** 2)


def _inflate_variance(estimate: _Estimate, moved: float) -> _Estimate:
    """A level released before a move, whose own mean on private rows adds to its variance."""
    level, noise = estimate
    return level, noise + _MEAN_OF_MOVE * moved


def _result(
    budget: StepBudget, start: _Start, clip: float, error: float, kept: _Kept, move: Correction
) -> StepResult:
    error = max(error, kept.gain)  # nothing takes off more than there is
    no_harm = NoHarm(error, kept.gain, kept.noise)
    sentences = (*(each.sentence() for each in budget.records), str(no_harm))
    scale = clip / start.facts.mean_abs_error * start.facts.size
    return StepResult(move, tuple(budget.records), no_harm, sentences, scale)


def _shares(
    precision: float, *, weights_unequal: bool, informative: bool = True
) -> dict[str, float]:
    """Shares of the budget: the first releases are dear where n mu is small, and pay most there.

    Where the public weights are equal already, or there is one expert, nothing is spent on them.
    Where public errors say how large private ones are, nothing is spent on that.
    """
    size = 0.0 if informative else size_share(precision)
    precision *= math.sqrt(1 - size)
    first = max((_FIRST / precision) ** 2, _LEAST_FIRST)
    first = 1.0 if first > _MOST_FIRST else first
    parts = {
        name: first * part
        for name, part in _FIRST_SHARES.items()
        if weights_unequal or name != "stack"
    }
    if first < 1:
        parts |= {name: (1 - first) * part for name, part in _DESCENT_SHARES.items()}
    if size:
        parts = {"size": size} | {name: (1 - size) * part for name, part in parts.items()}
    return {
        **parts,
        "mean": 1 - math.fsum(share for name, share in parts.items() if name != "mean"),
    }
