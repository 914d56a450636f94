"""The scikit-learn face of private supervised adaptation: regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from dpadapt.base import PrivateEstimator
from dpadapt.learning.constraints import Flag, Named, Null, ParameterTable, Positive, Vector
from dpadapt.learning.linear import LinearRegressor
from dpadapt.learning.story import Story
from dpadapt.privacy import Guarantee, Private, Session

from .known_noise import KnownNoise, check_linear, public_regression
from .problem import RegressionProblem, reweighting_story

_PAPER = "dpadapt.papers.reweighting.regression_solvers"


class ReweightingRegressor(PrivateEstimator, LinearRegressor):
    r"""Linear regression for a private domain from public labels and private labelled rows.

    By default the model trained on public data descends on the private loss, as far as the known
    noise allows (``solver="known-noise"``). The other solvers are those of Bassily, Cortes, Mao
    and Mohri (2023), as printed and improved: public and private rows get weights, learned together
    with the model.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    solver : str or object, default="known-noise"
        "known-noise", "gradient", "profiled", "statistics" or, with options,
        :class:`~dpadapt.reweighting.KnownNoise`, :class:`~dpadapt.reweighting.ConvexGradient` (the
        paper's Algorithm 1, PCnvxAdap), :class:`~dpadapt.reweighting.Profiled` (its weights
        minimised in closed form, from the public model),
        :class:`~dpadapt.reweighting.Statistics` (one noisy moment matrix, after which everything
        is free).
    norm_bound : float, optional
        The paper's Lambda, in standardised features and labels of [-1, 1]; by default twice the
        norm of the public model. For the certificate, and for all solvers but "known-noise", which
        refuses it without one.
    certificate : bool, default=False
        Also bound the error in the private population (``certificate_``), for a tenth of the
        budget. It needs ``label_range``: the bound rests on the range that you state.
    radius : float, optional
        Bound on a private row in standardised features, longer ones are shrunk. By default the 99%
        quantile of the public norms. For the certificate, and for all solvers but "known-noise",
        which refuses it without one.
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
        The learning bound with every term named, in squared units of the label, if it was asked
        for and the coefficients are within ``norm_bound``. It says what it rests on.
    share_ : float
        How much of the descent was kept: 0 is the public model.
    course_ : Course or None
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

    As n epsilon grows, the default approaches the least squares of the private rows. A bias remains
    in the others: "profiled" and "statistics" keep the public rows' share alpha, and "gradient"
    besides stops after a hundred steps of the printed size, before its minimum (wages of women at
    epsilon 1e6: mean squared error 0.228 by default, 0.229 by "profiled" and "statistics", 0.763 by
    "gradient", 0.256 with ``ConvexGradient(steps="theorem")``, 0.279 of the public rows alone).

    Examples
    --------
    >>> from dpadapt import Private
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.normal(size=(2000, 2)), rng.normal(size=(5000, 2))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=2000)
    >>> private = Private(T, T[:, 0] + 0.5 * T[:, 1] + 1 + 0.1 * rng.normal(size=5000))
    >>> model = ReweightingRegressor(epsilon=1.0, delta=1e-6).fit(X, y, private=private)
    >>> bool(abs(model.predict([[0.0, 1.0]])[0] - 1.5) < 0.2), model.guarantee_.epsilon <= 1.0
    (True, True)
    """

    _constraints: ClassVar[ParameterTable] = {
        "solver": [
            Named(
                {
                    "known-noise": KnownNoise,
                    "gradient": _PAPER + ".ConvexGradient",
                    "general": _PAPER + ".GeneralRegression",
                    "profiled": _PAPER + ".Profiled",
                    "statistics": _PAPER + ".Statistics",
                }
            )
        ],
        "norm_bound": [Positive(), Null()],
        "certificate": [Flag()],
        "radius": [Positive(), Null()],
        "label_range": [Vector(2), Null()],
    }

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        solver: Any = "known-noise",
        norm_bound: float | None = None,
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
        self.norm_bound = norm_bound
        self.certificate = certificate
        self.radius = radius
        self.label_range = label_range
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _check(self) -> None:
        solver = self._strategy("solver")
        if self.certificate and not solver.certifiable:
            raise ValueError(
                "certificate=True needs calibration='tight' and no selection: the bound holds for "
                "an alpha that is fixed beforehand."
            )
        if self.certificate and self.label_range is None:
            raise ValueError(
                "certificate=True needs label_range, the range that you state private labels to "
                "lie in: those beyond it are clamped, and no bound is about them."
            )
        if isinstance(solver, KnownNoise):
            bounds = {"norm_bound": self.norm_bound, "radius": self.radius}
            check_linear(solver, **({} if self.certificate else bounds))
        if self.label_range is not None and not self.label_range[0] < self.label_range[1]:
            raise ValueError(
                f"label_range must be two numbers (low, high); got {self.label_range!r}."
            )

    def _read(self, X: Any, y: Any, private: Any) -> RegressionProblem:
        public = super()._read(X, y, private)
        given = None
        if self.label_range is not None:
            low, high = given = float(self.label_range[0]), float(self.label_range[1])
            least, most = float(public.labels.min()), float(public.labels.max())
            if least < low or most > high:
                raise ValueError(
                    f"label_range must hold the public labels, which reach from {least:.6g} to "
                    f"{most:.6g}; got {self.label_range!r}. Private labels beyond it are clamped."
                )
        return RegressionProblem(
            public.X,
            public.labels,
            label_range=given,
            radius=self.radius,
            norm_bound=self.norm_bound,
            certificate=bool(self.certificate),
        )

    def _adapt(
        self, problem: RegressionProblem, sample: Private, options: dict[str, Any]
    ) -> tuple[dict[str, Any], Guarantee]:
        seed = options["random_state"] if self.noise == "seeded" else None
        counted = replace(problem, seed=seed, people=sample.n_people)
        return super()._adapt(counted, sample, options)

    def _solve(self, problem: RegressionProblem, session: Session | None) -> dict[str, Any]:
        if session is None:
            found = public_regression(problem)
        else:
            found = self._strategy("solver").regress(problem, session)
        return {
            "coef_": np.asarray(found.slopes[:, 0]),
            "intercept_": float(found.constants[0]),
            "certificate_": found.certificate,
            "share_": found.share,
            "course_": found.course,
            "chosen_": found.chosen,
        }

    def _story(self) -> Story:
        return reweighting_story(self, "ridge regression")
