"""Paper 003, Figures 1 and 2: Subsample-Test-Reweigh without privacy (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.papers.hybrid.non_private import non_private_subsample_test_reweigh
from dpadapt.report.figures import BLUE, GREY, INK, ORANGE, set_title
from reproduce.page import finish, panels
from reproduce.runs import Options, Rows, run_cells
from reproduce.style import mean_and_spread

from .data import draw_setting
from .learners import BoxedHinge, HardMargin, subsample_size
from .style import shades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["ELLIPSE", "HYPERPLANE", "Design"]

ALPHA = 0.01
PAPER_RATE = ALPHA / 8  # of the theorem; the paper does not say which it used
PAPER_ROUNDS = 1_300  # in the size of a subsample, where it hardly matters
_TEST = 20_000
_CONTROL = "weights left alone"
_RATE_OF_CONTROL = 1e-12
_REPEATS = 3
_FIRST_SEED = 100  # not one on which learners and rates were chosen
_CONTROL_ROUNDS = 40


@dataclass(frozen=True)
class Design:
    """One figure: what is learnt, from how many rows, and what the paper found.

    Parameters
    ----------
    setting : str
        Of :data:`~reproduce.hybrid.data.SETTINGS`.
    sizes : tuple of int
        n.
    rate : float
        eta; the theorem's is alpha / 8.
    rounds : int
        Most rounds.
    paper : dict
        n to the number of rounds that the paper reports.
    enough : int
        n from which the paper's runs all halt.
    below : str
        What the paper says of the loss with fewer rows.
    caveat : str

    Examples
    --------
    >>> HYPERPLANE.paper[140_000]
    1200
    """

    setting: str
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    rate: float
    rounds: int
    paper: dict[int, int]
    enough: int
    below: str
    caveat: str

    def learner(self, dimension: int, rng: np.random.Generator) -> Callable[..., Any]:
        """What runs in each round."""
        draws = subsample_size(dimension, ALPHA, PAPER_ROUNDS)
        return HardMargin(draws, rng) if self.setting == "figure 1" else BoxedHinge(draws, rng)


HYPERPLANE = Design(
    setting="figure 1",
    sizes=(10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 140_000),
    quick=(10_000, 20_000),
    rate=0.2,
    rounds=36,
    paper={80_000: 1_300, 140_000: 1_200},
    enough=80_000,
    below="above 2",
    caveat="rate 0.2 instead of alpha/8 = 0.00125, at most 36 rounds",
)
ELLIPSE = Design(
    setting="figure 2",
    sizes=(75_000, 100_000, 125_000, 150_000, 175_000, 200_000),
    quick=(20_000, 40_000),
    rate=0.2,
    rounds=70,
    paper={75_000: 1_000, 100_000: 1_000, 125_000: 1_000, 150_000: 1_000, 175_000: 1_000,
           200_000: 1_000},
    enough=75_000,
    below="-",
    caveat="rate 0.2 instead of alpha/8 = 0.00125, at most 70 rounds; squared hinge with a margin",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One run."""

    design: Design
    n: int
    seed: int
    rounds: int
    reweigh: bool


def run_cell(cell: Cell) -> Rows:
    """Loss on the target, round by round; and of the rule that is returned, on other rows."""
    setting = draw_setting(cell.design.setting, cell.seed)
    rng = np.random.default_rng([cell.seed, cell.n])
    squares = setting.features == "squares"

    def rows(draw: Callable[..., Any], n: int) -> tuple[Any, Any]:
        X, y = draw(n, rng)
        return (np.square(X, out=X) if squares else X), y

    X, y = rows(setting.population.source, cell.n)
    asked, answers = rows(setting.population.target, _TEST)
    test, truth = rows(setting.population.target, _TEST)
    run = non_private_subsample_test_reweigh(
        X,
        y,
        cell.design.learner(X.shape[1], rng),
        lambda rule: float(np.mean(rule(asked) != answers)),
        threshold=2 * ALPHA,
        rounds=cell.rounds,
        rate=cell.design.rate if cell.reweigh else _RATE_OF_CONTROL,
    )
    base = {
        "n": cell.n,
        "repeat": cell.seed,
        "method": "reweighed" if cell.reweigh else _CONTROL,
        "rate": cell.design.rate,
        "halted": run.halted,
        "test_loss": float(np.mean(run.rule(test) != truth)),
    }
    return [
        base | {"round": place + 1, "loss": loss, "last": place + 1 == run.rounds}
        for place, loss in enumerate(run.estimates)
    ]


def _run(design: Design, options: Options) -> pd.DataFrame:
    sizes, rounds = (design.quick, 6) if options.quick else (design.sizes, design.rounds)
    cells = [
        Cell(design, n, seed, options.steps or rounds, reweigh=True)
        for n in reversed(sizes)
        for seed in range(_FIRST_SEED, _FIRST_SEED + min(options.repeats, _REPEATS))
    ]
    # is it the weights that help, or only one more try?
    cells.append(Cell(design, sizes[-1], _FIRST_SEED, min(rounds, _CONTROL_ROUNDS), reweigh=False))
    return run_cells(run_cell, cells, options, design.setting)


run_hyperplane = partial(_run, HYPERPLANE)
run_ellipse = partial(_run, ELLIPSE)


def _ends(table: pd.DataFrame, method: str = "reweighed") -> pd.DataFrame:
    return table[table["last"] & (table["method"] == method)].sort_values("n")


def _summarise(design: Design, table: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    lines = []
    for method in dict.fromkeys(table["method"]):
        found = _ends(table, method)
        for n in sorted(int(each) for each in found["n"].unique()):
            part = found[found["n"] == n]
            rounds = list(part["round"])
            at_their_rate = [round(each * design.rate / PAPER_RATE) for each in rounds]
            own = method == "reweighed"
            theirs = design.paper.get(n) if own else None
            lines.append(
                {
                    "n": f"{n:,}",
                    "weights": method,
                    "loss on T (%)": mean_and_spread(list(100 * part["test_loss"]), 2),
                    "halted at 2%": f"{part['halted'].sum()} of {len(part)}",
                    "rounds": mean_and_spread(rounds, 0),
                    "rounds at rate alpha/8 would be": (
                        f"{np.mean(at_their_rate):,.0f}" if own and part["halted"].all() else "-"
                    ),
                    "paper: loss (%)": ("at most 2" if n >= design.enough else design.below)
                    if own
                    else "-",
                    "paper: rounds": f"about {theirs:,}" if theirs else "-",
                    "not the paper's": design.caveat,
                }
            )
    return pd.DataFrame(lines)


summarise_hyperplane = partial(_summarise, HYPERPLANE)
summarise_ellipse = partial(_summarise, ELLIPSE)


def _draw(design: Design, table: pd.DataFrame) -> Figure:
    figure, grid = panels(13.5, 4.6, 1, 3)
    loss, rounds, along = grid.flat
    ends = _ends(table)
    groups = ends.groupby("n")
    thousands = groups["test_loss"].mean().index.to_numpy() / 1000
    mean, spread = 100 * groups["test_loss"].mean(), 100 * groups["test_loss"].std().fillna(0)
    loss.errorbar(thousands, mean, spread, color=BLUE, marker="o", capsize=3, label="dpadapt")
    loss.axhline(200 * ALPHA, color=INK, ls="--", lw=1.2, label="2α: where a run halts")
    control = _ends(table, _CONTROL)
    if len(control):
        loss.plot(control["n"] / 1000, 100 * control["test_loss"], "X", color=ORANGE, ms=8,
                  label="weights left alone: best of its rounds")  # fmt: skip
    from_here = design.enough / 1000
    loss.axvspan(
        from_here, 1.05 * max(thousands.max(), from_here), color=GREY, alpha=0.12, lw=0,
        label=f"paper: all runs halt, from n = {design.enough:,} on",
    )  # fmt: skip
    loss.set(xlabel="n (thousands)", ylabel="loss on T (%)", ylim=(0, None))
    set_title(loss, "(a) loss on T of what is returned")
    done = ends[ends["halted"]]
    if len(done):
        found = done.groupby("n")["round"]
        rounds.errorbar(found.mean().index.to_numpy() / 1000,
                        found.mean() * design.rate / PAPER_RATE,
                        found.std().fillna(0) * design.rate / PAPER_RATE,
                        color=BLUE, marker="o", capsize=3, label="dpadapt")  # fmt: skip
    else:
        rounds.annotate("no run halted", (0.5, 0.5), xycoords="axes fraction", ha="center",
                        color=BLUE)  # fmt: skip
    rounds.plot(
        [n / 1000 for n in design.paper], list(design.paper.values()), "s--", color=ORANGE,
        label="paper (about)",
    )  # fmt: skip
    rounds.set(xlabel="n (thousands)", ylabel="rounds × rate / (α/8)", ylim=(0, None))
    set_title(rounds, "(b) rounds until it halts")
    rounds.set_ylim(0, 1.3 * rounds.get_ylim()[1])
    rounds.annotate(
        f"{design.rate / PAPER_RATE:.0f} rounds of the paper count as one of\nours; runs that do "
        "not halt are left out",
        (0.03, 0.9), xycoords="axes fraction", fontsize=8, color=GREY,
    )  # fmt: skip
    sizes = sorted(table["n"].unique())
    for n, colour in zip(sizes, shades(len(sizes)), strict=True):
        part = table[(table["n"] == n) & (table["method"] == "reweighed")]
        path = 100 * part.groupby("round")["loss"].mean()
        along.plot(path.index, path, color=colour, lw=1.4, label="_")
    along.legend(
        along.lines, [f"n = {n / 1000:g}k" for n in sizes], loc="upper right", ncols=2, fontsize=8,
        frameon=False,
    )  # fmt: skip
    along.axhline(200 * ALPHA, color=INK, ls="--", lw=1.2)
    along.set(xlabel="round", ylabel="loss on T (%)", yscale="log", ylim=(1, 100))
    along.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    along.minorticks_off()
    set_title(along, "(c) along the run, until it halts")
    finish(figure, grid, f"Not the paper's: {design.caveat}; {_REPEATS} repeats at most, not 50.")
    return figure


draw_hyperplane = partial(_draw, HYPERPLANE)
draw_ellipse = partial(_draw, ELLIPSE)


def _findings(design: Design, table: pd.DataFrame) -> list[str]:
    ends = _ends(table)
    means = 100 * ends.groupby("n")["test_loss"].mean()
    halted = ends.groupby("n")["halted"].all()
    enough = [int(n) for n in halted.index if halted.loc[n:].all()]
    sentences = [
        "Loss on T: " + ", ".join(f"n = {n:,} {value:.2f}%" for n, value in means.items()) + ".",
    ]
    if enough:
        done = ends[ends["n"] >= enough[0]]
        count = done["round"].mean() * design.rate / PAPER_RATE
        theirs = sorted(set(design.paper.values()))
        named = " to ".join(f"{each:,}" for each in theirs)
        sentences.append(
            f"Every run halts at 2% from n = {enough[0]:,} on (paper: {design.enough:,}), after "
            f"{done['round'].mean():.0f} rounds of rate {design.rate:g}: as much reweighing as "
            f"{count:,.0f} rounds of alpha/8 (paper: about {named})."
        )
    control = _ends(table, _CONTROL)
    if len(control):
        line = control.iloc[0]
        sentences.append(
            f"With weights left alone n = {int(line['n']):,} has {100 * line['test_loss']:.2f}%, "
            f"the best of {int(line['round'])} rounds."
        )
    return sentences


hyperplane_findings = partial(_findings, HYPERPLANE)
ellipse_findings = partial(_findings, ELLIPSE)
