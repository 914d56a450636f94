r"""Algorithm 2 of the paper: noisy Frank-Wolfe on the smoothed discrepancy.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.discrepancy.matrices import public_rows, symmetric_part, weighted_moment
from dpadapt.privacy import Grant, Hidden, Session
from dpadapt.privacy.mechanisms import Exponential, LaplaceMin
from dpadapt.privacy.statistics import SecondMoment

from .queries import RowBounds, Scores, Smoothing, bounds_of, hidden_scores

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
