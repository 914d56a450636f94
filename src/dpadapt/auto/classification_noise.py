r"""What noise alone does to a descent of classes, rehearsed on public rows; and how much to keep.

A confident model has little curvature, and a clip takes more of it away, so that noise is forgotten
more slowly than a formula says. Three noisy descents on public rows show what is left of it: the
largest energy over the descent without noise is N. It is free: nothing private takes part.

With W = (1 - u) W* + noise, u the part of the way that the horizon leaves, and E the energy of W,
the multiple of W that is closest to W* has the factor

    sum_i h_i (1 - u_i) w*_i^2 / E  =  rho (1 - N / E),
    rho = sum_i s_i (1 - u_i) / sum_i s_i (1 - u_i)^2,

with s_i the guessed share of the shift's energy along direction i. rho is 1 for a long horizon
(James and Stein), and more for a short one: what is seen of a shift is then a part of it only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpadapt.privacy import shrink_factors
from dpadapt.reweighting.horizon import response, shift_shares
from dpadapt.reweighting.known_noise_course import Course, PublicProblem, averaged_descent
from dpadapt.reweighting.queries.gradients import clipped, errors, softmax

from .trees import Array

__all__ = ["Rehearsal", "centred"]

_CHAINS, _SEED = 3, 5


def centred(coefficients: Array) -> Array:
    """Without the mean over classes, which changes no probability and has noise without signal.

    Examples
    --------
    >>> centred(np.array([[1.0, 3.0]]))
    array([[-1.,  1.]])
    """
    return np.asarray(coefficients - coefficients.mean(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A course, tried on public rows.

    Parameters
    ----------
    problem : PublicProblem
    course : Course

    Examples
    --------
    >>> from dpadapt.reweighting.known_noise_course import choose_course
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> problem = PublicProblem(X, (X[:, 0] > 0).astype(int), np.zeros((3, 2)))
    >>> rehearsal = Rehearsal(problem, choose_course(problem, 1000, 0.2))
    >>> noise = rehearsal.noise(0.1)
    >>> bool(noise > 0), rehearsal.kept(np.zeros((3, 2)), noise)
    (True, 0.0)
    """

    problem: PublicProblem
    course: Course

    def noise(self, scale: float) -> float:
        """N: energy that noise of this scale in every gradient leaves, the largest of three."""
        rng, plain = np.random.default_rng(_SEED), self._descent(0.0, None)
        moves = [self._descent(scale, rng) - plain for _ in range(_CHAINS)]
        return max(self.energy(move) for move in moves)

    def energy(self, coefficients: Array) -> float:
        """Mean square over public rows of what coefficients add to centred scores."""
        move = centred(coefficients)
        return float(np.sum(move * (self.course.moment @ move)))

    def kept(self, coefficients: Array, noise: float) -> float:
        """Part of a move that is kept: rho (1 - N / E), from 0 to 1."""
        energy = self.energy(coefficients)
        if energy <= noise:
            return 0.0
        return min(1.0, self._partial() * (1 - noise / energy))

    def _rows(self) -> tuple[Array, Array]:
        features = self.course.geometry.features(self.problem.rows[self.problem.some])
        lengths = np.linalg.norm(features, axis=1)
        return features * shrink_factors(lengths, 1.0)[:, None], np.minimum(lengths, 1.0)

    def _descent(self, scale: float, rng: np.random.Generator | None) -> Array:
        course, (rows, lengths) = self.course, self._rows()
        offsets, targets = self.problem.offsets, self.problem.targets

        def gradient(W: Array) -> Array:
            error = clipped(errors(rows @ W, offsets, targets), lengths, course.clip)
            slope = rows.T @ error / len(rows)
            return np.asarray(slope if rng is None else slope + scale * rng.normal(size=W.shape))

        shape = (rows.shape[1], targets.shape[1])
        return averaged_descent(gradient, shape, course.horizon, course.steps)

    def _partial(self) -> float:
        """Rho, with the curvature of the public model class by class."""
        (rows, _), chances = self._rows(), softmax(self.problem.offsets)
        course, level = self.course, self.problem.kind.level_share
        several = chances.shape[1] / (chances.shape[1] - 1)  # classes are centred
        first = second = 0.0
        for weight in (several * chances * (1 - chances)).T:
            values, vectors = np.linalg.eigh((rows * weight[:, None]).T @ rows / len(rows))
            known = response(np.maximum(values, 0.0), course.horizon, course.steps)
            shares = shift_shares(course.geometry, course.moment, vectors, level)
            learned = 1 - known.unlearned
            first += float(shares @ learned)
            second += float(shares @ learned**2)
        return first / second if second > 0 else 1.0
