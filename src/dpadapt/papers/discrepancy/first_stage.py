r"""Algorithms 2 and 3 of the paper: weights first, by noisy steps on the smoothed discrepancy.

**Algorithm 2 of the paper: noisy Frank-Wolfe on the smoothed discrepancy.**

    q_1 uniform
    for k = 1 ... K:
        scores   g_i = -x_i^T H(q_k) x_i + lambda q_{k,i}
        vertex   j   = noisy argmin of g
        step     q_{k+1} = (1 - eta_k) q_k + eta_k e_j,   eta_k = 3 / (k + 2)
    return q_{K+1}

Of the private rows, only the K vertices come out. (The paper returns :math:`q_K`, and so pays for
a last vertex that it throws away.)

Two calibrations. "tight" chooses the vertex by the exponential mechanism with the true range of
the scores, :math:`\mu r^2 \hat r^2 / n`. "paper" adds Laplace noise of the printed scale
:math:`\sigma = 4 \mu r^2 \hat r^2 \sqrt{2 K \log(1/\delta)} / (n \epsilon)`: its proof takes half
of the sensitivity that report-noisy-min needs, but twice the sensitivity in norm and twice again
in range, so that it is noisier than it has to be; the guarantee says by how much.

**Algorithm 3 of the paper: noisy mirror descent on the smoothed discrepancy.**

    q_1 uniform
    for k = 1 ... K:
        gradient  g_i = -x_i^T H(q_k) x_i + lambda q_{k,i}, with noise
        step      q_{k+1} = argmin <g, q> + D(q, q_k) / eta
    return the average of q_1 ... q_K, or of the later half

D is a Bregman divergence. The paper prints :math:`\|q - q_k\|_p^2 / (p-1)`, which is none, so that
the analysis it cites does not cover it; we take the divergence of
:math:`\Phi(q) = \|q\|_p^2 / (p-1)`, or the relative entropy, whose step is a formula.

Where the noise goes makes the difference. "gradient" adds it to the m entries, as printed. "matrix"
adds it to H, which has d x d entries whatever m is; the m entries of the gradient are then a
function of what is released already. That is :math:`\sqrt m` times less noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.discrepancy.matrices import public_rows, row_scores, symmetric_part, weighted_moment
from dpadapt.learning.softmax import softmax
from dpadapt.privacy import Grant, Hidden, Session
from dpadapt.privacy.mechanisms import Exponential, Gaussian, LaplaceMin, SymmetricGaussian
from dpadapt.privacy.statistics import SecondMoment

from .queries import (
    RowBounds,
    Scores,
    Smoothing,
    bounds_of,
    gradient_spread,
    hidden_gradient,
    hidden_gradient_matrix,
    hidden_scores,
)

_REFRESH = 500  # steps after which the maintained moment is computed anew


@dataclass(frozen=True, eq=False)
class NoisyFrankWolfe:
    r"""Weights of the public rows by noisy Frank-Wolfe (Algorithm 2).

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    smoothing : Smoothing
        The smooth function to minimise; :class:`~.smoothing.Softmax` in the paper.
    steps : int
        K.
    penalty : float, default=0
        :math:`\lambda`: adds :math:`\lambda \|q\|_2^2 / 2`, against sparse weights.

    See Also
    --------
    frank_wolfe_parameters : chooses mu and K from public facts.

    Notes
    -----
    :math:`F(q_{K+1}) - \min F \le 9 (\mu \hat r^4 + \lambda) / K + \max_k \alpha_k`, with
    :math:`\alpha_k` what the noise loses in step k: at most b log(mK / beta), b the scale.
    A step costs one d x d eigen-decomposition, one pass over the rows and m noises.

    Examples
    --------
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning, Private
    >>> algorithm = NoisyFrankWolfe(np.eye(2), Softmax(mu=30.0), steps=300)
    >>> np.allclose(algorithm.minimise(np.diag([0.75, 0.25])), [0.75, 0.25], atol=0.02)
    True

    >>> private, query = Private([[1.0, 0.0]] * 9000 + [[0.0, 1.0]] * 1000), SecondMoment(
    ...     Cleaning(radius=1.0)
    ... )
    >>> algorithm = NoisyFrankWolfe(np.eye(2), Softmax(mu=10.0), steps=20)
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     grants = session.plan(vertex=algorithm.mechanism(session, query))
    ...     weights = algorithm.release(session, grants.vertex, session.hide(query))
    >>> bool(weights[0] > 0.7), session.guarantee.epsilon <= 1.0
    (True, True)
    """

    X: FloatArray
    smoothing: Smoothing
    steps: int
    penalty: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", public_rows(self.X))
        validate.count("steps", self.steps)
        validate.non_negative("penalty", self.penalty)

    def minimise(self, target_moment: npt.ArrayLike) -> FloatArray:
        """Weights for a second moment that is public (or released), without noise."""
        target = symmetric_part(target_moment)
        return self._last(lambda scores: int(np.argmin(scores(target))))

    def mechanism(
        self, session: Session, query: SecondMoment, *, calibration: str = "tight"
    ) -> Exponential | LaplaceMin:
        """Plan the K noisy vertices.

        Parameters
        ----------
        session : Session
            Gives n, and for the printed noise epsilon and delta.
        query : SecondMoment
            The private statistic, whose bounds enter the sensitivity.
        calibration : {"tight", "paper"}, default="tight"
        """
        validate.choice("calibration", calibration, ("tight", "paper"))
        bounds = RowBounds.of(query, self.X, whole_sample(session))
        label, reach = "Frank-Wolfe vertex", self.smoothing.range_sensitivity(bounds)
        if calibration == "tight":
            return Exponential(label, reach, count=self.steps)
        printed = printed_vertex_noise(self.smoothing, bounds, session, self.steps)
        return LaplaceMin(label, reach, count=self.steps, printed=printed)

    def release(self, session: Session, grant: Grant, moment: Hidden) -> FloatArray:
        """Weights for a hidden second moment; trades the grant of :meth:`mechanism`."""
        bounds = bounds_of(session, moment, self.X)
        return self._last(
            lambda scores: session.release(grant, hidden_scores(session, moment, scores, bounds))
        )

    def path(self, choose: Callable[[Scores], int]) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Weights and their moment S(q) after each step.

        Parameters
        ----------
        choose : callable
            Takes the scores as a function of the private moment, returns the chosen row.
        """
        X = self.X
        weights = np.full(len(X), 1 / len(X))
        moment = weighted_moment(X, weights)
        for k in range(1, self.steps + 1):
            chosen = choose(Scores(X, self.smoothing, moment, self.penalty * weights))
            eta = 3 / (k + 2)
            weights = (1 - eta) * weights
            weights[chosen] += eta
            if k % _REFRESH == 0:
                moment = weighted_moment(X, weights)
            else:
                moment = (1 - eta) * moment + eta * np.outer(X[chosen], X[chosen])
            yield weights, moment

    def _last(self, choose: Callable[[Scores], int]) -> FloatArray:
        for weights, _ in self.path(choose):
            last = weights
        return last


def whole_sample(session: Session) -> int:
    """Number of private rows; refuses a session that is split, whose parts have fewer."""
    if session.size("holdout"):
        raise ValueError("session must not be split: the sensitivity is that of all its rows.")
    return session.n_rows


def printed_vertex_noise(
    smoothing: Smoothing, bounds: RowBounds, session: Session, steps: int
) -> float:
    """Line 6 of Algorithm 2: twice the printed sensitivity times sqrt(2 K log(1/delta)) / epsilon.

    For the softmax, 4 mu r^2 r_hat^2 sqrt(2 K log(1/delta)) / (n epsilon).
    """
    delta = validate.delta(session.delta)
    composed = math.sqrt(2 * steps * math.log(1 / delta)) / session.epsilon
    return 2 * smoothing.printed_sensitivity(bounds) * composed


@dataclass(frozen=True, eq=False)
class NoisyMirrorDescent:
    r"""Weights of the public rows by noisy mirror descent (Algorithm 3).

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    smoothing : Smoothing
        The smooth function to minimise; :class:`~.smoothing.Softmax` in the paper.
    steps : int
        K.
    step_size : float
        :math:`\eta`.
    penalty : float, default=0
        :math:`\lambda`: adds :math:`\lambda \|q\|_2^2 / 2`, against sparse weights.
    geometry : {"entropy", "p-norm"}, default="entropy"
        The divergence of the step; "p-norm" is the paper's, made a Bregman divergence.
    noise_on : {"matrix", "gradient"}, default="matrix"
        "gradient" is the paper's.
    average : {"half", "all"}, default="half"
        "all" is the paper's; "half" leaves the way from the uniform weights out.

    See Also
    --------
    mirror_descent_parameters : chooses mu, K and the step size.

    Examples
    --------
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning, Private
    >>> algorithm = NoisyMirrorDescent(np.eye(2), Softmax(mu=30.0), steps=300, step_size=0.1)
    >>> np.allclose(algorithm.minimise(np.diag([0.75, 0.25])), [0.75, 0.25], atol=0.02)
    True

    >>> private, query = Private([[1.0, 0.0]] * 9000 + [[0.0, 1.0]] * 1000), SecondMoment(
    ...     Cleaning(radius=1.0)
    ... )
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     grants = session.plan(gradient=algorithm.mechanism(session, query))
    ...     weights = algorithm.release(session, grants.gradient, session.hide(query))
    >>> bool(weights[0] > 0.7), session.guarantee.epsilon <= 1.0
    (True, True)
    """

    X: FloatArray
    smoothing: Smoothing
    steps: int
    step_size: float
    penalty: float = 0.0
    geometry: str = "entropy"
    noise_on: str = "matrix"
    average: str = "half"

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", public_rows(self.X))
        validate.count("steps", self.steps)
        validate.positive("step_size", self.step_size)
        validate.non_negative("penalty", self.penalty)
        validate.choice("geometry", self.geometry, ("entropy", "p-norm"))
        validate.choice("noise_on", self.noise_on, ("matrix", "gradient"))
        validate.choice("average", self.average, ("half", "all"))

    def minimise(self, target_moment: npt.ArrayLike) -> FloatArray:
        """Weights for a second moment that is public (or released), without noise."""
        target = symmetric_part(target_moment)
        return self._average(lambda moment: self._scores(target - moment))

    def mechanism(
        self, session: Session, query: SecondMoment, *, calibration: str = "tight"
    ) -> Gaussian:
        """Plan the K noisy gradients.

        Parameters
        ----------
        session : Session
            Gives n, and for the printed noise epsilon and delta.
        query : SecondMoment
            The private statistic, whose bounds enter the sensitivity.
        calibration : {"tight", "paper"}, default="tight"
            "paper" is the printed scale 4 mu r^2 r_hat^2 sqrt(2 K m log(1/delta)) / (n epsilon),
            which is for ``noise_on="gradient"`` only.
        """
        validate.choice("calibration", calibration, ("tight", "paper"))
        bounds = RowBounds.of(query, self.X, whole_sample(session))
        moved, (m, d) = self.smoothing.matrix_sensitivity(bounds), self.X.shape
        if self.noise_on == "matrix":
            if calibration == "paper":
                raise ValueError("calibration='paper' needs noise_on='gradient': none is printed.")
            return SymmetricGaussian("gradient matrix", moved, d * d, self.steps)
        reach, printed = moved * gradient_spread(self.X), None
        if calibration == "paper":
            # one vertex's noise times sqrt(m)
            vertex = printed_vertex_noise(self.smoothing, bounds, session, self.steps)
            printed = math.sqrt(m) * vertex
        return Gaussian("gradient", reach, m, self.steps, printed=printed)

    def release(self, session: Session, grant: Grant, moment: Hidden) -> FloatArray:
        """Weights for a hidden second moment; trades the grant of :meth:`mechanism`."""
        facts, bounds = (session, moment, self.smoothing), bounds_of(session, moment, self.X)
        spread = gradient_spread(self.X)

        def from_matrix(public: FloatArray) -> FloatArray:
            H = session.release(grant, hidden_gradient_matrix(*facts, public, bounds))
            return row_scores(self.X, H)

        def from_entries(public: FloatArray) -> FloatArray:
            entries = hidden_gradient(*facts, public, self.X, bounds, spread=spread)
            return np.asarray(session.release(grant, entries))

        return self._average(from_matrix if self.noise_on == "matrix" else from_entries)

    def path(self, scores: Callable[[FloatArray], FloatArray]) -> Iterator[FloatArray]:
        """Weights q_1 ... q_K.

        Parameters
        ----------
        scores : callable
            Takes the moment S(q), returns the (noisy) gradient without the penalty's part.
        """
        step = entropic_step if self.geometry == "entropy" else bregman_step
        weights = np.full(len(self.X), 1 / len(self.X))
        for _ in range(self.steps):
            yield weights
            gradient = scores(weighted_moment(self.X, weights)) + self.penalty * weights
            weights = step(weights, gradient, self.step_size)

    def _scores(self, M: FloatArray) -> FloatArray:
        return row_scores(self.X, self.smoothing.gradient(M))

    def _average(self, scores: Callable[[FloatArray], FloatArray]) -> FloatArray:
        total = np.zeros(len(self.X))
        first = self.steps // 2 if self.average == "half" else 0
        for weights in itertools.islice(self.path(scores), first, None):
            total += weights
        average: FloatArray = total / total.sum()
        return average


def entropic_step(weights: FloatArray, gradient: FloatArray, step_size: float) -> FloatArray:
    """Step under the relative entropy: q exp(-eta g), normalised; in logarithms throughout.

    A weight that is too small for a float stays at the smallest one, so that it can come back.

    Examples
    --------
    >>> entropic_step(np.array([0.5, 0.5]), np.array([0.0, np.log(3.0)]), 1.0)
    array([0.75, 0.25])
    """
    logs = np.log(np.maximum(weights, np.finfo(float).tiny)) - step_size * gradient
    return softmax(logs)


def bregman_step(weights: FloatArray, gradient: FloatArray, step_size: float) -> FloatArray:
    r"""Step under the Bregman divergence of :math:`\Phi(q) = \|q\|_p^2/(p-1)`, p = 1 + 1/log m.

    The minimiser is :math:`\nabla\Phi^*((\theta + \nu)_+)`, with
    :math:`\theta = \nabla\Phi(q) - \eta g`,
    :math:`\nabla\Phi(q) = 2 \|q\|_p^{2-p} q^{p-1} / (p-1)`,
    :math:`\nabla\Phi^*(a) = (p-1) \|a\|_{p*}^{2-p*} a^{p*-1} / 2` and the multiplier
    :math:`\nu` at which the entries sum to 1. Their sum grows with :math:`\nu`, is 0 where the
    largest a is 0 and at least 1 where it is 2 / (p-1), which brackets it. For fewer than three
    rows p = 2.

    Examples
    --------
    >>> bregman_step(np.array([0.5, 0.5]), np.array([0.0, 1.0]), 0.4)
    array([0.6, 0.4])
    """
    p = 1 + 1 / max(1.0, math.log(len(weights)))
    dual = p / (p - 1)
    norm = float((weights**p).sum() ** (1 / p))
    theta = 2 / (p - 1) * norm ** (2 - p) * weights ** (p - 1) - step_size * gradient

    def primal(largest: float) -> FloatArray:
        a = np.maximum(theta - theta.max() + largest, 0.0)
        t = a / largest  # powers of numbers up to 1
        total = float((t**dual).sum()) ** ((2 - dual) / dual)
        return np.asarray((p - 1) / 2 * largest * total * t ** (dual - 1))

    most = 4 / (p - 1)  # twice what is enough, so that rounding leaves a change of sign
    new = primal(brentq(lambda largest: primal(largest).sum() - 1, 1e-12 * most, most, xtol=1e-15))
    return np.asarray(new / new.sum())
