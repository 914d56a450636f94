r"""The private step of regression: from the public model, as far as the known noise allows.

All releases come out of one Gaussian purse (``GaussianPurse``). With r the
error of the start and z the whitened features:

 0. size: only where public errors say nothing about private ones (almost none, no less than the
    spread of the labels, or all of it in a few giants): how large those are. 1 to 25 %, and what
    follows is in units of it.
 1. errors: histogram of r. Whatever the shift is, it tells where errors are and how large: the
    clip R. mean: mean of r, cut around there. Half of the prior is on "the level did not move".
 2. stack: how r follows the way from the public weights of the experts to equal ones, and how long
    that way is on private rows. Public weights trust the experts that are best without a shift;
    under one, equal weights are often better, and this is one number. 1 and 2 together take
    (45 / n mu)^2 of the budget, 5 % at least, and all of it where that is above 80 %.
 3. scale, 2 % of the rest: mean logarithm of |r|, now that it is around 0; intervals need it.
    centre, 8 %, and length, 2 %, of z: where private rows are, and how spread.
 4. descent, 73 %: T gradients on z, each row's clipped to R. The horizon is the one at which
    known noise and unlearned shift together are least.
 5. move, 10 %: a look back at how the move follows the errors of private rows, and how long it is
    there. With it, and with what noise alone could have done, the part to be kept is chosen.
 6. level, 5 %: mean error with a wide clip, put together with the mean of 1 and with that of the
    descent by the noise of each; what is no more than noise is given back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.shrinkage import james_stein
from dpadapt.learning.story import plain
from dpadapt.privacy import Cleaning, Session
from dpadapt.privacy.statistics import Prepared
from dpadapt.reweighting.queries import CellShares
from dpadapt.reweighting.residual_size import SizeLook, look_share, ordinary, residuals_tell

from .experts import Fourier, Linear, Sum, Trees, Waves
from .features import (
    Leaves,
    PathFeatures,
    Whitening,
    affordable,
    curve_waves,
    differences,
    first_trees,
    worth,
)
from .queries import MeanNumber, MeanVector
from .regression_inference import (
    CELLS,
    LEVELS,
    SQUARE,
    ErrorShapes,
    Ground,
    LookBack,
    kept,
    pooled,
    walk,
    walk_rows,
)
from .releases import Looks, Release, Step
from .stacking import PublicModel

_FIRST, _LEAST_FIRST, _MOST_FIRST = 45.0, 0.05, 0.8  # (45 / n mu)^2; above the last one, all
_LOOKS = {"errors": 0.15, "mean": 0.40, "stack": 0.45}  # parts of that
_PATH = {  # parts of the rest
    "scale": 0.02,
    "centre": 0.08,
    "length": 0.02,
    "descent": 0.73,
    "move": 0.10,
    "level": 0.05,
}
_LEAST_TURN = 1e-6  # of the stack, in mean errors: shorter ones are not looked at
_OCTAVE_SD, _LENGTH_SD = 0.6, 0.4  # priors of scale (octaves) and length (relative)
_CENTRE, _LENGTH = 2.0, 2.5  # cuts of z, in public lengths
_MOST_CENTRE, _BLUR = 8.0, 0.1  # the first one is wider if noise stays that short: less is missed
_LONG = 1024.0  # longest horizon
_MEAN_OF_MOVE = 0.25  # square of the mean of a move on private rows, in its mean square

# what public rows say

OCTAVES = (-3.0, 4.0)
"""Range of the logarithm of an error, in units of the public mean error."""

_FAR = 1e6  # in largest public norms, or spreads of labels: only so that nothing overflows
_LEAST_ERROR = 1e-3  # in units of the labels' spread
_SMALL = 0.02  # smaller errors than that, in the same units, do not tell: no cell reaches so far
_LEAST_CURVES = 4
_PER_WAVE, _PER_LEAF = 20.0, 40.0  # of n mu
LEVEL_CLIPS = (1.5, 2.0, 3.0, 5.0, 8.0, 12.0)  # of the looks at the level, in mean errors


@dataclass(frozen=True, eq=False)
class RegressionFacts:
    """Public model, and scores of its experts for public rows that they had not seen.

    Parameters
    ----------
    model : PublicModel
    rows : ndarray of shape (m, d)
        Cut public rows.
    y : ndarray of shape (m,)
    scores, easy : ndarray of shape (m, K)
        Under the folds that rehearse a shift, and under shuffled ones.
    size : float, default=1
        How many times as large private errors are, where public ones do not tell and a look does.

    Examples
    --------
    >>> from dpadapt.auto import AutoRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> facts = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).public_facts(X, X[:, 0])
    >>> facts.rms < 0.1, facts.curvature > 0.4
    (True, True)
    """

    model: PublicModel
    rows: FloatArray
    y: FloatArray
    scores: FloatArray
    easy: FloatArray
    size: float = 1.0

    @cached_property
    def label(self) -> float:
        """Mean label."""
        return float(self.y.mean())

    @cached_property
    def cleaning(self) -> Cleaning:
        """Private rows around the public mean; only what would overflow is cut."""
        center = self.rows.mean(axis=0)
        largest = float(np.linalg.norm(self.rows - center, axis=1).max()) or 1.0
        spread = float(self.y.std()) or max(1.0, abs(self.label))
        reach = min(_FAR * spread, 1e300)
        labels = (max(self.label - reach, -1e300), min(self.label + reach, 1e300))
        return Cleaning(min(_FAR * largest, 1e300), center, label_range=labels)

    @cached_property
    def residuals(self) -> FloatArray:
        """Errors of the stack where its experts had not seen the rows."""
        return np.asarray(self.y - self.scores @ self.model.weights)

    @cached_property
    def tells(self) -> bool:
        """Whether private errors are about as large as public ones."""
        easy = self.y - self.easy @ self.model.weights
        return residuals_tell(easy, self.y, small=_SMALL)

    @cached_property
    def planned(self) -> FloatArray:
        """Errors to plan with, in units of which all releases are: ordinary if they do not tell."""
        if self.tells:
            return self.residuals
        return self.size * ordinary(self.residuals, self._least)

    @cached_property
    def _least(self) -> float:
        return _LEAST_ERROR * (float(self.y.std()) or 1.0)

    @cached_property
    def rms(self) -> float:
        """Root mean square error."""
        return max(float(np.sqrt(np.mean(self.planned**2))), self.size * self._least)

    @cached_property
    def mad(self) -> float:
        """Mean absolute error."""
        return max(float(np.abs(self.planned).mean()), self.size * self._least)

    def octaves(self, residuals: FloatArray) -> FloatArray:
        """Logarithms of errors, before they are cut."""
        return np.log2(np.abs(residuals) / self.mad + 1e-9)

    @cached_property
    def mean_octave(self) -> float:
        """What the mean logarithm is if private errors are like public ones."""
        return float(np.clip(self.octaves(self.planned), *OCTAVES).mean())

    @cached_property
    def optimism(self) -> float:
        """Half way, in octaves, to the mean error under shuffled folds."""
        if not self.tells:
            return 0.0
        easy = float(np.abs(self.y - self.easy @ self.model.weights).mean())
        return 0.5 * float(np.log2(min(1.0, max(easy, self._least) / self.mad)))

    @cached_property
    def shapes(self) -> ErrorShapes:
        """What a histogram of private errors would be, for any move and size."""
        return ErrorShapes.of(self.planned / self.mad, optimism=self.optimism)

    # the descent

    @cached_property
    def cells(self) -> Waves | Leaves | None:
        """What bends: waves, unless their expert was tried and did not beat the line; then leaves.

        Leaves are used where trees beat it, and nothing where neither does: the line is enough.
        """
        squares = np.mean((self.scores - self.y[:, None]) ** 2, axis=0)
        squares += np.mean((self.easy - self.y[:, None]) ** 2, axis=0)
        experts = self.model.experts

        def least(*kinds: type) -> float:
            found = (
                each
                for each, expert in zip(squares, experts, strict=True)
                if isinstance(expert, kinds)
            )
            return float(min(found, default=np.nan))

        line, waves = least(Linear), least(Fourier)
        if np.isnan(line) or np.isnan(waves) or worth(waves, line):
            return curve_waves(self.rows)
        trees = first_trees(experts)
        return Leaves.of(trees) if trees and worth(least(Trees, Sum), line) else None

    def features(self, precision: float) -> PathFeatures:
        """Coordinates of the path, with as many curves as n mu pays for."""
        per = _PER_WAVE if isinstance(self.cells, Waves) else _PER_LEAF
        count = 0 if self.cells is None else affordable(precision, per, least=_LEAST_CURVES)
        return PathFeatures.of(self.rows, self.scores, self.y, cells=self.cells, count=count)

    @cached_property
    def curvature(self) -> float:
        """Part of the curvature that a clip at the mean error leaves."""
        return max(float(np.mean(np.abs(self.planned) < self.mad)), 0.05)

    @cached_property
    def missed(self) -> dict[float, float]:
        """What a mean of errors clipped at k mean errors misses, in mean errors, by k."""
        residuals, mad = self.planned, self.mad
        middle = float(np.median(residuals))
        for _ in range(30):  # Huber's centre: where a descent with this clip ends
            inside = max(float(np.mean(np.abs(residuals - middle) < mad)), 0.05)
            middle += float(np.clip(residuals - middle, -mad, mad).mean()) / inside
        rest = residuals - middle
        mean = float(rest.mean())
        return {
            k: (mean - float(np.clip(rest, -k * mad, k * mad).mean())) / mad for k in LEVEL_CLIPS
        }


# what is found

_HARDLY = 0.01  # of the error: a smaller gain is none that anybody sees


@dataclass(frozen=True)
class NoHarm:
    """What the private step is expected to change in the mean square error of the start.

    Both numbers are for the model as it is, before any test row is seen. Moves are posterior means:
    under the prior (half on "no shift") a move takes off its own square on average, and noise is
    a part of what was weighed against it.

    Attributes
    ----------
    error : float
        Mean square error of the public model on private rows, as far as it was looked at.
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
        if part < _HARDLY:
            return (
                f"Kept the public model, or nearly so: the moves that are left are expected to "
                f"take less than {_HARDLY:.0%} off its mean square error."
            )
        return (
            f"Moved away from the public model: expected to take {part:.0%} off its mean square "
            "error on private rows."
        )

    def __str__(self) -> str:
        part = self.gain / self.error
        told = f"less than {_HARDLY:.0%}" if 0 < part < _HARDLY else f"{part:.0%}"
        gain, error, noise = (plain(each, 2) for each in (self.gain, self.error, self.noise))
        return (
            f"The move from the public model is expected to take {gain} off a mean square error of "
            f"about {error} ({told}). The noise in what was kept has a mean square of {noise} "
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


def adapt_numbers(facts: RegressionFacts, session: Session) -> Step:
    """Spend a session; return what was found.

    Examples
    --------
    >>> from dpadapt.auto import AutoRegressor
    >>> from dpadapt.privacy import Private
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> facts = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).public_facts(X, X[:, 0])
    >>> with Private(X, X[:, 0]).open(epsilon=1.0, delta=1e-6) as session:
    ...     found = adapt_numbers(facts, session)  # 60 rows do not pay for a descent
    >>> [each.name for each in found.releases], round(session.guarantee.epsilon, 6)
    (['errors', 'mean'], 1.0)
    """
    step = _Step(facts, Looks.open(session))
    step.find_size()
    step.see_errors()
    step.find_mean()
    step.turn_stack()
    if "descent" in step.shares:
        step.measure_errors()
        step.find_rows()
        step.descend()
        step.look_back()
        step.find_level()
    return step.found()


class _Step:
    """The releases in their order; each depends on public facts and on those before it."""

    def __init__(self, facts: RegressionFacts, looks: Looks) -> None:
        self.facts, self.looks = facts, looks
        self.releases: list[Release] = []
        self.gain, self.noise = 0.0, 0.0  # mean squares of what was kept, and of the noise in it
        self.experts = facts.scores.shape[1]
        self.turn = 1 / self.experts - facts.model.weights
        self.turn_square = float(np.mean((facts.scores @ self.turn) ** 2))
        self.shares = _shares(
            looks.precision,
            turns=self.turn_square > (_LEAST_TURN * facts.mad) ** 2,
            tells=facts.tells,
        )
        self.features = facts.features(looks.precision)
        self.public = self.features(facts.rows, facts.scores)
        self.white = Whitening.of(self.public)
        self.cleaning = facts.cleaning
        self.rows = self._prepared()
        self.constant, self.on_scores = 0.0, np.zeros(self.experts)

    def _prepared(self) -> Prepared:
        """Private rows as scores of the experts and whitened features, beside their labels."""
        model, width = self.facts.model, len(self.white.mean)
        center = np.asarray(self.cleaning.center)
        white, features = self.white, self.features

        def prepare(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
            rows = model.rows(X + center)
            scores = model.scores(rows)[:, :, 0]
            return np.hstack([scores, white(features(rows, scores))]), y

        return Prepared(self.cleaning, prepare, self.experts + width)

    def residuals(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Errors of the start as it is corrected so far."""
        scores = X[:, : self.experts]
        moved = differences(scores, self.facts.label) @ self.on_scores
        return np.asarray(y - scores @ self.facts.model.weights - moved - self.constant)

    def find_size(self) -> None:
        """0. How large private errors are, if public ones do not tell."""
        if "size" not in self.shares:
            return
        look = SizeLook(self.rows, self.residuals, self.facts.planned)
        size = look.size(self.looks.at(look.query, self.shares["size"])[0])
        self.facts = replace(self.facts, size=size)
        self.tell("size", f"public errors do not tell, private ones look {size:.2g} times as large")

    def see_errors(self) -> None:
        """1. Where private errors are, and how large."""
        facts = self.facts

        def errors(X: FloatArray, y: FloatArray) -> FloatArray:
            return self.residuals(X, y) / facts.mad

        query = CellShares(self.rows, errors, CELLS, "errors")
        found, sd = self.looks.at(query, self.shares["errors"])
        seen = facts.shapes.seen(found, sd)
        self.clip = facts.mad * seen.times
        self.middle = facts.mad * seen.move
        self.tell(
            "errors",
            f"errors of the public model look {seen.times:.2g} times as large on private rows; "
            f"the chance that they are centred there, too, is {seen.stayed:.0%}",
        )

    def find_mean(self) -> None:
        """1. The mean error, cut around the middle that was seen."""
        reach, middle = self._reach("mean"), self.middle
        bound = reach * self.clip

        def errors(X: FloatArray, y: FloatArray) -> FloatArray:
            return self.residuals(X, y) - middle

        query = MeanNumber(self.rows, errors, -bound, bound, "mean")
        (found,), sd = self.looks.at(query, self.shares["mean"])
        level, chance = middle + found, SQUARE * self.clip**2 / self.looks.n_rows
        self.constant, self.constant_noise = self._more_than_noise(level, sd**2 + chance)
        self._keep(self.constant**2, self.constant_noise)
        missed = self.facts.missed[reach] * self.clip
        inside = abs(found) < bound / 2  # else errors are cut, and their mean may be anywhere
        self.first = (level, sd**2 + chance + missed**2 if inside else math.inf)
        self.before = float((self.clip / self.facts.mad * self.facts.rms) ** 2) + self.gain
        part = self.constant / level if level else 0.0
        self.tell(
            "mean", f"answers move by {plain(self.constant, 3)}, {part:.0%} of the mean error seen"
        )

    def turn_stack(self) -> None:
        """2. How far to go from the public weights of the experts to equal ones."""
        if "stack" not in self.shares:
            return
        count, share = self.experts, self.shares["stack"]
        back = LookBack(self.clip, self.turn_square, self.looks.precision * math.sqrt(share))

        def products(X: FloatArray, y: FloatArray) -> FloatArray:
            return back.products(self.residuals(X, y), X[:, :count] @ self.turn)

        query = MeanVector(self.rows, products, 2, 1.0, "stack")
        found, sd = self.looks.at(query, share)
        part = min(back.part(found, sd, before=0.0, by_chance=0.0), 1.0)
        self.on_scores = part * np.append(self.turn[1:], 0.0)  # a turn adds up to 0
        self._blur(part**2 * self.turn_square)
        self._keep(part**2 * self.turn_square, back.noise(sd) if part else 0.0)
        self.tell("stack", f"weights of the experts go {part:.0%} of the way to equal ones")

    def measure_errors(self) -> None:
        """3. The size of private errors."""
        facts = self.facts

        def octaves(X: FloatArray, y: FloatArray) -> FloatArray:
            return facts.octaves(self.residuals(X, y))

        query = MeanNumber(self.rows, octaves, *OCTAVES, "scale")
        (found,), sd = self.looks.at(query, self.shares["scale"])
        trust, before = _OCTAVE_SD**2 / (_OCTAVE_SD**2 + sd**2), math.log2(self.clip / facts.mad)
        octave = before + trust * (found - facts.mean_octave - before)
        self.clip = facts.mad * 2.0 ** min(max(octave, OCTAVES[0]), OCTAVES[1])
        self.before = float((self.clip / facts.mad * facts.rms) ** 2) + self.gain  # at first
        times = self.clip / facts.mad
        self.tell("scale", f"with that, private errors look {times:.2g} times as large")

    def find_rows(self) -> None:
        """3. Where private rows are, and how spread."""
        size, part = len(self.white.mean), self.shares["centre"]
        noise = 2 * math.sqrt(size / part) / self.looks.precision  # its length, for a cut of 1
        reach = min(max(_CENTRE, _BLUR / noise), _MOST_CENTRE)

        def places(X: FloatArray, y: FloatArray) -> FloatArray:
            return X[:, self.experts :]

        query = MeanVector(self.rows, places, size, reach, "centre")
        found, sd = self.looks.at(query, part)
        kept = james_stein(float(found @ found), (size - 2) * sd**2)
        self.centre = kept * found
        usual = math.sqrt(1 + kept**2 * size * sd**2)
        self.tell("centre", f"rows lie elsewhere; {kept:.0%} of what was seen is more than noise")

        def lengths(X: FloatArray, y: FloatArray) -> FloatArray:
            return np.asarray(np.linalg.norm(X[:, self.experts :] - self.centre, axis=1))

        query_length = MeanNumber(self.rows, lengths, 0.0, _LENGTH * usual, "length")
        (length,), sd = self.looks.at(query_length, self.shares["length"])
        prior = (_LENGTH_SD * usual) ** 2
        length = usual + prior / (prior + sd**2) * (length - usual)
        self.length = min(max(length, 0.3 * usual), _LENGTH * usual)
        self.tell(
            "length", f"private rows look {self.length:.2g} times as far apart as public ones"
        )

    def descend(self) -> None:
        """4. The descent on all features."""
        facts, first = self.facts, self.rows.function

        def coordinates(
            X: FloatArray, y: FloatArray | None
        ) -> tuple[FloatArray, FloatArray | None]:
            rows, labels = first(X, y)
            errors = None if labels is None else self.residuals(rows, labels)
            return (rows[:, self.experts :] - self.centre) / self.length, errors

        ground = Ground(self.white.energy, self.white.spread, self.clip, facts.curvature)
        self.path = walk_rows(self.cleaning, coordinates, len(ground.energy))
        found = walk(self.looks, self.path, ground, self.shares["descent"], _LONG)
        self.walked = found
        missed = facts.missed[LEVEL_CLIPS[0]] * self.clip
        self.second = (self.constant + found.level, found.level_noise + missed**2)
        self.level = self._more_than_noise(*pooled(self.first, self.second))[0] - self.constant
        also = "" if self.features.curves is None else f" and {self.features.curves}"
        self.tell(
            "descent",
            f"{found.steps} noisy steps to new weights of the columns{also}; by its length alone "
            f"{found.share:.0%} of that move is more than noise",
            found.steps,
        )

    def look_back(self) -> None:
        """5. Which part of the move pays."""
        walked, level = self.walked, self.level
        precision = self.looks.precision * math.sqrt(self.shares["move"])
        back = LookBack(self.clip, max(walked.moved, 1e-12 * self.clip**2), precision)

        def products(X: FloatArray, y: FloatArray) -> FloatArray:
            weight = np.maximum(X[:, -2], 1e-300)  # rows are shrunk together with their errors
            return back.products(y / weight - level, walked.mended(X) / weight)

        query = MeanVector(self.path, products, 2, 1.0, "move")
        found, sd = self.looks.at(query, self.shares["move"])
        self.part = back.part(found, sd, walked.share, walked.by_chance)
        self._blur(self.part**2 * walked.moved)
        self._keep(self.part**2 * walked.moved, self.part**2 * walked.noise)
        self.tell("move", f"tried on private rows, {self.part:.0%} of the move pays, and is kept")

    def find_level(self) -> None:
        """6. The mean error that is left, with a wide clip."""
        bound, known = self._reach("level") * self.clip, self.level
        part, walked = self.part, self.walked

        def errors(X: FloatArray, y: FloatArray) -> FloatArray:
            return np.asarray((y - part * walked.mended(X)) / np.maximum(X[:, -2], 1e-300) - known)

        query = MeanNumber(self.path, errors, -bound, bound, "level")
        (found,), sd = self.looks.at(query, self.shares["level"])
        all_three = pooled(self.first, self.second, (self.constant + known + found, sd**2))
        level, noise = self._more_than_noise(*all_three)
        self._keep(level**2 - self.constant**2, noise - self.constant_noise)
        self.level = level - self.constant
        self.tell(
            "level", f"together with the mean before, answers move by {plain(level, 3)} in all"
        )

    def _reach(self, name: str) -> float:
        """Where errors are cut for their mean, in R: least of what is missed and noise together."""
        missed, sd = self.facts.missed, 2 / (self.looks.precision * math.sqrt(self.shares[name]))
        return min(LEVEL_CLIPS, key=lambda k: missed[k] ** 2 + (k * sd) ** 2)

    def _more_than_noise(self, level: float, noise: float) -> tuple[float, float]:
        """What is kept of a level, and of the variance of its noise."""
        square = SQUARE * self.clip**2
        part = kept(level**2, np.array([noise]), [square * each for each in LEVELS])
        return part * level, part**2 * noise

    def _blur(self, moved: float) -> None:
        """A move has a mean of its own on private rows: the first look at the level is older."""
        level, noise = self.first
        self.first = (level, noise + _MEAN_OF_MOVE * moved)

    def found(self) -> Step:
        """Everything together, in the units of the model."""
        constant, on_features = self.constant, np.zeros(self.public.shape[1])
        if "descent" in self.shares:
            inner = self.part * self.walked.slopes / self.length
            on_features = self.white.matrix @ inner
            constant += self.level - float(self.white.mean @ on_features + self.centre @ inner)
        times = self.clip / self.facts.mad * self.facts.size
        error = max(self.before, self.gain)  # nothing takes off more than there is
        no_harm = NoHarm(error, self.gain, self.noise)
        correction = Correction(constant, self.on_scores, self.features, on_features)
        told = (*(each.sentence() for each in self.releases), str(no_harm))
        return Step(correction, tuple(self.releases), no_harm, told, times)

    def tell(self, name: str, said: str, times: int = 1) -> None:
        self.releases.append(Release(name, self.shares[name], said, times))

    def _keep(self, gain: float, noise: float) -> None:
        self.gain, self.noise = self.gain + float(gain), self.noise + float(noise)


def _shares(precision: float, *, turns: bool, tells: bool = True) -> dict[str, float]:
    """Parts of the budget: the first looks are dear where n mu is small, and pay most there.

    Where the public weights are equal already, or there is one expert, there is no look at them.
    Where public errors tell how large private ones are, there is no look at that.
    """
    size = 0.0 if tells else look_share(precision)
    precision *= math.sqrt(1 - size)
    first = max((_FIRST / precision) ** 2, _LEAST_FIRST)
    first = 1.0 if first > _MOST_FIRST else first
    parts = {name: first * part for name, part in _LOOKS.items() if turns or name != "stack"}
    if first < 1:
        parts |= {name: (1 - first) * part for name, part in _PATH.items()}
    if size:
        parts = {"size": size} | {name: (1 - size) * part for name, part in parts.items()}
    return {
        **parts,
        "mean": 1 - math.fsum(share for name, share in parts.items() if name != "mean"),
    }
