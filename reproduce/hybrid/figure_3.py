"""Paper 003, Figure 3: the private run, with some ten thousand rows instead of 324.7 million."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpadapt.learning.figures import GREY, INK, set_title
from reproduce.page import finish, panels
from reproduce.runs import Options, Rows, run_cells
from reproduce.style import mean_and_spread

from .methods import CURATOR, FIXED, OURS, SCHEDULE, Draw, run_method
from .style import curve, shades, size_axis

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["along_the_run", "draw_private", "private_findings", "summarise_private"]

ALPHA, EPSILON, DELTA = 0.08, 0.5, 1e-4
PAPER_ROWS = 324_700_000
PAPER_STEPS = (50_000_000, 75_000_000, 100_000_000)
ROUNDS, RATE, BATCH, FEWER = 20, 0.2, 20_000, 50_000
ENDLESS = "mean of runs that never halt"
ALONG = "first round {}, last round {}"
CAVEAT = "full gradients instead of one row a step, rate 0.2 instead of alpha/8"
_LARGEST = 1_000_000  # takes long: two repeats at most
_SIZES = {
    OURS: (5_000, 10_000, 20_000, 50_000, 200_000),
    SCHEDULE: (5_000, 10_000, 20_000, 50_000, 200_000),
    CURATOR: (5_000, 10_000, 20_000, 50_000, 200_000),
    FIXED: (20_000, 50_000, 200_000, _LARGEST),
}
_QUICK = (10_000, 20_000)


@dataclass(frozen=True)
class Cell:
    """One fit."""

    method: str
    n: int
    seed: int


def run_cell(cell: Cell) -> Rows:
    """Loss on the target, and of each rule that was tested on the way."""
    agents = FEWER if cell.method == OURS else ROUNDS * BATCH
    budgets = (EPSILON, EPSILON, DELTA)
    draw = Draw("EASY", cell.seed, cell.n, agents, *budgets, ALPHA, ROUNDS, RATE)
    found = run_method(cell.method, draw)
    base = {
        "method": cell.method,
        "n": cell.n,
        "repeat": cell.seed,
        "error": found.error,
        "rounds": found.rounds,
        "certified": found.certified,
        "true_epsilon": found.epsilon,
    }
    path = found.path or (found.error,)
    return [base | {"round": place + 1, "loss": loss} for place, loss in enumerate(path)]


def run_private(options: Options) -> pd.DataFrame:
    """All methods and sizes."""
    cells = [
        Cell(method, n, seed)
        for method, sizes in _SIZES.items()
        for n in (_QUICK if options.quick else sizes)
        for seed in range(min(options.repeats, 2) if n == _LARGEST else options.repeats)
    ]
    return run_cells(run_cell, cells, options, "figure 3")


def _fits(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["round"] == 1]


def summarise_private(table: pd.DataFrame) -> pd.DataFrame:
    """A line for each method and n, and the paper's.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"method": CURATOR, "n": 5000, "error": 0.1, "rounds": 1, "round": 1, "loss": 0.1,
    ...         "certified": False, "true_epsilon": 0.5}
    >>> summarise_private(pd.DataFrame([line]))["loss on T (%)"].tolist()
    ['10.0', 'at most 16']
    """
    import pandas as pd

    fits = _fits(table)
    lines = []
    for method in dict.fromkeys(fits["method"]):
        for n in sorted(int(each) for each in fits["n"].unique()):
            part = fits[(fits["method"] == method) & (fits["n"] == n)]
            if len(part):
                lines.append(
                    {
                        "method": method,
                        "n": f"{n:,}",
                        "loss on T (%)": mean_and_spread(list(100 * part["error"])),
                        "at most 2α": f"{(part['error'] <= 2 * ALPHA).sum()} of {len(part)}",
                        "rounds": mean_and_spread(list(part["rounds"]))
                        if method in (SCHEDULE, FIXED)
                        else "1",
                        "certified": f"{part['certified'].sum()} of {len(part)}",
                        "not the paper's": CAVEAT if method in (SCHEDULE, FIXED) else "not in it",
                    }
                )
    along = along_the_run(table[table["method"] == SCHEDULE])
    if along:
        line = dict.fromkeys(lines[0], "-")
        lines.append(line | {"method": f"{SCHEDULE}: {ENDLESS}", "loss on T (%)": along})
    lines.append(
        {
            "method": "paper (Algorithm 4, R = 50, 75, 100 million)",
            "n": f"{PAPER_ROWS:,}",
            "loss on T (%)": "at most 16",
            "at most 2α": "50 of 50",
            "rounds": "values not printed",
            "certified": "-",
            "not the paper's": "-",
        }
    )
    return pd.DataFrame(lines)


def draw_private(table: pd.DataFrame) -> Figure:
    """Loss and rounds against n, and the loss along the run.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"method": CURATOR, "n": 5000, "error": 0.1, "rounds": 1, "round": 1, "loss": 0.1}
    >>> len(draw_private(pd.DataFrame([line])).axes)
    3
    """
    figure, grid = panels(13.5, 4.8, 1, 3)
    loss, rounds, along = grid.flat
    fits = _fits(table)
    for method in dict.fromkeys(fits["method"]):
        part = fits[fits["method"] == method].assign(percent=lambda lines: 100 * lines["error"])
        curve(loss, part, "n", "percent", method)
        if method in (SCHEDULE, FIXED):
            curve(rounds, part, "n", "rounds", method)
    loss.axhline(200 * ALPHA, color=INK, ls="--", lw=1.2)
    loss.annotate(
        "2α", (0.28, 200 * ALPHA), xycoords=("axes fraction", "data"), va="bottom", fontsize=9
    )
    loss.plot([PAPER_ROWS], [200 * ALPHA], "s", color=GREY, ms=7, clip_on=False)
    loss.annotate(
        "paper:\nat most 2α", (PAPER_ROWS, 200 * ALPHA), xytext=(-2, 10), ha="right",
        textcoords="offset points", fontsize=8, color=GREY,
    )  # fmt: skip
    loss.set(ylabel="loss on T (%)", ylim=(0, None))
    size_axis(loss, [5e3, 5e4, 5e5, 5e6, 5e7, PAPER_ROWS])
    set_title(loss, "(a) loss on T of what is returned")
    rounds.set(ylabel=f"rounds (at most {ROUNDS})", ylim=(0, ROUNDS + 1))
    rounds.set_yticks([1, 5, 10, 15, 20])
    size_axis(rounds, sorted(fits["n"].unique()))
    set_title(rounds, "(b) rounds until it halts")
    paths = table[table["method"] == SCHEDULE]
    sizes = sorted(paths["n"].unique())
    for n, colour in zip(sizes, shades(len(sizes)), strict=True):
        part = paths[paths["n"] == n]
        means = 100 * part.groupby("round")["loss"].mean()
        along.plot(means.index, means, color=colour, marker=".", lw=1.3, label="_")
    along.legend(
        along.lines, [f"n = {n / 1000:g}k" for n in sizes], loc="upper left", ncols=3, fontsize=8,
        frameon=False,
    )  # fmt: skip
    along.axhline(200 * ALPHA, color=INK, ls="--", lw=1.2)
    along.set(xlabel="round", ylabel="loss on T (%)", ylim=(0, 70), xlim=(0.5, ROUNDS + 0.5))
    along.set_xticks([1, 5, 10, 15, 20])
    set_title(along, "(c) along the run, density schedule")
    finish(figure, grid, f"Not the paper's: {CAVEAT}; n from 5,000 instead of 324.7 million.", 4)
    return figure


def along_the_run(paths: pd.DataFrame) -> str:
    """Mean loss in the first and in the last round of runs that never halt; empty if all halt.

    Runs that halt are left out: their last rule is a good one because it was chosen to be.

    Examples
    --------
    >>> import pandas as pd
    >>> path = pd.DataFrame({"rounds": 2, "round": [1, 2], "loss": [0.2, 0.3], "certified": False})
    >>> along_the_run(path)
    'first round 20.0, last round 30.0'
    """
    longer = paths[~paths["certified"].astype(bool)]
    if not len(longer):
        return ""
    first = 100 * longer.loc[longer["round"] == 1, "loss"].mean()
    last = 100 * longer.loc[longer["round"] == longer["rounds"], "loss"].mean()
    return ALONG.format(f"{first:.1f}", f"{last:.1f}")


def private_findings(table: pd.DataFrame) -> list[str]:
    """Where each method is at 2 alpha.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"method": CURATOR, "n": 5000, "error": 0.1, "rounds": 1, "round": 1, "loss": 0.1,
    ...         "certified": False}
    >>> private_findings(pd.DataFrame([line]))[0]
    'curator alone: loss of 2α or less in every run from n = 5,000 on (10.0% there).'
    """
    fits = _fits(table)
    sentences = []
    for method in dict.fromkeys(fits["method"]):
        part = fits[fits["method"] == method]
        worst = part.groupby("n")["error"].max()
        good = [int(n) for n in worst.index if (worst.loc[n:] <= 2 * ALPHA).all()]
        if good:
            there = 100 * part.loc[part["n"] == good[0], "error"].mean()
            sentences.append(
                f"{method}: loss of 2α or less in every run from n = {good[0]:,} on "
                f"({there:.1f}% there)."
            )
        else:
            low = 100 * part.groupby("n")["error"].mean().min()
            sentences.append(f"{method}: not always 2α or less; {low:.1f}% at its best n.")
    sentences.append(
        f"The paper has {PAPER_ROWS:,} rows and {PAPER_STEPS[0]:,} steps a round for 2α."
    )
    return sentences
