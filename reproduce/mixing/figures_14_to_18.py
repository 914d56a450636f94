"""Paper 004's looks at private rows: gradients in a public subspace, and what each row lost.

Nothing here is a release: the numbers depend on the private rows without noise. They may be shown
because these data sets are public; of private data they may not be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.mixing import unsafe_individual_losses
from dpadapt.mixing.projection import GradientSpan
from dpadapt.mixing.softmax import gradient_norms, residuals
from dpadapt.privacy import gaussian_mu
from reproduce.runs import Options, run_cells

from .errors import EPSILON, SIX
from .methods import DELTA, PRIVATE, Run, fit_private
from .tasks import TASKS, draw, fit_plain

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "LossCell",
    "SpanCell",
    "epsilons_of",
    "run_individual",
    "run_losses",
    "run_reconstruction",
    "run_span",
    "unexplained",
]

Array = NDArray[np.float64]

_MOMENTS = 12  # of the training at which gradients are looked at
_QUICK = ("digits", "office")
_SPLITS = 3


@dataclass(frozen=True)
class SpanCell:
    """Gradients along one training.

    Examples
    --------
    >>> SpanCell("digits", 0).seed
    0
    """

    task: str
    seed: int


@dataclass(frozen=True)
class LossCell:
    """Losses of all rows in one training.

    Examples
    --------
    >>> LossCell("digits", "AdaMix").method
    'AdaMix'
    """

    task: str
    method: str


def unexplained(parts: Array, whole: Array) -> Array:
    """Relative error of projections, from their lengths and those of what was projected.

    Parameters
    ----------
    parts, whole : ndarray

    Examples
    --------
    >>> unexplained(np.array([3.0, 0.0]), np.array([5.0, 2.0])).tolist()
    [0.8, 1.0]
    """
    shares = (parts / np.maximum(whole, 1e-300)) ** 2
    return np.asarray(np.sqrt(np.clip(1 - shares, 0.0, 1.0)))


def run_span(cell: SpanCell) -> list[dict[str, Any]]:
    """Relative reconstruction errors at some steps of AdaMix, on two subspaces.

    Of single rows (their mean) and of the sum over all rows; the random subspace is drawn once and
    has as many dimensions as the public one.

    Examples
    --------
    >>> lines = run_span(SpanCell("digits", 0))
    >>> first = lines[0]
    >>> first["public, a row"] < first["random, a row"]
    True
    """
    sample = draw(TASKS[cell.task], cell.seed)
    model = fit_private(sample, Run("AdaMix", EPSILON, options={"keep_trajectory": True}))
    features = fit_plain(sample, sample.X_public, sample.y_public, 1.0).features
    public, private = features.rows(sample.X_public), features.rows(sample.X_private)
    rng = np.random.default_rng([6, cell.seed])
    shape = model.trajectory_[0].shape
    chance = np.linalg.qr(rng.normal(size=(np.prod(shape), len(public))))[0].T
    chance = chance.reshape(len(public), *shape)
    lines = []
    for t in np.unique(np.linspace(0, len(model.trajectory_) - 1, _MOMENTS).round().astype(int)):
        W = model.trajectory_[t]
        R = residuals(private, sample.y_private, W)
        span = GradientSpan.of(public, sample.y_public, W)
        rows = ((private @ public.T) * (R @ span.residuals.T)) @ span.basis
        total = private.T @ R
        whole, size = gradient_norms(private, R), np.array([np.linalg.norm(total)])
        others = np.stack([np.vecdot(private @ each, R) for each in chance[: span.rank]], axis=1)
        along = np.tensordot(chance[: span.rank], total, axes=2)
        lines.append(
            {
                "dataset": cell.task,
                "repeat": cell.seed,
                "step": int(t) + 1,
                "dimension": span.rank,
                "of": int(np.prod(shape)),
                "public, a row": _mean(np.linalg.norm(rows, axis=1), whole),
                "random, a row": _mean(np.linalg.norm(others, axis=1), whole),
                "public, the sum": _mean(np.linalg.norm(span.coordinates(total)), size),
                "random, the sum": _mean(np.linalg.norm(along), size),
            }
        )
    return lines


def _mean(parts: Any, whole: Array) -> float:
    return float(np.mean(unexplained(np.asarray(parts), whole)))


def run_reconstruction(options: Options) -> pd.DataFrame:
    """Figure 6: private gradients on the span of public ones, or on a random subspace.

    Examples
    --------
    >>> _SPLITS
    3
    """
    cells = [
        SpanCell(task, seed)
        for task in (_QUICK if options.quick else SIX)
        for seed in range(min(_SPLITS, options.repeats))
    ]
    return run_cells(run_span, cells, options, "figure 6")


def epsilons_of(mus: Array, delta: float) -> Array:
    """Epsilon at delta for each mu of Gaussian differential privacy, by interpolation.

    Examples
    --------
    >>> epsilons_of(np.array([gaussian_mu(1.0, 1e-5), 0.0]), 1e-5).round(3).tolist()
    [1.0, 0.0]
    """
    grid = np.concatenate([[0.0], np.geomspace(1e-4, 50.0, 400)])
    known = np.array([0.0, *(gaussian_mu(float(epsilon), delta) for epsilon in grid[1:])])
    return np.asarray(np.interp(mus, known, grid))


def run_losses(cell: LossCell) -> list[dict[str, Any]]:
    """One line for each private row: its mu (Proposition 14) and the epsilon of that.

    Examples
    --------
    >>> lines = run_losses(LossCell("digits", "dpadapt"))
    >>> len(lines), bool(max(line["loss"] for line in lines) <= 3.0)
    (1297, True)
    """
    sample = draw(TASKS[cell.task], 0)
    model = fit_private(sample, Run(cell.method, EPSILON, options={"keep_trajectory": True}))
    mus = unsafe_individual_losses(model, sample.X_private, sample.y_private)
    return [
        {"dataset": cell.task, "method": cell.method, "row": row, "mu": mu, "loss": loss}
        for row, (mu, loss) in enumerate(zip(mus, epsilons_of(mus, DELTA), strict=True))
    ]


def run_individual(options: Options, *, task: str) -> pd.DataFrame:
    """Figures 14 to 18: what each private row lost, on one data set.

    Examples
    --------
    >>> len(run_individual(Options(), task="digits"))
    3891
    """
    cells = [LossCell(task, method) for method in PRIVATE]
    return run_cells(run_losses, cells, options, f"{task}, losses of rows")
