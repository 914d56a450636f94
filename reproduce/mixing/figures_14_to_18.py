"""Figures 14 to 18 of paper 004: what each private row lost in one training.

Nothing here is a release: the numbers depend on the private rows without noise. They may be shown
because these data sets are public; of private data they may not be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.learning.figures import INK, set_title
from dpadapt.mixing import unsafe_individual_losses
from dpadapt.privacy.accounting.calibration import gaussian_mu
from reproduce.page import panels
from reproduce.runs import Options, run_cells

from .errors import EPSILON
from .methods import DELTA, PRIVATE, Run, fit_private
from .style import NOTE, PRIVATE_FACTS, STYLES, caveat, finish, title_of
from .tasks import TASKS, draw

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "LossCell",
    "draw_losses",
    "epsilons_of",
    "loss_findings",
    "run_individual",
    "run_losses",
    "summarise_losses",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LossCell:
    """Losses of all rows in one training."""

    task: str
    method: str


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


def summarise_losses(table: pd.DataFrame) -> pd.DataFrame:
    """Quantiles of the rows' epsilons for each method.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dataset": "digits", "method": "AdaMix", "loss": [1.0, 3.0]})
    >>> summarise_losses(table).iloc[0, 1:].tolist()[:3]
    ['1.20', '2.00', '2.80']
    """
    import pandas as pd

    lines = []
    for method, part in table.groupby("method", sort=False):
        low, middle, high = np.quantile(part["loss"], [0.1, 0.5, 0.9])
        lines.append(
            {
                "method": method,
                "10% of rows below": f"{low:.2f}",
                "median": f"{middle:.2f}",
                "90% below": f"{high:.2f}",
                "largest": f"{part['loss'].max():.2f}",
                "not the paper's": caveat(str(part["dataset"].iloc[0])),
            }
        )
    return pd.DataFrame(lines)


def draw_losses(table: pd.DataFrame) -> Figure:
    """Histogram of the rows' epsilons, for each method.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dataset": "digits", "method": "AdaMix", "loss": [1.0, 3.0]})
    >>> len(draw_losses(table).axes)
    1
    """
    figure, grid = panels(8, 4.4, 1, 1)
    axes = grid.flat[0]
    bins = np.linspace(0, EPSILON, 41).tolist()
    for method, part in table.groupby("method", sort=False):
        colour = STYLES[str(method)]["color"]
        counts = part["loss"].to_numpy()
        axes.hist(counts, bins=bins, histtype="stepfilled", color=colour, alpha=0.25)
        axes.hist(counts, bins=bins, histtype="step", color=colour, lw=1.8, label=str(method))
        axes.axvline(float(np.median(counts)), color=colour, ls=":", lw=1.5)
    axes.axvline(EPSILON, color=INK, ls="--", lw=1.4, label="ε of the guarantee")
    axes.set(xlabel="ε of a row (δ = 10⁻⁵); dotted: medians", ylabel="private rows")
    set_title(axes, f"{title_of(str(table['dataset'].iloc[0]))}: what each row lost")
    finish(figure, grid, 1, note=f"{PRIVATE_FACTS}\n{NOTE}")
    return figure


def loss_findings(table: pd.DataFrame) -> list[str]:
    """Medians of the rows' epsilons, and how many lost next to nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dataset": "digits", "method": "AdaMix", "loss": [1.0, 3.0]})
    >>> loss_findings(table)[0]
    'Median epsilon of a row: AdaMix 2.00; the guarantee says 3.'
    """
    medians = table.groupby("method", sort=False)["loss"].median()
    low = table.assign(low=table["loss"] < 1).groupby("method", sort=False)["low"].mean()
    listed = ", ".join(f"{name} {medians[name]:.2f}" for name in medians.index)
    shares = ", ".join(f"{name} {100 * low[name]:.0f}%" for name in low.index)
    return [
        f"Median epsilon of a row: {listed}; the guarantee says {EPSILON:g}.",
        f"Rows below epsilon 1: {shares}.",
        f"{PRIVATE_FACTS} These values are no guarantee either: the path of the weights depends "
        "on the row (erratum to Proposition 14).",
    ]
