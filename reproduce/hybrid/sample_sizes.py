"""Paper 003: how many rows its theorems ask for, and how many the runs here have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from dpadapt.learning.figures import BLUE, GREY, ORANGE, set_title
from dpadapt.papers.hybrid.doors.one_draw import OneDrawGaussianEvent
from dpadapt.papers.hybrid.learners import parity_rows
from dpadapt.papers.hybrid.sample_sizes import (
    sizes_of_algorithm_1,
    sizes_of_algorithm_2,
    sizes_of_algorithm_4,
)
from dpadapt.privacy.accounting.composition import compose_epsilon
from reproduce.page import finish, panels
from reproduce.runs import Options, Rows, run_cells

from . import figure_3, figures_1_and_2, parity
from .data import draw_setting
from .methods import SCHEDULE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["draw_sizes", "size_findings", "summarise_sizes"]

# the paper's private run: T is not stated; it is the one with which n fits R = 50 million
PAPER_ROUNDS = 997
PAPER_DENSITY = figure_3.ALPHA / (4 * 1.352)
PAPER_VARIANCE = 20.0
BOUND_OF_FIGURE_2 = 15e12  # that the paper prints
_DRAWS = 1_000
_BETA = 1e-6


def true_epsilon(n: int) -> float:
    """What the paper's private run guarantees with n rows, certified; it claims 0.5.

    Examples
    --------
    >>> round(true_epsilon(324_700_000), 3)
    0.059
    """
    steps = figure_3.PAPER_STEPS[0] * PAPER_ROUNDS
    rate = 1 / (PAPER_DENSITY * n)
    event = OneDrawGaussianEvent("descent", 1.0, PAPER_VARIANCE**0.5, rate=rate, count=steps)
    return float(compose_epsilon([event], figure_3.DELTA))


def _least(spent: Callable[[int], float], allowed: float, low: int, high: int) -> int:
    """Least n up to half a percent at which no more is spent than allowed."""
    while high - low > high // 200:
        middle = (low + high) // 2
        low, high = (middle, high) if spent(middle) > allowed else (low, middle)
    return high


def _hyperplane(quick: bool) -> dict[str, Any]:
    chi2 = draw_setting("figure 1").population.chi2
    found = sizes_of_algorithm_1(alpha=figures_1_and_2.ALPHA, beta=0.05, chi2=chi2, dimension=501)
    design = figures_1_and_2.HYPERPLANE
    sizes = design.quick if quick else design.sizes
    return {
        "printed": found.rows,
        "rounds": found.rounds,
        "used_low": sizes[0],
        "used_high": sizes[-1],
        "note": "no bound: chi^2 + 1 is 3e15",
    }


def _ellipse(quick: bool) -> dict[str, Any]:
    chi2 = draw_setting("figure 2").population.chi2
    found = sizes_of_algorithm_1(alpha=figures_1_and_2.ALPHA, beta=_BETA, chi2=chi2, dimension=201)
    design = figures_1_and_2.ELLIPSE
    sizes = design.quick if quick else design.sizes
    return {
        "printed": found.rows,
        "rounds": found.rounds,
        "used_low": sizes[0],
        "used_high": sizes[-1],
        "note": f"the paper says {BOUND_OF_FIGURE_2 / 1e12:g}e12",
    }


def _known() -> dict[str, Any]:
    return {
        "alpha": figure_3.ALPHA,
        "beta": _BETA,
        "epsilon": figure_3.EPSILON,
        "delta": figure_3.DELTA,
        "chi2": draw_setting("EASY").population.chi2,
    }


def _any_learner(quick: bool) -> dict[str, Any]:
    printed = sizes_of_algorithm_2(**_known(), draws=_DRAWS, calibration="paper")
    tight = sizes_of_algorithm_2(**_known(), draws=_DRAWS)
    return {
        "printed": printed.rows,
        "repaired": tight.rows,
        "rounds": printed.rounds,
        "agents_printed": printed.agents_per_round,
        "agents_repaired": tight.agents_per_round,
        "note": f"for a learner that takes {_DRAWS:,} rows at epsilon 1; not run at this size",
    }


def _theorem(quick: bool) -> dict[str, Any]:
    printed = sizes_of_algorithm_4(**_known(), dimension=9, calibration="paper")
    repaired = sizes_of_algorithm_4(**_known(), dimension=9)
    sizes = figure_3._QUICK if quick else figure_3._SIZES[SCHEDULE]
    return {
        "printed": printed.rows,
        "repaired": repaired.rows,
        "rounds": printed.rounds,
        "agents_printed": printed.agents_per_round,
        "agents_repaired": figure_3.BATCH,
        "used_low": sizes[0],
        "used_high": sizes[-1],
        "note": f"L D = 1; {printed.steps:,} steps a round. Runs here: density schedule, whole "
        f"gradients, {figure_3.ROUNDS} rounds, batches of {figure_3.BATCH:,} agents",
    }


def _paper_run(quick: bool) -> dict[str, Any]:
    most = figure_3.PAPER_ROWS
    return {
        "printed": most,
        "repaired": _least(true_epsilon, figure_3.EPSILON, most // 10, most),
        "rounds": PAPER_ROUNDS,
        "note": f"R = 50 million, T = {PAPER_ROUNDS}: certified epsilon {true_epsilon(most):.3f} "
        "at the paper's n, where it claims 0.5",
    }


def _parity(quick: bool) -> dict[str, Any]:
    known = (parity.DIMENSION, draw_setting("parity").population.chi2)
    budget = (parity.EPSILON, parity.BETA)
    sizes = [cell.n for cell in parity.cells_of(Options(quick=quick))]
    return {
        "printed": parity.printed_rows(*known, *budget),
        "repaired": parity_rows(*known, *budget).total,
        "rounds": 1,
        "used_low": min(sizes),
        "used_high": max(sizes),
        "note": "chi^2 + 1 = 1.9; rows kept with chance tanh(1/2) instead of 1/4",
    }


_LINES: dict[str, Callable[[bool], dict[str, Any]]] = {
    "Figure 1, Algorithm 1": _hyperplane,
    "Figure 2, Algorithm 1": _ellipse,
    "Figure 3, Algorithm 2": _any_learner,
    "Figure 3, Algorithm 4, Theorem A.4": _theorem,
    "Figure 3, Algorithm 4, the paper's run": _paper_run,
    "parity, d = 64, epsilon 1": _parity,
}


class Cell(NamedTuple):
    """One line, and whether the runs beside it are quick ones."""

    name: str
    quick: bool


def run_cell(cell: Cell) -> Rows:
    """One line of the table."""
    return [{"what": cell.name} | _LINES[cell.name](cell.quick)]


def run_sizes(options: Options) -> pd.DataFrame:
    """All lines."""
    cells = [Cell(name, options.quick) for name in _LINES]
    return run_cells(run_cell, cells, options, "sample sizes")


def _number(value: Any) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:,.0f}" if value < 1e12 else f"{value:.1e}".replace("e+", "e")


def summarise_sizes(table: pd.DataFrame) -> pd.DataFrame:
    """Rows, rounds and agents, as printed, repaired, and used.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"what": "a", "printed": 1e15, "repaired": 5e6, "used_low": 10, "used_high": 20,
    ...         "rounds": 3, "agents_printed": None, "agents_repaired": None, "note": "none"}
    >>> summarise_sizes(pd.DataFrame([line])).iloc[0, 1:4].tolist()
    ['1.0e15', '5,000,000', '10 to 20']
    """
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "what": line["what"],
                "n as printed": _number(line["printed"]),
                "n repaired": _number(line["repaired"]),
                "n of the runs here": (
                    f"{_number(line['used_low'])} to {_number(line['used_high'])}"
                    if line["used_low"] == line["used_low"]
                    else "-"
                ),
                "rounds as printed": _number(line["rounds"]),
                "agents a round, printed": _number(line["agents_printed"]),
                "agents a round, here": _number(line["agents_repaired"]),
                "what is not the paper's": line["note"],
            }
            for _, line in table.iterrows()
        ]
    )


def draw_sizes(table: pd.DataFrame) -> Figure:
    """Sizes on one logarithmic axis, a line each.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"what": "a", "printed": 1e9, "repaired": 5e6, "used_low": 10, "used_high": 20}
    >>> len(draw_sizes(pd.DataFrame([line])).axes)
    1
    """
    figure, grid = panels(9.6, 4.4, 1, 1)
    axes = grid.flat[0]
    places = range(len(table))[::-1]
    for place, (_, line) in zip(places, table.iterrows(), strict=True):
        axes.plot([line["used_low"], line["used_high"]], [place, place], color=BLUE, lw=6,
                  solid_capstyle="butt", label="runs here")  # fmt: skip
        axes.plot(line["repaired"], place, "D", color=GREY, ms=7, label="repaired and certified")
        axes.plot(line["printed"], place, "s", color=ORANGE, ms=7, label="as printed")
    axes.set_yticks(list(places), list(table["what"]))
    axes.set(xscale="log", xlabel="rows of the curator (n)", ylim=(-0.6, len(table) - 0.4))
    set_title(axes, "Rows that the theorems ask for, and rows of the runs here")
    finish(figure, grid, "Theorems are worst cases; runs here stop by a test, not by a theorem.")
    return figure


def size_findings(table: pd.DataFrame) -> list[str]:
    """How far theorems, certified numbers and runs are apart.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"what": "a", "printed": 1e9, "repaired": 5e6, "used_low": 10, "used_high": 20}
    >>> size_findings(pd.DataFrame([line]))
    ['a: 1,000,000,000 rows as printed, 5,000,000 repaired; runs here have 10 to 20.']
    """
    sentences = []
    for _, line in table.iterrows():
        parts = [f"{_number(line['printed'])} rows as printed"]
        if line["repaired"] == line["repaired"]:
            parts.append(f"{_number(line['repaired'])} repaired")
        text = f"{line['what']}: {', '.join(parts)}"
        if line["used_low"] == line["used_low"]:
            text += f"; runs here have {_number(line['used_low'])} to {_number(line['used_high'])}"
        sentences.append(text + ".")
    return sentences
