"""The methods that paper 004's experiments compare, and how one run of them is measured."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpadapt.mixing import (
    AdaMix,
    AdaMixClassifier,
    KnownNoise,
    NoisyGD,
    NoisyGDClassifier,
    StepsAtNoise,
)
from dpadapt.mixing.solver import row_mu
from dpadapt.privacy import Private

from .tasks import PENALTIES, Sample, error_of, fit_plain, non_private, public_only

__all__ = ["ABLATION", "DELTA", "PRIVATE", "Run", "fit_private", "limits", "measure"]

DELTA = 1e-5
PENALTY = 1e-2  # the paper's, of the squared length of the weights
WEAK_PENALTY = 1e-4  # rows have length 1 here, so that the paper's weighs more than in the paper
FEW_SHOT, NO_PRIVACY, OURS = "few-shot (public only)", "no privacy", "dpadapt"
WEAK = "AdaMix, weak penalty"
WEAK_BASE, WEAK_BOTH = "NGD, weak penalty", "NGD + both (gradients), weak penalty"
PRIVATE = ("NoisyGD", "AdaMix", OURS)  # compared in most figures
_SIGMA = 20.0  # the paper's
_SOLVERS: Mapping[str, Any] = {
    "NGD": AdaMix(clipping="fixed"),
    "NGD + projection (gradients)": AdaMix(clipping="fixed", projection="gradients"),
    "NGD + projection (features)": AdaMix(clipping="fixed", projection="features"),
    "NGD + adaptive clipping": AdaMix(),
    "NGD + both (gradients)": AdaMix(projection="gradients"),
    "NGD + both (features)": AdaMix(projection="features"),
    "AdaMix": AdaMix(),
    WEAK_BASE: AdaMix(clipping="fixed", penalty=WEAK_PENALTY),
    WEAK: AdaMix(penalty=WEAK_PENALTY),
    WEAK_BOTH: AdaMix(projection="gradients", penalty=WEAK_PENALTY),
    "NoisyGD": NoisyGD(penalty=PENALTY),
    OURS: KnownNoise(),
}
ABLATION = (
    "NGD",
    "NGD + projection (gradients)",
    "NGD + projection (features)",
    "NGD + adaptive clipping",
    "NGD + both (gradients)",
    "NGD + both (features)",
    WEAK_BASE,
    WEAK,
    WEAK_BOTH,
    "NoisyGD",
    OURS,
)


@dataclass(frozen=True)
class Run:
    """What is run on one sample.

    Parameters
    ----------
    method : str
        "NoisyGD" is Algorithm 1 from zero; "NGD" the same from the public model with public
        gradients mixed in, the baseline of Figure 5; "AdaMix" Algorithm 2 without projection, all
        three with the paper's penalty.
    epsilon : float
    relation : {"add-remove", "replace-one"}
    options : mapping
        What is other than usual: ``percentile`` of the adaptive clip, ``sigma`` (noise of a step
        over its clip), ``keep_trajectory``.

    Examples
    --------
    >>> Run("AdaMix", 3.0).relation
    'add-remove'
    """

    method: str
    epsilon: float
    relation: str = "add-remove"
    options: Mapping[str, Any] = field(default_factory=dict)


def fit_private(sample: Sample, run: Run, seed: int | None = None) -> Any:
    """Fit a private method: settings as the paper states them, nothing chosen on test rows.

    Parameters
    ----------
    sample : Sample
    run : Run
    seed : int, optional
        Of the noise; by default the sample's.

    Examples
    --------
    >>> from .tasks import TASKS, draw
    >>> model = fit_private(draw(TASKS["digits"], seed=0), Run("NoisyGD", 1.0))
    >>> model.n_steps_, round(model.guarantee_.epsilon, 6)
    (28, 1.0)
    """
    options: dict[str, Any] = {
        "epsilon": run.epsilon,
        "delta": DELTA,
        "relation": run.relation,
        "solver": _SOLVERS[run.method],
        "noise": "seeded",
        "random_state": sample.seed if seed is None else seed,
    }
    if _SIGMA * row_mu(run.epsilon, DELTA, run.relation) < 1 and run.method != OURS:
        options["steps"] = 1  # with the paper's noise not one step would fit
    for name, value in run.options.items():
        if name == "percentile":
            options["solver"] = options["solver"].with_params(clipping__percentile=value)
        elif name == "sigma":
            options["steps"] = StepsAtNoise(value)
        else:
            options[name] = value
    model: Any = (NoisyGDClassifier if run.method == "NoisyGD" else AdaMixClassifier)(**options)
    private = Private(sample.X_private, sample.y_private)
    return model.fit(sample.X_public, sample.y_public, private=private)


def measure(sample: Sample, run: Run) -> dict[str, Any]:
    """One line of a table: test error, true epsilon and CPU seconds of a run.

    Examples
    --------
    >>> from .tasks import TASKS, draw
    >>> line = measure(draw(TASKS["digits"], seed=0), Run("dpadapt", 3.0))
    >>> line["method"], line["error"] < 0.1
    ('dpadapt', True)
    """
    start = time.process_time()
    model = fit_private(sample, run)
    seconds = time.process_time() - start
    return {
        "method": run.method,
        "epsilon": run.epsilon,
        "relation": run.relation,
        "error": error_of(model, sample),
        "true_epsilon": model.guarantee_.epsilon,
        "steps": model.n_steps_,
        "seconds": seconds,
    }


def limits(sample: Sample) -> list[dict[str, Any]]:
    """Lines of the two ends: public examples alone, and no privacy.

    Examples
    --------
    >>> from .tasks import TASKS, draw
    >>> [line["epsilon"] for line in limits(draw(TASKS["digits"], seed=0))]
    [0.0, inf]
    """
    return [
        {"method": FEW_SHOT, "epsilon": 0.0, "error": public_only(sample), "true_epsilon": 0.0},
        {
            "method": NO_PRIVACY,
            "epsilon": math.inf,
            "error": non_private(sample),
            "true_epsilon": math.inf,
        },
    ]


def plain_fit(sample: Sample, X: Any, y: Any) -> Any:
    """The model without privacy of some private rows and all public ones, to be attacked."""
    rows, codes = np.vstack([X, sample.X_public]), np.concatenate([y, sample.y_public])
    return fit_plain(sample, rows, codes, PENALTIES[0])


def with_private(sample: Sample, X: Any, y: Any) -> Sample:
    """The sample with other private rows."""
    return replace(sample, X_private=X, y_private=y)
