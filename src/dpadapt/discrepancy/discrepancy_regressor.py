"""The scikit-learn face of private discrepancy minimisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.base import PrivateEstimator
from dpadapt.learning.constraints import (
    Instance,
    Named,
    NonNegative,
    Null,
    ParameterTable,
    Positive,
)
from dpadapt.learning.linear import LinearRegressor
from dpadapt.learning.story import RADII, Story, certificate_facts, percent
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Cleaning, Guarantee, Private, Session

from .moments import Moments
from .second_stage import within_ball
from .source import INTERCEPT, Adaptation, Source

_PAPER = "dpadapt.papers.discrepancy"
_SOLVERS: Mapping[str, type | str] = {
    "moments": Moments,
    "frank-wolfe": f"{_PAPER}.solvers.FrankWolfe",
    "mirror-descent": f"{_PAPER}.solvers.MirrorDescent",
    "single-stage": f"{_PAPER}.solvers.SingleStage",
}
_STATE = (
    "A bound on the error rests on private labels, which this method never sees, so that you must "
    "state what they are like: certificate=PrivateLabels(label_range=(low, high), "
    "label_difference=...) of dpadapt.discrepancy, with the range that all of them lie in, and how "
    "far public and private labels may be from one linear function (0: it gives every label)."
)


class DiscrepancyRegressor(PrivateEstimator, LinearRegressor):
    r"""Linear regression for a private domain from public labels and private, unlabelled rows.

    The public rows are weighted so that their second moments match those of the private rows, then
    a ridge regression is fitted to the weighted public rows (Bassily, Mohri, Suresh 2023) and
    shrunken towards the public-only one where it rests on few rows. Of the private rows, one noisy
    second-moment matrix is released; all else is free.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    solver : {"moments", "frank-wolfe", "mirror-descent", "single-stage"} or object, \
            default="moments"
        "moments" releases the noisy second moment once; the others are the paper's Algorithms 2,
        3 and 1, which release K noisy steps. They are for comparison: "moments" wins by far. An
        object of :class:`Moments`, ``FrankWolfe``, ``MirrorDescent`` or
        ``SingleStage`` has options of its own, as in ``solver=FrankWolfe(steps=50)``.
    norm_bound : float, optional
        The paper's Lambda, bound on the coefficients (scaled features, intercept included), for a
        certificate and where weights and fit are found at once; refused elsewhere. By default twice
        the norm of the public-only coefficients.
    certificate : PrivateLabels, optional
        Also bound the error in the private population (``certificate_``), from what you state here
        about private labels, which the method never sees: their range, and how far public and
        private labels may be from one linear function. A statement that public rows refute is
        refused before anything is charged. Coefficients are kept within ``norm_bound``. Free for
        "moments"; the paper's solvers spend a tenth of the budget on it.
    radius : float, optional
        Bound on the norm of a row after scaling by public mean and standard deviation; where
        public and private rows are compared, longer ones are shrunk to it. By default a norm that
        99 % of the public rows do not exceed.
    ridge : float, optional
        Penalty of the fit, on the mean squared error. By default the one that leave-one-out chooses
        for the public rows: the public-only model is then that of every other estimator here.
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
        Whether the private sample changed the model. False if the samples look alike within the
        noise, if no weights bring public rows near the private ones (``max_remaining`` of
        :class:`Moments`), or if the weighted fit is no more than its own sampling error away.
    share_ : float
        How far the coefficients moved from the public-only fit (0) to the weighted one (1): as far
        as the move is larger than its sampling error (James and Stein).
    guarantee_ : Guarantee
    certificate_ : Certificate or None
        The learning bound with every term named, if it was asked for and there was a private
        sample. It says what it rests on: what you stated of private labels, and that private rows
        are no longer than the radius.
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

    _reads_labels = False
    _constraints: ClassVar[ParameterTable] = {
        "solver": [Named(_SOLVERS)],
        "norm_bound": [Positive(), Null()],
        "certificate": [Instance(f"{_PAPER}.certificate.PrivateLabels", advice=_STATE), Null()],
        "radius": [Positive(), Null()],
        "ridge": [NonNegative(), Null()],
    }

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        solver: str | Strategy = "moments",
        norm_bound: float | None = None,
        certificate: Any = None,
        radius: float | None = None,
        ridge: float | None = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.norm_bound = norm_bound
        self.certificate = certificate
        self.radius = radius
        self.ridge = ridge
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _check(self) -> None:
        solver = self._strategy("solver")
        if self.norm_bound is not None and self.certificate is None and not solver.at_once:
            raise ValueError(
                "norm_bound: this solver finds weights first, and fits without a bound; leave it "
                "None, or ask for a certificate."
            )
        if self.certificate is not None and getattr(solver, "calibration", "tight") == "paper":
            raise ValueError(
                "certificate needs a release of its own, for which the printed constants leave no "
                "budget; take calibration='tight'."
            )

    def _read(self, X: Any, y: Any, private: Any) -> Source:
        read = super()._read(X, y, private)
        return Source(
            read.X,
            read.labels,
            given_ridge=self.ridge,
            given_bound=self.norm_bound,
            given_radius=self.radius,
        )

    def _solve(self, source: Source, session: Session | None) -> dict[str, Any]:
        return self._fitted(source, Adaptation(source.uniform))[0]

    def _adapt(
        self, source: Source, sample: Private, options: dict[str, Any]
    ) -> tuple[dict[str, Any], Guarantee]:
        if self.certificate is not None:
            self.certificate.check(source)
        cleaning = Cleaning(source.radius, *source.scaling, INTERCEPT)
        solver = self._strategy("solver")
        with self._watched(options) as watched:
            found = solver.adapt(
                source, sample, cleaning, watched, certificate=self.certificate is not None
            )
        attributes, slopes = self._fitted(source, found)
        if self.certificate is not None:
            facts = (source, found, slopes, cleaning, sample.n_people)
            attributes["certificate_"] = self.certificate.certify(*facts)
        return attributes, found.guarantee

    def _fitted(self, source: Source, found: Adaptation) -> tuple[dict[str, Any], FloatArray]:
        """Second stage: fitted attributes, and coefficients of the scaled features."""
        solver = self._strategy("solver")
        level = source.constant(source.labels.mean())
        slopes, share = solver.fit(source, found.weights)
        if found.slopes is not None:
            slopes, share = found.slopes + level, 1.0
        if self.certificate is not None and share > 0:
            public = solver.fit(source, source.uniform)[0] - level
            kept = within_ball(public, slopes - level, source.norm_bound)
            slopes, share = public + kept * (slopes - level - public) + level, kept * share
        return {
            **source.linear(slopes),
            "weights_": found.weights,
            "discrepancy_": found.discrepancy,
            "uniform_discrepancy_": found.uniform_discrepancy,
            "adapted_": bool(share > 0 and np.ptp(found.weights) > 0),
            "share_": share,
            "certificate_": None,
        }, slopes

    def _story(self) -> Story:
        weights = np.asarray(self.weights_)
        rows = len(weights)
        told = Story(
            "A ridge regression on the public rows.",
            reads_labels=False,
            public_rows=rows,
            radius=RADII["quantile" if self.radius is None else "given"],
            assumption="The method assumes that the label depends on the columns in the same way "
            "in both samples. Private labels are never seen, so that a difference there would go "
            "unnoticed.",
        )
        if not self.guarantee_.events:
            return told
        if not self.adapted_:
            return self._not_adapted(told)
        effective = 1 / float(np.sum(weights**2))
        summary = (
            f"The public rows were weighted to look like the private ones{self._remaining()} The "
            f"weighted rows are worth about {effective:,.0f} rows of equal weight, out of "
            f"{rows:,}."
        )
        return replace(told, summary=summary, facts=certificate_facts(self))

    def _not_adapted(self, told: Story) -> Story:
        """Say why the model is the one of public data alone."""
        same = "The model is the one trained on public data alone"
        whole, part = self.uniform_discrepancy_, self.discrepancy_
        scale = getattr(self.guarantee_.events[0], "scale", 0.0)
        if whole is not None and whole <= scale * np.sqrt(2 * (self.n_features_in_ + 1)):
            return replace(told, summary=f"Within the noise the two samples look alike. {same}.")
        if part is not None and whole is not None and part < whole:
            summary = (
                "Weights that make the public rows look like the private ones move the model by no "
                f"more than its own sampling error. {same}."
            )
            return replace(told, summary=summary)
        warning = (
            "No weights make the public rows look like the private ones, or the noise hides how "
            f"they differ. {same}, and is the same whatever the private rows are, apart from this "
            "decision."
        )
        return replace(told, title="Not adapted.", warning=warning)

    def _remaining(self) -> str:
        """What weights leave of the difference; nothing where no release tells."""
        whole, part = self.uniform_discrepancy_, self.discrepancy_
        if part is None or not whole:
            return "."
        return (
            f": {percent(part / whole)} of the difference between the two samples remains, "
            "measured on the noisy release."
        )
