"""The scikit-learn face of private supervised adaptation: classification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.base import PrivateEstimator
from dpadapt.learning.constraints import Like, Named, Null, ParameterTable, Positive
from dpadapt.learning.linear import LinearClassifier
from dpadapt.learning.story import Fact, Story
from dpadapt.privacy import Session

from .known_noise import KnownNoise, check_linear, check_network, public_classification
from .problem import (
    ClassificationProblem,
    LinearModel,
    bounded_sample,
    reweighting_story,
    standard_units,
)

_PAPER = "dpadapt.papers.reweighting.classification_solvers"


class ReweightingClassifier(PrivateEstimator, LinearClassifier):
    r"""Classifier for a private domain from public labels and private labelled rows.

    By default the logistic regression of the public rows descends on the private loss, as far as
    the known noise allows (``solver="known-noise"``). With ``module`` the model is a small neural
    network instead.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    solver : str or object, default="known-noise"
        "known-noise", "gradient", "profiled" or, with options,
        :class:`~dpadapt.reweighting.KnownNoise`, :class:`~dpadapt.reweighting.GeneralGradient` (the
        paper's Algorithm 2, PNCnvxAdap), :class:`~dpadapt.reweighting.ProfiledLogistic` (its
        weights minimised in closed form, from the public model).
    classes : sequence, optional
        All class labels, where the public labels do not have them all. A private row of another
        class is left out, and nothing tells that it was there.
    module : torch.nn.Module, optional
        A network from d features to one score for each class, in the order of the sorted classes;
        needs the extra ``dpadapt[torch]``. It is copied, and trained on the public rows first.
    radius : float, optional
        Bound on a private row in standardised features, longer ones are shrunk. By default the 99%
        quantile of the public norms. For a network, and for all solvers but "known-noise", which
        refuses it.
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
    units_ : Units
        With ``module``: how features are standardised.
    guarantee_ : Guarantee
    share_ : float
        How much of the descent was kept: 0 is the public model.
    course_ : Course or None
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

    As n epsilon grows, the default approaches the logistic regression of the private rows. A bias
    remains for private rows that are more than four times as long as the longest public one (they
    are shrunk), and along axes on which 2,048 steps do not arrive; "gradient" and "profiled" keep
    the public rows' share alpha and the clip.

    Examples
    --------
    >>> from dpadapt import Private
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.normal(size=(2000, 2)), rng.normal(size=(9000, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> private = Private(T, np.where(T[:, 0] + T[:, 1] > 0, "yes", "no"))
    >>> model = ReweightingClassifier(epsilon=1.0, delta=1e-6).fit(X, y, private=private)
    >>> model.predict([[-0.2, 1.5]]), model.guarantee_.epsilon <= 1.0
    (array(['yes'], dtype='<U3'), True)
    """

    _constraints: ClassVar[ParameterTable] = {
        "solver": [
            Named(
                {
                    "known-noise": KnownNoise,
                    "gradient": _PAPER + ".GeneralGradient",
                    "profiled": _PAPER + ".ProfiledLogistic",
                }
            )
        ],
        "radius": [Positive(), Null()],
        "module": [Like("be a torch module", "parameters", "forward"), Null()],
    }

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        solver: Any = "known-noise",
        classes: Sequence[Any] | None = None,
        module: Any = None,
        radius: float | None = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.classes = classes
        self.module = module
        self.radius = radius
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _check(self) -> None:
        solver = self._strategy("solver")
        if self.module is not None:
            check_network(solver)
        elif isinstance(solver, KnownNoise):
            check_linear(solver, radius=self.radius)

    def _read(self, X: Any, y: Any, private: Any) -> ClassificationProblem:
        public = super()._read(X, y, private)
        seed = self.random_state if isinstance(self.random_state, int) else 0
        return ClassificationProblem(
            public.X, public.labels, public.names, radius=self.radius, seed=seed
        )

    def _solve(self, problem: ClassificationProblem, session: Session | None) -> dict[str, Any]:
        if self.module is not None:
            return self._network(problem, session)
        if session is None:
            return _attributes(public_classification(problem))
        return _attributes(self._strategy("solver").classify(problem, session))

    def _network(self, problem: ClassificationProblem, session: Session | None) -> dict[str, Any]:
        """A neural network, whatever the solver."""
        units = standard_units(problem.X)
        rows, cleaning = bounded_sample(units, problem.X, problem.radius, classes=problem.classes)
        public = (rows[:, :-1], problem.labels, problem.classes, self.module)
        network = self._strategy("solver").network(*public, problem.seed)
        if session is None:
            module = network.pretrain()
        else:
            module = network.fit(session, replace(cleaning, intercept=0.0))
        return {"module_": module, "units_": units, "share_": 1.0, "course_": None}

    def _scores(self, rows: FloatArray) -> FloatArray:
        if self.module is None:
            return super()._scores(rows)
        from .torch_module import scores

        found = scores(self.module_, self.units_.rows(rows))
        return found[:, 1:] - found[:, :1] if found.shape[1] == 2 else found

    def _story(self) -> Story:
        if self.module is None:
            return reweighting_story(self, "logistic regression")
        size = sum(each.numel() for each in self.module_.parameters())
        meaning = f"of torch, with {size:,} parameters, which are not listed"
        network = Fact("network", type(self.module_).__name__, meaning)
        told = reweighting_story(self, "neural network")
        return replace(told, facts=(network, *told.facts))


def _attributes(found: LinearModel) -> dict[str, Any]:
    """Attributes of a linear model: one row of coefficients for two classes, as usual."""
    slopes, constants = found.slopes, found.constants
    if len(constants) == 2:
        slopes, constants = slopes[:, 1:] - slopes[:, :1], constants[1:] - constants[:1]
    return {
        "coef_": np.ascontiguousarray(slopes.T),
        "intercept_": constants,
        "share_": found.share,
        "course_": found.course,
    }
