r"""Whether classes have shifted: what is found, against what noise and chance alone would do.

A move is made of noise and of the chance in n rows, whether there is a shift or not. A confident
model has little curvature, and a clip takes more of it away, so that both are forgotten more slowly
than a formula says. So the step is rehearsed: n rows are drawn from the public ones, with scores of
experts that had not seen them, and the descent is run with noise of the same scale. The mean energy
of four such moves is what no shift makes; so is the mean slope of the log-loss along them, on the
rows that they were made for. It is free: nothing private takes part. It also tells what the step
costs if there was no shift: the kept part of such moves, tried on public rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.softmax import softmax
from dpadapt.learning.story import rounded
from dpadapt.privacy import shrink_factors
from dpadapt.privacy.statistics import clipped
from dpadapt.reweighting.plan import Course
from dpadapt.reweighting.queries import errors

_CHAINS, _SEED = 4, 5
_NEGLIGIBLE = 0.05  # of a move: less is none that anybody sees
_ROWS = 6000  # public rows that are drawn from, at most


def centred(coefficients: FloatArray) -> FloatArray:
    """Without the mean over classes, which changes no probability and has noise without signal.

    Examples
    --------
    >>> centred(np.array([[1.0, 3.0]]))
    array([[-1.,  1.]])
    """
    return np.asarray(coefficients - coefficients.mean(axis=1, keepdims=True))


def coordinates(geometry: Any, features: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coordinates of the private step, shrunk to a length of 1 at most, and their lengths.

    Examples
    --------
    >>> from dpadapt.learning.descent import Geometry
    >>> geometry = Geometry.of(np.array([[1.0], [-1.0]]), power=0.0, constant=1.0)
    >>> rows, lengths = coordinates(geometry, np.array([[9.0]]))
    >>> rows.round(2), lengths
    (array([[0.99, 0.11]]), array([1.]))
    """
    Z = geometry.features(features)
    lengths = np.linalg.norm(Z, axis=1)
    return Z * shrink_factors(lengths, 1.0)[:, None], np.minimum(lengths, 1.0)


class NullMoves(NamedTuple):
    """Moves that noise and chance make: mean energy, mean slope in roots of it, the moves.

    Examples
    --------
    >>> NullMoves(0.5, 0.01, ()).energy
    0.5
    """

    energy: float
    slope: float
    moves: tuple[FloatArray, ...]


@dataclass(frozen=True)
class ClassNoHarm:
    """What the private step would cost if nothing had shifted.

    Attributes
    ----------
    error : float
        Error rate of the public model on public rows that its experts had not seen.
    after : float
        That rate with the kept part of moves that noise and chance make, rehearsed on such rows.
    kept : float
        Part of the move that was kept.

    Examples
    --------
    >>> print(ClassNoHarm(error=0.2, after=0.203, kept=0.5))
    Had there been no shift, what was kept would have made the error rate 20.3% instead of 20.0%, \
as rehearsed on public rows.
    """

    error: float
    after: float
    kept: float

    @property
    def result(self) -> str:
        """What became of the public model, in a sentence."""
        if self.kept < _NEGLIGIBLE:
            return (
                "Kept the public model, or nearly so: no gain that could be told from noise was "
                f"seen, and less than {_NEGLIGIBLE:.0%} of the move is kept."
            )
        return (
            f"Moved away from the public model: {rounded(self.kept)} of the move is kept, which is "
            "the chance that it is more than noise. How many errors that saves or costs only an "
            "evaluation tells."
        )

    def __str__(self) -> str:
        before, after = f"{self.error:.1%}", f"{self.after:.1%}"
        made = f"made the error rate {after} instead of {before}"
        if after == before:
            made = f"left the error rate at {before}"
        kept = f"Had there been no shift, what was kept would have {made}"
        return f"{kept}, as rehearsed on public rows."


@dataclass(frozen=True, eq=False)
class NullSimulation:
    """A course, run on public rows as if nothing had shifted.

    Parameters
    ----------
    course : Course
    features : ndarray of shape (m, p)
        Of public rows, with logits of experts that had not seen them.
    offsets : ndarray of shape (m, k)
        Scores of the public model there.
    codes : ndarray of shape (m,)

    Examples
    --------
    >>> from dpadapt.reweighting.plan import PublicProblem, choose_course
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> codes = (X[:, 0] > 0).astype(int)
    >>> course = choose_course(PublicProblem(X, codes, np.zeros((3, 2))), 1000, 0.2)
    >>> simulation = NullSimulation(course, X, np.zeros((300, 2)), codes)
    >>> one, two = (simulation.run(1000, scale=scale) for scale in (0.1, 0.3))
    >>> one[0] < two[0], one[1] > two[1]  # more noise: longer, and less steep
    (True, True)
    """

    course: Course
    features: FloatArray
    offsets: FloatArray
    codes: Any

    def energy(self, coefficients: FloatArray) -> float:
        """Mean square over public rows of what coefficients add to centred scores."""
        move = centred(coefficients)
        return float(np.sum(move * (self.course.moment @ move)))

    def error(self, moves: tuple[FloatArray, ...], part: float) -> float:
        """Error rate on public rows with a part of moves, in the mean over these."""
        rows, _ = coordinates(self.course.geometry, self.features)
        moved = (self.offsets + part * (rows @ move) for move in moves)
        return float(np.mean([np.mean(each.argmax(axis=1) != self.codes) for each in moved]))

    def run(self, n_rows: int, scale: float) -> NullMoves:
        """What moves from n public rows are like.

        Parameters
        ----------
        n_rows : int
        scale : float
            Of the noise in every gradient.
        """
        rng = np.random.default_rng(_SEED)
        some = rng.permutation(len(self.codes))[:_ROWS]
        rows, lengths = coordinates(self.course.geometry, self.features[some])
        offsets, codes = self.offsets[some], self.codes[some]
        targets, found, moves = np.eye(offsets.shape[1])[codes], [], []
        for _ in range(_CHAINS):
            counts = rng.multinomial(n_rows, np.full(len(some), 1 / len(some)))
            drawn, weights = counts > 0, counts / n_rows

            def gradient(
                W: FloatArray, drawn: Any = drawn, weights: FloatArray = weights
            ) -> FloatArray:
                error = errors(rows[drawn] @ W, offsets[drawn], targets[drawn])
                error = weights[drawn, None] * clipped(error, lengths[drawn], self.course.clip)
                return np.asarray(rows[drawn].T @ error + scale * rng.normal(size=W.shape))

            move = self.course.descend(gradient)
            energy = self.energy(move)
            moves.append(centred(move))
            each = slopes(rows @ moves[-1], offsets, codes, energy)
            found.append((energy, float(weights @ np.clip(each, -1, 1))))
        energy, slope = np.mean(found, axis=0)
        return NullMoves(float(energy), float(slope), tuple(moves))


def slopes(added: FloatArray, offsets: FloatArray, codes: Any, energy: float) -> FloatArray:
    """How fast the log-loss of each row falls along a move, in roots of its energy; 0 for no class.

    Parameters
    ----------
    added : ndarray of shape (n, k)
        What the move adds to the scores.
    offsets : ndarray of shape (n, k)
        Scores before it.
    codes : ndarray of shape (n,)
    energy : float

    Examples
    --------
    >>> slopes(np.array([[-1.0, 1.0]] * 2), np.zeros((2, 2)), np.array([1, -1]), energy=4.0)
    array([0.5, 0. ])
    """
    own = np.asarray(codes)[:, None] == np.arange(offsets.shape[1])
    falls = np.einsum("ij,ij->i", own - softmax(offsets), added)
    return np.asarray(falls * own.any(axis=1) / math.sqrt(max(energy, 1e-300)))


# the chance of a shift

_SPIKE = 0.8  # prior chance that nothing has shifted
_WORSE = (0.0, 0.5, 1.0, 2.0)  # what a shift adds to the error rate, in expected error rates
_LONGER = (0.0, 1.0, 3.0, 10.0, 30.0)  # what it adds to the energy, in energies by chance
_STEEPER = (0.03, 0.1, 0.3)  # what it adds to the slope, in roots of the energy
_FREEDOM = 10.0  # of the energy by chance; moves on real tables vary about as much
_LONGEST = 4.0  # a longer move says no more: rows elsewhere make it longer, too
_ROUGH, _VARIED = 0.1, 0.02  # error of the expected error rate, in units of it; of the slope
_MOST_ERRORS = 0.9  # error rate


@dataclass(frozen=True)
class Observation:
    """A number that was released, the scale of its noise, and what it is without a shift.

    Examples
    --------
    >>> Observation(0.25, 0.0625, expected=0.125).log_likelihood(np.array([0.0, 0.25]), rough=0.0)
    array([-2., -2.])
    """

    value: float
    sd: float
    expected: float

    def log_likelihood(self, sizes: FloatArray, rough: float) -> FloatArray:
        """Logarithms of the likelihoods of sizes of what a shift adds."""
        deviation = max(math.hypot(self.sd, rough), 1e-300)
        return np.asarray(-(((self.value - self.expected - sizes) / deviation) ** 2) / 2)


def shift_posterior(wrong: Observation, length: float, slope: Observation | None = None) -> float:
    """Posterior chance that there is a shift, which is the part of the move that is kept.

    Four times in five, it is thought, nothing has shifted. Then the error rate is the expected one;
    the energy of the move is what chance and noise make, times a chi-square over its degrees of
    freedom; and the log-loss falls along the move as it does by chance on the rows that it was made
    for. Else each of the three is larger, by any of a few sizes: a shift may leave the error rate
    and the length as they are, but not the slope. A lower error rate than expected says nothing.

    Parameters
    ----------
    wrong : Observation
        Error rate of the public model on private rows.
    length : float
        Energy of the move, in units of what it is without a shift.
    slope : Observation, optional
        How fast the log-loss falls along the move, in units of the root of its energy.

    Examples
    --------
    >>> usual, worse = Observation(0.2, 0.02, expected=0.2), Observation(0.4, 0.02, expected=0.2)
    >>> round(shift_posterior(usual, 1.0), 3), round(shift_posterior(worse, 1.0), 3)
    (0.018, 1.0)

    A long move is a shift, unless no row's loss falls along it:

    >>> slope = Observation(-0.05, 0.01, expected=0.05)
    >>> round(shift_posterior(usual, 9.0), 3), round(shift_posterior(usual, 9.0, slope), 3)
    (0.982, 0.018)
    """
    worse = np.minimum(np.multiply(_WORSE, wrong.expected), max(_MOST_ERRORS - wrong.expected, 0.0))
    seen = Observation(max(wrong.value, wrong.expected), wrong.sd, wrong.expected)
    of_errors = seen.log_likelihood(np.append(0.0, worse), _ROUGH * wrong.expected)
    longer = 1 + np.append(0.0, _LONGER)
    of_length = -_FREEDOM / 2 * (np.log(longer) + min(length, _LONGEST) / longer)
    of_slope = (
        np.zeros(2) if slope is None else slope.log_likelihood(np.array([0.0, *_STEEPER]), _VARIED)
    )
    pieces = (of_errors, of_length, of_slope)
    none = math.log(_SPIKE) + sum(float(each[0]) for each in pieces)
    some = math.log1p(-_SPIKE) + sum(_log_mean(each[1:]) for each in pieces)
    return float(1 / (1 + math.exp(min(none - some, 700.0))))


def _log_mean(logs: FloatArray) -> float:
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))
