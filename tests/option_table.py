"""A second value for every option of every estimator, and the ways in which each is tried.

A *way* is an estimator with the objects that say how (solver, release, learner and the like). Every
option of the estimator, and every option of those objects, has another value here; for an option
that several have the value of the class comes before that of the name.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt import (
    AdaMixClassifier,
    Agents,
    AutoClassifier,
    AutoRegressor,
    DiscrepancyRegressor,
    HybridTilt,
    InteractivePredictor,
    KernelClassifier,
    KernelRegressor,
    NoisyGDClassifier,
    Private,
    ReweightingClassifier,
    ReweightingRegressor,
    SubsampleTestReweigh,
    baselines,
    discrepancy,
    hybrid,
    kernels,
    mixing,
    reweighting,
)
from dpadapt.discrepancy import PrivateLabels
from dpadapt.papers.hybrid.finite_class import sparse_separators

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
COLUMNS, PUBLIC, ROWS = 3, 90, 600


@functools.cache
def rows(n: int, seed: int, shift: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(loc=shift, size=(n, COLUMNS))


def labels(task: str, X: np.ndarray, turn: float = 0.0) -> np.ndarray:
    slopes = np.array([1.0, -0.5 + turn, 0.3 + turn])
    noise = np.random.default_rng(len(X)).normal(size=len(X))
    score = X @ slopes + 0.6 * noise
    if task == "bent":
        return score + 1.5 * X[:, 0] ** 2
    if task == "numbers":
        return score + turn
    cuts = (0.0,) if task == "two" else (-0.5, 0.6)
    return np.searchsorted(cuts, score)


@dataclass(frozen=True)
class Way:
    """An estimator, how it is made, and the kind of labels that it is fitted to."""

    kind: type
    task: str
    given: dict[str, Any]
    told: str = ""
    labelled: bool = True
    agents: bool = False
    network: bool = False
    bits: bool = False
    far: bool = False
    slow: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind.__name__}({self.told})"

    def make(self) -> Any:
        if self.kind is InteractivePredictor:
            asked = KernelRegressor(**{**BUDGET, "epsilon": 1e5, "penalty": 3.0})
            return InteractivePredictor(asked, **self.given)
        own = self.kind._get_param_names()
        budget = {name: value for name, value in BUDGET.items() if name in own}
        model = self.kind(**{**budget, **self.given})
        return model.set_params(module=network()) if self.network else model

    def sample(self, n: int, seed: int, shift: float, turn: float) -> tuple[Any, Any]:
        X = rows(n, seed, shift)
        if self.bits:
            flipped = np.random.default_rng(n).random(n) < 0.1
            return (X > 0.5) * 1.0, ((X[:, :2] > 0.5).sum(axis=1) + flipped) % 2
        return X, labels(self.task, X, turn)

    def private(self) -> Any:
        T, t = self.sample(ROWS, 2, 2.0 if self.far else 0.4, 0.5)
        return Private(T, t if self.labelled else None)

    def fit(self, model: Any, private: Any) -> Any:
        public = self.sample(300 if self.far else PUBLIC, 1, 0.0, 0.0)
        name = self.kind.__name__
        if self.agents:
            asked = Agents(*self.sample(4000, 3, 0.8, 0.5))
            return model.fit(*public, private=private, agents=asked)
        if name.startswith("NonPrivate"):
            return model.fit(*public, target=self.sample(ROWS, 2, 0.4, 0.5))
        if name.startswith("KMM") or name == "DiscrepancyMinimisationRegressor":
            return model.fit(*public, target=rows(ROWS, 2, 0.4))
        return model.fit(*public, private=private)


_FLAGS = ("labelled", "agents", "network", "bits", "far", "slow")


def ways(kind: type, task: str, name: str, objects: list[Any], **more: Any) -> list[Way]:
    flags = {key: more.pop(key) for key in _FLAGS if key in more}
    found = []
    for each in objects:
        options = {**more, name: each}
        found.append(Way(kind, task, options, f"{name}={_short(each)}", **flags))
    return found


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) < 120 and " at 0x" not in text else type(value).__name__


def _inner(**options: Any) -> NoisyGDClassifier:
    return NoisyGDClassifier(**{**BUDGET, "steps": 3, **options})


def _shared(A: Any, B: Any) -> Any:
    return np.exp(-0.5 * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def _dots(A: Any, B: Any) -> Any:
    return np.asarray(A) @ np.asarray(B).T


def network() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(COLUMNS, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))


b, r, d, k, m, h = baselines, reweighting, discrepancy, kernels, mixing, hybrid
_ROUNDS: dict[str, Any] = {"kappa": 0.3, "rate": 0.4, "rounds": 3}
_SPLIT: dict[str, Any] = {
    "agent_epsilon": 1.0,
    "schedule": h.TightSchedule(**_ROUNDS),
    "test": h.BitTest(batch=400),
    "target_error": 0.02,
}
_LEARNERS = [
    h.GradientLearner(steps=3),
    h.FiniteClassLearner(sparse_separators(3, 2)),
    h.EstimatorLearner(
        AdaMixClassifier(**BUDGET, steps=3),
        draws=10,
        public=(rows(30, 9), labels("two", rows(30, 9))),
    ),
]
_POINTS = {"points": 12}
# these say nothing but the mean where the budget is not huge
_LOUD: dict[str, Any] = {"features": "none", "epsilon": 1e3, "penalty": 3.0}

WAYS: list[Way] = [
    *ways(
        ReweightingRegressor,
        "numbers",
        "solver",
        [
            r.KnownNoise(),
            r.ConvexGradient(steps=4),
            r.ConvexGradient(steps=4, calibration="paper"),
            r.GeneralRegression(steps=4),
            r.GeneralRegression(steps=4, candidates=2, loss="squared"),
            r.Profiled(steps=4),
            r.Profiled(steps=4, selection="random-stopping"),
            r.Statistics(),
            r.Statistics(selection="holdout"),
            r.Statistics(selection="certificate"),
        ],
    ),
    Way(
        ReweightingRegressor,
        "numbers",
        {"certificate": True, "label_range": (-99.0, 99.0)},
        "certificate=True",
    ),
    *ways(
        ReweightingClassifier,
        "three",
        "solver",
        [
            r.KnownNoise(),
            r.GeneralGradient(steps=4),
            r.GeneralGradient(steps=4, calibration="paper", candidates=2),
            r.ProfiledLogistic(steps=4, alpha=0.3),
        ],
    ),
    *ways(
        DiscrepancyRegressor,
        "bent",
        "solver",
        [
            d.Moments(max_remaining=1.0),
            d.Moments(objective="single-stage", max_remaining=1.0),
        ],
        labelled=False,
        far=True,
        epsilon=50.0,
    ),
    *ways(
        DiscrepancyRegressor,
        "bent",
        "solver",
        [
            d.FrankWolfe(steps=40),
            d.FrankWolfe(steps=40, calibration="paper"),
            d.FrankWolfe(steps=40, smoothing="p-norm"),
            d.MirrorDescent(steps=4),
            d.MirrorDescent(steps=4, geometry="p-norm"),
            d.MirrorDescent(steps=4, noise_on="gradient"),
            d.MirrorDescent(steps=4, noise_on="gradient", calibration="paper"),
        ],
        labelled=False,
        epsilon=50.0,
    ),
    *ways(
        DiscrepancyRegressor,
        "bent",
        "solver",
        [
            d.SingleStage(steps=4),
            d.SingleStage(steps=4, calibration="paper"),
            d.SingleStage(steps=4, iterate="uniform"),
        ],
        labelled=False,
    ),
    Way(
        DiscrepancyRegressor,
        "bent",
        {
            "certificate": PrivateLabels((-99.0, 99.0), 30.0),
            "solver": d.Moments(max_remaining=1.0),
            "epsilon": 50.0,
        },
        "certificate=PrivateLabels(...)",
        labelled=False,
        far=True,
    ),
    *ways(
        KernelRegressor,
        "numbers",
        "release",
        [
            k.GaussianProcess(**_POINTS),
            k.GaussianProcess(**_POINTS, start="zero"),
            k.TDDL(**_POINTS),
            k.TDDL(**_POINTS, calibration="laplace"),
        ],
        features="none",
    ),
    *ways(KernelRegressor, "numbers", "release", [k.TDIL(**_POINTS)], **_LOUD),
    *ways(KernelClassifier, "two", "release", [k.TDIL(**_POINTS)], **_LOUD),
    *ways(
        KernelRegressor,
        "numbers",
        "kernel",
        [
            k.RBF(),
            k.Laplacian(),
            k.Polynomial(),
            k.Linear(),
            k.Cosine(),
            k.Chi2(),
            k.FunctionKernel(_shared, bound=1.0),
            k.InnerProduct(bound=1.0),
        ],
        features="none",
        release=k.TDDL(**_POINTS),
    ),
    *ways(KernelRegressor, "numbers", "features", ["none", k.Fourier(12), k.Nystroem(12)]),
    *ways(KernelRegressor, "numbers", "features", ["linear"], kernel="linear"),
    *ways(
        KernelClassifier,
        "three",
        "release",
        [k.GaussianProcess(**_POINTS), k.TDDL(**_POINTS)],
        features="none",
    ),
    *ways(InteractivePredictor, "numbers", "method", [k.NoisePath(), k.PINP(), k.SparseVector()]),
    *ways(
        AdaMixClassifier,
        "three",
        "solver",
        [
            m.KnownNoise(),
            m.KnownNoise(projection=m.FeatureProjection(rank=2)),
            m.AdaMix(),
            m.AdaMix(clipping=m.FixedClip(0.5)),
            m.AdaMix(clipping=m.AdaptiveClip(80.0)),
            m.AdaMix(projection=m.GradientProjection(rank=2)),
            m.Theory(),
            m.Theory(within=m.Ball(0.5)),
        ],
        steps=4,
    ),
    *ways(AdaMixClassifier, "three", "steps", [m.Steps(4), m.StepsAtNoise(20.0)]),
    *ways(AdaMixClassifier, "three", "relation", ["add-remove"], steps=4),
    *ways(
        NoisyGDClassifier,
        "three",
        "solver",
        [m.NoisyGD(), m.NoisyGD(within=m.Ball(0.2)), m.NoisyGD(within=m.Box(0.1))],
        steps=4,
        classes=[0, 1, 2],
    ),
    *ways(HybridTilt, "two", "features", ["linear", "squares"], agents=True, agent_epsilon=1.0),
    *ways(SubsampleTestReweigh, "two", "learner", _LEARNERS, agents=True, **_SPLIT),
    *ways(
        SubsampleTestReweigh,
        "two",
        "learner",
        [h.SGDLearner(steps=150), h.SGDLearner(steps=150, loss="hinge")],
        agents=True,
        slow=True,
        **_SPLIT,
    ),
    Way(
        SubsampleTestReweigh,
        "two",
        {**_SPLIT, "learner": h.ParityLearner(), "schedule": h.TightSchedule(rounds=1)},
        "learner=ParityLearner()",
        agents=True,
        bits=True,
    ),
    Way(
        SubsampleTestReweigh,
        "two",
        {**_SPLIT, "schedule": h.PaperSchedule(**_ROUNDS), "test": h.PaperTest(batch=400)},
        "as printed",
        agents=True,
    ),
    *ways(AutoRegressor, "numbers", "experts", [["linear"], ["linear", "trees"]]),
    *ways(AutoClassifier, "three", "experts", [["linear"]]),
    *ways(b.AdaSSPRegressor, "numbers", "residual", [False, True]),
    *ways(b.AdaSSPClassifier, "three", "residual", [False, True]),
    *ways(b.NoisyGradientRegressor, "numbers", "start", ["zero", "public"]),
    *ways(b.NoisyGradientClassifier, "three", "start", ["zero", "public"]),
    *ways(b.NoisySGDRegressor, "numbers", "calibration", ["tight", "paper"], steps=4),
    *ways(b.ObjectivePerturbationRegressor, "numbers", "start", ["zero", "public"]),
    *ways(b.ObjectivePerturbationClassifier, "three", "start", ["zero", "public"]),
    Way(b.NonPrivateRegressor, "numbers", {}),
    Way(b.NonPrivateClassifier, "three", {}),
    Way(b.KMMRegressor, "numbers", {"landmarks": 20}),
    Way(b.KMMClassifier, "three", {"landmarks": 20}),
    Way(b.DiscrepancyMinimisationRegressor, "numbers", {}),
    Way(b.PublicOnlyRegressor, "numbers", {}),
    Way(b.PublicOnlyClassifier, "three", {}),
]
NETWORKS = ways(
    ReweightingClassifier,
    "three",
    "solver",
    [
        r.KnownNoise(steps=4),
        r.GeneralGradient(steps=4),
        r.GeneralGradient(steps=4, calibration="paper"),
        r.ProfiledLogistic(steps=4),
    ],
    network=True,
)

# another value, or several of which the first that is not there already is taken
VALUES: dict[Any, list[Any]] = {
    "epsilon": [2.0],
    "delta": [1e-5],
    "agent_epsilon": [2.0],
    "noise": ["secure"],
    "random_state": [1],
    "classes": [[0, 1, 2, 3]],
    "radius": [0.7],
    "norm_bound": [0.1],
    "certificate": [True, False],
    "label_range": [(-9.0, 9.0)],
    ("PrivateLabels", "label_range"): [(-80.0, 80.0)],
    "label_difference": [40.0],
    "ridge": [50.0],
    "alpha": [0.2],
    "kappa": [0.02],
    "steps": [7],
    "step_size": [0.01],
    "penalty": [0.3, 0.6],
    "calibration": ["paper", "tight"],
    "strengths": [(0.1, 0.2, 0.3)],
    "candidates": [3],
    "shrink": [False],
    "smoothing": ["p-norm", "softmax"],
    "clip": [0.05],
    "mixing": [0.5],
    "average": [True],
    "learning_rate": [0.5],
    "start": ["zero", "public"],
    "residual": [True, False],
    "pooled": [True],
    "width": [0.3],
    "bound": [0.5],
    "landmarks": [10],
    "gap": [0.5],
    "features": ["squares", "linear"],
    "unit": [3.0],
    "target_error": [0.6],
    "points": [6],
    "pool": [rows(5, 8)],
    "gamma": [3.0],
    "n_components": [5],
    "questions": [2],
    "individual_filter": [0.5],
    "rank": [1],
    "keep_trajectory": [True],
    "sample_size": [100.0],
    "relation": ["add-remove", "replace-one"],
    "within": [m.Ball(0.01)],
    "projection": ["features"],
    "rate": [0.8],
    "rounds": [2],
    "batch": [300],
    "agnostic": [True],
    "loss_bound": [2.0],
    "halt_at": [0.9],
    ("DiscrepancyRegressor", "solver"): ["frank-wolfe"],
    ("DiscrepancyRegressor", "certificate"): [
        PrivateLabels(label_range=(-99, 99), label_difference=99)
    ],
    ("ReweightingRegressor", "solver"): [r.Profiled(steps=6)],
    ("ReweightingClassifier", "solver"): [r.ProfiledLogistic(steps=6)],
    ("ReweightingClassifier", "module"): [],  # NETWORKS
    ("KnownNoise", "steps"): [9],
    ("GeneralRegression", "loss"): ["squared", "huber"],
    ("Profiled", "selection"): ["random-stopping", None],
    ("Profiled", "kappa"): [0.3],
    ("Statistics", "selection"): ["holdout", None],
    ("Statistics", "kappa"): [0.01],
    ("Moments", "objective"): ["single-stage", "two-stage"],
    ("Moments", "max_remaining"): [0.0],
    ("MirrorDescent", "geometry"): ["p-norm", "entropy"],
    ("MirrorDescent", "noise_on"): ["gradient", "matrix"],
    ("SingleStage", "iterate"): ["uniform", "last"],
    ("KernelRegressor", "kernel"): [k.Laplacian(), k.RBF()],
    ("KernelClassifier", "kernel"): [k.Laplacian()],
    ("KernelRegressor", "loss"): ["epsilon-insensitive"],
    ("KernelClassifier", "loss"): ["huberised-hinge"],
    ("KernelClassifier", "multiclass"): ["one-vs-rest"],
    ("KernelRegressor", "features"): [k.Fourier(20), "none"],
    ("KernelClassifier", "features"): [k.Fourier(20)],
    ("KernelRegressor", "release"): [k.TDIL(points=9)],
    ("KernelClassifier", "release"): [k.TDIL(points=9)],
    ("TDDL", "calibration"): ["paper", "gaussian"],
    ("TDDL", "norm_share"): [0.3],
    ("FrankWolfe", "penalty"): [30.0],
    ("Polynomial", "degree"): [2],
    ("Polynomial", "coef0"): [0.5],
    ("FunctionKernel", "function"): [_dots],
    ("InteractivePredictor", "estimator"): [KernelRegressor(**{**BUDGET, "epsilon": 3.0})],
    ("InteractivePredictor", "method"): [k.NoisePath(), k.SparseVector(questions=50)],
    ("InteractivePredictor", "most_questions"): [2],
    ("InteractivePredictor", "grid"): [1.5],
    ("AdaMixClassifier", "solver"): [m.AdaMix(learning_rate=1.0)],
    ("AdaMixClassifier", "steps"): [9],
    ("AdaMixClassifier", "select"): [{"mixing": [0.2, 0.6]}],
    ("NoisyGDClassifier", "solver"): [m.NoisyGD(learning_rate=0.3)],
    ("NoisyGDClassifier", "steps"): [9],
    ("NoisyGDClassifier", "start"): ["public"],
    ("AdaMix", "clipping"): [m.FixedClip(0.1)],
    ("AdaptiveClip", "percentile"): [20.0],
    ("GradientProjection", "clip_first"): [True],
    ("StepsAtNoise", "sigma"): [40.0],
    ("Ball", "radius"): [0.05],
    ("Box", "bound"): [0.02],
    ("SubsampleTestReweigh", "learner"): [h.GradientLearner(steps=5)],
    ("SubsampleTestReweigh", "schedule"): [h.PaperSchedule(0.5, 0.3, 2)],
    ("SubsampleTestReweigh", "test"): [h.PaperTest(batch=350), h.BitTest(batch=350)],
    ("GradientLearner", "step_size"): [2.0],
    ("GradientLearner", "radius"): [0.5],
    ("SGDLearner", "radius"): [0.5],
    ("SGDLearner", "steps"): [200],
    ("SGDLearner", "loss"): ["hinge", "logistic"],
    ("SGDLearner", "margin"): [0.5],
    ("SGDLearner", "sigma"): [3.0],
    ("SGDLearner", "lasso"): [0.2],
    ("FiniteClassLearner", "hypotheses"): [sparse_separators(3, 1)],
    ("EstimatorLearner", "estimator"): [_inner(steps=5)],
    ("EstimatorLearner", "draws"): [20],
    ("EstimatorLearner", "delta"): [1e-9],
    ("EstimatorLearner", "public"): [(rows(20, 8), labels("two", rows(20, 8)))],
    ("ParityLearner", "beta"): [0.9],
    ("PaperSchedule", "kappa"): [0.5],
    ("TightSchedule", "kappa"): [0.5],
    ("FeatureUnits", "centre"): [[1.0, 1.0, 1.0]],
    ("FeatureUnits", "scale"): [[2.0, 2.0, 2.0]],
    "experts": [["trees"]],
    "class_weight": ["balanced"],
}

# what must be so for an option to matter, with its first value and with the second one
WITH: dict[str, dict[str, Any]] = {"agnostic": {"target_error": 0.6}}
