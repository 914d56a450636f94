r"""How far the target T is from the source S: chi-squared, Renyi and D_inf.

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
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from dpadapt import _validate as validate

__all__ = ["Divergences"]

Array = NDArray[np.float64]


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

    log_ratios: Array

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
