"""Paper 003 with more than two classes: Subsample-Test-Reweigh and one joint rule."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from dpadapt.hybrid import Agents, BitTest, NotCertified, SubsampleTestReweigh
from dpadapt.learning.figures import set_title
from dpadapt.privacy import Private
from reproduce.page import finish, panels
from reproduce.runs import Options, Rows, run_cells
from reproduce.style import mean_and_spread

from .methods import CURATOR, OPEN, SCHEDULE
from .style import curve

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["class_findings", "draw_classes", "run_classes", "sectors", "summarise_classes"]

Array = NDArray[np.float64]

COUNTS = (2, 3, 4, 8)
N, AGENTS, EPSILON, AGENT_EPSILON, DELTA = 50_000, 200_000, 2.0, 1.0, 1e-6
CAVEAT = "not in the paper, which has no experiment with more than two classes"
_BATCH, _TARGET, _TEST, _OPEN = 30_000, 0.1, 20_000, 20_000


@dataclass(frozen=True)
class Cell:
    """One draw of rows and agents."""

    classes: int
    seed: int
    n: int = N
    agents: int = AGENTS


def sectors(n: int, classes: int, rng: np.random.Generator, *, target: bool) -> tuple[Array, Any]:
    """Rows in four columns, and the sector around a point that the first two lie in.

    Under the target these two are 0.4 times as wide, around (1, 0.5).

    Parameters
    ----------
    n, classes : int
    rng : Generator
    target : bool

    Examples
    --------
    >>> X, y = sectors(1000, 5, np.random.default_rng(0), target=True)
    >>> X.shape, np.unique(y).tolist()
    ((1000, 4), [0, 1, 2, 3, 4])
    """
    X = rng.normal(size=(n, 4))
    if target:
        X = X * [0.4, 0.4, 1.0, 1.0] + [1.0, 0.5, 0.0, 0.0]
    turn = np.arctan2(X[:, 1] - 0.4, X[:, 0] - 0.8) / (2 * np.pi) + 0.5
    return X, np.minimum((turn * classes).astype(np.int64), classes - 1)


def run_cell(cell: Cell) -> Rows:
    """The method, the curator alone, and rows of the target without privacy."""
    rng = np.random.default_rng([3, cell.classes, cell.seed])
    rows = sectors(cell.n, cell.classes, rng, target=False)
    people = Agents(*sectors(cell.agents, cell.classes, rng, target=True))
    X, y = sectors(_TEST, cell.classes, rng, target=True)
    options: dict[str, Any] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "agent_epsilon": AGENT_EPSILON,
        "classes": range(cell.classes),
        "target_error": _TARGET,
        "test": BitTest(batch=min(_BATCH, cell.agents // 5)),
        "noise": "seeded",
        "random_state": cell.seed,
    }
    alone = SubsampleTestReweigh(**options).fit(private=Private(*rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)  # whether it was is in the table
        model = SubsampleTestReweigh(**options).fit(private=Private(*rows), agents=people)
    plain = LogisticRegression(max_iter=500)
    plain.fit(*sectors(_OPEN, cell.classes, rng, target=True))
    place = {"classes": cell.classes, "n": cell.n, "repeat": cell.seed}
    found = {
        "rounds": len(model.candidates_),
        "asked": int(model.agents_guarantee_.bounds["agents asked"]),
        "certified": bool(model.certificate_.certified),
        "true_epsilon": float(model.guarantee_.epsilon),
    }
    return [
        place | {"method": SCHEDULE, "error": 1 - model.score(X, y)} | found,
        place | {"method": CURATOR, "error": 1 - alone.score(X, y)},
        place | {"method": OPEN, "error": 1 - plain.score(X, y)},
    ]


def run_classes(options: Options) -> pd.DataFrame:
    """All numbers of classes."""
    counts, size = (COUNTS[:2], 10) if options.quick else (COUNTS, 1)
    cells = [
        Cell(count, seed, N // size, AGENTS // size)
        for count in counts
        for seed in range(options.repeats)
    ]
    return run_cells(run_cell, cells, options, "classes")


def summarise_classes(table: pd.DataFrame) -> pd.DataFrame:
    """A line for each number of classes.

    Examples
    --------
    >>> summarise_classes(_example()).iloc[0, :2].tolist()
    ['3', '5.0']
    """
    import pandas as pd

    lines = []
    for count, part in table.groupby("classes"):
        line = {"classes": f"{count}"}
        for method, some in part.groupby("method", sort=False):
            line[f"{method}: error on T (%)"] = mean_and_spread(list(100 * some["error"]))
        own = part[part["method"] == SCHEDULE]
        line["rounds"] = mean_and_spread(list(own["rounds"]))
        line["agents asked"] = mean_and_spread(list(own["asked"]), 0)
        line["certified"] = f"{int(own['certified'].sum())} of {len(own)}"
        lines.append(line | {"not the paper's": CAVEAT})
    return pd.DataFrame(lines)


def draw_classes(table: pd.DataFrame) -> Figure:
    """Error against the number of classes.

    Examples
    --------
    >>> len(draw_classes(_example()).axes)
    1
    """
    figure, grid = panels(7.6, 4.2, 1, 1)
    axes = grid.flat[0]
    shown = table.assign(percent=100 * table["error"])
    for method in dict.fromkeys(shown["method"]):
        curve(axes, shown[shown["method"] == method], "classes", "percent", str(method))
    axes.axhline(100 * _TARGET, color="black", lw=0.8, ls=":")
    axes.annotate("target", (table["classes"].min(), 100 * _TARGET), va="bottom", fontsize=8)
    axes.set_xticks(sorted(set(table["classes"])))
    axes.set(xlabel="classes", ylabel="error on the target (%)", ylim=(0, None))
    set_title(axes, "One joint rule, one bit of an agent")
    finish(figure, grid, f"{CAVEAT.capitalize()}. Sectors of a plane.", columns=2)
    return figure


def class_findings(table: pd.DataFrame) -> list[str]:
    """Errors, and how many agents were asked.

    Examples
    --------
    >>> class_findings(_example())
    ['3 classes: error on T 5.0% after 1.0 rounds and 30,000 agents, curator alone 9.0%.']
    """
    sentences = []
    for count, part in table.groupby("classes"):
        mean = part.groupby("method")["error"].mean() * 100
        own = part[part["method"] == SCHEDULE]
        sentences.append(
            f"{count} classes: error on T {mean[SCHEDULE]:.1f}% after {own['rounds'].mean():.1f} "
            f"rounds and {own['asked'].mean():,.0f} agents, curator alone {mean[CURATOR]:.1f}%"
            + (f", without privacy on rows of T {mean[OPEN]:.1f}%." if OPEN in mean else ".")
        )
    return sentences


def _example() -> pd.DataFrame:
    import pandas as pd

    own = {"rounds": 1, "asked": 30_000, "certified": True}
    lines = [{"method": SCHEDULE, "error": 0.05} | own, {"method": CURATOR, "error": 0.09}]
    return pd.DataFrame([{"classes": 3} | line for line in lines])
