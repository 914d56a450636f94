"""Every estimator of the library with its options, to be replayed.

Each value of each option is tried with each solver (or release), one at a time; what an estimator
refuses by its public rules is left out.

One method is not replayed: objective perturbation. Its noise goes into what is minimised, and its
proof speaks of the noise that would have led to the same minimum, not of a value that moves by a
sensitivity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dpadapt import _lazy
from dpadapt.privacy import Agents, Private

from ._combining import (
    BUDGET,
    STEPS,
    fitting,
    given_to_the_solver,
    named,
    nested,
    one_at_a_time,
    public_sample,
)
from .hostile import Combination, Sample, sample_of

LABELS = (-2.0, 2.0)  # that private labels are said to lie in


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
    for options in one_at_a_time(
        {"solver": ["moments", "frank-wolfe", "mirror-descent", "single-stage"]},
        {
            "objective": ["single-stage"],
            "calibration": ["paper"],
            "smoothing": ["p-norm"],
            "geometry": ["p-norm"],
            "noise_on": ["gradient"],
            "iterate": ["uniform", "select"],
            "certificate": [d.PrivateLabels(LABELS, label_difference=1.0)],
            "penalty": [0.1],
            "radius": [1.5],
            "max_remaining": [1.0],
            "noise": ["exact"],
        },
    ):
        steps = {"steps": STEPS}
        rest: Any = {"labelled": False, "solvers": solvers}
        yield fitting(d.DiscrepancyRegressor, "regression", options, steps, **rest)
    for options in one_at_a_time(
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
            "label_range": [LABELS],
            "noise": ["exact"],
        },
    ):
        fixed: Any = {} if options["solver"] in ("known-noise", "statistics") else {"steps": STEPS}
        if "certificate" in options:  # which needs what is stated of private labels
            fixed = {**fixed, "label_range": LABELS}
        made = given_to_the_solver(ReweightingRegressor)
        yield fitting(made, "regression", options, fixed)
    for residual in (False, True):
        for noise in ("seeded", "exact"):
            facts = {"residual": residual, "noise": noise}
            yield fitting(b.AdaSSPRegressor, "regression", facts)
    for start in ("zero", "public"):
        yield fitting(b.NoisyGradientRegressor, "regression", {"start": start}, {"steps": STEPS})
    for calibration in ("tight", "paper"):
        facts = {"calibration": calibration}
        yield fitting(b.NoisySGDRegressor, "regression", facts, {"steps": STEPS})


def _classifiers() -> Iterator[Combination]:
    from dpadapt import baselines as b
    from dpadapt.reweighting import ReweightingClassifier

    for task in ("two classes", "three classes"):
        for options in one_at_a_time(
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
            fixed = {} if options["solver"] == "known-noise" else {"steps": STEPS}
            made = given_to_the_solver(ReweightingClassifier)
            yield fitting(made, task, options, fixed)
        for residual in (False, True):
            yield fitting(b.AdaSSPClassifier, task, {"residual": residual})
        for start in ("zero", "public"):
            yield fitting(b.NoisyGradientClassifier, task, {"start": start}, {"steps": STEPS})


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
            yield fitting(KernelRegressor, "regression", facts)
    releases = (GaussianProcess(points=12), TDDL(points=12), TDIL(points=12))
    others: dict[str, Sequence[Any]] = {
        "release__calibration": ["laplace", "paper"],
        "features": ["none", "linear", "polynomial", Fourier(12), Nystroem(12)],
        "penalty": [0.1],
        "radius": [1.5],
        "noise": ["exact"],
    }
    for options in one_at_a_time(
        {"release": releases}, {**others, "loss": ["epsilon-insensitive"]}
    ):
        yield fitting(nested(KernelRegressor), "regression", options)
    for options in one_at_a_time({"release": releases}, {**others, "loss": ["hinge"]}):
        yield fitting(nested(KernelClassifier), "two classes", options)
    small = {"release": releases[0]}
    for options in one_at_a_time(
        {"multiclass": ["softmax", "one-vs-rest"]},
        {"loss": ["hinge", "huberised-hinge"], "release": list(releases[1:])},
    ):
        yield fitting(KernelClassifier, "three classes", options, small)
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

    def fit(sample: Sample) -> Any:
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

    filtered = Steps(STEPS, individual_filter=3.0)
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
    fixed = {"steps": STEPS}
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
                yield fitting(AdaMixClassifier, "three classes", both, fixed)
        clip_first = AdaMix(projection=GradientProjection(clip_first=True))
        both = {"solver": clip_first, "relation": relation}
        yield fitting(AdaMixClassifier, "three classes", both, fixed)
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
            yield fitting(NoisyGDClassifier, "three classes", both, all_classes)


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
        yield fitting(HybridTilt, "two classes", facts)
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
            yield fitting(kind, task, {"release": GaussianProcess(), **facts})
        for release in (GaussianProcess(), TDIL()):
            facts = {"release": release, "features": "linear", "kernel": "linear"}
            yield fitting(kind, task, facts)


def _with_agents(
    kind: Any, options: Mapping[str, Any], *, changed: str, task: str = "two classes"
) -> Combination:
    """A curator with agents; the changed person is a row of the one or one of the others."""
    X, y = public_sample(task)
    rng = np.random.default_rng(7)
    rows, agents = sample_of(task, rng), sample_of("agents", rng)

    def fit(sample: Sample) -> Any:
        own, others = (sample, agents) if changed == "rows" else (rows, sample)
        model = kind(**{**BUDGET, **options})
        return model.fit(X, y, private=Private(*own), agents=Agents(*others))

    shown = {
        key: value for key, value in options.items() if key in ("features", "learner", "classes")
    }
    name = named(kind, {**shown, "changed": changed})
    return Combination(name, fit, task if changed == "rows" else "agents")


def _auto() -> Iterator[Combination]:
    from dpadapt.auto import AutoClassifier, AutoRegressor

    for experts in (["linear"], ["linear", "trees"]):
        yield fitting(AutoRegressor, "regression", {"experts": experts})
        yield fitting(AutoClassifier, "two classes", {"experts": experts})
    yield fitting(AutoRegressor, "regression", {"experts": ["fourier", "linear+trees"]})
    yield fitting(AutoClassifier, "three classes", {"experts": ["linear", "trees"]})
    yield fitting(AutoClassifier, "three classes", {"class_weight": "balanced"})  # few public rows
