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

from dpadapt.privacy import Agents, Private

from .hostile import Combination, Sample, labels_of, sample_of

__all__ = ["combinations"]

_BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
_STEPS = 4
_PUBLIC = 60


def combinations(*, names: Sequence[str] = ()) -> list[Combination]:
    """All combinations, or those of the named estimators.

    Examples
    --------
    >>> found = combinations(names=["DiscrepancyRegressor"])
    >>> found[0].name, found[0].estimator
    ("DiscrepancyRegressor(solver='moments')", 'DiscrepancyRegressor')
    """
    found = [*_regressors(), *_classifiers(), *_kernels(), *_mixing(), *_hybrid()]
    return [one for one in found if not names or one.estimator in names]


def _public(task: str) -> Sample:
    X = np.random.default_rng(5).normal(size=(_PUBLIC, 3))
    return X, labels_of(task, X)


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
    return (
        repr(value)
        if isinstance(value, (str, int, float, tuple, list, dict, bool))
        else (f"{type(value).__name__}()")
    )


def _fitting(
    kind: Any,
    task: str,
    options: Mapping[str, Any],
    fixed: Mapping[str, Any] | None = None,
    *,
    labelled: bool = True,
) -> Combination:
    X, y = _public(task)

    def fit(sample: Sample) -> Any:
        model = kind(**{**_BUDGET, **(fixed or {}), **options})
        if model.noise == "exact":
            model.random_state = None
        rows, labels = sample
        return model.fit(X, y, private=Private(rows, labels) if labelled else Private(rows))

    relation = options.get("relation", "replace-one")
    return Combination(_named(kind, options), fit, task, relation)


def _regressors() -> Iterator[Combination]:
    from dpadapt import baselines as b
    from dpadapt.discrepancy import DiscrepancyRegressor
    from dpadapt.reweighting import ReweightingRegressor

    for options in _one_at_a_time(
        {"solver": ["moments", "frank-wolfe", "mirror-descent", "single-stage"]},
        {
            "objective": ["single-stage"],
            "calibration": ["paper"],
            "smoothing": ["p-norm"],
            "geometry": ["p-norm"],
            "noise_on": ["gradient"],
            "iterate": ["uniform", "select"],
            "certificate": [True],
            "penalty": [0.1],
            "radius": [1.5],
            "max_remaining": [1.0],
            "noise": ["exact"],
        },
    ):
        fixed = {} if options["solver"] == "moments" else {"steps": _STEPS}
        yield _fitting(DiscrepancyRegressor, "regression", options, fixed, labelled=False)
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
            "label_range": [(-2.0, 2.0)],
            "noise": ["exact"],
        },
    ):
        fixed = {} if options["solver"] in ("known-noise", "statistics") else {"steps": _STEPS}
        yield _fitting(ReweightingRegressor, "regression", options, fixed)
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
            yield _fitting(ReweightingClassifier, task, options, fixed)
        for residual in (False, True):
            yield _fitting(b.AdaSSPClassifier, task, {"residual": residual})
        for start in ("zero", "public"):
            yield _fitting(b.NoisyGradientClassifier, task, {"start": start}, {"steps": _STEPS})


def _kernels() -> Iterator[Combination]:
    from dpadapt.kernels import KernelClassifier, KernelRegressor

    releases = ("gaussian-process", "tddl", "tdil")
    for release in releases:
        for kernel in ("rbf", "linear", "polynomial", "laplacian", "cosine", "chi2"):
            facts = {"release": release, "kernel": kernel}
            yield _fitting(KernelRegressor, "regression", facts)
    others: dict[str, Sequence[Any]] = {
        "calibration": ["laplace", "paper"],
        "features": ["none", "linear", "polynomial", "fourier", "nystroem"],
        "penalty": [0.1],
        "radius": [1.5],
        "noise": ["exact"],
    }
    fixed = {"n_components": 12}
    for options in _one_at_a_time(
        {"release": releases}, {**others, "loss": ["epsilon-insensitive"]}
    ):
        yield _fitting(KernelRegressor, "regression", options, fixed)
    for options in _one_at_a_time({"release": releases}, {**others, "loss": ["hinge"]}):
        yield _fitting(KernelClassifier, "two classes", options, fixed)
    for options in _one_at_a_time(
        {"multiclass": ["softmax", "one-vs-rest"]},
        {"loss": ["hinge", "huberised-hinge"], "release": ["tddl", "tdil"]},
    ):
        yield _fitting(KernelClassifier, "three classes", options, fixed)
    for kind, task in ((KernelRegressor, "regression"), (KernelClassifier, "three classes")):
        yield _asking(kind, task)
    for options in ({"method": "pinp"}, {"method": "sparse-vector"}):
        yield _asking(KernelRegressor, "regression", options)
        yield _asking(KernelClassifier, "two classes", options)
    yield _asking(KernelRegressor, "regression", {"method": "pinp", "calibration": "paper"})


def _asking(kind: Any, task: str, options: Mapping[str, Any] = MappingProxyType({})) -> Combination:
    """A predictor that is asked; what it answers is what it publishes."""
    from dpadapt.kernels import InteractivePredictor

    X, y = _public(task)

    def fit(sample: Sample) -> Any:
        predictor = InteractivePredictor(kind(**_BUDGET), **options)
        predictor.fit(X, y, private=Private(*sample))
        told = [predictor.predict(X[:3]), predictor.predict(X[2:9]), predictor.guarantee_]
        predictor.close()
        return told

    told_of = "".join(f", {name}={value!r}" for name, value in options.items())
    return Combination(f"InteractivePredictor({kind.__name__}{told_of})", fit, task)


def _mixing() -> Iterator[Combination]:
    from dpadapt.mixing import AdaMixClassifier, NoisyGDClassifier

    for relation in ("replace-one", "add-remove"):
        for options in _one_at_a_time(
            {"solver": ["known-noise", "adamix", "theory"]},
            {
                "start": ["zero"],
                "clipping": ["fixed", "adaptive"],
                "clip": [0.05],
                "projection": ["gradients", "features"],
                "mixing": [0.5],
                "average": [True],
                "individual_filter": [3.0],
                "select": [{"clip": [0.3, 1.0]}],
                "sample_size": [40.0],
                "keep_trajectory": [True],
                "noise": ["exact"],
            },
        ):
            both = {**options, "relation": relation}
            yield _fitting(AdaMixClassifier, "three classes", both, {"steps": _STEPS})
        both = {"solver": "adamix", "projection": "gradients", "clip_first": True}
        both["relation"] = relation
        yield _fitting(AdaMixClassifier, "three classes", both, {"steps": _STEPS})
        for options in _one_at_a_time(
            {"relation": [relation]},
            {
                "start": ["public"],
                "clip": [0.05],
                "penalty": [0.1],
                "average": [True],
                "sample_size": [40.0],
                "individual_filter": [3.0],
                "noise": ["exact"],
            },
        ):
            fixed = {"steps": _STEPS, "classes": [0, 1, 2]}
            yield _fitting(NoisyGDClassifier, "three classes", options, fixed)


def _hybrid() -> Iterator[Combination]:
    from dpadapt.hybrid import (
        EstimatorLearner,
        FiniteClassLearner,
        HybridTilt,
        ParityLearner,
        SGDLearner,
        SubsampleTestReweigh,
    )
    from dpadapt.hybrid.finite_class import sparse_separators
    from dpadapt.mixing import NoisyGDClassifier

    for features in ("linear", "squares", "quadratic"):
        facts: dict[str, Any] = {"features": features, "agent_epsilon": 1.0}
        yield _fitting(HybridTilt, "two classes", facts)
        yield _with_agents(HybridTilt, facts, changed="rows")
        yield _with_agents(HybridTilt, facts, changed="agents")
    inner = NoisyGDClassifier(**_BUDGET, steps=3)
    learners = (
        {"learner": "gradient"},
        {"learner": "gradient", "calibration": "paper"},
        {"learner": "gradient", "features": "squares"},
        {"learner": SGDLearner(steps=150)},
        {"learner": FiniteClassLearner(sparse_separators(3, 2))},
        {"learner": EstimatorLearner(inner, draws=10)},
        {"learner": ParityLearner(), "rounds": 1},
    )
    fixed = {"agent_epsilon": 1.0, "kappa": 0.3, "rate": 0.4, "rounds": 3, "batch": 20}
    for each in learners:
        facts = {**fixed, **each, "target_error": 0.01}
        yield _with_agents(SubsampleTestReweigh, facts, changed="rows")
        yield _with_agents(SubsampleTestReweigh, facts, changed="agents")


def _with_agents(kind: Any, options: Mapping[str, Any], *, changed: str) -> Combination:
    """A curator with agents; the changed person is a row of the one or one of the others."""
    X, y = _public("two classes")
    rng = np.random.default_rng(7)
    rows, agents = sample_of("two classes", rng), sample_of("agents", rng)

    def fit(sample: Sample) -> Any:
        own, others = (sample, agents) if changed == "rows" else (rows, sample)
        model = kind(**{**_BUDGET, **options})
        return model.fit(X, y, private=Private(*own), agents=Agents(*others))

    shown = {key: value for key, value in options.items() if key in ("features", "learner")}
    name = _named(kind, {**shown, "changed": changed})
    return Combination(name, fit, "two classes" if changed == "rows" else "agents")
