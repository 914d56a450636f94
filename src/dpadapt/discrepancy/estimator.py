"""The scikit-learn face of private discrepancy minimisation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadapt._checks import aligned_private, public_scaling, session_options
from dpadapt._progress import row_progress
from dpadapt.privacy import Cleaning, Guarantee, Private
from dpadapt.privacy import _validate as validate

from .minimisation import discrepancy, minimise_discrepancy
from .moments import release_second_moment
from .second_stage import shrunken_fit

__all__ = ["AdaptationWarning", "DiscrepancyRegressor"]

_INTERCEPT = 1.0  # constant column beside standardised features
_PASSES = 500  # over the public rows, at most


class AdaptationWarning(UserWarning):
    """The public rows cannot be weighted to look like the private ones."""


@dataclass(frozen=True)
class _Adaptation:
    """Weights of the public rows, and what they cost."""

    weights: NDArray[np.float64]
    discrepancy: float = 0.0
    uniform_discrepancy: float = 0.0
    adapted: bool = False
    guarantee: Guarantee = field(default_factory=Guarantee)


class DiscrepancyRegressor(RegressorMixin, BaseEstimator):
    r"""Linear regression for a private domain from public labels and private, unlabelled rows.

    The public rows are weighted so that their second moments match those of the private rows, then
    a ridge regression is fitted to the weighted public rows (Bassily, Mohri, Suresh 2023) and
    shrunken towards the public-only one where it rests on few rows. Of the private rows, one noisy
    second-moment matrix is released; all else is free.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    solver : {"moments"}, default="moments"
        "moments" releases the noisy second moment once (Gaussian mechanism, exact calibration).
    radius : float, optional
        Bound on the norm of a private row after scaling by public mean and standard deviation;
        longer rows are shrunk to it. By default the largest norm of a public row.
    ridge : float, default=1e-4
        Penalty of the second stage, in units of the scaled features; labels are centered first.
    max_remaining : float, default=0.25
        Adapt only if weights can bring the discrepancy down to this part of what it is with
        uniform weights, or below the noise. Otherwise the private rows lie outside what public
        rows can be weighted to, no weights come with a promise, and the model stays the one
        trained on public data alone (``adapted_`` is False, with a warning). 1 always adapts.
    noise : {"secure", "seeded", "exact"}, default="secure"
        Where noise comes from. "seeded" is for tests, "exact" needs the extra ``dpadapt[exact]``.
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
        The durable budget to charge before anything is released.
    verbose : int, default=0
        Above 0, a progress bar while private rows are read.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
    intercept_ : float
    weights_ : ndarray of shape (m,)
        Weights of the public rows, summing to 1. Among weights of nearly minimal discrepancy the
        ones nearest to uniform.
    discrepancy_ : float
        Spectral norm of the difference between the *noisy* private moment and the public one
        under ``weights_``, in scaled features. 0 if there was no private sample.
    uniform_discrepancy_ : float
        The same under uniform weights.
    adapted_ : bool
        Whether the private sample changed the weights.
    share_ : float
        How far the coefficients moved from the public-only fit (0) to the weighted one (1): as far
        as the move is larger than its sampling error (James and Stein).
    guarantee_ : Guarantee
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    dpadapt.AdaptationPipeline : for categorical columns, polynomial terms and the like.

    Notes
    -----
    With no private sample (or one of no rows) the public rows keep uniform weights and the
    guarantee is epsilon = 0. Where the noise is larger than the difference between the samples,
    uniform weights are as good as any, and the model is the one trained on public data alone.

    The method assumes that labels depend on rows in the same way in both domains: private labels
    are never seen, so that a change of that dependence cannot be noticed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = X[:, 0] + X[:, 0] ** 2 + 0.1 * rng.normal(size=2000)
    >>> private = Private(rng.normal([1.0, 0.0], 0.7, size=(5000, 2)))
    >>> model = DiscrepancyRegressor(epsilon=1.0, delta=1e-6).fit(X, y, private=private)
    >>> model.adapted_
    True
    >>> model.guarantee_.epsilon <= 1.0
    True
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        solver: str = "moments",
        radius: float | None = None,
        ridge: float = 1e-4,
        max_remaining: float = 0.25,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.radius = radius
        self.ridge = ridge
        self.max_remaining = max_remaining
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, *, private: Private | None = None) -> Self:
        """Fit to public labelled rows and private unlabelled ones.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Public rows.
        y : array-like of shape (m,)
            Public labels.
        private : Private, optional
            Private rows with the same columns; labels, if there are any, are not read.

        Returns
        -------
        DiscrepancyRegressor
            Itself, fitted.
        """
        validate.choice("solver", self.solver, ("moments",))
        options = session_options(self)
        ridge = validate.non_negative("ridge", self.ridge)
        validate.non_negative("max_remaining", self.max_remaining)
        public, labels = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        sample = aligned_private(self, private, labelled=False)

        center, scale = public_scaling(public)
        rows = np.column_stack([(public - center) / scale, np.full(len(public), _INTERCEPT)])
        if sample is None:
            found = _Adaptation(np.full(len(rows), 1 / len(rows)))
        else:
            cleaning = Cleaning(self._radius(rows), center, scale, _INTERCEPT)
            found = self._adapt(rows, sample, cleaning, options)
        slopes, share = shrunken_fit(rows, labels, found.weights, ridge=ridge)

        # only now: a fit that was refused must not put its guarantee beside an earlier model
        self.weights_ = found.weights
        self.discrepancy_ = found.discrepancy
        self.uniform_discrepancy_ = found.uniform_discrepancy
        self.adapted_ = found.adapted
        self.guarantee_ = found.guarantee
        self.share_ = share
        self.coef_ = slopes[:-1] / scale
        self.intercept_ = float(_INTERCEPT * slopes[-1] - center @ self.coef_)
        return self

    def _radius(self, rows: NDArray[np.float64]) -> float:
        if self.radius is not None:
            return validate.positive("radius", self.radius)
        largest = float(np.linalg.norm(rows[:, :-1], axis=1).max())
        if not largest > 0:
            raise ValueError(
                "radius: every column of the public X is constant, so that no bound on private "
                "rows follows from it; pass radius."
            )
        return largest

    def _adapt(
        self,
        rows: NDArray[np.float64],
        private: Private,
        cleaning: Cleaning,
        options: dict[str, Any],
    ) -> _Adaptation:
        """Weigh the public rows by the private second moment, if that can be done."""
        weights = np.full(len(rows), 1 / len(rows))
        with row_progress("reading private rows", self.verbose) as progress:
            noisy = release_second_moment(
                private, cleaning, label=type(self).__name__, progress=progress, **options
            )
        uniform = discrepancy(rows, weights, noisy.matrix)
        enough = max(noisy.noise_floor, self.max_remaining * uniform)
        solution = minimise_discrepancy(
            rows, noisy.matrix, tolerance=noisy.noise_floor, give_up=enough, max_iter=_PASSES
        )
        if solution.discrepancy <= enough:
            return _Adaptation(
                solution.weights, solution.discrepancy, uniform, True, noisy.guarantee
            )
        warnings.warn(
            f"no weights of the public rows come near the private ones: at least "
            f"{solution.lower_bound / uniform:.0%} of the discrepancy would remain. The model "
            "stays the one trained on public data alone; max_remaining=1 adapts all the same.",
            AdaptationWarning,
            stacklevel=3,
        )
        return _Adaptation(weights, uniform, uniform, False, noisy.guarantee)

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict labels.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self, "coef_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(rows @ self.coef_ + self.intercept_)
