"""Paper 003, Figures 3b and 3c against R: Algorithm 4, one drawn row a step, the paper's noise."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpadapt.hybrid import (
    Agents,
    BitTest,
    NotCertified,
    SGDLearner,
    SubsampleTestReweigh,
    TightSchedule,
)
from dpadapt.learning.figures import BLUE, INK, ORANGE, set_title
from dpadapt.privacy import Private
from reproduce.page import finish, panels
from reproduce.runs import Options, Rows, run_cells
from reproduce.style import mean_and_spread

from .figure_3 import ALPHA, BATCH, DELTA, ENDLESS, EPSILON, PAPER_ROWS, PAPER_STEPS, along_the_run
from .methods import Draw, common_arguments
from .sample_sizes import true_epsilon
from .style import shades, size_axis

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["descent_findings", "draw_descent", "summarise_descent"]

ROWS, ROUNDS, RATE = 1_000_000, 10, 0.2
STEPS = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
PAPER_NOISE = 20**0.5  # sigma, for gradients of length 1
_TEST, _REPEATS = 50_000, 3


@dataclass(frozen=True)
class Cell:
    """One fit."""

    rows: int
    steps: int
    seed: int


def run_cell(cell: Cell) -> Rows:
    """Loss on the target of every rule on the way."""
    draw = Draw("EASY", cell.seed, cell.rows, ROUNDS * BATCH, EPSILON, EPSILON, DELTA)
    model = SubsampleTestReweigh(
        **common_arguments(draw),
        learner=SGDLearner(steps=cell.steps, sigma=PAPER_NOISE),
        schedule=TightSchedule(
            kappa=ALPHA / (8 * (draw.known.population.chi2 + 1)), rate=RATE, rounds=ROUNDS
        ),
        test=BitTest(batch=BATCH),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)  # what came out is measured here
        model.fit(
            private=Private(*draw.rows("source", cell.rows)),
            agents=Agents(*draw.rows("target", draw.agents)),
        )
    X, y = draw.rows("test", _TEST)
    base = {
        "n": cell.rows,
        "steps": cell.steps,
        "repeat": cell.seed,
        "error": float(np.mean(model.predict(X) != y)),
        "rounds": len(model.candidates_),
        "certified": bool(model.certificate_.certified),
        "true_epsilon": float(model.guarantee_.epsilon),
    }
    return [
        base | {"round": place + 1, "loss": float(np.mean(each.rule.predict_sign(X) != y))}
        for place, each in enumerate(model.candidates_)
    ]


def run_descent(options: Options) -> pd.DataFrame:
    """All numbers of steps."""
    rows, counts = (ROWS // 5, STEPS[:2]) if options.quick else (ROWS, STEPS)
    cells = [
        Cell(rows, steps, seed)
        for steps in reversed(counts)
        for seed in range(min(options.repeats, _REPEATS))
    ]
    return run_cells(run_cell, cells, options, "figure 3 against R")


def _caveat(table: pd.DataFrame) -> str:
    """What of these runs is not the paper's."""
    sizes = " to ".join(f"{n:,}" for n in dict.fromkeys([table["n"].min(), table["n"].max()]))
    return (
        f"n = {sizes}, R from {table['steps'].min():,}, logistic loss, corrected steps, density "
        f"schedule, rate {RATE:g}"
    )


def summarise_descent(table: pd.DataFrame) -> pd.DataFrame:
    """A line for each R, and the paper's.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"n": 1000, "steps": 100, "error": 0.1, "rounds": 2, "round": 1, "loss": 0.2,
    ...         "certified": True, "true_epsilon": 0.01}
    >>> summarise_descent(pd.DataFrame([line]))["loss of the first rule (%)"].tolist()
    ['20.0', '-']
    """
    import pandas as pd

    first, caveat = table[table["round"] == 1], _caveat(table)
    lines = []
    for steps in sorted(int(each) for each in first["steps"].unique()):
        part = first[first["steps"] == steps]
        lines.append(
            {
                "R": f"{steps:,}",
                "n": f"{part['n'].iloc[0]:,}",
                "loss of the first rule (%)": mean_and_spread(list(100 * part["loss"])),
                "loss of what is returned (%)": mean_and_spread(list(100 * part["error"])),
                "rounds": mean_and_spread(list(part["rounds"])),
                "certified": f"{part['certified'].sum()} of {len(part)}",
                "epsilon that this noise gives": f"{part['true_epsilon'].max():.2g}",
                "not the paper's": caveat,
            }
        )
    along = along_the_run(table)
    if along:
        line = dict.fromkeys(lines[0], "-")
        lines.append(line | {"R": ENDLESS, "loss of what is returned (%)": along})
    lines.append(
        {
            "R": f"{PAPER_STEPS[0]:,} to {PAPER_STEPS[-1]:,}",
            "n": f"{PAPER_ROWS:,}",
            "loss of the first rule (%)": "-",
            "loss of what is returned (%)": "at most 16",
            "rounds": "fall as R grows; values not printed",
            "certified": "-",
            "epsilon that this noise gives": f"{true_epsilon(PAPER_ROWS):.3f} (claimed 0.5)",
            "not the paper's": "-",
        }
    )
    return pd.DataFrame(lines)


def draw_descent(table: pd.DataFrame) -> Figure:
    """Loss and rounds against R, and the loss along the run.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"n": 1000, "steps": 100_000, "error": 0.1, "rounds": 2, "round": 1, "loss": 0.2}
    >>> len(draw_descent(pd.DataFrame([line])).axes)
    3
    """
    figure, grid = panels(13.5, 4.4, 1, 3)
    loss, rounds, along = grid.flat
    first = table[table["round"] == 1]
    steps = sorted(int(each) for each in first["steps"].unique())
    for axes, value, factor, colour, name in (
        (loss, "loss", 100, ORANGE, "rule of the first round"),
        (loss, "error", 100, BLUE, "what is returned"),
        (rounds, "rounds", 1, BLUE, "what is returned"),
    ):
        groups = factor * first.groupby("steps")[value].agg(["mean", "std"]).fillna(0)
        axes.errorbar(
            groups.index, groups["mean"], groups["std"], color=colour, marker="o", capsize=3,
            label=name,
        )  # fmt: skip
        size_axis(axes, steps)
        axes.set(xlabel="R, steps of a round", ylim=(0, None))
    loss.axhline(200 * ALPHA, color=INK, ls="--", lw=1.2, label="2α")
    loss.set(ylabel="loss on T (%)")
    set_title(loss, "(a) loss on T")
    rounds.set(ylabel=f"rounds (at most {ROUNDS})", ylim=(0, ROUNDS + 1))
    set_title(rounds, "(b) rounds until it halts")
    for count, colour in zip(steps, shades(len(steps)), strict=True):
        path = 100 * table[table["steps"] == count].groupby("round")["loss"].mean()
        along.plot(path.index, path, color=colour, marker=".", lw=1.4, label="_")
    along.legend(
        along.lines, [f"R = {count:,}" for count in steps], fontsize=8, frameon=False, ncols=2,
        loc="upper right",
    )  # fmt: skip
    along.axhline(200 * ALPHA, color=INK, ls="--", lw=1.2)
    along.set(xlabel="round", ylabel="loss on T (%)", ylim=(0, 60), xlim=(0.5, ROUNDS + 0.5))
    set_title(along, "(c) along the run, until it halts")
    finish(figure, grid, f"Not the paper's: {_caveat(table)}.")
    return figure


def descent_findings(table: pd.DataFrame) -> list[str]:
    """How loss and rounds go with R.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"n": 1000, "steps": 100, "error": 0.1, "rounds": 2, "round": 1, "loss": 0.2,
    ...         "true_epsilon": 0.01, "certified": True}
    >>> descent_findings(pd.DataFrame([line]))[0]
    'R = 100: the first rule has a loss of 20.0%, what is returned 10.0%, after 2.0 rounds.'
    """
    first = table[table["round"] == 1]
    means = first.groupby("steps")[["loss", "error", "rounds"]].mean()
    sentences = [
        f"R = {steps:,.0f}: the first rule has a loss of {100 * loss:.1f}%, what is returned "
        f"{100 * error:.1f}%, after {rounds:.1f} rounds."
        for steps, loss, error, rounds in means.itertuples()
    ]
    sentences.append(
        f"Noise of the paper's sigma^2 = 20 L^2 costs epsilon {first['true_epsilon'].max():.2g} at "
        f"most with these rows, of a budget of {EPSILON:g}."
    )
    return sentences
