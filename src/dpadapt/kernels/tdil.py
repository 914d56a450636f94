r"""Algorithm 3 of Jain and Thakurta (2013), the test data independent learner (TDIL), repaired.

In each of B rounds a point z is chosen that tells the private model w* from the present public one
w_t, their difference d = <w* - w_t, phi(z)> is measured with noise, and where it is large w_t takes
a step towards it:

    P(z) proportional to exp(e |<phi(z), w_t - w*>| / (2S)),    d^ = d + N(0, s^2),
    w_{t+1} = w_t + eta sign(d^) phi(z)  if |d^| > sigma,    eta = sigma / (4 R^2).

Errata: the printed exponent is eps_0 n lambda / (8 L R^2) with an eps_0 that holds n lambda / (L
R^2) already, so that a round costs more the more rows there are (at n = 10^6, lambda = 0.01 and
epsilon = 1 the points alone tell two neighbours apart almost surely); here S = R Delta is the
sensitivity of a prediction, and e the cost of a choice. The second measurement of a round, a^, is
not used by the model and is not made. The sum in line 6 runs over the points chosen before.

**Sensitivity.** |<phi(z), w_t - w*>| moves by at most S when one row is replaced (w_t is public),
upwards at one point and downwards at another: the range of the scores is 2S, the measurement S.

**Rounds.** While every noise is below sigma/4, a step has |d| >= 3 sigma/4 and takes
2 eta |d| - eta^2 R^2 >= 5 sigma^2 / (16 R^2) off |w_t - w*|^2, at first C^2 at most: after
(16/5) C^2 R^2 / sigma^2 of them there is nothing left to do. The printed B lacks lambda and C.

The chosen points come from a public pool (any kernel), or from the ball itself (linear kernel).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpadapt.privacy import Grant, Hidden, Request, Session, gaussian_mu
from dpadapt.privacy import _validate as validate
from dpadapt.privacy.machine_constants import POTENTIAL

from .pool import Pool, Predict

__all__ = ["BallSession", "Rounds", "release", "release_linear"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rounds:
    """How many rounds, and what each costs; public.

    Parameters
    ----------
    count : int
        B.
    prediction : float
        S, by how much one prediction of one output moves, with its rounding error (twice).
    bound : float
        R.
    failure : float, default=0.05
        beta: probability that some noise is above sigma/4. Of no matter for privacy.
    share : float, default=0.5
        Part of the budget (of rho) that chooses points; the rest measures.
    outputs : int, default=1
        k: each gets B rounds of its own.

    Examples
    --------
    >>> choice, measurement = Rounds(10, prediction=0.01, bound=1.0).requests()
    >>> choice.sensitivity, measurement.sensitivity, choice.count
    (0.02, 0.01, 10)
    """

    count: int
    prediction: float
    bound: float
    failure: float = 0.05
    share: float = 0.5
    outputs: int = 1

    def __post_init__(self) -> None:
        validate.count("count", self.count)
        validate.positive("prediction", self.prediction)
        validate.positive("bound", self.bound)
        validate.fraction("failure", self.failure)
        validate.fraction("share", self.share)
        validate.count("outputs", self.outputs)

    @classmethod
    def of(
        cls,
        prediction: float,
        *,
        bound: float,
        norm: float,
        epsilon: float,
        delta: float,
        failure: float = 0.05,
        share: float = 0.5,
        outputs: int = 1,
    ) -> Rounds:
        """As many rounds as steps are needed, at the noise of so many rounds.

        sigma grows like sqrt(B) and the number of steps like 1 / sigma^2, so both meet.
        """
        mu = gaussian_mu(epsilon, delta) * math.sqrt((1 - share) / outputs)
        reach = (
            bound
            * validate.positive("norm", norm)
            / (validate.positive("prediction", prediction) / mu)
        )
        count = 1.0
        for _ in range(50):
            spread = 4 * math.sqrt(2 * math.log(2 * count / failure))
            count = max(1.0, math.sqrt(POTENTIAL) * reach / spread)
        return cls(math.ceil(count), prediction, bound, failure, share, outputs)

    def requests(self) -> tuple[Request, Request]:
        """The choices of points and the measurements, to be planned together."""
        count = self.count * self.outputs
        # a choice costs e^2/8 and a measurement (S/s)^2/2: twice the weight is the same cost
        choose, measure = 2 * math.sqrt(self.share), math.sqrt(1 - self.share)
        return (
            Request("noisy-argmin", "points", 2 * self.prediction, 1, count, choose),
            Request("gaussian", "differences", self.prediction, 1, count, measure),
        )

    def threshold(self, scale: float) -> float:
        """sigma: above four times every noise of the measurements, save with probability beta."""
        rounds = self.count * self.outputs
        return 4 * scale * math.sqrt(2 * math.log(2 * rounds / self.failure))

    def step(self, scale: float) -> float:
        """Length of a step, eta."""
        return self.threshold(scale) / (4 * self.bound**2)


def release(
    session: Session,
    grants: tuple[Grant, Grant],
    hidden: Hidden,
    predict: Predict,
    pool: Pool,
    rounds: Rounds,
) -> Array:
    """Learn from rounds over a public pool; any kernel.

    Parameters
    ----------
    session : Session
    grants : tuple of two Grant
        Of :meth:`Rounds.requests`.
    hidden : Hidden
    predict : callable
        From the hidden value to the predictions of w* at the pool, of shape (T,) or (T, k). Run
        twice a round: give the hidden predictions and the identity where they are costly.
    pool : Pool
    rounds : Rounds

    Returns
    -------
    ndarray of shape (T,), or (T, k) for two outputs or more
        Coefficients: the model predicts K(z, Z) alpha.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> Z = np.eye(2)
    >>> pool, private = Pool.of(Z @ Z.T), Private(np.tile([0.8, -0.6], (100_000, 1)))
    >>> facts = {"bound": 1.0, "norm": 1.0, "epsilon": 1.0, "delta": 1e-6}
    >>> rounds = Rounds.of(2 / 100_000, **facts)
    >>> with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
    ...     rows = session.hide_rows(Cleaning(radius=1.0))
    ...     grants = session.plan(*rounds.requests())
    ...     mean = lambda X: Z @ X.mean(axis=0)
    ...     alpha = release(session, grants, rows, mean, pool, rounds)
    >>> bool(np.abs(Z.T @ alpha - [0.8, -0.6]).max() < 1.25 * rounds.threshold(grants[1].scale))
    True
    """
    if pool.bound > rounds.bound * (1 + 1e-12):
        raise ValueError(
            f"a point of the pool has a norm of {pool.bound:.6g}, above the bound "
            f"{rounds.bound:g}; rescale the pool, or state a larger bound."
        )
    choose, measure = grants
    threshold, step = rounds.threshold(measure.scale), rounds.step(measure.scale)
    alpha = np.zeros((pool.size, rounds.outputs))
    for output in range(rounds.outputs):
        fitted = np.zeros(pool.size)
        for _ in range(rounds.count):
            gap = _gap(predict, fitted, output)
            at = session.noisy_argmin(choose, hidden, _scores(gap))
            noisy = float(session.gaussian(measure, hidden, _entry(gap, at)))
            if abs(noisy) > threshold:
                move = math.copysign(step, noisy)
                alpha[at, output] += move
                fitted = fitted + move * pool.gram[:, at]
    return alpha if rounds.outputs > 1 else alpha[:, 0]


def _gap(predict: Predict, fitted: Array, output: int) -> Callable[[Array], Array]:
    """<w* - w_t, phi(z)> at the pool, as a function of the hidden value."""
    return lambda value: np.asarray(predict(value)).reshape(len(fitted), -1)[:, output] - fitted


def _scores(gap: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Lowest where the gap is widest."""
    return lambda value: -np.abs(gap(value))


def _entry(gap: Callable[[Array], Array], at: int) -> Callable[[Array], Any]:
    return lambda value: gap(value)[at]


class BallSession(Protocol):
    """What :func:`release_linear` needs of a session."""

    def gaussian(self, grant: Grant, hidden: Hidden, function: Any) -> Array:
        """Release a function with Gaussian noise."""

    def ball_exponential(self, grant: Grant, hidden: Hidden, function: Any, radius: float) -> Array:
        """Draw z with density proportional to exp(|<z, v>| / scale), v the function's value."""


def release_linear(
    session: BallSession,
    grants: tuple[Grant, Grant],
    hidden: Hidden,
    weights: Callable[[Array], Array],
    dimension: int,
    rounds: Rounds,
) -> Array:
    """Learn from rounds over the whole ball of radius R; linear kernel, one output.

    Parameters
    ----------
    session : BallSession
    grants : tuple of two Grant
        Of :meth:`Rounds.requests`.
    hidden : Hidden
    weights : callable
        From the hidden value to w*, of shape (d,).
    dimension : int
        d.
    rounds : Rounds

    Returns
    -------
    ndarray of shape (d,)

    Examples
    --------
    A session without noise, to show the steps alone:

    >>> class Exact:
    ...     def gaussian(self, grant, hidden, function):
    ...         return function(hidden)
    ...     def ball_exponential(self, grant, hidden, function, radius):
    ...         v = function(hidden)
    ...         return radius * v / np.linalg.norm(v)
    >>> from types import SimpleNamespace
    >>> grant = SimpleNamespace(scale=0.002)
    >>> rounds = Rounds(100, prediction=0.01, bound=1.0)
    >>> truth = np.array([0.3, -0.4])
    >>> w = release_linear(Exact(), (grant, grant), truth, lambda w: w, 2, rounds)
    >>> bool(np.linalg.norm(w - truth) < rounds.threshold(0.002))
    True
    """
    if rounds.outputs != 1:
        raise ValueError("the linear form has one output; run it once for each.")
    choose, measure = grants
    threshold, step = rounds.threshold(measure.scale), rounds.step(measure.scale)
    w = np.zeros(dimension)
    for _ in range(rounds.count):
        z = session.ball_exponential(
            choose, hidden, lambda value, w=w: w - weights(value), rounds.bound
        )
        noisy = session.gaussian(measure, hidden, lambda value, w=w, z=z: (weights(value) - w) @ z)
        if abs(float(noisy)) > threshold:
            w = w + math.copysign(step, float(noisy)) * z
    return w
