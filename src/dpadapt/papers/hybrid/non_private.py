r"""Algorithm 1 of paper 003: Subsample-Test-Reweigh WITHOUT privacy, on plain arrays.

For experiments and for comparison only: rows, labels and weights lie open.
:class:`~dpadapt.hybrid.SubsampleTestReweigh` is the private method.

**How far the target T is from the source S: chi-squared, Renyi and D_inf.**

:math:`\chi^2(T \| S) = E_S[(T/S - 1)^2]`, :math:`D_\alpha = \ln E_S[(T/S)^\alpha] / (\alpha - 1)`,
:math:`D_\infty = \ln \sup T/S`; D_2 is :math:`\ln(\chi^2 + 1)`. The paper's sizes grow with
chi^2 + 1. Two ways: from two densities and points of S (:meth:`Divergences.of_densities`), or from
two samples (:meth:`Divergences.of_samples`), where a logistic regression that tells the samples
apart gives the ratio. An estimate from samples is no bound: where S has no rows, it cannot see that
T has. **Do not give it private rows**: nothing here is private.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.softmax import softmax

Predict = Callable[[Any], Any]


@dataclass(frozen=True)
class NonPrivateRun:
    """What the non-private algorithm found.

    Attributes
    ----------
    rule : callable
        h: from rows to labels. The one that passed the test, else the best one seen.
    estimates : tuple of float
        a^t: answers of the oracle, round by round.
    halted : bool
        Whether a rule passed the test.
    weights : ndarray of shape (n,)
        The last distribution over the rows.

    Examples
    --------
    >>> NonPrivateRun(np.sign, (0.3, 0.1), halted=True, weights=np.full(2, 0.5)).rounds
    2
    """

    rule: Predict
    estimates: tuple[float, ...]
    halted: bool
    weights: FloatArray

    @property
    def rounds(self) -> int:
        """Rounds that were run."""
        return len(self.estimates)


def non_private_subsample_test_reweigh(
    X: Any,
    y: Any,
    learner: Callable[[Any, Any, FloatArray], Predict],
    oracle: Callable[[Predict], float],
    *,
    threshold: float,
    rounds: int,
    rate: float = 0.2,
    draws: int | None = None,
    loss: Callable[[Predict, Any, Any], Any] | None = None,
    random_state: int | None = None,
) -> NonPrivateRun:
    r"""Learn for a target that only answers questions, from rows of another source. Not private.

    In each round: a rule from the weighted rows; if the target's mean loss of it is at most the
    threshold it is returned; else :math:`w_i \leftarrow w_i e^{-\eta (1 - L(h(x_i), y_i))}`.

    Parameters
    ----------
    X, y : arrays with n rows
    learner : callable
        M: from (rows, labels, weights that sum to 1) to a function that predicts labels.
    oracle : callable
        From such a function to its mean loss on the target (the paper's SQ oracle).
    threshold : float
        2 alpha + tau, and the error of the best hypothesis if none is perfect.
    rounds : int
        T.
    rate : float, default=0.2
        eta; the theorem's is alpha / 8, which takes some thousand rounds.
    draws : int, optional
        m: rows drawn for the learner, who then gets equal weights. By default it gets them all.
    loss : callable, optional
        From (rule, X, y) to losses in [0, 1]. By default 1 for a mistake.
    random_state : int, optional

    Examples
    --------
    The source is dense where the target is not; labels follow a threshold at 2:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(size=(4000, 1))
    >>> y, target = X[:, 0] > 2, rng.uniform(1.5, 2.5, size=(4000, 1))
    >>> def stump(X, y, weights):
    ...     cuts = np.linspace(0, 4, 41)
    ...     errors = [weights @ ((X[:, 0] > cut) != y) + 0.3 * abs(cut - 1) for cut in cuts]
    ...     return lambda rows: rows[:, 0] > cuts[np.argmin(errors)]
    >>> oracle = lambda rule: np.mean(rule(target) != (target[:, 0] > 2))
    >>> run = non_private_subsample_test_reweigh(X, y, stump, oracle, threshold=0.05, rounds=90)
    >>> run.halted, run.estimates[0] > 0.05
    (True, True)
    """
    validate.count("rounds", rounds)
    validate.positive("rate", rate)
    if draws is not None:
        validate.count("draws", draws)
    X, y = np.asarray(X), np.asarray(y)
    rng = np.random.default_rng(random_state)
    logs = np.zeros(len(X))
    estimates: list[float] = []
    best: tuple[float, Predict] | None = None
    for _ in range(rounds):
        weights = softmax(logs)
        rule = _subsample(learner, X, y, weights, draws, rng)
        estimates.append(float(oracle(rule)))
        if best is None or estimates[-1] < best[0]:
            best = estimates[-1], rule
        if estimates[-1] <= threshold:
            return NonPrivateRun(rule, tuple(estimates), True, weights)
        found = rule(X) != y if loss is None else loss(rule, X, y)
        logs -= rate * (1 - np.clip(np.asarray(found, dtype=np.float64), 0.0, 1.0))
    assert best is not None  # there is one round at least
    return NonPrivateRun(best[1], tuple(estimates), False, weights)


def _subsample(
    learner: Callable[[Any, Any, FloatArray], Predict],
    X: Any,
    y: Any,
    weights: FloatArray,
    draws: int | None,
    rng: np.random.Generator,
) -> Predict:
    if draws is None:
        return learner(X, y, weights)
    ladder = np.cumsum(weights)
    drawn = np.searchsorted(ladder, rng.random(draws) * ladder[-1], side="right")
    drawn = np.minimum(drawn, len(X) - 1)
    return learner(X[drawn], y[drawn], np.full(draws, 1 / draws))


@dataclass(frozen=True, eq=False)
class Divergences:
    """Divergences of a target from a source, from the logarithm of T/S at points of the source.

    Parameters
    ----------
    log_ratios : ndarray of shape (n,)
        log T(x) - log S(x) at points drawn from S; minus infinity where T has nothing.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> x = norm.rvs(size=200_000, random_state=0)
    >>> found = Divergences.of_densities(norm(0.0, 0.7).logpdf, norm(0.0, 1.0).logpdf, x)
    >>> round(found.chi2, 2), round(math.exp(found.renyi(2)) - 1, 2), round(math.exp(found.most), 2)
    (0.16, 0.16, 1.43)
    """

    log_ratios: FloatArray

    def __post_init__(self) -> None:
        ratios = np.asarray(self.log_ratios, dtype=np.float64)
        if ratios.ndim != 1 or not len(ratios):
            raise ValueError("log_ratios must be one row of numbers, at least one.")
        if np.isnan(ratios).any():
            raise ValueError("log_ratios: some are no numbers; S must have a density there.")
        object.__setattr__(self, "log_ratios", ratios)

    @classmethod
    def of_densities(
        cls,
        target: Callable[[Any], ArrayLike],
        source: Callable[[Any], ArrayLike],
        points: ArrayLike,
    ) -> Divergences:
        """From logarithms of two densities.

        Parameters
        ----------
        target, source : callable
            From points to log densities.
        points : array-like
            Drawn from S.
        """
        at = np.asarray(points, dtype=np.float64)
        return cls(np.ravel(np.asarray(target(at)) - np.asarray(source(at))))

    @classmethod
    def of_samples(
        cls, target: ArrayLike, source: ArrayLike, *, degree: int = 2, penalty: float = 1.0
    ) -> Divergences:
        """From two samples: the odds of a logistic regression that tells them apart.

        Exact in the limit where log T/S is a polynomial of the degree: two Gaussians have degree 2.

        Parameters
        ----------
        target, source : array-like of shape (N, d), (n, d)
        degree : int, default=2
        penalty : float, default=1.0
            C of the logistic regression.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> target, source = rng.normal(0.0, 0.7, size=(20_000, 1)), rng.normal(size=(20_000, 1))
        >>> 0.12 < Divergences.of_samples(target, source).chi2 < 0.23
        True
        """
        T, S = (np.asarray(each, dtype=np.float64) for each in (target, source))
        if T.ndim != 2 or S.ndim != 2 or T.shape[1] != S.shape[1] or not len(T) or not len(S):
            raise ValueError("target and source must be two tables with the same columns.")
        model = make_pipeline(
            PolynomialFeatures(validate.count("degree", degree), include_bias=False),
            StandardScaler(),
            LogisticRegression(C=validate.positive("penalty", penalty), max_iter=2000),
        )
        model.fit(np.vstack([S, T]), np.repeat([0, 1], [len(S), len(T)]))
        return cls(model.decision_function(S) + math.log(len(S) / len(T)))

    @property
    def chi2(self) -> float:
        """E_S[(T/S)^2] - 1."""
        return math.exp(self.renyi(2.0)) - 1

    @property
    def most(self) -> float:
        """D_inf at the points: log of the largest ratio."""
        return float(self.log_ratios.max())

    def renyi(self, order: float) -> float:
        """D_alpha; infinity is D_inf.

        Parameters
        ----------
        order : float
            Above 1.
        """
        if not order > 1:
            raise ValueError(f"order must be above 1; got {order!r}.")
        if math.isinf(order):
            return self.most
        moment = np.logaddexp.reduce(order * self.log_ratios) - math.log(len(self.log_ratios))
        return float(moment) / (order - 1)

    @property
    def share(self) -> float:
        """Kish's share of effective rows, 1/(chi^2 + 1): what reweighing leaves of n."""
        return 1 / (self.chi2 + 1)

    def source_error(self, alpha: float) -> float:
        """Error on S that makes every rule err on at most alpha of T: alpha^2 / (chi^2 + 1).

        What a curator alone must reach (the paper's second baseline), by Cauchy and Schwarz.
        """
        return validate.fraction("alpha", alpha) ** 2 / (self.chi2 + 1)
