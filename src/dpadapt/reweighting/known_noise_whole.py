r"""The known-noise descent of a classifier in which nothing is cut: many rows, a large budget.

The usual course (:mod:`.known_noise_course`) shrinks private rows to length 1 and clips their
gradients: right where noise is large, and a bias that no budget removes. Here the bound on a row is
the longest public one, or a multiple of it that grows with n epsilon, and the clip is the most that
a gradient of such a row can be: a softmax error has length sqrt(2) at most. The noise is larger by
the same factor, and known. What is expected of both is compared from public facts only; the better
one is run. So the error falls to that of a logistic regression of the private rows, from the public
model, up to the horizon: along an axis of curvature c a part exp(-2048 c) of the shift is left.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from dpadapt.learning.descent import Geometry, response

from .known_noise_course import LEAST_STEPS, POWERS, Course, PublicProblem, choose_course

_LONG = 1e-4  # of a shift: what is lost on private rows that are longer than the longest public one
_GROWTH = (1.0, 2.0, 4.0)  # of the bound, in longest public rows
_MOST_STEPS = 2048
_LONGEST_ERROR = math.sqrt(2)


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
