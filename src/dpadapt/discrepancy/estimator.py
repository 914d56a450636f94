"""The scikit-learn face of private discrepancy minimisation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadapt._checks import (
    GuaranteeWarning,
    aligned_private,
    public_scaling,
    session_options,
    warn_of_printed,
)
from dpadapt._progress import row_progress
from dpadapt.privacy import Cleaning, Guarantee, Private
from dpadapt.privacy import _validate as validate

from .certificate import Certificate, NoisyDiscrepancy, certify
from .minimisation import discrepancy, minimise_discrepancy
from .moments import NoisyMoment, release_second_moment
from .second_stage import shrunken_fit, weighted_ridge
from .solvers import Choice, weigh
from .variable_projection import variable_projection

__all__ = ["AdaptationWarning", "DiscrepancyRegressor", "GuaranteeWarning"]

_INTERCEPT = 1.0  # constant column beside standardised features
_PASSES = 500  # over the public rows, at most


Array = NDArray[np.float64]


class AdaptationWarning(UserWarning):
    """The public rows cannot be weighted to look like the private ones."""


@dataclass(frozen=True)
class _Adaptation:
    """Weights of the public rows, and what they cost."""

    weights: Array
    discrepancy: float | None = 0.0
    uniform_discrepancy: float | None = 0.0
    adapted: bool = False
    guarantee: Guarantee = field(default_factory=Guarantee)
    slopes: Array | None = None  # where the solver has coefficients of its own
    released: NoisyMoment | NoisyDiscrepancy | None = None  # what a certificate rests on


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
    solver : {"moments", "frank-wolfe", "mirror-descent", "single-stage"}, default="moments"
        "moments" releases the noisy second moment once; the others are the paper's Algorithms 2,
        3 and 1, which release K noisy steps. They are for comparison: "moments" wins by far.
    objective : {"two-stage", "single-stage"}, default="two-stage"
        For "moments": weights first and then the fit, or both at once (variable projection).
    calibration : {"tight", "paper"}, default="tight"
        For the paper's solvers: noise calibrated to what was asked, or the printed constants. The
        guarantee tells what they truly give, with a warning where that is more than was asked.
    smoothing : {"softmax", "p-norm"}, default="softmax"
        For the paper's solvers: the smooth stand-in for the spectral norm.
    mu, steps, step_size : optional
        Sharpness of the softmax, number of steps K and step size of the paper's solvers; chosen
        from public facts where not given.
    penalty : float, default=0
        Of Frank-Wolfe and mirror descent: the paper's lambda, against sparse weights.
    norm_bound : float, optional
        The paper's Lambda, bound on the coefficients (scaled features, intercept included) for
        the single stage. By default twice the norm of the public-only coefficients.
    geometry : {"entropy", "p-norm"}, default="entropy"
        Step of mirror descent.
    noise_on : {"matrix", "gradient"}, default="matrix"
        Where mirror descent puts its noise: on the d x d matrix, or on m coordinates as printed.
    iterate : {"last", "uniform", "select"}, default="last"
        Which iterate the single stage returns; "select" pays for a private choice.
    certificate : bool, default=False
        Also bound the error in the private population (``certificate_``). Free for "moments"; the
        paper's solvers spend a tenth of the budget on it.
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
    discrepancy_ : float or None
        Spectral norm of the difference between the *noisy* private moment and the public one
        under ``weights_``, in scaled features. 0 if there was no private sample; None for the
        paper's solvers, which release nothing to measure it on.
    uniform_discrepancy_ : float or None
        The same under uniform weights.
    adapted_ : bool
        Whether the private sample changed the weights.
    share_ : float
        How far the coefficients moved from the public-only fit (0) to the weighted one (1): as far
        as the move is larger than its sampling error (James and Stein).
    guarantee_ : Guarantee
    certificate_ : Certificate or None
        The learning bound with every term named, if it was asked for and the coefficients are
        within ``norm_bound``. Private labels are assumed to lie in the range of public ones.
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
        objective: str = "two-stage",
        calibration: str = "tight",
        smoothing: str = "softmax",
        mu: float | None = None,
        steps: int | None = None,
        step_size: float | None = None,
        penalty: float = 0.0,
        norm_bound: float | None = None,
        geometry: str = "entropy",
        noise_on: str = "matrix",
        iterate: str = "last",
        certificate: bool = False,
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
        self.objective = objective
        self.calibration = calibration
        self.smoothing = smoothing
        self.mu = mu
        self.steps = steps
        self.step_size = step_size
        self.penalty = penalty
        self.norm_bound = norm_bound
        self.geometry = geometry
        self.noise_on = noise_on
        self.iterate = iterate
        self.certificate = certificate
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
        self._check()
        options = session_options(self)
        public, labels = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        sample = aligned_private(self, private, labelled=False)

        center, scale = public_scaling(public)
        rows = np.column_stack([(public - center) / scale, np.full(len(public), _INTERCEPT)])
        if sample is None:
            found = _Adaptation(np.full(len(rows), 1 / len(rows)))
        else:
            cleaning = Cleaning(self._radius(rows), center, scale, _INTERCEPT)
            adapt = self._by_moments if self.solver == "moments" else self._by_paper
            with row_progress("reading private rows", self.verbose) as progress:
                options |= {"label": type(self).__name__, "progress": progress}
                found = adapt(rows, labels, sample, cleaning, options)
        slopes, share = self._fit_weighted(rows, labels, found)
        certificate = None
        if sample is not None and self.certificate:
            certificate = self._certify(rows, labels, found, slopes, cleaning, sample.n_rows)

        # only now: a fit that was refused must not put its guarantee beside an earlier model
        self.weights_ = found.weights
        self.discrepancy_ = found.discrepancy
        self.uniform_discrepancy_ = found.uniform_discrepancy
        self.adapted_ = found.adapted
        self.guarantee_ = found.guarantee
        self.certificate_ = certificate
        self.share_ = share
        self.coef_ = slopes[:-1] / scale
        self.intercept_ = float(_INTERCEPT * slopes[-1] - center @ self.coef_)
        return self

    def _radius(self, rows: Array) -> float:
        if self.radius is not None:
            return validate.positive("radius", self.radius)
        largest = float(np.linalg.norm(rows[:, :-1], axis=1).max())
        if not largest > 0:
            raise ValueError(
                "radius: every column of the public X is constant, so that no bound on private "
                "rows follows from it; pass radius."
            )
        return largest

    def _check(self) -> None:
        """Check what no other function checks, before anything is spent."""
        choices = {
            "solver": ("moments", "frank-wolfe", "mirror-descent", "single-stage"),
            "objective": ("two-stage", "single-stage"),
            "calibration": ("tight", "paper"),
            "smoothing": ("softmax", "p-norm"),
            "geometry": ("entropy", "p-norm"),
            "noise_on": ("matrix", "gradient"),
            "iterate": ("last", "uniform", "select"),
        }
        for name, allowed in choices.items():
            validate.choice(name, getattr(self, name), allowed)
        for name in ("ridge", "max_remaining", "penalty"):
            validate.non_negative(name, getattr(self, name))
        if self.norm_bound is not None:
            validate.positive("norm_bound", self.norm_bound)
        if self.calibration == "paper" and self.solver == "moments":
            raise ValueError(
                "calibration='paper' is for the paper's solvers; solver='moments' has no printed "
                "constants."
            )

    def _norm_bound(self, rows: Array, labels: Array) -> float:
        """The paper's Lambda: given, or twice the norm of the public-only coefficients."""
        if self.norm_bound is not None:
            return float(self.norm_bound)
        uniform = np.full(len(rows), 1 / len(rows))
        public = weighted_ridge(rows, labels - labels.mean(), uniform, ridge=self.ridge)
        return max(2 * float(np.linalg.norm(public)), 1e-6)

    def _by_moments(
        self,
        rows: Array,
        labels: Array,
        private: Private,
        cleaning: Cleaning,
        options: dict[str, Any],
    ) -> _Adaptation:
        """Weigh the public rows by one noisy second moment, if that can be done."""
        noisy = release_second_moment(private, cleaning, **options)
        weights = np.full(len(rows), 1 / len(rows))
        uniform = discrepancy(rows, weights, noisy.matrix)
        enough = max(noisy.noise_floor, self.max_remaining * uniform)
        solution = minimise_discrepancy(
            rows, noisy.matrix, tolerance=noisy.noise_floor, give_up=enough, max_iter=_PASSES
        )
        if solution.discrepancy > enough:
            warnings.warn(
                f"no weights of the public rows come near the private ones: at least "
                f"{solution.lower_bound / uniform:.0%} of the discrepancy would remain. The model "
                "stays the one trained on public data alone; max_remaining=1 adapts all the same.",
                AdaptationWarning,
                stacklevel=3,
            )
            return _Adaptation(weights, uniform, uniform, False, noisy.guarantee, released=noisy)
        if self.objective == "two-stage":
            return _Adaptation(
                solution.weights,
                solution.discrepancy,
                uniform,
                True,
                noisy.guarantee,
                released=noisy,
            )
        both, slopes = variable_projection(
            rows,
            labels - labels.mean(),
            noisy.matrix,
            radius=self._norm_bound(rows, labels),
            ridge=self.ridge,
        )
        remaining = discrepancy(rows, both, noisy.matrix)
        return _Adaptation(both, remaining, uniform, True, noisy.guarantee, slopes, noisy)

    def _by_paper(
        self,
        rows: Array,
        labels: Array,
        private: Private,
        cleaning: Cleaning,
        options: dict[str, Any],
    ) -> _Adaptation:
        """Weigh the public rows by one of the paper's algorithms."""
        choice = Choice(
            solver=self.solver,
            calibration=self.calibration,
            smoothing=self.smoothing,
            mu=self.mu,
            steps=self.steps,
            step_size=self.step_size,
            penalty=self.penalty,
            norm_bound=self._norm_bound(rows, labels),
            geometry=self.geometry,
            noise_on=self.noise_on,
            iterate=self.iterate,
            certificate=self.certificate,
        )
        found = weigh(choice, rows, labels - labels.mean(), private, cleaning, options)
        warn_of_printed(found.guarantee, options["epsilon"])
        # as printed the single stage has coefficients of its own; a refit on its weights is better
        slopes = found.coefficients if self.calibration == "paper" else None
        return _Adaptation(
            found.weights, None, None, True, found.guarantee, slopes, found.discrepancy
        )

    def _fit_weighted(self, rows: Array, labels: Array, found: _Adaptation) -> tuple[Array, float]:
        """Second stage: coefficients of the scaled features, and how far they moved."""
        if found.slopes is not None:
            return found.slopes + _constant(labels.mean(), rows), 1.0
        if self.solver == "moments":
            return shrunken_fit(rows, labels, found.weights, ridge=self.ridge)
        offset = float(found.weights @ labels)
        slopes = weighted_ridge(rows, labels - offset, found.weights, ridge=self.ridge)
        return slopes + _constant(offset, rows), 1.0

    def _certify(
        self,
        rows: Array,
        labels: Array,
        found: _Adaptation,
        slopes: Array,
        cleaning: Cleaning,
        n_rows: int,
    ) -> Certificate | None:
        """Bound on the error in the private population; None beyond the norm bound."""
        centered = labels - labels.mean()
        slopes = slopes - _constant(labels.mean(), rows)
        bound = self._norm_bound(rows, labels)
        if found.released is None or np.linalg.norm(slopes) > bound:
            return None
        return certify(
            rows,
            centered,
            found.weights,
            slopes,
            found.released,
            radius=bound,
            private_radius=float(np.hypot(cleaning.radius, cleaning.intercept)),
            n_rows=n_rows,
            label_bound=max(float(np.abs(centered).max()), 1e-12),
        )

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


def _constant(value: float, rows: Array) -> Array:
    """Coefficients of the function that is ``value`` everywhere."""
    slopes = np.zeros(rows.shape[1])
    slopes[-1] = value / _INTERCEPT
    return slopes
