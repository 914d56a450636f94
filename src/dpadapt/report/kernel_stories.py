"""What the kernel models say about themselves in a report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpadapt.privacy import Guarantee

from .stories import Fact, Story, class_facts
from .wording import number, short

__all__ = ["kernel_model"]

_RELEASES = {
    "gaussian-process": "released once, with Gaussian noise in the kernel's own space",
    "tddl": "released by its values at public points (Jain and Thakurta 2013, Algorithm 2)",
    "tdil": "learnt from noisy answers at chosen points (Jain and Thakurta 2013, Algorithm 3, "
    "with the selection corrected)",
}


def kernel_model(estimator: Any, guarantee: Guarantee, kind: str) -> Story:
    """Tell about a fitted kernel model.

    Examples
    --------
    >>> from dpadapt import KernelRegressor
    >>> model = KernelRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> kernel_model(model, model.guarantee_, "regression").summary
    'A kernel regression of the public rows.'
    """
    kernel = estimator.kernel if isinstance(estimator.kernel, str) else "of one's own"
    bound = estimator.setup_.radius
    told = Story(
        f"A kernel {kind} of the public rows.",
        (
            *class_facts(estimator),
            Fact("kernel", kernel, "similarity of two rows; chosen beforehand"),
            Fact("penalty", number(estimator.penalty_), "lambda, on the squared norm; public"),
            Fact("length of features", short(bound), "sqrt(K(x, x)) at most, by a public rule"),
        ),
        assumption="",
        features="feature",
    )
    if not guarantee.events:
        return told
    return replace(
        told,
        summary=f"A kernel {kind} of the private rows, {_RELEASES[estimator.release]}.",
        assumption=Story.assumption,
        public_use="units of the columns, classes or range of the labels, bounds, points of a pool",
        radius="by a public rule: longer feature vectors are shrunk to the stated length",
    )
