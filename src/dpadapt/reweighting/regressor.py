"""The scikit-learn face of private supervised adaptation: regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from dpadapt._checks import aligned_private, session_options, warn_of_printed
from dpadapt._linear import LinearRegressor
from dpadapt._progress import row_progress
from dpadapt.privacy import Guarantee, Private, Request

from ._paper_solvers import (
    DEFAULT_ALPHA,
    SELECTIONS,
    Certification,
    PaperSample,
    select,
    solve,
)
from ._units import (
    Array,
    check_options,
    check_range,
    descent_cleaning,
    descent_units,
    paper_sample,
    paper_units,
    refuse_paper_options,
    wide_labels,
)
from .certificate import Certificate
from .choice import Candidate
from .known_noise import KnownNoise
from .known_noise_plan import Plan

__all__ = ["ReweightingRegressor"]


@dataclass(frozen=True)
class _Found:
    """Coefficients for plain rows, and what came with them."""

    slopes: Array
    constant: float
    guarantee: Guarantee = field(default_factory=Guarantee)
    certificate: Certificate | None = None
    share: float = 0.0
    plan: Plan | None = None
    chosen: Candidate | None = None


class ReweightingRegressor(LinearRegressor):
    r"""Linear regression for a private domain from public labels and private labelled rows.

    By default the model trained on public data descends on the private loss, as far as the known
    noise allows (``solver="known-noise"``). The other solvers are those of Bassily, Cortes, Mao
    and Mohri (2023), as printed and improved: public and private rows get weights, learned together
    with the model.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    solver : {"known-noise", "gradient", "profiled", "statistics"}, default="known-noise"
        "gradient" is the paper's Algorithm 1 (PCnvxAdap); "profiled" minimises its weights in
        closed form, from the public model; "statistics" releases one noisy moment matrix, after
        which everything is free.
    calibration : {"tight", "paper"}, default="tight"
        For "gradient": noise calibrated to what was asked, from the public model; or the printed
        constants, from zero. The guarantee tells what they truly give.
    alpha : float or sequence of float, optional
        For all but "known-noise": reference weight of the public sample, from 0 to 1. By default
        0.5, 0 and 0.3 for "gradient", "profiled" and "statistics". A sequence is a public grid to
        choose from, see ``selection``.
    kappa : float or sequence of float, optional
        Price of weights that differ from the reference: the paper's first kappa for "gradient"
        (default 0.05); for "profiled" and "statistics" in units of the public model's mean square
        error (default 1).
    selection : {"holdout", "certificate", "random-stopping"}, optional
        How alpha and kappa are chosen from their grids, within the budget: on a hold-out of 30% of
        the private rows by the exponential mechanism, or by the learning bound of what was
        released (both for "statistics"), or as the best of a secret number of runs ("profiled").
    steps : int, optional
        Of "gradient" (default 100) and "profiled" (default 40).
    norm_bound : float, optional
        The paper's Lambda, in standardised features and labels of [-1, 1]; by default twice the
        norm of the public model.
    shrink : bool, default=True
        For "known-noise": shrink to the public model what moved no farther than noise would have
        moved it. False learns more where a shift is known to exist, and does harm where none is.
    certificate : bool, default=False
        Also bound the error in the private population (``certificate_``), for a tenth of the
        budget.
    radius : float, optional
        For all but "known-noise": bound on a private row in standardised features, longer ones
        are shrunk. By default the 99% quantile of the public norms.
    label_range : (float, float), optional
        Public range of the labels; private labels beyond it are clamped. By default that of the
        public labels; "known-noise" needs none.
    noise : {"secure", "seeded", "exact"}, default="secure"
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
    guarantee_ : Guarantee
    certificate_ : Certificate or None
        The learning bound with every term named, in labels of [-1, 1], if it was asked for and the
        coefficients are within ``norm_bound``.
    share_ : float
        How much of the descent was kept: 0 is the public model.
    plan_ : Plan or None
        Horizon, clip and the like of "known-noise"; public.
    chosen_ : Candidate or None
        The alpha and kappa that were selected.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    dpadapt.AdaptationPipeline : for categorical columns, polynomial terms and the like.
    dpadapt.DiscrepancyRegressor : when the private rows have no labels.

    Notes
    -----
    With no private sample (or one of no rows) the model is a ridge regression on the public rows
    and the guarantee is epsilon = 0.

    Resampling people with replacement to make a private sample larger, as in the paper's figures,
    voids the guarantee: a person who appears k times loses k times as much.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.normal(size=(2000, 2)), rng.normal(size=(5000, 2))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=2000)
    >>> private = Private(T, T[:, 0] + 0.5 * T[:, 1] + 1 + 0.1 * rng.normal(size=5000))
    >>> model = ReweightingRegressor(epsilon=1.0, delta=1e-6).fit(X, y, private=private)
    >>> bool(abs(model.predict([[0.0, 1.0]])[0] - 1.5) < 0.2), model.guarantee_.epsilon <= 1.0
    (True, True)
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        solver: str = "known-noise",
        calibration: str = "tight",
        alpha: float | Sequence[float] | None = None,
        kappa: float | Sequence[float] | None = None,
        selection: str | None = None,
        steps: int | None = None,
        norm_bound: float | None = None,
        shrink: bool = True,
        certificate: bool = False,
        radius: float | None = None,
        label_range: tuple[float, float] | None = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.calibration = calibration
        self.alpha = alpha
        self.kappa = kappa
        self.selection = selection
        self.steps = steps
        self.norm_bound = norm_bound
        self.shrink = shrink
        self.certificate = certificate
        self.radius = radius
        self.label_range = label_range
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, *, private: Private | None = None) -> Self:
        """Fit to public labelled rows and private labelled ones.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Public rows.
        y : array-like of shape (m,)
            Public labels.
        private : Private, optional
            Private rows with the same columns, and their labels.

        Returns
        -------
        ReweightingRegressor
            Itself, fitted.
        """
        self._check()
        options = session_options(self)
        public, labels = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        labels = np.asarray(labels, dtype=np.float64)
        given = check_range(self.label_range, labels)
        sample = aligned_private(self, private, labelled=True)
        if sample is not None:
            refuse_paper_options(self)
        if sample is None:
            found = self._public_only(public, labels)
        else:
            with row_progress("reading private rows", self.verbose) as progress:
                options |= {"label": type(self).__name__, "progress": progress}
                adapt = self._by_descent if self.solver == "known-noise" else self._by_paper
                found = adapt(public, labels, given, sample, options)

        # only now: a fit that was refused must not put its guarantee beside an earlier model
        self.coef_, self.intercept_ = found.slopes, found.constant
        self.guarantee_ = found.guarantee
        self.certificate_ = found.certificate
        self.share_ = found.share
        self.plan_ = found.plan
        self.chosen_ = found.chosen
        return self

    def _check(self) -> None:
        """Check what no other function checks, before anything is spent."""
        check_options(self, ("known-noise", "gradient", "profiled", "statistics"), algorithm=1)
        for name in ("alpha", "kappa"):
            if self.selection is None and np.ndim(getattr(self, name) or 0) > 0:
                raise ValueError(f"{name} is a grid; say with selection= how to choose from it.")
        if self.selection is not None:
            allowed = SELECTIONS.get(self.solver, ())
            if self.selection not in allowed:
                listed = " or ".join(map(repr, allowed)) or "None"
                raise ValueError(
                    f"selection must be {listed} for solver={self.solver!r}; "
                    f"got {self.selection!r}."
                )
        if self.certificate and (self.selection is not None or self.calibration == "paper"):
            raise ValueError(
                "certificate=True needs calibration='tight' and no selection: the bound holds for "
                "an alpha that is fixed beforehand."
            )

    def _public_only(self, public: Array, labels: Array) -> _Found:
        units = descent_units(public, wide_labels(labels))
        solver = KnownNoise(units.rows(public), units.labels(labels))
        slopes, constants = units.linear(solver.model)
        return _Found(slopes[:, 0], float(constants[0]))

    def _sample(
        self, public: Array, labels: Array, given: tuple[float, float] | None
    ) -> PaperSample:
        reach = given or (float(labels.min()), float(labels.max()))
        units = paper_units(public, reach)
        rows, cleaning = paper_sample(
            units, public, self.radius, label_range=reach, unit_labels=True
        )
        return PaperSample(units, rows, units.labels(labels), cleaning)

    def _by_descent(
        self,
        public: Array,
        labels: Array,
        given: tuple[float, float] | None,
        private: Private,
        options: dict[str, Any],
    ) -> _Found:
        """Solver "known-noise"."""
        reach = given or wide_labels(labels)
        units = descent_units(public, reach)
        cleaning = descent_cleaning(units, public, label_range=reach, unit_labels=True)
        solver = KnownNoise(units.rows(public), units.labels(labels), shrink=self.shrink)
        with private.open(**options) as session:
            run = solver.begin(session, cleaning)
            certification = None
            extra: tuple[Request, ...] = ()
            if self.certificate:
                sample = self._sample(public, labels, given)
                certification = Certification.of(
                    session,
                    sample,
                    run.requests,
                    alpha=DEFAULT_ALPHA[self.solver],
                    norm_bound=sample.norm_bound(self.norm_bound),
                )
                extra = certification.requests
            grants = session.plan(*run.requests, *extra)
            found = run.release(session, grants)
            slopes, constants = units.linear(found.coefficients)
            certificate = None
            if certification is not None:
                w = sample.units.inverse(slopes, constants)[:, 0]
                certificate = certification.release(session, grants[len(run.requests) :], w)
        return _Found(
            slopes[:, 0],
            float(constants[0]),
            session.guarantee,
            certificate,
            found.share,
            found.plan,
        )

    def _by_paper(
        self,
        public: Array,
        labels: Array,
        given: tuple[float, float] | None,
        private: Private,
        options: dict[str, Any],
    ) -> _Found:
        """Solvers that work with the paper's bounds on rows, labels and coefficients."""
        sample = self._sample(public, labels, given)
        certificate, chosen = None, None
        with private.open(**options) as session:
            if self.selection is not None:
                w, chosen = select(self, session, sample, options["random_state"])
            else:
                w, certificate = solve(self, session, sample)
        slopes, constants = sample.units.linear(w[:, None])
        warn_of_printed(session.guarantee, options["epsilon"])
        return _Found(
            slopes[:, 0], float(constants[0]), session.guarantee, certificate, 1.0, chosen=chosen
        )
