r"""What the private step of classes does if nothing has shifted, rehearsed on public rows.

A move is made of noise and of the chance in n rows, whether there is a shift or not. A confident
model has little curvature, and a clip takes more of it away, so that both are forgotten more slowly
than a formula says. So the step is rehearsed: n rows are drawn from the public ones, with scores of
experts that had not seen them, and the descent is run with noise of the same scale. The mean energy
of four such moves is what no shift makes; so is the mean slope of the log-loss along them, on the
rows that they were made for. It is free: nothing private takes part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt.privacy import shrink_factors
from dpadapt.reweighting.known_noise_course import Course, averaged_descent
from dpadapt.reweighting.queries.gradients import clipped, errors, softmax

from .trees import Array

__all__ = ["Rehearsal", "centred", "coordinates", "slopes"]

_CHAINS, _SEED = 4, 5
_ROWS = 6000  # public rows that are drawn from, at most


def centred(coefficients: Array) -> Array:
    """Without the mean over classes, which changes no probability and has noise without signal.

    Examples
    --------
    >>> centred(np.array([[1.0, 3.0]]))
    array([[-1.,  1.]])
    """
    return np.asarray(coefficients - coefficients.mean(axis=1, keepdims=True))


def coordinates(geometry: Any, features: Array) -> tuple[Array, Array]:
    """Coordinates of the private step, shrunk to a length of 1 at most, and their lengths.

    Examples
    --------
    >>> from dpadapt.reweighting.horizon import Geometry
    >>> geometry = Geometry.of(np.array([[1.0], [-1.0]]), power=0.0, constant=1.0)
    >>> rows, lengths = coordinates(geometry, np.array([[9.0]]))
    >>> rows.round(2), lengths
    (array([[0.99, 0.11]]), array([1.]))
    """
    Z = geometry.features(features)
    lengths = np.linalg.norm(Z, axis=1)
    return Z * shrink_factors(lengths, 1.0)[:, None], np.minimum(lengths, 1.0)


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A course, tried on public rows.

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
    >>> from dpadapt.reweighting.known_noise_course import PublicProblem, choose_course
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> codes = (X[:, 0] > 0).astype(int)
    >>> course = choose_course(PublicProblem(X, codes, np.zeros((3, 2))), 1000, 0.2)
    >>> rehearsal = Rehearsal(course, X, np.zeros((300, 2)), codes)
    >>> one, two = (rehearsal.by_chance(1000, scale=scale) for scale in (0.1, 0.3))
    >>> one[0] < two[0], one[1] > two[1]  # more noise: longer, and less steep
    (True, True)
    """

    course: Course
    features: Array
    offsets: Array
    codes: Any

    def energy(self, coefficients: Array) -> float:
        """Mean square over public rows of what coefficients add to centred scores."""
        move = centred(coefficients)
        return float(np.sum(move * (self.course.moment @ move)))

    def by_chance(self, n_rows: int, scale: float) -> tuple[float, float]:
        """Mean energy of moves from n public rows, and their mean slope in roots of energies.

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
        targets, found = np.eye(offsets.shape[1])[codes], []
        for _ in range(_CHAINS):
            counts = rng.multinomial(n_rows, np.full(len(some), 1 / len(some)))
            drawn, weights = counts > 0, counts / n_rows

            def gradient(W: Array, drawn: Any = drawn, weights: Array = weights) -> Array:
                error = errors(rows[drawn] @ W, offsets[drawn], targets[drawn])
                error = weights[drawn, None] * clipped(error, lengths[drawn], self.course.clip)
                return np.asarray(rows[drawn].T @ error + scale * rng.normal(size=W.shape))

            shape = (rows.shape[1], offsets.shape[1])
            move = averaged_descent(gradient, shape, self.course.horizon, self.course.steps)
            energy = self.energy(move)
            each = slopes(rows @ centred(move), offsets, codes, energy)
            found.append((energy, float(weights @ np.clip(each, -1, 1))))
        energy, slope = np.mean(found, axis=0)
        return float(energy), float(slope)


def slopes(added: Array, offsets: Array, codes: Any, energy: float) -> Array:
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
