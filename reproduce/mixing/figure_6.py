"""Figure 6 of paper 004: private gradients on the span of public ones, or on a random subspace.

An analysis without privacy, and no release: only for data that are public.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.learning.figures import set_title
from dpadapt.learning.softmax import gradient_norms, residuals
from dpadapt.papers.mixing.projection import GradientSpan
from reproduce.page import panels
from reproduce.runs import Options, run_cells
from reproduce.style import GREEN

from .errors import EPSILON, SIX
from .methods import Run, fit_private
from .style import GREY, NOTE, PRIVATE_FACTS, caveat, curve, finish, title_of
from .tasks import TASKS, draw, fit_plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "SpanCell",
    "draw_reconstruction",
    "reconstruction_findings",
    "run_reconstruction",
    "run_span",
    "summarise_reconstruction",
    "unexplained",
]

Array = NDArray[np.float64]

_MOMENTS = 12  # of the training at which gradients are looked at
_QUICK = ("digits", "office")
_SPLITS = 3

_SHOWN = {
    "public, a row": {"color": GREEN, "ls": "-", "marker": "s"},
    "random, a row": {"color": GREY, "ls": "-", "marker": "o"},
    "public, the sum": {"color": GREEN, "ls": "--", "marker": "s"},
    "random, the sum": {"color": GREY, "ls": "--", "marker": "o"},
}
_LABELS = {
    "public, a row": "public gradients' span: gradient of one row",
    "random, a row": "random subspace: gradient of one row",
    "public, the sum": "public gradients' span: sum of the gradients",
    "random, the sum": "random subspace: sum of the gradients",
}


@dataclass(frozen=True)
class SpanCell:
    """Gradients along one training."""

    task: str
    seed: int


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


def summarise_reconstruction(table: pd.DataFrame) -> pd.DataFrame:
    """Relative errors, mean over the training.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "digits", "dimension": 50, "of": 650} | dict.fromkeys(_SHOWN, 0.5)
    >>> summarise_reconstruction(pd.DataFrame([line]))["random / public, a row"].tolist()
    ['1.00']
    """
    import pandas as pd

    lines = []
    for task, part in table.groupby("dataset", sort=False):
        line: dict[str, Any] = {
            "data": title_of(str(task)),
            "dimensions": f"{part['dimension'].max()} of {part['of'].iloc[0]}",
        }
        line |= {name: f"{part[name].mean():.3f}" for name in _SHOWN}
        for kind in ("a row", "the sum"):
            ratio = part[f"random, {kind}"].mean() / part[f"public, {kind}"].mean()
            line[f"random / public, {kind}"] = f"{ratio:.2f}"
        lines.append(line | {"not the paper's": caveat(str(task))})
    return pd.DataFrame(lines)


def draw_reconstruction(table: pd.DataFrame) -> Figure:
    """Relative error along training, a panel a data set.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "digits", "step": 1} | dict.fromkeys(_SHOWN, 0.5)
    >>> len(draw_reconstruction(pd.DataFrame([line])).axes)
    1
    """
    tasks = list(dict.fromkeys(table["dataset"]))
    columns = min(3, len(tasks))
    rows = -(-len(tasks) // columns)
    figure, grid = panels(1 + 3.3 * columns, 1.2 + 2.5 * rows, rows, columns)
    for axes, task in zip(grid.flat, tasks, strict=False):
        part = table[table["dataset"] == task]
        for name, style in _SHOWN.items():
            curve(axes, part, "step", name, _LABELS[name], {**style, "markevery": 3})
        axes.set(xlabel="step of AdaMix, ε = 3", ylabel="relative error", ylim=(0, 1.05))
        set_title(axes, title_of(task))
    finish(figure, grid, len(tasks), columns=2, note=f"{PRIVATE_FACTS}\n{NOTE}")
    return figure


def reconstruction_findings(table: pd.DataFrame) -> list[str]:
    """Whether a random subspace is twice as bad, as the paper says.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "digits", "step": 1} | dict.fromkeys(_SHOWN, 0.5)
    >>> reconstruction_findings(pd.DataFrame([line]))[0][:30]
    'Relative error of a row, publi'
    """
    sentences = []
    for kind in ("a row", "the sum"):
        means = table.groupby("dataset", sort=False)[[f"public, {kind}", f"random, {kind}"]].mean()
        ratios = means[f"random, {kind}"] / means[f"public, {kind}"]
        listed = ", ".join(
            f"{title_of(str(task))} {means[f'public, {kind}'][task]:.2f} / "
            f"{means[f'random, {kind}'][task]:.2f}"
            for task in means.index
        )
        twice = int((ratios >= 2).sum())
        name = "a row" if kind == "a row" else "the sum over all rows"
        sentences.append(
            f"Relative error of {name}, public span / random subspace of equal dimension: "
            f"{listed}. The random one is at least twice as large on {twice} of {len(ratios)} "
            "data sets (the paper: generally more than twice)."
        )
    return sentences
