"""The scikit-learn face of private supervised adaptation: classification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from dpadapt._checks import aligned_private, session_options, warn_of_printed
from dpadapt._linear import LinearClassifier, class_labels
from dpadapt._progress import row_progress
from dpadapt.privacy import Cleaning, Guarantee, Private, Session

from ._units import (
    Array,
    Units,
    check_options,
    descent_cleaning,
    descent_units,
    paper_sample,
    paper_units,
    refuse_paper_options,
)
from .general import GeneralAdaptation
from .known_noise import KnownNoise
from .labelled_discrepancy import row_length
from .profiled_classification import ProfiledClassification

__all__ = ["ReweightingClassifier"]

_ALPHA = {"gradient": 0.5, "profiled": 0.0}
_PROFILED_STEPS = 40
_MOST_STEPS = 1000  # of "gradient", if the theorem has more


class ReweightingClassifier(LinearClassifier):
    r"""Classifier for a private domain from public labels and private labelled rows.

    By default the logistic regression of the public rows descends on the private loss, as far as
    the known noise allows (``solver="known-noise"``). With ``module`` the model is a small neural
    network instead.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    solver : {"known-noise", "gradient", "profiled"}, default="known-noise"
        "gradient" is the paper's Algorithm 2 (PNCnvxAdap); "profiled" minimises its weights in
        closed form, from the public model.
    calibration : {"tight", "paper"}, default="tight"
        For "gradient": noise calibrated to what was asked, from the public model; or the printed
        constants, from zero. The guarantee tells what they truly give.
    classes : sequence, optional
        All class labels, where the public labels do not have them all. A private row of another
        class is left out, and nothing tells that it was there.
    module : torch.nn.Module, optional
        A network from d features to one score for each class, in the order of the sorted classes;
        needs the extra ``dpadapt[torch]``. It is copied, and trained on the public rows first.
    alpha : float, optional
        For "gradient" (default 0.5) and "profiled" (default 0): reference weight of the public
        sample, from 0 to 1.
    kappa : float, optional
        For "profiled": price of weights that differ from the reference; by default they do not.
        For the logistic loss weights do not lower the noise, and rarely help.
    steps : int, optional
        Of "gradient" (by default the theorem's, 1000 at most) and "profiled" (default 40).
    norm_bound : float, optional
        For "gradient": the paper's Lambda, bound on the coefficients in standardised features. By
        default twice the norm of the public model.
    shrink : bool, default=True
        For "known-noise": shrink to the public model what moved no farther than noise would have
        moved it.
    radius : float, optional
        For "gradient" and "profiled": bound on a private row in standardised features, longer
        ones are shrunk. By default the 99% quantile of the public norms.
    noise : {"secure", "seeded", "exact"}, default="secure"
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
        The durable budget to charge before anything is released.
    verbose : int, default=0
        Above 0, a progress bar while private rows are read.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    coef_ : ndarray of shape (1, d) for two classes, else (k, d)
        Not with ``module``.
    intercept_ : ndarray
        Not with ``module``.
    module_ : torch.nn.Module
        With ``module``: the adapted network, for standardised features.
    guarantee_ : Guarantee
    share_ : float
        How much of the descent was kept: 0 is the public model.
    plan_ : Plan or None
        Horizon, clip and the like of "known-noise"; public.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    dpadapt.AdaptationPipeline : for categorical columns, polynomial terms and the like.

    Notes
    -----
    With no private sample (or one of no rows) the model is the one of the public rows and the
    guarantee is epsilon = 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.normal(size=(2000, 2)), rng.normal(size=(9000, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> private = Private(T, np.where(T[:, 0] + T[:, 1] > 0, "yes", "no"))
    >>> model = ReweightingClassifier(epsilon=1.0, delta=1e-6).fit(X, y, private=private)
    >>> model.predict([[-0.2, 1.5]]), model.guarantee_.epsilon <= 1.0
    (array(['yes'], dtype='<U3'), True)
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        solver: str = "known-noise",
        calibration: str = "tight",
        classes: Sequence[Any] | None = None,
        module: Any = None,
        alpha: float | None = None,
        kappa: float | None = None,
        steps: int | None = None,
        norm_bound: float | None = None,
        shrink: bool = True,
        radius: float | None = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.calibration = calibration
        self.classes = classes
        self.module = module
        self.alpha = alpha
        self.kappa = kappa
        self.steps = steps
        self.norm_bound = norm_bound
        self.shrink = shrink
        self.radius = radius
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
        ReweightingClassifier
            Itself, fitted.
        """
        self._check()
        options = session_options(self)
        public, labels = validate_data(self, X, y, dtype=np.float64)
        classes = class_labels(labels, self.classes)
        codes = np.searchsorted(classes, labels).astype(np.int64)
        sample = aligned_private(self, private, labelled=True)
        if sample is not None:
            refuse_paper_options(self)
            sample = sample.encode(classes)
        with row_progress("reading private rows", self.verbose) as progress:
            options |= {"label": type(self).__name__, "progress": progress}
            if self.module is not None:
                found = self._network(public, codes, len(classes), sample, options)
            elif self.solver == "known-noise" or sample is None or self._no_private_weight():
                found = self._by_descent(public, codes, len(classes), sample, options)
            else:
                found = self._by_paper(public, codes, len(classes), sample, options)
        warn_of_printed(found["guarantee_"], options["epsilon"])

        # only now: a fit that was refused must not put its guarantee beside an earlier model
        for name in ("coef_", "intercept_", "module_", "_units"):
            self.__dict__.pop(name, None)
        self.classes_, self.share_, self.plan_ = classes, 1.0, None
        for name, value in found.items():
            setattr(self, name, value)
        return self

    def _check(self) -> None:
        """Check what no other function checks, before anything is spent."""
        check_options(self, ("known-noise", "gradient", "profiled"), algorithm=2)
        for name in ("alpha", "kappa"):
            if np.ndim(getattr(self, name) or 0) > 0:
                raise ValueError(f"{name} must be one number; got {getattr(self, name)!r}.")
        if self.solver == "gradient" and self.kappa is not None:
            raise ValueError("kappa: solver='gradient' has none here; leave it None.")

    def _no_private_weight(self) -> bool:
        """With alpha 1 Algorithm 2 takes nothing from private rows: the public model is it."""
        return self.solver == "gradient" and self.alpha == 1

    def _by_descent(
        self,
        public: Array,
        codes: Any,
        k: int,
        private: Private | None,
        options: dict[str, Any],
    ) -> dict[str, Any]:
        """Solver "known-noise", and the model without a private sample."""
        units = descent_units(public)
        solver = KnownNoise(units.rows(public), codes, k, shrink=self.shrink)
        if private is None or self._no_private_weight():
            return {**_linear(units, solver.model), "guarantee_": Guarantee(), "share_": 0.0}
        with private.open(**options) as session:
            found = solver.fit(session, descent_cleaning(units, public, classes=k))
        return {
            **_linear(units, found.coefficients),
            "guarantee_": session.guarantee,
            "share_": found.share,
            "plan_": found.plan,
        }

    def _by_paper(
        self, public: Array, codes: Any, k: int, private: Private, options: dict[str, Any]
    ) -> dict[str, Any]:
        """Solvers that work with the paper's bounds on rows and coefficients."""
        units = paper_units(public, None)
        rows, cleaning = paper_sample(units, public, self.radius, classes=k)
        alpha = _ALPHA[self.solver] if self.alpha is None else float(self.alpha)
        with private.open(**options) as session:
            if self.solver == "profiled":
                steps = _PROFILED_STEPS if self.steps is None else self.steps
                profiled = ProfiledClassification(
                    rows, codes, k, alpha=alpha, kappa=self.kappa, steps=steps
                )
                W = profiled.fit(session, cleaning).T
            else:
                algorithm = self._gradient(session, cleaning, rows, codes, k, alpha)
                W = algorithm.fit(session, cleaning)
        return {**_linear(units, W), "guarantee_": session.guarantee}

    def _gradient(
        self, session: Session, cleaning: Cleaning, rows: Array, codes: Any, k: int, alpha: float
    ) -> GeneralAdaptation:
        bound = self.norm_bound
        if bound is None:
            public = KnownNoise(rows[:, :-1], codes, k).model
            bound = max(2 * float(np.linalg.norm(public)), 1e-3)
        algorithm = GeneralAdaptation(
            rows,
            codes,
            k,
            alpha=alpha,
            norm_bound=bound,
            steps=_MOST_STEPS if self.steps is None else self.steps,
            start="zero" if self.calibration == "paper" else "public",
            calibration=self.calibration,
            seed=self.random_state if isinstance(self.random_state, int) else 0,
        )
        if self.steps is None and alpha < 1:
            facts = (session.n_rows, session.epsilon, session.delta)
            theorem = algorithm.theorem_steps(row_length(cleaning), *facts)
            algorithm = replace(algorithm, steps=min(_MOST_STEPS, theorem))
        return algorithm

    def _network(
        self,
        public: Array,
        codes: Any,
        k: int,
        private: Private | None,
        options: dict[str, Any],
    ) -> dict[str, Any]:
        """A neural network, whatever the solver."""
        from .network import NetworkAdaptation

        units = paper_units(public, None)
        rows, cleaning = paper_sample(units, public, self.radius, classes=k)
        network = NetworkAdaptation(
            rows[:, :-1],
            codes,
            k,
            self.module,
            solver=self.solver,
            alpha=self.alpha,
            kappa=self.kappa,
            steps=self.steps,
            calibration=self.calibration,
            seed=self.random_state if isinstance(self.random_state, int) else 0,
        )
        guarantee = Guarantee()
        if private is None:
            module = network.pretrain()
        else:
            with private.open(**options) as session:
                module = network.fit(session, replace(cleaning, intercept=0.0))
            guarantee = session.guarantee
        return {"module_": module, "_units": units, "guarantee_": guarantee}

    def _scores(self, rows: Array) -> Array:
        if self.module is None:
            return super()._scores(rows)
        from .network import scores

        found = scores(self.module_, self._units.rows(rows))
        return found[:, 1:] - found[:, :1] if found.shape[1] == 2 else found


def _linear(units: Units, coefficients: Array) -> dict[str, Any]:
    """Attributes of a linear model: one row of coefficients for two classes, as usual."""
    slopes, constants = units.linear(coefficients)
    if len(constants) == 2:
        slopes, constants = slopes[:, 1:] - slopes[:, :1], constants[1:] - constants[:1]
    return {"coef_": np.ascontiguousarray(slopes.T), "intercept_": constants}
