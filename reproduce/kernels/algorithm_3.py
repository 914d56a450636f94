"""Paper 002: Algorithm 3 as printed is not private. A counterexample, in numbers.

One column, linear kernel, hinge loss, all x = 1. With as many labels of one sign as of the other
w* = 0 exactly; with one label flipped |w*| = 2/(lambda n). No step is ever made, and the B points
that are drawn have |z| uniform in [0, 1], or with density proportional to exp(t |z|), t what line
5 multiplies |w*| with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpadapt.papers.kernels.tdil import Rounds
from dpadapt.privacy import Private
from dpadapt.report.figures import BLUE, GREY, ORANGE, set_title
from reproduce.page import panels
from reproduce.runs import Options, Rows, run_cells

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "bound_on_delta",
    "break_findings",
    "draw_break",
    "draw_losses",
    "summarise_break",
]

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
PENALTY, EPSILON, DELTA = 0.01, 1.0, 1e-6
PRINTED, REPAIRED = "as printed", "repaired"
_RUNS = 100_000
_FLOOR = 1e-12  # of the picture


@dataclass(frozen=True)
class Cell:
    """Number of rows, and of runs of the algorithm."""

    rows: int
    runs: int


def printed_tilt(rows: int) -> tuple[int, float]:
    """B of Algorithm 3, and t, with L = R = 1.

    Examples
    --------
    >>> printed_tilt(100_000)[0]
    66
    """
    updates = rows * EPSILON / (100 * math.log(4 / DELTA))
    level = rows * EPSILON * PENALTY / (10 * math.sqrt(updates) * math.log(4 / DELTA))  # eps_0
    return max(1, round(updates)), level / 4  # eps_0 n lambda / 8 times |w*| = 2 / (lambda n)


def repaired_tilt(rows: int, updates: int) -> float:
    """The same of a choice that is paid for, with as many rounds.

    Examples
    --------
    >>> repaired_tilt(100_000, 66) < printed_tilt(100_000)[1]
    True
    """
    model = 2 / (PENALTY * rows)
    rounds = Rounds(updates, model, bound=1.0)
    with Private(np.ones((2, 1))).open(epsilon=EPSILON, delta=DELTA) as session:
        grants = session.plan(**rounds.mechanisms())
    return model / grants.points.scale


def draw_losses(tilt: float, updates: int, runs: int, seed: int = 0) -> np.ndarray:
    """Privacy losses of B points that were drawn with the tilt.

    Examples
    --------
    >>> bool(draw_losses(0.5, 60, 1000).mean() > 0)
    True
    """
    rng = np.random.default_rng(seed)
    total = np.zeros(runs)
    for _ in range(updates):
        z = np.log1p(rng.random(runs) * math.expm1(tilt)) / tilt
        total += tilt * z - math.log(math.expm1(tilt) / tilt)
    return total


def bound_on_delta(tilt: float, updates: int) -> float:
    """Upper bound on delta at epsilon 1, from the exact moments of the loss.

    Examples
    --------
    >>> bound_on_delta(1e-3, 10) < 1e-6 < bound_on_delta(1.0, 100)
    True
    """

    def log_mean(t: float) -> float:
        return math.log(math.expm1(t) / t)

    orders = [order for order in np.logspace(-1, 4, 400) if (1 + order) * tilt < 600]
    logs = [
        updates * (log_mean((1 + order) * tilt) - (1 + order) * log_mean(tilt)) - order * EPSILON
        for order in orders
    ]
    return math.exp(min(0.0, *logs))


def run_cell(cell: Cell) -> Rows:
    """What the printed and the repaired choice give for one n."""
    updates, printed = printed_tilt(cell.rows)
    lines = []
    for form, tilt in ((PRINTED, printed), (REPAIRED, repaired_tilt(cell.rows, updates))):
        losses = draw_losses(tilt, updates, cell.runs)
        excess = np.maximum(0.0, -np.expm1(EPSILON - losses))
        lines.append(
            {
                "form": form,
                "n": cell.rows,
                "rounds": updates,
                "claimed": DELTA,
                "delta": excess.mean(),
                "standard_error": excess.std() / math.sqrt(cell.runs),
                "at_most": bound_on_delta(tilt, updates),
                "mean_loss": losses.mean(),
            }
        )
    return lines


def run_break(options: Options) -> pd.DataFrame:
    """All sizes."""
    runs = _RUNS // 10 if options.quick else _RUNS
    return run_cells(run_cell, [Cell(n, runs) for n in SIZES], options, "TDIL as printed")


def summarise_break(table: pd.DataFrame) -> pd.DataFrame:
    """Claimed against true delta.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame(run_cell(Cell(100_000, 1000)))
    >>> summarise_break(table)["claimed delta"].iloc[0]
    '1e-06'
    """
    import pandas as pd

    lines = []
    for each in table.itertuples():
        lines.append(
            {
                "n": f"{each.n:,}",
                "rounds": each.rounds,
                "choice": each.form,
                "claimed delta": f"{each.claimed:g}",
                "true delta (Monte Carlo)": f"{each.delta:.2g} ± {each.standard_error:.1g}",
                "true delta is at most": f"{each.at_most:.2g}",
                "mean privacy loss": f"{each.mean_loss:.3g}",
                "not the paper's": "made-up sample; the paper has no experiment with Algorithm 3",
            }
        )
    return pd.DataFrame(lines)


def draw_break(table: pd.DataFrame) -> Figure:
    """Delta against n.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame(run_cell(Cell(100_000, 1000)))
    >>> len(draw_break(table).axes)
    1
    """
    figure, grid = panels(7, 4.4, 1, 1)
    axes = grid.flat[0]
    printed, repaired = (table[table["form"] == form] for form in (PRINTED, REPAIRED))
    seen = printed[printed["delta"] > 3 * printed["standard_error"]]
    axes.errorbar(
        seen["n"], seen["delta"], yerr=2 * seen["standard_error"], color=ORANGE, marker="o",
        lw=1.8, label="as printed (Monte Carlo, two standard errors)",
    )  # fmt: skip
    most = printed["at_most"].clip(lower=_FLOOR)
    axes.plot(printed["n"], most, color=ORANGE, ls=":", label="as printed, at most")
    axes.plot(
        repaired["n"], repaired["at_most"].clip(lower=_FLOOR), color=BLUE, marker="v", lw=1.8,
        label="repaired, at most (10⁻¹² or far less)",
    )  # fmt: skip
    axes.axhline(DELTA, color=GREY, lw=1.2, ls="--", label="claimed")
    axes.set(xscale="log", yscale="log", xlabel="private rows n", ylabel="δ at ε = 1")
    axes.set_xticks(list(table["n"].unique()), [f"{n:,}" for n in table["n"].unique()])
    axes.minorticks_off()
    set_title(axes, "one label flipped: what Algorithm 3 gives away")
    axes.legend(frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1.0, 0.08))
    return figure


def break_findings(table: pd.DataFrame) -> list[str]:
    """The delta of the printed form, and that of the repaired one.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame(run_cell(Cell(100_000, 1000)))
    >>> break_findings(table)[0][:26]
    'As printed, at n = 100,000'
    """
    sentences = []
    printed = table[table["form"] == PRINTED]
    seen = printed[printed["delta"] > 3 * printed["standard_error"]]
    for each in seen.iloc[::-1].itertuples():
        sentences.append(
            f"As printed, at n = {each.n:,}: delta {each.delta:.2g} where {each.claimed:g} is "
            f"claimed; the mean privacy loss is {each.mean_loss:.3g}."
        )
    most = table.loc[table["form"] == REPAIRED, "at_most"].max()
    sentences.append(f"Repaired, over all n: delta is at most {most:.2g} on the same sample.")
    return sentences
