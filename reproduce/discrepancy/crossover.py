"""Where the release of one noisy matrix must lose to Frank-Wolfe, if it does.

Noise on a matrix of d x d numbers has a spectral norm that grows with sqrt(d), the noise of
Frank-Wolfe's vertices grows with log m only. By the bounds the matrix loses once d is above about
(n epsilon)^(4/3): so d is varied at small n epsilon.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from dpadapt.discrepancy.minimisation import discrepancy, minimise_discrepancy
from dpadapt.discrepancy.moments import release_second_moment
from dpadapt.learning.figures import GREY, set_title
from dpadapt.papers.discrepancy.first_stage import NoisyFrankWolfe
from dpadapt.papers.discrepancy.parameters import PublicFacts, frank_wolfe_parameters
from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.statistics import SecondMoment
from reproduce.page import panels
from reproduce.runs import Options, run_cells

from .data import figure_data
from .style import LINES, NAMES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "CrossoverCell",
    "crossover_findings",
    "draw_crossover",
    "run_crossover",
    "run_crossover_cell",
    "summarise_crossover",
]

_CONFIDENCE = 0.975  # of a paired difference, one side

DELTA = 1 / 8000
PUBLIC_ROWS = 500
PASSES = 100  # over the public rows, at most
SETTINGS = ((100, 0.1), (300, 1 / 3), (1000, 1.0))  # (n, epsilon): n epsilon is 10, 100, 1000
# repeats for each d: a step costs d^3, and the last setting takes the most steps
REPEATS = {10: 10, 50: 10, 200: 10, 400: 5, 800: 3, 2000: 1}
LAST_REPEATS = {10: 10, 50: 10, 200: 3, 400: 1, 800: 0, 2000: 0}
QUICK_DIMENSIONS = (10, 50)


@dataclass(frozen=True)
class CrossoverCell:
    """One draw of the data."""

    d: int
    n: int
    epsilon: float
    repeat: int


def run_crossover_cell(cell: CrossoverCell) -> list[dict[str, Any]]:
    """Discrepancy of uniform weights, of ours and of tight Frank-Wolfe with its own mu and K.

    Examples
    --------
    >>> lines = run_crossover_cell(CrossoverCell(d=10, n=1000, epsilon=1.0, repeat=0))
    >>> found = {line["method"]: line["discrepancy"] for line in lines}
    >>> found["moments"] < found["Frank-Wolfe, tight, own K"] < found["uniform weights"]
    True
    """
    rng = np.random.default_rng([cell.repeat, cell.n, cell.d])
    data = figure_data(rng, cell.n, PUBLIC_ROWS, cell.d)
    X, private = data.X_public, Private(data.X_private)
    truth = data.X_private.T @ data.X_private / cell.n
    cleaning = Cleaning(radius=float(np.linalg.norm(X, axis=1).max()))
    query = SecondMoment(cleaning)
    session: dict[str, Any] = {
        "epsilon": cell.epsilon,
        "delta": DELTA,
        "noise": "seeded",
        "random_state": cell.repeat,
    }

    def line(method: str, weights: Any, start: float, steps: int) -> dict[str, Any]:
        return {
            "d": cell.d,
            "n": cell.n,
            "epsilon": cell.epsilon,
            "repeat": cell.repeat,
            "method": method,
            "discrepancy": discrepancy(X, weights, truth),
            "steps": steps,
            "seconds": time.perf_counter() - start,
        }

    start = time.perf_counter()
    lines = [line("uniform weights", np.full(len(X), 1 / len(X)), start, 0)]
    start = time.perf_counter()
    noisy = release_second_moment(private, cleaning, **session)
    solution = minimise_discrepancy(X, noisy.matrix, tolerance=noisy.noise_floor, max_iter=PASSES)
    lines.append(line("moments", solution.weights, start, solution.iterations))
    start = time.perf_counter()
    chosen = frank_wolfe_parameters(PublicFacts(X, query, cell.n, cell.epsilon, DELTA))
    algorithm = NoisyFrankWolfe(X, chosen.smoothing, chosen.steps)
    with private.open(**session) as opened:
        grants = opened.plan(vertex=algorithm.mechanism(opened, query))
        weights = algorithm.release(opened, grants.vertex, opened.hide(query))
    return [*lines, line("Frank-Wolfe, tight, own K", weights, start, chosen.steps)]


def run_crossover(options: Options) -> pd.DataFrame:
    """Vary d at three sizes of n epsilon.

    Examples
    --------
    >>> table = run_crossover(Options(repeats=1, quick=True))
    >>> sorted(set(table["d"]))
    [10, 50]
    """
    cells = [
        CrossoverCell(d, n, epsilon, repeat)
        for d in (QUICK_DIMENSIONS if options.quick else REPEATS)
        for n, epsilon in (SETTINGS[-1:] if options.quick else SETTINGS)
        for repeat in range(
            min(options.repeats, (LAST_REPEATS if (n, epsilon) == SETTINGS[-1] else REPEATS)[d])
        )
    ]
    return run_cells(run_crossover_cell, cells, options, "crossover")


def summarise_crossover(table: pd.DataFrame) -> pd.DataFrame:
    """Mean discrepancies, a line for each n epsilon and d.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"d": 10, "n": 100, "epsilon": 0.1, "repeat": 0, "method": "moments"}
    >>> summarise_crossover(pd.DataFrame([line | {"discrepancy": 0.3}])).iloc[0].tolist()
    ['10', '10', '1', '0.300']
    """
    import pandas as pd

    lines = []
    for (n, epsilon), part in _settings(table):
        for d, cell in part.groupby("d"):
            line = {"n epsilon": f"{n * epsilon:.4g}", "d": f"{d}"}
            line["runs"] = f"{cell['repeat'].nunique()}"
            for method, found in cell.groupby("method", sort=False)["discrepancy"]:
                line[str(method)] = f"{found.mean():.3f}"
            lines.append(line)
    return pd.DataFrame(lines).fillna("")


def draw_crossover(table: pd.DataFrame) -> Figure:
    """Discrepancy against d, one panel for each n epsilon.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"d": 10, "n": 100, "epsilon": 0.1, "method": "moments", "discrepancy": 0.3}
    >>> len(draw_crossover(pd.DataFrame([line])).axes)
    1
    """
    settings = _settings(table)
    figure, grid = panels(4 * len(settings) + 0.5, 4.3, 1, len(settings))
    for axes, ((n, epsilon), part) in zip(grid.flat, settings, strict=True):
        for method, lines in part.groupby("method", sort=False):
            curve = lines.groupby("d")["discrepancy"]
            colour, line = LINES[str(method)]
            axes.errorbar(
                curve.mean().index,
                curve.mean(),
                yerr=curve.std().fillna(0),
                color=colour,
                ls=line,
                marker="o",
                ms=4,
                capsize=2,
                label=method,
            )
        axes.axvline((n * epsilon) ** (4 / 3), color=GREY, lw=0.8)
        axes.set(xscale="log", ylim=(0, None), xlabel="columns d", xlim=(7, 2900))
        set_title(axes, f"n = {n}, ε = {epsilon:.2g}")
    grid.flat[0].set_ylabel(NAMES["discrepancy"])
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def crossover_findings(table: pd.DataFrame) -> list[str]:
    """On which side of the crossover Frank-Wolfe wins, by a paired t test at 95%.

    Examples
    --------
    >>> import pandas as pd
    >>> methods = {"uniform weights": 0.4, "moments": 0.1, "Frank-Wolfe, tight, own K": 0.2}
    >>> lines = [
    ...     {"d": 9, "n": 100, "epsilon": 0.1, "repeat": 0, "method": m, "discrepancy": x}
    ...     for m, x in methods.items()
    ... ]
    >>> crossover_findings(pd.DataFrame(lines))
    ['n epsilon = 10: Frank-Wolfe is clearly lower at no d; moments clearly lower at no d.']
    """
    sentences = []
    for (n, epsilon), part in _settings(table):
        found = part.pivot(index=["d", "repeat"], columns="method", values="discrepancy")
        gain = (found["moments"] - found["Frank-Wolfe, tight, own K"]).groupby("d")
        # Student's t; not a number for a single run, which shows nothing
        clear = gain.mean() / gain.sem() / stats.t.ppf(_CONFIDENCE, gain.count() - 1)
        mean = found.groupby("d").mean()

        def places(
            chosen: pd.Series[bool], winner: str, loser: str, mean: pd.DataFrame = mean
        ) -> str:
            wins = [
                f"d = {d} ({mean[winner][d]:.2g} against {mean[loser][d]:.2g}; uniform weights "
                f"{mean['uniform weights'][d]:.2g})"
                for d in mean.index[chosen]
            ]
            return ", ".join(wins) or "no d"

        rival = "Frank-Wolfe, tight, own K"
        sentences.append(
            f"n epsilon = {n * epsilon:.4g}: Frank-Wolfe is clearly lower at "
            f"{places(clear > 1, rival, 'moments')}; moments clearly lower at "
            f"{places(clear < -1, 'moments', rival)}."
        )
    return sentences


def _settings(table: pd.DataFrame) -> list[tuple[tuple[int, float], pd.DataFrame]]:
    """Parts of the crossover's table with the same n and epsilon."""
    pairs = sorted(set(zip(table["n"], table["epsilon"], strict=True)))
    return [
        ((n, epsilon), table[(table["n"] == n) & (table["epsilon"] == epsilon)])
        for n, epsilon in pairs
    ]
