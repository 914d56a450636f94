"""One default over all settings, beside the curator alone, agents alone and the paper's method."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpadapt.learning.figures import INK, set_title
from reproduce.page import finish, panels
from reproduce.runs import Options, Rows, run_cells, spread_note
from reproduce.style import mean_and_spread

from .data import draw_setting
from .methods import AGENTS, CURATOR, OPEN, OURS, SCHEDULE, Draw, run_method
from .style import STYLES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["BUDGETS", "draw_settings", "setting_findings", "summarise_settings"]

COMPARED = (OURS, SCHEDULE, CURATOR, AGENTS, OPEN)
# n, agents, epsilon of the curator, of an agent
BUDGETS: Mapping[str, tuple[int, int, float, float]] = {
    "EASY": (20_000, 50_000, 0.5, 0.5),
    "MEAN": (10_000, 50_000, 1.0, 1.0),
    "HARD": (50_000, 200_000, 2.0, 1.0),
    "HARD50": (300_000, 200_000, 2.0, 1.0),
    "MEANB": (50_000, 200_000, 2.0, 1.0),
    "CORR": (50_000, 200_000, 2.0, 1.0),
    "BIMOD": (50_000, 200_000, 2.0, 1.0),
    "UNIFORM": (50_000, 200_000, 2.0, 1.0),
    "LAPLACE": (50_000, 200_000, 2.0, 1.0),
    "T4": (50_000, 200_000, 2.0, 1.0),
    "AR1": (50_000, 200_000, 2.0, 1.0),
}
KINDS: Mapping[str, str] = {
    "EASY": "the paper's private setting; the source alone is enough",
    "MEAN": "the mean moves; the source alone is enough",
    "HARD": "6 of 8 columns shrink; label by a ball in them",
    "HARD50": "6 of 50 columns shrink",
    "MEANB": "the mean moves, and there labels are the other way; best linear rule 7.4%",
    "CORR": "only the correlation of two columns changes",
    "BIMOD": "two modes along a random direction",
    "UNIFORM": "as HARD, uniform columns",
    "LAPLACE": "as HARD, Laplace columns",
    "T4": "as HARD, Student columns of 4 degrees",
    "AR1": "as HARD, correlated columns",
}
FIRST_SEED = 700  # seeds that nothing was tuned or looked at on before
CAVEAT = "not in the paper"
_QUICK = {"EASY": 10_000, "HARD": 20_000}
_SLOW = ("HARD50", SCHEDULE)  # a thousand passes over 300,000 rows of 50 columns: once


@dataclass(frozen=True)
class Cell:
    """One fit."""

    method: str
    setting: str
    n: int
    seed: int


def run_cell(cell: Cell) -> Rows:
    """Error on the target."""
    _, agents, epsilon, agent_epsilon = BUDGETS[cell.setting]
    draw = Draw(cell.setting, cell.seed, cell.n, agents, epsilon, agent_epsilon)
    found = run_method(cell.method, draw)
    return [
        {
            "setting": cell.setting,
            "method": cell.method,
            "n": cell.n,
            "agents": agents,
            "epsilon": epsilon,
            "agent_epsilon": agent_epsilon,
            "repeat": cell.seed,
            "error": found.error,
            "level": draw.known.level,
            "certified": found.certified,
            "true_epsilon": found.epsilon,
            "candidates": json.dumps(found.candidates),
        }
    ]


def run_settings(options: Options) -> pd.DataFrame:
    """All methods on all settings."""
    sizes = _QUICK if options.quick else {name: budget[0] for name, budget in BUDGETS.items()}
    cells = [
        Cell(method, name, n, FIRST_SEED + repeat)
        for name, n in sizes.items()
        for method in COMPARED
        for repeat in range(1 if (name, method) == _SLOW else options.repeats)
    ]
    return run_cells(run_cell, cells, options, "settings")


def summarise_settings(table: pd.DataFrame) -> pd.DataFrame:
    """A line for each setting, a column for each method: error in percent, and successes.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"setting": "HARD", "method": CURATOR, "n": 50_000, "agents": 200_000, "error": 0.3,
    ...         "epsilon": 2.0, "agent_epsilon": 1.0, "level": 0.1}
    >>> summarise_settings(pd.DataFrame([line]))[CURATOR].tolist()
    ['30.0 (0/1)']
    """
    import pandas as pd

    lines = []
    for name in dict.fromkeys(table["setting"]):
        part = table[table["setting"] == name]
        first = part.iloc[0]
        line = {
            "setting": f"{name}: {KINDS[name]}",
            "n": f"{first['n']:,}",
            "agents": f"{first['agents']:,}",
            "ε, of an agent": f"{first['epsilon']:g}, {first['agent_epsilon']:g}",
            "χ² + 1": f"{draw_setting(name, FIRST_SEED).population.chi2 + 1:,.1f}",
        }
        for method in dict.fromkeys(table["method"]):
            found = part[part["method"] == method]
            good = int((found["error"] <= found["level"]).sum())
            spread = mean_and_spread(list(100 * found["error"]))
            line[method] = f"{spread} ({good}/{len(found)})" if len(found) else "-"
        line["candidates of HybridTilt"] = _candidates(part[part["method"] == OURS])
        lines.append(line | {"not the paper's": "" if name == "EASY" else CAVEAT})
    return pd.DataFrame(lines)


def _candidates(lines: pd.DataFrame) -> str:
    """Mean error of each rule that was compared, in percent."""
    found: dict[str, list[float]] = {}
    for each in lines["candidates"] if len(lines) else ():
        for name, error in json.loads(each).items():
            found.setdefault(name, []).append(100 * error)
    return ", ".join(f"{name} {np.mean(errors):.1f}" for name, errors in found.items())


def draw_settings(table: pd.DataFrame) -> Figure:
    """A line for each setting, a mark for each method.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"setting": "HARD", "method": CURATOR, "error": 0.3, "level": 0.1}
    >>> len(draw_settings(pd.DataFrame([line])).axes)
    1
    """
    names = list(dict.fromkeys(table["setting"]))
    figure, grid = panels(10.5, 1.6 + 0.48 * len(names), 1, 1)
    axes = grid.flat[0]
    methods = list(dict.fromkeys(table["method"]))
    for place, name in enumerate(reversed(names)):
        part = table[table["setting"] == name]
        level = 100 * part["level"].iloc[0]
        axes.plot([level, level], [place - 0.42, place + 0.42], color=INK, lw=1.4, ls="--")
        for step, method in enumerate(methods):
            found = 100 * part.loc[part["method"] == method, "error"]
            if not len(found):
                continue
            style = STYLES[method]
            at = place + 0.28 - 0.56 * step / max(len(methods) - 1, 1)
            axes.plot([found.min(), found.max()], [at, at], color=style["color"], lw=1.2)
            axes.plot(found.mean(), at, marker=style["marker"], color=style["color"], ls="",
                      ms=11 if method == OPEN else 6.5, label=method)  # fmt: skip
    axes.set_yticks(range(len(names)), [f"{each}" for each in reversed(names)])
    seeds = spread_note(table, "Mean, least and greatest.")
    axes.set(xscale="log", xlabel=f"error on T (%). {seeds}")
    axes.set_xticks([0.1, 0.3, 1, 3, 10, 30, 100], ["0.1", "0.3", "1", "3", "10", "30", "100"])
    axes.minorticks_off()
    axes.set_ylim(-0.6, len(names) - 0.4)
    set_title(axes, "One default on every setting; dashed: what counts as success")
    finish(figure, grid, "Only EASY is in the paper. δ = 1e-4; n, agents, ε in the table.", 3)
    return figure


def setting_findings(table: pd.DataFrame) -> list[str]:
    """On how many settings each method succeeds.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"setting": "HARD", "method": CURATOR, "error": 0.3, "level": 0.1}
    >>> setting_findings(pd.DataFrame([line]))
    ['curator alone: mean error at most the level on 0 of 1 settings; not on HARD.']
    """
    sentences = []
    for method in dict.fromkeys(table["method"]):
        part = table[table["method"] == method]
        means = part.groupby("setting", sort=False)[["error", "level"]].mean()
        good = means["error"] <= means["level"]
        failed = ", ".join(str(name) for name in means.index[~good])
        sentences.append(
            f"{method}: mean error at most the level on {int(good.sum())} of {len(good)} settings"
            + (f"; not on {failed}." if failed else ".")
        )
    return sentences
