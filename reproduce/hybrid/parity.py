"""Paper 003, Appendix B: a parity of 64 bits in one round, from a skewed source."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.hybrid import (
    Agents,
    NotCertified,
    ParityLearner,
    SubsampleTestReweigh,
    TightSchedule,
)
from dpadapt.learning.figures import BLUE, GREY, ORANGE, set_title
from dpadapt.papers.hybrid.learners import parity_rows
from dpadapt.privacy import Private
from reproduce.page import finish, panels
from reproduce.runs import Options, Rows, run_cells
from reproduce.style import GREEN

from .data import draw_setting
from .populations import SkewedBits
from .style import size_axis

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["cells_of", "draw_parity", "parity_findings", "printed_rows", "summarise_parity"]

DIMENSION, EPSILON, DELTA, BETA = 64, 1.0, 1e-6, 0.05
CHANCES = (0.45, 0.3)
_SIZES = (1_000, 1_400, 2_000, 4_000, 16_000)
_AGENTS, _TARGET = 15_000, 0.1
CAVEAT = "not in the paper, which has no experiment with parities"


@dataclass(frozen=True)
class Cell:
    """One fit."""

    chance: float
    n: int
    seed: int


def printed_rows(d: int, chi2: float, epsilon: float, beta: float) -> int:
    """Rows that Corollary B.3 asks for: k batches of 32 (chi^2 + 1) d ln(2 d / beta) / epsilon.

    Examples
    --------
    >>> f"{printed_rows(64, 0.9, 1.0, 0.05):,}"
    '396,994'
    """
    batches = math.ceil(math.log(2 / beta) / math.log(4 / 3))
    return batches * math.ceil(32 * (chi2 + 1) * d * math.log(2 * d / beta) / epsilon)


def _bits(chance: float, seed: int) -> SkewedBits:
    known = draw_setting("parity", seed).population
    assert isinstance(known, SkewedBits)
    return replace(known, chance=chance)


def run_cell(cell: Cell) -> Rows:
    """Whether the secret is found."""
    bits = _bits(cell.chance, cell.seed)
    rng = np.random.default_rng([cell.seed, cell.n])
    X, y = bits.source(cell.n, rng)
    model = SubsampleTestReweigh(
        epsilon=EPSILON,
        delta=DELTA,
        agent_epsilon=EPSILON,
        learner=ParityLearner(BETA),
        schedule=TightSchedule(kappa=1.0, rounds=1),
        target_error=_TARGET,
        classes=(-1, 1),
        noise="seeded",
        random_state=cell.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)  # whether it was is in the table
        model.fit(private=Private(X, y), agents=Agents(*bits.target(_AGENTS, rng)))
    mask: Any = model.rule_.mask
    return [
        {
            "chance": cell.chance,
            "chi2": bits.chi2,
            "n": cell.n,
            "repeat": cell.seed,
            "found": tuple(np.flatnonzero(mask)) == bits.secret,
            "certified": bool(model.certificate_.certified),
            "rounds": len(model.candidates_),
            "true_epsilon": float(model.guarantee_.epsilon),
        }
    ]


def run_parity(options: Options) -> pd.DataFrame:
    """All sources and sizes; and once the number of rows of the theorem."""
    return run_cells(run_cell, cells_of(options), options, "parity")


def cells_of(options: Options) -> list[Cell]:
    """Every fit.

    Examples
    --------
    >>> sorted({cell.n for cell in cells_of(Options(quick=True))})
    [1400, 4000, 160108]
    """
    sizes = _SIZES[1::2] if options.quick else _SIZES
    repeats = options.repeats if options.quick else 2 * options.repeats
    cells = [Cell(chance, n, seed) for chance in CHANCES for n in sizes for seed in range(repeats)]
    return [*cells, Cell(CHANCES[0], _enough(CHANCES[0]), 0)]


def _enough(chance: float) -> int:
    chi2 = _bits(chance, 0).chi2
    return parity_rows(DIMENSION, chi2, EPSILON, BETA).total


def summarise_parity(table: pd.DataFrame) -> pd.DataFrame:
    """A line for each source and n.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"chance": 0.45, "chi2": 0.9, "n": 2000, "found": True, "certified": True,
    ...         "rounds": 1, "true_epsilon": 1.0}
    >>> summarise_parity(pd.DataFrame([line]))["secret found"].tolist()
    ['1 of 1']
    """
    import pandas as pd

    lines = []
    for chance in dict.fromkeys(table["chance"]):
        for n in sorted(int(each) for each in table["n"].unique()):
            part = table[(table["chance"] == chance) & (table["n"] == n)]
            if not len(part):
                continue
            chi2 = float(part["chi2"].iloc[0])
            lines.append(
                {
                    "chance of a 1 at the source": f"{chance:g}",
                    "χ² + 1": f"{chi2 + 1:,.4g}",
                    "n": f"{n:,}",
                    "secret found": f"{part['found'].sum()} of {len(part)}",
                    "certified by agents": f"{part['certified'].sum()} of {len(part)}",
                    "rounds": f"{part['rounds'].max()}",
                    "n of Corollary B.3": f"{printed_rows(DIMENSION, chi2, EPSILON, BETA):,}",
                    "n that its proof needs, repaired": (
                        f"{parity_rows(DIMENSION, chi2, EPSILON, BETA).total:,}"
                    ),
                    "not the paper's": CAVEAT,
                }
            )
    return pd.DataFrame(lines)


def draw_parity(table: pd.DataFrame) -> Figure:
    """Share of runs that find the secret, against n.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"chance": 0.45, "chi2": 0.9, "n": 2000, "found": True}
    >>> len(draw_parity(pd.DataFrame([line])).axes)
    1
    """
    figure, grid = panels(8.6, 4.4, 1, 1)
    axes = grid.flat[0]
    looks = ((BLUE, BLUE), (GREEN, "white"))
    for chance, (colour, fill) in zip(dict.fromkeys(table["chance"]), looks, strict=False):
        part = table[table["chance"] == chance]
        chi2 = float(part["chi2"].iloc[0])
        shares = 100 * part.groupby("n")["found"].mean()
        axes.plot(
            shares.index, shares, marker="o", color=colour, lw=1.7, mfc=fill,
            label=f"ones with chance {chance:g}: χ² + 1 = {chi2 + 1:,.3g}",
        )  # fmt: skip
    chi2 = float(table["chi2"].iloc[0])
    for n, name, colour, side in (
        (parity_rows(DIMENSION, chi2, EPSILON, BETA).total, "its proof, repaired ", GREY, "right"),
        (printed_rows(DIMENSION, chi2, EPSILON, BETA), " Corollary B.3", ORANGE, "left"),
    ):
        axes.axvline(n, color=colour, ls="--", lw=1.3)
        axes.annotate(name, (n, 8), ha=side, fontsize=8, color=colour)
    size_axis(axes, [1e3, 2e3, 4e3, 16e3, 1e5, 1e6])
    axes.set(ylabel="runs that find the secret (%)", ylim=(-4, 106), xlim=(800, 3e6))
    axes.tick_params(axis="x", labelsize=8)
    set_title(axes, f"A parity of {DIMENSION} bits at ε = 1, one round")
    finish(figure, grid, f"Dashed: n of the theorem for the first source. {CAVEAT.capitalize()}.")
    return figure


def parity_findings(table: pd.DataFrame) -> list[str]:
    """From which n the secret is always found.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"chance": 0.45, "chi2": 0.9, "n": 2000, "found": True, "rounds": 1}
    >>> parity_findings(pd.DataFrame([line]))
    ['Ones with chance 0.45: found in every run from n = 2,000 on, in one round; Corollary B.3 \
asks for 396,994 rows.']
    """
    sentences = []
    for chance in dict.fromkeys(table["chance"]):
        part = table[table["chance"] == chance]
        shares = part.groupby("n")["found"].mean()
        good = [int(n) for n in shares.index if (shares.loc[n:] == 1).all()]
        asked = f"{printed_rows(DIMENSION, float(part['chi2'].iloc[0]), EPSILON, BETA):,}"
        start = (
            f"found in every run from n = {good[0]:,} on, in one round"
            if good
            else f"found in {100 * shares.max():.0f}% of the runs at most"
        )
        sentences.append(
            f"Ones with chance {chance:g}: {start}; Corollary B.3 asks for {asked} rows."
        )
    return sentences
