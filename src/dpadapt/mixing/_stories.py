"""What a report tells of the classifiers of directions."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from dpadapt.learning.story import RADII, Fact, Story, class_facts, number

_STARTS = {
    "public": "the model of the public rows (zero if there are none)",
    "zero": "zero",
    "given": "weights that were given",
}


def direction_story(estimator: Any, solver: str, individual_filter: float | None) -> Story:
    """Tell how a fitted classifier came about, by its solver in words.

    Examples
    --------
    >>> from dpadapt.mixing import NoisyGDClassifier
    >>> model = NoisyGDClassifier(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0, 1])
    >>> direction_story(model, "noisy gradient descent", None).summary
    'A linear classifier of directions, fitted to the public rows alone.'
    """
    start = estimator.start if isinstance(estimator.start, str) else "given"
    origin = "fitted to the public rows alone" if start != "given" else "as it was given"
    told = Story(
        f"A linear classifier of directions, {origin}.",
        class_facts(estimator),
        assumption="",
        radius=RADII["direction"],
        features="direction",
    )
    if not estimator.guarantee_.events:
        return told
    use = "where training starts, and the centre from which rows are seen as directions"
    if not np.any(estimator.features_.center):
        use = "nothing that the model tells of: directions are seen from zero, as without any"
    facts = [
        Fact("start", start, _STARTS[start]),
        Fact("steps", number(estimator.n_steps_), "noisy sums of clipped gradients"),
        Fact(
            "noise over clip",
            number(estimator.sigma_),
            "of every sum, to which one row adds 1 at most",
        ),
        Fact("clip", _range(estimator.clips_), "bound on the length of one row's gradient; public"),
        _sample_size(estimator),
    ]
    if hasattr(estimator, "plan_"):
        noise = "standard deviation that noise gives a score (a logit); kept at 1 or below"
        facts.append(Fact("noise of a score", number(estimator.plan_.kappa), noise))
    made = {}
    if individual_filter is not None:
        made = {"clipped gradients": int(estimator.n_steps_)}
        meaning = "each row takes part until its own budget is spent; who has stopped stays secret"
        facts.append(Fact("individual filter", number(individual_filter), meaning))
    return replace(
        told,
        summary=f"A linear classifier of directions (rows of length 1), by {solver}.",
        facts=(*class_facts(estimator), *facts, *_chosen(estimator)),
        assumption=Story.assumption,
        public_use=use,
        made=made,
    )


def _sample_size(estimator: Any) -> Fact:
    """Number of rows that the steps count on, and how it is known."""
    name, size = "rows counted on", f"{estimator.sample_size_:,.0f}"
    if estimator.sample_size is not None:
        return Fact(name, size, "a public guess by whoever fitted the model")
    if estimator.guarantee_.relation == "replace-one":
        return Fact(name, size, "the number of private rows, which counts as public")
    return Fact(name, size, "a noisy count, released and charged for; the true one is secret")


def _chosen(estimator: Any) -> tuple[Fact, ...]:
    """Tell options that were chosen with privacy."""
    if not hasattr(estimator, "selected_"):
        return ()
    told = ", ".join(
        f"{name} {number(value) if isinstance(value, Real) else value}"
        for name, value in estimator.selected_.items()
    )
    return (Fact("chosen", told, "from values given beforehand, by private rows, and charged for"),)


def _range(values: Any) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return number(low) if low == high else f"{number(low)} to {number(high)}"
