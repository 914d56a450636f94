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

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.shrinkage import james_stein
from dpadapt.learning.story import plain
from dpadapt.privacy import Session
from dpadapt.privacy.statistics import MeanVector, Prepared, histogram, mean_number
from dpadapt.reweighting.residual_size import SizeLook, look_share

from .descent import Looks
from .path_features import PathFeatures, Whitening, differences
from .regression_errors import CELLS
from .regression_facts import LEVEL_CLIPS, OCTAVES, RegressionFacts
from .regression_look_back import LookBack
from .regression_outlook import NoHarm
from .regression_prior import LEVELS, kept, pooled
from .regression_walk import SQUARE, Ground, walk, walk_rows
from .releases import Release, Step

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

        query = histogram(self.rows, errors, CELLS, "errors")
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

        query = mean_number(self.rows, errors, -bound, bound, "mean")
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

        query = mean_number(self.rows, octaves, *OCTAVES, "scale")
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

        query_length = mean_number(self.rows, lengths, 0.0, _LENGTH * usual, "length")
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

        query = mean_number(self.path, errors, -bound, bound, "level")
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
