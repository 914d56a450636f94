r"""Algorithm 3 of Jain and Thakurta (2013), the test data independent learner (TDIL), repaired.

In each of B rounds a point z is chosen that tells the private model w* from the present public one
w_t, their difference d = <w* - w_t, phi(z)> is measured with noise, and where it is large w_t takes
a step towards it:

    P(z) proportional to exp(e |<phi(z), w_t - w*>| / (2S)),    d^ = d + N(0, s^2),
    w_{t+1} = w_t + eta sign(d^) phi(z)  if |d^| > sigma,    eta = sigma / (4 R^2).

Errata: the printed exponent is eps_0 n lambda / (8 L R^2) with an eps_0 that holds n lambda / (L
R^2) already, so that a round costs more the more rows there are (at n = 10^6, lambda = 0.01 and
epsilon = 1 the points alone tell two neighbours apart almost surely); here S = R Delta is the
sensitivity of a prediction (:mod:`dpadapt.kernels.queries`), and e the cost of a choice. The second
measurement of a round, a^, is not used by the model and is not made. The sum in line 6 runs over
the points chosen before.

**Rounds.** While every noise is below sigma/4, a step has |d| >= 3 sigma/4 and takes
2 eta |d| - eta^2 R^2 >= 5 sigma^2 / (16 R^2) off |w_t - w*|^2, at first C^2 at most: after
(16/5) C^2 R^2 / sigma^2 of them there is nothing left to do. The printed B lacks lambda and C.

The chosen points come from a public pool (any kernel), or from the ball itself (linear kernel).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.kernels.constants import Bounds, Constants, KernelFacts
from dpadapt.kernels.pool import Pool
from dpadapt.kernels.release import Release
from dpadapt.privacy import Hidden, Session

from . import queries
from .rounds import Rounds

_ABOVE = 1 + 1e-12  # rounding of the norm of a point


@dataclass(frozen=True, eq=False)
class TDIL(Release):
    """The paper's Algorithm 3 with the corrected choice: rounds of a choice and a measurement.

    With a linear kernel, one output and no pool of the caller's, points are chosen from the whole
    ball of public radius.

    Parameters
    ----------
    points, pool
        As in :class:`~dpadapt.kernels.release.Release`.

    Examples
    --------
    >>> TDIL(points=50).by_weights(linear=True, outputs=1)
    True
    """

    told: ClassVar[str] = (
        "learnt from noisy answers at chosen points (Jain and Thakurta 2013, Algorithm 3, "
        "with the selection corrected)"
    )

    def by_weights(self, linear: bool, outputs: int) -> bool:
        """For a linear kernel, one output, no pool."""
        return linear and outputs == 1 and self.pool is None

    def error_bound(self, facts: KernelFacts, questions: int, size: int, explicit: bool) -> float:
        """None: Theorem 8 is about the model of the first round without a step."""
        raise ValueError(
            "release: Theorem 8 (error_of_tdil) is about TDIL's model in the first round without "
            "a step, and later steps are not covered; a bound is that of explicit features or of "
            "TDDL."
        )

    def coefficients(
        self, session: Session, predictions: Hidden, pool: Pool, facts: Constants
    ) -> FloatArray:
        """Rounds over the pool, for each output."""
        rounds = Rounds.of(
            Bounds.each(facts),
            epsilon=session.epsilon,
            delta=session.delta,
            outputs=predictions.shape[1],
        )
        grants = session.plan(**rounds.mechanisms())
        return learn(session, grants, predictions, pool, rounds)

    def weights(
        self, session: Session, weights: Hidden, facts: Constants, public: FloatArray
    ) -> FloatArray:
        """Rounds over the ball."""
        bounds = Bounds.each(facts)
        rounds = Rounds.of(bounds, epsilon=session.epsilon, delta=session.delta)
        grants = session.plan(**rounds.mechanisms(ball=True))
        return learn_linear(session, grants, weights, rounds)[:, None]


def learn(
    session: Session, grants: Any, predictions: Hidden, pool: Pool, rounds: Rounds
) -> FloatArray:
    """Learn from rounds over a public pool; any kernel.

    Parameters
    ----------
    session : Session
    grants : namespace
        Of :meth:`Rounds.mechanisms`.
    predictions : Hidden
        Of w* at the pool, of shape (T,) or (T, k).
    pool : Pool
    rounds : Rounds

    Returns
    -------
    ndarray of shape (T, k)
        Coefficients: the model predicts K(z, Z) alpha.

    Examples
    --------
    >>> from dpadapt.kernels.queries import predictions
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> Z = np.eye(2)
    >>> pool, private = Pool.of(Z @ Z.T), Private(np.tile([0.8, -0.6], (100_000, 1)))
    >>> rounds = Rounds.of(Bounds(2 / 100_000, norm=1.0), epsilon=1.0, delta=1e-6)
    >>> with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
    ...     rows = session.hide(Rows(Cleaning(radius=1.0)))
    ...     predicted = predictions(session, rows, lambda X: Z @ X.mean(axis=0))
    ...     grants = session.plan(**rounds.mechanisms())
    ...     alpha = learn(session, grants, predicted, pool, rounds)[:, 0]
    ...     reach = 1.25 * rounds.threshold(grants.differences.scale)
    >>> bool(np.abs(Z.T @ alpha - [0.8, -0.6]).max() < reach)
    True
    """
    pool.check_within(rounds.bound * _ABOVE)
    scale, S = grants.differences.scale, rounds.prediction
    threshold, step = rounds.threshold(scale), rounds.step(scale)
    alpha = np.zeros((pool.size, rounds.outputs))
    for output in range(rounds.outputs):
        fitted = np.zeros(pool.size)
        for _ in range(rounds.count):
            scores = queries.gap_scores(session, predictions, fitted, output, S)
            at = session.release(grants.points, scores)
            gap = queries.difference_at(session, predictions, fitted, output, at, S)
            noisy = float(session.release(grants.differences, gap))
            if abs(noisy) > threshold:
                move = math.copysign(step, noisy)
                alpha[at, output] += move
                fitted = fitted + move * pool.gram[:, at]
    return alpha


def learn_linear(session: Session, grants: Any, weights: Hidden, rounds: Rounds) -> FloatArray:
    """Learn from rounds over the whole ball of radius R; linear kernel, one output.

    Parameters
    ----------
    session : Session
    grants : namespace
        Of :meth:`Rounds.mechanisms`, with ``ball=True``.
    weights : Hidden
        w*, of d numbers.
    rounds : Rounds

    Returns
    -------
    ndarray of shape (d,)

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> private = Private(np.tile([0.3, -0.4], (100_000, 1)))
    >>> rounds = Rounds.of(Bounds(2 / 100_000, norm=1.0), epsilon=1.0, delta=1e-6)
    >>> with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
    ...     rows = session.hide(Rows(Cleaning(radius=1.0)))
    ...     mean = session.derive(rows, lambda X: X.mean(axis=0), label="weights")
    ...     grants = session.plan(**rounds.mechanisms(ball=True))
    ...     w = learn_linear(session, grants, mean, rounds)
    >>> bool(np.linalg.norm(w - [0.3, -0.4]) < rounds.threshold(grants.differences.scale))
    True
    """
    if rounds.outputs != 1:
        raise ValueError("the linear form has one output; run it once for each.")
    scale, S = grants.differences.scale, rounds.prediction
    threshold, step = rounds.threshold(scale), rounds.step(scale)
    w = np.zeros(math.prod(weights.shape))
    for _ in range(rounds.count):
        away = queries.away_from(session, weights, w, S)
        z = session.release(grants.points, away)
        gap = queries.difference_along(session, weights, w, z, S)
        noisy = float(session.release(grants.differences, gap))
        if abs(noisy) > threshold:
            w = w + math.copysign(step, noisy) * z
    return w
