"""Every estimator of the library with its options, to be replayed.

Each value of each option is tried with each solver (or release), one at a time; what an estimator
refuses by its public rules is left out.

One method is not replayed: objective perturbation. Its noise goes into what is minimised, and its
proof speaks of the noise that would have led to the same minimum, not of a value that moves by a
sensitivity.

``dpadapt audit --library`` replays them from an installed package, so the list is part of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from types import MappingProxyType
from typing import Any

import numpy as np

from dpadapt import _lazy
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Agents, Private

from .replaying import Combination, RowsAndLabels, sample_of, task_labels

_LABELS = (-2.0, 2.0)  # that private labels are said to lie in


def combinations(*, names: Sequence[str] = ()) -> list[Combination]:
    """All combinations, or those of the named estimators.

    Examples
    --------
    >>> found = combinations(names=["DiscrepancyRegressor"])
    >>> found[0].name, found[0].estimator
    ("DiscrepancyRegressor(solver='moments')", 'DiscrepancyRegressor')
    """
    first = [*_regressors(), *_classifiers(), *_kernels(), *_mixing(), *_hybrid(), *_auto()]
    found = [*first, *_joint_hybrid(), *_by_weights()]  # new ones last: tests know their places
    return [one for one in found if not names or one.estimator in names]


def _regressors() -> Iterator[Combination]:
    from dpadapt import baselines as b
    from dpadapt import discrepancy as d
    from dpadapt.reweighting import ReweightingRegressor

    solvers: dict[str, type] = {
        "moments": d.Moments,
        "frank-wolfe": d.FrankWolfe,
        "mirror-descent": d.MirrorDescent,
        "single-stage": d.SingleStage,
    }
    for options in _one_at_a_time(
        {"solver": ["moments", "frank-wolfe", "mirror-descent", "single-stage"]},
        {
            "objective": ["single-stage"],
            "calibration": ["paper"],
            "smoothing": ["p-norm"],
            "geometry": ["p-norm"],
            "noise_on": ["gradient"],
            "iterate": ["uniform", "select"],
            "certificate": [d.PrivateLabels(_LABELS, label_difference=1.0)],
            "penalty": [0.1],
            "radius": [1.5],
            "max_remaining": [1.0],
            "noise": ["exact"],
        },
    ):
        steps = {"steps": _STEPS}
        rest: Any = {"labelled": False, "solvers": solvers}
        yield _fitting(d.DiscrepancyRegressor, "regression", options, steps, **rest)
    for options in _one_at_a_time(
        {"solver": ["known-noise", "gradient", "profiled", "statistics"]},
        {
            "calibration": ["paper"],
            "alpha": [0.3, [0.0, 0.5]],
            "kappa": [0.1],
            "selection": ["holdout", "certificate", "random-stopping"],
            "shrink": [False],
            "certificate": [True],
            "norm_bound": [0.5],
            "radius": [1.5],
            "label_range": [_LABELS],
            "noise": ["exact"],
        },
    ):
        fixed: Any = {} if options["solver"] in ("known-noise", "statistics") else {"steps": _STEPS}
        if "certificate" in options:  # which needs what is stated of private labels
            fixed = {**fixed, "label_range": _LABELS}
        made = _given_to_the_solver(ReweightingRegressor)
        yield _fitting(made, "regression", options, fixed)
    for residual in (False, True):
        for noise in ("seeded", "exact"):
            facts = {"residual": residual, "noise": noise}
            yield _fitting(b.AdaSSPRegressor, "regression", facts)
    for start in ("zero", "public"):
        yield _fitting(b.NoisyGradientRegressor, "regression", {"start": start}, {"steps": _STEPS})
    for calibration in ("tight", "paper"):
        facts = {"calibration": calibration}
        yield _fitting(b.NoisySGDRegressor, "regression", facts, {"steps": _STEPS})


def _classifiers() -> Iterator[Combination]:
    from dpadapt import baselines as b
    from dpadapt.reweighting import ReweightingClassifier

    for task in ("two classes", "three classes"):
        for options in _one_at_a_time(
            {"solver": ["known-noise", "gradient", "profiled"]},
            {
                "calibration": ["paper"],
                "alpha": [0.3],
                "kappa": [0.1],
                "shrink": [False],
                "norm_bound": [0.5],
                "radius": [1.5],
                "noise": ["exact"],
            },
        ):
            fixed = {} if options["solver"] == "known-noise" else {"steps": _STEPS}
            made = _given_to_the_solver(ReweightingClassifier)
            yield _fitting(made, task, options, fixed)
        for residual in (False, True):
            yield _fitting(b.AdaSSPClassifier, task, {"residual": residual})
        for start in ("zero", "public"):
            yield _fitting(b.NoisyGradientClassifier, task, {"start": start}, {"steps": _STEPS})


def _kernels() -> Iterator[Combination]:
    from dpadapt.kernels import (
        PINP,
        TDDL,
        TDIL,
        Fourier,
        GaussianProcess,
        KernelClassifier,
        KernelRegressor,
        Nystroem,
    )

    for release in ("gaussian-process", "tddl", "tdil"):
        for kernel in ("rbf", "linear", "polynomial", "laplacian", "cosine", "chi2"):
            facts = {"release": release, "kernel": kernel}
            yield _fitting(KernelRegressor, "regression", facts)
    releases = (GaussianProcess(points=12), TDDL(points=12), TDIL(points=12))
    others: dict[str, Sequence[Any]] = {
        "release__calibration": ["laplace", "paper"],
        "features": ["none", "linear", "polynomial", Fourier(12), Nystroem(12)],
        "penalty": [0.1],
        "radius": [1.5],
        "noise": ["exact"],
    }
    for options in _one_at_a_time(
        {"release": releases}, {**others, "loss": ["epsilon-insensitive"]}
    ):
        yield _fitting(_nested(KernelRegressor), "regression", options)
    for options in _one_at_a_time({"release": releases}, {**others, "loss": ["hinge"]}):
        yield _fitting(_nested(KernelClassifier), "two classes", options)
    small = {"release": releases[0]}
    for options in _one_at_a_time(
        {"multiclass": ["softmax", "one-vs-rest"]},
        {"loss": ["hinge", "huberised-hinge"], "release": list(releases[1:])},
    ):
        yield _fitting(KernelClassifier, "three classes", options, small)
    for kind, task in ((KernelRegressor, "regression"), (KernelClassifier, "three classes")):
        yield _asking(kind, task)
    for method in ("pinp", "sparse-vector"):
        yield _asking(KernelRegressor, "regression", {"method": method})
        yield _asking(KernelClassifier, "two classes", {"method": method})
    yield _asking(KernelRegressor, "regression", {"method": PINP(calibration="paper")})


def _asking(kind: Any, task: str, options: Mapping[str, Any] = MappingProxyType({})) -> Combination:
    """A predictor that is asked; what it answers is what it publishes."""
    from dpadapt.kernels import InteractivePredictor

    X, y = public_sample(task)

    def fit(sample: RowsAndLabels) -> Any:
        predictor = InteractivePredictor(kind(**BUDGET), **options)
        predictor.fit(X, y, private=Private(*sample))
        told = [predictor.predict(X[:3]), predictor.predict(X[2:9]), predictor.guarantee_]
        predictor.close()
        return told

    told_of = "".join(f", {name}={value!r}" for name, value in options.items())
    return Combination(f"InteractivePredictor({kind.__name__}{told_of})", fit, task)


def _mixing() -> Iterator[Combination]:
    from dpadapt.mixing import (
        AdaMix,
        AdaMixClassifier,
        AdaptiveClip,
        FixedClip,
        GradientProjection,
        KnownNoise,
        NoisyGD,
        NoisyGDClassifier,
        Steps,
        Theory,
    )

    filtered = Steps(_STEPS, individual_filter=3.0)
    clips = [FixedClip(0.3), FixedClip(1.0)]
    # an option of another solver, and one that cannot be selected: refused
    other, span = {"clipping": [AdaptiveClip()]}, {"projection": ["gradients"]}
    ways: dict[str, list[dict[str, Any]]] = {
        "known-noise": [
            {"solver": KnownNoise(clip=0.5)},
            {"solver": "known-noise", "select": other},
            {"solver": KnownNoise(clip=0.05)},
            {"solver": "known-noise", "select": span},
            {"solver": KnownNoise(projection="features")},
            {"solver": KnownNoise(mixing=0.5)},
            {"solver": KnownNoise(average=True)},
            {"solver": "known-noise", "steps": filtered},
            {"solver": "known-noise", "select": {"clip": [0.3, 1.0]}},
        ],
        "adamix": [
            {"solver": AdaMix(clipping="fixed")},
            {"solver": AdaMix(clipping="adaptive")},
            {"solver": AdaMix(clipping=FixedClip(0.05))},
            {"solver": AdaMix(projection="gradients")},
            {"solver": AdaMix(projection="features")},
            {"solver": AdaMix(mixing=0.5)},
            {"solver": AdaMix(average=True)},
            {"solver": "adamix", "steps": filtered},
            {"solver": "adamix", "select": {"clipping": clips}},
        ],
        "theory": [
            {"solver": Theory(clip=1.0)},
            {"solver": "theory", "select": other},
            {"solver": Theory(clip=0.05)},
            {"solver": "theory", "select": span},
            {"solver": Theory(projection="features")},
            {"solver": Theory(mixing=0.5)},
            {"solver": Theory(mixing=1.0)},
            {"solver": "theory", "steps": filtered},
            {"solver": "theory", "select": {"clip": [0.3, 1.0]}},
        ],
    }
    fixed = {"steps": _STEPS}
    for relation in ("replace-one", "add-remove"):
        for solver, each in ways.items():
            options: dict[str, Any]
            for options in (
                {"solver": solver},
                {"solver": solver, "start": "zero"},
                *each,
                {"solver": solver, "sample_size": 40.0},
                {"solver": solver, "keep_trajectory": True},
                {"solver": solver, "noise": "exact"},
            ):
                both = {**options, "relation": relation}
                yield _fitting(AdaMixClassifier, "three classes", both, fixed)
        clip_first = AdaMix(projection=GradientProjection(clip_first=True))
        both = {"solver": clip_first, "relation": relation}
        yield _fitting(AdaMixClassifier, "three classes", both, fixed)
        for options in (
            {},
            {"start": "public"},
            {"solver": NoisyGD(clip=0.05)},
            {"solver": NoisyGD(penalty=0.1)},
            {"solver": NoisyGD(average=True)},
            {"sample_size": 40.0},
            {"steps": filtered},
            {"noise": "exact"},
        ):
            both = {"relation": relation, **options}
            all_classes = {**fixed, "classes": [0, 1, 2]}
            yield _fitting(NoisyGDClassifier, "three classes", both, all_classes)


def _hybrid() -> Iterator[Combination]:
    from dpadapt.hybrid import (
        BitTest,
        EstimatorLearner,
        FiniteClassLearner,
        HybridTilt,
        PaperSchedule,
        PaperTest,
        ParityLearner,
        SGDLearner,
        SubsampleTestReweigh,
        TightSchedule,
    )
    from dpadapt.mixing import NoisyGDClassifier

    sparse_separators = _lazy.named("dpadapt.papers.hybrid.finite_class.sparse_separators")

    for features in ("linear", "squares", "quadratic"):
        facts: dict[str, Any] = {"features": features, "agent_epsilon": 1.0}
        yield _fitting(HybridTilt, "two classes", facts)
        yield _with_agents(HybridTilt, facts, changed="rows")
        yield _with_agents(HybridTilt, facts, changed="agents")
    inner = NoisyGDClassifier(**BUDGET, steps=3)
    rounds: dict[str, Any] = {"kappa": 0.3, "rate": 0.4, "rounds": 3}
    learners: tuple[dict[str, Any], ...] = (
        {"learner": "gradient"},
        {"learner": "gradient", "schedule": PaperSchedule(**rounds), "test": PaperTest(20)},
        {"learner": "gradient", "features": "squares"},
        {"learner": SGDLearner(steps=150)},
        {"learner": FiniteClassLearner(sparse_separators(3, 2))},
        {"learner": EstimatorLearner(inner, draws=10)},
        {"learner": ParityLearner(), "schedule": TightSchedule(rounds=1)},
    )
    fixed = {"agent_epsilon": 1.0, "schedule": TightSchedule(**rounds), "test": BitTest(batch=20)}
    for each in learners:
        facts = {**fixed, **each, "target_error": 0.01}
        yield _with_agents(SubsampleTestReweigh, facts, changed="rows")
        yield _with_agents(SubsampleTestReweigh, facts, changed="agents")


def _joint_hybrid() -> Iterator[Combination]:
    """One rule of three classes, learnt and tested jointly."""
    from dpadapt.hybrid import BitTest, EstimatorLearner, SubsampleTestReweigh, TightSchedule
    from dpadapt.mixing import NoisyGDClassifier

    inner = NoisyGDClassifier(**BUDGET, steps=3)
    for learner in ("gradient", EstimatorLearner(inner, draws=10)):
        facts: dict[str, Any] = {
            "learner": learner,
            "classes": [0, 1, 2],
            "agent_epsilon": 1.0,
            "schedule": TightSchedule(kappa=0.3, rate=0.4, rounds=3),
            "test": BitTest(batch=300),  # of 1,100: the changed one is asked
            "target_error": 0.01,
        }
        for changed in ("rows", "agents"):
            yield _with_agents(SubsampleTestReweigh, facts, changed=changed, task="three classes")


def _by_weights() -> Iterator[Combination]:
    """Kernel models whose weights of explicit features are released: they have no pool."""
    from dpadapt.kernels import (
        TDIL,
        Fourier,
        GaussianProcess,
        KernelClassifier,
        KernelRegressor,
        Nystroem,
    )

    kinds = ((KernelRegressor, "regression"), (KernelClassifier, "two classes"))
    for kind, task in kinds:
        for features in ("polynomial", Fourier(12), Nystroem(12)):
            kernel = "polynomial" if features == "polynomial" else "rbf"
            facts: dict[str, Any] = {"features": features, "kernel": kernel}
            yield _fitting(kind, task, {"release": GaussianProcess(), **facts})
        for release in (GaussianProcess(), TDIL()):
            facts = {"release": release, "features": "linear", "kernel": "linear"}
            yield _fitting(kind, task, facts)


def _with_agents(
    kind: Any, options: Mapping[str, Any], *, changed: str, task: str = "two classes"
) -> Combination:
    """A curator with agents; the changed person is a row of the one or one of the others."""
    X, y = public_sample(task)
    rng = np.random.default_rng(7)
    rows, agents = sample_of(task, rng), sample_of("agents", rng)

    def fit(sample: RowsAndLabels) -> Any:
        own, others = (sample, agents) if changed == "rows" else (rows, sample)
        model = kind(**{**BUDGET, **options})
        return model.fit(X, y, private=Private(*own), agents=Agents(*others))

    shown = {
        key: value for key, value in options.items() if key in ("features", "learner", "classes")
    }
    name = _named(kind, {**shown, "changed": changed})
    return Combination(name, fit, task if changed == "rows" else "agents")


def _auto() -> Iterator[Combination]:
    from dpadapt.auto import AutoClassifier, AutoRegressor

    for experts in (["linear"], ["linear", "trees"]):
        yield _fitting(AutoRegressor, "regression", {"experts": experts})
        yield _fitting(AutoClassifier, "two classes", {"experts": experts})
    yield _fitting(AutoRegressor, "regression", {"experts": ["fourier", "linear+trees"]})
    yield _fitting(AutoClassifier, "three classes", {"experts": ["linear", "trees"]})
    yield _fitting(AutoClassifier, "three classes", {"class_weight": "balanced"})  # few public rows


BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
_STEPS = 4
_PUBLIC_ROWS = 60


def public_sample(task: str) -> RowsAndLabels:
    """Made-up public rows and labels of a task."""
    X = np.random.default_rng(5).normal(size=(_PUBLIC_ROWS, 3))
    return X, task_labels(task, X)


def _one_at_a_time(
    main: Mapping[str, Sequence[Any]], others: Mapping[str, Sequence[Any]]
) -> Iterator[dict[str, Any]]:
    """Each value of the main option alone, and with each value of each other option."""
    for name, values in main.items():
        for value in values:
            yield {name: value}
            for other, choices in others.items():
                for choice in choices:
                    yield {name: value, other: choice}


def _named(kind: type, options: Mapping[str, Any]) -> str:
    return f"{kind.__name__}({', '.join(f'{k}={_short(v)}' for k, v in options.items())})"


def _short(value: Any) -> str:
    plain = (str, int, float, tuple, list, dict, bool, Strategy)
    return repr(value) if isinstance(value, plain) else f"{type(value).__name__}()"


def _fitting(
    kind: Any,
    task: str,
    options: Mapping[str, Any],
    fixed: Mapping[str, Any] | None = None,
    *,
    labelled: bool = True,
    solvers: Mapping[str, type] | None = None,
) -> Combination:
    """An estimator on rows; options of its solver go into the object, if that one has them."""
    X, y = public_sample(task)

    def fit(sample: RowsAndLabels) -> Any:
        given = {**BUDGET, **(fixed or {}), **options}
        model = kind(**(given if solvers is None else _with_solver(given, solvers)))
        if model.noise == "exact":
            model.random_state = None
        rows, labels = sample
        return model.fit(X, y, private=Private(rows, labels) if labelled else Private(rows))

    relation = options.get("relation", "replace-one")
    return Combination(_named(kind, options), fit, task, relation)


def _with_solver(given: Mapping[str, Any], solvers: Mapping[str, type]) -> dict[str, Any]:
    """Options of the solver as an object; those of other solvers are left out."""
    chosen = solvers[given["solver"]]
    own = {field.name for field in fields(chosen)}
    foreign = {field.name for kind in solvers.values() for field in fields(kind)}
    solver = chosen(**{name: value for name, value in given.items() if name in own})
    rest = {name: value for name, value in given.items() if name not in foreign | {"solver"}}
    return {**rest, "solver": solver}


def _given_to_the_solver(kind: Any) -> Any:
    """The estimator; options that are not its own go to its solver, which may refuse them."""
    own = inspect.signature(kind).parameters

    @wraps(kind, updated=())
    def make(**given: Any) -> Any:
        model = kind(**{name: value for name, value in given.items() if name in own})
        others = {f"solver__{name}": value for name, value in given.items() if name not in own}
        return model.set_params(**others)

    return make


def _nested(kind: Any) -> Any:
    """Take options of an object inside too, such as ``release__calibration``, if it has them."""

    @wraps(kind, updated=())
    def make(**given: Any) -> Any:
        own = {name: value for name, value in given.items() if "__" not in name}
        return kind(**own).set_params(**{name: given[name] for name in given.keys() - own.keys()})

    return make
