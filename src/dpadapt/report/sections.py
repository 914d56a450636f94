"""What a method says about itself in a report: from its parameters and fitted attributes only."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from dpadapt.discrepancy import DiscrepancyRegressor
from dpadapt.hybrid import HybridTilt, SubsampleTestReweigh
from dpadapt.kernels import KernelClassifier, KernelRegressor
from dpadapt.mixing import AdaMixClassifier, NoisyGDClassifier
from dpadapt.privacy import Guarantee
from dpadapt.reweighting import ReweightingClassifier, ReweightingRegressor

from .hybrid_stories import hybrid_model
from .kernel_stories import kernel_model
from .stories import Fact, Story, class_facts
from .wording import RADII, SOLVERS, number, percent

__all__ = ["story"]


@singledispatch
def story(estimator: Any, guarantee: Guarantee) -> Story:
    """Tell how a fitted model came about; any linear model that reads private labels by default.

    Examples
    --------
    >>> model = DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> told = story(model, model.guarantee_)
    >>> told.public_rows, told.reads_labels
    (2, False)
    """
    first = (inspect.getdoc(type(estimator)) or "").partition("\n")[0]
    if not guarantee.events:
        return Story(f"{first} Fitted on public rows alone.", class_facts(estimator), assumption="")
    return Story(first, class_facts(estimator))


@story.register
def _(estimator: DiscrepancyRegressor, guarantee: Guarantee) -> Story:
    weights = np.asarray(estimator.weights_)
    rows = len(weights)
    told = Story(
        "A ridge regression on the public rows.",
        reads_labels=False,
        public_rows=rows,
        radius=RADII["longest" if estimator.radius is None else "given"],
        assumption="The method assumes that the label depends on the columns in the same way in "
        "both samples. Private labels are never seen, so that a difference there would go "
        "unnoticed.",
    )
    if not guarantee.events:
        return told
    if not estimator.adapted_:
        return replace(
            told,
            title="Not adapted.",
            warning="No weights make the public rows look like the private ones. The model is the "
            "one trained on public data alone, and is the same whatever the private rows are, "
            "apart from this decision.",
        )
    if np.ptp(weights) == 0:
        summary = (
            "Within the noise the two samples look alike: all public rows keep the same weight, "
            "and the model is the one of public data alone."
        )
        return replace(told, summary=summary)
    effective = 1 / float(np.sum(weights**2))
    summary = (
        f"The public rows were weighted to look like the private ones{_remaining(estimator)} The "
        f"weighted rows are worth about {effective:,.0f} rows of equal weight, out of {rows:,}."
    )
    return replace(told, summary=summary, facts=_bound_on_error(estimator))


def _remaining(estimator: DiscrepancyRegressor) -> str:
    """What weights leave of the difference; nothing where no release tells."""
    whole, part = estimator.uniform_discrepancy_, estimator.discrepancy_
    if part is None or not whole:
        return "."
    return (
        f": {percent(part / whole)} of the difference between the two samples remains, measured "
        "on the noisy release."
    )


@story.register
def _(estimator: ReweightingRegressor, guarantee: Guarantee) -> Story:
    return _reweighting(estimator, guarantee, "ridge regression")


@story.register
def _(estimator: ReweightingClassifier, guarantee: Guarantee) -> Story:
    if estimator.module is None:
        return _reweighting(estimator, guarantee, "logistic regression")
    size = sum(each.numel() for each in estimator.module_.parameters())
    told = _reweighting(estimator, guarantee, "neural network")
    kind = type(estimator.module_).__name__
    network = Fact("network", kind, f"of torch, with {size:,} parameters, which are not listed")
    return replace(told, facts=(network, *told.facts))


def _reweighting(estimator: Any, guarantee: Guarantee, model: str) -> Story:
    if not guarantee.events:
        summary = f"A {model} on the public rows; there was no private sample to adapt it to."
        return Story(summary, class_facts(estimator), assumption="")
    facts = [*_chosen(estimator), *_bound_on_error(estimator)]
    if estimator.plan_ is None:
        summary = f"A {model}, fitted to public and private rows by {SOLVERS[estimator.solver]}."
        facts = [*class_facts(estimator), *facts]
        return Story(summary, tuple(facts), radius=_paper_radius(estimator))
    plan, share = estimator.plan_, float(estimator.share_)
    summary = f"The {model} of the public rows, moved downhill on the loss of the private ones. "
    if share == 0:
        summary += "Nothing of the move was kept, since noise alone would have made one as large: "
        summary += "the model is the one of public data alone."
    elif share < 1:
        summary += f"{percent(share)} of the move was kept: as much as is more than noise."
    else:
        summary += "All of the move was kept."
    found = [
        *class_facts(estimator),
        Fact("kept of the move", percent(share), "0 % is the model of the public rows"),
        Fact("horizon", number(plan.horizon), "how far to go: longer learns more, and more noise"),
        Fact("steps", number(plan.steps), "noisy gradients that were released"),
        Fact("clip", number(plan.clip), "bound on the length of one row's gradient; public"),
    ]
    if plan.level_share > 0:
        meaning = f"for the mean error alone, each row's bounded by {number(plan.level_clip)}"
        found.append(Fact("level", f"{percent(plan.level_share)} of the squared budget", meaning))
    far = {"radius (clipped gradient)": RADII["far"]}
    return Story(summary, (*found, *facts), radius=_paper_radius(estimator), radii=far)


def _paper_radius(estimator: Any) -> str:
    return RADII["quantile" if estimator.radius is None else "given"]


@story.register
def _(estimator: AdaMixClassifier, guarantee: Guarantee) -> Story:
    return _directions(estimator, guarantee, SOLVERS[f"mixing {estimator.solver}"])


@story.register
def _(estimator: NoisyGDClassifier, guarantee: Guarantee) -> Story:
    return _directions(estimator, guarantee, SOLVERS["noisy gradient descent"])


def _directions(estimator: Any, guarantee: Guarantee, solver: str) -> Story:
    """Tell about the classifiers of directions."""
    start = estimator.start if isinstance(estimator.start, str) else "given"
    origin = "fitted to the public rows alone" if start != "given" else "as it was given"
    told = Story(
        f"A linear classifier of directions, {origin}.",
        class_facts(estimator),
        assumption="",
        radius=RADII["direction"],
        features="direction",
    )
    if not guarantee.events:
        return told
    use = "where training starts, and the centre from which rows are seen as directions"
    if not np.any(estimator.features_.center):
        use = "nothing that the model tells of: directions are seen from zero, as without any"
    starts = {
        "public": "the model of the public rows (zero if there are none)",
        "zero": "zero",
        "given": "weights that were given",
    }
    facts = [
        Fact("start", start, starts[start]),
        Fact("steps", number(estimator.n_steps_), "noisy sums of clipped gradients"),
        Fact(
            "noise over clip",
            number(estimator.sigma_),
            "of every sum, to which one row adds 1 at most",
        ),
        Fact("clip", _range(estimator.clips_), "bound on the length of one row's gradient; public"),
        _sample_size(estimator, guarantee),
    ]
    if hasattr(estimator, "plan_"):
        noise = "standard deviation that noise gives a score (a logit); kept at 1 or below"
        facts.append(Fact("noise of a score", number(estimator.plan_.kappa), noise))
    made = {}
    if estimator.individual_filter is not None:
        made = {"clipped gradients": int(estimator.n_steps_)}
        meaning = "each row takes part until its own budget is spent; who has stopped stays secret"
        facts.append(Fact("individual filter", number(estimator.individual_filter), meaning))
    facts += _chosen(estimator)
    return replace(
        told,
        summary=f"A linear classifier of directions (rows of length 1), by {solver}.",
        facts=(*class_facts(estimator), *facts),
        assumption=Story.assumption,
        public_use=use,
        made=made,
    )


@story.register
def _(estimator: KernelClassifier, guarantee: Guarantee) -> Story:
    return kernel_model(estimator, guarantee, "classifier")


@story.register
def _(estimator: KernelRegressor, guarantee: Guarantee) -> Story:
    return kernel_model(estimator, guarantee, "regression")


@story.register
def _(estimator: HybridTilt, guarantee: Guarantee) -> Story:
    return hybrid_model(estimator, guarantee, SOLVERS["hybrid tilt"])


@story.register
def _(estimator: SubsampleTestReweigh, guarantee: Guarantee) -> Story:
    return hybrid_model(estimator, guarantee, SOLVERS["subsample-test-reweigh"])


def _sample_size(estimator: Any, guarantee: Guarantee) -> Fact:
    """Number of rows that the steps count on, and how it is known."""
    name, size = "rows counted on", f"{estimator.sample_size_:,.0f}"
    if estimator.sample_size is not None:
        return Fact(name, size, "a public guess by whoever fitted the model")
    if guarantee.relation == "replace-one":
        return Fact(name, size, "the number of private rows, which counts as public")
    return Fact(name, size, "a noisy count, released and charged for; the true one is secret")


def _chosen(estimator: Any) -> tuple[Fact, ...]:
    """Tell parameters that were chosen with privacy."""
    chosen = getattr(estimator, "selected_", None)
    if chosen is None and getattr(estimator, "chosen_", None) is not None:
        chosen = {name: getattr(estimator.chosen_, name) for name in ("alpha", "kappa")}
    if chosen is None:
        return ()
    told = ", ".join(f"{name} {number(value)}" for name, value in chosen.items())
    return (Fact("chosen", told, "from values given beforehand, by private rows, and charged for"),)


def _bound_on_error(estimator: Any) -> tuple[Fact, ...]:
    """Tell the certificate, where one was asked for."""
    certificate = getattr(estimator, "certificate_", None)
    if certificate is None:
        return ()
    return (Fact("bound on the error", number(certificate.bound), _first_line(certificate)),)


def _first_line(thing: Any) -> str:
    return str(thing).partition("\n")[0]


def _range(values: Any) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return number(low) if low == high else f"{number(low)} to {number(high)}"
