"""The best private regression that two tables allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dpadapt._types import FloatArray
from dpadapt.privacy import Session

from ._estimator import AutoEstimator, AutoProblem
from .experts import REGRESSION, expert_kinds, fit_expert
from .regression_step import RegressionFacts, adapt_regression
from .releases import StepResult
from .stacking import (
    PublicStack,
    block_folds,
    convex_weights,
    cross_fit,
    group_folds,
    shuffled_folds,
    trial_rows,
)

_TAILS, _ROOM = (0.001, 0.999), 0.05  # scores stay within these quantiles, and a little beyond
_FAR = 1e300  # no bound on a column: only so that it is a number


class AutoRegressor(RegressorMixin, AutoEstimator):
    """Regression for a private domain that chooses its method itself, from two tables.

    Public experts (linear, boosted trees, Fourier ridge, trees on linear residuals) are fitted to
    the public rows and stacked; that costs nothing. From there one private path leads as far as
    the known noise allows: with little budget it moves the level and the weights of the experts,
    with much every column.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    experts : list of str or estimator, optional
        Of "linear", "trees", "fourier", "linear+trees", and models with ``fit`` and ``predict``;
        one that is fitted already is used as it is. By default those four.
    noise : {"secure", "seeded"}, default="secure"
        Not "exact": a purse is proved for continuous noise.
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
        The durable budget to charge before anything is released.
    verbose : int, default=0
        Above 0, a progress bar while private rows are read.

    Attributes
    ----------
    public_model_ : PublicStack
        The start: a stack of the experts, with a ``predict`` of its own.
    adapted_ : Correction or None
        What the private step adds to it.
    explain_ : tuple of str
        What was done, and what each release cost, in sentences.
    no_harm_ : NoHarm or None
        What the private step is expected to change in the error of the public model, with its
        known noise; printed, a sentence.
    outlook_ : ErrorQuantiles
        Errors to be expected: what :meth:`predict_interval` rests on.
    releases_ : tuple of ReleaseRecord
        Name, share of the budget and finding of each release.
    guarantee_ : Guarantee
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    dpadapt.ReweightingRegressor : linear models, with options of their own.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpadapt import Private
    >>> rng = np.random.default_rng(0)
    >>> def people(n, wage):
    ...     towns = rng.choice(["A", "B"], n)
    ...     table = pd.DataFrame({"age": rng.integers(20, 60, n), "town": towns})
    ...     return table, wage + table["age"] / 10 + (table["town"] == "A") + rng.normal(size=n)
    >>> (X, y), (T, t) = people(400, wage=5.0), people(3000, wage=8.0)
    >>> model = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"])
    >>> model = model.fit(X, y, private=Private(T, t))
    >>> bool(abs(model.predict(T).mean() - t.mean()) < 0.3), round(model.guarantee_.epsilon, 6)
    (True, 1.0)
    >>> low, high = model.predict_interval(T, level=0.9).T
    >>> bool(0.8 < np.mean((low < t) & (t < high)) < 0.98)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        experts: Sequence[Any] | None = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.experts = experts
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict labels.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, d)
        """
        rows = self._rows(X)
        scores = self.public_model_.scores(rows)
        start = self.public_model_.stacked(scores)[:, 0]
        if self.adapted_ is None:
            return np.asarray(start)
        return np.asarray(start + self.adapted_(rows, scores[:, :, 0]))

    def predict_interval(self, X: Any, level: float = 0.9) -> NDArray[np.float64]:
        """Predict intervals that should hold a label with a chance of ``level``.

        Their shape is that of the errors of the public model on public rows that it had not seen
        (under folds that rehearse a shift); their size is released from private rows, before the
        descent; the noise of the private step is known, and added. No guarantee is proved: errors
        of another shape, or larger in some places than in others, are not followed.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, d)
        level : float, default=0.9
            From 0.01 to 0.99.

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper ends.
        """
        check_is_fitted(self, "public_model_")
        low, high = self.outlook_.ends(check_level(level))
        middle = self.predict(X)
        return np.column_stack([middle + low, middle + high])

    @property
    def _classifies(self) -> bool:
        return False

    @property
    def _kinds(self) -> Sequence[Any]:
        return REGRESSION if self.experts is None else list(self.experts)

    def _check(self) -> None:
        expert_kinds(self.experts)

    def _facts(self, problem: AutoProblem) -> RegressionFacts:
        kinds, y, m = expert_kinds(self.experts), problem.labels, len(problem.X)
        tried = trial_rows(m)
        X, labels = problem.X[tried], y[tried]
        folds = block_folds(len(tried))
        if problem.groups is not None:
            folds = group_folds(problem.groups, m)[tried]
        constant = np.ptp(problem.X, axis=0) == 0
        low = np.where(constant, problem.X[0], -_FAR)
        high = np.where(constant, problem.X[0], _FAR)
        ends = np.quantile(y, _TAILS)
        room = _ROOM * float(ends[1] - ends[0])
        bounds = (float(ends[0] - room), float(ends[1] + room))
        scores, shuffled = (
            np.clip(cross_fit(kinds, X, labels, 0, each)[:, :, 0], *bounds)
            for each in (folds, shuffled_folds(len(tried)))
        )
        weights = (convex_weights(scores, labels) + convex_weights(shuffled, labels)) / 2
        experts = tuple(fit_expert(kind, problem.X, y) for kind in kinds)
        model = PublicStack(experts, weights, low, high, bounds, problem.reader)
        return RegressionFacts(model, X, labels, scores, shuffled)

    def _step(self, facts: Any, session: Session) -> StepResult:
        return adapt_regression(facts, session)

    def _more(self, problem: AutoProblem, facts: Any, step: StepResult) -> dict[str, Any]:
        noise = 0.0 if step.no_harm is None else step.no_harm.noise
        errors = facts.residuals if step.adapted is None else facts.planning_residuals
        return {"outlook_": ErrorQuantiles.of(errors, step.scale, noise)}


# intervals

_LEVELS = np.linspace(0.0, 1.0, 401)
_LEAST_LEVEL, _MOST_LEVEL = 0.01, 0.99


@dataclass(frozen=True, eq=False)
class ErrorQuantiles:
    """Errors to be expected of private rows.

    Parameters
    ----------
    quantiles : ndarray
        Of the errors of the public model on public rows that it had not seen, around their mean.
    times : float
        Size of private errors in public ones, as it was released; 1 without private rows.
    noise : float
        Mean square of the noise in the answers.

    Examples
    --------
    >>> outlook = ErrorQuantiles.of(np.array([-1.0, 0.0, 1.0]))
    >>> np.round(outlook.ends(0.9), 6)
    array([-0.9,  0.9])
    """

    quantiles: FloatArray
    times: float = 1.0
    noise: float = 0.0

    @classmethod
    def of(cls, residuals: FloatArray, times: float = 1.0, noise: float = 0.0) -> ErrorQuantiles:
        """Outlook from public residuals."""
        return cls(np.quantile(residuals - residuals.mean(), _LEVELS), times, noise)

    def ends(self, level: float) -> tuple[float, float]:
        """Ends of an interval around 0 that holds a share ``level`` of errors.

        The noise is known and independent of the errors: it adds its variance to theirs, which
        widens the interval by the square root of one plus its share.
        """
        usual = float(np.mean(self.quantiles**2)) * self.times**2
        wider = math.sqrt(1 + self.noise / max(usual, 1e-300)) if self.noise else 1.0
        low, high = np.interp([(1 - level) / 2, (1 + level) / 2], _LEVELS, self.quantiles)
        return float(low) * self.times * wider, float(high) * self.times * wider


def check_level(level: Any) -> float:
    """A level of an interval.

    Examples
    --------
    >>> check_level(1.5)
    Traceback (most recent call last):
    ...
    ValueError: level must be a number from 0.01 to 0.99, as in 0.9; got 1.5.
    """
    fine = isinstance(level, (int, float, np.floating)) and not isinstance(level, bool)
    if not fine or not _LEAST_LEVEL <= level <= _MOST_LEVEL:
        raise ValueError(
            f"level must be a number from {_LEAST_LEVEL:g} to {_MOST_LEVEL:g}, as in 0.9; "
            f"got {level!r}."
        )
    return float(level)
